"""Everybody of a table on the driver: who they are, what they bid and delivered, to decide about them in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray, IntArray, id_texts
from hushbid.engine.adapter import Batch, pyarrow
from hushbid.engine.delivered import DataColumns
from hushbid.engine.people import People
from hushbid.engine.pricing import CountedTable
from hushbid.errors import InputError, MarketError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Rows:
    """Some people, in the order of the table where it has one."""

    start: int | None
    """The number of the first row; None if rows have no order."""

    ids: list[Any]
    """As they stand in the table."""

    labels: list[str] | None
    strata: IntArray
    bids: FloatArray
    limits: FloatArray | None
    data: list[Any] | FloatArray | None
    """Numbers with NaN, of a survey in one row per person, or messages with None, where nothing was delivered."""


@dataclass(frozen=True, slots=True)
class TakingKernel:
    """From a batch to its rows."""

    people: People
    group: str | None
    data: DataColumns | None

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        wanted = (*self.people.columns_and_id, self.group, *(() if self.data is None else self.data.names))
        return list(dict.fromkeys(name for name in wanted if name is not None))

    def __call__(self, batch: Batch, start: int | None) -> tuple[Rows, ...]:
        rows = self.people.read(batch)
        data = None if self.data is None else _data_of(self.data, batch, start, rows.good)
        if rows.good is not None:
            batch = batch.filter(pyarrow().array(rows.good))
        part = Rows(
            start=start,
            ids=batch.column(self.people.id).to_pylist(),
            labels=None if self.group is None else [str(one).strip() for one in batch.column(self.group).to_pylist()],
            strata=rows.strata,
            bids=rows.bids,
            limits=rows.limit,
            data=data,
        )
        return (part,)


def _data_of(data: DataColumns, batch: Batch, start: int | None, good: BoolArray | None) -> list[Any] | FloatArray:
    """What the people of the good rows delivered: messages, numbers, or a survey's answers, people × questions."""
    if data.messages:
        texts = data.texts(batch)
        return texts if good is None else [texts[row] for row in np.flatnonzero(good).tolist()]
    table = data.read(batch, start)
    table = table if good is None else table[good]
    return table if data.questions else table[:, 0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Everybody:
    """Everybody who can be priced, in the order of the table; by id where it has none."""

    ids: Any
    """An Arrow array, as they stand in the table."""

    labels: list[str] | None
    """Everybody's group, if a column of them was named."""

    strata: list[str] | None
    """Everybody's stratum, where a combination of stratum means is wanted."""

    bids: FloatArray
    """What everybody bid."""

    limits: FloatArray | None
    """What everybody accepts at most, infinite where they named no limit; None if no column was named."""

    data: list[Any] | FloatArray | None
    """Everybody's datum, message or row of answers, if columns of them were named."""


def everybody(table: CountedTable, *, group: str | None = None, data: DataColumns | None = None) -> Everybody:
    """Take everybody to the driver, from one pass, with columns of groups and of data."""
    people, names = table._run.people, table._engine.names
    if group is not None and group not in names:
        told = f"There is no column {group!r}; the columns are {', '.join(map(repr, names))}."
        raise InputError(told, field=group)
    if people.id is None:
        raise InputError("id must name a column: decisions are written beside it.", field="id")
    parts = list(table._run.reduce("taking everybody to one place", TakingKernel(people, group, data), ()))
    order = None
    if all(part.start is not None for part in parts):
        parts.sort(key=lambda part: part.start or 0)
    else:
        order = np.argsort(np.array(id_texts(one for part in parts for one in part.ids)), kind="stable")
    bids: FloatArray = np.concatenate([part.bids for part in parts])
    if bids.size != table.people:
        raise MarketError("The table changed while it was read.")
    kind = table._engine.kind(people.id)
    pa = pyarrow()
    return Everybody(
        ids=pa.array(
            _listed([one for part in parts for one in part.ids], order),
            type=kind.value_type if pa.types.is_dictionary(kind) else kind,
        ),
        labels=None if group is None else _listed([one for part in parts for one in part.labels or ()], order),
        strata=_strata(people, parts, order),
        bids=bids if order is None else bids[order],
        limits=_numbers([part.limits for part in parts], order) if people.limited else None,
        data=None if data is None else _data(parts, order),
    )


def _strata(people: People, parts: Sequence[Rows], order: IndexArray | None) -> list[str] | None:
    """By their names."""
    if people.stratum is None:
        return None
    codes = [code for part in parts for code in part.strata.tolist()]
    return _listed([people.strata[code] for code in codes], order)


def _listed(values: list[Any], order: IndexArray | None) -> list[Any]:
    return values if order is None else [values[row] for row in order.tolist()]


def _numbers(columns: Sequence[Any], order: IndexArray | None) -> FloatArray:
    numbers: FloatArray = np.concatenate([np.asarray(column) for column in columns])
    return numbers if order is None else numbers[order]


def _data(parts: list[Rows], order: IndexArray | None) -> list[Any] | FloatArray:
    if all(isinstance(part.data, np.ndarray) for part in parts):
        return _numbers([part.data for part in parts], order)
    return _listed([one for part in parts for one in (() if part.data is None else part.data)], order)
