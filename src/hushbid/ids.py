"""What may name a person, and its one form: in it ids are compared and hashed, wherever they come from."""

import numbers
import unicodedata
from collections.abc import Iterable

from hushbid.errors import InputError

ALLOWED = "texts or integers"
"""Other kinds are written differently by every program that reads them: one person would have several names."""


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
