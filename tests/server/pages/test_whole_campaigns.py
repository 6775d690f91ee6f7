"""A whole campaign through the pages, in a real browser, followed to its end by the analyst who pays and closes it and
by somebody who took part. Those pages are the same in both settings; where a value is given they differ, and that is
looked at by itself. HUSHBID_STORES=all plays both settings on both stores.

HUSHBID_SCREENSHOTS=folder keeps pictures.
"""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hushbid.client import MessageFolder, ParticipantClient
from hushbid.receipts.receipt import Receipt
from hushbid.record import Record
from hushbid.verification.receipts import verify_receipt
from hushbid.verification.verifying import verify
from tests.extent import ALL_STORES
from tests.server.http.support import Live
from tests.server.pages.support import Watched, keep, watched
from tests.server.support import PASSWORD, decided

PATIENCE = 120_000
RAW = "7.3456789"
IDS = "id\nann@example.org\nbob@example.org\ncem@example.org\ndoro@example.org\neva@example.org"


@dataclass
class Analyst:
    """Conducts a campaign, page by page."""

    page: Page
    url: str
    campaign: str = ""

    def log_in(self) -> None:
        self.page.goto(f"{self.url}/campaigns")
        self.page.fill("#name", "ann")
        self.page.fill("#password", PASSWORD)
        self.press("Log in", within="main")
        self.page.wait_for_url("**/campaigns")

    def press(self, name: str, *, within: str = "main") -> None:
        self.page.locator(within).get_by_role("button", name=name, exact=True).click()

    def follow(self, name: str, *, within: str = "main") -> None:
        self.page.locator(within).get_by_role("link", name=name, exact=True).click()

    def draft(self, setting: str) -> None:
        page = self.page
        assert page.get_by_text("No campaigns yet").is_visible()
        keep(page, f"{setting}-00-empty")
        self.follow("Create the first one")
        page.fill("#title", "Hours of sleep")
        page.fill("#q-0-name", "How many hours did you sleep last night?")
        page.fill("#description", "For the works council.\n\nNobody else sees more than the average.")
        page.fill("#q-0-low", "0")
        page.fill("#q-0-high", "10")
        page.fill("#q-0-unit", "hours")
        page.check(f"#setting-{setting}")
        page.uncheck("#single_visit")
        page.check("#goal-cost")
        page.fill("#buyer_weight", "50")
        page.check("#prices-text")
        page.fill("#prior", "uniform:1,2")
        page.fill("#participation_fee", "0.50")
        page.fill("#people", "5")
        assert page.input_value("#minimum_people") == "10"
        page.fill("#minimum_people", "2")
        expect(page.locator("#preview-words")).to_contain_text("EUR", timeout=PATIENCE)
        keep(page, f"{setting}-01-draft")
        self.press("Save the draft")
        page.wait_for_selector(".state.draft")
        self.campaign = page.url.rpartition("/")[2]

    def invite(self, setting: str) -> dict[str, str]:
        page = self.page
        self.follow("Invite people")
        page.fill("#people", IDS)
        self.press("Make links")
        page.wait_for_selector("text=5 links")
        keep(page, f"{setting}-02-links")
        with page.expect_download() as downloading:
            self.press("Download all (CSV)")
        rows = list(csv.DictReader(io.StringIO(downloading.value.path().read_text())))
        assert [row["label"] for row in rows] == IDS.split("\n")[1:]
        shown = page.locator("td code").all_inner_texts()
        assert shown == [row["link"] for row in rows]
        self.follow("Done")
        return {row["label"].partition("@")[0]: row["link"] for row in rows}

    def step(self, button: str, confirm: str, state: str) -> None:
        self.page.goto(f"{self.url}/campaigns/{self.campaign}")
        self.follow(button)
        self.press(confirm)
        self.page.wait_for_selector(f".state.{state}")

    def tab(self, name: str) -> None:
        self.page.goto(f"{self.url}/campaigns/{self.campaign}")
        self.follow(name, within=".tabs")


@dataclass
class Person:
    """Takes part, page by page."""

    page: Page
    link: str

    def come_in(self) -> None:
        self.page.goto(self.link)
        self.page.wait_for_url("**/p")
        self.page.wait_for_selector(".progress")
        assert "hb_" not in self.page.url

    def other_device(self) -> str:
        """A link for another browser: hers opened this one."""
        self.page.get_by_role("link", name="Your devices").click()
        self.page.get_by_role("button", name="Make a link").click()
        return self.page.inner_text("code.link-text")

    def consent(self) -> None:
        self.page.check("#agreed")
        self.page.get_by_role("button", name="Continue").click()
        self.page.wait_for_selector("#slider-row:not([hidden])", state="attached")  # the script is there

    def ask_for(self, price: str) -> None:
        self.page.fill("#price", price)
        self.page.get_by_role("button", name="This is my price").click()
        self.page.wait_for_selector("text=Your price is in")

    def heading(self) -> str:
        return self.page.locator("h1").inner_text()


