"""The least ``N + C`` along the frontier of each of many populations, with proof.

The bound and the halving are those of :mod:`hushbid.allocation.branch_and_bound`, over ``σ``; the first points lie ever
farther from a local minimum, around which the bound closes at once.

A best point is stationary, ``T² = 2σ``, so ``η² = 2/σ``. As ``N ≥ 2/η²``, its ``σ`` is at most its value. And ``η`` is
at most what the value can pay for: each stratum gives its share for nothing as far as the caps of zero-cost people
allow, and from there on at no less than its cheapest other cost.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.branch_and_bound import Figures, least_along_paths
from hushbid.allocation.frontier import Points, at, meet
from hushbid.allocation.populations import Populations
from hushbid.allocation.targets import Target
from hushbid.common.arrays import FloatArray, IndexArray

TOLERANCE = 1e-11
_NEAREST = 2e-6
_LEAST = 1e-9
"""Where zero-cost people could do it alone the search begins at this share of the ``σ`` found first."""


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best point of each population."""

    points: Points
    value: FloatArray
    bound: FloatArray
    """No purchase of the population with any payment is below this."""

    low: FloatArray
    high: FloatArray
    """Between which ``σ`` was searched."""


def figures(points: Points) -> Figures:
    """Return what the bound needs of some points."""
    return Figures(points.t, points.mse, points.expense, points.sigma)


def search(populations: Populations, target: Target, start: Points) -> Optimum:
    """Return the least ``N + C`` of each population, from any point of each."""
    best = meet(populations, target, start)
    value = best.mse + best.expense
    low, high, free = _ends(populations, best, value)
    grid = ladder(best.sigma, low, high)

    def evaluate(which: IndexArray, sigma: FloatArray) -> Figures:
        return figures(at(populations.take(which), sigma, best.take(which)))

    found = least_along_paths(evaluate, grid, value, tolerance=TOLERANCE, at_zero=free)
    better = np.flatnonzero(found.value < value * (1.0 - 1e-14))
    if better.size:
        some = populations.take(better)
        other = meet(some, target, at(some, found.at[better], best.take(better)))
        worth = other.mse + other.expense
        kept = worth < value[better]
        best = best.take(np.arange(value.size))
        best.put(better[kept], other.take(np.flatnonzero(kept)))
        value = value.copy()
        value[better[kept]] = worth[kept]
    return Optimum(best, value, np.minimum(found.bound, value), low, high)


def ladder(sigma: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return for each population ``σ`` ever farther from one of its own, and both ends."""
    span = max(float(np.log(high / sigma).max()), float(np.log(sigma / low).max()), 2.0 * _NEAREST)
    away = _NEAREST * 2.0 ** np.arange(math.ceil(math.log2(span / _NEAREST)))
    steps = np.exp(np.concatenate([-away[::-1], [0.0], away]))
    inner = np.clip(sigma[:, None] * steps, low[:, None], high[:, None])
    return np.hstack([low[:, None], inner, high[:, None]])


def _ends(populations: Populations, best: Points, value: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return between which ``σ`` to search, and the error at 0, not a number where nothing below is asked for."""
    sizes, count = populations.sizes[:, None], value.size
    free_caps, free_mass, cheapest = populations.zero_cost(count)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        weight = np.fmin(populations.full(count), ((value / cheapest + free_caps) / sizes).min(axis=0))
        paid = np.where((free_caps > 0.0).any(axis=0), 0.0, (sizes * cheapest).sum(axis=0))
        weight = np.where(paid > 0.0, np.fmin(weight, value / paid), weight)
        low = 2.0 / weight / weight
        error = np.where(low > 0.0, math.nan, (sizes * sizes / free_mass).sum(axis=0))
    low = np.where(low > 0.0, np.minimum(low * (1.0 - 1e-9), best.sigma), _LEAST * best.sigma)
    return low, np.maximum(value * (1.0 + 1e-9), best.sigma), error
