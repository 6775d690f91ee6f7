"""A combination of stratum means in the central setting, at any size: the passes of one mean, a window in each stratum.

Pass 1 counts everybody of each stratum in coarse buckets, and `hushbid.allocation.contrast.bracket` says between which
``T`` the goal's purchase lies, whoever's cost is raised, and so between which costs each stratum's level. If few people
are below these they all go to the driver. If not, a second pass (skipped if it is not needed) places finer buckets
between the levels, and the last one brings exact sums below a window of costs in each stratum, and these. Losses are
then a formula for each stratum, payments a curve in the bid for each stratum and group.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from hushbid.allocation import Accuracy, Budget, Price
from hushbid.allocation.contrast.bracket import ContrastBracket, LevelBounds, bracket_contrast
from hushbid.allocation.contrast.from_sums import SummedContrast, SummedStratum
from hushbid.allocation.contrast.problem import MOST, Scaled
from hushbid.allocation.contrast.replies_from_sums import SummedContrastReplies
from hushbid.allocation.sums import ExactSums
from hushbid.arrays import FloatArray
from hushbid.engine.adapter import Batch
from hushbid.engine.decisions import ContrastKernel, Idle, StratumFormula
from hushbid.engine.passes import Census, Refined, RefineKernel, Window, WindowKernel
from hushbid.engine.people import People, Run
from hushbid.engine.rent_curves import RENT_TOLERANCE, GroupCurves
from hushbid.engine.solve_central import MOST_IN_WINDOW, Bought, Solved
from hushbid.engine.solve_level import level_slack
from hushbid.mechanism import Population
from hushbid.mechanism.impossible import refuse_unreachable
from hushbid.payments import rounding
from hushbid.priors import Prior

_BUCKETS, _FEWEST_BUCKETS = 1 << 12, 1 << 6
_SPARE = 1e-9

Part = TypeVar("Part", Refined, Window)


@dataclass(frozen=True, slots=True)
class Parts(Generic[Part]):
    """What the costs of each stratum come to."""

    parts: tuple[Part, ...]

    def __add__(self, other: "Parts[Part]") -> "Parts[Part]":
        """Both populations together."""
        return Parts(tuple(mine + theirs for mine, theirs in zip(self.parts, other.parts, strict=True)))


@dataclass(frozen=True, slots=True)
class RefineStrata:
    """Pass 2: finer buckets between the levels of each stratum."""

    people: People
    kernels: tuple[RefineKernel, ...]

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.people.columns

    def __call__(self, batch: Batch, start: int | None) -> Parts[Refined]:
        costs = _costs_by_stratum(self.people, batch)
        return Parts(tuple(kernel.of(some) for kernel, some in zip(self.kernels, costs, strict=True)))


@dataclass(frozen=True, slots=True)
class WindowStrata:
    """The last solving pass: exact sums below a window of each stratum, and the costs inside."""

    people: People
    kernels: tuple[WindowKernel, ...]

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.people.columns

    def __call__(self, batch: Batch, start: int | None) -> Parts[Window]:
        costs = _costs_by_stratum(self.people, batch)
        return Parts(tuple(kernel.of(some) for kernel, some in zip(self.kernels, costs, strict=True)))


def _costs_by_stratum(people: People, batch: Batch) -> list[FloatArray]:
    rows = people.read(batch)
    return [rows.costs[which] for which in rows.by_stratum(len(people.strata))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracketed:
    """Where the purchase is, as far as the first pass tells."""

    scaled: Scaled
    found: ContrastBracket

    @property
    def usable(self) -> bool:
        """Whether sums can find it, if people are many."""
        return self.found.high < math.inf

    @property
    def cuts(self) -> tuple[float, ...]:
        """Nobody above these costs matters, in any stratum."""
        return tuple(high * self.scaled.scale * (1.0 + _SPARE) for _, high in self.found.windows)


def first_contrast_bracket(population: Population, census: Census) -> Bracketed:
    """Where the purchase is, from the first pass alone; refused where an accuracy is out of reach."""
    strata, goal = population.strata, population.aim
    assert strata is not None
    assert isinstance(goal, (Price, Accuracy, Budget))
    totals = np.array([one.histogram.people for one in census.strata], dtype=np.float64)
    scaled = Scaled.counted(strata.weights, variance=float(population.variance), goal=goal, totals=totals)
    if isinstance(goal, Accuracy):
        planned = float(np.sum(np.square(strata.weights) / totals)) * float(population.variance)
        refuse_unreachable(population, int(totals.sum()), planned)
    most, bounds = MOST * scaled.scale, []
    for one, size in zip(census.strata, scaled.sizes.tolist(), strict=True):
        if not 0.0 < one.lowest <= most:  # sums do not tell who asks for nothing
            ends = ((0.0, math.inf),) * len(census.strata)
            people = float(totals.sum())
            found = ContrastBracket(low=0.0, high=math.inf, one_basin=False, windows=ends, people=people, below=people)
            return Bracketed(scaled=scaled, found=found)
        with np.errstate(over="ignore", invalid="ignore"):  # squares above the most are not looked at
            levels = one.histogram.levels(scaled.scale, one.lowest).below(MOST)
        dearest = one.dearest / scaled.scale
        bounds.append(LevelBounds(levels, size, complete=float(levels.level[-1]) >= dearest, dearest=dearest))
    return Bracketed(scaled=scaled, found=bracket_contrast(scaled, bounds))


def solve_contrast(run: Run, population: Population, census: Census, first: Bracketed) -> Solved | None:
    """The purchase by sums; None if it cannot be shown to be the only one, or too many people decide."""
    summed = contrast_from_sums(run, census, first)
    return None if summed is None else _priced(run, population, census, summed)


def contrast_from_sums(run: Run, census: Census, first: Bracketed) -> SummedContrast | None:
    """The purchase as sums; None if they cannot tell it."""
    scaled, found = first.scaled, first.found
    windows = _in_costs(scaled, found.windows)
    below, starts = [ExactSums({})] * len(windows), [0.0] * len(windows)
    # pass 2, if too many people are left for the driver
    if found.people > run.window:
        buckets = max(_BUCKETS // len(windows), _FEWEST_BUCKETS)
        kernels = tuple(RefineKernel.over(run.people, [ends], buckets=buckets) for ends in windows)
        finer = RefineStrata(run.people, kernels)
        nobody = Parts(tuple(kernel.nobody for kernel in kernels))
        refined = run.reduce("placing finer buckets in strata", finer, nobody).parts
        below, starts = [one.below[0] for one in refined], [kernel.parts[0][0] for kernel in kernels]
        found = bracket_contrast(scaled, _refined(scaled, census, kernels, refined), (found.low, found.high))
        windows = [
            (max(low, kernel.parts[0][0]), min(high, kernel.parts[0][1]))
            for (low, high), kernel in zip(_in_costs(scaled, found.windows), kernels, strict=True)
        ]
        inside = zip(refined, windows, strict=True)
        if sum(one.histogram.most_different(*window) for one, window in inside) > MOST_IN_WINDOW:
            return None
    # last pass: exact sums below the windows and everybody in them
    last = tuple(WindowKernel(run.people, start, low, high) for start, (low, high) in zip(starts, windows, strict=True))
    nothing = Parts((Window.nobody(),) * len(windows))
    listed = run.reduce("adding up exactly in strata", WindowStrata(run.people, last), nothing).parts
    strata = []
    for one, window, ends, before in zip(census.strata, listed, windows, below, strict=True):
        known = window.settled()
        strata.append(
            SummedStratum(
                below=before + known.below,
                costs=known.costs,
                people=known.people,
                lowest=one.lowest,
                dearest=one.dearest,
                window=ends,
            )
        )
    summed = SummedContrast(scaled, strata, (found.low, found.high))
    return summed if summed.is_settled else None


def _in_costs(scaled: Scaled, windows: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Windows of levels as costs, a little wider for rounding."""
    return [(low * scaled.scale * (1.0 - _SPARE), high * scaled.scale * (1.0 + _SPARE)) for low, high in windows]


