"""The central optimum when nobody may lose more than a cap: one for all, or one for each person.

Price: :mod:`hushbid.allocation.capped.price` searches all of ``S = Σ ε``. Accuracy and budget have one level and one
rate (:mod:`hushbid.allocation.capped.levels`). If nobody's uncapped loss exceeds her cap, the uncapped optimum is the
answer.
"""

import math
from functools import partial

import numpy as np

from hushbid.allocation.capped.bounds import error_bound, expense_bound, price_bound
from hushbid.allocation.capped.full import FullCaps
from hushbid.allocation.capped.optimum import best_level, best_price
from hushbid.allocation.capped.problem import Scaled, free_losses, free_people
from hushbid.allocation.central import solve_central
from hushbid.allocation.goals import Price
from hushbid.allocation.levels import solve_level
from hushbid.allocation.problem import Allocation, Problem
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import MarketError, Unreachable

_BOUNDS = {"price": price_bound, "accuracy": expense_bound, "budget": error_bound}


def capped_lower_bound(problem: Problem, caps: float | FloatArray) -> float:
    """What no allocation under these caps can be below, without solving."""
    scaled = Scaled.of(problem, caps)
    return _BOUNDS[scaled.aim.kind](scaled)


def solve_capped(problem: Problem, caps: float | FloatArray) -> Allocation:
    """The global optimum of the central problem under caps."""
    scaled = Scaled.of(problem, caps)
    uncapped = _uncapped(problem, caps)
    if uncapped is not None:
        return uncapped
    buyable = scaled.buyable
    full = FullCaps.of(problem, caps)
    if full is not None:
        return _allocation(problem, scaled, buyable, full.losses, 1.0)
    rows, losses, worth = _optimum(scaled, buyable)
    privacy_loss = np.zeros(scaled.costs.size)
    privacy_loss[rows] = losses / math.sqrt(scaled.unit)
    privacy_loss = np.minimum(privacy_loss, caps)  # not by a last digit more
    return _allocation(problem, scaled, rows, privacy_loss, worth)


def _uncapped(problem: Problem, caps: float | FloatArray) -> Allocation | None:
    """The optimum without caps if it keeps them."""
    try:
        found = solve_central(problem) if isinstance(problem.goal, Price) else solve_level(problem)
    except MarketError:  # not even without caps: what is refused, and how it is told, depends on them
        return None
    return found if bool((found.privacy_loss <= caps).all()) else None


def _allocation(problem: Problem, scaled: Scaled, rows: IndexArray, losses: FloatArray, worth: float) -> Allocation:
    """Back to the caller's units."""
    bought, goal = losses[rows], problem.goal
    variance = scaled.variance if isinstance(scaled.variance, float) else scaled.variance[rows]
    weights = np.zeros(losses.size)
    if bool((bought == math.inf).any()):  # no noise: people who ask for nothing and have no cap
        endless = scaled.masses(rows) * (bought == math.inf)
        weights[rows] = endless / endless.sum()
        losses = np.where(weights > 0.0, math.inf, 0.0)
        mse, expense = float((variance * weights[rows] ** 2).sum()), 0.0
    else:
        total = float(bought.sum())
        weights[rows] = bought / total
        mse = 2.0 / total / total + float((variance * weights[rows] ** 2).sum())
        expense = float((problem.costs[rows] * bought).sum())
    error_weight = goal.buyer_weight if isinstance(goal, Price) else worth * scaled.scale / scaled.unit**1.5
    objective = {"price": error_weight * mse + expense, "accuracy": expense, "budget": mse}[scaled.aim.kind]
    return Allocation(
        privacy_loss=losses,
        weights=weights,
        mse=mse,
        objective=objective,
        active=int(np.count_nonzero(losses)),
        setting="central",
        error_weight=error_weight,
        _certify=partial(_BOUNDS[scaled.aim.kind], scaled),
    )


def _optimum(scaled: Scaled, buyable: IndexArray) -> tuple[IndexArray, FloatArray, float]:
    """Whose losses are not surely zero, these losses, and the price of an error at which they would be chosen."""
    if scaled.aim.kind == "price":
        rows, points, value, _ = best_price(scaled, buyable)
        free, error = free_people(scaled, buyable)
        if free.size and error <= value:
            return free, scaled.weight(free)[0], 1.0
        return rows, scaled.people(rows).losses(points.level[0], points.rate[0]), 1.0
    everything = _everything(scaled, buyable)
    if everything is not None:
        return buyable, everything, math.inf
    free, error = free_people(scaled, buyable)
    if scaled.aim.kind == "accuracy" and error <= scaled.aim.number:
        return free, free_losses(scaled, free), 0.0
    rows, points = best_level(scaled, buyable)
    worth = float(points.all_losses[0] ** 2 / (2.0 * points.rate[0]))
    return rows, scaled.people(rows).losses(points.level[0], points.rate[0]), worth


def _everything(scaled: Scaled, buyable: IndexArray) -> FloatArray | None:
    """The most accurate losses, if a budget cannot be spent or only they are accurate enough; refused if none are."""
    losses, error = scaled.weight(buyable)
    if scaled.aim.kind == "budget":
        if bool((losses == math.inf).any()):
            return None
        spent = float((scaled.costs[buyable] * losses).sum()) / scaled.scale
        return losses if spent <= scaled.aim.number else None
    if error > scaled.aim.number * (1.0 + 1e-15):
        least = math.sqrt(error * scaled.unit)
        raise Unreachable(
            f"standard_error must be at least {least:.6g}, the least that these {buyable.size} people's data reach"
            f" under max_loss, got {math.sqrt(scaled.aim.number * scaled.unit):g}.",
            field="standard_error",
        )
    return losses if error >= scaled.aim.number * (1.0 - 1e-14) else None
