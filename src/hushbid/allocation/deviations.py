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

import numpy as np

from hushbid.allocation.deviation_sums import Sums
from hushbid.allocation.pieces import Pieces, Stratum
from hushbid.allocation.targets import Target
from hushbid.arrays import BoolArray, FloatArray, IndexArray

ROUNDS = 100
"""After so many guesses only those are left that go to and fro between neighbours by rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """Everybody, as the deviations of one stratum's people see them."""

    own: Stratum
    """The stratum."""

    own_pieces: Pieces
    """The pieces of the stratum alone."""

    pieces: Pieces
    """All strata together."""

    base: float
    """``Σ λ_h·base_h`` over the other strata."""

    total: FloatArray
    """Mass of the first 0, 1, 2, … people of the stratum."""

    first: FloatArray
    second: FloatArray
    """Their first and second moments about its base."""

    @classmethod
    def of(cls, strata: Sequence[Stratum], pieces: Pieces, stratum: int) -> "Surroundings":
        """Return the view from this stratum."""
        own = strata[stratum]
        base = sum(one.size * one.base for g, one in enumerate(strata) if g != stratum)
        weighted = own.mass * own.offset
        sums = (np.append(0.0, part.cumsum()) for part in (own.mass, weighted, weighted * own.offset))
        own_pieces = pieces if len(strata) == 1 else Pieces.of([own])
        return cls(own, own_pieces, pieces, base, *sums)

    def elsewhere(self, at: FloatArray) -> tuple[IndexArray, FloatArray, FloatArray, FloatArray]:
        """Return the piece that ``T`` lies in, and ``M``, ``Q`` and ``c`` of the other strata there.

        For one stratum the differences are exactly 0.
        """
        pieces, own = self.pieces, self.own_pieces
        piece = np.maximum(pieces.key.searchsorted(at) - 1, 0)
        if own is pieces:
            none = np.zeros(piece.shape)
            return piece, none, none, none
        k = np.maximum(own.key.searchsorted(at) - 1, 0)
        slope = np.maximum(pieces.slope[piece] - own.slope[k], 0.0)
        spread = np.maximum(pieces.spread[piece] - own.spread[k], 0.0)
        floor = np.maximum(pieces.floor[piece] - own.floor[k], 0.0)
        return piece, self.base + slope, spread, floor


