"""Many scalar equations at once: bracketed, vectorised, safe with infinities and jumps."""

from collections.abc import Callable

import numpy as np

from hushbid.arrays import BoolArray, FloatArray, IndexArray

_MAX_STEPS = 200
_LAST_STEP = 8.0
_TOWARDS_ZERO = 1e-6
_ULP = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


def solve_increasing(
    function: Callable[[IndexArray, FloatArray], FloatArray],
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
    rows: IndexArray = np.arange(left.size)
    answer = left.copy()
    # a is the latest point, b the other end of the bracket, c the point before the latest
    state = np.stack([left, right, right, at_left, at_right, at_right])
    fraction = _first_fraction(at_left, at_right)
    for _ in range(_MAX_STEPS):
        a, b, c, fa, fb, fc = state = _narrowed(state, fraction, function, rows)
        fraction, trusted = _next_fraction(a, b, c, fa, fb, fc)
        width, tolerance = np.abs(b - a), _ULP * np.abs(a) + _TINY
        closed = (fa == 0.0) | (width <= 2.0 * tolerance)
        # a trustworthy step of a few ulps is the last: taking it needs no further evaluation
        last = trusted & ~closed & (fraction * width <= _LAST_STEP * tolerance)
        done = closed | last
        if np.any(done):
            found = np.where(last, a + fraction * (b - a), np.where(fa <= 0.0, a, b))
            answer[rows[done]] = found[done]
        if np.all(done):
            return answer
        # at least an ulp from either end, so that the bracket shrinks
        margin = np.minimum(0.5, tolerance / width)
        fraction = np.clip(fraction, margin, 1.0 - margin)[~done]
        rows, state = rows[~done], state[:, ~done]
    answer[rows] = np.where(state[3] <= 0.0, state[0], state[1])
    return answer


def _narrowed(
    state: FloatArray,
    fraction: FloatArray,
    function: Callable[[IndexArray, FloatArray], FloatArray],
    rows: IndexArray,
) -> FloatArray:
    """The bracket after evaluating the function ``fraction`` of the way from a to b."""
    a, b, _, fa, fb, _ = state
    x = a + fraction * (b - a)
    fx = function(rows, x)
    same = (fx > 0.0) == (fa > 0.0)
    return np.stack([x, np.where(same, b, a), np.where(same, a, b), fx, np.where(same, fb, fa), np.where(same, fa, fb)])


def _first_fraction(fa: FloatArray, fb: FloatArray) -> FloatArray:
    fraction = fa / (fa - fb)
    return np.where(np.isfinite(fb) & (fraction > 0.0) & (fraction < 1.0), fraction, 0.5)


def _next_fraction(
    a: FloatArray, b: FloatArray, c: FloatArray, fa: FloatArray, fb: FloatArray, fc: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """How far to go from a towards b, and whether interpolation says so (else halving does)."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    # Chandrupatla's test: is the function nearly a parabola on its side?
    trusted = (phi * phi < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
    inverse_quadratic = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    trusted &= (inverse_quadratic >= 0.0) & (inverse_quadratic <= 1.0)
    return np.where(trusted, inverse_quadratic, _halfway(a, b)), trusted


def _halfway(a: FloatArray, b: FloatArray) -> FloatArray:
    """The middle of a bracket, on a logarithmic scale if its ends differ in size."""
    near, far = np.sqrt(np.abs(a)), np.sqrt(np.abs(b))
    middle = np.where((near > 2.0 * far) | (far > 2.0 * near), near / (near + far), 0.5)
    return np.clip(middle, _TOWARDS_ZERO, 1.0 - _TOWARDS_ZERO)


def solve_quantile(
    cdf: Callable[[FloatArray], FloatArray],
    survival: Callable[[FloatArray], FloatArray],
    q: FloatArray,
    left: FloatArray,
    right: FloatArray,
) -> FloatArray:
    """The quantiles at levels ``q`` of a distribution, each known to lie in [left, right].

    They are sought on the logarithm of whichever tail is smaller, so they are accurate far in both tails.
    """

    def excess(rows: IndexArray, c: FloatArray) -> FloatArray:
        level = q[rows]
        return np.where(level < 0.5, np.log(cdf(c)) - np.log(level), np.log1p(-level) - np.log(survival(c)))

    # levels 0 and 1, and brackets that are a point, need no search
    answer = np.where(q <= 0.0, left, right)
    rows = np.flatnonzero((left < right) & (q > 0.0) & (q < 1.0))
    if rows.size:
        answer[rows] = solve_increasing(
            lambda part, c: excess(rows[part], c),
            left[rows],
            right[rows],
            at_left=np.minimum(excess(rows, left[rows]), 0.0),
            at_right=np.maximum(excess(rows, right[rows]), _TINY),
        )
    return answer
