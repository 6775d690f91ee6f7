"""The level of a menu: up to which virtual cost somebody buys who knows people by their priors only.

With ``U`` the sum of ``1/V`` over people who share a prior, the level ``τ`` solves

    Σ over priors of U·E[ψ(τ − ψ)⁺] = B²/2        (extensions of mechanism.md, the budget of a large market).

**The expectation** is one integral without a density. Whoever has ``ψ ≤ x`` bids at most the price ``p(x)``, the
largest bid with that virtual cost, and buying the units up to ``τ`` one by one at these prices costs

    E[ψ(τ − ψ)⁺] = ∫ from 0 to τ of p(x)·F(p(x)) dx

(a unit offered at the price p is sold with probability F(p); by the envelope theorem that is the virtual cost of all of
them). It holds for ironed and for stepped virtual costs too, rises with ``τ`` and is convex. Whatever level is found is
fixed before anybody bids, so neither truth nor the budget hang on its last digits.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.errors import MarketError
from hushbid.priors import Prior
from hushbid.priors.tables import integrals

_HALVINGS = 0.5 ** np.arange(64.0)
_PRECISION = 1e-12
_MOST_ROUNDS = 48
_MOST_DOUBLINGS = 2200

Precisions = tuple[tuple[Prior, float], ...]
"""Each prior, and the sum of ``1/V`` over the people who have it."""


@lru_cache(maxsize=256)
def menu_level(precisions: Precisions, amount: float) -> float:
    """The level ``τ`` at which the expected virtual expense of ``ε = (2u/B)(τ − ψ)⁺`` is the amount ``B``."""
    expenses = [(precision, expected_expense(prior)) for prior, precision in precisions]
    # precisions beyond all floats when squared are scaled away
    target = 0.5 * amount * (amount / max(precision for _, precision in precisions))
    scale = max(precision for _, precision in precisions)

    def excess(level: float) -> float:
        return sum(precision / scale * expense(level) for precision, expense in expenses) - target

    low = min(float(prior.virtual_cost(prior.smallest_bid)) for prior, _ in precisions)
    step = max(low, min(float(prior.quantile(0.5)) for prior, _ in precisions), 1e-300)
    for _ in range(_MOST_DOUBLINGS):
        high = low + step
        if excess(high) > 0.0 or high > 1e300:
            break
        low, step = high, 2.0 * step
    if not 0.0 < excess(high) < math.inf:
        raise MarketError("A budget cannot be spent where nobody's privacy costs anything: every prior is 0.")
    return _root(excess, low, high)


def expected_expense(prior: Prior) -> Callable[[float], float]:
    """Return ``E[ψ(τ − ψ)⁺]`` as a function of the level ``τ``, for costs drawn from the prior."""
    return _stepped(prior) if prior.is_stepped else _smooth(prior)


def _stepped(prior: Prior) -> Callable[[float], float]:
    """A virtual cost of steps: a finite sum."""
    costs = np.array([cost for _, _, cost in prior.flat_parts])
    chances = np.diff(np.asarray(prior.cdf(np.array([right for _, right, _ in prior.flat_parts]))), prepend=0.0)

    def expense(level: float) -> float:
        bought = costs < level
        return math.fsum((chances[bought] * costs[bought] * (level - costs[bought])).tolist())

    return expense


def _smooth(prior: Prior) -> Callable[[float], float]:
    """Any other virtual cost: the integral of ``p·F(p)``, cut where the price jumps or comes to its end."""
    start = float(prior.virtual_cost(prior.support[0]))
    ends = np.array([cost for _, _, cost in prior.flat_parts] + [float(prior.virtual_cost(prior.support[1]))])

    def sold(costs: FloatArray) -> FloatArray:
        prices = np.asarray(prior.virtual_cost_inverse(costs))
        return prices * np.asarray(prior.cdf(prices))

    known = {start: 0.0}

    def expense(level: float) -> float:
        # on from the highest level below that is known
        anchor = max((one for one in known if one <= level), default=level)
        if not level > anchor:
            return known.get(level, 0.0)
        edges = np.concatenate([[anchor], ends[(ends > anchor) & (ends < level)], [level]])
        if anchor == start:  # halvings towards the low end: virtual costs may span orders of magnitude
            edges = np.append(edges, start + (level - start) * _HALVINGS)
        known[level] = known[anchor] + _integral(sold, np.unique(edges))
        return known[level]

    return expense


def _integral(function: Callable[[FloatArray], FloatArray], edges: FloatArray) -> float:
    """Gauss and Legendre's rule on each interval, halved while both halves together say something else."""
    left, right = edges[:-1], edges[1:]
    whole = integrals(function, left, right)
    total, done = float(whole.sum()), 0.0
    for _ in range(_MOST_ROUNDS):
        middle = 0.5 * (left + right)
        first, second = integrals(function, left, middle), integrals(function, middle, right)
        halves = first + second
        total += float((halves - whole).sum())
        settled = (np.abs(halves - whole) <= _PRECISION * np.abs(total) / edges.size) | (middle <= left)
        done += float(halves[settled].sum())
        if settled.all():
            return done
        going = ~settled
        left, right = np.append(left[going], middle[going]), np.append(middle[going], right[going])
        whole = np.append(first[going], second[going])
    return done + float(whole.sum())


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where a convex, nondecreasing function becomes positive between two points, by the false-position method."""
    from scipy.optimize import brentq  # late: slow to import

    found: float = brentq(excess, low, high, xtol=1e-300, rtol=1e-14)
    return found
