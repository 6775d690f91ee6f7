"""Curves c ↦ (privacy loss, payment): for everybody, for one person, and before anybody has bid."""

import math

import numpy as np
import pytest

from hushbid import Empirical, Exponential, Grouped, LogNormal, Market, Mixture, Uniform
from hushbid.errors import InputError, MarketError
from tests.extent import ALL_CASES, each

PRIORS = {
    "uniform": Uniform(1, 2),
    "log-normal": LogNormal(0, 0.6),
    "ironed": Mixture([Uniform(0.5, 1), Uniform(1.5, 3)], [0.4, 0.6]),
    "empirical": Empirical([0.5, 0.8, 0.8, 1.5, 2.5]),
}


def market(prior=PRIORS["uniform"], **fields):
    return Market(prior=prior, **({"user_weight": 0.0, "buyer_weight": 200.0} | fields))


# -- everybody's -------------------------------------------------------------------------------------------------------


@each("cap", [None, 0.8])
@each("setting", ["central", "local"])
@each("name", PRIORS)
def test_the_common_schedule_goes_through_everybodys_loss_and_payment(name, setting, cap):
    prior = PRIORS[name]
    made = market(prior, setting=setting, max_privacy_loss=cap, user_weight=0.5, variance=0.2)
    bids = prior.sample(40, rng=np.random.default_rng(4))
    outcome = made.acquire(bids)
    schedule = outcome.schedule()
    loss, paid = schedule.at(bids)
    off_ties = np.array([np.count_nonzero(outcome.virtual_costs == cost) == 1 for cost in outcome.virtual_costs])
    if setting == "central":  # nobody is treated differently from her equals
        off_ties[:] = True
    assert np.abs(paid - outcome.payments)[off_ties].max(initial=0.0) <= schedule.error + 1e-9
    assert np.abs(loss - outcome.privacy_loss)[off_ties].max(initial=0.0) <= 1e-9


@pytest.mark.parametrize("setting", ["central", "local"])
def test_the_common_schedule_is_defined_on_the_whole_support_and_falls(setting):
    outcome = market(setting=setting).acquire(PRIORS["uniform"].sample(60, rng=np.random.default_rng(1)))
    loss, paid = outcome.schedule().at(np.linspace(1, 2, 101))
    assert (np.diff(loss) <= 1e-12).all()
    assert (np.diff(paid) <= 1e-12).all()
    assert np.isfinite(paid).all()


def test_between_two_bids_the_common_schedule_is_close_to_what_a_new_person_there_would_get():
    """One of many more hardly moves the curve: the difference goes with one over the number of people."""
    prior, rng = PRIORS["uniform"], np.random.default_rng(9)
    bids = prior.sample(2000, rng=rng)
    outcome = market(buyer_weight=2e5).acquire(bids)
    for place in (1.1, 1.25, 1.4):
        joined = market(buyer_weight=2e5).acquire(np.append(bids, place))
        assert outcome.schedule().payment([place])[0] == pytest.approx(joined.payments[-1], rel=5e-3)


def test_people_who_differ_by_more_than_their_bids_have_no_common_schedule():
    grouped = Grouped({"a": Uniform(1, 2), "b": Uniform(1, 2)}, ["a", "b"])
    for made in (
        market(grouped),
        market(variance=[0.1, 0.2]),
        market(variance=0.2, user_weight=[0.0, 1.0]),
    ):
        with pytest.raises(MarketError, match="common prior, variance and user weight"):
            made.acquire([1.2, 1.4]).schedule()
    market(variance=[0.2, 0.2]).acquire([1.2, 1.4]).schedule()


def test_a_schedule_carries_an_infinite_loss_without_nan():
    outcome = market(Uniform(0, 1), buyer_weight=1e-3).acquire([0.0, 0.4, 0.8])
    loss, paid = outcome.schedule().at([0.0, 0.2, 0.4, 1.0])
    assert loss.tolist() == [math.inf, 0.0, 0.0, 0.0]
    assert not np.isnan(paid).any()


@each("user", [None, 0])
@each("bad", [[0.9], [2.1], [1.5, math.nan], ["x"], "x", None])
def test_bids_outside_the_support_are_refused(user, bad):
    schedule = market().acquire([1.2, 1.4, 1.9]).schedule(user=user)
    with pytest.raises(InputError, match="bids must"):
        schedule.at(bad)


# -- one person's ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"setting": "local"},
        {"max_privacy_loss": 0.6},
        {"setting": "local", "max_privacy_loss": 2.0},
        {"user_weight": 1.0, "variance": 0.2},
        {"user_weight": [0.0, 1.0, 2.0, 0.5, 1.0], "variance": 0.2, "outside_option": "estimate"},
        {"user_weight": 1.0, "variance": 0.2, "max_privacy_loss": 0.6, "outside_option": "estimate"},
        {"variance": [0.1, 0.2, 0.05, 0.25, 0.15], "user_weight": [1.0, 0.0, 0.0, 1.0, 2.0]},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["uniform", "ironed"])