@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """Deviations of people of one stratum."""

    view: Surroundings
    mass: FloatArray
    """Each person's mass."""

    own: FloatArray
    """The present cost, counted from the base; infinite for people who cannot be bought from."""

    to: FloatArray
    """The other cost; infinite for leaving."""

    place: IndexArray
    """The person's place in the stratum; −1 where nobody there is the person."""

    rank: IndexArray
    """The person is among the first so many, and one; the number of people if they are not there."""

    def take(self, which: IndexArray | BoolArray) -> "Deviations":
        """Return some of them."""
        return Deviations(self.view, *(getattr(self, name)[which] for name in ("mass", "own", "to", "place", "rank")))

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
        view, size = self.view, self.size
        piece, mean, spread, floor = view.elsewhere(at)
        count = view.own.offset.searchsorted(level)
        present = self.to < level
        others, around, inner = self.without_person(count, self.own < level)
        mass = np.where(present, self.mass, 0.0)
        to = np.where(present, self.to, 0.0)
        away = np.where(present & (others > 0.0), to - around, 0.0)
        around = np.where(others > 0.0, around, to)  # alone: about the person's own cost
        total = others + mass
        with np.errstate(divide="ignore", invalid="ignore"):
            share = mass / total
            mean_at = mean + size * (view.own.base + around)
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
                centre=around + share * away,
                mean=mean_at + size * share * away,
                spread=spread_without + others * share * away * away,
                floor=floor + size * size / total,
            )

    def follow(
        self, target: Target, incumbent: float, *, rounds: int = ROUNDS, start: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, Sums, IndexArray]:
        """Return ``T``, the water level of the stratum and the sums of each, and which did not settle.

        ``T`` is infinite where there is no answer. Guesses begin at ``start``, or all at the ``T`` of the incumbent.
        """
        own, lowest = self.view.own, self.lowest()
        least = np.nextafter(lowest, math.inf)
        # past everybody
        highest = 2.0 * np.maximum(np.where(self.to < math.inf, self.to, 0.0), float(own.offset[-1])) + 1.0
        farthest = math.nextafter(float(self.view.pieces.key[-1]) * 2.0 + 1.0, math.inf)
        if start is not None:
            at, level = start.copy(), self.levels(start)
        else:
            now = incumbent if 0.0 < incumbent < math.inf else farthest
            at = np.full(lowest.size, now)
            level = np.full(lowest.size, own.level(now)) if now < farthest else highest.copy()
        level = np.maximum(level, least)
        sums = self.sums(at, level)
        unsolved = np.arange(lowest.size)
        for _ in range(rounds):
            some, current, here = self.take(unsolved), sums.take(unsolved), at[unsolved]
            new = target.root(current.mean, current.spread, current.floor)
            enough = new < math.inf
            # too few to have an answer of their own: from everybody on, and if they are too few, none
            nobody = ~enough & (here >= farthest) & (level[unsolved] >= highest[unsolved])
            at[unsolved] = np.where(enough, np.maximum(new, 1e-300), np.where(nobody, math.inf, farthest))
            above = np.where(enough, current.level(self.size, new), highest[unsolved])
            level[unsolved] = np.maximum(above, least[unsolved])
            after = some.sums(np.minimum(at[unsolved], farthest), level[unsolved])
            # a level that by rounding leaves too few belongs to those before
            fewer = enough & ~(target.root(after.mean, after.spread, after.floor) < math.inf)
            sums.put(unsolved[~fewer], after.take(~fewer))
            unsolved = unsolved[~(after.same(current) & enough | nobody | fewer)]
            if unsolved.size == 0:
                break
        return at, level, sums, unsolved

    def breakpoints(self) -> tuple["Deviations", FloatArray, FloatArray]:
        """Return where each path's pieces end, one pair after the other: the pairs repeated, ``T`` and the level.

        Pieces end where a person of the stratum enters, the moved one included, or one of another stratum; the last
        is past everybody. Ends before anybody is active are at 0.
        """
        own, pairs = self.view.own, self.to.size
        to = np.where(self.to < math.inf, self.to, 0.0)[:, None]
        past = 2.0 * np.maximum(to, float(own.offset[-1])) + 1.0
        level = np.hstack([np.broadcast_to(own.offset, (pairs, own.offset.size)), to, past])
        every = self.take(np.repeat(np.arange(pairs), level.shape[1]))
        sums = every.sums(np.zeros(level.size), level.ravel())
        at = sums.total * (level.ravel() - sums.centre) / self.size
        at = np.where(sums.total > 0.0, np.maximum(at, 0.0), 0.0).reshape(pairs, -1)
        if self.view.own_pieces is not self.view.pieces:
            keys = np.broadcast_to(self.view.pieces.key, (pairs, self.view.pieces.key.size))
            there = self.take(np.repeat(np.arange(pairs), keys.shape[1])).levels(keys.ravel()).reshape(keys.shape)
            at, level = np.hstack([at, keys]), np.hstack([level, there])
            every = self.take(np.repeat(np.arange(pairs), level.shape[1]))
        return every, at.ravel(), level.ravel()

    def levels(self, at: FloatArray) -> FloatArray:
        """Return the water level of the stratum at ``T`` for each: Newton's method on a convex function."""
        own, least = self.view.own, np.nextafter(self.lowest(), math.inf)
        k = np.maximum(own.key.searchsorted(at), 1) - 1
        level: FloatArray = np.maximum(own.offset[k] + own.size * (at - own.key[k]) / own.total[k], least)
        unsolved = np.arange(at.size)
        before = self.sums(at, level)
        for _ in range(ROUNDS):
            level[unsolved] = np.maximum(before.level(self.size, at[unsolved]), least[unsolved])
            after = self.take(unsolved).sums(at[unsolved], level[unsolved])
            moving = np.flatnonzero(~after.same(before))
            unsolved, before = unsolved[moving], after.take(moving)
            if unsolved.size == 0:
                break
        return level
