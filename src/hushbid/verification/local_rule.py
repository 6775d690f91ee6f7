"""The local optimum once more, for verification: a price or an accuracy, with or without a cap, either curve.

Normal form: losses ``y`` times ``V^{1/2}``, precisions ``q`` times ``V`` (:mod:`hushbid.verification.local_curve`).
Wanted is the least ``F(Λ) + Σ ψ_i·y(q_i)``, ``Λ = Σ q_i``, with ``q_i`` up to the cap's ``q_e``. For a price of the
error ``F = 1/Λ`` (costs divided by ``A·V^{3/2}``); for a given error ``F`` is 0 at ``Λ = T = V/error`` and infinite
elsewhere. The cheapest ``k`` are bought from, and at most the last of them is *low*: below ``q_l``, the turn of the
curve or the cap's precision (docs/concepts/proofs.md has the proof, which uses neither ``F`` nor the cap). So for each
``k``

* either all supply from ``q_l`` to ``q_e``: a convex problem. At a price ``P`` everybody supplies what makes
  ``ψ·y(q) − P·q`` least, its ``φ(P)``, and at one ``P`` they supply what ``F`` demands;
* or the last supplies ``z < q_l``. The others answer a price ``P``, the last supplies what is left of the demand, and
  a minimum has ``P = ψ_k·y'(z)``. With ``P`` the others' supply rises and ``z`` falls, so the ends of an interval of
  prices may say that the cost falls throughout, rises throughout, or exceeds the best value seen throughout: such an
  interval is thrown away, others are cut until they are narrow.

Few ``k`` have to be looked at. Whatever ``P``, the first costs at least ``W(P) + φ_1 + … + φ_k`` and the second
``W(P) + φ_1 + … + φ_{k−1} + min(0, ψ_k·y(q_l) − P·q_l)``: ``W`` is the least ``F + P·Λ``, and a concave function is
least at an end. At the price of a purchase that is nearly the best, these bounds exclude nearly every ``k``. The
solver, in contrast, knows by a theorem which person is the last.
"""

import math
from collections.abc import Callable

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.estimation import Strata
from hushbid.verification.local_curve import LAPLACE, PrecisionCurve
from hushbid.verification.local_market import AS_GOOD, Bought, Lists, Market
from hushbid.verification.work import Answers, Rule

_CELLS = 1 << 16
_PRICES, _CLOSE = 40, 1.0 + 1e-6  # steps to the price at which purchases are excluded, and when it is found
_BOUGHT_AT_ONCE = 40.0


