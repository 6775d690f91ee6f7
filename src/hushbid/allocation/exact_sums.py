"""Exact sums of many costs and of their squares.

A double within one power of two is that power plus an offset of 52 bits. Three limbs of 18, 17 and 17 bits make up the
offset; the products of limbs have at most 36 bits, so 2**17 of them add up exactly in a double, in any order, and one
matrix product of the limbs with themselves gives all of them. From there on Python's integers go on, without end: the
same sums whatever the order, the batches or the machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

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
        # whole numbers in units of the last binary place of anything here
        numerator, denominator = base.as_integer_ratio()
        places = [max(exponent, 1) - 1075 for exponent in self.octaves]
        last = min([1 - denominator.bit_length(), *places])
        origin = numerator << (1 - denominator.bit_length() - last)
        total = squares = 0
        for place, (exponent, (count, offsets, second)) in zip(places, self.octaves.items(), strict=True):
            # numbers below the least power have no leading one: exponent bits 0
            lead = 1 << 52 if exponent else 0
            total += (count * lead + offsets) << (place - last)
            squares += (count * lead * lead + 2 * lead * offsets + second) << 2 * (place - last)
        count, unit = self.count, Fraction(2) ** last
        first = total - count * origin
        return first * unit, (squares - 2 * origin * total + count * origin * origin) * unit * unit


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
