"""Excel workbooks: the first sheet that is not hidden, whose first row that is not empty names the columns.

What is read are values. An error such as #DIV/0!, and a formula that no spreadsheet has calculated yet, are cells that
hold something, but no number and no name; they are never taken for empty ones.
"""

import io
import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, BinaryIO

import numpy as np

from hushbid.common.documents import most_unpacked
from hushbid.common.tables.columns import Cells, Raw, is_missing
from hushbid.common.tables.csv_files import listed
from hushbid.common.tables.table import Table, places_of, refuse_twins
from hushbid.errors import InputError, MissingExtra

ZIP_MAGIC, OLE_MAGIC = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_MOST_ROWS, _LONGEST_TEXT = 1 << 20, 32767
_MOST_CELLS = 20_000_000
_EMPTY = (None, "n")
_MOST_DIGITS = 10**15
"""A spreadsheet keeps 15 digits of a number."""

_DATED = datetime(1980, 1, 1)


class _NoValue:
    """An error, or a formula without a value."""


_NO_VALUE = _NoValue()


def read_workbook(content: bytes, source: str, needed: list[str], optional: list[str]) -> Table:
    """Columns of the first sheet by name."""
    rows, notes = _rows(content, source, values=True)
    line, names = next(((line, _names(row)) for line, row in enumerate(rows, 1) if not _is_empty(row)), (0, []))
    if not names:
        raise InputError(f"{source} is empty: the first row of its first sheet must name the columns.")
    refuse_twins(source, [name for name in names if name])
    wanted = places_of(source, names, needed, optional)
    kept = [(number, row) for number, row in enumerate(rows[line:], line + 1) if not _is_empty(row)]
    columns = {name: [_value(row, place) for _, row in kept] for name, place in wanted.items()}
    if any(cell is None for cells in columns.values() for cell in cells):
        _mark_formulas(content, source, [number for number, _ in kept], wanted, columns)
    lines = np.array([number for number, _ in kept], dtype=np.int64)
    found = {name: Cells(cells, numerals=True) for name, cells in columns.items()}
    return Table(source=source, columns=found, rows=len(kept), lines=lines, notes=notes)


def names_in_workbook(content: bytes, source: str) -> list[str]:
    """The names of the columns."""
    rows, _ = _rows(content, source, values=True)
    return [name for name in next((_names(row) for row in rows if not _is_empty(row)), []) if name]


def _rows(content: bytes, source: str, *, values: bool) -> tuple[list[tuple[Any, ...]], tuple[str, ...]]:
    """Pairs of value and type, the values of formulas or formulas; and what is to be said about where they stand."""
    from zipfile import BadZipFile, ZipFile  # loads much, and few read workbooks

    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise MissingExtra("Excel workbooks need openpyxl: pip install '.[xlsx]' in a checkout, or use CSV.") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what it does not keep, and we do not need
            with ZipFile(io.BytesIO(content)) as packed:  # reads of a part no more than it states
                _refuse_large(sum(part.file_size for part in packed.infolist()), len(content), source)
            book = load_workbook(io.BytesIO(content), read_only=True, data_only=values)
            sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
            if not sheets:
                raise InputError(f"{source} has no sheet of cells that is not hidden.")
            sheet, several = sheets[0], len(sheets) > 1
            notes = (f"{source}: its first sheet, {sheet.title!r}, was read; the others were not.",) if several else ()
            sheet.reset_dimensions()  # some programs state them wrongly
            return _bounded(sheet.iter_rows(), source), notes
    except (InvalidFileException, BadZipFile, KeyError, ValueError, TypeError, SyntaxError, OSError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"{source} is not a readable Excel workbook.") from None


def _refuse_large(unpacked: int, packed: int, source: str) -> None:
    most = most_unpacked(packed)
    if unpacked > most:
        raise InputError(f"{source} is refused: decompressed it would be larger than {most >> 20} MiB. Save it as CSV.")


