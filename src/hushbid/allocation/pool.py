"""Sums over the people of strata at a water level and a step, also with one person moved to another cost.

A person with cost ``ψ``, precision ``u`` and cap ``e`` gives ``y = clip(u(λ − ψ), 0, σe)`` at the water level ``λ`` of
their stratum, where the step ``1/σ`` turns ``y`` into a privacy loss: ``ε = y/σ``. They are *out* (``λ ≤ ψ``),
*inside*, or *at the cap*, from ``λ − ψ ≥ σ·e/u`` on.

A level is kept in two parts, ``high + low``. Where caps are tiny, everybody inside has the same cost to the last digit,
and their losses are decided by the part that a single number has no room for.

Everybody is looked at, except those who cannot change sides while level and step are in a given box: they are summed
once. If ``e/u`` is the same for all in a stratum (one cap and one variance, or no caps), those at the cap are the
cheapest, and two searches in prefix sums give every sum of very many people.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

NO_CAP = 1e150  # a larger cap binds nobody; it counts as none, so that squares of caps are numbers
SUMS = 6  # so many sums are kept of each stratum
_DOMINANT = 1e-3  # who has a larger share of a sum is not summed once: taking them out again would cost digits
_MASS, _BELOW, _SQUARES, _USED, _USED_SQUARES, _SPENT = range(SUMS)


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Water levels in two parts, one row for each stratum, one column for each population."""

    high: FloatArray
    low: FloatArray

    @classmethod
    def of(cls, high: FloatArray) -> "Levels":
        """Return levels that are single numbers."""
        return cls(high, np.zeros_like(high))

    def take(self, which: Any) -> "Levels":
        """Return those of some populations."""
        return Levels(self.high[..., which], self.low[..., which])

    def stratum(self, g: int) -> "Levels":
        """Return those of one stratum."""
        return Levels(self.high[g], self.low[g])

    def moved(self, by: FloatArray) -> "Levels":
        """Return each level and a small number, without losing what is below the last digit of the first part."""
        rest = self.low + by
        high = self.high + rest
        there = high - self.high
        low = (self.high - (high - there)) + (rest - there)
        return Levels(high, np.where(np.isfinite(low), low, 0.0))

    def above(self, costs: FloatArray) -> FloatArray:
        """Return how far the levels are above costs."""
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
        """Return those of some populations."""
        return Sums(self.table[..., which])


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """One person moved in each of many populations: who, and what they are afterwards."""

    person: IndexArray  # their place among the people; behind the last if they were not there
    cost: FloatArray
    mass: FloatArray  # zero if they leave
    cap: FloatArray

    def take(self, which: Any) -> "Moves":
        """Return some of them."""
        return Moves(self.person[which], self.cost[which], self.mass[which], self.cap[which])

    @property
    def reach(self) -> FloatArray:
        """``e/u``."""
        return _reach(self.cap, self.mass)

    def losses(self, levels: Levels, sigma: FloatArray) -> FloatArray:
        """Return what is bought from the moved person."""
        bought: FloatArray = np.clip(self.mass * levels.above(self.cost) / sigma, 0.0, self.cap)
        return bought

    def sums(self, levels: Levels, sigma: FloatArray) -> FloatArray:
        """Return what the moved person adds to each sum."""
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


