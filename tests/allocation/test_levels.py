"""Accuracy and budget in the central setting: against solvers that know nothing of levels, and the rule they make."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hushbid.allocation import Accuracy, Allocation, Budget, Goal, allocate, replies
from hushbid.allocation.level_replies import LevelReplies
from hushbid.errors import InputError, MarketError, Unreachable
from hushbid.mechanism import Market
from hushbid.priors import Uniform


def error_of(losses: np.ndarray, variance: np.ndarray) -> float:
    return float((2.0 + np.sum(variance * losses**2)) / np.sum(losses) ** 2)


def markets(count: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray, Goal]]:
    """Small markets with unequal variances, and a goal of each kind."""
    rng = np.random.default_rng(seed)
    made: list[tuple[np.ndarray, np.ndarray, Goal]] = []
    for number in range(count):
        n = int(rng.integers(1, 7))
        costs, variance = rng.uniform(0.1, 3.0, n), rng.uniform(0.02, 0.25, n)
        least = 1.0 / np.sum(1.0 / variance)
        goal = Accuracy(math.sqrt(least * rng.uniform(1.05, 6.0))) if number % 2 else Budget(rng.uniform(0.1, 20.0))
        made.append((costs, variance, goal))
    return made


def best_found(costs: np.ndarray, variance: np.ndarray, goal: Goal, start: Allocation) -> float:
    """What a general solver reaches from several places: expense for an accuracy, error for a budget."""
    rng = np.random.default_rng(1)
    # scaled so that the constraint is smooth: √(2 + ΣVε²) ≤ r·Σε, or the logarithm of the error
    if isinstance(goal, Accuracy):
        meets = {
            "type": "ineq",
            "fun": lambda e: goal.standard_error * e.sum() - math.sqrt(2.0 + np.sum(variance * e * e)),
        }
        aim = lambda e: float(costs @ e)  # noqa: E731
    else:
        meets = {"type": "ineq", "fun": lambda e: goal.number - costs @ e}
        aim = lambda e: math.log(error_of(e, variance))  # noqa: E731
    found = math.inf
    for _ in range(5):
        begin = start.privacy_loss.max() * rng.uniform(0.05, 1.0, costs.size)
        done = minimize(
            aim,
            begin,
            method="SLSQP",
            bounds=[(1e-9, None)] * costs.size,
            constraints=[meets],
            options={"ftol": 1e-15, "maxiter": 500},
        )
        if done.success and meets["fun"](done.x) > -1e-10:  # type: ignore[operator]
            found = min(found, done.fun)
    return found if isinstance(goal, Accuracy) else math.exp(found)


@pytest.mark.parametrize("number", range(30))
def test_no_solver_finds_anything_cheaper_or_more_accurate(number: int) -> None:
    costs, variance, goal = markets(30)[number]
    ours = allocate(costs, variance=variance, goal=goal)
    assert ours.mse == pytest.approx(error_of(ours.privacy_loss, variance), rel=1e-12)
    if isinstance(goal, Accuracy):
        assert ours.mse == pytest.approx(goal.standard_error**2, rel=1e-12)
        assert ours.objective == pytest.approx(costs @ ours.privacy_loss, rel=1e-12)
    else:
        assert costs @ ours.privacy_loss == pytest.approx(goal.number, rel=1e-12)
        assert ours.objective == ours.mse
    # a general solver stops a little off its own constraint
    assert ours.objective <= best_found(costs, variance, goal, ours) * (1.0 + 1e-9)
    assert 0.0 <= ours.gap + 1e-12 < 1e-8


@pytest.mark.parametrize("number", range(12))
def test_the_bounds_hold_for_every_purchase_and_not_only_the_best(number: int) -> None:
    costs, variance, goal = markets(12, seed=7)[number]
    bound = allocate(costs, variance=variance, goal=goal).lower_bound
    rng = np.random.default_rng(number)
    for _ in range(300):
        losses = rng.exponential(1.0, costs.size) * rng.integers(0, 2, costs.size)
        if not losses.any():
            continue
        if isinstance(goal, Budget):
            losses *= goal.number / (costs @ losses)
            assert error_of(losses, variance) >= bound
            continue
        # scaled until it is accurate enough, if it can be
        shares = losses / losses.sum()
        left = goal.standard_error**2 - np.sum(variance * shares**2)
        if left > 0:
            assert costs @ shares * math.sqrt(2.0 / left) >= bound


@pytest.mark.parametrize("number", range(10))
def test_replies_are_what_the_solver_says_and_their_potential_is_the_area_under_the_loss(number: int) -> None:
    costs, variance, goal = markets(10, seed=3)[number]
    rule = replies(costs, setting="central", variance=variance, goal=goal)
    rng = np.random.default_rng(number)
    for person in range(costs.size):
        moved = np.sort(rng.uniform(0.02, 6.0, 25))
        found = rule.at(np.full(25, person), moved)
        for cost, loss, error in zip(moved, found.loss, found.mse, strict=True):
            changed = costs.copy()
            changed[person] = cost
            again = allocate(changed, variance=variance, goal=goal)
            assert loss == pytest.approx(again.privacy_loss[person], rel=1e-9, abs=1e-12)
            assert error == pytest.approx(again.mse, rel=1e-9)
        # Simpson's rule on a fine grid; the loss has kinks
        grid = np.linspace(moved[2], moved[20], 20_001)
        loss = rule.at(np.full(grid.size, person), grid).loss
        area = (grid[1] - grid[0]) / 3.0 * (loss[0] + loss[-1] + 4.0 * loss[1:-1:2].sum() + 2.0 * loss[2:-2:2].sum())
        ends = rule.at(np.full(2, person), grid[[0, -1]]).value
        assert ends[1] - ends[0] == pytest.approx(area, rel=1e-6, abs=1e-9)


@given(
    costs=st.lists(st.floats(0.0, 100.0), min_size=2, max_size=9),
    goal=st.sampled_from([Accuracy(0.36), Accuracy(0.6), Accuracy(3.0), Budget(0.3), Budget(40.0)]),
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


def test_many_people_are_selected_not_sorted_and_nothing_is_lost() -> None:
    rng = np.random.default_rng(5)
    for costs in (rng.uniform(1.0, 3.0, 50_000), rng.lognormal(0.0, 2.0, 50_000), np.repeat([1.0, 2.0], 25_000)):
        variance = rng.choice([0.1, 0.2], costs.size)
        for goal in (Accuracy(0.005), Budget(30.0)):
            found = allocate(costs, variance=variance, goal=goal)
            assert found.gap < 1e-8


def test_people_who_ask_for_nothing_are_enough_or_help() -> None:
    free = allocate([0.0, 0.0, 0.0, 1.0], variance=0.25, goal=Accuracy(0.4))
    assert free.objective == 0.0
    assert free.privacy_loss[3] == 0.0
    assert error_of(free.privacy_loss, np.full(4, 0.25)) == pytest.approx(0.16)
    helped = allocate([0.0, 1.0, 1.0], variance=0.25, goal=Accuracy(0.4))
    assert helped.privacy_loss[0] > helped.privacy_loss[1] > 0.0
    assert error_of(helped.privacy_loss, np.full(3, 0.25)) == pytest.approx(0.16)
    spent = allocate([0.0, 1.0], variance=0.25, goal=Budget(2.0))
    assert spent.privacy_loss[1] == pytest.approx(2.0)
    # raising one of the free changes nothing while the others are enough
    rule = replies([0.0, 0.0, 0.0, 1.0], setting="central", goal=Accuracy(0.6))
    assert rule.at(np.array([0, 0, 3]), np.array([0.5, 0.0, 0.2])).loss.tolist() == pytest.approx(
        [0.0, math.sqrt(2.0 / (0.36 - 0.25 / 3)) / 3, 0.0]
    )


def test_the_only_one_who_asks_for_anything_sells_for_the_whole_budget_at_every_cost() -> None:
    rule = replies([0.0, 3.0], setting="central", goal=Budget(2.0))
    found = rule.at(np.array([1, 1, 1]), np.array([1.0, 2.0, 8.0]))
    assert found.loss == pytest.approx([2.0, 1.0, 0.25])
    assert np.diff(found.value) == pytest.approx([2.0 * math.log(2.0), 2.0 * math.log(4.0)])


def test_without_somebody_indispensable_an_accuracy_has_no_price() -> None:
    rule = replies([1.0, 1.0], setting="central", variance=0.25, goal=Accuracy(0.4))
    found = rule.at(np.array([0, 0]), np.array([50.0, math.inf]))
    assert found.loss[0] > 0.0
    assert found.value[1] == math.inf


def test_what_cannot_be_had_is_refused_in_one_sentence() -> None:
    with pytest.raises(Unreachable, match=r"standard_error must be above 0\.25, the error of these 4 people's data"):
        allocate([1.0] * 4, variance=0.25, goal=Accuracy(0.25))
    with pytest.raises(MarketError, match="a budget cannot be spent on people who ask for nothing"):
        allocate([0.0, 0.0], goal=Budget(1.0))
    with pytest.raises(InputError, match=r"virtual_costs must not all be above 1e\+140, got 1e\+200 as the smallest"):
        allocate([1e200, 1e201], goal=Budget(1.0))
    with pytest.raises(InputError, match="give either goal or error_weight, got both"):
        allocate([1.0, 2.0], goal=Budget(1.0), error_weight=2.0)
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match=r"amount must be"):
            Budget(wrong)


@pytest.mark.filterwarnings("error")
def test_under_a_budget_nobody_far_above_the_level_is_bought_from_and_one_far_below_the_next_is_as_if_alone() -> None:
    row, far = np.zeros(3, dtype=np.intp), np.array([5.0, 1e16, 1e30])
    above = replies([1.0, 2.0], variance=0.25, goal=Budget(2.0), setting="central").at(row, far)
    assert above.loss.tolist() == above.value.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(above.mse, 2.25)
    below = replies([1.0, 1e50], variance=0.25, goal=Budget(2.0), setting="central").at(row, far)
    np.testing.assert_allclose(below.loss, 2.0 / far)


def test_a_budget_has_a_potential_for_who_asks_for_nothing_beside_somebody_who_asks_for_far_too_much() -> None:
    rule = replies([1.0, 1e50], setting="central", goal=Budget(5.0))
    found = rule.at(np.zeros(4, dtype=int), np.array([0.0, 1e-40, 1e-3, 1.0]))
    assert np.isfinite(found.value).all()
    # in between all of the budget is hers, at a loss of 5/x
    assert np.diff(found.value)[1:] == pytest.approx(5.0 * np.log([1e37, 1e3]), rel=1e-12)


def test_losses_under_a_budget_are_known_without_value_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    build = LevelReplies.__init__

    def counted(self: LevelReplies, *how: Any) -> None:
        made.append(self)
        build(self, *how)

    monkeypatch.setattr(LevelReplies, "__init__", counted)
    bids = np.random.default_rng(0).uniform(0.0, 1.0, 2000)
    # from the lowest bid, 0, each person's value function would be a rule of its own
    Market(prior=Uniform(0, 1), goal=Budget(20.0)).acquire(bids)
    assert len(made) == 1
