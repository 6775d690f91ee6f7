"""What no purchase for a contrast can beat, found without looking at one.

Price: the pieces of ``g(a) + κ·a^{2/3}`` and their chords, as without strata (:mod:`hushbid.allocation.lower_bounds`).
Accuracy and budget: for any levels ``τ_g``, one per stratum, Cauchy's inequality gives

    η·Σ|ℓ_g|τ_g = Σ τ_g ε_i ≤ expense + √(Σ V ε²)·√H,      H = Σ_i u_i (τ_g − ψ_i)⁺²,

so an error of ``r²`` costs at least ``√(2(τ̄²/r² − H))``, ``τ̄ = Σ|ℓ_g|τ_g``, and nothing for ``B`` has an error below
``τ̄²/(B²/2 + H)``. The levels that belong to one ``T`` make both tight at the best ``T``.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation.contrast.problem import LEAST, MOST, Scaled
from hushbid.allocation.goals import Goal
from hushbid.allocation.lower_bounds import bound_over_pieces, error_at_level, expense_at_level
from hushbid.allocation.problem import HUGE, TINY, Problem
from hushbid.arrays import FloatArray
from hushbid.estimation import Strata

_ROUNDING = 1e-11


def least_contrast(problem: Problem, strata: Strata) -> float:
    """The bound of a problem that has not been solved; refused where there is nobody to buy from."""
    Scaled.of(problem, strata)
    goal = problem.goal
    return contrast_lower_bound(problem.costs, problem.variance, goal.number, goal=goal, strata=strata)


def contrast_lower_bound(
    costs: FloatArray, variance: float | FloatArray, number: float, *, goal: Goal, strata: Strata
) -> float:
    """At most the optimal objective, and within 1e-9 of it."""
    spread = np.broadcast_to(variance, costs.shape)
    people = []
    for stratum, weight in enumerate(np.abs(strata.weights).tolist()):
        rows = np.flatnonzero((strata.codes == stratum) & (costs < math.inf))
        rows = rows[np.argsort(costs[rows], kind="stable")]
        people.append((weight, costs[rows], 1.0 / spread[rows]))
    if goal.kind == "price":
        return _price(people, number)
    return _level(people, number, accurate=goal.kind == "accuracy")


_People = list[tuple[float, FloatArray, FloatArray]]
"""Of each stratum ``|ℓ|``, the sorted costs and the precisions."""


def _price(people: _People, error_weight: float) -> float:
    together = sum(weight for weight, _, _ in people)
    most = max(float(mass.max()) for _, _, mass in people)
    factor = together * together / most
    scale = error_weight * factor / math.sqrt(most)
    parts = [_parts(weight / together, costs, mass / most, scale) for weight, costs, mass in people]
    base = sum(weight / together * min(float(costs[0]), HUGE * scale) / scale for weight, costs, _ in people)
    key = np.concatenate([part[0] for part in parts])
    order = np.argsort(key, kind="stable")
    key = key[order]
    # each stratum's sum is that of its last person so far
    mean, spread, floor = (
        sum(part[i][0] for part in parts)
        + np.concatenate([np.append(0.0, np.diff(part[i])) for part in parts])[order].cumsum()
        for i in (1, 2, 3)
    )
    # a where each piece begins
    left = np.append(0.0, (mean[:-1] * np.diff(key)).cumsum())
    np.divide(left, key, out=left, where=key > 0.0)
    left += base
    right = np.maximum(np.append(left[1:], base + mean[-1]), left)
    pieces = (np.asarray(one, dtype=np.float64) for one in (left, right, floor, base + mean, np.maximum(spread, 0.0)))
    return error_weight * factor * bound_over_pieces(*pieces)


def _parts(size: float, costs: FloatArray, mass: FloatArray, scale: float) -> tuple[NDArray[Any], ...]:
    """``G/λ`` at everybody's cost, and ``λm``, ``Q`` and ``λ²/U`` of those up to and with her."""
    within = _limited(costs, TINY * scale, HUGE * scale)
    offset = ((within - within[0]) / scale).astype(np.longdouble)
    each = mass.astype(np.longdouble)
    total, first = each.cumsum(), (each * offset).cumsum()
    spread = np.maximum((each * offset * offset).cumsum() - first * first / total, 0.0)
    return np.maximum.accumulate(total * offset - first) / size, size * first / total, spread, size * size / total


def _limited(costs: FloatArray, least: float, most: float) -> FloatArray:
    """Costs that squares can be computed of, none of them higher than it was."""
    return np.minimum(np.where(costs < least, 0.0, costs), most)


def _level(people: _People, number: float, *, accurate: bool) -> float:
    nodes = []
    people = [(weight, _limited(costs, LEAST, MOST), mass) for weight, costs, mass in people]
    for weight, costs, mass in people:
        offset, total = costs - costs[0], mass.cumsum()
        nodes.append(np.append(0.0, (total[:-1] * np.diff(offset)).cumsum()) / weight)

    def bound(at: float) -> tuple[float, float]:
        """Whether the bound still rises at ``T``, and the bound."""
        level = spread = 0.0
        for (weight, costs, mass), key in zip(people, nodes, strict=True):
            tau = float(np.interp(at, key, costs))
            if at > key[-1]:
                tau += weight * (at - float(key[-1])) / float(mass.sum())
            below = int(costs.searchsorted(tau))
            distance = tau - costs[:below]
            level += weight * tau
            with np.errstate(over="ignore"):  # what overflows is no bound
                spread += float((mass[:below] * distance * distance).sum())
        if accurate:
            slope, value = level / number**2 - at, expense_at_level(number**2, level, spread)
        else:
            half = 0.5 * number * number
            slope, value = half + spread - at * level, error_at_level(half, level, spread)
        return slope, value if value < math.inf else 0.0

    return _best(bound, max(float(np.median(key)) for key in nodes))


def _best(bound: Callable[[float], tuple[float, float]], start: float) -> float:
    """The largest bound over ``T``: by bisection on the sign of its slope, which changes once."""
    low = high = start if start > 0.0 else 1.0
    slope, best = bound(high)
    rises = slope > 0.0
    for step in range(64):  # to the other side of the best, ever faster
        factor = 4.0 ** min(2**step, 256)
        low, high = (high, min(high * factor, 1e300)) if rises else (max(low / factor, 1e-300), low)
        slope, value = bound(high if rises else low)
        best = max(best, value)
        if (slope > 0.0) != rises:
            break
    for _ in range(200):
        middle = math.sqrt(low) * math.sqrt(high)
        slope, value = bound(middle)
        best = max(best, value)
        low, high = (middle, high) if slope > 0.0 else (low, middle)
        if high - low < 1e-8 * high:  # the bound is flat at its best: this is its square
            break
    return best * (1.0 - _ROUNDING)
