"""The goal as one equation on the path of efficient purchases, in normal units.

Along the path parameter ``T`` the squared error ``N`` falls and the expense ``C`` rises. With the water levels' mean
``τ̄`` and ``W = Σ u ψ (τ − ψ)⁺`` (`hushbid.allocation.pieces`) a goal chooses the ``T`` at which its *excess* turns
positive:

    price     T⁴ − 2W        the sum N + C falls where this is negative; it may change its sign several times
    accuracy  r²·T − τ̄       N = τ̄/T
    budget    W − B²/2       C = √(2W)

On a piece of the path ``W = M·T − Q`` and ``τ̄ = M + c·T``, so each has its root in closed form or by Newton's method.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_ROUNDED = 1e-9
_LEAST_AT = 4.0 ** (-1.0 / 3.0) * (1.0 + 1e-9)
"""Where ``s⁴ − s`` is least, and a little to the right, so that its slope is positive."""

_WIDTH = 1.0 - 4.0 ** (-1.0 / 3.0)
_DEEPEST = 0.75 * 4.0 ** (-1.0 / 3.0)  # −(s⁴ − s) there: with a larger q there is no root
_BEND = math.sqrt(_DEEPEST / 6.0) * 4.0 ** (1.0 / 3.0) - _WIDTH
"""By how much a root near the least leaves it faster than in proportion."""


Elsewhere = tuple[IndexArray, FloatArray, FloatArray, FloatArray]
"""The piece that ``T`` lies in, and ``M``, ``Q`` and ``c`` of the other strata there."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The sums of a population in which one person's cost is replaced; see :mod:`hushbid.allocation.deviations`."""

    piece: IndexArray  # where T lies among all keys
    count: IndexArray  # how many of the stratum, as it is, are below the level
    present: BoolArray  # whether the person is, at the new cost
    others: FloatArray  # U_o
    away: FloatArray  # d, 0 where the person is not present or nobody else is active in the stratum
    mean_at: FloatArray  # M if the person cost m_o
    spread_without: FloatArray  # Q without the person
    floor_without: FloatArray  # c of the other strata
    total: FloatArray  # U
    centre: FloatArray  # m, counted from the base of the stratum
    mean: FloatArray  # M
    spread: FloatArray  # Q
    floor: FloatArray  # c

    def take(self, which: Any) -> "Sums":
        """Return some of the deviations' sums."""
        return Sums(*(getattr(self, name)[which] for name in self.__slots__))

    def put(self, which: IndexArray, new: "Sums") -> None:
        """Write over some of the deviations' sums."""
        for name in self.__slots__:
            getattr(self, name)[which] = getattr(new, name)

    def beside(self, elsewhere: Elsewhere) -> "Sums":
        """Return the same with the sums of the other strata, where these have none of them."""
        piece, mean, spread, floor = elsewhere
        return replace(
            self,
            piece=piece,
            mean_at=self.mean_at + mean,
            spread_without=self.spread_without + spread,
            floor_without=self.floor_without + floor,
            mean=self.mean + mean,
            spread=self.spread + spread,
            floor=self.floor + floor,
        )

    def same(self, other: "Sums") -> BoolArray:
        """Return whether both guesses have the same people active."""
        same: BoolArray = (self.piece == other.piece) & (self.count == other.count) & (self.present == other.present)
        return same

    def level(self, size: float, at: FloatArray) -> FloatArray:
        """Return the water level of the stratum at ``T`` if exactly these people are active."""
        return np.asarray(self.centre + size * at / self.total)


@dataclass(frozen=True, slots=True)
class Present:
    """The sums of the present optimum, and its ``T``."""

    mean: float
    spread: float
    floor: float
    at: float


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """By how much ``M``, ``Q`` and ``c`` differ from the present."""

    mean: FloatArray
    spread: FloatArray
    floor: FloatArray

    def paid(self, now: Present, at: FloatArray) -> FloatArray:
        """Return by how much ``W = M·T − Q`` differs at the changed ``T``."""
        return self.mean * at + now.mean * (at - now.at) - self.spread


