"""The central optimum when nobody may lose more than a cap: one for all, or one for each person.

Price: :mod:`hushbid.allocation.capped.price` searches all of ``S = Σ ε``. Accuracy and budget have one level and one
rate (:mod:`hushbid.allocation.capped.levels`). If nobody's uncapped loss exceeds her cap, the uncapped optimum is the
answer.

**Lower bounds** never look at a solution. Price: the bounds of all intervals of the search. Accuracy and budget: for
any losses ``ε°`` with ``X° = 2 + ΣVε°²`` every purchase of error ``m²`` has ``m·√X°·Σε ≥ 2 + ΣVε°ε`` (Cauchy and
Schwarz), which is linear in ``ε``. So for every ``ρ > 0`` and ``y = m·√X°``

    2/ρ ≤ Σ ε·(y − Vε°)/ρ ≤ Σψε + Σ e·((y − Vε°)/ρ − ψ)⁺,

and with ``ε° = clip(ρu(τ − ψ), 0, e)`` and ``y ≤ τρ`` the last sum runs over people at their cap only. It holds
whatever level and rate are tried.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from hushbid.allocation.capped.full import FullCaps
from hushbid.allocation.capped.optimum import SELECT_ABOVE, level_optimum, price_optimum
from hushbid.allocation.capped.problem import Scaled, free_losses, free_people
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.goals import Price
from hushbid.allocation.problem import Allocation, Problem
from hushbid.allocation.uncapped import solve_uncapped
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import MarketError

_ROUNDING = 1e-11


def capped_lower_bound(problem: Problem, caps: float | FloatArray) -> float:
    """What no allocation under these caps can be below, without solving."""
    return _bound(Scaled.of(problem, caps))


def solve_capped(problem: Problem, caps: float | FloatArray) -> Allocation:
    """The global optimum of the central problem under caps."""
    scaled = Scaled.of(problem, caps)
    # if nobody's loss is too large without caps, that is best under them
    try:
        found = solve_uncapped(CentralProblem.of(problem))
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
        _certify=partial(_bound, scaled),
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


def _bound(scaled: Scaled) -> float:
    return {"price": _price_bound, "accuracy": _expense_bound, "budget": _error_bound}[scaled.aim.kind](scaled)


def _price_bound(scaled: Scaled) -> float:
    """At most the least ``error_weight·MSE + Σ virtual_costs·privacy_loss``."""
    bound = min(price_optimum(scaled)[3], free_people(scaled)[1])
    return bound * (1.0 - _ROUNDING) * scaled.scale / math.sqrt(scaled.unit)


def _expense_bound(scaled: Scaled) -> float:
    """At most the least ``Σ virtual_costs·privacy_loss`` with the wanted accuracy."""
    wanted = scaled.aim.number
    if free_people(scaled)[1] <= wanted:
        return 0.0
    found = level_optimum(scaled)
    if found is None:  # nothing but all that the caps allow is accurate enough
        buyable = scaled.buyable
        losses = scaled.weight(buyable)[0]
        return float((scaled.costs[buyable] * losses).sum()) / math.sqrt(scaled.unit) * (1.0 - 1e-6)
    rows, points = found
    people = scaled.people(rows)
    costs, spread = scaled.base + people.offset, 1.0 / people.mass
    level, rate = float(points.level[0]), float(points.rate[0])
    # a slightly higher rate, until nobody but those at their cap counts
    for step in range(60):
        tried = rate * (1.0 + 1e-15 * 2.0**step)
        losses = people.losses(level, tried)
        y = math.sqrt(wanted * (2.0 + float((spread * losses * losses).sum())))
        if y <= (scaled.base + level) * tried:
            break
    capped = people.groups(level, tried)[1]
    over = ((y - (spread * losses)[capped]) / tried - costs[capped]).clip(0.0)
    bound = 2.0 / tried - float((people.cap[capped] * over).sum())
    return max(bound, 0.0) * (1.0 - _ROUNDING) * scaled.scale / math.sqrt(scaled.unit)


def _error_bound(scaled: Scaled) -> float:
    """At most the least error that the budget leaves."""
    found = level_optimum(scaled)
    if found is None:  # the budget pays for all that the caps allow
        return scaled.weight(scaled.buyable)[1] * scaled.unit * (1.0 - _ROUNDING)
    rows, points = found
    people = scaled.people(rows)
    costs, spread = scaled.base + people.offset, 1.0 / people.mass
    level, rate, budget = float(points.level[0]), float(points.rate[0]), scaled.aim.number
    capped = people.groups(level, rate)[1]
    if not capped.any():
        rate = min(rate, 2.0 / budget)
    losses = people.losses(level, rate)
    # the largest y with B + Σ e·((y − Ve)/ρ − ψ)⁺ ≤ 2/ρ: convex in y, from the right
    y = (scaled.base + level) * rate
    caps, own = people.cap[capped], (spread * losses)[capped]
    for _ in range(60):
        over = (y - own) / rate - costs[capped]
        excess = budget + float((caps * over.clip(0.0)).sum()) - 2.0 / rate
        if excess <= 1e-15 * budget or not capped.any():
            break
        y -= max(excess * rate / max(float(caps[over > 0.0].sum()), float(caps.min())), 1e-16 * y)
    least = y * y / (2.0 + float((spread * losses * losses).sum()))
    return least * scaled.unit * (1.0 - _ROUNDING)
