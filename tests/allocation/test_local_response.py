"""Randomised response: another curve of precision against loss, and the same exact optimum."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid.allocation import Accuracy, Price, allocate, least_objective, replies
from hushbid.allocation.local_curves import LAPLACE, RESPONSE, Curve
from hushbid.arrays import FloatArray
from hushbid.errors import InputError, Unreachable


def variance_of(losses: FloatArray) -> FloatArray:
    """Of an unbiased randomised response: ``coth²(ε/2)/4``."""
    return 0.25 / np.tanh(losses / 2.0) ** 2


def cost_of(goal: Price, costs: FloatArray, losses: FloatArray) -> float:
    with np.errstate(divide="ignore"):
        precision = float(np.sum(1.0 / variance_of(losses)))
    return goal.buyer_weight / precision + float(costs @ losses) if precision > 0 else math.inf


def brute_force(goal: Price, costs: FloatArray, rng: np.random.Generator) -> float:
    best = math.inf
    for _ in range(8):
        start = rng.exponential(2.0, costs.size) * (rng.random(costs.size) < 0.7) + 1e-6
        found = minimize(lambda y: cost_of(goal, costs, np.maximum(y, 1e-9)), start, bounds=[(1e-9, 60)] * costs.size)
        best = min(best, float(found.fun))
    return best


@pytest.mark.parametrize("curve", [LAPLACE, RESPONSE])
def test_a_curve_agrees_with_its_own_slopes(curve: Curve) -> None:
    y = np.array([0.2, 0.7, 1.5, 4.0])
    step = 1e-5
    slope = (curve.precision(y + step) - curve.precision(y - step)) / (2 * step)
    assert curve.loss(curve.precision(y)) == pytest.approx(y, rel=1e-9)
    assert curve.missing(y) == pytest.approx(1 - curve.precision(y), rel=1e-9)
    assert curve.steepness(curve.precision(y))[0] == pytest.approx(1 / slope, rel=1e-6)
    high = y[y > curve.turn]
    assert curve.high_root(slope[y > curve.turn]) == pytest.approx(high, rel=1e-5)
    assert slope.max() <= curve.steepest
    grid = np.linspace(0.01, 20, 200_001)
    most = curve.precision(grid) / grid
    assert most.max() == pytest.approx(curve.worthwhile, rel=1e-8)
    assert curve.precision(grid[most.argmax()]) == pytest.approx(curve.enough, rel=1e-3)


def test_the_second_of_two_is_never_low() -> None:
    # every pair (t_1 high, t_2 low) is stationary for one pair of costs; the first alone, at its best, is better
    low = np.linspace(1e-3, 1 / math.sqrt(3), 150)[:, None]
    high = np.linspace(1 / math.sqrt(3), 1 - 1e-6, 300)[None, :]
    supply = low**2 + high**2
    slopes = 2 * high * (1 - high**2), 2 * low * (1 - low**2)
    one, two = (slope / supply**2 for slope in slopes)
    value = 1 / supply + one * np.arctanh(high) + two * np.arctanh(low)
    alone = RESPONSE.alone(one)
    gain = value / (1 / RESPONSE.precision(alone) + one * alone) - 1
    # she would have to be kept: an elasticity of at most 1 + q_2/q_1
    kept = np.arctanh(low) * slopes[1] / low**2 <= 1 + low**2 / high**2
    cheaper_first = slopes[0] <= slopes[1]
    assert gain[cheaper_first].min() > 0
    assert gain[cheaper_first & kept].min() > 0.04


def test_the_optimum_is_that_of_brute_force_and_its_certificate_holds() -> None:
    rng = np.random.default_rng(6)
    for _ in range(12):
        costs = np.exp(rng.normal(0, rng.choice([0.1, 1.5]), int(rng.integers(1, 6))))
        goal = Price(float(np.exp(rng.uniform(-1, 6))))
        found = allocate(costs, setting="local", variance=0.25, goal=goal, response=True)
        assert found.objective == pytest.approx(cost_of(goal, costs, found.privacy_loss), rel=1e-9)
        assert found.objective <= brute_force(goal, costs, rng) * (1 + 1e-9)
        bound = least_objective(costs, setting="local", goal=goal, response=True)
        assert bound <= found.objective * (1 + 1e-12)
        assert found.lower_bound == bound


def test_many_people_are_certified_and_cost_a_fifth_less_than_with_laplace_noise() -> None:
    costs = np.linspace(1, 3, 2000)
    for weight in (1e3, 1e5):
        goal = Price(weight)
        answered = allocate(costs, setting="local", goal=goal, response=True)
        noisy = allocate(costs, setting="local", goal=goal)
        assert answered.objective / noisy.objective == pytest.approx(0.78, abs=0.02)
        assert answered.mse / noisy.mse == pytest.approx(0.78, abs=0.03)
        assert answered.lower_bound == pytest.approx(answered.objective, rel=1e-4)


def test_an_accuracy_is_reached_exactly_and_no_search_finds_it_cheaper() -> None:
    rng = np.random.default_rng(7)
    for _ in range(12):
        n = int(rng.integers(1, 6))
        costs = np.exp(rng.normal(0, rng.choice([0.1, 1.5]), n))
        error = math.sqrt(0.25 / n) * float(1 + rng.exponential(0.7))
        found = allocate(costs, setting="local", goal=Accuracy(error), response=True)
        used = found.privacy_loss[found.privacy_loss > 0]
        assert 1 / np.sum(1 / variance_of(used)) == pytest.approx(error**2, rel=1e-9)
        best = math.inf
        for _ in range(6):
            # free choice of everybody's precision but one's, who fills the rest
            share = rng.dirichlet(np.full(n, 0.5)) * 0.25 / error**2
            if (share < 1).all():
                best = min(best, float(costs @ (2 * np.arctanh(np.sqrt(share)))))
            start = np.clip(share, 1e-6, 0.95)
            result = minimize(
                lambda q, costs=costs: float(costs @ (2 * np.arctanh(np.sqrt(np.clip(q, 1e-14, 1 - 1e-12))))),
                start,
                bounds=[(1e-12, 1 - 1e-9)] * n,
                constraints=[{"type": "eq", "fun": lambda q, error=error: q.sum() - 0.25 / error**2}],
                method="SLSQP",
            )
            if result.success:
                best = min(best, float(result.fun))
        assert found.objective <= best * (1 + 1e-6)
        assert found.lower_bound <= found.objective * (1 + 1e-12)


@pytest.mark.parametrize("goal", [Price(40.0), Accuracy(0.3)])
def test_replies_are_the_optimum_at_the_moved_cost_and_losses_fall(goal: Price | Accuracy) -> None:
    costs = np.array([1.0, 1.1, 1.3, 2.0, 2.1, 2.2, 3.0, 0.9])
    rule = replies(costs, setting="local", goal=goal, response=True)
    grid = np.geomspace(0.2, 20, 25)
    for row in (0, 3, 7):
        found = rule.at(np.full(grid.size, row), grid)
        assert (np.diff(found.loss) <= 1e-9).all()
        for cost, value, loss in zip(grid.tolist(), found.value, found.loss, strict=True):
            moved = costs.copy()
            moved[row] = cost
            direct = allocate(moved, setting="local", goal=goal, response=True)
            assert value == pytest.approx(direct.objective, rel=1e-9)
            assert loss == pytest.approx(direct.privacy_loss[row], rel=1e-6, abs=1e-9)


def test_what_randomised_response_cannot_do_is_refused() -> None:
    with pytest.raises(InputError, match="unless the setting is local"):
        allocate([1.0], setting="central", error_weight=1, response=True)
    with pytest.raises(InputError, match="has not been proved"):
        allocate([1.0], setting="local", error_weight=1, response=True, max_loss=1.0)
    with pytest.raises(Unreachable):
        allocate([1.0, 2.0], setting="local", goal=Accuracy(0.3), response=True)
