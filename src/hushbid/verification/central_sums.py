"""Sums over a central market with one person's cost replaced, for many (person, cost) pairs at a time.

At the level ``λ_g`` of their stratum and the step ``σ`` people have ``y = clip(u·(λ_g − ψ), 0, σ·e)``, ``u = 1/V``. If
all differ they are added up one by one. Of many, those who share stratum, variance and cap are sorted by cost, and sums
up to any cost are kept in extended precision. Levels are counted from a cost in each stratum, so that nothing cancels.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import FloatArray, IndexArray

Real = NDArray[Any]
"""Of doubles, or in extended precision."""

_OF_A_KIND = 12
"""With fewer people of a kind than this, on average, they are added up one by one."""

_NEVER = 1e300
"""In the place of an infinite cost, in normal form."""

_PER_PERSON, _PER_KIND = 0.012, 0.3
"""What sums of a pair take, in millionths of a second, about: for every person, and for every kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Of each pair and stratum: over those at their caps, then over those inside."""

    cap: Real
    """``Σ e``."""

    gap: Real
    """``Σ u(λ − ψ)``."""

    slope: Real
    """``Σ u``."""

    paid: Real
    """``Σ ψu(λ − ψ)``."""

    squares: Real
    """``Σ u(λ − ψ)²``."""

    costs: Real
    """``Σ uψ``."""

    spent: Real
    """``Σ ψe``."""

    capped: Real
    """``Σ Ve²``."""

    slack: Real
    """``Σ e(λ − σVe)``."""


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Of each pair and stratum, what bounds its levels."""

    lowest: FloatArray
    """The least cost; infinite if nobody is there."""

    paid: FloatArray
    """The least cost but of those without a cap who ask for nothing."""

    most: FloatArray
    """``Σ e``."""

    free: FloatArray
    """``Σ u`` over those without a cap who ask for nothing."""

    def take(self, which: IndexArray) -> "Ends":
        """Some of the pairs."""
        return Ends(*(getattr(self, field.name)[which] for field in fields(self)))


class People:
    """Everybody's cost, variance, cap and stratum, in normal form, and ``|ℓ_g|``."""

    tables: "_Tables"
    """If people are added up one by one."""

    kinds: "_Kinds"
    """If not."""

    def __init__(
        self, costs: FloatArray, variance: FloatArray, caps: FloatArray, codes: IndexArray, sizes: FloatArray
    ) -> None:
        self.costs, self.variance, self.caps, self.codes, self.sizes = costs, variance, caps, codes, sizes
        self.idle = (costs == 0.0) & (caps == math.inf)
        self._sums = {
            "most": self._added(np.where((costs < math.inf) & (caps < math.inf), caps, 0.0)),
            "endless": self._added(((costs < math.inf) & (caps == math.inf)).astype(float)),
            "free": self._added(np.where(self.idle, 1.0 / variance, 0.0)),
        }
        self._lowest, self._paid = (self._two_least(values) for values in (costs, np.where(self.idle, math.inf, costs)))
        kinds = _kinds(np.stack([codes.astype(float), variance, caps])[:, costs < math.inf])
        self.one_by_one = costs.size <= _OF_A_KIND * len(kinds)
        if self.one_by_one:
            self.tables = _Tables(self)
        else:
            self.kinds = _Kinds(self, kinds)

    def _added(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.codes, weights=values, minlength=self.sizes.size), dtype=float)

    def pairs(self, rows: IndexArray, costs: FloatArray) -> "OneByOne | ByKind":
        """Person ``rows[j]`` at cost ``costs[j]``, for every j."""
        return (OneByOne if self.one_by_one else ByKind).of(self, rows, costs)

    def _two_least(self, values: FloatArray) -> tuple[IndexArray, FloatArray]:
        """Return who has the least value of each stratum, and the two least; infinite where there are fewer."""
        who, two = np.full(self.sizes.size, -1), np.full((self.sizes.size, 2), math.inf)
        for stratum in range(self.sizes.size):
            some = np.flatnonzero(self.codes == stratum)
            few = min(2, some.size)
            first = some[np.argpartition(values[some], few - 1)[:few]] if few else some
            first = first[np.argsort(values[first], kind="stable")]
            two[stratum, :few], who[stratum] = values[first], first[0] if few else -1
        return who, two

    def least(self, known: tuple[IndexArray, FloatArray], rows: IndexArray, moved: FloatArray) -> FloatArray:
        """Return the least value of each stratum if those of ``rows`` are others."""
        who, two = known
        found = np.where(rows[:, None] == who, two[:, 1], two[:, 0])
        mine = np.arange(rows.size), self.codes[rows]
        found[mine] = np.minimum(found[mine], moved)
        return found

    def ends(self, rows: IndexArray, costs: FloatArray) -> Ends:
        """What bounds the levels."""
        idle, caps, mass = (costs == 0.0) & (self.caps[rows] == math.inf), self.caps[rows], 1.0 / self.variance[rows]
        gone, back, bound = self.costs[rows] < math.inf, costs < math.inf, caps < math.inf
        changes = {
            "most": np.where(bound, caps, 0.0) * (back.astype(float) - gone),
            "endless": np.where(bound, 0.0, back.astype(float) - gone),
            "free": mass * (idle.astype(float) - self.idle[rows]),
        }
        found = {}
        for name, change in changes.items():
            found[name] = np.tile(self._sums[name], (rows.size, 1))
            found[name][np.arange(rows.size), self.codes[rows]] += change
        return Ends(
            lowest=self.least(self._lowest, rows, costs),
            paid=self.least(self._paid, rows, np.where(idle, math.inf, costs)),
            most=np.where(found["endless"] > 0.5, math.inf, found["most"]),
            free=np.where(found["free"] > 1e-9 * self._sums["free"], found["free"], 0.0),
        )


