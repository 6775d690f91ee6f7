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
from typing import TYPE_CHECKING

import numpy as np

from hushbid.allocation import replies
from hushbid.arrays import FloatArray, IndexArray
from hushbid.payments import rents
from hushbid.priors import Grouped, Prior

if TYPE_CHECKING:
    from hushbid.mechanism.market import Market

_LOCAL = 2.22
"""Local losses add up to at most this times ``V^{1/4}·√(A/ψ)``, unless there is one seller only."""

_LEVELS = np.concatenate([np.linspace(0.0, 0.9, 19), 1.0 - 10.0 ** -np.arange(2.0, 13.0), [1.0]])


def worst_payment(market: "Market", n: int, *, above_support: bool = False) -> float:
    """No reports of ``n`` people, in the support, make the total payment larger; infinite if there is no such number.

    With ``above_support`` the bound also covers people who report above the support and are not bought from.
    """
    groups = _groups(market.prior, n)
    highest = _largest_objective(market, _costs(groups, n, 1.0), one_is_enough=above_support)
    # three bounds, each best somewhere
    for_data = min(
        _factor(market) * highest,
        _with_a_tail(market, groups, n),
        _with_all_losses(market, groups, n),
    )
    weights = np.broadcast_to(np.asarray(market.user_weight, dtype=float), (n,))
    return for_data + (_for_the_error(market, n, weights, highest) if weights.any() else 0.0)


def sole_rent_diverges(prior: Prior) -> bool:
    """Whether the only seller's rent is infinite: she is bought from at every report, with a loss like ``ψ^{-1/3}``.

    The integral converges only if ψ grows faster than the cube.
    """
    if prior.support[1] < math.inf:
        return False
    # the power that ψ grows with, far out
    far = float(prior.quantile(0.5)) * 2.0 ** np.arange(10.0, 30.0)
    cost = np.asarray(prior.virtual_cost(far))
    growth = np.diff(np.log2(cost[np.isfinite(cost)]))
    return bool(growth.size and growth[-1] <= 3.0 + 1e-6)


def _with_a_tail(market: "Market", groups: list[tuple[Prior, IndexArray]], n: int) -> float:
    """The second bound."""
    sole = [rows.size * _sole_payments(market, prior, n, np.asarray(prior.quantile(_LEVELS))) for prior, rows in groups]
    beyond = np.sum(sole, axis=0)
    # up to each level by the objective, beyond it everybody as the only seller
    bounds = [
        _factor(market) * _largest_objective(market, _costs(groups, n, level), one_is_enough=True) + rest
        for level, rest in zip(_LEVELS.tolist(), beyond.tolist(), strict=True)
        if rest < math.inf
    ]
    return min(bounds, default=math.inf)


def _with_all_losses(market: "Market", groups: list[tuple[Prior, IndexArray]], n: int) -> float:
    """The third bound; each group may have all of the losses."""
    weight = market.error_weight(n) * market.width**2
    cheapest = min(float(prior.virtual_cost(prior.support[0])) for prior, _ in groups)
    total = math.inf
    if cheapest > 0.0:
        # one seller's loss at the smallest cost; locally several may lose more together
        total = (4.0 * weight / cheapest) ** (1.0 / 3.0)
        if market.setting == "local":
            spread = float(np.max(market.stated_variance)) / market.width**2
            total = max(total, _LOCAL * spread**0.25 * math.sqrt(weight / cheapest))
    paid = 0.0
    for prior, rows in groups:
        # even shares: as payments are concave in the loss, nothing pays more
        each = min(total / rows.size, math.inf if market.max_privacy_loss is None else market.max_privacy_loss)
        report = float(prior.virtual_cost_inverse(4.0 * weight / each**3 if each < math.inf else 0.0))
        share = float(_sole_payments(market, prior, n, np.array([report]))[0])
        if report >= prior.support[1] or market.max_privacy_loss is not None:
            share = min(share, each * prior.support[1])
        paid += rows.size * share
    return paid


def _factor(market: "Market") -> float:
    """What is paid for data, at most, over the largest objective; less if ψ rises at a constant slope."""
    slope = market.prior.slope or 1.0
    if market.setting == "central":
        return max(2.0 / slope, 2.0 / 3.0 + 2.0 / (3.0 * slope))
    return 2.0 / 3.0 + 1.0 / (3.0 * slope)


def _for_the_error(market: "Market", n: int, weights: FloatArray, highest: float) -> float:
    """The largest ``Σ β_i (MSE − outside_i)``: an optimal MSE is at most ``H/A``."""
    variance = np.broadcast_to(np.asarray(market.stated_variance, dtype=float), (n,))
    error = highest / market.error_weight(n)
    if market.max_privacy_loss is not None:  # a clipped estimate is as good as one person's at the cap, or optimal
        error = max(error, float(variance.max()) + 2.0 * (market.width / market.max_privacy_loss) ** 2)
    # outside errors may be as small as zero, but one's own datum is known
    outside = float(weights @ variance) if market.outside_option == "own_data" else 0.0
    return float(weights.sum()) * error - outside


def _largest_objective(market: "Market", costs: FloatArray, *, one_is_enough: bool) -> float:
    """The objective at these virtual costs; or, if any number of people may be missing, the worst person's alone."""
    if np.isinf(costs).any():
        return math.inf
    if not one_is_enough:
        return market.allocation(costs).objective
    variance = np.broadcast_to(np.asarray(market.stated_variance, dtype=float), costs.shape)
    # each kind of person alone, once
    _, kinds = np.unique(np.stack([costs, variance]), axis=1, return_index=True)
    alone = np.full((kinds.size, costs.size), math.inf)
    alone[np.arange(kinds.size), kinds] = costs[kinds]
    return max(market.allocation(one).objective for one in alone)


def _sole_payments(market: "Market", prior: Prior, n: int, reports: FloatArray) -> FloatArray:
    """At most what the only seller is paid at each of these reports; nothing where her virtual cost is infinite."""
    if sole_rent_diverges(prior):
        return np.full(reports.size, math.inf)
    costs = np.asarray(prior.virtual_cost(reports))
    paid, sold = np.zeros(reports.size), np.flatnonzero(costs < math.inf)
    rule = replies(np.ones(1), setting=market.setting, error_weight=market.error_weight(n) * market.width**2)
    cap = math.inf if market.max_privacy_loss is None else market.max_privacy_loss
    own, rows = reports[sold], np.zeros(sold.size, dtype=np.intp)
    loss = np.minimum(rule.at(rows, costs[sold]).loss, cap)
    price = np.where(own > 0.0, own, 0.0) * np.where(own > 0.0, loss, 0.0)
    paid[sold] = price + rents(rule, prior, rows, own, cap=cap, paid_besides=price, tolerance=1e-3).upper
    return paid


def _groups(prior: Prior | Grouped, n: int) -> list[tuple[Prior, IndexArray]]:
    if isinstance(prior, Grouped):
        return [(one, rows) for _, one, rows in prior.groups]
    return [(prior, np.arange(n))]


def _costs(groups: list[tuple[Prior, IndexArray]], n: int, level: float) -> FloatArray:
    costs = np.empty(n)
    for prior, rows in groups:
        costs[rows] = prior.virtual_cost(prior.quantile(level))
    return costs
