"""A participant's way in: a device exchanges a link for a secret of its own, and may make a link for another device.

A link for another device would be as good as an invitation, and the analyst, who has every invitation first, could send
one in its place and keep the device that made it. So it looks different, whoever comes in with it is told, the making
and the use of one are events, and every device can end all others. After a delivery only the device that delivered, and
those that it lets in later, can do any of this.
"""

import hmac
import re
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from hushbid.errors import Conflict, InputError, NotAllowed
from hushbid.server.domain.access import SECRET_LETTERS, SECRET_PREFIX, Link, NoEntry, why_ended
from hushbid.server.domain.entities import Campaign, Participant
from hushbid.server.domain.states import CampaignState
from hushbid.server.domain.views import Device, DevicesView, OwnLink, ParticipationView
from hushbid.server.service.views_of import participation_view
from hushbid.server.store import campaigns, events, links, participants
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import hashed, new_token, sure_moment

_SECRET = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_-]{{{SECRET_LETTERS}}}", flags=re.ASCII)


def enter(tx: Transaction, link: str, secret: object) -> ParticipationView:
    """Exchange a link, sent as the bearer token, for a secret that the device drew; the link opens nothing afterwards.

    The same exchange again gets the same answer, so a device whose answer got lost asks again, and another device with
    the same link and another secret is refused.
    """
    if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
        raise InputError(
            f"secret must be {SECRET_PREFIX} and {SECRET_LETTERS} random letters of base64url.", field="secret"
        )
    mine, found = hashed(secret), links.of_token(tx.connection, link)
    if found.ended_at is not None:
        raise NoEntry(why_ended(found.ended_by, used=found.secret is not None), found.ended_at)
    participant = participants.in_transaction(tx, found.participant_id)
    campaign = campaigns.of_participant(tx, participant)
    # first use: the link is tied to this device's secret
    if found.secret is None:
        if links.is_secret(tx.connection, mine):
            raise InputError("secret must be drawn anew for every link.", field="secret")
        if found.made_by == "herself":
            _require_no_receipts_being_made(campaign)
            event = events.append(tx, campaign.id, "own-link-used", {"participant": participant.id})
            _note(tx, campaign, replace(participant, own_links_used=(*participant.own_links_used, event.at)))
        links.use(tx.writing, found, mine, tx.at)
    elif not hmac.compare_digest(found.secret, mine):  # used by somebody else
        raise NoEntry("used", found.used_at)
    participant = participants.in_transaction(tx, found.participant_id)
    return participation_view(campaign, participant, reads_only=found.reads_only)


def own_link(tx: Transaction, secret: str) -> OwnLink:
    """Make a link for another device, shown this once; one that was made before and not used ends.

    The log, the list of devices and the receipt show that it was made, and that it was used.
    """
    participant, campaign = _changing(tx, secret)
    _require_no_receipts_being_made(campaign)
    token, her = new_token("device"), participant.id
    # one unused link at a time
    links.end_unused(tx.connection, her, tx.at, made_by="herself", by="replaced")
    links.add(tx.connection, [links.row(token, her, made_by="herself", at=tx.at)])
    event = events.append(tx, campaign.id, "own-link-made", {"participant": her})
    _note(tx, campaign, replace(participant, own_links=(*participant.own_links, event.at)))
    return OwnLink(token=token)


def end_others(tx: Transaction, secret: str) -> DevicesView:
    """End every other device, and every link that was not used; the log shows it.

    After a delivery only the device that delivered, and those it let in later, may.
    """
    participant, campaign = _changing(tx, secret)
    ended = links.end(tx.connection, participant.id, tx.at, by="closed", but=hashed(secret))
    if ended:
        events.append(tx, campaign.id, "devices-ended", {"participant": participant.id, "links": ended})
        tx.memory.write(tx.connection)  # what is read next must see it
    return devices(tx.connection, secret)


def leave(tx: Transaction, secret: str) -> None:
    """End this device's secret, with the link that it was exchanged for."""
    participant = participants.holder(tx.connection, secret).participant
    links.end_one(tx.connection, hashed(secret), tx.at, by="left")
    events.append(tx, participant.campaign_id, "device-left", {"participant": participant.id})


def require_open(connection: Connection, secret: str) -> None:
    """Refuse a secret that opens nothing, or nothing any more."""
    participants.holder(connection, secret)


def devices(connection: Connection, secret: str) -> DevicesView:
    """Return on which devices the part is open, since when, and when links for others were made and used."""
    participant, mine = participants.by_secret(connection, secret), hashed(secret)
    all_links = links.of_participant(connection, participant.id)
    [here] = [link for link in all_links if link.secret == mine]
    times: dict[str, list[str]] = {"own-link-made": [], "own-link-used": []}
    for event in events.about(connection, participant.id):
        if event.kind in times:
            times[event.kind].append(event.at)
    # what she can check: who else is in, since when, and by which links
    open_now = [link for link in all_links if link.secret is not None and link.ended_at is None]
    return DevicesView(
        devices=tuple(
            _device(link, here=link is here) for link in sorted(open_now, key=lambda link: str(link.used_at))
        ),
        unused=sum(link.secret is None and link.ended_at is None for link in all_links),
        made=tuple(map(sure_moment, times["own-link-made"])),
        used=tuple(map(sure_moment, times["own-link-used"])),
        let_in_at=here.made_at if here.made_by == "herself" else None,
        open_since=_open_before(all_links, here) if here.made_by == "herself" else None,
    )


def _device(link: Link, *, here: bool) -> Device:
    assert link.used_at is not None
    return Device(since=link.used_at, by=link.made_by, reads_only=link.reads_only, here=here)


def _open_before(all_links: list[Link], here: Link) -> datetime | None:
    """When her part was opened first, as known when a link for another device was made; by whom, nobody can tell."""
    used = (link.used_at for link in all_links if link.used_at is not None and link.used_at <= here.made_at)
    return min(used, default=None)


def _changing(tx: Transaction, secret: str) -> tuple[Participant, Campaign]:
    holder = participants.holder(tx.connection, secret)
    if holder.reads_only:
        raise NotAllowed(participants.ONLY_READS)
    return holder.participant, campaigns.get(tx.connection, holder.participant.campaign_id)


def _require_no_receipts_being_made(campaign: Campaign) -> None:
    if campaign.state is CampaignState.RELEASING:
        raise Conflict(
            "It is not possible to let a device in while the estimate is being drawn: ask again in a moment."
        )


def _note(tx: Transaction, campaign: Campaign, participant: Participant) -> None:
    """Keep the times that are new for her receipt, as long as that is not fixed."""
    if campaign.root is None:
        made, used = ",".join(participant.own_links), ",".join(participant.own_links_used)
        participants.change(tx.writing, participant.id, own_links=made, own_links_used=used)
        tx.memory.participants[participant.id] = participant
