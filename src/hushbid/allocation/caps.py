"""Caps on privacy losses: what is allowed as one, and what people may give together under theirs."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.frontier import Points, at
from hushbid.allocation.pool import People
from hushbid.allocation.populations import Populations
from hushbid.allocation.targets import Target
from hushbid.common.arrays import FloatArray, IndexArray, as_floats, first_row, rows_text
from hushbid.errors import InputError
from hushbid.estimation import best_contrast

_WORTH_BUYING = 1e-12
ROUNDED = 1e-9
"""Losses of very many people that are by less than this share below their caps are at them, but for rounding."""


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
