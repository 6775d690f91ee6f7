"""Sums over people with caps at a level and a rate, for many populations that differ in one person.

With a cap ``e_i`` the efficient purchases are ``ε_i = clip(ρ·u_i·(τ − ψ_i), 0, e_i)`` for a level ``τ`` and a rate
``ρ``. A person is *out*, *inside* or *at her cap*, and everything the solvers ask are sums over the last two groups.

- `OneCap`: one cap and one variance. Those at the cap are the cheapest, so two searches among sorted costs and
  differences of prefix sums answer for any level and rate.
- `Various`: a cap and a variance each. Those who may change groups near a level and a rate are looked at one by one,
  all others were summed before.

Costs are counted from the smallest, ``base``; precisions in units of the largest, losses in the fitting unit.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hushbid.allocation.capped.people import NO_CAP, Moments, People, Sums, Totals
from hushbid.arrays import BoolArray, FloatArray, IndexArray


class Crowd(Protocol):
    """A population whose sums are known at any level and rate."""

    base: float
    people: People

    top: float
    """Everybody below this level is among the people; infinite if that is everybody."""

    def totals(self, level: FloatArray, rate: FloatArray, without: IndexArray | None) -> Totals:
        """The sums at each level and rate; ``without`` one person each, by her place (beyond the last: nobody)."""
        ...

    def bought(self, level: FloatArray, rate: FloatArray, without: IndexArray | None) -> tuple[FloatArray, FloatArray]:
        """``Σ ε``, and how much faster it grows than the rate if the level rises."""
        ...

    def holds(self, level: FloatArray, rate: FloatArray) -> BoolArray:
        """Where the sums are right."""
        ...


class OneCap:
    """People with one variance (of which masses are units) and one finite cap, sorted by cost."""

    def __init__(self, base: float, offset: FloatArray, cap: float, *, top: float = np.inf) -> None:
        self.base, self.cap, self.top = base, cap, top
        ones = np.broadcast_to(1.0, offset.shape)
        self.people = People(offset, ones, np.broadcast_to(cap, ones.shape), np.broadcast_to(cap * cap, ones.shape))
        # in extended precision: differences of prefix sums cancel
        wide = offset.astype(np.longdouble)
        self._first = np.append(np.longdouble(0.0), wide.cumsum())
        wide *= wide
        self._second = np.append(np.longdouble(0.0), wide.cumsum())
        self._rounded = self._first.astype(np.float64)

    def places(self, level: FloatArray, rate: FloatArray) -> tuple[IndexArray, IndexArray]:
        """How many are at the cap, and how many are at the cap or inside."""
        offset = self.people.offset
        with np.errstate(divide="ignore", invalid="ignore"):
            capped = offset.searchsorted(level - self.cap / rate, side="right")
        below = offset.searchsorted(level, side="left")
        return np.minimum(capped, below), below

    def totals(self, level: FloatArray, rate: FloatArray, without: IndexArray | None) -> Totals:
        """The sums at each level and rate, without one person each."""
        capped, below = self.places(level, rate)
        return self.between(level, capped, below, without)

    def bought(self, level: FloatArray, rate: FloatArray, without: IndexArray | None) -> tuple[FloatArray, FloatArray]:
        """``Σ ε`` and the mass of those inside or about to be."""
        offset = self.people.offset
        below = offset.searchsorted(level, side="right")
        capped = np.minimum(offset.searchsorted(level - self.cap / rate, side="right"), below)
        mass = (below - capped).astype(np.float64)
        total = capped * self.cap + rate * (mass * level - (self._rounded[below] - self._rounded[capped]))
        if without is not None:
            own = self.people.offset[np.minimum(without, self.people.offset.size - 1)]
            of_cap, of_inside = without < capped, (without >= capped) & (without < below)
            mass -= of_inside
            total -= self.cap * of_cap + rate * (level - own) * of_inside
        return total, mass

    def holds(self, level: FloatArray, rate: FloatArray) -> BoolArray:
        """Everywhere up to the top."""
        return level <= self.top

    def moments(self, capped: IndexArray, below: IndexArray, without: IndexArray) -> "Moments":
        """The sums that do not depend on a level if so many are at the cap, and so many at the cap or inside."""
        at = self.between(np.zeros(capped.size), capped, below, without)
        own = self.people.offset[np.minimum(without, self.people.offset.size - 1)]
        second = self._second[below] - self._second[capped]
        second = second - own.astype(np.longdouble) ** 2 * ((without >= capped) & (without < below))
        plain = np.asarray(second, dtype=np.float64)
        return Moments(
            at.first, self.base * (2.0 * at.first - self.base * at.mass) + plain, at.used, at.squares, at.spent
        )

    def between(self, level: FloatArray, capped: IndexArray, below: IndexArray, without: IndexArray | None) -> Totals:
        """The sums if so many are at the cap, and so many below the level."""
        used = capped.astype(np.float64)
        mass = (below - capped).astype(np.float64)
        first, second = self._first[below] - self._first[capped], self._second[below] - self._second[capped]
        spent = self._first[capped]
        if without is not None:
            own = self.people.offset[np.minimum(without, self.people.offset.size - 1)]
            of_cap, of_inside = without < capped, (without >= capped) & (without < below)
            used -= of_cap
            mass -= of_inside
            spent = spent - own * of_cap
            first = first - own * of_inside
            second = second - own.astype(np.longdouble) ** 2 * of_inside
        gain = np.maximum(mass * level - first, 0.0)
        paid = np.maximum(self.base * gain + (level * first - second), 0.0)
        plain = [np.asarray(one, dtype=np.float64) for one in (first, gain, paid, spent)]
        return Totals(
            mass=mass,
            first=self.base * mass + plain[0],
            gain=plain[1],
            paid=plain[2],
            room=mass * self.cap,
            used=used * self.cap,
            squares=used * (self.cap * self.cap),
            spent=(self.base * used + plain[3]) * self.cap,
        )


_STEPS = 6
_INSIDE, _CAPPED, _LOOSE = 1, 2, 3
_MUCH = 1.0 / 16.0


class Various:
    """People with a variance and a cap each; those who are in one group all over a box are summed once."""

    def __init__(
        self,
        base: float,
        people: People,
        levels: tuple[float, float] | None = None,
        rates: tuple[float, float] | None = None,
        *,
        top: float = np.inf,
    ) -> None:
        self.base, self.people, self.top = base, people, top
        self._group = np.full(people.offset.size, _LOOSE, dtype=np.int8)
        self._middle = 0.0
        self._levels, self._rates = levels or (-np.inf, np.inf), rates or (-np.inf, np.inf)
        if levels is not None and rates is not None:
            self._fix(levels, rates)
        self.loose = np.flatnonzero(self._group == _LOOSE)
        self.seen = people.take(self.loose)
        self._sums = Sums(base, self.seen)
        self._column = np.full(people.offset.size + 1, -1)
        self._column[self.loose] = np.arange(self.loose.size)
        self._fixed_inside = people.take(self._group == _INSIDE)
        fixed_capped = people.take(self._group == _CAPPED)
        # sums at the middle of the box, from which levels are near
        inside, cost = self._fixed_inside, base + self._fixed_inside.offset
        below = inside.mass * (self._middle - inside.offset)
        self._inside = [
            float(one.sum())
            for one in (inside.mass, inside.mass * cost, below, below * cost, np.minimum(inside.cap, NO_CAP))
        ]
        spent = fixed_capped.cap * (base + fixed_capped.offset)
        self._capped = [float(one.sum()) for one in (fixed_capped.cap, fixed_capped.square, spent)]

    def _fix(self, levels: tuple[float, float], rates: tuple[float, float]) -> None:
        """Who is in the same group at every level and rate of the box; who is much of her group stays loose."""
        people = self.people
        inside_low, capped_low = people.groups(levels[0], rates[0])
        inside_high, _ = people.groups(levels[1], rates[1])
        inside = inside_low & inside_high
        self._group[people.offset >= levels[1]] = 0
        self._group[inside] = _INSIDE
        self._group[capped_low] = _CAPPED
        # without her a difference of two sums would be left, of which too little is exact
        gain = people.mass * (levels[0] - people.offset)
        for group, shares in ((inside, (people.mass, gain)), (capped_low, (people.cap, people.square))):
            for share in shares:
                heavy = group & (share > _MUCH * float(share.sum(where=group)))
                self._group[heavy] = _LOOSE
        self._middle = 0.5 * (levels[0] + levels[1])

    def totals(self, level: FloatArray, rate: FloatArray, without: IndexArray | None) -> Totals:
        """The sums at each level and rate, without one person each."""
        unless = None
        if without is not None:
            column = self._column[without]
            there = np.flatnonzero(column >= 0)
            unless = there, column[there]
        found = self._sums.totals(level, rate, unless)
        if self.loose.size == self.people.offset.size:
            return found
        mass, first, gain, paid, room = self._inside
        away = level - self._middle
        one = np.ones_like(level)
        found = found.plus(
            Totals(
                one * mass,
                one * first,
                gain + away * mass,
                paid + away * first,
                one * room,
                *(one * x for x in self._capped),
            )
        )
        return found if without is None else found.plus(self._own(level, rate, without), -1.0)

    def bought(self, level: FloatArray, rate: FloatArray, without: IndexArray | None) -> tuple[FloatArray, FloatArray]:
        """``Σ ε`` and the mass of those inside or about to be; everybody is looked at."""
        people = self.people
        below = level[:, None] - people.offset
        wanted = rate[:, None] * people.mass * below
        inside = (below >= 0.0) & (wanted < people.cap)
        bought = np.clip(wanted, 0.0, people.cap)
        if without is not None:
            there = np.flatnonzero(without < people.offset.size)
            inside[there, without[there]], bought[there, without[there]] = False, 0.0
        return bought.sum(axis=1), inside @ people.mass

    def holds(self, level: FloatArray, rate: FloatArray) -> BoolArray:
        """In the box, up to the top."""
        (low, high), (slow, fast) = self._levels, self._rates
        with np.errstate(invalid="ignore"):
            inside: BoolArray = (level >= low) & (level <= min(high, self.top)) & (rate >= slow) & (rate <= fast)
        return inside

    def rest(self, without: IndexArray) -> Moments:
        """The sums over those who are not loose, without one person each."""
        inside, one = self._fixed_inside, np.ones(without.size)
        second = float((inside.mass * (self.base + inside.offset) ** 2).sum())
        own = self._own(np.zeros(without.size), one, without)
        cost = self.base + self.people.offset[np.minimum(without, self.people.offset.size - 1)]
        return Moments(
            self._inside[1] - own.first,
            second - own.first * cost,
            self._capped[0] - own.used,
            self._capped[1] - own.squares,
            self._capped[2] - own.spent,
        )

    def _own(self, level: FloatArray, rate: FloatArray, without: IndexArray) -> Totals:
        """What the person left out adds to the sums of those in one group all over the box."""
        there = without < self.people.offset.size
        place = np.where(there, without, 0)
        own, group = self.people.take(place), np.where(there, self._group[place], 0)
        cost = self.base + own.offset
        mass, used = np.where(group == _INSIDE, own.mass, 0.0), np.where(group == _CAPPED, own.cap, 0.0)
        gain = mass * (level - own.offset)
        room = np.where(group == _INSIDE, np.minimum(own.cap, NO_CAP), 0.0)
        squares = np.where(group == _CAPPED, own.square, 0.0)
        return Totals(mass, mass * cost, gain, gain * cost, room, used, squares, used * cost)


@dataclass(frozen=True, slots=True, eq=False)
class Variants:
    """Populations that each are one crowd without one person, and with one more."""

    crowd: Crowd
    """Everybody."""

    without: IndexArray | None = None
    """Who is left out of each, by place in the crowd (beyond the last: nobody); None: there is one, with everybody."""

    moved: People | None = None
    """Who is added to each."""

    @property
    def count(self) -> int:
        """How many populations."""
        return 1 if self.without is None else self.without.size

    def on(self, crowd: Crowd) -> "Variants":
        """The same, summed otherwise."""
        return Variants(crowd, self.without, self.moved)

    def take(self, which: IndexArray) -> "Variants":
        """Some of them."""
        if self.without is None or self.moved is None:
            return self
        return Variants(self.crowd, self.without[which], self.moved.take(which))

    def totals(self, level: FloatArray, rate: FloatArray, which: IndexArray | None = None) -> Totals:
        """The sums at a level and a rate in each population, or in ``which`` of them."""
        if self.without is None or self.moved is None:
            return self.crowd.totals(level, rate, None)
        without, moved = self.without, self.moved
        if which is not None:
            without, moved = without[which], moved.take(which)
        found = self.crowd.totals(level, rate, without)
        return found.plus(moved.totals(self.crowd.base, level, rate))

    def _bought(self, level: FloatArray, rate: FloatArray, which: IndexArray) -> tuple[FloatArray, FloatArray]:
        """``Σ ε`` and the mass of those inside or about to be, in some of the populations."""
        if self.without is None or self.moved is None:
            return self.crowd.bought(level, rate, None)
        total, mass = self.crowd.bought(level, rate, self.without[which])
        moved = self.moved.take(which)
        own = np.clip(rate * moved.mass * (level - moved.offset), 0.0, moved.cap)
        return total + own, mass + np.where((level >= moved.offset) & (own < moved.cap), moved.mass, 0.0)

    def levels(
        self, rate: FloatArray, target: FloatArray, which: IndexArray, near: FloatArray | None = None
    ) -> FloatArray:
        """The level at which losses at a rate add up to a target, perhaps ``near`` some level.

        Newton's method may find it from there. If not: first between which two costs it lies; there their sum is
        concave, so Newton's method from the left stays left of it and is there after a few steps.
        """
        if near is not None:
            level, unsolved = self._newton(near.copy(), rate, target, which, _STEPS)
            if unsolved.size:
                level[unsolved] = self.levels(rate[unsolved], target[unsolved], which[unsolved])
            return level
        edges, every = self.crowd.people.offset, np.arange(rate.size)
        low, high = np.zeros(rate.size, dtype=np.intp), np.full(rate.size, edges.size)
        # so many costs are surely below the level, and at most so many
        unsolved = every
        while unsolved.size:
            middle = (low[unsolved] + high[unsolved]) // 2
            short = self._bought(edges[middle], rate[unsolved], which[unsolved])[0] < target[unsolved]
            low[unsolved], high[unsolved] = (
                np.where(short, middle + 1, low[unsolved]),
                np.where(short, high[unsolved], middle),
            )
            unsolved = unsolved[low[unsolved] < high[unsolved]]
        level = edges[np.maximum(low - 1, 0)].copy()
        if self.moved is not None:  # her cost may lie between, and be the first
            own = self.moved.offset[which]
            right = np.append(edges, np.inf)[low]
            some = every[(own < right) & ((own > level) | (low == 0)) & (self.moved.mass[which] > 0.0)]
            short = self._bought(own[some], rate[some], which[some])[0] < target[some]
            level[some[short]] = own[some[short]]
        return self._newton(level, rate, target, which, 64)[0]

    def _newton(
        self, level: FloatArray, rate: FloatArray, target: FloatArray, which: IndexArray, steps: int
    ) -> tuple[FloatArray, IndexArray]:
        """So many steps of Newton's method; and where it is not there yet."""
        unsolved = np.arange(level.size)
        for _ in range(steps):
            total, mass = self._bought(level[unsolved], rate[unsolved], which[unsolved])
            missing = target[unsolved] - total
            level[unsolved] += missing / (rate[unsolved] * np.where(mass > 0.0, mass, np.inf))
            unsolved = unsolved[np.abs(missing) > 2e-14 * target[unsolved]]
            if unsolved.size == 0:
                break
        return level, unsolved
