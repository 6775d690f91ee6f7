"""Reports are brief here: what they say is the claim of tests/report."""

from collections.abc import Iterator

import pytest

from tests.brief import brief_reports


@pytest.fixture(autouse=True, scope="module")
def brief() -> Iterator[None]:
    with brief_reports():
        yield
