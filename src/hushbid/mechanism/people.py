"""The people of a market, in the form in which the mechanism works on them.

A `hushbid.mechanism.market.Market` is what a user states: their units, a prior or one per group, a cap or none.
`People` are that market for a number of people: a data range of width 1, where ``V → V/R²`` and ``A → A·R²``; no cap
is an infinite one; one entry per group of people who share a prior; numbers of one person only where people differ.
`hushbid.mechanism.population.Population` adds the optimum and its errors.

Errors that people are paid for stay in data units, with ``unit = R²`` to convert: only so is a payment the same to the
last bit in whatever units the data are. On an engine people are counted but not listed, and groups have no rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.allocation.central_problem import LEAST_VARIANCE, countable
from hushbid.common.arrays import FloatArray, IndexArray, IntArray, counted_repr
from hushbid.disclosure.combination import one_stratum
from hushbid.errors import InputError
from hushbid.estimation import WORST_VARIANCE, Strata
from hushbid.mechanism.rounding import Kind, reserve_for
from hushbid.mechanism.setting import Setting
from hushbid.priors import Grouped, Prior
from hushbid.priors.inputs import to_bids

OutsideOption = Literal["own_data", "estimate"]

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
class People:
    """Who can be bought from, and for what goal, on a data range of width 1."""

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

    def take(self, rows: IndexArray) -> Self:
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

    @property
    def largest_cap(self) -> float:
        """Nobody's loss is larger."""
        return self.cap if isinstance(self.cap, float) else float(np.max(self.cap))


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
