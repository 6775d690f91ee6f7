"""How the local optimum under one cap for all moves when one person's cost does, for many pairs at once."""

import math

import numpy as np

from hushbid.allocation.local_capped import Supply, best_purchases, first_dear, refuse_vanishing
from hushbid.allocation.local_curves import curve_of
from hushbid.allocation.local_queue import Moves, PrefixSums, Queue
from hushbid.allocation.problem import HUGE, TINY, Problem, workable
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import FloatArray, IndexArray

_SELECTED = 512
_SPARE = 16


class LocalCappedReplies:
    """The local optimum under one cap as a function of one person's cost, everybody else's fixed."""

    def __init__(self, problem: Problem, max_loss: float, precedence: IndexArray | None = None) -> None:
        self._variance, self._error_weight = refuse_vanishing(problem), problem.error_weight
        self._scale = problem.scale(self._variance)
        self._max_loss = max_loss
        self._supply = Supply(curve_of(problem), max_loss * math.sqrt(self._variance))
        # whoever is so dear that she could only overflow is as good as not there
        costs = self._workable(problem.costs)
        finite, size = int(np.count_nonzero(costs < np.inf)), _SELECTED
        while True:
            self._queue = Queue(costs, min(size, finite), precedence)
            self._normal = self._queue.costs / self._scale
            self._start = first_dear(self._normal, self._supply)
            if self._start + _SPARE < size or size >= finite:
                break
            size *= 8
        self._sums = PrefixSums(self._normal, self._supply.terms)

    def _workable(self, costs: FloatArray) -> FloatArray:
        return workable(costs, TINY * self._scale, 1e20 * HUGE * self._scale)

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        costs = self._workable(costs)
        rank = self._queue.rank(rows, costs)
        moves = Moves(self._normal, self._sums, self._queue.place[rows], costs / self._scale, rank)
        best = best_purchases(moves, self._supply, self._start)
        with np.errstate(invalid="ignore"):
            loss = np.where(
                np.isnan(best.price), np.where(rank == 0, *best.pair), self._supply.reply(moves.moved / best.price)
            )
        loss = np.where(costs == 0.0, np.inf, loss)  # who asks for nothing gives all she may
        loss = np.where(moves.present & (rank < best.count), loss / math.sqrt(self._variance), 0.0)
        worth = self._error_weight * self._variance
        return Replies(best.value * worth, np.minimum(loss, self._max_loss), best.error * self._variance)
