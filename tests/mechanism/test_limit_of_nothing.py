"""A stated limit of 0 means "buy nothing from me": that person leaves the problem, and everybody else stays in it."""

from typing import Any

import numpy as np
import pytest

from hushbid import Accuracy, Budget, HardBudget, Market, Price
from hushbid.engine import price
from hushbid.errors import InputError
from hushbid.priors import Uniform
from hushbid.record import Record
from hushbid.verification import verify

BIDS = np.linspace(1.0, 1.9, 12)
LIMITS = [None, 0.0, 3.0, None, 0, None, 2.0, None, None, 1.5, None, 0.0]
GOALS = [Price(50.0), Accuracy(0.4), Budget(20.0, coin=0.01), HardBudget(20.0, coin=0.01)]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.kind)
def test_who_states_a_limit_of_0_sells_nothing_and_the_others_as_without_them(goal: Any) -> None:
    market = Market(prior=Uniform(1, 2), goal=goal, population=12, max_privacy_loss=5.0)
    outcome = market.acquire(BIDS, limits=LIMITS)
    out = np.array([limit == 0 for limit in LIMITS])
    assert not outcome.privacy_loss[out].any()
    assert not outcome.payments[out].any()
    assert outcome.privacy_loss[~out].any()
    if not isinstance(goal, HardBudget):  # whoever shares in a menu without selling keeps a place in it
        others = market.acquire(BIDS[~out], limits=[limit for limit in LIMITS if limit != 0])
        np.testing.assert_allclose(outcome.privacy_loss[~out], others.privacy_loss, rtol=1e-9)
        np.testing.assert_allclose(outcome.payments[~out], others.payments, rtol=1e-5)
    found = verify(Record.of(outcome, currency="EUR"))
    assert not [check for check in found.checks if check.status == "fails"]


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.kind)
def test_an_engine_buys_nothing_from_them_either(goal: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    market = Market(prior=Uniform(1, 2), goal=goal, max_privacy_loss=5.0)
    # the same bid with and without a limit of 0
    bids, limits = np.append(BIDS, BIDS[1]), [*LIMITS, None]
    people = pyarrow.table({"id": [str(row) for row in range(13)], "bid": bids, "limit": limits})
    priced = price(people, market, limit="limit")
    outcome = market.acquire(bids, limits=limits)
    np.testing.assert_allclose(priced.frame["privacy_loss"].to_numpy(), outcome.privacy_loss, rtol=1e-9)
    np.testing.assert_allclose(priced.frame["payment"].to_numpy(), outcome.payments, rtol=1e-6)
    with pytest.raises(InputError, match="cap that is not positive"):
        price(people, market, cap="limit")


def test_nothing_is_bought_where_everybody_states_0_and_negative_limits_are_refused() -> None:
    market = Market(prior=Uniform(1, 2), goal=Budget(20.0))
    assert market.acquire(BIDS, limits=np.zeros(12)).active == 0
    with pytest.raises(InputError, match="row 1"):
        market.acquire([1.0, 1.0], limits=[0.0, -1.0])
