"""Everybody in memory is one chunk: from a plan and those present to integer weights, checked person by person.

What memory adds to `hushbid.disclosure.sums` is what only it can know: the best use of the losses of those who are
left, every single promise compared with what it costs, and data that need no noise.
"""

import math
import sys
from dataclasses import dataclass, field

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IntArray
from hushbid.disclosure.combination import rows_of, sizes_of
from hushbid.disclosure.grid import check_promises, exponent_of, integer_weights
from hushbid.disclosure.prepare import PreparedSums, prepare
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.sum_plan import SumPlan
from hushbid.disclosure.sums import Above, Sums
from hushbid.disclosure.weighing import Weighing, bounds_of
from hushbid.errors import ReleaseError
from hushbid.estimation import best_weights

_NOISELESS_BITS = 50
ENOUGH = 2**50
"""With less weight than this the grid follows from those who delivered, not from what was planned."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weighed:
    """Integer weights for those who delivered, checked against every promise, ready for data and noise."""

    plan: ReleasePlan
    """The promises."""

    sum_plan: SumPlan
    """What is added up, and by what."""

    losses: FloatArray = field(repr=False)
    """What is used of everybody's loss, 0 for those who did not deliver; shares of a stratum if there is no noise."""

    weights: IntArray = field(repr=False)
    """``W_i`` for everybody."""

    @property
    def shares(self) -> FloatArray:
        """Everybody's ``|ω|``: how much their datum moves the estimate, on a range of width 1."""
        strata, shares = self.plan.strata, self.weights.astype(np.float64)
        for rows, weight in zip(rows_of(strata), np.abs(strata.weights).tolist(), strict=True):
            shares[rows] *= weight / float(self.weights[rows].sum())
        return shares

    def sums(self, table: FloatArray) -> Sums:
        """Add up answers, people × questions; only the rows with a weight are read."""
        variance = self.plan.variance
        differs = None if (variance == variance[0]).all() else variance
        return Sums.of(self.losses, table, self.plan.strata.codes, self.sum_plan, differs)

    def prepare(self, table: FloatArray) -> PreparedSums:
        """Add up answers, and leave only the drawing."""
        sums = self.sums(table)
        if self.plan.relation is None:
            return prepare(self.sum_plan, sums)
        above = Above.of(self.losses, table, self.plan.strata.codes, self.sum_plan, sums.weights)
        return prepare(self.sum_plan, sums, above)

    def without_data(self) -> PreparedSums:
        """Prepare as if everybody gave the lowest answers: proportions and errors do not depend on data."""
        return self.prepare(np.tile([bounds_of(one)[0] for one in self.sum_plan.questions], (self.plan.people, 1)))


def weigh(plan: ReleasePlan, present: BoolArray) -> Weighed:
    """Weigh those present, in proportion to what is used of their losses, and check all promises.

    With an infinite loss among them, weight sits on those people only (most precise first) and there is no noise.
    """
    losses = plan.losses_used(present)
    unlimited = losses == math.inf
    if unlimited.any():
        return _noiseless(plan, unlimited)
    exponent = _exponent(plan, losses)
    weights = integer_weights(losses, exponent)
    check_promises(weights, exponent, plan.promised)
    return Weighed(plan=plan, sum_plan=_sum_plan(plan, losses, exponent), losses=losses, weights=weights)


def _exponent(plan: ReleasePlan, losses: FloatArray) -> int:
    """``t`` as on an engine: from what was planned for all, and from what is used beyond it where some drop out."""
    planned = np.where(plan.delivered < math.inf, plan.delivered, 0.0)
    exponent = exponent_of(np.maximum(losses, planned))
    if int(integer_weights(losses, exponent).sum()) >= ENOUGH:
        return exponent
    # nearly all of what was planned has dropped out: the others do not fit on its grid
    return exponent_of(losses)


def _noiseless(plan: ReleasePlan, unlimited: BoolArray) -> Weighed:
    if (plan.promised[unlimited] < math.inf).any():
        raise ReleaseError("An infinite privacy loss was planned for somebody who was promised a finite one.")
    # no noise to be exact about: shares rounded down to a fine grid
    shares = _unlimited_shares(plan, unlimited, plan.unit_variance)
    weights, sum_plan = (
        integer_weights(shares, _NOISELESS_BITS),
        _sum_plan(plan, shares, _NOISELESS_BITS, noiseless=True),
    )
    return Weighed(plan=plan, sum_plan=sum_plan, losses=shares, weights=weights)


def _sum_plan(plan: ReleasePlan, losses: FloatArray, exponent: int, *, noiseless: bool = False) -> SumPlan:
    """What is added up of these losses."""
    strata = plan.strata
    with np.errstate(over="ignore"):
        totals = [min(float(losses[rows].sum()), sys.float_info.max) for rows in rows_of(strata)]
    return SumPlan(
        **plan.as_fields,
        exponent=exponent,
        weights=tuple(strata.weights.tolist()),
        losses=tuple(totals),
        active=int(np.count_nonzero(plan.delivered > 0.0)),
        largest_loss=float(losses.max()),
        largest_variance=float(plan.variance.max()),
        planned=planned_weighing(plan),
        combined=plan.combined,
        noiseless=noiseless,
    )


# -- if everybody delivers ---------------------------------------------------------------------------------------------


def planned_weighing(plan: ReleasePlan) -> Weighing:
    """How weights are spread if everybody delivers; from the plan alone."""
    with np.errstate(over="ignore"):  # losses so small that nothing can be released for them
        weights, scale = planned_weights(plan)
    return Weighing.of(
        weights,
        variance=plan.variance,
        noise=np.array([scale]),
        relation=plan.relation,
        strata=plan.strata,
    )


def planned_weights(plan: ReleasePlan) -> tuple[FloatArray, float]:
    """Everybody's weight if all deliver, without its sign, and the scale of the noise on a range of width 1."""
    losses, strata, scale = plan.delivered, plan.strata, 0.0
    if (losses == math.inf).any():
        return _unlimited_shares(plan, losses == math.inf, plan.weighing_variance) * sizes_of(strata), 0.0
    weights = np.zeros(losses.size)
    for rows, size in zip(rows_of(strata), np.abs(strata.weights).tolist(), strict=True):
        # relative to the largest, so that tiny losses do not vanish in the sum
        some = losses[rows]
        largest = some.max()
        weights[rows] = size * (some / largest / np.sum(some / largest))
        scale = max(scale, float(weights[rows].max() / largest))
    return weights, scale


def _unlimited_shares(plan: ReleasePlan, unlimited: BoolArray, variance: FloatArray) -> FloatArray:
    """Everybody's part of their stratum if data are used without noise: only theirs who ask for no privacy."""
    losses, shares = np.where(unlimited, math.inf, 0.0), np.zeros(unlimited.size)
    for rows in rows_of(plan.strata):
        shares[rows] = best_weights(losses[rows], setting="central", variance=variance[rows]).weights
    return shares
