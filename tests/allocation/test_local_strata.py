"""Strata in the local setting: for a price each is a market by itself."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid.allocation import Accuracy, Strata, allocate, replies
from hushbid.errors import InputError


@pytest.mark.parametrize("cap", [math.inf, 1.0])
def test_local_strata_are_separate_markets(cap: float) -> None:
    rng = np.random.default_rng(13)
    costs, codes = np.exp(rng.normal(size=8)), np.array([0, 0, 0, 1, 1, 1, 0, 1])
    strata = Strata(codes=codes, weights=[0.8, -0.5])
    found = allocate(costs, setting="local", error_weight=50.0, strata=strata, max_loss=cap)

    def value(losses: np.ndarray) -> float:
        precision = losses**2 / (0.25 * losses**2 + 2.0)
        error = sum(w * w / precision[codes == g].sum() for g, w in enumerate(strata.weights))
        return float(50.0 * error + costs @ losses)

    assert found.objective == pytest.approx(value(found.privacy_loss), rel=1e-11)
    for _ in range(20):
        start = np.minimum(np.exp(rng.normal(size=8)), cap)
        tried = minimize(value, start, method="L-BFGS-B", bounds=[(1e-9, cap)] * 8).fun
        assert tried >= found.objective * (1.0 - 1e-9)
    assert found.lower_bound <= found.objective
    rule = replies(costs, setting="local", error_weight=50.0, strata=strata, max_loss=cap)
    answer = rule.at(np.arange(8), 1.2 * costs)
    for row in range(8):
        moved = costs.copy()
        moved[row] *= 1.2
        again = allocate(moved, setting="local", error_weight=50.0, strata=strata, max_loss=cap)
        assert answer.loss[row] == pytest.approx(again.privacy_loss[row], rel=1e-8, abs=1e-12)
        assert (answer.value[row], answer.mse[row]) == pytest.approx((again.objective, again.mse), rel=1e-9)


def test_for_another_goal_strata_are_refused() -> None:
    strata = Strata(codes=[0, 1, 1], weights=[1.0, -1.0])
    with pytest.raises(InputError, match="cannot be the goal for a combination of strata"):
        allocate([1.0, 1.0, 1.0], strata=strata, setting="local", goal=Accuracy(0.9))
