"""The local optimum, exactly: a price or an accuracy, either curve, with or without a cap, by one marginal seller.

In normal form (`local_problem`), people at sorted costs ``ψ_1 ≤ ψ_2 ≤ …`` choose losses ``0 ≤ y ≤ e``; the objective is
``Σ ψ_j·y_j``, plus what the precision ``Λ = Σ q(y_j)`` leaves undone. Swapping shows that the active are the cheapest;
two people on the convex branch of ``q`` could trade, so at most one is, the last. At the price ``P`` everybody else is
at the *reply*, ``min(high root, e)`` (``e`` if that is below the inflection). Let ``S_k(P)`` be what the replies of the
first ``k`` supply, and ``w`` the largest ``q(y)/y`` up to ``e``: a person is worth their cost if ``ψ ≤ w·P``.

**The marginal seller** is the first ``k`` with ``S_k(P) > wanted(P)`` at ``P = ψ_k/w``, the price at which they are
just worth their cost. *All before are bought from at their replies, nobody after is, and the marginal seller supplies
some x, from 0 to the precision at which* ``q(y)/y`` *is largest.* Proof. Let ``φ_j(P) < 0 ⟺ ψ_j < w·P`` be the least of
``ψ_j·y − P·q(y)`` over replies, ``D`` the integral of ``wanted``, and ``H_k = max D(P) + φ_1(P) + … + φ_k(P)``, at
``P_k``: the cost of ``k`` people on the concave branch. Then ``P_k < ψ_k/w`` exactly from the marginal seller on. So
``H_{k+1} ≥ H_k + φ_{k+1}(P_k) ≥ H_k`` from there on, and ``H_{k−1} ≥ H_k − φ_k(P_k) ≥ H_k`` before. With a last person
on the convex branch ``k`` people cost at least ``D(P) + φ_1(P) + … + φ_{k−1}(P) + min(0, ψ_k·y° − P·q(y°))`` for every
``P``, ``y°`` being where the concave branch begins, since a concave function of the precision is least at an end. At
``P_k`` that is ``H_k`` or more before the marginal seller, and at ``P_{k−1}`` it is ``H_{k−1}`` or more after. ∎

**What the marginal seller supplies.** ``R(x)``, the least objective given ``x``, is what ``x`` costs, ``ψ·y(x)``, plus
a convex function with the slope ``−P*(x)``, the price at which the others meet what is left. At ``P = ψ·y'(x)`` let
``G(x) = S_{k−1}(P) + x − wanted(P)``: ``R`` rises where ``G > 0``. So the candidates are ``x = 0``, every upward
crossing of ``G``, and the right end. On the concave branch ``G`` rises, by at least 1 per unit. On the convex branch
``G' = 1 + M·h``, where ``M ≥ 0``, the sum of ``dq/d ln P`` and of ``s·wanted``, rises with ``x``, and ``h < 0``, the
derivative of ``ln y'``, rises too. So over ``[x₁, x₂]`` both ``G`` and ``G'`` are bounded by their values at the ends,
and halving finds every crossing (`_crossings`). Most lists need none of that:

* ``x = 0`` if ``ψ ≥ w·P_{k−1}``, and no ``x`` on the convex branch if ``ψ·y° ≥ q(y°)·P_{k−1}``: chords of ``R``.
* A crossing there with elasticity ``y·q'/q = η`` beats ``x = 0`` only if the mean of ``P*`` up to ``x`` exceeds
  ``η·P*(x)``, while ``P_{k−1}/P*(x) ≤ (1 + x/Λ₀)^{1/s}``, with ``Λ₀ = wanted(P_{k−1})``. For a price that excludes all
  but the first few people.

Whoever costs nothing supplies all that the cap allows. If they are enough for an accuracy, they share the work.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hushbid.allocation.local_problem import Demand, Supply, normal_form
from hushbid.allocation.lower_bounds import local_accuracy_lower_bound, local_lower_bound
from hushbid.allocation.merit_order import Deviations, MeritOrder, PrefixSums
from hushbid.allocation.problem import Allocation, Problem, workable
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_CLOSE = 1e-7
"""A step of Newton's method this small, relatively, is the last: what it leaves is its square."""

_ROUNDS = 200
_PARTS, _FEW = 8, 256
"""Intervals are divided into so many parts at a time, up to so many: calls of NumPy then cost more than evaluations."""

_LEAST_PRICE = 1e-300
_LEAST_PART = 1e-150
_SELECTED = 512
SPARE = 8
"""One person's move changes who is marginal by fewer: whoever is worth their cost supplies half of what anybody can."""


