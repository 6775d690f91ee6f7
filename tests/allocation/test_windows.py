"""What the passes add up, and what may be concluded from it."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hushbid.allocation import Price, allocate
from hushbid.allocation.bracket import LevelBounds, bracket
from hushbid.allocation.central_problem import NormalForm
from hushbid.allocation.exact_sums import ExactSums
from hushbid.allocation.from_sums import SummedOptimum, SummedStratum
from hushbid.allocation.histogram import COARSE, Histogram
from tests.extent import each

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


@each("shape", ["uniform", "from zero", "heavy", "two far groups", "ties"])
@each("n", [1, 2, 5, 50, 3000])
@each("weight", [0.01, 1.0, 100.0])
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
    spread = np.where(rng.random(n) < 0.5, 0.25, 0.3)
    populations = [np.arange(n)] + [np.delete(np.arange(n), row) for row in rng.integers(0, n, 5) if n > 1]
    for variance in (np.full(n, 0.25), spread):
        evenness = float(variance.min() / variance.max())
        form = NormalForm.of(np.ones(1), float(variance.min()), Price(weight * n))
        levels = Histogram.of(costs, COARSE).levels(form.scale, float(costs.min()))
        dearest = float(levels.level[-1])
        found = bracket(form, [LevelBounds(levels, 1.0, complete=True, dearest=dearest, evenness=evenness)])
        low, high = (end * form.scale for end in found.windows[0])
        for others in populations:
            best = allocate(costs[others], variance=variance[others], error_weight=weight * n)
            bought = costs[others][best.privacy_loss > 0]
            assert bought.max() <= high * (1 + 1e-12)
            idle = costs[others][best.privacy_loss == 0]
            assert idle.size == 0 or idle.min() >= low * (1 - 1e-12)


def test_a_window_that_misses_the_level_is_not_settled() -> None:
    costs = np.sort(1 + 2 * np.random.default_rng(2).random(4000))
    form = NormalForm.of(np.ones(1), 0.25, Price(4000.0))
    for (low, high), settled in (((costs[10], costs[60]), False), ((costs[0], costs[-1]), True)):
        window, people = np.unique(costs[(costs >= low) & (costs <= high)], return_counts=True)
        one = SummedStratum(
            below=ExactSums.of(costs[costs < low]),
            costs=window,
            people=people,
            lowest=float(costs[0]),
            dearest=float(costs[-1]),
            window=(float(low), float(high)),
        )
        assert SummedOptimum(form, [one], (0.0, math.inf)).is_settled == settled


@given(COSTS, st.integers(1, 2**34))
def test_a_number_that_is_there_many_times_counts_as_often(costs: list[float], times: int) -> None:
    array = np.unique(np.array(costs) + 0.0)
    counts = np.where(np.arange(array.size) % 2 == 0, times, 1)
    sums = ExactSums.of(array, counts)
    assert sums.count == counts.sum()
    exact = [(Fraction(cost), int(count)) for cost, count in zip(array.tolist(), counts, strict=True)]
    assert sums.about(0.0) == (sum(x * k for x, k in exact), sum(x * x * k for x, k in exact))
