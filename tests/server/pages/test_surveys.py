"""Several questions on pages: a plain form that works without scripts, and noise added in the browser."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from hushbid.questions import Choice, Number, YesNo
from tests.server.http.support import Live
from tests.server.pages.support import Visitor, Watched, watched, words
from tests.server.pages.test_agreed import lying, named
from tests.server.support import PASSWORD, Play, opened

ASKED = (
    Number(name="Hours of sleep", bounds=(0, 12), unit="h"),
    YesNo(name="Do you smoke?"),
    Choice(name="Shift <b>", answers=("days", "nights & days", "no answer")),
)
SURVEY: dict[str, Any] = {"questions": ASKED, "bounds": None, "buyer_weight": 400.0}
TYPED = {"answer-0": "7.5", "answer-1": "no", "answer-2": "nights & days"}


@pytest.fixture
def hers(browser: Browser, shared: Live) -> Iterator[Watched]:
    with watched(browser, shared.url) as context:
        yield context
        assert context.complaints == []


def bid(shared: Live, **changes: Any) -> Play:
    play = opened(shared.service, 6, **SURVEY, **changes)
    play.bid()
    assert play.decide().state == "done"
    return play


def test_a_plain_form_asks_every_question_and_takes_all_answers_or_none(shared: Live) -> None:
    play = opened(shared.service, 6, **SURVEY)
    with Visitor(shared.url) as she:
        she.come_in(play.fresh(0))
        consent = words(she.get("/p"))
        assert all(one.name in consent for one in ASKED)
        assert "whoever leaves one open gives nothing" in consent
        play.bid()
        play.decide()
        assert "whoever leaves one open gives nothing" in words(she.get("/p"))
        for field, typed in (("answer-0", ""), ("answer-0", "13"), ("answer-1", "maybe"), ("answer-2", "")):
            told = she.send("/p/deliver", "/p", **{**TYPED, field: typed, "sure": "yes"})
            assert told.status_code == 422
            assert f'id="{field}-problem"' in told.text
        asked = she.send("/p/deliver", "/p", **TYPED)
        assert "Give these answers?" in words(asked)
        assert shared.service.participation(play.token(0)).state.value == "promised"
        assert she.send("/p/deliver", "/p", **TYPED, sure="yes").status_code == 303
        assert "Thank you, it has arrived" in words(she.get("/p"))
        play.service.wait(play.service.release(play.who, play.id), timeout=300)
        shown = words(she.get("/p"))
        assert "Do you smoke? (share of yes)" in shown
        assert "Shift <b>" in shown
        assert "not all of them together" in shown


def test_staff_see_the_questions_and_a_form_that_is_sent_as_it_came_changes_none_of_them(shared: Live) -> None:
    who = play_analyst(shared)
    draft = opened(shared.service, 6, **SURVEY)
    settings = shared.service.campaign(draft.who, draft.id).settings
    other = shared.service.draft(draft.who, settings)
    with Visitor(shared.url) as ann:
        ann.log_in(who, PASSWORD)
        page = ann.get(f"/campaigns/{other.id}")
        assert "nights & days" in words(page)
        assert f"/campaigns/{other.id}/edit" in page.text
        form = ann.fields(f"/campaigns/{other.id}/edit")
        assert ann.client.post(f"/campaigns/{other.id}/edit", data={**form, "action": "save"}).status_code == 303
        assert shared.service.campaign(draft.who, other.id).settings == settings.changed({"market.population": 100})
        assert "nights & days" in words(ann.get(f"/c/{draft.id}"))
        assert ann.get("/campaigns").status_code == 200


def play_analyst(shared: Live) -> str:
    """The name of somebody who may log in."""
    return next(one.name for one in shared.service.users() if one.role == "analyst")


def test_in_the_local_setting_only_a_message_leaves_the_browser(hers: Watched, shared: Live) -> None:
    page = named(hers, opened(shared.service, 6, **SURVEY, setting="local"))
    lying(page, r"&#34;bounds&#34;: \[0\.0, 12\.0\]", "&#34;bounds&#34;: [0.0, 1200.0]")
    expect(page.locator("#problem")).to_contain_text("another range of values", timeout=30_000)
    assert page.locator("#answer-0").is_hidden()
    page.goto(f"{hers.url}/p")
    page.fill("#answer-0", "7.765625")
    page.select_option("#answer-1", "yes")
    page.click("#make")
    expect(page.locator("#problem")).to_contain_text("answer every question", timeout=30_000)
    page.select_option("#answer-2", "nights & days")
    page.click("#make")
    page.wait_for_selector("#shown:not([hidden])")
    assert json.loads(page.inner_text("#body"))["message"]["format"] == "hushbid-local-survey"
    page.click("#send")
    page.wait_for_selector("text=Thank you, it has arrived")
    assert not any("7.765625" in text for _, address, body in hers.asked for text in (address, body))


def test_the_page_of_the_price_keeps_the_questions_in_the_central_setting_too(hers: Watched, shared: Live) -> None:
    page = named(hers, opened(shared.service, 6, **SURVEY))
    lying(page, r"&#34;days&#34;, ", "&#34;days&#34;, &#34;at home&#34;, ")
    expect(page.locator("#problem")).to_contain_text("another range of values", timeout=30_000)
    assert page.locator("#value-form").count() == 0


def test_a_single_yes_or_no_is_answered_by_a_coin_in_the_browser_within_the_loss_she_was_shown(
    hers: Watched, shared: Live
) -> None:
    """No largest loss can be stated for it: the page names the one that follows from the settings, and keeps it."""
    asked = {"questions": ASKED[1:2], "bounds": None, "max_privacy_loss": None, "buyer_weight": 200.0}
    play = opened(shared.service, 6, **asked, setting="local")
    most = shared.service.campaign(play.who, play.id).settings.largest_loss
    page = named(hers, play, "2.20")  # for a step of 2, the largest that the campaign may buy
    lying(page, r'data-loss="[^"]+"', f'data-loss="{most * 1.01!r}"')
    expect(page.locator("#problem")).to_contain_text("a larger privacy loss than you agreed to", timeout=30_000)
    assert page.locator("#answer-0").is_hidden()
    page.goto(f"{hers.url}/p")
    page.select_option("#answer-0", "yes")
    page.click("#make")
    page.wait_for_selector("#shown:not([hidden])")
    message = json.loads(page.inner_text("#body"))["message"]
    page.click("#send")
    page.wait_for_selector("text=Thank you, it has arrived")
    assert message["format"] == "hushbid-local-response"
    assert 0.0 < int(message["epsilon"][0]) / int(message["epsilon"][1]) <= most
