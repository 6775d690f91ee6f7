"""Signing keys (Ed25519), their fingerprints, and the list in which a server publishes them.

A fingerprint is the SHA-256 of the 32 bytes of a public key, as 64 hexadecimal digits: short enough to print on paper,
and anyone who has it can distinguish the right key. What is signed is always ``PURPOSE ‖ 0x0A ‖ canonical form``,
so that a signature made for one purpose never serves another.

The list of keys, version 1, holds every key a server has had, oldest first, and is signed by the newest::

    {"format": "hushbid-keys", "version": 1, "keys": [KEY, ...], "signature": HEX}
    KEY = {"number", "public_key", "fingerprint", "created_at", "endorsement", "withdrawn"}

When a key is replaced in good order, it endorses its successor with its last signature. So a person who knows any one
fingerprint trusts what follows from it: along endorsements to the newest key, and from there, by the signature over the
list, to every key in it that is not withdrawn. A key that may have leaked is withdrawn and endorses nothing: then the
new fingerprint must reach people by another way.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import ModuleType
from typing import Annotated, Any

from hushbid.common.codec import SIGNED, TIME, Codec, Through, Whole, hexadecimal
from hushbid.common.documents import LARGEST_INTEGER, bytes_of, canonical, time_text
from hushbid.errors import MissingExtra, RecordError

FORMAT, VERSION = "hushbid-keys", 1
KEY_BYTES, SIGNATURE_BYTES = 32, 64
_ENDORSEMENT, _LIST = "hushbid-key-endorsement v1", "hushbid-keys v1"
SIGNATURE = hexadecimal(SIGNATURE_BYTES)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The half of a key that everybody may know."""

    raw: bytes
    """Its 32 bytes, as in RFC 8032."""

    @classmethod
    def from_hex(cls, text: object, name: str = "public_key") -> "PublicKey":
        """A key from its 64 hexadecimal digits."""
        return cls(bytes_of(text, name, KEY_BYTES))

    @property
    def hex(self) -> str:
        """The key as 64 hexadecimal digits."""
        return self.raw.hex()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the key, as 64 hexadecimal digits."""
        return hashlib.sha256(self.raw).hexdigest()

    def signed(self, purpose: str, content: Mapping[str, Any], signature: bytes) -> bool:
        """Whether a signature over some content is this key's."""
        ed25519 = _ed25519()
        from cryptography.exceptions import InvalidSignature

        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, _message(purpose, content))
        except (InvalidSignature, ValueError):
            return False
        return True


