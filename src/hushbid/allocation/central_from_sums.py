"""The central optimum of a population that is only known through sums.

The problem of :mod:`hushbid.allocation.central` needs the people below a level ``τ`` only through their number, first
and second moment. Let ``h(a)`` be what it minimises and ``F(τ) = κ·G − 3·a^{1/3}``, which has the sign of ``h'`` where
the level is ``τ``. From sums at some levels, each interval between two of them is settled by one of four tests:

* ``F < 0`` throughout, as ``G`` and ``a`` rise with the level: ``κ·G(τ₂) < 3·a(τ₁)^{1/3}``;
* ``F > 0`` throughout: ``κ·G(τ₁) > 3·a(τ₂)^{1/3}``;
* nothing in it is good enough: ``1/U(τ₂) + κ·a(τ₁)^{2/3}`` exceeds a value that is attained elsewhere;
* ``F`` increases throughout, since ``F' > 0`` is ``κ·a^{2/3}·G² > Q``, and has one sign at both ends.

All minima lie in what is left (`bracket`). The tests leave room for rounded sums, and for any one person's cost being
raised or her staying away, so what is left also holds the answers that payments need. When every person in what is
left is known, and ``F`` increases there, the optimum is unique and `SummedPopulation` finds it, and its replies, with
the same formulas as in memory.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushbid.allocation.central import CUBE_ROOT_4, KAPPA, Optimum, Sums, _inside
from hushbid.allocation.central_replies import follow
from hushbid.allocation.lower_bounds import central_lower_bound_of_pieces
from hushbid.allocation.reply_rules import Replies
from hushbid.allocation.sums import ExactSums
from hushbid.arrays import FloatArray, IndexArray, IntArray

_SLACK = 1e-11
_STEP = 1.25


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """Sums over the people below each of some ascending levels, in normal form, with how far they may be off."""

    level: FloatArray
    """The levels."""

    mass: FloatArray
    """How many people lie below each."""

    first: FloatArray
    """The sum of their costs above ``origin``, at least."""

    second: FloatArray
    """The sum of the squares of their costs above ``origin``, at least."""

    rounding: FloatArray
    """By how much ``first`` may be too small."""

    origin: float
    """No cost is below this."""

    on_levels: bool = False
    """Whether everybody is exactly at a level, so that nobody is between two of them."""

    def below(self, most: float) -> "Levels":
        """The levels up to this one."""
        some = slice(int(self.level.searchsorted(most, side="right")))
        sums = {name: getattr(self, name)[some] for name in ("level", "mass", "first", "second", "rounding")}
        return Levels(**sums, origin=self.origin, on_levels=self.on_levels)

    def with_end(self) -> "Levels":
        """With one more level above everybody, past which ``h`` surely rises: ``a < m``, so ``κ·G ≥ 3·m^{1/3}``."""
        mass, mean = self.mass[-1], self.origin + (self.first[-1] + self.rounding[-1]) / self.mass[-1]
        top = (mean + 8.0 * np.cbrt(mean) / (KAPPA * max(mass - 1.0, 0.5)) + self.level[-1]) * 2.0
        return Levels(
            level=np.append(self.level, top),
            origin=self.origin,
            **{name: np.append(getattr(self, name), getattr(self, name)[-1]) for name in ("mass", "first", "second")},
            rounding=np.append(self.rounding, self.rounding[-1]),
            on_levels=self.on_levels,
        )

    def with_steps(self) -> "Levels":
        """With more levels where nobody is between two that are far apart, so that the tests there are sharp."""
        # gaps where nobody lives, in factors of _STEP
        t = self.level - self.origin
        empty = np.full(t.size - 1, True) if self.on_levels else self.mass[1:] == self.mass[:-1]
        start = np.maximum(t[:-1], t[1:] * 2.0**-40)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(empty & (self.mass[:-1] > 0.0), np.log(t[1:] / start) / math.log(_STEP), 0.0)
        extra = np.where(steps > 1.0, np.nan_to_num(steps), 0.0).astype(np.intp)
        # a geometric run of levels inside each, with the sums of its left end
        which = np.repeat(np.arange(extra.size), extra)
        number = np.arange(which.size) - np.repeat(np.cumsum(extra) - extra, extra)
        level = self.origin + start[which] * _STEP ** (number + (t[:-1][which] > 0.0))
        place = np.concatenate([np.arange(t.size), which])
        order = np.lexsort((place, np.concatenate([self.level, level])))
        return Levels(
            level=np.concatenate([self.level, level])[order],
            origin=self.origin,
            on_levels=self.on_levels,
            **{name: getattr(self, name)[place][order] for name in ("mass", "first", "second", "rounding")},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """Where all minima are, also if any one person's cost is raised."""

    low: float
    """No minimum has a lower level."""

    high: float
    """No minimum has a higher level."""

    below_low: float
    """How many people lie below ``low``."""

    below_high: float
    """How many people lie below ``high``."""

    one_basin: bool
    """Whether there is one minimum only, whoever's cost is raised."""

    parts: tuple[tuple[float, float], ...]
    """The intervals that are left, ascending and apart; all minima lie in them."""


