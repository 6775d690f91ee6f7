"""The central frontier of error against expense as one path, for many populations at once.

With ``y = σε`` every efficient purchase is a point of the path (★), and every ``σ > 0`` has one:

    y_i = clip(u_i(λ_g − ψ_i), 0, σe_i),   Σ_{i in g} y_i = ℓ_g·T,   (2 + D)σ² = σ·Σ λ_g E_g + W,
    N = (2 + ΣVε²)/η²,   C = Σ ψε,   η = T/σ,

``W = Σ uψ(λ − ψ)`` inside; ``E, D = Σe, ΣVe²`` at the cap. Along ``σ`` the error ``N`` falls, the expense ``C`` and
``T`` rise; ``dC = −(T²/2σ)·dN``. A target adds one equation: ``T² = 2Aσ`` (price), ``N = r²`` (accuracy), ``C = B``
(budget).

While nobody changes sides, ``T`` and the levels are linear in ``σ`` and in each other. In a stratum with nobody inside
``T = σE/ℓ``, and the level follows from the equation with ``W``. So sums give a point, a point gives sums, and a few
rounds settle (`settle`). Where they do not, everybody is sorted (:mod:`hushbid.allocation.sweep`) and ``σ`` bracketed.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.allocation.pool import SUMS, Levels, Sums
from hushbid.allocation.populations import Populations
from hushbid.allocation.sweep import swept
from hushbid.allocation.targets import Target
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_ROUNDS = 6
_FINAL_ROUNDS = 3  # so many rounds settle a point that is near the target
_NEAR = 0.02
_SETTLED = 2e-14
_BRACKETS = 200
_MET = 1e-14
_LEVEL = 1e-11
_CLOSE = 1e-12
_NARROW = 4.5e-16


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """A point of the path for each population, and the sums there."""

    t: FloatArray
    sigma: FloatArray
    levels: Levels
    sums: Sums

    @classmethod
    def of(cls, populations: Populations, t: FloatArray, sigma: FloatArray, levels: Levels) -> "Points":
        """The sums at these points, a few populations at a time."""
        step, every = populations.step, np.arange(t.size)
        parts = [every[begin : begin + step] for begin in range(0, t.size, step)]
        found = [populations.take(part).sums(levels.take(part), sigma[part]).table for part in parts]
        table = (
            found[0] if len(found) == 1 else np.concatenate([np.zeros((SUMS, levels.high.shape[0], 0)), *found], axis=2)
        )
        return cls(t, sigma, levels, Sums(table))

    @property
    def weight(self) -> FloatArray:
        """``η``, from the losses."""
        total: FloatArray = (self.sums.used + self.sums.below / self.sigma).sum(axis=0)
        return total

    @property
    def mse(self) -> FloatArray:
        """``N``, from the losses."""
        squares = (self.sums.used_squares + self.sums.squares / self.sigma**2).sum(axis=0)
        found: FloatArray = (2.0 + squares) / self.weight**2
        return found

    @property
    def expense(self) -> FloatArray:
        """``C``."""
        return np.asarray(self.sums.spent.sum(axis=0) + self.paid / self.sigma)

    @property
    def paid(self) -> FloatArray:
        """``W``."""
        found: FloatArray = np.maximum(self.levels.high * self.sums.below - self.sums.squares, 0.0).sum(axis=0)
        return found

    @property
    def price(self) -> FloatArray:
        """``T²/2σ``: the error weight at which the point is stationary."""
        return self.t * (self.t / (2.0 * self.sigma))

    def take(self, which: Any) -> "Points":
        """Some of them."""
        return Points(self.t[which], self.sigma[which], self.levels.take(which), self.sums.take(which))

    def put(self, which: IndexArray, other: "Points") -> None:
        """Write others over some of them."""
        self.t[which], self.sigma[which] = other.t, other.sigma
        self.levels.put(which, other.levels)
        self.sums.table[..., which] = other.sums.table


# -- one round ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """What the sums at some points say about everything near them, while nobody changes sides."""

    points: Points
    sizes: FloatArray
    inside: BoolArray
    mass: FloatArray
    lean: FloatArray  # E/U of each stratum with people inside: how its level falls with σ
    corner: BoolArray  # populations with a stratum in which nobody is inside

    @classmethod
    def of(cls, points: Points, sizes: FloatArray) -> "_Piece":
        sums = points.sums
        inside = sums.mass > 0.0
        mass = np.where(inside, sums.mass, 1.0)
        lean = np.where(inside, sums.used / mass, 0.0)
        return cls(points, sizes[:, None], inside, mass, lean, np.asarray(~inside.all(axis=0)))

    @property
    def costs(self) -> FloatArray:
        """``Σuψ`` inside."""
        return self.points.levels.high * self.points.sums.mass - self.points.sums.below

    def miss(self) -> FloatArray:
        """``ℓT − Σy`` of each stratum."""
        points = self.points
        return self.sizes * points.t - points.sigma * points.sums.used - points.sums.below

    def excess(self, by_levels: FloatArray, sigma: FloatArray) -> FloatArray:
        """``(2 + D)σ² − σΣλE − W`` with the levels moved by so much."""
        points, sums = self.points, self.points.sums
        linear = ((points.levels.high + by_levels) * sums.used).sum(axis=0)
        found: FloatArray = (
            ((2.0 + sums.used_squares.sum(axis=0)) * sigma - linear) * sigma
            - points.paid
            - (self.costs * by_levels).sum(axis=0)
        )
        return found

    def move(self, sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much ``T`` and the levels differ from those at ``sigma``, if nobody changes sides on the way."""
        points, sums = self.points, self.points.sums
        fill = np.where(self.inside, self.miss() / self.mass, 0.0) - self.lean * (sigma - points.sigma)
        share = np.where(self.inside, self.sizes / self.mass, 0.0)
        by = self.excess(fill, sigma) / ((sigma * sums.used + self.costs) * share).sum(axis=0)
        if not self.corner.any():
            return by, fill + share * by
        most = np.where(self.inside, math.inf, sums.used / self.sizes).min(axis=0)
        by = np.where(self.corner, sigma * most - points.t, by)
        by_levels = np.where(self.inside, fill + share * by, 0.0)
        full = np.where(self.inside, 0.0, sums.used).sum(axis=0)
        lift = self.excess(by_levels, sigma) / (sigma * full)
        return by, np.where(self.inside, by_levels, lift)

    def slopes(self) -> tuple[FloatArray, FloatArray]:
        """``dσ/dT`` and ``dC/dT``."""
        points, sums, sigma = self.points, self.points.sums, self.points.sigma
        means = np.where(self.inside, points.levels.high - sums.below / self.mass, 0.0)
        a = 2.0 + (sums.used_squares + self.lean * sums.used).sum(axis=0)
        f = (self.sizes * self.lean).sum(axis=0)
        slope = (f * sigma + (self.sizes * means).sum(axis=0)) / (2.0 * a * sigma - f * points.t)
        if self.corner.any():
            slope = np.where(self.corner, np.where(self.inside, 0.0, self.sizes / sums.used).max(axis=0), slope)
        rise = np.where(self.inside, means * (self.sizes - sums.used * slope), 0.0).sum(axis=0)
        return slope, (rise - points.paid * slope / sigma) / sigma


