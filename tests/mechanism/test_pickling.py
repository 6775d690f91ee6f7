"""What a market gives can be pickled and copied, and its repr is short and shows nothing of one person."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import hushbid
from hushbid.audit import check_incentives

REPORTS = [1.0371, 1.2713, 1.9137]
MARKET = hushbid.Market(prior=hushbid.Uniform(1, 2), goal=hushbid.Budget(5))
OUTCOME = MARKET.acquire(REPORTS)
PEOPLE = {"id": ["ann", "bob", "cem"], "sensitivity": REPORTS}
RESULTS: dict[str, Any] = {
    "outcome": OUTCOME,
    "common schedule": OUTCOME.schedule(),
    "own schedule": OUTCOME.schedule(user=1),
    "incentives": check_incentives(MARKET, REPORTS, people=2, rng=np.random.default_rng(1)),
    "purchase": hushbid.buy(PEOPLE, MARKET, currency="EUR"),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_can_be_pickled_and_copied_and_its_repr_shows_nobody(name: str) -> None:
    result = RESULTS[name]
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert repr(again) == repr(result)
    assert len(repr(result)) < 300
    assert "object at 0x" not in repr(result)
    assert not [one for one in (*map(str, REPORTS), *PEOPLE["id"]) if str(one) in repr(result)]


@pytest.mark.parametrize("name", ["common schedule", "own schedule"])
def test_a_schedule_that_was_pickled_gives_the_same_numbers(name: str) -> None:
    again = pickle.loads(pickle.dumps(RESULTS[name]))
    for one, other in zip(again.at([1.1, 1.5]), RESULTS[name].at([1.1, 1.5]), strict=True):
        assert one.tolist() == other.tolist()
