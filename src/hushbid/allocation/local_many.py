"""What many local markets of as many people each cost at one price of the error, all of them at once.

A price that is planned from hundreds of drawn markets asks for them a dozen times. The optimum of each is the one that
`hushbid.allocation.local` finds: only the sums over its first people are added up from a table of all costs.
"""

import math

import numpy as np

from hushbid.allocation.goals import Price
from hushbid.allocation.local import Search
from hushbid.allocation.local_problem import Demand, Supply, as_local_cap, normal_form
from hushbid.allocation.problem import as_problem, workable
from hushbid.common.arrays import FloatArray, IndexArray

_AT_ONCE = 1 << 18  # so many costs are worked on at a time: temporaries stay in cache


class CostTable:
    """Many lists of costs in normal form, ascending in each."""

    def __init__(self, costs: FloatArray, supply: Supply) -> None:
        self._costs, self._supply = np.hstack([costs, np.full((costs.shape[0], 1), math.inf)]), supply
        self.size = np.count_nonzero(costs < math.inf, axis=1)  # how many people there are in each list

    def cost(self, which: IndexArray, number: IndexArray) -> FloatArray:
        """What the ``number``-th person of each list costs, counted from 1; ``inf`` past its end."""
        return np.asarray(self._costs[which, np.minimum(number - 1, self._costs.shape[1] - 1)])

    def sums(self, which: IndexArray, count: IndexArray, price: FloatArray) -> FloatArray:
        """The three sums over the first ``count`` of each list, at that list's price."""
        columns = int(count.max(initial=0))
        first = np.arange(columns) < count[:, None]
        ratios = np.where(first, self._costs[which, :columns], price[:, None]) / price[:, None]
        return np.asarray(np.where(first, self._supply.terms(ratios), 0.0).sum(axis=2))


def local_expenses(
    costs: FloatArray, *, price: float, variance: float, max_loss: float, response: bool
) -> tuple[FloatArray, FloatArray]:
    """Return Σψε of the best purchase in each market, and from how many it buys: one row of costs each."""
    rows = max(_AT_ONCE // costs.shape[1], 1)
    parts = [
        _some(costs[start : start + rows], price, variance, max_loss, response)
        for start in range(0, costs.shape[0], rows)
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _some(
    costs: FloatArray, price: float, variance: float, max_loss: float, response: bool
) -> tuple[FloatArray, FloatArray]:
    cheapest = np.array([costs.min()])
    problem = as_problem(
        cheapest,
        variance=variance,
        error_weight=None,
        goal=Price(price),
        tie_key=None,
        local=True,
        response=response,
    )
    form = normal_form(problem, as_local_cap(max_loss, problem))
    supply, ordered = form.supply, np.sort(workable(costs, form.least, form.most), axis=1)
    normal = ordered / form.scale
    search = Search(CostTable(normal, supply), supply, Demand.price(1.0, costs.shape[0]))
    found = search.optima(search.marginal(1 + costs.shape[1] // 8))
    rank, count, alone = np.arange(costs.shape[1]), found.count[:, None], found.marginal[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.where(normal > 0.0, supply.reply(normal / found.price[:, None]), supply.cap)
        y = np.where((rank == count - 1) & ~np.isnan(alone), alone, y)
    losses = form.losses(np.where(rank < count, y, 0.0))
    with np.errstate(invalid="ignore"):
        return np.where(losses > 0.0, ordered * losses, 0.0).sum(axis=1), found.count.astype(np.float64)
