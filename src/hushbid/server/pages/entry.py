"""Ways in: the first page, a participant's link, an analyst's name and password."""

from contextlib import suppress

from fastapi import APIRouter, Request, Response

from hushbid.errors import InputError, NotAllowed, Throttled
from hushbid.server.http.auth import address_of, begin_cookie, cookie_session, end_cookie
from hushbid.server.model.access import LinkInvalid
from hushbid.server.pages.draft import taken_up
from hushbid.server.pages.request import OpenLinkFirst, PageRequest, anybody, is_link, participant, staff

router = APIRouter(include_in_schema=False)
_HOME = "/campaigns"


@router.get("/")
async def first_page(request: Request) -> Response:
    """Who are you?"""
    visit = await anybody(request)
    return visit.go(_HOME) if visit.session is not None else visit.page("first.html")


@router.get("/p/other")
async def other_link(request: Request) -> Response:
    """Come in with another link than the one the browser keeps."""
    return entry_page(await anybody(request))


@router.post("/p/enter")
async def enter(request: Request) -> Response:
    """Exchange a link for this browser's own secret, and keep that in a cookie that no script can read."""
    visit = await anybody(request)
    form = await visit.form()
    token = form.text("link").strip().rpartition("#")[2]
    if not is_link(token):
        return entry_page(visit, problem="enter.unreadable", status=422)
    secret = visit.secret_for(token)
    try:
        await visit.app.run(visit.app.service.enter, token, secret)
    except LinkInvalid as refused:
        return refused_page(visit, refused)
    response = visit.go("/p")
    visit.remember(response, secret)
    return response


@router.post("/p/leave")
async def leave(request: Request) -> Response:
    """End this browser's secret, and let it forget what that was made of."""
    try:
        visit = await participant(request)
    except OpenLinkFirst:  # then there is nothing to end, and forgetting is harmless
        visit = await anybody(request)
    else:
        await visit.form()
        with suppress(LinkInvalid):
            await visit.app.run(visit.app.service.leave, visit.token)
    response = visit.go("/p/left")
    visit.forget(response, bits=True)
    return response


@router.get("/p/left")
async def left(request: Request) -> Response:
    """The browser has forgotten the secret."""
    return (await anybody(request)).page("participant/left.html")


@router.get("/login")
async def log_in_page(request: Request) -> Response:
    """Ask for name and password."""
    visit = await anybody(request)
    onwards = _local(request.query_params.get("next", ""))
    return visit.page("staff/login.html", problem=None, name="", next=onwards, carried="")


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begin a session."""
    visit = await anybody(request)
    form = await visit.form()
    name, password, onwards = form.text("name"), form.text("password"), _local(form.text("next"))
    service, address, carried = visit.app.service, address_of(request), form.text("carried")
    try:
        begun = await visit.app.run(service.log_in, name, password, address)
    except (Throttled, NotAllowed, InputError) as refused:
        status, problem = 403, visit.texts("The name or the password is wrong.")
        if isinstance(refused, Throttled):
            wait = f"{refused.retry_after:g}"
            status, problem = 429, visit.texts.coded("login.throttled", seconds=wait)
        typed = {"name": name[:100], "next": onwards, "carried": carried}
        return visit.page("staff/login.html", status=status, problem=problem, **typed)
    visit.session = begun
    response = visit.go(await taken_up(visit, carried) or onwards or _HOME)
    begin_cookie(visit.app, response, begun)
    return response


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the session."""
    found = await cookie_session(request)
    visit = await (anybody(request) if found is None else staff(request))
    if found is not None:
        await visit.form()
        token = found.token
        await visit.app.run(visit.app.service.log_out, token)
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
