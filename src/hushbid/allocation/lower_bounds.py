"""Lower bounds on the optimal objective that never look at a solution.

Central: the problem is ``h(a) = g(a) + κ·a^{2/3}`` on an interval, ``g`` convex and piecewise quadratic. On any part of
a piece the concave term lies above its chord, so a convex quadratic, minimised in closed form, bounds ``h`` from below.
Parts whose bound is below the best value seen so far are halved until none is, so the smallest bound left is within
1e-9 of the optimum and every piece has been ruled out by name. No root is solved for here.

Central, for a given error or expense: by Cauchy's inequality every purchase with ``MSE ≤ r²`` costs at least
``√(2(τ²/r² − H(τ)))``, ``H(τ) = Σ u_i (τ − ψ_i)⁺²``, whatever the level ``τ``; the best level makes it tight. Read the
other way round, no purchase for ``B`` has an error below ``τ²/(B²/2 + H(τ))``.

Local: the dual bound. For any ``P ≥ 0``, ``2√(AP) + Σ min(0, min_y ψ_i·y − P·q(y))`` is at most the optimum; so is
``P/r² + Σ min(0, min_y ψ_i·y − P·q(y))`` at most what an error of ``r²`` costs. With a cap ``y`` only runs up to it.
"""

import math
from collections.abc import Callable

import numpy as np

from hushbid.allocation.problem import HUGE, MOST
from hushbid.allocation.sums import Below, Buckets, Moments
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_KAPPA = 1.5 * 4.0 ** (1.0 / 3.0)
_WORTHWHILE = 1.0 / (2.0 * math.sqrt(2.0))
_WORTHWHILE_RESPONSE, _ENOUGH_RESPONSE = 0.5825829083651485, 0.6342344133498707
_MOST_WORTHWHILE = 0.6
_EXACT_UP_TO = 1 << 15
_TIGHT = 2e-10
_ROUNDING = 1e-11


def central_lower_bound(costs: FloatArray, variance: float | FloatArray, error_weight: float) -> float:
    """At most the optimal objective, and within 1e-9 of it."""
    if isinstance(variance, float) and variance == 0.0:
        return _noise_alone(float(costs.min()), error_weight)
    price, mass, unit = math.inf, None, variance
    if not isinstance(unit, float):
        # somebody without variance: nobody dearer than the cheapest of those matters
        certain = unit == 0.0
        if certain.any():
            price = float(costs[certain].min())
        keep = ~certain & (costs < price)
        costs, spread = costs[keep], unit[keep]
        if costs.size == 0:
            return _noise_alone(price, error_weight)
        unit = float(spread.min())
        mass = unit / spread
    scale = error_weight * unit * math.sqrt(unit)
    if min(float(costs.min()), price) > HUGE * scale:
        return _noise_alone(min(float(costs.min()), price), error_weight)
    with np.errstate(over="ignore"):  # what overflows is above every level that matters
        costs = costs / scale
    tail, price = math.inf, price / scale
    # leave out who is above every optimum, with the bound that proves it
    if mass is None and costs.size > _EXACT_UP_TO:
        costs, tail = _without_hopeless(costs)
    else:
        level = _highest_level(costs, mass)
        within = costs <= level
        costs, mass = costs[within], None if mass is None else mass[within]
        price = price if price <= level else math.inf
    pieces = _pieces(costs, mass, price)
    bound = min(_bound_over(pieces, _KAPPA), tail)
    return error_weight * unit * bound * (1.0 - _ROUNDING)


