"""What one campaign comes to, without computing payments: enough wherever only means are asked for.

However a rule is priced as in :mod:`hushbid.payments`, expected payments equal expected virtual payments,

    E Σ t_i = E[Σ ψ_i ε_i + Σ β_i (MSE − outside_i)]        (bids drawn from the prior; [F] Prop. 2),

and the right-hand side varies less.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushbid.allocation import HardBudget
from hushbid.common.arrays import FloatArray
from hushbid.mechanism.decision import decide
from hushbid.mechanism.impossible import refuse_impossible
from hushbid.mechanism.population import Population

FEWEST = 10
"""At least so many campaigns are drawn."""

_MOST_DRAWS = 2 * 10**7


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualFigures:
    """What one campaign comes to, virtual payments in place of payments."""

    mse: float
    """The error if price and datum are unrelated, in squared data units."""

    exposure: float
    """How much larger it is at worst for each unit of squared relation: ``V̄·(N·Σw² − 1)``, with strata ``V̄`` times
    ``N·Σω² − N·Σ ℓ_g²/N_g``."""

    worst_mse: float
    """The error at worst, with the relation that is allowed for."""

    payment: float
    """What is paid in all."""

    active: int
    """How many people are bought from."""

    largest_loss: float
    """The largest privacy loss."""


def virtual_figures(population: Population, bids: FloatArray) -> VirtualFigures:
    """What a campaign with these bids comes to; under a hard budget, whose menu needs it, with real payments."""
    costs = population.virtual_costs(bids)
    if isinstance(population.goal, HardBudget):
        decided = decide(population, bids, costs)
        loss, weights, paid = decided.privacy_loss, decided.weights, decided.total_payment
        mse, worst = decided.mse, decided.worst_mse
    else:
        refuse_impossible(population, costs)
        bought = population.allocation(costs)
        loss, weights = bought.privacy_loss, bought.weights
        mse, worst = population.errors_of(bought)
        used = (loss > 0.0) & (costs > 0.0)  # an infinite loss that costs nothing is free
        paid = float(costs[used].dot(loss[used]))
        if population.cares:
            paid += float(population.user_weights().dot(mse - population.outside_errors(costs)))
    spread = float(np.mean(population.own_error))
    return VirtualFigures(
        mse=mse,
        exposure=spread * max(population.roster * float(np.square(weights).sum()) - population.evenness, 0.0),
        worst_mse=worst,
        payment=paid,
        active=int(np.count_nonzero(loss)),
        largest_loss=float(loss.max()),
    )


def campaigns(n: int, repetitions: int) -> int:
    """Return how many campaigns are enough where nobody asked for a number: of large ones, which vary less, fewer."""
    return max(FEWEST, min(repetitions, _MOST_DRAWS // n))


def drawn(population: Population, seed: int, times: int) -> Iterator[VirtualFigures]:
    """Campaigns drawn anew from a seed, so that all that is compared has the same people."""
    rng = np.random.default_rng(seed)
    for _ in range(times):
        yield virtual_figures(population, population.sample(rng))
