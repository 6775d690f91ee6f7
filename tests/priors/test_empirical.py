"""Empirical priors: exact steps, exact ironing, and a rule that is truthful for every real cost."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from hushbid.priors import Empirical
from hushbid.priors.empirical import exact_integers
from tests.extent import each


def exact_minorant(values, weights):
    """Ironed virtual costs as fractions, by the definition: the largest convex function below the points."""
    points, total = [(Fraction(0), Fraction(0))], Fraction(0)
    for value, weight in sorted(zip(map(Fraction, values), map(Fraction, weights), strict=True)):
        total += weight
        points.append((total, total * value))
    costs = []
    for j in range(1, len(points)):
        # the slope of the minorant left of point j: the steepest of the shallowest chords across that gap
        costs.append(
            max(
                min((points[k][1] - points[i][1]) / (points[k][0] - points[i][0]) for k in range(j, len(points)))
                for i in range(j)
            )
        )
    return costs


def test_steps_follow_the_definition():
    prior = Empirical([1, 2, 2, 4])
    assert prior.values.tolist() == [1, 2, 4]
    assert prior.weights.tolist() == [1, 2, 1]
    # (1·1)/1, (3·2 − 1·1)/2, (4·4 − 3·2)/1
    assert prior.virtual_cost([1, 2, 4]).tolist() == [1, 2.5, 10]
    assert prior.cdf([0.5, 1, 1.5, 2, 3.9, 4, 9]).tolist() == [0, 0.25, 0.25, 0.75, 0.75, 1, 1]
    assert prior.pdf([0.5, 1, 1.5, 2, 4]).tolist() == [0, 0.25, 0, 0.5, 0.25]
    assert prior.quantile([0, 0.25, 0.26, 0.75, 0.76, 1]).tolist() == [1, 1, 2, 2, 4, 4]
    assert prior.expectation == 2.25
    assert prior.support == (1, 4)


def test_a_bid_takes_the_step_of_the_next_value_at_or_above_it():
    prior = Empirical([1, 2, 4])
    bids = [0, 0.5, 1, np.nextafter(1, 2), 1.5, 2, np.nextafter(2, 3), 4, np.nextafter(4, 5), np.inf]
    steps = prior.virtual_cost([1, 2, 4]).tolist()
    expected = [steps[0]] * 3 + [steps[1]] * 3 + [steps[2]] * 2 + [np.inf] * 2
    assert prior.virtual_cost(bids).tolist() == expected
    assert prior.raw_virtual_cost(bids).tolist() == expected


def test_neighbours_are_pooled_where_the_raw_cost_falls():
    prior = Empirical([1, 2, 2.1], weights=[10, 1, 10])
    assert not prior.is_regular
    assert prior.raw_virtual_cost([1, 2, 2.1]).tolist() == pytest.approx([1, 12, (21 * 2.1 - 22) / 10])
    pooled = (21 * 2.1 - 10) / 11
    assert prior.virtual_cost([1, 2, 2.1]).tolist() == pytest.approx([1, pooled, pooled])
    assert prior.flat_parts == ((0.0, 1.0, 1.0), (1.0, 2.1, pytest.approx(pooled)))


def test_flat_parts_are_the_steps_and_cover_every_bid_that_is_bought_from():
    prior = Empirical(np.random.default_rng(4).lognormal(size=200).round(2))
    lefts, rights, costs = map(np.array, zip(*prior.flat_parts, strict=True))
    assert lefts[0] == 0.0
    assert rights[-1] == prior.support[1]
    assert lefts[1:].tolist() == rights[:-1].tolist()
    assert np.all(np.diff(costs) > 0)
    assert prior.virtual_cost(rights).tolist() == costs.tolist()
    assert prior.virtual_cost(np.nextafter(lefts, np.inf)).tolist() == costs.tolist()
    assert prior.virtual_cost_inverse(costs).tolist() == rights.tolist()
    assert prior.virtual_cost_inverse(np.nextafter(costs, 0)).tolist() == [prior.support[0], *rights[:-1]]


@each("seed", range(30))
def test_ironing_is_exact_against_fractions(seed):
    rng = np.random.default_rng(seed)
    values = np.unique(np.round(rng.lognormal(sigma=rng.choice([0.1, 1, 5]), size=14), rng.integers(0, 6)))
    weights = rng.integers(1, 9, values.size) if seed % 2 else rng.random(values.size) ** 3
    exact = exact_minorant(values.tolist(), weights.tolist())
    found = Empirical(values, weights).virtual_cost(values)
    assert found.tolist() == pytest.approx([float(cost) for cost in exact], rel=4e-16 * 4, abs=0)
    ties = [a == b for a, b in pairwise(exact)]
    assert [a == b for a, b in pairwise(found)] == ties


def test_costs_that_are_equal_but_for_rounding_come_out_equal():
    # values chosen so that every raw cost is 3 from the second on, though neither floats nor fractions say so
    values, total = [1.0], Fraction(1)
    for _ in range(6):
        values.append(float((total * Fraction(values[-1]) + 3) / (total + 1)))
        total += 1
    assert len(set(exact_minorant(values, [1] * 7)[1:])) > 1
    found = Empirical(values).virtual_cost(values)
    assert found[0] == 1.0
    assert set(found[1:].tolist()) == {found[1]}
    assert found[1] == pytest.approx(3.0, rel=1e-15)


def test_steps_of_a_pilot_in_cents_that_differ_by_an_ulp_are_one():
    prior = Empirical([0.31, 0.59, 0.60, 0.61, 0.63, 1.23, 1.39, 2.33])
    assert [right for _, right, _ in prior.flat_parts] == [0.31, 0.63, 1.39, 2.33]


@pytest.mark.parametrize("spread", [1e-300, 1e-5, 1.0, 1e300])
def test_extreme_values_and_weights_keep_their_accuracy(spread):
    values, weights = [1e-10 * spread, spread, 3 * spread], [1e-200, 1.0, 1e-200]
    exact = exact_minorant(values, weights)
    found = Empirical(values, weights).virtual_cost(values).tolist()
    for cost, reference in zip(found, exact, strict=True):
        if reference < Fraction(1.7e308):
            assert cost == pytest.approx(float(reference), rel=1e-14, abs=0)
        else:
            assert cost == np.inf


def test_a_large_irregular_sample_is_ironed_as_the_small_code_does():
    rng = np.random.default_rng(11)
    samples = rng.lognormal(size=20_000)
    prior = Empirical(samples, weights=rng.random(20_000))
    raw, ironed = prior.raw_virtual_cost(prior.values), prior.virtual_cost(prior.values)
    assert not prior.is_regular
    # the minorant property, in floats: same total on every block, blocks' averages rise
    ends = np.searchsorted(prior.values, [right for _, right, _ in prior.flat_parts])
    total = np.cumsum(prior.weights * raw)[ends]
    assert np.cumsum(prior.weights * ironed)[ends] == pytest.approx(total, rel=1e-9)
    running, pooled = np.cumsum(prior.weights * raw), np.cumsum(prior.weights * ironed)
    assert np.all(pooled <= running * (1 + 1e-9))
    assert np.all(np.diff(ironed) >= 0)


def test_duplicates_order_and_zero_weights_do_not_matter():
    assert Empirical([2, 1, 2]) == Empirical([1, 2], weights=[1, 2]) == Empirical([1, 2, 5], weights=[1, 2, 0])
    assert Empirical([1, 2]) != Empirical([1, 2], weights=[2, 2])
    assert (
        Empirical([1, 2]).virtual_cost([1.0, 2.0]).tolist() == Empirical([1, 2], [2, 2]).virtual_cost([1, 2]).tolist()
    )


def test_one_value_is_its_own_virtual_cost():
    prior = Empirical([3.5])
    assert prior.virtual_cost([0, 3.5, 4]).tolist() == [3.5, 3.5, np.inf]
    assert prior.is_regular
    assert prior.flat_parts == ((0.0, 3.5, 3.5),)
    assert Empirical([0.0]).virtual_cost(0.0) == 0.0


def test_a_long_sample_has_a_short_repr():
    assert repr(Empirical(np.arange(1000.0))) == "Empirical(1000 values from 0 to 999)"
    assert repr(Empirical([1, 2.5])) == "Empirical([1, 2.5])"
    assert repr(Empirical([1, 2.5], [1, 3])) == "Empirical([1, 2.5], weights=[1, 3])"


def test_scaled_integers_are_exact():
    values = np.array([0.0, 0.1, 1e-300, 7.0, 5e-324])
    integers = exact_integers(values)
    assert [Fraction(i, integers[3]) for i in integers] == [Fraction(v) / 7 for v in values.tolist()]


@each("seed", range(5))
def test_the_step_rule_is_truthful_for_every_real_cost(seed):
    """Priced by the envelope formula, no misreport of any real type gains, whatever decreasing rule follows ψ."""
    rng = np.random.default_rng(seed)
    prior = Empirical(rng.lognormal(size=30).round(1) + 0.1)
    top = prior.support[1]
    steps = [
        (Fraction(left), Fraction(right), Fraction(1) / (1 + Fraction(cost))) for left, right, cost in prior.flat_parts
    ]

    def loss(bid):
        return next((amount for left, right, amount in steps if bid <= right), Fraction(0))

    def payment(bid):
        rent = sum(max(right - max(left, bid), 0) * amount for left, right, amount in steps)
        return bid * loss(bid) + rent

    edges = [Fraction(v) for v in prior.values.tolist()]
    bids = sorted({*edges, *(e + Fraction(1, 10**6) for e in edges), *(e / 2 for e in edges), Fraction(2 * top)})
    losses, payments = {bid: loss(bid) for bid in bids}, {bid: payment(bid) for bid in bids}
    for cost in bids:
        gains = [payments[bid] - cost * losses[bid] for bid in bids]
        truth = payments[cost] - cost * losses[cost]
        assert truth == max(gains)
        assert truth >= 0