def central_lower_bound_of_pieces(
    base: float, offset: FloatArray, total: FloatArray, first: FloatArray, second: FloatArray
) -> float:
    """The bound in normal form over the pieces between ``base + offset``, from sums up to and with each."""
    some = total > 0.0
    offset, total, first, second = offset[some], total[some], first[some], second[some]
    level = Below(level=offset, mass=total, first=first, second=second, origin=base).curve()[0]
    # a piece lasts from one person's cost to the next one's
    left, right, total, first = level[:-1], level[1:], total[:-1], first[:-1]
    spread = np.maximum(second[:-1] - first * first / total, 0.0)
    pieces = _Pieces(left, np.maximum(right, left), 1.0 / total, base + first / total, spread)
    return _bound_over(pieces, _KAPPA) * (1.0 - _ROUNDING)


def bound_over_pieces(
    left: FloatArray, right: FloatArray, floor: FloatArray, mean: FloatArray, spread: FloatArray
) -> float:
    """At most ``floor + (mean − a)²/spread + κ·a^{2/3}`` over all pieces, each from ``left`` to ``right``."""
    return _bound_over(_Pieces(left, right, floor, mean, spread), _KAPPA) * (1.0 - _ROUNDING)


def local_lower_bound(
    costs: FloatArray, variance: float, error_weight: float, max_loss: float = math.inf, response: bool = False
) -> float:
    """The dual bound at its best ``P``, found by bisection on its slope; or what noise alone costs, if that is more."""
    noise = 0.0 if response else _noise_alone(float(costs.min()), error_weight)
    scale = error_weight * variance * math.sqrt(variance)
    if float(costs.min()) > HUGE * scale:
        return noise
    with np.errstate(over="ignore"):
        costs = costs / scale
    best = _best_dual(costs, max_loss * math.sqrt(variance), response, 1.0, 0.5)
    return max(error_weight * variance * best * (1.0 - _ROUNDING), noise)


def local_accuracy_lower_bound(
    costs: FloatArray, variance: float, standard_error: float, max_loss: float = math.inf, response: bool = False
) -> float:
    """The dual bound on what this root mean squared error costs; or what the cheapest alone would, if that is more.

    Up to the precision at which most is had for a loss, ``enough``, everybody together cost at least what one person at
    the least cost would take.
    """
    cheapest, square = float(costs.min()), standard_error**2
    enough = _ENOUGH_RESPONSE if response else 0.5
    alone = min(variance, enough * square)
    if response:
        least = cheapest * math.atanh(math.sqrt(alone / square)) / math.sqrt(variance)
    else:
        least = cheapest * math.sqrt(2.0 / (square - alone)) * math.sqrt(alone / variance)
    free = int(np.count_nonzero(costs == 0.0))
    top = 1.0 if max_loss == math.inf else _precision(max_loss * math.sqrt(variance), response)
    needed = variance / square
    if needed <= free * top:
        return 0.0
    if max_loss == math.inf and needed <= enough:
        return least * (1.0 - _ROUNDING)
    some = costs[costs <= MOST]
    unit = float(some.min(initial=math.inf, where=some > 0.0))
    best = _best_dual(some / unit, max_loss * math.sqrt(variance), response, needed, 0.0)
    return max(best * unit / math.sqrt(variance), least) * (1.0 - _ROUNDING)


def _best_dual(costs: FloatArray, cap: float, response: bool, amount: float, elasticity: float) -> float:
    """The largest dual value in normal form, where supply meets the demand ``amount·P^{-elasticity}``."""

    def demand(price: float) -> float:
        return float(amount * price**-elasticity)

    # nobody sells below: the largest q(y)/y is less than 0.6
    low = max(float(costs.min()), 1e-300)
    high = 2.0 * low
    for _ in range(2200):  # double until supply meets demand: a number cannot be doubled more often
        people = np.unique(costs[costs <= high * _MOST_WORTHWHILE], return_counts=True)
        if _responses(*people, high, cap, response)[0] >= demand(high) or not high < 1e300:
            break
        low, high = high, 2.0 * high
    # of many people it is enough to come so near: the bound is off by the square, or by one person in so many
    close = min(max(1e-12 * amount, 1e-12), 1e-7)
    while high - low > close * high:
        middle = 0.5 * (low + high)
        if _responses(*people, middle, cap, response)[0] > demand(middle):
            high = middle
        else:
            low = middle
    # the bound holds at every P, so at both ends
    return max(p * demand(p) / (1.0 - elasticity) + _responses(*people, p, cap, response)[1] for p in (low, high))


