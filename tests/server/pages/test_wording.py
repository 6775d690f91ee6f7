"""What the pages say agrees with what is computed, in every language; and a script counts as the server does."""

import math
import re
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from hushbid.mechanism import Market
from hushbid.priors import LogNormal, Uniform
from hushbid.server.model.views import MenuView
from hushbid.server.pages import choice
from hushbid.server.pages.wording import CODES, FormError, Writing, languages, negotiated, sureness
from hushbid.server.service.forecast import menus
from tests.extent import each
from tests.server.http.support import Live
from tests.server.pages.support import Visitor, watched, words
from tests.server.support import QUICK, opened, settings

PAGES = Path(__file__).parents[3] / "src" / "hushbid" / "server" / "pages"
SOURCES = [path.read_text(encoding="utf-8") for path in [*PAGES.rglob("*.html"), *PAGES.glob("*.py")]]


def menu(n: int = 12) -> MenuView:
    market = Market(prior=Uniform(1, 4), bounds=(0, 10), buyer_weight=8.0, user_weight=0.0, max_privacy_loss=1.0)
    found = market.menu(n, rng=np.random.default_rng(1), repetitions=10)
    return MenuView(
        bids=tuple(map(float, found.bids)),
        usual=len(found.bids),
        privacy_loss=tuple(map(float, found.privacy_loss)),
        payment=tuple(map(float, found.payment)),
        chance=tuple(map(float, found.chance)),
        repetitions=10,
    )


# -- texts -------------------------------------------------------------------------------------------------------------


QUOTED = re.compile(r"""["']([a-z_]+(?:\.[\w-]+)+)["']""")
BEGINNING = re.compile(r"""["']([a-z_]+(?:\.[\w-]+)*[._])["']\s*~|f["']([a-z_]+(?:\.[\w-]+)*[._])\{""")
FILES = (".html", ".js", ".css", ".svg", ".csv", ".json")


def test_every_code_is_used_and_every_code_used_has_its_sentence() -> None:
    families = {code.partition(".")[0] for code in CODES}
    quoted = {name for source in SOURCES for name in QUOTED.findall(source) if not name.endswith(FILES)}
    beginnings = {one or other for source in SOURCES for one, other in BEGINNING.findall(source)}
    used = {name for name in quoted - beginnings if name.partition(".")[0] in families and not name.endswith("_")}
    assert used <= CODES.keys()
    assert {name for name in CODES.keys() - quoted if not name.startswith(tuple(beginnings))} == set()


@each(
    ("header", "chosen", "expected"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", None, "de"),
        ("fr,en;q=0.5,de;q=0.7", None, "de"),
        ("fr", None, "en"),
        ("", None, "en"),
        ("de", "en", "en"),
        ("en", "xx", "en"),
        ("de;q=0", None, "en"),
        ("de;q=high,;;,=", None, "en"),
    ],
)
def test_the_language_is_the_visitors(header: str, chosen: str | None, expected: str) -> None:
    assert negotiated(header, chosen=chosen).language == expected


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_one_unit_of_privacy_loss_is_73_per_cent() -> None:
    write = Writing(languages()["en"])
    assert sureness(1.0) == pytest.approx(math.e / (1 + math.e))
    assert write.sure(1.0) == "73.2\u00a0%", "a bound is rounded up"
    assert [write.sure(loss) for loss in (0.0, 0.5, 2.0, 0.01, 5.0, 20.0)] == [
        *("50\u00a0%", "62.3\u00a0%", "88.1\u00a0%", "50.3\u00a0%", "99.4\u00a0%", "over 99.9\u00a0%")
    ]


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_hint_of_the_draft_names_the_right_percentages(language: str) -> None:
    told = "1 means: even odds become at most 73.2 %%. 0.5: 62.3 %%. 2: 88.1 %%."
    hint = languages()[language](told).replace("%%", "%")
    claims = re.findall(r"(\d+(?:[.,]\d+)?)(?: means| heißt)?:[^:]*?(\d+(?:[.,]\d+)?) %", hint)
    assert len(claims) == 3
    for loss, percentage in claims:
        told = 100 * sureness(float(loss.replace(",", ".")))
        assert told <= float(percentage.replace(",", ".")) < told + 0.1


