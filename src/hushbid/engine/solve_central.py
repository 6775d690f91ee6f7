"""The central setting at any size: bound, refine, and take a small window of people to the driver.

Pass 1 counts everybody in coarse buckets, and `hushbid.allocation.central_from_sums` says between which levels every
minimum must lie. If few people are below the upper one they all go to the driver and are priced like any population in
memory. If not, a second pass (skipped if it is not needed) places finer buckets between the levels, and the last one
brings exact sums below a window of a few people, and these. Losses are then a formula, payments a curve in the report.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.central import CUBE_ROOT_4, KAPPA
from hushbid.allocation.central_from_sums import Bracket, Levels, SummedPopulation, bracket
from hushbid.allocation.problem import normal_scale
from hushbid.allocation.sums import ExactSums
from hushbid.arrays import FloatArray
from hushbid.engine.curves import Curve, fit
from hushbid.engine.decisions import FormulaKernel, Idle
from hushbid.engine.passes import Census, Refined, RefineKernel, TwoWindows, TwoWindowsKernel, Window, WindowKernel
from hushbid.engine.people import Run
from hushbid.errors import MarketError
from hushbid.mechanism import Population
from hushbid.payments import Rents, rents, rounding
from hushbid.priors import Prior

WINDOW = 1 << 17
"""At most so many people are expected in the window that goes to the driver."""

MOST_IN_WINDOW = 1 << 25
"""More costs than this are not taken to the driver to tell several minima apart."""

MOST_CLIPPED = 1 << 20
"""About so many people at most are taken to the driver to save a pass where a cap clips."""

_SPARE = 64.0
"""The window reaches this many times one person's influence beyond the bracket."""

