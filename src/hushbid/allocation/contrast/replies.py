"""How the optimum for a contrast answers to one person's cost, for many (person, cost) pairs at once.

From the present optimum every pair goes from guess to guess (:mod:`hushbid.allocation.contrast.moved`). For an accuracy
or a budget the pieces are tangents of a convex function, so the guesses fall towards the only answer and stop there.

For a price what is found is a minimum of ``Φ_p``, the pair's own ``Φ``, but perhaps not the best. Raising a cost raises
``Φ`` at every ``T``: ``Φ_p ≥ Φ``. So the best ``T`` lies where ``Φ(T)`` is at most the value found, in an interval that
the present pieces give. If ``T⁴ − 2W_p`` increases on all of it, which ``4T³ > 2M_p`` at its ends shows, there is no
other minimum. Where that fails, and for lowered costs, the pair is solved by itself.
"""

import math
from dataclasses import replace

import numpy as np

from hushbid.allocation.contrast.moved import Found, Moved, Others
from hushbid.allocation.contrast.pieces import Pieces, Point, Stratum, by_stratum, inside, level_root, minima, point_of
from hushbid.allocation.contrast.potential import budget_potential
from hushbid.allocation.contrast.problem import Scaled, limited
from hushbid.allocation.contrast.solve import solve_contrast
from hushbid.allocation.goals import Accuracy, Price
from hushbid.allocation.problem import Problem
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError
from hushbid.estimation import Strata

_CHUNK = 1 << 13
ROUNDS = 100
_PRICE_ROUNDS = 16
_BLUR = 1e-6
"""Where ``W`` is a smaller share of ``M·T`` than this, prefix sums do not tell it well enough."""


