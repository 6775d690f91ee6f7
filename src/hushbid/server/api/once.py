"""Requests that may arrive twice but must be carried out once.

A client that got no answer cannot know whether its request was carried out, so it sends it again with the same
``Idempotency-Key``. The first answer is stored in the transaction that carries the request out; a repetition gets that
answer, and another request under the same key is refused. Refusals are not stored: what was refused may be tried again.
"""

import hashlib
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Header, Request, Response

from hushbid.server.api.schemas import encoded
from hushbid.server.api.state import app_of
from hushbid.server.service.idempotency import Repeatable

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=16,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="A random name for this request. The same request with the same key is carried out once, however"
        " often it arrives; its first answer is kept for a day.",
    ),
]


async def once(
    request: Request,
    who: str,
    key: str | None,
    do: Callable[[Repeatable | None], Any],
    *,
    status: int = 200,
    shape: Callable[[Any], Any] = lambda found: found,
    slow: bool = False,
) -> Response:
    """Carry a request out, or repeat the answer it got; ``shape`` makes the answer from what the service returns.

    ``do`` hands on what it is given, as in ``lambda repeat: service.discard.once(repeat, who, campaign)``.
    """
    app = app_of(request)
    run = app.compute if slow else app.run

    def encode(found: Any) -> bytes:
        return b"" if found is None else encoded(shape(found))

    if key is None:
        return _response(encode(await run(do, None)), status)
    # another request under the same key is refused, so what is asked is stored too
    repeatable = Repeatable(who=who, key=key, asked=await _fingerprint(request), encode=encode)
    content, repeated = await run(app.service.once, repeatable, do)
    return _response(content, status, {"Idempotency-Replayed": "true"} if repeated else None)


def _response(content: bytes, status: int, headers: dict[str, str] | None = None) -> Response:
    if status == 204:
        return Response(status_code=204, headers=headers)
    return Response(content, status_code=status, media_type="application/json", headers=headers)


async def _fingerprint(request: Request) -> bytes:
    """What was asked for, so that another request under the same key is noticed."""
    body = hashlib.sha256(await request.body()).hexdigest()
    return f"{request.method}\n{request.url.path}\n{body}".encode()
