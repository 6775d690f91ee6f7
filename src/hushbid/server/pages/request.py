"""One request for a page: who asks, in which language, and what they get back.

Analysts and auditors come with the session cookie that the API uses, too. A participant's link, ``/p#TOKEN``, keeps
its token behind the #, which browsers do not send: a script, or the person, puts it into a form. So it stands in no
address, no log and no Referer. The first browser exchanges it for a secret, which is from then on in a cookie that no
script can read and no other site can make a browser send. The secret is made of the link and of random bits that only
this browser holds, in the cookie of its forms: so the same link opens the same part again here, also after an answer
that got lost, and nothing anywhere else; until they leave, which drops the bits and ends the secret.

Every form carries a token that another site cannot know: a session's own, or one made from what the cookie holds. A
page that was opened with one link can therefore not be sent with another.

The answer to a form is always a redirect, so that Back and Reload send nothing again and never end in a browser's own
page. What the next page shows of a form is kept for an hour, in memory alone, for the session that sent it
(`PageRequest.keep`): a name in an address opens nothing for anyone else, and nothing once the session is over. Links
that were made are not among it, but the key of the form that made them, under which they are sealed for a day
(`hushbid.server.service.use_case`).
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from secrets import token_hex
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from hushbid.report.rendering import environment
from hushbid.server.http.auth import AppState, app_of, cookie_session
from hushbid.server.model.access import LINK_PREFIXES, SECRET_PREFIX
from hushbid.server.model.rules import require_role
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.views import CampaignView, Principal, Session
from hushbid.server.pages.sent import CSRF_FIELD, CsrfError, Form, Shelf
from hushbid.server.pages.static_files import address
from hushbid.server.pages.wording import FormError, Texts, Writing, languages, negotiated
from hushbid.server.service import Service
from hushbid.server.service.use_case import IdempotencyKey, is_key

T = TypeVar("T")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script';"
    " trusted-types 'none'"
)
LANGUAGE_COOKIE, SECRET_COOKIE, BROWSER_COOKIE = "hushbid-language", "hushbid-participant", "hushbid-form"
_YEAR = 365 * 24 * 3600
MOST_FIELDS = 2_000
_LONGEST_TOKEN = 200


class LogInFirst(Exception):
    """An analyst's page was asked for by somebody who is not logged in; perhaps with a page of its own to log in at."""

    def __init__(self, page: Response | None = None) -> None:
        super().__init__()
        self.page = page


class OpenLinkFirst(Exception):
    """A participant's page was asked for without a secret."""


