"""A prior cut to an interval is the prior given that the cost lies in it."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from hushbid import (
    Accuracy,
    Empirical,
    Exponential,
    Gamma,
    Histogram,
    KernelDensity,
    LogNormal,
    Market,
    Mixture,
    Truncated,
    TruncatedNormal,
    Uniform,
    from_scipy,
    parse_prior,
    prior_from_dict,
)
from hushbid.errors import PriorError
from hushbid.priors import Prior
from tests.extent import each

CUTS: list[tuple[Prior, float, float]] = [
    (LogNormal(0.3, 1.0), 0.06, 28.0),
    (LogNormal(0.3, 2.5), 3.0, 9.0),
    (LogNormal(0.0, 0.2), 1.2, math.inf),
    (Exponential(2.0), 1.0, 5.0),
    (Gamma(0.5, 1.0), 0.0, 2.0),
    (Gamma(3.0, 0.5), 2.5, 4.0),
    (Uniform(0, 4), 1, 2),
    (TruncatedNormal(1, 0.5, 0, 3), 0.5, 2),
    (Mixture([Uniform(0, 1), Uniform(2, 3)], [0.3, 0.7]), 0.4, 2.5),
    (Histogram([0, 1, 3, 4], [2, 1, 5]), 0.5, 3.5),
    (KernelDensity([1, 2, 2.5, 6], 0.4), 1.0, 5.0),
    (from_scipy(stats.weibull_min(2, scale=3)), 1.0, 6.0),
    (Truncated(LogNormal(0, 1), 0.1, 10), 0.5, 20.0),
]
IDS = [f"{prior.family}-{low:g}" for prior, low, _ in CUTS]
ALL = pytest.mark.parametrize(("prior", "low", "high"), CUTS, ids=IDS)


@ALL
def test_probabilities_are_conditional_and_quantiles_are_their_inverse(prior: Prior, low: float, high: float) -> None:
    cut = Truncated(prior, low, high)
    start, end = cut.support
    assert (start, end) == (max(low, prior.support[0]), min(high, prior.support[1]))
    c = np.linspace(start, min(end, 20.0), 101)
    total = prior.cdf(end) - (prior.cdf(low) if low > 0 else 0.0)
    expected = (prior.cdf(c) - (prior.cdf(low) if low > 0 else 0.0)) / total
    assert cut.cdf(c) == pytest.approx(expected, abs=1e-12)
    assert cut.pdf(c[1:-1]) == pytest.approx(prior.pdf(c[1:-1]) / total, rel=1e-12)
    assert (cut.quantile(0.0), cut.quantile(1.0)) == (start, end)
    levels = np.linspace(0.001, 0.999, 99)
    assert cut.cdf(cut.quantile(levels)) == pytest.approx(levels, abs=1e-9)
    draws = cut.sample(4000, rng=np.random.default_rng(7))
    assert draws.min() >= start
    assert draws.max() <= end
    spread = draws.std() / math.sqrt(draws.size)
    assert abs(draws.mean() - cut.expectation) < 5.5 * spread  # a chance of 4e-8 on right code, and the seed is fixed
    assert abs(draws.mean() - cut.expectation * 1.3) > 6.0 * spread


@ALL
def test_the_virtual_cost_rises_and_is_ironed_where_the_raw_one_falls(prior: Prior, low: float, high: float) -> None:
    cut = Truncated(prior, low, high)
    start, end = cut.support
    c = np.linspace(start, min(end, 20.0), 2001)
    costs = cut.virtual_cost(c)
    assert (np.diff(costs) >= -1e-11 * costs[1:]).all()
    assert (costs >= c).all()
    assert cut.virtual_cost(start) == pytest.approx(start, abs=1e-12)
    assert cut.virtual_cost(math.nextafter(end, math.inf) if end < math.inf else math.inf) == math.inf
    raw = cut.raw_virtual_cost(c[1:-1])
    below = prior.cdf(low) if low > 0 else 0.0
    with np.errstate(divide="ignore"):
        assert raw == pytest.approx(c[1:-1] + (prior.cdf(c[1:-1]) - below) / prior.pdf(c[1:-1]), rel=1e-8)
    flat = np.zeros(c.size, dtype=bool)
    for left, right, _ in cut.flat_parts:
        flat |= (c >= left - 1e-9) & (c <= right + 1e-9)
    assert costs[1:-1][~flat[1:-1]] == pytest.approx(raw[~flat[1:-1]], rel=1e-9)
    assert cut.is_regular == (not cut.flat_parts)
    # what a unit is sold for on average is what it costs: E ψ over those up to a price is the price times how many
    for price in np.asarray(cut.quantile([0.3, 0.7, 0.95])):
        if any(left < price < right for left, right, _ in cut.flat_parts):
            continue
        levels = (np.arange(20000) + 0.5) / 20000 * cut.cdf(float(price))
        mean = float(np.mean(cut.virtual_cost(cut.quantile(levels))))
        assert mean == pytest.approx(float(price), rel=2e-3)


def test_a_cut_log_normal_is_regular_wherever_it_is_cut() -> None:
    for spread in (0.05, 0.5, 1.0, 3.0):
        for level in (0.001, 0.3, 0.9):
            base = LogNormal(0.0, spread)
            cut = Truncated(base, base.quantile(level), base.quantile(0.9999))
            assert cut.is_regular
            raw = cut.raw_virtual_cost(cut.quantile(np.linspace(0, 1, 4001)))
            assert (np.diff(raw) > 0.0).all()


def test_a_cut_above_leaves_virtual_costs_and_a_cut_below_lowers_them() -> None:
    base, c = LogNormal(0, 1), np.linspace(0.5, 4.9, 50)
    assert Truncated(base, 0, 5).virtual_cost(c) == pytest.approx(base.virtual_cost(c), rel=1e-14)
    assert (Truncated(base, 0.4, 5).virtual_cost(c) < base.virtual_cost(c)).all()


def test_a_sample_that_is_cut_is_the_sample_that_is_left() -> None:
    assert Truncated(Empirical([1, 2, 2, 5]), 1.5, 9) == Empirical([2, 2, 5])
    with pytest.raises(PriorError, match="some of the sample"):
        Truncated(Empirical([1, 2]), 3, 4)


@ALL
def test_a_cut_prior_is_written_read_pickled_and_compared(prior: Prior, low: float, high: float) -> None:
    cut = Truncated(prior, low, high)
    assert parse_prior(cut.to_text()) == cut
    assert prior_from_dict(cut.to_dict()) == cut
    again = pickle.loads(pickle.dumps(cut))
    assert again == cut
    assert hash(again) == hash(cut)
    assert again.virtual_cost(0.5 * sum(min(end, 9.0) for end in cut.support)) > 0.0
    mixed = Mixture([cut, Uniform(1, 2)], [1, 2])
    assert parse_prior(mixed.to_text()) == mixed


@each(
    ("make", "told"),
    [
        (lambda: Truncated(Uniform(1, 2), 3, 4), "must hold at least"),
        (lambda: Truncated(Uniform(1, 2), 1.5, 1.5), "high must be a number above low=1.5"),
        (lambda: Truncated(Uniform(1, 2), -1, 2), "low must be"),
        (lambda: Truncated("uniform", 0, 2), "prior must be a prior such as"),
        (lambda: parse_prior("truncated:1,2"), "must read truncated:low,high,prior"),
        (lambda: parse_prior("truncated:0,9," * 6 + "uniform:0,1"), "nested"),
        (lambda: prior_from_dict({"family": "truncated", "low": 0, "high": 1}), "must hold prior, low, high"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_a_sentence(make: object, told: str) -> None:
    with pytest.raises(PriorError, match=told):
        make()  # type: ignore[operator]


def test_payments_under_a_cut_prior_end_at_the_cut() -> None:
    """Without the cut the payment of somebody indispensable has no end."""
    cut = Truncated(LogNormal(0, 1), 0.05, 20.0)
    found = Market(prior=cut, goal=Accuracy(0.5), variance=0.2).acquire([1.0])
    loss = float(found.privacy_loss[0])
    assert found.payments[0] == pytest.approx(20.0 * loss, rel=1e-6)
