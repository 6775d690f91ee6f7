"""The level for a given error or expense, of a population that is only known through sums.

The equations of :mod:`hushbid.allocation.levels` need the people below a level only through their number, first and
second moment, and each has one root. So sums at some levels bracket it, and with room for one person's cost being
raised, or her staying away, they bracket every level that payments ask about (`bracket_level`): a person takes at most
``τ − ψ_1`` from ``G``, and moves ``W`` by at most ``τ²/4``. When everybody between the levels is known, the level
follows from exact sums, the same to the last bit in whatever batches they were added up (`SummedLevel`).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushbid.allocation.central_from_sums import Bracket, Levels, most_lost
from hushbid.allocation.goals import Accuracy, Goal
from hushbid.allocation.level_replies import Answer, LevelReplies, _Pairs
from hushbid.allocation.levels import Buyable, Equation
from hushbid.allocation.lower_bounds import error_at_level, expense_at_level
from hushbid.allocation.sums import ExactSums
from hushbid.arrays import BoolArray, FloatArray, IntArray

_SLACK = 1e-11


@dataclass(frozen=True, slots=True)
class LevelShares:
    """Everybody's weight in the estimate, from her cost."""

    base: float
    """The smallest cost."""

    level: float
    """Counted from ``base``: people below this are bought from."""

    gain: float
    """``G``: the sum of all distances to the level."""

    def weights(self, costs: FloatArray) -> FloatArray:
        """The weights of people with these costs."""
        share: FloatArray = np.maximum(self.level - (costs - self.base), 0.0) / self.gain
        return share


def bracket_level(levels: Levels, goal: Goal, *, variance: tuple[float, float], dearest: float) -> Bracket:
    """The levels between which the answer lies, whoever's cost is raised; ``variance`` the smallest and the largest.

    With unequal variances only the upper one is known; it is infinite where somebody cannot be done without. Nobody's
    cost is above ``dearest``.
    """
    known = float(levels.level[-1])
    if known >= dearest:
        levels = _with_end(levels, goal, variance)
    not_yet, surely = _tests(levels, goal, variance, dearest)
    below, above = np.flatnonzero(not_yet), np.flatnonzero(surely)
    low, below_low = levels.origin, 0.0
    if below.size and variance[0] == variance[1]:
        low, below_low = float(levels.level[below[-1]]), float(levels.mass[below[-1]])
    high, below_high = math.inf, float(levels.mass[-1])
    if above.size:
        high, below_high = float(levels.level[above[0]]), float(levels.mass[above[0]])
    return Bracket(
        low=low,
        high=high,
        below_low=below_low,
        below_high=below_high,
        one_basin=True,
        parts=((min(low, known), max(min(high, known), min(low, known))),),
    )


def _with_end(at: Levels, goal: Goal, variance: tuple[float, float]) -> Levels:
    """With one more level, above everybody, that is surely enough without any one person, if there is one."""
    smallest, largest = variance
    mass, first, second, top = (float(one[-1]) for one in (at.mass, at.first + at.rounding, at.second, at.level))
    if isinstance(goal, Accuracy):
        square = goal.number**2
        above, slope = at.origin + square * first / largest, square * (mass / largest - 1.0 / smallest) - 1.0
    else:
        paid, squares = at.origin * mass + float(at.first[-1]), at.origin * first + second + 2.0 * top * at.rounding[-1]
        above, slope = 0.5 * goal.number**2 + squares / largest, paid / largest - top / smallest
    if not slope > 0.0:
        return at
    end = max(2.0 * top, at.origin + 2.0 * above / slope)
    return Levels(
        level=np.append(at.level, end),
        mass=np.append(at.mass, at.mass[-1]),
        first=np.append(at.first, at.first[-1]),
        second=np.append(at.second, at.second[-1]),
        rounding=np.append(at.rounding, at.rounding[-1]),
        origin=at.origin,
    )


