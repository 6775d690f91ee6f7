"""Among equals identity decides, never the report: in the allocation, in replies to one's own report, in payments."""

import numpy as np
import pytest

from hushbid.allocation import allocate, replies
from hushbid.mechanism import Market
from hushbid.priors import Empirical


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("people", [2, 5, 700])
def test_a_reply_at_somebody_elses_cost_is_the_allocation_there(people: int, keyed: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = rng.choice([0.5, 1.0, 1.5, 2.0, 3.0, np.inf], people)
    costs[0] = 1.0
    weight = float(rng.choice([0.5, 4.0, 30.0, 3000.0]))
    key = rng.permutation(people) if keyed else None
    rows = rng.integers(0, people, 12)
    moved = rng.choice([0.5, 1.0, 1.5, 2.0, 3.0, 0.7], 12)
    found = replies(costs, setting="local", error_weight=weight, tie_key=key).at(rows, moved)
    for j, (row, cost) in enumerate(zip(rows, moved, strict=True)):
        changed = costs.copy()
        changed[row] = cost
        expected = allocate(changed, setting="local", error_weight=weight, tie_key=key)
        assert found.value[j] == pytest.approx(expected.objective, rel=1e-12)
        assert found.loss[j] == pytest.approx(expected.privacy_loss[row], rel=1e-7)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("weight", [4.0, 60.0])
@pytest.mark.parametrize("reports", [[1.0, 2.0, 2.0, 2.0], [2.0, 2.0, 1.0, 1.0], [0.5, 1.0, 1.0, 3.0]])
def test_no_misreport_pays_where_people_tie(reports: list[float], weight: float, keyed: bool) -> None:
    market = Market(prior=Empirical([1, 2, 3]), setting="local", buyer_weight=weight, user_weight=0.0)
    key = [2, 0, 3, 1] if keyed else None
    for person, truth in enumerate(reports):
        gains = []
        for report in (0.2, 0.5, 1.0, 1.01, 1.5, 2.0, 2.01, 3.0, 3.5):
            said = market.acquire([*reports[:person], report, *reports[person + 1 :]], tie_key=key)
            gains.append(said.payments[person] - truth * said.privacy_loss[person])
        honest = market.acquire(reports, tie_key=key)
        gain = honest.payments[person] - truth * honest.privacy_loss[person]
        assert gain >= -1e-12
        assert max(gains) <= gain + 1e-9
