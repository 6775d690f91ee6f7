"""The report in a real browser: offline, without complaint, for everybody; on a desk, a phone, at night, on paper.

HUSHBID_SCREENSHOTS=folder keeps pictures for people to look at.
"""

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page

from hushbid import LogNormal, Market, release
from hushbid.audit import check_privacy, check_questions
from hushbid.mechanism.releasing import plan_of
from hushbid.report import AuditLine, build_report, prior_picture, write_report

PICTURES = os.environ.get("HUSHBID_SCREENSHOTS")
SCREENS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1180, "height": 900}},
    "phone": {"viewport": {"width": 360, "height": 780}},
    "night": {"viewport": {"width": 1180, "height": 900}, "color_scheme": "dark"},
}
VIEWS = [
    *(("good.html", screen) for screen in SCREENS),
    *(("failed.html", screen) for screen in ("desk", "night")),
    ("few.html", "desk"),
    *(("prior.svg", screen) for screen in ("desk", "night")),
]
AXE = Axe().axe_script
FINDINGS = {"resultTypes": ["violations"], "preload": False}  # no rule looks into style sheets or recordings
AT_NIGHT = {**FINDINGS, "runOnly": {"type": "rule", "values": ["color-contrast"]}}
"""At night a page is the same but for its colours."""

