"""Bodies and answers as JSON, and the OpenAPI document that describes all of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Body, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import Field, TypeAdapter, ValidationError, WrapValidator

from hushbid.errors import HushbidError
from hushbid.server.http.auth import COOKIE, CSRF_HEADER
from hushbid.server.http.problems import MEDIA_TYPE, Problem, Refusal
from hushbid.server.model.access import Role
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.views import CampaignView, Page
from hushbid.server.service.bodies import Form, Settings

_anything: TypeAdapter[Any] = TypeAdapter(Any)


class LogIn(Form):
    """Who wants to come in."""

    name: str = Field(min_length=1, max_length=200)
    """The user's name."""

    password: str = Field(min_length=1, max_length=1000, repr=False, json_schema_extra={"format": "password"})
    """The user's password."""


class Health(Form):
    """That the server is there."""

    status: Literal["ok"]
    version: str
    """Of Hushbid."""


class LoggedIn(Form):
    """A session; its token is in the cookie only."""

    name: str
    role: Literal["analyst", "auditor"]
    csrf: str
    """To be sent in the header X-CSRF-Token with every change."""

    expires_at: datetime


def body_of(model: type[Any]) -> Any:
    """Return the annotation by which FastAPI reads a request's body, once it is clear who sends it."""
    kind: Any = Settings if model is CampaignSettings else model
    try:
        TypeAdapter(kind).validate_python({})
    except (ValidationError, HushbidError):
        return Annotated[kind, WrapValidator(_of_whole_characters), Body()]
    # nothing in it is needed, so it may be left out
    return Annotated[kind | None, WrapValidator(_of_whole_characters), Body()]


def _of_whole_characters(value: Any, read: Callable[[Any], Any]) -> Any:
    r"""Read a body, and refuse what JSON can spell and Unicode lacks, such as ``"\ud800"``, unless a field did."""
    found = read(value)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("Every text must be one that Unicode has.") from None
    return found


def require_json(request: Request) -> None:
    """Refuse a body that does not say what it is; any other that is not JSON was refused when it was read."""
    if not request.headers.get("content-type") and request.headers.get("content-length", "0") != "0":
        raise Refusal(422, "The content must be JSON, and Content-Type application/json.")


def plain(found: Any) -> Any:
    """A view, or something made of views, as what goes into JSON."""
    if isinstance(found, CampaignView):
        values = {field.name: getattr(found, field.name) for field in fields(found)}
        return {**values, "settings": None if found.settings is None else found.settings.to_dict()}
    if isinstance(found, Page):
        return {"items": [plain(one) for one in found.items], "cursor": found.cursor}
    return found


def encoded(found: Any) -> bytes:
    """A view as JSON."""
    return _anything.dump_json(plain(found))


def answer(found: Any, status: int = 200) -> Response:
    """A response that holds a view."""
    return Response(encoded(found), status_code=status, media_type="application/json")


# -- the OpenAPI document ----------------------------------------------------------------------------------------------

_ABOUT = """\
Campaigns that buy data from people who each name their own price for privacy.

Every refusal is an `application/problem+json` (RFC 9457) with one sentence. Money is in whole minor units of the
campaign's currency, times are UTC. Lists come in pages: ask again with the `cursor` of the page before. A POST or
DELETE with an `Idempotency-Key` is carried out once, however often it arrives; a PUT may be repeated as it is.
"""
_TAGS = [
    {"name": "campaigns", "description": "For analysts; auditors may read."},
    {"name": "participation", "description": "For one participant, by her device's secret."},
    {"name": "session", "description": "Logging in with a password, for browsers."},
    {"name": "public", "description": "For everybody."},
]
_MEANINGS = {
    400: "The request cannot be read.",
    401: "Nobody is logged in, or the token is not valid.",
    403: "Not for this role.",
    404: "There is no such thing.",
    405: "The address does not take this method.",
    409: "Not in this state, or something else was said before, which stands.",
    413: "The request is too large.",
    415: "The content has the wrong type.",
    422: "Something in the request is not allowed; the sentence names the field.",
    429: "Too many attempts; later.",
    500: "A fault of the server.",
    501: "The server lacks an optional package for this; the sentence names it.",
    503: "The server is busy, starting or stopping; asking again may help.",
}
_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API token (`hushbid users token`), for analysts and auditors.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": "A session begun with POST /session, named __Host-hushbid over https. Every change also needs"
        f" its CSRF token in the header {CSRF_HEADER}.",
    },
    "link": {
        "type": "http",
        "scheme": "bearer",
        "description": "A participant's personal link, what stands after the #; used once, to exchange it for a"
        " secret.",
    },
    "secret": {
        "type": "http",
        "scheme": "bearer",
        "description": "The secret that a participant's device drew, and that her link was exchanged for.",
    },
}
_SECURITY: dict[Role, list[str]] = {
    "staff": ["token", "session"],
    "analyst": ["token", "session"],
    "link": ["link"],
    "secret": ["secret"],
}
_ALWAYS = (400, 405, 413, 500, 503)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an endpoint, for its documentation."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in sorted({*statuses, *_ALWAYS})}


def document(app: FastAPI, roles: Mapping[tuple[str, str], Role]) -> dict[str, Any]:
    """Return the OpenAPI document of an application, given who may ask for which method and path."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            description=_ABOUT,
            routes=app.routes,
            tags=_TAGS,
            separate_input_output_schemas=False,
        )
        components = found.setdefault("components", {})
        components["securitySchemes"] = _SCHEMES
        described = TypeAdapter(Problem).json_schema(ref_template="#/components/schemas/{model}")
        components["schemas"] |= {**described.pop("$defs", {}), "Problem": described}
        for path, operations in found["paths"].items():
            for method, operation in operations.items():
                needed = _SECURITY.get(roles[method.upper(), path])
                if needed is not None:
                    operation["security"] = [{one: []} for one in needed]
        app.openapi_schema = found
    return app.openapi_schema
