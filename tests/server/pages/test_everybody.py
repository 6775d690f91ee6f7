"""The pages are for everybody: with a screen reader, a keyboard or a phone, by day and by night, without scripts too.

Every page is looked at here, in one of its states at least; HUSHBID_SCREENSHOTS=folder keeps pictures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.server.http.support import Live
from tests.server.pages.support import DESK, PHONE, Visitor, Watched, keep, too_wide, watched, words
from tests.server.support import PASSWORD, Play, analyst, decided, drafted, opened

SERIOUS = ("serious", "critical")
AXE = Axe().axe_script
FINDINGS = {"resultTypes": ["violations"], "preload": False}  # no rule looks into style sheets or recordings
CONTRAST = {**FINDINGS, "runOnly": {"type": "rule", "values": ["color-contrast"]}}
LONG = "Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenauszahlungsstelle " * 2


@dataclass
class Town:
    """Campaigns in every state, and people in most."""

    live: Live
    draft: Play
    bidding: Play
    central: Play
    local: Play
    over: Play

    def links(self) -> dict[str, str]:
        """Participants' tokens, by what their page shows."""
        bidding, central, local, over = self.bidding, self.central, self.local, self.over
        return {
            "unopened": self.draft.fresh(0),
            "invited": bidding.fresh(0),
            "bid": bidding.fresh(1),
            "declined": bidding.fresh(2),
            "offer-central": central.fresh(0),
            "delivered": central.fresh(1),
            "withdrawn": central.fresh(2),
            "offer-local": local.fresh(0),
            "done": over.fresh(0),
            "dropped": over.fresh(3),
        }


@pytest.fixture(scope="module")
def town(shared: Live) -> Town:
    service = shared.service
    draft = drafted(service, 3, title=LONG)
    bidding = opened(service, 4, participation_fee=1, description="For the works council.\nNobody else.")
    service.bid(bidding.token(1), 1.5)
    service.decline(bidding.token(2))
    central = decided(service, 4, payout="iban")
    central.deliver([1, 2])
    service.withdraw(central.token(2))
    local = decided(service, 4, setting="local", unit="hours")
    over = decided(
        service,
        ["a@example.org", "b@example.org", "c@example.org", "d@example.org"],
        public_estimate=True,
        payout="email",
        participation_fee=2.5,
    )
    over.deliver([0, 1, 2])
    service.state_payout(over.token(0), "a@example.org")
    assert over.release().state == "done"
    service.mark_paid(over.who, over.id, ["b@example.org"])
    return Town(shared, draft, bidding, central, local, over)


@pytest.fixture(scope="module")
def everybody(browser: Browser, shared: Live) -> Iterator[Watched]:
    with watched(browser, shared.url) as context:
        yield context
        assert context.complaints == []


@pytest.fixture(scope="module")
def page(everybody: Watched) -> Page:
    """One for all pages that are looked at: a new one would be a new process, which compiles everything again."""
    return everybody.page()


def examine(page: Page, name: str) -> None:
    """By day and by night, on a context and on a phone: no serious finding, nothing sticks out."""
    page.set_viewport_size(DESK)  # type: ignore[arg-type]
    page.emulate_media(color_scheme="light")
    page.evaluate(AXE)
    found = violations(page, FINDINGS)
    keep(page, f"{name}-context")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    found += violations(page, CONTRAST)
    keep(page, f"{name}-phone-night")
    assert [describe(one) for one in found if one["impact"] in SERIOUS] == []
    assert too_wide(page) == 0
    page.set_viewport_size({"width": 320, "height": 600})
    assert too_wide(page) == 0


