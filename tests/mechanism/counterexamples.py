"""Why a combination is not exact: a market for each case of the table in which no exact rule can do it."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid import Budget
from hushbid.allocation import allocate
from hushbid.common.arrays import FloatArray
from hushbid.estimation import Strata
from hushbid.mechanism.combinations import Combination

GIFFEN: dict[str, Any] = {
    "variance": np.array([0.25, 0.38236, 0.11634, 182.76]),
    "max_loss": np.array([math.inf, math.inf, 0.63476, math.inf]),
    "strata": Strata(codes=np.array([0, 0, 1, 1]), weights=np.array([1.0, 5.4393])),
}


def find_giffen_good_in_strata() -> None:
    """With strata, caps and a budget a person who asks more can be bought more from."""
    found = []
    for own in (1.0, 1.02):
        costs = np.array([own, 1.03413, 0.000250, 0.017913])
        losses = allocate(costs, goal=Budget(0.121884), **GIFFEN).privacy_loss
        assert losses == pytest.approx(_most_accurate(costs, 0.121884), abs=2e-4)
        found.append(float(losses[0]))
    assert found == pytest.approx([0.0765, 0.1191], abs=1e-4)


def _most_accurate(costs: FloatArray, budget: float) -> FloatArray:
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


def find_giffen_good_in_the_local_setting() -> None:
    """Two people, V = 1/4, B = 2.434: the first asks more, and the most accurate purchase takes more from them."""
    found = []
    for own in (0.2237, 0.2547):
        first = np.linspace(0.0, 2.434 / own, 200_001)
        second = 2.434 - own * first
        supplied = sum(loss**2 / (0.25 * loss**2 + 2.0) for loss in (first, second))
        found.append(float(first[np.argmax(supplied)]))
    assert found == pytest.approx([6.26, 9.56], abs=0.01)


def solve_subset_sums(*, by_variances: bool) -> None:
    """With ``a_i`` the most that person i supplies at the best ratio to their cost, ``P`` for all, an optimum is worth
    2√(AP) exactly if some ``a_i`` add up to ``T = √(A/P)``: caps or variances per person make any ``a_i``."""
    price = 1.0
    for numbers, target, solvable in (((3, 5, 7), 12, True), ((3, 5, 7), 11, False), ((2, 4, 9), 6, True)):
        supplied = np.array(numbers) / (20.0 * max(numbers) * 0.25)
        variance = np.full(3, 0.25)
        if by_variances:  # the curve is steepest from the origin where it supplies 1/(2V)
            variance = 0.5 / supplied
            best_loss = np.sqrt(2.0 / variance)
        else:  # below the turn of the curve the cap is the best there is
            best_loss = np.sqrt(2.0 * supplied / (1.0 - variance * supplied))
        weight = price * (target / (20.0 * max(numbers) * 0.25)) ** 2
        costs = price * supplied / best_loss
        best = min(
            _least_objective(np.array(sold), best_loss, 4.0 if by_variances else 1.0, costs, weight, variance)
            for sold in product((0.0, 1.0), repeat=3)
        )
        bound = 2.0 * math.sqrt(weight * price)
        assert best >= bound * (1.0 - 1e-12)
        assert (best <= bound * (1.0 + 1e-7)) == solvable, (numbers, target, by_variances)


def _least_objective(
    sold: FloatArray, best_loss: FloatArray, most: float, costs: FloatArray, weight: float, variance: FloatArray
) -> float:
    """Return the least local objective with these people near their best losses and the others anywhere."""

    def objective(parts: FloatArray) -> float:
        losses = parts * best_loss
        supplied = float(np.sum(losses**2 / (variance * losses**2 + 2.0)))
        return weight / max(supplied, 1e-12) + float(costs @ losses)

    done = minimize(
        objective,
        np.where(sold > 0.0, 1.0, 0.1),
        method="L-BFGS-B",
        bounds=[(0.5 if one else 0.0, most) for one in sold.tolist()],
        options={"ftol": 1e-15, "gtol": 1e-12},
    )
    return min(objective(sold), float(done.fun))


def show_why_not_exact(stated: Combination) -> None:
    """Find the market in which no exact rule does what a combination states, if it is impossible or met on average."""
    if stated.goal == "budget" and not stated.variances:
        find_giffen_good_in_the_local_setting() if stated.local else find_giffen_good_in_strata()
    else:
        assert stated.local
        assert stated.variances or stated.capped
        solve_subset_sums(by_variances=stated.variances)
