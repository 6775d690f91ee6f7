"""Price and answers in one visit: plain forms, and sentences that are so; local, a browser that keeps answers."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from hushbid.server.model.states import ParticipantState
from hushbid.server.pages.answering import SINGLE_VISIT_STAGES
from hushbid.server.pages.wording import languages
from tests.server.http.support import Live
from tests.server.pages.support import Visitor, Watched, keep, too_wide, watched, words
from tests.server.pages.test_agreed import ask_for, lying
from tests.server.pages.test_everybody import come_in, examine
from tests.server.pages.test_surveys import SURVEY, TYPED
from tests.server.support import PASSWORD, Play, nonce_for, opened

DEAR = 9.0


def started(live: Live, people: int = 3, **changes: Any) -> Play:
    return opened(live.service, people, single_visit=True, **changes)


def hidden(page: httpx.Response) -> dict[str, str]:
    """What the form of a page sends by itself."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))


def priced(she: Visitor, price: str = "1.20") -> httpx.Response:
    """The step that follows a price."""
    if (choice := she.get("/p/choice")).status_code != 200:
        she.agree()
        choice = she.get("/p/choice")
    return she.client.post("/p/bid", data={**hidden(choice), "price": price, "limit": ""})


def gave(live: Live, play: Play, rows: range, price: float = 1.3) -> None:
    for row in rows:
        live.service.bid(play.token(row), price, given=4.0, nonce=nonce_for(row))


def state(live: Live, play: Play) -> ParticipantState:
    return live.service.participation(play.token(0)).state


def test_price_and_value_are_given_together_without_scripts_and_changed_until_the_decision(shared: Live) -> None:
    play = started(shared)
    with Visitor(shared.url) as she:
        she.come_in(play.fresh(0))
        consent = words(she.get("/p"))
        assert "sealed on arrival, with a key of their own" in consent
        assert "If it does not, their key is destroyed, and they stay unopened." in consent
        assert "you type your answers in" not in consent
        asked = priced(she)
        assert asked.status_code == 200
        assert "Nothing is stored yet." in words(asked)
        assert state(shared, play) is ParticipantState.INVITED
        for typed in ("", "eleven", "11"):
            told = she.client.post("/p/answers", data={**hidden(asked), "value": typed})
            assert told.status_code == 422
            assert 'id="value-problem"' in told.text
            assert hidden(told)["price"] == hidden(asked)["price"], "nothing that was typed is lost"
        sent = {**hidden(told), "value": "7.5"}
        assert she.client.post("/p/answers", data=sent).status_code == 303
        assert she.client.post("/p/answers", data=sent).status_code == 303, "the same again"
        shown = words(she.get("/p"))
        assert "Your price and your answers are in" in shown
        assert "You need not come back." in shown
        assert "sealed on arrival with a key of their own" in shown
        assert "7.5" not in shown
        first = shared.service.participation(play.token(0))
        # another price: the answers stand; other answers: the price stands
        assert priced(she, "1.10").status_code == 303
        other = shared.service.participation(play.token(0))
        assert other.bid != first.bid
        assert other.delivered_at == first.delivered_at
        again = she.get("/p/answers")
        assert "Your price stays as it is." in words(again)
        assert she.client.post("/p/answers", data={**hidden(again), "value": "8"}).status_code == 303
        last = shared.service.participation(play.token(0))
        assert last.bid == other.bid
        assert last.delivered_at is not None
        assert last.delivered_at > (first.delivered_at or last.delivered_at)
        assert "The key to your answers is destroyed, and they stay unopened." in words(she.get("/p/withdraw"))
        gave(shared, play, range(1, 3))
        assert play.decide().state == "done"
        shown = words(she.get("/p"))
        assert "Your answers were bought" in shown
        assert "your payment is due" in shown
        assert she.get("/p/answers").status_code == 303
        assert she.client.post("/p/answers", data={**hidden(again), "value": "9"}).status_code == 409
    with Visitor(shared.url) as ann:
        ann.log_in("ann", PASSWORD)
        assert "nobody has to come back" in words(ann.get(f"/campaigns/{play.id}"))
        assert "3 people's answers are bought and will be opened." in words(
            ann.get(f"/campaigns/{play.id}/steps/release")
        )
        assert ann.send(f"/campaigns/{play.id}/steps/release", f"/campaigns/{play.id}/steps/release").status_code == 303


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_survey_is_answered_with_the_price_all_or_nothing(shared: Live, language: str) -> None:
    play = started(shared, 6, **SURVEY)
    with Visitor(shared.url, **{"Accept-Language": language}) as she:
        she.come_in(play.fresh(0))
        asked = priced(she, "1,20" if language == "de" else "1.20")
        typed = {**TYPED, "answer-0": "7,5" if language == "de" else "7.5"}
        told = she.client.post("/p/answers", data={**hidden(asked), **typed, "answer-2": ""})
        assert told.status_code == 422
        assert 'id="answer-2-problem"' in told.text
        assert state(shared, play) is ParticipantState.INVITED
        assert she.client.post("/p/answers", data={**hidden(told), **typed}).status_code == 303
        title = languages()[language].coded("visit.stage.bid.title")
        assert title in words(she.get("/p"))
        assert state(shared, play) is ParticipantState.BID


