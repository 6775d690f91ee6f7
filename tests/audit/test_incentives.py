"""The incentive audit finds what is wrong, and says no more than it knows when it finds nothing."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from hushbid import Accuracy, Beta, Budget, Empirical, Exponential, Grouped, HardBudget, Market, Price, Uniform
from hushbid.audit import check_incentives
from hushbid.audit.suite import audits_of
from hushbid.errors import InputError
from tests.extent import each

BIDS = [1.1, 1.35, 1.2, 1.8]
MARKET = Market(prior=Uniform(1, 2), variance=0.25, user_weight=0.5, buyer_weight=3)


@dataclass(frozen=True)
class Broken:
    privacy_loss: np.ndarray
    payments: np.ndarray
    mse: float


def off_by_a_percent(bids):
    right = MARKET.acquire(bids)
    return Broken(right.privacy_loss, right.payments * 1.01, right.mse)


def not_monotone(bids):
    right = MARKET.acquire(np.where(np.abs(bids - 1.5) < 0.1, 1.0, bids))
    return Broken(right.privacy_loss, right.payments, right.mse)


def the_mean_for_all(bids):
    right = MARKET.acquire(bids)
    return Broken(np.full(len(bids), right.privacy_loss.mean()), right.payments, right.mse)


def pay_the_reported_cost(bids):
    right = MARKET.acquire(bids)
    return Broken(right.privacy_loss, bids * right.privacy_loss + 0.5 * (right.mse - 0.25), right.mse)


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
    bid = check_incentives(rule, BIDS, market=MARKET, points=17, people=2)
    assert not bid.passed
    assert any(words in str(violation) for violation in bid.violations)


@pytest.mark.parametrize(
    "market",
    [
        MARKET,
        Market(prior=Uniform(1, 2), variance=0.25, setting="local", buyer_weight=1.0, user_weight=1.0),
        Market(prior=Uniform(1, 2), variance=0.25, max_privacy_loss=0.7, buyer_weight=1.0, user_weight=1.0),
        Market(prior=Uniform(1, 2), variance=0.25, outside_option="estimate", buyer_weight=1.0, user_weight=1.0),
        Market(prior=Exponential(1.0), variance=0.25, user_weight=0.0, buyer_weight=1.0),
        Market(prior=Beta(2, 2, 1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0),
        Market(
            prior=Empirical([1.0, 1.2, 1.5, 1.9]), variance=0.25, setting="local", buyer_weight=1.0, user_weight=1.0
        ),
        Market(
            prior=Grouped({"a": Uniform(1, 2), "b": Uniform(0.5, 3)}, ["a", "b", "a", "b"]),
            variance=[0.1, 0.2, 0.25, 0.2],
            user_weight=[0.0, 1.0, 0.5, 0.2],
            buyer_weight=1.0,
        ),
    ],
    ids=["central", "local", "cap", "estimate", "exponential", "beta", "empirical", "grouped"],
)
def test_nothing_is_found_in_our_own_mechanism(market):
    bid = check_incentives(market, BIDS, points=9, rows=[0])
    assert bid.passed, bid.violations
    assert bid.bids_tried > 15
    assert bid.participation_slack >= -bid.stated_error - 1e-9
    assert "Not found is not proved" in bid.summary()


GOALS = [Price(3.0), Accuracy(0.5), Budget(2.0), HardBudget(2.0)]


@each("relation", [0.0, 0.2])
@each("goal", GOALS)
def test_nothing_is_found_under_any_goal(goal, relation):
    prior = Empirical([1.0, 1.2, 1.5, 1.9]) if relation > 0.0 else Uniform(1, 2)
    market = Market(prior=prior, goal=goal, max_correlation=relation, population=6)
    bid = check_incentives(market, BIDS, points=17, rows=[1])
    assert bid.passed, bid.violations
    assert bid.payment_resolution < 0.02


@pytest.mark.parametrize("goal", [Accuracy(0.45), Budget(2.0)], ids=lambda goal: goal.kind)
def test_charging_at_the_realised_multiplier_as_if_it_had_been_fixed_beforehand_is_found(goal):
    """The losses are right, and each campaign's level is the optimum for some price of the error; but that price moves
    with the bids, and payments made as if it did not leave something to gain."""
    market = Market(prior=Uniform(1, 2), goal=goal)

    def charged(bids):
        right = market.acquire(bids)
        price = Price(right.allocation.error_weight)
        return Broken(right.privacy_loss, replace(market, goal=price).acquire(bids).payments, right.mse)

    honest = charged(np.array(BIDS))
    assert np.allclose(
        honest.privacy_loss,
        replace(market, goal=Price(market.acquire(BIDS).allocation.error_weight)).acquire(BIDS).privacy_loss,
    )
    bid = check_incentives(charged, BIDS, market=market, rows=[0], points=17)
    assert {violation.claim for violation in bid.violations} >= {"truth", "payment"}
    assert bid.largest_gain > 1e-3  # far beyond any error stated


def test_clipped_losses_with_the_rents_of_unclipped_ones_are_found():
    market = Market(prior=Uniform(1, 2), goal=Budget(4.0))
    cap = 0.8 * float(market.acquire(BIDS).privacy_loss.max())

    def clipped(bids):
        right = market.acquire(bids)
        losses = np.minimum(right.privacy_loss, cap)
        return Broken(losses, bids * losses + right.information_rent, right.mse)

    bid = check_incentives(clipped, BIDS, market=market, rows=[0, 1], points=17)
    assert "truth" in {violation.claim for violation in bid.violations}


def test_a_hard_budget_shared_out_by_what_everybody_is_paid_herself_is_found():
    """Scaling actual payments down to the budget: a share that depends on one's own bid invites a misreport."""
    soft = Market(prior=Uniform(1, 2), goal=Budget(2.0))

    def scaled(bids):
        right = soft.acquire(bids)
        share = min(1.0, 1.8 / right.total_payment)
        return Broken(share * right.privacy_loss, share * right.payments, right.mse)

    bid = check_incentives(scaled, BIDS, market=soft, rows=[0, 1], points=17)
    assert not bid.passed


