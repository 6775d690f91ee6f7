"""The central optimum once more, for verification: any goal, strata, caps and variances, by one person's cost.

One mean is one stratum, and no cap is an infinite one. Every efficient purchase is a point of a path in ``T``
(:mod:`hushbid.verification.central_path`). Along it the error ``N`` falls and the expense ``C`` rises, so an error or
an expense that is given is found by narrowing an interval of ``T``. ``A·N + C`` falls where ``T² < 2Aσ`` and rises
where ``T² > 2Aσ``. For a price ``A`` the ends of an interval ``[T₁, T₂]`` may say that it falls throughout
(``T₂² < 2Aσ₁``), rises throughout (``T₁² > 2Aσ₂``), or is never below

    A·N₁ + C₁ − (N₁ − N₂)·(A − T₁²/2σ₂)⁺      and      A·N₂ + C₂ − (N₁ − N₂)·(T₂²/2σ₁ − A)⁺,

because ``dC = −(T²/2σ)·dN``. Such intervals are thrown away, others are cut until they are narrow: nothing better is
overlooked. The solver, in contrast, has a closed form on each piece of the path.
"""

import math
from collections.abc import Callable

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.verification.central_path import Pairs, Path, Points, Row
from hushbid.verification.central_sums import People, Real, Sums
from hushbid.verification.work import Answers, WorkExceeded

_NARROW, _NARROWEST = 1e-2, 1e-5
"""An interval of ``T`` that is so narrow has one valley; the second is for a pair that is to be certain."""

_WIDER = 2.5
"""Intervals are by so much wider from one to the next, away from where the objective turns."""

_MOST_OPEN = 400
_BEYOND = 1e-3
_LEAST = 1e-9
_ROUNDED, _UNSURE = 1e-13, 4.0
_ROUNDS = 100
_FURTHEST = 1e60
_CELLS, _AT_ONCE = 1 << 17, 1 << 12


_Answered = tuple[FloatArray, FloatArray, FloatArray, Callable[[], FloatArray]]
"""Losses, errors, values, and everybody's loss in the first pair; in normal form."""


