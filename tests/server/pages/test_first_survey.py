"""A buyer's first survey, from an empty folder to everybody's payment, in a real browser.

Eight questions, a budget, 30 people and one visit. Five of the people are played by hand: on a context by day and by
night, without scripts, on a phone in German, and one who withdraws in the end; bots are the others. Everything that
can be taken away is, and `hushbid verify` and a look into the files say whether it is what the pages said.

It is long, so it runs on PostgreSQL alone, and a local campaign on SQLite (`test_whole_campaigns`); HUSHBID_STORES=all
runs it on both. HUSHBID_SCREENSHOTS=folder keeps pictures.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from openpyxl import load_workbook
from playwright.sync_api import Browser, Page, expect

from hushbid.cli import main
from hushbid.client import MessageMemory, ParticipantClient
from hushbid.priors import Prior
from hushbid.server.bots.bot import people
from hushbid.server.pages.wording import languages
from tests.extent import ALL_STORES
from tests.server.http.support import Live, live
from tests.server.pages.support import PHONE, Watched, keep, too_wide, watched
from tests.server.pages.test_whole_campaigns import PATIENCE, Analyst
from tests.server.support import Installation

QUESTIONS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("number", "How many hours did you sleep last night?", {"low": "0", "high": "12", "unit": "hours"}),
    ("number", "How many hours did you work last week?", {"low": "0", "high": "80", "unit": "hours"}),
    ("number", "How many minutes was your way to work?", {"low": "0", "high": "120", "unit": "minutes"}),
    ("number", "How many cups of coffee did you have today?", {"low": "0", "high": "10"}),
    ("yes_no", "Do you smoke?", {}),
    ("yes_no", "Did you call in sick last year?", {}),
    ("choice", "Which shift do you work?", {"answers": "days\nnights\nboth"}),
    ("choice", "How do you get to work?", {"answers": "on foot\nby bicycle\nby bus\nby car"}),
)
BY_HAND = ("ann", "bob", "cem", "doro", "eva")
BOTS = tuple(f"bot-{number:02}" for number in range(25))
DECLINES, NEVER_COME = BOTS[22:23], BOTS[23:]
ANSWERS = ("7.3456789", "38", "25", "3", "no", "yes", "nights", "by bicycle")
GERMAN = ("6,25", "40", "31,5", "2", "yes", "no", "days", "by bus")
HANDLE = "ann.payme@example.org"

STORES = ("postgresql", "sqlite") if ALL_STORES else ("postgresql",)


@pytest.fixture(params=STORES)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Live]:
    """A server on a folder and a database that hold nothing."""
    url = None
    if request.param == "postgresql":
        postgres = request.getfixturevalue("postgres")
        url = postgres.url(name := postgres.new())
    with Installation(tmp_path / "home", url).start() as service, live(service) as site:
        yield site
    if url:
        postgres.drop(name)


@dataclass
class Guest:
    """Somebody who takes part by hand, in her own browser and language."""

    name: str
    hers: Watched
    link: str
    language: str = "en"
    scripts: bool = True
    page: Page = field(init=False)

    def __post_init__(self) -> None:
        self.page = self.hers.page()

    def says(self, text: str) -> str:
        texts = languages()[self.language]
        return texts.coded(text) if text in texts else texts(text)

    def press(self, text: str) -> None:
        self.page.locator("main").get_by_role("button", name=self.says(text), exact=True).click()

    def look(self, name: str) -> None:
        keep(self.page, f"survey-{self.name}-{name}")
        assert too_wide(self.page) == 0

    def come_in(self) -> None:
        if self.scripts:
            self.page.goto(self.link)
        else:
            self.page.goto(f"{self.hers.url}/p/other")
            self.page.fill("#link", self.link)
            self.press("Come in")
        self.page.wait_for_selector("#agreed")
        self.look("1-consent")
        self.page.check("#agreed")
        self.press("Agree and continue")
        self.page.wait_for_selector("#choice")

    def give(self, price: str, answers: tuple[str, ...] = ANSWERS, limit: str = "") -> None:
        self.come_in()
        self.page.fill("#price", price)
        if limit:
            self.page.fill("#limit", limit)
        if self.scripts:
            self.page.wait_for_selector("#means:not([hidden])")
        else:
            self.press("Show me what this means")
            self.page.wait_for_selector("#means")
        self.look("2-choice")
        self.press("This is my price")
        self.page.wait_for_selector("#answer-7")
        for place, ((kind, _, _), answer) in enumerate(zip(QUESTIONS, answers, strict=True)):
            at = f"#answer-{place}"
            self.page.fill(at, answer) if kind == "number" else self.page.select_option(at, answer)
        self.look("3-answers")
        self.press("Give price and answers")
        self.page.wait_for_selector(f"text={self.says('visit.stage.bid.title')}")
        self.look("4-standing")

    def say_where(self, handle: str) -> None:
        self.page.locator("#payout a.button").click()
        self.page.fill("#handle", "nowhere")
        self.press("Store it")
        self.page.wait_for_selector("#handle-problem")
        self.page.fill("#handle", handle)
        self.look("5-payout")
        self.press("Store it")
        self.page.wait_for_selector(f"text={self.says('Change or forget it')}")  # back where she stands
        assert handle not in self.page.content(), "only its end is shown"

    def withdraw(self) -> None:
        self.page.get_by_role("link", name=self.says("Withdraw")).click()
        erased = languages()[self.language].coded("visit.withdraw")
        assert erased in self.page.locator("main").inner_text()
        self.press("Yes, withdraw")
        self.page.wait_for_selector(f"text={self.says('stage.withdrawn.title')}")

    def end(self, text: str) -> None:
        """Come back although she need not, and read how it ended."""
        self.page.goto(f"{self.hers.url}/p")
        assert self.page.locator("h1").inner_text() == self.says(text)
        self.look("6-end")

    def receipt(self) -> Path:
        with self.page.expect_download() as saving:
            self.page.get_by_role("link", name=self.says("Download my receipt")).click()
        return saving.value.path()


def draft(analyst: Analyst) -> None:
    page = analyst.page
    analyst.follow("Create the first one")
    page.fill("#title", "Nurses and their shifts")
    for place, (kind, _, _) in enumerate(QUESTIONS[1:], start=1):
        page.click(f"button[value='question-add:{kind}']")
        page.wait_for_selector(f"#q-{place}-name")
    for place, (_, name, more) in enumerate(QUESTIONS):
        page.fill(f"#q-{place}-name", name)
        for part, text in more.items():
            page.fill(f"#q-{place}-{part}", text)
    page.fill("#question", "How nurses sleep, work and travel")
    page.fill("#people", "30")
    assert page.is_checked("#single_visit")
    assert page.is_checked("#goal-spend")
    page.fill("#budget", "300")
    page.check("#prices-text")  # decided about and verified at once
    page.fill("#prior", "uniform:1,6")
    page.fill("#description", "The works council wants to know whether the new shift plan lets people rest.")
    page.click("text=For an ethics board: who is responsible, and a text of your own")
    page.fill("#consent_controller", "St. Anna Hospital, Main Street 1")
    page.fill("#consent_contact", "council@example.org")
    page.fill("#consent_purpose", "To judge the shift plan.")
    page.fill("#consent_text_en", "The works council asks whether the new shift plan lets people rest.")
    page.fill("#consent_text_de", "Der Betriebsrat fragt, ob der neue Schichtplan Erholung zulässt.")
    page.click("text=An example of what somebody might want to find out")
    page.fill("#observer", "your employer")
    page.fill("#statement", "Did you sleep less than 6 hours?")
    page.fill("#participation_fee", "1.50")
    page.select_option("#payout", "email")
    expect(page.locator("#preview-words")).to_contain_text("EUR", timeout=PATIENCE)
    keep(page, "survey-staff-1-draft")
    analyst.press("Save the draft")
    page.wait_for_selector(".state.draft")
    keep(page, "survey-staff-2-drafted")
    analyst.campaign = page.url.rpartition("/")[2]


def invite(analyst: Analyst) -> dict[str, str]:
    analyst.follow("Invite people")
    analyst.page.fill("#people", "\n".join(["id", *BY_HAND, *BOTS]))
    analyst.press("Make links")
    with analyst.page.expect_download() as downloading:
        analyst.press("Download all (CSV)")
    keep(analyst.page, "survey-staff-3-links")
    return {row["label"]: row["link"] for row in rows_of(downloading.value.path())}


def bots_give(site: Live, analyst: Analyst, links: dict[str, str]) -> None:
    """The others, over the API."""
    memory = MessageMemory()
    settings = site.service.campaign(site.service.users()[0], analyst.campaign).settings
    assert isinstance(settings.prior, Prior)
    cast = people("truthful", [settings.prior] * len(BOTS), settings.asked, rng=np.random.default_rng(5))
    for name, person in zip(BOTS, cast, strict=True):
        if name in NEVER_COME:
            continue
        with ParticipantClient.from_link(links[name], keeper=memory) as bot:
            if name in DECLINES:
                bot.decline()
            else:
                bot.agree(bot.consent()["document"])
                bot.bid(person.bid, value=person.value)


def saved(analyst: Analyst, folder: Path, *paths: str) -> dict[str, Path]:
    """Everything that the links of a page let her take away; exactly these are there."""
    links = analyst.page.locator("main a[download]")
    found = {}
    for place in range(links.count()):
        with analyst.page.expect_download() as downloading:
            links.nth(place).click()
        name = downloading.value.suggested_filename.removeprefix(f"{analyst.campaign}-")
        found[name] = folder / name
        downloading.value.save_as(found[name])
    assert set(found) == set(paths)
    return found


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))


def workbook(path: Path) -> list[dict[str, Any]]:
    names, *rows = load_workbook(path).active.iter_rows(values_only=True)
    return [dict(zip(map(str, names), row, strict=True)) for row in rows]


def verified(*arguments: object) -> str:
    done = CliRunner().invoke(main, ["verify", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def come(browser: Browser, site: Live, links: dict[str, str], stack: ExitStack) -> list[Guest]:
    """Five people with browsers of their own, which stay open to the end."""

    def guest(name: str, language: str = "en", *, scripts: bool = True, **options: Any) -> Guest:
        hers = stack.enter_context(watched(browser, site.url, locale=language, java_script_enabled=scripts, **options))
        return Guest(name, hers, links[name], language, scripts)

    ann, bob = guest("ann"), guest("bob", scripts=False)
    cem, doro, eva = guest("cem", "de", viewport=PHONE), guest("doro", color_scheme="dark"), guest("eva")
    ann.give("2.50")
    ann.say_where(HANDLE)
    bob.give("3")
    cem.give("2,75", GERMAN)
    doro.give("4", limit="60")
    eva.give("3.25")
    eva.withdraw()
    return [ann, bob, cem, doro, eva]


def pay(analyst: Analyst) -> None:
    """Mark ann, then everybody; and take bob's mark back."""
    page = analyst.page
    analyst.tab("Payments")
    page.check("input[value=ann]")
    analyst.press("Mark the chosen as paid …")
    keep(page, "survey-staff-7-pay")
    analyst.press("Yes, they have been paid")
    expect(page.locator(".paid-mark")).to_have_count(1, timeout=PATIENCE)
    analyst.press("Mark everybody as paid …")
    analyst.press("Yes, they have been paid")
    expect(page.locator("button[value=everybody]")).to_have_count(0, timeout=PATIENCE)
    marks = page.locator(".paid-mark").count()
    page.check("input[value=bob]")
    analyst.press("Take the marks of the chosen back …")
    keep(page, "survey-staff-8-unpay")
    analyst.press("Yes, they were not paid")
    expect(page.locator(".paid-mark")).to_have_count(marks - 1, timeout=PATIENCE)
    keep(page, "survey-staff-9-payments")


