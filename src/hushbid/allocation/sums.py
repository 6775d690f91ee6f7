"""Sums of many costs and of their squares: exact ones, and by buckets of equal leading bits.

A double within one power of two is that power plus an offset of 52 bits. For `ExactSums` three limbs of 18, 17 and 17
bits make up the offset; the products of limbs have at most 36 bits, so 2**17 of them add up exactly in a double, in any
order, and one matrix product of the limbs with themselves gives all of them. From there on Python's integers go on,
without end: the same sums whatever the order, the batches or the machine.

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

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushbid.arrays import FloatArray, IntArray

_BLOCK = 1 << 17
_LIMBS = ((34, 18), (17, 17), (0, 17))
_OFFSET = (1 << 52) - 1
Octave = tuple[int, int, int]
"""How many, the sum of their offsets, and of the squares of their offsets."""


@dataclass(frozen=True, slots=True)
class ExactSums:
    """Count, sum and sum of squares of nonnegative finite doubles, exactly."""

    octaves: Mapping[int, Octave]
    """By the exponent bits of the numbers."""

    @classmethod
    def of(cls, costs: FloatArray, times: IntArray | None = None) -> "ExactSums":
        """The sums of one array, in which each number counts as often as ``times`` says: once unless given."""
        found = cls({})
        if times is not None:
            often = times != 1
            found, costs = cls(_repeated(costs[often], times[often])), costs[~often]
        for start in range(0, costs.size, _BLOCK):
            bits = np.ascontiguousarray(costs[start : start + _BLOCK]).view(np.int64)
            exponent = bits >> 52
            low, high = int(exponent.min()), int(exponent.max())
            # one power of two at a time
            for one in range(low, high + 1):
                part = bits if low == high else bits[exponent == one]
                if part.size:
                    found = found + cls({one: _octave(part & _OFFSET)})
        return found

    def __add__(self, other: "ExactSums") -> "ExactSums":
        """The sums over both populations together."""
        octaves = dict(self.octaves)
        for exponent, sums in other.octaves.items():
            known = octaves.get(exponent, (0, 0, 0))
            octaves[exponent] = (known[0] + sums[0], known[1] + sums[1], known[2] + sums[2])
        return ExactSums(octaves)

    def without(self, other: "ExactSums") -> "ExactSums":
        """The sums over this population less a part of it."""
        return self + ExactSums(
            {one: (-count, -first, -second) for one, (count, first, second) in other.octaves.items()}
        )

    @property
    def count(self) -> int:
        """How many numbers were added up."""
        return sum(count for count, _, _ in self.octaves.values())

    def about(self, base: float) -> tuple[Fraction, Fraction]:
        """The sums of the distances from ``base``, and of their squares."""
        first, second, origin = Fraction(0), Fraction(0), Fraction(base)
        for exponent, (count, offsets, squares) in self.octaves.items():
            # numbers below the least power have no leading one: exponent bits 0
            unit = Fraction(2) ** (max(exponent, 1) - 1075)
            left = (unit * 2**52 if exponent else Fraction(0)) - origin
            first += count * left + offsets * unit
            second += count * left * left + 2 * left * offsets * unit + squares * unit * unit
        return first, second


def _repeated(costs: FloatArray, times: IntArray) -> dict[int, Octave]:
    """The sums of a few numbers that are there many times."""
    octaves: dict[int, Octave] = {}
    for bits, count in zip(costs.view(np.int64).tolist(), times.tolist(), strict=True):
        exponent, offset = bits >> 52, bits & _OFFSET
        known = octaves.get(exponent, (0, 0, 0))
        octaves[exponent] = (known[0] + count, known[1] + count * offset, known[2] + count * offset * offset)
    return octaves


def _octave(offsets: IntArray) -> Octave:
    limbs = np.ones((4, offsets.size))  # a row of ones for the first sums, then the limbs
    for row, (shift, width) in enumerate(_LIMBS, start=1):
        limbs[row] = (offsets >> shift) & ((1 << width) - 1)
    products = limbs @ limbs.T
    assert products.max() <= 2.0**53, "partial sums must be exact"
    sums = [[int(value) for value in row] for row in products.tolist()]
    shifts = [shift for shift, _ in _LIMBS]
    first = sum(sums[0][i + 1] << shifts[i] for i in range(3))
    second = sum(sums[i + 1][j + 1] << (shifts[i] + shifts[j]) for i in range(3) for j in range(3))
    return offsets.size, first, second


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
