"""The normal interval: it covers as stated where many people weigh little, not where few do, and is never the wider."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushbid.disclosure import ErrorModel, ReleasePlan, release_plan
from hushbid.errors import InputError
from hushbid.estimation import Strata
from hushbid.questions import Choice, Number
from tests.disclosure.support import error_model
from tests.extent import each

MANY, TIMES = 80, 20_000


def model(people: int, noise: list[float], variance: float) -> ErrorModel:
    return error_model(
        weights=np.full(people, 1.0 / people),
        variance=np.full(people, variance),
        noise=np.array(noise),
    )


def coverage(people: int, rate: float, noise: list[float], half: float) -> float:
    """How often a mean of answers with this share of yes, and its noise, is no further from the truth."""
    rng = np.random.default_rng(3)
    misses = rng.binomial(people, rate, TIMES) / people - rate
    for scale in noise:
        misses += rng.laplace(scale=scale, size=TIMES) if scale else 0.0
    return float(np.mean(np.abs(misses) <= half))


@each("level", [0.9, 0.99])
@each("noise", [[0.0], [0.01], [0.05], [0.2], [0.01] * 60])
def test_it_covers_as_often_as_it_says_where_many_people_weigh_little(noise: list[float], level: float) -> None:
    error = model(MANY, noise, 0.24)
    half = error.normal_half_width(level)
    found = coverage(MANY, 0.6, noise, half)
    # the sampling error is a count of 80 over 80: it moves in steps of 1/80
    steps = 0.015 if max(noise) < 0.01 else 0.0
    assert level - 4.0 * np.sqrt(level * (1 - level) / TIMES) - steps <= found <= level + 0.012 + steps
    assert half <= error.half_width(level)
    if max(noise) <= 0.01:
        assert half < 0.85 * error.half_width(level)


def test_a_plain_normal_interval_would_cover_too_rarely_where_one_laplace_term_dominates() -> None:
    error = model(MANY, [0.2], 0.24)
    assert coverage(MANY, 0.6, [0.2], 2.5758 * np.sqrt(error.mse)) < 0.98
    assert coverage(MANY, 0.6, [0.2], error.normal_half_width(0.99)) > 0.988


def test_it_covers_less_often_than_it_says_where_few_people_have_a_rare_trait() -> None:
    error = model(10, [0.001], 0.0475)
    assert coverage(10, 0.05, [0.001], error.normal_half_width(0.95)) < 0.93
    assert coverage(10, 0.05, [0.001], error.half_width(0.95)) >= 0.95


@settings(max_examples=12)
@given(
    st.integers(1, 50),
    st.lists(st.sampled_from([0.0, 1e-6, 0.01, 0.3, 5.0]), min_size=1, max_size=4),
    st.sampled_from([0.0, 1e-4, 0.25]),
    st.sampled_from([0.5, 0.95, 0.999]),
)
def test_it_is_never_wider_than_the_interval_that_holds_for_all_data(people, noise, variance, level):
    error = replace(model(people, noise, variance), largest_bias=0.1, rounding=1e-3)
    normal, whole = error.normal_half_width(level), error.half_width(level)
    assert 0.101 <= normal <= whole


def test_where_nothing_but_one_noise_term_errs_both_are_its_quantile() -> None:
    error = model(3, [0.5], 0.0)
    assert error.normal_half_width(0.95) == error.half_width(0.95) == pytest.approx(0.5 * np.log(20))


def test_an_impossible_level_is_refused() -> None:
    for level in (1.0, float("nan"), "0.95", None):
        with pytest.raises(InputError, match=f"level must .*, got '?{level}"):
            model(3, [0.5], 0.25).normal_half_width(level)


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [(5.0, (2.0, 8.0)), (1.0, (0.0, 4.0)), (-2.0, (0.0, 1.0)), (-7.0, (0.0, 0.0)), (16, (10, 10))],
)
def test_an_interval_is_cut_to_the_range_and_the_estimate_is_not(
    monkeypatch: pytest.MonkeyPatch, estimate: float, expected: tuple[float, float]
) -> None:
    plan = ReleasePlan.of(np.full(30, 1.0), setting="central", bounds=(0.0, 10.0))
    release = replace(release_plan(plan, np.full(30, 5.0)), estimate=estimate)
    monkeypatch.setattr(ErrorModel, "half_width", lambda self, level: 3.0)
    monkeypatch.setattr(ErrorModel, "normal_half_width", lambda self, level: 3.0)
    assert release.interval() == release.normal_interval() == expected
    assert release.estimate == estimate


def test_the_answers_of_a_survey_have_both_intervals_each_within_its_own_range() -> None:
    questions = [Number(name="hours", bounds=(0, 24)), Choice(name="shift", answers=("day", "night"))]
    plan = ReleasePlan.of(np.full(20, 2.0), setting="central", questions=questions)
    release = release_plan(plan, {"hours": np.full(20, 6.0), "shift": ["day"] * 20})
    hours, shift = release.answers
    for answer, (low, high) in ((hours, (0.0, 24.0)), (shift, (0.0, 1.0))):
        pairs = zip(answer.intervals(), answer.normal_intervals(), strict=True)
        for whole, normal in pairs:
            assert low <= whole[0] <= normal[0] <= normal[1] <= whole[1] <= high
    frame = release.to_frame()
    assert list(frame.columns)[3:7] == ["low", "high", "normal_low", "normal_high"]
    assert len(frame) == 3


def test_a_contrast_is_cut_to_its_own_range(monkeypatch: pytest.MonkeyPatch) -> None:
    strata = Strata(codes=[0, 1] * 10, weights=[1.0, -1.0])
    plan = ReleasePlan.of(np.full(20, 1.0), setting="central", bounds=(0.0, 10.0), strata=strata)
    release = replace(release_plan(plan, np.full(20, 5.0)), estimate=-9.0)
    assert release.range == (-10.0, 10.0)
    monkeypatch.setattr(ErrorModel, "half_width", lambda self, level: 3.0)
    assert release.interval() == (-10.0, -6.0)
