"""Different people, different priors: row by row, with errors that name the person's row."""

import json

import numpy as np
import pandas as pd
import pytest

from hushbid.errors import BidError, InputError, PriorError
from hushbid.priors import Empirical, Exponential, Grouped, LogNormal, Mixture, Uniform, prior_from_dict
from tests.extent import each

PRIORS = {"young": Uniform(0, 1), "old": Uniform(1, 2), "rare": Empirical([1, 2, 4]), "none": LogNormal(0, 1)}
LABELS = ["young", "old", "rare", "old", "young"]
GROUPED = Grouped(PRIORS, LABELS)


@each("method", ["cdf", "pdf", "virtual_cost", "raw_virtual_cost", "virtual_cost_inverse", "quantile"])
def test_every_row_is_treated_by_its_own_prior(method):
    values = [0.5, 1.5, 3.0, 1.25, 0.75] if method != "quantile" else [0.5, 0.1, 0.2, 0.9, 1.0]
    expected = [getattr(PRIORS[label], method)(value) for label, value in zip(LABELS, values, strict=True)]
    assert getattr(GROUPED, method)(values).tolist() == expected
    assert getattr(GROUPED, method)(pd.Series(values)).tolist() == expected


def test_groups_list_name_prior_and_rows_of_those_who_are_there():
    assert [(name, prior, rows.tolist()) for name, prior, rows in GROUPED.groups] == [
        ("young", PRIORS["young"], [0, 4]),
        ("old", PRIORS["old"], [1, 3]),
        ("rare", PRIORS["rare"], [2]),
    ]
    assert GROUPED.labels == tuple(LABELS)
    assert GROUPED.priors == PRIORS
    assert len(GROUPED) == 5
    assert GROUPED.prior_of(2) == PRIORS["rare"]


def test_support_and_expectation_are_per_row():
    low, high = GROUPED.support
    assert low.tolist() == [0, 1, 1, 1, 0]
    assert high.tolist() == [1, 2, 4, 2, 1]
    assert GROUPED.expectation.tolist() == [0.5, 1.5, pytest.approx(7 / 3), 1.5, 0.5]


def test_regular_and_affine_if_all_are():
    assert not GROUPED.is_linear
    assert GROUPED.slope is None
    uniforms = Grouped({"a": Uniform(0, 1), "b": Uniform(1, 2)}, ["a", "b"])
    assert uniforms.is_linear
    assert uniforms.slope == 2.0
    bimodal = Mixture([Uniform(0, 1), Uniform(2, 3)], [1, 1])
    assert Grouped({"a": Uniform(0, 1), "b": bimodal}, ["a", "a"]).is_regular
    assert not Grouped({"a": Uniform(0, 1), "b": bimodal}, ["a", "b"]).is_regular


def test_one_draw_per_person_from_her_own_prior():
    labels = np.array(["near", "far"] * 2000)
    prior = Grouped({"near": Exponential(1), "far": Uniform(100, 200)}, labels)
    draws = prior.sample(rng=np.random.default_rng(5))
    assert draws.shape == (4000,)
    assert np.all(draws[1::2] >= 100)
    assert np.mean(draws[::2]) == pytest.approx(1, abs=0.1)
    assert draws.tolist() == prior.sample(4000, rng=np.random.default_rng(5)).tolist()
    with pytest.raises(PriorError, match="n must be the number of labels, 4000, got n=3"):
        prior.sample(3, rng=np.random.default_rng(5))
    with pytest.raises(InputError, match="Generator"):
        prior.sample(rng="5")


def test_dict_form_reads_back_through_json():
    form = json.loads(json.dumps(GROUPED.to_dict()))
    assert prior_from_dict(form) == GROUPED
    assert hash(prior_from_dict(form)) == hash(GROUPED)
    assert Grouped(PRIORS, LABELS[1:]) != GROUPED
    assert GROUPED != "grouped"


@each("labels", [tuple(LABELS), np.array(LABELS), pd.Series(LABELS), pd.Categorical(LABELS), iter(LABELS)])
def test_labels_come_in_any_vector(labels):
    assert Grouped(PRIORS, labels) == GROUPED


def test_repr_counts_people():
    assert repr(Grouped({"a": Uniform(0, 1)}, ["a", "a"])) == "Grouped({'a': Uniform(low=0.0, high=1.0) × 2})"


@each(
    ("priors", "labels", "message"),
    [
        ({}, [], "priors must be a dict of at least one name and prior"),
        ([Uniform(0, 1)], ["a"], "priors must be a dict"),
        ({"a": "uniform:0,1"}, ["a"], "must map text to priors, but 'a' is mapped to str"),
        ({1: Uniform(0, 1)}, [1], "must map text to priors, but 1 is mapped to Uniform"),
        ({"a": Uniform(0, 1)}, ["a", "b", "a"], "labels must be among 'a', but row 1 is not"),
        ({"a": Uniform(0, 1)}, ["a", None, np.nan], r"but rows 1, 2 are not"),
        ({"a": Uniform(0, 1)}, "a", "labels must be one label per person, got the single text 'a'"),
        ({"a": Uniform(0, 1)}, [["a"]], "labels must be a vector"),
        ({"a": Uniform(0, 1)}, 3, "labels must be a vector of names, got 3"),
    ],
)
def test_priors_and_labels_that_do_not_fit_are_refused(priors, labels, message):
    with pytest.raises(PriorError, match=message):
        Grouped(priors, labels)


@each("method", ["cdf", "pdf", "quantile", "virtual_cost", "raw_virtual_cost", "virtual_cost_inverse"])
def test_a_vector_of_the_wrong_length_is_refused(method):
    for wrong in ([0.5] * 4, [[0.5] * 5], 0.5):
        with pytest.raises(InputError, match=r"one entry per label, 5 in all, got shape"):
            getattr(GROUPED, method)(wrong)


def test_bad_bids_are_named_by_the_persons_own_row_and_support():
    with pytest.raises(BidError, match=r"but row 3 does: the support is \[1, 2\]"):
        GROUPED.virtual_cost([0.5, 1.5, 0.5, 0.5, 0.75])
    with pytest.raises(BidError, match="but row 4 is not"):
        GROUPED.virtual_cost([0.5, 1.5, 0.5, 1.5, np.nan])


def test_quantile_levels_and_nan_are_named_by_the_persons_own_row():
    with pytest.raises(InputError, match=r"\[0, 1\], but row 3 does not"):
        GROUPED.quantile([0.5, 0.5, 0.5, 1.5, 0.5])
    with pytest.raises(InputError, match="must not be NaN, but row 3 is"):
        GROUPED.cdf([0.5, 0.5, 0.5, np.nan, 0.5])


def test_nobody_is_allowed():
    prior = Grouped({"a": Uniform(0, 1)}, [])
    assert prior.virtual_cost([]).shape == (0,)
    assert prior.groups == ()
    assert prior.is_regular
    assert not prior.is_linear
