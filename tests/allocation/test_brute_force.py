"""The allocation against solvers that know nothing of its theory: multistart descent, SCIP, and dense searches.

None of them uses the one-dimensional reduction, the order of the costs or the high roots, except where a test says so.
SCIP (spatial branch and bound) brings a proven lower bound of its own, so agreement with it is agreement with a proof.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from pyscipopt import Model, quicksum
from scipy.optimize import minimize

from hushbid.allocation import allocate

Instance = tuple[np.ndarray, float | np.ndarray, float]
IDLE = -40.0  # log of a privacy loss that costs and brings nothing
LARGEST = 60.0  # keeps a bold line search from overflowing
SETTINGS = ["central", "local"]


def random_instance(rng: np.random.Generator, largest: int) -> Instance:
    """Few people, costs within one to three orders of magnitude of each other, every scale of cost and error weight."""
    n = int(rng.integers(1, largest + 1))
    costs = 10 ** rng.uniform(-rng.choice([0.2, 1.0, 3.0]), 0, n) * 10 ** rng.uniform(-4, 2)
    if rng.random() < 0.2:
        costs[rng.integers(n)] = costs[0]
    return costs, float(rng.uniform(0.01, 0.25)), float(10 ** rng.uniform(-1, 3))


def central_cost(log_loss: np.ndarray, instance: Instance) -> tuple[float, np.ndarray]:
    """The central objective and its gradient in the logarithms of the losses."""
    costs, variance, error_weight = instance
    loss = np.exp(np.clip(log_loss, -LARGEST, LARGEST))
    total, spread = loss.sum(), 2 + np.sum(variance * loss**2)
    slope = error_weight * (2 * variance * loss / total**2 - 2 * spread / total**3) + costs
    return float(error_weight * spread / total**2 + costs @ loss), slope * loss


def local_cost(log_loss: np.ndarray, instance: Instance) -> tuple[float, np.ndarray]:
    """The local objective and its gradient in the logarithms of the losses."""
    costs, variance, error_weight = instance
    loss = np.exp(np.clip(log_loss, -LARGEST, LARGEST))
    precision = np.sum(loss**2 / (variance * loss**2 + 2))
    slope = costs - error_weight * 4 * loss / (variance * loss**2 + 2) ** 2 / precision**2
    return float(error_weight / precision + costs @ loss), slope * loss


COST = {"central": central_cost, "local": local_cost}


def multistart(cost: Callable[..., tuple[float, np.ndarray]], instance: Instance, rng: np.random.Generator) -> float:
    """The best of many descents: from every set of active people, all alike, and from three random points.

    The local objective has more valleys, so there every set starts from three scales.
    """
    costs, _, error_weight = instance
    n = costs.size
    starts = []
    for size in range(1, n + 1):
        for group in map(list, combinations(range(n), size)):
            for scale in (0.5, 1.0, 2.0) if cost is local_cost else (1.0,):
                start = np.full(n, IDLE)
                start[group] = np.log(4 * error_weight / costs[group].mean()) / 3 + np.log(scale / np.sqrt(size))
                starts.append(start)
    starts += [np.log(4 * error_weight / costs.min()) / 3 + rng.normal(0, 2, n) for _ in range(3)]
    # BFGS, because L-BFGS-B wakes BLAS threads for 4 × 4 matrices and takes ten times as long on a busy machine.
    options = {"gtol": 1e-11 * error_weight, "maxiter": 300}
    return min(minimize(cost, start, (instance,), jac=True, method="BFGS", options=options).fun for start in starts)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_descent_from_any_set_of_people_finds_less_and_the_best_finds_as_much(setting):
    rng = np.random.default_rng(11)
    for _ in range(30):
        instance = random_instance(rng, 4)
        costs, variance, error_weight = instance
        ours = allocate(costs, setting=setting, variance=variance, error_weight=error_weight)
        found = multistart(COST[setting], instance, rng)
        assert ours.objective <= found * (1 + 1e-9), instance
        assert found <= ours.objective * (1 + 1e-7), instance


def scip_bounds(instance: Instance, setting: str) -> tuple[float, float]:
    """The best value SCIP finds and the bound it proves, closed to 1e-5 of each other."""
    costs, variance, error_weight = instance
    alone = error_weight * variance + 1.5 * np.cbrt(4 * error_weight) * np.cbrt(costs.min()) ** 2  # the cheapest alone
    model = Model()
    model.hideOutput()
    model.setParam("numerics/feastol", 1e-8)
    model.setParam("limits/gap", 1e-5)
    model.setParam("limits/nodes", 200_000)
    losses = [model.addVar(lb=0, ub=alone / cost) for cost in costs]
    error = model.addVar(lb=0, ub=alone)
    if setting == "central":
        total = model.addVar(lb=np.sqrt(2 * error_weight / alone))
        model.addCons(total == quicksum(losses))
        model.addCons(error * total * total >= error_weight * (2 + variance * quicksum(y * y for y in losses)))
    else:
        precisions = [model.addVar(lb=0, ub=1 / variance) for _ in costs]
        for precision, y in zip(precisions, losses, strict=True):
            model.addCons(precision * (variance * y * y + 2) == y * y)
        total = model.addVar(lb=error_weight / alone, ub=costs.size / variance)
        model.addCons(total == quicksum(precisions))
        model.addCons(error * total >= error_weight)
    model.setObjective(error + quicksum(cost * y for cost, y in zip(costs, losses, strict=True)))
    model.optimize()
    return float(model.getObjVal()), float(model.getDualbound())


@pytest.mark.parametrize(("setting", "largest", "instances"), [("central", 4, 15), ("local", 3, 8)])
def test_scip_proves_that_nothing_is_cheaper(setting, largest, instances):
    rng = np.random.default_rng(14)
    for _ in range(instances):
        n = int(rng.integers(2, largest + 1))
        costs = 10 ** rng.uniform(-1, 0, n) * 10 ** rng.uniform(-2, 1)
        instance = costs, float(rng.uniform(0.05, 0.25)), float(10 ** rng.uniform(0, 1.5))
        ours = allocate(costs, setting=setting, variance=instance[1], error_weight=instance[2])
        found, proven = scip_bounds(instance, setting)
        assert proven >= ours.objective * (1 - 1.1e-5), instance
        assert ours.objective <= found * (1 + 1e-6), instance


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_change_of_one_or_two_peoples_losses_helps_among_many(setting):
    """Where a global search is out of reach: 40 people, each loss moved alone, and moved together with another's."""
    rng = np.random.default_rng(15)
    factors = np.concatenate([[0.0], np.geomspace(0.2, 5, 41)])
    for _ in range(15):
        costs = 10 ** rng.uniform(-1, 0, 40) * 10 ** rng.uniform(-4, 1)
        variance, error_weight = float(rng.uniform(0.01, 0.25)), float(10 ** rng.uniform(0, 3))
        instance = costs, variance, error_weight
        ours = allocate(costs, setting=setting, variance=variance, error_weight=error_weight)
        typical = ours.privacy_loss[ours.privacy_loss > 0].mean()
        for _ in range(12):
            pair = rng.choice(40, 2, replace=False)
            for first in factors:
                for second in (1.0, *rng.choice(factors, 3)):
                    moved = ours.privacy_loss.copy()
                    base = np.where(moved[pair] > 0, moved[pair], typical)
                    moved[pair] = base * (first, second)
                    if moved.max() > 0:
                        cost, _ = COST[setting](np.log(np.maximum(moved, np.exp(IDLE))), instance)
                        assert cost >= ours.objective * (1 - 1e-9)
