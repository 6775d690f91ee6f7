"""The kernels of the solving passes, and the summaries they add up to."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation.exact_sums import ExactSums
from hushbid.allocation.histogram import COARSE, Histogram
from hushbid.allocation.windows import Listing, Refine, Refined, Window
from hushbid.common.adding import Adds, by_key, each, joined
from hushbid.common.arrays import FloatArray
from hushbid.engine.adapter import Batch
from hushbid.engine.people import PROBLEMS, People, Rows, Run

_SHOWN = 5


def _first_few(ours: tuple[Any, ...], others: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(ours + others)[:_SHOWN])


@dataclass(frozen=True, slots=True, kw_only=True)
class Census(Adds):
    """What the first pass finds: who is there, what is wrong, and where the costs are."""

    rows: int = 0
    """All rows, good and bad."""

    problems: Mapping[int, int] = joined(by_key(operator.add), default_factory=dict)
    """How many rows have each problem."""

    examples: tuple[tuple[int, str], ...] = joined(_first_few, default=())
    """The first few bad rows: a number to sort them by, and what to call them."""

    infinite: int = 0
    """How many can be priced but are above the support, so that nothing is bought from them."""

    histogram: Histogram = field(default_factory=lambda: Histogram.empty(COARSE))
    """The finite virtual costs."""

    lowest: float = joined(min, default=np.inf)
    """The smallest virtual cost."""

    lowest_bid: Mapping[int, float] = joined(by_key(min), default_factory=dict)
    """The smallest bid of each group."""

    variance: tuple[float, float] = joined(
        lambda ours, others: (min(ours[0], others[0]), max(ours[1], others[1])), default=(np.inf, 0.0)
    )
    """The smallest and the largest variance of anybody with a finite cost."""

    widest: float = joined(max, default=0.0)
    """The largest variance of all."""

    variances: ExactSums = field(default_factory=lambda: ExactSums({}))
    """All variances added up."""

    sizes: Mapping[int, int] = joined(by_key(operator.add), default_factory=dict)
    """How many of each group can be priced."""

    lowest_limit: float = joined(min, default=np.inf)
    """The lowest limit or cap of anybody with a finite cost."""

    strata: tuple["Census", ...] = joined(each, default=())
    """The same of each stratum, where there are strata; problems are only counted together."""

    @property
    def parts(self) -> tuple["Census", ...]:
        """The census of each stratum; one mean is one stratum."""
        return self.strata or (self,)

    @property
    def bad(self) -> int:
        """How many rows cannot be priced."""
        return sum(self.problems.values())

    @property
    def people(self) -> int:
        """How many rows can be priced."""
        return self.rows - self.bad

    @property
    def dearest(self) -> float:
        """No finite virtual cost is above this, the highest edge of a bucket."""
        return self.histogram.cut_after(self.histogram.people)

    @property
    def mean_variance(self) -> float:
        """The mean of all variances."""
        return float(self.variances.about(0.0)[0] / self.variances.count)


@dataclass(frozen=True, slots=True)
class CensusKernel:
    """Pass 1."""

    people: People

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.people.columns

    def __call__(self, batch: Batch, start: int | None) -> Census:
        rows = self.people.read(batch)
        found = self._of(rows)
        if self.people.strata:
            parts = rows.by_stratum(len(self.people.strata))
            found = replace(found, strata=tuple(self._of(rows.take(which)) for which in parts))
        if rows.problem is None:
            return found
        # bad rows: how many of each kind, and the first few
        codes, counts = np.unique(rows.problem[rows.problem > 0], return_counts=True)
        problems = dict(zip((codes - 1).tolist(), counts.tolist(), strict=True))
        return replace(found, rows=batch.num_rows, problems=problems, examples=self._examples(rows.problem, start))

    def _of(self, rows: Rows) -> Census:
        """What is to be known of some good rows."""
        costs = rows.costs
        finite = costs < np.inf  # bids above the support cannot be sold and are in no bucket
        infinite = costs.size - int(np.count_nonzero(finite))
        if infinite:
            costs = costs[finite]
        variance = rows.variance[finite] if rows.variance is not None else np.zeros(0)
        return Census(
            rows=rows.bids.size,
            infinite=infinite,
            histogram=Histogram.of(costs, COARSE),
            lowest=float(costs.min(initial=np.inf)),
            lowest_bid=self._lowest_bids(rows),
            variance=(float(variance.min(initial=np.inf)), float(variance.max(initial=0.0))),
            widest=0.0 if rows.variance is None else float(rows.variance.max(initial=0.0)),
            variances=ExactSums({}) if rows.variance is None else ExactSums.of(rows.variance + 0.0),
            sizes=_sizes(rows),
            lowest_limit=np.inf if rows.limit is None else float(rows.limit[finite].min(initial=np.inf)),
        )

    def _lowest_bids(self, rows: Rows) -> dict[int, float]:
        if rows.bids.size == 0:
            return {}
        if rows.groups is None:
            return {0: float(rows.bids.min())}
        lowest = np.full(len(self.people.priors), np.inf)
        np.minimum.at(lowest, rows.groups, rows.bids)
        return {code: float(lowest[code]) for code in np.unique(rows.groups).tolist()}

    def _examples(self, problem: NDArray[np.int8], start: int | None) -> tuple[tuple[int, str], ...]:
        """By number, where rows have an order."""
        if start is None:
            return ()
        bad = np.flatnonzero(problem)[:_SHOWN].tolist()
        return tuple((start + row, f"row {start + row} is {PROBLEMS[int(problem[row]) - 1]}") for row in bad)


def _sizes(rows: Rows) -> dict[int, int]:
    if rows.groups is None:
        return {0: rows.bids.size}
    return dict(enumerate(np.bincount(rows.groups).tolist()))


@dataclass(frozen=True, slots=True)
class Named(Adds):
    """The first few bad rows by name."""

    texts: tuple[str, ...] = joined(_first_few, default=())


@dataclass(frozen=True, slots=True)
class NamesKernel:
    """Bad rows by their ids, where rows have no order and so no number."""

    people: People

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.people.columns_and_id

    def __call__(self, batch: Batch, start: int | None) -> Named:
        problem = self.people.read(batch).problem
        if problem is None or self.people.id is None:
            return Named()
        ids = batch.column(self.people.id)
        names = (
            f"the row with {self.people.id} = {ids[row]} is {PROBLEMS[int(problem[row]) - 1]}"
            for row in np.flatnonzero(problem).tolist()
        )
        return Named(tuple(sorted(names)[:_SHOWN]))


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


@dataclass(frozen=True, slots=True)
class Parts(Adds, Generic[Part]):
    """What the costs of each stratum come to."""

    parts: tuple[Part, ...] = joined(each)


def _by_stratum(rows: Rows, *, jobs: Sequence[Job[Part]]) -> Parts[Part]:
    """Do one job for the costs of each stratum."""
    parts = zip(jobs, rows.by_stratum(len(jobs)), strict=True)
    return Parts(tuple(job.of(rows.costs[which]) for job, which in parts))


@dataclass(frozen=True, slots=True)
class SolvingPasses:
    """The passes of `hushbid.mechanism.summed.solve`, by an engine."""

    run: Run

    @property
    def window(self) -> int:
        """At most so many people are expected in the windows that go to the driver."""
        return self.run.window

    def refine(self, jobs: Sequence[Refine]) -> Sequence[Refined]:
        """Place finer buckets in each stratum."""
        return self._parts("placing finer buckets", jobs)

    def listed(self, jobs: Sequence[Listing]) -> Sequence[Window]:
        """Add up exactly, and list the costs of a window in each stratum."""
        return self._parts("adding up exactly", jobs)

    def _parts(self, what: str, jobs: Sequence[Job[Part]]) -> Sequence[Part]:
        nobody = Parts(tuple(job.nobody for job in jobs))
        return self.run.add_up(what, partial(_by_stratum, jobs=tuple(jobs)), nobody).parts
