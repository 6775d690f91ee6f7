"""Pricing everybody, ``market.acquire``, against ``np.sort`` of the bids; its growth; the paper's mesh method.

For an accuracy and a budget it is measured against a price of the error, at the same point of the frontier.
"""

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Row, time_ratio
from experiments.paper_figures.mesh_payments import mesh_payments
from hushbid import Accuracy, Budget, LogNormal, Market, Price, Uniform, allocate
from hushbid.common.arrays import FloatArray

PRIORS = {"uniform": Uniform(1.0, 2.0), "log-normal": LogNormal(0.0, 1.0)}
LIMITS = {("central", "uniform"): 15.0, ("central", "log-normal"): 45.0, ("local", "uniform"): 5.0}
GOAL_LIMIT = 1.5
VARIANCE = 0.25
ACCURACY = 1e-2


def run() -> list[Row]:
    return [*large(), *goals(), *growth(), *mesh()]


def large() -> Iterator[Row]:
    for setting in ("central", "local"):
        for name, bids in populations(10**6):
            yield time_ratio(
                f"acquire, {setting}, {name}, n = 1e+06",
                partial(market(setting, name).acquire, bids),
                against="np.sort",
                theirs=sort(bids),
                limit=LIMITS.get((setting, name)),
            )


def goals(sizes: tuple[int, ...] = (10**6, 10**7), *, repeats: int = 3) -> Iterator[Row]:
    """All payments for an accuracy and for a budget, where the price optimum is."""
    for n in sizes:
        for name, bids in populations(n):
            priced = Market(prior=PRIORS[name], variance=VARIANCE, goal=Price(1.0), user_weight=0.0)
            found = priced.acquire(bids)
            amount = float(found.virtual_costs @ found.privacy_loss)
            for goal in (Accuracy(found.mse**0.5), Budget(amount)):
                yield time_ratio(
                    f"acquire, {goal.kind}, {name}, n = {n:.0e}",
                    partial(Market(prior=PRIORS[name], variance=VARIANCE, goal=goal).acquire, bids),
                    against="the same, price",
                    theirs=partial(priced.acquire, bids),
                    limit=GOAL_LIMIT,
                    repeats=repeats,
                )


def growth() -> Iterator[Row]:
    """The same from a thousand people on: the ratio to a sort falls, because few matter and calls have a fixed cost."""
    for n, calls in ((10**3, 20), (10**4, 5), (10**5, 1)):
        for setting in ("central", "local"):
            for name, bids in populations(n):
                yield time_ratio(
                    f"acquire, {setting}, {name}, n = {n:.0e}",
                    partial(market(setting, name).acquire, bids),
                    against="np.sort",
                    theirs=sort(bids),
                    repeats=3,
                    calls=calls,
                )


def mesh() -> Iterator[Row]:
    """Everybody's payment among 200 people: time, and how far the mesh is off."""
    name, bids = next(populations(200))
    for setting in ("central", "local"):
        market(setting, name).acquire(bids)  # the first one warms up
        ours, our_seconds = timed(partial(market(setting, name).acquire, bids))
        rule = partial(allocate, setting=setting, variance=VARIANCE)
        theirs, their_seconds = timed(
            partial(mesh_payments, bids, prior=PRIORS[name], rule=rule, variance=VARIANCE, accuracy=ACCURACY)
        )
        off = float(np.abs(theirs.payments - ours.payments).max())
        yield Row(
            what=f"acquire, {setting}, {name}, n = 200",
            against=f"[F] mesh, accuracy {ACCURACY:g}",
            ratio=our_seconds / their_seconds,
            limit=1.0,
            ours=f"{1e3 * our_seconds:.3g} ms, off by {0.5 * ours.incentive_error:.0e} at most",
            theirs=f"{their_seconds:.3g} s, off by {off:.0e}, {theirs.allocations} allocations",
        )


def market(setting: str, name: str) -> Market:
    return Market(prior=PRIORS[name], setting=setting, variance=VARIANCE, buyer_weight=1.0, user_weight=1.0)  # type: ignore[arg-type]


def populations(n: int) -> Iterator[tuple[str, FloatArray]]:
    rng = np.random.default_rng(7)
    for name, prior in PRIORS.items():
        yield name, prior.sample(n, rng=rng)


def sort(bids: FloatArray) -> Callable[[], object]:
    return lambda: np.sort(bids)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    gc.collect()
    start = time.perf_counter()
    answer = function()
    return answer, time.perf_counter() - start
