"""People in campaigns, the documents that they agreed to, and where they are to be paid, sealed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Update, bindparam, case, delete, func, literal, select, update

from hushbid.errors import NotAllowed, NotFound
from hushbid.server.model.access import LinkInvalid, why_ended
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.rules import COUNTED
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.store import links as stored_links
from hushbid.server.store import schema
from hushbid.server.store.database import Memory, Transaction
from hushbid.server.store.schema import consents, hashed, links, participants, payouts, plain_text, plain_values

_C = participants.c
_COLUMNS = tuple(participants.columns.keys())
ONLY_READS = (
    "After a delivery only the device that delivered, and those it let in later, can change anything: this one only"
    " reads."
)
NOTHING_GIVEN: dict[str, None] = {"delivery": None, "delivery_nonce": None, "delivered_at": None}
"""The columns of somebody of whom no data are kept."""

_HELD = select(participants, links.c.secret, links.c.reads_only, links.c.ended_at, links.c.ended_by).join(
    links, links.c.participant_id == _C.id
)
_BY_SECRET = _HELD.where(links.c.secret == bindparam("secret"))
_BY_SECRETS = _HELD.where(links.c.secret.in_(bindparam("secrets", expanding=True)))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Holder:
    """Somebody who came with a secret."""

    participant: Participant
    reads_only: bool
    """Whether the secret may change nothing."""


def holder(connection: Connection, secret: str) -> Holder:
    """Whoever holds a secret that still opens something."""
    row = connection.execute(_BY_SECRET, {"secret": hashed(secret)}).one_or_none()
    if row is None:
        raise LinkInvalid("unknown")
    if row.ended_at is not None:
        raise LinkInvalid(why_ended(row.ended_by, used=True), row.ended_at)
    return Holder(participant=_participant(row), reads_only=row.reads_only)


def by_secret(connection: Connection, secret: str) -> Participant:
    """The participant whose secret this is."""
    return holder(connection, secret).participant


def by_label(connection: Connection, campaign_id: str, label: str) -> Participant:
    """The participant whom the analyst calls so."""
    missing = f"There is no participant {label!r} in this campaign."
    return _one(connection, missing, _C.campaign_id == campaign_id, _C.label == label)


def get(connection: Connection, campaign_id: str, participant_id: str) -> Participant:
    """The participant with that pseudonym."""
    missing = "There is no such participant in this campaign."
    return _one(connection, missing, _C.campaign_id == campaign_id, _C.id == participant_id)


def _one(connection: Connection, missing: str, *where: ColumnElement[bool]) -> Participant:
    row = connection.execute(select(participants).where(*where)).one_or_none()
    if row is None:
        raise NotFound(missing)
    return _participant(row)


def change(connection: Connection, participant_id: str, **columns: Any) -> None:
    """Set columns of one participant."""
    schema.change(connection, participants, participant_id, **columns)


def acting(tx: Transaction, secret: str) -> Participant:
    """The participant who wants to change something, with what earlier operations of the transaction changed."""
    place = hashed(secret)
    # not among those that the group read together
    if place not in tx.memory.holders:
        found = holder(tx.connection, secret)
        tx.memory.participants.setdefault(found.participant.id, found.participant)
        tx.memory.holders[place] = found.participant.id, found.reads_only
    who, reads_only = tx.memory.holders[place]
    if reads_only:
        raise NotAllowed(ONLY_READS)
    return tx.memory.participants[who]


def in_transaction(tx: Transaction, participant_id: str) -> Participant:
    """A participant, with what earlier operations of the transaction changed."""
    if participant_id not in tx.memory.participants:
        missing = "There is no such participant."
        tx.memory.participants[participant_id] = _one(tx.connection, missing, _C.id == participant_id)
    return tx.memory.participants[participant_id]


def recall(connection: Connection, memory: Memory, secrets: Iterable[str]) -> None:
    """Read everybody at once whose secrets a transaction is going to see; those that are not valid are left out."""
    wanted = list({hashed(secret) for secret in secrets})
    if len(wanted) > 1:  # for one alone a query of its own is as good
        for row in connection.execute(_BY_SECRETS, {"secrets": wanted}):
            if row.ended_at is None:
                memory.participants[row.id] = _participant(row)
                memory.holders[row.secret] = row.id, row.reads_only


def store(tx: Transaction, participant: Participant, *columns: str) -> None:
    """Store these columns of a participant before the commit, together with those of others."""
    tx.memory.participants[participant.id] = participant
    tx.memory.later(_change(columns), {f"new_{name}": getattr(participant, name) for name in ("id", *columns)})


def store_sealed(tx: Transaction, participant: Participant, secret: str, *columns: str) -> None:
    """Store sealed data likewise; all devices but the one with this secret only read from then on."""
    mine = hashed(secret)
    stored_links.let_only_read(tx.writing, participant.id, but=mine)
    # also for operations of the same transaction
    for place, (who, _) in tx.memory.holders.items():
        if who == participant.id and place != mine:
            tx.memory.holders[place] = who, True
    store(tx, participant, *NOTHING_GIVEN, *columns)


@cache
def _change(columns: tuple[str, ...]) -> Update:
    """The statement that sets these columns of one participant."""
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    return update(participants).where(_C.id == bindparam("new_id")).values(values)


def change_all(connection: Connection, campaign_id: str, *states: ParticipantState, **columns: Any) -> int:
    """Set columns of everybody in a campaign who is in one of the states."""
    return connection.execute(update(participants).where(*_among(campaign_id, states)).values(**columns)).rowcount


def change_rows(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Set the same columns of many participants, each to a value of their own; every row has an ``id``."""
    if rows:
        statement = _change(tuple(name for name in rows[0] if name != "id"))
        connection.execute(statement, [{f"new_{name}": value for name, value in row.items()} for row in rows])


