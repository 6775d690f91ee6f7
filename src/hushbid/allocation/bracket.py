"""Between which ``T`` the optimum lies, of strata that are only known through sums; one mean is one stratum.

Sums of a stratum at some levels bound ``G_g`` and ``W_g`` between them too, since both are convex in the level: chords
from above, tangents from below. So for every ``T`` they bound the stratum's level, from both sides, and with it

    W(T) = Σ W_g(τ_g),      τ̄(T) = Σ λ_g τ_g,      M(T) = W'(T) = Σ λ_g·(mean cost of the active of g),

all of which rise with ``T``. An accuracy or a budget is reached at one ``T``. For a price the minima of ``Φ``, which
falls exactly where ``D(T) = T⁴ − 2W(T)`` is negative, are found between two ``T`` only if none of four tests excludes
it: ``Φ`` falls throughout, ``T₂⁴ < 2W(T₁)``; rises throughout, ``T₁⁴ > 2W(T₂)``; nothing is good enough,
``τ̄(T₂)/T₂ + √(2W(T₁))`` being above a value that is attained elsewhere; or ``D`` increases throughout,
``4T₁³ > 2M(T₂)``, with one sign at both ends.

The tests leave room for rounded sums, and for any one person's cost being raised or her staying away. At a given ``T``
that raises her stratum's level, at most to where ``G_g(τ) − (τ − ψ_1) = λT``; at a given level she takes at most
``o(τ − o)`` from ``W`` by leaving her cost ``o``, and adds at most ``τ²/4`` at another. With unequal variances a person
counts for a mass between ``evenness`` and 1, which widens every bound.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.central_problem import NormalForm
from hushbid.allocation.histogram import Levels
from hushbid.allocation.targets import Target
from hushbid.allocation.windows import Interval
from hushbid.common.arrays import BoolArray, FloatArray

_SLACK = 1e-11
_STEP = 1.1
_MOST_KEYS = 1 << 12
_BEYOND = 2.0**40
"""So many times the last key is looked at too, where everybody is bought from, and so little of the first one."""


class LevelBounds:
    """What the sums of one stratum at some levels, in normal form, say about ``G`` and ``W`` at every level."""

    def __init__(self, sums: Levels, size: float, *, complete: bool, dearest: float, evenness: float = 1.0) -> None:
        """``complete`` says whether nobody is above the last level; nobody's cost is above ``dearest``.

        ``evenness`` is the smallest variance over the largest.
        """
        first = sums.level[:1] > sums.origin  # the chord from where nobody is yet
        level, mass, moment, square, rounding = (
            np.append(np.zeros(first.sum()) + start, one)
            for start, one in zip(
                (sums.origin, 0.0, 0.0, 0.0, 0.0),
                (sums.level, sums.mass, sums.first, sums.second, sums.rounding),
                strict=True,
            )
        )
        t = level - sums.origin
        blur = rounding + _SLACK * mass * t
        gain = mass * t - moment
        paid = sums.origin * gain + (t * moment - square)
        self.size, self.origin, self._complete = size, sums.origin, complete
        self._dearest, self._evenness = dearest, evenness
        self._level, self._mass, self._sum = level, mass, sums.origin * mass + moment
        self._rounding = rounding
        # at most and at least
        self._gains = np.maximum.accumulate(np.maximum(gain + _SLACK * mass * t, 0.0)), evenness * (gain - blur)
        self._paid = np.maximum(paid + level * blur, 0.0), evenness * np.maximum(paid - level * blur, 0.0)

    @property
    def keys(self) -> FloatArray:
        """``T`` at the levels."""
        return np.asarray(self._gains[0] / self.size)

    @property
    def end(self) -> float:
        """The last level that is known."""
        return float(self._level[-1])

    def lowest(self, at: FloatArray) -> FloatArray:
        """The level at ``T`` is not below this."""
        most, wanted = self._gains[0], self.size * at
        level = np.interp(wanted, most, self._level)
        if self._complete:
            level = np.where(wanted > most[-1], self.end + (wanted - most[-1]) / self._mass[-1], level)
        return np.asarray(level)

    def highest(self, at: FloatArray, *, without_one: bool) -> FloatArray:
        """The level at ``T`` is not above this; ``without_one``: also if anybody of the stratum stays away."""
        t = self._level - self.origin
        least = np.maximum.accumulate(self._gains[1] - (t if without_one else 0.0))
        slope = self._evenness * self._mass - (1.0 if without_one else 0.0)
        wanted = self.size * at
        j = least.searchsorted(wanted)
        above = np.append(self._level, math.inf)[j]
        before = np.maximum(j - 1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            tangent = self._level[before] + np.maximum(wanted - least[before], 0.0) / slope[before]
        tangent = np.where(slope[before] > 0.0, tangent, math.inf)
        return np.asarray(np.minimum(above, tangent))

    def most_paid(self, level: FloatArray) -> FloatArray:
        """``W`` at a level is not above this."""
        with np.errstate(invalid="ignore"):
            beyond = self._paid[0][-1] + (self._sum[-1] + self._rounding[-1]) * (level - self.end)
            chord = np.interp(level, self._level, self._paid[0])
        if not self._complete:
            beyond = np.full(level.shape, math.inf)
        return np.where(level > self.end, beyond, chord)

    def least_paid(self, level: FloatArray) -> FloatArray:
        """``W`` at a level is not below this."""
        j = np.maximum(self._level.searchsorted(level, side="right") - 1, 0)
        slope = self._evenness * self._sum[j] * (1.0 - _SLACK)
        return np.asarray(self._paid[1][j] + slope * np.maximum(level - self._level[j], 0.0))

    def mean(self, level: FloatArray) -> FloatArray:
        """The mean cost of those below a level is not above this, one of them moved below it or away."""
        j = np.minimum(self._level.searchsorted(level), self._level.size - 1)
        sure = self._mass[np.maximum(self._level.searchsorted(level, side="right") - 1, 0)]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (self._sum[j] + self._rounding[j]) / self._mass[j] * (sure / (sure - 1.0)) + level / sure
        known = (sure > 1.0) & (self._complete | (level <= self.end)) & (self._evenness == 1.0)
        return np.where(known, mean * (1.0 + _SLACK), math.inf)

    def taken(self, level: FloatArray) -> FloatArray:
        """What one person has at most of ``W``."""
        cost = np.minimum(0.5 * level, self._dearest)
        return np.asarray(cost * (level - cost))

    def people(self, low: float, high: float) -> float:
        """At most so many are between two levels."""
        first = max(int(self._level.searchsorted(low, side="right")) - 1, 0)
        last = min(int(self._level.searchsorted(high)), self._level.size - 1)
        return float(self._mass[last] - self._mass[first])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """Where the optimum is, also if any one person's cost is raised."""

    parts: tuple[Interval, ...]
    """``T`` is in one of these intervals, ascending and apart; the last end is infinite where nothing can be said."""

    one_basin: bool  # whether there is one minimum only, whoever's cost is raised
    intervals: tuple[tuple[Interval, ...], ...]
    """In which intervals each stratum's level lies, in normal form, one for each part."""

    people: float  # at most so many people are in them
    below: float  # at most so many people are below the highest ones
    most_lost: float  # nobody's privacy loss is larger, whoever asks for more or stays away

    @classmethod
    def unknown(cls, strata: int, people: float) -> "Bracket":
        """Nothing can be said about so many people."""
        nowhere = ((0.0, math.inf),)
        return cls(
            parts=nowhere,
            one_basin=False,
            intervals=(nowhere,) * strata,
            people=people,
            below=people,
            most_lost=math.inf,
        )

    @property
    def low(self) -> float:
        """``T`` is not below this."""
        return self.parts[0][0]

    @property
    def high(self) -> float:
        """``T`` is not above this; infinite where nothing can be said."""
        return self.parts[-1][1]

    @property
    def windows(self) -> tuple[Interval, ...]:
        """Between which levels each stratum's lies, in normal form."""
        return tuple((some[0][0], some[-1][1]) for some in self.intervals)


