"""What every handler has at hand: the service, threads to call it in, and the names of cookies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync
from fastapi import Request

from hushbid.campaign.service import Service

T = TypeVar("T")
_THREADS = 12  # fewer than the connections that read
_COMPUTATIONS = 2
COOKIE = "hushbid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """One application's surroundings."""

    service: Service
    https: bool
    """Whether people reach the server by https; cookies are then sent over https only."""

    _threads: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_THREADS))
    _computations: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_COMPUTATIONS))

    @property
    def cookie(self) -> str:
        """The session cookie's name; a browser guarantees that one with the prefix came from this host by https."""
        return f"__Host-{COOKIE}" if self.https else COOKIE

    async def run(self, do: Callable[[], T]) -> T:
        """Call something that waits for the database, without making others wait."""
        return await run_sync(do, limiter=self._threads)

    async def compute(self, do: Callable[[], T]) -> T:
        """Call something that computes for seconds, a few at a time."""
        return await run_sync(do, limiter=self._computations)


def shell_of(request: Request) -> Shell:
    """The surroundings of the application that a request came to."""
    found = request.app.state.shell
    assert isinstance(found, Shell)
    return found