def _tests(at: Levels, goal: Goal, variance: tuple[float, float], dearest: float) -> tuple[BoolArray, BoolArray]:
    """Whether each level is surely too low, and whether it surely is not, whoever's cost is raised."""
    smallest, largest = variance
    t = at.level - at.origin
    gain, blur = at.mass * t - at.first, _SLACK * at.mass * t
    if isinstance(goal, Accuracy):
        square = goal.number**2
        least = (gain - at.rounding - blur) / largest - t / smallest
        return square * (gain + blur) / smallest < at.level, square * least >= at.level
    half = 0.5 * goal.number**2
    paid = at.origin * gain + (t * at.first - at.second)
    blur = at.level * (blur + at.rounding)
    # what she adds at most by asking for more, and takes away at most by leaving
    more = 0.25 * at.level * at.level / smallest
    cost = np.minimum(0.5 * at.level, dearest)
    less = cost * (at.level - cost) / smallest
    return (paid + blur) / smallest + more < half, (paid - blur) / largest - less >= half


class SummedLevel:
    """People as exact sums below a window of costs, everybody in the window, and nobody who matters above."""

    def __init__(
        self,
        prefix: ExactSums,
        window: FloatArray,
        people: IntArray,
        *,
        lowest: float,
        ends: tuple[float, float],
        dearest: float,
        variance: float,
        goal: Goal,
    ) -> None:
        """``window`` holds the costs between ``ends``, ascending, and ``people`` how many have each of them.

        ``lowest`` is the smallest cost of all, and nobody's is above ``dearest``.
        """
        self._prefix, self._window, self._people = prefix, window, people
        self._lowest, self._dearest, self._ends, self._unit, self._goal = lowest, dearest, ends, variance, goal
        self._equation = Equation(goal, variance)
        self._offset = window - lowest
        self._start = tuple(float(moment) for moment in (prefix.count, *prefix.about(lowest)))
        mass = people.astype(np.float64)
        # over the first 0, 1, 2, … of the window alone
        terms = (mass, mass * self._offset, mass * self._offset * self._offset)
        self._inside = tuple(np.append(0.0, np.cumsum(term)) for term in terms)
        self._solve()

    def _solve(self) -> None:
        """The level from exact sums; floating ones chose who is active, they do not make the answer."""
        base, sums = self._lowest, [before + inside for before, inside in zip(self._start, self._inside, strict=True)]
        roots = self._equation.root(base, *sums)
        self.count = int(np.argmax(roots <= np.append(self._offset, math.inf)))
        active = self._prefix + ExactSums.of(self._window[: self.count], self._people[: self.count])
        self.active = active.count
        first, second = active.about(base)
        above, slope = self._exact_terms(first, second)
        self._reached = slope > 0
        if not self._reached:
            self._offset_of_level = self._gain = self._paid = self._spread = math.inf
            return
        level = above / slope
        gain = active.count * level - first
        self._offset_of_level, self._gain = float(level), float(gain)
        self._paid = float(Fraction(base) * gain + level * first - second)
        self._spread = float(level * gain - level * first + second)

    def _exact_terms(self, first: Fraction, second: Fraction) -> tuple[Fraction, Fraction]:
        """What the level is a ratio of, as in `Equation.root`."""
        base, total = Fraction(self._lowest), self.active
        if isinstance(self._goal, Accuracy):
            ratio = Fraction(self._goal.number) ** 2 / Fraction(self._unit)
            return base + ratio * first, ratio * total - 1
        half = Fraction(self._goal.number) ** 2 * Fraction(self._unit) / 2
        return half + base * first + second, base * total + first

    @property
    def is_settled(self) -> bool:
        """Whether the level lies in the window, whoever's cost is raised."""
        if not self._reached:
            return False
        low, high = self._ends
        sums = [[before, before + inside[-1]] for before, inside in zip(self._start, self._inside, strict=True)]
        ends = Levels(
            level=np.array([low, high]),
            mass=np.array(sums[0]),
            first=np.array(sums[1]),
            second=np.array(sums[2]),
            rounding=np.zeros(2),
            origin=self._lowest,
        )
        not_yet, surely = _tests(ends, self._goal, (self._unit, self._unit), self._dearest)
        return bool((not_yet[0] or low <= self._lowest) and surely[1])

    @property
    def level(self) -> float:
        """Below this cost people are bought from."""
        return self._lowest + self._offset_of_level

    @property
    def most_lost(self) -> float:
        """Nobody's privacy loss is larger, whoever asks for more or stays away."""
        return most_lost(self._prefix, lowest=self._lowest, ends=self._ends, variance=self._unit)

    @property
    def shares(self) -> LevelShares:
        """Everybody's weight."""
        return LevelShares(self._lowest, self._offset_of_level, self._gain)

    @property
    def mse(self) -> float:
        """The mean squared error, exactly what was stated for an accuracy."""
        if isinstance(self._goal, Accuracy):
            return self._goal.number**2
        return self._unit * self.level / self._gain

    @property
    def expense(self) -> float:
        """``Σ cost·loss``, exactly what was stated for a budget."""
        return math.sqrt(2.0 * self._paid / self._unit) if isinstance(self._goal, Accuracy) else self._goal.number

    @property
    def loss_per_weight(self) -> float:
        """``S = Σ ε``: a weight times this is a privacy loss."""
        return self._gain * math.sqrt(2.0 / (self._unit * self._paid))

    @property
    def squared_weights(self) -> float:
        """``Σ w²``."""
        return self._spread / self._gain**2

    def losses(self, costs: FloatArray) -> FloatArray:
        """The privacy losses of people with these costs."""
        return self.shares.weights(costs) * self.loss_per_weight

    def lower_bound(self) -> float:
        """At most the least expense for the error, or the least error for the expense: the dual bound at this level."""
        spread = self._spread / self._unit
        if isinstance(self._goal, Accuracy):
            bound = expense_at_level(self._goal.number**2, self.level, spread)
        else:
            bound = error_at_level(0.5 * self._goal.number**2, self.level, spread)
        return bound * (1.0 - _SLACK)

    def replies_for(self, costs: FloatArray) -> "SummedLevelReplies":
        """The purchase as a function of the cost of somebody who is now at one of ``costs``, below the level."""
        return SummedLevelReplies(self, costs)


