"""Requests that may arrive twice but must be carried out once (``Idempotency-Key``).

A request is noted before it is carried out and its answer afterwards. The same request under the same key gets the
stored answer; another request under the key is refused, and so is the same one while nobody knows whether the first was
carried out. Answers may hold links, so they are sealed with a key made from the idempotency key itself, of which the
database holds only a hash.
"""

import hashlib
import secrets

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hushbid.campaign.store import jobs
from hushbid.campaign.store.transaction import Transaction
from hushbid.errors import Conflict, InputError

_NONCE_BYTES = 12
_SHORTEST, _LONGEST = 16, 200


def begin(tx: Transaction, who: str, key: str, request: bytes) -> bytes | None:
    """Note a request: None if it is to be carried out, else the answer it got before."""
    if not (_SHORTEST <= len(key) <= _LONGEST and key.isascii() and key.isprintable()):
        raise InputError(f"Idempotency-Key must have {_SHORTEST} to {_LONGEST} printable ASCII characters.")
    place, digest = _place(who, key), hashlib.sha256(request).hexdigest()
    found = jobs.remembered(tx.connection, place)
    if found is None:
        jobs.remember(tx.connection, place, digest, tx.at)
        return None
    before, finished, answer = found
    if before != digest:
        raise Conflict("This Idempotency-Key was used for another request.")
    if not finished or answer is None:
        raise Conflict("The same request is being carried out, or was interrupted: look whether it was done.")
    return _cipher(who, key).decrypt(answer[:_NONCE_BYTES], answer[_NONCE_BYTES:], None)


def finish(tx: Transaction, who: str, key: str, answer: bytes) -> None:
    """Store the answer to a request."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    jobs.answered(tx.connection, _place(who, key), nonce + _cipher(who, key).encrypt(nonce, answer, None))


def drop(tx: Transaction, who: str, key: str) -> None:
    """Forget a request that was refused, so that it can be made again."""
    jobs.forget(tx.connection, _place(who, key))


def _place(who: str, key: str) -> str:
    return hashlib.sha256(f"hushbid request\n{who}\n{key}".encode()).hexdigest()


def _cipher(who: str, key: str) -> AESGCM:
    return AESGCM(hashlib.sha256(f"hushbid answer\n{who}\n{key}".encode()).digest())
