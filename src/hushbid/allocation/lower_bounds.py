"""Lower bounds on the optimal objective of the local problem that never look at a solution.

The dual bound: for any ``P ≥ 0``, ``2√(AP) + Σ min(0, min_y ψ_i·y − P·q(y))`` is at most the optimum; so is
``P/r² + Σ min(0, min_y ψ_i·y − P·q(y))`` at most what an error of ``r²`` costs. With a cap ``y`` only runs up to it.
"""

import math

import numpy as np

from hushbid.allocation.problem import HUGE, MOST
from hushbid.common.arrays import FloatArray, IndexArray

_WORTHWHILE = 1.0 / (2.0 * math.sqrt(2.0))
_WORTHWHILE_RESPONSE, _ENOUGH_RESPONSE = 0.5825829083651485, 0.6342344133498707
_MOST_WORTHWHILE = 0.6
_ROUNDING = 1e-11


def local_lower_bound(
    costs: FloatArray, variance: float, error_weight: float, max_loss: float = math.inf, response: bool = False
) -> float:
    """The dual bound at its best ``P``, found by bisection on its slope; or what noise alone costs, if that is more."""
    noise = 0.0 if response else _noise_alone(float(costs.min()), error_weight)
    scale = error_weight * variance * math.sqrt(variance)
    if float(costs.min()) > HUGE * scale:
        return noise
    with np.errstate(over="ignore"):
        costs = costs / scale
    best = _best_dual(costs, max_loss * math.sqrt(variance), response, 1.0, 0.5)
    return max(error_weight * variance * best * (1.0 - _ROUNDING), noise)


def local_accuracy_lower_bound(
    costs: FloatArray, variance: float, standard_error: float, max_loss: float = math.inf, response: bool = False
) -> float:
    """The dual bound on what this root mean squared error costs; or what the cheapest alone would, if that is more.

    Up to the precision at which most is had for a loss, ``enough``, everybody together cost at least what one person at
    the least cost would take.
    """
    cheapest, square = float(costs.min()), standard_error**2
    enough = _ENOUGH_RESPONSE if response else 0.5
    alone = min(variance, enough * square)
    if response:
        least = cheapest * math.atanh(math.sqrt(alone / square)) / math.sqrt(variance)
    else:
        least = cheapest * math.sqrt(2.0 / (square - alone)) * math.sqrt(alone / variance)
    free = int(np.count_nonzero(costs == 0.0))
    top = 1.0 if max_loss == math.inf else _precision(max_loss * math.sqrt(variance), response)
    needed = variance / square
    if needed <= free * top:
        return 0.0
    if max_loss == math.inf and needed <= enough:
        return least * (1.0 - _ROUNDING)
    some = costs[costs <= MOST]
    unit = float(some.min(initial=math.inf, where=some > 0.0))
    best = _best_dual(some / unit, max_loss * math.sqrt(variance), response, needed, 0.0)
    return max(best * unit / math.sqrt(variance), least) * (1.0 - _ROUNDING)


def _best_dual(costs: FloatArray, cap: float, response: bool, amount: float, elasticity: float) -> float:
    """The largest dual value in normal form, where supply meets the demand ``amount·P^{-elasticity}``."""

    def demand(price: float) -> float:
        return float(amount * price**-elasticity)

    # nobody sells below: the largest q(y)/y is less than 0.6
    low = max(float(costs.min()), 1e-300)
    high = 2.0 * low
    for _ in range(2200):  # double until supply meets demand: a number cannot be doubled more often
        people = np.unique(costs[costs <= high * _MOST_WORTHWHILE], return_counts=True)
        if _responses(*people, high, cap, response)[0] >= demand(high) or not high < 1e300:
            break
        low, high = high, 2.0 * high
    # of many people it is enough to come so near: the bound is off by the square, or by one person in so many
    close = min(max(1e-12 * amount, 1e-12), 1e-7)
    while high - low > close * high:
        middle = 0.5 * (low + high)
        if _responses(*people, middle, cap, response)[0] > demand(middle):
            high = middle
        else:
            low = middle
    # the bound holds at every P, so at both ends
    return max(p * demand(p) / (1.0 - elasticity) + _responses(*people, p, cap, response)[1] for p in (low, high))


def _noise_alone(cost: float, error_weight: float) -> float:
    """Without sampling variance: ``min over S of 2A/S² + ψS``, as every loss costs at least the cheapest's price."""
    return float(1.5 * (4.0 * error_weight) ** (1.0 / 3.0) * cost ** (2.0 / 3.0) * (1.0 - _ROUNDING))


def _precision(loss: float, response: bool) -> float:
    """``q`` at one loss."""
    return math.tanh(loss) ** 2 if response else loss * loss / (loss * loss + 2.0)


def _responses(costs: FloatArray, people: IndexArray, price: float, cap: float, response: bool) -> tuple[float, float]:
    """``Σ q`` and ``Σ (ψ·y − P·q)`` over those whose best reply to the dual price is not zero; so many at each cost."""
    # worthwhile up to the largest q(y)/y, which is at the loss for `enough` or at the cap
    best = math.atanh(math.sqrt(_ENOUGH_RESPONSE)) if response else math.sqrt(2.0)
    most = _WORTHWHILE_RESPONSE if response else _WORTHWHILE
    if cap < best:
        most = _precision(cap, response) / cap
    active = int(np.searchsorted(costs, price * most, side="right"))
    paid, many = costs[:active], people[:active]
    free = int(many[0]) if active and paid[0] == 0.0 else 0
    if free:
        paid, many = paid[1:], many[1:]
    free_supply = free * (_precision(cap, response) if cap < math.inf else 1.0)
    y, q = _answers(paid / price) if response else _noisy(paid / price)
    if cap < math.inf:
        capped = y > cap
        y, q = np.where(capped, cap, y), np.where(capped, _precision(cap, response), q)
    supply = free_supply + float(many.dot(q))
    return supply, float(many.dot(np.minimum(paid * y - price * q, 0.0))) - price * (free_supply + 1e-15 * supply)


def _noisy(ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``y`` and ``q`` at the larger root of ``q'(y) = 4y/(y² + 2)² = r``: by Newton for ``√y``, from the right."""
    # with z = √y, z⁴ − 2z/√r + 2 = 0
    slope = 2.0 / np.sqrt(ratio)
    z = np.cbrt(slope)
    for _ in range(60):
        step = (z * (z * z * z - slope) + 2.0) / (4.0 * z * z * z - slope)
        z -= step
        if not (step > 1e-15 * z).any():
            break
    y = z * z
    return y, y * y / (y * y + 2.0)


def _answers(ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``y`` and ``q = tanh²y`` at the larger root of ``q'(y) = 2t(1 − t²) = r``: by Newton in ``s = 1 − t``, from 0."""
    s = 0.25 * ratio
    for _ in range(60):
        step = (ratio - 2.0 * s * (1.0 - s) * (2.0 - s)) / (4.0 - 12.0 * s + 6.0 * s * s)
        s = s + step
        if not (step > 1e-16 * s).any():
            break
    return 0.5 * np.log((2.0 - s) / s), (1.0 - s) ** 2
