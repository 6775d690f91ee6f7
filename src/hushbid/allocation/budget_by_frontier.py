"""How a purchase with a given expense, under caps, depends on one person's own cost.

If even the most accurate losses that the caps allow cost less than the budget, these are bought. Above some cost of the
person that cannot be, and above another the person is out: there the value is 0. If the others alone cannot spend the
budget the person is never out, and the value counts from the cost at which the budget is just spent, or without a cap
from a cost above all others.

With strata and caps a budget rule is not monotone (`one-problem.md` §3): one stratum only.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushbid.allocation.capped import most_accurate, normal_caps
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.frontier import Points
from hushbid.allocation.frontier_integral import areas
from hushbid.allocation.pairs_by_frontier import PairsByFrontier
from hushbid.allocation.reply_rules import Answers
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError

_ENDLESS = 1e150  # stands for an infinite loss, which is the most accurate where nobody has a cap


@dataclass(frozen=True, slots=True, eq=False)
class _Limits:
    """For each of some people what the most accurate losses are, and cost, with and without them."""

    own: FloatArray  # their loss, if they are there
    spent: FloatArray  # what the others' losses cost then
    error: FloatArray  # the error then
    spent_without: FloatArray
    """What the others' losses cost if they are not there, at least; exactly if that is no more than the budget."""

    error_without: FloatArray  # the error then, if it is needed