def prices(site: Live, links: dict[str, str], kept: MessageFolder) -> None:
    """The others' prices, whoever they are; they come over the API, as a program's would."""
    for name, price in (("cem", 1.3), ("doro", 1.4)):
        with ParticipantClient(site.url, links[name].partition("#")[2], keeper=kept) as person:
            person.bid(price)


def name_prices(browser: Browser, site: Live, links: dict[str, str], setting: str, kept: MessageFolder) -> None:
    with watched(browser, site.url) as hers:
        ann = Person(hers.page(), links["ann"])
        ann.come_in()
        keep(ann.page, f"{setting}-03-consent")
        ann.consent()
        ann.page.fill("#price", "1.10")
        ann.page.wait_for_selector("#means:not([hidden])")
        keep(ann.page, f"{setting}-04-choice")
        ann.ask_for("1.10")
        keep(ann.page, f"{setting}-05-bid")
        ann.page.get_by_role("link", name="Change my price").click()
        assert ann.page.input_value("#price") == "1.1"
        ann.page.fill("#price", "1.20")
        ann.page.get_by_role("button", name="Change my price").click()
        ann.page.wait_for_selector("text=Your price is in")
        assert "1.20" in ann.page.locator(".facts").inner_text()
        links["ann"] = ann.other_device()
        bob = Person(ann.page, links["bob"])  # the same browser, another link
        bob.come_in()
        bob.page.get_by_role("link", name="I decline").click()
        bob.page.get_by_role("button", name="Yes, I decline").click()
        bob.page.wait_for_selector("text=You declined")
        assert hers.complaints == []
        assert not any("hb_p_" in address for _, address, _ in hers.asked)
    prices(site, links, kept)


def record_holds(analyst: Analyst) -> None:
    with analyst.page.expect_download() as downloading:
        analyst.follow("Record (JSON)")
    record = Record.from_dict(json.loads(downloading.value.path().read_text()))
    assert verify(record).ok


def after_the_end(analyst: Analyst, site: Live, setting: str) -> None:
    page = analyst.page
    analyst.tab("Payments")
    page.check('input[value="ann@example.org"]')
    analyst.press("Mark the chosen as paid …")
    analyst.press("Yes, they have been paid")
    page.wait_for_selector(".paid-mark")
    assert page.locator(".paid-mark").count() == 1
    analyst.press("Mark everybody as paid …")
    analyst.press("Yes, they have been paid")
    expect(page.locator(".paid-mark")).to_have_count(3, timeout=PATIENCE)
    keep(page, f"{setting}-11-payments")
    analyst.tab("Audit")
    assert page.get_by_text("Holds: everything that can be checked without the data").is_visible()
    analyst.tab("Log")
    kinds = page.locator("table.log td b").all_inner_texts()
    assert kinds[0] == "drafted"
    assert {"opened", "bid", "declined", "allocated", "delivered", "released", "paid"} <= set(kinds)
    page.goto(f"{site.url}/privacy-account")
    assert page.locator("tbody tr").count() >= 1
    page.goto(f"{site.url}/campaigns/{analyst.campaign}")
    analyst.follow("Read the report")
    assert "Hours of sleep" in page.locator("h1").inner_text()
    analyst.step("Close …", "Close it", "closed")


def what_she_has(campaign: str, site: Live, browser: Browser, links: dict[str, str], setting: str) -> None:
    with watched(browser, site.url) as hers:
        ann = Person(hers.page(), links["ann"])
        ann.come_in()
        assert ann.heading() == "Done, with thanks"
        keep(ann.page, f"{setting}-12-done")
        with ann.page.expect_download() as saving:
            ann.page.get_by_role("link", name="Download my receipt").click()
        receipt = Receipt.from_dict(json.loads(saving.value.path().read_text()))
        fingerprint = site.service.keys().newest.fingerprint
        assert verify_receipt(receipt, fingerprint=fingerprint, root=site.service.public(campaign).root).ok
        assert receipt.body.bid == 1.2
        ann.page.get_by_role("link", name="What I have given up over all campaigns").click()
        assert "Hours of sleep" in ann.page.locator("table").inner_text()
        with ann.page.expect_download() as exporting:
            ann.page.goto(f"{site.url}/p") and ann.page.get_by_role("link", name="Download everything").click()
        assert json.loads(exporting.value.path().read_text())["format"] == "hushbid-personal-data"
        assert hers.complaints == []


PAIRS = [("sqlite", "local")]
if ALL_STORES:
    PAIRS += [("postgresql", "central"), ("sqlite", "central"), ("postgresql", "local")]


