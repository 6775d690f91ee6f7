"""What the passes add up, and what may be concluded from it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.allocation import allocate, replies
from hushbid.allocation.central_from_sums import SummedPopulation, bracket
from hushbid.allocation.sums import ExactSums
from hushbid.engine.curves import fit
from hushbid.engine.histogram import COARSE, Histogram

COSTS = st.lists(st.floats(0.0, 1e300, allow_subnormal=True), max_size=40)


@given(COSTS, st.integers(0, 40), st.floats(0.0, 1e300))
def test_sums_of_doubles_and_of_their_squares_are_exact_in_any_split(costs: list[float], cut: int, base: float) -> None:
    array = np.array(costs) + 0.0
    sums = ExactSums.of(array[:cut]) + ExactSums.of(array[cut:])
    above = [Fraction(cost) - Fraction(base) for cost in array.tolist()]
    assert sums.count == len(costs)
    assert sums.about(base) == (sum(above), sum(x * x for x in above))


@given(COSTS, st.integers(0, 40))
def test_histograms_add_up_whatever_the_batches(costs: list[float], cut: int) -> None:
    array = np.array(costs) + 0.0
    whole, parts = Histogram.of(array, COARSE), Histogram.of(array[cut:], COARSE) + Histogram.of(array[:cut], COARSE)
    for name in ("keys", "count", "first", "second"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()
    assert whole.people == len(costs)


@pytest.mark.parametrize("shape", ["uniform", "from zero", "heavy", "two far groups", "ties"])
@pytest.mark.parametrize("n", [1, 2, 5, 50, 3000])
@pytest.mark.parametrize("weight", [0.01, 1.0, 100.0])
def test_the_bracket_holds_the_optimal_level_of_everybody_and_without_anybody(
    shape: str, n: int, weight: float
) -> None:
    rng = np.random.default_rng(n)
    costs = {
        "uniform": lambda: 1 + 2 * rng.random(n),
        "from zero": lambda: 2 * rng.random(n),
        "heavy": lambda: rng.lognormal(0, 4, n),
        "two far groups": lambda: np.where(rng.random(n) < 0.02, 0.01, 1.0) * (1 + rng.random(n)),
        "ties": lambda: rng.integers(1, 4, n).astype(float),
    }[shape]()
    scale = weight * n * 0.125
    found = bracket(Histogram.of(costs, COARSE).levels(scale, float(costs.min())))
    populations = [costs] + [np.delete(costs, row) for row in rng.integers(0, n, 5) if n > 1]
    for others in populations:
        best = allocate(others, variance=0.25, error_weight=weight * n)
        bought = others[best.privacy_loss > 0]
        assert bought.max() <= found.high * scale * (1 + 1e-12)
        idle = others[best.privacy_loss == 0]
        assert idle.size == 0 or idle.min() >= found.low * scale * (1 - 1e-12)


def test_a_window_and_sums_below_it_answer_like_everybody() -> None:
    rng = np.random.default_rng(1)
    costs = np.sort(1 + 2 * rng.random(4000))
    best, rule = allocate(costs, error_weight=4000.0), replies(costs, setting="central", error_weight=4000.0)
    active = int(best.active)
    low, high = float(costs[active - 60]), float(costs[active + 60])
    window = costs[(costs >= low) & (costs <= high)]
    summed = SummedPopulation(
        ExactSums.of(costs[costs < low]), window, lowest=costs[0], ends=(low, high), variance=0.25, error_weight=4000.0
    )
    assert summed.is_settled
    assert summed.objective == pytest.approx(best.objective, rel=1e-14)
    assert summed.lower_bound() <= best.objective
    rows = np.arange(0, active, 7)
    for moved in (np.full(rows.size, np.inf), costs[rows] + 0.05):
        mine, theirs = summed.replies_for(costs[rows]).at(np.arange(rows.size), moved), rule.at(rows, moved)
        np.testing.assert_allclose(mine.value, theirs.value, rtol=1e-13)
        np.testing.assert_allclose(mine.loss, theirs.loss, rtol=1e-9, atol=1e-15)


def test_a_window_that_misses_the_level_is_not_settled() -> None:
    costs = np.sort(1 + 2 * np.random.default_rng(2).random(4000))
    low, high = float(costs[10]), float(costs[60])
    window = costs[(costs >= low) & (costs <= high)]
    summed = SummedPopulation(
        ExactSums.of(costs[costs < low]), window, lowest=costs[0], ends=(low, high), variance=0.25, error_weight=4000.0
    )
    assert not summed.is_settled


def test_a_curve_says_how_far_it_may_be_off_and_closes_in_on_a_corner() -> None:
    curve = fit(lambda z: np.abs(z - 1.2345) + np.sin(z), [1.0, 2.0], allowed=1e-10)
    z = np.linspace(1.0, 2.0, 10_001)
    assert curve.error <= 1e-10
    assert np.abs(curve(z) - np.abs(z - 1.2345) - np.sin(z)).max() <= 1e-9


def test_a_curve_may_jump_if_it_is_continuous_from_the_left() -> None:
    def steps(
        z: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.ceil(z * 10.0) + np.where(z > 1.0, z, 0.0)

    curve = fit(steps, [1.0, 1.5, 2.0], allowed=1e-12)
    jumps = np.array([1.1, 1.2, 1.7, 1.3, 1.5, 2.0])
    z = np.concatenate([[1.0], jumps, np.nextafter(jumps, 0.0), np.nextafter(jumps[:-1], 9.0), np.linspace(1, 2, 999)])
    np.testing.assert_allclose(curve(z), steps(z), rtol=0, atol=1e-12)
    assert curve.error <= 1e-12


def test_a_curve_over_one_point_is_that_point() -> None:
    curve = fit(np.exp, [1.0, 1.0], allowed=1e-12)
    assert curve(np.array([0.5, 1.0, 1.5])).tolist() == [math.e] * 3


@given(COSTS, st.integers(1, 2**34))
def test_a_number_that_is_there_many_times_counts_as_often(costs: list[float], times: int) -> None:
    array = np.unique(np.array(costs) + 0.0)
    counts = np.where(np.arange(array.size) % 2 == 0, times, 1)
    sums = ExactSums.of(array, counts)
    assert sums.count == counts.sum()
    exact = [(Fraction(cost), int(count)) for cost, count in zip(array.tolist(), counts, strict=True)]
    assert sums.about(0.0) == (sum(x * k for x, k in exact), sum(x * x * k for x, k in exact))
    assert sums.without(ExactSums.of(array)).count == counts.sum() - array.size
