"""The cheapest way to an accuracy in the local setting, exactly: one number of people, and one equation.

Divide losses by ``V^{-1/2}``. For a mean squared error of ``r²`` the precisions ``q(y) = y²/(y² + 2)`` must add up to
``T = V/r²``; the cheapest losses that do are wanted. To supply ``q`` takes ``y(q) = √(2q/(1 − q))``, concave up to
``q = 1/4`` and convex from there ("low" and "high"). Where slopes ``ψ_j·y'(q_j)`` equal one price ``P``, the active are
the cheapest ``k``, all high but perhaps the last, who may only have to fill a remainder (two low ones could trade, and
a swap puts a low one last). Let ``S_k(P)`` be what the cheapest ``k`` supply at their high roots.

**How many.** At the price ``P`` somebody is worth her cost if ``ψ ≤ P/(2√2)``. ``S_k(2√2·ψ_k)`` rises with ``k``; let
``k`` be the first with more than ``T``. Then the best is ``k − 1`` people, all high, or ``k`` people:

* Let ``φ_j(P)`` be the least of ``ψ_j·y(q) − P·q`` over ``q ≥ 1/4``; it has the sign of ``ψ_j − P/(2√2)``. All high,
  ``k`` people cost ``H_k``, the largest of ``P·T + φ_1(P) + … + φ_k(P)``, at a price ``P_k`` that falls with ``k``. So
  ``H_{k+1} ≥ H_k + φ_{k+1}(P_k)`` and ``H_{k−1} ≥ H_k − φ_k(P_k)``.
* With a low last person they cost at least ``P·T + φ_1(P) + … + φ_{k−1}(P) + min(0, ψ_k·y(1/4) − P/4)`` for every
  ``P``, since a concave function is least at an end. At ``P_k`` that is ``H_k`` or more if ``ψ_k ≤ P_k/(2√2)``, and at
  ``P_{k−1}`` it is ``H_{k−1}`` if ``ψ_k ≥ P_{k−1}/√(32/3)``. Both conditions fail for this ``k`` only.

**What the last supplies.** If it is ``z``, the price is ``ψ_k·y'(z)`` and all supply ``G(z) = S_{k−1}(P) + z``. At a
minimum ``G`` passes ``T`` upwards, and it does so once, for it falls and then rises: ``G' = 1 − σ/σ_k``, where ``σ``
adds up ``2q(1 − q)/|4q − 1|`` over the others and ``σ_k`` is hers while she is low. As ``z`` rises the logarithms of
these grow as ``h(q) = (8q² − 4q + 2)/(4q − 1)²``, a falling function of ``|q − 1/4|``; and at one price the high root
of a cheaper person is further from ``1/4`` than the low root of a dearer one. So ``σ/σ_k`` falls.

Whoever costs nothing supplies 1 at an infinite loss; if those who cost nothing are enough, they share the work equally
and nothing is paid.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushbid.allocation.goals import Accuracy
from hushbid.allocation.levels import unreachable
from hushbid.allocation.local_curves import Curve, curve_of
from hushbid.allocation.local_queue import Moves, PrefixSums
from hushbid.allocation.lower_bounds import local_accuracy_lower_bound
from hushbid.allocation.problem import MOST, TINY, Allocation, Problem
from hushbid.arrays import FloatArray, IndexArray

_LEAST_PART = 1e-60
_CLOSE = 1e-9
_FIRST, _SECOND = 0.3665, 0.1252
"""``1 − q`` is within 0.008 of ``_FIRST·r + _SECOND·r²``, r being ψ over the last worthwhile cost, to the power 2/3."""


@dataclass(slots=True, eq=False)
class Purchases:
    """The cheapest purchase for each of many lists, in normal form."""

    value: FloatArray
    """What it costs; infinite where the precision cannot be reached."""

    price: FloatArray
    """``P``."""

    count: IndexArray
    """How many are bought from."""

    last: FloatArray
    """What the last of them supplies; not a number where she is at her high root like the others."""


def solve_local_accuracy(problem: Problem) -> Allocation:
    """The least costly losses that reach the accuracy (one variance for all)."""
    variance, goal = problem.variance, problem.goal
    assert isinstance(variance, float)
    assert isinstance(goal, Accuracy)
    square, curve = goal.number**2, curve_of(problem)
    problem.confine()
    people = int(np.count_nonzero(problem.costs <= MOST))
    if not people > variance / square:
        raise unreachable(goal, people / variance, people)
    free = np.flatnonzero(problem.costs == 0.0)
    needed = variance / square - free.size
    if free.size and needed <= 0.0:
        shared = curve.loss_of_equals(free.size, variance, square)
        return _spread_out(problem, free, np.full(free.size, shared), 0.0, worth=0.0)
    if free.size == 0 and needed <= curve.enough:  # the cheapest alone: nobody supplies less as cheaply
        loss = curve.loss_of_equals(1, variance, square)
        worth = problem.cheapest * _price_of(curve, needed, variance, loss)
        return _spread_out(problem, cheapest_rows(problem, 1), np.array([loss]), problem.cheapest * loss, worth=worth)
    # the others, cheapest first, as far as they could matter
    rows = cheapest_rows(problem, min(free.size + most_needed(needed, curve), people))[free.size :]
    y, spent, price = balance(problem.costs[rows], needed, curve)
    root = math.sqrt(variance)
    losses = np.concatenate([np.full(free.size, np.inf), y / root])
    return _spread_out(problem, np.concatenate([free, rows[: y.size]]), losses, spent / root, worth=price * root)


def balance(ordered: FloatArray, needed: float, curve: Curve) -> tuple[FloatArray, float, float]:
    """The losses of the active in normal form, what they cost and the price, for sorted positive costs."""
    count = first_dear(ordered, needed, curve)
    unit = float(ordered[min(count, ordered.size) - 1])
    normal = ordered / unit
    nobody = Moves(
        normal, PrefixSums(normal, curve.terms), *(np.array([one]) for one in (normal.size, np.inf, normal.size))
    )
    found = cheapest_purchases(nobody, np.array([needed]), count, curve)
    price, last = float(found.price[0]), float(found.last[0])
    y = curve.high_root(np.maximum(normal[: int(found.count[0])] / price, TINY))
    if not math.isnan(last):
        y[-1] = float(curve.loss(found.last)[0])
    return y, unit * float(found.value[0]), unit * price


def most_needed(needed: float, curve: Curve) -> int:
    """So many of the cheapest contain everybody who can be active: whoever is worthwhile supplies enough."""
    return int(needed / curve.enough) + 2


def cheapest_rows(problem: Problem, how_many: int) -> IndexArray:
    """The rows of the cheapest people in the order in which they are bought from; infinite costs are left out."""
    costs = problem.costs
    how_many = min(how_many, int(np.count_nonzero(costs < math.inf)))
    rows = np.arange(costs.size)
    if how_many < costs.size:
        rows = np.flatnonzero(costs <= np.partition(costs, how_many - 1)[how_many - 1])
    # by cost, then by key, then by position
    if problem.tie_key is not None:
        rows = rows[np.argsort(problem.tie_key[rows], kind="stable")]
    return rows[np.argsort(costs[rows], kind="stable")[:how_many]]


def first_dear(costs: FloatArray, needed: float, curve: Curve) -> int:
    """The first ``k`` who supply more than ``needed`` at the price that makes the last worthwhile, or one too many."""
    power = np.cbrt(np.maximum(costs / costs[-1], TINY)) ** 2
    likely = np.arange(1.0, costs.size + 1.0)
    likely -= _FIRST * power.cumsum() / power + _SECOND * (power * power).cumsum() / (power * power)
    low, high, shift = 0, costs.size + 1, 0.0
    tries = 0
    while high - low > 1:
        # where the approximation, right at the last count tried, says; if that goes on for long, halve
        guess = int(likely.searchsorted(needed - shift, side="right")) + 1 if tries < 12 else (low + high) // 2
        count = min(max(guess, low + 1), high - 1)
        supply = count - float(curve.terms(costs[:count] / (costs[count - 1] / curve.worthwhile))[0].sum())
        low, high = (low, count) if supply > needed else (count, high)
        shift = supply - float(likely[count - 1])
        tries += 1
    return high


def cheapest_purchases(moves: Moves, needed: FloatArray, start: int, curve: Curve) -> Purchases:
    """The cheapest purchase of a precision ``needed[j]`` from each list, if the first too dear is near ``start``."""
    count = _first_dear_of_each(moves, needed, start, curve)
    found = Purchases(np.full(count.size, np.inf), np.full(count.size, np.inf), count - 1, np.full(count.size, np.nan))
    # all who are worthwhile, without the first who is not
    enough = np.flatnonzero(count - 1 > needed)
    found.value[enough], found.price[enough] = _all_high(moves, enough, (count - 1)[enough], needed[enough], curve)
    # with her, unless she is not even worthwhile at their price
    which = np.flatnonzero(count <= moves.size)
    cost = moves.cost(which, count[which])
    hers = cost < curve.worthwhile * found.price[which]
    which, cost = which[hers], cost[hers]
    value, price, last = _with_last(moves, which, count[which], cost, needed[which], curve)
    better = value < found.value[which]
    which = which[better]
    found.value[which], found.price[which], found.last[which] = value[better], price[better], last[better]
    found.count[which] += 1
    return found


def up_crossing(
    function: Callable[[IndexArray, FloatArray], tuple[FloatArray, FloatArray]], low: FloatArray, high: FloatArray
) -> FloatArray:
    """Where a function that falls and then rises passes zero upwards, between ``low`` and ``high``, for each of many.

    ``function`` gives value and slope of the functions it is asked for. Where it nowhere passes: its least point, or
    the end it still falls towards.
    """
    low, high, at = low.copy(), high.copy(), high.copy()
    pending = np.arange(at.size)
    for _ in range(300):
        if pending.size == 0:
            break
        z = at[pending]
        excess, slope = function(pending, z)
        right = (excess < 0.0) | (slope < 0.0)
        low[pending] = np.where(right, z, low[pending])
        high[pending] = np.where(right, high[pending], z)
        # Newton where it stays in the bracket, else halve it in the logarithm; at the end a last move of Newton's
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = z - excess / slope
        close = (slope > 0.0) & (np.abs(ahead - z) <= _CLOSE * z)
        inside = (slope > 0.0) & (low[pending] < ahead) & (ahead < high[pending])
        at[pending] = np.where(inside | close, ahead, np.sqrt(low[pending]) * np.sqrt(high[pending]))
        pending = pending[~close & (high[pending] - low[pending] > 1e-15 * z)]
    return at


def _price_of(curve: Curve, needed: float, variance: float, loss: float) -> float:
    """What the last bit of precision costs somebody alone, for a cost of 1; also where there is no variance."""
    if variance == 0.0:
        return 1.0 / loss
    return float(curve.steepness(np.array([needed]))[0][0]) * math.sqrt(variance)


def _first_dear_of_each(moves: Moves, needed: FloatArray, start: int, curve: Curve) -> IndexArray:
    """What `first_dear` finds, for each list, by steps of one: one person's move changes it by little."""
    low, high = np.zeros(needed.size, dtype=np.intp), moves.size + 1
    count = np.minimum(np.maximum(start, 1), moves.size)
    pending = np.flatnonzero(high - low > 1)
    while pending.size:
        at = count[pending]
        short = moves.sums(pending, at, moves.cost(pending, at) / curve.worthwhile)[0]
        dear = at - needed[pending] > short
        high[pending], low[pending] = np.where(dear, at, high[pending]), np.where(dear, low[pending], at)
        count[pending] = np.where(dear, at - 1, at + 1)
        pending = pending[high[pending] - low[pending] > 1]
    return high


