"""A local market with a single yes/no question: bought as randomised response, cheaper, and as truthful as any."""

import math
from typing import Any

import numpy as np
import pytest

from hushbid import Accuracy, Market, Number, Outcome, Price, Record, Uniform, YesNo
from hushbid.allocation import allocate
from hushbid.errors import InputError, Unreachable
from hushbid.mechanism.setting import LOCAL, RANDOMISED_RESPONSE
from hushbid.mechanism.worst_case import worst_payment

YES, SHARE = YesNo(name="smoker"), Number(name="smoker", bounds=(0, 1))
BIDS = np.random.default_rng(5).uniform(1, 2, 60)


def market(question: Any = YES, **terms: Any) -> Market:
    return Market(prior=Uniform(1, 2), setting="local", questions=[question], **terms)


@pytest.mark.parametrize("terms", [{"buyer_weight": 300.0}, {"goal": Accuracy(0.09)}], ids=["price", "accuracy"])
def test_it_buys_the_optimum_for_randomised_response(terms: dict[str, Any]) -> None:
    outcome = market(**terms).acquire(BIDS)
    goal = terms.get("goal", Price(300.0))
    best = allocate(2 * BIDS - 1, setting="local", goal=goal, response=True)
    assert outcome.privacy_loss == pytest.approx(best.privacy_loss, rel=1e-9)
    assert outcome.weights == pytest.approx(best.weights, rel=1e-9)
    assert outcome.objective == pytest.approx(best.objective, rel=1e-9)
    bought = outcome.privacy_loss > 0
    error = 0.25 * np.sum((outcome.weights[bought] / np.tanh(outcome.privacy_loss[bought] / 2)) ** 2)
    [stated] = outcome.question_errors()
    assert stated.mse == pytest.approx(error)
    assert [one.mse for one in market(**terms).errors_of(outcome.figures())] == pytest.approx([error])
    assert 0.99 < outcome.lower_bound / outcome.objective <= 1.0 + 1e-9
    again = Outcome.from_dict(outcome.to_dict())
    assert again.market.strategy is RANDOMISED_RESPONSE
    assert np.array_equal(again.privacy_loss, outcome.privacy_loss)


def test_importance_is_a_price_for_the_error_as_for_any_question() -> None:
    ours = market(YesNo(name="smoker", importance=4.0), buyer_weight=50.0).acquire(BIDS)
    plain = market(buyer_weight=200.0).acquire(BIDS)
    assert ours.privacy_loss == pytest.approx(plain.privacy_loss, rel=1e-9)
    assert ours.payments == pytest.approx(plain.payments, rel=1e-6)


def test_error_and_cost_fall_by_a_fifth_against_laplace_noise() -> None:
    bids = np.random.default_rng(1).uniform(1, 2, 400)
    coin, noise = (market(one, buyer_weight=2000.0).acquire(bids) for one in (YES, SHARE))
    assert noise.population.setting is LOCAL
    assert 0.75 < coin.objective / noise.objective < 0.81
    assert 0.75 < coin.mse / noise.mse < 0.81
    assert 0.75 < coin.total_payment / noise.total_payment < 0.83


@pytest.mark.parametrize(("n", "reached"), [(11, False), (12, True)])
def test_an_accuracy_is_reachable_exactly_if_four_n_r_squared_is_above_one(n: int, reached: bool) -> None:
    goal = Accuracy(1 / math.sqrt(4 * 11.5))
    if not reached:
        with pytest.raises(Unreachable):
            market(goal=goal).acquire(BIDS[:n])
        return
    outcome = market(goal=goal).acquire(BIDS[:n])
    assert outcome.question_errors()[0].standard_error == pytest.approx(goal.number)
    most = 3 / (4 * 0.09**2) + 1  # nobody supplies less than a third of 4, but for the last
    assert market(goal=Accuracy(0.09)).acquire(np.resize(BIDS, 200)).active <= most


@pytest.mark.parametrize("terms", [{"buyer_weight": 60.0}, {"goal": Accuracy(0.3)}], ids=["price", "accuracy"])
def test_no_misreport_gains_and_nobody_loses_by_joining(terms: dict[str, Any]) -> None:
    ours, rng = market(**terms), np.random.default_rng(0)
    truth = BIDS[:8]
    honest = ours.acquire(truth)
    for row in (int(np.argmin(truth)), 3):
        for other in rng.uniform(1, 2, 6).tolist():
            moved = truth.copy()
            moved[row] = other
            lied = ours.acquire(moved)
            gain = lied.payments[row] - truth[row] * lied.privacy_loss[row]
            assert gain <= honest.payments[row] - truth[row] * honest.privacy_loss[row] + honest.incentive_error + 1e-9
            assert (other - truth[row]) * (lied.privacy_loss[row] - honest.privacy_loss[row]) <= 1e-9
    assert (honest.payments >= truth * honest.privacy_loss - 1e-9).all()


