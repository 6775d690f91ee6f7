"""How a participant comes in: a link is used once, by a device that exchanges it for a secret of its own.

The analyst makes the links, so whoever holds one may be she. What speaks for a participant from then on is a secret
that her device drew and that the analyst has never seen. Both are stored as hashes.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from hushbid.errors import NotAllowed

Reason = Literal["unknown", "used", "replaced", "ended"]
LINK_PREFIX, SECRET_PREFIX = "hb_p_", "hb_d_"
SECRET_LETTERS = 43
"""256 random bits in base64url."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Link:
    """A link, and what became of it."""

    token: str
    """Its hash."""

    participant_id: str
    made_by: Literal["analyst", "herself"]
    reads_only: bool
    """Whether what it is exchanged for may look, but change nothing: links that the analyst renews after a delivery."""

    made_at: datetime
    used_at: datetime | None
    secret: str | None
    """The hash of the secret that it was exchanged for."""

    ended_at: datetime | None
    """When the analyst renewed the link, which ended this one with its secret."""


class NoEntry(NotAllowed):
    """A link or a secret that opens nothing."""

    def __init__(self, reason: Reason, at: datetime | None = None) -> None:
        moment = "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        super().__init__(
            {
                "unknown": "This link or secret is not valid.",
                "used": f"This link was used before, on {moment}, and opens nothing any more: go on where it was used,"
                " or ask whoever sent it for a new one.",
                "replaced": f"This link was replaced by a new one on {moment}, and opens nothing any more.",
                "ended": f"A new link was made for you on {moment}, which ended what was opened with the one before.",
            }[reason]
        )
        self.reason = reason
        self.at = at
