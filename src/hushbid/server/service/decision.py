"""The decision: bidding closes, privacy losses and payments are fixed, everybody is told.

The decision is drawn once: before anything of it is stored in the database it stands in the claims folder, under the
campaign's name, and whoever decides again for the same campaign gets that one. So a crash, or a database restored from
a backup, can never lead to two different promises. If the bids in the database are not those the decision was made
from, the database is older than the decision, and the campaign is cancelled.
"""

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from hushbid.allocation import tie_keys
from hushbid.common.arrays import FloatArray
from hushbid.disclosure.ledger.files import drawn_once
from hushbid.errors import CampaignError, Conflict, DivergentPayment, NobodyToBuyFrom, Unreachable
from hushbid.record import Record
from hushbid.server.installation import decision_name, mark_standing, release_stands, require_standing
from hushbid.server.model import rules
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import JobView, Principal
from hushbid.server.service import ending
from hushbid.server.service.use_case import Route, ServiceContext, begins
from hushbid.server.store import campaigns, events, jobs, participants, privacy_account
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import new_id

_AT_ONCE = 1000
_STEPS = ("reading bids", "deciding", "storing decisions", "telling everybody")
EVERYBODY_DEARER = "Everybody asked for more than anybody was expected to."
STRATUM_DEARER = "Everybody in one of the strata asked for more than anybody was expected to."
OUT_OF_REACH = "The accuracy asked for cannot be reached with those who bid, within what they accept."
ABOVE_SHOWN = "Somebody would have lost more privacy than people were shown at most, so nothing was bought."
RESTORED = "The database was restored from a backup made before the campaign's decision, which stands elsewhere."


@begins(
    "allocation.start", Route("POST /campaigns/{campaign}/close-bidding", "Close bidding", by="analyst", status=202)
)
def close_bidding(tx: Transaction, who: Principal, campaign_id: str) -> JobView:
    """Take no more bids, and decide in the background; begin again if the last attempt failed."""
    return start(tx, campaign_id)


def start(tx: Transaction, campaign_id: str) -> JobView:
    """Close bidding, because an analyst wants so or its deadline has passed, and begin the decision."""
    campaign = campaigns.get(tx.connection, campaign_id)
    if campaign.state is CampaignState.ALLOCATING:
        refuse_running(tx, campaign_id)
    else:
        rules.require_state(campaign, CampaignState.BIDDING, to="close bidding")
        rules.require_answers_kept(campaign, tx.now)
        campaigns.step(tx.connection, campaign, CampaignState.ALLOCATING)
        bid = participants.count(tx.connection, campaign_id, ParticipantState.BID)
        events.append(tx, campaign_id, "bidding-closed", {"bids": bid})
    return new_job(tx, campaign_id, "allocation", _STEPS[0])


def new_job(tx: Transaction, campaign_id: str, kind: Literal["opening", "allocation", "release"], step: str) -> JobView:
    """Store a job that is about to run."""
    job = JobView(
        id=new_id("j"),
        campaign=campaign_id,
        kind=kind,
        state="running",
        step=step,
        done=0,
        total=1,
        problem=None,
        field=None,
        started_at=tx.now,
        finished_at=None,
    )
    jobs.add(tx.connection, job)
    return job


def refuse_running(tx: Transaction, campaign_id: str) -> None:
    """Refuse to begin again what is being done."""
    if jobs.running(tx.connection, campaign_id):
        raise Conflict("Somebody else began this already: it is being done.")


def begin_step(context: ServiceContext, job: JobView, step: str) -> None:
    """Say what a job does next."""
    context.write("progress", lambda tx: jobs.change(tx.connection, job.id, step=step, done=0, total=1))


