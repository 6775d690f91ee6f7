"""The OpenAPI document: what each endpoint takes, gives and refuses; served, and tested against what really happens."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from hushbid.server.api.problems import MEDIA_TYPE, Problem
from hushbid.server.api.schemas import Delivery, Exchange, Invite, Report, describe_views

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
    503: "The server is busy, starting or stopping; asking again may help.",
}
_LINK = {
    "type": "http",
    "scheme": "bearer",
    "description": "A participant's personal link, what stands after the #; used once, to exchange it for a secret.",
}
_SECRET = {
    "type": "http",
    "scheme": "bearer",
    "description": "The secret that a participant's device drew, and that her link was exchanged for.",
}
_ALWAYS = (400, 405, 413, 500, 503)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an endpoint, for its documentation."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in sorted({*statuses, *_ALWAYS})}


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of an application; made once."""
    if app.openapi_schema is None:
        describe_views()
        found = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes, tags=_TAGS)
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        for model in (Problem, Invite, Report, Delivery, Exchange):
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= schema.pop("$defs", {})
            schemas[model.__name__] = schema
        found["components"]["securitySchemes"] |= {"link": _LINK, "secret": _SECRET}
        for path, operations in found["paths"].items():
            if "participation" in path.split("/"):
                for operation in operations.values():
                    operation["security"] = [{"link" if path.endswith("/secret") else "secret": []}]
        app.openapi_schema = found
    return app.openapi_schema
