"""From a plan and data to the one release that is ever drawn under its key, and to simulations that never are one.

Under which key an estimate is drawn once is for the caller to say: a campaign server takes the campaign's name. What
`hushbid.release` and the command line do, who have no such name, is in `hushbid.disclosure.once`.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hushbid.arrays import BoolArray, FloatArray, as_column, rows_text
from hushbid.disclosure import central, local, noise
from hushbid.disclosure.claims import drawn_once, stored
from hushbid.disclosure.message import PrivatizedValue
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.release import Release
from hushbid.errors import AlreadyReleased, InfiniteLoss, InputError, NothingDelivered
from hushbid.estimation import best_weights, is_central

_BLOCK = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Data that were found to be in order; only the drawing is left."""

    draw: Callable[[], Release]
    forms: Callable[[], list[bytes | None]]
    """A form of everybody's datum in which two can be compared; None where nothing was asked for or delivered."""


_drawn: dict[str, Path | None] = {}
"""Keys of everything that this process has drawn; with the folder in which it is still to be stored, if it is."""
_drawn_lock = threading.Lock()


def release_plan(
    plan: ReleasePlan, data: object, *, claims: str | Path | None = None, accept_infinite_loss: bool = False
) -> Release:
    """Draw the estimate of a plan: once under its key.

    ``data`` holds one entry per person in the plan's order, None or NaN where it is missing: numbers in the central
    setting, messages made by ``privatize`` in the local one. Values outside the range are clamped and counted.

    With ``claims``, a folder, the release is stored there before it is returned; asking again, in any process, returns
    that one, whatever data are passed. Without, this process remembers, and asking again raises ``AlreadyReleased``.

    If somebody's planned loss is infinite the release is refused, unless ``accept_infinite_loss`` is true. Then, in the
    central setting, the estimate is the mean of those people's data alone (weighted by precision), without noise; in
    the local setting their messages carry none.
    """
    if claims is None:
        return draw_first(plan.key, prepare(plan, data, accept_infinite_loss).draw)
    # a stored one is returned before data are looked at
    found = stored(Path(claims), plan.key)
    if found is None:
        folder, draw = Path(claims).resolve(), prepare(plan, data, accept_infinite_loss).draw
        found = drawn_once(folder, plan.key, lambda: draw_first(plan.key, draw, folder).to_dict())
    release = Release.from_dict(found)
    was_shown(plan.key)
    return release