class SummedLevelReplies(LevelReplies):
    """How the purchase answers to a higher cost of each of some imagined people, who are part of the population.

    The value for a given error is the expense less what it is now, from changes of sums only: of many people one's
    share would be lost in the digits of the whole.
    """

    def __init__(self, summed: SummedLevel, costs: FloatArray) -> None:
        people = summed._prefix.count + int(summed._people.sum())
        self._people = Buyable(costs, summed._unit)
        self._costs, self._equation, self._base = costs, summed._equation, summed._lowest
        self._level, self._expense = summed._offset_of_level, summed.expense
        self._offset, self._mass_of = summed._offset, summed._people.astype(np.float64)
        sums = [before + inside for before, inside in zip(summed._start, summed._inside, strict=True)]
        self._total, self._first, self._second = sums
        # from the active people on: what comes and goes when the level moves
        self._change = [inside - inside[summed.count] for inside in summed._inside]
        # whoever is one of several at a cost, or below the window, is no neighbour of herself
        place = np.minimum(self._offset.searchsorted(costs - self._base), max(self._offset.size - 1, 0))
        self._place = np.full(costs.size, -1)
        if self._offset.size:
            alone = (self._offset[place] == costs - self._base) & (summed._people[place] == 1)
            self._place[alone] = place[alone]
        self._positive, self._finite, self._cheapest = people, True, -1
        self._edges = np.concatenate([[-math.inf], self._offset, [math.inf]])

    def _for_accuracy(self, pairs: _Pairs) -> Answer:
        equation, present = self._equation, self._level
        level, sums = pairs.levels()
        paid = sums.paid(self._base, level)
        there = pairs.to < level
        came, to = there.astype(float), np.where(there, pairs.to, 0.0)
        # changes of U, Σψ and Σψ² against the present
        count = self._offset.searchsorted(level, side="left")
        total = self._change[0][count] - 1.0 + came
        first = self._change[1][count] - pairs.own + came * to
        second = self._change[2][count] - pairs.own * pairs.own + came * to * to
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = equation.ratio * (first - present * total) / (equation.ratio * sums.total - 1.0)
            more = moved * (self._base / equation.ratio + sums.first) + present * first - second
            expense = np.sqrt(2.0 * paid / equation.unit)
            value = 2.0 * more / (equation.unit * (expense + self._expense))
            loss = np.maximum(level - pairs.to, 0.0) * np.sqrt(2.0 / (equation.unit * paid))
        lost = ~(level < math.inf)  # without her it cannot be reached
        square = np.full(lost.size, equation.goal.number**2)
        value = np.where(lost, np.inf, value)
        return lambda: value, np.where(lost, 0.0, loss), np.where(lost, np.inf, square)
