"""What was paid, divided into compensation and rent, why no truthful purchase costs less, and what became of it.

Amounts are decided before anybody delivers, and only who delivers is paid. What is owed after drop-outs would tell, by
subtraction, what a few missing people were to be paid, and what was paid so far, what those few were who were paid
first. So amounts that a few people are behind are withheld, and of what was paid only whether it is all.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hushbid.allocation import Goal
from hushbid.allocation.problem import relative_gap
from hushbid.common.arrays import rounded_sum
from hushbid.common.money import Currency
from hushbid.languages import noted
from hushbid.mechanism import Outcome
from hushbid.report.language import lowered, money, percent, say
from hushbid.report.material import Material, Settlement
from hushbid.report.suppression import few_missing, too_few
from hushbid.report.svg import Chart, Part, Table, divided_bar

ANCHOR, TITLE = "cost", noted("What it cost, and why")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledFacts:
    """How deliveries and payments stand, as far as it may be shown."""

    delivered: int | None
    """How many delivered; None as long as people deliver, and if few of those bought from did, or few did not."""

    payments: float | None
    """What they are owed; None where ``delivered`` is."""

    fees: float | None
    """What people are owed for taking part; None if it would tell how many of a few withdrew."""

    paid: Literal["nothing", "a part", "all"]
    """Which part of what is owed has been marked as paid."""

    over: bool
    """Whether nobody can deliver any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostParts:
    """What a payment consists of, and what the purchase minimises."""

    total: float
    """The sum of all payments, before they are rounded to coins."""

    compensation: float
    """What the privacy given up cost the people themselves, at the prices they named."""

    rent: float
    """What people gain because only they know their price."""

    error_term: float
    """What people are paid, or pay, because they too value the estimate; 0 if user weights are 0."""

    rounding: float | None
    """What rounding to coins added; None if unknown."""

    total_loss: float
    """The sum of all privacy losses."""

    goal: Goal
    """What the buyer stated."""

    objective: float
    """What the purchase minimises, in the sense of its goal: money, or a squared error for a budget."""

    lower_bound: float
    """No truthful purchase has a lower objective."""

    @property
    def gap(self) -> float:
        """How far the objective is above its bound, as a share of the bound."""
        return relative_gap(self.objective, self.lower_bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFacts:
    """What is paid, and for what."""

    paid: float | None
    """What was decided to be paid in all, if everybody delivers; None if too few people are behind it."""

    parts: CostParts | None
    """What it is for; None if too few people are behind it."""

    payers: int
    """How many people pay instead of being paid."""

    incentive_error: float
    """How far a payment may be from the exact one."""

    spending_limit: float | None
    """What the campaign was allowed to spend."""

    settled: SettledFacts | None = None
    """What became of it: who delivered, what is owed; None where nobody keeps that account."""

    @property
    def due(self) -> float | None:
        """What is owed if that is known, else what was decided; with fees. None if few people are behind either."""
        if self.settled is None or self.paid is None:
            return self.paid
        if self.settled.fees is None:
            return None
        return (self.paid if self.settled.payments is None else self.settled.payments) + self.settled.fees

    def due_name(self, *, delivered: bool) -> str:
        """What `due` is, in a word; ``delivered``: whether everybody did."""
        if self.settled is None:
            return say("Paid") if delivered else say("Decided")
        if self.settled.payments is None:
            return say("Decided")
        return say("Paid") if self.settled.paid == "all" else say("Owed")


def facts_of(material: Material) -> CostFacts:
    """What is paid, as far as enough people are behind it."""
    outcome, paid, few = material.outcome, material.money, too_few(material.fewest)
    total, settlement = outcome.total_payment, material.settlement
    rounding, incentive_error = None, outcome.incentive_error
    if paid is not None:
        rounding, incentive_error = max(paid.total / 10**paid.decimals - total, 0.0), paid.incentive_error
    return CostFacts(
        paid=None if few else total + (rounding or 0.0),
        parts=None if few else _parts(outcome, rounding),
        payers=int(np.count_nonzero(outcome.payments < 0.0)),
        incentive_error=incentive_error,
        spending_limit=material.spending_limit,
        settled=None if settlement is None else settled_facts(settlement, outcome.active),
    )


def _parts(outcome: Outcome, rounding: float | None) -> CostParts:
    paying = (outcome.privacy_loss > 0.0) & (outcome.bids > 0.0)
    compensation = rounded_sum(outcome.bids[paying] * outcome.privacy_loss[paying])
    rent, total = rounded_sum(outcome.information_rent), outcome.total_payment
    weighted = bool(np.any(np.asarray(outcome.market.user_weight) > 0)) and outcome.active > 0
    return CostParts(
        total=total,
        compensation=compensation,
        rent=rent,
        error_term=total - compensation - rent if weighted else 0.0,
        rounding=rounding,
        total_loss=float(outcome.privacy_loss.sum()),
        goal=outcome.market.stated_goal,
        objective=outcome.objective,
        lower_bound=outcome.lower_bound,
    )


def settled_facts(account: Settlement, bought_from: int) -> SettledFacts:
    """What may be shown of an account."""
    missing = bought_from - account.delivered
    few = too_few(account.delivered) or (account.delivered > 0 and few_missing(missing))
    withheld = few or not account.over
    owed = account.payments + account.fees
    return SettledFacts(
        delivered=None if withheld else account.delivered,
        payments=None if withheld else account.payments,
        fees=None if few_missing(account.left) else account.fees,
        paid="all" if account.paid >= owed else "a part" if account.paid > 0.0 else "nothing",
        over=account.over,
    )


def purposes(parts: CostParts, currency: Currency | None) -> list[Part]:
    """What is paid for what; the first two always."""
    amounts = [
        (say("Compensation for privacy given up"), parts.compensation, "s1"),
        (say("Information rent"), parts.rent, "s2"),
        (say("Because people value the estimate too"), parts.error_term, "s4"),
        (say("Rounding up to whole coins"), parts.rounding or 0.0, "s3"),
    ]
    return [
        Part(name, amount, colour, money(amount, currency))
        for place, (name, amount, colour) in enumerate(amounts)
        if amount or place < 2
    ]


def chart(facts: CostFacts, parts: list[Part], currency: Currency | None, *, delivered: bool) -> Chart:
    """The payments, divided by what they are for."""
    listed = ", ".join(f"{lowered(part.name)} {part.words}" for part in parts)
    amount = money(facts.paid or 0.0, currency)
    return Chart(
        name="cost",
        title=say("{amount} in all, and what it is for", amount=amount)
        if delivered
        else say("{amount} decided, and what it is for", amount=amount),
        description=say("A bar divided into: {listed}.", listed=listed),
        draw=lambda width: divided_bar(parts, width),
    )


def prices(facts: CostFacts, currency: Currency | None, bought_from: int, *, delivered: bool) -> Table:
    """What is paid per person and per unit of privacy."""
    assert facts.parts is not None
    parts, paid = facts.parts, facts.paid or 0.0
    finite = 0.0 < parts.total_loss < math.inf
    rows = [
        (say("In all") if delivered else say("Decided in all"), money(paid, currency)),
        (say("Per person bought from"), money(paid / bought_from, currency)),
        (say("Per unit of ε, everything included"), money(paid / parts.total_loss, currency) if finite else "—"),
        (say("… of which people asked"), money(parts.compensation / parts.total_loss, currency) if finite else "—"),
        (
            say("Rent as a share of compensation and rent"),
            percent(parts.rent / ((parts.compensation + parts.rent) or 1.0)),
        ),
    ]
    if facts.spending_limit is not None:
        rows.insert(1, (say("Spending limit"), money(facts.spending_limit, currency)))
    return Table(head=(say("Prices"), say("Amount")), rows=tuple(rows))
