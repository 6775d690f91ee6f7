"""The allocation against ``np.sort`` of the same costs: large populations, memory, and small calls in a simulation."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.design import pairwise
from benchmarks.harness import Row, memory_ratio, time_ratio
from hushbid import Accuracy, Budget, LogNormal, Price, Uniform, allocate
from hushbid.allocation import Strata
from hushbid.common.arrays import FloatArray

PRIORS = {"uniform": Uniform(1.0, 2.0), "log-normal": LogNormal(0.0, 1.0)}
LIMITS = {"central": 1.5, "local": 0.7}
FEW = 100
FACTORS: dict[str, tuple[Any, ...]] = {
    "prior": tuple(PRIORS),
    "goal": ("price", "accuracy", "budget"),
    "caps": ("none", "one", "each"),
    "strata": (1, 4, 50),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A market of few people, as a simulation solves thousands of."""

    prior: str
    goal: str
    caps: str
    strata: int

    @property
    def limit(self) -> float:
        """So many sorts of the costs are allowed (a call of NumPy takes about one)."""
        if self.caps == "none":
            return 1e3
        return 5e3 if self.strata == 1 else 1e4


DEAREST = (
    Case("log-normal", "accuracy", "one", 1),
    Case("log-normal", "budget", "one", 4),
    Case("log-normal", "price", "one", 50),
    Case("log-normal", "price", "none", 50),
)
"""Markets that took longest for their limit; they are measured whatever the design chooses."""


def run() -> list[Row]:
    return [*large(), *small([*DEAREST, *pairwise(Case, FACTORS, lambda case: True)]), *certificates()]


def large() -> Iterator[Row]:
    """Both settings at 10⁶ and 10⁷ people, and the memory that they take."""
    for n in (10**6, 10**7):
        for name in PRIORS:
            for setting, limit in LIMITS.items():
                costs = costs_of(name, n)
                what = f"allocate, {setting}, {name}, n = {n:.0e}"
                ours, theirs = partial(allocate, costs, setting=setting), partial(np.sort, costs)
                yield time_ratio(what, ours, against="np.sort", theirs=theirs, limit=limit)
                if name == "uniform":
                    yield memory_ratio(
                        f"{what}: memory", ours, against="n floats", bytes_of_theirs=costs.nbytes, limit=4.0
                    )


def small(cases: list[Case], *, repeats: int = 20) -> Iterator[Row]:
    """A hundred people, with a price where about half of them are bought from, and the same point as other goals."""
    for case in dict.fromkeys(cases):
        costs = costs_of(case.prior, FEW)
        strata = Strata(codes=np.arange(FEW) % case.strata, weights=np.full(case.strata, 1.0 / case.strata))
        free = allocate(costs, goal=Price(100.0), strata=strata)
        largest = float(free.privacy_loss.max())
        each = largest * np.random.default_rng(3).uniform(0.3, 1.5, FEW)
        caps: Any = {"none": np.inf, "one": 0.7 * largest, "each": each}[case.caps]
        point = allocate(costs, goal=Price(100.0), max_loss=caps, strata=strata)
        goal = {
            "price": Price(100.0),
            "accuracy": Accuracy(point.mse**0.5),
            "budget": Budget(float(costs @ point.privacy_loss)),
        }[case.goal]
        named = {"none": "no cap", "one": "one cap", "each": "a cap each"}[case.caps]
        strata_named = "1 stratum" if case.strata == 1 else f"{case.strata} strata"
        yield time_ratio(
            f"allocate, {case.prior}, {case.goal}, {named}, {strata_named}, n = {FEW}",
            partial(allocate, costs, goal=goal, max_loss=caps, strata=strata),
            against="np.sort",
            theirs=partial(np.sort, costs),
            limit=case.limit,
            repeats=repeats,
            calls=10,
        )


def certificates() -> Iterator[Row]:
    """The lower bound, solving included."""
    costs = costs_of("uniform", 10**6)
    for setting in LIMITS:
        yield time_ratio(
            f"lower bound, {setting}, uniform, n = 1e+06",
            lambda setting=setting: allocate(costs, setting=setting).lower_bound,  # type: ignore[misc]
            against="np.sort",
            theirs=partial(np.sort, costs),
        )


def costs_of(prior: str, n: int) -> FloatArray:
    """Return virtual costs of bids drawn from a prior."""
    rng = np.random.default_rng(7)
    costs: FloatArray = PRIORS[prior].virtual_cost(PRIORS[prior].sample(n, rng=rng))
    return costs
