"""Sums over people who have caps, at a level and a rate, with one person's cost replaced: what verification adds up.

At the level ``τ`` and the rate ``ρ`` somebody loses ``clip(ρ·u (τ − ψ), 0, e)``: nothing from ``ψ = τ`` on, all she may
below ``τ − V·e/ρ``. Few people are added up one by one. Of many, those who share a variance and a cap are sorted by
cost, and sums up to any cost are kept in extended precision.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import FloatArray, IndexArray

Long = NDArray[np.longdouble]

_FEW = 40
_CELLS = 1 << 18
_AT_ONCE = 1 << 12
_PER_SUMS, _PER_PERSON, _AS_PEOPLE = 100.0, 0.12, 12.0
"""What sums take, in millionths of a second, about: each time, for every person, and as how many a kind counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Pairs of a person and a cost; costs are counted from the smallest."""

    rows: IndexArray
    into: Long
    """Where she is put; infinite if she is not there."""

    first: FloatArray
    """The smallest cost that is there; infinite if nobody is."""

    start: Long
    """Levels begin here: below, only people without a cap who ask for nothing are bought from, and without noise."""

    highest: Long
    """The largest finite cost that is there."""

    free: FloatArray
    """The precision of those who ask for nothing and have no cap."""

    def take(self, which: IndexArray) -> "Moved":
        """Some of the pairs."""
        return Moved(*(getattr(self, name)[which] for name in self.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Over those at their caps ``Σ e``, ``Σ V·e²``, ``Σ ψ·e``; over the others who sell ``Σ u(τ − ψ)``,
    ``Σ uψ(τ − ψ)``, and the derivatives of these in ``τ``."""

    capped: Long
    squares: Long
    spent: Long
    gain: Long
    work: Long
    density: Long
    cost_density: Long