def bracket(
    levels: Levels, *, variance_ratio: float = 1.0, within: Sequence[tuple[float, float]] | None = None
) -> Bracket:
    """The levels between which every minimum lies; ``variance_ratio`` is the smallest over the largest variance.

    ``within`` are intervals of which it is known already that all minima lie in them.
    """
    at = levels.with_end().with_steps()
    low = at.origin
    t = at.level - low
    # G at most, and at least, as the sums are rounded
    largest_gain = (at.mass * t - at.first) * (1.0 + _SLACK)
    gain = largest_gain - at.mass * t * (2.0 * _SLACK) - at.rounding
    least_gain = np.maximum(gain - t, 0.0)  # without any one person
    # a·G, and by how much rounding and one person's move can change it
    inner = at.first * t - at.second + low * (at.mass * t - at.first)
    blur = at.level * at.rounding + at.level * np.minimum(0.25 * at.level, t) + _SLACK * at.mass * t * at.level
    with np.errstate(divide="ignore", invalid="ignore"):
        a_low = np.nan_to_num((inner - blur) / largest_gain, nan=low, posinf=low, neginf=low)
        a_high = np.where(least_gain > 0.0, (inner + blur) / least_gain, np.inf)
    # a rises with the level: a bound at one level holds for all above, or all below
    a_low = np.maximum.accumulate(np.maximum(a_low, low))
    a_high = np.minimum.accumulate(np.minimum(a_high, at.level)[::-1])[::-1]
    best = _attained(at, gain, least_gain, a_high, variance_ratio)
    if variance_ratio < 1.0:  # every sum is off by this factor at most: only the top can be cut
        root = math.sqrt(best / KAPPA) if best < math.inf else math.inf
        enough = np.flatnonzero(KAPPA * variance_ratio * least_gain >= 3.0 * root)
        end = int(enough[0]) if enough.size else at.level.size - 1
        top = float(at.level[end])
        return Bracket(
            low=0.0, high=top, below_low=0.0, below_high=float(at.mass[end]), one_basin=False, parts=((0.0, top),)
        )
    # Q at most, one person moved
    spread = at.second + 2.0 * t * at.rounding - np.divide(at.first**2, np.maximum(at.mass, 1.0)) + t * t
    falling = KAPPA * largest_gain[1:] < 3.0 * np.cbrt(a_low[:-1])  # test 1: h falls throughout
    rising = KAPPA * least_gain[:-1] > 3.0 * np.cbrt(a_high[1:])  # test 2: h rises throughout
    # test 3: hopeless, more than is attained elsewhere
    with np.errstate(divide="ignore"):
        hopeless = 1.0 / at.mass[1:] + KAPPA * np.cbrt(a_low[:-1]) ** 2 > best
    # test 4: F increases throughout, and is below zero at the right end or above it at the left
    increasing = KAPPA * np.cbrt(a_low[:-1]) ** 2 * least_gain[:-1] ** 2 > spread[1:]
    below = KAPPA * largest_gain[1:] < 3.0 * np.cbrt(a_low[1:])
    above = KAPPA * least_gain[:-1] > 3.0 * np.cbrt(a_high[:-1])
    left = ~(falling | rising | hopeless | (increasing & (below | above)))
    if within is not None:
        left &= np.any([(at.level[:-1] < high) & (at.level[1:] > low) for low, high in within], axis=0)
    kept = np.flatnonzero(left)
    if kept.size == 0:  # rounding has excluded everything: nothing can be said
        ends = (low, float(at.level[-1]))
        return Bracket(
            low=ends[0], high=ends[1], below_low=0.0, below_high=float(at.mass[-1]), one_basin=False, parts=(ends,)
        )
    first, last = int(kept[0]), int(kept[-1]) + 1
    # runs of neighbouring intervals become one part
    starts = kept[np.append(True, np.diff(kept) > 1)]
    stops = kept[np.append(np.diff(kept) > 1, True)] + 1
    return Bracket(
        low=float(at.level[first]),
        high=float(at.level[last]),
        below_low=float(at.mass[first]),
        below_high=float(at.mass[last]),
        one_basin=bool(increasing[first:last].all()),
        parts=tuple(zip(at.level[starts].tolist(), at.level[stops].tolist(), strict=True)),
    )


