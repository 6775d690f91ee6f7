"""HTTP/1.1 as uvicorn speaks it with httptools, with limits it lacks: on the size of a request's head, and on its time.

Something that is not HTTP at all is refused as a problem too, like every other error.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hushbid.campaign.http.problems import MEDIA_TYPE, problem

HEAD_LIMIT = 64 * 1024
HEAD_SECONDS = 30.0
_TOO_LARGE = "The head of the request is too large."
_UNREADABLE = "This is not an HTTP request that can be read."


class Protocol(HttpToolsProtocol):
    """One connection."""

    _in_head = False
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.access_log = False  # its lines hold paths and addresses; those of ``frame`` do not

    def connection_made(self, transport: Any) -> None:
        """Give the first request some time to arrive."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head that is not complete."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_LIMIT and not self.transport.is_closing():
            self._refuse(431, _TOO_LARGE)

    def on_message_begin(self) -> None:
        """A head begins."""
        if not self._in_head:
            self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._in_head = False
        self._stop_clock()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(400, _UNREADABLE)

    def _expect_head(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._stop_clock()
        self._deadline = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._late)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        if self._in_head and not self.transport.is_closing():
            self.transport.close()

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer by hand, since no request has come to the application."""
        self._stop_clock()
        content = bytes(problem(status, sentence).body)
        head = (
            f"HTTP/1.1 {status} Refused\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(content)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + content)
        self.transport.close()