@dataclass(slots=True, kw_only=True)
class PageRequest:
    """One request for a page."""

    request: Request
    app: AppState
    texts: Texts
    form_token: str
    session: Session | None = None
    form: Form = field(default_factory=lambda: Form(FormData()), repr=False)
    """What was sent with a form that is ours."""

    campaign: str = ""
    """The campaign that the address names; empty if it names none."""

    found: CampaignView | None = None
    """That campaign, on the pages of analysts and auditors."""

    secret: str | None = field(default=None, repr=False)
    browser: str = field(default="", repr=False)
    """Random bits that only this browser holds."""

    new_browser: bool = False
    sample: str | None = None
    """Where a page leads back to that an analyst sees as a made-up participant; None for everybody else."""

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
        assert self.secret is not None
        return self.secret

    @property
    def view(self) -> CampaignView:
        """The campaign of an analyst's or auditor's page."""
        assert self.found is not None
        return self.found

    @property
    def service(self) -> Service:
        """What is asked."""
        return self.app.service

    @property
    def query(self) -> Mapping[str, str]:
        """What stands in the address behind a question mark."""
        return self.request.query_params

    @property
    def asks(self) -> tuple[Any, ...]:
        """What a use case needs to know first: who asks, and about which campaign if the page is about one."""
        if self.secret is not None:
            return (self.secret,)
        return (self.who, self.campaign) if self.campaign else (self.who,)

    async def ask(self, use_case: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Ask the service for this visitor, without making others wait."""
        return await self.app.run(use_case, *self.asks, *args, **kwargs)

    async def compute(self, use_case: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Ask for something that takes seconds."""
        return await self.app.compute(self.who, use_case, *self.asks, *args, **kwargs)

    def money(self, settings: CampaignSettings | None = None) -> Callable[[int], str]:
        """How a campaign's amounts are written, from minor units of its currency."""
        currency = (settings or self.view.whole).currency
        return lambda minor: self.write.money(minor, currency.code, currency.decimals)

    def page(self, template: str, *, status: int = 200, here: str | None = None, **values: Any) -> Response:
        """A page. ``here`` is where it can be read again, if not at the address that was asked for."""
        values = {"view": self.found, **values}
        shown = (
            environment("hushbid.server.pages", self.texts.language)
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
        return self.finished(Response(shown, status_code=status, media_type="text/html"))

    def go(self, path: str = "") -> Response:
        """Send the browser to another page, so that reloading it repeats nothing; one that does not begin with a slash
        is below the campaign's."""
        here = "" if path.startswith("/") else f"/campaigns/{self.campaign}{'/' * path[:1].isalpha()}"
        return self.finished(Response(status_code=303, headers={"Location": here + path}))

    def finished(self, response: Response) -> Response:
        """A response with the pages' policy, and the cookies that the visit calls for."""
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["Vary"] = "Accept-Language, Cookie"
        chosen = self.request.query_params.get("lang")
        if chosen in languages():
            self._cookie(response, LANGUAGE_COOKIE, chosen, max_age=_YEAR)
        if self.new_browser:
            self._cookie(response, cookie_name(self.app, BROWSER_COOKIE), self.browser, max_age=_YEAR)
        return response

    def secret_for(self, link: str) -> str:
        """The secret that this browser, and no other, exchanges a link for."""
        key = _form_key(self.app.service)
        made = hmac.new(key, f"secret {self.browser} {link}".encode(), hashlib.sha256).digest()
        return SECRET_PREFIX + base64.urlsafe_b64encode(made).decode("ascii").rstrip("=")

    def remember(self, response: Response, secret: str) -> None:
        """Let the browser keep a participant's secret, and the bits that it was made of, also when it is closed."""
        self._cookie(response, cookie_name(self.app, SECRET_COOKIE), secret, max_age=_YEAR)
        self._cookie(response, cookie_name(self.app, BROWSER_COOKIE), self.browser, max_age=_YEAR)

    def forget(self, response: Response, *, bits: bool = False) -> None:
        """Let the browser forget the secret; with the bits it was made of, no used link opens anything here again."""
        for name in (SECRET_COOKIE, BROWSER_COOKIE) if bits else (SECRET_COOKIE,):
            response.delete_cookie(cookie_name(self.app, name), path="/", secure=self.app.https, httponly=True)

    async def once(
        self, use_case: Any, *args: Any, asked: Sequence[str], encode: Callable[[Any], bytes], **kwargs: Any
    ) -> bytes:
        """Ask for what a form asks for, to be done once however often it arrives; its page gave it a key for that."""
        name = self.form.text("once")
        if not is_key(name):
            raise FormError("field.once")
        key = IdempotencyKey(who=self.who.id, key=name, asked="\n".join(asked).encode(), encode=encode)
        answer, _ = await self.ask(lambda *given: use_case.once(key, *given, **kwargs), *args)
        return bytes(answer)

    async def read_form(self) -> None:
        """Read what was sent with a form that is ours; only now that it is clear who sends it."""
        async with self.request.form(max_files=1, max_fields=MOST_FIELDS) as content:
            self.form = Form(content)
            self.form.file = b"".join([await one.read() for one in content.values() if isinstance(one, UploadFile)])
        self.require_unforged(self.form.text(CSRF_FIELD))

    def require_unforged(self, given: str) -> None:
        """Refuse what another site may have made somebody's browser send."""
        if self.request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise CsrfError
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.form_token.encode()):
            raise CsrfError

    def keep(self, **values: Any) -> str:
        """Keep something for a page that this session is sent to; its name, which stands in that page's address."""
        name = token_hex(10)
        self._shelf.put((self.form_token, name), values, self.service.clock())
        return name

    def kept(self, name: str) -> Mapping[str, Any] | None:
        """What this session keeps under a name; None if it was never there, or is gone."""
        return self._shelf.get((self.form_token, name), self.service.clock())

    @property
    def _shelf(self) -> Shelf:
        found = self.request.app.state.__dict__.setdefault("aside", Shelf())
        assert isinstance(found, Shelf)
        return found

    def _cookie(self, response: Response, name: str, value: str, *, max_age: int | None = None) -> None:
        response.set_cookie(
            name, value, max_age=max_age, path="/", secure=self.app.https, httponly=True, samesite="strict"
        )


async def anybody(request: Request) -> PageRequest:
    """Somebody who need not say who she is."""
    visit = stranger(request)
    visit.session = await cookie_session(request)
    return visit


def stranger(request: Request) -> PageRequest:
    """Somebody who has not said who she is; forms then belong to her browser."""
    app = app_of(request)
    kept = request.cookies.get(cookie_name(app, BROWSER_COOKIE), "")
    known = 20 <= len(kept) <= _LONGEST_TOKEN
    # before anybody has logged in a form is tied to a random cookie, against forged log-ins
    browser = kept if known else secrets.token_urlsafe(32)
    return PageRequest(
        request=request,
        app=app,
        texts=_texts(request),
        form_token=_made_of(app, "stranger", browser),
        browser=browser,
        new_browser=not known,
    )


async def staff(request: Request) -> PageRequest:
    """An analyst or an auditor."""
    found = await cookie_session(request)
    if found is None:
        raise LogInFirst
    return PageRequest(
        request=request, app=app_of(request), texts=_texts(request), form_token=found.csrf, session=found
    )


async def analyst(request: Request) -> PageRequest:
    """An analyst."""
    visit = await staff(request)
    require_role(visit.who, "analyst")
    return visit


async def perhaps_participant(request: Request) -> PageRequest:
    """Somebody with a secret, or anybody."""
    try:
        return await participant(request)
    except OpenLinkFirst:
        return await anybody(request)


async def participant(request: Request) -> PageRequest:
    """Somebody with a secret; whether it is valid turns out when it is used."""
    app = app_of(request)
    secret = request.cookies.get(cookie_name(app, SECRET_COOKIE), "")
    if not _may_be(SECRET_PREFIX, secret):
        raise OpenLinkFirst
    return PageRequest(
        request=request,
        app=app,
        texts=_texts(request),
        form_token=_made_of(app, "participant", secret),
        secret=secret,
    )


Act = TypeVar("Act", bound=Callable[..., Awaitable[Response]])
Visitor = Callable[[Request], Awaitable[PageRequest]]
PAGES: list[APIRoute] = []
"""Every page that a module of this package has registered."""


def page(address: str, by: Visitor, *, reads_form: bool = True) -> Callable[[Act], Act]:
    """Register a page: ``GET /campaigns/{campaign}/people``; other names in its path are arguments of its function."""
    method, _, path = address.partition(" ")

    def register(act: Act) -> Act:
        async def handle(request: Request) -> Response:
            visit = await by(request)
            if method == "POST" and reads_form:
                await visit.read_form()
            given = {name: require_id(value) for name, value in request.path_params.items()}
            visit.campaign = given.pop("campaign", "")
            return await act(visit, **given)

        PAGES.append(APIRoute(path, handle, methods=[method], name=act.__name__, include_in_schema=False))
        return act

    return register


def campaign_page(address: str, by: Visitor) -> Callable[[Act], Act]:
    """Register a page below a campaign's address, ``GET people``, which has the campaign in view."""
    method, _, path = address.partition(" ")

    def register(act: Act) -> Act:
        async def seen(visit: PageRequest, **given: str) -> Response:
            visit.found = await visit.ask(visit.service.campaign)
            return await act(visit, **given)

        seen.__name__ = act.__name__
        page(f"{method} /campaigns/{{campaign}}{path and '/'}{path}", by)(seen)
        return act

    return register


def is_link(token: str) -> bool:
    """Whether a text may be what stands behind the # of a link."""
    return _may_be(LINK_PREFIXES, token)


def _may_be(prefix: str | tuple[str, ...], token: str) -> bool:
    return token.startswith(prefix) and len(token) <= _LONGEST_TOKEN and token.isascii() and token.isprintable()


def cookie_name(app: AppState, name: str) -> str:
    """A browser guarantees of a cookie with the prefix that it came from this host by https."""
    return f"__Host-{name}" if app.https else name


def base_address(visit: PageRequest) -> str:
    """How people reach this server: as it was told, or else as the visitor does. Links for participants begin so."""
    if visit.app.address is not None:
        return visit.app.address
    scheme = "https" if visit.app.https else visit.request.url.scheme
    return f"{scheme}://{visit.request.url.netloc}"


def require_id(text: str) -> str:
    """An identifier in an address; anything else names nothing."""
    if not (text.isascii() and text.replace("-", "").isalnum() and len(text) <= 64):
        raise HTTPException(404)
    return text


def _texts(request: Request) -> Texts:
    asked = request.query_params.get("lang")
    chosen = asked if asked in languages() else request.cookies.get(LANGUAGE_COOKIE)
    return negotiated(request.headers.get("accept-language", ""), chosen=chosen)


def _made_of(app: AppState, purpose: str, secret: str) -> str:
    """A token that only this server can make, and only for whoever holds the secret."""
    return hmac.new(_form_key(app.service), f"{purpose} {secret}".encode(), hashlib.sha256).hexdigest()


@lru_cache(maxsize=16)
def _form_key(service: Service) -> bytes:
    """The key of forms' tokens; it outlives a restart, so that a page that was open can still be sent."""
    return hmac.new(service.home.identity_key(), b"hushbid forms", hashlib.sha256).digest()
