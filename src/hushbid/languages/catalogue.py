"""A strict reader of gettext catalogues, so that none has to be compiled when Hushbid is built or installed.

A catalogue is a text of entries, ``msgid "English"`` and ``msgstr "Deutsch"``, each with comments before it. Here every
entry must be translated, and none may be fuzzy (translated from another text than it has now) or obsolete.
"""

import re
import struct
from collections.abc import Iterable, Mapping
from gettext import GNUTranslations
from io import BytesIO

from hushbid.errors import InputError

_MAGIC = 0x950412DE
_ENTRY = re.compile(r'(msgctxt|msgid_plural|msgid|msgstr(?:\[\d\])?)\s+(".*)|(".*)')
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_CONTEXT, _PLURAL = "\x04", "\0"


def read_catalogue(text: str, name: str) -> GNUTranslations:
    """Read a catalogue; what is wrong with it is refused by its line."""
    return GNUTranslations(BytesIO(_compiled(dict(_entries(text, name)))))


def _entries(text: str, name: str) -> Iterable[tuple[str, str]]:
    """Each text and its translations, as compiled catalogues have them."""
    parts: dict[str, str] = {}
    last, begun = "", 0
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.startswith("#~") or (line.startswith("#,") and "fuzzy" in line):
            raise InputError(f"{name}, line {number}: an entry must be neither fuzzy nor obsolete.")
        if line.startswith("#"):
            continue
        if not line.strip():
            if parts:
                yield _entry(parts, f"{name}, line {begun}")
            parts = {}
            continue
        found = _ENTRY.fullmatch(line)
        if found is None or (found[3] and not parts):
            raise InputError(f"{name}, line {number}: this is not a line of a catalogue.")
        begun = begun if parts else number
        last = found[1] or last
        if found[1] in parts:
            raise InputError(f"{name}, line {number}: {last} must stand once in an entry.")
        parts[last] = parts.get(last, "") + _unquoted(found[2] or found[3], f"{name}, line {number}")


def _entry(parts: Mapping[str, str], place: str) -> tuple[str, str]:
    translations = [text for part, text in parts.items() if part.startswith("msgstr")]
    if "msgid" not in parts or not translations or not all(translations):
        raise InputError(f"{place}: an entry must have a msgid, and a msgstr that is not empty.")
    context = f"{parts['msgctxt']}{_CONTEXT}" if "msgctxt" in parts else ""
    plural = f"{_PLURAL}{parts['msgid_plural']}" if "msgid_plural" in parts else ""
    return f"{context}{parts['msgid']}{plural}", _PLURAL.join(translations)


def _unquoted(text: str, place: str) -> str:
    if not re.fullmatch(r'"(?:[^"\\]|\\[nt"\\])*"', text):
        raise InputError(f"{place}: a text must stand between quotation marks.")
    return re.sub(r"\\(.)", lambda found: _ESCAPED[found[1]], text[1:-1])


def _compiled(entries: Mapping[str, str]) -> bytes:
    """The entries in the format that `gettext` reads: tables of lengths and places, then the texts."""
    pairs = sorted((key.encode(), value.encode()) for key, value in entries.items())
    start = 28 + 16 * len(pairs)
    tables, texts = [b"", b""], b""
    for column in (0, 1):
        for pair in pairs:
            tables[column] += struct.pack("<2I", len(pair[column]), start + len(texts))
            texts += pair[column] + b"\0"
    header = struct.pack("<7I", _MAGIC, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, start)
    return header + b"".join(tables) + texts
