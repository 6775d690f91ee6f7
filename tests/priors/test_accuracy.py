"""Closed-form families against mpmath: virtual costs to 1e-9 over the whole support, deep tails included.

References use formulas of their own: positive series for the incomplete gamma and beta functions, complementary error
functions in high precision, direct sums for mixtures.
"""

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from hushbid.priors import Beta, Exponential, Gamma, LogNormal, Mixture, TruncatedNormal, Uniform
from tests.extent import each

ACCURACY = 1e-9
LARGEST, SMALLEST = mpf(1.79e308), mpf(2.3e-308)


@pytest.fixture(autouse=True)
def _many_digits():
    with mp.workdps(50):
        yield


def uniform_markup(prior, c):
    return c - mpf(prior.low)


def exponential_markup(prior, c):
    return mpf(prior.scale) * mp.expm1(c / mpf(prior.scale))


def lognormal_markup(prior, c):
    if c == 0:
        return mpf(0)
    z = (mp.log(c) - mpf(prior.mean_log)) / mpf(prior.sd_log)
    return c * mpf(prior.sd_log) * normal_mass_over_density(None, z)


def truncated_normal_markup(prior, c):
    mean, sd = mpf(prior.mean), mpf(prior.sd)
    width, z = (c - mpf(prior.low)) / sd, (c - mean) / sd
    if width < mpf(10) ** -20 and abs(z * width) < mpf(10) ** -20:
        return sd * width
    with mp.workdps(80):
        return sd * normal_mass_over_density((mpf(prior.low) - mean) / sd, z)


def normal_mass_over_density(left, z):
    """(Φ(z) − Φ(left))/φ(z), the tails measured from whichever side is smaller."""
    root = mp.sqrt(2)

    def upper(t):
        return mp.erfc(t / root) / 2 if t < 10**8 else mpf(0)

    if left is not None and left > 0:
        mass = upper(left) - upper(z)
    else:
        mass = upper(-z) - (0 if left is None else upper(-left))
    return mass * mp.sqrt(2 * mp.pi) * mp.exp(z * z / 2)


def gamma_markup(prior, c):
    shape, x = mpf(prior.shape), c / mpf(prior.scale)
    if x < shape + 5 * mp.sqrt(shape) + 20:
        return mpf(prior.scale) * x / shape * positive_series(lambda n: x / (shape + n + 1))
    mass = 1 - mp.gammainc(shape, x, mp.inf, regularized=True)
    return mpf(prior.scale) * mass * mp.exp(x + mp.loggamma(shape) - (shape - 1) * mp.log(x))


def beta_markup(prior, c):
    a, b, width = mpf(prior.a), mpf(prior.b), mpf(prior.high) - mpf(prior.low)
    z, y = (c - mpf(prior.low)) / width, (mpf(prior.high) - c) / width
    if y == 0:
        return mp.inf if b > 1 else width / a if b == 1 else mpf(0)
    if z <= a / (a + b):
        return width * z * y / a * positive_series(lambda n: (a + b + n) / (a + 1 + n) * z)
    density = mp.exp(a * mp.log(z) + b * mp.log(y) - mp.log(mp.beta(a, b)))
    beyond = density / b * positive_series(lambda n: (a + b + n) / (b + 1 + n) * y)
    return width * z * y * (1 - beyond) / density


def positive_series(ratio):
    """1 + r(0) + r(0)r(1) + …"""
    total = term = mpf(1)
    n = 0
    while term > total * mpf(10) ** -40:
        term *= ratio(n)
        total += term
        n += 1
    return total


MARKUPS = {
    Uniform: uniform_markup,
    Exponential: exponential_markup,
    LogNormal: lognormal_markup,
    Gamma: gamma_markup,
    Beta: beta_markup,
    TruncatedNormal: truncated_normal_markup,
}


def points_of(prior):
    """The ends of the support, its body and both tails as far as floats go."""
    low, high = prior.support
    spread = prior.quantile(0.9) - prior.quantile(0.1)
    middle = prior.quantile(0.5)
    points = [
        prior.quantile(
            np.concatenate([np.logspace(-300, -1, 14), np.linspace(0.1, 0.9, 9), 1 - np.logspace(-15, -1, 8)])
        ),
        low + spread * np.logspace(-290, 3, 14),
        middle + spread * np.linspace(-20, 20, 11),
        [low],
    ]
    if high < np.inf:
        points += [[high], high - (high - low) * np.logspace(-16, -1, 9)]
    merged = np.unique(np.concatenate(points))
    return merged[(merged >= low) & (merged <= high)]


