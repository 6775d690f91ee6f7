"""Every refusal and every fault as problem+json (RFC 9457), in one sentence that repeats nobody's datum.

What a request contained never comes back: not in an answer, not in a log. So validation errors name the field and what
is allowed, and a fault of the server is logged as the places in the code it passed, without its message, which could
quote a bid.
"""

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from hushbid.campaign.reading import SpecError
from hushbid.common.documents import time_text
from hushbid.errors import (
    CampaignError,
    Conflict,
    HushbidError,
    InputError,
    MarketError,
    MissingExtra,
    NotAllowed,
    NotFound,
    ReleaseError,
    ServerFailed,
    Throttled,
    Unwritable,
)
from hushbid.server.faults import log_fault
from hushbid.server.model.access import LinkInvalid, Reason

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:hushbid:problem:"
AUTHENTICATE = {"WWW-Authenticate": "Bearer"}
_MOST_FAULTS = 10
_LONGEST_SENTENCE = 500

# The first that fits: a subclass stands before its parent.
_STATUSES: tuple[tuple[type[HushbidError], int, str], ...] = (
    (InputError, 422, "input-error"),
    (MarketError, 422, "input-error"),
    (NotFound, 404, "not-found"),
    (LinkInvalid, 401, "not-logged-in"),  # with what opens nothing one is nobody
    (NotAllowed, 403, "not-allowed"),
    (Conflict, 409, "conflict"),
    (ReleaseError, 409, "conflict"),
    (Throttled, 429, "throttled"),
    (ServerFailed, 503, "server-failed"),
    (Unwritable, 503, "server-failed"),
    (MissingExtra, 501, "missing-extra"),
    (CampaignError, 500, "server-failed"),
)
_NAMES = {
    400: "input-error",
    401: "not-logged-in",
    403: "not-allowed",
    404: "not-found",
    405: "wrong-method",
    409: "conflict",
    413: "too-large",
    415: "input-error",
    422: "input-error",
    429: "throttled",
    503: "server-failed",
}
_SENTENCES = {
    400: "The request cannot be read.",
    404: "There is nothing at this address.",
    405: "This address does not take requests of this kind.",
}
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")  # of a model, of a dataclass
FAULT = "The server has a fault of its own; nothing of the request was kept in its log."


def kinds() -> dict[str, list[int]]:
    """Return the kinds of problems by the name in their type, each with its statuses."""
    found: dict[str, set[int]] = {"refused": set()}
    for status, name in [*_NAMES.items(), *((status, name) for _, status, name in _STATUSES)]:
        found.setdefault(name, set()).add(status)
    return {name: sorted(statuses) for name, statuses in sorted(found.items())}


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    field: str = Field(description="Which part of the request, by its name: bid, limit, people.3.id.")
    problem: str = Field(description="What is allowed there, in a sentence.")
    row: int | None = Field(default=None, description="Which row of a list, counted from 0; left out if none is.")


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    type: str = Field(description=f"A name for the kind of problem, beginning with {PREFIX}.")
    title: str = Field(description="The status in words.")
    status: int = Field(description="The status of the response.")
    detail: str = Field(description="What is wrong, in one sentence.")
    errors: list[Fault] = Field(default=[], description="Each thing that is wrong with the request.")
    reason: Reason | None = Field(default=None, description="Why a link or a secret opens nothing; left out otherwise.")
    at: datetime | None = Field(default=None, description="Since when; left out if there is no such moment.")