def _refined(
    scaled: Scaled, census: Census, kernels: Sequence[RefineKernel], refined: Sequence[Refined]
) -> list[LevelBounds]:
    """What the finer buckets say."""
    bounds = []
    for one, kernel, found, size in zip(census.strata, kernels, refined, scaled.sizes.tolist(), strict=True):
        start, end = kernel.parts[0]
        levels = found.histogram.levels(scaled.scale, one.lowest, [(start, found.below[0])], [end])
        dearest = one.dearest / scaled.scale
        bounds.append(LevelBounds(levels, size, complete=end >= one.dearest, dearest=dearest))
    return bounds


@dataclass(frozen=True, slots=True)
class OneStratum:
    """The purchase, as the people of one stratum see it."""

    summed: SummedContrast
    stratum: int

    @property
    def level(self) -> float:
        """Below this virtual cost people of the stratum are bought from."""
        return self.summed.level(self.stratum)

    def losses(self, costs: FloatArray) -> FloatArray:
        """The privacy losses of people of the stratum with these virtual costs."""
        return self.summed.losses(self.stratum, costs)

    def replies_for(self, costs: FloatArray) -> SummedContrastReplies:
        """The purchase as a function of the cost of somebody of the stratum who is now at one of ``costs``."""
        return SummedContrastReplies(self.summed, self.stratum, costs)


