"""The level and the rate at which a capped purchase meets its goal, for many populations at once.

An efficient purchase ``ε_i = clip(ρ·u_i·(τ − ψ_i), 0, e_i)`` has ``Σ ε_i(τρ − V_iε_i) = 2``: with ``W`` over those
inside and ``E, D, L = Σ e, ΣVe², Σψe`` over those at their cap,

    ρ²W + ρτE = 2 + D,      S = E + ρG,      MSE = τρ/S,      expense = L + ρW.

For each level one rate satisfies it, and along the levels the error falls and the expense rises. A goal adds one
equation: ``r²S = τρ`` (accuracy), ``L + ρW = B`` (budget), ``S² = 2ρ`` (price, error weight 1). Newton's method solves
the two, as the groups are guessed right after a few steps; where it does not settle, halving does.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hushbid.allocation.capped.crowds import OneCap, Variants
from hushbid.allocation.capped.people import Totals
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_STEPS = 16
_SETTLED = 1e-13
_TRIES = 200


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
    unsolved = np.arange(level.size)
    for _ in range(_STEPS):
        t, r = level[unsolved], rate[unsolved]
        totals = variants.totals(t, r, unsolved)
        dt, dr = _step(totals, aim, base + t, r)
        # no farther than to half or double the rate, and not below the base
        near = (np.abs(dr) <= 0.5 * r) & (dt > -0.9 * (base + t)) & np.isfinite(dt)
        dr = np.where(np.isfinite(dr), np.clip(dr, -0.5 * r, r), 0.0)
        dt = np.where(np.isfinite(dt), np.maximum(dt, -0.9 * (base + t)), 0.0)
        level[unsolved], rate[unsolved] = t + dt, r + dr
        done = near & (np.abs(dr) <= _SETTLED * r) & (np.abs(dt) <= _SETTLED * (base + t))
        settled[unsolved[done]] = True
        unsolved = unsolved[~done & np.isfinite(level[unsolved])]
        if unsolved.size == 0:
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


def rates(variants: Variants, level: FloatArray, start: FloatArray, which: IndexArray) -> FloatArray:
    """The rate that belongs to each level; infinite where nobody below it costs anything or has a cap.

    The left side rises with the rate. While nobody changes groups it is a quadratic function, whose root is tried next.
    """
    tau, rate = variants.crowd.base + level, start.copy()
    low, high = np.zeros(level.size), np.full(level.size, np.inf)
    unsolved = np.arange(level.size)
    for _ in range(_TRIES):
        at, here, cost = (
            variants.totals(level[unsolved], rate[unsolved], which[unsolved]),
            rate[unsolved],
            tau[unsolved],
        )
        wanted, linear = 2.0 + at.squares, cost * at.used
        above = here * (here * at.paid + linear) > wanted
        low[unsolved], high[unsolved] = np.where(above, low[unsolved], here), np.where(above, here, high[unsolved])
        with np.errstate(divide="ignore", over="ignore"):
            new = 2.0 * wanted / (linear + np.sqrt(linear * linear + 4.0 * at.paid * wanted))
        left, right = low[unsolved], high[unsolved]
        between = np.where(
            right < np.inf, np.where(left > 0.0, np.sqrt(left) * np.sqrt(right), right / 8.0), 8.0 * left
        )
        close = np.abs(new - here) <= 1e-15 * here
        rate[unsolved] = np.where(close | ((new > left) & (new < right)), new, between)
        nobody = (at.mass == 0.0) & (at.used == 0.0)
        rate[unsolved[nobody]] = np.inf
        unsolved = unsolved[~close & ~nobody & (right - left > 1e-15 * left)]
        if unsolved.size == 0:
            break
    rate[unsolved] = np.inf
    return rate


def solve_levels(variants: Variants, aim: Aim, level: FloatArray, rate: FloatArray) -> Points:
    """The level and rate of an accuracy or a budget that can be met, in every population, whatever the first guess."""
    points, settled = newton(variants, aim, level, rate)
    settled &= meets(points, aim)
    unsolved = np.flatnonzero(~settled)
    if unsolved.size == 0:
        return points
    level, rate = points.level, points.rate
    level[unsolved], rate[unsolved] = between_costs(variants.take(unsolved), aim)
    return Points(level, rate, variants.totals(level, rate), points.base)


def meets(points: Points, aim: Aim) -> BoolArray:
    """Whether the goal is met, so that what settled is no accident."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = points.mse if aim.kind == "accuracy" else points.expense
        fine: BoolArray = (np.abs(found - aim.number) <= 1e-9 * aim.number) & (points.rate > 0.0)
        return fine


