"""The sums of a population in which one person's cost is replaced, for many (person, cost) pairs at once.

`hushbid.allocation.deviations` computes them; a goal's equation (`hushbid.allocation.targets`) reads them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

Elsewhere = tuple[IndexArray, FloatArray, FloatArray, FloatArray]
"""The piece that ``T`` lies in, and ``M``, ``Q`` and ``c`` of the other strata there."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The sums of a guess, for each deviation."""

    piece: IndexArray  # where T lies among all keys
    count: IndexArray  # how many of the stratum, as it is, are below the level
    present: BoolArray  # whether the person is, at the new cost
    others: FloatArray  # U_o
    away: FloatArray  # d, 0 where the person is not present or nobody else is active in the stratum
    mean_at: FloatArray  # M if the person cost m_o
    spread_without: FloatArray  # Q without the person
    floor_without: FloatArray  # c of the other strata
    total: FloatArray  # U
    centre: FloatArray  # m, counted from the base of the stratum
    mean: FloatArray  # M
    spread: FloatArray  # Q
    floor: FloatArray  # c

    def take(self, which: Any) -> "Sums":
        """Return some of the deviations' sums."""
        return Sums(*(getattr(self, name)[which] for name in self.__slots__))

    def put(self, which: IndexArray, new: "Sums") -> None:
        """Write over some of the deviations' sums."""
        for name in self.__slots__:
            getattr(self, name)[which] = getattr(new, name)

    def beside(self, elsewhere: Elsewhere) -> "Sums":
        """Return the same with the sums of the other strata, where these have none of them."""
        piece, mean, spread, floor = elsewhere
        return replace(
            self,
            piece=piece,
            mean_at=self.mean_at + mean,
            spread_without=self.spread_without + spread,
            floor_without=self.floor_without + floor,
            mean=self.mean + mean,
            spread=self.spread + spread,
            floor=self.floor + floor,
        )

    def same(self, other: "Sums") -> BoolArray:
        """Return whether both guesses have the same people active."""
        same: BoolArray = (self.piece == other.piece) & (self.count == other.count) & (self.present == other.present)
        return same

    def level(self, size: float, at: FloatArray) -> FloatArray:
        """Return the water level of the stratum at ``T`` if exactly these people are active."""
        return np.asarray(self.centre + size * at / self.total)
