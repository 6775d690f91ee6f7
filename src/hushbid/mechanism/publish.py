"""From an outcome and data to the one estimate."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from hushbid.arrays import FloatArray
from hushbid.disclosure import Release, ReleasePlan, release_once, simulate_plan
from hushbid.errors import NothingDelivered
from hushbid.mechanism.market import Outcome


def release(
    outcome: Outcome,
    data: object,
    *,
    question: str = "",
    wave: int = 1,
    ids: Iterable[object] | None = None,
    claims: str | Path | None = None,
    accept_infinite_loss: bool = False,
) -> Release:
    """Release the estimate an outcome paid for: once, with exactly the promised privacy.

    ``data`` has one value per person (None or NaN: did not deliver); in the local setting, what each device sent.
    ``question`` says what is asked, and ``ids``, one per person, of whom, none missing or repeated; without ids people
    are known by their data.
    The same question to the same people has one answer, whatever else changes; ``wave=2`` asks them again, later.

    With ``claims``, a folder, asking again with the same promises and data returns the stored release, also after a
    crash; data that came too late are not used, and those people stay among ``dropped_out``. Without it this process
    remembers, and nothing else does: asking again raises.
    """
    return release_once(
        plan_of(outcome),
        data,
        question=question,
        wave=wave,
        ids=ids,
        claims=claims,
        accept_infinite_loss=accept_infinite_loss,
    ).release


def simulate_releases(outcome: Outcome, data: object, repetitions: int) -> FloatArray:
    """Estimates from so many independent draws of the same noise, on made-up data only: two of them are not private."""
    return simulate_plan(plan_of(outcome), data, repetitions)


def plan_of(outcome: Outcome, *, from_engine: bool = False) -> ReleasePlan:
    """The promises of an outcome, without reports and payments."""
    if outcome.active == 0:
        raise NothingDelivered("Nothing was bought, so there is nothing to release.")
    return ReleasePlan.of(
        outcome.privacy_loss,
        setting=outcome.market.setting,
        bounds=outcome.market.bounds,
        variance=outcome.market.stated_variance,
        key=outcome_key(outcome),
        from_engine=from_engine,
    )


def outcome_key(outcome: Outcome) -> str:
    """The content hash of an outcome, by which a record says that its release belongs to it."""
    head = {"outcome": 1, "market": outcome.market.to_dict(), "people": int(outcome.reports.size)}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True, allow_nan=False).encode())
    for column in outcome.columns().values():
        digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return digest.hexdigest()