def least_expense(costs: FloatArray, variance: float | FloatArray, standard_error: float) -> float:
    """At most what the cheapest purchase with this root mean squared error costs, and within 1e-9 of it."""
    square = standard_error**2

    def bound(level: float) -> tuple[float, float]:
        gain, spread = _level_sums(costs, variance, level)
        return level / square - gain, expense_at_level(square, level, spread)

    return _best_over_levels(costs, bound)


def expense_at_level(square: float, level: float, spread: float) -> float:
    """No purchase with this squared error costs less, whatever the level; ``spread`` is ``H`` there."""
    return math.sqrt(max(2.0 * (level * level / square - spread), 0.0))


def least_error(costs: FloatArray, variance: float | FloatArray, amount: float) -> float:
    """At most the squared error of the most accurate purchase for this expense, and within 1e-9 of it."""
    half = 0.5 * amount * amount

    def bound(level: float) -> tuple[float, float]:
        gain, spread = _level_sums(costs, variance, level)
        return half + spread - level * gain, error_at_level(half, level, spread)

    return _best_over_levels(costs, bound)


def error_at_level(half: float, level: float, spread: float) -> float:
    """No purchase with an expense of ``√(2·half)`` has a smaller squared error, whatever the level."""
    return level * level / (half + spread)


def _level_sums(costs: FloatArray, variance: float | FloatArray, level: float) -> tuple[float, float]:
    """``G`` and ``H`` at a level."""
    below = np.flatnonzero(costs < level)
    distance = level - costs[below]
    share = distance / (variance if isinstance(variance, float) else variance[below])
    return float(share.sum()), float((share * distance).sum())


def _best_over_levels(costs: FloatArray, bound: Callable[[float], tuple[float, float]]) -> float:
    """The largest bound over levels: by bisection on the sign of its slope, which changes once."""
    low = float(costs.min())
    step = max(low, float(np.median(costs[costs <= MOST])), 1e-300)
    high = low + step
    best = 0.0
    for _ in range(400):  # past the best level
        slope, value = bound(high)
        best = max(best, value)
        if slope <= 0.0:
            break
        low, step = high, 2.0 * step
        high = low + step
    for _ in range(60):
        middle = 0.5 * (low + high)
        slope, value = bound(middle)
        best = max(best, value)
        low, high = (middle, high) if slope > 0.0 else (low, middle)
        if high - low < 1e-8 * (high - float(costs.min())):  # the bound is flat at its best: this is its square
            break
    return best * (1.0 - _ROUNDING)


def _noise_alone(cost: float, error_weight: float) -> float:
    """Without sampling variance: ``min over S of 2A/S² + ψS``, as every loss costs at least the cheapest's price."""
    return float(1.5 * (4.0 * error_weight) ** (1.0 / 3.0) * cost ** (2.0 / 3.0) * (1.0 - _ROUNDING))


def _precision(loss: float, response: bool) -> float:
    """``q`` at one loss."""
    return math.tanh(loss) ** 2 if response else loss * loss / (loss * loss + 2.0)


