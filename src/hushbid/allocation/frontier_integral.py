"""The integral of one person's loss over their own cost, under a budget and caps.

While nobody changes sides, the others' sums ``M₁, M₂ = Σuψ, Σuψ²`` inside and ``E, D, L`` at the cap stay, and with
``P = 2 + D`` and ``b = B − L`` the two equations are linear in ``y = λ/σ`` and ``ρ = 1/σ``. A person with cost ``x``
loses

    ε = u·(b(b + Ex) + P(M₂ − M₁x)) / (u·E·x² + u·b·x + b·M₁ + E·M₂),

a rational function, and ``y`` falls in ``x`` up to some cost and rises beyond it. On the line ``b·ρ + E·y = P``
everybody else enters at one ``y`` and reaches their cap at another. So from the highest cost one goes down from change
to change.
Each part of the integral has its poles left of zero, so Gauss's rule is exact to rounding.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hushbid.allocation.pool import Levels, Moves
from hushbid.allocation.populations import Populations
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SAME = 1.0 - 1e-14
_RATIO = 4.0  # a part ends where the distance to the nearest pole has changed by this factor


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """The line ``b·ρ + E·y = P``, the sums inside, and where on it a person of some cost changes sides."""

    first: FloatArray
    second: FloatArray
    e: FloatArray
    p: FloatArray
    b: FloatArray

    def take(self, which: Any) -> "_Line":
        return _Line(self.first[which], self.second[which], self.e[which], self.p[which], self.b[which])

    def columns(self) -> "_Line":
        return self.take((slice(None), None))

    def entry(self, cost: FloatArray) -> FloatArray:
        """The ``y`` at which a person enters."""
        return self.p * cost / (self.b + self.e * cost)

    def full(self, cost: FloatArray, reach: FloatArray) -> FloatArray:
        """The ``y`` at which a person is at their cap."""
        with np.errstate(invalid="ignore"):
            return (self.b * reach + self.p * cost) / (self.b + self.e * cost)


class _Groups:
    """Who else is inside and who is at the cap, in each of some populations."""

    def __init__(self, populations: Populations, levels: Levels, sigma: FloatArray) -> None:
        self._seen, without = populations.seen, populations.without
        assert populations.left is not None
        assert without is not None
        _, self._inside, self._capped = self._seen.states(levels, sigma, without)
        self._there = np.arange(self._seen.size) != without[:, None]
        self._rest = np.zeros((5, sigma.size)) if populations.box is None else populations.box.moments(populations.left)
        """Sums over who is summed once."""

    def line(self, unsolved: IndexArray, budget: float) -> _Line:
        """Return the line on which each population is."""
        inside, capped, seen = self._inside[unsolved], self._capped[unsolved], self._seen
        weighted = seen.mass * seen.costs
        rest = self._rest[:, unsolved]
        used, squares, spent = (np.where(capped, each, 0.0).sum(axis=1) for each in seen.capped)
        return _Line(
            rest[0] + np.where(inside, weighted, 0.0).sum(axis=1),
            rest[1] + np.where(inside, weighted * seen.costs, 0.0).sum(axis=1),
            rest[2] + used,
            2.0 + rest[3] + squares,
            budget - (rest[4] + spent),
        )

    def ends(self, unsolved: IndexArray, line: _Line, falling: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the ``y`` at which each person next enters or leaves, and at which they next come to their cap."""
        columns, down = line.columns(), falling[:, None]
        inside, capped, there = self._inside[unsolved], self._capped[unsolved], self._there[unsolved]
        none = np.where(down, -np.inf, np.inf)
        enters = np.where(np.where(down, inside, there & ~inside & ~capped), columns.entry(self._seen.costs), none)
        full = np.where(np.where(down, capped, inside), columns.full(self._seen.costs, self._seen.reach), none)
        return enters, full

    def change(
        self, unsolved: IndexArray, ends: tuple[FloatArray, FloatArray], falling: BoolArray, y: FloatArray
    ) -> None:
        """Let those change sides who do so at ``y``."""
        enters, full = ends
        down, here = falling[:, None], y[:, None]
        moves = np.where(down, enters >= here * _SAME, enters <= here / _SAME)
        fills = np.where(down, full >= here * _SAME, full <= here / _SAME)
        # falling: who is inside leaves, who is full comes inside; rising: the other way round
        self._inside[unsolved] = np.where(moves, ~down, np.where(fills, down, self._inside[unsolved]))
        self._capped[unsolved] = np.where(fills, ~down, self._capped[unsolved])


