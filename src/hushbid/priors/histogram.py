"""`Histogram`: a density that is constant between edges, for instance from a published table of shares.

Edges e_0 < … < e_m and weights w_1, …, w_m ≥ 0, one for each bin. With W_j the weight of all bins before bin j, the
density in a bin with weight is proportional to w_j / (e_j − e_{j−1}), and the markup and the raw virtual cost are

    F/f = (c − e_{j−1}) + a_j,        ψ(c) = 2c − e_{j−1} + a_j,        a_j = (e_j − e_{j−1})·W_j / w_j.

So ψ rises with slope 2 inside every bin, jumps up where the density falls, jumps down where it rises, and is infinite
in a *gap*, a bin without weight. At an edge, f and ψ take their values from the left.

**Ironing.** H(q) = q·F⁻¹(q) is a convex parabola over each bin and jumps up at a gap. Bins between which ψ does not
fall make a branch, and the convex minorant of H is found from the branches as in `hushbid.priors.ironing`, but in
closed form: on a branch the best price at a level λ is known exactly, and so is the weight between two prices. The
ironed virtual cost is then a chain of segments, each rising with slope 2 or flat.
"""

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import fsum
from typing import Any, ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray, Numbers, refuse_rows
from hushbid.errors import PriorError
from hushbid.priors.base import number_text
from hushbid.priors.continuous import ContinuousPrior
from hushbid.priors.empirical import exact_integers
from hushbid.priors.inputs import to_vector
from hushbid.priors.ironing import FlatPart, Span, crossing_level, envelope
from hushbid.priors.tables import grid_points

_ROUNDING = 1e-12
_SHOWN = 8


