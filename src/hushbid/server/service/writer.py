"""The one thread that changes anything, with group commit.

Operations queue up. The writer takes all that are waiting, runs them in one transaction, commits once, and only then
answers: an acknowledgement always follows the commit that makes it durable, and a commit is shared by everybody who
waited for it. The keys to answers that are sealed in it are durable before the commit, and what an operation wants done
after it, such as destroying a key that nothing needs any more, is done before the answer. An operation that is refused
undoes its own changes only, by a savepoint; the frequent ones check everything first, and have one from their first
write on. After a commit that erased something the database's log is emptied, before anybody is answered; if a reader is
in the way, a later commit that erases, or the next tick, does it.

If the connection is lost before the commit, or what the frequent operations write together is refused, the whole group
is undone and every operation is run again in a transaction of its own. If a commit fails, nobody is told that anything
happened.
"""

import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import RootTransaction
from sqlalchemy.exc import SQLAlchemyError

from hushbid.errors import HushbidError, ServerFailed
from hushbid.server.faults import log_fault
from hushbid.server.installation import Installation
from hushbid.server.store import participants
from hushbid.server.store.database import Clock, Database, Memory, Transaction

T = TypeVar("T")
_MOST_AT_ONCE = 256
_UNKNOWN = "The database failed, and it is not known whether the change was made: ask again."
_NOT_MADE = "The database failed, and the change was not made: ask again."


@dataclass(slots=True)
class _Waiting:
    name: str
    operation: Callable[[Transaction], Any]
    future: "Future[Any]"
    checks_first: bool
    secret: str | None
    result: Any = None
    refused: Exception | None = None
    then: tuple[Callable[[], None], ...] = ()
    erases: bool = False


class _RunAgain(Exception):
    """The transaction could not be brought to its commit: nothing of it was done."""


class Writer:
    """Runs operations one after the other, durably."""

    def __init__(self, database: Database, installation: Installation, *, clock: Clock) -> None:
        self._database = database
        self._installation = installation
        self._clock = clock
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="hushbid-writer", daemon=True)
        self._thread.start()

    def submit(
        self, name: str, operation: Callable[[Transaction], T], *, checks_first: bool = False, secret: str | None = None
    ) -> "Future[T]":
        """Queue an operation; the future's result is there when its changes are durable.

        One that ``checks_first`` reads through the memory of its group, and writes through it or `Transaction.writing`.
        The people behind the ``secret`` of all operations of a group are read together.
        """
        future: Future[T] = Future()
        with self._closing:
            if self._closed:
                future.set_exception(ServerFailed("The server is shutting down."))
            else:
                self._queue.put(_Waiting(name, operation, future, checks_first, secret))
        return future

    def run(self, name: str, operation: Callable[[Transaction], T]) -> T:
        """Run an operation and wait until its changes are durable."""
        return self.submit(name, operation).result()

    def close(self) -> None:
        """Finish what is queued, and stop."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        stop = False
        while not stop:
            first = self._queue.get()
            group, stop = ([], True) if first is None else ([first], False)
            # whoever waits by now shares the commit
            while not stop and len(group) < _MOST_AT_ONCE:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                stop = more is None
                if more is not None:
                    group.append(more)
            # who has given up waiting before it began is left out
            group = [one for one in group if one.future.set_running_or_notify_cancel()]
            if group:
                self._together(group)

    def _together(self, group: list[_Waiting]) -> None:
        try:
            self._commit(group)
        except _RunAgain:  # one spoiled it for all: each in a transaction of its own
            for one in group:
                self._alone(one)

    def _alone(self, one: _Waiting) -> None:
        one.result = one.refused = None
        one.then = ()
        one.erases = False
        try:
            self._commit([one])
        except _RunAgain as problem:
            self._tell([one], ServerFailed(_NOT_MADE), problem.__cause__)

    def _commit(self, group: list[_Waiting]) -> None:
        """Run operations in one transaction and answer them; `_RunAgain` if nothing was done, so that one may."""
        try:
            # step 1: a transaction, on a new connection if the old one was lost
            if not self._database.is_connected:
                self._database.reconnect()
            transaction = self._database.writer.begin()
        except (HushbidError, SQLAlchemyError) as problem:
            told = problem if isinstance(problem, HushbidError) else ServerFailed(_NOT_MADE)
            self._tell(group, told, problem.__cause__)
            return
        try:
            # step 2: every operation in turn, reads and writes shared
            memory = Memory()
            participants.recall(self._database.writer, memory, (one.secret for one in group if one.secret is not None))
            for one in group:
                self._one(one, memory)
            memory.write(self._database.writer)
            self._installation.vault.answers.settle()
            self._pass(group, "before-commit")
        except Exception as problem:
            # nothing was made durable
            self._undo(transaction)
            raise _RunAgain from problem
        try:
            # step 3: one commit for all
            transaction.commit()
        except Exception as problem:  # noqa: BLE001 - whatever it was, nobody knows whether the commit was made
            self._database.disconnect()
            self._tell(group, ServerFailed(_UNKNOWN), problem)
            return
        # step 4: what follows, and only now the answers
        self._pass(group, "after-commit")
        if any(one.erases and one.refused is None for one in group):
            self._purge()
        for one in group:
            self._answer(one)

    def _answer(self, one: _Waiting) -> None:
        if one.refused is not None:
            one.future.set_exception(one.refused)
            return
        try:
            for follow in one.then:
                follow()
        except (HushbidError, OSError) as problem:  # the next start does it
            self._tell([one], ServerFailed(_UNKNOWN), problem)
            return
        one.future.set_result(one.result)

    def _purge(self) -> None:
        """Empty the database's log; the changes are durable already, so a failure only means that it is done later."""
        try:
            self._database.purge()
        except (HushbidError, SQLAlchemyError, sqlite3.Error) as problem:
            log_fault(problem, "purge")

    def _undo(self, transaction: RootTransaction) -> None:
        try:
            transaction.rollback()
        except SQLAlchemyError:
            self._database.disconnect()

    def _one(self, one: _Waiting, memory: Memory) -> None:
        """Run one operation: its result or its refusal, which undoes its own changes only."""
        connection = self._database.writer
        tx = Transaction(connection, self._clock(), self._installation, memory)
        if not one.checks_first:  # it may read and write anything: what others are to write comes before it
            memory.write(connection)
            _ = tx.writing
        mark = memory.mark()
        try:
            one.result = one.operation(tx)
            if not one.checks_first:
                memory.write(connection)
            one.then, one.erases = tuple(tx.then), tx.erases
        except Exception as problem:
            if isinstance(problem, SQLAlchemyError) and not tx.saved:
                raise  # a read failed, and with it perhaps the transaction
            one.refused = problem
        tx.finish(undo=one.refused is not None)
        if one.refused is not None and (tx.saved or memory.mark() != mark):
            memory.undo(mark, connection)
        elif not one.checks_first:
            memory.forget()

    def _pass(self, group: list[_Waiting], when: str) -> None:
        for one in group:
            if one.refused is None:
                self._installation.crash(f"{one.name}.{when}")

    def _tell(self, group: list[_Waiting], told: Exception, cause: BaseException | None) -> None:
        told.__cause__ = cause
        for one in group:
            one.future.set_exception(told)