class BudgetPairs(PairsByFrontier):
    """The purchase as a function of one person's cost, everybody else's fixed; in normal units."""

    def __init__(self, problem: CentralProblem) -> None:
        super().__init__(problem)
        problem = self._problem
        losses, self._error = self._bounded(self._losses), self._least
        self._all_full = bool((losses >= normal_caps(problem, self._rows)).all())
        self._loss_of = np.zeros(problem.costs.size)
        self._loss_of[self._rows] = losses
        self._bill_of = np.zeros(problem.costs.size)
        self._bill_of[self._rows] = self._bills(self._rows, losses)
        self._total = float(self._bill_of.sum())

    def _most_accurate(self, rows: IndexArray) -> tuple[FloatArray, float]:
        losses, error = most_accurate(self._problem, rows)
        return self._bounded(losses), error

    def _bounded(self, losses: FloatArray) -> FloatArray:
        """Return losses in normal units, those without an end as a number."""
        return np.minimum(losses * math.sqrt(self._problem.form.unit), _ENDLESS)

    def _bills(self, rows: IndexArray, losses: FloatArray) -> FloatArray:
        costs = self._problem.costs[rows] / self._problem.form.scale
        return np.where(costs > 0.0, costs * losses, 0.0)

    def answers(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Answers:
        """Return the purchase if people had these costs."""
        who, which = np.unique(rows, return_inverse=True)
        limits, budget = self._limits(who), self._problem.form.target.number
        there = costs < math.inf
        x = np.where(there, costs, 0.0) / self._problem.form.scale
        spent = np.where(there, limits.spent[which] + x * limits.own[which], limits.spent_without[which])
        loss = np.where(there, limits.own[which], 0.0)
        mse = np.where(there, limits.error[which], limits.error_without[which])
        unsolved = np.flatnonzero(~(spent <= budget))
        points = None
        if unsolved.size:
            populations = self.moved(stratum, rows[unsolved], costs[unsolved])
            points, _ = self.near(populations)
            assert populations.moves is not None
            loss[unsolved] = populations.moves.losses(points.levels.stratum(stratum), points.sigma)
            mse[unsolved] = points.mse
        value = partial(self._value, who, which, limits, x, there, unsolved, points)
        return Answers(value, np.where(loss < _ENDLESS, loss, math.inf), mse)

    def _limits(self, who: IndexArray) -> _Limits:
        """What the most accurate losses are with and without each of these people."""
        problem, budget = self._problem, self._problem.form.target.number
        present = problem.costs[who] < math.inf
        own, error = self._loss_of[who], np.full(who.size, self._error)
        spent = self._total - self._bill_of[who]
        # without one person the others' losses are not smaller
        spent_without, error_without = spent.copy(), np.full(who.size, self._error)
        unknown = ~present | ~(spent_without > budget)
        if self._all_full and self._rows.size > 1:
            unknown &= ~present
            error_without = self._error_without(who)
        for j in np.flatnonzero(unknown).tolist():
            others = self._rows[self._rows != who[j]]
            if not present[j]:
                losses, error[j] = self._most_accurate(np.append(others, who[j]))
                own[j], spent[j] = losses[-1], float(self._bills(others, losses[:-1]).sum())
            elif present[j]:
                spent[j] = float(self._bill_of[others].sum())
            if others.size == 0:
                spent_without[j], error_without[j] = 0.0, math.inf
                continue
            losses, error_without[j] = self._most_accurate(others)
            spent_without[j] = float(self._bills(others, losses).sum())
        return _Limits(own, spent, error, spent_without, error_without)

    def _error_without(self, who: IndexArray) -> FloatArray:
        """Return the error that everybody else reaches if all are at their caps: they are so without any one person.

        Everybody at the cap is best where nobody's ``V·e`` exceeds ``(2 + D)/E``. Without a person whose does not
        either, the right side rises.
        """
        squares = float((self._loss_of**2 * self._problem.variances).sum()) / self._problem.form.unit
        own = self._loss_of[who] ** 2 * self._problem.variances[who] / self._problem.form.unit
        rest = float(self._loss_of.sum()) - self._loss_of[who]
        return np.asarray((2.0 + squares - own) / (rest * rest))

    def _value(
        self,
        who: IndexArray,
        which: IndexArray,
        limits: _Limits,
        x: FloatArray,
        there: BoolArray,
        solved: IndexArray,
        points: Points | None,
    ) -> FloatArray:
        """Minus the integral of the loss over all higher costs, or from a fixed one if the person is never out."""
        budget = self._problem.form.target.number
        never_out = ~(limits.spent_without > budget)
        value = np.zeros(x.size)
        # below this cost the budget cannot be spent and the loss stays the same
        unspent = np.maximum((budget - limits.spent) / limits.own, 0.0)[which]
        out = np.flatnonzero(~never_out[which] & there)
        if out.size:
            people, back = np.unique(which[out], return_inverse=True)
            alone = self._solved(who[people], np.full(people.size, math.inf))
            top, stop = alone.levels.high[0][back], np.maximum(x, unspent)[out]
            value[out] = -self._area(who[which[out]], alone.take(back), top, stop)
        # who is never out is counted from where the budget is just spent; without a cap, from a cost above all others
        never, endless = never_out[which] & there, limits.own[which] >= _ENDLESS
        beyond = never & ~endless & (x > unspent)
        beyond = np.intersect1d(solved, np.flatnonzero(beyond))
        if beyond.size:
            assert points is not None
            start = points.take(solved.searchsorted(beyond))
            value[beyond] = self._area(who[which[beyond]], start, x[beyond], unspent[beyond])
        uncapped = np.flatnonzero(never & endless)
        if uncapped.size:
            scale = self._problem.form.scale
            top = 2.0 * float(self._problem.costs[self._rows].max()) / scale
            rows, own = who[which[uncapped]], x[uncapped]
            start = self._solved(rows, np.full(rows.size, top * scale))
            higher = np.flatnonzero(own > top)
            if higher.size:
                assert points is not None
                start.put(higher, points.take(solved.searchsorted(uncapped[higher])))
            area = self._area(rows, start, np.maximum(own, top), np.minimum(own, top))
            value[uncapped] = np.where(own > top, area, -area)
        value[never_out[which] & ~there] = np.inf
        return value - np.where(there, limits.own[which] * np.maximum(unspent - x, 0.0), 0.0)

    def _solved(self, rows: IndexArray, costs: FloatArray) -> Points:
        return self.near(self.moved(0, rows, costs))[0]

    def _area(self, rows: IndexArray, start: Points, top: FloatArray, stop: FloatArray) -> FloatArray:
        """The integral of the loss between two costs, in the smallest box that is never left."""
        area, unsolved = np.zeros(rows.size), np.flatnonzero(top > stop)
        moves = self.moved(0, rows, np.zeros(rows.size)).moves
        assert moves is not None
        budget = self._problem.form.target.number
        for box in self.ladder():
            left = []
            for part in box.parts(8 * unsolved.size):  # several tables for each pair
                some = unsolved[part.start // 8 : max(part.stop // 8, part.start // 8 + 1)]
                here = box.moved(0, moves.take(some))
                found, kept = areas(here, start.levels.take(some), start.sigma[some], budget, top[some], stop[some])
                area[some[kept]] = found[kept]
                left.append(some[~kept])
            unsolved = np.concatenate(left) if left else unsolved
            if unsolved.size == 0:
                break
        if unsolved.size:
            raise MarketError("The integral of a privacy loss under a budget and caps was not found.")
        return area
