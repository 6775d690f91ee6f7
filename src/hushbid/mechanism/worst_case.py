"""The most a campaign can cost: an upper bound on the total payment over all reports.

What is paid for data (prices and rents) is bounded in three ways, proved in docs/explanation/incentives.md:

1. With ``H`` the largest objective there is, that of everybody at the top of her support, at most ``2H`` (central) or
   ``H`` (local); with a uniform prior ``H`` or ``5H/6``.
2. The same for what is paid up to some report, ``H`` being the largest objective if somebody reports at most that, and
   beyond it no more to anybody than the only seller would be paid there. The best of several such reports is taken.
3. Nobody's payment exceeds that of the only seller at the same loss. It is a concave function of the loss, and all
   losses together are bounded through the smallest virtual cost. So it is largest if all share equally in that bound.

The smallest of the three is returned, plus what people may be paid for the error of the estimate.
"""

import math

import numpy as np

from hushbid.allocation import replies
from hushbid.arrays import FloatArray
from hushbid.mechanism.population import Group, Population, sole_rent_diverges
from hushbid.payments import rents

_LEVELS = np.concatenate([np.linspace(0.0, 0.9, 19), 1.0 - 10.0 ** -np.arange(2.0, 13.0), [1.0]])


def worst_payment(population: Population, *, above_support: bool = False) -> float:
    """No reports of these people, in the support, make the total payment larger; infinite if there is no such number.

    With ``above_support`` the bound also covers people who report above the support and are not bought from.
    """
    highest = _largest_objective(population, _costs(population, 1.0), one_is_enough=above_support)
    # three bounds, each best somewhere
    for_data = min(
        _factor(population) * highest,
        _with_a_tail(population),
        _with_all_losses(population),
    )
    return for_data + (_for_the_error(population, highest) if population.cares else 0.0)


def _with_a_tail(population: Population) -> float:
    """The second bound."""
    sole = [
        group.rows.size * _sole_payments(population, group, np.asarray(group.prior.quantile(_LEVELS)))
        for group in population.groups
    ]
    beyond = np.sum(sole, axis=0)
    # up to each level by the objective, beyond it everybody as the only seller
    bounds = [
        _factor(population) * _largest_objective(population, _costs(population, level), one_is_enough=True) + rest
        for level, rest in zip(_LEVELS.tolist(), beyond.tolist(), strict=True)
        if rest < math.inf
    ]
    return min(bounds, default=math.inf)


def _with_all_losses(population: Population) -> float:
    """The third bound; each group may have all of the losses."""
    weight = population.error_weight
    cheapest = min(float(group.prior.virtual_cost(group.prior.support[0])) for group in population.groups)
    total = population.setting.most_loss(weight, cheapest, population.variance) if cheapest > 0.0 else math.inf
    paid = 0.0
    for group in population.groups:
        # even shares: as payments are concave in the loss, nothing pays more
        each = min(total / group.rows.size, population.cap)
        top = group.prior.support[1]
        report = float(group.prior.virtual_cost_inverse(4.0 * weight / each**3 if each < math.inf else 0.0))
        share = float(_sole_payments(population, group, np.array([report]))[0])
        if report >= top or population.cap < math.inf:
            share = min(share, each * top)
        paid += group.rows.size * share
    return paid


def _factor(population: Population) -> float:
    """What is paid for data, at most, over the largest objective; less if ψ rises at a constant slope."""
    return population.setting.payment_factor(population.slope or 1.0)


def _for_the_error(population: Population, highest: float) -> float:
    """The largest ``Σ β_i (MSE − outside_i)``: an optimal MSE is at most ``H/A``."""
    weights, variance = population.user_weights(), population.own_errors()
    error = highest / population.total_weight
    if population.cap < math.inf:  # a clipped estimate is as good as one person's at the cap, or optimal
        error = max(error, float(variance.max()) + 2.0 * (population.width / population.cap) ** 2)
    # outside errors may be as small as zero, but one's own datum is known
    outside = float(weights @ variance) if population.outside_option == "own_data" else 0.0
    return float(weights.sum()) * error - outside


def _largest_objective(population: Population, costs: FloatArray, *, one_is_enough: bool) -> float:
    """The objective at these virtual costs; or, if any number of people may be missing, the worst person's alone."""
    if np.isinf(costs).any():
        return math.inf
    if not one_is_enough:
        return population.allocation(costs).objective
    # each kind of person alone, once
    _, kinds = np.unique(np.stack([costs, population.own_errors()]), axis=1, return_index=True)
    alone = np.full((kinds.size, costs.size), math.inf)
    alone[np.arange(kinds.size), kinds] = costs[kinds]
    return max(population.allocation(one).objective for one in alone)


def _sole_payments(population: Population, group: Group, reports: FloatArray) -> FloatArray:
    """At most what the only seller is paid at each of these reports; nothing where her virtual cost is infinite."""
    prior, cap = group.prior, population.cap
    if sole_rent_diverges(prior):
        return np.full(reports.size, math.inf)
    costs = np.asarray(prior.virtual_cost(reports))
    paid, sold = np.zeros(reports.size), np.flatnonzero(costs < math.inf)
    # her variance does not matter while she is alone
    rule = replies(np.ones(1), setting=population.setting.name, error_weight=population.error_weight)
    own, rows = reports[sold], np.zeros(sold.size, dtype=np.intp)
    loss = np.minimum(rule.at(rows, costs[sold]).loss, cap)
    price = np.where(own > 0.0, own, 0.0) * np.where(own > 0.0, loss, 0.0)
    paid[sold] = price + rents(rule, prior, rows, own, cap=cap, paid_besides=price, tolerance=1e-3).upper
    return paid


def _costs(population: Population, level: float) -> FloatArray:
    return population.per_person(lambda prior: float(prior.virtual_cost(prior.quantile(level))))
