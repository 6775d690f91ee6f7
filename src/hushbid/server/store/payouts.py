"""Where people are to be paid, sealed."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from hushbid.server.store.schema import participants, payouts


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SealedPayout:
    """One person's, as it is stored."""

    sealed: bytes
    stated_at: datetime


def put(connection: Connection, participant_id: str, sealed: bytes, at: str) -> None:
    """Store somebody's, in place of an earlier one."""
    remove(connection, participant_id)
    connection.execute(insert(payouts).values(participant_id=participant_id, sealed=sealed, stated_at=at))


def get(connection: Connection, participant_id: str) -> SealedPayout | None:
    """Somebody's, if she said it."""
    row = connection.execute(select(payouts).where(payouts.c.participant_id == participant_id)).one_or_none()
    return None if row is None else SealedPayout(sealed=row.sealed, stated_at=row.stated_at)


def remove(connection: Connection, participant_id: str) -> bool:
    """Remove somebody's; whether there was one."""
    return connection.execute(delete(payouts).where(payouts.c.participant_id == participant_id)).rowcount > 0


def of_campaign(connection: Connection, campaign_id: str) -> dict[str, bytes]:
    """Everybody's in a campaign, by pseudonym."""
    query = (
        select(payouts.c.participant_id, payouts.c.sealed)
        .join(participants, participants.c.id == payouts.c.participant_id)
        .where(participants.c.campaign_id == campaign_id)
    )
    return {row.participant_id: row.sealed for row in connection.execute(query)}


def remove_all(connection: Connection, campaign_id: str) -> int:
    """Remove everybody's in a campaign; how many there were."""
    hers = select(participants.c.id).where(participants.c.campaign_id == campaign_id)
    return connection.execute(delete(payouts).where(payouts.c.participant_id.in_(hers))).rowcount
