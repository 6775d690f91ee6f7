"""The optimum without caps for many (person, cost) pairs at once, in closed form on each piece of the path.

From the present optimum, the *incumbent*, every pair goes from guess to guess (`hushbid.allocation.deviations`): the
sums of a guess have a root ``T`` and a water level, which are the next guess. For an accuracy or a budget the pieces
are tangents of a convex function, so the guesses fall towards the only answer and stop there.

For a price what is found is a local minimum, perhaps not the best. Raising a cost raises the objective at every ``T``.
So the best ``T`` lies where the incumbent's objective is at most the value found, in an interval that its pieces give.
There is no other minimum if on both sides of the one found ``T⁴ − 2W`` increases, or ``1 − 2W/T⁴`` does. ``M`` and
``Q`` increase along the path, so between ``a`` and ``b`` the first is shown by ``4a³ > 2M(b)``. The second is that the
elasticity ``MT/W`` of ``W = MT − Q`` is below 4, which ``4Q(b) < 3a·M(a)`` shows. Where both fail, for lowered costs
and wherever there are few pieces, every piece of the pair's path is looked at.
"""

import math
from functools import cached_property, partial

import numpy as np

from hushbid.allocation.budget_integral import budget_values
from hushbid.allocation.central import solve
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.deviations import Deviations, Surroundings
from hushbid.allocation.pieces import Pieces, Point, best_point, strata_of
from hushbid.allocation.reply_rules import Answers
from hushbid.allocation.targets import Sums, Target
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError

_PRICE_ROUNDS = 16
_LOST_DIGITS = 1e-6  # where W is a smaller share of M·T, or a cost of the least, differences of sums lose their digits
_SHORT, _FEW = 16, 1 << 12
"""Up to so many pieces of each path, or of all together, are looked at one by one, which takes less than following the
guesses."""

_DENSE = 1 << 18  # so many pieces of paths that might have several minima are looked at together


