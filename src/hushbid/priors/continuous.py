"""Priors with a density: what follows from F and f alone.

A family that knows F, 1 − F and f is a prior; `ContinuousPrior` finds the rest numerically. A family overrides what it
knows better: its quantiles, or its markup F/f in a form that keeps its digits far in the tails.

- **Quantiles** are roots of log F or log (1 − F), whichever tail is smaller, between neighbouring powers of two.
- **The markup** comes from logarithms; where F has lost its digits, at the very bottom of a support (the integral of f
  shows it), it is continued in proportion to the distance from the low end.
- **The virtual cost** is ironed where it falls, unless a theorem forbids that (`_always_regular`).
"""

import math
from abc import abstractmethod
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray
from hushbid.priors.base import Prior, finite, number_text, plain_number
from hushbid.priors.ironing import FlatPart, Ironed, iron
from hushbid.priors.tables import IncreasingTable, grid_points, increasing_root, integrals

_SMALLEST_MASS, _SMALL_MASS, _DIGITS_LEFT, _TAIL = 1e-280, 1e-6, 1e-9, 1e-8
_POWERS = 2.0 ** np.arange(-1000.0, 1000.0)
_DESCENT = 2.0 ** -np.arange(0.0, 120.0, 0.125)

ROUNDING_OF_RATIO = 1e-13
"""The rounding error of a markup that is computed from F and f alone, as a share of a typical cost."""


