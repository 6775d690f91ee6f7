"""The people of a market, in the form in which the mechanism works on them: the internal problem.

A `hushbid.mechanism.market.Market` is what a user states: their units, a prior or one per group, a cap or none. A
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
from hushbid.allocation.central_problem import LEAST_VARIANCE, countable
from hushbid.common.arrays import FloatArray, IndexArray, IntArray, counted_repr
from hushbid.disclosure.combination import local_shares, one_stratum, planned_losses
from hushbid.disclosure.relation import Relation
from hushbid.errors import InputError, MarketError
from hushbid.estimation import WORST_VARIANCE, Contrast, Strata, Weights, best_contrast, best_weights, mse_of
from hushbid.mechanism.rounding import Kind, reserve_for
from hushbid.mechanism.setting import Setting
from hushbid.priors import Grouped, Prior
from hushbid.priors.inputs import to_bids

OutsideOption = Literal["own_data", "estimate"]
_FREE = 1e-100
"""Next to nothing: solvers need not tell it from zero where a bound is all that is wanted."""
_PRICES, _STEPS = (1e-3, 1e9), 40
"""Between which prices of the error, relative to an expense, the one is looked for that bounds the error best."""

TieKey = Sequence[Any] | NDArray[Any] | None
"""One per person: among equals the smaller comes first; None: the earlier row does."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Group:
    """People who share a prior."""

    name: str
    """What the group is called; empty if there are no groups."""

    prior: Prior
    """What is believed about their costs."""

    who: IndexArray | int
    """Who they are, ascending, or how many, where it is everybody; none where people are counted, but not listed."""

    def __repr__(self) -> str:
        return counted_repr(self)

    @property
    def rows(self) -> IndexArray:
        """Who they are, ascending; empty where people are counted, but not listed."""
        return self.who if isinstance(self.who, np.ndarray) else np.arange(self.who)

    @property
    def size(self) -> int:
        """How many are listed."""
        return self.who.size if isinstance(self.who, np.ndarray) else self.who


def keys_of(tie_key: TieKey, rows: IndexArray) -> TieKey:
    """The tie keys of these people."""
    if tie_key is None or isinstance(tie_key, np.ndarray):
        return None if tie_key is None else tie_key[rows]
    return [tie_key[row] for row in rows.tolist()]


