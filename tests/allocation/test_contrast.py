"""Strata and contrasts: against solvers that know nothing of keys, and the rule and payments that the optimum makes."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize

from hushbid.allocation import (
    Accuracy,
    Budget,
    Goal,
    Price,
    Strata,
    allocate,
    contrast,
    least_objective,
    replies,
)
from hushbid.errors import HushbidError, InputError, MarketError, NobodyToBuyFrom, Unreachable
from hushbid.payments import rents
from hushbid.priors import LogNormal, Uniform

Market = tuple[np.ndarray, np.ndarray, Strata, tuple[Goal, ...]]


def markets(count: int, seed: int, people: int = 7) -> list[Market]:
    """Small markets with one to three strata, mixed signs and unequal variances, and a goal of each kind."""
    rng = np.random.default_rng(seed)
    made: list[Market] = []
    for _ in range(count):
        strata = int(rng.integers(1, 4))
        n = int(rng.integers(strata, people + 1))
        codes = np.concatenate([np.arange(strata), rng.integers(0, strata, n - strata)])
        weights = rng.choice([-1.0, 1.0], strata) * rng.uniform(0.2, 2.0, strata)
        costs = np.exp(rng.normal(size=n) * rng.choice([0.2, 1.0]))
        variance = rng.uniform(0.02, 0.25, n)
        least = sum(w * w / np.sum(1.0 / variance[codes == g]) for g, w in enumerate(weights))
        goals = Price(10 ** rng.uniform(-1, 3)), Accuracy(math.sqrt(least * rng.uniform(1.05, 6.0)))
        made.append((costs, variance, Strata(codes=codes, weights=weights), (*goals, Budget(rng.uniform(0.1, 20.0)))))
    return made


def objective(costs: np.ndarray, variance: np.ndarray, goal: Goal) -> Callable[[np.ndarray], float]:
    """What sizes of weights cost with the best noise for them: one line of algebra for each goal."""

    def of(sizes: np.ndarray) -> float:
        spread, unit_price = float(variance @ sizes**2), float(costs @ sizes)
        if isinstance(goal, Price):
            a = goal.buyer_weight
            return a * spread + 1.5 * (4.0 * a) ** (1.0 / 3.0) * unit_price ** (2.0 / 3.0)
        if isinstance(goal, Accuracy):
            left = goal.standard_error**2 - spread
            return unit_price * math.sqrt(2.0 / left) if left > 0.0 else 1e6 * (1.0 - left)
        return spread + 2.0 * (unit_price / goal.number) ** 2

    return of


def least_found(costs: np.ndarray, variance: np.ndarray, strata: Strata, goal: Goal) -> float:
    """The best that a general solver finds from several places."""
    rng = np.random.default_rng(3)
    sizes, value = np.abs(strata.weights), objective(costs, variance, goal)
    best = math.inf
    for power in (0.0, 1.0, 4.0, 4.0):
        start = rng.uniform(0.0, 1.0, costs.size) ** power if power else 1.0 / variance
        for g, size in enumerate(sizes):
            start[strata.codes == g] *= size / start[strata.codes == g].sum()
        sums = [
            {"type": "eq", "fun": lambda w, g=g, size=size: w[strata.codes == g].sum() - size}
            for g, size in enumerate(sizes)
        ]
        found = minimize(
            value, start, method="SLSQP", bounds=[(0.0, None)] * costs.size, constraints=sums, options={"ftol": 1e-15}
        )
        if max(abs(one["fun"](found.x)) for one in sums) < 1e-12:
            best = min(best, found.fun)
    return best


def test_no_general_solver_finds_anything_better_for_any_goal() -> None:
    reached = 0
    for costs, variance, strata, goals in markets(12, seed=0):
        for goal in goals:
            ours = allocate(costs, variance=variance, goal=goal, strata=strata)
            found = least_found(costs, variance, strata, goal)
            assert found >= ours.objective * (1.0 - 1e-9)
            reached += found <= ours.objective * (1.0 + 1e-7)
    assert reached >= 30, "the other solver must come close often enough to be a judge"


def test_an_allocation_is_what_it_says() -> None:
    for costs, variance, strata, goals in markets(20, seed=1, people=30):
        for goal in goals:
            found = allocate(costs, variance=variance, goal=goal, strata=strata)
            strength = found.privacy_loss.sum() / np.abs(found.weights).sum()
            expense = float(costs @ found.privacy_loss)
            assert found.privacy_loss == pytest.approx(strength * np.abs(found.weights), rel=1e-9)
            assert found.mse == pytest.approx(2.0 / strength**2 + variance @ found.weights**2, rel=1e-11)
            for g, weight in enumerate(strata.weights):
                assert found.weights[strata.codes == g].sum() == pytest.approx(weight, rel=1e-12)
            told = {"price": goal.number * found.mse + expense, "accuracy": expense, "budget": found.mse}[goal.kind]
            assert found.objective == pytest.approx(told, rel=1e-12)
            if goal.kind == "budget":
                assert expense == pytest.approx(goal.number, rel=1e-12)
            if goal.kind != "price":  # the price at which the same would be bought makes it stationary
                same = allocate(costs, variance=variance, error_weight=found.error_weight, strata=strata)
                assert same.objective <= found.error_weight * found.mse + expense + 1e-9 * expense


@pytest.mark.parametrize("weight", [1.0, -1.0])
def test_one_stratum_is_the_market_without_strata(weight: float) -> None:
    rng = np.random.default_rng(4)
    for trial in range(30):
        n = int(rng.integers(1, 60))
        costs = np.exp(rng.normal(size=n) * rng.choice([0.1, 0.5, 2.0]))
        costs[: trial % 3] = (0.0, 0.0)[: min(trial % 3, n)]
        variance = 0.25 if trial % 2 else rng.uniform(0.02, 0.25, n)
        least = 1.0 / np.sum(np.ones(n) / variance)
        strata = Strata(codes=np.zeros(n, dtype=int), weights=[weight])
        for goal in (
            Price(10 ** rng.uniform(-1, 4)),
            Accuracy(math.sqrt(3.0 * least)),
            Budget(10 ** rng.uniform(-1, 2)),
        ):
            if goal.kind == "budget" and not costs.any():
                continue
            plain = allocate(costs, variance=variance, goal=goal)
            ours = allocate(costs, variance=variance, goal=goal, strata=strata)
            assert ours.weights == pytest.approx(weight * plain.weights, abs=1e-12)
            assert (ours.active, ours.mse, ours.objective) == pytest.approx(
                (plain.active, plain.mse, plain.objective), rel=1e-12
            )


def test_one_noise_for_all_strata_is_cheaper_than_one_for_each() -> None:
    """200 people, 40 and 160 of them, with shares of 0.6 and 0.4: costs evenly spaced from 1 to 2 in both."""
    costs, codes = np.append(np.linspace(1, 2, 40), np.linspace(1, 2, 160)), np.repeat([0, 1], [40, 160])
    one = allocate(costs, error_weight=5000.0, strata=Strata(codes=codes, weights=[0.6, 0.4])).objective
    two = sum(
        allocate(costs[codes == g], error_weight=5000.0 * share**2).objective for g, share in enumerate((0.6, 0.4))
    )
    biased = allocate(costs, error_weight=5000.0).objective
    assert (one, two, biased) == pytest.approx((63.99, 76.35, 57.62), abs=0.005)


def test_certificates_are_tight_and_know_nothing_of_the_solution() -> None:
    for costs, variance, strata, goals in markets(8, seed=5, people=40):
        for goal in goals:
            found = allocate(costs, variance=variance, goal=goal, strata=strata)
            bound = least_objective(costs, setting="central", variance=variance, goal=goal, strata=strata)
            assert found.lower_bound == bound
            assert -1e-12 <= found.gap < 1e-8


@pytest.mark.parametrize("goal", [Price(4e4), Accuracy(0.02), Budget(30.0)])
def test_leaving_out_the_expensive_before_sorting_loses_nobody(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    n = 34_000
    costs, codes = np.exp(rng.normal(size=n)), rng.integers(0, 3, n)
    costs[codes == 2] *= 5.0
    strata = Strata(codes=codes, weights=[0.5, 0.3, -0.2])
    found = allocate(costs, goal=goal, strata=strata)
    monkeypatch.setattr(contrast.solve, "_SELECT_ABOVE", n)
    sorted_all = allocate(costs, goal=goal, strata=strata)
    assert found.active == sorted_all.active < n
    assert found.privacy_loss == pytest.approx(sorted_all.privacy_loss, rel=1e-10)


# -- one person's cost -------------------------------------------------------------------------------------------------


def solved_again(costs: np.ndarray, variance: np.ndarray, strata: Strata, goal: Goal, row: int, cost: float):
    """Value, loss and error of the market in which one cost is replaced."""
    moved = costs.copy()
    moved[row] = cost
    try:
        found = allocate(moved, variance=variance, goal=goal, strata=strata)
    except MarketError:
        return math.inf, 0.0, math.inf
    return found.objective, found.privacy_loss[row], found.mse


def test_replies_are_the_optima_of_the_changed_markets() -> None:
    rng = np.random.default_rng(7)
    for number, (costs, variance, strata, goals) in enumerate(markets(10, seed=8, people=80)):
        costs = np.round(costs, 1) if number % 3 == 0 else costs
        rows = rng.integers(0, costs.size, 12)
        moved = costs[rows] * np.exp(rng.normal(size=12))
        moved[:3], moved[3] = (math.inf, 0.0, costs[rows[2]]), costs.max()
        for goal in goals:
            rule = replies(costs, setting="central", variance=variance, goal=goal, strata=strata)
            found = rule.at(rows, moved)
            for j, (row, cost) in enumerate(zip(rows.tolist(), moved.tolist(), strict=True)):
                value, loss, mse = solved_again(costs, variance, strata, goal, row, cost)
                assert found.loss[j] == pytest.approx(loss, rel=1e-8, abs=1e-9)
                assert found.mse[j] == pytest.approx(mse, rel=1e-9)
                if goal.kind != "budget":
                    assert found.value[j] == pytest.approx(value, rel=1e-9)


def test_replies_find_the_better_of_two_valleys() -> None:
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
        rule = replies(costs, setting="central", error_weight=weight, strata=strata)
        rows = np.tile(np.arange(8), 2)
        moved = np.append(costs[:8] * 1.05, np.full(8, math.inf))
        found = rule.at(rows, moved)
        for j in range(rows.size):
            value, loss, _ = solved_again(costs, np.asarray(0.25), strata, Price(weight), int(rows[j]), moved[j])
            assert found.value[j] == pytest.approx(value, rel=1e-11)
            assert found.loss[j] == pytest.approx(loss, rel=1e-7, abs=1e-9)
            seen.add(loss > 0.0)
    assert seen == {True, False}


def test_a_higher_report_never_brings_a_larger_loss_under_any_goal() -> None:
    for costs, variance, strata, goals in markets(8, seed=10, people=9):
        grid = np.sort(np.concatenate([np.geomspace(0.01, 100.0, 40), costs, [math.inf]]))
        for goal, row in itertools.product(goals, range(min(costs.size, 3))):
            rule = replies(costs, setting="central", variance=variance, goal=goal, strata=strata)
            loss = rule.at(np.full(grid.size, row), grid).loss
            with np.errstate(invalid="ignore"):
                rise = np.where(loss[1:] == loss[:-1], 0.0, loss[1:] - loss[:-1])
            assert rise.max() <= 1e-11 * loss[loss < math.inf].max()


def test_the_potential_of_one_stratum_is_that_of_the_market_without_strata() -> None:
    rng = np.random.default_rng(11)
    costs, variance = np.exp(rng.normal(size=30)), rng.uniform(0.02, 0.25, 30)
    strata = Strata(codes=np.zeros(30, dtype=int), weights=[1.0])
    rows, moved = rng.integers(0, 30, 50), np.exp(rng.normal(size=50))
    for goal in (Price(300.0), Accuracy(0.2), Budget(3.0)):
        plain = replies(costs, setting="central", variance=variance, goal=goal).at(rows, moved)
        ours = replies(costs, setting="central", variance=variance, goal=goal, strata=strata).at(rows, moved)
        assert ours.value == pytest.approx(plain.value, rel=1e-9, abs=1e-12)


def test_a_person_alone_in_her_stratum_has_a_potential_too() -> None:
    """Under a budget she sells at every cost: the potential is a logarithm in the end."""
    costs, strata = np.array([1.0, 1.5, 2.0, 3.0]), Strata(codes=[0, 1, 1, 1], weights=[1.0, 1.0])
    rule = replies(costs, setting="central", goal=Budget(2.0), strata=strata)

    def loss(cost: float) -> float:
        return float(rule.at(np.array([0]), np.array([cost])).loss[0])

    value = rule.at(np.zeros(2, dtype=int), np.array([0.5, 40.0])).value
    assert value[1] - value[0] == pytest.approx(quad(loss, 0.5, 40.0, limit=200)[0], rel=1e-7)


# -- payments ----------------------------------------------------------------------------------------------------------


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

    if isinstance(goal, Price):
        start = min(np.linspace(0.0, 8.0, 17), key=value)

        def slope(s: float) -> float:
            return 4.0 * s - math.log(2.0 * goal.number**2 * sums(math.exp(s))[1])

        t = math.exp(brentq(slope, start - 0.6, start + 0.6, xtol=1e-12))
    elif isinstance(goal, Accuracy):
        t = math.exp(brentq(lambda s: goal.number**2 * math.exp(s) - sums(math.exp(s))[0], -5.0, 12.0, xtol=1e-12))
    else:
        t = math.exp(brentq(lambda s: 2.0 * sums(math.exp(s))[1] - goal.number**2, -12.0, 12.0, xtol=1e-12))
    level = levels(t)[int(strata.codes[row])]
    return float(max(level - costs[row], 0.0) / variance[row] * math.sqrt(2.0 / sums(t)[1]))


@pytest.mark.parametrize("goal", [Price(40.0), Accuracy(0.5), Budget(3.0)])
def test_rents_are_the_integrals_of_a_rule_that_shares_no_code(goal: Goal) -> None:
    prior = Uniform(1.0, 2.0)
    reports, variance = np.array([1.1, 1.3, 1.2, 1.6, 1.15]), np.array([0.2, 0.25, 0.1, 0.2, 0.25])
    strata = Strata(codes=[0, 0, 1, 1, 1], weights=[0.7, -0.4])
    costs = np.asarray(prior.virtual_cost(reports))
    rule = replies(costs, setting="central", variance=variance, goal=goal, strata=strata)
    row = 2
    found = rents(rule, prior, np.array([row]), reports[[row]])

    def loss(report: float) -> float:
        moved = costs.copy()
        moved[row] = 2.0 * report - 1.0  # this prior's virtual cost
        return loss_by_search(moved, variance, strata, goal, row)

    low, out = reports[row], 2.0  # where she stops selling, which a quadrature must not step over
    for _ in range(20):
        middle = 0.5 * (low + out)
        low, out = (middle, out) if loss(middle) > 0.0 else (low, middle)
    integral = quad(loss, reports[row], out, epsrel=1e-6, epsabs=0.0, limit=3, full_output=True)[0]
    assert found.estimate[0] == pytest.approx(integral, rel=1e-4)
    assert found.estimate[0] > 0.01


def test_payments_of_a_thousand_people_need_no_second_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, prior = np.random.default_rng(12), LogNormal(0.0, 0.5)
    reports = prior.sample(1000, rng=rng)
    strata = Strata(codes=rng.integers(0, 3, 1000), weights=[0.5, 0.3, 0.2])
    costs = np.asarray(prior.virtual_cost(reports))

    def again(*_: object, **__: object) -> None:
        raise AssertionError("solved again")

    for goal in (Price(1000.0), Accuracy(0.1), Budget(20.0)):
        sold = np.flatnonzero(allocate(costs, goal=goal, strata=strata).privacy_loss)
        rule = replies(costs, setting="central", goal=goal, strata=strata)
        with monkeypatch.context() as patch:
            patch.setattr(contrast.replies, "solve_contrast", again)
            found = rents(rule, prior, sold, reports[sold])
        assert found.error < 1e-5 * float(found.estimate.max())


# -- the local setting, extremes and refusals --------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [math.inf, 1.0])
def test_local_strata_are_markets_of_their_own(cap: float) -> None:
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


@pytest.mark.parametrize("goal", [Price(1.0), Accuracy(2.0), Budget(1.0)])
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


def test_people_who_ask_for_nothing_in_every_stratum_are_enough_without_noise() -> None:
    found = allocate([0.0, 5.0, 0.0, 0.0], goal=Price(1.0), strata=Strata(codes=[0, 0, 1, 1], weights=[1.0, -1.0]))
    assert found.privacy_loss.tolist() == [math.inf, 0.0, math.inf, math.inf]
    assert found.weights.tolist() == [1.0, 0.0, -0.5, -0.5]
    some = allocate([0.0, 5.0, 1.0, 1.0], goal=Price(1.0), strata=Strata(codes=[0, 0, 1, 1], weights=[1.0, -1.0]))
    assert 0.0 < some.privacy_loss[0] < math.inf


def test_what_cannot_be_bought_is_refused_in_a_sentence() -> None:
    def refused(kind: type[HushbidError], told: str, costs: list[float], strata: Strata, **how: object) -> None:
        with pytest.raises(kind, match=told):
            allocate(costs, strata=strata, **how)  # type: ignore[arg-type]
        with pytest.raises(kind, match=told):
            replies(costs, strata=strata, **{"setting": "central"} | how).at(np.array([0]), np.array([1.0]))  # type: ignore[arg-type]

    two = Strata(codes=[0, 1, 1], weights=[1.0, -1.0], names=("men", "women"))
    refused(NobodyToBuyFrom, "Stratum 'women' has nobody to buy from", [1.0, math.inf, math.inf], two)
    refused(
        NobodyToBuyFrom, "Stratum 'women' has nobody", [1.0, 1.0], Strata(codes=[0, 0], weights=[1, 2], names=two.names)
    )
    refused(InputError, "goal must be a Price with strata", [1.0, 1.0, 1.0], two, setting="local", goal=Accuracy(0.9))
    refused(InputError, "strata must have one code per person", [1.0, 1.0], two)
    with pytest.raises(NobodyToBuyFrom, match="Stratum 'women' has nobody"):
        least_objective([1.0, math.inf, math.inf], setting="central", goal=Price(1.0), strata=two)
    with pytest.raises(Unreachable, match=r"standard_error must be above 0.612372, .* got 0.6"):
        allocate([1.0, 1.0, 1.0], goal=Accuracy(0.6), strata=two)
    with pytest.raises(MarketError, match="a budget cannot be spent on people who ask for nothing"):
        allocate([0.0, 0.0, 0.0], goal=Budget(1.0), strata=two)
