"""[F] Algorithm 1: the central allocation by enumerating how many people are bought from.

Sort the virtual costs. With the i cheapest people active and multiplier ``lam``, stationarity gives everybody's loss,

    y_j = (lam - psi_j) / (2 N V (lam A_i - B_i)**2),   1 / S = lam A_i - B_i,   N = n + 1 (the error weight),

and the objective becomes a function of ``lam`` alone,

    OBJ_i(lam) = 2 N (lam A_i - B_i)**2 + (A_i lam**2 - Bt_i) / (2 (lam A_i - B_i)**2),

    A_i = i / (2 N V),   B_i = sum_{j<=i} psi_j / (2 N V),   Bt_i = sum_{j<=i} psi_j**2 / (2 N V),

to be minimised over ``psi_i <= lam <= psi_{i+1}``. [F]'s printed algorithm differs twice: B_i has no 1/V, and the best
i is chosen by argmax. :func:`algorithm_1` repairs both, and three siblings keep one or both misprints, so that a test
can show what each does (docs/reference/errata.md, errata 1 and 2).

It is a faithful baseline, hence without what :mod:`hushbid.allocation` adds: no centred moments (close virtual costs
cancel), no zero virtual costs, no unequal variances, no certificate, and a full sort.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from experiments.paper_figures.problem import PaperAllocation, PaperProblem, read_problem, score
from hushbid.common.arrays import FloatArray
from hushbid.errors import MarketError

__all__ = [
    "algorithm_1",
    "algorithm_1_as_printed",
    "algorithm_1_with_printed_argmax",
    "algorithm_1_with_printed_sums",
]


def algorithm_1(virtual_costs: ArrayLike, *, variance: float, error_weight: float | None = None) -> PaperAllocation:
    """[F] Algorithm 1 with errata 1 and 2 repaired: optimal up to rounding."""
    problem = read_problem(virtual_costs, variance=variance, error_weight=error_weight)
    pieces = _pieces(problem, sums=_sums_of_the_proof(problem))
    best = min(pieces, key=lambda piece: piece.objective)
    return _output(best, problem, virtual_costs, name="[F] Algorithm 1, as corrected")


def algorithm_1_with_printed_sums(
    virtual_costs: ArrayLike, *, variance: float, error_weight: float | None = None
) -> PaperAllocation:
    """[F] Algorithm 1 with erratum 1 left in: B_i lacks its factor 1/V."""
    problem = read_problem(virtual_costs, variance=variance, error_weight=error_weight)
    pieces = _pieces(problem, sums=_sums_as_printed(problem))
    best = min(pieces, key=lambda piece: piece.objective)
    return _output(best, problem, virtual_costs, name="[F] Algorithm 1, printed sums")


def algorithm_1_with_printed_argmax(
    virtual_costs: ArrayLike, *, variance: float, error_weight: float | None = None
) -> PaperAllocation:
    """[F] Algorithm 1 with erratum 2 left in: the worst number of people instead of the best."""
    problem = read_problem(virtual_costs, variance=variance, error_weight=error_weight)
    pieces = _pieces(problem, sums=_sums_of_the_proof(problem))
    worst = max(pieces, key=lambda piece: piece.objective)
    return _output(worst, problem, virtual_costs, name="[F] Algorithm 1, printed argmax")


def algorithm_1_as_printed(
    virtual_costs: ArrayLike, *, variance: float, error_weight: float | None = None
) -> PaperAllocation:
    """[F] Algorithm 1 letter by letter, errata 1 and 2 included."""
    problem = read_problem(virtual_costs, variance=variance, error_weight=error_weight)
    pieces = _pieces(problem, sums=_sums_as_printed(problem))
    worst = max(pieces, key=lambda piece: piece.objective)
    return _output(worst, problem, virtual_costs, name="[F] Algorithm 1, as printed")


_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class _Sums:
    """A_i, B_i and Bt_i of Algorithm 1, for every i."""

    count: FloatArray
    first: FloatArray
    second: FloatArray


@dataclass(frozen=True, slots=True)
class _Piece:
    """The best multiplier for one number of active people, with [F]'s own score of it."""

    active: int
    multiplier: float
    inverse_total: float
    objective: float


