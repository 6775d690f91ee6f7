"""A hard budget is never exceeded, whatever people bid, and nobody gains by a misreport or a wrong limit."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import weibull_min

from hushbid import (
    Beta,
    Empirical,
    Exponential,
    Gamma,
    Grouped,
    HardBudget,
    LogNormal,
    Market,
    Mixture,
    TruncatedNormal,
    Uniform,
    YesNo,
    from_scipy,
)
from hushbid.errors import InputError, MarketError, NobodyToBuyFrom
from hushbid.estimation import best_weights
from hushbid.mechanism import Population
from hushbid.mechanism.menu_offers import MenuTerms, WaterLevel, expected_expense, planned_menu
from hushbid.mechanism.releasing import plan_of, simulate_releases
from hushbid.mechanism.shared_menu import SharedMenu
from hushbid.record import Record
from hushbid.verification import verify
from tests.extent import TIMES, each

PRIORS = [
    Uniform(1, 2),
    Uniform(0, 1),
    Exponential(1.0),
    LogNormal(0, 1),
    Gamma(0.5, 1),
    Beta(2, 2, 0.5, 1.5),
    TruncatedNormal(1, 0.5, 0, 3),
    Empirical([0.4, 0.8, 0.8, 1.5, 2.5]),
    Empirical([0, 0, 1, 3]),
    Mixture([Uniform(0.5, 1), Uniform(1.5, 3)], [0.4, 0.6]),
    Mixture([LogNormal(0, 0.2), LogNormal(2, 0.1)], [0.5, 0.5]),
    from_scipy(weibull_min(1.5)),
]
IRONED = PRIORS[9]
FORMULAS = [Uniform(1, 2), Uniform(0, 1), Empirical([0.4, 0.8, 0.8, 1.5, 2.5]), Empirical([0, 0, 1, 3])]
N = 8
"""Most markets here have as many people, so that their menus are made once."""


@dataclass(frozen=True)
class Sharing:
    """People, and the menu in which they share."""

    population: Population
    menu: SharedMenu

    @property
    def goal(self):
        return self.menu.goal

    def listed(self, bids):
        return self.menu.listed(bids, self.population.virtual_costs(bids))


def menu_of(prior, n, amount=5.0, coin=0.0, variance=0.25, **terms):
    market = Market(prior=prior, variance=variance, goal=HardBudget(amount, coin), **terms)
    population = market.for_people(n)
    return Sharing(population, SharedMenu.of(population))


def bought(sharing, bids, limits=math.inf):
    limits = np.minimum(limits, sharing.population.cap)
    return sharing.menu.bought(bids, sharing.population.virtual_costs(bids), limits)


def in_whole_coins(payments, coin):
    """What is paid in the end, in exact arithmetic: each payment rounded up."""
    unit = Fraction(str(coin))
    return sum(math.ceil(Fraction(one) / unit) for one in payments.tolist()) * unit


# -- the budget --------------------------------------------------------------------------------------------------------

LEVELS = st.sampled_from([0.0, 1e-12, 0.5, 1.0 - 1e-9]) | st.floats(0, 0.999)


def keeps(menu, bids, limits):
    paid = bought(menu, bids, limits).payment
    coin, amount = menu.goal.coin, menu.goal.amount
    return math.fsum(paid) <= amount and (not coin or in_whole_coins(paid, coin) <= Fraction(str(amount)))


@settings(max_examples=14)
@given(
    prior=st.sampled_from(PRIORS),
    levels=st.lists(LEVELS, min_size=N, max_size=N),
    coin=st.sampled_from([0.0, 0.01, 0.3]),
    limits=st.sampled_from([math.inf, math.inf, 0.3, 1e-3]) | st.lists(st.floats(0, 2), min_size=N, max_size=N),
)
def test_the_budget_holds_to_the_last_coin_on_every_profile(prior, levels, coin, limits):
    menu = menu_of(prior, N, coin=coin)
    assert keeps(menu, np.asarray(prior.quantile(np.array(levels))), np.array(limits))


@settings(max_examples=35)
@given(
    prior=st.sampled_from(FORMULAS),
    levels=st.lists(LEVELS, min_size=1, max_size=40),
    amount=st.floats(0.41, 1e7),
    coin=st.sampled_from([0.0, 0.01, 0.001, 0.007]),
)
def test_the_budget_holds_whatever_it_is_and_however_many_share_it(prior, levels, amount, coin):
    menu = menu_of(prior, len(levels), amount, coin)
    assert keeps(menu, np.asarray(prior.quantile(np.array(levels))), math.inf)


def test_hundreds_of_adversarial_profiles_never_cost_more_than_the_budget():
    rng, most = np.random.default_rng(1), Fraction(0)
    for prior in PRIORS:
        menu = menu_of(prior, N, coin=0.01)
        end = float(prior.cdf(prior.virtual_cost_inverse(menu.menu.kinds[0].offer.end)))
        for _ in range(130 if prior in FORMULAS else 8):
            # some at the very bottom, some where buying ends, some anywhere
            kind = rng.integers(0, 4, N)
            levels = np.choose(kind, [np.zeros(N), np.full(N, 0.999 * end), end * rng.random(N), rng.random(N)])
            paid = in_whole_coins(bought(menu, np.asarray(prior.quantile(levels))).payment, 0.01)
            assert paid <= 5
            most = max(most, paid)
    assert most > Fraction(99, 20)  # the profiles come close


def test_without_coins_set_aside_rounding_up_would_break_the_budget():
    menu, rng = menu_of(Uniform(1, 2), 1000, 5.0), np.random.default_rng(2)
    found = bought(menu, menu.population.sample(rng))
    assert math.fsum(found.payment) <= 5.0 < in_whole_coins(found.payment, 0.01)
    # a smaller coin than the share of each person: with coins set aside it holds
    kept = menu_of(Uniform(1, 2), 400, 5.0, 0.01)
    found = bought(kept, kept.population.sample(rng))
    assert 4.5 < in_whole_coins(found.payment, 0.01) <= 5


def test_groups_and_unequal_variances_share_one_budget():
    rng = np.random.default_rng(3)
    labels = np.array(["a", "b", "c"])[rng.integers(0, 3, 30)].tolist()
    prior = Grouped({"a": Uniform(1, 2), "b": Empirical([0.5, 1, 4]), "c": LogNormal(0, 0.5)}, labels)
    menu = menu_of(prior, 30, 20.0, 0.01, variance=rng.uniform(0.05, 0.25, 30))
    for _ in range(15):
        levels = rng.choice([0.0, 0.2, 0.999], 30)
        found = bought(menu, menu.population.quantile(levels))
        assert in_whole_coins(found.payment, 0.01) <= 20


def test_no_more_is_left_unspent_than_one_first_line_of_the_menu():
    rng = np.random.default_rng(4)
    for prior in PRIORS:
        menu = menu_of(prior, N)
        for _ in range(4):
            bids = menu.population.sample(rng)
            listed = menu.listed(bids)
            total, first = math.fsum(listed.payment), float(listed.most.max())
            unspent = 1.0 - math.fsum(bought(menu, bids).payment) / 5.0
            if total > 0.0:
                assert 0.0 <= unspent <= first / (first + total) + 1e-12


def test_a_budget_of_no_more_than_a_coin_each_is_refused():
    with pytest.raises(InputError, match=r"more than one coin of 0\.01 for each of 500 people.*got 5"):
        menu_of(Uniform(1, 2), 500, 5.0, 0.01)
    menu_of(Uniform(1, 2), 499, 5.0, 0.01)


def test_people_above_the_support_get_nothing_and_take_nothing():
    menu = menu_of(Uniform(1, 2), 3)
    found = bought(menu, np.array([1.1, 2.5, math.inf]))
    assert found.loss[1:].tolist() == found.payment[1:].tolist() == [0.0, 0.0]
    assert found.payment[0] > 0.0
    assert bought(menu, np.array([3.0, 2.5, 7.0])).payment.tolist() == [0.0] * 3


def test_where_nothing_costs_anything_a_budget_is_refused():
    with pytest.raises(MarketError, match="nobody's privacy costs anything"):
        menu_of(Empirical([0.0]), 3)


# -- truth -------------------------------------------------------------------------------------------------------------


def gains(prior, truth, row, lies, *, coin=0.0):
    """Surplus of person ``row`` at each lie less that of the truth, and twice the stated error of payments."""
    menu = menu_of(prior, truth.size, coin=coin)
    honest = bought(menu, truth)
    surplus, error = [], honest.error
    for lie in [truth[row], *lies]:
        bids = truth.copy()
        bids[row] = lie
        other = bought(menu, bids)
        surplus.append(other.payment[row] - truth[row] * other.loss[row])
        error = max(error, other.error)
    assert surplus[0] >= -error
    return np.array(surplus[1:]) - surplus[0], 2.0 * error


@settings(max_examples=14)
@given(
    prior=st.sampled_from(PRIORS),
    levels=st.lists(st.floats(0.0, 0.95), min_size=N, max_size=N),
    coin=st.sampled_from([0.0, 0.01]),
    row=st.integers(0, N - 1),
)
def test_no_misreport_gains_more_than_the_stated_error(prior, levels, coin, row):
    truth = np.asarray(prior.quantile(np.array(levels)))
    lies = np.asarray(prior.quantile(np.concatenate([[0.0, 1e-6], np.linspace(0.01, 0.99, 14)])))
    found, error = gains(prior, truth, row, lies, coin=coin)
    assert found.max() <= error


def test_a_share_does_not_depend_on_ones_own_bid():
    others = np.linspace(0.5, 2.0, N - 1)
    for prior in (Exponential(1.0), IRONED, Empirical([0.4, 0.8, 0.8, 1.5, 2.5])):
        menu = menu_of(prior, N)
        shares = [bought(menu, np.array([z, *others])).share[0] for z in np.linspace(0.5, 2.5, 9)]
        assert np.ptp(shares) <= 4e-15 * shares[0]


def test_limits_and_prices_are_stated_truthfully_together():
    """Over a grid of (bid, limit): a larger limit than one's own is worthless if the loss then exceeds it."""
    rng = np.random.default_rng(5)
    for prior in (Uniform(1, 2), Exponential(1.0), IRONED, Empirical([0.4, 0.8, 0.8, 1.5, 2.5])):
        menu = menu_of(prior, N)
        for _ in range(2):
            truth = np.asarray(prior.quantile(rng.uniform(0, 0.6, N)))
            limits = rng.uniform(0.05, 1.5, N)
            honest = bought(menu, truth, limits)
            best = honest.payment[0] - truth[0] * honest.loss[0]
            share = float(honest.share[0])
            z = np.asarray(prior.quantile(np.linspace(0.0, 0.97, 20)))
            for stated in [*np.geomspace(0.01, 8.0, 6), limits[0], math.inf]:
                loss, payment = menu.menu.curve(0, share, z, float(stated))
                acceptable = loss <= limits[0]
                surplus = (payment - truth[0] * loss)[acceptable]
                assert surplus.max(initial=0.0) <= best + 2.0 * honest.error


