"""Minus the integral of one person's loss over all higher costs of hers, under a budget and caps.

While nobody changes groups, the others' sums ``M₁, M₂ = Σuψ, Σuψ²`` inside and ``E, D, L`` at the cap stay, and with
``P = 2 + D`` and ``b = B − L`` the two equations are linear in ``y = τρ`` and ``ρ``. Somebody with cost ``x`` loses

    ε = u·(b² + P·M₂ + (b·E − P·M₁)·x) / (u·E·x² + u·b·x + b·M₁ + E·M₂),

and ``y`` falls in ``x`` up to some cost and rises beyond it. On the line ``b·ρ + E·y = P`` everybody else enters at one
``y`` and reaches her cap at another. So from the cost at which she is out (the level of the others alone) one goes down
from change to change. Each part of the integral has its poles left of zero, so Gauss's rule is exact to rounding.
"""

from typing import Protocol

import numpy as np

from hushbid.allocation.capped.crowds import OneCap, Variants, Various
from hushbid.allocation.capped.people import Moments, People
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SAME = 1.0 - 1e-14
_RATIO = 4.0
"""A part ends where the distance to the nearest pole has changed by this factor."""


class _Groups(Protocol):
    """Who else is inside and who is at the cap, in each of some populations."""

    def moments(self, unsolved: IndexArray) -> Moments: ...

    def next(self, unsolved: IndexArray, ends: "_Line", falling: BoolArray) -> FloatArray: ...

    def change(self, unsolved: IndexArray, ends: "_Line", falling: BoolArray, y: FloatArray) -> None: ...


class _Line:
    """The line on which ``y`` and the rate move, and where on it a person of some cost changes groups."""

    def __init__(self, moments: Moments, budget: float) -> None:
        self.p, self.e = 2.0 + moments.squares, moments.used
        self.b = budget - moments.spent

    def take(self, which: IndexArray | BoolArray) -> "_Line":
        part = object.__new__(_Line)
        part.p, part.e, part.b = self.p[which], self.e[which], self.b[which]
        return part

    def columns(self) -> "_Line":
        part = object.__new__(_Line)
        part.p, part.e, part.b = self.p[:, None], self.e[:, None], self.b[:, None]
        return part

    def entry(self, cost: FloatArray) -> FloatArray:
        """The ``y`` at which somebody enters."""
        return self.p * cost / (self.b + self.e * cost)

    def full(self, cost: FloatArray, wanted: FloatArray) -> FloatArray:
        """The ``y`` at which somebody is at her cap, where ``wanted = V·e``."""
        with np.errstate(invalid="ignore"):
            return (self.b * wanted + self.p * cost) / (self.b + self.e * cost)


class _SortedGroups:
    """One cap and one variance: two numbers say who is in which group."""

    def __init__(self, crowd: OneCap, without: IndexArray, level: FloatArray, rate: FloatArray) -> None:
        self._crowd, self._without = crowd, without
        self._capped, self._below = crowd.places(level, rate)

    def moments(self, unsolved: IndexArray) -> Moments:
        return self._crowd.moments(self._capped[unsolved], self._below[unsolved], self._without[unsolved])

    def _ends(self, unsolved: IndexArray, line: _Line, falling: BoolArray) -> tuple[FloatArray, FloatArray]:
        offset = self._crowd.people.offset
        capped, below = self._capped[unsolved], self._below[unsolved]
        place = np.where(falling, below - 1, below)
        enters = line.entry(self._crowd.base + offset[np.clip(place, 0, offset.size - 1)])
        none = np.where(falling, -np.inf, np.inf)
        enters = np.where(np.where(falling, below > capped, below < offset.size), enters, none)
        place = np.where(falling, capped - 1, capped)
        cost = self._crowd.base + offset[np.clip(place, 0, offset.size - 1)]
        full = line.full(cost, np.full(cost.size, self._crowd.cap))
        return enters, np.where(np.where(falling, capped > 0, capped < below), full, none)

    def next(self, unsolved: IndexArray, ends: _Line, falling: BoolArray) -> FloatArray:
        enters, full = self._ends(unsolved, ends, falling)
        return np.where(falling, np.maximum(enters, full), np.minimum(enters, full))

    def change(self, unsolved: IndexArray, ends: _Line, falling: BoolArray, y: FloatArray) -> None:
        enters, full = self._ends(unsolved, ends, falling)
        offset = self._crowd.people.offset
        for values, places in ((enters, self._below), (full, self._capped)):
            now = places[unsolved]
            meets = np.where(falling, values >= y * _SAME, values <= y / _SAME)
            down = offset.searchsorted(offset[np.maximum(now - 1, 0)], side="left")
            up = offset.searchsorted(offset[np.minimum(now, offset.size - 1)], side="right")
            places[unsolved] = np.where(meets, np.where(falling, down, up), now)
        self._capped[unsolved] = np.minimum(self._capped[unsolved], self._below[unsolved])


