"""Whether the objective of a price has one local minimum only along the frontier if any one cost is raised.

Raising a cost makes no purchase cheaper, so the frontier with one cost raised lies above the present one: every
purchase that is not worse than a value ``w`` has its error between those of the intervals of ``σ`` whose bound is at
most ``w``. Between the ``T`` that belong to these errors, ``T²/2σ`` rises with ``T`` where

    4·Σ Q_g  <  3·Σ ℓ_g·m_g·T + σ·Σ ℓ_g·T·E_g/U_g,

``U_g``, ``m_g`` and ``Q_g`` the mass, the mean and the centred second moment of the costs inside; then there is one
stationary point at most, and one that is found is the optimum. Where the highest level is at most four times the
lowest cost inside, that holds by itself: ``Q ≤ (m − lowest)·Σu(λ − ψ)``.

For the path with one person moved, at given ``T`` and ``σ`` levels are between those of everybody and of everybody but
that person; and ``σ`` is between ``K/2σ°`` for the least and the largest ``K = τ̄T − ΣVy²`` there, ``σ°`` being the
present one, because ``K/σ`` falls in ``σ``.
"""

import math

import numpy as np

from hushbid.allocation.branch_and_bound import interval_bounds
from hushbid.allocation.capped import Found
from hushbid.allocation.caps import beside
from hushbid.allocation.frontier import Points, at
from hushbid.allocation.pool import Levels, Pool
from hushbid.allocation.populations import Populations
from hushbid.allocation.price_search import figures, ladder
from hushbid.allocation.sweep import Sweep
from hushbid.common.arrays import FloatArray

_FINE = 48
_STEPS = 16
_MARGINS = 0.01, 0.04, 0.12, 0.25, 0.5
_FAR = 0.3
"""A move that changes the value by a larger share is always searched."""


def single_minimum_up_to(found: Found) -> float:
    """Return the value up to which a stationary point of a population with one cost raised is its optimum.

    Minus infinity where nothing is proved.
    """
    populations = found.populations
    if _everybody_gives_all(populations):
        return math.inf
    excess = min(_largest_change(populations, found.points), _FAR * found.value)
    for share in (1.0, 0.25, 0.05, 0.01):
        worst = found.value + share * excess
        ends = _range_below(found, worst)
        if ends is not None and _single(populations, *ends):
            return worst
    return -math.inf


def _everybody_gives_all(populations: Populations) -> bool:
    """Return whether nobody but the person who moves can be below their cap: their loss is then one equation's root.

    In one stratum the least cost with ``Σε = S`` changes at the rate ``λ(S) − (4 + 2ΣVε²)/S³``, and ``λ`` is at most
    ``ψ + 2·Ve/S²`` of anybody below their cap. So the cost still falls where ``ψ·S³ + 2·Ve·S < 4`` at ``S = Σe``.
    """
    pool = populations.pools[0]
    total = pool.all_caps
    if len(populations.pools) > 1 or not total < math.inf:
        return False
    steepest = float(pool.reach.max())
    return float(pool.costs[-1]) * total**3 + 2.0 * steepest * total < 4.0 * (1.0 - 1e-9)


def _can_give(populations: Populations, t: FloatArray, sigma: float) -> bool:
    """Return whether every stratum can give its share, at given ``σ``."""
    return float(t[0]) <= sigma * float(populations.full(1)[0]) * (1.0 - 1e-9)


def _largest_change(populations: Populations, points: Points) -> float:
    """Bound how much the value rises if one person leaves: the others of the stratum stay, other strata give less."""
    sigma, total = float(points.sigma[0]), float(points.weight[0])
    losses = [pool.losses(points.levels.stratum(g), sigma) for g, pool in enumerate(populations.pools)]
    squares = [loss * loss / pool.mass for pool, loss in zip(populations.pools, losses, strict=True)]
    bills = [loss * pool.costs for pool, loss in zip(populations.pools, losses, strict=True)]
    all_squares, all_bills = (sum(float(one.sum()) for one in each) for each in (squares, bills))
    before, most = (2.0 + all_squares) / (total * total) + all_bills, 0.0
    for g, size in enumerate(populations.sizes):
        kept = 1.0 - losses[g] / (size * total)
        if not float(kept.min()) > 1e-9:
            return math.inf
        own, bill = float(squares[g].sum()), float(bills[g].sum())
        error = (2.0 + kept * kept * (all_squares - own) + own - squares[g]) / (total * kept) ** 2
        after = error + kept * (all_bills - bill) + bill - bills[g]
        most = max(most, float(after.max()) - before)
    return most * (1.0 + 1e-9) + 1e-12 * before


def _range_below(found: Found, worst: float) -> tuple[Points, Points] | None:
    """Return the points between which no bound exceeds a value."""
    sigma = ladder(found.points.sigma, np.array([found.first]), np.array([found.last]))[0]
    for _ in range(2):
        points = at(found.populations, sigma, beside(found.points, sigma.size))
        known = figures(points)
        bounds = interval_bounds(known.take(np.arange(sigma.size - 1)), known.take(np.arange(1, sigma.size)))
        low = np.flatnonzero(bounds <= worst)
        if low.size == 0:
            return None
        first, last = int(low[0]), int(low[-1]) + 1
        sigma = np.geomspace(points.sigma[first], points.sigma[last], _FINE)
    return points.take([first]), points.take([last])


def _filled(populations: Populations, t: FloatArray, sigma: float) -> Points:
    """Return the point at which every stratum gives its share of ``T``, at given ``σ``."""
    step = np.array([sigma])
    return Points.of(populations, t, step, Sweep.of(populations, step).filled(t))


