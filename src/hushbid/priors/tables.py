"""Nondecreasing functions: their roots and integrals, tables of them, and where to place the points of a table."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray

_STEP = 1e-12
_TINY = float(np.finfo(np.float64).tiny)
_ULP = float(np.finfo(np.float64).eps)
_CLOSEST = 2.0 * float(np.finfo(np.float64).smallest_subnormal)
_HUGE = 1e300
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)


def increasing_root(
    function: Callable[..., FloatArray], left: FloatArray, right: FloatArray, *parameters: FloatArray
) -> FloatArray:
    """Return where each nondecreasing ``function(x, *parameters)`` becomes positive between ``left`` and ``right``.

    Values may be infinite and may jump: the answer is the last float found at which the function is not positive, a few
    units in the last place at most below the first at which it is. Each answer depends on its own row alone. At
    ``left`` the function counts as negative and at ``right`` as positive, whatever rounding says there.
    """
    if left.size == 0:
        return left
    from scipy.optimize.elementwise import find_root  # late: slow to import, and many priors need no roots

    def signed(x: FloatArray, start: FloatArray, end: FloatArray, *rest: FloatArray) -> FloatArray:
        value = np.clip(function(x, *rest), -_HUGE, _HUGE)
        value = np.where(x <= start, np.minimum(value, -_TINY), value)
        return np.where(x >= end, np.maximum(value, _TINY), value)

    with np.errstate(all="ignore"):
        found = find_root(
            signed,
            (left, right),
            args=(left, right, *parameters),
            tolerances={"xatol": _CLOSEST, "xrtol": 2.0 * _ULP, "fatol": 0.0, "frtol": 0.0},
        )
    (below, above), (_, value_above) = found.bracket, found.f_bracket
    return np.where(value_above <= 0.0, above, below)


def integrals(function: Callable[[FloatArray], FloatArray], left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the integral of a function over each of some intervals, by the rule of Gauss and Legendre."""
    half = 0.5 * (right - left)
    points = (left + half)[:, None] + half[:, None] * _NODES
    return np.asarray(half * (function(points.ravel()).reshape(points.shape) @ _NODE_WEIGHTS))


@dataclass(frozen=True, eq=False)
class IncreasingTable:
    """Ascending ``points``, the nondecreasing ``costs`` there, and the ``function`` that is evaluated between them.

    Between two points the function's values are clipped to the costs at those points, so where these are equal the
    result is constant, whatever the function says there.
    """

    function: Callable[[FloatArray], FloatArray]
    points: FloatArray
    costs: FloatArray

    def __call__(self, c: FloatArray) -> FloatArray:
        """Return the cost at each ``c`` between the first and the last point, never decreasing in c.

        Neighbouring floats could come out in the wrong order by an ulp or more. So the function is evaluated on a
        lattice whose steps raise the cost by about 1e-12 of itself: more than the noise, too little to matter.
        """
        cell = self._cell(self.points, c)
        start, end = self.points[cell], self.points[cell + 1]
        steps = self._steps[cell]
        # down to the lattice of the cell
        share = np.floor((c - start) / (end - start) * steps) / steps
        on_lattice = np.clip(start + share * (end - start), start, c)
        below, above = self.costs[cell], self.costs[cell + 1]
        # flat cells and ends have their tabulated cost
        result = np.where(c >= self.points[-1], self.costs[-1], below)
        rising = (below < above) & (start < c) & (c < self.points[-1])
        result[rising] = np.clip(self.function(on_lattice[rising]), below[rising], above[rising])
        return result

    def unrounded(self, c: FloatArray) -> FloatArray:
        """Return the cost at each ``c`` itself, not on the lattice: within rounding nondecreasing."""
        cell = self._cell(self.points, c)
        found = np.clip(self.function(c), self.costs[cell], self.costs[cell + 1])
        return np.where(c >= self.points[-1], self.costs[-1], found)

    @cached_property
    def _steps(self) -> FloatArray:
        with np.errstate(all="ignore"):
            growth = self.costs[1:] / self.costs[:-1] - 1.0
        return np.where(np.isfinite(growth), np.maximum(np.ceil(growth / _STEP), 1.0), 1.0 / _STEP)

    def inverse(self, x: FloatArray) -> FloatArray:
        """Return the largest c with a cost of at most ``x``; the first point if there is none."""
        return self.within(np.searchsorted(self.costs, x, side="right") - 1, x, 0, self.points.size - 1)

    def within(self, cell: IndexArray, x: FloatArray, first: IndexArray | int, last: IndexArray | int) -> FloatArray:
        """Return the largest c between two points with a cost of at most ``x``, given the last point with such a cost.

        Costs need to rise only between those points. If no cost is at most ``x``, the cell is below the first point.
        """
        answer = self.points[np.maximum(cell, first)]
        # between two points the function decides
        rows = np.flatnonzero((cell >= first) & (cell < last) & (self.costs[cell] < x))
        inside = cell[rows]

        def excess(c: FloatArray, below: FloatArray, above: FloatArray, level: FloatArray) -> FloatArray:
            return np.clip(self.function(c), below, above) - level

        ends, costs = (self.points[inside], self.points[inside + 1]), (self.costs[inside], self.costs[inside + 1])
        answer[rows] = increasing_root(excess, *ends, *costs, x[rows])
        return answer

    @staticmethod
    def _cell(edges: FloatArray, c: FloatArray) -> IndexArray:
        return np.clip(np.searchsorted(edges, c, side="right") - 1, 0, edges.size - 2)


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
    """Return ascending points of the support, from its low end to its high end or to where the virtual cost overflows.

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
    """Return points from the last quantile that floats can name to where the virtual cost overflows."""
    start = max(last - low, _SMALLEST)
    # doubling, to find the end
    reach = start * 2.0 ** np.arange(1.0, 1100.0)
    reach = reach[low + reach < _LARGEST]
    infinite = prior._raw_virtual_cost(low + reach) == np.inf
    end = reach[np.argmax(infinite)] if np.any(infinite) else _LARGEST - low
    return np.append(low + np.geomspace(start, end, _TAIL_POINTS), _LARGEST)
