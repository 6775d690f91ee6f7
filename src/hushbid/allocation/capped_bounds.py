"""What no central purchase under caps can beat, found without reading a solution.

Price: the bounds of all intervals of a search along the path. Accuracy and budget: for any losses ``ε°`` with
``X° = 2 + ΣVε°²``, every purchase with error ``m²`` and total weight ``η`` has ``m√X°·η ≥ 2 + ΣVε°ε`` (Cauchy and
Schwarz). So for any ``σ`` and levels with ``Σ ℓ_g λ_g = σ·m·√X°``

    2σ ≤ Σψε + Σ e·(λ − σVε° − ψ)⁺,

and with ``ε° = clip(u(λ° − ψ)/σ, 0, e)`` and ``λ ≤ λ°`` the last sum runs over people at their cap only.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.capped import Found, optimum
from hushbid.allocation.caps import affordable, expense, most_accurate, zero_cost_people
from hushbid.allocation.central_problem import CentralProblem
from hushbid.common.arrays import FloatArray

_ROUNDING = 1e-11


def capped_lower_bound(problem: CentralProblem) -> float:
    """Return a number that no purchase's objective is below, in the caller's units."""
    problem.refuse_changed()
    problem = affordable(problem.with_lower_costs())
    target, free = problem.form.target, zero_cost_people(problem)
    error = most_accurate(problem, free)[1] if free.size else math.inf
    if target.kind == "accuracy" and error <= target.number:
        return 0.0
    found = optimum(problem)
    rounded = 1.0 - _ROUNDING
    if found is None:
        rows = np.flatnonzero(problem.costs < math.inf)
        losses, error = most_accurate(problem, rows)
        bound = error
        if target.kind == "accuracy":  # nothing but all that the caps allow is accurate enough
            bound, rounded = expense(problem, rows, losses), 1.0 - 1e-6
    elif target.kind == "price":
        bound = max(min(found.bound, error), 0.0)
    elif target.kind == "accuracy":
        bound = _least_expense(found, target.number)
    else:
        bound = _least_error(found, target.number)
    return float(problem.form.objective(np.asarray(bound * rounded)))


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """The inequality of Cauchy and Schwarz at some levels and a step."""

    sigma: float
    square: float
    """``X°``."""

    level: float
    """``Σ ℓ_g λ_g``."""

    levels: FloatArray
    """Of everybody at their cap; with ``base`` what is left of it, and their caps."""

    base: FloatArray
    caps: FloatArray

    @classmethod
    def of(cls, found: Found, sigma: float) -> "_Line":
        square, levels, base, caps = 2.0, [], [], []
        high = found.points.levels.high[:, 0]
        for g, pool in enumerate(found.populations.pools):
            below = found.points.levels.stratum(g).above(pool.costs)
            losses = np.clip(pool.mass * below / sigma, 0.0, pool.cap)
            square += float((losses * losses / pool.mass).sum())
            capped = (below > 0.0) & (losses >= pool.cap)
            levels.append(np.full(int(capped.sum()), high[g]))
            base.append(pool.costs[capped] + sigma * pool.reach[capped])
            caps.append(pool.cap[capped])
        total = float(found.populations.sizes @ high)
        return cls(sigma, square, total, *(np.concatenate(one) for one in (levels, base, caps)))

    def over(self, share: float) -> float:
        """``Σ e·(λ − σVε° − ψ)⁺`` with all levels multiplied by a share."""
        return float((self.caps * np.maximum(share * self.levels - self.base, 0.0)).sum())


def _least_expense(found: Found, wanted: float) -> float:
    sigma = float(found.points.sigma[0])
    # a slightly longer step, until nobody but those at their cap counts
    for step in range(60):
        line = _Line.of(found, sigma * (1.0 - 1e-15 * 2.0**step))
        share = line.sigma * math.sqrt(wanted * line.square) / line.level
        if share <= 1.0:
            break
    return max(2.0 * line.sigma - line.over(share), 0.0)


def _least_error(found: Found, budget: float) -> float:
    line = _Line.of(found, float(found.points.sigma[0]))
    low, high = 0.0, 1.0
    if budget + line.over(1.0) > 2.0 * line.sigma:
        for _ in range(100):  # the least share at which the inequality can hold
            middle = 0.5 * (low + high)
            fine = budget + line.over(middle) >= 2.0 * line.sigma
            low, high = (low, middle) if fine else (middle, high)
    else:
        low = 1.0
    return (low * line.level / line.sigma) ** 2 / line.square