def _responses(costs: FloatArray, people: IndexArray, price: float, cap: float, response: bool) -> tuple[float, float]:
    """``Σ q`` and ``Σ (ψ·y − P·q)`` over those whose best reply to the dual price is not zero; so many at each cost."""
    # worthwhile up to the largest q(y)/y, which is at the loss for `enough` or at the cap
    best = math.atanh(math.sqrt(_ENOUGH_RESPONSE)) if response else math.sqrt(2.0)
    most = _WORTHWHILE_RESPONSE if response else _WORTHWHILE
    if cap < best:
        most = _precision(cap, response) / cap
    active = int(np.searchsorted(costs, price * most, side="right"))
    paid, many = costs[:active], people[:active]
    free = int(many[0]) if active and paid[0] == 0.0 else 0
    if free:
        paid, many = paid[1:], many[1:]
    free_supply = free * (_precision(cap, response) if cap < math.inf else 1.0)
    y, q = _answers(paid / price) if response else _noisy(paid / price)
    if cap < math.inf:
        capped = y > cap
        y, q = np.where(capped, cap, y), np.where(capped, _precision(cap, response), q)
    supply = free_supply + float(many.dot(q))
    return supply, float(many.dot(np.minimum(paid * y - price * q, 0.0))) - price * (free_supply + 1e-15 * supply)


