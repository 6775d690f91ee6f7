"""The cheapest local purchase of an accuracy: global, truthful, certified; and why a budget is refused there."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from hushbid.allocation import Accuracy, Budget, allocate, replies
from hushbid.errors import InputError, Unreachable


def loss_for(q: float) -> float:
    return math.sqrt(2.0 * q / (1.0 - q))


def slope_at(q: float) -> float:
    return 1.0 / (math.sqrt(2.0 * q * (1.0 - q)) * (1.0 - q))


def part(price: float, *, low: bool) -> float:
    """The low or the high ``q`` at which ``y'(q)`` is ``price``."""
    if price <= slope_at(0.25):
        return 0.25
    ends = (1e-18, 0.25) if low else (0.25, 1.0 - 1e-15)
    return float(brentq(lambda q: slope_at(q) - price, *ends, xtol=1e-17))


def every_stationary_point(costs: list[float], needed: float) -> float:
    """The cheapest of all points with equal slopes for every number of people, the last one high or low."""
    best = math.inf
    for k in range(1, len(costs) + 1):
        if k <= needed:
            continue
        for low in (False, True):

            def parts(price: float, k: int = k, low: bool = low) -> list[float]:
                return [part(price / costs[j], low=low and j == k - 1) for j in range(k)]

            grid = costs[k - 1] * slope_at(0.25) * np.concatenate([[1.0], 1.0 + np.logspace(-6, 5, 45)])
            excess = [sum(parts(price)) - needed for price in grid]
            for (left, one), (right, other) in pairwise(zip(grid, excess, strict=True)):
                if one * other <= 0.0:
                    price = brentq(lambda p: sum(parts(p)) - needed, left, right, xtol=1e-15 * left, rtol=1e-14)
                    best = min(best, sum(c * loss_for(q) for c, q in zip(costs, parts(price), strict=False)))
    return best


def instances(how_many: int, seed: int = 3):
    """Costs and needed precisions, many of them with a remainder that a dear last person may fill."""
    rng = np.random.default_rng(seed)
    for _ in range(how_many):
        n = int(rng.integers(1, 5))
        costs = np.sort(np.exp(rng.normal(size=n) * rng.choice([0.1, 0.5, 1.5, 3.0])))
        needed = rng.uniform(0.05, 0.98) * n
        if rng.random() < 0.6:
            needed = max(int(rng.integers(0, n)) + rng.choice([-0.03, 0.003, 0.03, 0.1, 0.2]), 0.01)
        yield costs, float(min(needed, 0.99 * n))


def test_no_stationary_point_is_cheaper_and_some_optima_have_a_low_last_person() -> None:
    low = 0
    for costs, needed in instances(45):
        variance = 0.2
        found = allocate(costs, setting="local", variance=variance, goal=Accuracy(math.sqrt(variance / needed)))
        truth = every_stationary_point(costs.tolist(), needed) / math.sqrt(variance)
        assert found.objective == pytest.approx(truth, rel=1e-9)
        y = found.privacy_loss
        assert costs @ y == pytest.approx(found.objective, rel=1e-12)
        q = y * y / (variance * y * y + 2.0)
        assert q.sum() == pytest.approx(1.0 / found.mse, rel=1e-12)
        assert found.weights == pytest.approx(q / q.sum(), rel=1e-12)
        low += found.active > 1 and variance * q[q > 0].min() < 0.25
    assert low >= 3


def test_a_dear_last_person_only_fills_a_remainder() -> None:
    found = allocate([1.0, 1.0, 300.0], setting="local", variance=1.0, goal=Accuracy(math.sqrt(1.0 / 2.05)))
    assert found.active == 3
    assert loss_for(0.05) < found.privacy_loss[2] < loss_for(0.25)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.01, 100.0), min_size=1, max_size=9),
    st.floats(0.01, 0.99),
    st.floats(0.01, 2.0),
)
def test_the_certificate_is_never_above_the_optimum(costs: list[float], share: float, variance: float) -> None:
    goal = Accuracy(math.sqrt(variance / (share * len(costs))))
    found = allocate(costs, setting="local", variance=variance, goal=goal)
    assert 0.0 < found.lower_bound <= found.objective
    # the dual leaves at most the nonconvexity of one person
    assert found.objective - found.lower_bound <= 2.0 * max(costs) * math.sqrt(2.0 / variance)


def test_the_certificate_is_tight_for_many_people() -> None:
    costs = 1.0 + np.random.default_rng(1).random(3000)
    found = allocate(costs, setting="local", variance=0.25, goal=Accuracy(math.sqrt(0.25 / 800.3)))
    assert found.gap < 1e-7


