"""No forged payment of any kind of market gets the verdict *holds*, whatever tolerance and bounds are stated."""

import numpy as np
import pytest

from hushbid.allocation import HardBudget
from hushbid.mechanism import Market, Outcome
from hushbid.record import Record
from hushbid.verification import verify
from hushbid.verification.check_rents import largest_payment
from hushbid.verification.stated_numbers import Facts
from tests.verification.kinds import KINDS, REPORTS, outcome_of, stretched, with_rents

UNCHECKED = {"central price, strata and caps", "central price, strata and limits"}
"""Where rents are not checked yet."""


def forgeries(outcome: Outcome) -> dict[str, np.ndarray]:
    rents, row = outcome.information_rent, int(np.argmax(outcome.information_rent))
    more, little = rents.copy(), rents.copy()
    more[row] *= 1.15
    little[row] += 1e-5 * largest_payment(Facts.of(Record.of(outcome)))
    return {"zero": 0.0 * rents, "halved": 0.5 * rents, "one more": more, "one a little more": little}


@pytest.mark.parametrize("kind", KINDS)
def test_honest_payments_hold_and_forged_ones_do_not(kind: str) -> None:
    outcome = outcome_of(kind)
    honest = verify(Record.of(outcome), people=2)
    assert honest.verdict == ("incomplete" if kind in UNCHECKED else "holds"), honest.summary()
    for name, rents in forgeries(outcome).items():
        forged = with_rents(outcome, rents)
        found = verify(Record.of(forged), people=2).verdict
        assert found == ("incomplete" if kind in UNCHECKED else "fails"), name
        # with bounds that hold the truth, and a tolerance that would allow them or the usual one
        for tolerance in (0.1, 1e-6) if name == "one more" else (0.1,):
            lie = stretched(forged, outcome, tolerance=tolerance)
            assert verify(Record.of(lie), people=2).verdict != "holds", (name, tolerance)


def test_decisions_of_a_smaller_hard_budget_fail() -> None:
    smaller = Market(prior=outcome_of("hard budget").market.prior, goal=HardBudget(16.0)).acquire(REPORTS)
    for tolerance in (0.1, 1e-6):
        from dataclasses import replace

        stated = Market(prior=smaller.market.prior, goal=HardBudget(20.0))
        object.__setattr__(stated, "tolerance", tolerance)
        assert verify(Record.of(replace(smaller, market=stated)), people=2).verdict == "fails"


def test_the_work_is_bounded_whatever_the_record_says() -> None:
    outcome = Market(prior=outcome_of("central price").market.prior, buyer_weight=1e-11).acquire(REPORTS)
    assert verify(Record.of(outcome)).verdict == "incomplete"
