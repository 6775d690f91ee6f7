"""The lemmas of docs/concepts/proofs.md, and the bound of the local problem, which never reads a solution.

Everything here is in normal form (variance 1, error weight 1), to which every instance scales.
"""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from hushbid.allocation import Allocation, Price, allocate, least_objective
from hushbid.allocation.precision import LAPLACE

KAPPA = 1.5 * 4 ** (1 / 3)
STEEPEST = 3 * math.sqrt(3) / (8 * math.sqrt(2))
WORTHWHILE = 1 / (2 * math.sqrt(2))


def solve(costs: np.ndarray, setting: str = "central", variance: float | np.ndarray = 1.0) -> Allocation:
    return allocate(costs, setting=setting, variance=variance, error_weight=1.0)


def some_costs(rng: np.random.Generator, n: int) -> np.ndarray:
    """Populations with one scale, many scales, ties, free people or clusters, around the scale where choices matter."""
    shape = rng.integers(6)
    if shape == 0:
        costs = rng.uniform(1, 2, n)
    elif shape == 1:
        costs = rng.exponential(size=n)
    elif shape == 2:
        costs = rng.lognormal(0, 3, n)
    elif shape == 3:
        costs = rng.choice([1.0, 1.5, 4.0], n)
    elif shape == 4:
        costs = rng.choice(np.exp(rng.uniform(-8, 1, 3)), n) * (1 + rng.choice([0, 1e-9, 1e-2]) * rng.random(n))
    else:
        costs = np.where(rng.random(n) < 0.05, 0.0, rng.uniform(0, 1, n))
    return costs * np.exp(rng.uniform(-10, 4))


# -- lemmas of the central problem ------------------------------------------------------------------------------------


def curve(costs: np.ndarray, mass: np.ndarray, level: float) -> tuple[float, float, float]:
    """``G``, ``a`` and ``g`` at a level, by their definitions."""
    below = mass * np.maximum(level - costs, 0)
    weights = below / below.sum()
    return float(below.sum()), float(weights @ costs), float(np.sum(weights**2 / mass))


def test_water_filling_weights_are_the_least_squares_at_their_mean_cost() -> None:
    rng = np.random.default_rng(6)
    for _ in range(10):
        costs, mass = rng.uniform(0, 1, 5), rng.uniform(0.2, 1, 5)
        _, a, g = curve(costs, mass, float(rng.uniform(costs.min(), 2)))
        fit = minimize(
            lambda w, mass=mass: np.sum(w**2 / mass),
            np.full(5, 0.2),
            bounds=[(0, 1)] * 5,
            constraints=[
                {"type": "eq", "fun": lambda w: w.sum() - 1},
                {"type": "eq", "fun": lambda w, costs=costs, a=a: w @ costs - a},
            ],
            method="SLSQP",
            tol=1e-12,
        )
        assert g == pytest.approx(fit.fun, rel=1e-6)


def test_the_curve_is_convex_smooth_and_falls_until_the_mean_of_all() -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        costs, mass = np.sort(rng.exponential(size=8)), rng.uniform(0.1, 1, 8)
        levels = costs[0] + np.geomspace(1e-3, 50, 400)
        gain, a, g = np.array([curve(costs, mass, level) for level in levels]).T
        moving = np.diff(a) > 1e-9
        slope = np.diff(g)[moving] / np.diff(a)[moving]
        assert (np.diff(gain) > 0).all()
        assert (np.diff(a) >= -1e-15).all()
        assert (np.diff(slope) >= -1e-6 * np.abs(slope[1:])).all()
        assert (slope >= -2 / gain[:-1][moving] * (1 + 1e-6)).all()  # g' = −2/G, so chords lie between its end values
        assert (slope <= -2 / gain[1:][moving] * (1 - 1e-6)).all()
        assert a[-1] <= mass @ costs / mass.sum()
        assert g[-1] >= 1 / mass.sum()


