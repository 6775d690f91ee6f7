"""One campaign's page, and each step of its life: offered there, asked about on a page of its own, then done.

Auditors see it without buttons. What a step is, and when it is offered, stands in the two tables below. A campaign
can be copied whatever its state.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from hushbid.errors import HushbidError, InputError, ServerFailed
from hushbid.server.api.schemas import answer
from hushbid.server.domain.states import CampaignState
from hushbid.server.domain.text import LONGEST_TITLE
from hushbid.server.domain.views import CampaignView, JobView, Principal
from hushbid.server.pages import pictures
from hushbid.server.pages.estimates import shown_estimates
from hushbid.server.pages.form_prices import prior_typed
from hushbid.server.pages.numbers import Unreadable
from hushbid.server.pages.visit import Form, Visit, analyst, base_address, require_id, staff
from hushbid.server.service import Service

router = APIRouter(include_in_schema=False)
Do = Callable[[Service, Principal, str, Form], Any]
_C = CampaignState


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that an analyst may do with a campaign."""

    do: Do
    states: tuple[CampaignState, ...]
    """In which it can be asked about on a page of its own."""

    slow: bool = False
    """Whether it computes for seconds."""


STEPS: dict[str, Step] = {
    "open": Step(
        do=lambda service, who, campaign, form: service.open(who, campaign),
        states=(_C.DRAFT,),
        slow=True,
    ),
    "discard": Step(
        do=lambda service, who, campaign, form: service.discard(who, campaign),
        states=(_C.DRAFT,),
    ),
    "close-reporting": Step(
        do=lambda service, who, campaign, form: service.close_reporting(who, campaign),
        states=(_C.REPORTING, _C.ALLOCATING),
    ),
    "cancel": Step(
        do=lambda service, who, campaign, form: service.cancel(who, campaign, form.text("reason")),
        states=(_C.DRAFT, _C.REPORTING, _C.ALLOCATING),
    ),
    "release": Step(
        do=lambda service, who, campaign, form: service.release(
            who, campaign, accept_nobody=form.ticked("accept_nobody")
        ),
        states=(_C.DELIVERING,),
    ),
    "close": Step(
        do=lambda service, who, campaign, form: service.close_campaign(
            who, campaign, accept_unpaid=form.ticked("accept_unpaid")
        ),
        states=(_C.RELEASED,),
    ),
}
_PATH = (_C.DRAFT, _C.REPORTING, _C.DELIVERING, _C.RELEASED, _C.CLOSED)
_PLACES = {_C.ALLOCATING: 1, _C.NOTHING_BOUGHT: 1, _C.RELEASING: 2, _C.UNDELIVERED: 2, _C.CANCELLED: 0}
_OFFERED = {  # on the campaign's page; some have forms of their own
    _C.DRAFT: ("edit", "invite", "open", "discard"),
    _C.REPORTING: ("close-reporting", "cancel"),
    _C.DELIVERING: ("release",),
    _C.RELEASED: ("pay", "close"),
}
SURE = "sure"
"""The field of a form by which she says that she was asked."""


@router.get("/campaigns/{campaign}")
async def campaign(request: Request, campaign: str) -> Response:
    """One campaign, as it is now."""
    visit = await staff(request)
    return await campaign_page(visit, require_id(campaign))


async def campaign_page(visit: Visit, campaign: str, *, problem: str | None = None, status: int = 200) -> Response:
    """One campaign, with a sentence about what was refused, if anything was."""
    view, jobs = await visit.app.run(_campaign, visit.app.service, visit, campaign)
    here = f"/campaigns/{view.id}"
    values = {**_monitored(visit, view, jobs), "problem": problem, "here": here, "tab": "overview"}
    return visit.page("staff/campaign.html", status=status, **values)


