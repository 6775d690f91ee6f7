"""The numbers of a record in the form the checks need them: everybody's, on a data range of width 1."""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.arrays import BoolArray, FloatArray, IndexArray
from hushbid.mechanism import Market, Outcome, Population
from hushbid.mechanism.setting import CENTRAL
from hushbid.priors import Prior
from hushbid.record import Record
from hushbid.verification.central_by_exclusion import CentralRule
from hushbid.verification.local_by_count import LocalRule
from hushbid.verification.quadrature import Rule


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """A record, taken apart."""

    record: Record
    outcome: Outcome
    market: Market
    population: Population
    """The market for those who reported, on a range of width 1."""

    costs: FloatArray
    losses: FloatArray
    weights: FloatArray
    variance: FloatArray
    """Everybody's variance, for a range of width 1."""

    user_weight: FloatArray
    error_weight: float
    """``A``, for a range of width 1."""

    cap: float
    order: IndexArray
    """Everybody's place in the order in which equals are bought from."""

    @classmethod
    def of(cls, record: Record) -> "Facts":
        """Everything that the checks use."""
        outcome = record.outcome
        population, n = outcome.population, outcome.reports.size
        return cls(
            record,
            outcome,
            outcome.market,
            population,
            outcome.virtual_costs,
            outcome.privacy_loss,
            outcome.weights,
            np.array(np.broadcast_to(np.asarray(population.variance, dtype=float), (n,))),
            np.array(population.user_weights()),
            population.error_weight,
            population.cap,
            np.arange(n) if outcome.tie_order is None else outcome.tie_order,
        )

    @property
    def people(self) -> int:
        """How many people there are."""
        return int(self.costs.size)

    @property
    def central(self) -> bool:
        """Whether noise is added once, by the platform."""
        return self.population.setting is CENTRAL

    @property
    def bought(self) -> BoolArray:
        """Who is bought from."""
        return self.losses > 0.0

    @property
    def groups(self) -> list[tuple[Prior, IndexArray]]:
        """Priors, and whose each is."""
        return [(group.prior, group.rows) for group in self.population.groups]

    def rule(self, error_weight: float | None = None) -> Rule:
        """The optimum as a function of one person's cost, evaluated independently of the solver."""
        weight = self.error_weight if error_weight is None else error_weight
        if self.central or not self.variance[0] > 0.0:  # without variance the settings are the same problem
            return CentralRule(self.costs, self.variance, weight, self.order)
        return LocalRule(self.costs, float(self.variance[0]), weight, self.order)


def best_weights(facts: Facts, losses: FloatArray) -> tuple[FloatArray, float]:
    """The best weights for given losses, and the error they have (range of width 1).

    Central: what is used of a loss is ``v_i = min(ε_i, κ/V_i)`` with ``κ Σv = 2 + Σ V v²``, found by bisection.
    """
    variance = facts.variance
    endless = losses == math.inf
    with np.errstate(all="ignore"):
        if not facts.central:
            precision = np.where(losses > 0.0, 1.0 / (variance + 2.0 / losses**2), 0.0)
        elif endless.any():
            # no noise: only those who lose everything are used
            precision = np.where(endless, 1.0 / variance, 0.0)
        else:
            used = _used(losses, variance)
            weights = used / used.sum()
            return weights, float(2.0 / used.sum() ** 2 + (variance * weights**2).sum())
        if (precision == math.inf).any():
            # data without any error decide alone
            certain = precision == math.inf
            return certain / certain.sum(), 0.0
        return precision / precision.sum(), float(1.0 / precision.sum())


def _used(losses: FloatArray, variance: FloatArray) -> FloatArray:
    def at(cap: float) -> FloatArray:
        return np.minimum(losses, np.where(variance > 0.0, cap / variance, math.inf))

    def excess(cap: float) -> float:
        used = at(cap)
        return float(cap * used.sum() - 2.0 - (variance * used**2).sum())

    # nobody above the cap: everything is used
    low, high = 0.0, float((variance * losses).max())
    if excess(high) <= 0.0:
        return losses
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if excess(middle) <= 0.0 else (low, middle)
    return at(high)