def bracket(
    form: NormalForm, strata: Sequence[LevelBounds], within: Sequence[Interval] = ((0.0, math.inf),)
) -> Bracket:
    """Return where the goal's ``T`` lies; ``within`` are intervals in which it is known to be already."""
    with np.errstate(over="ignore", invalid="ignore"):
        grid = np.unique(np.concatenate([_grid(strata, one) for one in within]))
        if form.target.unimodal:
            parts = [_for_level(form.target, _Bounds(strata, grid), (within[0][0], within[-1][1]))]
        else:
            parts = _for_price(_Bounds(strata, grid), within)
        ends = _Bounds(strata, np.minimum(np.ravel(parts), 1e300))
        steep = 4.0 * parts[0][0] ** 3 > 2.0 * ends.mean[-1] * (1.0 + 1e-9)
        most_lost = _most_lost(form, strata, ends)
    if not parts[-1][1] < math.inf or not all(moved[-1] < math.inf for moved in ends.moved):
        parts[-1] = parts[-1][0], math.inf
        for moved in ends.moved:
            moved[-1] = math.inf
    intervals = tuple(
        tuple((float(lows[2 * j]), float(moved[2 * j + 1])) for j in range(len(parts)))
        for lows, moved in zip(ends.lows, ends.moved, strict=True)
    )
    return Bracket(
        parts=tuple(parts),
        one_basin=form.target.unimodal or bool(steep),
        intervals=intervals,
        people=sum(one.people(*ends) for one, some in zip(strata, intervals, strict=True) for ends in some),
        below=sum(one.people(one.origin, some[-1][1]) for one, some in zip(strata, intervals, strict=True)),
        most_lost=most_lost,
    )


