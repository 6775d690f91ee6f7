"""The first best: what one would pay if everybody's cost were known.

The same allocation problem with the costs themselves instead of virtual costs, and everybody paid exactly what
her loss costs her. No mechanism can have it, because paying people what they say makes overstating profitable; the
distance to it is the price of not knowing.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushbid.baselines.baseline import AtErrorWeight, Decision
from hushbid.common.arrays import FloatArray
from hushbid.languages import noted


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBest(AtErrorWeight):
    """The optimum for known costs, without rents."""

    name: ClassVar[str] = noted("the first best (prices known)")
    truthful: ClassVar[bool] = False
    voluntary: ClassVar[bool] = True

    def decide(self, bids: FloatArray) -> Decision:
        # whom the market would never buy from, this does not either
        costs = np.where(np.isfinite(self.population.virtual_costs(bids)), bids, np.inf)
        if not np.isfinite(costs).any():
            nothing = np.zeros(bids.size)
            return Decision(privacy_loss=nothing, rent=nothing, mse=np.inf)
        bought = self.chosen.allocation(costs)
        return Decision(privacy_loss=bought.privacy_loss, rent=np.zeros(bids.size), mse=bought.mse)