def _all_high(
    moves: Moves, which: IndexArray, count: IndexArray, needed: FloatArray, curve: Curve
) -> tuple[FloatArray, FloatArray]:
    """Value and price where the first ``count``, all worthwhile, supply what is needed.

    The logarithm of what they fall short of ``count`` is convex in that of the price, so that Newton's method, from the
    least price at which all are worthwhile, never overshoots.
    """
    price = moves.cost(which, count) / curve.worthwhile
    value, slack = np.full(price.size, np.inf), count - needed
    pending = np.arange(price.size)
    for _ in range(100):
        if pending.size == 0:
            break
        short, spends, change = moves.sums(which[pending], count[pending], price[pending])
        # the dual value: its slope in P is what is missing, so at the end it is right to second order
        value[pending] = price[pending] * (spends + short - slack[pending])
        move = np.log(short / slack[pending]) * short / change
        price[pending] *= np.exp(move)
        pending = pending[np.abs(move) > _CLOSE]
    return value, price


def _with_last(
    moves: Moves, which: IndexArray, count: IndexArray, cost: FloatArray, needed: FloatArray, curve: Curve
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, price and the last one's part with ``count`` people; the value is infinite where nothing balances."""
    others = count - 1
    slack = others - needed

    def excess(pending: IndexArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        steep, growth = curve.steepness(z)
        short, _, change = moves.sums(which[pending], others[pending], cost[pending] * steep)
        return slack[pending] + z - short, 1.0 + change * growth

    last = up_crossing(excess, np.where(slack < 0.0, -slack, _LEAST_PART), np.full(which.size, curve.enough))
    price = cost * curve.steepness(last)[0]
    short, spends, _ = moves.sums(which, others, price)
    left = slack + last - short
    value = price * (spends - left) + cost * curve.loss(last)
    return np.where(np.abs(left) <= 1e-6 * last, value, np.inf), price, last


def _spread_out(problem: Problem, rows: IndexArray, losses: FloatArray, spent: float, *, worth: float) -> Allocation:
    """Everybody's figures from those of the active; ``worth`` is ``P``, what the last bit of precision costs."""
    variance, goal = problem.variance, problem.goal
    assert isinstance(variance, float)
    assert isinstance(goal, Accuracy)
    privacy_loss, weights = np.zeros(problem.costs.size), np.zeros(problem.costs.size)
    privacy_loss[rows] = losses
    if variance + 2.0 / losses[0] / losses[0] > 0.0:
        precision = curve_of(problem).precisions(losses, variance)
        weights[rows] = precision / precision.sum()
    else:  # no variance and no noise
        weights[rows] = 1.0 / rows.size
    return Allocation(
        privacy_loss=privacy_loss,
        weights=weights,
        mse=goal.number**2,
        objective=spent,
        active=int(rows.size),
        setting="local",
        error_weight=worth / goal.number**4,
        _certify=problem.certifying(partial(local_accuracy_lower_bound, response=problem.response)),
    )
