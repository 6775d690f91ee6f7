"""Reports without the two sections that take longest to compute, for tests that are about something else.

A report tries six other ways to buy and twenty other caps, which takes ten times as long as the campaign of the usual
test. What these sections say is tested in tests/report; with `brief_reports` the first says that so many people are
left to a command, and the second draws its curve through three points.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def brief_reports() -> Iterator[None]:
    """Within it, reports say less about other ways to buy and other caps."""
    from hushbid.report.sections import baselines, cap

    with mock.patch.object(baselines, "MOST_PEOPLE", 0), mock.patch.object(cap, "_POINTS", 3):
        yield