def store_rows(context: ServiceContext, job: JobView, rows: list[dict[str, Any]], step: str) -> None:
    """Store what a job found about people, some at a time, and say how far it is."""
    for start_row in range(0, len(rows), _AT_ONCE):
        part = rows[start_row : start_row + _AT_ONCE]
        done = start_row + len(part)

        def store(tx: Transaction, part: list[dict[str, Any]] = part, done: int = done) -> None:
            participants.change_rows(tx.connection, part)
            jobs.change(tx.connection, job.id, step=step, done=done, total=len(rows))

        context.write(f"{job.kind}.store", store)


def run(context: ServiceContext, job: JobView) -> None:
    """Decide, store and tell; all of it may be done again after a crash."""
    with context.read() as connection:
        campaign = campaigns.get(connection, job.campaign)
        bidders = participants.everybody(connection, job.campaign, ParticipantState.BID)
        persons = [one.person_id for one in bidders if one.person_id is not None]
        identities = privacy_account.identities_of(connection, persons)
        invited = participants.rosters(connection, job.campaign) or participants.count(connection, job.campaign)
        withdrawn = participants.everybody(connection, job.campaign, ParticipantState.WITHDRAWN)
    # done already, before a crash
    if campaign.state is not CampaignState.ALLOCATING:
        return
    begin_step(context, job, _STEPS[1])
    fees = campaign.settings.fee_minor * len(bidders)
    fees += sum(rules.fee_owed(campaign, one) for one in withdrawn)
    try:
        record, reason = _decided(context, campaign, bidders, identities, invited=invited, fees=fees)
    except _Forgotten:  # a database restored from a backup: no second decision may be made
        context.write("cancel", lambda tx: ending.cancelled(tx, campaign, RESTORED, job=job.id))
        return
    _destroy_unbought(context, campaign, bidders, record)
    if record is None or record.outcome.active == 0:
        _finish_nothing(context, job, campaign, record, len(bidders), reason or EVERYBODY_DEARER)
        return
    # the key for deliveries, before anybody is asked for one
    if not campaign.settings.server.single_visit and not _is_over(context, campaign.id):
        context.installation.vault.create(campaign.id)
    _store(context, job, bidders, record)
    begin_step(context, job, _STEPS[3])
    content = campaigns.packed(record)
    context.write("allocation.finish", lambda tx: _finish(tx, job, campaign, bidders, record, content))


def _destroy_unbought(
    context: ServiceContext, campaign: Campaign, bidders: list[Participant], record: Record | None
) -> None:
    """Destroy the keys to answers that are not bought, before anybody is told: the decision stands, for good."""
    if campaign.settings.server.single_visit:
        losses = [0.0] * len(bidders) if record is None else record.outcome.privacy_loss.tolist()
        bought = [one.delivery for one, loss in zip(bidders, losses, strict=True) if loss > 0.0]
        context.installation.vault.answers.keep_only(campaign.id, [one for one in bought if one is not None])
    context.installation.crash("allocation.unbought")


class _Forgotten(Exception):
    """The database does not hold what the decision was made from."""


