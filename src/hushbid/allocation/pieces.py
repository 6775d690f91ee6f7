"""The central optimum without caps: the path of efficient purchases in pieces, each in closed form.

For ``T > 0`` let every stratum's water level ``τ_g`` solve ``Σ_{i in g} u_i (τ_g − ψ_i)⁺ = λ_g T``, and

    W(T) = Σ_i u_i ψ_i (τ_g − ψ_i)⁺,      τ̄ = Σ_g λ_g τ_g,      σ = √(W/2).

Then ``ε_i = u_i (τ_g − ψ_i)⁺/σ`` is efficient, ``N = τ̄/T``, ``C = √(2W)`` and all losses add up to ``T/σ``. A person
enters at their *key*, the ``T`` at which the water level of their stratum reaches their cost. Between two keys, with
``(U, m, Q)_g`` the mass, mean and centred second moment of the active of each stratum,

    M = Σ λ_g m_g,   Q = Σ Q_g,   c = Σ λ_g²/U_g:      W = M·T − Q,   τ̄ = M + c·T,

and `hushbid.allocation.targets` has the root of each goal. ``M``, ``Q``, ``W`` and the keys are sums of nonnegative
steps from the left, ``c`` from the right: nothing cancels. ``docs/concepts/purchase.md`` has the proofs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.targets import Target
from hushbid.common.arrays import FloatArray, IndexArray


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """The people of one stratum, cheapest first."""

    rows: IndexArray  # who they are
    size: float  # λ
    base: float  # the smallest cost, in normal units; offsets count from here
    offset: FloatArray
    mass: FloatArray
    total: FloatArray  # mass of the first 1, 2, … people
    key: FloatArray  # T where each enters

    @classmethod
    def from_offsets(
        cls, rows: IndexArray, size: float, base: float, offset: FloatArray, mass: FloatArray
    ) -> "Stratum":
        """Return people with these offsets, ascending from 0."""
        total, key = mass.cumsum(), np.zeros(mass.size)
        with np.errstate(over="ignore"):
            np.cumsum(total[:-1] * (offset[1:] - offset[:-1]), out=key[1:])
            key /= size
        return cls(rows, size, base, offset, mass, total, key)

    def first(self, count: int) -> "Stratum":
        """Return the cheapest ``count`` of them."""
        names = ("rows", "offset", "mass", "total", "key")
        return replace(self, **{name: getattr(self, name)[:count] for name in names})

    def moments(self, count: int) -> tuple[float, float, float]:
        """Return mass, mean offset and centred second moment of the first ``count``, in two passes."""
        offset, mass = self.offset[:count], self.mass[:count]
        total = float(mass.sum())
        mean = float((mass * offset).sum()) / total
        deviation = offset - mean
        return total, mean, float((mass * deviation * deviation).sum())

    def level(self, at: float) -> float:
        """Return the water level at ``T``, counted from the base."""
        k = max(int(self.key.searchsorted(at)), 1)
        return float(self.offset[k - 1] + self.size * (at - self.key[k - 1]) / self.total[k - 1])


def strata_of(problem: CentralProblem, rows: IndexArray) -> list[Stratum]:
    """Return some people, with finite costs, sorted in their strata; every stratum must have one."""
    form, costs = problem.form, problem.costs[rows]
    if (costs[1:] < costs[:-1]).any():
        order = np.argsort(costs)  # among equals any order will do
        rows, costs = rows[order], costs[order]
    counts, count = np.array([rows.size]), form.sizes.size
    if count > 1:
        codes = problem.codes[rows]
        order = np.argsort(codes.astype(np.uint16 if count <= 1 << 16 else np.intp), kind="stable")
        rows, costs, counts = rows[order], costs[order], np.bincount(codes, minlength=count)
    ends = counts.cumsum()
    cheapest = costs[ends - counts]
    offset, mass = problem.offsets(costs, np.repeat(cheapest, counts)), problem.masses(rows)
    strata, first = [], 0
    for size, base, last in zip(form.sizes.tolist(), (cheapest / form.scale).tolist(), ends.tolist(), strict=True):
        own = slice(first, last)
        strata.append(Stratum.from_offsets(rows[own], size, base, offset[own], mass[own]))
        first = last
    return strata


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """All strata's keys in one order; piece j lasts from key j to the next one, the last for ever."""

    base: float  # Σ λ_g·base_g; slopes count from here
    key: FloatArray
    slope: FloatArray  # M − base after each key
    spread: FloatArray  # Q
    floor: FloatArray  # c
    paid: FloatArray  # W at each key

    @classmethod
    def of(cls, strata: Sequence[Stratum]) -> "Pieces":
        """Return the pieces of these people; what overflows is above every level that matters."""
        steps = np.zeros((4, sum(one.key.size for one in strata)))
        first, least = 0, 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for one in strata:
                mean = (one.mass * one.offset).cumsum() / one.total
                before = one.total[:-1]
                share = one.mass[1:] / one.total[1:]
                away = np.maximum(one.offset[1:] - mean[:-1], 0.0)
                part = share * away
                steps[0, first : first + one.key.size] = one.key
                steps[1:, first + 1 : first + one.key.size] = (
                    one.size * part,
                    part * before * away,
                    one.size**2 * share / before,
                )
                first += one.key.size
                least += one.size**2 / float(one.total[-1])
            return cls.in_order(sum(one.size * one.base for one in strata), least, *steps)

    @classmethod
    def in_order(
        cls, base: float, least: float, key: FloatArray, slope: FloatArray, spread: FloatArray, drop: FloatArray
    ) -> "Pieces":
        """Return pieces from what each person changes at their key; ``least`` is ``c`` after the last one."""
        if (key[1:] < key[:-1]).any():
            order = np.argsort(key, kind="stable")
            key, slope, spread, drop = key[order], slope[order], spread[order], drop[order]
        slope = slope.cumsum()
        floor, paid = np.zeros(key.size), np.zeros(key.size)
        np.cumsum(drop[:0:-1], out=floor[-2::-1])
        floor += least
        np.cumsum(slope[:-1] * (key[1:] - key[:-1]), out=paid[1:])
        paid += base * key
        return cls(base, key, slope, spread.cumsum(), floor, paid)

    @property
    def mean(self) -> FloatArray:
        """``M`` after each key."""
        return self.base + self.slope

    def figures(self, at: FloatArray) -> FloatArray:
        """Return ``T``, error, expense and step at ``T``, in rows."""
        j = np.maximum(self.key.searchsorted(at, side="right") - 1, 0)
        mean = self.base + self.slope[j]
        step = np.sqrt(0.5 * (self.paid[j] + mean * (at - self.key[j])))
        return np.stack([at, mean / at + self.floor[j], 2.0 * step, step])

    def candidates(self, target: Target) -> IndexArray:
        """Return the pieces that hold a local minimum, or may.

        Either the excess turns positive in a piece, or it is positive at both ends and negative where it is least.
        """
        mean, key = self.mean, self.key
        before = target.excess(key, mean + self.floor * key, self.paid) <= 0.0
        before |= key == 0.0
        after = np.zeros(key.size, dtype=bool)
        after[:-1] = before[1:]
        holds = before & ~after
        if not target.unimodal:
            end = np.full(key.size, math.inf)
            end[:-1] = key[1:]
            turn = target.turning_point(mean)
            some = np.flatnonzero(~(before | after) & (key < turn) & (turn < end))
            if some.size:
                mean, turn = mean[some], turn[some]
                dip = target.excess(turn, mean + self.floor[some] * turn, mean * turn - self.spread[some])
                holds[some] = dip < 0.0
        return np.flatnonzero(holds)


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A point of the path, and who is bought from there."""

    at: float  # T; 0 where only zero-cost people are bought from, infinite where nothing reaches the target
    mean: float  # M
    spread: float  # Q
    floor: float  # c
    counts: tuple[int, ...]  # how many are active in each stratum
    moments: tuple[tuple[float, float, float], ...]
    """Mass, mean offset and centred second moment of each stratum's active."""

    @property
    def mse(self) -> float:
        """``N`` where somebody is paid, and without noise elsewhere."""
        return self.floor + (self.mean / self.at if self.at > 0.0 else 0.0)

    def value(self, target: Target) -> float:
        """Return the objective, in normal units."""
        if self.at == 0.0:
            return self.floor
        terms = (np.asarray(one) for one in (self.at, self.mean, self.spread, self.floor))
        return float(target.value(*terms))