def test_the_curve_of_one_person_is_what_she_would_get():
    rng = np.random.default_rng(6)
    for prior in PRIORS:
        menu = menu_of(prior, N, coin=0.001)
        truth = menu.population.sample(rng)
        for limit in (math.inf, 0.3):
            share = float(bought(menu, truth, limit).share[2])
            for z in np.asarray(prior.quantile(np.array([0.0, 0.1, 0.5]))):
                changed = truth.copy()
                changed[2] = z
                found = bought(menu, changed, limit)
                loss, payment = menu.menu.curve(2, share, np.array([z]), limit)
                assert loss[0] == pytest.approx(found.loss[2], rel=1e-12)
                assert payment[0] == pytest.approx(found.payment[2], rel=1e-12, abs=2 * found.error)


def realised_multiplier(menu, bids):
    """The plausible rule that is not truthful: scale the whole menu to the budget and pay at the scale found."""
    listed = menu.listed(bids)
    scale = menu.goal.amount / math.fsum(listed.payment)
    return scale * listed.loss, scale * listed.payment


def test_paying_at_the_realised_multiplier_would_reward_a_misreport():
    menu, truth = menu_of(Uniform(1, 2), 3), np.array([1.2, 1.3, 1.4])
    loss, paid = realised_multiplier(menu, truth)
    honest = paid[0] - truth[0] * loss[0]
    best = 0.0
    for lie in np.linspace(1, 2, 41):
        loss, paid = realised_multiplier(menu, np.array([lie, 1.3, 1.4]))
        assert math.fsum(paid) == pytest.approx(5.0)
        best = max(best, paid[0] - truth[0] * loss[0] - honest)
    assert best > 0.02 * honest
    fair, error = gains(Uniform(1, 2), truth, 0, np.linspace(1, 2, 41))
    assert fair.max() <= error < 1e-9


