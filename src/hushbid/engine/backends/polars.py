"""Polars frames, lazy and eager."""

import time
from collections.abc import Sequence
from typing import Any

import polars as pl

from hushbid.engine.adapter import BATCH_ROWS, Folding, Mapper, Reducer, Sum, needed, pyarrow
from hushbid.errors import InputError

_KINDS = {"float64": pl.Float64(), "int64": pl.Int64(), "string": pl.String()}


class PolarsEngine:
    """A ``polars.LazyFrame`` or ``polars.DataFrame``."""

    def __init__(self, frame: pl.LazyFrame | pl.DataFrame) -> None:
        self.in_memory = isinstance(frame, pl.DataFrame)
        self._frame = frame.lazy()
        self._schema = self._frame.collect_schema()
        self.names: list[str] = self._schema.names()

    def kind(self, column: str) -> Any:
        try:
            return pl.DataFrame(schema={column: self._schema[column]}).to_arrow().schema.field(0).type
        except pyarrow().ArrowInvalid:
            told = f"Column {column!r} must hold what Arrow knows, not {self._schema[column]}."
            raise InputError(told, field=column) from None

    def reduce(self, kernel: Reducer[Sum], zero: Sum) -> Sum:
        """The sum of the kernel's results over all batches.

        Not by ``collect_batches``: where a job runs with interrupts ignored, one ends that early and without a word.
        """
        with Folding(kernel, zero) as folding:

            def take(chunk: pl.DataFrame) -> None:
                for batch in chunk.to_arrow().to_batches():
                    folding.take(batch)

            frame = self._frame.select(kernel.columns)
            frame.sink_batches(take, chunk_size=BATCH_ROWS, maintain_order=True, engine="streaming")
            return folding.total()

    def map(self, kernel: Mapper, *, drop: bool, keep: Sequence[str] | None = None) -> Any:
        """A lazy frame for a lazy one; its rows are priced in the streaming engine's batches, whenever it is run."""
        read = self.names if keep is None else needed(kernel, keep)
        new = {name: _KINDS[kind] for name, kind in kernel.fields}
        frame = self._frame.select(read).map_batches(
            _Appended(kernel),
            schema=pl.Schema({**{name: self._schema[name] for name in read}, **new}),
            streamable=True,
        )
        if keep is not None:
            frame = frame.select(*keep, *new)
        if drop:
            frame = frame.filter(pl.col(kernel.fields[0][0]).is_not_null())
        return frame.collect(engine="streaming") if self.in_memory else frame

    def distinct(self, column: str) -> int:
        values = self._frame.select(pl.col(column).drop_nulls().n_unique())
        return int(values.collect(engine="streaming").item())

    def write(self, frame: Any, path: str) -> None:
        """Write to one Parquet file, in groups of rows that are small enough to be read one at a time."""
        try:
            frame.lazy().sink_parquet(path, maintain_order=True, row_group_size=BATCH_ROWS)
        except KeyboardInterrupt:
            time.sleep(0)  # Polars raises it at once and Python a moment later: let that be here, not in a clean-up
            raise


class _Appended:
    """From a frame to the frame with the kernel's columns."""

    def __init__(self, kernel: Mapper) -> None:
        self._kernel = kernel

    def __call__(self, frame: pl.DataFrame) -> pl.DataFrame:
        table = frame.select(self._kernel.columns).to_arrow().combine_chunks()
        batches = table.to_batches() or [pyarrow().RecordBatch.from_pylist([], schema=table.schema)]  # no rows
        found = [self._kernel(batch) for batch in batches]
        return frame.with_columns(
            pl.concat([_series(part[place]) for part in found]).alias(name)
            for place, (name, _) in enumerate(self._kernel.fields)
        )


def _series(array: Any) -> pl.Series:
    found = pl.from_arrow(array)
    assert isinstance(found, pl.Series)
    return found
