"""Somebody who bids the very lowest cost is paid right: there her loss, or a density, may be infinite."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from hushbid import (
    Beta,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Market,
    Mixture,
    TruncatedNormal,
    Uniform,
    allocate,
    from_scipy,
)
from tests.extent import ALL_CASES

PRIORS = {
    "uniform": Uniform(0, 1),
    "uniform off zero": Uniform(1, 2),
    "exponential": Exponential(0.7),
    "log-normal": LogNormal(0, 0.8),
    "gamma": Gamma(2.5, 0.4),
    "gamma, infinite density": Gamma(0.6, 1.0),
    "beta": Beta(2, 3, 0.0, 2.0),
    "beta, infinite density": Beta(0.5, 2, 0.0, 2.0),
    "beta off zero": Beta(2, 3, 0.2, 2.0),
    "truncated normal, rising": TruncatedNormal(1, 0.5, 0, 3),
    "truncated normal, falling": TruncatedNormal(-1, 0.5, 0, np.inf),
    "truncated normal off zero": TruncatedNormal(1, 0.5, 0.1, 3),
    "regular mixture": Mixture([Uniform(0, 1), Exponential(2.0)], [0.5, 0.5]),
    "irregular mixture": Mixture([LogNormal(0, 0.2), LogNormal(1.5, 0.2)], [0.5, 0.5]),
    "disjoint mixture": Mixture([Uniform(0.5, 1), Uniform(1.5, 3)], [0.4, 0.6]),
    "scipy": from_scipy(stats.weibull_min(1.5)),
    "scipy off zero": from_scipy(stats.weibull_min(1.5, loc=0.5)),
    "empirical": Empirical([0.0, 0.5, 0.5, 0.9, 1.4, 2.2, 3.0]),
    "empirical off zero": Empirical([0.3, 0.5, 0.5, 0.9, 1.4, 2.2, 3.0]),
}


OTHERS = {"dear": (0.3, 0.6), "cheap": (0.01, 0.05)}
COMBINATIONS = [
    pytest.param(name, setting, OTHERS[others], id=f"{name}-{setting}-others {others}")
    for place, name in enumerate(PRIORS)
    for side, setting in enumerate(("central", "local"))
    for turn, others in enumerate(OTHERS)
    if ALL_CASES or (place % 2 == side and place // 2 % 2 == turn)
]
"""Every prior in one setting, with one kind of others; in all ways where every combination is asked for."""


def optimum(prior, setting, bids, row, z):
    """The optimum if person ``row`` bids ``z``, solved from nothing."""
    changed = np.array(bids)
    changed[row] = z
    costs = np.asarray(prior.virtual_cost(changed))
    return allocate(costs, setting=setting, variance=0.2, error_weight=bids.size + 1)


def integral_of_loss(prior, setting, bids, row):
    """From her bid to where buying ends; in the cube root of the distance, in which the integrand is bounded."""

    def loss(z):
        return float(optimum(prior, setting, bids, row, z).privacy_loss[row])

    start = float(bids[row])
    last, beyond = start, min(prior.support[1], start + 1.0)
    while loss(beyond) > 0.0 and beyond < prior.support[1]:
        last, beyond = beyond, min(2.0 * beyond, prior.support[1])
    for _ in range(36):
        middle = 0.5 * (last + beyond)
        last, beyond = (middle, beyond) if loss(middle) > 0.0 else (last, middle)
    reach = np.cbrt(last - start)
    steps = [end for part in prior.flat_parts for end in part[:2] if start < end < last]
    cuts = np.unique(np.concatenate([np.linspace(0.0, reach, 3), np.cbrt(np.array(steps) - start)]))
    pieces = [
        quad(lambda u: loss(start + u**3) * 3 * u * u, left, right, limit=100, epsabs=1e-8, epsrel=1e-8)[0]
        for left, right in itertools.pairwise(cuts)
        if left < right
    ]
    return sum(pieces)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize(("name", "setting", "others"), COMBINATIONS)
def test_a_bid_at_the_low_end_is_paid_the_brute_force_integral_under_both_outside_options(name, setting, others):
    prior = PRIORS[name]
    bids = np.append(prior.quantile(others), prior.support[0])
    rent = integral_of_loss(prior, setting, bids, 2)
    everybody = optimum(prior, setting, bids, 2, bids[2])
    costs = np.asarray(prior.virtual_cost(bids))
    without = {
        "own_data": np.full(3, 0.2),
        "estimate": [
            allocate(np.delete(costs, row), setting=setting, variance=0.2, error_weight=3.0).mse for row in range(3)
        ],
    }
    for option, outside in without.items():
        outcome = Market(
            prior=prior, setting=setting, variance=0.2, outside_option=option, buyer_weight=1.0, user_weight=1.0
        ).acquire(bids)
        assert outcome.privacy_loss[2] == pytest.approx(everybody.privacy_loss[2])
        assert outcome.information_rent[2] == pytest.approx(rent, rel=3e-6)
        assert outcome.rent_bounds[0][2] <= rent * (1 + 1e-7)
        assert outcome.rent_bounds[1][2] >= rent * (1 - 1e-7)
        cost = bids[2] * everybody.privacy_loss[2] if bids[2] > 0.0 else 0.0
        assert outcome.payments[2] == pytest.approx(everybody.mse - outside[2] + cost + rent, rel=3e-6, abs=3e-6)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
def test_where_the_curvature_is_too_slight_for_one_cell_of_the_table_the_bounds_still_hold():
    """Everything is bought within a millionth of the prior's scale, where ψ is a line to the eye but not exactly."""
    prior = TruncatedNormal(0.0013, 0.0007, 0.0, 0.004)
    market = Market(prior=prior, setting="local", variance=0.25, user_weight=0.0, buyer_weight=4e-8)
    outcome = market.acquire([0.0, 0.0])

    def loss(z):
        costs = np.array([float(prior.virtual_cost(z)), 0.0])
        return float(allocate(costs, setting="local", variance=0.25, error_weight=4e-8).privacy_loss[0])

    last, beyond = 0.0, 0.004
    for _ in range(80):
        middle = 0.5 * (last + beyond)
        last, beyond = (middle, beyond) if loss(middle) > 0.0 else (last, middle)
    reach = np.cbrt(last)
    rent = quad(lambda u: loss(u**3) * 3 * u * u, 0.0, reach, limit=200, epsabs=0, epsrel=1e-12)[0]
    assert outcome.rent_bounds[0][0] * (1 - 1e-11) <= rent <= outcome.rent_bounds[1][0] * (1 + 1e-11)
