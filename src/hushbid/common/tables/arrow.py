"""Columns that Arrow brings: of Parquet files, of data frames, and of large CSV files."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.common.tables.arrow_texts import (
    array_of,
    concatenated,
    constant,
    float_strings,
    integer_strings,
    large_strings,
    numbers_of,
    strings,
)
from hushbid.common.tables.columns import HOLD_LABELS, MARKED, NUMERALS, THOUSANDS, Raw, Texts, without_mark
from hushbid.errors import MissingExtra

_WORTH_ARROW = 100_000
_BEGINS_MARKED = np.isin(np.arange(256), [ord(sign) for sign in MARKED])
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
class ArrowColumn:
    """An Arrow array in memory."""

    content: Any
    """A ``pyarrow.ChunkedArray``; dictionaries are taken apart."""

    numerals: bool = False
    """Whether it holds the cells of a CSV file, texts of which each may be a number."""

    comma: bool = False
    """Whether a comma may be the decimal sign."""

    @property
    def kind(self) -> str:
        return NUMERALS if self.numerals else arrow_kind(pyarrow().types, self.content.type)

    @property
    def raw(self) -> Any:
        return self.labels()[0] if self._has_marks else self.content

    def numbers(self) -> tuple[FloatArray, BoolArray]:
        pa = pyarrow()
        if self._has_thousands:
            return self.texts().numbers()
        try:
            values: FloatArray = numbers_of(self.content.cast(pa.float64(), safe=False), np.float64, np.nan)
        except pa.ArrowInvalid:  # a text that is no number
            return self.texts().numbers()
        if self.numerals and np.isnan(values).sum() > self.content.null_count:  # Arrow reads nan, which is none
            return self.texts().numbers()
        return values, np.zeros(values.size, dtype=bool)

    @property
    def has_commas(self) -> bool:
        return self.comma and self.texts().has_commas

    def texts(self) -> Texts:
        """The cells of a CSV file, one by one."""
        return Texts(["" if cell is None else cell for cell in self.content.to_pylist()], self.comma)

    def cells(self) -> list[Any]:
        found: list[Any] = self.content.to_pylist()
        return found if self.kind != "floats" else [None if cell != cell else cell for cell in found]

    def labels(self) -> tuple[list[Any], BoolArray]:
        found = self.content.to_pylist()
        if self._has_marks:
            found = [without_mark(cell) if cell is not None and cell[:1] == "'" else cell for cell in found]
        return found, np.zeros(len(found), dtype=bool)

    @property
    def _has_marks(self) -> bool:
        """Whether it holds cells of a CSV file of which one begins with an apostrophe."""
        if not self.numerals:
            return False
        from pyarrow import compute

        return compute.any(compute.starts_with(self.content, "'")).as_py() is True

    @property
    def _has_thousands(self) -> bool:
        """As `Texts.has_thousands`."""
        if not self.comma:
            return False
        from pyarrow import compute

        pointed = self.content.filter(compute.match_substring(self.content, "."))
        return compute.all(compute.match_substring_regex(pointed, THOUSANDS), min_count=1).as_py() is True

    def only(self, rows: IndexArray) -> "ArrowColumn":
        return ArrowColumn(self.content.take(array_of(rows)), self.numerals, self.comma)


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


def places_of(wanted: list[str], among: list[str]) -> IndexArray:
    """Where each text stands among others, first of all if it does twice, −1 where it does not; many are left to Arrow.

    >>> places_of(["b", "x"], ["a", "b", "b"]).tolist()
    [1, -1]
    """
    if len(wanted) < _WORTH_ARROW or find_spec("pyarrow") is None:
        rows = {text: row for row, text in reversed(list(enumerate(among)))}
        return np.array([rows.get(text, -1) for text in wanted], dtype=np.intp)
    from pyarrow import compute

    found = compute.index_in(large_strings(wanted), value_set=large_strings(among))
    return numbers_of(found, np.int32, -1).astype(np.intp)


# -- lines of a CSV file -----------------------------------------------------------------------------------------------


def quick_lines(columns: Sequence[Raw]) -> bytes | None:
    """The lines of some rows; None if a column holds other things than texts and numbers, or a text needs care."""
    rows = len(columns[0])
    try:
        found = [_strings_of(column) for column in columns]
        if any(one is None for one in found) or max(map(len, found)) < rows:
            return None
        # between cells a comma, and at the end of a row a line break; a text that stands in every row joins them
        parts, between = [], ""
        for one, end in zip(found, [*([","] * (len(found) - 1)), "\n"], strict=True):
            if len(one) < rows:
                between += one[0].as_py() + end
            else:
                parts += [constant(between), one] if between else [one]
                between = end
        text = concatenated(*parts, constant(between))
    except pyarrow().ArrowException:  # more than fits into one array
        return None
    # were one of these in a cell, it would need quotes
    plain = text.count(b"\n") == rows and text.count(b",") == rows * (len(found) - 1)
    return text if plain and b'"' not in text and b"\r" not in text else None


def _strings_of(column: Raw) -> Any:
    """A column as an Arrow array of its cells, or of one if all are the same; None if it has gaps or may need marks."""
    if isinstance(column, np.ndarray):
        writers = {np.dtype(np.float64): float_strings, np.dtype(np.int64): integer_strings}
        return writers[column.dtype](column) if column.dtype in writers else None
    if isinstance(column, list):
        if set(map(type, column)) != {str}:
            return None
        distinct = set(column)
        found = strings([*distinct] if len(distinct) == 1 else column)
    else:
        found = _without_chunks(column)
    return None if found is None or _may_need_marks(found) else found


def _without_chunks(column: Any) -> Any:
    """A column of texts or integers in one piece; None if it holds something else, or has gaps."""
    pa = pyarrow()
    types = pa.types
    if column.null_count:
        return None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    fits = types.is_integer(column.type) or types.is_string(column.type) or types.is_large_string(column.type)
    return column.cast(pa.string()) if fits else None


def _may_need_marks(texts: Any) -> bool:
    """Whether a text begins with what `harmless` may change, or an empty one stands before such a text."""
    _, ends, content = texts.buffers()
    firsts = np.frombuffer(ends, dtype=np.int32)[texts.offset : texts.offset + len(texts)]
    signs = np.frombuffer(content or b"", dtype=np.uint8)
    return bool(_BEGINS_MARKED[signs[firsts[firsts < signs.size]]].any())


def pyarrow(what: str = "Parquet files and data frames need") -> Any:
    """The package, imported when it is needed."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra(f"{what} pyarrow: pip install '.[engines]' in a checkout, or use CSV.") from None
    return pa
