"""Limits and caps of one's own on engines: what memory decides, wherever the rows are."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.engine import price
from hushbid.engine.everybody import everybody
from hushbid.engine.pricing import count
from hushbid.errors import BidError, InputError, MarketError, Unreachable
from hushbid.mechanism import Market
from hushbid.priors import Grouped, Prior, Uniform
from tests.engine.conftest import KINDS, Kind
from tests.engine.test_price import GROUPS, assert_same, table

N = 500
GOALS: dict[str, Goal] = {
    "price": Price(3000),
    "accuracy": Accuracy(0.04),
    "budget": Budget(20),
    "hard budget": HardBudget(20),
}
MARKET = Market(prior=Uniform(1, 2), goal=Price(3000))
RNG = np.random.default_rng(70)
BIDS = Uniform(1, 2).sample(N, rng=RNG)
LIMITS = np.where(RNG.random(N) < 0.3, RNG.uniform(0.005, 0.05, N), np.inf)


def column(limits: Any) -> pa.Array:
    """As people leave it: nothing where they name none."""
    return pa.array([None if limit == np.inf else limit for limit in limits], pa.float64())


@cache
def decided(goal: str) -> Any:
    """In memory, once for all engines."""
    return replace(MARKET, goal=GOALS[goal]).acquire(BIDS, limits=LIMITS)


PAIRS = [
    (kind, goal)
    for turn, kind in enumerate(KINDS)
    for place, goal in enumerate(GOALS)
    if kind == "arrow" or place == (turn % len(GOALS) if kind != "spark" else list(GOALS).index("accuracy"))
]
"""One engine keeps limits under every goal, the others under one each."""


@pytest.mark.parametrize(("kind", "goal"), PAIRS, indirect=["kind"])
def test_every_engine_keeps_the_limits_that_people_state_as_memory_does(kind: Kind, goal: str) -> None:
    people, outcome = table(BIDS, most=column(LIMITS)), decided(goal)
    priced = price(kind.make(people), replace(MARKET, goal=GOALS[goal]), limit="most")
    found = kind.read(priced.frame)
    assert_same(found, priced, outcome)
    assert (found["privacy_loss"].to_numpy() <= LIMITS).all()
    assert (found["privacy_loss"].to_numpy() == LIMITS).any()
    assert priced.summary.cap_cost == pytest.approx(outcome.cap_cost, rel=1e-9)


@pytest.mark.parametrize("name", ["limit", "cap"])
def test_a_cap_per_person_is_a_column_as_a_limit_is_and_the_lower_of_both_counts(name: str) -> None:
    people = table(BIDS, most=column(LIMITS), other=np.full(N, 0.03))
    options: dict[str, Any] = {name: "most", {"limit": "cap", "cap": "limit"}[name]: "other"}
    priced = price(people, MARKET, **options)
    assert_same(priced.frame.sort_by("id"), priced, MARKET.acquire(BIDS, limits=np.minimum(LIMITS, 0.03)))


def test_a_cap_per_person_goes_with_user_weights_where_limits_do_not() -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    priced = price(table(BIDS, most=LIMITS), market, cap="most")
    assert_same(priced.frame.sort_by("id"), priced, replace(market, max_privacy_loss=LIMITS).acquire(BIDS))
    with pytest.raises(InputError, match="user_weight must be 0 where people state limits"):
        price(table(BIDS, most=LIMITS), market, limit="most")


def test_limits_are_told_apart_from_groups_and_variances_of_people_with_one_bid() -> None:
    bids, labels = np.repeat([1.1, 1.2], 60), np.tile(["young", "old"], 60)
    spread, limits = RNG.choice([0.1, 0.2], 120), RNG.choice([0.02, 0.04, np.inf], 120)
    priors: dict[str, Prior] = GROUPS
    market = replace(MARKET, prior=Grouped(priors, []), max_correlation=0.02)
    people = table(bids, who=labels, spread=spread, most=limits)
    priced = price(people, market, group="who", variance="spread", limit="most")
    memory = replace(market, prior=Grouped(priors, labels), variance=spread)
    assert_same(priced.frame.sort_by("id"), priced, memory.acquire(bids, limits=limits))


@pytest.mark.parametrize("goal", ["price", "accuracy", "budget"])
def test_limits_that_nobody_meets_are_priced_by_sums_and_change_nothing(goal: str) -> None:
    bids = Uniform(1, 2).sample(3000, rng=RNG)
    market, sums = replace(MARKET, goal=GOALS[goal]), {"gather": 100, "window": 50}
    free = price(table(bids), market, **sums)
    high = price(table(bids, most=np.full(3000, 5.0)), market, limit="most", **sums)
    assert high.summary == free.summary
    assert high.summary.method == "summed"
    low = price(table(bids, most=LIMITS[RNG.integers(0, N, 3000)]), market, limit="most", **sums)
    assert low.summary.method == "gathered"


def test_a_limit_that_is_no_positive_number_is_a_bad_row_and_a_missing_one_is_none() -> None:
    bids = [1.1, 1.2, 1.3, 1.4, 1.5]
    spoilt = pa.table({"id": range(5), "bid": bids, "most": [0.5, 0.0, None, 1e-300, float("nan")]})
    with pytest.raises(BidError, match=r"1 of 5 rows .*row 3 is with a negative limit or a cap"):
        price(spoilt, MARKET, limit="most")
    priced = price(spoilt, MARKET, limit="most", on_bad_rows="drop")
    kept, limits = [1.1, 1.2, 1.3, 1.5], [0.5, 0.0, np.inf, np.inf]
    assert_same(priced.frame, priced, MARKET.acquire(kept, limits=limits))
    found = everybody(count(spoilt, MARKET, {"bid": "bid", "id": "id", "limit": "most"}, on_bad_rows="drop"))
    assert found.limits is not None
    assert found.limits.tolist() == limits
    with pytest.raises(InputError, match="Column 'most' must hold numbers, not texts"):
        price(pa.table({"bid": [1.5], "most": ["much"]}), MARKET, limit="most")
    with pytest.raises(InputError, match="There is no column 'least'"):
        price(spoilt, MARKET, limit="least")


def test_limits_are_refused_where_they_cannot_be_kept_or_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    people = table(BIDS, most=LIMITS)
    local = replace(MARKET, setting="local")
    for name, words in (("limit", "limits cannot be stated in the local"), ("cap", "max_privacy_loss must be one num")):
        with pytest.raises(InputError, match=words):
            price(people, local, **{name: "most"})
    tight = table(BIDS, most=np.full(N, 0.001))
    with pytest.raises(Unreachable, match=r"the least that 500 people can reach within their limits, got 0\.04"):
        price(tight, replace(MARKET, goal=Accuracy(0.04)), limit="most")
    monkeypatch.setattr("hushbid.engine.pricing.MOST", 100)
    with pytest.raises(
        MarketError, match=r"500 people could matter, more than the 100 .* limits on privacy losses make"
    ):
        price(people, MARKET, limit="most")
