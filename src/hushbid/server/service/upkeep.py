"""What happens by itself: at the start, taking up what a crash left; then deadlines, the end of keys, forgetting.

If the database was restored from a backup, the claims folder may know more than the database:

- a campaign was decided that the database has forgotten, or believes to be undecided: its promises go into the privacy
  account, so that nobody's total falls behind, and the campaign is cancelled, because no second decision may be made;
- an estimate was drawn that the database believes to be still to come: that very estimate is shown;
- a key was destroyed for a campaign that the database believes to be running: it is cancelled;
- a person withdrew whose bid or data the database still holds: they are erased again;
- answers that came with a price were replaced: their key is gone. Those answers
  stay unopened for ever, and the person is asked again.

The other way round, a claim that is missing although something was decided or drawn is never made again: the server
does not start.

Every key to answers that no stored answers need is destroyed at the start: a crash may have left it, or a copy of the
keys brought it back.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from hushbid.disclosure.ledger.files import stored
from hushbid.receipts.receipt import new_salt
from hushbid.server.installation import (
    all_withdrawn,
    decided,
    decision_name,
    release_stands,
    require_all_standing,
)
from hushbid.server.model import rules
from hushbid.server.model.entities import Campaign
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import JobView
from hushbid.server.service import decision, ending, release
from hushbid.server.service.participation import withdrawn
from hushbid.server.service.use_case import ServiceContext
from hushbid.server.store import accounts, campaigns, events, jobs, participants, privacy_account
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import stamp

FORGETTING = timedelta(hours=1)
"""How often what is no longer needed is forgotten."""

_REMEMBERED = timedelta(days=1)
_GAVE = (ParticipantState.BID, ParticipantState.PROMISED, ParticipantState.DELIVERED)
_UNDECIDED = (CampaignState.DRAFT, CampaignState.BIDDING)
_GONE = "The database was restored from a backup made before the campaign ended, and the key to its data is destroyed."


def take_up(context: ServiceContext) -> list[JobView]:
    """Bring the database in line with what stands outside it; returns the jobs that are to be run again."""
    with context.read() as connection:
        known = {campaign.id: campaign for campaign in campaigns.in_states(connection, *CampaignState)}
        entered = privacy_account.campaigns_known(connection)
    require_all_standing(context.installation.home, known.values())
    # decisions outside that the database does not know
    for campaign_id in decided(context.installation.home):
        campaign = known.get(campaign_id)
        if campaign is None and campaign_id not in entered:
            context.write("restore", partial(_remember, context=context, campaign_id=campaign_id))
        elif campaign is not None and campaign.state in _UNDECIDED:
            context.write("restore", partial(_cancel_undecided, context=context, campaign=campaign))
    # withdrawals and destroyed keys that it does not know
    for campaign in known.values():
        take_up_withdrawals(context, campaign)
        take_up_delivering(context, campaign)
    align_answers(context)
    with context.read() as connection:
        return jobs.running(connection)


def take_up_withdrawals(context: ServiceContext, campaign: Campaign) -> None:
    """Let withdrawals take effect that the database has forgotten."""
    if campaign.state not in (CampaignState.BIDDING, CampaignState.DELIVERING):
        return
    marked = all_withdrawn(context.installation.home)
    if not marked:
        return
    with context.read() as connection:
        gave = participants.everybody(connection, campaign.id, *_GAVE)
    for participant in gave:
        if participant.id in marked:
            context.write("withdraw", partial(withdrawn, campaign=campaign, participant=participant))


def take_up_delivering(context: ServiceContext, campaign: Campaign) -> JobView | None:
    """If the campaign's estimate was drawn before, show that one; if its key was destroyed before, it is over."""
    if campaign.state is not CampaignState.DELIVERING:
        return None
    if release_stands(context.installation.home, campaign.id):
        return context.write("restore", partial(_release_again, campaign=campaign))
    if context.installation.vault.was_destroyed(campaign.id):
        context.write("restore", partial(ending.cancelled, campaign=campaign, reason=_GONE))
    return None


def _cancel_undecided(tx: Transaction, context: ServiceContext, campaign: Campaign) -> None:
    ending.cancelled(tx, campaign, decision.RESTORED)
    _remember(tx, context, campaign.id)


def _remember(tx: Transaction, context: ServiceContext, campaign_id: str) -> None:
    """Write the promises of a forgotten decision into the privacy account."""
    decision = stored(context.installation.home.claims, decision_name(campaign_id))
    if decision is None or not decision["people"]:
        return
    # by identity: the person may have been forgotten too
    persons = privacy_account.persons_of(tx.connection, list(decision["people"]), tx.at)
    promised = {persons[identity]: loss for identity, loss in decision["people"].items()}
    privacy_account.put(tx.connection, campaign_id, promised, kind="promised", title=decision["title"], at=tx.at)


