"""Both stores behind one fixture: a test that asks for ``installation`` runs on SQLite and on PostgreSQL.

The mark ``on_one_store`` says that a test is about something else.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from hushbid.server.service import Service, accounts, what_if
from hushbid.server.store.database import Database
from hushbid.server.store.migrate import migrate
from tests.server.postgres import Postgres, running_postgres
from tests.server.support import Installation


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


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with all tables and nothing in them, to be copied."""
    path = tmp_path_factory.mktemp("template") / "hushbid.sqlite3"
    database = Database.sqlite(path)
    try:
        with database.writer.begin():
            migrate(database.writer)
    finally:
        database.close()
    return path


@pytest.fixture(autouse=True, scope="session")
def quick_passwords() -> Iterator[None]:
    """Hash passwords carelessly: slowness is what the real parameters are for."""
    real, accounts._hasher = accounts._hasher, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    yield
    accounts._hasher = real


@pytest.fixture(autouse=True, scope="session")
def quick_forecasts() -> Iterator[None]:
    """Answer briefly what more people or money would bring: `service/test_what_if.py` gives that all its time."""
    real, what_if._LEAST_SECONDS = what_if._LEAST_SECONDS, 0.1
    yield
    what_if._LEAST_SECONDS = real


@contextmanager
def _installed(request: pytest.FixtureRequest, folder: Path) -> Iterator[Installation]:
    """An installation that has never been started, on the store that a fixture is asked for."""
    home = folder / "home"
    if request.param == "sqlite":
        home.mkdir()
        shutil.copy(request.getfixturevalue("sqlite_template"), home)
        yield Installation(home, None)
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    name = postgres.new(like=request.getfixturevalue("postgres_template"))
    yield Installation(home, postgres.url(name))
    postgres.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """An installation that has never been started."""
    with _installed(request, tmp_path) as found:
        yield found


@pytest.fixture
def service(installation: Installation) -> Iterator[Service]:
    """A running server."""
    with installation.start() as running:
        yield running


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def common(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running server for all tests of a file that mind nobody else's campaigns."""
    with _installed(request, tmp_path_factory.mktemp("common")) as found, found.start() as running:
        yield running
