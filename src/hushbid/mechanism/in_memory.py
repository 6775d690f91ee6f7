"""Very many people in memory, by the passes that an engine makes over a table: they are one batch.

The first pass says below which virtual cost in each stratum everybody is who can matter. If these are few, they are a
market by themselves; if they are many, they are bought from by sums and curves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray, IntArray
from hushbid.mechanism.many import MANY, WINDOW, Priced, SummedPurchase, purchase_of, rows_by_stratum
from hushbid.mechanism.population import Population
from hushbid.mechanism.summed import Counted, Job, Located, Part, finite, locate, solve

_AT_LEAST = 64
"""So many of the cheapest of each stratum belong to the few."""


@dataclass(frozen=True, slots=True)
class _Passes:
    """Passes over the costs of each stratum."""

    costs: Sequence[FloatArray]
    window: int = WINDOW

    def over(self, what: str, jobs: Sequence[Job[Part]]) -> list[Part]:
        """Do one job in each stratum."""
        return [job.of(costs) for job, costs in zip(jobs, self.costs, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ManyPeople:
    """People in memory after the first pass."""

    population: Population
    bids: FloatArray
    costs: FloatArray
    groups: IntArray | None
    """Everybody's group, where there are several."""

    parts: Sequence[FloatArray]
    """The finite virtual costs of each stratum."""

    counted: Sequence[Counted]
    located: Sequence[Located]

    @classmethod
    def of(cls, population: Population, bids: FloatArray, costs: FloatArray) -> "ManyPeople | None":
        """Count everybody; None for what sums are no use for: few people, another setting or goal."""
        known = population.hard_budget is None and population.setting.name == "central"
        smallest, largest = float(np.min(population.variance)), float(np.max(population.variance))
        estimate = population.outside_option == "estimate" and population.cares
        if population.people <= MANY or not known:
            return None
        if estimate and (np.ndim(population.user_weight) > 0 or smallest < largest):
            return None
        groups = population.group_codes if len(population.groups) > 1 else None
        if costs.min() <= 0.0:
            costs = costs + 0.0  # no negative zero: bit patterns order the costs
        rows: list[slice | IndexArray] = [slice(None)]
        if population.strata is not None:
            rows = list(rows_by_stratum(population.strata.codes, population.strata.count))
        parts = [finite(costs[one]) for one in rows]
        if not all(part.size for part in parts):
            return None
        counted = [Counted.of(bids[one], costs[one], None if groups is None else groups[one]) for one in rows]
        return cls(
            population=population,
            bids=bids,
            costs=costs,
            groups=groups,
            parts=parts,
            counted=counted,
            located=locate(population, counted, variance=(smallest, largest)),
        )

    def few(self) -> tuple[Population, IndexArray] | None:
        """Return those who can matter as a market, in which the buyer carries the others' weight; None if not few.

        Not where caps make room for the dearest, or where people outside have the estimate made without them.
        """
        population = self.population
        if population.has_caps or (population.outside_option == "estimate" and population.cares):
            return None
        cuts = np.array(
            [
                max(cut, one.histogram.cut_after(min(_AT_LEAST, one.histogram.people)))
                for cut, one in zip(self.located[0].cuts, self.counted, strict=True)
            ]
        )
        below = sum(one.histogram.below(cut) for one, cut in zip(self.counted, cuts.tolist(), strict=True))
        if not cuts.max() < math.inf or below > max(population.people // 2, MANY):
            return None
        strata = population.strata
        rows = np.flatnonzero(self.costs <= (cuts[0] if strata is None else cuts[strata.codes]))
        weights = np.broadcast_to(population.user_weight, population.people)
        others = population.total_weight - float(weights[rows].sum())
        few = replace(population.take(rows), goal=population.goal_at(others))
        return few, rows

    def buy(self) -> tuple[SummedPurchase, Priced] | None:
        """Buy by sums and curves; None if few are bought from, a cap may bind, or sums cannot tell the purchase."""
        population = self.population
        if isinstance(population.own_error, np.ndarray) or min(one.found.below for one in self.located) <= MANY:
            return None
        solved = solve(self.located, self.counted, _Passes(self.parts))
        least_cap = float(np.min(population.cap))
        if solved is None or (least_cap < math.inf and not solved[0].bracket.most_lost < least_cap):
            return None
        found = purchase_of(population, self.counted, [group.prior for group in population.groups], solved)
        return found, found.priced(self.bids, self.costs, self.groups, population.parts.codes)
