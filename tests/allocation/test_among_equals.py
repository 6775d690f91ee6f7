"""Among equals identity decides, never the bid: in the allocation, in replies to one's own bid, in payments."""

import numpy as np
import pytest

from hushbid.allocation import allocate, replies
from hushbid.mechanism import Market
from hushbid.priors import Empirical
from hushbid.verification.local_rule import LocalRule
from tests.extent import each


@each("seed", range(6))
@each("keyed", [False, True])
@each("people", [2, 5, 700])
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


@pytest.mark.parametrize(("weight", "keyed"), [(4.0, True), (60.0, False)])
@pytest.mark.parametrize("bids", [[1.0, 2.0, 2.0, 2.0], [2.0, 2.0, 1.0, 1.0], [0.5, 1.0, 1.0, 3.0]])
def test_no_misreport_pays_where_people_tie(bids: list[float], weight: float, keyed: bool) -> None:
    market = Market(prior=Empirical([1, 2, 3]), setting="local", buyer_weight=weight, user_weight=0.0)
    key = [2, 0, 3, 1] if keyed else None
    for person, truth in enumerate(bids):
        gains = []
        for bid in (0.2, 0.5, 1.0, 1.01, 1.5, 2.0, 2.01, 3.0, 3.5):
            said = market.acquire([*bids[:person], bid, *bids[person + 1 :]], tie_key=key)
            gains.append(said.payments[person] - truth * said.privacy_loss[person])
        honest = market.acquire(bids, tie_key=key)
        gain = honest.payments[person] - truth * honest.privacy_loss[person]
        assert gain >= -1e-12
        assert max(gains) <= gain + 1e-9


@each("seed", range(6))
@each("people", [2, 5, 300])
def test_costs_an_ulp_apart_are_ranked_alike_by_allocation_replies_and_verification(people: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight, variance = float(rng.uniform(5.0, 50.0)), 0.1
    near = [np.nextafter(0.71, 0.0), 0.71, np.nextafter(0.71, 1.0)]
    costs = rng.choice([0.31, 3.3, *near], people)
    costs[0] = 0.71
    rows, moved = rng.integers(0, people, 6), rng.choice(near, 6)
    options = {"setting": "local", "variance": variance, "error_weight": weight}
    found = replies(costs, **options).at(rows, moved)
    for j, (row, cost) in enumerate(zip(rows, moved, strict=True)):
        changed = costs.copy()
        changed[row] = cost
        expected = allocate(changed, **options).privacy_loss
        assert found.loss[j] == pytest.approx(expected[row], rel=1e-7)
        again = LocalRule(changed, variance, weight)
        assert again.at(np.array([row]), np.array([cost])).loss[0] == pytest.approx(expected[row], rel=1e-7)
        assert again.everybody(int(row), float(cost))[0] == pytest.approx(expected, rel=1e-7)


def test_nobody_gains_where_two_steps_of_a_pilot_in_cents_are_an_ulp_apart() -> None:
    pilot = Empirical([0.31, 0.59, 0.60, 0.61, 0.63, 1.23, 1.39, 2.33])
    market = Market(prior=pilot, setting="local", variance=0.1, buyer_weight=11.0, user_weight=0.0)
    honest = market.acquire([1.23, 0.62, 0.2])
    for bid in (0.31, 0.5, 0.59, 0.60, 0.61, 0.615, 0.62, 0.63, 1.0, 1.23, 2.33):
        said = market.acquire([1.23, 0.62, bid])
        gain = said.payments[2] - 0.2 * said.privacy_loss[2] - (honest.payments[2] - 0.2 * honest.privacy_loss[2])
        assert gain <= honest.incentive_error
