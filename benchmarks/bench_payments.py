"""Pricing everybody, ``market.acquire``, against ``np.sort`` of the bids, from a thousand people to a million.

From one size to the next the ratio may fall, because few people matter and calls have a fixed cost; it must not jump.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.harness import Row, time_ratio
from hushbid import LogNormal, Market, Uniform

PRIORS = {"uniform": Uniform(1.0, 2.0), "log-normal": LogNormal(0.0, 1.0)}
LIMITS = {"central": 15.0, "local": 5.0}
"""Of a million people."""


def run() -> list[Row]:
    return list(growth())


def growth() -> Iterator[Row]:
    """Both settings at each size."""
    for n, calls in ((10**3, 20), (10**4, 5), (10**5, 1), (10**6, 1)):
        rng = np.random.default_rng(7)
        for name, prior in PRIORS.items():
            bids = prior.sample(n, rng=rng)
            for setting, limit in LIMITS.items():
                market = Market(prior=prior, setting=setting, variance=0.25, buyer_weight=1.0, user_weight=1.0)  # type: ignore[arg-type]
                yield time_ratio(
                    f"acquire, {setting}, {name}, n = {n:.0e}",
                    partial(market.acquire, bids),
                    against="np.sort",
                    theirs=partial(np.sort, bids),
                    limit=limit if n == 10**6 else None,
                    repeats=3,
                    calls=calls,
                )