class _LooseGroups:
    """A cap and a variance each: everybody who may change groups is looked at."""

    def __init__(self, crowd: Various, without: IndexArray, level: FloatArray, rate: FloatArray) -> None:
        self._people, self._cost = crowd.seen, crowd.base + crowd.seen.offset
        self._there = crowd.loose[None, :] != without[:, None]
        self._wanted = crowd.seen.cap / crowd.seen.mass
        inside, capped = crowd.seen.groups(level[:, None], rate[:, None])
        self._inside, self._capped = inside & self._there, capped & self._there
        self._rest = crowd.rest(without)

    def moments(self, unsolved: IndexArray) -> Moments:
        inside, capped, people = self._inside[unsolved], self._capped[unsolved], self._people
        weighted = people.mass * self._cost
        cap = np.where(people.cap < np.inf, people.cap, 0.0)
        return Moments(
            self._rest.first[unsolved] + inside @ weighted,
            self._rest.second[unsolved] + inside @ (weighted * self._cost),
            self._rest.used[unsolved] + capped @ cap,
            self._rest.squares[unsolved] + capped @ people.square,
            self._rest.spent[unsolved] + capped @ (cap * self._cost),
        )

    def _ends(self, unsolved: IndexArray, line: _Line, falling: BoolArray) -> tuple[FloatArray, FloatArray]:
        columns, down = line.columns(), falling[:, None]
        inside, capped, there = self._inside[unsolved], self._capped[unsolved], self._there[unsolved]
        none = np.where(down, -np.inf, np.inf)
        enters = np.where(np.where(down, inside, there & ~inside & ~capped), columns.entry(self._cost), none)
        full = np.where(np.where(down, capped, inside), columns.full(self._cost, self._wanted), none)
        return enters, full

    def next(self, unsolved: IndexArray, ends: _Line, falling: BoolArray) -> FloatArray:
        enters, full = self._ends(unsolved, ends, falling)
        high = np.maximum(enters.max(axis=1, initial=-np.inf), full.max(axis=1, initial=-np.inf))
        low = np.minimum(enters.min(axis=1, initial=np.inf), full.min(axis=1, initial=np.inf))
        nearest: FloatArray = np.where(falling, high, low)
        return nearest

    def change(self, unsolved: IndexArray, ends: _Line, falling: BoolArray, y: FloatArray) -> None:
        enters, full = self._ends(unsolved, ends, falling)
        down, here = falling[:, None], y[:, None]
        moves = np.where(down, enters >= here * _SAME, enters <= here / _SAME)
        fills = np.where(down, full >= here * _SAME, full <= here / _SAME)
        # falling: who is inside leaves, who is full comes inside; rising: the other way round
        self._inside[unsolved] = np.where(moves, ~down, np.where(fills, down, self._inside[unsolved]))
        self._capped[unsolved] = np.where(fills, ~down, self._capped[unsolved])


