"""The local allocation rule: everybody's own loss as a function of their own cost, for many pairs at once.

With strata the combination ``Σ ℓ_g·(mean of stratum g)`` has the error ``Σ ℓ_g²·MSE_g``, as everybody adds noise of
their own. So for a price ``A`` the objective is a sum over strata, and the optimum is one local optimum in each, with
the error weight ``A·ℓ_g²``. One mean is one stratum.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from hushbid.allocation.central_problem import nobody_sells
from hushbid.allocation.goals import Price
from hushbid.allocation.local import SPARE, LocalMarket, bound_of, solve_local
from hushbid.allocation.merit_order import Deviations
from hushbid.allocation.problem import Allocation, Problem
from hushbid.allocation.reply_rules import Replies
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import InputError
from hushbid.estimation import Strata


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """The people of one stratum, and the problem that is theirs."""

    rows: IndexArray | slice = field(repr=False)
    problem: Problem
    square: float
    """The square of the stratum's weight."""

    weight: float


def strata_of(problem: Problem, strata: Strata | None) -> list[Stratum]:
    """Divide a problem into one for each stratum; refused where the strata do not separate, or nobody sells."""
    if strata is None:
        return [Stratum(slice(None), problem, 1.0, 1.0)]
    if problem.goal.kind != "price":
        raise InputError(
            "goal must be a Price with strata in the local setting: for another goal the strata do not separate, and"
            " the optimum is not known.",
            field="goal",
        )
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
        square = weight * weight
        key = None if problem.tie_key is None else problem.tie_key[rows]
        goal = Price(problem.goal.number * square)
        part = replace(problem, costs=costs, cheapest=cheapest, tie_key=key, goal=goal)
        found.append(Stratum(rows, part, square, weight))
    return found


def allocate_local(problem: Problem, max_loss: float, strata: Strata | None) -> Allocation:
    """Solve the local problem, with strata or without, under one cap for all."""
    parts = strata_of(problem, strata)
    found = [solve_local(part.problem, max_loss) for part in parts]
    if strata is None:
        return found[0]
    losses, weights = np.zeros(problem.costs.size), np.zeros(problem.costs.size)
    for part, one in zip(parts, found, strict=True):
        losses[part.rows], weights[part.rows] = one.privacy_loss, part.weight * one.weights
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


def least_local(problem: Problem, max_loss: float, strata: Strata | None) -> float:
    """What no local allocation's objective can be below, found without solving."""
    parts = [part.problem for part in strata_of(problem, strata)]
    for part in parts:
        if part.goal.kind == "accuracy":
            part.confine()
    return float(sum(bound_of(part, max_loss)(part.costs, part.variance, part.goal.number) for part in parts))


class LocalRule:
    """The local optimum as a function of one person's cost, everybody else's fixed."""

    def __init__(self, problem: Problem, max_loss: float, strata: Strata | None) -> None:
        self._parts = strata_of(problem, strata)
        self._markets = [_Deviating(part.problem, max_loss) for part in self._parts]
        self._codes = np.zeros(problem.costs.size, dtype=np.intp) if strata is None else strata.codes
        self._place = np.empty(problem.costs.size, dtype=np.intp)
        for part in self._parts:
            self._place[part.rows] = np.arange(part.problem.costs.size)

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        value, loss, mse = np.zeros(rows.size), np.zeros(rows.size), np.zeros(rows.size)
        codes = self._codes[rows]
        for stratum, (part, market) in enumerate(zip(self._parts, self._markets, strict=True)):
            own, others = np.flatnonzero(codes == stratum), np.flatnonzero(codes != stratum)
            found = market.at(self._place[rows[own]], costs[own])
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
        present = market.optima(Deviations.none(market.sums), np.array([market.free]))
        market.sums.tabulate(int(present.count[0]), float(present.price[0]))
        self.value = float(market.form.money(present.value)[0])
        self.mse = float(market.form.demand.mse(present.price)[0])

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        market, form = self._market, self._market.form
        costs = form.workable(costs)
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
