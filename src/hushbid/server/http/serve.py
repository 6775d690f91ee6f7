"""Serving an application until it is stopped, over HTTP/1.1 with limits that uvicorn lacks.

A request has some seconds to arrive from its first byte on, and one more for every few kilobytes that have come: drops
that keep falling gain it no time. What is late is given up, by closing the connection. Where there are as many
connections as can be held, a new one takes the place of the one that has kept the server waiting the longest, so slow
ones cannot keep others out. Something that is not HTTP at all is refused as a problem, like every other error.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hushbid.errors import CampaignError, InputError
from hushbid.server.http.problems import MEDIA_TYPE, problem

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


_BACKLOG = 2048
_GRACE_SECONDS = 10
_KEEP_ALIVE_SECONDS = 30


def listen(host: str, port: int) -> socket.socket:
    """A socket on which nobody is served yet; port 0 takes any that is free."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError:
        raise InputError(f"host must be an address of this machine, got {host!r}.", field="host") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as problem:
        listener.close()
        raise CampaignError(f"{host} port {port} cannot be used: {problem.strerror}.") from None
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    app: FastAPI, listener: socket.socket, *, proxies: Sequence[str] = (), ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until SIGINT or SIGTERM, which let requests finish that have begun."""
    server = Server(app, proxies=proxies, ready=ready)
    try:
        server.run(sockets=[listener])
    except (KeyboardInterrupt, SystemExit):  # uvicorn raises what stopped it again, when all is done
        if not server.started:
            raise


class Server(uvicorn.Server):
    """A server that says when it is ready, and stops when ``should_exit`` is set.

    ``proxies`` are addresses whose word is taken for where a request came from and whether by https.
    """

    def __init__(self, app: FastAPI, *, proxies: Sequence[str] = (), ready: Callable[[], None] = lambda: None) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            lifespan="on",
            log_config=None,  # whoever runs the server decides where logs go
            access_log=False,  # its lines hold paths and addresses; ours do not
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self._ready()
