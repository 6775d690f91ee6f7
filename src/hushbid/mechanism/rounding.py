"""What rounding payments up to whole coins is expected to add to a budget, known before anybody bids.

Payments are rounded up to a coin in people's favour. Of a payment that is many coins this adds half a coin on average;
of one much smaller than a coin it adds nearly a whole one, so millions of tiny payments can cost several times the
budget. The *reserve* is that addition. The market is decided with the budget less the reserve, so that rounded payments
come to the budget on average.

The reserve must not depend on a bid: otherwise a bidder could change what others are paid, or make a purchase fail. It
is a function of the priors, the numbers of people who have them, the variance, the cap, the strata and the coin only.
It is computed for the *expected people*: the quantiles of each prior are cut into cells, and a cell of probability
``p`` stands for ``m = N·p`` people who all bid its middle. ``m`` people with the loss ε each and the variance V enter
error and expense as one person with the loss ``m·ε``, the variance ``V/m`` and the cap ``m`` times as large. So the
solvers of `hushbid.allocation` find the losses for a budget ``b``. A payment falls by ``dt = c·dε`` along the bids
``c``, to nothing where nothing is bought, or to ``ε`` times the top of the support; within a cell it is taken to be
linear, and uncertain by a tenth, which makes the mean of what rounding adds a finite sum. With ``r(b)`` what rounding
then adds for all people together, the reserve is ``B − b`` where ``b + r(b) = B``.

Where people have variances or caps of their own, it is computed with the mean variance and the largest cap. Limits that
people state belong to their bids and do not enter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from hushbid.allocation import Budget, allocate
from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.errors import LimitExceeded
from hushbid.estimation import Strata
from hushbid.priors import Prior

LARGEST_SHARE = 0.05
"""A purchase is refused if rounding is expected to take more of the budget, unless the buyer accepts it."""

ROUNDING_ACCEPTED = "rounding accepted: it takes more than 5 % of the budget"
"""The stamp of a purchase whose buyer accepted more."""

_EVEN = 384
"""Cells of equal probability, for all kinds of people together."""

_LOW = 256
"""Cells towards the lowest bids, ever smaller: of a large panel the cheapest few may be all that is bought from."""

_SMALLEST = 1e-12
_FEWEST = 24
_CHEAPEST = 1e-9
"""Nobody's virtual cost is taken to be less than this part of the median: what is free is not paid for."""

_MOST_STEPS = 512
_TOP = 0.999
"""Where a prior has no highest bid, all above this quantile are taken to bid it."""

_UNSURE = 0.1
"""A payment is known to this part of itself: who else bids what moves it. Of many equal ones, such as those of people
at their cap, rounding adds half a coin each, not what the digits of one number say."""

_PRECISION = 1e-7
"""The reserve is computed to this part of the budget."""

_LEAST_LEFT = 1e-4
"""Rounding never takes the last part of a budget: something is left to decide with, if the buyer accepts that."""


@dataclass(frozen=True, slots=True)
class Kind:
    """People who differ by nothing but their bids."""

    prior: Prior
    """What is believed about their costs."""

    people: float
    """How many they are expected to be."""

    stratum: int = 0
    """The place of their stratum."""


def takes_too_much(goal: object) -> bool:
    """Whether rounding takes more than `LARGEST_SHARE` of a budget."""
    return isinstance(goal, Budget) and (goal.reserve or 0.0) > LARGEST_SHARE * goal.amount


def refuse_rounding(goal: object, people: int, *, accepted: bool) -> None:
    """Refuse a budget of which rounding takes more than `LARGEST_SHARE`, unless the buyer accepted that."""
    if accepted or not isinstance(goal, Budget) or not takes_too_much(goal):
        return
    raise LimitExceeded(
        f"Rounding payments up to coins of {goal.coin:g} would take {goal.reserve:.6g} of the budget of"
        f" {goal.amount:.12g} for {people:,} people, more than {LARGEST_SHARE:.0%}: invite fewer people, state a"
        " larger budget or a hard budget, or accept it with accept_rounding.",
        field="budget",
    )


def reserve_for(
    goal: Budget,
    kinds: Sequence[Kind],
    *,
    variance: float,
    cap: float = math.inf,
    weights: Sequence[float] = (1.0,),
) -> float:
    """What rounding up to the goal's coin is expected to add to the payments, of its amount.

    ``variance`` is what the purchase is planned with and ``weights`` are those of the strata, on a range of width 1.
    """
    if goal.coin == 0.0:
        return 0.0
    there = tuple(kind for kind in kinds if kind.people > 0.0)
    return _reserve(goal.amount, goal.coin, there, variance, cap, tuple(map(float, weights)))


