"""A real server on a loopback port, in a thread of the test's own process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from hushbid.server.http import create_app
from hushbid.server.http.serve import Protocol, listen
from hushbid.server.pages import add_pages
from hushbid.server.service import Service


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def served(service: Service, port: int = 0) -> Iterator[str]:
    """The address at which a service is served; any free port unless one is given."""
    with listen("127.0.0.1", port) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        app = create_app(service, pages=add_pages, https=False)
        config = uvicorn.Config(app, http=Protocol, ws="none", lifespan="on", log_config=None, access_log=False)
        server = _Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        assert server.ready.wait(timeout=300)
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join(timeout=300)
            assert not thread.is_alive()