def worst_error(prior, points, markup):
    """The largest relative error of the raw virtual cost; infinite and subnormal ones are asserted or left out."""
    worst = 0.0
    for c, found in zip(points.tolist(), prior.raw_virtual_cost(points).tolist(), strict=True):
        exact = mpf(c) + markup(prior, mpf(c))
        if exact > LARGEST:
            assert found == np.inf, (c, found)
        elif exact > SMALLEST:
            assert np.isfinite(found), (c, found)
            worst = max(worst, float(abs(mpf(found) / exact - 1)))
    return worst


@pytest.mark.parametrize(
    "prior",
    [
        Uniform(1, 2),
        Uniform(0, 1e-200),
        Exponential(0.5),
        Exponential(1e-300),
        Exponential(1e200),
        LogNormal(0, 1),
        LogNormal(3, 0.001),
        LogNormal(1, 1e-7),
        LogNormal(-600, 2),
        LogNormal(0, 20),
        Gamma(0.001, 1),
        Gamma(0.5, 2),
        Gamma(1, 1),
        Gamma(2.5, 1e-5),
        Gamma(40, 1),
        Gamma(2000, 3),
        Beta(2, 3),
        Beta(0.5, 1),
        Beta(0.5, 2),
        Beta(0.01, 5),
        Beta(2, 1.01, 0.3, 0.9),
        Beta(50, 3, 1, 2),
        Beta(5, 400, 0, 10),
        Beta(500, 800),
        Beta(2, 0.5),
        Beta(0.3, 0.2, 0.3, 0.9),
        TruncatedNormal(1, 0.5, 0, 3),
        TruncatedNormal(1.5, 100, 1, 2),
        TruncatedNormal(0, 1, 0, np.inf),
        TruncatedNormal(-1000, 1, 0, 3),
        TruncatedNormal(-1e6, 1, 0, 1e-3),
        TruncatedNormal(1000, 1, 0, 3),
        TruncatedNormal(1e6, 1, 0, 2e6),
        TruncatedNormal(5, 1, 0, 100),
        TruncatedNormal(2, 1e-100, 1, 3),
    ],
    ids=str,
)
def test_virtual_cost_is_accurate_over_the_whole_support(prior):
    assert worst_error(prior, points_of(prior), MARKUPS[type(prior)]) < ACCURACY


@pytest.mark.parametrize("shape", [1e4, 1e6])
def test_virtual_cost_is_accurate_for_a_gamma_prior_close_to_a_normal_one(shape):
    prior = Gamma(shape, 1)
    points = shape + np.sqrt(shape) * np.linspace(-30, 30, 7)
    assert worst_error(prior, points, gamma_markup) < ACCURACY


def test_virtual_cost_of_a_mixture_is_accurate_deep_in_both_tails_of_its_components():
    prior = Mixture([LogNormal(0, 0.2), LogNormal(1, 0.1)], [0.25, 0.75])

    def markup(_, c):
        mass = density = mpf(0)
        for component, weight in zip(prior.components, (mpf(1) / 4, mpf(3) / 4), strict=True):
            mean, sd = mpf(component.mean_log), mpf(component.sd_log)
            z = (mp.log(c) - mean) / sd
            mass += weight * mp.erfc(-z / mp.sqrt(2)) / 2
            density += weight * mp.npdf(z) / (sd * c)
        return mass / density

    points = np.exp(np.linspace(-7, 6, 40))
    assert worst_error(prior, points, markup) < ACCURACY