def test_whoever_is_not_bought_from_reads_that_nobody_opened_her_answers(shared: Live) -> None:
    play = started(shared)
    with Visitor(shared.url) as she:
        she.come_in(play.fresh(0))
        gave(shared, play, range(1), DEAR)
        gave(shared, play, range(1, 3))
        assert play.decide().state == "done"
        assert "Nobody has opened them, and their key is destroyed." in words(she.get("/p"))


@pytest.mark.parametrize("end", ["nothing_bought", "cancelled"])
def test_an_end_without_a_purchase_says_that_all_keys_are_destroyed(shared: Live, end: str) -> None:
    play = started(shared)
    with Visitor(shared.url) as she:
        she.come_in(play.fresh(0))
        gave(shared, play, range(1), DEAR)
        if end == "cancelled":
            shared.service.cancel(play.who, play.id, "It rained.")
        else:
            play.decide()
        shown = words(she.get("/p"))
        assert "the keys to all of them are destroyed" in shown
        assert "Nobody gave any answers" not in shown


def test_a_deadline_is_named_in_the_promise(shared: Live) -> None:
    now = shared.service.clock()
    later = now.replace(year=now.year + 1)
    play = started(shared, bid_by=later, deliver_by=later.replace(year=later.year + 1))
    with Visitor(shared.url) as she:
        she.come_in(play.fresh(0))
        for page in (she.get("/p"), priced(she), she.get("/p/agreement")):
            assert "your answers are destroyed unopened, too" in words(page)
            assert "<time" not in words(page), "it is a time, and not how a page writes one"
        assert she.get("/p").text.count("<time") >= 3, "the script says what time that is where she is"
    [document] = shared.service.agreements(play.who, play.id)["documents"].values()
    assert "<" not in str(document["told"])


def test_an_answer_without_consent_or_price_is_not_taken(shared: Live) -> None:
    play = started(shared)
    with Visitor(shared.url) as she:
        she.come_in(play.fresh(0))
        assert she.send("/p/answers", "/p", price="1.2", value="5", nonce="0" * 32).status_code == 422
        assert state(shared, play) is ParticipantState.INVITED
        sent = {**hidden(priced(she)), "value": "5"}
        assert she.client.post("/p/answers", data={**sent, "price": "no"}).status_code == 422
        assert state(shared, play) is ParticipantState.INVITED
    twice = opened(shared.service, 3)
    with Visitor(shared.url) as she:
        she.come_in(twice.fresh(0))
        she.agree()
        page = she.get("/p/choice")
        data = {**hidden(page), "price": "1.2", "value": "5", "nonce": "0" * 32}
        assert she.client.post("/p/answers", data=data).status_code == 409
        assert she.get("/p/answers").status_code == 303


def test_every_stage_that_is_told_in_other_words_has_them() -> None:
    for texts in languages().values():
        assert all(
            f"visit.stage.{stage}.{part}" in texts for stage in SINGLE_VISIT_STAGES for part in ("title", "text")
        )


# -- in the local setting: answers kept in the browser -----------------------------------------------------------------


@pytest.fixture
def hers(browser: Browser, shared: Live) -> Iterator[Watched]:
    with watched(browser, shared.url) as context:
        yield context
        assert context.complaints == []


def await_storage(page: Page, size: int) -> None:
    """Wait until so many entries are kept; wait_for_function would need eval after its first look, which we forbid."""
    page.evaluate(
        """async (size) => {
            const frame = () => new Promise((done) => requestAnimationFrame(done));
            for (let i = 0; i < 2000 && localStorage.length !== size; i += 1) await frame();
        }""",
        size,
    )
    assert len(storage(page)) == size


def storage(page: Page) -> dict[str, str]:
    found: dict[str, str] = page.evaluate("({ ...localStorage })")
    return found


def come(hers: Watched, play: Play) -> Page:
    """A page on which she has named her price."""
    page = hers.page()
    page.goto(f"{hers.url}/p#{play.fresh(0)}")
    page.check("#agreed")
    page.get_by_role("button", name="Continue").click()
    ask_for(page, "1.10")
    page.wait_for_selector("#keep:not([hidden])")
    return page


