"""A given accuracy or budget in the central setting, at any size: bound, refine, and take a small window to the driver.

As :mod:`hushbid.engine.solve_central` does for a price, and with less to do: there is one level only, so the buckets of
the first pass say between which two edges it lies, whoever's cost is raised, and one more pass brings exact sums below
them and everybody between.
"""

import math

import numpy as np

from hushbid.allocation import Accuracy
from hushbid.allocation.central_from_sums import Bracket
from hushbid.allocation.levels_from_sums import SummedLevel, bracket_level
from hushbid.allocation.problem import MOST
from hushbid.allocation.sums import ExactSums
from hushbid.engine.decisions import FormulaKernel, Idle
from hushbid.engine.passes import Census, RefineKernel, Window, WindowKernel
from hushbid.engine.people import Run
from hushbid.engine.rent_curves import RENT_TOLERANCE, GroupCurves, Summed
from hushbid.engine.solve_central import MOST_IN_WINDOW, SPARE, Bought, Solved
from hushbid.mechanism import Population
from hushbid.mechanism.impossible import refuse_unreachable
from hushbid.priors import Prior


def first_level_bracket(population: Population, census: Census, variance: tuple[float, float]) -> Bracket:
    """Where the level is, from the first pass alone; ``variance``, the planned ones, is the smallest and the largest.

    An accuracy that is out of reach is refused.
    """
    finite = census.histogram.people
    if isinstance(population.aim, Accuracy) and variance[0] == variance[1]:
        refuse_unreachable(population.without_caps(), finite, variance[0] / finite)
    if not 0.0 < census.lowest <= MOST:  # sums do not tell who asks for nothing
        return Bracket(low=0.0, high=math.inf, below_low=0.0, below_high=finite, one_basin=False, parts=())
    with np.errstate(over="ignore", invalid="ignore"):  # squares above the most are not looked at
        levels = census.histogram.levels(1.0, census.lowest).below(MOST)
    return bracket_level(levels, population.aim, variance=variance, dearest=census.dearest)


def solve_level(run: Run, population: Population, census: Census, found: Bracket) -> Solved | None:
    """The purchase by sums; None if the people who decide are too many for the driver."""
    summed = level_from_sums(run, population, census, found)
    return None if summed is None else _priced(run, population, census, summed)


def level_from_sums(run: Run, population: Population, census: Census, found: Bracket) -> SummedLevel | None:
    """The level by sums; None if the people who decide are too many for the driver."""
    variance = float(population.variance)
    below, start = ExactSums({}), 0.0
    # pass 2, if too many people are left for the driver
    if found.below_high - found.below_low > run.window:
        finer = RefineKernel.over(run.people, found.parts)
        refined = run.reduce("placing finer buckets", finer, finer.nobody)
        below, (start, end) = refined.below[0], finer.parts[0]
        levels = refined.histogram.levels(1.0, census.lowest, [(start, below)], [end])
        found = bracket_level(levels, population.aim, variance=(variance, variance), dearest=census.dearest)
        if found.high == math.inf or refined.histogram.most_different(*found.parts[0]) > MOST_IN_WINDOW:
            return None
    # wider than the bracket, for rounding
    first, last = found.parts[0]
    spare = SPARE * (last - census.lowest) / max(found.below_high, 1.0) + 1e-9 * last
    low = max(first - spare, start, 0.0)
    kernel = WindowKernel(run.people, start, low, last + spare)
    window = run.reduce("adding up exactly", kernel, Window.nobody()).settled()
    summed = SummedLevel(
        below + window.below,
        window.costs,
        window.people,
        lowest=census.lowest,
        dearest=census.dearest,
        ends=(low, found.high + spare),
        variance=variance,
        goal=population.aim,
    )
    return summed if summed.is_settled else None


def _priced(run: Run, population: Population, census: Census, summed: SummedLevel) -> Solved:
    """Losses by formula, and one curve of rents per group."""
    planned, accurate = summed.mse, isinstance(population.goal, Accuracy)
    bought = Bought.of(
        population,
        planned=planned,
        objective=summed.expense if accurate else population.worst_error(planned) * population.unit,
        total_loss=summed.loss_per_weight,
        squared_weights=summed.squared_weights,
    )
    curves, curve_error, rent_error, largest, slack = [], 0.0, 0.0, 0.0, 0.0
    for code, prior in enumerate(run.people.prior_list):
        lowest, tolerance = census.lowest_bid.get(code, math.inf), min(RENT_TOLERANCE, population.tolerance)
        group = GroupCurves(summed, None, prior, lowest, tolerance)
        curve = group.rents()
        curves.append(curve)
        if curve is not None:
            curve_error = max(curve_error, curve.error)
            slack = max(slack, level_slack(population, summed, prior))
        rent_error, largest = max(rent_error, group.rent_error), max(largest, group.largest)
    kernel = FormulaKernel(
        people=run.people,
        idle=Idle(user_weight=0.0, mse=bought.mse, outside=0.0, largest_outside=float(population.own_error)),
        shares=summed.shares,
        level=summed.level * (1.0 + 1e-12),  # rounding must not leave out who is at the margin
        loss_per_weight=summed.loss_per_weight,
        rents=tuple(curves),
        outside=None,
        outside_level=0.0,
        largest_price=largest,
    )
    return Solved(
        kernel=kernel,
        bought=bought,
        active=summed.active,
        lower_bound=population.certified(summed.lower_bound()),
        largest_loss=float(summed.losses(np.array([census.lowest]))[0]),
        most_lost=summed.most_lost,
        schedule_error=curve_error,
        rent_error=rent_error + slack,
    )


def level_slack(population: Population, summed: Summed, prior: Prior) -> float:
    """By how much the rounding of losses can change a payment: she is paid at most the top times her largest loss."""
    top = prior.support[1]
    if not top < math.inf:
        return 0.0  # there the enclosure of the integral is far wider
    largest = float(summed.losses(np.array([float(prior.virtual_cost(prior.smallest_bid))]))[0])
    return population.setting.loss_rounding * top * 2.0 * largest  # twice: one person moves the level a little
