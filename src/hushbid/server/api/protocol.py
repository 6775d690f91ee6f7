"""HTTP/1.1 as uvicorn speaks it with httptools, with limits it lacks: on a request's head, its time, and connections.

A request has some seconds to arrive from its first byte on, and one more for every few kilobytes that have come: drops
that keep falling gain it no time. What is late is given up, by closing the connection. Where there are as many
connections as can be held, a new one takes the place of the one that has kept the server waiting the longest, so slow
ones cannot keep others out. Something that is not HTTP at all is refused as a problem, like every other error.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hushbid.server.api.problems import MEDIA_TYPE, problem

HEAD_LIMIT = 64 * 1024
PATIENCE = 20.0
BYTES_PER_SECOND = 8 * 1024
MOST_CONNECTIONS = 800
"""Fewer than the files that a process may usually have open, 1024."""

_TOO_LARGE = "The head of the request is too large."
_UNREADABLE = "This is not an HTTP request that can be read."


class Protocol(HttpToolsProtocol):
    """One connection."""

    _in_head = True
    _incomplete = True
    _head_bytes = 0
    _bytes = 0
    _since = 0.0
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.access_log = False  # its lines hold paths and addresses; those of ``middleware`` do not

    def connection_made(self, transport: Any) -> None:
        """Make room, and give the first request some time to arrive."""
        if len(self.connections) >= MOST_CONNECTIONS:
            self._make_room()
        super().connection_made(transport)
        self._since = self.loop.time()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a request that is not complete, and wait for the rest of it."""
        self._stop_waiting()
        self._head_bytes += len(data)
        self._bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        # a limit that uvicorn lacks
        if self._in_head and self._head_bytes > HEAD_LIMIT:
            self._refuse(431, _TOO_LARGE)
        elif self._incomplete:
            self._wait()

    def on_message_begin(self) -> None:
        """A request begins."""
        if not self._in_head:  # the first request's time began with the connection
            self._since, self._bytes = self.loop.time(), 0
        self._in_head = self._incomplete = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._incomplete, self._head_bytes = False, 0
        self._since = self.loop.time()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(400, _UNREADABLE)

    def _wait(self) -> None:
        end = self._since + PATIENCE + self._bytes / BYTES_PER_SECOND  # from the first byte on, not from the last
        self._deadline = self.loop.call_at(end, self._give_up)

    @property
    def _idle(self) -> bool:
        """Whether the next move is the other side's."""
        return self._deadline is not None or self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        # one that is being answered is never closed
        waiting = (one for one in self.connections if isinstance(one, Protocol) and one._idle)
        slowest = min(waiting, key=lambda one: one._since, default=None)
        if slowest is not None:
            self.connections.discard(slowest)
            slowest._give_up()

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