def _decided(
    context: ServiceContext,
    campaign: Campaign,
    bidders: list[Participant],
    identities: dict[str, str],
    *,
    invited: int | dict[str, int],
    fees: int,
) -> tuple[Record | None, str | None]:
    """The decision that stands for this campaign, made now if there was none; without a record, why there is none."""
    if _is_over(context, campaign.id) and not release_stands(context.installation.home, campaign.id):
        raise _Forgotten
    ids = [one.id for one in bidders]

    def decide() -> dict[str, Any]:
        record, reason, least = None, None, _fewest(context, campaign)
        silent = campaign.settings.empty_strata([one.stratum for one in bidders])
        try:
            if len(bidders) < least:
                reason = f"Only {len(bidders)} of the at least {least} people needed bid."
            elif silent:
                reason = f"Nobody in stratum {silent[0]!r} bid, so its mean cannot be estimated."
            else:
                record = _record(campaign, bidders, invited=invited, fees=fees)
                # proved to be impossible, but for an accuracy that can be reached by a rounding error only
                if record.outcome.privacy_loss.max() > campaign.settings.largest_loss:
                    record, reason = None, ABOVE_SHOWN
        except (Unreachable, DivergentPayment):  # limits, or people who stayed away, have made it impossible
            reason = OUT_OF_REACH
        except NobodyToBuyFrom:  # without strata that is a decision, or out of reach
            reason = STRATUM_DEARER
        context.installation.crash("allocation.decided")
        # by identity, so that a privacy account that has forgotten them can be written again
        people = {} if record is None else {identities[one]: loss for one, loss in _promised(bidders, record).items()}
        return {
            "campaign": campaign.id,
            "title": campaign.settings.title,
            "ids": ids,
            "people": people,
            "record": None if record is None else record.to_dict(),
            "reason": reason,
        }

    # outside the database, once
    home, name = context.installation.home, decision_name(campaign.id)
    require_standing(home, name)
    stands = drawn_once(home.claims, name, decide)
    context.installation.crash("allocation.claimed")
    mark_standing(home, name)
    # decided for other people or bids than these: a restored database
    if stands["ids"] != ids:
        raise _Forgotten
    if stands["record"] is None:
        return None, str(stands["reason"])
    record = Record.from_dict(stands["record"])
    outcome = record.outcome
    strata = [one.stratum for one in bidders if one.stratum is not None]
    if (outcome.market.survey or ()) != campaign.settings.asked or list(outcome.market.strata or ()) != strata:
        raise _Forgotten
    stated = np.full(len(bidders), math.inf) if outcome.limits is None else outcome.limits
    if not (np.array_equal(outcome.bids, _bids(bidders)) and np.array_equal(stated, _limits(bidders))):
        raise _Forgotten
    return record, None


def _is_over(context: ServiceContext, campaign_id: str) -> bool:
    """Whether the campaign ended before, in a database that has forgotten it."""
    return context.installation.vault.was_destroyed(campaign_id)


def _fewest(context: ServiceContext, campaign: Campaign) -> int:
    """With fewer bids nothing is bought: the campaign's own number, and never less than the server's."""
    return max(campaign.settings.server.minimum_people, context.installation.least_people)


def _record(campaign: Campaign, bidders: list[Participant], *, invited: int | dict[str, int], fees: int) -> Record:
    """Run the market. Equals are bought from in the order of a hash of their random pseudonyms."""
    settings = campaign.settings
    groups = [one.group_name for one in bidders]
    strata = [one.stratum for one in bidders] if settings.strata is not None else []
    market = settings.market_for(groups, strata=strata, invited=invited, fees=fees)
    ids = [one.id for one in bidders]
    limits = _limits(bidders)
    outcome = market.acquire(
        _bids(bidders),
        limits=limits if np.isfinite(limits).any() else None,  # nobody's limit, and no column of them
        tie_key=tie_keys(ids) if market.identity_decides else None,
        accept_rounding=True,  # judged when the campaign opened, for the whole roster
    )
    record = Record.of(
        outcome,
        ids=ids,
        groups=[group or "" for group in groups] if settings.groups else None,
        currency=settings.currency.code,
        decimals=settings.currency.decimals,
        notes=[f"campaign: {campaign.id}"],
        in_one_file=True,  # it is kept in the database, and sent in one piece
    )
    # in whole coins, before anything is promised
    assert record.money is not None
    if settings.hard_budget_minor is not None and record.money.total + fees > settings.hard_budget_minor:
        raise CampaignError("Fees and payments would exceed the hard budget, so nothing was decided.")
    return record


def _bids(bidders: list[Participant]) -> FloatArray:
    return np.array([one.bid for one in bidders], dtype=np.float64)


def _limits(bidders: list[Participant]) -> FloatArray:
    return np.array([math.inf if one.loss_limit is None else one.loss_limit for one in bidders], dtype=np.float64)


