"""The frontier of a contrast in pieces, and the point on it that a goal chooses.

For ``T > 0`` let every stratum's level ``τ_g`` solve ``Σ_{i in g} u_i (τ_g − ψ_i)⁺ = λ_g T``, and

    W(T) = Σ_i u_i ψ_i (τ_g − ψ_i)⁺,      τ̄ = Σ_g λ_g τ_g.

Then ``|ω_i| = u_i (τ_g − ψ_i)⁺/T`` with ``η = T·√(2/W)`` is efficient, ``MSE = τ̄/T`` and the expense is ``√(2W)``. A
person enters at her *key*, the ``T`` at which her stratum's level reaches her cost. Between two keys, with
``(U, m, Q)_g`` the mass, mean and centred second moment of the active of each stratum,

    M = Σ λ_g m_g,   Q = Σ Q_g,   C = Σ λ_g²/U_g:      W = M·T − Q,   τ̄ = M + C·T,

the ordinary problem with ``1/U`` for ``C`` (:mod:`hushbid.allocation.central`, :mod:`hushbid.allocation.levels`). In
normal form a price minimises ``Φ(T) = T²/2 + C + 2M/T − Q/T²``, the least cost at the noise that belongs to ``T``; it
falls exactly where ``T⁴ < 2W``. An accuracy has ``ratio·T = τ̄``, a budget ``W = half``.

``M``, ``Q``, ``W`` and the keys are sums of nonnegative steps from the left, ``C`` from the right: nothing cancels.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hushbid.allocation.contrast.problem import Scaled
from hushbid.allocation.goals import Accuracy, Price
from hushbid.arrays import FloatArray, IndexArray

_BESIDE = 1.0 + 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """The people of one stratum, cheapest first; of very many in any order, and then without keys."""

    rows: IndexArray
    """Who they are; in any order if they are `apart`."""

    size: float
    """``λ``."""

    base: float
    """The smallest cost, in normal form; offsets count from here."""

    offset: FloatArray
    mass: FloatArray
    total: FloatArray
    """Mass of the first 1, 2, … people."""

    key: FloatArray
    """``T`` where each enters."""

    apart: bool = False
    """Whether only their costs are sorted, which is quicker, so that rows and offsets do not belong together."""

    @classmethod
    def of(cls, scaled: Scaled, rows: IndexArray, stratum: int, heavier: float = 1.0, apart: bool = False) -> "Stratum":
        """Those of ``rows``, all of this stratum and with finite costs; each counting for ``heavier`` people."""
        costs = scaled.costs[rows]
        if apart:
            costs.sort()
        else:
            order = np.argsort(costs, kind="stable")
            rows, costs = rows[order], costs[order]
        cheapest, size = float(costs[0]), float(scaled.sizes[stratum])
        with np.errstate(over="ignore"):  # what overflows is above every level that matters
            offset = (costs - cheapest) / scaled.scale  # subtracting first keeps close costs apart
            mass = heavier * scaled.masses(rows)
            total = mass.cumsum()
            key = np.append(0.0, (total[:-1] * np.diff(offset)).cumsum()) / size
        return cls(rows, size, cheapest / scaled.scale, offset, mass, total, key, apart)

    @classmethod
    def in_any_order(cls, scaled: Scaled, rows: IndexArray, stratum: int) -> "Stratum":
        """The same people, not sorted."""
        costs, none = scaled.costs[rows], np.zeros(0)
        cheapest, size = float(costs.min()), float(scaled.sizes[stratum])
        offset = (costs - cheapest) / scaled.scale
        return cls(rows, size, cheapest / scaled.scale, offset, scaled.masses(rows), none, none)

    def below(self, level: float) -> "Stratum":
        """Those below a level, of people in any order."""
        kept = np.flatnonzero(self.offset < level)
        if kept.size == self.offset.size:
            return self
        return replace(self, rows=self.rows[kept], offset=self.offset[kept], mass=self.mass[kept])

    def first(self, count: int) -> "Stratum":
        """The cheapest ``count`` of them."""
        if count >= self.offset.size:
            return self
        return replace(
            self,
            rows=self.rows if self.apart else self.rows[:count],
            offset=self.offset[:count],
            mass=self.mass[:count],
            total=self.total[:count],
            key=self.key[:count],
        )

    def active(self, scaled: Scaled, count: int) -> "Stratum":
        """The cheapest ``count`` of them, rows and offsets together; they include everybody of the same cost."""
        if not self.apart:
            return self.first(count)
        costs = scaled.costs[self.rows]
        offset = (costs - costs.min()) / scaled.scale
        return replace(self, offset=offset, apart=False).below(math.nextafter(float(self.offset[count - 1]), math.inf))

    def moments(self, count: int) -> tuple[float, float, float]:
        """Mass, mean offset and centred second moment of the first ``count``, in two passes."""
        offset, mass = self.offset[:count], self.mass[:count]
        total = float(mass.sum())
        mean = float((mass * offset).sum()) / total
        deviation = offset - mean
        return total, mean, float((mass * deviation * deviation).sum())

    def gain(self, level: float) -> float:
        """``Σ u (level − offset)⁺``."""
        below = self.offset < level
        return float((self.mass[below] * (level - self.offset[below])).sum())


def by_stratum(scaled: Scaled, rows: IndexArray, heavier: float = 1.0, apart: bool = False) -> list[Stratum]:
    """Some people, sorted in their strata; every stratum must have one."""
    return [Stratum.of(scaled, part, g, heavier, apart) for g, part in enumerate(_split(scaled, rows))]


def _split(scaled: Scaled, rows: IndexArray) -> list[IndexArray]:
    """Some people by strata."""
    codes = scaled.codes[rows]
    order = np.argsort(codes.astype(np.uint16 if scaled.sizes.size < 1 << 16 else np.intp), kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=scaled.sizes.size))
    return np.split(rows[order], ends[:-1])


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """All strata's keys in one order; piece j lasts from key j to the next one, the last for ever."""

    base: float
    """``Σ λ_g·base_g``; slopes count from here."""

    key: FloatArray
    slope: FloatArray
    """``M − base`` after each key."""

    spread: FloatArray
    """``Q``."""

    floor: FloatArray
    """``C``."""

    paid: FloatArray
    """``W`` at each key."""

    @classmethod
    def of(cls, strata: list[Stratum]) -> "Pieces":
        """The pieces of these people."""
        slopes, spreads, drops = [], [], []
        for one in strata:
            mean = (one.mass * one.offset).cumsum() / one.total
            before, mass = one.total[:-1], one.mass[1:]
            share = mass / one.total[1:]
            away = np.maximum(one.offset[1:] - mean[:-1], 0.0)
            slopes.append(np.append(0.0, one.size * share * away))
            spreads.append(np.append(0.0, share * before * away * away))
            drops.append(np.append(0.0, one.size**2 * share / before))
        steps = (np.concatenate(parts) for parts in ([one.key for one in strata], slopes, spreads, drops))
        least = sum(one.size**2 / float(one.total[-1]) for one in strata)
        return cls.in_order(sum(one.size * one.base for one in strata), least, *steps)

    @classmethod
    def in_order(
        cls, base: float, least: float, key: FloatArray, slope: FloatArray, spread: FloatArray, drop: FloatArray
    ) -> "Pieces":
        """From what everybody changes at her key; ``least`` is ``C`` after the last one."""
        order = np.argsort(key, kind="stable")
        key, drop, slope = key[order], drop[order], slope[order].cumsum()
        floor = least + np.append(drop[1:], 0.0)[::-1].cumsum()[::-1]
        paid = base * key + np.append(0.0, (slope[:-1] * np.diff(key)).cumsum())
        return cls(base, key, slope, spread[order].cumsum(), floor, paid)


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A point of the frontier, and who is bought from there."""

    at: float
    """``T``; 0 where no noise is best, or nobody is paid."""

    mean: float
    """``M``."""

    spread: float
    """``Q``."""

    floor: float
    """``C``."""

    counts: tuple[int, ...]
    """How many are active in each stratum."""

    moments: tuple[tuple[float, float, float], ...]
    """Mass, mean offset and centred second moment of each stratum's active."""

    @property
    def value(self) -> float:
        """``Φ``."""
        if self.at == 0.0:
            return self.floor
        return 0.5 * self.at**2 + self.floor + 2.0 * self.mean / self.at - self.spread / self.at / self.at

    @property
    def mse(self) -> float:
        """The error in normal form."""
        return self.floor + (self.mean / self.at if self.at > 0.0 else 0.0)