def test_a_larger_market_is_bought_from_up_to_its_worthwhile_people() -> None:
    costs = 1.0 + np.random.default_rng(2).random(200_000)
    found = allocate(costs, setting="local", variance=0.25, goal=Accuracy(math.sqrt(0.25 / 2000.7)))
    y = found.privacy_loss
    assert (y * y / (0.25 * y * y + 2.0)).sum() == pytest.approx(1.0 / found.mse, rel=1e-12)
    assert costs[y > 0].max() < costs[y == 0].min()
    assert found.gap < 1e-7


def random_market(rng: np.random.Generator) -> tuple[np.ndarray, float]:
    n = int(rng.integers(2, 60))
    kinds = [
        1.0 + rng.random(n),
        np.round(1.0 + rng.random(n), 1),
        np.exp(2.0 * rng.normal(size=n)),
        np.where(rng.random(n) < 0.9, 1.0, 10.0 ** rng.integers(0, 6, n)),
    ]
    costs = kinds[int(rng.integers(4))]
    if rng.random() < 0.3:
        costs[rng.integers(0, n, 2)] = rng.choice([0.0, np.inf])
    needed = rng.uniform(0.01, 0.999) * n
    if rng.random() < 0.3:
        needed = max(math.floor(needed) + rng.choice([0.01, 0.1, -0.01]), 0.02)
    return costs, needed


def test_replies_agree_with_solving_again_for_every_pair_ties_free_people_and_absence_included() -> None:
    rng = np.random.default_rng(8)
    gone = 0
    for _ in range(40):
        costs, needed = random_market(rng)
        options = {"setting": "local", "variance": 0.25, "tie_key": rng.permutation(costs.size)}
        options["goal"] = Accuracy(0.5 / math.sqrt(needed))
        if not (costs < np.inf).any():
            continue
        rows = rng.integers(0, costs.size, 7)
        moved = costs[rows] * np.exp(rng.normal(size=7))
        moved[:4] = np.inf, costs[rows[1]], 0.0, costs[rng.integers(costs.size)]
        got = replies(costs, **options).at(rows, moved)
        for row, cost, value, loss, mse in zip(rows, moved, got.value, got.loss, got.mse, strict=True):
            changed = costs.copy()
            changed[row] = cost
            try:
                found = allocate(changed, **options)
            except Unreachable:
                assert (value, loss, mse) == (np.inf, 0.0, np.inf)
                gone += 1
                continue
            assert value == pytest.approx(found.objective, rel=1e-10)
            assert loss == pytest.approx(found.privacy_loss[row], rel=1e-6)
            assert mse == found.mse
    assert gone > 5


def test_interpolated_replies_of_many_people_agree_with_solving_again() -> None:
    costs = 1.0 + np.random.default_rng(4).random(900)
    options = {"setting": "local", "variance": 0.25, "goal": Accuracy(0.5 / math.sqrt(300.2))}
    rows = np.arange(0, 900, 90)
    moved = np.linspace(0.2, 2.5, rows.size)
    got = replies(costs, **options).at(rows, moved)
    for j, row in enumerate(rows):
        changed = costs.copy()
        changed[row] = moved[j]
        found = allocate(changed, **options)
        assert got.value[j] == pytest.approx(found.objective, rel=1e-12)
        assert got.loss[j] == pytest.approx(found.privacy_loss[row], rel=1e-8)


def test_a_loss_never_rises_with_ones_own_cost_and_is_the_slope_of_the_value() -> None:
    rng = np.random.default_rng(6)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    jumped = False
    for costs, needed in instances(12, seed=9):
        rule = replies(costs, setting="local", variance=1.0, goal=Accuracy(1.0 / math.sqrt(needed)))
        row = int(rng.integers(costs.size))
        grid = np.exp(np.linspace(-3.0, 4.0, 301))
        who = np.full(grid.size, row)
        got = rule.at(who, grid)
        assert (np.diff(got.loss) <= 1e-9 * got.loss[:-1]).all()
        jumped |= bool((got.loss[1:] < 0.8 * got.loss[:-1]).any())
        # Gauss' quadrature between neighbours; across a jump the loss encloses the difference
        middle, half = 0.5 * (grid[1:] + grid[:-1]), 0.5 * np.diff(grid)
        inner = rule.at(np.full(8 * half.size, row), (middle[:, None] + half[:, None] * nodes).ravel())
        area = half * (inner.loss.reshape(half.size, 8) @ weights)
        rise = np.diff(got.value)
        smooth = got.loss[1:] > 0.8 * got.loss[:-1]
        assert rise[smooth] == pytest.approx(area[smooth], rel=1e-9)
        assert (rise >= 2.0 * half * got.loss[1:] - 1e-9).all()
        assert (rise <= 2.0 * half * got.loss[:-1] + 1e-9).all()
    assert jumped


