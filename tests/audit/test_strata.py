"""The attacks on a campaign with strata: somebody of every stratum is put to the test, and a cheat on one is found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid import Accuracy, Market, Outcome, Uniform
from hushbid.audit import AccuracyCheck, IncentiveReport, PrivacyAudit, audits_of, incentives
from hushbid.mechanism.deciding import decide
from hushbid.mechanism.decision import Decision
from hushbid.mechanism.population import Population

LABELS = np.array(["young"] * 4 + ["old"] * 2)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    shares = {"young": 0.4, "old": 0.6}
    market = Market(prior=Uniform(1, 2), goal=Accuracy(0.5), strata=LABELS.tolist(), shares=shares)
    return market.acquire(np.linspace(1.02, 1.9, LABELS.size))


def test_an_honest_campaign_is_attacked_in_every_stratum_and_no_fault_is_found(outcome: Outcome) -> None:
    truth, privacy, accuracy = audits_of(outcome, samples=2_000)
    assert isinstance(truth, IncentiveReport)
    assert truth.passed
    assert len({LABELS[finding.row] for finding in truth.findings}) == 2
    assert isinstance(privacy, PrivacyAudit)
    assert isinstance(accuracy, AccuracyCheck)
    assert not privacy.rejected
    assert not accuracy.rejected


@pytest.mark.parametrize("cheated", ["old", "young"])
def test_who_is_paid_only_what_she_asks_is_found_in_whichever_stratum(
    outcome: Outcome, cheated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_rent(population: Population, bids: Any, *more: Any) -> Decision:
        right = decide(population, bids, *more)
        assert population.strata is not None
        inside = population.strata.codes == population.strata.names.index(cheated)
        return replace(right, payments=np.where(inside, bids * right.privacy_loss, right.payments))

    monkeypatch.setattr(incentives, "decide", without_rent)
    [found] = audits_of(outcome, checks=("incentives",))
    assert isinstance(found, IncentiveReport)
    assert any("misreport gains" in str(violation) for violation in found.violations)
