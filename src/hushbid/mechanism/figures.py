"""What a decision comes to, in figures about everybody together; none of them is one person's.

Memory and engines return the same figures, and whoever shows results (command line, report, server) shows these.
"""

import math
from dataclasses import dataclass
from typing import Any

from hushbid.allocation import Allocation
from hushbid.estimation import Setting
from hushbid.mechanism.decision import Decision
from hushbid.mechanism.population import Population
from hushbid.money import Currency
from hushbid.wording import at_most


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
    """Mean squared error of the estimate, in squared data units; infinite if nothing was bought."""

    objective: float
    """``error weight · mse + Σ virtual cost · privacy loss``, in money."""

    lower_bound: float
    """No decision has a smaller objective before any cap, in money."""

    cap_cost: float
    """How much higher the objective is than without the cap, in money; 0 if the cap does not bind."""

    largest_privacy_loss: float
    """Nobody's privacy loss is larger."""

    total_privacy_loss: float
    """All privacy losses together."""

    squared_weights: float
    """The sum of the squares of all weights."""

    incentive_error: float
    """No misreport can gain more than this, in money: twice the largest error of a payment."""

    @classmethod
    def of(cls, population: Population, decision: Decision, *, lower_bound: float, cap_cost: float) -> "Figures":
        """The figures of a decision, with its certificate and what the cap costs."""
        return cls(
            setting=population.setting.name,
            people=population.people,
            active=decision.active,
            mse=decision.mse,
            objective=decision.objective,
            lower_bound=lower_bound,
            cap_cost=cap_cost,
            largest_privacy_loss=float(decision.privacy_loss.max()),
            total_privacy_loss=math.fsum(decision.privacy_loss),
            squared_weights=math.fsum(decision.weights**2),
            incentive_error=decision.incentive_error,
        )

    @property
    def standard_error(self) -> float:
        """The root of the mean squared error, in data units."""
        return math.sqrt(self.mse)

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
            "currency": currency.code,
            "decimals": currency.decimals,
            "total_payment_minor": total_minor,
            "people_who_pay": paying,
            "incentive_error": incentive_error,
            "objective": self.objective,
            "lower_bound": self.lower_bound,
            "cap_cost": self.cap_cost,
        }


def cap_cost(population: Population, decision: Decision, optimum: Allocation | None) -> float:
    """How much higher the objective is than without the cap, in money; 0 if the cap does not bind."""
    if optimum is None or not (decision.privacy_loss >= population.cap).any():
        return 0.0
    return max(decision.objective - optimum.objective, 0.0)
