"""Both stores behind one fixture: a test that asks for ``installation`` or ``common`` runs on SQLite.

Where the store is part of the claim, the mark `tests.server.support.on_both_stores` says so: what is on disk, what
survives a crash or is restored, what happens at the same moment. ``HUSHBID_STORES=all`` runs every test on both.
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
from tests.extent import ALL_STORES
from tests.server.postgres import Postgres, running_postgres
from tests.server.support import Installation


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Say on which stores a test runs, unless it says so itself."""
    stated = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    asked = metafunc.definition.get_closest_marker("stores")
    stores = ("sqlite", "postgresql") if ALL_STORES else asked.args if asked else ("sqlite",)
    for name, scope in (("installation", "function"), ("common", "module")):
        if name in metafunc.fixturenames and not any(name in one for one in stated):
            metafunc.parametrize(name, stores, indirect=True, scope=scope)


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


@pytest.fixture
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """An installation that has never been started."""
    with _installed(request, tmp_path) as found:
        yield found


@pytest.fixture
def service(installation: Installation) -> Iterator[Service]:
    """A running server."""
    with installation.start() as running:
        yield running


@pytest.fixture(scope="module")
def common(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running server for all tests of a file that mind nobody else's campaigns."""
    with _installed(request, tmp_path_factory.mktemp("common")) as found, found.start() as running:
        yield running