@each(
    ("language", "typed", "expected"),
    [
        ("en", "1.5", "1.5"),
        ("en", "1,5", "1.5"),
        ("en", " 1 000.25 ", "1000.25"),
        ("en", ".5", "0.5"),
        ("de", "1,5", "1.5"),
        ("de", "1.5", "1.5"),
        ("de", "0,125", "0.125"),
        ("en", "\u22122", "-2"),
    ],
)
def test_numbers_are_read_as_people_type_them(language: str, typed: str, expected: str) -> None:
    assert Writing(languages()[language]).read(typed) == Decimal(expected)


@each(
    ("language", "typed", "problem"),
    [
        ("en", "1,000", "field.thousands"),
        ("de", "1.000", "field.thousands"),
        ("en", "", "field.missing"),
        ("en", "1e5", "field.number"),
        ("en", "nan", "field.number"),
        ("en", "0x10", "field.number"),
        ("en", "١٢", "field.number"),
        ("en", "1" * 50, "field.number"),
        ("en", "1.2.3", "field.number"),
    ],
)
def test_what_is_not_clearly_a_number_is_not_guessed(language: str, typed: str, problem: str) -> None:
    with pytest.raises(FormError, match=problem):
        Writing(languages()[language]).read(typed)


@each("value", [0.0, 7.5, 0.1, 1e-7, 123456.789, -3.25, 1e15])
@each("language", ["en", "de"])
def test_what_is_written_into_a_field_is_read_back_exactly(language: str, value: float) -> None:
    write = Writing(languages()[language])
    assert float(write.read(write.typed(value))) == value


# -- the choice --------------------------------------------------------------------------------------------------------


def test_a_price_of_a_step_is_a_bid_per_unit() -> None:
    assert choice.bid_of(Decimal("1.50"), 0.5) == 3.0
    assert choice.bid_of(Decimal("1.50"), 1.0) == 1.5


def test_the_truth_leaves_most_whatever_it_is() -> None:
    found = menu()
    for truth in (*found.bids, 1.33, 2.71, 3.5):
        gains = {one.bid: one.gain(truth) for one in choice.around(found, truth, 1.0, largest=4.0).values()}
        assert gains[truth] >= max(gains.values()) - 1e-12
        everywhere = [choice.consequence(found, bid, 1.0, largest=4.0).gain(truth) for bid in found.bids]
        assert gains[truth] >= max(everywhere) - 2e-3 * max(everywhere) - 1e-9


def test_a_payment_covers_the_cost_at_the_price_that_was_named() -> None:
    found = menu()
    for bid in found.bids:
        means = choice.consequence(found, bid, 1.0, largest=4.0)
        assert means.payment >= bid * means.loss - 1e-9


def test_above_the_largest_price_nothing_is_bought() -> None:
    means = choice.consequence(menu(), 4.01, 1.0, largest=4.0)
    assert (means.chance, means.loss, means.payment) == (0.0, 0.0, 0.0)


DEAR = {
    "price": {},
    "local": {"setting": "local", "buyer_weight": 2000.0},
    "accuracy": {"standard_error": 1.5},
    "hard budget": {"hard_budget": 6},
    "strata": {"strata": {"shares": {"a": 0.5, "b": 0.5}}},
}


