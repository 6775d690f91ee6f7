"""Payments: pinned values, and every prior against integration by brute force that shares no code with them."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from hushbid import (
    Beta,
    Budget,
    Empirical,
    Exponential,
    Gamma,
    Grouped,
    LogNormal,
    Market,
    Mixture,
    TruncatedNormal,
    Uniform,
    from_scipy,
)
from hushbid.errors import DivergentPayment, MarketError
from hushbid.payments import rent_of_rule
from hushbid.priors import Prior
from tests.extent import ALL_CASES, each

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "allocation_and_payments.json").read_text())
PRIORS = {
    "uniform": Uniform(1, 2),
    "exponential": Exponential(0.7),
    "log-normal": LogNormal(0, 0.8),
    "gamma": Gamma(2.5, 0.4),
    "beta": Beta(2, 3, 0.2, 2.0),
    "truncated normal": TruncatedNormal(1, 0.5, 0.1, 3),
    "irregular mixture": Mixture([LogNormal(0, 0.2), LogNormal(1.5, 0.2)], [0.5, 0.5]),
    "disjoint mixture": Mixture([Uniform(0.5, 1), Uniform(1.5, 3)], [0.4, 0.6]),
    "scipy": from_scipy(stats.weibull_min(1.5)),
    "empirical": Empirical([0.3, 0.5, 0.5, 0.9, 1.4, 2.2, 3.0]),
}


def loss_at(market, bids, row, z):
    """Person ``row``'s loss at each bid ``z``, by solving every changed problem anew."""
    losses, costs = [], np.array(market.prior.virtual_cost(np.array(bids, dtype=float)))
    prior = market.prior.prior_of(row) if isinstance(market.prior, Grouped) else market.prior
    for costs[row] in np.asarray(prior.virtual_cost(np.array(z, dtype=float))):
        losses.append(min(market.allocation(costs).privacy_loss[row], market.max_privacy_loss or np.inf))
    return np.array(losses)


def brute_force_rent(market, bids, row, *, apart=0.01, points=300):
    """Lower and upper sums of the integral from her bid to the top of the support, or to where buying ends.

    Intervals are halved where the sums differ most, until they differ by little of what they are.
    """
    prior = market.prior.prior_of(row) if isinstance(market.prior, Grouped) else market.prior
    bought, top = bids[row], prior.support[1]
    if np.isinf(top):
        top = bids[row] + 1.0
        while loss_at(market, bids, row, [top])[0] > 0.0:
            top *= 2.0
    if loss_at(market, bids, row, [top])[0] == 0.0:  # few points are wasted where nothing is bought
        for _ in range(10):
            middle = 0.5 * (bought + top)
            bought, top = (middle, top) if loss_at(market, bids, row, [middle])[0] > 0.0 else (bought, middle)
    z = np.linspace(bids[row], top, 9)
    loss = loss_at(market, bids, row, z)
    while True:
        low, high = loss[1:] * np.diff(z), loss[:-1] * np.diff(z)
        if (high - low).sum() <= apart * high.sum() or z.size >= points:
            return float(low.sum()), float(high.sum())
        wide = np.flatnonzero(high - low > 0.5 * (high - low).max())
        middle = 0.5 * (z[wide] + z[wide + 1])
        z, loss = np.insert(z, wide + 1, middle), np.insert(loss, wide + 1, loss_at(market, bids, row, middle))


@each("vector", VECTORS["payments"])
def test_payments_equal_the_reference_answers(vector):
    prior = Uniform(vector["prior"]["low"], vector["prior"]["high"])
    market = Market(
        prior=prior, setting=vector["setting"], variance=vector["variance"], buyer_weight=1.0, user_weight=1.0
    )
    outcome = market.acquire(vector["bids"])
    assert outcome.payments == pytest.approx(vector["payments"], rel=1e-8)
    assert outcome.privacy_loss == pytest.approx(vector["privacy_loss"], rel=1e-6, abs=1e-9)
    assert outcome.mse == pytest.approx(vector["mse"], rel=1e-9)


TERMS = [("central", None), ("local", None), ("local", 0.6), ("central", 0.6)]
COMBINATIONS = [
    pytest.param(name, *terms, id=f"{name}-{terms[0]}-{terms[1]}")
    for place, name in enumerate(PRIORS)
    for turn, terms in enumerate(TERMS)
    if ALL_CASES or place % 2 == turn % 2
]
"""Every prior in both settings, once with a cap; in all four ways where every combination is asked for."""


