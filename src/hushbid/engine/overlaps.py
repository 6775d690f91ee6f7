"""How many people of a large table took part in a pilot: one pass that hashes every id."""

from dataclasses import dataclass
from typing import Any

from hushbid.arrays import id_texts
from hushbid.priors.pilot import Pilot, overlap


@dataclass(frozen=True, slots=True)
class OverlapKernel:
    """From a batch to how many of its people were in any pilot."""

    id: str
    pilots: tuple[Pilot, ...]

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return [self.id]

    def __call__(self, batch: Any, start: int | None) -> int:
        return overlap(self.pilots, id_texts(batch.column(self.id).to_pylist()))
