"""Numbers and times that an analyst sends, read strictly; a refusal shows them, since they are no person's data."""

from datetime import datetime

from pydantic import ValidationInfo

from hushbid.common.documents import time_of
from hushbid.errors import InputError, RecordError

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
