"""What every end of a campaign has in common: receipts under one root, and the end of the key to people's values."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hushbid.errors import Conflict
from hushbid.receipts.merkle import Tree
from hushbid.server.domain import rules
from hushbid.server.domain.entities import Campaign
from hushbid.server.domain.states import CampaignState
from hushbid.server.domain.views import CampaignView
from hushbid.server.service.context import Desk
from hushbid.server.service.receipts import tree_over
from hushbid.server.service.views_of import campaign_view
from hushbid.server.store import campaigns, events, jobs, ledger, participants
from hushbid.server.store.transaction import Transaction


def sealed(
    tx: Transaction, over: Campaign, kind: str, body: Mapping[str, Any], *, tree: Tree | None = None
) -> dict[str, Any]:
    """Append the event that names the receipts' root, and return the campaign's columns that hold it.

    ``over`` is the campaign in its last state; everybody's row must already be what her receipt says.
    """
    if tree is None:
        tree = tree_over(over, participants.everybody(tx.connection, over.id))
    root = tree.root.hex()
    named = {**body, "root": root, "tree_size": tree.size}
    event = events.append(tx, over.id, kind, named)
    return {"root": root, "tree_size": tree.size, "root_event": event.number}


def cancelled(tx: Transaction, campaign: Campaign, reason: str, *, job: str | None = None) -> None:
    """End a campaign before its decision; whoever reported keeps the fee."""
    over = replace(campaign, state=CampaignState.CANCELLED)
    named: dict[str, Any] = {}
    # a draft has nobody to give a receipt to
    if campaign.opened_at is not None:
        named = sealed(tx, over, "cancelled", {"reason": reason})
    else:
        events.append(tx, campaign.id, "cancelled", {"reason": reason})
    campaigns.step(tx.connection, campaign, CampaignState.CANCELLED, reason=reason, closed_at=tx.at, **named)
    ledger.free(tx.connection, campaign.id, kind="reserved")
    if job is not None:
        finish_job(tx, job)


def cancel(tx: Transaction, campaign_id: str, reason: str) -> CampaignView:
    """End a campaign because an analyst wants so; too late once people have been told what is bought from them."""
    campaign = campaigns.get(tx.connection, campaign_id)
    states = (CampaignState.DRAFT, CampaignState.REPORTING, CampaignState.ALLOCATING)
    rules.require_state(campaign, *states, to="cancel it")
    if campaign.state is CampaignState.ALLOCATING and _is_busy(tx, campaign_id):
        raise Conflict("It is not possible to cancel it while the decision is being made.")
    cancelled(tx, campaign, reason)
    return campaign_view(tx.connection, campaigns.get(tx.connection, campaign_id))


def close(tx: Transaction, campaign_id: str, *, accept_unpaid: bool) -> CampaignView:
    """Close a campaign whose estimate is out and whose people are paid, or by name accepted as unpaid."""
    campaign = campaigns.get(tx.connection, campaign_id)
    rules.require_state(campaign, CampaignState.RELEASED, to="close it")
    owed = [one.id for one in participants.everybody(tx.connection, campaign_id) if rules.due(campaign, one) > 0]
    if owed and not accept_unpaid:
        raise Conflict(f"{len(owed)} people are still to be paid: pay them, or accept that by name.")
    campaigns.step(tx.connection, campaign, CampaignState.CLOSED, closed_at=tx.at)
    events.append(tx, campaign_id, "closed", {"unpaid": owed})
    return campaign_view(tx.connection, campaigns.get(tx.connection, campaign_id))


def finish_job(tx: Transaction, job_id: str) -> None:
    """Note that a job is done."""
    job = jobs.get(tx.connection, job_id)
    jobs.change(tx.connection, job_id, state="done", done=job.total, finished_at=tx.at)


def destroy_key(desk: Desk, campaign_id: str) -> None:
    """Destroy the key to a campaign's values, then say so; done again after a crash."""
    desk.context.vault.destroy(campaign_id)  # before it is said: after a crash it is done again
    desk.context.crash("release.key-destroyed")

    def note(tx: Transaction) -> None:
        campaign = campaigns.get(tx.connection, campaign_id)
        if campaign.key_destroyed_at is None:
            participants.erase_deliveries(tx.connection, campaign_id)
            campaigns.change(tx.connection, campaign_id, key_destroyed_at=tx.at)
            if campaign.allocated_at is not None:
                events.append(tx, campaign_id, "key-destroyed", {})

    desk.write("key", note)


def _is_busy(tx: Transaction, campaign_id: str) -> bool:
    return any(job.state == "running" for job in jobs.of_campaign(tx.connection, campaign_id))
