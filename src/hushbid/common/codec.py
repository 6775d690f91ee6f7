"""One strict codec for frozen dataclasses: plain values out, exactly these in, and every problem at once with its path.

The types of a dataclass's fields say how it is written: numbers, texts and truth values in one of two styles (`RECORD`,
`SIGNED`), lists, arrays, names with values, other dataclasses, and null where a type allows None. Where a type does not
say enough, ``Annotated`` names the form. What is read must be what would be written: 1 for 1.0, "0.5" for 0.5, or a
field left out because it has its usual value are no second way to say the same.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from hushbid.common.arrays import FloatArray, IntArray
from hushbid.common.column_files import Texts
from hushbid.common.documents import LARGEST_INTEGER, bytes_of, moment_text, number_of, number_text, text_of
from hushbid.common.numbers import printable
from hushbid.errors import HushbidError, RecordError

T = TypeVar("T")
_MOST_TOLD = 10


class Place:
    """Where a value stands (``release.grid.data_bits``), and everything that was found wrong in the document so far."""

    def __init__(self, path: str, problems: list[tuple[str, str]]) -> None:
        self.path, self.problems = path, problems

    def inner(self, name: object) -> "Place":
        """A place below this one."""
        return Place(f"{self.path}.{name}", self.problems)

    def wrong(self, allowed: str, value: object) -> Any:
        """Keep the problem that a value is not what is allowed; its type is told, never the value itself."""
        return self.problem(f"must be {allowed}, got {type(value).__name__}")

    def problem(self, sentence: str) -> Any:
        """Keep a problem; the sentence goes on after the path."""
        return self.keep(f"{self.path} {sentence}.")

    def keep(self, sentence: str) -> Any:
        """Keep a problem that is told in a sentence of its own."""
        self.problems.append((self.path, sentence))


class Form(Protocol):
    """How one kind of value is written, and read strictly."""

    def write(self, value: Any) -> Any:
        """The plain values that stand for a value."""

    def read(self, value: Any, place: Place) -> Any:
        """The inverse of `write`; what is wrong is kept in the place."""


@dataclass(frozen=True, slots=True)
class Number:
    """A double, infinities as texts; ``exact`` refuses a whole number in its place."""

    exact: bool = True

    def write(self, value: float) -> float | str:
        return str(value) if isinstance(value, float) and math.isinf(value) else value

    def read(self, value: Any, place: Place) -> Any:
        if isinstance(value, float) and math.isfinite(value):
            return value
        if isinstance(value, str) and value in ("inf", "-inf"):
            return float(value)
        if type(value) is int and not self.exact and abs(value) < 1 << 1023:
            return float(value)
        return place.wrong("a number that fits in a double, as it is written", value)


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer, perhaps of limited size."""

    low: int | None = None
    high: int | None = None

    def write(self, value: int) -> int:
        return value

    def read(self, value: Any, place: Place) -> Any:
        if type(value) is not int:
            return place.wrong("an integer", value)
        if self.holds(value):
            return value
        return place.problem(f"must be a whole number from {self.low} to {self.high}")

    def holds(self, value: int) -> bool:
        """Whether a number is neither too small nor too large."""
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class Exactly:
    """A value of one type, which is its own plain form."""

    kind: type
    what: str

    def write(self, value: Any) -> Any:
        return value

    def read(self, value: Any, place: Place) -> Any:
        return value if isinstance(value, self.kind) else place.wrong(self.what, value)


@dataclass(frozen=True, slots=True)
class Through:
    """A value that one function writes; the other one reads it, and says with an error for its path what is wrong."""

    written: Callable[[Any], Any]
    of: Callable[[Any, str], Any]

    def write(self, value: Any) -> Any:
        return self.written(value)

    def read(self, value: Any, place: Place) -> Any:
        try:
            return self.of(value, place.path)
        except RecordError as problem:
            return place.keep(str(problem))


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def write(self, value: str) -> str:
        return value

    def read(self, value: Any, place: Place) -> Any:
        if isinstance(value, str) and value in self.words:
            return value
        return place.wrong(" or ".join(map(repr, self.words)), value)