@lru_cache(maxsize=256)
def _reserve(
    amount: float, coin: float, kinds: tuple[Kind, ...], variance: float, cap: float, weights: tuple[float, ...]
) -> float:
    from scipy.optimize import brentq  # late: slow to import

    people = _Expected.of(kinds, variance, cap, weights)

    def excess(part: float) -> float:
        budget = math.exp(part) * amount
        return budget + people.rounding(budget, coin) - amount

    low = math.log(_LEAST_LEFT)
    part = low if excess(low) >= 0.0 else brentq(excess, low, 0.0, xtol=_PRECISION, rtol=1e-12)
    # as many digits as it is computed to, so that the last ones of a machine do not matter
    return abs(float(f"{amount * -math.expm1(part):.6g}"))


@dataclass(frozen=True, slots=True, eq=False)
class _Expected:
    """The expected people: one entry per cell, ascending by bid within each kind."""

    bids: FloatArray
    """At the upper end of each cell; of the last, the top of the support."""

    costs: FloatArray
    """In the middle of each cell."""

    people: FloatArray
    variance: float
    cap: float
    strata: Strata | None
    starts: IndexArray
    """Where the cells of each kind begin, and where the last ends."""

    @classmethod
    def of(cls, kinds: tuple[Kind, ...], variance: float, cap: float, weights: tuple[float, ...]) -> "_Expected":
        edges = [_edges(kind.prior, len(kinds)) for kind in kinds]
        cells = [_cells(kind.prior, u) for kind, u in zip(kinds, edges, strict=True)]
        sizes = np.array([u.size - 1 for u in edges])
        costs = np.concatenate([cost for _, cost in cells])
        strata = None
        if len(weights) > 1:
            codes = np.repeat([kind.stratum for kind in kinds], sizes)
            strata = Strata(codes=codes, weights=np.array(weights))
        return cls(
            bids=np.concatenate([bid for bid, _ in cells]),
            costs=np.maximum(costs, _CHEAPEST * float(np.median(costs))),
            people=np.concatenate([kind.people * np.diff(u) for kind, u in zip(kinds, edges, strict=True)]),
            variance=variance,
            cap=cap,
            strata=strata,
            starts=np.append(0, np.cumsum(sizes)),
        )

    def rounding(self, budget: float, coin: float) -> float:
        """What rounding adds to everybody's payments together, at a budget for what is paid besides."""
        found = allocate(
            self.costs,
            variance=self.variance / self.people,
            goal=Budget(budget),
            max_loss=self.cap * self.people if self.cap < math.inf else math.inf,
            strata=self.strata,
        )
        loss = found.privacy_loss / self.people
        added = 0.0
        for first, last in pairwise(self.starts.tolist()):
            part = slice(first, last)
            payments = _payments(self.bids[part], loss[part])
            added += float(self.people[part] @ _mean_addition(payments / coin))
        return added * coin


def _edges(prior: Prior, kinds: int) -> FloatArray:
    """The quantiles between which the cells of a kind of people lie, ascending from 0 to 1."""
    even = np.linspace(0.0, 1.0, max(_EVEN // kinds, _FEWEST) + 1)
    low = np.geomspace(_SMALLEST, even[1], max(_LOW // kinds, _FEWEST))
    ends = np.array([right for _, right, _ in prior.flat_parts])
    steps = np.asarray(prior.cdf(ends)) if 0 < ends.size <= _MOST_STEPS else np.zeros(0)
    return np.unique(np.concatenate([[0.0], low, even, steps[(steps > 0.0) & (steps < 1.0)]]))


def _cells(prior: Prior, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The bid at the upper end of each cell and the virtual cost in its middle."""
    top = 1.0 if prior.support[1] < math.inf else _TOP
    middles = np.minimum(0.5 * (edges[:-1] + edges[1:]), top)
    ends = np.asarray(prior.quantile(np.minimum(edges[1:], top)))
    return ends, np.asarray(prior.virtual_cost(np.asarray(prior.quantile(middles))))


def _payments(ends: FloatArray, loss: FloatArray) -> FloatArray:
    """What is paid in each cell: a payment falls by ``c·dε`` from one to the next, and after the last to nothing."""
    loss = np.minimum.accumulate(loss)  # in the last digits it may rise
    found: FloatArray = np.cumsum((ends * (loss - np.append(loss[1:], 0.0)))[::-1])[::-1]
    return found


def _mean_addition(coins: FloatArray) -> FloatArray:
    """What rounding up adds in each cell on average, payments and additions in coins."""
    halves = 0.5 * (coins[:-1] + coins[1:])
    high = (1.0 + _UNSURE) * np.append(coins[0], halves)
    low = (1.0 - _UNSURE) * np.append(halves, coins[-1])
    added = np.zeros(coins.size)
    np.divide(_additions(high) - _additions(low), high - low, out=added, where=high > low)
    return np.clip(added, 0.0, 1.0)


def _additions(coins: FloatArray) -> FloatArray:
    """The integral of what rounding up adds, from 0: half a coin for every whole one."""
    rest = coins - np.floor(coins)
    return 0.5 * np.floor(coins) + rest - 0.5 * rest * rest
