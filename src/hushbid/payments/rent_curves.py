"""Rents, and errors without a person, as curves in the bid: one per stratum and group, through exact points."""

import math
from typing import Protocol

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.payments.rent_bounds import FINEST
from hushbid.payments.rent_integrals import rents
from hushbid.payments.rule import Rents, RuleWithPotential
from hushbid.payments.virtual_cost_table import Ladder
from hushbid.priors import Prior
from hushbid.priors.curves import Curve, fit

_AT_POINTS, _FINE = 0.6, 1e-4
"""The parts of a market's tolerance for what is computed at points, and for a curve through them."""

_GRID, _MOST_JUMPS, _STEEP = 1025, 16, 16.0
_BETWEEN = 0.01, 0.6
"""No curve need be closer to its points than the first part of what those may be off, or where these scatter than the
second."""


class Answers(Protocol):
    """What an allocation rule answers for each of many (person, virtual cost) pairs."""

    @property
    def value(self) -> FloatArray: ...
    @property
    def loss(self) -> FloatArray: ...
    @property
    def mse(self) -> FloatArray: ...


class Rule(Protocol):
    """An allocation rule for imagined people."""

    def at(self, rows: IndexArray, costs: FloatArray, /) -> Answers:
        """What happens if person ``rows[j]`` had virtual cost ``costs[j]`` (``inf``: were not there)."""
        ...


class Purchase(Protocol):
    """A purchase as the people of one stratum see it."""

    @property
    def level(self) -> float:
        """Below this virtual cost people are bought from."""
        ...

    @property
    def highest_level(self) -> float:
        """Nobody is bought from above this virtual cost, whoever's is raised."""
        ...

    def losses(self, costs: FloatArray) -> FloatArray:
        """The privacy losses of people with these virtual costs."""
        ...

    def rule_for(self, costs: FloatArray) -> RuleWithPotential:
        """The allocation rule of imagined people who are now at ``costs``."""
        ...


class PurchaseWithError(Purchase, Protocol):
    """The same, where the error without a person is known too."""

    def rule_for(self, costs: FloatArray) -> Rule:
        """The allocation rule of imagined people who are now at ``costs``."""
        ...


class GroupCurves:
    """Rents and outside errors of one group in one stratum as functions of the bid."""

    def __init__(
        self, bought: Purchase, prior: Prior, *, lowest: float, tolerance: float, ladder: Ladder | None = None
    ) -> None:
        """``lowest`` is the smallest bid of the group; rents are right to ``tolerance`` of the largest payment.

        A ``ladder`` is the table of ψ that all strata share.
        """
        self._bought, self._prior = bought, prior
        self._ladder = None if ladder is None else ladder.up_to(float(prior.virtual_cost_inverse(bought.highest_level)))
        self._lowest, self._tolerance = lowest, max(tolerance, FINEST)
        self.rent_error = 0.0
        self.largest = 0.0  # what a point was paid at most: errors are measured by it

    def rents(self) -> Curve | None:
        """What people gain over staying out; None if nobody of the group is bought from."""
        breaks = self._breaks(self._bought)
        if breaks is None:
            return None
        return fit(
            lambda bids: self._rents_at(bids).estimate,
            breaks,
            allowed=self._allowed,
        )

    def outside(self, without: PurchaseWithError, *, unit: float, idle: float) -> Curve | None:
        """The error without each person, in data units, less the error without an idle one.

        ``without`` is the purchase that nobody weighs the error for on their behalf.
        """
        breaks = self._breaks(without)
        if breaks is None:
            return None

        def errors(bids: FloatArray) -> FloatArray:
            rule = without.rule_for(np.asarray(self._prior.virtual_cost(bids)))
            return rule.at(np.arange(bids.size), np.full(bids.size, np.inf)).mse * unit - idle

        return fit(errors, breaks, allowed=lambda: (1e-13 * idle, 1e-12 * idle))

    def _allowed(self) -> tuple[float, float]:
        wanted, accepted = (part * self.rent_error for part in _BETWEEN)
        return max(_FINE * self._tolerance * self.largest, wanted), accepted

    def _losses(self, bids: FloatArray) -> FloatArray:
        return self._bought.losses(np.asarray(self._prior.virtual_cost(bids)))

    def _rents_at(self, bids: FloatArray) -> Rents:
        besides = bids * self._losses(bids)
        found = rents(
            self._bought.rule_for(np.asarray(self._prior.virtual_cost(bids))),
            self._prior,
            np.arange(bids.size),
            bids,
            paid_besides=besides,
            tolerance=_AT_POINTS * self._tolerance,
            ladder=self._ladder,
        )
        self.rent_error = max(self.rent_error, found.error)
        self.largest = max(self.largest, float((besides + found.estimate).max(initial=0.0)))
        return found

    def _breaks(self, bought: Purchase) -> list[float] | None:
        """Bids from the group's lowest to the last one below the level, and where the virtual cost has corners."""
        low, prior = self._lowest, self._prior
        if low == math.inf or not float(prior.virtual_cost(low)) < bought.level:
            return None
        # the last bid that is bought from, and the ends of flat parts on the way
        high = max(float(prior.virtual_cost_inverse(bought.level)), low)
        inner = [end for part in prior.flat_parts for end in part[:2] if low < end < high]
        return [low, *inner, *([] if prior.is_stepped else _jumps(prior, low, high)), high]


def _jumps(prior: Prior, low: float, high: float) -> list[float]:
    """The last bids before the virtual cost jumps, so that no piece of a curve need close in on them."""
    grid = np.linspace(low, high, _GRID)
    rise = np.diff(np.asarray(prior.virtual_cost(grid)))
    steep = np.argsort(-rise)[:_MOST_JUMPS]
    steep = steep[rise[steep] > _STEEP * np.median(rise)]
    left, right, whole = grid[steep], grid[steep + 1], rise[steep]
    while left.size:
        middle = 0.5 * (left + right)
        inside = (left < middle) & (middle < right)
        if not inside.any():
            break
        # follow the half in which it rises more, while nearly all of the rise is there
        costs = np.asarray(prior.virtual_cost(np.concatenate([left, middle, right]))).reshape(3, -1)
        rises = np.diff(costs, axis=0)
        kept = rises.max(axis=0) > 0.5 * whole
        up = rises[1] > rises[0]
        left, right = np.where(up & inside, middle, left)[kept], np.where(up | ~inside, right, middle)[kept]
        whole = whole[kept]
    found: list[float] = left.tolist()
    return found
