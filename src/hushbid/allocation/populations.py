"""People in strata, or many such populations that differ by where one person has moved."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hushbid.allocation.pool import Box, Levels, Moves, People, Sums
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_CELLS = 1 << 18
"""So many pairs of a population and a person are looked at together: they stay in the processor's cache."""

_LOOKED_AT = 128  # up to so many people are looked at one by one: sums by search would not be faster


@dataclass(frozen=True, slots=True, eq=False)
class Populations:
    """People in strata, or many such populations that differ by where one person of one stratum has moved."""

    people: People
    sizes: FloatArray  # ℓ_g, positive: each stratum gives this share
    stratum: int = 0  # whose person moves
    moves: Moves | None = None
    box: Box | None = None  # where sums are asked for, if not everywhere

    def moved(self, stratum: int, moves: Moves) -> "Populations":
        """Return one population for each of these moves of people of a stratum."""
        return replace(self, stratum=stratum, moves=moves)

    def take(self, which: IndexArray | BoolArray | slice) -> "Populations":
        """Return some of the populations, each perhaps several times."""
        return self if self.moves is None else replace(self, moves=self.moves.take(which))

    def within(self, low: FloatArray, high: FloatArray, sigmas: tuple[float, float]) -> "Populations":
        """Return the same populations, for levels of each stratum and steps in a box only."""
        return replace(self, box=Box(self.people, low, high, sigmas))

    def holds(self, levels: Levels, sigma: FloatArray) -> BoolArray:
        """Return whether levels and steps are in the box."""
        return np.ones(sigma.size, dtype=bool) if self.box is None else self.box.holds(levels, sigma)

    @property
    def seen(self) -> People:
        """Those who are looked at."""
        return self.people if self.box is None else self.box.seen

    @property
    def left(self) -> IndexArray | None:
        """The place of who moved, among all people."""
        return None if self.moves is None else self.moves.person

    @property
    def without(self) -> IndexArray | None:
        """The place of who moved, among those who are looked at."""
        return self.left if self.box is None else self.box.without(self.left)

    @property
    def many(self) -> bool:
        """Whether sums are found by search."""
        return self.box is None and self.people.size > _LOOKED_AT and self.people.pools is not None

    @property
    def step(self) -> int:
        """How many populations are worth working on together."""
        return max(_CELLS // ((self.sizes.size if self.many else self.seen.size) + 1), 16)

    def parts(self, count: int) -> Iterator[slice]:
        """Yield slices of ``count`` populations in which everybody can be looked at."""
        step = max(_CELLS // (self.seen.size + 1), 1)
        return (slice(begin, begin + step) for begin in range(0, count, step))

    # -- sums ----------------------------------------------------------------------------------------------------------

    def sums(self, levels: Levels, sigma: FloatArray) -> Sums:
        """Return the sums of every stratum, at one level and step for each population."""
        pools = self.people.pools if self.many else None
        if pools is not None:
            own = None if self.left is None else self.left - self.people.starts[self.stratum]
            each = (
                pool.sums(levels.stratum(g), sigma, own if g == self.stratum else None) for g, pool in enumerate(pools)
            )
            table = np.stack(list(each), axis=1)
        else:
            table = self.seen.sums(levels, sigma, self.without)
        if self.box is not None:
            table = table + self.box.sums(levels, self.stratum, self.left)
        if self.moves is not None:
            table[:, self.stratum] += self.moves.sums(levels.stratum(self.stratum), sigma)
        return Sums(table)

    def next_inside(self, levels: Levels, sigma: FloatArray, up: BoolArray) -> Levels:
        """Return levels of the one stratum, nobody of which is inside, at which somebody just is.

        That is who enters next where the way is ``up``, else who was at the cap last; infinite where there is nobody.
        """
        seen, without = self.seen, self.without
        cost, reach = np.full(sigma.size, math.inf), np.zeros(sigma.size)
        for part in self.parts(sigma.size) if seen.size else ():
            left = None if without is None else without[part]
            below, _, full = seen.states(levels.take(part), sigma[part], left)
            out = below <= 0.0
            if left is not None:
                here = np.flatnonzero(left < seen.size)
                out[here, left[here]] = False
            enters, filled = np.where(out, seen.costs, math.inf), -(seen.costs + sigma[part, None] * seen.reach)
            bend = np.where(up[part, None], enters, np.where(full, filled, math.inf))
            first = bend.argmin(axis=1)
            found = bend[np.arange(first.size), first] < math.inf
            cost[part], reach[part] = np.where(found, seen.costs[first], math.inf), seen.reach[first]
        if self.moves is not None:
            moves, nobody = self.moves, cost == math.inf
            away, filled = levels.stratum(0).above(moves.cost), moves.cost + sigma * moves.reach
            nearer = np.where(up, (away <= 0.0) & (moves.cost < cost), away > 0.0)
            nearer &= (moves.mass > 0.0) & (up | nobody | (filled > cost + sigma * reach))
            cost, reach = np.where(nearer, moves.cost, cost), np.where(nearer, moves.reach, reach)
        room = np.where(up, 0.25, 0.75) * sigma * np.minimum(reach, 1e300)
        return Levels(cost[None], np.where(reach < math.inf, room, 1e-6 * cost)[None])

    # -- what people have to give --------------------------------------------------------------------------------------

    def full(self, count: int) -> FloatArray:
        """``η_max``: the total weight at which a stratum has nothing more to give, in each of ``count`` populations."""
        people, moves = self.people, self.moves
        caps = people.by_stratum(people.cap)[:, None].repeat(count, axis=1)
        if moves is not None:
            every = float(caps[self.stratum, 0])
            own = np.append(people.cap, 0.0)[moves.person]
            others = every - own
            mine = people.codes == self.stratum
            for person in np.unique(moves.person[~(own < 0.5 * every)]).tolist():
                # most of the sum: a difference would have no digits
                rest = people.cap[mine & (np.arange(people.size) != person)]
                others[moves.person == person] = float(rest.sum())
            caps[self.stratum] = others + np.where(moves.mass > 0.0, moves.cap, 0.0)
        most: FloatArray = (caps / self.sizes[:, None]).min(axis=0)
        return most

    def zero_cost(self, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return of each stratum in each population what zero-cost people may give together, and their precision.

        The last is the cheapest of all other costs, infinite where there is nobody else.
        """
        people, moves, g = self.people, self.moves, self.stratum
        free = people.costs == 0.0
        each = people.by_stratum(np.where(free, np.stack([people.cap, people.mass]), 0.0))
        cheapest = people.by_stratum(np.where(free, math.inf, people.costs), np.minimum)
        caps, mass, cheapest = (one[:, None].repeat(count, axis=1) for one in (*each, cheapest))
        if moves is not None:
            comes = (moves.mass > 0.0) & (moves.cost == 0.0)
            own, mine = np.append(free, False)[moves.person], free & (people.codes == g)
            for j in np.flatnonzero(own).tolist():
                others = mine & (np.arange(people.size) != moves.person[j])
                caps[g, j], mass[g, j] = people.cap[others].sum(), people.mass[others].sum()
            caps[g] += np.where(comes, moves.cap, 0.0)
            mass[g] += np.where(comes, moves.mass, 0.0)
            paid = (moves.mass > 0.0) & (moves.cost > 0.0)
            cheapest[g] = np.where(paid, np.minimum(cheapest[g], moves.cost), cheapest[g])
        return caps, mass, cheapest
