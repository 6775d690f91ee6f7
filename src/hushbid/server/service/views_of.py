"""What analysts, auditors and the public get to see and can check; and, below, everybody's views of what is stored."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection

from hushbid.common.documents import parsed
from hushbid.errors import InputError, NotFound
from hushbid.receipts.log import Event
from hushbid.record import Record
from hushbid.server.model import rules
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.payment_views import PaymentRow
from hushbid.server.model.payout import reference_of
from hushbid.server.model.states import CampaignState
from hushbid.server.model.views import (
    AccountRow,
    AgreementView,
    CampaignView,
    EventLine,
    JobView,
    MenuView,
    Page,
    ParticipantView,
    ParticipationView,
    Principal,
    PublicView,
    Spending,
    TypedDraft,
)
from hushbid.server.service.use_case import Route, ServiceContext, reads, steps
from hushbid.server.store import campaigns, events, jobs, participants, privacy_account
from hushbid.server.store.participants import Holder
from hushbid.server.store.schema import plain_text, plain_values, stamp
from hushbid.verification.findings import Check
from hushbid.verification.receipts import verify_log, verify_logged_record

if TYPE_CHECKING:
    from hushbid.report.sections.audits import AuditLine

MOST_ON_A_PAGE = 1000
PAGE = ("limit", "cursor")
"""What asks for a part of a list."""

S = TypeVar("S")
T = TypeVar("T")


def _page(found: Sequence[S], limit: int, view: Callable[[S], T], cursor: Callable[[S], str]) -> Page[T]:
    """One page of what was found, one more than the page takes; the next one begins after its last."""
    more = len(found) > limit
    return Page(items=tuple(map(view, found[:limit])), cursor=cursor(found[limit - 1]) if more else None)


@reads(Route("GET /campaigns", "List campaigns", by="staff", query=PAGE))
def list_campaigns(
    connection: Connection, who: Principal, *, cursor: str | None = None, limit: int = 100
) -> Page[CampaignView]:
    """Return all campaigns, newest first."""
    before = None if cursor is None else _two(cursor)
    found = campaigns.newest(connection, before=before, limit=_checked_limit(limit) + 1)
    return _page(
        found, limit, lambda one: campaign_view(connection, one), lambda one: f"{stamp(one.created_at)},{one.id}"
    )


@reads(Route("GET /campaigns/{campaign}", "Read a campaign", by="staff"))
def read_campaign(connection: Connection, who: Principal, campaign_id: str) -> CampaignView:
    """Return a campaign, with how many people are in which state."""
    return campaign_view(connection, campaigns.get(connection, campaign_id))


@reads(by="analyst")
def read_typed(connection: Connection, who: Principal, campaign_id: str) -> TypedDraft | None:
    """Return what was typed into a draft's form, if it was made or changed there."""
    return typed_draft(campaigns.get(connection, campaign_id))


@reads(Route("GET /campaigns/{campaign}/participants", "List participants", by="staff", query=PAGE))
def list_participants(
    connection: Connection, who: Principal, campaign_id: str, *, cursor: str | None = None, limit: int = 100
) -> Page[ParticipantView]:
    """Return everybody's state, in the order of invitation; auditors see pseudonyms only."""
    after = place_of(cursor)
    campaign = campaigns.get(connection, campaign_id)
    found = participants.listed(connection, campaign_id, after=after, limit=_checked_limit(limit) + 1)
    labelled = who.role == "analyst"
    return _page(
        found, limit, lambda one: participant_view(campaign, one, labelled=labelled), lambda one: str(one.number)
    )


@reads(by="staff")
def list_jobs(connection: Connection, who: Principal, campaign_id: str) -> tuple[JobView, ...]:
    """A campaign's work in the background, newest first."""
    campaigns.get(connection, campaign_id)
    return tuple(jobs.of_campaign(connection, campaign_id))


@reads(Route("GET /campaigns/{campaign}/jobs", "List background work", by="staff", query=PAGE))
def page_of_jobs(
    connection: Connection, who: Principal, campaign_id: str, *, cursor: str | None = None, limit: int = 100
) -> Page[JobView]:
    """Return work in the background, with its progress: openings, allocations and releases, the latest last."""
    oldest_first = list_jobs(connection, who, campaign_id)[::-1]
    start = place_of(cursor)
    end = start + _checked_limit(limit)
    return Page(items=oldest_first[start:end], cursor=str(end) if end < len(oldest_first) else None)


@reads(by="staff")
def read_log(connection: Connection, who: Principal, campaign_id: str) -> tuple[Event, ...]:
    """A campaign's whole log."""
    campaigns.get(connection, campaign_id)
    return tuple(events.listed(connection, campaign_id, after=0, limit=None))


