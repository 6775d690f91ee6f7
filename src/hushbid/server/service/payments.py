"""Paying people: who is owed what, under which reference, who has been marked as paid, and who is awaited for what.

The server moves no money. A mark says that somebody was paid what was due to her; it can be taken back, and both stand
in the log with who did it. Whoever asks for marks may say what they are to come to: if somebody else was faster, or
more has become due since, nothing is marked. Nothing of a campaign waits for its payments.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from sqlalchemy import Connection

from hushbid.common.documents import parsed
from hushbid.errors import Conflict
from hushbid.server.domain import rules
from hushbid.server.domain.entities import Campaign, Participant
from hushbid.server.domain.payment_views import AccountView, Awaited, AwaitedRow, PaymentRow
from hushbid.server.domain.states import CampaignState, ParticipantState
from hushbid.server.domain.views import Principal
from hushbid.server.service.views_of import payment_row
from hushbid.server.store import campaigns, events, participants, payouts
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


def mark_paid(
    tx: Transaction, who: Principal, campaign_id: str, labels: Iterable[str] | None = None, *, total: int | None = None
) -> tuple[PaymentRow, ...]:
    """Mark people as paid what is due to them, all or some; return those who were marked, with what was due.

    Refused if it comes to another sum than ``total``, in minor units. It can be taken back.
    """
    campaign, people = _payees(tx, who, campaign_id, labels)
    owed = [(one, rules.due(campaign, one)) for one in people if rules.due(campaign, one) > 0]
    if total is not None and total != sum(amount for _, amount in owed):
        raise Conflict("What is due has changed since you looked: look again, and nothing was marked.")
    rows = [{"id": one.id, "paid": one.paid + amount, "paid_at": tx.at} for one, amount in owed]  # what is due on top
    participants.change_rows(tx.connection, rows)
    if owed:
        events.append(tx, campaign_id, "paid", {"participants": [one.id for one, _ in owed], "by": who.name})
    return tuple(payment_row(campaign, one) for one, _ in owed)


def mark_unpaid(tx: Transaction, who: Principal, campaign_id: str, labels: Iterable[str]) -> tuple[PaymentRow, ...]:
    """Take back that these people were marked as paid; return those who were, as they were.

    Others are left as they are. The log shows it.
    """
    campaign, people = _payees(tx, who, campaign_id, labels)
    marked = [one for one in people if one.paid]
    participants.change_rows(tx.connection, [{"id": one.id, "paid": 0, "paid_at": None} for one in marked])
    if marked:
        events.append(tx, campaign_id, "unpaid", {"participants": [one.id for one in marked], "by": who.name})
    return tuple(payment_row(campaign, one) for one in marked)


def _payees(
    tx: Transaction, who: Principal, campaign_id: str, labels: Iterable[str] | None
) -> tuple[Campaign, list[Participant]]:
    rules.require_analyst(who)
    campaign = campaigns.get(tx.connection, campaign_id)
    rules.require_state(campaign, *_PAYABLE, to="pay anybody yet")
    if labels is None:
        return campaign, participants.everybody(tx.connection, campaign_id)
    return campaign, participants.with_labels(tx.connection, campaign_id, dict.fromkeys(labels))


def payments(connection: Connection, who: Principal, campaign_id: str) -> tuple[PaymentRow, ...]:
    """Everybody who is or was owed anything, in the order of invitation."""
    rules.require_analyst(who)
    return rows_of(connection, campaigns.get(connection, campaign_id))


def rows_of(connection: Connection, campaign: Campaign) -> tuple[PaymentRow, ...]:
    """The rows of a campaign's payments."""
    found = (payment_row(campaign, one) for one in _in_order(connection, campaign.id))
    return tuple(row for row in found if row.payment or row.fee or row.paid)


def account(connection: Connection, who: Principal, campaign_id: str) -> AccountView:
    """Return what a campaign owes, how that follows from what was decided, and what is marked as paid."""
    rules.require_staff(who)
    campaign = campaigns.get(connection, campaign_id)
    everybody = participants.everybody(connection, campaign_id)
    told = everybody if campaign.allocated_at is not None else []  # payments are stored some at a time before that
    payments_owed = sum(rules.payment_owed(one) for one in everybody)
    fees = sum(rules.fee_owed(campaign, one) for one in everybody)
    paid = sum(one.paid for one in everybody)
    owing = {one.id: rules.due(campaign, one) for one in everybody if rules.due(campaign, one)}
    due, stated = sum(owing.values()), payouts.of_campaign(connection, campaign_id)
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
        payouts_missing=0 if campaign.settings.payout == "none" else len(owing.keys() - stated.keys()),
        payouts_end_at=ends_at(connection, campaign),
    )


def _rounding(connection: Connection, campaign: Campaign) -> float:
    """By how much all payments were rounded up, in minor units."""
    if not campaign.total_payment:
        return 0.0
    record = parsed(campaigns.record_bytes(connection, campaign.id))
    return float(campaign.total_payment - record["totals"]["payment"] * 10**campaign.settings.decimals)


def ends_at(connection: Connection, campaign: Campaign) -> datetime | None:
    """When the key to where people are paid ends; None before the campaign is over, or if nobody is asked."""
    if campaign.settings.payout == "none" or campaign.root_event is None:
        return None
    over = datetime.fromisoformat(events.head_at(connection, campaign.id, campaign.root_event).at)
    return over + timedelta(days=campaign.settings.payout_days)


def awaited(
    connection: Connection, who: Principal, campaign_id: str, what: Awaited | None = None
) -> tuple[AwaitedRow, ...]:
    """Exactly who is awaited for what, a row for each, in the order of invitation; of one kind only, if it is named."""
    rules.require_analyst(who)
    campaign = campaigns.get(connection, campaign_id)
    told = set(payouts.of_campaign(connection, campaign_id))
    rows = (
        row
        for one in _in_order(connection, campaign_id)
        for row in _awaited_of(campaign, one, told=one.id in told)
        if what in (None, row.awaited)
    )
    return tuple(rows)


def _awaited_of(campaign: Campaign, one: Participant, *, told: bool) -> Iterator[AwaitedRow]:
    settings, due = campaign.settings, rules.due(campaign, one)

    def row(awaited: Awaited, deadline: datetime | None = None) -> AwaitedRow:
        return AwaitedRow(
            label=one.label,
            id=one.id,
            state=one.state,
            awaited=awaited,
            deadline=deadline,
            due=due,
            currency=settings.currency,
            decimals=settings.decimals,
        )

    if campaign.state is CampaignState.BIDDING and one.state is _P.INVITED:
        yield row("bid", settings.bid_by)
    if campaign.state is CampaignState.DELIVERING and one.state is _P.PROMISED:
        yield row("delivery", settings.deliver_by)
    if due and settings.payout != "none" and not told and campaign.payouts_destroyed_at is None:
        yield row("payout")
    if due:
        yield row("payment")


def _in_order(connection: Connection, campaign_id: str) -> list[Participant]:
    return sorted(participants.everybody(connection, campaign_id), key=lambda one: one.number)
