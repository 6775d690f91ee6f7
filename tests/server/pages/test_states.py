"""Every state of a campaign and of a person has a page; nothing that belongs to one person is in a log."""

import logging
from dataclasses import fields
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from hushbid.errors import InputError
from hushbid.receipts.receipt import Receipt
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import ParticipationView
from hushbid.server.pages.inviting import people_of
from hushbid.server.pages.participant import stage_of
from hushbid.server.pages.wording import languages
from tests.extent import each
from tests.server.http.support import Live
from tests.server.pages.support import Visitor, words
from tests.server.support import PASSWORD, Clock, Play, decided, opened

WITH_PAGES_OF_THEIR_OWN = {"invited", "offer"}


def standing(campaign: CampaignState, person: ParticipantState, **more: Any) -> ParticipationView:
    values = dict.fromkeys((field.name for field in fields(ParticipationView)), None)
    return ParticipationView(**{**values, "campaign_state": campaign, "state": person, **more})  # type: ignore[arg-type]


@each(("campaign", "person"), list(product(CampaignState, ParticipantState)))
def test_every_combination_of_states_has_its_words(campaign: CampaignState, person: ParticipantState) -> None:
    now = Clock()()
    for deadline in (None, now - timedelta(hours=1), now + timedelta(hours=1)):
        stage = stage_of(standing(campaign, person, bid_by=deadline, deliver_by=deadline), now)
        for texts in languages().values():
            assert stage in WITH_PAGES_OF_THEIR_OWN or f"stage.{stage}.title" in texts
            for name in (f"state.{campaign.value}", f"next.{campaign.value}.title", f"person.{person.value}"):
                assert name in texts


def nothing_bought(live: Live) -> Play:
    play = opened(live.service, 3)
    play.bid([0])
    play.decide()
    return play


def undelivered(live: Live) -> Play:
    play = decided(live.service, 3)
    play.release(accept_nobody=True)
    return play


def cancelled(live: Live) -> Play:
    play = opened(live.service, 3)
    play.bid([0])
    live.service.cancel(play.who, play.id, "It rained.")
    return play


@pytest.mark.parametrize(
    ("make", "heading"),
    [
        (nothing_bought, "Nothing was bought"),
        (undelivered, "The campaign ended without a result"),
        (cancelled, "The campaign was cancelled"),
    ],
    ids=["nothing bought", "undelivered", "cancelled"],
)
def test_an_end_without_an_estimate_is_shown_to_everybody(shared: Live, make: Any, heading: str) -> None:
    play = make(shared)
    with Visitor(shared.url) as visitor:
        visitor.come_in(play.fresh(0))
        assert heading in words(visitor.get("/p"))
        assert Receipt.from_dict(visitor.get("/p/receipt").json()).signed
        visitor.log_in("ann", PASSWORD)
        for part in ("", "/people", "/payments", "/audit", "/log"):
            assert visitor.get(f"/campaigns/{play.id}{part}").status_code == 200, part
        overview = visitor.get(f"/campaigns/{play.id}").text
        for link in ("/record", "/report"):
            path = f"/api/v1/campaigns/{play.id}{link}"
            assert (path in overview) == (visitor.client.get(path).status_code == 200)
        assert visitor.get(f"/c/{play.id}").status_code == 200


def test_no_log_holds_anything_of_a_person(shared: Live, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    play = opened(shared.service, ["xanthippe@example.org", "b@example.org", "c@example.org"])
    with Visitor(shared.url) as her:
        her.come_in(play.fresh(0))
        her.agree()
        her.send("/p/choice", "/p/choice", price="1.13719")
        her.send("/p/bid", "/p/choice", price="1.13719")
        play.bid([1, 2])
        play.decide()
        her.send("/p/deliver", "/p", value="77.77123", sure="yes")
        her.send("/p/deliver", "/p", value="7.77123", sure="yes")
        her.get("/p/export")
        token = her.csrf("/p")
    assert shared.service.participation(play.token(0)).delivered_at is not None
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith(("hushbid", "uvicorn")))
    assert "POST /p/deliver 303" in ours
    for secret in (play.token(0), "hb_p_", "1.13719", "77123", "xanthippe", token):
        assert secret not in ours


# -- lists of people ---------------------------------------------------------------------------------------------------


@each(
    ("text", "expected"),
    [
        ("a@x\nb@x", [("a@x", None, None), ("b@x", None, None)]),
        ("id,group\na@x,days\n", [("a@x", "days", None)]),
        ("Kennung;Gruppe\na@x;days\n", [("a@x", "days", None)]),
        ("a@x;days\nb@x;nights", [("a@x", "days", None), ("b@x", "nights", None)]),
        ('"a, b"\n', [("a, b", None, None)]),
        ("a@x\tdays", [("a@x", "days", None)]),
        ("id,stratum,group\na@x,old,days", [("a@x", "days", "old")]),
        ("a@x,days,old", [("a@x", "days", "old")]),
    ],
)
def test_lists_of_people_are_read_as_people_keep_them(
    text: str, expected: list[tuple[str, str | None, str | None]]
) -> None:
    assert people_of(text) == expected


def test_in_a_campaign_with_strata_a_second_column_alone_has_strata() -> None:
    assert people_of("a@x,old", strata=True) == [("a@x", None, "old")]
    assert people_of("a@x,days,old", strata=True) == [("a@x", "days", "old")]


@pytest.mark.parametrize("text", ["", "id\n", " \n,\n"])
def test_an_empty_list_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="at least one id"):
        people_of(text)
