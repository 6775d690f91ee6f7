"""What may be done beside a running server: accounts, and backups. Each is one short transaction of its own.

A database that has no tables yet gets them first, for which no server may run.
"""

from pathlib import Path
from typing import Self, TypeVar

from hushbid.common.staging import write_file
from hushbid.errors import CampaignError
from hushbid.server.installation import DataDir, Installation
from hushbid.server.service.registry import Accounts
from hushbid.server.service.use_case import Effort, Operation, ServiceContext
from hushbid.server.store import backup
from hushbid.server.store.backup import Backup
from hushbid.server.store.database import Database, Transaction, utc_now
from hushbid.server.store.migrate import bind_installation, is_current, migrate
from hushbid.server.store.schema import stamp

T = TypeVar("T")


class Administration(Accounts):
    """An installation, whether its server runs or not."""

    def __init__(self, home: DataDir, database: Database) -> None:
        self._home = home
        self._database = database
        self._installation = Installation.of(home)
        self.context = ServiceContext(
            installation=self._installation,
            clock=utc_now,
            effort=Effort(),
            write=self._write,
            read=database.reading,
        )

    @classmethod
    def at(cls, home: str | Path, *, database: str | None = None, alone: bool = False) -> Self:
        """The installation in a folder; ``alone``: refused while its server runs."""
        folder = DataDir.at(home)
        opened = _opened(folder, database, exclusive=alone)
        try:
            with opened.writer.begin():
                ready = is_current(opened.writer)
            # tables must be changed: not beside a server
            if not ready and not alone:
                opened.close()
                opened = _opened(folder, database, exclusive=True)
            with opened.writer.begin():
                migrate(opened.writer)
                bind_installation(opened.writer, folder)
        except BaseException:
            opened.close()
            raise
        return cls(folder, opened)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def back_up(self, path: Path, *, force: bool = False) -> Backup:
        """Write the database, and nothing else, into a file that only its owner can read."""
        made: list[Backup] = []
        with self._database.reading() as connection:
            write_file(
                path,
                lambda file: made.append(backup.dump(connection, file, at=stamp(utc_now()))),
                force=force,
                private=True,
            )
        return made[0]

    def restore(self, path: Path, *, replace: bool = False) -> Backup:
        """Put a backup in place of the database, all of it or nothing; needs to be ``alone``."""
        with path.open("rb") as file:
            found = backup.check(file)
            if found.installation != self._home.name():
                raise CampaignError(
                    "The backup belongs to the folder of another installation, whose keys and claims it needs: give"
                    " that folder with --home."
                )
            file.seek(0)
            with self._database.writer.begin():
                backup.restore(self._database.writer, file, replace=replace)
        return found

    def _write(self, name: str, operation: Operation[T]) -> T:
        with self._database.writer.begin():
            tx = Transaction(self._database.writer, utc_now(), self._installation)
            result = operation(tx)
            tx.memory.write(tx.connection)
            return result


def _opened(home: DataDir, database: str | None, *, exclusive: bool) -> Database:
    if database is None:
        return Database.sqlite(home.database, exclusive=exclusive)
    return Database(database, exclusive=exclusive)
