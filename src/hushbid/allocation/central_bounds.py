"""What no central purchase can beat, found without looking at one.

**Price**: the second-order bound of `hushbid.allocation.price_search` on every interval of the path. Past the last
``T`` that is looked at the expense alone, with the error of everybody's data without noise, is too much.

**Accuracy and budget** without caps: for any water levels ``τ_g`` Cauchy's inequality gives

    η·τ̄ = Σ τ_g ε_i ≤ C + √(Σ V ε²)·√H,      τ̄ = Σ λ_g τ_g,      H = Σ u (τ_g − ψ)⁺²,

so an error of ``r²`` costs at least ``√(2(τ̄²/r² − H))``, and nothing for ``B`` has an error below ``τ̄²/(B²/2 + H)``.
As these problems are convex, the levels that belong to one ``T`` make both tight at the best ``T``.

With caps: for any losses ``ε°`` with ``X° = 2 + ΣVε°²``, every purchase with error ``m²`` and total weight ``η`` has
``m√X°·η ≥ 2 + ΣVε°ε``. So for any ``σ`` and levels with ``Σ ℓ_g λ_g = σ·m·√X°``

    2σ ≤ Σψε + Σ e·(λ − σVε° − ψ)⁺,

and with ``ε° = clip(u(λ° − ψ)/σ, 0, e)`` and ``λ ≤ λ°`` the last sum runs over people at their cap only.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.capped import Found, affordable, expense, most_accurate, optimum, zero_cost_people
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.cut import below, propose, reach
from hushbid.allocation.pieces import Pieces, free_error, strata_of
from hushbid.allocation.price_search import Bounded, least_along_paths
from hushbid.common.arrays import FloatArray, IndexArray

TOLERANCE = 2e-10
GRID = 48
_ROUNDING = 1e-11


def lower_bound(problem: CentralProblem) -> float:
    """Return a number that no purchase's objective is below, in the caller's units."""
    problem.refuse_changed()
    problem = problem.with_lower_costs()
    if problem.capped:
        bound = _capped_bound(affordable(problem))
    else:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            bound = _convex_bound(problem) if problem.form.target.unimodal else _price_bound(problem)
    return float(problem.form.objective(np.asarray(bound * (1.0 - _ROUNDING))))


# -- without caps ------------------------------------------------------------------------------------------------------


def _price_bound(problem: CentralProblem) -> float:
    """Return the bound for a price, in normal units."""
    cuts, rows = propose(problem)
    while True:
        strata = strata_of(problem, rows)
        pieces, last, free = Pieces.of(strata), reach(problem, strata, cuts), free_error(strata)
        if not pieces.mean[-1] > 0.0:  # nobody asks for anything
            return free
        grid = _grid(problem, pieces, free, min(last, 1e300))
        found = least_along_path(pieces, grid, attained=free, at_zero=free)
        beyond = problem.least_error + float(pieces.figures(grid[-1:])[2, 0])
        if beyond >= found.value[0] * (1.0 - TOLERANCE) or last == math.inf:
            return min(float(found.bound[0]), beyond)
        cuts = np.full(cuts.size, math.inf)
        rows = below(problem, cuts)


def least_along_path(pieces: Pieces, grid: FloatArray, *, attained: float, at_zero: float) -> Bounded:
    """Return the bound for one population; ``at_zero`` is not a number where ``T`` below the grid is not asked for."""

    def evaluate(_: IndexArray, at: FloatArray) -> FloatArray:
        return pieces.figures(at)

    return least_along_paths(
        evaluate,
        grid[None, :],
        np.array([attained]),
        tolerance=TOLERANCE,
        at_zero=np.array([at_zero]),
        single=np.zeros(1, dtype=bool),
    )


def _grid(problem: CentralProblem, pieces: Pieces, free: float, last: float) -> FloatArray:
    """Return ``T`` at which to look first: up to where the expense alone is too much, or to the last one."""
    # where everybody is active and all costs are equal T³ = 2M
    high = min(float(np.cbrt(2.0 * pieces.mean[-1])), last)
    value = min(float(pieces.figures(np.array([high]))[1:3].sum()), free)
    while high < last and problem.least_error + float(pieces.figures(np.array([high]))[2, 0]) < value:
        high = min(4.0 * high, last)
    low = pieces.base / value if pieces.base > 0.0 else 1e-6 * high
    return np.geomspace(min(max(low, 1e-300), 0.5 * high), high, GRID)


def _convex_bound(problem: CentralProblem) -> float:
    """Return the bound for an accuracy or a budget, in normal units."""
    target = problem.form.target
    strata = strata_of(problem, np.flatnonzero(problem.costs < math.inf))
    pieces, free = Pieces.of(strata), free_error(strata)
    if free < math.inf and target.satisfied_for_free(np.asarray(free), np.asarray(0.0)):
        return 0.0
    j = pieces.candidates(target)
    at = float(target.root(pieces.mean[j], pieces.spread[j], pieces.floor[j])[0])
    if not at < math.inf and target.kind == "budget":  # nobody asks for anything
        return problem.least_error
    if not at < math.inf:
        raise problem.impossible()
    # the bound holds at every T: sums over people, not differences of sums
    level = squares = 0.0
    for one in strata:
        above = one.level(at) - one.offset
        active = above > 0.0
        level += one.size * (one.base + one.level(at))
        squares += float((one.mass[active] * above[active] * above[active]).sum())
    return target.dual_bound(level, squares)


# -- under caps --------------------------------------------------------------------------------------------------------


def _capped_bound(problem: CentralProblem) -> float:
    """Return the bound for any goal, in normal units."""
    target, free = problem.form.target, zero_cost_people(problem)
    error = most_accurate(problem, free)[1] if free.size else math.inf
    if target.kind == "accuracy" and error <= target.number:
        return 0.0
    found = optimum(problem)
    if found is None:
        rows = np.flatnonzero(problem.costs < math.inf)
        losses, error = most_accurate(problem, rows)
        if target.kind == "accuracy":  # nothing but all that the caps allow is accurate enough
            return expense(problem, rows, losses) * (1.0 - 1e-6)
        return error
    if target.kind == "price":
        return max(min(found.bound, error), 0.0)
    return _least_expense(found, target.number) if target.kind == "accuracy" else _least_error(found, target.number)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """The inequality of Cauchy and Schwarz at some levels and a step."""

    sigma: float
    square: float  # X°
    level: float  # Σ ℓ_g λ_g
    levels: FloatArray  # of everybody at their cap; with base what is left of it, and their caps
    base: FloatArray
    caps: FloatArray

    @classmethod
    def of(cls, found: Found, sigma: float) -> "_Line":
        people, high = found.populations.people, found.points.levels.high[:, 0]
        below = people.below(found.points.levels)[0]
        losses = np.clip(people.mass * below / sigma, 0.0, people.cap)
        square = 2.0 + float((losses * losses / people.mass).sum())
        capped = (below > 0.0) & (losses >= people.cap)
        base = people.costs[capped] + sigma * people.reach[capped]
        level = float(found.populations.sizes @ high)
        return cls(sigma, square, level, high[people.codes[capped]], base, people.cap[capped])

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
    sigma, bound = float(found.points.sigma[0]), 0.0
    # a slightly longer step, until rounding does not let the budget pay for any error
    for step in range(0, 24, 2):
        line = _Line.of(found, sigma * (1.0 + 1e-15 * (2.0**step - 1.0)))
        share = _least_share(line, budget)
        bound = max(bound, (share * line.level / line.sigma) ** 2 / line.square)
        if share > 1.0 - 1e-10:
            break
    return bound


def _least_share(line: _Line, budget: float) -> float:
    """Return the least share of all levels at which the inequality can hold for a budget; 1 if it does at none."""
    low, high = 0.0, 1.0
    if budget + line.over(1.0) < 2.0 * line.sigma:
        return 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        fine = budget + line.over(middle) >= 2.0 * line.sigma
        low, high = (low, middle) if fine else (middle, high)
    return low