def test_h_falls_exactly_where_the_gain_is_below_three_cube_roots() -> None:
    rng = np.random.default_rng(8)
    checked = 0
    for _ in range(40):
        costs, mass = some_costs(rng, 6) + 1e-6, rng.uniform(0.1, 1, 6)
        levels = costs.min() + np.geomspace(1e-3, 1e3, 300) * costs.mean()
        gain, a, g = np.array([curve(costs, mass, level) for level in levels]).T
        h = g + KAPPA * np.cbrt(a) ** 2
        falls = KAPPA * gain < 3 * np.cbrt(a)
        moves = (np.diff(a) > 1e-7 * a[1:]) & (np.abs(np.diff(h)) > 1e-12 * h[1:]) & (falls[1:] == falls[:-1])
        assert ((np.diff(h) < 0) == falls[1:])[moves].all()
        checked += int(moves.sum())
    assert checked > 1000


def test_between_two_levels_the_curve_is_bounded_by_opposite_ends() -> None:
    rng = np.random.default_rng(10)
    for _ in range(100):
        n = int(rng.integers(2, 50))
        costs, mass = some_costs(rng, n), np.ones(n)
        levels = np.sort(costs.min() + rng.exponential(size=3) * costs.mean())
        (_, low, _), (_, a, g), (_, _, least) = (curve(costs, mass, level) for level in levels)
        assert g + KAPPA * np.cbrt(a) ** 2 >= (least + KAPPA * np.cbrt(low) ** 2) * (1 - 1e-12)


# -- the local bound --------------------------------------------------------------------------------------------------


def test_the_dual_bound_is_a_bound_and_tight_when_many_are_active() -> None:
    rng = np.random.default_rng(11)
    crowds = 0
    for _ in range(60):
        found = solve(some_costs(rng, int(rng.integers(1, 400))), "local")
        assert found.lower_bound <= found.objective
        if found.active >= 20:
            crowds += 1
            assert found.gap <= 1e-3
    assert crowds >= 10


def test_the_dual_bound_is_the_best_over_prices() -> None:
    rng = np.random.default_rng(12)
    for _ in range(8):
        costs = np.exp(rng.uniform(-6, 0, 8))
        bound = least_objective(costs, setting="local", variance=1.0, goal=Price(1.0))
        y = np.geomspace(1e-2, 1e4, 3000)
        prices = np.geomspace(1e-3, 30, 300)
        values = [
            2 * math.sqrt(p) + sum(min(0.0, float((c * y - p * y**2 / (y**2 + 2)).min())) for c in costs)
            for p in prices
        ]
        assert bound >= max(values) * (1 - 1e-3)
        assert bound >= KAPPA * np.cbrt(costs.min()) ** 2 * (1 - 1e-10)


def test_one_person_whose_noise_costs_more_than_her_variance_is_certified_by_the_noise() -> None:
    assert solve(np.array([1e9]), "local").gap <= 1e-5


def test_few_people_are_active_in_the_local_optimum() -> None:
    rng = np.random.default_rng(13)
    largest = 0.0
    for _ in range(400):
        n, variance, error_weight = (
            int(rng.integers(2, 500)),
            float(rng.uniform(0.01, 1)),
            float(10 ** rng.uniform(-2, 4)),
        )
        costs = some_costs(rng, n) + 1e-12
        found = allocate(costs, setting="local", variance=variance, error_weight=error_weight)
        if found.active >= 2:
            limit = 2.72 * variance**0.75 * math.sqrt(error_weight / costs.min())
            assert found.active <= limit
            largest = max(largest, found.active / limit)
    assert largest > 0.3  # the bound is of the right order


@pytest.mark.parametrize(
    ("setting", "lowest", "error_weight", "exponent"),
    [
        ("local", 1.0, None, 1 / 2),
        ("local", 0.0, None, 2 / 3),
    ],
)
def test_the_number_of_active_people_grows_with_the_stated_power(
    setting: str, lowest: float, error_weight: float | None, exponent: float
) -> None:
    few, many = (
        allocate(lowest + (np.arange(n) + 0.5) / n, setting=setting, error_weight=error_weight).active
        for n in (1000, 100_000)
    )
    assert math.log(many / few, 100) == pytest.approx(exponent, abs=0.02)


# -- lemmas of the local problem --------------------------------------------------------------------------------------