def violations(page: Page, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Only what was found leaves the browser: a list of all that is well would be longer than the page."""
    return [*page.evaluate("options => axe.run(document, options).then(found => found.violations)", options)]


def describe(found: dict[str, Any]) -> str:
    return f"{found['id']}: {[node['html'] for node in found['nodes']]}"


def log_in(page: Page, url: str, name: str = "ann") -> None:
    page.goto(f"{url}/login")
    page.fill("#name", name)
    page.fill("#password", PASSWORD)
    page.click("main button")
    page.wait_for_url("**/campaigns")


def come_in(page: Page, url: str, token: str) -> None:
    page.goto("about:blank")
    page.goto(f"{url}/p#{token}")
    page.wait_for_url(f"{url}/p")
    page.wait_for_selector(".progress")


@pytest.mark.parametrize("path", ["/", "/p/other", "/login", "/nothing-here"])
def test_ways_in_are_for_everybody(everybody: Watched, page: Page, path: str) -> None:
    page.goto(f"{everybody.url}{path}")
    examine(page, f"in{path.replace('/', '-')}")


@pytest.mark.parametrize(
    "who",
    [
        *("unopened", "invited", "bid", "declined", "offer-central", "delivered", "withdrawn", "offer-local"),
        *("done", "dropped"),
    ],
)
def test_where_a_participant_stands_is_for_everybody(everybody: Watched, page: Page, town: Town, who: str) -> None:
    come_in(page, everybody.url, town.links()[who])
    if who == "offer-local":
        page.fill("#value", "7.5")
        page.fill("#limit", "73.2")  # another browser than the one she named her price in
        page.click("#make")
        page.wait_for_selector("#shown:not([hidden])")
    examine(page, f"participant-{who}")


def test_a_participants_other_pages_are_for_everybody(everybody: Watched, page: Page, town: Town) -> None:
    come_in(page, everybody.url, town.links()["invited"])
    page.check("#agreed")
    page.click("main form button")
    page.wait_for_selector("#choice")
    page.fill("#price", "1.5")
    page.wait_for_selector("#means:not([hidden])")
    examine(page, "participant-choice")
    page.goto(f"{everybody.url}/p/decline")
    examine(page, "participant-decline")
    page.goto(f"{everybody.url}/p/device")
    page.click("main form button")
    examine(page, "participant-device")
    come_in(page, everybody.url, town.links()["done"])
    page.goto(f"{everybody.url}/p/given-up")
    examine(page, "participant-given-up")
    page.goto(f"{everybody.url}/p/payout")
    page.fill("#handle", "no address")
    page.click("button[value=store]")
    page.wait_for_selector(".field-problem")
    examine(page, "participant-payout")
    page.goto(f"{everybody.url}/c/{town.over.id}")
    examine(page, "public")


def test_analysts_pages_are_for_everybody(everybody: Watched, page: Page, town: Town) -> None:
    log_in(page, everybody.url)
    for name, path in {
        "campaigns": "/campaigns",
        "new": "/campaigns/new",
        "draft": f"/campaigns/{town.draft.id}",
        "sample": f"/campaigns/{town.draft.id}/as-participant/choice",
        "remove": f"/campaigns/{town.draft.id}/people/{town.draft.links[0].id}/remove",
        "invite": f"/campaigns/{town.draft.id}/participants",
        "open": f"/campaigns/{town.draft.id}/steps/open",
        "cancel": f"/campaigns/{town.bidding.id}/steps/cancel",
        "bidding": f"/campaigns/{town.bidding.id}",
        "released": f"/campaigns/{town.over.id}",
        "people": f"/campaigns/{town.over.id}/people",
        "payments": f"/campaigns/{town.over.id}/payments",
        "audit": f"/campaigns/{town.over.id}/audit",
        "log": f"/campaigns/{town.over.id}/log",
        "privacy_account": "/privacy-account",
    }.items():
        page.goto(f"{everybody.url}{path}")
        examine(page, f"staff-{name}")
    page.goto(f"{everybody.url}/campaigns/{town.over.id}/payments")
    page.check("input[value='b@example.org']")
    page.click("button[formaction$=unpay]")
    page.wait_for_selector("form.card")
    examine(page, "staff-unpay")
    page.goto(f"{everybody.url}/campaigns/{town.draft.id}/edit")
    page.fill("#q-0-low", "eleven")
    page.click("button[value=save]")
    page.wait_for_selector(".field-problem")
    examine(page, "staff-edit-refused")


def test_attacks_run_in_the_background_and_tell_what_they_found(everybody: Watched, page: Page, town: Town) -> None:
    log_in(page, everybody.url)
    page.goto(f"{everybody.url}/campaigns/{town.over.id}/audit")
    page.get_by_role("button", name="Attack").click()
    page.wait_for_selector(".attack", timeout=60_000)
    assert page.locator(".attack.failed").count() == 0


def test_times_are_told_in_utc_and_where_the_reader_is(browser: Browser, shared: Live, town: Town) -> None:
    with watched(browser, shared.url, timezone_id="Asia/Kolkata", locale="de") as hers:
        page = hers.page()
        come_in(page, shared.url, town.links()["done"])
        end = page.locator("#payout time").last
        assert "12:00 UTC (30.05.2026, 17:30 bei Ihnen)" in str(end.text_content())
        assert hers.complaints == []


# -- the keyboard ------------------------------------------------------------------------------------------------------


def test_a_price_can_be_named_with_the_keyboard_alone(browser: Browser, shared: Live, town: Town) -> None:
    with watched(browser, shared.url) as hers:
        page = hers.page()
        play = opened(shared.service, 3)
        come_in(page, shared.url, play.fresh(0))
        tab_to(page, "agreed")
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        page.wait_for_selector("#choice")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        tab_to(page, "expects")
        page.keyboard.press("Enter")
        tab_to(page, "slider")
        before = page.input_value("#price")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("PageUp")
        assert page.input_value("#price") != before
        assert page.get_attribute("#slider", "aria-valuetext") == f"{page.input_value('#price')}\u00a0EUR"
        assert page.inner_text("[data-shows=price]") == f"{page.input_value('#price')}\u00a0EUR"
        tab_to(page, "price", back=True)
        page.keyboard.press("ControlOrMeta+A")
        page.keyboard.type("1.5")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Your price is in")
        assert hers.complaints == []
    assert shared.service.participation(play.token(0)).bid == 1.5


def tab_to(page: Page, element: str, *, back: bool = False) -> None:
    for _ in range(40):
        if page.evaluate("document.activeElement.id") == element:
            return
        page.keyboard.press("Shift+Tab" if back else "Tab")
    raise AssertionError(f"{element} cannot be reached")


# -- without scripts ---------------------------------------------------------------------------------------------------


def test_a_whole_central_participation_works_without_scripts(browser: Browser, shared: Live) -> None:
    play = opened(shared.service, 3)
    with watched(browser, shared.url, java_script_enabled=False) as hers:
        page = hers.page()
        page.goto(f"{shared.url}/p#{play.link(0)}")
        page.fill("#link", f"{shared.url}/p#{play.link(0)}")
        page.click("#enter button")
        page.check("#agreed")
        page.get_by_role("button", name="Continue").click()
        assert page.locator("#slider-row").is_hidden()
        page.fill("#price", "1.3")
        page.get_by_role("button", name="Show me what this means").click()
        assert page.inner_text("[data-shows=price]") == "1.30\u00a0EUR"
        assert page.input_value("#price") == "1.3"
        page.get_by_role("button", name="This is my price").click()
        assert page.inner_text("h1") == "Your price is in"
        play.bid([1, 2])
        play.decide()
        page.get_by_role("link", name="Look again").click()
        page.fill("#value", "7.5")
        page.get_by_role("button", name="Go on").click()
        page.get_by_role("button", name="Yes, give it").click()
        assert page.inner_text("h1") == "Thank you, it has arrived"
    assert shared.service.participation(play.token(0)).delivered_at is not None


def test_without_scripts_a_local_delivery_says_what_it_needs(browser: Browser, shared: Live, town: Town) -> None:
    with watched(browser, shared.url, java_script_enabled=False) as hers:
        page = hers.page()
        page.goto(f"{shared.url}/p/other")
        page.fill("#link", town.local.fresh(1))
        page.click("#enter button")
        assert "needs JavaScript" in page.inner_text("noscript")
        assert page.locator("#value").is_hidden()


def test_an_analyst_conducts_a_campaign_without_scripts(browser: Browser, shared: Live) -> None:
    with watched(browser, shared.url, java_script_enabled=False) as hers:
        page = hers.page()
        log_in(page, shared.url)
        page.goto(f"{shared.url}/campaigns/new")
        for name, text in {"title": "No scripts", "q-0-name": "How many?", "q-0-low": "0", "q-0-high": "10"}.items():
            page.fill(f"#{name}", text)
        page.fill("#people", "5")
        page.fill("#minimum_people", "3")
        page.get_by_role("button", name="Look ahead").click()
        assert "EUR" in page.inner_text("#preview-words")
        assert page.input_value("#title") == "No scripts"
        page.get_by_role("button", name="Save the draft").click()
        page.get_by_role("link", name="Invite people").click()
        page.fill("#count", "three")
        page.get_by_role("button", name="Make links").click()
        assert page.locator("#count-problem").is_visible()
        page.fill("#count", "3")
        page.get_by_role("button", name="Make links").click()
        page.get_by_role("link", name="Done").click()
        for seen in ("td code >> nth=2", "#count-problem", "#count", ".state.draft"):
            page.go_back()  # through pages that were each sent to, none of which sends anything again
            assert page.locator(seen).is_visible(), seen
        assert page.get_by_text("3 invited").is_visible()
        page.get_by_role("link", name="Open …").click()
        page.get_by_role("button", name="Open the campaign").click()
        [opening] = shared.service.jobs(analyst(shared.service), page.url.rpartition("/")[2])
        shared.service.wait(opening, timeout=300)
        page.get_by_role("link", name="Refresh").click()
        assert page.locator(".state.bidding").is_visible()
        page.get_by_role("link", name="Cancel …").click()
        page.fill("#reason", "Only a test.")
        page.get_by_role("button", name="Cancel the campaign").click()
        assert page.locator(".state.cancelled").is_visible()


# -- languages and roles -----------------------------------------------------------------------------------------------


def test_the_language_follows_the_browser_and_a_switch_that_is_remembered(shared: Live) -> None:
    with Visitor(shared.url, **{"Accept-Language": "de-DE,de;q=0.9"}) as visitor:
        assert '<html lang="de"' in visitor.get("/").text
        assert '<html lang="en"' in visitor.get("/login?lang=en").text
        assert '<html lang="en"' in visitor.get("/").text
        assert '<html lang="en"' in visitor.get("/?lang=<script>").text


def test_an_auditor_reads_everything_without_names_and_without_buttons(shared: Live, town: Town) -> None:
    with Visitor(shared.url) as otto:
        otto.log_in("otto", PASSWORD)
        overview = otto.get(f"/campaigns/{town.over.id}").text
        assert "/steps/" not in overview
        people = words(otto.get(f"/campaigns/{town.over.id}/people"))
        assert "example.org" not in people
        assert "delivered" in people
        assert "New campaign" not in words(otto.get("/campaigns"))
        for path in ("/log", "/audit", "/report"):
            assert otto.get(f"/campaigns/{town.over.id}{path}").status_code == 200
        for path in ("/payments", "/steps/close"):
            refused = otto.get(f"/campaigns/{town.over.id}{path}")
            assert refused.status_code == 403
            assert "Not for you" in words(refused)
        assert otto.get("/campaigns/new").status_code == 403


def test_a_page_in_place_of_an_error_for_browsers_and_a_problem_for_programs(shared: Live) -> None:
    with Visitor(shared.url) as visitor:
        page = visitor.get("/campaigns/c0/nothing")
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        program = visitor.client.get("/nothing", headers={"Accept": "application/json"})
        assert program.headers["content-type"] == "application/problem+json"
        api = visitor.client.get("/api/v1/nothing")
        assert (api.status_code, api.headers["content-type"]) == (404, "application/problem+json")
        assert visitor.get("/campaigns").headers["location"] == "/login?next=/campaigns"
