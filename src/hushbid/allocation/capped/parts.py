"""Populations whose people are in strata, each of which gives its share of ``S = Σ ε``; without strata one gives all.

At the rate that belongs to ``S`` every stratum fills its share ``λ_g·S`` up to a level of its own. With one more unit
of ``S`` the cost grows by ``Σ λ_g·τ_g``, the *level* of all strata together; it is counted from ``Σ λ_g·base_g``.
"""

import math

import numpy as np

from hushbid.allocation.capped.crowds import Variants, Various
from hushbid.allocation.capped.people import Totals
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_FULL = 1.0 - 1e-12
"""Of the sum of all caps this share is filled where everybody is at the cap: the level stays finite."""

_DENSE = 1 << 23
"""So many (point, person) pairs are looked at at once."""


class Parts:
    """Some populations, stratum by stratum; they differ in one person of one stratum at the most."""

    def __init__(self, sizes: list[float], each: list[Variants]) -> None:
        self.sizes, self.each = sizes, each
        self.base = sum(size * one.crowd.base for size, one in zip(sizes, each, strict=True))
        self.count = max(one.count for one in each)
        self.caps = [np.broadcast_to(_all_caps(one), self.count) for one in each]
        """The sum of all caps, in each stratum of each population."""

        self.full: FloatArray = np.min([caps / size for size, caps in zip(sizes, self.caps, strict=True)], axis=0)
        """The most that ``S`` can be in each population."""

        people = [one.crowd.people.offset.size for one in each if isinstance(one.crowd, Various)]
        self.step = max(_DENSE // (max(people, default=0) + 1), 1)
        """How many points at a time."""

    @classmethod
    def whole(cls, variants: Variants) -> "Parts":
        """Populations without strata."""
        return cls([1.0], [variants])

    def take(self, which: IndexArray) -> "Parts":
        """Some of the populations, each perhaps many times."""
        some = object.__new__(Parts)
        some.sizes, some.each = self.sizes, [one.take(which) for one in self.each]
        some.base, some.count, some.step = self.base, which.size, self.step
        some.caps, some.full = [caps[which] for caps in self.caps], self.full[which]
        return some


class Lines:
    """For some ``S`` in some populations: a line below ``N(1/S², ·)`` and what filling ``S`` really costs."""

    def __init__(self, which: IndexArray, columns: FloatArray) -> None:
        self.which, self.columns = which, columns
        """The population of each, and what is known of it."""

        self.at, self.level, self.height, self.value = columns[:4]
        """``S``; the slope, counted from the base; the line there; and ``MSE + Σ ψε``, which is attained."""

        strata = (columns.shape[0] - 4) // 3
        self.levels, self.corner, self.corner_after = (columns[4 + g * strata :][:strata] for g in range(3))
        """For each stratum its level; the ``S`` at which those at their cap fill its share; and those at the cap or
        inside, all at their caps."""

    def take(self, chosen: IndexArray | BoolArray) -> "Lines":
        """Some of them."""
        return Lines(self.which[chosen], self.columns[:, chosen])

    def joined(self, *others: "Lines") -> "Lines":
        """All of them."""
        every = (self, *others)
        return Lines(np.concatenate([one.which for one in every]), np.concatenate([one.columns for one in every], 1))


def fill(
    parts: Parts,
    which: IndexArray,
    at: FloatArray,
    beside: FloatArray | float = 1.0,
    near: FloatArray | None = None,
    worth: FloatArray | None = None,
) -> Lines:
    """The levels at which losses, at the rate that belongs to ``S = at``, add up to ``beside·S``, and their line.

    No stratum's level is above what a unit of ``S`` is ``worth`` in its population, over its size: what is then missing
    is as if had at that price.
    """
    if at.size > parts.step:
        every, beside = np.arange(at.size), np.broadcast_to(beside, at.shape)
        some = [every[first : first + parts.step] for first in range(0, at.size, parts.step)]
        filled = [
            fill(parts, which[one], at[one], beside[one], None if near is None else near[:, one], worth) for one in some
        ]
        return filled[0].joined(*filled[1:])
    rate = 0.5 * at * at
    levels, totals = [], []
    for g, (size, variants) in enumerate(zip(parts.sizes, parts.each, strict=True)):
        target = np.minimum(size * at * beside, _FULL * parts.caps[g][which])
        level = np.minimum(variants.levels(rate, target, which, None if near is None else near[g]), variants.crowd.top)
        if worth is not None:
            # asked first whether it is reached: a level among costs far above has no digits to be found by
            end = worth[which] / size - variants.crowd.base
            there = variants.totals(end, rate, which)
            level = np.where(there.used + rate * there.gain < target, end, np.minimum(level, end))
        levels.append(level)
        totals.append(variants.totals(level, rate, which))
    return _lines(parts, which, at, levels, totals)


def _lines(parts: Parts, which: IndexArray, at: FloatArray, levels: list[FloatArray], totals: list[Totals]) -> Lines:
    rate = 0.5 * at * at
    slope, height = np.zeros(at.size), np.zeros(at.size)
    for size, variants, level, sums in zip(parts.sizes, parts.each, levels, totals, strict=True):
        tau = variants.crowd.base + level
        slope += size * level
        height += 0.5 * rate * (tau * sums.gain + sums.paid) + sums.squares / (at * at) + sums.spent
        height += tau * (size * at - (sums.used + rate * sums.gain))
    value = np.add(*balanced(parts, rate, levels, totals)[1:])
    corner = [one.used / size for size, one in zip(parts.sizes, totals, strict=True)]
    after = [(one.used + one.room) / size for size, one in zip(parts.sizes, totals, strict=True)]
    return Lines(which, np.stack([at, slope, height, value, *levels, *corner, *after]))


def balanced(
    parts: Parts, rate: FloatArray, levels: list[FloatArray], totals: list[Totals]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``S``, the error and the expense of what is bought at these levels, once no stratum gives more than its share.

    That is attained whatever the levels are: a stratum that gives too much, if by rounding only, gives less.
    """
    given = [one.used + rate * one.gain for one in totals]
    total = np.min([filled / size for size, filled in zip(parts.sizes, given, strict=True)], axis=0)
    squares, expense = np.full(rate.size, 2.0), np.zeros(rate.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        for size, variants, filled, level, one in zip(parts.sizes, parts.each, given, levels, totals, strict=True):
            share = total * size / filled
            spread = rate * rate * np.maximum((variants.crowd.base + level) * one.gain - one.paid, 0.0)
            squares += share * share * one.squares
            squares += share * share * spread
            expense += share * (one.spent + rate * one.paid)
        error = np.where(total > 0.0, squares / np.square(total), math.inf)
    return total, error, np.where(total > 0.0, expense, math.inf)


def _all_caps(variants: Variants) -> FloatArray:
    """The sum of all caps in each population."""
    cap = variants.crowd.people.cap
    finite = np.append(np.where(cap < np.inf, cap, 0.0), 0.0)
    endless = np.append(cap == np.inf, False)
    total, many = float(finite.sum()), int(endless.sum())
    if variants.without is None or variants.moved is None:
        return np.array([total if many == 0 else np.inf])
    own = np.minimum(variants.without, cap.size)
    moved = variants.moved.cap
    left = many - endless[own] + (moved == np.inf)
    return np.where(left > 0, np.inf, total - finite[own] + np.where(moved < np.inf, moved, 0.0))
