"""A lower bound on ``N + C`` along the path of efficient purchases, for many populations at once.

**Theorem** (second-order bound, any caps, strata and variances). For ``T`` in ``[T₁, T₂]``, ``J = N + C`` and
``ΔN = N(T₁) − N(T₂)``:

    J(T) ≥ J(T₁) − ΔN·(1 − T₁²/(2σ(T₂)))⁺      and      J(T) ≥ J(T₂) − ΔN·(T₂²/(2σ(T₁)) − 1)⁺.

*Proof.* ``dC = −(T²/2σ) dN`` along the path, ``N`` falls and ``σ`` rises. ∎ Both factors are of first order in
``T₂ − T₁`` near a minimum, so that intervals are settled quickly. Intervals whose bound is below what is attained are
halved until none is. A point is found by its *place*, any parameter that rises along the path: ``T`` itself, or ``σ``.
At place 0 nobody is paid, so the first bound there is ``N(T₂)``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_ROUNDS = 200
_FIRST_STEP = 16.0
"""The interval from 0 to a place is divided at this share of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """A point of the path of each of some populations."""

    at: FloatArray
    """``T``."""

    mse: FloatArray
    """``N``."""

    expense: FloatArray
    """``C``."""

    step: FloatArray
    """``σ``."""

    def take(self, some: IndexArray | BoolArray) -> "Figures":
        """Return some of them."""
        return Figures(self.at[some], self.mse[some], self.expense[some], self.step[some])


Evaluate = Callable[[IndexArray, FloatArray], Figures]
"""What gives the points at some places of the paths of some populations, by their numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """What was found for each population."""

    bound: FloatArray
    """No point of the path between the ends has a smaller ``N + C``."""

    value: FloatArray
    """The smallest that was seen, or what was known before."""

    at: FloatArray
    """Where it was seen; not a number where what was known before is as good."""


def least_along_paths(
    evaluate: Evaluate, grid: FloatArray, known: FloatArray, *, tolerance: float, at_zero: FloatArray
) -> Bounded:
    """Return bounds from place 0 to the last of ``grid``, within ``tolerance`` of the best values.

    ``grid`` has a row of ascending places for each population, ``known`` a value that is attained in each, and
    ``at_zero`` is ``N`` where nobody is paid: infinite unless each stratum has zero-cost people, and not a number where
    nothing below the grid is asked for.
    """
    people, columns = grid.shape
    which = np.repeat(np.arange(people), columns)
    seen = evaluate(which, grid.ravel())
    value, at = known.copy(), np.full(people, math.nan)
    _improve(value, at, which, grid.ravel(), seen)
    table = _Ends(which, grid.ravel(), seen)
    place = np.arange(which.size).reshape(grid.shape)
    left, right = table.take(place[:, :-1].ravel()), table.take(place[:, 1:].ravel())
    # from place 0 to the first
    begun = np.flatnonzero(~np.isnan(at_zero))
    nothing = np.zeros(begun.size)
    left = left.joined(_Ends(begun, nothing, Figures(nothing, at_zero[begun], nothing, nothing)))
    right = right.joined(table.take(place[begun, 0]))
    bound = np.full(people, math.inf)
    for round_ in range(_ROUNDS):
        each = interval_bounds(left.figures, right.figures)
        middle = np.where(left.place > 0.0, np.sqrt(left.place) * np.sqrt(right.place), right.place / _FIRST_STEP)
        halved = (each < value[left.which] * (1.0 - tolerance)) & (left.place < middle) & (middle < right.place)
        if round_ == _ROUNDS - 1:
            halved[:] = False
        settled = ~halved
        np.minimum.at(bound, left.which[settled], each[settled])
        if not halved.any():
            break
        left, right, middle = left.take(halved), right.take(halved), middle[halved]
        seen = evaluate(left.which, middle)
        _improve(value, at, left.which, middle, seen)
        between = _Ends(left.which, middle, seen)
        left, right = left.joined(between), between.joined(right)
    return Bounded(np.minimum(bound, value), value, at)


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """Ends of intervals: the number of the population, the place, and what is known there."""

    which: IndexArray
    place: FloatArray
    figures: Figures

    def take(self, some: IndexArray | BoolArray) -> "_Ends":
        return _Ends(self.which[some], self.place[some], self.figures.take(some))

    def joined(self, other: "_Ends") -> "_Ends":
        one, two = self.figures, other.figures
        figures = Figures(*(np.append(getattr(one, name), getattr(two, name)) for name in Figures.__slots__))
        return _Ends(np.append(self.which, other.which), np.append(self.place, other.place), figures)


def _improve(value: FloatArray, at: FloatArray, which: IndexArray, tried: FloatArray, seen: Figures) -> None:
    """Write the best that was seen of each population over what it had."""
    attained = np.nan_to_num(seen.mse + seen.expense, nan=math.inf)
    np.minimum.at(value, which, attained)
    best = attained <= value[which]
    at[which[best]] = tried[best]


def interval_bounds(one: Figures, two: Figures) -> FloatArray:
    """Return the theorem's bound between each point and the one behind it: the better of both."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        fall = np.maximum(one.mse - two.mse, 0.0)
        from_left = one.mse + one.expense - fall * np.maximum(1.0 - one.at * (one.at / (2.0 * two.step)), 0.0)
        from_right = two.mse + two.expense - fall * np.maximum(two.at * (two.at / (2.0 * one.step)) - 1.0, 0.0)
    # the error never is below the one at the right end, nor the expense below the one at the left
    plain = two.mse + one.expense
    return np.asarray(np.fmax(np.fmax(from_left, from_right), plain))
