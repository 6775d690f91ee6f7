"""The central optimum once more, for verification: by exclusion, sharing no step with the solver.

In normal form (costs divided by ``A·v^{3/2}``, losses times ``v^{1/2}``, ``u = v/V``) the weights at a level ``τ`` are
``u_i (τ − ψ_i)⁺/G`` with ``G = Σ u_i (τ − ψ_i)⁺``; they cost ``a = Σ ψ_i w_i`` and have the squares ``g = Σ w_i²/u_i``.
``G`` and ``a`` rise with ``τ``, ``g`` falls, and ``h = g + κ·a^{2/3}`` falls exactly where ``κ·G < 3·a^{1/3}``
(docs/explanation/algorithms.md). So for an interval of levels the values at its ends may say that ``h`` falls
throughout, rises throughout, or exceeds the best value seen so far throughout. Such an interval is thrown away; others
are cut, until what is left are points: every local minimum that can be the global one. No equation is solved; the
solver, in contrast, solves one on every piece between two costs.

One person's cost is replaced by taking her out of the sums and putting her back elsewhere, for many (person, cost)
pairs at a time. Of the people without variance only the cheapest matters: levels end at her cost ``ψ_0``, and there one
more curve begins, on which she takes the rest of the weight: ``w_i = λ·u_i (ψ_0 − ψ_i)⁺``, ``a = ψ_0 − λQ``,
``g = λ²Q``.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

Long = NDArray[np.longdouble]

_KAPPA = 1.5 * 4.0 ** (1.0 / 3.0)
_ROUNDS = 120
_NARROW = 0.02
_POINT = 1e-15
_BLUR = 1e-15
_AS_GOOD = 1.0 + 1e-13
_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The optimum for each of many (person, cost) pairs; range of width 1."""

    loss: FloatArray
    """The person's privacy loss."""

    mse: FloatArray
    """The error of the estimate; infinite if nobody is there."""

    value: FloatArray
    """The objective."""


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The best point of each pair, in normal form: ``w_i = u_i (level − ψ_i)⁺/gain``, the rest on the anchor."""

    value: FloatArray
    level: FloatArray
    gain: FloatArray
    total: FloatArray
    """``S``; infinite if no noise is added."""

    mse: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Who is taken out of the sums, and where she is put back; offsets from the smallest cost."""

    first: BoolArray
    out: FloatArray
    out_mass: FloatArray
    into: FloatArray
    into_mass: FloatArray

    def take(self, which: IndexArray) -> "_Pairs":
        return _Pairs(*(getattr(self, name)[which] for name in self.__slots__))


def normal_scale(error_weight: float, variance: float) -> float:
    """``A·v^{3/2}``, what costs are divided by; in two steps where the power alone is no ordinary number."""
    if 1e-205 <= variance <= 1e205:
        return float(error_weight * variance**1.5)
    return error_weight * variance * math.sqrt(variance)


