"""A capped problem with strata: each a capped problem of its own, in common units; and people who ask for nothing."""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.capped.crowds import Variants
from hushbid.allocation.capped.parts import Parts
from hushbid.allocation.capped.price import PRICE
from hushbid.allocation.capped.problem import Scaled
from hushbid.allocation.central_problem import CentralProblem, limited
from hushbid.allocation.problem import LEAST, MOST, Problem
from hushbid.arrays import FloatArray, IndexArray
from hushbid.estimation import Strata, best_contrast


@dataclass(frozen=True, slots=True, eq=False)
class Divided:
    """A problem with caps and strata in units where the largest precision, and ``A·Λ²``, are 1."""

    problem: Problem
    strata: Strata
    caps: FloatArray
    """Everybody's, in the caller's units."""

    rows: list[IndexArray]
    """Who is in each stratum."""

    each: list[Scaled]
    """Each stratum by itself."""

    sizes: list[float]
    """``λ_g``, which sum to one."""

    unit: float
    """The smallest variance; losses are in units of one over its root."""

    scale: float
    """What costs are divided by."""

    factor: float
    """What errors are multiplied by."""

    limits: tuple[float, float]
    """Positive costs outside count as the nearer end: a monotone change, so truthful as the rule itself is."""

    @classmethod
    def of(cls, problem: Problem, caps: float | FloatArray, strata: Strata) -> "Divided":
        """These people in these strata; refused where a stratum has nobody to buy from."""
        whole = CentralProblem.of(problem, strata).form
        limits = LEAST * whole.scale, MOST * whole.scale
        costs = limited(problem.costs, limits)
        order = np.argsort(strata.codes, kind="stable")
        rows = np.split(order, np.cumsum(np.bincount(strata.codes, minlength=strata.count))[:-1])
        variance = problem.variance
        each = [
            Scaled(
                costs[one],
                variance if isinstance(variance, float) else variance[one],
                caps if isinstance(caps, float) else caps[one],
                whole.unit,
                whole.scale,
                PRICE,
                float(costs[one].min()) / whole.scale,
            )
            for one in rows
        ]
        return cls(
            problem,
            strata,
            np.broadcast_to(caps, costs.shape),
            rows,
            each,
            whole.sizes.tolist(),
            whole.unit,
            whole.scale,
            whole.factor,
            limits,
        )

    @property
    def cheapest(self) -> float:
        """What a unit of ``S`` costs at least."""
        return sum(size * one.base for size, one in zip(self.sizes, self.each, strict=True))

    @property
    def paid(self) -> float:
        """The least of ``λ_g·ψ`` over those who ask for something."""
        return min(
            size * float(one.costs.min(initial=math.inf, where=one.costs > 0.0)) / self.scale
            for size, one in zip(self.sizes, self.each, strict=True)
        )

    def sorted(self) -> tuple[list[IndexArray], Parts]:
        """Everybody who can be bought from, the cheapest of each stratum first, and their sums."""
        every, crowds = [], []
        for one, rows in zip(self.each, self.rows, strict=True):
            local = one.buyable
            local = local[np.argsort(one.costs[local], kind="stable")]
            every.append(rows[local])
            crowds.append(Variants(one.crowd(local)))
        return every, Parts(self.sizes, crowds)

    def without_pay(self, free: IndexArray) -> tuple[float, FloatArray]:
        """The least error that these people reach under their caps, in these units, and their losses in the caller's.

        It is infinite if they leave a stratum without anybody.
        """
        some = self.strata.of(free)
        if not np.bincount(some.codes, minlength=some.count).min() > 0:
            return math.inf, np.zeros(free.size)
        variance = self.problem.variance
        spread = variance if isinstance(variance, float) else variance[free]
        found = best_contrast(self.caps[free], strata=some, variance=spread)
        return found.mse / self.factor, found.delivered