# -- against quadrature that shares no code ----------------------------------------------------------------------------


def plain_rents(prior, level, bids):
    """``∫ (τ − ψ)⁺`` over higher bids, for ascending bids, by many midpoints between each and the next."""
    top = min(prior.support[1], level)  # a virtual cost is never below the bid
    ends = [*bids.tolist(), max(top, float(bids[-1]))]
    parts = []
    for left, right in pairwise(ends):
        middles = left + (right - left) * (np.arange(20_000) + 0.5) / 20_000
        losses = np.maximum(level - np.asarray(prior.virtual_cost(middles)), 0.0)
        parts.append((right - left) * losses.mean())
    return np.cumsum(parts[::-1])[::-1]


@each("prior", PRIORS)
def test_payments_agree_with_quadrature(prior):
    menu = menu_of(prior, N)
    bids = np.asarray(prior.quantile(np.linspace(0.0, 0.6, N)))
    found = bought(menu, bids)
    # the lowest bid too, for the first line of the menu
    z, level = np.append(prior.smallest_bid, bids), menu.menu.kinds[0].offer.end
    loss = 2.0 * 4.0 / 5.0 * np.maximum(level - np.asarray(prior.virtual_cost(z)), 0.0)
    rent = 2.0 * 4.0 / 5.0 * plain_rents(prior, level, z)
    listed = z * loss + rent
    share = 5.0 / (listed[0] + listed[1:].sum() - listed[1:])
    error = 1e-5 * found.payment.max()
    assert found.payment == pytest.approx(share * listed[1:], abs=error)
    assert found.loss == pytest.approx(share * loss[1:], rel=1e-5)
    assert (found.rents.lower - error <= share * rent[1:]).all()
    assert (share * rent[1:] <= found.rents.upper + error).all()


