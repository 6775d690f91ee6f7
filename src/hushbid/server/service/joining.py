"""Joining a campaign: invitations, the links that let people in, and the devices on which their part is open.

A device exchanges a link for a secret of its own, and may make a link for another device. Such a link would be as good
as an invitation, and the analyst, who has every invitation first, could send one in its place and keep the device that
made it. So it looks different, the page says so to the person who comes in with it, the making and the use of one are
events, and every device can end all others. After a delivery only the device that delivered, and those that it lets in
later, can do any of this.

A person can be taken off the list only before the campaign opens: from then on the mean is about everybody on the list,
and who is on it is not for the analyst to decide any more. They leave no trace but an event.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from sqlalchemy import Connection

from hushbid.errors import Conflict, InputError, NotAllowed
from hushbid.receipts.receipt import new_salt
from hushbid.server.model import rules
from hushbid.server.model.access import SECRET_LETTERS, SECRET_PREFIX, Link, LinkInvalid, why_ended
from hushbid.server.model.checks import checked_text
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.settings import MOST_PEOPLE
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import (
    CampaignView,
    Device,
    DevicesView,
    Invitation,
    OwnLink,
    ParticipantView,
    ParticipationView,
    Principal,
)
from hushbid.server.service import bodies
from hushbid.server.service.bodies import Label, described
from hushbid.server.service.use_case import Route, changes, reads, submits
from hushbid.server.service.views_of import campaign_view, participant_view, participation_view
from hushbid.server.store import campaigns, events, links, participants, privacy_account, schema
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import hashed, new_id, new_token

Person = str | tuple[str, str | None] | tuple[str, str | None, str | None]
"""An external id, or one with a group, or one with a group and a stratum."""

_LONGEST_LABEL = 200
_NUMBERED = re.compile(r"P-\d+", flags=re.IGNORECASE)
_SECRET = re.compile(rf"{SECRET_PREFIX}[A-Za-z0-9_-]{{{SECRET_LETTERS}}}", flags=re.ASCII)


# -- invitations -------------------------------------------------------------------------------------------------------


@changes(
    "invite",
    Route(
        "POST /campaigns/{campaign}/participants",
        "Invite people",
        by="analyst",
        body=bodies.Invite,
        status=201,
        wraps="invitations",
    ),
)
def invite(
    tx: Transaction,
    who: Principal,
    campaign_id: str,
    *,
    count: int | None = None,
    people: Sequence[Person] | None = None,
) -> tuple[Invitation, ...]:
    """Add people to a draft, so many without a name or those with these external ids, and make their links, shown this
    once. A request takes up to 32 MiB, read only once it is clear who sends it."""
    campaign = campaigns.get(tx.connection, campaign_id)
    rules.require_state(campaign, CampaignState.DRAFT, to="invite people")
    present = participants.count(tx.connection, campaign_id)
    before = events.ever_invited(tx, campaign_id)  # nobody gets the number of somebody who was removed
    named = _named(campaign, count, people, present, before)
    if people is None and tx.installation.privacy_cap is not None:
        raise InputError(
            "people must be given by their ids on a server with a privacy cap: somebody without a name could take part"
            " any number of times.",
            field="people",
        )
    persons: Mapping[str, str] = {}
    # people by id: known across campaigns, so that losses add up
    if people is not None:
        identities = [tx.installation.identity(label) for label, _, _ in named]
        _refuse_repetition(identities)
        persons = privacy_account.persons_of(tx.connection, identities, tx.at)
        _refuse_known(tx, campaign_id, list(persons.values()))
    invitations, rows = [], []
    for place, (label, group, stratum) in enumerate(named, start=before + 1):
        person = persons[tx.installation.identity(label)] if people is not None else None
        one = Invitation(id=new_id("p"), label=label, group=group, stratum=stratum, token=new_token("p"))
        invitations.append(one)
        rows.append(
            {
                "id": one.id,
                "campaign_id": campaign_id,
                "number": place,
                "label": label,
                "person_id": person,
                "group_name": group,
                "stratum": stratum,
                "state": ParticipantState.INVITED,
                "salt": new_salt(),
                "paid": 0,
            }
        )
    schema.add(tx.connection, schema.participants, *rows)
    links.add(tx.connection, {one.token: one.id for one in invitations}, made_by="analyst", at=tx.at)
    events.append(tx, campaign_id, "invited", {"people": len(rows)})
    return tuple(invitations)


@changes("renew", Route("POST /campaigns/{campaign}/links", "Renew a link", by="analyst", status=201))
def renew_link(
    tx: Transaction,
    who: Principal,
    campaign_id: str,
    label: Annotated[Label, described("The label of the person who lost their link.")],
) -> Invitation:
    """Make a new link for a person who lost theirs; their page, their receipt and the log show it.

    Before they have delivered, it ends their old link and all that was opened with it. Afterwards, also if they
    withdrew since, their secrets stay theirs and the new link only reads: nobody can take back, by a link, what they
    have given.
    """
    participant = participants.by_label(tx.connection, campaign_id, label)
    campaign = campaigns.get(tx.connection, campaign_id)
    if campaign.state is CampaignState.RELEASING:
        raise Conflict("It is not possible to renew a link while the estimate is being drawn: ask again in a moment.")
    # by the log, which remembers a delivery that was withdrawn
    reads_only = events.gave_data(tx.connection, participant.id)
    token = new_token("p")
    links.end(tx.connection, participant.id, tx.at, by="renewed", unused_of="analyst" if reads_only else None)
    links.add(tx.connection, {token: participant.id}, made_by="analyst", at=tx.at, reads_only=reads_only)
    body = {"participant": participant.id, "reads_only": reads_only}
    event = events.append(tx, campaign_id, "link-renewed", body)
    if campaign.root is None:
        participants.change(tx.connection, participant.id, renewed=(*participant.renewed, event.at))
    return Invitation.of(participant, group=participant.group_name, token=token, reads_only=reads_only)


@reads(by="analyst")
def person(connection: Connection, who: Principal, campaign_id: str, participant_id: str) -> ParticipantView:
    """Somebody on a campaign's list, by her pseudonym."""
    campaign = campaigns.get(connection, campaign_id)
    return participant_view(campaign, participants.get(connection, campaign_id, participant_id), labelled=True)


