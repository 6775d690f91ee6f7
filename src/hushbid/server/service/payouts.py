"""Where people are to be paid: said by each herself, sealed, opened for the payer alone, destroyed on schedule.

A handle is padded to one length and sealed with its campaign's key for payouts, which lies outside the database and has
an end of its own: ``payout_days`` after the campaign is over. Nothing but the payments file opens a handle for somebody
else, only as long as something is due to its owner, and the log says who took it when. Her own page shows her its end.
"""

from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from hushbid.errors import Conflict
from hushbid.server.domain import rules
from hushbid.server.domain.entities import Campaign, Participant
from hushbid.server.domain.payment_views import PaymentFile, PaymentRow, PayoutView
from hushbid.server.domain.payout import checked_handle, masked, reference_of
from hushbid.server.domain.states import ParticipantState
from hushbid.server.domain.views import Principal
from hushbid.server.installation import Installation
from hushbid.server.service.participation import acting, forget_payout
from hushbid.server.service.payments import ends_at, rows_of
from hushbid.server.service.use_case import Desk
from hushbid.server.store import campaigns, events, participants, payouts
from hushbid.server.store.database import Transaction

_PADDED = 1024  # bytes: more than 254 characters can have
_GIVES = (ParticipantState.BID, ParticipantState.PROMISED)


def state_payout(tx: Transaction, secret: str, payout: object) -> PayoutView:
    """Store payment details, sealed for the payer only, if the campaign asks for them.

    Possible after a bid, and again until the payment is marked: the last ones count.
    """
    campaign, participant = acting(tx, secret)
    _require_may_state(campaign, participant)
    typed = checked_handle(campaign.settings.payout, payout)
    vault = tx.installation.payouts
    vault.create(campaign.id)  # durable before anything is sealed with it
    sealed = vault.seal(campaign.id, participant.id, typed.encode().ljust(_PADDED, b"\0"))
    payouts.put(tx.connection, participant.id, sealed, tx.at)
    events.append(tx, campaign.id, "payout-stated", {"participant": participant.id})
    return _view(tx.connection, tx.installation, campaign, participant)


def remove_payout(tx: Transaction, secret: str) -> PayoutView:
    """Delete the payment details; again changes nothing."""
    campaign, participant = acting(tx, secret)
    forget_payout(tx, campaign, participant)
    return _view(tx.connection, tx.installation, campaign, participant)


def read_payout(desk: Desk, secret: str) -> PayoutView:
    """Return whether payment details are stored, their last characters, and when they are destroyed."""
    with desk.read() as connection:
        participant = participants.by_secret(connection, secret)
        campaign = campaigns.get(connection, participant.campaign_id)
        return _view(connection, desk.installation, campaign, participant)


def payment_file(desk: Desk, who: Principal, campaign_id: str) -> PaymentFile:
    """The payments, with where to pay everybody to whom something is due; whoever takes them stands in the log."""
    rules.require_analyst(who)
    sealed, rows, campaign = desk.write("payouts.take", lambda tx: _taken(tx, who, campaign_id))
    vault = desk.installation.payouts
    opened = {one: vault.open(campaign_id, one, content) for one, content in sealed.items()}
    handles = {one: content.rstrip(b"\0").decode() for one, content in opened.items()}
    return PaymentFile(payout=campaign.settings.payout, rows=rows, handles=handles)


def destroy_payouts(desk: Desk, now: datetime) -> None:
    """Destroy the keys to where people are paid whose time has come, then say so; done again after a crash."""
    with desk.read() as connection:
        over = [(one, ends_at(connection, one)) for one in campaigns.over_with_payouts(connection)]
    for campaign, end in over:
        if end is not None and now >= end:
            desk.installation.payouts.destroy(campaign.id)  # before it is said
            desk.write("payouts.end", partial(_note_end, campaign_id=campaign.id))


def _note_end(tx: Transaction, campaign_id: str) -> None:
    if campaigns.get(tx.connection, campaign_id).payouts_destroyed_at is None:
        payouts.remove_all(tx.connection, campaign_id)
        tx.erases = True
        campaigns.change(tx.connection, campaign_id, payouts_destroyed_at=tx.at)
        events.append(tx, campaign_id, "payouts-destroyed", {})


def _taken(
    tx: Transaction, who: Principal, campaign_id: str
) -> tuple[dict[str, bytes], tuple[PaymentRow, ...], Campaign]:
    campaign = campaigns.get(tx.connection, campaign_id)
    rows = rows_of(tx.connection, campaign)
    owed = {row.id for row in rows if row.due}
    found = payouts.of_campaign(tx.connection, campaign_id) if tx.installation.payouts.holds(campaign_id) else {}
    sealed = {one: content for one, content in found.items() if one in owed}
    if sealed:  # logged before anybody sees one
        events.append(tx, campaign_id, "payouts-taken", {"by": who.name, "participants": sorted(sealed)})
    return sealed, rows, campaign


def _require_may_state(campaign: Campaign, participant: Participant) -> None:
    """Refuse a handle where none is asked for, where it is of no use, and where it could no longer be forgotten."""
    told = "It is not possible to say where to pay you:"
    due = rules.due(campaign, participant)
    if campaign.settings.payout == "none":
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


def _view(
    connection: Connection, installation: Installation, campaign: Campaign, participant: Participant
) -> PayoutView:
    found, shown = payouts.get(connection, participant.id), None
    if found is not None and installation.payouts.holds(campaign.id):
        opened = installation.payouts.open(campaign.id, participant.id, found.sealed)
        shown = masked(opened.rstrip(b"\0").decode())
    try:
        _require_may_state(campaign, participant)
        possible = True
    except Conflict:
        possible = False
    return PayoutView(
        payout=campaign.settings.payout,
        shown=shown,
        stated_at=None if shown is None or found is None else found.stated_at,
        may_state=possible,
        reference=reference_of(campaign.id, participant.id),
        days=campaign.settings.payout_days,
        ends_at=ends_at(connection, campaign),
        destroyed_at=campaign.payouts_destroyed_at,
    )
