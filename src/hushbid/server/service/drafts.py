"""Before a campaign opens: drafting, looking ahead, opening.

A draft is what was typed, complete or not: it has settings once it is complete, and only then can people be invited or
the campaign opened.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Any

from hushbid.common.documents import content_hash
from hushbid.errors import Conflict, InputError, LimitExceeded, NotFound, ServerFailed, Unreachable
from hushbid.server.installation import Installation
from hushbid.server.model import rules
from hushbid.server.model.checks import LONGEST
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.settings import MOST_PEOPLE, CampaignSettings
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import CampaignView, JobView, MenuView, Preview, Principal
from hushbid.server.service import bodies, ending
from hushbid.server.service.bodies import Whole, described
from hushbid.server.service.decision import begin_step, new_job, refuse_running
from hushbid.server.service.forecast import menus, preview
from hushbid.server.service.use_case import Route, ServiceContext, begins, changes, steps
from hushbid.server.service.views_of import campaign_view, menus_text, spending_text
from hushbid.server.service.what_if import WhatIf, people_like, what_if
from hushbid.server.store import campaigns, events, jobs, participants, privacy_account, schema
from hushbid.server.store.database import Transaction
from hushbid.server.store.schema import new_id, plain_text

_DRAFT_ID = re.compile(r"c[0-9a-f]{20}", flags=re.ASCII)
_NOTHING_TYPED = dict.fromkeys(("typed", "typed_at", "saved_at"))


@changes("draft", Route("POST /campaigns", "Draft a campaign", by="analyst", status=201))
def draft(tx: Transaction, who: Principal, settings: CampaignSettings) -> CampaignView:
    """Create a draft, which only analysts and auditors see."""
    return _store(tx, who, new_id("c"), {}, stated=settings)


@changes("keep", by="analyst")
def keep(
    tx: Transaction,
    who: Principal,
    campaign_id: str,
    typed: Mapping[str, str],
    *,
    language: str,
    settings: CampaignSettings | None,
    seen: datetime | None = None,
) -> CampaignView:
    """Keep what was typed into a draft's form, and the settings it comes to if it is complete.

    A draft that is new is made under the name that its page gave it.

    By pressing a button; or else by the script of a page that was ``seen`` at that time: what it sent before a button
    was pressed, and arrives after it, is not kept, as it would undo the button.
    """
    found = campaigns.find(tx.connection, campaign_id)
    content = plain_text({"fields": dict(typed), "language": language})
    columns: dict[str, Any] = {"stated": settings, "typed": content, "typed_at": tx.at}
    if seen is None:
        columns["saved_at"] = tx.at
    if found is None:
        # after a restore the privacy account may know a campaign that the database has forgotten: its name stays taken
        taken = campaign_id in privacy_account.campaigns_known(tx.connection)
        if taken or not _DRAFT_ID.fullmatch(campaign_id):
            raise NotFound("There is no such campaign.")
        return _store(tx, who, campaign_id, {}, **columns)
    rules.require_state(found, CampaignState.DRAFT, to="change the settings")
    if seen is None or found.saved_at is None or seen >= found.saved_at:
        campaigns.change(tx.connection, campaign_id, **columns)
    return campaign_view(tx.connection, campaigns.get(tx.connection, campaign_id))


@changes("copy", Route("POST /campaigns/{campaign}/copy", "Copy a campaign", by="analyst", status=201))
def copy(
    tx: Transaction,
    who: Principal,
    campaign_id: str,
    title: Annotated[
        str,
        described("What people call it.", json_schema_extra={"minLength": 1, "maxLength": LONGEST["title"]}),
    ],
) -> CampaignView:
    """Create a draft with the settings of another campaign, in any state, under a title of its own.

    People, results and deadlines are not copied: deadlines have passed, or will have before anybody is asked.
    """
    settings = campaigns.get(tx.connection, campaign_id).settings
    least = tx.installation.least_people
    stated = settings.server.minimum_people
    if stated < least:
        raise Conflict(
            f"This campaign cannot be copied: it is content with {stated} people, and this server asks for at least"
            f" {least}. Draft a new one.",
            field="minimum_people",
        )
    changes = {"title": title, "server.bid_by": None, "server.deliver_by": None, "server.automatic": False}
    settings = settings.changed(changes)
    return _store(tx, who, new_id("c"), {"copy_of": campaign_id}, stated=settings)


def _store(
    tx: Transaction, who: Principal, campaign_id: str, origin: Mapping[str, str], **columns: Any
) -> CampaignView:
    if columns["stated"] is not None:
        columns["stated"].require_people(tx.installation.least_people)
    state = CampaignState.DRAFT.value
    row = {"id": campaign_id, "state": state, "created_at": tx.at, "created_by": who.id, **columns}
    schema.add(tx.connection, schema.campaigns, row)
    events.append(tx, campaign_id, "drafted", {"by": who.name, **origin})
    return campaign_view(tx.connection, campaigns.get(tx.connection, campaign_id))


@changes("change", Route("PUT /campaigns/{campaign}", "Change a draft", by="analyst"))
def change(tx: Transaction, who: Principal, campaign_id: str, settings: CampaignSettings) -> CampaignView:
    """Replace a draft's settings, all of them."""
    settings.require_people(tx.installation.least_people)
    campaign = campaigns.get(tx.connection, campaign_id)
    rules.require_state(campaign, CampaignState.DRAFT, to="change the settings")
    campaigns.change(tx.connection, campaign_id, stated=settings, **_NOTHING_TYPED)
    return campaign_view(tx.connection, campaigns.get(tx.connection, campaign_id))


