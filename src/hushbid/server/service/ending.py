"""How a campaign ends: cancelled or closed, receipts under one root, the key to people's values destroyed.

Every end makes one receipt for everybody who was invited (`hushbid.receipts.receipt`) and names their root in the log.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from hushbid.errors import Conflict
from hushbid.receipts.merkle import Tree
from hushbid.receipts.receipt import Agreement, Body, questions_hash, tree_of
from hushbid.server.model import rules
from hushbid.server.model.checks import checked_text
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.states import CampaignState
from hushbid.server.model.views import CampaignView, Principal
from hushbid.server.service.bodies import Flag, described
from hushbid.server.service.use_case import Route, ServiceContext, changes
from hushbid.server.service.views_of import campaign_view
from hushbid.server.store import campaigns, events, jobs, participants, privacy_account
from hushbid.server.store.database import Transaction

LONGEST_REASON = 500


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
    """End a campaign before its decision; whoever bid keeps the fee."""
    over = replace(campaign, state=CampaignState.CANCELLED)
    named: dict[str, Any] = {}
    # a draft has nobody to give a receipt to
    if campaign.opened_at is not None:
        named = sealed(tx, over, "cancelled", {"reason": reason})
    else:
        events.append(tx, campaign.id, "cancelled", {"reason": reason})
    campaigns.step(tx.connection, campaign, CampaignState.CANCELLED, reason=reason, closed_at=tx.at, **named)
    privacy_account.free(tx.connection, campaign.id, kind="reserved")
    if campaign.opened_at is not None and campaign.settings.server.single_visit:
        tx.then.append(partial(tx.installation.vault.answers.keep_only, campaign.id, ()))
    if job is not None:
        finish_job(tx, job)


@changes("cancel", Route("POST /campaigns/{campaign}/cancel", "Cancel a campaign", by="analyst"))
def cancel(
    tx: Transaction,
    who: Principal,
    campaign_id: str,
    reason: Annotated[
        str,
        described("In a sentence that every participant may read.", min_length=1, max_length=LONGEST_REASON),
    ] = "The analyst cancelled it.",
) -> CampaignView:
    """Cancel a campaign; too late once people know what is bought from them."""
    sentence = checked_text(reason, "reason", needed=True, longest=LONGEST_REASON)
    campaign = campaigns.get(tx.connection, campaign_id)
    states = (CampaignState.DRAFT, CampaignState.BIDDING, CampaignState.ALLOCATING)
    rules.require_state(campaign, *states, to="cancel it")
    if campaign.state is CampaignState.ALLOCATING and jobs.running(tx.connection, campaign_id):
        raise Conflict("It is not possible to cancel it while the decision is being made.")
    cancelled(tx, campaign, sentence)
    return campaign_view(tx.connection, campaigns.get(tx.connection, campaign_id))


@changes("close", Route("POST /campaigns/{campaign}/close", "Close a campaign", by="analyst"))
def close(
    tx: Transaction,
    who: Principal,
    campaign_id: str,
    *,
    accept_unpaid: Annotated[Flag, described("Whether it may end although people are still to be paid.")] = False,
) -> CampaignView:
    """Close a campaign whose estimate is out; people who are still unpaid must be accepted by name."""
    campaign = campaigns.get(tx.connection, campaign_id)
    rules.require_state(campaign, CampaignState.RELEASED, to="close it")
    owed = [one.id for one in participants.everybody(tx.connection, campaign_id) if rules.due(campaign, one) > 0]
    if owed and not accept_unpaid:
        raise Conflict(
            f"{len(owed)} people are still to be paid: pay them, or accept that by name.", field="accept_unpaid"
        )
    campaigns.step(tx.connection, campaign, CampaignState.CLOSED, closed_at=tx.at)
    events.append(tx, campaign_id, "closed", {"unpaid": owed})
    return campaign_view(tx.connection, campaigns.get(tx.connection, campaign_id))


def finish_job(tx: Transaction, job_id: str) -> None:
    """Note that a job is done."""
    job = jobs.get(tx.connection, job_id)
    jobs.change(tx.connection, job_id, state="done", done=job.total, finished_at=tx.at)


def destroy_key(context: ServiceContext, campaign_id: str) -> None:
    """Destroy the key to a campaign's values, then say so; done again after a crash."""
    context.installation.vault.destroy(campaign_id)  # before it is said: after a crash it is done again
    context.installation.crash("release.key-destroyed")

    def note(tx: Transaction) -> None:
        campaign = campaigns.get(tx.connection, campaign_id)
        if campaign.key_destroyed_at is None:
            participants.erase_deliveries(tx.connection, campaign_id)
            tx.erases = True
            campaigns.change(tx.connection, campaign_id, key_destroyed_at=tx.at)
            if campaign.allocated_at is not None or campaign.settings.server.single_visit:
                events.append(tx, campaign_id, "key-destroyed", {})

    context.write("key", note)


def body_of(campaign: Campaign, participant: Participant) -> Body:
    """What a participant's receipt says; the same bytes whenever it is asked for after the campaign is over."""
    at, version, language = participant.agreed_at, participant.agreed_version, participant.agreed_language
    agreement = None
    if at is not None and version is not None and language is not None:
        agreement = Agreement(at=at, version=version, language=language)
    shared = ("stratum", "renewed", "own_links", "own_links_used", "bid", "promised")
    return Body(
        campaign=campaign.id,
        participant=participant.id,
        state=participant.state.value,
        limit=participant.loss_limit,
        delivered=participant.delivered_loss,
        payment=rules.payment_owed(participant),
        fee=rules.fee_owed(campaign, participant),
        currency=campaign.settings.currency.code,
        decimals=campaign.settings.currency.decimals,
        salt=participant.salt,  # keeps others from guessing her entry in the tree
        questions=questions_hash(campaign.settings.asked),
        agreement=agreement,
        **{name: getattr(participant, name) for name in shared},
    )


def tree_over(campaign: Campaign, everybody: Sequence[Participant]) -> Tree:
    """The tree over everybody's receipt."""
    return tree_of([body_of(campaign, participant) for participant in everybody])