class PairsByPieces:
    """The central optimum without caps as a function of one person's cost, everybody else's fixed."""

    blur = 0.0

    def __init__(self, problem: CentralProblem) -> None:
        """Sort everybody once; refused where a stratum has nobody to buy from."""
        self._problem = problem
        self._strata = strata_of(problem, np.flatnonzero(problem.costs < math.inf))
        self._pieces = Pieces.of(self._strata)
        with np.errstate(over="ignore", invalid="ignore"):
            self._incumbent: Point = best_point(problem.form.target, self._strata, self._pieces)
            self._views = [Surroundings.of(self._strata, self._pieces, g) for g in range(len(self._strata))]
        self._place = np.full(problem.costs.size, -1)
        for one in self._strata:
            self._place[one.rows] = np.arange(one.rows.size)
        free = [float(one.mass[one.offset == 0.0].sum()) if one.base == 0.0 else 0.0 for one in self._strata]
        self._free = np.array(free)  # the mass of zero-cost people in each stratum
        with np.errstate(divide="ignore"):
            self._free_errors = np.square(problem.form.sizes) / self._free
            """Their part of ``c`` if nobody else is active."""

    @cached_property
    def _sublevels(self) -> "_Sublevels":
        """Where the incumbent's objective is how low."""
        return _Sublevels(self._problem.form.target, self._pieces)

    def dearest(self, rows: IndexArray) -> FloatArray:
        """Return the costs above which people are not bought from: without caps none."""
        return np.full(rows.size, math.inf)

    def answers(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Answers:
        """Return the optimum if people of a stratum had these costs."""
        target = self._problem.form.target
        people = self._deviations(stratum, rows, costs)
        free, free_share = self._free_people(stratum, people, costs)
        at, level, sums, alone = self._settled(people)
        left = people.lowest() < math.inf
        lost = ~left | ~(at < math.inf)
        paid = np.maximum(sums.mean * at - sums.spread, 0.0)
        value = np.where(lost, math.inf, target.value(at, sums.mean, sums.spread, sums.floor))
        over = np.where(sums.present & ~lost, target.surplus(at, people.size, sums), 0.0) / sums.total
        loss = np.where(over > 0.0, people.mass * over / target.step(at, paid), 0.0)
        mse = np.where(lost, math.inf, sums.floor + sums.mean / at)
        # zero-cost people may be enough
        enough = (free < math.inf) & target.satisfied_for_free(free, value)
        total = target.free_total(free)
        loss = np.where(enough, np.where(costs == 0.0, free_share * total, 0.0), loss)
        mse = np.where(enough, free + np.where(total < math.inf, 2.0 / total / total, 0.0), mse)
        value = np.where(enough, mse if target.kind == "price" else 0.0, value)
        # what has lost its digits is solved by itself
        far = (costs < _LOST_DIGITS * self._strata[stratum].base * self._problem.form.scale) & ~enough & left
        blurred = target.unimodal & ~lost & ~(paid > _LOST_DIGITS * sums.mean * at)
        outweighed = far & (sums.others > 0.0) & (sums.others < _LOST_DIGITS * sums.total)
        hard = (blurred | alone | outweighed) & ~enough & left
        for j in np.flatnonzero(hard).tolist():
            value[j], loss[j], mse[j] = self._solved_alone(int(rows[j]), float(costs[j]))
        if target.kind == "budget":
            return Answers(partial(budget_values, target, people, level, sums, at), loss, mse)
        return Answers(lambda: value, loss, mse)

    def _deviations(self, stratum: int, rows: IndexArray, costs: FloatArray) -> Deviations:
        problem, one, place = self._problem, self._strata[stratum], self._place[rows]
        cheapest = problem.costs[one.rows[:1]]
        return Deviations(
            view=self._views[stratum],
            mass=problem.masses(rows),
            own=np.where(place < 0, math.inf, problem.offsets(problem.costs[rows], cheapest)),
            to=problem.offsets(costs, cheapest),
            cost=costs / problem.form.scale,
            place=place,
            rank=np.where(place < 0, one.rows.size, place),
        )

    def _solved_alone(self, row: int, cost: float) -> tuple[float, float, float]:
        """Return objective, loss and error of one pair, solved from the beginning."""
        form = self._problem.form
        try:
            found = solve(self._problem.with_cost(row, cost))
        except MarketError:  # nobody is left in the stratum, or those who are left are not enough
            return math.inf, 0.0, math.inf
        own = float(found.privacy_loss[row]) * math.sqrt(form.unit)
        return found.objective / form.money, own, found.mse / form.factor

    # -- the best of several minima ------------------------------------------------------------------------------------

    def _settled(self, people: Deviations) -> tuple[FloatArray, FloatArray, Sums, BoolArray]:
        """Return ``T``, level and sums at the global optimum of each pair, and which must be solved by themselves."""
        target, pieces = self._problem.form.target, self._pieces.key.size + 2
        if target.unimodal:
            at, level, sums, _ = people.follow(
                target, self._incumbent.at
            )  # by rounding some go to and fro between neighbours
            return at, level, sums, np.zeros(at.size, dtype=bool)
        if pieces <= _SHORT or people.to.size * pieces <= _FEW:
            return self._least_piece(people)
        at, level, sums, unsettled = people.follow(target, self._incumbent.at, rounds=_PRICE_ROUNDS)
        at[unsettled] = math.nan
        value = target.value(at, sums.mean, sums.spread, sums.floor)
        alone = np.zeros(at.size, dtype=bool)
        sure = self._sublevels.is_only_minimum(people, at, sums, value)
        unsure = np.flatnonzero(~sure & (people.lowest() < math.inf))
        step = max(_DENSE // pieces, 1)
        for begin in range(0, unsure.size, step):
            some = unsure[begin : begin + step]
            at[some], level[some], found, alone[some] = self._least_piece(people.take(some))
            sums.put(some, found)
        return at, level, sums, alone

    def _least_piece(self, people: Deviations) -> tuple[FloatArray, FloatArray, Sums, BoolArray]:
        """Return what `_settled` does, from the root of every piece of every pair's path."""
        target = self._problem.form.target
        paths = people.paths()
        mean, spread, floor = paths.terms()
        low, high = paths.low, paths.high
        # what is bought falls to the left of a minimum and rises to its right, perhaps within one piece
        turn = np.minimum(np.maximum(target.turning_point(mean), low), high)
        falling = target.excess(turn, mean, mean * turn - spread) <= 1e-9 * turn**4
        rising = (high == math.inf) | (target.excess(high, mean, mean * high - spread) >= -1e-9 * high**4)
        some = np.flatnonzero(falling & rising)
        terms = mean.ravel()[some], spread.ravel()[some], floor.ravel()[some]
        root = target.root(*terms)
        inside = (root >= low.ravel()[some] * (1.0 - 1e-9)) & (root <= high.ravel()[some] * (1.0 + 1e-9))
        value = np.where(inside, target.value(root, *terms), math.inf)
        # the least of each pair; none where nobody is left, or where rounding hides it
        pairs, pieces = high.shape
        pair = some // pieces
        best = np.lexsort((value, pair))
        best = best[np.diff(pair[best], prepend=-1) > 0]
        chosen, at = np.arange(0, high.size, pieces), np.full(pairs, math.inf)
        chosen[pair[best]], at[pair[best]] = some[best], np.maximum(root[best], 1e-300)
        sums = paths.sums(chosen)
        return at, sums.level(people.size, at), sums, at == math.inf

    # -- zero-cost people ----------------------------------------------------------------------------------------------

    def _free_people(self, stratum: int, people: Deviations, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``c`` of zero-cost people alone, infinite where a stratum has none, and the person's share of them."""
        own = self._strata[stratum]
        was = people.there & (own.base + people.own == 0.0)
        mass = self._free[stratum] - people.mass * was + people.mass * (costs == 0.0)
        mass = np.where(mass < 0.5 * float(own.mass.min()), 0.0, mass)
        rest = self._free_errors[:stratum].sum() + self._free_errors[stratum + 1 :].sum()
        return rest + people.size**2 / mass, people.size * people.mass / mass


class _Sublevels:
    """Between which ``T`` all points lie at which the incumbent's objective is at most some value."""

    def __init__(self, target: Target, pieces: Pieces) -> None:
        key, mean = pieces.key, pieces.mean
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = target.value(key, mean, pieces.spread, pieces.floor)
            ends = np.where(np.isnan(ends), math.inf, ends)
            if pieces.base == 0.0:
                ends = np.where(key > 0.0, ends, pieces.floor)
            least = np.minimum(ends, np.append(ends[1:], math.inf))
            j = pieces.candidates(target)
            terms = mean[j], pieces.spread[j], pieces.floor[j]
            least[j] = np.minimum(least[j], target.value(target.root(*terms), *terms))
        self._pieces = pieces
        self._from_left = -np.minimum.accumulate(least)
        self._from_right = np.minimum.accumulate(least[::-1])[::-1]

    def between(self, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest ``T`` for each value; at an optimum ``3T²/2`` is at most the value."""
        pieces = self._pieces
        ends = np.append(pieces.key, math.inf)
        last = np.maximum(self._from_right.searchsorted(value, side="right"), 1)
        first = np.minimum(self._from_left.searchsorted(-value), pieces.key.size - 1)
        # within the first piece: where c + T²/2 + 2M/T − Q/T² comes down to the value, T² bounded by the last guess
        mean, spread = pieces.base + pieces.slope[first], pieces.spread[first]
        low = pieces.key[first]
        for _ in range(6):
            rest = value - pieces.floor[first] - 0.5 * low * low
            guess = (mean + np.sqrt(mean * mean - spread * rest)) / rest  # not a number where there is no bound
            low = np.where((rest > 0.0) & (guess > low), np.minimum(guess, ends[first + 1]), low)
        return low * (1.0 - 1e-12), np.minimum(ends[last], np.sqrt(value / 1.5))

    def is_only_minimum(self, people: Deviations, at: FloatArray, sums: Sums, value: FloatArray) -> BoolArray:
        """Return whether no other minimum of a pair can be as good as the one found: see the top."""
        own, size = people.view.own, people.size
        low, high = self.between(value * (1.0 + 1e-12))
        # with the raised cost the level is higher; as T grows it rises ever less
        k = np.maximum(own.key.searchsorted(low), 1) - 1
        before = people.sums(low, own.offset[k] + size * (low - own.key[k]) / own.total[k])
        after = people.sums(high, sums.level(size, high))
        left = _excess_increases(low, before.mean, sums.mean, sums.spread)
        right = _excess_increases(at, sums.mean, after.mean, after.spread)
        sure = (people.to >= people.own) & (low <= at) & (at <= high) & left & right
        return np.asarray(sure & (people.lowest() < math.inf))


def _excess_increases(start: FloatArray, least: FloatArray, most: FloatArray, spread: FloatArray) -> BoolArray:
    """Return whether ``T⁴ − 2W`` cannot change its sign twice between ``start`` and an end.

    ``M`` is at least ``least`` and at most ``most`` there, and ``Q`` at most ``spread``.
    """
    slope = 4.0 * start**3 > 2.0 * most * (1.0 + 1e-9)
    elasticity = 4.0 * spread * (1.0 + 1e-9) < 3.0 * least * start
    return np.asarray(slope | elasticity)
