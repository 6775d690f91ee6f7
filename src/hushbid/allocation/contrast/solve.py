"""The optimum for a contrast of strata as an allocation, of few people or of very many.

Of many people those who are surely too expensive are left out before sorting. A sample proposes a cut in each stratum.
People above the cuts have keys of at least ``min_g G_g(cut_g)/λ_g``; if the optimum of those below cannot be beaten
past that ``T``, nobody was missed. Otherwise ``τ_g ≤ m + λ_g T/U``, true for the mass and mean of any people of the
stratum, gives cuts that pass.
"""

import math
from functools import partial

import numpy as np

from hushbid.allocation.contrast.bounds import contrast_lower_bound
from hushbid.allocation.contrast.pieces import Point, Stratum, by_stratum, level_of_many, point_of
from hushbid.allocation.contrast.problem import Scaled
from hushbid.allocation.goals import Accuracy, Budget, Price
from hushbid.allocation.problem import Allocation, Problem
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import MarketError
from hushbid.estimation import Strata

_SELECT_ABOVE = 1 << 15
_SAMPLE = 1 << 13


def solve_contrast(problem: Problem, strata: Strata) -> Allocation:
    """The global optimum of the central problem with strata, for a price, an accuracy or a budget."""
    scaled = Scaled.of(problem, strata)
    people, point = optimum(scaled)
    goal, n = scaled.goal, scaled.costs.size
    weights, losses = np.zeros(n), np.zeros(n)
    paid = 0.0
    for g, (one, count, moments) in enumerate(zip(people, point.counts, point.moments, strict=True)):
        share, rows = shares(one, count, moments, point.at), one.rows[:count]
        weights[rows], losses[rows] = scaled.signs[g] * share, share
        paid += point.at * float((share * (one.base + one.offset[:count])).sum())  # W, with nothing to cancel
    weights *= math.sqrt(scaled.factor / scaled.unit)
    paid = scaled.half if isinstance(goal, Budget) else paid
    strength = _strength(scaled, point, paid)
    losses = np.where(losses > 0.0, math.inf, 0.0) if strength == math.inf else losses * strength
    bought = np.flatnonzero(losses)
    expense = _expense(problem.costs[bought], losses[bought])
    mse = scaled.factor * point.mse
    if isinstance(goal, Accuracy):
        mse = goal.number**2
    objective = {"price": goal.number * mse + expense, "accuracy": expense, "budget": mse}[goal.kind]
    return Allocation(
        privacy_loss=losses,
        weights=weights,
        mse=mse,
        objective=objective,
        active=bought.size,
        setting="central",
        error_weight=goal.number if isinstance(goal, Price) else _worth(scaled, point, paid),
        _certify=problem.certifying(partial(contrast_lower_bound, goal=goal, strata=strata)),
    )


def _strength(scaled: Scaled, point: Point, paid: float) -> float:
    """``ηΛ``: what shares that sum to λ are multiplied by to give losses."""
    if isinstance(scaled.goal, Price):
        # T⁴ = 2W, so T·√(2/W) = 2/T
        return 2.0 / point.at / math.sqrt(scaled.unit) if point.at > 0.0 else math.inf
    if paid == 0.0:  # nobody is paid, and the noise is what the error leaves
        over = scaled.ratio - point.floor
        return math.sqrt(2.0 / (scaled.unit * over)) if over > 0.0 else math.inf
    return point.at * math.sqrt(2.0 / scaled.unit / paid)


def _worth(scaled: Scaled, point: Point, paid: float) -> float:
    """At what price of the error the same would be bought: ``T²/√(2W)``."""
    return point.at * (point.at / math.sqrt(2.0 * scaled.unit * paid) / scaled.factor) if paid > 0.0 else 0.0


def _expense(costs: FloatArray, losses: FloatArray) -> float:
    paid = costs > 0.0
    return float((costs[paid] * losses[paid]).sum())


def shares(one: Stratum, count: int, moments: tuple[float, float, float], at: float) -> FloatArray:
    """``u (τ − ψ)⁺/T`` of the active of a stratum, which sum to its λ; written so that nothing cancels."""
    total, mean, _ = moments
    share = np.full(count, one.size / total)
    if at > 0.0:
        share += (mean - one.offset[:count]) / at
        np.maximum(share, 0.0, out=share)
    share *= one.mass[:count]
    share *= one.size / float(share.sum())
    return share


def optimum(scaled: Scaled) -> tuple[list[Stratum], Point]:
    """The best point, and the people among whom everybody active is."""
    costs = scaled.costs
    if costs.size <= _SELECT_ABOVE:
        people = by_stratum(scaled, np.flatnonzero(costs < math.inf))
        return people, _reached(scaled, people, point_of(scaled, people))
    cuts = _proposed_cuts(scaled)
    while True:
        # solve for those below the cuts
        rows = np.flatnonzero((costs <= cuts[scaled.codes]) & (costs < math.inf))
        people, point = _best_of(scaled, rows)
        needed = _needed(scaled, point)
        # is T past the cuts too large for any optimum?
        reach = [
            math.inf if cut == math.inf else one.gain(cut / scaled.scale - one.base) / one.size
            for one, cut in zip(people, cuts.tolist(), strict=True)
        ]
        if min(reach) == math.inf or needed <= min(reach):
            return people, _reached(scaled, people, point)
        # no: from the mass and mean of each stratum, cuts that pass
        for g, one in enumerate(people):
            total, mean, _ = one.moments(one.offset.size)
            level = one.base + mean + one.size * needed / total
            cuts[g] = max(cuts[g], math.nextafter(level * scaled.scale * (1.0 + 1e-12), math.inf))


def _best_of(scaled: Scaled, rows: IndexArray) -> tuple[list[Stratum], Point]:
    """The best point of these people, and among whom everybody active is."""
    if isinstance(scaled.goal, Price):
        people = by_stratum(scaled, rows)
        return people, point_of(scaled, people)
    return level_of_many(scaled, rows)


def _needed(scaled: Scaled, point: Point) -> float:
    """A ``T`` past which there is nothing better, if this point is attained."""
    if not isinstance(scaled.goal, Price):
        return point.at
    least = float((np.square(scaled.sizes) / scaled.totals).sum())  # the error that is left if everybody is bought from
    return math.sqrt(max(point.value - least, 0.0) / 1.5) * (1.0 + 1e-12)


def _reached(scaled: Scaled, people: list[Stratum], point: Point) -> Point:
    """The point, if there is one."""
    if point.at < math.inf:
        return point
    if isinstance(scaled.goal, Budget):
        raise MarketError("Every virtual cost is 0: a budget cannot be spent on people who ask for nothing.")
    raise scaled.unreachable(point.floor, sum(one.rows.size for one in people))


def _proposed_cuts(scaled: Scaled) -> FloatArray:
    """Where the optimum of an evenly spaced sample, each counting for many, suggests to stop; only a hint."""
    step = scaled.costs.size // _SAMPLE
    sample = np.arange(0, scaled.costs.size, step)
    sample = sample[scaled.costs[sample] < math.inf]
    cuts = np.full(scaled.sizes.size, math.inf)
    if np.bincount(scaled.codes[sample], minlength=cuts.size).min() == 0:
        return cuts
    people = by_stratum(scaled, sample, float(step))
    point = point_of(scaled, people)
    for g, (one, count) in enumerate(zip(people, point.counts, strict=True)):
        # four standard deviations of the sample's count, and some, to spare
        spare = count + int(4.0 * math.sqrt(count)) + 16
        if spare < one.rows.size:
            cuts[g] = scaled.costs[one.rows[spare]]
    return cuts
