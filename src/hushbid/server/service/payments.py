"""Paying people: who is owed what and marked as paid, who is awaited for what, and where people are to be paid.

The server moves no money. A mark says that a person was paid what was due to them; it can be taken back, and both stand
in the log with who did it. A request for marks may state their sum: if another request was faster, or more has become
due since, nothing is marked. Nothing of a campaign waits for its payments.

A payout handle is stated by each person, padded to one length and sealed with its campaign's key for payouts, which
lies outside the database and has an end of its own: ``payout_days`` after the campaign is over. Nothing but the
payments file opens a handle for anyone else, only as long as something is due to its owner, and the log says who took
it when. Their own page shows them its end.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

from sqlalchemy import Connection

from hushbid.common.documents import parsed
from hushbid.errors import Conflict
from hushbid.server.installation import Installation
from hushbid.server.model import rules
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.payment_views import AccountView, Awaited, AwaitedRow, PaymentFile, PaymentRow, PayoutView
from hushbid.server.model.payout import LONGEST_HANDLE, checked_handle, masked, reference_of
from hushbid.server.model.settings import MOST_PEOPLE
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import Principal
from hushbid.server.service.bodies import Label, Whole, described
from hushbid.server.service.participation import acting, forget_payout
from hushbid.server.service.use_case import Route, ServiceContext, changes, reads, steps
from hushbid.server.service.views_of import payment_row
from hushbid.server.store import campaigns, events, participants
from hushbid.server.store.database import Transaction

_PAYABLE = (
    CampaignState.DELIVERING,
    CampaignState.RELEASING,
    CampaignState.RELEASED,
    CampaignState.CLOSED,
    CampaignState.NOTHING_BOUGHT,
    CampaignState.UNDELIVERED,
    CampaignState.CANCELLED,
)
_P = ParticipantState


@changes("payment", Route("POST /campaigns/{campaign}/payments", "Mark as paid", by="analyst", wraps="paid"))
def mark_paid(
    tx: Transaction,
    who: Principal,
    campaign_id: str,
    labels: Annotated[
        Sequence[Label] | None,
        described("Their labels; everyone to whom something is due if left out.", max_length=MOST_PEOPLE),
    ] = None,
    *,
    total: Annotated[
        Whole | None,
        described(
            "What is due to them in all, in minor units, as you saw it. If it is another sum by now, nothing is"
            " marked.",
            ge=0,
        ),
    ] = None,
) -> tuple[PaymentRow, ...]:
    """Mark people as paid what is due to them, all or some; return those who were marked, with what was due.

    Refused if it comes to another sum than ``total``, in minor units. It can be taken back.
    """
    campaign, people = _payees(tx, campaign_id, labels)
    owed = [(one, rules.due(campaign, one)) for one in people if rules.due(campaign, one) > 0]
    if total is not None and total != sum(amount for _, amount in owed):
        raise Conflict("What is due has changed since you looked: look again, and nothing was marked.")
    rows = [{"id": one.id, "paid": one.paid + amount, "paid_at": tx.at} for one, amount in owed]  # what is due on top
    participants.change_rows(tx.connection, rows)
    if owed:
        events.append(tx, campaign_id, "paid", {"participants": [one.id for one, _ in owed], "by": who.name})
    return tuple(payment_row(campaign, one) for one, _ in owed)


@changes("payment", Route("POST /campaigns/{campaign}/unpaid", "Take marks as paid back", by="analyst", wraps="unpaid"))
def mark_unpaid(
    tx: Transaction,
    who: Principal,
    campaign_id: str,
    labels: Annotated[Sequence[Label], described("Their labels.", min_length=1, max_length=MOST_PEOPLE)],
) -> tuple[PaymentRow, ...]:
    """Take back that these people were marked as paid; return those who were, as they were.

    Others are left as they are. The log shows it.
    """
    campaign, people = _payees(tx, campaign_id, labels)
    marked = [one for one in people if one.paid]
    participants.change_rows(tx.connection, [{"id": one.id, "paid": 0, "paid_at": None} for one in marked])
    if marked:
        events.append(tx, campaign_id, "unpaid", {"participants": [one.id for one in marked], "by": who.name})
    return tuple(payment_row(campaign, one) for one in marked)


def _payees(tx: Transaction, campaign_id: str, labels: Sequence[str] | None) -> tuple[Campaign, list[Participant]]:
    campaign = campaigns.get(tx.connection, campaign_id)
    rules.require_state(campaign, *_PAYABLE, to="pay anybody yet")
    if labels is None:
        return campaign, participants.everybody(tx.connection, campaign_id)
    return campaign, [participants.by_label(tx.connection, campaign_id, label) for label in dict.fromkeys(labels)]


@reads(by="analyst")
def payments(connection: Connection, who: Principal, campaign_id: str) -> tuple[PaymentRow, ...]:
    """Everybody who is or was owed anything, in the order of invitation."""
    return rows_of(connection, campaigns.get(connection, campaign_id))


def rows_of(connection: Connection, campaign: Campaign) -> tuple[PaymentRow, ...]:
    """The rows of a campaign's payments."""
    found = (payment_row(campaign, one) for one in participants.in_order(connection, campaign.id))
    return tuple(row for row in found if row.payment or row.fee or row.paid)


