"""Our privacy losses with the paper's near-optimal estimators.

[F]'s estimators for given privacy losses are optimal up to a logarithm (central: losses capped at ``1/√(k*+1)``, proof
of Thm 1) or a constant (local: weights proportional to ε², Thm 2), not exactly. Losses and rents are the optimal
mechanism's; only the estimate, and with it the error, is theirs. People are paid for the loss they were promised, also
where the cap delivers less.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.baselines.rival import Decision, Rival, unit_error_weight
from hushbid.estimation import near_optimal_weights
from hushbid.mechanism import Market

__all__ = ["NearOptimal", "Optimal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimal(Rival):
    """The market's own mechanism in the rivals' clothes, so that it is compared by the same code."""

    name: ClassVar[str] = "Hushbid"
    truthful: ClassVar[bool] = True
    voluntary: ClassVar[bool] = True

    error_weight: float
    """What one squared data unit of error costs everybody together."""

    @classmethod
    def best(cls, market: Market, people: int, *, error_weight: float | None = None) -> Self:
        """The mechanism at the market's error weight, or another."""
        weight = unit_error_weight(market, people, error_weight) / market.width**2
        return cls(market=market, people=people, error_weight=weight)

    def error(self, reports: FloatArray) -> float:
        chosen = replace(self.market, buyer_weight=self.error_weight, user_weight=0.0)
        costs = np.asarray(self.market.prior.virtual_cost(reports))
        if not np.isfinite(costs).any():
            return np.inf
        population = chosen.for_people(self.people)
        losses, _, mse = population.capped(population.allocation(costs))
        return self.estimate_error(losses, mse)

    def decide(self, reports: FloatArray) -> Decision:
        # Rents depend on the error weight only, not on how it is shared: user weights enter where payments are made.
        chosen = replace(self.market, buyer_weight=self.error_weight, user_weight=0.0)
        outcome = chosen.acquire(reports)
        return Decision(
            privacy_loss=outcome.privacy_loss,
            rent=outcome.information_rent,
            mse=self.estimate_error(outcome.privacy_loss, outcome.mse / self.market.width**2),
        )

    def estimate_error(self, privacy_loss: FloatArray, optimal: float) -> float:
        """The error of the estimator for these losses, on a data range of width 1."""
        return optimal


@dataclass(frozen=True, slots=True, kw_only=True)
class NearOptimal(Optimal):
    """The optimal losses with the paper's near-optimal estimator."""

    name: ClassVar[str] = "the paper's estimators"

    def estimate_error(self, privacy_loss: FloatArray, optimal: float) -> float:
        if not privacy_loss.any():
            return np.inf
        return near_optimal_weights(privacy_loss, setting=self.market.setting, variance=self.unit_variance).mse