def test_a_person_without_whom_the_accuracy_is_unreachable_is_always_bought_from() -> None:
    rule = replies([1.0, 2.0], setting="local", variance=0.25, goal=Accuracy(0.4))
    got = rule.at(np.array([0, 0, 0]), np.array([1.0, 1e6, np.inf]))
    assert got.loss[1] > 0.0
    assert got.value[2] == np.inf
    assert got.mse.tolist() == [0.4**2, 0.4**2, np.inf]


def test_equals_are_chosen_by_key_and_then_by_position() -> None:
    goal = Accuracy(0.5)
    assert allocate([1.0] * 5, setting="local", variance=0.3, goal=goal).privacy_loss[3:].tolist() == [0.0, 0.0]
    keyed = allocate([1.0] * 5, setting="local", variance=0.3, goal=goal, tie_key=[5, 4, 3, 2, 1])
    assert np.flatnonzero(keyed.privacy_loss).tolist() == [5 - keyed.active + j for j in range(keyed.active)]


def test_people_who_cost_nothing_share_the_work_if_they_are_enough_and_have_no_noise_if_not() -> None:
    enough = allocate([0.0, 0.0, 1.0, 2.0], setting="local", variance=0.25, goal=Accuracy(0.4))
    assert enough.objective == enough.lower_bound == 0.0
    assert enough.privacy_loss[:2] == pytest.approx([math.sqrt(2.0 / (2 * 0.16 - 0.25))] * 2)
    scarce = allocate([0.0, 0.0, 1.0, 2.0], setting="local", variance=0.25, goal=Accuracy(0.3))
    assert scarce.privacy_loss.tolist()[:2] == [math.inf, math.inf]
    assert scarce.privacy_loss[2] == pytest.approx(2.0 * loss_for(0.25 / 0.09 - 2.0))


@pytest.mark.parametrize("variance", [0.0, 1e-300, 0.01])
def test_the_cheapest_alone_is_enough_where_she_supplies_no_more_than_a_half(variance: float) -> None:
    costs, goal = [3.0, 1.0, 2.0], Accuracy(0.3)
    found = allocate(costs, setting="local", variance=variance, goal=goal)
    assert found.privacy_loss == pytest.approx([0.0, math.sqrt(2.0 / (0.09 - variance)), 0.0])
    assert found.gap < 1e-10
    got = replies(costs, setting="local", variance=variance, goal=goal).at(np.array([0, 1]), np.array([0.5, 9.0]))
    assert got.loss == pytest.approx([found.privacy_loss[1], 0.0])
    assert got.value == pytest.approx([0.5 * found.privacy_loss[1], 2.0 * found.privacy_loss[1]])


def test_an_accuracy_beyond_the_data_is_refused_with_the_least_one() -> None:
    with pytest.raises(Unreachable, match=r"must be above 0\.25, .* these 4 people's data .* got 0\.2\."):
        allocate([0.0, 1.0, 1.0, 2.0, np.inf], setting="local", variance=0.25, goal=Accuracy(0.2))


def best_local_spending(costs: tuple[float, float], budget: float, variance: float) -> tuple[float, float]:
    """The most precise two losses for a budget, by trying every way to divide it."""

    def imprecision(share: float) -> float:
        losses = (share * budget / costs[0], (1.0 - share) * budget / costs[1])
        return -sum(y * y / (variance * y * y + 2.0) for y in losses)

    grid = np.linspace(0.0, 1.0, 2001)
    values = [imprecision(share) for share in grid]
    candidates = [0.0, 1.0]
    for j in range(1, 2000):
        if values[j] <= min(values[j - 1], values[j + 1]):
            bounds = (float(grid[j - 1]), float(grid[j + 1]))
            candidates.append(float(minimize_scalar(imprecision, bounds=bounds, method="bounded").x))
    share = min(candidates, key=imprecision)
    return share * budget / costs[0], (1.0 - share) * budget / costs[1]


def test_under_a_local_budget_privacy_can_be_a_giffen_good_so_it_is_refused() -> None:
    cheap = best_local_spending((0.2237, 1.0), 2.434, 0.25)
    dear = best_local_spending((0.2547, 1.0), 2.434, 0.25)
    assert cheap == pytest.approx((6.26, 1.03), abs=0.01)
    assert dear == pytest.approx((9.56, 0.0), abs=0.01)
    with pytest.raises(InputError, match="Giffen good"):
        allocate([0.2237, 1.0], setting="local", variance=0.25, goal=Budget(2.434))
    with pytest.raises(InputError, match="Giffen good"):
        replies([0.2237, 1.0], setting="local", variance=0.25, goal=Budget(2.434))
