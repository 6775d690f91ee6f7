"""The central optimum as an allocation: any goal, strata, caps and variances.

If nobody's loss without caps exceeds their cap, the closed form (:mod:`hushbid.allocation.pieces`) is the answer;
otherwise it is where the search of the frontier begins (:mod:`hushbid.allocation.capped`).
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from hushbid.allocation.capped import best_purchase
from hushbid.allocation.central_bounds import lower_bound
from hushbid.allocation.central_problem import CentralProblem, Purchase
from hushbid.allocation.cut import optimum
from hushbid.allocation.pieces import shares
from hushbid.allocation.problem import Allocation
from hushbid.errors import MarketError


def solve(problem: CentralProblem) -> Allocation:
    """Return the global optimum of the central problem."""
    purchase = None
    try:
        purchase = uncapped_purchase(problem)
    except MarketError:  # not even without caps: what is refused, and in which words, depends on them
        if not problem.capped:
            raise
    if purchase is not None:
        found = _allocation(replace(problem, caps=np.broadcast_to(math.inf, problem.caps.shape)), purchase)
        if bool((found.privacy_loss[purchase.rows] <= problem.caps[purchase.rows]).all()):
            return found
    return _allocation(problem, best_purchase(problem, purchase))


def uncapped_purchase(problem: CentralProblem) -> Purchase:
    """Return the best purchase if nobody had a cap; refused where even then nothing reaches the goal."""
    form = problem.form
    strata, point = optimum(problem)
    active = list(zip(strata, point.counts, strict=True))
    rows = np.concatenate([one.rows[:count] for one, count in active])
    share = np.concatenate(
        [shares(one, count, moments, point.at) for (one, count), moments in zip(active, point.moments, strict=True)]
    )
    if point.at == 0.0:  # nobody is paid, and the noise is what the target leaves
        total = float(form.target.free_total(np.asarray(point.floor)))
    else:
        costs = np.concatenate([one.base + one.offset[:count] for one, count in active])
        paid = point.at * float((share * costs).sum())  # W, with nothing to cancel
        total = point.at / float(form.target.step(np.asarray(point.at), np.asarray(paid)))
    losses = np.where(share > 0.0, math.inf, 0.0) if total == math.inf else share * (total / math.sqrt(form.unit))
    return Purchase(rows, losses, 0.5 * total * point.at if point.at > 0.0 else 0.0)


def _allocation(problem: CentralProblem, purchase: Purchase) -> Allocation:
    """Return a purchase with weights and error; nobody's loss is raised so that strata fit together."""
    form, rows, losses = problem.form, purchase.rows, purchase.losses
    codes, sizes, variances = problem.codes[rows], np.abs(problem.strata.weights), problem.variances[rows]
    noiseless = bool((losses == math.inf).any())
    if noiseless:  # what is bought from others then changes nothing
        losses = np.where(losses == math.inf, math.inf, 0.0)
    shares = np.where(losses == math.inf, 1.0 / variances, 0.0) if noiseless else losses
    given = np.bincount(codes, weights=shares, minlength=sizes.size)
    noise = 0.0
    if not noiseless:
        strength = float((given / sizes).min())
        noise = 2.0 / strength / strength
        if sizes.size > 1:
            losses = np.minimum(losses * (strength * sizes / given)[codes], losses)
    weights = shares * sizes[codes] / given[codes]
    mse = noise + float((variances * weights * weights).sum())
    mse = float(form.target.reported_error(np.asarray(mse)))
    stated = problem.stated[rows]
    paid = (stated > 0.0) & (losses > 0.0)
    expense = float((stated[paid] * losses[paid]).sum())
    found = np.zeros((2, problem.costs.size))
    found[:, rows] = losses, form.signs[codes] * weights
    return Allocation(
        privacy_loss=found[0],
        weights=found[1],
        mse=mse,
        objective=form.target.objective(mse, expense),
        active=int(np.count_nonzero(losses)),
        setting="central",
        error_weight=form.target.price_of_error(purchase.worth * form.money / form.factor),
        _certify=partial(lower_bound, problem),
    )
