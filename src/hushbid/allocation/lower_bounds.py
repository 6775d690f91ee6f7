"""A lower bound on the optimal objective of the local problem that never looks at a solution.

The dual bound, in normal form (`hushbid.allocation.local_problem`): for any price ``P ≥ 0`` of precision, a demand
``(κ, l, m)`` costs at least ``κ/Λ + P·Λ + Σ min(0, min_y ψ_i·y − P·q(y))`` at ``Λ = wanted(P)``; with a cap ``y`` only
runs up to it. An accuracy that strata divide, ``Σ u_g/Λ_g ≤ 1``, costs at least ``(Σ √(u_g·P_g))² + Σ_g Σ min(…)`` for
any prices, as ``Σ P_g·Λ_g`` is at least the square. The best prices are those at which ``Λ_g = s·√(u_g/P_g)`` is
supplied, with ``s = Σ √(u_g·P_g)``: the demand ``(s²u_g, 0, ∞)`` in each stratum.
"""

import math
from collections.abc import Sequence

import numpy as np

from hushbid.allocation.local_problem import Demand, Supply
from hushbid.common.arrays import FloatArray

_ROUNDING = 1e-11
_STEPS = 60


def dual_bound(costs: FloatArray, supply: Supply, demand: Demand) -> float:
    """The dual bound on what a demand of one list costs; or what the cheapest alone would take, if that is more."""
    bound = max(_best_price(costs, supply, demand)[1], _alone(float(costs.min()), supply, demand))
    return bound * (1.0 - _ROUNDING)


def _alone(cost: float, supply: Supply, demand: Demand) -> float:
    """What one person at the least cost would take, if they should supply no more than what is most for a loss.

    Up to there everybody together cost at least as much as one person, as the curve is steeper at less.
    """
    if demand.worth[0] == 0.0:
        loss = supply.curve.loss(np.minimum(demand.least, supply.best_precision))
        return cost * float(loss[0]) if demand.least[0] <= supply.best_precision else 0.0
    if cost == 0.0:
        return 0.0
    loss = supply.curve.alone(cost / demand.worth)
    found = demand.worth / supply.curve.precision(loss) + cost * loss
    return float(found[0]) if loss[0] <= supply.best_loss else 0.0


def divided_bound(strata: Sequence[FloatArray], supply: Supply, units: FloatArray) -> float:
    """The dual bound on what ``Σ units[g]/Λ_g ≤ 1`` costs; of one stratum, a demand for a precision."""
    if units.size == 1:
        return dual_bound(strata[0], supply, Demand.exactly(units))
    if sum(u / (np.count_nonzero(c == 0.0) * supply.top or 1e-300) for c, u in zip(strata, units, strict=True)) <= 1.0:
        return 0.0  # people who cost nothing are enough
    bound, ends, s = 0.0, [0.0, math.inf], math.sqrt(float(units.max()))
    for _ in range(_STEPS):
        every = [_best_price(c, supply, Demand.price(s * s * u)) for c, u in zip(strata, units, strict=True)]
        roots = math.fsum(math.sqrt(u * price) for u, (price, _) in zip(units, every, strict=True))
        # what each says is 2s·√(uP) + Σ min(…): replace the first terms, which add up to 2s·roots
        bound = max(bound, math.fsum(value for _, value in every) + roots * (roots - 2.0 * s))
        ends[roots < s] = s
        ahead = roots if ends[0] < roots < ends[1] else math.inf
        if abs(roots - s) <= 1e-7 * s or ends[1] - ends[0] <= 1e-7 * ends[0]:
            break
        s = _between(ends, ahead)
    return bound * (1.0 - _ROUNDING)


def _between(ends: list[float], ahead: float) -> float:
    """The next number to try between two ends: their mean by ratio, or far out if one is not known."""
    if ends[1] == math.inf:
        return max(4.0 * ends[0], ahead if ahead < math.inf else 0.0)
    return math.sqrt(ends[0] * ends[1]) if ends[0] > 0.0 else min(0.25 * ends[1], ahead)


def _best_price(costs: FloatArray, supply: Supply, demand: Demand) -> tuple[float, float]:
    """The price at which those who are worth their cost supply what is wanted, and the dual value there."""
    # nobody sells below; then by ever larger factors until supply meets demand
    low, factor = max(float(costs.min()) / supply.worthwhile, 1e-300), 2.0
    high = low * factor
    while True:
        people = np.sort(costs[costs <= high * supply.worthwhile])
        if _dual(people, high, supply, demand)[0] >= 0.0 or not high < 1e300:
            break
        low, factor = high, min(factor * factor, 1e30)
        high = min(low * factor, 1e300)
    wanted = float(demand.wanted(np.array([high]))[0])
    # of many people it is enough to come so near: the bound is off by the square, or by one person in so many
    close = min(max(1e-12 * wanted, 1e-12), 1e-7)
    while high - low > close * high:
        middle = 0.5 * (low + high) if high < 4.0 * low else math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if _dual(people, middle, supply, demand)[0] > 0.0 else (middle, high)
    # the bound holds at every price, so at both ends
    return max(((price, _dual(people, price, supply, demand)[1]) for price in (low, high)), key=lambda one: one[1])


def _dual(costs: FloatArray, price: float, supply: Supply, demand: Demand) -> tuple[float, float]:
    """How much more is supplied than wanted at a price, by people in the order of their costs, and the dual value."""
    active = costs[: int(np.searchsorted(costs, price * supply.worthwhile, side="right"))]
    short, spent, _ = supply.terms(active / price).sum(axis=1).tolist()
    supplied, wanted = active.size * supply.top - short, demand.wanted(np.array([price]))
    error, least = float(demand.cost(wanted)[0]), price * float(wanted[0])
    return supplied - float(wanted[0]), error + least + price * (spent - supplied) - 1e-15 * (least + price * supplied)