def _single(populations: Populations, left: Points, right: Points) -> bool:
    """Return whether ``T²/2σ`` rises between the errors of two points, if any one person moved."""
    for margin in _MARGINS:
        low, high = _Ends.of(populations, left, 1.0 - margin), _Ends.of(populations, right, 1.0 + margin)
        if low is None or high is None:
            return False
        if low.least_error >= float(left.mse[0]) and high.largest_error <= float(right.mse[0]):
            break
    else:
        return False
    # short steps: the box between two ends is narrow
    ratio = float(right.sigma[0] / left.sigma[0]) * (1.0 + margin) / (1.0 - margin)
    for step in range(1, _STEPS + 1):
        after = _Ends.of(populations, left, (1.0 - margin) * ratio ** (step / _STEPS)) if step < _STEPS else high
        if after is None or not _rises(populations, low, after):
            return False
        low = after
    return True


def _rises(populations: Populations, low: "_Ends", high: "_Ends") -> bool:
    """Return whether ``T²/2σ`` rises from one ``T`` to another, if any one person moved."""
    sigmas = low.sigmas[0], high.sigmas[1]
    if not 0.0 < sigmas[0] <= sigmas[1] < math.inf or not _can_give(populations, high.more, sigmas[0]):
        return False
    least = _filled(populations, low.t, sigmas[1]).levels.high[:, 0]
    most = _filled(populations, high.more, sigmas[0]).levels.high[:, 0]
    terms = [
        _term(pool, float(size * low.t[0]), float(one), float(two), sigmas)
        for pool, size, one, two in zip(populations.pools, populations.sizes, least, most, strict=True)
    ]
    return sum(terms) <= 0.0


class _Ends:
    """What paths with one person moved are like at some ``T``: between which ``σ``, and with which errors."""

    def __init__(self, populations: Populations, points: Points, after: Points) -> None:
        self.t, self.more = points.t, after.t
        sigma, t = float(points.sigma[0]), float(points.t[0])
        squares, own = self._squares(populations, points)
        most, _ = self._squares(populations, after)
        level, above = (float(populations.sizes @ one.levels.high[:, 0]) for one in (points, after))
        largest, least = above * t - (squares - own), level * t - most - own
        self.sigmas = max(least, 0.0) / (2.0 * sigma), max(largest / (2.0 * sigma), sigma)
        up = _filled(populations, t * (1.0 - 1e-9) * np.ones(1), self.sigmas[1])
        self.least_error = float(populations.sizes @ up.levels.high[:, 0]) / t
        self.largest_error = math.inf
        if self.sigmas[0] > 0.0 and _can_give(populations, self.more, self.sigmas[0]):
            down = _filled(populations, self.more, self.sigmas[0])
            self.largest_error = float(populations.sizes @ down.levels.high[:, 0]) / t

    @classmethod
    def of(cls, populations: Populations, near: Points, factor: float) -> "_Ends | None":
        points = at(populations, near.sigma * factor, near)
        sigma = float(points.sigma[0])
        # what a person who leaves gave is given by the others
        given = [
            float(pool.losses(points.levels.stratum(g), sigma).max()) * sigma / size
            for g, (pool, size) in enumerate(zip(populations.pools, populations.sizes, strict=True))
        ]
        more = (points.t + max(given)) * (1.0 + 1e-9)
        if not _can_give(populations, more, sigma):
            return None
        return cls(populations, points, _filled(populations, more, sigma))

    @staticmethod
    def _squares(populations: Populations, points: Points) -> tuple[float, float]:
        """Return ``ΣVy²``, and one person's at the most."""
        sigma, total, most = float(points.sigma[0]), 0.0, 0.0
        for g, pool in enumerate(populations.pools):
            levels = Levels(points.levels.high[g], points.levels.low[g])
            each = (sigma * pool.losses(levels, sigma)) ** 2 / pool.mass
            total, most = total + float(each.sum()), max(most, float(each.max()))
        return total, most


def _term(pool: Pool, share: float, least: float, most: float, sigmas: tuple[float, float]) -> float:
    """Return ``4Q − ℓT(3m + σE/U)`` of a stratum at the most, its level and ``σ`` in a box, if any one person moved."""
    costs, mass = pool.costs, pool.mass
    sure_capped = least - costs >= sigmas[1] * pool.reach
    perhaps = (costs < most) & ~sure_capped
    # who is inside has a cost at most σ·e/u below the level; who moved to there is no cheaper than before
    lowest = max(float(costs[0]), least - sigmas[1] * float(pool.reach.max()))
    if most <= 4.0 * lowest or not perhaps.any():
        return 0.0
    sure = (costs < least) & (most - costs < sigmas[0] * pool.reach)
    extra, weighted = float(mass.max()), mass * costs
    total = float(mass[perhaps].sum())
    away = float(weighted[perhaps].max())
    mean = max((float(weighted[sure].sum()) - away) / (total + extra), lowest)
    centre = float(weighted[perhaps].sum()) / total
    far = max(abs(most - centre), abs(centre - lowest))
    second = float((mass * (costs - centre) ** 2)[perhaps].sum()) + extra * far * far
    second = min(second, 0.25 * (total + extra) * (most - lowest) ** 2)
    used = np.where(sure_capped, pool.cap, 0.0)
    full = float(used.sum() - used.max(initial=0.0))
    return 4.0 * second - share * (3.0 * mean + sigmas[0] * full / (total + extra))