def _attained(at: Levels, gain: FloatArray, least_gain: FloatArray, a_high: FloatArray, variance_ratio: float) -> float:
    """A value that the population attains without any one person, by sharing her weight among the others."""
    t = at.level - at.origin
    # Σ (τ − ψ)², with room for rounding; over G² it is g
    squares = at.mass * t * t - 2.0 * t * at.first + at.second + t * t * 1e-12 * at.mass
    with np.errstate(divide="ignore", invalid="ignore"):
        value = squares / (variance_ratio * least_gain**2) + KAPPA * np.cbrt(a_high) ** 2
    usable = (least_gain > 0.0) & (gain > 0.0)
    return float(value[usable].min(initial=math.inf)) * (1.0 + 1e-9)


@dataclass(frozen=True, slots=True)
class OptimalShares:
    """Everybody's weight in the estimate, from her cost."""

    scale: float
    """From costs to normal form."""

    optimum: Optimum

    def weights(self, costs: FloatArray) -> FloatArray:
        """The weights of people with these costs."""
        return self.optimum.weights(costs / self.scale - self.optimum.base, 1.0)


class SummedPopulation:
    """A population as exact sums below a window of costs, everybody in the window, and nobody who matters above."""

    def __init__(
        self,
        prefix: ExactSums,
        window: FloatArray,
        people: IntArray | None = None,
        *,
        lowest: float,
        ends: tuple[float, float],
        variance: float,
        error_weight: float,
    ) -> None:
        """``window`` holds the costs between ``ends``, and ``people`` how many have each of them, one unless given.

        ``lowest`` is the smallest cost of all.
        """
        self._unit, self.error_weight = variance, error_weight
        self.scale = error_weight * variance * math.sqrt(variance)
        order = np.argsort(window, kind="stable")
        self._prefix, self._window, self._lowest, self._ends = prefix, window[order], lowest, ends
        self._people = np.ones(window.size, dtype=np.int64) if people is None else people[order]
        self._sums = self._all_sums()
        size = self._sums.offset.size
        self.bracket = bracket(
            Levels(
                level=self._sums.base + self._sums.offset,
                mass=self._sums.total,
                first=self._sums.first,
                second=self._sums.second,
                rounding=np.zeros(size),
                origin=self._sums.base,
                on_levels=True,
            )
        )
        self.bought_from, self.optimum = self._best()

    def with_error_weight(self, error_weight: float) -> "SummedPopulation":
        """These people once more, with another error weight."""
        return SummedPopulation(
            self._prefix,
            self._window,
            self._people,
            lowest=self._lowest,
            ends=self._ends,
            variance=self._unit,
            error_weight=error_weight,
        )

    @property
    def is_settled(self) -> bool:
        """Whether the optimum is unique and in the window, whoever's cost is raised."""
        low, high = (end / self.scale for end in self._ends)
        inside = self.bracket.low >= low and self.bracket.high <= high
        return self.bracket.one_basin and inside and self.optimum.root > 0.0

    @property
    def level(self) -> float:
        """Below this cost people are bought from."""
        return (self.optimum.base + self.optimum.level) * self.scale

    @property
    def most_lost(self) -> float:
        """Nobody's privacy loss is larger, whoever asks for more or stays away."""
        return most_lost(self._prefix, lowest=self._lowest, ends=self._ends, variance=self._unit)

    @property
    def shares(self) -> OptimalShares:
        """Everybody's weight."""
        return OptimalShares(self.scale, self.optimum)

    def losses(self, costs: FloatArray) -> FloatArray:
        """The privacy losses of people with these costs."""
        return self.shares.weights(costs) * self.loss_per_weight

    @property
    def mse(self) -> float:
        """The mean squared error at the optimum."""
        return self._unit * (self.optimum.value - 2.0 * self.optimum.root**2 * (KAPPA / 3.0))

    @property
    def objective(self) -> float:
        """``error_weight·MSE + Σ cost·loss`` at the optimum."""
        return self.error_weight * self._unit * self.optimum.value

    @property
    def loss_per_weight(self) -> float:
        """``S = Σ ε``: a weight times this is a privacy loss."""
        return CUBE_ROOT_4 / self.optimum.root / math.sqrt(self._unit)

    def lower_bound(self) -> float:
        """At most the optimal objective: the best over the window's pieces, each bounded without solving it."""
        sums = self._sums
        bound = central_lower_bound_of_pieces(sums.base, sums.offset, sums.total, sums.first, sums.second)
        return self.error_weight * self._unit * bound

    def replies_for(self, costs: FloatArray) -> "SummedReplies":
        """The optimum as a function of the cost of somebody who is now at one of ``costs``."""
        return SummedReplies(self._sums, self.optimum, costs, self.scale, self._unit, self.error_weight)

    def _all_sums(self) -> Sums:
        """Entry 0 and 1: everybody below the window; then the window's people; last its end."""
        base, scale = self._lowest / self.scale, Fraction(self.scale)
        first, second = self._prefix.about(self._lowest)
        start = (float(self._prefix.count), float(first / scale), float(second / scale**2))
        inside = self._window / self.scale - base
        low, high = (end / self.scale - base for end in self._ends)
        offset = np.concatenate([[low, low], inside, [high]])
        mass = self._people.astype(np.float64)
        total = start[0] + np.concatenate([[0.0, 0.0], np.cumsum(mass), [mass.sum()]])
        moments: list[FloatArray] = []
        for before, terms in ((start[1], mass * inside), (start[2], mass * inside * inside)):
            sums = before + np.cumsum(terms)
            moments.append(np.concatenate([[before, before], sums, sums[-1:] if sums.size else [before]]))
        return Sums(base, offset, total, moments[0], moments[1], total * offset - moments[0])

    def _best(self) -> tuple[ExactSums, Optimum]:
        """The best minimum among the window's pieces, and the exact sums over the active people it is made from."""
        sums = self._sums
        # a minimum lies where h falls at a piece's left end and no more at its right
        falling = sums.falling()
        ends = np.append(~falling[1:], True)
        pieces: IndexArray = np.flatnonzero(falling & ends)
        if pieces.size == 0 or self._prefix.count + self._window.size == 0:
            return ExactSums({}), Optimum(math.inf, sums.base, math.inf, 0.0, 0.0, 0.0)
        best = min(pieces.tolist(), key=sums.best_inside)
        # entries 0 and 1 are not the window's: piece k has its first k − 1 people
        below = slice(0, max(best - 1, 0))
        active = self._prefix + ExactSums.of(self._window[below], self._people[below])
        # once more from exact sums: floating ones chose the piece, they do not make the answer
        first, second = active.about(self._lowest)
        total = active.count
        mean = float(first / total) / self.scale
        spread = float(second - first * first / total) / self.scale**2
        root, value = _inside(sums.base + mean, spread, float(total))
        return active, Optimum(value, sums.base, float(total), mean, spread, root)


