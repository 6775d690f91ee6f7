"""Opening a database: an SQLite file in WAL mode, or PostgreSQL by its address; one server at a time.

The connection that writes also holds the lock: for SQLite a locked file beside the database, for PostgreSQL a session's
advisory lock, which goes when the session goes. Reads use connections of their own and never wait for the writer.

Operations of one transaction share a `Memory`: what they have read and know to be still true, and changes that are
written together, before the commit; so the frequent operations, of which many run in a row, cost a few statements for
all of them. What an operation writes at once is inside a savepoint of its own. An operation that is refused takes back
both, and nothing of the others.

What is deleted is overwritten in an SQLite file, but older pages stay in its write-ahead log until `Database.purge`
empties that. PostgreSQL keeps old versions of a row, and its log, for as long as it sees fit: nothing here hastens it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL, Connection, Engine, Executable, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from hushbid.common.durable import lock, open_lock, require_locks
from hushbid.errors import CampaignError, InputError
from hushbid.receipts.log import Head
from hushbid.server.installation import Installation
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.store.schema import stamp

Clock = Callable[[], datetime]
_ADVISORY_LOCK = 0x68757368626964  # "hushbid"
_BUSY_SECONDS = 30
_PURGE_MILLISECONDS = 200
"""How long to wait for readers who still see an older state, before the log is emptied at a later time."""

_TAKEN = "Another server is running on this database: stop it first, or give this one a database of its own."


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class Database:
    """A database that this process has opened; no server may write to it beside us until `close`.

    Without ``exclusive`` no lock is taken: for one short transaction beside a running server. With it, a server that is
    just dying gets ``patience`` seconds to let go.
    """

    def __init__(self, url: str | URL, *, exclusive: bool = True, patience: float = 5.0) -> None:
        self.url = _checked(url)
        self._exclusive = exclusive
        self._patience = patience
        self._lock_file: int | None = None
        self._reading = self._engine(QueuePool, pool_size=8, max_overflow=8)
        self._writing = self._engine(NullPool)
        self._writer: Connection | None = None
        self.needs_purge = self.is_sqlite
        """Whether deleted values may still stand in the write-ahead log; after a crash nobody knows."""
        try:
            if self.is_sqlite:
                _create_private(Path(str(self.url.database)))  # before SQLite would, for its owner's eyes only
            if self.is_sqlite and exclusive:
                self._lock_file = lock_file(self._lock_path(), _TAKEN)
            self.reconnect()
        except BaseException:
            self.close()
            raise

    @classmethod
    def sqlite(cls, path: str | Path, *, exclusive: bool = True) -> Self:
        """An SQLite file; created if it is not there."""
        return cls(URL.create("sqlite", database=str(path)), exclusive=exclusive)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def writer(self) -> Connection:
        """The one connection that writes; for the writer's thread only."""
        if self._writer is None:
            raise CampaignError("The database is closed.")
        return self._writer

    @property
    def is_connected(self) -> bool:
        """Whether the writer has a connection that was not lost; a new one needs the lock first."""
        return self._writer is not None and not self._writer.invalidated

    def reconnect(self) -> None:
        """Connect the writer anew, and take the lock; refused while another server has it."""
        self.disconnect()
        try:
            connection = self._writing.connect()
        except SQLAlchemyError as problem:
            raise CampaignError(f"The database cannot be opened: {_cause(problem)}.") from None
        try:
            if not self.is_sqlite and self._exclusive:
                self._take_advisory_lock(connection)
        except BaseException:
            connection.close()
            raise
        self._writer = connection

    def disconnect(self) -> None:
        """Give the writer's connection up, whatever state it is in."""
        connection, self._writer = self._writer, None
        if connection is not None:
            try:
                connection.invalidate()
            finally:
                connection.close()

    def purge(self) -> None:
        """Move everything from SQLite's write-ahead log into the file, and empty the log; for the writer's thread only.

        Outside a transaction. A reader who still sees an older state is waited for briefly; after that `needs_purge`
        stays true, and the caller tries again later.
        """
        if not self.is_sqlite:
            return
        self.needs_purge = True
        driver = self.writer.connection.driver_connection
        assert driver is not None
        driver.execute(f"PRAGMA busy_timeout = {_PURGE_MILLISECONDS}")
        try:
            busy, *_ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self.needs_purge = bool(busy)
        finally:
            driver.execute(f"PRAGMA busy_timeout = {1000 * _BUSY_SECONDS}")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one consistent state and changes nothing."""
        # one transaction, so that all its reads see the same moment
        with self._reading.connect() as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Let go of everything."""
        self.disconnect()
        self._reading.dispose()
        self._writing.dispose()
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def _take_advisory_lock(self, connection: Connection) -> None:
        wait = f"{max(int(self._patience * 1000), 1)}ms"
        with connection.begin():
            # a server that is dying gets some time
            connection.execute(text("SELECT set_config('lock_timeout', :wait, false)"), {"wait": wait})
        try:
            with connection.begin():
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _ADVISORY_LOCK})
        except OperationalError:
            raise CampaignError(_TAKEN) from None
        with connection.begin():
            connection.execute(text("SELECT set_config('lock_timeout', '0', false)"))

    def _lock_path(self) -> Path:
        return Path(f"{self.url.database}.lock")

    def _engine(self, pool: type[NullPool] | type[QueuePool], **options: Any) -> Engine:
        if self.is_sqlite:
            return _sqlite_engine(self.url, writes=pool is NullPool, poolclass=pool, **options)
        if pool is QueuePool:
            options |= {"isolation_level": "REPEATABLE READ", "pool_pre_ping": True}
            options["execution_options"] = {"postgresql_readonly": True}
        return create_engine(self.url, poolclass=pool, hide_parameters=True, **options)


