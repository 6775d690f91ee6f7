"""Our privacy losses with the paper's near-optimal estimators.

[F]'s estimators for given privacy losses are optimal up to a logarithm (central: losses capped at ``1/√(k*+1)``, proof
of Thm 1) or a constant (local: weights proportional to ε², Thm 2), not exactly. Losses and rents are the optimal
mechanism's; only the estimate, and with it the error, is theirs. People are paid for the loss they were promised, also
where the cap delivers less.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushbid.baselines.baseline import AtErrorWeight, Decision
from hushbid.common.arrays import FloatArray
from hushbid.estimation import mse_of, near_optimal_weights
from hushbid.languages import noted
from hushbid.mechanism import decide


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimal(AtErrorWeight):
    """The market's own mechanism in the baselines' clothes, so that it is compared by the same code."""

    name: ClassVar[str] = "Hushbid"
    truthful: ClassVar[bool] = True
    voluntary: ClassVar[bool] = True

    def error(self, bids: FloatArray) -> float:
        costs = self.population.virtual_costs(bids)
        if not np.isfinite(costs).any():
            return np.inf
        bought = self.chosen.allocation(costs)
        return self.estimate_error(bought.privacy_loss, bought.mse)

    def decide(self, bids: FloatArray) -> Decision:
        # Rents depend on the error weight only, not on how it is shared: user weights enter where payments are made.
        made = decide(self.chosen, bids)
        return Decision(
            privacy_loss=made.privacy_loss,
            rent=made.information_rent,
            mse=self.estimate_error(made.privacy_loss, made.worst_mse / self.population.unit + self.population.bias),
        )

    def estimate_error(self, privacy_loss: FloatArray, optimal: float) -> float:
        """The error of the estimator for these losses, on a data range of width 1."""
        return optimal


@dataclass(frozen=True, slots=True, kw_only=True)
class NearOptimal(Optimal):
    """The optimal losses with the paper's near-optimal estimator."""

    name: ClassVar[str] = noted("the paper's estimators")

    def estimate_error(self, privacy_loss: FloatArray, optimal: float) -> float:
        if not privacy_loss.any():
            return np.inf
        how = self.population.setting
        found = near_optimal_weights(privacy_loss, setting=how.name, variance=self.unit_variance)
        if how.response:
            return mse_of(found.weights, privacy_loss, setting=how.name, variance=self.unit_variance, response=True)
        return found.mse