@each("prior", PRIORS)
def test_the_expected_expense_is_the_mean_of_virtual_costs_bought(prior):
    costs = np.asarray(prior.virtual_cost(prior.quantile((np.arange(50_000) + 0.5) / 50_000)))
    for level in (1.2 * float(prior.virtual_cost(prior.quantile(0.2))) + 0.1, 30.0):
        mean = float((costs * np.maximum(level - costs, 0.0)).mean())
        assert expected_expense(prior, WaterLevel(level)) == pytest.approx(mean, rel=1e-4)


def test_on_average_the_menu_itself_costs_the_budget():
    prior = Grouped({"a": Uniform(1, 2), "b": Exponential(1.0)}, ["a"] * 20 + ["b"] * 30)
    menu, rng = menu_of(prior, 50, 7.0), np.random.default_rng(7)
    totals = []
    for _ in range(144):
        bids = menu.population.sample(rng)
        totals.append(math.fsum(menu.listed(bids).payment))
    assert np.mean(totals) == pytest.approx(7.0, abs=4 * np.std(totals) / 12)


def test_the_level_does_not_depend_on_how_people_are_listed():
    def level(*kinds):
        return planned_menu(MenuTerms(12.5, ((1.0, kinds),), None, math.inf)).offers[0].end

    assert level((Uniform(1, 2), 4, 15.0), (Uniform(1, 2), 6, 25.0)) == pytest.approx(
        level((Uniform(1, 2), 10, 40.0)), rel=1e-12
    )


# -- what is lost against a budget on average --------------------------------------------------------------------------


def expected_budget_mse(costs, amount, variance):
    """The budget on average, by bisection: ``Σ u ψ(τ − ψ)⁺ = B²/2``, with an error of ``τ/Σ u(τ − ψ)⁺``."""
    low, high = costs.min(), costs.max() + amount**2
    for _ in range(100):
        level = 0.5 * (low + high)
        spent = (costs * np.maximum(level - costs, 0.0)).sum() / variance
        low, high = (level, high) if spent < amount**2 / 2 else (low, level)
    return level / (np.maximum(level - costs, 0.0).sum() / variance)