@router.get("/campaigns/{campaign}/pulse")
async def pulse(request: Request, campaign: str) -> Response:
    """What changes while one watches, for the page's script."""
    visit = await staff(request)
    found = require_id(campaign)
    view, jobs = await visit.app.run(_campaign, visit.app.service, visit, found)
    job, money = jobs[0] if jobs else None, visit.money_of(view.settings)
    return answer(
        {
            "state": view.state.value,
            "job": None if job is None else job.state,
            "people": view.people,
            "texts": {
                "people": str(sum(view.people.values())),
                "due": money(view.due),
                "paid": money(view.paid),
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
    steps = _OFFERED.get(view.state, ())
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
        "money": visit.money_of(settings),
        "estimates": shown_estimates(visit.texts, visit.write, view.release, settings.bounds, settings.unit),
        "live": not view.state.is_over and view.state is not _C.DRAFT,
    }


def _foremost(view: CampaignView) -> str:
    """The step that an analyst most likely wants to take."""
    if view.state is _C.DRAFT:
        return "open" if sum(view.people.values()) >= view.settings.minimum_people else "invite"
    if view.state is _C.RELEASED:
        return "pay" if view.due else "close"
    return next(iter(_OFFERED.get(view.state, ("close-reporting",))))


def _progress(visit: Visit, job: JobView | None) -> str:
    if job is None or job.state != "running":
        return ""
    share = visit.write.percent(job.done / job.total) if job.total else ""
    return visit.texts(f"job.{job.kind}", share=share)


# -- a step: asked about, then done ------------------------------------------------------------------------------------


@router.get("/campaigns/{campaign}/copy")
async def ask_to_copy(request: Request, campaign: str) -> Response:
    """Ask what the copy of a campaign shall be called."""
    visit = await analyst(request)
    refused = request.query_params.get("title") == "refused"
    told = visit.texts("copy.title_problem", most=LONGEST_TITLE) if refused else None
    return await _copy_page(visit, require_id(campaign), title_problem=told)


@router.post("/campaigns/{campaign}/copy")
async def copy(request: Request, campaign: str) -> Response:
    """Copy a campaign's settings into a new draft."""
    visit = await analyst(request)
    form, found, service = await visit.form(), require_id(campaign), visit.app.service
    title = form.text("title")
    try:
        asked = visit.repeatable(form, "page copy", found, title, encode=lambda view: str(view.id).encode())
        made, _ = await visit.app.run(service.once, asked, service.copy, visit.who, found, title)
    except ServerFailed:
        raise
    except Unreadable as unreadable:
        problem = visit.texts(unreadable.text)
        return await _copy_page(visit, found, title=title, problem=problem, language=None, status=422)
    except InputError:
        return visit.go(f"/campaigns/{found}/copy?title=refused")
    except HushbidError as refused:
        return await _copy_page(visit, found, title=title, problem=str(refused), status=409)
    return visit.go(f"/campaigns/{made.decode()}")


async def _copy_page(
    visit: Visit,
    campaign: str,
    *,
    title: str = "",
    title_problem: str | None = None,
    problem: str | None = None,
    language: str | None = "en",
    status: int = 200,
) -> Response:
    view = await visit.app.run(visit.app.service.campaign, visit.who, campaign)
    return visit.page(
        "staff/copy.html",
        status=status,
        here=f"/campaigns/{campaign}/copy",
        view=view,
        title=title,
        title_problem=title_problem,
        longest=LONGEST_TITLE,
        problem=problem,
        language=language,
        once=secrets.token_urlsafe(24),
        tab="overview",
    )


@router.get("/campaigns/{campaign}/steps/{step}")
async def ask(request: Request, campaign: str, step: str) -> Response:
    """Say what a step means, and ask."""
    visit = await analyst(request)
    if step not in STEPS:
        raise HTTPException(404)
    view = await visit.app.run(visit.app.service.campaign, visit.who, require_id(campaign))
    if view.state not in STEPS[step].states:
        return visit.go(f"/campaigns/{view.id}")
    return await _asking(visit, view, step)


@router.post("/campaigns/{campaign}/steps/{step}")
async def do(request: Request, campaign: str, step: str) -> Response:
    """Do it."""
    visit = await analyst(request)
    form = await visit.form()
    found = require_id(campaign)
    if step not in STEPS:
        raise HTTPException(404)
    service, who = visit.app.service, visit.who
    run = visit.app.compute if STEPS[step].slow else visit.app.run
    try:
        await run(lambda: STEPS[step].do(service, who, found, form))
    except ServerFailed:
        raise
    except HushbidError as refused:
        return await _refused(visit, found, step, str(refused))
    if step == "discard":
        return visit.go("/campaigns")
    return visit.go(f"/campaigns/{found}")


async def _refused(visit: Visit, campaign: str, step: str, sentence: str) -> Response:
    """Show the refusal where the step was asked for, if it still makes sense there."""
    view = await visit.app.run(visit.app.service.campaign, visit.who, campaign)
    if view.state in STEPS[step].states:
        return await _asking(visit, view, step, problem=sentence, status=409)
    return await campaign_page(visit, campaign, problem=sentence, status=409)


async def _asking(
    visit: Visit, view: CampaignView, step: str, *, problem: str | None = None, status: int = 200
) -> Response:
    service, preview, sentence = visit.app.service, None, problem
    if step == "open":
        try:
            if view.people:
                preview = await visit.app.compute(service.preview_campaign, visit.who, view.id)
        except HushbidError as refused:
            sentence = sentence or str(refused)
    return visit.page(
        "staff/step.html",
        status=status,
        here=f"/campaigns/{view.id}/steps/{step}",
        view=view,
        s=view.settings,
        step=step,
        preview=preview,
        problem=sentence,
        tab="overview",
        money=visit.money_of(view.settings),
    )


# -- somebody lost her link --------------------------------------------------------------------------------------------


@router.post("/campaigns/{campaign}/links")
async def renew(request: Request, campaign: str) -> Response:
    """A new link for somebody who lost hers: asked about, then shown this once."""
    visit = await analyst(request)
    form = await visit.form()
    found, service = require_id(campaign), visit.app.service
    view = await visit.app.run(service.campaign, visit.who, found)
    label = form.text("label")[:200]
    if not form.ticked(SURE):
        return visit.page("staff/renew.html", here=f"/campaigns/{found}/people", view=view, label=label, tab="people")
    one = await visit.app.run(service.renew_link, visit.who, found, label)
    return visit.page(
        "staff/renewed.html",
        here=f"/campaigns/{found}/people",
        view=view,
        label=one.label,
        link=f"{base_address(visit)}/p#{one.token}",
        reads_only=one.reads_only,
        tab="people",
    )