def test_a_persons_own_curve_is_what_the_market_would_decide_at_each_bid_of_hers(name, fields):
    prior = PRIORS[name]
    made = market(prior, **fields)
    bids = np.asarray(prior.quantile(np.array([0.05, 0.2, 0.4, 0.5, 0.8])))
    outcome = made.acquire(bids)
    for row in (0, 3) if ALL_CASES else (3,) if name == "ironed" else (0,):
        curve = outcome.schedule(user=row)
        for z in np.asarray(prior.quantile(np.array([0.0, 0.1, 0.37, 0.7, 1.0]))).tolist():
            changed = bids.copy()
            changed[row] = z
            said = made.acquire(changed)
            loss, paid = curve.at([z])
            assert loss[0] == pytest.approx(said.privacy_loss[row], rel=1e-8, abs=1e-12)
            allowed = curve.error + said.incentive_error + 1e-9
            assert paid[0] == pytest.approx(said.payments[row], abs=allowed)


def test_a_persons_own_curve_differs_from_everybodys():
    """If she asks for more, the others' bids stay; on the common curve she would be somebody else."""
    bids = np.array([1.0, 1.3, 1.6])
    outcome = market(buyer_weight=20.0).acquire(bids)
    own = outcome.schedule(user=0).privacy_loss([1.3])[0]
    common = outcome.schedule().privacy_loss([1.3])[0]
    assert own > common * 1.05


def test_the_last_person_may_be_counted_from_the_end_and_others_are_refused():
    outcome = market().acquire([1.2, 1.4, 1.9])
    assert outcome.schedule(user=-1).payment([1.9])[0] == pytest.approx(outcome.payments[2])
    for bad in (3, -4, 1.5, "0", True):
        with pytest.raises(InputError, match="user must be a row from 0 to 2"):
            outcome.schedule(user=bad)


# -- before anybody has bid ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_menu_is_the_mean_over_what_the_others_may_bid(setting):
    made = market(setting=setting, buyer_weight=60.0, user_weight=0.5, variance=0.2)
    menu = made.menu(4, rng=np.random.default_rng(1), repetitions=50, points=3)
    rng = np.random.default_rng(2)
    paid = np.empty((50, 3))
    for k in range(50):
        others = made.prior.sample(3, rng=rng)
        paid[k] = [made.acquire(np.append(z, others)).payments[0] for z in menu.bids]
    error = np.hypot(menu.payment_error, paid.std(axis=0, ddof=1) / np.sqrt(50)) + 1e-12
    assert (np.abs(menu.payment - paid.mean(axis=0)) <= 4.5 * error).all()
    assert menu.repetitions == 50


def test_a_menu_offers_less_for_less_and_states_its_own_error():
    prior = Exponential(1.0)
    menu = market(prior).menu(20, rng=np.random.default_rng(3), repetitions=40, points=9)
    assert menu.bids[0] == 0.0
    assert np.isfinite(menu.bids).all()
    for curve in (menu.privacy_loss, menu.payment, menu.chance):
        assert curve.shape == (9,)
        assert (np.diff(curve) <= 1e-9 * curve[0]).all()
    assert menu.payment_error == pytest.approx(menu.payment_spread / np.sqrt(40))
    assert menu.privacy_loss_error == pytest.approx(menu.privacy_loss_spread / np.sqrt(40))
    assert ((menu.chance >= 0) & (menu.chance <= 1)).all()


def test_in_a_menu_the_truth_is_the_best_line():
    """The interim view inherits truthfulness: every type prefers her own line, up to the stated error."""
    menu = market(buyer_weight=50.0).menu(5, rng=np.random.default_rng(4), repetitions=60, points=9)
    worth = menu.payment[None, :] - menu.bids[:, None] * menu.privacy_loss[None, :]
    assert (worth.argmax(axis=1) == np.arange(9)).all() or (np.diagonal(worth) >= worth.max(axis=1) - 1e-9).all()
    assert (np.diagonal(worth) >= -1e-9).all()


def test_a_menu_of_one_person_has_no_spread():
    menu = market().menu(1, rng=np.random.default_rng(5), repetitions=3, points=3)
    assert menu.payment_spread == pytest.approx(np.zeros(3), abs=1e-12)
    assert (menu.chance == 1).all()


def test_a_menu_refuses_what_it_cannot_show():
    rng = np.random.default_rng(0)
    for made in (
        market(Grouped({"a": Uniform(1, 2)}, ["a", "a"])),
        market(variance=[0.1, 0.2]),
        market(variance=0.2, user_weight=[0.0, 1.0]),
    ):
        with pytest.raises(MarketError, match="A menu needs one prior, variance and user weight"):
            made.menu(2, rng=rng)
    for bad in ({"n": 0}, {"n": 2.5}, {"n": "x"}, {"n": 3, "repetitions": 1}, {"n": 3, "points": 1}):
        with pytest.raises(InputError, match="whole number of at least"):
            market().menu(**bad, rng=rng)
    with pytest.raises(InputError, match=r"rng must be a numpy\.random\.Generator"):
        market().menu(3, rng="5")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least two people"):
        market(outside_option="estimate").menu(1, rng=rng)
