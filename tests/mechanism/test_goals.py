"""What the goals promise, over many simulated campaigns: a budget on average, an accuracy every time."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from hushbid import Accuracy, Budget, Empirical, Gamma, HardBudget, LogNormal, Market, Mixture, Price, Uniform
from hushbid.errors import InputError, Unreachable
from hushbid.mechanism.worst_case import worst_payment
from tests.extent import each

PRIORS = {
    "uniform": Uniform(1, 2),
    "log-normal": LogNormal(0, 0.5),
    "gamma": Gamma(2.0, 0.5),
    "empirical": Empirical([0.5, 1.0, 1.1, 2.0, 3.0]),
    "ironed mixture": Mixture([Uniform(0.5, 1), Uniform(1.5, 2)], [0.5, 0.5]),
}

CASES = [*((name, 0.0) for name in PRIORS), ("uniform", 0.1), ("empirical", 0.1)]


def generator(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("name", "relation"), [*((name, 0.0) for name in PRIORS), ("uniform", 0.1), ("empirical", 0.1)]
)
def test_a_budget_is_what_campaigns_cost_on_average(name, relation):
    made = Market(prior=PRIORS[name], goal=Budget(12.0), max_correlation=relation)
    found = made.simulate(12, 60, rng=generator(5))
    paid = found.total_payment
    error = float(paid.std(ddof=1)) / math.sqrt(paid.size)
    assert abs(float(paid.mean()) - 12.0) <= 3.5 * error
    assert error < 0.03 * 12.0  # a budget missed by a tenth would be seen
    assert paid.max() <= found.worst_payment_bound
    assert found.unreachable == 0


@each(("name", "relation"), [*((name, 0.0) for name in PRIORS), ("uniform", 0.1), ("empirical", 0.1)])
def test_an_accuracy_is_kept_in_every_campaign(name, relation):
    made = Market(prior=PRIORS[name], goal=Accuracy(0.2), max_correlation=relation)
    found = made.simulate(25, 12, rng=generator(6))
    assert (found.worst_mse == 0.2**2).all()
    assert (found.mse < found.worst_mse).all() if relation > 0.0 else (found.mse == found.worst_mse).all()
    assert found.total_payment.std() > 0.0


def figures(goal, draws):
    """Error and virtual payment of each campaign, which have the same mean as error and payment."""
    market = Market(prior=Uniform(1, 2), goal=goal)
    population, prior = market.for_people(draws.shape[1]), market.prior
    found = []
    for bids in draws:
        costs = np.asarray(prior.virtual_cost(bids))
        bought = population.allocation(costs)
        found.append((bought.mse, float(costs @ bought.privacy_loss)))
    return np.array(found).T


@pytest.mark.parametrize(("n", "budget", "excess"), [(5, 5.0, 0.029), (20, 5.0, 0.008), (20, 20.0, 0.004)])
def test_keeping_a_budget_every_time_costs_little_accuracy_against_keeping_it_on_average(n, budget, excess):
    """The ex ante optimum is a price for the error, found for these draws, with the same expected payment."""
    draws = 1.0 + generator(7).random((200, n))
    errors = figures(Budget(budget), draws)[0]
    weight = brentq(lambda x: figures(Price(math.exp(x)), draws)[1].mean() - budget, 0.0, 14.0, xtol=1e-4)
    best = figures(Price(math.exp(weight)), draws)[0]
    ratio = errors.mean() / best.mean() - 1.0
    assert ratio == pytest.approx(excess, abs=0.25 * excess + 0.0005)


def test_campaigns_out_of_reach_are_counted_and_nothing_is_paid_in_them():
    """Three of four people must be within the prior: with others above it, some campaigns cannot reach the accuracy."""
    made = Market(prior=Uniform(1, 2), goal=Accuracy(0.3))
    found = made.simulate(4, 40, rng=generator(8), true_prior=Uniform(1, 2.8))
    missed = np.isinf(found.mse)
    assert 0 < found.unreachable == missed.sum() < 40
    assert (found.total_payment[missed] == 0.0).all()
    assert (found.total_payment[~missed] > 0.0).all()
    assert f"In {found.unreachable} campaigns the accuracy was out of reach" in found.summary()
    with pytest.raises(Unreachable, match=r"standard_error must be above 0\.353553"):
        made.simulate(2, 5, rng=generator(8))


def test_a_simulation_tells_the_error_at_worst_where_a_relation_is_allowed_for():
    text = Market(prior=Uniform(1, 2), goal=Budget(5), max_correlation=0.2).simulate(8, 5, rng=generator()).summary()
    assert "At worst, if price and datum are related" in text
    assert "At worst" not in Market(prior=Uniform(1, 2), goal=Budget(5)).simulate(8, 5, rng=generator()).summary()


@pytest.mark.parametrize("goal", [Budget(6.0), Accuracy(0.25), HardBudget(6.0)])
def test_schedules_and_menus_are_of_the_goal(goal):
    """A person's own curve passes through her decision, and the truth is best on it; a menu falls with the bid."""
    made = Market(prior=Uniform(1, 2), goal=goal, max_correlation=0.1)
    bids = np.linspace(1.0, 2.0, 9)
    outcome = made.acquire(bids)
    everybody = outcome.schedule()
    for row in (0, 3):
        own = outcome.schedule(user=row)
        assert own.privacy_loss(bids[row])[0] == pytest.approx(outcome.privacy_loss[row], rel=1e-9)
        assert own.payment(bids[row])[0] == pytest.approx(outcome.payments[row], rel=1e-6)
        assert everybody.payment(bids[row])[0] == outcome.payments[row]
        z = np.linspace(1.0, 2.0, 21)
        loss, paid = own.at(z)
        worth = paid - bids[row] * loss
        assert worth.max() <= outcome.payments[row] - bids[row] * outcome.privacy_loss[row] + 1e-6
    menu = made.menu(9, rng=generator(), repetitions=20, points=5)
    assert (np.diff(menu.privacy_loss) <= 1e-12).all()
    assert (np.diff(menu.payment) <= 1e-12).all()


def test_a_local_accuracy_is_kept_bounded_and_planned_like_a_central_one():
    made = Market(prior=Uniform(1, 2), goal=Accuracy(0.3), setting="local")
    found = made.simulate(6, 8, rng=generator(9))
    assert found.worst_mse == pytest.approx(np.full(8, 0.09), rel=1e-9)
    assert found.worst_payment_found <= found.worst_payment_bound
    missing = made.acquire([2.0, 2.0, 2.0, 9.0, 9.0, 9.0]).total_payment
    assert missing <= worst_payment(made.for_people(6), above_support=True)
    frontier = made.plan(6, rng=generator(9), repetitions=10).frontier
    assert [point.standard_error for point in frontier] == pytest.approx([1.2, 0.6, 0.3], rel=1e-9)


@each("goal", [Budget, HardBudget, Accuracy])
@each("number", [1e-60, 1e60])
def test_what_no_purse_and_no_data_have_is_refused_before_it_overflows(goal, number):
    with pytest.raises(InputError, match=r"must be from 1e-50 to 1e\+50, got 1e"):
        goal(number)


def test_an_accuracy_with_nobody_within_the_support_says_so():
    with pytest.raises(Unreachable, match="nobody bid within the prior's support"):
        Market(prior=Uniform(1, 2), goal=Accuracy(0.5)).acquire([3.0, 4.0])
