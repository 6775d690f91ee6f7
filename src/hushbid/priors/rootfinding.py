"""Many scalar equations at once: bracketed, vectorised, safe with infinities and jumps."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hushbid.priors.arrays import FloatArray

_MAX_STEPS = 200
_ULP = float(np.finfo(np.float64).eps)


def solve_increasing(
    function: Callable[[NDArray[np.intp], FloatArray], FloatArray],
    left: FloatArray,
    right: FloatArray,
    *,
    at_left: FloatArray,
    at_right: FloatArray,
) -> FloatArray:
    """Where each nondecreasing function changes sign between ``left`` (not positive) and ``right`` (positive).

    ``function(rows, x)`` evaluates the functions of the given rows at x. Values may be infinite and may jump; what
    comes back is then within two units in the last place of the jump, on its left. The method is Chandrupatla's
    (Advances in Engineering Software 28, 1997): inverse quadratic interpolation where it is trustworthy, else halving.
    """
    # a is the latest point, b the other end of the bracket, c the point before the latest
    a, b, c = left.copy(), right.copy(), right.copy()
    fa, fb, fc = at_left.copy(), at_right.copy(), at_right.copy()
    answer = left.copy()
    rows = np.arange(left.size)
    fraction = _first_fraction(fa, fb)
    for _ in range(_MAX_STEPS):
        x = a + fraction * (b - a)
        fx = function(rows, x)
        same = (fx > 0.0) == (fa > 0.0)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        best = np.where(np.abs(fa) <= np.abs(fb), a, b)
        below = np.where(fa <= 0.0, a, b)
        width = np.abs(b - a)
        tolerance = _ULP * np.abs(best) + np.finfo(np.float64).tiny
        done = (fa == 0.0) | (width <= 2.0 * tolerance)
        if np.any(done):
            jump = np.abs(fa) + np.abs(fb) == np.inf
            answer[rows[done]] = np.where(fa == 0.0, a, np.where(jump, below, best))[done]
            keep = ~done
            if not np.any(keep):
                return answer
            rows, a, b, c, fa, fb, fc = (part[keep] for part in (rows, a, b, c, fa, fb, fc))
            width, tolerance = width[keep], tolerance[keep]
        fraction = _next_fraction(a, b, c, fa, fb, fc)
        margin = np.minimum(0.5, tolerance / width)
        fraction = np.clip(fraction, margin, 1.0 - margin)
    answer[rows] = np.where(fa <= 0.0, a, b)
    return answer


def _first_fraction(fa: FloatArray, fb: FloatArray) -> FloatArray:
    fraction = fa / (fa - fb)
    return np.where(np.isfinite(fb) & (fraction > 0.0) & (fraction < 1.0), fraction, 0.5)


def _next_fraction(
    a: FloatArray, b: FloatArray, c: FloatArray, fa: FloatArray, fb: FloatArray, fc: FloatArray
) -> FloatArray:
    """How far to go from a towards b; not a number counts as untrustworthy."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    trusted = (phi * phi < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
    inverse_quadratic = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(trusted & np.isfinite(inverse_quadratic), inverse_quadratic, 0.5)
