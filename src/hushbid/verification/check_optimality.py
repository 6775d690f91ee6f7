"""Checks that nothing better was possible, for each goal and setting.

Optimality is judged from the optimality conditions and the certificate, never by the solver that decided:

* a price, central: ``S³·Σ ψw = 4A``; ``2A·V_i w_i + S·ψ_i`` is one number for everybody bought from and no smaller for
  anybody else; and the objective is within a part in 10⁹ of the certificate, a bound that covers every piece of the
  curve;
* a price, local: ``q'(ε_i) = ψ_i Λ²/A`` on the high branch, the cheapest are bought from, and ``J_k`` is no larger than
  ``J_{k−1}``, ``J_{k+1}`` and ``J_1``, which is enough because ``J_k`` is convex (docs/explanation/algorithms.md);
* an accuracy or a budget, central: the conditions of a convex problem, and everybody's loss once more by bisection
  (:mod:`hushbid.verification.central_by_level`);
* a hard budget: everybody's share of the menu once more (:mod:`hushbid.verification.menu_by_quadrature`). The menu is
  truthful and within the budget; better ones may exist.

With caps everybody's loss is found again (:mod:`hushbid.verification.central_under_caps`). In version 1 the decision
was the uncapped optimum, clipped. That one is not in the record, so it is found by exclusion
(:mod:`hushbid.verification.central_by_exclusion`) or by its own equations (:mod:`hushbid.verification.local_by_count`).
Under a relation all of it holds for the planned variance ``V + Nγ²·V̄``.
"""

import math

import numpy as np

from hushbid.allocation.goals import Accuracy, Budget, Price
from hushbid.arrays import IndexArray, rows_text
from hushbid.verification.findings import Check, distance, judged, skipped
from hushbid.verification.local_by_count import LocalRule
from hushbid.verification.menu_by_quadrature import MenuFound
from hushbid.verification.stated_numbers import CLOSE, Facts, not_derived, planned_error_of

_NEAR = 16
"""So many people are looked at before and after the last one bought from."""

GAP = 2e-9
"""How far above the certificate an objective may be."""


def is_clipped(facts: Facts) -> bool:
    """Whether the cap of version 1 binds."""
    return bool((facts.losses >= facts.clip).any())


def above(objective: float, bound: float, offset: float) -> float:
    """How far an objective is above a bound, relative to what the bound was before ``offset`` was subtracted."""
    whole = bound + offset
    if whole > 0.0:
        return (objective - bound) / whole
    return 0.0 if objective == bound else math.inf


def optimality(facts: Facts) -> Check:
    if unknown := not_derived(facts):
        return skipped("optimality", unknown)
    if facts.shared:
        return shares_of_the_menu(facts, facts.menu)
    if facts.capped:
        return _under_caps(facts)
    if not isinstance(facts.goal, Price):
        return _level_conditions(facts)
    if is_clipped(facts):
        return _clipped_optimum(facts)
    if not facts.variance.any():
        return _cheapest_alone(facts)
    return _central_conditions(facts) if facts.central else _local_conditions(facts)


def _central_conditions(facts: Facts) -> Check:
    name, costs, weights, losses = "optimality", facts.costs, facts.weights, facts.losses
    # case 1: no noise at all
    endless = losses == math.inf
    if endless.any():
        problems = []
        if costs[endless].any() or losses[~endless].any():
            problems.append("Without noise only people whose privacy costs nothing may be used, and only they")
        if (endless != (costs == 0.0))[facts.variance > 0.0].any() and facts.variance[endless].all():
            problems.append("Somebody whose privacy costs nothing is left out")
        return judged(name, problems, "No noise is added, and only people whose privacy costs nothing are used")
    # case 2: S balances noise against money, and one marginal cost for everybody bought from
    used = facts.bought
    total = float(losses.sum())
    with np.errstate(all="ignore"):
        balance = float(distance(total**3 * (costs[used] @ weights[used]), 4.0 * facts.error_weight))
        marginal = 2.0 * facts.error_weight * facts.variance * weights + total * costs
        level = float(weights[used] @ marginal[used])
        # for the others it may be larger, not smaller
        gap = np.where(used, distance(marginal, level), np.maximum(1.0 - marginal / level, 0.0))
    problems = []
    if not balance <= CLOSE:
        problems.append("The total privacy loss is not the best one for these weights")
    if (gap > CLOSE).any():
        problems.append(f"The optimality condition does not hold in {rows_text(gap > CLOSE)}")
    return judged(
        name,
        problems,
        "The optimality conditions hold for everybody",
        people=facts.people,
        largest_residual=float(gap.max()),
        balance_residual=balance,
    )


