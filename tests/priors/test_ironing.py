"""Ironing of continuous priors: brute force on a million points, exact cases, gaps, jumps, ends of the support."""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import isotonic_regression

from hushbid.mechanism import Market
from hushbid.priors import Beta, Exponential, Gamma, LogNormal, Mixture, TruncatedNormal, Uniform, from_scipy
from hushbid.priors.continuous import ContinuousPrior
from tests.extent import each

GAP = Mixture([Uniform(0, 1), Uniform(2, 3)], [0.3, 0.7])
OVERLAP = Mixture([Uniform(0, 2), Uniform(1, 3)], [0.5, 0.5])
BIMODAL = Mixture([LogNormal(0, 0.2), LogNormal(1, 0.1)], [0.5, 0.5])
NEEDLE = Mixture([Uniform(0, 1), Uniform(0.3, 0.301)], [0.5, 0.5])

IRREGULAR = [
    GAP,
    OVERLAP,
    BIMODAL,
    NEEDLE,
    Mixture([LogNormal(0, 0.2), LogNormal(1, 0.1), Gamma(200, 0.05)], [0.2, 0.3, 0.5]),
    Mixture([TruncatedNormal(m, 0.1, 0, 5) for m in (1, 2, 2.3)] + [Uniform(0, 5)], [0.2, 0.3, 0.3, 0.2]),
    Mixture([Mixture([Uniform(0, 1), Uniform(2, 3)], [1, 1]), Uniform(0.5, 4)], [0.5, 0.5]),
    Beta(2, 0.5),
    Beta(0.3, 0.2, 0.3, 0.9),
    from_scipy(stats.arcsine(loc=1, scale=2)),
]


def minorant_slopes(prior, count):
    """Evenly spaced prices (and the needle's edges), and the slopes of the convex minorant of H between them."""
    low, high = prior.support
    top = high if high < np.inf else prior.quantile(1 - 1e-4)  # above, differences of F lose their digits
    edges = [edge for edge in (0.3, 0.301) if low < edge < top]
    prices = np.unique(np.append(np.linspace(low, top, count), edges))
    mass = prior.cdf(prices)
    new = (mass > 1e-9) & np.concatenate([[True], np.diff(mass) > 0])
    new[0] = True
    prices, mass = prices[new], mass[new]
    steps = np.diff(mass)
    return prices, isotonic_regression(np.diff(mass * prices) / steps, weights=steps).x


@pytest.mark.parametrize("prior", IRREGULAR, ids=str)
def test_ironed_cost_is_the_slope_of_the_convex_minorant_of_a_million_points(prior):
    prices, slopes = minorant_slopes(prior, 10**6 if isinstance(prior, Mixture) else 10**5)
    left, right = prior.virtual_cost(prices[:-1]), prior.virtual_cost(prices[1:])
    # a chord's slope lies between the slopes of the curve at its ends; the polygon itself is off by its spacing squared
    assert np.all(slopes >= left * (1 - 1e-6))
    assert np.all(slopes <= right * (1 + 1e-6))
    assert not prior.is_regular


@each("prior", IRREGULAR)
def test_the_price_for_a_value_maximises_the_buyers_profit(prior):
    low, high = prior.support
    prices = np.linspace(low, min(high, prior.quantile(1 - 1e-4)), 50_001)
    mass = prior.cdf(prices)
    for value in prior.virtual_cost(prior.quantile(np.linspace(0.01, 0.99, 23))):
        best = prior.virtual_cost_inverse(value)
        profit = (value - best) * prior.cdf(best)
        assert np.max((value - prices) * mass) <= profit * (1 + 1e-9)
        assert low <= best <= high