class Crowd:
    """Everybody's costs, variances and caps."""

    def __init__(self, costs: FloatArray, variance: FloatArray, caps: FloatArray) -> None:
        finite = costs < math.inf
        self.base = float(costs[finite].min(initial=math.inf)) if finite.any() else 0.0
        self._costs, self._variance, self._caps = costs, variance, caps
        with np.errstate(invalid="ignore"):
            self._offset = costs - self.base
        self._order = np.argsort(self._offset, kind="stable")
        kinds = np.unique(np.stack([variance[finite], caps[finite]]), axis=1).T if finite.any() else np.zeros((0, 2))
        self._kinds: list[_Kind] = []
        self.worked = 0.0
        """What sums took so far, in millionths of a second on an ordinary computer, about."""

        self._direct = costs.size <= max(_FEW, 8 * len(kinds))
        if self._direct:
            cap, cost = np.where(caps < math.inf, caps, 0.0), np.where(finite, costs, 0.0)
            self._held_beyond = caps * variance
            self._at_cap = np.stack([cap, variance * cap * cap, cost * cap], axis=1)
            self._inner = np.stack([1.0 / variance, cost / variance], axis=1)
        if not self._direct:
            for spread, cap in kinds.tolist():
                some = finite & (variance == spread) & (caps == cap)
                self._kinds.append(_Kind(np.sort(self._offset[some]), spread, cap))

    @property
    def few(self) -> bool:
        """Whether people are added up one by one."""
        return self._direct

    @property
    def effort(self) -> float:
        """How much longer than usual sums take."""
        return max(self._costs.size / 12.0, 8.0) if self._direct else 8.0 + 2.0 * len(self._kinds)

    @property
    def digits(self) -> float:
        """How far from the root of an equation in these sums one can tell."""
        return 1e-14 if self._direct else 1e-18

    @property
    def at_once(self) -> int:
        """How many pairs are answered together."""
        return max(_CELLS // self._costs.size, 8) if self._direct else _AT_ONCE

    def moved(self, rows: IndexArray, costs: FloatArray) -> Moved:
        """Pairs of a person and a cost."""
        into = (costs - self.base).astype(np.longdouble)
        ranked = self._order[self._offset[self._order] < math.inf]
        first = _other(self._offset, ranked[:2], rows, math.inf)
        last = _other(self._offset, ranked[::-1][:2], rows, 0.0)
        first = np.minimum(first, into.astype(float))
        highest = np.where(into < math.inf, np.maximum(last, into.astype(float)), last)
        start, free = first.copy(), np.zeros(rows.size)
        if self.base == 0.0:
            silent = (self._costs == 0.0) & (self._caps == math.inf)
            own = np.where(silent[rows], 1.0 / self._variance[rows], 0.0)
            moved = (costs == 0.0) & (self._caps[rows] == math.inf)
            free = float((1.0 / self._variance[silent]).sum()) - own + np.where(moved, 1.0 / self._variance[rows], 0.0)
            free = np.where(free > 1e-12 * own, free, 0.0)
            # nobody with a cap asks for nothing: no noise up to the first cost above zero
            bound = (self._costs == 0.0) & (self._caps < math.inf)
            held = int(bound.sum()) - bound[rows] + ((costs == 0.0) & (self._caps[rows] < math.inf))
            positive = ranked[self._offset[ranked] > 0.0]
            above = np.minimum(
                _other(self._offset, positive[:2], rows, math.inf),
                np.where(into > 0.0, into.astype(float), math.inf),
            )
            start = np.where((free > 0.0) & (held == 0), above, start)
        return Moved(rows, into, first, start.astype(np.longdouble), highest.astype(np.longdouble), free)

    def sums(self, moved: Moved, level: Long, rate: Long) -> Sums:
        """The sums of each pair at its level (an offset) and rate."""
        each = self._costs.size if self._direct else _AS_PEOPLE * (1 + len(self._kinds))
        self.worked += _PER_SUMS + _PER_PERSON * level.size * each
        if self._direct:
            return self._one_by_one(moved, level, rate)
        # take her out, and put her back elsewhere
        spread = self._variance[moved.rows].astype(np.longdouble)
        cap = self._caps[moved.rows].astype(np.longdouble)
        own = self._offset[moved.rows].astype(np.longdouble)
        change = _one(self.base, np.stack([own, moved.into]), spread, cap, level, rate)
        total = [into - out for out, into in change]
        for kind in self._kinds:
            total = [sum_ + part for sum_, part in zip(total, kind.sums(self.base, level, rate), strict=True)]
        return Sums(*total)

    def _one_by_one(self, moved: Moved, level: Long, rate: Long) -> Sums:
        # everybody else, as products with what does not depend on the pair
        gap = np.maximum(level.astype(float)[:, None] - self._offset[None, :], 0.0)
        gap[np.arange(level.size), moved.rows] = 0.0
        held = (rate.astype(float)[:, None] * gap > self._held_beyond) & (gap > 0.0)
        at_cap = held.astype(float) @ self._at_cap
        gap[held] = 0.0
        inner, slopes = gap @ self._inner, (gap > 0.0).astype(float) @ self._inner
        # and her
        spread, cap = (part[moved.rows].astype(np.longdouble) for part in (self._variance, self._caps))
        own = _one(self.base, moved.into, spread, cap, level, rate)
        return Sums(*(part + mine for part, mine in zip((*at_cap.T, *inner.T, *slopes.T), own, strict=True)))


class _Kind:
    """People who share a variance and a cap, sorted by cost."""

    def __init__(self, offset: FloatArray, variance: float, cap: float) -> None:
        self._offset, self._variance, self._cap = offset, np.longdouble(variance), np.longdouble(cap)
        wide = offset.astype(np.longdouble)
        columns = (np.ones_like(wide), wide, wide * wide)
        self._sums = [np.concatenate([np.zeros(1, dtype=np.longdouble), column.cumsum()]) for column in columns]

    def sums(self, base: float, level: Long, rate: Long) -> tuple[Long, ...]:
        """The sums over these people."""
        with np.errstate(all="ignore"):
            edge = level - self._variance * self._cap / rate if self._cap < math.inf else np.full_like(level, -math.inf)
        inner = self._offset.searchsorted(level.astype(float), side="left")
        outer = np.minimum(self._offset.searchsorted(edge.astype(float), side="left"), inner)
        count, first, second = (column[inner] - column[outer] for column in self._sums)
        held, theirs = self._sums[0][outer], self._sums[1][outer]
        gain = (level * count - first) / self._variance
        work = base * gain + (level * first - second) / self._variance
        density, cost_density = count / self._variance, (base * count + first) / self._variance
        cap = self._cap if self._cap < math.inf else np.longdouble(0.0)
        squares, spent = held * self._variance * cap * cap, (base * held + theirs) * cap
        return held * cap, squares, spent, gain, work, density, cost_density


def _one(base: float, place: Long, spread: Long, cap: Long, level: Long, rate: Long) -> tuple[Long, ...]:
    """What each person adds to the sums."""
    gap = np.maximum(level - place, 0.0)
    gap = np.where(place < math.inf, gap, 0.0)
    held = (rate * gap > cap * spread) & (gap > 0.0)
    loss = np.where(held, cap, 0.0)
    gain = np.where(held, 0.0, gap) / spread
    cost = np.where(place < math.inf, base + place, 0.0)
    density = np.where(held | (gap == 0.0), 0.0, 1.0) / spread
    return loss, spread * loss * loss, cost * loss, gain, cost * gain, density, cost * density


def _other(values: FloatArray, best: IndexArray, rows: IndexArray, nobody: float) -> FloatArray:
    """The value of the first of ``best`` that is not the person herself."""
    known = np.append(values[best], [nobody, nobody])
    return np.where(rows == best[0], known[1], known[0]) if best.size else np.full(rows.size, nobody)
