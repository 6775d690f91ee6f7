"""What may name a person, and its one form: in it ids are compared and hashed, wherever they come from."""

import numbers
import unicodedata
from collections.abc import Iterable
from typing import Any

from hushbid.errors import InputError

ALLOWED = "texts or integers"
"""Other kinds are written differently by every program that reads them: one person would have several names."""

_KINDS = (
    ("is_floating", "floats"),
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
_ALLOWED_KINDS = ("is_integer", "is_string", "is_large_string", "is_string_view", "is_null")


def id_texts(ids: Iterable[object]) -> list[str]:
    """Ids as texts in Unicode's composed form (NFC) without spaces around; empty where one is missing.

    >>> id_texts([" ann ", "Zoe\\u0308", 7, None])
    ['ann', 'Zoë', '7', '']
    """
    return [_id_text(one) for one in ids]


def _id_text(one: object) -> str:
    if one is None:
        return ""
    if isinstance(one, str):
        return one.strip() if one.isascii() else unicodedata.normalize("NFC", one).strip()
    if isinstance(one, numbers.Integral) and not isinstance(one, bool):
        return str(int(one))
    raise InputError(f"ids must hold {ALLOWED}, not {type(one).__name__}.")


def refused_kind(types: Any, kind: Any) -> str | None:
    """What a column of an Arrow type holds, if it may not name people or groups; ``types`` is ``pyarrow.types``."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    if any(getattr(types, allowed)(kind) for allowed in _ALLOWED_KINDS):
        return None
    return next((name for test, name in _KINDS if getattr(types, test)(kind)), str(kind))


def refusal(column: str, held: str, source: str = "") -> InputError:
    """What is said of a column that may not name people or groups."""
    return InputError(f"{f'{source}: c' if source else 'C'}olumn {column!r} must hold {ALLOWED}, not {held}.")
