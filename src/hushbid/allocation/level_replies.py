"""How a purchase with a given error or expense answers to one person's cost, for many (person, cost) pairs at once.

Replacing one cost changes the sums of :mod:`hushbid.allocation.levels` by rank-one terms, and the level by little: for
each pair Newton's method goes from the present level to the one there, over the sorted costs of everybody.

For a given error the potential of a person's loss is the expense. For a given expense there is none for everybody at
once, but one for each person: with ``b = Σ u_j ψ_j`` and ``τ_o`` the level of the *other* active people alone, her loss
at cost ``x`` is ``(2/B)·u·b·(τ_o − x)/(b + u·x)``, whose integral is elementary, until others come or go.
"""

import math
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from hushbid.allocation.goals import Accuracy, Goal
from hushbid.allocation.levels import Buyable, Equation, find_level, free_loss
from hushbid.allocation.problem import LEAST, MOST, workable
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError

_CHUNK = 1 << 13
_ROUNDS = 200
_SERIES = 0.02
"""Below this ``z − log(1 + z)`` is summed as a series."""

_FAR_BELOW = 1e-6
"""A cost below this share of the least is not counted from it."""

_CLOSE = 1e-9
"""A level this close to her own cost, relative to the costs, is compared with it through the sums of the others."""

Answer = tuple[Callable[[], FloatArray], FloatArray, FloatArray]
"""What computes the value function of each pair; loss and error of each."""


