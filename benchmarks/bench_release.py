"""What exactness costs: a release against NumPy's floating-point version, which keeps no promise (see SECURITY.md)."""

import secrets
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks.harness import Row, time_ratio
from hushbid.disclosure import ReleasePlan, noise, privatize, release_plan, release_synthetic, simulate_plan


def run() -> list[Row]:
    return [*central(), *local()]


def central() -> Iterator[Row]:
    rng = np.random.default_rng(7)
    for people in (10**3, 10**6):
        losses, data = rng.exponential(size=people), rng.random(people)
        plan = ReleasePlan.of(losses, setting="central", bounds=(0.0, 1.0))

        def unsafe(losses: np.ndarray = losses, data: np.ndarray = data) -> float:
            total = losses.sum()
            return float(losses @ np.clip(data, 0.0, 1.0) / total + rng.laplace(scale=1.0 / total))

        def ours(plan: ReleasePlan = plan, data: np.ndarray = data) -> object:
            return release_synthetic(plan, data).release

        what = f"release, central, n = {people:.0e}"
        yield time_ratio(what, ours, against="NumPy, unsafe", theirs=unsafe, limit=100.0 if people >= 10**6 else None)
        with tempfile.TemporaryDirectory() as folder:

            def stored(plan: ReleasePlan = plan, data: np.ndarray = data, folder: str = folder) -> object:
                return release_plan(fresh(plan), data, folder=folder)

            yield time_ratio(f"{what}, stored durably", stored, against="release in memory", theirs=ours, repeats=3)


def local() -> Iterator[Row]:
    rng = np.random.default_rng(7)
    people = 10**5
    losses, data = rng.exponential(size=people) + 0.1, rng.random(people)
    plan = ReleasePlan.of(losses, setting="local", bounds=(0.0, 1.0))

    def unsafe() -> np.ndarray:
        return np.clip(data, 0.0, 1.0) + rng.laplace(scale=1.0 / losses)

    def simulated() -> np.ndarray:
        return simulate_plan(plan, data, 1)

    what = f"simulate a local release, n = {people:.0e}"
    yield time_ratio(what, simulated, against="NumPy, unsafe", theirs=unsafe, repeats=3)
    thousand = 1000
    yield time_ratio(
        "OpenDP's vector sampler, 1000 values",
        lambda: noise.draw_many([0] * thousand, scale=2.0**40),
        against="its scalar call, 1000 times",
        theirs=scalar_calls(thousand),
        limit=0.5,
    )
    yield time_ratio(
        "privatize, 100 devices",
        lambda: [privatize(value, 0.5, (0.0, 1.0)) for value in data[:100]],
        against="OpenDP's scalar call, 100 times",
        theirs=scalar_calls(100),
    )


def scalar_calls(times: int) -> Callable[[], object]:
    from opendp import domains, measurements, metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    integers = domains.atom_domain(T="i64")
    measurement = measurements.make_laplace(integers, metrics.absolute_distance(T="i64"), scale=2.0**40)
    return lambda: [measurement(0) for _ in range(times)]


def fresh(plan: ReleasePlan) -> ReleasePlan:
    """A plan that has not been released yet: every release is drawn once, in a benchmark too."""
    return replace(plan, key=f"benchmark-{secrets.token_hex(16)}")
