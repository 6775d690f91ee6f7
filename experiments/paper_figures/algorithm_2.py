"""[F] Algorithm 2: the local allocation by a grid search over one multiplier.

Write q(y) = y**2 / (V y**2 + 2) and N = n + 1 (the error weight). At an optimum everybody who is bought from satisfies

    q'(y_j) = 4 y_j / (V y_j**2 + 2)**2 = psi_j lam**2 / N,      lam = sum_j q(y_j),

which has a low root y_j^(l) and a high root y_j^(h), one on each side of sqrt(2 / (3 V)), or none. For every number i
of people [F] searches a grid of multipliers for the best allocation with people 1..i-1 at their high root and person i
at either. Printed as it is, the search cannot work (docs/reference/errata.md, errata 3 to 6 and 23):

- 3: it scores a grid point by N / lam + sum psi_j y_j(lam), as if lam were free, although lam = sum q(y_j(lam));
- 4: its low branch adds a term of the wrong person;
- 5: its upper limit of the grid is a loss, not a multiplier; 6: its lower limit may exceed the optimal multiplier;
- 23: its grid step divides by a Lipschitz constant that is infinite, because the two roots merge with infinite slope.

:func:`algorithm_2` is the fair baseline: the repaired limits, the true objective at every grid point and a stated
number of points. :func:`algorithm_2_with_free_multiplier` keeps erratum 3 only, :func:`algorithm_2_as_printed` keeps 3
to 6.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from experiments.paper_figures.problem import PaperAllocation, PaperProblem, read_problem, score
from hushbid.common.arrays import FloatArray
from hushbid.errors import InputError, MarketError

__all__ = [
    "MultiplierLimits",
    "StationaryLosses",
    "algorithm_2",
    "algorithm_2_as_printed",
    "algorithm_2_with_free_multiplier",
    "multiplier_limits",
    "printed_multiplier_limits",
    "stationary_losses",
]

_DEFAULT_POINTS = 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StationaryLosses:
    """The two solutions y of q'(y) = level; NaN where there is none."""

    low: FloatArray
    """The root below sqrt(2 / (3 V))."""
    high: FloatArray
    """The root above it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MultiplierLimits:
    """The grid's range for every number of people."""

    lower: float
    """No optimal multiplier is claimed to lie below."""
    upper: FloatArray
    """Entry i - 1: no optimal multiplier with i people is claimed to lie above."""


def algorithm_2(
    virtual_costs: ArrayLike, *, variance: float, error_weight: float | None = None, points: int = _DEFAULT_POINTS
) -> PaperAllocation:
    """[F] Algorithm 2 as it can be meant: the true objective at every one of ``points`` multipliers for every i."""
    problem = read_problem(virtual_costs, variance=variance, error_weight=error_weight)
    limits = _limits(problem)
    return _search(problem, virtual_costs, limits, _true_scores, points, name="[F] Algorithm 2, true objective")


def algorithm_2_with_free_multiplier(
    virtual_costs: ArrayLike, *, variance: float, error_weight: float | None = None, points: int = _DEFAULT_POINTS
) -> PaperAllocation:
    """[F] Algorithm 2 with erratum 3 left in and 4 to 6 repaired: lam is never tied to the losses it implies."""
    problem = read_problem(virtual_costs, variance=variance, error_weight=error_weight)
    limits = _limits(problem)
    return _search(problem, virtual_costs, limits, _free_scores, points, name="[F] Algorithm 2, free multiplier")


def algorithm_2_as_printed(
    virtual_costs: ArrayLike, *, variance: float, error_weight: float | None = None, points: int = _DEFAULT_POINTS
) -> PaperAllocation:
    """[F] Algorithm 2 with errata 3 to 6; a :class:`MarketError` where its grid is empty for every i.

    The printed sums define no symbol j outside the sum, so the low branch is read with both terms inside it.
    """
    problem = read_problem(virtual_costs, variance=variance, error_weight=error_weight)
    limits = _printed_limits(problem)
    return _search(problem, virtual_costs, limits, _printed_scores, points, name="[F] Algorithm 2, as printed")


