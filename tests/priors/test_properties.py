"""Laws that hold for every prior of every family: monotone, no cheaper than the bid, scale-free, invertible."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hushbid.priors import (
    Beta,
    Empirical,
    Exponential,
    Gamma,
    Grouped,
    Histogram,
    LogNormal,
    Mixture,
    TruncatedNormal,
    Uniform,
    parse_prior,
    prior_from_dict,
)


def numbers(low, high):
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


def positive(low_exponent, high_exponent):
    return numbers(low_exponent, high_exponent).map(lambda exponent: 10.0**exponent)


def _interval(ends):
    low, width = ends
    return low, low + width


intervals = st.tuples(st.one_of(st.just(0.0), positive(-3, 3)), positive(-2, 3)).map(_interval)
uniforms = intervals.map(lambda ends: Uniform(*ends))
exponentials = positive(-5, 5).map(Exponential)
lognormals = st.builds(LogNormal, numbers(-5, 5), positive(-2, 1))
gammas = st.builds(Gamma, positive(-2, 3), positive(-3, 3))
betas = st.builds(lambda a, b, ends: Beta(a, b, *ends), positive(-1, 2), positive(0, 2), intervals)
bathtubs = st.builds(lambda a, b, ends: Beta(a, b, *ends), positive(-1, 1), numbers(0.1, 0.95), intervals)
truncated_normals = st.builds(
    lambda mean, sd, ends: TruncatedNormal(mean, sd, *ends), numbers(-20, 20), positive(-1, 2), intervals
)
regular = st.one_of(uniforms, exponentials, lognormals, gammas, betas, truncated_normals)
mixtures = st.lists(st.tuples(regular, positive(-2, 0)), min_size=1, max_size=3).map(
    lambda parts: Mixture([prior for prior, _ in parts], [weight for _, weight in parts])
)
empiricals = st.lists(st.tuples(positive(-3, 3), st.integers(1, 5)), min_size=1, max_size=40).map(
    lambda parts: Empirical([value for value, _ in parts], [weight for _, weight in parts])
)


def _histogram(parts):
    low, bins = parts
    edges = low + np.cumsum([0.0, *(width for width, _ in bins)])
    return Histogram(edges, [*(weight for _, weight in bins[:-1]), 1.0])


histograms = st.tuples(
    st.one_of(st.just(0.0), positive(-3, 3)),
    st.lists(st.tuples(positive(-2, 2), st.sampled_from([0.0, 1.0, 2.0, 0.1, 50.0, 1e-6])), min_size=1, max_size=12),
).map(_histogram)
continuous = st.one_of(regular, bathtubs, mixtures, histograms)
priors = st.one_of(continuous, empiricals)
levels = st.lists(numbers(0, 1), min_size=1, max_size=30)


def bids_of(prior, chosen):
    """Quantiles, each with a few of the floats just above it: where rounding could break an order."""
    low, high = prior.support
    c = prior.quantile(np.clip(chosen, 0, 1 - 1e-12))
    steps = [c]
    for _ in range(6):
        steps.append(np.nextafter(steps[-1], np.inf))
    steps += [c * (1 + 1e-14), c * (1 + 1e-12), c * (1 + 1e-9)]
    return np.unique(np.clip(np.concatenate(steps), low, min(high, 1e300)))


@given(priors, levels)
def test_a_higher_bid_never_has_a_lower_virtual_cost_not_even_by_an_ulp(prior, chosen):
    cost = prior.virtual_cost(bids_of(prior, chosen))
    assert np.all(cost[1:] >= cost[:-1])


@given(priors, levels)
def test_the_virtual_cost_is_at_least_the_bid(prior, chosen):
    c = bids_of(prior, chosen)
    assert np.all(prior.virtual_cost(c) >= c)
    assert np.all(prior.raw_virtual_cost(c) >= c)


@given(priors, levels)
def test_a_bid_is_priced_alone_as_it_is_among_others(prior, chosen):
    c = bids_of(prior, chosen)
    assert [prior.virtual_cost(bid) for bid in c.tolist()] == prior.virtual_cost(c).tolist()


@example(Beta(1, 2, 0, 1), [1.0])
@given(regular, levels)
def test_regular_families_are_left_alone(prior, chosen):
    c = bids_of(prior, chosen)
    assert prior.is_regular
    assert prior.flat_parts == ()
    cost, raw = prior.virtual_cost(c), prior.raw_virtual_cost(c)
    other = cost != raw  # both are infinite where the density vanishes
    below_normal = np.finfo(np.float64).tiny  # numbers so small have few digits
    assert np.all(np.abs(cost[other] - raw[other]) <= 1e-10 * raw[other] + below_normal)


@given(continuous, levels)
def test_raw_virtual_cost_is_the_bid_plus_mass_over_density(prior, chosen):
    low, high = prior.support
    c = prior.quantile(np.clip(chosen, 1e-6, 1 - 1e-6))
    c = c[(c > low) & (c < high)]
    density = prior.pdf(c)
    c, density = c[density > 0], density[density > 0]
    assert np.allclose(prior.raw_virtual_cost(c), c + prior.cdf(c) / density, rtol=1e-8)


SCALED = {
    Uniform: lambda prior, k: Uniform(k * prior.low, k * prior.high),
    Exponential: lambda prior, k: Exponential(k * prior.scale),
    LogNormal: lambda prior, k: LogNormal(prior.mean_log + np.log(k), prior.sd_log),
    Gamma: lambda prior, k: replace(prior, scale=k * prior.scale),
    Beta: lambda prior, k: replace(prior, low=k * prior.low, high=k * prior.high),
    TruncatedNormal: lambda prior, k: TruncatedNormal(k * prior.mean, k * prior.sd, k * prior.low, k * prior.high),
}


@given(st.one_of(regular, bathtubs), numbers(0.01, 0.99), positive(-3, 3))
def test_measured_in_another_unit_the_virtual_cost_is_the_same(prior, level, unit):
    c = prior.quantile(level)
    scaled = SCALED[type(prior)](prior, unit)
    low, high = scaled.support
    there = min(max(unit * c, low), high)
    # a narrow prior magnifies the rounding of c itself
    assume(prior.quantile(0.9) - prior.quantile(0.1) > 1e-3 * c)
    assert scaled.virtual_cost(there) == pytest.approx(unit * prior.virtual_cost(c), rel=1e-9)


@given(continuous, levels)
def test_the_inverse_is_the_largest_bid_of_at_most_that_cost(prior, chosen):
    low, high = prior.support
    c = prior.quantile(np.clip(chosen, 0, 1 - 1e-9))
    c = c[(c == low) | (c > 1e-300)]
    cost = prior.virtual_cost(c)
    back = prior.virtual_cost_inverse(cost)
    assert np.all(back >= c * (1 - 1e-9))
    assert np.all((back >= low) & (back <= high))
    assert np.all(prior.virtual_cost(back) <= cost * (1 + 1e-9))
    above = np.minimum(back * (1 + 1e-6) + 1e-300, high)
    assert np.all((prior.virtual_cost(above) >= cost) | (above == high))


@given(empiricals, positive(-4, 6))
def test_the_inverse_of_an_empirical_prior_is_the_best_posted_price(prior, value):
    price = prior.virtual_cost_inverse(value)
    profits = [(value - v) * prior.cdf(v) for v in prior.values.tolist()]
    if value < prior.virtual_cost(prior.support[0]):
        assert price == prior.support[0]
        assert max(profits) <= 0
    else:
        assert (value - price) * prior.cdf(price) >= max(profits) - 1e-12 * value


@given(priors)
def test_both_forms_read_back_as_the_same_prior(prior):
    assert parse_prior(prior.to_text()) == prior
    assert prior_from_dict(prior.to_dict()) == prior
    assert hash(prior_from_dict(prior.to_dict())) == hash(prior)


@example(Mixture([Uniform(1, 2), Beta(0.1, 1, 0.1, 1.1), LogNormal(0, 0.1)], [1, 1, 1]), [0.0])
@given(continuous, levels)
def test_quantiles_rise_and_undo_the_distribution_function(prior, chosen):
    levels = np.sort(np.clip(chosen, 1e-9, 1 - 1e-9))
    c = prior.quantile(levels)
    assert np.all(np.diff(c) >= -1e-12 * c[1:])
    low, high = prior.support
    inside = (c > low) & (c < high)
    c, levels = c[inside], levels[inside]
    above = np.minimum(c * (1 + 1e-14), high)  # where a component begins, its density may rise without bound
    assert np.all(prior.cdf(above) >= levels * (1 - 1e-8))


@settings(max_examples=15)
@given(st.dictionaries(st.text(min_size=1, max_size=3), priors, min_size=1, max_size=4), st.data())
def test_a_group_prices_each_row_as_its_own_prior_does(members, data):
    labels = data.draw(st.lists(st.sampled_from(sorted(members)), min_size=1, max_size=12))
    grouped = Grouped(members, labels)
    bids = grouped.sample(rng=np.random.default_rng(len(labels)))
    expected = [members[label].virtual_cost(bid) for label, bid in zip(labels, bids.tolist(), strict=True)]
    assert grouped.virtual_cost(bids).tolist() == expected
    assert prior_from_dict(grouped.to_dict()) == grouped