@dataclass(slots=True, eq=False)
class Optima:
    """The optimum for each of many lists, in normal form."""

    value: FloatArray
    """The objective; infinite where the demand cannot be met."""

    price: FloatArray
    """``P``; 0 where people who cost nothing are enough."""

    count: IndexArray
    """How many are bought from."""

    marginal: FloatArray
    """The loss of the last of them; not a number where they reply to the price like the others."""


class LocalMarket:
    """People in merit order and their normal form: what the optimum, and every deviation from it, is found from."""

    def __init__(self, problem: Problem, max_loss: float, *, spare: int) -> None:
        """Select the cheapest people, with at least ``spare`` after the marginal seller if there are so many."""
        self.form = form = normal_form(problem, max_loss)
        self.costs = workable(problem.costs, form.least, form.most)
        finite, size = int(np.count_nonzero(self.costs < math.inf)), _SELECTED
        while True:
            self.order = MeritOrder(self.costs, min(size, finite), problem.tie_key)
            normal = self.order.costs / form.scale
            self.start = marginal_seller(normal, form.supply, form.demand)
            if self.start + spare <= size or size >= finite:
                break
            size *= 8
        supply = form.supply
        self.sums = PrefixSums(normal, supply.terms, steepest=supply.curve.steepest, corner=supply.corner)
        self.free = int(np.count_nonzero(normal == 0.0))
        """How many people cost nothing."""

    def present(self) -> Optima:
        """The optimum, with everybody at their cost."""
        search = _Search(Deviations.none(self.sums), self.form.supply, self.form.demand)
        return self._with_shared_work(search.optima(np.array([self.start])), np.array([self.free]))

    def optima(self, deviations: Deviations, free: IndexArray) -> Optima:
        """The optimum of each list, in which ``free`` people cost nothing."""
        search = _Search(deviations, self.form.supply, self.form.demand)
        return self._with_shared_work(search.optima(search.marginal(self.start)), free)

    def _with_shared_work(self, found: Optima, free: IndexArray) -> Optima:
        """Let people who cost nothing share the work where they are enough."""
        supply, demand = self.form.supply, self.form.demand
        shared = (free > 0) & (demand.most <= free * supply.top)
        found.value[shared], found.price[shared], found.count[shared] = 0.0, 0.0, free[shared]
        with np.errstate(divide="ignore"):
            found.marginal[shared] = supply.curve.loss(demand.amount / free[shared])
        return found

    def losses(self, found: Optima, which: IndexArray, costs: FloatArray, rank: IndexArray) -> FloatArray:
        """The loss of one person of each list ``which``, at these costs in normal form and after ``rank`` others."""
        price, marginal = found.price[which], found.marginal[which]
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.where(costs > 0.0, self.form.supply.reply(costs / price), self.form.supply.cap)
        # the marginal seller, or all who share the work
        y = np.where(~np.isnan(marginal) & ((rank == found.count[which] - 1) | (price == 0.0)), marginal, y)
        return self.form.losses(np.where(rank < found.count[which], y, 0.0))


def solve_local(problem: Problem, max_loss: float = math.inf) -> Allocation:
    """Solve the local problem with one variance and one cap for all, globally."""
    market = LocalMarket(problem, max_loss, spare=1)
    form, rows = market.form, market.order.rows
    form.refuse_unreachable(rows.size)
    found = market.present()
    count, price = int(found.count[0]), float(found.price[0])
    first = np.zeros(count, dtype=np.intp)
    losses = market.losses(found, first, market.sums.costs[:count], np.arange(count))
    precision = form.supply.curve.precisions(losses, form.root**2)
    privacy_loss, weights = np.zeros(problem.costs.size), np.zeros(problem.costs.size)
    privacy_loss[rows[:count]], weights[rows[:count]] = losses, precision / precision.sum()
    return Allocation(
        privacy_loss=privacy_loss,
        weights=weights,
        mse=float(form.demand.mse(found.price)[0]),
        objective=float(form.money(found.value)[0]),
        active=count,
        setting="local",
        error_weight=form.demand.error_weight(price),
        _certify=problem.certifying(_bound_of(problem, max_loss)),
    )


def least_objective(problem: Problem, max_loss: float = math.inf) -> float:
    """What no local allocation's objective can be below, found without solving."""
    normal_form(problem, max_loss)  # refuses what is too extreme
    return _bound_of(problem, max_loss)(problem.costs, problem.variance, problem.goal.number)


