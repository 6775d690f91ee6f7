"""People across campaigns, and what each has given up."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from sqlalchemy import Connection, delete, select, tuple_, update

from hushbid.server.model.views import AccountRow
from hushbid.server.store.schema import add, all_of, new_id, people, privacy_account, remove

_AT_ONCE = 500
_C = privacy_account.c


def persons_of(connection: Connection, identities: list[str], at: str) -> dict[str, str]:
    """The person of each identity; a new one where there was none."""
    known: dict[str, str] = {}
    for part in _parts(identities):
        query = select(people.c.identity, people.c.id).where(people.c.identity.in_(part))
        known.update((row.identity, row.id) for row in connection.execute(query))
    # each identity once, in the order given
    fresh = {identity: new_id("h") for identity in dict.fromkeys(identities) if identity not in known}
    add(connection, people, *({"id": one, "identity": identity, "created_at": at} for identity, one in fresh.items()))
    return known | fresh


def identities_of(connection: Connection, persons: Iterable[str]) -> dict[str, str]:
    """The identity of each person."""
    found: dict[str, str] = {}
    for part in _parts(list(persons)):
        query = select(people.c.id, people.c.identity).where(people.c.id.in_(part))
        found.update((row.id, row.identity) for row in connection.execute(query))
    return found


def given_up(connection: Connection, person_ids: list[str]) -> dict[str, Fraction]:
    """What each person has given up, was promised to give up at most, or has reserved; exactly."""
    totals = dict.fromkeys(person_ids, Fraction(0))
    for part in _parts(person_ids):
        for row in connection.execute(select(_C.person, _C.amount).where(_C.person.in_(part))):
            totals[row.person] += Fraction(row.amount)  # no rounding: the cap is compared with exactly this
    return totals


def put(
    connection: Connection, campaign_id: str, amounts: Mapping[str, float], *, kind: str, title: str, at: str
) -> None:
    """Write what people, by their ids, give up in one campaign, in place of what stood there for them."""
    shared = {"campaign": campaign_id, "title": title, "kind": kind, "at": at}
    for part in _parts(list(amounts)):
        connection.execute(delete(privacy_account).where(_C.campaign == campaign_id, _C.person.in_(part)))
        add(connection, privacy_account, *({**shared, "person": one, "amount": amounts[one]} for one in part))


def free(connection: Connection, campaign_id: str, *, person_id: str | None = None, kind: str | None = None) -> None:
    """Forget what is written for a campaign, or for one person in it, or entries of one kind."""
    where = {"campaign": campaign_id, "person": person_id, "kind": kind}
    remove(connection, privacy_account, **{name: value for name, value in where.items() if value is not None})


def settle(connection: Connection, campaign_id: str, person_id: str, *, kind: str, amount: float, at: str) -> None:
    """Replace what is written for one person in a campaign, if anything is."""
    query = update(privacy_account).where(_C.campaign == campaign_id, _C.person == person_id)
    connection.execute(query.values(kind=kind, amount=amount, at=at))


def of_person(connection: Connection, person_id: str) -> list[AccountRow]:
    """Everything one person gave up, oldest first."""
    query = select(privacy_account).where(_C.person == person_id).order_by(_C.at, _C.campaign)
    return all_of(connection, AccountRow, query)


def listed(connection: Connection, *, after: tuple[str, str] | None, limit: int) -> list[AccountRow]:
    """The whole privacy account by person and campaign, after one of its rows."""
    query = select(privacy_account).order_by(_C.person, _C.campaign).limit(limit)
    if after is not None:
        query = query.where(tuple_(_C.person, _C.campaign) > after)
    return all_of(connection, AccountRow, query)


def campaigns_known(connection: Connection) -> set[str]:
    """The campaigns that the privacy account knows."""
    return set(connection.execute(select(_C.campaign).distinct()).scalars())


def _parts(whole: list[str]) -> Iterator[list[str]]:
    return (whole[start : start + _AT_ONCE] for start in range(0, len(whole), _AT_ONCE))