@reads(Route("GET /campaigns/{campaign}/account", "Read the account", by="staff", computes=True))
def account(connection: Connection, who: Principal, campaign_id: str) -> AccountView:
    """Return what a campaign owes, how that follows from what was decided, and what is marked as paid."""
    campaign = campaigns.get(connection, campaign_id)
    everybody = participants.everybody(connection, campaign_id)
    told = everybody if campaign.allocated_at is not None else []  # payments are stored some at a time before that
    payments_owed = sum(rules.payment_owed(one) for one in everybody)
    fees = sum(rules.fee_owed(campaign, one) for one in everybody)
    paid = sum(one.paid for one in everybody)
    owing = {one.id: rules.due(campaign, one) for one in everybody if rules.due(campaign, one)}
    due, stated = sum(owing.values()), participants.payouts_of(connection, campaign_id)
    return AccountView(
        delivered=sum(one.state is _P.DELIVERED for one in everybody),
        promised=sum(one.payment or 0 for one in told),
        dropped=sum(one.payment or 0 for one in told if one.state is _P.DROPPED),
        withdrawn=sum(one.payment or 0 for one in told if one.state is _P.WITHDRAWN),
        awaited=sum(one.payment or 0 for one in told if one.state is _P.PROMISED),
        payments=payments_owed,
        fees=fees,
        owed=payments_owed + fees,
        paid=paid,
        above=paid + due - payments_owed - fees,
        due=due,
        rounding=_rounding(connection, campaign),
        payouts_stated=len(owing.keys() & stated.keys()),
        payouts_missing=0 if campaign.settings.server.payout == "none" else len(owing.keys() - stated.keys()),
        payouts_end_at=ends_at(connection, campaign),
    )


def _rounding(connection: Connection, campaign: Campaign) -> float:
    """By how much all payments were rounded up, in minor units."""
    if not campaign.total_payment:
        return 0.0
    record = parsed(campaigns.record_bytes(connection, campaign.id))
    return float(campaign.total_payment - record["totals"]["payment"] * 10**campaign.settings.currency.decimals)


def ends_at(connection: Connection, campaign: Campaign) -> datetime | None:
    """When the key to where people are paid ends; None before the campaign is over, or if nobody is asked."""
    if campaign.settings.server.payout == "none" or campaign.root_event is None:
        return None
    over = datetime.fromisoformat(events.head_at(connection, campaign.id, campaign.root_event).at)
    return over + timedelta(days=campaign.settings.server.payout_days)


@reads(by="analyst")
def awaited(
    connection: Connection, who: Principal, campaign_id: str, what: Awaited | None = None
) -> tuple[AwaitedRow, ...]:
    """Exactly who is awaited for what, a row for each, in the order of invitation; of one kind only, if it is named."""
    campaign = campaigns.get(connection, campaign_id)
    told = set(participants.payouts_of(connection, campaign_id))
    rows = (
        row
        for one in participants.in_order(connection, campaign_id)
        for row in _awaited_of(campaign, one, told=one.id in told)
        if what in (None, row.awaited)
    )
    return tuple(rows)


def _awaited_of(campaign: Campaign, one: Participant, *, told: bool) -> Iterator[AwaitedRow]:
    settings, due = campaign.settings, rules.due(campaign, one)

    def row(awaited: Awaited, deadline: datetime | None = None) -> AwaitedRow:
        return AwaitedRow.of(one, settings.shown, awaited=awaited, deadline=deadline, due=due)

    if campaign.state is CampaignState.BIDDING and one.state is _P.INVITED:
        yield row("bid", settings.server.bid_by)
    if campaign.state is CampaignState.DELIVERING and one.state is _P.PROMISED:
        yield row("delivery", settings.server.deliver_by)
    if due and settings.server.payout != "none" and not told and campaign.payouts_destroyed_at is None:
        yield row("payout")
    if due:
        yield row("payment")


_PADDED = 1024  # bytes: more than 254 characters can have
_GIVES = (ParticipantState.BID, ParticipantState.PROMISED)


@changes("payout", Route("PUT /participation/payout", "Say where to pay me", by="secret"))
def state_payout(
    tx: Transaction,
    secret: str,
    payout: Annotated[
        str,
        described(
            "What the campaign asks for: an e-mail address, an IBAN or a panel's id.",
            min_length=1,
            max_length=2 * LONGEST_HANDLE,
            repr=False,
        ),
    ],
) -> PayoutView:
    """Store payment details, sealed for the payer only, if the campaign asks for them.

    Possible after a bid, and again until the payment is marked: the last ones count.
    """
    campaign, participant = acting(tx, secret)
    _require_may_state(campaign, participant)
    typed = checked_handle(campaign.settings.server.payout, payout)
    vault = tx.installation.payouts
    vault.create(campaign.id)  # durable before anything is sealed with it
    sealed = vault.seal(campaign.id, participant.id, typed.encode().ljust(_PADDED, b"\0"))
    participants.put_payout(tx.connection, participant.id, sealed, tx.at)
    events.append(tx, campaign.id, "payout-stated", {"participant": participant.id})
    return _payout_view(tx.connection, tx.installation, campaign, participant)


