"""The level and the rate at which a capped purchase meets its goal, for many populations at once.

An efficient purchase ``ε_i = clip(ρ·u_i·(τ − ψ_i), 0, e_i)`` has ``Σ ε_i(τρ − V_iε_i) = 2``: with ``W`` over those
inside and ``E, D, L = Σ e, ΣVe², Σψe`` over those at their cap,

    ρ²W + ρτE = 2 + D,      S = E + ρG,      MSE = τρ/S,      expense = L + ρW.

For each level one rate satisfies it, and along the levels the error falls and the expense rises. A goal adds one
equation: ``r²S = τρ`` (accuracy), ``L + ρW = B`` (budget), ``S² = 2ρ`` (price, error weight 1). Newton's method solves
the two, as the groups are guessed right after a few steps; where it does not settle, halving does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hushbid.allocation.capped.crowds import Variants
from hushbid.allocation.capped.people import Totals
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_STEPS = 30
_SETTLED = 1e-13


@dataclass(frozen=True, slots=True)
class Aim:
    """What is aimed at, in the units of a crowd."""

    kind: Literal["price", "accuracy", "budget"]
    """Which equation."""

    number: float
    """``r²`` or ``B``; 1 for a price."""


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """A level (counted from the base), a rate and the sums there, for each of some populations."""

    level: FloatArray
    rate: FloatArray
    totals: Totals
    base: float

    @property
    def all_losses(self) -> FloatArray:
        """``S``."""
        return self.totals.used + self.rate * self.totals.gain

    @property
    def expense(self) -> FloatArray:
        """``Σ ψ·ε``."""
        return self.totals.spent + self.rate * self.totals.paid

    @property
    def mse(self) -> FloatArray:
        """The mean squared error, whether or not rate and level fit together."""
        totals, rate = self.totals, self.rate
        spread = rate * rate * np.maximum((self.base + self.level) * totals.gain - totals.paid, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (2.0 + totals.squares + spread) / np.square(self.all_losses)


def newton(variants: Variants, aim: Aim, level: FloatArray, rate: FloatArray) -> tuple[Points, BoolArray]:
    """Both equations from a first guess; and where the steps settled."""
    base = variants.crowd.base
    level, rate = level.copy(), rate.copy()
    settled = np.zeros(level.size, dtype=bool)
    todo = np.arange(level.size)
    for _ in range(_STEPS):
        t, r = level[todo], rate[todo]
        totals = variants.totals(t, r, todo)
        dt, dr = _step(totals, aim, base + t, r)
        # no farther than to half or double the rate, and not below the base
        near = (np.abs(dr) <= 0.5 * r) & (dt > -0.9 * (base + t)) & np.isfinite(dt)
        dr = np.where(np.isfinite(dr), np.clip(dr, -0.5 * r, r), 0.0)
        dt = np.where(np.isfinite(dt), np.maximum(dt, -0.9 * (base + t)), 0.0)
        level[todo], rate[todo] = t + dt, r + dr
        done = near & (np.abs(dr) <= _SETTLED * r) & (np.abs(dt) <= _SETTLED * (base + t))
        settled[todo[done]] = True
        todo = todo[~done & np.isfinite(level[todo])]
        if todo.size == 0:
            break
    return Points(level, rate, variants.totals(level, rate), base), settled


def _step(at: Totals, aim: Aim, tau: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Newton's step in level and rate."""
    f = rate * (rate * at.paid + tau * at.used) - (2.0 + at.squares)
    f_level, f_rate = rate * (rate * at.first + at.used), 2.0 * rate * at.paid + tau * at.used
    if aim.kind == "accuracy":
        g = aim.number * (at.used + rate * at.gain) - tau * rate
        g_level, g_rate = rate * (aim.number * at.mass - 1.0), aim.number * at.gain - tau
    elif aim.kind == "budget":
        g = at.spent + rate * at.paid - aim.number
        g_level, g_rate = rate * at.first, at.paid
    else:
        root = np.sqrt(2.0 * rate)
        g = at.used + rate * at.gain - root
        g_level, g_rate = rate * at.mass, at.gain - 1.0 / root
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        determinant = f_level * g_rate - f_rate * g_level
        return (f_rate * g - g_rate * f) / determinant, (g_level * f - f_level * g) / determinant


