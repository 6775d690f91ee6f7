"""The receipt of one participant: what she bid, was promised and is paid, signed, and provably one of many.

When a campaign ends, the bodies of all its receipts, in the order of the participants' pseudonyms, are the entries of a
Merkle tree (`hushbid.receipts.merkle`); its root goes into the campaign's log and is public. Version 2 is a JSON object
(docs/reference/receipts.md describes every field)::

    format, version      "hushbid-receipt", 2
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
from typing import Annotated, Any

from hushbid.common.codec import SIGNED, TIME, Codec, Perhaps, Whole, hexadecimal
from hushbid.common.documents import LARGEST_INTEGER, canonical, content_hash, number_text
from hushbid.errors import RecordError
from hushbid.questions import Question
from hushbid.receipts.keys import PUBLIC_KEY, SIGNATURE, PublicKey, SigningKey
from hushbid.receipts.log import HASH, SALT_BYTES, Head
from hushbid.receipts.merkle import HASH_BYTES, Tree, proves

FORMAT, VERSION = "hushbid-receipt", 2
PURPOSE = "hushbid-receipt v2"
TIMES = {"renewed": "link-renewed", "own_links": "own-link-made", "own_links_used": "own-link-used"}
"""Lists of times that a body has if they are not empty, and the events of the log that they are of."""

_PLACE = Whole(1, LARGEST_INTEGER - 1)
_HASH = hexadecimal(HASH_BYTES)


def questions_hash(questions: Sequence[Question]) -> str | None:
    """What stands for a survey's questions on its receipts: a hash of all that is public about them; None without."""
    return content_hash({"questions": [in_texts(one.to_dict()) for one in questions]}) if questions else None


def in_texts(value: Any) -> Any:
    """Plain values with every double as a text, as these documents have them."""
    if isinstance(value, Mapping):
        return {name: in_texts(one) for name, one in value.items()}
    if isinstance(value, list):
        return [in_texts(one) for one in value]
    return number_text(value) if isinstance(value, float) else value