def _level_conditions(facts: Facts) -> Check:
    """An accuracy or a budget: ``V_i ε_i + 2ψ_i/E``, ``E = Σ ψε``, is ``S·MSE`` for all bought from, no less otherwise.

    With the error or the expense that was stated these are the conditions of a convex problem: nothing else is optimal.
    """
    costs, losses, goal = facts.costs, facts.losses, facts.goal
    used = facts.bought & (costs > 0.0)
    expense, total = float(costs[used] @ losses[used]), float(losses.sum())
    mse = planned_error_of(facts)
    problems = []
    if isinstance(goal, Accuracy):
        kept = float(distance(mse, facts.wanted))
        problems += ["The error is not the one that the goal states"] if not kept <= CLOSE else []
    else:
        kept = float(distance(expense, goal.number))
        problems += ["The virtual costs of what is bought do not come to the budget"] if not kept <= CLOSE else []
    # one marginal error for everybody bought from, and no smaller one for anybody else
    with np.errstate(all="ignore"):
        dear = (
            np.where(costs > 0.0, 2.0 * costs / expense, 0.0) if expense > 0.0 else np.where(costs > 0.0, math.inf, 0)
        )
        marginal, level = facts.variance * losses + dear, total * mse
        gap = np.where(facts.bought, np.abs(marginal / level - 1.0), np.maximum(1.0 - marginal / level, 0.0))
    if expense == 0.0:  # nothing is paid: no purchase is cheaper
        gap = np.zeros(facts.people)
    gap = np.where(np.isnan(gap), math.inf, gap)
    if (gap > CLOSE).any():
        problems.append(f"The optimality condition does not hold in {rows_text(gap > CLOSE)}")
    # and everybody's loss once more, from the level
    row = int(np.argmin(costs))
    again = facts.rule().everybody(row, float(costs[row]))[0]
    off = distance(losses, again, floor=1e-3 * float(again.max()))
    if (off > CLOSE).any():
        problems.append(f"The privacy loss is not that of the level found by bisection in {rows_text(off > CLOSE)}")
    return judged(
        "optimality",
        problems,
        "The goal is met, the optimality conditions hold for everybody, and bisection finds the same privacy losses",
        people=facts.people,
        residual_of_the_goal=kept,
        largest_residual=float(gap.max()),
        largest_difference=float(off.max()),
    )


def shares_of_the_menu(facts: Facts, menu: MenuFound) -> Check:
    """A hard budget: everybody's loss is her share of a menu that was fixed before anybody reported."""
    gap = np.maximum(menu.level - facts.costs, 0.0)
    expected = np.minimum(menu.share * menu.strength * gap, facts.caps)
    off = distance(facts.losses, expected, floor=1e-3 * float(expected.max()))
    # shares rest on what the menu pays, which is known to the market's tolerance
    allowed = 4.0 * max(facts.market.tolerance, 1e-8)
    wrong = off > allowed
    problems = [f"The privacy loss is not her share of the menu in {rows_text(wrong)}"] if wrong.any() else []
    return judged(
        "optimality",
        problems,
        "Everybody's privacy loss is her share of one menu, whose level and payments quadrature finds again",
        people=facts.people,
        largest_difference=float(off.max()),
        difference_allowed=allowed,
    )


def _local_conditions(facts: Facts) -> Check:
    used, variance = facts.bought, float(facts.variance[0])
    rows = np.flatnonzero(used)
    loss, cost = facts.losses[used], facts.costs[used]
    problems = _not_the_cheapest(facts, rows)
    with np.errstate(all="ignore"):
        supply = float((1.0 / (variance + 2.0 / loss**2)).sum())
        slope = np.where(loss < math.inf, 4.0 * loss / (variance * loss**2 + 2.0) ** 2, 0.0)
    # one seller has a formula of her own; several are on the high branch
    if rows.size == 1:
        expected = math.inf if cost[0] == 0.0 else (4.0 * facts.error_weight / float(cost[0])) ** (1.0 / 3.0)
        gap = distance(loss, expected)
    else:
        gap = distance(slope, cost * supply**2 / facts.error_weight)
        if (loss * math.sqrt(variance) < math.sqrt(2.0 / 3.0)).any():
            problems.append("Somebody is on the low branch, where nobody is in an optimum with two people or more")
    if (gap > CLOSE).any():
        problems.append("The optimality condition does not hold for somebody who is bought from")
    # J is convex in the number of sellers: its neighbours, and one alone, settle it
    rule = LocalRule(facts.costs, variance, facts.error_weight, facts.order)
    here = rule.value_of(rows.size)
    others = [rule.value_of(count) for count in {1, rows.size - 1, rows.size + 1} if 1 <= count <= facts.people]
    if not distance(facts.outcome.objective + facts.offset, here) <= CLOSE or not here <= min(others) * (1.0 + 1e-12):
        problems.append("Another number of people to buy from would be better")
    # who is bought from among equals, as the rule behind the payments has it
    margin = np.lexsort((facts.order, facts.costs))[max(rows.size - _NEAR, 0) : rows.size + _NEAR]
    answers = rule.at(margin, facts.costs[margin]).loss
    if (distance(facts.losses[margin], answers) > CLOSE).any():
        problems.append("At the margin the rule that payments integrate buys from somebody else")
    return judged(
        "optimality",
        problems,
        "The cheapest are bought from, the optimality conditions hold, and one more or fewer would be worse",
        bought_from=rows.size,
        largest_residual=float(gap.max()),
        margin_to_the_next_best_number=min((other for other in others if other > here), default=math.inf) / here - 1.0,
    )