@pytest.mark.parametrize(("n", "amount", "excess", "spent"), [(100, 5.0, 1.076, 0.96), (1000, 20.0, 1.005, 0.997)])
def test_what_a_hard_budget_costs_is_the_table(n, amount, excess, spent):
    menu, rng = menu_of(Uniform(1, 2), n, amount), np.random.default_rng(8)
    ratios, paid = [], []
    for _ in range(300 if n < 1000 else 60):
        bids = menu.population.sample(rng)
        costs = menu.population.virtual_costs(bids)
        found = bought(menu, bids)
        hard = best_weights(found.loss, setting="central", variance=0.25).mse
        ratios.append(hard / expected_budget_mse(costs, amount, 0.25))
        paid.append(math.fsum(found.payment) / amount)
    error = 4.0 * np.std(ratios) / math.sqrt(len(ratios))
    assert np.mean(ratios) == pytest.approx(excess, abs=error)
    assert error < 0.012
    assert np.mean(paid) == pytest.approx(spent, abs=0.003)


# -- as a market's goal ------------------------------------------------------------------------------------------------


@settings(max_examples=10)
@example(prior=Uniform(0, 1), levels=[1e-150] * N, cap=0.3)
@example(prior=Uniform(0, 1), levels=[1e-300, *[0.5] * (N - 1)], cap=None)
@given(
    prior=st.sampled_from(PRIORS),
    levels=st.lists(st.floats(0.0, 0.9), min_size=N, max_size=N),
    cap=st.sampled_from([None, 0.3]),
)
def test_an_outcome_holds_what_the_menu_gives(prior, levels, cap):
    market = Market(prior=prior, variance=0.25, goal=HardBudget(5, 0.01), max_privacy_loss=cap)
    bids = np.asarray(prior.quantile(np.array(levels)))
    outcome = market.acquire(bids)
    if outcome.active == 0:
        assert outcome.total_payment == 0.0
        assert outcome.lower_bound == math.inf
        return
    assert in_whole_coins(outcome.payments, 0.01) <= 5
    assert outcome.privacy_loss.max() <= (cap or math.inf)
    assert outcome.mse == best_weights(outcome.privacy_loss, setting="central", variance=0.25).mse
    assert outcome.lower_bound <= outcome.objective * (1 + 1e-9)
    error = outcome.incentive_error
    rents = outcome.payments - bids * outcome.privacy_loss
    assert outcome.information_rent == pytest.approx(rents, abs=error + 1e-12)
    assert (outcome.rent_bounds[0] <= outcome.information_rent + error).all()
    assert (outcome.information_rent <= outcome.rent_bounds[1] + error).all()
    for row in (0, N - 1):
        loss, payment = outcome.schedule(row).at(np.maximum(bids[row], prior.support[0]))
        if bids[row] >= prior.support[0]:
            assert loss[0] == pytest.approx(outcome.privacy_loss[row], rel=1e-12)
            assert payment[0] == pytest.approx(outcome.payments[row], abs=error + 1e-12)
    again = type(outcome).from_dict(outcome.to_dict())
    assert np.array_equal(again.payments, outcome.payments)
    assert again.market == market


def test_a_market_with_groups_variances_a_relation_and_another_range_keeps_the_budget():
    rng = np.random.default_rng(9)
    prior = Grouped({"a": Uniform(1, 2), "b": LogNormal(0, 0.5)}, ["a", "b"] * 20)
    market = Market(
        prior=prior,
        bounds=(-5, 7),
        variance=rng.uniform(1, 20, 40),
        goal=HardBudget(30, 0.01),
        max_correlation=0.2,
        population=40,
    )
    outcome = market.acquire(market.for_people(40).sample(rng))
    assert 25 < in_whole_coins(outcome.payments, 0.01) <= 30
    assert outcome.mse < outcome.worst_mse == outcome.objective
    assert outcome.lower_bound <= outcome.objective


