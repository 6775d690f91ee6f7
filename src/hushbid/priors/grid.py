"""Where to look at a continuous prior: points dense in its body, its tails and near the ends of its support."""

from typing import Protocol

import numpy as np

from hushbid.arrays import FloatArray

_LEVELS = np.concatenate(
    [
        np.logspace(-300, -3, 595),
        np.linspace(0.001, 0.999, 1500)[1:-1],
        1.0 - np.logspace(-3, -15.6, 254),
    ]
)
_STRAIGHT = np.linspace(0.0, 1.0, 258)[1:-1]
_HALVINGS = 0.5 ** np.arange(1.0, 61.0)
_TAIL_POINTS = 1000
_SMALLEST = 1e-300
_LARGEST = float(np.finfo(np.float64).max)


class Curve(Protocol):
    """What a grid needs to know about a prior."""

    @property
    def support(self) -> tuple[float, float]:
        """The interval [low, high]."""
        ...

    def _quantile(self, q: FloatArray) -> FloatArray: ...

    def _raw_virtual_cost(self, c: FloatArray) -> FloatArray: ...


def grid_points(prior: Curve, *, every: int = 1) -> FloatArray:
    """Ascending points of the support, from its low end to its high end or to where the virtual cost overflows.

    ``every`` > 1 takes fewer quantiles, for priors whose quantiles are expensive.
    """
    low, high = prior.support
    with np.errstate(all="ignore"):
        # even quantiles, finer in both tails
        body = prior._quantile(_LEVELS[::every])
        body = np.unique(body[(body > low) & (body < high) & np.isfinite(body)])
        if body.size == 0:
            body = np.array([low + 0.5 * (high - low) if high < np.inf else 2.0 * low + 1.0])
        first, last = float(body[0]), float(body[-1])
        # even steps too, for densities with gaps, and halvings towards the low end
        pieces = [np.array([low]), body, first + (last - first) * _STRAIGHT, low + (first - low) * _HALVINGS]
        if low == 0.0 and first > _SMALLEST:
            pieces.append(np.geomspace(_SMALLEST, first, 64))
        # to the high end, or to where the virtual cost overflows
        if high < np.inf:
            pieces += [np.array([high]), high - (high - last) * _HALVINGS, last + (high - last) * _STRAIGHT]
        else:
            pieces.append(_tail(prior, low, last))
    points = np.unique(np.concatenate(pieces))
    # floats below the smallest normal ones have too few digits to tell a rise from a fall
    return np.asarray(points[(points == low) | (points >= max(low, _SMALLEST)) & (points <= high)])


def _tail(prior: Curve, low: float, last: float) -> FloatArray:
    """From the last quantile that floats can name to where the virtual cost overflows, in growing steps."""
    start = max(last - low, _SMALLEST)
    # doubling, to find the end
    reach = start * 2.0 ** np.arange(1.0, 1100.0)
    reach = reach[low + reach < _LARGEST]
    infinite = prior._raw_virtual_cost(low + reach) == np.inf
    end = reach[np.argmax(infinite)] if np.any(infinite) else _LARGEST - low
    return np.append(low + np.geomspace(start, end, _TAIL_POINTS), _LARGEST)
