"""Everybody of a priced table on the driver: who they are, what they reported and delivered, for a record of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.arrays import FloatArray, IndexArray, id_texts
from hushbid.engine.adapter import Batch, pyarrow
from hushbid.engine.people import People, floats_of
from hushbid.engine.pricing import Priced
from hushbid.errors import InputError, MarketError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Rows:
    """Some people, in the order of the table where it has one."""

    start: int | None
    """The number of the first row; None if rows have no order."""

    ids: list[Any]
    """As they stand in the table."""

    labels: list[str] | None
    reports: FloatArray
    limits: FloatArray | None
    data: list[Any] | FloatArray | None
    """Numbers with NaN, or messages with None, where nothing was delivered."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows that were taken to the driver, batch by batch."""

    parts: tuple[Rows, ...] = ()

    def __add__(self, other: "Taken") -> "Taken":
        """Both together."""
        return Taken(self.parts + other.parts)


@dataclass(frozen=True, slots=True)
class TakingKernel:
    """From a batch to its rows."""

    people: People
    group: str | None
    data: str | None
    messages: bool
    """Whether the data are texts."""

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        wanted = (*self.people.columns_and_id, self.group, self.data)
        return list(dict.fromkeys(name for name in wanted if name is not None))

    def __call__(self, batch: Batch, start: int | None) -> Taken:
        rows = self.people.read(batch)
        if rows.good is not None:
            batch = batch.filter(pyarrow().array(rows.good))
        part = Rows(
            start=start,
            ids=batch.column(self.people.id).to_pylist(),
            labels=None if self.group is None else [str(one).strip() for one in batch.column(self.group).to_pylist()],
            reports=rows.reports,
            limits=rows.limit,
            data=None if self.data is None else self._data(batch, self.data),
        )
        return Taken((part,))

    def _data(self, batch: Batch, name: str) -> list[Any] | FloatArray:
        if not self.messages:
            return floats_of(batch.column(name), name)
        return [None if not text else str(text) for text in batch.column(name).to_pylist()]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Everybody:
    """Everybody who was priced, in the order of the table; by id where it has none."""

    ids: Any
    """An Arrow array, as they stand in the table."""

    labels: list[str] | None
    """Everybody's group, if a column of them was named."""

    reports: FloatArray
    """What everybody reported."""

    limits: FloatArray | None
    """What everybody accepts at most, infinite where she named no limit; None if no column was named."""

    data: list[Any] | FloatArray | None
    """Everybody's datum or message, if a column of them was named."""


def everybody(priced: Priced, *, group: str | None = None, data: str | None = None) -> Everybody:
    """Take everybody to the driver, from one pass, with columns of groups and of data."""
    people, names = priced._kernel.people, priced._engine.names
    for name in (group, data):
        if name is not None and name not in names:
            told = f"There is no column {name!r}; the columns are {', '.join(map(repr, names))}."
            raise InputError(told, field=name)
    if people.id is None:
        raise InputError("id must name a column: decisions are written beside it.", field="id")
    taking = TakingKernel(people, group, data, priced.market.strategy.sends_messages)
    parts, order = list(priced._engine.reduce(taking, Taken()).parts), None
    if all(part.start is not None for part in parts):
        parts.sort(key=lambda part: part.start or 0)
    else:
        order = np.argsort(np.array(id_texts(one for part in parts for one in part.ids)), kind="stable")
    reports: FloatArray = np.concatenate([part.reports for part in parts])
    if reports.size != priced.summary.people:
        raise MarketError("The table changed while it was priced.")
    kind = priced._engine.kind(people.id)
    pa = pyarrow()
    return Everybody(
        ids=pa.array(
            _listed([one for part in parts for one in part.ids], order),
            type=kind.value_type if pa.types.is_dictionary(kind) else kind,
        ),
        labels=None if group is None else _listed([one for part in parts for one in part.labels or ()], order),
        reports=reports if order is None else reports[order],
        limits=_numbers([part.limits for part in parts], order) if people.limited else None,
        data=None if data is None else _data(parts, order),
    )


def _listed(values: list[Any], order: IndexArray | None) -> list[Any]:
    return values if order is None else [values[row] for row in order.tolist()]


def _numbers(columns: Sequence[Any], order: IndexArray | None) -> FloatArray:
    numbers: FloatArray = np.concatenate([np.asarray(column) for column in columns])
    return numbers if order is None else numbers[order]


def _data(parts: list[Rows], order: IndexArray | None) -> list[Any] | FloatArray:
    if all(isinstance(part.data, np.ndarray) for part in parts):
        return _numbers([part.data for part in parts], order)
    return _listed([one for part in parts for one in (() if part.data is None else part.data)], order)
