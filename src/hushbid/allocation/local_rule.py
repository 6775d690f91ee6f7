"""The local problem with strata: its optimum, its bound, and the allocation rule for many pairs at once.

The combination ``Σ ℓ_g·(mean of stratum g)`` has the error ``Σ ℓ_g²·MSE_g``, as everybody adds noise of their own. For
a price ``A`` the objective is a sum over strata: one local optimum in each, with the error weight ``A·ℓ_g²``. An
accuracy is divided among them (`hushbid.allocation.local_strata`). One mean is one stratum of weight 1.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hushbid.allocation.central_problem import nobody_sells
from hushbid.allocation.goals import Price
from hushbid.allocation.local import Optima, Search
from hushbid.allocation.local_market import Lists, LocalMarket
from hushbid.allocation.local_problem import Demand, NormalForm, as_local_cap, normal_form
from hushbid.allocation.local_strata import Division
from hushbid.allocation.problem import Allocation, Problem, as_problem, workable
from hushbid.allocation.queue import CostTable
from hushbid.allocation.reply_rules import Replies
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.errors import InputError, Unreachable
from hushbid.estimation import Strata

_STEPS, _LARGEST = 80, 1e250
_ROUNDING = 1e-15  # what is wanted of all at the cap may be off by so much
_AT_ONCE = 1 << 18  # so many costs of drawn markets are worked on at a time: temporaries stay in cache


@dataclass(frozen=True, eq=False)
class _Stratum:
    """The people of one stratum, and the problem that is theirs."""

    members: IndexArray = field(repr=False)  # their rows, ascending
    weight: float  # the stratum's weight in the combination of means
    problem: Problem
    form: NormalForm
    most: Demand  # no more than this is asked of them

    @cached_property
    def market(self) -> LocalMarket:
        """The people in merit order."""
        return LocalMarket(self.problem, self.form, self.most)

    def lists(self, rows: IndexArray, costs: FloatArray) -> Lists:
        """Return a list for each person of any stratum at another cost; if they are of another one, as it is."""
        place = np.minimum(self.members.searchsorted(rows), self.members.size - 1)
        return self.market.lists(np.where(self.members[place] == rows, place, -1), costs)


class LocalRule:
    """The local optimum as a function of one person's cost, everybody else's fixed."""

    def __init__(self, problem: Problem, max_loss: ArrayLike, strata: Strata | None) -> None:
        """Divide people into strata; refused where nobody of one sells."""
        cap, people = as_local_cap(max_loss, problem), problem.costs.size
        strata = strata or Strata(codes=np.zeros(people, dtype=np.intp), weights=np.ones(1))
        if strata.codes.size != people:
            raise InputError(
                f"strata must have one code per person ({people}), got shape {strata.codes.shape}.", field="strata"
            )
        self._problem, self._strata, self._priced = problem, [], problem.goal.kind == "price"
        for stratum, weight in enumerate(strata.weights.tolist()):
            rows = np.flatnonzero(strata.codes == stratum)
            costs = problem.costs[rows]
            cheapest = float(costs.min(initial=np.inf))
            if cheapest == np.inf:
                raise nobody_sells(strata, stratum)
            key = None if problem.tie_key is None else problem.tie_key[rows]
            goal = Price(problem.goal.number * weight**2) if self._priced else problem.goal
            part = replace(problem, costs=costs, cheapest=cheapest, tie_key=key, goal=goal)
            form = normal_form(part, cap)
            demand = Demand.price(1.0) if self._priced else Demand.exactly(np.array([math.inf]))
            if strata.count == 1 and not self._priced:
                demand = Demand.exactly(np.array([weight**2 * form.variance / problem.goal.number**2]))
            self._strata.append(_Stratum(rows, weight, part, form, demand))
        self._weight = 1.0

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """The optimum if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j."""
        lists = [one.lists(rows, costs) for one in self._strata]
        found = self._optima(lists)
        value, mse = self._value_and_mse(found)
        # everybody is in one stratum, and nobody at another cost elsewhere
        loss = sum(one.losses(other) for one, other in zip(lists, found, strict=True))
        return Replies(value, np.asarray(loss), mse)

    def prepare(self) -> "LocalRule":
        """Solve with everybody at their cost, near which all questions are."""
        for one, found in zip(self._strata, self._optima(self._present()), strict=True):
            one.market.sums.tabulate(int(found.count[0]), float(found.price[0]))
        return self

    def allocation(self) -> Allocation:
        """Return the optimum with everybody at their cost; refused if they cannot reach an accuracy."""
        found, people = self._optima(self._present()), self._problem.costs.size
        value, mse = self._value_and_mse(found)
        if value[0] == math.inf:
            raise self._unreachable()
        losses, weights = np.zeros(people), np.zeros(people)
        for one, other in zip(self._strata, found, strict=True):
            market, count = one.market, int(other.count[0])
            rows = one.members[market.order.rows[:count]]
            lost = one.form.losses(other.losses(one.form.supply, market.sums.costs[:count], np.arange(count)))
            losses[rows] = lost
            precision = one.form.supply.curve.precisions(lost, one.form.variance)
            weights[rows] = one.weight * precision / precision.sum()
        return Allocation(
            privacy_loss=losses,
            weights=weights,
            mse=float(mse[0]),
            objective=float(value[0]),
            active=sum(int(one.count[0]) for one in found),
            setting="local",
            error_weight=self._error_weight(found),
            _certify=self.lower_bound,
        )

    def lower_bound(self) -> float:
        """What no objective can be below, found without solving.

        Of an accuracy that strata divide, for every weight ``α`` of the error: what its price costs at least in each
        stratum, less ``α``. The best ``α`` is where the shares of the error add up to 1.
        """
        form = self._strata[0].form
        if self._priced or len(self._strata) == 1:
            bounds = (one.form.money(one.market.bound(one.most.less(_ROUNDING))[0]) for one in self._strata)
            return math.fsum(bounds)
        best, ends, weight = 0.0, [0.0, math.inf], self._weight
        for step in range(_STEPS):
            if not 0.0 < weight < _LARGEST:  # hardly reachable at all, or people who cost nothing are enough
                break
            every = zip(self._strata, self._units, strict=True)
            found = [one.market.bound(Demand.price(weight * unit)) for one, unit in every]
            best = max(best, math.fsum([*(value for value, _ in found), -weight]))
            shares = math.fsum(u / wanted for u, (_, wanted) in zip(self._units, found, strict=True))
            ends[shares < 1.0] = weight
            if abs(shares - 1.0) <= 1e-12 or ends[1] <= ends[0] * (1.0 + 1e-12):
                break
            ahead, far = weight * shares * shares, 2.0 ** (step if shares > 1.0 else -step)
            if ends[0] > 0.0 and ends[1] < math.inf:
                inside = ends[0] < ahead < ends[1] and step % 2 == 0
                weight = ahead if inside else math.sqrt(ends[0]) * math.sqrt(ends[1])
            else:
                weight = max(ahead, weight * far) if shares > 1.0 else min(ahead, weight * far)
        return form.money(best * (1.0 - 1e-11))

    @property
    def _units(self) -> FloatArray:
        """The share of the error that an accuracy allows, at a precision of 1 in each stratum."""
        allowed = self._problem.goal.number**2
        return np.array([one.weight**2 * one.form.variance / allowed for one in self._strata])

    def _present(self) -> list[Lists]:
        """Everybody at their cost."""
        return [one.lists(np.array([-1]), np.array([math.inf])) for one in self._strata]

    def _optima(self, lists: list[Lists]) -> list[Optima]:
        """The optimum of each stratum, for each list."""
        every = np.arange(lists[0].free.size)
        if self._priced:
            return [one.optima(every, Demand.price(1.0, every.size)) for one in lists]
        division = Division(lists, self._units).find(self._weight)
        self._weight = float(division.weight[0]) if every.size == 1 else self._weight
        return [one.optima(every, Demand.exactly(division.precision[:, g])) for g, one in enumerate(lists)]

    def _value_and_mse(self, found: list[Optima]) -> tuple[FloatArray, FloatArray]:
        """Objective and error of each list, in the caller's units."""
        every = list(zip(self._strata, found, strict=True))
        value = np.asarray(sum(one.form.money(other.value) for one, other in every))
        if self._priced:
            with np.errstate(divide="ignore"):
                mse = np.sum([one.weight**2 * one.form.variance / other.precision for one, other in every], axis=0)
        else:
            mse = np.full(value.size, self._problem.goal.number**2)
        return value, np.where(value < math.inf, mse, math.inf)

    def _error_weight(self, found: list[Optima]) -> float:
        """What a unit of squared error is worth: as stated, or as the price of precision says where most of it is."""
        if self._priced:
            return self._problem.error_weight
        units = self._units
        g = int(np.argmax([unit / one.precision[0] for unit, one in zip(units, found, strict=True)]))
        weight, form = found[g].price[0] * found[g].precision[0] ** 2 / units[g], self._strata[g].form
        return float(form.money(weight) / self._problem.goal.number**2)

    def _unreachable(self) -> Unreachable:
        """Return what to raise if all together cannot reach an accuracy."""
        forms = [one.form for one in self._strata]
        sizes = [one.market.sums.costs.size for one in self._strata]
        least = sum(u / (n * form.supply.top) for u, n, form in zip(self._units, sizes, forms, strict=True))
        cap, stated = forms[0].max_loss, self._problem.goal.number
        noise = "without any noise" if cap == math.inf else f"at a max_privacy_loss of {cap:g}"
        return Unreachable(
            f"standard_error must be above {math.sqrt(least) * stated:.6g}, the error of these {sum(sizes)} people's"
            f" data {noise}, got {stated:g}.",
            field="standard_error",
        )


