"""Between which ``T`` the optimum for a contrast lies, of strata that are only known through sums.

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
``o(τ − o)`` from ``W`` by leaving her cost ``o``, and adds at most ``τ²/4`` at another.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.central_from_sums import Levels
from hushbid.allocation.contrast.problem import Scaled
from hushbid.allocation.goals import Accuracy, Price
from hushbid.arrays import BoolArray, FloatArray

_SLACK = 1e-11
_STEP = 1.1
_MOST_KEYS = 1 << 12
_BEYOND = 2.0**40
"""So many times the last key is looked at too: there everybody is bought from."""


class LevelBounds:
    """What the sums of one stratum at some levels, in normal form, say about ``G`` and ``W`` at every level."""

    def __init__(self, sums: Levels, size: float, *, complete: bool, dearest: float) -> None:
        """``complete`` says whether nobody is above the last level; nobody's cost is above ``dearest``."""
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
        self._dearest = dearest
        self._level, self._mass, self._sum = level, mass, sums.origin * mass + moment
        self._rounding = rounding
        # at most and at least
        self._gains = np.maximum.accumulate(np.maximum(gain + _SLACK * mass * t, 0.0)), gain - blur
        self._paid = np.maximum(paid + level * blur, 0.0), np.maximum(paid - level * blur, 0.0)

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
        slope = self._mass - (1.0 if without_one else 0.0)
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
        return np.asarray(self._paid[1][j] + self._sum[j] * np.maximum(level - self._level[j], 0.0) * (1.0 - _SLACK))

    def mean(self, level: FloatArray) -> FloatArray:
        """The mean cost of those below a level is not above this, one of them moved below it or away."""
        j = np.minimum(self._level.searchsorted(level), self._level.size - 1)
        sure = self._mass[np.maximum(self._level.searchsorted(level, side="right") - 1, 0)]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (self._sum[j] + self._rounding[j]) / self._mass[j] * (sure / (sure - 1.0)) + level / sure
        known = (sure > 1.0) & (self._complete | (level <= self.end))
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
class ContrastBracket:
    """Where the optimum is, also if any one person's cost is raised."""

    low: float
    """``T`` is not below this."""

    high: float
    """``T`` is not above this; infinite where nothing can be said."""

    one_basin: bool
    """Whether there is one minimum only, whoever's cost is raised."""

    windows: tuple[tuple[float, float], ...]
    """Between which levels each stratum's lies, in normal form."""

    people: float
    """At most so many people are between them."""

    below: float
    """At most so many people are below the higher ones."""


def bracket_contrast(
    scaled: Scaled, strata: Sequence[LevelBounds], within: tuple[float, float] = (0.0, math.inf)
) -> ContrastBracket:
    """Where the goal's ``T`` lies; ``within`` says what is known already."""
    with np.errstate(over="ignore", invalid="ignore"):
        at = _grid(strata, within)
        bounds = _Bounds(strata, at)
        if isinstance(scaled.goal, Price):
            low, high = _for_price(bounds, within)
        else:
            low, high = _for_level(scaled, bounds, within)
        ends = _Bounds(strata, np.array([low, min(high, 1e300)]))
        one_basin = not isinstance(scaled.goal, Price) or bool(4.0 * low**3 > 2.0 * ends.mean[1] * (1.0 + 1e-9))
    windows = [
        (float(lows[0]), float(highs[1]) if high < math.inf else math.inf)
        for lows, highs in zip(ends.lows, ends.moved, strict=True)
    ]
    return ContrastBracket(
        low=low,
        high=high if all(last < math.inf for _, last in windows) else math.inf,
        one_basin=one_basin,
        windows=tuple(windows),
        people=sum(one.people(*ends) for one, ends in zip(strata, windows, strict=True)),
        below=sum(one.people(one.origin, last) for one, (_, last) in zip(strata, windows, strict=True)),
    )


def _grid(strata: Sequence[LevelBounds], within: tuple[float, float]) -> FloatArray:
    """``T`` at which to look: at keys, not too many of them, and in steps where there are none."""
    low, high = within
    keys = np.unique(np.concatenate([one.keys for one in strata]))
    last = float(keys[-1]) if keys[-1] > 0.0 else 1.0
    low, high = low if low > 0.0 else last / _BEYOND, high if high < math.inf else last * _BEYOND
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


def _for_level(scaled: Scaled, at: _Bounds, within: tuple[float, float]) -> tuple[float, float]:
    """The last ``T`` that surely is too low, and the first that surely is not."""
    if isinstance(scaled.goal, Accuracy):
        wanted = scaled.ratio * at.at
        too_low, enough = wanted * (1.0 + _SLACK) < at.least_level, wanted * (1.0 - _SLACK) >= at.most_level
    else:
        too_low, enough = at.most_paid < scaled.half, at.least_paid >= scaled.half
    low = max([within[0], *at.at[too_low].tolist()])
    high = min([within[1], *at.at[enough].tolist()])
    return low, high


def _for_price(at: _Bounds, within: tuple[float, float]) -> tuple[float, float]:
    """The ends of what the four tests leave."""
    t = at.at
    attained = at.most_level / t + np.sqrt(2.0 * at.most_paid)
    best = float(np.min(np.where(np.isnan(attained), math.inf, attained))) * (1.0 + 1e-9)
    fourth, least, most = t**4, 2.0 * at.least_paid * (1.0 - _SLACK), 2.0 * at.most_paid * (1.0 + _SLACK)
    falls: BoolArray = fourth[1:] < least[:-1]
    rises = fourth[:-1] > most[1:]
    hopeless = at.least_level[1:] / t[1:] + np.sqrt(np.maximum(least[:-1], 0.0)) > best
    increasing = 4.0 * t[:-1] ** 3 > 2.0 * at.mean[1:] * (1.0 + 1e-9)
    one_sign = (fourth[1:] < least[1:]) | (fourth[:-1] > most[:-1])
    kept = np.flatnonzero(~(falls | rises | hopeless | (increasing & one_sign)))
    if kept.size == 0:  # rounding has excluded everything: nothing can be said
        return within[0], math.inf
    low, high = within
    # below the first T: hopeless, or Φ falls as W is at least base·T
    if kept[0] > 0 and (low > 0.0 or at.least_level[0] / t[0] > best or t[0] ** 3 < 2.0 * at.base * (1.0 - _SLACK)):
        low = float(t[kept[0]])
    # beyond the last: at an optimum three times T²/2 is at most the value
    if high < math.inf or math.sqrt(best / 1.5) <= t[-1]:
        high = float(t[kept[-1] + 1])
    return low, high
