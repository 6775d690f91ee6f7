"""What every prior promises, whatever its family: shapes, ends of the support, round trips, errors."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import hushbid
from hushbid.errors import BidError, InputError, PriorError
from hushbid.priors import (
    Beta,
    Empirical,
    Exponential,
    Gamma,
    Grouped,
    LogNormal,
    Mixture,
    TruncatedNormal,
    Uniform,
    from_scipy,
    parse_prior,
    prior_from_dict,
)
from tests.extent import each

CONTINUOUS = [
    Uniform(1, 2),
    Exponential(0.5),
    LogNormal(0, 1),
    Gamma(2, 0.5),
    Beta(2, 3, 1, 2),
    Beta(2, 0.5),
    TruncatedNormal(1, 0.5, 0, 3),
    TruncatedNormal(1, 0.5, 0.25, np.inf),
    Mixture([Uniform(1, 2), Uniform(3, 4)], [0.3, 0.7]),
    Mixture([LogNormal(0, 0.2), Mixture([Gamma(2, 1e-20), Exponential(5)], [1, 2])], [0.25, 2]),
    from_scipy(stats.weibull_min(2, loc=1, scale=3)),
]
PRIORS = [*CONTINUOUS, Empirical([1, 2, 2, 4]), Empirical([0.1, 0.7, 3e-9], weights=[0.5, 0.25, 1 / 3])]
every_prior = each("prior", PRIORS)
every_continuous_prior = each("prior", CONTINUOUS)


@every_prior
def test_dict_form_reads_back_as_the_same_prior_through_json(prior):
    assert prior_from_dict(json.loads(json.dumps(prior.to_dict(), allow_nan=False))) == prior


@every_prior
def test_text_form_reads_back_as_the_same_prior(prior):
    assert parse_prior(prior.to_text()) == prior
    assert parse_prior(f"  {prior.to_text()} ") == prior


@every_prior
def test_equal_priors_have_equal_hashes_and_survive_pickling(prior):
    prior.virtual_cost(prior.support[0])
    copy = pickle.loads(pickle.dumps(prior))
    assert copy == prior
    assert hash(copy) == hash(prior)
    assert prior not in [other for other in PRIORS if other is not prior]


@every_prior
@each("method", ["cdf", "pdf", "quantile", "virtual_cost", "raw_virtual_cost", "virtual_cost_inverse"])
def test_a_number_gives_a_float_and_any_array_its_own_shape(prior, method):
    function = getattr(prior, method)
    values = prior.quantile([0.2, 0.3, 0.6, 0.9]) if method != "quantile" else np.array([0.2, 0.3, 0.6, 0.9])
    expected = function(values)
    assert expected.dtype == np.float64
    assert [function(float(value)) for value in values] == expected.tolist()
    assert isinstance(function(float(values[0])), float)
    assert function(values.reshape(2, 2)).tolist() == expected.reshape(2, 2).tolist()
    for other in (
        values.tolist(),
        tuple(values),
        pd.Series(values),
        pl.Series(values),
        values.astype(object),
        values[::-1][::-1],
    ):
        assert function(other).tolist() == expected.tolist()
    assert function([]).shape == (0,)


@every_prior
def test_integers_are_bids_too(prior):
    bids = np.array([4, 3])
    assert prior.virtual_cost(bids).tolist() == prior.virtual_cost([4.0, 3.0]).tolist()
    assert bids.dtype.kind == "i"


@every_continuous_prior
def test_at_the_low_end_the_virtual_cost_is_the_low_end(prior):
    low = prior.support[0]
    assert prior.virtual_cost(low) == prior.raw_virtual_cost(low) == low
    assert prior.cdf(low) == 0.0


@every_prior
def test_above_the_support_the_virtual_cost_is_infinite(prior):
    high = prior.support[1]
    above = [np.nextafter(high, np.inf), 2 * high, np.inf] if high < np.inf else [np.inf]
    assert np.all(prior.virtual_cost(above) == np.inf)
    assert np.all(prior.raw_virtual_cost(above) == np.inf)
    assert np.all(prior.cdf(above) == 1.0)
    assert np.all(prior.pdf(above) == 0.0)


@every_continuous_prior
def test_a_bid_below_the_support_is_refused_by_row_and_support(prior):
    low = prior.support[0]
    if low == 0.0:
        with pytest.raises(BidError, match=r"row 1 does: the support is \[0, "):
            prior.virtual_cost([1.0, -1e-9])
        return
    for method in (prior.virtual_cost, prior.raw_virtual_cost):
        with pytest.raises(BidError, match=rf"row 2 does: the support is \[{low:g}, ") as caught:
            method([low, low + 1, np.nextafter(low, 0)])
        assert "\n" not in str(caught.value)


@every_prior
@each("bad", [-1.0, -np.inf])
def test_a_negative_bid_is_refused_by_row_and_support_and_not_by_value(prior, bad):
    low, high = prior.support
    with pytest.raises(BidError, match=r"rows 1, 3 do: the support is ") as caught:
        prior.virtual_cost([4.0, bad, 4.0, bad])
    assert str(caught.value).endswith(f"[{low:.12g}, {high:.12g}]" if high < np.inf else f"[{low:.12g}, inf)")
    assert str(bad) not in str(caught.value)


@every_prior
def test_a_bid_that_is_no_number_is_refused_by_row(prior):
    with pytest.raises(BidError, match=r"^bids must be numbers, but rows 1, 3 are not\.$"):
        prior.virtual_cost([4.0, np.nan, 4.0, np.nan])


def test_many_bad_rows_are_counted_not_listed():
    with pytest.raises(BidError, match=r"rows 0, 1, 2, 3, 4 and 995 more do"):
        Uniform(1, 2).virtual_cost(np.zeros(1000))


@every_prior
@each("bad", ["1.5", ["1", "2"], [1 + 2j], object(), [[1, 2], [3]]])
def test_what_is_not_a_number_is_refused(prior, bad):
    with pytest.raises(BidError, match="bids must be numbers, got"):
        prior.virtual_cost(bad)


@every_prior
def test_quantile_levels_outside_zero_and_one_are_refused(prior):
    for bad in (-0.1, 1.1, np.nan):
        with pytest.raises(InputError, match=r"\[0, 1\], but row 1 does not"):
            prior.quantile([0.5, bad])


@every_prior
def test_nan_is_refused_everywhere(prior):
    for method in (prior.cdf, prior.pdf, prior.virtual_cost_inverse):
        with pytest.raises(InputError, match="must not be NaN, but row 0 is"):
            method(np.nan)


@every_prior
def test_quantiles_run_from_one_end_of_the_support_to_the_other(prior):
    low, high = prior.support
    assert prior.quantile(1.0) == high
    assert prior.quantile(0.0) == low
    assert np.all(np.diff(prior.quantile(np.linspace(0, 0.999, 500))) >= 0)


@every_prior
def test_samples_follow_the_distribution_and_the_generator(prior):
    draws = prior.sample(20_000, rng=np.random.default_rng(7))
    assert draws.tolist() == prior.sample(20_000, rng=np.random.default_rng(7)).tolist()
    levels = np.linspace(0.05, 0.95, 19)
    shares = np.mean(draws[:, None] <= prior.quantile(levels), axis=0)
    assert np.all(np.abs(shares - prior.cdf(prior.quantile(levels))) < 0.015)
    low, high = prior.support
    assert np.all((draws >= low) & (draws <= high))
    assert prior.sample(0, rng=np.random.default_rng(1)).shape == (0,)


def test_a_wrong_scale_would_fail_the_sampling_test():
    draws = Exponential(0.5 * 1.3).sample(20_000, rng=np.random.default_rng(7))
    levels = np.linspace(0.05, 0.95, 19)
    shares = np.mean(draws[:, None] <= Exponential(0.5).quantile(levels), axis=0)
    assert np.max(np.abs(shares - levels)) > 0.05


@every_prior
def test_sampling_needs_a_generator_and_a_count(prior):
    for bad in (None, "5", np.random.RandomState(0)):
        with pytest.raises(InputError, match=r"numpy\.random\.Generator"):
            prior.sample(3, rng=bad)
    for bad in (-1, 2.5, True, "3"):
        with pytest.raises(InputError, match="n must be an integer of at least 0"):
            prior.sample(bad, rng=np.random.default_rng(0))
    with pytest.raises(TypeError):
        prior.sample(3)


@every_continuous_prior
def test_inverse_undoes_the_virtual_cost_where_it_rises(prior):
    c = prior.quantile(np.linspace(0.001, 0.999, 997))
    rising = np.all([(c < left) | (c > right) for left, right, _ in prior.flat_parts] or [c > 0], axis=0)
    assert np.allclose(prior.virtual_cost_inverse(prior.virtual_cost(c[rising])), c[rising], rtol=3e-12)


@every_prior
def test_inverse_is_the_low_end_below_and_the_high_end_above_all_virtual_costs(prior):
    low, high = prior.support
    assert prior.virtual_cost_inverse(np.inf) == high
    assert prior.virtual_cost_inverse([0.0, -1.0, -np.inf]).tolist() == [low] * 3
    if high < np.inf and prior.virtual_cost(high) < np.inf:
        assert prior.virtual_cost_inverse(2 * prior.virtual_cost(high)) == high


def test_only_a_uniform_prior_has_an_affine_virtual_cost():
    assert Uniform(1, 2).is_linear
    assert Uniform(1, 2).slope == 2.0
    assert Uniform(1, 2).virtual_cost_inverse(2.5) == 1.75
    for prior in PRIORS[1:]:
        assert not prior.is_linear
        assert prior.slope is None


def test_deep_tails_give_no_warning_and_no_nan():
    for prior in CONTINUOUS:
        low, high = prior.support
        c = np.concatenate([[low], np.clip(np.geomspace(1e-320, 1e308, 3000), low, high)])
        assert not np.any(np.isnan(prior.virtual_cost(c)))
        assert not np.any(np.isnan(prior.virtual_cost_inverse(c)))
        assert not np.any(np.isnan(prior.cdf(c)))
        assert not np.any(np.isnan(prior.pdf(c)))


@each(
    ("make", "message"),
    [
        (lambda: Uniform(-1, 2), "low must be a finite number of at least 0, got low=-1"),
        (lambda: Uniform(2, 2), "high must be a finite number above low=2, got high=2"),
        (lambda: Uniform(0, np.inf), "high must be a finite number above low=0, got high=inf"),
        (lambda: Uniform("1", 2), "low must be a finite number of at least 0, got low='1'"),
        (lambda: Uniform(True, 2), "got low=True"),
        (lambda: Exponential(0), "scale must be a finite number above 0, got scale=0"),
        (lambda: Exponential(np.nan), "scale must be a finite number above 0, got scale=nan"),
        (lambda: LogNormal(np.inf, 1), "mean_log must be a finite number, got mean_log=inf"),
        (lambda: LogNormal(0, -1), "sd_log must be a finite number above 0, got sd_log=-1"),
        (lambda: Gamma(0, 1), "shape must be a finite number above 0, got shape=0"),
        (lambda: Beta(1, None), "b must be a finite number above 0, got b=None"),
        (lambda: Beta(1, 1, -1, 1), "low must be a finite number of at least 0, got low=-1"),
        (lambda: TruncatedNormal(0, 1, 3, 2), "high must be a number above low=3, got high=2"),
        (lambda: TruncatedNormal(1e300, 1, 0, 1), r"within 1e\+100 standard deviations of the mean, got mean=1e\+300"),
        (lambda: Mixture([], []), "components must be at least one prior, got none"),
        (lambda: Mixture([Uniform(0, 1)], [1, 2]), r"one number per component, got shape \(2,\) for 1 components"),
        (lambda: Mixture([Uniform(0, 1)], [0]), "weights must be finite numbers above 0, but row 0 is not"),
        (lambda: Mixture([Uniform(0, 1), Empirical([1])], [1, 1]), "with a density, but component 1 is Empirical"),
        (lambda: Empirical([]), r"samples must be a vector of at least one number, got shape \(0,\)"),
        (lambda: Empirical([[1, 2]]), r"got shape \(1, 2\)"),
        (lambda: Empirical([1, -2, np.inf]), r"finite numbers of at least 0, but rows 1, 2 are not"),
        (lambda: Empirical([1, 2], [1]), "as many as samples, got 1 weights for 2 samples"),
        (lambda: Empirical([1, 2], [0, 0]), "at least one value with a positive weight"),
        (lambda: Empirical(["a"]), "samples must be numbers, got list"),
    ],
)
def test_parameters_that_are_not_allowed_are_refused_in_one_sentence(make, message):
    with pytest.raises(PriorError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_priors_are_public_and_frozen():
    for name in ("Uniform", "Exponential", "LogNormal", "Gamma", "Beta", "TruncatedNormal", "Mixture", "Empirical"):
        assert getattr(hushbid, name) is getattr(hushbid.priors, name)
    assert hushbid.Grouped is Grouped
    with pytest.raises(AttributeError):
        Uniform(1, 2).low = 0.5
    with pytest.raises(ValueError, match="read-only"):
        Empirical([1, 2]).values[0] = 5


def test_closed_form_priors_do_not_import_scipy_stats():
    code = (
        "import sys; from hushbid.priors import *;"
        "parse_prior('mixture:0.5*gamma:2,1+0.5*beta:2,3').virtual_cost([0.5]);"
        "Empirical([1, 2]).virtual_cost([1]); sys.exit('scipy.stats' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
