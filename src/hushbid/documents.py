"""One way to write plain values down, so that equal contents have equal bytes and one hash.

The canonical form is JSON in ASCII on one line: keys sorted, no spaces, every float as the shortest decimal that reads
back as the same double, integers as digits, infinities as the texts ``"inf"`` and ``"-inf"``. NaN has no form. Reading
is as strict: a key that occurs twice and the words NaN and Infinity are refused, since readers differ on them.
"""

import dataclasses
import gzip
import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from hushbid.durable import write_whole
from hushbid.errors import RecordError

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


# ----------------------------------------------------------------------------------------------------
# Reading plain values strictly: exactly the fields there are, each of its type. What is not so is a ``RecordError``.
#
# JSON numbers are integers or doubles, infinity is the text ``"inf"``; ``True`` is no number and ``"1"`` neither.

_Part = TypeVar("_Part")


class Fields:
    """The fields of one object in a file; ``what`` names it in messages."""

    def __init__(self, values: Any, what: str, names: Iterable[str]) -> None:
        expected = set(names)
        if not isinstance(values, Mapping):
            raise RecordError(f"{what} must be an object, got {type(values).__name__}.")
        if set(values) != expected:
            wrong = ", ".join(sorted(map(str, set(values) ^ expected)))
            raise RecordError(f"{what} must have exactly the fields of its version, but differs in: {wrong}.")
        self._values, self._what = values, what

    def number(self, name: str) -> float:
        """A number, perhaps infinite."""
        return _number(self._values[name], f"{self._what}: {name}")

    def numbers(self, name: str) -> list[float]:
        """A list of numbers."""
        found, where = self._list(name), f"{self._what}: {name}"
        return found if set(map(type, found)) == {float} else [_number(value, where) for value in found]

    def integer(self, name: str) -> int:
        """An integer."""
        return _integer(self._values[name], f"{self._what}: {name}")

    def integers(self, name: str) -> list[int]:
        """A list of integers."""
        found, where = self._list(name), f"{self._what}: {name}"
        return found if set(map(type, found)) == {int} else [_integer(value, where) for value in found]

    def text(self, name: str) -> str:
        """A text."""
        return _text(self._values[name], f"{self._what}: {name}")

    def texts(self, name: str) -> dict[str, str]:
        """An object of texts."""
        found = self._values[name]
        if not isinstance(found, Mapping):
            raise RecordError(f"{self._what}: {name} must be an object, got {type(found).__name__}.")
        return {str(label): _text(value, f"{self._what}: {name}") for label, value in found.items()}

    def listed_texts(self, name: str, size: int | None = None) -> list[str] | None:
        """A list of texts, one per person if ``size`` is given, in which case there may be none."""
        if self._values[name] is None and size is not None:
            return None
        found, where = self._list(name), f"{self._what}: {name}"
        if set(map(type, found)) != {str}:
            found = [_text(value, where) for value in found]
        if size not in (None, len(found)):
            raise RecordError(f"{self._what}: {name} must have one entry per person ({size}), got {len(found)}.")
        return found

    def named_numbers(self, name: str) -> dict[str, float]:
        """An object of numbers."""
        found = self._values[name]
        if not isinstance(found, Mapping):
            raise RecordError(f"{self._what}: {name} must be an object, got {type(found).__name__}.")
        return {str(label): _number(value, f"{self._what}: {name}") for label, value in found.items()}

    def part(self, name: str, kind: type[_Part]) -> _Part:
        """A dataclass of integers and numbers, each None only where its type says so."""
        types = {field.name: get_type_hints(kind)[field.name] for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
        inner = Fields(self._values[name], f"{self._what}: {name}", types)
        read: dict[str, float | int | None] = {}
        for label, expected in types.items():
            # a union's members, or the type itself
            choices = get_args(expected) or (expected,)
            if self._values[name][label] is None and type(None) in choices:
                read[label] = None
            else:
                read[label] = inner.integer(label) if int in choices else inner.number(label)
        return kind(**read)

    def _list(self, name: str) -> list[Any]:
        found = self._values[name]
        if not isinstance(found, list):
            raise RecordError(f"{self._what}: {name} must be a list, got {type(found).__name__}.")
        return found


def _number(value: Any, name: str) -> float:
    if type(value) not in (int, float) and value not in ("inf", "-inf"):
        raise RecordError(f"{name} must be a number, got {type(value).__name__}.")
    try:
        return float(value)
    except OverflowError:
        raise RecordError(f"{name} must be a number that fits in a double.") from None


def _integer(value: Any, name: str) -> int:
    if type(value) is not int:
        raise RecordError(f"{name} must be an integer, got {type(value).__name__}.")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise RecordError(f"{name} must be text, got {type(value).__name__}.")
    return value
