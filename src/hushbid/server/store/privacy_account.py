"""People across campaigns, and what each has given up."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from hushbid.server.model.views import AccountRow
from hushbid.server.store.schema import new_id, people, privacy_account

_AT_ONCE = 500


def persons_of(connection: Connection, identities: list[str], at: str) -> dict[str, str]:
    """The person of each identity; somebody new where there was none."""
    known: dict[str, str] = {}
    for start in range(0, len(identities), _AT_ONCE):
        part = identities[start : start + _AT_ONCE]
        query = select(people.c.identity, people.c.id).where(people.c.identity.in_(part))
        known.update((row.identity, row.id) for row in connection.execute(query))
    # each identity once, in the order given
    fresh = [identity for identity in dict.fromkeys(identities) if identity not in known]
    rows = [{"id": new_id("h"), "identity": identity, "created_at": at} for identity in fresh]
    if rows:
        connection.execute(insert(people), rows)
    return known | {row["identity"]: row["id"] for row in rows}


def identities_of(connection: Connection, persons: Iterable[str]) -> dict[str, str]:
    """The identity of each person."""
    wanted = list(persons)
    found: dict[str, str] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        query = select(people.c.id, people.c.identity).where(people.c.id.in_(wanted[start : start + _AT_ONCE]))
        found.update((row.id, row.identity) for row in connection.execute(query))
    return found


def given_up(connection: Connection, person_ids: list[str]) -> dict[str, Fraction]:
    """What each person has given up, was promised to give up at most, or has reserved; exactly."""
    totals = dict.fromkeys(person_ids, Fraction(0))
    for start in range(0, len(person_ids), _AT_ONCE):
        query = select(privacy_account.c.person_id, privacy_account.c.amount).where(
            privacy_account.c.person_id.in_(person_ids[start : start + _AT_ONCE])
        )
        for row in connection.execute(query):
            totals[row.person_id] += Fraction(row.amount)  # no rounding: the cap is compared with exactly this
    return totals


def put(
    connection: Connection, campaign_id: str, amounts: Mapping[str, float], *, kind: str, title: str, at: str
) -> None:
    """Write what people, by their ids, give up in one campaign, in place of what stood there for them."""
    shared = {"campaign_id": campaign_id, "title": title, "kind": kind, "at": at}
    rows = [{**shared, "person_id": person_id, "amount": amount} for person_id, amount in amounts.items()]
    for start in range(0, len(rows), _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        connection.execute(
            delete(privacy_account).where(
                privacy_account.c.campaign_id == campaign_id,
                privacy_account.c.person_id.in_([row["person_id"] for row in part]),
            )
        )
        connection.execute(insert(privacy_account), part)


def free(connection: Connection, campaign_id: str, *, person_id: str | None = None, kind: str | None = None) -> None:
    """Forget what is written for a campaign, or for one person in it, or entries of one kind."""
    query = delete(privacy_account).where(privacy_account.c.campaign_id == campaign_id)
    if person_id is not None:
        query = query.where(privacy_account.c.person_id == person_id)
    if kind is not None:
        query = query.where(privacy_account.c.kind == kind)
    connection.execute(query)


def settle(connection: Connection, campaign_id: str, person_id: str, *, kind: str, amount: float, at: str) -> None:
    """Replace what is written for one person in a campaign, if anything is."""
    query = update(privacy_account).where(
        privacy_account.c.campaign_id == campaign_id, privacy_account.c.person_id == person_id
    )
    connection.execute(query.values(kind=kind, amount=amount, at=at))


def of_person(connection: Connection, person_id: str) -> list[AccountRow]:
    """Everything one person gave up, oldest first."""
    query = (
        select(privacy_account)
        .where(privacy_account.c.person_id == person_id)
        .order_by(privacy_account.c.at, privacy_account.c.campaign_id)
    )
    return [_row(row) for row in connection.execute(query)]


def listed(connection: Connection, *, after: tuple[str, str] | None, limit: int) -> list[AccountRow]:
    """The whole privacy account by person and campaign, after one of its rows."""
    query = select(privacy_account).order_by(privacy_account.c.person_id, privacy_account.c.campaign_id).limit(limit)
    if after is not None:
        person, campaign = after
        query = query.where(
            (privacy_account.c.person_id > person)
            | ((privacy_account.c.person_id == person) & (privacy_account.c.campaign_id > campaign))
        )
    return [_row(row) for row in connection.execute(query)]


def campaigns_known(connection: Connection) -> set[str]:
    """The campaigns that the privacy account knows."""
    return set(connection.execute(select(privacy_account.c.campaign_id).distinct()).scalars())


def _row(row: Row[Any]) -> AccountRow:
    return AccountRow(
        person=row.person_id,
        campaign=row.campaign_id,
        title=row.title,
        kind=row.kind,
        amount=row.amount,
        at=row.at,
    )
