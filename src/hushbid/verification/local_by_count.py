"""The local optimum once more, for verification: by how many people are bought from, and exclusion for the last one.

With Laplace noise a precision ``q`` takes a loss ``y(q) = √(2q/(1 − q))`` (normal form: losses times ``V^{1/2}``),
concave up to ``q = 1/4``, "low", and convex from there; with randomised response it is ``artanh √q``, concave up to
``1/3``, and everything else is the same (:mod:`hushbid.verification.local_curve`). Wanted is the least ``F(Λ) + Σ
ψ_i·y(q_i)``, ``Λ = Σ q_i``, with ``q_i`` up to the cap's ``q_e``: for a price of the error ``F = 1/Λ`` (costs divided
by ``A·V^{3/2}``), for a given error ``F`` is 0 at ``Λ = T = V/error`` and infinite elsewhere. The cheapest ``k`` are
bought from, and at most the last of them is low and below the cap: docs/concepts/proofs.md has the proofs, which
use neither ``F`` nor the cap, and of ``y`` only that it is first concave, then convex. So the optimum is one of three.

* One person alone.
* The cheapest ``k``, nobody low and below the cap: a convex problem. At a price ``P`` everybody supplies what makes
  ``ψ·y(q) − P·q`` least, its ``φ(P)``: the root of ``y'(q) = P/ψ`` that is not low, or the cap. At one ``P`` they
  supply what ``F`` demands. The value is convex in ``k``: its minimum is walked down to.
* The cheapest ``k``, of whom the last supplies ``z`` less than that. The others answer a price ``P``, she supplies what
  is left of the demand, and a minimum has ``P = ψ_k·y'(z)``. With ``P`` the others' supply rises and ``z`` falls. So
  the ends of an interval of prices may say that the cost falls throughout, rises throughout, or exceeds the best value
  seen throughout: such an interval is thrown away, others are cut until they are narrow
  (:mod:`hushbid.verification.local_last`).
  Most ``k`` need no interval. Whatever ``P``, the cost is at least ``W(P) + φ_1 + … + φ_{k−1} + min(0, ψ_k·y(q_l) −
  P·q_l)``, where ``W`` is the least ``F + P·Λ`` and ``q_l`` the largest low ``q``, because a concave function is least
  at an end. With the price ``P_{k−1}`` of the convex problem for ``k − 1`` that is its value, if ``P_{k−1} ≤
  ψ_k·y(q_l)/q_l``; with ``P_k`` it is no less than that for ``k``, if ``φ_k(P_k) ≤ 0``. As ``P_k`` falls with ``k``,
  the first excludes every larger ``k`` as well, the second every smaller one.

The solvers know which two numbers to compare, have a closed form for the high root, and one crossing for the last.
"""

import math

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.verification.local_curve import LAPLACE, PrecisionCurve
from hushbid.verification.local_last import Purchases, best_with_a_low_last
from hushbid.verification.local_supply import Demand, Listed, supplied
from hushbid.verification.work import Answers

_CELLS = 1 << 20
_STEPS = 200
_BOUGHT_AT_ONCE = 40.0


def normal_scale(error_weight: float, variance: float) -> float:
    """``A·v^{3/2}``, what costs are divided by; in two steps where the power alone is no ordinary number."""
    if 1e-205 <= variance <= 1e205:
        return float(error_weight * variance**1.5)
    return error_weight * variance * math.sqrt(variance)


