"""Text and dict forms: the grammar, and one clear sentence for everything outside it."""

import numpy as np
import pytest

from hushbid.errors import PriorError
from hushbid.priors import (
    Beta,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Mixture,
    TruncatedNormal,
    Uniform,
    parse_prior,
    prior_from_dict,
)
from tests.extent import each


@each(
    ("text", "prior"),
    [
        ("uniform:1,2", Uniform(1, 2)),
        ("exponential:0.5", Exponential(0.5)),
        ("lognormal:0,1", LogNormal(0, 1)),
        ("gamma:2,0.5", Gamma(2, 0.5)),
        ("beta:2,3", Beta(2, 3)),
        ("beta:2,3,1,5", Beta(2, 3, 1, 5)),
        ("truncnormal:1,0.5,0,3", TruncatedNormal(1, 0.5, 0, 3)),
        ("truncnormal:-1,0.5,0,inf", TruncatedNormal(-1, 0.5, 0, np.inf)),
        ("empirical:1,2,2,4", Empirical([1, 2, 2, 4])),
        ("empirical:2*1,0.5*3", Empirical([1, 3], [2, 0.5])),
        ("mixture:0.3*uniform:0,1+0.7*uniform:2,3", Mixture([Uniform(0, 1), Uniform(2, 3)], [0.3, 0.7])),
        ("mixture: 1e+2 * uniform:0,1e+3 + 1*gamma:2,1", Mixture([Uniform(0, 1000), Gamma(2, 1)], [100, 1])),
        (
            "mixture:1*(mixture:1*uniform:0,1+2*exponential:3)+1*beta:2,3",
            Mixture([Mixture([Uniform(0, 1), Exponential(3)], [1, 2]), Beta(2, 3)], [1, 1]),
        ),
    ],
)
def test_a_text_describes_a_prior(text, prior):
    assert parse_prior(text) == prior


@each(
    ("prior", "text"),
    [
        (Uniform(1, 2), "uniform:1,2"),
        (Exponential(1e30), "exponential:1e30"),
        (Exponential(0.1), "exponential:0.1"),
        (TruncatedNormal(-1, 1, 0, np.inf), "truncnormal:-1,1,0,inf"),
        (Empirical([3, 1]), "empirical:1,3"),
        (Mixture([Uniform(0, 1), Uniform(2, 3)], [0.3, 0.7]), "mixture:0.3*uniform:0,1+0.7*uniform:2,3"),
    ],
)
def test_texts_are_short(prior, text):
    assert prior.to_text() == text


def test_every_float_survives_both_forms():
    rng = np.random.default_rng(3)
    for scale in np.exp(rng.uniform(-700, 700, 200)):
        assert parse_prior(Exponential(scale).to_text()) == Exponential(scale)
        assert prior_from_dict(Exponential(scale).to_dict()) == Exponential(scale)


@each(
    ("text", "message"),
    [
        ("", "the family one of uniform, exponential, lognormal, gamma, beta, truncnormal, mixture, empirical, scipy"),
        ("uniform", "as in 'uniform:1,2'"),
        ("normal:0,1", "the family one of uniform"),
        ("uniform:1", "must read uniform:low,high, got 'uniform:1'"),
        ("uniform:1,2,3", "must read uniform:low,high"),
        ("beta:1,2,3,4,5", "must read beta:a,b,low,high"),
        ("uniform:1,b", "a number was expected in place of 'b' in the prior 'uniform:1,b'"),
        ("uniform:2,1", "high must be a finite number above low=2, got high=1"),
        ("exponential:nan", "scale must be a finite number above 0, got scale=nan"),
        (
            "empirical:",
            r"samples of a prior of family 'empirical' must be numbers, or weight\*number, but row 0 is not",
        ),
        ("empirical:1,x*2", "but row 1 is not"),
        ("mixture:uniform:0,1", r"must read weight\*prior, got 'uniform:0,1'"),
        ("mixture:1*(uniform:0,1", "parentheses must be balanced"),
        ("mixture:1*uniform:0,1)", "parentheses must be balanced"),
        ("mixture:1*uniform:0,1+", r"must read weight\*prior, got ''"),
        ("mixture:1*empirical:1,2", "with a density, but component 0 is Empirical"),
        ("scipy:nosuch,1", "must name a continuous distribution of scipy.stats, got 'nosuch'"),
        ("scipy:poisson,1", "must name a continuous distribution of scipy.stats, got 'poisson'"),
        ("scipy:weibull_min,scale=2", r"needs 1 shapes \(c\), got 0"),
        ("scipy:weibull_min,2,size=3", "takes shapes, then loc= and scale="),
        ("scipy:norm", r"the support must lie in \[0, inf\)"),
    ],
)
def test_a_text_outside_the_grammar_is_refused_in_one_sentence(text, message):
    with pytest.raises(PriorError, match=message) as caught:
        parse_prior(text)
    assert "\n" not in str(caught.value)