def _kinds(columns: FloatArray) -> list[list[float]]:
    """Return the columns that differ; all alike is the usual case, and need not be sorted."""
    if columns.size and (columns == columns[:, :1]).all():
        return [columns[:, 0].tolist()]
    kinds: list[list[float]] = np.unique(columns, axis=1).T.tolist()
    return kinds


class _Tables:
    """What everybody adds to her stratum, a row each."""

    def __init__(self, people: People) -> None:
        strata = (people.codes[:, None] == np.arange(people.sizes.size)[None, :]).astype(float)
        caps = np.where(people.caps < math.inf, people.caps, 0.0)
        self.mass, self.caps = strata / people.variance[:, None], strata * caps[:, None]
        self.squares = strata * (people.variance * caps**2)[:, None]
        self.reach = people.variance * people.caps
        self.bound = np.where(people.caps < math.inf, self.reach, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class OneByOne:
    """Pairs whose people are added up one by one, as products of matrices; levels are counted from each least cost."""

    people: People
    ends: Ends
    base: FloatArray
    rows: IndexArray
    costs: FloatArray
    offset: FloatArray

    @classmethod
    def of(cls, people: People, rows: IndexArray, costs: FloatArray) -> "OneByOne":
        """Person ``rows[j]`` at cost ``costs[j]``, for every j."""
        ends = people.ends(rows, costs)
        base = np.where(ends.lowest < math.inf, ends.lowest, 0.0)
        everybody = np.tile(people.costs, (rows.size, 1))
        everybody[np.arange(rows.size), rows] = costs
        offset = np.where(everybody < math.inf, everybody - base[:, people.codes], _NEVER)
        return cls(people, ends, base, rows, costs, offset)

    @property
    def lowest(self) -> FloatArray:
        """The least cost, as levels are counted."""
        return np.where(self.ends.lowest < math.inf, 0.0, math.inf)

    @property
    def work(self) -> float:
        """What one evaluation of sums takes for all pairs, in millionths of a second, about."""
        return _PER_PERSON * self.offset.size

    def take(self, which: IndexArray) -> "OneByOne":
        """Some of the pairs."""
        parts = {name: getattr(self, name)[which] for name in ("base", "rows", "costs", "offset")}
        return replace(self, ends=self.ends.take(which), **parts)

    def fill(self, level: Real, step: Real) -> tuple[Real, Real, Real]:
        """Return the first three sums."""
        tables = self.people.tables
        gap = level.astype(float)[:, self.people.codes] - self.offset
        held = gap >= step.astype(float)[:, None] * tables.reach
        inside = (gap >= 0.0) & ~held
        return held.astype(float) @ tables.caps, (inside * gap) @ tables.mass, inside.astype(float) @ tables.mass

    def sums(self, level: Real, step: Real) -> Sums:
        """Return all sums."""
        tables, base, near = self.people.tables, self.base, np.where(self.offset < _NEVER, self.offset, 0.0)
        gap = level.astype(float)[:, self.people.codes] - self.offset
        reach = step.astype(float)[:, None]
        held = gap >= reach * tables.reach
        inside, held = ((gap >= 0.0) & ~held).astype(float), held.astype(float)
        above = inside * gap
        cap, total, slope = held @ tables.caps, above @ tables.mass, inside @ tables.mass
        return Sums(
            cap,
            total,
            slope,
            paid=base * total + (above * near) @ tables.mass,
            squares=(above * gap) @ tables.mass,
            costs=base * slope + (inside * near) @ tables.mass,
            spent=base * cap + (held * near) @ tables.caps,
            capped=held @ tables.squares,
            slack=base * cap + (held * (gap - reach * tables.bound + near)) @ tables.caps,
        )


class _Kind:
    """People who share stratum, variance and cap, by cost counted from their stratum's."""

    def __init__(self, base: np.longdouble, costs: FloatArray, variance: float, cap: float) -> None:
        offset, zero = np.sort(costs).astype(np.longdouble) - base, np.zeros(1, dtype=np.longdouble)
        self._base, self._offset, self._spread, self._cap = base, offset.astype(float), np.longdouble(variance), cap
        self._first, self._second = (np.concatenate([zero, part.cumsum()]) for part in (offset, offset * offset))

    def sums(self, level: Real, step: Real) -> list[Real]:
        count = self._offset.searchsorted(level.astype(float), side="right")
        first, second, held, cap = self._first[count], self._second[count], np.zeros_like(count), np.longdouble(0)
        least = spent = np.zeros_like(level)
        if self._cap < math.inf:
            cap = np.longdouble(self._cap)
            edge = level - step * self._spread * cap
            held = np.minimum(self._offset.searchsorted(edge.astype(float), side="right"), count)
            first, second = first - self._first[held], second - self._second[held]
            spent, least = self._base * held + self._first[held], held * (self._base + edge)
        inside, loss = count - held, held * cap
        gap, slope = (level * inside - first) / self._spread, inside / self._spread
        near = (level * first - second) / self._spread
        squares, costs = level * gap - near, self._base * slope + first / self._spread
        paid = self._base * gap + near
        return [loss, gap, slope, paid, squares, costs, cap * spent, self._spread * cap * loss, cap * least]


class _Kinds:
    """The kinds of people that there are."""

    def __init__(self, people: People, kinds: list[list[float]]) -> None:
        self.base = np.zeros(people.sizes.size, dtype=np.longdouble)
        self.each: list[tuple[int, _Kind]] = []
        for code, variance, cap in kinds:
            mine = (people.codes == code) & (people.costs < math.inf)
            some = mine & (people.variance == variance) & (people.caps == cap)
            self.base[int(code)] = people.costs[mine].min()
            self.each.append((int(code), _Kind(self.base[int(code)], people.costs[some], variance, cap)))


@dataclass(frozen=True, slots=True, eq=False)
class ByKind:
    """Pairs in a market of few kinds of people: levels are counted from the least cost of each stratum as it is."""

    people: People
    ends: Ends
    base: Real
    rows: IndexArray
    costs: FloatArray

    @classmethod
    def of(cls, people: People, rows: IndexArray, costs: FloatArray) -> "ByKind":
        """Person ``rows[j]`` at cost ``costs[j]``, for every j."""
        return cls(people, people.ends(rows, costs), np.tile(people.kinds.base, (rows.size, 1)), rows, costs)

    @property
    def lowest(self) -> Real:
        """The least cost, as levels are counted."""
        return self.ends.lowest - self.base

    @property
    def work(self) -> float:
        """What one evaluation of sums takes for all pairs, in millionths of a second, about."""
        return _PER_KIND * float(self.rows.size * (2 + len(self.people.kinds.each)))

    def take(self, which: IndexArray) -> "ByKind":
        """Some of the pairs."""
        parts = {name: getattr(self, name)[which] for name in ("base", "rows", "costs")}
        return replace(self, ends=self.ends.take(which), **parts)

    def fill(self, level: Real, step: Real) -> tuple[Real, Real, Real]:
        """Return the first three sums."""
        found = self.sums(level, step)
        return found.cap, found.gap, found.slope

    def sums(self, level: Real, step: Real) -> Sums:
        """Return all sums: those of all kinds, less her as she is, and her as moved."""
        total = np.zeros((9, *level.shape), dtype=np.longdouble)
        for code, kind in self.people.kinds.each:
            total[:, :, code] += kind.sums(level[:, code], step)
        mine = np.arange(self.rows.size), self.people.codes[self.rows]
        for sign, costs in ((-1, self.people.costs[self.rows]), (1, self.costs)):
            total[:, *mine] += sign * self._one(costs, level[mine], step)
        return Sums(*np.maximum(total, 0))  # what is left of somebody taken out is rounding

    def _one(self, costs: FloatArray, level: Real, step: Real) -> Real:
        """What the person herself adds at these costs."""
        spread, cap = self.people.variance[self.rows].astype(np.longdouble), self.people.caps[self.rows]
        base, there = self.base[np.arange(self.rows.size), self.people.codes[self.rows]], costs < math.inf
        near = np.where(there, costs, 0.0) - base
        gap, reach = level - near, step * spread * cap
        held = there & (gap >= reach)
        inside = there & (gap >= 0) & ~held
        loss, mass, above = np.where(held, cap, 0), inside / spread, np.where(inside, gap, 0)
        columns = (loss, mass * above, mass, costs * mass * above, mass * above**2, costs * mass)
        least = np.where(held, base + level - reach, 0)
        more = (np.where(held, costs, 0) * loss, spread * loss**2, loss * least)
        return np.stack([np.where(there, one, 0) for one in (*columns, *more)])
