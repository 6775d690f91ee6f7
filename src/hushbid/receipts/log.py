"""The log of a campaign: what happened, in order, each event holding the hash of the one before.

Version 2 is JSON lines, one event a line (docs/reference/receipts.md describes every field)::

    format, version      "hushbid-event", 2
    campaign             whose log it is
    number               1, 2, 3, ...
    at                   when, in UTC; never earlier than the event before
    kind, body           what; a body holds no bid and no datum, at most salted commitments
    previous             the hash of the event before; 64 zeros for the first
    hash                 SHA-256 of the canonical form of all the rest

A person who knows the hash of one event knows that no event up to it was changed, left out, added or moved. A chain
alone cannot tell that its end was cut off: compare the last hash, or one that a receipt names, with what others saw.

These fields of a body mean the same everywhere, any others may occur; `hushbid.verification.receipts` checks them::

    root, tree_size      the receipts' tree (`hushbid.receipts.receipt`); one event of a log names it
    record               the hash of the campaign's record at that moment; the last one counts
    participant          whom the event is about, by her pseudonym
    bid_commitment    what `bid_commitment` gives for her bid and limit; her last one counts
    agreement            the hash of what she agreed to, with its ``language``; her last one counts
"""

import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from hushbid.common.codec import SIGNED, TIME, Codec, Through, Whole
from hushbid.common.documents import (
    LARGEST_INTEGER,
    bytes_of,
    canonical,
    content_hash,
    number_text,
    parsed,
    require_plain,
    text_of,
    time_text,
)
from hushbid.errors import RecordError

FORMAT, VERSION = "hushbid-event", 2
GENESIS = "0" * 64
HASH_BYTES = 32
SALT_BYTES = 32


def plain_body(body: Any, name: str) -> Mapping[str, Any]:
    """The body of an event, if it is one: plain values that have one form only."""
    if not isinstance(body, Mapping):
        raise RecordError(f"{name} must be an object, got {type(body).__name__}.", field="body")
    require_plain(body, name)
    return body


def hash_text(text: object, name: str) -> str:
    """A hash in hexadecimal, as it stands, if it is one."""
    return bytes_of(text, name, HASH_BYTES).hex()


HASH = Through(str, hash_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of a chain: all that is needed to append to it."""

    number: int
    """Of the last event."""

    at: str
    """Its time."""

    hash: str
    """Its hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    >>> from datetime import UTC
    >>> first = next_event("c1", None, at=datetime(2026, 3, 1, tzinfo=UTC), kind="opened", body={"people": 3})
    >>> second = next_event("c1", first.head, at=datetime(2026, 3, 2, tzinfo=UTC), kind="closed", body={})
    >>> second.number, second.previous == first.hash, [event.kind for event in read_log(to_lines([first, second]))]
    (2, True, ['opened', 'closed'])
    """

    campaign: str
    """Whose log it is."""

    number: Annotated[int, Whole(1, LARGEST_INTEGER - 1)]
    """Its place, from 1."""

    at: Annotated[str, TIME]
    """When it happened."""

    kind: str
    """What happened, in a word."""

    body: Annotated[Mapping[str, Any], Through(dict, plain_body)]
    """Details, as plain values without floating-point numbers."""

    previous: Annotated[str, HASH]
    """The hash of the event before."""

    hash: Annotated[str, HASH]
    """Of all the rest."""

    @property
    def head(self) -> Head:
        """The chain that ends here."""
        return Head(number=self.number, at=self.at, hash=self.hash)

    def to_dict(self) -> dict[str, Any]:
        """The event as plain values."""
        return _EVENT.write(self)

    def to_line(self) -> bytes:
        """The event as a line of a log."""
        return canonical(self.to_dict()) + b"\n"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Event":
        """The inverse of `to_dict`: exactly the fields of version 2; the hash is read as it stands, not checked."""
        return _EVENT.read(values)

    @property
    def expected_hash(self) -> str:
        """What the hash must be."""
        return content_hash({name: value for name, value in self.to_dict().items() if name != "hash"})


_EVENT = Codec(Event, "event", style=SIGNED, header={"format": FORMAT, "version": VERSION})


def next_event(campaign: str, head: Head | None, *, at: datetime, kind: str, body: Mapping[str, Any]) -> Event:
    """The event that continues a chain; None begins one. If the clock was set back, the last event's time is kept.

    Every chain is made here, the server's too: a body of anything but plain values is refused before it is hashed.
    """
    plain_body(body, "body")
    moment = time_text(at)
    event = Event(
        campaign=text_of(campaign, "campaign"),
        number=1 if head is None else head.number + 1,
        at=moment if head is None else max(moment, head.at),  # fixed-width text in UTC sorts by time
        kind=text_of(kind, "kind"),
        body=body,
        previous=GENESIS if head is None else head.hash,
        hash="",
    )
    return replace(event, hash=event.expected_hash)


def to_lines(events: Iterable[Event]) -> bytes:
    """A log as JSON lines."""
    return b"".join(event.to_line() for event in events)


def read_log(text: bytes) -> list[Event]:
    """The events of a log in JSON lines, as they stand; `hushbid.verification.receipts.verify_log` checks the chain."""
    return list(_read(text))


def commitment(content: Mapping[str, Any], salt: bytes) -> str:
    """A hash that fixes some content without showing it; anyone who has the content and the salt can check it.

    HMAC-SHA-256 of the canonical form with the salt as its key, in hexadecimal.
    """
    if len(salt) != SALT_BYTES:
        raise RecordError(f"A salt must have {SALT_BYTES} bytes, got {len(salt)}.")
    require_plain(content, "content")
    return hmac.new(salt, canonical(content), "sha256").hexdigest()


def bid_commitment(participant: str, bid: float, salt: bytes, *, limit: float | None = None) -> str:
    """What the log says of a bid and of the limit beside it, if there is one: fixes them without showing them.

    The salt is the one on her receipt.
    """
    limited = {} if limit is None else {"limit": number_text(limit)}
    return commitment({"participant": participant, "bid": number_text(bid), **limited}, salt)


def _read(text: bytes) -> Iterator[Event]:
    for row, line in enumerate(text.removesuffix(b"\n").split(b"\n"), start=1):
        try:
            yield Event.from_dict(parsed(line))
        except RecordError as problem:
            raise RecordError(f"Line {row} of the log is not an event: {problem}") from None