class ContinuousPrior(Prior):
    """A prior with a density. A family gives its support, `_cdf` and `_log_pdf`."""

    _noise_share: ClassVar[float] = 0.0
    """The absolute rounding error of the virtual cost, as a share of a typical cost."""

    @abstractmethod
    def _log_pdf(self, c: FloatArray) -> FloatArray: ...

    def _pdf(self, c: FloatArray) -> FloatArray:
        return np.exp(self._log_pdf(c))

    def _survival(self, c: FloatArray) -> FloatArray:
        """Return 1 − F; a family overrides it that keeps the digits where F is close to one."""
        return 1.0 - self._cdf(c)

    # -- F and f outside the support ----------------------------------------------------------------------------------

    def _survival_everywhere(self, c: FloatArray) -> FloatArray:
        low, high = self.support
        inside = self._survival(np.clip(c, low, finite(high)))
        return np.where(c < low, 1.0, np.where(c >= high, 0.0, np.clip(inside, 0.0, 1.0)))

    def _log_pdf_everywhere(self, c: FloatArray) -> FloatArray:
        low, high = self.support
        outside = (c < low) | (c > high) | (c == np.inf)
        return np.where(outside, -np.inf, self._log_pdf(np.clip(c, low, finite(high))))

    @cached_property
    def expectation(self) -> float:
        """The expected cost: the low end and the integral of 1 − F.

        Beyond the last level at which 1 − F has its digits, it is taken to fall like the power of c that it falls like
        there; with a power of at most 1, the expectation is infinite.
        """
        with np.errstate(all="ignore"):
            low, high = self.support
            last = np.array([high]) if high < np.inf else self._quantile(np.array([1.0 - _TAIL]))
            cells = np.unique(np.concatenate([[low], self._grid(), last]))
            cells = cells[cells <= last]
            found = float(cells[0] + np.sum(integrals(self._survival, cells[:-1], cells[1:])))
            if high < np.inf:
                return found
            left = float((last * self._survival(last))[0])
            power = float((last * self._pdf(last) / self._survival(last))[0])
            return found + left / (power - 1.0) if power > 1.0 + _SMALL_MASS else np.inf

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self._quantile(rng.random(n))

    # -- quantiles ----------------------------------------------------------------------------------------------------

    def _quantile(self, q: FloatArray) -> FloatArray:
        points, below, above = self._ladder
        in_lower_tail, last = q < 0.5, points.size - 1
        rung = np.where(
            in_lower_tail, np.searchsorted(below, q, side="right"), np.searchsorted(-above, q - 1.0, side="right")
        )
        left, right = points[np.maximum(rung - 1, 0)], points[np.minimum(rung, last)]
        answer = np.where(q <= 0.0, points[0], np.where(q >= 1.0, self.support[1], right))
        rows = np.flatnonzero((left < right) & (q > 0.0) & (q < 1.0))
        answer[rows] = increasing_root(self._tail_excess, left[rows], right[rows], q[rows])
        # across a gap F is flat: the smallest point is the end of the mass before it
        ends = np.array(sorted({*self._mass_ends} - {np.inf}))
        reached = np.searchsorted(np.maximum.accumulate(self._cdf(ends)), q, side="left")
        return np.asarray(np.minimum(answer, np.append(ends, np.inf)[reached]))

    def _tail_excess(self, c: FloatArray, level: FloatArray) -> FloatArray:
        """Return how far c is above the quantile at ``level``, on the logarithm of the smaller tail."""
        lower = level < 0.5
        excess = np.empty_like(c)
        excess[lower] = np.log(self._cdf(c[lower])) - np.log(level[lower])
        excess[~lower] = np.log1p(-level[~lower]) - np.log(self._survival(c[~lower]))
        return excess

    @cached_property
    def _ladder(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Points at powers of two from the low end, with the mass below and above each: they bracket every quantile."""
        low, high = self.support
        points = np.unique(np.clip(low + np.append(0.0, _POWERS), low, finite(high)))
        below, above = self._cdf(points), self._survival(points)
        return points, np.maximum.accumulate(below), np.minimum.accumulate(above)

    @cached_property
    def _typical(self) -> float:
        """The distance of the median from the low end, within a factor of two."""
        points, below, _ = self._ladder
        return float(points[np.argmax(below >= 0.5)] - points[0])

    @property
    def _mass_ends(self) -> tuple[float, ...]:
        """The right ends of stretches that hold all the mass: of the support, and before every gap inside it."""
        return (self.support[1],)

    # -- the markup F/f -----------------------------------------------------------------------------------------------

    def _markup(self, c: FloatArray) -> FloatArray:
        """Return F/f inside the support: no overflow before the true value does, and its limit, 0, at the low end."""
        low = self.support[0]
        raised = np.maximum(c, self._bottom)
        # what is no number is below the median 0, above it infinite
        markup = np.exp(np.log(self._cdf(raised)) - self._log_pdf(raised))
        markup = np.where(np.isnan(markup), np.where(raised - low < self._typical, 0.0, np.inf), markup)
        share = np.where(c < self._bottom, (c - low) / (self._bottom - low), 1.0)
        return np.where(c <= low, 0.0, share * markup)

    @cached_property
    def _bottom(self) -> float:
        """The cost below which F has lost its digits and F/f is continued in proportion."""
        low = self.support[0]
        # the integral of f from the low end, on geometric cells
        edges = low + self._typical * _DESCENT
        pieces = integrals(self._pdf, edges[1:], edges[:-1])
        integral = np.cumsum(pieces[::-1])[::-1]
        mass = self._cdf(edges[:-1])
        # where F disagrees with it, though tiny, or is about to underflow
        lost = ~(np.abs(mass - integral) <= _DIGITS_LEFT * integral) & (mass < _SMALL_MASS)
        lost |= mass < _SMALLEST_MASS
        return float(edges[np.argmax(lost)]) if np.any(lost) else low

    # -- the virtual cost, ironed -------------------------------------------------------------------------------------

    _regular_family: ClassVar[bool] = False
    """Whether a theorem says that the raw virtual cost is nondecreasing, whatever the parameters."""

    @property
    def _always_regular(self) -> bool:
        """Whether a theorem says that the raw virtual cost is nondecreasing; else it is examined numerically."""
        return self._regular_family

    @property
    def _uses_table(self) -> bool:
        """Whether virtual costs come from a table that irons them and smooths their rounding."""
        return not self._always_regular

    @property
    def is_regular(self) -> bool:
        return self._always_regular or not self._ironed.flat_parts

    @property
    def flat_parts(self) -> tuple[FlatPart, ...]:
        return () if self._always_regular else self._ironed.flat_parts

    def _raw_virtual_cost(self, c: FloatArray) -> FloatArray:
        inside, above = self._split(c)
        return np.where(above, np.inf, inside + self._markup(inside))

    def _virtual_cost(self, c: FloatArray) -> FloatArray:
        return self._tabulated(c) if self._uses_table else self._raw_virtual_cost(c)

    def _tabulated(self, c: FloatArray) -> FloatArray:
        inside, above = self._split(c)
        # the table rounds bids down a little, and a virtual cost is never below the bid
        return np.where(above, np.inf, np.maximum(self._ironed.table(inside), inside))

    def _virtual_cost_inverse(self, x: FloatArray) -> FloatArray:
        # regular priors too: their table is made when first asked for
        table = self._ironed.table
        return np.where(x >= table.costs[-1], self.support[1], table.inverse(x))

    def _split(self, c: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return bids moved into the support where they are above it, and whether they were."""
        high = self.support[1]
        return np.minimum(c, finite(high)), (c > high) | (c == np.inf)

    @property
    def _noise(self) -> float:
        """The absolute size of rounding errors in the virtual cost, beside the relative ones."""
        return self._noise_share * self._typical if self._noise_share else 0.0

    @property
    def _most_branches(self) -> int:
        """With more rising stretches than this, turns of the virtual cost are taken for rounding, up to a limit."""
        return 50

    def _grid(self) -> FloatArray:
        """Return points that show every feature of the prior, over the whole support."""
        return grid_points(self)

    def _quickened(self, ironed: Ironed) -> Ironed:
        """Return an ironed virtual cost that is evaluated faster, where a family has one."""
        return ironed

    @cached_property
    def _ironed(self) -> Ironed:
        with np.errstate(all="ignore"):
            points = self._grid()
            if self._uses_table:
                return self._quickened(iron(self, points))
            costs = np.maximum.accumulate(self._raw_virtual_cost(points))
        return Ironed(IncreasingTable(self._raw_virtual_cost, points, costs), ())


class ParametricPrior(ContinuousPrior):
    """A family that a few named numbers describe: a frozen dataclass whose fields are floats."""

    @property
    def support(self) -> tuple[float, float]:
        """The interval [low, high] of the fields of these names, or [0, inf)."""
        return getattr(self, "low", 0.0), getattr(self, "high", math.inf)

    def to_dict(self) -> dict[str, Any]:
        return {"family": self.family} | {name: plain_number(getattr(self, name)) for name in self.parameter_names()}

    def to_text(self) -> str:
        return f"{self.family}:" + ",".join(number_text(getattr(self, name)) for name in self.parameter_names())

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the parameters, in the order of the constructor and of the text form."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    def _set(self, **parameters: float) -> None:
        for name, value in parameters.items():
            object.__setattr__(self, name, value)
