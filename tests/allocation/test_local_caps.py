"""The local optimum under one cap for all: global, truthful, certified; other caps are refused."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid.allocation import Accuracy, allocate, replies
from hushbid.errors import InputError


def objective(losses: np.ndarray, costs: np.ndarray, variance: float, weight: float) -> float:
    return float(weight / np.sum(losses**2 / (variance * losses**2 + 2.0)) + costs @ losses)


def slope(losses: np.ndarray, costs: np.ndarray, variance: float, weight: float) -> np.ndarray:
    precision = np.sum(losses**2 / (variance * losses**2 + 2.0))
    return costs - weight / precision**2 * 4.0 * losses / (variance * losses**2 + 2.0) ** 2


def best_of_many_starts(
    rng: np.random.Generator, costs: np.ndarray, variance: float, weight: float, cap: float
) -> float:
    """Descent from many points in the box; one start at least has everybody at the cap."""
    best = math.inf
    for start in range(14):
        losses = cap * rng.uniform(0.05, 1.0, costs.size) * (rng.random(costs.size) < 0.7)
        if start == 0 or not losses.any():
            losses = np.full(costs.size, cap)
        found = minimize(
            objective,
            losses,
            args=(costs, variance, weight),
            jac=slope,
            bounds=[(0.0, cap)] * costs.size,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-12},
        )
        best = min(best, found.fun)
    return best


def markets(rng: np.random.Generator, how_many: int, most: int):
    """Costs near and far from each other, error weights, and caps from binding hard to not at all."""
    for _ in range(how_many):
        n = int(rng.integers(1, most + 1))
        variance, weight = 10.0 ** rng.uniform(-1.5, 0.3), 10.0 ** rng.uniform(-1.0, 3.0)
        unit = weight * variance**1.5 * 10.0 ** rng.uniform(-2.5, 1.0)
        costs = unit * np.exp(rng.normal(size=n) * rng.choice([0.02, 0.1, 0.5, 1.5]))
        if rng.random() < 0.15:
            costs[0] = 0.0
        yield costs, variance, weight, 10.0 ** rng.uniform(-0.7, 0.8) / math.sqrt(variance)


def test_descent_from_many_starts_finds_nothing_better_and_the_certificate_holds() -> None:
    rng = np.random.default_rng(2)
    for costs, variance, weight, cap in markets(rng, 30, 5):
        found = allocate(costs, setting="local", variance=variance, error_weight=weight, max_loss=cap)
        assert found.privacy_loss.max() <= cap
        assert found.objective == pytest.approx(objective(found.privacy_loss, costs, variance, weight), rel=1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            rival = best_of_many_starts(rng, costs, variance, weight, cap)
        assert found.objective <= rival * (1.0 + 1e-9)
        assert 0.0 < found.lower_bound <= found.objective


@pytest.mark.parametrize(
    ("costs", "cap", "losses"),
    [([4.989, 5.132], 0.594, [0.594, 0.5602]), ([1.411, 1.441], 0.971, [0.9613, 0.8133])],
)
def test_the_second_of_two_can_be_low_beside_a_first_at_the_cap_or_near_it(
    costs: list[float], cap: float, losses: list[float]
) -> None:
    found = allocate(costs, setting="local", variance=1.0, error_weight=1.0, max_loss=cap)
    assert found.privacy_loss == pytest.approx(losses, abs=1e-4)
    assert found.privacy_loss[1] < math.sqrt(2.0 / 3.0)
    grid = np.linspace(0.4, cap, 400)
    one, two = np.meshgrid(grid, grid)
    supply = one**2 / (one**2 + 2.0) + two**2 / (two**2 + 2.0)
    everywhere = 1.0 / supply + costs[0] * one + costs[1] * two
    assert found.objective <= everywhere.min() <= found.objective * (1.0 + 1e-5)


def test_a_cap_above_all_losses_changes_nothing_and_a_lower_one_buys_from_more_people() -> None:
    costs = 1.0 + np.random.default_rng(3).random(300)
    options = {"setting": "local", "variance": 0.25, "error_weight": 3000.0}
    free = allocate(costs, **options)
    highest = float(free.privacy_loss.max())
    assert allocate(costs, **options, max_loss=highest).privacy_loss.tolist() == free.privacy_loss.tolist()
    capped = allocate(costs, **options, max_loss=0.4 * highest)
    assert capped.active > free.active
    assert capped.objective > free.objective
    assert capped.gap < 1e-3


def test_replies_agree_with_solving_again_for_every_pair_ties_free_people_and_absence_included() -> None:
    rng = np.random.default_rng(5)
    for costs, variance, weight, cap in markets(rng, 22, 30):
        if rng.random() < 0.4:
            costs = np.ceil(10.0 * costs / costs.max()) * costs.max() / 10.0
        options = {"setting": "local", "variance": variance, "error_weight": weight, "max_loss": cap}
        options["tie_key"] = rng.permutation(costs.size)
        rows = rng.integers(0, costs.size, 6)
        moved = costs[rows] * np.exp(rng.normal(size=6))
        moved[:4] = np.inf, costs[rows[1]], 0.0, costs[rng.integers(costs.size)]
        got = replies(costs, **options).at(rows, moved)
        for row, cost, value, loss, mse in zip(rows, moved, got.value, got.loss, got.mse, strict=True):
            changed = costs.copy()
            changed[row] = cost
            if changed.min() == np.inf:
                assert value == np.inf
                continue
            found = allocate(changed, **options)
            assert value == pytest.approx(found.objective, rel=1e-10)
            assert loss == pytest.approx(found.privacy_loss[row], rel=1e-6, abs=1e-9 * cap)
            assert mse == pytest.approx(found.mse, rel=1e-6)


def test_a_loss_never_rises_with_ones_own_cost_and_is_the_slope_of_the_value() -> None:
    rng = np.random.default_rng(6)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    for costs, variance, weight, cap in markets(rng, 15, 4):
        rule = replies(costs, setting="local", variance=variance, error_weight=weight, max_loss=cap)
        row = int(rng.integers(costs.size))
        grid = (weight * variance**1.5) * np.exp(np.linspace(-7.0, 3.0, 201))
        got = rule.at(np.full(grid.size, row), grid)
        assert (np.diff(got.loss) <= 1e-7 * cap).all()
        assert got.loss.max() <= cap
        middle, half = 0.5 * (grid[1:] + grid[:-1]), 0.5 * np.diff(grid)
        inner = rule.at(np.full(8 * half.size, row), (middle[:, None] + half[:, None] * nodes).ravel())
        area = half * (inner.loss.reshape(half.size, 8) @ weights)
        rise = np.diff(got.value)
        # between neighbours without a corner or a jump the quadrature is exact; elsewhere the losses enclose the rise
        smooth = (got.loss[1:] > 0.9 * got.loss[:-1]) & ((got.loss[:-1] < cap) | (got.loss[1:] == cap))
        assert rise[smooth] == pytest.approx(area[smooth], rel=1e-6, abs=1e-11 * got.value.max())
        assert (rise >= 2.0 * half * got.loss[1:] - 1e-9 * got.value.max()).all()
        assert (rise <= 2.0 * half * got.loss[:-1] + 1e-9 * got.value.max()).all()


def test_somebody_who_asks_for_nothing_loses_no_more_than_the_cap() -> None:
    found = allocate([0.0, 0.0, 1.0], setting="local", variance=0.25, error_weight=100.0, max_loss=2.0)
    assert found.privacy_loss[:2].tolist() == [2.0, 2.0]


def test_other_local_caps_are_refused() -> None:
    with pytest.raises(InputError, match=r"must be one number in the local setting: .* NP-hard"):
        allocate([1.0, 2.0], setting="local", error_weight=9.0, max_loss=[1.0, 2.0])
    with pytest.raises(InputError, match="must be left out for an accuracy in the local setting"):
        replies([1.0, 2.0], setting="local", goal=Accuracy(0.45), max_loss=1.0)
    with pytest.raises(InputError, match="must be positive, got 0"):
        allocate([1.0, 2.0], setting="local", error_weight=9.0, max_loss=0.0)
    with pytest.raises(InputError, match="variance must be above 0"):
        allocate([1.0, 2.0], setting="local", variance=0.0, error_weight=9.0, max_loss=1.0)
