"""The HTTP routes, made from the registry of use cases; nothing here knows any of them.

By the time a route is taken it is known who asks (`hushbid.server.http.auth`). It reads path, query and idempotency
key, then the body, and then calls its use case. What answers with a file has a handler of its own, in `downloads`;
logging in and out, which answer with a cookie, are below.
"""

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_type_hints

from fastapi import Header, Path, Query, Request, Response
from pydantic import create_model

from hushbid.errors import InputError, NotAllowed
from hushbid.server.http.auth import (
    PREFIX,
    ApiRoute,
    AppState,
    Caller,
    address_of,
    app_of,
    begin_cookie,
    caller_of,
    cookie_session,
    end_cookie,
    not_logged_in,
    require_unforged,
)
from hushbid.server.http.schemas import LoggedIn, LogIn, answer, body_of, encoded, problems, require_json
from hushbid.server.model.access import Role
from hushbid.server.model.payment_views import Awaited
from hushbid.server.model.views import Principal, Session
from hushbid.server.service.bodies import Form
from hushbid.server.service.registry import reached
from hushbid.server.service.use_case import (
    KEY_LETTERS,
    LONGEST_KEY,
    SHORTEST_KEY,
    IdempotencyKey,
    Route,
    UseCase,
)
from hushbid.server.service.views_of import MOST_ON_A_PAGE

_ID = r"^[a-z0-9]{1,64}$"
_CampaignId = Annotated[str, Path(pattern=_ID, description="A campaign's identifier.")]
_ParticipantId = Annotated[str, Path(pattern=_ID, description="A participant's pseudonym.")]
_Limit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE, description="How many at most.")]
_Cursor = Annotated[
    str | None,
    Query(min_length=1, max_length=200, pattern=r"^[ -~]+$", description="Where to go on: what the page before gave."),
]
_Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=SHORTEST_KEY,
        max_length=LONGEST_KEY,
        pattern=KEY_LETTERS,
        description="A random name for this request. The same request with the same key is carried out once, however"
        " often it arrives; its first answer is kept for a day.",
    ),
]
_Language = Literal["en", "de"]
_PATH: dict[str, Any] = {"campaign": _CampaignId, "participant": _ParticipantId}
_QUERY: dict[str, tuple[Any, Any]] = {
    "limit": (_Limit, 100),
    "cursor": (_Cursor, None),
    "language": (_Language, "en"),
    "what": (Awaited | None, None),
}
_CALLERS = frozenset({"who", "secret", "link"})
_TAGS: dict[Role, str] = {"secret": "participation", "link": "participation", "anybody": "public"}
Handler = Callable[..., Awaitable[Response]]


def api_route(
    address: str,
    handler: Handler,
    *,
    by: Role,
    summary: str,
    name: str | None = None,
    description: str | None = None,
    tag: str | None = None,
    refusals: tuple[int, ...] | None = None,
    responses: dict[int | str, dict[str, Any]] | None = None,
    **more: Any,
) -> ApiRoute:
    """Return a route of the interface; refusals that are not named are those that its role and method have."""
    method, _, path = address.partition(" ")
    if refusals is None:
        refusals = _refusals(by, method, path, bool(more.pop("has_query", False)))
    return ApiRoute(
        PREFIX + path,
        handler,
        by=by,
        methods=[method],
        summary=summary,
        name=name or handler.__name__,
        operation_id=name or handler.__name__,
        description=inspect.cleandoc(description or handler.__doc__ or ""),
        tags=[tag or _TAGS.get(by, "campaigns")],
        responses={**(responses or {}), **problems(*refusals)},
        **more,
    )


def signed(handle: Handler, route: Route, *, takes_key: bool = False, body: type[Any] | None = None) -> Handler:
    """Return a handler with the signature that FastAPI reads: the names in a route's path, its body, query and key."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parts = [inspect.Parameter("request", kind, annotation=Request)]
    parts += [inspect.Parameter(one, kind, annotation=_PATH[one]) for one in route.names]
    if body is not None:
        hint = body_of(body)
        left_out = type(None) in get_args(get_args(hint)[0])
        parts.append(
            inspect.Parameter("body", kind, annotation=hint, default=None if left_out else inspect.Parameter.empty)
        )
    named = {one: _QUERY[one] for one in route.query} | ({"key": (_Key, None)} if takes_key else {})
    parts += [inspect.Parameter(one, kind, annotation=hint, default=usual) for one, (hint, usual) in named.items()]
    handle.__signature__ = inspect.Signature(parts)  # type: ignore[attr-defined]
    return handle


def _refusals(by: Role, method: str, path: str, has_query: bool) -> tuple[int, ...]:
    """Return the statuses of refusals, for the interface's description."""
    if by == "anybody":
        return (404, 422) if "{" in path else ()
    if by in ("secret", "link"):
        found = (401, 403, 404, 409) if method == "GET" else (401, 403, 409, 422)
        return (*found, 422) if has_query else found
    return (401, 403, 404, 422) if method == "GET" else (401, 403, 404, 409, 422)


@cache
def use_case_routes() -> tuple[ApiRoute, ...]:
    """Return the routes of all use cases; made once, since applications share them."""
    return tuple(_route(name, use_case, route) for name, (use_case, route) in reached().items())


