"""Checks that nothing better was possible, for each goal and setting.

Optimality is judged from the optimality conditions and the certificate, never by the solver that decided:

* a price, central: ``S³·Σ ψw = 4A``; ``2A·V_i w_i + S·ψ_i`` is one number for everybody bought from and no smaller for
  anybody else; and the objective is within a part in 10⁹ of the certificate, a bound that covers every piece of the
  curve;
* an accuracy or a budget, central: the conditions of a convex problem, and everybody's loss once more by bisection
  (:mod:`hushbid.verification.central_by_level`);
* a hard budget: everybody's share of the menu once more (:mod:`hushbid.verification.menu_by_quadrature`). The menu is
  truthful and within the budget; better ones may exist;
* local, with caps or for strata: everybody's loss and the objective once more, by a derivation that shares no step with
  the solver (:mod:`hushbid.verification.local_by_count`, :mod:`hushbid.verification.central_under_caps`,
  :mod:`hushbid.verification.contrast_by_threshold`);
* local, for an accuracy with a cap or for strata: necessary conditions only, and the check is incomplete
  (:mod:`hushbid.verification.not_derived`).

Under a relation all of it holds for the planned variance ``V + Nγ²·V̄``.
"""

import math

import numpy as np

from hushbid.allocation.goals import Accuracy, Budget, Price
from hushbid.common.arrays import FloatArray, rows_text
from hushbid.estimation import Strata
from hushbid.verification.findings import Check, Figure, distance, judged
from hushbid.verification.menu_by_quadrature import MenuFound
from hushbid.verification.not_derived import optimum_not_checked
from hushbid.verification.stated_numbers import CLOSE, Facts, planned_error_of

GAP = 2e-9
"""How far above the certificate an objective may be."""

_SHARES = 3e-6
"""How far losses may be from shares of the menu: three times what a market aims at."""

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
    if unknown := optimum_not_checked(facts):
        return _necessary_conditions(facts, unknown)
    if facts.strata is not None and facts.capped and facts.central:
        return _conditions_under_caps(facts, facts.strata)
    if facts.capped or facts.strata is not None:
        return _once_more(facts)
    if not facts.central:
        return _once_more(facts)
    return _central_conditions(facts) if isinstance(facts.goal, Price) else _level_conditions(facts)


def _central_conditions(facts: Facts) -> Check:
    name, costs, weights, losses = "optimality", facts.costs, facts.weights, facts.losses
    # case 1: no noise at all
    endless = losses == math.inf
    if endless.any():
        problems = []
        if costs[endless].any() or losses[~endless].any():
            problems.append("Without noise only people whose privacy costs nothing may be used, and only they")
        if (endless != (costs == 0.0)).any():
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


def _conditions_under_caps(facts: Facts, strata: Strata) -> Check:
    """Strata with caps: one marginal cost ``2A·V_i ε_i/η² + ψ_i`` in each stratum, but for caps.

    It is no larger for those at their caps and no smaller for those who are not bought from; all strata have one
    ``η = Σε/|ℓ_g|``, which balances noise against money. For a price ``A`` is known, and that nothing else is better
    the certificate says. For an accuracy, a convex problem, ``A`` is the multiplier at which the largest violation is
    least, and the error must be the one that is stated.
    """
    losses, sizes, codes = facts.losses, facts.sizes, facts.codes
    strength = np.bincount(codes, weights=losses, minlength=sizes.size) / sizes
    eta = float(strength.mean())
    problems = []
    if not (distance(strength, eta) <= CLOSE).all():
        problems.append("The strata do not have one strength of noise")
    error_weight = facts.error_weight
    if isinstance(facts.goal, Accuracy):
        error_weight = _multiplier(facts, eta)
        if not float(distance(planned_error_of(facts), facts.wanted)) <= CLOSE:
            problems.append("The error is not the one that the goal states")
    violations = _violations(facts, error_weight, eta)
    problems += [
        f"The optimality condition does not hold in stratum {strata.label(int(g))}"
        for g in np.flatnonzero(violations[:-1] > CLOSE)
    ]
    if not violations[-1] <= CLOSE:
        problems.append("The strength of the noise is not the best one")
    return closely(
        facts,
        "optimality",
        problems,
        "The optimality conditions hold in every stratum, with everybody's limit",
        people=facts.people,
        inside=int((facts.bought & (losses < facts.caps * (1.0 - CLOSE))).sum()),
        largest_residual=float(max(violations.max(), 0.0)),
    )


