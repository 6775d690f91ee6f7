"""What happens by itself: at the start, taking up what a crash left; then deadlines, the end of keys, forgetting.

If the database was restored from a backup, the claims folder may know more than the database:

- a campaign was decided that the database has forgotten, or believes to be undecided: its promises go into the privacy
  account, so that nobody's total falls behind, and the campaign is cancelled, because no second decision may be made;
- an estimate was drawn that the database believes to be still to come: that very estimate is shown;
- a key was destroyed for a campaign that the database believes to be running: it is cancelled;
- somebody withdrew whose bid or data the database still holds: they are erased again;
- answers that came with a price were replaced: their key is gone, and she is asked again.

The other way round, a claim that is missing although something was decided or drawn is never made anew: the server does
not start.
"""

from datetime import datetime, timedelta
from functools import partial

from hushbid.disclosure.ledger.files import stored
from hushbid.server.domain.entities import Campaign
from hushbid.server.domain.states import CampaignState, ParticipantState
from hushbid.server.domain.views import JobView
from hushbid.server.installation import (
    all_withdrawn,
    decided,
    decision_name,
    release_stands,
    require_all_standing,
)
from hushbid.server.service import answers_kept, decision, ending, release
from hushbid.server.service.participation import withdrawn
from hushbid.server.service.use_case import Desk
from hushbid.server.store import accounts, campaigns, jobs, participants, privacy_account
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import stamp

FORGETTING = timedelta(hours=1)
"""How often what is no longer needed is forgotten."""

_REMEMBERED = timedelta(days=1)
_GAVE = (ParticipantState.BID, ParticipantState.PROMISED, ParticipantState.DELIVERED)
_UNDECIDED = (CampaignState.DRAFT, CampaignState.BIDDING)
_GONE = "The database was restored from a backup made before the campaign ended, and the key to its data is destroyed."


def take_up(desk: Desk) -> list[JobView]:
    """Bring the database in line with what stands outside it; returns the jobs that are to be run again."""
    with desk.read() as connection:
        known = {campaign.id: campaign for campaign in campaigns.in_states(connection, *CampaignState)}
        entered = privacy_account.campaigns_known(connection)
    require_all_standing(desk.installation.home, known.values())
    # decisions outside that the database does not know
    for campaign_id in decided(desk.installation.home):
        campaign = known.get(campaign_id)
        if campaign is None and campaign_id not in entered:
            desk.write("restore", partial(_remember, desk=desk, campaign_id=campaign_id))
        elif campaign is not None and campaign.state in _UNDECIDED:
            desk.write("restore", partial(_cancel_undecided, desk=desk, campaign=campaign))
    # withdrawals and destroyed keys that it does not know
    for campaign in known.values():
        take_up_withdrawals(desk, campaign)
        take_up_delivering(desk, campaign)
    answers_kept.take_up(desk)
    with desk.read() as connection:
        return jobs.running(connection)


def take_up_withdrawals(desk: Desk, campaign: Campaign) -> None:
    """Let withdrawals take effect that the database has forgotten."""
    if campaign.state not in (CampaignState.BIDDING, CampaignState.DELIVERING):
        return
    marked = all_withdrawn(desk.installation.home)
    if not marked:
        return
    with desk.read() as connection:
        gave = participants.everybody(connection, campaign.id, *_GAVE)
    for participant in gave:
        if participant.id in marked:
            desk.write("withdraw", partial(withdrawn, campaign=campaign, participant=participant))


def take_up_delivering(desk: Desk, campaign: Campaign) -> JobView | None:
    """If the campaign's estimate was drawn before, show that one; if its key was destroyed before, it is over."""
    if campaign.state is not CampaignState.DELIVERING:
        return None
    if release_stands(desk.installation.home, campaign.id):
        return desk.write("restore", partial(_release_again, campaign=campaign))
    if desk.installation.vault.was_destroyed(campaign.id):
        desk.write("restore", partial(ending.cancelled, campaign=campaign, reason=_GONE))
    return None


def _cancel_undecided(tx: Transaction, desk: Desk, campaign: Campaign) -> None:
    ending.cancelled(tx, campaign, decision.RESTORED)
    _remember(tx, desk, campaign.id)


def _remember(tx: Transaction, desk: Desk, campaign_id: str) -> None:
    """Write the promises of a forgotten decision into the privacy account."""
    decision = stored(desk.installation.home.claims, decision_name(campaign_id))
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


def overdue(desk: Desk, now: datetime) -> tuple[list[str], list[str]]:
    """Campaigns that move on by themselves and whose deadline has passed: for bids, and for data."""
    with desk.read() as connection:
        found = campaigns.in_states(connection, CampaignState.BIDDING, CampaignState.DELIVERING)
    automatic = [one for one in found if one.settings.automatic]
    bids = [one.id for one in automatic if one.state is CampaignState.BIDDING and _passed(one, now, "bid_by")]
    data = [one.id for one in automatic if one.state is CampaignState.DELIVERING and _data_are_due(one, now)]
    return bids, data


def destroy_keys(desk: Desk, now: datetime) -> None:
    """Destroy the keys of campaigns that are over and whose retention has ended; also what a crash left undone."""
    with desk.read() as connection:
        over = campaigns.over_with_key(connection)
    for campaign in over:
        if _is_due(campaign, now):
            ending.destroy_key(desk, campaign.id)


def forget(desk: Desk) -> None:
    """Forget sessions that have ended and answers that nobody will ask for again."""

    def operation(tx: Transaction) -> None:
        accounts.end_old_sessions(tx.connection, tx.at)
        jobs.forget_old(tx.connection, stamp(tx.now - _REMEMBERED))

    desk.write("forget", operation)


def _passed(campaign: Campaign, now: datetime, name: str) -> bool:
    deadline: datetime | None = getattr(campaign.settings, name)
    return deadline is not None and now >= deadline


def _data_are_due(campaign: Campaign, now: datetime) -> bool:
    """After one visit there is nobody to wait for; a deadline is then how long people may still withdraw."""
    if campaign.settings.single_visit and campaign.settings.deliver_by is None:
        return True
    return _passed(campaign, now, "deliver_by")


def _is_due(campaign: Campaign, now: datetime) -> bool:
    # without a release there is nothing to keep values for
    if campaign.released_at is None or campaign.settings.retention_days == 0:
        return True
    return now >= campaign.released_at + timedelta(days=campaign.settings.retention_days)
