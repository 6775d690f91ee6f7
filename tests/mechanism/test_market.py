"""A market: what it refuses, how it converts units, what its outcome tells, keeps and survives."""

import json
import math
import warnings
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from scipy.integrate import quad

import hushbid
from hushbid import (
    Accuracy,
    Budget,
    Empirical,
    Exponential,
    Grouped,
    HardBudget,
    LogNormal,
    Market,
    Outcome,
    Price,
    Uniform,
    buyer_weight_for,
    from_scipy,
)
from hushbid.allocation import allocate
from hushbid.disclosure import ReleasePlan, privatize
from hushbid.errors import (
    BidError,
    DivergentPayment,
    HushbidError,
    InputError,
    MarketError,
    NobodyToBuyFrom,
    RecordError,
)
from hushbid.estimation import best_weights
from hushbid.mechanism import release
from tests.extent import each

PRIOR = Uniform(1, 2)
BIDS = np.array([1.05, 1.2, 1.35, 1.6, 1.9])


def market(**fields):
    return Market(**({"prior": PRIOR, "user_weight": 0.0, "buyer_weight": 50.0} | fields))


# -- what is refused ---------------------------------------------------------------------------------------------------

BAD_FIELDS = {
    "prior": [None, "uniform:1,2", Uniform],
    "setting": [None, "Central", 3, ["central"]],
    "bounds": [None, (0,), (1, 0), (0, 0), (0, math.inf), (math.nan, 1), ("a", "b"), "01", (0, 1, 2), (-1e308, 1e308)],
    "variance": ["x", -1, math.nan, math.inf, [0.1, -0.1], [], [[0.1]]],
    "buyer_weight": ["x", None, -1, math.nan, math.inf, [1, 2]],
    "user_weight": ["x", None, -1, math.nan, math.inf, [0, -1], [], [[0]]],
    "outside_option": [None, "own", 3, ["own_data"]],
    "max_privacy_loss": ["x", -1, 0, math.nan, math.inf, [[1, 2]], [1, 0], 1e-17],
    "tolerance": ["x", None, -1, 0, math.nan, 1.001e-6, 0.1],
}


def one_sentence(problem: BaseException) -> bool:
    text = str(problem)
    return "\n" not in text and text.count(". ") == 0 and len(text) < 250


@each(("field", "value"), [(name, bad) for name, all_bad in BAD_FIELDS.items() for bad in all_bad])
def test_each_field_refuses_what_is_not_allowed_in_one_sentence_that_names_it(field, value):
    with pytest.raises(InputError, match=field) as caught:
        market(**{field: value})
    assert one_sentence(caught.value)


@each(
    "bounds",
    [(0, 1), (-1e100, 1e100), (0, 1e-100), (0, 2e100), (0, 1e-101), (0, 1e-160), ("0", "1"), (True, 2), (5, 5 + 1e-15)],
)
def test_what_a_market_decides_about_is_a_range_that_can_be_released(bounds):
    def accepted(make):
        try:
            return make(bounds)
        except InputError:
            return None

    decided = accepted(lambda given: market(bounds=given).bounds)
    assert decided == accepted(lambda given: ReleasePlan.of([1.0], setting="central", bounds=given).bounds)
    assert (decided is None) == (accepted(lambda given: privatize(0.5, 1.0, given)) is None)


@pytest.mark.parametrize("setting", ["central", "local"])
def test_losses_too_small_to_release_are_not_decided_and_paid(setting):
    with pytest.raises(MarketError, match="too small to release anything") as caught:
        market(setting=setting, buyer_weight=1e-60).acquire(BIDS)
    assert one_sentence(caught.value)
    capped = market(setting=setting, buyer_weight=1e6, max_privacy_loss=2.0**-53).acquire(BIDS)
    sent = [privatize(0.5, float(loss), (0, 1)) if loss else None for loss in capped.privacy_loss]
    assert math.isfinite(release(capped, [0.5] * 5 if setting == "central" else sent, question="capped").estimate)


@pytest.mark.parametrize("setting", ["central", "local"])
@pytest.mark.parametrize(
    "fields", [{"bounds": (0, 1e80), "variance": 1e-140}, {"bounds": (-5e98, -4.99e98), "variance": 1e-300}]
)
def test_a_variance_that_cannot_be_seen_in_the_range_is_no_fault(setting, fields):
    width = fields["bounds"][1] - fields["bounds"][0]
    outcome = market(setting=setting, buyer_weight=1e60 / width**2, **fields).acquire(BIDS)
    assert outcome.active >= 1
    assert np.isfinite(outcome.payments).all()


