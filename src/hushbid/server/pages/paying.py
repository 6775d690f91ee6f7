"""Paying people: who is owed what, marks that they were paid and their end, files for the payer and for letters.

A mark is asked about first, with the sum that it comes to; it is made once however often the form arrives, and not at
all if that sum has changed since.
"""

import secrets
from functools import partial

from fastapi import Response

from hushbid.errors import HushbidError, ServerFailed
from hushbid.server.pages.request import PageRequest, analyst, campaign_page
from hushbid.server.pages.wording import FormError

SURE = "sure"
"""The field of a form by which she says that she was asked."""

_TOLD = {"pay": "step.pay.nobody", "unpay": "step.unpay.nobody", "changed": "paying.changed", "again": "field.once"}


@campaign_page("GET payments", analyst)
async def payments(visit: PageRequest) -> Response:
    """Who is owed what, by name, and how it adds up; and why nothing was marked, if nothing was."""
    rows = await visit.ask(visit.service.payments)
    account = await visit.compute(visit.service.account)
    told = _TOLD.get(visit.query.get("told", ""))
    return visit.page(
        "staff/payments.html",
        rows=rows,
        account=account,
        unpaid=sum(row.due > 0 for row in rows),
        rounding=account.rounding / 10**visit.view.whole.currency.decimals,
        problem=told and visit.texts.coded(told),
        tab="payments",
        money=visit.money(),
    )


@campaign_page("GET payments/{kept}", analyst)
async def ask(visit: PageRequest, kept: str) -> Response:
    """Say whose mark would be made or taken back, and how much that is."""
    chosen = visit.kept(kept)
    if chosen is None:
        return visit.go("payments")
    step, labels = chosen["step"], chosen["labels"]
    amounts = await _amounts(visit, step, labels)
    if not amounts:
        return visit.go(f"payments?told={step}")
    return visit.page(
        "staff/pay.html",
        step=step,
        chosen=amounts,
        everybody=labels is None,
        total=sum(amounts.values()),
        once=secrets.token_urlsafe(24),
        tab="payments",
        money=visit.money(),
    )


@campaign_page("POST steps/pay", analyst)
async def pay(visit: PageRequest) -> Response:
    """Mark people as paid, once it was asked about."""
    everybody = visit.form.text("who") == "everybody"
    return await _marked(visit, "pay", None if everybody else visit.form.chosen("label"))


@campaign_page("POST steps/unpay", analyst)
async def unpay(visit: PageRequest) -> Response:
    """Take marks back, once it was asked about."""
    return await _marked(visit, "unpay", visit.form.chosen("label"))


async def _marked(visit: PageRequest, step: str, labels: list[str] | None) -> Response:
    """Make marks or take them back; before that send the browser to the question about those who were chosen, whose
    names stand in no address. If nothing was marked, the payments as they are now say why."""
    if not visit.form.ticked(SURE):
        amounts = await _amounts(visit, step, labels)
        return visit.go(f"payments/{visit.keep(step=step, labels=labels)}" if amounts else f"payments?told={step}")
    try:
        if step == "unpay":
            await visit.ask(visit.service.mark_unpaid, labels)
        else:
            total = visit.form.text("total")
            if not (total.isascii() and total.isdigit() and len(total) <= 18):
                raise FormError("field.once")
            asked = ("page pay", visit.campaign, total, *(labels or ()))
            mark = partial(visit.once, visit.service.mark_paid, labels, asked=asked, encode=lambda _: b"done")
            await mark(total=int(total))
    except ServerFailed:
        raise
    except (FormError, HushbidError) as refused:
        return visit.go(f"payments?told={'again' if isinstance(refused, FormError) else 'changed'}")
    return visit.go("payments")


async def _amounts(visit: PageRequest, step: str, labels: list[str] | None) -> dict[str, int]:
    """What would be marked for each of these people, or of everybody."""
    rows = await visit.ask(visit.service.payments)
    amounts = {row.label: row.due if step == "pay" else row.paid for row in rows}
    return {label: amount for label, amount in amounts.items() if amount and (labels is None or label in labels)}
