"""SciPy distributions as priors: any continuous one on [0, inf), without its warnings and weak tails."""

import numpy as np
import pytest
from scipy import stats

from hushbid.errors import PriorError
from hushbid.priors import (
    Beta,
    Exponential,
    Gamma,
    LogNormal,
    Mixture,
    TruncatedNormal,
    Uniform,
    from_scipy,
    parse_prior,
    prior_from_dict,
)
from tests.extent import each

FROZEN = [
    stats.weibull_min(2, scale=3),
    stats.weibull_min(c=0.5, loc=1),
    stats.pareto(3),
    stats.pareto(0.8),
    stats.lomax(1.5, scale=2),
    stats.halfcauchy(),
    stats.invgamma(3),
    stats.invgauss(0.5),
    stats.foldnorm(2),
    stats.burr12(10, 4),
    stats.chi(3),
    stats.levy(),
    stats.triang(0.3),
    stats.arcsine(),
    stats.semicircular(loc=1),
    stats.loguniform(1, 10),
    stats.tukeylambda(3, loc=1 / 3),
]


@each("frozen", FROZEN)
def test_any_continuous_distribution_on_the_half_line_is_a_prior(frozen):
    prior = from_scipy(frozen)
    levels = np.linspace(0, 1, 801)
    c = prior.quantile(levels)
    cost = prior.virtual_cost(c)
    assert np.all(cost[1:] >= cost[:-1])
    assert np.all(cost >= c)
    inside = slice(1, -1)
    assert np.allclose(prior.cdf(c[inside]), levels[inside], rtol=1e-8)
    assert np.allclose(prior.pdf(c[inside]), frozen.pdf(c[inside]))
    raw = c[inside] + frozen.cdf(c[inside]) / frozen.pdf(c[inside])
    assert np.allclose(prior.raw_virtual_cost(c[inside]), raw, rtol=1e-9)
    assert prior.support == pytest.approx(frozen.support())


@each("frozen", FROZEN)
def test_forms_read_back_by_name_shapes_location_and_scale(frozen):
    prior = from_scipy(frozen)
    assert prior_from_dict(prior.to_dict()) == prior
    assert parse_prior(prior.to_text()) == prior
    assert hash(parse_prior(prior.to_text())) == hash(prior)


@pytest.mark.parametrize("frozen", [stats.halfcauchy(), stats.invgauss(0.5), stats.burr12(10, 4), stats.foldnorm(2)])
def test_the_bottom_of_the_support_is_smooth_where_scipy_has_no_digits_left(frozen):
    prior = from_scipy(frozen)
    c = np.geomspace(1e-300, prior.quantile(0.01), 5000)
    cost = prior.virtual_cost(c)
    assert np.all(np.diff(cost) >= 0)
    assert np.all((cost >= c) & (cost <= 2.1 * c))


@each(
    ("frozen", "prior"),
    [
        (stats.uniform(1, 2), Uniform(1, 3)),
        (stats.expon(scale=2), Exponential(2)),
        (stats.lognorm(0.5, scale=1), LogNormal(0, 0.5)),
        (stats.gamma(2, scale=0.5), Gamma(2, 0.5)),
        (stats.beta(2, 3, loc=1, scale=4), Beta(2, 3, 1, 5)),
        (stats.truncnorm(-2, 4, loc=1, scale=0.5), TruncatedNormal(1, 0.5, 0, 3)),
    ],
)
def test_a_distribution_we_know_in_closed_form_becomes_that_family(frozen, prior):
    assert from_scipy(frozen) == prior
    c = prior.quantile(np.linspace(0.01, 0.99, 50))
    assert np.allclose(prior.cdf(c), frozen.cdf(c))
    assert np.allclose(prior.pdf(c), frozen.pdf(c))
    assert prior.expectation == pytest.approx(frozen.mean())


def test_a_low_end_that_rounding_puts_just_below_zero_is_zero():
    frozen = stats.truncnorm((0 - 0.3) / 0.7, np.inf, loc=0.3, scale=0.7)
    assert from_scipy(frozen).support[0] >= 0.0
    assert from_scipy(stats.weibull_min(2, loc=-1e-17)).support[0] == 0.0
    assert from_scipy(stats.uniform(loc=-1e-17, scale=2)) == Uniform(0, 2)


def test_shifted_families_keep_their_location():
    prior = from_scipy(stats.expon(loc=1, scale=2))
    assert prior.support == (1.0, np.inf)
    c = 1 + np.array([0.0, 0.5, 3.0])
    assert np.allclose(prior.virtual_cost(c), c + 2 * np.expm1((c - 1) / 2), rtol=1e-11)


def test_a_distribution_without_quantiles_of_its_own_is_searched_for_them_all_at_once():
    prior = from_scipy(stats.foldnorm(2))
    levels = np.linspace(0.001, 0.999, 20_000)
    assert np.allclose(prior.cdf(prior.quantile(levels)), levels, rtol=1e-10)


def test_scipy_priors_mix_with_others():
    prior = Mixture([from_scipy(stats.weibull_min(8)), Uniform(3, 4)], [0.5, 0.5])
    assert not prior.is_regular
    assert parse_prior(prior.to_text()) == prior


class _Custom(stats.rv_continuous):
    def _pdf(self, x):
        return 2 * x

    def _cdf(self, x):
        return x * x


def test_a_distribution_of_ones_own_works_but_cannot_be_written_down():
    prior = from_scipy(_Custom(a=0, b=1, name="custom")())
    assert prior.virtual_cost(0.5) == pytest.approx(0.75)
    assert prior != from_scipy(_Custom(a=0, b=1, name="custom")())
    for write in (prior.to_dict, prior.to_text):
        with pytest.raises(
            PriorError, match=r"only distributions that scipy\.stats names can be written down, got 'custom'"
        ):
            write()


@each(
    ("bad", "message"),
    [
        (stats.weibull_min, "needs a frozen distribution"),
        (3, "needs a frozen distribution .* got 3"),
        (stats.poisson(2), "needs a continuous distribution, got the discrete poisson"),
        (stats.norm(1, 0.1), r"the support must lie in \[0, inf\), got \[-inf, inf\] for norm"),
        (stats.uniform(-1, 3), r"the support must lie in \[0, inf\), got \[-1, 2\] for uniform"),
        (stats.weibull_min(-2), "weibull_min does not allow the parameters"),
        (stats.weibull_min(2, scale=0), "weibull_min does not allow the parameters"),
        (stats.weibull_min([1, 2]), "the parameters of weibull_min must be plain numbers"),
    ],
)
def test_what_is_no_continuous_distribution_on_the_half_line_is_refused(bad, message):
    with pytest.raises(PriorError, match=message):
        from_scipy(bad)


def test_a_density_that_is_noise_where_nobody_is_left_is_not_ironed_there():
    """SciPy's noncentral F flickers between zero and its true size beyond 1e16, where F is one to the last digit."""
    prior = from_scipy(stats.ncf(4, 6, 1))
    assert prior.is_regular
    points = np.array([0.2, 1.0, 3.0])
    assert prior.virtual_cost(points) == pytest.approx(
        points + stats.ncf.cdf(points, 4, 6, 1) / stats.ncf.pdf(points, 4, 6, 1)
    )


def test_a_distribution_that_takes_minutes_to_iron_is_refused_with_a_way_out():
    class Laborious(stats.rv_continuous):
        def _cdf(self, x):
            sum(range(3_000_000))
            return x

    with pytest.raises(PriorError, match=r"laborious takes \d+ ms .* use Empirical"):
        from_scipy(Laborious(a=0.0, b=1.0, name="laborious")())
