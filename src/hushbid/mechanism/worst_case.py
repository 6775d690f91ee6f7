"""The most a campaign can cost: an upper bound on the total payment over all bids.

What is paid for data (prices and rents) is bounded in three ways, proved in docs/concepts/proofs.md:

1. With ``H`` the largest objective there is, that of everybody at the top of their support, at most ``2H`` (central) or
   ``H`` (local); with a uniform prior ``H`` or ``5H/6``.
2. The same for what is paid up to some bid, ``H`` being the largest objective if somebody bids at most that, and
   beyond it no more to anybody than the only seller would be paid there. The best of several such bids is taken.
3. Nobody's payment exceeds that of the only seller at the same loss. It is a concave function of the loss, and all
   losses together are bounded through the smallest virtual cost. So it is largest if all share equally in that bound.

The smallest of the three is returned, plus what people may be paid for the error of the estimate. A budget, which is
at least all virtual payments together, has the third bound; a hard budget is its own bound. Under an accuracy nobody is
paid more than the top of their support for each unit of their loss, nor more than what the whole purchase costs at
most, with everybody at the top.

Under caps all of them hold, ``H`` being that of the capped purchase, with one exception: locally all losses together
have another bound, ``⅔H`` over the smallest virtual cost. And nobody is paid more than the top of their support times
their cap, whatever the goal.

With ``G`` strata the first bound is ``G`` times as large, the second is not used, and in the third a stratum's sellers
are compared with its only seller. Locally, for a price, strata are markets of their own, and their bounds add up.

Limits that people state lower losses, but may raise ``H`` without end. Then the third bound is left, which needs only
that losses cannot be improved by scaling all of them down, a budget's bounds, and under an accuracy the one of
`_within_any_limits`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from hushbid.allocation import Accuracy, Budget, HardBudget, Price, Replies, ReplyRule, replies
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.estimation import Strata
from hushbid.mechanism.impossible import loss_power, rent_diverges
from hushbid.mechanism.people import Group
from hushbid.mechanism.population import Population
from hushbid.payments import rents

_LEVELS = np.concatenate([np.linspace(0.0, 0.9, 19), 1.0 - 10.0 ** -np.arange(2.0, 13.0), [1.0]])


def worst_payment(population: Population, *, above_support: bool = False, limits: bool = False) -> float:
    """No bids of these people, in the support, make the total payment larger; infinite if there is no such number.

    With ``above_support`` the bound also covers people who bid above the support and are not bought from, and with
    ``limits`` any limits that people state besides.
    """
    if isinstance(population.goal, HardBudget):
        return population.goal.amount
    if isinstance(population.goal, Budget):
        return min(_with_all_losses(population), _dearest_unit(population) * population.goal.available)
    if isinstance(population.goal, Accuracy):
        if limits:
            return min(_within_any_limits(population), _with_all_caps(population))
        most = min(_dearest_unit(population), population.people)
        return min(most * _largest_expense(population, anybody_missing=above_support), _with_all_caps(population))
    if limits:
        return _with_all_losses(population)
    if population.strata is not None and population.setting.sends_messages:
        return sum(worst_payment(one, above_support=above_support) for one in population.separate())
    highest = _largest_objective(population, _costs(population, 1.0), one_is_enough=above_support)
    # three bounds, each best somewhere
    for_data = min(
        _factor(population) * highest,
        _with_a_tail(population),
        _with_all_losses(population, highest),
    )
    return for_data + (_for_the_error(population, highest) if population.cares else 0.0)


def _with_a_tail(population: Population) -> float:
    """The second bound."""
    if population.strata is not None:  # somebody's low bid says nothing about the other strata
        return math.inf
    sole = [
        group.size * _sole_payments(population, group, np.asarray(group.prior.quantile(_LEVELS)))
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


def _with_all_losses(population: Population, highest: float = math.inf) -> float:
    """The third bound; each group may have all of the losses, or all of its stratum's."""
    total, caps, paid = _all_losses(population, highest), population.caps(), 0.0
    for square, rows, group in _sellers(population):
        # even shares: as payments are concave in the loss, nothing pays more
        each = min(_part_of(population, square) * total, float(caps[rows].sum())) / rows.size
        if each == math.inf and isinstance(population.goal, Budget):
            return math.inf  # at a virtual cost of 0 all of the budget buys a loss without limit
        top = group.prior.support[1]
        bid = float(group.prior.virtual_cost_inverse(_sole_cost(population, each, square)))
        share = float(_sole_payments(population, group, np.array([bid]), square)[0])
        if bid >= top or population.has_caps:
            share = min(share, each * top)
        paid += rows.size * share
    return paid