STEPS = Empirical([1.0, 1.2, 1.5, 1.9])
LIMITS = [0.5, 0.9, 0.35, 1.5]
LIMITED = [Price(3.0), Accuracy(1.2), Budget(1.5), HardBudget(8.0)]
LIMITED_MARKET = Market(prior=STEPS, goal=Price(3.0), user_weight=0.0)


@pytest.mark.parametrize("goal", LIMITED, ids=lambda goal: goal.kind)
def test_nothing_is_found_where_people_state_a_price_and_a_limit(goal):
    """Of both, other ones are tried together; what would cost somebody more than she accepts is no gain to her."""
    market = Market(prior=STEPS, goal=goal, user_weight=0.0)
    assert (market.acquire(BIDS, limits=LIMITS).privacy_loss == LIMITS).any()  # a limit binds
    bid = check_incentives(market, BIDS, limits=LIMITS, points=3, rows=[0])
    assert bid.passed, bid.violations
    assert bid.limits_stated
    assert "no misreport of price or limit gained" in bid.summary()


def clipped_at_the_limit(bids, limits):
    """The optimum without limits, clipped, and paid as if it were the best under them."""
    free, right = LIMITED_MARKET.acquire(bids), LIMITED_MARKET.acquire(bids, limits=limits)
    losses = np.minimum(free.privacy_loss, limits)
    return Broken(losses, bids * losses + right.information_rent, right.mse)


def rents_without_the_limit(bids, limits):
    free, right = LIMITED_MARKET.acquire(bids), LIMITED_MARKET.acquire(bids, limits=limits)
    return Broken(right.privacy_loss, bids * right.privacy_loss + free.information_rent, right.mse)


def limits_ignored(bids, limits):
    free = LIMITED_MARKET.acquire(bids)
    return Broken(free.privacy_loss, free.payments, free.mse)


def a_bonus_for_generous_limits(bids, limits):
    right = LIMITED_MARKET.acquire(bids, limits=limits)
    return Broken(right.privacy_loss, right.payments + 0.01 * np.minimum(limits, 9.0), right.mse)


@pytest.mark.parametrize(
    ("rule", "claim"),
    [
        (clipped_at_the_limit, "truth"),
        (rents_without_the_limit, "truth"),
        (limits_ignored, "limit"),
    ],
)
def test_a_rule_that_is_wrong_about_limits_is_found(rule, claim):
    bid = check_incentives(rule, BIDS, limits=LIMITS, market=LIMITED_MARKET, points=3, rows=[0])
    assert claim in {violation.claim for violation in bid.violations}


def test_a_gain_by_a_wrong_limit_is_found_and_named_with_the_limit_that_brings_it():
    bid = check_incentives(a_bonus_for_generous_limits, BIDS, limits=LIMITS, market=LIMITED_MARKET, points=3, rows=[2])
    assert "truth" in {violation.claim for violation in bid.violations}
    [finding] = bid.findings
    assert finding.gain > 0.0
    assert finding.misstated_limit > LIMITS[2]


def test_limits_must_be_one_per_bid():
    with pytest.raises(InputError, match="limits must be one per bid, 4, got 2"):
        check_incentives(MARKET, BIDS, limits=[1.0, 2.0])
    with pytest.raises(InputError, match=r"limits must be at least 2\*\*-53 .* but row 1 is not"):
        check_incentives(MARKET, BIDS, limits=[1.0, -1.0, None, 1.0])


def test_the_suite_tries_other_limits_where_an_outcome_has_some():
    bids = STEPS.sample(40, rng=np.random.default_rng(2))
    outcome = Market(prior=STEPS, goal=Price(1e4), user_weight=0.0).acquire(bids, limits=np.linspace(0.2, 1.0, 40))
    [bid] = audits_of(outcome, checks=("incentives",), tested=1, among=4)
    assert bid.passed, bid.violations
    assert bid.limits_stated


@pytest.mark.parametrize("goal", [Accuracy(0.06), Budget(40.0), HardBudget(40.0)], ids=lambda goal: goal.kind)
def test_a_large_campaign_is_audited_in_a_small_one_with_its_goal_in_proportion(goal):
    outcome = Market(prior=Uniform(1, 2), goal=goal, max_correlation=0.05).acquire(np.linspace(1, 2, 200))
    [bid] = audits_of(outcome, checks=("incentives",), tested=2, among=8)
    assert bid.passed, bid.violations
    assert bid.people == 2


def test_a_rule_needs_a_market_to_be_judged_by():
    with pytest.raises(InputError, match="market must be given"):
        check_incentives(off_by_a_percent, BIDS)
