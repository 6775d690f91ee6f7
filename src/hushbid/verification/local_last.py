"""Local purchases in which the last person is low: every one that could be best, by exclusion over prices.

Normal form, symbols and the three tests are those of :mod:`hushbid.verification.local_by_count`.
"""

import math
from dataclasses import dataclass, fields

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.verification.local_supply import Demand, Listed

_ROUNDS = 60
_PARTS = 4
_NARROW = 1e-7
_AS_GOOD = 1.0 - 1e-13


@dataclass(slots=True, eq=False)
class Purchases:
    """One purchase per pair, in normal form."""

    value: FloatArray
    """``F + Σ ψ·y``, infinite if there is none."""

    error: FloatArray
    """``1/Λ``."""

    price: FloatArray
    """``P``, to which everybody answers."""

    last: FloatArray
    """The loss of the last person, where she does not; else not a number."""

    own: FloatArray
    """The moved person's loss, 0 if she is not bought from."""

    free: FloatArray
    """The loss of whoever asks for nothing, where only they are needed; else 0."""

    count: IndexArray
    """How many are bought from."""

    @classmethod
    def none(cls, size: int) -> "Purchases":
        """Nothing yet."""
        value, error, price, last, own, free = (
            np.full(size, fill) for fill in (math.inf, math.inf, math.inf, math.nan, 0.0, 0.0)
        )
        return cls(value, error, price, last, own, free, np.zeros(size, dtype=np.intp))

    def take(self, which: IndexArray) -> "Purchases":
        return Purchases(*(getattr(self, field.name)[which] for field in fields(self)))

    def put(self, which: IndexArray, other: "Purchases") -> None:
        """Replace some, by as many."""
        for field in fields(self):
            getattr(self, field.name)[which] = getattr(other, field.name)

    def improve(self, which: IndexArray, other: "Purchases") -> None:
        """Replace those of ``which`` for which the other purchase costs less."""
        better = np.flatnonzero(other.value < self.value[which])
        self.put(which[better], other.take(better))


@dataclass(slots=True, eq=False)
class _Points:
    """The others answer a price, the last supplies what they leave."""

    price: FloatArray
    left: FloatArray
    """``z``."""

    paid: FloatArray
    """``F`` and what the others cost."""

    def take(self, which: IndexArray | BoolArray) -> "_Points":
        return _Points(*(getattr(self, field.name)[which] for field in fields(self)))


def best_with_a_low_last(
    listed: Listed, last: FloatArray, hers: BoolArray, demand: Demand, seen: FloatArray
) -> Purchases:
    """The best purchase from each list and one more person, at cost ``last``, who is low; ``hers``: the moved one.

    ``seen`` is a value that is attained: nothing above it is looked for.
    """
    best = Purchases.none(last.size)
    low, high = demand.prices_with_low_last(listed, last)
    some = np.flatnonzero((low < high) & (last < math.inf))
    if some.size == 0:
        return best
    pair, left, right = some, _at(listed, demand, some, low[some]), _at(listed, demand, some, high[some])
    for _ in range(_ROUNDS):
        keep = _open(last[pair], seen[pair], left, right, demand)
        pair, left, right = pair[keep], left.take(keep), right.take(keep)
        narrow = right.price <= left.price * (1.0 + _NARROW)
        if narrow.any():
            _settle(listed, last, hers, demand, pair[narrow], left.take(narrow), right.take(narrow), best)
            pair, left, right = pair[~narrow], left.take(~narrow), right.take(~narrow)
        if pair.size == 0:
            break
        # cut in the logarithm
        share = np.arange(1, _PARTS) / _PARTS
        inner = left.price[:, None] * (right.price / left.price)[:, None] ** share[None, :]
        middle = _at(listed, demand, np.repeat(pair, _PARTS - 1), inner.ravel())
        ends = [left, *(middle.take(np.arange(k, middle.price.size, _PARTS - 1)) for k in range(_PARTS - 1)), right]
        pair, left, right = np.tile(pair, _PARTS), _joined(ends[:-1]), _joined(ends[1:])
    return best


def _at(listed: Listed, demand: Demand, pair: IndexArray, price: FloatArray) -> _Points:
    some = listed.take(pair)
    sums = some.at(price, demand)
    paid = sums.spent if demand.fixed else np.sqrt(price) + sums.spent
    return _Points(price, (demand.at(price)[0] - some.count) + sums.short, paid)


def _open(last: FloatArray, seen: FloatArray, left: _Points, right: _Points, demand: Demand) -> BoolArray:
    """Which intervals of prices may hold a minimum that is better than what was seen."""
    most, least = np.minimum(left.left, demand.low_end), np.maximum(right.left, 0.0)
    # what she supplies lies between least and most, and so does what the last bit of it takes
    inside = (left.left > 0.0) & (right.left < demand.low_end)
    falls = last * demand.curve.price_of_last(least) < left.price
    rises = last * demand.curve.price_of_last(most) > right.price
    worse = left.paid + last * demand.curve.loss_of(least) >= seen * _AS_GOOD
    return np.asarray(inside & ~falls & ~rises & ~worse)


def _settle(
    listed: Listed,
    last: FloatArray,
    hers: BoolArray,
    demand: Demand,
    pair: IndexArray,
    left: _Points,
    right: _Points,
    best: Purchases,
) -> None:
    """Solve ``P = ψ·y'(z)`` where it passes a minimum in a narrow interval; keep the best of each pair."""

    def gap(points: _Points) -> FloatArray:
        dear = demand.curve.price_of_last(np.clip(points.left, 0.0, demand.low_end))
        return np.asarray(last[pair] * dear / points.price - 1.0)

    low, high = left.price.copy(), right.price.copy()
    crossing = (gap(left) > 0.0) & (gap(right) < 0.0)
    pair, low, high = pair[crossing], low[crossing], high[crossing]
    if pair.size == 0:
        return
    for _ in range(60):
        price = 0.5 * (low + high)
        points = _at(listed, demand, pair, price)
        up = gap(points) > 0.0
        low, high = np.where(up, price, low), np.where(up, high, price)
        if not (high - low > 2e-16 * high).any():
            break
    loss = demand.curve.loss_of(points.left)
    value = points.paid + last[pair] * loss
    found = Purchases.none(pair.size)
    found.value, found.price, found.last, found.count = value, price, loss, listed.count[pair] + 1
    found.error = np.full(pair.size, 1.0 / demand.needed) if demand.fixed else np.sqrt(price)
    # the moved person is the last one, or in the last column
    own = listed.take(pair).at(price, demand).own
    found.own = np.where(hers[pair], loss, np.where(listed.here[pair, -1], own, 0.0))
    for j in np.argsort(-value, kind="stable").tolist():
        best.improve(pair[[j]], found.take(np.array([j])))


def _joined(parts: list[_Points]) -> _Points:
    return _Points(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(_Points)))
