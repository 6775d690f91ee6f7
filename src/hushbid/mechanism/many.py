"""Losses and payments of very many people: losses by the optimum's formula, rents by curves in the bid.

People of one stratum and one group who differ by nothing but their bid have a loss and a rent that are functions of it.
Once :mod:`hushbid.mechanism.summed` has found the purchase, the losses are a formula, and the rents a curve through
exactly computed points, with a verified error. The same code prices a table in memory and the batches of an engine.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hushbid.allocation import Price
from hushbid.allocation.from_sums import Shares, SummedOptimum
from hushbid.allocation.pairs_from_sums import SummedRules
from hushbid.allocation.rule import AllocationRule
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray, IntArray
from hushbid.mechanism.population import Population
from hushbid.mechanism.summed import Counted
from hushbid.payments import GroupCurves, ladder_up_to, rounding
from hushbid.priors import Prior
from hushbid.priors.curves import Curve

MANY = 1 << 12
"""From more people than this are bought by sums and curves; fewer are priced one by one."""

WINDOW = 1 << 17
"""At most so many people are expected in the windows of costs that are listed."""

_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumFormula:
    """The purchase from one stratum."""

    sign: float
    """Of the stratum's weight."""

    size: float
    """``λ``: what the shares add up to."""

    active: int
    """How many people of it are bought from."""

    rents: tuple[Curve | None, ...]
    """One for each group."""

    outside: tuple[Curve | None, ...]
    """One for each group: what leaving out one person does to the error, less what leaving out an idle one does."""

    outside_level: float
    """Nobody above this virtual cost matters outside."""


class Priced(NamedTuple):
    """What some people have, one entry each."""

    loss: FloatArray
    weight: FloatArray
    rent: FloatArray
    outside: FloatArray
    """The error without each of them, less the error without an idle one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SummedPurchase:
    """A purchase as formulas and curves."""

    strata: tuple[StratumFormula, ...]
    shares: Shares
    """Everybody's share in the estimate, without its sign, from their virtual cost."""

    together: float
    """``Λ = Σ|ℓ_g|``: a share times this is a weight."""

    loss_per_share: float
    """``Σ ε``: a share times this is a privacy loss."""

    squared_weights: float
    """``Σ w²``."""

    mse: float
    """If price and datum are unrelated, in squared data units."""

    worst_mse: float
    """At worst, in squared data units."""

    objective: float
    lower_bound: float
    outside: float
    """The error outside of somebody who is not bought from, in squared data units."""

    largest_loss: float
    largest_price: float
    """About the largest payment for data: what somebody with the lowest bid is paid."""

    schedule_error: float
    """How far payments may be from exact ones because they are read off a curve."""

    rent_error: float
    """How far the points of the curves may be from exact ones."""

    @property
    def active(self) -> int:
        """How many people are bought from."""
        return sum(one.active for one in self.strata)

    @property
    def bought_in_strata(self) -> tuple[tuple[int, float], ...]:
        """How many are bought from in each stratum, and their losses together."""
        return tuple((one.active, one.size * self.loss_per_share) for one in self.strata)

    def priced(
        self, bids: FloatArray, costs: FloatArray, groups: IntArray | None, strata: IntArray | IndexArray
    ) -> Priced:
        """Return the losses, weights and rents of people with these bids and virtual costs, in these strata."""
        loss, weight, rent = np.empty(bids.size), np.empty(bids.size), np.zeros(bids.size)
        found = Priced(loss, weight, rent, np.zeros(bids.size if self._matters_outside else 0))
        near = np.empty(found.outside.size, dtype=bool)
        signs = self.together * np.array([one.sign for one in self.strata])
        levels = np.array([one.outside_level for one in self.strata])
        for start in range(0, bids.size, _BLOCK):
            here = slice(start, start + _BLOCK)
            code = strata[here] if len(self.strata) > 1 else strata[:1]
            share = self.shares.weights(costs[here], code)
            np.multiply(share, self.loss_per_share, out=loss[here])
            np.multiply(share, signs.take(code), out=weight[here])
            near[here] = (costs[here] < levels.take(code))[: near.size]
        for stratum, where in _parts(strata, len(self.strata), loss > 0.0):
            rent[where] = _evaluate(self.strata[stratum].rents, bids[where], None if groups is None else groups[where])
        np.copyto(rent, 0.0, where=loss == 0.0)
        if self._matters_outside:
            for stratum, where in _parts(strata, len(self.strata), near):
                codes = None if groups is None else groups[where]
                found.outside[where] = _evaluate(self.strata[stratum].outside, bids[where], codes)
            np.copyto(found.outside, 0.0, where=~near)
        return found

    @property
    def _matters_outside(self) -> bool:
        return any(curve is not None for one in self.strata for curve in one.outside)


def _parts(strata: IntArray | IndexArray, count: int, some: BoolArray) -> Iterator[tuple[int, slice | IndexArray]]:
    """Some people by stratum, so few at a time that they stay in the processor's cache; of one stratum everybody."""
    if count == 1:
        for start in range(0, some.size, _BLOCK):
            yield 0, slice(start, start + _BLOCK)
        return
    chosen = np.flatnonzero(some)
    for stratum, places in enumerate(rows_by_stratum(strata.take(chosen), count)):
        rows = chosen.take(places)
        for start in range(0, rows.size, _BLOCK):
            yield stratum, rows[start : start + _BLOCK]


def rows_by_stratum(strata: IntArray | IndexArray, count: int) -> list[IndexArray]:
    """Return who is in each of so many strata."""
    # NumPy sorts short integers by their digits
    narrow = np.uint8 if count <= 1 << 8 else np.uint16 if count <= 1 << 16 else np.int64
    order = np.argsort(strata.astype(narrow), kind="stable")
    return np.split(order, np.cumsum(np.bincount(strata, minlength=count))[:-1])


