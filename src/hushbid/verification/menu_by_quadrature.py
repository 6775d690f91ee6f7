"""The shared menu of a hard budget once more, for verification: level, payments and shares by quadrature.

The level ``τ`` of the menu ``ε₀ = (2u/B)(τ − ψ)⁺`` solves ``Σ_i u_i·E[ψ(τ − ψ)⁺] = B²/2``. The mechanism integrates
over virtual costs; here the expectation is an integral over *ranks*, ``∫ ψ(τ − ψ) dp`` with ``ψ`` at the quantile
``p``; where the menu reaches so far that ranks close to 1 have too few digits, an integral over bids with their
density takes the place of those beyond the median. The level is found by false position. What the menu pays,
``t₀(c) = c·ε₀(c) + ∫ from c of ε₀``, is integrated over bids, from one person's to the next. Shares
``s_i = (B − υ·m_i)/(t₀^max_i + Σ_{j≠i} t₀(c_j))`` follow.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.priors import Prior
from hushbid.verification.central_by_exclusion import Answers
from hushbid.verification.quadrature import WorkExceeded, is_step_function

_POINTS, _WEIGHTS = (np.asarray(part, dtype=np.float64) for part in np.polynomial.legendre.leggauss(10))
_HALVINGS = 0.5 ** np.arange(1.0, 60.0)
_ROUNDS = 45
_FINE = 1e-13
_MOST_INTERVALS = 200_000
_TAIL = 1e-6
"""Where fewer than this share ask for more than the menu pays, ranks have too few digits."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedRule:
    """What is bought from one person at any virtual cost of hers: her share does not depend on it."""

    level: float
    strength: FloatArray
    """``s_i·2u_i/B`` of everybody."""

    limit: FloatArray
    """What everybody may lose at most: it takes effect after sharing."""

    costs: FloatArray
    """Everybody's virtual cost as bid."""

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The loss of person ``rows[j]`` at cost ``costs[j]``; there is neither an objective nor an error to it."""
        loss = np.minimum(self.strength[rows] * np.maximum(self.level - costs, 0.0), self.limit[rows])
        nothing = np.full(rows.size, math.nan)
        return Answers(loss, nothing, nothing)

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """All losses if person ``row`` had that cost, which moves hers alone; neither an error nor an objective."""
        costs = self.costs.copy()
        costs[row] = cost
        return self.at(np.arange(costs.size), costs).loss, math.nan, math.nan


@dataclass(frozen=True, slots=True, eq=False)
class MenuFound:
    """The menu and everybody's share in it."""

    level: float
    share: FloatArray
    strength: FloatArray
    """``2u_i/B``."""

    most: FloatArray
    """What each person's share of the menu pays at the lowest bid."""


def shared_menu(
    groups: Sequence[tuple[Prior, IndexArray]],
    bids: FloatArray,
    costs: FloatArray,
    variance: FloatArray,
    amount: float,
    coin: float,
) -> MenuFound:
    """The menu for people with these priors and variances, and the shares that their bids leave each of them."""
    precision = 1.0 / variance
    level = _level([(prior, math.fsum(precision[rows])) for prior, rows in groups], amount)
    strength = 2.0 * precision / amount
    paid, most = np.zeros(bids.size), np.zeros(bids.size)
    for prior, rows in groups:
        lowest = prior.smallest_bid
        places = np.append(bids[rows], lowest)
        gap = np.maximum(level - np.append(costs[rows], float(prior.virtual_cost(lowest))), 0.0)
        sold = gap > 0.0
        amounts = np.zeros(places.size)
        amounts[sold] = places[sold] * gap[sold] + _rents(prior, level, places[sold])
        paid[rows], most[rows] = amounts[:-1], amounts[-1]
    paid, most = strength * paid, strength * most
    # a coin for everybody else who is paid, and one for herself
    coins = 1.0 + np.count_nonzero(paid) - (paid > 0.0)
    others = most + (math.fsum(paid) - paid)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(others > 0.0, np.maximum(amount - coin * coins, 0.0) / others, 0.0)
    return MenuFound(level, share, strength, share * most)


def _level(precisions: list[tuple[Prior, float]], amount: float) -> float:
    """The level at which the menu costs the amount on average."""
    scale = max(precision for _, precision in precisions)
    wanted = 0.5 * amount * (amount / scale)

    def excess(level: float) -> float:
        return math.fsum(precision / scale * _expense(prior, level) for prior, precision in precisions) - wanted

    low, high = 0.0, max(float(prior.quantile(0.5)) for prior, _ in precisions)
    for _ in range(2000):
        if excess(high) > 0.0:
            break
        low, high = high, 2.0 * high
    # false position, the end that stays halved in weight
    below, above = excess(low), excess(high)
    for _ in range(200):
        middle = min(max(high - above * (high - low) / (above - below), low), high)
        if not low < middle < high or high - low <= 1e-13 * high:
            return middle
        value = excess(middle)
        if value > 0.0:
            high, above, below = middle, value, 0.5 * below
        else:
            low, below, above = middle, value, 0.5 * above
    return high


