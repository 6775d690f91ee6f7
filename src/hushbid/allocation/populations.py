"""People in strata, or many such populations that differ by where one person has moved."""

from dataclasses import dataclass, replace

import numpy as np

from hushbid.allocation.pool import SUMS, Columns, Levels, Moves, Pool, Sums
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_CELLS = 1 << 17
"""So many pairs of a population and a person are looked at together."""

_LOOKED_AT = 128
"""Up to so many people are looked at one by one, those of all strata together: sums by search would not be faster."""


@dataclass(frozen=True, slots=True, eq=False)
class Everybody:
    """The people of all strata next to each other, as columns."""

    columns: Columns
    starts: IndexArray
    """The first column of each stratum."""

    codes: IndexArray
    """The stratum of each column."""

    inside: FloatArray
    """What each person inside adds to the mass of each stratum."""

    capped: FloatArray
    """What each person at the cap adds to each stratum: the cap, its square times the variance, its expense."""

    @classmethod
    def of(cls, pools: tuple[Pool, ...]) -> "Everybody":
        """Return the people of these strata."""
        sizes = np.array([pool.size for pool in pools])
        costs, mass, cap = (
            np.concatenate([getattr(pool, name) for pool in pools]) for name in ("costs", "mass", "cap")
        )
        columns, codes = Columns(costs, mass, cap), np.repeat(np.arange(sizes.size), sizes)
        own = np.zeros((0, sizes.size))
        if codes.size <= _LOOKED_AT:
            own = (codes[:, None] == np.arange(sizes.size)).astype(np.float64)
        capped = [own * one[: own.shape[0], None] for one in columns.capped.T]
        return cls(columns, np.cumsum(sizes) - sizes, codes, own * mass[: own.shape[0], None], np.hstack(capped))

    def _below(self, levels: Levels) -> FloatArray:
        """Return how far everybody is below the level of their stratum, a row for each population."""
        below: FloatArray = (levels.high.T[:, self.codes] - self.columns.costs) + levels.low.T[:, self.codes]
        return below

    def bends(self, levels: Levels, sigma: FloatArray, without: IndexArray | None) -> FloatArray:
        """Return of each stratum the cost of who enters next and their reach, and the same of who was capped last."""
        seen, place = self.columns, np.arange(self.codes.size)
        below, full_at = self._below(levels), seen.costs + sigma[:, None] * seen.reach
        out, full = below <= 0.0, (below > 0.0) & (below >= sigma[:, None] * seen.reach)
        if without is not None:
            here = np.flatnonzero(without < self.codes.size)
            out[here, without[here]] = full[here, without[here]] = False
        first = np.minimum.reduceat(np.where(out, place, place.size), self.starts, axis=1)  # they are in order
        latest = np.maximum.reduceat(np.where(full, full_at, -np.inf), self.starts, axis=1)
        last = np.maximum.reduceat(np.where(full & (full_at == latest[:, self.codes]), place, -1), self.starts, axis=1)
        above, some = first < place.size, last >= 0
        first, last = np.where(above, first, 0), np.where(some, last, 0)
        return np.stack(
            [
                np.where(above, seen.costs[first], np.inf).T,
                np.where(above, seen.reach[first], np.inf).T,
                np.where(some, seen.costs[last], -np.inf).T,
                np.where(some, seen.reach[last], 0.0).T,
            ]
        )

    def sums(self, levels: Levels, sigma: FloatArray, without: IndexArray | None) -> FloatArray:
        """Return every sum of every stratum, without one person of each population."""
        seen, strata = self.columns, self.starts.size
        below = self._below(levels)
        there = below > 0.0
        capped = there & (below >= sigma[:, None] * seen.reach)
        if without is not None:
            here = np.flatnonzero(without < self.codes.size)
            there[here, without[here]] = capped[here, without[here]] = False
        inside = (there & ~capped).astype(np.float64)
        table = np.empty((SUMS, sigma.size, strata))
        for power in range(3):
            table[power] = inside @ self.inside
            inside *= below
        table[3:] = (capped.astype(np.float64) @ self.capped).reshape(-1, 3, strata).transpose(1, 0, 2)
        return table.transpose(0, 2, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Populations:
    """People in strata, or many such populations that differ by where one person of one stratum has moved."""

    pools: tuple[Pool, ...]
    sizes: FloatArray
    """``ℓ_g``, positive: each stratum gives this share."""

    everybody: Everybody
    """The people of all pools."""

    stratum: int = 0
    """Whose person moves."""

    moves: Moves | None = None

    @classmethod
    def of(cls, pools: tuple[Pool, ...], sizes: FloatArray) -> "Populations":
        """Return one population, in which nobody has moved."""
        return cls(pools, sizes, Everybody.of(pools))

    @property
    def few(self) -> bool:
        """Whether everybody is looked at one by one."""
        return self.everybody.codes.size <= _LOOKED_AT

    def moved(self, stratum: int, moves: Moves) -> "Populations":
        """One population for each of these moves of people of a stratum."""
        return replace(self, stratum=stratum, moves=moves)

    def take(self, which: IndexArray | BoolArray) -> "Populations":
        """Some of the populations, each perhaps several times."""
        return self if self.moves is None else replace(self, moves=self.moves.take(which))

    def sums(self, levels: Levels, sigma: FloatArray) -> Sums:
        """The sums of every stratum, at one level and step for each population."""
        if self.few:
            table = self.everybody.sums(levels, sigma, self.left_place)
            if self.moves is not None:
                table[:, self.stratum] += self.moves.sums(levels.stratum(self.stratum), sigma)
            return Sums(table)
        found = [
            pool.sums(levels.stratum(g), sigma, self.moves if g == self.stratum else None)
            for g, pool in enumerate(self.pools)
        ]
        return Sums(np.stack(found, axis=1))

    def neighbours(self, levels: Levels, sigma: FloatArray) -> tuple[Levels, Levels]:
        """Return levels at which who was at the cap last is just inside again, and at which who enters next just is.

        They are those of strata in which nobody is inside.
        """
        next_, room, last, reach = self._bends(levels, sigma)
        if self.moves is not None:
            g, moves = self.stratum, self.moves
            away, there = levels.stratum(g).above(moves.cost), moves.mass > 0.0
            nearer = there & (away <= 0.0) & (moves.cost < next_[g])
            next_[g], room[g] = np.where(nearer, moves.cost, next_[g]), np.where(nearer, moves.reach, room[g])
            full = there & (away > 0.0) & (moves.cost + sigma * moves.reach > last[g] + sigma * reach[g])
            last[g], reach[g] = np.where(full, moves.cost, last[g]), np.where(full, moves.reach, reach[g])
        over = np.where(room < np.inf, 0.25 * sigma * np.minimum(room, 1e300), 1e-6 * next_)
        return Levels(last, 0.75 * sigma * reach), Levels(next_, over)

    def _bends(self, levels: Levels, sigma: FloatArray) -> FloatArray:
        """Return what `Everybody.bends` does, some populations at a time; by search where that is possible."""
        if not self.few and all(pool.even for pool in self.pools):
            each = [
                pool.bends(levels.stratum(g), sigma, self.moves.person if self.moves and g == self.stratum else None)
                for g, pool in enumerate(self.pools)
            ]
            return np.stack(each, axis=1)
        found, without = np.empty((4, *levels.high.shape)), self.left_place
        step = max(_CELLS // self.everybody.codes.size, 1)
        for begin in range(0, sigma.size, step):
            part = slice(begin, begin + step)
            found[..., part] = self.everybody.bends(
                levels.take(part), sigma[part], None if without is None else without[part]
            )
        return found

    @property
    def left_place(self) -> IndexArray | None:
        """The column of who moved, among everybody; behind the last if they were not there."""
        if self.moves is None:
            return None
        there = self.moves.person < self.pools[self.stratum].size
        return np.where(there, self.everybody.starts[self.stratum] + self.moves.person, self.everybody.codes.size)

    def within(self, low: FloatArray, high: FloatArray, sigmas: tuple[float, float]) -> "Populations":
        """The same populations, for levels of each stratum and steps in a box only."""
        if self.few:
            return self
        pools = tuple(
            pool.within(float(one), float(two), sigmas) for pool, one, two in zip(self.pools, low, high, strict=True)
        )
        return replace(self, pools=pools)

    def holds(self, levels: Levels, sigma: FloatArray) -> BoolArray:
        """Whether levels and steps are in the box of every stratum."""
        fine = np.ones(sigma.size, dtype=bool)
        for g, pool in enumerate(self.pools):
            fine &= pool.holds(levels.stratum(g), sigma)
        return fine

    @property
    def step(self) -> int:
        """How many populations are worth working on together."""
        cells = min(self.everybody.codes.size, sum(pool.cells() for pool in self.pools))
        return max((1 << 18) // (cells + 1), 16)

    def full(self, count: int) -> FloatArray:
        """``η_max``: the total weight at which a stratum has nothing more to give, in each of ``count`` populations."""
        caps = np.array([[pool.all_caps] for pool in self.pools]).repeat(count, axis=1)
        if self.moves is not None:
            pool = self.pools[self.stratum]
            own = np.append(pool.cap, 0.0)[np.minimum(self.moves.person, pool.size)]
            others = pool.all_caps - own
            for person in np.unique(self.moves.person[~(own < 0.5 * pool.all_caps)]).tolist():
                if person < pool.size:  # most of the sum: a difference would have no digits
                    others[self.moves.person == person] = float(np.delete(pool.cap, person).sum())
            caps[self.stratum] = others + np.where(self.moves.mass > 0.0, self.moves.cap, 0.0)
        most: FloatArray = (caps / self.sizes[:, None]).min(axis=0)
        return most

    def zero_cost(self, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return of each stratum in each population what zero-cost people may give together, and their precision.

        The last is the cheapest of all other costs, infinite where there is nobody else.
        """
        caps, mass, cheapest = (np.zeros((len(self.pools), count)) for _ in range(3))
        for g, pool in enumerate(self.pools):
            free = pool.costs == 0.0
            caps[g], mass[g] = pool.cap[free].sum(), pool.mass[free].sum()
            cheapest[g] = pool.costs.min(initial=np.inf, where=~free)
        if self.moves is not None:
            g, pool, moves = self.stratum, self.pools[self.stratum], self.moves
            here, comes = moves.person < pool.size, (moves.mass > 0.0) & (moves.cost == 0.0)
            place = np.minimum(moves.person, pool.size - 1)
            for j in np.flatnonzero(here & (pool.costs[place] == 0.0)).tolist():
                others = np.delete(np.arange(pool.size), place[j])
                others = others[pool.costs[others] == 0.0]
                caps[g, j], mass[g, j] = pool.cap[others].sum(), pool.mass[others].sum()
            caps[g] += np.where(comes, moves.cap, 0.0)
            mass[g] += np.where(comes, moves.mass, 0.0)
            paid = (moves.mass > 0.0) & (moves.cost > 0.0)
            cheapest[g] = np.where(paid, np.minimum(cheapest[g], moves.cost), cheapest[g])
        return caps, mass, cheapest
