"""What a participant reads before she sells anything, as it is put before fresh readers: two campaigns, two languages.

``HUSHBID_SCREENSHOTS=folder pytest tests/server/pages/test_readers.py`` keeps the pictures ``reader-CAMPAIGN-LANGUAGE-
PAGE-WINDOW.png``, drawn without scripts. Ask somebody who has seen nothing else: what is bought, what is paid, what is
the risk, what happens if one asks for more?
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from hushbid.priors import Uniform
from hushbid.questions import Choice, Number, YesNo
from tests.server.http.support import Live
from tests.server.pages.support import DESK, PHONE, PICTURES, Watched, keep, too_wide, watched
from tests.server.pages.test_everybody import come_in, examine
from tests.server.support import Play, opened

CONSENT = {
    "controller": "Institute for Sleep Research, Example Street 1, 12345 Example Town",
    "contact": "Data protection officer, privacy@example.org, +49 30 1234567",
    "purpose": "A study of how shift work changes sleep, paid for by the example foundation. Ethics vote 2026-17.",
    "storage": "Proofs of payment are kept for ten years, as the law asks.",
    "texts": {
        "en": "We ask night nurses at four hospitals how they sleep.\nThe averages appear in a public bid.",
        "de": "Wir fragen Nachtpflegekräfte an vier Krankenhäusern, wie sie schlafen.\n"
        "Die Durchschnitte stehen in einem öffentlichen Bericht.",
    },
}
QUESTIONS = (
    Number(name="How many hours did you sleep last night?", bounds=(0, 14), unit="hours"),
    YesNo(name="Did you take anything in order to sleep?"),
    Choice(name="How rested do you feel?", answers=("rested", "so-so", "tired")),
)
BID_BY, DELIVER_BY = datetime(2026, 12, 1, 18, tzinfo=UTC), datetime(2026, 12, 15, 18, tzinfo=UTC)
WINDOWS: dict[str, Any] = {"context": DESK, "phone": PHONE}


@pytest.fixture(scope="module")
def campaigns(shared: Live) -> dict[str, Play]:
    survey = opened(
        shared.service,
        30,
        title="Sleep after night shifts",
        question="How do you sleep after a night shift?",
        questions=QUESTIONS,
        bounds=None,
        consent=CONSENT,
        observer="your employer",
        statement="Did you sleep less than 6 hours?",
        participation_fee=2,
        bid_by=BID_BY,
        deliver_by=DELIVER_BY,
        minimum_people=5,
        prior=Uniform(1, 4),
        budget=100,
        max_privacy_loss=2.0,
    )
    local = opened(
        shared.service,
        30,
        title="The way to work",
        question="How many minutes is your way to work?",
        unit="minutes",
        bounds=(0, 120),
        setting="local",
        deliver_by=DELIVER_BY,
        minimum_people=5,
        prior=Uniform(1, 4),
        buyer_weight=0.02,
    )
    return {"survey": survey, "local": local}


@pytest.fixture(scope="module")
def reader(browser: Browser, shared: Live) -> Iterator[Watched]:
    with watched(browser, shared.url) as context:
        yield context
        assert context.complaints == []


@pytest.mark.parametrize("name", ["survey", "local"])
def test_what_is_agreed_to_and_the_choice_are_for_everybody(
    reader: Watched, campaigns: dict[str, Play], name: str
) -> None:
    page, play = reader.page(), campaigns[name]
    come_in(page, reader.url, play.link(0))
    examine(page, f"consent-{name}")
    page.check("#agreed")
    page.click("main form button")
    page.fill("#price", "2.5")
    page.wait_for_selector("#means:not([hidden])")
    for place in page.locator("details:visible > summary").all():
        place.click()
    examine(page, f"choice-{name}")
    page.goto(f"{reader.url}/p/agreement")
    examine(page, f"agreement-{name}")
    page.close()


def shown(page: Page, name: str) -> None:
    keep(page, name)
    assert too_wide(page) == 0


if PICTURES:  # nothing is claimed here that is not claimed above, so without a folder there is nothing to skip

    @pytest.mark.parametrize("language", ["en", "de"])
    @pytest.mark.parametrize("name", ["survey", "local"])
    def test_pictures_for_fresh_readers(
        browser: Browser, shared: Live, campaigns: dict[str, Play], name: str, language: str
    ) -> None:
        for row, (window, size) in enumerate(WINDOWS.items()):
            options = {"viewport": size, "locale": language, "java_script_enabled": False}
            with watched(browser, shared.url, **options) as hers:
                page = hers.page()
                page.goto(f"{shared.url}/p/other")
                page.fill("#link", campaigns[name].link(2 + row + 2 * ["en", "de"].index(language)))
                page.click("#enter button")
                shown(page, f"reader-{name}-{language}-1-consent-{window}")
                page.check("#agreed")
                page.click("main form button")
                shown(page, f"reader-{name}-{language}-2-choice-{window}")
                page.fill("#price", "2,5" if language == "de" else "2.5")
                page.click(".without-script button")
                shown(page, f"reader-{name}-{language}-3-price-{window}")

    def test_pictures_for_the_documentation(browser: Browser, shared: Live, campaigns: dict[str, Play]) -> None:
        """``pages-consent.png`` and ``pages-choice.png`` of docs/assets."""
        with watched(browser, shared.url, viewport={"width": 664, "height": 900}) as hers:
            page = hers.page()
            come_in(page, shared.url, campaigns["survey"].link(20))
            clipped(page, "pages-consent", "main h1", "main section:nth-of-type(2)")
            page.check("#agreed")
            page.click("main form button")
            page.fill("#price", "2.50")
            page.wait_for_selector("#means:not([hidden])")
            clipped(page, "pages-choice", "main h1", "#means")

    def clipped(page: Page, name: str, first: str, last: str) -> None:
        """Keep the part of a page from one element to the end of another."""
        page.evaluate("scrollTo(0, 0)")
        top, end = (page.locator(one).first.bounding_box() for one in (first, last))
        assert top is not None
        assert end is not None
        start = top["y"] - 16
        part = {"x": 0, "y": start, "width": 664, "height": end["y"] + end["height"] + 16 - start}
        page.screenshot(path=Path(str(PICTURES)) / f"{name}.png", full_page=True, clip=part)  # type: ignore[arg-type]