class CentralRule:
    """The central optimum as a function of one person's cost, for costs no smaller than her own."""

    def __init__(
        self, costs: FloatArray, variance: float | FloatArray, error_weight: float, order: IndexArray | None = None
    ) -> None:
        n = costs.size
        # normal form: the smallest variance of those who can be bought from is the unit
        spread = np.array(np.broadcast_to(np.asarray(variance, dtype=float), (n,)))
        ordinary = (costs < math.inf) & (spread > 0.0)
        self._unit = float(spread[ordinary].min()) if ordinary.any() else 1.0
        self._error_weight = error_weight
        self._scale = normal_scale(error_weight, self._unit)
        self._order = np.arange(n) if order is None else order
        with np.errstate(over="ignore", divide="ignore"):
            self._cost = costs / self._scale
            self._each = spread / self._unit
            self._mass = np.where(spread > 0.0, self._unit / spread, 0.0)
            self._highest = _highest_level(self._cost, self._each)
        finite = np.flatnonzero(costs < math.inf)
        self._only = int(finite[0]) if finite.size == 1 else -1
        # people above every level that matters are not in the sums
        rows = np.flatnonzero(ordinary & (self._cost <= self._highest))
        rows = rows[np.argsort(self._cost[rows], kind="stable")]
        self._base = float(self._cost[rows[0]]) if rows.size else 0.0
        self._kept = np.zeros(n, dtype=bool)
        self._kept[rows] = True
        self._first = int(rows[0]) if rows.size else -1
        self._offset = self._cost[rows] - self._base
        self._sums = _prefix_sums(self._offset, self._mass[rows])
        # people without variance: only the cheapest two, as one may move
        certain = np.flatnonzero((costs < math.inf) & (spread == 0.0))
        self._anchors = certain[np.lexsort((self._order[certain], self._cost[certain]))][:2]

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        parts = [slice(start, start + _AT_ONCE) for start in range(0, rows.size, _AT_ONCE)]
        with np.errstate(all="ignore"):
            found = [self._answers(rows[part], costs[part] / self._scale) for part in parts]
        loss, mse, value = (
            np.concatenate([getattr(some, name) for some in found] or [np.empty(0)]) for name in Answers.__slots__
        )
        return Answers(loss, mse, value)

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Everybody's privacy loss, the error and the objective if person ``row`` had that cost."""
        changed = self._cost.copy()
        changed[row] = cost / self._scale
        with np.errstate(all="ignore"):
            found = self._solve(np.array([row]), changed[[row]])
            level, gain, total = float(found.level[0]), float(found.gain[0]), float(found.total[0])
            if gain > 0.0:
                weights = np.where(changed < level, self._mass * (level - changed), 0.0) / gain
            else:
                # no noise: everything on those whose privacy costs nothing
                weights = np.where((changed == 0.0) & (self._each > 0.0), 1.0, 0.0)
            anchor, price = self._anchor(row, float(changed[row]))
            if anchor >= 0 and price == level:
                weights[anchor] = max(1.0 - weights.sum(), 0.0)
            losses = np.where(weights > 0.0, weights * total, 0.0) / math.sqrt(self._unit)
        return (
            losses,
            float(found.mse[0]) * self._unit,
            float(found.value[0]) * self._error_weight * self._unit,
        )

    # -- one answer per pair -------------------------------------------------------------------------------------------

    def _answers(self, rows: IndexArray, moved: FloatArray) -> Answers:
        if (rows == self._only).all():
            loss, mse, value = _alone(moved, self._each[rows])
            scale = self._error_weight * self._unit
            return Answers(loss / math.sqrt(self._unit), mse * self._unit, value * scale)
        found = self._solve(rows, moved)
        mass = self._mass[rows]
        weight = np.where(moved < found.level, mass * (found.level - moved), 0.0) / found.gain
        silent = found.gain == 0.0
        weight = np.where(silent, np.where((moved == 0.0) & (mass > 0.0), 1.0, 0.0), weight)
        for j in np.flatnonzero(self._each[rows] == 0.0).tolist():
            anchor, price = self._anchor(int(rows[j]), float(moved[j]))
            if anchor == rows[j] and price == found.level[j]:
                weight[j] = self._rest(int(rows[j]), float(moved[j]), float(found.gain[j]))
        loss = np.where(weight > 0.0, weight * found.total, 0.0)
        return Answers(
            loss / math.sqrt(self._unit), found.mse * self._unit, found.value * (self._error_weight * self._unit)
        )

    def _solve(self, rows: IndexArray, moved: FloatArray) -> _Found:
        """The best of the ordinary levels, no noise at all, and the anchor's curve."""
        kept = self._kept[rows]
        mass = self._mass[rows]
        pairs = _Pairs(
            first=rows == self._first,
            out=np.where(kept, self._cost[rows] - self._base, 0.0),
            out_mass=np.where(kept, mass, 0.0),
            into=moved - self._base,
            into_mass=np.where(moved < math.inf, mass, 0.0),
        )
        price = np.array([self._anchor(row, x)[1] for row, x in zip(rows.tolist(), moved.tolist(), strict=True)])
        # levels end at the least of: anybody's bound, the anchor's cost, the moved person's bound
        alone = _level_of_one(moved, self._each[rows])
        limit = np.minimum(np.where(rows == self._only, math.inf, self._highest), price)
        limit = np.minimum(limit, np.where(mass > 0.0, alone, math.inf)) - self._base
        found = self._best_levels(pairs, limit)
        return self._or_anchored(self._or_silent(found, pairs, moved), pairs, price)

    def _best_levels(self, pairs: _Pairs, limit: FloatArray) -> _Found:
        """The best level of each pair: intervals are cut and thrown away by three tests until points are left."""
        # from the first cost that is there up to the limit, one interval per pair
        size = limit.size
        second = float(self._offset[1]) if self._offset.size > 1 else math.inf
        first = np.where(pairs.first, second, 0.0 if self._offset.size else math.inf)
        start = np.minimum(first, np.where(pairs.into_mass > 0.0, pairs.into, math.inf))
        pair = np.flatnonzero(start < limit)
        low, high = start[pair], limit[pair]
        seen, best, level = np.full(size, math.inf), np.full(size, math.inf), np.zeros(size)
        # at the first cost: G = 0, a is that cost, and g is not needed
        at_low = np.zeros((3, pair.size), dtype=np.longdouble)
        at_low[1] = self._base + low
        at_high = self._curve(pairs.take(pair), high)
        for _ in range(_ROUNDS):
            # cut each interval in four
            inner = low[:, None] + (high - low)[:, None] * _cuts(at_low, at_high)
            inside = self._curve(pairs.take(np.repeat(pair, 3)), inner.ravel()).reshape(3, pair.size, 3)
            cuts = np.concatenate([low[:, None], inner, high[:, None]], axis=1)
            curve = np.concatenate([at_low[:, :, None], inside, at_high[:, :, None]], axis=2)
            gain, squares, root = curve[0], curve[2], np.cbrt(curve[1])
            # every value is attained: the best of each pair so far
            np.minimum.at(seen, pair, (squares + _KAPPA * root * root)[:, 1:].min(axis=1).astype(np.float64))
            falls = _KAPPA * gain[:, 1:] < 3.0 * root[:, :-1] * (1.0 - _BLUR)  # test 1: h falls throughout
            rises = _KAPPA * gain[:, :-1] > 3.0 * root[:, 1:] * (1.0 + _BLUR)  # test 2: h rises throughout
            # test 3: worse than what was seen, throughout
            worse = squares[:, 1:] + _KAPPA * root[:, :-1] ** 2 > seen[pair, None] * _AS_GOOD
            sense = np.isfinite(squares[:, 1:] + root[:, 1:])  # beyond the range of numbers nothing is best
            which, piece = np.nonzero(sense & ~(falls | rises | worse))
            pair, low, high = pair[which], cuts[which, piece], cuts[which, piece + 1]
            at_low, at_high = curve[:, which, piece], curve[:, which, piece + 1]
            # what is left and as narrow as numbers allow is a minimum; the best of each pair counts
            point = high - low <= _POINT * (self._base + high)
            value = (at_high[2] + _KAPPA * np.cbrt(at_high[1]) ** 2).astype(np.float64)
            for j in np.flatnonzero(point).tolist():
                if value[j] < best[pair[j]]:
                    best[pair[j]], level[pair[j]] = value[j], 0.5 * (low[j] + high[j])
            go = np.flatnonzero(~point)
            if go.size == 0:
                break
            pair, low, high, at_low, at_high = pair[go], low[go], high[go], at_low[:, go], at_high[:, go]
        gain, cost, squares = self._curve(pairs, level)  # the figures at the best level
        root = np.cbrt(cost)
        there = best < math.inf
        mse = np.where(there, squares + (_KAPPA / 3.0) * root * root, math.inf).astype(np.float64)
        total = np.where(there, np.cbrt(4.0 / cost), 0.0).astype(np.float64)
        level = np.where(there, level + self._base, 0.0)
        return _Found(best, level, np.where(there, gain, 1.0).astype(np.float64), total, mse)

    def _curve(self, pairs: _Pairs, level: FloatArray) -> Long:
        """``G``, ``a`` and ``g`` of each pair at a level (an offset)."""
        index = self._offset.searchsorted(level, side="left")
        t = level.astype(np.longdouble)
        mass, first, second = (column[index] for column in self._sums)
        # take her out at her own cost, put her back at the moved one
        for sign, who, at in ((-1.0, pairs.out_mass, pairs.out), (1.0, pairs.into_mass, pairs.into)):
            here = at < level
            part = np.where(here, sign * who, 0.0).astype(np.longdouble)
            place = np.where(here, at, 0.0).astype(np.longdouble)
            mass, first, second = mass + part, first + part * place, second + part * place * place
        gain = t * mass - first
        cost = self._base + (t * first - second) / gain
        return np.stack([gain, cost, (t * (t * mass - 2.0 * first) + second) / (gain * gain)])

    def _or_silent(self, found: _Found, pairs: _Pairs, moved: FloatArray) -> _Found:
        """No noise, everything on people whose privacy costs nothing: ``h = 1/U`` over them."""
        free = 0.0
        if self._base == 0.0:
            free = float(self._sums[0][self._offset.searchsorted(0.0, side="right")])
        mass = free - np.where(pairs.out == 0.0, pairs.out_mass, 0.0) + np.where(moved == 0.0, pairs.into_mass, 0.0)
        value = np.where(mass > 0.0, 1.0 / mass, math.inf)
        silent = value <= found.value
        silent &= value < math.inf
        return _Found(
            np.where(silent, value, found.value),
            np.where(silent, 0.0, found.level),
            np.where(silent, 0.0, found.gain),
            np.where(silent, math.inf, found.total),
            np.where(silent, value, found.mse),
        )

    # -- people without variance ---------------------------------------------------------------------------------------

    def _anchor(self, row: int, moved: float) -> tuple[int, float]:
        """The cheapest person without variance, the earlier of equals, and her cost, if ``row`` is at ``moved``."""
        others = [other for other in self._anchors.tolist() if other != row]
        best = (float(self._cost[others[0]]), int(self._order[others[0]]), others[0]) if others else (math.inf, 0, -1)
        if self._each[row] == 0.0 and moved < math.inf:
            best = min(best, (moved, int(self._order[row]), row))
        return best[2], best[0]

    def _rest(self, row: int, moved: float, gain: float) -> float:
        """The anchor's weight: what the others leave her. She is not among the sums."""
        index = int(self._offset.searchsorted(moved - self._base, side="left"))
        taken = (moved - self._base) * self._sums[0][index] - self._sums[1][index]
        return max(1.0 - float(taken) / gain, 0.0) if gain < math.inf else 1.0

    def _or_anchored(self, found: _Found, pairs: _Pairs, price: FloatArray) -> _Found:
        """The anchor's curve: the larger root of ``b⁴ − ψ_0·b + κQ/3``, by bisection on ``b ≥ (ψ_0/4)^{1/3}``."""
        best = _Found(*(getattr(found, name).copy() for name in _Found.__slots__))
        for j in np.flatnonzero(price < math.inf).tolist():
            one, end = pairs.take(np.array([j])), price[j] - self._base
            gain, _, squares = (float(x[0]) for x in self._curve(one, np.array([end])))
            below, cost = (squares * gain * gain, float(price[j])) if gain > 0.0 else (0.0, float(price[j]))
            root = _larger_root(cost, _KAPPA * below / 3.0)
            # no root, or outside the curve: the others' weights would exceed one
            if root is None or (below > 0.0 and 3.0 * root < _KAPPA * gain):
                continue
            share = _KAPPA / (3.0 * root) if root > 0.0 else 0.0
            value = share * share * below + _KAPPA * root * root
            if value < best.value[j]:
                best.value[j], best.level[j] = value, price[j]
                best.gain[j] = 1.0 / share if share > 0.0 else math.inf
                best.total[j] = 4.0 ** (1.0 / 3.0) / root if root > 0.0 else math.inf
                best.mse[j] = value - (2.0 * _KAPPA / 3.0) * root * root
        return best


