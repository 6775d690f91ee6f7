"""One campaign's page, and each step of its life: offered there, asked about on a page of its own, then done.

Auditors see it without buttons. What a step is, and when it is offered, stands in the two tables below. A campaign
can be copied whatever its state.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Response
from starlette.exceptions import HTTPException

from hushbid.errors import Conflict, HushbidError, InputError, NotFound, ServerFailed
from hushbid.server.http.schemas import answer
from hushbid.server.model.checks import LONGEST
from hushbid.server.model.states import CampaignState
from hushbid.server.model.views import CampaignView, JobView, Principal
from hushbid.server.pages import pictures
from hushbid.server.pages.draft_form import said
from hushbid.server.pages.estimates import shown_estimates
from hushbid.server.pages.forecast_words import half_width_words, planned_words
from hushbid.server.pages.form_prices import prices_typed
from hushbid.server.pages.request import PageRequest, analyst, campaign_page, staff
from hushbid.server.pages.sent import Form
from hushbid.server.pages.wording import FormError
from hushbid.server.service import Service
from hushbid.server.service.ending import LONGEST_REASON

Do = Callable[[Service, Principal, str, Form], Any]
_C = CampaignState


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that an analyst may do with a campaign."""

    do: Do
    states: tuple[CampaignState, ...]
    """In which it can be asked about on a page of its own."""


STEPS: dict[str, Step] = {
    "open": Step(do=lambda service, who, id_, form: service.open(who, id_), states=(_C.DRAFT,)),
    "discard": Step(do=lambda service, who, id_, form: service.discard(who, id_), states=(_C.DRAFT,)),
    "close-bidding": Step(
        do=lambda service, who, id_, form: service.close_bidding(who, id_), states=(_C.BIDDING, _C.ALLOCATING)
    ),
    "cancel": Step(
        do=lambda service, who, id_, form: service.cancel(who, id_, form.text("reason")),
        states=(_C.DRAFT, _C.BIDDING, _C.ALLOCATING),
    ),
    "release": Step(
        do=lambda service, who, id_, form: service.release(who, id_, accept_nobody=form.ticked("accept_nobody")),
        states=(_C.DELIVERING,),
    ),
    "close": Step(
        do=lambda service, who, id_, form: service.close_campaign(who, id_, accept_unpaid=form.ticked("accept_unpaid")),
        states=(_C.RELEASED,),
    ),
}
_PATH = (_C.DRAFT, _C.BIDDING, _C.DELIVERING, _C.RELEASED, _C.CLOSED)
_PLACES = {_C.ALLOCATING: 1, _C.NOTHING_BOUGHT: 1, _C.RELEASING: 2, _C.UNDELIVERED: 2, _C.CANCELLED: 0}
_OFFERED = {  # on the campaign's page; some have forms of their own
    _C.DRAFT: ("edit", "invite", "open", "discard"),
    _C.BIDDING: ("close-bidding", "cancel"),
    _C.DELIVERING: ("release",),
    _C.RELEASED: ("pay", "close"),
}


@campaign_page("GET ", staff)
async def campaign(visit: PageRequest) -> Response:
    """One campaign, as it is now; and that a step came too late, if one did."""
    jobs = await visit.ask(visit.service.jobs)
    told = visit.texts.coded("refused_step.moved") if visit.query.get("told") == "moved" else None
    return visit.page("staff/campaign.html", tab="overview", problem=told, **_monitored(visit, jobs))


@campaign_page("GET pulse", staff)
async def pulse(visit: PageRequest) -> Response:
    """What changes while one watches, for the page's script."""
    view, jobs, money = visit.view, await visit.ask(visit.service.jobs), visit.money()
    job = jobs[0] if jobs else None
    counts = {f"count-{state}": str(view.people.get(state, 0)) for state in pictures.STATE_COLOURS}
    texts = {"people": str(sum(view.people.values())), "due": money(view.due), "paid": money(view.paid)}
    return answer(
        {
            "state": view.state.value,
            "job": None if job is None else job.state,
            "people": view.people,
            "texts": {**texts, "job": _progress(visit, job), **counts},
        }
    )


def _monitored(visit: PageRequest, jobs: tuple[JobView, ...]) -> dict[str, Any]:
    view, settings, job = visit.view, visit.view.whole, jobs[0] if jobs else None
    place = _PATH.index(view.state) if view.state in _PATH else _PLACES[view.state]
    steps = _OFFERED.get(view.state, ())
    opening = view.state is _C.DRAFT and job is not None and job.state == "running"
    if opening:
        steps = ()
    if job is not None and job.state == "failed" and view.state is _C.ALLOCATING:
        steps = ("close-bidding", "cancel")
    return {
        "s": settings,
        "job": job,
        "refusal": _refusal(visit, job),
        "progress": _progress(visit, job),
        "path": [state.value for state in _PATH],
        "place": place,
        "astray": view.state not in _PATH,
        "foremost": _foremost(view),
        "steps": steps if visit.who.role == "analyst" else (),
        "prior": prices_typed(settings.market.model_dump(include={"prior"}), visit.write)["prior"],
        "states": pictures.STATE_COLOURS,
        "total": sum(view.people.values()),
        "money": visit.money(),
        "estimates": shown_estimates(
            visit.texts, visit.write, view.release, settings.market.bounds, settings.unit or ""
        ),
        "live": opening or (not view.state.is_over and view.state is not _C.DRAFT),
    }