def new_salt() -> bytes:
    """Fresh salt from the operating system's randomness."""
    return secrets.token_bytes(SALT_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What a person agreed to, and when."""

    at: Annotated[str, TIME]
    """When."""

    version: Annotated[str, HASH]
    """The hash of what she was shown: of the canonical form of a ``hushbid-consent`` document."""

    language: str
    """In which language."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Body:
    """One participant's facts; a leaf of the tree."""

    campaign: str
    """The campaign's identifier."""

    participant: str
    """Her pseudonym in it."""

    state: str
    """Where she ended: declined, delivered, dropped, and so on."""

    bid: float | None
    """The bid that counted; None if she made no bid that did."""

    promised: float | None
    """The privacy loss she was promised at most; None if nothing was decided about her."""

    delivered: float | None
    """The privacy loss the release cost her; None if nothing was released."""

    payment: Annotated[int, Whole(1 - LARGEST_INTEGER, LARGEST_INTEGER - 1)]
    """What she is paid for her data, in minor units; negative if she pays."""

    fee: int
    """What she is paid for taking part, in minor units."""

    currency: str
    """Three capital letters, as in ISO 4217."""

    decimals: int
    """One unit of the currency is ``10**decimals`` minor units."""

    salt: Annotated[bytes, hexadecimal(SALT_BYTES)]
    """32 random bytes, hers alone."""

    limit: float | None = None
    """The largest privacy loss that she said she accepts, beside the bid that counted; None if she said none."""

    questions: Annotated[str | None, Perhaps(HASH)] = None
    """The hash of the questions that she was asked (`questions_hash`), all for one loss; None if it was one number."""

    stratum: str | None = None
    """The public stratum in which she was invited; None if the campaign had no strata."""

    renewed: tuple[Annotated[str, TIME], ...] = ()
    """When the analyst made a new link for her, while the campaign was not over."""

    own_links: tuple[Annotated[str, TIME], ...] = ()
    """Likewise: when a link for another device was made on one on which her part was open."""

    own_links_used: tuple[Annotated[str, TIME], ...] = ()
    """Likewise: when such a link was used."""

    agreement: Agreement | None = None
    """What she agreed to before she bid, the last time if more than once; None if nothing was asked of her."""

    def __repr__(self) -> str:  # a bid tells a price for privacy: not for a log
        return f"Body(campaign={self.campaign!r}, participant={self.participant!r})"

    def entry(self) -> bytes:
        """The body as an entry of the tree: its canonical form."""
        return canonical(self.to_dict())

    def __post_init__(self) -> None:
        code = self.currency
        if not (len(code) == 3 and code.isascii() and code.isalpha() and code.isupper()):
            raise RecordError("currency must be three capital letters such as EUR.", field="currency")
        if any(number is not None and number < 0 for number in (self.bid, self.promised, self.delivered)):
            raise RecordError("bid, promised and delivered must not be negative.")
        if self.limit is not None and not (self.limit >= 0.0 and self.bid is not None):
            raise RecordError("limit must be at least 0, and stand beside a bid.", field="limit")
        for name in TIMES:
            if list(getattr(self, name)) != sorted(getattr(self, name)):
                raise RecordError(f"{name} must list times in order.", field=name)

    def to_dict(self) -> dict[str, Any]:
        """The body as plain values; a limit, questions, a stratum, lists of times and an agreement only where there are
        any."""
        return _BODY.write(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Body":
        """The inverse of `to_dict`, strictly."""
        return _BODY.read(values)


_BODY = Codec(Body, "body", style=SIGNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEvent:
    """An event of a log, by its number and its hash."""

    number: Annotated[int, _PLACE]
    """Its place in the log."""

    hash: Annotated[str, HASH]
    """Its hash."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Receipt:
    """What a participant can keep, show and have checked."""

    body: Body
    """Her facts."""

    index: int
    """Her place in the tree, from 0."""

    proof: tuple[Annotated[bytes, _HASH], ...]
    """The hashes beside the path from her leaf to the root."""

    root: Annotated[bytes, _HASH]
    """The campaign's root."""

    tree_size: Annotated[int, _PLACE]
    """The number of participants in the tree."""

    event: NamedEvent
    """The one in the campaign's log that names the root."""

    public_key: Annotated[PublicKey, PUBLIC_KEY]
    """The server's key."""

    fingerprint: str
    """The key's."""

    signature: Annotated[bytes, SIGNATURE]
    """Over all the rest."""

    def __post_init__(self) -> None:
        if self.fingerprint != self.public_key.fingerprint:
            raise RecordError("fingerprint must be the SHA-256 of public_key.", field="fingerprint")

    def __repr__(self) -> str:
        return f"Receipt({self.body!r}, root={self.root.hex()[:12]!r})"

    @property
    def included(self) -> bool:
        """Whether the proof leads from the body to the root."""
        return proves(self.proof, entry=self.body.entry(), index=self.index, size=self.tree_size, root=self.root)

    @property
    def signed(self) -> bool:
        """Whether the signature is that of the key in the receipt; whose key that is must be found out otherwise."""
        return self.public_key.signed(PURPOSE, self.content(), self.signature)

    def to_dict(self) -> dict[str, Any]:
        """The receipt as plain values."""
        return _RECEIPT.write(self)

    def to_json(self) -> bytes:
        """The receipt as a file."""
        return canonical(self.to_dict()) + b"\n"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Receipt":
        """The inverse of `to_dict`: strict about every field, but neither proof nor signature is checked."""
        return _RECEIPT.read(values)

    def content(self) -> dict[str, Any]:
        """What is signed: all of it but the signature."""
        return {name: value for name, value in self.to_dict().items() if name != "signature"}


_RECEIPT = Codec(Receipt, "receipt", style=SIGNED, header={"format": FORMAT, "version": VERSION})


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

    >>> body = Body(campaign="c1", participant="p1", state="delivered", bid=1.25, promised=0.5, delivered=0.5,
    ...             payment=217, fee=100, currency="EUR", decimals=2, salt=bytes(32))
    >>> event = Head(number=7, at="2026-03-01T12:00:00.000000Z", hash="ab" * 32)
    >>> receipt = issue(body, tree=tree_of([body]), index=0, event=event, key=SigningKey.create())
    >>> receipt.signed, receipt.included, Receipt.from_dict(receipt.to_dict()) == receipt
    (True, True, True)
    """
    public = key.public
    unsigned = Receipt(
        body=Body.from_dict(body.to_dict()),  # as it will be read again
        index=index,
        proof=tree.proof(index),
        root=tree.root,
        tree_size=tree.size,
        event=NamedEvent(number=event.number, hash=event.hash),
        public_key=public,
        fingerprint=public.fingerprint,
        signature=b"",
    )
    if not unsigned.included:
        raise RecordError(f"The body is not the entry at index {index} of the tree.")
    content = unsigned.content()
    return Receipt.from_dict({**content, "signature": key.sign(PURPOSE, content).hex()})
