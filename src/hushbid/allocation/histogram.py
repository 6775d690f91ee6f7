"""Counts and moments of costs in buckets of equal leading bits: sparse, additive, in 64-bit integers.

A cost's bucket is its bit pattern shifted right: that is monotone, needs no search, and spaces buckets evenly in the
logarithm. Its place inside, rounded down to `OFFSET_BITS` bits, is an integer. So all sums are integers: the same
whatever the order, the batches or the machine. Buckets that hold nobody are left out, so no range need be known before.
Overflow cannot happen: squares of offsets have 28 bits, and 2**34 people's fit in 62.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.exact_sums import ExactSums
from hushbid.common.arrays import FloatArray, IntArray

OFFSET_BITS = 14
COARSE = 46  # with so many low bits in a bucket there are 64 buckets per power of two
MOST_PEOPLE = 1 << 34
_BLOCK = 1 << 16
_EMPTY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """Sums over the people below each of some ascending levels, in normal form, with how far they may be off."""

    level: FloatArray  # the levels
    mass: FloatArray  # how many people lie below each
    first: FloatArray  # the sum of their costs above origin, at least
    second: FloatArray  # the sum of the squares of their costs above origin, at least
    rounding: FloatArray  # by how much first may be too small
    origin: float  # no cost is below this

    def below(self, most: float) -> "Levels":
        """Return the levels up to this one."""
        some = slice(int(self.level.searchsorted(most, side="right")))
        sums = {name: getattr(self, name)[some] for name in ("level", "mass", "first", "second", "rounding")}
        return Levels(**sums, origin=self.origin)


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Per bucket that holds somebody: how many, and the sums of their offsets and of the squares of them."""

    shift: int
    keys: IntArray
    count: IntArray
    first: IntArray
    second: IntArray

    @classmethod
    def empty(cls, shift: int) -> "Histogram":
        """Nobody yet."""
        return cls(shift, _EMPTY, _EMPTY, _EMPTY, _EMPTY)

    @classmethod
    def of(cls, costs: FloatArray, shift: int) -> "Histogram":
        """The histogram of one array of finite costs."""
        found = cls.empty(shift)
        for start in range(0, costs.size, _BLOCK):
            # the leading bits are the bucket, the next ones the place in it
            place = np.ascontiguousarray(costs[start : start + _BLOCK]).view(np.int64) >> (shift - OFFSET_BITS)
            index = place >> OFFSET_BITS
            lowest = int(index.min())
            index -= lowest
            offset = (place & ((1 << OFFSET_BITS) - 1)).astype(np.float64)
            count = np.bincount(index)
            keys = np.flatnonzero(count)
            first = np.bincount(index, offset)[keys].astype(np.int64)
            offset *= offset
            second = np.bincount(index, offset)[keys].astype(np.int64)
            found = found + cls(shift, keys + lowest, count[keys], first, second)
        return found

    def __add__(self, other: "Histogram") -> "Histogram":
        """The histogram of both populations together."""
        if not self.keys.size or not other.keys.size:
            return other if other.keys.size else self
        keys, places = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        sums = np.zeros((3, keys.size), dtype=np.int64)
        here, there = places[: self.keys.size], places[self.keys.size :]
        for row, name in zip(sums, ("count", "first", "second"), strict=True):
            row[here] = getattr(self, name)
            row[there] += getattr(other, name)
        return Histogram(self.shift, keys, *sums)

    @property
    def people(self) -> int:
        """How many there are."""
        return int(self.count.sum())

    def cut_after(self, people: int) -> float:
        """The lowest bucket edge with at least so many people below it, or the highest edge."""
        last = int(np.searchsorted(np.cumsum(self.count), people))
        return float(self._edges(1)[min(last, self.keys.size - 1)])

    def below(self, cut: float) -> int:
        """At least as many people as lie below a cost: whole buckets."""
        return int(self.count[self._edges(0) <= cut].sum())

    def most_different(self, low: float, high: float) -> int:
        """At most about so many different costs lie in an interval: people with one offset count as having one cost."""
        inside = (self._edges(1) >= low) & (self._edges(0) <= high)
        sums = zip(*(x[inside].tolist() for x in (self.count, self.first, self.second)), strict=True)
        return sum(1 if count * second == first * first else count for count, first, second in sums)

    def levels(
        self, scale: float, lowest: float, below: Sequence[tuple[float, ExactSums]] = (), ends: Sequence[float] = ()
    ) -> Levels:
        """Sums at the buckets' edges, and at ``ends``, in normal form.

        ``below`` adds people who lie below a level and in no bucket.
        """
        origin = lowest / scale
        left, right = self._edges(0) / scale, self._edges(1) / scale
        before, grain = left - origin, (right - left) / (1 << OFFSET_BITS)
        count, first, second = (x.astype(float) for x in (self.count, self.first, self.second))
        # a cost is its bucket's left edge, plus place times grain, plus at most one grain
        terms = (
            count,
            count * before + grain * first,
            count * before**2 + 2.0 * before * grain * first + grain**2 * second,
            count * grain,
        )
        # edges, and where known people end; nothing lies below the origin
        starts = np.array([start for start, _ in below]) / scale
        level = np.unique(np.maximum(np.concatenate([left, right, starts, np.array(ends) / scale]), origin))
        at = np.searchsorted(right, level, side="right")
        mass, one, two, rounding = (np.concatenate([[0.0], np.cumsum(term)])[at] for term in terms)
        for start, (_, people) in zip(starts.tolist(), below, strict=True):
            above, (first_moment, second_moment) = level >= start, people.about(lowest)
            mass[above] += people.count
            one[above] += float(first_moment) / scale
            two[above] += float(second_moment) / scale**2
        return Levels(level=level, mass=mass, first=one, second=two, rounding=rounding, origin=origin)

    def _edges(self, side: int) -> FloatArray:
        return ((self.keys + side) << self.shift).view(np.float64)