def _priced(run: Run, population: Population, census: Census, summed: SummedContrast) -> Solved:
    """Losses by formula, and one curve of rents per stratum and group."""
    strata = population.strata
    assert strata is not None
    formulas, curve_error, rent_error, largest, slack = [], 0.0, 0.0, 0.0, 0.0
    for stratum, counted in enumerate(census.strata):
        one, curves = OneStratum(summed, stratum), []
        for code, prior in enumerate(run.people.prior_list):
            lowest = counted.lowest_bid.get(code, math.inf)
            group = GroupCurves(one, None, prior, lowest, min(RENT_TOLERANCE, population.tolerance))
            curve = group.rents()
            curves.append(curve)
            if curve is not None:
                curve_error = max(curve_error, curve.error)
                slack = max(slack, _slack(population, one, prior))
            rent_error, largest = max(rent_error, group.rent_error), max(largest, group.largest)
        formulas.append(
            StratumFormula(
                shares=summed.shares(stratum),
                level=one.level * (1.0 + 1e-12),  # rounding must not leave out who is at the margin
                sign=float(np.sign(strata.weights[stratum])),
                size=float(summed.scaled.sizes[stratum]),
                active=int(summed.moments[stratum][0]),
                rents=tuple(curves),
            )
        )
    bought = _bought(population, summed)
    kernel = ContrastKernel(
        people=run.people,
        idle=Idle(user_weight=0.0, mse=bought.mse, outside=0.0, largest_outside=float(population.own_error)),
        strata=tuple(formulas),
        together=float(np.abs(strata.weights).sum()),
        loss_per_share=summed.strength,
        largest_price=largest,
    )
    return Solved(
        kernel=kernel,
        bought=bought,
        active=summed.active,
        lower_bound=population.certified(summed.lower_bound()),
        largest_loss=summed.largest_loss,
        most_lost=math.inf,
        schedule_error=curve_error,
        rent_error=rent_error + slack,
    )


def _bought(population: Population, summed: SummedContrast) -> Bought:
    """What the losses come to."""
    scaled = summed.scaled
    worst = population.worst_error(summed.mse)
    mse, squares = worst, summed.squared_weights
    if population.bias > 0.0:
        together = scaled.factor / scaled.unit
        mse = float(population.own_error) / population.unit * squares + 2.0 * together / summed.strength**2
    return Bought(
        mse=mse * population.unit,
        worst_mse=worst * population.unit,
        objective=population.certified(summed.objective),
        total_loss=summed.strength,
        squared_weights=squares,
    )


def _slack(population: Population, one: OneStratum, prior: Prior) -> float:
    """By how much the rounding of losses can change a payment."""
    if not isinstance(population.goal, Price):
        return level_slack(population, one, prior)
    strata, summed = population.strata, one.summed
    assert strata is not None
    lowest = np.array([summed.strata[one.stratum].lowest])
    return rounding(
        loss_rounding=population.setting.loss_rounding,
        error_weight=population.error_weight * float(strata.weights[one.stratum]) ** 2,
        variance=float(population.variance),
        objective=summed.objective,
        # her part of her stratum's weight
        largest_weight=float(summed.shares(one.stratum).weights(lowest)[0] / summed.scaled.sizes[one.stratum]),
        top=prior.support[1],
        cap=math.inf,
        care=0.0,
    )