def files_hold(record: Path, log: Path, receipts: list[Path], site: Live, campaign: str) -> None:
    """What `hushbid verify` says, each file by itself and against the others."""
    root = site.service.public(campaign).root
    verified(record, "--log", log)
    verified(log, "--root", root)
    fingerprint = site.service.keys().newest.fingerprint
    for receipt in receipts:
        verified(receipt, "--fingerprint", fingerprint, "--root", root, "--log", log)


def nothing_raw(folder: Path) -> None:
    """Nobody's answers are in anything that was taken away."""
    for path in folder.iterdir():
        assert b"7.3456789" not in path.read_bytes(), path.name
        if path.suffix == ".xlsx":
            assert "7.3456789" not in str(workbook(path))


def take_payments(analyst: Analyst, folder: Path, *awaited: str) -> dict[str, dict[str, str]]:
    """The payments' page in both formats, which say the same; and who is awaited for what."""
    analyst.tab("Payments")
    names = [f"{name}.{ending}" for name in ("payments", *awaited) for ending in ("csv", "xlsx")]
    found = saved(analyst, folder, *names)
    rows, same = rows_of(found["payments.csv"]), workbook(found["payments.xlsx"])
    assert [(row["label"], row["reference"]) for row in rows] == [(row["label"], row["reference"]) for row in same]
    assert [float(row["due"]) for row in rows] == [row["due"] for row in same]
    return {row["label"]: row for row in rows}


