"""Long lists of a document as columns of one Parquet file, and back.

A document about very many people holds its terms and figures in JSON, and every list with one entry per person in a
column of a Parquet file. In the place of such a list the JSON says ``{"column": NAME}``, and once for all how many rows
the file has and what the SHA-256 of its bytes is. So the hash of the JSON covers the file, too.

Reading is strict: the bytes must have the hash that is stated, before any of them is used; the columns must be those
that the JSON names, in their order, each of its one type, with as many rows as stated, and nothing may be missing.
"""

import hashlib
import io
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast, overload

import numpy as np

from hushbid.common.documents import most_unpacked
from hushbid.errors import HashMismatch, MissingExtra, RecordError

_COLUMN = "column"
_AT_A_TIME = 1 << 20
ROWS_AT_A_TIME = 1 << 17
"""So many rows are a group of a file."""

Kind = Literal["number", "whole", "id", "label", "setting"]
"""What a column holds: doubles and integers, which are read as arrays; texts that all differ, and texts that recur; and
numbers that a market states, of which some may be missing, as a list."""


@dataclass(frozen=True, slots=True)
class ColumnPlace:
    """Where a list stands in a document, and what its column is called and holds."""

    path: tuple[str, ...]
    name: str
    kind: Kind = "number"

    @property
    def stands_for_it(self) -> dict[str, str]:
        """What the JSON says in the place of the list."""
        return {_COLUMN: self.name}


def split(
    content: Mapping[str, Any], places: Sequence[ColumnPlace], people: int
) -> tuple[dict[str, Any], dict[ColumnPlace, Any]]:
    """Return a document without its long lists, and these lists."""
    document, columns = dict(content), dict[ColumnPlace, Any]()
    for place in places:
        found = _at(content, place.path)
        if isinstance(found, list | tuple | np.ndarray | Texts) and len(found) == people:
            columns[place] = found
            document = _with(document, place.path, place.stands_for_it)
    return document, columns


def joined(document: Mapping[str, Any], columns: Mapping[ColumnPlace, Any]) -> dict[str, Any]:
    """Return the document with its long lists in their places: the inverse of `split`."""
    content = dict(document)
    for place, column in columns.items():
        content = _with(content, place.path, column)
    return content


def places_in(document: Mapping[str, Any], places: Sequence[ColumnPlace]) -> list[ColumnPlace]:
    """Return the places at which a document names a column."""
    return [place for place in places if _at(document, place.path) == place.stands_for_it]