def local_expenses(
    costs: FloatArray, *, price: float, variance: float, max_loss: float, response: bool
) -> tuple[FloatArray, FloatArray]:
    """Return Σψε of the best purchase in each drawn market, and from how many it buys: one row of costs each.

    A planned price asks for hundreds of markets of as many people a dozen times, so all are searched at once.
    """
    rows = max(_AT_ONCE // costs.shape[1], 1)
    parts = [
        _some_expenses(costs[start : start + rows], price, variance, max_loss, response)
        for start in range(0, costs.shape[0], rows)
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _some_expenses(
    costs: FloatArray, price: float, variance: float, max_loss: float, response: bool
) -> tuple[FloatArray, FloatArray]:
    problem = as_problem(
        np.array([costs.min()]),
        variance=variance,
        error_weight=None,
        goal=Price(price),
        tie_key=None,
        local=True,
        response=response,
    )
    form = normal_form(problem, as_local_cap(max_loss, problem))
    supply, ordered = form.supply, np.sort(workable(costs, form.least, form.most), axis=1)
    normal = ordered / form.scale
    search = Search(CostTable(normal, supply), supply, Demand.price(1.0, costs.shape[0]))
    found = search.optima(search.marginal(1 + costs.shape[1] // 8))
    losses = form.losses(found.losses(supply, normal.T, np.arange(costs.shape[1])[:, np.newaxis]).T)
    with np.errstate(invalid="ignore"):
        return np.where(losses > 0.0, ordered * losses, 0.0).sum(axis=1), found.count.astype(np.float64)
