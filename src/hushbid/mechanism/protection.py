"""What each degree of protection against related prices and data costs, and what it saves.

With a true relation ``γ`` the mean squared error is at worst what it is without one, plus ``γ²·V̄·(N Σ w² − 1)``
(docs/concepts/limits.md). So one purchase per degree of protection tells the worst error under every relation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.errors import MarketError
from hushbid.mechanism.population import Population
from hushbid.mechanism.simulation import CampaignFigures, virtual_figures

RELATIONS = (0.0, 0.02, 0.05, 0.1, 0.3)
"""Degrees of protection worth comparing, and how close a relation may really be: 0.1 is weak, 0.3 moderate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What a degree of protection against related prices and data costs, and what it is good for."""

    max_correlation: float
    """How closely price and datum may be related in the purchase."""

    bought_from: float
    """How many people are bought from, on average."""

    payment: float
    """The expected total payment; infinite where the goal is out of reach with this protection."""

    largest_loss: float
    """The largest privacy loss, on average."""

    standard_errors: tuple[float, ...]
    """The worst standard error if the true relation is each of those asked for."""


def protected(
    population: Population,
    campaigns: Callable[[Population], Sequence[CampaignFigures]],
    degree: float,
    relations: Sequence[float] = RELATIONS,
) -> Protection:
    """The same goal with another degree of protection, on average over what ``campaigns`` come to."""
    bias = degree**2 * float(np.mean(population.own_error)) / population.unit
    try:
        found = campaigns(replace(population, bias=bias))
    except MarketError:  # out of reach
        never = tuple(math.inf for _ in relations)
        return Protection(
            max_correlation=degree, bought_from=0.0, payment=math.inf, largest_loss=0.0, standard_errors=never
        )
    return Protection(
        max_correlation=degree,
        bought_from=float(np.mean([one.active for one in found])),
        payment=float(np.mean([one.payment for one in found])),
        largest_loss=float(np.mean([one.largest_loss for one in found])),
        standard_errors=tuple(
            math.sqrt(np.mean([one.mse + true**2 * one.exposure for one in found])) for true in relations
        ),
    )


def protections(population: Population, bids: FloatArray, degrees: Sequence[float]) -> tuple[Protection, ...]:
    """These very bids under each degree of protection at which the goal is within reach."""
    if population.alike:  # then their order is nothing, and those in order need not be sorted for each degree
        bids = np.sort(bids)
    found = (protected(population, lambda one: [virtual_figures(one, bids)], degree) for degree in degrees)
    return tuple(one for one in found if one.payment < math.inf)
