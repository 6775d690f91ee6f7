"""Everybody of a table on the driver: who they are, what they bid and delivered, to decide about them in memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray, id_texts
from hushbid.engine.adapter import Batch, pyarrow
from hushbid.engine.delivered import DataColumns
from hushbid.engine.people import People
from hushbid.engine.pricing import CountedTable
from hushbid.errors import InputError, MarketError

Parts = tuple[tuple[int | None, Batch], ...]
"""Some people as batches of `TakingKernel`, each with the number of its first row; None if rows have no order."""


@dataclass(frozen=True, slots=True)
class TakingKernel:
    """From a batch to who is in it, in columns called as here."""

    people: People
    group: str | None
    data: DataColumns | None

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        wanted = (*self.people.columns_and_id, self.group, *(() if self.data is None else self.data.names))
        return list(dict.fromkeys(name for name in wanted if name is not None))

    def __call__(self, batch: Batch, start: int | None) -> Parts:
        pa, rows = pyarrow(), self.people.read(batch)
        named = {"id": self.people.id, "group": self.group}
        whole = {name: batch.column(column) for name, column in named.items() if column is not None}
        if self.data is not None and self.data.messages:
            whole["messages"] = pa.array(self.data.texts(batch), pa.string())
        elif self.data is not None:
            answers = self.data.read(batch, start)
            whole |= {f"answer {place}": pa.array(answers[:, place]) for place in range(answers.shape[1])}
        found = {"stratum": pa.array(rows.strata), "bid": pa.array(rows.bids)}
        if rows.limit is not None:
            found["limit"] = pa.array(rows.limit)
        good = pa.RecordBatch.from_pydict(whole)
        good = good if rows.good is None else good.filter(pa.array(rows.good))
        columns = dict(zip(good.schema.names, good.columns, strict=True)) | found
        return ((start, pa.RecordBatch.from_pydict(columns)),)


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
    """Everybody's datum, with NaN, or message, with None, or row of answers, if columns of them were named."""


def everybody(table: CountedTable, *, group: str | None = None, data: DataColumns | None = None) -> Everybody:
    """Take everybody to the driver, from one pass, with columns of groups and of data."""
    people, names = table._run.people, table._engine.names
    if group is not None and group not in names:
        told = f"There is no column {group!r}; the columns are {', '.join(map(repr, names))}."
        raise InputError(told, field=group)
    if people.id is None:
        raise InputError("id must name a column: decisions are written beside it.", field="id")
    zero: Parts = ()
    parts = table._run.reduce("taking everybody to one place", TakingKernel(people, group, data), zero)
    in_order = all(start is not None for start, _ in parts)
    found = pyarrow().Table.from_batches([batch for _, batch in sorted(parts, key=lambda part: part[0] or 0)])
    if found.num_rows != table.people:
        raise MarketError("The table changed while it was read.")
    kind = found.schema.field("id").type
    ids = found.column("id").cast(kind.value_type) if pyarrow().types.is_dictionary(kind) else found.column("id")
    found = found.set_column(found.schema.get_field_index("id"), "id", ids)
    if not in_order:
        found = found.unify_dictionaries().take(np.argsort(np.array(id_texts(ids.to_pylist())), kind="stable"))
    answers = [name for name in found.column_names if name.startswith("answer ")]
    table_of = np.column_stack([found.column(name).to_numpy() for name in answers]) if answers else None
    delivered = found.column("messages").to_pylist() if data is not None and data.messages else table_of
    codes = found.column("stratum").to_pylist()
    return Everybody(
        ids=found.column("id").combine_chunks(),
        labels=None if group is None else [str(one).strip() for one in found.column("group").to_pylist()],
        strata=None if people.stratum is None else [people.strata[code] for code in codes],
        bids=found.column("bid").to_numpy(),
        limits=found.column("limit").to_numpy() if people.limited else None,
        data=delivered if table_of is None or (data is not None and data.questions) else table_of[:, 0],
    )
