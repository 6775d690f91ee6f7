"""What people supply at a price, and what is demanded: the parts of the local optimum as verification finds it.

Normal form and symbols are those of :mod:`hushbid.verification.local_by_count`.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.verification.local_curve import LAPLACE, PrecisionCurve


@dataclass(frozen=True, slots=True, eq=False)
class Supplied:
    """Replies to a price, one per cost."""

    short: FloatArray
    """``s = 1 − q``."""

    loss: FloatArray
    """``y``."""

    slope: FloatArray
    """``dq/d log P``."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The replies of one list each, added up."""

    short: FloatArray
    """``Σ (1 − q)``."""

    spent: FloatArray
    """``Σ ψ·y``."""

    slope: FloatArray
    """``d Σq/d log P``."""

    own: FloatArray
    """The loss in the last column."""


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The cheapest people of many lists, a row each."""

    costs: FloatArray
    here: BoolArray
    """Which entries count; the others are zero."""

    count: IndexArray

    def take(self, which: IndexArray) -> "Listed":
        return Listed(self.costs[which], self.here[which], self.count[which])

    def at(self, price: FloatArray, demand: "Demand") -> Sums:
        """What each list supplies at its price, nobody low."""
        found = supplied(self.costs / price[:, None], demand)
        short, slope = (np.where(self.here, part, 0.0).sum(axis=1) for part in (found.short, found.slope))
        spent = (self.costs * np.where(self.costs > 0.0, found.loss, 0.0)).sum(axis=1)
        return Sums(short, spent, slope, found.loss[:, -1])

    @property
    def dearest(self) -> FloatArray:
        return np.asarray(self.costs.max(axis=1))

    @property
    def cheapest_paid(self) -> FloatArray:
        return np.asarray(self.costs.min(axis=1, initial=math.inf, where=self.costs > 0.0))

    @property
    def free(self) -> IndexArray:
        """How many ask for nothing."""
        return np.asarray((self.here & (self.costs == 0.0)).sum(axis=1))


class Demand:
    """How much precision is wanted at a price, how it is supplied, and what nobody may supply more than."""

    def __init__(self, needed: float | None, cap: float, curve: PrecisionCurve = LAPLACE) -> None:
        self.curve = curve
        self.fixed = needed is not None
        """Whether a precision is given, rather than a price of the error."""

        self.needed = math.inf if needed is None else needed
        """``T``."""

        self.cap = cap
        self.short_at_cap = curve.short(cap) if cap < math.inf else 0.0
        """``1 − q_e``."""

        self.low_end = min(curve.turn, 1.0 - self.short_at_cap)
        """``q_l``: whoever supplies less is low."""

        best = min(cap, curve.most_useful)
        self.worth = (1.0 - curve.short(best)) / best
        """The largest ``q/y``: ``φ ≤ 0`` for a cost up to ``P`` times this."""

        self.dear = float(curve.loss_of(np.array(self.low_end))) / self.low_end
        """``y(q_l)/q_l``."""

    def at(self, price: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What is wanted at a price, and how that falls with its logarithm."""
        if self.fixed:
            return np.full(price.size, self.needed), np.zeros(price.size)
        wanted = price**-0.5
        return wanted, 0.5 * wanted

    def loss_alone(self, cost: FloatArray, free: IndexArray) -> FloatArray:
        """What one person loses beside so many who ask for nothing; not a number where she is not enough."""
        if not self.fixed:
            return np.asarray(np.minimum(self.curve.loss_alone(cost), self.cap))
        left = np.asarray(self.needed - free, dtype=float)
        return np.where((left > 0.0) & (left < 1.0), self.curve.loss_of(left), math.nan)

    def bracket(self, listed: Listed) -> tuple[FloatArray, FloatArray]:
        """Prices between which each list supplies what is wanted, nobody low."""
        if self.fixed:
            # at the price at which somebody supplies the mean, who is cheaper supplies more
            mean = (self.needed - listed.free) / (listed.count - listed.free)
            steep = self.curve.price_of_last(mean)
            return listed.cheapest_paid * steep * (1.0 - 1e-12), listed.dearest * steep * (1.0 + 1e-12)
        count = listed.count.astype(float)
        most, least = count * (1.0 - self.short_at_cap), count * self.low_end
        return most**-2.0 * (1.0 - 1e-12), least**-2.0 * (1.0 + 1e-12)

    def prices_with_low_last(self, listed: Listed, last: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prices outside of which no low last person supplies what ``listed`` leave; empty if the ends are reversed."""
        low = last / self.curve.steepest
        if not self.fixed:
            count = listed.count.astype(float)
            most = count * (1.0 - self.short_at_cap) + self.low_end
            return np.maximum(low, most**-2.0), (count * self.low_end) ** -2.0
        left = self.needed - listed.count
        # others who can supply everything do so where the dearest of them supplies the mean
        mean = (self.needed - listed.free) / (listed.count - listed.free)
        turn, last_price = self.curve.turn, self.curve.price_of_last
        enough = np.where(mean >= turn, listed.dearest * last_price(np.clip(mean, turn, 1.0)), -math.inf)
        # else: z ≥ T − (k − 1), and z ≥ Σs
        few = np.minimum(last * last_price(np.maximum(left, 0.0)), self.curve.highest_price(last, listed.costs))
        return low, np.where(left < 0.0, enough, few)


def supplied(ratio: FloatArray, demand: Demand) -> Supplied:
    """Replies to ``ψ/P``, nobody low."""
    curve, cap = demand.curve, demand.cap
    s = curve.short_at(ratio)
    loss, slope = curve.loss(s), curve.slope(s)
    if cap == math.inf:
        return Supplied(s, loss, slope)
    below = loss < cap
    return Supplied(np.where(below, s, demand.short_at_cap), np.minimum(loss, cap), np.where(below, slope, 0.0))
