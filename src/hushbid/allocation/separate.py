"""Strata in the local setting, for a price of the error: markets that have nothing to do with each other.

Everybody adds noise of her own, so the estimates of the stratum means are independent, and their combination
``Σ ℓ_g θ_g`` has the error ``Σ ℓ_g² MSE_g``. With a price ``A`` the objective is a sum over strata: the optimum is one
ordinary local optimum in each, with the error weight ``A·ℓ_g²``. For an accuracy or a budget the strata hang together
through what is left for the others, and nothing of the kind is true.
"""

import math

import numpy as np

from hushbid.allocation.central_problem import nobody_sells
from hushbid.allocation.goals import Goal, Price
from hushbid.allocation.problem import Allocation, Problem
from hushbid.allocation.reply_rules import Replies, ReplyRule
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import InputError
from hushbid.estimation import Strata


def rows_of_strata(problem: Problem, strata: Strata) -> list[tuple[IndexArray, Goal]]:
    """Each stratum's people and its own goal; refused where the strata do not separate, or nobody sells."""
    if not isinstance(problem.goal, Price):
        raise InputError(
            "goal must be a Price with strata in the local setting: for another goal the strata do not separate, and"
            " the optimum is not known.",
            field="goal",
        )
    if strata.codes.shape != problem.costs.shape:
        told = f"strata must have one code per person ({problem.costs.size}), got shape {strata.codes.shape}."
        raise InputError(told, field="strata")
    found: list[tuple[IndexArray, Goal]] = []
    for stratum, weight in enumerate(strata.weights.tolist()):
        rows = np.flatnonzero(strata.codes == stratum)
        if not (problem.costs[rows] < math.inf).any():
            raise nobody_sells(strata, stratum)
        found.append((rows, Price(problem.goal.buyer_weight * weight * weight)))
    return found


def joined(problem: Problem, strata: Strata, parts: list[tuple[IndexArray, Allocation]]) -> Allocation:
    """The strata's optima as one allocation."""
    losses, weights = np.zeros(problem.costs.size), np.zeros(problem.costs.size)
    for (rows, part), weight in zip(parts, strata.weights.tolist(), strict=True):
        losses[rows], weights[rows] = part.privacy_loss, weight * part.weights
    return Allocation(
        privacy_loss=losses,
        weights=weights,
        mse=_error(strata, [part.mse for _, part in parts]),
        objective=sum(part.objective for _, part in parts),
        active=sum(part.active for _, part in parts),
        setting="local",
        error_weight=problem.error_weight,
        _certify=lambda: sum(part.lower_bound for _, part in parts),
    )


class SeparateReplies:
    """The optimum as a function of one person's cost: her own stratum's answer beside the others as they are."""

    def __init__(self, strata: Strata, parts: list[tuple[IndexArray, Allocation, ReplyRule]]) -> None:
        self._strata, self._parts = strata, parts
        self._place = np.empty(strata.codes.size, dtype=np.intp)
        for rows, _, _ in parts:
            self._place[rows] = np.arange(rows.size)

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        value, loss, mse = np.empty(rows.size), np.empty(rows.size), np.empty(rows.size)
        codes = self._strata.codes[rows]
        for stratum, (_, _, rule) in enumerate(self._parts):
            mine = np.flatnonzero(codes == stratum)
            if mine.size == 0:
                continue
            found = rule.at(self._place[rows[mine]], costs[mine])
            others = [(0.0, 0.0) if g == stratum else (p.objective, p.mse) for g, (_, p, _) in enumerate(self._parts)]
            value[mine] = found.value + sum(one[0] for one in others)
            loss[mine] = found.loss
            mse[mine] = found.mse * self._strata.weights[stratum] ** 2 + _error(self._strata, [m for _, m in others])
        return Replies(value, loss, mse)


def _error(strata: Strata, errors: list[float]) -> float:
    return float((np.square(strata.weights) * errors).sum())
