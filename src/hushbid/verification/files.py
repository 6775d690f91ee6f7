"""Reading a file of which only the content says what it is."""

from pathlib import Path
from typing import Any

from hushbid import record
from hushbid.documents import parsed, read_content
from hushbid.errors import RecordError
from hushbid.receipts import keys, log, receipt
from hushbid.receipts.keys import KeyList
from hushbid.receipts.log import Event
from hushbid.receipts.receipt import Receipt
from hushbid.record import Record

Document = Record | Receipt | KeyList | list[Event]


def read_document(path: str | Path) -> Document:
    """A record, a receipt, a list of keys, or the events of a log; decompressed if the name ends in ``.gz``."""
    return document_of(read_content(Path(path)), str(path))


def document_of(text: bytes, name: str) -> Document:
    """What the text holds; ``name`` is what an error calls it."""
    values = _first_object(text)
    found = values.get("format")
    if found == record.FORMAT:
        return Record.from_dict(parsed(text))
    if found == receipt.FORMAT:
        return Receipt.from_dict(parsed(text))
    if found == keys.FORMAT:
        return KeyList.from_dict(parsed(text))
    if found == log.FORMAT:
        return log.read_log(text)
    raise RecordError(f"{name} is neither a record, a receipt, a list of keys nor a log of events.")


def _first_object(text: bytes) -> dict[str, Any]:
    """The object that the text is, or, of several lines of JSON, the first."""
    first, _, rest = text.partition(b"\n")
    if rest.strip():
        try:
            return parsed(first)
        except RecordError:
            pass  # one object laid out over several lines
    return parsed(text)