def _cuts(at_low: Long, at_high: Long) -> FloatArray:
    """Where to cut each interval, as three shares of it: in half, and closely around where the sign seems to change.

    Good cuts save time; what is kept and what is thrown away does not depend on them.
    """
    below, above = (_KAPPA * ends[0] - 3.0 * np.cbrt(ends[1]) for ends in (at_low, at_high))
    guess = np.where((below < 0.0) & (above > 0.0), below / (below - above), 0.5).astype(np.float64)
    shares = np.stack([guess - _NARROW, np.full(guess.size, 0.5), guess + _NARROW], axis=1)
    return np.sort(np.clip(shares, 0.25 * _NARROW, 1.0 - 0.25 * _NARROW), axis=1)


def _prefix_sums(offset: FloatArray, mass: FloatArray) -> tuple[Long, Long, Long]:
    """Sums of ``u``, ``uψ`` and ``uψ²`` over the cheapest 0, 1, 2, … people, in the longest float there is."""
    place, weight = offset.astype(np.longdouble), mass.astype(np.longdouble)
    zero = np.zeros(1, dtype=np.longdouble)
    columns = (weight, weight * place, weight * place * place)
    sums = [np.concatenate([zero, np.cumsum(column)]) for column in columns]
    return sums[0], sums[1], sums[2]