def root_between(
    value: Callable[[FloatArray, IndexArray], tuple[FloatArray, FloatArray]],
    low: FloatArray,
    high: FloatArray,
    start: FloatArray,
    origin: float = 0.0,
) -> FloatArray:
    """Where increasing functions, given with their slopes, are zero: Newton's method kept between two ends.

    What is looked for counts from ``-origin``: rounding is relative to that.
    """
    low, high, x = low.copy(), high.copy(), start.copy()
    todo = np.arange(x.size)
    for _ in range(200):
        here = x[todo]
        f, slope = value(here, todo)
        above = f > 0.0
        high[todo[above]] = here[above]
        low[todo[~above]] = here[~above]
        left, right = low[todo], high[todo]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = here - f / slope
        outside = ~((new > left) & (new < right))
        middle = np.where(
            (left > 0.0) & (right > 4.0 * left), np.sqrt(np.abs(left)) * np.sqrt(np.abs(right)), 0.5 * (left + right)
        )
        new = np.where(outside & (f != 0.0), middle, np.where(f == 0.0, here, new))
        x[todo] = new
        small = 4e-16 * (np.abs(here) + origin)
        going = (f != 0.0) & (np.abs(new - here) > small) & (right - left > small)
        todo = todo[going]
        if todo.size == 0:
            break
    return x


def rates(variants: Variants, level: FloatArray, start: FloatArray, which: IndexArray) -> FloatArray:
    """The rate that belongs to each level; infinite where nobody below it costs anything or has a cap."""
    base = variants.crowd.base

    def value(rate: FloatArray, todo: IndexArray) -> tuple[FloatArray, FloatArray]:
        at = variants.totals(level[todo], rate, which[todo])
        tau = base + level[todo]
        return rate * (rate * at.paid + tau * at.used) - (2.0 + at.squares), 2.0 * rate * at.paid + tau * at.used

    # rates that are surely too high, where anybody is below the level
    high = start.copy()
    there = variants.totals(level, start, which)
    nobody = (there.mass == 0.0) & (there.used == 0.0)
    todo = np.flatnonzero(~nobody)
    for _ in range(300):
        todo = todo[value(high[todo], todo)[0] <= 0.0]
        if todo.size == 0:
            break
        high[todo] *= 8.0
    found = root_between(value, np.zeros(level.size), high, np.minimum(start, high))
    found[todo] = np.inf
    found[nobody] = np.inf
    return found


def solve_levels(variants: Variants, aim: Aim, level: FloatArray, rate: FloatArray) -> Points:
    """The level and rate of an accuracy or a budget that can be met, in every population, whatever the first guess."""
    points, settled = newton(variants, aim, level, rate)
    settled &= _meets(points, aim)
    todo = np.flatnonzero(~settled)
    if todo.size == 0:
        return points
    level, rate = points.level, points.rate
    some = variants.take(todo)
    level[todo], rate[todo] = _halving(some, aim, np.maximum(np.nan_to_num(level[todo]), 1e-3 * variants.crowd.base))
    return Points(level, rate, variants.totals(level, rate), points.base)


def _meets(points: Points, aim: Aim) -> BoolArray:
    """Whether the goal is met, so that what settled is no accident."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = points.mse if aim.kind == "accuracy" else points.expense
        fine: BoolArray = (np.abs(found - aim.number) <= 1e-9 * aim.number) & (points.rate > 0.0)
        return fine


def _halving(variants: Variants, aim: Aim, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By halving between a level before the goal and one past it, with Newton's method tried now and then."""
    which = np.arange(start.size)
    base = variants.crowd.base
    low, high = np.full(start.size, -base), np.where(start > 0.0, start, 1.0)
    rate = np.ones(start.size)

    def past(level: FloatArray, todo: IndexArray) -> BoolArray:
        found = rates(variants, level, np.where(np.isfinite(rate[todo]), rate[todo], 1.0), todo)
        rate[todo] = found
        fine = np.isfinite(found)
        points = Points(
            level, np.where(fine, found, 0.0), variants.totals(level, np.where(fine, found, 0.0), todo), base
        )
        with np.errstate(invalid="ignore"):
            there = points.mse <= aim.number if aim.kind == "accuracy" else points.expense >= aim.number
        return fine & there

    todo = which
    for _ in range(200):
        todo = todo[~past(high[todo], todo)]
        if todo.size == 0:
            break
        low[todo] = high[todo]
        high[todo] = 4.0 * high[todo] + base
    level, todo = high.copy(), which
    for round_ in range(1, 200):
        middle = 0.5 * (low[todo] + high[todo])
        over = past(middle, todo)
        high[todo[over]], low[todo[~over]] = middle[over], middle[~over]
        level[todo] = middle
        if round_ % 4 == 0:
            points, settled = newton(
                variants.take(todo), aim, middle, np.where(np.isfinite(rate[todo]), rate[todo], 1.0)
            )
            settled &= _meets(points, aim)
            level[todo[settled]], rate[todo[settled]] = points.level[settled], points.rate[settled]
            todo = todo[~settled]
        todo = todo[high[todo] - low[todo] > 4e-16 * (base + high[todo])]
        if todo.size == 0:
            break
    return level, rate
