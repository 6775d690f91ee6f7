"""The central purchase from very many people, found from sums in two or three passes over their virtual costs.

Pass 1 counts everybody of each stratum in coarse buckets, and :mod:`hushbid.allocation.bracket` says between which
costs each stratum's water level lies, whoever's cost is raised. A second pass, skipped if few people are left, places
finer buckets there, and the last one brings exact sums below a window of costs in each stratum, and these costs. One
mean is one stratum; a table in memory is one batch.
"""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from hushbid.allocation import Accuracy, Budget, Price
from hushbid.allocation.bracket import Bracket, LevelBounds, bracket
from hushbid.allocation.central_problem import NormalForm
from hushbid.allocation.exact_sums import ExactSums
from hushbid.allocation.from_sums import SummedOptimum, SummedStratum
from hushbid.allocation.histogram import COARSE, Histogram, Levels
from hushbid.allocation.windows import Interval, Listing, Refine, Refined, Window
from hushbid.common.adding import Adds, by_key, joined
from hushbid.common.arrays import FloatArray, IntArray
from hushbid.mechanism.impossible import refuse_unreachable
from hushbid.mechanism.population import Population

MOST_IN_WINDOW = 1 << 25
"""More costs than this are not listed to distinguish several minima."""

_BUCKETS, _FEWEST_BUCKETS = 1 << 12, 1 << 6
_SPARE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Adds):
    """What the first pass finds of one stratum."""

    histogram: Histogram = field(default_factory=lambda: Histogram.empty(COARSE))
    """The finite virtual costs."""

    lowest: float = joined(min, default=math.inf)
    """The smallest virtual cost."""

    lowest_bid: Mapping[int, float] = joined(by_key(min), default_factory=dict)
    """The smallest bid of each group."""

    sizes: Mapping[int, int] = joined(by_key(operator.add), default_factory=dict)
    """How many people of each group there are, whatever they cost."""

    @classmethod
    def of(cls, bids: FloatArray, costs: FloatArray, groups: IntArray | None) -> "Counted":
        """Count some people; ``groups`` are codes from 0, None if there is one group."""
        costs = finite(costs)  # bids above the support cannot be sold and are in no bucket
        sizes, lowest_bids = np.array([bids.size]), np.array([bids.min(initial=math.inf)])
        if groups is not None:
            sizes = np.bincount(groups)
            lowest_bids = np.full(sizes.size, math.inf)
            np.minimum.at(lowest_bids, groups, bids)
        return cls(
            histogram=Histogram.of(costs, COARSE),
            lowest=float(costs.min(initial=math.inf)),
            lowest_bid=dict(enumerate(lowest_bids.tolist())),
            sizes=dict(enumerate(sizes.tolist())),
        )

    @property
    def people(self) -> int:
        """How many people there are."""
        return sum(self.sizes.values())

    @property
    def dearest(self) -> float:
        """No finite virtual cost is above this, the highest edge of a bucket."""
        return self.histogram.cut_after(self.histogram.people)


def finite(costs: FloatArray) -> FloatArray:
    """Return the costs of people who can be bought from."""
    return costs if costs.max(initial=0.0) < math.inf else costs[costs < math.inf]


Part = TypeVar("Part", Refined, Window)
Made = TypeVar("Made", covariant=True)


class Job(Protocol[Made]):
    """What is made of the costs of one stratum."""

    @property
    def nobody(self) -> Made:
        """Where to start adding."""
        ...

    def of(self, costs: FloatArray) -> Made:
        """Of some costs."""
        ...


class Passes(Protocol):
    """What reads the costs of every stratum once more."""

    @property
    def window(self) -> int:
        """At most so many people are expected in the windows."""
        ...

    def over(self, what: str, jobs: Sequence[Job[Part]]) -> Sequence[Part]:
        """Do one job in each stratum; ``what`` they are for."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A problem and where its optimum is, as far as sums say."""

    form: NormalForm
    found: Bracket

    @property
    def cuts(self) -> tuple[float, ...]:
        """Nobody above these costs matters, in any stratum."""
        return tuple(high * self.form.scale * (1.0 + _SPARE) for _, high in self.found.windows)

    @property
    def intervals(self) -> list[list[Interval]]:
        """In which costs each stratum's level lies, a little wider for rounding."""
        scale = self.form.scale
        return [
            [(low * scale * (1.0 - _SPARE), high * scale * (1.0 + _SPARE)) for low, high in some]
            for some in self.found.intervals
        ]


