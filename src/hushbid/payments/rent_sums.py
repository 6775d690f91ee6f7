"""Bounds that use monotonicity alone: they hold where a value function has lost its digits.

A rule's loss falls in the bid, so over an interval of bids

    (z₁ − z₀)·ε(z₁)  ≤  ∫ε dz  ≤  (z₁ − z₀)·ε(z₀),

and both sides are equal where the loss is the same at both ends, as at a cap. A value function contains the error times
its weight. Where caps bind that is many orders above a rent, and the difference of two values is rounding. So every
enclosure by values is intersected with these sums, and where both are too wide the interval is halved.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.payments.rule import ROUNDING, RuleWithPotential
from hushbid.priors import Prior

_MOST_EVALUATIONS = 1 << 15
_MOST_ROUNDS = 100


@dataclass(slots=True, eq=False)
class Bounds:
    """A lower bound, an upper bound and an estimate of each integral."""

    lower: FloatArray
    upper: FloatArray
    estimate: FloatArray

    def intersected(self, other: "Bounds") -> "Bounds":
        """The part that is in both; of two that contradict each other by rounding, the other."""
        lower, upper = np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper)
        apart = ~(lower <= upper)
        lower, upper = np.where(apart, other.lower, lower), np.where(apart, other.upper, upper)
        # the estimate of the narrower one
        coarse = apart | ~(self.upper - self.lower <= other.upper - other.lower)
        estimate = np.where(coarse, other.estimate, self.estimate)
        return Bounds(lower, upper, np.minimum(np.maximum(estimate, lower), upper))


def monotone(dz: FloatArray, e0: FloatArray, e1: FloatArray) -> Bounds:
    """The bounds on the integral over intervals of bids of this width, from the losses at both ends.

    Losses that rise by rounding are not swapped silently: the interval between them is what is known.
    """
    some = dz > 0.0
    # an infinite loss times no width is nothing
    ends = np.where(some, e0, 0.0) * dz, np.where(some, e1, 0.0) * dz
    lower, upper = np.minimum(*ends), np.maximum(*ends)
    estimate = 0.5 * (lower + np.minimum(upper, 1e300))
    return Bounds(lower * (1.0 - ROUNDING), upper * (1.0 + ROUNDING), estimate)


@dataclass(slots=True, eq=False)
class Intervals:
    """Intervals of bids, one entry each: whose, and what the rule does at both ends."""

    who: IndexArray
    z0: FloatArray
    z1: FloatArray
    e0: FloatArray
    e1: FloatArray
    v0: FloatArray
    v1: FloatArray

    def take(self, which: Any) -> "Intervals":
        """Some of them."""
        return Intervals(*(getattr(self, name)[which] for name in self.__slots__))

    def joined(self, other: "Intervals") -> "Intervals":
        """Both, one after the other."""
        return Intervals(*(np.append(getattr(self, name), getattr(other, name)) for name in self.__slots__))

    def bounds(self, slope: float | None) -> Bounds:
        """The bounds of each; by its values too if ``slope`` is what ψ rises by."""
        sums = monotone(self.z1 - self.z0, self.e0, self.e1)
        if slope is None:
            return sums
        with np.errstate(invalid="ignore"):
            area = np.maximum(self.v1 - self.v0, 0.0) / slope
            slack = ROUNDING * np.maximum(np.abs(self.v0), np.abs(self.v1)) / slope
        known = np.isfinite(area) & np.isfinite(slack)
        by_values = Bounds(np.where(known, area - slack, 0.0), np.where(known, area + slack, np.inf), area)
        return by_values.intersected(sums)


@dataclass(slots=True, eq=False)
class Halving:
    """Rents from intervals of bids that are halved where their bounds are too far apart."""

    rule: RuleWithPotential
    prior: Prior
    rows: IndexArray
    slope: float | None
    """What ψ rises by where it is affine; None elsewhere, where values say nothing without a table of ψ."""

    evaluations: int = 0

    def whole(self, bids: FloatArray, end: FloatArray) -> Intervals:
        """One interval for each person, from the own bid to ``end``."""
        who = np.arange(self.rows.size)
        # both ends in one call, which costs as much as one of few people
        loss, value = self._at(np.tile(who, 2), np.concatenate([bids, end]))
        (e0, e1), (v0, v1) = loss.reshape(2, -1), value.reshape(2, -1)
        return Intervals(who, bids, end, e0, e1, v0, v1)

    def run(self, parts: Intervals, allowed: float) -> Bounds:
        """Everybody's bounds, to a width of ``allowed`` where so many evaluations suffice."""
        size = self.rows.size
        for _ in range(_MOST_ROUNDS):
            found = parts.bounds(self.slope)
            gap = found.upper - found.lower
            wide = np.bincount(parts.who, gap, size) > allowed
            # those with more than their share of what is allowed
            many = np.bincount(parts.who, minlength=size)
            middle = 0.5 * (parts.z0 + parts.z1)
            split = wide[parts.who] & (gap * many[parts.who] > allowed)
            split &= (middle > parts.z0) & (middle < parts.z1)
            which = np.flatnonzero(split)
            if which.size == 0 or self.evaluations + which.size > _MOST_EVALUATIONS:
                break
            parts = self._halved(parts, which, middle[which])
        found = parts.bounds(self.slope)
        sums: list[FloatArray] = [
            np.asarray(np.bincount(parts.who, one, size), dtype=np.float64)
            for one in (found.lower, found.upper, found.estimate)
        ]
        return Bounds(*sums)

    def _halved(self, parts: Intervals, which: IndexArray, middle: FloatArray) -> Intervals:
        old = parts.take(which)
        loss, value = self._at(old.who, middle)
        left = Intervals(old.who, old.z0, middle, old.e0, loss, old.v0, value)
        right = Intervals(old.who, middle, old.z1, loss, old.e1, value, old.v1)
        rest = np.ones(parts.who.size, dtype=bool)
        rest[which] = False
        return parts.take(rest).joined(left).joined(right)

    def _at(self, who: IndexArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        self.evaluations += who.size
        found = self.rule.at(self.rows[who], np.asarray(self.prior.virtual_cost(z)))
        return found.loss, found.loss if self.slope is None else found.value