@pytest.mark.parametrize(("field", "row"), [("variance", 2), ("user_weight", 2)])
def test_a_vector_with_a_bad_entry_names_its_row(field, row):
    with pytest.raises(InputError, match=rf"{field} must be (nonnegative|above 0) and finite, but row {row} is not"):
        market(**({"variance": 0.2} | {field: [0.1, 0.2, -3.0]}))


@pytest.mark.parametrize("wrong", [0.0, [0.1, 0.0]])
def test_a_variance_of_nothing_is_refused(wrong):
    with pytest.raises(InputError, match="variance must be above 0 and finite"):
        market(variance=wrong)


def test_a_variance_must_be_stated_as_soon_as_anybody_values_the_estimate():
    for weight in (1.0, [0.0, 0.0, 1e-9]):
        with pytest.raises(InputError, match="variance must be stated"):
            market(user_weight=weight)
    assert market(user_weight=[0.0, 0.0]).stated_variance == 0.25


def test_nobody_who_cares_about_the_estimate_is_refused():
    with pytest.raises(InputError, match="must not all be 0"):
        market(buyer_weight=0.0)
    assert market(buyer_weight=0.0, user_weight=[0.0, 1.0], variance=0.2).error_weight(2) == 1.0


def test_unequal_variances_are_refused_locally_where_the_optimum_is_hard_to_find():
    with pytest.raises(InputError, match="NP-hard"):
        market(setting="local", variance=[0.1, 0.2])


@each(
    ("bids", "error", "words"),
    [
        ([], InputError, "bids must be one number per person"),
        ([[1.1, 1.2]], InputError, "bids must be one number per person"),
        ([1.1, math.nan], BidError, "row 1"),
        ([1.1, None], BidError, "row 1"),
        ([1.1, -1.0], BidError, r"row 1 does: the support is \[1, 2\]"),
        ([1.1, 0.5, 0.7], BidError, r"rows 1, 2 do: the support is \[1, 2\]"),
        (["1.1"], BidError, "numbers"),
        ("1.1", BidError, "number"),
        (None, BidError, "numbers"),
    ],
)
def test_bad_bids_are_refused_by_row_and_never_by_value(bids, error, words):
    with pytest.raises(error, match=words) as caught:
        market().acquire(bids)
    assert one_sentence(caught.value)
    assert not any(value in str(caught.value) for value in ("0.5", "0.7", "-1"))


def test_vectors_of_the_wrong_length_are_refused():
    for field in ("variance", "user_weight"):
        with pytest.raises(InputError, match=rf"{field} must have one entry per person \(3 people\), got 2"):
            market(**({"variance": 0.2} | {field: [0.1, 0.2]})).acquire([1.1, 1.2, 1.3])
    with pytest.raises(InputError, match="one entry per label, 2 in all"):
        market(prior=Grouped({"a": PRIOR}, ["a", "a"])).acquire([1.1])
    with pytest.raises(InputError, match=r"tie_key must have one entry per person \(2\)"):
        market().acquire([1.1, 1.2], tie_key=[1])


def test_the_estimate_as_outside_option_needs_somebody_else_and_somebody_else_who_cares():
    with pytest.raises(InputError, match="at least two people"):
        market(outside_option="estimate").acquire([1.1])
    alone = market(outside_option="estimate", user_weight=[1.0, 0.0], buyer_weight=0.0, variance=0.2)
    with pytest.raises(InputError, match="somebody else who cares"):
        alone.acquire([1.1, 1.2])
    only_seller = market(outside_option="estimate", user_weight=1.0, variance=0.2)
    with pytest.raises(MarketError, match="without the only person"):
        only_seller.acquire([1.1, 2.5])


def test_a_market_cannot_be_changed_and_does_not_follow_the_callers_arrays():
    spread = np.array([0.1, 0.2])
    made = market(variance=spread)
    spread[0] = 9.0
    assert made.variance.tolist() == [0.1, 0.2]
    with pytest.raises(FrozenInstanceError):
        made.buyer_weight = 2.0
    with pytest.raises(ValueError, match="read-only"):
        made.variance[0] = 9.0


