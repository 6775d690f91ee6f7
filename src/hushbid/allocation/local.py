"""The local optimum, exactly: the cheapest k people, all at their high root, and one scalar equation per k.

Divide costs by ``A·V^{3/2}`` and losses by ``V^{-1/2}``; then ``J = 1/Λ + Σ ψ_i y_i`` with ``Λ = Σ q(y_i)`` and
``q(y) = y²/(y² + 2)``. Where ``y_i > 0``, ``q'(y_i) = ψ_i/P`` with ``P = 1/Λ²``, and ``q'`` has a rising and a falling
branch, so a low and a high root. [F] Thm. 4 and Algorithm 2 search both on a grid. The grid is not needed
(``docs/explanation/algorithms.md`` has the proofs):

* the active people are the cheapest ``k``; for ``k ≥ 2`` all are at the high root, and a single one is at
  ``y = (4/ψ_1)^{1/3}``;
* for each ``k ≥ 2`` one increasing equation, ``Σ_{j≤k} q(y_j(P)) = P^{-1/2}``, gives ``P_k`` and
  ``J_k = √P_k + Σ ψ_j y_j``;
* on the high branch the cost of supplying ``q`` is convex, so ``J_k ≥ 2√P + Σ_{j≤k} (ψ_j y_j − P q_j)`` for every
  ``P``. At ``P = P_k`` the terms of the first ``k`` add up to ``J_k``, and a term is negative exactly when
  ``ψ_j < P/(2√2)``. Hence ``k`` is best among all ``k ≥ 2`` once ``ψ_k ≤ P_k/(2√2) ≤ ψ_{k+1}``, and otherwise
  only two neighbours need comparing.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.local_curves import LAPLACE
from hushbid.allocation.lower_bounds import local_lower_bound
from hushbid.allocation.problem import HUGE, Allocation, Problem
from hushbid.arrays import FloatArray, IndexArray

STEEPEST, WORTHWHILE, high_root = LAPLACE.steepest, LAPLACE.worthwhile, LAPLACE.high_root

_S = 2.0 * math.sqrt(8.0 / 3.0)
_CLOSE = 4e-6
_TWO_THIRDS, _FIRST, _SECOND, _HALF_OF_HERS = 2.0 / 3.0, 0.3665, 0.1252, 0.25
"""``1 − q`` is within 0.008 of ``_FIRST·r + _SECOND·r²``, r being ψ over the last worthwhile cost, to the power 2/3.

