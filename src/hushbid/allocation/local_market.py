"""The people of one stratum of the local problem: everybody in merit order, and what demands of them cost.

`hushbid.allocation.local` finds the optimum of a list; here are the lists: everybody as they are, or with one person at
another cost, for many persons and costs at once.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.local import Optima, Search
from hushbid.allocation.local_problem import Demand, NormalForm
from hushbid.allocation.problem import Problem, workable
from hushbid.allocation.queue import CostTable, Deviations, MeritOrder, PrefixSums
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_SELECTED = 512
_SPARE = 8
"""One person's move changes who is marginal by fewer: whoever is worth their cost supplies half of what anybody can."""


class LocalMarket:
    """The people of one stratum in merit order: what the optimum, and every deviation from it, is found from."""

    def __init__(self, problem: Problem, form: NormalForm, demand: Demand) -> None:
        """Select the cheapest people: as many as can matter for a demand of one list, whoever stays away."""
        self.form = form
        self.costs = workable(problem.costs, form.least, form.most)
        finite, size, supply = int(np.count_nonzero(self.costs < math.inf)), _SELECTED, form.supply
        size = finite if demand.least[0] == math.inf else size
        while True:
            self.order = MeritOrder(self.costs, min(size, finite), problem.tie_key)
            normal = self.order.costs / form.scale
            self.sums = PrefixSums(normal, supply)
            self.start = 1
            if size >= finite:
                break
            self.start = int(Search(Deviations.none(self.sums), supply, demand).marginal(1)[0])
            if self.start + _SPARE <= size:
                break
            size *= 8
        self.free = int(np.count_nonzero(normal == 0.0))  # how many people cost nothing

    def bound(self, demand: Demand) -> tuple[float, float]:
        """Return what a demand costs at least, found without its optimum, and the precision that is wanted there."""
        supply, enough = self.form.supply, self.free * self.form.supply.top
        if self.free and demand.most[0] <= enough:
            return float(demand.cost(demand.most)[0]), float(demand.most[0])
        search = Search(Deviations.none(self.sums), supply, demand)
        number = search.marginal(self.start)
        value, wanted = search.bounds(number)
        self.start = int(number[0])
        # below where precision per loss is largest, everybody together costs at least as much as the cheapest alone
        alone = Search(CostTable(self.sums.costs[np.newaxis, :1], supply), supply, demand)
        one = alone.optima(alone.marginal(1))
        if one.precision[0] < supply.best_precision * (1.0 - 1e-12) and one.value[0] * (1.0 - 1e-11) > value[0]:
            return float(one.value[0]) * (1.0 - 1e-11), float(one.precision[0])
        return float(value[0]), float(wanted[0])

    def lists(self, rows: IndexArray, costs: FloatArray) -> "Lists":
        """Return many lists: everybody, with person ``rows[j]`` (−1: nobody) at cost ``costs[j]``."""
        costs = workable(costs, self.form.least, self.form.most)
        deviates, size = rows >= 0, self.sums.costs.size
        who = np.where(deviates, rows, 0)
        place = np.where(deviates, self.order.place[who], size)
        moved = np.where(deviates, costs / self.form.scale, math.inf)
        rank = np.where(deviates, self.order.rank(who, costs), size)
        freed = (moved == 0.0).astype(np.intp) - (deviates & (self.costs[who] == 0.0))
        return Lists(self, deviates, Deviations(self.sums, place, moved, rank), self.free + freed)


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Many lists of one stratum's people, each with at most one of them at another cost."""

    market: LocalMarket
    deviates: BoolArray  # whether somebody is at another cost
    deviations: Deviations
    free: IndexArray  # how many people cost nothing

    def optima(self, which: IndexArray, demand: Demand) -> Optima:
        """The optimum of each of the lists ``which``, for one demand each; once for those that are the same."""
        # lists in which nobody deviates are asked for once by each deviation in another stratum
        whose = np.where(self.deviates[which], which, -1)
        asked = np.stack([whose, demand.worth, demand.least, demand.most])
        _, first, where = np.unique(asked, axis=1, return_index=True, return_inverse=True)
        which, demand = which[first], demand.of(first)
        supply = self.market.form.supply
        search = Search(self.deviations.of(which), supply, demand)
        found = search.optima(search.marginal(self.market.start))
        if which.size:
            self.market.start = int(np.median(found.count)) + 1  # what is asked next is near
        # people who cost nothing share the work where they are enough
        free = self.free[which]
        shared = (free > 0) & (demand.most <= free * supply.top)
        found.price[shared], found.count[shared], found.precision[shared] = 0.0, free[shared], demand.most[shared]
        found.value[shared] = demand.worth[shared] / demand.most[shared]
        with np.errstate(divide="ignore"):
            found.marginal[shared] = supply.curve.loss(demand.most[shared] / free[shared])
        return found.of(where.ravel())

    def losses(self, found: Optima) -> FloatArray:
        """Return the loss of the person of each list who is at another cost; 0 where there is none."""
        there = self.deviations.present & (found.value < math.inf)
        form = self.market.form
        losses = form.losses(found.losses(form.supply, self.deviations.moved, self.deviations.rank))
        return np.where(there, losses, 0.0)
