"""What people supply at a price, and what is demanded: the parts of the local optimum as verification finds it.

Normal form and symbols are those of :mod:`hushbid.verification.local_by_count`.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.arrays import BoolArray, FloatArray, IndexArray

STEEPEST = 3.0 * math.sqrt(3.0) / (8.0 * math.sqrt(2.0))
"""The largest ``dq/dy``, at ``q = 1/4``: below ``P = ψ/STEEPEST`` nobody has a root."""

_PEAK = 27.0 / 256.0
"""``s³(1 − s)`` at ``3/4``."""


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

    def at(self, price: FloatArray, cap: float) -> Sums:
        """What each list supplies at its price, nobody low."""
        found = supplied(self.costs / price[:, None], cap)
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
    """How much precision is wanted at a price, and what nobody may supply more than."""

    def __init__(self, needed: float | None, cap: float) -> None:
        self.fixed = needed is not None
        """Whether a precision is given, rather than a price of the error."""

        self.needed = math.inf if needed is None else needed
        """``T``."""

        self.cap = cap
        self.short_at_cap = 2.0 / (cap * cap + 2.0) if cap < math.inf else 0.0
        """``1 − q_e``."""

        self.low_end = min(0.25, 1.0 - self.short_at_cap)
        """``q_l``: whoever supplies less is low."""

        best = min(cap, math.sqrt(2.0))
        self.worth = best / (best * best + 2.0)
        """The largest ``q/y``: ``φ ≤ 0`` for a cost up to ``P`` times this."""

        self.dear = math.sqrt(2.0 / (self.low_end * (1.0 - self.low_end)))
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
            return np.asarray(np.minimum(np.cbrt(4.0 / cost), self.cap))
        left = np.asarray(self.needed - free, dtype=float)
        return np.where((left > 0.0) & (left < 1.0), loss_of(left), math.nan)

    def bracket(self, listed: Listed) -> tuple[FloatArray, FloatArray]:
        """Prices between which each list supplies what is wanted, nobody low."""
        if self.fixed:
            # at the price at which somebody supplies the mean, who is cheaper supplies more
            mean = (self.needed - listed.free) / (listed.count - listed.free)
            steep = price_of_last(mean)
            return listed.cheapest_paid * steep * (1.0 - 1e-12), listed.dearest * steep * (1.0 + 1e-12)
        count = listed.count.astype(float)
        most, least = count * (1.0 - self.short_at_cap), count * self.low_end
        return most**-2.0 * (1.0 - 1e-12), least**-2.0 * (1.0 + 1e-12)

    def prices_with_low_last(self, listed: Listed, last: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prices outside of which no low last person supplies what ``listed`` leave; empty if the ends are reversed."""
        low = last / STEEPEST
        if not self.fixed:
            count = listed.count.astype(float)
            most = count * (1.0 - self.short_at_cap) + self.low_end
            return np.maximum(low, most**-2.0), (count * self.low_end) ** -2.0
        left = self.needed - listed.count
        # others who can supply everything do so where the dearest of them supplies the mean
        mean = (self.needed - listed.free) / (listed.count - listed.free)
        enough = np.where(mean >= 0.25, listed.dearest * price_of_last(np.clip(mean, 0.25, 1.0)), -math.inf)
        # else: z ≥ T − (k − 1), and z ≥ Σs ≥ κ·P^{−2/3}, while y'(z) ≤ 1.09·z^{−1/2} up to 1/4
        kappa = np.cbrt(0.5 * listed.costs**2).sum(axis=1)
        few = np.minimum(last * price_of_last(np.maximum(left, 0.0)), (1.09 * last) ** 1.5 * kappa**-0.75)
        return low, np.where(left < 0.0, enough, few)


def loss_of(q: FloatArray) -> FloatArray:
    """``y(q)``."""
    return np.asarray(np.sqrt(2.0 * q / (1.0 - q)))


def price_of_last(q: FloatArray) -> FloatArray:
    """``y'(q)``: what the last bit of a precision takes."""
    rest = 1.0 - q
    return np.asarray(1.0 / (np.sqrt(2.0 * q * rest) * rest))


def supplied(ratio: FloatArray, cap: float) -> Supplied:
    """Replies to ``ψ/P``, nobody low, by Newton's method on ``s³(1 − s)``, which rises up to ``3/4``."""
    aim = 0.5 * np.square(np.minimum(ratio, STEEPEST))
    root, depth = np.cbrt(aim), np.sqrt(np.maximum(_PEAK - aim, 0.0) / 1.125)
    # from its series at 0 or at 3/4, in a bracket
    s = np.where(root < 0.4, root * (1.0 + root * (1.0 + root) / 3.0), 0.75 - depth * (1.0 + 0.89 * depth))
    low, high, last = root, np.full_like(root, 0.75), False
    for _ in range(60):
        excess = s * s * s * (1.0 - s) - aim
        high, low = np.where(excess >= 0.0, s, high), np.where(excess < 0.0, s, low)
        slope = s * s * (3.0 - 4.0 * s)
        ahead = np.where(slope > 0.0, s - excess / slope, s)
        ahead = np.where((ahead >= low) & (ahead <= high), ahead, 0.5 * (low + high))
        near = np.abs(ahead - s) <= 1e-8 * s  # the next step doubles the digits
        s = ahead
        if last:
            break
        last = bool(near.all())
    # from s³(1 − s) = ½(ψ/P)²: d log s·(3 − 4s)/(1 − s) = −2 d log P
    slope = np.where(s < 0.75, 2.0 * s * (1.0 - s) / np.maximum(3.0 - 4.0 * s, 1e-9), 0.0)
    loss = np.sqrt(2.0 * (1.0 - s) / s)
    if cap == math.inf:
        return Supplied(s, loss, slope)
    below = loss < cap
    return Supplied(np.where(below, s, 2.0 / (cap * cap + 2.0)), np.minimum(loss, cap), np.where(below, slope, 0.0))
