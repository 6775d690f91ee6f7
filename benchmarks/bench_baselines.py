"""The allocation against general-purpose solvers and the paper's own algorithms: time, and what they pay too much.

A solver of SciPy gets what a careful user would give it: the exact gradient, bounds, and the best equal split among all
as a starting point. Ratios of cost are ours over theirs, so a limit just above one says "never worse".
"""

import gc
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from benchmarks.harness import Row
from experiments.paper_figures.algorithm_1 import algorithm_1
from experiments.paper_figures.algorithm_2 import algorithm_2
from experiments.paper_figures.mesh_payments import mesh_payments
from hushbid import LogNormal, Uniform, allocate
from hushbid.common.arrays import FloatArray

VARIANCE = 0.25
NEVER_WORSE = 1.0 + 1e-9
PRIORS = {"uniform": Uniform(1.0, 2.0), "log-normal": LogNormal(0.0, 1.0)}
OPTIONS = {"SLSQP": {"maxiter": 1000, "ftol": 1e-12}, "trust-constr": {"maxiter": 1000, "gtol": 1e-8}}


def run() -> list[Row]:
    return [*against_scipy(), *against_the_paper(), *mesh_method()]


def against_scipy() -> Iterator[Row]:
    for name, costs in populations(400):
        for setting, cost in (("central", central_cost), ("local", local_cost)):
            for method in OPTIONS:
                yield from compare(
                    f"allocate, {setting}, {name}, n = 400",
                    partial(allocate, costs, setting=setting, variance=VARIANCE),
                    against=method,
                    theirs=partial(descend, cost, costs, method),
                )


def against_the_paper() -> Iterator[Row]:
    for name, costs in populations(400):
        ours = partial(allocate, costs, setting="central", variance=VARIANCE)
        theirs = partial(algorithm_1, costs, variance=VARIANCE)
        yield from compare(f"allocate, central, {name}, n = 400", ours, against="[F] Algorithm 1", theirs=theirs)
    for name, costs in populations(50):
        ours = partial(allocate, costs, setting="local", variance=VARIANCE)
        for points in (200, 2000):
            theirs = partial(algorithm_2, costs, variance=VARIANCE, points=points)
            against = f"[F] Algorithm 2, {points} points"
            yield from compare(f"allocate, local, {name}, n = 50", ours, against=against, theirs=theirs)


def mesh_method() -> Iterator[Row]:
    """Everybody's payment at n = 200: two optimal values each, exact for a uniform prior, against the paper's mesh."""
    prior, accuracy = Uniform(1.0, 2.0), 1e-2
    bids = prior.sample(200, rng=np.random.default_rng(7))
    for setting in ("central", "local"):
        rule = partial(allocate, setting=setting, variance=VARIANCE)
        exact, our_seconds = timed(partial(envelope_payments, bids, prior, rule))
        mesh, their_seconds = timed(
            partial(mesh_payments, bids, prior=prior, rule=rule, variance=VARIANCE, accuracy=accuracy)
        )
        what = f"payments of 200, {setting}, uniform"
        yield Row(
            what=what,
            against=f"[F] mesh, accuracy {accuracy:g}",
            ratio=our_seconds / their_seconds,
            ours=f"{our_seconds:.3g} s",
            theirs=f"{their_seconds:.3g} s",
        )
        largest = float(np.abs(mesh.payments - exact).max())
        yield Row(
            what=f"[F] mesh, payments of 200, {setting}, uniform: largest error",
            against="accuracy asked for",
            ratio=largest / accuracy,
            ours="exact",
            theirs=f"{largest:.1e}, {mesh.allocations} allocations",
        )


def compare(what: str, ours: Callable[[], Any], *, against: str, theirs: Callable[[], Any]) -> Iterator[Row]:
    """One row for the time and one for the cost of the answers; theirs run once, because some take seconds."""
    their_answer, their_seconds = timed(theirs)
    our_answer, _ = timed(ours)
    our_seconds = median(timed(ours)[1] for _ in range(9))
    yield Row(
        what=what,
        against=against,
        ratio=our_seconds / their_seconds,
        limit=1.0,
        ours=f"{1e3 * our_seconds:.3g} ms",
        theirs=f"{1e3 * their_seconds:.3g} ms",
    )
    our_cost = our_answer.objective
    their_cost = their_answer.fun if isinstance(their_answer, OptimizeResult) else their_answer.objective
    yield Row(
        what=f"{what}: cost",
        against=against,
        ratio=our_cost / their_cost,
        limit=NEVER_WORSE,
        ours=f"{our_cost:.6g}",
        theirs=f"{100 * (their_cost / our_cost - 1):.1e} % more",
    )


def descend(
    cost: Callable[[FloatArray, FloatArray], tuple[float, FloatArray]], costs: FloatArray, method: str
) -> OptimizeResult:
    """What SciPy finds from the best equal split, its remarks about flat stretches left out."""
    n = costs.size
    noises = n**2 if cost is central_cost else n  # the noise of n equal losses: once for all, or once for each
    start = np.full(n, np.cbrt(4 * (n + 1) / (noises * costs.sum())))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return minimize(
            cost, start, (costs,), jac=True, method=method, bounds=[(1e-12, None)] * n, options=OPTIONS[method]
        )


def central_cost(loss: FloatArray, costs: FloatArray) -> tuple[float, FloatArray]:
    weight, total, spread = costs.size + 1, loss.sum(), 2 + VARIANCE * loss @ loss
    slope = weight * (2 * VARIANCE * loss / total**2 - 2 * spread / total**3) + costs
    return weight * spread / total**2 + costs @ loss, slope


def local_cost(loss: FloatArray, costs: FloatArray) -> tuple[float, FloatArray]:
    weight, scaled = costs.size + 1, VARIANCE * loss**2 + 2
    precision = np.sum(loss**2 / scaled)
    return weight / precision + costs @ loss, costs - weight * 4 * loss / scaled**2 / precision**2


def envelope_payments(bids: FloatArray, prior: Uniform, rule: Callable[[FloatArray], Any]) -> FloatArray:
    """MSE - V + c * loss + half the rise of the optimal value as the bid goes to the top of the support."""
    costs = prior.virtual_cost(bids)
    truthful = rule(costs)
    payments = truthful.mse - VARIANCE + bids * truthful.privacy_loss
    for row in np.flatnonzero(truthful.privacy_loss):
        highest = costs.copy()
        highest[row] = prior.virtual_cost(prior.support[1])
        payments[row] += (rule(highest).objective - truthful.objective) / 2
    return payments


def populations(n: int) -> Iterator[tuple[str, FloatArray]]:
    rng = np.random.default_rng(7)
    for name, prior in PRIORS.items():
        yield name, prior.virtual_cost(prior.sample(n, rng=rng))


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    gc.collect()
    start = time.perf_counter()
    answer = function()
    return answer, time.perf_counter() - start
