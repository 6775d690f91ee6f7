"""The central problem, any strata, caps and variances, in the units in which it is solved.

People are in public strata ``g(i)`` with unknown means; wanted is ``Σ ℓ_g·(mean of stratum g)``. One mean is one
stratum of weight 1. Choose ``0 ≤ ε_i ≤ e_i`` and ``η > 0`` with ``Σ_{i in g} ε_i = |ℓ_g|·η``; then

    N = (2 + Σ V_i ε_i²)/η²   (squared error),      C = Σ ψ_i ε_i   (expense),

and a goal is the least ``A·N + C``, the least ``C`` with ``N ≤ r²``, or the least ``N`` with ``C ≤ B``.

**Normal units.** With ``v`` the smallest variance and ``Λ = Σ|ℓ_g|``: precisions are ``u_i = v/V_i``, the largest 1;
strata have sizes ``λ_g = |ℓ_g|/Λ``, which sum to 1; losses are counted in ``1/√v``, errors in ``Λ²v``. For a price
costs are divided by ``A·Λ²·v^{3/2}``, so that the error weight is 1.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from hushbid.allocation.goals import Goal
from hushbid.allocation.problem import Problem
from hushbid.allocation.targets import AccuracyTarget, BudgetTarget, PriceTarget, Target
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.errors import InputError, MarketError, NobodyToBuyFrom, Unreachable
from hushbid.estimation import Strata

_PRICE_LIMITS, _LIMITS = (1e-200, 1e150), (1e-140, 1e140)
"""Positive costs in normal units are moved between these: fourth powers of ``T``, or squares of costs, are numbers."""

LEAST_VARIANCE = 1e-60
"""A variance below this is counted as this: in data of range 1 it cannot be seen beside any noise."""

_LEAST_SHARE = 1e-8
"""So is one below this share of what is usual: sums over people of both kinds would have no digits of the others."""

_LEAST_SCALE = 1e-280
_WATCHED = 4096  # so many costs stand for all: enough to notice that the caller's array was reused


@dataclass(frozen=True, slots=True, eq=False)
class NormalForm:
    """The units of a problem, and its goal in them."""

    sizes: FloatArray  # λ_g: they sum to 1
    signs: FloatArray  # the sign of each stratum's weight
    unit: float  # the smallest variance
    scale: float  # what costs are divided by
    factor: float  # Λ²·unit: what an error in normal units is multiplied by
    target: Target  # the goal
    limits: tuple[float, float]
    """Positive finite costs outside count as the nearer end: a monotone change, so truthful as the rule itself is."""

    @classmethod
    def of(cls, weights: FloatArray, unit: float, goal: Goal) -> "NormalForm":
        """Return the units for strata of these weights; ``unit`` is the smallest variance."""
        together = float(np.abs(weights).sum())
        factor, root = together * together * unit, math.sqrt(unit)
        scale, limits, number = 1.0, _LIMITS, goal.number
        target: Target
        if goal.kind == "price":
            scale = number * factor * root
            if not _LEAST_SCALE <= scale < math.inf:
                raise InputError(
                    f"error_weight={number:g}, variance={unit:g} and weights of {together:g} together are too extreme:"
                    f" error_weight * weights**2 * variance**1.5 must be at least {_LEAST_SCALE:g}, and finite."
                )
            limits = _PRICE_LIMITS[0] * scale, _PRICE_LIMITS[1] * scale
            target = PriceTarget(1.0, number, 1.0)
        elif goal.kind == "accuracy":
            target = AccuracyTarget(number * number / factor, 0.0, 1.0, number * number)
        else:
            target = BudgetTarget(number * root, 1.0, 0.0)
        return cls(np.abs(weights) / together, np.sign(weights), unit, scale, factor, target, limits)

    @property
    def weight(self) -> float:
        """``Λ``: the weights of all strata together."""
        return math.sqrt(self.factor / self.unit)

    @property
    def money(self) -> float:
        """What an expense in normal units is multiplied by."""
        return self.scale / math.sqrt(self.unit)

    def limited(self, costs: FloatArray) -> FloatArray:
        """Return costs with the positive finite ones moved into the limits."""
        return limited(costs, self.limits)

    def objective(self, value: FloatArray) -> FloatArray:
        """Return objectives in the caller's units."""
        target = self.target
        unit = target.error_factor * self.factor if target.error_factor > 0.0 else target.expense_factor * self.money
        return value * unit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CentralProblem:
    """A validated central problem: what its solvers see."""

    form: NormalForm  # units and target
    costs: FloatArray = field(repr=False)
    """Everybody's virtual cost in the caller's money: 0, within the form's limits, or infinite for "never"."""

    variances: FloatArray = field(repr=False)  # everybody's variance, positive
    caps: FloatArray = field(repr=False)  # the most that may be bought from each, positive; infinite without a cap
    codes: IndexArray = field(repr=False)  # everybody's stratum
    totals: FloatArray  # the precision in each stratum of all who can be bought from, positive
    strata: Strata  # the strata as stated
    stated: FloatArray = field(repr=False)  # the costs as they were stated: what is paid for, and what is bid
    watched: FloatArray = field(repr=False)  # some of these, copied

    @classmethod
    def of(cls, problem: Problem, strata: Strata, caps: FloatArray) -> "CentralProblem":
        """Return the problem in normal form; refused where a stratum has nobody to buy from.

        Costs that cannot be computed with are moved to the nearest that can: no bid of one person may stop a purchase.
        """
        costs = problem.costs
        if strata.codes.shape != costs.shape:
            problem_with = f"strata must have one code per person ({costs.size}), got shape {strata.codes.shape}."
            raise InputError(problem_with, field="strata")
        variances = np.broadcast_to(countable(problem.variances), costs.shape)
        # of people who can be bought from
        unit = float(variances.min() if costs.max() < math.inf else variances[costs < math.inf].min())
        form = NormalForm.of(strata.weights, unit, problem.goal)
        _refuse_extreme(problem.cheapest, form)
        return cls(
            form=form,
            costs=form.limited(costs),
            variances=variances,
            caps=caps,
            codes=strata.codes,
            totals=_totals(costs, unit / variances, strata),
            strata=strata,
            stated=costs,
            watched=costs[:: max(costs.size // _WATCHED, 1)].copy(),
        )

    def with_cost(self, row: int, cost: float) -> "CentralProblem":
        """Return the problem in which one person has another cost; refused where their stratum is left empty."""
        costs = self.stated.copy()
        costs[row] = cost
        return replace(
            self,
            stated=costs,
            costs=self.form.limited(costs),
            totals=_totals(costs, self.form.unit / self.variances, self.strata),
            watched=costs[:: max(costs.size // _WATCHED, 1)].copy(),
        )

    @property
    def capped(self) -> bool:
        """Whether anybody has a cap."""
        return float(self.caps.min()) < math.inf

    def masses(self, rows: IndexArray) -> FloatArray:
        """Return the precisions of these people, the largest being 1."""
        return self.form.unit / self.variances[rows]

    def offsets(self, costs: FloatArray, origin: FloatArray) -> FloatArray:
        """Return how far costs are above one of them, in normal units; subtracting first keeps close costs apart."""
        with np.errstate(over="ignore"):  # what overflows is above every level that matters
            return (costs - origin) / self.form.scale

    @property
    def least_error(self) -> float:
        """The error in normal units of everybody's data without noise."""
        return float((np.square(self.form.sizes) / self.totals).sum())

    def refuse_changed(self) -> None:
        """Raise an error if the caller's array of costs was changed since."""
        if not np.array_equal(self.stated[:: max(self.stated.size // _WATCHED, 1)], self.watched):
            raise InputError(
                "virtual_costs were changed after they were allocated: the bound would be for other people."
            )

    def with_lower_costs(self) -> "CentralProblem":
        """Return the problem in which no cost is above the stated one: what was moved up asks for nothing."""
        if not (self.costs > self.stated).any():
            return self
        return replace(self, costs=np.where(self.costs > self.stated, 0.0, self.costs))

    def impossible(self) -> MarketError:
        """Return what to say where no purchase reaches the target."""
        form = self.form
        if form.target.kind == "budget":
            return MarketError("Every virtual cost is 0: a budget cannot be spent on people who ask for nothing.")
        people = int(np.count_nonzero(self.costs < math.inf))
        where = " in their strata" if form.sizes.size > 1 else ""
        return Unreachable(
            f"standard_error must be above {math.sqrt(self.least_error * form.factor):.6g}, the error of these {people}"
            f" people's data{where} without any noise, got {math.sqrt(form.target.number * form.factor):g}.",
            field="standard_error",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Purchase:
    """Whom to buy from, and how much."""

    rows: IndexArray  # people; nothing is bought from others
    losses: FloatArray  # their privacy losses, in the caller's units; infinite where no noise is added
    worth: float  # the price of an error, in normal units, at which the same would be bought


def countable(variances: FloatArray) -> FloatArray:
    """Return variances, the smallest moved up to where they are counted."""
    usual = float(np.median(variances.ravel()[:: max(variances.size // _WATCHED, 1)]))
    return np.maximum(variances, max(LEAST_VARIANCE, _LEAST_SHARE * usual))


def limited(costs: FloatArray, limits: tuple[float, float]) -> FloatArray:
    """Return costs with the positive finite ones moved into the limits."""
    least, most = limits
    if not costs.min(initial=math.inf) < least and not costs.max(initial=0.0) > most:
        return costs
    costs = np.where((costs > 0.0) & (costs < least), least, costs)
    return np.where((costs > most) & (costs < math.inf), most, costs)


def _refuse_extreme(cheapest: float, form: NormalForm) -> None:
    """Refuse costs that are all beyond what can be computed with."""
    most = form.limits[1]
    if cheapest > most:
        raise InputError(
            f"virtual_costs must not all be above {most:g}, got {cheapest:g} as the smallest.", field="virtual_costs"
        )


def _totals(costs: FloatArray, masses: FloatArray, strata: Strata) -> FloatArray:
    """Return the mass in each stratum; refused where nobody sells in a stratum, which must be bought from."""
    if costs.max() == math.inf:
        masses = np.where(costs < math.inf, masses, 0.0)
    totals: FloatArray = np.bincount(strata.codes, weights=masses, minlength=strata.count).astype(np.float64)
    if not (totals > 0.0).all():
        raise nobody_sells(strata, int(np.argmin(totals)))
    return totals


def nobody_sells(strata: Strata, stratum: int) -> NobodyToBuyFrom:
    """Return what to say about a stratum that must be bought from, and cannot be."""
    label = strata.label(stratum)
    return NobodyToBuyFrom(f"Stratum {label} has nobody to buy from: it is empty, or every virtual cost is infinite.")
