"""Caps so low that everybody gives all she may: the closed form against the search that assumes nothing."""

import numpy as np
import pytest

from hushbid.allocation import Budget, Price
from hushbid.allocation.capped import CappedReplies, FullCaps
from hushbid.allocation.problem import as_problem
from hushbid.verification.central_under_caps import CappedRule


@pytest.mark.parametrize("seed", range(8))
def test_low_caps_are_answered_as_the_search_answers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    costs, variance, caps = rng.uniform(0.05, 3, n), rng.uniform(0.05, 0.25, n), rng.uniform(0.01, 0.4, n)
    problem = as_problem(
        costs, variance=variance, error_weight=None, goal=Price(rng.uniform(5, 50)), tie_key=None, local=False
    )
    quick = FullCaps.of(problem, caps)
    assert quick is not None
    rows = rng.integers(0, n, 12)
    moved = np.append(rng.uniform(0.01, 400, 11), np.inf)
    ours, searched = quick.at(rows, moved), CappedReplies(problem, caps).at(rows, moved)
    finite = np.isfinite(searched.value)
    assert (np.isfinite(ours.value) == finite).all()
    assert ours.value[finite] == pytest.approx(searched.value[finite], rel=1e-9)
    assert ours.loss == pytest.approx(searched.loss, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_what_others_at_their_cap_leave_of_a_budget_is_hers_at_any_cost(seed: int) -> None:
    """Decision and verification, from where she is below her cap to where her level is hers to the last digit."""
    rng = np.random.default_rng(seed)
    n, row, cap = int(rng.integers(2, 7)), 0, 0.7
    costs = rng.uniform(0.5, 3, n)
    others = cap * costs[1:].sum()
    budget = others + float(rng.uniform(2.0, 9.0))
    problem = as_problem(costs, variance=0.25, error_weight=None, goal=Budget(budget), tie_key=None, local=False)
    at = (budget - others) / cap * np.geomspace(20.0, 1e9, 40)
    rows = np.full(at.size, row)
    ours = CappedReplies(problem, cap).at(rows, at)
    assert ours.loss == pytest.approx((budget - others) / at, rel=1e-5)
    checked = CappedRule(costs, np.full(n, 0.25), np.full(n, cap), expense=budget).at(rows, at)
    assert checked.loss == pytest.approx((budget - others) / at, rel=1e-9)
    assert ours.mse == pytest.approx(checked.mse, rel=1e-9)


def test_caps_that_leave_room_are_left_to_the_search() -> None:
    problem = as_problem([1.0, 2.0], variance=0.25, error_weight=None, goal=Price(1.0), tie_key=None, local=False)
    assert FullCaps.of(problem, 5.0) is None
