"""The first best: what one would pay if everybody's sensitivity were known.

The same allocation problem with the sensitivities themselves instead of virtual costs, and everybody paid exactly what
her loss costs her. No mechanism can have it, because paying people what they say makes overstating profitable; the
distance to it is the price of not knowing.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.baselines.rival import AtErrorWeight, Decision

__all__ = ["FirstBest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBest(AtErrorWeight):
    """The optimum for known sensitivities, without rents."""

    name: ClassVar[str] = "the first best (prices known)"
    truthful: ClassVar[bool] = False
    voluntary: ClassVar[bool] = True

    def decide(self, reports: FloatArray) -> Decision:
        # whom the market would never buy from, this does not either
        costs = np.where(np.isfinite(self.population.virtual_costs(reports)), reports, np.inf)
        if not np.isfinite(costs).any():
            nothing = np.zeros(reports.size)
            return Decision(privacy_loss=nothing, rent=nothing, mse=np.inf)
        bought = self.chosen.allocation(costs)
        return Decision(privacy_loss=bought.privacy_loss, rent=np.zeros(reports.size), mse=bought.mse)