def others_at_caps(variants: Variants, aim: Aim) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Level, rate and her loss, where a budget takes one person, whose cost is replaced, beside others at their cap.

    And in which populations that is so. With ``b = B − L`` she loses ``ε = b/x``, and ``ρ(b + E·x) = 2 + D − E·ε/u``.
    She is the last to be bought from, perhaps at any cost: a level hardly above hers is nothing to search for, and its
    distance from hers, by which losses are told elsewhere, has lost its digits.
    """
    crowd, without, moved = variants.crowd, variants.without, variants.moved
    if aim.kind != "budget" or not isinstance(crowd, OneCap) or without is None or moved is None:
        nothing = np.zeros(variants.count)
        return nothing, nothing.copy(), nothing.copy(), nothing > 0.0
    size, edges = crowd.people.offset.size, np.append(crowd.people.offset, [0.0])
    there = without < size
    count, own = size - there.astype(np.float64), np.where(there, edges[without], 0.0)
    highest = crowd.base + np.where(without == size - 1, edges[max(size - 2, 0)], edges[size - 1])
    used, squares = count * crowd.cap, count * crowd.cap**2
    left = aim.number - crowd.cap * (crowd.base * count + float(edges.sum()) - own)
    cost = crowd.base + moved.offset
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = left / cost
        rate = (2.0 + squares - used * loss / moved.mass) / (left + used * cost)
        product = cost * rate + loss / moved.mass
        fine = (moved.mass > 0.0) & (left > 0.0) & (loss < moved.cap) & (rate > 0.0)
        fine &= (count == 0.0) | (product - rate * highest >= crowd.cap * (1.0 + 1e-12))
        level = product / rate - crowd.base
    fine &= np.isfinite(level)
    return np.where(fine, level, 0.0), np.where(fine, rate, 0.0), np.where(fine, loss, 0.0), fine


def between_costs(variants: Variants, aim: Aim) -> tuple[FloatArray, FloatArray]:
    """Level and rate by halving: first between which two costs the level lies, then there, with Newton's method."""
    base, edges, count = variants.crowd.base, variants.crowd.people.offset, variants.count
    rate = np.ones(count)

    def past(level: FloatArray, unsolved: IndexArray) -> BoolArray:
        found = rates(variants, level, np.where(np.isfinite(rate[unsolved]), rate[unsolved], 1.0), unsolved)
        rate[unsolved] = found
        fine = np.isfinite(found)
        found = np.where(fine, found, 0.0)
        points = Points(level, found, variants.totals(level, found, unsolved), base)
        with np.errstate(invalid="ignore"):
            there = points.mse <= aim.number if aim.kind == "accuracy" else points.expense >= aim.number
        return fine & there

    first, last = np.zeros(count, dtype=np.intp), np.full(count, edges.size)
    unsolved = np.arange(count)
    while unsolved.size:
        middle = (first[unsolved] + last[unsolved]) // 2
        over = past(edges[middle], unsolved)
        first[unsolved], last[unsolved] = (
            np.where(over, first[unsolved], middle + 1),
            np.where(over, middle, last[unsolved]),
        )
        unsolved = unsolved[first[unsolved] < last[unsolved]]
    low, high = np.concatenate([[-base], edges])[first], np.append(edges, edges[-1])[first]
    # above everybody: ever higher
    unsolved = np.flatnonzero(first == edges.size)
    step = base + edges[-1] if base + edges[-1] > 0.0 else 1.0
    for _ in range(_TRIES):
        high[unsolved] = low[unsolved] + step
        unsolved = unsolved[~past(high[unsolved], unsolved)]
        low[unsolved], step = high[unsolved], 4.0 * step
        if unsolved.size == 0:
            break
    level, unsolved = high.copy(), np.arange(count)
    for round_ in range(_TRIES):
        middle = 0.5 * (low[unsolved] + high[unsolved])
        over = past(middle, unsolved)
        high[unsolved[over]], low[unsolved[~over]] = middle[over], middle[~over]
        level[unsolved] = middle
        if round_ & (round_ + 1) == 0:  # ever more seldom: what did not settle at first hardly will
            begin = np.where(np.isfinite(rate[unsolved]), rate[unsolved], 1.0)
            points, settled = newton(variants.take(unsolved), aim, middle, begin)
            settled &= meets(points, aim)
            level[unsolved[settled]], rate[unsolved[settled]] = points.level[settled], points.rate[settled]
            unsolved = unsolved[~settled]
        unsolved = unsolved[high[unsolved] - low[unsolved] > 4e-16 * (base + high[unsolved])]
        if unsolved.size == 0:
            break
    return level, rate
