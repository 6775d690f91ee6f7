"""Central setting: the trusted sum. From a plan and data to exact integers, noise, and only then an estimate.

Where stratum means are combined, their sums become one as `hushbid.disclosure.contrast` says; one mean is one stratum.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from hushbid.arrays import BoolArray, FloatArray, IntArray
from hushbid.disclosure import noise
from hushbid.disclosure.contrast import Blend, blend_of, losses_left, rows_of, shares_of, weights_of
from hushbid.disclosure.error import ErrorModel, error_model
from hushbid.disclosure.grid import (
    DATA_BITS,
    ESTIMATE_BITS,
    PromiseCheck,
    check_promises,
    exact_sum,
    exponent_of,
    integer_weights,
    ratio_in_data_units,
    to_grid,
)
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.release import Grid
from hushbid.errors import ReleaseError
from hushbid.estimation import best_weights

_NOISELESS_BITS = 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sum:
    """Integer weights for those who delivered, ready for data and noise."""

    plan: ReleasePlan
    """The promises."""

    weights: IntArray = field(repr=False)
    """``W_i`` for everybody, 0 for those who did not deliver."""

    blend: Blend
    """How the sums of strata become one."""

    exponent: int | None
    """``t``: the noise has scale 2**t and person i loses ``W_i/2**t``; None if there is no noise."""

    privacy_loss: FloatArray = field(repr=False)
    """What everybody loses, exactly."""

    check: PromiseCheck
    """That all promises are kept."""

    @property
    def total_weight(self) -> int:
        """``Σ W_i``, positive."""
        return int(self.weights.sum())

    @property
    def shares(self) -> FloatArray:
        """Everybody's ``|ω|``: how much her datum moves the estimate, on a range of width 1."""
        return shares_of(self.weights, self.plan.strata)

    @property
    def noise_scale(self) -> float:
        """The scale, in steps of the sum, that the sampler receives; 0 for no noise."""
        return 0.0 if self.exponent is None else math.ldexp(1.0, self.exponent)

    @property
    def grid(self) -> Grid:
        """The integers, for the record."""
        return Grid(
            data_bits=DATA_BITS,
            weight_exponent=self.exponent,
            total_weight=self.total_weight,
            noise_scale=self.noise_scale,
        )

    @property
    def error(self) -> ErrorModel:
        """How far an estimate may lie from the mean: the integer weights' own error, rounding included."""
        size, step = self.blend.size, self.blend.step
        return error_model(
            weights=self.shares,
            variance=self.plan.variance,
            width=self.plan.width,
            noise=np.array([self.plan.width * self.noise_scale * step]),
            rounding=self.plan.width * (size * 2.0**-DATA_BITS + 2.0**-ESTIMATE_BITS + 2.0 * step),
            relation=self.plan.relation,
            strata=self.plan.strata,
        )

    def total(self, column: FloatArray) -> int:
        """``floor(Σ W_i X_i / 2**40)``, exactly, strata in proportion. Only the rows with a weight are read."""
        used = self.weights > 0
        values = np.zeros(column.size, dtype=np.int64)
        values[used] = to_grid(column[used], self.plan.bounds)
        sums = [exact_sum(self.weights[rows], values[rows]) for rows in rows_of(self.plan.strata)]
        return self.blend.floor(sums, DATA_BITS)

    def estimates(self, totals: list[int]) -> list[float]:
        """Every total with noise of its own, as an estimate in data units."""
        noisy = totals if self.exponent is None else noise.draw_many(totals, scale=self.noise_scale)
        above, below = self.blend.total.as_integer_ratio()
        return [ratio_in_data_units(value * below, above, self.plan.bounds, self.blend.level) for value in noisy]