Somebody just worthwhile supplies a half; for a guess she counts with half of that."""

_FEW = 24
_SMALL = 1 << 10
"""Up to so many people, sorting rows is quicker than finding the rows of the cheapest afterwards."""

_SELECT_ABOVE = 1 << 15
_SAMPLE = 1 << 13


@dataclass(slots=True, eq=False)
class Balance:
    """The stationary point with the cheapest ``count`` people active, in normal form."""

    count: int
    value: float
    """``J_k``."""

    price: float
    """``P_k``."""

    losses: FloatArray | list[float]
    """Their ``y``, in the order of their costs."""


def solve_local(problem: Problem) -> Allocation:
    """The global optimum of the local problem (one variance for all)."""
    variance = problem.variance
    assert isinstance(variance, float)
    if variance == 0.0 or problem.only_noise_counts(variance):
        return _without_variance(problem)
    scale = problem.scale(variance)
    if problem.costs.size <= _SMALL and problem.tie_key is None:
        rows = problem.costs.argsort(kind="stable")
        best = best_count(_normal(problem.costs[rows], scale))
        return _allocation(problem, variance, best, rows[: best.count])
    ordered = _cheap_ones(problem.costs, scale)
    best = best_count(_normal(ordered, scale))
    # the best count is at the end of what was selected: take more
    while best.count + 1 >= ordered.size < problem.costs.size:
        more = min(8 * ordered.size, problem.costs.size) - 1
        ordered = np.sort(np.partition(problem.costs, more)[: more + 1])
        best = best_count(_normal(ordered, scale))
    rows = _rows(problem, best.count, float(ordered[best.count - 1]))
    return _allocation(problem, variance, best, rows[problem.costs[rows].argsort(kind="stable")])


def _normal(ordered: FloatArray, scale: float) -> FloatArray:
    """Sorted costs in normal form, without those so high that they could only overflow."""
    if float(ordered[-1]) > 1e20 * HUGE * scale:
        ordered = ordered[: int(ordered.searchsorted(1e20 * HUGE * scale))]
    normal: FloatArray = ordered / scale
    return normal


def best_count(costs: FloatArray) -> Balance:
    """The best number of active people and their balance, for ``costs`` sorted ascending, in normal form."""
    few = costs[:_FEW].tolist()
    fewest, most = 2, costs.size if costs[-1] < math.inf else int(costs.searchsorted(math.inf))
    count, price = _first_guess(costs[:most], few[:most])
    best, solved = _alone(few[0]), {1}
    while fewest <= most:
        count = min(max(count, fewest), most)
        if count in solved:
            break
        # the next to the best so far only counts if it is better
        neighbour = best.count > 1 and abs(best.count - count) == 1
        here = balance(costs, count, price, few, beat=best.value if neighbour else math.inf)
        if here is None and neighbour:  # J is convex in k
            break
        if here is None:  # even at the least price so many would supply too much
            most, count = count - 1, (fewest + count) // 2
            continue
        solved.add(count)
        price = here.price
        if here.value < best.value:
            best = here
        # the test of the docstring: who is worthwhile at this price?
        worthwhile = bisect_right(few, price * WORTHWHILE)
        if worthwhile == _FEW:
            worthwhile = int(costs.searchsorted(price * WORTHWHILE, side="right"))
        if worthwhile == count:
            break
        # it also says on which side the best count lies
        if worthwhile > count:
            fewest = count
        else:
            most = count
        # P falls as people join, so the truth lies between, near to here if few are active; then halve what is left.
        gap = worthwhile - count
        near = count + (gap // 2 if abs(gap) > _FEW else (gap > 0) - (gap < 0))
        before, count = count, near if fewest <= near <= most and near not in solved else (fewest + most + 1) // 2
        # two neighbours left: the one not solved yet
        if fewest + 1 >= most:
            count = most if fewest in solved else fewest
        if abs(count - before) == 1:  # about half of one person's supply comes or goes
            price /= 1.0 + 0.5 * (count - before) * math.sqrt(price)
    return best


def _first_guess(costs: FloatArray, few: list[float]) -> tuple[int, float]:
    """How many are worthwhile, and at what price, if ``1 − q`` is a sum of two powers of ``ψ/P``, as it nearly is."""
    powers = squares = 0.0
    for count, cost in enumerate(few):
        power = cost**_TWO_THIRDS
        if count > 0 and power > 0.0:  # at the price that makes her just worthwhile, are there enough without her?
            supply = count + _HALF_OF_HERS - (_FIRST * powers + _SECOND * squares / power) / power
            if cost * supply * supply > WORTHWHILE:
                return count, _likely_price(count, powers, squares, few[count - 1])
        powers += power
        squares += power * power
    # many people: one power is a good enough guess
    power = np.cbrt(costs)
    power *= power
    supply = np.arange(1.0, costs.size + 1.0)
    supply -= 0.5 * power.cumsum() / (power + 1e-300)
    count = max(int((supply * supply * costs).searchsorted(WORTHWHILE)), 1)
    return count, float(supply[count - 1]) ** -2.0


def _likely_price(count: int, powers: float, squares: float, last: float) -> float:
    """Where so many would supply ``P^{-1/2}``, by Newton's method for the logarithms, from the sums of two powers."""
    price = max(1.0 / (count * count), last / WORTHWHILE)
    for _ in range(3):
        one = (WORTHWHILE * price) ** -_TWO_THIRDS
        first, second = _FIRST * powers * one, _SECOND * squares * one * one
        supply = max(count - first - second, 0.25 * count)
        rate = _TWO_THIRDS * (first + 2.0 * second) / supply
        price *= (supply * math.sqrt(price)) ** (-1.0 / (0.5 + rate))
    return price