def _foremost(view: CampaignView) -> str:
    """The step that an analyst most likely wants to take."""
    if view.state is _C.DRAFT:
        return "open" if sum(view.people.values()) >= view.whole.server.minimum_people else "invite"
    if view.state is _C.RELEASED:
        return "pay" if view.due else "close"
    return next(iter(_OFFERED.get(view.state, ("close-bidding",))))


def _refusal(visit: PageRequest, job: JobView | None) -> str | None:
    """Why a draft was not opened, in the page's language; None if that is not due to a setting."""
    if job is None or (job.kind, job.state) != ("opening", "failed") or job.field is None:
        return None
    return _why_not(visit, job.field)


def _progress(visit: PageRequest, job: JobView | None) -> str:
    if job is None or job.state != "running":
        return ""
    share = visit.write.percent(job.done / job.total) if job.total else ""
    return visit.texts.coded(f"job.{job.kind}", share=share)


# -- a step: asked about, then done ------------------------------------------------------------------------------------


@campaign_page("GET copy", analyst)
async def ask_to_copy(visit: PageRequest) -> Response:
    """Ask what the copy of a campaign shall be called; and say why it was not made, if it was not."""
    texts, refused, most = visit.texts, visit.query.get("told", ""), LONGEST["title"]
    told = {"again": "field.once", "minimum_people": "refused_step.minimum_people"}.get(refused)
    wrong = texts("Please give a title of 1 to {most} characters.", most=most) if refused == "title" else None
    return visit.page(
        "staff/copy.html",
        title_problem=wrong,
        longest=most,
        problem=told and texts.coded(told),
        once=secrets.token_urlsafe(24),
        tab="overview",
    )


@campaign_page("POST copy", analyst)
async def copy(visit: PageRequest) -> Response:
    """Copy a campaign's settings into a new draft."""
    title, told = visit.form.text("title"), "title"
    try:
        asked = ("page copy", visit.campaign, title)
        made = await visit.once(visit.service.copy, title, asked=asked, encode=lambda view: str(view.id).encode())
        return visit.go(f"/campaigns/{made.decode()}")
    except FormError:
        told = "again"
    except Conflict as refused:
        told = "minimum_people" if refused.field == "minimum_people" else "again"
    except InputError:
        pass
    return visit.go(f"copy?told={told}")


@campaign_page("GET steps/{step}", analyst)
async def ask(visit: PageRequest, step: str) -> Response:
    """Say what a step means, and ask."""
    return await _asking(visit, step, {})


@campaign_page("GET steps/{step}/{kept}", analyst)
async def ask_again(visit: PageRequest, step: str, kept: str) -> Response:
    """Ask again, and say why a step was refused."""
    return await _asking(visit, step, visit.kept(kept) or {})


@campaign_page("POST steps/{step}", analyst)
async def do(visit: PageRequest, step: str) -> Response:
    """Do it."""
    try:
        await visit.ask(partial(_known(step).do, visit.service), visit.form)
    except (ServerFailed, NotFound):
        raise
    except HushbidError as refused:
        kept = visit.keep(refused=refused.field or "", reason=visit.form.text("reason")[:10_000])
        return visit.go(f"steps/{step}/{kept}")
    return visit.go("/campaigns" if step == "discard" else "")


def _known(step: str) -> Step:
    if step not in STEPS:
        raise HTTPException(404)
    return STEPS[step]


async def _asking(visit: PageRequest, step: str, before: Mapping[str, Any]) -> Response:
    view, refused = visit.view, before.get("refused")
    if view.state not in _known(step).states:
        return visit.go("" if refused is None else "?told=moved")
    preview = None
    if step == "open":
        try:
            if view.people:
                preview = await visit.compute(visit.service.preview_campaign)
        except HushbidError as unforeseen:
            refused = (unforeseen.field or "") if refused is None else refused
    told = _why_not(visit, refused) if refused is not None else None
    settings = view.settings if step in ("discard", "cancel") else view.whole
    at_field = refused == "reason"
    return visit.page(
        "staff/step.html",
        s=settings,
        step=step,
        preview=preview,
        problem=None if at_field else told,
        reason=before.get("reason", ""),
        reason_problem=told if at_field else None,
        tab="overview",
        money=None if settings is None else visit.money(settings),
        planned=None if settings is None else partial(planned_words, visit.texts, visit.write, settings),
        half_width=None if settings is None else partial(half_width_words, visit.texts, visit.write, settings),
    )


def _why_not(visit: PageRequest, field: str) -> str:
    """Why a step was refused, in the page's language: by what is wrong, since the service says it in English."""
    name, view = field.partition("[")[0], visit.view
    if not name:
        under_way = {_C.DRAFT: "refused_step.opening", _C.ALLOCATING: "refused_step.running"}
        return visit.texts.coded(under_way.get(view.state, "refused_step.moved"))
    if f"refused_step.{name}" not in visit.texts:
        return said(field, visit.texts)
    least = visit.write.number(view.whole.server.minimum_people, 9)
    return visit.texts.coded(f"refused_step.{name}", least=least, most=visit.write.number(LONGEST_REASON, 9))
