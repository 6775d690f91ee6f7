"""Campaigns, their records and releases."""

import gzip
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Text, bindparam, delete, select, tuple_, type_coerce, update

from hushbid.common.documents import canonical, parsed
from hushbid.errors import Conflict, NotFound
from hushbid.record import Record
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.states import CampaignState
from hushbid.server.store import schema
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import (
    campaigns,
    events,
    links,
    participants,
    plain_text,
    plain_values,
    records,
    releases,
)

_LEVEL = 4
_BY_ID = select(campaigns).where(campaigns.c.id == bindparam("id"))


def get(connection: Connection, campaign_id: str) -> Campaign:
    """The campaign with that id."""
    found = find(connection, campaign_id)
    if found is None:
        raise NotFound("There is no such campaign.")
    return found


def find(connection: Connection, campaign_id: str) -> Campaign | None:
    """The campaign with that id, if there is one."""
    row = connection.execute(_BY_ID, {"id": campaign_id}).one_or_none()
    return None if row is None else Campaign(**row._mapping)


def of_participant(tx: Transaction, participant: Participant) -> Campaign:
    """The campaign somebody takes part in; read once for all operations of a transaction that change no campaign."""
    known = tx.memory.campaigns.get(participant.campaign_id)
    if known is None:
        known = tx.memory.campaigns[participant.campaign_id] = get(tx.connection, participant.campaign_id)
    return known


def change(connection: Connection, campaign_id: str, **columns: Any) -> None:
    """Set columns, whatever the state."""
    schema.change(connection, campaigns, campaign_id, **columns)


def step(connection: Connection, campaign: Campaign, to: CampaignState, **columns: Any) -> None:
    """Move a campaign on, only if it is where the caller believes it is."""
    if not campaign.state.may_become(to):
        raise Conflict(f"A campaign cannot go from {campaign.state} to {to}.")
    done = connection.execute(
        update(campaigns)
        .where(campaigns.c.id == campaign.id, campaigns.c.state == campaign.state.value)
        .values(state=to.value, **columns)
    )
    if done.rowcount != 1:
        raise Conflict("Somebody else moved the campaign on at the same moment: look again.")


def discard(connection: Connection, campaign_id: str) -> None:
    """Remove a draft with everything that belongs to it."""
    people = select(participants.c.id).where(participants.c.campaign_id == campaign_id)
    connection.execute(delete(links).where(links.c.participant_id.in_(people)))
    schema.remove(connection, schema.jobs, campaign=campaign_id)
    for table in (participants, events):
        schema.remove(connection, table, campaign_id=campaign_id)
    schema.remove(connection, campaigns, id=campaign_id)


def newest(connection: Connection, *, before: tuple[str, str] | None, limit: int) -> list[Campaign]:
    """Campaigns from the newest, after the one with that time and id."""
    query = select(campaigns).order_by(campaigns.c.created_at.desc(), campaigns.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(tuple_(campaigns.c.created_at, campaigns.c.id) < before)
    return schema.all_of(connection, Campaign, query)


def in_states(connection: Connection, *states: CampaignState) -> list[Campaign]:
    """All campaigns in certain states, oldest first."""
    query = select(campaigns).where(campaigns.c.state.in_([state.value for state in states]))
    return schema.all_of(connection, Campaign, query.order_by(campaigns.c.created_at, campaigns.c.id))


def over_with_key(connection: Connection) -> list[Campaign]:
    """Campaigns that had opened and are over, whose key has not been destroyed."""
    over = [state.value for state in CampaignState if state.is_over]
    query = select(campaigns).where(
        campaigns.c.state.in_(over), campaigns.c.key_destroyed_at.is_(None), campaigns.c.opened_at.is_not(None)
    )
    return schema.all_of(connection, Campaign, query)


def over_with_payouts(connection: Connection) -> list[Campaign]:
    """Campaigns that are over and asked people where to pay them, whose key to that has not been destroyed."""
    query = select(campaigns).where(
        campaigns.c.root.is_not(None),
        campaigns.c.payouts_destroyed_at.is_(None),
        type_coerce(campaigns.c.stated, Text).like('%"payout":"%'),  # it is not stored where nobody is asked
    )
    return schema.all_of(connection, Campaign, query)


def packed(record: Record) -> bytes:
    """A record as it is stored; takes a while for many people, so it is made before it is stored."""
    return gzip.compress(canonical(record.to_dict()), compresslevel=_LEVEL, mtime=0)


def put_record(connection: Connection, campaign_id: str, content: bytes) -> None:
    """Store a campaign's record, packed, in place of an earlier one."""
    schema.remove(connection, records, campaign_id=campaign_id)
    schema.add(connection, records, {"campaign_id": campaign_id, "content": content})


def record_of(connection: Connection, campaign_id: str) -> Record:
    """A campaign's record."""
    return Record.from_dict(parsed(record_bytes(connection, campaign_id)))


def record_bytes(connection: Connection, campaign_id: str) -> bytes:
    """A campaign's record in its canonical form."""
    content = connection.execute(select(records.c.content).where(records.c.campaign_id == campaign_id)).scalar()
    if content is None:
        raise NotFound("This campaign has no record: no decision was made.")
    return gzip.decompress(content)


def put_release(connection: Connection, campaign_id: str, shown: Mapping[str, Any], at: str) -> None:
    """Store what may be shown of the one release a campaign can have; under ``staff`` what only staff may see."""
    schema.add(connection, releases, {"campaign_id": campaign_id, "public": plain_text(shown), "released_at": at})


def release_of(connection: Connection, campaign_id: str, *, staff: bool) -> dict[str, Any] | None:
    """What may be shown of a campaign's release, if there is one: to staff, or to anybody else."""
    found = connection.execute(select(releases.c.public).where(releases.c.campaign_id == campaign_id)).scalar()
    if found is None:
        return None
    shown: dict[str, Any] = plain_values(found)
    for_staff = shown.pop("staff")
    return {**shown, **for_staff} if staff else shown
