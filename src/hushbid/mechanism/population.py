"""The people of a market, in the form in which the mechanism works on them: the internal problem.

A `hushbid.mechanism.market.Market` is what a user states: her units, a prior or one per group, a cap or none. A
`Population` is that market for a number of people: a data range of width 1, where ``V → V/R²`` and ``A → A·R²``; no cap
is an infinite one; one entry per group of people who share a prior; numbers of one person only where people differ.
Whoever prices, plans, simulates, verifies or draws works on this.

Errors that people are paid for stay in data units, with ``unit = R²`` to convert: only so is a payment the same to the
last bit in whatever units the data are. On an engine people are counted but not listed, and groups have no rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation import (
    Accuracy,
    Allocation,
    Budget,
    Goal,
    HardBudget,
    Price,
    ReplyRule,
    allocate,
    least_objective,
    replies,
)
from hushbid.arrays import BoolArray, FloatArray, IndexArray
from hushbid.disclosure.relation import Relation
from hushbid.errors import DivergentPayment, InputError, MarketError, NobodyToBuyFrom, Unreachable
from hushbid.estimation import WORST_VARIANCE, Contrast, Strata, Weights, best_contrast, best_weights, mse_of
from hushbid.mechanism.setting import Setting
from hushbid.priors import Grouped, Prior
from hushbid.priors.inputs import to_reports
from hushbid.wording import people

OutsideOption = Literal["own_data", "estimate"]
_FREE = 1e-100
"""Next to nothing: solvers need not tell it from zero where a bound is all that is wanted."""
TieKey = Sequence[Any] | NDArray[Any] | None
"""One per person: among equals the smaller comes first; None: the earlier row does."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """People who share a prior."""

    name: str
    """What the group is called; empty if there are no groups."""

    prior: Prior
    """What is believed about their sensitivities."""

    rows: IndexArray
    """Who they are, ascending; empty where people are counted, but not listed."""


def groups_of(prior: Prior | Grouped, people: int | None) -> tuple[Group, ...]:
    """Every group with people in it; with ``people=None``, where they are only counted, every group there is."""
    if isinstance(prior, Grouped):
        if people is None:
            none = np.zeros(0, dtype=np.intp)
            return tuple(Group(name=name, prior=one, rows=none) for name, one in prior.priors.items())
        if len(prior) != people:
            raise InputError(
                f"n must be the number of labels of the grouped prior, {len(prior)}, got {people}.", field="n"
            )
        return tuple(Group(name=name, prior=one, rows=rows) for name, one, rows in prior.groups)
    return (Group(name="", prior=prior, rows=np.arange(people or 0)),)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """A market for so many people, on a data range of width 1."""

    people: int
    """How many there are."""

    setting: Setting
    """Where noise is added, and what follows from it."""

    groups: tuple[Group, ...]
    """Everybody, by prior."""

    grouped: bool
    """Whether priors were stated by group, be it one."""

    width: float
    """``R``, the width of the range in data units."""

    goal: Goal
    """What the buyer states, in data units and money."""

    bias: float
    """``γ²·V̄``: the mean squared distance between what people's prices tell of their data and the mean, at worst."""

    roster: int
    """``N``: how many people the mean is about."""

    cap: float | FloatArray
    """Nobody's privacy loss is larger: one number, or one per person, her own limit included; infinite if there is no
    cap."""

    user_weight: float | FloatArray
    """``β``, in money per squared data unit: one number, or one per person."""

    own_error: float | FloatArray
    """The variance in squared data units: what somebody's own datum is worth to her."""

    outside_option: OutsideOption
    """What somebody who stays out has."""

    tolerance: float
    """How far a payment may be from the exact one, relative to the largest."""

    strata: Strata | None = None
    """Everybody's stratum, and the combination of their means that is wanted; None for one mean of all."""

    rosters: tuple[int, ...] = ()
    """``N_g``: how many people the mean of each stratum is about; empty without strata."""

    survey: bool = False
    """Whether it is the one number that several questions come to: then errors are relative, see
    `hushbid.mechanism.survey`."""

    total_weight: float = field(init=False)
    """``A = α + Σ β_i``, in money per squared data unit; 0 where the goal is not a price."""

    variance: float | FloatArray = field(init=False)
    """What the purchase is planned with: ``V + Nγ²·V̄``, one number or one per person. The error that it gives is the
    worst there can be, and ``allowance`` more."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "total_weight", total_weight(self.buyer_weight, self.user_weight, self.people))
        # of a yes or no it is 1/4 to the last bit
        own = WORST_VARIANCE if self.setting.response else self.own_error / self.unit
        object.__setattr__(self, "variance", own if self.bias == 0.0 else own + self.roster * self.bias)

    @property
    def evenness(self) -> float:
        """``N·Σ ℓ_g²/N_g``: what ``N·Σω²`` is if everybody in a stratum has the same weight, and at least; 1 without
        strata."""
        if self.strata is None:
            return 1.0
        return self.roster * float(np.sum(np.square(self.strata.weights) / np.array(self.rosters)))

    @property
    def allowance(self) -> float:
        """By how much an error with the planned variance is above the worst there can be: ``γ²·V̄·N·Σ ℓ_g²/N_g``."""
        return self.bias * self.evenness

    @property
    def relation(self) -> Relation | None:
        """How closely price and datum may be related, in data units; None if they are not."""
        if self.bias == 0.0:
            return None
        return Relation(spread=self.bias * self.unit, roster=self.roster, strata=self.rosters)

    # -- who they are --------------------------------------------------------------------------------------------------

    @property
    def unit(self) -> float:
        """``R²``: squared data units in one squared width of the range."""
        return self.width**2

    @property
    def buyer_weight(self) -> float:
        """``α``, in money per squared data unit; 0 where the goal is not a price."""
        return self.goal.buyer_weight if isinstance(self.goal, Price) else 0.0

    @property
    def error_weight(self) -> float:
        """``A``, for a range of width 1."""
        return self.total_weight * self.unit

    @property
    def aim(self) -> Goal:
        """The goal for a range of width 1 and the variance the purchase is planned with."""
        if isinstance(self.goal, Price):
            return Price(self.error_weight)
        if isinstance(self.goal, Accuracy):
            return Accuracy(math.sqrt(self.goal.number**2 / self.unit + self.allowance))
        return self.goal

    @property
    def cares(self) -> bool:
        """Whether anybody but the buyer has a use for the estimate."""
        return bool(np.any(np.asarray(self.user_weight) > 0))

    @property
    def alike(self) -> bool:
        """Whether people differ by nothing but their reports."""
        return not self.grouped and self.alike_in_groups

    @property
    def alike_in_groups(self) -> bool:
        """Whether people of one group differ by nothing but their reports."""
        if self.strata is not None and np.unique(self.strata.codes).size > 1:
            return False
        values = (self.own_error, self.user_weight, self.cap)
        lists = (value for value in values if isinstance(value, np.ndarray))
        return not any(np.unique(value).size > 1 for value in lists)

    @property
    def identity_decides(self) -> bool:
        """Whether some of several people with equal virtual costs may be bought from and others not."""
        return self.setting.identity_decides(self.own_error)

    @property
    def slope(self) -> float | None:
        """The slope of the virtual cost, where it is the same everywhere and for everybody."""
        slopes = {group.prior.slope for group in self.groups}
        return slopes.pop() if len(slopes) == 1 else None

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Everybody's group, where priors were stated by group."""
        if not self.grouped:
            return None
        names = np.empty(self.people, dtype=object)
        for group in self.groups:
            names[group.rows] = group.name
        return tuple(names.tolist())

    def prior_of(self, row: int) -> Prior:
        """The prior of the person in that row."""
        for group in self.groups[:-1]:
            place = int(np.searchsorted(group.rows, row))
            if place < group.rows.size and group.rows[place] == row:
                return group.prior
        return self.groups[-1].prior

    def user_weights(self) -> FloatArray:
        """Everybody's ``β``."""
        return np.broadcast_to(np.asarray(self.user_weight, dtype=float), (self.people,))

    def caps(self) -> FloatArray:
        """The most that everybody's loss may be."""
        return np.broadcast_to(np.asarray(self.cap, dtype=float), (self.people,))

    def own_errors(self) -> FloatArray:
        """What everybody's own datum is worth, in squared data units."""
        return np.broadcast_to(np.asarray(self.own_error, dtype=float), (self.people,))

    def take(self, rows: IndexArray) -> "Population":
        """These people alone, each as often as she is named; the buyer's weight is as before."""
        whole = np.arange(rows.size) if len(self.groups) == 1 else None
        kept = ((group, np.flatnonzero(np.isin(rows, group.rows)) if whole is None else whole) for group in self.groups)
        return replace(
            self,
            people=rows.size,
            groups=tuple(replace(group, rows=places) for group, places in kept if places.size),
            user_weight=_taken(self.user_weight, rows),
            own_error=_taken(self.own_error, rows),
            cap=_taken(self.cap, rows),
            strata=None if self.strata is None else self.strata.of(rows),
        )

    def kinds(self) -> list[tuple[float, IndexArray | None]]:
        """The squared weight ``ℓ_g²`` of each stratum and its people; without strata 1, and None for everybody."""
        if self.strata is None:
            return [(1.0, None)]
        codes = self.strata.codes
        return [(weight**2, np.flatnonzero(codes == g)) for g, weight in enumerate(self.strata.weights.tolist())]

    def separate(self) -> list["Population"]:
        """Strata in the local setting for a price: the markets they are, each with a price ``ℓ_g²`` times as high."""
        assert isinstance(self.goal, Price)
        return [
            replace(self.take(rows), strata=None, rosters=(), goal=Price(self.goal.buyer_weight * square))
            for square, rows in self.kinds()
            if rows is not None
        ]

    # -- priors, row by row --------------------------------------------------------------------------------------------

    def virtual_costs(self, reports: FloatArray) -> FloatArray:
        """What one unit of each person's privacy loss costs the platform; a report below the support is refused."""
        if len(self.groups) > 1:  # a group's own prior would count its rows only
            lowest = self.per_person(lambda prior: prior.smallest_report)
            reports = to_reports(reports, lowest, lambda row: self.prior_of(row).support)
        return self._by_group(lambda prior, part: np.asarray(prior.virtual_cost(part)), reports)

    def quantile(self, levels: FloatArray) -> FloatArray:
        """Each person's quantile at her entry of ``levels``."""
        return self._by_group(lambda prior, part: np.asarray(prior.quantile(part)), levels)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One sensitivity per person."""
        return self._by_group(lambda prior, part: prior.sample(part.size, rng=rng), np.empty(self.people))

    def per_person(self, number: Callable[[Prior], float]) -> FloatArray:
        """A number of each person's prior."""
        return self._by_group(lambda prior, part: np.full(part.size, number(prior)), np.empty(self.people))

    def _by_group(self, values: Callable[[Prior, FloatArray], FloatArray], array: FloatArray) -> FloatArray:
        if len(self.groups) == 1:
            return values(self.groups[0].prior, array)
        result = np.empty(self.people)
        for group in self.groups:
            result[group.rows] = values(group.prior, array[group.rows])
        return result

    # -- the optimum ---------------------------------------------------------------------------------------------------

    def allocation(self, costs: FloatArray, tie_key: TieKey = None, *, error_weight: float | None = None) -> Allocation:
        """The optimal allocation for given virtual costs, caps included; its error is with the planned variance."""
        return allocate(
            costs,
            setting=self.setting.name,
            variance=self.variance,
            goal=self.aim if error_weight is None else Price(error_weight),
            max_loss=self.cap,
            tie_key=tie_key,
            strata=self.strata,
            response=self.setting.response,
        )

    def rule(self, costs: FloatArray, tie_key: TieKey = None, *, error_weight: float | None = None) -> ReplyRule:
        """How the optimum answers to one person's virtual cost."""
        return replies(
            costs,
            setting=self.setting.name,
            variance=self.variance,
            goal=self.aim if error_weight is None else Price(error_weight),
            max_loss=self.cap,
            tie_key=tie_key,
            strata=self.strata,
            response=self.setting.response,
        )

    @property
    def largest_cap(self) -> float:
        """Nobody's loss is larger."""
        return float(np.max(self.cap))

    @property
    def has_caps(self) -> bool:
        """Whether anybody's loss is limited."""
        return bool(np.any(np.asarray(self.cap) < math.inf))

    def without_caps(self) -> "Population":
        """The same people without any cap."""
        return replace(self, cap=math.inf)

    def with_limits(self, limits: FloatArray | None) -> "Population":
        """The same people, who also stated what loss each accepts at most."""
        return self if limits is None else replace(self, cap=np.minimum(self.cap, limits))

    def best_estimate(self, losses: FloatArray) -> tuple[FloatArray, float]:
        """The best weights for given losses, and their error with the planned variance; central with strata."""
        best = self._best(losses)
        return best.weights, float(best.mse)

    def used(self, losses: FloatArray) -> FloatArray:
        """What the best estimate uses of given losses; central with strata."""
        return self._best(losses).delivered

    def _best(self, losses: FloatArray) -> Contrast | Weights:
        if self.strata is not None:
            return best_contrast(losses, strata=self.strata, variance=self.variance)
        how = self.setting
        return best_weights(losses, setting=how.name, variance=self.variance, response=how.response)

    def worst_error(self, planned: float) -> float:
        """The worst error of an estimate from the error it has with the planned variance."""
        if isinstance(self.goal, Accuracy) and planned == self.aim.number**2:
            return self.goal.number**2 / self.unit  # exactly what was stated
        return planned - self.allowance

    def unrelated_error(self, losses: FloatArray, weights: FloatArray) -> float:
        """The error of an estimate if price and datum are unrelated: with people's own variance."""
        own, how = self.own_error / self.unit, self.setting
        return mse_of(weights, losses, setting=how.name, variance=own, strata=self.strata, response=how.response)

    def errors_of(self, allocation: Allocation) -> tuple[float, float]:
        """The error of what is bought if price and datum are unrelated, and at worst, in squared data units."""
        worst = self.worst_error(allocation.mse)
        mse = worst if self.bias == 0.0 else self.unrelated_error(allocation.privacy_loss, allocation.weights)
        return mse * self.unit, worst * self.unit

    def objective_of(self, allocation: Allocation) -> float:
        """What the goal minimises, at an allocation: in money, or squared data units for a budget."""
        return self.certified(allocation.objective)

    def lower_bound(self, costs: FloatArray, losses: FloatArray) -> float:
        """What no decision's objective can be below; infinite if nobody is bought from.

        Under a hard budget: what the error of no purchase can be below that is as dear as these losses, rents included.
        """
        if not losses.any():
            return math.inf
        aim = self.aim
        if isinstance(aim, HardBudget):
            costs = np.where(costs > _FREE, costs, 0.0)  # a lower cost only lowers the bound
            paid = (losses > 0.0) & (costs > 0.0)
            if not paid.any():  # what is free could have been bought without noise
                precision = 1.0 / np.broadcast_to(self.variance, costs.shape)[costs == 0.0]
                return (1.0 / float(precision.sum()) - self.bias) * self.unit
            aim = Budget(float(costs[paid].dot(losses[paid])))
        bound = least_objective(
            costs,
            setting=self.setting.name,
            variance=self.variance,
            goal=aim,
            max_loss=self.cap,
            strata=self.strata,
            response=self.setting.response,
        )
        return self.certified(bound)

    def certified(self, bound: float) -> float:
        """An objective, or a bound on it, from the one with the planned variance on a range of width 1."""
        if isinstance(self.goal, Price):
            return bound - self.error_weight * self.allowance
        return bound if isinstance(self.goal, Accuracy) else (bound - self.allowance) * self.unit

    # -- what no purchase can do ---------------------------------------------------------------------------------------

    def refuse_impossible(self, costs: FloatArray) -> None:
        """A stratum without sellers, an accuracy out of reach, or a payment that would be infinite."""
        if self.strata is None and not isinstance(self.goal, Accuracy):
            return self._refuse_divergence(costs)
        finite = costs < math.inf
        if self.strata is not None:
            self.refuse_without_sellers(np.bincount(self.strata.codes[finite], minlength=self.strata.count))
        if isinstance(self.goal, Accuracy):
            count = int(np.count_nonzero(finite))
            if count == 0:
                planned = math.inf
            elif self.strata is not None:
                planned = float(np.sum(np.square(self.strata.weights) / self._precisions(self.strata, finite)))
            elif self.has_caps or isinstance(self.variance, np.ndarray):  # everybody gives all she may
                planned = self.best_estimate(np.where(finite, self.cap, 0.0))[1]
            else:
                planned = self.variance / count
            self.refuse_unreachable(count, planned)
        self._refuse_divergence(costs)

    def _refuse_divergence(self, costs: FloatArray) -> None:
        """A payment that would be infinite."""
        if all(group.prior.support[1] < math.inf for group in self.groups):
            return
        for row in self._indispensable(costs).tolist():
            prior = self.prior_of(row)
            if rent_diverges(prior, power=self.loss_power):
                raise DivergentPayment(
                    f"A person's payment would be infinite: under {prior!r} she is bought from at every report, as"
                    " nobody can take her place; use a prior with bounded support or a lighter tail, or invite more"
                    " people."
                )

    def refuse_without_sellers(self, sellers: IndexArray) -> None:
        """A stratum whose mean is wanted and from which nothing can be bought; ``sellers`` are how many can be."""
        if self.strata is not None and not sellers.all():
            raise NobodyToBuyFrom(
                f"The mean of stratum {self.strata.label(int(np.argmin(sellers)))} cannot be estimated: nobody in it"
                " reported within the prior's support."
            )

    def _precisions(self, strata: Strata, finite: BoolArray) -> FloatArray:
        """``U_g``: the precision of all data in each stratum that can be bought."""
        precision = 1.0 / np.broadcast_to(self.variance, finite.shape)
        total: FloatArray = np.bincount(strata.codes[finite], weights=precision[finite], minlength=strata.count).astype(
            np.float64, copy=False
        )
        return total

    def refuse_unreachable(self, count: int, planned: float) -> None:
        """An accuracy that ``count`` people cannot reach, whose least error with the planned variance is this."""
        wanted = self.goal.number
        if count == 0:
            told = f"A standard error of {wanted:g} cannot be reached: nobody reported within the prior's support."
            raise Unreachable(told, field="standard_error")
        if planned < self.aim.number**2 * (1.0 - 1e-12):  # what rounding cannot tell from the least is out of reach
            return
        least = math.sqrt(max(planned - self.allowance, 0.0) * self.unit)
        how = "" if self.strata is None else " in their strata"
        how += " within their limits" if self.has_caps else " even without noise"
        how += " against a relation of that strength" if self.bias > 0.0 else ""
        told = f"the least that {people(count)} can reach{how}"
        if self.survey:
            told = f"{least / wanted:.6g} times what is stated for the hardest question, {told}"
            raise Unreachable(f"standard_error must be above {told}.", field="standard_error")
        raise Unreachable(f"standard_error must be above {least:.6g}, {told}, got {wanted:g}.", field="standard_error")

    @property
    def loss_power(self) -> float:
        """The loss of somebody bought from at every cost falls like one over her cost to this power."""
        if isinstance(self.goal, Price):
            return 1.0 / 3.0
        return 0.0 if isinstance(self.goal, Accuracy) else 1.0

    def _indispensable(self, costs: FloatArray) -> IndexArray:
        """Those who are bought from whatever they ask, as nobody can take their place."""
        finite = costs < math.inf
        if self.strata is not None:
            return self._indispensable_in_strata(self.strata, costs)
        if isinstance(self.goal, Price):
            return np.flatnonzero(finite) if np.count_nonzero(finite) == 1 else np.zeros(0, dtype=np.intp)
        if isinstance(self.goal, Accuracy) and self.has_caps:
            rows = np.flatnonzero(finite)
            return rows[np.isinf(self.rule(costs).at(rows, np.full(rows.size, math.inf)).value)]
        if isinstance(self.goal, Accuracy):
            if not isinstance(self.variance, np.ndarray):  # all of them, or nobody
                enough = self.aim.number**2 * (np.count_nonzero(finite) - 1) > self.variance
                return np.zeros(0, dtype=np.intp) if enough else np.flatnonzero(finite)
            precision = np.where(finite, 1.0 / self.variance, 0.0)
            return np.flatnonzero(finite & (self.aim.number**2 * (precision.sum() - precision) <= 1.0))
        paid = np.flatnonzero(finite & (costs > 0.0))
        return paid if paid.size == 1 else np.zeros(0, dtype=np.intp)

    def _indispensable_in_strata(self, strata: Strata, costs: FloatArray) -> IndexArray:
        """The only sellers of their strata; those without whom an accuracy is out of reach; who gets all of a budget.

        Without caps.
        """
        finite, codes = costs < math.inf, strata.codes
        sellers = np.bincount(codes[finite], minlength=strata.count)
        needed = finite & (sellers[codes] == 1)
        if isinstance(self.goal, Accuracy):
            squares, total = np.square(strata.weights), self._precisions(strata, finite)
            own = 1.0 / np.broadcast_to(self.variance, finite.shape)
            others = np.maximum(total[codes] - own, 0.0)
            with np.errstate(divide="ignore"):
                left = np.sum(squares / total) - (squares / total)[codes] + squares[codes] / others
            needed |= finite & (left >= self.aim.number**2)
        elif isinstance(self.goal, Budget):
            paid = finite & (costs > 0.0)
            needed |= paid if np.count_nonzero(paid) == 1 else False
        return np.flatnonzero(needed)

    # -- the error of the estimate, in squared data units --------------------------------------------------------------

    def outside_errors(self, costs: FloatArray) -> FloatArray:
        """What error each person would live with outside."""
        if self.outside_option == "own_data":
            return self.own_errors()
        weight = self.user_weights()
        outside = np.zeros(self.people)
        for value in np.unique(weight[weight > 0.0]).tolist():
            if not self.total_weight > value:
                raise InputError(
                    f"outside_option='estimate' needs somebody else who cares about the error, but one person's weight"
                    f" {value:g} is all of the error weight."
                )
            # without her nobody weighs the error for her
            rows = np.flatnonzero(weight == value)
            outside[rows] = self._errors_without(rows, costs, self.total_weight - value)
        return outside

    def outside_error_of(self, costs: FloatArray, row: int) -> float:
        """What error person ``row`` would live with outside; her own report does not matter."""
        if self.outside_option == "own_data":
            return float(self.own_errors()[row])
        weight = float(self.user_weights()[row])
        present = costs.copy()
        present[row] = min(float(costs[row]), float(costs.max(initial=0.0, where=costs < math.inf)))
        return float(self._errors_without(np.array([row]), present, self.total_weight - weight)[0])

    def _errors_without(self, rows: IndexArray, costs: FloatArray, total_weight: float) -> FloatArray:
        """The error of the mechanism run without each of ``rows``; nothing changes without those it does not use."""
        weight = total_weight * self.unit
        alone = np.count_nonzero(costs < math.inf) == 1
        if alone and (costs[rows] < math.inf).any():
            raise MarketError("outside_option='estimate' is undefined: without the only person there is no estimate.")
        base = self.allocation(costs, error_weight=weight)
        used = np.flatnonzero(base.privacy_loss[rows] > 0.0)
        errors = np.full(rows.size, base.mse)
        rule = self.rule(costs, error_weight=weight)
        errors[used] = rule.at(rows[used], np.full(used.size, math.inf)).mse
        result: FloatArray = errors * self.unit
        return result