def _sellers(population: Population) -> Iterator[tuple[float, IndexArray, Group]]:
    """People who share a prior and a stratum, with ``ℓ_g²``: what the price of the error is multiplied by for them.

    A budget is the same for all strata, which then make no difference.
    """
    kinds = [(1.0, np.arange(population.people))] if isinstance(population.goal, Budget) else population.kinds()
    for (square, members), group in product(kinds, population.groups):
        rows = np.intersect1d(group.rows, members, assume_unique=True)
        if rows.size:
            yield square, rows, group


def _part_of(population: Population, square: float) -> float:
    """Which part of all losses is a stratum's at most: ``|ℓ_g|·Λ^{−1/3}``, where ``Λ = Σ|ℓ_g|``; see `_all_losses`."""
    if isinstance(population.goal, Budget):
        return 1.0
    # η ≤ (4A/(ψ_min Λ))^{1/3}, and a stratum's losses are |ℓ_g| η
    return float(math.sqrt(square) / np.cbrt(np.abs(population.parts.weights).sum()))


def _with_all_caps(population: Population) -> float:
    """Everybody's cap, paid for at the top of their support."""
    return float(population.caps() @ population.per_person(lambda prior: prior.support[1]))


def _within_any_limits(population: Population) -> float:
    """What an accuracy costs at most whatever limits people state, nobody's being above the cap ``e``.

    The error ``(2 + Σ V ε²)/S²`` is the one asked for, ``r²``, and ``Σ V ε² ≤ V·e·S`` with the largest variance: so
    ``r² S² ≤ 2 + V e S``, which bounds ``S``, and each unit costs at most the top of the support.
    """
    cap, target = population.largest_cap, population.aim.number**2
    free = any(float(group.prior.virtual_cost(group.prior.support[0])) == 0.0 for group in population.groups)
    if cap == math.inf or free:  # who is free gives all they may, and the error may be smaller than asked for
        return math.inf
    linear = float(np.max(population.variance)) * cap
    top = max(group.prior.support[1] for group in population.groups)
    return top * (linear + math.sqrt(linear**2 + 8.0 * target)) / (2.0 * target)


def _all_losses(population: Population, highest: float) -> float:
    """What all losses add up to at most, if everybody's virtual cost is the smallest there is."""
    cheapest = min(float(group.prior.virtual_cost(group.prior.support[0])) for group in population.groups)
    if cheapest == 0.0:
        return math.inf
    if isinstance(population.goal, Budget):
        return population.goal.available / cheapest
    alone = population.setting.sole_loss(population.error_weight, cheapest)  # from nobody is more bought
    if population.setting.sends_messages and population.largest_cap < alone:  # where the cap binds, losses may be small
        return 2.0 / 3.0 * highest / cheapest
    return population.setting.most_loss(population.error_weight, cheapest, population.variance)


def _sole_cost(population: Population, loss: float, square: float) -> float:
    """The virtual cost at which the only seller, of a stratum with this ``ℓ_g²``, has at most this loss."""
    if loss == math.inf:
        return 0.0
    if isinstance(population.goal, Budget):
        return population.goal.available / loss
    return population.setting.sole_cost(population.error_weight * square, loss)


def _dearest_unit(population: Population) -> float:
    """Return the most that is paid per unit of virtual payment: the top of a support over its least cost."""
    dearest = 0.0
    for group in population.groups:
        cheapest, top = float(group.prior.virtual_cost(group.prior.support[0])), group.prior.support[1]
        dearest = max(dearest, top / cheapest if cheapest > 0.0 else math.inf)
    return dearest


def _largest_expense(population: Population, *, anybody_missing: bool) -> float:
    """What an accuracy costs at most, virtual payments for payments: with everybody at the top of their support.

    If any number of people may be missing, with as few as can still reach it; infinite where that cannot be told.
    """
    costs = _costs(population, 1.0)
    if np.isinf(costs).any():
        return math.inf
    if not anybody_missing:
        return population.allocation(costs).objective
    spread, caps = np.unique(population.variance), np.unique(population.caps())
    if spread.size > 1 or caps.size > 1 or population.strata is not None:
        return math.inf
    target, variance = population.aim.number**2, float(spread[0])
    fewest = _fewest(target, variance, float(caps[0]))
    if fewest > population.people:
        return 0.0
    return float(costs.max()) * population.setting.loss_of_equals(fewest, variance, target)