def test_what_is_delivered_is_what_the_best_estimate_uses_and_never_more_than_promised():
    """Bids far apart under a large budget: the cheapest person's promise is more than the estimate can use."""
    market = Market(prior=Empirical([0, 1, 1, 1]), variance=0.25, goal=HardBudget(40))
    outcome = market.acquire([0.0, *[0.9] * 7])
    plan = plan_of(outcome)
    assert (plan.delivered <= plan.promised).all()
    shares = plan.delivered / plan.delivered.sum()
    assert shares == pytest.approx(outcome.weights, rel=1e-12)
    assert outcome.mse == pytest.approx(2 / plan.delivered.sum() ** 2 + 0.25 * (shares**2).sum(), rel=1e-12)


def test_the_most_a_hard_budget_can_cost_is_its_amount():
    market = Market(prior=LogNormal(0, 1), variance=0.25, goal=HardBudget(5))
    found = market.simulate(N, 20, rng=np.random.default_rng(10))
    assert found.worst_payment_bound == 5.0
    assert found.total_payment.max() <= found.worst_payment_found <= 5.0


def test_the_expected_menu_falls_with_the_bid_and_pays_at_least_the_price():
    market = Market(prior=Uniform(1, 2), variance=0.25, goal=HardBudget(5))
    menu = market.menu(N, rng=np.random.default_rng(11), repetitions=20, points=9)
    assert (np.diff(menu.privacy_loss) <= 0).all()
    assert (np.diff(menu.payment) <= 0).all()
    assert (menu.payment >= menu.bids * menu.privacy_loss - 1e-12).all()


def test_a_plan_finds_how_many_people_a_hard_budget_needs():
    market = Market(prior=Uniform(1, 2), variance=0.25, goal=HardBudget(5))
    found = market.plan(target_standard_error=0.32, rng=np.random.default_rng(12), repetitions=20)
    assert found.market == market
    assert found.simulation.expected("total_payment").high <= 5.0
    assert found.simulation.expected("worst_mse").low <= 0.32**2 * 1.05


# -- strata, caps and the local setting --------------------------------------------------------------------------------