def balance(
    costs: FloatArray, count: int, guess: float, cheapest: list[float], *, beat: float = math.inf
) -> Balance | None:
    """Where the cheapest ``count`` people, all at their high root, supply ``Λ = P^{-1/2}``; None if nowhere.

    ``cheapest`` are the first few of ``costs`` once more. None also as soon as the value is seen to be at least
    ``beat``: at every price, ``2√P + Σ (ψ_j y_j − P q_j)`` is a lower bound on it.
    """
    last = float(costs[count - 1])
    if last == math.inf:
        return None
    # whoever costs nothing supplies 1 at an infinite loss
    free = int(np.searchsorted(costs[:count], 0.0, side="right")) if cheapest[0] == 0.0 else 0
    if free == count:
        return Balance(count, 1.0 / count, 1.0 / (count * count), [math.inf] * count)
    paid, few = costs[free:count], cheapest[free:count] if count <= _FEW else None
    least = last / STEEPEST * (1.0 + 1e-14)  # below this price the dearest has no root
    price = max(guess, least)
    low, high = 0.0, math.inf
    for _ in range(100):
        found: FloatArray | list[float]
        supply, spent, slope, found = _replies(paid, price) if few is None else _replies_of_few(few, price)
        supply += free
        target = price**-0.5
        excess = supply - target
        value = 2.0 / target + spent - price * supply  # the lower bound at this price; at balance it is J_k
        if value >= beat:
            return None
        if excess <= 0.0:  # keep a bracket; too much supply even at the least price means that there is no balance
            low = price
        elif price > least:
            high = price
        else:
            return None
        # Newton for the logarithms, which are nearly linear in one another.
        move = math.log(target / supply) / (slope / supply + 0.5)
        if abs(move) < _CLOSE and abs(excess) < _CLOSE * target:  # where q' peaks a small move is no sign of balance
            break
        # Newton where it stays in the bracket, else halve it in the logarithm
        proposed = max(price * math.exp(min(max(move, -3.0), 3.0)), least)
        price = proposed if low < proposed < high else math.sqrt(low * high)
    # One more move: the bound, whose slope in P is the excess, is then right to third order, and y to second.
    after = price * math.exp(move)
    value -= 0.5 * excess * (after - price)
    if isinstance(found, list):
        y = [one * (1.0 + move * (one * one + 2.0) / (3.0 * one * one - 2.0 + 1e-9)) for one in found]
        return Balance(count, value, after, [math.inf] * free + y)
    found *= 1.0 + move * (found * found + 2.0) / (3.0 * found * found - 2.0 + 1e-9)
    return Balance(count, value, after, np.concatenate([np.full(free, np.inf), found]) if free else found)


def _replies(costs: FloatArray, price: float) -> tuple[float, float, float, FloatArray]:
    """``Σ q``, ``Σ ψ·y``, ``P·d(Σ q)/dP`` and the ``y`` at a price."""
    y = high_root(costs / price)
    square = y * y
    q = square / (square + 2.0)
    return float(q.sum()), float(costs.dot(y)), float((4.0 * q / (3.0 * square - 2.0 + 1e-9)).sum()), y


def _replies_of_few(costs: Sequence[float], price: float) -> tuple[float, float, float, list[float]]:
    """What `_replies` gives, in scalars: for a handful of people quicker than arrays."""
    acosh, cosh, sqrt = math.acosh, math.cosh, math.sqrt
    supply = spent = slope = 0.0
    losses = []
    steepest, four = STEEPEST * price, 4.0 * sqrt(price)
    for cost in costs:
        s = _S * cosh(acosh(steepest / cost) / 3.0)
        root = sqrt(s)
        rest = four / (sqrt(cost) * root) - s
        z = root + sqrt(rest) if rest > 0.0 else root
        y = 0.25 * z * z
        square = y * y
        q = square / (square + 2.0)
        supply += q
        spent += cost * y
        slope += q / (3.0 * square - 2.0 + 1e-9)
        losses.append(y)
    return supply, spent, 4.0 * slope, losses


