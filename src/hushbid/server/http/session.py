"""Logging in and out with a password, for browsers: what answers with a cookie."""

from typing import Any

from fastapi import Request, Response

from hushbid.errors import NotAllowed
from hushbid.server.http.auth import address_of, cookie_session, not_logged_in, require_unforged
from hushbid.server.http.routes import api_route
from hushbid.server.http.schemas import Body, LoggedIn, LogIn, answer
from hushbid.server.http.state import app_of
from hushbid.server.model.views import Session

_BODY = Body(LogIn)


async def log_in(request: Request) -> Response:
    """Begin a session. Its token comes in a cookie; further attempts after failures must wait ever longer."""
    app, given = app_of(request), await _BODY.received(request)
    try:
        begun = await app.run(app.service.log_in, given.name, given.password, address_of(request))
    except NotAllowed as refused:
        raise not_logged_in(str(refused)) from None
    response = answer(_shown(begun))
    lasts = int((begun.expires_at - app.service.clock()).total_seconds())
    # unreadable for scripts, unsent from other sites
    response.set_cookie(
        app.cookie, begun.token, max_age=lasts, path="/", secure=app.https, httponly=True, samesite="strict"
    )
    return response


async def session(request: Request) -> Response:
    """The session of the cookie, with its CSRF token."""
    found = await cookie_session(request)
    if found is None:
        raise not_logged_in("There is no session: an API token has none.")
    return answer(_shown(found))


async def log_out(request: Request) -> Response:
    """End the session of the cookie; harmless if there is none."""
    app = app_of(request)
    found = await cookie_session(request)
    if found is not None:
        require_unforged(request, found)
        await app.run(app.service.log_out, found.token)
    response = Response(status_code=204)
    response.delete_cookie(app.cookie, path="/", secure=app.https, httponly=True, samesite="strict")
    return response


def _shown(begun: Session) -> dict[str, Any]:
    who = begun.principal
    return {"name": who.name, "role": who.role, "csrf": begun.csrf, "expires_at": begun.expires_at}


ROUTES = (
    api_route(
        "POST /session",
        log_in,
        by="anybody",
        summary="Log in",
        tag="session",
        response_model=LoggedIn,
        openapi_extra=_BODY.described(),
        refusals=(401, 422, 429),
    ),
    api_route(
        "GET /session",
        session,
        by="staff",
        summary="Who am I?",
        tag="session",
        response_model=LoggedIn,
        refusals=(401, 403),
    ),
    api_route(
        "DELETE /session", log_out, by="anybody", summary="Log out", tag="session", status_code=204, refusals=(403,)
    ),
)
