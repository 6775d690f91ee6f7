"""What the pages say is so: intervals that hold, losses that were lost, payments that were made."""

import math
import re

import pytest

from tests.campaign.http.support import Live
from tests.campaign.pages.support import Visitor, words
from tests.campaign.support import PASSWORD, Play, decided

MARGIN = re.compile(r"± ([\d.,]+)")


def page(live: Live, path: str, *, name: str | None = None, token: str | None = None, language: str = "en") -> str:
    """A page in words, for staff, for a participant or for anybody."""
    with Visitor(live.url, **{"Accept-Language": language}) as visitor:
        if name is not None:
            visitor.log_in(name, PASSWORD)
        if token is not None:
            visitor.come_in(token)
        return words(visitor.get(path))


@pytest.fixture(scope="module")
def thinned(shared: Live) -> Play:
    """Forty people were bought from, and ten of them delivered."""
    play = decided(shared.service, 40, buyer_weight=5_000.0, public_estimate=True, participation_fee=100, unit="hours")
    play.deliver(range(10))
    assert play.release().state == "done"
    return play


# -- the average -------------------------------------------------------------------------------------------------------


def test_every_interval_on_a_page_holds_for_what_was_delivered(shared: Live, thinned: Play) -> None:
    release = shared.service.record(thinned.who, thinned.id)
    from hushbid.record import Record
    from hushbid.record.canonical import parsed

    found = Record.from_dict(parsed(release)).release
    assert found is not None
    real, planned = found.error.half_width(0.95), found.planned_error.half_width(0.95)
    assert real > 2 * planned, "or the test shows nothing"
    for reader, path, most in (
        ({"name": "ann"}, f"/campaigns/{thinned.id}", 1.1),
        ({"name": "otto"}, f"/campaigns/{thinned.id}", 1.1),
        ({"token": thinned.token(0)}, "/p", math.inf),
        ({}, f"/c/{thinned.id}", math.inf),
    ):
        shown = page(shared, path, **reader)
        (half,) = MARGIN.findall(shown)
        assert real <= float(half) <= most * real, shown
