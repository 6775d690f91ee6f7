"""Nobody gains by a misreport and nobody loses by joining, ex post: every type and bid, whatever others say."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hushbid import Beta, Empirical, Exponential, Grouped, Market, Mixture, Uniform

PRIORS = [
    Uniform(1, 2),
    Exponential(1.0),
    Beta(2, 2, 0.5, 1.5),
    Empirical([0.4, 0.8, 0.8, 1.5, 2.5]),
    Mixture([Uniform(0.5, 1), Uniform(1.5, 3)], [0.4, 0.6]),
]


def cost(market, outcome, row, truth):
    """What person ``row`` with true cost ``truth`` ends up with."""
    weight = float(np.broadcast_to(market.user_weight, outcome.bids.shape)[row])
    return weight * outcome.mse + truth * outcome.privacy_loss[row] - outcome.payments[row]


@settings(max_examples=15)
@given(
    prior=st.sampled_from(PRIORS),
    setting=st.sampled_from(["central", "local"]),
    outside=st.sampled_from(["own_data", "estimate"]),
    cap=st.sampled_from([None, 0.4, 1.5]),
    weight=st.sampled_from([0.0, 1.0, 0.3]),
    quantiles=st.lists(st.floats(0.02, 0.98), min_size=2, max_size=4),
    data=st.data(),
)
def test_no_misreport_pays_and_joining_never_costs(prior, setting, outside, cap, weight, quantiles, data):
    market = Market(
        prior=prior,
        setting=setting,
        variance=0.2,
        user_weight=weight,
        outside_option=outside,
        max_privacy_loss=cap,
        buyer_weight=data.draw(st.sampled_from([0.5, 5.0])),
    )
    truth = np.asarray(prior.quantile(np.array(quantiles)))
    outcome = market.acquire(truth)
    row = data.draw(st.integers(0, truth.size - 1))
    honest = cost(market, outcome, row, truth[row])
    scale = 1.0 + np.abs(outcome.payments).max()
    assert honest <= weight * outcome.outside_error[row] + outcome.incentive_error + 1e-9 * scale
    for lie in np.asarray(prior.quantile(np.linspace(0.01, 0.99, 5))):
        changed = truth.copy()
        changed[row] = lie
        other = market.acquire(changed)
        slack = max(outcome.incentive_error, other.incentive_error) + 1e-9 * scale
        assert honest <= cost(market, other, row, truth[row]) + slack


CENTS = st.integers(1, 300).map(lambda cents: cents / 100)


@settings(max_examples=10)
@given(
    pilots=st.lists(st.lists(CENTS, min_size=3, max_size=9), min_size=1, max_size=2),
    setting=st.sampled_from(["central", "local"]),
    cap=st.sampled_from([None, None, 1.5]),
    weight=st.sampled_from([0.0, 0.0, 0.3]),
    outside=st.sampled_from(["own_data", "estimate"]),
    variance=st.sampled_from([0.03, 0.1, 0.25]),
    buyer_weight=st.integers(1, 300).map(lambda tenths: tenths / 10),
    data=st.data(),
)
def test_with_a_pilot_in_cents_no_misreport_gains_more_than_the_incentive_error_says(
    pilots, setting, cap, weight, outside, variance, buyer_weight, data
):
    values = np.unique(np.concatenate(pilots))
    truth = np.array(data.draw(st.lists(st.sampled_from(values.tolist()) | CENTS, min_size=3, max_size=4)))
    labels = data.draw(st.lists(st.sampled_from(range(len(pilots))), min_size=truth.size, max_size=truth.size))
    market = Market(
        prior=Empirical(pilots[0])
        if len(pilots) == 1
        else Grouped({str(k): Empirical(pilot) for k, pilot in enumerate(pilots)}, [str(k) for k in labels]),
        setting=setting,
        variance=variance,
        buyer_weight=buyer_weight,
        user_weight=weight,
        max_privacy_loss=cap,
        outside_option=outside,
    )
    row = data.draw(st.integers(0, truth.size - 1))
    others = np.delete(truth, row)
    # whatever she says, there must be an estimate, and one without any of the others
    assume(np.count_nonzero(others <= min(max(pilot) for pilot in pilots)) >= 2)
    honest = market.acquire(truth)
    at_most = cost(market, honest, row, truth[row]) - honest.incentive_error
    for lie in {0.0, truth[row] + 0.003, *values, *(0.5 * (values[1:] + values[:-1])), 2 * values[-1]}:
        said = market.acquire(np.insert(others, row, lie))
        assert cost(market, said, row, truth[row]) >= at_most


@given(bids=st.lists(st.floats(1.0, 2.5), min_size=1, max_size=6), setting=st.sampled_from(["central", "local"]))
@settings(max_examples=30)
def test_without_user_weights_no_payment_is_negative(bids, setting):
    outcome = Market(prior=Uniform(1, 2), setting=setting, user_weight=0, buyer_weight=1.0).acquire(bids)
    assert (outcome.payments >= 0).all()
    assert (
        outcome.payments >= np.where(outcome.privacy_loss > 0, outcome.bids * outcome.privacy_loss, 0) - 1e-12
    ).all()


@given(scale=st.floats(1e-3, 1e3), setting=st.sampled_from(["central", "local"]))
@settings(max_examples=20)
def test_changing_the_unit_of_the_data_changes_no_decision(scale, setting):
    bids = [1.1, 1.4, 1.2]
    plain = Market(
        prior=Uniform(1, 2), setting=setting, bounds=(0, 1), variance=0.2, buyer_weight=1.0, user_weight=1.0
    ).acquire(bids)
    other = Market(
        prior=Uniform(1, 2),
        setting=setting,
        bounds=(0, scale),
        variance=0.2 * scale**2,
        buyer_weight=1 / scale**2,
        user_weight=1 / scale**2,
    ).acquire(bids)
    assert other.privacy_loss == pytest.approx(plain.privacy_loss, rel=1e-9)
    assert other.payments == pytest.approx(plain.payments, rel=1e-9)
    assert other.mse == pytest.approx(plain.mse * scale**2, rel=1e-9)
