"""Paying people: who is owed what, marks that they were paid and their end, files for the payer and for letters.

A mark is asked about first, with the sum that it comes to; it is made once however often the form arrives, and not at
all if that sum has changed since.
"""

import secrets

from fastapi import APIRouter, Response

from hushbid.errors import HushbidError, ServerFailed
from hushbid.server.pages.request import analyst, keep_aside, kept_aside
from hushbid.server.pages.staff import CampaignTurn, campaign_page
from hushbid.server.pages.wording import FormError

router = APIRouter(include_in_schema=False)
SURE = "sure"
"""The field of a form by which she says that she was asked."""

_DONE = b"done"
_TOLD = {"pay": "step.pay.nobody", "unpay": "step.unpay.nobody", "changed": "paying.changed", "again": "field.once"}


@campaign_page(router, "GET /payments", analyst)
async def payments(turn: CampaignTurn) -> Response:
    """Who is owed what, by name, and how it adds up; and why nothing was marked, if nothing was."""
    visit, settings = turn.visit, turn.view.whole
    rows = await turn.ask(turn.service.payments)
    account = await visit.app.compute(visit.who, turn.service.account, visit.who, turn.id)
    told = _TOLD.get(visit.request.query_params.get("told", ""))
    return turn.page(
        "staff/payments.html",
        rows=rows,
        account=account,
        unpaid=sum(row.due > 0 for row in rows),
        rounding=account.rounding / 10**settings.currency.decimals,
        problem=told and visit.texts.coded(told),
        tab="payments",
        money=visit.money_of(settings),
    )


@campaign_page(router, "GET /payments/{kept}", analyst)
async def ask(turn: CampaignTurn, kept: str) -> Response:
    """Say whose mark would be made or taken back, and how much that is."""
    chosen = kept_aside(turn.visit, kept)
    if chosen is None:
        return turn.go("/payments")
    step, labels = chosen["step"], chosen["labels"]
    amounts = await _amounts(turn, step, labels)
    if not amounts:
        return turn.go(f"/payments?told={step}")
    return turn.page(
        "staff/pay.html",
        step=step,
        chosen=amounts,
        everybody=labels is None,
        total=sum(amounts.values()),
        once=secrets.token_urlsafe(24),
        tab="payments",
        money=turn.visit.money_of(turn.view.whole),
    )


@campaign_page(router, "POST /steps/pay", analyst)
async def pay(turn: CampaignTurn) -> Response:
    """Mark people as paid, once it was asked about."""
    visit, form, service, found = turn.visit, turn.form, turn.service, turn.id
    labels = None if form.text("who") == "everybody" else form.chosen("label")
    if not form.ticked(SURE):
        return await _to_be_asked(turn, "pay", labels)
    total = form.text("total")
    try:
        if not (total.isascii() and total.isdigit() and len(total) <= 18):
            raise FormError("field.once")
        asked = visit.once(form, "page pay", found, total, *(labels or ()), encode=lambda _: _DONE)
        await visit.app.run(lambda: service.mark_paid.once(asked, visit.who, found, labels, total=int(total)))
    except (FormError, HushbidError) as refused:
        return _refused(turn, refused)
    return turn.go("/payments")


@campaign_page(router, "POST /steps/unpay", analyst)
async def unpay(turn: CampaignTurn) -> Response:
    """Take marks back, once it was asked about."""
    labels = turn.form.chosen("label")
    if not turn.form.ticked(SURE):
        return await _to_be_asked(turn, "unpay", labels)
    try:
        await turn.ask(turn.service.mark_unpaid, labels)
    except HushbidError as refused:
        return _refused(turn, refused)
    return turn.go("/payments")


def _refused(turn: CampaignTurn, refused: FormError | HushbidError) -> Response:
    """Say why nothing was marked, with the payments as they are now."""
    if isinstance(refused, ServerFailed):
        raise refused
    return turn.go(f"/payments?told={'again' if isinstance(refused, FormError) else 'changed'}")


async def _to_be_asked(turn: CampaignTurn, step: str, labels: list[str] | None) -> Response:
    """Send the browser to the question about those who were chosen, whose names stand in no address."""
    if not await _amounts(turn, step, labels):
        return turn.go(f"/payments?told={step}")
    return turn.go(f"/payments/{keep_aside(turn.visit, step=step, labels=labels)}")


async def _amounts(turn: CampaignTurn, step: str, labels: list[str] | None) -> dict[str, int]:
    """What would be marked for each of these people, or of everybody."""
    rows = await turn.ask(turn.service.payments)
    amounts = {row.label: row.due if step == "pay" else row.paid for row in rows}
    return {label: amount for label, amount in amounts.items() if amount and (labels is None or label in labels)}
