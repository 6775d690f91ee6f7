"""How far one cell of a noise lies from 0, against independent formulas, integrals and draws."""

import math

import numpy as np
import pytest
from scipy import integrate, special

from hushbid.disclosure.tails import tail_of
from hushbid.questions import PARTS, NoiseGroup
from tests.extent import each

SHAPES = [(1, False), (2, False), (7, False), (2, True), (3, True), (9, True)]


@each(("cells", "choice"), [*SHAPES, (200, False), (100, True)])
def test_the_variance_is_what_the_market_reckons_with(cells: int, choice: bool) -> None:
    group = NoiseGroup(rows=(0,), parts=PARTS, cells=cells, choice=choice)
    assert tail_of(cells, choice).variance == pytest.approx(group.noise, rel=1e-12)


def test_a_box_has_the_tail_of_incomplete_gamma_functions() -> None:
    t = np.linspace(0, 400, 30)
    for d in (1, 2, 10, 200):
        expected = special.gammaincc(d + 1, t) - t / d * special.gammaincc(d, t)
        np.testing.assert_allclose(tail_of(d, False).outside(t), expected, rtol=1e-9, atol=1e-15)


def test_a_choice_has_the_tail_of_its_construction() -> None:
    """k positive cells share m ~ Gamma(d − 1) as a simplex does: by drawing that."""
    rng, d, draws = np.random.default_rng(5), 5, 200_000
    weights = np.array([math.comb(d, k) * math.comb(d - 2, k - 1) for k in range(1, d)], dtype=np.float64)
    k = rng.choice(np.arange(1, d), size=draws, p=weights / weights.sum())
    m, positive = rng.gamma(d - 1, size=draws), rng.random(draws) < k / d
    others = np.where(positive, k, d - k) - 1
    cell = m * np.where(others > 0, rng.beta(1.0, np.maximum(others, 1)), 1.0)
    for t in (0.5, 1.0, 3.0, 6.0):
        expected = float(tail_of(d, True).outside(np.array(t)))
        assert abs(np.mean(cell >= t) - expected) < 5 * math.sqrt(expected / draws)


@each(("cells", "choice"), SHAPES)
def test_quantiles_and_cumulants_follow_from_the_tail(cells: int, choice: bool) -> None:
    tail = tail_of(cells, choice)
    assert 0.5 * tail.outside(np.array(tail.quantile(0.01))) == pytest.approx(0.01, rel=1e-9)
    assert tail.quantile(0.5) == pytest.approx(0.0, abs=1e-9)
    for rate in (0.01, 0.5, 0.9):
        far = integrate.quad(
            lambda t, rate=rate: math.sinh(rate * t) * float(tail.outside(np.array(t))), 0, 500, limit=300
        )
        expected = math.log1p(rate * far[0])
        assert tail.cumulants(np.array([rate]))[0] == pytest.approx(expected, rel=1e-5)


@each(("cells", "choice"), [*SHAPES, (30, False), (200, False), (40, True), (100, True)])
def test_cumulants_over_squares_fall_before_they_rise(cells: int, choice: bool) -> None:
    """So they are largest at one end of every interval, as the bound on many noise terms needs."""
    rates = np.geomspace(1e-4, 0.97, 400)
    ratio = tail_of(cells, choice).cumulants(rates) / np.square(rates)
    rising = np.diff(ratio) > 1e-7 * ratio[1:]
    falling = np.diff(ratio) < -1e-7 * ratio[1:]
    first = np.argmax(rising) if rising.any() else rising.size
    assert not falling[first:].any()


@each("cells", [1, 2, 5])
@each("scale", [2.0, 9.0])
def test_noise_on_integers_reaches_no_further_than_a_step_beyond(cells: int, scale: float) -> None:
    radii = np.arange(3000)
    mass = (2.0 * radii + 1.0) ** cells * np.exp(-radii / scale)
    mass /= mass.sum()
    for s in range(0, 60, 4):
        outside = float(np.sum(mass * np.maximum(2.0 * (radii - s), 0.0) / (2.0 * radii + 1.0)))  # P(|z| ≥ s + 1)
        assert outside <= float(tail_of(cells, False).outside(np.array(s / scale))) * (1 + 1e-12)