class LevelReplies:
    """The purchase as a function of one person's cost, everybody else's fixed."""

    def __init__(self, costs: FloatArray, variance: float | FloatArray, goal: Goal) -> None:
        costs = workable(costs, LEAST, MOST)
        self._people, self._variance = Buyable(costs, variance), variance
        self._costs, self._equation = costs, Equation(goal, self._people.unit)
        self._base, self._finite = float(costs.min()), self._people.rows.size == costs.size
        try:
            self._level, _ = find_level(self._equation, self._people, self._base)
        except MarketError:  # nobody asks for anything
            self._level = 0.0
        kept = self._contenders()
        order = kept[np.argsort(costs[kept], kind="stable")]
        self._offset, self._mass_of = costs[order] - self._base, self._people.masses(order)
        weighted = self._mass_of * self._offset
        # sums over the first 0, 1, 2, … people
        self._total = np.append(0.0, np.cumsum(self._mass_of))
        self._first = np.append(0.0, np.cumsum(weighted))
        self._second = np.append(0.0, np.cumsum(weighted * self._offset))
        # between which costs a level lies that has so many people below it
        self._edges = np.concatenate([[-math.inf], self._offset, [math.inf]])
        self._place = np.full(costs.size, order.size)
        self._place[order] = np.arange(order.size)
        self._positive = int(np.count_nonzero(self._offset + self._base > 0.0))
        self._cheapest = int(costs.argmin())
        """Without this person the base is another one, and levels hardly above it are lost in its digits."""

    @cached_property
    def _without_cheapest(self) -> "LevelReplies | None":
        """The same purchase among the others; None where they are not cheaper than nothing, or as cheap."""
        others = self._costs.copy()
        others[self._cheapest] = math.inf
        if not self._base < float(others.min()) < math.inf:
            return None
        return LevelReplies(others, self._variance, self._equation.goal)

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """What is bought if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        costs = workable(costs, LEAST, MOST)
        first = np.flatnonzero(rows == self._cheapest)
        if first.size and isinstance(self._equation.goal, Accuracy) and self._without_cheapest is not None:
            rest = np.flatnonzero(rows != self._cheapest)
            parts = self._without_cheapest.at(rows[first], costs[first]), self._at(rows[rest], costs[rest])
            order = np.argsort(np.append(first, rest))
            value, loss, mse = (
                np.append(*(getattr(part, name) for part in parts))[order] for name in ("value", "loss", "mse")
            )
            return Replies(value, loss, mse)
        return self._at(rows, costs)

    def _at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The same, all from the present base."""
        loss, mse = np.empty(rows.size), np.empty(rows.size)
        values: list[Callable[[], FloatArray]] = []
        solve = self._for_accuracy if isinstance(self._equation.goal, Accuracy) else self._for_budget
        for start in range(0, rows.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            pairs = _Pairs(self, rows[part], costs[part])
            value, loss[part], mse[part] = solve(pairs)
            values.append(value)
        return Replies(lambda: np.concatenate([np.zeros(0), *(value() for value in values)]), loss, mse)

    def _contenders(self) -> IndexArray:
        """Everybody who may be active whoever else moves or leaves: those below a level that is passed without her.

        A person takes at most ``u·(τ − ψ_1)`` from ``G``, and at most ``u·τ²/4`` from ``W``.
        """
        equation, base, people = self._equation, self._base, self._people
        most = 1.0  # the largest mass
        cut = self._level * (1.0 + 8.0 / people.rows.size) + 1e-9 * (base + self._level)
        if cut == 0.0:  # people who ask for nothing are enough, and may not be without one of them
            cut = float(people.costs.min(initial=math.inf, where=people.costs > 0.0))
        while cut < math.inf:
            near = np.flatnonzero(people.costs <= base + cut)
            if near.size == people.rows.size:
                return near
            offset = people.costs[near] - base
            share = people.masses(near) * (cut - offset)
            gain = float(share.sum())
            paid = base * gain + float((share * offset).sum()) - most * (base + cut) ** 2 / 4.0
            if equation.passed(base, cut, gain - most * cut, paid):
                return near
            cut = self._level + 4.0 * (cut - self._level)
        return people.rows

    # -- one level for each pair ---------------------------------------------------------------------------------------

    def _for_accuracy(self, pairs: "_Pairs") -> Answer:
        unit, goal = self._equation.unit, self._equation.goal
        level, sums = pairs.levels()
        gain, paid = sums.gain(level), sums.paid(self._base, level)
        above = np.maximum(
            np.where(pairs.to < math.inf, level - np.where(pairs.to < math.inf, pairs.to, 0.0), 0.0), 0.0
        )
        # below everybody else their cost and level, counted from the others, would be lost in the digits
        below = np.flatnonzero((pairs.to < 0.0) & (level < math.inf))
        if below.size:
            above[below] = np.maximum(pairs.above(below, sums.count), 0.0)
            gain[below], paid[below] = pairs.sums_from(below, sums.count, above[below])
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.sqrt(2.0 * paid / unit)
            loss = pairs.mass * above * np.sqrt(2.0 / (unit * paid))
        lost = ~(level < math.inf)  # without her it cannot be reached
        value, loss = np.where(lost, np.inf, value), np.where(lost | ~(gain > 0.0), 0.0, loss)
        if self._base == 0.0 or (pairs.to + self._base <= 0.0).any():  # people who ask for nothing may be enough
            free = self._free_mass(pairs)
            without_pay = self._equation.ratio * free >= 1.0
            own = np.where(pairs.costs == 0.0, pairs.mass / np.where(free > 0.0, free, 1.0), 0.0)
            some = without_pay & (own > 0.0)
            loss = np.where(without_pay, 0.0, loss)
            loss[some] = own[some] * free_loss(self._equation, free[some])
            value = np.where(without_pay, 0.0, value)
            lost &= ~without_pay
        return lambda: value, loss, np.where(lost, np.inf, goal.number**2)

    def _free_mass(self, pairs: "_Pairs") -> FloatArray:
        """The mass of all who ask for nothing, in each pair."""
        here = float(self._mass_of[self._offset == 0.0].sum()) if self._base == 0.0 else 0.0
        left = pairs.mass * (self._costs[pairs.rows] == 0.0)
        came: FloatArray = here - left + pairs.mass * (pairs.costs == 0.0)
        return came

    def _for_budget(self, pairs: "_Pairs") -> Answer:
        unit, amount = self._equation.unit, self._equation.goal.number
        level, sums = pairs.levels()
        gain = sums.gain(level)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = pairs.mass * np.maximum(level - pairs.to, 0.0) * (2.0 / (unit * amount))
            mse = unit * (self._base + level) / gain
        close = pairs.close_to(level)
        if close.size:
            loss[close] = pairs.mass[close] * np.maximum(pairs.above(close, sums.count), 0.0) * (2.0 / (unit * amount))
        nobody = ~(level < math.inf)  # nobody else asks for anything, and she is not there
        loss, mse = np.where(nobody, 0.0, loss), np.where(nobody, np.inf, mse)
        alone = self._nobody_else(pairs) & (pairs.costs > 0.0) & (pairs.costs < math.inf)
        if alone.any():  # all of the budget is hers: at a high cost her level is not told from it
            cost, mass = pairs.costs[alone], pairs.mass[alone]
            above = self._equation.half / (mass * cost)
            loss[alone] = amount / cost
            mse[alone] = unit * (cost + above) / (mass * above + self._free_mass(pairs)[alone] * (cost + above))
        return partial(self._budget_value, pairs, level, sums.count), loss, mse

    # -- the potential of one person's loss under a budget -------------------------------------------------------------

    def _budget_value(self, pairs: "_Pairs", level: FloatArray, below: IndexArray) -> FloatArray:
        """The value function of each person, at their level."""
        # far below everybody else her cost, counted from theirs, would be lost in the digits
        far = pairs.costs < _FAR_BELOW * self._base
        value = self._potential(pairs, np.where(far, math.inf, level), below)
        for j in np.flatnonzero(far).tolist():
            moved, row, cost = self._costs.copy(), pairs.rows[j : j + 1], pairs.costs[j : j + 1]
            moved[row] = cost
            value[j] = LevelReplies(moved, self._variance, self._equation.goal).at(row, cost).value[0]
        return value

    def _potential(self, pairs: "_Pairs", level: FloatArray, below: IndexArray) -> FloatArray:
        """Minus the integral of her loss over all higher costs, piece by piece."""
        value = np.zeros(pairs.rows.size)
        unsolved = np.flatnonzero((pairs.to < level) & (level < math.inf))
        count, x = below[unsolved], pairs.to[unsolved]
        alone = self._nobody_else(pairs)
        if alone.any():  # loss B/x at every cost: there is no higher cost at which it ends
            with np.errstate(divide="ignore"):
                value[alone] = self._equation.goal.number * np.log(pairs.costs[alone])
            keep = ~alone[unsolved]
            unsolved, count, x = unsolved[keep], count[keep], x[keep]
        for _ in range(4 * self._offset.size + 16):
            if unsolved.size == 0:
                break
            others = self._others(pairs, unsolved, count)
            end, after = self._piece(pairs, unsolved, x, count, others)
            value[unsolved] -= self._integral(pairs, unsolved, x, end, others)
            going = after >= 0
            unsolved, x, count = unsolved[going], end[going], after[going]
        return value

    def _nobody_else(self, pairs: "_Pairs") -> BoolArray:
        """Whether nobody else has a finite positive cost."""
        hers = (self._costs[pairs.rows] > 0.0) * (self._place[pairs.rows] < self._offset.size)
        others = self._positive - hers
        alone: BoolArray = others == 0
        return alone

    def _moments(self, pairs: "_Pairs", who: IndexArray, count: IndexArray) -> tuple[FloatArray, ...]:
        """Mass, first and second moments of the first ``count`` people without her."""
        here = np.where(self._place[pairs.rows[who]] < count, pairs.mass[who], 0.0)
        own = pairs.own[who]
        return (
            self._total[count] - here,
            self._first[count] - here * own,
            self._second[count] - here * own * own,
        )

    def _others(self, pairs: "_Pairs", who: IndexArray, count: IndexArray) -> tuple[FloatArray, FloatArray]:
        """``b`` and ``b·(τ_o − base)`` of the first ``count`` people without her."""
        total, first, second = self._moments(pairs, who, count)
        b = np.maximum(self._base * total + first, 0.0)
        return b, self._equation.half + self._base * first + np.maximum(second, 0.0)

    def _piece(
        self,
        pairs: "_Pairs",
        who: IndexArray,
        x: FloatArray,
        count: IndexArray,
        others: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray, IndexArray]:
        """Where the piece from offset ``x`` on ends, and how many people are below the level after it; −1: she is out.

        The level falls in her cost while that is below half of it, and rises afterwards: a neighbour ``s`` is met where
        ``u·x² − u·s·x + b·(τ_o − s) = 0``, at the smaller root when she leaves and at the larger when she comes.
        """
        b, scaled = others
        place, mass = self._place[pairs.rows[who]], pairs.mass[who]
        with np.errstate(divide="ignore"):
            end = scaled / b
        after = np.full(who.size, -1)
        last, next_ = count - 1, count
        last, next_ = last - (last == place), next_ + (next_ == place)
        for neighbour, leaves in ((last, True), (next_, False)):
            # beyond the first and the last there is nobody to meet
            offset = self._edges[np.minimum(neighbour + 1, self._edges.size - 1)]
            with np.errstate(invalid="ignore", over="ignore"):
                s = self._base + offset
                # who leaves adds nothing to this: without her term nothing cancels
                sums = self._others(pairs, who, np.maximum(neighbour, 0)) if leaves else others
                rest = (sums[1] - sums[0] * offset) / mass
                inside = 0.25 * s * s - rest
            met_by = np.flatnonzero((inside >= 0.0) & (np.abs(offset) < math.inf))
            if met_by.size == 0:
                continue
            larger = 0.5 * s[met_by] + np.sqrt(inside[met_by])
            met = (rest[met_by] / larger if leaves else larger) - self._base
            # rounding may put a meeting a little before x
            near = (met >= x[met_by] - 1e-13 * s[met_by]) & (met < end[met_by])
            them = met_by[near]
            end[them] = np.maximum(met[near], x[them])
            after[them] = self._offset.searchsorted(offset[them], side="left" if leaves else "right")
        return end, after

    def _integral(
        self, pairs: "_Pairs", who: IndexArray, x: FloatArray, end: FloatArray, others: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """The integral of her loss from ``x`` to ``end``, where the others below the level stay the same."""
        b, scaled = others
        mass, unit = pairs.mass[who], self._equation.unit
        start = b + mass * (self._base + x)
        z = mass * (end - x) / start
        area = (scaled - b * x) * np.log1p(z) - b * (start / mass) * _less_log(z)
        return np.maximum(area, 0.0) * (2.0 / (unit * self._equation.goal.number))


class _Pairs:
    """Some (person, cost) pairs, with the sums of the population in which her cost is replaced."""

    def __init__(self, rule: LevelReplies, rows: IndexArray, costs: FloatArray) -> None:
        self.rule, self.rows, self.costs = rule, rows, costs
        self.mass = rule._people.masses(rows)
        self.present = rule._costs[rows] - rule._base
        self.own = self.present if rule._finite else np.where(np.isfinite(self.present), self.present, 0.0)
        self.to = costs - rule._base

    def sums(self, level: FloatArray | float) -> "_LevelSums":
        """Mass and moments of everybody below each level."""
        rule = self.rule
        count = rule._offset.searchsorted(level, side="left")
        gone, here = np.where(self.present < level, self.mass, 0.0), self.to < level
        came, to = np.where(here, self.mass, 0.0), np.where(here, self.to, 0.0)
        out, into = gone * self.own, came * to
        return _LevelSums(
            count,
            (rule._total[count] - gone) + came,
            (rule._first[count] - out) + into,
            (rule._second[count] - out * self.own) + into * to,
        )

    def levels(self) -> tuple[FloatArray, "_LevelSums"]:
        """Each pair's level, infinite where there is none, and the sums of those below it."""
        rule = self.rule
        beyond = max(float(rule._offset.max(initial=0.0)), float(self.to.max(initial=0.0, where=self.to < math.inf)))
        beyond = math.nextafter(2.0 * beyond + rule._base + 1.0, math.inf)
        # at zero, where people who ask for nothing are enough, there is no way on
        level = np.full(self.rows.size, rule._level if rule._level + rule._base > 0.0 else beyond)
        sums = self.sums(rule._level if rule._level + rule._base > 0.0 else beyond)  # one level for all to begin with
        for _ in range(_ROUNDS):
            new = rule._equation.root(rule._base, sums.total, sums.first, sums.second)
            new = self._told_apart(new, sums.count)
            # too few to have a level of their own: from everybody on; nothing is below zero
            new = np.where((new == math.inf) & (level < beyond), beyond, new)
            new = np.where(level + rule._base <= 0.0, level, new)
            settled = self._same_below(level, new, sums.count)
            level = new
            if settled.all():
                break
            sums = self.sums(np.minimum(level, beyond))
        sums.count = np.broadcast_to(sums.count, level.shape)
        return level, sums

    def close_to(self, level: FloatArray) -> IndexArray:
        """The pairs whose level is hardly told from her cost."""
        some = np.flatnonzero((self.to < math.inf) & (level < math.inf))
        to = self.to[some]
        return some[np.abs(level[some] - to) <= _CLOSE * (self.rule._base + to)]

    def above(self, who: IndexArray, count: IndexArray) -> FloatArray:
        """How far above their cost the level is, from the others only: their own terms cancel, however large."""
        rule, to, count = self.rule, self.to[who], np.broadcast_to(count, self.rows.shape)[who]
        found: FloatArray
        if isinstance(rule._equation.goal, Accuracy):
            total, first, _ = rule._moments(self, who, count)
            ratio = rule._equation.ratio
            slope = ratio * (total + self.mass[who]) - 1.0
            with np.errstate(divide="ignore", invalid="ignore"):
                found = (self.costs[who] - ratio * (total * to - first)) / slope
            return np.where(slope > 0.0, found, math.inf)
        b, scaled = rule._others(self, who, count)
        found = (scaled - b * to) / (b + self.mass[who] * (rule._base + to))
        return found

    def sums_from(self, who: IndexArray, count: IndexArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``G`` and ``W`` where the level is so far above their cost."""
        rule, level = self.rule, self.to[who] + above
        total, first, second = rule._moments(self, who, np.broadcast_to(count, self.rows.shape)[who])
        others = np.maximum(total * level - first, 0.0)
        own = self.mass[who] * above
        paid = rule._base * others + np.maximum(level * first - second, 0.0) + self.costs[who] * own
        return others + own, paid

    def _told_apart(self, level: FloatArray, count: IndexArray) -> FloatArray:
        """The levels, those close to her cost put on the right side of it."""
        close = self.close_to(level)
        close = close[self.to[close] + self.rule._base > 0.0]
        if close.size:
            above, to = self.above(close, count), self.to[close]
            over = np.maximum(to + above, np.nextafter(to, np.inf))
            level[close] = np.where(above > 0.0, over, np.minimum(level[close], to))
        return level

    def _same_below(self, level: FloatArray, new: FloatArray, count: IndexArray) -> BoolArray:
        """Whether the same people are below the new level as below the one before; or there is none."""
        edges = self.rule._edges
        inside = (edges[count] < new) & (new <= edges[count + 1]) & ((self.to < level) == (self.to < new))
        unmoved: BoolArray = inside | (new == level)
        return unmoved


class _LevelSums:
    """Mass, first and second moments of those below a level, for each pair."""

    def __init__(self, count: IndexArray, total: FloatArray, first: FloatArray, second: FloatArray) -> None:
        self.count, self.total, self.first, self.second = count, total, first, second

    def gain(self, level: FloatArray) -> FloatArray:
        """``G``."""
        at = np.where(np.isfinite(level), level, 0.0)
        return np.maximum(self.total * at - self.first, 0.0)

    def paid(self, base: float, level: FloatArray) -> FloatArray:
        """``W``."""
        at = np.where(np.isfinite(level), level, 0.0)
        return np.maximum(base * self.gain(level) + (at * self.first - self.second), 0.0)


def _less_log(z: FloatArray) -> FloatArray:
    """``z − log(1 + z)`` without cancelling."""
    large = z > _SERIES
    small = np.minimum(z, _SERIES) if large.any() else z
    series = 1.0 / 9.0 - 0.1 * small
    for power in range(8, 1, -1):
        series *= -small
        series += 1.0 / power
    series *= small * small
    return np.where(large, z - np.log1p(z), series) if large.any() else series