@pytest.mark.parametrize(("name", "setting", "cap"), COMBINATIONS)
def test_rents_equal_brute_force_integrals_for_every_prior(name, setting, cap):
    rng = np.random.default_rng(len(name) + (setting == "local"))
    prior = PRIORS[name]
    market = Market(prior=prior, setting=setting, variance=0.2, max_privacy_loss=cap, buyer_weight=1.0, user_weight=1.0)
    bids = prior.sample(5, rng=rng)
    outcome = market.acquire(bids)
    lower, upper = outcome.rent_bounds
    for row in np.flatnonzero(outcome.privacy_loss)[: 2 if ALL_CASES else 1]:
        low, high = brute_force_rent(market, bids, row)
        assert lower[row] <= outcome.information_rent[row] <= upper[row]
        assert lower[row] <= high * (1 + 1e-9) + 1e-12
        assert upper[row] >= low * (1 - 1e-9) - 1e-12
        sure = (high - low) / 2 + (upper - lower)[row] + 1e-8
        assert outcome.information_rent[row] == pytest.approx((low + high) / 2, abs=sure)


@each("setting", ["central", "local"])
@each("name", PRIORS)
def test_enclosures_are_as_narrow_as_asked(name, setting):
    prior = PRIORS[name]
    bids = prior.sample(12, rng=np.random.default_rng(3))
    outcome = Market(prior=prior, setting=setting, variance=0.2, buyer_weight=1.0, user_weight=1.0).acquire(bids)
    lower, upper = outcome.rent_bounds
    bought = outcome.privacy_loss > 0
    largest = (bids * outcome.privacy_loss + outcome.information_rent)[bought].max()
    assert (upper - lower)[bought].max() <= 3e-6 * largest
    assert outcome.incentive_error <= 2.1e-6 * max(largest, np.abs(outcome.payments).max())


def test_groups_unequal_weights_and_variances_are_priced_person_by_person():
    prior = Grouped({"a": Uniform(1, 2), "b": Exponential(1.0)}, ["a", "b", "a", "b", "b"])
    bids = np.array([1.2, 0.3, 1.1, 0.9, 0.2])
    market = Market(
        prior=prior, variance=[0.1, 0.25, 0.2, 0.05, 0.15], user_weight=[0.0, 1.0, 2.0, 0.5, 1.0], buyer_weight=1.0
    )
    outcome = market.acquire(bids)
    for row in np.flatnonzero(outcome.privacy_loss):
        low, high = brute_force_rent(market, bids, row, apart=0.002, points=1000)
        assert outcome.information_rent[row] == pytest.approx((low + high) / 2, abs=(high - low) / 2 + 1e-9)
    expected = (
        np.asarray(market.user_weight) * (outcome.mse - np.asarray(market.variance))
        + bids * outcome.privacy_loss
        + outcome.information_rent
    )
    assert outcome.payments == pytest.approx(expected, rel=1e-12)


def test_the_other_outside_option_uses_the_error_of_the_mechanism_without_her():
    bids = np.array([1.1, 1.3, 1.2, 1.7])
    market = Market(prior=Uniform(1, 2), variance=0.25, outside_option="estimate", buyer_weight=1.0, user_weight=1.0)
    outcome = market.acquire(bids)
    own = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0).acquire(bids)
    for row in range(4):
        without = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0).acquire(
            np.delete(bids, row)
        )
        assert outcome.outside_error[row] == pytest.approx(without.mse, rel=1e-9)
    assert outcome.privacy_loss == pytest.approx(own.privacy_loss)
    assert outcome.payments - own.payments == pytest.approx(0.25 - outcome.outside_error, rel=1e-9)


def test_expected_payments_equal_expected_virtual_payments():
    """The revenue identity: E[Σt] = E[Σβ(MSE − V) + Σψε]."""
    rng = np.random.default_rng(11)
    market = Market(prior=Exponential(1.0), variance=0.2, user_weight=0.5, buyer_weight=1.0)
    differences = []
    for _ in range(150):
        outcome = market.acquire(market.prior.sample(4, rng=rng))
        bought = outcome.privacy_loss > 0
        virtual = float(outcome.virtual_costs[bought].dot(outcome.privacy_loss[bought])) + 4 * 0.5 * (outcome.mse - 0.2)
        differences.append(outcome.total_payment - virtual)
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert abs(np.mean(differences)) < 4 * error
    assert error < 0.1  # so that being off by a unit of money would show