def most_lost(prefix: ExactSums, *, lowest: float, ends: tuple[float, float], variance: float) -> float:
    """No loss is larger at any level between ``ends``, whoever of the people below stays away.

    With ``W = Σ ψ(τ − ψ)`` a loss is ``(τ − ψ)·√(2/(V·W))``; ``W`` rises with the level, and one person has at most a
    quarter of ``τ²`` of it.
    """
    low, high = ends
    first, second = (float(moment) for moment in prefix.about(lowest))
    t = low - lowest
    paid = lowest * (prefix.count * t - first) + (t * first - second) - 0.25 * low * low
    return (high - lowest) * math.sqrt(2.0 / (variance * paid)) if paid > 0.0 else math.inf


class SummedReplies:
    """How the optimum answers to the cost of each of some imagined people, who are part of the population."""

    def __init__(
        self, sums: Sums, best: Optimum, costs: FloatArray, scale: float, unit: float, error_weight: float
    ) -> None:
        self._sums, self._best, self._scale, self._unit, self._error_weight = sums, best, scale, unit, error_weight
        self._own = costs / scale - sums.base

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]``, not below her own (``inf``: were not there)."""
        value, loss, mse = follow(
            self._sums,
            (1, self._sums.offset.size),
            self._best,
            self._own[rows],
            None,
            costs / self._scale - self._sums.base,
        )
        return Replies(
            value * (self._error_weight * self._unit),
            loss / math.sqrt(self._unit),
            np.maximum(mse, 0.0) * self._unit,
        )
