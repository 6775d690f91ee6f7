"""What a market gives can be pickled and copied, and its repr is short and shows nothing of one person."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hushbid
from hushbid import baselines
from hushbid.allocation.reply_rules import Replies
from hushbid.audit import check_incentives
from hushbid.payments.rule import Rents
from tests.extent import each

BIDS = [1.0371, 1.2713, 1.9137]
MARKET = hushbid.Market(prior=hushbid.Uniform(1, 2), goal=hushbid.Budget(5))
PEOPLE = {"id": ["ann", "bob", "cem"], "bid": BIDS}
RESULTS: dict[str, Callable[[], Any]] = {
    "outcome": lambda: MARKET.acquire(BIDS),
    "common schedule": lambda: MARKET.acquire(BIDS).schedule(),
    "own schedule": lambda: MARKET.acquire(BIDS).schedule(user=1),
    "incentives": lambda: check_incentives(MARKET, BIDS, people=2, points=5, rng=np.random.default_rng(1)),
    "purchase": lambda: hushbid.buy(PEOPLE, MARKET, currency="EUR"),
}
"""Computed by the tests: whoever only collects them does not wait."""


@each("name", RESULTS)
def test_a_result_can_be_pickled_and_copied_and_its_repr_shows_nobody(name: str) -> None:
    result = RESULTS[name]()
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert repr(again) == repr(result)
    assert len(repr(result)) < 300
    assert "object at 0x" not in repr(result)
    assert not [one for one in (*map(str, BIDS), *PEOPLE["id"]) if str(one) in repr(result)]


LIMITS = [0.1371, 0.2713, 0.9137]
LIMITED = hushbid.Market(prior=hushbid.Uniform(1, 2), buyer_weight=50, max_privacy_loss=LIMITS)
SHOWN: dict[str, Callable[[hushbid.Outcome], Any]] = {
    "a market with limits": lambda bought: LIMITED,
    "its people": lambda bought: bought.population,
    "an allocation": lambda bought: hushbid.allocate(BIDS, goal=hushbid.Price(50), variance=0.25),
    "bounds of rents": lambda bought: bought.rent_bounds,
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_repr_counts_people_and_shows_no_number_of_one(name: str) -> None:
    bought = LIMITED.acquire(BIDS)
    shown = repr(SHOWN[name](bought))
    assert len(shown) < 600
    numbers = [*BIDS, *LIMITS, *bought.privacy_loss.tolist(), *bought.weights.tolist(), *bought.payments.tolist()]
    assert not [one for one in numbers if f"{one:.4f}" in shown or repr(one) in shown]


def test_arrays_in_reprs_are_counted_wherever_a_dataclass_holds_what_people_said_or_are_paid() -> None:
    numbers = np.array(BIDS)
    decided = baselines.Decision(privacy_loss=numbers, rent=numbers, mse=0.5)
    told = baselines.BaselineOutcome(
        name="x", bids=numbers, privacy_loss=numbers, payments=numbers, information_rent=numbers, mse=0.5
    )
    rents = Rents(lower=numbers, upper=numbers, estimate=numbers)
    for one in (decided, told, rents, Replies(numbers, numbers, numbers)):
        assert "1.0371" not in repr(one)
        assert len(repr(one)) < 200


@pytest.mark.parametrize("name", ["common schedule", "own schedule"])
def test_a_schedule_that_was_pickled_gives_the_same_numbers(name: str) -> None:
    schedule = RESULTS[name]()
    again = pickle.loads(pickle.dumps(schedule))
    for one, other in zip(again.at([1.1, 1.5]), schedule.at([1.1, 1.5]), strict=True):
        assert one.tolist() == other.tolist()
