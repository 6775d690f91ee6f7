"""Which attacks to run on a decided campaign, in sizes that fit its number of people."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from hushbid.audit import check_accuracy, check_privacy
from hushbid.disclosure import ReleasePlan, central, local
from hushbid.errors import MissingExtra
from hushbid.mechanism import Outcome

CHECKS = ("incentives", "privacy", "accuracy")
_CELLS = 10_000_000
_SEED = 20260


def audits_of(
    outcome: Outcome, *, checks: tuple[str, ...] = CHECKS, samples: int = 20_000, seed: int = _SEED
) -> Iterator[Any]:
    """The results of the checks asked for. Simulations use made-up data only, never anybody's."""
    rng = np.random.default_rng(seed)
    plan = _plan_of_buyers(outcome)
    try:
        if "privacy" in checks and plan is not None:
            yield check_privacy(plan, user=int(np.argmax(plan.delivered)), samples=samples)
        if "accuracy" in checks and plan is not None:
            repetitions = max(100, min(2000, _CELLS // plan.people))
            yield check_accuracy(plan, rng=rng, repetitions=repetitions)
    except MissingExtra:
        return


def noise_share(outcome: Outcome) -> float:
    """The part of the squared error that is noise added for privacy."""
    plan = _plan_of_buyers(outcome)
    if plan is None:
        return 0.0
    error = central.planned_error(plan) if plan.setting == "central" else local.planned_error(plan)
    return 1.0 - error.sampling_variance / error.mse


def _plan_of_buyers(outcome: Outcome) -> ReleasePlan | None:
    """The promises to those who are bought from; None if one of them is unlimited, so that there is no noise."""
    bought = outcome.privacy_loss > 0.0
    losses = outcome.privacy_loss[bought]
    if losses.size == 0 or not math.isfinite(losses.max()):
        return None
    variance = np.broadcast_to(np.asarray(outcome.market.stated_variance, dtype=float), bought.shape)[bought]
    return ReleasePlan.of(
        losses, setting=outcome.market.setting, bounds=outcome.market.bounds, variance=variance, label="audit"
    )
