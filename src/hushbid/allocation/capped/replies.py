"""How the optimum under caps moves when one person's cost does, for many (person, cost) pairs at once.

Replacing one cost changes sums by one person's terms, so for each pair Newton's method goes from the present level and
rate to the ones there. An accuracy and a budget have one such point. A price may have several: `basins` proves, from
the bounds of the search, that whoever's cost is raised there is one only; where it cannot, every pair is searched.
"""

import math
from collections.abc import Callable

import numpy as np

from hushbid.allocation.capped.basin import Basin, basins
from hushbid.allocation.capped.budget_replies import BudgetReplies
from hushbid.allocation.capped.crowds import Variants
from hushbid.allocation.capped.near import CHUNK, Present
from hushbid.allocation.capped.optimum import level_optimum, price_optimum, start
from hushbid.allocation.capped.parts import Parts
from hushbid.allocation.capped.price import search
from hushbid.allocation.capped.problem import Scaled, free_losses
from hushbid.allocation.problem import Problem
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_ENDLESS = 1e100
"""Stands for an infinite loss, whose square is a number too."""

Answer = tuple[FloatArray, FloatArray, FloatArray]
"""Value, loss and error of each pair, in the units of the crowd."""


class CappedReplies:
    """The optimum under caps as a function of one person's cost, everybody else's fixed."""

    def __init__(self, problem: Problem, caps: float | FloatArray) -> None:
        self._scaled = scaled = Scaled.of(problem, caps)
        self._now = now = Present(scaled)
        self._free = set(now.rows[scaled.costs[now.rows] == 0.0].tolist())
        self._known: dict[tuple[int, bool], tuple[float, float]] = {}
        losses, self._least_error = scaled.weight(now.rows)
        self._error_without = _errors_without(np.minimum(losses, _ENDLESS), scaled.masses(now.rows))
        self._basin: Basin | None = None
        self._budget = BudgetReplies(now) if scaled.aim.kind == "budget" else None
        if scaled.aim.kind == "price":
            found = price_optimum(scaled)[1]
            now.stand(float(found.level[0]), float(found.rate[0]))
            if now.rate > 0.0:
                everybody = Variants(now.crowd)
                seen = search(everybody, *start(everybody)).lines
                self._basin = basins(Parts.whole(everybody), seen, [now.level], now.rate)[0]
        elif self._is_bought(scaled.aim.number):
            bought = level_optimum(scaled)
            if bought is not None:
                now.stand(float(bought[1].level[0]), float(bought[1].rate[0]))

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        scaled, costs = self._scaled, self._scaled.workable(costs)
        loss, mse = np.empty(rows.size), np.empty(rows.size)
        values: list[FloatArray | Callable[[], FloatArray]] = [np.zeros(0)]
        answer: Callable[[IndexArray, FloatArray], tuple[FloatArray | Callable[[], FloatArray], FloatArray, FloatArray]]
        answer = self._for_price if scaled.aim.kind == "price" else self._for_accuracy
        if self._budget is not None:
            answer = self._budget.answer
        for first in range(0, rows.size, CHUNK):
            part = slice(first, first + CHUNK)
            value, loss[part], mse[part] = answer(rows[part], costs[part])
            values.append(value)
        root = math.sqrt(scaled.unit)

        def every_value() -> FloatArray:
            found = np.concatenate([one() if callable(one) else one for one in values])
            return np.asarray(found * (scaled.scale / root))

        most = scaled.caps if isinstance(scaled.caps, float) else scaled.caps[rows]
        return Replies(every_value, np.minimum(loss / root, most), mse * scaled.unit, self._now.blur / root)

    def _is_bought(self, number: float) -> bool:
        """Whether there is a level now: an accuracy that is reached, for money, or a budget that can be spent."""
        if self._budget is not None:
            return self._budget.can_be_spent
        return self._least_error < number * (1.0 - 1e-14) and self._without_pay(-1, False)[0] > number

    def _for_price(self, rows: IndexArray, costs: FloatArray) -> Answer:
        variants = self._now.variants(rows, costs)
        level, rate, value = np.zeros(rows.size), np.zeros(rows.size), np.full(rows.size, np.inf)
        mse = np.full(rows.size, np.inf)
        searched = np.ones(rows.size, dtype=bool)
        basin = self._basin
        if basin is not None:  # one, whoever's cost is raised
            raised = np.flatnonzero(costs >= self._scaled.costs[rows])
            near, settled = self._now.near(variants.take(raised))
            total, found = near.all_losses, near.mse + near.expense
            settled &= (total >= basin.low) & (total <= basin.high) & (near.rate > 0.0) & (found <= basin.worst)
            done = raised[settled]
            level[done], rate[done], searched[done] = near.level[settled], near.rate[settled], False
            value[done], mse[done] = found[settled], near.mse[settled]
        unsolved = np.flatnonzero(searched)
        step = self._now.step // 32 + 1
        for first in range(0, unsolved.size, step):
            some = unsolved[first : first + step]
            level[some], rate[some], value[some] = _searched(variants.take(some))
            mse[some] = value[some] - self._now.points(variants.take(some), level[some], rate[some]).expense
        assert variants.moved is not None
        loss = np.where(value < np.inf, variants.moved.losses(level, rate), 0.0)
        return self._or_without_pay(rows, costs, (value, loss, mse))

    def _or_without_pay(self, rows: IndexArray, costs: FloatArray, answer: Answer) -> Answer:
        """Where people who ask for nothing do as well by themselves: these."""
        value, loss, mse = answer
        for j in self._perhaps_without_pay(costs):
            error, own = self._without_pay(int(rows[j]), bool(costs[j] == 0.0))
            if error <= value[j]:
                value[j], loss[j], mse[j] = error, own, error
        return value, loss, np.where(value < np.inf, mse, np.inf)

    def _perhaps_without_pay(self, costs: FloatArray) -> list[int]:
        """The pairs in which somebody asks for nothing."""
        some: list[int] = (np.arange(costs.size) if self._free else np.flatnonzero(costs == 0.0)).tolist()
        return some

    def _without_pay(self, row: int, free: bool) -> tuple[float, float]:
        """The error that people who ask for nothing reach alone, if she is or is not one of them, and her loss."""
        key = (row if free or row in self._free else -1, free)
        if key not in self._known:
            who = np.array(sorted((self._free - {row}) | ({row} if free else set())), dtype=np.intp)
            found = (math.inf, 0.0)
            if who.size:
                losses, error = self._scaled.weight(who)
                if self._scaled.aim.kind == "accuracy" and error <= self._scaled.aim.number:
                    losses = free_losses(self._scaled, who)
                found = (error, float(losses[who == row][0]) if free else 0.0)
            self._known[key] = found
        return self._known[key]

    def _for_accuracy(self, rows: IndexArray, costs: FloatArray) -> Answer:
        wanted = self._scaled.aim.number
        value, loss, mse = np.full(rows.size, np.inf), np.zeros(rows.size), np.full(rows.size, np.inf)
        paid = self._reachable(rows, costs < math.inf)
        for j in self._perhaps_without_pay(costs):
            error, own = self._without_pay(int(rows[j]), bool(costs[j] == 0.0))
            if error <= wanted:
                value[j], loss[j], mse[j], paid[j] = 0.0, own, wanted, False
        unsolved = np.flatnonzero(paid)
        variants = self._now.variants(rows[unsolved], costs[unsolved])
        assert variants.moved is not None
        points = self._now.solved(variants)
        value[unsolved], loss[unsolved], mse[unsolved] = (
            points.expense,
            variants.moved.losses(points.level, points.rate),
            wanted,
        )
        return value, loss, mse

    def _reachable(self, rows: IndexArray, there: BoolArray) -> BoolArray:
        """Whether the accuracy can be reached with her, or without."""
        scaled, now = self._scaled, self._now
        wanted = scaled.aim.number * (1.0 - 1e-14)
        place = now.place[rows]
        present = place < now.rows.size
        reach = np.full(rows.size, self._least_error < wanted)
        # one more person does not make it harder; and without her the others' present losses may be enough
        near = np.where(there, self._least_error, self._error_without[np.minimum(place, now.rows.size - 1)])
        for j in np.flatnonzero((present != there) & ~(near < wanted * (1.0 - 1e-9))).tolist():
            row = int(rows[j])
            key = (-2 - row, bool(there[j]))
            if key not in self._known:
                others = now.rows[now.rows != row]
                others = np.append(others, row) if there[j] else others
                self._known[key] = (scaled.weight(others)[1] if others.size else math.inf, 0.0)
            reach[j] = self._known[key][0] < wanted
        return reach


def _errors_without(losses: FloatArray, masses: FloatArray) -> FloatArray:
    """The error of these losses without each one of them; infinite where too little is left to be exact."""
    squares = losses * losses / masses
    total = float(losses.sum())
    left = np.where(losses < 0.99 * total, total - losses, 1.0)
    return np.where(losses < 0.99 * total, (2.0 + (squares.sum() - squares)) / (left * left), np.inf)


def _searched(variants: Variants) -> Answer:
    """Level, rate and value of each population by a search over everything; the value is infinite if nobody is paid."""
    low, high, best = start(variants)
    level, rate, value = np.zeros(low.size), np.zeros(low.size), np.full(low.size, np.inf)
    some = np.flatnonzero(high > 0.0)
    if some.size:
        found = search(variants.take(some), low[some], high[some], best[some])
        level[some], rate[some], value[some] = found.points.level, found.points.rate, found.value
    return level, rate, value