class Refusal(HTTPException):
    """A refusal with a sentence of ours; Starlette's and FastAPI's own sentences are theirs."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, sentence, headers)


def problem(
    status: int,
    detail: str,
    *,
    name: str | None = None,
    errors: Iterable[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
    entry: LinkInvalid | None = None,
) -> Response:
    """A response that says why not."""
    content: dict[str, Any] = {
        "type": PREFIX + (name or _NAMES.get(status, "server-failed" if status >= 500 else "refused")),
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": _sentence(detail),
    }
    found = list(errors)
    if found:
        content["errors"] = found
    if entry is not None:
        content |= {"reason": entry.reason} | ({} if entry.at is None else {"at": time_text(entry.at)})
    return Response(json.dumps(content), status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def handle_problems(app: FastAPI) -> None:
    """Let every refusal become a problem. What is not foreseen is caught in ``middleware``."""
    app.add_exception_handler(HushbidError, _refused)
    app.add_exception_handler(RequestValidationError, _misshapen)
    app.add_exception_handler(HTTPException, _by_status)


def fault(error: BaseException, where: str) -> Response:
    """The answer to what nobody foresaw; its kind and its way through the code are logged, not what it says."""
    log_fault(error, where)
    return problem(500, FAULT)


def refusal(error: HushbidError | Refusal) -> Response:
    """The answer to something that was refused."""
    if isinstance(error, Refusal):
        return problem(error.status_code, error.detail, headers=error.headers)
    for kind, status, name in _STATUSES:
        if isinstance(error, kind):
            faults = _faults_of(error)
            entry = error if isinstance(error, LinkInvalid) else None
            return problem(status, str(error), name=name, errors=faults, headers=_advice(error, status), entry=entry)
    return problem(500, FAULT)


def _advice(error: HushbidError, status: int) -> dict[str, str]:
    if status == 401:
        return AUTHENTICATE
    seconds = 1.0 if error.retry_after is None and status == 503 else error.retry_after
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HushbidError)
    answer = refusal(error)
    if answer.status_code >= 500:
        log_fault(error, template(request.scope))
    return answer


async def _by_status(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = error.status_code
    if isinstance(error, Refusal):
        return refusal(error)
    headers = dict(error.headers or {})
    if status == 405:
        headers["Allow"] = ", ".join(sorted(_methods(request)))
    return problem(status, _SENTENCES.get(status, f"{HTTPStatus(status).phrase}."), headers=headers)


async def _misshapen(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return misshapen(error.errors())


def misshapen(found: Iterable[Mapping[str, Any]]) -> Response:
    """The answer to a request whose form is wrong, or whose fields the domain refuses: all of it, from Pydantic's
    findings. Values are left out, unless a sentence of the domain's own shows a setting."""
    faults: list[dict[str, Any]] = []
    sentences: list[str] = []
    for one in list(found)[:_MOST_FAULTS]:
        refused = one.get("ctx", {}).get("error")
        told = isinstance(refused, HushbidError)
        for fault in _faults_of(refused, one) if told else [_formal(one)]:
            if fault not in faults:
                faults.append(fault)
                sentences.append(fault["problem"] if told else _told(fault))
    return problem(422, " ".join(sentences[:3]) or "The request has the wrong form.", errors=faults)


def _faults_of(error: HushbidError, found: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """What the domain refuses, in a body or in the place of it that Pydantic ``found``."""
    told = error.problems if isinstance(error, SpecError) else [(error.field, str(error))]
    row = {} if error.row is None else {"row": error.row}
    named = [(name if found is None else _field(found, name), text) for name, text in told]
    return [{"field": name, "problem": _sentence(text), **row} for name, text in named[:_MOST_FAULTS] if name]


def _formal(found: Mapping[str, Any]) -> dict[str, Any]:
    """What has the wrong form, in Pydantic's words or those of a request's own model."""
    told = "Extra inputs are not permitted" if found.get("type") in _UNKNOWN else str(found.get("msg", ""))
    return {"field": _field(found), "problem": _sentence(told)}


def _told(fault: Mapping[str, Any]) -> str:
    return f"{fault['field']}: {fault['problem']}"


def _field(found: Mapping[str, Any], inside: str | None = None) -> str:
    """Which field is wrong, by the name that the library gives it; names that the sender invented are left out."""
    kind, parts = str(found.get("type", "")), list(found.get("loc", ()))
    if kind == "json_invalid":
        parts = parts[:1]
    elif kind in (*_UNKNOWN, "invalid_key"):
        parts = parts[:-1]
    shown = [
        str(part) for part in parts if isinstance(part, int) or str(part).replace("_", "").replace("-", "").isalnum()
    ]
    if len(shown) > 1 or inside is not None:
        shown = shown[1:]  # whether it came in the body, the address or a header
    if inside is not None:
        if shown[-1:] == [inside.partition("[")[0]]:  # an entry of a list, questions[2].bounds, names the list itself
            shown.pop()
        shown.append(inside)
    return ".".join(shown) or "request"


def _sentence(text: str) -> str:
    """One line of bearable length that ends as a sentence does."""
    cleaned = " ".join(text.removeprefix("Value error, ").split()) or "This is not allowed"
    if len(cleaned) > _LONGEST_SENTENCE:
        cleaned = f"{cleaned[:_LONGEST_SENTENCE]} …"
    return cleaned if cleaned.endswith((".", "?", "!")) else f"{cleaned}."


def _methods(request: Request) -> set[str]:
    """All methods that an address takes; the router itself names those of one route only."""
    found: set[str] = set()
    for method in ("GET", "PUT", "POST", "DELETE"):
        scope = {**request.scope, "method": method}
        for route in request.app.router.routes:
            if route.matches(scope)[0].value == 2:
                found.add(method)
    return found


def template(scope: Mapping[str, Any]) -> str:
    """The pattern of the address that was asked for, which holds nothing of the request; a dash if there is none."""
    return str(getattr(scope.get("route"), "path", "-"))