@pytest.mark.parametrize("kind", DEAR)
def test_no_price_up_to_ten_times_the_highest_shows_a_payment_below_it(kind: str) -> None:
    """The menu of an unbounded prior goes on to where nothing is bought, and between its points it covers the price."""
    settled = settings(prior=LogNormal(0.0, 0.6), **DEAR[kind])
    strata = ["a", "b", "a", "b"] if kind == "strata" else []
    found = next(iter(menus(settled, [None] * 4, QUICK, strata).values()))
    assert len(found.bids) > found.usual
    highest = found.bids[-1]
    walked = [choice.consequence(found, float(z), 1.0, largest=None) for z in np.geomspace(0.05, 10.0 * highest, 2000)]
    for one in walked:
        assert one.payment >= one.bid * one.loss * (1.0 - 1e-9)
    for before, after in pairwise(walked):
        assert after.chance <= before.chance + 1e-12
        assert after.mean_loss <= before.mean_loss * (1.0 + 1e-9)
    if highest < 1e12:
        assert found.chance[-1] == 0.0
        assert (walked[-1].chance, walked[-1].payment) == (0.0, 0.0)


@pytest.mark.parametrize(("most", "step"), [(5.0, 2.0), (1.0, 1.0), (0.99, 0.5), (0.3, 0.2), (0.05, 0.05)])
def test_the_step_that_is_asked_about_can_be_bought(shared: Live, most: float, step: float) -> None:
    play = opened(shared.service, 3, max_privacy_loss=most)
    with Visitor(shared.url) as visitor:
        visitor.come_in(play.fresh(0))
        visitor.agree()
        page = words(visitor.get("/p/choice"))
        assert f"If you take part at most {Writing(languages()['en']).out_of_100(step)} out of 100" in page
        told = words(visitor.send("/p/choice", "/p/choice", price=str(1.5 * step)))
        assert visitor.send("/p/bid", "/p/choice", price=str(1.5 * step)).status_code == 303
    assert "If you ask for" in told
    assert shared.service.participation(play.token(0)).bid == pytest.approx(1.5, rel=1e-12)


def test_the_picture_fills_as_many_dots_as_the_sentence_says(shared: Live) -> None:
    play = opened(shared.service, 3)
    with Visitor(shared.url) as visitor:
        visitor.come_in(play.fresh(0))
        visitor.agree()
        page = visitor.get("/p/choice").text
    without, taking_part = page.split('class="contrast"')[1].split("<figure>")[1:3]
    for picture, counts in ((without, [50, 0, 50]), (taking_part, [50, 24, 26])):
        assert [picture.count(f'class="dot-{kind}"') for kind in ("even", "more", "rest")] == counts
    assert "at most 74 out of 100" in page


@pytest.mark.parametrize("locale", ["en", "de"])
def test_the_script_shows_what_the_server_would(browser: Browser, shared: Live, locale: str) -> None:
    play = opened(shared.service, 4, participation_fee=1.5)
    shown: dict[str, list[str]] = {"script": [], "server": []}
    prices = ["1", "1,37" if locale == "de" else "1.37", "2", "2.5"]
    with watched(browser, shared.url, locale=locale) as with_script:
        page = with_script.page()
        page.goto(f"{shared.url}/p#{play.fresh(0)}")
        page.check("#agreed")
        page.click("main form button")
        page.wait_for_selector("#choice")
        page.click("#truth summary")
        for price in prices:
            page.fill("#price", price)
            shown["script"].append(" ".join(f"{page.inner_text('#means')} {page.inner_text('#truth')}".split()))
        assert with_script.complaints == []
    with watched(browser, shared.url, locale=locale, java_script_enabled=False) as without:
        page = without.page()
        page.goto(f"{shared.url}/p/other")
        page.fill("#link", play.fresh(0))
        page.click("#enter button")
        page.goto(f"{shared.url}/p/choice")
        for price in prices:
            page.fill("#price", price)
            page.click(".without-script button")
            page.click("#truth summary")
            shown["server"].append(" ".join(f"{page.inner_text('#means')} {page.inner_text('#truth')}".split()))
    assert shown["script"] == shown["server"]
    assert len(set(shown["script"])) == len(prices)
