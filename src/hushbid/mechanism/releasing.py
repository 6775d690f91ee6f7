"""From an outcome and data to the one estimate: its promises, without bids and payments, and its release."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.allocation import HardBudget
from hushbid.common.arrays import BoolArray, FloatArray
from hushbid.disclosure import Release, ReleasePlan, release_once
from hushbid.disclosure.ledger.once import simulate_synthetic
from hushbid.disclosure.promises import about
from hushbid.errors import NothingDelivered
from hushbid.mechanism.market import OUTCOME_VERSION, Outcome


def release(
    outcome: Outcome,
    data: object,
    *,
    question: str,
    wave: int = 1,
    ids: Iterable[object] | None = None,
    ledger: str | Path | None = None,
    accept_infinite_loss: bool = False,
) -> Release:
    """Release the estimate an outcome paid for, or a survey's answers: once, with exactly the promised privacy.

    ``data`` has one value per person (None or NaN: did not deliver); in the local setting, what each device sent. Of a
    survey it is columns by the questions' names, or one row per person with an answer to each question in their order;
    who left one open did not deliver.
    ``question`` says what is asked, and ``ids``, one per person, of whom, none missing or repeated; without ids people
    are known by their data.
    The same question to the same people has one answer, whatever else changes; ``wave=2`` asks them again, later.

    The release is stored before it is returned, in the release ledger: the folder ``ledger``, or else the one that
    ``HUSHBID_LEDGER`` names, or else the user's. Asking again with the same promises and data returns the stored
    release, in any process; data that came too late are not used, and those people stay among ``dropped_out``.
    To draw repeatedly from synthetic data, use `simulate_releases`.
    """
    return release_once(
        plan_of(outcome),
        data,
        question=question,
        wave=wave,
        ids=ids,
        ledger=ledger,
        accept_infinite_loss=accept_infinite_loss,
    ).release


def simulate_releases(
    outcome: Outcome, synthetic_data: object, repetitions: int, *, ledger: str | Path | None = None
) -> FloatArray:
    """Return estimates from so many independent draws of the same noise, of synthetic people only.

    Two draws are not private, so an outcome whose privacy losses the release ledger knows from a real release is
    refused, and so are data that it knows: make another outcome, from simulated bids. ``synthetic_data`` are numbers
    in both settings. Of a survey each estimate is a row: the values of all questions, in their order, one for each
    answer of a choice.
    """
    return simulate_synthetic(plan_of(outcome), synthetic_data, repetitions, ledger=ledger)


def plan_of(
    outcome: Outcome, *, key: str | None = None, rows: BoolArray | None = None, from_engine: bool = False
) -> ReleasePlan:
    """The promises of an outcome, to all or to those in ``rows``, without bids and payments.

    The one release is kept under ``key``, by default the outcome's own.
    """
    if outcome.active == 0:
        raise NothingDelivered("Nothing was bought, so there is nothing to release.")
    market, losses, variance = outcome.market, outcome.privacy_loss, outcome.population.own_errors()
    # a shared menu may promise more than the best estimate uses
    used = outcome.population.used(losses) if isinstance(market.goal, HardBudget) else losses
    strata = market.stratified
    return ReleasePlan.of(
        losses if rows is None else losses[rows],
        setting=market.setting,
        delivered=used if rows is None else used[rows],
        **about(market.survey, market.layout, market.bounds, variance if rows is None else variance[rows]),
        strata=strata if strata is None or rows is None else strata.of(np.flatnonzero(rows)),
        key=outcome_key(outcome) if key is None else key,
        from_engine=from_engine,
        relation=outcome.population.relation,
    )


def outcome_key(outcome: Outcome) -> str:
    """The content hash of an outcome, by which a record says that its release belongs to it."""
    return key_of(outcome.market.to_dict(), outcome.bids.size, outcome.columns().values())


def key_of(market: Mapping[str, Any], people: int, columns: Iterable[FloatArray]) -> str:
    """Return the same from a market's plain values and the columns, each whole or in parts."""
    head = {"outcome": OUTCOME_VERSION, "market": market, "people": people}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True, allow_nan=False).encode())
    for column in columns:
        digest.update(np.ascontiguousarray(column, dtype="<f8").tobytes())
    return digest.hexdigest()
