"""What analysts and auditors see: campaigns, their people, their money, their log, the ledger. Auditors see it without
names, and without buttons."""

from typing import Any

from fastapi import APIRouter, Request, Response

from hushbid.errors import InputError, NotFound
from hushbid.server.api import exports
from hushbid.server.api.schemas import answer
from hushbid.server.domain.states import CampaignState
from hushbid.server.domain.views import CampaignView, JobView
from hushbid.server.pages import pictures
from hushbid.server.pages.auditing import Attacks, verified
from hushbid.server.pages.estimates import estimate_value, shown_estimate
from hushbid.server.pages.settings_form import prior_typed
from hushbid.server.pages.visit import Visit, anybody, require_id, staff
from hushbid.server.service import Service

router = APIRouter(include_in_schema=False)
_C = CampaignState
_PAGE = 100
_PATH = (_C.DRAFT, _C.REPORTING, _C.DELIVERING, _C.RELEASED, _C.CLOSED)
_PLACES = {_C.ALLOCATING: 1, _C.NOTHING_BOUGHT: 1, _C.RELEASING: 2, _C.UNDELIVERED: 2, _C.CANCELLED: 0}
_STEPS = {
    _C.DRAFT: ("edit", "invite", "open", "discard"),
    _C.REPORTING: ("close-reporting", "cancel"),
    _C.DELIVERING: ("release",),
    _C.RELEASED: ("pay", "close"),
}


@router.get("/campaigns")
async def campaigns(request: Request) -> Response:
    """All campaigns, newest first."""
    visit = await staff(request)
    cursor = request.query_params.get("cursor")
    page = await visit.shell.run(lambda: visit.shell.service.campaigns(visit.who, cursor=cursor, limit=_PAGE))
    estimates = {
        one.id: estimate_value(visit.write, one.release, one.settings.bounds, one.settings.unit)
        for one in page.items
        if one.release is not None
    }
    return visit.page("staff/campaigns.html", page=page, estimates=estimates, tab="campaigns")


@router.get("/campaigns/{campaign}")
async def campaign(request: Request, campaign: str) -> Response:
    """One campaign, as it is now."""
    visit = await staff(request)
    return await campaign_page(visit, require_id(campaign))


async def campaign_page(visit: Visit, campaign: str, *, problem: str | None = None, status: int = 200) -> Response:
    """One campaign, with a sentence about what was refused, if anything was."""
    view, jobs = await visit.shell.run(lambda: _campaign(visit.shell.service, visit, campaign))
    here = f"/campaigns/{view.id}"
    values = {**_monitored(visit, view, jobs), "problem": problem, "here": here, "tab": "overview"}
    return visit.page("staff/campaign.html", status=status, **values)


@router.get("/campaigns/{campaign}/pulse")
async def pulse(request: Request, campaign: str) -> Response:
    """What changes while one watches, for the page's script."""
    visit = await staff(request)
    found = require_id(campaign)
    view, jobs = await visit.shell.run(lambda: _campaign(visit.shell.service, visit, found))
    job = jobs[0] if jobs else None
    return answer(
        {
            "state": view.state.value,
            "job": None if job is None else job.state,
            "people": view.people,
            "texts": {
                "people": str(sum(view.people.values())),
                "due": _money(visit, view, view.due),
                "paid": _money(visit, view, view.paid),
                "job": _progress(visit, job),
                **{f"count-{state}": str(view.people.get(state, 0)) for state in pictures.STATE_COLOURS},
            },
        }
    )


def _campaign(service: Service, visit: Visit, campaign: str) -> tuple[CampaignView, tuple[JobView, ...]]:
    return service.campaign(visit.who, campaign), service.jobs(visit.who, campaign)


def _monitored(visit: Visit, view: CampaignView, jobs: tuple[JobView, ...]) -> dict[str, Any]:
    settings, job = view.settings, jobs[0] if jobs else None
    place = _PATH.index(view.state) if view.state in _PATH else _PLACES[view.state]
    steps = _STEPS.get(view.state, ())
    if job is not None and job.state == "failed" and view.state is _C.ALLOCATING:
        steps = ("close-reporting", "cancel")
    return {
        "view": view,
        "s": settings,
        "job": job,
        "progress": _progress(visit, job),
        "path": [state.value for state in _PATH],
        "place": place,
        "astray": view.state not in _PATH,
        "foremost": _foremost(view),
        "steps": steps if visit.who.role == "analyst" else (),
        "prior": prior_typed(settings.prior),
        "people_bar": pictures.people_bar(view.people),
        "states": pictures.STATE_COLOURS,
        "total": sum(view.people.values()),
        "money": lambda minor: _money(visit, view, minor),
        "estimate": shown_estimate(visit.texts, visit.write, view.release, settings.bounds, settings.unit),
        "live": not view.state.is_over and view.state is not _C.DRAFT,
    }


