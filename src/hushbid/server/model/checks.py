"""Texts, numbers and times that an analyst sends, read strictly; a refusal shows them, as they are no person's data."""

import unicodedata
from datetime import datetime

from pydantic import ValidationInfo

from hushbid.common.documents import time_of
from hushbid.errors import InputError, RecordError

LONGEST_TITLE = 200
LONGEST = {
    "title": LONGEST_TITLE,
    "question": 2_000,
    "description": 20_000,
    "unit": 50,
    "observer": 100,
    "statement": 300,
    "group": 100,
    "stratum": 100,
}
"""How many characters each may have."""


def checked_text(text: object, name: str, *, needed: bool = False, longest: int | None = None) -> str:
    """A text that every store and every page can hold: no control characters but line ends, of limited length."""
    most = longest if longest is not None else LONGEST[name]
    if not isinstance(text, str):
        raise InputError(f"{name} must be text, got {type(text).__name__}.", field=name)
    cleaned = unicodedata.normalize("NFC", text).strip()
    if any(unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\r\t" for letter in cleaned):
        raise InputError(f"{name} must not contain control characters.", field=name)
    if len(cleaned) > most or (needed and not cleaned):
        raise InputError(f"{name} must have {1 if needed else 0} to {most} characters, got {len(cleaned)}.", field=name)
    return cleaned


_SHOWN = 10**18  # in a refusal; what is larger may be too large to be written


def as_time(text: str, name: str) -> datetime:
    """A time with its zone."""
    try:
        return time_of(text, name)
    except RecordError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{name} must be a time such as 2026-03-01T12:00:00Z, got {text[:40]!r}.", field=name
        ) from None
    if moment.tzinfo is None:
        raise InputError(f"{name} must have a time zone, such as 2026-03-01T12:00:00Z, got {text[:40]!r}.", field=name)
    return moment


def moment_sent(text: str, sent: ValidationInfo) -> datetime:
    """The time in a field of a request."""
    return as_time(text, str(sent.field_name))


def as_double(value: object, name: str) -> float:
    """One number that a double can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{name} must be one number, got {type(value).__name__}.", field=name)
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name} must be a number that a double can hold.", field=name) from None


def require_whole(value: object, name: str, low: int, high: int) -> None:
    """Refuse what is no whole number between these."""
    if type(value) is not int or not low <= value <= high:
        shown = value if isinstance(value, (int, float)) and -_SHOWN < value < _SHOWN else type(value).__name__
        raise InputError(f"{name} must be a whole number from {low} to {high}, got {shown}.", field=name)