@dataclass(frozen=True, slots=True)
class Perhaps:
    """A value, or null."""

    form: Form

    def write(self, value: Any) -> Any:
        return None if value is None else self.form.write(value)

    def read(self, value: Any, place: Place) -> Any:
        return None if value is None else self.form.read(value, place)


@dataclass(frozen=True, slots=True)
class Items:
    """A list of values of one form, ``size`` of them if that is said, kept in a container of some kind."""

    form: Form
    kept: Callable[[Any], Any] = tuple
    size: int | None = None

    def write(self, value: Any) -> list[Any]:
        found: list[Any] = value.tolist() if isinstance(value, np.ndarray) else list(value)
        if isinstance(self.form, (Exactly, Whole)) or (isinstance(value, np.ndarray) and np.isfinite(value).all()):
            return found
        return [self.form.write(one) for one in found]

    def read(self, value: Any, place: Place) -> Any:
        if isinstance(value, np.ndarray | Texts):
            return value if self._holds_column(value) else place.wrong("a column of another kind", value)
        if not isinstance(value, list):
            return place.wrong("a list", value)
        if self.size not in (None, len(value)):
            return place.problem(f"must have {self.size} entries, got {len(value)}")
        if self._is_quick(value):
            return self.kept(value)
        # one entry that is wrong is enough: a list may have millions
        found, known = [], len(place.problems)
        for row, one in enumerate(value):
            found.append(self.form.read(one, place.inner(row)))
            if len(place.problems) > known:
                return None
        return self.kept(found)

    def _holds_column(self, value: Any) -> bool:
        """Whether a column of a file, which has one type, is what the list would be."""
        if isinstance(self.form, Number):
            return isinstance(value, np.ndarray) and value.dtype == np.float64
        if isinstance(self.form, Whole):
            whole = isinstance(value, np.ndarray) and value.dtype == np.int64
            return whole and (
                not value.size or (self.form.holds(int(value.min())) and self.form.holds(int(value.max())))
            )
        return isinstance(value, Texts) and self.form == TEXT

    def _is_quick(self, value: list[Any]) -> bool:
        """Whether all entries are of the one type that is its own plain form."""
        kinds = set(map(type, value))
        if isinstance(self.form, Whole):
            return kinds == {int} and self.form.holds(min(value)) and self.form.holds(max(value))
        if isinstance(self.form, Number):
            return kinds == {float} and bool(np.isfinite(value).all())
        return kinds == {str} and self.form == TEXT


@dataclass(frozen=True, slots=True)
class Named:
    """An object that names values of one form."""

    form: Form

    def write(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.form.write(one) for name, one in value.items()}

    def read(self, value: Any, place: Place) -> Any:
        if not isinstance(value, Mapping):
            return place.wrong("an object", value)
        return {str(name): self.form.read(one, place.inner(name)) for name, one in value.items()}


TEXT, FLAG, PLAIN = Exactly(str, "text"), Exactly(bool, "true or false"), Exactly(Mapping, "an object")
RECORD: Mapping[Any, Form] = {float: Number(), int: Whole(), str: TEXT, bool: FLAG}
"""Numbers as JSON has them, for what is hashed and read by us."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A column as it is: an array."""

    def write(self, value: Any) -> Any:
        return value

    def read(self, value: Any, place: Place) -> Any:
        return value


ARRAYS: Mapping[Any, Form] = {**RECORD, FloatArray: _Kept(), IntArray: _Kept()}
"""The same but for arrays, which stay what they are: for documents whose columns are in a file."""

TIME, FILLED = Through(str, moment_text), Through(str, text_of)
SIGNED: Mapping[Any, Form] = {
    float: Through(number_text, number_of),
    int: Whole(0, LARGEST_INTEGER - 1),
    str: FILLED,
    bool: FLAG,
}
"""Numbers and times as texts that every program writes alike, for what is signed and read by anybody."""

_ARRAYS: Mapping[Any, Form] = {
    FloatArray: Items(Number(), kept=partial(np.array, dtype=np.float64)),
    IntArray: Items(Whole(-LARGEST_INTEGER, LARGEST_INTEGER), kept=partial(np.array, dtype=np.int64)),
}
"""By the annotation itself: what it is made of differs between versions of NumPy."""


