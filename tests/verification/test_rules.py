"""The verifier's own optima, beside the solver's: at the ends of what numbers can hold, and where the last is low."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Price, allocate, replies
from hushbid.errors import HushbidError
from hushbid.verification.central_rule import CentralRule
from hushbid.verification.local_rule import LocalRule


def mean_rule(costs: np.ndarray, variance: float, error_weight: float) -> CentralRule:
    """One mean is one stratum, without caps."""
    count, one = costs.size, np.ones(1)
    caps, codes = np.full(count, math.inf), np.zeros(count, dtype=np.intp)
    return CentralRule(costs, np.full(count, variance), caps, codes, one, error_weight=error_weight)


@pytest.mark.parametrize("rule", [mean_rule, LocalRule])
@pytest.mark.parametrize(
    ("variance", "error_weight"), [(1e-60, 1e60), (1e-60, 1e-40), (1e-52, 1e32), (1e207, 1e-60), (0.25, 4.0)]
)
def test_the_verifier_agrees_with_the_solver_wherever_that_answers(
    rule: Callable[..., CentralRule | LocalRule], variance: float, error_weight: float
) -> None:
    setting = "central" if rule is mean_rule else "local"
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


@pytest.mark.parametrize("seed", range(12))
def test_the_local_rule_is_the_solvers_under_a_cap_and_for_an_accuracy(seed: int) -> None:
    """With equals, with people who ask for nothing, and with accuracies that leave the last a small remainder."""
    rng = np.random.default_rng(seed)
    count = int(rng.choice([1, 2, 3, 5, 12]))
    costs = rng.choice([1.0, 1.3, 2.0], count) if seed % 3 == 0 else rng.lognormal(0.0, rng.choice([0.1, 1.0]), count)
    costs[: int(rng.integers(0, count)) if seed % 4 == 1 else 0] = 0.0
    order, variance = rng.permutation(count), float(rng.choice([0.02, 0.25, 3.0]))
    weight = variance * float(10 ** rng.uniform(-1, 2))
    error = variance / (int(rng.integers(0, count)) + 10 ** rng.uniform(-2.0, -0.1))
    most = allocate(costs, setting="local", variance=variance, error_weight=weight).privacy_loss.max()
    cap = float(min(most, 3.0) * rng.choice([0.97, 0.7, 0.2]))
    rows = np.repeat(np.arange(count), 3)
    moved = costs[rows] * np.tile([1.0, 1.2, 3.0], count) + np.tile([0.0, 0.1, 0.0], count)
    for goal, most_lost, rule in (
        (Price(weight), cap, LocalRule(costs, variance, weight, order, cap=cap)),
        (Accuracy(math.sqrt(error)), math.inf, LocalRule(costs, variance, order=order, error=error)),
        (Accuracy(math.sqrt(error)), 3.0 * cap, LocalRule(costs, variance, order=order, error=error, cap=3.0 * cap)),
    ):
        how = {"setting": "local", "variance": variance, "goal": goal, "max_loss": most_lost, "tie_key": order}
        try:
            found = allocate(costs, **how)  # type: ignore[arg-type]
        except HushbidError:  # out of reach under the cap
            continue
        losses, mse, value = rule.everybody(0, float(costs[0]))
        assert losses == pytest.approx(found.privacy_loss, rel=1e-9, abs=0.0)
        assert (mse, value) == pytest.approx((found.mse, found.objective), rel=1e-11, abs=0.0)
        theirs, ours = replies(costs, **how).at(rows, moved), rule.at(rows, moved)  # type: ignore[arg-type]
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-8, abs=0.0)
        assert ours.value == pytest.approx(theirs.value, rel=1e-11, abs=0.0)


@pytest.mark.parametrize(
    ("costs", "terms", "losses"),
    [
        ([4.989, 5.132], {"error_weight": 1.0, "cap": 0.594}, [0.594, 0.560]),
        ([1.411, 1.441], {"error_weight": 1.0, "cap": 0.971}, [0.961, 0.813]),
        ([0.25, 0.59, 8.06], {"error": 1.0 / 2.006}, [6.582, 4.822, 0.545]),
    ],
)
def test_a_low_last_person_is_found_and_nothing_on_a_grid_is_better(
    costs: list[float], terms: dict[str, float], losses: list[float]
) -> None:
    """She loses less than where the precision of a loss rises fastest: no search among the high ones finds her."""
    rule = LocalRule(np.array(costs), 1.0, **terms)
    found, _, value = rule.everybody(0, costs[0])
    assert found == pytest.approx(losses, abs=2e-3)
    assert found.min() < math.sqrt(2.0 / 3.0)
    # the loss of everybody but the last on a grid; that of the last too, or what the error leaves for her
    each = np.linspace(1e-3, min(terms.get("cap", 40.0), 40.0), 400)
    grid = np.meshgrid(*[each] * (len(costs) - ("error" in terms)))
    supply = sum(y * y / (y * y + 2.0) for y in grid)
    spent = sum(cost * y for cost, y in zip(costs, grid, strict=False))
    if "error" in terms:
        left = 1.0 / terms["error"] - supply
        with np.errstate(invalid="ignore", divide="ignore"):
            tried = spent + costs[-1] * np.where(
                (left >= 0.0) & (left < 1.0), np.sqrt(2.0 * left / (1.0 - left)), np.inf
            )
    else:
        tried = terms["error_weight"] / supply + spent
    assert value <= tried.min() * (1.0 + 1e-12)
    assert value == pytest.approx(tried.min(), rel=1e-2)
