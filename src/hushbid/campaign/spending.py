"""What a campaign costs before anybody has bid, and the spending limit above which nothing is bought."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushbid.allocation import Budget, Goal
from hushbid.campaign.terms import Campaign
from hushbid.common.money import Currency
from hushbid.errors import LimitExceeded
from hushbid.mechanism import Market, Simulation
from hushbid.mechanism.simulation import simulate

_SIMULATED_BIDS = 2_000_000
_FORECAST_TOLERANCE = 1e-3


def refuse_above_spending_limit(total_minor: int, campaign: Campaign, usual: Callable[[], str]) -> None:
    """Refuse to spend more than allowed, and say what is usual."""
    limit, currency = campaign.spec.money.spending_limit, campaign.currency
    if limit is not None and total_minor / currency.per_unit > limit:
        raise LimitExceeded(
            f"The payments come to {currency.text(total_minor)}, above the spending limit of {currency.text_of(limit)}:"
            f" nothing was bought and nothing was written. {usual()}"
        )


def forecast(markets: Sequence[tuple[Market, int]], currency: Currency) -> str:
    """Say what campaigns in these markets cost together, each with so many people: on average, rarely and at worst."""
    people = sum(count for _, count in markets)
    times, rng = max(20, min(200, _SIMULATED_BIDS // people)), np.random.default_rng(1)
    found = [_simulated(market, count, times, rng) for market, count in markets]
    whole = replace(
        found[0],
        total_payment=np.sum([one.total_payment for one in found], axis=0),
        worst_payment_bound=sum(one.worst_payment_bound for one in found),
    )
    market, count = markets[0]
    return Spending.of(whole, market.for_people(count).stated).text(currency)


def _simulated(market: Market, people: int, times: int, rng: np.random.Generator) -> Simulation:
    """Simulated campaigns with payments to three digits, enough for a forecast and much quicker."""
    population = market.for_people(people)
    rough = replace(population, tolerance=max(population.tolerance, _FORECAST_TOLERANCE))
    return simulate(rough, times, rng=rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a campaign of so many people costs, before anybody has bid; from simulated campaigns."""

    expected: float
    """The mean total payment."""

    expected_error: float
    """Half the width of a 95 % confidence interval of the mean."""

    in_95_of_100: float
    """The total that 95 of 100 campaigns do not exceed."""

    at_worst: float
    """The total that no bids can exceed; infinite under a prior without an upper end."""

    repetitions: int
    """How many campaigns were simulated."""

    rounding: float | None = None
    """What rounding up to whole coins adds to a budget's payments on average. It is part of the amounts above; of what
    is spent at worst, a coin for each person is. None where it was not computed."""

    @classmethod
    def of(cls, found: Simulation, goal: Goal | None = None) -> "Spending":
        """From simulated campaigns; of a budget, the ``goal`` says what rounding is expected to add."""
        expected = found.expected("total_payment")
        coins = goal.coin if isinstance(goal, Budget) else 0.0
        rounding = goal.reserve if isinstance(goal, Budget) and coins > 0.0 else None
        return cls(
            expected=expected.value + (rounding or 0.0),
            expected_error=(expected.high - expected.low) / 2.0,
            rounding=rounding,
            in_95_of_100=found.quantile("total_payment").value + (rounding or 0.0),
            at_worst=found.worst_payment_bound + (coins * found.n if rounding is not None else 0.0),
            repetitions=found.repetitions,
        )

    def short_text(self, currency: Currency) -> str:
        """In half a sentence: what is usual, and what is rare."""
        return (
            f"If the prior is right, it costs {currency.text_of(self.expected)} on average, up to"
            f" {currency.text_of(self.in_95_of_100)} in 95 of 100 cases"
        )

    def text(self, currency: Currency) -> str:
        """In a sentence."""
        worst = (
            f"{currency.text_of(self.at_worst)} at the very worst"
            if math.isfinite(self.at_worst)
            else "without any limit at the very worst, because the prior has no upper end"
        )
        rounded = "before rounding up to whole coins"
        if self.rounding is not None:
            rounded = f"rounding up to whole coins adds {currency.text_of(self.rounding)} of it"
        return (
            f"If the prior is right, such a campaign costs {currency.text_of(self.expected)} on average"
            f" (± {currency.text_of(self.expected_error)}), up to {currency.text_of(self.in_95_of_100)} in 95 of 100"
            f" cases, and {worst} ({self.repetitions} simulated campaigns, {rounded})."
        )
