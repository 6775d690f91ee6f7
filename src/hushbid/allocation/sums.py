"""Sums of many costs and of their squares by buckets of equal leading bits.

`Moments` bound the central problem and are enough to discard most rows. The one-dimensional problem of
:mod:`hushbid.allocation.central` needs a population only through the mass, first and second moment of the costs below a
level ``τ``. Known at a few levels, these give ``a`` and ``g(a)`` there exactly, and since ``g`` falls and ``κ·a^{2/3}``
rises, ``h ≥ g(a₂) + κ·a₁^{2/3}`` on everything between two levels.

Levels are the floating-point numbers whose lower bits are zero: a cost's bucket is its bit pattern shifted right.
That is monotone, needs no search, spaces levels evenly in the logarithm (heavy tails cost nothing), and a cost's place
inside its bucket, rounded down to ``OFFSET_BITS`` bits, is an integer. So all sums are integers: the same whatever the
order, the batches or the machine. Rounding down only lowers costs, and the optimal value is nondecreasing in every
cost, so a bound for the rounded population holds for the true one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushbid.arrays import FloatArray, IntArray

OFFSET_BITS = 18
BATCH = 1 << (53 - 2 * OFFSET_BITS)
"""Rows per pass of a kernel: squares of offsets then add up exactly in a float64 accumulator."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Intervals of costs, each a run of floating-point numbers with the same leading bits."""

    origin: int
    """Bit pattern of the lowest edge."""

    shift: int
    """How many low bits a bucket spans; at most 52, so that no bucket crosses a power of two."""

    count: int
    """How many buckets there are."""

    @classmethod
    def spanning(cls, low: float, high: float, *, at_most: int = 1 << 14) -> "Buckets":
        """The finest buckets from ``low`` to ``high`` (both included) that are at most so many, or powers of two."""
        first, last = _bits(low), _bits(high)
        shift = OFFSET_BITS
        while shift < 52 and (last >> shift) - (first >> shift) + 1 > at_most:
            shift += 1
        return cls((first >> shift) << shift, shift, (last >> shift) - (first >> shift) + 1)

    @property
    def edges(self) -> FloatArray:
        """The ``count + 1`` edges, ascending."""
        bits = self.origin + (np.arange(self.count + 1, dtype=np.int64) << self.shift)
        return bits.view(np.float64)

    @property
    def grain(self) -> int:
        """How many low bits of a cost are dropped when it is rounded down."""
        return self.shift - OFFSET_BITS


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Per bucket: how many, the sum of their offsets, and of the squares of their offsets. Integers, added exactly."""

    buckets: Buckets
    count: IntArray
    first: NDArray[np.object_]
    second: NDArray[np.object_]

    @classmethod
    def of(cls, costs: FloatArray, buckets: Buckets) -> "Moments":
        """The moments of one array; people outside the buckets (an infinite cost) do not count."""
        count = np.zeros(buckets.count, dtype=np.int64)
        first = np.zeros(buckets.count, dtype=np.int64)
        second = np.zeros(buckets.count, dtype=object)
        for start in range(0, costs.size, BATCH):
            batch = np.ascontiguousarray(costs[start : start + BATCH])
            # bucket and place in it are bits of the cost itself
            place = (batch.view(np.int64) - buckets.origin) >> buckets.grain
            index = place >> OFFSET_BITS
            inside = index < buckets.count
            if not inside.all():
                place, index = place[inside], index[inside]
            offset = (place & ((1 << OFFSET_BITS) - 1)).astype(np.float64)
            # exact: a batch's sums stay below 2**53
            count += np.bincount(index, minlength=buckets.count)
            first += np.bincount(index, offset, minlength=buckets.count).astype(np.int64)
            second += np.bincount(index, offset * offset, minlength=buckets.count).astype(np.int64)
        return cls(buckets, count, first.astype(object), second)

    def below_edges(self) -> "Below":
        """Mass and moments, about the lowest edge, of everybody below each upper edge."""
        edges = self.buckets.edges
        origin = edges[0]
        # a cost is its bucket's left edge plus offset times grain
        left = edges[:-1] - origin
        grain = np.diff(edges) / (1 << OFFSET_BITS)
        count, first, second = self.count.astype(float), self.first.astype(float), self.second.astype(float)
        return Below(
            level=edges[1:] - origin,
            mass=np.cumsum(count),
            first=np.cumsum(count * left + first * grain),
            second=np.cumsum(count * left * left + 2.0 * left * grain * first + grain * grain * second),
            origin=float(origin),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Below:
    """For ascending levels (measured from ``origin``): sums over the people below each."""

    level: FloatArray
    mass: FloatArray
    first: FloatArray
    second: FloatArray
    origin: float

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """``a`` and ``g(a)`` at each level, in the units of the costs (``origin``, ``1/mass`` if all are there)."""
        # Offsets relative to the level, so that tiny levels do not vanish when squared.
        first, second = np.zeros_like(self.first), np.zeros_like(self.first)
        np.divide(self.first, self.level, out=first, where=self.level > 0)
        np.divide(self.second, self.level, out=second, where=self.level > 0)
        np.divide(second, self.level, out=second, where=self.level > 0)
        gain = self.mass - first
        share, squares = np.zeros_like(gain), np.zeros_like(gain)
        np.divide(first - second, gain, out=share, where=gain > 0)
        np.divide(self.mass - 2 * first + second, gain * gain, out=squares, where=gain > 0)
        return self.origin + np.maximum(share, 0.0) * self.level, squares


def _bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))