@pytest.mark.parametrize("terms", [{"buyer_weight": 300.0}, {"goal": Accuracy(0.3)}], ids=["price", "accuracy"])
def test_no_bids_cost_more_than_the_stated_worst_case(terms: dict[str, Any]) -> None:
    ours, rng = market(**terms), np.random.default_rng(3)
    for n in (3, 9):
        for missing in (False, True):
            worst = worst_payment(ours.for_people(n), above_support=missing)
            for _ in range(3):
                bids = np.clip(rng.normal(rng.uniform(1, 2), rng.choice([0.0, 0.3]), n), 1, 2)
                if missing:
                    bids[rng.integers(n)] = 3.0
                try:
                    assert ours.acquire(bids).total_payment <= worst * (1 + 1e-9)
                except Unreachable:
                    assert missing or n == 3


def test_a_sole_sellers_loss_and_cost_are_inverse_to_each_other() -> None:
    for cost in (1e-9, 0.03, 1.0, 40.0, 1e9):
        loss = RANDOMISED_RESPONSE.sole_loss(7.0, cost)
        assert RANDOMISED_RESPONSE.sole_cost(7.0, loss) == pytest.approx(cost, rel=1e-8)
        assert loss == pytest.approx(allocate([cost], setting="local", error_weight=7.0, response=True).privacy_loss[0])


def test_all_losses_together_stay_below_their_bound() -> None:
    rng = np.random.default_rng(8)
    nearest = 0.0
    for weight in np.geomspace(0.1, 1e6, 30).tolist():
        costs = np.full(int(rng.integers(1, 400)), 1.0)
        total = allocate(costs, setting="local", error_weight=weight, response=True).privacy_loss.sum()
        bound = RANDOMISED_RESPONSE.most_loss(weight, 1.0, 0.25)
        assert total <= bound * (1 + 1e-12)
        nearest = max(nearest, total / bound)
    assert nearest > 0.8


def test_planning_and_simulation_use_the_coin_and_offer_no_protection() -> None:
    plan = market(buyer_weight=100.0).plan(3, rng=np.random.default_rng(2), repetitions=20)
    assert plan.protection == ()
    assert plan.question_errors[0].mse == pytest.approx(plan.simulation.mse.mean(), rel=0.3)
    ours, laplace = (
        market(one, buyer_weight=100.0).simulate(8, 3, rng=np.random.default_rng(4)) for one in (YES, SHARE)
    )
    assert ours.mse.mean() < 0.85 * laplace.mse.mean()
    menu = market(buyer_weight=100.0).menu(6, rng=np.random.default_rng(1), repetitions=10, points=5)
    assert np.all(np.diff(menu.privacy_loss) <= 0.05)


def test_a_relation_is_refused_with_a_way_out() -> None:
    with pytest.raises(InputError, match="ask it as a number from 0 to 1") as problem:
        market(buyer_weight=100.0, max_correlation=0.1)
    assert problem.value.field == "max_correlation"
    market(SHARE, buyer_weight=100.0, max_correlation=0.1).acquire(BIDS)  # the way out


def test_a_cap_is_kept_by_buying_from_more_people_and_one_each_is_refused() -> None:
    free, capped = (market(buyer_weight=100.0, max_privacy_loss=cap).acquire(BIDS) for cap in (None, 1.0))
    assert free.privacy_loss.max() > 1.0 == capped.privacy_loss.max()
    assert capped.active > free.active
    with pytest.raises(InputError, match="NP-hard"):
        market(buyer_weight=100.0, max_privacy_loss=[1.0] * 60)


def test_variances_and_limits_are_refused() -> None:
    with pytest.raises(InputError, match="variance"):
        market(buyer_weight=100.0, variance=0.1)
    with pytest.raises(InputError, match="limits"):
        market(buyer_weight=100.0).acquire(BIDS, limits=np.full(60, 2.0))


def test_free_people_tell_the_truth_and_the_summary_says_what_to_do() -> None:
    free = Market(prior=Uniform(0, 1), setting="local", questions=[YES], buyer_weight=10.0).acquire([0.0, 0.5, 0.9])
    assert free.privacy_loss[0] == math.inf
    assert "would lose all privacy: set max_privacy_loss" in free.summary()
    assert Record.of(free).read_again().outcome.privacy_loss[0] == math.inf


def test_several_questions_and_the_central_setting_keep_their_noise() -> None:
    two = Market(prior=Uniform(1, 2), setting="local", questions=[YES, YesNo(name="runner")], buyer_weight=100.0)
    assert two.strategy is LOCAL
    assert not Market(prior=Uniform(1, 2), questions=[YES], buyer_weight=100.0).strategy.response
    assert not Market(prior=Uniform(1, 2), setting="local", buyer_weight=100.0).strategy.response