@each("convert", [list, tuple, np.array, pd.Series, pl.Series, lambda x: np.array(x, dtype=object)])
def test_bids_may_come_as_anything_that_holds_numbers(convert):
    expected = market().acquire(BIDS)
    assert market().acquire(convert(BIDS.tolist())).payments.tolist() == expected.payments.tolist()


def test_one_bid_and_whole_numbers_are_allowed():
    assert market().acquire(1.5).payments.shape == (1,)
    assert market().acquire([1, 2]).payments.tolist() == market().acquire([1.0, 2.0]).payments.tolist()
    assert market(buyer_weight=Decimal(50), max_privacy_loss=Fraction(1, 2)).max_privacy_loss == 0.5


# -- units -------------------------------------------------------------------------------------------------------------


@each("setting", ["central", "local"])
@each("outside", ["own_data", "estimate"])
@each("cap", [None, 0.7])
def test_other_data_units_change_the_error_and_nothing_else(setting, outside, cap):
    """Kilograms on [-2, 6], then grams: bounds × 1000, variance × 10⁶, weights / 10⁶."""
    fields = {"setting": setting, "outside_option": outside, "max_privacy_loss": cap}
    kilograms = market(bounds=(-2, 6), variance=3.0, buyer_weight=4.0, user_weight=0.5, **fields).acquire(BIDS)
    grams = market(bounds=(-2e3, 6e3), variance=3e6, buyer_weight=4e-6, user_weight=5e-7, **fields).acquire(BIDS)
    assert grams.privacy_loss == pytest.approx(kilograms.privacy_loss, rel=1e-9)
    assert grams.payments == pytest.approx(kilograms.payments, rel=1e-9)
    assert grams.objective == pytest.approx(kilograms.objective, rel=1e-12)
    assert grams.mse == pytest.approx(1e6 * kilograms.mse, rel=1e-12)
    assert grams.outside_error == pytest.approx(1e6 * kilograms.outside_error, rel=1e-9)


@pytest.mark.parametrize("setting", ["central", "local"])
def test_another_currency_changes_money_and_nothing_else(setting):
    euros = market(setting=setting).acquire(BIDS)
    cents = market(setting=setting, prior=Uniform(100, 200), buyer_weight=5e3).acquire(100 * BIDS)
    assert cents.privacy_loss == pytest.approx(euros.privacy_loss, rel=1e-9)
    assert cents.payments == pytest.approx(100 * euros.payments, rel=1e-9)
    assert cents.mse == pytest.approx(euros.mse, rel=1e-12)


@pytest.mark.parametrize("setting", ["central", "local"])
def test_the_error_and_the_objective_are_what_their_definitions_say_in_data_units(setting):
    made = market(setting=setting, bounds=(10, 30), variance=40.0, buyer_weight=0.3, user_weight=0.1)
    outcome = made.acquire(BIDS)
    weights, loss = outcome.weights, outcome.privacy_loss
    used = loss > 0
    noise = 2 * (20 / loss.sum()) ** 2 if setting == "central" else 2 * np.sum((weights[used] * 20 / loss[used]) ** 2)
    assert weights.sum() == pytest.approx(1.0)
    assert outcome.mse == pytest.approx(40.0 * np.sum(weights**2) + noise, rel=1e-9)
    assert made.error_weight(5) == pytest.approx(0.8)
    spent = float(outcome.virtual_costs[used] @ loss[used])
    assert outcome.objective == pytest.approx(0.8 * outcome.mse + spent, rel=1e-9)
    assert outcome.lower_bound <= outcome.objective * (1 + 1e-12)


def test_no_variance_means_the_worst_for_the_bounds():
    made = market(bounds=(0, 10))
    assert made.stated_variance == 25.0
    assert made.acquire(BIDS).payments == pytest.approx(market(bounds=(0, 10), variance=25.0).acquire(BIDS).payments)


def test_the_defaults_are_those_of_the_paper():
    made = Market(prior=PRIOR, variance=0.25, buyer_weight=1.0, user_weight=1.0)
    outcome = made.acquire([1.1, 1.7])
    assert made.error_weight(2) == 3.0
    assert outcome.objective == pytest.approx(allocate([1.2, 2.4], variance=0.25).objective, rel=1e-12)


