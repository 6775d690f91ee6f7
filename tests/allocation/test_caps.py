"""Exact caps in the central setting, against solvers, sums and quadrature that know nothing of levels."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hushbid.allocation import (
    Accuracy,
    Budget,
    Goal,
    Price,
    ReplyRule,
    allocate,
    capped,
    least_objective,
    populations,
    replies,
)
from hushbid.errors import InputError, MarketError
from hushbid.estimation import Strata, best_weights
from tests.extent import each

GOALS = ["price", "accuracy", "budget"]


def people(seed: int, n: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Costs, variances and caps of a few people, a cap often binding."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6)) if n is None else n
    caps = np.exp(rng.normal(-0.3, 0.8, n))
    if seed % 4 == 0:
        caps[0] = math.inf
    return np.exp(rng.normal(0.0, 0.8, n)), np.exp(rng.normal(-2.0, 0.7, n)), caps


def a_goal(kind: str, seed: int, variances: np.ndarray, caps: np.ndarray) -> Goal:
    rng = np.random.default_rng([seed, 1])
    if kind == "price":
        return Price(float(np.exp(rng.normal(1.0, 1.5))))
    if kind == "budget":
        return Budget(float(np.exp(rng.normal(0.0, 0.8))))
    least = best_weights(caps, setting="central", variance=variances).mse
    return Accuracy(math.sqrt(least * (1.0 + math.exp(rng.normal(-0.5, 1.0)))))


def error(losses: np.ndarray, variances: np.ndarray) -> float:
    return (2.0 + float(variances @ losses**2)) / float(losses.sum()) ** 2


def brute_force(costs: np.ndarray, variances: np.ndarray, caps: np.ndarray, goal: Goal) -> float:
    """The best of many local searches."""
    rng, best, number = np.random.default_rng(0), math.inf, goal.number
    top = np.minimum(caps, 50.0)

    def objective(e: np.ndarray) -> float:
        if isinstance(goal, Budget):
            return math.log(error(e, variances))
        return float(costs @ e) + (number * error(e, variances) if isinstance(goal, Price) else 0.0)

    def room(e: np.ndarray) -> float:
        if isinstance(goal, Accuracy):
            return number * float(e.sum()) - math.sqrt(2.0 + float(variances @ e**2))
        return number - float(costs @ e) if isinstance(goal, Budget) else 0.0

    for _ in range(3):
        found = minimize(
            objective,
            rng.uniform(0.05, 1.0, costs.size) * np.minimum(top, 3.0),
            bounds=[(1e-9, cap) for cap in top],
            constraints=[] if isinstance(goal, Price) else [{"type": "ineq", "fun": room}],
            method="SLSQP",
            options={"ftol": 1e-16, "maxiter": 800},
        )
        if room(found.x) >= -1e-10 * number:
            best = min(best, float(found.fun))
    return math.exp(best) if isinstance(goal, Budget) else best


@each("kind", GOALS)
@each("seed", [0, 3, 6])
def test_no_search_finds_anything_better_than_the_capped_optimum(kind: str, seed: int) -> None:
    costs, variances, caps = people(seed)
    goal = a_goal(kind, seed, variances, caps)
    found = allocate(costs, variance=variances, goal=goal, max_loss=caps)
    assert (found.privacy_loss <= caps).all()
    best = brute_force(costs, variances, caps, goal)
    assert found.objective <= best * (1.0 + 1e-9)
    assert best < math.inf
    # the solution is what it says, and the certificate holds and is tight
    assert found.mse == pytest.approx(error(found.privacy_loss, variances), rel=1e-12)
    assert found.lower_bound <= found.objective
    assert found.gap < 1e-9
    expense = float(costs @ found.privacy_loss)
    if kind == "accuracy":
        assert found.mse == pytest.approx(goal.number**2, rel=1e-11)
        assert found.objective == pytest.approx(expense, rel=1e-12)
    elif kind == "budget":
        assert expense <= goal.number * (1.0 + 1e-11)
        assert found.objective == found.mse


def test_one_cap_and_one_variance_agree_with_one_each() -> None:
    rng = np.random.default_rng(3)
    costs = rng.uniform(1.0, 4.0, 300)
    for goal in (Price(2e4), Accuracy(0.06), Budget(20.0)):
        free = allocate(costs, variance=0.25, goal=goal)
        cap = 0.4 * float(free.privacy_loss.max())
        one = allocate(costs, variance=0.25, goal=goal, max_loss=cap)
        each = allocate(costs, variance=np.full(300, 0.25), goal=goal, max_loss=np.full(300, cap))
        assert one.privacy_loss == pytest.approx(each.privacy_loss, abs=1e-11)
        assert one.gap < 1e-9
        assert one.objective > free.objective
        assert one.active >= free.active


@pytest.mark.parametrize("kind", GOALS)
def test_caps_that_do_not_bind_change_nothing(kind: str) -> None:
    costs, variances, _ = people(5)
    goal = a_goal(kind, 5, variances, np.full(costs.size, 10.0))
    free = allocate(costs, variance=variances, goal=goal)
    capped = allocate(costs, variance=variances, goal=goal, max_loss=float(free.privacy_loss.max()) * 1.01)
    assert capped.privacy_loss.tolist() == free.privacy_loss.tolist()


@pytest.mark.parametrize("kind", GOALS)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10_000), row=st.integers(0, 1))
def test_raising_ones_cost_never_raises_ones_loss_and_the_slope_of_the_value_is_the_loss(
    kind: str, seed: int, row: int
) -> None:
    costs, variances, caps = people(seed)
    goal = a_goal(kind, seed, variances, caps)
    rule = replies(costs, setting="central", variance=variances, goal=goal, max_loss=caps)
    grid = np.linspace(0.05, 3.0, 12) * costs[row]
    answer = rule.at(np.full(grid.size, row), grid)
    assert (np.diff(answer.loss) <= 1e-10 * answer.loss.max()).all()
    assert (answer.loss <= caps[row] * (1.0 + 1e-12)).all()
    # a falling loss lies between its values at the ends of every step, so does the rise of its potential
    step, rise = np.diff(grid), np.diff(answer.value)
    slack = 1e-11 * np.abs(answer.value).max()
    assert (rise <= answer.loss[:-1] * step + slack).all()
    assert (rise >= answer.loss[1:] * step - slack).all()


@each("kind", GOALS)
@each("alike", [True, False])
def test_replies_are_what_solving_again_gives(kind: str, alike: bool) -> None:
    costs, variances, caps = people(11, n=90)
    if alike:
        variances, caps = np.full(90, 0.2), np.full(90, 0.3)
    goal = {"price": Price(1e4), "accuracy": Accuracy(0.15), "budget": Budget(6.0)}[kind]
    told = {"variance": 0.2, "max_loss": 0.3} if alike else {"variance": variances, "max_loss": caps}
    rule = replies(costs, setting="central", goal=goal, **told)
    order = np.argsort(costs)
    rows = order[[0, 0, 30, 89]]
    moved = np.array([1.5, math.inf, 1.001, 0.2]) * costs[rows]
    answer, now = rule.at(rows, moved), rule.at(rows, costs[rows]).value
    for j, (row, cost) in enumerate(zip(rows, moved, strict=True)):
        again = np.where(np.arange(90) == row, cost, costs)
        found = allocate(again, goal=goal, **told)
        assert answer.loss[j] == pytest.approx(found.privacy_loss[row], rel=1e-9, abs=1e-12)
        assert answer.mse[j] == pytest.approx(found.mse, rel=1e-10)
        if kind != "budget":
            rise = found.objective - allocate(costs, goal=goal, **told).objective
            assert answer.value[j] - now[j] == pytest.approx(rise, rel=1e-11, abs=1e-12 * found.objective)


def integral(loss: Callable[[np.ndarray], np.ndarray], edges: np.ndarray) -> float:
    """By Lobatto's rule, which looks at both ends, splitting wherever that makes a difference."""
    last = np.polynomial.legendre.Legendre.basis(6)
    nodes = np.concatenate([[-1.0], last.deriv().roots(), [1.0]])
    weights = 2.0 / (42.0 * last(nodes) ** 2)

    def rule(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        half = 0.5 * (right - left)
        x = 0.5 * (left + right)[:, None] + half[:, None] * nodes
        return half * (loss(x.ravel()).reshape(x.shape) @ weights)

    left, right, area = edges[:-1], edges[1:], 0.0
    while left.size:
        middle = left + 0.37 * (right - left)
        halves = rule(left, middle) + rule(middle, right)
        rough = np.abs(rule(left, right) - halves) > 1e-11 * (area + halves.sum())
        area += float(halves[~rough].sum())
        left, right = np.append(left[rough], middle[rough]), np.append(middle[rough], right[rough])
    return area


def test_the_potential_of_a_budget_is_the_integral_of_the_loss() -> None:
    costs, variances, caps = people(8, n=7)
    for told in ({"variance": variances, "max_loss": caps}, {"variance": 0.2, "max_loss": 0.7}):
        rule = replies(costs, setting="central", goal=Budget(3.0), **told)
        edges = np.geomspace(0.05, 40.0, 13) * costs[3]

        def loss(x: np.ndarray, rule: ReplyRule = rule) -> np.ndarray:
            return rule.at(np.full(x.size, 3), x).loss

        first, last = rule.at(np.full(2, 3), edges[[0, -1]]).value
        assert last - first == pytest.approx(integral(loss, edges), rel=1e-9)


def test_a_budget_that_cannot_be_spent_buys_the_most_accurate_losses() -> None:
    costs, variances, caps = people(2)
    best = best_weights(caps, setting="central", variance=variances)
    amount = 1.01 * float(costs @ best.delivered)
    found = allocate(costs, variance=variances, goal=Budget(amount), max_loss=caps)
    assert found.privacy_loss == pytest.approx(best.delivered, rel=1e-12)
    assert found.gap < 1e-9
    just = allocate(costs, variance=variances, goal=Budget(amount / 1.02), max_loss=caps)
    assert just.mse > found.mse
    assert float(costs @ just.privacy_loss) == pytest.approx(amount / 1.02, rel=1e-11)


def test_an_accuracy_out_of_reach_says_what_can_be_reached() -> None:
    costs, variances, caps = people(6)
    least = math.sqrt(best_weights(caps, setting="central", variance=variances).mse)
    with pytest.raises(MarketError, match=f"{least:.6g}") as refused:
        allocate(costs, variance=variances, goal=Accuracy(0.99 * least), max_loss=caps)
    assert refused.value.field == "standard_error"
    assert allocate(costs, variance=variances, goal=Accuracy(1.001 * least), max_loss=caps).gap < 1e-6


@each("kind", GOALS)
@each("seed", range(2))
def test_a_looser_cap_of_ones_own_never_lowers_ones_loss(kind: str, seed: int) -> None:
    costs, variances, caps = people(seed)
    goal = a_goal(kind, seed, variances, caps)
    before = 0.0
    for factor in (1.0, 1.3, 3.0):
        own = np.where(np.arange(caps.size) == 1, factor * caps, caps)
        found = allocate(costs, variance=variances, goal=goal, max_loss=own)
        assert found.privacy_loss[1] >= before * (1.0 - 1e-9)
        before = float(found.privacy_loss[1])


def test_people_who_ask_for_nothing_are_bought_from_up_to_their_caps() -> None:
    costs, caps = np.array([0.0, 0.0, 2.0, 3.0]), np.array([0.5, 0.8, 2.0, 2.0])
    price = allocate(costs, variance=0.25, goal=Price(0.9), max_loss=caps)
    assert price.privacy_loss.tolist() == pytest.approx([0.5, 0.8, 0.0, 0.0])
    assert price.gap < 1e-9
    # enough by themselves: nothing is paid, and the error is the one wanted
    easy = allocate(costs, variance=0.25, goal=Accuracy(1.3), max_loss=caps)
    assert easy.objective == 0.0
    assert easy.mse == pytest.approx(1.3**2, rel=1e-12)
    hard = allocate(costs, variance=0.25, goal=Accuracy(0.9), max_loss=caps)
    assert hard.privacy_loss[:2].tolist() == [0.5, 0.8]
    assert hard.objective > 0.0
    # without a cap, and without noise
    open_ = allocate(costs[[0, 2]], variance=0.25, goal=Price(0.1), max_loss=[math.inf, 0.5])
    assert open_.privacy_loss.tolist() == [math.inf, 0.0]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"max_loss": 0.0}, "max_loss must be positive, got 0"),
        ({"max_loss": [1.0, -1.0, 1.0]}, "row 1"),
        ({"max_loss": [1.0, 1.0]}, "one per person"),
        ({"max_loss": 1.0, "variance": 0.0}, "variance must be above 0"),
    ],
)
def test_caps_that_make_no_sense_are_refused_in_one_sentence(told: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        allocate([1.0, 2.0, 3.0], **told)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", GOALS)
def test_summing_people_who_change_no_group_only_once_changes_no_answer(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    costs, variances, caps = rng.uniform(1.0, 1.6, 250), rng.uniform(0.04, 0.06, 250), rng.choice([0.05, 0.1, 2.0], 250)
    goal = {"price": Price(12_500.0), "accuracy": Accuracy(0.2), "budget": Budget(10.0)}[kind]
    bought = allocate(costs, variance=variances, goal=goal, max_loss=caps).privacy_loss
    capped, out = bought >= caps * (1.0 - 1e-12), bought == 0.0
    assert min(capped.sum(), out.sum(), (~capped & ~out).sum()) > 5
    rows = np.arange(250)
    moved = [costs, 1.2 * costs, 3.0 * costs, np.full(250, math.inf)]

    def answers() -> np.ndarray:
        rule = replies(costs, setting="central", variance=variances, goal=goal, max_loss=caps)
        found = [rule.at(rows, cost) for cost in moved]
        return np.array([[one.value, one.loss, one.mse] for one in found])

    one_by_one = answers()
    monkeypatch.setattr(populations, "_LOOKED_AT", 0)
    assert one_by_one == pytest.approx(answers(), rel=1e-11, abs=1e-13)


def test_an_accuracy_is_out_of_reach_without_exactly_those_who_are_needed_for_it() -> None:
    costs, variances, caps = people(13, n=12)
    goal = Accuracy(1.06 * math.sqrt(best_weights(caps, setting="central", variance=variances).mse))
    rule = replies(costs, setting="central", variance=variances, goal=goal, max_loss=caps)
    without = rule.at(np.arange(12), np.full(12, math.inf)).value
    needed = []
    for row in range(12):
        others = np.arange(12) != row
        best = best_weights(caps[others], setting="central", variance=variances[others])
        needed.append(best.mse > goal.number**2)
    assert (without == math.inf).tolist() == needed
    assert 0 < sum(needed) < 12


@pytest.mark.parametrize("share", [0.5, 0.02])
@pytest.mark.parametrize("kind", ["price", "accuracy", "budget"])
def test_of_many_people_a_few_looked_at_are_bought_from_as_if_all_were(
    kind: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = 2.0 * np.random.default_rng(3).exponential(size=40_000)
    free = allocate(costs, goal=Price(50.0))
    cap = share * float(free.privacy_loss.max())
    goals = {"accuracy": Accuracy(1.2 * free.mse**0.5), "budget": Budget(0.7 * float(costs @ free.privacy_loss))}
    goal = goals.get(kind, Price(50.0))
    found = allocate(costs, goal=goal, max_loss=cap)
    monkeypatch.setattr(capped, "SELECT_ABOVE", 10**9)
    among_all = allocate(costs, goal=goal, max_loss=cap)
    assert found.active < 20_000
    assert found.objective == pytest.approx(among_all.objective, rel=1e-12)
    np.testing.assert_allclose(found.privacy_loss, among_all.privacy_loss, rtol=1e-8, atol=1e-12)
    assert 0.0 <= found.gap < 1e-9


def test_somebody_who_asks_for_far_more_than_all_others_is_as_good_as_not_there() -> None:
    for far in (1e12, 1e17, 5e21):
        for near in ([2.7], [0.0, 2.7], [2.7, 2.8, 3.0]):
            alone = allocate(near, goal=Price(100.0), max_loss=1.0)
            beside = allocate([*near, far, far], goal=Price(100.0), max_loss=1.0)
            assert beside.privacy_loss.tolist() == [*alone.privacy_loss.tolist(), 0.0, 0.0]
            assert beside.lower_bound == pytest.approx(beside.objective, rel=1e-9)


@pytest.mark.parametrize("stratified", [False, True])
def test_nobody_sells_whose_cost_is_above_what_their_loss_would_save(stratified: bool) -> None:
    rng = np.random.default_rng(11)
    corners = 0
    for market in range(1900):
        people = int(rng.integers(2, 12))
        costs, cap = rng.uniform(1.0, 3.0, people), 10.0 ** rng.uniform(-2.0, 0.5)
        caps = np.full(people, cap) if rng.random() < 0.5 else cap * rng.uniform(0.3, 3.0, people)
        weight = (people * cap) ** 3 * 10.0 ** rng.uniform(-1.5, 1.0)
        if market not in {477, 666, 795, 1173, 1438, 1511, 1830, 1846, 1884}:  # where the optimum is at a corner
            continue
        strata = None
        if stratified:  # the same market twice
            costs, caps = np.tile(costs, 2), np.tile(caps, 2)
            weight *= 8.0
            strata = Strata(codes=np.repeat([0, 1], people), weights=np.array([0.5, 0.5]), names=("a", "b"))
        found = allocate(costs, goal=Price(weight), max_loss=caps, strata=strata)
        loss = found.privacy_loss
        saved = 2.0 * weight * found.mse / loss.sum()
        assert (costs[loss > 0.0] <= saved * (1.0 + 1e-9)).all()
        assert found.active == np.count_nonzero(costs <= saved)
        corners += int((loss[loss > 0.0] >= caps[loss > 0.0] * (1.0 - 1e-9)).all())
        rule = replies(costs, setting="central", goal=Price(weight), max_loss=caps, strata=strata)
        np.testing.assert_allclose(rule.at(np.arange(costs.size), costs).loss, loss, rtol=1e-9, atol=0.0)
    assert corners == 9


@pytest.mark.parametrize("strata", [1, 4])
def test_what_a_budget_cannot_beat_is_known_where_caps_bind_nobody(strata: int) -> None:
    """There the budget is spent exactly; rounding must not leave room for any smaller error."""
    rng = np.random.default_rng(5)
    for n in (8, 40, 200):
        costs, codes = rng.uniform(0.0, 1.0, n), np.arange(n) % strata
        how: dict[str, Any] = {
            "goal": Budget(float(rng.uniform(0.1, 3.0))),
            "strata": Strata(codes=codes, weights=np.full(strata, 1.0 / strata)),
        }
        free = allocate(costs, **how)
        bound = least_objective(costs, setting="central", max_loss=2.0 * float(free.privacy_loss.max()), **how)
        assert bound == pytest.approx(free.objective, rel=1e-9)
        assert bound <= free.objective


def test_a_budget_that_is_spent_on_all_that_caps_allow_has_a_value_function() -> None:
    rng = np.random.default_rng(2)
    for n in (2, 12):
        for _ in range(20):
            costs, caps = rng.uniform(1.0, 4.0, n), rng.uniform(1e-5, 2e-5, n)
            rule = replies(costs, setting="central", goal=Budget(float((costs * caps).sum())), max_loss=caps)
            rows = np.arange(n)
            higher, own = rule.at(rows, 1.1 * costs), rule.at(rows, costs)
            assert own.loss == pytest.approx(caps, rel=1e-9)
            rise = higher.value - own.value
            assert (rise <= 0.1 * costs * own.loss * (1.0 + 1e-9)).all()
            assert (rise >= 0.1 * costs * higher.loss * (1.0 - 1e-9)).all()


def test_where_a_budget_cannot_be_spent_a_dearer_person_gets_what_the_others_leave() -> None:
    rng = np.random.default_rng(8)
    for people, cap, slack in ((2, 0.3, 1.0001), (6, 0.5, 1.05), (27, 1.0, 3.0), (40, 0.02, 1.5)):
        costs, variance = rng.uniform(1.0, 4.0, people), rng.uniform(0.05, 0.3, people)
        how: dict[str, Any] = {"variance": variance, "goal": Budget(slack * cap * costs.sum()), "max_loss": cap}
        rule = replies(costs, setting="central", **how)
        rows, factors = np.repeat(np.arange(people), 4), np.tile([1.0, 1.5, 20.0, 1e4], people)
        moved = costs[rows] * factors
        found = rule.at(rows, moved)
        for row, own, loss, mse in zip(rows, moved, found.loss, found.mse, strict=True):
            again = allocate(np.where(np.arange(people) == row, own, costs), **how)
            assert loss == pytest.approx(again.privacy_loss[row], rel=1e-9)
            assert mse == pytest.approx(again.mse, rel=1e-11)
        # the change of the value is the integral of the loss
        grid = np.geomspace(costs[0], 1e3 * costs[0], 6_001)
        along = rule.at(np.zeros(grid.size, dtype=np.intp), grid)
        areas = np.cumsum(np.diff(grid) * (along.loss[1:] + along.loss[:-1]) / 2.0)
        assert along.value[1:] - along.value[0] == pytest.approx(areas, rel=1e-4)


@pytest.mark.parametrize("goal", [Price(5.0), Accuracy(0.6)])
def test_values_of_a_person_who_joins_under_caps_are_integrals_of_the_loss(goal: Goal) -> None:
    """Every person has a variance, so that another person's would show."""
    costs = np.array([1.0, 1.2, math.inf, 1.5, 2.0])
    variances, caps = np.array([0.25, 0.2, 0.02, 0.1, 0.05]), np.array([0.9, 0.8, 0.7, 0.9, 0.8])
    rule = replies(costs, setting="central", goal=goal, variance=variances, max_loss=caps)
    own = np.linspace(1.0, 1.6, 61)
    found = rule.at(np.full(own.size, 2), own)
    areas, steps = np.diff(found.value), np.diff(own)
    assert found.loss[0] > found.loss[-1] > 0.0
    assert (areas >= found.loss[1:] * steps * (1.0 - 1e-9)).all()
    assert (areas <= found.loss[:-1] * steps * (1.0 + 1e-9)).all()
