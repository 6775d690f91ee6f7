"""The kernels of the solving passes, and the summaries they add up to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hushbid.allocation.sums import ExactSums
from hushbid.arrays import FloatArray, IntArray
from hushbid.engine.adapter import Batch
from hushbid.engine.histogram import COARSE, Histogram
from hushbid.engine.people import PROBLEMS, People, Rows

_SHOWN = 5
_MANY = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """What the first pass finds: who is there, what is wrong, and where the costs are."""

    rows: int = 0
    """All rows, good and bad."""

    problems: Mapping[int, int] = field(default_factory=dict)
    """How many rows have each problem."""

    examples: tuple[tuple[int, str], ...] = ()
    """The first few bad rows: a number to sort them by, and what to call them."""

    infinite: int = 0
    """How many can be priced but are above the support, so that nothing is bought from them."""

    histogram: Histogram = field(default_factory=lambda: Histogram.empty(COARSE))
    """The finite virtual costs."""

    lowest: float = np.inf
    """The smallest virtual cost."""

    lowest_bid: Mapping[int, float] = field(default_factory=dict)
    """The smallest bid of each group."""

    variance: tuple[float, float] = (np.inf, 0.0)
    """The smallest and the largest variance of anybody with a finite cost."""

    widest: float = 0.0
    """The largest variance of all."""

    variances: ExactSums = field(default_factory=lambda: ExactSums({}))
    """All variances added up."""

    sizes: Mapping[int, int] = field(default_factory=dict)
    """How many of each group can be priced."""

    lowest_limit: float = np.inf
    """The lowest limit or cap of anybody with a finite cost."""

    strata: tuple["Census", ...] = ()
    """The same of each stratum, where there are strata; problems are only counted together."""

    def __add__(self, other: "Census") -> "Census":
        """Both populations together."""
        problems, sizes, bids = dict(self.problems), dict(self.sizes), dict(self.lowest_bid)
        for code, count in other.problems.items():
            problems[code] = problems.get(code, 0) + count
        for code, count in other.sizes.items():
            sizes[code] = sizes.get(code, 0) + count
        for group, bid in other.lowest_bid.items():
            bids[group] = min(bids.get(group, np.inf), bid)
        return Census(
            rows=self.rows + other.rows,
            problems=problems,
            examples=tuple(sorted(self.examples + other.examples)[:_SHOWN]),
            infinite=self.infinite + other.infinite,
            histogram=self.histogram + other.histogram,
            lowest=min(self.lowest, other.lowest),
            lowest_bid=bids,
            variance=(min(self.variance[0], other.variance[0]), max(self.variance[1], other.variance[1])),
            widest=max(self.widest, other.widest),
            variances=self.variances + other.variances,
            sizes=sizes,
            lowest_limit=min(self.lowest_limit, other.lowest_limit),
            strata=_by_stratum(self.strata, other.strata),
        )

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


def _by_stratum(mine: tuple[Census, ...], theirs: tuple[Census, ...]) -> tuple[Census, ...]:
    if not mine or not theirs:
        return mine or theirs
    return tuple(one + other for one, other in zip(mine, theirs, strict=True))


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
        if rows.strata is not None:
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
class Named:
    """The first few bad rows by name."""

    texts: tuple[str, ...] = ()

    def __add__(self, other: "Named") -> "Named":
        """Both populations together."""
        return Named(tuple(sorted(self.texts + other.texts)[:_SHOWN]))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined:
    """A finer histogram of some intervals of costs, and exact sums of the people below each but above the last."""

    below: tuple[ExactSums, ...]
    histogram: Histogram

    def __add__(self, other: "Refined") -> "Refined":
        """Both populations together."""
        below = tuple(mine + theirs for mine, theirs in zip(self.below, other.below, strict=True))
        return Refined(below=below, histogram=self.histogram + other.histogram)


@dataclass(frozen=True, slots=True)
class RefineKernel:
    """Pass 2, of a population too large to take what is left of it to the driver."""

    people: People
    parts: tuple[tuple[float, float], ...]
    """The intervals, ascending, each of whole buckets."""

    shift: int

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.people.columns

    @classmethod
    def over(
        cls, people: People, intervals: Sequence[tuple[float, float]], *, buckets: int = 1 << 12
    ) -> "RefineKernel":
        """Over some intervals, a little widened, with about so many buckets in all."""
        # as fine as so many buckets allow
        shift, ends = 16, [(low * (1.0 - 1e-9), high * (1.0 + 1e-9)) for low, high in intervals]
        while sum(_bits(high, shift) - _bits(low, shift) + 1 for low, high in ends) > max(buckets, 2 * len(ends)):
            shift += 1
        parts: list[tuple[float, float]] = []
        for low, high in ends:
            # whole buckets; intervals that touch become one
            first, last = _edge(_bits(low, shift), shift), _edge(_bits(high, shift) + 1, shift)
            if parts and first <= parts[-1][1]:
                first = parts.pop()[0]
            parts.append((first, last))
        return cls(people, tuple(parts), shift)

    @property
    def nobody(self) -> Refined:
        """Where to start adding."""
        return Refined(below=(ExactSums({}),) * len(self.parts), histogram=Histogram.empty(self.shift))

    def __call__(self, batch: Batch, start: int | None) -> Refined:
        return self.of(self.people.read(batch).costs)

    def of(self, costs: FloatArray) -> Refined:
        """Of some costs."""
        costs = costs[costs < self.parts[-1][1]]
        if len(self.parts) == 1:
            within = costs >= self.parts[0][0]
            below: tuple[ExactSums, ...] = (ExactSums.of(costs[~within]),)
        else:
            # odd places are inside an interval, even ones below the next
            place = np.searchsorted(np.array(self.parts).ravel(), costs, side="right")
            within = place % 2 == 1
            below = tuple(ExactSums.of(costs[place == 2 * part]) for part in range(len(self.parts)))
        return Refined(below=below, histogram=Histogram.of(costs[within], self.shift))


def _bits(cost: float, shift: int) -> int:
    return int(np.float64(cost).view(np.int64)) >> shift


def _edge(bits: int, shift: int) -> float:
    return float(np.int64(bits << shift).view(np.float64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """Exact sums below a window of costs, and every cost inside with the number of people who have it."""

    below: ExactSums
    costs: FloatArray
    people: IntArray
    different: int = 0
    """How many costs there were when equal ones were last put together."""

    @classmethod
    def nobody(cls) -> "Window":
        """Where to start adding."""
        return cls(below=ExactSums({}), costs=np.zeros(0), people=np.zeros(0, dtype=np.int64))

    def __add__(self, other: "Window") -> "Window":
        """Both populations together."""
        both = Window(
            below=self.below + other.below,
            costs=np.concatenate([self.costs, other.costs]),
            people=np.concatenate([self.people, other.people]),
            different=max(self.different, other.different),
        )
        # equal costs are put together only now and then: sorting takes longer than adding
        return both.settled() if both.costs.size > max(2 * both.different, _MANY) else both

    def settled(self) -> "Window":
        """With every cost once, ascending."""
        costs, places = np.unique(self.costs, return_inverse=True)
        people = np.zeros(costs.size, dtype=np.int64)
        np.add.at(people, places, self.people)
        return Window(below=self.below, costs=costs, people=people, different=costs.size)


@dataclass(frozen=True, slots=True)
class WindowKernel:
    """The last solving pass: the sums of costs from ``start`` to ``low``, and the costs from ``low`` to ``high``."""

    people: People
    start: float
    low: float
    high: float

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return self.people.columns

    def __call__(self, batch: Batch, start: int | None) -> Window:
        return self.of(self.people.read(batch).costs)

    def of(self, costs: FloatArray) -> Window:
        """Of some costs."""
        costs = costs[(costs >= self.start) & (costs <= self.high)]
        within = costs >= self.low
        inside, people = np.unique(costs[within], return_counts=True)
        return Window(below=ExactSums.of(costs[~within]), costs=inside, people=people.astype(np.int64))
