"""A server on a real socket, and people who talk to it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from hushbid.server.http import create_app
from hushbid.server.http.serve import Server, listen
from hushbid.server.pages import add_pages
from hushbid.server.service import Service
from tests.server.support import stated, user

SETTINGS: dict[str, Any] = stated()
PATIENCE = 300.0


@contextmanager
def serving(
    service: Service, *, https: bool = False, proxies: tuple[str, ...] = (), address: str | None = None
) -> Iterator[str]:
    """The address of a server that serves a service until the end of the block."""
    ready = threading.Event()
    with listen("127.0.0.1", 0) as listener:
        server = Server(
            create_app(service, pages=add_pages, https=https, address=address), proxies=proxies, ready=ready.set
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            assert ready.wait(PATIENCE)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


@dataclass
class Live:
    """A running server, and the tokens of an analyst and an auditor."""

    service: Service
    url: str
    analyst: str
    auditor: str

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        """Somebody with a token, or nobody."""
        named = {"Authorization": f"Bearer {token}"} if token is not None else {}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers={**named, **headers}, timeout=PATIENCE)


@contextmanager
def live(service: Service, **options: Any) -> Iterator[Live]:
    """A server with an analyst and an auditor."""
    tokens = {}
    for name, role in (("ann", "analyst"), ("otto", "auditor")):
        user(service, name, role)
        tokens[role] = service.create_api_token(name, "tests")
    with serving(service, **options) as url:
        yield Live(service, url, **tokens)


def sentence(response: httpx.Response, status: int) -> str:
    """The sentence of a refusal, whose form is checked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    content = response.json()
    assert content["status"] == status
    assert content["type"].startswith("urn:hushbid:problem:")
    assert content["title"]
    assert content["detail"].endswith((".", "?"))
    assert len(content["detail"]) < 600
    return str(content["detail"])