@each(
    "text",
    [
        "empirical:1.25,3.75x",
        "emprical:1.25,3.75",
        "kde:0.5,1.25,3.75,",
        "kde:x,1.25,3.75",
        "mixture:kde:0.5,1.25,3.75",
        "mixture:x*kde:0.5,1.25,3.75",
        "mixture:1*(kde:0.5,1.25,3.75",
        "mixture:1*kde:0.5,1.25,-3.75",
    ],
)
def test_no_message_about_a_text_shows_the_values_of_a_sample(text):
    with pytest.raises(PriorError) as caught:
        parse_prior(text)
    assert "1.25" not in str(caught.value)
    assert "3.75" not in str(caught.value)


@each(
    ("form", "message"),
    [
        ({}, "family must be one of uniform, .*, grouped, got family=None"),
        ({"family": "normal"}, "got family='normal'"),
        ({"family": ["uniform"]}, "family must be one of"),
        ({"family": "uniform", "low": 1}, "must hold low, high, got low"),
        ({"family": "uniform", "low": 1, "high": 2, "mean": 3}, "must hold low, high, got high, low, mean"),
        ({"family": "uniform", "low": "1", "high": 2}, "low must be a finite number of at least 0, got low='1'"),
        ({"family": "exponential", "scale": "inf"}, "got scale=inf"),
        ({"family": "empirical", "values": [1]}, "must hold values, weights, got values"),
        ({"family": "mixture", "components": [{}], "weights": [1]}, "got family=None"),
        ({"family": "mixture", "components": 3, "weights": [1]}, "components must be a list of dicts, got 3"),
        ({"family": "scipy", "name": 3, "shapes": [], "loc": 0, "scale": 1}, "continuous distribution .* got 3"),
        ({"family": "scipy", "name": "expon", "shapes": 2, "loc": 0, "scale": 1}, "shapes must be a list .* got 2"),
        ({"family": "scipy", "name": "pareto", "shapes": ["b"], "loc": 0, "scale": 1}, "b must be a number, got b='b'"),
        ({"family": "scipy", "name": "expon", "shapes": [], "loc": None, "scale": 1}, "loc must be a finite number"),
        ({"family": "scipy", "name": "expon", "shapes": [], "loc": 0, "scale": 0}, "scale must be a finite .* above 0"),
        ({"family": "grouped", "priors": [], "labels": []}, "priors must be a dict .* got \\[\\]"),
        ("uniform:1,2", "must be a dict, got str"),
        (None, "must be a dict, got NoneType"),
    ],
)
def test_a_dict_that_describes_no_prior_is_refused_in_one_sentence(form, message):
    with pytest.raises(PriorError, match=message) as caught:
        prior_from_dict(form)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [None, 3, b"uniform:1,2", ["uniform:1,2"]])
def test_what_is_not_text_is_refused(bad):
    with pytest.raises(PriorError, match="must be text such as 'uniform:1,2', got"):
        parse_prior(bad)