def total_weight(buyer_weight: float, user_weight: float | FloatArray, people: int) -> float:
    """``A = α + Σ β_i``, which must be finite."""
    weight = np.asarray(user_weight, dtype=float)
    with np.errstate(over="ignore"):  # refused below
        total = float(buyer_weight + (weight.sum() if weight.ndim else people * weight))
    if not total < math.inf:
        raise InputError(f"buyer_weight and user_weight must have a finite sum, got {total}.", field="buyer_weight")
    return total


def rent_diverges(prior: Prior, *, power: float = 1.0 / 3.0) -> bool:
    """Whether the rent of somebody bought from at every report is infinite: her loss falls like ``ψ^{-power}``.

    The integral converges only if ψ grows faster than the report to ``1/power``; a loss that stays never does.
    """
    if prior.support[1] < math.inf:
        return False
    if power == 0.0:
        return True
    # the power that ψ grows with, far out
    far = float(prior.quantile(0.5)) * 2.0 ** np.arange(10.0, 30.0)
    cost = np.asarray(prior.virtual_cost(far))
    growth = np.diff(np.log2(cost[np.isfinite(cost)]))
    return bool(growth.size and growth[-1] <= 1.0 / power + 1e-6)


def _taken(value: float | FloatArray, rows: IndexArray) -> float | FloatArray:
    return value[rows] if isinstance(value, np.ndarray) else value