def locate(
    population: Population, counted: Sequence[Counted], *, variance: tuple[float, float] | None = None
) -> list[Located]:
    """Return where the purchase is, from the first pass alone; refuse an accuracy that is out of reach.

    ``variance`` is the smallest and the largest planned one where they differ. If people who stay out have the estimate
    made without them, a second problem follows, in which nobody weighs the error for one of them.
    """
    own = float(np.max(population.variance)) if variance is None else 0.0
    smallest, largest = (own, own) if variance is None else variance
    weights = np.ones(1) if population.strata is None else population.strata.weights
    totals = np.array([one.histogram.people for one in counted], dtype=np.float64)
    aim = population.aim
    assert isinstance(aim, (Price, Accuracy, Budget))
    if isinstance(aim, Accuracy) and smallest == largest:
        planned = float(np.sum(np.square(weights) / totals)) * smallest
        refuse_unreachable(population.without_caps(), int(totals.sum()), planned)
    aims = [aim]
    if population.outside_option == "estimate" and population.cares and np.ndim(population.user_weight) == 0:
        left = (population.total_weight - float(population.user_weight)) * population.unit
        aims += [Price(left)] if left > 0.0 else []
    located = []
    for one in aims:
        form = NormalForm.of(weights, smallest, one)
        located.append(Located(form=form, found=_first(form, counted, totals, smallest / largest)))
    return located


def _first(form: NormalForm, counted: Sequence[Counted], totals: FloatArray, evenness: float) -> Bracket:
    """Where the optimum is, from coarse buckets."""
    bounds = []
    for one, size in zip(counted, form.sizes.tolist(), strict=True):
        if not one.lowest <= form.limits[1]:
            return Bracket.unknown(totals.size, float(totals.sum()))
        with np.errstate(over="ignore", invalid="ignore"):  # squares above the most are not looked at
            levels = one.histogram.levels(form.scale, one.lowest).below(form.limits[1] / form.scale)
        bounds.append(_bounds(levels, size, one.dearest / form.scale, evenness))
    return bracket(form, bounds)


def _bounds(levels: Levels, size: float, dearest: float, evenness: float = 1.0) -> LevelBounds:
    complete = float(levels.level[-1]) >= dearest
    return LevelBounds(levels, size, complete=complete, dearest=dearest, evenness=evenness)


def solve(located: Sequence[Located], counted: Sequence[Counted], passes: Passes) -> list[SummedOptimum] | None:
    """Return the optimum of each problem; None if sums cannot show it to be the only one, or too many people decide."""
    if not all(one.found.high < math.inf for one in located):
        return None
    below, starts = [ExactSums({})] * len(counted), [0.0] * len(counted)
    # pass 2, if too many people are left to be listed
    if max(one.found.people for one in located) > passes.window:
        buckets = max(_BUCKETS // len(counted), _FEWEST_BUCKETS)
        jobs = [Refine.over(some, buckets=buckets) for some in _together(located)]
        refined = passes.over("placing finer buckets", jobs)
        below, starts = [one.below[0] for one in refined], [job.parts[0][0] for job in jobs]
        located = [_refined(one, counted, jobs, refined) for one in located]
        if not all(one.found.high < math.inf for one in located):
            return None
        inside = zip(refined, _windows(located, starts), strict=True)
        if sum(one.histogram.most_different(*window) for one, window in inside) > MOST_IN_WINDOW:
            return None
    # last pass: exact sums below the windows and everybody in them
    windows = _windows(located, starts)
    last = [Listing(start, low, high) for start, (low, high) in zip(starts, windows, strict=True)]
    strata, every = [], passes.over("adding up exactly", last)
    for one, listed, ends, before in zip(counted, every, windows, below, strict=True):
        known = listed.settled()
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
    found = [SummedOptimum(one.form, strata, (one.found.low, one.found.high)) for one in located]
    return found if all(one.is_settled for one in found) else None


def _together(located: Sequence[Located]) -> list[list[Interval]]:
    """The intervals of all problems, in each stratum."""
    every = [one.intervals for one in located]
    return [sorted(interval for some in stratum for interval in some) for stratum in zip(*every, strict=True)]


def _windows(located: Sequence[Located], starts: Sequence[float]) -> list[Interval]:
    """The window of each stratum: from the lowest to the highest level of all problems."""
    return [
        (max(some[0][0], start), max(high for _, high in some))
        for some, start in zip(_together(located), starts, strict=True)
    ]


def _refined(one: Located, counted: Sequence[Counted], jobs: Sequence[Refine], refined: Sequence[Refined]) -> Located:
    """Where the optimum is, by the finer buckets."""
    form, bounds = one.form, []
    for stratum, job, found, size in zip(counted, jobs, refined, form.sizes.tolist(), strict=True):
        below = [(start, sums) for (start, _), sums in zip(job.parts, found.below, strict=True)]
        levels = found.histogram.levels(form.scale, stratum.lowest, below, [end for _, end in job.parts])
        bounds.append(_bounds(levels, size, stratum.dearest / form.scale))
    return Located(form=form, found=bracket(form, bounds, one.found.parts))
