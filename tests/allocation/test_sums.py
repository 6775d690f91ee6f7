"""Sums over batches: the same integers whatever the order, and bounds that hold for the people behind them."""

import math
from functools import reduce

import numpy as np
import pytest

from hushbid.allocation import allocate
from hushbid.allocation.sums import BATCH, OFFSET_BITS, Buckets, Moments

KAPPA = 1.5 * 4 ** (1 / 3)
KINDS = ["uniform", "narrow", "exponential", "log-normal", "heavy tail", "two points", "constant", "some zeros"]


def crowd(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    match kind:
        case "uniform":
            return rng.uniform(1, 3, n)
        case "narrow":
            return 1 + 1e-9 * rng.random(n)
        case "exponential":
            return rng.exponential(size=n)
        case "log-normal":
            return rng.lognormal(0, 5, n)
        case "heavy tail":
            return np.exp(rng.uniform(-300, 300, n))
        case "two points":
            return rng.choice([1.0, 1.5], n)
        case "constant":
            return np.full(n, 2.0)
        case "some zeros":
            return np.where(rng.random(n) < 0.1, 0.0, rng.uniform(size=n))
    raise ValueError(kind)


def buckets_of(costs: np.ndarray, at_most: int = 1 << 14) -> Buckets:
    finite = costs[np.isfinite(costs)]
    return Buckets.spanning(float(finite.min()), float(finite.max()), at_most=at_most)


def round_down(costs: np.ndarray, buckets: Buckets) -> np.ndarray:
    """The costs as the sums see them."""
    return ((costs.view(np.int64) >> buckets.grain) << buckets.grain).view(np.float64)


def together(one: Moments, other: Moments) -> Moments:
    """The moments of both populations, which have the same buckets."""
    return Moments(one.buckets, one.count + other.count, one.first + other.first, one.second + other.second)


def assert_identical(found: Moments, expected: Moments) -> None:
    for name in ("count", "first", "second"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    for name in ("level", "mass", "first", "second"):
        assert getattr(found.below_edges(), name).tobytes() == getattr(expected.below_edges(), name).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_any_batches_in_any_order_add_up_to_the_same_bits(kind: str) -> None:
    rng = np.random.default_rng(1)
    costs = crowd(kind, 20_000, rng)
    buckets = buckets_of(costs)
    whole = Moments.of(costs, buckets)
    for parts in (1, 2, 7, 100):
        shuffled = rng.permutation(costs)
        cuts = np.sort(rng.integers(0, costs.size + 1, parts - 1))
        batches = [Moments.of(batch, buckets) for batch in np.split(shuffled, cuts)]
        assert_identical(reduce(together, batches), whole)
        assert_identical(reduce(together, batches[::-1]), whole)


def test_grouping_of_additions_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    costs = crowd("log-normal", 3000, rng)
    buckets = buckets_of(costs)
    a, b, c = (Moments.of(part, buckets) for part in np.split(costs, 3))
    assert_identical(together(together(a, b), c), together(a, together(b, c)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_sums_are_those_of_exact_integer_arithmetic(kind: str) -> None:
    costs = crowd(kind, 500, np.random.default_rng(3))
    buckets = buckets_of(costs, at_most=64)
    moments = Moments.of(costs, buckets)
    count, first, second = ([0] * buckets.count for _ in range(3))
    for bits in costs.view(np.int64).tolist():
        place = (bits - buckets.origin) >> buckets.grain
        bucket, offset = divmod(place, 1 << OFFSET_BITS)
        count[bucket] += 1
        first[bucket] += offset
        second[bucket] += offset * offset
    assert (moments.count.tolist(), moments.first.tolist(), moments.second.tolist()) == (count, first, second)


def test_sums_of_squares_stay_exact_beyond_the_integers_of_a_float() -> None:
    """The largest offset, for so many people that one float accumulator would round."""
    n = 3 * BATCH + 1
    largest = (1 << OFFSET_BITS) - 1
    assert n * largest**2 > 1 << 53
    cost = np.nextafter(2.0, 0.0)
    moments = Moments.of(np.full(n, cost), Buckets.spanning(1.0, float(cost), at_most=1))
    assert moments.count.tolist() == [n]
    assert moments.first.tolist() == [n * largest]
    assert moments.second.tolist() == [n * largest**2]


@pytest.mark.parametrize("kind", KINDS)
def test_buckets_cover_the_costs_and_are_few(kind: str) -> None:
    costs = crowd(kind, 5000, np.random.default_rng(4))
    octaves = 1 + np.ptp(np.frexp(costs)[1] + np.where(costs == 0, -1023, 0))
    for at_most in (16, 1 << 14):
        buckets = buckets_of(costs, at_most)
        edges = buckets.edges
        assert buckets.count == edges.size - 1 <= max(at_most, octaves)
        assert (np.diff(edges) > 0).all()
        assert edges[0] <= costs.min()
        assert costs.max() < edges[-1]
        index = np.searchsorted(edges, costs, side="right") - 1
        assert Moments.of(costs, buckets).count.tolist() == np.bincount(index, minlength=buckets.count).tolist()


def test_heavy_tails_do_not_widen_the_buckets_of_the_others() -> None:
    costs = crowd("heavy tail", 5000, np.random.default_rng(5))
    edges = buckets_of(costs).edges
    assert (np.diff(edges) <= edges[:-1]).all()  # at most a factor of two, over 260 orders of magnitude
    mild = crowd("uniform", 5000, np.random.default_rng(5))
    edges = buckets_of(mild).edges
    assert (np.diff(edges) <= edges[:-1] * 2e-4).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rounding_down_never_raises_a_cost_and_keeps_the_order(kind: str) -> None:
    costs = np.sort(crowd(kind, 5000, np.random.default_rng(6)))
    buckets = buckets_of(costs)
    rounded = round_down(costs, buckets)
    assert (rounded <= costs).all()
    assert (np.diff(rounded) >= 0).all()
    assert (costs - rounded <= costs * 2.0**-OFFSET_BITS).all()
    np.testing.assert_array_equal(round_down(rounded, buckets), rounded)
    assert_identical(Moments.of(rounded, buckets), Moments.of(costs, buckets))


@pytest.mark.parametrize("setting", ["central", "local"])
@pytest.mark.parametrize("kind", KINDS)
def test_rounding_costs_down_never_raises_the_optimum(setting: str, kind: str) -> None:
    costs = crowd(kind, 2000, np.random.default_rng(7))
    if kind == "heavy tail":
        costs = costs[(costs > 1e-30) & (costs < 1e30)]
    rounded = round_down(costs, buckets_of(costs))
    true, lower = (allocate(c, setting=setting, error_weight=50.0).objective for c in (costs, rounded))
    assert lower <= true * (1 + 1e-12)
    assert lower >= true * (1 - 2.0**-OFFSET_BITS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_sums_give_the_curve_of_the_rounded_people_at_every_edge(kind: str) -> None:
    costs = crowd(kind, 400, np.random.default_rng(8))
    buckets = buckets_of(costs, at_most=64 if kind not in ("heavy tail", "some zeros") else 1 << 11)
    rounded = round_down(costs, buckets)
    below = Moments.of(costs, buckets).below_edges()
    a, g = below.curve()
    for edge, mass, level, squares in zip(buckets.edges[1:], below.mass, a, g, strict=True):
        under = rounded[rounded < edge]
        assert mass == under.size
        if under.size:
            weights = (edge - under) / np.sum(edge - under)
            assert level == pytest.approx(weights @ under, rel=1e-9, abs=1e-300)
            assert squares == pytest.approx(weights @ weights, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0])
def test_bounds_from_the_sums_hold_for_the_people_behind_them(kind: str, scale: float) -> None:
    """Between two edges ``h ≥ g(a₂) + κ·a₁^{2/3}``; the least of these is below the optimum and not far below."""
    costs = crowd(kind, 3000, np.random.default_rng(9)) * scale
    if kind == "heavy tail":
        costs = costs[(costs > 1e-60) & (costs < 1e60)]
    a, g = Moments.of(costs, buckets_of(costs)).below_edges().curve()
    known = g > 0
    a, g = a[known], g[known]
    start = np.append(float(costs.min()) * (1 - 1e-4), a[:-1])
    bounds = np.append(g + KAPPA * np.cbrt(start) ** 2, 1 / costs.size + KAPPA * np.cbrt(a[-1]) ** 2)
    optimum = allocate(costs, variance=1.0, error_weight=1.0).objective
    assert bounds.min() <= optimum * (1 + 1e-12)
    wide = kind in ("heavy tail", "some zeros")  # a bucket per power of two: enough to discard, not to decide
    if not wide and bounds.argmin() + 1 < bounds.size:  # the last bound is for all levels above all costs
        assert bounds.min() >= optimum * 0.999


def test_most_people_are_discarded_by_their_bounds() -> None:
    """One pass leaves few candidates: people in buckets whose bound is below the best value seen at an edge."""
    costs = np.random.default_rng(10).uniform(1, 2, 200_000) / 200_000
    moments = Moments.of(costs, buckets_of(costs, at_most=4096))
    a, g = moments.below_edges().curve()
    best = (g + KAPPA * np.cbrt(a) ** 2)[g > 0].min()
    bounds = g + KAPPA * np.cbrt(np.append(costs.min(), a[:-1])) ** 2
    left = moments.count[bounds <= best].sum()
    assert 0 < left < 0.02 * costs.size


def test_people_never_bought_from_do_not_count() -> None:
    costs = np.array([1.0, math.inf, 1.5, math.inf])
    buckets = buckets_of(costs)
    assert_identical(Moments.of(costs, buckets), Moments.of(costs[::2].copy(), buckets))


def test_a_strided_view_is_summed_like_a_copy() -> None:
    costs = np.random.default_rng(11).exponential(size=1000)
    buckets = buckets_of(costs)
    assert_identical(Moments.of(costs[::-2], buckets), Moments.of(costs[::-2].copy(), buckets))


def test_nobody_adds_nothing() -> None:
    costs = np.array([1.0, 2.0])
    buckets = buckets_of(costs)
    some = Moments.of(costs, buckets)
    assert_identical(together(some, Moments.of(np.array([]), buckets)), some)
