"""A posted price: everybody may sell the loss ε for the price ``p·ε``, take it or leave it.

Whoever's cost is at most p sells. With N the number of sellers, binomial under the prior,

    expected cost = A·E[MSE] + p·ε·E[N],      MSE = 2/(Nε)² + V/N central,  (V + 2/ε²)/N local.

or ``coth²(ε/2)/(4N)`` where one yes/no question is answered by randomised response. For a given p the best ε is a cube
root (of a coin, the root of a cubic in ``tanh(ε/2)``), so the optimum is a one-dimensional search over p. If nobody
sells, the estimate is the middle of the range, wrong by at most half its width, and MSE is counted as the square of
that.
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
from hushbid.common.arrays import FloatArray
from hushbid.estimation import WORST_VARIANCE
from hushbid.languages import noted
from hushbid.mechanism import Population

_POINTS = 33
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Sales:
    """How many of ``people`` sell, when each does with the same chance."""

    none: float
    """The chance that nobody does."""

    inverse: float
    """``E[1/N; N ≥ 1]``."""

    inverse_square: float
    """``E[1/N²; N ≥ 1]``."""

    def inverse_to(self, power: int) -> float:
        """``E[1/N^power; N ≥ 1]``, for a power of 1 or 2."""
        return self.inverse if power == 1 else self.inverse_square


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedPrice(CommonLoss):
    """Take it or leave it, at a price chosen for the prior."""

    name: ClassVar[str] = noted("a posted price")
    truthful: ClassVar[bool] = True
    voluntary: ClassVar[bool] = True

    price: float
    """Money per unit of privacy loss."""

    @classmethod
    def best(cls, population: Population, *, error_weight: float | None = None) -> Self:
        """The price and loss of least expected cost."""
        weight = unit_error_weight(population, error_weight)
        pool, variance, people = Pool.of(population), common_variance(population), population.people
        low, high = 0.0, 1.0
        # To offer nothing and guess the middle of the range is a choice as well.
        guess = WORST_VARIANCE + population.bias
        best, found = weight * guess, cls(population=population, price=pool.lowest, loss=0.0)
        for _ in range(_ROUNDS):
            costs = np.full(_POINTS, np.inf)
            for j, (price, chance) in enumerate(_offers(pool, low, high)):
                if not (0.0 < price < np.inf and chance > 0.0):
                    continue
                sales = expected_sales(people, chance)
                noise = sales.inverse_to(population.setting.noise_power)
                expense = price * people * chance
                loss = best_common_loss(population, weight, noise, expense)
                if not loss > 0.0:  # hardly anybody would ever accept: the moments are too small for a double
                    continue
                error = common_error(population, loss, noise, variance * sales.inverse) + guess * sales.none
                costs[j] = weight * error + expense * loss
                if costs[j] < best:
                    best, found = costs[j], cls(population=population, price=price, loss=loss)
            # closer around the best price
            levels, place = np.linspace(low, high, _POINTS), int(np.argmin(costs))
            low, high = float(levels[max(place - 1, 0)]), float(levels[min(place + 1, _POINTS - 1)])
        return found

    def decide(self, bids: FloatArray) -> Decision:
        losses = np.where(bids <= self.price, self.loss, 0.0)
        return Decision(privacy_loss=losses, rent=step_rents(bids, losses, self.price), mse=self.error_of(losses))


@lru_cache(maxsize=256)
def _offers(pool: Pool, low: float, high: float) -> tuple[tuple[float, float], ...]:
    """Prices between two quantiles of the pool, each with the chance that somebody accepts it."""
    prices = pool.quantile(np.linspace(low, high, _POINTS))
    return tuple(zip(prices.tolist(), pool.accepting(prices).tolist(), strict=True))


@lru_cache(maxsize=4096)
def expected_sales(people: int, chance: float) -> Sales:
    """The moments of a binomial number of sellers, over all numbers within twelve standard deviations of the mean.

    >>> expected_sales(2, 0.5)
    Sales(none=0.25, inverse=0.625, inverse_square=0.5625)
    """
    from scipy.special import gammaln, xlog1py, xlogy

    spread = 12.0 * np.sqrt(people * chance * (1.0 - chance)) + 12.0
    first = max(1, int(people * chance - spread))
    number = np.arange(first, min(people, int(people * chance + spread)) + 1, dtype=np.float64)
    log_chance = gammaln(people + 1.0) - gammaln(number + 1.0) - gammaln(people - number + 1.0)
    log_chance += xlogy(number, chance) + xlog1py(people - number, -chance)
    weight = np.exp(log_chance)
    none = float(np.exp(xlog1py(float(people), -chance)))
    weight *= (1.0 - none) / weight.sum()  # what was cut off, and rounding
    return Sales(none, float((weight / number).sum()), float((weight / number**2).sum()))
