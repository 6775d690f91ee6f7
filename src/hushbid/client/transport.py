"""Ask a server over HTTP, and ask again if the answer got lost.

Every request may be repeated without harm: GET changes nothing, PUT states what is to be so, and what must happen once
carries a key by which the server recognises a repetition. So a broken connection, or a server that is just
starting, is met with a few attempts and growing pauses, and then with one sentence.

Threads may share a `Transport`; each uses a connection of its own while it waits for an answer.
"""

import json
import random
import re
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from hushbid.client.calls import CALLS
from hushbid.client.refusals import ConflictAfterRetry, refusal, strange
from hushbid.errors import Conflict, InputError, MissingExtra, ServerFailed

PREFIX = "/api/v1"
ATTEMPTS = 8
"""Enough for a server to start again: pauses of ten seconds in all."""

TIMEOUT = 30.0
_BUSY = frozenset({429, 502, 503, 504})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Transport:
    """Asks one server and waits for its answers; connections stay open between requests."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        attempts: int = ATTEMPTS,
        timeout: float = TIMEOUT,
        sleep: Callable[[float], object] = time.sleep,
        network: Any = None,
    ) -> None:
        """``token`` says who asks; ``network`` is an httpx transport that replaces the real one in tests."""
        if type(attempts) is not int or attempts < 1:
            raise InputError(f"attempts must be a positive integer, got {attempts!r}.", field="attempts")
        httpx = _httpx()
        self.url = _checked_url(url)
        self.headers = _bearer(token)
        self.requests = 0
        """How many were sent so far, repetitions included."""

        self.pause = sleep
        self._attempts = attempts
        self._lost = httpx.TransportError
        self._lock = threading.Lock()
        self._client = httpx.Client(
            base_url=self.url + PREFIX,
            timeout=timeout,
            # as many connections as threads ask at the same time
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            verify=_trust(urlsplit(self.url).scheme),
            transport=network,
        )

    def ask(
        self,
        name: str,
        *identifiers: str,
        content: Mapping[str, Any] | None = None,
        bearer: str | None = None,
        query: Mapping[str, object] | None = None,
        expect: str = "json",
    ) -> Any:
        """Send the request of that name (`hushbid.client.calls`) and return its answer, as ``"json"`` or ``"text"``; a
        refusal is raised.

        ``identifiers`` stand in its path; no secret ever does. ``bearer`` names who asks, if not the transport's token.
        All attempts at what must not happen twice carry the same key.
        """
        method, path, once = CALLS[name]
        for place, identifier in zip(re.findall(r"\{(\w+)\}", path), identifiers, strict=True):
            path = path.replace(f"{{{place}}}", _checked_identifier(identifier, place))
        headers = self.headers if bearer is None else {**self.headers, **_bearer(bearer)}
        if once:
            headers = {**headers, "Idempotency-Key": secrets.token_hex(16)}
        parts: dict[str, Any] = {"headers": headers}
        if query:
            parts["params"] = {name: str(value) for name, value in query.items() if value is not None}
        if content is not None:
            parts["json"] = content
        response, attempt = self._patiently(method, path, parts)
        return _answer(response, attempt, expect)

    def close(self) -> None:
        """Close all connections; a request that is waiting for another attempt fails."""
        self._client.close()

    def __enter__(self) -> "Transport":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _patiently(self, method: str, path: str, parts: Mapping[str, Any]) -> tuple[Any, int]:
        """Return a response and which attempt it answers."""
        for attempt in range(1, self._attempts + 1):
            last, asked = attempt == self._attempts, None
            with self._lock:
                self.requests += 1
            try:
                response = self._client.request(method, path, **parts)
            except self._lost as problem:
                if last:
                    raise ServerFailed(f"The server {self.url} cannot be reached: {type(problem).__name__}.") from None
            else:
                if last or response.status_code not in _BUSY:
                    return response, attempt
                asked = _retry_after(response)
            self.pause(_pause(attempt, asked))
        raise AssertionError("the last attempt answers or raises")


def _answer(response: Any, attempt: int, expect: str) -> Any:
    """Return what a response says, or raise what it refuses."""
    status, content = response.status_code, response.content
    if status >= 400:
        problem = refusal(status, content)
        # an earlier attempt may have been carried out
        if attempt > 1 and type(problem) is Conflict:
            problem = ConflictAfterRetry(str(problem), field=problem.field, row=problem.row)
        problem.retry_after = _retry_after(response)
        raise problem
    if status >= 300:
        raise ServerFailed(f"The server at the other end redirects (status {status}); give its own address.")
    if expect == "text":
        return content.decode("utf-8", errors="replace")
    try:
        return json.loads(content) if content else {}
    except ValueError:
        raise strange("The answer is not JSON") from None


def _retry_after(response: Any) -> float | None:
    """Return how many seconds the server asks to wait; None for a date, or anything else."""
    header = response.headers.get("retry-after")
    return float(header) if header is not None and header.isascii() and header.isdigit() else None


def _pause(attempt: int, asked: float | None) -> float:
    """Return how long to wait after a failed attempt: as the server asks, or longer each time."""
    if asked is not None:
        return min(asked, _LONGEST_PAUSE)
    # at random, so that clients that failed together do not come back together
    return min(_FIRST_PAUSE * 2.0 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)


def _checked_identifier(name: str, whose: str) -> str:
    """Require an identifier that can be part of a path as it is."""
    if not (isinstance(name, str) and name and name.isascii() and name.replace("-", "").replace("_", "").isalnum()):
        raise InputError(f"A {whose}'s identifier holds letters, digits, - and _ only.")
    return name


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


@cache
def _trust(scheme: str) -> ssl.SSLContext:
    """Return whose certificates to believe; http:// needs none, and reading the usual ones takes a while."""
    context: ssl.SSLContext = (
        _httpx().create_ssl_context() if scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    return context


def _httpx() -> ModuleType:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("Talking to a server needs httpx: pip install '.[client]' in a checkout.") from None
    return httpx