def paid_for(analyst: Analyst, site: Live, folder: Path) -> None:
    """Pay people, and look at the files before and after."""
    due = take_payments(analyst, folder, "awaited-payment", "awaited-payout")
    assert due["ann"]["email"] == HANDLE
    assert {row["email"] for name, row in due.items() if name != "ann"} == {""}
    assert {row["label"] for row in rows_of(folder / "awaited-payout.csv")} == due.keys() - {"ann"}
    assert {row["label"] for row in rows_of(folder / "awaited-payment.csv")} == due.keys()
    assert due.keys() == {*BY_HAND, *BOTS} - {*DECLINES, *NEVER_COME, "eva"}
    assert {row["fee"] for row in due.values()} == {"1.50"}
    pay(analyst)
    paid = take_payments(analyst, folder, "awaited-payment", "awaited-payout")
    assert [name for name, row in paid.items() if Decimal(row["due"])] == ["bob"]
    assert {row["email"] for row in paid.values()} == {""}, "nobody to whom something is due said it"
    assert sum(Decimal(row["payment"]) for row in paid.values()) <= 300 + Decimal("0.01") * len(paid)
    for name, row in paid.items():
        assert Decimal(row["paid"]) + Decimal(row["due"]) == Decimal(due[name]["due"])
    account = site.service.account(site.service.users()[0], analyst.campaign)
    page = analyst.page.locator("table.account").inner_text()
    for cents, column in ((account.fees, "fee"), (account.paid, "paid"), (account.due, "due")):
        total = sum(Decimal(row[column]) for row in paid.values())
        assert total == Decimal(cents) / 100
        assert f"{total:,}" in page