@changes("discard", Route("DELETE /campaigns/{campaign}", "Discard a draft", by="analyst", status=204))
def discard(tx: Transaction, who: Principal, campaign_id: str) -> None:
    """Delete a draft with everything that belongs to it, the people who were invited included."""
    campaign = campaigns.get(tx.connection, campaign_id)
    rules.require_state(campaign, CampaignState.DRAFT, to="discard it")
    campaigns.discard(tx.connection, campaign_id)
    tx.erases = True


@steps(
    Route("POST /preview", "Look ahead without storing anything", by="analyst", body=bodies.PreviewOf, computes=True)
)
def look_ahead(
    context: ServiceContext,
    settings: CampaignSettings,
    people: int | Sequence[str | None],
    strata: Sequence[str | None] = (),
) -> Preview:
    """Forecast cost and precision of a campaign with these settings, without storing anything. Takes some seconds.

    The forecast is for so many people, or for people of these groups and strata.
    """
    size = people if isinstance(people, int) else len(people)
    if not 1 <= size <= MOST_PEOPLE:
        raise InputError(f"people must be from 1 to {MOST_PEOPLE}, got {size}.", field="people")
    groups: list[str | None] = [None] * size if isinstance(people, int) else list(people)
    if settings.weights and (len(strata) != size or settings.empty_strata(strata)):
        told = "people must be those who are invited, with somebody in every stratum: invite first, and leave it out."
        raise InputError(told, field="people")
    return preview(settings, groups, context.effort, strata)


@steps()
def answers_ahead(context: ServiceContext, settings: CampaignSettings, people: int) -> tuple[Preview | None, WhatIf]:
    """What a campaign of so many people may cost, if they can reach its goal at all, and what it takes to get more."""
    groups, strata = people_like(settings, people)
    try:
        found = look_ahead(context, settings, groups, strata)
    except Unreachable:
        return None, what_if(settings, people, None, context.effort.seconds)
    return found, what_if(settings, people, found, context.effort.seconds)


