"""CSV as people have it: UTF-8, UTF-16 or Windows-1252; commas, semicolons or tabs; decimal commas beside semicolons.

A text without quotes and empty lines is split at its delimiters, which takes a fifth of the time. Any other, and one
with a fault, is read by Python's reader, which says where the fault is. Both give the same table.
"""

import codecs
import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

import numpy as np
import orjson

from hushbid.common.arrays import first_row, rows_text
from hushbid.common.tables.columns import MARKED, Column, Raw, Texts, harmless, without_mark
from hushbid.common.tables.table import Table, places_of, refuse_twins, rows_note
from hushbid.errors import InputError

_CHUNK = 1 << 17
_DELIMITERS = ",;\t"
_QUOTED, _MARKED = (np.isin(np.arange(256), [ord(sign) for sign in signs]) for signs in (',"\r', MARKED))
"""Which bytes take quotes wherever they are in a cell, and which take a mark where it begins."""

_LONGEST_CELL = 1 << 20
_HEAD = 1 << 16
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WINDOWS = "is not UTF-8 and was read as Windows-1252."


def read_csv(content: bytes, source: str, needed: list[str], optional: list[str]) -> Table:
    """Columns by name; all missing ones are told at once."""
    text, notes = _decoded(content, source)
    names, delimiter = _header(text, source, needed)
    wanted = places_of(source, names, needed, optional)
    columns, lines = _split(text, delimiter, len(names), wanted) or _cell_by_cell(
        text, source, delimiter, len(names), wanted
    )
    rows = lines.size
    return Table(source=source, columns=columns, rows=rows, lines=lines, notes=notes)


def names_in_csv(file: BinaryIO, source: str) -> list[str]:
    """The names in the header; reads no further than needed."""
    head = file.read(_HEAD)
    if head.startswith(_UTF_16):
        head += file.read()  # a line ends in the middle of two bytes
    elif len(head) == _HEAD:
        head = head[: head.rfind(b"\n") + 1] or head + file.read()
    return _header(_decoded(head, source)[0], source, [])[0]


def _decoded(content: bytes, source: str) -> tuple[str, tuple[str, ...]]:
    """The text, and what is to be said about how it was read."""
    notes: tuple[str, ...] = ()
    try:
        text = content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        try:
            text, notes = content.decode("cp1252"), (f"{source} {_WINDOWS}",)
        except UnicodeDecodeError:
            raise InputError(f"{source} must be text in UTF-8 or Windows-1252, but line {line} is neither.") from None
    if "\0" in text or (notes and any(ord(sign) < 32 and sign not in "\t\r\n" for sign in set(text))):
        raise InputError(f"{source} is neither CSV nor Parquet nor an Excel workbook: it holds bytes that are no text.")
    return text, notes


def _header(text: str, source: str, needed: list[str]) -> tuple[list[str], str]:
    """The names in the first row, and the delimiter between them: the one that gives most of the names needed."""
    readings, end = [], text.find("\n", _HEAD)
    head = text if end < 0 else text[:end]
    csv.field_size_limit(_LONGEST_CELL)
    for delimiter in _DELIMITERS:
        try:
            first = next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), [])
        except csv.Error as problem:
            raise InputError(f"{source}, line 1, is not CSV: {problem}.") from None
        names = [without_mark(name.strip()) for name in first]
        # most of the names that are needed, then most names, then the usual delimiter
        readings.append((sum(name in names for name in needed), len(names), -_DELIMITERS.index(delimiter), names))
    _, _, place, names = max(readings)
    if not any(names):
        empty = "has an empty first line, which" if text.strip() else "is empty: its first line"
        raise InputError(f"{source} {empty} must name the columns.")
    refuse_twins(source, [name for name in names if name])
    return names, _DELIMITERS[-place]


Found = tuple[dict[str, Column], Any]
"""Columns by name, and what a spreadsheet calls their rows."""


