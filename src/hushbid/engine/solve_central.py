"""The central setting at any size: bound, refine, and take a small window of people to the driver.

Pass 1 counts everybody in coarse buckets, and `hushbid.allocation.central_from_sums` says between which levels every
minimum must lie. If few people are below the upper one they all go to the driver and are priced like any population in
memory. If not, a second pass (skipped if it is not needed) places finer buckets between the levels, and the last one
brings exact sums below a window of a few people, and these. Losses are then a formula, payments a curve in the bid.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.central import KAPPA
from hushbid.allocation.central_from_sums import Bracket, Levels, SummedPopulation, bracket
from hushbid.allocation.problem import normal_scale
from hushbid.allocation.sums import ExactSums
from hushbid.engine.decisions import ContrastKernel, FormulaKernel, Idle
from hushbid.engine.passes import Census, Refined, RefineKernel, Window, WindowKernel
from hushbid.engine.people import Run
from hushbid.engine.rent_curves import RENT_TOLERANCE, GroupCurves
from hushbid.mechanism import Population
from hushbid.payments import rounding

WINDOW = 1 << 17
"""At most so many people are expected in the window that goes to the driver."""

MOST_IN_WINDOW = 1 << 25
"""More costs than this are not taken to the driver to tell several minima apart."""

SPARE = 64.0
"""The window reaches this many times one person's influence beyond the bracket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """A central purchase found from sums, and what it takes to price everybody."""

    kernel: FormulaKernel | ContrastKernel
    bought: "Bought"
    active: int
    lower_bound: float
    largest_loss: float
    most_lost: float
    """Nobody's loss is larger, whoever asks for more or stays away."""

    schedule_error: float
    rent_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """What losses come to."""

    mse: float
    """If price and datum are unrelated, in squared data units."""

    worst_mse: float
    """At worst, in squared data units."""

    objective: float
    total_loss: float
    """``S = Σ ε``."""

    squared_weights: float
    """``Σ w²``."""

    @classmethod
    def of(
        cls, population: Population, *, planned: float, objective: float, total_loss: float, squared_weights: float
    ) -> "Bought":
        """From the error and the objective that the purchase was planned with, on a range of width 1."""
        mse = worst = planned * population.unit
        if population.bias > 0.0:
            worst = population.worst_error(planned) * population.unit
            own = float(population.own_error) / population.unit
            mse = (own * squared_weights + 2.0 / total_loss**2) * population.unit
            objective -= population.error_weight * population.bias
        return cls(
            mse=mse, worst_mse=worst, objective=objective, total_loss=total_loss, squared_weights=squared_weights
        )


def first_bracket(census: Census, scale: float, *, variance_ratio: float = 1.0) -> Bracket:
    """Where all minima are, from the first pass alone; in the units of virtual costs."""
    found = bracket(census.histogram.levels(scale, census.lowest), variance_ratio=variance_ratio)
    return _in_costs(found, scale)


def solve(run: Run, population: Population, census: Census, found: Bracket) -> Solved | None:
    """The optimum by sums; None if it cannot be shown to be the only minimum."""
    variance = float(population.variance)
    scale = normal_scale(population.error_weight, variance)
    below, start = ExactSums({}), 0.0
    # pass 2, if too many people are left for the driver
    if found.below_high - found.below_low > run.window:
        finer = RefineKernel.over(run.people, found.parts)
        refined = run.reduce("placing finer buckets", finer, finer.nobody)
        below, start = refined.below[0], finer.parts[0][0]
        levels = _levels(finer, refined, scale, census.lowest)
        found = bracket(levels, within=[(low / scale, high / scale) for low, high in finer.parts])
        found = _in_costs(found, scale)
        if refined.histogram.most_different(found.low, found.high) > MOST_IN_WINDOW:
            return None
    # wider than the bracket: without any one person the level moves a little
    spare = SPARE * (found.high - census.lowest) / max(found.below_high, 1.0) + 1e-9 * found.high
    low, high = max(found.low - spare, start, 0.0), found.high + spare
    # last pass: exact sums below the window and everybody in it
    kernel = WindowKernel(run.people, start, low, high)
    window = run.reduce("adding up exactly", kernel, Window.nobody()).settled()
    summed = SummedPopulation(
        below + window.below,
        window.costs,
        window.people,
        lowest=census.lowest,
        ends=(low, high),
        variance=variance,
        error_weight=population.error_weight,
    )
    return _decide(run, population, census, summed) if summed.is_settled else None


