"""Histograms as priors: the convex minorant by brute force in exact arithmetic, gaps, forms, and no gain from lying."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushbid.errors import PriorError
from hushbid.mechanism import Market
from hushbid.priors import Histogram, Mixture, Uniform, parse_prior, prior_from_dict
from hushbid.priors.ironing import iron
from tests.extent import each

GAP = Histogram([0, 1, 2, 3], [3, 0, 7])
HILLS = Histogram([1, 2, 2.5, 3, 4, 6], [2, 5, 1, 6, 1])


def lower_hull(prior: Histogram, per_bin: int) -> tuple[list[tuple[Fraction, Fraction, Fraction]], Fraction]:
    """The vertices (q, q·c, c) of the convex minorant of a polygon on the graph of H, in exact arithmetic.

    And how far the minorant of H itself may lie below it: over a step of Δq and Δc, H lies Δq·Δc/4 below its chord.
    """
    total = sum(map(Fraction, prior.weights.tolist()))
    hull: list[tuple[Fraction, Fraction, Fraction]] = []
    before, below = Fraction(0), Fraction(0)
    edges = [Fraction(edge) for edge in prior.edges.tolist()]
    for (left, right), weight in zip(pairwise(edges), prior.weights.tolist(), strict=True):
        share = Fraction(weight) / total
        below = max(below, share * (right - left) / per_bin**2 / 4)
        for step in range(per_bin + 1):
            q, c = before + share * step / per_bin, left + (right - left) * step / per_bin
            # of several prices with the same share of people, the lowest counts
            if hull and hull[-1][0] == q:
                continue
            while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], (q, q * c, c)):
                hull.pop()
            hull.append((q, q * c, c))
        before += share
    return hull, below


def _slope(a: tuple[Fraction, ...], b: tuple[Fraction, ...]) -> Fraction:
    return (b[1] - a[1]) / (b[0] - a[0])


def under_curve(prior: Histogram, q: float, c: float) -> float:
    """The integral of the ironed virtual cost up to the share q: H itself, or the line over a flat part."""
    for left, right, level in prior.flat_parts:
        if left < c < right:
            return left * prior.cdf(left) + level * (q - prior.cdf(left))
    return q * c


bins = st.lists(
    st.tuples(st.sampled_from([0.25, 0.5, 1.0, 3.0]), st.sampled_from([0.0, 0.0, 1.0, 2.0, 7.0, 0.01])),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40)
@given(st.sampled_from([0.0, 0.5, 10.0]), bins)
def test_ironed_costs_are_slopes_of_the_convex_minorant_found_by_brute_force(low, parts):
    edges = low + np.cumsum([0.0, *(width for width, _ in parts)])
    prior = Histogram(edges, [*(weight for _, weight in parts[:-1]), 1.0])
    hull, below = lower_hull(prior, 16)
    for q, cost, c in hull:
        lower = under_curve(prior, float(q), float(c))
        assert -1e-12 * float(cost) <= float(cost) - lower <= float(below) + 1e-12 * float(cost)
    for left, right, level in prior.flat_parts:
        # the line meets H at both ends, and lies below it in between
        inside = np.linspace(left, right, 33)
        gap = inside * prior.cdf(inside) - [under_curve(prior, prior.cdf(c), c) for c in inside.tolist()]
        assert gap[-1] == pytest.approx(0.0, abs=1e-12 * right)
        slack = right * prior.cdf(right) - left * prior.cdf(left) - level * (prior.cdf(right) - prior.cdf(left))
        assert slack == pytest.approx(0.0, abs=1e-12 * right)
        assert np.all(gap >= -1e-12 * right)
        assert np.all(prior.virtual_cost(inside[1:]) == level)


@pytest.mark.parametrize("prior", [GAP, HILLS], ids=str)
def test_the_price_for_a_value_maximises_the_buyers_profit(prior):
    prices = np.linspace(*prior.support, 20_001)
    for value in np.linspace(prior.support[0], 15.0, 40).tolist():
        best = prior.virtual_cost_inverse(value)
        assert np.max((value - prices) * prior.cdf(prices)) <= max((value - best) * prior.cdf(best), 0) + 1e-12


def test_a_histogram_is_the_mixture_of_uniforms_on_its_bins():
    mixture = Mixture([Uniform(0, 1), Uniform(2, 3)], [3, 7])
    c = np.linspace(0, 3, 301)
    assert GAP.cdf(c) == pytest.approx(mixture.cdf(c), abs=1e-15)
    assert GAP.raw_virtual_cost([0.5, 1.0, 1.5, 2.5]).tolist() == pytest.approx([1.0, 2.0, np.inf, 2.5 + 13 / 14])
    assert np.array(GAP.flat_parts) == pytest.approx(np.array(mixture.flat_parts), rel=1e-13)
    assert GAP.virtual_cost(c) == pytest.approx(mixture.virtual_cost(c), rel=1e-11)
    assert GAP.expectation == pytest.approx(mixture.expectation)
    assert GAP.quantile([0.3, 0.3 + 1e-12]) == pytest.approx([1.0, 2.0])


def test_a_mixture_with_a_histogram_keeps_its_gaps_and_jumps():
    within = Mixture([GAP, Uniform(2, 3)], [1, 1])
    spread = Mixture([Uniform(0, 1), Uniform(2, 3)], [0.15, 0.85])
    c = np.linspace(0, 3, 61)
    assert within.virtual_cost(c) == pytest.approx(spread.virtual_cost(c), rel=1e-9)
    assert within.quantile(0.15) == pytest.approx(1.0)


def test_the_closed_form_is_what_general_ironing_finds():
    rng = np.random.default_rng(1)
    for _ in range(6):
        bins = int(rng.integers(2, 8))
        weights = [1.0, *rng.integers(0, 5, bins - 2).tolist(), 2.0]
        prior = Histogram(np.sort(rng.uniform(0, 5, bins + 1)), weights)
        general = iron(prior, prior._grid())
        wide = [part for part in general.flat_parts if part[0] < part[1]]
        assert np.array(prior.flat_parts).reshape(-1, 3) == pytest.approx(np.array(wide).reshape(-1, 3), rel=1e-12)
        c = np.linspace(*prior.support, 501)
        assert prior.virtual_cost(c) == pytest.approx(np.maximum(general.table(c), c), rel=2e-12)


def test_falling_densities_are_regular_whatever_the_rounding_of_edges():
    even = np.linspace(0.1, 0.7, 31)
    assert Histogram(even, np.ones(30)).is_regular
    assert Histogram([0, 1, 2, 3], [3, 2, 1]).is_regular
    assert not Histogram([0, 1, 2], [1, 2]).is_regular
    flat = Uniform(0.1, 0.7)
    c = np.linspace(0.1, 0.7, 99)
    assert Histogram(even, np.ones(30)).virtual_cost(c) == pytest.approx(flat.virtual_cost(c), rel=1e-12)


def test_weights_of_any_size_are_added_exactly():
    prior = Histogram([0, 1, 2, 3], [1e300, 1e-300, 1e300])
    assert prior.cdf([1, 2]).tolist() == [0.5, 0.5]
    assert prior.flat_parts[0][0] == pytest.approx(1.0)


def test_both_forms_read_back_and_empty_ends_are_cut_off():
    assert parse_prior("histogram:0,3*1,0*2,7*3") == GAP == prior_from_dict(GAP.to_dict())
    assert GAP.to_text() == "histogram:0,3*1,0*2,7*3"
    assert Histogram([0, 1, 2, 3], [0, 2, 0]) == Histogram([1, 2], [2])
    assert parse_prior("mixture:1*histogram:0,3*1,0*2,7*3+1*uniform:0,1").components[0] == GAP


@each(
    ("text", "told"),
    [
        ("histogram:0,1", r"weight\*edge after the first edge, got '1'"),
        ("histogram:0", "weights must be a vector of at least one number"),
        ("histogram:1,2*1", "edges must rise, but row 1 does not lie above the one before"),
        ("histogram:0,0*1", "weights must have a positive, finite sum"),
        ("histogram:0,1e308*1,1e308*2", "weights must have a positive, finite sum"),
        ("empirical:1e308*1,1e308*2", "weights must have a finite sum, got inf"),
        ("histogram:0,-1*1", "weights must be finite numbers of at least 0"),
        ("histogram:-1,1*1", "edges must be finite numbers of at least 0"),
    ],
)
def test_what_is_no_histogram_is_refused_in_a_sentence(text, told):
    with pytest.raises(PriorError, match=told):
        parse_prior(text)


@pytest.mark.parametrize("setting", ["central", "local"])
def test_nobody_gains_by_a_misreport_under_a_histogram(setting):
    bids = HILLS.sample(4, rng=np.random.default_rng(4))
    market = Market(prior=HILLS, setting=setting, user_weight=0, buyer_weight=400)
    truth = market.acquire(bids)
    who = int(np.argmax(truth.privacy_loss))

    def gain(outcome):
        return outcome.payments[who] - bids[who] * outcome.privacy_loss[who]

    for lie in HILLS.quantile([0.05, 0.4, 0.6, 0.8]):
        lying = market.acquire(np.where(np.arange(4) == who, lie, bids))
        assert gain(lying) <= gain(truth) + truth.incentive_error + lying.incentive_error
    assert gain(truth) >= -truth.incentive_error
