"""Paying people: who is owed what, marks that they were paid and their end, files for the payer and for letters.

A mark is asked about first, with the sum that it comes to; it is made once however often the form arrives, and not at
all if that sum has changed since.
"""

import secrets

from fastapi import APIRouter, Request, Response

from hushbid.errors import Conflict, HushbidError, ServerFailed
from hushbid.server.pages.numbers import Unreadable
from hushbid.server.pages.steps import SURE
from hushbid.server.pages.visit import Form, Visit, analyst, require_id

router = APIRouter(include_in_schema=False)
_DONE = b"done"


@router.get("/campaigns/{campaign}/payments")
async def payments(request: Request, campaign: str) -> Response:
    """Who is owed what, by name, and how it adds up."""
    return await _payments_page(await analyst(request), require_id(campaign))


@router.post("/campaigns/{campaign}/steps/pay")
async def pay(request: Request, campaign: str) -> Response:
    """Mark people as paid, once it was asked about."""
    visit = await analyst(request)
    form, found, service = await visit.form(), require_id(campaign), visit.app.service
    labels = _labels(form)
    if not form.ticked(SURE):
        return await _asking(visit, found, "pay", labels)
    total = form.text("total")
    try:
        if not (total.isascii() and total.isdigit() and len(total) <= 18):
            raise Unreadable("field.once")
        asked = visit.repeatable(form, "page pay", found, total, *(labels or ()), encode=lambda _: _DONE)
        await visit.app.run(lambda: service.once(asked, service.mark_paid, visit.who, found, labels, total=int(total)))
    except (Unreadable, HushbidError) as refused:
        return await _refused(visit, found, refused)
    return visit.go(f"/campaigns/{found}/payments")


@router.post("/campaigns/{campaign}/steps/unpay")
async def unpay(request: Request, campaign: str) -> Response:
    """Take marks back, once it was asked about."""
    visit = await analyst(request)
    form, found = await visit.form(), require_id(campaign)
    labels = form.texts("label")
    if not form.ticked(SURE):
        return await _asking(visit, found, "unpay", labels)
    try:
        await visit.app.run(visit.app.service.mark_unpaid, visit.who, found, labels)
    except HushbidError as refused:
        return await _refused(visit, found, refused)
    return visit.go(f"/campaigns/{found}/payments")


async def _refused(visit: Visit, campaign: str, refused: Unreadable | HushbidError) -> Response:
    """Show why nothing was marked, beside the payments as they are now."""
    if isinstance(refused, ServerFailed):
        raise refused
    if isinstance(refused, Unreadable):
        return await _payments_page(visit, campaign, problem=visit.texts(refused.text), status=422)
    if isinstance(refused, Conflict):
        return await _payments_page(visit, campaign, problem=visit.texts("paying.changed"), status=409)
    return await _payments_page(visit, campaign, problem=str(refused), language="en", status=409)


async def _payments_page(
    visit: Visit, campaign: str, *, problem: str | None = None, language: str | None = None, status: int = 200
) -> Response:
    service = visit.app.service
    view = await visit.app.run(service.campaign, visit.who, campaign)
    rows = await visit.app.run(service.payments, visit.who, campaign)
    account = await visit.app.compute(service.account, visit.who, campaign)
    return visit.page(
        "staff/payments.html",
        status=status,
        here=f"/campaigns/{campaign}/payments",
        view=view,
        rows=rows,
        account=account,
        unpaid=sum(row.due > 0 for row in rows),
        rounding=account.rounding / 10**view.settings.decimals,
        problem=problem,
        language=language,
        tab="payments",
        money=visit.money_of(view.settings),
    )


async def _asking(visit: Visit, campaign: str, step: str, labels: list[str] | None) -> Response:
    """Say whose mark would be made or taken back, and how much that is."""
    service = visit.app.service
    view = await visit.app.run(service.campaign, visit.who, campaign)
    rows = await visit.app.run(service.payments, visit.who, campaign)
    wanted = None if labels is None else set(labels)
    amounts = {
        row.label: row.due if step == "pay" else row.paid for row in rows if wanted is None or row.label in wanted
    }
    chosen = {label: amount for label, amount in amounts.items() if amount}
    if not chosen:
        return await _payments_page(visit, campaign, problem=visit.texts(f"step.{step}.nobody"), status=422)
    return visit.page(
        "staff/pay.html",
        here=f"/campaigns/{campaign}/payments",
        view=view,
        step=step,
        chosen=chosen,
        everybody=labels is None,
        total=sum(chosen.values()),
        once=secrets.token_urlsafe(24),
        tab="payments",
        money=visit.money_of(view.settings),
    )


def _labels(form: Form) -> list[str] | None:
    """Who was chosen; everybody if the button for everybody was pressed."""
    return None if form.text("who") == "everybody" else form.texts("label")
