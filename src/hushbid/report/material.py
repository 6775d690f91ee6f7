"""What a report is made from: an outcome, its release, and what the caller knows besides."""

import math

from hushbid.disclosure import ErrorModel, ReleasePlan, central, local
from hushbid.mechanism import Outcome


def planned_error(outcome: Outcome) -> ErrorModel | None:
    """How far off the estimate of this outcome would be, if everybody delivers; None if nothing was bought."""
    if outcome.active == 0:
        return None
    market = outcome.market
    plan = ReleasePlan.of(
        outcome.privacy_loss,
        setting=market.setting,
        bounds=market.bounds,
        variance=market.stated_variance,
        key="report",
    )
    return central.planned_error(plan) if market.setting == "central" else local.planned_error(plan)


def noise_share(error: ErrorModel | None) -> float:
    """The part of the squared error that is noise added for privacy; the rest comes from asking finitely many."""
    if error is None or not 0.0 < error.mse < math.inf:
        return 0.0
    return min(max(1.0 - error.sampling_variance / error.mse, 0.0), 1.0)