@changes("remove", Route("DELETE /campaigns/{campaign}/participants/{participant}", "Remove somebody", by="analyst"))
def remove(tx: Transaction, who: Principal, campaign_id: str, participant_id: str) -> CampaignView:
    """Remove a person from a draft, by their pseudonym, with their link and all that was opened with it.

    Refused once the campaign has opened.
    """
    campaign = campaigns.get(tx.connection, campaign_id)
    if campaign.state is not CampaignState.DRAFT:
        raise Conflict(
            "Nobody can be removed once the campaign has opened: the average is about everybody on the list. Whoever"
            " does not want to take part declines or withdraws herself."
        )
    participant = participants.get(tx.connection, campaign_id, participant_id)
    links.remove(tx.connection, participant.id)
    participants.remove(tx, participant.id)
    tx.erases = True
    events.append(tx, campaign_id, "removed", {"participant": participant.id})
    return campaign_view(tx.connection, campaign)


def _named(
    campaign: Campaign, count: int | None, people: Sequence[Person] | None, present: int, before: int
) -> list[tuple[str, str | None, str | None]]:
    """Everybody's label, group and stratum."""
    if (count is None) == (people is None):
        raise InputError("Either count or people must be given.")
    size = count if people is None else len(people)
    if type(size) is not int or not 1 <= size <= MOST_PEOPLE - present:
        raise InputError(f"A campaign may have 1 to {MOST_PEOPLE} people, {present} are invited, got {size} more.")
    if people is None:
        if campaign.settings.groups:
            raise InputError("people must be given with their groups, because the prior has groups.", field="people")
        if campaign.settings.strata is not None:
            raise InputError("people must be given with their strata, because there are strata.", field="people")
        return [(f"P-{place:05d}", None, None) for place in range(before + 1, before + size + 1)]
    found = []
    for row, person in enumerate(people):
        label, group, stratum = (*((person,) if isinstance(person, str) else person), None, None)[:3]
        _check_kind("stratum", stratum, list(campaign.settings.weights), "the campaign has strata", row)
        _check_kind("group", group, campaign.settings.groups, "the prior has groups", row)
        found.append((_checked_label(label, row), group, stratum))
    return found


