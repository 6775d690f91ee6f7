"""Caps so low that nearly everybody gives all they may, against closed forms and the verifier's own rule."""

import math

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, Price, allocate, replies
from hushbid.verification.central_rule import CentralRule


@pytest.mark.parametrize("goal", [Price(1e-3), Accuracy(7e8), Budget(1e-8)])
def test_caps_so_low_that_only_noise_counts_are_bought_from_the_cheapest_first(goal: Goal) -> None:
    """The error is ``2/S²``, so the cheapest give all they may, and one person the rest."""
    costs, cap = np.random.default_rng(4).uniform(1.0, 2.0, 12), 3e-10
    total = {"price": 12 * cap, "accuracy": math.sqrt(2.0) / goal.number, "budget": math.nan}[goal.kind]
    order = np.argsort(costs)
    if isinstance(goal, Budget):
        full = int(np.searchsorted(np.cumsum(costs[order]) * cap, goal.number, side="right"))
        total = 12 * cap
        if full < 12:
            total = full * cap + (goal.number - cap * costs[order[:full]].sum()) / costs[order[full]]
    expected = np.zeros(12)
    expected[order] = np.clip(total - cap * np.arange(12), 0.0, cap)
    found = allocate(costs, goal=goal, max_loss=cap)
    assert found.privacy_loss == pytest.approx(expected, rel=1e-9, abs=1e-9 * cap)
    assert 0.0 <= found.gap < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_rents_under_low_caps_have_all_their_digits(seed: int) -> None:
    """Everybody is at the cap at every cost up to some, so the value rises by the cap times the cost, exactly."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    costs, caps = rng.uniform(0.5, 3.0, n), rng.uniform(0.3, 3.0, n) * 1e-7
    rule = replies(costs, setting="central", goal=Price(50.0), max_loss=caps)
    rows, moved = rng.integers(0, n, 12), rng.uniform(0.01, 400.0, 12)
    rises = rule.at(rows, moved).value - rule.at(rows, costs[rows]).value
    assert rises == pytest.approx(caps[rows] * (moved - costs[rows]), rel=1e-9, abs=1e-18)


@pytest.mark.parametrize("seed", range(4))
def test_what_others_at_their_cap_leave_of_a_budget_is_theirs_at_any_cost(seed: int) -> None:
    """Decision and verification, from below their cap to where the level is their cost to the last digit."""
    rng = np.random.default_rng(seed)
    n, row, cap = int(rng.integers(2, 7)), 0, 0.7
    costs = rng.uniform(0.5, 3, n)
    others = cap * costs[1:].sum()
    budget = others + float(rng.uniform(2.0, 9.0))
    at = (budget - others) / cap * np.geomspace(20.0, 1e9, 40)
    rows = np.full(at.size, row)
    ours = replies(costs, setting="central", goal=Budget(budget), max_loss=cap).at(rows, at)
    assert ours.loss == pytest.approx((budget - others) / at, rel=1e-9)
    alike = np.zeros(n, dtype=np.intp)
    rule = CentralRule(costs, np.full(n, 0.25), np.full(n, cap), alike, np.ones(1), expense=budget)
    checked = rule.at(rows, at)
    assert checked.loss == pytest.approx((budget - others) / at, rel=1e-9)
    assert ours.mse == pytest.approx(checked.mse, rel=1e-9)