def test_a_sole_seller_under_a_heavy_tail_is_one_clear_error_and_under_a_light_one_has_a_price():
    heavy = from_scipy(stats.lomax(1.5))
    with pytest.raises(DivergentPayment, match="infinite"):
        Market(prior=heavy, user_weight=0, buyer_weight=1.0).acquire([0.5])
    for prior in (Exponential(1.0), LogNormal(0, 1), Uniform(0, 1)):
        outcome = Market(prior=prior, user_weight=0, buyer_weight=1.0).acquire([0.5])
        assert 0 < outcome.payments[0] < 1e6


@pytest.mark.parametrize("setting", ["central", "local"])
@pytest.mark.parametrize("prior", [Exponential(1.0), from_scipy(stats.lomax(4)), Beta(2, 3)], ids=repr)
def test_a_sole_sellers_enclosure_is_as_narrow_as_asked(prior, setting):
    """She is bought from at every bid, so her integral runs over the whole support and needs the finest table."""
    outcome = Market(prior=prior, setting=setting, user_weight=0, buyer_weight=10).acquire([prior.quantile(0.001)])
    assert outcome.incentive_error <= 2.1e-6 * outcome.payments[0]


def test_any_monotone_rule_can_be_priced_and_a_rising_one_is_refused():
    step = rent_of_rule(lambda z: np.where(z <= 1.37, 2.0, 0.0), 1.0, 3.0, tolerance=1e-9)
    assert step.estimate[0] == pytest.approx(2.0 * 0.37, abs=2 * step.error + 1e-12)
    smooth = rent_of_rule(lambda z: np.exp(-z), 0.5, 4.0, tolerance=1e-4)
    truth = np.exp(-0.5) - np.exp(-4.0)
    assert smooth.lower[0] <= truth <= smooth.upper[0]
    assert smooth.error <= 1.1e-4 * truth
    with pytest.raises(MarketError, match="not monotone"):
        rent_of_rule(lambda z: z, 0.5, 4.0)


@pytest.mark.parametrize(("bid", "top"), [(1.0, np.inf), (1.0, 0.5), (1.0, np.nan)])
def test_where_a_rule_stops_buying_must_be_finite_and_no_less_than_the_bid(bid: float, top: float) -> None:
    with pytest.raises(MarketError, match=f"must be finite and no less than the bid, got top={top}"):
        rent_of_rule(lambda z: 0.0 * z, bid, top)
    assert rent_of_rule(lambda z: np.exp(-z), bid, bid).estimate[0] == 0.0


def test_a_person_whose_privacy_costs_nothing_leaves_no_nan_behind():
    outcome = Market(prior=Uniform(0, 1), user_weight=0, buyer_weight=1.0).acquire([0.0, 0.4, 0.8])
    for column in outcome.columns().values():
        assert not np.isnan(column).any()
    assert np.isfinite(outcome.payments).all()


@pytest.mark.parametrize("setting", ["central", "local"])
def test_somebody_clipped_at_every_bid_is_paid_the_cap_up_to_the_top_of_the_support(setting):
    prior = Beta(1.2, 1.06, 0.0, 15.0)  # its virtual cost at the top is infinite
    outcome = Market(prior=prior, setting=setting, user_weight=0.0, max_privacy_loss=0.1, buyer_weight=1e9).acquire(
        [14.0]
    )
    assert outcome.privacy_loss[0] == 0.1
    assert outcome.information_rent[0] == pytest.approx(0.1 * (15.0 - 14.0), rel=1e-6)


@pytest.mark.parametrize(("cap", "budget"), [(0.5, 0.3), (0.05, 0.02), (0.05, 1e-12)])
@pytest.mark.parametrize("prior", [Uniform(1, 2), LogNormal(0, 1), Exponential(1)])
def test_somebody_alone_under_a_cap_and_a_budget_has_the_rent_of_what_the_budget_buys(
    prior: Prior, cap: float, budget: float
) -> None:
    market = Market(prior=prior, bounds=(0, 1), goal=Budget(budget), max_privacy_loss=cap, user_weight=0)
    outcome = market.acquire([1.2])
    ends = np.geomspace(1.2, min(prior.support[1], 1e6), 200).tolist()

    def loss(bid: float) -> float:
        return min(cap, budget / float(np.asarray(prior.virtual_cost(bid))))

    rent = math.fsum(quad(loss, low, high, limit=400)[0] for low, high in pairwise(ends))
    assert outcome.information_rent[0] == pytest.approx(rent, rel=1e-6)
    lower, upper = (float(bound[0]) for bound in outcome.rent_bounds)
    assert lower <= rent <= upper
