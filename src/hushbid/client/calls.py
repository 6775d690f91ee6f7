"""What to ask a server, and how to read what it answers, without doing either.

A conversation is a generator: it yields a :class:`Call` (or :class:`Work` to be done here) and receives the answer. So
one conversation serves programs that wait and programs that do not; see `hushbid.client.transport`.

A refusal arrives as problem+json (RFC 9457) and becomes one of our exceptions, with the server's sentence.
"""

import json
import secrets
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from hushbid.common.documents import time_of
from hushbid.errors import (
    CampaignError,
    Conflict,
    HushbidError,
    InputError,
    NotAllowed,
    NotFound,
    RecordError,
    ServerFailed,
    Throttled,
)

T = TypeVar("T")
PREFIX = "/api/v1"
_BY_STATUS: dict[int, type[HushbidError]] = {
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    429: Throttled,
}
_BY_TYPE: dict[str, type[HushbidError]] = {
    "conflict": Conflict,
    "input-error": InputError,
    "not-allowed": NotAllowed,
    "not-found": NotFound,
    "throttled": Throttled,
}
_BUSY = frozenset({429, 502, 503, 504})
_LONGEST_SENTENCE, _LONGEST_FIELD = 500, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request. Asking twice does no more than asking once, so it may be repeated when an answer got lost."""

    method: str
    """GET, PUT, POST or DELETE."""

    path: str
    """Below the API's prefix; no secret ever stands in it."""

    content: Mapping[str, Any] | None = None
    """Sent as JSON."""

    query: Mapping[str, str] = field(default_factory=dict)
    """Appended to the path."""

    key: str | None = field(default=None, repr=False)
    """By which the server recognises a repeated POST."""

    bearer: str | None = field(default=None, repr=False)
    """Who asks, if not whoever the connection is for."""

    expect: str = "json"
    """``"json"``, ``"text"`` or ``"bytes"``."""


@dataclass(frozen=True, slots=True)
class Work:
    """Something to be done here that may take a while, such as drawing noise and storing it."""

    do: Callable[[], Any]
    """What to do; its result is the answer."""


class ConflictAfterRetry(Conflict):
    """A refusal of the second attempt, possibly because the first one, whose answer got lost, was carried out."""


class NoEntry(NotAllowed):
    """A link or a secret that opens nothing."""

    def __init__(self, sentence: str, *, reason: str, at: datetime | None) -> None:
        super().__init__(sentence)
        self.reason = reason
        """unknown, used, replaced, ended, closed or left."""

        self.at = at
        """Since when; None if there is no such moment."""


Conversation = Generator[Call | Work, Any, T]


def get(path: str, *, expect: str = "json", **query: object) -> Call:
    """A question that changes nothing."""
    given = {name: str(value) for name, value in query.items() if value is not None}
    return Call(method="GET", path=path, query=given, expect=expect)


def put(path: str, content: Mapping[str, Any]) -> Call:
    """Let something be so."""
    return Call(method="PUT", path=path, content=content)


def post(path: str, content: Mapping[str, Any] | None = None) -> Call:
    """Let something happen once."""
    return Call(method="POST", path=path, content=content or {}, key=secrets.token_hex(16))


def say(path: str) -> Call:
    """Let something be known; saying it again changes nothing, so it needs no key."""
    return Call(method="POST", path=path, content={})


def delete(path: str) -> Call:
    """Let something be gone."""
    return Call(method="DELETE", path=path, key=secrets.token_hex(16))


def asking(call: Call) -> Conversation[Any]:
    """The conversation that consists of one call."""
    return (yield call)


def asking_object(call: Call) -> Conversation[dict[str, Any]]:
    """The conversation that consists of one call, whose answer must be an object."""
    return an_object((yield call))


def an_object(found: Any) -> dict[str, Any]:
    """An answer that must be an object."""
    if not isinstance(found, dict):
        raise strange("The answer is not an object")
    return found


def strange(what: str) -> ServerFailed:
    """The error of an answer that no Hushbid server of this version gives."""
    return ServerFailed(f"{what}: this is not a Hushbid server, or not its version.")


def busy(status: int) -> bool:
    """Whether the same call may succeed a little later."""
    return status in _BUSY


def answer(call: Call, status: int, content: bytes, *, attempt: int = 1, retry_after: float | None = None) -> Any:
    """What a response says; a refusal is raised, with the seconds after which the server would listen again."""
    if status >= 400:
        problem = refusal(status, content)
        # an earlier attempt may have been carried out
        if attempt > 1 and type(problem) is Conflict:
            problem = ConflictAfterRetry(str(problem), field=problem.field, row=problem.row)
        problem.retry_after = retry_after
        raise problem
    if status >= 300:
        raise ServerFailed(f"The server at the other end redirects (status {status}); give its own address.")
    if call.expect == "bytes":
        return content
    if call.expect == "text":
        return content.decode("utf-8", errors="replace")
    if not content:
        return {}
    try:
        return json.loads(content)
    except ValueError:
        raise strange("The answer is not JSON") from None


def refusal(status: int, content: bytes) -> HushbidError:
    """The exception that a refusal stands for."""
    try:
        problem = json.loads(content)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}
    sentence = _sentence(problem, status)
    if status >= 500:
        return ServerFailed(sentence)
    # the problem's type decides, then its status
    name = str(problem.get("type", "")).rstrip("/").rpartition("/")[2].rpartition(":")[2]
    kind = (
        _BY_TYPE.get(name)
        or _BY_STATUS.get(status)
        or (InputError if status in (400, 413, 415, 422) else CampaignError)
    )
    reason = problem.get("reason")
    if kind is NotAllowed and isinstance(reason, str):
        return NoEntry(sentence, reason=reason[:_LONGEST_FIELD], at=_moment(problem.get("at")))
    field, row = _place(problem)
    return kind(sentence, field=field, row=row)


def _place(problem: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The field that is wrong, or the first of several, by the name that the library gives it; and the row."""
    errors = problem.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, dict):
        return None, None
    name, row = first.get("field"), first.get("row")
    return name[:_LONGEST_FIELD] if isinstance(name, str) else None, row if type(row) is int else None


def _moment(text: object) -> datetime | None:
    try:
        return time_of(text, "at") if isinstance(text, str) else None
    except RecordError:
        return None


def _sentence(problem: Mapping[str, Any], status: int) -> str:
    for name in ("detail", "title"):
        found = problem.get(name)
        if isinstance(found, str) and found.strip():
            text = " ".join(found.split())[:_LONGEST_SENTENCE]
            return text if text.endswith(".") else f"{text}."
    return f"The server refused with status {status}."
