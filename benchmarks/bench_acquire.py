"""Pricing a million people, ``market.acquire``, against ``np.sort`` of their bids, over a pairwise design of markets.

How many are bought from, the prior, the goal, caps and strata decide together how long a purchase takes, so every pair
of their values is in some row. Without caps or variances of single people no row may take more than `LIMIT` sorts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.design import pairwise
from benchmarks.harness import Row, time_ratio
from hushbid import Accuracy, Budget, Empirical, Grouped, LogNormal, Market, Price, Uniform
from hushbid.common.arrays import FloatArray
from hushbid.priors import Prior

PEOPLE, LIMIT, VARIANCE = 10**6, 15.0, 0.25
WITH_CAPS_EACH = 10**4
"""Everybody with a cap of their own is computed one by one: fewer people say as much."""

FACTORS: dict[str, tuple[Any, ...]] = {
    "share": (1e-5, 0.1, 0.95),
    "prior": ("uniform from 1", "uniform from 0", "log-normal", "empirical", "two groups"),
    "goal": ("price", "accuracy", "budget"),
    "caps": ("none", "one", "each"),
    "strata": (1, 4, 50),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the design."""

    share: float
    prior: str
    goal: str
    caps: str
    strata: int

    @property
    def possible(self) -> bool:
        """Whether the goal is met exactly: with caps and strata a budget is met on average, by a planned price."""
        return self.goal != "budget" or self.caps == "none" or self.strata == 1

    @property
    def people(self) -> int:
        """How many people there are."""
        return WITH_CAPS_EACH if self.caps == "each" else PEOPLE

    def __str__(self) -> str:
        caps = {"none": "no cap", "one": "one cap", "each": "a cap each"}[self.caps]
        strata = "1 stratum" if self.strata == 1 else f"{self.strata} strata"
        what = f"{100 * self.share:g} % bought from, {self.prior}, {self.goal}, {caps}, {strata}"
        return f"acquire, {what}, n = {self.people:.0e}"


CLIFFS = (
    Case(0.95, "log-normal", "price", "none", 1),
    Case(0.95, "log-normal", "accuracy", "none", 1),
    Case(0.95, "log-normal", "budget", "none", 1),
    Case(0.95, "uniform from 0", "budget", "none", 1),
)
"""Markets in which most people are bought from once took hundreds of sorts."""


def run() -> list[Row]:
    """Measure every case; the worst come first."""
    rows = [*CLIFFS, *pairwise(Case, FACTORS, lambda case: case.possible)]
    return sorted(measured(rows), key=lambda row: -row.ratio)


def measured(cases: list[Case], *, repeats: int = 2) -> Iterator[Row]:
    """Time each case against a sort of its bids."""
    for case in cases:
        market, bids = stated(case, case.people)
        yield time_ratio(
            str(case),
            partial(market.acquire, bids),
            against="np.sort",
            theirs=partial(np.sort, bids),
            limit=None if case.caps == "each" else LIMIT,
            repeats=repeats,
        )


def stated(case: Case, people: int) -> tuple[Market, FloatArray]:
    """Return the market of a case, and everybody's bid."""
    rng = np.random.default_rng(21)
    prior, bids = population(case.prior, people, rng)
    costs = np.asarray(prior.virtual_cost(bids))
    # the water level below which this share of people is, and what each goal states there (mechanism.md, level form)
    level = 1.0001 * float(np.partition(costs, int(case.share * people))[int(case.share * people)])
    weights = np.maximum(level - costs, 0.0) / VARIANCE
    total, paid = float(weights.sum()), float(costs @ weights)
    sigma = np.sqrt(0.5 * paid)
    goal = {
        "price": Price(total**2 / (2.0 * sigma)),
        "accuracy": Accuracy(float(np.sqrt(level / total))),
        "budget": Budget(paid / sigma),
    }[case.goal]
    largest = float(weights.max()) / sigma
    terms: dict[str, Any] = {"prior": prior, "variance": VARIANCE, "goal": goal}
    if case.caps != "none":
        terms["max_privacy_loss"] = 0.7 * largest if case.caps == "one" else largest * rng.uniform(0.5, 2.0, people)
    if case.strata > 1:
        names = np.array([f"s{code:02}" for code in range(case.strata)])
        terms["strata"] = names[np.arange(people) % case.strata]
        terms["shares"] = dict.fromkeys(names.tolist(), 1.0 / case.strata)
    return Market(**terms), bids


def population(name: str, people: int, rng: np.random.Generator) -> tuple[Prior | Grouped, FloatArray]:
    """Return a prior and bids drawn from it."""
    priors: dict[str, Prior] = {
        "uniform from 1": Uniform(1, 2),
        "uniform from 0": Uniform(0, 1),
        "log-normal": LogNormal(0, 0.5),
        "empirical": Empirical(np.round(LogNormal(0, 0.5).sample(200, rng=rng), 2)),
    }
    if name in priors:
        return priors[name], priors[name].sample(people, rng=rng)
    labels = np.where(np.arange(people) % 3 == 0, "old", "young")
    groups: dict[str, Prior] = {"young": LogNormal(0, 0.5), "old": Uniform(0.5, 2)}
    bids = np.where(labels == "old", groups["old"].sample(people, rng=rng), groups["young"].sample(people, rng=rng))
    return Grouped(groups, labels), bids
