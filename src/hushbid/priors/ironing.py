"""Ironing: the nondecreasing virtual cost that replaces one that falls somewhere.

With quantile q = F(c), H(q) = q·c is what it costs to buy from everybody up to c, and ψ = dH/dq. The ironed virtual
cost is the slope of the greatest convex minorant of H. Equivalently (and this is how it is computed) a buyer who values
a unit at λ posts the price c that maximises (λ − c)·F(c), and the ironed virtual cost is the inverse of that price as a
function of λ. So:

1. ψ is cut into *branches* on which it is nondecreasing.
2. On branch k the best price c_k(λ) solves ψ(c) = λ, and its profit (λ − c_k)·F(c_k) has slope F(c_k) in λ. A higher
   branch has the larger F, so the profits of two branches cross exactly once.
3. The upper envelope of the profits is found as for straight lines. Where it passes from one branch to another at λ,
   the ironed virtual cost is constant, equal to λ, from one price to the other. By step 2, Newton's step for the
   crossing is the slope of the chord of H between the two prices.

Densities may vanish (a gap between the components of a mixture: ψ is infinite there) and may jump.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.priors.tables import Curve, IncreasingTable

_NOISE = 1e-11
_LARGEST_NOISE = 1e-5
_MOST_PARTS = 64
_LARGEST_STEP = math.log(1.25)
_REFINEMENTS = 6
_MOST_REFINED = 64
_SPLIT = np.arange(1.0, 8.0) / 8.0
_CROSSING_STEPS = 200
_ULP = float(np.finfo(np.float64).eps)

FlatPart = tuple[float, float, float]
"""A maximal interval on which the virtual cost is constant: (left end, right end, virtual cost)."""


Span = tuple[int, int]
"""The first and the last place of a stretch on which the virtual cost rises."""


class Distribution(Curve, Protocol):
    """What ironing needs to know about a prior."""

    @property
    def _noise(self) -> float:
        """The absolute size of rounding errors in the virtual cost, beside the relative ones."""
        ...

    @property
    def _most_branches(self) -> int:
        """With more branches than this, turns of the virtual cost are taken for rounding."""
        ...

    def _cdf(self, c: FloatArray) -> FloatArray: ...

    def _survival(self, c: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Ironed:
    """An ironed virtual cost: the table that evaluates it, and the intervals on which it is constant."""

    table: IncreasingTable
    flat_parts: tuple[FlatPart, ...]


def iron(prior: Distribution, points: FloatArray) -> Ironed:
    """Return the ironed virtual cost of a prior, looked at first in ``points`` (ascending, over the whole support)."""
    with np.errstate(all="ignore"):
        # step 1: branches on which ψ rises
        rises = _Rises.of(prior, *_without_end(prior, *_refined(prior, points)))
        # steps 2 and 3: the branches on the upper envelope of profits
        return rises.assembled(*envelope(rises.spans, rises.crossing))


def _refined(prior: Distribution, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return points and virtual costs, with more points where the virtual cost turns or might turn unseen."""
    costs = prior._raw_virtual_cost(points)
    points, costs = _merged(prior, points, costs, _small_steps(points, costs))
    for _ in range(_REFINEMENTS):
        rises = np.diff(costs)
        slopes = np.where(np.isnan(rises), 0.0, rises) / np.diff(points)
        falling = slopes < 0.0
        turns = np.flatnonzero(falling[1:] != falling[:-1])
        # F/f grows where the slope exceeds one, so only a dip below one can hide a fall between two points
        dips = 1 + np.flatnonzero((slopes[1:-1] < 1.0) & (slopes[1:-1] < slopes[:-2]) & (slopes[1:-1] <= slopes[2:]))
        # the deepest dips and the sharpest turns, with a cell to either side, cut in eight
        dips = dips[np.argsort(slopes[dips])[:_MOST_REFINED]]
        turns = turns[np.argsort(-np.abs(slopes[turns + 1] - slopes[turns]))[:_MOST_REFINED]]
        cells = np.unique(np.concatenate([turns, turns + 1, dips - 1, dips, dips + 1]))
        cells = cells[(cells >= 0) & (cells < slopes.size)]
        starts, widths = points[cells, None], np.diff(points)[cells, None]
        points, costs = _merged(prior, points, costs, np.ravel(starts + widths * _SPLIT))
    return points, costs


