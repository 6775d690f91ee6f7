"""How a purchase with a given expense, under caps, depends on one person's own cost.

If even the most accurate losses that the caps allow cost less than the budget, these are bought. Above some cost of the
person that cannot be, and above another the person is out; if the others alone cannot spend the budget they never are.
A value is the integral of the loss from the person's own cost (:mod:`hushbid.allocation.budget_integral`).

With strata and caps a budget rule is not monotone (`one-problem.md` §3): one stratum only.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushbid.allocation.budget_integral import Others, Piece, Surrounded, integrals
from hushbid.allocation.capped import most_accurate, normal_caps
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.frontier import Points
from hushbid.allocation.pairs_by_frontier import PairsByFrontier
from hushbid.allocation.pool import Levels
from hushbid.allocation.populations import Populations
from hushbid.allocation.reply_rules import Answers
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError

_SAME = 1.0 - 1e-14
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
        """Return the integral of the loss from the own cost up to another; from one above all if they are not there."""
        problem, budget = self._problem, self._problem.form.target.number
        own = problem.costs[who[which]] / problem.form.scale
        own = np.where(own < math.inf, own, 2.0 * float(problem.costs[self._rows].max()) / problem.form.scale)
        x = np.where(there, x, math.inf)
        low, high, raised = np.minimum(x, own), np.maximum(x, own), x >= own
        # below this cost the budget cannot be spent and the loss stays the same
        with np.errstate(over="ignore"):
            unspent = np.maximum((budget - limits.spent) / limits.own, 0.0)[which]
        flat = limits.own[which] * np.maximum(np.minimum(unspent, high) - low, 0.0)
        area, endless = np.zeros(x.size), (high == math.inf) & ~(limits.spent_without[which] > budget)
        spends = (high > unspent) & ~endless
        for some in (solved[(spends & raised)[solved]], np.flatnonzero(spends & ~raised)):
            if some.size == 0:
                continue
            if raised[some[0]] and points is not None:
                start = points.take(solved.searchsorted(some))
            else:
                start = self.near(self.moved(0, who[which[some]], own[some] * problem.form.scale))[0]
            top = np.minimum(high[some], start.levels.high[0])
            area[some] = self._area(who[which[some]], start, top, np.maximum(low, unspent)[some])
        return np.where(endless, math.inf, np.where(raised, area + flat, -area - flat))

    def _area(self, rows: IndexArray, start: Points, top: FloatArray, stop: FloatArray) -> FloatArray:
        """Return the integral of the loss between two costs, in the smallest box that is never left."""
        area, unsolved = np.zeros(rows.size), np.flatnonzero(top > stop)
        moves = self.moved(0, rows, np.zeros(rows.size)).moves
        assert moves is not None
        for box in self.ladder():
            left = []
            for part in box.parts(8 * unsolved.size):  # several tables for each pair
                some = unsolved[part.start // 8 : max(part.stop // 8, part.start // 8 + 1)]
                own = moves.take(some)
                around = _Around(box.moved(0, own), start.take(some), self._problem.form.target.number)
                found, going = integrals(around, own.mass, own.cap, top[some], stop[some])
                around.kept[going] = False
                area[some[around.kept]] = found[around.kept]
                left.append(some[~around.kept])
            unsolved = np.concatenate(left) if left else unsolved
            if unsolved.size == 0:
                break
        if unsolved.size:
            raise MarketError("The integral of a privacy loss under a budget and caps was not found.")
        return area


class _Around(Surrounded):
    """One stratum under caps, everybody looked at: on ``b·ρ + E·q = P`` each enters and is full at one ``q`` each."""

    size = 1.0

    def __init__(self, populations: Populations, start: Points, budget: float) -> None:
        self._populations, self._seen, self._budget = populations, populations.seen, budget
        self.people = populations.people.size
        without = populations.without
        assert without is not None
        assert populations.left is not None
        _, self._inside, self._capped = self._seen.states(start.levels, start.sigma, without)
        self._there = np.arange(self._seen.size) != without[:, None]
        self._rest = (
            np.zeros((5, without.size)) if populations.box is None else populations.box.moments(populations.left)
        )
        """Sums over who is summed once."""

        self.kept = populations.holds(start.levels, start.sigma)
        """Whether a box was never left."""

    def others(self, going: IndexArray) -> Others:
        inside, capped, seen, rest = self._inside[going], self._capped[going], self._seen, self._rest[:, going]
        weighted, none = seen.mass * seen.costs, np.zeros(going.size)
        used, squares, spent = (np.where(capped, each, 0.0).sum(axis=1) for each in seen.capped)
        return Others(
            centre=none,
            origin=none,
            mass=none,
            first=rest[0] + np.where(inside, weighted, 0.0).sum(axis=1),
            second=rest[1] + np.where(inside, weighted * seen.costs, 0.0).sum(axis=1),
            used=rest[2] + used,
            room=2.0 + rest[3] + squares,
            left=self._budget - (rest[4] + spent),
        )

    def next(self, going: IndexArray, others: Others, falling: BoolArray) -> tuple[FloatArray, FloatArray]:
        down, seen = falling[:, None], self._seen
        inside, capped, there = self._inside[going], self._capped[going], self._there[going]
        used, room, left = others.used[:, None], others.room[:, None], others.left[:, None]
        bottom, none = left + used * seen.costs, np.where(down, -np.inf, np.inf)
        enters = np.where(np.where(down, inside, there & ~inside & ~capped), room * seen.costs / bottom, none)
        full = (left * seen.reach + room * seen.costs) / bottom
        full = np.where(np.where(down, capped, inside), full, none)
        ends = np.hstack([enters, full])
        near = np.where(falling, ends.argmax(axis=1), ends.argmin(axis=1)) if seen.size else None
        if near is None:
            return np.full(going.size, np.inf), np.zeros(going.size)
        q = ends[np.arange(going.size), near][:, None]
        self._next = going, down, *(np.where(down, e >= q * _SAME, e <= q / _SAME) for e in (enters, full))
        cost = np.where(np.isfinite(q[:, 0]), seen.costs[near % seen.size], np.inf)
        return cost, np.where(near < seen.size, 0.0, seen.reach[near % seen.size])

    def change(self, going: IndexArray) -> None:
        if going.size == 0:
            return
        everybody, down, moves, fills = (each[going] for each in self._next)
        # falling: who is inside leaves, who is full comes inside; rising: the other way round
        self._inside[everybody] = np.where(moves, ~down, np.where(fills, down, self._inside[everybody]))
        self._capped[everybody] = np.where(fills, ~down, self._capped[everybody])

    def see(self, going: IndexArray, piece: Piece, costs: FloatArray) -> None:
        level, sigma = piece.place(costs)
        self.kept[going] &= self._populations.holds(Levels.of(level[None]), sigma)
