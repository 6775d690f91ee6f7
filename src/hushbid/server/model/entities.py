"""Users, campaigns and participants as they are stored, for the use cases; their fields are the tables' columns."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from hushbid.errors import Conflict
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.states import CampaignState, ParticipantState


class DraftIncomplete(Conflict):
    """A draft whose fields are not all filled in, or not as they must be."""

    def __init__(self, campaign: str) -> None:
        super().__init__("This draft is not complete: fill in what is missing first.", field="draft")
        self.campaign = campaign


def complete(campaign: str, settings: CampaignSettings | None) -> CampaignSettings:
    """Return a campaign's settings; refused for a draft that has none yet."""
    if settings is None:
        raise DraftIncomplete(campaign)
    return settings


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class User:
    """A person who logs in."""

    id: str
    name: str
    role: Literal["analyst", "auditor"]
    password: str
    """Its hash."""

    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """All that is stored of a campaign but its people, events, record and release."""

    id: str
    state: CampaignState
    stated: CampaignSettings | None
    """Its settings; None as long as a draft is not complete."""

    typed: str | None
    """What was typed into a draft's form, as JSON; None if the draft was made otherwise, or has opened."""

    typed_at: datetime | None
    saved_at: datetime | None
    """When a button of the form was pressed last; what its script sent before that comes too late."""

    created_at: datetime
    created_by: str
    """The analyst's id."""

    opened_at: datetime | None
    allocated_at: datetime | None
    released_at: datetime | None
    closed_at: datetime | None
    key_destroyed_at: datetime | None
    payouts_destroyed_at: datetime | None
    """When the key to where people are paid was destroyed."""

    spending: str | None
    """What was shown before it opened, as JSON."""

    menus: str | None
    """What a person can expect as a function of her bid, by group, as JSON."""

    total_payment: int | None
    """All payments that were fixed; minor units."""

    reason: str | None
    """Why it ended without an estimate."""

    root: str | None
    tree_size: int | None
    root_event: int | None
    """The number of the event that names the root."""

    @property
    def settings(self) -> CampaignSettings:
        """The settings; a draft that is not complete is refused."""
        return complete(self.id, self.stated)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Participant:
    """All that is stored of one person's part in a campaign."""

    id: str
    """Her pseudonym."""

    campaign_id: str
    number: int
    """In the order of invitation."""

    label: str
    """How the analyst calls her."""

    person_id: str | None
    """Who she is across campaigns; None if she was invited without an external id."""

    group_name: str | None
    stratum: str | None
    """In which stratum the analyst put her; None in a campaign without strata."""

    state: ParticipantState
    salt: bytes
    bid: float | None
    loss_limit: float | None
    """The largest loss that she accepts, if she stated one beside her bid."""

    bid_at: datetime | None
    """When she last bid; stays when a withdrawn bid is erased."""

    promised: float | None
    payment: int | None
    delivery: bytes | None
    """Sealed by the vault."""

    delivery_nonce: str | None
    """A hash of the random name that her client gave to the delivery."""

    delivered_at: datetime | None
    delivered_loss: float | None
    paid: int
    paid_at: datetime | None
    renewed: tuple[str, ...]
    """When the analyst renewed her link while the campaign was not over, as the log writes times."""

    own_links: tuple[str, ...]
    """Likewise: when a link for another device was made with a secret of hers."""

    own_links_used: tuple[str, ...]
    """Likewise: when such a link was used."""

    agreed_at: str | None
    """When she last agreed to what she was shown, as the log writes it; stays when she withdraws."""

    agreed_version: str | None
    """The hash of what that was (`hushbid.server.model.agreement`)."""

    agreed_language: str | None
    """In which language."""

    def __repr__(self) -> str:  # a bid tells a price for privacy: not for a log
        return f"Participant(id={self.id!r}, state={self.state.value!r})"
