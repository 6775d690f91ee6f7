"""A participant's way in: a device exchanges a link for a secret of its own, and may make a link for another device."""

import hmac
import re

from hushbid.campaign.domain.access import SECRET_LETTERS, SECRET_PREFIX, NoEntry
from hushbid.campaign.domain.views import OwnLink, ParticipationView
from hushbid.campaign.service.shown import participation_view
from hushbid.campaign.store import campaigns, links, participants
from hushbid.campaign.store.rows import hashed, new_token
from hushbid.campaign.store.transaction import Transaction
from hushbid.errors import InputError, NotAllowed

_SECRET = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_-]{{{SECRET_LETTERS}}}", flags=re.ASCII)


def enter(tx: Transaction, link: str, secret: object) -> ParticipationView:
    """Exchange a link for a secret that a device drew; the same exchange again changes nothing.

    So a device whose answer got lost asks again, and somebody else with the same link but another secret is refused.
    """
    if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
        raise InputError(f"secret must be {SECRET_PREFIX} and {SECRET_LETTERS} random letters of base64url.")
    mine, found = hashed(secret), links.of_token(tx.connection, link)
    if found.ended_at is not None:
        raise NoEntry("replaced" if found.secret is None else "ended", found.ended_at)
    if found.secret is None:
        if links.is_secret(tx.connection, mine):
            raise InputError("secret must be drawn anew for every link.")
        links.use(tx.writing, found, mine, tx.at)
    elif not hmac.compare_digest(found.secret, mine):
        raise NoEntry("used", found.used_at)
    participant = participants.in_transaction(tx, found.participant_id)
    campaign = campaigns.of_participant(tx, participant)
    return participation_view(campaign, participant, reads_only=found.reads_only)


def own_link(tx: Transaction, secret: str) -> OwnLink:
    """A link for another device of hers, to be used once; one that she made before and did not use ends."""
    holder = participants.holder(tx.connection, secret)
    if holder.reads_only:
        raise NotAllowed("A link that only reads makes no others.")
    token, her = new_token("p"), holder.participant.id
    links.end_unused(tx.connection, her, tx.at, made_by="herself")
    links.add(tx.connection, [links.row(token, her, made_by="herself", at=tx.at)])
    return OwnLink(token=token)
