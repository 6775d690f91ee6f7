"""Records of strata: honest ones hold, altered ones fail."""

from dataclasses import replace

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, Price
from hushbid.mechanism import Market, Outcome
from hushbid.priors import Uniform
from hushbid.record import Record
from hushbid.verification import verify
from hushbid.verification.verifying import findings


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
    assert verify(Record.of(outcome)).ok
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
        found = findings(Record.of(replace(outcome, **change)))
        assert any(check.status == "fails" for check in found), sorted(change)