def areas(
    populations: Populations, levels: Levels, sigma: FloatArray, budget: float, top: FloatArray, stop: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return the integral of each mover's loss from cost ``stop`` up to ``top``, and whether the box was never left.

    Levels and ``sigma`` are those of their population if their cost is ``top``, at which they are not at their cap.
    """
    own = populations.moves
    assert own is not None
    groups = _Groups(populations, levels, sigma)
    area, x = np.zeros(top.size), top.copy()
    kept = populations.holds(levels, sigma)
    unsolved = np.flatnonzero(x > stop)
    with np.errstate(all="ignore"):
        for _ in range(8 * populations.people.size + 400):
            if unsolved.size == 0:
                break
            piece = _Piece(groups.line(unsolved, budget), own.take(unsolved), x[unsolved])
            ends, falling = groups.ends(unsolved, piece.line, piece.falling), piece.falling
            y = _nearest(ends, falling)
            met = piece.meets(y)
            after = np.maximum(np.maximum(met, piece.full), np.maximum(piece.nearest, stop[unsolved]))
            after = np.minimum(after, x[unsolved])
            area[unsolved] += piece.integral(after)
            kept[unsolved] &= populations.holds(*piece.place(after))
            at_cap = (after == piece.full) & (after > stop[unsolved])
            full = unsolved[at_cap]
            area[full] += own.cap[full] * (after[at_cap] - stop[full])
            changes = np.flatnonzero((after == met) & ((met > piece.turn) | ~falling))
            if changes.size:
                some = ends[0][changes], ends[1][changes]
                groups.change(unsolved[changes], some, falling[changes], y[changes])
            x[unsolved] = after
            unsolved = unsolved[~at_cap & (after > stop[unsolved])]
    kept[unsolved] = False  # some went on for ever
    return area, kept


def _nearest(ends: tuple[FloatArray, FloatArray], falling: BoolArray) -> FloatArray:
    """The next ``y`` at which a person changes sides."""
    high = np.maximum(*(one.max(axis=1, initial=-np.inf) for one in ends))
    low = np.minimum(*(one.min(axis=1, initial=np.inf) for one in ends))
    return np.asarray(np.where(falling, high, low))


class _Piece:
    """Costs down from ``x`` while nobody else changes sides."""

    def __init__(self, line: _Line, own: Moves, x: FloatArray) -> None:
        self.line, self.u, self.cap, self.x = line, own.mass, own.cap, x
        self.a = line.b**2 + line.p * line.second
        self.slope = line.b * line.e - line.p * line.first
        self.c = line.b * line.first + line.e * line.second
        # y is least where u·P·x² − 2·slope·x = a
        root = np.sqrt(self.slope**2 + self.u * line.p * self.a)
        self.turn = np.where(
            self.slope > 0.0, (self.slope + root) / (self.u * line.p), self.a / (root - np.minimum(self.slope, 0.0))
        )
        self.falling: BoolArray = x > self.turn
        self.full = self._where_full()
        near = np.minimum(self.c / (line.b * self.u), np.where(line.e > 0.0, 0.5 * line.b / line.e, np.inf))
        self.nearest = np.maximum((x + near) / _RATIO - near, 0.0)

    def _where_full(self) -> FloatArray:
        """The cost at which the person is at the cap; minus infinity if at none."""
        line, u = self.line, self.u
        e = np.where(self.cap < np.inf, self.cap, 1.0)
        two, one, zero = e * u * line.e, u * (line.b * e - self.slope), self.c * e - u * self.a
        inner = one * one - 4.0 * two * zero
        root = np.sqrt(np.maximum(inner, 0.0))
        cost = np.where(one < 0.0, (root - one) / (2.0 * two), -2.0 * zero / (one + root))
        usable = (inner >= 0.0) & (self.cap < np.inf) & (cost > 0.0)
        return np.where(usable, np.minimum(cost, self.x), -np.inf)

    def meets(self, y: FloatArray) -> FloatArray:
        """The next lower cost at which ``y`` is this; while it falls, no lower than where it is least."""
        line = self.line
        fine = np.isfinite(y)
        y = np.where(fine, y, 1.0)
        two, one, zero = self.u * (line.p - line.e * y), line.b * self.u * y, self.a - self.c * y
        inner = one * one - 4.0 * two * zero
        root = np.sqrt(np.maximum(inner, 0.0))
        higher, lower = (one + root) / (2.0 * two), 2.0 * zero / (one + root)
        real = fine & (inner >= 0.0) & (two > 0.0)
        down = np.where(real, np.clip(higher, self.turn, np.maximum(self.x, self.turn)), self.turn)
        up = np.where(real, np.minimum(lower, self.x), -np.inf)
        return np.where(self.falling, down, up)

    def place(self, x: FloatArray) -> tuple[Levels, FloatArray]:
        """Level and ``σ`` at a cost."""
        line, u = self.line, self.u
        y = (self.a + u * line.p * x * x) / (u * line.e * x * x + line.b * u * x + self.c)
        sigma = line.b / (line.p - line.e * y)
        return Levels.of((y * sigma)[None]), sigma

    def integral(self, low: FloatArray) -> FloatArray:
        """The integral of the loss from ``low`` to where the piece starts."""
        half = 0.5 * (self.x - low)
        x = 0.5 * (self.x + low)[:, None] + half[:, None] * _NODES
        line, u = self.line.columns(), self.u[:, None]
        top = line.b * (line.b + line.e * x) + line.p * (line.second - line.first * x)
        loss = u * top / (u * line.e * x * x + u * line.b * x + self.c[:, None])
        area: FloatArray = half * (np.clip(loss, 0.0, self.cap[:, None]) @ _WEIGHTS)
        return area
