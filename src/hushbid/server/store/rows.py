"""Between columns and plain values."""

import hashlib
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from hushbid.documents import canonical, parsed
from hushbid.server.domain.settings import CampaignSettings

TOKEN_BYTES = 32


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
