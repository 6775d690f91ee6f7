"""What a column holds, whatever it came in: cells of a file, objects, or an array. Arrow's are in `arrow`.

A column has a *kind*, the word for what stands in it, and can be asked for numbers, for cells and for labels, which
name people or groups. Numbers are NaN where nothing stands; where something stands that is none, the row is *strange*.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

Raw = Any
"""A list, a NumPy array or an Arrow array: what is written beside decisions, and what a caller gives by name."""

ANYTHING, NUMERALS = "anything", "numerals"
"""Cells of which each must be looked at, and texts of a file of which each may be a number."""

HOLD_NUMBERS = frozenset({"integers", "floats", "decimals", "nothing", ANYTHING, NUMERALS})
HOLD_LABELS = frozenset({"integers", "texts", "nothing", ANYTHING, NUMERALS})

_ARRAY_KINDS = {
    "i": "integers",
    "u": "integers",
    "f": "floats",
    "b": "truth values",
    "c": "complex numbers",
    "M": "dates",
    "m": "durations",
    "S": "bytes",
}
_REAL = (int, float, np.integer, np.floating, Decimal, Fraction)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_THOUSANDS = re.compile(r"^\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*$")
"""A number that 1.500 may be: one and a half, or fifteen hundred as it is written where a comma is the decimal sign."""

_FORMULA = frozenset("=@\t\r")
MARKED = _FORMULA | frozenset("+-'")
"""What a text may begin with that `harmless` changes."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column(ABC):
    """One column of a table: rows of one type or of several, as they came."""

    content: Any

    has_commas: ClassVar[Any] = False
    """Whether commas are read as decimal signs."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The word for what it holds."""

    @abstractmethod
    def numbers(self) -> tuple[FloatArray, BoolArray]:
        """Numbers, NaN where there is none, and which of these rows hold something all the same."""

    @property
    def raw(self) -> Raw:
        """As it was given, to be written next to decisions."""
        return self.content

    def cells(self) -> list[Any]:
        """Python's own objects, None where one is missing."""
        return list(self.content)

    def labels(self) -> tuple[list[Any], BoolArray]:
        """Texts and integers, None where one is missing, and which rows hold something else."""
        return self.cells(), np.zeros(len(self.content), dtype=bool)

    def only(self, rows: IndexArray) -> Self:
        """Some of the rows."""
        return replace(self, content=[self.content[row] for row in rows.tolist()])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Texts(Column):
    """The cells of a CSV file."""

    content: list[str]
    comma: bool = False
    """Whether the file is one in which a comma may be the decimal sign."""

    kind = NUMERALS

    @property
    def raw(self) -> list[str]:
        """As it was given, but for the marks of `harmless`."""
        return self.labels()[0]

    def numbers(self) -> tuple[FloatArray, BoolArray]:
        """Numbers, and where texts are none."""
        cells = self.content
        if self.has_thousands:
            cells = [cell.replace(".", "?") for cell in cells]  # nobody can say which, so they are no numbers
        quick = _plain_numbers(cells)
        if quick is not None:
            return quick, np.zeros(quick.size, dtype=bool)
        if self.has_commas:
            cells = [cell.replace(",", ".", 1) for cell in cells]
        values = np.array([number_of(cell) for cell in cells])
        return values, np.isnan(values) & np.array([bool(cell.strip()) for cell in cells])

    @property
    def has_commas(self) -> bool:
        """Whether commas are decimal signs here: the file may have such, a cell has one, and no cell has a point."""
        return (
            self.comma and any("," in cell for cell in self.content) and not any("." in cell for cell in self.content)
        )

    @property
    def has_thousands(self) -> bool:
        """Whether points may stand between thousands: a comma may be the decimal sign, and no point must be one."""
        pointed = [cell for cell in self.content if "." in cell] if self.comma else []
        return bool(pointed) and all(map(is_in_thousands, pointed))

    def labels(self) -> tuple[list[Any], BoolArray]:
        """The texts, without the marks of `harmless`."""
        # an apostrophe before what a spreadsheet would run is how such a text is written
        marked = "'" in "".join(self.content)
        found = [without_mark(cell) for cell in self.content] if marked else self.content
        return found, np.zeros(len(found), dtype=bool)


def _plain_numbers(cells: list[str]) -> FloatArray | None:
    """Return what the cells hold where each is a number as JSON has them, many at a time; else None."""
    text = ",".join(cells)
    if any(sign in text for sign in 'tf[{"'):  # other values that JSON has; null becomes NaN
        return None
    try:
        found = np.array(orjson.loads(f"[{text}]"), dtype=np.float64)
    except (orjson.JSONDecodeError, OverflowError):
        return None
    return None if found.size != len(cells) or np.isnan(found).any() else found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cells(Column):
    """Objects of any kind: a spreadsheet's cells, or a list."""

    content: list[Any]
    numerals: bool = False
    """Whether a text may be a number, as in a spreadsheet, where one cannot see what it is."""

    kind = ANYTHING

    def numbers(self) -> tuple[FloatArray, BoolArray]:
        """Numbers, and which cells are none."""
        found = [_number(cell, self.numerals) for cell in self.content]
        strange = np.array([one is None for one in found], dtype=bool)
        return np.array([math.nan if one is None else one for one in found]), strange

    def cells(self) -> list[Any]:
        """The objects, None for what means that one is missing."""
        return [None if is_missing(cell) else cell for cell in self.content]

    def labels(self) -> tuple[list[Any], BoolArray]:
        """The objects, and which are neither texts nor integers."""
        found = self.cells()
        return found, np.array([not _is_label(cell) for cell in found], dtype=bool)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Array(Column):
    """A NumPy array of one kind."""

    content: NDArray[Any]

    @property
    def kind(self) -> str:
        """The word for its type."""
        return _ARRAY_KINDS.get(self.content.dtype.kind, str(self.content.dtype))

    def numbers(self) -> tuple[FloatArray, BoolArray]:
        """The numbers themselves."""
        return self.content.astype(np.float64), np.zeros(self.content.size, dtype=bool)

    def cells(self) -> list[Any]:
        """The numbers as Python's, None for NaN."""
        found: list[Any] = self.content.tolist()
        return found if self.content.dtype.kind != "f" else [None if cell != cell else cell for cell in found]

    def only(self, rows: IndexArray) -> Self:
        return replace(self, content=self.content[rows])


