"""An auction for a fixed accuracy, in the manner of Ghosh and Roth (*Selling privacy at auction*, EC 2011).

The number of sellers k and their common loss ε, hence the accuracy, are fixed beforehand. The k lowest bids sell,
each at the (k+1)-st lowest, the threshold price: the highest bid with which she would still have sold. Nobody is
paid more than the top of the prior's support (a reserve). Ghosh and Roth estimate a count and take ``ε = 1/(n − k)``;
here k and ε minimise the expected cost for our error,

    A·MSE + k·ε·E[c_(k+1)],      MSE = 2/(kε)² + V/k central,  (V + 2/ε²)/k local,

or ``coth²(ε/2)/(4k)`` where one yes/no question is answered by randomised response.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from hushbid.baselines.baseline import (
    CommonLoss,
    Decision,
    Pool,
    best_common_loss,
    common_error,
    common_variance,
    step_rents,
    unit_error_weight,
)
from hushbid.common.arrays import FloatArray, IntArray
from hushbid.errors import MarketError
from hushbid.languages import noted
from hushbid.mechanism import Population

_CANDIDATES = 80
_NODES, _MANY_NODES, _REACH = 31, 401, 6.5


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedAccuracy(CommonLoss):
    """The k lowest bids sell the same loss at the (k+1)-st lowest price."""

    name: ClassVar[str] = noted("a fixed-accuracy auction")
    truthful: ClassVar[bool] = True
    voluntary: ClassVar[bool] = True

    sellers: int
    """How many people sell."""

    @classmethod
    def best(cls, population: Population, *, error_weight: float | None = None) -> Self:
        """The number of sellers and their loss of least expected cost."""
        weight = unit_error_weight(population, error_weight)
        pool, variance, people = Pool.of(population), common_variance(population), population.people
        power = population.setting.noise_power
        # without a reserve, somebody must be left to set the price
        most = people if pool.top < np.inf else people - 1
        if most < 1:
            raise MarketError(
                noted("a fixed-accuracy auction needs a second person to set the price: the prior has no largest cost.")
            )

        def costs(sellers: IntArray) -> tuple[FloatArray, FloatArray]:
            expense = sellers * expected_threshold(pool, people, sellers)
            noise = 1.0 / sellers**power
            cost = np.empty(sellers.size)
            for at, (part, paid, number) in enumerate(zip(noise, expense, sellers, strict=True)):
                loss = best_common_loss(population, weight, float(part), float(paid))
                cost[at] = weight * common_error(population, loss, part, variance / number) + paid * loss
            return cost, expense

        # coarse over all numbers of sellers, then ever finer around the best
        tried = np.unique(np.geomspace(1, most, _CANDIDATES).astype(np.int64))
        while True:
            place = int(np.argmin(costs(tried)[0]))
            low, high = int(tried[max(place - 1, 0)]), int(tried[min(place + 1, tried.size - 1)])
            finer = np.unique(np.linspace(low, high, _CANDIDATES).astype(np.int64))
            if finer.size <= 3 or np.array_equal(finer, tried):
                break
            tried = finer
        sellers = int(tried[place])
        expense = float(costs(tried)[1][place])
        noise = 1.0 / sellers**power
        loss = best_common_loss(population, weight, noise, expense)
        return cls(population=population, sellers=sellers, loss=loss)

    def decide(self, bids: FloatArray) -> Decision:
        order = np.argsort(bids, kind="stable")
        reserve = Pool.of(self.population).top
        threshold = float(bids[order[self.sellers]]) if self.sellers < self.population.people else reserve
        threshold = min(threshold, reserve)
        losses = np.zeros(bids.size)
        losses[order[: self.sellers]] = self.loss
        losses[bids > threshold] = 0.0
        return Decision(privacy_loss=losses, rent=step_rents(bids, losses, threshold), mse=self.error_of(losses))


def expected_threshold(pool: Pool, people: int, sellers: IntArray) -> FloatArray:
    """The expected (k+1)-st lowest of ``people`` costs for every k in ``sellers``; the top for k = people.

    Its place in the distribution is beta distributed; the expectation is taken over that.
    """
    return np.array(_thresholds(pool, people, tuple(sellers.tolist())))


@lru_cache(maxsize=256)
def _thresholds(pool: Pool, people: int, sellers: tuple[int, ...]) -> tuple[float, ...]:
    from scipy.special import betaincinv, ndtr

    # The trapezoidal rule in a normal variable: for a smooth prior its error falls faster than any power of the step.
    # Where costs may have gaps (steps, mixtures, groups), quantiles jump, and more nodes are needed.
    smooth = len(pool.parts) == 1 and not pool.parts[0][1].flat_parts
    normal = np.linspace(-_REACH, _REACH, _NODES if smooth else _MANY_NODES)
    weights = np.exp(-0.5 * normal**2)
    inner = np.minimum(np.array(sellers, dtype=np.float64), people - 1.0)
    levels = betaincinv(inner[:, None] + 1.0, people - inner[:, None], ndtr(normal)[None, :])
    expected = pool.quantile(levels.ravel()).reshape(levels.shape) @ (weights / weights.sum())
    return tuple(np.where(np.array(sellers) < people, expected, pool.top).tolist())
