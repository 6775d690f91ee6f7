"""What other caps on everybody's privacy loss would have cost: the same optimum, clipped elsewhere.

Clipping keeps the rule truthful. The best estimator for the clipped losses has a larger error, and less is paid; the
objective, error and virtual payments together, can only grow.
"""

import math

import numpy as np

from hushbid.estimation import best_weights
from hushbid.mechanism import Outcome
from hushbid.report.suppression import SMALLEST_CHART

_POINTS = 40
_DEAREST = 0.5
"""Caps that add more than this part of the cost are left out: they would flatten the rest of the curve."""


def cap_curve(outcome: Outcome) -> tuple[tuple[float, float, float], ...]:
    """(cap, standard error, objective), caps ascending to the largest loss without one; empty for too few people."""
    market, allocation = outcome.market, outcome.allocation
    if allocation is None:
        return ()
    used = np.flatnonzero(allocation.privacy_loss > 0.0)
    losses = allocation.privacy_loss[used]
    if used.size < SMALLEST_CHART or not np.isfinite(losses).all():
        return ()
    costs, unit = outcome.virtual_costs[used], market.width**2
    spread = np.asarray(market.stated_variance) / unit
    variance = spread[used] if spread.ndim else float(spread)
    weight = market.error_weight(outcome.reports.size) * unit
    largest = float(losses.max())
    points: list[tuple[float, float, float]] = []
    # from no cap downwards, until it costs too much to be of interest
    for part in np.linspace(1.0, 0.0, _POINTS, endpoint=False).tolist():
        clipped = np.minimum(losses, part * largest)
        mse = float(best_weights(clipped, setting=market.setting, variance=variance).mse)
        objective = weight * mse + float(costs @ clipped)
        if points and objective > (1.0 + _DEAREST) * points[0][2]:
            break
        points.append((part * largest, math.sqrt(mse * unit), objective))
    return tuple(reversed(points))
