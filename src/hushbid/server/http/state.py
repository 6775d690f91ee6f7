"""What every handler has at hand: the service, threads to call it in, and the names of cookies."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar

from fastapi import Request

from hushbid.errors import Throttled
from hushbid.server.model.views import Principal
from hushbid.server.service import Service

P = ParamSpec("P")
T = TypeVar("T")
_THREADS = 12  # fewer than the connections that read
_COMPUTATIONS = 2
_MOST_WAITING = 32
COOKIE = "hushbid"
CSRF_HEADER = "X-CSRF-Token"
PREFIX = "/api/v1"
"""Of every endpoint."""


@dataclass(slots=True)
class _Turn:
    """One user's computations: one at a time, so that a second thread is left for others."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    asked: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
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

    _turns: dict[str, _Turn] = field(default_factory=dict)

    @property
    def cookie(self) -> str:
        """The session cookie's name; a browser guarantees that one with the prefix came from this host by https."""
        return f"__Host-{COOKIE}" if self.https else COOKIE

    async def run(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something that waits for the database, without making others wait."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(do, *args, **kwargs))

    async def compute(self, who: Principal, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something that computes for seconds: one at a time for each user, and a few at a time for all."""
        turn = self._turns.setdefault(who.id, _Turn())
        if turn.asked >= _MOST_WAITING:
            raise Throttled("You have asked for too many computations at once: wait for one of them.", retry_after=5.0)
        turn.asked += 1
        try:
            async with turn.lock:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._computations, partial(do, *args, **kwargs))
        finally:
            turn.asked -= 1
            if not turn.asked:
                self._turns.pop(who.id, None)

    def close(self) -> None:
        """Let the threads go when what they do is done."""
        self._threads.shutdown()
        self._computations.shutdown()


def app_of(request: Request) -> AppState:
    """The surroundings of the application that a request came to."""
    found = request.app.state.hushbid
    assert isinstance(found, AppState)
    return found
