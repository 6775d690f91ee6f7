"""Answers that were given with a price, as time passes: at the start, and when nothing was decided in time.

At the start every key is destroyed that no stored answers need: a crash may have left it, or a copy of the keys brought
it back. If the database was restored from a backup, it may hold answers whose key was destroyed since then, because
they were replaced: those stay unopened for ever, and she is asked again.
"""

from datetime import datetime
from functools import partial

from hushbid.receipts.receipt import new_salt
from hushbid.server.domain import rules
from hushbid.server.domain.entities import Campaign
from hushbid.server.domain.states import CampaignState, ParticipantState
from hushbid.server.service import ending
from hushbid.server.service.use_case import Desk
from hushbid.server.store import campaigns, events, jobs, participants
from hushbid.server.store.database import Transaction

_C = CampaignState
_WITHOUT = (_C.CANCELLED, _C.NOTHING_BOUGHT)
_EXPIRED = "Nothing was decided before the deadline, so the answers were destroyed unopened."


def take_up(desk: Desk) -> None:
    """Bring keys and database in line, before anybody is answered."""
    with desk.read() as connection:
        found = campaigns.in_states(connection, *CampaignState)
    for campaign in found:
        if campaign.settings.single_visit and campaign.opened_at is not None:
            _align(desk, campaign)


def _align(desk: Desk, campaign: Campaign) -> None:
    with desk.read() as connection:
        everybody = participants.everybody(connection, campaign.id)
    sealed = {one.id: one.delivery for one in everybody if one.delivery is not None}
    keys = desk.installation.vault.answers
    keys.keep_only(campaign.id, () if campaign.state in _WITHOUT else sealed.values())
    if campaign.state is CampaignState.BIDDING:
        lost = keys.lost(campaign.id, sealed)
        if lost:
            desk.write("restore", partial(_ask_again, campaign_id=campaign.id, people=sorted(lost)))


def _ask_again(tx: Transaction, campaign_id: str, people: list[str]) -> None:
    """Forget the bids of those whose answers can never be opened; whoever reads the log sees why."""
    for name in people:
        erased = {"bid": None, "loss_limit": None, "bid_at": None, "salt": new_salt()}
        state = ParticipantState.INVITED.value
        participants.change(tx.connection, name, state=state, **erased, **participants.NOTHING_GIVEN)
        events.append(tx, campaign_id, "answers-lost", {"participant": name})


def cancel_expired(desk: Desk, now: datetime) -> None:
    """End campaigns in which nothing was decided before the answers had to be destroyed."""
    with desk.read() as connection:
        found = campaigns.in_states(connection, CampaignState.BIDDING, CampaignState.ALLOCATING)
        expired = [one for one in found if rules.answers_expired(one, now)]
        busy = {one.id for one in expired for job in jobs.of_campaign(connection, one.id) if job.state == "running"}
    for campaign in expired:
        if campaign.id not in busy:
            desk.write("cancel", partial(_cancel, campaign_id=campaign.id))


def _cancel(tx: Transaction, campaign_id: str) -> None:
    campaign = campaigns.get(tx.connection, campaign_id)
    if campaign.state in (CampaignState.BIDDING, CampaignState.ALLOCATING):  # unless somebody was faster
        ending.cancelled(tx, campaign, _EXPIRED)