def _decide(run: Run, population: Population, census: Census, summed: SummedPopulation) -> Solved | None:
    unit, user_weight, best = population.unit, float(population.user_weight), summed.optimum
    bought = Bought.of(
        population,
        planned=summed.mse,
        objective=summed.objective,
        total_loss=summed.loss_per_weight,
        squared_weights=best.value - KAPPA * best.root**2,
    )
    # the error outside: one's own datum, or the estimate made without her
    outside_summed, outside_idle = None, float(population.own_error)
    if population.outside_option == "estimate" and user_weight > 0.0:
        outside_summed = summed.with_error_weight((population.total_weight - user_weight) * unit)
        if not outside_summed.is_settled:
            return None
        outside_idle = outside_summed.mse * unit
    rent_curves, outside_curves = [], []
    # by how much the rounding of losses can change a payment
    slack = max(
        rounding(
            loss_rounding=population.setting.loss_rounding,
            error_weight=population.error_weight,
            variance=float(population.variance),
            objective=summed.objective,
            largest_weight=float(summed.optimum.weights(np.zeros(1), 1.0)[0]),
            top=prior.support[1],
            cap=math.inf,
            care=user_weight * (bought.mse + outside_idle),
        )
        for prior in run.people.prior_list
    )
    # one curve of rents per group, and one of errors outside
    curve_error = rent_error = largest = 0.0
    for code, prior in enumerate(run.people.prior_list):
        lowest, tolerance = census.lowest_bid.get(code, math.inf), min(RENT_TOLERANCE, population.tolerance)
        pricing = GroupCurves(summed, outside_summed, prior, lowest, tolerance)
        rent_curves.append(pricing.rents())
        outside_curves.append(pricing.outside(unit, outside_idle))
        for curve, factor in ((rent_curves[-1], 1.0), (outside_curves[-1], user_weight)):
            curve_error = max(curve_error, 0.0 if curve is None else factor * curve.error)
        rent_error, largest = max(rent_error, pricing.rent_error), max(largest, pricing.largest)
    kernel = FormulaKernel(
        people=run.people,
        idle=Idle(user_weight=user_weight, mse=bought.mse, outside=outside_idle, largest_outside=outside_idle),
        shares=summed.shares,
        level=summed.level * (1.0 + 1e-12),  # rounding must not leave out who is at the margin
        loss_per_weight=summed.loss_per_weight,
        rents=tuple(rent_curves),
        outside=None if outside_summed is None else tuple(outside_curves),
        outside_level=0.0 if outside_summed is None else outside_summed.level * (1.0 + 1e-12),
        largest_price=largest,
    )
    return Solved(
        kernel=kernel,
        bought=bought,
        active=int(summed.optimum.mass),
        lower_bound=population.certified(summed.lower_bound()),
        largest_loss=float(best.weights(np.zeros(1), 1.0)[0]) * summed.loss_per_weight,
        most_lost=summed.most_lost,
        schedule_error=curve_error,
        rent_error=rent_error + slack,
    )


def _levels(finer: RefineKernel, refined: Refined, scale: float, lowest: float) -> Levels:
    """The sums at the finer buckets' edges."""
    below = [(part[0], sums) for part, sums in zip(finer.parts, refined.below, strict=True)]
    return refined.histogram.levels(scale, lowest, below, [part[1] for part in finer.parts])


def _in_costs(found: Bracket, scale: float) -> Bracket:
    return Bracket(
        low=found.low * scale,
        high=found.high * scale,
        below_low=found.below_low,
        below_high=found.below_high,
        one_basin=found.one_basin,
        parts=tuple((low * scale, high * scale) for low, high in found.parts),
    )
