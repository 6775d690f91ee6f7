"""The merit order: who is bought from first, and how that changes when one person's cost does.

Locally the active people are the cheapest, and among equals the earlier in precedence (by default the position). All
questions about one person's cost share the merit order of everybody: take that person out, put them in elsewhere. Sums
over the first so many then differ by one term out and one in.

The sums themselves are functions of the price. For many people they are read off a polynomial in the logarithm of the
price, exact to rounding (`PrefixSums`): payments ask at hundreds of prices for each of thousands of people, all within
a few per cent of each other, and adding up thousands of terms for each would take a hundred times as long.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from hushbid.allocation.problem import as_keys
from hushbid.common.arrays import FloatArray, IndexArray

Terms: TypeAlias = Callable[[FloatArray], FloatArray]
"""What one person adds to three sums, as three rows, for the ratio of their cost to the price."""

_DENSE = 1 << 20
_TABLE_FROM = 128
"""So many people are worth a table."""

_REACH = 12.0
"""A table covers log-prices within this many times 1/k of the present one: one of k people moves it by about 1/k."""

_CLEAR = 0.9
"""A ratio below this share of the steepest slope is clear of the inflection."""


def precedence(tie_key: Sequence[Any] | NDArray[Any] | None) -> IndexArray | None:
    """Everybody's place in the order in which equals are bought from; None for the order of the rows."""
    if tie_key is None:
        return None
    order = np.argsort(as_keys(tie_key, len(tie_key)), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return place


class MeritOrder:
    """The cheapest people, in the order in which they are bought from; costs as they were given.

    Costs are compared as they were given: in normal form two that differ in the last digit may be equal, and then
    another person would be bought from.
    """

    def __init__(self, costs: FloatArray, size: int, tie_key: NDArray[Any] | None) -> None:
        last = np.partition(costs, size - 1)[size - 1] if size < costs.size else np.inf
        rows = np.flatnonzero(costs <= last)  # with all who cost as much as the last
        # by cost, then by key, then by position
        if tie_key is not None:
            rows = rows[np.argsort(tie_key[rows], kind="stable")]
        rows = rows[np.argsort(costs[rows], kind="stable")]
        self.rows = rows[: int(np.searchsorted(costs[rows], np.inf))]
        """Who they are."""

        self.costs = costs[self.rows]
        """What they cost, ascending."""

        self._people, self._tie_key = costs.size, tie_key

    @cached_property
    def place(self) -> IndexArray:
        """Everybody's place in the merit order; its length for those who are not in it."""
        place = np.full(self._people, self.rows.size)
        place[self.rows] = np.arange(self.rows.size)
        return place

    @cached_property
    def _precedence(self) -> IndexArray | None:
        return precedence(self._tie_key)

    def rank(self, rows: IndexArray, costs: FloatArray) -> IndexArray:
        """How many others come before person ``rows[j]`` at the cost ``costs[j]``: the cheaper, and earlier equals."""
        first: IndexArray = self.costs.searchsorted(costs, side="left")
        end: IndexArray = self.costs.searchsorted(costs, side="right")
        tied = np.flatnonzero(first < end)
        who = rows[tied]
        low, high, order = first[tied], end[tied], self._precedence
        own, others = (who, self.rows) if order is None else (order[who], order[self.rows])
        # among equals, bisection by precedence
        while (low < high).any():
            middle = (low + high) // 2
            earlier = (low < high) & (others[np.minimum(middle, self.rows.size - 1)] < own)
            low, high = np.where(earlier, middle + 1, low), np.where(earlier, high, np.minimum(middle, high))
        first[tied] = low
        first -= (self.place[rows] < first).astype(first.dtype)
        return first


class CostLists(Protocol):
    """Many lists of costs in normal form, ascending in each."""

    @property
    def size(self) -> IndexArray:
        """How many people there are in each list."""
        ...

    def cost(self, which: IndexArray, number: IndexArray) -> FloatArray:
        """What the ``number``-th person of each list costs, counted from 1; ``inf`` past its end."""
        ...

    def sums(self, which: IndexArray, count: IndexArray, price: FloatArray) -> FloatArray:
        """The three sums over the first ``count`` of each list, at that list's price."""
        ...


class Deviations:
    """Many lists of costs in normal form, each the same merit order with one person at another cost."""

    def __init__(self, sums: "PrefixSums", place: IndexArray, moved: FloatArray, rank: IndexArray) -> None:
        costs = sums.costs
        self._costs, self._sums, self._place = np.append(costs, np.inf), sums, place
        self._own = self._costs[np.minimum(place, costs.size)]
        self.moved, self.rank = moved, rank
        """The person's new cost (``inf``: they are not there), and how many others come before them."""

        self.present = moved < np.inf
        """Whether they are in the list."""

        self.size = costs.size - (place < costs.size) + self.present
        """How many people there are in each list."""

    @classmethod
    def none(cls, sums: "PrefixSums") -> "Deviations":
        """One list: the merit order as it is."""
        size = np.array([sums.costs.size])
        return cls(sums, size, np.array([np.inf]), size)

    def of(self, which: IndexArray) -> "Deviations":
        """Return some of the lists, in any order and number."""
        return Deviations(self._sums, self._place[which], self.moved[which], self.rank[which])

    def cost(self, which: IndexArray, number: IndexArray) -> FloatArray:
        """What the ``number``-th person of each list costs, counted from 1; ``inf`` past its end."""
        rank, present = self.rank[which], self.present[which]
        index = number - 1 - (present & (number - 1 > rank))
        index = index + (self._place[which] <= index)
        other = self._costs[np.minimum(index, self._costs.size - 1)]
        found: FloatArray = np.where(present & (number - 1 == rank), self.moved[which], other)
        return found

    def sums(self, which: IndexArray, count: IndexArray, price: FloatArray) -> FloatArray:
        """The three sums over the first ``count`` of each list, at that list's price."""
        active = self.present[which] & (self.rank[which] < count)
        others = count - active
        # the first of the merit order that hold so many others, and whether the person is one of them
        without = self._place[which] < others
        sums = self._sums.at(others + without, price)
        for sign, who, cost in ((-1.0, without, self._own[which]), (1.0, active, self.moved[which])):
            if who.any():
                sums += np.where(who, sign, 0.0) * self._sums.terms(np.where(who, cost, price) / price)
        return sums


class PrefixSums:
    """Three sums over the first so many of a merit order, at many prices."""

    def __init__(self, costs: FloatArray, terms: Terms, *, steepest: float, corner: float) -> None:
        """Add up ``terms``, which turn at the ratio ``corner`` (where the cap ends) and at ``steepest``."""
        self.costs, self.terms = costs, terms
        self._steepest, self._corner = steepest, corner
        self._middle, self._half = 0.0, 0.0
        self._tables: dict[int, tuple[FloatArray, int, int]] = {}

    def tabulate(self, count: int, price: float) -> None:
        """Read sums over about ``count`` people off tables near this price, if they are many."""
        if count >= _TABLE_FROM and price < math.inf:
            self._middle, self._half = math.log(price), _REACH / count

    def at(self, counts: IndexArray, prices: FloatArray) -> FloatArray:
        """The sums over the first ``counts[j]`` at ``prices[j]``, in three rows."""
        if prices.size == 1:
            return self._direct(self.costs[: int(counts[0])], prices)
        sums = np.zeros((3, prices.size))
        for count in np.unique(counts).tolist():
            which = np.flatnonzero(counts == count)
            if count >= _TABLE_FROM and self._is_smooth(count):
                offset = (np.log(prices[which]) - self._middle) / self._half
                near = np.abs(offset) <= 1.0
                if near.any():
                    sums[:, which[near]] = self._read(count, offset[near], prices[which[near]])
                which = which[~near]
            sums[:, which] = self._direct(self.costs[:count], prices[which])
        return sums

    def _is_smooth(self, count: int) -> bool:
        """Whether there is a table, in which nobody comes near the inflection."""
        return self._half > 0.0 and float(self.costs[count - 1]) < _CLEAR * self._steepest * math.exp(
            self._middle - self._half
        )

    def _read(self, count: int, offset: FloatArray, prices: FloatArray) -> FloatArray:
        """The sums off a table; those who reach the cap or leave it inside the table are added one by one."""
        if count not in self._tables:
            self._tables[count] = self._table(count)
        columns, first, last = self._tables[count]
        sums = self._direct(self.costs[first:last], prices)
        sums += chebyshev.chebval(offset, columns)
        return sums

    def _table(self, count: int) -> tuple[FloatArray, int, int]:
        ends = self._corner * np.exp(self._middle + self._half * np.array([-1.0, 1.0]))
        first, last = np.minimum(self.costs.searchsorted(ends), count).tolist()
        # terms are analytic up to the inflection: as many nodes as leave only rounding
        distance = math.log(self._steepest * math.exp(self._middle) / float(self.costs[count - 1])) / self._half
        nodes = chebyshev.chebpts1(math.ceil(40.0 / math.log(distance + math.sqrt(distance * distance - 1.0))) + 2)
        smooth = np.concatenate([self.costs[:first], self.costs[last:count]])
        values = self._direct(smooth, np.exp(self._middle + self._half * nodes))
        return np.asarray(chebyshev.chebfit(nodes, values.T, nodes.size - 1), dtype=float), first, last

    def _direct(self, costs: FloatArray, prices: FloatArray) -> FloatArray:
        """Add up, once for each price that occurs, in blocks that fit in memory."""
        if costs.size == 0 or prices.size == 0:
            return np.zeros((3, prices.size))
        if prices.size == 1:
            return np.asarray(self.terms(costs / prices[0]).sum(axis=1)[:, None])
        distinct, where = np.unique(prices, return_inverse=True)
        step, found = max(_DENSE // costs.size, 1), np.empty((3, distinct.size))
        for start in range(0, distinct.size, step):
            part = distinct[start : start + step]
            found[:, start : start + step] = self.terms(costs[None, :] / part[:, None]).sum(axis=2)
        return found[:, where]