def q(y: np.ndarray) -> np.ndarray:
    return y**2 / (y**2 + 2)


def slope(y: np.ndarray) -> np.ndarray:
    return 4 * y / (y**2 + 2) ** 2


def high_branch(ratio: np.ndarray) -> np.ndarray:
    """The larger root of ``q'(y) = ratio`` by bisection."""
    low, high = np.full_like(ratio, math.sqrt(2 / 3)), np.maximum(np.cbrt(4 / ratio), 1.0)
    for _ in range(60):
        middle = (low + high) / 2
        steep = slope(middle) > ratio
        low, high = np.where(steep, middle, low), np.where(steep, high, middle)
    return (low + high) / 2


def balance_at(costs: np.ndarray, k: int) -> tuple[float, float] | None:
    """``J_k`` and ``P_k`` with the cheapest ``k`` on the high branch, by a bracketing root finder; None if none."""

    def excess(log_price: float) -> float:
        return float(np.sum(q(high_branch(costs[:k] / math.exp(log_price))))) - math.exp(-log_price / 2)

    least = math.log(costs[k - 1] / STEEPEST)
    if excess(least) > 0:
        return None
    price = math.exp(brentq(excess, least, max(least, 0.0) + 10, xtol=1e-13))
    y = high_branch(costs[:k] / price)
    return float(1 / np.sum(q(y)) + costs[:k] @ y), price


def joining(cost: float, price: float) -> float:
    """``φ``: what somebody at ``cost`` adds on the high branch at a price."""
    y = high_branch(np.array([min(cost / price, STEEPEST)]))
    return float((cost * y - price * q(y))[0])


def test_the_closed_form_of_the_high_root_solves_its_equation() -> None:
    ratio = np.concatenate([np.geomspace(1e-200, STEEPEST * (1 - 1e-9), 2000), [STEEPEST]])
    y = LAPLACE.high_root(ratio)
    np.testing.assert_allclose(slope(y)[:-1], ratio[:-1], rtol=1e-11)
    assert (y >= math.sqrt(2 / 3) * (1 - 1e-7)).all()
    np.testing.assert_allclose(y, high_branch(ratio), rtol=1e-7)


def test_the_elementary_facts_about_q() -> None:
    y = np.geomspace(1e-4, 1e4, 2001)
    np.testing.assert_allclose(y * slope(y), 2 * q(y) * (1 - q(y)), rtol=1e-9, atol=1e-15)
    bend = (8 - 12 * y**2) / (y**2 + 2) ** 3
    np.testing.assert_array_equal(bend > 0, q(y) < 1 / 4)
    np.testing.assert_allclose(np.gradient(slope(y), y)[1:-1], bend[1:-1], atol=2e-3)
    assert slope(y).max() == pytest.approx(STEEPEST, rel=1e-4)
    assert (q(y) / y).max() == pytest.approx(WORTHWHILE, rel=1e-4)


def test_a_stationary_point_with_somebody_on_the_low_branch_is_never_the_best() -> None:
    """Choosing losses freely and costs ``ψ = q'(y)/Λ²`` gives every stationary point there is."""
    rng = np.random.default_rng(14)
    for _ in range(600):
        k, low = int(rng.integers(2, 6)), int(rng.integers(1, 3))
        share = np.concatenate([rng.uniform(0.25, 1, k), rng.uniform(0.001, 0.25, low)])[-max(k, low + 1) :]
        share = rng.permutation(share)
        y = np.sqrt(2 * share / (1 - share))
        supply = share.sum()
        costs = slope(y) / supply**2
        value = 1 / supply + costs @ y
        assert solve(costs, "local").objective < value * (1 - 1e-12)


def test_an_optimum_of_the_local_problem_is_a_stationary_point_on_the_high_branch() -> None:
    rng = np.random.default_rng(15)
    for _ in range(300):
        share = np.sort(rng.uniform(0.25, 1, int(rng.integers(2, 8))))
        y = np.sqrt(2 * share / (1 - share))
        costs = slope(y) / share.sum() ** 2
        assert solve(costs, "local").objective <= (1 / share.sum() + costs @ y) * (1 + 1e-12)


