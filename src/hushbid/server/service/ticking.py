"""What happens by itself as time passes: deadlines, the end of keys, forgetting what is no longer needed."""

from datetime import datetime, timedelta

from hushbid.server.domain.entities import Campaign
from hushbid.server.domain.states import CampaignState
from hushbid.server.service import ending
from hushbid.server.service.context import Desk
from hushbid.server.store import accounts, campaigns, jobs
from hushbid.server.store.rows import stamp
from hushbid.server.store.transaction import Transaction

FORGETTING = timedelta(hours=1)
"""How often what is no longer needed is forgotten."""

_REMEMBERED = timedelta(days=1)


def overdue(desk: Desk, now: datetime) -> tuple[list[str], list[str]]:
    """Campaigns that move on by themselves and whose deadline has passed: for reports, and for data."""
    with desk.read() as connection:
        found = campaigns.in_states(connection, CampaignState.REPORTING, CampaignState.DELIVERING)
    automatic = [one for one in found if one.settings.automatic]
    reports = [one.id for one in automatic if one.state is CampaignState.REPORTING and _passed(one, now, "report_by")]
    data = [one.id for one in automatic if one.state is CampaignState.DELIVERING and _passed(one, now, "deliver_by")]
    return reports, data


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


def _is_due(campaign: Campaign, now: datetime) -> bool:
    # without a release there is nothing to keep values for
    if campaign.released_at is None or campaign.settings.retention_days == 0:
        return True
    return now >= campaign.released_at + timedelta(days=campaign.settings.retention_days)
