"""Some columns by name: numbers, words, texts and ids, and one sentence for what is not allowed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hushbid.common.arrays import (
    ID_KINDS,
    BoolArray,
    FloatArray,
    IntArray,
    are_ascii,
    first_row,
    has_no_width,
    id_texts,
    rows_text,
)
from hushbid.common.tables.columns import (
    HOLD_LABELS,
    HOLD_NUMBERS,
    Column,
    Raw,
    Texts,
    has_decimal_comma,
    is_in_thousands,
    word_of,
)
from hushbid.errors import DataError, InputError

ROWS_NOTE = "rows count from 0, after the header"
_POINTS = "Where semicolons separate the cells, 1.500 may be 1.5 or 1500: write 1,5 or 1500."
_COMMAS = "A decimal comma is read where semicolons separate the cells and no cell of the column has a decimal point."


def rows_note(row: int | None, lines: IntArray | None) -> str:
    """How rows count, and what a spreadsheet calls the first that a message names.

    >>> rows_note(1, np.array([2, 4])), rows_note(1, None)
    ('rows count from 0, after the header: row 1 is row 4 of the spreadsheet', 'rows count from 0, after the header')
    """
    if row is None or lines is None or row >= lines.size:
        return ROWS_NOTE
    return f"{ROWS_NOTE}: row {row} is row {lines[row]} of the spreadsheet"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Table:
    """Some columns of a file, a frame or arrays, by name."""

    source: str
    """What messages call it."""

    columns: Mapping[str, Column]
    """The columns that were asked for and are there."""

    rows: int
    """How many rows there are."""

    numbered: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The number of each row, from 0, before any were left out."""

    lines: IntArray | None = None
    """What a spreadsheet calls each of all rows: the header is row 1, an empty row counts, a cell of several lines does
    not; None if it is no file that one opens with a spreadsheet."""

    notes: tuple[str, ...] = ()
    """Sentences about how the file was read, where that was a choice."""

    def __post_init__(self) -> None:
        if self.numbered.size != self.rows:
            object.__setattr__(self, "numbered", np.arange(self.rows))

    def only(self, which: BoolArray) -> "Table":
        """Some of the rows; they keep their numbers in `numbered`."""
        rows = np.flatnonzero(which)
        columns = {name: column.only(rows) for name, column in self.columns.items()}
        return replace(self, columns=columns, rows=rows.size, numbered=self.numbered[which])

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    @property
    def own_lines(self) -> IntArray | None:
        """What a spreadsheet calls each of the rows that are left."""
        return None if self.lines is None else self.lines[self.numbered]

    def raw(self, name: str) -> Raw:
        """A column as it was given, to be written beside decisions."""
        return self.columns[name].raw

    def notes_on(self, *numbers: str) -> tuple[str, ...]:
        """Sentences about how the file was read, columns of ``numbers`` included, where that was a choice."""
        with_commas = [name for name in numbers if self.columns[name].has_commas]
        told = (f"{self.source}: the commas of column {name!r} were read as decimal signs." for name in with_commas)
        return (*self.notes, *told)

    # -- numbers -------------------------------------------------------------------------------------------------------

    def numbers(self, name: str, *, error: type[InputError] = InputError, may_be_missing: bool = False) -> FloatArray:
        """A column as floats, NaN where a cell is empty and may be; every other row that is no number is named."""
        self._refuse_kind(name, error)
        values, bad = self.columns[name].numbers()
        if not may_be_missing:
            bad = bad | np.isnan(values)
        if bad.any():
            what = f"numbers such as 0.25{' or nothing' if may_be_missing else ''}"
            raise self._refusal(name, what, bad, error, self._hint(name, bad))
        return values

    def negative(self, name: str) -> BoolArray:
        """Which rows of a column hold something, but no number from 0 up."""
        values, strange = self._readable(name)
        return strange | (values < 0.0)

    def nonnegative_numbers(self, name: str, *, error: type[InputError] = InputError, missing: float) -> FloatArray:
        """A column of numbers from 0 up, ``missing`` where a cell is empty; every other row is named."""
        self._refuse_kind(name, error)
        bad = self.negative(name)
        if bad.any():
            raise self._refusal(name, "a number from 0 up or nothing", bad, error, self._hint(name, bad))
        values = self.readable_numbers(name)
        return np.where(np.isnan(values), missing, values)

    def readable_numbers(self, name: str) -> FloatArray:
        """A column as floats, NaN in every row that is no number."""
        return self._readable(name)[0]

    def _readable(self, name: str) -> tuple[FloatArray, BoolArray]:
        if self.columns[name].kind not in HOLD_NUMBERS:
            return np.full(self.rows, math.nan), np.ones(self.rows, dtype=bool)
        return self.columns[name].numbers()

    def _refuse_kind(self, name: str, error: type[InputError]) -> None:
        held = self.columns[name].kind
        if held not in HOLD_NUMBERS:
            raise error(f"{self.source}: column {name!r} must hold numbers, not {held}.", field=name)

    def _hint(self, name: str, bad: BoolArray) -> str:
        column = self.columns[name]
        held = column.cells()
        cells = [held[row] for row in np.flatnonzero(bad)]
        if any(map(has_decimal_comma, cells)):
            return f" {_COMMAS}"
        return f" {_POINTS}" if getattr(column, "comma", False) and any(map(is_in_thousands, cells)) else ""

    # -- words ---------------------------------------------------------------------------------------------------------

    def coded(self, name: str, codes: Mapping[str, float], allowed: str, *, capitals: bool = True) -> FloatArray:
        """A column of words as their numbers, NaN where a cell is empty; every row that holds another word is named.

        Unless ``capitals`` count, 1.0 and True are read as the words 1 and true.
        """
        column = self.columns[name]
        cells = column.labels()[0] if isinstance(column, Texts) else column.cells()
        try:
            known = set(cells)
        except TypeError:  # a list or a mapping, which is no word
            cells = [None if cell is None else str(cell) for cell in cells]
            known = set(cells)
        words = {cell: word_of(cell, capitals=capitals) for cell in known}
        values = np.array([codes.get(words[cell], math.nan) for cell in cells])
        strange = {cell for cell, word in words.items() if word != "" and word not in codes}
        if strange:
            bad = np.array([cell in strange for cell in cells], dtype=bool)
            raise self._refusal(name, f"{allowed}, or nothing,", bad, DataError)
        return values

    # -- texts ---------------------------------------------------------------------------------------------------------

    def texts(self, name: str) -> list[str]:
        """A column as texts, without spaces around; empty where a cell is missing."""
        return ["" if cell is None else str(cell).strip() for cell in self._labels(name)]

    def labels(self, name: str, what: str) -> list[str]:
        """A column of texts of which none is empty: ``what`` each person has, such as a group."""
        found = self.texts(name)
        if "" in found:
            empty = np.array([one == "" for one in found], dtype=bool)
            raise self._refusal(name, what, empty, InputError)
        return found

    def ids(self, name: str) -> list[str]:
        """A column of ids in the form in which they are compared; empty where one is missing."""
        labels = self._labels(name)
        if are_ascii(labels):
            return id_texts(labels)
        others = [row for row, one in enumerate(labels) if isinstance(one, str) and not one.isascii()]
        hidden = [row for row in others if has_no_width(str(labels[row]))]
        if hidden:
            bad = np.zeros(self.rows, dtype=bool)
            bad[hidden] = True
            what = "ids without characters that nobody sees, such as a space of no width"
            raise self._refusal(name, what, bad, InputError)
        return id_texts(labels)

    def _labels(self, name: str) -> list[object]:
        """A column that may name people or groups: texts, integers and None."""
        held = self.columns[name].kind
        if held not in HOLD_LABELS:
            raise refusal(name, held, self.source)
        found, strange = self.columns[name].labels()
        if strange.any():
            raise self._refusal(name, ID_KINDS, strange, InputError)
        return found

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
            told = f"{self.source}: column {name!r} must name everybody, but {self._rows(empty)} not"
            told += f" ({self._note(empty)})."
            raise InputError(told, field=name, row=self._first(empty))
        twin = first[keys[int(np.argmax(again))]]
        raise InputError(
            f"{self.source}: column {name!r} must name everybody once, but {self._rows(again)} not (the first repeats"
            f" row {self.numbered[twin]}; {self._note(again)}).",
            field=name,
            row=self._first(again),
        )

    # -- what is said --------------------------------------------------------------------------------------------------

    def _refusal(self, name: str, what: str, bad: BoolArray, error: type[InputError], hint: str = "") -> InputError:
        told = f"{self.source}: column {name!r} must hold {what.rstrip(',')}"
        told += f", but {self._rows(bad)} not ({self._note(bad)}).{hint}"
        return error(told, field=name, row=self._first(bad))

    def _rows(self, bad: BoolArray) -> str:
        return rows_text(bad, "does", numbered=self.numbered)

    def _first(self, bad: BoolArray) -> int:
        return int(self.numbered[first_row(bad)])

    def _note(self, bad: BoolArray) -> str:
        return rows_note(self._first(bad), self.lines)


def refusal(column: str, held: str, source: str = "") -> InputError:
    """What is said of a column that may not name people or groups."""
    return InputError(
        f"{f'{source}: c' if source else 'C'}olumn {column!r} must hold {ID_KINDS}, not {held}.", field=column
    )


def places_of(source: str, names: Sequence[str], needed: Sequence[str], optional: Sequence[str]) -> dict[str, int]:
    """Where the wanted columns are among all; say at once which needed ones there are not, or if two have one name."""
    missing = [name for name in needed if name not in names]
    if missing:
        raise InputError(
            f"{source} must have the column{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}; it has"
            f" {', '.join(map(repr, filter(None, names[:20]))) or 'none'}{' and more' * (len(names) > 20)}.",
            field=missing[0],
        )
    wanted = {name: names.index(name) for name in dict.fromkeys([*needed, *optional]) if name in names}
    refuse_twins(source, [name for name in names if name in wanted])
    return wanted


def refuse_twins(source: str, names: list[str]) -> None:
    """Say if two columns have one name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{source} has two columns called {twice!r}.")
