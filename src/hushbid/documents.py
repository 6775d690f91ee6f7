"""One way to write plain values down, so that equal contents have equal bytes and one hash.

The canonical form is JSON in ASCII on one line: keys sorted, no spaces, every float as the shortest decimal that reads
back as the same double, integers as digits, infinities as the texts ``"inf"`` and ``"-inf"``. NaN has no form. Reading
is as strict: a key that occurs twice and the words NaN and Infinity are refused, since readers differ on them.
"""

import gzip
import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
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

from hushbid.durable import write_whole
from hushbid.errors import RecordError
from hushbid.wording import printable

T = TypeVar("T")
_MOST_TOLD = 10
_LEVEL = 4  # of compression: digits hardly shrink further, but take much longer


def canonical(content: Mapping[str, Any]) -> bytes:
    """The canonical form of plain values."""
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as problem:
        raise RecordError(f"A record must hold plain finite values only: {problem}.") from None


def plain(value: Any) -> Any:
    """A value of a result as JSON knows it: no NumPy numbers, infinities as texts, NaN as null."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def content_hash(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, as hexadecimal text."""
    return hash_of(canonical(content))


def hash_of(written: bytes) -> str:
    """SHA-256 of what is in canonical form already, as hexadecimal text."""
    return hashlib.sha256(written).hexdigest()


def with_hash(written: bytes, digest: str) -> bytes:
    """The canonical form of a record from that of its content: of its keys, only ``format`` comes before ``hash``.

    >>> with_hash(canonical({"format": "f", "version": 1}), "ab") == canonical(
    ...     {"format": "f", "hash": "ab", "version": 1}
    ... )
    True
    """
    place = written.index(b",") + 1
    return b"".join((written[:place], b'"hash":', json.dumps(digest).encode("ascii"), b",", written[place:]))


def parsed(text: bytes) -> dict[str, Any]:
    """The plain values in a JSON text."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise RecordError(
            "A record must be JSON in which no key occurs twice and no number is NaN or infinite."
        ) from None
    if not isinstance(found, dict):
        raise RecordError(f"A record must be a JSON object, got {type(found).__name__}.")
    return found


def read_content(path: Path) -> bytes:
    """A file's content, decompressed if its name ends in ``.gz``."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise RecordError(f"{path} cannot be read: its name ends in .gz, but it is not a complete gzip file.") from None
    except OSError as problem:
        raise RecordError(f"{path} cannot be read: {problem.strerror or type(problem).__name__}.") from None


