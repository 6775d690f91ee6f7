"""Serving an application until somebody stops it."""

import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_address

import uvicorn
from fastapi import FastAPI

from hushbid.errors import CampaignError, InputError
from hushbid.server.api.protocol import Protocol

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