def _alone(cost: float) -> Balance:
    """Only the cheapest: ``1 + 2/y² + ψ·y`` at ``y = (4/ψ)^{1/3}``."""
    if cost == 0.0:
        return Balance(1, 1.0, 1.0, [math.inf])
    y = (4.0 / cost) ** (1.0 / 3.0)
    error = 1.0 + 2.0 / y / y
    return Balance(1, error + cost * y, error * error, [y])


def _cheap_ones(costs: FloatArray, scale: float) -> FloatArray:
    """The cheapest costs, sorted: everybody's, or as many as a sample suggests and some to spare."""
    if costs.size <= _SELECT_ABOVE:
        ordered = costs.copy()
        ordered.sort()
        return ordered
    step = costs.size // _SAMPLE
    sample = np.sort(costs[::step])
    # Each of the sample stands for `step` people: Λ grows by that factor, so the error weight shrinks by its square.
    count = best_count(_normal(sample, scale / step**2)).count if sample[0] < HUGE * scale / step**2 else 1
    # four standard deviations of the sample's count, and some, to spare
    spare = min(count + int(4.0 * math.sqrt(count)) + 8, sample.size - 1)
    return np.sort(costs[costs <= sample[spare]])


def _rows(problem: Problem, count: int, margin: float) -> IndexArray:
    """Rows of the ``count`` cheapest people, the dearest at ``margin``; the tie key chooses among equals there."""
    rows = (problem.costs <= margin).nonzero()[0]
    if rows.size == count:
        return rows
    tied = problem.costs[rows] == margin
    surely = rows[~tied]
    return np.sort(np.concatenate([surely, problem.first(rows[tied], count - surely.size)]))


def _allocation(problem: Problem, unit: float, best: Balance, rows: IndexArray) -> Allocation:
    """Back from normal form to the caller's units and order; ``rows`` are those of the active, cheapest first."""
    y, root = best.losses, math.sqrt(unit)
    losses: FloatArray | list[float]
    share: FloatArray | list[float]
    if isinstance(y, list):
        precision = [1.0 / (1.0 + 2.0 / one / one) for one in y]
        supply = sum(precision)
        losses, share = [one / root for one in y], [one / supply for one in precision]
    else:
        precisions = 1.0 / (1.0 + 2.0 / y / y)
        supply = float(precisions.sum())
        losses, share = y / root, precisions / supply
    # J = 1/Λ + Σ ψ·y and J = best.value: what is not error is spent.
    spent = max(best.value - 1.0 / supply, 0.0)
    return _spread_out(problem, rows, losses, share, unit / supply, problem.error_weight * unit * spent)


def _without_variance(problem: Problem) -> Allocation:
    """No sampling variance, or none that could be seen: ``Σψy ≥ ψ_1·√(Σy²)``, so only the cheapest is bought from."""
    rows = _rows(problem, 1, problem.cheapest)
    y = problem.loss_of_one()
    assert isinstance(problem.variance, float)
    if y == math.inf:
        return _spread_out(problem, rows, [math.inf], [1.0], problem.variance, 0.0)
    return _spread_out(problem, rows, [y], [1.0], problem.variance + 2.0 / y / y, problem.cheapest * y)


def _spread_out(
    problem: Problem,
    rows: IndexArray,
    losses: FloatArray | list[float],
    share: FloatArray | list[float],
    mse: float,
    spent: float,
) -> Allocation:
    """Everybody's figures from those of the active."""
    weights, privacy_loss = np.zeros(problem.costs.size), np.zeros(problem.costs.size)
    weights[rows], privacy_loss[rows] = share, losses
    return Allocation(
        privacy_loss=privacy_loss,
        weights=weights,
        mse=mse,
        objective=problem.error_weight * mse + spent,
        active=int(rows.size),
        setting="local",
        error_weight=problem.error_weight,
        _certify=problem.certifying(local_lower_bound),
    )
