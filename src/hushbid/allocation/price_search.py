"""The least ``N + C`` along the path of efficient purchases, with proof, for many populations at once.

**Theorem** (second-order bound, any caps, strata and variances). For ``T`` in ``[T₁, T₂]``, ``J = N + C`` and
``ΔN = N(T₁) − N(T₂)``:

    J(T) ≥ J(T₁) − ΔN·(1 − T₁²/(2σ(T₂)))⁺      and      J(T) ≥ J(T₂) − ΔN·(T₂²/(2σ(T₁)) − 1)⁺.

*Proof.* ``dC = −(T²/2σ) dN`` along the path, ``N`` falls and ``σ`` rises. ∎ Both factors are of first order in
``T₂ − T₁`` near a minimum, so that intervals are settled quickly. Intervals whose bound is below what is attained are
halved until none is. A point is found by its *place*, any parameter that rises along the path: ``T`` itself, or ``σ``.
At place 0 nobody is paid, so the first bound there is ``N(T₂)``.

**Lemma.** Where ``N ≤ 4σ`` every stationary point of ``N + C`` is a minimum. *Proof.* With ``B, R = Σu(λ − ψ),
Σu(λ − ψ)²`` inside, ``T²/2σ`` rises on a piece where

    4·ΣR  <  3·τ̄T + Σ (B_g − σE_g)²/U_g,            ΣR ≤ ΣVy² = τ̄T − 2σ² = NT² − 2σ²,

so it does where ``NT² ≤ 8σ²``; at a stationary point ``T² = 2σ``. Where nobody of a stratum is inside, ``T/σ`` rests. ∎
As ``N`` falls and ``σ`` rises along the path, ``N ≤ 4σ`` holds from some point on, and from there on a minimum is the
only one. Noise is then a quarter of the error, or more. What is left is the path before that point.

On the frontier (`search`) the place is ``σ``. A minimum for which the lemma does not hold is searched around: the first
places lie ever farther from it. A best point has ``η² = 2/σ``. As ``N ≥ 2/η²``, its ``σ`` is at most its value. And
``η`` is at most what the value can pay for: each stratum gives its share for nothing as far as the caps of zero-cost
people allow, and from there on at no less than its cheapest other cost.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.frontier import Points, at, meet
from hushbid.allocation.populations import Populations
from hushbid.allocation.targets import Target
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray

TOLERANCE = 1e-11
_ROUNDS = 200
_FIRST_STEP = 16.0  # the interval from 0 to a place is divided at this share of it
_NEAREST = 2e-6
_SINGLE = 4.0 * (1.0 - 1e-9)
_SQUARES = 6.0 * (1.0 - 1e-9)
_BEFORE = np.array([0.25, 0.5, 1.0])  # places before a minimum that the lemma holds for, as shares of its own
_LEAST = 1e-9  # where zero-cost people could do it alone the search begins at this share of the σ found first
Evaluate = Callable[[IndexArray, FloatArray], FloatArray]
"""What gives ``T``, ``N``, ``C`` and ``σ``, in rows, at some places of the paths of some populations."""


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """What was found for each population."""

    bound: FloatArray  # no point of the path between the ends has a smaller N + C
    value: FloatArray  # the smallest that was seen, or what was known before
    at: FloatArray  # where it was seen; not a number where what was known before is as good


def least_along_paths(
    evaluate: Evaluate,
    grid: FloatArray,
    known: FloatArray,
    *,
    tolerance: float,
    at_zero: FloatArray,
    single: BoolArray,
) -> Bounded:
    """Return bounds from place 0 to the last of ``grid``, within ``tolerance`` of the best values.

    ``grid`` has a row of ascending places for each population, ``known`` a value that is attained in each, and
    ``at_zero`` is ``N`` where nobody is paid: infinite unless each stratum has zero-cost people, and not a number where
    nothing below the grid is asked for. Where ``single``, what is known is a minimum for which the lemma holds.
    """
    people, columns = grid.shape
    value, place = known.copy(), np.full(people, math.nan)

    def seen(which: IndexArray, places: FloatArray) -> FloatArray:
        found = evaluate(which, places)
        attained = np.nan_to_num(found[1] + found[2], nan=math.inf)
        np.minimum.at(value, which, attained)
        best = attained <= value[which]
        place[which[best]] = places[best]
        return np.vstack([places, found])

    first = seen(np.repeat(np.arange(people), columns), grid.ravel()).reshape(5, people, columns)
    # from place 0 to the first
    begun = np.flatnonzero(~np.isnan(at_zero))
    nothing = np.zeros((5, begun.size))
    nothing[2] = at_zero[begun]
    left = np.hstack([first[:, :, :-1].reshape(5, -1), nothing])
    right = np.hstack([first[:, :, 1:].reshape(5, -1), first[:, begun, 0]])
    which = np.append(np.repeat(np.arange(people), columns - 1), begun)
    bound = np.full(people, math.inf)
    for round_ in range(_ROUNDS):
        each = interval_bounds(left[1:], right[1:])
        each = np.where(single[which] & (left[2] <= _SINGLE * left[4]), known[which], each)
        middle = np.where(left[0] > 0.0, np.sqrt(left[0]) * np.sqrt(right[0]), right[0] / _FIRST_STEP)
        halved = (each < value[which] * (1.0 - tolerance)) & (left[0] < middle) & (middle < right[0])
        halved &= round_ < _ROUNDS - 1
        np.minimum.at(bound, which[~halved], each[~halved])
        if not halved.any():
            break
        between = seen(which[halved], middle[halved])
        left, right = np.hstack([left[:, halved], between]), np.hstack([between, right[:, halved]])
        which = np.tile(which[halved], 2)
    return Bounded(np.minimum(bound, value), value, place)


def interval_bounds(one: FloatArray, two: FloatArray) -> FloatArray:
    """Return the theorem's bound between each point and the one behind it: the better of both."""
    (t1, n1, c1, sigma1), (t2, n2, c2, sigma2) = one, two
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        fall = np.maximum(n1 - n2, 0.0)
        from_left = n1 + c1 - fall * np.maximum(1.0 - t1 * (t1 / (2.0 * sigma2)), 0.0)
        from_right = n2 + c2 - fall * np.maximum(t2 * (t2 / (2.0 * sigma1)) - 1.0, 0.0)
    # the error never is below the one at the right end, nor the expense below the one at the left
    return np.asarray(np.fmax(np.fmax(from_left, from_right), n2 + c1))


