"""The local problem in normal form: what a privacy loss supplies, and what precision is wanted.

Divide losses by ``V^{-1/2}``, precisions by ``1/V`` and costs by a scale. Person i supplies ``q(y_i)`` for ``ψ_i·y_i``
and may lose at most the cap ``e``, infinite if there is none. A goal is a demand for the sum ``Λ = Σ q(y_i)``: an error
of ``1/Λ`` costs ``κ/Λ``, and ``Λ`` must be from ``l`` to ``m``. At the price ``P`` per unit of precision that is

    wanted(P) = √(κ/P), but at least l and at most m:       price of the error: (κ, l, m) = (1, 0, ∞)
                                                            accuracy r:         (κ, l, m) = (0, T, T),  T = V/r²

and no objective is below ``κ/Λ + P·Λ + Σ min(ψ_i·y − P·q(y))`` at ``Λ = wanted(P)``, for any ``P``. Both goals, both
curves (`precision`) and every cap are these numbers; so are the parts of an accuracy that strata divide
(`local_strata`).
"""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation.precision import LAPLACE, RESPONSE, Supply
from hushbid.allocation.problem import LEAST, MOST, TINY, Problem
from hushbid.allocation.unsolved import LOCAL_BUDGET, LOCAL_CAPS
from hushbid.common.arrays import FloatArray, IndexArray, as_number
from hushbid.errors import InputError

_INVISIBLE = 1e-100
"""A variance below this share of the error that noise alone makes is lifted to it: nobody could see the difference."""

_LEAST_CAP = 1e-70  # a smaller cap in normal form would make prices that are no numbers
Value = TypeVar("Value", float, FloatArray)

_LARGEST = 1e170
"""For a price, whoever costs more than this in normal form is never bought from: somebody is cheaper than 2e150."""


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """The precision that is wanted at a price, in each of many lists of people."""

    worth: FloatArray  # κ, what an error of 1 costs
    least: FloatArray  # l, which is wanted at any price
    most: FloatArray  # m, more than which is not wanted if it costs nothing

    @classmethod
    def price(cls, worth: float, lists: int = 1) -> "Demand":
        """Want what the price of the error makes worth its cost, in so many lists."""
        return cls(np.full(lists, worth), np.zeros(lists), np.full(lists, math.inf))

    @classmethod
    def exactly(cls, precision: FloatArray) -> "Demand":
        """Want one precision, whatever it costs."""
        return cls(np.zeros(precision.size), precision, precision)

    def less(self, share: float) -> "Demand":
        """Want so much less of what is wanted at any price."""
        return Demand(self.worth, self.least * (1.0 - share), self.most * (1.0 - share))

    def of(self, which: IndexArray) -> "Demand":
        """Return the demand of some of the lists."""
        return Demand(self.worth[which], self.least[which], self.most[which])

    def wanted(self, price: FloatArray) -> FloatArray:
        """Return the precision wanted at a price."""
        found: FloatArray = np.minimum(np.maximum(np.sqrt(self.worth / price), self.least), self.most)
        return found

    def change(self, wanted: FloatArray) -> FloatArray:
        """Return by how much less is wanted if the logarithm of the price rises."""
        return np.where((self.least < wanted) & (wanted < self.most), 0.5 * wanted, 0.0)

    def cost(self, wanted: FloatArray) -> FloatArray:
        """Return what the error costs at a precision."""
        found: FloatArray = self.worth / wanted
        return found

    def fall(self, price: FloatArray, more: float) -> FloatArray:
        """Return by what factor the price is lower, at the most, where so much more is supplied by one person."""
        wanted = self.wanted(price)
        free = (self.change(wanted) > 0.0) & (wanted + more < self.most)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(free, (1.0 + more / wanted) ** 2, math.inf)


@dataclass(frozen=True, slots=True)
class NormalForm:
    """How losses, costs and precisions are counted in normal form, and how to get back."""

    supply: Supply
    scale: float  # what costs are divided by
    variance: float  # V, what precisions are multiplied by, and losses by its root
    max_loss: float  # the cap in the caller's units
    least: float  # positive costs below this are lifted to it: nobody could see the difference
    most: float  # nobody is bought from at a cost above this

    def losses(self, y: FloatArray) -> FloatArray:
        """Losses in the caller's units."""
        found: FloatArray = np.minimum(y / math.sqrt(self.variance), self.max_loss)
        return found

    def money(self, value: Value) -> Value:
        """An objective in the caller's units."""
        return value * (self.scale / math.sqrt(self.variance))


def normal_form(problem: Problem, max_loss: float) -> NormalForm:
    """Bring a problem with a price or an accuracy into normal form; refused where its numbers are too extreme."""
    number, scale = problem.goal.number, 1.0
    if problem.goal.kind == "price":
        # the cheapest alone, without variance, would make this error
        variance = _visible(problem, 2.0 * (0.25 * problem.cheapest) ** (2.0 / 3.0) / number ** (2.0 / 3.0))
        scale = problem.scale(variance)
        least, most = TINY * scale, _LARGEST * scale
    else:
        variance = _visible(problem, number**2)
        problem.confine()
        least, most = LEAST, MOST
    root = math.sqrt(variance)
    if max_loss * root < _LEAST_CAP:
        raise InputError(
            f"max_privacy_loss must be at least {_LEAST_CAP / root:g} for these numbers, got {max_loss:g}: what a"
            " smaller loss tells is too little to compute with.",
            field="max_privacy_loss",
        )
    supply = Supply.up_to(RESPONSE if problem.response else LAPLACE, max_loss * root)
    return NormalForm(supply, scale, variance, max_loss, least, most)


def _visible(problem: Problem, error: float) -> float:
    """The variance, lifted where it could not be seen next to the ``error``; with randomised response it is fixed."""
    assert isinstance(problem.variance, float)
    least = _INVISIBLE * error
    if problem.response and problem.variance < least:
        raise InputError(
            f"virtual_costs must not all be so high for this error_weight, got {problem.cheapest:g} as the smallest:"
            " the best privacy losses would be too small to compute with.",
            field="virtual_costs",
        )
    return max(problem.variance, least)


def as_local_cap(max_loss: ArrayLike, problem: Problem) -> float:
    """Return the one positive cap for all, infinite for none; refused with a goal or a cap that is not solved."""
    if problem.goal.kind not in ("price", "accuracy"):
        raise LOCAL_BUDGET.error()
    if np.ndim(max_loss) > 0:
        raise LOCAL_CAPS.error()
    cap = as_number(max_loss, "max_privacy_loss")
    if not cap > 0.0:
        raise InputError(f"max_privacy_loss must be positive, got {cap:g}.", field="max_privacy_loss")
    return cap