def normal_scale(error_weight: float, variance: float) -> float:
    """Return ``A·v^{3/2}``, what costs are divided by; in two steps where the power alone is no ordinary number."""
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
        self._market = market = Market(curve, cap * self._root, None if error is None else variance / error)
        self._order = np.arange(costs.size) if order is None else order
        # what costs are divided by, and the unit of values and of errors
        self._unit, self._scale = variance, normal_scale(error_weight, variance)
        self._worth = error_weight * variance
        if market.needed is not None:
            paid = np.sort(costs[(costs > 0.0) & (costs < math.inf)])
            self._scale = float(paid[int(min(market.needed / market.top, paid.size - 1))]) if paid.size else 1.0
            self._worth = self._scale / self._root
        with np.errstate(all="ignore"):
            self._cost = self._finite_ones(costs)
            rows = np.lexsort((self._order, self._cost))
            rows = rows[: int(np.count_nonzero(self._cost < math.inf))]
            self._finite = int(rows.size)
            rows = rows[: max(self._most_active(rows), int(np.count_nonzero(costs == 0.0))) + 3]
            self._rows, self._ranked, self._sorted = rows, self._cost[rows], self._cost[rows] / self._scale
            self._place = np.full(costs.size, self._finite)
            self._place[rows] = np.arange(rows.size)
            self._guess, self._price = 2, 1.0
            start = self._best(np.array([-1]), np.array([math.inf]))
            if 0.0 < start.price[0] < math.inf:
                self._guess, self._price = max(int(start.count[0]), 2), float(start.price[0])

    def _most_active(self, rows: IndexArray) -> int:
        """Return how many can be bought from at most: all but the last supply ``q_l`` or more.

        For a price of the error, the last is worth the cost only if ``ψ·Λ² ≤ q/y``, ``Λ`` the others' supply.
        """
        market = self._market
        if market.needed is not None:
            return int(min(market.needed / market.low, rows.size)) + 1
        best = min(market.cap, market.curve.most_useful)
        worth = market.curve.precision(best) / best
        least = np.arange(rows.size, dtype=float) * market.low
        return int(np.flatnonzero(self._cost[rows] / self._scale * least**2 <= worth)[-1]) if rows.size else 0

    @property
    def effort(self) -> float:
        """Return how much longer than usual an answer takes."""
        return max(self._guess / _BOUGHT_AT_ONCE, 2.0)

    @property
    def price(self) -> float:
        """Return what one evaluation takes, in millionths of a second on an ordinary computer, about."""
        return 100.0 * self.effort

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """Return the optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        at_once = max(_CELLS // (self._sorted.size + 8), 1)
        parts = [slice(start, start + at_once) for start in range(0, rows.size, at_once)]
        with np.errstate(all="ignore"):
            found = [self._best(rows[part], self._finite_ones(costs[part])) for part in parts]
        own, error, value = (
            np.concatenate([getattr(some, name) for some in found] or [np.empty(0)])
            for name in ("own", "error", "value")
        )
        return Answers(own / self._root, error * self._unit, value * self._worth)

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Return everybody's privacy loss, the error and the objective if person ``row`` had that cost."""
        changed = self._cost.copy()
        with np.errstate(all="ignore"):
            changed[row] = self._finite_ones(np.array([cost]))[0]
            best = self._best(np.array([row]), changed[[row]])
            losses, value = np.zeros(changed.size), float(best.value[0])
            bought = np.lexsort((self._order, changed))[: int(best.count[0])]
            if value < math.inf:
                losses[bought] = self._market.supplied(changed[bought] / self._scale / best.price[0])[1]
                if not math.isnan(best.last[0]):
                    losses[bought[-1]] = best.last[0]
                if best.free[0] > 0.0:
                    losses = np.where(changed == 0.0, best.free[0], 0.0)
        return losses / self._root, float(best.error[0]) * self._unit, value * self._worth

    def _finite_ones(self, costs: FloatArray) -> FloatArray:
        """Return the costs, infinite where normal form cannot hold them.

        They stay as given, and so are ranked as the solver ranks them: in normal form two that differ in the last digit
        may be equal.
        """
        with np.errstate(over="ignore"):
            return np.where(costs / self._scale < math.inf, costs, math.inf)

    # -- who ----------------------------------------------------------------------------------------------------------

    def _lists(self, rows: IndexArray, moved: FloatArray) -> Lists:
        """Return everybody by cost; the moved person comes after the cheaper, and equals that precede."""
        rank = self._ranked.searchsorted(moved, side="left")
        end = self._ranked.searchsorted(moved, side="right")
        for j in np.flatnonzero(rank < end).tolist():
            rank[j] += int((self._order[self._rows[rank[j] : end[j]]] < self._order[rows[j]]).sum())
        out = np.where(rows >= 0, self._place[rows], self._finite)
        rank = rank - (out < rank)
        column = np.arange(self._sorted.size + 1)[None, :]
        other = column - (column > rank[:, None])
        other = other + (out[:, None] <= other)
        costs = np.append(self._sorted, math.inf)[np.minimum(other, self._sorted.size)]
        costs = np.where(column == rank[:, None], (moved / self._scale)[:, None], costs)
        return Lists(costs, rank, np.isfinite(costs).sum(axis=1))

    # -- the best purchase ---------------------------------------------------------------------------------------------

    def _best(self, rows: IndexArray, moved: FloatArray) -> Bought:
        lists = self._lists(rows, moved)
        best, price = self._alone(lists), self._tightest(lists)
        least_high, least_low, _ = self._bounds(lists, price)
        high, low, done = least_high, least_low, np.zeros(least_high.shape, dtype=bool)
        for _ in range(2):  # at the price of the best purchase of this kind its bound is its value
            first = high.argmin(axis=1)
            some = np.flatnonzero(high.min(axis=1) < best.value)
            done[some, first[some]] = True
            tried = lists.take(some)
            tried.count = first[some] + 1
            found = self._market.balances(tried, price[some])
            better = found.value < best.value[some]
            best.improve(some, found)
            price[some[better]] = found.price[better]
            high, low, _ = self._bounds(lists, price)
        high, low = np.maximum(high, least_high), np.maximum(low, least_low)
        high[done] = math.inf
        for bound, solved in ((high, self._market.balances), (low, self._market.with_low_last)):
            pair, place = np.nonzero(bound < best.value[:, None] * AS_GOOD)
            tried = lists.take(pair)
            tried.count = place + 1
            best.improve(pair, solved(tried, price[pair] if solved == self._market.balances else best.value[pair]))
        self._enough_for_nothing(lists, moved, best)
        best.error[best.value == math.inf] = math.inf
        return best

    def _alone(self, lists: Lists) -> Bought:
        """Return the purchase from the cheapest alone; for a given error next to all who ask for nothing."""
        market = self._market
        best, needed = Bought.nothing(lists.count.size), market.needed
        if needed is None:
            number, left = np.ones(lists.count.size, dtype=np.intp), np.full(lists.count.size, math.inf)
        else:
            number = lists.free + 1
            left = needed - (number - 1) * market.top
        inside = number <= lists.count
        number = np.minimum(number, lists.costs.shape[1])
        cost = lists.cost_of(number)
        if needed is None:
            loss = np.minimum(market.curve.loss_alone(cost), market.cap)
            best.error = market.curve.error(loss)
        else:
            inside &= (left > 0.0) & (left <= market.top) & (left < 1.0)
            loss = market.curve.loss_of(np.where(inside, left, 0.0))
            best.error = np.full(cost.size, 1.0 / needed)
        paid = np.where(cost > 0.0, cost * loss, 0.0)
        best.value = np.where(inside, paid + (best.error if needed is None else 0.0), math.inf)
        best.price = best.error**2
        if needed is not None:
            best.price = cost * market.curve.price_of_last(np.clip(left, market.low, 1.0))
        best.last, best.count = loss, number
        others = np.where(lists.mine < number - 1, market.cap, 0.0)
        best.own = np.where(inside, np.where(lists.mine == number - 1, loss, others), 0.0)
        return best

    def _tightest(self, lists: Lists) -> FloatArray:
        """Return about the price at which the least bound is largest: it is concave in the price."""
        price, every = np.full(lists.count.size, self._price), np.arange(lists.count.size)
        low, high = np.zeros(price.size), np.full(price.size, math.inf)
        for step in range(_PRICES):
            bound, _, supplied = self._bounds(lists, price)
            supply = supplied[every, bound.argmin(axis=1)]
            dear = supply > self._market.demanded(price)[0]
            low, high = np.where(dear, low, price), np.where(dear, price, high)
            far = math.exp(min(2.0 ** (step - 4), 8.0))
            middle = np.sqrt(low) * np.sqrt(high)
            if (high <= low * _CLOSE).all():
                break
            price = np.where(low == 0.0, high / far, np.where(high == math.inf, low * far, middle))
        return price

    def _bounds(self, lists: Lists, price: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what the first ``k`` cost at least, nobody low, and with a low last, and what they supply.

        The costs are infinite where they cannot supply what is needed.
        """
        market = self._market
        costs, p = lists.costs, price[:, None]
        here, number = np.isfinite(costs), np.arange(1, costs.shape[1] + 1)[None, :]
        ratio = np.where(here, costs, 0.0) / p
        short, loss, _ = market.supplied(ratio)
        gain = np.where(here, np.where(costs > 0.0, costs * loss, 0.0) - p * (market.top - short), math.inf)
        least = 2.0 * np.sqrt(p) if market.needed is None else p * market.needed
        together, supplied_by = np.cumsum(gain, axis=1), np.cumsum(market.top - short, axis=1)
        dear = float(market.curve.loss_of(np.array(market.low)))
        last = np.minimum(0.0, np.where(here, costs * dear - p * market.low, math.inf))
        high = least + together
        low = least + np.concatenate([np.zeros((costs.shape[0], 1)), together[:, :-1]], axis=1) + last
        possible = here & (number >= 2)
        if market.needed is None:
            return np.where(possible, high, math.inf), np.where(possible, low, math.inf), supplied_by
        free = lists.free[:, None]
        possible = here & (number >= free + 2)
        supplied = free * market.top + (number - free) * market.low  # at least
        enough = possible & (supplied <= market.needed) & (number * market.top >= market.needed)
        some = possible & (supplied - market.low <= market.needed)
        return np.where(enough, high, math.inf), np.where(some, low, math.inf), supplied_by

    def _enough_for_nothing(self, lists: Lists, moved: FloatArray, best: Bought) -> None:
        """Find where people who ask for nothing reach a given error alone: they share the work, and nothing is paid."""
        market = self._market
        if market.needed is None:
            return
        free = lists.free
        enough = np.flatnonzero((free > 0) & (free * market.top >= market.needed))
        if enough.size:
            share = market.curve.loss_of(market.needed / free[enough])
            best.value[enough], best.error[enough], best.free[enough] = 0.0, 1.0 / market.needed, share
            best.own[enough] = np.where(moved[enough] == 0.0, share, 0.0)


class SeparateRule:
    """One rule in each stratum, for a price of the error ``Σ ℓ_g²/Λ_g``: that of a stratum is ``A·ℓ_g²``."""

    def __init__(self, costs: FloatArray, strata: Strata, made: Callable[[IndexArray, float], Rule]) -> None:
        self._codes, self._costs = strata.codes, costs
        self._rows = [np.flatnonzero(strata.codes == one) for one in range(strata.count)]
        self._place = np.zeros(costs.size, dtype=np.intp)
        self._rules: list[Rule] = []
        for rows, weight in zip(self._rows, strata.weights.tolist(), strict=True):
            self._place[rows] = np.arange(rows.size)
            self._rules.append(made(rows, weight))
        self._scale = np.square(strata.weights)
        self._base = [self._as_it_is(stratum) for stratum in range(strata.count)]

    def _as_it_is(self, stratum: int) -> tuple[FloatArray, float, float]:
        costs = self._costs[self._rows[stratum]]
        row = int(np.argmin(costs))
        return self._rules[stratum].everybody(row, float(costs[row]))

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """Return the purchase if person ``rows[j]`` had cost ``costs[j]``, for every j."""
        loss, mse, value = (np.zeros(rows.size) for _ in range(3))
        for stratum, rule in enumerate(self._rules):
            mine = np.flatnonzero(self._codes[rows] == stratum)
            if mine.size == 0:
                continue
            found = rule.at(self._place[rows[mine]], costs[mine])
            others = [one for place, one in enumerate(self._base) if place != stratum]
            rest = [scale for place, scale in enumerate(self._scale.tolist()) if place != stratum]
            loss[mine] = found.loss
            mse[mine] = self._scale[stratum] * found.mse + sum(a * b[1] for a, b in zip(rest, others, strict=True))
            value[mine] = found.value + sum(one[2] for one in others)
        return Answers(loss, mse, value)

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Return everybody's privacy loss, the error and the objective if person ``row`` had that cost."""
        losses = np.zeros(self._costs.size)
        mse = value = 0.0
        for stratum, (rows, base) in enumerate(zip(self._rows, self._base, strict=True)):
            moved = int(self._codes[row]) == stratum
            found = self._rules[stratum].everybody(int(self._place[row]), cost) if moved else base
            losses[rows] = found[0]
            mse, value = mse + self._scale[stratum] * found[1], value + found[2]
        return losses, float(mse), float(value)
