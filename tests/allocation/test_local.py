"""The local optimum: a table of markets (goal, curve, cap, costs) and what holds of every one of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from hushbid.allocation import (
    Accuracy,
    Allocation,
    Budget,
    Goal,
    Price,
    Replies,
    ReplyRule,
    allocate,
    least_objective,
    replies,
)
from hushbid.allocation.local_rule import LocalRule
from hushbid.allocation.precision import LAPLACE, RESPONSE, Curve
from hushbid.allocation.queue import PrefixSums
from hushbid.common.arrays import FloatArray
from hushbid.errors import InputError, Unreachable
from hushbid.estimation import Strata
from tests.extent import TIMES, each

KINDS = [
    (goal, curve, capped) for goal in ("price", "accuracy") for curve in ("laplace", "response") for capped in (0, 1)
]
every_kind = each("kind", KINDS)


def precision_of(losses: FloatArray, variance: float, response: bool) -> FloatArray:
    """One over the variance of what each person sends, times the variance of their data."""
    if response:
        return np.tanh(losses / 2.0) ** 2
    with np.errstate(divide="ignore"):
        return 1.0 / (1.0 + 2.0 / (variance * losses**2))


def loss_for(precision: FloatArray, variance: float, response: bool) -> FloatArray:
    """The inverse of `precision_of`."""
    with np.errstate(divide="ignore"):
        if response:
            return 2.0 * np.arctanh(np.sqrt(precision))
        return np.sqrt(2.0 * precision / (1.0 - precision) / variance)


@dataclass(frozen=True)
class Market:
    """One local problem."""

    costs: FloatArray
    variance: float
    goal: Goal
    response: bool
    cap: float
    tie_key: FloatArray | None = None

    @property
    def terms(self) -> dict[str, Any]:
        """What `allocate` and `replies` are called with, besides costs."""
        return {
            "setting": "local",
            "variance": self.variance,
            "goal": self.goal,
            "max_loss": self.cap,
            "tie_key": self.tie_key,
            "response": self.response,
        }

    def solve(self, costs: FloatArray | None = None) -> Allocation:
        return allocate(self.costs if costs is None else costs, **self.terms)

    def rule(self) -> ReplyRule:
        return replies(self.costs, **self.terms)

    @property
    def top(self) -> float:
        """The precision at the cap."""
        return float(precision_of(np.array(self.cap), self.variance, self.response)) if self.cap < math.inf else 1.0

    @property
    def needed(self) -> float:
        """The precision that an accuracy takes."""
        return self.variance / self.goal.number**2

    def objective(self, losses: FloatArray) -> float:
        """From the definition; infinite where an accuracy is missed."""
        bought = losses > 0.0
        supplied = float(precision_of(losses[bought], self.variance, self.response).sum())
        charged = bought & (self.costs > 0.0)
        paid = float(self.costs[charged] @ losses[charged])
        if self.goal.kind == "accuracy":
            return paid if supplied >= self.needed * (1.0 - 1e-11) else math.inf
        return self.goal.number * self.variance / supplied + paid


def markets(kind: tuple[str, str, int], how_many: int, most: int, seed: int) -> Iterator[Market]:
    """Costs near and far from each other, tied and free; caps from binding hard to hardly; remainders to be filled."""
    goal, curve, capped = kind
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    for _ in range(how_many):
        n, response = int(rng.integers(1, most + 1)), curve == "response"
        variance = 0.25 if response else float(10.0 ** rng.uniform(-1.5, 0.3))
        turn = (RESPONSE if response else LAPLACE).turn / math.sqrt(variance)
        cap = turn * float(10.0 ** rng.uniform(-0.8, 0.7)) if capped else math.inf
        costs = np.exp(rng.normal(size=n) * rng.choice([0.02, 0.1, 0.5, 1.5]))
        if rng.random() < 0.3:
            costs = np.ceil(10.0 * costs / costs.max()) / 10.0
        if rng.random() < 0.15:
            costs[0] = 0.0
        market = Market(costs, variance, Price(1.0), response, cap, rng.permutation(n).astype(float))
        if goal == "price":
            aim: Goal = Price(float(10.0 ** rng.uniform(-1.5, 2.5)) / variance**1.5)
        else:
            share = rng.uniform(0.05, 0.98) * n
            if rng.random() < 0.5:  # a little more or less than some people can supply
                share = int(rng.integers(0, n)) + rng.choice([-0.03, 1e-6, 0.003, 0.03, 0.1, 0.2])
            aim = Accuracy(math.sqrt(variance / (market.top * min(max(share, 0.01), 0.999 * n))))
        yield Market(costs, variance, aim, response, cap, market.tie_key)


def descent(market: Market, start: FloatArray) -> float:
    """The objective at the end of a descent in precisions from ``start``."""
    highest = min(market.top, 1.0 - 1e-12)
    bounds = [(1e-13 * highest, highest)] * start.size

    def paid(q: FloatArray) -> float:
        return float(market.costs @ loss_for(q, market.variance, market.response))

    if market.goal.kind == "price":
        weight = market.goal.number * market.variance
        options = {"ftol": 1e-15, "gtol": 1e-12}
        found = minimize(lambda q: weight / q.sum() + paid(q), start, bounds=bounds, method="L-BFGS-B", options=options)
        return float(found.fun)
    enough = {"type": "ineq", "fun": lambda q: q.sum() / market.needed - 1.0}
    found = minimize(paid, start, bounds=bounds, constraints=[enough], method="SLSQP", options={"ftol": 1e-14})
    reached = np.minimum(found.x * max(1.0, market.needed / found.x.sum() * (1.0 + 1e-15)), highest)
    return paid(reached) if reached.sum() >= market.needed * (1.0 - 1e-14) else math.inf


@every_kind
def test_descent_from_many_starts_finds_nothing_better_and_the_bound_holds(kind: tuple[str, str, int]) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    for market in markets(kind, 7 * TIMES, 5, seed=2):
        found = market.solve()
        assert found.privacy_loss.max() <= market.cap
        assert found.objective == pytest.approx(market.objective(found.privacy_loss), rel=1e-11)
        supplied = precision_of(found.privacy_loss, market.variance, market.response)
        assert found.mse == pytest.approx(market.variance / supplied.sum(), rel=1e-11)
        assert found.weights == pytest.approx(supplied / supplied.sum(), rel=1e-11)
        for start in range(8):
            share = rng.uniform(0.0, 1.0, market.costs.size) * (rng.random(market.costs.size) < 0.75)
            share = np.full(market.costs.size, 0.6 if market.cap == math.inf else 1.0) if start == 0 else share
            first = np.clip(share * market.top, 1e-6 * market.top, min(market.top, 1.0 - 1e-9))
            assert found.objective <= descent(market, first) * (1.0 + 1e-9)
        assert 0.0 <= found.lower_bound <= found.objective * (1.0 + 1e-12)


def test_some_optima_of_every_kind_but_a_price_without_a_cap_end_on_the_convex_branch() -> None:
    ends = {}
    for kind in KINDS:
        ends[kind] = 0
        for market in markets(kind, 120, 4, seed=11):
            found = market.solve()
            least = precision_of(found.privacy_loss[found.privacy_loss > 0], market.variance, market.response).min()
            turn = 1 / 3 if market.response else 1 / 4
            ends[kind] += found.active > 1 and least < min(turn, market.top) * (1.0 - 1e-6)
    assert [kind for kind, count in ends.items() if count == 0] in (
        [("price", "laplace", 0), ("price", "response", 0)],
        [("price", "laplace", 0), ("price", "response", 0), ("price", "response", 1)],
    )


@pytest.mark.parametrize(
    ("costs", "cap", "losses"),
    [([4.989, 5.132], 0.594, [0.594, 0.5602]), ([1.411, 1.441], 0.971, [0.9613, 0.8133])],
)
def test_the_second_of_two_can_be_on_the_convex_branch_next_to_a_first_at_the_cap_or_near_it(
    costs: list[float], cap: float, losses: list[float]
) -> None:
    found = allocate(costs, setting="local", variance=1.0, error_weight=1.0, max_loss=cap)
    assert found.privacy_loss == pytest.approx(losses, abs=1e-4)
    assert found.privacy_loss[1] < math.sqrt(2.0 / 3.0)


def test_an_expensive_last_person_only_fills_a_remainder() -> None:
    found = allocate([1.0, 1.0, 300.0], setting="local", variance=1.0, goal=Accuracy(math.sqrt(1.0 / 2.05)))
    assert found.active == 3
    low, turn = loss_for(np.array([0.05, 0.25]), 1.0, False)
    assert low < found.privacy_loss[2] < turn


@pytest.mark.parametrize("seed", [106, 131, 191])
def test_where_many_leave_the_cap_at_once_losses_cost_what_the_objective_says(seed: int) -> None:
    """Newton's method stepped from one end of the last person's interval to the other and back."""
    rng = np.random.default_rng(seed)
    costs, cap, error = np.sort(rng.lognormal(0.0, 1.0, 25)), rng.uniform(0.3, 1.5), rng.uniform(0.45, 0.8)
    found = allocate(costs, setting="local", variance=3.0, goal=Accuracy(error), max_loss=cap)
    supplied = (found.privacy_loss**2 / (3.0 * found.privacy_loss**2 + 2.0)).sum()
    assert supplied == pytest.approx(error**-2.0, rel=1e-9)
    assert found.objective == pytest.approx(costs @ found.privacy_loss, rel=1e-9)


@every_kind
def test_the_rule_agrees_with_solving_again_for_every_pair_ties_free_people_and_absence_included(
    kind: tuple[str, str, int],
) -> None:
    rng = np.random.default_rng(5)
    for market in markets(kind, 8 * TIMES, 30, seed=5):
        costs = market.costs
        rows = rng.integers(0, costs.size, 6)
        moved = costs[rows] * np.exp(rng.normal(size=6))
        moved[:4] = np.inf, costs[rows[1]], 0.0, costs[rng.integers(costs.size)]
        got = market.rule().at(rows, moved)
        for row, cost, value, loss, mse in zip(rows, moved, got.value, got.loss, got.mse, strict=True):
            changed = costs.copy()
            changed[row] = cost
            if changed.min() == np.inf or (market.goal.kind == "accuracy" and not reachable(market, changed)):
                assert (value, loss, mse) == (np.inf, 0.0, np.inf)
                continue
            found = market.solve(changed)
            assert value == pytest.approx(found.objective, rel=1e-12)
            assert loss == pytest.approx(found.privacy_loss[row], rel=1e-9, abs=1e-12)
            assert mse == pytest.approx(found.mse, rel=1e-12)


@every_kind
def test_a_rule_that_is_asked_about_nobody_answers_nothing_and_everybody_else_as_before(
    kind: tuple[str, str, int],
) -> None:
    [market] = markets(kind, 1, 30, seed=7)
    rule, rows = market.rule(), np.arange(market.costs.size)
    before = rule.at(rows, 1.1 * market.costs)
    nothing = rule.at(rows[:0], market.costs[:0])
    assert (nothing.value.size, nothing.loss.size, nothing.mse.size) == (0, 0, 0)
    again = rule.at(rows, 1.1 * market.costs)
    assert again.loss == pytest.approx(before.loss, rel=1e-12)


def reachable(market: Market, costs: FloatArray) -> bool:
    return bool(np.count_nonzero(costs < np.inf) * market.top > market.needed)


@every_kind
def test_a_loss_never_rises_with_the_own_cost_and_is_the_slope_of_the_value(kind: tuple[str, str, int]) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(8)
    rng = np.random.default_rng(6)
    for market in markets(kind, 5 * TIMES, 5, seed=6):
        rule, row = market.rule(), int(rng.integers(market.costs.size))
        scale = market.goal.number * market.variance**1.5 if market.goal.kind == "price" else 20.0
        grid = scale * np.exp(np.linspace(-7.0, 3.0, 201))

        def at(costs: FloatArray, rule: ReplyRule = rule, row: int = row) -> Replies:
            return rule.at(np.full(costs.size, row), costs)

        got = at(grid)
        finite = got.loss[np.isfinite(got.loss)]
        assert (np.diff(got.loss) <= 1e-12 * finite.max(initial=0.0)).all()
        assert got.loss.max() <= market.cap
        middle, half = 0.5 * (grid[1:] + grid[:-1]), 0.5 * np.diff(grid)
        area = half * (at((middle[:, None] + half[:, None] * nodes).ravel()).loss.reshape(half.size, 8) @ weights)
        rise, most = np.diff(got.value), got.value.max()
        # between neighbours without a corner or a jump the quadrature is exact; elsewhere the losses enclose the rise
        smooth = (got.loss[1:] > 0.9 * got.loss[:-1]) & ((got.loss[:-1] < market.cap) | (got.loss[1:] == market.cap))
        corner = (got.loss[:-1] >= 0.98 * market.cap) & (got.loss[1:] < market.cap)
        exact = 1e-9 if market.cap == math.inf else 1e-4  # somebody else may reach or leave the cap in between
        assert rise[smooth & ~corner] == pytest.approx(area[smooth & ~corner], rel=exact, abs=1e-11 * most)
        assert (rise >= 2.0 * half * got.loss[1:] - 1e-12 * most).all()
        assert (rise <= 2.0 * half * got.loss[:-1] + 1e-12 * most).all()


@each("cap", [math.inf, 2.9, 1.0])
@each("goal", [Price(4e5), Accuracy(0.5 / math.sqrt(300.2))])
def test_sums_off_a_table_are_those_of_everybody_one_by_one(goal: Goal, cap: float) -> None:
    costs = 1.0 + np.random.default_rng(4).random(5000)
    market = Market(costs, 0.25, goal, False, cap)
    rule, rows, moved = market.rule(), np.arange(0, 5000, 500), np.linspace(0.2, 2.5, 10)
    order = np.argsort(costs)
    rows[::2] = order[:250:50]  # some who are bought from
    got = rule.at(rows, moved)
    assert isinstance(rule, LocalRule)
    sums = rule._strata[0].market.sums
    assert sums._tables or cap == 1.0, "nothing was read off a table"  # below the inflection all are at the cap
    for j, row in enumerate(rows):
        changed = costs.copy()
        changed[row] = moved[j]
        found = market.solve(changed)
        assert got.value[j] == pytest.approx(found.objective, rel=1e-14)
        assert got.loss[j] == pytest.approx(found.privacy_loss[row], rel=1e-12)
    count = max(sums._tables, default=rows.size)
    prices = np.exp(sums._middle + sums._half * np.linspace(-1.0, 1.0, 50))
    plain = PrefixSums(sums.costs, sums.supply)
    counts = np.full(prices.size, count)
    np.testing.assert_allclose(sums.at(counts, prices), plain.at(counts, prices), rtol=1e-13, atol=1e-13 * count)


@each("people", [3000, 200_000])
@each("goal", [Price(2e5), Accuracy(0.5 / math.sqrt(800.3))])
@each("response", [False, True])
def test_many_people_are_bought_from_up_to_their_worth_and_certified(people: int, goal: Goal, response: bool) -> None:
    costs = 1.0 + np.random.default_rng(2).random(people)
    found = allocate(costs, setting="local", variance=0.25, goal=goal, response=response)
    supplied = precision_of(found.privacy_loss, 0.25, response).sum()
    assert supplied == pytest.approx(0.25 / found.mse, rel=1e-12)
    assert costs[found.privacy_loss > 0].max() < costs[found.privacy_loss == 0].min()
    assert found.gap < 1e-6


def test_randomised_response_costs_a_fifth_less_than_laplace_noise() -> None:
    costs = np.linspace(1, 3, 2000)
    for weight in (1e3, 1e5):
        answered, noisy = (allocate(costs, setting="local", error_weight=weight, response=one) for one in (True, False))
        assert answered.objective / noisy.objective == pytest.approx(0.78, abs=0.02)
        assert answered.mse / noisy.mse == pytest.approx(0.78, abs=0.03)


def test_a_cap_above_all_losses_changes_nothing_and_a_lower_one_buys_from_more_people() -> None:
    costs = 1.0 + np.random.default_rng(3).random(300)
    options = {"setting": "local", "variance": 0.25, "error_weight": 3000.0}
    free = allocate(costs, **options)
    highest = float(free.privacy_loss.max())
    same = allocate(costs, **options, max_loss=highest)
    assert same.privacy_loss == pytest.approx(free.privacy_loss, rel=1e-13)
    assert same.objective == pytest.approx(free.objective, rel=1e-15)
    capped = allocate(costs, **options, max_loss=0.4 * highest)
    assert capped.active > free.active
    assert capped.objective > free.objective
    assert capped.gap < 1e-3


def test_a_stratum_is_a_market_with_the_square_of_its_weight_and_the_rule_knows_the_others() -> None:
    rng = np.random.default_rng(9)
    for response in (False, True):
        costs, codes = np.exp(rng.normal(size=40)), rng.integers(0, 3, 40)
        strata = Strata(codes=codes, weights=np.array([0.5, 0.7, -0.2]))
        options = {"setting": "local", "variance": 0.25, "goal": Price(300.0), "response": response}
        found = allocate(costs, **options, strata=strata)
        rows, moved = np.arange(40), costs[rng.permutation(40)]
        got = replies(costs, **options, strata=strata).at(rows, moved)
        value, mse = np.zeros(40), np.zeros(40)
        for stratum, weight in enumerate(strata.weights.tolist()):
            people = np.flatnonzero(codes == stratum)
            goal = {**options, "goal": Price(300.0 * weight**2)}
            alone, rule = allocate(costs[people], **goal), replies(costs[people], **goal)
            assert found.privacy_loss[people].tolist() == alone.privacy_loss.tolist()
            assert found.weights[people] == pytest.approx(weight * alone.weights)
            here = rule.at(np.arange(people.size), moved[people])
            assert got.loss[people] == pytest.approx(here.loss, rel=1e-12)
            value += np.where(codes == stratum, 0.0, alone.objective)
            value[people] += here.value
            mse += np.where(codes == stratum, 0.0, weight**2 * alone.mse)
            mse[people] += weight**2 * here.mse
        assert got.value == pytest.approx(value, rel=1e-12)
        assert got.mse == pytest.approx(mse, rel=1e-12)
        assert found.lower_bound <= found.objective
        assert least_objective(costs, **options, strata=strata) == pytest.approx(found.lower_bound, rel=1e-9)


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
    assert scarce.privacy_loss[2] == pytest.approx(float(loss_for(np.array(0.25 / 0.09 - 2.0), 0.25, False)))
    capped = allocate([0.0, 0.0, 1.0], setting="local", variance=0.25, error_weight=100.0, max_loss=2.0)
    assert capped.privacy_loss[:2].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("variance", [1e-300, 1e-100, 0.01])
def test_the_cheapest_alone_is_enough_where_they_supply_no_more_than_a_half(variance: float) -> None:
    costs, goal = [3.0, 1.0, 2.0], Accuracy(0.3)
    found = allocate(costs, setting="local", variance=variance, goal=goal)
    assert found.privacy_loss == pytest.approx([0.0, math.sqrt(2.0 / (0.09 - variance)), 0.0])
    assert found.gap < 1e-10
    got = replies(costs, setting="local", variance=variance, goal=goal).at(np.array([0, 1]), np.array([0.5, 9.0]))
    assert got.loss == pytest.approx([found.privacy_loss[1], 0.0])
    assert got.value == pytest.approx([0.5 * found.privacy_loss[1], 2.0 * found.privacy_loss[1]])


def test_a_person_without_whom_the_accuracy_is_unreachable_is_always_bought_from() -> None:
    rule = replies([1.0, 2.0], setting="local", variance=0.25, goal=Accuracy(0.4))
    got = rule.at(np.array([0, 0, 0]), np.array([1.0, 1e6, np.inf]))
    assert got.loss[1] > 0.0
    assert got.value[2] == np.inf
    assert got.mse.tolist() == [0.4**2, 0.4**2, np.inf]


@each("exponent", [-200, -60, 0, 60, 140])
def test_costs_of_every_magnitude_are_decided_alike(exponent: int) -> None:
    scale = 10.0**exponent
    costs, moved = np.array([0.7, 0.3, 1.1, 0.5, 0.9]), np.array([0.1, 0.5, 40.0])
    for goal, scaled in ((Price(3.0), Price(3.0 * scale)), (Accuracy(0.3), Accuracy(0.3))):
        if goal.kind == "accuracy" and abs(exponent) > 100:
            continue
        one = allocate(costs, setting="local", goal=goal)
        other = allocate(costs * scale, setting="local", goal=scaled)
        assert other.privacy_loss == pytest.approx(one.privacy_loss, rel=1e-12)
        assert other.objective == pytest.approx(one.objective * scale, rel=1e-12)
        assert other.lower_bound == pytest.approx(one.lower_bound * scale, rel=1e-9)
        rows = np.array([1, 1, 2])
        first, second = (
            replies(costs * by, setting="local", goal=aim).at(rows, moved * by)
            for by, aim in ((1.0, goal), (scale, scaled))
        )
        assert second.loss == pytest.approx(first.loss, rel=1e-12)


@each("cost", [1e-200, 1e-3, 1.0, 1e150, 1e200])
def test_one_person_alone_loses_the_cube_root(cost: float) -> None:
    found = allocate([cost, np.inf], setting="local", variance=0.25, error_weight=2.0)
    assert found.privacy_loss.tolist() == [pytest.approx((8.0 / cost) ** (1 / 3), rel=1e-12), 0.0]
    assert found.lower_bound <= found.objective * (1.0 + 1e-12)


@pytest.mark.parametrize("curve", [LAPLACE, RESPONSE])
def test_a_curve_agrees_with_its_own_slopes(curve: Curve) -> None:
    y, step = np.array([0.2, 0.7, 1.5, 4.0]), 1e-5
    slope = (curve.precision(y + step) - curve.precision(y - step)) / (2 * step)
    assert curve.loss(curve.precision(y)) == pytest.approx(y, rel=1e-9)
    assert curve.missing(y) == pytest.approx(1 - curve.precision(y), rel=1e-9)
    assert curve.steepness(curve.precision(y))[0] == pytest.approx(1 / slope, rel=1e-6)
    high = y[y > curve.turn]
    assert curve.high_root(slope[y > curve.turn]) == pytest.approx(high, rel=1e-5)
    above, below = (curve.high_root(slope[y > curve.turn] * factor) for factor in (1 + 1e-6, 1 - 1e-6))
    assert curve.change(high) == pytest.approx((curve.precision(below) - curve.precision(above)) / 2e-6, rel=1e-4)
    grid = np.linspace(0.01, 20, 200_001)
    most = curve.precision(grid) / grid
    assert slope.max() <= curve.steepest
    assert most.max() == pytest.approx(curve.worthwhile, rel=1e-8)
    assert curve.precision(grid[most.argmax()]) == pytest.approx(curve.enough, rel=1e-3)


@pytest.mark.parametrize("curve", [LAPLACE, RESPONSE])
def test_the_search_may_rely_on_how_a_curve_bends(curve: Curve) -> None:
    turn = float(curve.precision(np.array(curve.turn)))
    low, y = np.linspace(1e-6, turn * (1 - 1e-6), 5000), np.linspace(curve.turn * 1.001, 20.0, 5000)
    steep, growth = curve.steepness(low)
    assert (np.diff(growth) > 0.0).all()
    assert growth[-1] < 0.0
    elasticity = curve.loss(low) / (low * steep)
    assert (np.diff(elasticity) < 0.0).all()
    assert elasticity[-1] >= 1.499
    assert (np.diff(curve.change(y)) < 0.0).all()


def best_spending(costs: tuple[float, float], budget: float, variance: float) -> tuple[float, float]:
    """The most precise two losses for a budget, by trying every way to divide it."""

    def imprecision(share: float) -> float:
        losses = np.array([share * budget / costs[0], (1.0 - share) * budget / costs[1]])
        return -float(precision_of(losses[losses > 0.0], variance, False).sum())

    grid = np.linspace(0.0, 1.0, 2001)
    values = [imprecision(share) for share in grid]
    candidates = [0.0, 1.0]
    for j in range(1, 2000):
        if values[j] <= min(values[j - 1], values[j + 1]):
            bounds = (float(grid[j - 1]), float(grid[j + 1]))
            candidates.append(float(minimize_scalar(imprecision, bounds=bounds, method="bounded").x))
    share = min(candidates, key=imprecision)
    return share * budget / costs[0], (1.0 - share) * budget / costs[1]


def test_under_a_local_budget_privacy_can_be_a_giffen_good() -> None:
    assert best_spending((0.2237, 1.0), 2.434, 0.25) == pytest.approx((6.26, 1.03), abs=0.01)
    assert best_spending((0.2547, 1.0), 2.434, 0.25) == pytest.approx((9.56, 0.0), abs=0.01)


REFUSED = {
    "no variance": ({"error_weight": 9.0, "variance": 0.0, "max_loss": 1.0}, "variance must be above 0"),
    "a budget": ({"goal": Budget(2.434)}, "a budget cannot be the goal in the local setting"),
    "a cap each": ({"error_weight": 9.0, "max_loss": [1.0, 2.0]}, r"one number in the local setting: .* NP-hard"),
    "no positive cap": ({"error_weight": 9.0, "max_loss": 0.0}, "must be positive, got 0"),
    "strata of others": (
        {"error_weight": 9.0, "strata": Strata(codes=np.array([0]), weights=np.array([1.0]))},
        "one code per person",
    ),
    "costs that are all extreme": ({"goal": Accuracy(0.45), "scale": 1e200}, "must not all be above"),
    "an answer that is all but impossible": (
        {"error_weight": 1e-9, "scale": 1e160, "response": True},
        "not all be so high",
    ),
}


@each("function", [allocate, replies])
@each("what", REFUSED)
def test_what_is_not_offered_is_refused_in_one_sentence(what: str, function: object) -> None:
    options, sentence = REFUSED[what]
    costs = np.array([1.0, 2.0]) * options.get("scale", 1.0)
    options = {name: value for name, value in options.items() if name != "scale"}
    with pytest.raises(InputError, match=sentence):
        function(costs, **{"setting": "local", "variance": 0.25, **options})  # type: ignore[operator]


def test_an_accuracy_beyond_the_data_is_refused_with_the_least_one() -> None:
    with pytest.raises(Unreachable, match=r"must be above 0\.25, .* these 4 people's data .* got 0\.2\."):
        allocate([0.0, 1.0, 1.0, 2.0, np.inf], setting="local", variance=0.25, goal=Accuracy(0.2))
    with pytest.raises(Unreachable):
        allocate([1.0, 2.0], setting="local", goal=Accuracy(0.3), response=True)
    with pytest.raises(Unreachable, match=r"at a max_privacy_loss of 1, got 0\.6"):
        Market(np.array([1.0, 2.0]), 0.25, Accuracy(0.6), False, 1.0).solve()
