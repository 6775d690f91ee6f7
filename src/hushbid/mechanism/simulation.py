"""What campaigns come to: error, payments and cost over simulated ones.

However a rule is priced as in :mod:`hushbid.payments`, expected payments equal expected virtual payments,

    E Σ t_i = E[Σ ψ_i ε_i + Σ β_i (MSE − outside_i)]        (bids drawn from the prior; [F] Prop. 2),

and the right-hand side varies less: enough wherever only means are asked for (`drawn`).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.allocation import HardBudget
from hushbid.common.arrays import FloatArray, as_count
from hushbid.common.numbers import figure, number
from hushbid.common.tables import Library, frame_of
from hushbid.errors import InputError, MarketError, NobodyToBuyFrom, Unreachable
from hushbid.mechanism.deciding import decide
from hushbid.mechanism.impossible import refuse_impossible
from hushbid.mechanism.population import Population
from hushbid.mechanism.worst_case import worst_payment

FEWEST = 10
"""At least so many campaigns are drawn."""

_MOST_DRAWS = 2 * 10**7
Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is to do."""

_COLUMNS = ("mse", "worst_mse", "payment", "objective", "active", "largest_loss")
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number from a simulation, with a 95 % confidence interval."""

    value: float
    """The estimate."""

    low: float
    """Lower end of the interval."""

    high: float
    """Upper end of the interval; infinite where the simulation is too short to say."""

    def __str__(self) -> str:
        return f"{figure(self.value)} ({figure(self.low)} to {figure(self.high)})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """What a market did in many simulated campaigns; arrays have one entry per campaign."""

    n: int
    """People in each campaign."""

    mse: FloatArray
    """Stated mean squared error if price and datum are unrelated, in squared data units; infinite where nothing was
    bought."""

    worst_mse: FloatArray
    """Stated mean squared error at worst, if they are related as closely as the market allows for."""

    total_payment: FloatArray
    """Sum of all payments."""

    objective: FloatArray
    """What the market minimised, in the sense of its goal; see `Outcome.objective`."""

    buyer_cost: FloatArray
    """``buyer weight · mse + total payment``: what a campaign really cost the buyer, whatever the prior; without a
    price for the error, the payments alone."""

    share_bought: FloatArray
    """Share of the people who were bought from."""

    largest_loss: FloatArray
    """The largest privacy loss of anybody."""

    below_support: FloatArray
    """Share of the people whose cost lies below the market's prior; they bid its lowest value."""

    above_support: FloatArray
    """Share of the people whose cost lies above the market's prior; they are never bought from."""

    worst_payment_found: float
    """The largest total payment among these campaigns and some extreme ones: the worst case is at least this."""

    worst_payment_bound: float
    """No bids make the total payment larger (see `hushbid.mechanism.worst_case`): the worst case is at most this."""

    unreachable: int
    """In how many campaigns the accuracy was out of reach: nothing was bought, nobody paid, their error is infinite."""

    prior_is_true: bool
    """Whether people were drawn from the market's own prior."""

    @property
    def repetitions(self) -> int:
        """How many campaigns were simulated."""
        return int(self.mse.size)

    def expected(self, name: str) -> Estimate:
        """The mean of one of the arrays, by name; the interval is normal."""
        return mean_of(self._array(name))

    def means(self) -> dict[str, float]:
        """Return the mean of each of the arrays, by its name."""
        return {name: float(self._array(name).mean()) for name in self._names()}

    def quantile(self, name: str, level: float = 0.95) -> Estimate:
        """A quantile of one of the arrays, by name; the interval comes from order statistics and assumes nothing."""
        if not 0.0 < level < 1.0:
            raise InputError(f"level must be between 0 and 1, got {level}.", field="level")
        return _quantile_of(self._array(name), level)

    def summary(self) -> str:
        """The main figures in words."""
        source = "the market's prior" if self.prior_is_true else "another prior than the market's"
        lines = [
            f"{self.repetitions} campaigns of {self.n} people, drawn from {source}.",
            f"Total payment: {self.expected('total_payment')} expected, {self.quantile('total_payment')} exceeded in"
            f" one campaign of 20, {figure(self.worst_payment_bound)} never exceeded (the largest found:"
            f" {figure(self.worst_payment_found)}).",
            f"Mean squared error: {self.expected('mse')} expected. Bought from"
            f" {number(100 * self.share_bought.mean())} % of the people.",
        ]
        if (self.worst_mse != self.mse).any():
            lines.append(f"At worst, if price and datum are related, it is {self.expected('worst_mse')}.")
        if self.below_support.any() or self.above_support.any():
            lines.append(
                f"{number(100 * self.below_support.mean())} % of the people lie below the market's prior and"
                f" {number(100 * self.above_support.mean())} % above it, where nothing is bought."
            )
        nothing = int(np.isinf(self.mse).sum()) - self.unreachable
        if nothing:
            lines.append(f"In {nothing} campaigns nothing was bought.")
        if self.unreachable:
            lines.append(f"In {self.unreachable} campaigns the accuracy was out of reach, and nothing was bought.")
        return "\n".join(lines)

    def to_frame(self, library: Library | None = None) -> Any:
        """The arrays as a data frame, one row per campaign; of ``library``, else as `Outcome.to_frame` chooses."""
        return frame_of({name: self._array(name) for name in self._names()}, library)

    def _names(self) -> list[str]:
        return [field for field in self.__slots__ if isinstance(getattr(self, field), np.ndarray)]

    def _array(self, name: str) -> FloatArray:
        names = self._names()
        if name not in names:
            raise InputError(f"name must be one of {', '.join(names)}, got {name!r}.", field="name")
        array: FloatArray = getattr(self, name)
        return array


