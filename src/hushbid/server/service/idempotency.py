"""Requests that may arrive twice but must be carried out once (``Idempotency-Key``).

The answer to a request is stored by the operation that carries it out, in the same transaction. So there is no moment
at which one is durable without the other: a client that lost its answer, be it because the server was killed, asks
again under the same key and gets the first answer, or the request is carried out now. What was refused is not stored.

Answers may hold links, so they are sealed with a key made from the idempotency key itself, of which the database holds
only a hash.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection

from hushbid.errors import Conflict, InputError
from hushbid.server.store import jobs
from hushbid.server.store.database import Transaction

T = TypeVar("T")
_NONCE_BYTES = 12
_SHORTEST, _LONGEST = 16, 200


class AlreadyDone(Exception):
    """The request was carried out before, and got this answer."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("The request was carried out before.")
        self.answer = answer


@dataclass(repr=False)
class Repeatable:
    """A request with a key, on its way through a use case that writes once."""

    who: str
    key: str
    asked: bytes
    encode: Callable[[Any], bytes]
    """The answer, made from what the use case returns."""

    answer: bytes | None = None
    """There once it is stored."""

    _place: str = field(init=False)
    _digest: str = field(init=False)

    def __post_init__(self) -> None:
        if not (_SHORTEST <= len(self.key) <= _LONGEST and self.key.isascii() and self.key.isprintable()):
            raise InputError(f"Idempotency-Key must have {_SHORTEST} to {_LONGEST} printable ASCII characters.")
        self._place = hashlib.sha256(f"hushbid request\n{self.who}\n{self.key}".encode()).hexdigest()
        self._digest = hashlib.sha256(self.asked).hexdigest()

    def before(self, connection: Connection) -> bytes | None:
        """The answer it got before, if any."""
        found = jobs.remembered(connection, self._place)
        if found is None:
            return None
        request, sealed = found
        if request != self._digest:
            raise Conflict("This Idempotency-Key was used for another request.")
        return self._cipher().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)

    def around(self, operation: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
        """The operation that carries the request out unless that was done before, and stores the answer with it."""

        def carried_out(tx: Transaction) -> T:
            before = self.before(tx.connection)
            if before is not None:
                raise AlreadyDone(before)
            result = operation(tx)
            self.answer = self.encode(result)
            nonce = secrets.token_bytes(_NONCE_BYTES)
            sealed = nonce + self._cipher().encrypt(nonce, self.answer, None)  # answers hold links
            jobs.remember(tx.connection, self._place, request=self._digest, answer=sealed, at=tx.at)
            return result

        return carried_out

    def _cipher(self) -> AESGCM:
        return AESGCM(hashlib.sha256(f"hushbid answer\n{self.who}\n{self.key}".encode()).digest())