FAILED = AuditLine(
    title="A planted fault",
    verdict="failed",
    finding="Found.",
    samples="10",
    power=0.9,
    power_against="it",
    bar=(0.9, 0.5),
)
WEAK = AuditLine(title="A weak test", verdict="weak", finding="Nothing.", samples="10", power=0.1, power_against="it")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that went well, one with a failed audit, one with few people, and the picture of a prior."""
    folder, rng = tmp_path_factory.mktemp("report"), np.random.default_rng(1)
    prior = LogNormal(0.0, 0.5)
    market = Market(prior=prior, bounds=(0.0, 24.0), user_weight=0.0, buyer_weight=10.0, max_privacy_loss=0.4)
    outcome = market.acquire(prior.sample(400, rng=rng))
    estimate = release(outcome, np.clip(rng.normal(7.5, 1.5, size=400), 0, 24), question="sleep")
    plan = plan_of(outcome)
    audits = [
        check_privacy(plan, user=int(np.argmax(outcome.privacy_loss)), samples=2000, confidence=1 - 1e-7),
        check_questions(plan, rng=rng, repetitions=200)[0],
    ]
    settings: dict[str, Any] = {
        "title": "How long people sleep",
        "question": "the mean length of a night's sleep",
        "unit": "hours",
        "currency": "EUR",
        "groups": rng.choice(["Under 30", "30 to 59", "60 and over"], 400, p=[0.3, 0.5, 0.2]),
        "record_hash": "5c" * 32,
        "date": "2026-03-15",
    }
    write_report(folder / "good.html", build_report(outcome, estimate, audits=audits, **settings))
    settings["notices"] = ["A fault was planted in this build."]
    write_report(folder / "failed.html", build_report(outcome, estimate, audits=[FAILED, WEAK], **settings))
    write_report(folder / "few.html", build_report(market.acquire(prior.sample(12, rng=rng))))
    sample = prior.sample(150, rng=rng)
    (folder / "prior.svg").write_text(prior_picture(sample, {"lognormal": prior, "wider": LogNormal(0.1, 0.7)}))
    return folder


class Visitor:
    """Somebody offline who opens one page after the other, and everything the last one said and asked for."""

    def __init__(self, context: BrowserContext, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda problem: self.said.append(str(problem)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def opens(self, name: str, *, viewport: Any, color_scheme: Any = "light") -> Page:
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(color_scheme=color_scheme, media="screen")
        self.said.clear()
        self.asked.clear()
        self.page.goto((self.folder / name).as_uri())
        return self.page


@pytest.fixture(scope="module")
def visitor(browser: Browser, folder: Path) -> Iterator[Visitor]:
    with browser.new_context(offline=True) as context:
        yield Visitor(context, folder)


@pytest.fixture(scope="module")
def examiner(browser: Browser, folder: Path) -> Iterator[Visitor]:
    with browser.new_context(offline=True, bypass_csp=True) as context:  # axe is a script, which the policy forbids
        yield Visitor(context, folder)


def keep(page: Page, name: str) -> None:
    if PICTURES:
        whole = page.evaluate("document.documentElement.tagName") == "HTML"
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=whole)


@pytest.mark.parametrize(("name", "screen"), VIEWS)
def test_a_page_opens_offline_asks_for_nothing_and_says_nothing(visitor: Visitor, name: str, screen: str) -> None:
    page = visitor.opens(name, **SCREENS[screen])
    keep(page, f"{Path(name).stem}-{screen}")
    assert visitor.asked == [(visitor.folder / name).as_uri()]
    assert visitor.said == []


@pytest.mark.parametrize(("name", "screen"), [view for view in VIEWS if view[0] != "prior.svg"])
def test_a_page_is_accessible(examiner: Visitor, name: str, screen: str) -> None:
    page = examiner.opens(name, **SCREENS[screen])
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.evaluate(AXE)
    options = AT_NIGHT if screen == "night" else FINDINGS
    found = page.evaluate("options => axe.run(document, options).then(found => found.violations)", options)
    assert [(one["id"], one["impact"], one["nodes"][0]["html"][:120]) for one in found] == []


@pytest.mark.parametrize("name", ["good.html", "failed.html", "few.html"])
def test_nothing_is_wider_than_a_phone(visitor: Visitor, name: str) -> None:
    page = visitor.opens(name, **SCREENS["phone"])
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    hidden = page.evaluate(
        "[...document.querySelectorAll('svg.wide')].every(e => getComputedStyle(e).display === 'none')"
    )
    assert hidden


@pytest.mark.parametrize("screen", SCREENS)
def test_no_label_of_a_chart_is_cut_off_or_covers_another(visitor: Visitor, screen: str) -> None:
    page = visitor.opens("good.html", **SCREENS[screen])
    problems = page.evaluate(
        """() => {
          const out = [];
          document.querySelectorAll('details').forEach(one => one.open = true);
          for (const chart of document.querySelectorAll('svg.chart')) {
            const frame = chart.getBoundingClientRect();
            if (!frame.width) continue;
            const labels = [...chart.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
            for (const [text, box] of labels)
              if (box.left < frame.left - 12 || box.right > frame.right + 12) out.push('cut off: ' + text);
            labels.forEach(([a, p], i) => labels.slice(i + 1).forEach(([b, q]) => {
              const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
              const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
              if (across > 2 && down > 3) out.push('overlap: ' + a + ' / ' + b);
            }));
          }
          return out;
        }"""
    )
    assert problems == []


def test_on_paper_it_is_light_and_every_table_is_open(visitor: Visitor) -> None:
    page = visitor.opens("good.html", viewport={"width": 680, "height": 900}, color_scheme="dark")
    page.emulate_media(media="print")
    keep(page, "good-print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    heights = page.evaluate(
        "[...document.querySelectorAll('details table')].map(e => e.getBoundingClientRect().height)"
    )
    assert heights
    assert min(heights) > 20
    assert page.evaluate("document.documentElement.scrollWidth") <= 680


def test_a_failed_audit_cannot_be_overlooked(visitor: Visitor) -> None:
    page = visitor.opens("failed.html", **SCREENS["desk"])
    alarm = page.get_by_role("alert")
    assert "An audit failed" in alarm.inner_text()
    box = alarm.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < SCREENS["desk"]["viewport"]["height"]
    assert page.locator(".audit.failed .verdict").inner_text().endswith("Failed")


def test_the_page_works_without_scripts(browser: Browser, folder: Path) -> None:
    context = browser.new_context(java_script_enabled=False, **SCREENS["desk"])
    page = context.new_page()
    page.goto((folder / "good.html").as_uri())
    assert page.locator(".results .range svg").first.is_visible()
    assert not page.locator("#audits").is_visible()
    page.locator("summary", has_text="Audits").click()
    assert page.locator("#audits").is_visible()
    page.get_by_role("link", name="computed again").click()  # a link opens what it leads to
    assert page.locator("#verify").is_visible()
    context.close()


def test_every_printed_page_names_the_record(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.opens("good.html", **SCREENS["desk"])
    page.emulate_media(media="print")
    pages = printed(page.pdf(path=tmp_path / "report.pdf", format="A4", prefer_css_page_size=True))
    # the answer is on the first page, and the appendix begins on the next
    assert ["hours" in pages[0], "Bought from" in pages[0], "Appendix" in pages[0], "Appendix" in pages[1]] == [
        True,
        False,
        False,
        True,
    ]
    assert [place for place, text in enumerate(pages, 1) if f"Record {'5c' * 32}" not in text] == []
    assert visitor.said == []


def printed(content: bytes) -> list[str]:
    """The texts of a document's pages, in every font's reading: a page shows what one of them reads."""
    found = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, flags=re.DOTALL)
    # a checksum may end in what looks like the end of a line
    streams = [zlib.decompressobj().decompress(one) for one in found if one[:1] == b"x"]
    fonts = [_letters(one) for one in streams if b"beginbfchar" in one or b"beginbfrange" in one]
    pages = []
    for one in streams:
        glyphs = [int(code, 16) for text in re.findall(rb"<([0-9A-F]+)> Tj", one) for code in re.findall(b"....", text)]
        if glyphs:
            pages.append("\n".join("".join(font.get(glyph, "") for glyph in glyphs) for font in fonts))
    assert len(pages) == len(re.findall(rb"/Type /Page\b", content))
    return pages


def _letters(stream: bytes) -> dict[int, str]:
    """Which letter a glyph of a font stands for."""
    letters = {}
    for block in re.findall(rb"beginbfchar(.*?)endbfchar", stream, flags=re.DOTALL):
        for glyph, letter in re.findall(rb"<(\w+)> <(\w+)>", block):
            letters[int(glyph, 16)] = bytes.fromhex(letter.decode()).decode("utf-16-be")
    for block in re.findall(rb"beginbfrange(.*?)endbfrange", stream, flags=re.DOTALL):
        for first, last, letter in re.findall(rb"<(\w+)> <(\w+)> <(\w+)>", block):
            for glyph in range(int(first, 16), int(last, 16) + 1):
                letters[glyph] = chr(int(letter, 16) + glyph - int(first, 16))
    return letters
