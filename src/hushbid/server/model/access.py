"""How a participant comes in: a link is used once, by a device that exchanges it for a secret of its own.

The analyst makes the links, so whoever holds one may be she. What speaks for a participant from then on is a secret
that her device drew and that the analyst has never seen. Both are stored as hashes.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from hushbid.errors import NotAllowed

Role = Literal["anybody", "staff", "analyst", "link", "secret"]
"""Who may ask: everybody; analysts and auditors; analysts; a participant with an unused link, or with a secret."""

Reason = Literal["unknown", "used", "replaced", "ended", "closed", "left"]
EndedBy = Literal["renewed", "replaced", "closed", "left"]
"""By a new link of the analyst's, by a newer one for another device, from another device, by herself on this one."""

LINK_PREFIX, OWN_PREFIX, SECRET_PREFIX = "hb_p_", "hb_device_", "hb_d_"
"""An invitation, a link for another device and a secret are told apart at sight, and by their hashes."""

LINK_PREFIXES = (LINK_PREFIX, OWN_PREFIX)
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
    """Whether what it is exchanged for may look, but change nothing.

    So it is for links that the analyst renews after a delivery, and, from the delivery on, for all but the device that
    made it and those that this one lets in later.
    """

    made_at: datetime
    used_at: datetime | None
    secret: str | None
    """The hash of the secret that it was exchanged for."""

    ended_at: datetime | None
    """From when on neither it nor its secret opens anything."""

    ended_by: EndedBy | None


def why_ended(by: str | None, *, used: bool) -> Reason:
    """Why a link that has ended, or its secret if it was used, opens nothing any more."""
    if by == "closed":
        return "closed"
    if by == "left":
        return "left"
    return "ended" if used else "replaced"


class LinkInvalid(NotAllowed):
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
                "closed": f"This was ended on {moment} from another device on which your part was open. If that was not"
                " you, tell whoever runs the campaign and its auditor.",
                "left": f"Whoever had opened this left on {moment}, which ended it: it opens nothing any more. If that"
                " was not you, tell whoever runs the campaign and its auditor.",
            }[reason]
        )
        self.reason = reason
        self.at = at
