"""The central optimum without caps: one table of markets, one list of claims.

A mean and strata, one variance and one each, a price, an accuracy and a budget are the same code, so every claim is
checked on every kind of market.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize

from hushbid.allocation import (
    Accuracy,
    Budget,
    Goal,
    Price,
    Strata,
    allocate,
    cut,
    least_objective,
    pairs_by_pieces,
    pieces,
    replies,
)
from hushbid.errors import HushbidError, InputError, MarketError, NobodyToBuyFrom, Unreachable
from hushbid.payments import rents
from hushbid.priors import LogNormal, Uniform
from tests.allocation.markets import SHAPES, CentralMarket, markets
from tests.extent import each

KAPPA = 1.5 * 4 ** (1 / 3)

SMALL = markets(14)
every_market = each("market", SMALL)
every_goal = pytest.mark.parametrize("goal", [Price(4.0), Accuracy(0.9), Budget(2.0)], ids=lambda goal: goal.kind)


# -- what an allocation is ---------------------------------------------------------------------------------------------


@every_market
def test_an_allocation_is_what_it_says(market: CentralMarket) -> None:
    found = market.solve()
    losses, variances, goal = found.privacy_loss, market.variances, market.goal
    assert not np.isnan(losses).any()
    assert (losses >= 0.0).all()
    assert ((found.weights != 0.0) == (losses > 0.0)).all()
    assert found.active == np.count_nonzero(losses)
    assert (losses[market.costs == np.inf] == 0.0).all()
    for stratum, weight in enumerate(market.weights):
        own = found.weights[market.codes == stratum]
        assert own.sum() == pytest.approx(weight, rel=1e-12)
        assert (own * weight >= 0.0).all()
    paid = market.costs > 0.0
    if np.isinf(losses).any():  # no noise: zero-cost people are enough
        assert (losses[paid] == 0.0).all()
        assert found.mse == pytest.approx(float(variances @ found.weights**2), rel=1e-12)
        return
    strength = losses.sum() / np.abs(found.weights).sum()
    assert losses == pytest.approx(strength * np.abs(found.weights), rel=1e-9, abs=1e-12 * losses.max())
    assert found.mse == pytest.approx(2.0 / strength**2 + float(variances @ found.weights**2), rel=1e-11)
    bought = losses > 0.0
    expense = float(market.costs[bought] @ losses[bought])
    told = {"price": goal.number * found.mse + expense, "accuracy": expense, "budget": found.mse}[goal.kind]
    assert found.objective == pytest.approx(told, rel=1e-9, abs=1e-130)
    if goal.kind == "accuracy":
        assert found.mse == pytest.approx(goal.number**2, rel=1e-12)
    if goal.kind == "budget":
        assert expense == pytest.approx(goal.number, rel=1e-9)


@every_market
def test_the_price_at_which_the_same_is_bought_makes_it_as_good(market: CentralMarket) -> None:
    found = market.solve()
    if not 1e-50 < found.error_weight < 1e50 or np.isinf(found.privacy_loss).any():
        return
    bought = found.privacy_loss > 0.0
    expense = float(market.costs[bought] @ found.privacy_loss[bought])
    same = dataclasses.replace(market, goal=Price(found.error_weight)).solve()
    assert same.objective <= (found.error_weight * found.mse + expense) * (1.0 + 1e-9)


@pytest.mark.parametrize("n", [2, 10, 1000, 50_000])
def test_equal_people_share_equally(n: int) -> None:
    found = allocate(np.full(n, 1.7), variance=0.25)
    total = (4 * (n + 1) / 1.7) ** (1 / 3)
    np.testing.assert_allclose(found.privacy_loss, total / n, rtol=1e-11)
    assert found.mse == pytest.approx(2 / total**2 + 0.25 / n, rel=1e-11)


def test_equal_people_are_treated_alike_whatever_their_keys_and_rows() -> None:
    keys = [4, 3, 2, 1]
    found = allocate([2.0, 1.0, 2.0, 1.0], error_weight=40.0, tie_key=keys)
    assert found.active == 4
    assert found.privacy_loss[0] == found.privacy_loss[2]
    assert found.privacy_loss[1] == found.privacy_loss[3]


def test_one_noise_for_all_strata_is_cheaper_than_one_for_each() -> None:
    """200 people, 40 and 160 of them, with shares of 0.6 and 0.4: costs evenly spaced from 1 to 2 in both."""
    costs, codes = np.append(np.linspace(1, 2, 40), np.linspace(1, 2, 160)), np.repeat([0, 1], [40, 160])
    one = allocate(costs, error_weight=5000.0, strata=Strata(codes=codes, weights=[0.6, 0.4])).objective
    two = sum(
        allocate(costs[codes == g], error_weight=5000.0 * share**2).objective for g, share in enumerate((0.6, 0.4))
    )
    biased = allocate(costs, error_weight=5000.0).objective
    assert (one, two, biased) == pytest.approx((63.99, 76.35, 57.62), abs=0.005)


@pytest.mark.parametrize(
    ("lowest", "error_weight", "exponent"),
    [(1.0, None, 5 / 6), (0.0, None, 4 / 5), (1.0, 100.0, 1 / 2), (0.0, 100.0, 2 / 5)],
)
def test_the_number_of_active_people_grows_with_the_stated_power(
    lowest: float, error_weight: float | None, exponent: float
) -> None:
    few, many = (allocate(lowest + (np.arange(n) + 0.5) / n, error_weight=error_weight).active for n in (1000, 100_000))
    assert math.log(many / few, 100) == pytest.approx(exponent, abs=0.02)


# -- optimal -----------------------------------------------------------------------------------------------------------


def least_found(market: CentralMarket) -> float:
    """The best that a general solver finds from several places."""
    rng = np.random.default_rng(3)
    sizes, best = np.abs(market.weights), math.inf
    for power in (0.0, 1.0, 4.0, 4.0):
        start = market.scaled(rng.uniform(0.0, 1.0, market.costs.size) ** power if power else 1.0 / market.variances)
        sums = [
            {"type": "eq", "fun": lambda w, g=g, size=size: w[market.codes == g].sum() - size}
            for g, size in enumerate(sizes)
        ]
        found = minimize(
            market.objective,
            start,
            method="SLSQP",
            bounds=[(0.0, None)] * start.size,
            constraints=sums,
            options={"ftol": 1e-15},
        )
        if max(abs(one["fun"](found.x)) for one in sums) < 1e-12:
            best = min(best, found.fun)
    return best


def test_no_general_solver_finds_anything_better() -> None:
    reached = tried = 0
    for seed, people in ((1, 3), (2, 5), (3, 6)):
        for market in markets(people, seed=seed, shapes=("uniform", "log-normal", "ties")):
            ours, found = market.solve().objective, least_found(market)
            assert found >= ours * (1.0 - 1e-9), market.name
            tried += 1
            reached += found <= ours * (1.0 + 1e-7)
    assert reached >= 0.8 * tried, "the other solver must come close often enough to be a judge"


@every_market
def test_the_bound_is_tight_knows_nothing_of_the_solution_and_holds_for_every_purchase(market: CentralMarket) -> None:
    found = market.solve()
    bound = least_objective(
        market.costs, setting="central", variance=market.variance, goal=market.goal, strata=market.strata
    )
    assert found.lower_bound == bound
    assert -1e-12 <= found.gap < 1e-9
    noise = np.random.default_rng(1).random(market.costs.size)
    assert dataclasses.replace(found, privacy_loss=noise, weights=noise, mse=0.0, active=1).lower_bound == bound
    rng = np.random.default_rng(2)
    for _ in range(100):
        random = rng.exponential(1.0, market.costs.size) * (rng.random(market.costs.size) < 0.6) + 1e-9
        assert market.objective(market.scaled(np.where(market.costs < np.inf, random, 0.0))) >= bound


@each("unequal", [False, True])
@each("shape", SHAPES)
def test_the_bound_is_tight_for_many_people_too(shape: str, unequal: bool) -> None:
    rng = np.random.default_rng(2)
    costs = SHAPES[shape](rng, 60_000)
    variance = rng.uniform(0.02, 0.25, costs.size) if unequal else 0.25
    for goal in (Price(1.0), Price(1e5), Accuracy(0.01), Budget(30.0)):
        found = allocate(costs, variance=variance, goal=goal)
        assert found.lower_bound <= found.objective * (1.0 + 1e-12)
        assert found.objective <= found.lower_bound * (1.0 + 1e-9) + 1e-130  # costs below 1e-140 count as 0


def two_valleys(few: int, cheap: float, many: int, dear: float, width: float = 0.0) -> np.ndarray:
    return np.concatenate([np.full(few, cheap), dear * np.linspace(1 - width, 1 + width, many)])


BASELINES = [
    two_valleys(1, 1e-4, 50, 0.2, 0.01),  # many win
    two_valleys(1, 1e-4, 50, 0.37, 0.05),  # few win
    two_valleys(3, 1e-5, 200, 0.04),
    two_valleys(2, 1e-4, 100, 0.115),
    np.concatenate([two_valleys(1, 1e-7, 6, 0.05), np.full(300, 0.02)]),
]


def local_minima(costs: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """All local minima of one mean with unit variance and weight, best first: every piece by its own polynomial."""
    costs, found = np.sort(costs), []
    for k in range(1, costs.size + 1):
        active, ends = costs[:k], (costs[k - 1], costs[k] if k < costs.size else np.inf)
        mean, spread = active.mean(), k * active.var()
        if ends[0] == ends[1]:
            continue
        roots = np.roots([1.0, 0.0, 0.0, -mean, KAPPA * spread / 3])
        for b in roots[np.abs(roots.imag) < 1e-9].real:
            level = mean + 3 * b / (KAPPA * k)
            if 4 * b**3 > mean and ends[0] <= level <= ends[1]:
                weights = (level - active) / np.sum(level - active)
                found.append((float(weights @ weights + KAPPA * np.cbrt(weights @ active) ** 2), weights))
    return sorted(found, key=lambda minimum: minimum[0])


@each("costs", BASELINES)
def test_a_second_best_minimum_handed_in_as_the_answer_shows_its_gap(costs: np.ndarray) -> None:
    best, second = local_minima(costs)[:2]
    found = allocate(costs, variance=1.0, error_weight=1.0)
    assert found.objective == pytest.approx(best[0], rel=1e-10)
    wrong = dataclasses.replace(found, objective=second[0])
    assert wrong.gap == pytest.approx(second[0] / best[0] - 1, rel=1e-9, abs=1e-9)
    assert wrong.gap > 1e-3


@pytest.mark.parametrize("excess", [1e-3, 1e-6, -1e-6, -1e-3])
def test_of_two_almost_equal_minima_the_better_is_found_and_the_other_shows(excess: float) -> None:
    def difference(dear: float) -> float:
        lone, crowd = sorted(local_minima(two_valleys(1, 1e-4, 50, dear, 0.01)), key=lambda one: one[1].size)
        return crowd[0] / lone[0] - 1

    costs = two_valleys(1, 1e-4, 50, brentq(lambda dear: difference(dear) - excess, 0.2, 0.37, xtol=1e-15), 0.01)
    best, second = local_minima(costs)
    found = allocate(costs, variance=1.0, error_weight=1.0)
    assert found.active == best[1].size == (1 if excess > 0 else 51)
    assert found.gap <= 1e-9
    assert dataclasses.replace(found, objective=second[0]).gap == pytest.approx(abs(excess), rel=2e-3)


def test_a_second_best_minimum_shows_among_many_people_too() -> None:
    rng = np.random.default_rng(4)
    costs = np.concatenate([np.full(5, 1e-7), rng.uniform(0.0195, 0.0205, 60_000)])
    found = allocate(costs, variance=1.0, error_weight=1.0)
    lone = 1 / 5 + KAPPA * np.cbrt(1e-7) ** 2  # the five alone: a minimum, because the next person is far away
    assert found.active > 5
    assert found.gap <= 1e-9
    assert dataclasses.replace(found, objective=lone).gap == pytest.approx(lone / found.objective - 1, abs=1e-9)


def test_a_solver_that_overlooks_a_kind_of_piece_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = BASELINES[2]  # the excess is positive at both ends of the best piece
    right = allocate(costs, variance=1.0, error_weight=1.0)
    turning = pieces.Pieces.candidates

    def overlooking(self: pieces.Pieces, target: Any) -> np.ndarray:
        before = target.excess(self.key, self.mean, self.paid) <= 0.0
        return np.array([j for j in turning(self, target) if before[j]])

    monkeypatch.setattr(pieces.Pieces, "candidates", overlooking)
    wrong = allocate(costs, variance=1.0, error_weight=1.0)
    assert wrong.objective > right.objective * 1.01
    assert wrong.lower_bound == right.lower_bound
    assert wrong.gap > 0.01


def test_the_bound_is_computed_once_and_for_the_costs_that_were_allocated() -> None:
    calls = []

    def certify() -> float:
        calls.append(1)
        return 1.0

    counted = dataclasses.replace(allocate([1.0, 2.0]), _certify=certify)
    assert counted.lower_bound == counted.lower_bound == 1.0
    assert len(calls) == 1
    few = np.array([1.0, 2.0, 3.0])
    found = allocate(few)
    few *= 10.0
    assert found.gap == pytest.approx(0.0, abs=1e-9)
    many = np.linspace(1.0, 2.0, 50_000)
    found = allocate(many)
    many *= 10.0
    with pytest.raises(InputError, match="changed"):
        _ = found.lower_bound


# -- few of very many --------------------------------------------------------------------------------------------------

MANY = markets(600, seed=5)


@pytest.mark.parametrize("market", MANY, ids=lambda market: market.name)
def test_a_cut_that_a_misleading_sample_proposes_changes_nothing(
    market: CentralMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples of 24 people propose cuts that are often too low, so the cut must be checked and raised."""
    expected = market.solve()
    monkeypatch.setattr(cut, "_CUT_ABOVE", 48)
    monkeypatch.setattr(cut, "_SAMPLE", 24)
    found = market.solve()
    assert found.active == expected.active
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)
    finite = np.isfinite(expected.privacy_loss)
    assert (np.isfinite(found.privacy_loss) == finite).all()
    largest = float(expected.privacy_loss[finite].max(initial=0.0))
    np.testing.assert_allclose(found.privacy_loss[finite], expected.privacy_loss[finite], atol=1e-10 * largest)
    assert found.lower_bound == pytest.approx(expected.lower_bound, rel=1e-9)


