"""Pricing everybody: a whole ``Market.acquire`` against ``np.sort`` of the reports, its growth, and the mesh method."""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.harness import Row, time_ratio
from hushbid import LogNormal, Market, Uniform, allocate
from hushbid.baselines.paper_payments import mesh_payments
from hushbid.priors import Prior


def run() -> list[Row]:
    return [*a_million(), *growth(), *mesh()]


def a_million() -> Iterator[Row]:
    for name, prior, setting, limit in (
        ("uniform", Uniform(1, 2), "central", 15.0),
        ("log-normal", LogNormal(0, 1), "central", 45.0),
        ("uniform", Uniform(1, 2), "local", 5.0),
        ("log-normal", LogNormal(0, 1), "local", None),
    ):
        yield against_sorting(f"acquire, {setting}, {name}", prior, setting, 10**6, limit)


def growth() -> Iterator[Row]:
    for n in (10**3, 10**4, 10**5):
        for setting in ("central", "local"):
            yield against_sorting(f"acquire, {setting}, uniform", Uniform(1, 2), setting, n, None)


def against_sorting(what: str, prior: Prior, setting: str, n: int, limit: float | None) -> Row:
    reports = prior.sample(n, rng=np.random.default_rng(3))
    market = Market(prior=prior, setting=setting, variance=0.25)  # type: ignore[arg-type]
    return time_ratio(
        f"{what}, n = {n:.0e}",
        lambda: market.acquire(reports),
        against="np.sort",
        theirs=lambda: np.sort(reports),
        limit=limit,
        repeats=5 if n >= 10**5 else 9,
    )


def mesh() -> Iterator[Row]:
    """The paper's own way to compute payments, for two people of 200: its time, and how far off it is."""
    prior, accuracy, rows = Uniform(1, 2), 0.01, [0, 1]
    for setting in ("central", "local"):
        reports = np.sort(prior.sample(200, rng=np.random.default_rng(5)))
        market = Market(prior=prior, setting=setting, variance=0.25)  # type: ignore[arg-type]

        def rule(costs: np.ndarray, setting: str = setting) -> object:
            return allocate(costs, setting=setting, variance=0.25)

        def theirs(rule: Callable[..., object] = rule, reports: np.ndarray = reports) -> object:
            return mesh_payments(reports, prior=prior, rule=rule, variance=0.25, accuracy=accuracy, rows=rows)

        outcome = market.acquire(reports)
        found = np.asarray(getattr(theirs(), "payments", theirs()), dtype=float).ravel()[: len(rows)]
        error = float(np.abs(found - outcome.payments[rows]).max())
        yield time_ratio(
            f"acquire, {setting}, all 200 people",
            lambda market=market, reports=reports: market.acquire(reports),
            against=f"mesh method, 2 people, off by {error:.1g}",
            theirs=theirs,
            repeats=1,
        )