_CURVE_TOLERANCE = 1e-10
_RENT_TOLERANCE = 1e-8
"""How narrow the enclosures of rents must be, relative to the largest payment, if the market does not ask for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """The central optimum and what it takes to price everybody."""

    summed: SummedPopulation
    kernel: FormulaKernel
    bought: "Bought"
    schedule_error: float
    rent_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """What losses come to after the cap."""

    mse: float
    """In squared data units."""

    objective: float
    total_loss: float
    """``S = Σ ε``."""

    squared_weights: float
    """``Σ w²``."""


def first_bracket(census: Census, scale: float, *, variance_ratio: float = 1.0) -> Bracket:
    """Where all minima are, from the first pass alone; in the units of virtual costs."""
    found = bracket(census.histogram.levels(scale, census.lowest), variance_ratio=variance_ratio)
    return _in_costs(found, scale)


def solve(run: Run, population: Population, census: Census, found: Bracket) -> Solved | None:
    """The optimum by sums; None if it cannot be shown to be the only minimum."""
    variance = float(population.variance)
    scale = normal_scale(population.error_weight, variance)
    below, start, clips = ExactSums({}), 0.0, None
    # pass 2, if too many people are left for the driver
    if found.below_high - found.below_low > run.window:
        finer = RefineKernel.over(run.people, found.parts)
        refined = run.reduce("placing finer buckets", finer, finer.nobody)
        below, start = refined.below[0], finer.parts[0][0]
        levels = _levels(finer, refined, scale, census.lowest)
        found = bracket(levels, within=[(low / scale, high / scale) for low, high in finer.parts])
        clips = _clips(levels, found, scale, population, census)
        found = _in_costs(found, scale)
        if refined.histogram.most_different(found.low, found.high) > MOST_IN_WINDOW:
            return None
    # wider than the bracket: without any one person the level moves a little
    spare = _SPARE * (found.high - census.lowest) / max(found.below_high, 1.0) + 1e-9 * found.high
    low, high = max(found.low - spare, start, 0.0), found.high + spare
    # last pass: exact sums below the window and everybody in it; perhaps a second window
    kernel, clipped = WindowKernel(run.people, start, low, high), None
    if clips is None:
        window = run.reduce("adding up exactly", kernel, Window.nobody()).settled()
    else:
        both = TwoWindowsKernel(kernel, WindowKernel(run.people, 0.0, *clips))
        two = run.reduce("adding up exactly", both, TwoWindows.nobody())
        window, clipped = two.one.settled(), _Clipped(clips, two.other.settled())
    summed = SummedPopulation(
        below + window.below,
        window.costs,
        window.people,
        lowest=census.lowest,
        ends=(low, high),
        variance=variance,
        error_weight=population.error_weight,
    )
    return _decide(run, population, census, summed, clipped) if summed.is_settled else None


def _decide(
    run: Run, population: Population, census: Census, summed: SummedPopulation, clipped: "_Clipped | None"
) -> Solved | None:
    unit, cap, user_weight = population.unit, population.cap, float(population.user_weight)
    bought = _capped(run, population, summed, clipped)
    # the error outside: one's own datum, or the estimate made without her
    outside_summed, outside_idle = None, float(population.own_error)
    if population.outside_option == "estimate" and user_weight > 0.0:
        if cap < math.inf:
            raise MarketError(
                "max_privacy_loss together with outside_option='estimate' needs one solution per person:"
                " too many people are bought from to do that."
            )
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
            cap=cap,
            care=user_weight * (bought.mse + outside_idle),
        )
        for prior in run.people.prior_list
    )
    # one curve of rents per group, and one of errors outside
    curve_error = rent_error = largest = 0.0
    for code, prior in enumerate(run.people.prior_list):
        lowest, tolerance = census.lowest_report.get(code, math.inf), min(_RENT_TOLERANCE, population.tolerance)
        pricing = _Pricing(summed, outside_summed, prior, lowest, cap, tolerance)
        rent_curves.append(pricing.rents())
        outside_curves.append(pricing.outside(unit, outside_idle))
        for curve, factor in ((rent_curves[-1], 1.0), (outside_curves[-1], user_weight)):
            curve_error = max(curve_error, 0.0 if curve is None else factor * curve.error)
        rent_error, largest = max(rent_error, pricing.rent_error), max(largest, pricing.largest)
    kernel = FormulaKernel(
        people=run.people,
        idle=Idle(user_weight=user_weight, mse=bought.mse, outside=outside_idle, largest_outside=outside_idle),
        scale=summed.scale,
        optimum=summed.optimum,
        level=summed.level * (1.0 + 1e-12),  # rounding must not leave out who is at the margin
        loss_per_weight=summed.loss_per_weight,
        cap=cap,
        weight_per_loss=1.0 / bought.total_loss,
        rents=tuple(rent_curves),
        outside=None if outside_summed is None else tuple(outside_curves),
        outside_level=0.0 if outside_summed is None else outside_summed.level * (1.0 + 1e-12),
        largest_price=largest,
    )
    return Solved(
        summed=summed,
        kernel=kernel,
        bought=bought,
        schedule_error=curve_error,
        rent_error=rent_error + slack,
    )


class _Pricing:
    """Rents and outside errors of one group as functions of the report."""

    def __init__(
        self,
        summed: SummedPopulation,
        outside: SummedPopulation | None,
        prior: Prior,
        lowest: float,
        cap: float,
        tolerance: float,
    ) -> None:
        self._summed, self._outside, self._prior = summed, outside, prior
        self._lowest, self._cap, self._tolerance = lowest, cap, tolerance
        self.rent_error = self.largest = 0.0

    def rents(self) -> Curve | None:
        """What people gain over staying out."""
        breaks = self._breaks(self._summed.level)
        if breaks is None:
            return None
        # the lowest report is paid most: what errors are measured by
        few = self._rents_at(np.array([breaks[0]]))
        self.largest = float(few.estimate[0] + breaks[0] * self._losses(np.array([breaks[0]]))[0])
        return fit(lambda reports: self._rents_at(reports).estimate, breaks, allowed=_CURVE_TOLERANCE * self.largest)

    def outside(self, unit: float, idle: float) -> Curve | None:
        """The error without each person, in data units, less the error without an idle one."""
        if self._outside is None:
            return None
        summed = self._outside
        breaks = self._breaks(summed.level)
        if breaks is None:
            return None

        def without(reports: FloatArray) -> FloatArray:
            rule = summed.replies_for(np.asarray(self._prior.virtual_cost(reports)))
            return rule.at(np.arange(reports.size), np.full(reports.size, np.inf)).mse * unit - idle

        return fit(without, breaks, allowed=1e-13 * idle)

    def _losses(self, reports: FloatArray) -> FloatArray:
        costs = np.asarray(self._prior.virtual_cost(reports))
        best = self._summed.optimum
        losses = best.weights(costs / self._summed.scale - best.base, 1.0) * self._summed.loss_per_weight
        return np.minimum(losses, self._cap)

    def _rents_at(self, reports: FloatArray) -> Rents:
        rule = self._summed.replies_for(np.asarray(self._prior.virtual_cost(reports)))
        found = rents(
            rule,
            self._prior,
            np.arange(reports.size),
            reports,
            cap=self._cap,
            paid_besides=reports * self._losses(reports),
            tolerance=self._tolerance,
        )
        self.rent_error = max(self.rent_error, found.error)
        return found

    def _breaks(self, level: float) -> list[float] | None:
        """Reports from the group's lowest to the last one below the level, and where the virtual cost has corners."""
        low, prior = self._lowest, self._prior
        if low == math.inf or not float(prior.virtual_cost(low)) < level:
            return None
        # the last report that is bought from, and the ends of flat parts on the way
        high = max(float(prior.virtual_cost_inverse(level)), low)
        inner = [end for part in prior.flat_parts for end in part[:2] if low < end < high]
        return [low, *inner, high]


