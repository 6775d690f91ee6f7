"""The local optimum for a price of the error when nobody may lose more than one cap, exactly.

In the normal form of :mod:`hushbid.allocation.local`, with ``y ≤ e``. The active are still the cheapest ``k``. From
three on nobody is low: each is at her high root or at the cap, and at the cap if that is below ``√(2/3)``, where ``q'``
peaks. So the reply to a price ``P`` is the lesser of high root and cap, and ``J_k``, where the supply is ``P^{-1/2}``,
is convex in ``k``. Somebody is worthwhile if ``ψ`` is at most ``P`` times the largest ``q(y)/y`` up to the cap. Let
``k`` be the first number of people who, at the price that makes the last just worthwhile, supply more than
``P^{-1/2}``: then ``k − 1`` or ``k`` is best.

One person takes ``min((4/ψ)^{1/3}, e)``. Of two the second can be low, beside a first at the cap or near it. If she
supplies ``z``, the price is ``ψ_2·y'(z)``; supply less ``P^{-1/2}`` falls and then rises, with the first at the
cap as well as with the first at her high root, so each has one minimum. (The argument of
:mod:`hushbid.allocation.local_accuracy`: half of ``P^{-1/2}`` joins ``σ``, and its logarithm grows by ``1/2``, less
than ``h``.)
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation.goals import Goal, Price
from hushbid.allocation.local import solve_local
from hushbid.allocation.local_accuracy import cheapest_rows, up_crossing
from hushbid.allocation.local_curves import LAPLACE, Curve, curve_of
from hushbid.allocation.local_queue import Moves, PrefixSums
from hushbid.allocation.lower_bounds import local_lower_bound
from hushbid.allocation.problem import HUGE, TINY, Allocation, Problem
from hushbid.arrays import FloatArray, IndexArray, as_number
from hushbid.errors import InputError

ONE_LOCAL_CAP = (
    "max_privacy_loss must be one number in the local setting: with one per person the optimum is NP-hard to find."
)

_LEAST = 1e-300
_CLOSE = 1e-9
_SELECTED = 512


@dataclass(frozen=True, slots=True)
class Supply:
    """What people supply who reply to a price as best they can between the turn of the curve and a cap."""

    curve: Curve
    cap: float
    """In normal form; infinite if there is none."""

    def reply(self, ratio: FloatArray) -> FloatArray:
        """The best loss, for a cost of ``ratio`` times the price."""
        curve = self.curve
        root = curve.high_root(np.clip(ratio, TINY, curve.steepest))
        y: FloatArray = np.clip(root, min(curve.turn, self.cap), self.cap)
        return y

    def terms(self, ratio: FloatArray) -> FloatArray:
        """``q``, ``ψ·y/P`` and ``dq/d ln P`` of that reply, in three rows."""
        y = self.reply(ratio)
        q = self.curve.precision(y)
        moving = (ratio < self.curve.steepest) & (y > self.curve.turn * (1.0 + 1e-7)) & (y < self.cap)
        return np.stack([q, ratio * y, np.where(moving, self.curve.change(y, q), 0.0)])

    @property
    def worthwhile(self) -> float:
        """The largest ``q(y)/y`` up to the cap."""
        if float(self.curve.loss(np.array(self.curve.enough))) <= self.cap:
            return self.curve.worthwhile
        return float(self.curve.precision(np.array(self.cap))) / self.cap


@dataclass(slots=True, eq=False)
class Capped:
    """The best purchase under the cap for each of many lists, in normal form."""

    value: FloatArray
    """``J``."""

    error: FloatArray
    """``1/Λ``."""

    count: IndexArray
    """How many are bought from."""

    price: FloatArray
    """``P``, to which everybody replies; not a number where ``pair`` says what the first two lose."""

    pair: FloatArray
    """What the first and the second lose, in two rows; only where at most two are bought from."""


def as_local_cap(max_loss: ArrayLike, goal: Goal) -> float:
    """One positive cap for all, infinite for none; refused where the optimum under it is not known to be found."""
    if np.ndim(max_loss) > 0:
        raise InputError(ONE_LOCAL_CAP, field="max_privacy_loss")
    cap = as_number(max_loss, "max_privacy_loss")
    if not cap > 0.0:
        raise InputError(f"max_privacy_loss must be positive, got {cap:g}.", field="max_privacy_loss")
    if cap < math.inf and not isinstance(goal, Price):
        raise InputError(
            "max_privacy_loss must be left out for an accuracy in the local setting: the cheapest purchase under both"
            f" is not known to be found exactly, got {cap:g}; a Price takes a max_privacy_loss.",
            field="max_privacy_loss",
        )
    return cap


def solve_local_capped(problem: Problem, max_loss: float) -> Allocation:
    """The global optimum of the local problem with ``privacy_loss ≤ max_loss`` (one variance for all)."""
    variance = refuse_vanishing(problem)
    if not problem.response:
        free = solve_local(problem)
        if float(free.privacy_loss.max()) <= max_loss:  # the best without a cap is best under it
            return free
    root, scale = math.sqrt(variance), problem.scale(variance)
    supply, size = Supply(curve_of(problem), max_loss * root), _SELECTED
    while True:
        rows = cheapest_rows(problem, size)
        rows = rows[problem.costs[rows] <= 1e20 * HUGE * scale]
        normal = problem.costs[rows] / scale
        start = first_dear(normal, supply)
        if start < rows.size or rows.size < size:
            break
        size *= 8
    sums = PrefixSums(normal, supply.terms)
    nobody = Moves(normal, sums, *(np.array([one]) for one in (normal.size, np.inf, normal.size)))
    best = best_purchases(nobody, supply, start)
    active = int(best.count[0])
    if math.isnan(best.price[0]):
        y = best.pair[:active, 0]
    else:
        y = supply.reply(normal[:active] / best.price[0])
    y = np.where(problem.costs[rows[:active]] == 0.0, np.inf, y)  # who asks for nothing gives all she may
    return _spread_out(problem, max_loss, rows[:active], np.minimum(y / root, max_loss))


def refuse_vanishing(problem: Problem) -> float:
    """The variance; refused where it is 0, or cannot be seen beside the noise."""
    assert isinstance(problem.variance, float)
    if problem.variance == 0.0 or problem.only_noise_counts(problem.variance):
        raise InputError(
            f"variance must be positive, and not vanish beside the noise, for a max_privacy_loss in the local setting,"
            f" got {problem.variance:g}.",
            field="variance",
        )
    return problem.variance


def first_dear(costs: FloatArray, supply: Supply) -> int:
    """The first ``k`` who supply more than the balance at the price that makes the last just worthwhile."""
    low, high, most = 0, costs.size + 1, supply.worthwhile
    while high - low > 1:
        count = (low + high) // 2
        price = max(float(costs[count - 1]) / most, _LEAST)
        supplied = float(supply.terms(costs[:count] / price)[0].sum())
        low, high = (low, count) if supplied * math.sqrt(price) > 1.0 else (count, high)
    return high


def best_purchases(moves: Moves, supply: Supply, start: int) -> Capped:
    """The best purchase from each list of at least one person, if the first too dear is near ``start``."""
    size = moves.size.size
    best = Capped(
        np.full(size, np.inf),
        np.full(size, np.inf),
        np.zeros(size, dtype=np.intp),
        np.full(size, np.nan),
        np.zeros((2, size)),
    )
    some = np.flatnonzero(moves.size >= 1)
    _alone(moves, some, supply, best)
    if supply.curve is LAPLACE:  # otherwise the second of two is never low
        _two(moves, np.flatnonzero(moves.size >= 2), supply.cap, best)
    count = _first_dear_of_each(moves, supply, start)
    for number in (count - 1, count):
        which = np.flatnonzero((number >= 1) & (number <= moves.size))
        value, price = _balance(moves, which, number[which], supply)
        better = value < best.value[which]
        which = which[better]
        best.value[which], best.price[which] = value[better], price[better]
        best.error[which], best.count[which] = np.sqrt(price[better]), number[which]
    return best


def _alone(moves: Moves, which: IndexArray, supply: Supply, best: Capped) -> None:
    """The cheapest alone."""
    cost = moves.cost(which, np.ones(which.size, dtype=np.intp))
    y = np.minimum(supply.curve.alone(np.maximum(cost, _LEAST)), supply.cap)
    best.error[which] = 1.0 / supply.curve.precision(y)
    best.value[which], best.count[which], best.pair[0, which] = best.error[which] + cost * y, 1, y


def _two(moves: Moves, which: IndexArray, cap: float, best: Capped) -> None:
    """The two cheapest, the first at the cap or at her high root, the second wherever her supply balances."""
    one, two = (moves.cost(which, np.full(which.size, number)) for number in (1, 2))
    dear = np.maximum(two, _LEAST)
    top, curve = cap * cap / (cap * cap + 2.0), LAPLACE
    for capped in (True, False):

        def excess(at: IndexArray, z: FloatArray, capped: bool = capped) -> tuple[FloatArray, FloatArray]:
            steep, growth = curve.steepness(z)
            price = dear[at] * steep
            wanted = price**-0.5
            if capped:
                return top + z - wanted, 1.0 + 0.5 * wanted * growth
            short, _, change = curve.terms(one[at] / price)
            return 1.0 - short + z - wanted, 1.0 + (change + 0.5 * wanted) * growth

        z = up_crossing(excess, np.full(which.size, 1e-60), np.full(which.size, top))
        first = np.full(which.size, cap)
        if not capped:
            slope = one / (dear * curve.steepness(z)[0])
            first = np.minimum(curve.high_root(np.clip(slope, TINY, curve.steepest)), cap)
        second = np.minimum(np.sqrt(2.0 * z / (1.0 - z)), cap)
        # whatever they are, these losses are allowed: their value counts
        error = 1.0 / (first * first / (first * first + 2.0) + z)
        value = error + one * first + two * second
        better = value < best.value[which]
        rows = which[better]
        best.value[rows], best.error[rows], best.count[rows] = value[better], error[better], 2
        best.pair[:, rows] = first[better], second[better]


def _first_dear_of_each(moves: Moves, supply: Supply, start: int) -> IndexArray:
    """What `first_dear` finds, for each list, by steps of one: one person's move changes it by little."""
    low, high, most = np.zeros(moves.size.size, dtype=np.intp), moves.size + 1, supply.worthwhile
    count = np.minimum(np.maximum(start, 1), moves.size)
    pending = np.flatnonzero(high - low > 1)
    while pending.size:
        at = count[pending]
        price = np.maximum(moves.cost(pending, at) / most, _LEAST)
        dear = moves.sums(pending, at, price)[0] * np.sqrt(price) > 1.0
        high[pending], low[pending] = np.where(dear, at, high[pending]), np.where(dear, low[pending], at)
        count[pending] = np.where(dear, at - 1, at + 1)
        pending = pending[high[pending] - low[pending] > 1]
    return high


