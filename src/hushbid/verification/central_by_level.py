"""The central optimum for a given error or expense once more, for verification: by bisection, on one number.

The cheapest way to every error has the form ``ε_i = u_i (τ − ψ_i)⁺·√(2/W)`` for a level ``τ``, with ``u_i = 1/V_i``,
``G = Σ u_i (τ − ψ_i)⁺`` and ``W = Σ u_i ψ_i (τ − ψ_i)⁺``; its error is ``τ/G``, its expense ``√(2W)``. The error falls
with the level and the expense rises, so halving an interval of levels finds the one with the error wanted, or with the
expense. The solver, in contrast, solves an equation of the people who are active.

One person's cost is replaced by taking her out of the sums and putting her back elsewhere, for many (person, cost)
pairs at a time. Costs are counted from the smallest, and sums are kept in extended precision.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.verification.central_by_exclusion import Answers

Long = NDArray[np.longdouble]

_ROUNDS = 400
_POINT = 2.0**-62
_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """Who is taken out of the sums, and where she is put back; offsets from the smallest cost."""

    out: Long
    out_mass: Long
    into: Long
    into_mass: Long


class LevelRule:
    """The purchase with a given ``error``, or with a given ``expense``, as a function of one person's cost."""

    def __init__(
        self, costs: FloatArray, variance: FloatArray, *, error: float | None = None, expense: float | None = None
    ) -> None:
        self._error = error
        finite = np.flatnonzero(costs < math.inf)
        self._costs, self._spread = costs, np.asarray(variance, dtype=float)
        # the smallest variance is the unit of variances
        self._unit = float(self._spread[finite].min())
        self._half = 0.5 * self._unit * (expense or 0.0) ** 2
        self._mass = (self._unit / self._spread).astype(np.longdouble)
        self._base = float(costs[finite].min())
        rows = finite[np.argsort(costs[finite], kind="stable")]
        self._offset = costs[rows] - self._base
        offset, mass = self._offset.astype(np.longdouble), self._mass[rows]
        columns = (mass, mass * offset, mass * offset * offset)
        self._sums = [np.concatenate([np.zeros(1, dtype=np.longdouble), column.cumsum()]) for column in columns]

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The purchase if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j.

        Where an error is given the value is the expense, whose derivative in a person's cost is her loss; else nothing.
        """
        parts = [slice(start, start + _AT_ONCE) for start in range(0, rows.size, _AT_ONCE)]
        with np.errstate(all="ignore"):
            found = [self._answers(rows[part], costs[part]) for part in parts]
        loss, mse, value = (
            np.concatenate([getattr(some, name) for some in found] or [np.empty(0)]) for name in Answers.__slots__
        )
        return Answers(loss, mse, value)

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Everybody's privacy loss, the error and the expense if person ``row`` had that cost."""
        changed = self._costs.copy()
        changed[row] = cost
        with np.errstate(all="ignore"):
            moves = self._moves(np.array([row]), np.array([cost]))
            level, scale, mse, paid = (one[0] for one in self._solved(moves))
            offset = (changed - self._base).astype(np.longdouble)
            gap = np.where(changed == 0.0, 1.0, 0.0) if level == 0.0 else np.maximum(level - offset, 0.0)
            losses = np.where(changed < math.inf, self._mass * gap, 0.0) * scale
        return losses.astype(float), float(mse), float(paid)

    # -- one answer per pair -------------------------------------------------------------------------------------------

    def _answers(self, rows: IndexArray, moved: FloatArray) -> Answers:
        moves = self._moves(rows, moved)
        level, scale, mse, paid = self._solved(moves)
        # a level of zero: only people who ask for nothing are bought from
        gap = np.where(level == 0.0, np.where(moved == 0.0, 1.0, 0.0), np.maximum(level - moves.into, 0.0))
        loss = np.where(moved < math.inf, self._mass[rows] * gap, 0.0) * scale
        value = np.full(rows.size, math.nan) if self._error is None else paid.astype(float)
        return Answers(loss.astype(float), mse.astype(float), value)

    def _moves(self, rows: IndexArray, moved: FloatArray) -> _Moves:
        there, mass = self._costs[rows] < math.inf, self._mass[rows]
        return _Moves(
            out=np.where(there, self._costs[rows] - self._base, 0.0).astype(np.longdouble),
            out_mass=np.where(there, mass, 0.0).astype(np.longdouble),
            into=(moved - self._base).astype(np.longdouble),
            into_mass=np.where(moved < math.inf, mass, 0.0).astype(np.longdouble),
        )

    def _solved(self, moves: _Moves) -> tuple[Long, Long, Long, Long]:
        """Of each pair: the level, what a person's ``u·(τ − ψ)`` is multiplied by, the error and the expense."""
        level = self._bisected(moves)
        gain, work = self._at_level(moves, level)
        scale = np.sqrt(2.0 / (self._unit * work))
        mse, paid = self._unit * (self._base + level) / gain, np.sqrt(2.0 * work / self._unit)
        if self._error is None:
            return level, scale, mse, paid
        # people who ask for nothing may be enough: only the error remains to be met
        free = self._free(moves)
        enough = self._error * free >= self._unit
        noise = self._error - self._unit / free
        scale = np.where(enough, np.sqrt(2.0 / noise) / free, scale)
        zero = np.zeros_like(level)
        return (
            np.where(enough, zero, level),
            scale,
            np.where(enough, self._error, mse).astype(np.longdouble),
            np.where(enough, zero, paid),
        )

    def _free(self, moves: _Moves) -> Long:
        """The mass of those who ask for nothing."""
        own = float(self._sums[0][self._offset.searchsorted(0.0, side="right")]) if self._base == 0.0 else 0.0
        at = -np.longdouble(self._base)
        return (
            own - np.where(moves.out == at, moves.out_mass, 0.0) + np.where(moves.into == at, moves.into_mass, 0.0)
        ).astype(np.longdouble)

    def _bisected(self, moves: _Moves) -> Long:
        """The level, counted from the smallest cost."""
        low = np.minimum(np.where(moves.into_mass > 0.0, moves.into, 0.0), 0.0)
        high = self._bound(moves)
        if self._error is not None:  # people who ask for nothing are enough: no level is needed
            high = np.where(self._error * self._free(moves) >= self._unit, low, high)
        for _ in range(_ROUNDS):
            middle = 0.5 * (low + high)
            if not ((low < middle) & (middle < high) & (high - low > _POINT * np.abs(high))).any():
                break
            gain, work = self._at_level(moves, middle)
            if self._error is None:
                passed = work >= self._half
            else:
                passed = self._error * gain >= self._unit * (self._base + middle)
            low, high = np.where(passed, low, middle), np.where(passed, middle, high)
        return high

    def _bound(self, moves: _Moves) -> Long:
        """A level that is high enough: were people dearer than it counted too, against the purchase, it would be."""
        best = np.full(moves.into.size, math.inf, dtype=np.longdouble)
        for mass_in in (moves.into_mass, np.zeros_like(moves.into_mass)):
            place = np.where(mass_in > 0.0, moves.into, 0.0)
            total = self._sums[0][-1] - moves.out_mass + mass_in
            first = self._sums[1][-1] - moves.out_mass * moves.out + mass_in * place
            second = self._sums[2][-1] - moves.out_mass * moves.out**2 + mass_in * place**2
            if self._error is None:
                above, slope = self._half + self._base * first + second, self._base * total + first
            else:
                above, slope = self._unit * self._base + self._error * first, self._error * total - self._unit
            best = np.minimum(best, np.where(slope > 0.0, above / slope, math.inf))
        return best * (1.0 + 1e-12) + 1e-300

    def _at_level(self, moves: _Moves, level: Long) -> tuple[Long, Long]:
        """``G`` and ``W`` of each pair, in units of the largest precision."""
        index = self._offset.searchsorted(level.astype(float), side="left")
        mass, first, second = (column[index] for column in self._sums)
        for sign, who, at in ((-1.0, moves.out_mass, moves.out), (1.0, moves.into_mass, moves.into)):
            here = at < level
            part, place = np.where(here, sign * who, 0.0), np.where(here, at, 0.0)
            mass, first, second = mass + part, first + part * place, second + part * place * place
        gain = level * mass - first
        return gain, self._base * gain + level * first - second
