"""How far off an estimate may be, for those who may know who delivered, and for everybody else.

Staff see who dropped out, so they see the interval for what was delivered. Everybody else sees one that holds as well,
but is too coarse to tell who dropped out (`hushbid.disclosure.error.published_half_width`).
"""

import math
from typing import Any

from hushbid.disclosure import Release
from hushbid.disclosure.error import FEWEST_PEOPLE, published_half_width

LEVEL = 0.95


def shown_release(release: Release) -> dict[str, Any]:
    """What is stored to be shown: for everybody, and under ``staff`` what only staff may see.

    ``half_width`` is for everybody and ``delivered_half_width`` for staff, each with the level at which it holds; its
    value is None where the interval would be as wide as the range or wider. Where fewer than `FEWEST_PEOPLE` were
    bought from, none is for everybody: it would tell what one of them reported.
    """
    low, high = release.bounds
    public = published_half_width(planned=release.planned_error, delivered=release.error, width=high - low, level=LEVEL)
    # of few, the width would tell a report
    if release.bought_from < FEWEST_PEOPLE:
        public = math.inf
    return {
        **release.public(),
        "half_width": _margin(public),
        "staff": {"delivered_half_width": _margin(release.error.half_width(LEVEL))},
    }


def _margin(half_width: float) -> dict[str, float | None]:
    return {"level": LEVEL, "value": half_width if math.isfinite(half_width) else None}