def areas(
    variants: Variants, level: FloatArray, rate: FloatArray, budget: float, top: FloatArray, stop: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """The integral of each person's loss from cost ``stop`` up to ``top``, and whether the crowd's box was never left.

    ``variants`` are the populations, the person's precision and cap the moved one's; ``level`` and ``rate`` are where
    they stand if her cost is ``top``, at which she is not at her cap.
    """
    without, own = variants.without, variants.moved
    assert without is not None
    assert own is not None
    crowd = variants.crowd
    groups: _Groups
    if isinstance(crowd, OneCap):
        groups = _SortedGroups(crowd, without, level, rate)
    else:
        assert isinstance(crowd, Various)
        groups = _LooseGroups(crowd, without, level, rate)
    area, x = np.zeros(top.size), top.copy()
    kept = crowd.holds(level, rate)
    unsolved = np.flatnonzero(x > stop)
    for _ in range(8 * crowd.people.offset.size + 400):
        if unsolved.size == 0:
            break
        piece = _Piece(groups.moments(unsolved), budget, own.take(unsolved), x[unsolved])
        ends = piece.line
        y = groups.next(unsolved, ends, piece.falling)
        met = piece.meets(y)
        after = np.maximum(np.maximum(met, piece.full), np.maximum(piece.nearest, stop[unsolved]))
        area[unsolved] += piece.integral(after)
        kept[unsolved] &= crowd.holds(*piece.place(after, crowd.base))
        at_cap = (after == piece.full) & (after > stop[unsolved])
        full = unsolved[at_cap]
        area[full] += own.cap[full] * (after[at_cap] - stop[full])
        changes = (after == met) & (met > piece.turn) & piece.falling | (after == met) & ~piece.falling
        if changes.any():
            some = np.flatnonzero(changes)
            groups.change(unsolved[some], ends.take(some), piece.falling[some], y[some])
        x[unsolved] = after
        unsolved = unsolved[~at_cap & (after > stop[unsolved])]
    return area, kept


class _Piece:
    """Costs down from ``x`` while nobody else changes groups."""

    def __init__(self, moments: Moments, budget: float, own: People, x: FloatArray) -> None:
        self.line = line = _Line(moments, budget)
        self.u, self.x = own.mass, x
        self._m1, self._m2 = moments.first, moments.second
        self.a = line.b**2 + line.p * moments.second
        self.slope = line.b * line.e - line.p * moments.first
        self.c = line.b * moments.first + line.e * moments.second
        # y is least where u·P·x² − 2·slope·x = a
        root = np.sqrt(self.slope**2 + self.u * line.p * self.a)
        with np.errstate(divide="ignore"):
            self.turn = np.where(
                self.slope > 0.0, (self.slope + root) / (self.u * line.p), self.a / (root - np.minimum(self.slope, 0.0))
            )
        self.falling = x > self.turn
        self.full = self._where_full(own.cap)
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.minimum(self.c / (line.b * self.u), np.where(line.e > 0.0, 0.5 * line.b / line.e, np.inf))
        self.nearest = np.maximum((x + near) / _RATIO - near, 0.0)

    def _where_full(self, cap: FloatArray) -> FloatArray:
        """The cost at which she is at her cap; minus infinity if at none."""
        line, u = self.line, self.u
        e = np.where(cap < np.inf, cap, 1.0)
        two, one, zero = e * u * line.e, u * (line.b * e - self.slope), self.c * e - u * self.a
        inner = one * one - 4.0 * two * zero
        root = np.sqrt(np.maximum(inner, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(one < 0.0, (root - one) / (2.0 * two), -2.0 * zero / (one + root))
        usable = (inner >= 0.0) & (cap < np.inf) & (cost > 0.0)
        return np.where(usable, np.minimum(cost, self.x), -np.inf)

    def meets(self, y: FloatArray) -> FloatArray:
        """The next lower cost at which ``y`` is this; while it falls, no lower than where it is least."""
        line = self.line
        fine = np.isfinite(y)
        y = np.where(fine, y, 1.0)
        two, one, zero = self.u * (line.p - line.e * y), line.b * self.u * y, self.a - self.c * y
        inner = one * one - 4.0 * two * zero
        root = np.sqrt(np.maximum(inner, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            higher, lower = (one + root) / (2.0 * two), 2.0 * zero / (one + root)
        real = fine & (inner >= 0.0) & (two > 0.0)
        down = np.where(real, np.clip(higher, self.turn, np.maximum(self.x, self.turn)), self.turn)
        up = np.where(real, np.minimum(lower, self.x), -np.inf)
        return np.where(self.falling, down, up)

    def place(self, x: FloatArray, base: float) -> tuple[FloatArray, FloatArray]:
        """Level and rate at a cost."""
        line, u = self.line, self.u
        y = (self.a + u * line.p * x * x) / (u * line.e * x * x + line.b * u * x + self.c)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = (line.p - line.e * y) / line.b
            return y / rate - base, rate

    def integral(self, low: FloatArray) -> FloatArray:
        """The integral of her loss from ``low`` to where the piece starts."""
        half = 0.5 * (self.x - low)
        x = 0.5 * (self.x + low)[:, None] + half[:, None] * _NODES
        u, e, b = self.u[:, None], self.line.e[:, None], self.line.b[:, None]
        loss = u * (self.a[:, None] + self.slope[:, None] * x) / (u * e * x * x + u * b * x + self.c[:, None])
        area: FloatArray = half * (np.maximum(loss, 0.0) @ _WEIGHTS)
        return area
