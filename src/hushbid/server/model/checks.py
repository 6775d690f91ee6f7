"""Texts that an analyst sends, and numbers that a person does."""

import unicodedata

from hushbid.errors import InputError

LONGEST = {
    "title": 200,
    "question": 2_000,
    "description": 20_000,
    "unit": 50,
    "observer": 100,
    "statement": 300,
    "controller": 500,
    "contact": 500,
    "texts": 20_000,
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
