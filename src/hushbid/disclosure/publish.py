"""From a plan and data to the one release that is ever drawn, and to simulations that never are one."""

import math
import threading
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.disclosure import central, local, noise
from hushbid.disclosure.claims import drawn_once, stored
from hushbid.disclosure.plan import ReleasePlan, as_column, rows_text
from hushbid.disclosure.release import Release
from hushbid.errors import AlreadyReleased, InfiniteLoss, InputError, NothingDelivered
from hushbid.estimation import FloatArray, best_weights, is_central

_BLOCK = 200_000

_drawn: dict[str, Path | None] = {}
"""Keys of everything that this process has drawn; with the folder in which it is still to be stored, if it is."""
_drawn_lock = threading.Lock()


def release_plan(
    plan: ReleasePlan, data: object, *, claims: str | Path | None = None, accept_infinite_loss: bool = False
) -> Release:
    """Draw the estimate of a plan: once.

    ``data`` holds one entry per person in the plan's order, None or NaN where it is missing: numbers in the central
    setting, messages made by ``privatize`` in the local one. Values outside the range are clamped and counted.

    With ``claims``, a folder, the release is stored there before it is returned; asking again, in any process, returns
    that one, whatever data are passed. Without, this process remembers, and asking again raises ``AlreadyReleased``.

    If somebody's planned loss is infinite the release is refused, unless ``accept_infinite_loss`` is true. Then, in the
    central setting, the estimate is the mean of those people's data alone (weighted by precision), without noise; in
    the local setting their messages carry none.
    """
    if claims is None:
        return _draw_first(plan.key, _prepare(plan, data, accept_infinite_loss))
    found = stored(Path(claims), plan.key)
    if found is None:
        folder, draw = Path(claims).resolve(), _prepare(plan, data, accept_infinite_loss)
        found = drawn_once(folder, plan.key, lambda: _draw_first(plan.key, draw, folder).to_dict())
    release = Release.from_dict(found)
    with _drawn_lock:
        _drawn[plan.key] = None
    return release


def simulate_plan(plan: ReleasePlan, data: object, repetitions: int) -> FloatArray:
    """Estimates as ``repetitions`` independent releases would give them, for study on made-up data.

    The noise path is the release's own, but nothing is claimed, stored or remembered, and the average of the result is
    not private at all: never call this with data that somebody was promised privacy for. ``data`` are numbers in both
    settings; in the local one everybody's noise is drawn anew each time.
    """
    if repetitions < 0:
        raise InputError(f"repetitions must not be negative, got {repetitions}.")
    column, present = _who_delivered(plan, data)
    if is_central(plan.setting):
        summed = central.weigh(plan, present)
        return np.array(summed.estimates([summed.total(column)] * repetitions), dtype=np.float64)
    rows = np.flatnonzero(present)
    losses, values = plan.delivered[rows], column[rows]
    weights = best_weights(losses, setting="local", variance=plan.unit_variance[rows]).weights
    at_once = max(1, _BLOCK // rows.size)
    estimates = []
    for start in range(0, repetitions, at_once):
        times = min(at_once, repetitions - start)
        noisy = local.simulate_privatized(np.tile(values, times), np.tile(losses, times), plan.bounds)
        estimates.append(noisy.reshape(times, rows.size) @ weights)
    return np.concatenate(estimates) if estimates else np.empty(0)


def _prepare(plan: ReleasePlan, data: object, accept_infinite_loss: bool) -> Callable[[], Release]:
    """Validate everything and check every promise; what is returned only has to draw."""
    unlimited = plan.delivered == math.inf
    if unlimited.any() and not accept_infinite_loss:
        raise InfiniteLoss(
            f"The privacy loss is infinite for {rows_text(unlimited)}: pass accept_infinite_loss=True to use such"
            " people's data without any noise."
        )
    return _prepare_central(plan, data) if is_central(plan.setting) else _prepare_local(plan, data)


def _prepare_central(plan: ReleasePlan, data: object) -> Callable[[], Release]:
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

    def draw() -> Release:
        return _release(plan, estimate=summed.estimates([total])[0], **facts)

    return draw


def _prepare_local(plan: ReleasePlan, data: object) -> Callable[[], Release]:
    messages = local.read_messages(plan, data)
    present = np.array([message is not None for message in messages])
    _refuse_nobody(plan, present)
    combined = local.combine(plan, messages)

    def draw() -> Release:
        return _release(
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

    return draw


def _release(plan: ReleasePlan, **facts: Any) -> Release:
    versions = {"hushbid": version("hushbid")}
    if is_central(plan.setting):
        versions["opendp"] = noise.sampler_version()
    return Release(setting=plan.setting, bounds=plan.bounds, key=plan.key, versions=versions, **facts)


def _who_delivered(plan: ReleasePlan, data: object) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The data as floats, and whose are there and needed. People with a zero loss have nothing to deliver."""
    column = as_column(data, needed=plan.delivered > 0)
    present = (plan.delivered > 0) & ~np.isnan(column)
    _refuse_nobody(plan, present)
    return column, present


def _refuse_nobody(plan: ReleasePlan, present: NDArray[np.bool_]) -> None:
    if not present.any():
        asked = np.count_nonzero(plan.delivered > 0)
        raise NothingDelivered(f"None of the {asked} people with a positive privacy loss delivered data.")


def _dropped_out(plan: ReleasePlan, present: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(np.flatnonzero((plan.delivered > 0) & ~present).tolist())


def _draw_first(key: str, draw: Callable[[], Release], folder: Path | None = None) -> Release:
    """Draw, unless this process has. A drawing that failed was shown to nobody and does not count.

    One that could not be stored may be repeated for the same folder only, where its draft may still be found.
    """
    with _drawn_lock:
        known = key in _drawn
        if known and (folder is None or _drawn[key] != folder):
            raise AlreadyReleased(
                "This plan has been released before, and an estimate is drawn once; with a claims folder, asking again"
                " returns the stored release."
            )
        _drawn[key] = folder
    try:
        return draw()
    except BaseException:
        if not known:
            with _drawn_lock:
                del _drawn[key]
        raise
