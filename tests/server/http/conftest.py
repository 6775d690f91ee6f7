"""A running server for tests of the HTTP interface; those that ask for ``service`` run on both stores."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hushbid.server.service import Service
from tests.server.http.support import Live, live
from tests.server.support import Installation


@pytest.fixture
def both(service: Service) -> Iterator[Live]:
    """A server on each store in turn."""
    with live(service) as running:
        yield running


@pytest.fixture(scope="module")
def either(common: Service) -> Iterator[Live]:
    """One server on each store for all tests of a file that mind nobody else's campaigns."""
    with live(common) as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One server for a whole file of tests, on SQLite."""
    folder: Path = tmp_path_factory.mktemp("shared")
    with Installation(folder / "home", None).start() as service, live(service) as running:
        yield running