def _next_sigma(piece: _Piece, target: Target | None) -> FloatArray:
    """``σ`` after one step of Newton's method towards the target, in a variable in which it is nearly straight."""
    points, t, sigma = piece.points, piece.points.t, piece.points.sigma
    if target is None:
        return sigma
    slope, rise = piece.slopes()
    bend = slope * t / sigma  # d log σ / d log T
    if target.kind == "price":
        ratio = np.log(target.number / points.price) / np.maximum(2.0 - bend, 0.05)
    elif target.kind == "accuracy":
        fall = 2.0 * sigma * rise  # −dN/d(1/T)
        ratio = -np.log(1.0 + t * (target.number - points.mse) / fall)
    elif piece.inside.shape[0] == 1:
        return _spending(piece, target.number)
    else:
        expense = points.expense
        ratio = np.log(1.0 + (target.number - expense) * (target.number + expense) / (2.0 * expense * rise * t))
    ratio = np.where(np.isnan(ratio), -1.5, np.clip(ratio, -1.5, 1.5))
    if target.kind != "price":  # neither error nor expense changes where nobody of a stratum is inside
        ratio = np.where(piece.corner & ~(np.abs(rise) * t > 0.0), 0.0, ratio)
    return sigma * np.exp(bend * ratio)


def _spending(piece: _Piece, budget: float) -> FloatArray:
    """``σ`` at which one stratum costs the budget, if nobody changes sides.

    With ``p = 1/σ``, ``q = λ/σ`` and ``b`` what those at their caps leave of the budget, ``S`` and ``R`` the sums of
    ``uψ`` and ``uψ²`` inside: ``S·q − R·p = b`` and ``E·q + b·p = 2 + D``. Both are solved for the change of ``p``.
    """
    points, sigma = piece.points, piece.points.sigma
    used, costs, level = points.sums.used[0], piece.costs[0], points.levels.high[0]
    left = budget - points.sums.spent[0]
    squares = np.maximum(level * costs - points.paid, 0.0)
    missing = 2.0 + points.sums.used_squares[0] - (used * level + left) / sigma
    by = (costs * missing - used * (left - points.paid / sigma)) / (costs * left + squares * used)
    ratio = np.clip(1.0 + sigma * by, 0.05, 20.0)
    return np.where(piece.corner, sigma, sigma / ratio)