HALVES = {"strata": ["a", "b"] * (N // 2), "contrast": {"a": 0.3, "b": -0.7}}
ANSWER = {"questions": [YesNo(name="smokes")], "setting": "local"}
EVERYWHERE = {
    "strata": HALVES,
    "strata and a cap": HALVES | {"max_privacy_loss": 0.4},
    "local": {"setting": "local"},
    "local strata": HALVES | {"setting": "local"},
    "local strata and a cap": HALVES | {"setting": "local", "max_privacy_loss": 1.5},
    "response": ANSWER,
    "response, strata and a cap": HALVES | ANSWER | {"max_privacy_loss": 1.5},
}
SOME = [Uniform(1, 2), LogNormal(0, 0.5), IRONED, Empirical([0.4, 0.8, 0.8, 1.5, 2.5])]


def market_of(prior, terms, amount=12.0):
    return Market(prior=prior, goal=HardBudget(amount, 0.01), **terms)


@pytest.mark.parametrize("terms", EVERYWHERE.values(), ids=EVERYWHERE)
def test_with_strata_and_locally_the_budget_holds_to_the_last_coin_whatever_people_bid(terms):
    rng, most = np.random.default_rng(21), Fraction(0)
    for prior in SOME:
        population = market_of(prior, terms).for_people(N)
        menu = SharedMenu.of(population)
        for _ in range(10 * TIMES):
            ends = np.array([float(prior.cdf(prior.virtual_cost_inverse(one.offer.end))) for one in menu.kinds])
            levels = rng.choice([0.0, 1e-9, 0.3, 0.999], N) * ends[menu.who]
            bids = population.quantile(levels)
            limits = np.minimum(population.cap, rng.choice([math.inf, math.inf, 0.2], N))
            found = menu.bought(bids, population.virtual_costs(bids), limits)
            paid = in_whole_coins(found.payment, 0.01)
            assert paid <= 12
            assert (found.loss <= limits).all()
            most = max(most, paid)
    assert most > 11 or "max_privacy_loss" in terms  # the profiles come close


@each("terms", EVERYWHERE.values())
def test_with_strata_and_locally_no_bid_and_limit_gain_more_than_the_truth(terms):
    rng = np.random.default_rng(22)
    for prior in SOME:
        population = market_of(prior, terms).for_people(N)
        menu = SharedMenu.of(population)
        for _ in range(3):
            truth = population.quantile(rng.uniform(0.0, 0.9, N))
            own = float(rng.uniform(0.2, 2.0))
            limit = min(own, float(population.cap))
            z = np.asarray(prior.quantile(np.concatenate([[0.0], np.linspace(0.01, 0.99, 25)])))
            share = menu.share_of(0, truth, population.virtual_costs(truth))
            loss, payment = menu.curve(0, share, truth[:1], limit)
            honest = float(payment[0] - truth[0] * loss[0])
            assert honest >= -1e-9
            for stated in (0.5 * limit, limit, 2.0 * limit):
                loss, payment = menu.curve(0, share, z, min(stated, float(population.cap)))
                surplus = (payment - truth[0] * loss)[loss <= own]
                assert surplus.max(initial=0.0) <= honest + 1e-6 * float(payment.max())


@each("terms", EVERYWHERE.values())
def test_with_strata_and_locally_the_menu_costs_the_budget_on_average(terms):
    """Of a large market, where the floor of three sellers does not count: by the draws of other code."""
    people = 400
    terms = terms | ({"strata": ["a", "b"] * (people // 2)} if "strata" in terms else {})
    population = market_of(Uniform(1, 2), terms | {"max_privacy_loss": None}, 300.0).for_people(people)
    menu, levels = SharedMenu.of(population), (np.arange(4000) + 0.5) / 4000
    bids = 1.0 + levels
    spent = 0.0
    for place, kind in enumerate(menu.kinds):
        strength = float(menu.strength[np.argmax(menu.who == place)])
        mean = strength * float((kind.offer.loss(2.0 * bids - 1.0) * (2.0 * bids - 1.0)).mean())
        spent += mean * np.count_nonzero(menu.who == place)
    assert spent == pytest.approx(300.0, rel=2e-3)


@pytest.mark.parametrize("terms", [{"setting": "local"}, ANSWER], ids=["noise", "coin"])
def test_with_limits_or_caps_of_their_own_a_local_purchase_is_confirmed(terms):
    bids, limits = np.linspace(1.0, 1.5, N), np.linspace(0.5, 3.0, N)
    market = market_of(Uniform(1, 2), terms, 30.0)
    for found in (market.acquire(bids, limits=limits), replace(market, max_privacy_loss=limits).acquire(bids)):
        assert (found.privacy_loss <= limits).all()
        assert found.lower_bound <= found.worst_mse
        assert not [one for one in verify(Record.of(found)).checks if one.status == "fails"]


def test_a_stratum_in_which_nobody_sells_ends_the_campaign():
    market = market_of(Uniform(1, 2), HALVES)
    with pytest.raises(NobodyToBuyFrom, match="stratum 'b' cannot be estimated: nobody in it bid low enough"):
        market.acquire([1.1, 7.0] * (N // 2))


@pytest.mark.parametrize("terms", EVERYWHERE.values(), ids=EVERYWHERE)
def test_with_strata_and_locally_the_release_has_the_stated_error(terms, tmp_path):
    """The mean of many draws' squared errors, from data as far apart as the variance allows."""
    rng = np.random.default_rng(23)
    market = market_of(Uniform(1, 2), terms, 60.0)
    outcome = market.acquire(market.for_people(N).sample(rng))
    plan = plan_of(outcome)
    assert (plan.delivered <= plan.promised).all()
    data = np.tile([0.0, 1.0], N // 2)
    columns = data if market.survey is None else {"smokes": data.astype(bool).tolist()}
    drawn = simulate_releases(outcome, columns, 600, ledger=tmp_path).reshape(600, -1)[:, 0]
    # the variance of the draws is that of the noise alone: what is left of the error is the people's
    noise = outcome.mse - (0.25 * np.square(outcome.weights).sum() if market.survey is None else 0.0)
    if market.survey is None:
        assert drawn.var() == pytest.approx(noise, rel=0.6)
    else:  # randomised response: the stated error is at worst
        assert drawn.var() <= 1.6 * noise