def _sums_of_the_proof(problem: PaperProblem) -> _Sums:
    costs, scale = problem.virtual_costs, 2.0 * problem.error_weight * problem.variance
    count = np.arange(1.0, costs.size + 1.0)
    return _Sums(count / scale, np.cumsum(costs) / scale, np.cumsum(costs**2) / scale)


def _sums_as_printed(problem: PaperProblem) -> _Sums:
    sums = _sums_of_the_proof(problem)  # erratum 1: B_i without 1/V
    return _Sums(sums.count, sums.first * problem.variance, sums.second)


def _pieces(problem: PaperProblem, *, sums: _Sums) -> list[_Piece]:
    """Algorithm 1's loop: for each i the minimiser of OBJ_i over [psi_i, psi_{i+1}], psi_{n+1} = infinity.

    A multiplier at which 1/S = lam A_i - B_i is zero stands for no allocation; while all costs so far are equal that is
    the left end. The difference of two rounded sums need not be exactly zero, so what is lost in rounding is passed
    over too.
    """
    costs = problem.virtual_costs
    right_ends = np.append(costs[1:], np.inf)
    pieces = []
    for i in range(costs.size):
        left, right = costs[i], right_ends[i]
        # the ends, and where the derivative vanishes
        candidates = [left, right, *_stationary_points(i, problem, sums)]
        inside = np.array([lam for lam in candidates if left <= lam <= right and np.isfinite(lam)])
        inverse_total = inside * sums.count[i] - sums.first[i]
        usable = inverse_total > _ROUNDING * inside * sums.count[i]
        inside, inverse_total = inside[usable], inverse_total[usable]
        if inside.size == 0:
            continue
        # Step "let OBJ_i(lambda) = ..." of Algorithm 1.
        values = 2.0 * problem.error_weight * inverse_total**2
        values += (sums.count[i] * inside**2 - sums.second[i]) / (2.0 * inverse_total**2)
        best = int(np.argmin(values))
        pieces.append(_Piece(i + 1, float(inside[best]), float(inverse_total[best]), float(values[best])))
    if not pieces:
        raise MarketError(
            "the virtual costs are too large for [F]'s uncentred sums: every candidate is lost in rounding."
        )
    return pieces


def _stationary_points(i: int, problem: PaperProblem, sums: _Sums) -> list[float]:
    """Multipliers where OBJ_i' = 0, by the quartic of [F]'s proof of Prop. 3.

    With x = lam A - B the derivative is A (4 N x**4 - (B/A) x + Bt - B**2/A) / x**3. In units of (B / (4 N A))**(1/3)
    the quartic is t**4 - t + d, which no size of the costs can overflow.
    """
    slope = sums.first[i] / sums.count[i]
    unit = np.cbrt(slope / (4.0 * problem.error_weight))
    constant = (sums.second[i] - sums.first[i] * slope) / (slope * unit)
    roots = np.roots([1.0, 0.0, 0.0, -1.0, constant])
    # a double root comes out with a small imaginary part
    real = roots.real[np.abs(roots.imag) <= 1e-7 * np.abs(roots.real)]
    return [float((t * unit + sums.first[i]) / sums.count[i]) for t in real if t > 0]


def _output(piece: _Piece, problem: PaperProblem, virtual_costs: ArrayLike, *, name: str) -> PaperAllocation:
    """Algorithm 1's last line: the losses at the chosen piece, here with their true cost."""
    cheapest = problem.virtual_costs[: piece.active]
    scale = 2.0 * problem.error_weight * problem.variance
    privacy_loss = (piece.multiplier - cheapest) / (scale * piece.inverse_total**2)
    return score(
        problem.unsorted(privacy_loss),
        name=name,
        setting="central",
        virtual_costs=virtual_costs,
        variance=problem.variance,
        error_weight=problem.error_weight,
    )
