"""From bids to decisions, in whole minor units of a currency: what memory and engines both give."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hushbid.allocation import Budget, HardBudget
from hushbid.campaign.people import People, Reading, read_people, rows_of
from hushbid.campaign.spending import forecast, refuse_above_spending_limit
from hushbid.campaign.terms import Campaign
from hushbid.common import numbers
from hushbid.common.money import Currency, Money, in_units, money_at_most
from hushbid.common.numbers import figure
from hushbid.common.tables import Raw
from hushbid.disclosure import Release
from hushbid.errors import InputError
from hushbid.mechanism import Figures, Market, Outcome
from hushbid.mechanism.survey import QuestionError
from hushbid.questions import Choice
from hushbid.record import Record

Step = Callable[[str], object]
"""Told what is done next."""

LARGEST_HERE = 1_000_000
"""Above so many people an engine does not take everybody to one place: it writes decisions and record itself, and
there is no report."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Everybody:
    """What was decided about each person."""

    people: People
    """Who bid."""

    outcome: Outcome
    """What the market decided, in units of the currency."""

    money: Money
    """Everybody's payment in whole minor units, rounded in her favour, and what a misreport can gain."""

    from_engine: bool = False
    """Whether an engine read the people."""

    @classmethod
    def of(cls, people: People, outcome: Outcome, currency: Currency, *, from_engine: bool = False) -> "Everybody":
        """Round an outcome's payments."""
        money = Money.of(outcome.payments, outcome.incentive_error, currency=currency.code, decimals=currency.decimals)
        return cls(people=people, outcome=outcome, money=money, from_engine=from_engine)

    @property
    def paying(self) -> int:
        """How many people owe money."""
        return int((self.money.payments < 0).sum())

    def columns(self) -> dict[str, Raw]:
        """The table of decisions, one row per person in the order of the bids."""
        return {
            self.people.id_name: self.people.id_column,
            "privacy_loss": self.outcome.privacy_loss,
            "weight": self.outcome.weights,
            "payment_minor": self.money.payments,
            "payment": in_units(self.money.payments, self.money.decimals),
            "currency": [self.money.currency] * len(self.people),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Decided:
    """What was decided, and the money it comes to."""

    market: Market
    """As it was before anybody bid."""

    figures: Figures
    """About everybody together."""

    dropped: int
    """How many rows were left out because they cannot be priced."""

    currency: Currency
    """What payments are made in."""

    total_minor: int
    """All payments together, in minor units."""

    paying: int
    """How many people owe money."""

    incentive_error: float
    """No misreport can gain more than this, in units of the currency, rounding included."""

    origin: Mapping[str, Any]
    """Where the prior comes from."""

    everybody: Everybody | None
    """What was decided about each person; None where that stays with an engine."""

    question_errors: tuple[QuestionError, ...] | None = None
    """The errors of a survey's questions; None where everybody's outcome tells them."""

    passes: int | None = None
    """How often an engine read the rows to decide."""

    @classmethod
    def of(cls, everybody: Everybody, currency: Currency, origin: Mapping[str, Any]) -> "Decided":
        """From what was decided about each person."""
        return cls(
            market=everybody.outcome.market,
            figures=everybody.outcome.figures(),
            dropped=everybody.people.dropped,
            currency=currency,
            total_minor=everybody.money.total,
            paying=everybody.paying,
            incentive_error=everybody.money.incentive_error,
            origin=origin,
            everybody=everybody,
        )

    def facts(self) -> dict[str, Any]:
        """For programs; nothing in it belongs to one person."""
        facts = self.figures.facts(
            dropped=self.dropped,
            currency=self.currency,
            total_minor=self.total_minor,
            paying=self.paying,
            incentive_error=self.incentive_error,
        )
        if isinstance(self.market.goal, Budget):
            facts |= {"rounding_reserve": self.market.goal.reserve}
            if self.market.goal.planned is not None:
                facts |= {"planned_price": asdict(self.market.goal.planned)}
        if self.everybody is not None and self.everybody.outcome.flags:
            facts |= {"flags": list(self.everybody.outcome.flags)}
        if self.market.survey is not None:
            everybody = self.everybody
            errors = (self.question_errors or ()) if everybody is None else everybody.outcome.question_errors()
            facts |= {"questions": [_question_facts(one) for one in errors]}
            for name in ("standard_error", "worst_standard_error"):  # of no question, but of the one number bought as
                del facts[name]
        return facts if self.passes is None else {**facts, "passes": self.passes}

    def text(self) -> str:
        """For people."""
        told = decided_text(self.facts(), self.currency, self.market).replace(numbers.NBSP, " ")
        return "\n".join([*self.reading_notes, told])

    @property
    def reading_notes(self) -> tuple[str, ...]:
        """Sentences about how the bids were read, where that was a choice: their encoding, decimal commas."""
        return () if self.everybody is None else self.everybody.people.notes


def decide(campaign: Campaign, reading: Reading, step: Step, *, ids_needed: bool = True) -> Decided:
    """Read everybody into memory, run the market on the bids, and round its payments."""
    people, origin = read_everybody(campaign, reading, step, ids_needed=ids_needed)
    step("deciding")
    market, everybody = decide_about(people, campaign)
    refuse_above_spending_limit(
        everybody.money.total,
        campaign.currency,
        campaign.spending_limit,
        lambda: forecast([(market, len(people))], campaign.currency),
    )
    return Decided.of(everybody, campaign.currency, origin)


def read_everybody(
    campaign: Campaign, reading: Reading, step: Step, *, ids_needed: bool = True
) -> tuple[People, Mapping[str, Any]]:
    """Read everybody into memory, and say where the prior comes from; people of its pilot are refused."""
    step("reading the bids")
    people = read_people(
        campaign.bids.file,
        id_column=campaign.bids.id,
        bid=campaign.bids.bid,
        group=campaign.bids.group,
        stratum=campaign.stratum,
        limit=campaign.bids.limit,
        priors=campaign.prior.priors,
        reading=reading,
        ids_needed=ids_needed,
    )
    return people, campaign.prior.origin(people.ids, accepted=campaign.accept_pilot_overlap)


_WRITTEN = frozenset({"privacy_loss", "weight", "payment_minor", "payment", "currency", "delivered", "synthetic"})
"""What the columns of results are called."""


def decide_about(people: People, campaign: Campaign, *, from_engine: bool = False) -> tuple[Market, Everybody]:
    """Run the market on bids, and round its payments."""
    if people.id_name in _WRITTEN:
        told = f"{people.source}: the column of ids must not be called {people.id_name!r}, as one of the results is."
        raise InputError(told, field="id")
    with rows_of(people.source, people.lines):
        market = campaign.market_for(people)
        outcome = market.acquire(
            people.bids,
            limits=people.limits,
            tie_key=people.tie_keys(market),
            accept_rounding=campaign.accept_rounding,
        )
    return outcome.market, Everybody.of(people, outcome, campaign.currency, from_engine=from_engine)


def record_of(
    everybody: Everybody,
    origin: Mapping[str, Any],
    release: Release | None,
    *,
    stamps: Sequence[str],
    notes: Sequence[str] = (),
) -> Record:
    """The record of a purchase, with stamps that tell of safeguards that were overridden."""
    return Record.of(
        everybody.outcome,
        release,
        ids=everybody.people.ids,
        groups=everybody.people.groups,
        money=everybody.money,
        stamps=stamps,
        notes=[prior_note(origin), *notes],
    )


def prior_note(origin: Mapping[str, Any]) -> str:
    """Return how a record notes where the prior comes from."""
    return f"prior: {json.dumps(dict(origin), sort_keys=True)}"


def decided_text(facts: Mapping[str, Any], currency: Currency, market: Market) -> str:
    """What was decided, in sentences."""
    count, bought = facts["people"], facts["bought_from"]
    lines = []
    if facts["dropped_rows"]:
        rows = "1 row" if facts["dropped_rows"] == 1 else f"{facts['dropped_rows']:,} rows"
        lines.append(f"Left out because they cannot be priced: {rows}.")
    if bought == 0:
        where = "low enough" if isinstance(market.goal, HardBudget) else "within the prior's support"
        lines.append(f"Nothing was bought: none of {count:,} people bid {where}. Nobody is paid.")
        return "\n".join(lines)
    lines += [
        f"Bought from {bought:,} of {count:,} people ({facts['setting']} setting); nobody loses more than ε ="
        f" {figure(facts['largest_privacy_loss'])}.",
        f"{_paid(facts['total_payment_minor'], currency)} in all, rounded in their favour; no misreport gains more than"
        f" {money_at_most(facts['incentive_error'], currency)}.",
        *_expected(facts),
        *_rounding(facts, currency),
        *(numbers.as_sentence(flag) for flag in facts.get("flags", ())),
    ]
    if facts["people_who_pay"]:
        lines.append(
            f"{numbers.people(facts['people_who_pay'])} owe money: they value the estimate more than their data cost"
            " them."
        )
    if facts["cap_cost"] > 0.0:
        lines.append(_cap_in_words(facts, currency, market))
    if math.isinf(facts["largest_privacy_loss"]):
        lines.append("Somebody named no price and would lose all privacy: set max_privacy_loss.")
    return "\n".join(lines)


def _question_facts(one: QuestionError) -> dict[str, Any]:
    """What is expected of one question."""
    errors = {"standard_error": one.standard_error, "worst_standard_error": one.worst_standard_error}
    return {"name": one.question.name, "kind": one.question.kind, **errors}


def _expected(facts: Mapping[str, Any]) -> list[str]:
    """How accurate the estimate is expected to be; of a survey, of every question; of strata, of each."""
    if "strata" in facts:
        return [
            f"{one['stratum']}, {one['bought_from']:,} of {one['people']:,} people: {line[0].lower()}{line[1:]}"
            for one in facts["strata"]
            for line in _expected(one)
        ]
    if "questions" not in facts:
        return [f"Expected standard error of the estimate: {figure(facts['standard_error'])}{_at_worst(facts)}."]
    return [
        f"Expected standard error of {one['name']}{', every share' * (one['kind'] == Choice.kind)}:"
        f" {figure(one['standard_error'])}{_at_worst(one)}."
        for one in facts["questions"]
    ]


def _rounding(facts: Mapping[str, Any], currency: Currency) -> list[str]:
    """What was kept of a budget for rounding."""
    if not facts.get("rounding_reserve"):
        return []
    return [f"{currency.text_of(facts['rounding_reserve'])} of the budget were kept for rounding payments up."]


def _cap_in_words(facts: Mapping[str, Any], currency: Currency, market: Market) -> str:
    """What caps and limits cost: money, or accuracy where the money is given."""
    what, it = ("People's limits on privacy loss cost", "them")
    if market.max_privacy_loss is not None:
        what, it = "The cap on privacy loss costs", "it"
    if market.stated_goal.costs_money:
        return f"{what} {currency.text_of(facts['cap_cost'])} against the optimum without {it}."
    without = math.sqrt(max(facts["worst_standard_error"] ** 2 - facts["cap_cost"], 0.0))
    related = " at worst" if market.max_correlation > 0.0 else ""
    return f"{what} accuracy: without, the standard error would be {figure(without)}{related}."


def _at_worst(facts: Mapping[str, Any]) -> str:
    """What a relation between price and datum could make of the error, if one is allowed for."""
    worst = facts["worst_standard_error"]
    return "" if worst == facts["standard_error"] else f", at worst {figure(worst)} if price and datum are related"


def _paid(minor: int, currency: Currency) -> str:
    return f"They are paid {currency.text(minor)}" if minor >= 0 else f"On balance people pay {currency.text(-minor)}"
