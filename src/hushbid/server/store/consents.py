"""The documents that people agreed to, each once for a campaign (`hushbid.server.domain.agreement`)."""

from typing import Any

from sqlalchemy import Connection, insert, select

from hushbid.server.store.schema import consents, plain_text, plain_values


def keep(connection: Connection, campaign_id: str, version: str, document: dict[str, Any]) -> None:
    """Keep a document, unless it is kept already."""
    if get(connection, campaign_id, version) is None:
        row = {"campaign_id": campaign_id, "version": version, "content": plain_text(document)}
        connection.execute(insert(consents), row)


def get(connection: Connection, campaign_id: str, version: str) -> dict[str, Any] | None:
    """The document of that version, if somebody agreed to it."""
    query = select(consents.c.content).where(consents.c.campaign_id == campaign_id, consents.c.version == version)
    found = connection.execute(query).scalar_one_or_none()
    return None if found is None else plain_values(found)


def of_campaign(connection: Connection, campaign_id: str) -> dict[str, dict[str, Any]]:
    """Every document that somebody agreed to, by its version."""
    query = select(consents.c.version, consents.c.content).where(consents.c.campaign_id == campaign_id)
    found = {row.version: plain_values(row.content) for row in connection.execute(query)}
    return dict(sorted(found.items()))
