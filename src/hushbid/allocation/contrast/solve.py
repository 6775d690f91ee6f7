"""The optimum for a contrast of strata as an allocation, of few people or of very many.

Of many people those who are surely too expensive are left out before sorting. A sample proposes a cut in each stratum.
People above the cuts have keys of at least ``min_g G_g(cut_g)/λ_g``; if the optimum of those below cannot be beaten
past that ``T``, nobody was missed. Otherwise ``τ_g ≤ m + λ_g T/U``, true for the mass and mean of any people of the
stratum, gives cuts that pass.
"""

import math
import sys
from functools import partial

import numpy as np

from hushbid.allocation.contrast.bounds import contrast_lower_bound
from hushbid.allocation.contrast.pieces import Point, Stratum, by_stratum, level_of_many, point_of
from hushbid.allocation.contrast.problem import Scaled
from hushbid.allocation.contrast.sample import proposed_cuts
from hushbid.allocation.goals import Accuracy, Budget, Price
from hushbid.allocation.problem import Allocation, Problem
from hushbid.arrays import FloatArray, IndexArray
from hushbid.errors import MarketError
from hushbid.estimation import Strata

_SELECT_ABOVE = 1 << 15
_SAMPLE = 1 << 13
_SHRINKS = 0.5
"""A cut that leaves more than this share of people is the last one from a sample."""


def solve_contrast(problem: Problem, strata: Strata) -> Allocation:
    """The global optimum of the central problem with strata, for a price, an accuracy or a budget."""
    scaled = Scaled.of(problem, strata)
    people, point = optimum(scaled)
    goal, n = scaled.goal, scaled.costs.size
    paid, bought, sized = 0.0, [], []
    for one, count, moments in zip(people, point.counts, point.moments, strict=True):
        active = one.active(scaled, count)
        sized.append(shares(active, count, moments, point.at))
        bought.append(active.rows[:count])
        paid += point.at * float((sized[-1] * (one.base + active.offset[:count])).sum())  # W, with nothing to cancel
    paid = scaled.half if isinstance(goal, Budget) else paid
    strength = _strength(scaled, point, paid)
    # only who is bought from is written to
    weights, losses, expense = np.zeros(n), np.zeros(n), 0.0
    for sign, rows, share in zip(scaled.signs.tolist(), bought, sized, strict=True):
        weights[rows] = (sign * math.sqrt(scaled.factor / scaled.unit)) * share
        lost = np.where(share > 0.0, math.inf, 0.0) if strength == math.inf else share * strength
        losses[rows] = lost
        expense += _expense(problem.costs[rows], lost)
    mse = scaled.factor * point.mse
    if isinstance(goal, Accuracy):
        mse = goal.number**2
    objective = {"price": goal.number * mse + expense, "accuracy": expense, "budget": mse}[goal.kind]
    return Allocation(
        privacy_loss=losses,
        weights=weights,
        mse=mse,
        objective=objective,
        active=sum(int(np.count_nonzero(share)) for share in sized),
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
    cuts, rows = _few(scaled)
    while True:
        # solve for those below the cuts
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
        rows = _below(scaled, cuts)


def _few(scaled: Scaled) -> tuple[FloatArray, IndexArray]:
    """Cuts, and everybody below them: a sample proposes some, and one of those below them lower ones, while it helps.

    With many strata a sample has few people in each, so that the first cuts are far too high.
    """
    cuts, rows = np.full(scaled.sizes.size, math.inf), None
    size = scaled.costs.size
    while size > 2 * _SAMPLE:
        step = size // _SAMPLE
        sample = np.arange(0, size, step) if rows is None else rows[::step]
        cuts = np.minimum(cuts, proposed_cuts(scaled, sample, step))
        rows = _below(scaled, cuts, rows)
        if rows.size > _SHRINKS * size:
            break
        size = rows.size
    return cuts, _below(scaled, cuts) if rows is None else rows


def _below(scaled: Scaled, cuts: FloatArray, among: IndexArray | None = None) -> IndexArray:
    """Everybody, perhaps ``among`` some, whose cost is finite and no higher than her stratum's cut."""
    if among is None:
        rows = np.flatnonzero(scaled.costs <= min(float(cuts.max()), sys.float_info.max))
    else:
        rows = among
    if float(cuts.min()) < math.inf:
        rows = rows[scaled.costs[rows] <= cuts[scaled.codes[rows]]]
    return rows


def _best_of(scaled: Scaled, rows: IndexArray) -> tuple[list[Stratum], Point]:
    """The best point of these people, and among whom everybody active is."""
    if isinstance(scaled.goal, Price):
        # people who differ in their costs only need not be sorted themselves
        people = by_stratum(scaled, rows, apart=isinstance(scaled.variance, float))
        return people, point_of(scaled, people)
    return level_of_many(scaled, rows)


def _needed(scaled: Scaled, point: Point) -> float:
    """A ``T`` past which there is nothing better, if this point is attained."""
    return scaled.past(point.value) if isinstance(scaled.goal, Price) else point.at


def _reached(scaled: Scaled, people: list[Stratum], point: Point) -> Point:
    """The point, if there is one."""
    if point.at < math.inf:
        return point
    if isinstance(scaled.goal, Budget):
        raise MarketError("Every virtual cost is 0: a budget cannot be spent on people who ask for nothing.")
    raise scaled.unreachable(point.floor, sum(one.rows.size for one in people))
