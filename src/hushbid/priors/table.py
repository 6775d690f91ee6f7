"""A nondecreasing function known at many points and computable in between."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushbid.arrays import FloatArray, IndexArray
from hushbid.priors.root_finding import solve_increasing

_STEP = 1e-12


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
        """The cost at each ``c`` between the first and the last point, never decreasing in c.

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

    @cached_property
    def _steps(self) -> FloatArray:
        with np.errstate(all="ignore"):
            growth = self.costs[1:] / self.costs[:-1] - 1.0
        return np.where(np.isfinite(growth), np.maximum(np.ceil(growth / _STEP), 1.0), 1.0 / _STEP)

    def inverse(self, x: FloatArray) -> FloatArray:
        """The largest c with a cost of at most ``x``; the first point if there is none."""
        found = np.searchsorted(self.costs, x, side="right") - 1
        answer = self.points[np.maximum(found, 0)]
        # between two points the function decides
        open_rows = np.flatnonzero((found >= 0) & (found < self.points.size - 1) & (self.costs[found] < x))
        if open_rows.size:
            answer[open_rows] = self._solve(found[open_rows], x[open_rows])
        return answer

    def _solve(self, cell: IndexArray, x: FloatArray) -> FloatArray:
        below, above = self.costs[cell], self.costs[cell + 1]
        return solve_increasing(
            lambda rows, c: np.clip(self.function(c), below[rows], above[rows]) - x[rows],
            self.points[cell],
            self.points[cell + 1],
            at_left=below - x,
            at_right=above - x,
        )

    @staticmethod
    def _cell(edges: FloatArray, c: FloatArray) -> IndexArray:
        return np.clip(np.searchsorted(edges, c, side="right") - 1, 0, edges.size - 2)
