"""Tables in files: CSV and Parquet, in and out, and ``-`` for the standard streams.

A table is a few columns of equal length. What is read is recognised by its content, what is written by the end of its
name (``.csv``, ``.parquet``); standard output gets CSV. CSV needs nothing but Python; Parquet needs pyarrow.

A number is a decimal number, ``inf`` and ``-inf`` included. What is missing is an empty cell of CSV, and null or NaN in
a column of numbers of Parquet. Any other cell that should hold a number, ``NA`` and ``nan`` as well, is refused.

Rows are counted from 0, the header not included. A message about a cell names its row, never what it holds.
"""

import csv
import io
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hushbid.arrays import ID_KINDS, BoolArray, FloatArray, IntArray, first_row, id_texts, rows_text
from hushbid.durable import STREAM, Write
from hushbid.errors import DataError, InputError, MissingExtra

Column = Sequence[Any] | NDArray[Any]
Read = tuple[dict[str, Column], int, dict[str, str]]
"""Columns, how many rows they have, and what those hold that may not name people."""

ROWS_NOTE = "rows count from 0, after the header"
_PARQUET_MAGIC = b"PAR1"
_PARQUET_NAMES = (".parquet", ".pq")
_DELIMITERS = ",;\t"
_LONGEST_CELL = 1 << 20
_KINDS = (
    ("is_floating", "floats"),
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
_ALLOWED_KINDS = ("is_integer", "is_string", "is_large_string", "is_string_view", "is_null")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Table:
    """Some columns of a file, by name: texts as they stand in a CSV file, typed arrays from a Parquet file."""

    source: str
    """What messages call the file."""

    columns: dict[str, Column]
    """The columns that were asked for and are there."""

    rows: int
    """How many rows there are."""

    numbered: IntArray
    """The number of each row in the file."""

    refused: Mapping[str, str]
    """What columns hold that may not name people or groups: floats, dates and so on, of a Parquet file."""

    def only(self, which: BoolArray) -> "Table":
        """Some of the rows; they keep their numbers in `numbered`."""
        rows: list[int] = np.flatnonzero(which).tolist()
        columns: dict[str, Column] = {
            name: column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns, rows=len(rows), numbered=self.numbered[which])

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def numbers(self, name: str, *, error: type[InputError] = InputError, may_be_missing: bool = False) -> FloatArray:
        """A column as floats, NaN where a cell is empty and may be; every other row that is no number is named."""
        values, bad = _parsed(self.columns[name])
        if not may_be_missing:
            bad |= np.isnan(values)
        if bad.any():
            raise error(
                f"{self.source}: column {name!r} must hold numbers such as 0.25"
                f"{' or nothing' if may_be_missing else ''}, but {self._rows(bad)} not ({ROWS_NOTE}).",
                field=name,
                row=self._first(bad),
            )
        return values

    def not_positive(self, name: str) -> BoolArray:
        """Which rows of a column hold something, but no positive number."""
        values, strange = _parsed(self.columns[name])
        return strange | (values <= 0.0)

    def positive_numbers(self, name: str, *, error: type[InputError] = InputError, missing: float) -> FloatArray:
        """A column of positive numbers, ``missing`` where a cell is empty; every other row is named."""
        bad = self.not_positive(name)
        if bad.any():
            raise error(
                f"{self.source}: column {name!r} must hold a positive number or nothing, but {self._rows(bad)} not"
                f" ({ROWS_NOTE}).",
                field=name,
                row=self._first(bad),
            )
        values = self.readable_numbers(name)
        return np.where(np.isnan(values), missing, values)

    def readable_numbers(self, name: str) -> FloatArray:
        """A column as floats, NaN in every row that is no number."""
        return _parsed(self.columns[name])[0]

    def coded(self, name: str, codes: Mapping[str, float], allowed: str, *, capitals: bool = True) -> FloatArray:
        """A column of words as their numbers, NaN where a cell is empty; every row that holds another word is named.

        Unless ``capitals`` count, 1.0 and True are read as the words 1 and true.
        """
        values, bad = np.full(self.rows, math.nan), np.zeros(self.rows, dtype=bool)
        for row, cell in enumerate(_as_list(self.columns[name])):
            word = word_of(cell, capitals=capitals)
            values[row] = codes.get(word, math.nan)
            bad[row] = word not in codes and word != ""
        if bad.any():
            raise DataError(
                f"{self.source}: column {name!r} must hold {allowed}, or nothing, but {self._rows(bad)} not"
                f" ({ROWS_NOTE}).",
                field=name,
                row=self._first(bad),
            )
        return values

    def texts(self, name: str) -> list[str]:
        """A column as texts, without spaces around; empty where a cell is missing."""
        return ["" if cell is None else str(cell).strip() for cell in self._labels(name)]

    def ids(self, name: str) -> list[str]:
        """A column of ids in the form in which they are compared; empty where one is missing."""
        return id_texts(self._labels(name))

    def _labels(self, name: str) -> list[Any]:
        """A column that may name people or groups: texts, integers and None."""
        if name in self.refused:
            raise refusal(name, self.refused[name], self.source)
        return _as_list(self.columns[name])

    def keys(self, name: str) -> list[str]:
        """A column of texts of which none is empty and no two are equal: one person, one row."""
        keys = self.ids(name)
        if len(set(keys)) == len(keys) and "" not in keys:
            return keys
        # something is wrong: say where
        first: dict[str, int] = {}
        empty, again = np.zeros(len(keys), dtype=bool), np.zeros(len(keys), dtype=bool)
        for row, key in enumerate(keys):
            empty[row] = key == ""
            again[row] = bool(key) and first.setdefault(key, row) != row
        if empty.any():
            told = f"{self.source}: column {name!r} must name everybody, but {self._rows(empty)} not."
            raise InputError(told, field=name, row=self._first(empty))
        twin = first[keys[int(np.argmax(again))]]
        raise InputError(
            f"{self.source}: column {name!r} must name everybody once, but {self._rows(again)} not (the first repeats"
            f" row {self.numbered[twin]}; {ROWS_NOTE}).",
            field=name,
            row=self._first(again),
        )

    def _rows(self, bad: BoolArray) -> str:
        return rows_text(bad, "does", numbered=self.numbered)

    def _first(self, bad: BoolArray) -> int:
        return int(self.numbered[first_row(bad)])


def word_of(cell: object, *, capitals: bool) -> str:
    """A cell as a word, empty where it is; unless ``capitals`` count, 1.0 and True are the words 1 and true."""
    word = "" if cell is None or (isinstance(cell, float) and math.isnan(cell)) else str(cell).strip()
    return word if capitals else word.lower().removesuffix(".0")


def read_table(path: str | Path, *, needed: Sequence[str], optional: Sequence[str] = ()) -> Table:
    """Columns of a CSV or Parquet file by name; ``-`` reads standard input. All missing columns are told at once."""
    source = "standard input" if str(path) == STREAM else str(path)
    with _opened(path) as file:
        is_parquet = file.read(4) == _PARQUET_MAGIC
        file.seek(0)
        read = _read_parquet if is_parquet else _read_csv
        columns, rows, refused = read(file, source, list(needed), list(optional))
    if rows == 0:
        raise InputError(f"{source} has no rows: there is a header and nobody below it.")
    return Table(source=source, columns=columns, rows=rows, numbered=np.arange(rows), refused=refused)


def columns_of(path: str | Path) -> list[str]:
    """The names of a file's columns; reads no further than needed, and not from a stream."""
    with _opened(path) as file:
        if file.read(4) == _PARQUET_MAGIC:
            return list(_parquet().read_schema(file).names)
        file.seek(0)
        names, _ = _header(_text(file, str(path)), str(path), [])
        return names


def table_writer(path: str | Path, columns: Mapping[str, Column]) -> Write:
    """A function that writes the columns to an open file, in the format that the path's end names."""
    if str(path) == STREAM or Path(path).suffix.lower() == ".csv":
        return lambda file: _write_csv(file, columns)
    if Path(path).suffix.lower() in _PARQUET_NAMES:
        _parquet()  # say early that it is missing
        return lambda file: _write_parquet(file, columns)
    raise InputError(f"{path} must end in .csv or .parquet, or be - for standard output.")


def refused_kind(types: Any, kind: Any) -> str | None:
    """What a column of an Arrow type holds, if it may not name people or groups; ``types`` is ``pyarrow.types``."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    if any(getattr(types, allowed)(kind) for allowed in _ALLOWED_KINDS):
        return None
    return next((name for test, name in _KINDS if getattr(types, test)(kind)), str(kind))


def refusal(column: str, held: str, source: str = "") -> InputError:
    """What is said of a column that may not name people or groups."""
    return InputError(
        f"{f'{source}: c' if source else 'C'}olumn {column!r} must hold {ID_KINDS}, not {held}.", field=column
    )


# -- opening -----------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(path: str | Path) -> Iterator[BinaryIO]:
    if str(path) == STREAM:
        yield io.BytesIO(sys.stdin.buffer.read())
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
        if not file.seekable():
            yield io.BytesIO(file.read())
        else:
            yield file


def _refuse_missing(source: str, names: Sequence[str], needed: Iterable[str]) -> None:
    missing = [name for name in needed if name not in names]
    if missing:
        raise InputError(
            f"{source} must have the column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}; it has"
            f" {', '.join(map(repr, names[:20]))}{' and more' * (len(names) > 20)}."
        )


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _read_csv(file: BinaryIO, source: str, needed: list[str], optional: list[str]) -> Read:
    text = _text(file, source)
    names, delimiter = _header(text, source, needed)
    _refuse_missing(source, names, needed)
    wanted = {name: names.index(name) for name in dict.fromkeys([*needed, *optional]) if name in names}
    cells = _cells(text, source, delimiter, len(names))
    columns: dict[str, Column] = {name: [row[place] for row in cells] for name, place in wanted.items()}
    return columns, len(cells), {}


def _text(file: BinaryIO, source: str) -> io.TextIOBase:
    content = file.read()
    try:
        decoded = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise InputError(f"{source} must be UTF-8 text or a Parquet file, but line {line} is not.") from None
    if "\0" in decoded:
        raise InputError(f"{source} is neither CSV nor Parquet: it holds zero bytes.")
    return io.StringIO(decoded, newline="")


def _header(text: io.TextIOBase, source: str, needed: list[str]) -> tuple[list[str], str]:
    """The names in the first line, and the delimiter between them: the one that gives most of the names needed."""
    line = text.readline()
    text.seek(0)
    readings = []
    csv.field_size_limit(_LONGEST_CELL)
    for delimiter in _DELIMITERS:
        try:
            names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
        except csv.Error as problem:
            raise InputError(f"{source}, line 1, is not CSV: {problem}.") from None
        # most of the names that are needed, then most names, then the usual delimiter
        readings.append((sum(name in names for name in needed), len(names), -_DELIMITERS.index(delimiter), names))
    _, _, place, names = max(readings)
    if not any(names):
        raise InputError(f"{source} is empty: its first line must name the columns.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{source} has two columns called {twice!r}.")
    return names, _DELIMITERS[-place]


def _cells(text: io.TextIOBase, source: str, delimiter: str, width: int) -> list[list[str]]:
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    try:
        next(reader)
        cells = [row for row in reader if row]  # an empty line is not a row
    except csv.Error as problem:
        raise InputError(f"{source}, line {reader.line_num}, is not CSV: {problem}.") from None
    ragged = np.array([len(row) != width for row in cells], dtype=bool)
    if ragged.any():
        raise InputError(
            f"{source}: every row must have {width} cells, as the header has, but {rows_text(ragged, 'does')} not"
            f" ({ROWS_NOTE}).",
            row=first_row(ragged),
        )
    return cells


def _parsed(column: Column) -> tuple[FloatArray, BoolArray]:
    """Cells as numbers, NaN where there is none, and which of these hold something all the same."""
    if isinstance(column, np.ndarray):  # typed: missing is null or NaN, and a text is no number, as on every engine
        if column.dtype.kind in "fiu":
            return column.astype(np.float64), np.zeros(column.size, dtype=bool)
        cells = column.tolist()
        values = np.array([float(cell) if type(cell) is int else math.nan for cell in cells])
        return values, np.isnan(values) & np.array([cell is not None for cell in cells], dtype=bool)
    # the quick way, if no cell is missing, strange or written with underscores
    try:
        values = np.array([float(cell) for cell in column])
        if not (np.isnan(values).any() or any("_" in cell for cell in column)):
            return values, np.zeros(values.size, dtype=bool)
    except ValueError:
        pass
    values = np.array([number_of(cell) for cell in column])
    return values, np.isnan(values) & np.array([bool(cell.strip()) for cell in column])


def number_of(text: str) -> float:
    """The number that a text is; NaN if it is none, as are NA, nan and 1_000, which Python would read.

    >>> number_of(" 2.5 "), number_of("inf"), number_of("NA"), number_of("nan"), number_of("1_000"), number_of("")
    (2.5, inf, nan, nan, nan, nan)
    """
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _as_list(column: Column) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _write_csv(file: BinaryIO, columns: Mapping[str, Column]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_as_list(column) for column in columns.values()), strict=True))
    text.flush()
    text.detach()  # the file is the caller's to close


# -- Parquet -----------------------------------------------------------------------------------------------------------


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("Parquet files need pyarrow: pip install 'hushbid[engines]', or use CSV.") from None
    return parquet


def _read_parquet(file: BinaryIO, source: str, needed: list[str], optional: list[str]) -> Read:
    parquet = _parquet()
    import pyarrow as pa

    try:
        opened = parquet.ParquetFile(file)
        names = opened.schema_arrow.names
        _refuse_missing(source, names, needed)
        wanted = [name for name in dict.fromkeys([*needed, *optional]) if name in names]
        table = opened.read(columns=wanted)
    except (pa.ArrowException, OSError) as problem:
        raise InputError(f"{source} is not a readable Parquet file ({type(problem).__name__}).") from problem
    held = {name: refused_kind(pa.types, table.column(name).type) for name in wanted}
    refused = {name: what for name, what in held.items() if what is not None}
    return {name: _from_arrow(table.column(name), pa) for name in wanted}, table.num_rows, refused


def _from_arrow(column: Any, pa: Any) -> Column:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if column.null_count and pa.types.is_integer(kind):  # NumPy would make floats of them, which name nobody
        return np.array(column.to_pylist(), dtype=object)
    values = column.to_numpy()
    return values if isinstance(values, np.ndarray) else np.asarray(values)


def _write_parquet(file: BinaryIO, columns: Mapping[str, Column]) -> None:
    parquet = _parquet()
    import pyarrow as pa

    parquet.write_table(pa.table({name: pa.array(column) for name, column in columns.items()}), file)