@reads(Route("GET /campaigns/{campaign}/events", "Read the log", by="staff", query=PAGE, answers=Page[EventLine]))
def page_of_events(
    connection: Connection, who: Principal, campaign_id: str, *, cursor: str | None = None, limit: int = 100
) -> Page[dict[str, Any]]:
    """Return what happened, each line chained to the one before."""
    campaigns.get(connection, campaign_id)
    found = events.listed(connection, campaign_id, after=place_of(cursor), limit=_checked_limit(limit) + 1)
    return _page(found, limit, Event.to_dict, lambda one: str(one.number))


@reads(by="staff")
def read_record(connection: Connection, who: Principal, campaign_id: str) -> bytes:
    """A campaign's record as a file: every bid, promise and payment by pseudonym, and the release."""
    if not campaigns.get(connection, campaign_id).state.is_decided:
        raise NotFound("This campaign has no record: no decision was made.")
    return campaigns.record_bytes(connection, campaign_id)


@reads(Route("GET /privacy-account", "Read the privacy account", by="staff", query=PAGE))
def list_privacy_account(
    connection: Connection, who: Principal, *, cursor: str | None = None, limit: int = 100
) -> Page[AccountRow]:
    """Return each person's privacy loss in each campaign, by pseudonym."""
    after = None if cursor is None else _two(cursor)
    found = privacy_account.listed(connection, after=after, limit=_checked_limit(limit) + 1)
    return _page(found, limit, lambda one: one, lambda one: f"{one.person},{one.campaign}")


@reads(Route("GET /campaigns/{campaign}/public", "What everybody may see", by="anybody"))
def read_public(connection: Connection, campaign_id: str) -> PublicView:
    """Return what everybody may see of a campaign that has opened: title, state, the receipts' root, and the estimate,
    if it is public."""
    return public_view(connection, campaigns.get(connection, campaign_id))


# -- as somebody who does not trust this server would check, from record and log alone --------------------------------

_SAMPLES, _TESTED, _AMONG = 12_000, 6, 8


@steps(by="staff")
def checks(context: ServiceContext, who: Principal, campaign_id: str) -> Mapping[str, tuple[Check, ...]]:
    """Everything that can be checked without the data: of the record, and of the log."""
    with context.read() as connection:
        record = _record(connection, who, campaign_id)
        log = read_log(connection, who, campaign_id)
        root = campaigns.get(connection, campaign_id).root
    of_log = verify_log(log, root=root, record=record).checks
    known = {check.name for check in of_log}
    of_record = tuple(check for check in verify_logged_record(record, log=log).checks if check.name not in known)
    return {"record": of_record, "log": tuple(of_log)}


@steps(by="staff")
def attacks(context: ServiceContext, who: Principal, campaign_id: str) -> "tuple[AuditLine, ...]":
    """Look for misreports that pay, outputs that betray too much, and errors larger than stated. Takes some seconds.

    Smaller than what ``hushbid audit`` does with the record by default: other people wait for this server, too.
    """
    from hushbid.audit.suite import audits_of
    from hushbid.report.sections.audits import lines_of  # loads what computes

    with context.read() as connection:
        outcome = _record(connection, who, campaign_id).outcome
    samples = _SAMPLES if outcome.market.survey is None else None  # for a survey fewer are enough
    return lines_of(list(audits_of(outcome, samples=samples, tested=_TESTED, among=_AMONG)), outcome)


def _record(connection: Connection, who: Principal, campaign_id: str) -> Record:
    return Record.from_dict(parsed(read_record(connection, who, campaign_id)))


# -- views -------------------------------------------------------------------------------------------------------------


def campaign_view(connection: Connection, campaign: Campaign) -> CampaignView:
    """A campaign for analysts and auditors."""
    totals, typed = participants.totals(connection, campaign), typed_draft(campaign)
    title = "" if typed is None else typed.fields.get("title", "").strip()
    return CampaignView.of(
        campaign,
        title=title if campaign.stated is None else campaign.stated.title,
        settings=campaign.stated,
        people={state.value: count for state, (count, _, _) in sorted(totals.items())},
        spending=None if campaign.spending is None else Spending(**plain_values(campaign.spending)),
        due=sum(owed for _, owed, _ in totals.values()),
        paid=sum(paid for _, _, paid in totals.values()),
        release=campaigns.release_of(connection, campaign.id, staff=True) if campaign.released_at else None,
    )


def typed_draft(campaign: Campaign) -> TypedDraft | None:
    """What was typed into a draft's form, if it was made or changed there."""
    if campaign.typed is None or campaign.typed_at is None:
        return None
    return TypedDraft(**plain_values(campaign.typed), at=campaign.typed_at)


def participant_view(campaign: Campaign, participant: Participant, *, labelled: bool) -> ParticipantView:
    """A participant for analysts, or without her label for auditors."""
    label, due = participant.label if labelled else None, rules.due(campaign, participant)
    return ParticipantView.of(participant, label=label, group=participant.group_name, due=due)


