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
