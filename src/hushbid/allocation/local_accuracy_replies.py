"""How the cheapest local purchase of an accuracy moves when one person's cost does, for many pairs at once.

The value is what the purchase costs, a concave function of her cost with her loss as its slope. It is infinite if she
is not there and the accuracy cannot be reached without her. Her loss can jump.
"""

import math

import numpy as np

from hushbid.allocation.local_accuracy import balance, cheapest_purchases, first_dear, most_needed
from hushbid.allocation.local_curves import curve_of
from hushbid.allocation.local_queue import Moves, PrefixSums, Queue
from hushbid.allocation.problem import LEAST, MOST, TINY, Problem, workable
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import FloatArray, IndexArray

_SPARE = 8


class LocalAccuracyReplies:
    """The cheapest local purchase of an accuracy as a function of one person's cost, everybody else's fixed."""

    def __init__(self, problem: Problem, precedence: IndexArray | None = None) -> None:
        assert isinstance(problem.variance, float)
        costs, curve = workable(problem.costs, LEAST, MOST), curve_of(problem)
        self._variance, self._square, self._curve = problem.variance, problem.goal.number**2, curve
        self._needed = self._variance / self._square
        self._free = costs == 0.0
        # people who cost nothing stand in no queue
        paid = np.where(self._free, np.inf, costs)
        size = min(int(np.count_nonzero(paid < np.inf)), most_needed(self._needed, curve) + _SPARE)
        self._queue = Queue(paid, size, precedence)
        left = self._needed - float(np.count_nonzero(self._free))
        self._unit, self._start, price = 1.0, 1, 1.0
        if self._queue.costs.size > left > 0.0:
            self._start = first_dear(self._queue.costs, left, curve)
            self._unit = float(self._queue.costs[min(self._start, self._queue.costs.size) - 1])
            price = balance(self._queue.costs, left, curve)[2] / self._unit
        self._normal = self._queue.costs / self._unit
        # interpolation stays clear of the corner where somebody has no high root
        self._sums = PrefixSums(
            self._normal, curve.terms, count=self._start, price=price, steepest=0.9 * curve.steepest
        )

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        costs = workable(costs, LEAST, MOST)
        free = int(np.count_nonzero(self._free)) - self._free[rows] + (costs == 0.0)
        value, loss = np.zeros(rows.size), np.zeros(rows.size)
        # those who cost nothing are enough: they share the work, and nothing is paid
        enough = (self._needed <= free) & (free > 0)
        numbers, which_number = np.unique(free, return_inverse=True)
        shared = [self._curve.loss_of_equals(max(one, 1), self._variance, self._square) for one in numbers.tolist()]
        share = np.array(shared)[which_number]
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
        found = cheapest_purchases(moves, needed, self._start, self._curve)
        active = moves.present & (moves.rank < found.count) & (found.value < np.inf)
        with np.errstate(invalid="ignore"):
            y = self._curve.high_root(np.clip(moved / found.price, TINY, self._curve.steepest))
            hers = (moves.rank == found.count - 1) & ~np.isnan(found.last)
            y = np.where(hers, self._curve.loss(found.last), y)
        y = np.where(active, y, 0.0)
        y[(costs == 0.0) & (found.value < np.inf)] = np.inf
        root = math.sqrt(self._variance)
        return found.value * (self._unit / root), y / root
