"""Least-cost purchases from lists of people in the local setting: the two kinds that an optimum can be of.

Normal form, symbols and bounds are those of :mod:`hushbid.verification.local_rule`.
"""

import math
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.verification.local_curve import PrecisionCurve

_STEPS, _ROUNDS, _HALVINGS = 200, 60, 60
_PARTS, _NARROW = 4, 1e-7
AS_GOOD = 1.0 - 1e-13
_LEAST = 1e-24


@dataclass(slots=True, eq=False)
class _Part:
    """Arrays with one entry per item, of which some may be taken or replaced."""

    def take(self, which: IndexArray | BoolArray) -> Self:
        """Return some items."""
        return type(self)(*(getattr(self, field.name)[which] for field in fields(self)))

    def put(self, which: IndexArray, other: Self) -> None:
        """Replace some items."""
        for field in fields(self):
            getattr(self, field.name)[which] = getattr(other, field.name)


@dataclass(slots=True, eq=False)
class Lists(_Part):
    """The people of each (person, cost) pair, cheapest first, and how many of them are looked at."""

    costs: FloatArray
    """Infinite where nobody is."""

    mine: IndexArray
    """The column of the person who moved."""

    count: IndexArray

    @property
    def here(self) -> BoolArray:
        """Return which entries are looked at."""
        return np.asarray(np.arange(self.costs.shape[1]) < self.count[:, None])

    @property
    def free(self) -> IndexArray:
        """Return how many ask for nothing."""
        return np.asarray((self.costs == 0.0).sum(axis=1))

    def cost_of(self, number: IndexArray) -> FloatArray:
        """Return what the ``number``-th of each list costs, counted from 1."""
        return np.asarray(np.take_along_axis(self.costs, (number - 1)[:, None], axis=1)[:, 0])


@dataclass(slots=True, eq=False)
class Bought(_Part):
    """One purchase per pair."""

    value: FloatArray
    """``F + Σ ψ·y``, infinite if there is none."""

    error: FloatArray
    """``1/Λ``."""

    price: FloatArray
    last: FloatArray
    """The loss of the last person where that is no answer to the price; else not a number."""

    own: FloatArray
    """The loss of the person who moved."""

    free: FloatArray
    """The loss of people who ask for nothing, where only they are needed; else 0."""

    count: IndexArray

    @classmethod
    def nothing(cls, size: int) -> "Bought":
        """Return no purchase yet."""
        value, error, price = (np.full(size, math.inf) for _ in range(3))
        last, none = np.full(size, math.nan), np.zeros(size, dtype=np.intp)
        return cls(value, error, price, last, np.zeros(size), np.zeros(size), none)

    def improve(self, which: IndexArray, other: "Bought") -> None:
        """Keep the cheaper of two purchases; several may be of one pair."""
        order = np.lexsort((other.value, which))
        first = order[np.flatnonzero(np.diff(which[order], prepend=-1))]
        first = first[other.value[first] < self.value[which[first]]]
        self.put(which[first], other.take(first))


@dataclass(slots=True, eq=False)
class _Points(_Part):
    """Prices, what the last person is left to supply, and what ``F`` and the others cost."""

    price: FloatArray
    left: FloatArray
    paid: FloatArray


