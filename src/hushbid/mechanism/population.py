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

from hushbid.allocation import Allocation, ReplyRule, allocate, replies
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import DivergentPayment, InputError, MarketError
from hushbid.estimation import best_weights
from hushbid.mechanism.setting import Setting
from hushbid.priors import Grouped, Prior
from hushbid.priors.inputs import to_reports

OutsideOption = Literal["own_data", "estimate"]
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

    variance: float | FloatArray
    """``V``: one number, or one per person."""

    cap: float
    """Nobody's privacy loss is larger; infinite if there is no cap."""

    buyer_weight: float
    """``α``, in money per squared data unit."""

    user_weight: float | FloatArray
    """``β``, in money per squared data unit: one number, or one per person."""

    own_error: float | FloatArray
    """The variance in squared data units: what somebody's own datum is worth to her."""

    outside_option: OutsideOption
    """What somebody who stays out has."""

    tolerance: float
    """How far a payment may be from the exact one, relative to the largest."""

    total_weight: float = field(init=False)
    """``A = α + Σ β_i``, in money per squared data unit."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "total_weight", total_weight(self.buyer_weight, self.user_weight, self.people))

    # -- who they are --------------------------------------------------------------------------------------------------

    @property
    def unit(self) -> float:
        """``R²``: squared data units in one squared width of the range."""
        return self.width**2

    @property
    def error_weight(self) -> float:
        """``A``, for a range of width 1."""
        return self.total_weight * self.unit

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
        lists = (value for value in (self.own_error, self.user_weight) if isinstance(value, np.ndarray))
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
            variance=_taken(self.variance, rows),
            user_weight=_taken(self.user_weight, rows),
            own_error=_taken(self.own_error, rows),
        )

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
        """The optimal allocation for given virtual costs, before any cap."""
        return allocate(
            costs,
            setting=self.setting.name,
            variance=self.variance,
            error_weight=self.error_weight if error_weight is None else error_weight,
            tie_key=tie_key,
        )

    def rule(self, costs: FloatArray, tie_key: TieKey = None, *, error_weight: float | None = None) -> ReplyRule:
        """How the optimum answers to one person's virtual cost."""
        return replies(
            costs,
            setting=self.setting.name,
            variance=self.variance,
            error_weight=self.error_weight if error_weight is None else error_weight,
            tie_key=tie_key,
        )

    def capped(self, allocation: Allocation) -> tuple[FloatArray, FloatArray, float]:
        """An optimum's losses clipped at the cap, with the best weights and error for them.

        Clipping an optimum never leaves anybody with more loss than the best estimator can use: if
        ``ε_max·ΣVε ≤ 2 + ΣVε²`` holds before, it holds after.
        """
        losses = allocation.privacy_loss
        if self.cap == math.inf or not (losses > self.cap).any():
            return losses, allocation.weights, allocation.mse
        clipped = np.minimum(losses, self.cap)
        weights, mse = self.best_estimate(clipped)
        return clipped, weights, mse

    def best_estimate(self, losses: FloatArray) -> tuple[FloatArray, float]:
        """The best weights for given losses, and their error."""
        best = best_weights(losses, setting=self.setting.name, variance=self.variance)
        return best.weights, float(best.mse)

    def lower_bound(self, costs: FloatArray) -> float:
        """What no decision's objective can be below, in money; infinite if nobody can be bought from."""
        if not (costs < math.inf).any():
            return math.inf
        return self.setting.lower_bound(costs, self.variance, self.error_weight)

    def refuse_divergence(self, costs: FloatArray) -> None:
        """A sole seller under an unbounded prior is bought from at every report: her rent may be infinite."""
        finite = np.flatnonzero(costs < math.inf)
        if finite.size != 1:
            return
        prior = self.prior_of(int(finite[0]))
        if sole_rent_diverges(prior):
            raise DivergentPayment(
                f"The only person's payment would be infinite: under {prior!r} she is bought from at every report;"
                " use a prior with bounded support or a lighter tail."
            )

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

    def errors_at(self, costs: FloatArray, row: int, moved: FloatArray, uncapped: FloatArray) -> FloatArray:
        """The estimate's error if person ``row`` had each of the virtual costs ``moved``; ``uncapped`` on width 1."""
        if self.cap == math.inf:
            return uncapped * self.unit
        errors = np.empty(moved.size)
        for j, cost in enumerate(moved.tolist()):
            changed = costs.copy()
            changed[row] = cost
            errors[j] = self.capped(self.allocation(changed))[2] * self.unit
        return errors

    def _errors_without(self, rows: IndexArray, costs: FloatArray, total_weight: float) -> FloatArray:
        """The error of the mechanism run without each of ``rows``; nothing changes without those it does not use."""
        weight = total_weight * self.unit
        alone = np.count_nonzero(costs < math.inf) == 1
        if alone and (costs[rows] < math.inf).any():
            raise MarketError("outside_option='estimate' is undefined: without the only person there is no estimate.")
        base = self.allocation(costs, error_weight=weight)
        used = np.flatnonzero(base.privacy_loss[rows] > 0.0)
        if self.cap < math.inf:
            # the error of clipped losses needs everybody's: solve again without each
            errors = np.full(rows.size, self.capped(base)[2])
            for j in used.tolist():
                without = costs.copy()
                without[rows[j]] = math.inf
                errors[j] = self.capped(self.allocation(without, error_weight=weight))[2]
        else:
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


def sole_rent_diverges(prior: Prior) -> bool:
    """Whether the only seller's rent is infinite: she is bought from at every report, with a loss like ``ψ^{-1/3}``.

    The integral converges only if ψ grows faster than the cube.
    """
    if prior.support[1] < math.inf:
        return False
    # the power that ψ grows with, far out
    far = float(prior.quantile(0.5)) * 2.0 ** np.arange(10.0, 30.0)
    cost = np.asarray(prior.virtual_cost(far))
    growth = np.diff(np.log2(cost[np.isfinite(cost)]))
    return bool(growth.size and growth[-1] <= 3.0 + 1e-6)


def _taken(value: float | FloatArray, rows: IndexArray) -> float | FloatArray:
    return value[rows] if isinstance(value, np.ndarray) else value
