"""What every use case may need beside the transaction."""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from hushbid.errors import InputError
from hushbid.server.domain.settings import checked_text
from hushbid.server.failpoints import Crash
from hushbid.server.installation import Home
from hushbid.server.store.transaction import Transaction
from hushbid.server.vault import Vault

T = TypeVar("T")
LONGEST_LABEL = 200
_NUMBERED = re.compile(r"P-\d+", flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Context:
    """An installation's keys and limits."""

    home: Home
    vault: Vault
    identity_key: bytes
    privacy_cap: float | None
    """Nobody may give up more than this over all campaigns; None if there is no limit."""

    crash: Crash
    least_people: int
    """Nothing is bought with fewer reports, whatever a campaign's settings say."""

    def identity(self, external_id: str) -> str:
        """The identity behind an external id such as an address: the same for all its ways of writing."""
        name = unicodedata.normalize("NFKC", external_id).casefold().strip()
        return hmac.new(self.identity_key, name.encode(), hashlib.sha256).hexdigest()


class Write(Protocol):
    """Runs an operation under a name and returns when it is durable."""

    def __call__(self, name: str, operation: Callable[[Transaction], T]) -> T: ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Desk:
    """What work in the background needs."""

    context: Context
    write: Write
    read: Callable[[], AbstractContextManager[Connection]]


def checked_label(text: object, row: int) -> str:
    """An external id that an analyst gave; an error names the row."""
    label = " ".join(checked_text(text, f"id in row {row}", needed=True, longest=LONGEST_LABEL).split())
    if _NUMBERED.fullmatch(label):
        raise InputError(f"The id in row {row} must not look like those the server gives to people without one.")
    return label


def numbered_label(number: int) -> str:
    """What somebody is called who was invited without an id."""
    return f"P-{number:05d}"
