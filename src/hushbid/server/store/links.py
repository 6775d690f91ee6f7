"""Links, and the secrets they were exchanged for."""

from sqlalchemy import Connection, or_, select, update

from hushbid.server.model.access import EndedBy, Link, LinkInvalid
from hushbid.server.store import schema
from hushbid.server.store.schema import hashed, links

_C = links.c


def add(connection: Connection, people: dict[str, str], *, made_by: str, at: str, reads_only: bool = False) -> None:
    """Store new links that nobody has used, by their tokens: whose each is."""
    shared = {"made_by": made_by, "reads_only": reads_only, "made_at": at}
    schema.add(
        connection, links, *({**shared, "token": hashed(token), "participant_id": who} for token, who in people.items())
    )


def of_token(connection: Connection, token: str) -> Link:
    """The link with that token."""
    found = schema.one_of(connection, Link, select(links).where(_C.token == hashed(token)))
    if found is None:
        raise LinkInvalid("unknown")
    return found


def of_participant(connection: Connection, participant_id: str) -> list[Link]:
    """All links of one person, in the order in which they were made."""
    query = select(links).where(_C.participant_id == participant_id).order_by(_C.made_at, _C.token)
    return schema.all_of(connection, Link, query)


def is_secret(connection: Connection, secret: str) -> bool:
    """Whether some link was exchanged for that secret, given by its hash."""
    return connection.execute(select(_C.token).where(_C.secret == secret)).first() is not None


def use(connection: Connection, link: Link, secret: str, at: str) -> None:
    """Exchange a link for a secret, given by its hash."""
    connection.execute(update(links).where(_C.token == link.token).values(secret=secret, used_at=at))


def end(
    connection: Connection,
    participant_id: str,
    at: str,
    *,
    by: EndedBy,
    but: str | None = None,
    unused_of: str | None = None,
) -> int:
    """End links of one person, with the secrets they were exchanged for; how many.

    ``but`` is a secret that goes on, by its hash; with ``unused_of`` only what that side made and nobody used ends.
    """
    query = update(links).where(_C.participant_id == participant_id, _C.ended_at.is_(None))
    if but is not None:
        query = query.where(or_(_C.secret.is_(None), _C.secret != but))
    if unused_of is not None:
        query = query.where(_C.made_by == unused_of, _C.secret.is_(None))
    return connection.execute(query.values(ended_at=at, ended_by=by)).rowcount


def end_one(connection: Connection, secret: str, at: str, *, by: EndedBy) -> None:
    """End one secret, given by its hash."""
    connection.execute(update(links).where(_C.secret == secret).values(ended_at=at, ended_by=by))


def let_only_read(connection: Connection, participant_id: str, *, but: str) -> None:
    """Let all links and secrets of one person change nothing from now on, except one secret, given by its hash."""
    others = or_(_C.secret.is_(None), _C.secret != but)
    query = update(links).where(_C.participant_id == participant_id, _C.reads_only == 0, others)
    connection.execute(query.values(reads_only=1))


def remove(connection: Connection, participant_id: str) -> None:
    """Remove the links of one person, with the secrets they were exchanged for."""
    schema.remove(connection, links, participant_id=participant_id)