class LocalRule:
    """The local optimum as a function of one person's cost, for an ``error_weight`` or a given ``error``."""

    def __init__(
        self,
        costs: FloatArray,
        variance: float,
        error_weight: float = 1.0,
        order: IndexArray | None = None,
        *,
        error: float | None = None,
        cap: float = math.inf,
        curve: PrecisionCurve = LAPLACE,
    ) -> None:
        self._root = math.sqrt(variance)
        self._demand = demand = Demand(None if error is None else variance / error, cap * self._root, curve)
        self._order = np.arange(costs.size) if order is None else order
        # what costs are divided by, and the unit of values and of errors
        self._unit, self._scale = variance, normal_scale(error_weight, variance)
        self._worth = error_weight * variance
        if error is not None:
            paid = np.sort(costs[(costs > 0.0) & (costs < math.inf)])
            self._scale = float(paid[int(min(demand.needed, paid.size - 1))]) if paid.size else 1.0
            self._worth = self._scale / self._root
        self._cost = self._finite_ones(costs)
        rows = np.lexsort((self._order, self._cost))
        rows = rows[: int(np.count_nonzero(self._cost < math.inf))]
        self._finite = int(rows.size)
        rows = rows[: self._most_active(rows) + 3]
        self._rows, self._ranked, self._sorted = rows, self._cost[rows], self._cost[rows] / self._scale
        self._place = np.full(costs.size, self._finite)
        self._place[rows] = np.arange(rows.size)
        self._guess, self._price = 2, 1.0
        with np.errstate(all="ignore"):
            self._find_start()

    def _most_active(self, rows: IndexArray) -> int:
        """No more than so many can be active: those before the last supply as much as at the turn, or ``q_e``.

        For a price of the error, the last of ``k`` is worth her cost only if ``ψ·Λ² ≤ q/y``, ``Λ`` the others' supply.
        """
        if self._demand.fixed:
            return int(min(self._demand.needed / self._demand.curve.turn, rows.size)) + 1
        with np.errstate(over="ignore"):
            least = np.arange(rows.size, dtype=float) * self._demand.low_end
            return int(np.flatnonzero(self._cost[rows] / self._scale * least**2 <= self._demand.worth)[-1])

    def _find_start(self) -> None:
        """The best number of people as things are, by halving: from there every other answer is near."""
        nobody = np.array([-1]), np.array([math.inf])
        low, high = (int(end[0]) for end in self._span(*nobody))
        if high < low:
            return
        while low < high:  # convex: falls up to the best
            middle = (low + high) // 2
            here, more = (self._balances(*nobody, np.array([count])).value[0] for count in (middle, middle + 1))
            low, high = (middle + 1, high) if more < here else (low, middle)
        self._guess, self._price = low, float(self._balances(*nobody, np.array([low])).price[0])

    @property
    def effort(self) -> float:
        """How much longer than usual an answer takes."""
        return max(self._guess / _BOUGHT_AT_ONCE, 2.0)

    @property
    def price(self) -> float:
        """What one evaluation takes, in millionths of a second on an ordinary computer, about."""
        return 100.0 * self.effort

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        at_once = max(_CELLS // (self._guess + 8), 1)
        parts = [slice(start, start + at_once) for start in range(0, rows.size, at_once)]
        with np.errstate(all="ignore"):
            found = [self._best(rows[part], self._finite_ones(costs[part])) for part in parts]
        own, error, value = (
            np.concatenate([getattr(some, name) for some in found] or [np.empty(0)])
            for name in ("own", "error", "value")
        )
        return Answers(own / self._root, error * self._unit, value * self._worth)

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Everybody's privacy loss, the error and the objective if person ``row`` had that cost."""
        changed = self._cost.copy()
        changed[row] = self._finite_ones(np.array([cost]))[0]
        with np.errstate(all="ignore"):
            best = self._best(np.array([row]), changed[[row]])
            losses, value = np.zeros(changed.size), float(best.value[0])
            bought = np.lexsort((self._order, changed))[: int(best.count[0])]
            if value < math.inf:
                losses[bought] = supplied(changed[bought] / self._scale / float(best.price[0]), self._demand).loss
                if not math.isnan(best.last[0]):
                    losses[bought[-1]] = best.last[0]
                free = float(best.free[0])
                if free > 0.0:
                    losses = np.where(changed == 0.0, free, 0.0)
        return losses / self._root, float(best.error[0]) * self._unit, value * self._worth

    def _finite_ones(self, costs: FloatArray) -> FloatArray:
        """The costs, infinite where normal form cannot hold them.

        They stay as given, and so are ranked as the solver ranks them: in normal form two that differ in the last digit
        may be equal.
        """
        with np.errstate(over="ignore"):
            return np.where(costs / self._scale < math.inf, costs, math.inf)

    # -- which people --------------------------------------------------------------------------------------------------

    def _rank(self, rows: IndexArray, moved: FloatArray) -> IndexArray:
        """How many others come before the moved person: the cheaper, and equals that precede her."""
        rank = self._ranked.searchsorted(moved, side="left")
        end = self._ranked.searchsorted(moved, side="right")
        for j in np.flatnonzero(rank < end).tolist():
            rank[j] += int((self._order[self._rows[rank[j] : end[j]]] < self._order[rows[j]]).sum())
        return np.asarray(rank - (self._taken_out(rows) < rank))

    def _taken_out(self, rows: IndexArray) -> IndexArray:
        """Where she stands in the queue as things are."""
        return np.where(rows >= 0, self._place[rows], self._finite)

    def _most(self, rows: IndexArray, moved: FloatArray) -> IndexArray:
        """How many people there are to look at."""
        size = self._sorted.size
        return np.asarray(size - (self._taken_out(rows) < size) + (moved < math.inf))

    def _free(self, rows: IndexArray, moved: FloatArray) -> IndexArray:
        """How many ask for nothing."""
        as_is = int(self._ranked.searchsorted(0.0, side="right"))
        return np.asarray(as_is - (self._taken_out(rows) < as_is) + (moved == 0.0))

    def _listed(self, rows: IndexArray, moved: FloatArray, counts: IndexArray) -> Listed:
        """The cheapest ``counts`` of each pair, a row each: others, and herself in the last column."""
        active = self._rank(rows, moved) < counts
        out, wanted = self._taken_out(rows)[:, None], (counts - active)[:, None]
        column = np.arange(min(int(wanted.max(initial=0)) + 1, self._sorted.size))[None, :]
        others = (column != out) & (column - (out < column) < wanted)
        here = np.concatenate([others, active[:, None]], axis=1)
        costs = np.concatenate([np.where(others, self._sorted[column], 0.0), (moved / self._scale)[:, None]], axis=1)
        return Listed(np.where(here, costs, 0.0), here, counts)

    def _span(self, rows: IndexArray, moved: FloatArray) -> tuple[IndexArray, IndexArray]:
        """The numbers of people, two or more, between which nobody has to be low."""
        most, free = self._most(rows, moved), self._free(rows, moved)
        if not self._demand.fixed:
            return np.full(rows.size, 2), most
        needed = min(self._demand.needed, 1e9)
        low = np.maximum(int(needed) + 1, free + 2)
        return low, np.minimum(most, np.floor((needed - free) / self._demand.curve.turn).astype(np.intp) + free)

    # -- how many ------------------------------------------------------------------------------------------------------

    def _best(self, rows: IndexArray, moved: FloatArray) -> Purchases:
        best = self._alone(rows, moved)
        # two or more, nobody low: walk from the present number, downhill to fewer, then to more
        low, high = self._span(rows, moved)
        unsolved = np.flatnonzero(low <= high)
        here = np.clip(np.full(rows.size, self._guess), low, np.maximum(low, high))
        walked = Purchases.none(rows.size)
        walked.put(unsolved, self._balances(rows[unsolved], moved[unsolved], here[unsolved]))
        for step in (-1, 1):
            going = unsolved
            while going.size:
                ahead = here[going] + step
                inside = (ahead >= low[going]) & (ahead <= high[going])
                going, ahead = going[inside], ahead[inside]
                found = self._balances(rows[going], moved[going], ahead)
                better = np.flatnonzero(found.value < walked.value[going])
                going = going[better]
                walked.put(going, found.take(better))
                here[going] = ahead[better]
        best.improve(np.arange(rows.size), walked)
        self._low_lasts(rows, moved, walked, best)
        self._enough_for_nothing(rows, moved, best)
        best.error[best.value == math.inf] = math.inf
        return best

    def _alone(self, rows: IndexArray, moved: FloatArray) -> Purchases:
        """The cheapest alone; for a given error beside those who ask for nothing."""
        best, demand = Purchases.none(rows.size), self._demand
        free = self._free(rows, moved) if demand.fixed else np.zeros(rows.size, dtype=np.intp)
        best.count = free + 1
        cost = self._cost_of(rows, moved, best.count)
        best.last = loss = demand.loss_alone(cost, free)
        paid = np.where(cost > 0.0, cost * loss, 0.0)
        best.error = np.full(rows.size, 1.0 / demand.needed) if demand.fixed else demand.curve.error(loss)
        possible = (cost < math.inf) & ~np.isnan(loss)
        best.value = np.where(possible, paid if demand.fixed else best.error + paid, math.inf)
        best.price = best.error**2
        if demand.fixed:
            best.price = cost * demand.curve.price_of_last(np.clip(demand.needed - free, demand.curve.turn, 1.0))
        rank = self._rank(rows, moved)
        hers = np.where(rank == free, loss, np.where(rank < free, math.inf, 0.0))
        best.own = np.where(possible & (moved < math.inf), hers, 0.0)
        return best

    def _balances(self, rows: IndexArray, moved: FloatArray, counts: IndexArray) -> Purchases:
        """The cheapest ``counts``, two or more, nobody low: at the price at which they supply what is demanded.

        Safeguarded Newton steps in ``log P``. Where the slope is steep a small step alone is no sign of balance.
        """
        found = Purchases.none(rows.size)
        if rows.size == 0:
            return found
        listed = self._listed(rows, moved, counts)
        low, high = self._demand.bracket(listed)
        price = np.clip(np.full(rows.size, self._price), low, high)
        last = False
        for _ in range(_STEPS):
            sums = listed.at(price, self._demand)
            wanted, fall = self._demand.at(price)
            excess = counts - sums.short - wanted
            low, high = np.where(excess <= 0.0, price, low), np.where(excess > 0.0, price, high)
            if last:
                break
            move = -excess / (sums.slope + fall)
            near = np.abs(excess) <= 1e-6 * wanted
            settled = near & (np.abs(move) <= 1e-8) | (high <= low * (1.0 + 1e-15))
            # Newton where it stays in the bracket, else halve that in the logarithm
            ahead = price * np.exp(np.clip(move, -2.0, 2.0))
            inside = (low < ahead) & (ahead < high) & (near | (np.abs(move) > 1e-6)) | near & (np.abs(move) <= 1e-12)
            price = np.where(inside, ahead, np.sqrt(low) * np.sqrt(high))
            last = bool(settled.all())  # that step doubled the digits
        supply = counts - sums.short
        # at a balance the value changes with the square of what is missing
        found.value = sums.spent + (price * (wanted - supply) if self._demand.fixed else 1.0 / supply)
        found.error = 1.0 / (wanted if self._demand.fixed else supply)
        found.price, found.count = price, counts
        found.own = np.where(listed.here[:, -1], sums.own, 0.0)
        return found

    def _low_lasts(self, rows: IndexArray, moved: FloatArray, walked: Purchases, best: Purchases) -> None:
        """Every number of people that the two bounds do not exclude, with a low last one."""
        demand, most = self._demand, self._most(rows, moved)
        fewest = self._free(rows, moved) + 2 if demand.fixed else np.full(rows.size, 2)
        start, known = walked.count.copy(), walked.price.copy()
        none = np.flatnonzero(walked.value == math.inf)
        start[none] = fewest[none] - 1
        known[none] = self._price_at(rows[none], moved[none], start[none])
        # to fewer, as long as the last is not worth her cost at the price of all of them
        count, price, going = start, known.copy(), np.flatnonzero((start >= fewest) & (start <= most))
        while going.size:
            cost = self._cost_of(rows[going], moved[going], count[going])
            going = going[cost > price[going] * demand.worth]
            price[going] = self._price_at(rows[going], moved[going], count[going] - 1)
            self._try_low_last(rows, moved, count, price, going, best)
            count = count - 1
            going = going[count[going] >= fewest[going]]
        # to more, as long as she is worth as much as a low one can be at the price of the others
        count, price, going = start + 1, known, np.flatnonzero(start + 1 <= most)
        while going.size:
            going = self._try_low_last(rows, moved, count, price, going, best)
            price[going] = self._price_at(rows[going], moved[going], count[going])
            count = count + 1
            going = going[count[going] <= most[going]]

    def _try_low_last(
        self,
        rows: IndexArray,
        moved: FloatArray,
        count: IndexArray,
        price: FloatArray,
        going: IndexArray,
        best: Purchases,
    ) -> IndexArray:
        """Those of ``going`` whose last of ``count`` could be low, by the others' price, after having looked."""
        last = self._cost_of(rows[going], moved[going], count[going])
        open_ = np.flatnonzero(price[going] > last * self._demand.dear)
        some, last = going[open_], last[open_]
        if some.size:
            listed = self._listed(rows[some], moved[some], count[some] - 1)
            hers = self._rank(rows[some], moved[some]) == count[some] - 1
            best.improve(some, best_with_a_low_last(listed, last, hers, self._demand, best.value[some]))
        return some

    def _price_at(self, rows: IndexArray, moved: FloatArray, counts: IndexArray) -> FloatArray:
        """The price at which so many balance, nobody low: infinite for too few, 0 for too many."""
        few, many = np.zeros(rows.size, dtype=bool), np.zeros(rows.size, dtype=bool)
        if self._demand.fixed:
            free, needed = self._free(rows, moved), self._demand.needed
            few, many = counts <= needed, needed - free < self._demand.curve.turn * (counts - free)
        price, some = np.where(few, math.inf, 0.0), np.flatnonzero(~few & ~many)
        price[some] = self._balances(rows[some], moved[some], counts[some]).price
        return price

    def _cost_of(self, rows: IndexArray, moved: FloatArray, number: IndexArray) -> FloatArray:
        """What the ``number``-th of each pair costs, counted from 1."""
        rank, out = self._rank(rows, moved), self._taken_out(rows)
        place = number - 1 - (rank < number - 1)
        place = place + (out <= place)
        other = np.append(self._sorted, math.inf)[np.minimum(place, self._sorted.size)]
        return np.where(rank == number - 1, moved / self._scale, other)

    def _enough_for_nothing(self, rows: IndexArray, moved: FloatArray, best: Purchases) -> None:
        """A given error that those who ask for nothing reach alone: they share the work, and nothing is paid."""
        if not self._demand.fixed:
            return
        free, needed = self._free(rows, moved), self._demand.needed
        enough = np.flatnonzero((free > 0) & (free >= needed))
        if enough.size:
            share = self._demand.curve.loss_of(needed / free)
            best.value[enough], best.error[enough], best.free[enough] = 0.0, 1.0 / needed, share[enough]
            best.own[enough] = np.where(moved == 0.0, share, 0.0)[enough]
