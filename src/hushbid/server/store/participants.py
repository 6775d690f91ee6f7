"""People in campaigns, the documents that they agreed to, and where they are to be paid, sealed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Row,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)

from hushbid.errors import NotAllowed, NotFound
from hushbid.server.model.access import LinkInvalid, why_ended
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.rules import COUNTED
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.store import links as stored_links
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
_ONE = update(participants).where(_C.id == bindparam("who"))
_BID = _ONE.values(
    state=ParticipantState.BID.value,
    bid=bindparam("said"),
    loss_limit=bindparam("most"),
    bid_at=bindparam("when"),
)
_ANSWERED = _ONE.values(delivery=bindparam("sealed"), delivery_nonce=bindparam("nonce"), delivered_at=bindparam("when"))
_DELIVERED = _ONE.values(
    state=ParticipantState.DELIVERED.value,
    delivery=bindparam("sealed"),
    delivery_nonce=bindparam("nonce"),
    delivered_at=bindparam("when"),
)


def add(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Store new participants."""
    connection.execute(insert(participants), rows)


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
    query = select(participants).where(_C.campaign_id == campaign_id, _C.label == label)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"There is no participant {label!r} in this campaign.")
    return _participant(row)


def get(connection: Connection, campaign_id: str, participant_id: str) -> Participant:
    """The participant with that pseudonym."""
    query = select(participants).where(_C.campaign_id == campaign_id, _C.id == participant_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound("There is no such participant in this campaign.")
    return _participant(row)


def change(connection: Connection, participant_id: str, **columns: Any) -> None:
    """Set columns of one participant."""
    connection.execute(update(participants).where(_C.id == participant_id).values(**columns))


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
        row = tx.connection.execute(select(participants).where(_C.id == participant_id)).one()
        tx.memory.participants[participant_id] = _participant(row)
    return tx.memory.participants[participant_id]


def recall(connection: Connection, memory: Memory, secrets: Iterable[str]) -> None:
    """Read everybody at once whose secrets a transaction is going to see; those that are not valid are left out."""
    wanted = list({hashed(secret) for secret in secrets})
    if len(wanted) > 1:  # for one alone a query of its own is as good
        for row in connection.execute(_BY_SECRETS, {"secrets": wanted}):
            if row.ended_at is None:
                memory.participants[row.id] = _participant(row)
                memory.holders[row.secret] = row.id, row.reads_only


def bid(tx: Transaction, participant: Participant) -> None:
    """Store somebody's bid and limit."""
    _change_later(tx, participant, _BID, {"said": participant.bid, "most": participant.loss_limit})


def delivered(tx: Transaction, participant: Participant, secret: str) -> None:
    """Store somebody's sealed value; all her devices but the one with this secret only read from then on."""
    _sealed(tx, participant, secret, _DELIVERED)


def answered(tx: Transaction, participant: Participant, secret: str) -> None:
    """Store the sealed answers that came with somebody's bid, likewise."""
    _sealed(tx, participant, secret, _ANSWERED)


def _sealed(tx: Transaction, participant: Participant, secret: str, statement: Executable) -> None:
    mine = hashed(secret)
    stored_links.let_only_read(tx.writing, participant.id, but=mine)
    # also for operations of the same transaction
    for place, (who, _) in tx.memory.holders.items():
        if who == participant.id and place != mine:
            tx.memory.holders[place] = who, True
    content = {"sealed": participant.delivery, "nonce": participant.delivery_nonce}
    _change_later(tx, participant, statement, content)


def _change_later(tx: Transaction, participant: Participant, statement: Executable, row: dict[str, Any]) -> None:
    tx.memory.participants[participant.id] = participant
    tx.memory.later(statement, {"who": participant.id, "when": tx.at, **row})


def change_all(connection: Connection, campaign_id: str, *states: ParticipantState, **columns: Any) -> int:
    """Set columns of everybody in a campaign who is in one of the states."""
    query = update(participants).where(_C.campaign_id == campaign_id, _C.state.in_([state.value for state in states]))
    return connection.execute(query.values(**columns)).rowcount


def change_rows(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Set the same columns of many participants, each to a value of her own; every row has an ``id``."""
    if rows:
        columns: dict[str, Any] = {name: bindparam(f"new_{name}") for name in rows[0] if name != "id"}
        query = update(participants).where(_C.id == bindparam("new_id")).values(columns)
        connection.execute(query, [{f"new_{name}": value for name, value in row.items()} for row in rows])


def tell_decisions(connection: Connection, campaign_id: str, *, single_visit: bool = False) -> None:
    """Move everybody on to what was decided about her, which is stored already; after one visit what is bought is
    delivered, and what is not is removed."""
    bought = case(
        (_C.promised > 0.0, literal("delivered" if single_visit else "promised")), else_=literal("not_bought")
    )
    for before, after in ((ParticipantState.BID, bought), (ParticipantState.INVITED, literal("absent"))):
        query = update(participants).where(_C.campaign_id == campaign_id, _C.state == before.value)
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
    tx.connection.execute(delete(participants).where(_C.id == participant_id))


def remove_all(connection: Connection, campaign_id: str) -> None:
    """Remove everybody from a campaign."""
    connection.execute(delete(participants).where(_C.campaign_id == campaign_id))


def listed(connection: Connection, campaign_id: str, *, after: int, limit: int) -> list[Participant]:
    """Participants in the order of invitation, after a number."""
    query = select(participants).where(_C.campaign_id == campaign_id, _C.number > after)
    return [_participant(row) for row in connection.execute(query.order_by(_C.number).limit(limit))]


def everybody(connection: Connection, campaign_id: str, *states: ParticipantState) -> list[Participant]:
    """Participants in the order of their pseudonyms; only those in certain states, if any are named."""
    query = select(participants).where(_C.campaign_id == campaign_id)
    if states:
        query = query.where(_C.state.in_([state.value for state in states]))
    found = [_participant(row) for row in connection.execute(query)]
    return sorted(found, key=lambda participant: participant.id)  # here, because databases sort text differently


def with_labels(connection: Connection, campaign_id: str, labels: Iterable[str]) -> list[Participant]:
    """The participants with these labels; each must exist."""
    return [by_label(connection, campaign_id, label) for label in labels]


def groups(connection: Connection, campaign_id: str) -> list[str | None]:
    """The group of everybody who is not excluded."""
    query = select(_C.group_name).where(_C.campaign_id == campaign_id, _C.state != ParticipantState.EXCLUDED.value)
    return list(connection.execute(query.order_by(_C.number)).scalars())


def strata(connection: Connection, campaign_id: str) -> list[str | None]:
    """The stratum of everybody who is not excluded, in the same order as `groups`."""
    query = select(_C.stratum).where(_C.campaign_id == campaign_id, _C.state != ParticipantState.EXCLUDED.value)
    return list(connection.execute(query.order_by(_C.number)).scalars())


def rosters(connection: Connection, campaign_id: str) -> dict[str, int]:
    """How many were invited in each stratum; nobody where there are none."""
    query = select(_C.stratum, func.count()).where(_C.campaign_id == campaign_id, _C.stratum.is_not(None))
    return {name: int(many) for name, many in connection.execute(query.group_by(_C.stratum))}


def count(connection: Connection, campaign_id: str, *states: ParticipantState) -> int:
    """How many there are in a campaign; only those in certain states, if any are named."""
    query = select(func.count()).select_from(participants).where(_C.campaign_id == campaign_id)
    if states:
        query = query.where(_C.state.in_([state.value for state in states]))
    return int(connection.execute(query).scalar_one())


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
    counted = [state.value for state in COUNTED]
    if campaign.state is CampaignState.CANCELLED:
        counted.append(ParticipantState.BID.value)
    if settings.server.fee_after_withdrawal:
        counted.append(ParticipantState.WITHDRAWN.value)
    fee = case((_C.bid_at.is_not(None) & _C.state.in_(counted), literal(settings.fee_minor)), else_=literal(0))
    payment = case(
        (_C.state == ParticipantState.DELIVERED.value, func.coalesce(_C.payment, literal(0))), else_=literal(0)
    )
    return fee + payment


def _participant(row: Row[Any]) -> Participant:
    return Participant(**dict(zip(_COLUMNS, row, strict=False)))  # her columns come first, perhaps others after them


def keep_consent(connection: Connection, campaign_id: str, version: str, document: dict[str, Any]) -> None:
    """Keep a document, unless it is kept already."""
    if consent(connection, campaign_id, version) is None:
        row = {"campaign_id": campaign_id, "version": version, "content": plain_text(document)}
        connection.execute(insert(consents), row)


def consent(connection: Connection, campaign_id: str, version: str) -> dict[str, Any] | None:
    """The document of that version, if somebody agreed to it."""
    query = select(consents.c.content).where(consents.c.campaign_id == campaign_id, consents.c.version == version)
    found = connection.execute(query).scalar_one_or_none()
    return None if found is None else plain_values(found)


def consents_of(connection: Connection, campaign_id: str) -> dict[str, dict[str, Any]]:
    """Every document that somebody agreed to, by its version."""
    query = select(consents.c.version, consents.c.content).where(consents.c.campaign_id == campaign_id)
    found = {row.version: plain_values(row.content) for row in connection.execute(query)}
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SealedPayout:
    """One person's, as it is stored."""

    sealed: bytes
    stated_at: datetime


def put_payout(connection: Connection, participant_id: str, sealed: bytes, at: str) -> None:
    """Store somebody's, in place of an earlier one."""
    remove_payout(connection, participant_id)
    connection.execute(insert(payouts).values(participant_id=participant_id, sealed=sealed, stated_at=at))


def payout(connection: Connection, participant_id: str) -> SealedPayout | None:
    """Somebody's, if she said it."""
    row = connection.execute(select(payouts).where(payouts.c.participant_id == participant_id)).one_or_none()
    return None if row is None else SealedPayout(sealed=row.sealed, stated_at=row.stated_at)


def remove_payout(connection: Connection, participant_id: str) -> bool:
    """Remove somebody's; whether there was one."""
    return connection.execute(delete(payouts).where(payouts.c.participant_id == participant_id)).rowcount > 0


def payouts_of(connection: Connection, campaign_id: str) -> dict[str, bytes]:
    """Everybody's in a campaign, by pseudonym."""
    query = (
        select(payouts.c.participant_id, payouts.c.sealed)
        .join(participants, participants.c.id == payouts.c.participant_id)
        .where(participants.c.campaign_id == campaign_id)
    )
    return {row.participant_id: row.sealed for row in connection.execute(query)}


def remove_payouts(connection: Connection, campaign_id: str) -> int:
    """Remove everybody's in a campaign; how many there were."""
    hers = select(participants.c.id).where(participants.c.campaign_id == campaign_id)
    return connection.execute(delete(payouts).where(payouts.c.participant_id.in_(hers))).rowcount
