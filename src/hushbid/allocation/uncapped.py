"""The central optimum in closed form where no cap binds: any strata and variances, every goal."""

import math

import numpy as np

from hushbid.allocation.central_problem import CentralProblem, Purchase
from hushbid.allocation.cut import optimum
from hushbid.allocation.pieces import shares


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
