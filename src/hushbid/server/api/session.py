"""Logging in and out."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from hushbid.errors import NotAllowed
from hushbid.server.api.callers import (
    Caller,
    address_of,
    cookie_session,
    not_logged_in,
    require_unforged,
    staff,
)
from hushbid.server.api.openapi import problems
from hushbid.server.api.shell import PREFIX, shell_of
from hushbid.server.api.wire import LoggedIn, LogIn, answer
from hushbid.server.domain.views import Session

router = APIRouter(prefix=f"{PREFIX}/session", tags=["session"])


@router.post("", response_model=LoggedIn, responses=problems(401, 422, 429), summary="Log in")
async def log_in(request: Request, given: LogIn) -> Response:
    """Begin a session. Its token comes in a cookie; further attempts after failures must wait ever longer."""
    shell = shell_of(request)
    address = address_of(request)
    try:
        begun = await shell.run(lambda: shell.service.log_in(given.name, given.password, address))
    except NotAllowed as refused:
        raise not_logged_in(str(refused)) from None
    response = answer(_shown(begun))
    lasts = int((begun.expires_at - shell.service.clock()).total_seconds())
    # unreadable for scripts, unsent from other sites
    response.set_cookie(
        shell.cookie, begun.token, max_age=lasts, path="/", secure=shell.https, httponly=True, samesite="strict"
    )
    return response


@router.get("", response_model=LoggedIn, responses=problems(401, 403), summary="Who am I?")
async def session(request: Request, caller: Annotated[Caller, Depends(staff)]) -> Response:
    """The session of the cookie, with its CSRF token."""
    found = await cookie_session(request)
    if found is None:
        raise not_logged_in("There is no session: an API token has none.")
    return answer(_shown(found))


@router.delete("", status_code=204, responses=problems(403), summary="Log out")
async def log_out(request: Request) -> Response:
    """End the session of the cookie; harmless if there is none."""
    shell = shell_of(request)
    found = await cookie_session(request)
    if found is not None:
        require_unforged(request, found)
        token = found.token
        await shell.run(lambda: shell.service.log_out(token))
    response = Response(status_code=204)
    response.delete_cookie(shell.cookie, path="/", secure=shell.https, httponly=True, samesite="strict")
    return response


def _shown(begun: Session) -> dict[str, Any]:
    who = begun.principal
    return {"name": who.name, "role": who.role, "csrf": begun.csrf, "expires_at": begun.expires_at}
