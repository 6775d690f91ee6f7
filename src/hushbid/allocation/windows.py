"""What two passes over the costs of one stratum add up: finer buckets, and exact sums with a window of listed costs.

The first pass of all is a `hushbid.allocation.histogram.Histogram`. It bounds where the water level is
(:mod:`hushbid.allocation.bracket`). If too many people are left between the bounds, `Refine` places finer buckets
there; `Listing` then brings exact sums below a window around the level, and every cost inside it. All of these are
sums: they come out the same in whatever batches they were made.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.exact_sums import ExactSums
from hushbid.allocation.histogram import Histogram
from hushbid.common.arrays import FloatArray, IntArray

Interval = tuple[float, float]
_MANY = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined:
    """A finer histogram of some intervals of costs, and exact sums of the people below each but above the last."""

    below: tuple[ExactSums, ...]
    histogram: Histogram

    def __add__(self, other: "Refined") -> "Refined":
        """Both populations together."""
        below = tuple(mine + theirs for mine, theirs in zip(self.below, other.below, strict=True))
        return Refined(below=below, histogram=self.histogram + other.histogram)


@dataclass(frozen=True, slots=True)
class Refine:
    """Finer buckets over some intervals of costs."""

    parts: tuple[Interval, ...]  # the intervals, ascending, each of whole buckets
    shift: int  # how many low bits of a cost a bucket spans

    @classmethod
    def over(cls, intervals: Sequence[Interval], *, buckets: int) -> "Refine":
        """Over some intervals, a little widened, with about so many buckets in all."""
        # as fine as so many buckets allow
        shift, ends = 16, [(low * (1.0 - 1e-9), high * (1.0 + 1e-9)) for low, high in intervals]
        while sum(_bits(high, shift) - _bits(low, shift) + 1 for low, high in ends) > max(buckets, 2 * len(ends)):
            shift += 1
        parts: list[Interval] = []
        for low, high in ends:
            # whole buckets; intervals that touch become one
            first, last = _edge(_bits(low, shift), shift), _edge(_bits(high, shift) + 1, shift)
            if parts and first <= parts[-1][1]:
                before = parts.pop()
                first, last = before[0], max(before[1], last)
            parts.append((first, last))
        return cls(tuple(parts), shift)

    @property
    def nobody(self) -> Refined:
        """Where to start adding."""
        return Refined(below=(ExactSums({}),) * len(self.parts), histogram=Histogram.empty(self.shift))

    def of(self, costs: FloatArray) -> Refined:
        """Of some costs."""
        costs = costs.compress(costs < self.parts[-1][1])
        if len(self.parts) == 1:
            within = costs >= self.parts[0][0]
            below: tuple[ExactSums, ...] = (ExactSums.of(costs.compress(~within)),)
        else:
            # odd places are inside an interval, even ones below the next
            place = np.searchsorted(np.array(self.parts).ravel(), costs, side="right")
            within = place % 2 == 1
            below = tuple(ExactSums.of(costs.compress(place == 2 * part)) for part in range(len(self.parts)))
        return Refined(below=below, histogram=Histogram.of(costs.compress(within), self.shift))


def _bits(cost: float, shift: int) -> int:
    return int(np.float64(cost).view(np.int64)) >> shift


def _edge(bits: int, shift: int) -> float:
    return float(np.int64(bits << shift).view(np.float64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """Exact sums below a window of costs, and every cost inside with the number of people who have it."""

    below: ExactSums
    costs: FloatArray
    people: IntArray
    different: int = 0  # how many costs there were when equal ones were last put together

    @classmethod
    def nobody(cls) -> "Window":
        """Where to start adding."""
        return cls(below=ExactSums({}), costs=np.zeros(0), people=np.zeros(0, dtype=np.int64))

    def __add__(self, other: "Window") -> "Window":
        """Both populations together."""
        both = Window(
            below=self.below + other.below,
            costs=np.concatenate([self.costs, other.costs]),
            people=np.concatenate([self.people, other.people]),
            different=max(self.different, other.different),
        )
        # equal costs are put together only now and then: sorting takes longer than adding
        return both.settled() if both.costs.size > max(2 * both.different, _MANY) else both

    def settled(self) -> "Window":
        """With every cost once, ascending."""
        costs, places = np.unique(self.costs, return_inverse=True)
        people = np.zeros(costs.size, dtype=np.int64)
        np.add.at(people, places, self.people)
        return Window(below=self.below, costs=costs, people=people, different=costs.size)


@dataclass(frozen=True, slots=True)
class Listing:
    """The sums of costs from ``start`` to ``low``, and the costs from ``low`` to ``high``."""

    start: float
    low: float
    high: float

    @property
    def nobody(self) -> Window:
        """Where to start adding."""
        return Window.nobody()

    def of(self, costs: FloatArray) -> Window:
        """Of some costs."""
        inside, people = np.unique(
            costs.compress((costs >= max(self.start, self.low)) & (costs <= self.high)), return_counts=True
        )
        below = costs.compress((costs >= self.start) & (costs < self.low) & (costs <= self.high))
        return Window(below=ExactSums.of(below), costs=inside, people=people.astype(np.int64))
