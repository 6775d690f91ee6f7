"""Who is asking: an analyst or an auditor by API token or session, a participant by a link or a device's secret.

A bearer token goes before a cookie. With a cookie every change needs the session's CSRF token in a header, which no
other site can read or send. A participant's secret is looked up in the transaction that uses it, not here.

`Authentication` goes around the application: nothing of a request's body is read before it is clear who sends it. A
handler takes its caller from there (`caller_of`) and from nowhere else, so one that was not guarded answers nobody.

`AppState` is what every handler has at hand: the service, threads to call it in, and the names of cookies.
"""

import asyncio
import hmac
import ipaddress
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, ParamSpec, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from hushbid.errors import HushbidError, NotAllowed, Throttled
from hushbid.server.http.problems import AUTHENTICATE, Refusal, refusal
from hushbid.server.model.access import LINK_PREFIXES, SECRET_PREFIX, Role
from hushbid.server.model.rules import require_role
from hushbid.server.model.views import Principal, Session
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


_LONGEST_TOKEN = 200
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FORGED = "The header X-CSRF-Token is missing or is not this session's."


class ApiRoute(APIRoute):
    """An address of the interface, and who may ask there."""

    def __init__(self, path: str, endpoint: Callable[..., Any], *, by: Role, **more: Any) -> None:
        self.by = by
        super().__init__(path, endpoint, **more)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Caller:
    """Somebody who may come in."""

    who: Principal | str
    """An analyst or an auditor; of a participant the link or the secret; nobody in particular if empty."""

    @property
    def staff(self) -> Principal:
        """Return the analyst or the auditor."""
        assert isinstance(self.who, Principal)
        return self.who

    @property
    def secret(self) -> str:
        """Return the participant's secret, or link."""
        assert isinstance(self.who, str)
        return self.who

    @property
    def id(self) -> str:
        """Return a name by which one caller's repeated requests are distinguished from others'."""
        return self.who.id if isinstance(self.who, Principal) else sha256(self.who.encode()).hexdigest()


async def authenticated(request: Request, by: Role) -> Caller:
    """Return who is asking; refuse those who may not ask."""
    if by == "anybody":
        return Caller(who="")
    if by == "secret":
        return Caller(who=await _secret(request))
    if by == "link":
        return Caller(who=await _link(request))
    return Caller(who=await _staff(request, by))


class Authentication:
    """An ASGI application that finds out who asks before the real one reads a request."""

    def __init__(self, app: ASGIApp, *, routes: Sequence[ApiRoute]) -> None:
        self._app = app
        named = [(method, route) for route in routes for method in route.methods or ()]
        self._fixed = {(method, route.path): route for method, route in named if "{" not in route.path}
        self._others = [route for route in routes if "{" in route.path]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._route(scope) if scope["type"] == "http" else None
        if route is not None:
            request = Request(scope)
            try:
                request.state.caller = await authenticated(request, route.by)
            except (Refusal, HushbidError) as refused:
                scope["route"] = route  # for the access log, which has the pattern of an address only
                await refusal(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _route(self, scope: Scope) -> ApiRoute | None:
        """Return the route that the application will take; None for pages and for what is nowhere."""
        found = self._fixed.get((scope["method"], scope["path"]))
        if found is not None or not scope["path"].startswith(PREFIX):
            return found
        return next((route for route in self._others if route.matches(scope)[0] is Match.FULL), None)


def caller_of(request: Request) -> Caller:
    """Return who asks."""
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


def not_logged_in(sentence: str) -> Refusal:
    """Return the refusal of a request without a valid token."""
    return Refusal(401, sentence, AUTHENTICATE)


async def _staff(request: Request, by: Role) -> Principal:
    """Return an analyst or an auditor."""
    scheme, token = _authorization(request)
    if scheme == "bearer":
        who = await _principal(app_of(request), _checked(token))
    else:
        # a cookie is sent by any page, so a change needs the CSRF token too
        found = await cookie_session(request)
        if found is None:
            raise not_logged_in("Log in, or send an API token.")
        require_unforged(request, found)
        who = found.principal
    require_role(who, by)
    return who


async def _secret(request: Request) -> str:
    """Return what may be a participant's secret; the transaction that uses it finds out."""
    token = _bearer(request, "Send the secret that your link was exchanged for as a bearer token.")
    if token.startswith(LINK_PREFIXES):
        raise not_logged_in("This is a link: exchange it for a secret first, with PUT /participation/secret.")
    if not token.startswith(SECRET_PREFIX):
        await _principal(app_of(request), token)
        raise NotAllowed("This is for participants only.")
    return token


async def _link(request: Request) -> str:
    """Return what may be a participant's link."""
    token = _bearer(request, "Send what stands behind the # of your link as a bearer token.")
    if token.startswith(SECRET_PREFIX):
        raise not_logged_in("This is a secret already: there is nothing to exchange.")
    if not token.startswith(LINK_PREFIXES):
        await _principal(app_of(request), token)
        raise NotAllowed("This is for participants only.")
    return token


def _bearer(request: Request, needed: str) -> str:
    scheme, token = _authorization(request)
    if scheme != "bearer":
        raise not_logged_in(needed)
    return _checked(token)


def _authorization(request: Request) -> tuple[str, str]:
    """Return the scheme and what follows it."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    token = token.strip()
    return scheme.lower() if token else "", token


def begin_cookie(app: AppState, response: Response, begun: Session) -> None:
    """Let a browser keep a session; unreadable for scripts, unsent from other sites."""
    lasts = int((begun.expires_at - app.service.clock()).total_seconds())
    response.set_cookie(
        app.cookie, begun.token, max_age=lasts, path="/", secure=app.https, httponly=True, samesite="strict"
    )


def end_cookie(app: AppState, response: Response) -> None:
    """Let a browser forget its session."""
    response.delete_cookie(app.cookie, path="/", secure=app.https, httponly=True, samesite="strict")


async def cookie_session(request: Request) -> Session | None:
    """The session of a request's cookie, if it has one that lasts."""
    app = app_of(request)
    token = request.cookies.get(app.cookie)
    if token is None or len(token) > _LONGEST_TOKEN:
        return None
    try:
        return await app.run(app.service.session_of, token)
    except NotAllowed:
        return None


def require_unforged(request: Request, session: Session) -> None:
    """Refuse a change that another site may have made somebody's browser ask for."""
    if request.method in _SAFE:
        return
    given = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(given.encode("utf-8", "replace"), session.csrf.encode()):
        raise NotAllowed(_FORGED)


def address_of(request: Request) -> str:
    """By what failed log-ins are counted: an address, or the network that one household has in IPv6."""
    host = request.client.host if request.client is not None else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "unknown"
    # a household has 2**64 addresses
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def _checked(token: str) -> str:
    if not token or len(token) > _LONGEST_TOKEN or not (token.isascii() and token.isprintable()):
        raise not_logged_in("This token is not valid.")
    return token


async def _principal(app: AppState, token: str) -> Principal:
    try:
        return await app.run(app.service.principal_of, token)
    except NotAllowed as refused:
        raise not_logged_in(str(refused)) from None
