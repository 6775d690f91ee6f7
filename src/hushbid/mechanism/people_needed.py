"""How many people it takes to meet a target on average."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.allocation.goals import name_of
from hushbid.common.arrays import FloatArray, as_number
from hushbid.errors import InputError, MarketError, Unreachable
from hushbid.mechanism.population import Population
from hushbid.mechanism.setting import CENTRAL
from hushbid.mechanism.simulation import FEWEST, Estimate, Progress, drawn, standard_error

_MOST_TRIALS = 100


@dataclass(slots=True, kw_only=True)
class Search:
    """How many people it takes to meet a target on average; the figures at all trials are from the same draws."""

    name: str
    target: float
    times: Callable[[int], int]
    seed: int
    progress: Progress | None
    trials: int = 0

    @classmethod
    def of(
        cls,
        goal: Goal,
        target_standard_error: float | None,
        target_payment: float | None,
        times: Callable[[int], int],
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> "Search":
        if (target_standard_error is None) == (target_payment is None):
            raise InputError(
                "give n, or a target that so many people should meet: either target_standard_error or target_payment.",
                field="n",
            )
        name = "target_payment" if target_standard_error is None else "target_standard_error"
        value = target_payment if target_standard_error is None else target_standard_error
        target = as_number(value, name)
        if not 0.0 < target < math.inf:
            raise InputError(f"{name} must be positive and finite, got {value}.", field=name)
        if isinstance(goal, Accuracy if name == "target_standard_error" else (Budget, HardBudget)):
            raise InputError(f"{name} must not be given beside a {name_of(goal)}, which states it already.", field=name)
        seed = int(rng.integers(2**62))
        return cls(name=name, target=target, times=times, seed=seed, progress=progress)

    @property
    def limit(self) -> float:
        """What the figure may be on average: errors are squared."""
        return self.target if self.name == "target_payment" else self.target**2

    def number(self, for_people: Callable[[int], Population], most: int) -> Estimate:
        """A number at which the target is met while with one fewer it is not."""
        two = for_people(2)  # a market may refuse a single person
        self._refuse_whatever_the_number(two)
        low, high = 0, min(2 if two.outside_option == "estimate" else 1, most)
        # double, then halve
        while not float(self._figures(for_people(high)).mean()) <= self.limit:
            if high == most:
                raise MarketError(
                    f"{self.name} is not met with any number of people tried, up to {most}, got {self.target:g}.",
                    field=self.name,
                )
            low, high = high, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            met = float(self._figures(for_people(middle)).mean()) <= self.limit
            low, high = (low, middle) if met else (middle, high)
        # how far the answer moves if the mean is off by its standard error: the slope in log n
        here, fewer = self._figures(for_people(high)), max(math.floor(high / 1.2), low, 1)
        slope = (
            float(self._figures(for_people(fewer)).mean() - here.mean()) / math.log(high / fewer) if high > 1 else 0.0
        )
        return _interval(float(high), standard_error(here), slope)

    def _figures(self, population: Population) -> FloatArray:
        """Error or payment of each campaign, whichever is aimed at; infinite where the goal is out of reach."""
        self.trials += 1
        if self.progress is not None:
            self.progress(self.trials, max(_MOST_TRIALS, self.trials))
        try:
            found = list(drawn(population, self.seed, self.times(population.people)))
        except Unreachable:
            return np.full(FEWEST, np.inf)
        if self.name == "target_payment":
            return np.array([one.payment for one in found])
        return np.array([one.worst_mse for one in found])

    def _refuse_whatever_the_number(self, population: Population) -> None:
        """If only the buyer cares, nobody can be cheaper than the cheapest: the noise alone has an error and a price.

        Centrally the error is at least ``2/S²`` and the virtual payment ``S·a``, ``a`` at least the smallest virtual
        cost, with ``S = (4A/a)^{1/3}`` at a price, ``√2/r`` for an accuracy and ``B/a`` for a budget, under a hard one
        with the smallest bid.
        """
        goal, prior = population.goal, population.groups[0].prior
        if population.setting is not CENTRAL or population.cap < math.inf or population.cares:
            return
        low = prior.support[0]
        cheapest = low if isinstance(goal, HardBudget) else float(prior.virtual_cost(low))
        if cheapest == 0.0:
            return
        if isinstance(goal, Price):
            total = population.setting.most_loss(population.error_weight, cheapest, population.variance)
        else:
            total = math.sqrt(2.0) / population.aim.number if isinstance(goal, Accuracy) else goal.number / cheapest
        least = math.sqrt(2.0) * population.width / total
        if self.name == "target_payment":
            least = cheapest * total
        if self.target <= least:
            raise MarketError(
                f"{self.name} must be above {least:.6g}, the least with this goal however many people there are, got"
                f" {self.target:g}.",
                field=self.name,
            )


def _interval(answer: float, error: float, slope: float) -> Estimate:
    """Where the answer may lie if the figure is off by its error, its slope in the answer's logarithm known."""
    ratio = math.exp(min(1.96 * error / abs(slope), 700.0)) if slope != 0.0 and math.isfinite(slope) else math.inf
    return Estimate(value=answer, low=answer / ratio, high=answer * ratio)