def _check_kind(name: str, kind: str | None, known: Sequence[str], where: str, row: int) -> None:
    if (kind is None) != (not known):
        raise InputError(f"A {name} must be given exactly if {where}; row {row} is wrong.", field="people", row=row)
    if kind is not None and kind not in known:
        raise InputError(f"The {name} in row {row} is not one of {', '.join(known)}.", field="people", row=row)


def _checked_label(text: object, row: int) -> str:
    """An external id that an analyst gave; an error names the row."""
    try:
        label = " ".join(checked_text(text, f"id in row {row}", needed=True, longest=_LONGEST_LABEL).split())
    except InputError as problem:
        problem.field, problem.row = "people", row
        raise
    if _NUMBERED.fullmatch(label):
        told = f"The id in row {row} must not look like those the server gives to people without one."
        raise InputError(told, field="people", row=row)
    return label


def _refuse_repetition(identities: list[str]) -> None:
    seen: dict[str, int] = {}
    for row, identity in enumerate(identities):
        if identity in seen:
            raise InputError(
                f"Everybody may be invited once, but row {row} is the same person as row {seen[identity]}.",
                field="people",
                row=row,
            )
        seen[identity] = row


def _refuse_known(tx: Transaction, campaign_id: str, persons: list[str]) -> None:
    there = {one.person_id for one in participants.everybody(tx.connection, campaign_id)}
    repeated = sum(person in there for person in persons)
    if repeated:
        raise Conflict(f"Everybody may be invited once, but {repeated} of these people are in the campaign already.")


# -- links and devices -------------------------------------------------------------------------------------------------


@submits("enter", Route("PUT /participation/secret", "Exchange a link for a secret", by="link"))
def enter(
    tx: Transaction,
    link: str,
    secret: Annotated[
        str,
        described(
            "256 bits that the device has drawn at random, in base64url, after hb_d_; kept before they are sent, and"
            " the bearer token of everything that follows. The server keeps a hash.",
            pattern=rf"^{_SECRET.pattern}$",
            repr=False,
            json_schema_extra={"format": "password"},
        ),
    ],
) -> ParticipationView:
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
        raise LinkInvalid(why_ended(found.ended_by, used=found.secret is not None), found.ended_at)
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
        raise LinkInvalid("used", found.used_at)
    participant = participants.in_transaction(tx, found.participant_id)
    return participation_view(campaign, participant, reads_only=found.reads_only)


@changes("own-link", Route("POST /participation/link", "Make a link for another device", by="secret"))
def own_link(tx: Transaction, secret: str) -> OwnLink:
    """Make a link for another device, shown this once; one that was made before and not used ends.

    The log, the list of devices and the receipt show that it was made, and that it was used.
    """
    participant, campaign = _changing(tx, secret)
    _require_no_receipts_being_made(campaign)
    token, her = new_token("device"), participant.id
    # one unused link at a time
    links.end(tx.connection, her, tx.at, by="replaced", unused_of="herself")
    links.add(tx.connection, {token: her}, made_by="herself", at=tx.at)
    event = events.append(tx, campaign.id, "own-link-made", {"participant": her})
    _note(tx, campaign, replace(participant, own_links=(*participant.own_links, event.at)))
    return OwnLink(token=token)


@changes("end-others", Route("DELETE /participation/devices", "End all other devices", by="secret"))
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


@changes("leave", Route("DELETE /participation/secret", "Leave", by="secret", status=204, repeatable=True))
def leave(tx: Transaction, secret: str) -> None:
    """End this device's secret, with the link that it was exchanged for."""
    participant = participants.holder(tx.connection, secret).participant
    links.end_one(tx.connection, hashed(secret), tx.at, by="left")
    events.append(tx, participant.campaign_id, "device-left", {"participant": participant.id})


@reads()
def require_open(connection: Connection, secret: str) -> None:
    """Refuse a secret that opens nothing, or nothing any more."""
    participants.holder(connection, secret)


@reads(Route("GET /participation/devices", "Where is my part open?", by="secret"))
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
        made=tuple(map(datetime.fromisoformat, times["own-link-made"])),
        used=tuple(map(datetime.fromisoformat, times["own-link-used"])),
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
        made = {name: getattr(participant, name) for name in ("own_links", "own_links_used")}
        participants.change(tx.writing, participant.id, **made)
        tx.memory.participants[participant.id] = participant