def column_of(values: Any) -> Column:
    """A column of a list, an array, or whatever NumPy reads; a masked entry is missing."""
    if isinstance(values, np.ma.MaskedArray):
        values = _unmasked(values)
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)) and _is_mixed(values):
        return Cells(list(values))
    found = np.asarray(values)
    if found.ndim != 1:
        raise TypeError
    return Cells(found.tolist()) if found.dtype.kind in "OUT" else Array(found)


def _is_mixed(values: Sequence[Any]) -> bool:
    """Whether NumPy would change what stands there: numbers beside a text or a truth value, integers beside a gap."""
    kinds = {type(one) for one in values}
    truths = kinds & {bool, np.bool_}
    return (bool(truths) and kinds != truths) or any(isinstance(one, str) or is_missing(one) for one in values)


def _unmasked(values: Any) -> NDArray[Any]:
    if not np.ma.is_masked(values):
        found: NDArray[Any] = values.data
    elif values.dtype.kind == "f":
        found = values.filled(math.nan)
    else:
        found = values.data.astype(object)
        found[np.ma.getmaskarray(values)] = None
    return found


def is_missing(cell: Any) -> bool:
    """Whether there is nothing: None, NaN, a masked entry, or the missing value of pandas, which is not imported."""
    if cell is None or cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, (float, np.floating)) and math.isnan(cell)


def of_one_kind(column: Raw) -> Raw:
    """A column as a typed file or frame holds it: integers beside texts, and those beyond 64 bits, are texts there.

    >>> of_one_kind([7, "ann", None]), of_one_kind([2**70]), of_one_kind([7, 8])
    (['7', 'ann', None], ['1180591620717411303424'], [7, 8])
    """
    if not isinstance(column, list):
        return column
    kinds = set(map(type, column)) - {type(None)}
    mixed = len(kinds) > 1 and any(issubclass(kind, str) for kind in kinds)
    if mixed or (kinds == {int} and any(abs(cell) >= 2**63 for cell in column if cell is not None)):
        return [None if cell is None else str(cell) for cell in column]
    return column


def _is_label(cell: Any) -> bool:
    return cell is None or isinstance(cell, str) or (isinstance(cell, (int, np.integer)) and not isinstance(cell, bool))


def _number(cell: Any, numerals: bool) -> float | None:
    """A cell as a number: NaN if it is missing, None if it holds something else."""
    if is_missing(cell):
        return math.nan
    if isinstance(cell, str) and numerals:
        found = number_of(cell)
        return None if math.isnan(found) and cell.strip() else found
    if isinstance(cell, (bool, np.bool_)) or not isinstance(cell, _REAL):
        return None
    try:
        return float(cell)
    except OverflowError:  # an integer beyond every float
        return math.inf if cell > 0 else -math.inf
    except ValueError:  # a decimal that signals that it is none
        return None


def number_of(text: str) -> float:
    """The number that a text is; NaN if it is none, as are NA, nan and 1_000, which Python would read.

    >>> number_of(" 2.5 "), number_of("inf"), number_of("NA"), number_of("nan"), number_of("1_000"), number_of("")
    (2.5, inf, nan, nan, nan, nan)
    """
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def has_decimal_comma(cell: Any) -> bool:
    """Whether a text looks like a number with a decimal comma."""
    return isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell) is not None


def is_in_thousands(cell: Any) -> bool:
    """Whether a text looks like a number with points between thousands."""
    return isinstance(cell, str) and _THOUSANDS.match(cell) is not None


def word_of(cell: object, *, capitals: bool) -> str:
    """A cell as a word, empty where it is; unless ``capitals`` count, 1.0 and True are the words 1 and true."""
    word = "" if is_missing(cell) else str(cell).strip()
    return word if capitals else word.lower().removesuffix(".0")


# -- texts that a spreadsheet would run --------------------------------------------------------------------------------


def harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula: marked by an apostrophe; telephone numbers stay as they are.

    >>> [harmless(one) for one in ("=1+1", "@me", "+49 30 1", "-2", "-a", "'=x", "ann")]
    ["'=1+1", "'@me", '+49 30 1', '-2', "'-a", "''=x", 'ann']
    """
    return f"'{text}" if _would_run(text.lstrip("'")) else text


def without_mark(text: str) -> str:
    """The inverse of `harmless`; what it would not have marked stays as it is.

    >>> [without_mark(one) for one in ("'=1+1", "''=x", "=1+1", "'ann'")]
    ['=1+1', "'=x", '=1+1', "'ann'"]
    """
    return text[1:] if text[:1] == "'" and _would_run(text.lstrip("'")) else text


def _would_run(text: str) -> bool:
    if text[:1] in ("+", "-"):
        return not text[1:].replace(" ", "").isdigit()
    return text[:1] in _FORMULA
