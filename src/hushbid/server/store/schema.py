"""The tables. Times are UTC as text of fixed width, which sorts; identifiers are random text; money is minor units.

Nothing here yields a person's value: ``participants.delivery`` is a ciphertext whose key lies outside the database.
Tokens are stored as SHA-256 of 256 random bits, passwords as argon2id.
"""

import hashlib
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from hushbid.documents import canonical, parsed
from hushbid.server.domain.settings import CampaignSettings

TOKEN_BYTES = 32
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _campaign(*, key: bool = False) -> Column[str]:
    return Column("campaign_id", Text, ForeignKey("campaigns.id"), primary_key=key, nullable=False)


installation = Table(
    "installation",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("password", Text, nullable=False),
    Column("created_at", Text, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token", Text, primary_key=True),
    Column("user_id", Text, ForeignKey("users.id"), nullable=False),
    Column("csrf", Text, nullable=False),
    Column("expires_at", Text, nullable=False),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("token", Text, primary_key=True),
    Column("user_id", Text, ForeignKey("users.id"), nullable=False),
    Column("label", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    UniqueConstraint("user_id", "label"),
)

login_failures = Table(
    "login_failures",
    metadata,
    Column("subject", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("blocked_until", Text, nullable=False),
)

people = Table(
    "people",
    metadata,
    Column("id", Text, primary_key=True),
    Column("identity", Text, nullable=False, unique=True),
    Column("created_at", Text, nullable=False),
)

campaigns = Table(
    "campaigns",
    metadata,
    Column("id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("opened_at", Text),
    Column("allocated_at", Text),
    Column("released_at", Text),
    Column("closed_at", Text),
    Column("key_destroyed_at", Text),
    Column("spending", Text),
    Column("menus", Text),
    Column("total_payment", BigInteger),
    Column("reason", Text),
    Column("root", Text),
    Column("tree_size", Integer),
    Column("root_event", Integer),
    Index(None, "state"),
    Index(None, "created_at", "id"),
)

participants = Table(
    "participants",
    metadata,
    Column("id", Text, primary_key=True),
    _campaign(),
    Column("number", Integer, nullable=False),
    Column("label", Text, nullable=False),
    Column("person_id", Text, ForeignKey("people.id")),
    Column("group_name", Text),
    Column("state", Text, nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("report", Float(53)),
    Column("reported_at", Text),
    Column("promised", Float(53)),
    Column("payment", BigInteger),
    Column("delivery", LargeBinary),
    Column("delivery_nonce", Text),
    Column("delivered_at", Text),
    Column("delivered_loss", Float(53)),
    Column("paid", BigInteger, nullable=False),
    Column("paid_at", Text),
    Column("renewed", Text, nullable=False, server_default=""),
    Column("own_links", Text, nullable=False, server_default=""),
    Column("own_links_used", Text, nullable=False, server_default=""),
    UniqueConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "label"),
    UniqueConstraint("campaign_id", "person_id"),
)

links = Table(
    "links",
    metadata,
    Column("token", Text, primary_key=True),
    Column("participant_id", Text, ForeignKey("participants.id"), nullable=False, index=True),
    Column("made_by", Text, nullable=False),
    Column("reads_only", Integer, nullable=False),
    Column("made_at", Text, nullable=False),
    Column("used_at", Text),
    Column("secret", Text, unique=True),
    Column("ended_at", Text),
    Column("ended_by", Text),
)

ledger = Table(
    "ledger",
    metadata,
    Column("person_id", Text, ForeignKey("people.id"), primary_key=True),
    Column("campaign_id", Text, primary_key=True),  # may be one that a restored database has forgotten
    Column("title", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("amount", Float(53), nullable=False),
    Column("at", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    _campaign(key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("participant_id", Text, index=True),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

records = Table(
    "records",
    metadata,
    _campaign(key=True),
    Column("content", LargeBinary, nullable=False),
)

releases = Table(
    "releases",
    metadata,
    _campaign(key=True),
    Column("public", Text, nullable=False),
    Column("released_at", Text, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Text, primary_key=True),
    _campaign(),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("problem", Text),
    Column("started_at", Text, nullable=False),
    Column("finished_at", Text),
    Index(None, "campaign_id", "started_at"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Column("at", Text, nullable=False),
)


# -- between columns and plain values ----------------------------------------------------------------------------------


def stamp(moment: datetime) -> str:
    """A time as it is stored."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def moment(text: str | None) -> datetime | None:
    """A stored time, if there is one."""
    return None if text is None else datetime.fromisoformat(text)


def sure_moment(text: str) -> datetime:
    """A stored time that is always there."""
    return datetime.fromisoformat(text)


def plain_text(values: Mapping[str, Any]) -> str:
    """Plain values as they are stored."""
    return canonical(values).decode("ascii")


def plain_values(text: str) -> dict[str, Any]:
    """Stored plain values."""
    return parsed(text.encode("ascii"))


@lru_cache(maxsize=256)
def settings_of(text: str) -> CampaignSettings:
    """Stored settings; they are the same object while their text is the same."""
    return CampaignSettings.from_dict(plain_values(text))


def new_id(kind: str) -> str:
    """A random identifier that starts with one letter for its kind."""
    return f"{kind}{secrets.token_hex(10)}"


def new_token(kind: str) -> str:
    """A random token of 256 bits that tells its kind."""
    return f"hb_{kind}_{secrets.token_urlsafe(TOKEN_BYTES)}"


def hashed(token: str) -> str:
    """What is stored of a token: it has 256 random bits, so a plain hash is as good as any."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
