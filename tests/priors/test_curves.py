"""Curves through exactly computed points: their error is what they say, corners and jumps included."""

import math

import numpy as np

from hushbid.priors.curves import fit


def test_a_curve_says_how_far_it_may_be_off_and_closes_in_on_a_corner() -> None:
    curve = fit(lambda z: np.abs(z - 1.2345) + np.sin(z), [1.0, 2.0], allowed=lambda: (1e-10, 1e-10))
    z = np.linspace(1.0, 2.0, 10_001)
    assert curve.error <= 1e-10
    assert np.abs(curve(z) - np.abs(z - 1.2345) - np.sin(z)).max() <= 1e-9


def test_a_curve_may_jump_if_it_is_continuous_from_the_left() -> None:
    def steps(
        z: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.ceil(z * 10.0) + np.where(z > 1.0, z, 0.0)

    curve = fit(steps, [1.0, 1.5, 2.0], allowed=lambda: (1e-12, 1e-12))
    jumps = np.array([1.1, 1.2, 1.7, 1.3, 1.5, 2.0])
    z = np.concatenate([[1.0], jumps, np.nextafter(jumps, 0.0), np.nextafter(jumps[:-1], 9.0), np.linspace(1, 2, 999)])
    np.testing.assert_allclose(curve(z), steps(z), rtol=0, atol=1e-12)
    assert curve.error <= 1e-12


def test_a_curve_over_one_point_is_that_point() -> None:
    curve = fit(np.exp, [1.0, 1.0], allowed=lambda: (1e-12, 1e-12))
    assert curve(np.array([0.5, 1.0, 1.5])).tolist() == [math.e] * 3


def test_a_curve_that_starts_at_zero_has_a_value_there() -> None:
    curve = fit(np.exp, [0.0, 1.0], allowed=lambda: (1e-12, 1e-12))
    np.testing.assert_allclose(curve(np.array([0.0, 5e-324, 1e-300, 0.5])), [1.0, 1.0, 1.0, math.exp(0.5)], rtol=1e-11)


def test_a_curve_is_no_closer_than_what_is_known_of_the_function() -> None:
    rng, points = np.random.default_rng(5), []

    def noisy(
        z: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        points.append(z.size)
        return np.exp(z) + rng.uniform(-1e-8, 1e-8, z.size)

    curve = fit(noisy, [1.0, 2.0], allowed=lambda: (1e-10, 1e-7))
    z = np.linspace(1.0, 2.0, 10_001)
    assert sum(points) < 1000
    assert np.abs(curve(z) - np.exp(z)).max() <= 2 * curve.error <= 4e-7