def settle(
    populations: Populations, target: Target | None, start: Points, *, rounds: int = _ROUNDS
) -> tuple[Points, BoolArray]:
    """The points at which all equations hold, from a guess for each population; and where the rounds settled.

    Without a target ``σ`` stays what it is.
    """
    t, sigma = start.t.copy(), start.sigma.copy()
    levels = Levels(start.levels.high.copy(), start.levels.low.copy())
    found = Points(t, sigma, levels, Sums(np.zeros((SUMS, levels.high.shape[0], t.size))))
    settled, unsolved = np.zeros(t.size, dtype=bool), np.arange(t.size)
    with np.errstate(all="ignore"):
        for _ in range(rounds):
            points = Points.of(populations.take(unsolved), t[unsolved], sigma[unsolved], levels.take(unsolved))
            piece = _Piece.of(points, populations.sizes)
            wanted = _next_sigma(piece, target)
            by, by_levels = piece.move(wanted)
            fine = np.isfinite(by) & np.isfinite(wanted) & np.isfinite(by_levels).all(axis=0)
            done = (
                fine & (np.abs(by) <= _SETTLED * points.t) & (np.abs(wanted - points.sigma) <= _SETTLED * points.sigma)
            )
            done &= (np.abs(piece.miss()) <= _SETTLED * populations.sizes[:, None] * points.t).all(axis=0)
            done &= ~piece.corner | (
                np.abs(piece.excess(np.zeros(by_levels.shape), points.sigma)) <= _LEVEL * points.sigma**2
            )
            if target is not None:
                done &= np.abs(_missed(points, target)) <= _CLOSE
            if done.any():
                found.put(unsolved[done], points.take(done))
                settled[unsolved[done]] = True
            going = np.flatnonzero(fine & ~done)
            unsolved = unsolved[going]
            if unsolved.size == 0:
                break
            sigma[unsolved] = wanted[going]
            t[unsolved] = np.clip(points.t + by, 0.2 * points.t, 5.0 * points.t)[going]
            moved = points.levels.take(going).moved(by_levels[:, going])
            fit = np.flatnonzero(piece.corner[going])
            if fit.size and target is not None and target.kind == "budget" and populations.sizes.size == 1:
                # nothing changes until somebody is inside: from there on Newton's steps are not short
                some, who = points.take(going[fit]), unsolved[fit]
                missed = _missed(some, target)
                level = populations.take(who).next_inside(some.levels, some.sigma, missed < 0.0)
                there = np.flatnonzero((level.high[0] < math.inf) & (missed != 0.0))
                moved.put(fit[there], level.take(there))
                sigma[who], t[who] = _fitting(some, moved.take(fit))
            levels.put(unsolved, moved)
    return found, settled


def _fitting(points: Points, levels: Levels) -> tuple[FloatArray, FloatArray]:
    """``σ`` and ``T`` at which the last equation of (★) holds at these levels, if nobody changes sides."""
    sums = points.sums
    square, linear = 2.0 + sums.used_squares.sum(axis=0), (levels.high * sums.used).sum(axis=0)
    sigma = (linear + np.sqrt(linear * linear + 4.0 * square * points.paid)) / (2.0 * square)
    return sigma, sigma * sums.used.sum(axis=0) + sums.below.sum(axis=0)


