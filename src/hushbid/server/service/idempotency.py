"""Requests that may arrive twice but must be carried out once (``Idempotency-Key``).

The answer to a request is stored by the operation that carries it out, in the same transaction. So there is no moment
at which one is durable without the other: a client that lost its answer, be it because the server was killed, asks
again under the same key and gets the first answer, or the request is carried out now. What was refused is not stored.

Answers may hold links, so they are sealed with a key made from the idempotency key itself, of which the database holds
only a hash.
"""

import hashlib
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection

from hushbid.errors import Conflict, InputError
from hushbid.server.store import jobs
from hushbid.server.store.database import Transaction

T = TypeVar("T")
SHORTEST_KEY, LONGEST_KEY, KEY_LETTERS = 16, 200, r"^[!-~]+$"
_NONCE_BYTES = 12


def is_key(text: str) -> bool:
    """Whether a text may be a key: long enough that nobody guesses it, printable ASCII without spaces."""
    return SHORTEST_KEY <= len(text) <= LONGEST_KEY and re.fullmatch(KEY_LETTERS, text) is not None


class AlreadyDone(Exception):
    """The request was carried out before, and got this answer."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("The request was carried out before.")
        self.answer = answer


@dataclass(frozen=True, repr=False)
class IdempotencyKey:
    """A request's key, under which a use case is carried out once: ``service.draft.once(key, who, settings)``."""

    who: str
    """Whose key it is: two callers may use the same one."""

    key: str
    asked: bytes
    """What is asked for; another request under the same key is refused."""

    encode: Callable[[Any], bytes]
    """Makes the answer from what the use case returns."""

    def __post_init__(self) -> None:
        if not is_key(self.key):
            raise InputError(
                f"Idempotency-Key must have {SHORTEST_KEY} to {LONGEST_KEY} printable ASCII characters, no spaces.",
                field="Idempotency-Key",
            )

    def answer(self, connection: Connection) -> bytes | None:
        """Return the answer that the request got before, if it was carried out."""
        found = jobs.remembered(connection, self._place)
        if found is None:
            return None
        request, sealed = found
        if request != self._digest:
            raise Conflict("This Idempotency-Key was used for another request.")
        return self._cipher().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)

    def around(self, operation: Callable[[Transaction], T]) -> Callable[[Transaction], tuple[T, bytes]]:
        """Return the operation that carries the request out, unless that was done before, and stores the answer."""

        def carried_out(tx: Transaction) -> tuple[T, bytes]:
            before = self.answer(tx.connection)
            if before is not None:
                raise AlreadyDone(before)
            result = operation(tx)
            answer = self.encode(result)
            nonce = secrets.token_bytes(_NONCE_BYTES)
            sealed = nonce + self._cipher().encrypt(nonce, answer, None)  # answers hold links
            jobs.remember(tx.connection, self._place, request=self._digest, answer=sealed, at=tx.at)
            return result, answer

        return carried_out

    @property
    def _place(self) -> str:
        return hashlib.sha256(f"hushbid request\n{self.who}\n{self.key}".encode()).hexdigest()

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.asked).hexdigest()

    def _cipher(self) -> AESGCM:
        return AESGCM(hashlib.sha256(f"hushbid answer\n{self.who}\n{self.key}".encode()).digest())
