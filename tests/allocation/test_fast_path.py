"""Where no cap binds the central optimum is in closed form; it is the one that the general path finds."""

from dataclasses import replace

import numpy as np
import pytest

from hushbid.allocation import Strata
from hushbid.allocation.budget_by_frontier import BudgetPairs
from hushbid.allocation.capped import best_purchase, population
from hushbid.allocation.central import solve
from hushbid.allocation.central_bounds import _capped_bound, lower_bound
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.frontier import at
from hushbid.allocation.pairs_by_frontier import PairsByFrontier
from hushbid.allocation.problem import as_problem
from hushbid.allocation.rule import AllocationRule, allocation_rule
from hushbid.errors import MarketError
from tests.allocation.markets import CentralMarket, markets
from tests.extent import each

MARKETS = [one for one in markets(15) if not one.name.startswith(("extreme", "zero in every", "some zero", "ulps"))]
"""Not those in which zero-cost people add no noise, nor those beyond the digits of the general path."""

WITH_A_RULE = [one for one in MARKETS if one.strata is None or one.goal.kind != "budget"]
"""With strata the integral under a budget has no other way than the closed form."""


def problem_of(market: CentralMarket) -> CentralProblem:
    """The market as a problem without caps."""
    stated = as_problem(
        market.costs, variance=market.variance, error_weight=None, goal=market.goal, tie_key=None, local=False
    )
    strata = Strata(codes=market.codes, weights=market.weights)
    return CentralProblem.of(stated, strata, np.full(market.costs.size, np.inf))


@each("market", MARKETS)
def test_the_closed_form_is_what_the_general_path_finds(market: CentralMarket) -> None:
    problem = problem_of(market)
    try:
        quick = solve(problem)
    except MarketError as refused:
        with pytest.raises(type(refused)):
            best_purchase(problem, None)
        return
    general = best_purchase(problem, None)
    losses = np.zeros(quick.privacy_loss.size)
    losses[general.rows] = general.losses
    assert losses == pytest.approx(quick.privacy_loss, rel=1e-10, abs=1e-12 * float(quick.privacy_loss.max()))
    slow = float(problem.form.objective(np.asarray(_capped_bound(problem))))
    assert lower_bound(problem) == pytest.approx(slow, rel=1e-9)
    assert quick.objective == pytest.approx(slow, rel=1e-9)


@pytest.mark.parametrize("market", WITH_A_RULE, ids=lambda one: one.name)
def test_the_rule_in_closed_form_is_what_the_general_path_finds(market: CentralMarket) -> None:
    problem = problem_of(market)
    some = np.flatnonzero(np.isfinite(market.costs))[::2]
    factors = np.array([0.4, 1.0, 1.1, 3.0, np.inf])
    rows = some.repeat(factors.size)
    costs = market.costs[rows] * np.tile(factors, some.size)
    pairs = BudgetPairs if market.goal.kind == "budget" else PairsByFrontier
    general = AllocationRule(problem.form, problem.codes, problem.caps, pairs(problem)).at(rows, costs)
    quick = allocation_rule(problem).at(rows, costs)
    assert general.loss == pytest.approx(quick.loss, rel=1e-9, abs=1e-10 * float(quick.loss.max()))
    assert general.mse == pytest.approx(quick.mse, rel=1e-9)
    values = [found.value.reshape(some.size, -1) for found in (quick, general)]
    rises = [value - value[:, 1:2] for value in values]
    known = np.isfinite(rises[0])
    assert (known == np.isfinite(rises[1])).all()
    largest = float(np.abs(rises[0][known]).max(initial=0.0))
    assert rises[1][known] == pytest.approx(rises[0][known], rel=1e-8, abs=1e-9 * largest)


@pytest.mark.parametrize("capped", [False, True])
def test_stationary_points_are_minima_where_noise_is_a_quarter_of_the_error_and_not_everywhere(capped: bool) -> None:
    """The lemma of `price_search`, whatever costs, caps, variances and strata: elsewhere the price falls here."""
    falls = 0
    for market in (one for one in MARKETS if one.goal.kind == "price"):
        problem, rng = problem_of(market), np.random.default_rng(3)
        caps = rng.lognormal(3.0, 2.0, market.costs.size) if capped else problem.caps
        rows = np.flatnonzero(np.isfinite(problem.costs))
        people = population(replace(problem, caps=caps), rows, problem.costs[rows])[1]
        points = at(people, np.geomspace(1e-6, 1e6, 1500))
        steps = np.diff(np.log(points.price))
        noisy = points.mse * points.t**2 <= 8.0 * points.sigma**2
        assert steps[noisy[1:] & noisy[:-1]].min() > -1e-11
        falls += int((steps < -1e-9).sum())
    assert falls > 50