@dataclass(frozen=True, slots=True)
class _Aim:
    """What a purchase aims at; every goal also has these, from ``T``, ``M``, ``Q`` and ``c`` of a piece:

    - ``excess``: the excess at ``T``, from ``τ̄`` and ``W`` there
    - ``root``: the ``T`` without excess; infinite where there is none, which `has_root` says
    - ``value``: the objective at a root, in normal units
    - ``value_change``: by how much it changes with the sums, without taking differences of it; ``at`` is their new root
    - ``step``: ``σ`` at a root, what the differences of levels and costs are divided by to give losses
    - ``surplus``: ``U(τ − ψ) = λT − U_o·d`` of a person whose cost was replaced, at the root of their piece; where
      ``T`` is a quotient the terms that cancel are left out
    """

    number: float  # the price of an error (1), the squared error or the budget
    error_factor: float  # what a unit of squared error adds to the objective, in the caller's units
    expense_factor: float  # what a unit of expense adds to it
    unimodal: ClassVar[bool] = True  # whether the objective has one local minimum along the path, whatever the costs

    def objective(self, mse: float, expense: float) -> float:
        """Return what is minimised, in the caller's units."""
        return self.error_factor * mse + self.expense_factor * expense

    def reported_error(self, mse: FloatArray) -> FloatArray:
        """Return the squared error in the caller's units, exactly what was stated where only rounding is between."""
        return mse

    def turning_point(self, mean: FloatArray) -> FloatArray:
        """Return the ``T`` at which the excess of a piece is least; not a number where it rises throughout."""
        return np.full(mean.shape, math.nan)

    def satisfied_for_free(self, floor: FloatArray, value: FloatArray) -> BoolArray:
        """Return whether zero-cost people are enough, whose error without noise is ``floor``.

        ``value`` is the best objective with other people. Never for a budget: paying others still reduces the error.
        """
        return np.zeros(np.shape(floor), dtype=bool)

    def free_total(self, floor: FloatArray) -> FloatArray:
        """Return the sum of all losses where zero-cost people are enough."""
        return np.full(np.shape(floor), math.inf)

    def dual_bound(self, level: float, squares: float) -> float:
        """Return what no objective is below, from ``τ̄`` and ``Σ u (τ − ψ)⁺²`` at any water levels.

        For a price, whose problem is not convex, they say nothing.
        """
        return 0.0

    def price_of_error(self, implied: float) -> float:
        """Return the price of an error at which the same is bought; ``implied`` is the one that the path has there."""
        return implied


@dataclass(frozen=True, slots=True)
class PriceTarget(_Aim):
    """The least ``N + C``."""

    kind: ClassVar[Literal["price"]] = "price"
    unimodal: ClassVar[bool] = False

    def excess(self, at: FloatArray, level: FloatArray, paid: FloatArray) -> FloatArray:
        square = at * at
        return square * square - 2.0 * paid

    def root(self, mean: FloatArray, spread: FloatArray, floor: FloatArray) -> FloatArray:
        """Return the larger root of ``T⁴ − 2MT + 2Q``, or where the quartic is least if it has none.

        With ``T = (2M)^{1/3}·s`` it is the root of ``s⁴ − s + q`` between ``4^{-1/3}``, where that is least, and 1.
        Newton's method begins with what is right to first order at both ends, and nowhere off by more than 0.4 %:
        so its third step is exact to rounding.
        """
        unit = np.cbrt(2.0 * mean)
        q = np.where(mean > 0.0, spread / np.where(mean > 0.0, mean * unit, 1.0), 0.0)
        away = np.sqrt(np.maximum(1.0 - q / _DEEPEST, 0.0))
        s = np.maximum(_LEAST_AT + away * (_WIDTH + _BEND * (1.0 - away)), _LEAST_AT)
        for _ in range(3):
            cube = s * s * s
            s = np.maximum(s - (s * (cube - 1.0) + q) / (4.0 * cube - 1.0), _LEAST_AT)
        return np.asarray(unit * s)

    def has_root(self, mean: FloatArray, floor: FloatArray) -> BoolArray:
        return np.asarray(mean >= 0.0)

    def exact_root(self, mean: Fraction, spread: Fraction, floor: Fraction) -> float:
        """Return the root from exact sums; for the other goals it is a quotient, rounded once."""
        return float(self.root(*(np.array([float(one)]) for one in (mean, spread, floor)))[0])

    def turning_point(self, mean: FloatArray) -> FloatArray:
        return np.cbrt(0.5 * mean)

    def value(self, at: FloatArray, mean: FloatArray, spread: FloatArray, floor: FloatArray) -> FloatArray:
        """Return ``c + T²/2 + 2M/T − Q/T²``: an error in ``T`` enters by its square only."""
        with np.errstate(divide="ignore", invalid="ignore"):
            noise = 0.5 * at * at + 2.0 * mean / at - spread / at / at
        return np.where(at > 0.0, floor + noise, math.inf)

    def step(self, at: FloatArray, paid: FloatArray) -> FloatArray:
        return 0.5 * at * at

    def satisfied_for_free(self, floor: FloatArray, value: FloatArray) -> BoolArray:
        return np.asarray(floor <= value)

    def value_change(self, now: Present, change: Change, at: FloatArray) -> FloatArray:
        both = at * now.at
        moved = 0.5 * (at + now.at) - 2.0 * now.mean / both + now.spread * (at + now.at) / (both * both)
        return change.floor + 2.0 * change.mean / at - change.spread / (at * at) + (at - now.at) * moved

    def surplus(self, at: FloatArray, size: float, sums: Sums) -> FloatArray:
        return size * at - sums.others * sums.away

    def price_of_error(self, implied: float) -> float:
        return self.error_factor


