"""Every state of a campaign and of a person has a page; nothing that belongs to one person is in a log."""

import logging
from dataclasses import fields
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from hushbid.errors import InputError
from hushbid.priors import Exponential, Uniform
from hushbid.receipts.receipt import Receipt
from hushbid.server.domain.settings import CampaignSettings
from hushbid.server.domain.states import CampaignState, ParticipantState
from hushbid.server.domain.views import ParticipationView
from hushbid.server.pages.drafting import people_of
from hushbid.server.pages.numbers import Writing
from hushbid.server.pages.participant import stage_of
from hushbid.server.pages.settings_form import EMPTY, as_typed, filled
from hushbid.server.pages.texts import languages
from tests.server.api.support import Live
from tests.server.pages.support import Visitor, words
from tests.server.support import PASSWORD, Clock, Play, decided, opened, settings

WITH_PAGES_OF_THEIR_OWN = {"invited", "offer"}


def standing(campaign: CampaignState, person: ParticipantState, **more: Any) -> ParticipationView:
    values = dict.fromkeys((field.name for field in fields(ParticipationView)), None)
    return ParticipationView(**{**values, "campaign_state": campaign, "state": person, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(("campaign", "person"), list(product(CampaignState, ParticipantState)))
def test_every_combination_of_states_has_its_words(campaign: CampaignState, person: ParticipantState) -> None:
    now = Clock()()
    for deadline in (None, now - timedelta(hours=1), now + timedelta(hours=1)):
        stage = stage_of(standing(campaign, person, report_by=deadline, deliver_by=deadline), now)
        for texts in languages().values():
            assert stage in WITH_PAGES_OF_THEIR_OWN or f"stage.{stage}.title" in texts
            for name in (f"state.{campaign.value}", f"next.{campaign.value}.title", f"person.{person.value}"):
                assert name in texts


def nothing_bought(live: Live) -> Play:
    play = opened(live.service, 3)
    play.report([0])
    play.decide()
    return play


def undelivered(live: Live) -> Play:
    play = decided(live.service, 3)
    play.release(accept_nobody=True)
    return play


def cancelled(live: Live) -> Play:
    play = opened(live.service, 3)
    play.report([0])
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
        her.send("/p/report", "/p/choice", price="1.13719")
        play.report([1, 2])
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


# -- forms -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"participation_fee": 150, "spending_ceiling": 123_456, "automatic": True, "public_estimate": True},
        {"currency": "JPY", "decimals": 0, "participation_fee": 150},
        {"prior": {"days": Uniform(1, 2), "nights": Exponential(0.5)}, "variance": 1.125},
        {"bounds": (-0.125, 1234.5), "buyer_weight": 0.001, "max_privacy_loss": 0.125, "retention_days": 30},
        {"budget": 1_234_50, "max_relation": 0.125},
        {"hard_budget": 200, "currency": "JPY", "decimals": 0},
        {"standard_error": 0.25, "max_relation": 1.0},
    ],
    ids=["plain", "money", "yen", "groups", "decimals", "budget", "hard budget", "accuracy"],
)
def test_settings_survive_the_form(language: str, changes: dict[str, Any]) -> None:
    if changes.get("automatic"):
        later = Clock()().replace(second=0, microsecond=0)
        changes = {**changes, "report_by": later, "deliver_by": later + timedelta(days=1)}
    write, given = Writing(languages()[language]), settings(**changes)
    found = filled({**as_typed(given, write), "people": "5"}, write)
    assert found.problems == {}
    assert found.settings == given


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"goal": ""}, "goal"),
        ({"goal": "profit"}, "goal"),
        ({"goal": "hard_budget"}, "hard_budget"),
        ({"goal": "standard_error", "standard_error": "little"}, "standard_error"),
        ({"goal": "budget", "budget": "1.005"}, "budget"),
        ({"goal": "budget", "budget": "-3"}, "budget"),
        ({"goal": "budget", "setting": "local"}, "budget"),
        ({"max_relation": "1.5"}, "max_relation"),
    ],
)
def test_a_goal_that_cannot_be_read_or_had_is_told_beside_its_number(typed: dict[str, str], field: str) -> None:
    write = Writing(languages()["en"])
    rest = {"title": "Sleep", "question": "How long?", "low": "0", "high": "10"}
    found = filled({**EMPTY, **rest, "budget": "200", **typed}, write)
    assert list(found.problems) == [field]


def test_only_the_number_of_the_chosen_goal_is_meant() -> None:
    write = Writing(languages()["en"])
    rest = {"title": "Sleep", "question": "How long?", "low": "0", "high": "10", "budget": "x", "buyer_weight": "7"}
    found = filled({**EMPTY, **rest, "goal": "buyer_weight"}, write).settings
    assert found is not None
    assert (found.stated, found.buyer_weight) == ("buyer_weight", 7.0)


def test_an_empty_form_says_what_is_missing() -> None:
    found = filled(EMPTY, Writing(languages()["en"]))
    assert set(found.problems) == {"title", "question", "low", "high"}


@pytest.mark.parametrize(
    ("field", "place"),
    [("currency", "currency"), ("bounds", "low"), ("prior", "prior"), ("elsewhere", "form"), (None, "form")],
)
def test_the_form_shows_a_problem_at_the_field_that_the_error_names(
    monkeypatch: pytest.MonkeyPatch, field: str | None, place: str
) -> None:
    def refuse(values: object) -> None:
        raise InputError("title must be different.", field=field)

    write = Writing(languages()["en"])
    typed = {**as_typed(settings(), write), "people": "5"}
    monkeypatch.setattr(CampaignSettings, "from_dict", refuse)
    assert filled(typed, write).problems == {place: "title must be different."}


def test_what_is_wrong_inside_a_prior_is_shown_at_the_prior() -> None:
    write = Writing(languages()["en"])
    typed = {**as_typed(settings(), write), "people": "5", "prior": "uniform:2,1"}
    assert list(filled(typed, write).problems) == ["prior"]


@pytest.mark.parametrize(
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
