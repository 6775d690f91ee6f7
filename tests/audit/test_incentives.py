"""The incentive audit finds what is wrong, and says no more than it knows when it finds nothing."""

from dataclasses import dataclass

import numpy as np
import pytest

from hushbid import Beta, Empirical, Exponential, Grouped, Market, Uniform
from hushbid.audit import check_incentives
from hushbid.errors import InputError

REPORTS = [1.1, 1.35, 1.2, 1.8]
MARKET = Market(prior=Uniform(1, 2), variance=0.25, user_weight=0.5, buyer_weight=3)


@dataclass(frozen=True)
class Broken:
    privacy_loss: np.ndarray
    payments: np.ndarray
    mse: float


def off_by_a_percent(reports):
    right = MARKET.acquire(reports)
    return Broken(right.privacy_loss, right.payments * 1.01, right.mse)


def not_monotone(reports):
    right = MARKET.acquire(np.where(np.abs(reports - 1.5) < 0.1, 1.0, reports))
    return Broken(right.privacy_loss, right.payments, right.mse)


def the_mean_for_all(reports):
    right = MARKET.acquire(reports)
    return Broken(np.full(len(reports), right.privacy_loss.mean()), right.payments, right.mse)


def pay_the_reported_cost(reports):
    right = MARKET.acquire(reports)
    return Broken(right.privacy_loss, reports * right.privacy_loss + 0.5 * (right.mse - 0.25), right.mse)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (off_by_a_percent, "integral"),
        (not_monotone, "raises the privacy loss"),
        (the_mean_for_all, ""),
        (pay_the_reported_cost, "misreport gains"),
    ],
)
def test_a_broken_rule_is_found_and_named_for_what_it_is(rule, words):
    report = check_incentives(rule, REPORTS, market=MARKET)
    assert not report.passed
    assert any(words in str(violation) for violation in report.violations)


@pytest.mark.parametrize(
    "market",
    [
        MARKET,
        Market(prior=Uniform(1, 2), variance=0.25, setting="local"),
        Market(prior=Uniform(1, 2), variance=0.25, max_privacy_loss=0.7),
        Market(prior=Uniform(1, 2), variance=0.25, outside_option="estimate"),
        Market(prior=Exponential(1.0), variance=0.25, user_weight=0.0),
        Market(prior=Beta(2, 2, 1, 2), variance=0.25),
        Market(prior=Empirical([1.0, 1.2, 1.5, 1.9]), variance=0.25, setting="local"),
        Market(
            prior=Grouped({"a": Uniform(1, 2), "b": Uniform(0.5, 3)}, ["a", "b", "a", "b"]),
            variance=[0.1, 0.2, 0.25, 0.2],
            user_weight=[0.0, 1.0, 0.5, 0.2],
        ),
    ],
    ids=["central", "local", "cap", "estimate", "exponential", "beta", "empirical", "grouped"],
)
def test_nothing_is_found_in_our_own_mechanism(market):
    report = check_incentives(market, REPORTS, points=17, people=2)
    assert report.passed, report.violations
    assert report.reports_tried > 60
    assert report.participation_slack >= -report.stated_error - 1e-9
    assert "Not found is not proved" in report.summary()


def test_a_rule_needs_a_market_to_be_judged_by():
    with pytest.raises(InputError, match="market must be given"):
        check_incentives(off_by_a_percent, REPORTS)
