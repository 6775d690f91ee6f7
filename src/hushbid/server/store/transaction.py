"""What an operation works with.

Operations of one transaction share a `Memory`: what they have read and know to be still true, and changes that are
written together. The writer writes them out after an operation that runs in a savepoint, before it, and before the
commit; so the frequent operations, of which many run in a row, cost a few statements for all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Executable

from hushbid.receipts.log import Head
from hushbid.server.domain.entities import Campaign, Participant
from hushbid.server.store.rows import stamp

Clock = Callable[[], datetime]


@dataclass
class Memory:
    """What the operations of one transaction have read and know to be still true, and what is still to be written."""

    campaigns: dict[str, Campaign] = field(default_factory=dict)
    participants: dict[str, Participant] = field(default_factory=dict)
    """By their id."""

    holders: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """By the hash of a secret: whose it is, and whether it only reads."""

    heads: dict[str, Head] = field(default_factory=dict)
    """The end of each campaign's chain of events."""

    _unwritten: dict[Executable, list[dict[str, Any]]] = field(default_factory=dict)

    def later(self, statement: Executable, row: dict[str, Any]) -> None:
        """Run a statement for this row, after the rows it was given before, together with them."""
        self._unwritten.setdefault(statement, []).append(row)

    def write(self, connection: Connection) -> None:
        """Write everything that is still to be written."""
        # in the order in which statements came first
        for statement, rows in self._unwritten.items():
            connection.execute(statement, rows)
        self._unwritten.clear()

    def forget(self) -> None:
        """Know nothing."""
        self.campaigns.clear()
        self.participants.clear()
        self.holders.clear()
        self.heads.clear()
        self._unwritten.clear()


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
