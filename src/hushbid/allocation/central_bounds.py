"""What no central purchase without caps can beat, found without looking at one.

Price: the second-order bound of `hushbid.allocation.branch_and_bound` on every interval of the path. Past the last
``T`` that is looked at the expense alone, with the error of everybody's data without noise, is too much.

Accuracy and budget: for any water levels ``τ_g`` Cauchy's inequality gives

    η·τ̄ = Σ τ_g ε_i ≤ C + √(Σ V ε²)·√H,      τ̄ = Σ λ_g τ_g,      H = Σ u (τ_g − ψ)⁺²,

so an error of ``r²`` costs at least ``√(2(τ̄²/r² − H))``, and nothing for ``B`` has an error below ``τ̄²/(B²/2 + H)``. The
levels that belong to one ``T`` make both tight at the best ``T``, which is found by bisection, the problems being convex.
"""

import math

import numpy as np

from hushbid.allocation.branch_and_bound import Figures, least_along_paths
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.cut import below, propose, reach
from hushbid.allocation.pieces import Pieces, Stratum, strata_of
from hushbid.arrays import FloatArray, IndexArray

_TOLERANCE = 2e-10
_ROUNDING = 1e-11
_GRID = 48


def uncapped_lower_bound(problem: CentralProblem) -> float:
    """Return a number that no purchase's objective is below, within 1e-9 of the best; caps are not looked at."""
    problem.refuse_changed()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bound = _convex_bound(problem) if problem.form.target.unimodal else _price_bound(problem)
    return float(problem.form.objective(np.asarray(bound * (1.0 - _ROUNDING))))


class Path:
    """The path of efficient purchases of some people, from sums at everybody's key."""

    def __init__(self, strata: list[Stratum]) -> None:
        self.strata, self.pieces = strata, Pieces.of(strata)

    def figures(self, at: FloatArray) -> Figures:
        """Return error, expense and step at ``T``."""
        pieces = self.pieces
        j = np.maximum(pieces.key.searchsorted(at, side="right") - 1, 0)
        mean = pieces.mean[j]
        paid = pieces.paid[j] + mean * (at - pieces.key[j])
        step = np.sqrt(0.5 * paid)
        return Figures(mean / at + pieces.floor[j], 2.0 * step, step)

    @property
    def error_at_zero(self) -> float:
        """``N`` of zero-cost people alone without noise; infinite where a stratum has none."""
        if self.pieces.base > 0.0:
            return math.inf
        free = (int(one.offset.searchsorted(0.0, side="right")) for one in self.strata)
        return sum(one.size**2 / float(one.total[k - 1]) for one, k in zip(self.strata, free, strict=True))


def _price_bound(problem: CentralProblem) -> float:
    """Return the bound for a price, in normal units."""
    cuts, rows = propose(problem)
    while True:
        strata = strata_of(problem, rows)
        path, last = Path(strata), reach(problem, strata, cuts)
        free = path.error_at_zero
        grid = _grid(problem, path, min(last, 1e300))
        if grid is None:  # nobody asks for anything
            return free

        def evaluate(_: IndexArray, at: FloatArray, path: Path = path) -> Figures:
            return path.figures(at)

        found = least_along_paths(
            evaluate, grid[None, :], np.array([free]), tolerance=_TOLERANCE, at_zero=np.array([free])
        )
        beyond = problem.least_error + float(path.figures(grid[-1:]).expense[0])
        if beyond >= found.value[0] * (1.0 - _TOLERANCE) or last == math.inf:
            return min(float(found.bound[0]), beyond)
        cuts = np.full(cuts.size, math.inf)
        rows = below(problem, cuts)


def _grid(problem: CentralProblem, path: Path, last: float) -> FloatArray | None:
    """Return ``T`` at which to look first: up to where the expense alone is too much, or to the last one."""
    pieces = path.pieces
    top = pieces.mean[-1]
    if not top > 0.0:
        return None
    # where everybody is active and nobody is spread T³ = 2M
    middle = float(np.cbrt(2.0 * top))
    attained = path.figures(np.array([min(middle, last)]))
    value = min(float((attained.mse + attained.expense)[0]), path.error_at_zero)
    high = min(middle, last)
    while high < last and problem.least_error + float(path.figures(np.array([high])).expense[0]) < value:
        high = min(4.0 * high, last)
    low = pieces.base / value if pieces.base > 0.0 else 1e-6 * high
    return np.geomspace(min(max(low, 1e-300), 0.5 * high), high, _GRID)


def _convex_bound(problem: CentralProblem) -> float:
    """Return the bound for an accuracy or a budget, in normal units."""
    target = problem.form.target
    strata = strata_of(problem, np.flatnonzero(problem.costs < math.inf))
    path = Path(strata)
    if path.error_at_zero < math.inf and target.satisfied_for_free(np.asarray(path.error_at_zero), np.asarray(0.0)):
        return 0.0
    j = path.pieces.candidates(target)
    terms = (one[j] for one in (path.pieces.mean, path.pieces.spread, path.pieces.floor))
    at = float(target.root(*terms)[0])
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