def simulate_plan(plan: ReleasePlan, data: object, repetitions: int) -> FloatArray:
    """Estimates as ``repetitions`` independent releases would give them, for study on made-up data.

    The noise path is the release's own, but nothing is claimed, stored or remembered, and the average of the result is
    not private at all: never call this with data that somebody was promised privacy for. ``data`` are numbers in both
    settings; in the local one everybody's noise is drawn anew each time.
    """
    if repetitions < 0:
        raise InputError(f"repetitions must not be negative, got {repetitions}.", field="repetitions")
    column, present = _who_delivered(plan, data)
    if is_central(plan.setting):
        summed = central.weigh(plan, present)
        return np.array(summed.estimates([summed.total(column)] * repetitions), dtype=np.float64)
    rows = np.flatnonzero(present)
    losses, values = plan.delivered[rows], column[rows]
    weights = best_weights(losses, setting="local", variance=plan.unit_variance[rows]).weights
    # many repetitions per call, as many as fit
    at_once = max(1, _BLOCK // rows.size)
    estimates = []
    for start in range(0, repetitions, at_once):
        times = min(at_once, repetitions - start)
        noisy = local.simulate_privatized(np.tile(values, times), np.tile(losses, times), plan.bounds)
        estimates.append(noisy.reshape(times, rows.size) @ weights)
    return np.concatenate(estimates) if estimates else np.empty(0)


def prepare(
    plan: ReleasePlan, data: object, accept_infinite_loss: bool = False, *, simulated: bool = False
) -> Prepared:
    """Validate everything and check every promise; what is returned only has to draw.

    ``simulated`` data are numbers in the local setting too, to which the noise of a device is added when drawing.
    """
    # without any noise only if somebody says so
    unlimited = plan.delivered == math.inf
    if unlimited.any() and not accept_infinite_loss:
        raise InfiniteLoss(
            f"The privacy loss is infinite for {rows_text(unlimited)}: pass accept_infinite_loss=True to use such"
            " people's data without any noise."
        )
    if is_central(plan.setting):
        return _prepare_central(plan, data)
    return _prepare_simulated(plan, data) if simulated else _prepare_local(plan, data)


def _prepare_central(plan: ReleasePlan, data: object) -> Prepared:
    column, present = _who_delivered(plan, data)
    summed = central.weigh(plan, present)
    total = summed.total(column)
    low, high = plan.bounds
    used = column[present]
    facts: dict[str, Any] = {
        "privacy_loss": summed.privacy_loss,
        "error": summed.error,
        "planned_error": central.planned_error(plan),
        "grid": summed.grid,
        "check": summed.check,
        "clamped": int(np.count_nonzero((used < low) | (used > high))),
        "dropped_out": _dropped_out(plan, present),
    }
    return Prepared(
        draw=lambda: _release(plan, estimate=summed.estimates([total])[0], **facts),
        forms=lambda: number_forms(column, present),
    )


def _prepare_local(plan: ReleasePlan, data: object) -> Prepared:
    messages = local.read_messages(plan, data)
    present = np.array([message is not None for message in messages])
    _refuse_nobody(plan, present)
    combined = local.combine(plan, messages)
    release = _release(
        plan,
        estimate=combined.estimate,
        privacy_loss=combined.privacy_loss,
        error=combined.error,
        planned_error=local.planned_error(plan),
        grid=combined.grid,
        check=combined.check,
        clamped=0,
        dropped_out=_dropped_out(plan, present),
    )
    return Prepared(draw=lambda: release, forms=lambda: [message_form(message) for message in messages])


def _prepare_simulated(plan: ReleasePlan, data: object) -> Prepared:
    column, present = _who_delivered(plan, data)

    def draw() -> Release:
        messages: list[PrivatizedValue | None] = [None] * plan.people
        for row in np.flatnonzero(present).tolist():
            loss = float(plan.delivered[row])
            messages[row] = local.privatize(float(column[row]), loss, plan.bounds, accept_infinite_loss=True)
        return _prepare_local(plan, messages).draw()

    return Prepared(draw=draw, forms=lambda: number_forms(column, present))


def number_forms(column: FloatArray, present: BoolArray) -> list[bytes | None]:
    """The numbers of those who delivered, to the last bit."""
    content = (column + 0.0).astype("<f8").tobytes()
    return [content[8 * row : 8 * row + 8] if there else None for row, there in enumerate(present.tolist())]


def message_form(message: PrivatizedValue | None) -> bytes | None:
    """A message, however it was written."""
    return None if message is None else message.to_json().encode()


def _release(plan: ReleasePlan, **facts: Any) -> Release:
    versions = {"hushbid": version("hushbid")}
    if is_central(plan.setting):
        versions["opendp"] = noise.sampler_version()
    return Release(setting=plan.setting, bounds=plan.bounds, key=plan.key, versions=versions, **facts)


def _who_delivered(plan: ReleasePlan, data: object) -> tuple[FloatArray, BoolArray]:
    """The data as floats, and whose are there and needed. People with a zero loss have nothing to deliver."""
    column = as_column(data, needed=plan.delivered > 0)
    present = (plan.delivered > 0) & ~np.isnan(column)
    _refuse_nobody(plan, present)
    return column, present


def _refuse_nobody(plan: ReleasePlan, present: BoolArray) -> None:
    if not present.any():
        asked = np.count_nonzero(plan.delivered > 0)
        raise NothingDelivered(f"None of the {asked} people with a positive privacy loss delivered data.")


def _dropped_out(plan: ReleasePlan, present: BoolArray) -> tuple[int, ...]:
    return tuple(np.flatnonzero((plan.delivered > 0) & ~present).tolist())


def was_shown(key: str) -> None:
    """Remember that this process has seen what is stored under a key."""
    with _drawn_lock:
        _drawn[key] = None


def draw_first(key: str, draw: Callable[[], Release], folder: Path | None = None) -> Release:
    """Draw, unless this process has. A drawing that failed was shown to nobody and does not count.

    One that could not be stored may be repeated for the same folder only, where its draft may still be found.
    """
    with _drawn_lock:
        # noted before drawing: of two threads one draws
        known = key in _drawn
        if known and (folder is None or _drawn[key] != folder):
            raise AlreadyReleased(
                "This was released before, and an estimate is drawn once; with a claims folder, asking again returns"
                " what is stored. Another question to the same people has its own text."
            )
        _drawn[key] = folder
    try:
        return draw()
    except BaseException:
        if not known:
            with _drawn_lock:
                del _drawn[key]
        raise