def _not_the_cheapest(facts: Facts, rows: IndexArray) -> list[str]:
    """Those bought from must come first by cost, and among equals in the order that does not look at reports."""
    dearest = max(zip(facts.costs[rows].tolist(), facts.order[rows].tolist(), strict=True))
    rest = np.flatnonzero(~facts.bought)
    cheaper = (facts.costs[rest] < dearest[0]) | ((facts.costs[rest] == dearest[0]) & (facts.order[rest] < dearest[1]))
    if not cheaper.any():
        return []
    skipped_over = np.zeros(facts.people, dtype=bool)
    skipped_over[rest[cheaper]] = True
    return [f"Somebody cheaper, or earlier among equals, was passed over in {rows_text(skipped_over)}"]


def _cheapest_alone(facts: Facts) -> Check:
    """Nobody's data vary: all is bought from the cheapest person."""
    rows = np.flatnonzero(facts.bought)
    problems = _not_the_cheapest(facts, rows)
    cost = float(facts.costs[rows[0]])
    expected = math.inf if cost == 0.0 else (4.0 * facts.error_weight / cost) ** (1.0 / 3.0)
    gap = float(distance(facts.losses[rows[0]], expected))
    if rows.size != 1 or not gap <= CLOSE:
        problems.append("Where data do not vary, all must be bought from the cheapest person")
    return judged("optimality", problems, "Data do not vary, and all is bought from the cheapest", residual=gap)


def _under_caps(facts: Facts) -> Check:
    """Caps: everybody's loss once more, by level, rate and exclusion; and the value, which a flat optimum shares."""
    row = int(np.argmin(facts.costs))
    again, mse, value = facts.rule().everybody(row, float(facts.costs[row]))
    if isinstance(facts.goal, Budget):
        value = mse * facts.population.unit
    off = distance(facts.losses, again, floor=1e-3 * float(again[np.isfinite(again)].max(initial=0.0)))
    problems = []
    if (off > CLOSE).any():
        problems.append(f"The privacy loss is not that of the optimum under the caps in {rows_text(off > CLOSE)}")
    gap = abs(above(facts.outcome.objective, value - facts.offset, facts.offset))
    if not gap <= CLOSE:
        problems.append("The objective is not that of the optimum under the caps")
    return judged(
        "optimality",
        problems,
        "The privacy losses are those of the optimum under the caps, found by exclusion",
        people=facts.people,
        largest_difference=float(off.max()),
        difference_of_the_objective=gap,
    )


def _clipped_optimum(facts: Facts) -> Check:
    # a person moved to her own cost: the population as it is
    row = int(np.argmin(facts.costs))
    losses, _, value = facts.rule().everybody(row, float(facts.costs[row]))
    clipped = np.minimum(losses, facts.clip)
    gap = distance(facts.losses, clipped, floor=1e-3 * float(clipped.max()))
    problems = []
    if (gap > CLOSE).any():
        problems.append(f"The privacy loss is not the clipped optimum in {rows_text(gap > CLOSE)}")
    certified = above(value - facts.offset, facts.record.lower_bound, facts.offset)
    if facts.central and not certified <= GAP:
        problems.append("The optimum without the cap could not be certified")
    return judged(
        "optimality",
        problems,
        "The privacy losses are the optimum without the cap, clipped",
        people=facts.people,
        largest_difference=float(gap.max()),
        gap_without_the_cap=certified,
    )
