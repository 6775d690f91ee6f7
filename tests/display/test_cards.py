"""What a notebook shows of every result, as IPython asks for it: complete, escaped, and nothing of one person."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

from hushbid import (
    Accuracy,
    Budget,
    Choice,
    Empirical,
    Market,
    Number,
    Outcome,
    Price,
    Record,
    Release,
    Uniform,
    YesNo,
    release,
    verify,
)
from hushbid.baselines import Comparison, compare
from hushbid.campaign import buy, run_campaign
from hushbid.common.numbers import at_most
from hushbid.display import card

EVIL = "<script>alert('x')</script>&\u202e"
MARKET = Market(prior=Uniform(1, 2), goal=Budget(60), bounds=(0, 100), variance=400)


def html_of(thing: object) -> str:
    """What IPython takes for its HTML."""
    bundle, _ = DisplayFormatter().format(thing)
    html, text = str(bundle["text/html"]), str(bundle["text/plain"])
    # the text beside it, which a notebook keeps too, tells the same and no more
    assert text.split() == " ".join(Reader(html).text).split()
    return html


class Reader(HTMLParser):
    """Elements and text, as a browser finds them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        if self.lasttag != "style":
            self.text.append(data.strip())

    @property
    def words(self) -> list[str]:
        return [text for text in self.text if text]


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return MARKET.acquire(np.linspace(1.0, 2.0, 101))


@pytest.fixture(scope="module")
def few() -> Outcome:
    return MARKET.acquire([1.1, 1.2, 1.3])


def fact(html: str, name: str) -> str:
    words = Reader(html).words
    return words[words.index(name) + 1]


def test_an_outcome_shows_the_figures_of_its_summary(outcome: Outcome) -> None:
    html, summary = html_of(outcome), outcome.summary()
    assert fact(html, "Bought from") == f"{outcome.active} of 101 people"
    assert f"Total payment: {fact(html, 'Total payment')}" in summary
    assert fact(html, "Expected error (root mean square)") in summary
    assert fact(html, "Privacy loss of each") == f"at most {at_most(outcome.privacy_loss.max()):g}"


def test_nothing_of_one_person_is_in_the_card_of_an_outcome() -> None:
    outcome = MARKET.acquire(np.random.default_rng(5).uniform(1.0, 2.0, 101))
    told = set(re.findall(r"[\d.]+", " ".join(Reader(html_of(outcome)).words)))
    theirs = {f"{value:.{digits}g}" for column in outcome.columns().values() for value in column for digits in (4, 6)}
    assert told & theirs <= {"0", "1", "100", "400"}  # the range, the variance: everybody's


def test_amounts_that_fewer_than_five_people_are_behind_are_withheld(few: Outcome) -> None:
    html = html_of(few)
    for name in ("Privacy loss of each", "Total payment", "Expected error (root mean square)", "Error of a payment"):
        assert fact(html, name) == "withheld"
    assert "Fewer than 5 people were bought from" in html
    nothing = MARKET.acquire([7.0, 8.0])
    assert Reader(html_of(nothing)).words == ["Outcome", nothing.summary()]


def test_a_stratum_with_few_sellers_withholds_the_error() -> None:
    labels = ["north"] * 40 + ["south"] * 3
    bids = np.linspace(1.0, 1.5, 43)
    both = Market(prior=Uniform(1, 2), goal=Price(1000.0), strata=labels, shares={"north": 0.5, "south": 0.5})
    assert fact(html_of(both.acquire(bids)), "Expected error (root mean square)") == "withheld"
    assert "Fewer than 5 people of a stratum were bought from" in html_of(both.acquire(bids))
    assert fact(html_of(both), "north") == "40"


def shown_values(public: dict[str, Any]) -> list[Any]:
    half = public["planned_half_width"]
    return [public["planned_standard_error"], half["value"] if half else None]


def test_a_release_shows_what_is_public_and_nothing_else(outcome: Outcome, few: Outcome) -> None:
    data = np.random.default_rng(1).uniform(0, 100, 101)
    data[:9] = np.nan
    drawn = release(outcome, data, question="one")
    html = html_of(drawn)
    told = Reader(html).words
    for value in shown_values(drawn.public()):
        assert f"{value:g}" in told
    assert drawn.absent == 9
    real = drawn.error.half_width(0.95)
    for secret in (f"{drawn.standard_error:.4g}", f"{real:.4g}", "9", str(drawn.delivered), drawn.key):
        assert secret not in told
    small: Release = release(few, [10.0, 20.0, 30.0], question="two")
    assert shown_values(small.public()) == [None, None]
    words = Reader(html_of(small)).words
    assert words.count("withheld") == 2
    assert f"{small.standard_error:.3g}" not in words


def test_a_prior_made_of_people_is_described_and_not_listed() -> None:
    html = html_of(Market(prior=Empirical([1.2345, 1.5432, 1.777]), goal=Budget(5)))
    assert "3 distinct values" in html
    for value in ("1.23", "1.54", "1.77"):
        assert value not in html


def test_a_plan_shows_its_tables() -> None:
    plan = MARKET.plan(60, rng=np.random.default_rng(1), repetitions=20, relations=(0.0, 0.2))
    html = html_of(plan)
    assert fact(html, "People") == "60"
    assert fact(html, "never above").replace(",", "") == f"{plan.simulation.worst_payment_bound:.4g}"
    for point in plan.frontier:
        assert f"{point.goal}" in html
    assert len(re.findall("<caption>", html)) == 2