@changes("payout", Route("DELETE /participation/payout", "Forget where to pay me", by="secret", repeatable=True))
def remove_payout(tx: Transaction, secret: str) -> PayoutView:
    """Delete the payment details; again changes nothing."""
    campaign, participant = acting(tx, secret)
    forget_payout(tx, campaign, participant)
    return _payout_view(tx.connection, tx.installation, campaign, participant)


@steps(Route("GET /participation/payout", "Where am I paid?", by="secret"))
def read_payout(context: ServiceContext, secret: str) -> PayoutView:
    """Return whether payment details are stored, their last characters, and when they are destroyed."""
    with context.read() as connection:
        participant = participants.by_secret(connection, secret)
        campaign = campaigns.get(connection, participant.campaign_id)
        return _payout_view(connection, context.installation, campaign, participant)


@steps(by="analyst")
def payment_file(context: ServiceContext, who: Principal, campaign_id: str) -> PaymentFile:
    """The payments, with where to pay everybody to whom something is due; whoever takes them stands in the log."""
    sealed, rows, campaign = context.write("payouts.take", lambda tx: _taken(tx, who, campaign_id))
    vault = context.installation.payouts
    opened = {one: vault.open(campaign_id, one, content) for one, content in sealed.items()}
    handles = {one: content.rstrip(b"\0").decode() for one, content in opened.items()}
    return PaymentFile(payout=campaign.settings.server.payout, rows=rows, handles=handles)


def destroy_payouts(context: ServiceContext, now: datetime) -> None:
    """Destroy the keys to where people are paid whose time has come, then say so; done again after a crash."""
    with context.read() as connection:
        over = [(one, ends_at(connection, one)) for one in campaigns.over_with_payouts(connection)]
    for campaign, end in over:
        if end is not None and now >= end:
            context.installation.payouts.destroy(campaign.id)  # before it is said
            context.write("payouts.end", partial(_note_end, campaign_id=campaign.id))


def _note_end(tx: Transaction, campaign_id: str) -> None:
    if campaigns.get(tx.connection, campaign_id).payouts_destroyed_at is None:
        participants.remove_payouts(tx.connection, campaign_id)
        tx.erases = True
        campaigns.change(tx.connection, campaign_id, payouts_destroyed_at=tx.at)
        events.append(tx, campaign_id, "payouts-destroyed", {})


def _taken(
    tx: Transaction, who: Principal, campaign_id: str
) -> tuple[dict[str, bytes], tuple[PaymentRow, ...], Campaign]:
    campaign = campaigns.get(tx.connection, campaign_id)
    rows = rows_of(tx.connection, campaign)
    owed = {row.id for row in rows if row.due}
    found = participants.payouts_of(tx.connection, campaign_id) if tx.installation.payouts.holds(campaign_id) else {}
    sealed = {one: content for one, content in found.items() if one in owed}
    if sealed:  # logged before anybody sees one
        events.append(tx, campaign_id, "payouts-taken", {"by": who.name, "participants": sorted(sealed)})
    return sealed, rows, campaign


def _require_may_state(campaign: Campaign, participant: Participant) -> None:
    """Refuse a handle where none is asked for, where it is of no use, and where it could no longer be forgotten."""
    told = "It is not possible to say where to pay you:"
    due = rules.due(campaign, participant)
    if campaign.settings.server.payout == "none":
        raise Conflict(f"{told} this campaign does not ask for it.")
    if campaign.payouts_destroyed_at is not None:
        raise Conflict(f"{told} the key to such answers was destroyed, as was promised.")
    if participant.bid_at is None:
        raise Conflict(f"{told} name your price first.")
    if participant.paid and not due:
        raise Conflict(f"{told} you have been marked as paid.")
    hopes = participant.state in _GIVES and not campaign.state.is_over
    if not due and not hopes:
        raise Conflict(f"{told} nothing is due to you.")


def _payout_view(
    connection: Connection, installation: Installation, campaign: Campaign, participant: Participant
) -> PayoutView:
    found, shown, stated_at = participants.payout(connection, participant.id), None, None
    if found is not None and installation.payouts.holds(campaign.id):
        sealed, stated_at = found
        shown = masked(installation.payouts.open(campaign.id, participant.id, sealed).rstrip(b"\0").decode())
    try:
        _require_may_state(campaign, participant)
        possible = True
    except Conflict:
        possible = False
    return PayoutView(
        payout=campaign.settings.server.payout,
        shown=shown,
        stated_at=stated_at,
        may_state=possible,
        reference=reference_of(campaign.id, participant.id),
        days=campaign.settings.server.payout_days,
        ends_at=ends_at(connection, campaign),
        destroyed_at=campaign.payouts_destroyed_at,
    )
