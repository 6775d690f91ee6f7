"""Checks that nothing better was possible, for each goal and setting.

* Central: the optimality conditions (:mod:`hushbid.verification.kkt`), which for an accuracy or a budget nothing but
  the optimum meets. For a price the certificate says that no other purchase is better.
* A hard budget: everybody's share of the menu once more (:mod:`hushbid.verification.menu_by_quadrature`). The menu is
  truthful and within the budget; better ones may exist.
* Local: everybody's loss and the objective once more, by a derivation that shares no step with the solver
  (:mod:`hushbid.verification.local_rule`); for an accuracy with strata necessary conditions only, and the check is
  incomplete (:mod:`hushbid.verification.not_derived`).

Under a bound on the correlation of price and datum all of it holds for the planned variance ``V + Nγ²·V̄``.
"""

import math

import numpy as np

from hushbid.allocation.goals import Accuracy, Budget
from hushbid.common.arrays import FloatArray, rows_text
from hushbid.verification.findings import Check, Figure, distance, judged
from hushbid.verification.kkt import Conditions, Purchase, used_otherwise
from hushbid.verification.menu_by_quadrature import MenuFound
from hushbid.verification.not_derived import optimum_not_checked
from hushbid.verification.stated_numbers import CLOSE, Facts, planned_error_of

GAP = 2e-9
"""How far above the certificate an objective may be."""

_SHARES = 3e-6
"""How far losses may be from shares of the menu: three times what a market aims at."""

_DIGITS = 1e-11
"""What a water level, or an error that is met, may be off by, relative to itself."""

_FALLING = 1e-6
"""By how much a dearer person's loss may be above a cheaper one's: at the turn of the curve digits are missing."""


def above(objective: float, bound: float, offset: float) -> float:
    """How far an objective is above a bound, relative to what the bound was before ``offset`` was subtracted."""
    whole = bound + offset
    if whole > 0.0:
        return (objective - bound) / whole
    return 0.0 if objective == bound else math.inf


def closely(facts: Facts, name: str, problems: list[str], sentence: str, **figures: Figure) -> Check:
    """Judge what compares numbers more closely than they may be known: then a difference proves nothing."""
    if not facts.blurred or not problems:
        return judged(name, problems, sentence, doubts=(), **figures)
    doubt = f"{problems[0]}, as far as can be told: noise is so large that digits are missing"
    return judged(name, [], sentence, doubts=[doubt], **figures)


def optimality(facts: Facts) -> Check:
    """Whether anything better was possible."""
    if facts.shared:
        return shares_of_the_menu(facts, facts.menu)
    if facts.central:
        return _conditions(facts)
    unknown = optimum_not_checked(facts)
    return _necessary_conditions(facts, unknown) if unknown else _once_more(facts)


def _conditions(facts: Facts) -> Check:
    """Central: the conditions of an optimum, and the goal (:mod:`hushbid.verification.kkt`)."""
    name, bought = "optimality", facts.purchase
    if (bought.losses == math.inf).any():
        return _without_noise(facts, bought)
    problems, goal = [], facts.goal
    if not (bought.strengths > 0.0).all():
        return judged(name, ["Nothing is bought in a stratum"], "")
    noise, expense, kept = 2.0 / bought.eta**2, bought.expense, 0.0
    if isinstance(goal, Accuracy):
        kept = abs(bought.mse - facts.wanted) / noise
        if not kept <= CLOSE + _DIGITS * facts.wanted / noise:
            problems.append("The error is not the one that the goal states")
    elif isinstance(goal, Budget):
        kept = max(expense / goal.available - 1.0, 0.0)
        problems += ["The virtual costs of what is bought exceed the budget"] if not kept <= CLOSE else []
    found = Conditions(bought if expense > 0.0 or not isinstance(goal, Accuracy) else facts.zero_cost_purchase)
    residuals = found.residuals(*facts.multipliers())
    if not residuals.strength <= CLOSE:
        problems.append("The strata do not have one strength of noise")
    problems += [
        f"The optimality condition does not hold{_where(facts, int(g))}"
        for g in np.flatnonzero(~(residuals.levels <= CLOSE))
    ]
    if not residuals.balance <= CLOSE:
        problems.append("The strength of the noise is not the best one")
    wrong = ~(residuals.losses <= CLOSE * bought.losses + _DIGITS * residuals.rounding)
    if wrong.any():
        problems.append(f"The privacy loss is not that of the water level in {rows_text(wrong)}")
    return judged(
        name,
        problems,
        "The goal is met, and the optimality conditions hold for everybody",
        people=facts.people,
        residual_of_the_goal=kept,
        largest_residual=float(residuals.levels.max()),
        balance_residual=residuals.balance,
    )