@pytest.mark.parametrize("survey", [False, True], ids=["value", "survey"])
def test_answers_that_a_browser_keeps_are_sent_with_noise_once_the_offer_is_known(
    shared: Live, hers: Watched, survey: bool
) -> None:
    play = opened(shared.service, 3, setting="local", **({**SURVEY, "minimum_people": 3} if survey else {}))
    page = come(hers, play)
    typed = {"answer-0": "7.25"} if survey else {"value": "7.25"}
    page.get_by_role("button", name="Keep my answers").click()
    expect(page.locator("#problem")).to_contain_text("Please answer every question")
    for field, text in typed.items():
        page.fill(f"#{field}", text)
    if survey:
        page.select_option("#answer-1", "no")
        page.select_option("#answer-2", "nights & days")
    page.get_by_role("button", name="Keep my answers").click()
    expect(page.locator("#kept-answers")).to_contain_text("7.25")
    keep(page, f"keep-{'survey' if survey else 'value'}")
    assert too_wide(page) <= 0
    assert list(storage(page).values()) == ['[7.25,false,"nights & days"]' if survey else "[7.25]"]
    page.goto(f"{hers.url}/p")
    expect(page.locator("#kept-answers")).to_contain_text("7.25")
    play.bid(range(1, 3))
    assert play.decide().state == "done"
    page.goto(f"{hers.url}/p")
    page.wait_for_selector("#shown:not([hidden])")
    assert storage(page) == {}, "erased as soon as noise was added"
    page.get_by_role("button", name="Send this").click()
    page.wait_for_selector("text=Thank you, it has arrived")
    assert state(shared, play) is ParticipantState.DELIVERED
    assert not [body for _, _, body in hers.asked if "7.25" in body], "they never leave"


def test_kept_answers_are_erased_by_the_button_and_when_nothing_is_wanted(shared: Live, hers: Watched) -> None:
    play = opened(shared.service, 3, setting="local")
    page = come(hers, play)

    def kept() -> None:
        page.fill("#value", "3.5")
        page.get_by_role("button", name="Keep my answers").click()
        expect(page.locator("#kept")).to_be_visible()

    kept()
    page.get_by_role("button", name="Erase them").click()
    expect(page.locator("#value")).to_be_visible()
    assert storage(page) == {}
    kept()
    page.get_by_role("link", name="Withdraw").click()
    page.get_by_role("button", name="Yes, withdraw").click()
    page.wait_for_selector("text=You withdrew")
    await_storage(page, 0)


@pytest.mark.parametrize("way", ["leaves", "ends this device from another"])
def test_whoever_leaves_takes_every_kept_answer_of_the_server_along(shared: Live, hers: Watched, way: str) -> None:
    play = opened(shared.service, 3, setting="local")
    page = come(hers, play)
    page.fill("#value", "3.5")
    page.get_by_role("button", name="Keep my answers").click()
    expect(page.locator("#kept")).to_be_visible()
    page.evaluate("() => { localStorage['hushbid-answers c2 p2'] = '[4.5]'; localStorage.other = 'stays'; }")
    if way == "leaves":
        page.get_by_role("link", name="Leave").click()
        page.get_by_role("button", name="Yes, leave").click()
        page.wait_for_selector("text=You have left")
    else:
        page.goto(f"{hers.url}/p/device")
        page.locator("form[action='/p/device'] button").click()
        link = page.locator("code, input[readonly]").first.text_content() or ""
        with Visitor(shared.url) as elsewhere:
            elsewhere.come_in(link.strip().rpartition("#")[2])
            assert elsewhere.send("/p/others", "/p/others").status_code == 303
        page.goto(f"{hers.url}/p")
        page.wait_for_selector("text=from another device")
    await_storage(page, 1)
    assert storage(page) == {"other": "stays"}, "other programs on this address keep what is theirs"


def test_kept_answers_are_not_used_for_an_offer_that_goes_beyond_what_was_agreed(shared: Live, hers: Watched) -> None:
    play = opened(shared.service, 3, setting="local")
    page = come(hers, play)
    page.fill("#value", "3.5")
    page.get_by_role("button", name="Keep my answers").click()
    expect(page.locator("#kept")).to_be_visible()
    play.bid(range(1, 3))
    assert play.decide().state == "done"
    lying(page, r'data-loss="[^"]+"', 'data-loss="1000000000.0"')
    expect(page.locator("#problem")).to_contain_text("a larger privacy loss than you agreed to")
    expect(page.locator("#shown")).to_be_hidden()
    assert storage(page) == {}


def test_the_steps_of_single_visit_and_the_kept_answers_are_for_everybody(shared: Live, hers: Watched) -> None:
    survey = {**SURVEY, "minimum_people": 3}
    now = shared.service.clock()
    once = started(shared, 3, **survey, deliver_by=now.replace(year=now.year + 1))
    page = hers.page()
    come_in(page, hers.url, once.fresh(0))
    examine(page, "single-visit-consent")
    page.check("#agreed")
    page.get_by_role("button", name="Continue").click()
    ask_for(page, "1.10")
    page.wait_for_selector("text=Nothing is stored yet.")
    page.get_by_role("button", name="Give price and answers").click()
    page.wait_for_selector("#answer-1-problem")
    examine(page, "single-visit-answers")
    page.fill("#answer-0", "7.5")
    page.select_option("#answer-1", "no")
    page.select_option("#answer-2", "no answer")
    page.get_by_role("button", name="Give price and answers").click()
    page.wait_for_selector("text=You need not come back.")
    examine(page, "single-visit-bid")
    local = opened(shared.service, 3, setting="local", **survey)
    local.bid([0])
    come_in(page, hers.url, local.fresh(0))
    page.wait_for_selector("#keep:not([hidden])")
    examine(page, "keep-typing")
