"""A market for so many people: the optimum for them, its errors, and what no decision can beat.

Whoever prices, plans, simulates, verifies or draws works on a `Population`.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushbid.allocation import (
    Accuracy,
    Allocation,
    Budget,
    HardBudget,
    Price,
    ReplyRule,
    allocate,
    least_objective,
    replies,
)
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.disclosure.combination import local_shares, planned_losses
from hushbid.disclosure.relation import Relation
from hushbid.errors import InputError, MarketError
from hushbid.estimation import Contrast, Weights, best_contrast, best_weights, mse_of
from hushbid.mechanism.people import People, TieKey

_FREE = 1e-100
"""Next to nothing: solvers need not tell it from zero where a bound is all that is wanted."""
_PRICES, _STEPS = (1e-3, 1e9), 40
"""Between which prices of the error, relative to an expense, the one is looked for that bounds the error best."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Population(People):
    """A market for so many people, on a data range of width 1."""

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

    @property
    def relation(self) -> Relation | None:
        """How closely price and datum may be related, in data units; None if they are not."""
        if self.bias == 0.0:
            return None
        return Relation(spread=self.bias * self.unit, roster=self.roster, strata=self.rosters)

    def separate(self) -> list["Population"]:
        """Strata in the local setting for a price: the markets they are, each with a price ``ℓ_g²`` times as high."""
        assert isinstance(self.goal, Price)
        return [
            replace(self.take(rows), strata=None, rosters=(), goal=Price(self.goal.buyer_weight * square))
            for square, rows in self.kinds()
        ]

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
