"""Rents, and errors without a person, as curves in the bid: one per group, through points priced as in memory."""

import math
from typing import Protocol

import numpy as np

from hushbid.allocation import ReplyRule
from hushbid.allocation.central_from_sums import SummedPopulation
from hushbid.arrays import FloatArray
from hushbid.engine.curves import Curve, fit
from hushbid.payments import Rents, rents
from hushbid.priors import Prior

_CURVE_TOLERANCE = 1e-10
RENT_TOLERANCE = 1e-8
"""How narrow the enclosures of rents must be, relative to the largest payment, if the market does not ask for more."""


class Summed(Protocol):
    """A purchase that was found from sums."""

    @property
    def level(self) -> float:
        """Below this virtual cost people are bought from."""
        ...

    def losses(self, costs: FloatArray) -> FloatArray:
        """The privacy losses of people with these virtual costs."""
        ...

    def replies_for(self, costs: FloatArray) -> ReplyRule:
        """The purchase as a function of the cost of somebody who is now at one of ``costs``."""
        ...


class GroupCurves:
    """Rents and outside errors of one group as functions of the bid."""

    def __init__(
        self,
        summed: Summed,
        outside: SummedPopulation | None,
        prior: Prior,
        lowest: float,
        tolerance: float,
    ) -> None:
        self._summed, self._outside, self._prior = summed, outside, prior
        self._lowest, self._tolerance = lowest, tolerance
        self.rent_error = self.largest = 0.0

    def rents(self) -> Curve | None:
        """What people gain over staying out."""
        breaks = self._breaks(self._summed.level)
        if breaks is None:
            return None
        # the lowest bid is paid most: what errors are measured by
        few = self._rents_at(np.array([breaks[0]]))
        self.largest = float(few.estimate[0] + breaks[0] * self._losses(np.array([breaks[0]]))[0])
        return fit(lambda bids: self._rents_at(bids).estimate, breaks, allowed=_CURVE_TOLERANCE * self.largest)

    def outside(self, unit: float, idle: float) -> Curve | None:
        """The error without each person, in data units, less the error without an idle one."""
        if self._outside is None:
            return None
        summed = self._outside
        breaks = self._breaks(summed.level)
        if breaks is None:
            return None

        def without(bids: FloatArray) -> FloatArray:
            rule = summed.replies_for(np.asarray(self._prior.virtual_cost(bids)))
            return rule.at(np.arange(bids.size), np.full(bids.size, np.inf)).mse * unit - idle

        return fit(without, breaks, allowed=1e-13 * idle)

    def _losses(self, bids: FloatArray) -> FloatArray:
        return self._summed.losses(np.asarray(self._prior.virtual_cost(bids)))

    def _rents_at(self, bids: FloatArray) -> Rents:
        rule = self._summed.replies_for(np.asarray(self._prior.virtual_cost(bids)))
        found = rents(
            rule,
            self._prior,
            np.arange(bids.size),
            bids,
            paid_besides=bids * self._losses(bids),
            tolerance=self._tolerance,
        )
        self.rent_error = max(self.rent_error, found.error)
        return found

    def _breaks(self, level: float) -> list[float] | None:
        """Bids from the group's lowest to the last one below the level, and where the virtual cost has corners."""
        low, prior = self._lowest, self._prior
        if low == math.inf or not float(prior.virtual_cost(low)) < level:
            return None
        # the last bid that is bought from, and the ends of flat parts on the way
        high = max(float(prior.virtual_cost_inverse(level)), low)
        inner = [end for part in prior.flat_parts for end in part[:2] if low < end < high]
        return [low, *inner, high]
