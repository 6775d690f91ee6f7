"""How the cheapest local purchase of an accuracy moves when one person's cost does, for many pairs at once.

The value is what the purchase costs, a concave function of her cost with her loss as its slope. It is infinite if she
is not there and the accuracy cannot be reached without her. Her loss can jump.
"""

import math

import numpy as np

from hushbid.allocation.local import STEEPEST, high_root
from hushbid.allocation.local_accuracy import balance, cheapest_purchases, first_dear, most_needed, terms
from hushbid.allocation.local_queue import Moves, PrefixSums, Queue
from hushbid.allocation.problem import LEAST, MOST, TINY, workable
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import FloatArray, IndexArray

_SPARE = 8


class LocalAccuracyReplies:
    """The cheapest local purchase of an accuracy as a function of one person's cost, everybody else's fixed."""

    def __init__(
        self, costs: FloatArray, variance: float, standard_error: float, precedence: IndexArray | None = None
    ) -> None:
        self._variance, self._square = variance, standard_error**2
        self._needed = variance / self._square
        costs = workable(costs, LEAST, MOST)
        self._free = costs == 0.0
        # people who cost nothing stand in no queue
        paid = np.where(self._free, np.inf, costs)
        size = min(int(np.count_nonzero(paid < np.inf)), most_needed(self._needed) + _SPARE)
        self._queue = Queue(paid, size, precedence)
        left = self._needed - float(np.count_nonzero(self._free))
        self._unit, self._start, price = 1.0, 1, 1.0
        if self._queue.costs.size > left > 0.0:
            self._start = first_dear(self._queue.costs, left)
            self._unit = float(self._queue.costs[min(self._start, self._queue.costs.size) - 1])
            price = balance(self._queue.costs, left)[2] / self._unit
        self._normal = self._queue.costs / self._unit
        # interpolation stays clear of the corner where somebody has no high root
        self._sums = PrefixSums(self._normal, terms, count=self._start, price=price, steepest=0.9 * STEEPEST)

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        costs = workable(costs, LEAST, MOST)
        free = int(np.count_nonzero(self._free)) - self._free[rows] + (costs == 0.0)
        value, loss = np.zeros(rows.size), np.zeros(rows.size)
        # those who cost nothing are enough: they share the work, and nothing is paid
        enough = (self._needed <= free) & (free > 0)
        with np.errstate(divide="ignore"):
            share = np.sqrt(2.0 / np.maximum(free * self._square - self._variance, 0.0))
        loss[enough] = np.where(costs == 0.0, share, 0.0)[enough]
        # otherwise they are without noise, and the others supply the rest
        which = np.flatnonzero(~enough)
        value[which], loss[which] = self._bought(rows[which], costs[which], self._needed - free[which])
        return Replies(value, loss, np.where(value < np.inf, self._square, np.inf))

    def _bought(self, rows: IndexArray, costs: FloatArray, needed: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value and her loss where something has to be bought."""
        paid = np.where(costs > 0.0, costs, np.inf)
        with np.errstate(over="ignore"):
            moved = paid / self._unit
        moves = Moves(self._normal, self._sums, self._queue.place[rows], moved, self._queue.rank(rows, paid))
        found = cheapest_purchases(moves, needed, self._start)
        active = moves.present & (moves.rank < found.count) & (found.value < np.inf)
        with np.errstate(invalid="ignore"):
            y = high_root(np.clip(moved / found.price, TINY, STEEPEST))
            hers = (moves.rank == found.count - 1) & ~np.isnan(found.last)
            y = np.where(hers, np.sqrt(2.0 * found.last / (1.0 - found.last)), y)
        y = np.where(active, y, 0.0)
        y[(costs == 0.0) & (found.value < np.inf)] = np.inf
        root = math.sqrt(self._variance)
        return found.value * (self._unit / root), y / root