def _cell_by_cell(text: str, source: str, delimiter: str, width: int, wanted: Mapping[str, int]) -> Found:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    cells, lines, line = [], [], 1
    try:
        next(reader)
        for row in reader:
            line += 1
            if row:  # an empty line is not a row
                cells.append(row)
                lines.append(line)
    except csv.Error as problem:
        raise InputError(f"{source}, row {line + 1} of the spreadsheet, is not CSV: {problem}.") from None
    numbers = np.array(lines, dtype=np.int64)
    ragged = np.array([len(row) != width for row in cells], dtype=bool)
    if ragged.any():
        raise InputError(
            f"{source}: every row must have {width} cells, as the header has, but {rows_text(ragged, 'does')} not"
            f" ({rows_note(first_row(ragged), numbers)}).",
            row=first_row(ragged),
        )
    comma = delimiter == ";"
    return {name: Texts([row[place] for row in cells], comma) for name, place in wanted.items()}, numbers


def _split(text: str, delimiter: str, width: int, wanted: Mapping[str, int]) -> Found | None:
    """Return the columns of a text in which lines are rows and delimiters separate cells; None for any other."""
    body = text.replace("\r\n", "\n").rstrip("\n")
    if '"' in body or "\r" in body or "\n\n" in body:
        return None
    content = np.frombuffer(body.encode(), dtype=np.uint8)
    ends = np.flatnonzero((content == ord(delimiter)) | (content == ord("\n")))
    after = np.append(content[ends], np.uint8(ord("\n")))  # what stands after each cell
    rows = np.count_nonzero(after == ord("\n"))
    if after.size != rows * width or not (after[width - 1 :: width] == ord("\n")).all():
        return None
    if np.diff(ends, prepend=-1, append=content.size).max() > _LONGEST_CELL:
        return None
    cells = body.replace("\n", delimiter).split(delimiter)
    comma = delimiter == ";"
    columns: dict[str, Column] = {name: Texts(cells[width + at :: width], comma) for name, at in wanted.items()}
    return columns, np.arange(2, rows + 1)


# -- out ---------------------------------------------------------------------------------------------------------------


def write_csv(file: BinaryIO, columns: Mapping[str, Raw]) -> None:
    """Write columns; a text that a spreadsheet would run is marked, and `read_csv` takes the mark off again.

    Rows in which no cell needs quotes are only joined, many at a time.
    """
    sizes = {len(column) for column in columns.values()}
    if len(sizes) > 1:
        raise ValueError("columns must have one length")
    file.write(_lines([[harmless(name) for name in columns]]))
    for start in range(0, max(sizes, default=0), _CHUNK):
        cells, plain = zip(*(_cells(column[start : start + _CHUNK]) for column in columns.values()), strict=True)
        if len(cells) > 1 and all(plain):
            file.write("\n".join([*map(",".join, zip(*cells, strict=True)), ""]).encode())
        else:
            file.write(_lines(zip(*cells, strict=True)))


def _lines(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def listed(column: Raw) -> list[Any]:
    """A list, an array or an Arrow array as Python's own objects."""
    if hasattr(column, "to_pylist"):
        return list(column.to_pylist())
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _cells(column: Raw) -> tuple[list[Any], bool]:
    """The cells of a column, harmless, and whether all are texts without quotes; of an array as Python writes them."""
    if isinstance(column, np.ndarray) and column.dtype in (np.float64, np.int64):
        found = orjson.dumps(np.ascontiguousarray(column), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].decode().split(",")
        # what is not finite orjson writes as null, and what has an exponent in another way
        size = np.abs(column) if column.dtype == np.float64 else np.zeros(0)
        for row in np.flatnonzero(((size < 1e-4) & (size > 0.0)) | ~(size < 1e16)).tolist():
            found[row] = repr(float(column[row]))
        return found, True
    cells = listed(column)
    if set(map(type, cells)) == {str}:
        whole = np.frombuffer("\n".join(["", *cells]).encode(errors="surrogatepass"), dtype=np.uint8)
        starts = np.flatnonzero(whole == ord("\n")) + 1
        first = whole[starts[starts < whole.size]]
        if starts.size == len(cells) and not _QUOTED[whole].any() and not _MARKED[first].any():
            return cells, True
    return [harmless(cell) if isinstance(cell, str) and cell[:1] in MARKED else cell for cell in cells], False
