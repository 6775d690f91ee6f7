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
from hushbid.payments import GroupCurves, Rents, rents
from hushbid.priors import Prior
from hushbid.priors.curves import Curve

_ROUNDING = 4e-12
"""Virtual costs, and so losses and rents of a menu, are right to this part of the largest."""


@dataclass(frozen=True, slots=True, eq=False)
class Replies:
    """Value and loss at many virtual costs, as `hushbid.payments` wants them."""

    value: FloatArray = field(repr=False)
    loss: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Offered:
    """An offer as a purchase, and as the rule that everybody faces: nobody's bid moves it."""

    offer: Offer

    @property
    def level(self) -> float:
        return float(np.nextafter(self.offer.end, math.inf))  # at its end something may be bought

    highest_level = level

    def losses(self, costs: FloatArray) -> FloatArray:
        return self.offer.loss(costs)

    def rule_for(self, costs: FloatArray) -> "_Offered":
        return self

    def at(self, rows: IndexArray, costs: FloatArray, /) -> Replies:
        """What anybody gives up at these virtual costs."""
        return Replies(value=self.offer.value(costs), loss=self.offer.loss(costs))


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

    tolerance: float
    """How exact rents are to be, relative to the largest payment."""

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

    def clipped(self, bids: FloatArray, strength: FloatArray, limit: FloatArray) -> Rents:
        """Return the rents of people who are offered so many times as much, of which a limit leaves less.

        They lose the limit up to the bid at which no more is offered, and from there on what is.
        """
        bend = np.asarray(self.prior.virtual_cost_inverse(self.offer.cost_of(limit / strength)))
        bend = np.maximum(bend, bids)
        loss = self.offer.loss(np.asarray(self.prior.virtual_cost(bend)))
        # the menu's curve is exact relative to its dearest line, which limits leave nothing of
        after = rents(
            _Offered(self.offer),
            self.prior,
            np.arange(bend.size),
            bend,
            paid_besides=np.multiply(bend, loss, out=np.zeros(bend.size), where=bend > 0.0),
            tolerance=0.5 * self.tolerance,
        )
        before, slack = limit * (bend - bids), _ROUNDING * limit * bend
        return Rents(
            lower=before + strength * after.lower - slack,
            upper=before + strength * after.upper + slack,
            estimate=before + strength * after.estimate,
        )


@lru_cache(maxsize=256)
def menu_rents(prior: Prior, offer: Offer, tolerance: float) -> MenuRents:
    """The rents of people with this prior; their error is about ``tolerance`` times the largest payment."""
    lowest = prior.smallest_bid
    group = GroupCurves(_Offered(offer), prior, lowest=lowest, tolerance=tolerance)
    curve = group.rents()
    if curve is None:
        return MenuRents(prior=prior, offer=offer, most=0.0, error=0.0, curve=None, tolerance=tolerance)
    error = curve.error + group.rent_error
    loss = float(offer.loss(np.array([float(prior.virtual_cost(lowest))]))[0])
    most = (max(float(curve(np.array([lowest]))[0]), 0.0) + lowest * loss) * (1.0 + _ROUNDING)
    error += 2.0 * _ROUNDING * most
    return MenuRents(prior=prior, offer=offer, most=most, error=error, curve=curve, tolerance=tolerance)