def read_files(taken: dict[str, Path]) -> None:
    """Look into what was taken away."""
    log = [json.loads(line) for line in taken["log.jsonl"].read_text().splitlines()]
    kinds = Counter(one["kind"] for one in log)
    assert (kinds["agreed"], kinds["declined"], kinds["withdrawn"]) == (27, 1, 1)
    assert {"drafted", "opened", "bid", "allocated", "released", "paid", "unpaid"} <= kinds.keys()
    bid = taken["report.html"].read_text()
    assert all(name in bid for _, name, _ in QUESTIONS)
    assert json.loads(taken["record.json"].read_text())["hash"] in bid
    agreed = {row["label"]: row for row in rows_of(taken["agreements.csv"])}
    assert agreed.keys() == {*BY_HAND, *BOTS} - {*DECLINES, *NEVER_COME}
    assert {name for name, row in agreed.items() if row["language"] == "de"} == {"cem"}
    texts = taken["agreements.json"].read_text()
    assert "council@example.org" in texts
    assert "ob der neue Schichtplan Erholung" in texts
    assert HANDLE not in "".join(path.read_text() for path in taken.values() if path.suffix != ".xlsx")


def test_a_first_survey_goes_from_an_empty_folder_to_payments_that_add_up(
    browser: Browser, empty: Live, tmp_path: Path
) -> None:
    site = empty
    (files := tmp_path / "files").mkdir()
    with ExitStack() as stack:
        staff = stack.enter_context(watched(browser, site.url))
        analyst = Analyst(staff.page(), site.url)
        analyst.log_in()
        draft(analyst)
        links = invite(analyst)
        analyst.step("Open …", "Open the campaign", "bidding")
        guests = come(browser, site, links, stack)
        bots_give(site, analyst, links)
        analyst.tab("People")
        keep(analyst.page, "survey-staff-4-people")
        awaited = saved(analyst, files, "awaited-bid.csv", "awaited-bid.xlsx")
        assert [row["label"] for row in rows_of(awaited["awaited-bid.csv"])] == list(NEVER_COME)
        assert [row["label"] for row in workbook(awaited["awaited-bid.xlsx"])] == list(NEVER_COME)
        analyst.step("Close and decide …", "Close and decide", "delivering")
        keep(analyst.page, "survey-staff-5-decided")
        analyst.step("Release …", "Release it", "released")
        keep(analyst.page, "survey-staff-6-released")
        assert analyst.page.locator("main").inner_text().count("±") >= len(QUESTIONS)
        paid_for(analyst, site, files)
        analyst.page.goto(f"{site.url}/campaigns/{analyst.campaign}")
        names = ("report.html", "record.json", "log.jsonl", "agreements.csv", "agreements.json")
        taken = saved(analyst, files, *names, "payments.csv", "payments.xlsx")
        read_files(taken)
        for guest in guests:
            guest.end("stage.withdrawn.title" if guest.name == "eva" else "stage.done.title")
        receipts = [guest.receipt() for guest in guests]
        files_hold(taken["record.json"], taken["log.jsonl"], receipts, site, analyst.campaign)
        nothing_raw(files)
        assert [one.hers.complaints for one in guests] == [[]] * len(guests)
        assert staff.complaints == []