class Market:
    """A curve, a cap and what is demanded: how lists of people are bought from at least cost."""

    def __init__(self, curve: PrecisionCurve, cap: float, needed: float | None) -> None:
        self.curve, self.cap, self.needed = curve, cap, needed
        self.top = curve.precision(cap)
        """``q_e``."""

        self.low = min(curve.turn, self.top)
        """``q_l``."""

    def supplied(self, ratio: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ``q_e − q``, ``y`` and ``dq/d log P`` of answers to ``ψ/P``, nobody low."""
        short = self.curve.short_at(ratio)
        loss, slope = self.curve.loss(short), self.curve.slope(short)
        below = loss < self.cap
        missing = np.where(below, short - (1.0 - self.top), 0.0)
        return missing, np.minimum(loss, self.cap), np.where(below, slope, 0.0)

    def _supply(self, lists: Lists, price: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ``Λ``, ``Σ ψ·y`` and ``dΛ/d log P`` of the first ``count`` of each list at a price."""
        width = int(lists.count.max(initial=0))
        costs, here = lists.costs[:, :width], lists.here[:, :width]
        ratio = np.where(here, costs, 0.0) / price[:, None]
        short, loss, slope = self.supplied(ratio)
        spent = np.where(here & (costs > 0.0), costs * loss, 0.0).sum(axis=1)
        missing = np.where(here, short, 0.0).sum(axis=1)
        return lists.count * self.top - missing, spent, np.where(here, slope, 0.0).sum(axis=1)

    def _own(self, lists: Lists, price: FloatArray) -> FloatArray:
        """Return the moved person's answer to a price, 0 for one who is not among the first ``count``."""
        cost = np.take_along_axis(lists.costs, np.minimum(lists.mine, lists.costs.shape[1] - 1)[:, None], axis=1)[:, 0]
        among = (lists.mine < lists.count) & (cost < math.inf)
        return np.where(among, self.supplied(np.where(among, cost, 0.0) / price)[1], 0.0)

    def demanded(self, price: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is wanted at a price, and how that falls with its logarithm."""
        if self.needed is not None:
            return np.full(price.size, self.needed), np.zeros(price.size)
        wanted = price**-0.5
        return wanted, 0.5 * wanted

    def _mean(self, lists: Lists) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what those who are paid supply on average for a given error, and their least and largest cost."""
        here, free = lists.here, lists.free
        paid = np.where(here & (lists.costs > 0.0), lists.costs, math.nan)
        mean = ((self.needed or 0.0) - free * self.top) / (lists.count - free)
        return mean, np.fmin.reduce(paid, axis=1), np.fmax.reduce(paid, axis=1)

    def balances(self, lists: Lists, start: FloatArray) -> Bought:
        """Return the purchase from the first ``count``, nobody low: at the price at which supply is what is demanded.

        Safeguarded Newton steps in ``log P``. Where the slope is steep a small step alone is no sign of balance.
        """
        found = Bought.nothing(lists.count.size)
        if lists.count.size == 0:
            return found
        if self.needed is None:
            low, high = (lists.count * self.top) ** -2.0, (lists.count * self.low) ** -2.0
        else:
            mean, least, most = self._mean(lists)
            steep = self.curve.price_of_last(np.clip(mean, self.low, self.top))
            low, high = least * steep, most * steep
        low, high = low * (1.0 - 1e-12), high * (1.0 + 1e-12)
        price, left, settled = np.clip(start, low, high), np.arange(lists.count.size), np.zeros(start.size, dtype=bool)
        point = np.zeros((3, start.size))
        at, some = price.copy(), lists
        for _ in range(_STEPS):
            supply, spent, slope = self._supply(some, at)
            wanted, fall = self.demanded(at)
            excess = supply - wanted
            price[left], point[:, left] = at, np.stack([supply, spent, wanted])
            # that step doubled the digits of who had settled
            open_ = ~settled
            if not open_.any():
                break
            left, some = left[open_], some.take(open_)
            at, low, high = at[open_], low[open_], high[open_]
            excess, wanted, slope, fall = excess[open_], wanted[open_], slope[open_], fall[open_]
            low, high = np.where(excess <= 0.0, at, low), np.where(excess > 0.0, at, high)
            move = -excess / (slope + fall)
            near = np.abs(excess) <= 1e-6 * wanted
            settled = near & (np.abs(move) <= 1e-8) | (high <= low * (1.0 + 1e-15))
            # Newton where it stays in the bracket, else halve that in the logarithm
            ahead = at * np.exp(np.clip(move, -2.0, 2.0))
            inside = (low < ahead) & (ahead < high) & (near | (np.abs(move) > 1e-6)) | near & (np.abs(move) <= 1e-12)
            at = np.where(inside, ahead, np.sqrt(low) * np.sqrt(high))
        supply, spent, wanted = point
        # at a balance the value changes with the square of what is missing
        found.value = spent + (price * (wanted - supply) if self.needed is not None else 1.0 / supply)
        found.error = 1.0 / (wanted if self.needed is not None else supply)
        found.price, found.count, found.own = price, lists.count, self._own(lists, price)
        return found

    # -- a low last person ---------------------------------------------------------------------------------------------

    def with_low_last(self, lists: Lists, seen: FloatArray) -> Bought:
        """Return the best purchase from the first ``count`` with a low last person, if it is better than ``seen``."""
        best = Bought.nothing(lists.count.size)
        if lists.count.size == 0:
            return best
        last, others = lists.cost_of(lists.count), lists.take(np.arange(lists.count.size))
        others.count = lists.count - 1
        low, high = self._prices(others, last)
        pair = np.flatnonzero(low < high)
        left, right = self._at(others, pair, low[pair]), self._at(others, pair, high[pair])
        for _ in range(_ROUNDS):
            keep = self._open(last[pair], seen[pair], left, right)
            pair, left, right = pair[keep], left.take(keep), right.take(keep)
            narrow = right.price <= left.price * (1.0 + _NARROW)
            if narrow.any():
                self._settle(others, last, pair[narrow], left.take(narrow), right.take(narrow), best)
                pair, left, right = pair[~narrow], left.take(~narrow), right.take(~narrow)
            if pair.size == 0:
                break
            # cut in the logarithm
            share = np.arange(1, _PARTS) / _PARTS
            inner = left.price[:, None] * (right.price / left.price)[:, None] ** share[None, :]
            middle = self._at(others, np.repeat(pair, _PARTS - 1), inner.ravel())
            ends = [left, *(middle.take(np.arange(k, middle.price.size, _PARTS - 1)) for k in range(_PARTS - 1)), right]
            pair, left, right = np.tile(pair, _PARTS), _joined(ends[:-1]), _joined(ends[1:])
        return best

    def _prices(self, others: Lists, last: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return prices outside of which no low last person supplies what ``others`` leave."""
        least, count = last / self.curve.steepest, others.count
        if self.needed is None:
            return np.maximum(least, (count * self.top + self.low) ** -2.0), np.asarray((count * self.low) ** -2.0)
        # others who can supply everything do so where the dearest of them supplies the mean; else z is what they cannot
        mean, _, dearest = self._mean(others)
        left = self.needed - count * self.top
        steep = self.curve.price_of_last
        enough = np.where(mean >= self.low, dearest * steep(np.clip(mean, self.low, self.top)), -math.inf)
        rest = np.where(left < self.low, last * steep(np.clip(left, _LEAST, self.low)), -math.inf)
        return least, np.where(left < 0.0, enough, rest) * (1.0 + 1e-6)

    def _at(self, others: Lists, pair: IndexArray, price: FloatArray) -> _Points:
        supply, spent, _ = self._supply(others.take(pair), price)
        wanted = self.demanded(price)[0]
        return _Points(price, wanted - supply, spent if self.needed is not None else np.sqrt(price) + spent)

    def _open(self, last: FloatArray, seen: FloatArray, left: _Points, right: _Points) -> BoolArray:
        """Return which intervals of prices may hold a minimum that is better than what was seen."""
        most, least = np.minimum(left.left, self.low), np.maximum(right.left, 0.0)
        # what the last supplies lies between least and most, and so does what the last bit of it costs
        inside = (left.left > 0.0) & (right.left < self.low)
        falls = last * self.curve.price_of_last(least) < left.price
        rises = last * self.curve.price_of_last(most) > right.price
        worse = left.paid + last * self.curve.loss_of(least) >= seen * AS_GOOD
        return np.asarray(inside & ~falls & ~rises & ~worse)

    def _settle(
        self, others: Lists, last: FloatArray, pair: IndexArray, left: _Points, right: _Points, best: Bought
    ) -> None:
        """Solve ``P = ψ·y'(z)`` where it passes a minimum in a narrow interval; keep the best of each pair."""

        def gap(points: _Points) -> FloatArray:
            dear = self.curve.price_of_last(np.clip(points.left, 0.0, self.low))
            return np.asarray(last[pair] * dear / points.price - 1.0)

        crossing = (gap(left) > 0.0) & (gap(right) < 0.0)
        pair, low, high = pair[crossing], left.price[crossing], right.price[crossing]
        if pair.size == 0:
            return
        for _ in range(_HALVINGS):
            points = self._at(others, pair, 0.5 * (low + high))
            up = gap(points) > 0.0
            low, high = np.where(up, points.price, low), np.where(up, high, points.price)
            if not (high - low > 2e-16 * high).any():
                break
        loss, some, found = self.curve.loss_of(points.left), others.take(pair), Bought.nothing(pair.size)
        found.value, found.price, found.last = points.paid + last[pair] * loss, points.price, loss
        found.count = some.count + 1
        found.error = np.full(pair.size, 1.0 / self.needed) if self.needed is not None else np.sqrt(points.price)
        found.own = np.where(some.mine == some.count, loss, self._own(some, points.price))
        best.improve(pair, found)


def _joined(parts: "list[_Points]") -> _Points:
    return _Points(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(_Points)))
