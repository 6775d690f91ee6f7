"""The local allocation rule: everybody's own loss as a function of their own cost, for many pairs at once.

With strata the combination ``Σ ℓ_g·(mean of stratum g)`` has the error ``Σ ℓ_g²·MSE_g``, as everybody adds noise of
their own. So for a price ``A`` the objective is a sum over strata, and the optimum is one local optimum in each, with
the error weight ``A·ℓ_g²``. One mean is one stratum.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation.central_problem import nobody_sells
from hushbid.allocation.goals import Price
from hushbid.allocation.local import SPARE, LocalMarket, least_objective, solve_local
from hushbid.allocation.local_problem import as_local_cap
from hushbid.allocation.merit_order import Deviations
from hushbid.allocation.problem import Allocation, Problem, workable
from hushbid.allocation.reply_rules import Replies
from hushbid.allocation.unsolved import LOCAL_STRATA
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import InputError
from hushbid.estimation import Strata


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """The people of one stratum, and the problem that is theirs."""

    problem: Problem
    weight: float = 1.0
    """The stratum's weight in the combination of means."""

    members: IndexArray | None = field(default=None, repr=False)
    """Their rows, ascending; None if everybody is in this stratum."""

    @property
    def square(self) -> float:
        """What the stratum's squared error counts."""
        return self.weight * self.weight

    def contains(self, rows: IndexArray) -> BoolArray:
        """Whether people are in this stratum."""
        if self.members is None:
            return np.ones(rows.size, dtype=bool)
        found: BoolArray = self.members[np.minimum(self.places(rows), self.members.size - 1)] == rows
        return found

    def places(self, rows: IndexArray) -> IndexArray:
        """Where people of this stratum are in its problem."""
        return rows if self.members is None else np.asarray(self.members.searchsorted(rows), dtype=np.intp)


def strata_of(problem: Problem, strata: Strata | None) -> list[Stratum]:
    """Divide a problem into one for each stratum; refused where the strata do not separate, or nobody sells."""
    if strata is None:
        return [Stratum(problem)]
    if problem.goal.kind != "price":
        raise LOCAL_STRATA.error()
    if strata.codes.shape != problem.costs.shape:
        raise InputError(
            f"strata must have one code per person ({problem.costs.size}), got shape {strata.codes.shape}.",
            field="strata",
        )
    found = []
    for stratum, weight in enumerate(strata.weights.tolist()):
        rows = np.flatnonzero(strata.codes == stratum)
        costs = problem.costs[rows]
        cheapest = float(costs.min(initial=np.inf))
        if cheapest == np.inf:
            raise nobody_sells(strata, stratum)
        key, goal = None if problem.tie_key is None else problem.tie_key[rows], Price(problem.goal.number * weight**2)
        part = replace(problem, costs=costs, cheapest=cheapest, tie_key=key, goal=goal)
        found.append(Stratum(part, weight, rows))
    return found


def allocate_local(problem: Problem, max_loss: ArrayLike, strata: Strata | None) -> Allocation:
    """Solve the local problem, with strata or without, under one cap for all."""
    parts, cap = strata_of(problem, strata), as_local_cap(max_loss, problem)
    found = [solve_local(part.problem, cap) for part in parts]
    if strata is None:
        return found[0]
    losses, weights = np.zeros(problem.costs.size), np.zeros(problem.costs.size)
    for part, one in zip(parts, found, strict=True):
        losses[part.members], weights[part.members] = one.privacy_loss, part.weight * one.weights
    return Allocation(
        privacy_loss=losses,
        weights=weights,
        mse=sum(part.square * one.mse for part, one in zip(parts, found, strict=True)),
        objective=sum(one.objective for one in found),
        active=sum(one.active for one in found),
        setting="local",
        error_weight=problem.error_weight,
        _certify=lambda: sum(one.lower_bound for one in found),
    )


def least_local(problem: Problem, max_loss: ArrayLike, strata: Strata | None) -> float:
    """What no local allocation's objective can be below, found without solving."""
    parts, cap = strata_of(problem, strata), as_local_cap(max_loss, problem)
    return sum(least_objective(part.problem, cap) for part in parts)


def local_allocation_rule(problem: Problem, max_loss: ArrayLike, strata: Strata | None) -> "LocalRule":
    """The allocation rule that belongs to `allocate_local`."""
    parts, cap = strata_of(problem, strata), as_local_cap(max_loss, problem)
    return LocalRule(parts, cap)


class LocalRule:
    """The local optimum as a function of one person's cost, everybody else's fixed."""

    def __init__(self, parts: list[Stratum], max_loss: float) -> None:
        self._parts = parts
        self._markets = [_Deviating(part.problem, max_loss) for part in parts]

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        value, loss, mse = np.zeros(rows.size), np.zeros(rows.size), np.zeros(rows.size)
        for part, market in zip(self._parts, self._markets, strict=True):
            inside = part.contains(rows)
            own, others = np.flatnonzero(inside), np.flatnonzero(~inside)
            found = market.at(part.places(rows[own]), costs[own])
            value[own] += found.value
            loss[own] = found.loss
            mse[own] += part.square * found.mse
            value[others] += market.value
            mse[others] += part.square * market.mse
        return Replies(value, loss, mse)


class _Deviating:
    """One stratum's market, its optimum, and what it would be at another cost of one person."""

    def __init__(self, problem: Problem, max_loss: float) -> None:
        self._market = market = LocalMarket(problem, max_loss, spare=SPARE)
        present = market.present()
        market.sums.tabulate(int(present.count[0]), float(present.price[0]))
        self.value = float(market.form.money(present.value)[0])
        self.mse = float(market.form.demand.mse(present.price)[0])

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        market, form = self._market, self._market.form
        costs = workable(costs, form.least, form.most)
        rank, moved = market.order.rank(rows, costs), costs / form.scale
        deviations = Deviations(market.sums, market.order.place[rows], moved, rank)
        free = market.free - (market.costs[rows] == 0.0) + (costs == 0.0)
        found = market.optima(deviations, free)
        possible = found.value < np.inf
        loss = market.losses(found, np.arange(rows.size), moved, rank)
        return Replies(
            form.money(found.value),
            np.where(possible & deviations.present, loss, 0.0),
            np.where(possible, form.demand.mse(found.price), np.inf),
        )
