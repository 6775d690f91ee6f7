"""The second derivation of a contrast's optimum agrees with the solver, and records of strata are checked by it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, Price, allocate, replies
from hushbid.estimation import Strata
from hushbid.mechanism import Market, Outcome
from hushbid.priors import Uniform
from hushbid.record import Record
from hushbid.verification import verify
from hushbid.verification.contrast_by_threshold import ContrastRule
from hushbid.verification.verifying import findings
from tests.extent import each

GOALS: list[Goal] = [Price(40.0), Accuracy(0.9), Budget(3.0)]


def instance(seed: int) -> tuple[np.ndarray, np.ndarray, Strata]:
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(3), rng.integers(0, 3, 25)])
    strata = Strata(codes=codes, weights=rng.normal(size=3) * np.exp(rng.normal(size=3)))
    return np.exp(rng.normal(0.0, 1.5, 28)), rng.uniform(0.05, 0.25, 28), strata


def rule(goal: Goal, costs: np.ndarray, variance: np.ndarray, strata: Strata) -> ContrastRule:
    if isinstance(goal, Price):
        return ContrastRule(costs, variance, strata, error_weight=goal.number)
    if isinstance(goal, Accuracy):
        return ContrastRule(costs, variance, strata, error=goal.number**2)
    return ContrastRule(costs, variance, strata, expense=goal.number)


@each("goal", GOALS)
@each("seed", range(6))
def test_it_finds_what_the_solver_finds_and_so_it_does_when_somebody_moves(seed: int, goal: Goal) -> None:
    costs, variance, strata = instance(seed)
    found = rule(goal, costs, variance, strata)
    wanted = allocate(costs, variance=variance, goal=goal, strata=strata)
    losses, mse, _ = found.everybody(3, float(costs[3]))
    np.testing.assert_allclose(losses, wanted.privacy_loss, rtol=1e-11, atol=1e-12)
    assert mse == pytest.approx(wanted.mse, rel=1e-12)
    rows, moved = np.array([0, 5, 9, 20]), np.array([0.01, 0.3, 2.0, 50.0])
    other = replies(costs, setting="central", variance=variance, goal=goal, strata=strata).at(rows, moved)
    np.testing.assert_allclose(found.at(rows, moved).loss, other.loss, rtol=1e-10, atol=1e-11)


def bought(goal: Goal, relation: float) -> Outcome:
    labels = ["north", "south", "south", "west"] * 4
    market = Market(
        prior=Uniform(1, 2),
        goal=goal,
        strata=labels,
        contrast={"north": 1, "south": -2, "west": 0.5},
        max_correlation=relation,
        population={"north": 9, "south": 8, "west": 7} if relation else None,
    )
    return market.acquire(1.0 + np.arange(16) / 16.0)


@pytest.mark.parametrize(
    ("goal", "relation"), [(Price(500.0), 0.1), (Accuracy(2.0), 0.1), (Budget(5.0), 0.0)], ids=lambda one: str(one)[:6]
)
def test_an_honest_record_of_strata_passes_and_altered_ones_fail(goal: Goal, relation: float) -> None:
    outcome = bought(goal, relation)
    assert verify(Record.of(outcome), people=2).ok
    row = int(np.argmax(outcome.information_rent))
    rents, losses, weights = outcome.information_rent.copy(), outcome.privacy_loss.copy(), outcome.weights.copy()
    rents[row] *= 1.001
    losses[row] *= 1.0 + 1e-6
    weights[row] *= -1.0
    for change in (
        {"information_rent": rents, "payments": outcome.payments + (rents - outcome.information_rent)},
        {"privacy_loss": losses},
        {"weights": weights},
        {"worst_mse": outcome.worst_mse * (1.0 + 1e-6)},
    ):
        found = findings(Record.of(replace(outcome, **change)), people=1)
        assert any(check.status == "fails" for check in found), sorted(change)


def test_losses_that_fit_no_common_strength_have_the_best_weights_of_the_estimator() -> None:
    from hushbid.estimation import best_contrast as of_estimator
    from hushbid.verification.strata_apart import best_contrast

    rng = np.random.default_rng(2)
    strata = Strata(codes=np.arange(12) % 3, weights=[0.5, -1.0, 2.0])
    for spread in (0.3, 3.0):
        losses, variance = np.exp(rng.normal(0.0, spread, 12)), rng.uniform(0.1, 0.25, 12)
        expected = of_estimator(losses, strata=strata, variance=variance)
        weights, strength = best_contrast(losses, variance, strata)
        np.testing.assert_allclose(weights, expected.weights, rtol=1e-9)
        assert math.isclose(strength, expected.strength, rel_tol=1e-9)