# -- on the frontier ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best point of each population."""

    points: Points
    value: FloatArray
    bound: FloatArray  # no purchase of the population with any payment is below this
    last: FloatArray  # no better point has a larger σ


def figures(points: Points) -> FloatArray:
    """Return what the bound needs of some points."""
    return np.stack([points.t, points.mse, points.expense, points.sigma])


def search(populations: Populations, target: Target, start: Points) -> Optimum:
    """Return the least ``N + C`` of each population, from any point of each."""
    best = meet(populations, target, start)
    value = best.mse + best.expense
    low, high, free = _ends(populations, best, value)
    single = np.asarray(best.mse <= _SINGLE * best.sigma)
    found = Bounded(value.copy(), value.copy(), np.full(value.size, math.nan))
    left = ~rises_everywhere(populations, value.size)
    for which in (np.flatnonzero(left & single), np.flatnonzero(left & ~single)):
        if which.size == 0:
            continue
        some, near, at_zero = populations.take(which), best.take(which), free[which]
        if single[which[0]]:
            grid, at_zero = near.sigma[:, None] * _BEFORE, np.where(np.isnan(at_zero), math.inf, at_zero)
        else:
            grid = ladder(near.sigma, low[which], high[which])

        def evaluate(rows: IndexArray, sigma: FloatArray, some: Populations = some, near: Points = near) -> FloatArray:
            return figures(at(some.take(rows), sigma, near.take(rows)))

        seen = least_along_paths(
            evaluate, grid, value[which], tolerance=TOLERANCE, at_zero=at_zero, single=single[which]
        )
        found.bound[which], found.value[which], found.at[which] = seen.bound, seen.value, seen.at
    better = np.flatnonzero(found.value < value * (1.0 - 1e-14))
    if better.size:
        some = populations.take(better)
        other = meet(some, target, at(some, found.at[better], best.take(better)))
        worth = other.mse + other.expense
        kept = worth < value[better]
        best = best.take(np.arange(value.size))
        best.put(better[kept], other.take(np.flatnonzero(kept)))
        value = value.copy()
        value[better[kept]] = worth[kept]
    return Optimum(best, value, np.minimum(found.bound, value), high)


