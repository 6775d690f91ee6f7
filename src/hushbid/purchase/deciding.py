"""What ``run``, ``price`` and ``demo`` have in common: from reports to decisions in whole minor units of a currency."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushbid import wording
from hushbid.disclosure import Release
from hushbid.durable import Write
from hushbid.errors import MarketError
from hushbid.mechanism import Market, Outcome, Simulation
from hushbid.money import Currency, Money
from hushbid.purchase.people import People, rows_of
from hushbid.record import Record
from hushbid.tables import Column
from hushbid.wording import at_most

_SIMULATED_REPORTS = 2_000_000
_FORECAST_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Purchase:
    """Decisions, and the money they come to."""

    people: People
    """Who reported."""

    outcome: Outcome
    """What the market decided, in units of the currency."""

    currency: Currency
    """What payments are made in."""

    money: Money
    """Everybody's payment in whole minor units, rounded in her favour, and what a misreport can gain."""

    @property
    def total(self) -> float:
        """All payments together, in units."""
        return self.money.total / self.currency.per_unit

    def columns(self) -> dict[str, Column]:
        """The table of decisions, one row per person in the order of the reports."""
        return {
            "id": self.people.id_column,
            "privacy_loss": self.outcome.privacy_loss,
            "weight": self.outcome.weights,
            "payment_minor": self.money.payments,
            "currency": [self.currency.code] * len(self.people),
        }

    def facts(self) -> dict[str, Any]:
        """What was decided, without anything that belongs to one person."""
        return self.outcome.figures().facts(
            dropped=self.people.dropped,
            currency=self.currency,
            total_minor=self.money.total,
            paying=int((self.money.payments < 0).sum()),
            incentive_error=self.money.incentive_error,
        )

    def text(self) -> str:
        """What was decided, in sentences."""
        return decided_text(self.facts(), self.currency)


def decided_text(facts: Mapping[str, Any], currency: Currency) -> str:
    """What was decided, in sentences."""
    count, bought = facts["people"], facts["bought_from"]
    lines = []
    if facts["dropped_rows"]:
        rows = "1 row" if facts["dropped_rows"] == 1 else f"{facts['dropped_rows']:,} rows"
        lines.append(f"Left out because they cannot be priced: {rows}.")
    if bought == 0:
        lines.append(
            f"Nothing was bought: none of {count:,} people reported within the prior's support. Nobody is paid."
        )
        return "\n".join(lines)
    lines += [
        f"Bought from {bought:,} of {count:,} people ({facts['setting']} setting); nobody loses more than ε ="
        f" {facts['largest_privacy_loss']:g}.",
        f"{_paid(facts['total_payment_minor'], currency)} in all, rounded in their favour; no misreport gains more than"
        f" {at_most(facts['incentive_error']):g}.",
        f"Expected standard error of the estimate: {facts['standard_error']:.4g}.",
    ]
    if facts["people_who_pay"]:
        lines.append(
            f"{wording.people(facts['people_who_pay'])} owe money: they value the estimate more than their data cost"
            " them."
        )
    if facts["cap_cost"] > 0.0:
        lines.append(
            f"The cap on privacy loss costs {currency.text_of(facts['cap_cost'])} against the optimum without it."
        )
    if math.isinf(facts["largest_privacy_loss"]):
        lines.append("Somebody named no price and would lose all privacy: set max_privacy_loss.")
    return "\n".join(lines)


def _paid(minor: int, currency: Currency) -> str:
    return f"They are paid {currency.text(minor)}" if minor >= 0 else f"On balance people pay {currency.text(-minor)}"


def decide(people: People, market: Market, currency: Currency) -> Purchase:
    """Run the market on people's reports and round its payments."""
    with rows_of(people.source):
        outcome = market.acquire(people.reports, tie_key=people.tie_keys(market))
    money = Money.of(outcome.payments, outcome.incentive_error, currency=currency.code, decimals=currency.decimals)
    return Purchase(people=people, outcome=outcome, currency=currency, money=money)


def record_of(
    purchase: Purchase,
    origin: Mapping[str, Any],
    release: Release | None,
    notes: list[str],
    stamps: Sequence[str] = (),
) -> Record:
    """The record of a purchase. Safeguards that were overridden are stamped into it."""
    stamps = list(stamps)
    if origin.get("overlap"):
        stamps.append(f"prior fitted on participants: {origin['overlap']} of those who report were in the pilot")
    outcome = purchase.outcome
    if release is not None and np.isinf(outcome.privacy_loss).any():
        stamps.append("infinite privacy loss accepted")
    return Record.of(
        outcome,
        release,
        ids=purchase.people.ids,
        groups=purchase.people.groups,
        currency=purchase.currency.code,
        decimals=purchase.currency.decimals,
        stamps=stamps,
        notes=[f"prior: {json.dumps(dict(origin), sort_keys=True)}", *notes],
    )


def record_writer(record: Record) -> Write:
    """A function that writes a record to an open file."""
    return lambda file: file.write(record.to_bytes())


def refuse_above_ceiling(purchase: Purchase, ceiling: float | None) -> None:
    """Refuse to spend more than allowed, and say what such a campaign costs: expected, 95 % and at worst."""
    if ceiling is None or purchase.total <= ceiling:
        return
    currency = purchase.currency
    people = len(purchase.people)
    times = max(20, min(200, _SIMULATED_REPORTS // people))
    found = roughly(purchase.outcome.market).simulate(people, times, rng=np.random.default_rng(1))
    usual = Spending.of(found).text(currency)
    raise MarketError(
        f"The payments come to {currency.text(purchase.money.total)}, above the ceiling of {currency.text_of(ceiling)}:"
        f" nothing was bought and nothing was written. {usual}"
    )


def roughly(market: Market) -> Market:
    """A copy of the market with payments to three digits, enough for a forecast and much quicker."""
    return replace(market, tolerance=max(market.tolerance, _FORECAST_TOLERANCE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a campaign of so many people costs, before anybody has reported; from simulated campaigns."""

    expected: float
    """The mean total payment."""

    expected_error: float
    """Half the width of a 95 % confidence interval of the mean."""

    in_95_of_100: float
    """The total that 95 of 100 campaigns do not exceed."""

    at_worst: float
    """The total that no reports can exceed; infinite under a prior without an upper end."""

    repetitions: int
    """How many campaigns were simulated."""

    @classmethod
    def of(cls, found: Simulation) -> "Spending":
        """From simulated campaigns."""
        expected = found.expected("total_payment")
        return cls(
            expected=expected.value,
            expected_error=(expected.high - expected.low) / 2.0,
            in_95_of_100=found.quantile("total_payment").value,
            at_worst=found.worst_payment_bound,
            repetitions=found.repetitions,
        )

    def text(self, currency: Currency) -> str:
        """In a sentence."""
        worst = (
            f"{currency.text_of(self.at_worst)} at the very worst"
            if math.isfinite(self.at_worst)
            else "without any limit at the very worst, because the prior has no upper end"
        )
        return (
            f"If the prior is right, such a campaign costs {currency.text_of(self.expected)} on average"
            f" (± {currency.text_of(self.expected_error)}), up to {currency.text_of(self.in_95_of_100)} in 95 of 100"
            f" cases, and {worst} ({self.repetitions} simulated campaigns, before rounding up to whole coins)."
        )
