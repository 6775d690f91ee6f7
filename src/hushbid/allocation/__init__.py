"""The optimal privacy loss of every person, exactly, for given virtual costs.

In reading order:

- `problem`: what is minimised, in which units; its solution, `Allocation`; who comes first among equals
- `central`: the central optimum: a one-dimensional problem in pieces, each with a root in closed form
- `local`: the local optimum, by how many people are active
- `reply_rules`: the optimum as a function of one person's cost, which payments integrate
- `central_replies`, `local_replies`: that function for many people at once, without solving again
- `lower_bounds`: what no allocation can beat, found without looking at one: the certificate
- `sums`: exact sums of costs, and sums in buckets
- `central_from_sums`: the central optimum between bounds, from sums alone: what engines use
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushbid.allocation.central import solve_central, variance_vanishes
from hushbid.allocation.central_replies import CentralReplies
from hushbid.allocation.local import solve_local
from hushbid.allocation.local_replies import LocalReplies
from hushbid.allocation.problem import Allocation, as_keys, as_problem, tie_keys
from hushbid.allocation.reply_rules import DirectReplies, Replies, ReplyRule
from hushbid.arrays import IndexArray
from hushbid.errors import InputError

__all__ = ["Allocation", "Replies", "ReplyRule", "allocate", "precedence", "replies", "tie_keys"]


def allocate(
    virtual_costs: ArrayLike,
    *,
    setting: str = "central",
    variance: ArrayLike = 0.25,
    error_weight: float | None = None,
    tie_key: Sequence[Any] | NDArray[Any] | None = None,
) -> Allocation:
    """The privacy losses and weights that minimise ``error_weight·MSE + Σ virtual_costs·privacy_loss``, globally.

    Parameters
    ----------
    virtual_costs
        One per person, nonnegative; ``inf`` means she is never bought from.
    setting
        ``"central"`` (a trusted platform adds noise once) or ``"local"`` (each person's device does).
    variance
        Of the data around the mean, in units where the range has width 1. In the central setting also one per person.
    error_weight
        What one unit of squared error costs; ``None`` means ``n + 1``, as in [F].
    tie_key
        One per person. Where the optimum must choose among equal virtual costs, the smaller key is bought from first
        (equal keys, or none: the earlier position). Neither keys nor positions may depend on the reports: that would
        break truthfulness. `tie_keys` makes keys of ids.

    >>> allocation = allocate([1.0, 1.2, 9.0], setting="central", variance=0.25)
    >>> allocation.active, allocation.weights.round(4).tolist()
    (2, [0.623, 0.377, 0.0])
    """
    if not isinstance(setting, str):
        raise InputError(f"setting must be 'central' or 'local', got {type(setting).__name__}.", field="setting")
    if setting == "central":
        return solve_central(
            as_problem(virtual_costs, variance=variance, error_weight=error_weight, tie_key=tie_key, local=False)
        )
    if setting == "local":
        return solve_local(
            as_problem(virtual_costs, variance=variance, error_weight=error_weight, tie_key=tie_key, local=True)
        )
    raise InputError(f"setting must be 'central' or 'local', got {setting!r}.", field="setting")


def replies(
    virtual_costs: ArrayLike,
    *,
    setting: str,
    variance: ArrayLike = 0.25,
    error_weight: float | None = None,
    tie_key: Sequence[Any] | NDArray[Any] | None = None,
) -> ReplyRule:
    """The optimum as a function of one person's virtual cost, the others' fixed: what payments integrate.

    Where her cost equals others', ``tie_key`` decides as in `allocate`.

    >>> rule = replies([1.0, 1.2, 9.0], setting="central")
    >>> rule.at(np.array([0, 0]), np.array([1.0, 1.1])).loss.round(4).tolist()
    [1.5322, 1.3498]
    """
    local = setting == "local"
    problem = as_problem(virtual_costs, variance=variance, error_weight=error_weight, tie_key=tie_key, local=local)
    spread = problem.variance
    if variance_vanishes(problem):
        return DirectReplies(
            problem.costs,
            partial(allocate, setting=setting, variance=spread, error_weight=problem.error_weight, tie_key=tie_key),
        )
    if isinstance(spread, float) and local:
        return LocalReplies(problem.costs, spread, problem.error_weight, precedence(tie_key))
    return CentralReplies(problem.costs, spread, problem.error_weight)


def precedence(tie_key: Sequence[Any] | NDArray[Any] | None) -> IndexArray | None:
    """Everybody's place in the order in which equals are bought from; None for the order of the rows."""
    if tie_key is None:
        return None
    order = np.argsort(as_keys(tie_key, len(tie_key)), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return place