def _violations(facts: Facts, error_weight: float, eta: float) -> FloatArray:
    """By how much the conditions fail at a price of the error: in each stratum, then for the strength of the noise."""
    losses, sizes, codes = facts.losses, facts.sizes, facts.codes
    weight = 2.0 * error_weight / eta**2
    marginal = np.where(facts.costs < math.inf, weight * facts.variance * losses + facts.costs, math.inf)
    free = losses < facts.caps * (1.0 - CLOSE)
    low, high = np.zeros(sizes.size), np.full(sizes.size, 1e300)
    np.maximum.at(low, codes[facts.bought], marginal[facts.bought])
    np.minimum.at(high, codes[free], marginal[free])
    # what another unit of η would cost: between both ends where nobody of a stratum is inside
    saved = weight * (2.0 + float((facts.variance * losses**2).sum())) / eta
    least, most = float(sizes @ low), float(sizes @ high)
    balance = max(1.0 - saved / least if least > 0.0 else 0.0, saved / most - 1.0)
    return np.append(low / np.maximum(high, 1e-300) - 1.0, balance)


def _multiplier(facts: Facts, eta: float) -> float:
    """The price of the error at which the largest violation is least; it has one valley in the price."""
    used = facts.bought & (facts.costs > 0.0)
    usual = float(facts.costs[used].max(initial=0.0)) * eta**3
    if not 0.0 < usual < math.inf:  # nothing is paid: no purchase is cheaper
        return 0.0

    def violation(power: float) -> float:
        with np.errstate(all="ignore"):
            return float(_violations(facts, usual * 10.0**power, eta).max())

    grid = np.linspace(-60.0, 60.0, 241).tolist()
    best = int(np.argmin([violation(one) for one in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, 240)]
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(80):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if violation(left) <= violation(right) else (left, high)
    return usual * float(10.0 ** (0.5 * (low + high)))


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
        kept = float(distance(expense, goal.available if isinstance(goal, Budget) else goal.number))
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
    off = _found_again(facts)[1]
    if (off > CLOSE).any():
        problems.append(f"The privacy loss is not that of the level found by bisection in {rows_text(off > CLOSE)}")
    return closely(
        facts,
        "optimality",
        problems,
        "The goal is met, the optimality conditions hold for everybody, and bisection finds the same privacy losses",
        people=facts.people,
        residual_of_the_goal=kept,
        largest_residual=float(gap.max()),
        largest_difference=float(off.max()),
    )


def shares_of_the_menu(facts: Facts, menu: MenuFound) -> Check:
    """A hard budget: everybody's loss is her share of a menu that was fixed before anybody bid."""
    offered = menu.offered(np.arange(facts.people), facts.costs)
    expected = np.minimum(menu.share * menu.strength * offered, facts.caps)
    off = distance(facts.losses, expected, floor=1e-3 * float(expected.max()))
    # shares rest on what the menu pays, which a market knows to its tolerance, a millionth at most
    wrong = off > _SHARES
    problems = [f"The privacy loss is not her share of the menu in {rows_text(wrong)}"] if wrong.any() else []
    return judged(
        "optimality",
        problems,
        "Everybody's privacy loss is her share of one menu, whose level and payments quadrature finds again",
        people=facts.people,
        largest_difference=float(off.max()),
        difference_allowed=_SHARES,
    )


def _once_more(facts: Facts) -> Check:
    """Everybody's loss as the second derivation has it, and the value, which a flat optimum shares."""
    again, off, value = _found_again(facts)
    problems = []
    if (off > CLOSE).any():
        problems.append(f"The privacy loss is not that of the optimum in {rows_text(off > CLOSE)}")
    gap = abs(above(facts.outcome.objective, value - facts.offset, facts.offset))
    problems += ["The objective is not that of the optimum"] if not gap <= CLOSE else []
    which = " under the caps" if facts.capped else ""
    return closely(
        facts,
        "optimality",
        problems,
        f"The privacy losses are those of the optimum{which}, found a second way",
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
    again, mse, value = facts.rule().everybody(row, float(facts.costs[row]))
    if isinstance(facts.goal, Budget):
        value = mse * facts.population.unit
    return again, distance(facts.losses, again, floor=1e-3 * float(again[np.isfinite(again)].max(initial=0.0))), value