class Histogram(ContinuousPrior):
    """Costs spread evenly within each bin; bins without weight are gaps, and cut off at either end.

    >>> prior = Histogram([0, 1, 2, 4], [1, 0, 3])
    >>> prior.cdf([1.0, 1.5, 3.0])
    array([0.25 , 0.25 , 0.625])
    >>> [tuple(round(number, 6) for number in part) for part in prior.flat_parts]
    [(1.0, 2.816497, 4.29966)]
    """

    family: ClassVar[str] = "histogram"

    def __init__(self, edges: Numbers, weights: Numbers) -> None:
        ends, masses = to_vector(edges, "edges"), to_vector(weights, "weights")
        if ends.size != masses.size + 1:
            problem = f"edges must be one more than weights, got {ends.size} edges for {masses.size} weights"
            raise PriorError(problem, field="edges")
        falls = np.append(False, np.diff(ends) <= 0.0)
        end = "not lie above the one before"
        refuse_rows(falls, "edges must rise", "does", end=end, field="edges", error=PriorError)
        some = np.flatnonzero(masses)
        with np.errstate(over="ignore"):
            whole = np.sum(masses)
        if not 0.0 < whole < np.inf:
            raise PriorError("weights must have a positive, finite sum", field="weights")
        self._edges, self._weights = ends[some[0] : some[-1] + 2], masses[some[0] : some[-1] + 1]
        for array in (self._edges, self._weights):
            array.setflags(write=False)

    @property
    def edges(self) -> FloatArray:
        """The ends of the bins, ascending; the first and the last bin have weight."""
        return self._edges

    @property
    def weights(self) -> FloatArray:
        """The weight of each bin, as given (they need not sum to one)."""
        return self._weights

    @property
    def support(self) -> tuple[float, float]:
        """From the lowest to the highest edge of a bin with weight."""
        return (float(self._edges[0]), float(self._edges[-1]))

    @property
    def expectation(self) -> float:
        return fsum(self._shares * (self._edges[:-1] + 0.5 * np.diff(self._edges)))

    @property
    def is_regular(self) -> bool:
        """Whether the raw virtual cost is nondecreasing: no gap, and densities that rise nowhere by much."""
        return not self._chain.flat_parts

    @property
    def flat_parts(self) -> tuple[FlatPart, ...]:
        return self._chain.flat_parts

    def to_dict(self) -> dict[str, Any]:
        return {"family": self.family, "edges": self._edges.tolist(), "weights": self._weights.tolist()}

    def to_text(self) -> str:
        """The prior as a text that `parse_prior` reads back: the lowest edge, then weight*edge: ``histogram:0,2*1``."""
        pairs = zip(self._weights.tolist(), self._edges[1:].tolist(), strict=True)
        bins = (f"{number_text(weight)}*{number_text(edge)}" for weight, edge in pairs)
        return f"{self.family}:" + ",".join([number_text(float(self._edges[0])), *bins])

    def _identity(self) -> Hashable:
        return self._edges.tobytes(), self._weights.tobytes()

    def __repr__(self) -> str:
        if self._weights.size > _SHOWN:
            low, high = self.support
            return f"Histogram({self._weights.size} bins from {low:.6g} to {high:.6g})"
        edges, weights = (", ".join(map(number_text, part.tolist())) for part in (self._edges, self._weights))
        return f"Histogram([{edges}], [{weights}])"

    # -- the distribution ---------------------------------------------------------------------------------------------

    @cached_property
    def _cumulative(self) -> list[int]:
        """The weight up to each edge, in exact arithmetic, as integers in one unit."""
        return [0, *accumulate(exact_integers(self._weights))]

    @cached_property
    def _levels(self) -> FloatArray:
        """The share of the weight up to each edge, each the float nearest to its exact value."""
        return np.array([part / self._cumulative[-1] for part in self._cumulative])

    @cached_property
    def _levels_above(self) -> FloatArray:
        whole = self._cumulative[-1]
        return np.array([(whole - part) / whole for part in self._cumulative])

    @cached_property
    def _shares(self) -> FloatArray:
        exact = self._cumulative
        return np.array([(after - before) / exact[-1] for before, after in pairwise(exact)])

    @cached_property
    def _markup_at_left(self) -> FloatArray:
        """a_j of every bin; infinite in a gap."""
        widths = np.diff(self._edges).tolist()
        ratios = (_ratio(before, after - before) for before, after in pairwise(self._cumulative))
        return np.array([width * ratio for width, ratio in zip(widths, ratios, strict=True)])

    def _bin(self, c: FloatArray) -> IndexArray:
        """Return the bin that ends at or after each c."""
        return np.clip(np.searchsorted(self._edges, c, side="left") - 1, 0, self._weights.size - 1)

    def _cdf(self, c: FloatArray) -> FloatArray:
        bin_ = self._bin(c)
        part = (c - self._edges[bin_]) / np.diff(self._edges)[bin_]
        return np.minimum(self._levels[bin_] + self._shares[bin_] * part, self._levels[bin_ + 1])

    def _survival(self, c: FloatArray) -> FloatArray:
        bin_ = self._bin(c)
        part = (self._edges[bin_ + 1] - c) / np.diff(self._edges)[bin_]
        return np.minimum(self._levels_above[bin_ + 1] + self._shares[bin_] * part, self._levels_above[bin_])

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        return np.asarray(np.log(self._shares / np.diff(self._edges))[self._bin(c)])

    def _quantile(self, q: FloatArray) -> FloatArray:
        # the first bin that reaches the level: never a gap
        bin_ = np.minimum(np.searchsorted(self._levels[1:], q, side="left"), self._weights.size - 1)
        left, right = self._edges[bin_], self._edges[bin_ + 1]
        part: FloatArray = (q - self._levels[bin_]) / self._shares[bin_]
        found: FloatArray = np.clip(left + part * (right - left), left, right)
        return np.where(q >= self._levels[bin_ + 1], right, found)

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self._quantile(rng.random(n))

    def _markup(self, c: FloatArray) -> FloatArray:
        bin_ = self._bin(c)
        return np.asarray(self._markup_at_left[bin_] + (c - self._edges[bin_]))

    @property
    def _most_branches(self) -> int:
        return super()._most_branches + int(self._weights.size)

    @property
    def _mass_ends(self) -> tuple[float, ...]:
        before_gap = np.append(self._weights[1:] == 0.0, True) & (self._weights > 0.0)
        return tuple(self._edges[1:][before_gap].tolist())

    def _grid(self) -> FloatArray:
        # as a component of a mixture
        inner = self._edges[1:-1]
        return np.unique(
            np.concatenate([grid_points(self), inner, np.nextafter(inner, -np.inf), np.nextafter(inner, np.inf)])
        )

    # -- the ironed virtual cost --------------------------------------------------------------------------------------

    @cached_property
    def _chain(self) -> "_Chain":
        bins = _Bins.of(self)
        chosen, levels = envelope(bins.branches(), bins.crossing)
        return _Chain.of(bins, chosen, levels)

    def _virtual_cost(self, c: FloatArray) -> FloatArray:
        inside, above = self._split(c)
        return np.where(above, np.inf, np.maximum(self._chain.cost(inside), inside))

    def _virtual_cost_inverse(self, x: FloatArray) -> FloatArray:
        return self._chain.inverse(x)


def _ratio(before: int, weight: int) -> float:
    """Return the quotient; infinity without a weight, and beyond all floats."""
    try:
        return before / weight
    except (OverflowError, ZeroDivisionError):
        return np.inf


