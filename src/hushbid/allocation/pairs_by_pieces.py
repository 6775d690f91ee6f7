"""The optimum without caps for many (person, cost) pairs at once, in closed form on each piece of the path.

From the present optimum, the *incumbent*, every pair goes from guess to guess (`hushbid.allocation.deviations`): the
sums of a guess have a root ``T`` and a water level, which are the next guess. For an accuracy or a budget the pieces
are tangents of a convex function, so the guesses fall towards the only answer and stop there.

For a price what is found is a local minimum, perhaps not the best. For a raised cost that is mostly proved once for all
(:mod:`hushbid.allocation.price_search`). Elsewhere, for lowered costs and wherever there are few pieces, every piece of
the pair's path is looked at.
"""

import math
from functools import cached_property, partial

import numpy as np

from hushbid.allocation.budget_integral import budget_values
from hushbid.allocation.central import solve
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.deviations import Deviations, Surroundings
from hushbid.allocation.pieces import Pieces, Point, best_point, strata_of
from hushbid.allocation.price_search import single_up_to
from hushbid.allocation.reply_rules import Answers
from hushbid.allocation.targets import Sums
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError

_PRICE_ROUNDS = 16
_LOST_DIGITS = 1e-6  # where W is a smaller share of M·T, or a cost of the least, differences of sums lose their digits
_SHORT, _FEW = 16, 1 << 12
"""Up to so many pieces of each path, or of all together, are looked at one by one, which takes less than following the
guesses."""

_SHARES = np.geomspace(1.0 / 16.0, 1.0, 25)  # of the incumbent's T: where paths are bounded
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
    def _single(self) -> tuple[float, float]:
        """The value and the error up to which a point is the optimum of a pair with a raised cost."""
        now, problem, pieces = self._incumbent, self._problem, self._pieces
        worst = 2.0 * now.value(problem.form.target)
        # no minimum below that value is at a T beyond half of this one; who is inside without any one person there, is
        # inside here with everybody, if nobody gives more than half
        far = 2.0 * math.sqrt((worst - problem.least_error) / 1.5)
        most = [float((one.mass * (one.level(far) - one.offset)).max()) / one.size for one in self._strata]
        piece = max(int(pieces.key.searchsorted(far)) - 1, 0)
        least = float(pieces.floor[piece]) if max(most) <= 0.5 * far else problem.least_error
        value, error = single_up_to(pieces.figures(now.at * _SHARES), least=least)
        return min(value, worst), error

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
        worst, error = self._single if self._incumbent.at > 0.0 else (-math.inf, 0.0)
        sure = (people.to >= people.own) & (value <= worst) & (sums.floor + sums.mean / at <= error)
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
