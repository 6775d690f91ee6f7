"""The information rents of an offer, as a function of the bid that is fixed before anybody bids.

An offer (`hushbid.mechanism.menu_offers`) has the loss ``ε(ψ(c))`` and the rent ``R(c) = ∫ from c of ε``. Where ψ is a
step function that is a finite sum, and where ψ is affine a difference of the offer's value function. Elsewhere
`hushbid.payments` encloses the rent at some bids, the *nodes*, and between two of them convexity encloses it again:
``R`` has the slope ``−ε``, which rises. So it lies below the chord and above both tangents, and the nodes are close
enough for that.

A rent found for many bids together may depend on all of them in its last digits. This one does not: nobody who shares
in a menu may move what others are offered, by however little.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.mechanism.menu_offers import Offer
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
    """Value and loss at many virtual costs, as `hushbid.payments` wants them."""

    value: FloatArray = field(repr=False)
    loss: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class MenuRule:
    """Everybody's multiple of an offer, at most their limit, as a function of their own virtual cost."""

    offer: Offer
    strength: FloatArray
    limit: FloatArray

    def at(self, rows: IndexArray, costs: FloatArray, /) -> Replies:
        """What person ``rows[j]`` gives up at the virtual cost ``costs[j]``; the others do not matter."""
        strength, limit = self.strength[rows], self.limit[rows]
        loss = strength * self.offer.loss(costs)
        value = strength * self.offer.value(costs)
        clipped = np.flatnonzero(loss > limit)
        if clipped.size:
            # the offer's value up to where the limit is met, from there a straight line
            bend = self.offer.cost_of(limit[clipped] / strength[clipped])
            at_bend = strength[clipped] * self.offer.value(bend)
            value[clipped] = at_bend - limit[clipped] * np.maximum(bend - costs[clipped], 0.0)
            loss[clipped] = limit[clipped]
        return Replies(value=value, loss=loss)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MenuRents:
    """What an offer comes to for people with one prior."""

    prior: Prior
    """Whose offer it is."""

    offer: Offer
    """How much is bought at each virtual cost."""

    most: float
    """At least, and hardly more than, what it pays at the lowest bid: nothing on the menu is dearer."""

    error: float
    """How far a payment may be from exact, at any bid."""

    curve: "_Affine | _Steps | _Nodes | None"
    """The rents themselves; None if nothing is bought at any bid."""

    def at(self, bids: FloatArray, costs: FloatArray) -> tuple[FloatArray, FloatArray, Rents]:
        """Return losses, what they cost at these bids, and rents: each a function of its own bid only."""
        loss = self.offer.loss(costs)
        price, lower, upper, estimate = (np.zeros(loss.size) for _ in range(4))
        some = np.flatnonzero(loss > 0.0)
        if self.curve is None or not some.size:
            return loss, price, Rents(lower=lower, upper=upper, estimate=estimate)
        np.multiply(bids, loss, out=price, where=(loss > 0.0) & (bids > 0.0))  # a bid or a loss may be infinite
        found = self.curve.at(bids[some], costs[some], loss[some])
        # nothing on the menu is dearer than its first line
        room = np.maximum(self.most - price[some], 0.0)
        slack = _ROUNDING * self.most
        lower[some], upper[some] = found.lower - slack, found.upper + slack
        estimate[some] = np.minimum(np.maximum(found.estimate, 0.0), room)
        return loss, price, Rents(lower=lower, upper=upper, estimate=estimate)


@lru_cache(maxsize=256)
def menu_rents(prior: Prior, offer: Offer, tolerance: float) -> MenuRents:
    """The rents of people with this prior; their error is about ``tolerance`` times the largest payment."""
    lowest = prior.smallest_bid
    cost = np.array([float(prior.virtual_cost(lowest))])
    loss = offer.loss(cost)
    if not loss[0] > 0.0:
        return MenuRents(prior=prior, offer=offer, most=0.0, error=0.0, curve=None)
    curve: _Affine | _Steps | _Nodes
    if prior.is_stepped:
        curve = _Steps.of(prior, offer)
    else:
        curve = _Affine.of(prior, offer) if prior.is_linear else _Nodes.of(prior, offer, tolerance)
    first = float(curve.at(np.array([lowest]), cost, loss).upper[0])
    most = (first + (lowest * float(loss[0]) if lowest > 0.0 else 0.0)) * (1.0 + _ROUNDING)
    return MenuRents(prior=prior, offer=offer, most=most, error=curve.error + 2.0 * _ROUNDING * most, curve=curve)


