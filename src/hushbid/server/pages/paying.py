"""Paying people: who is owed what, marks that they were paid and their end, files for the payer and for letters.

A mark is asked about first, with the sum that it comes to; it is made once however often the form arrives, and not at
all if that sum has changed since.
"""

import secrets

from fastapi import APIRouter, Request, Response

from hushbid.errors import HushbidError, ServerFailed
from hushbid.server.pages.request import PageRequest, analyst, keep_aside, kept_aside, require_id
from hushbid.server.pages.wording import FormError

router = APIRouter(include_in_schema=False)
SURE = "sure"
"""The field of a form by which she says that she was asked."""

_DONE = b"done"
_TOLD = {"pay": "step.pay.nobody", "unpay": "step.unpay.nobody", "changed": "paying.changed", "again": "field.once"}


@router.get("/campaigns/{campaign}/payments")
async def payments(request: Request, campaign: str) -> Response:
    """Who is owed what, by name, and how it adds up; and why nothing was marked, if nothing was."""
    visit, found = await analyst(request), require_id(campaign)
    service = visit.app.service
    view = await visit.app.run(service.campaign, visit.who, found)
    rows = await visit.app.run(service.payments, visit.who, found)
    account = await visit.app.compute(visit.who, service.account, visit.who, found)
    told = _TOLD.get(request.query_params.get("told", ""))
    return visit.page(
        "staff/payments.html",
        view=view,
        rows=rows,
        account=account,
        unpaid=sum(row.due > 0 for row in rows),
        rounding=account.rounding / 10**view.whole.currency.decimals,
        problem=told and visit.texts.coded(told),
        tab="payments",
        money=visit.money_of(view.whole),
    )


@router.get("/campaigns/{campaign}/payments/{kept}")
async def ask(request: Request, campaign: str, kept: str) -> Response:
    """Say whose mark would be made or taken back, and how much that is."""
    visit, found = await analyst(request), require_id(campaign)
    service, chosen = visit.app.service, kept_aside(visit, kept)
    if chosen is None:
        return visit.go(f"/campaigns/{found}/payments")
    step, labels = chosen["step"], chosen["labels"]
    view = await visit.app.run(service.campaign, visit.who, found)
    amounts = await _amounts(visit, found, step, labels)
    if not amounts:
        return visit.go(f"/campaigns/{found}/payments?told={step}")
    return visit.page(
        "staff/pay.html",
        view=view,
        step=step,
        chosen=amounts,
        everybody=labels is None,
        total=sum(amounts.values()),
        once=secrets.token_urlsafe(24),
        tab="payments",
        money=visit.money_of(view.whole),
    )


@router.post("/campaigns/{campaign}/steps/pay")
async def pay(request: Request, campaign: str) -> Response:
    """Mark people as paid, once it was asked about."""
    visit = await analyst(request)
    form, found, service = await visit.form(), require_id(campaign), visit.app.service
    labels = None if form.text("who") == "everybody" else form.chosen("label")
    if not form.ticked(SURE):
        return await _to_be_asked(visit, found, "pay", labels)
    total = form.text("total")
    try:
        if not (total.isascii() and total.isdigit() and len(total) <= 18):
            raise FormError("field.once")
        asked = visit.once(form, "page pay", found, total, *(labels or ()), encode=lambda _: _DONE)
        await visit.app.run(lambda: service.mark_paid.once(asked, visit.who, found, labels, total=int(total)))
    except (FormError, HushbidError) as refused:
        return _refused(visit, found, refused)
    return visit.go(f"/campaigns/{found}/payments")


@router.post("/campaigns/{campaign}/steps/unpay")
async def unpay(request: Request, campaign: str) -> Response:
    """Take marks back, once it was asked about."""
    visit = await analyst(request)
    form, found = await visit.form(), require_id(campaign)
    labels = form.chosen("label")
    if not form.ticked(SURE):
        return await _to_be_asked(visit, found, "unpay", labels)
    try:
        await visit.app.run(visit.app.service.mark_unpaid, visit.who, found, labels)
    except HushbidError as refused:
        return _refused(visit, found, refused)
    return visit.go(f"/campaigns/{found}/payments")


def _refused(visit: PageRequest, campaign: str, refused: FormError | HushbidError) -> Response:
    """Say why nothing was marked, beside the payments as they are now."""
    if isinstance(refused, ServerFailed):
        raise refused
    return visit.go(f"/campaigns/{campaign}/payments?told={'again' if isinstance(refused, FormError) else 'changed'}")


async def _to_be_asked(visit: PageRequest, campaign: str, step: str, labels: list[str] | None) -> Response:
    """Send the browser to the question about those who were chosen, whose names stand in no address."""
    if not await _amounts(visit, campaign, step, labels):
        return visit.go(f"/campaigns/{campaign}/payments?told={step}")
    return visit.go(f"/campaigns/{campaign}/payments/{keep_aside(visit, step=step, labels=labels)}")


async def _amounts(visit: PageRequest, campaign: str, step: str, labels: list[str] | None) -> dict[str, int]:
    """What would be marked for each of these people, or of everybody."""
    rows = await visit.app.run(visit.app.service.payments, visit.who, campaign)
    wanted = None if labels is None else set(labels)
    amounts = {row.label: row.due if step == "pay" else row.paid for row in rows}
    return {label: amount for label, amount in amounts.items() if amount and (wanted is None or label in wanted)}
