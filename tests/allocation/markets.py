"""One table of central markets without caps, and what a purchase in them comes to by its definition alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushbid.allocation import Accuracy, Allocation, Budget, Goal, Price, ReplyRule, Strata, allocate, replies
from hushbid.common.arrays import FloatArray
from hushbid.errors import MarketError


@dataclass(frozen=True, slots=True, eq=False)
class CentralMarket:
    """People and a goal."""

    name: str
    costs: FloatArray
    variance: float | FloatArray
    strata: Strata | None
    goal: Goal

    def solve(self, costs: FloatArray | None = None) -> Allocation:
        """Return the purchase, perhaps at other costs."""
        costs = self.costs if costs is None else costs
        return allocate(costs, variance=self.variance, goal=self.goal, strata=self.strata)

    def rule(self) -> ReplyRule:
        """Return the allocation rule."""
        return replies(self.costs, setting="central", variance=self.variance, goal=self.goal, strata=self.strata)

    def moved(self, row: int, cost: float) -> tuple[float, float, float]:
        """Return objective, loss and error if one person had another cost; solved from the beginning."""
        costs = self.costs.copy()
        costs[row] = cost
        try:
            found = self.solve(costs)
        except MarketError:  # without the person it cannot be had
            return math.inf, 0.0, math.inf
        return found.objective, float(found.privacy_loss[row]), found.mse

    @property
    def codes(self) -> np.ndarray:
        """Everybody's stratum."""
        return np.zeros(self.costs.size, dtype=int) if self.strata is None else self.strata.codes

    @property
    def weights(self) -> FloatArray:
        """The weights of the strata."""
        return np.ones(1) if self.strata is None else self.strata.weights

    @property
    def variances(self) -> FloatArray:
        """Everybody's variance."""
        return np.broadcast_to(self.variance, self.costs.shape)

    def objective(self, shares: FloatArray) -> float:
        """Return what weights of these sizes cost with the best noise for them: a line of algebra for each goal."""
        spread = float(self.variances @ shares**2)
        bought = shares > 0.0
        unit_price, number = float(self.costs[bought] @ shares[bought]), self.goal.number
        if self.goal.kind == "price":
            return number * spread + 1.5 * (4.0 * number) ** (1.0 / 3.0) * unit_price ** (2.0 / 3.0)
        if self.goal.kind == "accuracy":
            left = number**2 - spread
            return unit_price * math.sqrt(2.0 / left) if left > 0.0 else 1e6 * (1.0 - left)
        return spread + 2.0 * (unit_price / number) ** 2

    def scaled(self, shares: FloatArray) -> FloatArray:
        """Return shares that add up to the size of the weight in each stratum."""
        sums = np.bincount(self.codes, weights=shares, minlength=self.weights.size)
        return shares * (np.abs(self.weights) / sums)[self.codes]


def _two_valleys(rng: np.random.Generator, n: int) -> FloatArray:
    """A few cheap people and many far dearer ones: the optimum is among the ones or the others."""
    return np.where(np.arange(n) < 4, rng.uniform(0.9, 1.1, n), rng.uniform(9.0, 11.0, n))


SHAPES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "uniform": lambda rng, n: rng.uniform(1.0, 2.0, n),
    "log-normal": lambda rng, n: rng.lognormal(0.0, 1.0, n),
    "wide": lambda rng, n: rng.lognormal(0.0, 4.0, n),
    "ties": lambda rng, n: rng.choice([0.5, 1.0, 1.0, 3.0], n),
    "ulps apart": lambda rng, n: 1.0 + 1e-13 * rng.integers(0, 9, n),
    "some zero": lambda rng, n: np.where(rng.random(n) < 0.3, 0.0, rng.exponential(size=n)),
    "zero in every stratum": lambda rng, n: np.where(np.arange(n) < 3, 0.0, rng.exponential(size=n)),
    "some never": lambda rng, n: np.where((rng.random(n) < 0.4) & (np.arange(n) > 2), np.inf, rng.exponential(size=n)),
    "two valleys": _two_valleys,
    "extreme": lambda rng, n: np.where(np.arange(n) < 3, 1.0, 10.0 ** rng.uniform(-200.0, 150.0, n)),
}
"""Costs; the first three people are in different strata."""


def markets(people: int, *, seed: int = 0, shapes: tuple[str, ...] = tuple(SHAPES)) -> list[CentralMarket]:
    """Return every shape with one mean and with three strata, one variance and one each, and every goal."""
    made = []
    for shape in shapes:
        for divided in (False, True):
            for each in (False, True):
                rng = np.random.default_rng([seed, list(SHAPES).index(shape), divided, each])
                n = max(people, 3)
                costs = SHAPES[shape](rng, n)
                variance = rng.uniform(0.02, 0.25, n) if each else 0.2
                codes = np.append([0, 1, 2], rng.integers(0, 2, n - 3))  # the third stratum has one person
                strata = Strata(codes=codes, weights=[0.7, -0.4, 0.2]) if divided else None
                if not divided:
                    codes, weights = np.zeros(n, dtype=int), np.ones(1)
                else:
                    weights = np.array([0.7, -0.4, 0.2])
                masses = np.where(costs < np.inf, 1.0 / np.broadcast_to(variance, n), 0.0)
                least = float((weights**2 / np.bincount(codes, weights=masses)).sum())
                goals = (
                    Price(float(10.0 ** rng.uniform(-1.0, 3.0))),
                    Accuracy(math.sqrt(least * rng.uniform(1.02, 4.0))),
                    Budget(float(rng.uniform(0.1, 20.0))),
                )
                for goal in goals:
                    name = f"{shape}, {'strata' if divided else 'mean'}, {'each' if each else 'one'}, {goal.kind}"
                    made.append(CentralMarket(name, costs, variance, strata, goal))
    return made
