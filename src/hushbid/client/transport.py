"""Asking a server over HTTP, and asking again if the answer got lost.

Every call may be repeated without harm: reading changes nothing, PUT says what is to be so, and POST carries a key by
which the server recognises that it has done this already, unless saying so twice means no more than once. So a broken
connection or a server that is just starting is met with patience: a few attempts, with growing pauses, and then one
sentence.
"""

import asyncio
import random
import ssl
import time
from collections.abc import Awaitable, Callable
from functools import cache
from types import ModuleType, TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hushbid.client.calls import PREFIX, Call, Conversation, Work, answer, busy
from hushbid.errors import InputError, MissingExtra, ServerFailed

T = TypeVar("T")
ATTEMPTS = 8
"""Enough for a server to start again: pauses of ten seconds in all."""

TIMEOUT = 30.0
CONNECTIONS = 100
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Transport:
    """Calls one server and waits for its answers; the connection is kept open between them."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        attempts: int = ATTEMPTS,
        timeout: float = TIMEOUT,
        sleep: Callable[[float], None] = time.sleep,
        network: Any = None,
    ) -> None:
        """``network`` stands in for the real one: an httpx transport, for tests."""
        self.url = _checked_url(url)
        self.headers = _bearer(token)
        self._attempts = _checked_attempts(attempts)
        self._sleep = sleep
        self._client = _httpx().Client(
            base_url=self.url + PREFIX, timeout=timeout, verify=_trust(self.url), transport=network
        )

    def run(self, conversation: Conversation[T]) -> T:
        """Hold a conversation to its end."""
        try:
            asked = next(conversation)
            while True:
                asked = conversation.send(asked.do() if isinstance(asked, Work) else self._answer(asked))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def pause(self, seconds: float) -> None:
        """Wait a little before asking how far something is."""
        self._sleep(seconds)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> "Transport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, call: Call) -> Any:
        httpx = _httpx()
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            try:
                response = self._client.request(call.method, call.path, **_parts(call, self.headers))
            except httpx.TransportError as problem:
                if last:
                    raise _unreachable(self.url, problem) from None
                self._sleep(_pause(attempt))
                continue
            # an answer, unless the server asks for patience
            asked = _seconds(response.headers.get("retry-after"))
            if last or not busy(response.status_code):
                return answer(call, response.status_code, response.content, attempt=attempt, retry_after=asked)
            self._sleep(_pause(attempt, asked))
        raise AssertionError("the last attempt answers or raises")


class AsyncTransport:
    """A `Transport` for programs that hold many conversations at once, over shared connections."""

    def __init__(
        self,
        url: str,
        *,
        attempts: int = ATTEMPTS,
        timeout: float = TIMEOUT,
        connections: int = CONNECTIONS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        network: Any = None,
    ) -> None:
        """``connections`` are open at most at once; further conversations wait for one, however long."""
        httpx = _httpx()
        self.url = _checked_url(url)
        self.requests = 0
        """How many were sent so far, repetitions included."""

        self._attempts = _checked_attempts(attempts)
        self._sleep = sleep
        # A client for each connection: one client with many spends its time on looking for a free one.
        self._clients = [
            httpx.AsyncClient(
                base_url=self.url + PREFIX,
                timeout=timeout,
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
                verify=_trust(self.url),
                transport=network,
            )
            for _ in range(connections)
        ]
        self._idle: asyncio.LifoQueue[Any] = asyncio.LifoQueue()
        for client in self._clients:
            self._idle.put_nowait(client)

    async def run(self, conversation: Conversation[T]) -> T:
        """Hold a conversation to its end."""
        try:
            asked = next(conversation)
            while True:
                if isinstance(asked, Work):
                    asked = conversation.send(await asyncio.to_thread(asked.do))
                else:
                    asked = conversation.send(await self._answer(asked))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            await client.aclose()

    async def __aenter__(self) -> "AsyncTransport":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _answer(self, call: Call) -> Any:
        httpx = _httpx()
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts
            # held for the request only, not for the pause after it
            client = await self._idle.get()
            self.requests += 1
            try:
                response = await client.request(call.method, call.path, **_parts(call, {}))
            except httpx.TransportError as problem:
                if last:
                    raise _unreachable(self.url, problem) from None
                response = None
            finally:
                self._idle.put_nowait(client)
            if response is None:
                await self._sleep(_pause(attempt))
                continue
            asked = _seconds(response.headers.get("retry-after"))
            if last or not busy(response.status_code):
                return answer(call, response.status_code, response.content, attempt=attempt, retry_after=asked)
            await self._sleep(_pause(attempt, asked))
        raise AssertionError("the last attempt answers or raises")


def _parts(call: Call, headers: dict[str, str]) -> dict[str, Any]:
    """A call in httpx's words."""
    named = headers if call.bearer is None else {**headers, **_bearer(call.bearer)}
    # the same key at every attempt
    if call.key is not None:
        named = {**named, "Idempotency-Key": call.key}
    parts: dict[str, Any] = {"headers": named, "params": dict(call.query) or None}
    if call.content is not None:
        parts["json"] = call.content
    return parts


def _seconds(header: str | None) -> float | None:
    """How long the server asks to wait; a date, or anything else, is not understood."""
    return float(header) if header is not None and header.isascii() and header.isdigit() else None


def _pause(attempt: int, asked: float | None = None) -> float:
    """How long to wait after a failed attempt: what the server asks for, or longer each time and never in step."""
    if asked is not None:
        return min(asked, _LONGEST_PAUSE)
    # at random, so that clients that failed together do not come back together
    return min(_FIRST_PAUSE * 2.0 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)


def _unreachable(url: str, problem: Exception) -> ServerFailed:
    return ServerFailed(f"The server {url} cannot be reached: {type(problem).__name__}.")


def _bearer(token: str | None) -> dict[str, str]:
    if token is None:
        return {}
    if not (token and token.isascii() and token.isprintable() and " " not in token):
        raise InputError("A token must be printable ASCII without spaces.")
    return {"Authorization": f"Bearer {token}"}


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment or parts.username:
        raise InputError("A server's address must look like https://example.org, without user, query or fragment.")
    return url.rstrip("/")


def _checked_attempts(attempts: int) -> int:
    if type(attempts) is not int or attempts < 1:
        raise InputError(f"attempts must be a positive integer, got {attempts!r}.", field="attempts")
    return attempts


def _trust(url: str) -> ssl.SSLContext:
    """Whose certificates to believe. To read those of the whole world takes a while, and http:// asks for none."""
    return _everybody_known() if urlsplit(url).scheme == "https" else _nobody()


@cache
def _everybody_known() -> ssl.SSLContext:
    known: ssl.SSLContext = _httpx().create_ssl_context()
    return known


@cache
def _nobody() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _httpx() -> ModuleType:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("Talking to a server needs httpx: pip install '.[client]' in a checkout.") from None
    return httpx
