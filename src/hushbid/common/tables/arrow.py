"""Columns that Arrow brings: of Parquet files, which are read and written here, and of data frames."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.common.tables.columns import HOLD_LABELS, Column, Raw, of_one_kind
from hushbid.common.tables.table import Table, places_of
from hushbid.errors import InputError, MissingExtra

_KINDS = (
    ("is_integer", "integers"),
    ("is_floating", "floats"),
    ("is_string", "texts"),
    ("is_large_string", "texts"),
    ("is_string_view", "texts"),
    ("is_null", "nothing"),
    ("is_decimal", "decimals"),
    ("is_timestamp", "timestamps"),
    ("is_date", "dates"),
    ("is_time", "times"),
    ("is_boolean", "truth values"),
    ("is_binary", "bytes"),
    ("is_large_binary", "bytes"),
    ("is_binary_view", "bytes"),
    ("is_fixed_size_binary", "bytes"),
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ArrowColumn(Column):
    """An Arrow array in memory."""

    content: Any
    """A ``pyarrow.ChunkedArray``; dictionaries are taken apart."""

    @property
    def kind(self) -> str:
        return arrow_kind(pyarrow().types, self.content.type)

    def numbers(self) -> tuple[FloatArray, BoolArray]:
        """Return the numbers themselves."""
        values = _floats(self.content.cast(pyarrow().float64(), safe=False))
        return values, np.zeros(values.size, dtype=bool)

    def cells(self) -> list[Any]:
        """Return Python's own objects, None where one is missing."""
        found: list[Any] = self.content.to_pylist()
        return found if self.kind != "floats" else [None if cell != cell else cell for cell in found]

    def only(self, rows: IndexArray) -> "ArrowColumn":
        return replace(self, content=self.content.take(array_of(rows)))


def arrow_column(content: Any) -> ArrowColumn:
    """A column of a table of Arrow's; dictionaries are taken apart, and views, of which Arrow can do little, copied."""
    pa = pyarrow()
    if pa.types.is_dictionary(content.type):
        parts = [_with_plain_texts(part) for part in content.chunks]
        kind = parts[0].type if parts else pa.dictionary(pa.int32(), pa.string())
        content = pa.chunked_array([part.dictionary_decode() for part in parts], type=kind.value_type)
    if pa.types.is_string_view(content.type):
        content = content.cast(pa.large_string())
    return ArrowColumn(content)


def _with_plain_texts(part: Any) -> Any:
    pa = pyarrow()
    if not pa.types.is_string_view(part.type.value_type):
        return part
    return pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(pa.large_string()))


def arrow_kind(types: Any, kind: Any) -> str:
    """The word for what a column of an Arrow type holds; ``types`` is ``pyarrow.types``."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    return next((name for test, name in _KINDS if getattr(types, test)(kind)), str(kind))


def refused_kind(types: Any, kind: Any) -> str | None:
    """What a column of an Arrow type holds, if it may not name people or groups; ``types`` is ``pyarrow.types``."""
    held = arrow_kind(types, kind)
    return None if held in HOLD_LABELS else held


def array_of(values: IndexArray) -> Any:
    """NumPy's integers as an Arrow array, by their buffer: Arrow's own conversion would import pandas first."""
    pa = pyarrow()
    return pa.Array.from_buffers(pa.int64(), values.size, [None, pa.py_buffer(np.ascontiguousarray(values, np.int64))])


def _floats(column: Any) -> FloatArray:
    """An Arrow array of doubles, perhaps in chunks, as NumPy's, by its buffers; NaN where it has a gap."""
    parts = [np.zeros(0)]
    for chunk in getattr(column, "chunks", [column]):
        _, content = chunk.buffers()
        part = np.frombuffer(content or b"", dtype=np.float64)[chunk.offset : chunk.offset + len(chunk)]
        if chunk.null_count:
            gaps = np.frombuffer(chunk.is_null().cast("int8").buffers()[1], dtype=np.int8)[: len(chunk)]
            part = np.where(gaps == 1, np.nan, part)
        parts.append(part)
    return np.concatenate(parts)


def pyarrow(what: str = "Parquet files and data frames need") -> Any:
    """The package, imported when it is needed."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(f"{what} pyarrow: pip install '.[engines]' in a checkout, or use CSV.") from None
    return pa


PARQUET_MAGIC = b"PAR1"


def read_parquet(file: BinaryIO, source: str, needed: list[str], optional: list[str]) -> Table:
    """Columns by name, with their types."""
    pa, parquet = pyarrow(), _parquet()
    try:
        opened = parquet.ParquetFile(file)
        wanted = places_of(source, opened.schema_arrow.names, needed, optional)
        table = opened.read(columns=list(wanted))
    except (pa.ArrowException, OSError) as problem:
        raise InputError(f"{source} is not a readable Parquet file.") from problem
    columns = {name: arrow_column(table.column(name)) for name in wanted}
    return Table(source=source, columns=columns, rows=table.num_rows)


def names_in_parquet(file: BinaryIO, source: str) -> list[str]:
    """The names of the columns."""
    pa, parquet = pyarrow(), _parquet()
    try:
        return list(parquet.read_schema(file).names)
    except (pa.ArrowException, OSError) as problem:
        raise InputError(f"{source} is not a readable Parquet file.") from problem


def write_parquet(file: BinaryIO, columns: Mapping[str, Raw]) -> None:
    """Write columns with their types."""
    pa = pyarrow()
    _parquet().write_table(pa.table({name: pa.array(of_one_kind(column)) for name, column in columns.items()}), file)


def _parquet() -> Any:
    pyarrow()
    from pyarrow import parquet

    return parquet
