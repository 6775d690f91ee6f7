"""The allocation against ``np.sort`` of the same array: large populations, memory, and small calls in a simulation.

Losses for an accuracy, for a budget, under a cap and for a combination of stratum means are measured against those for
a price of the error at the same point of the frontier: what a buyer states, and whether losses are limited, should not
decide how long she waits.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.harness import Row, memory_ratio, time_ratio
from hushbid import Accuracy, Budget, Exponential, LogNormal, Price, Uniform, allocate
from hushbid.allocation import Strata
from hushbid.common.arrays import FloatArray

PRIORS = {"uniform": Uniform(1.0, 2.0), "exponential": Exponential(1.0), "log-normal": LogNormal(0.0, 1.0)}
LIMITS = {"central": 1.5, "local": 0.7}
GOAL_LIMIT = 1.0
CAP_LIMIT = 3.0
STRATA_LIMITS = {4: 5.0, 50: 8.0}
ERROR_WEIGHT = 1.0


def run() -> list[Row]:
    return [*large(), *goals(), *strata(), *small(), *certificates()]


def large() -> Iterator[Row]:
    for n in (10**6, 10**7):
        for name, costs in populations(n):
            for setting, limit in LIMITS.items():
                what = f"allocate, {setting}, {name}, n = {n:.0e}"
                yield time_ratio(what, call(costs, setting), against="np.sort", theirs=sort(costs), limit=limit)
                yield memory_ratio(
                    f"{what}: memory",
                    call(costs, setting),
                    against="n floats",
                    bytes_of_theirs=costs.nbytes,
                    limit=4.0,
                )


def goals(sizes: tuple[int, ...] = (10**6, 10**7), *, repeats: int = 7) -> Iterator[Row]:
    """Accuracy and budget where the price optimum is, and each goal under a cap of half the largest loss."""
    for n in sizes:
        for name, costs in populations(n):
            found = allocate(costs, goal=Price(ERROR_WEIGHT))
            amount, cap = float(costs @ found.privacy_loss), 0.5 * float(found.privacy_loss.max())
            stated = (Price(ERROR_WEIGHT), Accuracy(found.mse**0.5), Budget(amount))
            price = partial(allocate, costs, goal=stated[0])
            for goal in stated[1:]:
                yield time_ratio(
                    f"allocate, {goal.kind}, {name}, n = {n:.0e}",
                    partial(allocate, costs, goal=goal),
                    against="the same, price",
                    theirs=price,
                    limit=GOAL_LIMIT,
                    repeats=repeats,
                )
            for goal in stated:
                yield time_ratio(
                    f"allocate, {goal.kind}, capped, {name}, n = {n:.0e}",
                    partial(allocate, costs, goal=goal, max_loss=cap),
                    against="the same, price, no cap",
                    theirs=price,
                    limit=CAP_LIMIT,
                    repeats=repeats,
                )


def strata(n: int = 10**6, *, repeats: int = 7) -> Iterator[Row]:
    """One noise for strata of about the same size, against one mean of the same people; the default error weight."""
    for name, costs in populations(n):
        for count, limit in STRATA_LIMITS.items():
            codes = np.random.default_rng(8).integers(0, count, n)
            divided = Strata(codes=codes, weights=np.full(count, 1.0 / count))
            yield time_ratio(
                f"allocate, price, {count} strata, {name}, n = {n:.0e}",
                partial(allocate, costs, strata=divided),
                against="the same, no strata",
                theirs=partial(allocate, costs),
                limit=limit,
                repeats=repeats,
            )


def small() -> Iterator[Row]:
    for name, costs in populations(100):
        for setting in LIMITS:
            yield time_ratio(
                f"allocate, {setting}, {name}, n = 100",
                call(costs, setting),
                against="np.sort",
                theirs=sort(costs),
                limit=50.0,
                repeats=1000,
                calls=10,
            )


def certificates() -> Iterator[Row]:
    for name, costs in populations(10**6):
        for setting in LIMITS:
            yield time_ratio(
                f"lower bound, {setting}, {name}, n = 1e+06",
                lambda costs=costs, setting=setting: allocate(costs, setting=setting).lower_bound,
                against="np.sort",
                theirs=sort(costs),
            )


def populations(n: int) -> Iterator[tuple[str, FloatArray]]:
    rng = np.random.default_rng(7)
    for name, prior in PRIORS.items():
        yield name, prior.virtual_cost(prior.sample(n, rng=rng))


def call(costs: FloatArray, setting: str) -> Callable[[], object]:
    return lambda: allocate(costs, setting=setting)


def sort(costs: FloatArray) -> Callable[[], object]:
    return lambda: np.sort(costs)
