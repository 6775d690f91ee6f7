"""The one estimate: deliveries stop, noise is drawn once, everybody's receipt is fixed, the key is destroyed.

Of several questions the one release holds the estimates of all.

The estimate is drawn into the claims folder under the campaign's name, before anything of it is stored in the database;
whoever draws again for the same campaign, after a crash or on a restored database, gets that one. The database can hold
one release per campaign, and only a campaign that is ``releasing`` becomes ``released``, once.

Staff see who dropped out, so they see the interval for what was delivered. Everybody else sees one that holds as well,
but is too coarse to tell who dropped out (`hushbid.disclosure.error.published_half_width`).
"""

import math
from dataclasses import replace
from typing import Annotated, Any

from hushbid.common.numbers import at_most
from hushbid.disclosure import QuestionAnswer, Release, release_plan
from hushbid.disclosure.error import FEWEST_PEOPLE, published_half_width
from hushbid.disclosure.ledger.files import stored
from hushbid.errors import CampaignError, Conflict, NothingDelivered
from hushbid.mechanism.releasing import plan_of
from hushbid.receipts.merkle import Tree
from hushbid.record import Record
from hushbid.server.installation import mark_standing, release_name, require_standing
from hushbid.server.model import rules
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import JobView, Principal
from hushbid.server.service import ending
from hushbid.server.service.bodies import Flag, described
from hushbid.server.service.decision import begin_step, new_job, refuse_running, store_rows
from hushbid.server.service.ending import tree_over
from hushbid.server.service.sealing import opened
from hushbid.server.service.use_case import Route, ServiceContext, begins
from hushbid.server.store import campaigns, events, participants, privacy_account
from hushbid.server.store.database import Transaction

LEVEL = 0.95
_STEPS = ("reading data", "drawing the estimate", "storing what everybody lost", "making receipts")
_NOBODY = "Everybody from whom data were bought dropped out, so there is no estimate."
_NOBODY_IN_STRATUM = "Everybody from whom data were bought in one of the strata dropped out, so there is no estimate."


@begins("release.start", Route("POST /campaigns/{campaign}/release", "Release the estimate", by="analyst", status=202))
def release(
    tx: Transaction,
    who: Principal,
    campaign_id: str,
    *,
    accept_nobody: Annotated[
        Flag,
        described("Whether it may end without an estimate, if nobody has delivered although everyone still could."),
    ] = False,
) -> JobView:
    """Take no more data, and draw the estimate once, in the background; begin again if the last attempt failed.

    If nobody has delivered and could still do so, ``accept_nobody`` must say that there shall be no estimate.
    """
    return start(tx, campaign_id, accept_nobody=accept_nobody)


def start(tx: Transaction, campaign_id: str, *, accept_nobody: bool) -> JobView:
    """Stop deliveries, because an analyst wants so or their deadline has passed, and begin the release."""
    campaign = campaigns.get(tx.connection, campaign_id)
    if campaign.state is CampaignState.RELEASING:
        refuse_running(tx, campaign_id)
    else:
        rules.require_state(campaign, CampaignState.DELIVERING, to="release an estimate")
        delivered = participants.count(tx.connection, campaign_id, ParticipantState.DELIVERED)
        deadline = campaign.settings.server.deliver_by
        may_come = not campaign.settings.server.single_visit and (deadline is None or tx.now < deadline)
        if not delivered and not accept_nobody and may_come:
            raise Conflict(
                "Nobody has delivered yet: wait, or accept by name that there will be no estimate.",
                field="accept_nobody",
            )
        claim(tx, campaign, delivered)
    return new_job(tx, campaign_id, "release", _STEPS[0])


def claim(tx: Transaction, campaign: Campaign, delivered: int) -> None:
    """From now on nobody delivers or withdraws, and nothing leads back."""
    campaigns.step(tx.connection, campaign, CampaignState.RELEASING)
    events.append(tx, campaign.id, "release-claimed", {"delivered": delivered})