_Place = tuple[int, float]
"""A bin, and a price in it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Bins:
    """The bins with weight, as plain numbers; weights are exact integers."""

    left: Sequence[float]
    right: Sequence[float]
    before: Sequence[int]
    weight: Sequence[int]
    start: Sequence[float]
    """ψ just above the left end of each."""

    @classmethod
    def of(cls, prior: Histogram) -> "_Bins":
        kept = np.flatnonzero(prior.weights).tolist()
        edges, exact, markup = prior.edges.tolist(), prior._cumulative, prior._markup_at_left.tolist()
        return cls(
            left=[edges[j] for j in kept],
            right=[edges[j + 1] for j in kept],
            before=[exact[j] for j in kept],
            weight=[exact[j + 1] - exact[j] for j in kept],
            start=[edges[j] + markup[j] for j in kept],
        )

    def end(self, j: int) -> float:
        """Return ψ at the right end of a bin."""
        return self.start[j] + 2.0 * (self.right[j] - self.left[j])

    def branches(self) -> list[Span]:
        """Return the branches: bins, together as long as ψ does not fall by more than rounding and there is no gap."""
        found, first = [], 0
        for j in range(1, len(self.left)):
            if self.left[j] > self.right[j - 1] or self.start[j] < self.end(j - 1) * (1.0 - _ROUNDING):
                found.append((first, j - 1))
                first = j
        return [*found, (first, len(self.left) - 1)]

    def price(self, branch: Span, level: float) -> _Place:
        """Return the largest price on a branch with a virtual cost of at most ``level``, or its left end."""
        first, last = branch
        j = max(bisect_right(self.start, level, first, last + 1) - 1, first)
        return j, min(max(self.left[j] + 0.5 * (level - self.start[j]), self.left[j]), self.right[j])

    def crossing(self, lower: Span, upper: Span) -> float:
        """Return the level at which the best prices on two branches earn the same."""
        return crossing_level(
            lambda level: self._chord(self.price(lower, level), self.price(upper, level)), self.start[upper[0]]
        )

    def _chord(self, one: _Place, other: _Place) -> float:
        """Return the slope of the chord of H between two prices; every weight is a sum of positive parts."""
        (i, c), (j, d) = one, other
        below = self._share(self.before[i]) + self._part(i, c - self.left[i])
        whole = self._share(self.before[j] - self.before[i] - self.weight[i])
        between = self._part(i, self.right[i] - c) + whole + self._part(j, d - self.left[j])
        return d + (d - c) * (below / between) if between > 0 else float("inf")

    def _part(self, j: int, length: float) -> float:
        return self._share(self.weight[j]) * (length / (self.right[j] - self.left[j]))

    def _share(self, weight: int) -> float:
        return weight / (self.before[-1] + self.weight[-1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Chain:
    """The ironed virtual cost: segments (left, right], each rising with slope 2 or flat."""

    left: FloatArray
    right: FloatArray
    start: FloatArray
    end: FloatArray
    rises: FloatArray
    """2 or 0."""

    flat_parts: tuple[FlatPart, ...]

    @classmethod
    def of(cls, bins: _Bins, chosen: list[Span], levels: list[float]) -> "_Chain":
        segments: list[tuple[float, float, float, float, float]] = []
        flat: list[FlatPart] = []
        floors, ceilings = [-np.inf, *levels], [*levels, np.inf]
        for branch, floor, ceiling in zip(chosen, floors, ceilings, strict=True):
            (first, c), (last, d) = bins.price(branch, floor), bins.price(branch, ceiling)
            # a flat part up to here, from where the branch before was left
            if segments and segments[-1][1] < c:
                flat.append((segments[-1][1], c, floor))
                segments.append((segments[-1][1], c, floor, floor, 0.0))
            for j in range(first, last + 1):
                left, right = max(bins.left[j], c), min(bins.right[j], d)
                start = max(bins.start[j] + 2.0 * (left - bins.left[j]), segments[-1][3] if segments else 0.0)
                if left < right:
                    segments.append((left, right, start, min(start + 2.0 * (right - left), ceiling), 2.0))
        columns = (np.array(column) for column in zip(*segments, strict=True))
        left_, right_, start_, end_, rises = columns
        return cls(left=left_, right=right_, start=start_, end=end_, rises=rises, flat_parts=tuple(flat))

    def cost(self, c: FloatArray) -> FloatArray:
        """Return the virtual cost at each c of the support."""
        k = np.minimum(np.searchsorted(self.right, c, side="left"), self.right.size - 1)
        return np.minimum(self.start[k] + self.rises[k] * (c - self.left[k]), self.end[k])

    def inverse(self, x: FloatArray) -> FloatArray:
        """Return the largest c with a virtual cost of at most ``x``; the low end if there is none."""
        k = np.maximum(np.searchsorted(self.start, x, side="right") - 1, 0)
        reached = np.where(self.rises[k] > 0.0, self.left[k] + 0.5 * (x - self.start[k]), self.right[k])
        return np.where(x >= self.end[k], self.right[k], np.clip(reached, self.left[k], self.right[k]))
