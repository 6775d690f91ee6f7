"""One request for a page: who asks, in which language, and what she gets back.

Analysts and auditors come with the session cookie that the API uses, too. A participant's link, ``/p#SECRET``, keeps
its secret behind the #, which browsers do not send: a script, or she herself, puts it into a form, and from then on it
is in a cookie of its own that no script can read and no other site can make a browser send. So it stands in no address,
no log and no Referer.

Every form carries a token that another site cannot know: a session's own, or one made from what the cookie holds. A
page that was opened with one link can therefore not be sent with another.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from hushbid.campaign.domain.views import Principal, Session
from hushbid.campaign.http.callers import LINK_PREFIX, cookie_session
from hushbid.campaign.http.shell import Shell, shell_of
from hushbid.campaign.pages.rendering import HTML, environment
from hushbid.campaign.pages.static_files import address
from hushbid.campaign.pages.texts import Texts, languages, negotiated
from hushbid.campaign.pages.writing import Writing
from hushbid.campaign.service import Service
from hushbid.errors import NotAllowed

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script';"
    " trusted-types 'none'"
)
CSRF_FIELD = "csrf"
LANGUAGE_COOKIE, LINK_COOKIE, STRANGER_COOKIE = "hushbid-language", "hushbid-link", "hushbid-form"
_YEAR = 365 * 24 * 3600
_MOST_FIELDS = 2_000
_LONGEST_TOKEN = 200


class LogInFirst(Exception):
    """An analyst's page was asked for by somebody who is not logged in."""


class OpenLinkFirst(Exception):
    """A participant's page was asked for by somebody without a valid link."""

    def __init__(self, *, expired: bool) -> None:
        super().__init__()
        self.expired = expired
        """Whether there was a link that is worth nothing any more."""


class Forged(Exception):
    """A form came without its token, or with another's."""


@dataclass(slots=True, kw_only=True)
class Visit:
    """One request for a page."""

    request: Request
    shell: Shell
    texts: Texts
    form_token: str
    session: Session | None = None
    link: str | None = field(default=None, repr=False)
    new_stranger: str | None = None

    @property
    def write(self) -> Writing:
        """How numbers are written in the visitor's language."""
        return Writing(self.texts)

    @property
    def who(self) -> Principal:
        """The analyst or auditor."""
        assert self.session is not None
        return self.session.principal

    @property
    def token(self) -> str:
        """The participant's secret."""
        assert self.link is not None
        return self.link

    def page(self, template: str, *, status: int = 200, here: str | None = None, **values: Any) -> Response:
        """A page. ``here`` is where it can be read again, if not at the address that was asked for."""
        shown = (
            environment()
            .get_template(template)
            .render(
                t=self.texts,
                w=self.write,
                visit=self,
                csrf=self.form_token,
                static=address,
                languages=languages(),
                here=here or self.request.url.path,
                **values,
            )
        )
        return self.finished(Response(shown, status_code=status, media_type=HTML))

    def go(self, path: str) -> Response:
        """Send the browser to another page, so that reloading it repeats nothing."""
        return self.finished(Response(status_code=303, headers={"Location": path}))

    def finished(self, response: Response) -> Response:
        """A response with the pages' policy, and the cookies that the visit calls for."""
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["Vary"] = "Accept-Language, Cookie"
        chosen = self.request.query_params.get("lang")
        if chosen in languages():
            self._cookie(response, LANGUAGE_COOKIE, chosen, max_age=_YEAR)
        if self.new_stranger is not None:
            self._cookie(response, cookie_name(self.shell, STRANGER_COOKIE), self.new_stranger)
        return response

    def remember_link(self, response: Response, token: str) -> None:
        """Let the browser keep a participant's secret until it is closed."""
        self._cookie(response, cookie_name(self.shell, LINK_COOKIE), token)

    def forget_link(self, response: Response) -> None:
        """Let the browser forget it."""
        response.delete_cookie(cookie_name(self.shell, LINK_COOKIE), path="/", secure=self.shell.https, httponly=True)

    async def form(self) -> "Form":
        """What was sent with a form that is ours; read only now that it is clear who sends it."""
        async with self.request.form(max_files=1, max_fields=_MOST_FIELDS) as content:
            found = Form(content)
            found.file = b"".join([await part.read() for part in content.values() if isinstance(part, UploadFile)])
        self.require_unforged(found.text(CSRF_FIELD))
        return found

    def require_unforged(self, given: str) -> None:
        """Refuse what another site may have made somebody's browser send."""
        if self.request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Forged
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.form_token.encode()):
            raise Forged

    def _cookie(self, response: Response, name: str, value: str, *, max_age: int | None = None) -> None:
        response.set_cookie(
            name, value, max_age=max_age, path="/", secure=self.shell.https, httponly=True, samesite="strict"
        )