@each("prior", IRREGULAR)
def test_flat_parts_are_where_the_virtual_cost_is_constant(prior):
    assert prior.flat_parts
    for left, right, level in prior.flat_parts:
        inside = np.linspace(left, right, 1001)[1:]
        assert np.all(prior.virtual_cost(inside) == level)
        assert prior.virtual_cost(left) <= level
        assert prior.virtual_cost_inverse(level) == right
        scale = right - left
        if right < prior.support[1]:
            assert prior.virtual_cost(right + 1e-3 * scale) > level
        if left > prior.support[0]:
            assert prior.virtual_cost(left - 1e-3 * scale) < level
    levels = [level for *_, level in prior.flat_parts]
    assert levels == sorted(set(levels))


def test_two_overlapping_uniforms_are_ironed_at_the_exact_level():
    # F = c/4 below 1 and (2c − 1)/4 up to 2: equal profits at tangent prices λ/2 and (2λ + 1)/4 give λ = 1 + 1/√2
    (left, right, level) = OVERLAP.flat_parts[0]
    exact = 1 + 0.5**0.5
    assert (left, right, level) == pytest.approx((exact / 2, (2 * exact + 1) / 4, exact), rel=1e-13)


def test_a_gap_is_ironed_from_its_lower_edge():
    # on [2, 3]: F = 0.3 + 0.7(c − 2), and the profit of price 1 is 0.3(λ − 1)
    left, right, level = GAP.flat_parts[0]
    assert left == 1.0
    assert right == pytest.approx((level + 2 - 0.3 / 0.7) / 2, rel=1e-13)
    assert (level - right) * GAP.cdf(right) == pytest.approx(0.3 * (level - 1), rel=1e-12)
    assert GAP.raw_virtual_cost(1.5) == np.inf
    assert GAP.virtual_cost(1.0) == pytest.approx(2.0)
    assert GAP.virtual_cost([1.5, 2.0]).tolist() == [level, level]


def test_ironing_ends_at_the_top_of_the_support_where_the_density_explodes():
    # Beta(1, b): F = 1 − y^b with y = 1 − c; tangent at c and chord to (1, 1): y + (1 − y^b) y^(1−b)/b = y/y^b
    prior = Beta(1, 0.5)
    (left, right, level) = prior.flat_parts[0]
    with mp.workdps(30):
        y = mp.findroot(
            lambda y: (1 - y) + (1 - mp.sqrt(y)) * mp.sqrt(y) * 2 - (1 - (1 - y) * (1 - mp.sqrt(y))) / mp.sqrt(y), 0.3
        )
        assert right == 1.0
        assert left == pytest.approx(float(1 - y), rel=1e-12)
        assert level == pytest.approx(float((1 - y) + (1 - mp.sqrt(y)) * mp.sqrt(y) * 2), rel=1e-12)
    assert prior.virtual_cost(1.0) == level


def test_a_bimodal_mixture_is_ironed_as_mpmath_says():
    def mass(c):
        return (mp.ncdf(mp.log(c) / mp.mpf("0.2")) + mp.ncdf((mp.log(c) - 1) / mp.mpf("0.1"))) / 2

    def cost(c):
        return c + mass(c) / mp.diff(mass, c)

    left, right, level = BIMODAL.flat_parts[0]
    with mp.workdps(30):
        exact = mp.findroot(
            lambda a, b: (cost(a) - cost(b), (cost(a) - a) * mass(a) - (cost(a) - b) * mass(b)), (left, right)
        )
        assert left == pytest.approx(float(exact[0]), rel=1e-9)
        assert right == pytest.approx(float(exact[1]), rel=1e-9)
        assert level == pytest.approx(float(cost(exact[0])), rel=1e-10)


