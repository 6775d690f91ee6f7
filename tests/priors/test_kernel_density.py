"""Kernel densities as priors: mpmath's values deep in both tails, the minorant by brute force, no gain from lying."""

import pickle

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from hushbid.errors import PriorError
from hushbid.mechanism import Market
from hushbid.priors import Empirical, KernelDensity, Mixture, Uniform, parse_prior, prior_from_dict
from hushbid.priors.ironing import iron
from tests.extent import each

TWO_HILLS = KernelDensity([1, 1.2, 1.3, 3, 3.1], 0.2)
SAMPLES = [([1, 1.2, 3], 0.2), ([100, 101, 130], 1.0), ([0, 0.1, 3], 0.3), ([0.5, 1, 7], 2.0)]


@pytest.mark.parametrize(("values", "bandwidth"), SAMPLES)
def test_distribution_density_and_virtual_cost_are_those_of_mpmath_in_both_tails(values, bandwidth):
    prior = KernelDensity(values, bandwidth)
    h, tiny = mp.mpf(bandwidth), mp.mpf("1e-290")
    with mp.workdps(40):
        for c in [1e-9 * bandwidth, 0.01 * bandwidth, *values, 0.5 * max(values), 1.2 * max(values) + bandwidth]:
            mass = mp.fsum(mp.ncdf((c - x) / h) - mp.ncdf((-c - x) / h) for x in values) / len(values)
            density = mp.fsum(mp.npdf((c - x) / h) + mp.npdf((-c - x) / h) for x in values) / h / len(values)
            assert prior.raw_virtual_cost(c) == pytest.approx(float(c + mass / density if c else 0), rel=1e-12)
            if min(mass, density) > tiny:
                assert prior.cdf(c) == pytest.approx(float(mass), rel=1e-12)
                assert prior.pdf(c) == pytest.approx(float(density), rel=1e-12)


def test_nothing_is_lost_below_zero_because_kernels_are_reflected_there():
    prior = KernelDensity([0.1, 0.5], 1.0)
    draws = np.abs(np.random.default_rng(1).choice([0.1, 0.5], 200_000) + np.random.default_rng(2).normal(size=200_000))
    assert prior.support == (0.0, np.inf)
    assert prior.cdf([0.0, 50.0]).tolist() == [0.0, 1.0]
    assert prior.expectation == pytest.approx(draws.mean(), rel=5e-3)
    assert prior.cdf([0.5, 1.0, 2.0]) == pytest.approx([np.mean(draws <= c) for c in (0.5, 1.0, 2.0)], abs=5e-3)
    assert np.mean(prior.sample(50_000, rng=np.random.default_rng(3))) == pytest.approx(prior.expectation, rel=2e-2)


def test_ironed_cost_is_the_slope_of_the_convex_minorant_of_many_points():
    prices = np.linspace(0.5, 4.0, 40_001)
    mass = TWO_HILLS.cdf(prices)
    steps = np.diff(mass)
    slopes = isotonic_regression(np.diff(mass * prices) / steps, weights=steps).x
    costs = TWO_HILLS.virtual_cost(prices)
    inner = slice(1, -1)  # the polygon's ends are not the curve's
    assert np.all(slopes[inner] >= costs[:-1][inner] * (1 - 1e-6))
    assert np.all(slopes[inner] <= costs[1:][inner] * (1 + 1e-6))
    assert len(TWO_HILLS.flat_parts) == 1


@settings(max_examples=12)
@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=5), st.sampled_from([0.05, 0.3, 2.0]), st.floats(0.0, 0.999))
def test_laws_of_priors_hold_for_kernel_densities(values, bandwidth, level):
    prior = KernelDensity(values, bandwidth)
    c = prior.quantile(level)
    near = np.unique([c, *(np.nextafter(c, np.inf) for _ in range(3)), c * (1 + 1e-12), c * (1 + 1e-6) + 1e-9])
    costs = prior.virtual_cost(near)
    assert np.all(np.diff(costs) >= 0)
    assert np.all(costs >= near)
    assert [prior.virtual_cost(one) for one in near.tolist()] == costs.tolist()
    assert prior.cdf(c) == pytest.approx(level, rel=1e-9, abs=1e-300)
    assert prior.virtual_cost(prior.virtual_cost_inverse(costs[0])) <= costs[0] * (1 + 1e-9)
    assert parse_prior(prior.to_text()) == prior == prior_from_dict(prior.to_dict())


def test_an_unsaid_bandwidth_is_silvermans():
    values = np.random.default_rng(5).normal(10.0, 1.0, 100)
    spread = min(values.std(), (np.quantile(values, 0.75) - np.quantile(values, 0.25)) / 1.34)
    assert KernelDensity(values).bandwidth == pytest.approx(0.9 * spread * 100**-0.2, rel=0.02)
    assert KernelDensity([1, 2, 4], weights=[2, 1, 1]).bandwidth < KernelDensity([1, 2, 4]).bandwidth * 1.1