def _at(content: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def _with(content: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return a copy with another value in one place."""
    first, *rest = path
    return {**content, first: _with(content[first], tuple(rest), value) if rest else value}


_MOST_TEXT = (1 << 31) - 1  # so many bytes of text are in one array of Arrow's

# -- writing -----------------------------------------------------------------------------------------------------------


def written(columns: Mapping[ColumnPlace, Any]) -> bytes:
    """Return the Parquet file with these columns."""
    pa, file = parquet_library(), io.BytesIO()
    table = pa.table(
        [_array(place.kind, column) for place, column in columns.items()], names=[place.name for place in columns]
    )
    with writer(file, list(columns)) as writing:
        writing.write_table(table, row_group_size=ROWS_AT_A_TIME)
    return file.getvalue()


def writer(file: IO[bytes] | str, places: Sequence[ColumnPlace]) -> Any:
    """Return a writer of a file with these columns, to which tables are written one after the other."""
    schema = schema_of(places)
    from pyarrow import parquet

    recurring = [place.name for place in places if place.kind == "label"]
    # the types of Parquet say all: Arrow's own notes would be a second place for them
    return parquet.ParquetWriter(file, schema, use_dictionary=recurring, compression="zstd", store_schema=False)


def schema_of(places: Sequence[ColumnPlace]) -> Any:
    """Return the columns of a file, as Arrow describes them."""
    pa = parquet_library()
    return pa.schema([pa.field(place.name, _type(place.kind)) for place in places])


def parquet_library() -> Any:
    """Return pyarrow, or say what to install."""
    try:
        import pyarrow as pa
    except ImportError:
        needed = "Records of very many people need pyarrow: pip install '.[engines]' in a checkout."
        raise MissingExtra(needed) from None
    return pa


def _array(kind: Kind, column: Any) -> Any:
    """Return a column as Arrow holds it: Arrow's own way from NumPy and lists first imports pandas, if it is there."""
    pa, wanted = parquet_library(), _type(kind)
    if isinstance(column, Texts):
        return column.array
    if isinstance(column, np.ndarray) and column.dtype == wanted.to_pandas_dtype():
        numbers = np.ascontiguousarray(column)  # one number may stand for all
        return pa.Array.from_buffers(wanted, numbers.size, [None, pa.py_buffer(numbers)])
    content = "".join(column).encode() if pa.types.is_string(wanted) else b""
    if not pa.types.is_string(wanted) or len(content) > _MOST_TEXT:
        return pa.array(column, type=wanted)
    sizes = map(len, column if content.isascii() else (text.encode() for text in column))
    ends = np.fromiter(sizes, dtype=np.int32, count=len(column)).cumsum(dtype=np.int32)
    buffers = [None, pa.py_buffer(np.append(np.int32(0), ends)), pa.py_buffer(content)]
    return pa.Array.from_buffers(wanted, len(column), buffers)


def _type(kind: Kind) -> Any:
    pa = parquet_library()
    return pa.int64() if kind == "whole" else pa.string() if kind in ("id", "label") else pa.float64()


# -- reading -----------------------------------------------------------------------------------------------------------


class Texts(Sequence[str]):
    """Texts that stay in Arrow's memory, where millions of them take little."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        found: str | list[str] = (
            self.array[place].to_pylist() if isinstance(place, slice) else self.array[place].as_py()
        )
        return found

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), ROWS_AT_A_TIME):
            yield from self.array.slice(start, ROWS_AT_A_TIME).to_pylist()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Texts):
            return bool(self.array.equals(other.array))
        return isinstance(other, list | tuple) and len(other) == len(self) and all(map(str.__eq__, self, other))

    def __hash__(self) -> int:
        return hash((len(self), self[0] if len(self) else ""))

    def are_different(self) -> bool:
        """Return whether no text occurs twice."""
        from pyarrow import compute

        return bool(compute.count_distinct(self.array).as_py() == len(self))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ColumnFile:
    """A Parquet file that a document states: opened, of whatever content."""

    file: IO[bytes]
    name: str
    """What messages call it."""

    rows: int
    """How many rows it must have."""

    sha256: str
    """What the hash of its bytes must be."""

    places: tuple[ColumnPlace, ...]
    """What columns it must have."""

    def read(self) -> dict[ColumnPlace, Any]:
        """Return the columns, once all that is stated of the file was found to hold."""
        self.check()
        pa = parquet_library()
        try:
            opened = opened_parquet(self.file)
            self._check_columns(opened)
            # one at a time: what was read of another one need not be in memory any more
            found = {place: self._column(place, opened.read(columns=[place.name]).column(0)) for place in self.places}
        except (pa.ArrowException, OSError, ValueError):
            raise RecordError(f"{self.name} cannot be read: it must be a whole Parquet file.") from None
        self.check()  # it must not have changed meanwhile
        return found

    def check(self) -> None:
        """Refuse bytes that do not have the hash that is stated."""
        found = self.digest()
        if found != self.sha256:
            raise HashMismatch(f"The record's hash does not fit {self.name}: it was altered or damaged.", found=found)

    def digest(self) -> str:
        """Return the SHA-256 of the bytes."""
        digest = hashlib.sha256()
        for part in self.parts():
            digest.update(part)
        return digest.hexdigest()

    def parts(self) -> Iterator[bytes]:
        """Return the bytes, some at a time."""
        self.file.seek(0)
        while part := self.file.read(_AT_A_TIME):
            yield part

    def _check_columns(self, opened: Any) -> None:
        schema, rows = opened.schema_arrow, opened.metadata.num_rows
        wanted = [(place.name, str(_type(place.kind))) for place in self.places]
        found = [(field.name, str(field.type)) for field in schema]
        if found != wanted:
            wrong = sorted({name for name, _ in {*found} ^ {*wanted}}) or ["their order"]
            raise RecordError(
                f"{self.name} must have the columns that the record names, but differs in: {_few(wrong)}."
            )
        if rows != self.rows:
            raise RecordError(f"{self.name} must have {self.rows} rows, got {rows}.")
        size = self.file.seek(0, os.SEEK_END)
        if 8 * rows * len(wanted) > most_unpacked(size):
            raise RecordError(f"{self.name} is refused: it would take far more memory than its size.")

    def _column(self, place: ColumnPlace, column: Any) -> Any:
        if column.null_count and place.kind != "setting":
            raise RecordError(f"{self.name} must have a value for everybody in column {place.name!r}.")
        if place.kind == "id":
            return Texts(column)
        if place.kind == "label":
            encoded = column.combine_chunks().dictionary_encode()
            names = encoded.dictionary.to_pylist()
            return [names[code] for code in encoded.indices.to_numpy().tolist()]
        if place.kind == "setting":
            return column.to_pylist()
        found = column.to_numpy()
        if place.kind == "number" and np.isnan(found).any():
            raise RecordError(f"{self.name} must hold numbers in column {place.name!r}, but one is NaN.")
        return found


def opened_parquet(file: IO[bytes]) -> Any:
    """Open a Parquet file, of which columns are then read when they are asked for."""
    parquet_library()
    from pyarrow import parquet

    file.seek(0)
    return parquet.ParquetFile(file, memory_map=False, pre_buffer=False)


def _few(names: list[str]) -> str:
    shown = ", ".join(repr(name)[:40] for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


class _File(io.FileIO):
    """A file that is closed with the last that needs it."""

    def __del__(self) -> None:
        self.close()


def open_inside(folder: int, name: str, called: str) -> IO[bytes]:
    """Open a file of an opened folder; a link, which might lead elsewhere, and all else that is no file is refused."""
    try:
        # not blocking: a pipe would be waited for
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as problem:
        reason = "it is a link" if Path(called).is_symlink() else problem.strerror or type(problem).__name__
        raise RecordError(f"{called} cannot be read: {reason}.") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise RecordError(f"{called} cannot be read: it is not a file.")
    return cast(IO[bytes], _File(descriptor, "rb"))