def run(context: ServiceContext, job: JobView) -> None:
    """Draw, store and show; all of it may be done again after a crash."""
    with context.read() as connection:
        campaign = campaigns.get(connection, job.campaign)
        if campaign.state is not CampaignState.RELEASING:
            return
        record = campaigns.record_of(connection, campaign.id)
        found = {one.id: one for one in participants.everybody(connection, campaign.id)}
    assert record.ids is not None
    # in the record's order, which the promises are in
    people = [found[name] for name in record.ids]
    release = _drawn(context, job, campaign, record, people)
    context.installation.crash("release.drawn")
    _store(context, job, record, people, release)
    begin_step(context, job, _STEPS[3])
    over = CampaignState.UNDELIVERED if release is None else CampaignState.RELEASED
    with context.read() as connection:
        everybody = participants.everybody(connection, campaign.id)
    # receipts over everybody, also those who never bid
    tree = tree_over(replace(campaign, state=over), everybody)
    if release is None:
        context.write("release.finish", lambda tx: _finish_nothing(tx, job, campaign, tree))
    else:
        whole = record.with_release(replace(release, key=record.outcome_key))
        content = campaigns.packed(whole)
        context.write(
            "release.finish", lambda tx: _finish(tx, job, campaign, whole, content, people=everybody, tree=tree)
        )
    # nothing is kept longer than was promised
    if release is None or campaign.settings.server.retention_days == 0:
        ending.destroy_key(context, campaign.id)


def _drawn(
    context: ServiceContext, job: JobView, campaign: Campaign, record: Record, people: list[Participant]
) -> Release | None:
    """The estimate that stands for this campaign, drawn now if there was none; None if nobody delivered."""
    installation, name = context.installation, release_name(campaign.id)
    require_standing(installation.home, name)
    # drawn before: that one, without opening anybody's value
    before = stored(installation.home.claims, name)
    if before is not None:
        mark_standing(installation.home, name)
        return _of_these_questions(Release.from_dict(before), record)
    # the only place where values are opened
    data: list[Any] = [
        opened(installation, campaign, one) if one.state is ParticipantState.DELIVERED else None for one in people
    ]
    installation.crash("release.read")
    begin_step(context, job, _STEPS[1])
    try:
        # under the campaign's name: two campaigns with equal promises are still two
        release = release_plan(plan_of(record.outcome, key=name), data, folder=installation.home.claims)
    except NothingDelivered:
        return None
    mark_standing(installation.home, name)
    return _of_these_questions(release, record)


def _of_these_questions(release: Release, record: Record) -> Release:
    """The one release of a campaign answers what was decided and paid for, or nothing is shown."""
    if tuple(answer.question for answer in release.answers) != (record.outcome.market.survey or ()):
        raise CampaignError("What was drawn for this campaign answers other questions than were decided on.")
    return release


def _store(
    context: ServiceContext, job: JobView, record: Record, people: list[Participant], release: Release | None
) -> None:
    """Store what everybody really lost and who dropped out, some at a time; from the release, not from the database.

    A restored database may have forgotten that somebody delivered; the release has not.
    """
    promised = record.outcome.privacy_loss.tolist()
    losses = [None] * len(people) if release is None else release.privacy_loss.tolist()
    # without an estimate, since all or all in a stratum dropped out: whoever delivered did
    absent = (row for row, one in enumerate(people) if one.state is not ParticipantState.DELIVERED)
    dropped = set(absent if release is None else release.dropped_out)
    rows = []
    for row, one in enumerate(people):
        state = one.state
        # who withdrew stays so
        if promised[row] > 0.0 and state is not ParticipantState.WITHDRAWN:
            state = ParticipantState.DROPPED if row in dropped else ParticipantState.DELIVERED
        rows.append({"id": one.id, "state": state.value, "delivered_loss": losses[row]})
    store_rows(context, job, rows, _STEPS[2])