class ContrastReplies:
    """The optimum as a function of one person's cost, everybody else's fixed."""

    def __init__(self, problem: Problem, strata: Strata) -> None:
        self._scaled = scaled = Scaled.of(problem, strata)
        self._people = by_stratum(scaled, np.flatnonzero(scaled.costs < math.inf))
        with np.errstate(over="ignore", invalid="ignore"):
            self._point: Point = point_of(scaled, self._people)
            self._pieces = Pieces.of(self._people)
            self._valleys = _Valleys(self._pieces) if isinstance(scaled.goal, Price) else None
            self._views = [Others.of(self._people, self._pieces, g) for g in range(scaled.sizes.size)]
        self._place = np.full(scaled.costs.size, -1)
        for one in self._people:
            self._place[one.rows] = np.arange(one.rows.size)
        free = [float(one.mass[one.offset == 0.0].sum()) if one.base == 0.0 else 0.0 for one in self._people]
        self._free = np.array(free)
        self._direct = _Direct(problem, strata)

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        value, loss, mse = np.empty(rows.size), np.empty(rows.size), np.empty(rows.size)
        within = limited(costs, self._scaled.limits)
        codes = self._scaled.codes[rows]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for stratum in np.unique(codes).tolist():
                mine = np.flatnonzero(codes == stratum)
                for start in range(0, mine.size, _CHUNK):
                    part = mine[start : start + _CHUNK]
                    value[part], loss[part], mse[part] = self._of_stratum(stratum, rows[part], within[part])
            # beyond the limits her loss stays the same, and the potential goes on as a line
            beyond = np.flatnonzero((within != costs) & (loss > 0.0))
            value[beyond] += loss[beyond] * (costs[beyond] - within[beyond])
        return Replies(value, loss, mse)

    def _of_stratum(self, stratum: int, rows: IndexArray, costs: FloatArray) -> tuple[FloatArray, ...]:
        scaled, one = self._scaled, self._people[stratum]
        cheapest = scaled.costs[one.rows[0]]
        pairs = Moved(
            others=self._views[stratum],
            mass=scaled.masses(rows),
            own=(scaled.costs[rows] - cheapest) / scaled.scale,
            to=(costs - cheapest) / scaled.scale,
            place=self._place[rows],
            rank=np.where(self._place[rows] < 0, one.rows.size, self._place[rows]),
        )
        if isinstance(scaled.goal, Price):
            return self._for_price(pairs, rows, costs)
        empty = pairs.lowest() == math.inf
        free = self._free_floor(stratum, pairs, rows, costs)
        at, level, found, _ = self._follow(pairs, ROUNDS)  # by rounding some go to and fro between neighbours
        accurate = isinstance(scaled.goal, Accuracy)
        paid = found.mean * at - found.spread if accurate else np.full(at.size, scaled.half)
        over = np.maximum(level - pairs.to, 0.0)
        lost = empty | ~(at < math.inf)
        loss = np.where(lost, 0.0, pairs.mass * over * np.sqrt(2.0 / scaled.unit / paid))
        if accurate:
            value = np.where(lost, math.inf, np.sqrt(2.0 * paid / scaled.unit))
            value, loss, mse = self._with_free(pairs, stratum, costs, free, lost, value, loss)
            # where too little is left of the difference
            blurred = ~lost & (value > 0.0) & ~(paid > _BLUR * found.mean * at)
            self._solve(np.flatnonzero(blurred), rows, costs, loss, mse, value)
            return value, loss, mse
        mse = np.where(lost, math.inf, scaled.factor * (found.mean / at + found.floor))
        value = budget_potential(scaled, pairs, at, level, found, lost)
        self._solve(np.flatnonzero(~lost & ~(paid > _BLUR * found.mean * at)), rows, costs, loss, mse)
        return value, loss, mse

    # -- from guess to guess -------------------------------------------------------------------------------------------

    def _follow(self, pairs: Moved, rounds: int) -> tuple[FloatArray, FloatArray, Found, IndexArray]:
        """``T``, the level of her stratum, and the piece, of each pair, and which did not settle.

        ``T`` is infinite where there is no answer.
        """
        size = pairs.others.own.size
        lowest = pairs.lowest()
        last = np.where(pairs.to < math.inf, pairs.to, 0.0)
        # past everybody
        highest = 2.0 * np.maximum(last, float(pairs.others.own.offset[-1])) + 1.0
        farthest = math.nextafter(float(self._pieces.key[-1]) * 2.0 + 1.0, math.inf)
        start = self._point.at if 0.0 < self._point.at < math.inf else farthest
        at = np.full(lowest.size, start)
        level = np.full(lowest.size, _level_at(pairs.others.own, start)) if start < farthest else highest.copy()
        level = np.maximum(level, np.nextafter(lowest, math.inf))
        found = pairs.piece(at, level)
        unsolved = np.arange(lowest.size)
        for _ in range(rounds):
            some, current, here = pairs.take(unsolved), found.take(unsolved), at[unsolved]
            new = self._root(current)
            enough = new < math.inf
            # too few to have an answer of their own: from everybody on, and if they are too few, none
            nobody = ~enough & (here >= farthest) & (level[unsolved] >= highest[unsolved])
            at[unsolved] = np.where(enough, np.maximum(new, 1e-300), np.where(nobody, math.inf, farthest))
            above = np.where(enough, current.level(size, new), highest[unsolved])
            level[unsolved] = np.maximum(above, np.nextafter(lowest[unsolved], math.inf))
            after = some.piece(np.minimum(at[unsolved], farthest), level[unsolved])
            found.put(unsolved, after)
            unsolved = unsolved[~(after.same(current) & enough | nobody)]
            if unsolved.size == 0:
                break
        return at, level, found, unsolved

    def _root(self, found: Found) -> FloatArray:
        if isinstance(self._scaled.goal, Price):
            return larger_root(found.mean, found.spread)
        return level_root(self._scaled, found.mean, found.spread, found.floor)

    # -- a price -------------------------------------------------------------------------------------------------------

    def _for_price(self, pairs: Moved, rows: IndexArray, costs: FloatArray) -> tuple[FloatArray, ...]:
        scaled = self._scaled
        at, level, found, unsettled = self._follow(pairs, _PRICE_ROUNDS)
        at[unsettled] = math.nan
        value = 0.5 * at * at + found.floor + 2.0 * found.mean / at - found.spread / at / at
        sure = self._is_best(pairs, at, found, value)
        loss = pairs.mass * np.maximum(level - pairs.to, 0.0) * (2.0 / (at * at * math.sqrt(scaled.unit)))
        mse = scaled.factor * (found.floor + found.mean / at)
        value *= scaled.goal.number * scaled.factor
        self._solve(np.flatnonzero(~sure), rows, costs, loss, mse, value)
        return value, loss, mse

    def _solve(self, which: IndexArray, rows: IndexArray, costs: FloatArray, *into: FloatArray) -> None:
        """Solve some pairs by themselves, for their losses, errors and perhaps values."""
        if which.size:
            found = self._direct.at(rows[which], costs[which])
            for one, direct in zip(into, (found.loss, found.mse, found.value), strict=False):
                one[which] = direct

    def _is_best(self, pairs: Moved, at: FloatArray, found: Found, value: FloatArray) -> BoolArray:
        """Whether the minimum found is the only one that can be as good: see the top."""
        assert self._valleys is not None
        if self._free.min() > 0.0 or self._pieces.base == 0.0:
            return np.zeros(at.size, dtype=bool)  # to add no noise may be best
        low, high = self._valleys.between(value * (1.0 + 1e-12))
        level = found.level(pairs.others.own.size, high)
        mean = pairs.piece(high, level).mean
        sure = (pairs.to >= pairs.own) & (low <= at) & (at <= high) & (4.0 * low**3 > 2.0 * mean * (1.0 + 1e-9))
        return np.asarray(sure & (pairs.lowest() < math.inf))

    # -- an accuracy that people who ask for nothing may reach ---------------------------------------------------------

    def _free_floor(self, stratum: int, pairs: Moved, rows: IndexArray, costs: FloatArray) -> FloatArray:
        """``C`` of people who ask for nothing alone; infinite where a stratum has none."""
        was = self._scaled.costs[rows] == 0.0
        own = self._free[stratum] - pairs.mass * was + pairs.mass * (costs == 0.0)
        own = np.where(own < 0.5 * float(self._people[stratum].mass.min()), 0.0, own)
        squares = np.square(self._scaled.sizes) / self._free
        return np.asarray(np.delete(squares, stratum).sum() + self._scaled.sizes[stratum] ** 2 / own)

    def _with_free(
        self,
        pairs: Moved,
        stratum: int,
        costs: FloatArray,
        free: FloatArray,
        lost: BoolArray,
        value: FloatArray,
        loss: FloatArray,
    ) -> tuple[FloatArray, ...]:
        scaled = self._scaled
        enough = free <= scaled.ratio
        strength = np.sqrt(2.0 / (scaled.unit * np.maximum(scaled.ratio - free, 0.0)))
        rest = float(np.delete(np.square(scaled.sizes) / self._free, stratum).sum())
        share = pairs.mass * (free - rest) / scaled.sizes[stratum]  # λu/U of the free of her stratum
        loss = np.where(enough, np.where(costs == 0.0, share * strength, 0.0), loss)
        mse = np.where(lost & ~enough, math.inf, scaled.goal.number**2)
        return np.where(enough, 0.0, value), loss, mse