def test_a_sentence_about_money_and_standard_errors_becomes_a_buyer_weight():
    weight = buyer_weight_for(500, from_standard_error=2, to_standard_error=1)
    assert weight * (2**2 - 1**2) == pytest.approx(500)
    assert buyer_weight_for(500, from_standard_error=2, to_standard_error=0) == 125.0
    for payment, before, after in ((0, 2, 1), (-5, 2, 1), (500, 1, 2), (500, 2, 2), (500, math.inf, 1), (500, 2, -1)):
        with pytest.raises(InputError, match="smaller standard error"):
            buyer_weight_for(payment, from_standard_error=before, to_standard_error=after)
    for bad in ("x", None, [1]):
        with pytest.raises(InputError, match="payment must be a number"):
            buyer_weight_for(bad, from_standard_error=2, to_standard_error=1)
    with pytest.raises(InputError, match="smaller"):
        buyer_weight_for(math.inf, from_standard_error=2, to_standard_error=1)


# -- payments and weights ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["central", "local"])
@pytest.mark.parametrize("cap", [None, 0.4])
def test_without_user_weights_nobody_pays(setting, cap):
    rng = np.random.default_rng(5)
    for prior in (PRIOR, LogNormal(0, 1), Empirical([0.5, 1, 1, 3])):
        outcome = market(prior=prior, setting=setting, max_privacy_loss=cap).acquire(prior.sample(30, rng=rng))
        assert (outcome.payments >= 0).all()
        assert (outcome.payments[outcome.privacy_loss == 0] == 0).all()
        assert "No payment is negative." in outcome.summary()


def test_a_user_whose_data_are_not_used_pays_for_an_estimate_better_than_her_own_datum_and_the_summary_says_so():
    made = market(user_weight=1.0, variance=0.25)
    outcome = made.acquire([1.0, 1.0, 1.0, 1.0, 2.0])
    assert outcome.privacy_loss[4] == 0
    assert outcome.payments[4] == pytest.approx(outcome.mse - 0.25)
    assert outcome.payments[4] < 0
    assert "1 person pays: they value the estimate more than giving data costs" in outcome.summary()
    assert "use user_weight=0" in outcome.summary()
    assert "No payment is negative" not in outcome.summary()
    several = made.acquire([1.0, 1.0, 1.0, 2.0, 2.0])
    assert "2 people pay: they value" in several.summary()


def test_each_persons_own_weight_decides_what_the_estimate_costs_her():
    weights = np.array([0.0, 0.5, 1.0, 2.0, 4.0])
    own = market(user_weight=weights, variance=0.25)
    outcome = own.acquire(BIDS)
    data = outcome.bids * outcome.privacy_loss + outcome.information_rent
    assert own.error_weight(5) == 57.5
    assert outcome.payments - data == pytest.approx(weights * (outcome.mse - 0.25), rel=1e-12)
    same = market(user_weight=1.5, variance=0.25).acquire(BIDS)  # the same sum, so the same losses
    assert outcome.privacy_loss == pytest.approx(same.privacy_loss, rel=1e-12)
    assert outcome.information_rent == pytest.approx(same.information_rent, rel=1e-9)


def test_outside_the_estimate_is_made_without_her_and_without_her_weight():
    weights = np.array([1.0, 1.0, 3.0, 0.0, 3.0])
    spread = np.array([0.1, 0.25, 0.2, 0.15, 0.05])
    made = market(user_weight=weights, variance=spread, outside_option="estimate")
    outcome = made.acquire(BIDS)
    for row in range(5):
        rest = market(user_weight=np.delete(weights, row), variance=np.delete(spread, row))
        expected = rest.acquire(np.delete(BIDS, row)).mse if weights[row] > 0 else 0.0
        assert outcome.outside_error[row] == pytest.approx(expected, rel=1e-9)


