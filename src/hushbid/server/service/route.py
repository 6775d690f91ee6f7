"""How a use case is reached over HTTP: its address, who may ask for it, and what is sent and received.

A `Route` stands with its use case in `hushbid.server.service.registry`. The names in its path are the use case's first
arguments after the caller, the fields of its body and its query are arguments by name. The HTTP interface, its
description, the table of roles and the calls of `hushbid.client` are made from it.
"""

import re
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

Role = Literal["anybody", "staff", "analyst", "link", "secret"]
"""Who may ask: everybody; analysts and auditors; analysts; a participant with an unused link, or with a secret."""


@dataclass(frozen=True, slots=True)
class Route:
    """An address of the HTTP interface."""

    address: str
    """A method and a path below the interface's prefix: ``POST /campaigns/{campaign}/copy``."""

    summary: str
    """A title for the interface's description, whose text is the use case's docstring."""

    _: KW_ONLY
    by: Role
    """Who may ask."""

    body: type[Any] | None = None
    """What a request holds: an argument of that very class, or a `hushbid.server.service.bodies.Form` of arguments. It
    may be left out if it needs nothing."""

    query: tuple[str, ...] = ()
    """Arguments that stand in the address behind a question mark."""

    status: int = 200
    """Of an answer."""

    answers: Any = None
    """What an answer holds, if not what the use case returns. A form with one field wraps that."""

    computes: bool = False
    """Whether it computes for seconds, so that it waits for its turn."""

    repeatable: bool = False
    """Whether a change needs no key, because making it again changes nothing."""

    @property
    def method(self) -> str:
        """Return the method."""
        return self.address.partition(" ")[0]

    @property
    def path(self) -> str:
        """Return the path."""
        return self.address.partition(" ")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names in the path, in order."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))