def _balance(moves: Moves, which: IndexArray, count: IndexArray, supply: Supply) -> tuple[FloatArray, FloatArray]:
    """Value and price where the first ``count``, all high or at the cap, supply ``P^{-1/2}``."""
    price = np.maximum(moves.cost(which, count) / supply.worthwhile, _LEAST)
    low, high, value = np.full(price.size, _LEAST), np.full(price.size, np.inf), np.full(price.size, np.inf)
    pending = np.arange(price.size)
    for _ in range(200):
        if pending.size == 0:
            break
        now = price[pending]
        supplied, spends, change = moves.sums(which[pending], count[pending], now)
        wanted = now**-0.5
        # the dual value: its slope in P is the excess, so at the end it is right to second order
        value[pending] = 2.0 * np.sqrt(now) + now * (spends - supplied)
        low[pending] = np.where(supplied <= wanted, now, low[pending])
        high[pending] = np.where(supplied <= wanted, high[pending], now)
        # Newton for the logarithms where it stays in the bracket, else halve it
        distance = np.log(wanted / supplied)
        move = distance / (change / supplied + 0.5)
        ahead = now * np.exp(np.clip(move, -60.0, 60.0))
        small = np.abs(move) <= _CLOSE
        close = small & (np.abs(distance) <= 1e-7)  # where q' peaks a small move alone is no sign of balance
        inside = ~small & (low[pending] < ahead) & (ahead < high[pending])
        between = np.sqrt(low[pending]) * np.sqrt(np.minimum(high[pending], 1e300))
        price[pending] = np.where(inside | close, ahead, between)
        pending = pending[~close & (high[pending] > low[pending] * (1.0 + 1e-15))]
    return value, price


def _spread_out(problem: Problem, max_loss: float, rows: IndexArray, losses: FloatArray) -> Allocation:
    """Everybody's figures from those of the active."""
    assert isinstance(problem.variance, float)
    precision = curve_of(problem).precisions(losses, problem.variance)
    privacy_loss, weights = np.zeros(problem.costs.size), np.zeros(problem.costs.size)
    privacy_loss[rows], weights[rows] = losses, precision / precision.sum()
    mse = 1.0 / float(precision.sum())
    paid = problem.costs[rows] > 0.0
    return Allocation(
        privacy_loss=privacy_loss,
        weights=weights,
        mse=mse,
        objective=problem.error_weight * mse + float(problem.costs[rows][paid].dot(losses[paid])),
        active=int(rows.size),
        setting="local",
        error_weight=problem.error_weight,
        _certify=problem.certifying(partial(local_lower_bound, max_loss=max_loss, response=problem.response)),
    )
