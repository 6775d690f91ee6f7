"""The level and the rate of a purchase under caps, from those of one nearby: Newton's method, and a test of the result.

One person's cost moves and everybody else's stays, so the level ``τ`` and the rate ``ρ`` hardly move. They solve

    ρ²·W + τρ·E − D − 2 = 0   and   ρ·W + L − B = 0 (an expense B)   or   τρ − M·(E + ρ·G) = 0 (an error M)

with the sums of :mod:`hushbid.verification.crowd_under_caps`: over those at their caps ``E, D, L = Σ e, Σ V·e², Σ ψe``,
over the others who sell ``G, W = Σ u(τ − ψ), Σ uψ(τ − ψ)``, whose derivatives in ``τ`` are ``Σ u`` and ``Σ uψ``. Both
equations are continuous, and smooth as long as nobody passes her cap or nothing. The problem is convex: whatever solves
them is the optimum. A pair whose steps do not die out is handed back, to be found by a bracket (`root_between`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray
from hushbid.verification.crowd_under_caps import Crowd, Moved, Sums

Long = NDArray[np.longdouble]

_ROUNDS = 24
_LAST_STEP = 1e-11
"""After so small a step the next one is of the order of its square."""

_FURTHEST = 4.0
"""No step takes the level or the rate further than by this factor."""


@dataclass(frozen=True, slots=True, eq=False)
class Nearby:
    """A level (counted from the smallest cost) and a rate for each pair, and for which pairs they are the solution."""

    level: Long
    rate: Long
    solved: BoolArray


def from_nearby(
    crowd: Crowd,
    moved: Moved,
    above_start: float | FloatArray,
    rate: float | FloatArray,
    *,
    error: float | None,
    expense: float | None,
) -> Nearby:
    """Begin every pair so far ``above_start`` and at that ``rate``; an ``error`` or an ``expense`` is wanted."""
    size = moved.rows.size
    found = Nearby(
        moved.start + np.asarray(above_start, dtype=np.longdouble),
        np.full(size, rate, dtype=np.longdouble),
        np.zeros(size, dtype=bool),
    )
    unsolved = np.flatnonzero(moved.start < math.inf)
    for _ in range(_ROUNDS):
        if unsolved.size == 0:
            break
        some, here, speed = moved.take(unsolved), found.level[unsolved], found.rate[unsolved]
        further, faster = _step(np.longdouble(crowd.base), crowd.sums(some, here, speed), here, speed, error, expense)
        # the level, seen from where levels begin, and the rate change by no more than a factor
        above = here - some.start
        next_level = some.start + np.clip(above + further, above / _FURTHEST, above * _FURTHEST)
        next_rate = speed * np.clip(1.0 + faster, 1.0 / _FURTHEST, _FURTHEST)
        solved = (np.abs(further) <= _LAST_STEP * above) & (np.abs(faster) <= _LAST_STEP)
        lost = ~(np.isfinite(next_level) & np.isfinite(next_rate) & (next_rate > 0.0))
        found.level[unsolved], found.rate[unsolved], found.solved[unsolved] = next_level, next_rate, solved & ~lost
        unsolved = unsolved[~(solved | lost)]
    return found


def _step(
    base: np.longdouble, sums: Sums, level: Long, rate: Long, error: float | None, expense: float | None
) -> tuple[Long, Long]:
    """By how much the level changes, and the rate, by which part of itself."""
    tau = base + level
    # the first equation, and its derivatives in τ and log ρ
    noise = rate * rate * sums.work + tau * rate * sums.capped - sums.squares - 2.0
    noise_level = rate * (rate * sums.cost_density + sums.capped)
    noise_rate = rate * (2.0 * rate * sums.work + tau * sums.capped)
    # the second
    if error is None:
        goal = rate * sums.work + sums.spent - float(expense or 0.0)
        goal_level, goal_rate = rate * sums.cost_density, rate * sums.work
    else:
        goal = tau * rate - error * (sums.capped + rate * sums.gain)
        goal_level, goal_rate = rate * (1.0 - error * sums.density), rate * (tau - error * sums.gain)
    with np.errstate(all="ignore"):
        area = noise_level * goal_rate - noise_rate * goal_level
        return (noise_rate * goal - goal_rate * noise) / area, (goal_level * noise - noise_level * goal) / area


def root_between(function: Callable[[Long], Long], low: Long, high: Long, close: float) -> Long:
    """Where a rising function passes zero: false position, with the end that stays halved, and halving now and then."""
    below, above = function(low), function(high)
    last = high
    for round_ in range(400):
        halving = round_ % 8 == 7
        with np.errstate(all="ignore"):
            middle = high - above * (high - low) / (above - below)
        middle = np.where((middle > low) & (middle < high) & (not halving), middle, 0.5 * (low + high))
        value = function(middle.astype(np.longdouble))
        up = value > 0.0
        # the end that stays is halved in weight
        below, above = np.where(up, 0.5 * below, value), np.where(up, value, 0.5 * above)
        low, high = np.where(up, low, middle), np.where(up, middle, high)
        still = (np.abs(middle - last) <= close) | (high - low <= close) | (value == 0.0) | np.isnan(value)
        last = middle
        if still.all() and not halving:
            break
    return last