def tell_decisions(connection: Connection, campaign_id: str, *, single_visit: bool = False) -> None:
    """Move everybody on to what was decided about her, which is stored already; after one visit what is bought is
    delivered, and what is not is removed."""
    bought = case(
        (_C.promised > 0.0, literal("delivered" if single_visit else "promised")), else_=literal("not_bought")
    )
    for before, after in ((ParticipantState.BID, bought), (ParticipantState.INVITED, literal("absent"))):
        query = update(participants).where(_C.campaign_id == campaign_id, _C.state == before)
        connection.execute(query.values(state=after))
    if single_visit:
        change_all(connection, campaign_id, ParticipantState.NOT_BOUGHT, **NOTHING_GIVEN)


def erase_deliveries(connection: Connection, campaign_id: str) -> None:
    """Remove the sealed values of a campaign."""
    query = update(participants).where(_C.campaign_id == campaign_id, _C.delivery.is_not(None))
    connection.execute(query.values(delivery=None))


def remove(tx: Transaction, participant_id: str) -> None:
    """Remove somebody from her campaign, and from what the transaction remembers; her links must be gone."""
    tx.memory.write(tx.connection)
    tx.memory.participants.pop(participant_id, None)
    for secret in [secret for secret, (who, _) in tx.memory.holders.items() if who == participant_id]:
        del tx.memory.holders[secret]
    schema.remove(tx.connection, participants, id=participant_id)


def listed(connection: Connection, campaign_id: str, *, after: int, limit: int) -> list[Participant]:
    """Participants in the order of invitation, after a number."""
    query = select(participants).where(_C.campaign_id == campaign_id, _C.number > after)
    return [_participant(row) for row in connection.execute(query.order_by(_C.number).limit(limit))]


def everybody(connection: Connection, campaign_id: str, *states: ParticipantState) -> list[Participant]:
    """Participants in the order of their pseudonyms; only those in certain states, if any are named."""
    found = [_participant(row) for row in connection.execute(select(participants).where(*_among(campaign_id, states)))]
    return sorted(found, key=lambda participant: participant.id)  # here, because databases sort text differently


def in_order(connection: Connection, campaign_id: str) -> list[Participant]:
    """Everybody in the order of invitation."""
    return sorted(everybody(connection, campaign_id), key=lambda one: one.number)


def groups(connection: Connection, campaign_id: str) -> list[str | None]:
    """The group of everybody who is not excluded."""
    return _of_all(connection, campaign_id, _C.group_name)


def strata(connection: Connection, campaign_id: str) -> list[str | None]:
    """The stratum of everybody who is not excluded, in the same order as `groups`."""
    return _of_all(connection, campaign_id, _C.stratum)


def _of_all(connection: Connection, campaign_id: str, column: ColumnElement[Any]) -> list[str | None]:
    query = select(column).where(_C.campaign_id == campaign_id, _C.state != ParticipantState.EXCLUDED)
    return list(connection.execute(query.order_by(_C.number)).scalars())


def rosters(connection: Connection, campaign_id: str) -> dict[str, int]:
    """How many were invited in each stratum; nobody where there are none."""
    query = select(_C.stratum, func.count()).where(_C.campaign_id == campaign_id, _C.stratum.is_not(None))
    return {name: int(many) for name, many in connection.execute(query.group_by(_C.stratum))}


