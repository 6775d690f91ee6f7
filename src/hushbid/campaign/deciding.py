"""From bids to decisions, in whole minor units of a currency: what memory and engines both give."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hushbid.allocation import Budget
from hushbid.campaign.people import Delivered, People, Reading, read_people, rows_of
from hushbid.campaign.telling import decision_text, forecast, refuse_above_spending_limit
from hushbid.campaign.terms import Campaign
from hushbid.common.money import Currency, Money, in_units
from hushbid.common.tables import Raw
from hushbid.errors import InputError
from hushbid.mechanism import Figures, Market, Outcome
from hushbid.mechanism.survey import QuestionError

Step = Callable[[str], object]
"""Called with what is done next."""

LARGEST_HERE = 1_000_000
"""Of more people an engine writes decisions and record itself, and there is no report."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Decision:
    """What was decided, and the money it comes to."""

    market: Market
    """As it was before anyone bid."""

    figures: Figures
    """About everybody together."""

    dropped: int
    """How many rows were left out because they cannot be priced."""

    currency: Currency
    total_minor: int
    """All payments together, in minor units."""

    paying: int
    """How many people owe money."""

    incentive_error: float
    """How far a payment may be from the exact one, in units of the currency, rounding included."""

    origin: Mapping[str, Any]
    """Where the prior comes from."""

    passes: int | None = None
    """How often an engine read the rows to decide; None in memory."""

    flags: tuple[str, ...] = ()
    """What is said of the decisions wherever they are shown."""

    reading_notes: tuple[str, ...] = ()
    """Sentences about how the bids were read, where that was a choice: their encoding, decimal commas."""

    question_errors: Callable[[], Sequence[QuestionError]]
    """The errors of a survey's questions."""

    def facts(self) -> dict[str, Any]:
        """Return figures for programs, none of which belongs to one person."""
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
        if self.flags:
            facts |= {"flags": list(self.flags)}
        if self.market.survey is not None:
            facts |= {"questions": question_facts(self.question_errors())}
            for name in ("standard_error", "worst_standard_error"):  # of no question, but of the one number bought as
                del facts[name]
        return facts if self.passes is None else {**facts, "passes": self.passes}

    def text(self) -> str:
        """Return what was decided in sentences."""
        return "\n".join([*self.reading_notes, decision_text(self.facts(), self.currency, self.market)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DecisionInMemory(Decision):
    """What was decided about each person, too."""

    people: People
    outcome: Outcome
    """What the market decided, in units of the currency."""

    money: Money
    """Each payment in whole minor units, rounded in the person's favour, and how exact it is."""

    delivered: Delivered | None = None
    """The data, if an engine read them with the bids."""

    @classmethod
    def of(
        cls,
        people: People,
        outcome: Outcome,
        currency: Currency,
        origin: Mapping[str, Any],
        *,
        money: Money | None = None,
        **engine: Any,
    ) -> "DecisionInMemory":
        """Round an outcome's payments, unless their ``money`` is there, and sum up; ``engine`` are fields it knows."""
        if money is None:
            code, decimals = currency.code, currency.decimals
            money = Money.of(outcome.payments, outcome.incentive_error, currency=code, decimals=decimals)
        same = {"market": outcome.market, "figures": outcome.figures()}
        return cls(
            **{**same, **engine},
            dropped=people.dropped,
            currency=currency,
            total_minor=money.total,
            paying=int((money.payments < 0).sum()),
            incentive_error=money.incentive_error,
            origin=origin,
            flags=tuple(outcome.flags),
            reading_notes=people.notes,
            question_errors=outcome.question_errors,
            people=people,
            outcome=outcome,
            money=money,
        )

    def columns(self) -> dict[str, Raw]:
        """Return the table of decisions, one row per person in the order of the bids."""
        return {
            self.people.id_name: self.people.id_column,
            "privacy_loss": self.outcome.privacy_loss,
            "weight": self.outcome.weights,
            "payment_minor": self.money.payments,
            "payment": in_units(self.money.payments, self.money.decimals),
            "currency": [self.money.currency] * len(self.people),
        }


def question_facts(errors: Sequence[QuestionError]) -> list[dict[str, Any]]:
    """Return how accurate each question of a survey is expected to be."""
    return [
        {
            "name": one.question.name,
            "kind": one.question.kind,
            "standard_error": one.standard_error,
            "worst_standard_error": one.worst_standard_error,
        }
        for one in errors
    ]


def decide(
    campaign: Campaign, reading: Reading, step: Step, *, ids_needed: bool = True, limited: bool = True
) -> DecisionInMemory:
    """Read everybody into memory, run the market on the bids, and round its payments.

    Unless ``limited``, payments above the spending limit are not refused.
    """
    people, origin = read_everybody(campaign, reading, step, ids_needed=ids_needed)
    step("deciding")
    decision = decide_about(people, campaign, origin)
    if limited:
        refuse_above_spending_limit(
            decision.total_minor, campaign, lambda: forecast([(decision.market, len(people))], campaign.currency)
        )
    return decision


def read_everybody(
    campaign: Campaign, reading: Reading, step: Step, *, ids_needed: bool = True
) -> tuple[People, Mapping[str, Any]]:
    """Read everybody into memory, and say where the prior comes from; people of its pilot are refused."""
    step("reading the bids")
    people = read_people(
        campaign.bids.file,
        campaign.bids,
        stratum=campaign.stratum,
        priors=campaign.prior.priors,
        reading=reading,
        ids_needed=ids_needed,
    )
    return people, campaign.prior.origin(people.ids, accepted=campaign.spec.market.accept_pilot_overlap)


_WRITTEN = frozenset({"privacy_loss", "weight", "payment_minor", "payment", "currency", "delivered", "synthetic"})
"""What the columns of results are called."""


def decide_about(people: People, campaign: Campaign, origin: Mapping[str, Any], **engine: Any) -> DecisionInMemory:
    """Run the market on bids, and round its payments; ``engine`` are fields that an engine knows better."""
    if people.id_name in _WRITTEN:
        message = f"{people.source}: the column of ids must not be called {people.id_name!r}, as one of the results is."
        raise InputError(message, field="id")
    with rows_of(people.source, people.lines):
        market = campaign.market_for(people)
        outcome = market.acquire(
            people.bids,
            limits=people.limits,
            tie_key=people.tie_keys(market),
            accept_rounding=campaign.spec.market.accept_rounding,
        )
    return DecisionInMemory.of(people, outcome, campaign.currency, origin, **engine)


def prior_note(origin: Mapping[str, Any]) -> str:
    """Return how a record notes where the prior comes from."""
    return f"prior: {json.dumps(dict(origin), sort_keys=True)}"