PUBLIC_KEY = Through(lambda key: key.hex, PublicKey.from_hex)
"""How a key is written."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The half of a key that only its owner may know; it never shows in a text form of this object."""

    seed: bytes = field(repr=False)
    """The 32 secret bytes."""

    @classmethod
    def create(cls) -> "SigningKey":
        """A new key, from the operating system's randomness."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_pem(cls, text: bytes) -> "SigningKey":
        """A key from the PEM form that `to_pem` gives."""
        ed25519 = _ed25519()
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(text, password=None)
        except (ValueError, TypeError):
            raise RecordError("A signing key must be a PEM file without a password.") from None
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise RecordError("A signing key must be an Ed25519 key.")
        return cls(key.private_bytes_raw())

    def to_pem(self) -> bytes:
        """The key in PKCS #8, PEM, not encrypted: keep it where only the server can read it."""
        ed25519 = _ed25519()
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = ed25519.Ed25519PrivateKey.from_private_bytes(self.seed)
        return bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    @property
    def public(self) -> PublicKey:
        """The other half."""
        key = _ed25519().Ed25519PrivateKey.from_private_bytes(self.seed)
        return PublicKey(key.public_key().public_bytes_raw())

    def sign(self, purpose: str, content: Mapping[str, Any]) -> bytes:
        """The signature over some content for one purpose; the same content gets the same signature."""
        key = _ed25519().Ed25519PrivateKey.from_private_bytes(self.seed)
        return bytes(key.sign(_message(purpose, content)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKey:
    """One key of a list."""

    number: Annotated[int, Whole(1, LARGEST_INTEGER - 1)]
    """Its place, from 1."""

    public_key: Annotated[PublicKey, PUBLIC_KEY]
    """The key."""

    created_at: Annotated[str, TIME]
    """When it was made, in UTC."""

    fingerprint: str
    """The key's."""

    endorsement: Annotated[bytes, SIGNATURE] | None
    """Signature of the key before; None for the first key, and after a key that was withdrawn."""

    withdrawn: bool
    """Whether it may have leaked, so that nothing it signed can be relied on for that reason alone."""

    def __post_init__(self) -> None:
        if self.fingerprint != self.public_key.fingerprint:
            raise RecordError("fingerprint must be the SHA-256 of public_key.", field="fingerprint")

    def statement(self) -> dict[str, Any]:
        """What an endorsement signs."""
        return {"number": self.number, "public_key": self.public_key.hex, "created_at": self.created_at}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyList:
    """Every key a server has had, oldest first, signed by the newest."""

    keys: tuple[ListedKey, ...]
    """The keys; there is at least one."""

    signature: Annotated[bytes, SIGNATURE]
    """The newest key's, over all of it."""

    @property
    def newest(self) -> ListedKey:
        """The key in use."""
        return self.keys[-1]

    def to_dict(self) -> dict[str, Any]:
        """The list as plain values."""
        return _LISTED.write(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "KeyList":
        """The inverse of `to_dict`; a list that its newest key did not sign is refused."""
        listed = _LISTED.read(values)
        keys = listed.keys
        if not keys:
            raise RecordError("keys must be a list of at least one key.", field="keys")
        if [key.number for key in keys] != list(range(1, len(keys) + 1)):
            raise RecordError("keys must be numbered 1, 2, 3, ... in their order.", field="keys")
        if not listed.newest.public_key.signed(_LIST, listed.content(), listed.signature):
            raise RecordError("The list of keys is not signed by its newest key.")
        return listed

    def content(self) -> dict[str, Any]:
        """What is signed: all of it but the signature."""
        return {name: value for name, value in self.to_dict().items() if name != "signature"}

    def trusted_from(self, fingerprint: str) -> frozenset[str]:
        """The fingerprints to trust for a person who trusts this one; none if it is not listed or was withdrawn."""
        place = next((row for row, key in enumerate(self.keys) if key.fingerprint == fingerprint), None)
        if place is None or self.keys[place].withdrawn:
            return frozenset()
        trusted = {fingerprint}
        # along endorsements, each by the key before
        for before, key in zip(self.keys[place:], self.keys[place + 1 :], strict=False):
            endorsed = key.endorsement is not None and before.public_key.signed(
                _ENDORSEMENT, key.statement(), key.endorsement
            )
            if not endorsed or key.withdrawn:
                return frozenset(trusted)
            trusted.add(key.fingerprint)
        # the newest key is reached: it signed the list, and vouches for all in it
        return frozenset(key.fingerprint for key in self.keys if not key.withdrawn)


def first_list(key: SigningKey, *, at: datetime) -> KeyList:
    """The list of a server that has one key."""
    entry = _entry(1, key, at)
    return _signed((entry,), key)


def rotated(listed: KeyList, old: SigningKey | None, new: SigningKey, *, at: datetime, leaked: bool = False) -> KeyList:
    """The list after a new key has taken over.

    The old key endorses the new one, unless it leaked: then it is withdrawn, and is not needed here.
    """
    keys = listed.keys
    entry = _entry(len(keys) + 1, new, at)
    # whoever stole the key could endorse too
    if leaked:
        return _signed((*keys[:-1], replace(keys[-1], withdrawn=True), entry), new)
    if old is None or old.public != keys[-1].public_key:
        raise RecordError("A key is endorsed by the key in use, which is not the one that was given.")
    return _signed((*keys, replace(entry, endorsement=old.sign(_ENDORSEMENT, entry.statement()))), new)


def _entry(number: int, key: SigningKey, at: datetime) -> ListedKey:
    public = key.public
    return ListedKey(
        number=number,
        public_key=public,
        created_at=time_text(at),
        fingerprint=public.fingerprint,
        endorsement=None,
        withdrawn=False,
    )


def _signed(keys: tuple[ListedKey, ...], newest: SigningKey) -> KeyList:
    unsigned = KeyList(keys=keys, signature=b"")
    return replace(unsigned, signature=newest.sign(_LIST, unsigned.content()))


_LISTED = Codec(KeyList, "key list", style=SIGNED, header={"format": FORMAT, "version": VERSION})


def _message(purpose: str, content: Mapping[str, Any]) -> bytes:
    return purpose.encode("ascii") + b"\n" + canonical(content)


def _ed25519() -> ModuleType:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra("Signatures need cryptography: pip install '.[client]' in a checkout.") from None
    return ed25519