def multiplier_limits(
    virtual_costs: ArrayLike, *, variance: float, error_weight: float | None = None
) -> MultiplierLimits:
    """[F] Claim 2, repaired: limits that every optimal multiplier obeys."""
    return _limits(read_problem(virtual_costs, variance=variance, error_weight=error_weight))


def printed_multiplier_limits(
    virtual_costs: ArrayLike, *, variance: float, error_weight: float | None = None
) -> MultiplierLimits:
    """[F] Claim 2 as printed (errata 5 and 6)."""
    return _printed_limits(read_problem(virtual_costs, variance=variance, error_weight=error_weight))


def stationary_losses(level: ArrayLike, *, variance: float) -> StationaryLosses:
    """Both roots of 4 y / (V y**2 + 2)**2 = level, in closed form ([F] Lemma A3 (a)).

    With y = u sqrt(2/V) the equation is u**4 + 2 u**2 - u/r + 1 = 0, r = level sqrt(V/2). It splits into two quadratics
    whose coefficients come from the real root of one cubic, here without any cancelling difference.
    """
    ratio = np.asarray(level, dtype=np.float64) * np.sqrt(variance / 2.0)
    ratio = np.where(ratio <= _LARGEST_RATIO, ratio, np.nan)
    # Cardano for the cubic, then the quadratic with real roots
    half = (1.0 / (8.0 * ratio**2) - 16.0 / 27.0) / 2.0
    outer = np.cbrt(half + np.sqrt(np.maximum(half**2 - (4.0 / 9.0) ** 3, 0.0)))
    cubic_root = outer + (4.0 / 9.0) / outer - 2.0 / 3.0
    alpha = np.sqrt(2.0 * cubic_root)
    product = 2.0 / (2.0 + alpha**2 + 1.0 / (ratio * alpha))
    # the larger root by addition; the smaller is their product over it
    high = (alpha + np.sqrt(np.maximum(alpha**2 - 4.0 * product, 0.0))) / 2.0
    unit = np.sqrt(2.0 / variance)
    return StationaryLosses(low=unit * product / high, high=unit * high)


_LARGEST_RATIO = 3.0 * np.sqrt(3.0) / 16.0

_Scores = Callable[[FloatArray, FloatArray, StationaryLosses, PaperProblem], tuple[FloatArray, FloatArray]]


def _search(
    problem: PaperProblem,
    virtual_costs: ArrayLike,
    limits: MultiplierLimits,
    scores: _Scores,
    points: int,
    *,
    name: str,
) -> PaperAllocation:
    """Algorithm 2's loop over i; ``scores`` says what a grid point is worth with person i high, and with her low."""
    if points < 2:
        raise InputError(f"points must be at least 2, got points={points!r}.", field="points")
    best: PaperAllocation | None = None
    for i in range(1, problem.virtual_costs.size + 1):
        grid = _grid(limits.lower, float(limits.upper[i - 1]), points)
        costs = problem.virtual_costs[:i]
        roots = stationary_losses(costs[:, None] * grid[None, :] ** 2 / problem.error_weight, variance=problem.variance)
        # above the multiplier where the dearest one's roots merge there is nothing to score
        exists = np.all(np.isfinite(roots.high), axis=0)
        if not exists.any():
            continue
        grid, roots = grid[exists], StationaryLosses(low=roots.low[:, exists], high=roots.high[:, exists])
        # Step "find lambda_i in Grid(i, eps / Delta) as the solution of ..." of Algorithm 2.
        high_scores, low_scores = scores(grid, costs, roots, problem)
        at = int(np.argmin(np.minimum(high_scores, low_scores)))
        losses = roots.high[:, at].copy()
        if low_scores[at] < high_scores[at]:
            losses[-1] = roots.low[-1, at]
        # Step "let OBJ_i be the objective evaluated at y^(i)"; then its argmin over i.
        candidate = score(
            problem.unsorted(losses),
            name=name,
            setting="local",
            virtual_costs=virtual_costs,
            variance=problem.variance,
            error_weight=problem.error_weight,
        )
        if best is None or candidate.objective < best.objective:
            best = candidate
    if best is None:
        raise MarketError("the grid of [F] Algorithm 2 is empty for every number of people, so it returns nothing.")
    return best


