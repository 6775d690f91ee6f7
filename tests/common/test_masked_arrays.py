"""A masked entry is not a number: a masked report, cost or weight is refused, and masked data are missing."""

from collections.abc import Callable

import numpy as np
import pytest

from hushbid import Empirical, Grouped, Market, Uniform, allocate, privatize, release
from hushbid.allocation import replies
from hushbid.audit import check_incentives
from hushbid.baselines import compare
from hushbid.disclosure import ReleasePlan
from hushbid.errors import DataError, InputError
from hushbid.estimation import best_weights

MASKED = np.ma.array([1.1, 1.2, 1.3], mask=[False, True, False])
SHARES = np.ma.array([0.1, 0.2, 0.3], mask=[False, True, False])
LABELS = np.ma.array(["a", "b", "a"], mask=[False, True, False])
MARKET = Market(prior=Uniform(1, 2), variance=0.2, user_weight=0.0, buyer_weight=20.0)

ENTRIES: dict[str, Callable[[], object]] = {
    "reports": lambda: MARKET.acquire(MASKED),
    "reports by group": lambda: Market(
        prior=Grouped({"a": Uniform(1, 2)}, ["a"] * 3), variance=0.2, user_weight=0.0, buyer_weight=1.0
    ).acquire(MASKED),
    "one masked report": lambda: MARKET.acquire(np.ma.masked),
    "a tie key": lambda: MARKET.acquire([1.1, 1.2, 1.3], tie_key=MASKED),
    "a schedule": lambda: MARKET.acquire([1.1, 1.2, 1.3]).schedule(0).at(MASKED),
    "variances": lambda: Market(prior=Uniform(1, 2), variance=SHARES, user_weight=0.0, buyer_weight=1.0),
    "user weights": lambda: Market(prior=Uniform(1, 2), variance=0.2, user_weight=SHARES, buyer_weight=1.0),
    "bounds": lambda: Market(
        prior=Uniform(1, 2), bounds=np.ma.array([0, 1], mask=[False, True]), user_weight=0.0, buyer_weight=1.0
    ),
    "virtual costs": lambda: allocate(MASKED),
    "replies": lambda: replies(MASKED, setting="local"),
    "a vector of variances": lambda: allocate([1.0, 1.0, 1.0], variance=SHARES),
    "samples": lambda: Empirical(MASKED),
    "weights of samples": lambda: Empirical([1, 2, 3], weights=MASKED),
    "costs": lambda: Uniform(1, 2).virtual_cost(MASKED),
    "quantile levels": lambda: Uniform(1, 2).quantile(SHARES),
    "labels": lambda: Grouped({"a": Uniform(1, 2), "b": Uniform(1, 3)}, LABELS),
    "losses": lambda: best_weights(SHARES, setting="central", variance=0.2),
    "promises": lambda: ReleasePlan.of(SHARES, setting="central", bounds=(0, 1)),
    "variances of a plan": lambda: ReleasePlan.of([0.1] * 3, setting="central", bounds=(0, 1), variance=SHARES),
    "an audit": lambda: check_incentives(MARKET, MASKED),
    "baselines": lambda: compare(MARKET, MASKED),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.filterwarnings("ignore:.*converting a masked element to nan")
def test_a_masked_entry_is_refused(entry: str) -> None:
    with pytest.raises(InputError, match=r"masked|must be numbers|must be two numbers|not a number"):
        ENTRIES[entry]()


def test_an_array_whose_mask_is_empty_is_an_array() -> None:
    reports = np.ma.array([1.1, 1.2, 1.3], mask=False)
    assert MARKET.acquire(reports).payments.tolist() == MARKET.acquire([1.1, 1.2, 1.3]).payments.tolist()


def test_masked_data_are_missing() -> None:
    plan = MARKET.acquire([1.1, 1.2, 1.3])
    data = np.ma.array([0.2, 0.9, 0.4], mask=[False, True, False])
    assert release(plan, data, question="masked data").privacy_loss.tolist()[1] == 0.0


def test_masked_messages_are_missing_and_a_masked_value_cannot_be_sent() -> None:
    outcome = Market(prior=Uniform(1, 2), setting="local", variance=0.2, user_weight=0.0, buyer_weight=900.0).acquire(
        [1.1, 1.1]
    )
    sent = [privatize(0.4, float(loss), (0, 1)).to_json() for loss in outcome.privacy_loss]
    assert outcome.active == 2
    assert (
        release(outcome, np.ma.array(sent, dtype=object, mask=[False, True]), question="masked").privacy_loss[1] == 0.0
    )
    with pytest.raises(DataError, match="missing"):
        privatize(np.ma.masked, 1.0, (0, 1))  # type: ignore[arg-type]
