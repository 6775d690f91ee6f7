"""What every handler has at hand: the service, threads to call it in, and the names of cookies."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from fastapi import Request

from hushbid.server.service import Service

T = TypeVar("T")
_THREADS = 12  # fewer than the connections that read
_COMPUTATIONS = 2
COOKIE = "hushbid"
PREFIX = "/api/v1"
"""Of every endpoint; each router says it itself, so that the access log can name whole patterns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """One application's surroundings."""

    service: Service
    https: bool
    """Whether people reach the server by https; cookies are then sent over https only."""

    address: str | None = None
    """How people reach the server, such as https://campaign.example.org; None for wherever a request says it went."""

    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS, "hushbid-http"))
    _computations: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_COMPUTATIONS, "hushbid-computation")
    )

    @property
    def cookie(self) -> str:
        """The session cookie's name; a browser guarantees that one with the prefix came from this host by https."""
        return f"__Host-{COOKIE}" if self.https else COOKIE

    async def run(self, do: Callable[[], T]) -> T:
        """Call something that waits for the database, without making others wait."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, do)

    async def compute(self, do: Callable[[], T]) -> T:
        """Call something that computes for seconds, a few at a time."""
        return await asyncio.get_running_loop().run_in_executor(self._computations, do)

    def close(self) -> None:
        """Let the threads go when what they do is done."""
        self._threads.shutdown()
        self._computations.shutdown()


def shell_of(request: Request) -> Shell:
    """The surroundings of the application that a request came to."""
    found = request.app.state.shell
    assert isinstance(found, Shell)
    return found
