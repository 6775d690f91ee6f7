"""Who may do what when, and who is owed what: pure functions of what is stored."""

import math
from datetime import datetime

from hushbid.campaign.spec import Consent
from hushbid.errors import Conflict, NotAllowed
from hushbid.server.model.access import Role
from hushbid.server.model.entities import Campaign, Participant
from hushbid.server.model.states import CampaignState, ParticipantState
from hushbid.server.model.views import Principal

COUNTED = frozenset(
    {
        ParticipantState.NOT_BOUGHT,
        ParticipantState.PROMISED,
        ParticipantState.DELIVERED,
        ParticipantState.DROPPED,
    }
)
"""Her bid counted in the decision; the participation fee is hers whatever happens later."""

_ANSWERS = {
    CampaignState.DRAFT: "has not opened yet",
    CampaignState.BIDDING: "is still collecting bids",
    CampaignState.ALLOCATING: "no longer takes bids; its decision is being made",
    CampaignState.NOTHING_BOUGHT: "is over: nothing was bought",
    CampaignState.DELIVERING: "has made its decision and is collecting data",
    CampaignState.RELEASING: "no longer takes data; its estimate is being drawn",
    CampaignState.UNDELIVERED: "is over: nobody delivered",
    CampaignState.RELEASED: "is over: its estimate was released",
    CampaignState.CLOSED: "is over and closed",
    CampaignState.CANCELLED: "was cancelled",
}


def fee_owed(campaign: Campaign, participant: Participant) -> int:
    """The participation fee, if it is hers by now; minor units."""
    if participant.bid_at is None:
        return 0
    settings = campaign.settings
    hers = (
        participant.state in COUNTED
        or (participant.state is ParticipantState.BID and campaign.state is CampaignState.CANCELLED)
        or (participant.state is ParticipantState.WITHDRAWN and settings.server.fee_after_withdrawal)
    )
    return settings.fee_minor if hers else 0


def payment_owed(participant: Participant) -> int:
    """The payment for her data, once she has delivered them; minor units."""
    return participant.payment or 0 if participant.state is ParticipantState.DELIVERED else 0


def due(campaign: Campaign, participant: Participant) -> int:
    """What is still to be paid to her; minor units."""
    return max(fee_owed(campaign, participant) + payment_owed(participant) - participant.paid, 0)  # nobody owes


def require_role(who: Principal, by: Role) -> None:
    """Refuse what only analysts may do, or only analysts and auditors see."""
    if by == "analyst" and who.role != "analyst":
        raise NotAllowed("Only an analyst may do this.")
    if by == "staff" and who.role not in ("analyst", "auditor"):
        raise NotAllowed("This is for analysts and auditors only.")


def require_state(campaign: Campaign, *states: CampaignState, to: str) -> None:
    """Refuse to do something unless the campaign is in one of these states."""
    if campaign.state not in states:
        answer = _ANSWERS[campaign.state]
        if campaign.settings.server.single_visit:
            answer = answer.removesuffix(" and is collecting data")
        raise Conflict(f"It is not possible to {to}: the campaign {answer}.")


def require_opened(campaign: Campaign) -> None:
    """A participant's link leads nowhere before the campaign opens."""
    if campaign.opened_at is None:
        raise Conflict("This campaign has not opened yet.")


def require_bids_taken(campaign: Campaign, now: datetime) -> None:
    """Refuse a bid or a decline that comes too early or too late."""
    require_state(campaign, CampaignState.BIDDING, to="answer")
    deadline = campaign.settings.server.bid_by
    if deadline is not None and now >= deadline:
        raise Conflict("It is not possible to answer: the deadline for bids has passed.")


def require_deliveries_taken(campaign: Campaign, now: datetime) -> None:
    """Refuse a delivery that comes too early or too late."""
    require_state(campaign, CampaignState.DELIVERING, to="deliver")
    deadline = campaign.settings.server.deliver_by
    if deadline is not None and now >= deadline:
        raise Conflict("It is not possible to deliver: the deadline for data has passed.")


def answers_expired(campaign: Campaign, now: datetime) -> bool:
    """Whether answers that came with prices may no longer be kept, since nothing was decided in time."""
    deadline = campaign.settings.server.deliver_by
    return campaign.settings.server.single_visit and deadline is not None and now >= deadline


def require_answers_kept(campaign: Campaign, now: datetime) -> None:
    """Refuse a decision about answers that had to be destroyed by now."""
    if answers_expired(campaign, now):
        raise Conflict("It is not possible to close bidding: the deadline has passed, and answers are destroyed.")


def require_may_answer(participant: Participant) -> None:
    """Refuse a bid from somebody who was excluded, declined or withdrew."""
    if participant.state is ParticipantState.EXCLUDED:
        raise Conflict("It is not possible to answer: this campaign would exceed the limit on what you may give up.")
    if participant.state is ParticipantState.DECLINED:
        raise Conflict("It is not possible to answer: you declined to take part, and that stands.")
    if participant.state is ParticipantState.WITHDRAWN:
        raise Conflict("It is not possible to answer: you withdrew, and that stands.")


def must_agree(campaign: Campaign) -> bool:
    """Whether a bid needs an agreement: where the analyst states a consent. The pages always ask for one."""
    return campaign.settings.server.consent != Consent()


def require_agreement(campaign: Campaign, participant: Participant) -> None:
    """Refuse a bid from somebody who has not agreed to what the campaign states."""
    if must_agree(campaign) and participant.agreed_at is None:
        raise Conflict("It is not possible to bid yet: read what this campaign states, and agree to it first.")


def require_may_deliver(participant: Participant) -> None:
    """Refuse a delivery from somebody from whom nothing is bought."""
    if participant.state is ParticipantState.WITHDRAWN:
        raise Conflict("It is not possible to deliver: you withdrew, and that stands.")
    if participant.state not in (ParticipantState.PROMISED, ParticipantState.DELIVERED):
        raise Conflict("It is not possible to deliver: nothing is bought from you, so there is nothing to deliver.")


def require_may_withdraw(campaign: Campaign, participant: Participant) -> None:
    """Refuse a withdrawal that comes too late, or from somebody who gave nothing."""
    require_state(
        campaign, CampaignState.BIDDING, CampaignState.ALLOCATING, CampaignState.DELIVERING, to="withdraw any more"
    )
    # a moment only, in which a bid may be in the decision or not
    if campaign.state is CampaignState.ALLOCATING:
        raise Conflict("It is not possible to withdraw while the decision is being made: ask again in a moment.")
    if participant.state not in (
        ParticipantState.BID,
        ParticipantState.PROMISED,
        ParticipantState.DELIVERED,
    ):
        raise Conflict("It is not possible to withdraw: you have given nothing that could be taken back.")


# -- what a person sends -----------------------------------------------------------------------------------------------


def is_number(value: object) -> bool:
    """Whether something is a number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def finite(value: object) -> float | None:
    """A person's number as a double; None for what is none, or none that is finite. Nothing of it is shown."""
    try:
        found = float(value) + 0.0 if is_number(value) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
