"""A planned price: a budget on average where no exact rule for it is truthful.

Where a person who asks more can be bought more from (`hushbid.mechanism.combinations`), a budget cannot steer the
purchase. Instead a price A of the error is fixed from public facts alone, and the purchase is the one for that price:

    A = the largest price at which the mean of Σ ψ_i ε_i over drawn markets is at most the budget.

**Truthful**: the price ignores the bids, and the purchase for a price is truthful. **On average**: the expected payment
is the expected virtual expense, E Σ t = E Σ ψε. For fixed costs the expense rises with the price, so its mean over the
same draws does too, and a bracket of the price is narrowed until it has four digits.

**The roster** says for how many people a price is planned, by stratum. It must be closed before the first bid and never
be the number of bids: at a fixed budget the price rises with the number of people, so bids that sell nothing would
raise it. People on the roster who do not bid have an infinite cost.

**The draws** belong to the definition, not to a campaign: integers of PCG64 with a fixed seed, as inverse distribution
functions, market by market and stratum by stratum. There are 400 markets, fewer of large rosters, and twice as many
until the standard error of the mean is at most 1 % of the budget.

**Limits** that people state are in no draw: with them the mean payment is not the budget, and may be larger. Payments
that are rounded up to coins add half a coin for each seller: so much, for the sellers at about the price that would
meet the whole budget, is kept for it.

**Speed**: a search follows each market's purchase from price to price, and a plan is computed once for equal terms.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hushbid.allocation import Budget, PlannedPrice
from hushbid.allocation.local_rule import local_expenses
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.errors import InputError, MarketError
from hushbid.mechanism.drawn_markets import DrawnMarkets, Purchases
from hushbid.mechanism.population import Population
from hushbid.priors import Prior

SEED = 0x68757368626964
"""Of all draws."""

_MARKETS, _FEWEST_MARKETS, _DRAWS = 400, 25, 100_000
_MOST_DRAWS = 1 << 23
_WORST_ERROR = 0.01
"""The largest standard error, relative to the budget."""

_DIGITS = 4
"""A price has so many digits, rounded down."""

_FIRST = 24
"""So many markets say about where the price is."""

_NARROW, _ROUGHLY = 2e-4, 0.05
_MOST_STEPS, _SECANTS = 200, 8
_FLATTEST, _STEEPEST, _FARTHEST = 0.02, 2.0, 7.0
_SAME, _OFF, _FOLLOWED = 1e-6, 1e-3, 0.5
_POWERS = -0.05, 0.55
"""With the price the strength of the noise rises like a power of it between these, or it is looked for everywhere."""

_SATURATED = 1e-6
"""If a price a thousand times as high raises the expense by less than this part, no price spends the budget."""


@dataclass(frozen=True, slots=True)
class Roster:
    """For whom a price is planned: what decides it, and nothing that anybody bids."""

    kinds: tuple[tuple[int, Prior, float, float, int], ...]
    """Stratum, prior, planned variance and cap, and how many people have them, in an order that no bid decides."""

    weights: tuple[float, ...]
    """The strata's weights; (1,) without strata."""

    setting: str
    """Where noise is added."""

    response: bool = False
    """Whether people answer by randomised response."""

    expected_share: float = 1.0
    """How likely each of them is to bid."""

    @classmethod
    def of(cls, population: Population) -> "Roster":
        """Return everybody of the roster of a population, those who do not bid included."""
        caps, variances = population.caps(), np.broadcast_to(population.variance, population.people)
        strata = population.parts
        counts = np.array(population.rosters or (population.roster,))
        differ = len(population.groups) > 1 or np.ndim(population.cap) > 0 or np.ndim(population.variance) > 0
        if differ and population.roster != population.people:
            raise InputError(
                f"population must be the number of people listed ({population.people}) where people differ by group,"
                f" cap or variance and a budget is met on average, got {population.roster}: list everybody who was"
                " asked, those who do not bid with an infinite bid.",
                field="population",
            )
        weights = tuple(strata.weights.tolist())
        if not differ:
            one = (population.groups[0].prior, float(variances.flat[0]), float(caps.flat[0]))
            kinds = tuple((stratum, *one, int(count)) for stratum, count in enumerate(counts.tolist()))
        else:
            kinds = _kinds(population, strata.codes, variances, caps)
        setting, share = population.setting, population.expected_share
        return cls(kinds, weights, setting.name, setting.response, share)

    @property
    def people(self) -> int:
        """How many there are."""
        return sum(count for *_, count in self.kinds)

    def markets(self, count: int, *, seed: int = SEED) -> FloatArray:
        """Return virtual costs: one row for each of the first so many markets, one column per person."""
        raw = np.random.PCG64(seed).random_raw(count * self.people).reshape(count, self.people)
        levels = ((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        start = 0
        for _, prior, _, _, people in self.kinds:
            part = levels[:, start : start + people]
            part.sort(axis=1)  # these people differ by nothing else
            share = np.minimum(part / self.expected_share, 1.0)
            costs = np.asarray(prior.virtual_cost(np.asarray(prior.quantile(share))))
            part[:] = np.where(part <= self.expected_share, costs, math.inf)
            start += people
        return levels

    def purchases(
        self, price: float, costs: FloatArray, near: tuple[FloatArray, FloatArray] | None = None
    ) -> Purchases:
        """Return what is bought in markets at a price of the error on a range of width 1.

        A market in which a stratum has no sellers buys nothing. Its strength is looked for
        between those of ``near`` first.
        """
        counts = [count for *_, count in self.kinds]
        codes = np.repeat([stratum for stratum, *_ in self.kinds], counts)
        starts = np.searchsorted(codes, np.arange(len(self.weights)))
        open_ = np.isfinite(np.minimum.reduceat(costs, starts, axis=1)).all(axis=1)
        found = Purchases(expense=np.zeros(len(costs)), sellers=np.zeros(len(costs)), strength=np.zeros(len(costs)))
        if self.setting == "local":
            found.expense[open_], found.sellers[open_] = self._local_purchases(price, costs[open_], codes)
        elif open_.any():
            variance, caps = (np.repeat([kind[place] for kind in self.kinds], counts) for place in (2, 3))
            sizes = np.abs(self.weights)
            drawn = DrawnMarkets(costs=costs[open_], starts=starts, sizes=sizes, variance=variance, caps=caps)
            bought = drawn.purchases(price, None if near is None else (near[0][open_], near[1][open_]))
            for name in Purchases.__slots__:
                getattr(found, name)[open_] = getattr(bought, name)
        return found

    def _local_purchases(self, price: float, costs: FloatArray, codes: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Return the same in the local setting, where each stratum is a market of its own."""
        (variance, cap), *others = {kind[2:4] for kind in self.kinds}
        if others:  # the table of combinations refuses them
            raise InputError("In the local setting people have one variance and one cap.", field="variance")
        found = [
            local_expenses(
                costs[:, codes == stratum],
                price=price * weight**2,
                variance=variance,
                max_loss=cap,
                response=self.response,
            )
            for stratum, weight in enumerate(self.weights)
        ]
        return np.sum([one for one, _ in found], axis=0), np.sum([one for _, one in found], axis=0)


def _kinds(
    population: Population, codes: np.ndarray, variances: FloatArray, caps: FloatArray
) -> tuple[tuple[int, Prior, float, float, int], ...]:
    """Return people who differ, in the order of stratum, group, variance and cap, however they are listed."""
    groups = population.group_codes
    columns = np.stack([codes.astype(float), groups.astype(float), variances, caps])
    kinds, counts = np.unique(columns, axis=1, return_counts=True)
    return tuple(
        (int(code), population.groups[int(group)].prior, float(variance), float(cap), int(count))
        for (code, group, variance, cap), count in zip(kinds.T.tolist(), counts.tolist(), strict=True)
    )


def planned(population: Population, budget: Budget) -> Budget:
    """Return the budget with the price that meets it on average for a population's roster, in its data units."""
    plan, reserve = plan_for(Roster.of(population), budget.amount, budget.coin)
    return replace(budget, reserve=reserve, planned=replace(plan, price=float(f"{plan.price / population.unit:.15g}")))


@lru_cache(maxsize=64)
def plan_for(roster: Roster, amount: float, coin: float = 0.0) -> tuple[PlannedPrice, float]:
    """Return the price of the error on a range of width 1 for an amount, and what is kept of it for rounding."""
    count = max(_FEWEST_MARKETS, min(_MARKETS, _DRAWS // roster.people))
    costs = roster.markets(count)
    # a price grows with the third power of the expense, at most; few markets say about where it is
    known = costs[np.isfinite(costs)]
    usual = float(np.median(known)) if known.size else 1.0
    start = amount**3 / (4.0 * (usual or 1.0) ** 2)
    start = _largest(_Markets(roster, costs[:_FIRST]), amount, start, narrow=_ROUGHLY)
    markets, reserve = _Markets(roster, costs), None
    while True:
        found = markets.bought(start)
        if reserve is None:
            reserve = 0.5 * coin * float(found.sellers.mean())
            if not reserve < amount:
                raise MarketError("A budget must be more than half a coin for each seller, as payments are rounded up.")
        left, mean = amount - reserve, float(found.expense.mean())
        if _error(found) <= _WORST_ERROR * max(mean, left):
            start = _largest(markets, left, start)
            found = markets.bought(start)
            if not 1.0 - _OFF <= float(found.expense.mean()) / left <= 1.0 + _SAME:
                # a valley was left, or no price spends the budget
                start = _largest(replace(markets, follow=False), left, start)
                found = markets.bought(start)
            if _error(found) <= _WORST_ERROR * left:
                return PlannedPrice(start, float(found.expense.mean()), _error(found), count), reserve
        if 2 * count * roster.people > _MOST_DRAWS:
            raise MarketError(
                f"A price of the error cannot be planned: with {count} markets the mean payment would still have a"
                f" standard error above {_WORST_ERROR:.0%} of the budget. Choose a prior that is less spread out."
            )
        count *= 2
        markets = _Markets(roster, roster.markets(count))


def _error(found: Purchases) -> float:
    """Return the standard error of the mean expense."""
    return float(found.expense.std(ddof=1)) / math.sqrt(found.expense.size)


@dataclass(slots=True, eq=False)
class _Markets:
    """Some markets, and what was bought in them last."""

    roster: Roster
    costs: FloatArray
    follow: bool = True
    """Whether purchases are looked for near those that were found last."""

    price: float = 0.0
    strength: FloatArray | None = None

    def mean(self, price: float) -> float:
        """Return the mean expense at a price."""
        near = None
        if self.follow and self.strength is not None and _FOLLOWED < price / self.price < 1.0 / _FOLLOWED:
            power = math.log(price / self.price)
            ends = (_POWERS[0] * power, _POWERS[1] * power)
            near = self.strength * math.exp(min(ends) - _NARROW), self.strength * math.exp(max(ends) + _NARROW)
        found = self.roster.purchases(price, self.costs, near)
        self.price, self.strength = price, found.strength
        return float(found.expense.mean())

    def bought(self, price: float) -> Purchases:
        """Return what is bought at a price, the best valley looked for everywhere."""
        found = self.roster.purchases(price, self.costs)
        self.price, self.strength = price, found.strength
        return found


def _largest(markets: _Markets, amount: float, start: float, *, narrow: float = _NARROW) -> float:
    """Return the largest price whose mean is at most an amount, rounded down to four digits, by narrowing a bracket.

    The mean rises with the price and may jump. Where it levels off below the amount, no more can be spent: then it is
    the price from which on the mean hardly rises.
    """
    low, high, at_low = 0.0, math.inf, 0.0
    price, slope, before = start, 1.0 / 3.0, (math.nan, math.nan)
    for step in range(_MOST_STEPS):
        here = markets.mean(price)
        if here > amount:
            high = price
        else:
            if high == math.inf and 0.0 < low <= 1e-3 * price and here <= at_low * (1.0 + _SATURATED):
                break
            low, at_low = price, here
        if low > 0.0 and high <= low * (1.0 + narrow):
            break
        # a step of the secant method on logarithms, and when it is as short as the bracket, to the other side
        missed = math.log(here / amount) if here > 0.0 else -math.inf
        chord = (missed - before[1]) / (math.log(price) - before[0])
        slope = min(max(chord, _FLATTEST), _STEEPEST) if math.isfinite(chord) else slope
        before = (math.log(price), missed)
        move = min(max(-missed / slope, -_FARTHEST), _FARTHEST)
        if high == math.inf and chord < _FLATTEST:  # does the mean level off? compare prices that are far apart
            move = _FARTHEST
        if abs(move) < 0.8 * narrow:
            move = math.copysign(0.8 * narrow, amount - here or 1.0)
        price = price * math.exp(move)
        if not low < price < high or step > _SECANTS:
            far = math.exp(_FARTHEST) * low
            price = math.sqrt(low * high) if low > 0.0 and high < math.inf else max(far, min(high, 1e300) / 8.0)
    return rounded_down(low)


def rounded_down(price: float) -> float:
    """Return a price with four digits, rounded down: the last digits of a machine do not matter."""
    unit = 10.0 ** (math.floor(math.log10(price)) - _DIGITS + 1)
    return float(f"{math.floor(price / unit * (1.0 + 1e-12)) * unit:.{_DIGITS}g}")
