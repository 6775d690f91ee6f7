"""The optimal privacy loss of every person, exactly, for given virtual costs.

In reading order:

- `goals`: what a buyer states: a price for the error, an accuracy, a budget, a budget that is never exceeded
- `problem`: what is minimised, in which units; its solution, `Allocation`; who comes first among equals
- `unsolved`: what no solver takes, in the words of the table of refusals
- `targets`: the goal as one equation on the path of efficient central purchases, also with one person's cost replaced
- `central_problem`: the central problem in normal form, with any strata and caps; one mean is one stratum
- `pieces`: that path without caps, in pieces with a root in closed form, and the point that the goal chooses
- `cut`: who can be left out of very many, before anything is sorted
- `pool`, `populations`: sums over people at a water level and a step, under caps, also with one of them moved
- `sweep`: a point of the path under caps by sorting; `frontier`: by a few rounds from a point nearby, for many at once
- `price_search`: the best point for a price, with proof
- `capped`: what caps allow, and the optimum under them
- `central_bounds`: what no central purchase can beat, found without looking at one: the certificate
- `central`: the central optimum as an allocation, in closed form where no cap binds
- `reply_rules`: what a rule says, which payments integrate, and what a solver answers for it
- `budget_integral`: the integral of one person's loss over their own cost under a budget, for any caps or strata
- `deviations`, `pairs_by_pieces`: the optimum with one person's cost replaced, without caps
- `pairs_by_frontier`, `budget_by_frontier`: the same under caps
- `rule`: everybody's loss as a function of their own cost, from any of these: the allocation rule
- `precision`: how much precision a loss supplies locally, by Laplace noise or by randomised response, up to a cap
- `local_problem`: the local problem in normal form: a supply, and a demand for a price or an accuracy
- `queue`: in which order people are bought from there, with one of them moved, and sums over the first of them
- `local`: the local optimum of one stratum, by the marginal seller, and its dual bound
- `local_market`: a stratum's people as lists, each with one of them at another cost
- `local_strata`: how an accuracy is divided among strata there, by branch and bound
- `local_rule`: the local optimum with strata, its bound, the optimum as a function of one person's cost, and what
  many drawn markets cost at a price
- `exact_sums`, `histogram`, `windows`: what passes over very many costs add up: exact sums, sparse buckets, and the
  costs in a window
- `bracket`: between which points the optimum lies, from such sums
- `from_sums`, `pairs_from_sums`: the optimum and its allocation rule, from exact sums and the people near the levels
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushbid.allocation.capped import as_caps
from hushbid.allocation.central import solve
from hushbid.allocation.central_bounds import lower_bound
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.goals import Accuracy, Budget, Goal, HardBudget, PlannedPrice, Price, goal_from_dict
from hushbid.allocation.local_rule import LocalRule
from hushbid.allocation.problem import Allocation, as_problem, tie_keys
from hushbid.allocation.queue import precedence
from hushbid.allocation.reply_rules import Replies, ReplyRule
from hushbid.allocation.rule import allocation_rule
from hushbid.errors import InputError
from hushbid.estimation import Strata

__all__ = [
    "Accuracy",
    "Allocation",
    "Budget",
    "Goal",
    "HardBudget",
    "PlannedPrice",
    "Price",
    "Replies",
    "ReplyRule",
    "Strata",
    "allocate",
    "goal_from_dict",
    "least_objective",
    "precedence",
    "replies",
    "tie_keys",
]


def allocate(
    virtual_costs: ArrayLike,
    *,
    setting: str = "central",
    variance: ArrayLike = 0.25,
    error_weight: float | None = None,
    goal: Goal | None = None,
    max_loss: ArrayLike = math.inf,
    tie_key: Sequence[Any] | NDArray[Any] | None = None,
    strata: Strata | None = None,
    response: bool = False,
) -> Allocation:
    """The privacy losses and weights that minimise ``error_weight·MSE + Σ virtual_costs·privacy_loss``, globally.

    With ``goal=Accuracy(r)`` they minimise the sum subject to ``MSE ≤ r²``, with ``goal=Budget(b)`` the error subject
    to ``Σ virtual_costs·privacy_loss ≤ b``.

    Parameters
    ----------
    virtual_costs
        One per person, nonnegative; ``inf`` means she is never bought from.
    setting
        ``"central"`` (a trusted platform adds noise once) or ``"local"`` (each person's device does).
    variance
        Of the data around the mean, in units where the range has width 1. In the central setting also one per person.
    error_weight
        What one unit of squared error costs, short for ``goal=Price(error_weight)``; ``None`` means ``n + 1``, as in
        [F], if there is no goal.
    goal
        A `Price`, an `Accuracy` or a `Budget`, in units where the range has width 1.
    max_loss
        The most that may be bought from anybody, or (central) from each person; the optimum is the one under it. With
        strata in the central setting for a `Price` only.
    tie_key
        One per person. Where the optimum must choose among equal virtual costs, the smaller key is bought from first
        (equal keys, or none: the earlier position). Neither keys nor positions may depend on the bids: that would
        break truthfulness. `tie_keys` makes keys of ids.
    strata
        Everybody's stratum, and the combination of stratum means that is wanted instead of one mean: ``weights`` then
        have its signs and add up to each stratum's weight.
    response
        Whether people answer a yes/no question by randomised response instead of adding noise: local, variance 1/4.
        A local `hushbid.Market` with a single yes/no question does.

    >>> allocation = allocate([1.0, 1.2, 9.0], setting="central", variance=0.25)
    >>> allocation.active, allocation.weights.round(4).tolist()
    (2, [0.623, 0.377, 0.0])
    """
    told = _stated(virtual_costs, setting, variance, error_weight, goal, max_loss, tie_key, strata, response)
    return told.allocation() if isinstance(told, LocalRule) else solve(told)


def _stated(
    virtual_costs: ArrayLike,
    setting: object,
    variance: ArrayLike,
    error_weight: float | None,
    goal: Goal | None,
    max_loss: ArrayLike,
    tie_key: Sequence[Any] | NDArray[Any] | None,
    strata: Strata | None,
    response: bool,
) -> LocalRule | CentralProblem:
    """Return the problem: centrally no cap is an infinite one, and one mean is one stratum."""
    if not isinstance(setting, str):
        raise InputError(f"setting must be 'central' or 'local', got {type(setting).__name__}.", field="setting")
    if setting not in ("central", "local"):
        raise InputError(f"setting must be 'central' or 'local', got {setting!r}.", field="setting")
    problem = as_problem(
        virtual_costs,
        variance=variance,
        error_weight=error_weight,
        goal=goal,
        tie_key=tie_key,
        local=setting == "local",
        response=response,
    )
    if setting == "local":
        return LocalRule(problem, max_loss, strata)
    caps = as_caps(max_loss, problem.costs.size)
    if strata is None:
        strata = Strata(codes=np.zeros(problem.costs.size, dtype=np.intp), weights=np.ones(1))
    return CentralProblem.of(problem, strata, caps)


def replies(
    virtual_costs: ArrayLike,
    *,
    setting: str,
    variance: ArrayLike = 0.25,
    error_weight: float | None = None,
    goal: Goal | None = None,
    max_loss: ArrayLike = math.inf,
    tie_key: Sequence[Any] | NDArray[Any] | None = None,
    strata: Strata | None = None,
    response: bool = False,
) -> ReplyRule:
    """The optimum as a function of one person's virtual cost, the others' fixed: what payments integrate.

    Where her cost equals others', ``tie_key`` decides as in `allocate`; ``strata`` are those of `allocate` too.

    >>> rule = replies([1.0, 1.2, 9.0], setting="central")
    >>> rule.at(np.array([0, 0]), np.array([1.0, 1.1])).loss.round(4).tolist()
    [1.5322, 1.3498]
    """
    told = _stated(virtual_costs, setting, variance, error_weight, goal, max_loss, tie_key, strata, response)
    return told.prepare() if isinstance(told, LocalRule) else allocation_rule(told)


def least_objective(
    virtual_costs: ArrayLike,
    *,
    setting: str,
    variance: ArrayLike = 0.25,
    goal: Goal,
    max_loss: ArrayLike = math.inf,
    strata: Strata | None = None,
    response: bool = False,
) -> float:
    """What no allocation's objective can be below, found without solving: `Allocation.lower_bound` by itself."""
    told = _stated(virtual_costs, setting, variance, None, goal, max_loss, None, strata, response)
    return told.lower_bound() if isinstance(told, LocalRule) else lower_bound(told)
