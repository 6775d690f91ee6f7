"""The central optimum on the frontier: any goal, any strata, no cap, one cap or one each; and what caps allow.

A price is searched (:mod:`hushbid.allocation.price_search`). An accuracy or a budget has one point on the path
(:mod:`hushbid.allocation.frontier`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation.central_problem import CentralProblem, Purchase
from hushbid.allocation.frontier import Points, at, meet
from hushbid.allocation.pool import SUMS, Levels, People, Sums
from hushbid.allocation.populations import Populations
from hushbid.allocation.price_search import search
from hushbid.allocation.targets import Target
from hushbid.common.arrays import FloatArray, IndexArray, as_floats, first_row, rows_text
from hushbid.errors import InputError, Unreachable
from hushbid.estimation import best_contrast

SELECT_ABOVE = 1 << 15
"""Of more people only the cheapest are looked at, and more of them if these turn out to be too few."""

_DOUBLINGS = 24

_WORTH_BUYING = 1e-12
ROUNDED = 1e-9
"""Losses of very many people that are by less than this share below their caps are at them, but for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best purchase with any payment: who may be bought from, and the point of their path."""

    rows: IndexArray
    populations: Populations
    points: Points
    value: float
    bound: float  # for a price: no purchase with any payment is below
    last: float = math.inf  # no better point has a larger σ

    def losses(self, problem: CentralProblem) -> tuple[IndexArray, FloatArray]:
        """Everybody's loss in the caller's units; at the cap to the last digit."""
        people, sigma, caps = self.populations.people, float(self.points.sigma[0]), problem.caps[self.rows]
        below = people.below(self.points.levels)[0]
        bought = people.mass * below.clip(0.0) / sigma / math.sqrt(problem.form.unit)
        return self.rows, np.minimum(np.where(below >= sigma * people.reach, caps, bought), caps)


def best_purchase(problem: CentralProblem, guess: Purchase | None) -> Purchase:
    """Return the best purchase; ``guess`` is one near it, whatever its losses."""
    problem = affordable(problem)
    free, target = zero_cost_people(problem), problem.form.target
    losses, error = most_accurate(problem, free) if free.size else (np.zeros(0), math.inf)
    if target.kind == "accuracy" and error <= target.number:
        return Purchase(free, free_losses(problem, free), 0.0)
    found = optimum(problem, guess)
    if found is None:
        rows = np.flatnonzero(problem.costs < math.inf)
        return Purchase(rows, most_accurate(problem, rows)[0], math.inf)
    if target.kind == "price" and error <= found.value:
        return Purchase(free, losses, 1.0)
    return Purchase(*found.losses(problem), float(found.points.price[0]))


def free_losses(problem: CentralProblem, free: IndexArray) -> FloatArray:
    """What zero-cost people who are enough are bought: as if all asked for the same, exactly the accuracy."""
    losses, error = most_accurate(problem, free)
    if error >= problem.form.target.number * (1.0 - 1e-14):
        return losses
    paid, populations = population(problem, free, np.full(free.size, problem.form.scale))
    points = meet(populations, problem.form.target, first_guess(populations, problem.form.target))
    rows, bought = Found(paid, populations, points, 0.0, 0.0).losses(problem)
    found = np.zeros(problem.costs.size)
    found[rows] = bought
    return found[free]


def optimum(problem: CentralProblem, guess: Purchase | None = None) -> Found | None:
    """Find the best purchase with any payment; None if it takes all that caps allow."""
    rows = np.flatnonzero(problem.costs < math.inf)
    for some, cut in _cheapest(problem, rows, guess):
        found = _among(problem, some, guess)
        if found is not None and _enough(problem, found, cut):
            return found
    if problem.form.target.kind != "price" and _all_that_caps_allow(problem, rows):
        return None
    return _among(problem, rows, guess)


def _among(problem: CentralProblem, rows: IndexArray, guess: Purchase | None) -> Found | None:
    """The best purchase among some people; None if they are too few for an accuracy or a budget."""
    target = problem.form.target
    if not np.bincount(problem.codes[rows], minlength=problem.form.sizes.size).all():
        return None
    ordered, populations = population(problem, rows, problem.costs[rows])
    start = _guessed(problem, guess) if guess is not None else None
    if target.kind == "price":
        start = first_guess(populations, target) if start is None else start
        if not float(populations.people.costs.max()) > 0.0:  # everybody is there for nothing
            return Found(ordered, populations, start, math.inf, math.inf)
        best = search(populations, target, start)
        return Found(ordered, populations, best.points, float(best.value[0]), float(best.bound[0]), float(best.last[0]))
    if rows.size < np.count_nonzero(problem.costs < math.inf) and _all_that_caps_allow(problem, rows, refuse=False):
        return None
    if guess is not None and _mostly_cut(problem, guess):
        start = _cheapest_at_caps(populations, target)
    points = meet(populations, target, first_guess(populations, target) if start is None else start)
    return Found(ordered, populations, points, float(points.mse[0]), math.nan)


def _guessed(problem: CentralProblem, guess: Purchase) -> Points | None:
    """Return a point near a purchase, its losses cut off at the caps; None where it has no noise."""
    form, rows = problem.form, guess.rows
    losses = np.minimum(guess.losses, problem.caps[rows]) * math.sqrt(form.unit)
    total = float((np.bincount(problem.codes[rows], losses, form.sizes.size) / form.sizes).min())
    if not 0.0 < total < math.inf:
        return None
    # T = 2Aη/η², σ = 2A/η²; a level is the cost of a seller and what their loss adds to it
    sigma = 2.0 * guess.worth / (total * total)
    bought = rows[losses > 0.0]
    reached = problem.costs[bought] / form.scale + sigma * losses[losses > 0.0] / problem.masses(bought)
    levels = np.zeros((form.sizes.size, 1))
    np.maximum.at(levels[:, 0], problem.codes[bought], reached)
    if not (sigma > 0.0 and np.isfinite(levels).all()):
        return None
    return Points(
        np.array([sigma * total]), np.array([sigma]), Levels.of(levels), Sums(np.zeros((SUMS, levels.size, 1)))
    )


def _mostly_cut(problem: CentralProblem, guess: Purchase) -> bool:
    """Return whether caps leave less than half of what a purchase buys."""
    kept = np.minimum(guess.losses, problem.caps[guess.rows])
    return float(kept.sum()) < 0.5 * float(guess.losses.sum())


def _cheapest_at_caps(populations: Populations, target: Target) -> Points | None:
    """Return a point near the one at which the cheapest of every stratum are at their caps; None if they never are.

    Where caps are tiny hardly anybody is inside, and that is the optimum but for one person.
    """
    people, sizes = populations.people, populations.sizes
    given = people.cap.cumsum()
    # total weight when each is full
    given = (given - np.append(0.0, given)[people.starts][people.codes]) / sizes[people.codes]
    order = np.argsort(given, kind="stable")
    weight, squares, spent = given[order], people.capped[1][order], people.capped[2][order]
    with np.errstate(all="ignore"):
        error = (2.0 + squares.cumsum()) / (weight * weight)
        passed = error <= target.number if target.kind == "accuracy" else spent.cumsum() >= target.number
    passed &= weight < populations.full(1)
    if not passed.any():
        return None
    total = float(weight[int(passed.argmax())])
    next_ = np.minimum(people.by_stratum((given < total).astype(np.intp)), people.counts - 1)
    levels = people.costs[people.starts + next_]
    sigma = float((sizes * levels).sum()) * total / (2.0 + float(squares[weight <= total].sum()))
    if not 0.0 < sigma < math.inf:
        return None
    guess = Levels.of(levels[:, None])
    return Points(np.array([sigma * total]), np.array([sigma]), guess, Sums(np.zeros((SUMS, levels.size, 1))))


def _all_that_caps_allow(problem: CentralProblem, rows: IndexArray, *, refuse: bool = True) -> bool:
    """Whether the goal takes the most accurate losses there are; an accuracy beyond them is refused."""
    target = problem.form.target
    losses, error = most_accurate(problem, rows)
    if target.kind == "budget":
        return bool((losses < math.inf).all()) and expense(problem, rows, losses) <= target.number
    if refuse and error > target.number * (1.0 + 1e-15):
        raise Unreachable(
            f"standard_error must be at least {math.sqrt(error * problem.form.factor):.6g}, the least that these"
            f" {rows.size} people's data reach under max_loss, got {math.sqrt(target.number * problem.form.factor):g}.",
            field="standard_error",
        )
    return error >= target.number * (1.0 - 1e-14)


# -- few of very many --------------------------------------------------------------------------------------------------


def _cheapest(problem: CentralProblem, rows: IndexArray, guess: Purchase | None) -> Iterator[tuple[IndexArray, float]]:
    """Ever more of the cheapest people, if there are many, and the cost below which they are."""
    if rows.size <= SELECT_ABOVE:
        return
    costs, count = problem.costs[rows], 4096
    if guess is not None and float(guess.losses.max(initial=0.0)) < math.inf:
        typical = float(np.median(problem.caps[:: max(rows.size // 4096, 1)]))
        count += 2 * int(np.count_nonzero(guess.losses)) + int(min(2.0 * float(guess.losses.sum()) / typical, 1e15))
    while count < rows.size // 2:
        cut = float(np.partition(costs, count)[count])
        yield rows[costs < cut], cut / problem.form.scale
        count *= 4


def _enough(problem: CentralProblem, found: Found, cut: float) -> bool:
    """Return whether people from a cost on, who were left out, change nothing."""
    points = found.points
    if not bool((points.levels.high <= cut).all()):
        return False
    if problem.form.target.unimodal:
        return True
    # up to where nobody left out would enter the path is everybody's; beyond, the expense is no less than there
    sigma = np.minimum(float(points.sigma[0]) * 2.0 ** np.arange(_DOUBLINGS), found.last)
    ahead = at(found.populations, sigma, points.take(np.zeros(sigma.size, dtype=np.intp)))
    inside = (ahead.levels.high <= cut).all(axis=0)
    if inside.all() and sigma[-1] == found.last:
        return True
    last = int(inside.argmin()) - 1 if not inside.all() else sigma.size - 1
    return bool(ahead.expense[last] + problem.least_error >= found.value)


# -- what caps allow ---------------------------------------------------------------------------------------------------


def as_caps(max_loss: ArrayLike, n: int) -> FloatArray:
    """Check the most that may be bought from everybody, or from each of ``n`` people: positive, perhaps infinite."""
    caps = as_floats(max_loss, "max_loss")
    if caps.shape not in ((), (n,)):
        raise InputError(
            f"max_loss must be one number or one per person ({n}), got shape {caps.shape}.", field="max_loss"
        )
    bad = ~(caps > 0.0)
    if bad.any() and caps.ndim == 0:
        raise InputError(f"max_loss must be positive, got {float(caps):g}.", field="max_loss")
    if bad.any():
        raise InputError(
            f"max_loss must be positive, but {rows_text(bad, 'is')} not.", field="max_loss", row=first_row(bad)
        )
    return np.broadcast_to(caps, (n,))


def dearest(problem: CentralProblem, rows: IndexArray) -> FloatArray:
    """Return the costs above which people are not bought from, in the caller's money; infinite but for a budget.

    All of the budget would buy from them less than 1e-12 of their cap, which no level has digits for.
    """
    if problem.form.target.kind != "budget":
        return np.full(rows.size, math.inf)
    with np.errstate(over="ignore"):
        found: FloatArray = (
            problem.form.target.number / normal_caps(problem, rows) * (problem.form.scale / _WORTH_BUYING)
        )
    return np.where(problem.caps[rows] < math.inf, found, math.inf)


def affordable(problem: CentralProblem) -> CentralProblem:
    """Return the problem without people who are too dear for its budget; as it is if nobody would be left."""
    dear = problem.costs > dearest(problem, np.arange(problem.costs.size))
    dear &= problem.costs < math.inf
    if not dear.any() or dear.all():
        return problem
    left = np.bincount(problem.codes[~dear & (problem.costs < math.inf)], minlength=problem.form.sizes.size)
    return replace(problem, costs=np.where(dear, math.inf, problem.costs)) if left.all() else problem


def normal_caps(problem: CentralProblem, rows: IndexArray) -> FloatArray:
    """Return caps in normal units."""
    return problem.caps[rows] * math.sqrt(problem.form.unit)


def population(problem: CentralProblem, rows: IndexArray, costs: FloatArray) -> tuple[IndexArray, Populations]:
    """Return these people by stratum, the cheapest first, and as a population with ``costs`` in the caller's money."""
    form, codes = problem.form, problem.codes[rows]
    order = np.lexsort((costs, codes))
    rows, codes = rows[order], codes[order]
    scaled = costs[order] / form.scale
    people = People(scaled, problem.masses(rows), normal_caps(problem, rows), codes, form.sizes.size)
    return rows, Populations(people, form.sizes)


