"""Roots of nondecreasing functions, many at once."""

import numpy as np
import pytest

from hushbid.common.arrays import FloatArray
from hushbid.priors.tables import increasing_root

_ULP = float(np.finfo(np.float64).eps)


def _cubed(x: FloatArray, level: FloatArray) -> FloatArray:
    return x**3 - level


@pytest.mark.parametrize("scale", [1e-280, 1e-3, 1.0, 1e90])
def test_a_root_is_the_last_float_at_which_the_function_is_not_positive(scale: float) -> None:
    level = np.linspace(1.0, 7.9, 300)
    found = increasing_root(lambda x, y: _cubed(x / scale, y), np.full(300, scale), np.full(300, 2.0 * scale), level)
    assert np.all(_cubed(found / scale, level) <= 0.0)
    assert np.all(_cubed(found * (1.0 + 4.0 * _ULP) / scale, level) > 0.0)


def test_roots_of_rising_levels_never_fall() -> None:
    level = np.cumprod(np.full(2000, 1.0 + 1e-14)) * 3.0
    found = increasing_root(_cubed, np.ones(2000), np.full(2000, 2.0), level)
    assert np.all(np.diff(found) >= 0.0)


def test_at_a_jump_to_infinity_the_root_is_just_before_it() -> None:
    jumps = np.array([1.5, 1.0 + 1e-9, 1.9999])
    found = increasing_root(lambda x, jump: np.where(x < jump, -np.inf, np.inf), np.ones(3), np.full(3, 2.0), jumps)
    assert np.all((found < jumps) & (found >= jumps * (1.0 - 4.0 * _ULP)))


def test_a_root_does_not_depend_on_the_other_rows() -> None:
    level = np.random.default_rng(1).uniform(1.0, 8.0, 50)
    together = increasing_root(_cubed, np.ones(50), np.full(50, 2.0), level)
    alone = [increasing_root(_cubed, np.ones(1), np.full(1, 2.0), level[row : row + 1])[0] for row in range(50)]
    np.testing.assert_array_equal(together, alone)


def test_where_rounding_denies_a_sign_change_the_root_is_an_end_of_the_bracket() -> None:
    above = increasing_root(lambda x: x + 5.0, np.ones(1), np.full(1, 2.0))
    below = increasing_root(lambda x: x - 5.0, np.ones(1), np.full(1, 2.0))
    assert above[0] == pytest.approx(1.0, rel=4.0 * _ULP)
    assert below[0] == pytest.approx(2.0, rel=4.0 * _ULP)