@pytest.mark.parametrize(
    ("mean", "sd", "low", "high"),
    [
        (1, 0.5, 0, 3),
        (0, 1, 0, np.inf),
        (-2.9, 1, 0, np.inf),
        (-3.1, 1, 0, np.inf),
        (-1000, 1, 0, np.inf),
        (-1000, 1, 0, 1e-4),
        (5, 1e9, 1, 2),
        (50, 2, 1, 3),
        (1.5, 1, 1, 3),
    ],
)
def test_expectation_of_a_truncated_normal_is_accurate(mean, sd, low, high):
    width = min(mpf(high) - low, 60 * mpf(sd) / max(1, (low - mpf(mean)) / sd))
    ends = [low + width * k / 8 for k in range(9)]
    shift = max(mpf(low) - mean, mean - mpf(high), 0)

    def density(c):
        return mp.exp((shift**2 - (c - mean) ** 2) / (2 * mpf(sd) ** 2))

    exact = mp.quad(lambda c: c * density(c), ends) / mp.quad(density, ends)
    assert TruncatedNormal(mean, sd, low, high).expectation == pytest.approx(float(exact), rel=1e-10)


@each("level", [1e-300, 1e-20, 1e-3, 0.3, 0.5, 0.9, 1 - 1e-6, 1 - 2.0**-50])
@each(
    "prior",
    [
        TruncatedNormal(1, 0.5, 0, 3),
        TruncatedNormal(-50, 1, 0, 3),
        TruncatedNormal(50, 1, 0, 3),
        TruncatedNormal(0, 1, 0, np.inf),
        TruncatedNormal(-7, 2, 0, np.inf),
    ],
)
def test_quantile_of_a_truncated_normal_is_accurate(prior, level):
    with mp.workdps(400):
        root = mp.sqrt(2)
        left, right = ((mpf(end) - mpf(prior.mean)) / mpf(prior.sd) for end in prior.support)

        def mass(start, end):
            if end < 0:
                start, end = -end, -start
            return mp.erfc(start / root) / 2 - (mp.erfc(end / root) / 2 if mp.isfinite(end) else 0)

        z = (mpf(prior.quantile(level)) - mpf(prior.mean)) / mpf(prior.sd)
        total = mass(left, right)
        found = mass(left, z) / total
        # one ulp of the quantile moves its level by this much, which no float can avoid
        slack = mp.npdf(z) / total * abs(mpf(prior.quantile(level))) / mpf(prior.sd) * mpf(2) ** -51
        assert abs(found - mpf(level)) <= 1e-10 * min(mpf(level), 1 - mpf(level)) + 4 * slack


@each(
    "prior",
    [
        Gamma(0.3, 1),
        Gamma(30, 2),
        Beta(2, 3),
        Beta(0.5, 0.5),
        Beta(2.5, 2.5),
        Beta(100, 1),
        Beta(9, 0.1),
        Beta(40, 70),
        LogNormal(0, 1),
        Exponential(3),
        Mixture([Beta(2.5, 2.5), Gamma(30, 2)], [1, 2]),
    ],
)
def test_quantile_and_cdf_are_inverse(prior):
    levels = np.concatenate([np.logspace(-200, -2, 40), np.linspace(0.01, 0.99, 99)])
    quantiles = prior.quantile(levels)
    named = quantiles > 1e-300
    one_ulp = prior.pdf(quantiles) * np.spacing(quantiles)
    error = np.abs(prior.cdf(quantiles) - levels)
    assert np.all((error <= 1e-9 * levels + 2 * one_ulp)[named])
    assert np.sum(named) > 100


@each(
    "prior",
    [
        Uniform(1, 3),
        Exponential(2),
        LogNormal(0.2, 0.6),
        Gamma(3.5, 0.4),
        Beta(2, 3, 1, 4),
        TruncatedNormal(1, 0.5, 0, 3),
        TruncatedNormal(-30, 1, 0, 3),
        TruncatedNormal(5, 1e9, 1, 2),
        Mixture([Gamma(2, 1), Beta(2, 3)], [1, 3]),
    ],
)
def test_density_and_expectation_agree_with_the_distribution_function(prior):
    levels = np.linspace(0.02, 0.98, 33)
    c = prior.quantile(levels)
    step = 1e-5 * (c - prior.support[0])
    slope = (prior.cdf(c + step) - prior.cdf(c - step)) / (2 * step)
    assert np.allclose(prior.pdf(c), slope, rtol=1e-4)
    fine = (np.arange(20_000) + 0.5) / 20_000
    assert prior.expectation == pytest.approx(np.mean(prior.quantile(fine)), rel=5e-3)
