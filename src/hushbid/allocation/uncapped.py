"""The central optimum without caps, as an allocation: any strata and variances, every goal."""

import math
from functools import partial

import numpy as np

from hushbid.allocation.central_bounds import uncapped_lower_bound
from hushbid.allocation.central_problem import CentralProblem
from hushbid.allocation.cut import optimum
from hushbid.allocation.pieces import Point, shares
from hushbid.allocation.problem import Allocation


def solve_uncapped(problem: CentralProblem) -> Allocation:
    """Return the global optimum of the central problem; caps are not looked at."""
    form = problem.form
    strata, point = optimum(problem)
    active = list(zip(strata, point.counts, strict=True))
    rows = np.concatenate([one.rows[:count] for one, count in active])
    share = np.concatenate(
        [shares(one, count, moments, point.at) for (one, count), moments in zip(active, point.moments, strict=True)]
    )
    costs = np.concatenate([one.base + one.offset[:count] for one, count in active])
    total = sum_of_losses(problem, point, point.at * float((share * costs).sum()))  # W, with nothing to cancel
    weights, losses = np.zeros(problem.costs.size), np.zeros(problem.costs.size)
    weights[rows] = np.repeat(form.signs, point.counts) * form.weight * share
    loss = np.where(share > 0.0, math.inf, 0.0) if total == math.inf else share * (total / math.sqrt(form.unit))
    losses[rows] = loss
    stated = problem.stated[rows]
    expense = float((stated[stated > 0.0] * loss[stated > 0.0]).sum())
    noise = 2.0 / total / total if point.at == 0.0 else 0.0
    mse = float(form.target.reported_error(np.asarray(form.factor * (point.mse + noise))))
    implied = 0.5 * total * point.at * form.money / form.factor if point.at > 0.0 else 0.0
    return Allocation(
        privacy_loss=losses,
        weights=weights,
        mse=mse,
        objective=form.target.objective(mse, expense),
        active=int(np.count_nonzero(share)),
        setting="central",
        error_weight=form.target.price_of_error(implied),
        _certify=partial(uncapped_lower_bound, problem),
    )


def sum_of_losses(problem: CentralProblem, point: Point, paid: float) -> float:
    """Return ``T/σ``, what all losses add up to in normal units."""
    if point.at == 0.0:  # nobody is paid, and the noise is what the target leaves
        return float(problem.form.target.free_total(np.asarray(point.floor)))
    return point.at / float(problem.form.target.step(np.asarray(point.at), np.asarray(paid)))
