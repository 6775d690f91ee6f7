"""The information rents of a menu, as a function of the bid that is fixed before anybody bids.

The menu of strength 1 at the level ``τ`` has the loss ``ε(c) = (τ − ψ(c))⁺`` and the rent ``R(c) = ∫ from c of ε``.
Where ψ is a step function that is a finite sum, and where ψ is affine a parabola. Elsewhere `hushbid.payments` encloses
the rent at some bids, the *nodes*, and between two of them convexity encloses it again: ``R`` has the slope ``−ε``,
which rises. So it lies below the chord and above both tangents, and the nodes are close enough for that.

A rent found for many bids together may depend on all of them in its last digits. This one does not: whoever shares
in a menu must not move what others are offered, by however little.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.payments import Rents, rents
from hushbid.priors import Prior

_NODES = 512
_MOST_NODES = 1 << 15
_MOST_ROUNDS = 40
_FORMULA = 4e-15
"""Formulas are right to this part of the largest rent."""

_ROUNDING = 4e-12
"""Virtual costs, and so losses and rents of a menu, are right to this part of the largest."""


@dataclass(frozen=True, slots=True, eq=False)
class Replies:
    """Potential and loss at many virtual costs, as `hushbid.payments` wants them."""

    value: FloatArray = field(repr=False)
    loss: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class MenuRule:
    """The loss ``min(strength·(τ − x)⁺, limit)`` of everybody's own virtual cost x, with its potential."""

    level: float
    strength: FloatArray
    limit: FloatArray

    def at(self, rows: IndexArray, costs: FloatArray, /) -> Replies:
        """What person ``rows[j]`` gives up at the virtual cost ``costs[j]``; the others do not matter."""
        strength, limit = self.strength[rows], self.limit[rows]
        gap = np.maximum(self.level - costs, 0.0)
        # a parabola up to the limit, from there a straight line
        bend = np.full(gap.shape, math.inf)
        np.divide(limit, strength, out=bend, where=strength > 0.0)
        clipped = gap > bend
        short = np.minimum(gap, bend)
        beyond = np.zeros(gap.shape)
        np.multiply(limit, gap - short, out=beyond, where=clipped)
        return Replies(
            value=-0.5 * strength * short * short - beyond,
            loss=np.where(clipped, limit, strength * gap),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MenuRents:
    """The rents of one prior's menu of strength 1."""

    prior: Prior
    """Whose menu it is."""

    level: float
    """Up to which virtual cost it buys."""

    most: float
    """At least, and hardly more than, what it pays at the lowest bid: nothing on the menu is dearer."""

    error: float
    """How far a payment may be from exact, at any bid."""

    curve: "_Curve"
    """The rents themselves."""

    def at(self, bids: FloatArray, costs: FloatArray) -> Rents:
        """The rents at bids with these virtual costs: each a function of its own bid only."""
        gap = np.maximum(self.level - costs, 0.0)
        some = np.flatnonzero(gap > 0.0)
        lower, upper, estimate = np.zeros(gap.size), np.zeros(gap.size), np.zeros(gap.size)
        found = self.curve.at(bids[some], gap[some])
        # nothing on the menu is dearer than its first line
        room = np.maximum(self.most - bids[some] * gap[some], 0.0)
        slack = _ROUNDING * self.most
        lower[some], upper[some] = found.lower - slack, found.upper + slack
        estimate[some] = np.minimum(np.maximum(found.estimate, 0.0), room)
        return Rents(lower=lower, upper=upper, estimate=estimate, evaluations=found.evaluations)


@lru_cache(maxsize=64)
def menu_rents(prior: Prior, level: float, tolerance: float) -> MenuRents:
    """The rents of people with this prior; their error is about ``tolerance`` times the largest payment."""
    lowest = prior.smallest_bid
    gap = level - float(prior.virtual_cost(lowest))
    if not gap > 0.0:
        return MenuRents(prior=prior, level=level, most=0.0, error=0.0, curve=_Nothing())
    curve = _curve_of(prior, level, tolerance)
    first = curve.at(np.array([lowest]), np.array([gap]))
    most = (lowest * gap + float(first.upper[0])) * (1.0 + _ROUNDING)
    return MenuRents(prior=prior, level=level, most=most, error=curve.error + 2.0 * _ROUNDING * most, curve=curve)


def _curve_of(prior: Prior, level: float, tolerance: float) -> "_Curve":
    if prior.is_stepped:
        return _Steps.of(prior, level)
    if prior.is_linear:
        return _Parabola.of(prior, level)
    return _Nodes.of(prior, level, tolerance)


# -- three kinds of curves ---------------------------------------------------------------------------------------------


class _Curve(Protocol):
    """The rent as a function of the bid, from the lowest to where nothing is bought any more."""

    @property
    def error(self) -> float:
        """The largest distance of an estimate from the truth, at any bid."""
        ...

    def at(self, bids: FloatArray, loss: FloatArray, /) -> Rents:
        """The rents at bids with these losses, all positive."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Nothing:
    """Nothing is bought at any bid."""

    error: float = 0.0

    def at(self, bids: FloatArray, _: FloatArray, /) -> Rents:
        return _exactly(np.zeros(bids.size), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Parabola:
    """ψ affine: the loss falls at a constant slope, to 0 or to the top of the support."""

    top: float
    last: float
    slope: float
    error: float

    @classmethod
    def of(cls, prior: Prior, level: float) -> "_Parabola":
        low, top = prior.support
        last = max(level - float(prior.virtual_cost(top)), 0.0)
        first = level - float(prior.virtual_cost(low))
        return cls(top, last, prior.slope or 1.0, _FORMULA * (top - low) * first)

    def at(self, bids: FloatArray, loss: FloatArray, /) -> Rents:
        # a triangle, or a trapeze if something is bought at the top
        if self.last == 0.0:
            return _exactly(loss * (loss / (2.0 * self.slope)), self.error)
        return _exactly(0.5 * (loss + self.last) * (self.top - bids), self.error)


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """ψ a step function: what is left of one's own step, and all later steps."""

    rights: FloatArray
    later: FloatArray
    error: float

    @classmethod
    def of(cls, prior: Prior, level: float) -> "_Steps":
        rights = np.array([right for _, right, _ in prior.flat_parts])
        loss = np.maximum(level - np.array([cost for _, _, cost in prior.flat_parts]), 0.0)
        areas = np.diff(rights) * loss[1:]
        later = np.append(np.cumsum(areas[::-1])[::-1], 0.0)
        # sums of many terms are rounded many times
        return cls(rights, later, _FORMULA * (1.0 + 0.1 * rights.size) * float(later[0] + rights[0] * loss[0]))

    def at(self, bids: FloatArray, loss: FloatArray, /) -> Rents:
        step = np.minimum(self.rights.searchsorted(bids, side="left"), self.rights.size - 1)
        return _exactly(loss * np.maximum(self.rights[step] - bids, 0.0) + self.later[step], self.error)


def _exactly(rent: FloatArray, slack: float) -> Rents:
    return Rents(lower=rent - slack, upper=rent + slack, estimate=rent, evaluations=0)


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """Bids in ascending order, with the loss and the enclosed rent at each."""

    bids: FloatArray
    loss: FloatArray
    lower: FloatArray
    upper: FloatArray
    estimate: FloatArray

    @classmethod
    def of(cls, prior: Prior, level: float, tolerance: float) -> "_Nodes":
        """So many nodes that what is between them is known to the tolerance, relative to the largest payment."""
        low, high = prior.smallest_bid, float(prior.virtual_cost_inverse(level))
        edges = np.array([end for part in prior.flat_parts for end in part[:2]])
        z = np.concatenate([np.linspace(low, high, _NODES), edges[(edges > low) & (edges < high)]])
        nodes = cls._enclosed(prior, level, np.unique(z), tolerance)
        allowed = 0.5 * tolerance * float((nodes.bids * nodes.loss + nodes.estimate).max())
        for _ in range(_MOST_ROUNDS):
            z = nodes.bids
            middle = 0.5 * (z[:-1] + z[1:])
            wide = (nodes._widths() > allowed) & (middle > z[:-1]) & (middle < z[1:])
            if not wide.any() or z.size > _MOST_NODES:
                break
            nodes = nodes._joined(cls._enclosed(prior, level, middle[wide], tolerance))
        return nodes

    @classmethod
    def _enclosed(cls, prior: Prior, level: float, z: FloatArray, tolerance: float) -> "_Nodes":
        rule = MenuRule(level, np.ones(1), np.full(1, math.inf))
        loss = np.maximum(level - np.asarray(prior.virtual_cost(z)), 0.0)
        found = rents(
            rule, prior, np.zeros(z.size, dtype=np.intp), z, paid_besides=z * loss, tolerance=0.25 * tolerance
        )
        return cls(z, loss, found.lower, found.upper, found.estimate)

    def _joined(self, other: "_Nodes") -> "_Nodes":
        order = np.argsort(np.append(self.bids, other.bids), kind="stable")
        return _Nodes(*(np.append(getattr(self, name), getattr(other, name))[order] for name in self.__slots__))

    def _widths(self) -> FloatArray:
        """How far apart chord and tangents are at most in each cell, but for the enclosures at its ends."""
        # two tangents and the chord: the triangle is highest where the tangents meet
        drop, width = self.loss[:-1] - self.loss[1:], np.diff(self.bids)
        return np.maximum(0.25 * drop * width, 0.0)

    @property
    def error(self) -> float:
        ends = np.maximum(self.upper - self.estimate, self.estimate - self.lower)
        between = self._widths().max(initial=0.0)
        return float(ends.max() + between)

    def at(self, bids: FloatArray, loss: FloatArray, /) -> Rents:
        z = self.bids
        cell = np.clip(z.searchsorted(bids, side="right") - 1, 0, z.size - 2)
        to_left, to_right = np.maximum(bids - z[cell], 0.0), np.maximum(z[cell + 1] - bids, 0.0)
        part = to_left / (z[cell + 1] - z[cell])
        # below the chord, above both tangents
        upper = self.upper[cell] + np.minimum(part, 1.0) * (self.upper[cell + 1] - self.upper[cell])
        lower = np.maximum(
            self.lower[cell] - self.loss[cell] * to_left, self.lower[cell + 1] + self.loss[cell + 1] * to_right
        )
        # trapezes from both ends, the nearer one counting for more
        from_left = self.estimate[cell] - 0.5 * (self.loss[cell] + loss) * to_left
        from_right = self.estimate[cell + 1] + 0.5 * (self.loss[cell + 1] + loss) * to_right
        lower = np.minimum(lower, upper)
        best = np.clip(from_left + np.minimum(part, 1.0) * (from_right - from_left), lower, upper)
        return Rents(lower=lower, upper=upper, estimate=best, evaluations=0)
