"""Who delivered and what is owed, as far as a report may tell: by whoever keeps that account, such as the server.

Amounts are decided before anybody delivers, and only who delivers is paid. What is owed after drop-outs would tell, by
subtraction, what a few missing people were to be paid, and what was paid so far, what those few were who were paid
first. So amounts that a few people are behind are withheld, and of what was paid only whether it is all.
"""

from dataclasses import dataclass
from typing import Literal

from hushbid.report.suppression import SMALLEST_CELL, SMALLEST_CHART


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What a server's account says of a campaign. In units of the currency; confidential."""

    delivered: int
    """How many have delivered what was bought from them."""

    payments: float
    """What those are owed for it, paid or not."""

    fees: float
    """What people are owed for taking part, paid or not."""

    paid: float
    """What has been marked as paid, of both."""

    over: bool
    """Whether nobody can deliver any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledFacts:
    """How deliveries and payments stand, as far as it may be shown."""

    delivered: int | None
    """How many delivered; None as long as people deliver, and if few of those bought from did, or few did not."""

    payments: float | None
    """What they are owed; None where ``delivered`` is."""

    fees: float
    """What people are owed for taking part."""

    paid: Literal["nothing", "a part", "all"]
    """Which part of what is owed has been marked as paid."""

    over: bool
    """Whether nobody can deliver any more."""


def settled_facts(account: Settlement, bought_from: int) -> SettledFacts:
    """What may be shown of an account."""
    missing = bought_from - account.delivered
    few = account.delivered > 0 and (0 < missing < SMALLEST_CHART or account.delivered < SMALLEST_CELL)
    withheld = few or not account.over
    owed = account.payments + account.fees
    return SettledFacts(
        delivered=None if withheld else account.delivered,
        payments=None if withheld else account.payments,
        fees=account.fees,
        paid="all" if account.paid >= owed else "a part" if account.paid > 0.0 else "nothing",
        over=account.over,
    )