# -- the cap -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_cap_is_kept_by_the_best_purchase_that_keeps_it_and_reports_what_it_costs(setting):
    free = market(setting=setting).acquire(BIDS)
    cap = 0.6 * float(free.privacy_loss.max())
    capped = market(setting=setting, max_privacy_loss=cap).acquire(BIDS)
    assert (capped.privacy_loss <= cap).all()
    assert capped.objective == pytest.approx(capped.lower_bound, rel=1e-9 if setting == "central" else 0.2)
    # clipping the optimum keeps the cap too, and is no better
    clipped = np.minimum(free.privacy_loss, cap)
    error = best_weights(clipped, setting=setting, variance=0.25).mse
    assert capped.objective <= 50 * error + free.virtual_costs[clipped > 0] @ clipped[clipped > 0] + 1e-9
    best = best_weights(capped.privacy_loss, setting=setting, variance=0.25)
    assert capped.mse == pytest.approx(best.mse, rel=1e-12)
    assert best.delivered == pytest.approx(capped.privacy_loss)  # what is bought can be used
    assert capped.cap_cost == pytest.approx(capped.objective - free.objective)
    assert capped.cap_cost > 0
    assert f"The cap of {cap:g} costs" in capped.summary()
    loose = market(setting=setting, max_privacy_loss=100.0).acquire(BIDS)
    assert loose.cap_cost == 0
    assert loose.payments == pytest.approx(free.payments, rel=1e-9)
    assert "cap" not in loose.summary()


def test_under_a_cap_people_below_it_are_priced_as_the_clipped_rule_says():
    """Up to the bid where the loss falls below the cap everybody has the same loss, and so the same payment."""
    made = market(max_privacy_loss=0.5)
    outcome = made.acquire(BIDS)
    curve = outcome.schedule(user=0)
    z = np.linspace(1.0, 2.0, 4001)
    loss, paid = curve.at(z)
    below = loss >= 0.5
    assert below.sum() > 100
    assert np.ptp(paid[below]) <= 1e-9
    integral = 0.5 * (loss[1:] + loss[:-1]) @ np.diff(z)
    assert paid[0] == pytest.approx(z[0] * loss[0] + integral, rel=1e-5)


# -- degenerate markets ------------------------------------------------------------------------------------------------


def test_a_bid_of_zero_may_mean_an_infinite_loss_which_the_outcome_carries_and_the_summary_tells():
    outcome = market(prior=Uniform(0, 1), buyer_weight=1e-3).acquire([0.0, 0.5, 0.9])
    assert outcome.privacy_loss.tolist() == [math.inf, 0, 0]
    assert outcome.mse == pytest.approx(0.25)
    assert outcome.payments[0] < math.inf
    assert "1 person bid no cost and would lose all privacy" in outcome.summary()
    two = market(prior=Uniform(0, 1), buyer_weight=1e-3).acquire([0.0, 0.0, 0.9])
    assert "2 people bid no cost" in two.summary()
    capped = market(prior=Uniform(0, 1), buyer_weight=1e-3, max_privacy_loss=2.0).acquire([0.0, 0.5, 0.9])
    assert capped.privacy_loss.tolist() == [2.0, 0, 0]


def test_nobody_within_the_support_is_an_outcome_with_nothing_bought():
    outcome = market().acquire([2.5, 3.0])
    assert outcome.active == 0
    assert outcome.total_payment == 0
    assert outcome.mse == outcome.objective == math.inf
    assert outcome.incentive_error == 0
    assert outcome.cap_cost == 0
    assert outcome.summary().startswith("Nothing was bought: none of 2 people")
    again = Outcome.from_dict(json.loads(json.dumps(outcome.to_dict())))
    assert again.mse == math.inf


def test_nothing_bought_is_an_error_where_somebody_would_suffer_an_infinite_error():
    with pytest.raises(NobodyToBuyFrom, match="nobody to buy from"):
        market(user_weight=1.0, variance=0.25).acquire([2.5, 3.0])


def test_one_of_many_bids_within_the_support_is_bought_from():
    outcome = market().acquire([2.5, 1.2, 3.0])
    assert outcome.active == 1
    assert outcome.payments[[0, 2]].tolist() == [0, 0]


def test_a_divergent_payment_is_one_error_before_anything_is_computed(monkeypatch):
    def computed(*_, **__):
        raise AssertionError("allocated although the payment diverges")

    monkeypatch.setattr("hushbid.mechanism.population.allocate", computed)
    for prior in (from_scipy(stats.lomax(1.5)), from_scipy(stats.lomax(2.0))):
        with pytest.raises(DivergentPayment, match="payment would be infinite"):
            market(prior=prior).acquire([0.5])
    heavy = Grouped({"heavy": from_scipy(stats.lomax(1.5)), "light": PRIOR}, ["heavy", "light"])
    with pytest.raises(DivergentPayment, match="lomax"):
        market(prior=heavy).acquire([0.5, 2.5])  # the other one is above her support


