"""Exact sums of many costs and of their squares.

Doubles of eleven neighbouring powers of two are whole numbers of at most 63 bits, in units of the last binary place of
the least power. Three limbs of 21 bits make up such a number; the products of limbs have at most 42 bits, so 2**21 of
them add up exactly in 64 bits. From there on Python's integers go on, without end: the same sums whatever the order,
the batches or the machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushbid.common.arrays import FloatArray, IntArray

_BLOCK = 1 << 15
_LIMB = 21
_LEAD = 1 << 52  # the leading one of a number of at least the least power of two, in units of its last place
_WIDTH = 11  # so many powers of two fit: 53 bits, and 10 more
Octave = tuple[int, int, int]  # how many, the sum of their offsets from the power of two, and of the squares of these


@dataclass(frozen=True, slots=True)
class ExactSums:
    """Count, sum and sum of squares of nonnegative finite doubles, exactly."""

    octaves: Mapping[int, Octave]  # by the exponent bits of the power of two that offsets count from

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
            # some powers of two at a time
            while high - low >= _WIDTH:
                here = exponent < low + _WIDTH
                found = found + cls(_added(bits.compress(here), exponent.compress(here), low))
                bits, exponent = bits.compress(~here), exponent.compress(~here)
                low = int(exponent.min())
            found = found + cls(_added(bits, exponent, low))
        return found

    def __add__(self, other: "ExactSums") -> "ExactSums":
        """The sums over both populations together."""
        octaves = dict(self.octaves)
        for exponent, sums in other.octaves.items():
            known = octaves.get(exponent, (0, 0, 0))
            octaves[exponent] = (known[0] + sums[0], known[1] + sums[1], known[2] + sums[2])
        return ExactSums(octaves)

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
            lead = _LEAD if exponent else 0
            total += (count * lead + offsets) << (place - last)
            squares += (count * lead * lead + 2 * lead * offsets + second) << 2 * (place - last)
        count, unit = self.count, Fraction(2) ** last
        first = total - count * origin
        return first * unit, (squares - 2 * origin * total + count * origin * origin) * unit * unit


def _repeated(costs: FloatArray, times: IntArray) -> dict[int, Octave]:
    """The sums of a few numbers that are there many times."""
    octaves: dict[int, Octave] = {}
    for bits, count in zip(costs.view(np.int64).tolist(), times.tolist(), strict=True):
        exponent, offset = bits >> 52, bits & (_LEAD - 1)
        known = octaves.get(exponent, (0, 0, 0))
        octaves[exponent] = (known[0] + count, known[1] + count * offset, known[2] + count * offset * offset)
    return octaves


def _added(bits: IntArray, exponent: IntArray, low: int) -> dict[int, Octave]:
    """Return the sums of numbers with these bits and exponents, from the least power on."""
    # without a leading one below the least power of all, whose place is that of the next
    power, count = max(low, 1), bits.size
    whole = bits & (_LEAD - 1)
    whole |= np.where(exponent > 0, _LEAD, 0)
    whole <<= np.maximum(exponent, 1) - power
    mask = (1 << _LIMB) - 1
    limbs = whole >> 2 * _LIMB, (whole >> _LIMB) & mask, whole & mask
    total = squares = 0
    for i, one in enumerate(limbs):
        total += int(one.sum()) << _LIMB * (2 - i)
        for j, other in enumerate(limbs[i:], start=i):
            squares += (1 + (i < j)) * int((one * other).sum()) << _LIMB * (4 - i - j)
    return {power: (count, total - count * _LEAD, squares - 2 * _LEAD * total + count * _LEAD * _LEAD)}