def _fewest(target: float, variance: float, cap: float) -> int:
    """How many people it takes to reach this error, each with a loss of at most ``cap``."""
    # the root of target·k² − variance·k = 2/cap², which k must exceed without a cap and reach with one
    root = (variance + math.sqrt(variance**2 + 8.0 * target / cap**2)) / (2.0 * target)
    fewest = math.floor(root) + 1 if cap == math.inf else math.ceil(root * (1.0 - 1e-12))
    return fewest if target * fewest > variance else fewest + 1  # rounding


def _factor(population: Population) -> float:
    """What is paid for data, at most, over the largest objective; less if ψ rises at a constant slope."""
    return population.setting.payment_factor((population.slope or 1.0) / population.parts.count)


def _for_the_error(population: Population, highest: float) -> float:
    """The largest ``Σ β_i (MSE − outside_i)``: an optimal MSE is at most ``H/A``."""
    weights, variance = population.user_weights(), population.own_errors()
    # outside errors may be as small as zero, but one's own datum is known
    outside = float(weights @ variance) if population.outside_option == "own_data" else 0.0
    return float(weights.sum()) * highest / population.total_weight - outside


def _largest_objective(population: Population, costs: FloatArray, *, one_is_enough: bool) -> float:
    """The objective at these virtual costs; or, if any number of people may be missing, the worst person's alone."""
    if np.isinf(costs).any():
        return math.inf
    if not one_is_enough:
        return population.allocation(costs).objective
    if population.strata is not None:
        return _with_one_in_each(population, population.strata, costs)
    # each kind of person alone, once
    _, kinds = np.unique(np.stack([costs, population.own_errors(), population.caps()]), axis=1, return_index=True)
    alone = np.full((kinds.size, costs.size), math.inf)
    alone[np.arange(kinds.size), kinds] = costs[kinds]
    return max(population.allocation(one).objective for one in alone)


def _with_one_in_each(population: Population, strata: Strata, costs: FloatArray) -> float:
    """The most that one seller in each stratum can come to: the dearest, with the largest variance and the least cap.

    With ``M = Σ|ℓ_g|ψ_g`` the best ``2A/η² + η·M`` is at ``η³ = 4A/M``, or at the most that caps allow.
    """
    dearest, largest, cap = np.zeros(strata.count), np.zeros(strata.count), np.full(strata.count, math.inf)
    np.maximum.at(dearest, strata.codes, costs)
    np.maximum.at(largest, strata.codes, np.broadcast_to(population.variance, costs.shape))
    np.minimum.at(cap, strata.codes, population.caps())
    weight, sizes = population.error_weight, np.abs(strata.weights)
    slope = float(sizes @ dearest)
    strength = min(math.inf if slope == 0.0 else (4.0 * weight / slope) ** (1.0 / 3.0), float((cap / sizes).min()))
    noise = 0.0 if strength == math.inf else 2.0 * weight / strength**2 + strength * slope
    return noise + weight * float(np.square(sizes) @ largest)


@dataclass(frozen=True, slots=True)
class _Clipped:
    """A rule whose losses are cut off at a cap; nothing is known of its value function."""

    rule: ReplyRule
    cap: float

    def at(self, rows: IndexArray, costs: FloatArray) -> Replies:
        """What happens at each person's cost."""
        found = self.rule.at(rows, costs)
        return Replies(np.full(rows.size, math.nan), np.minimum(found.loss, self.cap), found.mse)


def _sole_payments(population: Population, group: Group, bids: FloatArray, square: float = 1.0) -> FloatArray:
    """At most what the only seller, of a stratum with this ``ℓ_g²``, is paid at each of these bids; nothing where
    their virtual cost is infinite."""
    prior, cap = group.prior, population.largest_cap
    if rent_diverges(prior, power=loss_power(population)):
        return np.full(bids.size, math.inf)
    costs = np.asarray(prior.virtual_cost(bids))
    paid, sold = np.zeros(bids.size), np.flatnonzero(costs < math.inf)
    # their variance does not matter while they are alone
    aim = population.aim if square == 1.0 else Price(population.error_weight * square)
    rule = replies(np.ones(1), setting=population.setting.name, goal=aim, response=population.setting.response)
    own, rows = bids[sold], np.zeros(sold.size, dtype=np.intp)
    loss = np.minimum(rule.at(rows, costs[sold]).loss, cap)
    price = np.where(own > 0.0, own, 0.0) * np.where(own > 0.0, loss, 0.0)
    priced = rule if cap == math.inf else _Clipped(rule, cap)
    paid[sold] = price + rents(priced, prior, rows, own, paid_besides=price, tolerance=1e-3).upper
    return paid


def _costs(population: Population, level: float) -> FloatArray:
    return population.per_person(lambda prior: float(prior.virtual_cost(prior.quantile(level))))
