"""What a participant does before the decision: report, decline, withdraw."""

import math
from dataclasses import replace
from typing import Any

from hushbid.errors import Conflict, ReportError
from hushbid.receipts.log import report_commitment
from hushbid.receipts.receipt import new_salt
from hushbid.server.domain import rules
from hushbid.server.domain.entities import Campaign, Participant
from hushbid.server.domain.states import CampaignState, ParticipantState
from hushbid.server.domain.views import ParticipationView
from hushbid.server.service.context import Context
from hushbid.server.service.standing import mark_withdrawn
from hushbid.server.service.views_of import participation_view
from hushbid.server.store import campaigns, events, ledger, participants
from hushbid.server.store.transaction import Transaction


def report(tx: Transaction, secret: str, sensitivity: object) -> ParticipationView:
    """Store a report; the last one counts, and the same one again changes nothing."""
    campaign, participant = acting(tx, secret)
    rules.require_reports_taken(campaign, tx.now)
    rules.require_may_answer(participant)
    value = _checked(campaign, participant, sensitivity)
    if participant.state is ParticipantState.REPORTED and participant.report == value:
        return participation_view(campaign, participant)
    kind = "reported" if participant.report is None else "report-changed"
    changed = replace(participant, state=ParticipantState.REPORTED, report=value, reported_at=tx.now)
    participants.reported(tx, changed)
    # the log holds a commitment only: the salt stays with her
    body = {
        "participant": participant.id,
        "report_commitment": report_commitment(participant.id, value, participant.salt),
    }
    events.append(tx, campaign.id, kind, body)
    return participation_view(campaign, changed)


def decline(tx: Transaction, secret: str) -> ParticipationView:
    """Store that somebody does not want to take part; saying so again changes nothing."""
    campaign, participant = acting(tx, secret)
    if participant.state is ParticipantState.DECLINED:
        return participation_view(campaign, participant)
    rules.require_reports_taken(campaign, tx.now)
    rules.require_may_answer(participant)
    if participant.state is ParticipantState.REPORTED:
        raise Conflict("It is not possible to decline after a report: withdraw instead.")
    participants.change(tx.connection, participant.id, state=ParticipantState.DECLINED.value)
    if participant.person_id is not None:
        ledger.free(tx.connection, campaign.id, person_id=participant.person_id)
    events.append(tx, campaign.id, "declined", {"participant": participant.id})
    return participation_view(campaign, replace(participant, state=ParticipantState.DECLINED))


def withdraw(tx: Transaction, context: Context, secret: str) -> ParticipationView:
    """Erase what somebody gave: before the decision her report, after it her data; saying so again changes nothing.

    A mark outside the database makes sure that going back to a backup does not bring back what she took back.
    """
    campaign, participant = acting(tx, secret)
    if participant.state is ParticipantState.WITHDRAWN:
        return participation_view(campaign, participant)
    rules.require_may_withdraw(campaign, participant)
    mark_withdrawn(context.home, participant.id)
    return participation_view(campaign, withdrawn(tx, campaign, participant))


def withdrawn(tx: Transaction, campaign: Campaign, participant: Participant) -> Participant:
    """Let somebody's withdrawal take effect.

    The record keeps the report of somebody who withdraws after the decision: others' payments followed from it. In the
    local setting a message that was sent has cost its privacy loss, so the ledger keeps it.
    """
    state, connection = ParticipantState.WITHDRAWN, tx.connection
    if campaign.state is CampaignState.REPORTING:
        # without the salt nobody can open the commitment that the log holds
        changed = replace(participant, state=state, report=None, salt=new_salt())
        participants.change(connection, participant.id, state=state.value, report=None, salt=changed.salt)
    else:
        gone: dict[str, Any] = {"delivery": None, "delivery_nonce": None, "delivered_at": None}
        changed = replace(participant, state=state, **gone)
        participants.change(connection, participant.id, state=state.value, **gone)
    sent = campaign.settings.setting == "local" and participant.delivered_at is not None
    if participant.person_id is not None and not sent:
        ledger.free(connection, campaign.id, person_id=participant.person_id)
    events.append(tx, campaign.id, "withdrawn", {"participant": participant.id})
    return changed


def acting(tx: Transaction, secret: str) -> tuple[Campaign, Participant]:
    """The campaign and the participant that a secret belongs to with which something may be changed."""
    participant = participants.acting(tx, secret)
    campaign = campaigns.of_participant(tx, participant)
    rules.require_opened(campaign)
    return campaign, participant


def _checked(campaign: Campaign, participant: Participant, sensitivity: object) -> float:
    lowest = campaign.settings.prior_of(participant.group_name).smallest_report
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, (int, float)):
        raise ReportError(f"sensitivity must be a number from {lowest:g} up.", field="sensitivity")
    try:
        value = float(sensitivity) + 0.0
    except OverflowError:
        value = math.inf
    if not lowest <= value < math.inf:
        raise ReportError(f"sensitivity must be a finite number from {lowest:g} up.", field="sensitivity")
    return value