def _grid(lower: float, upper: float, points: int) -> FloatArray:
    """[F]'s grid: the multiples of one step that cover [lower, upper]."""
    if not upper > lower:
        return np.empty(0)
    step = (upper - lower) / points
    multiples = np.arange(np.floor(lower / step), np.ceil(upper / step) + 1.0)
    return multiples[multiples > 0] * step


def _true_scores(
    grid: FloatArray, costs: FloatArray, roots: StationaryLosses, problem: PaperProblem
) -> tuple[FloatArray, FloatArray]:
    """N / sum q + sum psi y at the losses themselves, whatever the multiplier that suggested them."""
    paid = costs[:, None] * roots.high
    precision = 1.0 / (problem.variance + 2.0 / roots.high**2)
    last_precision = 1.0 / (problem.variance + 2.0 / roots.low[-1] ** 2)
    high = problem.error_weight / precision.sum(axis=0) + paid.sum(axis=0)
    low = problem.error_weight / (precision[:-1].sum(axis=0) + last_precision)
    return high, low + paid[:-1].sum(axis=0) + costs[-1] * roots.low[-1]


def _free_scores(
    grid: FloatArray, costs: FloatArray, roots: StationaryLosses, problem: PaperProblem
) -> tuple[FloatArray, FloatArray]:
    """Erratum 3: N / lam + sum psi y, with lam as if it were a choice."""
    paid = costs[:, None] * roots.high
    error = problem.error_weight / grid
    return error + paid.sum(axis=0), error + paid[:-1].sum(axis=0) + costs[-1] * roots.low[-1]


def _printed_scores(
    grid: FloatArray, costs: FloatArray, roots: StationaryLosses, problem: PaperProblem
) -> tuple[FloatArray, FloatArray]:
    """Errata 3 and 4: the low branch charges persons 1..i-1 for both of their roots and person i for neither."""
    paid_high, paid_low = costs[:, None] * roots.high, costs[:, None] * roots.low
    error = problem.error_weight / grid
    return error + paid_high.sum(axis=0), error + (paid_high + paid_low)[:-1].sum(axis=0)


def _largest_multipliers(problem: PaperProblem) -> FloatArray:
    """The multiplier at which person i's two roots merge; above it she has none."""
    peak = 3.0 * np.sqrt(3.0) / (8.0 * np.sqrt(2.0 * problem.variance))
    largest: FloatArray = np.sqrt(problem.error_weight * peak / problem.virtual_costs)
    return largest


def _limits(problem: PaperProblem) -> MultiplierLimits:
    """N / lam <= OPT <= the cost of equal losses y; the best of them is y**3 = 4 N / (n sum psi): a 4, not [F]'s 2."""
    n, weight = problem.virtual_costs.size, problem.error_weight
    load = n * problem.virtual_costs.sum() / weight
    lower = n / (problem.variance + 1.5 * np.cbrt(4.0) * np.cbrt(load) ** 2)
    return MultiplierLimits(lower=float(lower), upper=_largest_multipliers(problem))


def _printed_limits(problem: PaperProblem) -> MultiplierLimits:
    """Erratum 6 below; erratum 5 above: where the roots of i - 1 merge, y_{i-1}^(h) is sqrt(2 / (3 V)) for every i."""
    n, weight = problem.virtual_costs.size, problem.error_weight
    load = n * problem.virtual_costs.sum() / weight
    lower = n / (problem.variance + np.cbrt(np.sqrt(2.0) * load) ** 2)
    upper = np.full(n, np.sqrt(2.0 / (3.0 * problem.variance)))
    return MultiplierLimits(lower=float(lower), upper=upper)
