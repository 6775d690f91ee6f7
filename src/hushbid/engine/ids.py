"""How many different ids there are, exactly, and how many of them took part in a pilot.

They are counted by sorting 64-bit fingerprints. Numbers have a fingerprint of their own each. Texts may share one by
accident, so texts whose fingerprint is not unique are looked at once more. Above `AT_ONCE` rows the fingerprints are
sorted part by part, each in a pass of its own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.common.arrays import HashArray, id_texts
from hushbid.engine.adapter import Batch, in_threads, pyarrow
from hushbid.priors.pilot import Pilot, overlap

AT_ONCE = 1 << 27
_LOOKED_AT = 1 << 20
_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class OverlapKernel:
    """From a batch to how many of its people were in any pilot."""

    id: str
    pilots: tuple[Pilot, ...]

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return [self.id]

    def __call__(self, batch: Batch, start: int | None) -> int:
        return overlap(self.pilots, id_texts(batch.column(self.id).to_pylist()))


def count_distinct(read: Callable[[], Iterable[Batch]], rows: int) -> int:
    """How many different values the only column of some batches has, nulls not counted; they are read repeatedly."""
    parts = max(-(-rows // AT_ONCE), 1)
    return sum(_count(read, rows, part, parts) for part in range(parts))


def _count(read: Callable[[], Iterable[Batch]], rows: int, part: int, parts: int) -> int:
    prints = np.empty(min(rows, 2 * AT_ONCE), dtype=np.uint64)
    size, is_exact = 0, True
    for found, exact in in_threads(_job(batch, part, parts) for batch in read()):
        if size + found.size > prints.size:  # one id in very many rows: a part is far larger than the others
            kept = np.unique(prints[:size])
            size, prints = kept.size, np.concatenate([kept, np.empty(found.size + AT_ONCE, dtype=np.uint64)])
        prints[size : size + found.size] = found
        size, is_exact = size + found.size, is_exact and exact
    # sorted, equal ones stand together
    prints = prints[:size]
    prints.sort()
    different, again = _runs(prints)
    if is_exact or not again.size or again.size > _LOOKED_AT:  # so many accidents do not happen
        return different
    # texts that share a fingerprint: once more, by themselves
    texts: set[Any] = set()
    for some in in_threads(_look(batch, again) for batch in read()):
        texts |= some
    return different - int(again.size) + len(texts)


def _runs(prints: HashArray) -> tuple[int, HashArray]:
    """How many different numbers there are in a sorted array, and which are there more than once."""
    different, again = min(prints.size, 1), []
    for start in range(1, prints.size, _BLOCK):
        here, before = prints[start : start + _BLOCK], prints[start - 1 : start - 1 + _BLOCK]
        same = here == before[: here.size]
        different += here.size - int(np.count_nonzero(same))
        again.append(np.unique(here[same]))
    return different, np.unique(np.concatenate(again)) if again else prints[:0]


def _job(batch: Batch, part: int, parts: int) -> Callable[[], tuple[HashArray, bool]]:
    def job() -> tuple[HashArray, bool]:
        found, exact = fingerprints(batch.column(0).drop_null())
        return (found if parts == 1 else found[(found >> np.uint64(32)) % np.uint64(parts) == part]), exact

    return job


def _look(batch: Batch, again: HashArray) -> Callable[[], set[Any]]:
    def job() -> set[Any]:
        column = batch.column(0).drop_null()
        hit = np.isin(fingerprints(column)[0], again)
        return set(column.filter(pyarrow().array(hit)).to_pylist())

    return job


def fingerprints(column: Any) -> tuple[HashArray, bool]:
    """A number for each value of an Arrow array without nulls, and whether different values surely differ in it."""
    pa = pyarrow()
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    # numbers: one to one
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        column = column.cast(pa.int64() if not pa.types.is_uint64(kind) else kind)
        return _mixed(column.to_numpy(zero_copy_only=False).view(np.uint64)), True
    if pa.types.is_floating(kind):
        return _mixed((column.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0).view(np.uint64)), True
    return _of_texts(column.cast(pa.large_string() if not pa.types.is_binary(kind) else pa.large_binary())), False


def _of_texts(column: Any) -> HashArray:
    """Eight bytes at a time, all rows together."""
    _, offsets, content = column.buffers()
    size = len(column)
    ends = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + size + 1]
    bytes_ = np.concatenate([np.frombuffer(content or b"", dtype=np.uint8)[: int(ends[-1])], np.zeros(8, np.uint8)])
    # every run of eight bytes as a number, overlapping, without copying
    words: HashArray = np.ndarray((bytes_.size - 7,), dtype="<u8", buffer=bytes_.data, strides=(1,))
    starts, lengths = ends[:-1], np.diff(ends)
    found = _mixed(lengths.astype(np.uint64))
    for done in range(0, int(lengths.max(initial=0)), 8):
        which = np.flatnonzero(lengths > done)
        left = np.minimum(lengths[which] - done, 8).astype(np.uint64)
        # the last word of a text ends within the next one
        mask = np.where(
            left == 8, ~np.uint64(0), (np.uint64(1) << (np.uint64(8) * (left % np.uint64(8)))) - np.uint64(1)
        )
        found[which] = _mixed(found[which] ^ (words[starts[which] + done] & mask))
    return found


def _mixed(values: HashArray) -> HashArray:
    """Scattered over all 64-bit numbers, one to one (the last steps of SplitMix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: HashArray = mixed ^ (mixed >> np.uint64(31))
    return result
