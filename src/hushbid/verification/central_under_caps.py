"""The central optimum under caps once more, for verification: by a level, a rate and exclusion, on plain sums.

Every efficient purchase has the form ``ε_i = clip(ρ·u_i (τ − ψ_i), 0, e_i)`` for a level ``τ``, with ``u_i = 1/V_i``
and the rate ``ρ`` that solves ``Σ ε_i (τρ − V_i ε_i) = 2``, whose left side rises with ``ρ``. Its error is
``M = τρ/Σε`` and its expense ``E = Σ ψε``. With the level ``M`` and ``ρ`` fall and ``E`` rises, and along the way an
error less by one unit costs ``D = (Σε)²/(2ρ) = τ²ρ/(2M²)`` more.

* An error or an expense that is given: its level and rate are found from those of the population as it is
  (:mod:`hushbid.verification.caps_from_nearby`), which are bracketed, as is whatever is not found so.
* A price ``A``: ``A·M + E`` falls where ``D < A`` and rises where ``D > A``. For an interval of levels the values at
  its ends may say that it falls throughout, rises throughout, or is worse than what was seen throughout. Such an
  interval is thrown away; others are cut, until what is left is so narrow that ``D = A`` is solved in it.

One person's cost is replaced for many (person, cost) pairs at a time (:mod:`hushbid.verification.crowd_under_caps`).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.verification.caps_from_nearby import from_nearby, root_between
from hushbid.verification.central_by_exclusion import Answers
from hushbid.verification.crowd_under_caps import Crowd, Moved, Sums

Long = NDArray[np.longdouble]

_ROUNDS = 80
_INNER_ROUNDS = 120
_NARROW = 1e-7
_FAR = 1e15
_AS_GOOD = 1.0 + 1e-13
_BLUR = 1e-13
_EVERY = 16
"""Of so many pairs with costs in a row one is bracketed."""

_PEOPLE_PER_EFFORT = 200.0
"""From a purchase nearby, so many people take twice as long as few."""


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """Purchases along the frontier, one per pair."""

    level: Long
    """``τ``, counted from the smallest cost."""

    rate: Long
    mse: Long
    expense: Long

    def take(self, which: NDArray[np.intp]) -> "_Points":
        return _Points(*(getattr(self, name)[which] for name in self.__slots__))

    def put(self, which: NDArray[np.intp], others: "_Points") -> None:
        for name in self.__slots__:
            getattr(self, name)[which] = getattr(others, name)


class CappedRule:
    """The purchase under caps for an ``error_weight``, an ``error`` or an ``expense``, by one person's cost."""

    def __init__(
        self,
        costs: FloatArray,
        variance: FloatArray,
        caps: FloatArray,
        *,
        error_weight: float | None = None,
        error: float | None = None,
        expense: float | None = None,
    ) -> None:
        self._weight, self._error, self._expense = error_weight, error, expense
        self._costs, self._variance, self._caps = costs, variance, caps
        self._crowd = Crowd(costs, variance, caps)
        self._base = np.longdouble(self._crowd.base)
        self._alone = self._alone_values()
        self._kept: dict[tuple[int, bool], FloatArray | None] = {}
        self._seen = np.zeros((3, 0))

    @property
    def worked(self) -> float:
        """What was computed so far, in millionths of a second on an ordinary computer, about."""
        return self._crowd.worked

    @property
    def effort(self) -> float:
        """How much longer than usual an answer takes."""
        return self._crowd.effort if self._weight is not None else 3.0 + self._costs.size / _PEOPLE_PER_EFFORT

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The purchase if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j.

        The value is the objective, or the expense where an error is given; its derivative in her cost is her loss.
        Where an expense is given there is no such value.
        """
        loss, mse, value = np.zeros(rows.size), np.full(rows.size, math.inf), np.full(rows.size, math.inf)
        size = self._crowd.at_once
        with np.errstate(all="ignore"):
            for start in range(0, rows.size, size):
                part = slice(start, start + size)
                loss[part], mse[part], value[part] = self._answers(rows[part], costs[part])
        return Answers(loss, mse, value)

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Everybody's privacy loss, the error and the value if person ``row`` had that cost."""
        changed = self._costs.copy()
        changed[row] = cost
        if not (changed < math.inf).any():
            return np.zeros(changed.size), math.inf, math.inf
        enough = self._free_ones(row, cost)
        if enough is not None:
            assert self._error is not None
            return enough, self._error, 0.0
        with np.errstate(all="ignore"):
            moved = self._crowd.moved(np.array([row]), np.array([cost]))
            found = self._solved(moved, self._single(np.array([row]), np.array([cost])))
            value = float(self._value(found)[0])
            silent = self._silent(moved)
            if silent[0] <= value:
                losses = np.where((changed == 0.0) & (self._caps == math.inf), math.inf, 0.0)
                return losses, float(silent[0]) / float(self._weight or 1.0), float(silent[0])
            gap = np.maximum(found.level[0] - (changed - self._base), 0.0)
            losses = np.minimum(found.rate[0] * gap / self._variance, self._caps).astype(float)
        return losses, float(found.mse[0]), value

    # -- one answer per pair -------------------------------------------------------------------------------------------

    def _answers(self, rows: IndexArray, costs: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        moved = self._crowd.moved(rows, costs)
        single = self._single(rows, costs)
        there = np.flatnonzero(moved.first < math.inf)
        loss, mse, value = np.zeros(rows.size), np.full(rows.size, math.inf), np.full(rows.size, math.inf)
        some = moved.take(there)
        found = self._solved(some, single[there])
        own = np.maximum(found.level - some.into, 0.0) * found.rate / self._variance[rows[there]]
        own = np.where(costs[there] < math.inf, np.minimum(own, self._caps[rows[there]]), 0.0)
        reached = np.isfinite(found.mse)
        loss[there], mse[there] = np.where(reached, own, 0.0), found.mse
        value[there] = np.where(reached, self._value(found), math.inf)
        # no noise at all
        silent = self._silent(moved)
        quiet = np.flatnonzero(silent <= value)
        if quiet.size:
            mse[quiet], value[quiet] = silent[quiet] / float(self._weight or 1.0), silent[quiet]
            loss[quiet] = np.where((costs == 0.0) & (self._caps[rows] == math.inf), math.inf, 0.0)[quiet]
        # people who ask for nothing are enough
        if self._error is not None and self._crowd.base == 0.0:
            for j, (row, cost) in enumerate(zip(rows.tolist(), costs.tolist(), strict=True)):
                enough = self._free_ones(row, cost)
                if enough is not None:
                    loss[j], mse[j], value[j] = enough[row], self._error, 0.0
        return loss, mse, value

    def _value(self, found: _Points) -> FloatArray:
        if self._weight is not None:
            return (self._weight * found.mse + found.expense).astype(float)
        if self._error is not None:
            return found.expense.astype(float)
        return np.full(found.level.size, math.nan)

    def _solved(self, moved: Moved, single: FloatArray) -> _Points:
        if self._weight is not None:
            return self._best_price(moved, single)
        # an error or an expense: what is left for her alone; from the population as it is; where that leads nowhere
        points, known = self._beside_all_caps(moved)
        rest = np.flatnonzero(~known)
        if rest.size:
            some = moved.take(rest)
            found = from_nearby(self._crowd, some, *self._here, error=self._error, expense=self._expense)
            points.put(rest, self._points(found.level, found.rate, self._crowd.sums(some, found.level, found.rate)))
            rest = rest[~found.solved]
        if rest.size:
            points.put(rest, self._from_bracketed(moved.take(rest)))
        return points

    def _beside_all_caps(self, moved: Moved) -> tuple[_Points, BoolArray]:
        """All others at their caps and, for the rest ``b`` of an expense, she; and for which pairs that is optimal.

        She loses ``ε = b/ψ``; then ``τρ = (2 + ΣVε²)/Σε`` and ``ρψ = τρ − Vε``. The problem is convex: if everybody
        else wants to be at her cap at this level and rate, it is solved. Her cost may be beyond all measure.
        """
        size, expense = moved.rows.size, self._expense
        if expense is None or not self._crowd.few:
            return _Points(*np.zeros((4, size), dtype=np.longdouble)), np.zeros(size, dtype=bool)
        there = self._costs < math.inf
        caps, costs = np.where(there, self._caps, 0.0), np.where(there, self._costs, 0.0)
        spread, cost = self._variance[moved.rows], self._base + moved.into
        columns = (costs * caps, caps, self._variance * caps * caps)
        spent, bought, squares = (float(column.sum()) - column[moved.rows] for column in columns)
        loss = (expense - spent) / cost
        product = (2.0 + squares + spread * loss * loss) / (bought + loss)
        rate = (product - spread * loss) / cost
        known = (expense - spent > 1e-9 * expense) & (loss < self._caps[moved.rows]) & (rate > 0.0) & (rate < math.inf)
        some = np.flatnonzero(known)
        short = product[some, None] - rate[some, None] * costs < self._variance * caps * (1.0 + 1e-12)
        short[np.arange(some.size), moved.rows[some]] = False
        known[some] = ~short.any(axis=1)
        level = moved.into + spread * loss / rate
        mse = np.asarray(product / (bought + loss), dtype=np.longdouble)
        return _Points(level, rate, mse, np.full(size, expense, dtype=np.longdouble)), known

    def _from_bracketed(self, moved: Moved) -> _Points:
        """From what was found by a bracket at costs nearby, now or before, and by one where that leads nowhere."""
        points = _Points(*(np.empty(moved.rows.size, dtype=np.longdouble) for _ in _Points.__slots__))
        rest = np.argsort(moved.into, kind="stable")
        # by what is known; by a bracket here and there; by what is known then; and all others
        for step in (_EVERY, 1):
            if self._seen.size:
                some, (place, *known) = moved.take(rest), self._seen
                begin = (np.exp(np.interp(np.log(self._base + some.into).astype(float), place, one)) for one in known)
                found = from_nearby(self._crowd, some, *begin, error=self._error, expense=self._expense)
                points.put(rest, self._points(found.level, found.rate, self._crowd.sums(some, found.level, found.rate)))
                rest = rest[~found.solved]
            if rest.size == 0:
                break
            points.put(rest[::step], self._remembered(moved.take(rest[::step])))
            rest = np.delete(rest, np.s_[::step])
        return points

    def _remembered(self, moved: Moved) -> _Points:
        """By a bracket, and kept: logarithms of the cost, of how far the level is above the first one, of the rate."""
        found = self._bracketed(moved)
        new = np.log(np.stack([self._base + moved.into, found.level - moved.start, found.rate]).astype(float))
        goal, reached = (self._error, found.mse) if self._expense is None else (self._expense, found.expense)
        met = np.isfinite(new).all(axis=0) & np.isclose(reached.astype(float), float(goal or 0.0), rtol=1e-9, atol=0.0)
        seen = np.concatenate([self._seen, new[:, met]], axis=1)
        self._seen = seen[:, np.argsort(seen[0], kind="stable")]
        return found

    @cached_property
    def _here(self) -> tuple[float, float]:
        """How far the level is above the first one, and the rate, of the population as it is."""
        row = np.array([int(np.argmin(self._costs))])
        moved = self._crowd.moved(row, self._costs[row])
        found = self._bracketed(moved)
        return float((found.level - moved.start)[0]), float(found.rate[0])

    def _bracketed(self, moved: Moved) -> _Points:
        """The level at which an error or an expense is met, between the first and one far away."""
        low, high = moved.start, moved.start + _FAR * (self._base + moved.highest + 1e-300)

        def short(points: _Points) -> Long:
            """Negative as long as the level is too low."""
            if self._error is not None:
                return np.asarray(np.log(self._error / points.mse), dtype=np.longdouble)
            return np.asarray(np.log(points.expense) - math.log(float(self._expense or 1.0)), dtype=np.longdouble)

        found = self._curve(moved, high)
        # what not even the highest level reaches: all of a budget cannot be spent, an error is out of reach
        far = short(found) <= 0.0
        if self._error is not None:
            found.mse[far & (found.mse > self._error * (1.0 + 1e-12))] = math.inf
        near = np.flatnonzero(~far)
        if near.size:
            some, start, reach = moved.take(near), low[near], (high - low)[near]
            # from far below the first cost, however much larger the largest is
            least = np.log((self._base + start + 1e-300) / (self._base + some.highest + 1e-300)) - 80.0
            place = root_between(
                lambda x: short(self._curve(some, start + reach * np.exp(x))),
                np.minimum(least, -80.0).astype(np.longdouble),
                0.0 * start,
                self._crowd.digits,
            )
            met = self._curve(some, start + reach * np.exp(place))
            found.put(near, met)
        return found

    def _curve(self, moved: Moved, level: Long) -> _Points:
        """The purchase at each pair's level: the rate by the quadratic equation of whoever is at her cap, and who not.

        A rate that leaves its bracket, or closes in too slowly, is replaced by the middle of it.
        """
        tau, close = self._base + level, self._crowd.digits
        low, high = np.zeros_like(level), np.full_like(level, math.inf)
        sums = self._crowd.sums(moved, level, np.zeros_like(level))
        rate = np.where(sums.work > 0.0, np.sqrt(2.0 / sums.work), 1.0)
        for round_ in range(_INNER_ROUNDS):
            sums = self._crowd.sums(moved, level, rate)
            excess = rate * rate * sums.work + tau * rate * sums.capped - sums.squares - 2.0
            low, high = np.where(excess <= 0.0, rate, low), np.where(excess > 0.0, rate, high)
            pull = tau * sums.capped
            target = 2.0 + sums.squares
            ahead = 2.0 * target / (pull + np.sqrt(pull * pull + 4.0 * sums.work * target))
            done = ~(np.abs(ahead - rate) > close * rate)  # what is no number will not become one
            if done.all():
                break
            inside = (ahead > low) & (ahead < high) & (round_ % 5 < 4)
            middle = np.where(high < math.inf, np.sqrt(low * high), 64.0 * np.maximum(rate, low))
            middle = np.where(low > 0.0, middle, np.minimum(rate, high) / 64.0)
            stuck = (high < math.inf) & (high - low <= close * high)
            rate = np.where(done | stuck, rate, np.where(inside, ahead, middle)).astype(np.longdouble)
            if (done | stuck).all():
                break
        return self._points(level, rate, sums)

    def _points(self, level: Long, rate: Long, sums: Sums) -> _Points:
        tau, total = self._base + level, sums.capped + rate * sums.gain
        mse: Long = np.asarray(tau * rate / total, dtype=np.longdouble)
        return _Points(level, rate, mse, sums.spent + rate * sums.work)

    # -- a price -------------------------------------------------------------------------------------------------------

    def _alone_values(self) -> FloatArray:
        """What buying from each person alone comes to: a value that is attained."""
        if self._weight is None:
            return np.full(self._costs.size, math.inf)
        return self._single(np.arange(self._costs.size), self._costs, others=False)

    def _single(self, rows: IndexArray, costs: FloatArray, *, others: bool = True) -> FloatArray:
        """The best value of one person alone: herself at that cost, or anybody else."""
        if self._weight is None:
            return np.full(rows.size, math.inf)
        with np.errstate(all="ignore"):
            loss = np.minimum(np.cbrt(4.0 * self._weight / costs), self._caps[rows])
            paid = np.where(costs > 0.0, costs * loss, 0.0)
            own = self._weight * (2.0 / (loss * loss) + self._variance[rows]) + paid
        own = np.where(costs < math.inf, own, math.inf)
        if not others:
            return own
        best = np.argsort(self._alone, kind="stable")[:2]
        rest = np.append(self._alone[best], [math.inf, math.inf])
        return np.asarray(np.minimum(own, np.where(rows == best[0], rest[1], rest[0])), dtype=float)

    def _silent(self, moved: Moved) -> FloatArray:
        """No noise, everything on people who ask for nothing and have no cap."""
        if self._weight is None:
            return np.full(moved.rows.size, math.inf)
        return np.asarray(np.where(moved.free > 0.0, self._weight / moved.free, math.inf), dtype=float)

    def _best_price(self, moved: Moved, single: FloatArray) -> _Points:
        """The best level of each pair: intervals are thrown away by three tests until they are narrow."""
        weight = float(self._weight or 0.0)
        size = moved.rows.size
        # at an optimum D = A, so that τ ≤ 2J/Σε, and Σε ≥ √(2A/J), for every J that is attained
        attained = np.minimum(single, self._silent(moved)).astype(np.longdouble)
        limit = np.sqrt(2.0 / weight) * attained**1.5 * (1.0 + 1e-9) - self._base
        pair = np.flatnonzero(limit > moved.start)
        start = moved.start
        top = self._curve(moved.take(pair), limit[pair])
        free = np.where(moved.free > 0.0, 1.0 / moved.free, math.inf)
        endless = np.full(pair.size, math.inf, dtype=np.longdouble)
        bottom = _Points(
            start[pair], endless, free[pair].astype(np.longdouble), 0.0 * endless[:0].sum() + 0.0 * top.rate
        )
        seen = np.minimum(attained.astype(float), math.inf)
        left: list[tuple[IndexArray, _Points, _Points]] = []
        for _ in range(_ROUNDS):
            if pair.size == 0:
                break
            ends = self._cut(moved, pair, start[pair], bottom, top)
            values = np.stack([weight * point.mse + point.expense for point in ends[1:]])
            np.minimum.at(seen, pair, np.nanmin(values, axis=0).astype(float))
            keep: list[tuple[IndexArray, _Points, _Points]] = []
            for one, two in pairwise(ends):
                tau = self._base + one.level, self._base + two.level
                falls = tau[1] ** 2 * one.rate < 2.0 * weight * two.mse**2 * (1.0 - _BLUR)
                rises = tau[0] ** 2 * two.rate > 2.0 * weight * one.mse**2 * (1.0 + _BLUR)
                worse = weight * two.mse + one.expense > seen[pair] * _AS_GOOD
                which = np.flatnonzero(~(falls | rises | worse) & np.isfinite(two.mse))
                keep.append((pair[which], one.take(which), two.take(which)))
            pair, bottom, top = _joined(keep)
            width = (top.level - bottom.level) / (top.level - start[pair])
            narrow = (width <= _NARROW) | (top.level - bottom.level <= 1e-16 * (self._base + top.level))
            left.append((pair[narrow], bottom.take(np.flatnonzero(narrow)), top.take(np.flatnonzero(narrow))))
            go = np.flatnonzero(~narrow)
            pair, bottom, top = pair[go], bottom.take(go), top.take(go)
        return self._polished(moved, size, left)

    def _cut(self, moved: Moved, pair: IndexArray, start: Long, bottom: _Points, top: _Points) -> list[_Points]:
        """The ends of four parts of each interval, cut geometrically where it reaches far."""
        near, far = bottom.level - start, top.level - start
        ratio = np.maximum(near / far, 1.0 / 256.0)
        inner = []
        for k in (1, 2, 3):
            level = np.where(ratio < 0.25, far * ratio ** (1.0 - k / 4.0), near + (far - near) * (k / 4.0))
            inner.append(start + np.clip(level, near, far))
        # all three in one go
        where = moved.take(np.tile(pair, 3))
        points = self._curve(where, np.concatenate(inner))
        parts = [points.take(np.arange(k * pair.size, (k + 1) * pair.size)) for k in range(3)]
        return [bottom, *parts, top]

    def _polished(self, moved: Moved, size: int, left: list[tuple[IndexArray, _Points, _Points]]) -> _Points:
        """The best of what is left, with ``D = A`` solved where it passes from below to above."""
        weight = float(self._weight or 0.0)
        pair, bottom, top = _joined(left)

        def slope(points: _Points) -> Long:
            tau = self._base + points.level
            return np.asarray(np.log(tau * tau * points.rate / (2.0 * weight * points.mse**2)), dtype=np.longdouble)

        where = moved.take(pair)
        low, high = bottom.level, top.level
        found = self._curve(where, high)
        crossing = np.flatnonzero((slope(bottom) < 0.0) & (slope(found) > 0.0))
        if crossing.size:
            some, first, width = where.take(crossing), low[crossing], (high - low)[crossing]
            zero = 0.0 * first
            share = root_between(
                lambda x: slope(self._curve(some, first + width * x)), zero, zero + 1.0, self._crowd.digits / _NARROW
            )
            better = self._curve(some, first + width * share)
            found.put(crossing, better)
        value = (weight * found.mse + found.expense).astype(float)
        # of points as good as the best, one at which the equation was solved
        best_of = np.full(size, math.inf)
        np.minimum.at(best_of, pair, value)
        solved = np.zeros(pair.size, dtype=bool)
        solved[crossing] = True
        as_good = solved & (value <= best_of[pair] * _AS_GOOD)
        order = np.lexsort((value, ~as_good, pair))
        first_ones, index = np.unique(pair[order], return_index=True)
        best = found.take(order[index])
        result = _Points(*(np.full(size, fill, dtype=np.longdouble) for fill in (0.0, 0.0, math.inf, math.inf)))
        result.put(first_ones, best)
        return result

    # -- people who ask for nothing ------------------------------------------------------------------------------------

    def _free_ones(self, row: int, cost: float) -> FloatArray | None:
        """Everybody's loss if those who ask for nothing reach the error alone, as if all asked for the same."""
        if self._error is None:
            return None
        key = (row if cost == 0.0 or self._costs[row] == 0.0 else -1, cost == 0.0)
        if key not in self._kept:
            free = self._costs == 0.0
            free[row] = cost == 0.0
            rows = np.flatnonzero(free)
            self._kept[key] = None
            if rows.size:
                rule = CappedRule(np.ones(rows.size), self._variance[rows], self._caps[rows], error=self._error)
                losses, mse, _ = rule.everybody(0, 1.0)
                if mse < math.inf:
                    everybody = np.zeros(self._costs.size)
                    everybody[rows] = losses
                    self._kept[key] = everybody
        return self._kept[key]


def _joined(parts: list[tuple[IndexArray, _Points, _Points]]) -> tuple[IndexArray, _Points, _Points]:
    pair = np.concatenate([part[0] for part in parts] or [np.zeros(0, dtype=np.intp)])
    ends = [
        _Points(*(np.concatenate([getattr(part[k], name) for part in parts]) for name in _Points.__slots__))
        if parts
        else _Points(*(np.zeros(0, dtype=np.longdouble) for _ in _Points.__slots__))
        for k in (1, 2)
    ]
    return pair, ends[0], ends[1]
