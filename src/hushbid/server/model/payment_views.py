"""What a person with a certain role gets to see of payments. Money is in minor units of the campaign's currency."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from hushbid.server.model.states import ParticipantState
from hushbid.server.model.views import View

Awaited = Literal["bid", "delivery", "payout", "payment"]
"""What somebody is awaited for: her price, her data, where to pay her; or her payment, for which the analyst is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRow(View):
    """One line of the payments export."""

    id: str
    label: str
    payment: int
    """Due for her data."""

    fee: int
    """Due for taking part."""

    paid: int
    """Already marked as paid, of both together."""

    due: int
    """Still to be paid."""

    currency: str
    decimals: int
    paid_at: datetime | None
    reference: str = ""
    """Of the payment: for a bank, always the same for the same person in the same campaign."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PaymentFile(View):
    """The payments as the payer takes them away: for an analyst's eyes only."""

    payout: Literal["none", "email", "iban", "panel"]
    """What people were asked."""

    rows: tuple[PaymentRow, ...]
    handles: dict[str, str]
    """Where to pay whoever is still owed something and said it, by pseudonym."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedRow(View):
    """Somebody who is awaited for something."""

    label: str
    id: str
    state: ParticipantState
    awaited: Awaited
    deadline: datetime | None
    """Until when; None if there is none."""

    due: int
    """What is to be paid to her now."""

    currency: str
    decimals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView(View):
    """What a campaign owes, and how that follows: promised - dropped - withdrawn - awaited = payments; with fees it is
    what is owed; owed + above = paid + due."""

    delivered: int
    """How many have delivered."""

    promised: int
    """All payments that were decided, as the record has them."""

    dropped: int
    """Of them, those to people who did not deliver before the release."""

    withdrawn: int
    """Of them, those to people who withdrew after the decision."""

    awaited: int
    """Of them, those to people who may still deliver."""

    payments: int
    """Of them, those to people who have delivered: what they are owed for their data."""

    fees: int
    """What people are owed for taking part."""

    owed: int
    """Payments and fees together, paid or not."""

    paid: int
    """Marked as paid, of both together."""

    above: int
    """Marked as paid and no longer owed, because people withdrew afterwards."""

    due: int
    """Still to be paid."""

    rounding: float
    """By how much rounding up to whole minor units raised what was promised, in minor units."""

    payouts_stated: int
    """How many to whom something is due have said where to pay them."""

    payouts_missing: int
    """How many have not, although the campaign asks."""

    payouts_end_at: datetime | None
    """When the key to where people are paid is destroyed; None before the campaign is over, and if nobody is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutView(View):
    """Where one person is to be paid, as she sees it."""

    payout: Literal["none", "email", "iban", "panel"]
    """What the campaign asks for."""

    shown: str | None
    """The last four characters of what is stored; None if nothing is."""

    stated_at: datetime | None
    may_state: bool
    """Whether she can say it, or say it anew: until she is marked as paid."""

    reference: str
    """Under which she is paid."""

    days: int
    """So long after the campaign is over it is kept."""

    ends_at: datetime | None
    """When its key is destroyed; None before the campaign is over."""

    destroyed_at: datetime | None
    """When it was."""
