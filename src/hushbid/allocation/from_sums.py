"""The optimum of strata that are known through exact sums, and through everybody near their water levels.

Of each stratum the people below a window of costs are exact sums; those inside are listed; those above do not matter,
whoever asks for more or stays away (:mod:`hushbid.allocation.bracket`). One mean is one stratum. For the formulas of
:mod:`hushbid.allocation.pieces` the sums of the people below are as good as they are: two imagined people, one
at the lowest cost, with the same number, mean and second moment. Who is active is found from these; the answer is made
of exact sums, the same to the last bit in whatever batches they were added up.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from hushbid.allocation.bracket import Bracket, LevelBounds, bracket
from hushbid.allocation.central_bounds import GRID, least_along_path
from hushbid.allocation.central_problem import NormalForm
from hushbid.allocation.exact_sums import ExactSums
from hushbid.allocation.histogram import Levels
from hushbid.allocation.pieces import Pieces, Stratum
from hushbid.allocation.windows import Interval
from hushbid.common.arrays import FloatArray, IndexArray, IntArray

_SLACK = 1e-11


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SummedStratum:
    """The people of one stratum."""

    below: ExactSums  # those below the window
    costs: FloatArray  # the costs in the window, ascending, each once
    people: IntArray  # how many have each of them
    lowest: float  # the smallest cost of the stratum
    dearest: float  # nobody's cost is above this
    window: Interval  # between which costs everybody is listed

    def levels(self, scale: float) -> Levels:
        """Sums at the window's ends, and at every cost in it, in normal form."""
        before, base = self._before(scale), self.lowest / scale
        low, high = (max(end, self.lowest) for end in self.window)
        offset, mass = (self.costs - self.lowest) / scale, self.people.astype(np.float64)
        sums = []
        for start, terms in zip(before, (mass, mass * offset, mass * offset * offset), strict=True):
            after = start + np.cumsum(terms)
            sums.append(np.concatenate([[start], after, after[-1:] if after.size else [start]]))
        level = base + np.concatenate([[(low - self.lowest) / scale], offset, [(high - self.lowest) / scale]])
        return Levels(
            level=level, mass=sums[0], first=sums[1], second=sums[2], rounding=np.zeros(level.size), origin=base
        )

    def bounds(self, scale: float, size: float) -> LevelBounds:
        """What is known of ``G`` and ``W``."""
        complete = self.window[1] >= self.dearest
        return LevelBounds(self.levels(scale), size, complete=complete, dearest=self.dearest / scale)

    def imagined(self, scale: float, size: float) -> Stratum:
        """The stratum, those below the window as two people; where several have one cost, one of them for herself."""
        several = np.flatnonzero(self.people > 1)
        inside = np.insert(self.costs, several + 1, self.costs[several])
        mass = np.insert(self.people, several + 1, 1).astype(np.float64)
        mass[several + np.arange(several.size)] -= 1.0
        offset, weights = self._atoms(scale)
        offset = np.append(offset, (inside - self.lowest) / scale)
        offset[:2] = np.minimum(offset[:2], offset[min(2, offset.size - 1)])
        mass = np.append(weights, mass)
        return Stratum.from_offsets(np.arange(offset.size), size, self.lowest / scale, offset, mass)

    def _atoms(self, scale: float) -> tuple[FloatArray, FloatArray]:
        """Two people at offsets, the first 0, with the sums of everybody below the window; none if nobody is."""
        count, first, second = self._before(scale)
        if count == 0.0:
            return np.zeros(0), np.zeros(0)
        mean = first / count
        spread = max(second / count - mean * mean, 0.0)
        if not mean > 0.0 or not spread > 0.0:
            return np.array([mean, mean]), np.array([0.5 * count, 0.5 * count])
        away = spread / mean
        share = away / (away + mean)
        return np.array([0.0, mean + away]), np.array([count * share, count * (1.0 - share)])

    def _before(self, scale: float) -> tuple[float, float, float]:
        first, second = self.below.about(self.lowest)
        exact = Fraction(scale)
        return float(self.below.count), float(first / exact), float(second / exact**2)


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """The shares in the estimate of people, from their costs; those of each stratum add up to its λ."""

    lowest: FloatArray  # the lowest cost of each stratum
    equal: FloatArray  # λ/U
    mean: FloatArray  # of the active, counted from the lowest cost, in normal form
    scale: float
    at: float  # T

    def weights(self, costs: FloatArray, codes: IntArray | IndexArray) -> FloatArray:
        """``u(τ − ψ)⁺/T`` of people with these costs in these strata, written so that nothing cancels."""
        share: FloatArray = costs - self.lowest.take(codes)
        share /= -self.scale
        share += self.mean.take(codes)
        share /= self.at
        share += self.equal.take(codes)
        return np.maximum(share, 0.0, out=share)


