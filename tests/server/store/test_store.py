"""Databases: one server at a time, one folder each, the tables the code expects, no other version's."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text, update

from hushbid.errors import CampaignError, InputError, RecordError
from hushbid.receipts.log import Event, next_event
from hushbid.server.admin import Administration
from hushbid.server.installation import DataDir
from hushbid.server.service import Service
from hushbid.server.store import events
from hushbid.server.store.database import Database, Memory, Transaction
from hushbid.server.store.migrate import migrate
from hushbid.server.store.schema import metadata
from tests.server.support import Installation, analyst, on_both_stores, opened, opened_database

pytestmark = on_both_stores


def test_a_second_server_on_the_same_database_is_refused_in_one_sentence(
    installation: Installation, tmp_path: Path
) -> None:
    with installation.start(), pytest.raises(CampaignError, match="Another server is running on this database"):
        opened_database(installation)
    installation.start().close()


def test_a_second_server_in_the_same_folder_is_refused(installation: Installation, tmp_path: Path) -> None:
    with installation.start() as service:
        other = Database.sqlite(tmp_path / "other.sqlite3")
        try:
            with pytest.raises(CampaignError, match="Another server is running in this folder"):
                Service(service.home, other)
        finally:
            other.close()


def test_a_database_belongs_to_one_folder(installation: Installation, tmp_path: Path) -> None:
    installation.start().close()
    elsewhere = DataDir.at(tmp_path / "elsewhere")
    database = opened_database(installation)
    try:
        with pytest.raises(CampaignError, match="folder of another installation"):
            Service(elsewhere, database)
    finally:
        database.close()


def test_migrations_make_exactly_the_tables_the_code_expects(installation: Installation) -> None:
    database = opened_database(installation)
    try:
        with database.writer.begin():
            migrate(database.writer)
            migrate(database.writer)
            found: list[Any] = compare_metadata(MigrationContext.configure(database.writer), metadata)
        assert found == []
    finally:
        database.close()


@pytest.mark.parametrize(("number", "age"), [("0001", "an older"), ("t0001", "an older"), ("t0003", "a newer")])
def test_a_database_of_another_version_is_refused_and_says_which(
    installation: Installation, number: str, age: str
) -> None:
    installation.start().close()
    database = opened_database(installation)
    with database.writer.begin():
        database.writer.execute(text(f"UPDATE alembic_version SET version_num = '{number}'"))
    database.close()
    for begin in (installation.start, lambda: Administration.at(installation.folder, database=installation.url)):
        with pytest.raises(CampaignError, match=f"made by {age} version of Hushbid: its tables have number {number}"):
            begin()


def test_reading_changes_nothing(installation: Installation) -> None:
    with installation.start() as service:
        analyst(service)
        with service._read() as connection, pytest.raises(Exception, match=r"(?i)read-?only"):
            connection.execute(update(metadata.tables["users"]).values(role="auditor"))


@pytest.mark.parametrize("address", ["mysql://x/y", "sqlite://", "sqlite:///:memory:", "nonsense"])
def test_an_address_that_is_no_database_of_ours_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="database must be"):
        Database(address)


def test_the_files_of_an_installation_are_for_their_owner_only(installation: Installation) -> None:
    with installation.start() as service:
        opened(service, 2)
        files = [path for path in installation.folder.rglob("*") if path.is_file()]
        assert len(files) >= 5
        assert [path for path in files if path.stat().st_mode & 0o077] == []
        folders = [path for path in (installation.folder, *installation.folder.rglob("*")) if path.is_dir()]
        assert [path for path in folders if path != installation.folder and path.stat().st_mode & 0o077] == []


def lose_connections(service: Service) -> None:
    """What happens if PostgreSQL is restarted; a file has no connection to lose."""
    if not service._database.is_sqlite:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        with service._read() as connection:
            connection.execute(text(f"{query} AND pid <> pg_backend_pid()"))


def test_a_lost_connection_costs_nothing_and_the_lock_is_taken_again(installation: Installation) -> None:
    with installation.start() as service:
        play = opened(service, 3)
        service.bid(play.token(0), 1.25)
        lose_connections(service)
        assert service.bid(play.token(1), 1.5).bid == 1.5
        lose_connections(service)
        service.decline(play.token(2))
        assert play.view.people == {"declined": 1, "bid": 2}
        with pytest.raises(CampaignError, match="Another server"):
            opened_database(installation)


def test_while_another_server_has_the_lock_nothing_is_written(installation: Installation) -> None:
    with installation.start() as service:
        play = opened(service, 2)
        if installation.url is None:
            return  # a lock on a file cannot be lost
        her = play.token(0)
        lose_connections(service)
        baseline = opened_database(installation)
        try:
            with pytest.raises(CampaignError, match="Another server is running"):
                service.bid(her, 1.25)
            assert service.participation(her).bid is None
        finally:
            baseline.close()
        assert service.bid(her, 1.25).bid == 1.25


@pytest.mark.parametrize("part", ["keys/identity.key", "keys/data", "keys/signing", "claims"])
def test_a_folder_that_lost_a_part_is_refused_and_the_part_is_not_made_anew(tmp_path: Path, part: str) -> None:
    DataDir.at(tmp_path)
    lost = tmp_path / part
    kept = lost.rename(tmp_path / "kept")
    for _ in range(2):
        with pytest.raises(CampaignError, match="is missing, and must not be made anew"):
            DataDir.at(tmp_path)
    kept.rename(lost)
    DataDir.at(tmp_path)


@pytest.mark.parametrize(
    ("stated", "age"), [(None, "an older"), ("hushbid server folder, version 2\n", "another"), ("", "another")]
)
def test_a_folder_of_another_version_is_refused_by_name(tmp_path: Path, stated: str | None, age: str) -> None:
    home = DataDir.at(tmp_path / "home")
    (home.path / "folder.format").unlink()
    if stated is not None:
        (home.path / "folder.format").write_text(stated)
    before = sorted(home.path.rglob("*"))
    for begin in (DataDir.at, Administration.at):
        with pytest.raises(CampaignError, match=f"home was made by {age} version of Hushbid: folder.format must say"):
            begin(home.path)
    assert sorted(home.path.rglob("*")) == before


def test_a_creation_that_was_interrupted_is_taken_up(tmp_path: Path) -> None:
    first = DataDir.at(tmp_path)
    key = first.identity_key()
    (tmp_path / "installation").unlink()
    assert DataDir.at(tmp_path).identity_key() == key


class _Nobody:
    """A connection of a store in which nothing stands."""

    def execute(self, *_: Any) -> "_Nobody":
        return self

    def one_or_none(self) -> None:
        return None


def test_the_servers_chain_is_the_one_that_the_record_defines() -> None:
    """Events told to the store and to `next_event` get the same hashes, also when the clock was set back."""
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    told = [("opened", {"people": 3}), ("bid", {"participant": "p1"}), ("closed", {"unpaid": None})]
    memory, chain = Memory(), list[Event]()
    for (kind, body), minutes in zip(told, (0, 5, -7), strict=True):
        now = noon + timedelta(minutes=minutes)
        chain.append(next_event("c1", chain[-1].head if chain else None, at=now, kind=kind, body=body))
        assert events.append(Transaction(_Nobody(), now, _Nobody(), memory), "c1", kind, body) == chain[-1].head  # type: ignore[arg-type]
    written = [row for rows in memory._unwritten.values() for row in rows]
    assert [(row["number"], row["at"], row["previous"], row["hash"]) for row in written] == [
        (event.number, event.at, event.previous, event.hash) for event in chain
    ]


@pytest.mark.parametrize("body", [{"loss": 0.5}, {"deep": [{"payment": 1e300}]}, {"n": 2**53}])
def test_the_servers_chain_refuses_what_has_no_single_form(body: dict[str, Any]) -> None:
    tx = Transaction(_Nobody(), datetime(2026, 3, 1, tzinfo=UTC), _Nobody())  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="body must hold texts, whole numbers"):
        events.append(tx, "c1", "bid", body)
    assert not tx.memory.heads