def weigh(plan: ReleasePlan, present: BoolArray) -> Sum:
    """Weights over those present, proportional to their planned losses; all promises checked.

    If the planned losses are what the best estimate of all uses, those present are what it uses of theirs: with fewer
    people the best estimator listens to nobody less. Where stratum means are combined they may not suffice in each, and
    the best contrast of what was promised to those present is used.
    With an infinite loss among them, weight sits on those people only (most precise first) and there is no noise.
    """
    losses = np.where(present, plan.delivered, 0.0)
    if plan.strata is not None:
        losses = losses_left(plan.promised, plan.delivered, present, plan.unit_variance, plan.strata)
    unlimited = losses == math.inf
    if unlimited.any():
        return _noiseless(plan, unlimited)
    on_engine = plan.from_engine and (plan.delivered < math.inf).all() and (losses <= plan.delivered).all()
    fixed = exponent_of(math.fsum(plan.delivered)) if on_engine else None
    weights, exponent = integer_weights(losses, fixed)
    if not weights.any():
        raise ReleaseError(
            f"Somebody who delivered must have a privacy loss of at least 2**-54 to release anything,"
            f" got at most {float(losses.max())}."
        )
    return Sum(
        plan=plan,
        weights=weights,
        blend=blend_of(weights, plan.strata),
        exponent=exponent,
        privacy_loss=np.ldexp(weights.astype(np.float64), -exponent),
        check=check_promises(weights, exponent, plan.promised),
    )


def planned_weights(plan: ReleasePlan) -> tuple[FloatArray, float]:
    """Everybody's weight if all deliver, without its sign, and the scale of the noise on a range of width 1."""
    losses, scale = plan.delivered, 0.0
    if (losses == math.inf).any():
        shares = _unlimited_shares(plan, losses == math.inf, plan.weighing_variance)
        return shares * _sizes(plan), 0.0
    weights = np.zeros(losses.size)
    for rows, size in zip(rows_of(plan.strata), np.abs(weights_of(plan.strata)).tolist(), strict=True):
        # relative to the largest, so that tiny losses do not vanish in the sum
        some = losses[rows]
        largest = some.max()
        weights[rows] = size * (some / largest / np.sum(some / largest))
        scale = max(scale, float(weights[rows].max() / largest))
    return weights, scale


def planned_error(plan: ReleasePlan) -> ErrorModel:
    """How far the estimate may lie from the mean if everybody delivers; from the plan alone."""
    weights, scale = planned_weights(plan)
    return error_model(
        weights=weights,
        variance=plan.variance,
        width=plan.width,
        noise=np.array([plan.width * scale]),
        rounding=0.0,
        relation=plan.relation,
        strata=plan.strata,
    )


def _unlimited_shares(plan: ReleasePlan, unlimited: BoolArray, variance: FloatArray) -> FloatArray:
    """Everybody's part of her stratum if data are used without noise: only theirs who ask for no privacy."""
    losses, shares = np.where(unlimited, math.inf, 0.0), np.zeros(unlimited.size)
    for rows in rows_of(plan.strata):
        shares[rows] = best_weights(losses[rows], setting="central", variance=variance[rows]).weights
    return shares


def _sizes(plan: ReleasePlan) -> FloatArray | float:
    """The ``|ℓ|`` of everybody's stratum."""
    return 1.0 if plan.strata is None else np.abs(plan.strata.weights)[plan.strata.codes]


def _noiseless(plan: ReleasePlan, unlimited: BoolArray) -> Sum:
    if (plan.promised[unlimited] < math.inf).any():
        raise ReleaseError("An infinite privacy loss was planned for somebody who was promised a finite one.")
    losses = np.where(unlimited, math.inf, 0.0)
    # no noise to be exact about: shares rounded down to a fine grid
    shares = _unlimited_shares(plan, unlimited, plan.unit_variance)
    weights = np.floor(np.ldexp(shares, _NOISELESS_BITS)).astype(np.int64)
    check = PromiseCheck(people=plan.people, people_in_fractions=0, people_mapped=0, largest_share=1.0)
    return Sum(
        plan=plan,
        weights=weights,
        blend=blend_of(weights, plan.strata),
        exponent=None,
        privacy_loss=losses,
        check=check,
    )
