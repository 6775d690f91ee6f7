"""Reading a file of which only the content says what it is."""

from pathlib import Path
from typing import Any

from hushbid import record
from hushbid.common.documents import parsed, read_content
from hushbid.errors import RecordError
from hushbid.receipts import keys, log, receipt
from hushbid.receipts.keys import KeyList
from hushbid.receipts.log import Event
from hushbid.receipts.receipt import Receipt
from hushbid.record import Record
from hushbid.record.folder import is_in_folder

Document = Record | Receipt | KeyList | list[Event]


def read_document(path: str | Path) -> Document:
    """A record, a receipt, a list of keys, or the events of a log; decompressed if the name ends in ``.gz``.

    A folder is a record of very many people.
    """
    place = Path(path)
    if is_in_folder(place):
        return record.read(place)
    return document_of(read_content(place), str(path))


def document_of(text: bytes, name: str) -> Document:
    """What the text holds; ``name`` is what an error calls it."""
    first = _first_of_several(text)
    values = parsed(text) if first is None else first
    found = values.get("format")
    if found == log.FORMAT:
        return log.read_log(text)
    if found not in (record.FORMAT, receipt.FORMAT, keys.FORMAT):
        raise RecordError(f"{name} is neither a record, a receipt, a list of keys nor a log of events.")
    if first is not None:
        values = parsed(text)  # which tells that more stands behind it
    if found == record.FORMAT:
        return Record.from_dict(values)
    return Receipt.from_dict(values) if found == receipt.FORMAT else KeyList.from_dict(values)


def _first_of_several(text: bytes) -> dict[str, Any] | None:
    """The first of several lines of JSON; None if the text is one object, perhaps laid out over several lines."""
    first, _, rest = text.partition(b"\n")
    if not rest.strip():
        return None
    try:
        return parsed(first)
    except RecordError:
        return None
