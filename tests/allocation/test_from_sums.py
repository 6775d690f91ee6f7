"""The optimum from sums, of one mean and of strata: the same as from people, bracketed whoever raises their bid."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, Price, Strata, allocate, replies
from hushbid.allocation.bracket import Bracket, LevelBounds, bracket
from hushbid.allocation.central_problem import NormalForm
from hushbid.allocation.exact_sums import ExactSums
from hushbid.allocation.from_sums import SummedOptimum, SummedStratum
from hushbid.allocation.histogram import Levels
from hushbid.allocation.pairs_from_sums import SummedRules
from hushbid.common.arrays import FloatArray
from tests.extent import each

WEIGHTS = np.array([0.5, -0.3, 0.2])
ONE = np.ones(1)
GOALS = [Price(3000.0), Accuracy(0.05), Budget(15.0)]
GOALS_OF_ALL = [Price(1e9), Accuracy(0.0148), Budget(3e4)]


def people(n: int, seed: int, decimals: int = 16, weights: FloatArray = WEIGHTS) -> tuple[FloatArray, Strata]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, weights.size, n)
    costs = rng.uniform(1, 3, n) * np.array([1, 1.4, 0.7])[codes]
    return np.round(costs, decimals), Strata(codes=codes, weights=weights)


def levels_at(costs: FloatArray, edges: FloatArray, scale: float) -> Levels:
    base = float(costs.min())
    below = [(costs[costs < edge] - base) / scale for edge in edges]
    return Levels(
        level=edges / scale,
        mass=np.array([float(one.size) for one in below]),
        first=np.array([one.sum() for one in below]),
        second=np.array([(one * one).sum() for one in below]),
        rounding=np.zeros(edges.size),
        origin=base / scale,
    )


def bracketed(costs: FloatArray, strata: Strata, goal: Price | Accuracy | Budget) -> tuple[NormalForm, Bracket]:
    form = NormalForm.of(strata.weights, 0.25, goal)
    bounds = []
    for stratum, size in enumerate(form.sizes.tolist()):
        own = costs[strata.codes == stratum]
        top = float(own.max()) * 1.001
        sums = levels_at(own, np.linspace(own.min(), top, 60), form.scale)
        bounds.append(LevelBounds(sums, size, complete=True, dearest=top / form.scale))
    return form, bracket(form, bounds)


def summed(costs: FloatArray, strata: Strata, goal: Goal) -> SummedOptimum:
    assert isinstance(goal, (Price, Accuracy, Budget))
    form, found = bracketed(costs, strata, goal)
    assert found.high < math.inf
    parts = []
    for stratum, ends in enumerate(found.windows):
        own = costs[strata.codes == stratum]
        low, high = ends[0] * form.scale * (1 - 1e-9), ends[1] * form.scale * (1 + 1e-9)
        window, count = np.unique(own[(own >= low) & (own <= high)], return_counts=True)
        parts.append(
            SummedStratum(
                below=ExactSums.of(own[own < low]),
                costs=window,
                people=count.astype(np.int64),
                lowest=float(own.min()),
                dearest=float(own.max()),
                window=(low, high),
            )
        )
    return SummedOptimum(form, parts, (found.low, found.high))


@each("weights", [ONE, WEIGHTS])
@each("decimals", [16, 1])
@each("goal", [*GOALS, *GOALS_OF_ALL])
def test_sums_give_the_optimum_that_people_give(goal: Goal, decimals: int, weights: FloatArray) -> None:
    costs, strata = people(4000, 11, decimals, weights)
    found, best = summed(costs, strata, goal), allocate(costs, variance=0.25, goal=goal, strata=strata)
    assert found.is_settled
    assert found.active == best.active
    losses = np.zeros(costs.size)
    for stratum in range(strata.weights.size):
        own = strata.codes == stratum
        losses[own] = found.losses(stratum, costs[own])
    np.testing.assert_allclose(losses, best.privacy_loss, rtol=1e-12, atol=1e-14 * best.privacy_loss.max())
    assert found.mse == pytest.approx(best.mse, rel=1e-13)
    assert found.objective == pytest.approx(best.objective, rel=1e-13)
    assert found.strength == pytest.approx(float(best.privacy_loss.sum()), rel=1e-13)
    assert found.squared_weights == pytest.approx(float((best.weights**2).sum()), rel=1e-12)
    assert best.objective * (1 - 1e-9) <= found.lower_bound() <= best.objective


@each("weights", [ONE, WEIGHTS])
@each("goal", [*GOALS, Budget(3e4)])
def test_replies_from_sums_are_those_of_people(goal: Goal, weights: FloatArray) -> None:
    costs, strata = people(2500, 12, weights=weights)
    found, rule = summed(costs, strata, goal), replies(costs, setting="central", goal=goal, strata=strata)
    best = allocate(costs, goal=goal, strata=strata)
    dearest = float((costs * best.privacy_loss).max())
    moves: list[Callable[[FloatArray], FloatArray]] = [lambda own, by=by: own * by for by in (1.0, 1.02, 2.0, math.inf)]
    for stratum in range(strata.weights.size):
        rows = np.flatnonzero((strata.codes == stratum) & (best.privacy_loss > 0.0))[:40]
        mine, own, who = SummedRules(found).of(stratum, costs[rows]), costs[rows], np.arange(rows.size)
        before, start = rule.at(rows, own).value, mine.at(who, own).value
        for move in moves:
            theirs, ours = rule.at(rows, move(own)), mine.at(who, move(own))
            np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-11, atol=1e-13 * best.privacy_loss.max())
            np.testing.assert_allclose(ours.mse, theirs.mse, rtol=1e-12)
            np.testing.assert_allclose(ours.value - start, theirs.value - before, rtol=0, atol=1e-11 * dearest)


@each("weights", [ONE, WEIGHTS])
@each("goal", [Price(300.0), Accuracy(0.2), Budget(2.0)])
def test_every_level_that_payments_ask_about_lies_in_the_bracket(
    goal: Price | Accuracy | Budget, weights: FloatArray
) -> None:
    rng, inside = np.random.default_rng(13), 0
    for seed in range(6):
        costs, strata = people(150, seed, weights=weights)
        form, found = bracketed(costs, strata, goal)
        for row, to in zip(rng.integers(0, 150, 8), [math.inf, *rng.uniform(1, 3, 7)], strict=True):
            moved = costs.copy()
            moved[row] *= to
            best = allocate(moved, variance=0.25, goal=goal, strata=strata)
            for stratum, (low, high) in enumerate(found.windows):
                # the level is where shares, a line in the cost, are nothing
                own = np.flatnonzero((strata.codes == stratum) & (best.privacy_loss > 0.0))
                if own.size < 2:
                    continue
                first, last = own[[moved[own].argmin(), moved[own].argmax()]]
                slope = (best.privacy_loss[first] - best.privacy_loss[last]) / (moved[last] - moved[first])
                level = moved[first] + best.privacy_loss[first] / slope
                assert low * (1 - 1e-9) <= level / form.scale <= high * (1 + 1e-9)
                assert best.privacy_loss.max() <= found.most_lost * (1 + 1e-9)
                inside += high < math.inf
    assert inside > 30 * weights.size


def test_of_very_many_people_one_persons_rent_is_not_lost_in_the_digits_of_the_whole() -> None:
    costs, strata = people(1500, 14, 2)
    copies = 1_000_000
    goal = Accuracy(0.03 / math.sqrt(copies))
    form = NormalForm.of(WEIGHTS, 0.25, goal)
    parts = []
    for stratum in range(strata.weights.size):
        window, count = np.unique(costs[strata.codes == stratum], return_counts=True)
        ends = float(window[0]), float(window[-1])
        many = count.astype(np.int64) * copies
        parts.append(
            SummedStratum(
                below=ExactSums({}), costs=window, people=many, lowest=ends[0], dearest=ends[1], window=(0.0, 9.0)
            )
        )
    found = SummedOptimum(form, parts, (0.0, math.inf))
    rule, own = SummedRules(found).of(0, np.full(2, 1.1)), np.full(2, 1.1)
    rent = float(np.diff(rule.at(np.arange(2), np.array([1.1, 1.4])).value)[0])
    losses = found.losses(0, np.linspace(1.1, 1.4, 2001))  # among so many her own bid moves nothing but her loss
    assert rent == pytest.approx(float(np.trapezoid(losses, np.linspace(1.1, 1.4, 2001))), rel=1e-7)
    assert rule.at(np.arange(2), own).value == pytest.approx(np.zeros(2), abs=1e-12 * rent)