def rises_everywhere(populations: Populations, count: int) -> BoolArray:
    """Return whether ``T²/2σ`` rises along all of each path: ``NT²/σ² = 2 + ΣVε²`` is never above 8."""
    people, moves = populations.people, populations.moves
    squares = np.full(count, float((people.cap * people.reach).sum()))
    return np.asarray(squares + (0.0 if moves is None else moves.cap * moves.reach) <= _SQUARES)


def single_up_to(paths: FloatArray, *, least: float = 0.0) -> tuple[float, float]:
    """Return up to which value, and which error, a minimum is the best one if any one cost is raised.

    ``paths`` are `figures` of ascending points of the present path. Raising a cost makes no purchase cheaper. So at an
    error with ``N ≤ 2C`` this holds with it raised, too, and as ``C ≤ 2σ`` everywhere, so does ``N ≤ 4σ``. And no
    purchase with a larger error is better than what bounds the present path before that point. Without caps the sum in
    the lemma is ``T²·Σ λ_g²/U_g``, and the ``least`` that this sum can be is taken off ``N`` in ``N ≤ 2C``.
    """
    mse, expense = paths[1], paths[2]
    holds = mse - least <= 0.5 * _SINGLE * expense
    if not holds.any():
        return -math.inf, 0.0
    first = int(holds.argmax())
    before = paths[:, : first + 1]
    bounds = interval_bounds(before[:, :-1], before[:, 1:])
    return min(float(bounds.min(initial=math.inf)), float(mse[0])), float(mse[first])


def ladder(sigma: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return for each population ``σ`` ever farther from one of its own, and both ends."""
    span = max(float(np.log(high / sigma).max()), float(np.log(sigma / low).max()), 2.0 * _NEAREST)
    away = _NEAREST * 2.0 ** np.arange(math.ceil(math.log2(span / _NEAREST)))
    steps = np.exp(np.concatenate([-away[::-1], [0.0], away]))
    inner = np.clip(sigma[:, None] * steps, low[:, None], high[:, None])
    return np.hstack([low[:, None], inner, high[:, None]])


def _ends(populations: Populations, best: Points, value: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return between which ``σ`` to search, and the error at 0, not a number where nothing below is asked for."""
    sizes, count = populations.sizes[:, None], value.size
    free_caps, free_mass, cheapest = populations.zero_cost(count)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        weight = np.fmin(populations.full(count), ((value / cheapest + free_caps) / sizes).min(axis=0))
        paid = np.where((free_caps > 0.0).any(axis=0), 0.0, (sizes * cheapest).sum(axis=0))
        weight = np.where(paid > 0.0, np.fmin(weight, value / paid), weight)
        low = 2.0 / weight / weight
        error = np.where(low > 0.0, math.nan, (sizes * sizes / free_mass).sum(axis=0))
    low = np.where(low > 0.0, np.minimum(low * (1.0 - 1e-9), best.sigma), _LEAST * best.sigma)
    return low, np.maximum(value * (1.0 + 1e-9), best.sigma), error
