"""The problem with strata, in units in which it is solved, and what is refused.

People are in public strata ``g(i)`` with unknown means; wanted is ``Σ ℓ_g θ_g``. One noise serves all strata:

    minimise over ω, η   A·(2/η² + Σ V_i ω_i²) + Σ ψ_i ε_i,   Σ_{i in g} ω_i = ℓ_g,   ε_i = η|ω_i|,

or the sum subject to an error, or the error subject to the sum. Dividing the weights by ``Λ = Σ|ℓ_g|`` divides the
error by ``Λ²`` and leaves losses as they are, so the sizes ``λ_g = |ℓ_g|/Λ`` sum to one, and with one stratum this is
the ordinary problem.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from hushbid.allocation.goals import Accuracy, Budget, Price
from hushbid.allocation.problem import HUGE, TINY, Problem
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import InputError, NobodyToBuyFrom, Unreachable
from hushbid.estimation import Strata

LEAST, MOST = 1e-140, 1e140
"""Between these costs are taken as they are for an accuracy or a budget: their squares are ordinary numbers."""

_LEAST_SCALE = 1e-280


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """A problem with strata in normal form."""

    costs: FloatArray
    """Everybody's cost, lifted or lowered into ``limits``; infinite for people never bought from."""

    codes: IndexArray
    """Everybody's stratum."""

    sizes: FloatArray
    """``λ_g``: they sum to one."""

    signs: FloatArray
    """The sign of each stratum's weight."""

    variance: float | FloatArray
    """One for all, or one per person."""

    unit: float
    """The smallest variance: precisions are counted in units of one over it."""

    scale: float
    """What costs are divided by."""

    factor: float
    """``Λ²·unit``: what an error in normal form is multiplied by."""

    goal: Price | Accuracy | Budget
    """What is aimed at, in the caller's units."""

    totals: FloatArray
    """The mass of everybody in each stratum who can be bought from."""

    limits: tuple[float, float]
    """Positive costs outside count as the nearer end: a monotone change, so truthful as the rule itself is."""

    @classmethod
    def of(cls, problem: Problem, strata: Strata) -> "Scaled":
        """These people in these strata; refused where a stratum has nobody to buy from."""
        costs, goal = problem.costs, problem.goal
        assert isinstance(goal, (Price, Accuracy, Budget))
        if strata.codes.shape != costs.shape:
            told = f"strata must have one code per person ({costs.size}), got shape {strata.codes.shape}."
            raise InputError(told, field="strata")
        unit = problem.variance if isinstance(problem.variance, float) else float(problem.variance.min())
        if not unit > 0.0:
            raise InputError("variance must be positive with strata, got 0.", field="variance")
        empty = cls.counted(strata.weights, variance=unit, goal=goal, totals=_totals(problem, strata, unit))
        return replace(empty, costs=limited(costs, empty.limits), codes=strata.codes, variance=problem.variance)

    @classmethod
    def counted(
        cls, weights: FloatArray, *, variance: float, goal: Price | Accuracy | Budget, totals: FloatArray
    ) -> "Scaled":
        """Strata with these weights in which people are counted, but not listed; ``variance`` is the smallest."""
        together = float(np.abs(weights).sum())
        factor, scale = together * together * variance, 1.0
        limits = LEAST, MOST
        if isinstance(goal, Price):
            scale = goal.buyer_weight * factor * math.sqrt(variance)
            if not _LEAST_SCALE <= scale < math.inf:
                raise InputError(
                    f"error_weight={goal.buyer_weight:g}, variance={variance:g} and weights of {together:g} together"
                    f" are too extreme: error_weight * weights**2 * variance**1.5 must be at least {_LEAST_SCALE:g},"
                    " and finite."
                )
            limits = TINY * scale, HUGE * scale
        return cls(
            costs=np.zeros(0),
            codes=np.zeros(0, dtype=np.intp),
            sizes=np.abs(weights) / together,
            signs=np.sign(weights),
            variance=variance,
            unit=variance,
            scale=scale,
            factor=factor,
            goal=goal,
            totals=totals,
            limits=limits,
        )

    @property
    def ratio(self) -> float:
        """``r²`` in normal form."""
        assert isinstance(self.goal, Accuracy)
        return self.goal.number**2 / self.factor

    @property
    def half(self) -> float:
        """``B²/2`` in normal form."""
        assert isinstance(self.goal, Budget)
        return 0.5 * self.unit * self.goal.amount**2

    def past(self, value: float) -> float:
        """A ``T`` past which ``Φ`` is above a value: what is left of it beyond everybody's error is ``3·T²/2``."""
        least = float((np.square(self.sizes) / self.totals).sum())
        return math.sqrt(max(value - least, 0.0) / 1.5) * (1.0 + 1e-12)

    def masses(self, rows: IndexArray | slice) -> FloatArray:
        """The precisions of these people, the largest being 1."""
        if isinstance(self.variance, float):
            return np.ones(self.costs[rows].size)
        return self.unit / self.variance[rows]

    def unreachable(self, floor: float, people: int) -> Unreachable:
        """What to say where the accuracy is beyond these people's data; ``floor`` is their error without noise."""
        assert isinstance(self.goal, Accuracy)
        return Unreachable(
            f"standard_error must be above {math.sqrt(floor * self.factor):.6g}, the error of these {people} people's"
            f" data in their strata without any noise, got {self.goal.standard_error:g}.",
            field="standard_error",
        )


def limited(costs: FloatArray, limits: tuple[float, float]) -> FloatArray:
    """Costs with the positive finite ones moved into the limits."""
    least, most = limits
    low = costs.min(initial=math.inf) < least
    if not low and not costs.max(initial=0.0) > most:
        return costs
    costs = np.where((costs > 0.0) & (costs < least), least, costs)
    return np.where((costs > most) & (costs < math.inf), most, costs)


def nobody_sells(strata: Strata, stratum: int) -> NobodyToBuyFrom:
    """What to say about a stratum that must be bought from, and cannot be."""
    label = strata.label(stratum)
    return NobodyToBuyFrom(f"Stratum {label} has nobody to buy from: it is empty, or every virtual cost is infinite.")


def _totals(problem: Problem, strata: Strata, unit: float) -> FloatArray:
    """The mass in each stratum; refused where nobody sells in a stratum, which must be bought from."""
    codes, variance = strata.codes, problem.variance
    mass = None if isinstance(variance, float) else unit / variance
    if problem.costs.max() == math.inf:
        finite = problem.costs < math.inf
        codes, mass = codes[finite], None if mass is None else mass[finite]
    totals = np.bincount(codes, weights=mass, minlength=strata.count)
    if not (totals > 0.0).all():
        raise nobody_sells(strata, int(np.argmin(totals)))
    return totals.astype(np.float64)