def point_of(scaled: Scaled, strata: list[Stratum]) -> Point:
    """The point of the frontier of these people that the goal chooses: the global optimum, to rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(scaled.goal, Price):
            return _best_price(strata)
        return _at_level(scaled, strata)


# -- a price -----------------------------------------------------------------------------------------------------------


def _best_price(strata: list[Stratum]) -> Point:
    """The best minimum of all pieces, and of adding no noise where every stratum has somebody who asks for nothing."""
    # one person of each stratum attains this; at an optimum the value above C is three times T²/2
    alone = sum(one.size**2 / float(one.mass[0]) for one in strata)
    base = sum(one.size * one.base for one in strata)
    most = math.sqrt((alone + 1.5 * (2.0 * base) ** (2.0 / 3.0)) / 1.5) * _BESIDE
    strata = [one.first(int(one.key.searchsorted(most, side="right"))) for one in strata]
    value, best = best_key(Pieces.of(strata))
    if base == 0.0:
        free = tuple(int(one.offset.searchsorted(0.0, side="right")) for one in strata)
        if sum(one.size**2 / float(one.total[k - 1]) for one, k in zip(strata, free, strict=True)) <= value:
            return _polished(strata, free, _silent)
    counts = tuple(int(one.key.searchsorted(best, side="right")) for one in strata)
    return _polished(strata, counts, lambda mean, spread, floor: inside(mean, spread, floor)[0])


def best_key(pieces: Pieces) -> tuple[float, float]:
    """The least ``Φ`` with noise, and where the piece begins that has it."""
    value, best = math.inf, 0.0
    for j in minima(pieces):
        found = inside(pieces.base + float(pieces.slope[j]), float(pieces.spread[j]), float(pieces.floor[j]))[1]
        if found < value:
            value, best = found, float(pieces.key[j])
    return value, best


def minima(pieces: Pieces) -> list[int]:
    """The pieces that hold a minimum of ``Φ``, or may.

    ``Φ`` falls where ``T⁴ < 2W``, in a piece on one interval of ``a = W/T`` around ``M/4``: so either it falls at the
    left end and rises at the right one, or it rises at both and ``M/4`` lies inside, with ``Φ`` falling there.
    """
    square = pieces.key * pieces.key
    falling = square * square <= 2.0 * pieces.paid
    after = np.append(falling[1:], False)
    minimum = falling & ~after
    quarter = 0.25 * (pieces.base + pieces.slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(pieces.key > 0.0, pieces.paid / pieces.key, pieces.base)
    right = np.append(left[1:], math.inf)
    hump = ~falling & ~after & (left < quarter) & (quarter < right)
    if hump.any():
        # T at a = M/4, and Φ falling there: T³ < 2a
        with np.errstate(divide="ignore"):
            hump &= (pieces.spread / (3.0 * quarter)) ** 3 < 2.0 * quarter
        minimum |= hump
    found: list[int] = np.flatnonzero(minimum).tolist()
    return found


def inside(mean: float, spread: float, floor: float) -> tuple[float, float]:
    """The larger root of ``T⁴ − 2MT + 2Q`` and ``Φ`` there: Newton from the right, where it is monotone."""
    at: float = (2.0 * mean) ** (1.0 / 3.0)
    if spread > 0.0:
        for _ in range(80):
            cube = at * at * at
            slope = 4.0 * cube - 2.0 * mean
            if slope <= 0.0:  # no root, or a double one missed by rounding: where the quartic is least
                at = (0.5 * mean) ** (1.0 / 3.0)
                break
            step = (at * (cube - 2.0 * mean) + 2.0 * spread) / slope
            at -= step
            if step <= 1e-16 * at:
                break
    if at <= 0.0:
        return 0.0, math.inf
    return at, 0.5 * at * at + floor + 2.0 * mean / at - spread / at / at


# -- an accuracy or a budget -------------------------------------------------------------------------------------------


def level_root(scaled: Scaled, mean: FloatArray, spread: FloatArray, floor: FloatArray) -> FloatArray:
    """``T`` if exactly these people are active; infinite if they are not enough."""
    accurate = isinstance(scaled.goal, Accuracy)
    above, slope = (mean, scaled.ratio - floor) if accurate else (scaled.half + spread, mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slope > 0.0, above / slope, math.inf)


def _at_level(scaled: Scaled, strata: list[Stratum]) -> Point:
    """The one point with the wanted error or expense; at ``T = ∞`` where these people are not enough."""
    pieces = Pieces.of(strata)
    if isinstance(scaled.goal, Accuracy) and pieces.base == 0.0:  # people who ask for nothing may be enough
        free = tuple(int(one.offset.searchsorted(0.0, side="right")) for one in strata)
        least = sum(one.size**2 / float(one.total[k - 1]) for one, k in zip(strata, free, strict=True))
        if least <= scaled.ratio:
            return _polished(strata, free, _silent)
    start = level_key(scaled, pieces)
    counts = tuple(int(one.key.searchsorted(start, side="right")) for one in strata)
    return _polished(strata, counts, partial(_root_of, scaled))


def level_key(scaled: Scaled, pieces: Pieces) -> float:
    """Where the piece begins that has the wanted error or expense; the last one if none has."""
    if isinstance(scaled.goal, Accuracy):
        passed = scaled.ratio * pieces.key >= pieces.base + pieces.slope + pieces.floor * pieces.key
        passed &= pieces.key > 0.0
    else:
        passed = pieces.paid >= scaled.half
    piece = int(np.argmax(passed)) - 1 if passed.any() else passed.size - 1
    return float(pieces.key[max(piece, 0)])


def level_of_many(scaled: Scaled, rows: IndexArray) -> tuple[list[Stratum], Point]:
    """The same point for very many people, without sorting them, and who is active.

    From everybody on: the sums of too many people are a tangent, and give levels that are not too low. Those above are
    left out until nobody is.
    """
    people = [Stratum.in_any_order(scaled, part, g) for g, part in enumerate(_split(scaled, rows))]
    while True:
        point = _polished(people, tuple(one.rows.size for one in people), partial(_root_of, scaled))
        if not 0.0 < point.at < math.inf:  # not enough people, or enough who ask for nothing
            people = by_stratum(scaled, rows)
            return people, point_of(scaled, people)
        kept = [
            one.below(found[1] + one.size * point.at / found[0])
            for one, found in zip(people, point.moments, strict=True)
        ]
        if all(one is before for one, before in zip(kept, people, strict=True)):
            return people, point
        people = kept


def _root_of(scaled: Scaled, mean: float, spread: float, floor: float) -> float:
    return float(level_root(scaled, np.asarray(mean), np.asarray(spread), np.asarray(floor)))


def _silent(mean: float, spread: float, floor: float) -> float:
    """``T`` where only people who ask for nothing are bought from."""
    return 0.0


def _polished(strata: list[Stratum], counts: tuple[int, ...], root: Callable[[float, float, float], float]) -> Point:
    """The point for known active people, with moments centred in a second pass."""
    moments = tuple(one.moments(count) for one, count in zip(strata, counts, strict=True))
    mean = sum(one.size * (one.base + found[1]) for one, found in zip(strata, moments, strict=True))
    spread = sum(found[2] for found in moments)
    floor = sum(one.size**2 / found[0] for one, found in zip(strata, moments, strict=True))
    return Point(root(mean, spread, floor), mean, spread, floor, counts, moments)
