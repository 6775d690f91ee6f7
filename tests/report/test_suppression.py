"""What is told about people names nobody: bars, quantiles and groups with enough people behind them."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid import Market, Outcome, Uniform
from hushbid.errors import InputError
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
    told_together,
)
from tests.extent import each


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


@each(
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


@given(st.lists(st.integers(0, 60), min_size=1, max_size=5))
def test_no_small_number_of_people_is_told_unless_all_are_told_together(counts: list[int]) -> None:
    named = {str(place): people for place, people in enumerate(counts)}
    told = told_together(named)
    assert sum(people for _, people in told) == sum(counts)
    small = [people for _, people in told if 0 < people < SMALLEST_CHART]
    assert not small or len(told) == 1
    pooled = [name for name, _ in told if " or " in name]
    assert len(pooled) <= 1
    # nothing that is told apart is small, and what is pooled cannot be had by subtraction
    assert all(
        name.replace(" or ", ", ").split(", ") == sorted(name.replace(" or ", ", ").split(", ")) for name in pooled
    )
    apart = {name for name, _ in told} - set(pooled)
    assert all(named[name] >= SMALLEST_CHART for name in apart) or len(told) == 1