def _route(name: str, use_case: UseCase[Any, Any], route: Route) -> ApiRoute:
    return api_route(
        route.address,
        _Handler(name, use_case, route).handler(),
        by=route.by,
        summary=route.summary,
        name=name,
        description=use_case.function.__doc__,
        status_code=route.status,
        response_model=None if route.status == 204 else _answered(name, use_case, route),
        has_query=bool(route.query),
    )


class _Handler:
    """Answers the requests for one use case."""

    def __init__(self, name: str, use_case: UseCase[Any, Any], route: Route) -> None:
        self._name, self._route, self._body = name, route, use_case.body
        self._names = route.names
        self._submitted = use_case.kind == "submission"
        self._takes_key = use_case.takes_key
        taken = list(inspect.signature(use_case.function).parameters)[1:]
        self._takes_caller = taken[0] in _CALLERS
        self._whole = None if self._body is None else _argument_of(use_case, self._body)

    def handler(self) -> Handler:
        """Return the function that FastAPI calls, with a signature made from the route."""

        async def handle(request: Request, **given: Any) -> Response:
            return await self._answer(request, given)

        return signed(handle, self._route, takes_key=self._takes_key, body=self._body)

    async def _answer(self, request: Request, given: dict[str, Any]) -> Response:
        app, caller = app_of(request), caller_of(request)
        if self._route.query == ("language",):
            require_only_language(request)
        key = given.pop("key", None)
        args = [caller.who] if self._takes_caller else []
        args += [given.pop(one) for one in self._names]
        if self._body is not None:
            require_json(request)
            body = given.pop("body") or self._body()
            given |= {self._whole: body} if self._whole is not None else body.arguments()
        use_case = getattr(app.service, self._name)
        if self._submitted:
            return answer(await asyncio.wrap_future(use_case.soon(*args, **given)))
        if key is not None:
            return await self._once(request, key, lambda found: use_case.once(found, *args, **given))
        return self._response(self._encoded(await self._run(app, caller, lambda: use_case(*args, **given))))

    async def _run(self, app: AppState, caller: Caller, do: Callable[[], Any]) -> Any:
        return await (app.compute(caller.staff, do) if self._route.computes else app.run(do))

    async def _once(self, request: Request, key: str, do: Callable[[IdempotencyKey], tuple[bytes, bool]]) -> Response:
        """Carry a request out once; a secret that has ended gets no answer, not even one that it got before."""
        app, caller = app_of(request), caller_of(request)
        if not isinstance(caller.who, Principal):
            await app.run(app.service.require_open, caller.secret)
        asked = f"{request.method}\n{request.url.path}\n{hashlib.sha256(await request.body()).hexdigest()}".encode()
        found = IdempotencyKey(who=caller.id, key=key, asked=asked, encode=self._encoded)
        content, repeated = await app.run(do, found)
        return self._response(content, {"Idempotency-Replayed": "true"} if repeated else None)

    def _encoded(self, found: Any) -> bytes:
        if found is None:
            return b""
        return encoded({self._route.wraps: found} if self._route.wraps else found)

    def _response(self, content: bytes, headers: dict[str, str] | None = None) -> Response:
        status = self._route.status
        if status == 204:
            return Response(status_code=204, headers=headers)
        return Response(content, status_code=status, media_type="application/json", headers=headers)


def require_only_language(request: Request) -> None:
    """Refuse a query with anything but one language, so that a misspelt one does not get English."""
    if [name for name, _ in request.query_params.multi_items()] not in ([], ["language"]):
        raise InputError("language is the only thing that can be asked for, and once.", field="language")


def _answered(name: str, use_case: UseCase[Any, Any], route: Route) -> Any:
    """Return what an answer holds."""
    found = route.answers or get_type_hints(use_case.function)["return"]
    model: Any = create_model
    return model(f"{name.title().replace('_', '')}Answer", **{route.wraps: (found, ...)}) if route.wraps else found


def _argument_of(use_case: UseCase[Any, Any], model: type[Any]) -> str | None:
    """Return the argument that is the body itself; None if the body's fields are arguments."""
    if issubclass(model, Form):
        return None
    return next(name for name, hint in get_type_hints(use_case.function).items() if hint is model)


# -- logging in and out ------------------------------------------------------------------------------------------------


async def log_in(request: Request, given: LogIn) -> Response:
    """Begin a session. Its token comes in a cookie; further attempts after failures must wait ever longer."""
    require_json(request)
    app = app_of(request)
    try:
        begun = await app.run(app.service.log_in, given.name, given.password, address_of(request))
    except NotAllowed as refused:
        raise not_logged_in(str(refused)) from None
    response = answer(_shown(begun))
    begin_cookie(app, response, begun)
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
    end_cookie(app, response)
    return response


def _shown(begun: Session) -> dict[str, Any]:
    who = begun.principal
    return {"name": who.name, "role": who.role, "csrf": begun.csrf, "expires_at": begun.expires_at}


SESSION_ROUTES = (
    api_route(
        "POST /session",
        log_in,
        by="anybody",
        summary="Log in",
        tag="session",
        response_model=LoggedIn,
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
