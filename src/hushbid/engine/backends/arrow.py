"""Arrow tables in memory, and Parquet files and folders read in batches: the engine that is always there."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from hushbid.engine.adapter import (
    BATCH_ROWS,
    Batch,
    Frame,
    Mapper,
    Reducer,
    Sum,
    fold,
    mapped,
    needed,
    output_schema,
    pyarrow,
)
from hushbid.engine.ids import count_distinct
from hushbid.errors import InputError


class Stream:
    """A priced Parquet file or folder that is not written yet: every reading prices it again, in batches.

    Anything that reads the Arrow stream interface takes it (``pyarrow.table``, ``polars.from_arrow``, DuckDB).
    """

    def __init__(self, dataset: Any, kernel: Mapper, *, drop: bool, keep: Sequence[str] | None) -> None:
        self._dataset, self._kernel, self._drop, self._keep = dataset, kernel, drop, keep
        self._read = None if keep is None else needed(kernel, keep)

    @property
    def schema(self) -> Any:
        """The Arrow schema of the batches."""
        schema = self._dataset.schema
        if self._keep is not None:
            schema = pyarrow().schema([schema.field(name) for name in self._keep])
        return output_schema(schema, self._kernel)

    def batches(self) -> Iterator[Batch]:
        """The priced rows in the order of the files."""
        return mapped(_batches(self._dataset, self._read), self._kernel, drop=self._drop, keep=self._keep)

    def read_all(self) -> Any:
        """The whole as one ``pyarrow.Table``."""
        return pyarrow().Table.from_batches(self.batches(), schema=self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pyarrow().RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)


class ArrowEngine:
    """A ``pyarrow.Table`` or what was made one, or a Parquet file or folder."""

    def __init__(self, source: Any, *, back: Callable[[Any], Frame] | None = None) -> None:
        """``back`` makes of a table what the caller's was, if it was none of Arrow's."""
        self._back = back
        self.in_memory = not isinstance(source, str | Path)
        self._dataset = _dataset().dataset(source) if self.in_memory else _open(Path(source))
        self.names: list[str] = list(self._dataset.schema.names)

    @property
    def files(self) -> list[str]:
        """What is read, in order; only of a path."""
        return list(self._dataset.files)

    def kind(self, column: str) -> Any:
        return self._dataset.schema.field(column).type

    def reduce(self, kernel: Reducer[Sum], zero: Sum) -> Sum:
        return fold(_batches(self._dataset, kernel.columns), kernel, zero)

    def map(self, kernel: Mapper, *, drop: bool, keep: Sequence[str] | None = None) -> Any:
        """A table for a table, as the caller's was, a `Stream` for files."""
        stream = Stream(self._dataset, kernel, drop=drop, keep=keep)
        if not self.in_memory:
            return stream
        return stream.read_all() if self._back is None else self._back(stream.read_all())

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self._dataset.count_rows())

    def batches(self, columns: list[str] | None = None) -> Iterator[Batch]:
        """Return the rows of files in their order, with some of their columns; nothing is read ahead."""
        parquet: Any = _import("pyarrow.parquet")
        for path in self.files:
            with parquet.ParquetFile(path, pre_buffer=False) as file:
                yield from file.iter_batches(batch_size=BATCH_ROWS, columns=columns)

    def read_all(self) -> Any:
        """The whole table, in memory."""
        return self._dataset.to_table()

    def distinct(self, column: str) -> int:
        return count_distinct(lambda: _batches(self._dataset, [column]), self._dataset.count_rows())

    def write(self, frame: Any, path: str) -> None:
        """Write to one Parquet file, batch by batch."""
        frame = frame if isinstance(frame, Stream) else pyarrow().table(frame)
        write_batches(path, frame.schema, frame.batches() if isinstance(frame, Stream) else frame.to_batches())


def write_batches(path: str, schema: Any, batches: Iterable[Batch]) -> None:
    """Write one Parquet file batch by batch: one larger than memory never is in memory."""
    parquet: Any = _import("pyarrow.parquet")
    with parquet.ParquetWriter(path, schema, use_dictionary=_worth_a_dictionary(schema)) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _batches(dataset: Any, columns: list[str] | None = None) -> Iterator[Batch]:
    """In order, with little read ahead; Arrow's own buffer would keep all that was read until the file ends."""
    options = _dataset().ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    batches: Iterator[Batch] = dataset.to_batches(
        columns=columns, batch_size=BATCH_ROWS, batch_readahead=4, fragment_readahead=1, fragment_scan_options=options
    )
    return batches


def _worth_a_dictionary(schema: Any) -> list[str]:
    """Columns in which values recur: texts. Numbers that all differ are written in a tenth of the time without."""
    types = pyarrow().types
    return [field.name for field in schema if not types.is_primitive(field.type)]


def _open(path: Path) -> Any:
    if not path.exists():
        raise InputError(f"There is no file or folder {str(path)!r}.")
    pa = pyarrow()
    try:
        found = _dataset().dataset(path, format="parquet", partitioning="hive", exclude_invalid_files=path.is_dir())
    except (pa.ArrowInvalid, OSError):
        found = None
    if found is None or not found.files:
        raise InputError(f"{str(path)!r} must be a Parquet file, or a folder of Parquet files alike.")
    return found


def _dataset() -> Any:
    return _import("pyarrow.dataset")


def _import(name: str) -> Any:
    pyarrow()
    return import_module(name)
