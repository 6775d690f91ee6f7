"""The verifier's own optima, beside the solver's: at the ends of what numbers can hold."""

import math

import numpy as np
import pytest

from hushbid.allocation import allocate, replies
from hushbid.verification.central_by_exclusion import CentralRule
from hushbid.verification.local_by_count import LocalRule


@pytest.mark.parametrize("rule", [CentralRule, LocalRule])
@pytest.mark.parametrize(
    ("variance", "error_weight"), [(1e-225, 1e60), (1e-212, 1e40), (1e-207, 1e32), (1e207, 1e-60), (0.25, 4.0)]
)
def test_the_verifier_agrees_with_the_solver_wherever_that_answers(
    rule: type[CentralRule | LocalRule], variance: float, error_weight: float
) -> None:
    setting = "central" if rule is CentralRule else "local"
    scale = error_weight * variance * math.sqrt(variance)
    costs = scale * np.array([0.3, 0.6, 1.2])
    rows, moved = np.arange(3), 1.1 * costs
    found = allocate(costs, setting=setting, variance=variance, error_weight=error_weight)
    losses, mse, objective = rule(costs, variance, error_weight).everybody(0, float(costs[0]))
    assert losses == pytest.approx(found.privacy_loss, rel=1e-7, abs=0.0)
    assert (mse, objective) == pytest.approx((found.mse, found.objective), rel=1e-12, abs=0.0)
    replied = replies(costs, setting=setting, variance=variance, error_weight=error_weight).at(rows, moved)
    answered = rule(costs, variance, error_weight).at(rows, moved)
    assert answered.value == pytest.approx(replied.value, rel=1e-12, abs=0.0)
    assert answered.loss == pytest.approx(replied.loss, rel=1e-7, abs=0.0)