def _without_end(prior: Distribution, points: FloatArray, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Remove falls where F has rounded to one: they concern nobody, and a density there may be mere noise."""
    end = int(np.argmax(np.append(prior._cdf(points) >= 1.0, True)))
    return points, np.append(costs[:end], np.maximum.accumulate(costs[end:]))


def _small_steps(points: FloatArray, costs: FloatArray) -> FloatArray:
    """Return points that split every step by which the point or its virtual cost grows by more than a quarter."""
    steps = np.maximum(np.diff(np.log(points)), np.abs(np.diff(np.log(costs))))
    cells = np.flatnonzero((steps > _LARGEST_STEP) & (steps < np.inf))
    # so many parts of each step, evenly in the logarithm
    counts = np.minimum(np.ceil(steps[cells] / _LARGEST_STEP), _MOST_PARTS).astype(np.intp)
    which = np.repeat(cells, counts)
    part = np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)
    shares = part / np.repeat(counts, counts)
    return np.asarray(points[which] * (points[which + 1] / points[which]) ** shares)


def _merged(
    prior: Distribution, points: FloatArray, costs: FloatArray, more: FloatArray
) -> tuple[FloatArray, FloatArray]:
    fresh = np.setdiff1d(more, points)
    order = np.argsort(np.concatenate([points, fresh]))
    costs = np.concatenate([costs, prior._raw_virtual_cost(fresh)])
    return np.concatenate([points, fresh])[order], costs[order]


@dataclass(frozen=True, slots=True, eq=False)
class _Rises:
    """The stretches on which a virtual cost rises, in one table whose costs rise within each."""

    prior: Distribution
    table: IncreasingTable
    spans: list[Span]

    @classmethod
    def of(cls, prior: Distribution, points: FloatArray, costs: FloatArray) -> "_Rises":
        """Cut at the turns of the virtual cost, falls that may be mere rounding ignored."""
        noise, spans = _NOISE, _rising_spans(costs.tolist(), _NOISE, prior._noise)
        # so many turns are rounding: call larger ones noise, up to a limit
        while len(spans) > prior._most_branches and noise < _LARGEST_NOISE:
            noise *= 10.0
            spans = _rising_spans(costs.tolist(), noise, prior._noise)
        for first, last in spans:
            costs[first : last + 1] = np.maximum.accumulate(costs[first : last + 1])
        return cls(prior, IncreasingTable(prior._raw_virtual_cost, points, costs), spans)

    def prices(self, spans: Sequence[Span], levels: Sequence[float]) -> list[float]:
        """Return the best price on each span at its level: the largest with that virtual cost, or the first point."""
        firsts, lasts = np.array(spans, dtype=np.intp).reshape(-1, 2).T
        found = [
            first + int(np.searchsorted(self.table.costs[first : last + 1], level, side="right")) - 1
            for (first, last), level in zip(spans, levels, strict=True)
        ]
        return list(map(float, self.table.within(np.array(found, dtype=np.intp), np.array(levels), firsts, lasts)))

    def crossing(self, lower: Span, upper: Span) -> float:
        """Return the level at which the best prices on two spans earn the same."""
        start = float(self.table.costs[upper[0]])
        return crossing_level(lambda level: self._chord(*self.prices([lower, upper], [level, level])), start)

    def _chord(self, left: float, right: float) -> float:
        """Return the slope of the chord of H between two prices; infinite if nobody's cost lies between them."""
        ends = np.array([left, right])
        below, above = self.prior._cdf(ends), self.prior._survival(ends)
        # the mass between, from whichever tail keeps its digits
        between = above[0] - above[1] if below[0] > 0.5 else below[1] - below[0]
        return math.inf if between <= 0.0 else float(right + (right - left) * (below[0] / between))

    def assembled(self, chosen: list[Span], levels: list[float]) -> Ironed:
        """Join the spans on the envelope to one table, with a constant stretch between each and the next."""
        points = self.table.points
        # where each span gives way to the next, and where the next begins: flat between
        rights = [*self.prices(chosen[:-1], levels), float(points[chosen[-1][1]])]
        lefts = [float(points[chosen[0][0]]), *self.prices(chosen[1:], levels)]
        pieces = [
            self._piece(*piece)
            for piece in zip(chosen, lefts, rights, [-math.inf, *levels], [*levels, math.inf], strict=True)
        ]
        # one table; rounding must not let it fall
        points, first = np.unique(np.concatenate([points for points, _ in pieces]), return_index=True)
        costs = np.maximum.accumulate(np.concatenate([costs for _, costs in pieces])[first])
        flat_parts = tuple(zip(rights[:-1], lefts[1:], levels, strict=True))
        return Ironed(IncreasingTable(self.prior._raw_virtual_cost, points, costs), flat_parts)

    def _piece(
        self, span: Span, left: float, right: float, floor: float, ceiling: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return points and costs of a span between two flat parts, and the first point of the flat part after it."""
        inside = self.table.points[span[0] : span[1] + 1]
        points = np.concatenate([[left], inside[(inside > left) & (inside < right)], [right]])
        costs = np.clip(self.prior._raw_virtual_cost(points), floor, ceiling)
        if floor > -math.inf:
            costs[0] = floor
        if ceiling == math.inf:
            return points, costs
        # just above its left end a flat part has its level, even if the virtual cost jumps there
        return np.append(points, np.nextafter(right, math.inf)), np.append(costs, ceiling)


def _rising_spans(values: list[float], relative: float, absolute: float) -> list[tuple[int, int]]:
    """Return the first and last index of every rise, where a turn counts if it exceeds the tolerance."""
    spans: list[tuple[int, int]] = []
    start, extreme, rising = 0, 0, True
    for i, value in enumerate(values):
        if rising and value >= values[extreme]:
            extreme = i
        elif rising and value < values[extreme] * (1.0 - relative) - absolute:
            spans.append((start, extreme))  # a fall: the rise ended at the extreme
            extreme, rising = i, False
        elif not rising and value <= values[extreme]:
            extreme = i
        elif not rising and value > values[extreme] * (1.0 + relative) + absolute:
            start, extreme, rising = extreme, i, True  # a rise: it began at the extreme
    spans.append((start if rising else extreme, len(values) - 1))
    return spans


def envelope(branches: Sequence[Span], crossing: Callable[[Span, Span], float]) -> tuple[list[Span], list[float]]:
    """Return the branches on the upper envelope of profits, and the levels at which each gives way to the next."""
    chosen, levels = list(branches[:1]), [-math.inf]
    for branch in branches[1:]:
        level = crossing(chosen[-1], branch)
        # the last one is overtaken before it leads: it is not on the envelope
        while level <= levels[-1]:
            chosen.pop()
            levels.pop()
            level = crossing(chosen[-1], branch)
        chosen.append(branch)
        levels.append(level)
    return chosen, levels[1:]


def crossing_level(chord: Callable[[float], float], start: float) -> float:
    """Return the level λ at which the best prices on two branches earn the same.

    ``chord(λ)`` is the slope of the chord of H between the two prices that are best at λ: Newton's step.
    """
    smallest, largest = 0.0, math.inf
    level = max(start, float(np.finfo(np.float64).tiny))
    for _ in range(_CROSSING_STEPS):
        found = chord(level)
        if level < found:
            smallest = level
        else:
            largest = level
        if abs(found - level) <= 2.0 * _ULP * level or largest - smallest <= 2.0 * _ULP * level:
            return min(found, largest)
        # outside the bracket: double or halve
        if smallest < found < largest:
            level = found
        else:
            level = 2.0 * smallest if largest == math.inf else 0.5 * (smallest + largest)
    return level
