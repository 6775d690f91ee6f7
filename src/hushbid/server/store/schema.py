"""The tables. Times are UTC as text of fixed width, which sorts; identifiers are random text; money is minor units.

Nothing here yields a person's value or where she is paid: ``participants.delivery`` and ``payouts.sealed`` are
ciphertexts whose keys lie outside the database.
Tokens are stored as SHA-256 of 256 random bits, passwords as argon2id.
"""

import hashlib
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    type_coerce,
)

from hushbid.common.documents import canonical, parsed
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.states import CampaignState, ParticipantState

TOKEN_BYTES = 32
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Moment(TypeDecorator[datetime]):
    """A time, stored as UTC text of fixed width, which sorts; given as a time or as such a text."""

    impl, cache_ok = Text, True

    def process_bind_param(self, value: datetime | str | None, dialect: Dialect) -> str | None:
        """As it is stored."""
        return stamp(value) if isinstance(value, datetime) else value

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        """As it is used."""
        return None if value is None else datetime.fromisoformat(value)


class Times(TypeDecorator[tuple[str, ...]]):
    """Times as the log writes them, stored with commas between them."""

    impl, cache_ok = Text, True

    def process_bind_param(self, value: tuple[str, ...] | str | None, dialect: Dialect) -> str | None:
        """As it is stored."""
        return ",".join(value) if isinstance(value, tuple) else value

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[str, ...]:
        """As it is used."""
        return tuple(value.split(",")) if value else ()


class Settings(TypeDecorator[CampaignSettings]):
    """A campaign's settings, stored in their canonical form; the same object while their text is the same."""

    impl, cache_ok = Text, True

    def process_bind_param(self, value: CampaignSettings | str | None, dialect: Dialect) -> str | None:
        """As it is stored."""
        return plain_text(value.to_dict()) if isinstance(value, CampaignSettings) else value

    def process_result_value(self, value: str | None, dialect: Dialect) -> CampaignSettings | None:
        """As it is used."""
        return None if value is None else _settings_of(value)


class Flag(TypeDecorator[bool]):
    """Yes or no, stored as 1 or 0."""

    impl, cache_ok = Integer, True

    def process_bind_param(self, value: bool | int | None, dialect: Dialect) -> int | None:
        """As it is stored."""
        return None if value is None else int(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> bool | None:
        """As it is used."""
        return None if value is None else bool(value)


class State(TypeDecorator[StrEnum]):
    """A state, stored as its name."""

    impl, cache_ok = Text, True

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """As it is stored."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> StrEnum | None:
        """As it is used."""
        return None if value is None else self.kind(value)


def stored(table: Table) -> list[ColumnElement[Any]]:
    """A table's columns as they are stored, for a copy of all rows."""
    return [
        type_coerce(column, column.type.impl_instance).label(column.name)
        if isinstance(column.type, TypeDecorator)
        else column
        for column in table.columns
    ]


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
    Column("state", State(CampaignState), nullable=False),
    Column("stated", Settings),
    Column("typed", Text),
    Column("typed_at", Moment),
    Column("saved_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("opened_at", Moment),
    Column("allocated_at", Moment),
    Column("released_at", Moment),
    Column("closed_at", Moment),
    Column("key_destroyed_at", Moment),
    Column("payouts_destroyed_at", Moment),
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
    Column("stratum", Text),
    Column("state", State(ParticipantState), nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("bid", Float(53)),
    Column("loss_limit", Float(53)),
    Column("bid_at", Moment),
    Column("promised", Float(53)),
    Column("payment", BigInteger),
    Column("delivery", LargeBinary),
    Column("delivery_nonce", Text),
    Column("delivered_at", Moment),
    Column("delivered_loss", Float(53)),
    Column("paid", BigInteger, nullable=False),
    Column("paid_at", Moment),
    Column("renewed", Times, nullable=False, server_default=""),
    Column("own_links", Times, nullable=False, server_default=""),
    Column("own_links_used", Times, nullable=False, server_default=""),
    Column("agreed_at", Text),
    Column("agreed_version", Text),
    Column("agreed_language", Text),
    UniqueConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "label"),
    UniqueConstraint("campaign_id", "person_id"),
)

consents = Table(
    "consents",
    metadata,
    _campaign(key=True),
    Column("version", Text, primary_key=True),
    Column("content", Text, nullable=False),
)

payouts = Table(
    "payouts",
    metadata,
    Column("participant_id", Text, ForeignKey("participants.id"), primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("stated_at", Moment, nullable=False),
)

links = Table(
    "links",
    metadata,
    Column("token", Text, primary_key=True),
    Column("participant_id", Text, ForeignKey("participants.id"), nullable=False, index=True),
    Column("made_by", Text, nullable=False),
    Column("reads_only", Flag, nullable=False),
    Column("made_at", Moment, nullable=False),
    Column("used_at", Moment),
    Column("secret", Text, unique=True),
    Column("ended_at", Moment),
    Column("ended_by", Text),
)

privacy_account = Table(
    "privacy_account",
    metadata,
    Column("person_id", Text, ForeignKey("people.id"), primary_key=True),
    Column("campaign_id", Text, primary_key=True),  # may be one that a restored database has forgotten
    Column("title", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("amount", Float(53), nullable=False),
    Column("at", Moment, nullable=False),
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
    Column("released_at", Moment, nullable=False),
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
    Column("field", Text),
    Column("started_at", Moment, nullable=False),
    Column("finished_at", Moment),
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


def sure_moment(text: str) -> datetime:
    """A stored time that is always there."""
    return datetime.fromisoformat(text)


def plain_text(values: Mapping[str, Any]) -> str:
    """Plain values as they are stored."""
    return canonical(values).decode("ascii")


def plain_values(text: str) -> dict[str, Any]:
    """Stored plain values."""
    return parsed(text.encode("ascii"))


def new_id(kind: str) -> str:
    """A random identifier that starts with one letter for its kind."""
    return f"{kind}{secrets.token_hex(10)}"


def new_token(kind: str) -> str:
    """A random token of 256 bits that tells its kind."""
    return f"hb_{kind}_{secrets.token_urlsafe(TOKEN_BYTES)}"


def hashed(token: str) -> str:
    """What is stored of a token: it has 256 random bits, so a plain hash is as good as any."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=256)
def _settings_of(text: str) -> CampaignSettings:
    return CampaignSettings.read(plain_values(text))