def _release_again(tx: Transaction, campaign: Campaign) -> JobView:
    delivered = participants.count(tx.connection, campaign.id, ParticipantState.DELIVERED)
    release.claim(tx, campaign, delivered)
    return decision.new_job(tx, campaign.id, "release", "taking up again")


def overdue(context: ServiceContext, now: datetime) -> tuple[list[str], list[str]]:
    """Campaigns that move on by themselves and whose deadline has passed: for bids, and for data."""
    with context.read() as connection:
        found = campaigns.in_states(connection, CampaignState.BIDDING, CampaignState.DELIVERING)
    automatic = [one for one in found if one.settings.server.automatic]
    bids = [one.id for one in automatic if one.state is CampaignState.BIDDING and _passed(one, now, "bid_by")]
    data = [one.id for one in automatic if one.state is CampaignState.DELIVERING and _data_are_due(one, now)]
    return bids, data


def destroy_keys(context: ServiceContext, now: datetime) -> None:
    """Destroy the keys of campaigns that are over and whose retention has ended; also what a crash left undone."""
    with context.read() as connection:
        over = campaigns.over_with_key(connection)
    for campaign in over:
        if _is_due(campaign, now):
            ending.destroy_key(context, campaign.id)


def forget(context: ServiceContext) -> None:
    """Forget sessions that have ended and answers that nobody will ask for again."""

    def operation(tx: Transaction) -> None:
        accounts.end_old_sessions(tx.connection, tx.at)
        jobs.forget_old(tx.connection, stamp(tx.now - _REMEMBERED))

    context.write("forget", operation)


def _passed(campaign: Campaign, now: datetime, name: str) -> bool:
    deadline: datetime | None = getattr(campaign.settings.server, name)
    return deadline is not None and now >= deadline


def _data_are_due(campaign: Campaign, now: datetime) -> bool:
    """After one visit there is nobody to wait for; a deadline is then how long people may still withdraw."""
    if campaign.settings.server.single_visit and campaign.settings.server.deliver_by is None:
        return True
    return _passed(campaign, now, "deliver_by")


def _is_due(campaign: Campaign, now: datetime) -> bool:
    # without a release there is nothing to keep values for
    if campaign.released_at is None or campaign.settings.server.retention_days == 0:
        return True
    return now >= campaign.released_at + timedelta(days=campaign.settings.server.retention_days)


_WITHOUT = (CampaignState.CANCELLED, CampaignState.NOTHING_BOUGHT)
_EXPIRED = "Nothing was decided before the deadline, so the answers were destroyed unopened."


def align_answers(context: ServiceContext) -> None:
    """Bring keys and database in line, before anybody is answered."""
    with context.read() as connection:
        found = campaigns.in_states(connection, *CampaignState)
    for campaign in found:
        if campaign.opened_at is not None and campaign.settings.server.single_visit:
            _align(context, campaign)


def _align(context: ServiceContext, campaign: Campaign) -> None:
    with context.read() as connection:
        everybody = participants.everybody(connection, campaign.id)
    sealed = {one.id: one.delivery for one in everybody if one.delivery is not None}
    keys = context.installation.vault.answers
    keys.keep_only(campaign.id, () if campaign.state in _WITHOUT else sealed.values())
    if campaign.state is CampaignState.BIDDING:
        lost = keys.lost(campaign.id, sealed)
        if lost:
            context.write("restore", partial(_ask_again, campaign_id=campaign.id, people=sorted(lost)))


def _ask_again(tx: Transaction, campaign_id: str, people: list[str]) -> None:
    """Forget the bids of those whose answers can never be opened; whoever reads the log sees why."""
    for name in people:
        erased: dict[str, Any] = {"bid": None, "loss_limit": None, "bid_at": None, "salt": new_salt()}
        erased["state"] = ParticipantState.INVITED
        participants.change(tx.connection, name, **erased, **participants.NOTHING_GIVEN)
        events.append(tx, campaign_id, "answers-lost", {"participant": name})


def cancel_expired(context: ServiceContext, now: datetime) -> None:
    """End campaigns in which nothing was decided before the answers had to be destroyed."""
    with context.read() as connection:
        found = campaigns.in_states(connection, CampaignState.BIDDING, CampaignState.ALLOCATING)
        expired = [one for one in found if rules.answers_expired(one, now)]
        busy = {job.campaign for job in jobs.running(connection)}
    for campaign in expired:
        if campaign.id not in busy:
            context.write("cancel", partial(_cancel, campaign_id=campaign.id))


def _cancel(tx: Transaction, campaign_id: str) -> None:
    campaign = campaigns.get(tx.connection, campaign_id)
    if campaign.state in (CampaignState.BIDDING, CampaignState.ALLOCATING):  # unless somebody was faster
        ending.cancelled(tx, campaign, _EXPIRED)
