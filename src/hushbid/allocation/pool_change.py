"""How losses, their squares and their expense change from one point of a path to another, as differences.

A rent is a difference of two values that contain the error, which may be many orders larger. So the difference is not
taken between totals: who is at the cap at both points adds nothing, and who is inside at both adds, with ``b = λ − ψ``
at the first point and ``d`` the rise of the level, ``u·(d/σ' − b·(σ' − σ)/(σσ'))``, of which no digit is lost.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation.frontier import Points
from hushbid.allocation.pool import Levels, Pool
from hushbid.allocation.populations import Populations
from hushbid.common.arrays import FloatArray, IndexArray

_CELLS = 1 << 17
_CAPPED, _INSIDE, _OUT = 0, 1, 2


def value_changes(populations: Populations, weight: FloatArray, start: Points, end: Points) -> FloatArray:
    """``A·N + C`` at the end less that at the start, one point, where nobody has moved; for each population.

    Where the constraints hold only up to rounding, the change of the Lagrangian function: an error of the point then
    matters in second order only.
    """
    moves = populations.moves
    levels, sigma = start.levels, float(start.sigma[0])
    losses, squares, expense = np.zeros((3, len(populations.pools), end.t.size))
    for g, pool in enumerate(populations.pools):
        person = moves.person if moves is not None and g == populations.stratum else None
        change = _by_search if pool.even and not populations.few else _by_looking
        losses[g], squares[g], expense[g] = change(
            pool, levels.stratum(g), sigma, end.levels.stratum(g), end.sigma, person
        )
    if moves is not None:
        g, pool = populations.stratum, populations.pools[populations.stratum]
        there, place = moves.person < pool.size, np.minimum(moves.person, pool.size - 1)
        before = np.where(there, pool.losses(levels.stratum(g), sigma)[place], 0.0)
        after = np.where(moves.mass > 0.0, moves.losses(end.levels.stratum(g), end.sigma), 0.0)
        losses[g] += after - before
        squares[g] += (after - before) * (after + before) / pool.mass[place] if pool.size else 0.0
        expense[g] += np.where(after > 0.0, moves.cost * after, 0.0) - np.where(there, pool.costs[place] * before, 0.0)
    total, error = float(start.weight[0]), float(start.mse[0])
    rise, far = losses.sum(axis=0), np.asarray(end.weight < 0.5 * total)
    after = np.where(far, total, total + rise)
    fall = (squares.sum(axis=0) - error * (2.0 * total + rise) * rise) / (after * after)
    slack = (end.levels.high * (populations.sizes[:, None] * rise - losses)).sum(axis=0)
    near: FloatArray = weight * fall + expense.sum(axis=0) + slack
    # far from the start nothing cancels
    return np.where(far, weight * (end.mse - error) + end.expense - start.expense, near)


def _by_search(
    pool: Pool, levels: Levels, sigma: float, after: Levels, sigmas: FloatArray, person: IndexArray | None
) -> FloatArray:
    """The changes of a pool in which everybody at the cap is cheaper than everybody inside, from prefix sums."""
    count, reach = sigmas.size, float(pool.reach[0])
    one = np.repeat(np.stack(pool.places(levels, np.full(1, sigma))), count, axis=1)
    two = np.stack(pool.places(after, sigmas))
    edges = np.sort(np.concatenate([one, two]), axis=0)
    rise = (after.high - levels.high) + (after.low - levels.low)
    found = np.zeros((3, count))
    for k in range(3):
        begin, end = edges[k], edges[k + 1]
        if not (end > begin).any():
            continue
        mass, first, second = (p[end] - p[begin] for p in pool.prefixes)
        if person is not None:
            at = np.minimum(person, pool.size - 1)
            out = pool.mass[at] * ((person >= begin) & (person < end))
            offset = pool.costs[at].astype(np.longdouble) - pool.costs[0]
            mass, first, second = mass - out, first - out * offset, second - out * offset * offset
        states = _state(begin, one), _state(begin, two)
        # counted from the level at which they are inside: the other one may be far away
        high, low = (
            np.where(states[0] == _INSIDE, *parts) for parts in ((levels.high, after.high), (levels.low, after.low))
        )
        level = (high.astype(np.longdouble) - pool.costs[0]) + low
        below = level * mass - first
        squares = level * (level * mass - 2.0 * first) + second
        found += _segment(states, (mass, below, squares), (sigma, sigmas), rise, reach, high)
    return found


def _state(begin: IndexArray, places: NDArray[np.intp]) -> IndexArray:
    return np.where(begin < places[0], _CAPPED, np.where(begin < places[1], _INSIDE, _OUT))


def _segment(
    states: tuple[IndexArray, IndexArray],
    moments: tuple[NDArray[np.floating[Any]], ...],
    sigma: tuple[float, FloatArray],
    rise: FloatArray,
    reach: float,
    level: FloatArray,
) -> FloatArray:
    """The changes of people who are all in one state before and in one after; a loss is ``u(α + β·b)`` in each."""
    before, after = states
    mass, below, squares = moments
    cap = reach if reach < np.inf else 0.0
    both = (before == _INSIDE) & (after == _INSIDE)
    a0, a1 = np.where(before == _CAPPED, cap, 0.0), np.select([after == _CAPPED, both], [cap, rise / sigma[1]], 0.0)
    b0, b1 = np.where(before == _INSIDE, 1.0 / sigma[0], 0.0), np.where(after == _INSIDE, 1.0 / sigma[1], 0.0)
    a, b = a1 - a0, np.where(both, (sigma[0] - sigma[1]) / (sigma[0] * sigma[1]), b1 - b0)
    losses = a * mass + b * below
    square = a * (a0 + a1) * mass + (a * (b0 + b1) + b * (a0 + a1)) * below + b * (b0 + b1) * squares
    expense = level * losses - (a * below + b * squares)
    return np.stack([losses, square, expense]).astype(np.float64)


def _by_looking(
    pool: Pool, levels: Levels, sigma: float, after: Levels, sigmas: FloatArray, person: IndexArray | None
) -> FloatArray:
    """The changes of a pool with a cap or a variance each; who is summed once is inside, or at the cap, at both."""
    seen = pool.seen
    below = levels.above(seen.costs)
    before = np.clip(seen.mass * below / sigma, 0.0, seen.cap)
    inside = (below > 0.0) & (below < sigma * seen.reach)
    rise = (after.high - levels.high) + (after.low - levels.low)
    found, moments = np.zeros((3, sigmas.size)), pool.inside_always(levels, person, sigmas.size)
    if moments is not None:
        states = np.full(sigmas.size, _INSIDE), np.full(sigmas.size, _INSIDE)
        found += _segment(states, moments, (sigma, sigmas), rise, np.inf, levels.high)
    place = None if person is None else pool.place[np.minimum(person, pool.size)]
    step = max(_CELLS // (seen.costs.size + 1), 1)
    for begin in range(0, sigmas.size, step):
        part = slice(begin, begin + step)
        new, s = (after.high[part, None] - seen.costs) + after.low[part, None], sigmas[part, None]
        capped = new >= s * seen.reach
        bought = np.where(capped, seen.cap, np.maximum(seen.mass * new / s, 0.0))
        both = inside & (new > 0.0) & ~capped
        change = np.where(
            both, seen.mass * (rise[part, None] / s - below * ((s - sigma) / (s * sigma))), bought - before
        )
        if place is not None:
            here = np.flatnonzero(place[part] >= 0)
            change[here, place[part][here]] = 0.0
        found[0, part] += change.sum(axis=1)
        found[1, part] += (change * (bought + before)) @ (1.0 / seen.mass)
        found[2, part] += change @ seen.costs
    return found