def test_dropping_the_second_of_two_saves_at_least_what_the_proof_says() -> None:
    p, r = np.meshgrid(np.linspace(0.01, 0.999, 150), np.linspace(0.001, 0.9, 150))
    supply = p + r
    price = supply**-2.0
    both = price * (supply + 2 * p * (1 - p) + 2 * r * (1 - r))
    y = np.sqrt(2 * p / (1 - p))
    alone = 1 + KAPPA * np.cbrt(price * slope(y)) ** 2
    assert (both - alone >= price * r * (1 - 3 * r) - 1e-9 * both).all()


def test_keeping_the_last_of_many_pays_only_above_a_share() -> None:
    others, r = np.meshgrid(np.linspace(0.01, 20, 300), np.linspace(0.001, 0.999, 300))
    supply = others + r
    expense = 2 * r * (1 - r) / supply**2
    pays = 1 / others - 1 / supply >= expense
    clear = np.abs(r - others / (1 + 2 * others)) > 1e-9
    np.testing.assert_array_equal(pays[clear], (r >= others / (1 + 2 * others))[clear])


def test_three_people_at_the_steepest_point_are_one_too_many() -> None:
    """The case that the inequality for the last of many leaves open."""
    cost = STEEPEST * 16 / 9
    three = 4 / 3 + 3 * cost * math.sqrt(2 / 3)
    assert 1 + KAPPA * np.cbrt(cost) ** 2 < 0.93 * three


def test_with_unequal_variances_the_cheapest_need_not_be_bought_from_locally() -> None:
    """Why a vector of variances is refused: the person at cost 11 alone beats all that includes the one at 1."""
    y = np.append(0.0, np.geomspace(1e-3, 1e3, 1500))
    first, second = np.meshgrid(y, y, indexing="ij")
    with np.errstate(divide="ignore"):
        value = 1000 / (first**2 / (first**2 + 2) + second**2 / (0.01 * second**2 + 2)) + first + 11 * second
    assert np.unravel_index(value.argmin(), value.shape)[0] == 0
    assert value.min() < 0.999 * value[:, 0].min()


def test_the_value_by_number_of_people_is_convex_and_two_neighbours_suffice() -> None:
    rng = np.random.default_rng(16)
    compared = 0
    for _ in range(40):
        costs = np.sort(np.exp(rng.uniform(-7, 0, 9)))
        if rng.random() < 0.3:
            costs[4:7] = costs[5]
        alone = 1 + KAPPA * np.cbrt(costs[0]) ** 2
        found = [balance_at(costs, k) for k in range(1, 10)]
        exists = [balance is not None for balance in found]
        assert exists == sorted(exists, reverse=True)  # none for k, then none for more
        known = [balance for balance in found if balance is not None]
        values, prices = np.array([value for value, _ in known]), np.array([price for _, price in known])
        assert values[0] == pytest.approx(alone, rel=1e-10)
        assert (np.diff(prices) < 0).all()
        assert (np.diff(values, 2) >= -1e-10).all()
        worthwhile = np.searchsorted(costs, prices * WORTHWHILE, side="right")
        for k in range(1, len(known)):  # the k cheapest and one more
            change = values[k] - values[k - 1]
            assert change >= joining(costs[k], prices[k - 1]) - 1e-10
            assert change <= joining(costs[k], prices[k]) + 1e-10
            if worthwhile[k - 1] <= k:
                assert values[k:].min() >= values[k - 1] - 1e-10
            if worthwhile[k] >= k + 1:
                assert values[: k + 1].min() >= values[k] - 1e-10
            compared += 1
        best = solve(costs, "local")
        assert best.objective == pytest.approx(values.min(), rel=1e-10)
        assert values[best.active - 1] == pytest.approx(values.min(), rel=1e-10)
    assert compared > 100


def test_somebody_alone_on_the_low_branch_has_no_company() -> None:
    rng = np.random.default_rng(17)
    for cost in np.geomspace(4 / (2 / 3) ** 1.5, 1e6, 30):
        assert balance_at(np.sort(cost * rng.uniform(1, 2, 4)), 2) is None
