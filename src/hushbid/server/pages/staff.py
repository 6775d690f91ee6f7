"""What analysts and auditors look at: all campaigns, and one's people, log, audit and report; the privacy account.

Auditors see it without names. Attacks on a campaign's claims run in the background.
"""

import asyncio

from fastapi import APIRouter, Request, Response

from hushbid.errors import NotFound
from hushbid.report.sections.audits import AuditLine
from hushbid.server.http import downloads
from hushbid.server.http.auth import AppState
from hushbid.server.model.views import CampaignView, Principal
from hushbid.server.pages import pictures
from hushbid.server.pages.estimates import estimate_value, shown_estimates
from hushbid.server.pages.request import anybody, require_id, staff
from hushbid.server.service.views_of import place_of

router = APIRouter(include_in_schema=False)
_PAGE, _MOST_KEPT = 100, 32


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


@router.get("/campaigns/{campaign}/people")
async def people(request: Request, campaign: str) -> Response:
    """Everybody's state, in the order of invitation."""
    visit = await staff(request)
    found, cursor = require_id(campaign), request.query_params.get("cursor")
    service = visit.app.service
    view = await visit.app.run(service.campaign, visit.who, found)
    page = await visit.app.run(service.participants, visit.who, found, cursor=cursor, limit=_PAGE)
    return visit.page(
        "staff/people.html",
        told=request.query_params.get("told"),
        view=view,
        page=page,
        tab="people",
        states=pictures.STATE_COLOURS,
        money=visit.money_of(view.whole),
    )


@router.get("/campaigns/{campaign}/log")
async def log(request: Request, campaign: str) -> Response:
    """What happened, each line chained to the one before."""
    visit = await staff(request)
    found, after = require_id(campaign), place_of(request.query_params.get("after"), "after")
    service = visit.app.service
    view = await visit.app.run(service.campaign, visit.who, found)
    events = await visit.app.run(service.events, visit.who, found, after=after, limit=_PAGE + 1)
    more = events[_PAGE - 1].number if len(events) > _PAGE else None
    return visit.page("staff/log.html", view=view, events=events[:_PAGE], more=more, after=after, tab="log")


@router.get("/campaigns/{campaign}/audit")
async def audit(request: Request, campaign: str) -> Response:
    """Whether what the server says holds: record, log and root; and what came of attacks on the claims themselves."""
    visit = await staff(request)
    found, service = require_id(campaign), visit.app.service
    view = await visit.app.run(service.campaign, visit.who, found)
    try:
        checks = await visit.app.compute(visit.who, service.checks, visit.who, found)
    except NotFound:
        checks = {}
    decided = bool(checks)
    attacking, attacks = _attacks(request).found(view)
    return visit.page(
        "staff/audit.html",
        view=view,
        decided=decided,
        checks=checks,
        failed=sum(check.status == "fails" for some in checks.values() for check in some),
        incomplete=sum(check.status == "incomplete" for some in checks.values() for check in some),
        attacking=attacking,
        attacks=attacks,
        tab="audit",
    )


@router.post("/campaigns/{campaign}/audit")
async def attack(request: Request, campaign: str) -> Response:
    """Attack the claims themselves, in the background."""
    visit = await staff(request)
    await visit.form()
    found, service = require_id(campaign), visit.app.service
    view = await visit.app.run(service.campaign, visit.who, found)
    if view.total_payment is not None:
        _attacks(request).begin(visit.app, visit.who, view)
    return visit.go(f"/campaigns/{found}/audit#attack")


def _attacks(request: Request) -> Attacks:
    state = request.app.state
    if not hasattr(state, "attacks"):
        state.attacks = Attacks()
    found = state.attacks
    assert isinstance(found, Attacks)
    return found


@router.get("/campaigns/{campaign}/report")
async def report(request: Request, campaign: str) -> Response:
    """The report for buyers and regulators: a page of its own, which loads and runs nothing."""
    visit = await staff(request)
    found = require_id(campaign)
    shown = await visit.app.compute(
        visit.who, downloads.report_page, visit.app.service, visit.who, found, visit.texts.language
    )
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
