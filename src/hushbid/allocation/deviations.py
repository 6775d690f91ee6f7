"""Populations in which one person's cost is replaced, for many (person, cost) pairs at once.

Replacing one cost changes the sums of the person's stratum by rank-one terms; the sums of the other strata are those of
all pieces less the stratum's. A *guess* is a ``T``, which says who is active in the other strata, and a water level of
the person's stratum, which says who is active there. With ``(U_o, m_o, Q_o)`` of the other active people of the
stratum, ``u`` the person's mass and ``d`` their cost less ``m_o``,

    U = U_o + u,   m = m_o + u·d/U,   Q = Q_o + (U_o u/U)·d²,      U(τ − ψ) = λT − U_o·d.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.allocation.pieces import Pieces, Stratum
from hushbid.allocation.targets import Elsewhere, Sums, Target
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

ROUNDS = 100  # after so many guesses only those are left that go to and fro between neighbours by rounding


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """Everybody, as the deviations of one stratum's people see them."""

    own: Stratum  # the stratum
    own_pieces: Pieces  # the pieces of the stratum alone
    pieces: Pieces  # all strata together
    base: float  # Σ λ_h·base_h over the other strata
    total: FloatArray  # mass of the first 0, 1, 2, … people of the stratum
    first: FloatArray
    second: FloatArray  # their first and second moments about its base
    other_keys: FloatArray  # the keys of the other strata, ascending

    @classmethod
    def of(cls, strata: Sequence[Stratum], pieces: Pieces, stratum: int) -> "Surroundings":
        """Return the view from this stratum."""
        own = strata[stratum]
        base = sum(one.size * one.base for g, one in enumerate(strata) if g != stratum)
        weighted = own.mass * own.offset
        total, first, second = (np.append(0.0, part.cumsum()) for part in (own.mass, weighted, weighted * own.offset))
        if len(strata) == 1:
            return cls(own, pieces, pieces, base, total, first, second, np.zeros(0))
        keys = np.sort(np.concatenate([one.key for g, one in enumerate(strata) if g != stratum]))
        return cls(own, Pieces.of([own]), pieces, base, total, first, second, keys)

    def elsewhere(self, at: FloatArray) -> Elsewhere:
        """Return the piece that ``T`` lies in, and ``M``, ``Q`` and ``c`` of the other strata there.

        Of one stratum all are 0.
        """
        pieces, own = self.pieces, self.own_pieces
        if own is pieces:
            none = np.zeros(at.shape)
            return none.astype(np.intp), none, none, none
        piece = np.maximum(pieces.key.searchsorted(at) - 1, 0)
        k = np.maximum(own.key.searchsorted(at) - 1, 0)
        slope = np.maximum(pieces.slope[piece] - own.slope[k], 0.0)
        spread = np.maximum(pieces.spread[piece] - own.spread[k], 0.0)
        floor = np.maximum(pieces.floor[piece] - own.floor[k], 0.0)
        return piece, self.base + slope, spread, floor