@dataclass(frozen=True, slots=True)
class AccuracyTarget(_Aim):
    """The least ``C`` with ``N`` at most the number."""

    squared_error: float  # what was stated, in the caller's units
    kind: ClassVar[Literal["accuracy"]] = "accuracy"

    def excess(self, at: FloatArray, level: FloatArray, paid: FloatArray) -> FloatArray:
        return self.number * at - level

    def root(self, mean: FloatArray, spread: FloatArray, floor: FloatArray) -> FloatArray:
        spare = self.number - floor
        return np.where(spare > 0.0, mean / np.where(spare > 0.0, spare, 1.0), math.inf)

    def has_root(self, mean: FloatArray, floor: FloatArray) -> BoolArray:
        return np.asarray(floor < self.number)

    def value(self, at: FloatArray, mean: FloatArray, spread: FloatArray, floor: FloatArray) -> FloatArray:
        return np.sqrt(2.0 * np.maximum(mean * at - spread, 0.0))

    def step(self, at: FloatArray, paid: FloatArray) -> FloatArray:
        return np.sqrt(0.5 * paid)

    def satisfied_for_free(self, floor: FloatArray, value: FloatArray) -> BoolArray:
        return np.asarray(floor <= self.number)

    def free_total(self, floor: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.sqrt(2.0 / np.maximum(self.number - floor, 0.0))

    def reported_error(self, mse: FloatArray) -> FloatArray:
        return np.where(np.abs(mse - self.squared_error) <= _ROUNDED * self.squared_error, self.squared_error, mse)

    def exact_root(self, mean: Fraction, spread: Fraction, floor: Fraction) -> float:
        spare = Fraction(self.number) - floor
        return float(mean / spare) if spare > 0 else math.inf

    def value_change(self, now: Present, change: Change, at: FloatArray) -> FloatArray:
        paid = now.mean * now.at - now.spread
        further = (change.mean + now.at * change.floor) / (self.number - now.floor - change.floor)  # of T
        more = change.mean * at + now.mean * further - change.spread
        return 2.0 * more / (np.sqrt(2.0 * (paid + more)) + math.sqrt(2.0 * paid))

    def surplus(self, at: FloatArray, size: float, sums: Sums) -> FloatArray:
        spare = sums.others * (self.number - sums.floor_without) - size * size
        return (size * sums.mean_at - sums.away * spare) / (self.number - sums.floor)

    def dual_bound(self, level: float, squares: float) -> float:
        return math.sqrt(max(2.0 * (level * level / self.number - squares), 0.0))


@dataclass(frozen=True, slots=True)
class BudgetTarget(_Aim):
    """The least ``N`` with ``C`` at most the number."""

    kind: ClassVar[Literal["budget"]] = "budget"

    def excess(self, at: FloatArray, level: FloatArray, paid: FloatArray) -> FloatArray:
        return paid - self.half

    @property
    def half(self) -> float:
        """``B²/2``, what ``W`` is at the wanted point."""
        return 0.5 * self.number * self.number

    def root(self, mean: FloatArray, spread: FloatArray, floor: FloatArray) -> FloatArray:
        return np.where(mean > 0.0, (self.half + spread) / np.where(mean > 0.0, mean, 1.0), math.inf)

    def has_root(self, mean: FloatArray, floor: FloatArray) -> BoolArray:
        return np.asarray(mean > 0.0)

    def value(self, at: FloatArray, mean: FloatArray, spread: FloatArray, floor: FloatArray) -> FloatArray:
        return floor + mean / at

    def step(self, at: FloatArray, paid: FloatArray) -> FloatArray:
        return np.full(np.shape(at), 0.5 * self.number)

    def exact_root(self, mean: Fraction, spread: Fraction, floor: Fraction) -> float:
        return float((Fraction(self.half) + spread) / mean) if mean > 0 else math.inf

    def value_change(self, now: Present, change: Change, at: FloatArray) -> FloatArray:
        return change.floor + (change.mean * now.at - now.mean * (at - now.at)) / (at * now.at)

    def surplus(self, at: FloatArray, size: float, sums: Sums) -> FloatArray:
        return (size * (self.half + sums.spread_without) - sums.others * sums.mean_at * sums.away) / sums.mean

    def dual_bound(self, level: float, squares: float) -> float:
        return level * level / (self.half + squares)


Target = PriceTarget | AccuracyTarget | BudgetTarget
