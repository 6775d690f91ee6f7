"""Curves through exactly computed points, with a verified error: Chebyshev polynomials on adaptive pieces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
_DEGREE = 12
_HALVINGS = 45
_MOST_PIECES = 512
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
    """A curve within ``allowed`` of ``function`` wherever it was checked, pieces halved until it is."""
    ends = np.unique(np.asarray(breaks, dtype=float))
    low, high = ends[:-1], ends[1:]
    done: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    worst = 0.0
    for halving in range(_HALVINGS + 1):
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        points = np.concatenate([_NODES, _CHECKS])
        values = function((middle[:, None] + half[:, None] * points).ravel()).reshape(low.size, points.size)
        coefficients = values[:, : _NODES.size] @ _FIT.T
        error = np.abs(coefficients @ _AT_CHECKS.T - values[:, _NODES.size :]).max(axis=1)
        short = half <= 4.0 * np.spacing(np.abs(middle))
        good = (error <= allowed) | short | (halving == _HALVINGS) | (low.size > _MOST_PIECES)
        done.append((low[good], high[good], coefficients[good]))
        worst = max(worst, float(error[good].max(initial=0.0)))
        if good.all():
            break
        low, middle, high = low[~good], middle[~good], high[~good]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    starts = np.concatenate([part[0] for part in done])
    order = np.argsort(starts)
    return Curve(np.append(starts[order], ends[-1]), np.concatenate([part[2] for part in done])[order], worst)
