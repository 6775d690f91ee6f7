"""Refusals as pages, for whoever looks at them in a browser; programs get problem+json as everywhere."""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from hushbid.errors import HushbidError
from hushbid.server.http.auth import PREFIX
from hushbid.server.http.problems import problem, refusal
from hushbid.server.model.access import LinkInvalid
from hushbid.server.model.entities import DraftIncomplete
from hushbid.server.pages.entry import entry_page, refused_page
from hushbid.server.pages.request import LogInFirst, OpenLinkFirst, PageRequest, anybody, stranger
from hushbid.server.pages.sent import CsrfError

Handler = Callable[[Request, Exception], Awaitable[Response]]
_KNOWN = (400, 403, 404, 405, 409, 413, 422, 429, 500, 503)


def handle_page_problems(app: FastAPI) -> None:
    """Let refusals of pages become pages; what the API does with them stays as it is."""
    for kind in (HushbidError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _as_page(cast("Handler", app.exception_handlers[kind])))
    app.add_exception_handler(LogInFirst, _log_in_first)
    app.add_exception_handler(OpenLinkFirst, _open_link_first)
    app.add_exception_handler(LinkInvalid, _link_invalid)
    app.add_exception_handler(CsrfError, _forged)
    app.add_exception_handler(DraftIncomplete, _incomplete)


def wants_page(request: Request) -> bool:
    """Whether somebody is looking at the answer in a browser."""
    return not request.url.path.startswith(f"{PREFIX}/") and "text/html" in request.headers.get("accept", "")


async def problem_page(request: Request, status: int, sentence: str) -> Response:
    """A page that says why not, and where to go from there."""
    return shown_problem(await anybody(request), status, sentence)


def refusal_page(scope: Scope, status: int) -> Response | None:
    """A page that says why not, where only the head of the request is to be read; None for a program."""
    request = Request(scope)
    if not wants_page(request):
        return None
    page = shown_problem(stranger(request), status, "")
    page.headers["Connection"] = "close"
    return page


def shown_problem(visit: PageRequest, status: int, sentence: str) -> Response:
    """A page that tells a visitor why not; the service's own sentence is English and marked as such."""
    known = status if status in _KNOWN else (500 if status >= 500 else 400)
    return visit.page(
        "problem.html",
        status=status,
        here="/",
        kind=str(known),
        sentence=sentence if status in (403, 409, 422) else "",
    )


def _as_page(usual: Handler) -> Handler:
    async def handle(request: Request, error: Exception) -> Response:
        answer = await usual(request, error)
        if not wants_page(request):
            return answer
        told: dict[str, Any] = json.loads(bytes(answer.body))
        page = await problem_page(request, answer.status_code, str(told.get("detail", "")))
        for name in ("retry-after", "allow", "connection"):
            if name in answer.headers:
                page.headers[name] = answer.headers[name]
        return page

    return handle


async def _log_in_first(request: Request, error: Exception) -> Response:
    assert isinstance(error, LogInFirst)
    if error.page is not None:
        return error.page
    if not wants_page(request):
        return problem(HTTPStatus.UNAUTHORIZED, "Log in first.")
    return (await anybody(request)).go(_log_in_address(request))


def _log_in_address(request: Request) -> str:
    """Where to log in, and come back from if nothing was sent."""
    if request.method != "GET":
        return "/login"
    return f"/login?next={quote(request.url.path, safe='/')}"


async def _open_link_first(request: Request, error: Exception) -> Response:
    if not wants_page(request):
        return problem(HTTPStatus.UNAUTHORIZED, "Open your link again.")
    return entry_page(await anybody(request), problem="enter.first", status=403)


async def _link_invalid(request: Request, error: Exception) -> Response:
    """A secret that opens nothing any more leads back to the entrance."""
    assert isinstance(error, LinkInvalid)
    if not wants_page(request):
        return refusal(error)
    visit = await anybody(request)
    response = refused_page(visit, error, device=True)
    visit.forget(response)
    return response


async def _incomplete(request: Request, error: Exception) -> Response:
    """A draft that is not complete has a form, and no other page."""
    assert isinstance(error, DraftIncomplete)
    visit = await anybody(request) if wants_page(request) else None
    if visit is None:
        return refusal(error)
    if visit.session is None or visit.who.role != "analyst":
        return shown_problem(visit, HTTPStatus.CONFLICT, str(error))
    return visit.go(f"/campaigns/{error.campaign}/edit?check=yes#problems")


async def _forged(request: Request, error: Exception) -> Response:
    if not wants_page(request):
        return problem(HTTPStatus.FORBIDDEN, "The form's token is missing or is not this visitor's.")
    return (await anybody(request)).page("problem.html", status=403, here="/", kind="forged", sentence="")
