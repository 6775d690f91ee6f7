"""How many people of a large table took part in a pilot: one pass that hashes every id."""

from dataclasses import dataclass
from typing import Any

from hushbid.arrays import id_texts
from hushbid.priors.pilot import Pilot


@dataclass(frozen=True, slots=True)
class Overlaps:
    """How many people were in each pilot."""

    counts: tuple[int, ...]

    def __add__(self, other: "Overlaps") -> "Overlaps":
        """Both populations together."""
        return Overlaps(tuple(mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)))


@dataclass(frozen=True, slots=True)
class OverlapsKernel:
    """From a batch to how many of its people were in each pilot."""

    id: str
    pilots: tuple[Pilot, ...]

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return [self.id]

    def __call__(self, batch: Any, start: int | None) -> Overlaps:
        ids = id_texts(batch.column(self.id).to_pylist())
        return Overlaps(tuple(pilot.overlap(ids) or 0 for pilot in self.pilots))