def write_content(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write a file that is complete or not there at all, readable by its owner only; compressed for ``.gz``."""
    if path.suffix == ".gz":
        content = gzip.compress(content, compresslevel=_LEVEL, mtime=0)
    try:
        write_whole(path, content, replace=overwrite)
    except FileExistsError:
        raise RecordError(f"{path} exists already; pass overwrite=True to replace it.") from None
    except OSError as problem:
        raise RecordError(f"{path} cannot be written: {problem.strerror}.") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


# ----------------------------------------------------------------------------------------------------
# Reading signed and hashed documents strictly: one form for every value, so that equal meaning has equal bytes.
#
# Such documents hold texts, whole numbers, truth values, null, lists and objects, but no floating-point numbers:
# programs write those in different ways, and a hash needs one. A double is a text, the shortest decimal that reads back
# as the same double, as Python writes it (``"1.25"``, ``"0.1"``, ``"1e-07"``), or ``"inf"``. Bytes are lower-case
# hexadecimal, times UTC to the microsecond (``"2026-03-01T12:00:00.000000Z"``), amounts of money whole minor units.

LARGEST_INTEGER = 2**53
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", flags=re.ASCII)
_HEX = re.compile(r"[0-9a-f]*")


def number_text(number: float) -> str:
    """A double as the one text it has in a document.

    >>> number_text(1.25), number_text(1), number_text(math.inf), number_text(-0.0)
    ('1.25', '1.0', 'inf', '0.0')
    """
    value = float(number)
    if math.isnan(value):
        raise RecordError("NaN has no text in a document.")
    return repr(value + 0.0)


def number_of(text: object, name: str) -> float:
    """The double in such a text."""
    try:
        if isinstance(text, str) and number_text(float(text)) == text:
            return float(text)
    except (ValueError, RecordError):
        pass
    raise RecordError(f"{name} must be a number as text, in its shortest form.")


def time_text(moment: datetime) -> str:
    """A moment as the one text it has in a document."""
    if moment.tzinfo is None:
        raise RecordError("A time in a document must have a time zone.")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_of(text: object, name: str) -> datetime:
    """The moment in such a text."""
    try:
        if isinstance(text, str) and _TIME.fullmatch(text):
            return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        pass
    raise RecordError(f"{name} must be a time in UTC such as 2026-03-01T12:00:00.000000Z.")


def bytes_of(text: object, name: str, length: int) -> bytes:
    """The bytes in a hexadecimal text of a given length."""
    if isinstance(text, str) and len(text) == 2 * length and _HEX.fullmatch(text):
        return bytes.fromhex(text)
    raise RecordError(f"{name} must be {2 * length} lower-case hexadecimal digits.")


def text_of(value: object, name: str) -> str:
    """A text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise RecordError(f"{name} must be a text that is not empty.")


def integer_of(value: object, name: str, *, low: int = 0) -> int:
    """A whole number in a range that every program can hold."""
    if type(value) is int and low <= value < LARGEST_INTEGER:
        return value
    raise RecordError(f"{name} must be a whole number from {low} to 2**53 - 1.")


def fields_of(values: object, name: str, fields: frozenset[str]) -> Mapping[str, Any]:
    """An object with exactly these fields."""
    if not isinstance(values, Mapping):
        raise RecordError(f"{name} must be an object, got {type(values).__name__}.")
    if set(values) != fields:
        wrong = ", ".join(sorted(map(str, set(values) ^ fields)))
        raise RecordError(f"{name} must have the fields {', '.join(sorted(fields))}; wrong or missing: {wrong}.")
    return values


def require_plain(value: object, name: str) -> None:
    """Refuse what has no single form, at any depth."""
    if value is None or isinstance(value, (bool, str)):
        return
    if type(value) is int and abs(value) < LARGEST_INTEGER:
        return
    if isinstance(value, (list, tuple)):
        for part in value:
            require_plain(part, name)
        return
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        for part in value.values():
            require_plain(part, name)
        return
    raise RecordError(
        f"{name} must hold texts, whole numbers below 2**53, truth values, null, lists and objects only, "
        f"got {type(value).__name__}; write a double as number_text gives it."
    )


# -- the codec ---------------------------------------------------------------------------------------------------------
#
# A form says how one kind of value is written and read. What is read must be what would be written: 1 for 1.0, "0.5"
# for 0.5, or a field left out because it has its usual value are no second way to say the same.


class Place:
    """Where a value stands (``release.grid.data_bits``), and everything that was found wrong in the document so far."""

    def __init__(self, path: str, problems: list[str]) -> None:
        self.path, self.problems = path, problems

    def inner(self, name: object) -> "Place":
        """A place below this one."""
        return Place(f"{self.path}.{name}", self.problems)

    def wrong(self, allowed: str, value: object) -> Any:
        """Keep the problem that a value is not what is allowed; its type is told, never the value itself."""
        return self.problem(f"must be {allowed}, got {type(value).__name__}")

    def problem(self, sentence: str) -> Any:
        """Keep a problem; the sentence goes on after the path."""
        self.problems.append(f"{self.path} {sentence}.")


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
    """A value that is its own plain form; ``checked`` says with an error, for its path, what else is wrong with it."""

    kind: type
    what: str
    checked: Callable[[Any, str], object] | None = None

    def write(self, value: Any) -> Any:
        return value

    def read(self, value: Any, place: Place) -> Any:
        if not isinstance(value, self.kind):
            return place.wrong(self.what, value)
        try:
            if self.checked is not None:
                self.checked(value, place.path)
        except RecordError as problem:
            place.problems.append(str(problem))
        return value


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
    kept: Callable[[list[Any]], Any] = tuple
    size: int | None = None

    def write(self, value: Any) -> list[Any]:
        found: list[Any] = value.tolist() if isinstance(value, np.ndarray) else list(value)
        if isinstance(self.form, (Exactly, Whole)) or (isinstance(value, np.ndarray) and np.isfinite(value).all()):
            return found
        return [self.form.write(one) for one in found]

    def read(self, value: Any, place: Place) -> Any:
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

_ARRAYS: Mapping[Any, Form] = {np.float64: Number(), np.int64: Whole(-LARGEST_INTEGER, LARGEST_INTEGER)}


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
    if origin is np.ndarray:
        scalar = get_args(inner[1])[0]
        return Items(_ARRAYS[scalar], kept=partial(np.array, dtype=scalar))
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
            raise RecordError(_told(root.problems))
        return cast(T, found)

    def _read(self, value: Any, place: Place) -> Any:
        if not isinstance(value, Mapping):
            return place.wrong("an object", value)
        if (other := header_problem(value, place.path, self._header)) is not None:
            return place.problems.append(other)
        needed = {*self._header, *self._forms.keys() - self._usual.keys()}
        wrong = sorted(map(str, (needed - set(value)) | (set(value) - needed - set(self._usual))))
        if wrong:
            place.problem(f"must have exactly the fields of its version, but differs in: {', '.join(wrong)}")
        found = {name: form.read(value[name], place.inner(name)) for name, form in self._forms.items() if name in value}
        for name in self._usual.keys() & found.keys():
            if found[name] == self._usual[name]:
                place.inner(name).problem("must be left out where it says nothing")
        return None if place.problems else self._kind(**found)


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
