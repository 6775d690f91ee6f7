"""The level from sums: the same as from people, and bracketed whoever asks for more or stays away."""

import math

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, allocate, replies
from hushbid.allocation.central_from_sums import Levels
from hushbid.allocation.levels_from_sums import SummedLevel, bracket_level
from hushbid.allocation.sums import ExactSums
from hushbid.arrays import FloatArray

GOALS = [Accuracy(0.2), Accuracy(0.35), Budget(0.5), Budget(10.0)]


def level_of(costs: FloatArray, goal: Goal) -> float:
    """By bisection on the definition, from people."""
    low, high = float(costs.min()), 1e9
    for _ in range(80):
        middle = 0.5 * (low + high)
        share = np.maximum(middle - costs, 0.0) / 0.25
        if isinstance(goal, Accuracy):
            passed = goal.number**2 * share.sum() >= middle
        else:
            passed = 2.0 * share[costs < math.inf].dot(costs[costs < math.inf]) >= goal.number**2
        low, high = (low, middle) if passed else (middle, high)
    return high


def levels_at(costs: FloatArray, edges: FloatArray) -> Levels:
    base = float(costs.min())
    below = [np.sort(costs[costs < edge] - base) for edge in edges]
    return Levels(
        level=edges,
        mass=np.array([float(one.size) for one in below]),
        first=np.array([one.sum() for one in below]),
        second=np.array([(one * one).sum() for one in below]),
        rounding=np.zeros(edges.size),
        origin=base,
    )


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_every_level_that_payments_ask_about_lies_in_the_bracket(goal: Goal) -> None:
    rng = np.random.default_rng(70)
    inside = 0
    for _ in range(8):
        costs = rng.uniform(1, 3, 60) ** rng.integers(1, 4)
        top = float(costs.max())
        found = bracket_level(
            levels_at(costs, np.linspace(costs.min(), top * 1.001, 40)),
            goal,
            variance=(0.25, 0.25),
            dearest=top * 1.001,
        )
        for row, to in zip(rng.integers(0, 60, 12), [math.inf, *rng.uniform(1, 3, 11)], strict=True):
            moved = costs.copy()
            moved[row] = max(costs[row] * to, costs[row])
            assert found.low <= level_of(moved, goal) * (1 + 1e-9)
            assert level_of(moved, goal) <= found.high * (1 + 1e-9)
        inside += found.high < top and (found.low > costs.min() or goal.number == 0.5)
    assert inside > 4  # the bracket says something


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_sums_and_people_give_the_same_purchase_and_the_same_replies(goal: Goal) -> None:
    rng = np.random.default_rng(71)
    costs = np.sort(rng.uniform(1, 3, 300))
    costs[40] = costs[41]
    whole = allocate(costs, variance=0.25, goal=goal)
    active, first = whole.active, max(whole.active - 15, 1)
    ends = (0.5 * (costs[first - 1] + costs[first]), 0.5 * (costs[active + 25] + costs[active + 26]))
    inside = (costs > ends[0]) & (costs < ends[1])
    window, people = np.unique(costs[inside], return_counts=True)
    summed = SummedLevel(
        ExactSums.of(costs[costs < ends[0]]),
        window,
        people,
        lowest=float(costs[0]),
        ends=ends,
        dearest=float(costs[-1]),
        variance=0.25,
        goal=goal,
    )
    assert summed.active == active
    assert summed.level == pytest.approx(level_of(costs, goal), rel=1e-13)
    np.testing.assert_allclose(summed.losses(costs), whole.privacy_loss, rtol=1e-12, atol=1e-14)
    assert summed.mse == pytest.approx(whole.mse, rel=1e-13)
    assert summed.lower_bound() == pytest.approx(whole.objective, rel=1e-9)
    assert summed.lower_bound() <= whole.objective
    # what happens if one of them asks for more
    rows = np.arange(active)
    here, there = summed.replies_for(costs[rows]), replies(costs, setting="central", variance=0.25, goal=goal)
    now = here.at(rows, costs[rows]).value, there.at(rows, costs[rows]).value
    for factor in (1.0, 1.001, 1.2, 5.0, math.inf):
        mine, theirs = here.at(rows, costs[rows] * factor), there.at(rows, costs[rows] * factor)
        np.testing.assert_allclose(mine.loss, theirs.loss, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(mine.value - now[0], theirs.value - now[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mine.mse, theirs.mse, rtol=1e-12)
