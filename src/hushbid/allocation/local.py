"""The local optimum in one stratum, exactly: any demand, either curve, with or without a cap, by one marginal seller.

In normal form (`local_problem`), people at sorted costs ``ψ_1 ≤ ψ_2 ≤ …`` choose losses ``0 ≤ y ≤ e``; the objective is
``Σ ψ_j·y_j``, plus ``κ/Λ`` for the error, ``Λ = Σ q(y_j)``. Swapping shows that the active are the cheapest;
two people on the convex branch of ``q`` could trade, so at most one is, the last. At the price ``P`` everybody else is
at the *reply*, ``min(high root, e)`` (``e`` if that is below the inflection). Let ``S_k(P)`` be what the replies of the
first ``k`` supply, and ``w`` the largest ``q(y)/y`` up to ``e``: a person is worth their cost if ``ψ ≤ w·P``.

**The marginal seller** is the first ``k`` with ``S_k(P) > wanted(P)`` at ``P = ψ_k/w``, the price at which they are
just worth their cost. *All before are bought from at their replies, nobody after is, and the marginal seller supplies
some x, from 0 to the precision at which* ``q(y)/y`` *is largest.* Proof. Let ``φ_j(P) < 0 ⟺ ψ_j < w·P`` be the least of
``ψ_j·y − P·q(y)`` over replies, ``D`` the least of ``κ/Λ + P·Λ``, whose slope is ``wanted``, and
``H_k = max D(P) + φ_1(P) + … + φ_k(P)``, at ``P_k``: the cost of ``k`` people on the concave branch. Then
``P_k < ψ_k/w`` exactly from the marginal seller on. So ``H_{k+1} ≥ H_k + φ_{k+1}(P_k) ≥ H_k`` from there on, and
``H_{k−1} ≥ H_k − φ_k(P_k) ≥ H_k`` before. With a last person on the convex branch ``k`` people cost at least
``D(P) + φ_1(P) + … + φ_{k−1}(P) + min(0, ψ_k·y° − P·q(y°))`` for every ``P``, ``y°`` being where the concave branch
begins, since a concave function of the precision is least at an end. At ``P_k`` that is ``H_k`` or more before the
marginal seller, and at ``P_{k−1}`` it is ``H_{k−1}`` or more after. ∎

**What the marginal seller supplies.** ``R(x)``, the least objective given ``x``, is what ``x`` costs, ``ψ·y(x)``, plus
a convex function with the slope ``−P*(x)``, the price at which the others meet what is left. At ``P = ψ·y'(x)`` let
``G(x) = S_{k−1}(P) + x − wanted(P)``: ``R`` rises where ``G > 0``. So the candidates are ``x = 0``, every upward
crossing of ``G``, and the right end. On the concave branch ``G`` rises, by at least 1 per unit. On the convex branch
``G' = 1 + M·h``, where ``M ≥ 0`` is the sum of ``dq/d ln P``, which rises with ``x``, and of ``wanted/2`` (0 at the
ends of what may be wanted), and ``h < 0``, the derivative of ``ln y'``, rises too. So over ``[x₁, x₂]`` both ``G`` and
``G'`` are bounded by their values at the ends, and halving finds every crossing (`_crossings`). If all others are at
the cap, ``G' = 1`` for an accuracy, and the one crossing is the remainder. Most lists need none of that:

* ``x = 0`` if ``ψ ≥ w·P_{k−1}``, and no ``x`` on the convex branch if ``ψ·y° ≥ q(y°)·P_{k−1}``: chords of ``R``.
* A crossing there with elasticity ``y·q'/q = η`` beats ``x = 0`` only if the mean of ``P*`` up to ``x`` exceeds
  ``η·P*(x)``, while for a price ``P_{k−1}/P*(x) ≤ (1 + x/Λ₀)²``, with ``Λ₀ = wanted(P_{k−1})``. That excludes all but
  the first few people.

Whoever costs nothing supplies all that the cap allows. If they are enough for all that is wanted, they share the work.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.local_problem import Demand
from hushbid.allocation.precision import Supply
from hushbid.allocation.queue import CostLists
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

_CLOSE = 1e-7  # a step of Newton's method this small, relatively, is the last: what it leaves is its square
_ROUNDS = 200
_LEAST_PRICE = 1e-300
_ROUNDING = 1e-14
_LEAST_PART = 1e-150


@dataclass(slots=True, eq=False)
class Optima:
    """The optimum for each of many lists, in normal form."""

    value: FloatArray  # the objective; infinite where the demand cannot be met
    price: FloatArray  # P; 0 where people who cost nothing are enough
    count: IndexArray  # how many are bought from
    marginal: FloatArray  # the loss of the last of them; not a number where they reply to the price like the others
    precision: FloatArray  # Λ

    def of(self, which: IndexArray) -> "Optima":
        """Return the optima of some of the lists."""
        return Optima(
            self.value[which], self.price[which], self.count[which], self.marginal[which], self.precision[which]
        )

    def losses(self, supply: Supply, costs: FloatArray, rank: IndexArray) -> FloatArray:
        """Return the loss of one person of each list, at these costs and after ``rank`` others, in normal form."""
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.where(costs > 0.0, supply.reply(costs / self.price), supply.cap)
        # the marginal seller, or all who share the work
        alone = ~np.isnan(self.marginal) & ((rank == self.count - 1) | (self.price == 0.0))
        return np.where(rank < self.count, np.where(alone, self.marginal, y), 0.0)


class Search:
    """The optimum of each of many lists."""

    def __init__(self, lists: CostLists, supply: Supply, demand: Demand) -> None:
        self.lists, self.supply, self.demand = lists, supply, demand

    def optima(self, number: IndexArray) -> Optima:
        """What the marginal seller of each list supplies, who has this number there, and all before them."""
        supply = self.supply
        others = number - 1
        every = np.arange(number.size)
        last = np.where(others > 0, self.lists.cost(every, np.maximum(others, 1)), 0.0)
        value, price = self.balance(every, others, last / supply.worthwhile)
        found = Optima(value, price, others, np.full(number.size, np.nan), price)
        # the marginal seller, unless they are not worth their cost at the others' price
        cost = self.lists.cost(every, number)
        which = np.flatnonzero((cost > 0.0) & (cost < supply.worthwhile * price))
        if which.size:
            _Marginal(self, which, others[which], cost[which]).take_best(found)
        # all at the cap supply exactly so much: what is wanted is off by rounding, of which more would cost the root
        last = self.lists.cost(every, np.maximum(found.count, 1))
        with np.errstate(invalid="ignore"):
            full = np.isnan(found.marginal) & (supply.reply(last / found.price) >= supply.cap)
        wanted = self.demand.wanted(np.maximum(found.price, _LEAST_PRICE))
        found.precision = np.where(full, found.count * supply.top, wanted)
        return found

    def bounds(self, number: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Return the largest dual value of each list, by weak duality a bound on its optimum, and what is wanted there.

        Its slope in the price is what is wanted less what those supply who are worth their cost, so it is largest
        where the others balance, or at the price at which the marginal seller is just worth their cost.
        """
        every, others, supply, demand = np.arange(number.size), number - 1, self.supply, self.demand
        last = np.where(others > 0, self.lists.cost(every, np.maximum(others, 1)), 0.0)
        price = self.balance(every, others, last / supply.worthwhile)[1]
        price = np.minimum(price, np.maximum(self.lists.cost(every, number) / supply.worthwhile, _LEAST_PRICE))
        with np.errstate(invalid="ignore"):
            short, spent, _ = self.lists.sums(every, others, price)
            wanted = demand.wanted(price)
            supplied = others * supply.top - short
            value = demand.cost(wanted) + price * (wanted + spent - supplied)
            value -= _ROUNDING * (value + price * (wanted + supplied))
        return np.where(price < np.inf, value * (1.0 - 1e-11), np.inf), wanted

    def marginal(self, start: int) -> IndexArray:
        """Each list's marginal seller, counted from 1; one past its end if everybody comes before them.

        From ``start`` by steps that double, or as many as what is missing takes at least; then between two by how much
        is missing there, and every third time halfway.
        """
        lists, supply = self.lists, self.supply
        low, high = np.zeros(lists.size.size, dtype=np.intp), lists.size + 1
        missing, spare = np.full(low.size, np.nan), np.full(low.size, np.nan)  # of what is wanted, at low and at high
        count, rounds, step = np.clip(start, 1, np.maximum(lists.size, 1)), 0, 1
        pending = np.flatnonzero(high > 1)
        while pending.size:
            at = count[pending]
            price = np.maximum(lists.cost(pending, at) / supply.worthwhile, _LEAST_PRICE)
            short = lists.sums(pending, at, price)[0]
            excess = at * supply.top - short - self.demand.of(pending).wanted(price)
            enough = excess > 0.0  # not so either where what is wanted is not a number
            above, below = pending[enough], pending[~enough]
            likely = np.fmin(np.abs(excess) / supply.top, lists.size[pending])  # each supplies no more
            low[below], missing[below] = count[below], -excess[~enough]
            high[above], spare[above] = count[above], excess[enough]
            left = high[pending] - low[pending] > 1
            pending, away = pending[left], np.maximum(likely[left], step)
            first, last = low[pending], high[pending]
            outward = count[pending] + np.where(np.isnan(spare[pending]), away, -away)
            share = 0.5 if rounds % 3 == 2 else missing[pending] / (missing[pending] + spare[pending])
            between = first + (last - first) * share
            ahead = np.where(np.isnan(missing[pending] + spare[pending]), outward, between)
            count[pending] = np.clip(ahead.astype(np.intp), first + 1, last - 1)
            rounds, step = rounds + 1, 2 * step
        return high

    def balance(self, which: IndexArray, count: IndexArray, least: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value and price where the replies of the first ``count`` are what is wanted; infinite if nowhere.

        What they fall short of the cap, and what is wanted of what need not be, both fall with the price; their
        logarithm is nearly linear in that of the price, and convex where nobody is at the cap. So Newton's method for
        the logarithms, from the ``least`` price that is possible.
        """
        demand, supply = self.demand.of(which), self.supply
        slack = count * supply.top - demand.least
        # if all at the cap just meet the least that is wanted: where all are, and no more is wanted
        full = (slack == 0.0) & (count > 0) & (supply.cap < math.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            at_cap = np.maximum(least * supply.worthwhile / (supply.corner or math.inf), demand.worth / demand.least**2)
            # all at the cap supply no less than is wanted
            least = np.maximum(least, demand.worth / (count * supply.top) ** 2)
        low = np.maximum(np.where(full, np.maximum(least, at_cap), least), _LEAST_PRICE)
        possible = full | (slack > 0.0)
        value, price = np.full(low.size, np.inf), np.where(possible, low, np.inf)
        high, pending = np.full(low.size, np.inf), np.flatnonzero(possible)
        for _ in range(_ROUNDS):
            if pending.size == 0:
                break
            now = price[pending]
            short, spent, change = self.lists.sums(which[pending], count[pending], now)
            here = demand.of(pending)
            wanted = here.wanted(now)
            excess = short + (wanted - here.least)
            missing = excess - slack[pending]
            total = change + here.change(wanted)
            low[pending] = np.where(excess >= slack[pending], now, low[pending])
            high[pending] = np.where(excess <= slack[pending], now, high[pending])
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                move = np.log(excess / slack[pending]) * excess / total
                ahead = now * np.exp(np.clip(move, -60.0, 60.0))
            close = np.abs(move) <= _CLOSE
            inside = close | ((low[pending] < ahead) & (ahead < high[pending]))
            between = np.sqrt(low[pending]) * np.sqrt(np.minimum(high[pending], 1e300))
            price[pending] = np.where(inside, ahead, between)
            # the dual value: its slope in P is what is missing, so after the last step it is right to third order
            value[pending] = now * (spent + missing) + here.cost(wanted)
            value[pending] += 0.5 * missing * np.where(close, ahead - now, 0.0)
            pending = pending[~close & (high[pending] > low[pending] * (1.0 + 1e-15))]
        return value, price


class _Marginal:
    """What the marginal seller of each list supplies, given the others before them."""

    def __init__(self, search: Search, which: IndexArray, others: IndexArray, cost: FloatArray) -> None:
        self._search, self._supply, self._demand = search, search.supply, search.demand.of(which)
        self._which, self._others, self._cost = which, others, cost
        self._slack = others * self._supply.top - self._demand.least

    def take_best(self, found: Optima) -> None:
        """Replace optima without the marginal seller by better ones with them."""
        supply, price = self._supply, found.price[self._which]
        turn, best, every = supply.turn_precision, supply.best_precision, np.arange(self._which.size)
        # on the concave branch: one root or none
        low, high = np.full(every.size, turn), np.full(every.size, best)
        x, value, beyond = self._root(every, low, high, high)
        self._take(found, every, x, value)
        if beyond.any():
            self._take_cap(found, np.flatnonzero(beyond))
        # on the convex branch, where the two tests of the docstring leave it open
        falls = self._demand.fall(price, turn) > supply.turn_elasticity
        possible = (self._cost * supply.turn < turn * price) & falls
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
        value, price = self._search.balance(which, count, self._cost[at] * steep)
        better = value < found.value[which]
        which = which[better]
        found.value[which], found.price[which], found.count[which] = value[better], price[better], count[better]

    def _excess(self, at: IndexArray, x: FloatArray) -> tuple[FloatArray, ...]:
        """``G``, the sum of ``dq/d ln P``, ``wanted``, ``h`` of the docstring, and the value if ``x`` were a root."""
        demand, curve = self._demand.of(at), self._supply.curve
        steep, growth = curve.steepness(x)
        price = self._cost[at] * steep
        short, spent, change = self._search.lists.sums(self._which[at], self._others[at], price)
        wanted = demand.wanted(price)
        excess = self._slack[at] + x - short - (wanted - demand.least)
        value = price * (spent - excess) + demand.cost(wanted) + self._cost[at] * curve.loss(x)
        return excess, change, wanted, growth, value

    def _root(
        self, at: IndexArray, low: FloatArray, high: FloatArray, guess: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Where ``G`` passes zero between ``low`` and ``high``, where it rises: by Newton's method in a bracket.

        Gives the root, its value, infinite if there is none, and whether ``G`` is negative up to ``high``.
        """
        low, high, x = low.copy(), high.copy(), np.minimum(np.maximum(guess, low), high)
        left, right = low.copy(), high.copy()
        value, beyond = np.full(x.size, np.inf), np.zeros(x.size, dtype=bool)
        pending, tried = np.arange(x.size), np.zeros((2, x.size), dtype=bool)
        for _ in range(_ROUNDS):
            if pending.size == 0:
                break
            now = x[pending]
            excess, change, wanted, growth, reached = self._excess(at[pending], now)
            total = change + self._demand.of(at[pending]).change(wanted)
            low[pending] = np.where(excess < 0.0, now, low[pending])
            high[pending] = np.where(excess < 0.0, high[pending], now)
            step = excess / np.maximum(1.0 + total * growth, 1e-300)
            ahead = np.minimum(np.maximum(now - step, left[pending]), right[pending])
            close = np.abs(step) <= _CLOSE * now
            # each end is tried once; inside, halve the bracket where Newton leaves it
            within = (ahead > low[pending]) & (ahead < high[pending])
            tried[:, pending] |= np.stack([now == left[pending], now == right[pending]])
            ends = np.stack([ahead == left[pending], ahead == right[pending]])
            untried = (ends & ~tried[:, pending]).any(axis=0)
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
        both_ends = np.stack([both, *self._excess(np.append(at, at), both)[:4]])
        ends = both_ends[:, : at.size], both_ends[:, at.size :]
        found = [(at[:0], start[:0], start[:0])]
        for _ in range(_ROUNDS):
            if at.size == 0:
                break
            (x1, g1, m1, w1, h1), (x2, g2, m2, w2, h2) = ends
            # what is wanted rises with x; at the ends of what may be wanted it does not
            inside = (self._demand.least[at] < w1) & (w2 < self._demand.most[at])
            m1, m2 = m1 + np.where(inside, 0.5 * w1, 0.0), m2 + np.where(inside | (w1 < w2), 0.5 * w2, 0.0)
            width, crosses = x2 - x1, (g1 < 0.0) & (g2 >= 0.0)
            rising = (1.0 + m2 * h1 > 0.0) | (width <= 1e-13 * x2)
            keep = np.flatnonzero(rising & crosses)
            found.append((at[keep], x1[keep], x2[keep]))
            hopeless = (g1 < -width) | (g2 > width) | (1.0 + m1 * h2 < 0.0)
            rest = np.flatnonzero(~(rising | hopeless))
            at, left, right = at[rest], ends[0][:, rest], ends[1][:, rest]
            wide = right[0] > 4.0 * left[0]
            middle = np.where(wide, np.sqrt(left[0] * right[0]), 0.5 * (left[0] + right[0]))
            between = np.stack([middle, *self._excess(at, middle)[:4]])
            at, ends = np.append(at, at), (np.hstack([left, between]), np.hstack([between, right]))
        whose, low, high = zip(*found, strict=True)
        return np.concatenate(whose), np.concatenate(low), np.concatenate(high)
