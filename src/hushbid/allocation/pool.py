"""Sums over the people of strata at a water level and a step, also with one person moved to another cost.

A person with cost ``ψ``, precision ``u`` and cap ``e`` gives ``y = clip(u(λ − ψ), 0, σe)`` at the water level ``λ`` of
their stratum, where the step ``1/σ`` turns ``y`` into a privacy loss: ``ε = y/σ``. They are *out* (``λ ≤ ψ``),
*inside*, or *at the cap*, from ``λ − ψ ≥ σ·e/u`` on.

A level is kept in two parts, ``high + low``. Where caps are tiny, everybody inside has the same cost to the last digit,
and their losses are decided by the part that a single number has no room for.

If ``e/u`` is the same for everybody in a stratum (one cap and one variance, or no caps), those at the cap are the
cheapest, and two searches in prefix sums give every sum. Otherwise everybody is looked at, except those who cannot
change sides while level and step are in a given box: they are summed once.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

NO_CAP = 1e150
"""A larger cap binds nobody; it counts as none, so that squares of caps are numbers."""

_CELLS = 1 << 17
"""So many pairs of a population and a person are looked at together: they stay in the processor's cache."""

SUMS = 6
"""So many sums are kept of each stratum."""

_DOMINANT = 1e-3
"""Who has a larger share of a sum is not summed once: taking them out again would cost digits."""

_MASS, _BELOW, _SQUARES, _USED, _USED_SQUARES, _SPENT = range(SUMS)


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Water levels in two parts, one row for each stratum."""

    high: FloatArray
    low: FloatArray

    @classmethod
    def of(cls, high: FloatArray) -> "Levels":
        """Levels that are single numbers."""
        return cls(high, np.zeros_like(high))

    def take(self, which: Any) -> "Levels":
        """Those of some populations."""
        return Levels(self.high[..., which], self.low[..., which])

    def stratum(self, g: int) -> "Levels":
        """Those of one stratum."""
        return Levels(self.high[g], self.low[g])

    def moved(self, by: FloatArray) -> "Levels":
        """Each level and a small number, without losing what is below the last digit of the first part."""
        rest = self.low + by
        high = self.high + rest
        there = high - self.high
        low = (self.high - (high - there)) + (rest - there)
        return Levels(high, np.where(np.isfinite(low), low, 0.0))

    def above(self, costs: FloatArray) -> FloatArray:
        """How far the levels are above costs."""
        return (self.high - costs) + self.low

    def put(self, which: Any, other: "Levels") -> None:
        """Write other levels over those of some populations."""
        self.high[..., which], self.low[..., which] = other.high, other.low


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums at a level and a step: one row for each stratum, one column for each population."""

    table: FloatArray

    @property
    def mass(self) -> FloatArray:
        """``U = Σ u`` inside."""
        return np.asarray(self.table[_MASS])

    @property
    def below(self) -> FloatArray:
        """``Σ u(λ − ψ)`` inside."""
        return np.asarray(self.table[_BELOW])

    @property
    def squares(self) -> FloatArray:
        """``Σ u(λ − ψ)²`` inside."""
        return np.asarray(self.table[_SQUARES])

    @property
    def used(self) -> FloatArray:
        """``E = Σ e`` at the cap."""
        return np.asarray(self.table[_USED])

    @property
    def used_squares(self) -> FloatArray:
        """``Σ V·e²`` at the cap."""
        return np.asarray(self.table[_USED_SQUARES])

    @property
    def spent(self) -> FloatArray:
        """``Σ ψ·e`` at the cap."""
        return np.asarray(self.table[_SPENT])

    def take(self, which: Any) -> "Sums":
        """Those of some populations."""
        return Sums(self.table[..., which])


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """One person of a stratum moved, in each of many populations: who, and what they are afterwards."""

    person: IndexArray
    """Their place in the pool; behind the last if they were not in it."""

    cost: FloatArray
    mass: FloatArray
    """Zero if they leave."""

    cap: FloatArray

    def take(self, which: Any) -> "Moves":
        """Some of them."""
        return Moves(self.person[which], self.cost[which], self.mass[which], self.cap[which])

    @property
    def reach(self) -> FloatArray:
        """``e/u``."""
        return _reach(self.cap, self.mass)

    def losses(self, levels: Levels, sigma: FloatArray) -> FloatArray:
        """What is bought from the moved person."""
        bought: FloatArray = np.clip(self.mass * levels.above(self.cost) / sigma, 0.0, self.cap)
        return bought

    def sums(self, levels: Levels, sigma: FloatArray) -> FloatArray:
        """What the moved person adds to each sum."""
        below = levels.above(self.cost)
        there = (below > 0.0) & (self.mass > 0.0)
        capped = there & (below >= sigma * self.reach)
        inside = there & ~capped
        mass, cap = np.where(inside, self.mass, 0.0), np.where(capped, self.cap, 0.0)
        below = np.where(inside, below, 0.0)
        square = np.divide(cap * cap, self.mass, out=np.zeros(cap.size), where=capped)
        return np.asarray(np.stack([mass, mass * below, mass * below * below, cap, square, cap * self.cost]))