def lock_file(path: Path, taken: str) -> int:
    """Lock a file until the descriptor is closed; the sentence ``taken`` if somebody else has it."""
    require_locks("The server", CampaignError)
    try:
        descriptor = open_lock(path)
    except OSError as problem:
        raise CampaignError(f"{path} cannot be used: {problem.strerror}.") from None
    if not lock(descriptor, wait=False):
        os.close(descriptor)
        raise CampaignError(taken)
    return descriptor


def _create_private(path: Path) -> None:
    """Create the file for its owner's eyes only, if it is not there; SQLite's other files take after it."""
    try:
        os.close(open_lock(path))
    except OSError as problem:
        raise CampaignError(f"{path} cannot be used: {problem.strerror}.") from None


def _sqlite_engine(url: URL, *, writes: bool, **options: Any) -> Engine:
    """SQLite as it should be: transactions begin where we say, commits survive a loss of power, nothing lingers."""
    waits = {"check_same_thread": False, "timeout": _BUSY_SECONDS}
    engine = create_engine(url, connect_args=waits, hide_parameters=True, **options)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver begins no transaction by itself
        cursor = connection.cursor()
        if writes:
            # readers beside the writer; durable at commit; deleted values overwritten
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "foreign_keys = ON"):
                cursor.execute(f"PRAGMA {pragma}")
        else:
            cursor.execute("PRAGMA query_only = ON")
        cursor.execute("PRAGMA cache_size = -32000")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _checked(url: str | URL) -> URL:
    try:
        found = make_url(url)
    except ArgumentError:
        raise InputError("database must be an address such as postgresql://user@host/name.", field="database") from None
    if found.get_backend_name() == "sqlite":
        if not found.database or found.database == ":memory:":
            raise InputError("database must be a file: nothing may be forgotten.", field="database")
        return found.set(drivername="sqlite")
    if found.get_backend_name() != "postgresql":
        raise InputError(
            f"database must be PostgreSQL or an SQLite file, got {found.get_backend_name()!r}.", field="database"
        )
    return found.set(drivername="postgresql+psycopg")


def _cause(problem: SQLAlchemyError) -> str:
    """What the driver says, on one line, without the statement or its parameters."""
    cause = getattr(problem, "orig", None) or problem
    return " ".join(str(cause).split()).rstrip(".")


@dataclass
class Memory:
    """What the operations of one transaction have read and know to be still true, and what is still to be written."""

    campaigns: dict[str, Campaign] = field(default_factory=dict)
    participants: dict[str, Participant] = field(default_factory=dict)
    """By their id."""

    holders: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """By the hash of a secret: whose it is, and whether it only reads."""

    heads: dict[str, Head] = field(default_factory=dict)
    """The end of each campaign's chain of events."""

    _unwritten: dict[Executable, list[dict[str, Any]]] = field(default_factory=dict)

    def later(self, statement: Executable, row: dict[str, Any]) -> None:
        """Run a statement for this row, after the rows it was given before, together with them."""
        self._unwritten.setdefault(statement, []).append(row)

    def write(self, connection: Connection) -> None:
        """Write everything that is still to be written."""
        # in the order in which statements came first
        for statement, rows in self._unwritten.items():
            if rows:
                connection.execute(statement, rows)
        self._unwritten.clear()

    def mark(self) -> dict[Executable, int]:
        """Return how many rows each statement has by now, for `undo`."""
        return {statement: len(rows) for statement, rows in self._unwritten.items()}

    def undo(self, mark: dict[Executable, int], connection: Connection) -> None:
        """Drop what came after a mark; write what came before, so that whoever reads again sees it."""
        for statement, rows in self._unwritten.items():
            del rows[mark.get(statement, 0) :]
        self.write(connection)
        self.forget()

    def forget(self) -> None:
        """Know nothing."""
        self.campaigns.clear()
        self.participants.clear()
        self.holders.clear()
        self.heads.clear()
        self._unwritten.clear()


@dataclass
class Transaction:
    """What an operation works with: the connection, one moment that is now for all of it, and the installation."""

    connection: Connection
    now: datetime
    installation: Installation
    memory: Memory = field(default_factory=Memory)
    saved: bool = False
    """Whether there is a savepoint, to which what was written can be undone."""

    erases: bool = False
    """Whether it deletes what must not stay in the database's log either; set by the operation."""

    then: list[Callable[[], None]] = field(default_factory=list)
    """What is done once the changes are durable, before anybody is told; after a crash it is for the next start."""

    @cached_property
    def at(self) -> str:
        """Now, as it is stored."""
        return stamp(self.now)

    @property
    def writing(self) -> Connection:
        """The connection, for an operation that has checked everything and now writes at once: in a savepoint."""
        if not self.saved:
            self.connection.exec_driver_sql("SAVEPOINT operation")
            self.saved = True
        return self.connection

    def finish(self, *, undo: bool) -> None:
        """End the savepoint, if there is one; ``undo`` what was written since."""
        if self.saved and undo:
            self.connection.exec_driver_sql("ROLLBACK TO SAVEPOINT operation")
        if self.saved:
            self.connection.exec_driver_sql("RELEASE SAVEPOINT operation")