@steps(Route("POST /campaigns/{campaign}/preview", "Look ahead", by="analyst", computes=True))
def look_ahead_at(
    context: ServiceContext,
    who: Principal,
    campaign_id: str,
    people: Annotated[
        Whole | None,
        described("How many people would take part; those who are invited if left out.", ge=1, le=MOST_PEOPLE),
    ] = None,
) -> Preview:
    """Forecast cost and precision of a stored campaign. Changes nothing; takes some seconds.

    The forecast is for so many people, or for those who are invited.
    """
    with context.read() as connection:
        settings = campaigns.get(connection, campaign_id).settings
        groups = participants.groups(connection, campaign_id)
        strata = participants.strata(connection, campaign_id)
    return look_ahead(context, settings, groups, strata) if people is None else look_ahead(context, settings, people)


@begins("open.start", Route("POST /campaigns/{campaign}/open", "Open for bids", by="analyst", status=202))
def start_opening(tx: Transaction, who: Principal, campaign_id: str) -> JobView:
    """Compute costs and prices in the background, and then let people bid.

    The job fails, and the draft stays one, if some bids could make it cost more than its spending limit.
    """
    campaign = campaigns.get(tx.connection, campaign_id)
    _require_ready(campaign, participants.groups(tx.connection, campaign_id), tx.installation, tx.now)
    _require_strata(campaign.settings, participants.strata(tx.connection, campaign_id))
    refuse_running(tx, campaign_id)
    return new_job(tx, campaign_id, "opening", "forecast")


def run_opening(context: ServiceContext, job: JobView) -> None:
    """Open a campaign if the most it can cost is within its spending limit; a server that died in between begins
    again."""
    with context.read() as connection:
        campaign = campaigns.get(connection, job.campaign)
        groups = participants.groups(connection, job.campaign)
        strata = participants.strata(connection, job.campaign)
    forecast = preview(campaign.settings, groups, context.effort, strata)
    _unless_stopping(context)
    begin_step(context, job, "menus")

    def progress(done: int, total: int) -> None:
        _unless_stopping(context)
        context.write("progress", lambda tx: jobs.change(tx.connection, job.id, step="menus", done=done, total=total))

    menu_of = menus(campaign.settings, groups, context.effort, strata, progress=progress)

    def finish(tx: Transaction) -> None:
        _open(tx, campaign, (groups, strata), forecast, menu_of)
        ending.finish_job(tx, job.id)

    context.write("open", finish)


def _unless_stopping(context: ServiceContext) -> None:
    """Give a job up that takes minutes when the server stops; its row stays, and the next server begins again."""
    if context.stopping():
        raise ServerFailed("the server is stopping; the next one begins again.")


def _require_ready(campaign: Campaign, groups: Sequence[str | None], installation: Installation, now: datetime) -> None:
    """Refuse to open a campaign that is not ready."""
    settings, privacy_cap = campaign.settings, installation.privacy_cap
    rules.require_state(campaign, CampaignState.DRAFT, to="open it")
    if len(groups) < settings.server.minimum_people:
        raise Conflict(
            f"At least {settings.server.minimum_people} people must be invited first, got {len(groups)}.",
            field="people",
        )
    unknown = {group for group in groups if (group is None) != (not settings.groups)}
    unknown |= {group for group in groups if group is not None and group not in settings.groups}
    if unknown:
        shown = ", ".join(sorted(repr(group) for group in unknown))
        raise Conflict(f"Everybody's group must be one of the settings' groups, but {shown} is not.", field="groups")
    if privacy_cap is not None and settings.largest_loss > privacy_cap:
        what = f"the largest privacy loss that follows from {settings.stated} and prior"
        if settings.market.max_privacy_loss is not None:
            what = "max_privacy_loss"
        raise Conflict(
            f"{what} must not exceed the server's privacy cap of {privacy_cap:g}, got {settings.largest_loss:g}.",
            field="privacy_cap",
        )
    settings.require_people(installation.least_people)
    for name, what in (("bid_by", "bids"), ("deliver_by", "data")):
        deadline = getattr(settings.server, name)
        if deadline is not None and now >= deadline:
            raise Conflict(f"The deadline for {what} has passed already: change {name} first.", field=name)