# -- three kinds of curves ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Affine:
    """ψ affine: the rent is the rise of the value function up to the top of the support, over the slope of ψ."""

    offer: Offer
    last: float
    slope: float
    error: float

    @classmethod
    def of(cls, prior: Prior, offer: Offer) -> "_Affine":
        low, top = (float(prior.virtual_cost(bid)) for bid in prior.support)
        first, last = offer.value(np.array([low, top])).tolist()
        slope = prior.slope or 1.0
        return cls(offer, last, slope, -_FORMULA * first / slope)

    def at(self, bids: FloatArray, costs: FloatArray, loss: FloatArray, /) -> Rents:
        return _exactly((self.last - self.offer.value(costs)) / self.slope, self.error)


@dataclass(frozen=True, slots=True, eq=False)
class _Steps:
    """ψ a step function: what is left of one's own step, and all later steps."""

    rights: FloatArray
    later: FloatArray
    error: float

    @classmethod
    def of(cls, prior: Prior, offer: Offer) -> "_Steps":
        rights = np.array([right for _, right, _ in prior.flat_parts])
        loss = offer.loss(np.array([cost for _, _, cost in prior.flat_parts]))
        areas = np.diff(rights) * loss[1:]
        later = np.append(np.cumsum(areas[::-1])[::-1], 0.0)
        # sums of many terms are rounded many times
        first = rights[0] * loss[0] if rights[0] > 0.0 else 0.0
        return cls(rights, later, _FORMULA * (1.0 + 0.1 * rights.size) * float(later[0] + first))

    def at(self, bids: FloatArray, costs: FloatArray, loss: FloatArray, /) -> Rents:
        step = np.minimum(self.rights.searchsorted(bids, side="left"), self.rights.size - 1)
        rest, own = np.maximum(self.rights[step] - bids, 0.0), np.zeros(bids.size)
        np.multiply(loss, rest, out=own, where=rest > 0.0)  # what is free may be lost without end
        return _exactly(own + self.later[step], self.error)


def _exactly(rent: FloatArray, slack: float) -> Rents:
    return Rents(lower=rent - slack, upper=rent + slack, estimate=rent)


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """Bids in ascending order, with the loss and the enclosed rent at each."""

    bids: FloatArray
    loss: FloatArray
    lower: FloatArray
    upper: FloatArray
    estimate: FloatArray

    @classmethod
    def of(cls, prior: Prior, offer: Offer, tolerance: float) -> "_Nodes":
        """So many nodes that what is between them is known to the tolerance, relative to the largest payment."""
        low, high = prior.smallest_bid, float(prior.virtual_cost_inverse(offer.end))
        edges = np.array([end for part in prior.flat_parts for end in part[:2]])
        z = np.concatenate([np.linspace(low, high, _NODES), edges[(edges > low) & (edges < high)]])
        nodes = cls._enclosed(prior, offer, np.unique(z), tolerance)
        allowed = 0.5 * tolerance * float((nodes.bids * nodes.loss + nodes.estimate).max())
        for _ in range(_MOST_ROUNDS):
            z = nodes.bids
            middle = 0.5 * (z[:-1] + z[1:])
            wide = (nodes._widths() > allowed) & (middle > z[:-1]) & (middle < z[1:])
            if not wide.any() or z.size > _MOST_NODES:
                break
            nodes = nodes._joined(cls._enclosed(prior, offer, middle[wide], tolerance))
        return nodes

    @classmethod
    def _enclosed(cls, prior: Prior, offer: Offer, z: FloatArray, tolerance: float) -> "_Nodes":
        rule = MenuRule(offer, np.ones(1), np.full(1, math.inf))
        loss = offer.loss(np.asarray(prior.virtual_cost(z)))
        besides = np.zeros(z.size)
        np.multiply(z, loss, out=besides, where=z > 0.0)
        found = rents(rule, prior, np.zeros(z.size, dtype=np.intp), z, paid_besides=besides, tolerance=0.25 * tolerance)
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

    def at(self, bids: FloatArray, costs: FloatArray, loss: FloatArray, /) -> Rents:
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
        return Rents(lower=lower, upper=upper, estimate=best)