@pytest.mark.parametrize(("installation", "setting"), PAIRS, indirect=["installation"])
def test_a_whole_campaign_runs_through_the_pages(browser: Browser, site: Live, setting: str, tmp_path: Path) -> None:
    with watched(browser, site.url) as staff:
        analyst = Analyst(staff.page(), site.url)
        analyst.log_in()
        analyst.draft(setting)
        links = analyst.invite(setting)
        analyst.step("Open …", "Open the campaign", "bidding")
        kept = MessageFolder(tmp_path / "messages")
        name_prices(browser, site, links, setting, kept)
        expect(analyst.page.locator("[data-shows=count-bid]")).to_have_text("3", timeout=PATIENCE)
        keep(analyst.page, f"{setting}-06-monitor")
        analyst.step("Close and decide …", "Close and decide", "delivering")
        with watched(browser, site.url) as hers:
            ann = Person(hers.page(), links["ann"])
            ann.come_in()
            (central_delivery if setting == "central" else local_delivery)(ann, hers)
            links["ann"] = ann.other_device()
            assert hers.complaints == []
        with ParticipantClient(site.url, links["cem"].partition("#")[2], keeper=kept) as cem:
            assert cem.participation().max_privacy_loss == 1.0  # as the pages showed
            (cem.deliver_value if setting == "central" else cem.deliver_privately)(6.0, at_most=1.0, bounds=(0, 10))
        analyst.step("Release …", "Release it", "released")
        assert "1 dropped out" in " ".join(analyst.page.locator(".legend").inner_text().split())
        keep(analyst.page, f"{setting}-10-released")
        record_holds(analyst)
        what_she_has(analyst.campaign, site, browser, links, setting)
        after_the_end(analyst, site, setting)
        assert staff.complaints == []


def test_a_value_is_given_as_it_is_in_the_central_setting(browser: Browser, site: Live) -> None:
    """The one step in which that setting differs: a campaign is decided about, and she brings her value."""
    play = decided(site.service, 3, unit="hours")
    with watched(browser, site.url) as hers:
        ann = Person(hers.page(), f"{site.url}/p#{play.fresh(0)}")
        ann.come_in()
        central_delivery(ann, hers)
        assert hers.complaints == []
    assert site.service.participation(play.token(0)).delivered_at is not None


def central_delivery(ann: Person, hers: Watched) -> None:
    page = ann.page
    assert "EUR for your answers" in ann.heading()
    page.fill("#value", "11")
    page.get_by_role("button", name="Go on").click()
    page.wait_for_selector("text=Your answer must be a number from 0 to 10.")
    assert page.input_value("#value") == "11", "what was typed is not lost"
    page.fill("#value", RAW)
    keep(page, "central-07-offer")
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Yes, give it").click()
    page.wait_for_selector("text=Thank you, it has arrived")
    keep(page, "central-08-delivered")
    assert not any(RAW in address for _, address, _ in hers.asked), "a value is never part of an address"


def local_delivery(ann: Person, hers: Watched) -> None:
    """The value is typed, noise is added, the request is shown and sent; and nothing else ever left."""
    page = ann.page
    page.fill("#value", "11")
    page.click("#make")
    page.wait_for_selector("text=Your answer must be a number from 0 to 10.")
    page.fill("#value", RAW)
    page.click("#make")  # another browser than the one she named her price in: it knows no limit
    page.wait_for_selector("text=Please type the limit you agreed to")
    page.fill("#limit", "51")
    page.click("#make")
    page.wait_for_selector("text=larger privacy loss than you agreed to")
    assert page.locator("#shown").is_hidden()
    page.fill("#limit", "73.2")
    keep(page, "local-07-offer")
    page.click("#make")
    page.wait_for_selector("#shown:not([hidden])")
    assert page.inner_text("#plain") == f"{RAW} hours"
    body = page.inner_text("#body")
    noisy = page.inner_text("#noisy")
    keep(page, "local-08-noise")
    page.reload()  # a second draw would double the loss: the first is kept
    page.wait_for_selector("#shown:not([hidden])")
    assert (page.inner_text("#body"), page.inner_text("#noisy")) == (body, noisy)
    assert page.locator("#plain-row").is_hidden()
    page.context.route("**/p/delivery", lambda route: route.abort())
    page.click("#send")
    page.wait_for_selector("text=could not be reached")
    page.context.unroute("**/p/delivery")
    page.click("#send")
    page.wait_for_selector("text=Thank you, it has arrived")
    hers.complaints[:] = [said for said in hers.complaints if "ERR_FAILED" not in said]  # the one we caused
    sent = [content for method, address, content in hers.asked if method == "PUT" and address.endswith("/p/delivery")]
    assert {content.partition("\n")[0] for content in sent} == {body}, "every attempt sends what was shown"
    assert nothing_of(RAW, hers)
    kept = page.evaluate("() => JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie")
    assert "3456789" not in kept


def nothing_of(raw: str, hers: Watched) -> bool:
    """Whether a value is in no request of a browser: not in an address, a header or a body, however it is written."""
    digits = raw.replace(".", "")
    return all(
        digits not in "".join(letter for letter in address + content if letter.isalnum())
        for _, address, content in hers.asked
    )