def test_a_heavy_tail_is_fine_with_a_second_seller_or_a_lighter_exponent():
    heavy = from_scipy(stats.lomax(1.5))
    assert np.isfinite(market(prior=heavy).acquire([0.5, 0.7]).payments).all()
    assert np.isfinite(market(prior=from_scipy(stats.lomax(2.5))).acquire([0.5]).payments).all()


# -- what an outcome keeps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["central", "local"])
def test_an_outcome_survives_a_round_trip_through_json_and_its_payments_can_be_computed_again(setting):
    grouped = Grouped({"a": PRIOR, "b": LogNormal(0.2, 0.4)}, ["a", "b", "a", "b", "b"])
    made = market(
        prior=grouped,
        setting=setting,
        bounds=(-1, 3),
        variance=[0.5, 1.0, 0.7, 0.9, 1.1] if setting == "central" else 0.8,
        user_weight=[0.0, 1.0, 2.0, 0.5, 1.0],
        outside_option="estimate",
        max_privacy_loss=0.8,
    )
    key = ["e", "d", "c", "b", "a"]
    outcome = made.acquire(BIDS, tie_key=key)
    again = Outcome.from_dict(json.loads(json.dumps(outcome.to_dict())))
    assert again.market == made
    for name, column in outcome.columns().items():
        assert again.columns()[name].tolist() == column.tolist(), name
    assert (again.mse, again.objective, again.incentive_error) == (
        outcome.mse,
        outcome.objective,
        outcome.incentive_error,
    )
    recomputed = again.market.acquire(again.bids, tie_key=again.tie_order)
    assert recomputed.payments.tolist() == outcome.payments.tolist()
    weights = np.asarray(again.market.user_weight)
    parts = weights * (again.mse - again.outside_error) + again.bids * again.privacy_loss + again.information_rent
    assert parts == pytest.approx(again.payments, rel=1e-12)
    assert (again.rent_bounds[0] <= again.information_rent).all()
    assert (again.information_rent <= again.rent_bounds[1]).all()


def test_the_order_of_ties_is_kept_because_payments_depend_on_it():
    made = market(prior=Empirical([1, 2, 3]), setting="local", buyer_weight=20.0)
    forwards = made.acquire([2.0, 2.0, 2.0, 2.0])
    backwards = made.acquire([2.0, 2.0, 2.0, 2.0], tie_key=[4, 3, 2, 1])
    assert forwards.tie_order is None
    assert backwards.tie_order.tolist() == [3, 2, 1, 0]
    assert 0 < forwards.active < 4
    assert backwards.payments.tolist() == forwards.payments[::-1].tolist()
    again = Outcome.from_dict(json.loads(json.dumps(backwards.to_dict())))
    for outcome in (forwards, backwards, again):
        for row in range(4):
            loss, paid = outcome.schedule(user=row).at([2.0])
            assert loss[0] == pytest.approx(outcome.privacy_loss[row], rel=1e-9)
            assert paid[0] == pytest.approx(outcome.payments[row], rel=1e-9)


@pytest.mark.parametrize(
    "made",
    [
        market(),
        market(variance=[0.1, 0.2], user_weight=[0.0, 1.0]),
        market(prior=Grouped({"a": PRIOR}, ["a", "a"]), setting="local", max_privacy_loss=2.0, tolerance=1e-7),
        market(bounds=(-3, 5), outside_option="estimate"),
    ],
)
def test_a_market_survives_a_round_trip_and_equals_only_its_like(made):
    again = Market.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert hash(again) == hash(made)
    assert again != replace(made, goal=Price(51.0))
    assert made != "market"


@each("values", [None, [], {}, {"prior": "x"}, {"prior": PRIOR.to_dict(), "colour": 1}])
def test_a_market_is_not_read_from_nonsense(values):
    with pytest.raises(InputError):
        Market.from_dict(values)


def test_an_outcome_is_not_read_from_nonsense():
    good = market().acquire(BIDS).to_dict()
    short = good | {"columns": good["columns"] | {"payment": [1.0]}}
    missing = {name: value for name, value in good.items() if name != "mse"}
    other = good | {"version": 99}
    broken = good | {"market": good["market"] | {"setting": "x"}}
    for values in (None, [], {}, short, missing, other, broken, good | {"tie_order": [0]}):
        with pytest.raises(RecordError):
            Outcome.from_dict(values)