def test_a_verification_says_what_failed(outcome: Outcome) -> None:
    found = verify(Record.of(outcome))
    words = Reader(html_of(found)).words
    assert words[0] == "Holds: everything that can be checked without the data."
    assert all(check.name in words for check in found.checks)
    assert "failed" not in found._repr_html_().split("</style>")[1]
    wrong = replace(found, checks=(*found.checks, replace(found.checks[0], status="fails", sentence=EVIL)))
    assert f"Fails: 1 of {len(wrong.checks)} checks" in Reader(html_of(wrong)).words[0]
    assert 'class="hushbid-card failed"' in html_of(wrong)
    assert "script" not in Reader(html_of(wrong)).tags


def test_a_comparison_on_few_peoples_bids_is_withheld_and_on_drawn_people_it_is_not() -> None:
    market = Market(prior=Uniform(1, 2), buyer_weight=100.0)
    small = compare(market, [1.1, 1.2, 1.3])
    assert small.bought_from == 3
    assert f"{small.ours.total_payment:.4g}" not in html_of(small)
    assert "With fewer than 20 people" in html_of(small)
    large: Comparison = compare(market, np.linspace(1, 2, 60))
    assert fact(html_of(large), "Compared on") == "60 people"
    for row in (large.ours, *large.baselines):
        assert row.name in Reader(html_of(large)).words
    assert f"{large.ours.total_payment:.4g}" in Reader(html_of(large)).words
    drawn = compare(market, people=3, rng=np.random.default_rng(1), populations=2)
    assert "populations of 3 people" in html_of(drawn)
    assert f"{drawn.ours.total_payment:.4g}" in Reader(html_of(drawn)).words


def test_a_purchase_shows_its_campaign_its_money_and_the_public_estimate(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(1), 60
    people = {"id": [f"p{k}" for k in range(n)], "bid": rng.uniform(1, 3, n), "value": rng.uniform(0, 12, n)}
    file = tmp_path / "sleep.toml"
    file.write_text(
        f'title = "{EVIL[:-1]}"\nquestion = "{EVIL[:-1]} of sleep"\nunit = "h"\nsynthetic = true\n'
        '[market]\nsetting = "central"\nprior = "uniform:1,3"\nbounds = [0, 12]\nvariance = 2\nbuyer_weight = 500\n'
        '[data]\nlate = "unpaid"\n'
    )
    bought = run_campaign(file, bids=people, audit=False)
    html = html_of(bought)
    assert bought.release is not None
    words = Reader(html).words
    assert fact(html, "Total payment") == bought.decided.currency.text(bought.decided.total_minor)
    assert f"{bought.release.public()['planned_standard_error']:g}" in words
    assert "report.html" in fact(html, "Written")
    assert any(word.startswith("Stamped: synthetic") for word in words)
    assert "script" not in Reader(html).tags
    assert f"{EVIL[:-1]} of sleep" in words
    cheap = {**people, "bid": np.where(np.arange(n) < 2, 1.0, 3.5)}
    hidden = html_of(run_campaign(file, bids=cheap, audit=False, force=True))
    assert fact(hidden, "Total payment") == fact(hidden, "Privacy loss of each") == "withheld"
    bare = html_of(buy(people, MARKET, value="value", question="sleep", currency="EUR"))
    assert Reader(bare).words[0] == "Purchase: purchase"
    assert fact(bare, "Total payment").startswith("EUR ")
    assert "Written" not in Reader(bare).words


def evil_things() -> list[Any]:
    questions = [
        Number(name=EVIL[:-1], bounds=(0, 1), unit=EVIL[:-1]),
        YesNo(name="b"),
        Choice(name="c", answers=("<script>", "d")),
    ]
    survey = Market(prior=Uniform(1, 2), goal=Accuracy((0.2, 0.2, 0.2)), questions=questions)
    bought = survey.acquire(np.linspace(1, 2, 60))
    answers = [(0.5, True, "<script>")] * 60
    labels = ["<script>a</script>"] * 30 + ["<img src=x onerror=alert(1)>"] * 30
    strata = Market(prior=Uniform(1, 2), goal=Price(1000.0), strata=labels, shares=dict.fromkeys(labels, 0.5))
    decided = strata.acquire(np.linspace(1, 2, 60))
    drawn = release(decided, np.full(60, 0.5), question="three")
    plan = survey.plan(40, rng=np.random.default_rng(1), repetitions=20, relations=(0.0,))
    found = [survey, bought, release(bought, answers, question="four"), plan, strata, decided, drawn]
    return [*found, verify(Record.of(decided, drawn))]


def test_names_are_text_whatever_they_hold_and_nothing_is_run_or_fetched() -> None:
    allowed = {"style", "div", "p", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    things = evil_things()
    for thing in things:
        html = html_of(thing)
        found = Reader(html)
        assert found.tags <= allowed, type(thing)
        assert found.attributes <= {"class"}, type(thing)
        for outside in ("http:", "https:", "url(", "@import", "//"):
            assert outside not in html, (type(thing), outside)
    assert EVIL[:-1] in Reader(html_of(things[0])).words
    assert "\u202e" not in card(EVIL)  # it would turn round what stands beside it
