"""A planned price once more, for verification: what drawn markets cost at it, and just above.

The price of a budget that is met on average is the largest, to four digits, at which the mean expense of drawn markets
is at most the budget. The search for it is not repeated: the markets are drawn again by their definition (seed and
order as in docs/concepts/purchase.md), and their mean must be at most the budget at the price and above it
just above. Every market's purchase is found by other means than the library's: centrally water levels by halving,
on a grid of strengths of the noise that is cut finer around the best; locally as `hushbid.verification.local_rule`.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hushbid.allocation.goals import Budget, PlannedPrice
from hushbid.common.arrays import FloatArray
from hushbid.mechanism.combinations import state_of
from hushbid.verification.findings import Check, incomplete, judged
from hushbid.verification.local_curve import COIN, LAPLACE
from hushbid.verification.local_rule import LocalRule
from hushbid.verification.stated_numbers import Facts

_SEED = 0x68757368626964
_FIRST, _FEWEST, _DRAWS = 400, 25, 100_000
_MOST_DRAWS = 1 << 23
_LIMIT = 0.01
_CLOSE = 1e-6
_JUST_ABOVE = 2e-3
"""A price of four digits, rounded down, is within this part of the largest."""

_RESERVED = 0.1
"""What is kept for rounding is for the sellers of a slightly larger budget."""

_GRID, _FINER, _HALVINGS = 40, 9, 60


def planned_price_checks(facts: Facts) -> Iterator[Check]:
    """Whether a budget that is met on average has the price that its definition says."""
    goal, name = facts.market.goal, "planned price"
    if not isinstance(goal, Budget):
        return
    stated = facts.market.combination
    limits = facts.outcome.limits is not None
    average = "on average" in (state_of(stated), _with_limits(facts) if limits else "")
    if goal.planned is None or not average:
        if average or goal.planned is not None:
            yield judged(name, ["A price is planned where, and only where, a budget is met on average"], "")
        return
    if facts.market.population is None:
        yield judged(name, ["The roster is not stated for which a price was planned"], "")
        return
    if facts.roster * goal.planned.markets > _MOST_DRAWS:
        yield incomplete(name, "Not checked: the price was planned with more draws than a verification makes")
        return
    drawn = _Drawn(facts, goal.planned.markets)
    yield _compared(facts, goal, goal.planned, drawn)


def _with_limits(facts: Facts) -> str:
    return state_of(replace(facts.market.combination, limits=True))


def _compared(facts: Facts, goal: Budget, plan: PlannedPrice, drawn: "_Drawn") -> Check:
    problems = []
    first = max(_FEWEST, min(_FIRST, _DRAWS // facts.roster))
    doublings = math.log2(plan.markets / first)
    if doublings < 0.0 or doublings != int(doublings):
        problems.append("The number of draws is not one that its definition allows")
    price = plan.price * facts.population.unit
    here, sellers = drawn.purchases(price)
    error = _error(here)
    if not (_near(plan.mean, float(here.mean())) and _near(plan.standard_error, error)):
        problems.append("Mean and standard error are not those of the draws at this price")
    if not error <= _LIMIT * goal.available * (1.0 + _CLOSE):
        problems.append("The standard error is above 1 % of the budget")
    half = here[: plan.markets // 2]
    if plan.markets > first and not _error(half) > 0.9 * _LIMIT * goal.available:
        problems.append("There are more draws than the standard error asks for")
    if not float(here.mean()) <= goal.available * (1.0 + _CLOSE):
        problems.append("The mean expense at the planned price is above the budget")
    above = drawn.purchases(price * (1.0 + _JUST_ABOVE))[0]
    spent = float(above.mean()) >= goal.available * (1.0 - _CLOSE)
    if not spent and not _near(float(drawn.purchases(1e3 * price)[0].mean()), float(here.mean())):
        problems.append("A higher price would meet the budget, too")
    reserve = 0.5 * goal.coin * float(sellers.mean())
    if not abs((goal.reserve or 0.0) - reserve) <= _RESERVED * reserve:
        problems.append("What is kept for rounding is not half a coin for each seller")
    kept = "; limits that people stated are in no draw" if facts.outcome.limits is not None else ""
    return judged(
        "planned price",
        problems,
        f"The price is the largest whose mean expense over the draws is at most the budget{kept}",
        markets=plan.markets,
        mean=float(here.mean()),
        mean_just_above=float(above.mean()),
        standard_error=error,
    )


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other))


def _error(expenses: FloatArray) -> float:
    return float(expenses.std(ddof=1)) / math.sqrt(expenses.size)


class _Drawn:
    """The markets of a roster, drawn by their definition."""

    def __init__(self, facts: Facts, markets: int) -> None:
        population = facts.population
        self._facts = facts
        self._sizes = np.ones(1) if facts.strata is None else np.abs(facts.strata.weights)
        kinds = self._kinds(facts)
        people = sum(count for *_, count in kinds)
        raw = np.random.PCG64(_SEED).random_raw(markets * people).reshape(markets, people)
        levels = ((raw >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
        self._costs = np.empty((markets, people))
        self._codes = np.repeat([kind[0] for kind in kinds], [kind[-1] for kind in kinds])
        self._variance, self._caps = np.empty(people), np.empty(people)
        start = 0
        for _, group, variance, cap, count in kinds:
            part = slice(start, start + count)
            prior = population.groups[group].prior
            share = facts.market.expected_share
            costs = prior.virtual_cost(prior.quantile(np.minimum(levels[:, part] / share, 1.0)))
            self._costs[:, part] = np.where(levels[:, part] <= share, costs, math.inf)
            self._variance[part], self._caps[part] = variance, cap
            start += count
        # where a stratum has no sellers nothing is bought
        sold = [np.isfinite(self._costs[:, self._codes == code]).any(axis=1) for code in range(self._sizes.size)]
        self._open = np.all(sold, axis=0)
        self._costs = self._costs[self._open]

    @staticmethod
    def _kinds(facts: Facts) -> list[tuple[int, int, float, float, int]]:
        """Stratum, group, variance, cap and number of all people of the roster, in this order."""
        stated = facts.market.max_privacy_loss
        caps = np.array(np.broadcast_to(np.asarray(math.inf if stated is None else stated), (facts.people,)))
        if facts.roster > facts.people:
            return [
                (code, 0, float(facts.variance[0]), float(caps[0]), count) for code, count in enumerate(facts.counts)
            ]
        codes = np.zeros(facts.people) if facts.strata is None else facts.strata.codes
        everybody = sorted(
            zip(
                codes.tolist(),
                facts.population.group_codes.tolist(),
                facts.variance.tolist(),
                caps.tolist(),
                strict=True,
            )
        )
        found: dict[tuple[int, int, float, float], int] = {}
        for code, group, variance, cap in everybody:
            key = (int(code), int(group), variance, cap)
            found[key] = found.get(key, 0) + 1
        return [(*key, count) for key, count in found.items()]

    def purchases(self, price: float) -> tuple[FloatArray, FloatArray]:
        """What each market costs at a price, and how many people sell."""
        losses = self._central(price) if self._facts.central else self._local(price)
        bought = np.where((losses > 0.0) & (self._costs > 0.0), self._costs, 0.0)
        paid, sellers = np.zeros(self._open.size), np.zeros(self._open.size)
        paid[self._open] = (bought * np.where(bought > 0.0, losses, 0.0)).sum(axis=1)
        sellers[self._open] = np.count_nonzero(losses, axis=1)
        return paid, sellers

    def _local(self, price: float) -> FloatArray:
        losses = np.zeros(self._costs.shape)
        curve = COIN if self._facts.by_coin else LAPLACE
        for market, costs in enumerate(self._costs):
            for code, size in enumerate(self._sizes.tolist()):
                rows = np.flatnonzero(self._codes == code)
                rule = LocalRule(
                    costs[rows], float(self._variance[0]), price * size**2, cap=float(self._caps[0]), curve=curve
                )
                losses[market, rows] = rule.everybody(0, float(costs[rows[0]]))[0]
        return losses

    def _central(self, price: float) -> FloatArray:
        """The best strength of the noise on ever finer grids of each market."""
        caps = np.where(np.isfinite(self._costs), self._caps, 0.0)
        most = np.min(
            [caps[:, self._codes == code].sum(axis=1) / size for code, size in enumerate(self._sizes)], axis=0
        )
        cheapest = sum(
            size * self._costs[:, self._codes == code].min(axis=1) for code, size in enumerate(self._sizes.tolist())
        )
        start = np.minimum(np.cbrt(4.0 * price / cheapest), most)
        value = self._filled(price, start)[0]
        low, high = np.minimum(np.sqrt(2.0 * price / value), most), np.minimum(value / cheapest, most)
        for points in (_GRID, *[_FINER] * 14):
            steps = np.linspace(0.0, 1.0, points)
            values = np.array([self._filled(price, low + (high - low) * step)[0] for step in steps.tolist()])
            best = np.argmin(values, axis=0)
            left, right = steps[np.maximum(best - 1, 0)], steps[np.minimum(best + 1, points - 1)]
            low, high = low + (high - low) * left, low + (high - low) * right
        return self._filled(price, 0.5 * (low + high))[1]

    def _filled(self, price: float, strength: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Objective and losses at a strength of the noise, water levels by halving."""
        losses = np.zeros(self._costs.shape)
        weight = (price / strength**2)[:, None]
        for code, size in enumerate(self._sizes.tolist()):
            rows = np.flatnonzero(self._codes == code)
            costs, slope, caps = self._costs[:, rows], 2.0 * weight * self._variance[rows], self._caps[rows]
            wanted = (size * strength)[:, None]
            low = costs.min(axis=1, keepdims=True)
            high = np.where(costs < math.inf, costs + slope * np.minimum(caps, wanted), low).max(axis=1, keepdims=True)
            for _ in range(_HALVINGS):
                level = 0.5 * (low + high)
                enough = np.clip((level - costs) / slope, 0.0, caps).sum(axis=1, keepdims=True) >= wanted
                low, high = np.where(enough, low, level), np.where(enough, level, high)
            losses[:, rows] = np.clip((high - costs) / slope, 0.0, caps)
        noise = 2.0 + (self._variance * losses**2).sum(axis=1)
        paid = np.where(losses > 0.0, self._costs, 0.0) * losses
        return weight[:, 0] * noise + paid.sum(axis=1), losses
