"""Both stores behind one fixture: every test that asks for ``installation`` runs on SQLite and on PostgreSQL."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hushbid.campaign.service import Service
from hushbid.campaign.store.database import Database
from hushbid.campaign.store.migrate import migrate
from tests.campaign.postgres import Postgres, running_postgres
from tests.campaign.support import Installation


@pytest.fixture(scope="session")
def postgres(require: Callable[[str], Path]) -> Iterator[Postgres]:
    """One server for all tests of a process."""
    with running_postgres(require("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres: Postgres) -> str:
    """A database with all tables and nothing in them, to be copied."""
    name = postgres.new()
    database = Database(postgres.url(name))
    try:
        with database.writer.begin():
            migrate(database.writer)
    finally:
        database.close()
    return name


@pytest.fixture(params=["sqlite", "postgresql"])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """An installation that has never been started."""
    if request.param == "sqlite":
        yield Installation(tmp_path / "home", None)
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    name = postgres.new(like=request.getfixturevalue("postgres_template"))
    yield Installation(tmp_path / "home", postgres.url(name))
    postgres.drop(name)


@pytest.fixture
def service(installation: Installation) -> Iterator[Service]:
    """A running server."""
    with installation.start() as running:
        yield running
