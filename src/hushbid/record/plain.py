"""Reading signed and hashed documents strictly: one form for every value, so that equal meaning has equal bytes.

Such documents hold texts, whole numbers, truth values, null, lists and objects, but no floating-point numbers: programs
write those in different ways, and a hash needs one. A double is a text, the shortest decimal that reads back as the
same double, as Python writes it (``"1.25"``, ``"0.1"``, ``"1e-07"``), or ``"inf"``. Bytes are lower-case hexadecimal,
times UTC to the microsecond (``"2026-03-01T12:00:00.000000Z"``), amounts of money whole minor units.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hushbid.errors import RecordError

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
