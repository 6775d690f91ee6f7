"""No forged payment of any kind of market gets the verdict *holds*, whatever tolerance and bounds are stated."""

from dataclasses import replace

import numpy as np
import pytest

from hushbid.allocation import HardBudget
from hushbid.mechanism import Market, Outcome
from hushbid.record import Record
from hushbid.verification import verify, work
from hushbid.verification.check_rents import largest_payment
from hushbid.verification.stated_numbers import Facts
from hushbid.verification.verifying import findings
from tests.extent import ALL_CASES
from tests.verification.kinds import BIDS, KINDS, copied, outcome_of, stretched, with_rents


def forgeries(outcome: Outcome) -> dict[str, np.ndarray]:
    rents, row = outcome.information_rent, int(np.argmax(outcome.information_rent))
    more, little = rents.copy(), rents.copy()
    more[row] *= 1.15
    little[row] += 1e-5 * largest_payment(Facts.of(Record.of(outcome)))
    found = {"halved": 0.5 * rents, "one a little more": little, "one more": more}
    return {"zero": 0.0 * rents, **found} if ALL_CASES else found


def status_of(outcome: Outcome) -> str:
    """What the first check says that does not hold; *holds* if there is none."""
    found = findings(Record.of(outcome))
    return next((check.status for check in found if check.status in ("fails", "incomplete")), "holds")


@pytest.mark.parametrize("kind", KINDS)
def test_honest_payments_hold_and_forged_ones_do_not(kind: str) -> None:
    outcome = outcome_of(kind)
    assert status_of(outcome) == "holds"
    for name, rents in forgeries(outcome).items():
        forged = with_rents(outcome, rents)
        assert status_of(forged) == "fails", name
        # with bounds that hold the truth, and a tolerance that would allow them
        assert status_of(stretched(forged, outcome, tolerance=0.1)) == "fails", name
    # or the usual one
    assert status_of(stretched(forged, outcome, tolerance=1e-6)) != "holds"


def test_decisions_of_a_smaller_hard_budget_fail() -> None:
    smaller = Market(prior=outcome_of("hard budget").market.prior, goal=HardBudget(16.0)).acquire(BIDS)
    for tolerance in (0.1, 1e-6):
        stated = copied(Market(prior=smaller.market.prior, goal=HardBudget(20.0)), tolerance=tolerance)
        assert status_of(replace(smaller, market=stated)) == "fails"


def test_the_work_is_bounded_whatever_the_record_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST_WORK", 1e3)
    found = verify(Record.of(outcome_of("central price")))
    assert found.verdict == "incomplete"
    assert found.incomplete == ("computation",)