def _noisy(ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``y`` and ``q`` at the larger root of ``q'(y) = 4y/(y² + 2)² = r``: by Newton for ``√y``, from the right."""
    # with z = √y, z⁴ − 2z/√r + 2 = 0
    slope = 2.0 / np.sqrt(ratio)
    z = np.cbrt(slope)
    for _ in range(60):
        step = (z * (z * z * z - slope) + 2.0) / (4.0 * z * z * z - slope)
        z -= step
        if not (step > 1e-15 * z).any():
            break
    y = z * z
    return y, y * y / (y * y + 2.0)


def _answers(ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``y`` and ``q = tanh²y`` at the larger root of ``q'(y) = 2t(1 − t²) = r``: by Newton in ``s = 1 − t``, from 0."""
    s = 0.25 * ratio
    for _ in range(60):
        step = (ratio - 2.0 * s * (1.0 - s) * (2.0 - s)) / (4.0 - 12.0 * s + 6.0 * s * s)
        s = s + step
        if not (step > 1e-16 * s).any():
            break
    return 0.5 * np.log((2.0 - s) / s), (1.0 - s) ** 2


def _highest_level(costs: FloatArray, mass: FloatArray | None) -> float:
    """No optimal ``τ`` is above this, so people above it might as well not exist.

    At an optimum ``u_i(τ − ψ_i) ≤ G = 3b/κ`` for everybody, and ``κb²`` is at most the value of any one person alone.
    """
    with np.errstate(over="ignore", divide="ignore"):
        each = 1.0 if mass is None else 1.0 / mass
        root = math.sqrt(float((each + _KAPPA * np.cbrt(costs) ** 2).min()) / _KAPPA)
        return float((costs + (3.0 * root / _KAPPA) * each).min()) * (1.0 + 1e-12)


def _without_hopeless(costs: FloatArray) -> tuple[FloatArray, float]:
    """The people below a level past which no optimum lies, and the bound that shows it.

    The sums over rounded costs only say where to cut; the bound itself is computed from the people below the cut.
    """
    finite = costs[costs < math.inf] if costs.max() == math.inf else costs
    buckets = Buckets.spanning(float(finite.min()), float(finite.max()))
    below = Moments.of(finite, buckets).below_edges()
    level, squares = below.curve()
    # attained by the rounded population; the bound past a level exceeds it by more than rounding
    best = float((squares + _KAPPA * level ** (2.0 / 3.0))[below.mass > 0].min())
    enough = np.flatnonzero(1.0 / finite.size + _KAPPA * level ** (2.0 / 3.0) >= best * (1.0 + 1e-6))
    if enough.size == 0:
        return finite, math.inf
    cut = float(buckets.edges[int(enough[0]) + 1])
    kept = finite[finite < cut]
    # the bound at the cut, now from the people themselves
    gain = cut - kept
    a = float(kept.dot(gain) / gain.sum())
    return kept, 1.0 / finite.size + _KAPPA * a ** (2.0 / 3.0)


class _Pieces:
    """Parts of the ``a`` axis with their quadratic ``g(a) = floor + (mean − a)²/spread``."""

    __slots__ = ("floor", "left", "mean", "right", "spread")

    def __init__(self, left: FloatArray, right: FloatArray, floor: FloatArray, mean: FloatArray, spread: FloatArray):
        self.left, self.right, self.floor, self.mean, self.spread = left, right, floor, mean, spread

    def take(self, which: BoolArray) -> "_Pieces":
        return _Pieces(*(getattr(self, name)[which] for name in ("left", "right", "floor", "mean", "spread")))

    def squares(self, a: FloatArray) -> FloatArray:
        above = np.zeros_like(a)
        np.divide((self.mean - a) ** 2, self.spread, out=above, where=self.spread > 0)
        return self.floor + above


def _pieces(costs: FloatArray, mass: FloatArray | None, price: float) -> _Pieces:
    """All pieces, for costs in any order; ``price`` is what the cheapest person without variance costs."""
    # sums in extended precision, about the smallest cost
    order = np.argsort(costs, kind="stable") if mass is not None else None
    ordered = np.sort(costs) if order is None else costs[order]
    base = float(ordered[0])
    offset = (ordered - base).astype(np.longdouble)
    each = np.ones_like(offset) if mass is None or order is None else mass[order].astype(np.longdouble)
    total, first, second = np.cumsum(each), np.cumsum(each * offset), np.cumsum(each * offset * offset)
    at = Below(level=offset, mass=total, first=first, second=second, origin=base)  # type: ignore[arg-type]
    left = at.curve()[0].astype(np.float64)
    mean = (base + first / total).astype(np.float64)
    spread = np.maximum(second - first * first / total, 0.0).astype(np.float64)
    floor = (1.0 / total).astype(np.float64)
    end = mean[-1]
    if price < math.inf:
        # one more piece, up to the price of the person without variance
        gap = price - base
        gain = float(total[-1] * gap - first[-1])
        end = base + float(gap * first[-1] - second[-1]) / gain
        rest = float(total[-1] * gap * gap - 2 * gap * first[-1] + second[-1])
        left, mean = np.append(left, end), np.append(mean, price)
        spread, floor = np.append(spread, rest), np.append(floor, 0.0)
        end = np.float64(price)
    right = np.append(left[1:], end)
    return _Pieces(left, np.maximum(right, left), floor, mean, spread)


def _bound_over(pieces: _Pieces, kappa: float) -> float:
    """The least of the bounds of all parts, after halving those that could still hold something better."""
    best, settled = math.inf, math.inf
    for _ in range(400):
        left, right = pieces.left, pieces.right
        # the concave term's chord, and where the quadratic plus the chord is least
        low, high = kappa * np.cbrt(left) ** 2, kappa * np.cbrt(right) ** 2
        slope = np.zeros_like(left)
        np.divide(high - low, right - left, out=slope, where=right > left)
        a = np.clip(pieces.mean - 0.5 * slope * pieces.spread, left, right)
        bound = pieces.squares(a) + low + slope * (a - left)
        # attained values: the best so far
        ends = np.minimum(pieces.squares(left) + low, pieces.squares(right) + high)
        best = min(best, float(np.minimum(ends, pieces.squares(a) + kappa * np.cbrt(a) ** 2).min()))
        middle = 0.5 * (left + right)
        # parts that could hold something better are halved, the others settled
        open_ = (bound < best * (1.0 - _TIGHT)) & (left < middle) & (middle < right)
        settled = min(settled, float(bound[~open_].min(initial=math.inf)))
        if not open_.any():
            break
        rest, cut = pieces.take(open_), middle[open_]
        pieces = _Pieces(
            np.concatenate([rest.left, cut]),
            np.concatenate([cut, rest.right]),
            *(np.concatenate([getattr(rest, name)] * 2) for name in ("floor", "mean", "spread")),
        )
    else:
        settled = min(settled, float(bound[open_].min()))
    return settled