@dataclass(frozen=True, slots=True)
class _Clipped:
    """A window around the cost at which the cap ceases to clip."""

    ends: tuple[float, float]
    window: Window

    def below(self, cost: float) -> ExactSums | None:
        """The sums below a cost; None if it is not in the window."""
        if not self.ends[0] <= cost <= self.ends[1]:
            return None
        window, inside = self.window, self.window.costs < cost
        return window.below + ExactSums.of(window.costs[inside], window.people[inside])


def _clips(
    levels: Levels, found: Bracket, scale: float, population: Population, census: Census
) -> tuple[float, float] | None:
    """Between which costs the cap ceases to clip; None if it clips nobody, or if too many people may lie between.

    That is ``level − cap/slope``, where ``slope`` is proportional to ``1/b²``, and ``b = κ·G/3`` at an optimum; ``G``
    rises with the level, which is known to lie in the bracket.
    """
    if population.cap == math.inf:
        return None
    gain = levels.mass * (levels.level - levels.origin) - levels.first
    # G at both ends of the bracket
    first = max(int(np.searchsorted(levels.level, found.low, side="right")) - 1, 0)
    last = min(int(np.searchsorted(levels.level, found.high)), levels.level.size - 1)
    least, largest = max(gain[first] - levels.rounding[first], 0.0), gain[last]
    reach = population.cap * math.sqrt(float(population.own_error)) / population.width * KAPPA / (3.0 * CUBE_ROOT_4)
    # so far below the level the loss reaches the cap
    low, high = found.low - reach * largest**2, found.high - reach * least**2
    spare = 1e-9 * found.high
    low, high = max(low - spare, 0.0) * scale, (high + spare) * scale
    if high <= census.lowest or census.histogram.about_between(low, high) > MOST_CLIPPED:
        return None
    return low, high


def _capped(run: Run, population: Population, summed: SummedPopulation, known: _Clipped | None = None) -> Bought:
    """The optimum after clipping losses at the cap.

    A loss is ``slope·(level − cost)`` or the cap, so everything follows from exact sums over those who are clipped and
    those who are not, without any difference. Clipping an optimum leaves nobody with more loss than the best estimator
    can use, so weights stay proportional to losses. The sums take a pass of their own if they are not ``known``.
    """
    best, total, cap = summed.optimum, summed.loss_per_weight, population.cap
    highest = float(best.weights(np.zeros(1), 1.0)[0]) * total
    # the cap binds nobody
    if highest <= cap:
        return Bought(
            mse=summed.mse * population.unit,
            objective=summed.objective,
            total_loss=total,
            squared_weights=best.value - KAPPA * best.root**2,
        )
    slope = total * KAPPA / (3.0 * best.root) / summed.scale
    level = summed.level
    # clipped are those below this cost
    clip = max(level - cap / slope, 0.0)
    clipped = None if known is None else known.below(clip)
    if clipped is None:
        kernel = WindowKernel(run.people, 0.0, clip, clip)
        clipped = run.reduce("adding up the clipped", kernel, Window.nobody()).below
    # about zero for the clipped, about the level for the others: no difference of large numbers
    count, costs = clipped.count, float(clipped.about(0.0)[0])
    first, second = (float(moment) for moment in summed.bought_from.without(clipped).about(level))
    losses = cap * count - slope * first
    squares = cap**2 * count + slope**2 * second
    spent = cap * costs - slope * (level * first + second)
    mse = (2.0 + float(population.variance) * squares) / losses**2
    return Bought(
        mse=mse * population.unit,
        objective=summed.error_weight * mse + spent,
        total_loss=losses,
        squared_weights=squares / losses**2,
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