def _finish(
    tx: Transaction,
    job: JobView,
    campaign: Campaign,
    record: Record,
    content: bytes,
    *,
    people: list[Participant],
    tree: Tree,
) -> None:
    """Let the estimate be seen."""
    assert record.release is not None
    over = replace(campaign, state=CampaignState.RELEASED)
    named = ending.sealed(tx, over, "released", {"record": record.hash}, tree=tree)
    campaigns.step(tx.connection, campaign, CampaignState.RELEASED, released_at=tx.at, **named)
    campaigns.put_record(tx.connection, campaign.id, content)
    campaigns.put_release(tx.connection, campaign.id, shown_release(record.release), tx.at)
    # locally each delivery was entered when it was sent
    if campaign.settings.market.setting == "central":
        _write_privacy_account(tx, campaign, people)
    else:
        privacy_account.free(tx.connection, campaign.id, kind="promised")
    if campaign.settings.server.retention_days == 0:
        participants.erase_deliveries(tx.connection, campaign.id)
    ending.finish_job(tx, job.id)


def _finish_nothing(tx: Transaction, job: JobView, campaign: Campaign, tree: Tree) -> None:
    """Nobody delivered: the campaign is over without an estimate."""
    over = replace(campaign, state=CampaignState.UNDELIVERED)
    named = ending.sealed(tx, over, "undelivered", {}, tree=tree)
    delivered = participants.count(tx.connection, campaign.id, ParticipantState.DELIVERED)
    reason = _NOBODY_IN_STRATUM if delivered else _NOBODY
    campaigns.step(tx.connection, campaign, CampaignState.UNDELIVERED, reason=reason, **named)
    privacy_account.free(tx.connection, campaign.id, kind="promised")
    ending.finish_job(tx, job.id)


def _write_privacy_account(tx: Transaction, campaign: Campaign, people: list[Participant]) -> None:
    """What was promised becomes what was really lost; nothing for those whose data were not used."""
    privacy_account.free(tx.connection, campaign.id)
    lost = {one.person_id: one.delivered_loss for one in people if one.person_id is not None and one.delivered_loss}
    privacy_account.put(tx.connection, campaign.id, lost, kind="delivered", title=campaign.settings.title, at=tx.at)


def shown_release(release: Release) -> dict[str, Any]:
    """What is stored to be shown: for everybody, and under ``staff`` what only staff may see.

    ``half_width`` is for everybody and ``delivered_half_width`` for staff, each with the level at which it holds; its
    value is None where the interval would be as wide as the range or wider. ``normal_half_width``, for staff too, is
    the latter by normal approximation. Of a survey each of the ``answers`` has
    its own, sure by itself and not together with the others. Of strata ``range`` says between which values the truth
    lies.
    """
    public = release.public()
    shown, for_staff = [], []
    for one, result in zip(public.get("answers", [public]), release.results, strict=True):
        for_all, margins = _margins(release, result)
        shown.append({**one, **({} if release.strata is None else {"range": list(result.range)}), **for_all})
        for_staff.append(margins)
    if not release.answers:
        return {**shown[0], "staff": for_staff[0]}
    staff = [{**one, **margins} for one, margins in zip(shown, for_staff, strict=True)]
    return {**public, "answers": shown, "staff": {"answers": staff}}


def _margins(release: Release, found: QuestionAnswer) -> tuple[dict[str, Any], dict[str, Any]]:
    """How far an estimate may be off, for everybody and for staff.

    Where fewer than `FEWEST_PEOPLE` were bought from, of a stratum or of all, none is for everybody: it would tell what
    one of them bid.
    """
    (low, high), delivered = found.range, found.error
    public = published_half_width(planned=found.planned_error, delivered=delivered, width=high - low, level=LEVEL)
    if release.fewest < FEWEST_PEOPLE:
        public = math.inf
    for_staff = {
        "delivered_half_width": _margin(delivered.half_width(LEVEL)),
        "normal_half_width": _margin(at_most(delivered.normal_half_width(LEVEL), 4)),
    }
    return {"half_width": _margin(public)}, for_staff


def _margin(half_width: float) -> dict[str, float | None]:
    return {"level": LEVEL, "value": half_width if math.isfinite(half_width) else None}
