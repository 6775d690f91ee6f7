"""The first best: what one would pay if everybody's sensitivity were known.

The same allocation problem with the sensitivities themselves instead of virtual costs, and everybody paid exactly what
her loss costs her. No mechanism can have it, because paying people what they say makes overstating profitable; the
distance to it is the price of not knowing.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.baselines.rival import Decision, Rival, unit_error_weight
from hushbid.mechanism import Population

__all__ = ["FirstBest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBest(Rival):
    """The optimum for known sensitivities, without rents."""

    name: ClassVar[str] = "the first best (prices known)"
    truthful: ClassVar[bool] = False
    voluntary: ClassVar[bool] = True

    error_weight: float
    """What one squared data unit of error costs everybody together."""

    @classmethod
    def best(cls, population: Population, *, error_weight: float | None = None) -> Self:
        """The first best at the market's error weight, or another."""
        weight = unit_error_weight(population, error_weight) / population.unit
        return cls(population=population, error_weight=weight)

    def decide(self, reports: FloatArray) -> Decision:
        chosen = replace(self.population, buyer_weight=self.error_weight, user_weight=0.0)
        # whom the market would never buy from, this does not either
        costs = np.where(np.isfinite(self.population.virtual_costs(reports)), reports, np.inf)
        if not np.isfinite(costs).any():
            nothing = np.zeros(reports.size)
            return Decision(privacy_loss=nothing, rent=nothing, mse=np.inf)
        losses, _, mse = chosen.capped(chosen.allocation(costs))
        return Decision(privacy_loss=losses, rent=np.zeros(reports.size), mse=mse)
