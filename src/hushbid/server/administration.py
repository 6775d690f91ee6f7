"""What may be done beside a running server: accounts, and backups. Each is one short transaction of its own.

A database that has no tables yet, or older ones, is brought up to date first, for which no server may run.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

from hushbid.durable import write_file
from hushbid.errors import CampaignError
from hushbid.server.domain.views import Principal
from hushbid.server.installation import Home
from hushbid.server.service import accounts, upkeep
from hushbid.server.store import accounts as stored
from hushbid.server.store import backup
from hushbid.server.store.backup import Backup
from hushbid.server.store.database import Database
from hushbid.server.store.migrate import is_current, migrate
from hushbid.server.store.rows import stamp
from hushbid.server.store.transaction import Transaction

T = TypeVar("T")


class Administration:
    """An installation, whether its server runs or not."""

    def __init__(self, home: Home, database: Database) -> None:
        self._home = home
        self._database = database

    @classmethod
    def at(cls, home: str | Path, *, database: str | None = None, alone: bool = False) -> Self:
        """The installation in a folder; ``alone``: refused while its server runs."""
        folder = Home.at(home)
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
                upkeep.bind_installation(opened.writer, folder)
        except BaseException:
            opened.close()
            raise
        return cls(folder, opened)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    # -- accounts ------------------------------------------------------------------------------------------------------

    def users(self) -> tuple[Principal, ...]:
        """Everybody who can log in, by name."""
        with self._database.reading() as connection:
            found = stored.all_users(connection)
        return tuple(Principal(role=user.role, id=user.id, name=user.name) for user in found)

    def create_user(self, name: str, role: accounts.Role, password: str) -> Principal:
        """Let somebody in."""
        known, secret = accounts.checked_name(name), accounts.password_hash(password)
        return self._write(lambda tx: accounts.create_user(tx, name=known, role=role, password=secret))

    def set_password(self, name: str, password: str) -> None:
        """Give a user another password; ends her sessions."""
        known, secret = accounts.checked_name(name), accounts.password_hash(password)
        self._write(lambda tx: accounts.set_password(tx, known, secret))

    def remove_user(self, name: str) -> None:
        """Let somebody in no more."""
        known = accounts.checked_name(name)
        self._write(lambda tx: accounts.remove_user(tx, known))

    def create_api_token(self, name: str, label: str) -> str:
        """A token for programs, shown once."""
        known = accounts.checked_name(name)
        return self._write(lambda tx: accounts.create_api_token(tx, known, label))

    def revoke_api_token(self, name: str, label: str) -> None:
        """Make a token worth nothing."""
        known = accounts.checked_name(name)
        self._write(lambda tx: accounts.revoke_api_token(tx, known, label))

    # -- backups -------------------------------------------------------------------------------------------------------

    def back_up(self, path: Path, *, force: bool = False) -> Backup:
        """Write the database, and nothing else, into a file that only its owner can read."""
        made: list[Backup] = []
        with self._database.reading() as connection:
            write_file(
                path,
                lambda file: made.append(backup.dump(connection, file, at=stamp(_now()))),
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

    def _write(self, operation: Callable[[Transaction], T]) -> T:
        with self._database.writer.begin():
            return operation(Transaction(self._database.writer, _now()))


def _opened(home: Home, database: str | None, *, exclusive: bool) -> Database:
    if database is None:
        return Database.sqlite(home.database, exclusive=exclusive)
    return Database(database, exclusive=exclusive)


def _now() -> datetime:
    return datetime.now(UTC)
