"""The kernels of the solving passes, and the summaries they add up to."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation.exact_sums import ExactSums
from hushbid.common.adding import Adds, by_key, each, joined
from hushbid.engine.adapter import Batch
from hushbid.engine.people import PROBLEMS, People, Rows, Run
from hushbid.mechanism.summed import Counted, Job, Part

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

    variance: tuple[float, float] = joined(
        lambda ours, others: (min(ours[0], others[0]), max(ours[1], others[1])), default=(np.inf, 0.0)
    )
    """The smallest and the largest variance of anybody with a finite cost."""

    widest: float = joined(max, default=0.0)
    """The largest variance of all."""

    variances: ExactSums = field(default_factory=lambda: ExactSums({}))
    """All variances added up."""

    lowest_limit: float = joined(min, default=np.inf)
    """The lowest limit or cap of anybody with a finite cost."""

    parts: tuple[Counted, ...] = joined(each, default=())
    """Who is in each stratum; one mean is one stratum."""

    @property
    def bad(self) -> int:
        """How many rows cannot be priced."""
        return sum(self.problems.values())

    @property
    def people(self) -> int:
        """How many rows can be priced."""
        return self.rows - self.bad

    @property
    def finite(self) -> int:
        """How many people can be bought from."""
        return sum(one.histogram.people for one in self.parts)

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
        rows, variance, limit = self.people.read(batch), np.zeros(0), np.zeros(0)
        if rows.variance is not None:
            variance = rows.variance[rows.costs < np.inf]
        if rows.limit is not None:
            limit = rows.limit[rows.costs < np.inf]
        # bad rows: how many of each kind, and the first few
        problem = np.zeros(0, dtype=np.int8) if rows.problem is None else rows.problem
        codes, counts = np.unique(problem[problem > 0], return_counts=True)
        return Census(
            rows=batch.num_rows,
            problems=dict(zip((codes - 1).tolist(), counts.tolist(), strict=True)),
            examples=self._examples(problem, start),
            variance=(float(variance.min(initial=np.inf)), float(variance.max(initial=0.0))),
            widest=0.0 if rows.variance is None else float(rows.variance.max(initial=0.0)),
            variances=ExactSums({}) if rows.variance is None else ExactSums.of(rows.variance + 0.0),
            lowest_limit=float(limit.min(initial=np.inf)),
            parts=tuple(
                Counted.of(rows.bids[which], rows.costs[which], None if rows.groups is None else rows.groups[which])
                for which in rows.by_stratum(max(len(self.people.strata), 1))
            ),
        )

    def _examples(self, problem: NDArray[np.int8], start: int | None) -> tuple[tuple[int, str], ...]:
        """By number, where rows have an order."""
        if start is None:
            return ()
        bad = np.flatnonzero(problem)[:_SHOWN].tolist()
        return tuple((start + row, f"row {start + row} is {PROBLEMS[int(problem[row]) - 1]}") for row in bad)


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

    def over(self, what: str, jobs: Sequence[Job[Part]]) -> Sequence[Part]:
        """Do one job in each stratum."""
        nobody = Parts(tuple(job.nobody for job in jobs))
        return self.run.add_up(what, partial(_by_stratum, jobs=tuple(jobs)), nobody).parts