def _bounded(sheet: Iterable[Iterable[Any]], source: str) -> list[tuple[Any, ...]]:
    """Read the rows of a sheet; refuse one with more rows or cells than a spreadsheet that is meant to be read.

    A few bytes can place a cell in the last column or row that there is, and all before it are then read as empty.
    """
    rows: list[tuple[Any, ...]] = []
    cells = 0
    for row in sheet:
        found = tuple(_EMPTY if cell.value is None and cell.data_type == "n" else _pair(cell) for cell in row)
        cells += len(found)
        if len(rows) == _MOST_ROWS or cells > _MOST_CELLS:
            most = f"{_MOST_ROWS:,} rows or {_MOST_CELLS:,} cells, empty ones included"
            raise InputError(f"{source} is refused: its sheet has more than {most}. Save it as CSV.")
        rows.append(found)
    return rows


def _pair(cell: Any) -> tuple[Any, str]:
    return cell.value, cell.data_type


def _is_empty(row: tuple[Any, ...]) -> bool:
    return all(value is None and kind != "f" for value, kind in row)


def _names(row: tuple[Any, ...]) -> list[str]:
    return ["" if value is None else str(value).strip() for value, _ in row]


def _value(row: tuple[Any, ...], place: int) -> Any:
    value, kind = row[place] if place < len(row) else (None, "n")
    if kind == "e":
        return _NO_VALUE
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return int(value)  # 7 and 7.0 are one number to a spreadsheet, and one name
    return value


def _mark_formulas(
    content: bytes, source: str, lines: list[int], wanted: Mapping[str, int], columns: dict[str, list[Any]]
) -> None:
    """Where a cell has no value, see whether a formula stands there."""
    rows, _ = _rows(content, source, values=False)
    for name, place in wanted.items():
        for number, line in enumerate(lines):
            row = rows[line - 1]
            if columns[name][number] is None and place < len(row) and row[place][1] == "f":
                columns[name][number] = _NO_VALUE


# -- out ---------------------------------------------------------------------------------------------------------------


def xlsxwriter() -> Any:
    """The package, imported when it is needed."""
    try:
        import xlsxwriter as package
    except ImportError:
        raise MissingExtra(
            "Excel workbooks need xlsxwriter: pip install '.[xlsx]' in a checkout, or use CSV."
        ) from None
    return package


def write_workbook(file: BinaryIO, columns: Mapping[str, Raw]) -> None:
    """Write columns as one sheet; a text stays one whatever it begins with. The same table gives the same bytes."""
    cells = {name: listed(column) for name, column in columns.items()}
    rows = len(next(iter(cells.values()), []))
    if rows >= _MOST_ROWS:
        raise InputError(f"A sheet has room for {_MOST_ROWS - 1:,} people, and there are {rows:,}: use CSV or Parquet.")
    whole = io.BytesIO()
    book = xlsxwriter().Workbook(whole, {"in_memory": True})
    book.set_properties({"created": _DATED})
    sheet, as_text = book.add_worksheet(), book.add_format({"quote_prefix": True})
    sheet.freeze_panes(1, 0)
    for place, (name, column) in enumerate(cells.items()):
        for row, cell in enumerate([name, *column]):
            _write_cell(sheet, as_text, row, place, cell)
    book.close()
    file.write(whole.getvalue())


def _write_cell(sheet: Any, as_text: Any, row: int, place: int, cell: Any) -> None:
    if is_missing(cell):
        return
    if isinstance(cell, bool):
        sheet.write_boolean(row, place, cell)
    elif isinstance(cell, (int, float)) and abs(cell) < float("inf") and not _loses_digits(cell):
        sheet.write_number(row, place, cell)
    else:
        text = str(cell)
        if len(text) > _LONGEST_TEXT:
            raise InputError(
                f"A cell of a sheet has room for {_LONGEST_TEXT:,} characters, but row {row - 1} has more."
            )
        sheet.write_string(row, place, text, as_text)


def _loses_digits(cell: float) -> bool:
    return isinstance(cell, int) and abs(cell) >= _MOST_DIGITS