def _highest_level(cost: FloatArray, each: FloatArray) -> float:
    """No optimal level is above this, whoever moves.

    ``u_i (τ − ψ_i) ≤ G = 3b/κ`` for everybody present, and ``κb²`` is at most what anybody present costs alone. The
    second smallest of both bounds is good whoever is taken out. (If only one person is there, nobody else matters.)
    """
    which = min(int(np.count_nonzero(cost < math.inf)), 2) - 1
    alone = np.partition(each + _KAPPA * np.cbrt(cost) ** 2, which)[which]
    level = cost + (3.0 / _KAPPA) * math.sqrt(alone / _KAPPA) * each
    return float(np.partition(level, which)[which]) * (1.0 + 1e-12)


def _level_of_one(cost: FloatArray, each: FloatArray) -> FloatArray:
    """A level that is never exceeded while the moved person is there, from her alone."""
    root = np.sqrt((each + _KAPPA * np.cbrt(cost) ** 2) / _KAPPA)
    level: FloatArray = (cost + (3.0 / _KAPPA) * root * each) * (1.0 + 1e-12)
    return np.where(cost < math.inf, level, math.inf)


def _alone(cost: FloatArray, each: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Loss, error and objective if nobody else is there: no weight to be found, however dear she is."""
    noise = (_KAPPA / 3.0) * np.cbrt(cost) ** 2
    there = cost < math.inf
    return np.cbrt(4.0 / cost), np.where(there, each + noise, math.inf), np.where(there, each + 3.0 * noise, math.inf)


def _larger_root(cost: float, constant: float) -> float | None:
    """The larger root of ``b⁴ − cost·b + constant``; None if there is none."""
    low, high = math.cbrt(cost / 4.0), math.cbrt(cost)
    # positive even where it is least
    if low * (low**3 - cost) + constant > 0.0:
        return None
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if middle * (middle**3 - cost) + constant > 0.0:
            high = middle
        else:
            low = middle
    return high