def test_columns_are_plain_arrays_in_the_order_of_the_bids():
    outcome = market().acquire(BIDS)
    columns = outcome.columns()
    assert set(columns) == {
        "bid",
        "virtual_cost",
        "privacy_loss",
        "weight",
        "payment",
        "information_rent",
        "outside_error",
    }
    assert all(isinstance(column, np.ndarray) and column.shape == (5,) for column in columns.values())
    assert columns["virtual_cost"].tolist() == (2 * BIDS - 1).tolist()
    shuffled = market().acquire(BIDS[::-1]).columns()
    for name, column in columns.items():
        assert shuffled[name][::-1] == pytest.approx(column, rel=1e-9, abs=1e-12), name


def test_neither_repr_nor_summary_tells_anybodys_numbers():
    outcome = market().acquire(BIDS)
    for text in (repr(outcome), outcome.summary()):
        for column in ("bid", "payment", "weight"):
            assert not any(f"{value:.6g}" in text for value in outcome.columns()[column] if value > 0)


def test_the_sum_of_payments_is_exact():
    outcome = market(buyer_weight=1e5).acquire(PRIOR.sample(500, rng=np.random.default_rng(2)))
    assert outcome.total_payment == math.fsum(outcome.payments)


@pytest.mark.parametrize("setting", ["central", "local"])
def test_many_equals_extreme_weights_and_zero_costs_come_out_without_warnings(setting):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for prior, bids in (
            (PRIOR, np.full(2000, 1.5)),
            (PRIOR, np.repeat([1.0, 2.0], 1000)),
            (LogNormal(0, 1), np.append(np.zeros(20), np.full(200, 0.7))),
        ):
            for weight in (1e-9, 1.0, 1e9):
                outcome = market(prior=prior, setting=setting, buyer_weight=weight).acquire(bids)
                for name, column in outcome.columns().items():
                    assert not np.isnan(column).any(), name
                assert np.isfinite(outcome.payments).all()


def test_every_error_of_a_market_is_ours():
    assert issubclass(InputError, HushbidError)
    assert hushbid.Market is Market


def test_each_setting_is_the_others_other_and_people_send_messages_in_one_of_them() -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    for setting in ("central", "local"):
        here = replace(market, setting=setting)
        there = replace(market, setting=here.strategy.other)
        assert (there.strategy.other, there.strategy.sends_messages) == (setting, setting == "central")


@pytest.mark.parametrize("bad", [math.nan, 0.0, -1.0])
def test_a_limit_or_cap_that_is_no_positive_number_is_refused_by_its_row_and_none_or_inf_means_no_limit(bad) -> None:
    free = market()
    for given in ([0.5, bad, 0.5], np.array([0.5, bad, 0.5])):
        with pytest.raises(InputError, match=r"max_privacy_loss must be at least .* row 1 is not") as capped:
            market(max_privacy_loss=given)
        assert capped.value.row == 1
        if bad == 0.0:  # a person's limit of 0 means: buy nothing from me
            continue
        with pytest.raises(InputError, match=r"limits must be .* row 1 is not") as stated:
            free.acquire([1.1, 1.2, 1.3], limits=given)
        assert stated.value.row == 1
    open_, none = (free.acquire([1.1, 1.2, 1.3], limits=[0.5, one, 0.5]) for one in (math.inf, None))
    assert open_.limits.tolist() == none.limits.tolist() == [0.5, math.inf, 0.5]
    assert open_.privacy_loss[1] > 0.5


def test_truth_values_are_no_goals() -> None:
    for goal in (Budget, Accuracy, HardBudget, Price):
        with pytest.raises(InputError, match="must be a number, got True"):
            goal(True)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bid", [5.0, 9.0])
def test_under_a_cap_that_does_not_bind_one_person_alone_is_paid_her_integral_up_to_bids_without_end(bid) -> None:
    # whoever is alone is bought for her best by herself: the loss that minimises 2A/ε² + ψε
    def loss(z: float) -> float:
        return float(np.cbrt(4.0 / (z + math.expm1(z))))

    alone = Market(prior=Exponential(1), bounds=(0, 10), max_privacy_loss=1.0, buyer_weight=0.01).acquire([bid])
    rent, _ = quad(loss, bid, 100.0, epsrel=1e-10, limit=200)
    np.testing.assert_allclose(alone.payments, bid * loss(bid) + rent, rtol=3e-6)
    assert abs(alone.payments[0] - bid * loss(bid) - rent) <= alone.incentive_error
