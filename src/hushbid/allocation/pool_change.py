"""How losses, their squares and their expense change from one point of a path to another, as differences.

A rent is a difference of two values that contain the error, which may be many orders larger. So the difference is not
taken between totals: who is at the cap at both points adds nothing, and who is inside at both adds, with ``b = λ − ψ``
at the first point and ``d`` the rise of the level, ``u·(d/σ' − b·(σ' − σ)/(σσ'))``, of which no digit is lost.
"""

import numpy as np

from hushbid.allocation.frontier import Points
from hushbid.allocation.populations import Populations
from hushbid.common.arrays import FloatArray


def value_changes(populations: Populations, weight: FloatArray, start: Points, end: Points) -> FloatArray:
    """Return ``A·N + C`` at the end less that at the start, one point, where nobody has moved; for each population.

    Where the constraints hold only up to rounding, the change of the Lagrangian function: an error of the point then
    matters in second order only.
    """
    moves, people = populations.moves, populations.people
    losses, squares, expense = _changes(populations, start, end)
    if moves is not None:
        g, sigma = populations.stratum, float(start.sigma[0])
        there, place = moves.person < people.size, np.minimum(moves.person, people.size - 1)
        before = np.where(there, people.losses(start.levels, sigma)[place], 0.0)
        after = np.where(moves.mass > 0.0, moves.losses(end.levels.stratum(g), end.sigma), 0.0)
        mass = np.where(there, people.mass[place], moves.mass)
        losses[g] += after - before
        squares[g] += np.divide((after - before) * (after + before), mass, out=np.zeros(mass.size), where=mass > 0.0)
        paid = np.where(there, people.costs[place] * before, 0.0)
        expense[g] += np.where(after > 0.0, moves.cost * after, 0.0) - paid
    total, error = float(start.weight[0]), float(start.mse[0])
    rise, far = losses.sum(axis=0), np.asarray(end.weight < 0.5 * total)
    after = np.where(far, total, total + rise)
    fall = (squares.sum(axis=0) - error * (2.0 * total + rise) * rise) / (after * after)
    slack = (end.levels.high * (populations.sizes[:, None] * rise - losses)).sum(axis=0)
    near: FloatArray = weight * fall + expense.sum(axis=0) + slack
    # far from the start nothing cancels
    return np.where(far, weight * (end.mse - error) + end.expense - start.expense, near)


def _changes(populations: Populations, start: Points, end: Points) -> FloatArray:
    """Return the changes of losses, squares and expense of every stratum, but for who moved."""
    seen, without, sigma, sigmas = populations.seen, populations.without, float(start.sigma[0]), end.sigma
    rise = (end.levels.high - start.levels.high) + (end.levels.low - start.levels.low)
    found = np.zeros((3, *rise.shape))
    if populations.box is not None:  # who is summed once is inside, or at the cap, at both
        levels = start.levels.take(np.zeros(sigmas.size, dtype=np.intp))
        mass, below, squares, *_ = populations.box.sums(levels, populations.stratum, populations.left)
        a, b, both = rise / sigmas, (sigma - sigmas) / (sigma * sigmas), 1.0 / sigma + 1.0 / sigmas
        found[0] = a * mass + b * below
        found[1] = a * a * mass + a * (both + b) * below + b * both * squares
        found[2] = start.levels.high * found[0] - (a * below + b * squares)
    if seen.size == 0:
        return found
    below, inside, _ = (one[0] for one in seen.states(start.levels, start.sigma, None))
    before = np.clip(seen.mass * below / sigma, 0.0, seen.cap)
    for part in populations.parts(sigmas.size):
        left, s = None if without is None else without[part], sigmas[part, None]
        new, now_inside, capped = seen.states(end.levels.take(part), sigmas[part], left)
        bought = np.where(capped, seen.cap, np.where(now_inside, seen.mass * new / s, 0.0))
        shift = seen.mass * (rise.T[part][:, seen.codes] / s - below * ((s - sigma) / (s * sigma)))
        change = np.where(inside & now_inside, shift, bought - before)
        if left is not None:
            here = np.flatnonzero(left < seen.size)
            change[here, left[here]] = 0.0
        for row, each in enumerate((change, change * (bought + before) / seen.mass, change * seen.costs)):
            found[row][:, part] += seen.by_stratum(each).T
    return found
