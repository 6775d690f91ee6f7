"""HTTP/1.1 as uvicorn speaks it with httptools, with limits it lacks: on the size of a request's head, and on its time.

A request whose next bytes do not come in time is given up, by closing the connection. Something that is not HTTP at all
is refused as a problem, like every other error.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hushbid.campaign.http.problems import MEDIA_TYPE, problem

HEAD_LIMIT = 64 * 1024
PATIENCE = 30.0
_TOO_LARGE = "The head of the request is too large."
_UNREADABLE = "This is not an HTTP request that can be read."


class Protocol(HttpToolsProtocol):
    """One connection."""

    _in_head = True
    _incomplete = True
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.access_log = False  # its lines hold paths and addresses; those of ``frame`` do not

    def connection_made(self, transport: Any) -> None:
        """Give the first request some time to arrive."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head that is not complete, and give what is missing some more time."""
        self._stop_waiting()
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._head_bytes > HEAD_LIMIT:
            self._refuse(431, _TOO_LARGE)
        elif self._incomplete:
            self._wait()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = self._incomplete = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._incomplete, self._head_bytes = False, 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(400, _UNREADABLE)

    def _wait(self) -> None:
        self._deadline = asyncio.get_running_loop().call_later(PATIENCE, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer by hand, since no request has come to the application."""
        content = bytes(problem(status, sentence).body)
        head = (
            f"HTTP/1.1 {status} Refused\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(content)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + content)
        self.transport.close()
