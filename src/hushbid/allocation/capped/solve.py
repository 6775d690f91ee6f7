"""The central optimum when nobody may lose more than a cap: one for all, or one for each person.

Price: :mod:`hushbid.allocation.capped.price` searches all of ``S = Σ ε``. Accuracy and budget have one level and one
rate (:mod:`hushbid.allocation.capped.levels`). If nobody's uncapped loss exceeds her cap, the uncapped optimum is the
answer.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from hushbid.allocation.capped.bounds import error_bound, expense_bound, price_bound
from hushbid.allocation.capped.full import FullCaps
from hushbid.allocation.capped.optimum import SELECT_ABOVE, level_optimum, price_optimum
from hushbid.allocation.capped.problem import Scaled, free_losses, free_people
from hushbid.allocation.central import CUBE_ROOT_4, contenders, solve_central
from hushbid.allocation.goals import Price
from hushbid.allocation.levels import Buyable, Equation, find_level, solve_level
from hushbid.allocation.problem import Allocation, Problem
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import MarketError

_BOUNDS = {"price": price_bound, "accuracy": expense_bound, "budget": error_bound}


def capped_lower_bound(problem: Problem, caps: float | FloatArray) -> float:
    """What no allocation under these caps can be below, without solving."""
    scaled = Scaled.of(problem, caps)
    return _BOUNDS[scaled.aim.kind](scaled)


def solve_capped(problem: Problem, caps: float | FloatArray) -> Allocation:
    """The global optimum of the central problem under caps."""
    scaled = Scaled.of(problem, caps)
    # if nobody's loss is too large without caps, that is best under them
    if scaled.costs.size > SELECT_ABOVE and scaled.alike and scaled.base > 0.0:
        uncapped = _point_without(problem, scaled)
        if uncapped is not None and uncapped[2] * (1.0 - 1e-12) <= float(scaled.caps_of(np.zeros(1, dtype=int))[0]):
            uncapped = None
        scaled = scaled if uncapped is None else replace(scaled, uncapped=uncapped[:2])
    if scaled.uncapped is None:
        try:
            found = solve_central(problem) if isinstance(problem.goal, Price) else solve_level(problem)
            if bool((found.privacy_loss <= caps).all()):
                return found
            scaled = replace(scaled, uncapped=_point_of(scaled, found))
        except MarketError:  # not even without caps: what is refused, and how it is told, depends on them
            pass
    full = FullCaps.of(problem, caps) if scaled.costs.size <= SELECT_ABOVE else None
    if full is not None:
        return _allocation(problem, scaled, scaled.buyable, full.losses[scaled.buyable], 1.0)
    rows, losses, worth = _optimum(scaled)
    active = np.flatnonzero(losses)
    rows, losses = rows[active], losses[active] / math.sqrt(scaled.unit)
    np.minimum(losses, caps if isinstance(caps, float) else caps[rows], out=losses)  # not by a last digit more
    return _allocation(problem, scaled, rows, losses, worth)


def _point_without(problem: Problem, scaled: Scaled) -> tuple[float, float, float] | None:
    """Without caps: the rate, the sum of all losses and the largest; for people who differ in their costs only."""
    if scaled.aim.kind == "price":
        best = contenders(scaled.costs, None, scale=scaled.scale)[1]
        total = CUBE_ROOT_4 / best.root
        return 0.5 * total * total, total, total * float(best.weights(np.zeros(1), 1.0)[0])
    equation, base = Equation(problem.goal, scaled.unit), problem.cheapest
    try:
        level, rows = find_level(equation, Buyable(scaled.costs, scaled.unit), base)
    except MarketError:
        return None
    below = level - (scaled.costs[rows] - base)
    rate = math.sqrt(2.0 / float((below * scaled.costs[rows]).sum()))
    return rate, rate * float(below.sum()), rate * level


def _point_of(scaled: Scaled, found: Allocation) -> tuple[float, float] | None:
    """Rate and sum of all losses of this allocation: ``MSE·S`` is ``y = τρ`` there, and ``ψρ = y − Vε``."""
    row = scaled.costs.argmin()
    if not 0.0 < float(found.privacy_loss[row]) < math.inf or scaled.base == 0.0:
        return None
    loss = float(found.privacy_loss[row]) * math.sqrt(scaled.unit)
    total = loss / float(found.weights[row])
    rate = (found.mse / scaled.unit * total - loss / float(scaled.masses(np.array([row]))[0])) / scaled.base
    return (rate, total) if rate > 0.0 else None


def _allocation(problem: Problem, scaled: Scaled, rows: IndexArray, bought: FloatArray, worth: float) -> Allocation:
    """Back to the caller's units; ``bought`` are the losses of ``rows``."""
    goal, size = problem.goal, problem.costs.size
    variance = scaled.variance if isinstance(scaled.variance, float) else scaled.variance[rows]
    weights, losses = np.zeros(size), np.zeros(size)
    if bool((bought == math.inf).any()):  # no noise: people who ask for nothing and have no cap
        share = scaled.masses(rows) * (bought == math.inf)
        share /= share.sum()
        bought = np.where(share > 0.0, math.inf, 0.0)
        mse, expense = float((variance * share**2).sum()), 0.0
    else:
        total = float(bought.sum())
        share = bought / total
        mse = 2.0 / total / total + float((variance * share**2).sum())
        expense = float((problem.costs[rows] * bought).sum())
    weights[rows], losses[rows] = share, bought
    error_weight = goal.buyer_weight if isinstance(goal, Price) else worth * scaled.scale / scaled.unit**1.5
    objective = {"price": error_weight * mse + expense, "accuracy": expense, "budget": mse}[scaled.aim.kind]
    return Allocation(
        privacy_loss=losses,
        weights=weights,
        mse=mse,
        objective=objective,
        active=int(np.count_nonzero(bought)),
        setting="central",
        error_weight=error_weight,
        _certify=partial(_BOUNDS[scaled.aim.kind], scaled),
    )


def _optimum(scaled: Scaled) -> tuple[IndexArray, FloatArray, float]:
    """Whose losses are not surely zero, these losses, and the price of an error at which they would be chosen."""
    free, error = free_people(scaled)
    if scaled.aim.kind == "price":
        rows, points, value, _ = price_optimum(scaled)
        if free.size and error <= value:
            return free, scaled.weight(free)[0], 1.0
        return rows, scaled.people(rows).losses(points.level[0], points.rate[0]), 1.0
    if scaled.aim.kind == "accuracy" and error <= scaled.aim.number:
        return free, free_losses(scaled, free), 0.0
    found = level_optimum(scaled)
    if found is None:
        rows = scaled.buyable
        return rows, scaled.weight(rows)[0], math.inf
    rows, points = found
    worth = float(points.all_losses[0] ** 2 / (2.0 * points.rate[0]))
    return rows, scaled.people(rows).losses(points.level[0], points.rate[0]), worth
