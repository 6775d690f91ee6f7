"""Exact integer sums over people, batch by batch, wherever the data are.

Integers add up alike in every order, so the total has the sensitivity that was promised wherever it is added up, and
memory and engines have the same sums to the last bit:

    sums = sum((Sums.of(losses, table, codes, plan) for losses, table, codes in batches), Sums.none(plan))
    release = prepare(plan, sums).draw(key)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.common.adding import Adds, each, joined
from hushbid.common.arrays import FloatArray, IndexArray, IntArray
from hushbid.disclosure.combination import rows_by_code
from hushbid.disclosure.grid import exact_sum, to_grid
from hushbid.disclosure.sum_plan import SumPlan
from hushbid.disclosure.weighing import bounds_of
from hushbid.errors import ReleaseError
from hushbid.questions import PARTS, NoiseGroup, Number, Question

TERM_BITS = 52
_HALF = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumSums(Adds):
    """Exact integer sums over everybody of a stratum who delivered."""

    groups: tuple[int, ...] = joined(each)
    """``Σ W_ig`` of each group of questions."""

    cells: tuple[tuple[int, ...], ...] = joined(each)
    """Of each group's cells ``Σ W_ig·X_ij``, or of a choice ``Σ W_ig`` over those who gave the answer."""

    weight: int = 0
    """``Σ W_i``, before weights are split over groups."""

    squares: int = 0
    """Of the squares of weights relative to the largest possible one, each rounded up to ``2**-52``."""

    spreads: int = 0
    """Of these squares, each times the person's variance relative to the largest one."""

    heaviest: int = joined(max, default=0)
    delivered: int = 0
    dropped_out: int = 0
    clamped: int = 0
    share: float = joined(max, default=0.0)
    """The largest part of a promise that is used."""

    @classmethod
    def none(cls, plan: SumPlan) -> "StratumSums":
        """Of nobody."""
        return cls(
            groups=(0,) * len(plan.layout.groups), cells=tuple((0,) * group.cells for group in plan.layout.groups)
        )

    @classmethod
    def of(cls, losses: FloatArray, table: FloatArray, plan: SumPlan, variance: FloatArray | None) -> "StratumSums":
        """Of some people, as `Sums.of` says."""
        asked, present = losses > 0.0, ~np.isnan(table).any(axis=1)
        # bought from, and delivered; nobody else's datum is read any further
        used = asked & present
        promised, rows = (losses, table) if used.all() else (losses[used], table[used])
        with np.errstate(under="ignore"):  # what underflows is below 1 and rounds down to 0 anyway
            scaled = np.floor(np.ldexp(promised, plan.exponent))
            lost = np.ldexp(scaled, -plan.exponent)
        # integers from here on, so that sums do not depend on batches
        weights = scaled.astype(np.int64)
        split = [part_of(weights, parts) for parts in plan.parts]
        over = (lost > promised).any()  # both are doubles, and exact
        if over or not (plan.noiseless or len(split) == 1 or (np.sum(split, axis=0) <= weights).all()):
            raise ReleaseError("The noise would not keep a promise; nothing was drawn.")
        # for the error only: shares of the largest possible weight, rounded up
        squares = np.square(np.ldexp(scaled, -plan.weight_bits))
        spreads = total = exact_total(np.ceil(np.ldexp(squares, TERM_BITS)).astype(np.int64))
        if variance is not None and plan.largest_variance > 0.0:
            spread = squares * (variance[used] / plan.largest_variance)
            spreads = exact_total(np.ceil(np.ldexp(spread, TERM_BITS)).astype(np.int64))
        return cls(
            groups=tuple(exact_total(part) for part in split),
            cells=tuple(
                _cells(part, rows, group, plan.questions) for part, group in zip(split, plan.layout.groups, strict=True)
            ),
            weight=exact_total(weights),
            squares=total,
            spreads=spreads,
            heaviest=int(weights.max(initial=0)),
            delivered=int(used.sum()),
            dropped_out=int((asked & ~present).sum()),
            clamped=clamped_in(rows, plan.questions),
            share=float((lost / promised).max(initial=0.0)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums(Adds):
    """The sums of each stratum, in the strata's order."""

    strata: tuple[StratumSums, ...] = joined(each)

    @classmethod
    def none(cls, plan: SumPlan) -> "Sums":
        """Of nobody."""
        return cls(strata=(StratumSums.none(plan),) * len(plan.weights))

    @classmethod
    def of(
        cls,
        losses: FloatArray,
        table: FloatArray,
        codes: IndexArray,
        plan: SumPlan,
        variance: FloatArray | None = None,
    ) -> "Sums":
        """Of some people: what is used of their losses, their answers, strata, and variances where they differ.

        The table holds answers as `hushbid.disclosure.answers` writes them, and NaN in a whole row where a person did
        not deliver.
        """
        return cls(
            strata=tuple(
                StratumSums.of(losses[rows], table[rows], plan, None if variance is None else variance[rows])
                for rows in rows_by_code(codes, len(plan.weights))
            )
        )

    @property
    def weights(self) -> tuple[int, ...]:
        """What the weights of each stratum add up to."""
        return tuple(one.weight for one in self.strata)

    def total(self, name: str) -> int:
        """One of the sums, over all strata."""
        return sum(getattr(one, name) for one in self.strata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Above(Adds):
    """Who weighs more than an equal share of their stratum: what they weigh together, and how many they are."""

    delivered: tuple[tuple[int, int], ...] = joined(each)
    """Among those who delivered, of each stratum."""

    planned: tuple[tuple[int, int], ...] = joined(each)
    """As it was planned."""

    @classmethod
    def none(cls, plan: SumPlan) -> "Above":
        """Of nobody."""
        return cls(delivered=((0, 0),) * len(plan.weights), planned=((0, 0),) * len(plan.weights))

    @classmethod
    def of(
        cls, losses: FloatArray, table: FloatArray, codes: IndexArray, plan: SumPlan, totals: Sequence[int]
    ) -> "Above":
        """Of some people, where the weights of those of each stratum who delivered add up to ``totals``."""
        assert plan.relation is not None
        weights = np.floor(np.ldexp(losses, plan.exponent)).astype(np.int64)
        present = np.asarray(~np.isnan(table).any(axis=1))
        rows = rows_by_code(codes, len(plan.weights))
        terms = list(zip(rows, plan.relation.counts, totals, plan.planned_totals, strict=True))
        return cls(
            delivered=tuple(_heavy(weights[some][present[some]], total // count) for some, count, total, _ in terms),
            planned=tuple(_heavy(weights[some], int(planned // count)) for some, count, _, planned in terms),
        )


def exact_total(integers: IntArray) -> int:
    """The sum of 64-bit integers, whatever its size: halves of 32 bits add up without overflow below 2**31 rows."""
    return (int((integers >> 32).sum()) << 32) + int((integers & 0xFFFFFFFF).sum())


def part_of(weights: IntArray, parts: int) -> IntArray:
    """``floor(W·parts/2**30)`` exactly, in two halves that fit in 64 bits."""
    if parts == PARTS:
        return weights
    low = weights & (PARTS - 1)
    return np.asarray((weights >> _HALF) * parts + ((low * parts) >> _HALF))


def _cells(weights: IntArray, rows: FloatArray, group: NoiseGroup, questions: Sequence[Question]) -> tuple[int, ...]:
    """The weighted sums of a group's cells."""
    if group.choice:
        codes = rows[:, group.rows[0]]
        return tuple(exact_total(weights[codes == answer]) for answer in range(group.cells))
    return tuple(exact_sum(weights, to_grid(rows[:, row], bounds_of(questions[row]))) for row in group.rows)


def clamped_in(rows: FloatArray, questions: Sequence[Question]) -> int:
    """How many numbers lie outside their range."""
    found = 0
    for place, question in enumerate(questions):
        if isinstance(question, Number):
            low, high = question.bounds
            found += int(np.count_nonzero((rows[:, place] < low) | (rows[:, place] > high)))
    return found


def _heavy(weights: IntArray, share: int) -> tuple[int, int]:
    """What those above an equal share, rounded down, weigh together, and how many they are."""
    above = weights[weights > share]
    return exact_total(above), above.size