class SummedOptimum:
    """All strata, and the point of their frontier that the goal chooses."""

    def __init__(self, form: NormalForm, strata: Sequence[SummedStratum], within: Interval) -> None:
        """``within`` are the ends between which ``T`` is known to be, whoever's cost is raised."""
        self.form, self.strata, self._within = form, tuple(strata), within
        sizes = form.sizes.tolist()
        with np.errstate(over="ignore", invalid="ignore"):
            self.people = [one.imagined(form.scale, size) for one, size in zip(strata, sizes, strict=True)]
            self.pieces = Pieces.of(self.people)
        self._solve()

    @cached_property
    def bracket(self) -> Bracket:
        """Where ``T`` is, whoever's cost is raised, from everybody in the windows."""
        bounds = [one.bounds(self.form.scale, size) for one, size in zip(self.strata, self.form.sizes, strict=True)]
        return bracket(self.form, bounds, [self._within])

    @property
    def is_settled(self) -> bool:
        """Whether the optimum is unique and every level in its window, whoever's cost is raised."""
        if not 0.0 < self.at < math.inf or not self.bracket.high < math.inf:
            return False
        # zero-cost people alone, at T = 0, must not be enough
        if not self.bracket.low > 0.0 and min(one.lowest for one in self.strata) == 0.0:
            return False
        scale = self.form.scale
        inside = all(
            (one.window[0] <= low * scale * (1.0 + 1e-12) or one.window[0] <= one.lowest)
            and high * scale <= one.window[1] * (1.0 + 1e-12)
            for one, (low, high) in zip(self.strata, self.bracket.windows, strict=True)
        )
        return inside and self.bracket.one_basin and self.bracket.low <= self.at <= self.bracket.high

    def _solve(self) -> None:
        """``T`` from exact sums; floating ones chose who is active, they do not make the answer."""
        counts = self._counts()
        self.moments: list[tuple[float, float, float]] = []
        self.counts, self.active = counts, 0
        mean = spread = floor = Fraction(0)
        scale = Fraction(self.form.scale)
        for one, stratum, count in zip(self.strata, self.people, counts, strict=True):
            sums = self._sums_of(one, stratum, count)
            total = sums.count
            if total == 0:
                self.at = math.inf
                return
            first, second = sums.about(one.lowest)
            size = Fraction(stratum.size)
            own, around = first / total / scale, (second - first * first / total) / scale**2
            mean += size * (Fraction(one.lowest) / scale + own)
            spread += around
            floor += size * size / total
            self.active += total
            self.moments.append((float(total), float(own), float(around)))
        self.mean, self.spread, self.floor = float(mean), float(spread), float(floor)
        self.at = self.form.target.exact_root(mean, spread, floor)
        if 0.0 < self.at < math.inf:
            self.paid = float(mean * Fraction(self.at) - spread)

    def _counts(self) -> list[int]:
        """How many entries of each stratum are active: the piece that ``T`` lies in."""
        pieces, form = self.pieces, self.form
        with np.errstate(over="ignore", invalid="ignore"):
            level = pieces.mean + pieces.floor * pieces.key
            passed = form.target.excess(pieces.key, level, pieces.paid) > 0.0
        # below the first T the pieces are those of imagined people
        passed &= pieces.key > self._within[0]
        piece = int(np.argmax(passed)) - 1 if passed.any() else passed.size - 1
        start = float(pieces.key[max(piece, 0)])
        return [int(one.key.searchsorted(start, side="right")) for one in self.people]

    def _sums_of(self, one: SummedStratum, stratum: Stratum, count: int) -> ExactSums:
        """The exact sums of the first so many entries; those below the window are all active."""
        imagined = stratum.offset.size - int(one.costs.size + np.count_nonzero(one.people > 1))
        mass = stratum.mass[imagined:count]
        # two entries are one cost
        places = np.repeat(np.arange(one.costs.size), np.where(one.people > 1, 2, 1))[: mass.size]
        people = np.bincount(places, mass, minlength=0).astype(np.int64)
        return one.below + ExactSums.of(one.costs[: people.size], people)

    # -- what it comes to ----------------------------------------------------------------------------------------------

    @property
    def step(self) -> float:
        """``σ``, in normal units."""
        return float(self.form.target.step(np.asarray(self.at), np.asarray(self.paid)))

    @property
    def strength(self) -> float:
        """``ηΛ = Σ ε``: a share times this is a privacy loss."""
        return self.at / self.step / math.sqrt(self.form.unit)

    @property
    def mse(self) -> float:
        """The mean squared error."""
        return float(self.form.target.reported_error(np.asarray(self.form.factor * (self.floor + self.mean / self.at))))

    @property
    def expense(self) -> float:
        """``Σ cost·loss``."""
        return self.form.money * 2.0 * self.step

    @property
    def objective(self) -> float:
        """What was minimised."""
        return self.form.target.objective(self.mse, self.expense)

    @property
    def squared_weights(self) -> float:
        """``Σ ω²``."""
        return self.form.factor / self.form.unit * (self.floor + self.spread / self.at**2)

    def level(self, stratum: int) -> float:
        """Below this cost people of the stratum are bought from."""
        one, (total, mean, _) = self.strata[stratum], self.moments[stratum]
        return one.lowest + (mean + float(self.form.sizes[stratum]) * self.at / total) * self.form.scale

    @cached_property
    def shares(self) -> Shares:
        """The shares of everybody."""
        total, mean, _ = np.array(self.moments).T
        lowest = np.array([one.lowest for one in self.strata])
        return Shares(lowest, self.form.sizes / total, mean, self.form.scale, self.at)

    def losses(self, stratum: int, costs: FloatArray) -> FloatArray:
        """The privacy losses of people of the stratum with these costs."""
        return self.shares.weights(costs, np.array([stratum])) * self.strength

    @property
    def largest_loss(self) -> float:
        """The largest privacy loss of all."""
        return max(float(self.losses(stratum, np.array([one.lowest]))[0]) for stratum, one in enumerate(self.strata))

    def lower_bound(self) -> float:
        """At most the optimal objective: along the path between the ends, or the dual bound at this ``T``."""
        target = self.form.target
        if target.unimodal:
            bound = target.dual_bound(self.mean + self.floor * self.at, self.floor * self.at**2 + self.spread)
        else:
            grid = np.geomspace(self.bracket.low, self.bracket.high, GRID)
            attained = self.floor + self.mean / self.at + 2.0 * self.step
            bound = float(least_along_path(self.pieces, grid, attained=attained, at_zero=math.nan).bound[0])
        return float(self.form.objective(np.asarray(bound))) * (1.0 - _SLACK)
