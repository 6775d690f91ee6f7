"""Curves through exactly computed points, with a verified error: Chebyshev polynomials on adaptive pieces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from hushbid.arrays import FloatArray

_DEGREE = 12
_HALVINGS = 64
_MOST_PIECES = 512
_NUMBERS = 8
_NODES = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))[::-1]
_CHECKS = np.concatenate([[-0.999], 0.5 * (_NODES[1:] + _NODES[:-1]), [0.999]])
_FIT = np.linalg.inv(chebyshev.chebvander(_NODES, _DEGREE))
_AT_CHECKS = chebyshev.chebvander(_CHECKS, _DEGREE)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A function of the report, piece by piece; a break belongs to the piece on its left."""

    breaks: FloatArray
    """Ends of the pieces, ascending, one more than there are pieces."""

    coefficients: FloatArray
    """One row of Chebyshev coefficients per piece."""

    error: float
    """The largest difference seen between the curve and the function at points it was not made from."""

    def __call__(self, reports: FloatArray) -> FloatArray:
        """The curve's value at each report; beyond its ends, as at the ends."""
        piece = np.clip(np.searchsorted(self.breaks, reports, side="left") - 1, 0, self.coefficients.shape[0] - 1)
        low, high = self.breaks[piece], self.breaks[piece + 1]
        x = np.clip((2.0 * reports - low - high) / (high - low), -1.0, 1.0)
        if self.coefficients.shape[0] == 1:
            return np.asarray(chebyshev.chebval(x, self.coefficients[0]))
        return np.asarray(chebyshev.chebval(x, self.coefficients[piece].T, tensor=False))


def fit(function: Callable[[FloatArray], FloatArray], breaks: Sequence[float], *, allowed: float) -> Curve:
    """A curve within ``allowed`` of ``function`` wherever it was checked, pieces halved until it is.

    The function may jump, at breaks or elsewhere, if it is continuous from the left: around a jump, pieces become so
    short that the few numbers in them get a piece each. The lowest break is such a number of its own too.
    """
    ends = np.unique(np.asarray(breaks, dtype=float))
    done = [_single(function, ends[:1])]
    low, high = ends[:-1], ends[1:]
    worst = 0.0
    for halving in range(_HALVINGS + 1) if low.size else ():
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        # fit at the nodes, check between them
        points = np.concatenate([_NODES, _CHECKS])
        values = function((middle[:, None] + half[:, None] * points).ravel()).reshape(low.size, points.size)
        coefficients = values[:, : _NODES.size] @ _FIT.T
        error = np.abs(coefficients @ _AT_CHECKS.T - values[:, _NODES.size :]).max(axis=1)
        good = error <= allowed
        # a jump: a piece with so few numbers in it that each gets one of its own
        short = ~good & (high.view(np.int64) - low.view(np.int64) <= _NUMBERS)
        if short.any():
            done.append(_single(function, _numbers_in(low[short], high[short])))
        # no further: keep what there is, and say how good it is
        if halving == _HALVINGS or low.size > _MOST_PIECES:
            good = ~short
        done.append((high[good], coefficients[good]))
        worst = max(worst, float(error[good].max(initial=0.0)))
        left = ~(good | short)
        if not left.any():
            break
        low, middle, high = low[left], middle[left], high[left]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    tops = np.concatenate([part[0] for part in done])
    order = np.argsort(tops)
    below = np.nextafter(ends[0], -np.inf)
    return Curve(np.concatenate([[below], tops[order]]), np.concatenate([part[1] for part in done])[order], worst)


def _single(function: Callable[[FloatArray], FloatArray], numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A piece for each number."""
    coefficients = np.zeros((numbers.size, _DEGREE + 1))
    coefficients[:, 0] = function(numbers)
    return numbers, coefficients


def _numbers_in(low: FloatArray, high: FloatArray) -> FloatArray:
    """All doubles above ``low`` up to ``high``, of several short pieces."""
    parts = [
        np.arange(first + 1, last + 1) for first, last in zip(low.view(np.int64), high.view(np.int64), strict=True)
    ]
    return np.concatenate(parts).view(np.float64)
