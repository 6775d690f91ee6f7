"""The hash chain of each campaign (`hushbid.receipts.log`)."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select

from hushbid.receipts.log import Event, Head, next_event
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import events, plain_text, plain_values

_HEADS = select(events.c.number, events.c.at, events.c.hash)
_LAST = _HEADS.where(events.c.campaign_id == bindparam("campaign_id")).order_by(events.c.number.desc()).limit(1)
_ADD = insert(events)
_LOST = "answers-lost"


def append(tx: Transaction, campaign_id: str, kind: str, body: Mapping[str, Any]) -> Head:
    """Append an event to a campaign's chain, as `next_event` continues it."""
    head = tx.memory.heads.get(campaign_id) or last(tx.connection, campaign_id)
    event = next_event(campaign_id, head, at=tx.now, kind=kind, body=body)
    tx.memory.later(
        _ADD,
        {
            "campaign_id": campaign_id,
            "number": event.number,
            "at": event.at,
            "kind": kind,
            "body": plain_text(body),
            "participant_id": body.get("participant"),
            "previous": event.previous,
            "hash": event.hash,
        },
    )
    tx.memory.heads[campaign_id] = event.head  # not written yet, but what the next one continues
    return event.head


def last(connection: Connection, campaign_id: str) -> Head | None:
    """The end of a campaign's chain."""
    row = connection.execute(_LAST, {"campaign_id": campaign_id}).one_or_none()
    return None if row is None else Head(**row._mapping)


def head_at(connection: Connection, campaign_id: str, number: int) -> Head:
    """The chain up to an event."""
    query = _HEADS.where(events.c.campaign_id == campaign_id, events.c.number == number)
    return Head(**connection.execute(query).one()._mapping)


def listed(connection: Connection, campaign_id: str, *, after: int, limit: int | None) -> list[Event]:
    """Events in order, after a number."""
    query = select(events).where(events.c.campaign_id == campaign_id, events.c.number > after)
    return [_event(row) for row in connection.execute(query.order_by(events.c.number).limit(limit))]


def about(connection: Connection, participant_id: str) -> list[Event]:
    """The events that are about one participant."""
    query = select(events).where(events.c.participant_id == participant_id).order_by(events.c.number)
    return [_event(row) for row in connection.execute(query)]


def gave_data(connection: Connection, participant_id: str) -> bool:
    """Whether somebody's data came in, if with her price, and were not lost after that."""
    told = [event for event in about(connection, participant_id) if event.kind == _LOST or "sealed" in event.body]
    return bool(told) and told[-1].kind != _LOST


def ever_invited(tx: Transaction, campaign_id: str) -> int:
    """How many people were ever invited to a campaign, whether they are still on its list or not."""
    tx.memory.write(tx.connection)  # what is read next must see it
    query = select(events.c.body).where(events.c.campaign_id == campaign_id, events.c.kind == "invited")
    return sum(int(plain_values(body)["people"]) for body in tx.connection.execute(query).scalars())


def _event(row: Row[Any]) -> Event:
    known = {name: row._mapping[name] for name in ("number", "at", "kind", "previous", "hash")}
    return Event(campaign=row.campaign_id, body=plain_values(row.body), **known)
