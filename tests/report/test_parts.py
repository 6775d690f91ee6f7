"""The parts a report is made of: escaping, numbers, aggregates that name nobody, and the arithmetic of selection."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from hushbid import Empirical, Grouped, Market, Outcome, Uniform
from hushbid.errors import InputError
from hushbid.report.rendering import environment, plain
from hushbid.report.sections.assumptions import assumptions_of, prior_words
from hushbid.report.sections.selection import selection_facts
from hushbid.report.suppression import (
    NOT_STATED,
    SMALLEST_CELL,
    SMALLEST_CHART,
    GroupRow,
    _withheld,
    as_labels,
    group_rows,
    histogram,
    quantiles,
)
from hushbid.report.svg import mark
from hushbid.wording import at_most, interval, number, percent

HOSTILE = "<script>alert('x')</script> \" & ' \u202e\x00"


# -- escaping ----------------------------------------------------------------------------------------------------------


@given(st.text())
def test_text_never_becomes_markup(text: str) -> None:
    template = environment("hushbid.report").from_string('<p title="{{ text }}">{{ text }}</p>')
    for made in (mark("p", text, title=text), template.render(text=text)):
        value, _, inside = made.removeprefix('<p title="').removesuffix("</p>").partition('">')
        assert not set('<"') & {*value, *inside}
        assert not any(character in made for character in ("\x00", "\x08", "\ud800", "\u202e"))


def test_only_marks_pass_as_markup() -> None:
    made = mark("g", mark("text", HOSTILE), mark("text", "x"), class_="a", lang=None)
    assert isinstance(made, Markup)
    assert made.startswith('<g class="a"><text>&lt;script&gt;')
    assert "<script" not in made


def test_a_name_cannot_reorder_the_sentence_around_it() -> None:
    assert plain(HOSTILE) == "<script>alert('x')</script> \" & '"
    assert plain("a\n\tb  c") == "a b c"


# -- numbers -----------------------------------------------------------------------------------------------------------


@given(st.floats(1e-300, 1e300))
def test_rounding_up_is_never_below_and_at_most_a_tenth_above(value: float) -> None:
    rounded = at_most(value)
    assert value <= rounded * (1 + 1e-12)
    assert rounded <= value * 1.1 * (1 + 1e-12)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_a_shown_interval_contains_the_exact_one(estimate: float, half_width: float) -> None:
    _, low, high = (float(text.replace(",", "").replace("\u2212", "-")) for text in interval(estimate, half_width))
    slack = 1e-9 * max(abs(estimate), half_width)
    assert low <= estimate - half_width + slack
    assert high >= estimate + half_width - slack
    assert high - low <= 2.5 * half_width


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_number_can_be_written(value: float) -> None:
    assert number(value)
    assert "e" not in number(value).replace("not a number", "")


@pytest.mark.parametrize(("share", "text"), [(1.0, "100"), (0.996, "over 99"), (0.004, "under 1"), (0.5, "50")])
def test_a_share_is_never_rounded_to_all_or_nothing(share: float, text: str) -> None:
    assert percent(share) == f"{text}\u00a0%"


# -- aggregates --------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
def test_a_histogram_counts_everybody_and_no_bar_stands_for_few(values: list[float]) -> None:
    bars = histogram(np.array(values))
    if len(values) < SMALLEST_CHART:
        assert bars is None
        return
    assert bars is not None
    assert sum(bars.counts) == len(values)
    assert min(bars.counts) >= SMALLEST_CELL
    assert len(bars.edges) == len(bars.counts) + 1
    assert bars.edges[0] <= min(values) * (1 + 1e-9)
    assert max(values) <= bars.edges[-1] * (1 + 1e-9) + 1e-12
    areas = np.array(bars.heights) * np.diff(bars.edges) / bars.width
    assert areas == pytest.approx(bars.counts)


def test_quantiles_keep_enough_people_on_either_side() -> None:
    assert [level for level, _ in quantiles(np.arange(20.0), (0.1, 0.25, 0.5, 0.9))] == [0.25, 0.5]
    assert [level for level, _ in quantiles(np.arange(60.0), (0.1, 0.5, 0.9))] == [0.1, 0.5, 0.9]
    assert quantiles(np.arange(19.0), (0.5,)) == ()


def priced(n: int, buyer_weight: float = 5000.0) -> Outcome:
    prior = Uniform(1, 2)
    market = Market(prior=prior, user_weight=0.0, buyer_weight=buyer_weight)
    return market.acquire(prior.sample(n, rng=np.random.default_rng(n)))


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=120))
def test_every_group_shown_has_enough_people_and_all_people_are_in_one(labels: list[str]) -> None:
    outcome = priced(len(labels))
    rows = group_rows(outcome, as_labels(labels, len(labels)))
    sizes = Counter(labels)
    if not rows:  # all of them would be one pool
        assert min(sizes.values()) < SMALLEST_CHART
        return
    assert sum(row.people for row in rows) == len(labels)
    assert sum(row.bought_from for row in rows) == outcome.active
    assert min(row.people for row in rows) >= SMALLEST_CHART
    shown = [row for row in rows if row.share_of_weight is not None]
    assert all(row.bought_from == 0 or row.bought_from >= SMALLEST_CELL for row in shown)
    if len(shown) == len(rows):
        assert sum(row.share_of_weight or 0.0 for row in rows) == pytest.approx(1.0)
        assert sum(row.share_of_payment or 0.0 for row in rows) == pytest.approx(1.0)


def row(name: str, bought_from: int) -> GroupRow:
    return GroupRow(
        name=name,
        people=100,
        bought_from=bought_from,
        share_of_people=0.25,
        share_of_weight=0.25,
        share_of_payment=0.25,
        mean_loss=0.1,
    )


@pytest.mark.parametrize(
    ("bought_from", "hidden"),
    [
        ([50, 50, 0], []),
        ([50, 2, 9], [1, 2]),  # the second could be had by subtraction
        ([50, 3, 4], [1, 2]),
        ([50, 1, 2, 30], [1, 2, 3]),
        ([4], [0]),
    ],
)
def test_amounts_of_few_people_are_withheld_also_from_subtraction(bought_from: list[int], hidden: list[int]) -> None:
    rows = _withheld([row(str(place), many) for place, many in enumerate(bought_from)])
    assert [place for place, one in enumerate(rows) if one.share_of_weight is None] == hidden
    assert all(one.bought_from == many for one, many in zip(rows, bought_from, strict=True))


def test_missing_groups_are_a_group_and_labels_must_fit() -> None:
    labels = as_labels(["a", None, math.nan, "", "\u202e"], 5)
    assert [labels.names[code] for code in labels.codes] == ["a", *[NOT_STATED] * 4]
    with pytest.raises(InputError, match="one entry per person"):
        as_labels(["a"], 2)


# -- selection ---------------------------------------------------------------------------------------------------------


def test_the_correlation_found_moves_the_weighted_mean_by_exactly_half_an_interval() -> None:
    outcome = priced(300)
    rng = np.random.default_rng(0)
    half, spread = 0.05, 0.4
    facts = selection_facts(outcome.weights, outcome.reports, variance=spread**2, half_width=half)
    assert facts.any_shape is not None
    assert facts.linear is not None
    assert facts.any_shape <= facts.linear

    def bias(direction: np.ndarray, correlation: float) -> float:
        """Data of the given spread with that correlation to ``direction``, the rest unrelated to the weights."""
        rest = rng.normal(size=300)
        known = np.column_stack([np.ones(300), direction, outcome.weights])
        rest -= known @ np.linalg.lstsq(known, rest, rcond=None)[0]
        toward = (direction - direction.mean()) / direction.std()
        data = spread * (correlation * toward + math.sqrt(1 - correlation**2) * rest / rest.std())
        assert data.std() == pytest.approx(spread)
        return float(outcome.weights @ data - data.mean())

    assert bias(outcome.weights, facts.any_shape) == pytest.approx(half)
    assert abs(bias(outcome.reports, facts.linear)) == pytest.approx(half)


def test_equal_weights_cannot_be_misled_and_impossible_correlations_are_not_named() -> None:
    even = selection_facts(np.full(50, 1 / 50), np.linspace(1, 2, 50), variance=1.0, half_width=0.1)
    assert even.shift_per_correlation == 0.0
    assert even.any_shape is None
    wide = selection_facts(np.r_[1.0, np.zeros(49)], np.linspace(1, 2, 50), variance=1.0, half_width=1e3)
    assert wide.any_shape is None
    same = selection_facts(np.r_[1.0, np.zeros(49)], np.full(50, 1.5), variance=1.0, half_width=0.1)
    assert same.weight_cost_correlation is None
    assert same.linear is None
    assert same.any_shape is not None


# -- words -------------------------------------------------------------------------------------------------------------


def test_a_prior_made_of_people_is_described_not_shown() -> None:
    sample = [1.23456, 2.34567, 3.45678]
    assert "1.23456" not in prior_words(Empirical(sample))
    assert "1.23456" not in prior_words(Grouped({"a": Empirical(sample), "b": Uniform(1, 2)}, ["a", "b"]))
    assert prior_words(Uniform(1, 2)) == "uniform:1,2"


def test_assumptions_follow_the_market() -> None:
    def titles(**settings: object) -> str:
        market = Market(prior=Uniform(1, 2), **settings)  # type: ignore[arg-type]
        found = assumptions_of(market, people=3, prior_from_participants=bool(settings.get("setting") == "local"))
        assert all(one.title and one.text and one.if_wrong for one in found)
        return " | ".join(one.title for one in found)

    plain_market = titles(user_weight=0.0)
    assert "operator is trusted" in plain_market
    assert "worst case" in plain_market
    assert "from elsewhere" in plain_market
    other = titles(user_weight=1.0, variance=0.1, setting="local")
    assert "Nobody is trusted" in other
    assert "declared variance" in other
    assert "fitted on participants" in other
