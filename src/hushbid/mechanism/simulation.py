"""What a market would do: the distribution of error, payments and cost over simulated campaigns."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.common.arrays import FloatArray, as_count
from hushbid.common.numbers import figure, number
from hushbid.common.tables import Library, frame_of
from hushbid.errors import InputError, MarketError, NobodyToBuyFrom, Unreachable
from hushbid.mechanism.decision import decide
from hushbid.mechanism.population import Population
from hushbid.mechanism.worst_case import worst_payment

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is to do."""

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
    decided: list[_Campaign] = []
    below, above = np.empty(repetitions), np.empty(repetitions)
    for k in range(repetitions):
        types = drawn.sample(rng)
        decided.append(_campaign(population, np.maximum(types, lowest)))  # below the support: the lowest bid
        below[k], above[k] = np.mean(types < lowest), np.mean(types > top)
        if progress is not None:
            progress(k + 1, repetitions)
    missed = [one.unreachable for one in decided if one.unreachable is not None]
    if len(missed) == repetitions:
        raise missed[0]
    beyond = bool(np.any(drawn.per_person(lambda prior: prior.support[1]) > top))
    # campaigns that chance would hardly draw
    extremes = [_paid(population, bids) for bids in _extreme_bids(population)]
    columns = {name: np.array([getattr(one, name) for one in decided]) for name in _COLUMNS}
    return Simulation(
        n=population.people,
        **columns,
        below_support=below,
        above_support=above,
        worst_payment_found=max([float(columns["total_payment"].max()), *extremes]),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Campaign:
    """What one campaign came to."""

    mse: float
    worst_mse: float
    total_payment: float
    objective: float
    buyer_cost: float
    share_bought: float
    largest_loss: float
    unreachable: Unreachable | None = None


_COLUMNS = tuple(name for name in _Campaign.__slots__ if name != "unreachable")


def _campaign(population: Population, bids: FloatArray) -> _Campaign:
    try:
        decided = decide(population, bids)
    except (Unreachable, NobodyToBuyFrom) as problem:
        if isinstance(problem, NobodyToBuyFrom) and population.strata is None:
            raise
        never = math.inf
        return _Campaign(
            mse=never,
            worst_mse=never,
            total_payment=0.0,
            objective=never,
            buyer_cost=0.0,
            share_bought=0.0,
            largest_loss=0.0,
            unreachable=problem if isinstance(problem, Unreachable) else None,  # a stratum without sellers
        )
    weight, paid = population.buyer_weight, decided.total_payment
    return _Campaign(
        mse=decided.mse,
        worst_mse=decided.worst_mse,
        total_payment=paid,
        objective=decided.objective,
        buyer_cost=paid + (weight * decided.mse if weight > 0.0 else 0.0),
        share_bought=decided.active / bids.size,
        largest_loss=float(decided.privacy_loss.max()),
    )


def _paid(population: Population, bids: FloatArray) -> float:
    """The total payment; nothing where these bids, which nobody made, cannot be answered."""
    try:
        return _campaign(population, bids).total_payment
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