@each(
    "prior",
    [
        Mixture([Uniform(0, 1), Uniform(1, 2)], [0.5, 0.5]),
        Mixture([Uniform(0, 2), Uniform(0, 1)], [0.5, 0.5]),
        Mixture([Exponential(1), Exponential(100)], [0.5, 0.5]),
        Mixture([LogNormal(0, 1)], [3]),
        from_scipy(stats.weibull_min(2, scale=3)),
        from_scipy(stats.pareto(3)),
        from_scipy(stats.invgauss(0.5)),
        from_scipy(stats.foldnorm(2)),
        from_scipy(stats.burr12(10, 4)),
        Beta(0.5, 1),
        Beta(0.2, 3),
        Gamma(0.1, 1),
    ],
)
def test_a_prior_with_nondecreasing_virtual_cost_is_regular_and_left_alone(prior):
    assert prior.is_regular
    assert prior.flat_parts == ()
    c = prior.quantile(np.linspace(0.001, 0.999, 999))
    assert np.allclose(prior.virtual_cost(c), prior.raw_virtual_cost(c), rtol=1e-11)


def test_a_mixture_of_one_component_is_that_component():
    c = np.geomspace(1e-5, 1e5, 101)
    assert np.allclose(Mixture([LogNormal(0, 1)], [3]).virtual_cost(c), LogNormal(0, 1).virtual_cost(c), rtol=1e-11)


def test_touching_uniforms_are_one_uniform():
    c = np.linspace(0, 2, 101)
    assert np.allclose(Mixture([Uniform(0, 1), Uniform(1, 2)], [1, 1]).virtual_cost(c), 2 * c, rtol=1e-11)


def test_an_irregularity_of_tiny_weight_far_below_the_rest_is_found():
    prior = Mixture([LogNormal(0, 1), LogNormal(-30, 0.01)], [1, 1e-15])
    assert len(prior.flat_parts) == 2
    assert prior.flat_parts[-1][0] < 1e-12 < 1e-4 < prior.flat_parts[-1][1]


class TwoPeaks(ContinuousPrior):
    """A prior of one's own, which says nothing of regularity: 0.3 spread over [0, 1], 0.7 over [2, 3], nearly."""

    family = "two-peaks"
    support = (0.0, 3.0)
    expectation = 1.9
    _heights, _starts = np.array([0.3, 0.02, 0.68]), np.array([0.0, 0.3, 0.32])

    def to_dict(self):
        return {"family": self.family}

    def to_text(self):
        return self.family

    def _cdf(self, c):
        cell = np.clip(c, 0.0, 2.999999).astype(int)
        return self._starts[cell] + self._heights[cell] * (c - cell)

    def _log_pdf(self, c):
        return np.log(self._heights[np.clip(c, 0.0, 2.999999).astype(int)])

    def _quantile(self, q):
        cell = np.searchsorted(self._starts, q, side="right") - 1
        return cell + (q - self._starts[cell]) / self._heights[cell]

    def _sample(self, n, rng):
        return self._quantile(rng.random(n))

    def _markup(self, c):
        return self._cdf(c) / np.exp(self._log_pdf(c))


def test_a_prior_of_ones_own_is_ironed_unless_it_says_that_it_is_regular():
    prior = TwoPeaks()
    z = np.linspace(0.0, 3.0, 3001)
    assert (np.diff(prior.raw_virtual_cost(z)) < -1.0).any()
    assert not prior.is_regular
    assert prior.flat_parts
    assert (np.diff(prior.virtual_cost(z)) >= 0.0).all()


@pytest.mark.parametrize("setting", ["central", "local"])
def test_under_a_prior_of_ones_own_with_two_peaks_no_misreport_pays(setting):
    market = Market(prior=TwoPeaks(), setting=setting, variance=0.1, buyer_weight=20.0, user_weight=0.0)
    for truth in (0.9, 1.5, 2.1):
        outcomes = {said: market.acquire([1.2, 2.2, said]) for said in (truth, 0.5, 0.99, 1.01, 1.9, 2.01, 2.4)}
        gains = {said: found.payments[2] - truth * found.privacy_loss[2] for said, found in outcomes.items()}
        error = max(found.incentive_error for found in outcomes.values())
        assert max(gains.values()) <= gains[truth] + error
        assert gains[truth] >= -error
