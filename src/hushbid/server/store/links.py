"""Links, and the secrets they were exchanged for."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, or_, select, update

from hushbid.server.model.access import EndedBy, Link, LinkInvalid
from hushbid.server.store.schema import hashed, links, participants

_C = links.c


def add(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Store new links, made by `row`."""
    connection.execute(insert(links), rows)


def row(token: str, participant_id: str, *, made_by: str, at: str, reads_only: bool = False) -> dict[str, Any]:
    """A link that nobody has used, as it is stored."""
    return {
        "token": hashed(token),
        "participant_id": participant_id,
        "made_by": made_by,
        "reads_only": reads_only,
        "made_at": at,
    }


def of_token(connection: Connection, token: str) -> Link:
    """The link with that token."""
    found = connection.execute(select(links).where(_C.token == hashed(token))).one_or_none()
    if found is None:
        raise LinkInvalid("unknown")
    return link_of(found)


def of_participant(connection: Connection, participant_id: str) -> list[Link]:
    """All links of one person, in the order in which they were made."""
    query = select(links).where(_C.participant_id == participant_id).order_by(_C.made_at, _C.token)
    return [link_of(found) for found in connection.execute(query)]


def is_secret(connection: Connection, secret: str) -> bool:
    """Whether some link was exchanged for that secret, given by its hash."""
    return connection.execute(select(_C.token).where(_C.secret == secret)).first() is not None


def use(connection: Connection, link: Link, secret: str, at: str) -> None:
    """Exchange a link for a secret, given by its hash."""
    connection.execute(update(links).where(_C.token == link.token).values(secret=secret, used_at=at))


def end(connection: Connection, participant_id: str, at: str, *, by: EndedBy, but: str | None = None) -> int:
    """End all links of one person, with the secrets they were exchanged for, except one secret's; how many."""
    query = update(links).where(_C.participant_id == participant_id, _C.ended_at.is_(None))
    if but is not None:
        query = query.where(_other_than(but))
    return connection.execute(query.values(ended_at=at, ended_by=by)).rowcount


def end_one(connection: Connection, secret: str, at: str, *, by: EndedBy) -> None:
    """End one secret, given by its hash."""
    connection.execute(update(links).where(_C.secret == secret).values(ended_at=at, ended_by=by))


def end_unused(connection: Connection, participant_id: str, at: str, *, made_by: str, by: EndedBy) -> None:
    """End the links of one person that nobody has used."""
    query = update(links).where(
        _C.participant_id == participant_id, _C.made_by == made_by, _C.secret.is_(None), _C.ended_at.is_(None)
    )
    connection.execute(query.values(ended_at=at, ended_by=by))


def let_only_read(connection: Connection, participant_id: str, *, but: str) -> None:
    """Let all links and secrets of one person change nothing from now on, except one secret, given by its hash."""
    query = update(links).where(_C.participant_id == participant_id, _C.reads_only == 0, _other_than(but))
    connection.execute(query.values(reads_only=1))


def _other_than(secret: str) -> ColumnElement[bool]:
    return or_(_C.secret.is_(None), _C.secret != secret)


def remove(connection: Connection, participant_id: str) -> None:
    """Remove the links of one person, with the secrets they were exchanged for."""
    connection.execute(delete(links).where(_C.participant_id == participant_id))


def remove_all(connection: Connection, campaign_id: str) -> None:
    """Remove the links of everybody in a campaign."""
    people = select(participants.c.id).where(participants.c.campaign_id == campaign_id)
    connection.execute(delete(links).where(_C.participant_id.in_(people)))


def link_of(found: Row[Any]) -> Link:
    """A link, from a row that has its columns."""
    return Link(**found._mapping)
