"""Simulating campaigns, planning for a target, and the most that a campaign can cost."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hushbid import Beta, Empirical, Exponential, Grouped, LogNormal, Market, Mixture, Uniform, from_scipy
from hushbid.errors import DivergentPayment, InputError, MarketError
from hushbid.mechanism import Estimate
from hushbid.mechanism.planning import virtual_figures
from hushbid.mechanism.population import sole_rent_diverges
from hushbid.mechanism.simulation import mean_of
from hushbid.mechanism.worst_case import worst_payment

PRIOR = Uniform(1, 2)


def market(**fields):
    return Market(**({"prior": PRIOR, "user_weight": 0.0, "buyer_weight": 100.0} | fields))


def generator(seed=0):
    return np.random.default_rng(seed)


# -- simulation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_simulation_is_many_campaigns_each_decided_by_the_market(setting):
    made = market(setting=setting, user_weight=0.5, variance=0.2)
    found = made.simulate(6, 8, rng=generator(3))
    rng = generator(3)
    for k in range(8):
        outcome = made.acquire(PRIOR.sample(6, rng=rng))
        assert found.mse[k] == outcome.mse
        assert found.total_payment[k] == outcome.total_payment
        assert found.objective[k] == outcome.objective
        assert found.share_bought[k] == outcome.active / 6
        assert found.buyer_cost[k] == pytest.approx(100.0 * outcome.mse + outcome.total_payment)
    assert found.repetitions == 8
    assert found.prior_is_true
    assert not found.below_support.any()
    assert not found.above_support.any()


def test_expected_payments_are_expected_virtual_payments_and_the_interval_says_how_sure_that_is():
    made = market(prior=Exponential(1.0), buyer_weight=30.0)
    found = made.simulate(5, 300, rng=generator(1))
    rng = generator(2)
    virtual = np.array(
        [
            virtual_figures(made.for_people(5), np.asarray(made.prior.virtual_cost(made.prior.sample(5, rng=rng))))[1]
            for _ in range(900)
        ]
    )
    paid, expected = found.expected("total_payment"), mean_of(virtual)
    assert paid.low <= paid.value <= paid.high
    widths = math.hypot(paid.high - paid.low, expected.high - expected.low) / 2
    assert abs(paid.value - expected.value) <= 2 * widths
    assert widths < 0.15 * paid.value


def test_a_quantiles_interval_covers_it_as_often_as_stated():
    """Order statistics assume nothing about the distribution: 95 of 100 intervals cover, here at least 90."""
    rng, truth = generator(11), -math.log(0.05)
    small = market().simulate(2, 2, rng=generator())
    covered = 0
    for _ in range(400):
        drawn = replace(small, mse=rng.exponential(size=120))
        found = drawn.quantile("mse", 0.95)
        assert found.low <= found.value <= found.high
        covered += found.low <= truth <= found.high
    assert covered >= 0.93 * 400


def test_too_few_campaigns_leave_the_upper_end_of_a_quantile_open():
    assert market().simulate(3, 5, rng=generator()).quantile("total_payment").high == math.inf
    assert "to inf" in str(Estimate(value=1.0, low=0.5, high=math.inf))


def test_under_a_wrong_prior_people_below_report_its_lowest_value_and_those_above_are_never_bought_from():
    made = market(prior=Uniform(1.25, 1.75))
    found = made.simulate(40, 20, rng=generator(4), true_prior=PRIOR)
    assert not found.prior_is_true
    assert found.below_support.mean() == pytest.approx(0.25, abs=0.05)
    assert found.above_support.mean() == pytest.approx(0.25, abs=0.05)
    assert (found.share_bought <= 1 - found.above_support + 1e-12).all()
    rng = generator(4)
    outcome = made.acquire(np.maximum(PRIOR.sample(40, rng=rng), 1.25))
    assert found.total_payment[0] == outcome.total_payment
    assert "lie below the market's prior" in found.summary()
    assert "drawn from another prior than the market's" in found.summary()


def test_below_an_empirical_prior_nobody_needs_to_move_up():
    made = market(prior=Empirical([1.0, 1.5, 2.0]))
    found = made.simulate(10, 5, rng=generator(5), true_prior=Uniform(0.1, 0.5))
    assert not found.below_support.any()
    assert (found.share_bought > 0).all()


def test_campaigns_in_which_nothing_is_bought_are_counted_and_make_the_expected_error_infinite():
    found = market().simulate(2, 30, rng=generator(6), true_prior=Uniform(1.5, 4.0))
    nothing = int(np.isinf(found.mse).sum())
    assert nothing > 0
    assert f"In {nothing} campaigns nothing was bought" in found.summary()
    assert found.expected("mse").value == math.inf
    assert np.isfinite(found.total_payment).all()


def test_groups_are_simulated_with_their_own_priors():
    people = Grouped({"a": Uniform(1, 2), "b": Uniform(3, 4)}, ["a"] * 3 + ["b"] * 3)
    found = market(prior=people).simulate(6, 5, rng=generator(7))
    assert np.isfinite(found.total_payment).all()
    assert found.worst_payment_bound >= found.worst_payment_found
    with pytest.raises(InputError, match="number of labels of the grouped prior, 6, got 5"):
        market(prior=people).simulate(5, 5, rng=generator(7))


def test_the_summary_of_a_simulation_names_expectation_tail_and_worst_case():
    text = market().simulate(10, 60, rng=generator(8)).summary()
    assert "60 campaigns of 10 people, drawn from the market's prior." in text
    for words in ("expected", "exceeded in one campaign of 20", "never exceeded", "Bought from"):
        assert words in text


def test_progress_is_told_campaign_by_campaign():
    told = []
    market().simulate(3, 4, rng=generator(), progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 0}, "n must be a whole number of at least 1"),
        ({"n": 2.5}, "n must be a whole number"),
        ({"n": "x"}, "n must be a whole number"),
        ({"repetitions": 1}, "repetitions must be a whole number of at least 2"),
        ({"repetitions": 2.5}, "repetitions must be a whole number"),
        ({"rng": None}, "rng must be"),
        ({"true_prior": "uniform"}, "true_prior must be a prior"),
    ],
)
def test_a_simulation_refuses_what_it_cannot_do(arguments, words):
    with pytest.raises(InputError, match=words):
        market().simulate(**({"n": 3, "repetitions": 3, "rng": generator()} | arguments))


def test_only_arrays_of_a_simulation_have_means_and_quantiles():
    found = market().simulate(2, 2, rng=generator())
    with pytest.raises(InputError, match="name must be one of mse, total_payment"):
        found.expected("worst_payment_bound")
    with pytest.raises(InputError, match="level must be between 0 and 1"):
        found.quantile("mse", 1.0)


# -- the worst case ----------------------------------------------------------------------------------------------------

WORST = {
    "uniform": Uniform(1, 2),
    "from zero": Uniform(0, 1),
    "wide": Uniform(1, 50),
    "exponential": Exponential(1.0),
    "log-normal": LogNormal(0, 1),
    "beta": Beta(2, 3, 0.5, 4),
    "irregular": Mixture([Uniform(0.5, 1), Uniform(3, 9)], [0.5, 0.5]),
    "empirical": Empirical([1, 2, 2, 5]),
}


@pytest.mark.parametrize("setting", ["central", "local"])
@pytest.mark.parametrize("name", WORST)
def test_no_reports_found_by_a_search_cost_more_than_the_bound(name, setting):
    prior, rng = WORST[name], generator(len(name))
    for k in range(3):
        n = int(rng.integers(1, 6))
        made = market(
            prior=prior,
            setting=setting,
            buyer_weight=10 ** rng.uniform(-1, 4),
            variance=float(rng.uniform(0.01, 0.25)),
            max_privacy_loss=None if k % 3 else 10 ** rng.uniform(-1, 1),
            user_weight=float(rng.choice([0.0, 1.0])),
            tolerance=1e-4,
        )
        bound = worst_payment(made.for_people(n))
        for _ in range(6):
            levels = np.clip(rng.random(n) ** rng.choice([0.1, 1.0, 10.0]), 0.0, 0.9999)
            if rng.random() < 0.5:
                levels[:] = levels[0]
            paid = made.acquire(np.asarray(prior.quantile(levels))).total_payment
            assert paid <= bound * (1 + 1e-9) + 1e-9


def test_the_two_people_of_the_papers_example_come_close_to_the_bound():
    """The bound is no idle one: here some reports cost more than half of it."""
    for setting in ("central", "local"):
        found = market(setting=setting, buyer_weight=3.0).simulate(2, 20, rng=generator(1))
        assert found.worst_payment_found <= found.worst_payment_bound <= 2 * found.worst_payment_found


@pytest.mark.parametrize("setting", ["central", "local"])
def test_payments_for_data_stay_below_twice_centrally_and_once_locally_the_largest_objective(setting):
    """The proof in docs/explanation/incentives.md, on markets where everybody may be at the top."""
    rng = generator(21)
    for prior, factor in ((Uniform(1, 3), 0.5), (Empirical([1, 2, 4]), 1.0), (Beta(1, 1, 0.2, 1.0), 1.0)):
        for _ in range(15):
            n = int(rng.integers(1, 7))
            made = market(prior=prior, setting=setting, buyer_weight=10 ** rng.uniform(-1, 5), tolerance=1e-4)
            top = np.full(n, float(prior.virtual_cost(prior.support[1])))
            highest = made.allocation(top).objective
            paid = made.acquire(np.asarray(prior.quantile(rng.random(n) ** 3))).total_payment
            most = {"central": 2.0 * factor, "local": 5 / 6 if factor == 0.5 else 1.0}[setting]
            assert paid <= most * highest * (1 + 1e-9)


def test_the_worst_case_with_people_above_the_support_is_no_smaller():
    made = market()
    assert worst_payment(made.for_people(5), above_support=True) >= worst_payment(made.for_people(5))
    outcome = made.acquire([1.0, 3.0, 3.0, 3.0, 3.0])  # only one seller is left, and she is paid more
    assert outcome.total_payment <= worst_payment(made.for_people(5), above_support=True)


def test_whether_a_sole_sellers_rent_diverges_is_read_off_the_tail():
    heavy = [from_scipy(stats.lomax(1.2)), from_scipy(stats.lomax(2.0)), from_scipy(stats.halfcauchy())]
    light = [from_scipy(stats.lomax(2.1)), Exponential(1), LogNormal(0, 2), Uniform(0, 9), Empirical([1, 2])]
    assert [sole_rent_diverges(prior) for prior in heavy] == [True] * 3
    assert [sole_rent_diverges(prior) for prior in light] == [False] * 5


# -- planning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_plan_for_an_error_finds_the_smallest_buyer_weight_that_reaches_it(setting):
    plan = market(setting=setting).plan(target_mse=0.03, n=30, rng=generator(1), repetitions=100)
    assert plan.solved_for == "buyer_weight"
    assert plan.n == 30
    assert plan.market.buyer_weight == pytest.approx(plan.answer.value)
    assert plan.answer.low <= plan.answer.value <= plan.answer.high
    checked = plan.market.simulate(30, 100, rng=generator(99)).expected("mse")
    assert checked.low - (plan.expected_mse.high - plan.expected_mse.value) <= 0.03 * 1.02
    assert checked.value == pytest.approx(0.03, rel=0.05)
    less = replace(plan.market, buyer_weight=0.7 * plan.market.buyer_weight)
    assert less.simulate(30, 100, rng=generator(99)).expected("mse").low > 0.03


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_plan_for_a_budget_finds_the_largest_buyer_weight_that_keeps_it(setting):
    plan = market(setting=setting, user_weight=0.2, variance=0.2).plan(
        budget=40.0, n=20, rng=generator(2), repetitions=100
    )
    paid = plan.market.simulate(20, 150, rng=generator(98)).expected("total_payment")
    assert paid.value == pytest.approx(40.0, rel=0.05)
    assert plan.expected_payment.value == pytest.approx(40.0, rel=0.05)


def test_a_plan_for_a_number_of_people_meets_its_target_and_one_fewer_would_not():
    made = market(buyer_weight=500.0)
    plan = made.plan(target_mse=0.02, rng=generator(3), repetitions=60)
    assert plan.solved_for == "n"
    assert plan.market == made
    assert plan.answer.value == plan.n
    assert made.simulate(plan.n, 80, rng=generator(5)).expected("mse").low <= 0.02 * 1.02
    assert made.simulate(max(plan.n // 2, 1), 80, rng=generator(5)).expected("mse").low > 0.02
    frugal = made.plan(budget=60.0, rng=generator(3), repetitions=60)
    assert made.simulate(frugal.n, 80, rng=generator(6)).expected("total_payment").low <= 60.0 * 1.02


def test_more_repetitions_narrow_the_interval_of_the_answer():
    few = market().plan(target_mse=0.03, n=10, rng=generator(7), repetitions=20).answer
    many = market().plan(target_mse=0.03, n=10, rng=generator(7), repetitions=400).answer
    assert many.high / many.low < few.high / few.low


def test_if_people_care_enough_no_buyer_weight_is_needed():
    plan = market(user_weight=50.0, variance=0.25).plan(target_mse=0.2, n=20, rng=generator(8), repetitions=20)
    assert plan.market.buyer_weight == 0.0
    assert plan.answer == Estimate(value=0.0, low=0.0, high=0.0)


def test_a_plan_says_in_words_what_to_do_and_how_sure_it_is():
    text = market().plan(target_mse=0.05, n=10, rng=generator(9), repetitions=20).summary()
    assert text.startswith("Invite 10 people, with a buyer weight of ")
    assert "From 20 simulated campaigns; the buyer weight that meets the target is" in text
    alone = market().plan(budget=1e6, rng=generator(9), repetitions=20).summary()
    assert alone.startswith("Invite 1 person,")


@pytest.mark.parametrize(
    ("fields", "arguments", "words"),
    [
        ({}, {"target_mse": 0.01, "n": 3}, "target_mse must be above 0.0833333, the least possible with 3 people"),
        ({"max_privacy_loss": 0.1}, {"target_mse": 0.23, "n": 30}, "the least possible with 30 people"),
        ({"user_weight": 1.0, "variance": 0.01}, {"budget": 1e-3, "n": 10}, "even if the buyer does not care"),
        ({}, {"target_mse": 1e-9}, "however many people there are"),
        ({}, {"budget": 1e-9}, "however many people there are"),
    ],
)
def test_a_target_that_cannot_be_met_is_refused_with_the_least_that_can(fields, arguments, words):
    with pytest.raises(MarketError, match=words):
        market(**fields).plan(**arguments, rng=generator(), repetitions=20)


@pytest.mark.parametrize("kind", ["target_mse", "budget"])
def test_the_least_that_any_number_of_people_can_give_is_nearly_reached_by_many(kind):
    made = market(buyer_weight=2.0)
    total = (4 * 2.0 / 1.0) ** (1 / 3)
    least = 2 / total**2 if kind == "target_mse" else total
    with pytest.raises(MarketError, match="however many"):
        made.plan(**{kind: least * 0.999}, rng=generator(), repetitions=10)
    plan = made.plan(**{kind: least * 1.1}, rng=generator(), repetitions=20)
    assert plan.n > 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "give either target_mse or budget"),
        ({"target_mse": 1.0, "budget": 1.0}, "give either target_mse or budget"),
        ({"target_mse": -1.0}, "target_mse must be positive and finite"),
        ({"target_mse": math.nan}, "target_mse must be positive and finite"),
        ({"budget": "x"}, "budget must be a number"),
        ({"budget": 1.0, "n": 0}, "n must be a whole number of at least 1"),
        ({"budget": 1.0, "n": 1.5}, "n must be a whole number"),
        ({"budget": 1.0, "repetitions": 5}, "repetitions must be a whole number of at least 10"),
        ({"budget": 1.0, "rng": 3}, "rng must be a numpy.random.Generator"),
    ],
)
def test_a_plan_refuses_what_it_cannot_do(arguments, words):
    with pytest.raises(InputError, match=words):
        market().plan(**({"rng": generator()} | arguments))


def test_people_who_differ_must_be_counted_before_a_plan_is_made():
    grouped = Grouped({"a": PRIOR}, ["a", "a"])
    for made in (market(prior=grouped), market(variance=[0.1, 0.2]), market(variance=0.2, user_weight=[0.0, 1.0])):
        with pytest.raises(InputError, match="n must be given"):
            made.plan(target_mse=1.0, rng=generator())
    plan = market(prior=grouped).plan(target_mse=1.0, n=2, rng=generator(), repetitions=10)
    assert plan.n == 2
    with pytest.raises(InputError, match="variance must have one entry per person"):
        market(variance=[0.1, 0.2]).plan(target_mse=1.0, n=3, rng=generator())


def test_a_divergent_payment_stops_a_plan_and_a_simulation_of_one_person():
    made = market(prior=from_scipy(stats.lomax(1.5)))
    with pytest.raises(DivergentPayment):
        made.plan(target_mse=1.0, n=1, rng=generator())
    with pytest.raises(DivergentPayment):
        made.simulate(1, 5, rng=generator())