def most_accurate(problem: CentralProblem, rows: IndexArray) -> tuple[FloatArray, float]:
    """Return the most accurate losses that these people's caps allow, and their error in normal units.

    The error is infinite if they leave a stratum without anybody.
    """
    strata = problem.strata.of(rows)
    if not np.bincount(strata.codes, minlength=strata.count).all():
        return np.zeros(rows.size), math.inf
    caps = problem.caps[rows]
    found = best_contrast(caps, strata=strata, variance=problem.variances[rows])
    full = found.delivered >= caps * (1.0 - ROUNDED)
    return np.where(full, caps, found.delivered), found.mse / problem.form.factor


def zero_cost_people(problem: CentralProblem) -> IndexArray:
    """Return who asks for nothing."""
    return np.flatnonzero(problem.costs == 0.0)


def expense(problem: CentralProblem, rows: IndexArray, losses: FloatArray) -> float:
    """Return what losses cost, in normal units; an infinite loss of a zero-cost person costs nothing."""
    costs = problem.costs[rows]
    paid = costs > 0.0
    return float((costs[paid] * losses[paid]).sum()) / problem.form.money


def first_guess(populations: Populations, target: Target) -> Points:
    """Return a point of the path to begin with."""
    people = populations.people
    cost = float(populations.sizes @ people.costs[people.starts + people.counts // 2])
    cost = cost if cost > 0.0 else 1.0
    t = {
        "price": (2.0 * target.number * target.number * cost) ** (1.0 / 3.0),
        "accuracy": cost / target.number if target.number > 0.0 else 1.0,
        "budget": target.number * target.number / (2.0 * cost),
    }[target.kind]
    return at(populations, np.array([math.sqrt(0.5 * min(max(t, 1e-280), 1e280)) * math.sqrt(cost)]))


def beside(points: Points, count: int) -> Points:
    """Return one point as the guess for many populations."""
    return points.take(np.zeros(count, dtype=np.intp))