def _evaluate(curves: tuple[Curve | None, ...], bids: FloatArray, groups: IntArray | None) -> FloatArray:
    if groups is None:
        return np.zeros(bids.size) if curves[0] is None else curves[0](bids)
    found = np.zeros(bids.size)
    for code, curve in enumerate(curves):
        if curve is not None:
            rows = np.flatnonzero(groups == code)
            found[rows] = curve(bids[rows])
    return found


# -- the curves --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _OneStratum:
    """The purchase, as the people of one stratum see it."""

    rules: SummedRules
    stratum: int

    @property
    def level(self) -> float:
        """Below this virtual cost people of the stratum are bought from."""
        return self.rules.summed.level(self.stratum)

    @property
    def highest_level(self) -> float:
        """Nobody is bought from above this virtual cost, whoever's is raised."""
        summed = self.rules.summed
        return summed.bracket.windows[self.stratum][1] * summed.form.scale * (1.0 + 1e-9)

    def losses(self, costs: FloatArray) -> FloatArray:
        """The privacy losses of people of the stratum with these virtual costs."""
        return self.rules.summed.losses(self.stratum, costs)

    def rule_for(self, costs: FloatArray) -> AllocationRule:
        """The allocation rule of imagined people of the stratum who are now at ``costs``."""
        return self.rules.of(self.stratum, costs)


def purchase_of(
    population: Population, counted: Sequence[Counted], priors: Sequence[Prior], solved: Sequence[SummedOptimum]
) -> SummedPurchase:
    """Return the purchase that sums found, with a curve of rents for each stratum and group.

    ``solved`` is what `hushbid.mechanism.summed.solve` found for what `locate` stated.
    """
    summed, form = solved[0], solved[0].form
    worst = population.worst_error(summed.mse)
    mse, squares = worst, summed.squared_weights
    if population.bias > 0.0:
        noise = 2.0 * form.factor / form.unit / summed.strength**2
        mse = float(np.max(population.own_error)) / population.unit * squares + noise
    idle = float(np.max(population.own_error)) if len(solved) == 1 else solved[1].mse * population.unit
    care = float(np.max(population.user_weight)) * (mse * population.unit + idle)
    rules = [SummedRules(one) for one in solved]
    level = max(_OneStratum(rules[0], stratum).highest_level for stratum in range(len(counted)))
    lowest = [min(one.lowest_bid.get(code, math.inf) for one in counted) for code in range(len(priors))]
    ladders = [ladder_up_to(prior, low, level) for prior, low in zip(priors, lowest, strict=True)]
    formulas, curve_error, rent_error, largest, slack = [], 0.0, 0.0, 0.0, 0.0
    for stratum, (one, sign, size) in enumerate(zip(counted, form.signs.tolist(), form.sizes.tolist(), strict=True)):
        views, rents, outside = [_OneStratum(rule, stratum) for rule in rules], [], []
        for code, prior in enumerate(priors):
            group = GroupCurves(
                views[0],
                prior,
                lowest=one.lowest_bid.get(code, math.inf),
                tolerance=population.tolerance,
                ladder=ladders[code],
            )
            rents.append(group.rents())
            if len(views) > 1:
                outside.append(group.outside(views[1], unit=population.unit, idle=idle))
            weighed = ((rents[-1], 1.0), (outside[-1] if outside else None, float(np.max(population.user_weight))))
            curve_error = max([curve_error, *(factor * curve.error for curve, factor in weighed if curve is not None)])
            rent_error, largest = max(rent_error, group.rent_error), max(largest, group.largest)
            if rents[-1] is not None:
                slack = max(slack, _slack(population, views[0], prior, care))
        formulas.append(
            StratumFormula(
                sign=sign,
                size=size,
                active=int(summed.moments[stratum][0]),
                rents=tuple(rents),
                outside=tuple(outside),
                outside_level=views[-1].level * (1.0 + 1e-12),  # rounding must not leave out who is at the margin
            )
        )
    return SummedPurchase(
        strata=tuple(formulas),
        shares=summed.shares,
        together=math.sqrt(form.factor / form.unit),
        loss_per_share=summed.strength,
        squared_weights=squares,
        mse=mse * population.unit,
        worst_mse=worst * population.unit,
        objective=population.certified(summed.objective),
        lower_bound=population.certified(summed.lower_bound()),
        outside=idle,
        largest_loss=summed.largest_loss,
        largest_price=largest,
        schedule_error=curve_error,
        rent_error=rent_error + slack,
    )


def _slack(population: Population, one: _OneStratum, prior: Prior, care: float) -> float:
    """By how much the rounding of losses can change a payment."""
    top, summed = prior.support[1], one.rules.summed
    if not isinstance(population.goal, Price):
        if not top < math.inf:
            return 0.0  # there the enclosure of the integral is far wider
        # they are paid at most the top times their largest loss; twice: one person moves the level a little
        largest = float(one.losses(np.array([float(prior.virtual_cost(prior.smallest_bid))]))[0])
        return population.setting.loss_rounding * top * 2.0 * largest
    form, lowest = summed.form, np.array([summed.strata[one.stratum].lowest])
    size = float(form.sizes[one.stratum])
    return rounding(
        loss_rounding=population.setting.loss_rounding,
        error_weight=population.error_weight * size**2 * form.factor / form.unit,
        variance=float(np.max(population.variance)),
        objective=summed.objective,
        # their part of their stratum's weight
        largest_weight=float(summed.shares.weights(lowest, np.array([one.stratum]))[0]) / size,
        top=top,
        cap=math.inf,
        care=care,
    )
