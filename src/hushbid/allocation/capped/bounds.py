"""Lower bounds on what a purchase under caps costs, or on its error, that never look at a solution.

Price: the bounds of all intervals of the search over ``S``. Accuracy and budget: for any losses ``ε°`` with
``X° = 2 + ΣVε°²`` every purchase of error ``m²`` has ``m·√X°·Σε ≥ 2 + ΣVε°ε`` (Cauchy and Schwarz), which is linear in
``ε``. So for every ``ρ > 0`` and ``y = m·√X°``

    2/ρ ≤ Σ ε·(y − Vε°)/ρ ≤ Σψε + Σ e·((y − Vε°)/ρ − ψ)⁺,

and with ``ε° = clip(ρu(τ − ψ), 0, e)`` and ``y ≤ τρ`` the last sum runs over people at their cap only. It holds
whatever level and rate are tried.
"""

import math

from hushbid.allocation.capped.optimum import level_optimum, price_optimum
from hushbid.allocation.capped.problem import Scaled, free_people

_ROUNDING = 1e-11


def price_bound(scaled: Scaled) -> float:
    """At most the least ``error_weight·MSE + Σ virtual_costs·privacy_loss``."""
    bound = min(price_optimum(scaled)[3], free_people(scaled)[1])
    return bound * (1.0 - _ROUNDING) * scaled.scale / math.sqrt(scaled.unit)


def expense_bound(scaled: Scaled) -> float:
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


def error_bound(scaled: Scaled) -> float:
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