def _reach(cap: FloatArray, mass: FloatArray) -> FloatArray:
    return np.asarray(np.divide(cap, mass, out=np.full(cap.shape, math.inf), where=(cap < math.inf) & (mass > 0.0)))


class Pool:
    """The people of one stratum who can be bought from, cheapest first."""

    def __init__(self, costs: FloatArray, mass: FloatArray, cap: FloatArray) -> None:
        self.costs, self.mass = costs, mass
        self.cap = np.where(cap < NO_CAP, cap, math.inf)
        self.reach = _reach(self.cap, mass)
        self.even = bool((self.reach == self.reach[0]).all())
        """Whether everybody at the cap is cheaper than everybody inside."""

        self._fixed: _Fixed | None = None
        self._box = -math.inf, math.inf, 0.0, math.inf
        self._loose = np.arange(costs.size)
        self.seen = Columns(costs, mass, self.cap)

    @property
    def size(self) -> int:
        """How many people."""
        return self.costs.size

    @property
    def all_caps(self) -> float:
        """What everybody may give together."""
        return float(self.cap.sum())

    def losses(self, levels: Levels, sigma: float) -> FloatArray:
        """What is bought from each, at one level and step."""
        bought: FloatArray = np.clip(self.mass * levels.above(self.costs) / sigma, 0.0, self.cap)
        return bought

    def cells(self) -> int:
        """How many people are looked at for each population."""
        return 1 if self.even else self._loose.size + 1

    # -- sums ----------------------------------------------------------------------------------------------------------

    def sums(self, levels: Levels, sigma: FloatArray, moves: Moves | None = None) -> FloatArray:
        """Every sum at levels and steps, one column each."""
        person = None if moves is None else moves.person
        found = self._by_search(levels, sigma, person) if self.even else self._by_looking(levels, sigma, person)
        return found if moves is None else found + moves.sums(levels, sigma)

    @cached_property
    def prefixes(self) -> tuple[NDArray[np.longdouble], ...]:
        """Sums over the cheapest of ``u``, ``u·o`` and ``u·o²``, ``o`` being the offset from the cheapest cost."""
        mass, offset = self.mass.astype(np.longdouble), self.costs.astype(np.longdouble) - self.costs[0]
        return tuple(np.append(np.longdouble(0), x.cumsum()) for x in (mass, mass * offset, mass * offset * offset))

    def _by_search(self, levels: Levels, sigma: FloatArray, person: IndexArray | None) -> FloatArray:
        reach = float(self.reach[0])
        start, end = self.places(levels, sigma)
        first, last, inner = start, end - 1, [p[end] - p[start] for p in self.prefixes]
        cheap = [p[start] for p in self.prefixes[:2]]
        if person is not None:
            first, last = start + (person == start), end - 1 - (person == end - 1)
            at = np.minimum(person, self.size - 1)
            mass, offset = self.mass[at], self.costs[at].astype(np.longdouble) - self.costs[0]
            out = mass * ((person >= start) & (person < end))
            inner = [inner[0] - out, inner[1] - out * offset, inner[2] - out * offset * offset]
            out = mass * (person < start)
            cheap = [cheap[0] - out, cheap[1] - out * offset]
        low = self.costs[np.minimum(first, self.size - 1)]
        alone = (last >= first) & (self.costs[np.maximum(last, 0)] == low)
        level = (levels.high.astype(np.longdouble) - self.costs[0]) + levels.low
        some = last >= first
        table = np.zeros((SUMS, end.size))
        table[_MASS] = np.where(some, inner[0], 0.0)
        own, mass = levels.above(low), table[_MASS]  # one cost only: exactly
        table[_BELOW] = np.where(alone, mass * own, np.where(some, np.maximum(level * inner[0] - inner[1], 0.0), 0.0))
        squares = level * (level * inner[0] - 2.0 * inner[1]) + inner[2]
        table[_SQUARES] = np.where(alone, mass * own * own, np.where(some, squares, 0.0))
        if reach < math.inf:
            table[_USED] = used = reach * np.where(start > (0 if person is None else person == 0), cheap[0], 0.0)
            table[_USED_SQUARES] = reach * used
            table[_SPENT] = np.where(used > 0.0, self.costs[0] * used + reach * cheap[1], 0.0)
        return table

    def places(self, levels: Levels, sigma: FloatArray) -> tuple[IndexArray, IndexArray]:
        """How many of an even pool are at the cap, and how many are not out."""
        end = self._count(levels, equal=False)
        if not self.reach[0] < math.inf:
            return np.zeros(end.size, dtype=np.intp), end
        return np.minimum(self._count(levels.moved(-sigma * self.reach[0]), equal=True), end), end

    def bends(self, levels: Levels, sigma: FloatArray, person: IndexArray | None) -> tuple[FloatArray, ...]:
        """The cost of who enters next above each level and their reach; the same of who came to the cap last below.

        Of an even pool.
        """
        end = self.places(levels, sigma)[1]
        up, down = end, end - 1
        if person is not None:
            up, down = up + (person == up), down - (person == down)
        above, below = up < self.size, down >= 0
        up, down = np.where(above, up, 0), np.where(below, down, 0)
        return (
            np.where(above, self.costs[up], math.inf),
            np.where(above, self.reach[up], math.inf),
            np.where(below, self.costs[down], -math.inf),
            np.where(below, self.reach[down], 0.0),
        )

    def _count(self, levels: Levels, *, equal: bool) -> IndexArray:
        """How many costs are below each level, or ``equal`` to it."""
        found = self.costs.searchsorted(levels.high, side="left")
        same = self.costs[np.minimum(found, self.size - 1)] == levels.high
        more = np.flatnonzero(same & ((levels.low > 0.0) | (equal & (levels.low == 0.0))))
        found[more] = self.costs.searchsorted(levels.high[more], side="right")
        return found

    def _by_looking(self, levels: Levels, sigma: FloatArray, person: IndexArray | None) -> FloatArray:
        seen, table = self.seen, np.empty((SUMS, sigma.size))
        step = max(_CELLS // (seen.costs.size + 1), 1)
        place = None if person is None else self.place[np.minimum(person, self.size)]
        for begin in range(0, sigma.size, step):
            part = slice(begin, begin + step)
            below = (levels.high[part, None] - seen.costs) + levels.low[part, None]
            there = below > 0.0
            capped = there & (below >= sigma[part, None] * seen.reach)
            if place is not None:
                here = np.flatnonzero(place[part] >= 0)
                there[here, place[part][here]] = capped[here, place[part][here]] = False
            inside = (there & ~capped).astype(np.float64)
            table[_MASS, part] = inside @ seen.mass
            inside *= below
            table[_BELOW, part] = inside @ seen.mass
            inside *= below
            table[_SQUARES, part] = inside @ seen.mass
            table[_USED:, part] = (capped.astype(np.float64) @ seen.capped).T
        if self._fixed is not None:
            table += self._fixed.sums(levels, person)
        return table

    @cached_property
    def place(self) -> IndexArray:
        """Where everybody is among those who are looked at; -1 for the others."""
        place = np.full(self.size + 1, -1)
        place[self._loose] = np.arange(self._loose.size)
        return place

    def inside_always(self, levels: Levels, person: IndexArray | None, count: int) -> tuple[FloatArray, ...] | None:
        """``Σ u``, ``Σ u(λ − ψ)`` and ``Σ u(λ − ψ)²`` over who is inside wherever level and step are in the box."""
        if self._fixed is None:
            return None
        one = Levels(levels.high.repeat(count), levels.low.repeat(count))
        return tuple(self._fixed.sums(one, person)[:3])

    def always(self, person: IndexArray) -> FloatArray:
        """``Σuψ``, ``Σuψ²`` inside and ``Σe``, ``ΣVe²``, ``Σψe`` at the cap, over who stays there in the box."""
        return np.zeros((5, person.size)) if self._fixed is None else self._fixed.moments(person)

    # -- boxes ---------------------------------------------------------------------------------------------------------

    def within(self, low: float, high: float, sigmas: tuple[float, float]) -> "Pool":
        """The same people, for levels and steps in a box only: who stays inside or at the cap there is summed once."""
        if self.even:
            return self
        below = low - self.costs, high - self.costs
        capped = (below[0] > 0.0) & (below[0] >= sigmas[1] * self.reach)
        inside = (below[0] > 0.0) & (below[1] < sigmas[0] * self.reach)
        out = below[1] <= 0.0
        for group, weight in ((inside, self.mass), (capped, self.seen.capped[:, 0])):
            weight = np.where(group, weight, 0.0)
            group &= ~(weight > _DOMINANT * weight.sum())
        pool = object.__new__(Pool)
        pool.__dict__.update(self.__dict__)
        for name in ("place", "prefixes"):
            pool.__dict__.pop(name, None)
        pool._loose = np.flatnonzero(~(capped | inside | out))
        pool.seen = Columns(self.costs[pool._loose], self.mass[pool._loose], self.cap[pool._loose])
        pool._fixed = _Fixed(self, inside, capped, 0.5 * (low + high))
        pool._box = low, high, *sigmas
        return pool

    def holds(self, levels: Levels, sigma: FloatArray) -> BoolArray:
        """Whether levels and steps are in the box."""
        if self._fixed is None:  # no box
            return np.ones(sigma.size, dtype=bool)
        low, high, least, most = self._box
        fine: BoolArray = (levels.high >= low) & (levels.high <= high) & (sigma >= least) & (sigma <= most)
        return fine


class Columns:
    """What some people add to the sums, as columns to multiply with."""

    def __init__(self, costs: FloatArray, mass: FloatArray, cap: FloatArray) -> None:
        self.costs, self.mass, self.cap, self.reach = costs, mass, cap, _reach(cap, mass)
        finite = np.where(cap < math.inf, cap, 0.0)
        self.capped = np.stack([finite, finite * finite / mass, finite * costs], axis=1)


class _Fixed:
    """The sums over people who are inside, or at the cap, wherever level and step are in the box."""

    def __init__(self, pool: Pool, inside: BoolArray, capped: BoolArray, centre: float) -> None:
        below = np.where(inside, centre - pool.costs, 0.0)
        mass = np.where(inside, pool.mass, 0.0)
        seen = np.where(capped[:, None], pool.seen.capped, 0.0)
        self._centre = centre
        each = np.concatenate([np.stack([mass, mass * below, mass * below * below]), seen.T])
        self._each = np.concatenate([each, np.zeros((SUMS, 1))], axis=1)
        self._totals = each.sum(axis=1)
        weighted = mass * pool.costs
        moments = np.concatenate([np.stack([weighted, weighted * pool.costs]), seen.T])
        self._moments = np.concatenate([moments, np.zeros((5, 1))], axis=1)

    def moments(self, person: IndexArray) -> FloatArray:
        """Sums that no level enters, without one person."""
        found: FloatArray = self._moments.sum(axis=1)[:, None] - self._moments[:, person]
        return found

    def sums(self, levels: Levels, person: IndexArray | None) -> FloatArray:
        """The sums, without one person."""
        found = self._totals[:, None] if person is None else self._totals[:, None] - self._each[:, person]
        away = levels.above(np.full(levels.high.size, self._centre))
        table = np.repeat(found, away.size, axis=1) if person is None else found
        mass, below, squares = table[0], table[1].copy(), table[2].copy()
        table[_BELOW] = below + away * mass
        table[_SQUARES] = squares + away * (2.0 * below + away * mass)
        return table
