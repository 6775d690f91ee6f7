"""The receipt of one participant: what she reported, was promised and is paid, signed, and provably one of many.

When a campaign ends, the bodies of all its receipts, in the order of the participants' pseudonyms, are the entries of a
Merkle tree (`hushbid.receipts.merkle`); its root goes into the campaign's log and is public. Version 1 is a JSON object
(docs/reference/receipts.md describes every field)::

    format, version      "hushbid-receipt", 1
    body                 her own facts, and a salt that keeps others from guessing them
    index, proof         her body's place in the tree, and the hashes that lead from it to the root
    root, tree_size      of the tree
    event                number and hash of the log's event that names the root: fixes all that happened before
    public_key, fingerprint, signature   of the server: over all the rest

The proof shows that she was counted in the same tree as everybody else: a server cannot show her one history and an
auditor another. The signature shows who said so.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hushbid.documents import bytes_of, canonical, fields_of, integer_of, number_of, number_text, text_of, time_of
from hushbid.errors import RecordError
from hushbid.receipts.keys import SIGNATURE_BYTES, PublicKey, SigningKey
from hushbid.receipts.log import SALT_BYTES, Head
from hushbid.receipts.merkle import HASH_BYTES, Tree, proves

FORMAT, VERSION = "hushbid-receipt", 1
PURPOSE = "hushbid-receipt v1"
TIMES = {"renewed": "link-renewed", "own_links": "own-link-made", "own_links_used": "own-link-used"}
"""Lists of times that a body has if they are not empty, and the events of the log that they are of."""

_BODY_FIELDS = frozenset(
    {
        *("campaign", "participant", "state", "report", "promised", "delivered"),
        *("payment", "fee", "currency", "decimals", "salt"),
    }
)
_FIELDS = frozenset(
    {
        *("format", "version", "body", "index", "proof", "root", "tree_size", "event"),
        *("public_key", "fingerprint", "signature"),
    }
)


def new_salt() -> bytes:
    """Fresh salt from the operating system's randomness."""
    return secrets.token_bytes(SALT_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Body:
    """One participant's facts; a leaf of the tree."""

    campaign: str
    """The campaign's identifier."""

    participant: str
    """Her pseudonym in it."""

    state: str
    """Where she ended: declined, delivered, dropped, and so on."""

    report: float | None
    """The sensitivity that counted; None if she made no report that did."""

    promised: float | None
    """The privacy loss she was promised at most; None if nothing was decided about her."""

    delivered: float | None
    """The privacy loss the release cost her; None if nothing was released."""

    payment: int
    """What she is paid for her data, in minor units; negative if she pays."""

    fee: int
    """What she is paid for taking part, in minor units."""

    currency: str
    """Three capital letters, as in ISO 4217."""

    decimals: int
    """One unit of the currency is ``10**decimals`` minor units."""

    salt: bytes
    """32 random bytes, hers alone."""

    renewed: tuple[str, ...] = ()
    """When the analyst made a new link for her, while the campaign was not over."""

    own_links: tuple[str, ...] = ()
    """Likewise: when a link for another device was made on one on which her part was open."""

    own_links_used: tuple[str, ...] = ()
    """Likewise: when such a link was used."""

    def __repr__(self) -> str:  # a report tells a price for privacy: not for a log
        return f"Body(campaign={self.campaign!r}, participant={self.participant!r})"

    def entry(self) -> bytes:
        """The body as an entry of the tree: its canonical form."""
        return canonical(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The body as plain values."""
        numbers = {name: getattr(self, name) for name in ("report", "promised", "delivered")}
        return {
            "campaign": self.campaign,
            "participant": self.participant,
            "state": self.state,
            **{name: None if number is None else number_text(number) for name, number in numbers.items()},
            "payment": self.payment,
            "fee": self.fee,
            "currency": self.currency,
            "decimals": self.decimals,
            "salt": self.salt.hex(),
            **{name: list(times) for name in TIMES if (times := getattr(self, name))},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Body":
        """The inverse of `to_dict`; exactly the fields of version 1, and those of `TIMES` that are not empty."""
        named = [name for name in TIMES if isinstance(values, Mapping) and name in values]
        found = fields_of(values, "body", _BODY_FIELDS | set(named))
        currency = text_of(found["currency"], "currency")
        if not (len(currency) == 3 and currency.isascii() and currency.isalpha() and currency.isupper()):
            raise RecordError("currency must be three capital letters such as EUR.", field="currency")
        numbers = {
            name: None if found[name] is None else number_of(found[name], name)
            for name in ("report", "promised", "delivered")
        }
        if any(number is not None and number < 0 for number in numbers.values()):
            raise RecordError("report, promised and delivered must not be negative.")
        return cls(
            campaign=text_of(found["campaign"], "campaign"),
            participant=text_of(found["participant"], "participant"),
            state=text_of(found["state"], "state"),
            report=numbers["report"],
            promised=numbers["promised"],
            delivered=numbers["delivered"],
            payment=integer_of(found["payment"], "payment", low=-(2**53) + 1),  # may be negative
            fee=integer_of(found["fee"], "fee"),
            currency=currency,
            decimals=integer_of(found["decimals"], "decimals"),
            salt=bytes_of(found["salt"], "salt", SALT_BYTES),
            renewed=_times(found, "renewed"),
            own_links=_times(found, "own_links"),
            own_links_used=_times(found, "own_links_used"),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Receipt:
    """What a participant can keep, show and have checked."""

    body: Body
    """Her facts."""

    index: int
    """Her place in the tree, from 0."""

    proof: tuple[bytes, ...]
    """The hashes beside the path from her leaf to the root."""

    root: bytes
    """The campaign's root."""

    tree_size: int
    """The number of participants in the tree."""

    event_number: int
    """Of the event in the campaign's log that names the root."""

    event_hash: str
    """Its hash."""

    key: PublicKey
    """The server's key."""

    signature: bytes
    """Over all the rest."""

    def __repr__(self) -> str:
        return f"Receipt({self.body!r}, root={self.root.hex()[:12]!r})"

    @property
    def included(self) -> bool:
        """Whether the proof leads from the body to the root."""
        return proves(self.proof, entry=self.body.entry(), index=self.index, size=self.tree_size, root=self.root)

    @property
    def signed(self) -> bool:
        """Whether the signature is that of the key in the receipt; whose key that is must be found out otherwise."""
        return self.key.signed(PURPOSE, self._content(), self.signature)

    def to_dict(self) -> dict[str, Any]:
        """The receipt as plain values."""
        return {**self._content(), "signature": self.signature.hex()}

    def to_json(self) -> bytes:
        """The receipt as a file."""
        return canonical(self.to_dict()) + b"\n"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Receipt":
        """The inverse of `to_dict`: strict about every field, but neither proof nor signature is checked."""
        if not isinstance(values, Mapping) or values.get("format") != FORMAT or values.get("version") != VERSION:
            raise RecordError(f"A receipt must have format {FORMAT!r} and version {VERSION}.")
        found = fields_of(values, "A receipt", _FIELDS)
        integer_of(found["version"], "version")
        event = fields_of(found["event"], "event", frozenset({"number", "hash"}))
        bytes_of(event["hash"], "event.hash", HASH_BYTES)
        if not isinstance(found["proof"], list):
            raise RecordError("proof must be a list of hashes.", field="proof")
        key = PublicKey.from_hex(found["public_key"])
        if found["fingerprint"] != key.fingerprint:
            raise RecordError("fingerprint must be the SHA-256 of public_key.", field="fingerprint")
        return cls(
            body=Body.from_dict(found["body"]),
            index=integer_of(found["index"], "index"),
            proof=tuple(bytes_of(one, "proof", HASH_BYTES) for one in found["proof"]),
            root=bytes_of(found["root"], "root", HASH_BYTES),
            tree_size=integer_of(found["tree_size"], "tree_size", low=1),
            event_number=integer_of(event["number"], "event.number", low=1),
            event_hash=event["hash"],
            key=key,
            signature=bytes_of(found["signature"], "signature", SIGNATURE_BYTES),
        )

    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "body": self.body.to_dict(),
            "index": self.index,
            "proof": [one.hex() for one in self.proof],
            "root": self.root.hex(),
            "tree_size": self.tree_size,
            "event": {"number": self.event_number, "hash": self.event_hash},
            "public_key": self.key.hex,
            "fingerprint": self.key.fingerprint,
        }


def _times(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    if name not in found:
        return ()
    values = found[name]
    if not isinstance(values, list) or not values:
        raise RecordError(f"{name} must be a list of at least one time, or left out.", field=name)
    for value in values:
        time_of(value, name)
    if values != sorted(values):
        raise RecordError(f"{name} must list times in order.", field=name)
    return tuple(values)


def tree_of(bodies: Sequence[Body]) -> Tree:
    """The tree over the receipts of a campaign, in the order of the participants' pseudonyms, whatever order is given.

    Every participant occurs once, all in one campaign, and no two share a salt.
    """
    ordered = in_order(bodies)
    if len({body.participant for body in ordered}) < len(ordered) or len({body.salt for body in ordered}) < len(
        ordered
    ):
        raise RecordError("Every participant must have one receipt, with a salt of its own.")
    if len({body.campaign for body in ordered}) > 1:
        raise RecordError("The receipts of a tree must belong to one campaign.")
    return Tree.of(body.entry() for body in ordered)


def in_order(bodies: Sequence[Body]) -> list[Body]:
    """Bodies in the order in which they stand in the tree."""
    return sorted(bodies, key=lambda body: body.participant)


def issue(body: Body, *, tree: Tree, index: int, event: Head, key: SigningKey) -> Receipt:
    """The signed receipt for one body, which stands at ``index`` of the tree; ``event`` is the one naming the root.

    The same arguments give the same receipt, byte for byte.

    >>> body = Body(campaign="c1", participant="p1", state="delivered", report=1.25, promised=0.5, delivered=0.5,
    ...             payment=217, fee=100, currency="EUR", decimals=2, salt=bytes(32))
    >>> event = Head(number=7, at="2026-03-01T12:00:00.000000Z", hash="ab" * 32)
    >>> receipt = issue(body, tree=tree_of([body]), index=0, event=event, key=SigningKey.create())
    >>> receipt.signed, receipt.included, Receipt.from_dict(receipt.to_dict()) == receipt
    (True, True, True)
    """
    unsigned = Receipt(
        body=Body.from_dict(body.to_dict()),  # as it will be read again
        index=index,
        proof=tree.proof(index),
        root=tree.root,
        tree_size=tree.size,
        event_number=event.number,
        event_hash=event.hash,
        key=key.public,
        signature=b"",
    )
    if not unsigned.included:
        raise RecordError(f"The body is not the entry at index {index} of the tree.")
    content = unsigned.to_dict()
    del content["signature"]
    return Receipt.from_dict({**content, "signature": key.sign(PURPOSE, content).hex()})
