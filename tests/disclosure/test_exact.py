"""Every promise holds in exact arithmetic, for hostile floats too: subnormals, 1e300, negative zero, just outside."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hushbid.common.arrays import as_bounds
from hushbid.disclosure import ReleasePlan, noise, privatize
from hushbid.disclosure.error import ErrorModel
from hushbid.disclosure.grid import (
    DATA_BITS,
    _kept_in_integers,
    exact_sum,
    exponent_of,
    integer_weights,
    to_data_units,
    to_grid,
)
from hushbid.disclosure.local import SMALLEST_LOSS, grid_bits, noise_scale
from hushbid.errors import InputError, ReleaseError
from tests.disclosure.support import OneNumber, weigh

HOSTILE = [
    0.0,
    -0.0,
    5e-324,
    2.2250738585072014e-308,
    1e-300,
    2.0**-54,
    0.1,
    1 / 3,
    1.0,
    1.0 + 2**-52,
    1e16,
    1e300,
    1.7e308,
]
losses = st.one_of(st.sampled_from(HOSTILE), st.floats(min_value=0, allow_infinity=False), st.floats(0, 10))
data = st.one_of(st.floats(allow_nan=False), st.floats(-2, 3), st.sampled_from([*HOSTILE, math.inf, -math.inf]))
ends = st.one_of(st.floats(-1e100, 1e100), st.integers(-3, 3).map(float), st.sampled_from([1e16, 0.1, -1e-5]))


@st.composite
def ranges(draw: st.DrawFn) -> tuple[float, float]:
    low, high = draw(ends), draw(ends)
    try:
        return as_bounds((low, high))
    except InputError:
        assume(False)
        raise


@st.composite
def sums(draw: st.DrawFn) -> tuple[OneNumber, np.ndarray]:
    promised = draw(st.lists(losses, min_size=1, max_size=8))
    bounds = draw(ranges())
    values = draw(st.lists(data, min_size=len(promised), max_size=len(promised)))
    missing = draw(st.lists(st.booleans(), min_size=len(promised), max_size=len(promised)))
    plan = ReleasePlan.of(promised, setting="central", bounds=bounds)
    present = (plan.delivered > 0) & ~np.array(missing)
    assume(present.any())
    try:
        return weigh(plan, present), np.where(present, values, math.nan)
    except ReleaseError:  # all losses below 2**-54
        assert max(loss for loss, there in zip(promised, present, strict=True) if there) < 2.0**-54
        assume(False)
        raise


@settings(max_examples=150)
@given(sums())
def test_nobody_loses_more_than_promised_in_rational_numbers(case: tuple[OneNumber, np.ndarray]) -> None:
    summed, _ = case
    scale = Fraction(summed.noise_scale)
    for weight, promised, stated in zip(summed.weights, summed.plan.promised, summed.privacy_loss, strict=True):
        delivered = Fraction(int(weight)) / scale
        assert 0 <= delivered <= Fraction(float(promised))
        assert delivered == Fraction(float(stated))  # what the release states is not even rounded


@settings(max_examples=150)
@given(sums(), st.data())
def test_replacing_one_datum_moves_the_sum_by_at_most_that_persons_weight(
    case: tuple[OneNumber, np.ndarray], choices: st.DataObject
) -> None:
    summed, column = case
    user = choices.draw(st.sampled_from(np.flatnonzero(~np.isnan(column)).tolist()))
    neighbour = column.copy()
    neighbour[user] = choices.draw(data)
    before, after = summed.total(column), summed.total(neighbour)
    assert abs(before - after) <= int(summed.weights[user])
    assert 0 <= before <= summed.total_weight <= noise.LARGEST_TOTAL


@given(sums())
def test_the_grid_changes_the_weighted_mean_by_no_more_than_it_says(case: tuple[OneNumber, np.ndarray]) -> None:
    summed, column = case
    low, high = summed.plan.bounds
    weights = [int(weight) for weight in summed.weights]
    exact = sum(
        Fraction(w)
        * (min(max(Fraction(float(np.clip(x, -1e200, 1e200))), Fraction(low)), Fraction(high)) - Fraction(low))
        for w, x in zip(weights, column, strict=True)
        if w
    ) / (sum(weights) * (Fraction(high) - Fraction(low)))
    assert math.isfinite(summed.error.mse)
    gap = abs(exact - Fraction(summed.total(column), sum(weights)))
    assert gap <= Fraction(1, 2**DATA_BITS) + Fraction(1, sum(weights)) + Fraction(1, 2**50)
    assert summed.error.rounding >= float(gap) * (high - low) * (1 - 1e-9) or gap < Fraction(1, 2**50)


@settings(max_examples=200)
@given(st.lists(data, min_size=1, max_size=20), ranges(), st.integers(1, 40))
@example([math.nextafter(1.0, 2.0), -5e-324, -0.0, 1e300], (0.0, 1.0), 40)
def test_grid_values_always_lie_on_the_grid(values: list[float], bounds: tuple[float, float], bits: int) -> None:
    steps = to_grid(np.array(values), bounds, bits=bits)
    assert steps.dtype == np.int64
    assert ((steps >= 0) & (steps <= 2**bits)).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(steps[order]) >= 0).all()


@given(st.lists(st.tuples(st.integers(0, 2**60), st.integers(0, 2**DATA_BITS)), max_size=30))
def test_the_vectorised_sum_equals_python_integers(pairs: list[tuple[int, int]]) -> None:
    weights, values = (
        (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True)) if pairs else (np.zeros(0, int),) * 2
    )
    assert exact_sum(weights, values) == sum(w * x for w, x in pairs)


@settings(max_examples=500)
@given(st.integers(0, 2**60), st.integers(-984, 54), losses)
@example(1, 0, math.nextafter(1.0, 0.0))
@example(2**60, 54, 64.0)
@example(2**60, 54, math.nextafter(64.0, 0.0))
def test_the_integer_check_agrees_with_fractions_on_right_and_wrong_weights(
    weight: int, exponent: int, promised: float
) -> None:
    kept = bool(_kept_in_integers(np.array([weight]), exponent, np.array([promised]))[0])
    assert kept == (Fraction(weight) <= Fraction(promised) * Fraction(2) ** exponent)


@settings(max_examples=500)
@given(losses.filter(lambda loss: loss > 0), st.integers(-2, 2))
def test_the_integer_check_is_sharp_at_the_boundary(promised: float, offset: int) -> None:
    exponent = exponent_of(np.array([promised]))
    weights = integer_weights(np.array([promised]), exponent)
    weight = int(weights[0]) + offset
    kept = bool(_kept_in_integers(np.array([weight]), exponent, np.array([promised]))[0])
    assert kept == (0 <= weight <= int(weights[0]))


@settings(max_examples=300)
@given(losses.filter(lambda loss: loss >= SMALLEST_LOSS))
@example(SMALLEST_LOSS)
@example(1.7976931348623157e308)
def test_local_noise_is_enough_and_the_least_that_is(loss: float) -> None:
    bits = grid_bits(loss)
    scale = noise_scale(loss, bits)
    assert 0 < scale <= noise.LARGEST_SCALE
    assert Fraction(2**bits) <= Fraction(loss) * Fraction(scale)
    assert Fraction(2**bits) > Fraction(loss) * Fraction(math.nextafter(scale, 0.0))


@settings(max_examples=50)
@given(data, losses.filter(lambda loss: loss >= SMALLEST_LOSS), ranges())
def test_every_hostile_value_and_loss_gives_a_message_that_decodes(
    value: float, loss: float, bounds: tuple[float, float]
) -> None:
    message = privatize(value, loss, bounds)
    assert math.isfinite(message.decode(bounds))
    assert message.privacy_loss == Fraction(loss)


positive = st.floats(1e-6, 1e6)


@settings(max_examples=60)
@given(positive, positive, positive, positive, st.floats(0.5, 0.999))
def test_intervals_grow_with_the_level_and_scale_with_the_units(
    variance: float, step: float, noise_one: float, noise_two: float, level: float
) -> None:
    first, second = max(noise_one, noise_two), min(noise_one, noise_two)

    def model(unit: float) -> ErrorModel:
        return ErrorModel(
            sampling_variance=variance * unit**2,
            squared_steps=4 * variance * unit**2,
            largest_step=step * unit,
            largest_noise=first * unit,
            next_noise=second * unit,
            other_noise_squared=3 * second**2 * unit**2,
            rounding=0.0,
        )

    half = model(1.0).half_width(level)
    assert half < model(1.0).half_width((1 + level) / 2)
    assert model(1024.0).half_width(level) == pytest.approx(1024.0 * half)
    chebyshev = math.sqrt(model(1.0).mse / (1 - level))
    assert half <= 3 * chebyshev


@given(st.integers(-(2**70), 2**70), st.integers(1, 2**60))
def test_an_estimate_is_the_nearest_point_of_the_public_grid(numerator: int, denominator: int) -> None:
    steps = round(Fraction(numerator, denominator) * 2**40)  # to the even one of two
    assert to_data_units(numerator, denominator, (0.0, 1.0)) == steps / 2**40