def hexadecimal(length: int) -> Form:
    """The form of so many bytes, in hexadecimal."""
    return Through(bytes.hex, lambda text, name: bytes_of(text, name, length))


def form_of(kind: Any, style: Mapping[Any, Form]) -> Form:
    """The form of what a type annotation describes, in a style of writing numbers, texts and bytes."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return cast(Form, inner[1])  # said by hand
    if kind in style:
        return style[kind]
    if is_dataclass(kind):
        return Codec(cast(type, kind), style=style)
    if origin is Literal:
        return Choice(inner)
    if origin in (Union, UnionType) and inner[1:] == (NoneType,):
        return Perhaps(form_of(inner[0], style))
    if origin is tuple:
        return Items(form_of(inner[0], style), size=None if inner[1] is ... else len(inner))
    if kind in _ARRAYS:
        return _ARRAYS[kind]
    if origin is dict:
        return Named(form_of(inner[1], style))
    return PLAIN


class Codec(Generic[T]):
    """Writes a frozen dataclass as plain values, and reads exactly these: every field, each of its type.

    A field that has a default is left out where it has it.
    """

    def __init__(
        self,
        kind: type[T],
        what: str = "",
        *,
        style: Mapping[Any, Form] = RECORD,
        header: Mapping[str, Any] | None = None,
    ) -> None:
        self._kind, self._what, self._header = kind, what, dict(header or {})
        hints = get_type_hints(kind, include_extras=True)
        self._fields = fields(kind)  # type: ignore[arg-type]
        self._forms = {field.name: form_of(hints[field.name], style) for field in self._fields}
        self._usual = {field.name: field.default for field in self._fields if field.default is not MISSING}

    def write(self, value: T) -> dict[str, Any]:
        """The plain values."""
        found = {name: getattr(value, name) for name in self._forms}
        return {
            **self._header,
            **{
                name: self._forms[name].write(one)
                for name, one in found.items()
                if name not in self._usual or one != self._usual[name]
            },
        }

    def read(self, value: Any, place: Place | None = None) -> T:
        """The inverse of `write`; all problems are told at once, each with its path."""
        if place is not None:
            return cast(T, self._read(value, place))
        root = Place(self._what, [])
        found = self._read(value, root)
        if root.problems:
            raise RecordError(_told([told for _, told in root.problems]), field=root.problems[0][0])
        return cast(T, found)

    def _read(self, value: Any, place: Place) -> Any:
        if not isinstance(value, Mapping):
            return place.wrong("an object", value)
        if (other := header_problem(value, place.path, self._header)) is not None:
            return place.keep(other)
        needed = {*self._header, *self._forms.keys() - self._usual.keys()}
        wrong = sorted(map(str, (needed - set(value)) | (set(value) - needed - set(self._usual))))
        if wrong:
            place.problem(f"must have exactly the fields of its version, but differs in: {', '.join(wrong)}")
        found = {name: form.read(value[name], place.inner(name)) for name, form in self._forms.items() if name in value}
        for name in self._usual.keys() & found.keys():
            if found[name] == self._usual[name]:
                place.inner(name).problem("must be left out where it says nothing")
        if place.problems:
            return None
        try:
            return self._kind(**found)
        except HushbidError as problem:  # what the class itself refuses
            return place.keep(str(problem))


def header_problem(values: Mapping[str, Any], what: str, header: Mapping[str, Any]) -> str | None:
    """What is wrong with a document that does not say that it is this format, in this version; None if it does."""
    stated, expected = tuple(values.get(name) for name in header), tuple(header.values())
    if stated == expected and [*map(type, stated)] == [*map(type, expected)]:
        return None
    names = " and ".join(f"{name} {value!r}" for name, value in header.items())
    return printable(f"A{'n' * (what[0] in 'aeiou')} {what} must have {names}, got {stated!r}.", keep="")


def _told(problems: list[str]) -> str:
    shown = [*problems[:_MOST_TOLD], *([f"And {len(problems) - _MOST_TOLD} more."] * (len(problems) > _MOST_TOLD))]
    return printable(" ".join(shown), keep="")
