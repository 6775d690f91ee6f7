"""Priors of which only F and f are known: quantiles, markups and the points to look at, by numerical methods.

`ScipyPrior` and `OwnPrior` are of this kind. F/f comes from logarithms; where F has lost its digits, at the very bottom
of a support (the integral of f says so), it is continued in proportion to the distance from the low end.
"""

from functools import cached_property

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.priors.base import ContinuousPrior
from hushbid.priors.root_finding import solve_quantile
from hushbid.priors.tables import grid_points

_NOISE = 1e-13
_SMALLEST_MASS, _SMALL_MASS, _DIGITS_LEFT = 1e-280, 1e-6, 1e-9
_LARGEST = float(np.finfo(np.float64).max)
_LADDER = 2.0 ** np.arange(-1000.0, 1000.0)
_DESCENT = 2.0 ** -np.arange(0.0, 120.0, 0.125)
_GAUSS_POINTS, _GAUSS_WEIGHTS = (0.5 * part for part in np.polynomial.legendre.leggauss(10))
_GAUSS_POINTS = _GAUSS_POINTS + 0.5


class NumericalPrior(ContinuousPrior):
    """A prior that gives `_cdf`, `_survival`, `_log_pdf` and its support, and gets the rest."""

    def _quantile(self, q: FloatArray) -> FloatArray:
        lower, (low, high) = q < 0.5, self.support
        # powers of two from the low end bracket every level, then one search for all
        ladder = np.append(low, np.clip(low + self._typical * _LADDER, low, min(high, _LARGEST)))
        rung = np.where(
            lower,
            np.searchsorted(self._cdf(ladder), q, side="right"),
            np.searchsorted(-self._survival(ladder), q - 1.0, side="right"),
        )
        left, right = ladder[np.maximum(rung - 1, 0)], ladder[np.minimum(rung, ladder.size - 1)]
        return np.where(q >= 1.0, high, solve_quantile(self._cdf, self._survival, q, left, right))

    @cached_property
    def _typical(self) -> float:
        """The distance of the median from the low end, roughly."""
        low, high = self.support
        ladder = low + _LADDER[low + _LADDER < high]
        above = self._cdf(ladder) >= 0.5
        return float(_LADDER[np.argmax(above)]) if np.any(above) else high - low

    def _markup(self, c: FloatArray) -> FloatArray:
        low = self.support[0]
        raised = np.maximum(c, self._bottom)
        # F/f by logarithms; what is no number is below the median 0, above it infinite
        markup = np.exp(np.log(self._cdf(raised)) - self._log_pdf(raised))
        markup = np.where(np.isnan(markup), np.where(raised - low < self._typical, 0.0, np.inf), markup)
        share = np.where(c < self._bottom, (c - low) / (self._bottom - low), 1.0)
        return np.where(c <= low, 0.0, share * markup)

    @cached_property
    def _bottom(self) -> float:
        """Below it F has lost its digits (the integral of f says so), and F/f is continued in proportion."""
        low = self.support[0]
        # the integral of f from the low end, by Gauss's rule on geometric cells
        edges = low + self._typical * _DESCENT
        starts, widths = edges[1:, None], -np.diff(edges)[:, None]
        density = np.exp(self._log_pdf(np.ravel(starts + widths * _GAUSS_POINTS)))
        pieces = np.sum(density.reshape(-1, _GAUSS_POINTS.size) * _GAUSS_WEIGHTS, axis=1) * widths[:, 0]
        integral = np.cumsum(pieces[::-1])[::-1]
        mass = self._cdf(edges[:-1])
        # where F disagrees with it, though tiny, or is about to underflow
        lost = ~(np.abs(mass - integral) <= _DIGITS_LEFT * integral) & (mass < _SMALL_MASS)
        lost |= mass < _SMALLEST_MASS
        return float(edges[np.argmax(lost)]) if np.any(lost) else low

    @property
    def _noise(self) -> float:
        return _NOISE * self._typical

    def _grid(self) -> FloatArray:
        return grid_points(self, every=4)
