"""Reading a file of which only the content says what it is."""

from pathlib import Path
from typing import Any

from hushbid.errors import RecordError
from hushbid.record import contents, events, receipt, signing
from hushbid.record.canonical import parsed, read_bytes

Document = contents.Record | receipt.Receipt | signing.KeyList | list[events.Event]


def read_document(path: str | Path) -> Document:
    """A record, a receipt, a list of keys, or the events of a log; decompressed if the name ends in ``.gz``."""
    text = read_bytes(Path(path))
    values = _first_object(text)
    found = values.get("format")
    if found == contents.FORMAT:
        return contents.Record.from_dict(parsed(text))
    if found == receipt.FORMAT:
        return receipt.Receipt.from_dict(parsed(text))
    if found == signing.FORMAT:
        return signing.KeyList.from_dict(parsed(text))
    if found == events.FORMAT:
        return events.read_log(text)
    raise RecordError(f"{path} is neither a record, a receipt, a list of keys nor a log of events.")


def _first_object(text: bytes) -> dict[str, Any]:
    """The object that the text is, or, of several lines of JSON, the first."""
    first, _, rest = text.partition(b"\n")
    if rest.strip():
        try:
            return parsed(first)
        except RecordError:
            pass  # one object laid out over several lines
    return parsed(text)