def _promised(bidders: list[Participant], record: Record) -> dict[str, float]:
    """What everybody who is known across campaigns gives up at most, by person."""
    losses = record.outcome.privacy_loss.tolist()
    both = zip(bidders, losses, strict=True)
    return {one.person_id: loss for one, loss in both if one.person_id is not None and loss > 0.0}


def _store(context: ServiceContext, job: JobView, bidders: list[Participant], record: Record) -> None:
    """Store everybody's decision, some at a time; nobody sees any of it before the campaign moves on."""
    assert record.money is not None
    rows = [
        {"id": one.id, "promised": loss, "payment": payment}
        for one, loss, payment in zip(
            bidders, record.outcome.privacy_loss.tolist(), record.money.payments.tolist(), strict=True
        )
    ]
    store_rows(context, job, rows, _STEPS[2])


def _finish(
    tx: Transaction,
    job: JobView,
    campaign: Campaign,
    bidders: list[Participant],
    record: Record,
    content: bytes,
) -> None:
    """Let the decision stand: everybody can see hers from now on."""
    connection, money = tx.connection, record.money
    assert money is not None
    # before anybody is told anything
    _refuse_above_spending_limit(campaign, money.total + campaign.settings.fee_minor * len(bidders))
    campaigns.step(connection, campaign, CampaignState.DELIVERING, allocated_at=tx.at, total_payment=money.total)
    campaigns.put_record(connection, campaign.id, content)
    single_visit = campaign.settings.server.single_visit
    participants.tell_decisions(connection, campaign.id, single_visit=single_visit)
    _write_privacy_account(tx, campaign, bidders, record)
    body = {"record": record.hash, "people": len(bidders), "bought_from": record.outcome.active}
    events.append(tx, campaign.id, "allocated", body)
    if single_visit:  # which is true by now
        events.append(tx, campaign.id, "answers-destroyed", {"people": len(bidders) - record.outcome.active})
    ending.finish_job(tx, job.id)


def _finish_nothing(
    context: ServiceContext, job: JobView, campaign: Campaign, record: Record | None, bid: int, reason: str
) -> None:
    """Nothing is bought: the campaign is over."""

    def finish(tx: Transaction) -> None:
        # with a record everybody's decision is zero; without, nothing was decided
        if record is not None:
            campaigns.put_record(tx.connection, campaign.id, campaigns.packed(record))
            zero = {"promised": 0.0, "payment": 0}
            participants.change_all(tx.connection, campaign.id, ParticipantState.BID, **zero)
        participants.tell_decisions(tx.connection, campaign.id, single_visit=campaign.settings.server.single_visit)
        privacy_account.free(tx.connection, campaign.id)  # what was reserved is free again
        named = {} if record is None else {"record": record.hash}
        over = replace(campaign, state=CampaignState.NOTHING_BOUGHT)
        sealed = ending.sealed(tx, over, "nothing-bought", {**named, "bids": bid})
        campaigns.step(tx.connection, campaign, CampaignState.NOTHING_BOUGHT, reason=reason, **sealed)
        ending.finish_job(tx, job.id)

    context.write("allocation.finish", finish)
    ending.destroy_key(context, campaign.id)


def _refuse_above_spending_limit(campaign: Campaign, total: int) -> None:
    """The bound that was computed before opening makes this impossible; if it is wrong, nothing is bought."""
    spending_limit = campaign.settings.spending_limit_minor
    if spending_limit is not None and total > spending_limit:
        raise CampaignError("The payments would exceed the spending limit, so nothing was decided.")


def _write_privacy_account(tx: Transaction, campaign: Campaign, bidders: list[Participant], record: Record) -> None:
    """What was reserved becomes what is promised; nothing for those from whom nothing is bought."""
    privacy_account.free(tx.connection, campaign.id)  # also what was reserved for those who never bid
    promised = _promised(bidders, record)
    privacy_account.put(tx.connection, campaign.id, promised, kind="promised", title=campaign.settings.title, at=tx.at)
