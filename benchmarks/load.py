"""A load generator that costs little: requests are made beforehand and sent over a few connections, one at a time each.

It only does what a benchmark needs: HTTP/1.1 with keep-alive and answers that tell their length.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a server did with a list of requests."""

    requests: int
    """How many were answered."""

    per_second: float
    """Requests answered per second."""

    median: float
    """Seconds from sending a request to having its answer."""

    p99: float
    """The same for the slowest of a hundred."""

    refused: int
    """Answers that were not 200."""


def put(path: str, body: bytes, token: str) -> bytes:
    """A request as it goes over the wire."""
    head = (
        f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def run(url: str, requests: Sequence[bytes], *, connections: int) -> Load:
    """Send all requests, so many at once."""
    seconds: list[float] = []
    refused = 0
    waiting = iter(requests)

    async def one(host: str, port: int) -> None:
        nonlocal refused
        reader, writer = await asyncio.open_connection(host, port)
        try:
            for request in waiting:
                began = time.perf_counter()
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(_length(head))
                seconds.append(time.perf_counter() - began)
                refused += not head.startswith(b"HTTP/1.1 200 ")
        finally:
            writer.close()

    async def everybody() -> float:
        address = urlsplit(url)
        assert address.hostname is not None
        assert address.port is not None
        began = time.perf_counter()
        await asyncio.gather(*(one(address.hostname, address.port) for _ in range(connections)))
        return time.perf_counter() - began

    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        whole = runner.run(everybody())
    return Load(
        requests=len(seconds),
        per_second=len(seconds) / whole,
        median=float(np.median(seconds)),
        p99=float(np.quantile(seconds, 0.99)),
        refused=refused,
    )


def _length(head: bytes) -> int:
    place = head.lower().index(b"content-length:") + 15
    return int(head[place : head.index(b"\r\n", place)])
