"""What an offer pays, as a function of the bid that is fixed before anybody bids.

An offer (`hushbid.mechanism.menu_offers`) has the loss ``ε(ψ(c))`` and the rent ``R(c) = ∫ from c of ε``. The rent is
one curve through exactly enclosed points (`hushbid.payments.GroupCurves`), as those of very many people are. A rent
found for many bids together may depend on all of them in its last digits. This one does not: nobody who shares in a
menu may move what others are offered, by however little.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.mechanism.menu_offers import Offer
from hushbid.payments import GroupCurves, Rents
from hushbid.priors import Prior
from hushbid.priors.curves import Curve

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


@dataclass(frozen=True, slots=True)
class _Offered:
    """An offer as a purchase that nobody's bid moves."""

    offer: Offer

    @property
    def level(self) -> float:
        return float(np.nextafter(self.offer.end, math.inf))  # at its end something may be bought

    highest_level = level

    def losses(self, costs: FloatArray) -> FloatArray:
        return self.offer.loss(costs)

    def rule_for(self, costs: FloatArray) -> MenuRule:
        return MenuRule(self.offer, np.ones(costs.size), np.full(costs.size, math.inf))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MenuRents:
    """What an offer comes to for people with one prior."""

    prior: Prior
    """Whose offer it is."""

    offer: Offer
    """How much is bought at each virtual cost."""

    most: float
    """What it pays at the lowest bid: nothing on the menu is dearer."""

    error: float
    """How far a payment may be from exact, at any bid."""

    curve: Curve | None
    """The rents themselves; None if nothing is bought at any bid."""

    def at(self, bids: FloatArray, costs: FloatArray) -> tuple[FloatArray, FloatArray, Rents]:
        """Return losses, what they cost at these bids, and rents: each a function of its own bid only."""
        loss = self.offer.loss(costs)
        sold, price, rent = loss > 0.0, np.zeros(loss.size), np.zeros(loss.size)
        if self.curve is not None:
            np.multiply(bids, loss, out=price, where=sold & (bids > 0.0))
            # nothing on the menu is dearer than its first line
            rent[sold] = np.clip(self.curve(bids[sold]), 0.0, np.maximum(self.most - price[sold], 0.0))
        slack = np.where(sold, self.error, 0.0)
        return loss, price, Rents(lower=rent - slack, upper=rent + slack, estimate=rent)


@lru_cache(maxsize=256)
def menu_rents(prior: Prior, offer: Offer, tolerance: float) -> MenuRents:
    """The rents of people with this prior; their error is about ``tolerance`` times the largest payment."""
    lowest = prior.smallest_bid
    group = GroupCurves(_Offered(offer), prior, lowest=lowest, tolerance=tolerance)
    curve = group.rents()
    if curve is None:
        return MenuRents(prior=prior, offer=offer, most=0.0, error=0.0, curve=None)
    error = curve.error + group.rent_error
    loss = float(offer.loss(np.array([float(prior.virtual_cost(lowest))]))[0])
    most = (max(float(curve(np.array([lowest]))[0]), 0.0) + lowest * loss) * (1.0 + _ROUNDING)
    return MenuRents(prior=prior, offer=offer, most=most, error=error + 2.0 * _ROUNDING * most, curve=curve)
