"""What an operation works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from sqlalchemy import Connection

from hushbid.campaign.domain.entities import Campaign
from hushbid.campaign.store.rows import stamp
from hushbid.record.events import Head

Clock = Callable[[], datetime]


@dataclass
class Memory:
    """What the operations of one transaction have read and know to be still true."""

    campaigns: dict[str, Campaign] = field(default_factory=dict)
    heads: dict[str, Head] = field(default_factory=dict)

    def clear(self) -> None:
        """Know nothing."""
        self.campaigns.clear()
        self.heads.clear()


@dataclass
class Transaction:
    """The connection, and one moment that is now for all of an operation."""

    connection: Connection
    now: datetime
    memory: Memory = field(default_factory=Memory)
    wrote: bool = False
    """Whether an operation that checks first has begun to write."""

    @cached_property
    def at(self) -> str:
        """Now, as it is stored."""
        return stamp(self.now)

    @property
    def writing(self) -> Connection:
        """The connection, for an operation that checks everything first and then writes."""
        self.wrote = True
        return self.connection
