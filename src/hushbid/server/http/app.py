"""The application: endpoints, problems and what goes around them, for one service."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from hushbid import __version__
from hushbid.server.faults import log_fault
from hushbid.server.http import downloads
from hushbid.server.http.auth import PREFIX, ApiRoute, AppState, Authentication
from hushbid.server.http.middleware import AsPage, Middleware
from hushbid.server.http.problems import handle_problems
from hushbid.server.http.routes import SESSION_ROUTES, use_case_routes
from hushbid.server.http.schemas import document
from hushbid.server.service import Service

_TICK_SECONDS = 2.0


def create_app(
    service: Service,
    *,
    pages: Callable[[FastAPI], AsPage],
    https: bool = True,
    address: str | None = None,
    host: str = "localhost",
) -> FastAPI:
    """An ASGI application for a service, which whoever made it closes.

    ``pages`` is `hushbid.server.pages.add_pages`, handed in because pages use the API and not the other way round.
    ``https`` says how people reach it: without, session cookies travel unprotected, so it is for a loopback address
    only. Links begin with ``address`` if it is given, and otherwise with the host that a request names. That must be
    this machine's, the one of ``address``, or ``host``, to which the server was bound.
    """
    state = AppState(service=service, https=https, address=None if address is None else address.rstrip("/"))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        ticking = asyncio.create_task(_tick(state))
        yield
        ticking.cancel()
        state.close()

    app = FastAPI(
        lifespan=lifespan,
        title="Hushbid",
        version=__version__,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.hushbid = state
    handle_problems(app)
    routes = all_routes()
    app.router.routes.extend(routes)  # as they are: including a router builds all of them anew for each app
    hosts = [host] if address is None else [host, address]
    app.add_middleware(Authentication, routes=routes)
    app.add_middleware(Middleware, https=https, hosts=hosts, as_page=pages(app))
    roles = {(method, route.path): route.by for route in routes for method in route.methods or ()}
    app.openapi = lambda: document(app, roles)  # type: ignore[method-assign]
    return app


def all_routes() -> tuple[ApiRoute, ...]:
    """Return every route of the interface, the busiest first."""
    return (*use_case_routes(), *downloads.ROUTES, *SESSION_ROUTES)


async def _tick(state: AppState) -> None:
    """Let deadlines pass and keys end, as long as the application runs."""
    while True:
        try:
            await state.run(state.service.tick)
        except Exception as error:  # noqa: BLE001 - the next tick may succeed; nobody waits for this one
            log_fault(error, "tick")
        await asyncio.sleep(_TICK_SECONDS)