class CentralRule:
    """The purchase for an ``error_weight``, an ``error`` or an ``expense``, by one person's cost."""

    def __init__(
        self,
        costs: FloatArray,
        variance: FloatArray,
        caps: FloatArray,
        codes: IndexArray,
        sizes: FloatArray,
        *,
        error_weight: float | None = None,
        error: float | None = None,
        expense: float | None = None,
    ) -> None:
        there = costs[(costs < math.inf) & (costs > 0.0)]
        # normal form: costs, variances and what is wanted are near 1
        self._unit = float(variance.min())
        self._money = float(np.exp(np.median(np.log(there)))) if there.size else 1.0
        root = math.sqrt(self._unit)
        self._scale, self._value = root, self._money / root
        self._weight = None if error_weight is None else error_weight * self._unit * root / self._money
        self._error = None if error is None else error / self._unit
        self._expense = None if expense is None else expense / self._value
        with np.errstate(over="ignore"):
            self._people = People(costs / self._money, variance / self._unit, caps * root, codes, sizes)
        self._given = (variance / self._unit, caps * root, codes, sizes)
        self._path = Path()
        self._free: CentralRule | None = None
        self._start: Points | None = None

    @property
    def worked(self) -> float:
        """What was computed so far, in millionths of a second on an ordinary computer, about."""
        return self._path.worked + (0.0 if self._free is None else self._free.worked)

    @property
    def effort(self) -> float:
        """How much longer than usual an answer takes."""
        return 6.0

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The purchase if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j.

        The value is the objective of a price, or the expense of an error; of an expense there is none.
        """
        size = max(_CELLS // self._people.costs.size, 8) if self._people.one_by_one else _AT_ONCE
        found = Answers(*(np.zeros(rows.size) for _ in Answers.__slots__))
        for start in range(0, rows.size, size):
            part = slice(start, start + size)
            with np.errstate(all="ignore"):
                loss, mse, value, _ = self._answers(rows[part], costs[part] / self._money)
            found.loss[part], found.mse[part] = loss / self._scale, mse * self._unit
            found.value[part] = value * self._value
        return found

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Everybody's privacy loss, the error and the value if person ``row`` had that cost."""
        with np.errstate(all="ignore"):
            _, mse, value, losses = self._answers(np.array([row]), np.array([cost]) / self._money)
            return losses() / self._scale, float(mse[0]) * self._unit, float(value[0]) * self._value

    def _answers(self, rows: IndexArray, costs: FloatArray) -> _Answered:
        people, pairs = self._people, self._people.pairs(rows, costs)
        value = np.full(rows.size, math.inf)
        known, loss, mse = self._beside_caps(rows, costs)
        value[known] = math.nan
        there = np.flatnonzero((pairs.ends.lowest < math.inf).all(axis=1) & ~(known & (rows.size > 1)))
        if there.size == 0:
            return loss, mse, value, lambda: np.zeros(people.costs.size)
        some = pairs.take(there)
        found = self._solved(some)
        mine = np.arange(there.size), people.codes[rows[there]]
        own = np.maximum(found.level[mine] - (costs[there] - some.base[mine]), 0.0) / found.step
        own = np.minimum(own / people.variance[rows[there]], people.caps[rows[there]])
        reached = found.mse < math.inf
        loss[there] = np.where(reached & (costs[there] < math.inf), own, 0.0)
        mse[there], value[there] = found.mse, self._value_of(found)

        def everybody() -> FloatArray:
            base, changed = some.base[0, people.codes], people.costs.copy()
            changed[rows[0]] = costs[0]
            gap = np.where(changed < math.inf, np.maximum(found.level[0, people.codes] - (changed - base), 0.0), 0.0)
            return np.asarray(np.minimum(gap / people.variance / found.step[0], people.caps) * reached[0], dtype=float)

        return self._free_ones(rows, costs, pairs, (loss, mse, value, everybody))

    def _beside_caps(self, rows: IndexArray, costs: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray]:
        """All others at their caps and, for the rest of an expense, the person who is moved: where that is optimal.

        Their cost may be beyond all measure, and the level equal to it in all digits. They lose ``ε = rest/ψ``; then
        ``λ/σ = (2 + ΣVε²)/Σε`` and ``ψ/σ = λ/σ − Vε``. If all others want to be at their caps there, it is solved.
        """
        people, count = self._people, rows.size
        nobody = np.zeros(count, dtype=bool), np.zeros(count), np.full(count, math.inf)
        small = people.sizes.size == 1 and people.one_by_one
        if self._expense is None or not small or (people.caps[people.costs < math.inf] == math.inf).any():
            return nobody
        there = people.costs < math.inf
        own, caps, spread = np.where(there, people.costs, 0.0), np.where(there, people.caps, 0.0), people.variance
        spent, bought, squares = (one.sum() - one[rows] for one in (own * caps, caps, spread * caps**2))
        rest = self._expense - spent
        loss = rest / costs
        level = (2.0 + squares + spread[rows] * loss**2) / (bought + loss)
        rate = (level - spread[rows] * loss) / costs
        known = (rest > 1e-9 * self._expense) & (loss < people.caps[rows]) & (rate > 0.0) & (rate < math.inf)
        short = (level[:, None] - rate[:, None] * own < spread * caps * (1.0 + 1e-12)) & there
        short[np.arange(count), rows] = False
        known &= ~short.any(axis=1)
        return known, np.where(known, loss, 0.0), np.where(known, level / (bought + loss), math.inf)

    def _free_ones(self, rows: IndexArray, costs: FloatArray, pairs: Pairs, found: _Answered) -> _Answered:
        """Where those who ask for nothing are enough: without noise for a price, or for an error that is given."""
        people, (loss, mse, value, everybody) = self._people, found
        if self._weight is not None:
            least = (people.sizes**2 / pairs.ends.free).sum(axis=1)
            quiet = self._weight * least <= value
            mse, value = np.where(quiet, least, mse), np.where(quiet, self._weight * least, value)
            idle = (costs == 0.0) & (people.caps[rows] == math.inf)
            loss = np.where(quiet, np.where(idle, math.inf, 0.0), loss)
            return loss, mse, value, (lambda: np.where(people.idle, math.inf, 0.0)) if quiet[0] else everybody
        free = self._error is not None and (people.costs == 0.0).any() | (costs == 0.0).any()
        if not free:
            return found
        if self._free is None:
            costs_of_free = np.where(people.costs == 0.0, 1.0, math.inf)
            self._free = CentralRule(costs_of_free, *self._given, error=self._error)
        again = self._free._answers(rows, np.where(costs == 0.0, 1.0, math.inf))
        enough = again[1] < math.inf
        scale = self._free._scale
        loss, mse = np.where(enough, again[0] / scale, loss), np.where(enough, self._error or 0.0, mse)
        return loss, mse, np.where(enough, 0.0, value), (lambda: again[3]() / scale) if enough[0] else everybody

    def _value_of(self, found: Points) -> FloatArray:
        if self._expense is not None:
            return np.full(found.at.size, math.nan)
        value = found.expense if self._weight is None else self._weight * found.mse + found.expense
        return np.where(found.mse < math.inf, value, math.inf).astype(float)

    def _solved(self, pairs: Pairs) -> Points:
        """The purchase of each pair, from that of the population as it is."""
        size, real = pairs.base.shape[0], pairs.base.dtype
        if self._start is None:
            row = np.array([int(np.argmin(self._people.costs))])
            here, one = self._people.pairs(row, self._people.costs[row]), np.ones(1, dtype=real)
            self._start = self._found(here, self._path.points(here, one))
            self._start.level += here.base
        start = self._start
        if not (0.0 < start.at[0] < math.inf and 0.0 < start.step[0] < math.inf):
            return self._found(pairs, self._path.points(pairs, np.ones(size, dtype=real)))
        near = start.take(np.zeros(size, dtype=np.intp))
        near.level = np.maximum(near.level - pairs.base, pairs.lowest)
        return self._found(pairs, near)

    def _found(self, pairs: Pairs, near: Points) -> Points:
        return self._by_narrowing(pairs, near) if self._weight is None else self._by_exclusion(pairs, near)

    def _goal(self, here: Points, sums: Sums) -> Row:
        """The equation of the error, of the expense, or of the best ``T`` for a price."""
        step, at, nothing = here.step, here.at, np.zeros_like(here.level)
        if self._weight is not None:
            return Row(at**2 - 2.0 * self._weight * step, nothing, np.full_like(at, -2.0 * self._weight), 2.0 * at)
        if self._error is not None:
            capped = sums.capped.sum(axis=1)
            excess = (2.0 + capped) * step**2 + sums.squares.sum(axis=1) - self._error * at**2
            return Row(excess, 2.0 * sums.gap, 2.0 * (2.0 + capped) * step, -2.0 * self._error * at)
        paid = sums.paid.sum(axis=1)
        excess = sums.spent.sum(axis=1) + paid / step - (self._expense or 0.0)
        return Row(excess, sums.costs / step[:, None], -paid / step**2, 0.0 * at)

    def _sign(self, points: Points) -> Real:
        """Negative as long as ``T`` is too small; it rises with ``T`` for an error or an expense."""
        if self._weight is not None:
            return np.log(points.at**2 / (2.0 * self._weight * points.step))
        if self._error is not None:
            return np.log(self._error / points.mse)
        return np.log(points.expense / (self._expense or 0.0))

    # -- an error or an expense ----------------------------------------------------------------------------------------

    def _by_narrowing(self, pairs: Pairs, start: Points) -> Points:
        """From the purchase as it is, or with the level at a far dearer person's cost; else by an interval of ``T``."""
        found = start.take(np.arange(start.at.size))
        rest = np.flatnonzero(~self._path.settled(pairs, found, self._goal))
        if rest.size:
            some, again = pairs.take(rest), start.take(rest)
            mine = np.arange(rest.size), self._people.codes[some.rows]
            factor = np.where(
                some.costs < math.inf, some.costs / (again.level + some.base)[mine] * (1.0 + _BEYOND), 1.0
            )
            factor = np.maximum(factor, 1.0)[:, None]
            again.level = (again.level + some.base) * factor - some.base
            again.at, again.step = again.at * factor[:, 0], again.step * factor[:, 0]
            solved = self._path.settled(some, again, self._goal)
            found.put(rest[solved], again.take(np.flatnonzero(solved)))
            rest = rest[~solved]
        if rest.size:
            found.put(rest, self._narrowed(pairs.take(rest), start.take(rest)))
        return found

    def _narrowed(self, pairs: Pairs, start: Points) -> Points:
        points = self._path.points(pairs, start.at, start)
        short, every = self._sign(points), np.arange(start.at.size)
        low, high, below, above = points.take(every), points.take(every), short.copy(), short.copy()
        reach = np.clip(np.abs(short), 1e-9, 2.0)
        # further and further, until the sign changes
        for up, end, value, other, last in ((1.0, high, above, low, below), (-1.0, low, below, high, above)):
            go, far = np.flatnonzero(up * value < 0.0), reach.copy()
            bound = np.full_like(start.at, _FURTHEST**up)
            while go.size:
                ahead = end.at[go] * np.exp(up * far[go])
                ahead = np.minimum(ahead, bound[go]) if up > 0.0 else np.maximum(ahead, bound[go])
                other.put(go, end.take(go))
                last[go] = value[go]
                end.put(go, self._path.points(pairs.take(go), ahead, end.take(go)))
                value[go] = self._sign(end.take(go))
                far[go] *= 3.0
                go = go[(up * value[go] < 0.0) & (ahead != bound[go])]
        found = self._root(pairs, low, high, below, above)
        if self._error is not None:  # out of reach
            found.mse[(above < 0.0) & (found.mse > self._error * (1.0 + 1e-12))] = math.inf
        return found

    def _root(self, pairs: Pairs, low: Points, high: Points, below: Real, above: Real) -> Points:
        """Where the sign changes: by Newton's method if it stays in the interval, which false position narrows."""
        found = high.take(np.arange(high.at.size))
        exact = np.flatnonzero(below == 0.0)
        found.put(exact, low.take(exact))
        go, a, b = np.flatnonzero((below < 0.0) & (above > 0.0)), np.log(low.at), np.log(high.at)
        for round_ in range(_ROUNDS):
            if go.size == 0:
                break
            width = b[go] - a[go]
            cut = b[go] - above[go] * width / (above[go] - below[go])
            cut = np.where((cut > a[go]) & (cut < b[go]) & (round_ % 3 < 2), cut, 0.5 * (a[go] + b[go]))
            some, there = pairs.take(go), self._path.points(pairs.take(go), np.exp(cut), found.take(go))
            value, eps = self._sign(there), 4.0 * there.blur
            found.put(go, there)
            solved = self._path.settled(some, there, self._goal)
            solved &= (np.log(there.at) >= a[go] - eps) & (np.log(there.at) <= b[go] + eps)
            found.put(go[solved], there.take(np.flatnonzero(solved)))
            up = value >= 0.0
            below[go], above[go] = np.where(up, below[go], value), np.where(up, value, above[go])
            a[go], b[go] = np.where(up, a[go], cut), np.where(up, cut, b[go])
            go = go[~(solved | (b[go] - a[go] <= eps) | (np.abs(value) <= eps) | np.isnan(value))]
        return found

    # -- a price of the error ------------------------------------------------------------------------------------------

    def _by_exclusion(self, pairs: Pairs, start: Points) -> Points:
        """The best purchase of each pair: intervals of ``T`` are thrown away until the others are narrow."""
        count, close = start.at.size, _NARROW if start.at.size > 1 else _NARROWEST
        points, seen, low, high = self._ends(pairs, start)
        # finer and finer towards where the objective turns
        steps = close / 2.0 * _WIDER ** np.arange(math.ceil(math.log(40.0 / close) / math.log(_WIDER)))
        places = np.concatenate([[-math.inf], -steps[::-1], steps, [math.inf]])[:, None]
        places = np.unique(np.clip(np.log(points.at) + places, low, high), axis=0)
        every = np.arange(count)
        pair, left, right = self._parts(pairs, every, list(places), points, seen)
        kept: list[tuple[IndexArray, Points, Points]] = []
        for _ in range(_ROUNDS):
            keep = self._open(seen[pair], left, right)
            pair, left, right = pair[keep], left.take(keep), right.take(keep)
            narrow = np.log(right.at) - np.log(left.at) <= close
            kept.append((pair[narrow], left.take(narrow), right.take(narrow)))
            pair, left, right = pair[~narrow], left.take(~narrow), right.take(~narrow)
            if pair.size == 0:
                break
            if pair.size > _MOST_OPEN * (count + 1):
                raise WorkExceeded("the most that a verification may compute is exceeded.")
            a, b = np.log(left.at), np.log(right.at)
            cuts = [a + (b - a) * share for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
            pair, left, right = self._parts(pairs, pair, cuts, left, seen)
        pair = np.concatenate([one[0] for one in kept])
        left, right = Points.joined([one[1] for one in kept]), Points.joined([one[2] for one in kept])
        below, above = self._sign(left), self._sign(right)
        turns = (below <= 0.0) & (above >= 0.0)
        found = self._root(pairs.take(pair), left, right, below, above)
        # a turn for the better, the best of each pair; or what was seen where there is none
        order = np.lexsort((self._objective(found), ~turns, pair))
        first = order[np.flatnonzero(np.diff(pair[order], prepend=-1))]
        points.put(pair[first], found.take(first))
        return points

    def _objective(self, points: Points) -> Real:
        return np.asarray((self._weight or 0.0) * points.mse + points.expense)

    def _parts(
        self, pairs: Pairs, pair: IndexArray, places: list[Real], near: Points, seen: Real
    ) -> tuple[IndexArray, Points, Points]:
        """The intervals between places (logarithms of ``T``) that are apart, and the best of all that was seen."""
        size = pair.size
        whose = np.tile(pair, len(places))
        points = self._path.points(
            pairs.take(whose), np.exp(np.concatenate(places)), Points.joined([near] * len(places))
        )
        value = self._objective(points)
        np.minimum.at(seen, whose, np.where(np.isnan(value), math.inf, value))
        left, right = np.arange(points.at.size - size), np.arange(size, points.at.size)
        apart = points.at[left] < points.at[right]
        return whose[left[apart]], points.take(left[apart]), points.take(right[apart])

    def _ends(self, pairs: Pairs, start: Points) -> tuple[Points, Real, Real, Real]:
        """A purchase, its objective, and logarithms of the least and largest ``T`` of any that is better.

        The best has ``T² = 2Aσ``, so ``η = 2A/T`` is at most what all can give, and both ``2A/η²`` and ``η·Σ|ℓ|ψ`` of
        the cheapest are below the objective. Those who ask for nothing may fill all strata up to some ``T``, without
        noise.
        """
        weight, sizes, ends = self._weight or 0.0, pairs.people.sizes, pairs.ends
        points = self._path.points(pairs, start.at, start)
        turned = points.take(np.arange(start.at.size))
        better = np.flatnonzero(self._path.settled(pairs, turned, self._goal) & (turned.at > 0.0))
        better = better[self._objective(turned)[better] <= self._objective(points)[better]]
        points.put(better, turned.take(better))
        seen = self._objective(points)
        least = np.maximum((ends.lowest * sizes).sum(axis=1) / seen, (sizes / ends.most).max(axis=1))
        quiet = (ends.free * ends.paid / sizes).min(axis=1)
        high = np.sqrt(2.0 * weight * seen)
        low = np.maximum(np.maximum(2.0 * weight * least, quiet), _LEAST * high)
        return points, seen, np.minimum(np.log(low) + 1e-9 * (quiet > 0.0) - 1e-9, np.log(high)), np.log(high) + 1e-9

    def _open(self, seen: Real, left: Points, right: Points) -> BoolArray:
        """Which intervals may hold the best purchase."""
        weight = self._weight or 0.0
        more = np.maximum(left.mse - right.mse, 0.0)
        steep, flat = right.at**2 / (2.0 * left.step), left.at**2 / (2.0 * right.step)
        least = np.maximum(
            self._objective(left) - more * np.maximum(weight - flat, 0.0),
            self._objective(right) - more * np.maximum(steep - weight, 0.0),
        )
        unsure = _ROUNDED + _UNSURE * np.maximum(left.blur, right.blur)
        falls, rises = steep < weight * (1.0 - unsure), flat > weight * (1.0 + unsure)
        return np.asarray(~(falls | rises) & (least <= seen * (1.0 + unsure)))
