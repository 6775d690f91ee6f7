"""What goes around every request: the host it names, limits on its body, security headers, the access log, faults.

A request must name this server as its host: by localhost, by the address it came in at or was bound to, or by the
address that people know (``hushbid serve --url``). Links begin with it, and another site that lets its name lead here
(DNS rebinding) must not be answered. The port is not compared: tunnels and containers change it.

The access log has one line per request: method, address pattern, status, milliseconds. It has no address of a caller,
no path, no query, no header and no body, so nothing in it belongs to one person. The interval between two lines could
tell who answered when; that is why a proxy in front should not log participants' addresses either.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hushbid.server.faults import log_fault
from hushbid.server.http.problems import Refusal, fault, problem, template

BODY_LIMIT = 64 * 1024
UPLOAD_LIMIT = 32 * 1024 * 1024
_FORM_LIMIT = 512 * 1024
_LARGER = {  # by the end of the path: lists of people, a pilot's file with a draft's form, and that form
    "/participants": UPLOAD_LIMIT,
    "/pilot": 3 * 1024 * 1024,
    **dict.fromkeys(("/edit", "/keep", "/campaigns/preview", "/login"), _FORM_LIMIT),
}
_HERE = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"([\w.-]+|\[[0-9a-f:.%]+\])(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
"""A name or an address, and perhaps a port."""

_ELSEWHERE = "This server does not answer for the host that the request names: start it with --url for that address."
_TOO_LARGE = "The request is larger than {limit} bytes."
_access = logging.getLogger("hushbid.access")

SECURITY_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""On every response, unless a handler set its own."""

_STRICT_TRANSPORT = "max-age=31536000"
AsPage = Callable[[Scope, int], ASGIApp | None]
"""A refusal as a page, if somebody is looking at it in a browser."""


class Middleware:
    """An ASGI application around the real one."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        https: bool,
        hosts: Iterable[str] = (),
        as_page: AsPage = lambda scope, status: None,
    ) -> None:
        self._app = app
        self._hosts = frozenset({*_HERE, *map(host_name, hosts)})
        self._as_page = as_page
        named = {**SECURITY_HEADERS, **({"Strict-Transport-Security": _STRICT_TRANSPORT} if https else {})}
        self._headers = [(name.lower().encode(), value.encode()) for name, value in named.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 0

        async def framed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # a route's own header goes before the usual one
                headers = message["headers"]
                there = {name for name, _ in headers}
                headers.extend(one for one in self._headers if one[0] not in there)
            await send(message)

        body = _Body(scope, receive)
        try:
            # refused by its head: nothing of the body is read
            if not self._is_named(scope):
                await (self._as_page(scope, 421) or problem(421, _ELSEWHERE))(scope, receive, framed)
            elif body.declared > body.limit:
                await (self._as_page(scope, 413) or body.refusal())(scope, receive, framed)
            else:
                await self._app(scope, body.receive, framed)
        except Exception as error:  # noqa: BLE001 - the outermost place; whoever is above would log the message
            # an answer was under way: it can only be cut off
            if status:
                log_fault(error, template(scope))
            else:
                answer = fault(error, template(scope))
                await (self._as_page(scope, 500) or answer)(scope, receive, framed)
        finally:
            if _access.isEnabledFor(logging.INFO):
                milliseconds = 1e3 * (time.perf_counter() - began)
                _access.info("%s %s %d %.1f ms", _method(scope), template(scope), status, milliseconds)

    def _is_named(self, scope: Scope) -> bool:
        """Whether every host that a request names is this server; one without a host came by HTTP/1.0."""
        named = {value.decode("latin-1") for name, value in scope["headers"] if name == b"host"}
        # links repeat it as it is: no user name, no path
        if not all(_HOST.fullmatch(one) for one in named):
            return False
        found = {host_name(one) for one in named}
        at = scope.get("server")
        return found <= self._hosts or (at is not None and found <= {*self._hosts, host_name(str(at[0]))})


def host_name(address: str) -> str:
    """The host of an address as a Host header, a URL or --host has it: without port, brackets and capitals.

    >>> [host_name(one) for one in ("LocalHost:8000", "[::1]:80", "::1", "https://Campaign.example.org")]
    ['localhost', '::1', '::1', 'campaign.example.org']
    """
    name = address.strip().lower().rpartition("//")[2].partition("/")[0]
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    return name.removesuffix(".")


class _Body:
    """A request's body, cut off where it becomes too large; ``protocol`` gives up on what is too slow."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        larger = (limit for end, limit in _LARGER.items() if scope["path"].endswith(end))
        self.limit = next(larger, BODY_LIMIT)
        self.declared = _declared(scope)
        self._receive = receive
        self._seen = 0

    async def receive(self) -> Message:
        """The next part."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
            if self._seen > self.limit:
                raise Refusal(413, _TOO_LARGE.format(limit=self.limit), {"Connection": "close"})
        return message

    def refusal(self) -> ASGIApp:
        """The answer to a body that says of itself that it is too large; nothing of it is read."""
        return problem(413, _TOO_LARGE.format(limit=self.limit), headers={"Connection": "close"})


def _declared(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 16 else UPLOAD_LIMIT + 1
    return 0


def _method(scope: Scope) -> str:
    """A method that we know; others may hold anything."""
    method = str(scope["method"])
    return method if method in {"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"} else "OTHER"