def test_silvermans_rule_counts_people_not_distinct_values():
    rounded = np.repeat([1.0, 2.0, 3.0, 5.0], [20, 40, 30, 10])
    spread = min(rounded.std(), (3.0 - 2.0) / 1.34)
    assert KernelDensity(rounded).bandwidth == pytest.approx(0.9 * spread * 100**-0.2)
    for unit in (1e-200, 7.0, 1e200):
        assert KernelDensity(rounded, weights=np.full(100, unit)).bandwidth == pytest.approx(0.9 * spread * 100**-0.2)


def test_a_kernel_density_may_be_a_component_of_a_mixture():
    mixed = Mixture([TWO_HILLS, Uniform(0, 5)], [1, 1])
    assert mixed.cdf(2.0) == pytest.approx(0.5 * TWO_HILLS.cdf(2.0) + 0.2)
    assert mixed.virtual_cost(2.0) >= 2.0


@each(
    ("make", "told"),
    [
        (lambda: KernelDensity([2, 2]), "bandwidth must be given where all samples are the same"),
        (lambda: KernelDensity([1, 2], 0.0), "bandwidth must be a finite number above 0, got bandwidth=0"),
        (lambda: KernelDensity([1, 2], 1e-9), "bandwidth must be at least 1e-06 of the largest value"),
        (lambda: KernelDensity(np.arange(1001.0), 1.0), "at most 1000 different values, got 1001"),
        (lambda: KernelDensity([1, -2], 1.0), "samples must be finite numbers of at least 0, but row 1 is not"),
        (lambda: parse_prior("kde:0.5"), "samples must be a vector of at least one number"),
        (lambda: parse_prior("kde:x,1"), "a number was expected in place of 'x'"),
        (lambda: prior_from_dict({"family": "kde", "values": [1], "weights": [1]}), "must hold bandwidth, values"),
        (
            lambda: prior_from_dict({"family": "kde", "bandwidth": None, "values": [1], "weights": [1]}),
            "bandwidth must be a finite number above 0",
        ),
    ],
)
def test_what_is_no_kernel_density_is_refused_in_a_sentence(make, told):
    with pytest.raises(PriorError, match=told):
        make()


def test_nobody_gains_by_a_misreport_under_a_kernel_density():
    bids = TWO_HILLS.sample(4, rng=np.random.default_rng(4))
    market = Market(prior=TWO_HILLS, user_weight=0, buyer_weight=400)
    truth = market.acquire(bids)
    who = int(np.argmax(truth.privacy_loss))

    def gain(outcome):
        return outcome.payments[who] - bids[who] * outcome.privacy_loss[who]

    for lie in TWO_HILLS.quantile([0.05, 0.4, 0.6, 0.8]):
        lying = market.acquire(np.where(np.arange(4) == who, lie, bids))
        assert gain(lying) <= gain(truth) + truth.incentive_error + lying.incentive_error
    assert gain(truth) >= -truth.incentive_error


def test_people_s_values_are_described_and_not_shown():
    from hushbid.priors.forms import prior_words

    assert prior_words(TWO_HILLS) == "the smoothed distribution of a sample with 5 distinct values"
    assert "1.2" not in prior_words(Mixture([TWO_HILLS, Uniform(0, 1)], [1, 1]))
    assert "1.2" not in repr(TWO_HILLS)
    assert Empirical([1]).family not in prior_words(TWO_HILLS)


def test_far_above_the_sample_nothing_is_left_and_nothing_is_undefined():
    far = np.array([1e150, 1e200, 1e300])
    np.testing.assert_allclose(TWO_HILLS.cdf(far), 1.0, rtol=1e-15)
    np.testing.assert_array_equal(TWO_HILLS.pdf(far), 0.0)
    np.testing.assert_array_equal(TWO_HILLS.virtual_cost(far), np.inf)


@pytest.mark.parametrize("bandwidth", [0.02, None])
def test_costs_read_off_a_curve_are_the_ironed_ones_and_never_fall(bandwidth):
    rng = np.random.default_rng(8)
    prior = KernelDensity(rng.gamma(2.0, 1.0, 60), bandwidth)
    plain = iron(prior, prior._grid())
    assert type(prior._ironed.table.function) is not type(plain.table.function)
    bids = np.sort(prior.sample(1500, rng=rng))
    np.testing.assert_allclose(prior.virtual_cost(bids), plain.table(bids), rtol=2e-12)
    ends = prior._ironed.table.points
    ends = ends[ends < bids[-1]]
    close = bids[750] * (1.0 + 1e-15 * np.arange(1000))
    around = np.unique(np.concatenate([ends, np.nextafter(ends, 0.0), np.nextafter(ends, np.inf), close]))
    assert np.all(np.diff(prior.virtual_cost(around)) >= 0.0)
    again = pickle.loads(pickle.dumps(prior))
    np.testing.assert_array_equal(again.virtual_cost(bids), prior.virtual_cost(bids))


def test_a_cost_does_not_depend_on_the_others_that_are_asked_about():
    bids = np.sort(TWO_HILLS.sample(300, rng=np.random.default_rng(9)))
    together = TWO_HILLS.virtual_cost(bids)
    assert [TWO_HILLS.virtual_cost(bid) for bid in bids] == together.tolist()
