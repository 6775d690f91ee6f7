"""People with caps, and what they add to the sums at a level and a rate."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from hushbid.arrays import BoolArray, FloatArray, IndexArray

NO_CAP = 1e200
"""Stands for an infinite cap in sums."""


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Sums over those inside and over those at their cap."""

    mass: FloatArray
    """``Σ u`` inside."""

    first: FloatArray
    """``Σ uψ`` inside."""

    gain: FloatArray
    """``Σ u(τ − ψ)`` inside."""

    paid: FloatArray
    """``Σ uψ(τ − ψ)`` inside."""

    room: FloatArray
    """``Σ e`` inside: what they would be bought if all were at their cap."""

    used: FloatArray
    """``Σ e`` at the cap."""

    squares: FloatArray
    """``Σ V·e²`` at the cap."""

    spent: FloatArray
    """``Σ ψ·e`` at the cap."""

    def plus(self, other: "Totals", sign: float = 1.0) -> "Totals":
        """Both together; or the difference."""
        return Totals(*(getattr(self, one.name) + sign * getattr(other, one.name) for one in fields(self)))

    @classmethod
    def joined(cls, parts: "Sequence[Totals]") -> "Totals":
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            *(np.concatenate([np.zeros(0), *(getattr(part, one.name) for part in parts)]) for one in fields(cls))
        )

    def put(self, which: IndexArray, some: "Totals", chosen: BoolArray) -> None:
        """Write the ``chosen`` of some others over these."""
        for one in fields(self):
            getattr(self, one.name)[which] = getattr(some, one.name)[chosen]

    @classmethod
    def empty(cls, count: int) -> "Totals":
        """So many sums over nobody."""
        return cls(*np.zeros((len(fields(cls)), count)))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over given groups, whatever the level."""

    first: FloatArray
    """``Σ uψ`` inside."""

    second: FloatArray
    """``Σ uψ²`` inside."""

    used: FloatArray
    """``Σ e`` at the cap."""

    squares: FloatArray
    """``Σ V·e²`` at the cap."""

    spent: FloatArray
    """``Σ ψ·e`` at the cap."""


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Some people; who is not there has mass 0 and cap 0."""

    offset: FloatArray
    """How far their costs are above the base."""

    mass: FloatArray
    """``u``, one over the variance."""

    cap: FloatArray
    """The most that may be bought; infinite if anything."""

    square: FloatArray
    """``V·e²`` of a finite cap, else 0."""

    @classmethod
    def of(cls, offset: FloatArray, mass: FloatArray, cap: FloatArray) -> "People":
        """These people."""
        square = np.zeros(offset.size)
        np.divide(cap * cap, mass, out=square, where=(mass > 0.0) & (cap < np.inf))
        return cls(offset, mass, cap, square)

    def take(self, which: IndexArray | BoolArray) -> "People":
        """Some of them."""
        return People(self.offset[which], self.mass[which], self.cap[which], self.square[which])

    def losses(self, level: FloatArray | float, rate: FloatArray | float) -> FloatArray:
        """What is bought from each."""
        bought: FloatArray = np.clip(rate * self.mass * (level - self.offset), 0.0, self.cap)
        return bought

    def groups(self, level: FloatArray | float, rate: FloatArray | float) -> tuple[BoolArray, BoolArray]:
        """Who is inside, and who is at her cap."""
        below = level - self.offset
        there = below > 0.0
        with np.errstate(invalid="ignore"):  # a rate beyond all floats, of somebody who is not there
            capped = there & (rate * self.mass * below >= self.cap)
        return there & ~capped, capped

    def totals(self, base: float, level: FloatArray, rate: FloatArray) -> Totals:
        """The terms of the sums, one for each person, at a level and a rate each."""
        inside, capped = self.groups(level, rate)
        cost = base + self.offset
        mass = np.where(inside, self.mass, 0.0)
        gain = mass * (level - self.offset)
        used = np.where(capped, self.cap, 0.0)
        return Totals(
            mass=mass,
            first=mass * cost,
            gain=gain,
            paid=gain * cost,
            room=np.where(inside, np.minimum(self.cap, NO_CAP), 0.0),
            used=used,
            squares=np.where(capped, self.square, 0.0),
            spent=used * cost,
        )


class Sums:
    """Sums over some people at many levels and rates, as products of who is in which group with what they add."""

    def __init__(self, base: float, people: People) -> None:
        self._people, cost = people, base + people.offset
        cap = np.where(people.cap < np.inf, people.cap, 0.0)
        self._inside = np.stack([people.mass, people.mass * cost, np.minimum(people.cap, NO_CAP)], axis=1)
        self._below = np.stack([people.mass, people.mass * cost], axis=1)
        self._capped = np.stack([cap, people.square, cap * cost], axis=1)

    def totals(self, level: FloatArray, rate: FloatArray, unless: tuple[IndexArray, IndexArray] | None) -> Totals:
        """The sums at each level and rate, ``unless`` at this one for this person."""
        people = self._people
        below = level[:, None] - people.offset
        capped = rate[:, None] * people.mass * below >= people.cap
        capped &= (there := below > 0.0)
        if unless is not None:
            capped[unless] = there[unless] = False
        inside = (there & ~capped).astype(np.float64)
        mass, first, room = (inside @ self._inside).T
        inside *= below
        gain, paid = (inside @ self._below).T
        used, squares, spent = (capped.astype(np.float64) @ self._capped).T
        return Totals(mass, first, gain, paid, room, used, squares, spent)