# -- whatever the guess ------------------------------------------------------------------------------------------------


def at(populations: Populations, sigma: FloatArray, start: Points | None = None) -> Points:
    """The point of each population at its ``σ``, whatever the guess."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is above every level that matters
        if start is None:
            return Points.of(populations, *_swept(populations, sigma))
        found, settled = settle(populations, None, Points(start.t, sigma, start.levels, start.sums))
        lost = np.flatnonzero(~settled)
        if lost.size:
            some = populations.take(lost)
            found.put(lost, Points.of(some, *_swept(some, sigma[lost])))
    return found


def _swept(populations: Populations, sigma: FloatArray) -> tuple[FloatArray, FloatArray, Levels]:
    t, levels = swept(populations, sigma)
    return t, sigma, levels


def meet(populations: Populations, target: Target, start: Points) -> Points:
    """The point that a target chooses, in every population, whatever the guess.

    It must be one that can be met. For a price it is a local minimum near the guess.
    """
    # in many strata rounds go to and fro
    found, settled = settle(populations, target, start, rounds=2 * _ROUNDS if populations.sizes.size == 1 else _ROUNDS)
    lost = np.flatnonzero(~settled)
    if lost.size:
        found.put(lost, _met_between(populations.take(lost), target, start.take(lost)))
    return found


def _missed(points: Points, target: Target) -> FloatArray:
    """By what share a point is beyond the target along the path; negative before it."""
    with np.errstate(all="ignore"):
        if target.kind == "price":
            return points.price / target.number - 1.0
        return 1.0 - points.mse / target.number if target.kind == "accuracy" else points.expense / target.number - 1.0


def _met_between(populations: Populations, target: Target, start: Points) -> Points:
    """Return the point between ever closer ``σ``: on one side the target is not reached, on the other it is passed.

    Newton's method from point to point of the path, or the middle where a step brought little; near the target a few
    rounds settle.
    """
    count = start.t.size
    low, high = np.zeros(count), np.full(count, math.inf)
    sigma, step, before = start.sigma.copy(), np.full(count, 0.5), np.full(count, math.inf)
    points, unsolved = start.take(np.arange(count)), np.arange(count)
    with np.errstate(all="ignore"):
        for _ in range(_BRACKETS):
            some = populations.take(unsolved)
            # in many strata rounds go to and fro, so everybody is sorted at once
            here = at(some, sigma[unsolved], points.take(unsolved) if populations.sizes.size == 1 else None)
            missed = _missed(here, target)
            points.put(unsolved, here)
            passed = missed >= 0.0
            high[unsolved[passed]], low[unsolved[~passed]] = here.sigma[passed], here.sigma[~passed]
            left, right = low[unsolved], high[unsolved]
            piece = _Piece.of(here, populations.sizes)
            new = _next_sigma(piece, target)
            change = np.abs(new / here.sigma - 1.0)
            met = np.abs(missed) <= _MET
            near = np.flatnonzero(~met & ~piece.corner & (change < _NEAR))
            if near.size:
                end, fine = settle(some.take(near), target, here.take(near), rounds=_FINAL_ROUNDS)
                fine &= (end.sigma >= left[near]) & (end.sigma <= right[near])
                points.put(unsolved[near[fine]], end.take(fine))
                met[near[fine]] = True
            closed = (left > 0.0) & (right < math.inf)
            slow = closed & ~(np.abs(missed) <= 0.25 * before[unsolved])
            before[unsolved] = np.abs(missed)
            inner = (new > left) & (new < right) & ~slow
            middle = np.sqrt(np.maximum(left, 1e-300)) * np.sqrt(np.minimum(right, 1e300))
            away = here.sigma * np.exp(np.where(passed, -step[unsolved], step[unsolved]))
            sigma[unsolved] = np.where(inner, new, np.where(closed, middle, away))
            step[unsolved] = np.minimum(2.0 * step[unsolved], 100.0)
            unsolved = unsolved[~met & ~(closed & (right - left <= 2.0 * _NARROW * right)) & (left < 1e300)]
            if unsolved.size == 0:
                break
    return points
