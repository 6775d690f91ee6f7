"""The noise is discrete Laplace of exactly its scale. Every test also shows that it would notice a wrong one.

There is no seed, so these tests are statistical: right noise fails one of them with probability below 1e-6.
"""

import math

import numpy as np
import pytest
from scipy import stats

from hushbid.disclosure import ReleasePlan, noise, privatize, simulate_plan

ALARM = 1e-7
SAMPLES = 40_000


def masses(scale: float, reach: int) -> np.ndarray:
    """Probabilities of −reach … reach under discrete Laplace noise, all further out added to the ends."""
    steps = np.arange(-reach, reach + 1)
    q = math.exp(-1 / scale)
    mass = (1 - q) / (1 + q) * q ** np.abs(steps)
    mass[[0, -1]] = q**reach / (1 + q)
    return mass


def p_value(drawn: np.ndarray, mass: np.ndarray) -> float:
    reach = mass.size // 2
    counts = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=mass.size)
    return float(stats.chisquare(counts, mass / mass.sum() * drawn.size).pvalue)


@pytest.mark.parametrize("scale", [0.5, 2.0, 3.7])
def test_small_scales_match_the_discrete_distribution_and_no_other(scale: float) -> None:
    drawn = np.array(noise.draw_many([0] * SAMPLES, scale=scale))
    reach = math.ceil(6 * scale)
    assert p_value(drawn, masses(scale, reach)) > ALARM
    for wrong in (0.7, 0.9, 1.1, 1.3):
        assert p_value(drawn, masses(scale * wrong, reach)) < ALARM
    rounded = np.diff(stats.laplace.cdf(np.arange(-reach, reach + 2) - 0.5, scale=scale))
    if scale < 1:  # rounded continuous noise is another distribution, most visibly on a coarse grid
        assert p_value(drawn, rounded) < ALARM


@pytest.mark.parametrize("scale", [2.0**54, 2.0**32 / 0.3])
def test_large_scales_match_the_laplace_distribution_and_no_other(scale: float) -> None:
    drawn = np.array(noise.draw_many([7] * SAMPLES, scale=scale), dtype=np.float64)
    assert stats.kstest(drawn / scale, "laplace").pvalue > ALARM
    for wrong in (0.7, 0.8, 1.25, 1.3):
        assert stats.kstest(drawn / (scale * wrong), "laplace").pvalue < ALARM


def test_draws_are_independent_of_each_other_and_of_the_total() -> None:
    drawn = np.array(noise.draw_many([0] * SAMPLES, scale=2.0**40), dtype=np.float64)
    signs = np.sign(drawn)
    for lag in (1, 2, 7):
        assert abs(np.sum(signs[lag:] * signs[:-lag])) < 6 * math.sqrt(SAMPLES)
    shifted = np.array(noise.draw_many([2**59] * SAMPLES, scale=2.0**40)) - 2**59
    assert stats.ks_2samp(drawn, shifted.astype(np.float64)).pvalue > ALARM


def test_a_release_has_laplace_noise_of_scale_width_over_total_loss() -> None:
    losses = np.array([0.2, 0.5, 1.0])
    plan = ReleasePlan.of(losses, setting="central", bounds=(-3.0, 7.0))
    data = np.array([0.0, 5.0, 100.0])
    estimates = simulate_plan(plan, data, SAMPLES)
    residual = (estimates - losses @ np.clip(data, -3, 7) / 1.7) / (10 / 1.7)
    assert stats.kstest(residual, "laplace").pvalue > ALARM
    for wrong in (0.7, 1.3):
        assert stats.kstest(residual / wrong, "laplace").pvalue < ALARM


def test_drop_outs_raise_the_noise_to_what_those_left_allow() -> None:
    plan = ReleasePlan.of([0.2, 0.5, 1.0], setting="central", bounds=(0.0, 1.0))
    residual = simulate_plan(plan, [0.0, None, 0.0], SAMPLES) * 1.2
    assert stats.kstest(residual, "laplace").pvalue > ALARM
    assert stats.kstest(residual * 1.7 / 1.2, "laplace").pvalue < ALARM  # the noise of the full plan would not do


def test_messages_have_laplace_noise_of_scale_width_over_loss() -> None:
    drawn = np.array([privatize(0.25, 0.8, (0.0, 1.0)).decode((0.0, 1.0)) for _ in range(2000)])
    residual = (drawn - 0.25) * 0.8
    assert stats.kstest(residual, "laplace").pvalue > ALARM
    for wrong in (0.5, 2.0):
        assert stats.kstest(residual / wrong, "laplace").pvalue < ALARM
