"""The point of the frontier at a given ``σ``, by sorting: exact for any set of people inside, at the cap or out.

At given ``σ`` both what a stratum gives, ``Y = Σ y``, and ``h = Σ y(λ − Vy)`` are piecewise linear in its water level:
they bend where a person enters, at ``λ = ψ``, and where a person reaches their cap, at ``λ = ψ + σe/u``. Of (★) in
:mod:`hushbid.allocation.frontier` there remains ``Y_g = ℓ_g·T`` in every stratum and ``Σ h_g = 2σ²``. So sort the bends
of each stratum, add up, and merge the strata by ``T``: along that order ``Σ h_g`` rises, also where ``T`` rests because
nobody of a stratum is inside.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation.pool import Levels
from hushbid.allocation.populations import Populations
from hushbid.common.arrays import FloatArray, IndexArray

LongArray = NDArray[np.longdouble]

_CELLS = 1 << 18  # so many bends, times strata, are worked on together


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """The bends of every stratum in order of the level, one row for each population."""

    sizes: FloatArray
    starts: IndexArray  # the first column of each stratum
    codes: IndexArray  # the stratum of each column
    cost: FloatArray
    over: FloatArray  # the level is cost + over at a bend
    mass: LongArray  # dY/dλ from the bend on; exactly 0 where nobody is inside
    slope: LongArray  # dh/dλ
    given: LongArray  # Y at the bend
    height: LongArray  # h at the bend
    at: LongArray  # T at the bend; infinite where there is none, or where it cannot be reached

    @classmethod
    def of(cls, populations: Populations, sigma: FloatArray) -> "Sweep":
        """Sort the bends at these ``σ``."""
        costs, mass, cap, codes = _people(populations, sigma.size)
        step = sigma[:, None]
        there, capped = mass > 0.0, (mass > 0.0) & (cap < np.inf)
        finite = np.where(capped, cap, 0.0)
        over = np.divide(finite, mass, out=np.zeros(costs.shape), where=capped) * step
        zero, leaving = np.zeros(costs.shape), np.where(capped, mass, 0.0)
        level = np.hstack([np.where(there, costs, np.inf), np.where(capped, costs + over, np.inf)])
        # at each bend: how many come inside, their mass, their mass times cost, what is used of caps; cost, and over it
        bends = np.stack(
            [
                np.hstack([there, -1.0 * capped]),
                np.hstack([mass, -leaving]),
                np.hstack([mass * costs, -leaving * costs]),
                np.hstack([zero, finite * step]),
                np.hstack([costs, costs]),
                np.hstack([zero, over]),
            ]
        )
        order = np.lexsort((bends[5], level, np.broadcast_to(np.append(codes, codes), level.shape)), axis=1)
        level = np.take_along_axis(level, order, axis=1)
        bends = np.take_along_axis(bends, order[None], axis=2)
        codes = np.sort(np.append(codes, codes), kind="stable")
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        inside, mass_, slope, used = _running(bends[:4].astype(np.longdouble), starts)
        nobody = inside < 0.5
        mass_[nobody] = slope[nobody] = 0.0
        slope += used
        width = np.zeros(level.shape)
        width[:, 1:] = np.maximum(np.diff(bends[4], axis=1) + np.diff(bends[5], axis=1), 0.0)
        width[:, starts] = 0.0
        width[level == np.inf] = 0.0
        rises = np.zeros((2, *level.shape), dtype=np.longdouble)
        rises[:, :, 1:] = np.stack([mass_, slope])[:, :, :-1] * width[:, 1:]
        given, height = _running(rises, starts)
        at = np.where(level < np.inf, given / populations.sizes[codes], np.inf)
        at[at > _most(at, mass_, starts)[:, None]] = np.inf
        return cls(populations.sizes, starts, codes, bends[4], bends[5], mass_, slope, given, height, at)

    def point(self, sigma: FloatArray) -> tuple[FloatArray, Levels]:
        """Return ``T`` and the levels of the point of the path, at the ``σ`` of the bends."""
        rows, columns = np.arange(sigma.size), self.at.shape[1]
        order = np.argsort(self.at, axis=1, kind="stable")
        at, rank = np.take_along_axis(self.at, order, axis=1), np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(np.arange(columns), order.shape), axis=1)
        goal = 2.0 * sigma.astype(np.longdouble) ** 2
        # everybody's cheapest enters at T = 0; the heights rise along the order
        first, end = np.maximum((at <= 0.0).sum(axis=1), 1) - 1, np.maximum((at < np.inf).sum(axis=1), 1)
        while (end - first > 1).any():
            middle = (first + end) // 2
            below = self._passed(rows, rank, at, middle)[1] <= goal
            first, end = np.where(below, middle, first), np.where(below, end, middle)
        place, height = self._passed(rows, rank, at, first)
        return self._between(rows[:, None], place, at[rows, first], np.maximum(goal - height, 0.0))

    def _passed(
        self, rows: IndexArray, rank: IndexArray, at: LongArray, last: IndexArray
    ) -> tuple[IndexArray, LongArray]:
        """Return the last bend of each stratum up to one of all, and ``Σ h`` there."""
        count = np.add.reduceat(rank <= last[:, None], self.starts, axis=1, dtype=np.intp)
        place = self.starts + np.maximum(count - 1, 0)
        return place, self._heights(rows[:, None], place, at[rows, last][:, None], self.sizes).sum(axis=1)

    def _between(self, rows: IndexArray, place: IndexArray, t: LongArray, left: LongArray) -> tuple[FloatArray, Levels]:
        """Return the point behind the bends at ``place``, where ``Σ h`` is by ``left`` higher than at ``T = t``."""
        mass, slope = self.mass[rows, place], self.slope[rows, place]
        flat = ~(mass > 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = np.where(flat, 0.0, slope * self.sizes / mass).sum(axis=1)
            t = np.where(flat.any(axis=1), t, t + left / steep)
            rest = np.maximum((self.sizes * t[:, None] - self.given[rows, place]) / mass, 0.0)
            lift = left[:, None] / np.where(flat, slope, 0.0).sum(axis=1)[:, None]
        return t.astype(np.float64), self._levels(rows, place, np.where(flat, lift, rest))

    def _levels(self, rows: IndexArray, place: IndexArray, rest: LongArray) -> Levels:
        """Return levels that are by so much above those of some bends."""
        over = (self.over[rows, place] + rest).T.astype(np.float64)
        return Levels(self.cost[rows, place].T, np.zeros(over.shape)).moved(over)

    def _heights(self, rows: IndexArray, place: IndexArray, at: LongArray, sizes: FloatArray) -> LongArray:
        """Return ``h`` of some strata from the bend at ``place`` on, where each gives its share of ``T``."""
        mass = self.mass[rows, place]
        with np.errstate(divide="ignore", invalid="ignore"):
            more = self.slope[rows, place] * (sizes * at - self.given[rows, place]) / mass
        return self.height[rows, place] + np.where((mass > 0.0) & (at < np.inf), more, 0.0)

    def filled(self, t: FloatArray) -> Levels:
        """Return the levels at which every stratum gives its share of ``T``."""
        rows = np.arange(t.size)[:, None]
        below = np.add.reduceat(self.at <= t[:, None], self.starts, axis=1, dtype=np.intp)
        place = self.starts + np.maximum(below - 1, 0)
        mass = self.mass[rows, place]
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.where(mass > 0.0, (self.sizes * t[:, None] - self.given[rows, place]) / mass, 0.0)
        return self._levels(rows, place, np.maximum(rest, 0.0))


def _people(populations: Populations, count: int) -> tuple[FloatArray, FloatArray, FloatArray, IndexArray]:
    """Return cost, mass and cap of everybody in each population, and their strata; who moved is in the last column."""
    people, codes, moves = populations.people, populations.people.codes, populations.moves
    costs, mass, cap = (np.repeat(one[None], count, axis=0) for one in (people.costs, people.mass, people.cap))
    if moves is None:
        return costs, mass, cap, codes
    here = np.flatnonzero(moves.person < codes.size)
    mass[here, moves.person[here]] = 0.0
    costs, mass, cap = (
        np.hstack([old, new[:, None]]) for old, new in ((costs, moves.cost), (mass, moves.mass), (cap, moves.cap))
    )
    return costs, mass, cap, np.append(codes, populations.stratum)


def _running(each: LongArray, starts: IndexArray) -> LongArray:
    """Return running sums along the last axis, by themselves in every stratum: one extreme cost blurs no other's."""
    return np.concatenate([part.cumsum(axis=-1) for part in np.split(each, starts[1:], axis=-1)], axis=-1)


def _most(at: LongArray, mass: LongArray, starts: IndexArray) -> LongArray:
    """Return the largest ``T``: where everybody of some stratum is at the cap."""
    rows = np.arange(at.shape[0])[:, None]
    last = starts + np.maximum(np.add.reduceat(at < np.inf, starts, axis=1, dtype=np.intp) - 1, 0)
    ends: LongArray = np.where(mass[rows, last] > 0.0, np.inf, at[rows, last]).min(axis=1)
    return ends


def swept(populations: Populations, sigma: FloatArray) -> tuple[FloatArray, Levels]:
    """Return ``T`` and the levels of the point at each ``σ``, some populations at a time."""
    step, every = max(_CELLS // (2 * (populations.people.size + 1)), 1), np.arange(sigma.size)
    parts = []
    for begin in range(0, sigma.size, step):
        part = every[begin : begin + step]
        parts.append(Sweep.of(populations.take(part), sigma[part]).point(sigma[part]))
    t = np.concatenate([part[0] for part in parts])
    high, low = (np.concatenate([getattr(part[1], name) for part in parts], axis=1) for name in ("high", "low"))
    return t, Levels(high, low)
