"""A draft as a participant would see it: the very pages of hers, for somebody who is made up.

They are filled in by `hushbid.server.pages.participant`, from a service that knows her alone and can change nothing.
Their links and forms lead from one of these pages to the next, never to a participant's own.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from hushbid.server.model.agreement import Passage
from hushbid.server.model.views import ConsentView, Device, DevicesView, MenuView, ParticipationView
from hushbid.server.pages.participant import sample_page
from hushbid.server.pages.request import PageRequest, analyst, require_id
from hushbid.server.service import Service
from hushbid.server.service.sampling import Sample

router = APIRouter(include_in_schema=False)
PAGES = ("consent", "choice", "offer")
_NEXT = {"/p/agree": "choice", "/p/choice": "choice", "/p/bid": "offer"}
_ADDRESS = re.compile(r'\b(href|action|formaction)="(/p(?:/[^"?]*)?)(\?lang=\w+)?(?:\?[^"]*)?"')


@router.get("/campaigns/{campaign}/as-participant/{page}")
async def look(request: Request, campaign: str, page: str) -> Response:
    """One of her pages."""
    visit = await analyst(request)
    found = require_id(campaign)
    if page not in PAGES:
        raise HTTPException(404)
    made = await visit.app.compute(visit.who, visit.app.service.sample, visit.who, found)
    hers = _visit(visit, made, page, back=f"/campaigns/{found}")
    return _elsewhere(await sample_page(hers, page), f"/campaigns/{found}/as-participant", page)


@router.post("/campaigns/{campaign}/as-participant/{page}")
async def send(request: Request, campaign: str, page: str) -> Response:
    """Go on to the page that follows, without looking at what was sent."""
    visit = await analyst(request)
    found = require_id(campaign)
    return visit.go(f"/campaigns/{found}/as-participant/{page if page in PAGES else 'consent'}")


class _Synthetic:
    """What a service says about somebody who does not exist."""

    def __init__(self, made: Sample, page: str, service: Service) -> None:
        self._made, self.clock = made, service.clock
        # in one visit her answers are asked for before anything is offered
        self._view = made.offered if page == "offer" and not made.invited.single_visit else made.invited

    def participation(self, secret: str) -> ParticipationView:
        return self._view

    def menu(self, secret: str) -> MenuView:
        return self._made.menu

    def consent(self, secret: str, *, language: str, told: Sequence[Passage] = ()) -> ConsentView:
        return self._made.consent(language=language, told=told)

    def devices(self, secret: str) -> DevicesView:
        here = Device(since=self.clock(), by="analyst", reads_only=False, here=True)
        return DevicesView(devices=(here,), unused=0, made=(), used=(), let_in_at=None, open_since=None)


def _visit(visit: PageRequest, made: Sample, page: str, *, back: str) -> PageRequest:
    service: Any = _Synthetic(made, page, visit.app.service)
    return replace(visit, app=replace(visit.app, service=service), secret="sample", form_token="", sample=back)


def _elsewhere(response: Response, base: str, page: str) -> Response:
    """The page, with every address of a participant's replaced by one of these pages'."""

    def other(found: re.Match[str]) -> str:
        place = page if found[3] else _NEXT.get(found[2], "consent")
        return f'{found[1]}="{base}/{place}{found[3] or ""}"'

    body = _ADDRESS.sub(other, bytes(response.body).decode())
    shown = Response(body, status_code=response.status_code, media_type="text/html")
    for name in ("content-security-policy", "vary"):
        shown.headers[name] = response.headers[name]
    return shown