class Form:
    """The fields of a form, as texts."""

    def __init__(self, content: FormData) -> None:
        self._content = content
        self.file = b""
        """The content of the file that came with it, if one did."""

    def text(self, name: str) -> str:
        """What was typed, with line ends as they should be; nothing if the field is missing."""
        value = self._content.get(name, "")
        return value.replace("\r\n", "\n").replace("\0", "") if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        """Everything that was chosen under one name."""
        return [value.replace("\0", "") for value in self._content.getlist(name) if isinstance(value, str)]

    def ticked(self, name: str) -> bool:
        """Whether a box was ticked."""
        return self.text(name) == "yes"

    def all(self) -> Mapping[str, str]:
        """Every field but the token."""
        return {name: self.text(name) for name in self._content if name != CSRF_FIELD}


async def anybody(request: Request) -> Visit:
    """Somebody who need not say who she is."""
    visit = stranger(request)
    visit.session = await cookie_session(request)
    return visit


def stranger(request: Request) -> Visit:
    """Somebody who has not said who she is; forms then belong to her browser."""
    shell = shell_of(request)
    kept = request.cookies.get(cookie_name(shell, STRANGER_COOKIE), "")
    known = kept if 20 <= len(kept) <= _LONGEST_TOKEN else None
    nonce = known or secrets.token_urlsafe(32)
    return Visit(
        request=request,
        shell=shell,
        texts=_texts(request),
        form_token=_made_of(shell, "stranger", nonce),
        new_stranger=None if known else nonce,
    )


async def staff(request: Request) -> Visit:
    """An analyst or an auditor."""
    found = await cookie_session(request)
    if found is None:
        raise LogInFirst
    return Visit(request=request, shell=shell_of(request), texts=_texts(request), form_token=found.csrf, session=found)


async def analyst(request: Request) -> Visit:
    """An analyst."""
    visit = await staff(request)
    if visit.who.role != "analyst":
        raise NotAllowed("Only an analyst may do this.")
    return visit


async def participant(request: Request) -> Visit:
    """Somebody with a link; whether it is valid turns out when it is used."""
    shell = shell_of(request)
    token = request.cookies.get(cookie_name(shell, LINK_COOKIE), "")
    if not is_link(token):
        raise OpenLinkFirst(expired=False)
    return Visit(
        request=request,
        shell=shell,
        texts=_texts(request),
        form_token=_made_of(shell, "participant", token),
        link=token,
    )


def is_link(token: str) -> bool:
    """Whether a text may be the secret of a link."""
    return token.startswith(LINK_PREFIX) and len(token) <= _LONGEST_TOKEN and token.isascii() and token.isprintable()


def cookie_name(shell: Shell, name: str) -> str:
    """A browser guarantees of a cookie with the prefix that it came from this host by https."""
    return f"__Host-{name}" if shell.https else name


def base_address(visit: Visit) -> str:
    """How people reach this server: as it was told, or else as the visitor does. Links for participants begin so."""
    if visit.shell.address is not None:
        return visit.shell.address
    scheme = "https" if visit.shell.https else visit.request.url.scheme
    return f"{scheme}://{visit.request.url.netloc}"


def log_in_address(request: Request) -> str:
    """Where to log in, and come back from if nothing was sent."""
    if request.method != "GET":
        return "/login"
    return f"/login?next={quote(request.url.path, safe='/')}"


def require_id(text: str) -> str:
    """A campaign's identifier in an address; anything else names nothing."""
    if not (text.isascii() and text.isalnum() and len(text) <= 64):
        raise HTTPException(404)
    return text


def _texts(request: Request) -> Texts:
    asked = request.query_params.get("lang")
    chosen = asked if asked in languages() else request.cookies.get(LANGUAGE_COOKIE)
    return negotiated(request.headers.get("accept-language", ""), chosen=chosen)


def _made_of(shell: Shell, purpose: str, secret: str) -> str:
    """A token that only this server can make, and only for whoever holds the secret."""
    return hmac.new(_form_key(shell.service), f"{purpose} {secret}".encode(), hashlib.sha256).hexdigest()


@lru_cache(maxsize=16)
def _form_key(service: Service) -> bytes:
    """The same after a restart, so that a page that was open can still be sent."""
    return hmac.new(service.home.identity_key(), b"hushbid forms", hashlib.sha256).digest()