def _where(facts: Facts, stratum: int) -> str:
    return "" if facts.strata is None else f" in stratum {facts.strata.label(stratum)}"


def _without_noise(facts: Facts, bought: Purchase) -> Check:
    """No noise: everybody of zero cost and without a cap is used, nobody else; for a budget nobody else is there."""
    wrong, problems = used_otherwise(bought), []
    if wrong.any():
        problems.append(f"Without noise all of zero cost and without a cap are used, and only they: {rows_text(wrong)}")
    if isinstance(facts.goal, Budget) and ((facts.costs > 0.0) & (facts.costs < math.inf)).any():
        problems.append("The budget is not spent, although there is somebody to buy from")
    if isinstance(facts.goal, Accuracy):
        problems.append("No noise is added although the error allows some")
    return judged("optimality", problems, "No noise is added, and only people whose privacy costs nothing are used")


def shares_of_the_menu(facts: Facts, menu: MenuFound) -> Check:
    """Check under a hard budget that everybody's loss is their share of a menu that was fixed before anybody bid."""
    offered = menu.offered(np.arange(facts.people), facts.costs)
    expected = np.minimum(menu.share * menu.strength * offered, facts.caps)
    off = distance(facts.losses, expected, floor=1e-3 * float(expected.max()))
    # shares rest on what the menu pays, which a market knows to its tolerance, a millionth at most
    wrong = off > _SHARES
    problems = [f"The privacy loss is not the person's share of the menu in {rows_text(wrong)}"] if wrong.any() else []
    return judged(
        "optimality",
        problems if menu.known else [],
        "Everybody's privacy loss is their share of one menu, whose level and payments quadrature finds again",
        doubts=[] if menu.known else problems,
        people=facts.people,
        largest_difference=float(off.max()),
        difference_allowed=_SHARES,
    )


def _once_more(facts: Facts) -> Check:
    """Local: everybody's loss as the second derivation has it, and the value, which a flat optimum shares."""
    again, off, value = _found_again(facts)
    problems = []
    if (off > CLOSE).any():
        problems.append(f"The privacy loss is not that of the optimum in {rows_text(off > CLOSE)}")
    gap = abs(above(facts.outcome.objective, value - facts.offset, facts.offset))
    problems += ["The objective is not that of the optimum"] if not gap <= CLOSE else []
    return closely(
        facts,
        "optimality",
        problems,
        "The privacy losses are those of the optimum, found a second way",
        people=facts.people,
        bought_from=int(np.count_nonzero(again)),
        largest_difference=float(off.max()),
        difference_of_the_objective=gap,
    )


def _necessary_conditions(facts: Facts, unknown: str) -> Check:
    """What holds of every local optimum for an accuracy; it does not make one, so the check is incomplete at best.

    The error is the one wanted, or less where nothing is paid; and nobody of a stratum loses more than a cheaper person
    of it, by costs and the order among equals.
    """
    paid = facts.bought & (facts.costs > 0.0)
    error = planned_error_of(facts)
    met = float(distance(error, facts.wanted)) <= CLOSE if paid.any() else error <= facts.wanted * (1.0 + CLOSE)
    problems = [] if met else ["The error is not the one that the goal states"]
    rows = np.lexsort((facts.order, facts.costs, facts.codes))
    losses, codes = facts.losses[rows], facts.codes[rows]
    dearer = np.zeros(facts.people, dtype=bool)
    dearer[rows[1:]] = (codes[1:] == codes[:-1]) & (losses[1:] > losses[:-1] * (1.0 + _FALLING))
    if dearer.any():
        problems.append(f"More is bought than from somebody cheaper in {rows_text(dearer)}")
    return judged("optimality", problems, "", doubts=[unknown], people=facts.people)


def _found_again(facts: Facts) -> tuple[FloatArray, FloatArray, float]:
    """Everybody's loss by the second derivation, how far the stated ones are from it, and its objective."""
    row = int(np.argmin(facts.costs))  # a person moved to her own cost: the population as it is
    again, _, value = facts.rule().everybody(row, float(facts.costs[row]))
    return again, distance(facts.losses, again, floor=1e-3 * float(again[np.isfinite(again)].max(initial=0.0))), value
