"""A private mean for given privacy losses, without a market: the estimators of [F] Theorems 1 and 2."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushbid.common.arrays import as_bounds
from hushbid.disclosure.ledger.once import release_once, release_synthetic
from hushbid.disclosure.promises import ReleasePlan
from hushbid.disclosure.release import Release
from hushbid.estimation import WORST_VARIANCE, Setting, best_weights, is_central


def private_mean(
    data: object,
    privacy_loss: ArrayLike,
    *,
    bounds: tuple[float, float],
    question: str,
    variance: ArrayLike | None = None,
    setting: Setting = "central",
    wave: int = 1,
    ids: Iterable[object] | None = None,
    ledger: str | Path | None = None,
    accept_infinite_loss: bool = False,
    synthetic: bool = False,
) -> Release:
    """Estimate the mean of people's data so that person i loses at most ``privacy_loss[i]`` of privacy.

    ``data`` has one value per person in ``bounds`` (None or NaN: did not deliver); in the local setting, what each
    device sent with `privatize`. ``variance`` is at most that of the data, in squared data units, by default the
    largest that the bounds allow. The estimate is drawn once, as `hushbid.release` does; with ``synthetic`` data it is
    drawn at every call, of numbers in both settings, and nothing is kept.

    >>> release = private_mean([3.0, 4.0, 9.0], [1.0, 1.0, 50.0], bounds=(0, 10), question="demo", synthetic=True)
    >>> release.privacy_loss
    array([1., 1., 5.])
    """
    low, high = as_bounds(bounds)
    delivered = None
    if is_central(setting):  # nobody is listened to more than pays
        stated = WORST_VARIANCE if variance is None else np.asarray(variance, dtype=np.float64) / (high - low) ** 2
        delivered = best_weights(privacy_loss, setting="central", variance=stated).delivered
    plan = ReleasePlan.of(
        privacy_loss, setting=setting, bounds=(low, high), delivered=delivered, variance=variance, label=question
    )
    asked: dict[str, Any] = {"question": question, "wave": wave, "ids": ids, "ledger": ledger}
    if synthetic:
        return release_synthetic(plan, data, **asked, accept_infinite_loss=accept_infinite_loss, simulated=True).release
    return release_once(plan, data, **asked, accept_infinite_loss=accept_infinite_loss).release