def simulate(
    population: Population,
    repetitions: int,
    *,
    rng: np.random.Generator,
    drawn_from: Population | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Decide for these people ``repetitions`` times; ``drawn_from`` has the true priors, if they are others."""
    repetitions = as_count(repetitions, "repetitions", least=2)
    drawn = population if drawn_from is None else drawn_from
    lowest = population.per_person(lambda prior: prior.smallest_bid)
    top = population.per_person(lambda prior: prior.support[1])
    decided: list[CampaignFigures] = []
    missed: list[Unreachable] = []
    below, above = np.empty(repetitions), np.empty(repetitions)
    for k in range(repetitions):
        types = drawn.sample(rng)
        try:
            decided.append(_figures(population, np.maximum(types, lowest)))  # below the support: the lowest bid
        except (Unreachable, NobodyToBuyFrom) as problem:
            if isinstance(problem, Unreachable):
                missed.append(problem)
            elif population.strata is None:  # a stratum without sellers is a campaign that buys nothing
                raise
            decided.append(_LOST)
        below[k], above[k] = np.mean(types < lowest), np.mean(types > top)
        if progress is not None:
            progress(k + 1, repetitions)
    if len(missed) == repetitions:
        raise missed[0]
    beyond = bool(np.any(drawn.per_person(lambda prior: prior.support[1]) > top))
    columns = {name: np.array([getattr(one, name) for one in decided], dtype=float) for name in _COLUMNS}
    paid, weight = columns.pop("payment"), population.buyer_weight
    # campaigns that chance would hardly draw
    extremes = [_paid(population, bids) for bids in _extreme_bids(population)]
    cost = paid + weight * columns["mse"] if weight > 0.0 else paid.copy()
    cost[[one is _LOST for one in decided]] = 0.0
    return Simulation(
        n=population.people,
        total_payment=paid,
        buyer_cost=cost,
        share_bought=columns.pop("active") / population.people,
        **columns,
        below_support=below,
        above_support=above,
        worst_payment_found=max([float(paid.max()), *extremes]),
        worst_payment_bound=worst_payment(population, above_support=beyond),
        unreachable=len(missed),
        prior_is_true=drawn_from is None,
    )


def mean_of(values: FloatArray) -> Estimate:
    """The mean with a normal 95 % interval; infinite if one of the values is."""
    if np.isinf(values).any():
        return Estimate(value=math.inf, low=math.inf, high=math.inf)
    mean, error = float(values.mean()), _NORMAL_95 * standard_error(values)
    return Estimate(value=mean, low=mean - error, high=mean + error)


def standard_error(values: FloatArray) -> float:
    """Of the mean of independent values."""
    return float(values.std(ddof=1)) / math.sqrt(values.size)


def _quantile_of(values: FloatArray, level: float) -> Estimate:
    """An order statistic, between two others that enclose the quantile with probability 95 % (binomial)."""
    from scipy.special import bdtr

    ordered, size = np.sort(values), values.size
    below = bdtr(np.arange(size), size, level)  # at most so many values below the quantile
    # how many values lie below the quantile is binomial
    first = int(np.searchsorted(below, 0.025))
    last = int(np.searchsorted(below, 0.975)) + 1
    return Estimate(
        value=float(ordered[min(math.ceil(level * size), size) - 1]),
        low=float(ordered[first - 1]) if first > 0 else -math.inf,
        high=float(ordered[last]) if last < size else math.inf,
    )


# -- one campaign ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignFigures:
    """What one campaign comes to."""

    mse: float = math.inf
    """The error if price and datum are unrelated, in squared data units."""

    worst_mse: float = math.inf
    """The error at worst, with the relation that is allowed for."""

    exposure: float = 0.0
    """How much larger it is at worst for each unit of squared relation: ``V̄·(N·Σw² − 1)``, with strata ``V̄`` times
    ``N·Σω² − N·Σ ℓ_g²/N_g``."""

    payment: float = 0.0
    """What is paid in all, or would be on average."""

    objective: float = math.inf
    """What the goal minimises."""

    active: int = 0
    """How many people are bought from."""

    largest_loss: float = 0.0
    """The largest privacy loss."""


_LOST = CampaignFigures()
"""A campaign that cannot be held."""


def _figures(population: Population, bids: FloatArray) -> CampaignFigures:
    """What a campaign with these bids comes to, with payments."""
    decided = decide(population, bids)
    return CampaignFigures(
        mse=decided.mse,
        worst_mse=decided.worst_mse,
        exposure=_exposure(population, decided.weights),
        payment=decided.total_payment,
        objective=decided.objective,
        active=decided.active,
        largest_loss=float(decided.privacy_loss.max()),
    )


def virtual_figures(population: Population, bids: FloatArray) -> CampaignFigures:
    """What a campaign with these bids comes to, with virtual payments; under a hard budget, a menu, with real ones."""
    if isinstance(population.goal, HardBudget):
        return _figures(population, bids)
    costs = population.virtual_costs(bids)
    refuse_impossible(population, costs)
    bought = population.allocation(costs)
    loss = bought.privacy_loss
    mse, worst = population.errors_of(bought)
    used = (loss > 0.0) & (costs > 0.0)  # an infinite loss that costs nothing is free
    paid = float(costs[used].dot(loss[used]))
    if population.cares:
        paid += float(population.user_weights().dot(mse - population.outside_errors(costs)))
    return CampaignFigures(
        mse=mse,
        worst_mse=worst,
        exposure=_exposure(population, bought.weights),
        payment=paid,
        objective=population.objective_of(bought),
        active=int(np.count_nonzero(loss)),
        largest_loss=float(loss.max()),
    )


def _exposure(population: Population, weights: FloatArray) -> float:
    uneven = population.roster * float(np.square(weights).sum()) - population.evenness
    return float(np.mean(population.own_error)) * max(uneven, 0.0)


def campaigns(n: int, repetitions: int) -> int:
    """Return how many campaigns are enough where nobody asked for a number: of large ones, which vary less, fewer."""
    return max(FEWEST, min(repetitions, _MOST_DRAWS // n))


def drawn(population: Population, seed: int, times: int) -> Iterator[CampaignFigures]:
    """Campaigns with virtual payments, drawn from a seed, so that all that is compared has the same people."""
    rng = np.random.default_rng(seed)
    for _ in range(times):
        yield virtual_figures(population, population.sample(rng))


def _paid(population: Population, bids: FloatArray) -> float:
    """The total payment; nothing where these bids, which nobody made, cannot be answered."""
    try:
        return _figures(population, bids).payment
    except MarketError:
        return 0.0


def _extreme_bids(population: Population) -> list[FloatArray]:
    """Everybody at the same quantile, and one person or half of the people at the lowest with the rest at the top."""
    n = population.people
    top = population.quantile(np.ones(n))
    # the top itself, where there is one that can be bought at
    highest = 1.0 if np.all(top < math.inf) and np.all(population.virtual_costs(top) < math.inf) else 0.999
    levels = [np.full(n, level) for level in (0.0, 0.25, 0.5, 0.75, highest)]
    for count in {1, n // 2} - {0, n}:
        levels.append(np.where(np.arange(n) < count, 0.0, highest))
    return [population.quantile(level) for level in levels]
