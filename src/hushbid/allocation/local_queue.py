"""In which order people are bought from, and how that order changes when one person's cost does.

Locally the active people are the cheapest, and among equals the earlier in precedence (by default the position). All
questions about one person's cost share the queue of everybody: take her out, put her in elsewhere. Sums over the first
so many differ by one term out and one in; for many people they are smooth in the price and are interpolated at
Chebyshev points, to rounding, around the present one.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.polynomial import chebyshev

from hushbid.arrays import BoolArray, FloatArray, IndexArray

Terms: TypeAlias = Callable[[FloatArray], FloatArray]
"""What one person adds to three sums, as three rows, for the ratio of her cost to the price."""

_DENSE = 1 << 20
_INTERPOLATE_FROM = 128
_NODES = 26
_REACH = 12.0
"""The interpolation covers log-prices within this many times 1/k of the present one."""


class Queue:
    """The cheapest people, in the order in which they are bought from; costs as they were given.

    Costs are compared as the allocation compares them: in normal form two that differ in the last digit may be equal,
    and then somebody else would be bought from.
    """

    def __init__(self, costs: FloatArray, size: int, precedence: IndexArray | None) -> None:
        # all of the last equals are in
        rows = np.flatnonzero(costs <= np.partition(costs, size - 1)[size - 1]) if size else np.arange(0)
        self.rows = rows[np.lexsort((rows if precedence is None else precedence[rows], costs[rows]))]
        """Who they are."""

        self.costs = costs[self.rows]
        """What they cost, ascending."""

        self.place = np.full(costs.size, self.rows.size)
        """Everybody's place in the queue; its length for those who are not in it."""

        self.place[self.rows] = np.arange(self.rows.size)
        self._precedence = precedence
        self._ordered = self.rows if precedence is None else precedence[self.rows]

    def rank(self, rows: IndexArray, costs: FloatArray) -> IndexArray:
        """How many others come before person ``rows[j]`` at the cost ``costs[j]``: the cheaper, and earlier equals."""
        first: IndexArray = self.costs.searchsorted(costs, side="left")
        end: IndexArray = self.costs.searchsorted(costs, side="right")
        tied = np.flatnonzero(first < end)
        who = rows[tied]
        low, high, own = first[tied], end[tied], who if self._precedence is None else self._precedence[who]
        # among equals, bisection by precedence
        while (low < high).any():
            middle = (low + high) // 2
            earlier = (low < high) & (self._ordered[np.minimum(middle, self.rows.size - 1)] < own)
            low, high = np.where(earlier, middle + 1, low), np.where(earlier, high, np.minimum(middle, high))
        first[tied] = low
        first -= (self.place[rows] < first).astype(first.dtype)
        return first


class Moves:
    """Many lists of costs, each the same queue with one person at another cost."""

    def __init__(
        self, costs: FloatArray, sums: "PrefixSums", place: IndexArray, moved: FloatArray, rank: IndexArray
    ) -> None:
        self._costs, self._sums, self._place = np.append(costs, np.inf), sums, place
        self._own = self._costs[np.minimum(place, costs.size)]
        self.moved, self.rank = moved, rank
        """Her new cost (``inf``: she is not there), and how many others come before her."""

        self.present = moved < np.inf
        """Whether she is in the list."""

        self.size = costs.size - (place < costs.size) + self.present
        """How many people there are in each list."""

    def cost(self, which: IndexArray, number: IndexArray) -> FloatArray:
        """What the ``number``-th person of each list costs, counted from 1; ``inf`` past its end."""
        rank, present = self.rank[which], self.present[which]
        index = number - 1 - (present & (number - 1 > rank))
        index = index + (self._place[which] <= index)
        other = self._costs[np.minimum(index, self._costs.size - 1)]
        found: FloatArray = np.where(present & (number - 1 == rank), self.moved[which], other)
        return found

    def sums(self, which: IndexArray, count: IndexArray, price: FloatArray) -> FloatArray:
        """The three sums over the first ``count`` of each list, at her list's price."""
        active = self.present[which] & (self.rank[which] < count)
        without, prefix = self._prefix(which, count - active)
        sums = self._sums.at(prefix, price)
        for sign, who, cost in ((-1.0, without, self._own[which]), (1.0, active, self.moved[which])):
            if who.any():
                sums[:, who] += sign * self._sums.terms(cost[who] / price[who])
        return sums

    def _prefix(self, which: IndexArray, others: IndexArray) -> tuple[BoolArray, IndexArray]:
        """Whether she is herself among the first of the queue that hold so many others, and how many those are."""
        without = self._place[which] < others
        return without, others + without


class PrefixSums:
    """Three sums over the cheapest so many people, at many prices."""

    def __init__(
        self, costs: FloatArray, terms: Terms, *, count: int = 0, price: float = 1.0, steepest: float = math.inf
    ) -> None:
        """Interpolate about ``price`` if ``count`` is large, but not where a ratio above ``steepest`` could occur."""
        self._costs, self.terms = costs, terms
        self._many, self._steepest = count >= _INTERPOLATE_FROM, steepest
        self._middle, self._half = math.log(price), _REACH / max(count, 1)
        self._tables: dict[int, list[FloatArray]] = {}

    def at(self, counts: IndexArray, prices: FloatArray) -> FloatArray:
        """The sums over the first ``counts[j]`` at ``prices[j]``, in three rows."""
        sums = np.zeros((3, prices.size))
        for count in np.unique(counts).tolist():
            if count == 0:
                continue
            which = np.flatnonzero(counts == count)
            # near the present price by interpolation, elsewhere directly, in blocks that fit in memory
            if self._smooth(count):
                place = (np.log(prices[which]) - self._middle) / self._half
                near = np.abs(place) <= 1.0
                if near.any():
                    sums[:, which[near]] = [chebyshev.chebval(place[near], column) for column in self._table(count)]
                which = which[~near]
            # many ask at the same price: at a neighbour's cost
            distinct, where = np.unique(prices[which], return_inverse=True)
            step = max(_DENSE // count, 1)
            found = np.empty((3, distinct.size))
            for start in range(0, distinct.size, step):
                found[:, start : start + step] = self._direct(count, distinct[start : start + step])
            sums[:, which] = found[:, where]
        return sums

    def _smooth(self, count: int) -> bool:
        """Whether the sums have no corner where they would be interpolated."""
        return self._many and float(self._costs[count - 1]) < self._steepest * math.exp(self._middle - self._half)

    def _table(self, count: int) -> list[FloatArray]:
        if count not in self._tables:
            nodes = chebyshev.chebpts1(_NODES)
            values = self._direct(count, np.exp(self._middle + self._half * nodes))
            self._tables[count] = [chebyshev.chebfit(nodes, column, _NODES - 1) for column in values]
        return self._tables[count]

    def _direct(self, count: int, prices: FloatArray) -> FloatArray:
        sums: FloatArray = self.terms(self._costs[None, :count] / prices[:, None]).sum(axis=2)
        return sums
