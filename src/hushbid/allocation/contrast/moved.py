"""Populations with strata in which one person's cost is replaced, for many (person, cost) pairs at once.

Replacing one cost changes the sums of her own stratum by rank-one terms; the other strata's are those of all pieces
less her stratum's. A *guess* is a ``T``, which says who is active in the other strata, and a level of her own stratum,
which says who is active there. Solving the piece of a guess gives the next one; a guess that reproduces its piece is a
point of her frontier, exactly.
"""

import math
from dataclasses import dataclass, fields

import numpy as np

from hushbid.allocation.contrast.pieces import Pieces, Stratum
from hushbid.arrays import BoolArray, FloatArray, IndexArray


@dataclass(frozen=True, slots=True, eq=False)
class Others:
    """Everybody, as the pairs of one stratum see them."""

    own: Stratum
    """The stratum."""

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
    def of(cls, strata: list[Stratum], pieces: Pieces, stratum: int) -> "Others":
        """The view from this stratum."""
        own = strata[stratum]
        base = sum(one.size * one.base for g, one in enumerate(strata) if g != stratum)
        weighted = own.mass * own.offset
        sums = (np.append(0.0, part.cumsum()) for part in (own.mass, weighted, weighted * own.offset))
        return cls(own, pieces, base, *sums)

    def elsewhere(self, at: FloatArray) -> tuple[IndexArray, FloatArray, FloatArray, FloatArray]:
        """The piece that ``T`` lies in, and ``M``, ``Q`` and ``C`` of the other strata there."""
        pieces, own = self.pieces, self.own
        piece = np.maximum(pieces.key.searchsorted(at) - 1, 0)
        k = np.maximum(own.key.searchsorted(at), 1)
        total, first = self.total[k], self.first[k]
        mean = first / total
        slope = np.maximum(pieces.slope[piece] - own.size * mean, 0.0)
        spread = np.maximum(pieces.spread[piece] - np.maximum(self.second[k] - first * mean, 0.0), 0.0)
        floor = np.maximum(pieces.floor[piece] - own.size**2 / total, 0.0)
        return piece, self.base + slope, spread, floor


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The piece of a guess, for each pair."""

    piece: IndexArray
    """Where ``T`` lies among all keys."""

    count: IndexArray
    """How many of her stratum, as it is, are below the level."""

    present: BoolArray
    """Whether she is, at her new cost."""

    mean: FloatArray
    """``M``."""

    spread: FloatArray
    """``Q``."""

    floor: FloatArray
    """``C``."""

    total: FloatArray
    """Mass of the active of her stratum."""

    centre: FloatArray
    """Their mean offset."""

    def take(self, which: IndexArray) -> "Found":
        """Some of the pairs'."""
        return Found(*(getattr(self, one.name)[which] for one in fields(self)))

    def put(self, which: IndexArray, new: "Found") -> None:
        """Write over some of the pairs'."""
        for one in fields(self):
            getattr(self, one.name)[which] = getattr(new, one.name)

    def same(self, other: "Found") -> BoolArray:
        """Whether both guesses have the same people active."""
        same: BoolArray = (self.piece == other.piece) & (self.count == other.count) & (self.present == other.present)
        return same

    def level(self, size: float, at: FloatArray) -> FloatArray:
        """The level of her stratum at ``T`` if exactly these people are active."""
        return np.asarray(self.centre + size * at / self.total)


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Pairs of one stratum."""

    others: Others
    mass: FloatArray
    """Each person's mass."""

    own: FloatArray
    """Her offset; infinite if she is not there."""

    to: FloatArray
    """The offset to which she is moved; infinite for leaving."""

    place: IndexArray
    """Her place in the stratum; −1 where nobody there is she."""

    rank: IndexArray
    """She is among the first so many, and one; the number of people if she is not there."""

    def take(self, which: IndexArray | BoolArray) -> "Moved":
        """Some of the pairs."""
        return Moved(self.others, *(getattr(self, name)[which] for name in ("mass", "own", "to", "place", "rank")))

    @property
    def there(self) -> BoolArray:
        """Whether she is in the stratum as it is."""
        there: BoolArray = self.rank < self.others.own.offset.size
        return there

    def lowest(self) -> FloatArray:
        """The smallest offset in her stratum; infinite if nobody is left."""
        offset = np.append(self.others.own.offset, [math.inf, math.inf])
        lowest: FloatArray = np.minimum(self.to, np.where(self.place == 0, offset[1], offset[0]))
        return lowest

    def piece(self, at: FloatArray, level: FloatArray) -> Found:
        """Who is active at ``T`` and at the level of her stratum, and their sums."""
        others, size = self.others, self.others.own.size
        piece, mean, spread, floor = others.elsewhere(at)
        count = others.own.offset.searchsorted(level)
        gone, present = self.own < level, self.to < level
        out, into = np.where(gone, self.mass, 0.0), np.where(present, self.mass, 0.0)
        own, to = np.where(gone, self.own, 0.0), np.where(present, self.to, 0.0)
        total = (others.total[count] - out) + into
        first = (others.first[count] - out * own) + into * to
        second = (others.second[count] - out * own * own) + into * to * to
        # the first alone, exactly: what is left of a difference is rounding
        alone = count - gone == 0
        total, first = np.where(alone, into, total), np.where(alone, into * to, first)
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = first / total
            inner = np.where(alone, 0.0, np.maximum(second - first * centre, 0.0))
            return Found(
                piece=piece,
                count=count,
                present=present,
                mean=mean + size * (others.own.base + centre),
                spread=spread + inner,
                floor=floor + size * size / total,
                total=total,
                centre=centre,
            )