def payment_row(campaign: Campaign, participant: Participant) -> PaymentRow:
    """What a participant is owed."""
    return PaymentRow.of(
        participant,
        campaign.settings.shown,
        payment=rules.payment_owed(participant),
        fee=rules.fee_owed(campaign, participant),
        due=rules.due(campaign, participant),
        reference=reference_of(campaign.id, participant.id),
    )


def participation_view(
    campaign: Campaign,
    participant: Participant,
    *,
    estimate: dict[str, Any] | None = None,
    renewed: Sequence[str] | None = None,
    reads_only: bool = False,
) -> ParticipationView:
    """What a participant sees; decisions only once they stand."""
    if campaign.stated is None:
        rules.require_opened(campaign)
    settings, decided = campaign.settings, campaign.state.is_decided
    prior = settings.prior_of(participant.group_name)
    return ParticipationView.of(
        participant,
        settings.shown,
        campaign=campaign.id,
        campaign_state=campaign.state,
        participant=participant.id,
        smallest_bid=prior.smallest_bid,
        largest_bought=prior.support[1] if math.isfinite(prior.support[1]) else None,
        group=participant.group_name,
        limit=participant.loss_limit,
        promised=participant.promised if decided else None,  # stored some at a time before it stands
        payment=participant.payment if decided else None,
        delivered_loss=participant.delivered_loss if campaign.released_at is not None else None,
        due=rules.due(campaign, participant),
        root=campaign.root,
        renewed=tuple(map(datetime.fromisoformat, participant.renewed if renewed is None else renewed)),
        reads_only=reads_only,
        must_agree=rules.must_agree(campaign),
        agreement=agreement_view(participant),
        estimate=estimate,
    )


def agreement_view(participant: Participant) -> AgreementView | None:
    """What a participant agreed to last."""
    at, version, language = participant.agreed_at, participant.agreed_version, participant.agreed_language
    if at is None or version is None or language is None:
        return None
    return AgreementView(at=datetime.fromisoformat(at), version=version, language=language)


def own_view(connection: Connection, campaign: Campaign, holder: Holder) -> ParticipationView:
    """What a participant sees, with the estimate if there is one."""
    participant, renewed = holder.participant, None
    if campaign.root is not None:  # her receipt is fixed, so what came later is in the log only
        renewed = [event.at for event in events.about(connection, participant.id) if event.kind == "link-renewed"]
    released = campaign.released_at is not None
    estimate = campaigns.release_of(connection, campaign.id, staff=False) if released else None
    return participation_view(campaign, participant, estimate=estimate, renewed=renewed, reads_only=holder.reads_only)


def public_view(connection: Connection, campaign: Campaign) -> PublicView:
    """What anybody may see; a draft does not exist for the public."""
    if campaign.opened_at is None:
        raise NotFound("There is no such campaign.")
    head = events.last(connection, campaign.id)
    # the analyst decides beforehand whether the estimate is public
    shown = campaign.settings.server.public_estimate and campaign.released_at is not None
    return PublicView.of(
        campaign,
        campaign.settings.shown,
        campaign=campaign.id,
        people=participants.count(connection, campaign.id),
        last_event=None if head is None else head.hash,
        release=campaigns.release_of(connection, campaign.id, staff=False) if shown else None,
    )


def menu_name(group: str | None, stratum: str | None) -> str:
    """Under which name the menu for somebody of a group and a stratum is kept."""
    return group or "" if stratum is None else f"{group or ''}\n{stratum}"


def menu_view(campaign: Campaign, group: str | None, stratum: str | None) -> MenuView:
    """The menu for somebody of a group and a stratum, as it was computed when the campaign opened."""
    if campaign.menus is None or campaign.state is CampaignState.DRAFT:
        raise NotFound("This campaign has no menu: it has not opened yet.")
    menu: dict[str, Any] = plain_values(campaign.menus)[menu_name(group, stratum)]
    return MenuView.of(**{name: tuple(value) if isinstance(value, list) else value for name, value in menu.items()})


def menus_text(menus: dict[str, MenuView]) -> str:
    """Menus by group, as they are stored."""
    return plain_text({group: asdict(menu) for group, menu in menus.items()})


def spending_text(spending: Spending) -> str:
    """What a campaign may cost, as it is stored."""
    return plain_text(asdict(spending))


def place_of(cursor: str | None, name: str = "cursor") -> int:
    """The number after which a list goes on, from what an earlier page gave; 0 at the beginning."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 9):
        raise InputError(f"{name} must be one that an earlier page gave.", field=name)
    return int(cursor)


def _checked_limit(limit: int) -> int:
    if type(limit) is not int or not 1 <= limit <= MOST_ON_A_PAGE:
        raise InputError(f"limit must be a whole number from 1 to {MOST_ON_A_PAGE}, got {limit!r}.", field="limit")
    return limit


def _two(cursor: str) -> tuple[str, str]:
    first, comma, second = cursor.partition(",")
    if not comma or not cursor.isascii() or not cursor.isprintable() or len(cursor) > 200:
        raise InputError("cursor must be one that an earlier page gave.", field="cursor")
    return first, second
