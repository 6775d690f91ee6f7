"""Local purchases under a cap, and for an accuracy: honest records hold, and forgeries that are told consistently fail.

A forgery has error, weights, objective, payments, bounds, key, totals and hash that fit its losses and rents.
"""

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Price
from hushbid.mechanism import Market, Outcome
from hushbid.priors import Empirical, LogNormal, Uniform
from hushbid.record import Record
from hushbid.verification.verifying import findings, verify
from tests.extent import each

PRIORS: dict[str, Any] = {
    "uniform": Uniform(1, 2),
    "lognormal": LogNormal(0.0, 0.5),
    "steps": Empirical([1, 2, 2, 4, 5]),
}
GOALS: dict[str, dict[str, Any]] = {
    "capped": {"goal": Price(40.0), "max_privacy_loss": 2.0},
    "capped low": {"goal": Price(40.0), "max_privacy_loss": 0.9},
    "accuracy": {"goal": Accuracy(0.3)},
}
RELATIONS = [0.0, 0.2]
CASES = [
    ("uniform", "capped", 0.2),
    ("lognormal", "capped low", 0.0),
    ("steps", "capped", 0.2),
    ("uniform", "accuracy", 0.0),
    ("lognormal", "accuracy", 0.2),
    ("steps", "accuracy", 0.0),
]


@cache
def outcome_of(prior: str, terms: str, relation: float = 0.0, **more: Any) -> Outcome:
    market = Market(prior=PRIORS[prior], setting="local", max_correlation=relation, **{**GOALS[terms], **more})
    return market.acquire(PRIORS[prior].sample(12, rng=np.random.default_rng(3)))


def failed(outcome: Outcome) -> set[str]:
    """The checks up to that of rents that fail for this outcome, with key, totals and hash that fit."""
    found = set()
    for check in findings(Record.of(outcome)):
        if check.status == "fails":
            found.add(check.name)
        if check.name == "rents":
            break
    return found


def consistent(outcome: Outcome, losses: np.ndarray, **more: Any) -> Outcome:
    """Another outcome with these losses, and everything that follows from them."""
    n, relation = losses.size, outcome.market.max_correlation
    variance = 0.25  # of a range of width 1
    precision = np.where(
        losses > 0, 1 / (variance * (1 + n * relation**2) + 2 / np.where(losses > 0, losses, 1) ** 2), 0
    )
    weights = precision / precision.sum()
    noise = np.where(losses > 0, weights / np.where(losses > 0, losses, 1), 0)
    mse = float(variance * (weights**2).sum() + 2 * (noise**2).sum())
    worst = mse + relation**2 * variance * (n * float((weights**2).sum()) - 1)
    goal, spent = outcome.market.stated_goal, float(outcome.virtual_costs @ losses)
    changes = {
        "privacy_loss": losses,
        "weights": weights,
        "mse": mse,
        "worst_mse": worst,
        "objective": spent + goal.buyer_weight * worst if isinstance(goal, Price) else spent,
        "payments": outcome.bids * losses + outcome.information_rent,
    }
    return dataclasses.replace(outcome, **{**changes, **more})


@each(("prior", "goal", "relation"), CASES)
def test_an_honest_local_record_holds_and_nothing_about_it_is_not_checked(
    prior: str, goal: str, relation: float
) -> None:
    outcome = outcome_of(prior, goal, relation)
    found = verify(Record.of(outcome))
    assert found.ok, found.summary()
    assert "Not checked" not in found.summary()
    assert consistent(outcome, outcome.privacy_loss).objective == pytest.approx(outcome.objective, rel=1e-12)


@each(("prior", "goal", "relation"), CASES)
def test_one_local_rent_a_thousandth_too_high_or_too_low_fails(prior: str, goal: str, relation: float) -> None:
    outcome = outcome_of(prior, goal, relation)
    row = int(np.argmax(outcome.information_rent))
    for change in (0.001, -0.001):
        by = np.zeros(12)
        by[row] = change * outcome.information_rent[row]
        low, high = outcome.rent_bounds
        lie = dataclasses.replace(
            outcome,
            information_rent=outcome.information_rent + by,
            payments=outcome.payments + by,
            rent_bounds=(low + by, high + by),
        )
        assert "rents" in failed(lie)


@each("relation", RELATIONS)
@each("goal", GOALS)
def test_one_local_loss_a_millionth_lower_fails(goal: str, relation: float) -> None:
    outcome = outcome_of("lognormal", goal, relation)
    losses = outcome.privacy_loss.copy()
    losses[int(np.argmax(losses))] *= 1 - 1e-6
    assert failed(consistent(outcome, losses)) == {"optimality"}


@pytest.mark.parametrize("relation", RELATIONS)
def test_an_optimum_that_was_clipped_instead_of_found_under_the_cap_fails(relation: float) -> None:
    honest, free = (outcome_of("uniform", "capped", relation, max_privacy_loss=cap) for cap in (2.0, None))
    clipped = np.minimum(free.privacy_loss, 2.0)
    assert (clipped == 2.0).any()
    lie = consistent(honest, clipped)
    assert lie.objective > honest.objective
    assert "optimality" in failed(lie)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_an_accuracy_missed_by_one_per_cent_fails(factor: float, relation: float) -> None:
    honest = outcome_of("lognormal", "accuracy", relation)
    other = outcome_of("lognormal", "accuracy", relation, goal=Accuracy(factor * 0.3))
    lie = consistent(honest, other.privacy_loss)
    assert np.sqrt(lie.worst_mse) == pytest.approx(factor * 0.3)
    assert "optimality" in failed(lie)
    assert "error and objective" in failed(dataclasses.replace(lie, mse=honest.mse, worst_mse=honest.worst_mse))


@pytest.mark.parametrize("goal", GOALS)
def test_another_number_of_people_fails_although_everything_else_fits(goal: str) -> None:
    """The optimum as it would be without the cheapest person."""
    outcome = outcome_of("uniform", goal)
    cheapest = int(np.argmin(outcome.bids))
    rest = np.delete(outcome.bids, cheapest)
    losses = np.insert(outcome.market.acquire(rest).privacy_loss, cheapest, 0.0)
    assert "optimality" in failed(consistent(outcome, losses))