def _foremost(view: CampaignView) -> str:
    """The step that an analyst most likely wants to take."""
    if view.state is _C.DRAFT:
        return "open" if sum(view.people.values()) >= view.settings.minimum_people else "invite"
    if view.state is _C.RELEASED:
        return "pay" if view.due else "close"
    return next(iter(_STEPS.get(view.state, ("close-reporting",))))


def _progress(visit: Visit, job: JobView | None) -> str:
    if job is None or job.state != "running":
        return ""
    share = visit.write.percent(job.done / job.total) if job.total else ""
    return visit.texts(f"job.{job.kind}", share=share)


def _money(visit: Visit, view: CampaignView, minor: int) -> str:
    return visit.write.money(minor, view.settings.currency, view.settings.decimals)


@router.get("/campaigns/{campaign}/people")
async def people(request: Request, campaign: str) -> Response:
    """Everybody's state, in the order of invitation."""
    visit = await staff(request)
    found, cursor = require_id(campaign), request.query_params.get("cursor")
    service = visit.shell.service
    view = await visit.shell.run(lambda: service.campaign(visit.who, found))
    page = await visit.shell.run(lambda: service.participants(visit.who, found, cursor=cursor, limit=_PAGE))
    return visit.page(
        "staff/people.html",
        view=view,
        page=page,
        tab="people",
        states=pictures.STATE_COLOURS,
        money=lambda minor: _money(visit, view, minor),
    )


@router.get("/campaigns/{campaign}/log")
async def log(request: Request, campaign: str) -> Response:
    """What happened, each line chained to the one before."""
    visit = await staff(request)
    found, after = require_id(campaign), _whole(request.query_params.get("after"))
    service = visit.shell.service
    view = await visit.shell.run(lambda: service.campaign(visit.who, found))
    events = await visit.shell.run(lambda: service.events(visit.who, found, after=after, limit=_PAGE + 1))
    more = events[_PAGE - 1].number if len(events) > _PAGE else None
    return visit.page("staff/log.html", view=view, events=events[:_PAGE], more=more, after=after, tab="log")


@router.get("/campaigns/{campaign}/audit")
async def audit(request: Request, campaign: str) -> Response:
    """Whether what the server says holds: record, log and root; and what came of attacks on the claims themselves."""
    visit = await staff(request)
    found, service = require_id(campaign), visit.shell.service
    view = await visit.shell.run(lambda: service.campaign(visit.who, found))
    try:
        checks = await visit.shell.compute(lambda: verified(service, visit.who, view))
    except NotFound:
        checks = ()
    decided = bool(checks)
    attacking, attacks = _attacks(request).found(view)
    return visit.page(
        "staff/audit.html",
        view=view,
        decided=decided,
        checks=checks,
        attacking=attacking,
        attacks=attacks,
        tab="audit",
    )


@router.post("/campaigns/{campaign}/audit")
async def attack(request: Request, campaign: str) -> Response:
    """Attack the claims themselves, in the background."""
    visit = await staff(request)
    await visit.form()
    found, service = require_id(campaign), visit.shell.service
    view = await visit.shell.run(lambda: service.campaign(visit.who, found))
    if view.total_payment is not None:
        _attacks(request).begin(visit.shell, visit.who, view)
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
    shown = await visit.shell.compute(lambda: exports.report_page(visit.shell.service, visit.who, found))
    return exports.ReportPage(shown, headers={"Content-Security-Policy": exports.REPORT_POLICY})


@router.get("/ledger")
async def ledger(request: Request) -> Response:
    """What each person has given up in each campaign, by pseudonym."""
    visit = await staff(request)
    cursor = request.query_params.get("cursor")
    page = await visit.shell.run(lambda: visit.shell.service.ledger(visit.who, cursor=cursor, limit=_PAGE))
    return visit.page("staff/ledger.html", page=page, tab="ledger")


@router.get("/c/{campaign}")
async def public(request: Request, campaign: str) -> Response:
    """What everybody may see of a campaign."""
    visit = await anybody(request)
    found = require_id(campaign)
    view = await visit.shell.run(lambda: visit.shell.service.public(found))
    keys = await visit.shell.run(visit.shell.service.keys)
    estimate = shown_estimate(visit.texts, visit.write, view.release, view.bounds, view.unit)
    return visit.page("public.html", view=view, fingerprint=keys.newest.fingerprint, estimate=estimate)


def _whole(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InputError("after must be a whole number.", field="after")
    return int(text)
