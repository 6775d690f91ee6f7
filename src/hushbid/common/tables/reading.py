"""From whatever holds people to columns by name: a file, arrays, or a data frame that speaks Arrow."""

import io
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from hushbid.common.documents import gunzipped
from hushbid.common.staging import STREAM
from hushbid.common.tables.arrow import PARQUET_MAGIC, arrow_column, names_in_parquet, pyarrow, read_parquet
from hushbid.common.tables.columns import HOLD_NUMBERS, Cells, Column, column_of
from hushbid.common.tables.csv_files import names_in_csv, read_csv
from hushbid.common.tables.table import Table, places_of
from hushbid.common.tables.workbooks import OLE_MAGIC, ZIP_MAGIC, names_in_workbook, read_workbook
from hushbid.errors import InputError

_GZIP_MAGIC = b"\x1f\x8b"
_ARROW = "__arrow_c_stream__"
_SOURCES = "a path, columns by name, or a frame that speaks Arrow (pandas, Polars, pyarrow, DuckDB and others)"


def read_table(source: Any, *, needed: Sequence[str], optional: Sequence[str] = ()) -> Table:
    """Columns of a file, of arrays by name or of a frame; ``-`` reads standard input.

    All missing columns are told at once.
    """
    wanted = list(needed), list(optional)
    if isinstance(source, str | Path):
        table = _read_file(source, *wanted)
        empty = f"{table.source} has no rows: there is a header and nobody below it."
    else:
        table = _read_columns(source, *wanted) if isinstance(source, Mapping) else _read_frame(source, *wanted)
        empty = f"{table.source} must have one entry per person, and somebody must be there."
    if table.rows == 0:
        raise InputError(empty)
    return table


def is_table(source: Any) -> bool:
    """Whether `read_table` reads it: what it does not is a table that an engine leaves where it is."""
    return isinstance(source, str | Path | Mapping) or hasattr(source, _ARROW)


def read_again(source: Any) -> Any:
    """What can be read more than once: a stream of Arrow's as a table, and of a narwhals frame what it wraps."""
    source = source.to_native() if hasattr(source, "to_native") else source
    if not hasattr(source, _ARROW) or hasattr(type(source), "columns"):
        return source
    pa = pyarrow()
    try:
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError):  # no table: it is refused where it is read
        return source


def columns_of(path: str | Path) -> list[str]:
    """The names of a file's columns; reads no further than needed, and not from a stream."""
    source = str(path)
    with _opened(path) as file:
        magic = _magic(file, source)
        if magic == PARQUET_MAGIC:
            return names_in_parquet(file, source)
        if magic == ZIP_MAGIC:
            return names_in_workbook(file.read(), source)
        return names_in_csv(file, source)


# -- files -------------------------------------------------------------------------------------------------------------


def _read_file(path: str | Path, needed: list[str], optional: list[str]) -> Table:
    source = "standard input" if str(path) == STREAM else str(path)
    with _opened(path) as file:
        magic = _magic(file, source)
        if magic == PARQUET_MAGIC:
            return read_parquet(file, source, needed, optional)
        content = file.read()
    if magic == ZIP_MAGIC:
        return read_workbook(content, source, needed, optional)
    return read_csv(content, source, needed, optional)


def _magic(file: BinaryIO, source: str) -> bytes:
    magic = file.read(4)
    file.seek(0)
    if magic == OLE_MAGIC:
        raise InputError(f"{source} is an old or encrypted Excel workbook: save it as .xlsx, without a password.")
    return magic


@contextmanager
def _opened(path: str | Path) -> Iterator[BinaryIO]:
    """A file that can be read from the beginning again, without its compression."""
    if str(path) == STREAM:
        yield _unpacked(io.BytesIO(sys.stdin.buffer.read()), "standard input")
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below; only opening may fail in these ways)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, not a file.") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}.") from problem
    with file:
        yield _unpacked(file if file.seekable() else io.BytesIO(file.read()), str(path))


def _unpacked(file: BinaryIO, source: str) -> BinaryIO:
    if _magic(file, source)[:2] != _GZIP_MAGIC:
        return file
    try:
        return io.BytesIO(gunzipped(file.read(), source, InputError))
    except (OSError, EOFError, zlib.error):
        raise InputError(f"{source} is compressed by gzip, but not readable to its end.") from None


# -- arrays and frames -------------------------------------------------------------------------------------------------


def _read_columns(source: Mapping[str, Any], needed: list[str], optional: list[str]) -> Table:
    told, values = "The columns", list(source.values())
    wanted = places_of(told, [str(name) for name in source], needed, optional)
    columns = {name: _column(values[place], name, told) for name, place in wanted.items()}
    sizes = {len(column.raw) for column in columns.values()}
    if len(sizes) != 1:
        raise InputError(f"{told} must have one entry per person, and somebody must be there, got {sorted(sizes)}.")
    return Table(source=told, columns=columns, rows=sizes.pop())


def _column(values: Any, name: str, source: str) -> Column:
    try:
        return column_of(values)
    except (TypeError, ValueError):
        told = f"{source}: {name!r} must be one entry per person, got {type(values).__name__}."
        raise InputError(told, field=name) from None


def _read_frame(source: Any, needed: list[str], optional: list[str]) -> Table:
    told = "The table"
    if not hasattr(source, _ARROW):
        raise InputError(f"people and data must be {_SOURCES}, got {type(source).__name__}.", field="data")
    pa = pyarrow()
    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # a column of objects that are not of one kind
        return _read_objects(source, needed, optional, told)
    wanted = places_of(told, table.schema.names, needed, optional)
    columns = {name: _framed(source, name, table.column(place), told) for name, place in wanted.items()}
    return Table(source=told, columns=columns, rows=table.num_rows)


def _framed(source: Any, name: str, content: Any, told: str) -> Column:
    """A column of a frame. Objects that Arrow took for numbers are looked at themselves: a truth value is none."""
    found = arrow_column(content)
    dtypes: Any = getattr(source, "dtypes", None)
    held = dtypes.get(name) if hasattr(dtypes, "get") else None
    if isinstance(held, np.dtype) and held.kind == "O" and found.kind in HOLD_NUMBERS:
        return _column(np.asarray(source[name], dtype=object), name, told)
    return found


def _read_objects(source: Any, needed: list[str], optional: list[str], told: str) -> Table:
    """Column by column, so that one that is not needed may hold what it likes, and one that is can be told by row."""
    if hasattr(source, "reset_index") and not set(needed) <= {str(head) for head in source.columns}:
        source = source.reset_index(allow_duplicates=True)  # ids may be the index, as where Arrow reads it
    heads = list(getattr(source, "columns", ()))
    wanted = places_of(told, [str(head) for head in heads], needed, optional)
    columns = {name: Cells(list(source[heads[place]])) for name, place in wanted.items()}
    return Table(source=told, columns=columns, rows=len(cast(Any, source)))