@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """Deviations of people of one stratum."""

    view: Surroundings
    mass: FloatArray  # each person's mass
    own: FloatArray  # the present cost, counted from the base; infinite for people who cannot be bought from
    to: FloatArray  # the other cost, counted from the base; infinite for leaving
    cost: FloatArray  # the same, counted from 0: far below the base the difference has lost its digits
    place: IndexArray  # the person's place in the stratum; −1 where nobody there is the person
    rank: IndexArray  # the person is among the first so many, and one; the number of people if they are not there

    def take(self, which: Any) -> "Deviations":
        """Return some of them, in the shape of the index."""
        return Deviations(self.view, *(getattr(self, name)[which] for name in self.__slots__[1:]))

    @property
    def size(self) -> float:
        """``λ`` of the stratum."""
        return self.view.own.size

    @property
    def there(self) -> BoolArray:
        """Whether the person is in the stratum as it is."""
        there: BoolArray = self.rank < self.view.own.offset.size
        return there

    def lowest(self) -> FloatArray:
        """Return the smallest cost in the stratum, counted from the base; infinite if nobody is left."""
        offset = np.append(self.view.own.offset, [math.inf, math.inf])
        lowest: FloatArray = np.minimum(self.to, np.where(self.place == 0, offset[1], offset[0]))
        return lowest

    def without_person(self, count: IndexArray, gone: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ``U_o``, ``m_o`` and ``Q_o`` of the first ``count`` people, the person left out where ``gone``."""
        view = self.view
        out, own = np.where(gone, self.mass, 0.0), np.where(gone, self.own, 0.0)
        nobody = count - gone <= 0  # what is left of a difference is rounding
        total = np.where(nobody, 0.0, view.total[count] - out)
        first = np.where(nobody, 0.0, view.first[count] - out * own)
        second = view.second[count] - out * own * own
        centre = first / np.where(nobody, 1.0, total)
        return total, centre, np.where(nobody, 0.0, np.maximum(second - first * centre, 0.0))

    def sums(self, at: FloatArray, level: FloatArray) -> Sums:
        """Return who is active at ``T`` and at the level of the stratum, and their sums."""
        return self._sums(level, self.view.elsewhere(at))

    def _sums(self, level: FloatArray, elsewhere: Elsewhere) -> Sums:
        view, size = self.view, self.size
        piece, mean, spread, floor = elsewhere
        count = view.own.offset.searchsorted(level)
        present = self.to < level
        others, around, inner = self.without_person(count, self.own < level)
        mass = np.where(present, self.mass, 0.0)
        to = np.where(present, self.to, 0.0)
        some = others > 0.0
        away = np.where(present & some, to - around, 0.0)
        # alone: about the person's own cost
        centred = np.where(some, view.own.base + around, self.cost)
        around = np.where(some, around, to)
        total = others + mass
        part = mass / total * away
        mean_at = mean + size * centred
        spread_without = spread + inner
        return Sums(
            piece=piece,
            count=count,
            present=present,
            others=others,
            away=away,
            mean_at=mean_at,
            spread_without=spread_without,
            floor_without=floor,
            total=total,
            centre=around + part,
            mean=mean_at + size * part,
            spread=spread_without + others * part * away,
            floor=floor + size * size / total,
        )

    def follow(
        self, target: Target, incumbent: float, *, rounds: int = ROUNDS
    ) -> tuple[FloatArray, FloatArray, Sums, IndexArray]:
        """Return ``T``, the water level of the stratum and the sums of each, and which did not settle.

        ``T`` is infinite where there is no answer. Guesses begin at the ``T`` of the incumbent.
        """
        own, lowest = self.view.own, self.lowest()
        least = np.nextafter(lowest, math.inf)
        # past everybody
        highest = 2.0 * np.maximum(np.where(self.to < math.inf, self.to, 0.0), float(own.offset[-1])) + 1.0
        farthest = math.nextafter(float(self.view.pieces.key[-1]) * 2.0 + 1.0, math.inf)
        now = incumbent if 0.0 < incumbent < math.inf else farthest
        at = np.full(lowest.size, now)
        level = np.full(lowest.size, own.level(now)) if now < farthest else highest.copy()
        level = np.maximum(level, least)
        sums = self.sums(at, level)
        unsolved, some, current = np.arange(lowest.size), self, sums
        for _ in range(rounds):
            new = target.root(current.mean, current.spread, current.floor)
            enough = target.has_root(current.mean, current.floor)
            # too few to have an answer of their own: from everybody on, and if they are too few, none
            nobody = ~enough & (at[unsolved] >= farthest) & (level[unsolved] >= highest[unsolved])
            here = np.where(enough, np.maximum(new, 1e-300), np.where(nobody, math.inf, farthest))
            above = np.where(enough, current.level(self.size, new), highest[unsolved])
            above = np.maximum(above, least[unsolved])
            after = some.sums(np.minimum(here, farthest), above)
            at[unsolved], level[unsolved] = here, above
            # a level that by rounding leaves too few belongs to those before
            fewer = enough & ~target.has_root(after.mean, after.floor)
            settled = after.same(current) & enough | nobody
            if settled.all():  # among the same people all sums are the same
                return at, level, sums, unsolved[:0]
            going = ~fewer
            sums.put(unsolved[going], after.take(going))
            left = np.flatnonzero(~(settled | fewer))
            if left.size == 0:
                return at, level, sums, left
            unsolved, some, current = unsolved[left], some.take(left), after.take(left)
        return at, level, sums, unsolved

    def paths(self) -> "Paths":
        """Return the pieces of each pair's path.

        Pieces end where a person of the stratum enters, the moved one included, or one of another stratum; the last
        is past everybody. Ends before anybody is active are at 0.
        """
        own, keys, pairs = self.view.own, self.view.other_keys, self.to.size
        every = self.take(np.s_[:, None])
        to = np.where(every.to < math.inf, every.to, 0.0)
        level = np.empty((pairs, own.offset.size + 2))
        level[:, :-2], level[:, -2:-1] = own.offset, to
        level[:, -1:] = 2.0 * np.maximum(to, float(own.offset[-1])) + 1.0
        level.sort(axis=1)
        nobody = np.zeros(level.shape)
        sums = every._sums(level, (nobody.astype(np.intp), nobody, nobody, nobody))
        end = np.where(sums.total > 0.0, np.maximum(sums.total * (level - sums.centre) / self.size, 0.0), 0.0)
        np.maximum.accumulate(end, axis=1, out=end)  # neighbours out of order by rounding would have the wrong people
        place = np.arange(end.size).reshape(end.shape)
        if keys.size:
            end[:, -1] = np.maximum(end[:, -1], 2.0 * float(keys[-1]) + 1.0)
            end = np.hstack([end, np.broadcast_to(keys, (pairs, keys.size))])
            order = end.argsort(axis=1, kind="stable")
            end = np.take_along_axis(end, order, axis=1)
            # where one of another stratum enters, those of this one are active who are up to their own next end
            last = level.shape[1] - 1
            own_end = np.minimum.accumulate(np.minimum(order, last)[:, ::-1], axis=1)[:, ::-1]
            place = place[:, :1] + own_end
        start = np.zeros(end.shape)
        start[:, 1:] = end[:, :-1]
        end[:, -1] = math.inf
        return Paths(self.view, start, end, place, sums)


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The pieces of many paths, a row for each."""

    view: Surroundings
    low: FloatArray  # the T at which each piece begins, ascending
    high: FloatArray  # the T at which it ends
    place: IndexArray  # where the piece is among the pieces of the stratum alone
    alone: Sums  # the sums of those, of the stratum alone

    def terms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ``M``, ``Q`` and ``c`` of each piece."""
        alone = self.alone.mean, self.alone.spread, self.alone.floor
        if not self.view.other_keys.size:
            return alone
        _, *elsewhere = self.view.elsewhere(np.nextafter(self.low, math.inf))
        mean, spread, floor = (one.take(self.place) + more for one, more in zip(alone, elsewhere, strict=True))
        return mean, spread, floor

    def sums(self, pieces: IndexArray) -> Sums:
        """Return the sums of one piece of each path, by their numbers among all."""
        places = np.unravel_index(self.place.ravel()[pieces], self.alone.mean.shape)
        start = np.nextafter(self.low.ravel()[pieces], math.inf)  # there the other strata's sums have most digits
        found = self.alone.take(places)
        return found.beside(self.view.elsewhere(start)) if self.view.other_keys.size else found
