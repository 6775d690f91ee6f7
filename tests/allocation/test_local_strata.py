"""Strata in the local setting: for a price each is a market by itself, and an accuracy is divided among them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid.allocation import Accuracy, Strata, allocate, least_objective, local_strata, replies
from hushbid.common.arrays import FloatArray
from hushbid.errors import InputError, NobodyToBuyFrom, Unreachable
from tests.extent import TIMES


@pytest.mark.parametrize("cap", [math.inf, 1.0])
def test_local_strata_are_separate_markets(cap: float) -> None:
    rng = np.random.default_rng(13)
    costs, codes = np.exp(rng.normal(size=8)), np.array([0, 0, 0, 1, 1, 1, 0, 1])
    strata = Strata(codes=codes, weights=[0.8, -0.5])
    found = allocate(costs, setting="local", error_weight=50.0, strata=strata, max_loss=cap)

    def value(losses: np.ndarray) -> float:
        precision = losses**2 / (0.25 * losses**2 + 2.0)
        error = sum(w * w / precision[codes == g].sum() for g, w in enumerate(strata.weights))
        return float(50.0 * error + costs @ losses)

    assert found.objective == pytest.approx(value(found.privacy_loss), rel=1e-11)
    for _ in range(20):
        start = np.minimum(np.exp(rng.normal(size=8)), cap)
        tried = minimize(value, start, method="L-BFGS-B", bounds=[(1e-9, cap)] * 8).fun
        assert tried >= found.objective * (1.0 - 1e-9)
    assert found.lower_bound <= found.objective
    rule = replies(costs, setting="local", error_weight=50.0, strata=strata, max_loss=cap)
    answer = rule.at(np.arange(8), 1.2 * costs)
    for row in range(8):
        moved = costs.copy()
        moved[row] *= 1.2
        again = allocate(moved, setting="local", error_weight=50.0, strata=strata, max_loss=cap)
        assert answer.loss[row] == pytest.approx(again.privacy_loss[row], rel=1e-8, abs=1e-12)
        assert (answer.value[row], answer.mse[row]) == pytest.approx((again.objective, again.mse), rel=1e-9)


def precision_of(losses: FloatArray, variance: float, response: bool) -> FloatArray:
    """What each person supplies, times the variance of their data."""
    if response:
        return np.tanh(losses / 2.0) ** 2
    return variance * losses**2 / (variance * losses**2 + 2.0)


def loss_for(precision: FloatArray, variance: float, response: bool) -> FloatArray:
    """The inverse of `precision_of`."""
    if response:
        return 2.0 * np.arctanh(np.sqrt(precision))
    return np.sqrt(2.0 * precision / (1.0 - precision) / variance)


@dataclass(frozen=True)
class Divided:
    """An accuracy for a combination of strata."""

    costs: FloatArray
    strata: Strata
    variance: float
    response: bool
    cap: float
    target: float

    @property
    def terms(self) -> dict[str, Any]:
        return {
            "setting": "local",
            "variance": self.variance,
            "response": self.response,
            "max_loss": self.cap,
            "strata": self.strata,
            "goal": Accuracy(self.target),
        }

    def error(self, precision: FloatArray) -> float:
        """The squared error over what is allowed."""
        total = np.bincount(self.strata.codes, weights=precision, minlength=self.strata.count)
        return float(np.sum(self.strata.weights**2 * self.variance / total)) / self.target**2

    def descent(self, start: FloatArray, highest: float) -> float:
        """What a purchase costs that a descent in precisions from ``start`` ends with; infinite if it ends nowhere."""

        def paid(q: FloatArray) -> float:
            return float(self.costs @ loss_for(q, self.variance, self.response))

        enough = {"type": "ineq", "fun": lambda q: 1.0 - self.error(q)}
        bounds = [(1e-13 * highest, highest)] * start.size
        q = minimize(paid, start, bounds=bounds, constraints=[enough], method="SLSQP", options={"ftol": 1e-14}).x
        for _ in range(30):
            q = np.minimum(q * max(1.0, self.error(q) * (1.0 + 1e-15)), highest)
        return paid(q) if self.error(q) <= 1.0 + 1e-13 else math.inf


def divided(seed: int, how_many: int, most: int) -> Iterator[Divided]:
    """Costs near and far from each other, tied; caps below and above the inflection, and none; hard targets."""
    rng = np.random.default_rng(seed)
    for number in range(how_many):
        response, capped, count = bool(number % 2), bool(number // 2 % 2), 2 + number // 4 % 2
        codes = np.append(np.arange(count), rng.integers(0, count, int(rng.integers(0, most - count + 1))))
        variance = 0.25 if response else float(10.0 ** rng.uniform(-1.5, 0.3))
        turn = 2.0 * math.atanh(1.0 / math.sqrt(3.0)) if response else math.sqrt(2.0 / 3.0 / variance)
        cap = turn * float(10.0 ** rng.uniform(-0.8, 0.7)) if capped else math.inf
        top = float(precision_of(np.array(cap), variance, response)) if capped else 1.0
        costs = np.exp(rng.normal(size=codes.size) * rng.choice([0.02, 0.5, 1.5]))
        costs = np.ceil(10.0 * costs / costs.max()) / 10.0 if rng.random() < 0.3 else costs
        strata = Strata(codes=codes, weights=rng.uniform(0.2, 1.0, count) * rng.choice([-1.0, 1.0], count))
        least = np.sum(strata.weights**2 * variance / np.bincount(codes) / top)
        yield Divided(costs, strata, variance, response, cap, math.sqrt(least * (1.0 + 10.0 ** rng.uniform(-6.0, 0.7))))


def test_no_descent_from_many_starts_finds_a_cheaper_division_of_an_accuracy_and_the_bound_holds() -> None:
    rng = np.random.default_rng(1)
    for one in divided(seed=2, how_many=12 * TIMES, most=6):
        found = allocate(one.costs, **one.terms)
        supplied = np.where(found.privacy_loss > 0.0, precision_of(found.privacy_loss, one.variance, one.response), 0.0)
        assert one.error(supplied) == pytest.approx(1.0, rel=1e-11)
        assert found.mse == one.target**2
        assert found.privacy_loss.max() <= one.cap
        assert found.objective == pytest.approx(float(one.costs @ found.privacy_loss), rel=1e-11)
        assert np.bincount(one.strata.codes, weights=found.weights) == pytest.approx(one.strata.weights)
        assert 0.0 < found.lower_bound <= found.objective * (1.0 + 1e-12)
        assert least_objective(one.costs, **one.terms) == pytest.approx(found.lower_bound, rel=1e-9)
        top = float(precision_of(np.array(one.cap), one.variance, one.response)) if one.cap < math.inf else 1.0 - 1e-12
        for _ in range(6):
            share = rng.uniform(0.0, 1.0, one.costs.size) * (rng.random(one.costs.size) < 0.75)
            assert found.objective <= one.descent(np.clip(share * top, 1e-6 * top, top), top) * (1.0 + 1e-9)


def test_the_rule_for_a_divided_accuracy_agrees_with_solving_again_and_never_rises() -> None:
    rng = np.random.default_rng(3)
    for one in divided(seed=4, how_many=5 * TIMES, most=12):
        rule, row = replies(one.costs, **one.terms), int(rng.integers(one.costs.size))
        grid = np.append(np.geomspace(0.05, 20.0, 9 if TIMES == 1 else 24) * one.costs[row], math.inf)
        got = rule.at(np.full(grid.size, row), grid)
        for cost, value, loss, mse in zip(grid, got.value, got.loss, got.mse, strict=True):
            moved = one.costs.copy()
            moved[row] = cost
            try:
                again = allocate(moved, **one.terms)
            except (Unreachable, NobodyToBuyFrom):
                assert (value, loss, mse) == (math.inf, 0.0, math.inf)
                continue
            # next to what cannot be reached the last digit of the target is worth many of the cost
            digits = 1e-11 + 1e-14 * again.error_weight * one.target**2 / again.objective
            assert value == pytest.approx(again.objective, rel=digits)
            assert loss == pytest.approx(again.privacy_loss[row], rel=1e-6, abs=1e-9)
            assert mse == again.mse
        assert (np.diff(got.loss) <= 1e-7 * got.loss.max()).all()
        rise, step = np.diff(got.value[:-1]), np.diff(grid[:-1])
        assert (rise >= step * got.loss[1:-1] - 1e-11 * got.value[0]).all()
        assert (rise <= step * got.loss[:-2] + 1e-11 * got.value[0]).all()


def test_people_who_cost_nothing_share_a_divided_accuracy_equally_if_they_are_enough() -> None:
    strata = Strata(codes=[0, 0, 1, 1, 1], weights=[0.5, 0.5])
    costs, terms = np.array([0.0, 2.0, 0.0, 0.0, 1.0]), {"setting": "local", "variance": 0.25, "strata": strata}
    enough = allocate(costs, goal=Accuracy(0.4), **terms)
    assert enough.objective == enough.lower_bound == 0.0
    assert enough.active == 3
    assert enough.privacy_loss[[0, 2, 3]] == pytest.approx(enough.privacy_loss[0])
    assert np.isfinite(enough.privacy_loss[0])
    scarce = allocate(costs, goal=Accuracy(0.27), **terms)
    assert np.isinf(scarce.privacy_loss[[0, 2, 3]]).all()
    assert scarce.objective > 0.0


def test_one_stratum_is_one_mean_and_equal_strata_are_bought_from_alike() -> None:
    costs, terms = 1.0 + np.random.default_rng(5).random(30), {"setting": "local", "variance": 0.25}
    alone = allocate(costs, goal=Accuracy(0.2), **terms)
    one = allocate(costs, goal=Accuracy(0.1), strata=Strata(codes=np.zeros(30, dtype=int), weights=[-0.5]), **terms)
    assert one.privacy_loss == pytest.approx(alone.privacy_loss, rel=1e-12)
    assert one.weights == pytest.approx(-0.5 * alone.weights, rel=1e-12)
    twice = Strata(codes=np.arange(60) // 30, weights=[0.5, 0.5])
    both = allocate(np.append(costs, costs), goal=Accuracy(0.2 / math.sqrt(2.0)), strata=twice, **terms)
    assert both.objective <= 2.0 * alone.objective * (1.0 + 1e-12)
    assert both.objective >= 1.99 * alone.objective


def test_an_accuracy_that_strata_cannot_reach_is_refused_with_the_least_one() -> None:
    strata = Strata(codes=[0, 0, 1], weights=[0.5, 0.5])
    with pytest.raises(Unreachable, match=r"must be above 0\.306186, .* these 3 people's data without any noise"):
        allocate([1.0, 1.0, 1.0], setting="local", variance=0.25, strata=strata, goal=Accuracy(0.3))
    with pytest.raises(Unreachable, match="at a max_privacy_loss of 1"):
        allocate([1.0, 1.0, 1.0], setting="local", variance=0.25, strata=strata, goal=Accuracy(0.5), max_loss=1.0)


def test_a_division_that_takes_too_many_steps_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one = next(divided(seed=6, how_many=4, most=6))
    monkeypatch.setattr(local_strata, "_MOST", (-1, 0))
    with pytest.raises(InputError, match="takes too many steps"):
        allocate(one.costs, **one.terms)


@pytest.mark.parametrize("scale", [1e-100, 1e-20, 1e20, 1e100])
def test_a_division_does_not_depend_on_the_unit_of_money(scale: float) -> None:
    for one in divided(seed=7, how_many=3, most=8):
        found, scaled = (allocate(one.costs * by, **one.terms) for by in (1.0, scale))
        assert scaled.objective == pytest.approx(found.objective * scale, rel=1e-11)
        assert scaled.privacy_loss == pytest.approx(found.privacy_loss, rel=1e-6)
