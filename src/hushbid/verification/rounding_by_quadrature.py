"""What rounding was expected to add to a budget, computed a second time.

The record states a budget ``B`` and a reserve ``r``. The reserve must be what rounding up to the coin adds on average
to the payments that ``B − r`` buys from people who bid as the priors say (docs/reference/record.md). Here the quantiles
are cut otherwise than where it was made, the losses come from the verifier's own rules, and payments are integrated
from them.
"""

import math
from collections.abc import Mapping

import numpy as np

from hushbid.allocation.goals import Budget
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.mechanism import Market
from hushbid.priors import Prior
from hushbid.verification.central_rule import CentralRule
from hushbid.verification.findings import Check, judged
from hushbid.verification.stated_numbers import Facts

_CELLS = 900
_CLOSE = 0.03
"""How far the stated reserve may be from the one found here: both are computed on cells."""

_LEAST = 1e-6
"""Of the budget; a smaller difference does not matter."""

_TOP, _UNSURE = 0.999, 0.1


def rounding_check(facts: Facts, goal: Budget) -> Check:
    """Whether the reserve is what rounding is expected to add."""
    reserve, found = goal.reserve or 0.0, _expected(facts, goal)
    off = abs(found - reserve)
    problems = []
    if not off <= _CLOSE * max(found, reserve) + _LEAST * goal.amount:
        problems.append(
            "What is kept of the budget for rounding does not follow from priors, coin and number of people"
        )
    money = facts.record.money
    if money is not None and goal.coin < 10.0**-money.decimals * (1.0 - 1e-12):
        problems.append("Payments are rounded to larger coins than the budget states")
    sentence = "What is kept of the budget for rounding follows from priors, coin and number of people"
    return judged("rounding", problems, sentence, reserve=reserve, computed=found)


def _expected(facts: Facts, goal: Budget) -> float:
    """What rounding adds on average to what the budget less the reserve buys."""
    kinds = _kinds(facts)
    size = max(_CELLS // len(kinds), 60)
    bids, costs, people, codes = [], [], [], []
    for prior, count, stratum in kinds:
        edges = _edges(size)
        top = 1.0 if prior.support[1] < math.inf else _TOP
        middles = np.asarray(prior.quantile(np.minimum(0.5 * (edges[:-1] + edges[1:]), top)))
        bids.append(np.append(middles, float(prior.quantile(top))))
        costs.append(np.asarray(prior.virtual_cost(middles)))
        people.append(count * np.diff(edges))
        codes.append(np.full(middles.size, stratum))
    cost, crowd = np.concatenate(costs), np.concatenate(people)
    cost = np.maximum(cost, 1e-9 * float(np.median(cost)))
    loss = _losses(facts, goal.available, cost, crowd, np.concatenate(codes)) / crowd
    parts = np.split(loss, np.cumsum([one.size for one in costs])[:-1])
    return goal.coin * sum(
        float(count @ _added(_paid(bid, np.minimum.accumulate(part)) / goal.coin))
        for bid, part, count in zip(bids, parts, people, strict=True)
    )


def _losses(facts: Facts, amount: float, costs: FloatArray, people: FloatArray, codes: IndexArray) -> FloatArray:
    """What all people of each cell lose together: they count as one, whose datum varies the less the more they are."""
    variance, cap = float(np.mean(facts.variance)) / people, _cap(facts.market)
    rule = CentralRule(costs, variance, cap * people, codes, facts.sizes, expense=amount)
    row = int(np.argmin(costs))
    return rule.everybody(row, float(costs[row]))[0]


def _cap(market: Market) -> float:
    """The largest cap that the buyer set; limits belong to bids."""
    return math.inf if market.max_privacy_loss is None else float(np.max(market.max_privacy_loss))


def _kinds(facts: Facts) -> list[tuple[Prior, float, int]]:
    """Everybody who was asked, by prior and stratum."""
    codes, asked = facts.codes, facts.market.population
    there = np.bincount(codes, minlength=facts.sizes.size)
    names = facts.market.strata_names
    if isinstance(asked, Mapping):
        rosters = np.array([asked[name] for name in names], dtype=float)
    else:
        rosters = there.astype(float) if asked is None else np.array([float(asked)])
    found = []
    for prior, rows in facts.groups:
        counts = np.bincount(codes[rows], minlength=there.size) / there * rosters
        found += [(prior, float(count), place) for place, count in enumerate(counts) if count > 0.0]
    return found


def _edges(size: int) -> FloatArray:
    """So many quantiles, half of them even and half ever closer to 0."""
    half = size // 2
    return np.unique(
        np.concatenate([[0.0], np.geomspace(3e-12, 1.0 / half, half), np.linspace(0.0, 1.0, half + 1), [_TOP]])
    )


def _paid(bids: FloatArray, loss: FloatArray) -> FloatArray:
    """``c·ε`` and the integral of ε over higher bids, by trapezes."""
    later = np.append(loss[1:], loss[-1])
    rent = np.cumsum((0.5 * (loss + later) * np.diff(bids))[::-1])[::-1]
    paid: FloatArray = bids[:-1] * loss + rent
    return paid


def _added(coins: FloatArray) -> FloatArray:
    """What rounding up adds on average to payments that are uncertain by a tenth, in coins."""
    before, after = np.append(coins[0], coins[:-1]), np.append(coins[1:], coins[-1])
    high, low = (1.0 + _UNSURE) * 0.5 * (coins + before), (1.0 - _UNSURE) * 0.5 * (coins + after)
    # whole coins in between, and what is left at both ends
    points = low[:, None] + (high - low)[:, None] * (np.arange(64) + 0.5)[None, :] / 64.0
    mean: FloatArray = (np.ceil(points) - points).mean(axis=1)
    return np.where(high > 0.0, mean, 0.0)