class People:
    """Everybody who can be bought from, as columns: stratum by stratum, the cheapest first."""

    def __init__(self, costs: FloatArray, mass: FloatArray, cap: FloatArray, codes: IndexArray, strata: int) -> None:
        self.costs, self.mass, self.codes = costs, mass, codes
        self.cap = np.where(cap < NO_CAP, cap, math.inf)
        self.reach = _reach(self.cap, mass)
        finite = np.where(self.cap < math.inf, self.cap, 0.0)
        self.capped = np.stack([finite, finite * finite / mass, finite * costs])
        """What each adds to the sums at the cap."""

        self.counts = np.bincount(codes, minlength=strata)
        self.starts = self.counts.cumsum() - self.counts  # the first column of each stratum

    @property
    def size(self) -> int:
        """How many people."""
        return self.costs.size

    def take(self, which: IndexArray) -> "People":
        """Return some of them, in this order."""
        return People(self.costs[which], self.mass[which], self.cap[which], self.codes[which], self.counts.size)

    def by_stratum(self, each: NDArray[Any], ufunc: np.ufunc = np.add, nobody: float = 0.0) -> NDArray[Any]:
        """Return the sum over each stratum along the last axis, or another reduction."""
        if self.counts.all():
            reduced: NDArray[Any] = ufunc.reduceat(each, self.starts, axis=-1)
            return reduced
        some = np.flatnonzero(self.counts)
        found = np.full((*each.shape[:-1], self.counts.size), nobody, dtype=each.dtype)
        if some.size:
            found[..., some] = ufunc.reduceat(each, self.starts[some], axis=-1)
        return found

    def below(self, levels: Levels) -> FloatArray:
        """Return how far everybody is below the level of their stratum, a row for each population."""
        below: FloatArray = (levels.high.T[:, self.codes] - self.costs) + levels.low.T[:, self.codes]
        return below

    def losses(self, levels: Levels, sigma: float) -> FloatArray:
        """Return what is bought from each in one population."""
        bought: FloatArray = np.clip(self.mass * self.below(levels)[0] / sigma, 0.0, self.cap)
        return bought

    def states(
        self, levels: Levels, sigma: FloatArray, without: IndexArray | None
    ) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Return how far everybody is below the level, who is inside and who is at the cap; a row for each population.

        ``without`` is the place of one person of each population who is neither; behind the last for nobody.
        """
        below = self.below(levels)
        there = below > 0.0
        capped = there & (below >= sigma[:, None] * self.reach)
        if without is not None:
            here = np.flatnonzero(without < self.size)
            there[here, without[here]] = capped[here, without[here]] = False
        return below, there & ~capped, capped

    def sums(self, levels: Levels, sigma: FloatArray, without: IndexArray | None) -> FloatArray:
        """Return every sum of every stratum, without one person of each population."""
        below, inside, capped = self.states(levels, sigma, without)
        table = np.zeros((SUMS, sigma.size, self.counts.size))
        each = np.where(inside, self.mass, 0.0)
        for power in range(3):
            table[power] = self.by_stratum(each)
            each *= below
        if capped.any():
            for power, weight in enumerate(self.capped):
                table[_USED + power] = self.by_stratum(np.where(capped, weight, 0.0))
        return table.transpose(0, 2, 1)

    @cached_property
    def pools(self) -> "tuple[Pool, ...] | None":
        """The strata as sorted pools; None if a cap may bind people of one in another order than that of costs."""
        first = self.reach[self.starts]
        if not bool((self.reach == first[self.codes]).all()):
            return None
        ends = self.starts + self.counts
        return tuple(
            Pool(self.costs[a:b], self.mass[a:b], float(self.reach[a]))
            for a, b in zip(self.starts.tolist(), ends.tolist(), strict=True)
        )


class Pool:
    """The people of one stratum, the cheapest first, with one ``e/u``: everybody at the cap is cheaper than inside."""

    def __init__(self, costs: FloatArray, mass: FloatArray, reach: float) -> None:
        self.costs, self.mass, self.reach, self.size = costs, mass, reach, costs.size
        wide, offset = mass.astype(np.longdouble), costs.astype(np.longdouble) - costs[0]
        each = (wide, wide * offset, wide * offset * offset)
        self.prefixes = tuple(np.append(np.longdouble(0), one.cumsum()) for one in each)
        """Sums over the cheapest of ``u``, ``u·o`` and ``u·o²``, ``o`` being the offset from the cheapest cost."""

    def sums(self, levels: Levels, sigma: FloatArray, person: IndexArray | None) -> FloatArray:
        """Return every sum at levels and steps, one column each, without a person of each population."""
        start, end = self._places(levels, sigma)
        first, last, inner = start, end - 1, [p[end] - p[start] for p in self.prefixes]
        cheap = [p[start] for p in self.prefixes[:2]]
        if person is not None:
            first, last = start + (person == start), end - 1 - (person == end - 1)
            at = np.clip(person, 0, self.size - 1)
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
        if self.reach < math.inf:
            used = self.reach * np.where(start > (0 if person is None else person == 0), cheap[0], 0.0)
            table[_USED], table[_USED_SQUARES] = used, self.reach * used
            table[_SPENT] = np.where(used > 0.0, self.costs[0] * used + self.reach * cheap[1], 0.0)
        return table

    def _places(self, levels: Levels, sigma: FloatArray) -> tuple[IndexArray, IndexArray]:
        """Return how many are at the cap, and how many are not out."""
        end = self._count(levels, equal=False)
        if not self.reach < math.inf:
            return np.zeros(end.size, dtype=np.intp), end
        return np.minimum(self._count(levels.moved(-sigma * self.reach), equal=True), end), end

    def _count(self, levels: Levels, *, equal: bool) -> IndexArray:
        """Return how many costs are below each level, or ``equal`` to it."""
        found = self.costs.searchsorted(levels.high, side="left")
        same = self.costs[np.minimum(found, self.size - 1)] == levels.high
        more = np.flatnonzero(same & ((levels.low > 0.0) | (equal & (levels.low == 0.0))))
        found[more] = self.costs.searchsorted(levels.high[more], side="right")
        return found


class Box:
    """People for levels and steps in a box only: who is inside or at the cap all over it is summed once."""

    def __init__(self, people: People, low: FloatArray, high: FloatArray, sigmas: tuple[float, float]) -> None:
        self._people, self._low, self._high, self._sigmas = people, low, high, sigmas
        below = low[people.codes] - people.costs, high[people.codes] - people.costs
        capped = (below[0] > 0.0) & (below[0] >= sigmas[1] * people.reach)
        inside = (below[0] > 0.0) & (below[1] < sigmas[0] * people.reach)
        for group, weight in ((inside, people.mass), (capped, people.capped[0])):
            weight = np.where(group, weight, 0.0)
            group &= ~(weight > _DOMINANT * people.by_stratum(weight)[people.codes])
        loose = np.flatnonzero(~(capped | inside | (below[1] <= 0.0)))
        self.seen = people.take(loose)  # those who may change sides
        self._place = np.full(people.size + 1, loose.size)
        self._place[loose] = np.arange(loose.size)
        self._inside, self._capped = np.append(inside, False), np.append(capped, False)
        self._centre = 0.5 * (low + high)
        every = np.arange(people.size)
        self._totals = people.by_stratum(self._each(every))
        self._moments = self._each_moment(every).sum(axis=1)

    def without(self, person: IndexArray | None) -> IndexArray | None:
        """Return the places of people among those who may change sides; behind the last for all others."""
        return None if person is None else self._place[person]

    def holds(self, levels: Levels, sigma: FloatArray) -> BoolArray:
        """Return whether levels and steps are in the box."""
        high, (least, most) = levels.high, self._sigmas
        fine = ((high >= self._low[:, None]) & (high <= self._high[:, None])).all(axis=0)
        return np.asarray(fine & (sigma >= least) & (sigma <= most))

    def _each(self, person: IndexArray) -> FloatArray:
        """Return what some people who are summed once add to each sum, at the centre of the box."""
        people, at = self._people, np.minimum(person, self._people.size - 1)
        mass = np.where(self._inside[person], people.mass[at], 0.0)
        below = np.where(self._inside[person], self._centre[people.codes[at]] - people.costs[at], 0.0)
        used = np.where(self._capped[person], people.capped[:, at], 0.0)
        return np.concatenate([np.stack([mass, mass * below, mass * below * below]), used])

    def _each_moment(self, person: IndexArray) -> FloatArray:
        people, at = self._people, np.minimum(person, self._people.size - 1)
        weighted = np.where(self._inside[person], people.mass[at] * people.costs[at], 0.0)
        used = np.where(self._capped[person], people.capped[:, at], 0.0)
        return np.concatenate([np.stack([weighted, weighted * people.costs[at]]), used])

    def moments(self, person: IndexArray) -> FloatArray:
        """Return ``Σuψ``, ``Σuψ²`` inside and ``Σe``, ``ΣVe²``, ``Σψe`` at the cap of those summed once, but one."""
        return np.asarray(self._moments[:, None] - self._each_moment(person))

    def sums(self, levels: Levels, stratum: int, person: IndexArray | None) -> FloatArray:
        """Return the sums over those who are summed once, without one person of a stratum."""
        table = np.repeat(self._totals[:, :, None], levels.high.shape[1], axis=2)
        if person is not None:
            table[:, stratum] -= self._each(person)
        away = levels.above(self._centre[:, None])
        mass, below = table[_MASS], table[_BELOW].copy()
        table[_BELOW] += away * mass
        table[_SQUARES] += away * (2.0 * below + away * mass)
        return table
