"""The allocation rule: everybody's loss as a function of their own cost, for many (person, cost) pairs at once.

Replacing one cost changes the sums of one stratum. How the optimum follows is what a `Solver` answers, in normal units:

- by pieces in closed form, where nobody has a cap (:mod:`hushbid.allocation.pairs_by_pieces`);
- along the frontier, for any caps (:mod:`hushbid.allocation.pairs_by_frontier`);
- from the sums of very many people (:mod:`hushbid.allocation.pairs_from_sums`).
"""

import math

import numpy as np

from hushbid.allocation.budget_by_frontier import BudgetPairs
from hushbid.allocation.central_problem import CentralProblem, NormalForm
from hushbid.allocation.pairs_by_frontier import PairsByFrontier
from hushbid.allocation.pairs_by_pieces import PairsByPieces
from hushbid.allocation.reply_rules import Answers, Replies, Solver
from hushbid.allocation.unsolved import CAPPED_STRATA_BUDGET
from hushbid.common.arrays import FloatArray, IndexArray

_CHUNK = 1 << 13  # so many pairs are worked on together: they stay in the processor's cache


def allocation_rule(problem: CentralProblem) -> "AllocationRule":
    """Return the rule of a central problem; refused where a loss may rise with the cost."""
    if not problem.capped:
        return AllocationRule(problem.form, problem.codes, problem.caps, PairsByPieces(problem))
    if problem.form.target.kind != "budget":
        return AllocationRule(problem.form, problem.codes, problem.caps, PairsByFrontier(problem))
    if problem.form.sizes.size > 1:
        raise CAPPED_STRATA_BUDGET.error()
    return AllocationRule(problem.form, problem.codes, problem.caps, BudgetPairs(problem))


class AllocationRule:
    """The central optimum as a function of one person's cost, everybody else's fixed."""

    def __init__(self, form: NormalForm, codes: IndexArray, caps: FloatArray, solver: Solver) -> None:
        """Take everybody's stratum and cap, the latter in the caller's units."""
        self._form, self._codes, self._caps, self._solver = form, codes, caps, solver

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """Return the optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j.

        Values of one person differ as those of the objective; from which one they count is the solver's.
        """
        form, solver = self._form, self._solver
        loss, mse = np.empty(rows.size), np.empty(rows.size)
        parts: list[tuple[IndexArray, Answers]] = []
        codes, dearest = self._codes[rows], solver.dearest(rows)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            within = form.limited(costs)
            never = (within > dearest) & (within < math.inf)
            within = np.where(never, dearest, within)
            for stratum in np.flatnonzero(np.bincount(codes)).tolist():
                mine = np.flatnonzero(codes == stratum)
                for begin in range(0, mine.size, _CHUNK):
                    part = mine[begin : begin + _CHUNK]
                    found = solver.answers(stratum, rows[part], within[part])
                    loss[part], mse[part] = found.loss, found.mse
                    parts.append((part, found))
            loss[never] = 0.0
            caps, root = self._caps[rows], math.sqrt(form.unit)
            losses = np.where(loss >= caps * root * (1.0 - 1e-15), caps, np.minimum(loss / root, caps))
            errors = form.target.reported_error(mse * form.factor)
        beyond = np.flatnonzero((within != costs) & (losses > 0.0))

        def values() -> FloatArray:
            found = np.empty(rows.size)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                for part, one in parts:
                    found[part] = one.values()
                found *= form.money
                # beyond the limits a loss stays the same, and the value goes on as a line
                found[beyond] += losses[beyond] * (costs - within)[beyond]
            return found

        return Replies(values, losses, errors, solver.blur / root)
