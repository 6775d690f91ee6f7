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

from hushbid.allocation.capped import Found, beside
from hushbid.allocation.frontier import Points, at
from hushbid.allocation.pool import People
from hushbid.allocation.populations import Populations
from hushbid.allocation.price_search import figures, interval_bounds, ladder
from hushbid.allocation.sweep import Sweep
from hushbid.common.arrays import BoolArray, FloatArray

_FINE = 48
_STEPS = 16
_MARGINS = 0.01, 0.04, 0.12, 0.25, 0.5
_FAR = 0.3  # a move that changes the value by a larger share is always searched


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
    people = populations.people
    total = float(people.cap.sum())
    if populations.sizes.size > 1 or not total < math.inf:
        return False
    steepest = float(people.reach.max())
    return float(people.costs[-1]) * total**3 + 2.0 * steepest * total < 4.0 * (1.0 - 1e-9)


def _can_give(populations: Populations, t: FloatArray, sigma: float) -> bool:
    """Return whether every stratum can give its share, at given ``σ``."""
    return float(t[0]) <= sigma * float(populations.full(1)[0]) * (1.0 - 1e-9)


def _largest_change(populations: Populations, points: Points) -> float:
    """Bound how much the value rises if one person leaves: the others of the stratum stay, other strata give less."""
    sigma, total = float(points.sigma[0]), float(points.weight[0])
    people = populations.people
    losses = people.losses(points.levels, sigma)
    squares, bills = losses * losses / people.mass, losses * people.costs
    all_squares, all_bills = float(squares.sum()), float(bills.sum())
    before = (2.0 + all_squares) / (total * total) + all_bills
    kept = 1.0 - losses / (populations.sizes[people.codes] * total)
    if not float(kept.min()) > 1e-9:
        return math.inf
    own, bill = (people.by_stratum(each)[people.codes] for each in (squares, bills))
    error = (2.0 + kept * kept * (all_squares - own) + own - squares) / (total * kept) ** 2
    after = error + kept * (all_bills - bill) + bill - bills
    return max(float(after.max()) - before, 0.0) * (1.0 + 1e-9) + 1e-12 * before


def _range_below(found: Found, worst: float) -> tuple[Points, Points] | None:
    """Return the points between which no bound exceeds a value."""
    sigma = ladder(found.points.sigma, np.array([found.first]), np.array([found.last]))[0]
    for _ in range(2):
        points = at(found.populations, sigma, beside(found.points, sigma.size))
        known = figures(points)
        bounds = interval_bounds(known[:, :-1], known[:, 1:])
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
    return float(_terms(populations.people, populations.sizes * low.t[0], least, most, sigmas).sum()) <= 0.0


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
        people = populations.people
        given = people.losses(points.levels, sigma) * sigma / populations.sizes[people.codes]
        more = (points.t + float(given.max())) * (1.0 + 1e-9)
        if not _can_give(populations, more, sigma):
            return None
        return cls(populations, points, _filled(populations, more, sigma))

    @staticmethod
    def _squares(populations: Populations, points: Points) -> tuple[float, float]:
        """Return ``ΣVy²``, and one person's at the most."""
        sigma, people = float(points.sigma[0]), populations.people
        each = (sigma * people.losses(points.levels, sigma)) ** 2 / people.mass
        return float(each.sum()), float(each.max())


def _terms(
    people: People, share: FloatArray, least: FloatArray, most: FloatArray, sigmas: tuple[float, float]
) -> FloatArray:
    """Return ``4Q − ℓT(3m + σE/U)`` of each stratum at the most, levels and ``σ`` in a box, if any one person moved."""
    costs, mass, codes, reach = people.costs, people.mass, people.codes, people.reach

    def total(each: FloatArray, who: BoolArray) -> FloatArray:
        return people.by_stratum(np.where(who, each, 0.0))

    def largest(each: FloatArray, who: BoolArray) -> FloatArray:
        return people.by_stratum(np.where(who, each, 0.0), np.maximum)

    sure_capped = least[codes] - costs >= sigmas[1] * reach
    perhaps = (costs < most[codes]) & ~sure_capped
    # who is inside has a cost at most σ·e/u below the level; who moved to there is no cheaper than before
    lowest = np.maximum(costs[people.starts], least - sigmas[1] * people.by_stratum(reach, np.maximum))
    sure = (costs < least[codes]) & (most[codes] - costs < sigmas[0] * reach)
    extra, weighted, inside = people.by_stratum(mass, np.maximum), mass * costs, total(mass, perhaps)
    nothing = (most <= 4.0 * lowest) | ~(inside > 0.0)
    some = np.where(nothing, 1.0, inside)
    mean = np.maximum((total(weighted, sure) - largest(weighted, perhaps)) / (some + extra), lowest)
    centre = total(weighted, perhaps) / some
    far = np.maximum(np.abs(most - centre), np.abs(centre - lowest))
    second = total(mass * (costs - centre[codes]) ** 2, perhaps) + extra * far * far
    second = np.minimum(second, 0.25 * (some + extra) * (most - lowest) ** 2)
    full = total(people.cap, sure_capped) - largest(people.cap, sure_capped)
    return np.where(nothing, 0.0, 4.0 * second - share * (3.0 * mean + sigmas[0] * full / (some + extra)))