def groups_of(prior: Prior | Grouped, people: int | None) -> tuple[Group, ...]:
    """Every group with people in it; with ``people=None``, where they are only counted, every group there is."""
    if isinstance(prior, Grouped):
        if people is None:
            return tuple(Group(name=name, prior=one, who=0) for name, one in prior.priors.items())
        if len(prior) != people:
            raise InputError(
                f"n must be the number of labels of the grouped prior, {len(prior)}, got {people}.", field="n"
            )
        return tuple(Group(name=name, prior=one, who=rows) for name, one, rows in prior.groups)
    return (Group(name="", prior=prior, who=people or 0),)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
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
    """What the purchase is for, in data units and money: what the buyer states, or the price planned for that."""

    bias: float
    """``γ²·V̄``: the mean squared distance between what people's prices tell of their data and the mean, at worst."""

    roster: int
    """``N``: how many people the mean is about."""

    cap: float | FloatArray
    """Nobody's privacy loss is larger: one number, or one per person, stated limits included; infinite if there is no
    cap."""

    stated_cap: float | FloatArray | None = None
    """The cap without the limits that people state; None where they state none."""

    user_weight: float | FloatArray
    """``β``, in money per squared data unit: one number, or one per person."""

    own_error: float | FloatArray
    """The variance in squared data units: what a person's own datum is worth to them."""

    outside_option: OutsideOption
    """What somebody who stays out has."""

    tolerance: float
    """How far a payment may be from the exact one, relative to the largest."""

    strata: Strata | None = None
    """Everybody's stratum, and the combination of their means that is wanted; None for one mean of all."""

    rosters: tuple[int, ...] = ()
    """``N_g``: how many people the mean of each stratum is about; empty without strata."""

    counted: tuple[tuple[int, ...], ...] = ()
    """How many people of each group are in each stratum, where people are counted, but not listed."""

    planned: Budget | None = None
    """The budget for which the goal, a price, was planned; None if the goal is what the buyer states."""

    expected_share: float = 1.0
    """How likely each person of the roster is to bid, where a price is planned."""

    survey: bool = False
    """Whether it is the one number that several questions come to: then errors are relative, see
    `hushbid.mechanism.survey`."""

    total_weight: float = field(init=False)
    """``A = α + Σ β_i``, in money per squared data unit; 0 where the goal is not a price."""

    variance: float | FloatArray = field(init=False)
    """What the purchase is planned with: ``V + Nγ²·V̄``, one number or one per person. The error that it gives is the
    worst there can be, and ``allowance`` more."""

    def __repr__(self) -> str:  # limits are people's own: not for a log
        return counted_repr(self)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total_weight", total_weight(self.buyer_weight, self.user_weight, self.people))
        # of a yes or no it is 1/4 to the last bit
        own = WORST_VARIANCE if self.setting.response else self.own_error / self.unit
        own = countable(own) if isinstance(own, np.ndarray) else max(own, LEAST_VARIANCE)
        object.__setattr__(self, "variance", own if self.bias == 0.0 else own + self.roster * self.bias)
        if isinstance(self.goal, Budget) and self.goal.reserve is None:
            reserve = reserve_for(
                self.goal,
                self.expected_kinds(),
                variance=float(np.mean(self.variance)),
                cap=self.largest_cap,
                weights=(1.0,) if self.strata is None else self.strata.weights.tolist(),
            )
            object.__setattr__(self, "goal", replace(self.goal, reserve=reserve))

    def expected_kinds(self) -> list[Kind]:
        """Everybody of the roster by prior and stratum, in the proportions of those who are there."""
        counts = np.array(self.counted or self.counts(), dtype=float)
        there = counts.sum(axis=1, keepdims=True)
        counts = np.where(there > 0.0, counts, 1.0)  # nothing is known of who they are
        rosters = np.array(self.rosters or (self.roster,), dtype=float)
        people = counts / counts.sum(axis=1, keepdims=True) * rosters[:, None]
        return [
            Kind(group.prior, float(people[stratum, place]), stratum)
            for stratum in range(people.shape[0])
            for place, group in enumerate(self.groups)
        ]

    def counts(self) -> list[list[int]]:
        """How many of each group are listed in each stratum."""
        if self.strata is None:
            return [[group.size for group in self.groups]]
        codes, many = self.strata.codes, self.strata.count
        if not codes.size:
            return [[0] * len(self.groups) for _ in range(many)]
        by_group = [np.bincount(codes[group.rows], minlength=many).tolist() for group in self.groups]
        return [list(one) for one in zip(*by_group, strict=True)]

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
    def stated(self) -> Goal:
        """What the buyer states: the goal, or the budget that it is a price for."""
        return self.goal if self.planned is None else self.planned

    @property
    def buyer_weight(self) -> float:
        """``α``, in money per squared data unit; 0 where the goal is not a price."""
        return self.goal.buyer_weight if isinstance(self.goal, Price) else 0.0

    def goal_at(self, buyer_weight: float) -> Goal:
        """Return the goal, with this weight of the error where it is a price."""
        return Price(buyer_weight) if isinstance(self.goal, Price) else self.goal

    @property
    def hard_budget(self) -> HardBudget | None:
        """The hard budget, if that is the goal."""
        return self.goal if isinstance(self.goal, HardBudget) else None

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
        return Budget(self.goal.available) if isinstance(self.goal, Budget) else self.goal

    @property
    def cares(self) -> bool:
        """Whether anybody but the buyer has a use for the estimate."""
        return bool(np.any(np.asarray(self.user_weight) > 0))

    @property
    def alike(self) -> bool:
        """Whether people differ by nothing but their bids."""
        return not self.grouped and self.alike_in_groups

    @property
    def alike_in_groups(self) -> bool:
        """Whether people of one group differ by nothing but their bids."""
        if self.strata is not None and np.unique(self.strata.codes).size > 1:
            return False
        values = (self.own_error, self.user_weight, self.cap)
        lists = (value for value in values if isinstance(value, np.ndarray))
        return not any(np.unique(value).size > 1 for value in lists)

    @property
    def identity_decides(self) -> bool:
        """Whether some of several people with equal virtual costs may be bought from and others not."""
        return self.setting.identity_decides

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
            rows = group.rows
            place = int(np.searchsorted(rows, row))
            if place < rows.size and rows[place] == row:
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

    @property
    def group_codes(self) -> IntArray:
        """Everybody's place among the groups."""
        codes = np.zeros(self.people, dtype=np.int64)
        for code, group in enumerate(self.groups):
            codes[group.rows] = code
        return codes

    def groups_with(self, codes: IntArray) -> tuple[Group, ...]:
        """Return the groups of other people, given everybody's place among the groups here; only those with people."""
        found = (replace(group, who=np.flatnonzero(codes == code)) for code, group in enumerate(self.groups))
        return tuple(group for group in found if group.size)

    def take(self, rows: IndexArray) -> "Population":
        """These people alone, each as often as they are named; the buyer's weight is as before."""
        alone = (replace(self.groups[0], who=rows.size),)
        return replace(
            self,
            people=rows.size,
            groups=alone if len(self.groups) == 1 else self.groups_with(self.group_codes[rows]),
            user_weight=_taken(self.user_weight, rows),
            own_error=_taken(self.own_error, rows),
            cap=_taken(self.cap, rows),
            stated_cap=None if self.stated_cap is None else _taken(self.stated_cap, rows),
            strata=None if self.strata is None else self.strata.of(rows),
        )

    @property
    def parts(self) -> Strata:
        """The strata; one mean is one stratum of everybody."""
        return self.strata or one_stratum(self.people)

    def kinds(self) -> list[tuple[float, IndexArray]]:
        """The squared weight ``ℓ_g²`` of each stratum, and its people."""
        strata = self.parts
        return [(one**2, np.flatnonzero(strata.codes == g)) for g, one in enumerate(strata.weights.tolist())]

    def separate(self) -> list["Population"]:
        """Strata in the local setting for a price: the markets they are, each with a price ``ℓ_g²`` times as high."""
        assert isinstance(self.goal, Price)
        return [
            replace(self.take(rows), strata=None, rosters=(), goal=Price(self.goal.buyer_weight * square))
            for square, rows in self.kinds()
        ]

    # -- priors, row by row --------------------------------------------------------------------------------------------

    def virtual_costs(self, bids: FloatArray) -> FloatArray:
        """What one unit of each person's privacy loss costs the platform; a bid below the support is refused."""
        if len(self.groups) > 1:  # a group's own prior would count its rows only
            lowest = self.per_person(lambda prior: prior.smallest_bid)
            bids = to_bids(bids, lowest, lambda row: self.prior_of(row).support)
        return self._by_group(lambda prior, part: np.asarray(prior.virtual_cost(part)), bids)

    def quantile(self, levels: FloatArray) -> FloatArray:
        """Return each person's quantile at their entry of ``levels``."""
        return self._by_group(lambda prior, part: np.asarray(prior.quantile(part)), levels)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One cost per person."""
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
        return allocate(costs, tie_key=tie_key, **self._problem(error_weight))

    def rule(self, costs: FloatArray, tie_key: TieKey = None, *, error_weight: float | None = None) -> ReplyRule:
        """How the optimum answers to one person's virtual cost."""
        return replies(costs, tie_key=tie_key, **self._problem(error_weight))

    def _problem(self, error_weight: float | None = None) -> dict[str, Any]:
        """Return the terms in which `hushbid.allocation` states the problem."""
        return {
            "setting": self.setting.name,
            "variance": self.variance,
            "goal": self.aim if error_weight is None else Price(error_weight),
            "max_loss": self.cap,
            "strata": self.strata,
            "response": self.setting.response,
        }

    @property
    def largest_cap(self) -> float:
        """Nobody's loss is larger."""
        return self.cap if isinstance(self.cap, float) else float(np.max(self.cap))

    @property
    def buyer_cap(self) -> float | FloatArray:
        """The cap that the buyer sets, which no bid decides."""
        return self.cap if self.stated_cap is None else self.stated_cap

    @property
    def has_caps(self) -> bool:
        """Whether anybody's loss is limited."""
        return bool(np.any(np.asarray(self.cap) < math.inf))

    def without_caps(self) -> "Population":
        """The same people without any cap."""
        return replace(self, cap=math.inf, stated_cap=None)

    def with_limits(self, limits: FloatArray | None) -> "Population":
        """The same people, who also stated what loss each accepts at most; 0 takes them out by an infinite cost."""
        if limits is None:
            return self
        cap = np.minimum(self.cap, np.where(limits > 0.0, limits, math.inf))
        return replace(self, cap=cap, stated_cap=self.cap)

    def best_estimate(self, losses: FloatArray) -> tuple[FloatArray, float]:
        """The best weights for given losses, and their error with the planned variance."""
        if not self.setting.sends_messages:
            best = self._best(losses)
            return best.weights, float(best.mse)
        strata, response = self.parts, self.setting.response
        variance = np.broadcast_to(self.variance, losses.shape)
        shares = local_shares(losses, variance, strata, response=response)
        weights = np.sign(strata.weights)[strata.codes] * shares
        error = mse_of(weights, losses, setting="local", variance=variance, strata=strata, response=response)
        return weights, error

    def used(self, losses: FloatArray) -> FloatArray:
        """What the best estimate uses of given losses, to the last bit whatever the order of people."""
        if self.setting.sends_messages:
            return losses
        if self.strata is not None:
            return planned_losses(losses, np.broadcast_to(self.variance, losses.shape), self.strata, "central")
        return self._best(losses).delivered

    def _best(self, losses: FloatArray) -> Contrast | Weights:
        if self.strata is not None:
            return best_contrast(losses, strata=self.strata, variance=self.variance)
        return best_weights(losses, setting="central", variance=self.variance)

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
            expense = float(costs[paid].dot(losses[paid]))
            if self.setting.sends_messages:
                return self.certified(replace(self, cap=self.largest_cap)._least_error(costs, expense))
            aim = Budget(expense)
        return self.certified(least_objective(costs, **self._problem() | {"goal": aim}))

    def _least_error(self, costs: FloatArray, expense: float) -> float:
        """What the error of no purchase that costs so much can be below: ``(min A·MSE + Σψε − expense)/A``, any A."""

        def bound(power: float) -> float:
            price = math.exp(power)
            return (least_objective(costs, **self._problem(price)) - expense) / price

        # it rises with the price, and falls from about where the purchase for the price costs as much
        low, high = (math.log(factor * expense) for factor in _PRICES)
        for _ in range(_STEPS):
            left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
            low, high = (left, high) if bound(left) < bound(right) else (low, right)
        return max(bound(0.5 * (low + high)), 0.0)

    def certified(self, bound: float) -> float:
        """An objective, or a bound on it, from the one with the planned variance on a range of width 1."""
        if isinstance(self.goal, Price):
            return bound - self.error_weight * self.allowance
        return bound if isinstance(self.goal, Accuracy) else (bound - self.allowance) * self.unit

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
            # without them nobody weighs the error for them
            rows = np.flatnonzero(weight == value)
            outside[rows] = self._errors_without(rows, costs, self.total_weight - value)
        return outside

    def outside_error_of(self, costs: FloatArray, row: int) -> float:
        """What error person ``row`` would live with outside; their own bid does not matter."""
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


def _taken(value: float | FloatArray, rows: IndexArray) -> float | FloatArray:
    return value[rows] if isinstance(value, np.ndarray) else value
