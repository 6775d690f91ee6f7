"""What analysts and auditors look at: all campaigns, and one's people, log, audit and report; the privacy account.

Auditors see it without names. Attacks on a campaign's claims run in the background.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from fastapi import APIRouter, Request, Response
from starlette.datastructures import FormData

from hushbid.errors import NotFound
from hushbid.report.sections.audits import AuditLine
from hushbid.server.http import downloads
from hushbid.server.http.auth import AppState
from hushbid.server.model.views import CampaignView, Principal
from hushbid.server.pages import pictures
from hushbid.server.pages.estimates import estimate_value, shown_estimates
from hushbid.server.pages.request import Form, PageRequest, anybody, require_id, staff
from hushbid.server.service import Service
from hushbid.server.service.views_of import place_of

P = ParamSpec("P")
T = TypeVar("T")
router = APIRouter(include_in_schema=False)
_PAGE, _MOST_KEPT = 100, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignTurn:
    """One request of an analyst or auditor about a campaign."""

    visit: PageRequest
    form: Form
    id: str
    view: CampaignView

    @property
    def service(self) -> Service:
        """What is asked."""
        return self.visit.app.service

    async def ask(self, ask: Callable[Concatenate[Principal, str, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask something about the campaign for this visitor, without making others wait."""
        return await self.visit.app.run(ask, self.visit.who, self.id, *args, **kwargs)

    def page(self, template: str, *, tab: str, **values: Any) -> Response:
        """A page about the campaign."""
        return self.visit.page(template, view=self.view, tab=tab, **values)

    def go(self, path: str = "") -> Response:
        """Send the browser to another page of the campaign."""
        return self.visit.go(f"/campaigns/{self.id}{path}")


Act = TypeVar("Act", bound=Callable[..., Awaitable[Response]])


def campaign_page(
    router: APIRouter, address: str, by: Callable[[Request], Awaitable[PageRequest]]
) -> Callable[[Act], Act]:
    """Register a page below a campaign's address, ``GET /people``; names in its path are arguments of its function."""
    method, _, path = address.partition(" ")

    def register(act: Act) -> Act:
        async def handle(request: Request) -> Response:
            visit = await by(request)
            form = await visit.form() if method == "POST" else Form(FormData())
            given = {name: require_id(value) for name, value in request.path_params.items()}
            campaign = given.pop("campaign")
            view = await visit.app.run(visit.app.service.campaign, visit.who, campaign)
            return await act(CampaignTurn(visit=visit, form=form, id=campaign, view=view), **given)

        router.add_api_route(f"/campaigns/{{campaign}}{path}", handle, methods=[method], name=act.__name__)
        return act

    return register


class Attacks:
    """Attacks under way and done, by campaign and state; kept in memory, since anybody can repeat them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], asyncio.Task[tuple[AuditLine, ...]]] = {}

    def begin(self, app: AppState, who: Principal, view: CampaignView) -> None:
        """Attack a campaign, unless that is happening already."""
        key = (view.id, view.state.value)
        task = self._known.get(key)
        if task is not None and not (task.done() and (task.cancelled() or task.exception() is not None)):
            return
        while len(self._known) >= _MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[key] = asyncio.create_task(app.compute(who, app.service.attacks, who, view.id))

    def found(self, view: CampaignView) -> tuple[bool, tuple[AuditLine, ...] | None]:
        """Whether an attack is under way, and what came of it if it is over."""
        task = self._known.get((view.id, view.state.value))
        if task is None:
            return False, None
        if not task.done():
            return True, None
        return False, None if task.cancelled() or task.exception() is not None else task.result()


@router.get("/campaigns")
async def campaigns(request: Request) -> Response:
    """All campaigns, newest first."""
    visit = await staff(request)
    cursor = request.query_params.get("cursor")
    page = await visit.app.run(visit.app.service.campaigns, visit.who, cursor=cursor, limit=_PAGE)
    estimates = {
        one.id: estimate_value(visit.write, one.release, one.whole.market.bounds, one.whole.unit or "")
        for one in page.items
        if one.release is not None
    }
    return visit.page("staff/campaigns.html", page=page, estimates=estimates, tab="campaigns")


@campaign_page(router, "GET /people", staff)
async def people(turn: CampaignTurn) -> Response:
    """Everybody's state, in the order of invitation."""
    query = turn.visit.request.query_params
    page = await turn.ask(turn.service.participants, cursor=query.get("cursor"), limit=_PAGE)
    return turn.page(
        "staff/people.html",
        told=query.get("told"),
        page=page,
        tab="people",
        states=pictures.STATE_COLOURS,
        money=turn.visit.money_of(turn.view.whole),
    )


