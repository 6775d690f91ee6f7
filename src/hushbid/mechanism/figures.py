"""What a decision comes to, in figures about everybody together; none of them is one person's.

Memory and engines return the same figures, and whoever shows results (command line, report, server) shows these.
"""

import math
from dataclasses import dataclass
from typing import Any

from hushbid.allocation import HardBudget
from hushbid.common.arrays import rounded_sum
from hushbid.common.money import Currency
from hushbid.common.numbers import at_most
from hushbid.estimation import Setting
from hushbid.mechanism.deciding import decide
from hushbid.mechanism.decision import Decision
from hushbid.mechanism.population import Population


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was decided, in figures about the whole population."""

    setting: Setting
    """Where noise is added."""

    people: int
    """How many people were priced."""

    active: int
    """From how many something is bought."""

    mse: float
    """Mean squared error of the estimate if price and datum are unrelated, in squared data units; infinite if nothing
    was bought."""

    worst_mse: float
    """Mean squared error at worst, if they are related as closely as the market allows for."""

    objective: float
    """``error weight · mse + Σ virtual cost · privacy loss``, in money."""

    lower_bound: float
    """No decision has a smaller objective."""

    cap_cost: float
    """How much higher the objective is than without the cap, in its own unit; 0 if the cap does not bind."""

    largest_privacy_loss: float
    """Nobody's privacy loss is larger."""

    total_privacy_loss: float
    """All privacy losses together."""

    squared_weights: float
    """The sum of the squares of all weights, with strata of either sign."""

    incentive_error: float
    """In money, twice the largest possible error of a payment; see `hushbid.mechanism.decision.Decision`."""

    @classmethod
    def of(cls, setting: Setting, decision: Decision, *, lower_bound: float, cap_cost: float) -> "Figures":
        """The figures of a decision, with its certificate and what the cap costs."""
        return cls(
            setting=setting,
            people=decision.bids.size,
            active=decision.active,
            mse=decision.mse,
            worst_mse=decision.worst_mse,
            objective=decision.objective,
            lower_bound=lower_bound,
            cap_cost=cap_cost,
            largest_privacy_loss=float(decision.privacy_loss.max()),
            total_privacy_loss=rounded_sum(decision.privacy_loss),
            squared_weights=rounded_sum(decision.weights**2),
            incentive_error=decision.incentive_error,
        )

    @property
    def standard_error(self) -> float:
        """The root of the mean squared error if price and datum are unrelated, in data units."""
        return math.sqrt(self.mse)

    @property
    def worst_standard_error(self) -> float:
        """The root of the mean squared error at worst, in data units."""
        return math.sqrt(self.worst_mse)

    def facts(
        self, *, dropped: int, currency: Currency, total_minor: int, paying: int, incentive_error: float
    ) -> dict[str, Any]:
        """The figures that are shown, by the names that programs read, with the money they come to.

        ``dropped`` rows were left out, ``paying`` people owe money, and ``incentive_error`` includes the rounding.
        """
        return {
            "setting": self.setting,
            "people": self.people,
            "dropped_rows": dropped,
            "bought_from": self.active,
            "largest_privacy_loss": at_most(self.largest_privacy_loss),
            "standard_error": self.standard_error,
            "worst_standard_error": self.worst_standard_error,
            "currency": currency.code,
            "decimals": currency.decimals,
            "total_payment_minor": total_minor,
            "people_who_pay": paying,
            "incentive_error": incentive_error,
            "objective": self.objective,
            "lower_bound": self.lower_bound,
            "cap_cost": self.cap_cost,
        }


def cap_cost(population: Population, decision: Decision) -> float:
    """How much higher the objective is than without caps and limits, in its own unit; 0 if none binds."""
    if not population.has_caps or not (decision.privacy_loss >= population.cap).any():
        return 0.0
    free = population.without_caps()
    if isinstance(population.goal, HardBudget):
        best = decide(free, decision.bids, decision.virtual_costs).objective
    else:
        best = free.objective_of(free.allocation(decision.virtual_costs, decision.tie_order))
    return max(decision.objective - best, 0.0)
