"""What the table calls impossible: the counterexample, or the hard problem that an optimum would solve."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from hushbid import Budget
from hushbid.allocation import allocate
from hushbid.common.arrays import FloatArray
from hushbid.estimation import Strata
from hushbid.mechanism.combinations import Combination, state_of

GIFFEN: dict[str, Any] = {
    "variance": np.array([0.25, 0.38236, 0.11634, 182.76]),
    "max_loss": np.array([math.inf, math.inf, 0.63476, math.inf]),
    "strata": Strata(codes=np.array([0, 0, 1, 1]), weights=np.array([1.0, 5.4393])),
}


def most_accurate(costs: FloatArray, budget: float) -> FloatArray:
    """Return the losses with the least error that a budget buys, by a general solver of convex problems."""
    strata, variance = GIFFEN["strata"], GIFFEN["variance"]
    ratio = float(strata.weights[1])
    done = minimize(
        lambda e: math.log((2.0 + float(np.sum(variance * e**2))) / (e[0] + e[1]) ** 2),
        np.array([0.06, 0.05, 0.55, 0.05]),
        method="SLSQP",
        bounds=[(1e-12, cap if cap < math.inf else 10.0) for cap in GIFFEN["max_loss"].tolist()],
        constraints=[
            {"type": "eq", "fun": lambda e: (e[2] + e[3]) / ratio - (e[0] + e[1])},
            {"type": "ineq", "fun": lambda e: 1.0 - float(costs @ e) / budget},
        ],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    found: FloatArray = done.x
    return found


def test_with_strata_caps_and_a_budget_who_asks_more_can_be_bought_more_from() -> None:
    found = []
    for own in (1.0, 1.02):
        costs = np.array([own, 1.03413, 0.000250, 0.017913])
        losses = allocate(costs, goal=Budget(0.121884), **GIFFEN).privacy_loss
        assert losses == pytest.approx(most_accurate(costs, 0.121884), abs=2e-4)
        found.append(float(losses[0]))
    assert found == pytest.approx([0.0765, 0.1191], abs=1e-4)
    capped = Combination(setting="central", goal="budget", strata=True, cap="each")
    assert state_of(capped) in ("impossible", "on average")


def test_an_optimum_under_local_caps_of_each_person_would_solve_subset_sums() -> None:
    """With ``a_i = q(e_i)`` and ``ψ_i = P·q(e_i)/e_i`` the optimum is 2√(AP) exactly if some a_i add up to T."""
    price, variance = 1.0, 0.25
    for numbers, target, solvable in (((3, 5, 7), 12, True), ((3, 5, 7), 11, False), ((2, 4, 9), 6, True)):
        supplied = np.array(numbers) / (20.0 * max(numbers) * variance)  # below the turn of the curve
        caps = np.sqrt(2.0 * supplied / (1.0 - variance * supplied))
        costs = price * supplied / caps
        wanted = target / (20.0 * max(numbers) * variance)
        weight = price * wanted**2
        best = min(
            _best_with_one_between(np.array(sold), caps, costs, weight, variance)
            for sold in product((0.0, 1.0), repeat=len(numbers))
        )
        bound = 2.0 * math.sqrt(weight * price)
        assert best >= bound * (1.0 - 1e-12)
        assert (best <= bound * (1.0 + 1e-9)) == solvable
    for stated in ({"cap": "each"}, {"limits": True}, {"variances": True}):
        assert state_of(Combination(setting="local", goal="price", **stated)) == "impossible"  # type: ignore[arg-type]


def _best_with_one_between(
    sold: FloatArray, caps: FloatArray, costs: FloatArray, weight: float, variance: float
) -> float:
    """Return the least objective with these people at their caps, and at most one other anywhere below theirs.

    On the convex part of the curve two people strictly between are never best: one of them gains by giving more.
    """

    def objective(losses: FloatArray) -> float:
        supplied = float(np.sum(losses**2 / (variance * losses**2 + 2.0)))
        return math.inf if supplied == 0.0 else weight / supplied + float(costs @ losses)

    found = [objective(sold * caps)]
    for row in np.flatnonzero(sold == 0.0):
        one = np.arange(caps.size) == row
        done = minimize_scalar(
            lambda part, one=one: objective((sold + part * one) * caps), bounds=(0, 1), method="bounded"
        )
        found.append(float(done.fun))
    return min(found)