@campaign_page(router, "GET /log", staff)
async def log(turn: CampaignTurn) -> Response:
    """What happened, each line chained to the one before."""
    after = place_of(turn.visit.request.query_params.get("after"), "after")
    events = await turn.ask(turn.service.events, after=after, limit=_PAGE + 1)
    more = events[_PAGE - 1].number if len(events) > _PAGE else None
    return turn.page("staff/log.html", events=events[:_PAGE], more=more, after=after, tab="log")


@campaign_page(router, "GET /audit", staff)
async def audit(turn: CampaignTurn) -> Response:
    """Whether what the server says holds: record, log and root; and what came of attacks on the claims themselves."""
    visit = turn.visit
    try:
        checks = await visit.app.compute(visit.who, turn.service.checks, visit.who, turn.id)
    except NotFound:
        checks = {}
    attacking, attacks = _attacks(visit.request).found(turn.view)
    statuses = [check.status for some in checks.values() for check in some]
    return turn.page(
        "staff/audit.html",
        decided=bool(checks),
        checks=checks,
        failed=statuses.count("fails"),
        incomplete=statuses.count("incomplete"),
        attacking=attacking,
        attacks=attacks,
        tab="audit",
    )


@campaign_page(router, "POST /audit", staff)
async def attack(turn: CampaignTurn) -> Response:
    """Attack the claims themselves, in the background."""
    visit = turn.visit
    if turn.view.total_payment is not None:
        _attacks(visit.request).begin(visit.app, visit.who, turn.view)
    return turn.go("/audit#attack")


def _attacks(request: Request) -> Attacks:
    state = request.app.state
    if not hasattr(state, "attacks"):
        state.attacks = Attacks()
    found = state.attacks
    assert isinstance(found, Attacks)
    return found


@campaign_page(router, "GET /report", staff)
async def report(turn: CampaignTurn) -> Response:
    """The report for buyers and regulators: a page of its own, which loads and runs nothing."""
    visit, language = turn.visit, turn.visit.texts.language
    shown = await visit.app.compute(visit.who, downloads.report_page, turn.service, visit.who, turn.id, language)
    return downloads.ReportPage(shown, headers={"Content-Security-Policy": downloads.REPORT_POLICY})


@router.get("/privacy-account")
async def privacy_account(request: Request) -> Response:
    """What each person has given up in each campaign, by pseudonym."""
    visit = await staff(request)
    cursor = request.query_params.get("cursor")
    page = await visit.app.run(visit.app.service.privacy_account, visit.who, cursor=cursor, limit=_PAGE)
    return visit.page("staff/privacy_account.html", page=page, tab="privacy_account")


@router.get("/c/{campaign}")
async def public(request: Request, campaign: str) -> Response:
    """What everybody may see of a campaign."""
    visit = await anybody(request)
    found = require_id(campaign)
    view = await visit.app.run(visit.app.service.public, found)
    keys = await visit.app.run(visit.app.service.keys)
    estimates = shown_estimates(visit.texts, visit.write, view.release, view.bounds, view.unit)
    return visit.page("public.html", view=view, fingerprint=keys.newest.fingerprint, estimates=estimates)
