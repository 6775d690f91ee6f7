"""The merit order: who is bought from first, and how that changes when one person's cost does.

Locally the active people are the cheapest, and among equals the earlier in precedence (by default the position). All
questions about one person's cost share the merit order of everybody: take that person out, put them in elsewhere. Sums
over the first so many then differ by one term out and one in.

The sums themselves are functions of the price (`PrefixSums`). Those at the cap are the first, and a sum of costs. Of
many others the sums are read off a polynomial in the logarithm of the price, exact to rounding: payments ask at
hundreds of prices for each of thousands of people, all within a few per cent of each other, and adding up thousands of
terms for each would take a hundred times as long.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from hushbid.allocation.precision import Supply
from hushbid.allocation.problem import as_keys
from hushbid.common.arrays import FloatArray, IndexArray

_DENSE = 1 << 20
_TABLE_FROM = 128  # so many people are worth a table
_REACH = 12.0
"""A table covers log-prices within this many times 1/k of the present one: one of k people moves it by about 1/k."""

_CLEAR = 0.9  # a ratio below this share of the steepest slope is clear of the inflection


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
        self.rows = rows[: int(np.searchsorted(costs[rows], np.inf))]  # who they are
        self.costs = costs[self.rows]  # what they cost, ascending
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


class CostTable:
    """Many lists of costs in normal form, ascending in each, that have nobody in common."""

    def __init__(self, costs: FloatArray, supply: Supply) -> None:
        self._costs, self._supply = np.hstack([costs, np.full((costs.shape[0], 1), math.inf)]), supply
        self.size = np.count_nonzero(costs < math.inf, axis=1)  # how many people there are in each list

    def cost(self, which: IndexArray, number: IndexArray) -> FloatArray:
        """What the ``number``-th person of each list costs, counted from 1; ``inf`` past its end."""
        return np.asarray(self._costs[which, np.minimum(number - 1, self._costs.shape[1] - 1)])

    def sums(self, which: IndexArray, count: IndexArray, price: FloatArray) -> FloatArray:
        """The three sums over the first ``count`` of each list, at that list's price."""
        columns = int(count.max(initial=0))
        first = np.arange(columns) < count[:, None]
        ratios = np.where(first, self._costs[which, :columns], price[:, None]) / price[:, None]
        return np.asarray(np.where(first, self._supply.terms(ratios), 0.0).sum(axis=2))


class Deviations:
    """Many lists of costs in normal form, each the same merit order with one person at another cost."""

    def __init__(self, sums: "PrefixSums", place: IndexArray, moved: FloatArray, rank: IndexArray) -> None:
        costs = sums.costs
        self._costs, self._sums, self._place = np.append(costs, np.inf), sums, place
        self._own = self._costs[np.minimum(place, costs.size)]
        self.moved, self.rank = moved, rank
        """The person's new cost (``inf``: they are not there), and how many others come before them."""

        self.present = moved < np.inf  # whether they are in the list
        self.size = costs.size - (place < costs.size) + self.present  # how many people there are in each list

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
                sums += np.where(who, sign, 0.0) * self._sums.supply.terms(np.where(who, cost, price) / price)
        return sums


class PrefixSums:
    """Three sums over the first so many of a merit order, at many prices."""

    def __init__(self, costs: FloatArray, supply: Supply) -> None:
        self.costs, self.supply = costs, supply
        self._middle, self._half = 0.0, 0.0
        self._tables: dict[int, tuple[FloatArray, int] | None] = {}
        self._totals: FloatArray = np.append(0.0, costs.cumsum(dtype=np.longdouble).astype(np.float64))

    def tabulate(self, count: int, price: float) -> None:
        """Read sums over about ``count`` people off tables near this price, if they are many."""
        if count >= _TABLE_FROM and price < math.inf:
            self._middle, self._half = math.log(price), _REACH / count

    def at(self, counts: IndexArray, prices: FloatArray) -> FloatArray:
        """The sums over the first ``counts[j]`` at ``prices[j]``, in three rows; once for those that are the same."""
        first = where = np.arange(prices.size)
        if prices.size > 1:
            _, first, where = np.unique(prices + 1j * counts, return_index=True, return_inverse=True)
        counts, prices = counts[first], prices[first]
        # the first are at the cap, where they fall short of nothing and do not move
        start, end = np.minimum(self._at_cap(prices), counts), counts.copy()
        sums = np.zeros((3, prices.size))
        capped = np.flatnonzero(start)
        sums[1, capped] = self._totals[start[capped]] / prices[capped] * self.supply.cap
        if self._half > 0.0:
            offset = (np.log(prices) - self._middle) / self._half
            near = (np.abs(offset) <= 1.0) & (counts - start >= _TABLE_FROM)
            for count in np.unique(counts[near]).tolist():
                table, which = self._table(count), np.flatnonzero(near & (counts == count))
                if table is not None:
                    sums[:, which] += chebyshev.chebval(offset[which], table[0])
                    end[which] = np.maximum(table[1], start[which])
        return (sums + self._one_by_one(start, end, prices))[:, where.ravel()]

    def _at_cap(self, prices: FloatArray) -> IndexArray:
        """How many people's replies to each price are at the cap."""
        corner = self.supply.corner
        return self.costs.searchsorted(corner * prices) if corner > 0.0 else np.zeros(prices.size, dtype=np.intp)

    def _table(self, count: int) -> tuple[FloatArray, int] | None:
        """Polynomials for the sums over those up to ``count`` who are never at the cap, and who the first of them is.

        None where somebody comes near the inflection.
        """
        if count not in self._tables:
            self._tables[count] = self._made(count)
        return self._tables[count]

    def _made(self, count: int) -> tuple[FloatArray, int] | None:
        steepest, dearest = self.supply.curve.steepest, float(self.costs[count - 1])
        first = int(self._at_cap(np.exp([self._middle + self._half]))[0])
        if first >= count or dearest >= _CLEAR * steepest * math.exp(self._middle - self._half):
            return None
        # terms are analytic up to the inflection: as many nodes as leave only rounding
        distance = math.log(steepest * math.exp(self._middle) / dearest) / self._half
        nodes = chebyshev.chebpts1(math.ceil(40.0 / math.log(distance + math.sqrt(distance * distance - 1.0))) + 2)
        ends = np.full(nodes.size, first), np.full(nodes.size, count)
        values = self._one_by_one(*ends, np.exp(self._middle + self._half * nodes))
        return np.asarray(chebyshev.chebfit(nodes, values.T, nodes.size - 1), dtype=float), first

    def _one_by_one(self, start: IndexArray, end: IndexArray, prices: FloatArray) -> FloatArray:
        """Add up those from ``start[j]`` to ``end[j]``, in blocks that fit in memory."""
        found, length = np.zeros((3, prices.size)), end - start
        some = np.flatnonzero(length)
        ends = length[some].cumsum()
        cuts = np.searchsorted(ends, np.arange(_DENSE, int(ends[-1]) if ends.size else 0, _DENSE))
        for part in np.split(some, np.unique(cuts)):
            if part.size:
                first = length[part].cumsum() - length[part]
                places = np.arange(int(length[part].sum())) + np.repeat(start[part] - first, length[part])
                terms = self.supply.terms(self.costs[places] / np.repeat(prices[part], length[part]))
                found[:, part] = np.add.reduceat(terms, first, axis=1)
        return found
