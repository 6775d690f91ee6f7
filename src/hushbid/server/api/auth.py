"""Who is asking: an analyst or an auditor by API token or session, a participant by her device's secret; logging in.

A bearer token goes before a cookie. With a cookie every change needs the session's CSRF token in a header, which no
other site can read or send. A participant's secret is looked up in the transaction that uses it, not here.
"""

import hmac
import ipaddress
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response, Security
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from hushbid.errors import NotAllowed
from hushbid.server.api.problems import Refusal
from hushbid.server.api.schemas import LoggedIn, LogIn, answer, problems
from hushbid.server.api.state import COOKIE, PREFIX, AppState, app_of, operation_id
from hushbid.server.domain.access import LINK_PREFIXES, SECRET_PREFIX, NoEntry
from hushbid.server.domain.views import Principal, Session

router = APIRouter(prefix=f"{PREFIX}/session", tags=["session"], generate_unique_id_function=operation_id)
CSRF_HEADER = "X-CSRF-Token"
_LONGEST_TOKEN = 200
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FORGED = "The header X-CSRF-Token is missing or is not this session's."

_api_token = HTTPBearer(
    scheme_name="token",
    description="An API token (`hushbid users token`), for analysts and auditors.",
    auto_error=False,
)
_cookie = APIKeyCookie(
    name=COOKIE,
    scheme_name="session",
    description="A session begun with POST /session, named __Host-hushbid over https. Every change also needs its CSRF"
    f" token in the header {CSRF_HEADER}.",
    auto_error=False,
)
Bearer = HTTPAuthorizationCredentials | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Caller:
    """Somebody who may come in."""

    who: Principal
    secret: str
    """The token by which she came in."""


def not_logged_in(sentence: str, entry: NoEntry | None = None) -> Refusal:
    """The refusal of somebody who is nobody."""
    return Refusal(401, sentence, {"WWW-Authenticate": "Bearer"}, entry=entry)


async def staff(
    request: Request,
    bearer: Annotated[Bearer, Security(_api_token)],
    cookie: Annotated[str | None, Security(_cookie)],
) -> Caller:
    """An analyst or an auditor."""
    app = app_of(request)
    token = token_of(bearer)
    if token is not None:
        caller = Caller(who=await _principal(app, token), secret=token)
    else:
        # a cookie is sent by any page, so a change needs the CSRF token too
        found = await cookie_session(request)
        if found is None:
            raise not_logged_in("Log in, or send an API token.")
        require_unforged(request, found)
        caller = Caller(who=found.principal, secret=found.token)
    if caller.who.role not in ("analyst", "auditor"):
        raise NotAllowed("This is for analysts and auditors only.")
    return caller


async def analyst(caller: Annotated[Caller, Depends(staff)]) -> Caller:
    """An analyst."""
    if caller.who.role != "analyst":
        raise NotAllowed("Only an analyst may do this.")
    return caller


async def secret_of(request: Request) -> str:
    """What may be a participant's secret; whoever uses it finds out. Called by handlers: dependencies take time."""
    token = _bearer(request, "Send the secret that your link was exchanged for as a bearer token.")
    if token.startswith(LINK_PREFIXES):
        raise not_logged_in("This is a link: exchange it for a secret first, with PUT /participation/secret.")
    if not token.startswith(SECRET_PREFIX):
        await _principal(app_of(request), token)
        raise NotAllowed("This is for participants only.")
    return token


async def link_of(request: Request) -> str:
    """What may be a participant's link."""
    token = _bearer(request, "Send what stands behind the # of your link as a bearer token.")
    if token.startswith(SECRET_PREFIX):
        raise not_logged_in("This is a secret already: there is nothing to exchange.")
    if not token.startswith(LINK_PREFIXES):
        await _principal(app_of(request), token)
        raise NotAllowed("This is for participants only.")
    return token


def _bearer(request: Request, needed: str) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise not_logged_in(needed)
    return _checked(token)


Staff = Annotated[Caller, Depends(staff)]
Analyst = Annotated[Caller, Depends(analyst)]


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


def token_of(bearer: Bearer) -> str | None:
    """The token in an Authorization header."""
    return None if bearer is None else _checked(bearer.credentials)


def _checked(token: str) -> str:
    if not token or len(token) > _LONGEST_TOKEN or not (token.isascii() and token.isprintable()):
        raise not_logged_in("This token is not valid.")
    return token


async def _principal(app: AppState, token: str) -> Principal:
    try:
        return await app.run(app.service.principal_of, token)
    except NotAllowed as refused:
        raise not_logged_in(str(refused)) from None


# -- logging in and out ------------------------------------------------------------------------------------------------


@router.post("", response_model=LoggedIn, responses=problems(401, 422, 429), summary="Log in")
async def log_in(request: Request, given: LogIn) -> Response:
    """Begin a session. Its token comes in a cookie; further attempts after failures must wait ever longer."""
    app = app_of(request)
    address = address_of(request)
    try:
        begun = await app.run(app.service.log_in, given.name, given.password, address)
    except NotAllowed as refused:
        raise not_logged_in(str(refused)) from None
    response = answer(_shown(begun))
    lasts = int((begun.expires_at - app.service.clock()).total_seconds())
    # unreadable for scripts, unsent from other sites
    response.set_cookie(
        app.cookie, begun.token, max_age=lasts, path="/", secure=app.https, httponly=True, samesite="strict"
    )
    return response


@router.get("", response_model=LoggedIn, responses=problems(401, 403), summary="Who am I?")
async def session(request: Request, caller: Staff) -> Response:
    """The session of the cookie, with its CSRF token."""
    found = await cookie_session(request)
    if found is None:
        raise not_logged_in("There is no session: an API token has none.")
    return answer(_shown(found))


@router.delete("", status_code=204, responses=problems(403), summary="Log out")
async def log_out(request: Request) -> Response:
    """End the session of the cookie; harmless if there is none."""
    app = app_of(request)
    found = await cookie_session(request)
    if found is not None:
        require_unforged(request, found)
        token = found.token
        await app.run(app.service.log_out, token)
    response = Response(status_code=204)
    response.delete_cookie(app.cookie, path="/", secure=app.https, httponly=True, samesite="strict")
    return response


def _shown(begun: Session) -> dict[str, Any]:
    who = begun.principal
    return {"name": who.name, "role": who.role, "csrf": begun.csrf, "expires_at": begun.expires_at}
