"""Turn a server's refusal into one of our exceptions.

A refusal arrives as problem+json (RFC 9457). Its type decides which exception it is, then its status; the exception
carries the server's sentence, cut to a length that fits a message.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

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

_BY_TYPE: dict[str, type[HushbidError]] = {
    "conflict": Conflict,
    "input-error": InputError,
    "not-allowed": NotAllowed,
    "not-found": NotFound,
    "throttled": Throttled,
}
_BY_STATUS: dict[int, type[HushbidError]] = {
    **dict.fromkeys((400, 413, 415, 422), InputError),
    **dict.fromkeys((401, 403), NotAllowed),
    404: NotFound,
    409: Conflict,
    429: Throttled,
}
_LONGEST_SENTENCE, _LONGEST_FIELD = 500, 100


class ConflictAfterRetry(Conflict):
    """A second attempt was refused, possibly because the first, whose answer got lost, was carried out."""


class LinkInvalid(NotAllowed):
    """A link or a secret opens nothing."""

    def __init__(self, sentence: str, *, reason: str, at: datetime | None) -> None:
        super().__init__(sentence)
        self.reason = reason
        """unknown, used, replaced, ended, closed or left."""

        self.at = at
        """Since when; None if there is no such moment."""


def refusal(status: int, content: bytes) -> HushbidError:
    """Return the exception for a response with a status of 400 or more."""
    problem: dict[str, Any] = {}
    with suppress(ValueError):
        found = json.loads(content)
        problem = found if isinstance(found, dict) else {}
    sentence = _sentence(problem, status)
    if status >= 500:
        return ServerFailed(sentence)
    name = str(problem.get("type", "")).rstrip("/").rpartition("/")[2].rpartition(":")[2]
    kind = _BY_TYPE.get(name) or _BY_STATUS.get(status, CampaignError)
    reason = problem.get("reason")
    if kind is NotAllowed and isinstance(reason, str):
        at = None
        with suppress(RecordError):
            at = time_of(str(problem.get("at")), "at")
        return LinkInvalid(sentence, reason=reason[:_LONGEST_FIELD], at=at)
    # the first field that is wrong, by the library's name for it, and its row
    errors = problem.get("errors")
    first = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
    field, row = first.get("field"), first.get("row")
    shown = field[:_LONGEST_FIELD] if isinstance(field, str) else None
    return kind(sentence, field=shown, row=row if type(row) is int else None)


def strange(what: str) -> ServerFailed:
    """Return the error for an answer that no Hushbid server of this version gives."""
    return ServerFailed(f"{what}: this is not a Hushbid server, or not its version.")


def an_object(answer: Any) -> dict[str, Any]:
    """Require that an answer is a JSON object."""
    if not isinstance(answer, dict):
        raise strange("The answer is not an object")
    return answer


def _sentence(problem: Mapping[str, Any], status: int) -> str:
    for name in ("detail", "title"):
        text = problem.get(name)
        if isinstance(text, str) and text.strip():
            short = " ".join(text.split())[:_LONGEST_SENTENCE]
            return short if short.endswith(".") else f"{short}."
    return f"The server refused with status {status}."
