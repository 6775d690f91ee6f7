"""Simulated error and coverage against what a release states, in both settings, with drop-outs and nasty data."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hushbid.audit import check_questions
from hushbid.audit.accuracy import standard_error
from hushbid.disclosure import ReleasePlan, simulate_plan
from hushbid.disclosure.delivery import planned_error
from hushbid.disclosure.error import published_half_width
from hushbid.disclosure.received import sent_by
from hushbid.errors import InputError
from hushbid.estimation import best_weights
from tests.disclosure.support import error_model, weigh

PLANS = {
    "one person": ReleasePlan.of([1.0], setting="central", bounds=(0, 1)),
    "a few, unequal": ReleasePlan.of([0.2, 0.5, 1.0, 3.0], setting="central", bounds=(-5, 15), variance=30.0),
    "sampling dominates": ReleasePlan.of(np.full(40, 50.0), setting="central", bounds=(0, 1), variance=0.05),
    "unequal variances": ReleasePlan.of([1.0, 2.0, 3.0], setting="central", bounds=(0, 1), variance=[0.01, 0.1, 0.25]),
    "one message": ReleasePlan.of([2.0], setting="local", bounds=(0, 1)),
    "many messages": ReleasePlan.of(np.linspace(0.5, 4, 30), setting="local", bounds=(0, 10), variance=9.0),
}


@pytest.mark.parametrize("drop_out", [0.0, 0.4])
@pytest.mark.parametrize("name", PLANS)
def test_simulated_error_and_coverage_are_as_stated(name: str, drop_out: float) -> None:
    check = check_questions(PLANS[name], rng=np.random.default_rng(11), repetitions=2000, drop_out=drop_out)[0]
    assert not check.rejected, str(check)
    assert str(check).startswith("Not rejected: simulated MSE")


def test_the_check_rejects_wrong_formulas_and_poor_coverage() -> None:
    check = check_questions(PLANS["a few, unequal"], rng=np.random.default_rng(1), repetitions=3000)[0]
    for factor in (0.6, 1.5):
        assert replace(check, formula_mse=check.formula_mse * factor).rejected
    assert replace(check, coverage=0.92).rejected
    assert str(replace(check, coverage=0.92)).startswith("Rejected")
    assert not replace(check, coverage=1.0).rejected


def test_few_repetitions_without_a_large_noise_do_not_reject_what_is_right() -> None:
    """Where none of a hundred Laplace terms is large, their squares vary too little too: 5 of their own standard errors
    below the right mean are nothing rare."""
    error = error_model(weights=np.ones(1), variance=np.zeros(1), noise=np.ones(1))
    squares = np.square(np.random.default_rng(4).laplace(size=(4000, 100)))
    found = np.array([(row.mean() - error.mse) / standard_error(row, error) for row in squares])
    measured = (squares.mean(axis=1) - error.mse) / (squares.std(axis=1, ddof=1) / 10.0)
    assert error.mse == pytest.approx(2.0)
    assert np.count_nonzero(measured < -5.0) > 5
    assert np.abs(found).max() < 4.0
    half = 0.5 * squares[0]  # and what is measured counts where it is more
    assert standard_error(9.0 * half, error) == pytest.approx(math.sqrt((9.0 * half).var(ddof=1) / 100))


def test_the_coverage_of_few_intervals_is_judged_by_the_exact_distribution_of_misses() -> None:
    check = check_questions(PLANS["a few, unequal"], rng=np.random.default_rng(1), repetitions=100)[0]
    right = replace(check, simulated_mse=check.formula_mse)
    assert not replace(right, coverage=0.83).rejected  # once in a hundred thousand checks
    assert replace(right, coverage=0.8).rejected  # once in ten million
    assert not replace(right, coverage=1.0).rejected


def test_the_check_refuses_variances_that_no_data_have() -> None:
    with pytest.raises(InputError, match="variance"):
        check_questions(
            ReleasePlan.of([1.0], setting="central", bounds=(0, 1), variance=0.3), rng=np.random.default_rng()
        )[0]
    with pytest.raises(InputError, match="repetitions"):
        check_questions(PLANS["one person"], rng=np.random.default_rng(), repetitions=2)[0]


@pytest.mark.parametrize("rate", [0.5, 0.03])
@pytest.mark.parametrize("losses", [np.full(30, 0.2), np.full(30, 1e6), np.array([9.0, *[0.1] * 29])])
def test_central_intervals_cover_rare_events_too(rate: float, losses: np.ndarray) -> None:
    plan = ReleasePlan.of(losses, setting="central", bounds=(0, 1), variance=rate * (1 - rate))
    rng = np.random.default_rng(5)
    summed = weigh(plan, losses > 0)
    rows = (rng.random((3000, 30)) < rate).astype(np.float64)
    estimates = np.array(summed.estimates([summed.total(row) for row in rows]))
    for level in (0.8, 0.95):
        coverage = np.mean(np.abs(estimates - rate) <= summed.error.half_width(level))
        assert coverage >= level - 7 * math.sqrt(level * (1 - level) / 3000)


@pytest.mark.parametrize("losses", [[0.5], [3.0, 0.2, 0.2], [1.0] * 25])
def test_local_intervals_cover(losses: list[float]) -> None:
    plan = ReleasePlan.of(losses, setting="local", bounds=(0, 1))
    rng, n = np.random.default_rng(6), len(losses)
    weights = best_weights(losses, setting="local", variance=0.25).weights
    data = (rng.random((3000, n)) < 0.5).astype(np.float64)
    [[estimates]] = sent_by(plan).simulate(data[:, :, np.newaxis])
    model = error_model(weights=weights, variance=plan.variance, noise=weights / np.array(losses))
    for level in (0.8, 0.95):
        coverage = np.mean(np.abs(estimates - 0.5) <= model.half_width(level))
        assert coverage >= level - 7 * math.sqrt(level * (1 - level) / 3000)


def test_a_normal_interval_would_not_cover_where_laplace_noise_dominates() -> None:
    plan = ReleasePlan.of(np.full(2000, 0.001), setting="central", bounds=(0, 1))
    estimates = simulate_plan(plan, np.full(2000, 0.5), 20_000)
    summed = weigh(plan, plan.delivered > 0)
    level, normal = 0.999, 3.2905
    missed_by_normal = np.mean(np.abs(estimates - 0.5) > normal * math.sqrt(summed.error.mse))
    assert missed_by_normal > 5 * (1 - level)
    assert np.mean(np.abs(estimates - 0.5) > summed.error.half_width(level)) <= (1 - level) + 8 * math.sqrt(
        1e-3 / 20_000
    )


def test_intervals_are_valid_without_being_absurdly_wide() -> None:
    def relative_width(people: int, total: float, variance: float = 0.25) -> float:
        model = error_model(
            weights=np.full(people, 1 / people),
            variance=np.full(people, variance),
            noise=np.array([1 / total]),
        )
        return model.half_width(0.95) / math.sqrt(model.mse)

    assert relative_width(10**6, 10.0) == pytest.approx(math.log(20) / math.sqrt(2), rel=0.01)  # the Laplace quantile
    assert 1.96 < relative_width(10**4, 1e9) <= 1.4 * 1.96
    assert 1.96 < relative_width(10**6, 1e9, variance=0.01) <= 1.45 * 1.96


def test_the_grid_error_is_far_below_the_noise() -> None:
    rng = np.random.default_rng(2)
    cases = [(10, 1.0), (1000, 0.01), (10**5, 1.0), (10**6, 0.001), (10**6, 1.0)]
    for people, size in cases:
        losses, data = rng.exponential(size, size=people), rng.random(people)
        plan = ReleasePlan.of(losses, setting="central", bounds=(0, 1))
        summed = weigh(plan, losses > 0)
        total = math.fsum(losses)
        exact = math.fsum(losses * data) / total
        grid_error = abs(summed.total(data) / summed.total_weight - exact)
        assert grid_error * total < 1e-6  # in units of the Laplace scale
        assert summed.error.rounding * total < 1e-4


@pytest.mark.parametrize("gone", [0.0, 0.4, 0.6, 0.85])
def test_the_published_interval_covers_whoever_dropped_out_and_the_planned_one_does_not(gone: float) -> None:
    plan = ReleasePlan.of(np.full(200, 0.2), setting="central", bounds=(0, 10), variance=4.0)
    present = np.arange(200) >= 200 * gone
    planned, delivered = planned_error(plan), weigh(plan, present)
    rng, level, repetitions = np.random.default_rng(8), 0.95, 4000
    rows = np.clip(rng.normal(4.0, 1.5, (repetitions, 200)), 0.0, 8.0)  # symmetric about 4
    estimates = np.array(delivered.estimates([delivered.total(row) for row in rows]))
    half = published_half_width(planned=planned, delivered=delivered.error, width=10.0, level=level)
    slack = 6 * math.sqrt(level * (1 - level) / repetitions)
    assert half < 10.0
    assert np.mean(np.abs(estimates - 4.0) <= half) >= level - slack
    assert (np.mean(np.abs(estimates - 4.0) <= planned.half_width(level)) < level - slack) == (gone >= 0.4)


def test_the_published_interval_is_the_same_whoever_dropped_out_until_it_doubles() -> None:
    losses = np.random.default_rng(2).uniform(0.1, 1.0, 300)
    plan = ReleasePlan.of(losses, setting="central", bounds=(0, 10))
    planned = planned_error(plan)

    def published(present: np.ndarray) -> tuple[float, float]:
        error = weigh(plan, present).error
        half = published_half_width(planned=planned, delivered=error, width=10.0, level=0.95)
        return half, error.half_width(0.95)

    first, _ = published(np.full(300, True))
    rng = np.random.default_rng(3)
    for share in rng.uniform(0.0, 0.99, 60):
        shown, real = published(rng.random(300) >= share)
        assert shown >= real
        assert shown == math.inf or math.log2(shown / first).is_integer()
        if real <= 2.0 * planned.half_width(0.95):
            assert shown == first
    assert published(np.arange(300) < 1)[0] == math.inf, "one person's loss must not be told"
