"""The tables. Times are UTC as text of fixed width, which sorts; identifiers are random text; money is minor units.

Nothing here yields a person's value or where she is paid: ``participants.delivery`` and ``payouts.sealed`` are
ciphertexts whose keys lie outside the database.
Tokens are stored as SHA-256 of 256 random bits, passwords as argon2id.
"""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import lru_cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    delete,
    insert,
    type_coerce,
    update,
)
from sqlalchemy.types import TypeEngine

from hushbid.common.documents import canonical, parsed
from hushbid.server.model.access import Link
from hushbid.server.model.entities import Campaign, Participant, User
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import AccountRow, JobView

E = TypeVar("E")
TOKEN_BYTES = 32
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Stored(TypeDecorator[Any]):
    """Values of one kind, written and read by two functions; what is written already, and None, stay as they are."""

    impl, cache_ok = Text, True

    def __init__(
        self,
        kind: type[Any],
        write: Callable[[Any], Any],
        read: Callable[[Any], Any],
        store: TypeEngine[Any] | None = None,
    ) -> None:
        super().__init__()
        self.kind, self.write, self.read = kind, write, read
        self.store: TypeEngine[Any] = store or Text()
        self.impl = self.store  # type: ignore[assignment]

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """As it is stored."""
        return self.write(value) if isinstance(value, self.kind) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """As it is used."""
        return None if value is None else self.read(value)


def stamp(moment: datetime) -> str:
    """A time as it is stored: in UTC and of fixed width, so that it sorts."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def plain_text(values: Mapping[str, Any]) -> str:
    """Plain values as they are stored."""
    return canonical(values).decode("ascii")


def plain_values(text: str) -> dict[str, Any]:
    """Stored plain values."""
    return parsed(text.encode("ascii"))


@lru_cache(maxsize=256)
def _settings_of(text: str) -> CampaignSettings:
    """The same object while the text is the same."""
    return CampaignSettings.read(plain_values(text))


_WHOLE, _DOUBLE = BigInteger(), Float(53)
_MOMENT = Stored(datetime, stamp, datetime.fromisoformat)
_TYPES: dict[Any, TypeEngine[Any]] = {
    str: Text(),
    bytes: LargeBinary(),
    int: _WHOLE,
    float: _DOUBLE,
    bool: Stored(bool, int, bool, Integer()),
    datetime: _MOMENT,
    CampaignState: Stored(CampaignState, str, CampaignState),
    ParticipantState: Stored(ParticipantState, str, ParticipantState),
    CampaignSettings: Stored(CampaignSettings, lambda found: plain_text(found.to_dict()), _settings_of),
    tuple[str, ...]: Stored(tuple, ",".join, lambda text: tuple(text.split(",")) if text else ()),
}


def _columns(entity: type[Any], *keys: str, **refers: str) -> list[Column[Any]]:
    """A column for each field of an entity, by its type; those in ``refers`` point to a column of another table."""
    hints, found = get_type_hints(entity), []
    for name in (one.name for one in fields(entity)):
        kind, optional = hints[name], NoneType in get_args(hints[name])
        if optional:
            [kind] = (one for one in get_args(kind) if one is not NoneType)
        points = [ForeignKey(refers[name])] if name in refers else []
        default = "" if kind == tuple[str, ...] else None
        stored_as = _TYPES.get(kind, _TYPES[str])  # a choice between texts is one
        column = Column(name, stored_as, *points, primary_key=name in keys, nullable=optional, server_default=default)
        found.append(column)
    return found


def stored(table: Table) -> list[ColumnElement[Any]]:
    """A table's columns as they are stored, for a copy of all rows."""
    return [
        type_coerce(column, column.type.store).label(column.name) if isinstance(column.type, Stored) else column
        for column in table.columns
    ]


def _campaign() -> Column[str]:
    return Column("campaign_id", Text, ForeignKey("campaigns.id"), primary_key=True, nullable=False)


installation = Table(
    "installation",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

users = Table("users", metadata, *_columns(User, "id"), UniqueConstraint("name"))

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
    "campaigns", metadata, *_columns(Campaign, "id"), Index(None, "state"), Index(None, "created_at", "id")
)

participants = Table(
    "participants",
    metadata,
    *_columns(Participant, "id", campaign_id="campaigns.id", person_id="people.id"),
    UniqueConstraint("campaign_id", "number"),
    UniqueConstraint("campaign_id", "label"),
    UniqueConstraint("campaign_id", "person_id"),
)

consents = Table(
    "consents",
    metadata,
    _campaign(),
    Column("version", Text, primary_key=True),
    Column("content", Text, nullable=False),
)

payouts = Table(
    "payouts",
    metadata,
    Column("participant_id", Text, ForeignKey("participants.id"), primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("stated_at", _MOMENT, nullable=False),
)

links = Table(
    "links",
    metadata,
    *_columns(Link, "token", participant_id="participants.id"),
    Index(None, "participant_id"),
    UniqueConstraint("secret"),
)

privacy_account = Table(  # a campaign may be one that a restored database has forgotten
    "privacy_account", metadata, *_columns(AccountRow, "person", "campaign", person="people.id")
)

events = Table(
    "events",
    metadata,
    _campaign(),
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
    _campaign(),
    Column("content", LargeBinary, nullable=False),
)

releases = Table(
    "releases",
    metadata,
    _campaign(),
    Column("public", Text, nullable=False),
    Column("released_at", _MOMENT, nullable=False),
)

jobs = Table("jobs", metadata, *_columns(JobView, "id", campaign="campaigns.id"), Index(None, "campaign", "started_at"))

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    Column("at", Text, nullable=False),
)


def new_id(kind: str) -> str:
    """A random identifier that starts with one letter for its kind."""
    return f"{kind}{secrets.token_hex(10)}"


def new_token(kind: str) -> str:
    """A random token of 256 bits that tells its kind."""
    return f"hb_{kind}_{secrets.token_urlsafe(TOKEN_BYTES)}"


def hashed(token: str) -> str:
    """What is stored of a token: it has 256 random bits, so a plain hash is as good as any."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def all_of(connection: Connection, entity: type[E], query: Select[Any]) -> list[E]:
    """The rows that a query finds, as entities."""
    return [entity(**row._mapping) for row in connection.execute(query)]


def one_of(connection: Connection, entity: type[E], query: Select[Any]) -> E | None:
    """The one row that a query finds, if there is one."""
    row = connection.execute(query).one_or_none()
    return None if row is None else entity(**row._mapping)


def change(connection: Connection, table: Table, id_: str, **columns: Any) -> None:
    """Set columns of the row with that id."""
    connection.execute(update(table).where(table.c.id == id_).values(**columns))


def add(connection: Connection, table: Table, *rows: Mapping[str, Any]) -> None:
    """Store new rows."""
    if rows:
        connection.execute(insert(table), list(rows))


def remove(connection: Connection, table: Table, **where: Any) -> int:
    """Remove the rows with these values; how many there were."""
    return connection.execute(delete(table).where(*(table.c[name] == value for name, value in where.items()))).rowcount