@every_goal
def test_of_many_people_few_are_sorted_and_nobody_is_lost(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    costs, codes = np.exp(rng.normal(size=34_000)), rng.integers(0, 3, 34_000)
    costs[codes == 2] *= 5.0
    strata = Strata(codes=codes, weights=[0.5, 0.3, -0.2])
    sorted_people = []
    plain = cut.strata_of
    monkeypatch.setattr(cut, "strata_of", lambda problem, rows: sorted_people.append(rows.size) or plain(problem, rows))
    found = allocate(costs, goal=goal, strata=strata)
    assert max(sorted_people) < 15_000
    monkeypatch.setattr(cut, "_CUT_ABOVE", costs.size)
    everybody = allocate(costs, goal=goal, strata=strata)
    assert sorted_people[-1] == costs.size
    assert found.active == everybody.active
    assert found.privacy_loss == pytest.approx(everybody.privacy_loss, rel=1e-10)


# -- the rule ----------------------------------------------------------------------------------------------------------


def deviations(market: CentralMarket) -> tuple[np.ndarray, np.ndarray]:
    """People and other costs: raised, lowered, others' costs, nothing, never."""
    rng = np.random.default_rng(7)
    rows = rng.integers(0, market.costs.size, 16)
    costs = np.where(market.costs[rows] < np.inf, market.costs[rows], 1.0) * np.exp(rng.normal(size=16))
    costs[:3], costs[3:6] = (np.inf, 0.0, market.costs[rows[2]]), rng.choice(market.costs, 3)
    return np.append(rows, [2, 2]), np.append(costs, [np.inf, 2.0])


@every_market
def test_the_rule_gives_the_optima_of_the_changed_markets(market: CentralMarket) -> None:
    rows, costs = deviations(market)
    found = market.rule().at(rows, costs)
    for j, (row, cost) in enumerate(zip(rows.tolist(), costs.tolist(), strict=True)):
        value, loss, mse = market.moved(row, cost)
        assert found.loss[j] == pytest.approx(loss, rel=1e-8, abs=1e-9)
        assert found.mse[j] == pytest.approx(mse, rel=1e-9)
        if market.goal.kind != "budget":
            assert found.value[j] == pytest.approx(value, rel=1e-9, abs=1e-130)


@every_market
def test_a_higher_cost_never_brings_a_larger_loss(market: CentralMarket) -> None:
    rule = market.rule()
    for row in (0, 2, 5):
        grid = np.sort(np.concatenate([np.geomspace(0.01, 100.0, 30), market.costs, [np.inf, 0.0]]))
        loss = rule.at(np.full(grid.size, row), grid).loss
        with np.errstate(invalid="ignore"):
            rise = np.where(loss[1:] == loss[:-1], 0.0, loss[1:] - loss[:-1])
        assert rise.max() <= 1e-10 * loss[loss < math.inf].max()


@every_market
def test_the_slope_of_the_value_function_is_the_loss(market: CentralMarket) -> None:
    rule = market.rule()
    for row in (0, 3):
        low, high = (0.4, 0.9) if "zero" in market.name else (1.1, 1.9)
        grid = np.linspace(low, high, 4001)
        loss = rule.at(np.full(grid.size, row), grid).loss
        area = np.append(0.0, np.cumsum(0.5 * (loss[1:] + loss[:-1]) * np.diff(grid)))
        ends = [0, 1000, 2500, 4000]
        value = rule.at(np.full(4, row), grid[ends]).value
        if not np.isfinite(value).all():
            continue
        jumps = np.abs(np.diff(loss)).max() * (grid[1] - grid[0])
        scale = 1e-11 * np.abs(value).max()
        assert value - value[0] == pytest.approx(area[ends], rel=1e-5, abs=2.0 * jumps + scale)


def test_the_rule_finds_the_better_of_two_minima() -> None:
    """A few cheap people and many dear ones, at the price where the optimum jumps from the ones to the others."""
    rng = np.random.default_rng(9)
    codes = np.append([0, 1, 0, 1], rng.integers(0, 2, 60))
    costs = np.append(rng.uniform(0.9, 1.1, 4), rng.uniform(9.0, 11.0, 60))
    strata = Strata(codes=codes, weights=[1.0, -0.7])
    low, high = 1.0, 1e6
    for _ in range(50):
        middle = math.sqrt(low * high)
        few = allocate(costs, error_weight=middle, strata=strata).active <= 4
        low, high = (middle, high) if few else (low, middle)
    seen = set()
    for weight in (low * 0.999, low, high, high * 1.001):
        market = CentralMarket("tied", costs, 0.25, strata, Price(weight))
        rows = np.tile(np.arange(8), 3)
        moved = np.concatenate([costs[:8] * 1.05, np.full(8, math.inf), costs[:8] * 0.9])
        found = market.rule().at(rows, moved)
        for j in range(rows.size):
            value, loss, _ = market.moved(int(rows[j]), float(moved[j]))
            assert found.value[j] == pytest.approx(value, rel=1e-11)
            assert found.loss[j] == pytest.approx(loss, rel=1e-7, abs=1e-9)
            seen.add(loss > 0.0)
    assert seen == {True, False}


def test_a_person_alone_in_a_stratum_sells_at_every_cost_under_a_budget() -> None:
    costs, strata = np.array([1.0, 1.5, 2.0, 3.0]), Strata(codes=[0, 1, 1, 1], weights=[1.0, 1.0])
    rule = replies(costs, setting="central", goal=Budget(2.0), strata=strata)

    def loss(cost: float) -> float:
        return float(rule.at(np.array([0]), np.array([cost])).loss[0])

    value = rule.at(np.zeros(2, dtype=int), np.array([0.5, 40.0])).value
    assert value[1] - value[0] == pytest.approx(quad(loss, 0.5, 40.0, limit=200)[0], rel=1e-7)


def test_the_only_seller_gets_the_whole_budget_at_every_cost() -> None:
    found = replies([0.0, 3.0], setting="central", goal=Budget(2.0)).at(
        np.ones(3, dtype=int), np.array([1.0, 2.0, 8.0])
    )
    assert found.loss == pytest.approx([2.0, 1.0, 0.25])
    assert np.diff(found.value) == pytest.approx([2.0 * math.log(2.0), 2.0 * math.log(4.0)])


@pytest.mark.filterwarnings("error")
def test_under_a_budget_far_above_the_level_nothing_is_bought_and_far_below_the_others_all_of_it() -> None:
    row, far = np.zeros(3, dtype=np.intp), np.array([5.0, 1e16, 1e30])
    above = replies([1.0, 2.0], variance=0.25, goal=Budget(2.0), setting="central").at(row, far)
    assert above.loss.tolist() == (above.value - above.value[0]).tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(above.mse, 2.25)
    below = replies([1.0, 1e50], variance=0.25, goal=Budget(2.0), setting="central").at(row, far)
    np.testing.assert_allclose(below.loss, 2.0 / far)
    rule = replies([1.0, 1e50], setting="central", goal=Budget(5.0))
    found = rule.at(np.zeros(4, dtype=int), np.array([0.0, 1e-40, 1e-3, 1.0]))
    assert np.isfinite(found.value).all()
    # in between all of the budget is theirs, at a loss of 5/x
    assert np.diff(found.value)[1:] == pytest.approx(5.0 * np.log([1e37, 1e3]), rel=1e-12)


def test_losses_under_a_budget_are_known_without_value_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a value function was computed")

    monkeypatch.setattr(pairs_by_pieces, "budget_values", refuse)
    found = replies(np.linspace(1.0, 2.0, 20), setting="central", goal=Budget(5.0)).at(np.arange(3), np.full(3, 1.2))
    assert (found.loss > 0.0).all()
    with pytest.raises(AssertionError, match="a value function"):
        _ = found.value


def test_an_integral_under_a_budget_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.allocation.budget_integral._MOST_PER_PERSON", 0)
    monkeypatch.setattr("hushbid.allocation.budget_integral._MOST_BESIDES", 0)
    found = replies(np.linspace(1.0, 2.0, 20), setting="central", goal=Budget(5.0)).at(np.arange(3), np.full(3, 1.2))
    with pytest.raises(MarketError, match="its integral did not end"):
        _ = found.value


def loss_by_search(costs: np.ndarray, variance: np.ndarray, strata: Strata, goal: Goal, row: int) -> float:
    """A person's loss by one search over T and one for each level: nothing of it is the package's."""
    sizes = np.abs(strata.weights)

    def levels(t: float) -> list[float]:
        made = []
        for g, size in enumerate(sizes):
            mine = strata.codes == g
            low = costs[mine].min()
            high = low + size * t * variance[mine].max() + 1e-9

            def lacking(level: float, mine: np.ndarray = mine, size: float = size) -> float:
                return float(np.sum(np.maximum(level - costs[mine], 0.0) / variance[mine]) - size * t)

            made.append(brentq(lacking, low, high, xtol=1e-14, rtol=1e-14))
        return made

    def sums(t: float) -> tuple[float, float]:
        level = np.array(levels(t))
        return float(sizes @ level), float(np.sum(costs * np.maximum(level[strata.codes] - costs, 0.0) / variance))

    def value(s: float) -> float:
        level, paid = sums(math.exp(s))
        return goal.number * level / math.exp(s) + math.sqrt(2.0 * paid)

    if goal.kind == "price":
        start = min(np.linspace(0.0, 8.0, 17), key=value)

        def slope(s: float) -> float:
            return 4.0 * s - math.log(2.0 * goal.number**2 * sums(math.exp(s))[1])

        t = math.exp(brentq(slope, start - 0.6, start + 0.6, xtol=1e-12))
    elif goal.kind == "accuracy":
        t = math.exp(brentq(lambda s: goal.number**2 * math.exp(s) - sums(math.exp(s))[0], -5.0, 12.0, xtol=1e-12))
    else:
        t = math.exp(brentq(lambda s: 2.0 * sums(math.exp(s))[1] - goal.number**2, -12.0, 12.0, xtol=1e-12))
    level = levels(t)[int(strata.codes[row])]
    return float(max(level - costs[row], 0.0) / variance[row] * math.sqrt(2.0 / sums(t)[1]))


@pytest.mark.parametrize("goal", [Price(40.0), Accuracy(0.5), Budget(3.0)])
def test_rents_are_the_integrals_of_a_rule_that_shares_no_code(goal: Goal) -> None:
    prior = Uniform(1.0, 2.0)
    bids, variance = np.array([1.1, 1.3, 1.2, 1.6, 1.15]), np.array([0.2, 0.25, 0.1, 0.2, 0.25])
    strata = Strata(codes=[0, 0, 1, 1, 1], weights=[0.7, -0.4])
    costs = np.asarray(prior.virtual_cost(bids))
    rule = replies(costs, setting="central", variance=variance, goal=goal, strata=strata)
    row = 2
    found = rents(rule, prior, np.array([row]), bids[[row]])

    def loss(bid: float) -> float:
        moved = costs.copy()
        moved[row] = 2.0 * bid - 1.0  # this prior's virtual cost
        return loss_by_search(moved, variance, strata, goal, row)

    low, out = bids[row], 2.0  # where they stop selling, which a quadrature must not step over
    for _ in range(20):
        middle = 0.5 * (low + out)
        low, out = (middle, out) if loss(middle) > 0.0 else (low, middle)
    integral = quad(loss, bids[row], out, epsrel=1e-6, epsabs=0.0, limit=3, full_output=True)[0]
    assert found.estimate[0] == pytest.approx(integral, rel=1e-4)
    assert found.estimate[0] > 0.01


@every_goal
def test_payments_of_a_thousand_people_need_no_second_solution(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, prior = np.random.default_rng(12), LogNormal(0.0, 0.5)
    bids = prior.sample(1000, rng=rng)
    strata = Strata(codes=rng.integers(0, 3, 1000), weights=[0.5, 0.3, 0.2])
    costs = np.asarray(prior.virtual_cost(bids))
    goal = {"price": Price(1000.0), "accuracy": Accuracy(0.1), "budget": Budget(20.0)}[goal.kind]
    sold = np.flatnonzero(allocate(costs, goal=goal, strata=strata).privacy_loss)
    rule = replies(costs, setting="central", goal=goal, strata=strata)

    def again(*_: object, **__: object) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr(pairs_by_pieces, "solve", again)
    found = rents(rule, prior, sold, bids[sold])
    assert found.error < 1e-5 * float(found.estimate.max())


@given(
    costs=st.lists(st.floats(0.0, 100.0), min_size=2, max_size=9),
    goal=st.sampled_from([Accuracy(0.36), Accuracy(0.6), Accuracy(3.0), Budget(0.3), Budget(40.0), Price(7.0)]),
    up=st.floats(0.0, 50.0),
)
@settings(max_examples=150, deadline=None)
def test_asking_more_never_sells_more(costs: list[float], goal: Goal, up: float) -> None:
    asked = np.round(np.array(costs), 6)
    dearer = asked.copy()
    dearer[0] += round(up, 6)
    try:
        before, after = (allocate(one, variance=0.25, goal=goal) for one in (asked, dearer))
    except MarketError:
        return
    assert after.privacy_loss[0] <= before.privacy_loss[0] * (1.0 + 1e-9) + 1e-12


# -- zero-cost people --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_no_noise_at_all_wins_if_zero_cost_people_are_enough(zero: float) -> None:
    found = allocate([zero, 0.0, 50.0], variance=0.25, error_weight=10.0)
    assert found.privacy_loss.tolist() == [math.inf, math.inf, 0.0]
    assert found.weights.tolist() == [0.5, 0.5, 0.0]
    assert (found.objective, found.mse) == (10 * 0.25 / 2, 0.25 / 2)


@each("cost", np.geomspace(1e-6, 10, 15))
def test_with_a_zero_cost_person_the_better_of_no_noise_and_some_noise_is_chosen(cost: float) -> None:
    costs, weight, variance = np.array([0.0, cost, cost, cost]), 5.0, 0.25
    share = np.linspace(0, 1, 20_001)  # of the three together
    noisy = weight * variance * ((1 - share) ** 2 + share**2 / 3) + KAPPA * np.cbrt(weight) * np.cbrt(cost * share) ** 2
    found = allocate(costs, variance=variance, error_weight=weight)
    assert found.objective == pytest.approx(noisy.min(), rel=1e-6)
    assert np.isinf(found.privacy_loss[0]) == (noisy.argmin() == 0)


def test_zero_cost_people_in_every_stratum_are_enough_without_noise() -> None:
    strata = Strata(codes=[0, 0, 1, 1], weights=[1.0, -1.0])
    found = allocate([0.0, 5.0, 0.0, 0.0], goal=Price(1.0), strata=strata)
    assert found.privacy_loss.tolist() == [math.inf, 0.0, math.inf, math.inf]
    assert found.weights.tolist() == [1.0, 0.0, -0.5, -0.5]
    some = allocate([0.0, 5.0, 1.0, 1.0], goal=Price(1.0), strata=strata)
    assert 0.0 < some.privacy_loss[0] < math.inf
    everybody = allocate(np.zeros(4), error_weight=8.0)
    assert everybody.privacy_loss.tolist() == [math.inf] * 4
    assert everybody.objective == 8 * 0.25 / 4


def test_zero_cost_people_are_enough_for_an_accuracy_or_help() -> None:
    free = allocate([0.0, 0.0, 0.0, 1.0], variance=0.25, goal=Accuracy(0.4))
    assert (free.objective, free.privacy_loss[3]) == (0.0, 0.0)
    assert free.mse == pytest.approx(0.16, rel=1e-12)
    helped = allocate([0.0, 1.0, 1.0], variance=0.25, goal=Accuracy(0.4))
    assert helped.privacy_loss[0] > helped.privacy_loss[1] > 0.0
    assert allocate([0.0, 1.0], variance=0.25, goal=Budget(2.0)).privacy_loss[1] == pytest.approx(2.0)
    # raising one of them changes nothing while the others are enough
    rule = replies([0.0, 0.0, 0.0, 1.0], setting="central", goal=Accuracy(0.6))
    assert rule.at(np.array([0, 0, 3]), np.array([0.5, 0.0, 0.2])).loss.tolist() == pytest.approx(
        [0.0, math.sqrt(2.0 / (0.36 - 0.25 / 3)) / 3, 0.0]
    )


# -- extremes ----------------------------------------------------------------------------------------------------------


@every_goal
def test_tiny_and_huge_costs_stop_no_market(goal: Goal) -> None:
    strata = Strata(codes=[0, 0, 1, 1, 1], weights=[1.0, 0.5])
    for costs in (
        [1e-300, 1.0, 1e-250, 2.0, 1e300],
        [1e300, 1e250, 1.0, 1.0, math.inf],
        [0.0, 1e-200, 1e200, 1.0, 0.0],
    ):
        found = allocate(costs, goal=goal, strata=strata)
        assert [found.weights[:2].sum(), found.weights[2:].sum()] == pytest.approx([1.0, 0.5])
        rule = replies(costs, setting="central", goal=goal, strata=strata)
        loss = rule.at(np.full(6, 1), np.array([0.0, 1e-300, 1.0, 1e140, 1e250, 1e300])).loss
        assert (loss[1:] <= loss[:-1] * (1.0 + 1e-9)).all()


@pytest.mark.parametrize(
    ("costs", "options"),
    [
        ([1e140, 1e140, 1e-10, np.inf], {"variance": [1.9e-5, 2.9e-6, 1.2e-2, 4.3e-6], "error_weight": 27.0}),
        ([0.77, 0.62, 6.4], {"variance": [1e-4, 1.6e-4, 7e-3], "error_weight": 2.7e-18}),
        ([1 + 8e-13, 1 + 7e-13, 1 + 1e-13, np.inf, 1 + 4e-13], {"variance": 1e-12, "error_weight": 12.0}),
    ],
)
def test_the_rule_holds_at_every_magnitude(costs: list[float], options: dict[str, Any]) -> None:
    rule = replies(costs, setting="central", **options)
    for row in range(len(costs)):
        for cost in [*costs, 1.0, 0.0]:
            there = rule.at(np.array([row]), np.array([cost]))
            changed = [cost if other == row else costs[other] for other in range(len(costs))]
            then = allocate(changed, **options)
            finite = then.privacy_loss[then.privacy_loss < np.inf]
            assert there.value[0] == pytest.approx(then.objective, rel=1e-9)
            slack = 1e-6 * float(finite.max(initial=0.0))
            assert there.loss[0] == pytest.approx(then.privacy_loss[row], rel=1e-6, abs=slack)


def test_variances_of_people_never_bought_from_do_not_matter() -> None:
    costs = [1.0, 2.0, np.inf]
    assert allocate(costs, variance=[0.1, 0.2, 1e-290]).objective == allocate(costs, variance=[0.1, 0.2, 7.0]).objective


# -- refusals ----------------------------------------------------------------------------------------------------------

TWO = Strata(codes=[0, 1, 1], weights=[1.0, -1.0], names=("men", "women"))
REFUSED: list[tuple[type[HushbidError], str, dict[str, Any]]] = [
    (NobodyToBuyFrom, "Stratum 'women' has nobody", {"virtual_costs": [1.0, np.inf, np.inf], "strata": TWO}),
    (InputError, "strata must have one code per person", {"virtual_costs": [1.0, 1.0], "strata": TWO}),
    (InputError, "variance must be above 0", {"virtual_costs": [1.0, 1.0, 1.0], "strata": TWO, "variance": 0.0}),
    (InputError, "too extreme", {"virtual_costs": [1.0], "variance": 1e250}),
    (InputError, "too extreme", {"virtual_costs": [1.0, 2.0], "error_weight": 1e-300}),
    (Unreachable, r"above 0.612372, .* got 0.6", {"virtual_costs": [1.0] * 3, "goal": Accuracy(0.6), "strata": TWO}),
    (
        Unreachable,
        r"above 0\.25, the error of these 4 people's data",
        {"virtual_costs": [1.0] * 4, "goal": Accuracy(0.25)},
    ),
    (MarketError, "cannot be spent on people who ask for nothing", {"virtual_costs": [0.0, 0.0], "goal": Budget(1.0)}),
    (MarketError, "cannot be spent on", {"virtual_costs": [0.0] * 3, "goal": Budget(1.0), "strata": TWO}),
    *(
        (
            InputError,
            r"must not all be above .*, got 1e\+200 as the smallest",
            {"virtual_costs": [1e200, 1e210], "goal": goal},
        )
        for goal in (Price(3.0), Accuracy(0.9), Budget(2.0))
    ),
]


@each(("kind", "message", "arguments"), REFUSED)
def test_what_cannot_be_bought_is_refused_in_one_sentence(
    kind: type[HushbidError], message: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(kind, match=message) as refusal:
        allocate(**arguments)
    assert str(refusal.value).endswith(".")
    with pytest.raises(kind, match=message):
        allocate(**arguments)


EVERY_PIECE, FOLLOWED, ALONE = (1 << 18, 1 << 18, 1 << 18), (0, 0, 1 << 18), (0, 0, 0)
"""How many pieces a rule looks at: all; those of paths not proved to have one minimum; those of one path at a time."""


@pytest.mark.parametrize("strata", [1, 3])
def test_a_rule_finds_the_same_piece_by_piece_and_by_following(strata: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(41)
    for _ in range(12):
        n = int(rng.integers(strata, 9)) + strata
        costs = np.exp(rng.uniform(-6, 6, n)) * 10.0 ** rng.uniform(-3, 3)
        codes = np.append(np.arange(strata), rng.integers(0, strata, n - strata))
        divided, goal = Strata(codes=codes, weights=rng.uniform(0.2, 2.0, strata)), Price(50.0 * costs.mean())
        rows = np.repeat(np.arange(n), 12)
        moved = costs[rows] * np.exp(rng.uniform(-4, 4, rows.size))
        found = []
        for limits in (EVERY_PIECE, FOLLOWED, ALONE):
            for name, limit in zip(("_SHORT", "_FEW", "_DENSE"), limits, strict=True):
                monkeypatch.setattr(pairs_by_pieces, name, limit)
            found.append(replies(costs, setting="central", goal=goal, strata=divided).at(rows, moved))
        for other in found[1:]:
            np.testing.assert_allclose(found[0].value, other.value, rtol=1e-11)
            np.testing.assert_allclose(found[0].loss, other.loss, rtol=1e-8, atol=1e-10 * other.loss.max())
        for j in range(0, rows.size, 7):
            changed = np.where(np.arange(n) == rows[j], moved[j], costs)
            best = allocate(changed, goal=goal, strata=divided)
            assert found[0].value[j] == pytest.approx(best.objective, rel=1e-11)


@pytest.mark.parametrize("goal", [Price(5.0), Accuracy(0.5), Budget(5.0)])
def test_people_whose_data_hardly_vary_leave_the_digits_of_the_others(goal: Goal) -> None:
    """With next to no variance the third person's data are exact; the limit of ever smaller ones is bought."""
    costs = np.array([1.4, 1.6, 2.0])
    bought = [
        allocate(costs, variance=np.array([0.25, 0.25, least]), goal=goal).privacy_loss for least in (1e-7, 1e-60)
    ]
    assert bought[0] == pytest.approx(bought[1], rel=1e-5)
    rule = replies(costs, setting="central", variance=np.array([0.25, 0.25, 1e-60]), goal=goal)
    assert rule.at(np.arange(3), costs).loss == pytest.approx(bought[1], rel=1e-7)
