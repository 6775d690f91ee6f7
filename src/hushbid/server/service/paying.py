"""Paying people: who is owed what, and noting that it was paid. Nothing of the campaign waits for it."""

from collections.abc import Iterable

from sqlalchemy import Connection

from hushbid.server.domain import rules
from hushbid.server.domain.states import CampaignState, ParticipantState
from hushbid.server.domain.views import AccountView, PaymentRow
from hushbid.server.service.views_of import payment_row
from hushbid.server.store import campaigns, events, participants
from hushbid.server.store.transaction import Transaction

_PAYABLE = (
    CampaignState.DELIVERING,
    CampaignState.RELEASING,
    CampaignState.RELEASED,
    CampaignState.CLOSED,
    CampaignState.NOTHING_BOUGHT,
    CampaignState.UNDELIVERED,
    CampaignState.CANCELLED,
)


def mark_paid(tx: Transaction, campaign_id: str, labels: Iterable[str] | None) -> tuple[PaymentRow, ...]:
    """Note that people were paid what is due to them, all or some; returns those who were, with what was due."""
    campaign = campaigns.get(tx.connection, campaign_id)
    rules.require_state(campaign, *_PAYABLE, to="pay anybody yet")
    if labels is None:
        people = participants.everybody(tx.connection, campaign_id)
    else:
        people = participants.with_labels(tx.connection, campaign_id, dict.fromkeys(labels))
    owed = [(one, rules.due(campaign, one)) for one in people if rules.due(campaign, one) > 0]
    at = tx.at
    rows = [{"id": one.id, "paid": one.paid + amount, "paid_at": at} for one, amount in owed]  # what is due on top
    participants.change_rows(tx.connection, rows)
    if owed:
        events.append(tx, campaign_id, "paid", {"participants": [one.id for one, _ in owed]})
    return tuple(payment_row(campaign, one) for one, _ in owed)


def rows(connection: Connection, campaign_id: str) -> tuple[PaymentRow, ...]:
    """Everybody who is or was owed anything, in the order of invitation."""
    campaign = campaigns.get(connection, campaign_id)
    everybody = sorted(participants.everybody(connection, campaign_id), key=lambda one: one.number)
    found = (payment_row(campaign, one) for one in everybody)
    return tuple(row for row in found if row.payment or row.fee or row.paid)


def account(connection: Connection, campaign_id: str) -> AccountView:
    """What a campaign owes in all."""
    campaign = campaigns.get(connection, campaign_id)
    everybody = participants.everybody(connection, campaign_id)
    return AccountView(
        delivered=sum(one.state is ParticipantState.DELIVERED for one in everybody),
        payments=sum(rules.payment_owed(one) for one in everybody),
        fees=sum(rules.fee_owed(campaign, one) for one in everybody),
        paid=sum(one.paid for one in everybody),
    )
