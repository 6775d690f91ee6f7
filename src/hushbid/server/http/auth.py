"""Who is asking: an analyst or an auditor by API token or session, a participant by a link or a device's secret.

A bearer token goes before a cookie. With a cookie every change needs the session's CSRF token in a header, which no
other site can read or send. A participant's secret is looked up in the transaction that uses it, not here.

`authenticated` goes around every route: nothing of a request's body is read before it is clear who sends it.
"""

import hmac
import ipaddress
from dataclasses import dataclass
from hashlib import sha256

from fastapi import Request

from hushbid.errors import NotAllowed
from hushbid.server.http.problems import Refusal
from hushbid.server.http.state import CSRF_HEADER, AppState, app_of
from hushbid.server.model.access import LINK_PREFIXES, SECRET_PREFIX, LinkInvalid
from hushbid.server.model.views import Principal, Session
from hushbid.server.service.use_case import Role

_LONGEST_TOKEN = 200
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FORGED = "The header X-CSRF-Token is missing or is not this session's."


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
    who = await _staff(request)
    if by == "analyst" and who.role != "analyst":
        raise NotAllowed("Only an analyst may do this.")
    return Caller(who=who)


def not_logged_in(sentence: str, entry: LinkInvalid | None = None) -> Refusal:
    """The refusal of somebody who is nobody."""
    return Refusal(401, sentence, {"WWW-Authenticate": "Bearer"}, entry=entry)


async def _staff(request: Request) -> Principal:
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
    if who.role not in ("analyst", "auditor"):
        raise NotAllowed("This is for analysts and auditors only.")
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
