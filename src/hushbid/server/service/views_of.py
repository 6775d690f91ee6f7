"""From what is stored to what is shown."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from hushbid.errors import NotFound
from hushbid.server.domain import rules
from hushbid.server.domain.entities import Campaign, Participant
from hushbid.server.domain.states import CampaignState
from hushbid.server.domain.views import (
    CampaignView,
    MenuView,
    ParticipantView,
    ParticipationView,
    PaymentRow,
    PublicView,
    Spending,
)
from hushbid.server.store import campaigns, events, participants
from hushbid.server.store.participants import Holder
from hushbid.server.store.rows import plain_text, plain_values, sure_moment


def campaign_view(connection: Connection, campaign: Campaign) -> CampaignView:
    """A campaign for analysts and auditors."""
    totals = participants.totals(connection, campaign)
    return CampaignView(
        id=campaign.id,
        state=campaign.state,
        settings=campaign.settings,
        created_at=campaign.created_at,
        opened_at=campaign.opened_at,
        allocated_at=campaign.allocated_at,
        released_at=campaign.released_at,
        people={state.value: count for state, (count, _, _) in sorted(totals.items())},
        spending=None if campaign.spending is None else Spending(**plain_values(campaign.spending)),
        total_payment=campaign.total_payment,
        due=sum(owed for _, owed, _ in totals.values()),
        paid=sum(paid for _, _, paid in totals.values()),
        reason=campaign.reason,
        root=campaign.root,
        tree_size=campaign.tree_size,
        release=campaigns.release_of(connection, campaign.id, staff=True) if campaign.released_at else None,
        key_destroyed_at=campaign.key_destroyed_at,
    )


def participant_view(campaign: Campaign, participant: Participant, *, labelled: bool) -> ParticipantView:
    """A participant for analysts, or without her label for auditors."""
    return ParticipantView(
        id=participant.id,
        label=participant.label if labelled else None,
        group=participant.group_name,
        state=participant.state,
        due=rules.due(campaign, participant),
        paid=participant.paid,
    )


def payment_row(campaign: Campaign, participant: Participant) -> PaymentRow:
    """What a participant is owed."""
    return PaymentRow(
        id=participant.id,
        label=participant.label,
        payment=rules.payment_owed(participant),
        fee=rules.fee_owed(campaign, participant),
        paid=participant.paid,
        due=rules.due(campaign, participant),
        currency=campaign.settings.currency,
        decimals=campaign.settings.decimals,
        paid_at=participant.paid_at,
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
    settings, decided = campaign.settings, campaign.state.is_decided
    prior = settings.prior_of(participant.group_name)
    return ParticipationView(
        campaign=campaign.id,
        participant=participant.id,
        title=settings.title,
        question=settings.question,
        description=settings.description,
        unit=settings.unit,
        setting=settings.setting,
        bounds=settings.bounds,
        currency=settings.currency,
        decimals=settings.decimals,
        participation_fee=settings.participation_fee,
        fee_after_withdrawal=settings.fee_after_withdrawal,
        max_privacy_loss=settings.max_privacy_loss,
        retention_days=settings.retention_days,
        smallest_report=prior.smallest_report,
        largest_bought=prior.support[1] if math.isfinite(prior.support[1]) else None,
        report_by=settings.report_by,
        deliver_by=settings.deliver_by,
        campaign_state=campaign.state,
        state=participant.state,
        group=participant.group_name,
        report=participant.report,
        promised=participant.promised if decided else None,  # stored some at a time before it stands
        payment=participant.payment if decided else None,
        delivered_at=participant.delivered_at,
        delivered_loss=participant.delivered_loss if campaign.released_at is not None else None,
        due=rules.due(campaign, participant),
        paid=participant.paid,
        root=campaign.root,
        renewed=tuple(sure_moment(at) for at in (participant.renewed if renewed is None else renewed)),
        reads_only=reads_only,
        estimate=estimate,
    )


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
    shown = campaign.settings.public_estimate and campaign.released_at is not None
    return PublicView(
        campaign=campaign.id,
        title=campaign.settings.title,
        question=campaign.settings.question,
        unit=campaign.settings.unit,
        setting=campaign.settings.setting,
        bounds=campaign.settings.bounds,
        state=campaign.state,
        people=participants.count(connection, campaign.id),
        root=campaign.root,
        tree_size=campaign.tree_size,
        last_event=None if head is None else head.hash,
        release=campaigns.release_of(connection, campaign.id, staff=False) if shown else None,
    )


def menu_view(campaign: Campaign, group: str | None) -> MenuView:
    """The menu for somebody of a group, as it was computed when the campaign opened."""
    if campaign.menus is None or campaign.state is CampaignState.DRAFT:
        raise NotFound("This campaign has no menu: it has not opened yet.")
    menu: dict[str, Any] = plain_values(campaign.menus)[group or ""]
    return MenuView(
        reports=tuple(menu["reports"]),
        privacy_loss=tuple(menu["privacy_loss"]),
        payment=tuple(menu["payment"]),
        chance=tuple(menu["chance"]),
        repetitions=menu["repetitions"],
    )


def menus_text(menus: dict[str, MenuView]) -> str:
    """Menus by group, as they are stored."""
    return plain_text({group: asdict(menu) for group, menu in menus.items()})


def spending_text(spending: Spending) -> str:
    """What a campaign may cost, as it is stored."""
    return plain_text(asdict(spending))
