"""Requests that may arrive twice but must be carried out once.

A client that got no answer cannot know whether its request was carried out, so it sends it again with the same
``Idempotency-Key``. The first answer is stored in the transaction that carries the request out; a repetition gets that
answer, and another request under the same key is refused. Refusals are not stored: what was refused may be tried again.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ParamSpec, TypeVar

from fastapi import Header, Request, Response

from hushbid.server.api.schemas import encoded
from hushbid.server.api.state import app_of
from hushbid.server.service.idempotency import KEY_LETTERS, LONGEST_KEY, SHORTEST_KEY, IdempotencyKey
from hushbid.server.service.use_case import Asked

P = ParamSpec("P")
T = TypeVar("T")
Key = Annotated[
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


@dataclass(frozen=True, slots=True)
class Once:
    """A request that is carried out, or gets the answer that it got before.

    As in ``await Once(request, who.id, key, status=201).do(service.draft, who, settings)``.
    """

    request: Request
    who: str
    """Whose keys are told from others'."""

    key: str | None
    """Without one it is carried out whenever it comes."""

    status: int = 200
    shape: Callable[[Any], Any] = lambda found: found
    """Makes the answer from what the use case returns."""

    async def do(self, use_case: Asked[P, T], *args: P.args, **kwargs: P.kwargs) -> Response:
        """Make the change, and answer."""
        app = app_of(self.request)
        run = app.run
        if self.key is None:
            return self._response(self._encode(await run(use_case, *args, **kwargs)))
        # another request under the same key is refused, so what is asked is stored too
        asked = await _fingerprint(self.request)
        key = IdempotencyKey(who=self.who, key=self.key, asked=asked, encode=self._encode)
        content, repeated = await run(lambda: use_case.once(key, *args, **kwargs))
        return self._response(content, {"Idempotency-Replayed": "true"} if repeated else None)

    def _encode(self, found: Any) -> bytes:
        return b"" if found is None else encoded(self.shape(found))

    def _response(self, content: bytes, headers: dict[str, str] | None = None) -> Response:
        if self.status == 204:
            return Response(status_code=204, headers=headers)
        return Response(content, status_code=self.status, media_type="application/json", headers=headers)


async def _fingerprint(request: Request) -> bytes:
    """What was asked for, so that another request under the same key is noticed."""
    body = hashlib.sha256(await request.body()).hexdigest()
    return f"{request.method}\n{request.url.path}\n{body}".encode()