def _require_strata(settings: CampaignSettings, strata: Sequence[str | None]) -> None:
    """Refuse to open a campaign in which somebody is in no stratum, or a stratum is empty."""
    known: set[str | None] = {*settings.weights} or {None}
    if not set(strata) <= known:
        told = "Everybody's stratum must be one of the settings' strata: invite people with those."
        raise Conflict(told, field="strata")
    if empty := settings.empty_strata(strata):
        told = f"Somebody must be invited in stratum {empty[0]!r} first, who may still give something up."
        raise Conflict(told, field="strata")


def _open(
    tx: Transaction,
    campaign: Campaign,
    people: tuple[list[str | None], list[str | None]],
    forecast: Preview,
    menu_of: dict[str, MenuView],
) -> None:
    """Open a campaign whose costs were computed for the settings and people it has; exhausted people are excluded."""
    connection = tx.connection
    # the forecast took a while: everything is checked again, inside the transaction
    now = campaigns.get(connection, campaign.id)
    groups = participants.groups(connection, campaign.id)
    _require_ready(now, groups, tx.installation, tx.now)
    if now.settings != campaign.settings or (groups, participants.strata(connection, campaign.id)) != people:
        raise Conflict("The draft was changed at the same moment: look again.", field="draft")
    if forecast.too_much_rounding:
        raise LimitExceeded(_too_much_rounding(campaign.settings, forecast), field="accept_rounding")
    if forecast.above_spending_limit:
        raise Conflict(_above_spending_limit(campaign.settings, forecast), field="spending_limit")
    # may bring it below the minimum
    excluded = _reserve(tx, campaign)
    least = campaign.settings.server.minimum_people
    if len(groups) - excluded < least:
        raise Conflict(
            f"At least {least} people must be invited who may still give something up, got {len(groups) - excluded}.",
            field="people",
        )
    _require_strata(now.settings, participants.strata(connection, campaign.id))
    if now.settings.server.single_visit:  # before anybody can send answers
        tx.installation.vault.create_for_answers(campaign.id)
    campaigns.step(
        connection,
        now,
        CampaignState.BIDDING,
        opened_at=tx.at,
        spending=spending_text(forecast.spending),
        menus=menus_text(menu_of),
        **_NOTHING_TYPED,
    )
    body = {"settings": content_hash(campaign.settings.to_dict()), "people": len(groups), "excluded": excluded}
    events.append(tx, campaign.id, "opened", body)


def _reserve(tx: Transaction, campaign: Campaign) -> int:
    """Write the most everybody may give up into the privacy account; exclude whom that would bring above the cap."""
    everybody = participants.everybody(tx.connection, campaign.id)
    most = campaign.settings.largest_loss
    so_far = privacy_account.given_up(tx.connection, [one.person_id for one in everybody if one.person_id is not None])
    excluded: list[Participant] = []
    reserved: dict[str, float] = {}
    # as if everybody gave up all that is allowed
    for one in everybody:
        cap = tx.installation.privacy_cap
        if cap is not None and (one.person_id is None or so_far[one.person_id] + Fraction(most) > Fraction(cap)):
            excluded.append(one)
        elif one.person_id is not None:
            reserved[one.person_id] = most
    privacy_account.put(tx.connection, campaign.id, reserved, kind="reserved", title=campaign.settings.title, at=tx.at)
    state = ParticipantState.EXCLUDED.value
    participants.change_rows(tx.connection, [{"id": one.id, "state": state} for one in excluded])
    return len(excluded)


def _too_much_rounding(settings: CampaignSettings, forecast: Preview) -> str:
    taken = settings.currency.text(forecast.spending.rounding)
    return (
        f"Rounding payments up would take {taken}, more than 5 % of the budget: invite"
        " fewer people, state a larger budget or a hard_budget, or accept it with accept_rounding."
    )


def _above_spending_limit(settings: CampaignSettings, forecast: Preview) -> str:
    worst, limit = forecast.spending.at_worst, settings.spending_limit_minor or 0
    shown = "any amount" if worst is None else settings.currency.text(worst)
    return f"spending_limit is {settings.currency.text(limit)}, but some bids could make the campaign cost {shown}."
