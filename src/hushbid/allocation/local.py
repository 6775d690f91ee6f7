"""The local optimum, exactly: the cheapest k people, all at their high root, and one scalar equation per k.

Divide costs by ``A·V^{3/2}`` and losses by ``V^{-1/2}``; then ``J = 1/Λ + Σ ψ_i y_i`` with ``Λ = Σ q(y_i)`` and
``q(y) = y²/(y² + 2)``. Where ``y_i > 0``, ``q'(y_i) = ψ_i/P`` with ``P = 1/Λ²``, and ``q'`` has a rising and a falling
branch, so a low and a high root. [F] Thm. 4 and Algorithm 2 search both on a grid. The grid is not needed
(``docs/explanation/algorithms.md`` has the proofs):

* the active people are the cheapest ``k``; for ``k ≥ 2`` all are at the high root; for ``k = 1``, ``y = (4/ψ_1)^{1/3}``;
* for each ``k ≥ 2`` one increasing equation, ``Σ_{j≤k} q(y_j(P)) = P^{-1/2}``, gives ``P_k`` and ``J_k = √P_k + Σ ψ_j y_j``;
* on the high branch the cost of supplying ``q`` is convex, so for every ``P``, ``J_k ≥ 2√P + Σ_{j≤k} (ψ_j y_j − P q_j)``.
  At ``P = P_k`` the terms of the first ``k`` add up to ``J_k``, and a term is negative exactly when
  ``ψ_j < P/(2√2)``. Hence ``k`` is best among all ``k ≥ 2`` once ``ψ_k ≤ P_k/(2√2) ≤ ψ_{k+1}``, and otherwise
  only two neighbours need comparing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation.certificate import local_lower_bound
from hushbid.allocation.problem import Problem
from hushbid.allocation.solution import Allocation, FloatArray
from hushbid.errors import InputError

STEEPEST: float = 3.0 * math.sqrt(3.0) / (8.0 * math.sqrt(2.0))
"""The largest slope of ``q``, at ``y = √(2/3)``: above it there is no root."""

WORTHWHILE: float = 1.0 / (2.0 * math.sqrt(2.0))
"""Somebody is worth her cost at price ``P`` exactly if ``ψ ≤ P`` times this, the largest ``q(y)/y``."""

_S = 2.0 * math.sqrt(8.0 / 3.0)
_FEW = 24
_SELECT_ABOVE = 1 << 15
_SAMPLE = 1 << 13
_TINY, _HUGE = 1e-200, 1e180


def high_root(ratio: FloatArray) -> FloatArray:
    """The larger ``y`` with ``q'(y) = 4y/(y² + 2)² = ratio``, for ``0 < ratio ≤ STEEPEST``, in closed form.

    With ``z = √y`` it is the quartic ``z⁴ − b·z + 2 = 0``, ``b = 2/√ratio``, whose resolvent ``s³ − 8s − b² = 0`` has
    one positive root, a hyperbolic cosine.
    """
    s = _S * np.cosh(np.arccosh(np.maximum(STEEPEST / ratio, 1.0)) / 3.0)
    root = np.sqrt(s)
    z = 0.5 * (root + np.sqrt(np.maximum(4.0 / (np.sqrt(ratio) * root) - s, 0.0)))
    y: FloatArray = z * z
    return y


@dataclass(frozen=True, slots=True)
class Balance:
    """The stationary point with the cheapest ``count`` people active, in normal form."""

    count: int
    value: float
    """``J_k``."""

    price: float
    """``P_k``."""


def solve_local(problem: Problem) -> Allocation:
    """The global optimum of the local problem (one variance for all)."""
    variance = problem.variance
    assert isinstance(variance, float)
    if variance == 0.0:
        return _allocation(problem, 1.0, Balance(1, math.nan, math.nan), _cheapest(problem, 1), noise_only=True)
    scale = problem.error_weight * variance**1.5
    if problem.cheapest > 0.0 and not _TINY <= problem.cheapest / scale <= _HUGE:
        raise InputError(
            f"error_weight={problem.error_weight:g} and variance={variance:g} put the cheapest virtual cost outside what"
            f" can be computed; error_weight * variance**1.5 must be within 1e180 of it."
        )
    ordered = _cheap_ones(problem.costs, scale)
    best = best_count(ordered)
    while best.count + 1 >= ordered.size and ordered.size < problem.costs.size and ordered[-1] < math.inf:
        more = min(4 * ordered.size, problem.costs.size - 1)
        ordered = np.sort(np.partition(problem.costs, more)[: more + 1]) / scale
        best = best_count(ordered)
    return _allocation(problem, variance, best, _cheapest(problem, best.count), noise_only=False)


def best_count(costs: FloatArray) -> Balance:
    """The best number of active people and their balance, for ``costs`` sorted ascending, in normal form."""
    alone = _alone(float(costs[0]))
    if costs.size == 1 or costs[1] == math.inf:
        return alone
    count = _first_guess(costs) if costs.size > _FEW else 2
    seen: dict[int, Balance | None] = {}
    guess = 1.0
    while True:
        if count not in seen:
            seen[count] = balance(costs, count, guess)
        here = seen[count]
        if here is None:  # too many: even at the least price they supply too much
            following = count - 1
        else:
            guess = here.price
            worthwhile = int(np.searchsorted(costs, here.price * WORTHWHILE, side="right"))
            following = count + (worthwhile > count) - (worthwhile < count)
            if following == count + 1 and following + 2 < worthwhile and following + 2 not in seen:
                following = (count + worthwhile) // 2
        following = max(following, 2)
        if following == count or following in seen:
            break
        count = following
    best = min((found for found in seen.values() if found is not None), key=lambda found: found.value, default=alone)
    return best if best.value < alone.value else alone


def balance(costs: FloatArray, count: int, guess: float) -> Balance | None:
    """The price at which the cheapest ``count`` people, all at their high root, supply ``Λ = P^{-1/2}``; None if none."""
    last = float(costs[count - 1])
    if last == math.inf:
        return None
    free = int(np.searchsorted(costs[:count], 0.0, side="right")) if costs[0] == 0.0 else 0
    paid = costs[free:count]
    if paid.size == 0:
        return Balance(count, 1.0 / count, 1.0 / (count * count))
    few = paid.tolist() if paid.size <= _FEW else None

    def replies(price: float) -> tuple[float, float, float]:
        """``Σ q``, ``Σ ψ·y`` and ``P·d(Σ q)/dP``."""
        return _replies_of_few(few, price) if few is not None else _replies(paid, price)

    least = last / STEEPEST * (1.0 + 1e-14)
    price = max(guess, least)
    low, high = least, math.inf
    for step in range(100):
        supply, spent, slope = replies(price)
        supply += free
        target = price**-0.5
        excess = supply - target
        if price <= least and excess > 0.0:
            return None
        if excess > 0.0:
            high = price
        else:
            low = price
        move = -excess / (slope + 0.5 * target)
        if abs(move) < 1e-13 or step == 99:
            break
        proposed = price * math.exp(min(max(move, -3.0), 3.0))
        if not low < proposed < high:
            proposed = max(least, math.sqrt(low * high)) if high < math.inf else 2.0 * price
        if proposed == price:
            break
        price = proposed
    return Balance(count, 2.0 * math.sqrt(price) + spent - price * supply, price)


def _replies(costs: FloatArray, price: float) -> tuple[float, float, float]:
    y = high_root(costs / price)
    square = y * y
    q = square / (square + 2.0)
    return float(q.sum()), float(costs.dot(y)), float((4.0 * q / np.maximum(3.0 * square - 2.0, 1e-9)).sum())


def _replies_of_few(costs: Sequence[float], price: float) -> tuple[float, float, float]:
    """The same in scalars: for a handful of people quicker than arrays."""
    acosh, cosh, sqrt = math.acosh, math.cosh, math.sqrt
    supply = spent = slope = 0.0
    for cost in costs:
        ratio = cost / price
        s = _S * cosh(acosh(max(STEEPEST / ratio, 1.0)) / 3.0)
        root = sqrt(s)
        z = 0.5 * (root + sqrt(max(4.0 / (sqrt(ratio) * root) - s, 0.0)))
        y = z * z
        square = y * y
        q = square / (square + 2.0)
        supply += q
        spent += cost * y
        slope += 4.0 * q / max(3.0 * square - 2.0, 1e-9)
    return supply, spent, slope


def _alone(cost: float) -> Balance:
    """Only the cheapest: ``1 + 2/y² + ψ·y`` at ``y = (4/ψ)^{1/3}``."""
    if cost == 0.0:
        return Balance(1, 1.0, 1.0)
    y = (4.0 / cost) ** (1.0 / 3.0)
    return Balance(1, 1.0 + 2.0 / (y * y) + cost * y, (1.0 + 2.0 / (y * y)) ** 2)


def _first_guess(costs: FloatArray) -> int:
    """How many are worthwhile at the best dual price, by a short bisection; a starting point, not a result."""
    high, low = 4.0 + 4.0 * math.sqrt(2.0) * float(costs[0]), 1.0 / float(costs.size) ** 2
    count = 2
    for _ in range(18):
        price = math.sqrt(low * high)
        count = int(np.searchsorted(costs, price * WORTHWHILE, side="right"))
        free = int(np.searchsorted(costs[:count], 0.0, side="right"))
        supply = free + (_replies(costs[free:count], price)[0] if count > free else 0.0)
        if supply > price**-0.5:
            high = price
        else:
            low = price
    return min(max(count, 2), int(np.searchsorted(costs, math.inf)))


def _cheap_ones(costs: FloatArray, scale: float) -> FloatArray:
    """The cheapest people, sorted, in normal form: everybody, or as many as a sample suggests and some to spare."""
    if costs.size <= _SELECT_ABOVE:
        ordered: FloatArray = np.sort(costs) / scale
        return ordered
    step = costs.size // _SAMPLE
    sample = np.sort(costs[::step])
    # Each of the sample stands for `step` people: Λ grows by that factor, so the error weight shrinks by its square.
    count = best_count(sample / (scale / step**2)).count if sample[0] < math.inf else 1
    spare = min(count + int(4.0 * math.sqrt(count)) + 8, sample.size - 1)
    return np.sort(costs[costs <= sample[spare]]) / scale


def _cheapest(problem: Problem, count: int) -> NDArray[np.intp]:
    """Rows of the ``count`` cheapest people, the tie key choosing among equals at the margin."""
    costs = problem.costs
    margin = problem.cheapest if count == 1 else float(np.partition(costs, count - 1)[count - 1])
    rows = np.flatnonzero(costs <= margin)
    if rows.size == count:
        return rows
    tied = costs[rows] == margin
    surely = rows[~tied]
    return np.sort(np.concatenate([surely, problem.first(rows[tied], count - surely.size)]))


def _allocation(
    problem: Problem, unit: float, best: Balance, rows: NDArray[np.intp], *, noise_only: bool
) -> Allocation:
    """Back from normal form to the caller's units and order."""
    n, scale = problem.costs.size, problem.error_weight * unit**1.5
    costs = problem.costs[rows] / scale
    y = np.full(rows.size, np.inf)
    paid = costs > 0.0
    if best.count == 1:
        y[paid] = (4.0 / costs[paid]) ** (1.0 / 3.0)
    else:
        y[paid] = high_root(costs[paid] / best.price)
    precision = np.ones(rows.size)
    inverse = 2.0 / (y * y)
    precision = 1.0 / (inverse if noise_only else 1.0 + inverse) if not (noise_only and y[0] == np.inf) else precision
    supply = float(precision.sum())
    weights, privacy_loss = np.zeros(n), np.zeros(n)
    weights[rows], privacy_loss[rows] = precision / supply, y / math.sqrt(unit)
    mse = 0.0 if noise_only and y[0] == np.inf else unit / supply
    return Allocation(
        privacy_loss=privacy_loss,
        weights=weights,
        mse=mse,
        objective=problem.error_weight * mse + problem.error_weight * unit * float(costs[paid].dot(y[paid])),
        active=int(rows.size),
        setting="local",
        error_weight=problem.error_weight,
        _certify=partial(local_lower_bound, problem.costs, problem.variance, problem.error_weight),  # type: ignore[arg-type]
    )