class _Valleys:
    """Between which ``T`` all points lie at which ``Φ`` is at most some value."""

    def __init__(self, pieces: Pieces) -> None:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            key = pieces.key
            ends = 0.5 * key * key + pieces.floor + 2.0 * (pieces.base + pieces.slope) / key
            ends = np.where(key > 0.0, ends - pieces.spread / key / key, math.inf)
            ends = np.where(np.isnan(ends), math.inf, ends)
        least = np.minimum(ends, np.append(ends[1:], math.inf))
        for j in minima(pieces):
            found = inside(pieces.base + float(pieces.slope[j]), float(pieces.spread[j]), float(pieces.floor[j]))[1]
            least[j] = min(least[j], found)
        self._pieces = pieces
        self._from_left = -np.minimum.accumulate(least)
        self._from_right = np.minimum.accumulate(least[::-1])[::-1]

    def between(self, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest ``T`` for each value; at an optimum, three times ``T²/2`` is at most the value."""
        pieces = self._pieces
        ends = np.append(pieces.key, math.inf)
        last = np.maximum(self._from_right.searchsorted(value, side="right"), 1)
        first = np.minimum(self._from_left.searchsorted(-value), pieces.key.size - 1)
        # within the first piece: where C + T²/2 + 2M/T − Q/T² comes down to the value, T² bounded by the last guess
        mean, spread = pieces.base + pieces.slope[first], pieces.spread[first]
        low = pieces.key[first]
        for _ in range(6):
            rest = value - pieces.floor[first] - 0.5 * low * low
            guess = (mean + np.sqrt(mean * mean - spread * rest)) / rest  # not a number where there is no bound
            low = np.where((rest > 0.0) & (guess > low), np.minimum(guess, ends[first + 1]), low)
        return low * (1.0 - 1e-12), np.minimum(ends[last], np.sqrt(value / 1.5))


class _Direct:
    """Pairs one by one, for whatever nothing quicker is right."""

    def __init__(self, problem: Problem, strata: Strata) -> None:
        self._problem, self._strata = problem, strata

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        value, loss, mse = np.full(rows.size, np.inf), np.zeros(rows.size), np.full(rows.size, np.inf)
        for j, (row, cost) in enumerate(zip(rows.tolist(), costs.tolist(), strict=True)):
            moved = self._problem.costs.copy()
            moved[row] = cost
            try:
                found = solve_contrast(replace(self._problem, costs=moved), self._strata)
            except MarketError:  # nobody is left in her stratum
                continue
            value[j], loss[j], mse[j] = found.objective, found.privacy_loss[row], found.mse
        return Replies(value, loss, mse)


def _level_at(one: Stratum, at: float) -> float:
    """A stratum's level at ``T``."""
    k = max(int(one.key.searchsorted(at)), 1)
    level: float = one.offset[k - 1] + one.size * (at - one.key[k - 1]) / one.total[k - 1]
    return float(level)


def larger_root(mean: FloatArray, spread: FloatArray) -> FloatArray:
    """The larger root of ``T⁴ − 2MT + 2Q``, by Newton's method; where the quartic is least if it has none."""
    at = np.cbrt(2.0 * mean)
    lowest = np.cbrt(0.5 * mean)
    for _ in range(80):
        cube = at * at * at
        slope = 4.0 * cube - 2.0 * mean
        step = np.where(slope > 0.0, (at * (cube - 2.0 * mean) + 2.0 * spread) / np.where(slope > 0.0, slope, 1.0), 0.0)
        at = np.maximum(at - step, lowest)
        if not (np.abs(step) > 1e-15 * at).any():
            break
    return at