def _expense(prior: Prior, level: float) -> float:
    """``E[ψ(τ − ψ)⁺]``."""
    if is_step_function(prior):
        ends = np.array([right for _, right, _ in prior.flat_parts])
        cost = np.array([step for *_, step in prior.flat_parts])
        chance = np.diff(np.asarray(prior.cdf(ends)), prepend=0.0)
        return math.fsum(chance * cost * np.maximum(level - cost, 0.0))

    def at(rank: FloatArray) -> FloatArray:
        cost = np.asarray(prior.virtual_cost(np.asarray(prior.quantile(rank))))
        return np.where(cost < level, cost * (level - cost), 0.0)

    def beyond(bids: FloatArray) -> FloatArray:
        cost = np.asarray(prior.virtual_cost(bids))
        return np.where(cost < level, cost * (level - cost), 0.0) * np.asarray(prior.pdf(bids))

    end, median = _end(prior, level), float(prior.quantile(0.5))
    top = float(prior.cdf(end))
    if top == 0.0:
        return 0.0
    flats = np.array([place for part in prior.flat_parts for place in part[:2]])
    inner = np.asarray(prior.cdf(flats))
    by_density = 1.0 - top < _TAIL and median > 0.0
    last = 0.5 if by_density else top
    found = float(_areas(at, np.unique(np.concatenate([[0.0, last], last * _HALVINGS, inner[inner < last]]))).sum())
    if not by_density:
        return found
    wide = np.geomspace(median, end, 65)
    edges = np.unique(np.concatenate([wide, flats[(flats > median) & (flats < end)]]))
    return found + float(_areas(beyond, edges).sum())


def _rents(prior: Prior, level: float, bids: FloatArray) -> FloatArray:
    """``∫ from c of (τ − ψ)⁺`` for every bid: sums of the areas from one bid to the next."""
    end = _end(prior, level)
    flats = np.array([place for part in prior.flat_parts for place in part[:2]])
    wide = np.linspace(float(bids.min(initial=end)), end, 65)
    edges = np.unique(np.concatenate([bids[bids < end], flats[(flats > bids.min(initial=end))], wide]))
    edges = edges[edges <= end]
    area = _areas(lambda z: np.maximum(level - np.asarray(prior.virtual_cost(z)), 0.0), edges)
    beyond = np.append(area[::-1].cumsum()[::-1], 0.0)
    return np.asarray(beyond[np.minimum(edges.searchsorted(bids), edges.size - 1)])


def _end(prior: Prior, level: float) -> float:
    """The largest bid at which the menu still buys: bisection on the virtual cost."""
    low, high = prior.smallest_bid, prior.support[1]
    if high == math.inf:
        high = float(prior.quantile(0.5))
        while float(prior.virtual_cost(high)) < level:
            high *= 2.0
    if float(prior.virtual_cost(high)) < level:
        return high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if float(prior.virtual_cost(middle)) < level else (low, middle)
    return high


def _areas(function: Callable[[FloatArray], FloatArray], edges: FloatArray) -> FloatArray:
    """The integral over each interval between two edges; cut in halves where those say something else."""

    def rule(left: FloatArray, right: FloatArray) -> FloatArray:
        half = 0.5 * (right - left)
        points = (0.5 * (left + right))[:, None] + half[:, None] * _POINTS[None, :]
        return np.asarray(half * (function(points.ravel()).reshape(points.shape) @ _WEIGHTS))

    left, right = edges[:-1], edges[1:]
    home, whole = np.arange(left.size), rule(left, right)
    found, total = np.zeros(left.size), float(np.abs(whole).sum())
    for round_ in range(_ROUNDS):
        middle = 0.5 * (left + right)
        halves = rule(left, middle), rule(middle, right)
        off = np.abs(halves[0] + halves[1] - whole)
        done = (off <= _FINE * total) | (round_ == _ROUNDS - 1)
        found += np.bincount(home[done], (halves[0] + halves[1])[done], found.size)
        if done.all():
            break
        go = ~done
        if np.count_nonzero(go) > _MOST_INTERVALS:
            raise WorkExceeded("the most that a verification may compute is exceeded.")
        left, right = np.append(left[go], middle[go]), np.append(middle[go], right[go])
        home, whole = np.tile(home[go], 2), np.append(halves[0][go], halves[1][go])
    return found
