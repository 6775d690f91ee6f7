"""What a browser keeps when a price is named, and refuses afterwards, whatever the page says then."""

import math
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.server.http.support import Live
from tests.server.pages.support import Watched, watched
from tests.server.support import Play, opened

PATIENCE = 120_000


@pytest.fixture
def hers(browser: Browser, shared: Live) -> Iterator[Watched]:
    with watched(browser, shared.url) as context:
        yield context
        assert context.complaints == []


def named(hers: Watched, play: Play, price: str = "1.10") -> Page:
    """A page on which she has named her price, in the campaign of others who have named theirs."""
    page = hers.page()
    page.goto(f"{hers.url}/p#{play.fresh(0)}")
    page.check("#agreed")
    page.get_by_role("button", name="Continue").click()
    ask_for(page, price)
    page.wait_for_selector("text=Your price is in")
    play.bid(range(1, len(play.links)))
    assert play.decide().state == "done"
    return page


def ask_for(page: Page, price: str) -> None:
    """Name a price once the script is there, which keeps what she agrees to and shows the slider."""
    page.wait_for_selector("#slider-row:not([hidden])", state="attached")
    page.fill("#price", price)
    page.get_by_role("button", name="This is my price").click()


def lying(page: Page, pattern: str, instead: str) -> None:
    """Let the page come with other numbers than the server's."""

    def lie(route: Route) -> None:
        answer = route.fetch()
        text, changes = re.subn(pattern, instead, answer.text())
        assert changes == 1
        route.fulfill(response=answer, body=text)

    page.route("**/p", lie)
    page.goto(page.url)
    page.unroute("**/p")


LIES = [
    (r'data-loss="[^"]+"', 'data-loss="1000000000.0"', "a larger privacy loss than you agreed to"),
    (r'data-high="[^"]+"', 'data-high="1e9"', "another range of values"),
    (r'data-payment="[^"]+"', 'data-payment="1"', "does not cover what you said"),
    (r'data-currency="EUR"', 'data-currency="IDR"', "is in another currency"),
]


def test_a_page_that_says_something_else_at_delivery_gets_nothing(hers: Watched, shared: Live) -> None:
    page = named(hers, opened(shared.service, 6, setting="local"))
    for pattern, instead, sentence in LIES:
        lying(page, pattern, instead)
        expect(page.locator("#problem")).to_contain_text(sentence, timeout=PATIENCE)
        assert page.locator("#value").is_hidden(), sentence
    page.goto(page.url)
    expect(page.locator("#value")).to_be_visible(timeout=PATIENCE)  # the truth is still believed


def test_the_browser_she_named_her_price_in_needs_no_limit(hers: Watched, shared: Live) -> None:
    page = named(hers, opened(shared.service, 6, setting="local"))
    page.goto(f"{hers.url}/p")
    page.fill("#value", "7.5")
    assert page.locator("#limit").is_hidden()
    page.click("#make")
    page.wait_for_selector("#shown:not([hidden])")
    page.click("#send")
    page.wait_for_selector("text=Thank you, it has arrived")


def test_the_limit_typed_on_another_device_is_the_limit(hers: Watched, shared: Live) -> None:
    play = opened(shared.service, 6, setting="local")
    play.bid()
    assert play.decide().state == "done"
    page = hers.page()
    page.goto(f"{hers.url}/p#{play.fresh(0)}")
    page.wait_for_selector("#limit-hint >> text=must not be sent again from here")
    loss = float(page.get_attribute("#delivery", "data-loss") or "nan")
    shown = math.ceil(1000 / (1 + math.exp(-loss))) / 10  # as the page rounds it up
    page.fill("#value", "7.5")
    page.fill("#limit", f"{shown - 0.1:.1f}")
    page.click("#make")
    expect(page.locator("#problem")).to_contain_text("a larger privacy loss than you agreed to", timeout=PATIENCE)
    page.fill("#limit", f"{shown:.1f}")
    page.click("#make")
    page.wait_for_selector("#shown:not([hidden])")


def test_a_campaign_that_becomes_central_after_she_named_her_price_gets_no_value(hers: Watched, shared: Live) -> None:
    play = opened(shared.service, 6)
    view = shared.service.participation(play.token(0))
    page = hers.page()
    page.goto(hers.url)
    kept = {"campaign": view.campaign, "participant": view.participant, "bounds": [0, 10], "price": 1.1}
    page.evaluate(
        "async (kept) => (await import('/static/privatize.js')).agree({ ...kept, setting: 'local', largestLoss: 1 })",
        kept,
    )
    page.goto(f"{hers.url}/p#{play.fresh(0)}")
    page.check("#agreed")
    page.get_by_role("button", name="Continue").click()
    ask_for(page, "1.10")
    expect(page.locator("#changed")).to_be_visible(timeout=PATIENCE)
    assert shared.service.participation(play.token(0)).bid is None
    play.bid()
    play.decide()
    page.goto(f"{hers.url}/p")
    expect(page.locator("#problem")).to_contain_text("another place where noise is added", timeout=PATIENCE)
    assert page.locator("#value").count() == 0
