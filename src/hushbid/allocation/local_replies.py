"""How the local optimum moves when one person's cost does, for many (person, cost) pairs at once.

With ``k`` people active the optimum is a price ``P`` at which supply ``Σ q(y_j(P))`` meets ``P^{-1/2}``. Replacing one
cost takes one term out of the sum and puts another in, so all pairs share the sums over the cheapest people as
functions of ``P``. Those are smooth: for many people they are interpolated at Chebyshev points, to rounding, around the
present price. The number of active people moves by the rule of :mod:`hushbid.allocation.local`: stop where it equals
the number for whom the price is worthwhile, or between two neighbours, of which the better counts. Among equals the
earlier in precedence (by default the position) is bought from first, just as in the allocation.
"""

import math

import numpy as np

from hushbid.allocation.local import STEEPEST, WORTHWHILE, best_count, high_root
from hushbid.allocation.local_queue import PrefixSums, Queue
from hushbid.allocation.problem import HUGE, TINY, lifted, workable
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import BoolArray, FloatArray, IndexArray


class LocalReplies:
    """The local optimum as a function of one person's cost, everybody else's fixed."""

    def __init__(
        self, costs: FloatArray, variance: float, error_weight: float, precedence: IndexArray | None = None
    ) -> None:
        self._unit, self._error_weight = variance, error_weight
        self._scale = error_weight * variance * math.sqrt(variance)
        # so high that they could only overflow is as good as not there
        self._costs = costs = workable(costs, TINY * self._scale, 1e20 * HUGE * self._scale)
        finite = costs.size if costs.max() < np.inf else int(np.count_nonzero(costs < np.inf))
        # twice the active and some: one person's move changes their number by little
        size = min(finite, 256)
        while True:
            self._queue = Queue(costs, size, precedence)
            self._sorted = self._normal(self._queue.costs)
            best = best_count(self._sorted)
            if 2 * best.count + 64 <= size or size == finite:
                break
            size = min(finite, max(4 * size, 2 * best.count + 64))
        self._start, self._price = max(best.count, 2), best.price
        self._sums = PrefixSums(self._sorted, _terms, count=best.count, price=best.price)

    def _normal(self, costs: FloatArray) -> FloatArray:
        """Costs in normal form; those so high that they could only overflow are as good as infinite."""
        with np.errstate(over="ignore"):
            normal = costs / self._scale
        normal[normal > 1e20 * HUGE] = np.inf
        return normal

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        costs = lifted(costs, TINY * self._scale)
        moved = self._normal(costs)
        place, own = self._queue.place[rows], self._normal(self._costs[rows])
        rank = self._queue.rank(rows, costs)
        # candidate: one seller; then counts from the present one on, by steps of one
        value, loss, root_price = self._alone(place, moved, rank)
        others = self._sorted.size - (place < self._sorted.size)
        pending = np.flatnonzero(others + (moved < np.inf) >= 2)
        count = np.minimum(np.full(pending.size, self._start), (others + (moved < np.inf))[pending])
        before = np.zeros(pending.size, dtype=np.intp)
        price = np.full(pending.size, self._price)
        for _ in range(2 * self._sorted.size + 4):
            if pending.size == 0:
                break
            x, p = moved[pending], place[pending]
            active = rank[pending] < count
            found, price, y = self._balance(count, p, own[pending], x, active, price)
            # keep the best count so far of each pair
            better = found < value[pending]
            which = pending[better]
            value[which], root_price[which] = found[better], np.sqrt(price[better])
            loss[which] = np.where(active[better], y[better], 0.0)
            # how many are worthwhile at this price, her own cost out and the moved one in
            worthwhile = self._sorted.searchsorted(price * WORTHWHILE, side="right")
            worthwhile = worthwhile - (own[pending] <= price * WORTHWHILE) * (p < self._sorted.size)
            worthwhile = worthwhile + (x <= price * WORTHWHILE)
            step = np.sign(worthwhile - count)
            step[found == np.inf] = -1  # no balance: fewer
            # stop at agreement, when turning back, and at the ends
            going = (step != 0) & (step != -before) & (count + step >= 2)
            going &= count + step <= (others + (moved < np.inf))[pending]
            price = np.where(found < np.inf, price, self._price)  # where nothing balances the price says nothing
            pending, count, before, price = pending[going], (count + step)[going], step[going], price[going]
        scale = self._error_weight * self._unit
        return Replies(value * scale, loss / math.sqrt(self._unit), root_price * self._unit)

    def _alone(
        self, place: IndexArray, moved: FloatArray, rank: IndexArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Only the cheapest bought from: value, the person's own loss, and the error ``1 + 2/y²``."""
        cheapest = np.append(self._sorted, [np.inf, np.inf])
        other = np.where(place == 0, cheapest[1], cheapest[0])
        low = np.minimum(other, moved)
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.cbrt(4.0 / low)
            error = 1.0 + 2.0 / (y * y)
            value = error + np.where(low > 0.0, low * y, 0.0)
        return np.where(low < np.inf, value, np.inf), np.where((rank == 0) & (moved < np.inf), y, 0.0), error

    def _balance(
        self,
        count: IndexArray,
        place: IndexArray,
        own: FloatArray,
        moved: FloatArray,
        active: BoolArray,
        guess: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, price and the person's ``y`` with ``count`` active; the value is infinite if no price balances."""
        # the others: the first so many, less herself if she is one of them
        wanted = count - active
        without = place < wanted
        prefix = wanted + without
        last = self._sorted[np.maximum(np.where(place == prefix - 1, prefix - 2, prefix - 1), 0)]
        last = np.where(wanted > 0, last, 0.0)
        # below this price the dearest of them has no root
        least = np.maximum(last, np.where(active, moved, 0.0)) / STEEPEST * (1.0 + 1e-14)
        price = np.maximum(guess, least)
        low, high = np.full(price.size, 1e-300), np.full(price.size, np.inf)
        possible = np.ones(price.size, dtype=bool)
        out, into = np.where(without, own, 0.0), np.where(active, moved, 0.0)
        for _ in range(100):
            supply, spent, slope = self._sums.at(prefix, price)
            spent = price * spent
            # the shared sums, her term at her own cost out and at the moved one in
            for sign, who, cost in ((-1.0, without, out), (1.0, active, into)):
                q, spends, change, _ = _reply(cost / price)
                supply = supply + sign * np.where(who, q, 0.0)
                spent = spent + sign * np.where(who, price * spends, 0.0)
                slope = slope + sign * np.where(who, change, 0.0)
            target = price**-0.5
            excess = supply - target
            # supply too large at the least price: no balance
            possible &= ~((excess > 0.0) & (price <= least))
            low, high = np.where(excess <= 0.0, price, low), np.where(excess > 0.0, price, high)
            move = np.log(target / supply) / (slope / supply + 0.5)
            unfinished = possible & (np.abs(move) > 1e-8)
            if not unfinished.any():
                break
            # Newton for the logarithms where it stays in the bracket, else halve it
            ahead = np.maximum(price * np.exp(np.clip(move, -60.0, 60.0)), least)
            inside = (low < ahead) & (ahead < high)
            between = np.sqrt(np.maximum(low, least)) * np.sqrt(np.minimum(high, 1e300))
            price = np.where(unfinished, np.where(inside, ahead, between), price)
        # the last move is small: supply need not be computed again for the value
        move = np.where(possible, move, 0.0)
        price = price * np.exp(move)
        value = 2.0 * np.sqrt(price) + spent - price * supply
        return np.where(possible, value, np.inf), price, _reply(into / price)[3]


def _reply(ratio: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """``q``, ``ψy/P``, ``dq/d ln P`` and ``y`` at the high root for ``ψ/P``; 1, 0, 0 and ∞ at zero cost."""
    free = ratio <= 0.0
    y = high_root(np.where(free, STEEPEST, np.minimum(ratio, STEEPEST)))
    square = y * y
    q = square / (square + 2.0)
    change = 4.0 * q / (3.0 * square - 2.0 + 1e-9)
    return (
        np.where(free, 1.0, q),
        np.where(free, 0.0, ratio * y),
        np.where(free, 0.0, change),
        np.where(free, np.inf, y),
    )


def _terms(ratio: FloatArray) -> FloatArray:
    """``q``, ``ψy/P`` and ``dq/d ln P``, in three rows."""
    return np.stack(_reply(ratio)[:3])