def _most_lost(form: NormalForm, strata: Sequence[LevelBounds], ends: "_Bounds") -> float:
    """A loss is ``(τ − ψ)/(σ√V)``, and ``σ`` rises with ``T``."""
    step = float(form.target.step(ends.at[:1], ends.least_paid[:1].clip(0.0))[0])
    if not step > 0.0:
        return math.inf
    reach = max(float(moved[-1]) - one.origin for one, moved in zip(strata, ends.moved, strict=True))
    return reach / (step * math.sqrt(form.unit)) if reach < math.inf else math.inf


def _grid(strata: Sequence[LevelBounds], within: Interval) -> FloatArray:
    """``T`` at which to look: at keys, not too many of them, and in steps where there are none."""
    low, high = within
    keys = np.unique(np.concatenate([one.keys for one in strata]))
    positive = keys[(keys > 1e-300) & (keys < 1e300)]
    first, last = (float(positive[0]), float(positive[-1])) if positive.size else (1.0, 1.0)
    low, high = low if low > 0.0 else first / _BEYOND, high if high < math.inf else last * _BEYOND
    steps = np.geomspace(low, high, int(math.log(high / low) / math.log(_STEP)) + 2)
    keys = keys[(keys > low) & (keys < high)]
    keys = keys[:: max(-(-keys.size // _MOST_KEYS), 1)]
    return np.unique(np.concatenate([[low, high], steps.clip(low, high), keys]))


class _Bounds:
    """What the strata say together at each of some ``T``; with one person moved where that matters."""

    def __init__(self, strata: Sequence[LevelBounds], at: FloatArray) -> None:
        self.at = at
        self.lows = [one.lowest(at) for one in strata]
        highs = [one.highest(at, without_one=False) for one in strata]
        self.moved = [
            np.maximum(one.highest(at, without_one=True), high) for one, high in zip(strata, highs, strict=True)
        ]
        sizes = [one.size for one in strata]
        self.base = sum(one.size * one.origin for one in strata)
        self.least_level = _sum(size * low for size, low in zip(sizes, self.lows, strict=True))
        self.most_level = _sum(size * high for size, high in zip(sizes, highs, strict=True)) + _largest(
            size * (moved - high) for size, moved, high in zip(sizes, self.moved, highs, strict=True)
        )
        paid = [one.most_paid(high) for one, high in zip(strata, highs, strict=True)]
        self.most_paid = _sum(paid) + _largest(
            one.most_paid(moved) - there + 0.25 * moved * moved
            for one, moved, there in zip(strata, self.moved, paid, strict=True)
        )
        self.least_paid = _sum(one.least_paid(low) for one, low in zip(strata, self.lows, strict=True)) - _largest(
            one.taken(moved) for one, moved in zip(strata, self.moved, strict=True)
        )
        self.mean = _sum(size * one.mean(moved) for size, one, moved in zip(sizes, strata, self.moved, strict=True))


def _sum(parts: Iterable[FloatArray]) -> FloatArray:
    return np.asarray(np.sum(list(parts), axis=0))


def _largest(parts: Iterable[FloatArray]) -> FloatArray:
    """The largest of each, infinite where one is no number: a difference of two that are infinite."""
    found = np.array(list(parts))
    return np.asarray(np.max(np.where(np.isnan(found), math.inf, found), axis=0))


def _for_level(target: Target, at: _Bounds, within: Interval) -> Interval:
    """The last ``T`` that surely is too low, and the first that surely is not."""
    too_low = target.excess(at.at, at.least_level / (1.0 + _SLACK), at.most_paid) < 0.0
    enough = target.excess(at.at, at.most_level / (1.0 - _SLACK), at.least_paid) >= 0.0
    low = max([within[0], *at.at[too_low].tolist()])
    return low, min([within[1], *at.at[enough & (at.at >= low)].tolist()])


def _for_price(at: _Bounds, within: Sequence[Interval]) -> list[Interval]:
    """What the four tests leave."""
    t = at.at
    attained = at.most_level / t + np.sqrt(2.0 * at.most_paid)
    best = float(np.min(np.where(np.isnan(attained), math.inf, attained))) * (1.0 + 1e-9)
    fourth, least, most = t**4, 2.0 * at.least_paid * (1.0 - _SLACK), 2.0 * at.most_paid * (1.0 + _SLACK)
    falls: BoolArray = fourth[1:] < least[:-1]
    rises = fourth[:-1] > most[1:]
    hopeless = at.least_level[1:] / t[1:] + np.sqrt(np.maximum(least[:-1], 0.0)) > best
    increasing = 4.0 * t[:-1] ** 3 > 2.0 * at.mean[1:] * (1.0 + 1e-9)
    one_sign = (fourth[1:] < least[1:]) | (fourth[:-1] > most[:-1])
    inside = np.any([(t[:-1] >= low) & (t[1:] <= high) for low, high in within], axis=0)
    kept = np.flatnonzero(inside & ~(falls | rises | hopeless | (increasing & one_sign)))
    low, high = within[0][0], within[-1][1]
    if kept.size == 0:  # rounding has excluded everything: nothing can be said
        return [(low, math.inf)]
    # runs of neighbouring intervals become one part
    gaps = np.diff(kept) > 1
    starts, stops = t[kept[np.append(True, gaps)]], t[kept[np.append(gaps, True)] + 1]
    # below the first T: hopeless, or Φ falls as W is at least base·T
    if kept[0] == 0 or not (low > 0.0 or at.least_level[0] / t[0] > best or t[0] ** 3 < 2.0 * at.base * (1.0 - _SLACK)):
        starts[0] = low
    # beyond the last: at an optimum three times T²/2 is at most the value
    if not (high < math.inf or math.sqrt(best / 1.5) <= t[-1]):
        stops[-1] = math.inf
    return list(zip(starts.tolist(), stops.tolist(), strict=True))