def count(connection: Connection, campaign_id: str, *states: ParticipantState) -> int:
    """How many there are in a campaign; only those in certain states, if any are named."""
    query = select(func.count()).select_from(participants).where(*_among(campaign_id, states))
    return int(connection.execute(query).scalar_one())


def _among(campaign_id: str, states: tuple[ParticipantState, ...]) -> list[ColumnElement[bool]]:
    return [_C.campaign_id == campaign_id, *([_C.state.in_(states)] if states else [])]


def totals(connection: Connection, campaign: Campaign) -> Mapping[ParticipantState, tuple[int, int, int]]:
    """By state: how many people, what they are still owed, what they have been paid."""
    owed = _owed(campaign)
    rest = case((owed > _C.paid, owed - _C.paid), else_=literal(0))
    query = (
        select(_C.state, func.count(), func.sum(rest), func.sum(_C.paid))
        .where(_C.campaign_id == campaign.id)
        .group_by(_C.state)
    )
    return {state: (int(people), int(owing), int(paid)) for state, people, owing, paid in connection.execute(query)}


def _owed(campaign: Campaign) -> ColumnElement[int]:
    """`rules.fee_owed` and `rules.payment_owed` as SQL; a test compares the two."""
    settings = campaign.stated
    if settings is None:  # a draft that is not complete owes nothing
        return literal(0)
    counted = list(COUNTED)
    if campaign.state is CampaignState.CANCELLED:
        counted.append(ParticipantState.BID)
    if settings.server.fee_after_withdrawal:
        counted.append(ParticipantState.WITHDRAWN)
    fee = case((_C.bid_at.is_not(None) & _C.state.in_(counted), literal(settings.fee_minor)), else_=literal(0))
    payment = case((_C.state == ParticipantState.DELIVERED, func.coalesce(_C.payment, literal(0))), else_=literal(0))
    return fee + payment


def _participant(row: Row[Any]) -> Participant:
    return Participant(**dict(zip(_COLUMNS, row, strict=False)))  # her columns come first, perhaps others after them


# -- what they agreed to, and where they are to be paid ----------------------------------------------------------------


def keep_consent(connection: Connection, campaign_id: str, version: str, document: dict[str, Any]) -> None:
    """Keep a document, unless it is kept already."""
    if consent(connection, campaign_id, version) is None:
        row = {"campaign_id": campaign_id, "version": version, "content": plain_text(document)}
        schema.add(connection, consents, row)


def consent(connection: Connection, campaign_id: str, version: str | None) -> dict[str, Any] | None:
    """The document of that version, if somebody agreed to it."""
    query = select(consents.c.content).where(consents.c.campaign_id == campaign_id, consents.c.version == version)
    found = connection.execute(query).scalar_one_or_none()
    return None if found is None else plain_values(found)


def consents_of(connection: Connection, campaign_id: str) -> dict[str, dict[str, Any]]:
    """Every document that somebody agreed to, by its version."""
    query = select(consents.c.version, consents.c.content).where(consents.c.campaign_id == campaign_id)
    found = {row.version: plain_values(row.content) for row in connection.execute(query)}
    return dict(sorted(found.items()))


def put_payout(connection: Connection, participant_id: str, sealed: bytes, at: str) -> None:
    """Store somebody's, in place of an earlier one."""
    remove_payout(connection, participant_id)
    schema.add(connection, payouts, {"participant_id": participant_id, "sealed": sealed, "stated_at": at})


def payout(connection: Connection, participant_id: str) -> tuple[bytes, datetime] | None:
    """Where somebody is to be paid, sealed, and since when it is stored; None if it is not."""
    query = select(payouts.c.sealed, payouts.c.stated_at).where(payouts.c.participant_id == participant_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.sealed, row.stated_at)


def remove_payout(connection: Connection, participant_id: str) -> bool:
    """Remove somebody's; whether there was one."""
    return schema.remove(connection, payouts, participant_id=participant_id) > 0


def payouts_of(connection: Connection, campaign_id: str) -> dict[str, bytes]:
    """Everybody's in a campaign, by pseudonym."""
    query = select(payouts.c.participant_id, payouts.c.sealed).join(participants).where(_C.campaign_id == campaign_id)
    return {row.participant_id: row.sealed for row in connection.execute(query)}


def remove_payouts(connection: Connection, campaign_id: str) -> None:
    """Remove everybody's in a campaign."""
    people = select(_C.id).where(_C.campaign_id == campaign_id)
    connection.execute(delete(payouts).where(payouts.c.participant_id.in_(people)))
