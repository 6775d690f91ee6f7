"""The one thread that changes anything, with group commit.

Operations queue up. The writer takes all that are waiting, runs each in a savepoint of one transaction, commits once,
and only then answers: an acknowledgement always follows the commit that makes it durable, and a commit is shared by
everybody who waited for it. An operation that fails undoes its own changes only. If the commit itself fails, nobody of
the group is told that anything happened.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from hushbid.campaign.crash import Crash, no_crash
from hushbid.campaign.store.database import Database
from hushbid.errors import HushbidError, ServerFailed

T = TypeVar("T")
Clock = Callable[[], datetime]
_MOST_AT_ONCE = 256


@dataclass(slots=True)
class Transaction:
    """What an operation works with: the connection, and one moment that is now for all of it."""

    connection: Connection
    now: datetime
    after: list[Callable[[], None]] = field(default_factory=list)
    """Called once the changes are durable, before anybody is told."""


@dataclass(slots=True)
class _Waiting:
    name: str
    operation: Callable[[Transaction], Any]
    future: "Future[Any]"


class Writer:
    """Runs operations one after the other, durably."""

    def __init__(self, database: Database, *, clock: Clock, crash: Crash = no_crash) -> None:
        self._database = database
        self._clock = clock
        self._crash = crash
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="hushbid-writer", daemon=True)
        self._thread.start()

    def submit(self, name: str, operation: Callable[[Transaction], T]) -> "Future[T]":
        """Queue an operation; the future's result is there when its changes are durable."""
        future: Future[T] = Future()
        with self._closing:
            if self._closed:
                future.set_exception(ServerFailed("The server is shutting down."))
            else:
                self._queue.put(_Waiting(name, operation, future))
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
        while True:
            first = self._queue.get()
            group = [] if first is None else [first]
            stop = first is None
            while not stop and len(group) < _MOST_AT_ONCE:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    stop = True
                else:
                    group.append(more)
            group = [one for one in group if one.future.set_running_or_notify_cancel()]
            if group:
                self._commit(group)
            if stop:
                return

    def _commit(self, group: list[_Waiting]) -> None:
        answers: list[tuple[_Waiting, Any, BaseException | None, list[Callable[[], None]]]] = []
        try:
            if not self._database.is_connected:
                self._database.reconnect()
            with self._database.writer.begin():
                for one in group:
                    answers.append((one, *self._one(one)))
                for one, _, refused, _ in answers:
                    if refused is None:
                        self._crash(f"{one.name}.before-commit")
        except Exception as problem:  # noqa: BLE001 - whatever it was, nothing of the group is durable
            self._fail(group, problem)
            return
        for one, _, refused, _ in answers:
            if refused is None:
                self._crash(f"{one.name}.after-commit")
        for one, result, refused, after in answers:
            for callback in after:
                callback()
            if refused is None:
                one.future.set_result(result)
            else:
                one.future.set_exception(refused)

    def _one(self, one: _Waiting) -> tuple[Any, BaseException | None, list[Callable[[], None]]]:
        """Run one operation in a savepoint: its result or its problem."""
        connection = self._database.writer
        transaction = Transaction(connection, self._clock())
        savepoint = connection.begin_nested()
        try:
            result = one.operation(transaction)
        except DBAPIError as problem:
            if problem.connection_invalidated:
                raise
            savepoint.rollback()
            return None, problem, []
        except Exception as problem:  # noqa: BLE001 - it is the caller's; only this operation is undone
            savepoint.rollback()
            return None, problem, []
        savepoint.commit()
        return result, None, transaction.after

    def _fail(self, group: list[_Waiting], problem: Exception) -> None:
        self._database.disconnect()
        told: Exception = problem
        if isinstance(problem, SQLAlchemyError) or not isinstance(problem, HushbidError):
            told = ServerFailed("The database failed, and it is not known whether the change was made: ask again.")
            told.__cause__ = problem
        for one in group:
            one.future.set_exception(told)
