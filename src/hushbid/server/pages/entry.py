"""Ways in: the first page, a participant's link, an analyst's name and password."""

from contextlib import suppress

from fastapi import Request, Response

from hushbid.errors import InputError, NotAllowed, Throttled
from hushbid.server.http.auth import address_of, begin_cookie, cookie_session, end_cookie
from hushbid.server.model.access import LinkInvalid
from hushbid.server.pages.draft import taken_up
from hushbid.server.pages.request import PageRequest, anybody, is_link, page, perhaps_participant, staff

_HOME = "/campaigns"


@page("GET /", anybody)
async def first_page(visit: PageRequest) -> Response:
    """Who are you?"""
    return visit.go(_HOME) if visit.session is not None else visit.page("first.html")


@page("GET /p/other", anybody)
async def other_link(visit: PageRequest) -> Response:
    """Come in with another link than the one the browser keeps."""
    return entry_page(visit)


@page("POST /p/enter", anybody)
async def enter(visit: PageRequest) -> Response:
    """Exchange a link for this browser's own secret, and keep that in a cookie that no script can read."""
    token = visit.form.text("link").strip().rpartition("#")[2]
    if not is_link(token):
        return entry_page(visit, problem="enter.unreadable", status=422)
    secret = visit.secret_for(token)
    try:
        await visit.app.run(visit.service.enter, token, secret)
    except LinkInvalid as refused:
        return refused_page(visit, refused)
    response = visit.go("/p")
    visit.remember(response, secret)
    return response


@page("POST /p/leave", perhaps_participant, reads_form=False)
async def leave(visit: PageRequest) -> Response:
    """End this browser's secret, and let it forget what that was made of, which is harmless without one."""
    if visit.secret is not None:
        await visit.read_form()
        with suppress(LinkInvalid):
            await visit.ask(visit.service.leave)
    response = visit.go("/p/left")
    visit.forget(response, bits=True)
    return response


@page("GET /p/left", anybody)
async def left(visit: PageRequest) -> Response:
    """The browser has forgotten the secret."""
    return visit.page("participant/left.html")


@page("GET /login", anybody)
async def log_in_page(visit: PageRequest) -> Response:
    """Ask for name and password."""
    return visit.page("staff/login.html", problem=None, name="", next=_local(visit.query.get("next", "")), carried="")


@page("POST /login", anybody)
async def log_in(visit: PageRequest) -> Response:
    """Begin a session."""
    name, onwards, carried = visit.form.text("name"), _local(visit.form.text("next")), visit.form.text("carried")
    password, address = visit.form.text("password"), address_of(visit.request)
    try:
        begun = await visit.app.run(visit.service.log_in, name, password, address)
    except (Throttled, NotAllowed, InputError) as refused:
        status, problem = 403, visit.texts("The name or the password is wrong.")
        if isinstance(refused, Throttled):
            status, problem = 429, visit.texts.coded("login.throttled", seconds=f"{refused.retry_after:g}")
        typed = {"name": name[:100], "next": onwards, "carried": carried}
        return visit.page("staff/login.html", status=status, problem=problem, **typed)
    visit.session = begun
    response = visit.go(await taken_up(visit, carried) or onwards or _HOME)
    begin_cookie(visit.app, response, begun)
    return response


async def _whoever_logs_out(request: Request) -> PageRequest:
    if await cookie_session(request) is None:
        return await anybody(request)
    visit = await staff(request)
    await visit.read_form()
    return visit


@page("POST /logout", _whoever_logs_out, reads_form=False)
async def log_out(visit: PageRequest) -> Response:
    """End the session."""
    if visit.session is not None:
        await visit.app.run(visit.service.log_out, visit.session.token)
    response = visit.go("/")
    end_cookie(visit.app, response)
    return response


def entry_page(visit: PageRequest, *, problem: str | None = None, status: int = 200) -> Response:
    """Ask for a link; a script fills it in if the address has one behind the #."""
    told = None if problem is None else visit.texts.coded(problem)
    return visit.page(
        "participant/enter.html", status=status, here="/p/other", problem=told, refused=None, device_ended=False
    )


def refused_page(visit: PageRequest, refused: LinkInvalid, *, device: bool = False) -> Response:
    """Say why a link or a secret opens nothing, what that means and what to do; and ask for another link.

    With ``device`` the refused secret is the one this browser holds: if its owner ended it, kept answers are erased.
    """
    time = "" if refused.at is None else visit.write.time(refused.at)
    told = visit.texts.coded(f"enter.{refused.reason}", time=time)
    return visit.page(
        "participant/enter.html",
        status=403,
        here="/p/other",
        problem=told,
        refused=refused.reason,
        device_ended=device and refused.reason in ("closed", "left"),
    )


def _local(path: str) -> str:
    """An address on this server, or nothing."""
    plain = path.isascii() and path.isprintable() and "\\" not in path and len(path) <= 300
    return path if plain and path.startswith("/") and not path.startswith("//") else ""
