"""Few of very many: leave out the people who are surely too expensive, before anything is sorted.

A sample proposes a cut in each stratum. Nobody above the cuts is active up to ``T = min_g G_g(cut_g)/λ_g``, where
``G_g(τ) = Σ u (τ − ψ)⁺``; if nothing past that ``T`` can be better than the optimum of those below the cuts, nobody was
missed. Otherwise ``τ_g ≤ m + λ_g T/U``, true for the mass and mean of any people of the stratum, gives cuts that pass.
"""

import math
import sys

import numpy as np

from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.pieces import Pieces, Point, Stratum, best_point, strata_of
from hushbid.common.arrays import FloatArray, IndexArray

_CUT_ABOVE = 1 << 15  # up to so many people sorting is quicker
_SAMPLE = 1 << 13
_WORTHWHILE = 0.5  # a cut that leaves more than this share of the people is the last one that a sample proposes


def optimum(problem: CentralProblem) -> tuple[list[Stratum], Point]:
    """Return the best point, and the people among whom everybody active is; refused where nothing reaches the goal."""
    cuts, rows = propose(problem)
    while True:
        strata = strata_of(problem, rows)
        point = best_point(problem.form.target, strata, Pieces.of(strata))
        reached = reach(problem, strata, cuts)
        needed = last_useful(problem, point) if reached < math.inf else 0.0
        if needed <= reached:
            break
        for g, one in enumerate(strata):
            total, mean, _ = one.moments(one.offset.size)
            level = one.base + mean + one.size * needed / total
            cuts[g] = max(cuts[g], math.nextafter(level * problem.form.scale * (1.0 + 1e-12), math.inf))
        rows = below(problem, cuts)
    if not point.at < math.inf:
        raise problem.impossible()
    return strata, point


def last_useful(problem: CentralProblem, point: Point) -> float:
    """Return a ``T`` past which nothing is better, if this point is attained.

    For a price what an optimum costs beyond everybody's error without noise is at least ``3T²/2``.
    """
    if problem.form.target.unimodal:
        return point.at
    spare = point.value(problem.form.target) - problem.least_error
    return math.sqrt(max(spare, 0.0) / 1.5) * (1.0 + 1e-12)


def reach(problem: CentralProblem, strata: list[Stratum], cuts: FloatArray) -> float:
    """Return the ``T`` up to which nobody above the cuts is active."""
    reached = math.inf
    for one, cut in zip(strata, cuts.tolist(), strict=True):
        if cut < math.inf:
            level = cut / problem.form.scale - one.base
            active = one.offset < level
            reached = min(reached, float((one.mass[active] * (level - one.offset[active])).sum()) / one.size)
    return reached


def below(problem: CentralProblem, cuts: FloatArray, among: IndexArray | None = None) -> IndexArray:
    """Return everybody, perhaps ``among`` some, whose cost is finite and no higher than the cut of their stratum."""
    rows = among
    if rows is None:
        rows = np.flatnonzero(problem.costs <= min(float(cuts.max()), sys.float_info.max))
        if cuts.size == 1:
            return rows
    if float(cuts.min()) < math.inf:
        rows = rows[problem.costs[rows] <= cuts[problem.codes[rows]]]
    return rows


def propose(problem: CentralProblem) -> tuple[FloatArray, IndexArray]:
    """Return cuts, and everybody below them: one sample proposes some, and one of those below lower ones, if it helps.

    With many strata a sample has few people in each, so that the first cuts are far too high.
    """
    size = problem.costs.size
    cuts, rows = np.full(problem.form.sizes.size, math.inf), None
    while size > (_CUT_ABOVE if rows is None else 2 * _SAMPLE):
        step = size // _SAMPLE
        sample = np.arange(0, size, step) if rows is None else rows[::step]
        cuts = np.minimum(cuts, _cuts_of_sample(problem, sample, float(step)))
        rows = below(problem, cuts, rows)
        if rows.size > _WORTHWHILE * size:
            break
        size = rows.size
    return cuts, below(problem, cuts) if rows is None else rows


def _cuts_of_sample(problem: CentralProblem, sample: IndexArray, step: float) -> FloatArray:
    """Return the costs at which the optimum of a sample, each standing for ``step`` people, suggests to stop."""
    sample = sample[problem.costs[sample] < math.inf]
    cuts = np.full(problem.form.sizes.size, math.inf)
    if np.bincount(problem.codes[sample], minlength=cuts.size).min() == 0:
        return cuts
    target = problem.form.target
    strata = [
        Stratum.from_offsets(one.rows, one.size, one.base, one.offset, step * one.mass)
        for one in strata_of(problem, sample)
    ]
    point = best_point(target, strata, Pieces.of(strata))
    if not point.at < math.inf:
        return cuts
    at = max(point.at, last_useful(problem, point))
    for g, one in enumerate(strata):
        active = int(one.key.searchsorted(at, side="right"))
        # four standard deviations of the sample's count, and some, to spare
        spare = active + int(4.0 * math.sqrt(active)) + 16
        if spare < one.rows.size:
            cuts[g] = problem.costs[one.rows[spare]]
    return cuts