def free_counts(strata: Sequence[Stratum]) -> tuple[int, ...]:
    """Return how many zero-cost people each stratum has."""
    return tuple(int((one.base + one.offset).searchsorted(0.0, side="right")) for one in strata)


def free_error(strata: Sequence[Stratum]) -> float:
    """Return ``N`` of zero-cost people alone without noise; infinite where a stratum has none."""
    counts = free_counts(strata)
    if min(counts) == 0:
        return math.inf
    return sum(one.size**2 / float(one.total[k - 1]) for one, k in zip(strata, counts, strict=True))


def best_point(target: Target, strata: Sequence[Stratum], pieces: Pieces) -> Point:
    """Return the point of these people's path that the target chooses: the global optimum, to rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        which = pieces.candidates(target)
        terms = pieces.mean[which], pieces.spread[which], pieces.floor[which]
        at = target.root(*terms)
        value = target.value(at, *terms)
        best = int(value.argmin())
        free = np.asarray(free_error(strata) if pieces.base == 0.0 else math.inf)
        if free < math.inf and target.satisfied_for_free(free, value[best]):
            return point_of(target, strata, free_counts(strata), paid=False)
    start = pieces.key[which[best]]
    return point_of(target, strata, tuple(int(one.key.searchsorted(start, side="right")) for one in strata))


def point_of(target: Target, strata: Sequence[Stratum], counts: tuple[int, ...], *, paid: bool = True) -> Point:
    """Return the point for known active people, with moments centred in a second pass."""
    moments = tuple(one.moments(count) for one, count in zip(strata, counts, strict=True))
    mean = sum(one.size * (one.base + found[1]) for one, found in zip(strata, moments, strict=True))
    spread = sum(found[2] for found in moments)
    floor = sum(one.size**2 / found[0] for one, found in zip(strata, moments, strict=True))
    at = float(target.root(*(np.array([one]) for one in (mean, spread, floor)))[0]) if paid else 0.0
    return Point(at, mean, spread, floor, counts, moments)


def shares(one: Stratum, count: int, moments: tuple[float, float, float], at: float) -> FloatArray:
    """Return ``u (τ − ψ)⁺/T`` of the active of a stratum, which sum to its λ; written so that nothing cancels."""
    total, mean, _ = moments
    share = np.full(count, one.size / total)
    if at > 0.0:
        share += (mean - one.offset[:count]) / at
        np.maximum(share, 0.0, out=share)
    share *= one.mass[:count]
    share *= one.size / float(share.sum())
    return share
