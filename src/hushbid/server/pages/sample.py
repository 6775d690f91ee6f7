"""A draft as a participant would see it: the very pages of hers, for somebody who is made up.

They are filled in by `hushbid.server.pages.participant`, from a service that knows her alone and can change nothing.
Their links and forms lead from one of these pages to the next, never to a participant's own.
"""

import re
from dataclasses import replace
from typing import Any

from fastapi import Response
from starlette.exceptions import HTTPException

from hushbid.server.model.views import Device, DevicesView, MenuView, ParticipationView
from hushbid.server.pages.participant import sample_page
from hushbid.server.pages.request import PageRequest, analyst, page
from hushbid.server.service import Service
from hushbid.server.service.sampling import Sample

PAGES = ("consent", "choice", "offer")
_NEXT = {"/p/agree": "choice", "/p/choice": "choice", "/p/bid": "offer"}
_ADDRESS = re.compile(r'\b(href|action|formaction)="(/p(?:/[^"?]*)?)(\?lang=\w+)?(?:\?[^"]*)?"')


@page("GET /campaigns/{campaign}/as-participant/{which}", analyst)
async def look(visit: PageRequest, which: str) -> Response:
    """One of her pages, with every address of a participant's replaced by one of these pages'."""
    if which not in PAGES:
        raise HTTPException(404)
    made, back = await visit.compute(visit.service.sample), f"/campaigns/{visit.campaign}"
    service: Any = _Synthetic(made, which, visit.service)
    app = replace(visit.app, service=service)
    response = await sample_page(replace(visit, app=app, secret="sample", form_token="", sample=back), which)

    def other(found: re.Match[str]) -> str:
        place = which if found[3] else _NEXT.get(found[2], "consent")
        return f'{found[1]}="{back}/as-participant/{place}{found[3] or ""}"'

    body = _ADDRESS.sub(other, bytes(response.body).decode())
    shown = Response(body, status_code=response.status_code, media_type="text/html")
    for name in ("content-security-policy", "vary"):
        shown.headers[name] = response.headers[name]
    return shown


@page("POST /campaigns/{campaign}/as-participant/{which}", analyst, reads_form=False)
async def send(visit: PageRequest, which: str) -> Response:
    """Go on to the page that follows, without looking at what was sent."""
    return visit.go(f"as-participant/{which if which in PAGES else 'consent'}")


class _Synthetic:
    """What a service says about somebody who does not exist."""

    def __init__(self, made: Sample, which: str, service: Service) -> None:
        self._made, self.clock, self.consent = made, service.clock, made.consent
        # in one visit her answers are asked for before anything is offered
        self._view = made.offered if which == "offer" and not made.invited.single_visit else made.invited

    def participation(self, secret: str) -> ParticipationView:
        return self._view

    def menu(self, secret: str) -> MenuView:
        return self._made.menu

    def devices(self, secret: str) -> DevicesView:
        here = Device(since=self.clock(), by="analyst", reads_only=False, here=True)
        return DevicesView(devices=(here,), unused=0, made=(), used=(), let_in_at=None, open_since=None)
