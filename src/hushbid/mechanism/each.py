"""The mean of every stratum: a market of its own in each, and their decisions as one.

Everybody is in one stratum, so ``Σ_g A·MSE_g + Σ ψ_i ε_i`` is a sum over strata, and so is the cost of a standard error
for each: the best purchase is the ordinary one in each stratum, which nobody outside it can change. What is decided for
all has everybody's loss, payment and weight in her own stratum's mean; its errors, objective and certificate are the
sums of the strata's, its incentive error the largest of theirs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hushbid.allocation import Accuracy, Goal, precedence
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import InputError, MarketError, NobodyToBuyFrom
from hushbid.estimation import Strata
from hushbid.mechanism.decision import Decision
from hushbid.mechanism.population import Population, TieKey
from hushbid.priors import Grouped, Prior

ROWS = ("reports", "virtual_costs", "privacy_loss", "weights", "payments", "information_rent", "outside_error")
"""What a decision has for everybody."""


def rows_by_stratum(strata: Strata | None) -> dict[str, IndexArray]:
    """Everybody in each stratum."""
    if strata is None:
        raise InputError("by_stratum() needs strata and each=True.", field="each")
    return {name: np.flatnonzero(strata.codes == code) for code, name in enumerate(strata.names)}


def goal_of(goal: Goal, place: int, *, questions: bool) -> Goal:
    """The goal of the stratum in this place; the standard errors of a survey are the same for every stratum."""
    if isinstance(goal, Accuracy) and isinstance(goal.standard_error, tuple) and not questions:
        return Accuracy(goal.standard_error[place])
    return goal


def prior_of(prior: Prior | Grouped, rows: IndexArray) -> Prior | Grouped:
    """The prior of these people."""
    if not isinstance(prior, Grouped):
        return prior
    labels = prior.labels
    return Grouped(prior.priors, [labels[row] for row in rows.tolist()])


def taken(value: Any, rows: IndexArray) -> Any:
    """What is stated for these people, if it is for each."""
    return value[rows] if isinstance(value, np.ndarray) else value


def named(name: str, problem: MarketError) -> MarketError:
    """The same problem, with the stratum that it is about."""
    return type(problem)(f"Stratum {name!r}: {problem}", field=problem.field)


def joined(
    people: int, parts: Mapping[str, tuple[IndexArray, Decision]], tie_key: TieKey, limits: FloatArray | None
) -> dict[str, Any]:
    """The fields of the decision for everybody; refused where a stratum has nobody to buy from."""
    for name, (_, part) in parts.items():
        if part.active == 0:
            raise NobodyToBuyFrom(
                f"The mean of stratum {name!r} cannot be estimated: nobody in it reported within the prior's support."
            )
    rows, found = zip(*parts.values(), strict=True)
    fields: dict[str, Any] = {name: _spread(people, rows, [getattr(one, name) for one in found]) for name in ROWS}
    bounds = (_spread(people, rows, [one.rent_bounds[end] for one in found]) for end in (0, 1))
    sums = {name: math.fsum(getattr(one, name) for one in found) for name in ("mse", "worst_mse", "objective")}
    return {
        **fields,
        **sums,
        "rent_bounds": tuple(bounds),
        "incentive_error": max(one.incentive_error for one in found),
        "tie_order": precedence(tie_key),
        "limits": limits,
    }


def _spread(people: int, rows: Sequence[IndexArray], values: Sequence[FloatArray]) -> FloatArray:
    whole = np.empty(people)
    for where, part in zip(rows, values, strict=True):
        whole[where] = part
    return whole


def part_of(decision: Decision, rows: IndexArray, population: Population) -> dict[str, Any]:
    """The fields of one stratum's decision, from everybody's; its errors are found again from what was bought."""
    order = None if decision.tie_order is None else precedence(decision.tie_order[rows])
    fields: dict[str, Any] = {name: getattr(decision, name)[rows] for name in ROWS}
    lower, upper = (bound[rows] for bound in decision.rent_bounds)
    limits = None if decision.limits is None else decision.limits[rows]
    bought = population.with_limits(limits).allocation(fields["virtual_costs"], order)
    mse, worst = population.errors_of(bought)
    rent = fields["information_rent"]
    return {
        **fields,
        "rent_bounds": (lower, upper),
        "mse": mse,
        "worst_mse": worst,
        "objective": population.objective_of(bought),
        "incentive_error": 2.0 * float(np.maximum(upper - rent, rent - lower).max()),
        "tie_order": order,
        "limits": limits,
    }
