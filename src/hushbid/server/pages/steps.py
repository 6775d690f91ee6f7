"""Each step of a campaign's life: asked about on a page of its own, then done. And paying people."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from hushbid.errors import HushbidError, ServerFailed
from hushbid.server.domain.views import CampaignView, Principal
from hushbid.server.pages.drafting import groups_of
from hushbid.server.pages.staff import campaign_page
from hushbid.server.pages.visit import Form, Visit, analyst, base_address, require_id
from hushbid.server.service import Service

router = APIRouter(include_in_schema=False)
Do = Callable[[Service, Principal, str, Form], Any]

STEPS: dict[str, Do] = {
    "open": lambda service, who, campaign, form: service.open(who, campaign),
    "close-reporting": lambda service, who, campaign, form: service.close_reporting(who, campaign),
    "release": lambda service, who, campaign, form: service.release(
        who, campaign, accept_nobody=form.ticked("accept_nobody")
    ),
    "close": lambda service, who, campaign, form: service.close_campaign(
        who, campaign, accept_unpaid=form.ticked("accept_unpaid")
    ),
    "cancel": lambda service, who, campaign, form: service.cancel(who, campaign, form.text("reason")),
    "discard": lambda service, who, campaign, form: service.discard(who, campaign),
    "pay": lambda service, who, campaign, form: service.mark_paid(who, campaign, _labels(form)),
}
_STATES = {
    "open": {"draft"},
    "discard": {"draft"},
    "cancel": {"draft", "reporting", "allocating"},
    "close-reporting": {"reporting", "allocating"},
    "release": {"delivering"},
    "close": {"released"},
}
_SLOW = frozenset({"open"})
SURE = "sure"
"""The field of a form by which she says that she was asked."""


@router.get("/campaigns/{campaign}/payments")
async def payments(request: Request, campaign: str) -> Response:
    """Who is owed what, by name."""
    return await _payments_page(await analyst(request), require_id(campaign))


async def _payments_page(visit: Visit, campaign: str, *, problem: str | None = None, status: int = 200) -> Response:
    service = visit.shell.service
    view = await visit.shell.run(lambda: service.campaign(visit.who, campaign))
    rows = await visit.shell.run(lambda: service.payments(visit.who, campaign))
    s = view.settings
    return visit.page(
        "staff/payments.html",
        status=status,
        here=f"/campaigns/{campaign}/payments",
        view=view,
        rows=rows,
        problem=problem,
        tab="payments",
        money=lambda minor: visit.write.money(minor, s.currency, s.decimals),
    )


async def _asking_to_pay(visit: Visit, campaign: str, labels: list[str] | None) -> Response:
    """Say who would be marked as paid, and how much that is."""
    service = visit.shell.service
    view = await visit.shell.run(lambda: service.campaign(visit.who, campaign))
    rows = await visit.shell.run(lambda: service.payments(visit.who, campaign))
    wanted = None if labels is None else set(labels)
    owed = [row for row in rows if row.due and (wanted is None or row.label in wanted)]
    if not owed:
        return await _payments_page(visit, campaign, problem=visit.texts("step.pay.nobody"), status=422)
    s = view.settings
    return visit.page(
        "staff/pay.html",
        here=f"/campaigns/{campaign}/payments",
        view=view,
        owed=owed,
        everybody=labels is None,
        total=sum(row.due for row in owed),
        tab="payments",
        money=lambda minor: visit.write.money(minor, s.currency, s.decimals),
    )


@router.get("/campaigns/{campaign}/steps/{step}")
async def ask(request: Request, campaign: str, step: str) -> Response:
    """Say what a step means, and ask."""
    visit = await analyst(request)
    if step not in _STATES:
        raise HTTPException(404)
    view = await visit.shell.run(lambda: visit.shell.service.campaign(visit.who, require_id(campaign)))
    if view.state.value not in _STATES[step]:
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
    service, who = visit.shell.service, visit.who
    if step == "pay" and not form.ticked(SURE):
        return await _asking_to_pay(visit, found, _labels(form))
    run = visit.shell.compute if step in _SLOW else visit.shell.run
    try:
        await run(lambda: STEPS[step](service, who, found, form))
    except ServerFailed:
        raise
    except HushbidError as refused:
        return await _refused(visit, found, step, str(refused))
    if step == "discard":
        return visit.go("/campaigns")
    return visit.go(f"/campaigns/{found}/payments" if step == "pay" else f"/campaigns/{found}")


async def _refused(visit: Visit, campaign: str, step: str, sentence: str) -> Response:
    """Show the refusal where the step was asked for, if it still makes sense there."""
    if step == "pay":
        return await _payments_page(visit, campaign, problem=sentence, status=409)
    view = await visit.shell.run(lambda: visit.shell.service.campaign(visit.who, campaign))
    if view.state.value in _STATES[step]:
        return await _asking(visit, view, step, problem=sentence, status=409)
    return await campaign_page(visit, campaign, problem=sentence, status=409)


async def _asking(
    visit: Visit, view: CampaignView, step: str, *, problem: str | None = None, status: int = 200
) -> Response:
    service, preview, sentence = visit.shell.service, None, problem
    if step == "open":
        try:
            groups = await visit.shell.run(lambda: groups_of(service, visit.who, view.id))
            preview = await visit.shell.compute(lambda: service.preview(view.settings, groups)) if groups else None
        except HushbidError as refused:
            sentence = sentence or str(refused)
    s = view.settings
    return visit.page(
        "staff/step.html",
        status=status,
        here=f"/campaigns/{view.id}/steps/{step}",
        view=view,
        s=s,
        step=step,
        preview=preview,
        problem=sentence,
        tab="overview",
        money=lambda minor: visit.write.money(minor, s.currency, s.decimals),
    )


# -- somebody lost her link --------------------------------------------------------------------------------------------


@router.post("/campaigns/{campaign}/links")
async def renew(request: Request, campaign: str) -> Response:
    """A new link for somebody who lost hers: asked about, then shown this once."""
    visit = await analyst(request)
    form = await visit.form()
    found, service = require_id(campaign), visit.shell.service
    view = await visit.shell.run(lambda: service.campaign(visit.who, found))
    label = form.text("label")[:200]
    if not form.ticked(SURE):
        return visit.page("staff/renew.html", here=f"/campaigns/{found}/people", view=view, label=label, tab="people")
    one = await visit.shell.run(lambda: service.renew_link(visit.who, found, label))
    return visit.page(
        "staff/renewed.html",
        here=f"/campaigns/{found}/people",
        view=view,
        label=one.label,
        link=f"{base_address(visit)}/p#{one.token}",
        reads_only=one.reads_only,
        tab="people",
    )


def _labels(form: Form) -> list[str] | None:
    """Who was chosen; everybody if the button for everybody was pressed."""
    return None if form.text("who") == "everybody" else form.texts("label")