def _bound_of(problem: Problem, max_loss: float) -> Callable[[FloatArray, Any, float], float]:
    """The lower bound of problems like this one, as a function of costs, variance and the goal's number."""
    kinds = {"price": local_lower_bound, "accuracy": local_accuracy_lower_bound}
    return partial(kinds[problem.goal.kind], max_loss=max_loss, response=problem.response)


def marginal_seller(costs: FloatArray, supply: Supply, demand: Demand) -> int:
    """The marginal seller's number in one list, counted from 1; one past its end if everybody comes before them."""
    price = np.maximum(costs / supply.worthwhile, _LEAST_PRICE)
    wanted, number = demand.wanted(price), np.arange(1.0, costs.size + 1.0)
    # each of k people supplies no more than at the cap, and no less than where q(y)/y is largest
    low = int(np.searchsorted(number * supply.top > wanted, True))
    high = int(np.searchsorted(number * supply.best_precision > wanted, True)) + 1
    while high - low > 1:
        count = (low + high) // 2
        short = float(supply.terms(costs[:count] / price[count - 1])[0].sum())
        low, high = (low, count) if count * supply.top - short > wanted[count - 1] else (count, high)
    return high


class _Search:
    """The optimum of each of many lists."""

    def __init__(self, lists: Deviations, supply: Supply, demand: Demand) -> None:
        self.lists, self.supply, self.demand = lists, supply, demand

    def optima(self, number: IndexArray) -> Optima:
        """What the marginal seller of each list supplies, who has this number there, and all before them."""
        supply = self.supply
        others = number - 1
        every = np.arange(number.size)
        last = np.where(others > 0, self.lists.cost(every, np.maximum(others, 1)), 0.0)
        value, price, total = self.balance(every, others, last / supply.worthwhile)
        found = Optima(value, price, others, np.full(number.size, np.nan))
        # the marginal seller, unless they are not worth their cost at the others' price
        cost = self.lists.cost(every, number)
        which = np.flatnonzero((cost > 0.0) & (cost < supply.worthwhile * price))
        if which.size:
            _Marginal(self, which, others[which], cost[which]).take_best(found, total[which])
        return found

    def marginal(self, start: int) -> IndexArray:
        """What `marginal_seller` finds, for each list: from ``start`` by steps that double, then by halving."""
        lists, supply = self.lists, self.supply
        low, high = np.zeros(lists.size.size, dtype=np.intp), lists.size + 1
        count, step = np.clip(start, 1, np.maximum(lists.size, 1)), 1
        turned, before = np.zeros(low.size, dtype=bool), np.zeros(low.size, dtype=np.intp)
        pending = np.flatnonzero(high > 1)
        while pending.size:
            at = count[pending]
            price = np.maximum(lists.cost(pending, at) / supply.worthwhile, _LEAST_PRICE)
            short = lists.sums(pending, at, price)[0]
            enough = at * supply.top - short > self.demand.wanted(price)
            high[pending], low[pending] = np.where(enough, at, high[pending]), np.where(enough, low[pending], at)
            sign = np.where(enough, -1, 1)
            turned[pending] |= sign == -before[pending]
            before[pending] = sign
            halfway = (low[pending] + high[pending]) // 2
            ahead = np.clip(at + sign * step, low[pending] + 1, high[pending] - 1)
            count[pending] = np.where(turned[pending], halfway, ahead)
            pending, step = pending[high[pending] - low[pending] > 1], 2 * step
        return high

    def balance(
        self, which: IndexArray, count: IndexArray, least: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, price and ``M`` where the replies of the first ``count`` are what is wanted; infinite if nowhere.

        What they fall short of the cap, and what is wanted of what need not be, both fall with the price; their
        logarithm is nearly linear in that of the price, and convex where nobody is at the cap. So Newton's method for
        the logarithms, from the ``least`` price that is possible.
        """
        demand, supply, low = self.demand, self.supply, np.maximum(least, _LEAST_PRICE)
        slack = count * supply.top - demand.least
        value, price, total = np.full(low.size, np.inf), np.where(slack > 0.0, low, np.inf), np.zeros(low.size)
        high, pending = np.full(low.size, np.inf), np.flatnonzero(slack > 0.0)
        for _ in range(_ROUNDS):
            if pending.size == 0:
                break
            now = price[pending]
            short, spent, change = self.lists.sums(which[pending], count[pending], now)
            wanted = demand.wanted(now)
            excess = short + (wanted - demand.least)
            missing = excess - slack[pending]
            total[pending] = change + demand.elasticity * wanted
            low[pending] = np.where(excess >= slack[pending], now, low[pending])
            high[pending] = np.where(excess <= slack[pending], now, high[pending])
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                move = np.log(excess / slack[pending]) * excess / total[pending]
                ahead = now * np.exp(np.clip(move, -60.0, 60.0))
            close = np.abs(move) <= _CLOSE
            inside = close | ((low[pending] < ahead) & (ahead < high[pending]))
            between = np.sqrt(low[pending]) * np.sqrt(np.minimum(high[pending], 1e300))
            price[pending] = np.where(inside, ahead, between)
            # the dual value: its slope in P is what is missing, so after the last step it is right to third order
            value[pending] = now * (spent + demand.surplus * wanted + missing)
            value[pending] += 0.5 * missing * np.where(close, ahead - now, 0.0)
            pending = pending[~close & (high[pending] > low[pending] * (1.0 + 1e-15))]
        return value, price, total


class _Marginal:
    """What the marginal seller of each list supplies, given the others before them."""

    def __init__(self, search: _Search, which: IndexArray, others: IndexArray, cost: FloatArray) -> None:
        self._search, self._supply, self._demand = search, search.supply, search.demand
        self._which, self._others, self._cost = which, others, cost
        self._slack = others * self._supply.top - self._demand.least

    def take_best(self, found: Optima, total: FloatArray) -> None:
        """Replace optima without the marginal seller by better ones with them; ``total`` is ``M`` without them."""
        supply, price = self._supply, found.price[self._which]
        turn, best, every = supply.turn_precision, supply.best_precision, np.arange(self._which.size)
        # on the concave branch: one root or none; the others' price falls by about x over M
        guess = np.full(every.size, best)
        for _ in range(2):
            likely = np.minimum(price, 1e300) * np.exp(-np.minimum(guess / np.maximum(total, 1e-3), 60.0))
            guess = np.minimum(supply.curve.precision(supply.reply(self._cost / likely)), best)
        low, high = np.full(every.size, turn), np.full(every.size, best)
        x, value, beyond = self._root(every, low, high, guess)
        self._take(found, every, x, value)
        if beyond.any():
            self._take_cap(found, np.flatnonzero(beyond))
        # on the convex branch, where the two tests of the docstring leave it open
        least = np.maximum(self._demand.wanted(price), _LEAST_PART)
        fall = self._demand.price_ratio(1.0 + turn / least)
        possible = (self._cost * supply.turn < turn * price) & (fall > supply.turn_elasticity)
        if possible.any():
            at, low, high = self._crossings(np.flatnonzero(possible))
            x, value, _ = self._root(at, low, high, 0.5 * (low + high))
            order = np.lexsort((value, at))  # one list may have several: the best of each
            best_of_each = order[np.append(True, np.diff(at[order]) > 0)[: at.size]]
            self._take(found, at[best_of_each], x[best_of_each], value[best_of_each])

    def _take(self, found: Optima, at: IndexArray, x: FloatArray, value: FloatArray) -> None:
        """Take what is better where the marginal sellers of the lists ``at`` supply ``x``."""
        better = value < found.value[self._which[at]]
        at, x = at[better], x[better]
        which, curve = self._which[at], self._supply.curve
        found.value[which], found.price[which] = value[better], self._cost[at] * curve.steepness(x)[0]
        found.count[which], found.marginal[which] = self._others[at] + 1, curve.loss(x)

    def _take_cap(self, found: Optima, at: IndexArray) -> None:
        """Take what is better with the marginal seller, and so everybody before them, at the cap."""
        which, count = self._which[at], self._others[at] + 1
        steep = float(self._supply.curve.steepness(np.array(self._supply.best_precision))[0])
        value, price, _ = self._search.balance(which, count, self._cost[at] * steep)
        better = value < found.value[which]
        which = which[better]
        found.value[which], found.price[which], found.count[which] = value[better], price[better], count[better]

    def _excess(self, at: IndexArray, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """``G``, ``M`` and ``h`` of the docstring, and the value if ``x`` were a root."""
        demand, curve = self._demand, self._supply.curve
        steep, growth = curve.steepness(x)
        price = self._cost[at] * steep
        short, spent, change = self._search.lists.sums(self._which[at], self._others[at], price)
        wanted = demand.wanted(price)
        excess = self._slack[at] + x - short - (wanted - demand.least)
        value = price * (spent + demand.surplus * wanted - excess) + self._cost[at] * curve.loss(x)
        return excess, change + demand.elasticity * wanted, growth, value

    def _root(
        self, at: IndexArray, low: FloatArray, high: FloatArray, guess: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Where ``G`` passes zero between ``low`` and ``high``, where it rises: by Newton's method in a bracket.

        Gives the root, its value, infinite if there is none, and whether ``G`` is negative up to ``high``.
        """
        low, high, x = low.copy(), high.copy(), np.minimum(np.maximum(guess, low), high)
        left, right = low.copy(), high.copy()
        value, beyond = np.full(x.size, np.inf), np.zeros(x.size, dtype=bool)
        pending = np.arange(x.size)
        for _ in range(_ROUNDS):
            if pending.size == 0:
                break
            now = x[pending]
            excess, total, growth, reached = self._excess(at[pending], now)
            low[pending] = np.where(excess < 0.0, now, low[pending])
            high[pending] = np.where(excess < 0.0, high[pending], now)
            step = excess / np.maximum(1.0 + total * growth, 1e-300)
            ahead = np.minimum(np.maximum(now - step, left[pending]), right[pending])
            close = np.abs(step) <= _CLOSE * now
            # an end counts as long as it was not tried; inside, halve the bracket where Newton leaves it
            within = (ahead > low[pending]) & (ahead < high[pending])
            untried = (ahead != now) & ((ahead == left[pending]) | (ahead == right[pending]))
            x[pending] = np.where(close | within | untried, ahead, 0.5 * (low[pending] + high[pending]))
            # the value's slope in P is −G: after the last step it is right to third order
            price = self._cost[at[pending]] * self._supply.curve.steepness(now)[0]
            value[pending] = reached + 0.5 * excess * price * growth * np.where(close, step, 0.0)
            none = ~close & (now == left[pending]) & (excess > 0.0)
            over = ~close & (now == right[pending]) & (excess < 0.0)
            value[pending[none | over]], beyond[pending[over]] = np.inf, True
            pending = pending[~(close | none | over) & (high[pending] - low[pending] > 1e-15 * now)]
        return x, value, beyond

    def _crossings(self, at: IndexArray) -> tuple[IndexArray, FloatArray, FloatArray]:
        """Brackets of all places on the convex branch where ``G`` passes zero upwards: whose, from where, up to where.

        ``G`` rises by no more than ``x``, so it has no zero in ``[x₁, x₂]`` if ``G(x₁) < x₁ − x₂`` or
        ``G(x₂) > x₂ − x₁``. ``G'`` is between ``1 + M(x₂)·h(x₁)`` and ``1 + M(x₁)·h(x₂)``: where that has one sign
        there is at most one upward crossing. What is left is divided.
        """
        start = np.maximum(-self._slack[at] * (1.0 - 1e-9), _LEAST_PART)
        at, start = (one[start < self._supply.turn_precision] for one in (at, start))
        both = np.append(start, np.full(at.size, self._supply.turn_precision))
        both_ends = np.stack([both, *self._excess(np.append(at, at), both)[:3]])
        ends = both_ends[:, : at.size], both_ends[:, at.size :]
        found = [(at[:0], start[:0], start[:0])]
        for _ in range(_ROUNDS):
            if at.size == 0:
                break
            (x1, g1, m1, h1), (x2, g2, m2, h2) = ends
            width, crosses = x2 - x1, (g1 < 0.0) & (g2 >= 0.0)
            rising = (1.0 + m2 * h1 > 0.0) | (width <= 1e-13 * x2)
            keep = np.flatnonzero(rising & crosses)
            found.append((at[keep], x1[keep], x2[keep]))
            hopeless = (g1 < -width) | (g2 > width) | (1.0 + m1 * h2 < 0.0)
            rest = np.flatnonzero(~(rising | hopeless))
            at, ends = self._divided(at[rest], ends[0][:, rest], ends[1][:, rest])
        whose, low, high = zip(*found, strict=True)
        return np.concatenate(whose), np.concatenate(low), np.concatenate(high)

    def _divided(
        self, at: IndexArray, left: FloatArray, right: FloatArray
    ) -> tuple[IndexArray, tuple[FloatArray, FloatArray]]:
        """Return the parts of intervals: whose, and both ends; wide ones in equal ratios, and few in more parts."""
        parts = _PARTS if at.size <= _FEW else 2
        x1, x2, share = left[0, :, None], right[0, :, None], np.arange(1, parts) / parts
        inner = np.where(x2 > 4.0 * x1, x1 ** (1.0 - share) * x2**share, x1 + (x2 - x1) * share).ravel()
        between = np.stack([inner, *self._excess(np.repeat(at, parts - 1), inner)[:3]])
        grid = np.concatenate([left[:, :, None], between.reshape(4, at.size, parts - 1), right[:, :, None]], axis=2)
        ends = grid[:, :, :-1].reshape(4, -1), grid[:, :, 1:].reshape(4, -1)
        return np.repeat(at, parts), ends
