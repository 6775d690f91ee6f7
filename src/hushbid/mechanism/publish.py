"""From an outcome and data to the one estimate."""

import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hushbid.disclosure import Release, ReleasePlan, release_plan, simulate_plan
from hushbid.errors import NothingDelivered
from hushbid.mechanism.outcome import Outcome


def release(
    outcome: Outcome,
    data: object,
    *,
    claims: str | Path | None = None,
    accept_infinite_loss: bool = False,
) -> Release:
    """Release the estimate an outcome paid for: once, with exactly the promised privacy.

    ``data`` has one value per person (None or NaN: did not deliver); in the local setting, what each device sent. With
    ``claims``, a folder, asking again returns the stored release, also after a crash; without it a second call raises.
    """
    return release_plan(plan_of(outcome), data, claims=claims, accept_infinite_loss=accept_infinite_loss)


def simulate_releases(outcome: Outcome, data: object, repetitions: int) -> NDArray[np.float64]:
    """Estimates from so many independent draws of the same noise, on made-up data only: two of them are not private."""
    return simulate_plan(plan_of(outcome), data, repetitions)


def plan_of(outcome: Outcome) -> ReleasePlan:
    """The promises of an outcome, without reports and payments."""
    if outcome.active == 0:
        raise NothingDelivered("Nothing was bought, so there is nothing to release.")
    return ReleasePlan.of(
        outcome.privacy_loss,
        setting=outcome.market.setting,
        bounds=outcome.market.bounds,
        variance=outcome.market.stated_variance,
        key=outcome_key(outcome),
    )


def outcome_key(outcome: Outcome) -> str:
    """The content hash of an outcome: what a claim on its one release is keyed by."""
    head = {"outcome": 1, "market": outcome.market.to_dict(), "people": int(outcome.reports.size)}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True, allow_nan=False).encode())
    for column in outcome.columns().values():
        digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return digest.hexdigest()
