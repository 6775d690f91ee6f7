"""Simulating campaigns, planning for a target, and the most that a campaign can cost."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hushbid import (
    Accuracy,
    Beta,
    Budget,
    Empirical,
    Exponential,
    Grouped,
    HardBudget,
    LogNormal,
    Market,
    Mixture,
    Price,
    Uniform,
    from_scipy,
)
from hushbid.errors import DivergentPayment, InputError, MarketError, Unreachable
from hushbid.mechanism import Estimate
from hushbid.mechanism.impossible import rent_diverges
from hushbid.mechanism.simulation import mean_of, virtual_figures
from hushbid.mechanism.worst_case import worst_payment
from tests.extent import ALL_CASES, by_turns, each

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
    found = made.simulate(5, 100, rng=generator(1))
    rng = generator(2)
    virtual = np.array([virtual_figures(made.for_people(5), made.prior.sample(5, rng=rng)).payment for _ in range(500)])
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
    assert "to ∞" in str(Estimate(value=1.0, low=0.5, high=math.inf))


def test_under_a_wrong_prior_people_below_bid_its_lowest_value_and_those_above_are_never_bought_from():
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


@each(
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
    with pytest.raises(InputError, match="name must be one of mse, worst_mse, total_payment"):
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


@pytest.mark.parametrize(("name", "setting"), by_turns(WORST, ("central", "local")))
def test_no_bids_found_by_a_search_cost_more_than_the_bound(name, setting):
    prior, rng = WORST[name], generator(len(name))
    for k in range(2):
        n = int(rng.integers(1, 6))
        made = market(
            prior=prior,
            setting=setting,
            buyer_weight=10 ** rng.uniform(-1, 4),
            variance=float(rng.uniform(0.01, 0.25)),
            max_privacy_loss=None if k else 10 ** rng.uniform(-1, 1),
            user_weight=float(rng.choice([0.0, 1.0])),
        )
        bound = worst_payment(made.for_people(n))
        for _ in range(4 if ALL_CASES else 2):
            levels = np.clip(rng.random(n) ** rng.choice([0.1, 1.0, 10.0]), 0.0, 0.9999)
            if rng.random() < 0.5:
                levels[:] = levels[0]
            paid = made.acquire(np.asarray(prior.quantile(levels))).total_payment
            assert paid <= bound * (1 + 1e-9) + 1e-9


@each("kind", [Accuracy, Budget])
@each("name", ["uniform", "from zero", "wide", "irregular", "empirical"])
def test_no_bids_cost_more_than_the_bound_of_an_accuracy_or_a_budget(name, kind):
    """Extreme and equal bids, people missing above the support, relations of all sizes."""
    prior, rng = WORST[name], generator(len(name))
    for k in range(4):
        n, variance = int(rng.integers(1, 6)), float(rng.uniform(0.01, 0.25))
        within = math.sqrt(variance / n * (1 + 10 ** rng.uniform(-1.5, 1.5)))
        goal = Budget(10 ** rng.uniform(-1, 2)) if kind is Budget else Accuracy(within)
        made = Market(prior=prior, goal=goal, variance=variance, max_correlation=float(rng.choice([0.0, 0.3])))
        missing = bool(k % 2) and prior.support[1] < math.inf
        bound = worst_payment(made.for_people(n), above_support=missing)
        for _ in range(5):
            levels = rng.random(n) ** rng.choice([0.1, 1.0, 10.0])
            levels = np.clip(np.round(levels) if rng.random() < 0.3 else levels, 1e-4, 0.9999)
            bids = np.asarray(prior.quantile(levels))
            if missing:
                bids[rng.random(n) < 0.3] = 2.0 * prior.support[1]
            try:
                paid = made.acquire(bids).total_payment
            except (Unreachable, DivergentPayment):  # nothing is bought, nobody is paid
                continue
            assert paid <= bound * (1 + 1e-9)


def test_the_bounds_of_an_accuracy_and_a_budget_are_no_idle_ones():
    """Everybody at the top, or one seller at the bottom, comes within a factor of three of what is never exceeded."""
    for goal in (Accuracy(0.3), Budget(40.0)):
        found = Market(prior=PRIOR, goal=goal, variance=0.2).simulate(4, 20, rng=generator(1))
        assert found.worst_payment_found <= found.worst_payment_bound <= 3.001 * found.worst_payment_found


def test_an_accuracy_costs_most_when_as_few_are_left_as_can_reach_it():
    made = Market(prior=PRIOR, goal=Accuracy(0.29), variance=0.25)  # V / r² = 2.97: three people
    bound = worst_payment(made.for_people(6), above_support=True)
    paid = made.acquire([2.0, 2.0, 2.0, 9.0, 9.0, 9.0]).total_payment
    assert worst_payment(made.for_people(6)) < paid <= bound
    assert bound == pytest.approx(2 * 3 * math.sqrt(2 / (0.0841 - 0.25 / 3)), rel=1e-12)
    mixed = Market(prior=PRIOR, goal=Accuracy(0.3), variance=[0.25, 0.2, 0.1, 0.2, 0.2, 0.2])
    assert worst_payment(mixed.for_people(6), above_support=True) == math.inf
    assert worst_payment(mixed.for_people(6)) < math.inf


def test_where_the_support_has_no_top_an_accuracy_can_cost_anything_but_a_budget_cannot():
    for prior in (Exponential(1.0), LogNormal(0, 1)):
        assert worst_payment(Market(prior=prior, goal=Accuracy(0.3)).for_people(9)) == math.inf
    far = Market(prior=LogNormal(0, 1), goal=Accuracy(0.3))
    assert far.acquire(np.full(9, 1e3)).total_payment > 100 * far.acquire(np.full(9, 1.0)).total_payment
    alone = Market(prior=WORST["beta"], goal=Budget(10))  # at the top her virtual cost is infinite
    assert alone.acquire([0.5]).total_payment <= worst_payment(alone.for_people(1)) < 100
    steps = Empirical([1, 2, 2, 5])
    assert worst_payment(Market(prior=steps, goal=Budget(10)).for_people(9)) <= 50.0


def test_the_two_people_of_the_papers_example_come_close_to_the_bound():
    """The bound is no idle one: here some bids cost more than half of it."""
    for setting in ("central", "local"):
        found = market(setting=setting, buyer_weight=3.0).simulate(2, 20, rng=generator(1))
        assert found.worst_payment_found <= found.worst_payment_bound <= 2 * found.worst_payment_found


@pytest.mark.parametrize("setting", ["central", "local"])
def test_payments_for_data_stay_below_twice_centrally_and_once_locally_the_largest_objective(setting):
    """The proof in docs/concepts/proofs.md, on markets where everybody may be at the top."""
    rng = generator(21)
    for prior, factor in ((Uniform(1, 3), 0.5), (Empirical([1, 2, 4]), 1.0), (Beta(1, 1, 0.2, 1.0), 1.0)):
        for _ in range(15):
            n = int(rng.integers(1, 7))
            made = market(prior=prior, setting=setting, buyer_weight=10 ** rng.uniform(-1, 5))
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
    assert [rent_diverges(prior) for prior in heavy] == [True] * 3
    assert [rent_diverges(prior) for prior in light] == [False] * 5


# -- planning ----------------------------------------------------------------------------------------------------------

GOALS = [Price(500.0), Accuracy(0.15), Budget(25.0), HardBudget(25.0)]


def test_as_many_campaigns_are_simulated_as_were_asked_for(monkeypatch):
    monkeypatch.setattr("hushbid.mechanism.simulation._MOST_DRAWS", 400)
    for asked, run in {None: 20, 30: 30}.items():
        plan = market().plan(20, rng=generator(1), repetitions=asked, relations=(0.0,))
        assert plan.simulation.repetitions == run, asked


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.kind)
def test_a_plan_tells_what_a_campaign_with_the_stated_goal_comes_to(goal):
    made = Market(prior=PRIOR, goal=goal, max_correlation=0.1)
    plan = made.plan(40, rng=generator(1), repetitions=30)
    again = made.simulate(40, 30, rng=generator(99))
    for name in ("mse", "worst_mse", "total_payment"):
        told, seen = plan.simulation.expected(name), again.expected(name)
        assert abs(told.value - seen.value) <= 1.5 * (told.high - told.low + seen.high - seen.low) + 1e-3 * told.value
    assert plan.simulation.worst_payment_bound == again.worst_payment_bound
    assert plan.market == made
    assert (plan.n, plan.needed) == (40, None)
    for words in ("40 people: a standard error of", "at worst", "never exceeded", "protected up to", "what to state"):
        assert words in plan.summary()


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.kind)
def test_each_degree_of_protection_is_told_with_what_it_costs_and_what_it_is_good_for(goal):
    """Against data made to hurt: people's means differ from the mean by a relation of the worst shape."""
    made = Market(prior=PRIOR, goal=goal)
    plan = made.plan(40, rng=generator(2), repetitions=10, relations=(0.0, 0.1, 0.3))
    spread = [row.bought_from for row in plan.protection]
    assert [row.max_correlation for row in plan.protection] == [0.0, 0.1, 0.3]
    assert spread == sorted(spread)
    for row in plan.protection:
        protected = replace(made, max_correlation=row.max_correlation)
        seed = int(generator(2).integers(2**62))
        rng, worst = generator(seed), []
        for _ in range(10):
            outcome = protected.acquire(PRIOR.sample(40, rng=rng))
            away = outcome.weights - 1 / 40
            bias = 0.3 * math.sqrt(0.25) * math.sqrt(40) * float(away @ away) / math.sqrt(float(away @ away))
            worst.append(outcome.mse + bias**2)
        assert row.standard_errors[2] == pytest.approx(math.sqrt(np.mean(worst)), rel=1e-6)
    # with more protection a strong relation hurts less; if there is none, it costs something
    assert plan.protection[2].standard_errors[2] < plan.protection[0].standard_errors[2]
    assert plan.protection[2].payment >= plan.protection[0].payment * (1 - 1e-9) or isinstance(goal, HardBudget)


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.kind)
def test_the_frontier_falls_and_each_of_its_points_can_be_stated(goal):
    frontier = Market(prior=PRIOR, goal=goal).plan(40, rng=generator(3), repetitions=10).frontier
    assert len(frontier) >= 3
    errors, payments = ([getattr(point, name) for point in frontier] for name in ("standard_error", "payment"))
    assert errors == sorted(errors, reverse=True)
    assert payments == sorted(payments)
    point = frontier[-1]
    seen = Market(prior=PRIOR, goal=point.goal).simulate(40, 20, rng=generator(4))
    assert math.sqrt(seen.expected("mse").value) == pytest.approx(point.standard_error, rel=0.1)
    assert seen.expected("total_payment").value == pytest.approx(point.payment, rel=0.1)


@pytest.mark.parametrize(
    ("goal", "target"),
    [
        (Price(500.0), {"target_standard_error": 0.15}),
        (Accuracy(0.1), {"target_payment": 30.0}),
        (Budget(20.0), {"target_standard_error": 0.12}),
        (HardBudget(20.0), {"target_standard_error": 0.12}),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_as_many_people_are_asked_for_as_meet_the_target_and_half_would_not(goal, target):
    made = Market(prior=PRIOR, goal=goal)
    plan = made.plan(**target, rng=generator(5), repetitions=30)
    assert plan.needed.value == plan.n
    assert plan.needed.low <= plan.n <= plan.needed.high
    assert "So many people are needed" in plan.summary()
    name, value = ("total_payment", target["target_payment"]) if "target_payment" in target else ("worst_mse", 0.0)
    value = value or target["target_standard_error"] ** 2
    assert made.simulate(plan.n, 40, rng=generator(6)).expected(name).low <= 1.02 * value
    try:
        assert made.simulate(plan.n // 2, 40, rng=generator(6)).expected(name).low > value
    except Unreachable:
        assert isinstance(goal, Accuracy)


def test_a_local_buyer_with_a_budget_reads_the_price_of_the_error_off_the_frontier():
    made = market(setting="local", buyer_weight=100.0)
    frontier = made.plan(20, rng=generator(7), repetitions=20).frontier
    assert all(isinstance(point.goal, Price) for point in frontier)
    assert frontier[0].payment < 10.0 < frontier[-1].payment


def test_a_hard_budget_of_hardly_more_than_a_coin_each_is_planned_without_the_smaller_ones():
    market = Market(prior=Uniform(1, 2), goal=HardBudget(1.01, coin=0.01))
    found = market.plan(100, rng=np.random.default_rng(1), repetitions=20).frontier
    assert [point.goal.number for point in found] == [1.01, 2.02, 4.04]
    with pytest.raises(MarketError, match=r"not met with any number of people tried, up to 100, got 1\.5"):
        market.plan(target_standard_error=1.5, rng=np.random.default_rng(1), repetitions=20)


def test_people_who_care_have_no_table_of_protection_for_it_is_refused():
    plan = market(user_weight=1.0, variance=0.2).plan(5, rng=generator(), repetitions=10)
    assert plan.protection == ()
    assert "protected up to" not in plan.summary()


@each(
    ("goal", "arguments", "words"),
    [
        (Accuracy(0.1), {"n": 3}, r"standard_error must be above 0\.288675, the least that 3 people can reach"),
        (Price(2.0), {"target_standard_error": 1e-6}, "however many people there are"),
        (Price(2.0), {"target_payment": 1e-6}, "however many people there are"),
        (Accuracy(0.1), {"target_payment": 14.0}, r"target_payment must be above 14\.1421"),
        (Budget(2.0), {"target_standard_error": 0.7}, r"target_standard_error must be above 0\.707107"),
        (HardBudget(2.0), {"target_standard_error": 0.7}, r"target_standard_error must be above 0\.707107"),
    ],
)
def test_a_target_that_cannot_be_met_is_refused_with_the_least_that_can(goal, arguments, words):
    with pytest.raises(MarketError, match=words):
        Market(prior=PRIOR, goal=goal).plan(**arguments, rng=generator(), repetitions=20)


def test_no_more_people_are_asked_for_than_the_population_has():
    made = Market(prior=PRIOR, goal=Budget(20.0), max_correlation=0.1, population=30)
    with pytest.raises(MarketError, match="not met with any number of people tried, up to 30"):
        made.plan(target_standard_error=0.12, rng=generator(), repetitions=10)


@each(
    ("arguments", "words"),
    [
        ({}, "give n, or a target"),
        ({"target_standard_error": 1.0, "target_payment": 1.0}, "give n, or a target"),
        ({"target_standard_error": 1.0, "n": 3}, "n must not be given with a target"),
        ({"target_standard_error": -1.0}, "target_standard_error must be positive and finite"),
        ({"target_standard_error": math.nan}, "target_standard_error must be positive and finite"),
        ({"target_payment": "x"}, "target_payment must be a number"),
        ({"n": 0}, "n must be a whole number of at least 1"),
        ({"n": 1.5}, "n must be a whole number"),
        ({"n": 1, "repetitions": 5}, "repetitions must be a whole number of at least 10"),
        ({"n": 1, "rng": "3"}, "rng must be a numpy.random.Generator or a seed"),
    ],
)
def test_a_plan_refuses_what_it_cannot_do(arguments, words):
    with pytest.raises(InputError, match=words):
        market().plan(**({"rng": generator()} | arguments))


def test_a_target_that_the_goal_states_already_is_refused():
    with pytest.raises(InputError, match="which states it already"):
        Market(prior=PRIOR, goal=Budget(3)).plan(target_payment=3.0, rng=generator())
    with pytest.raises(InputError, match="which states it already"):
        Market(prior=PRIOR, goal=Accuracy(0.1)).plan(target_standard_error=0.1, rng=generator())


def test_people_who_differ_must_be_counted_before_a_plan_is_made():
    grouped = Grouped({"a": PRIOR}, ["a", "a"])
    for made in (market(prior=grouped), market(variance=[0.1, 0.2]), market(variance=0.2, user_weight=[0.0, 1.0])):
        with pytest.raises(InputError, match="n must be given"):
            made.plan(target_standard_error=1.0, rng=generator())
    plan = market(prior=grouped).plan(2, rng=generator(), repetitions=10)
    assert plan.n == 2
    with pytest.raises(InputError, match="variance must have one entry per person"):
        market(variance=[0.1, 0.2]).plan(3, rng=generator())


def test_a_divergent_payment_stops_a_plan_and_a_simulation_of_one_person():
    made = market(prior=from_scipy(stats.lomax(1.5)))
    with pytest.raises(DivergentPayment):
        made.plan(1, rng=generator())
    with pytest.raises(DivergentPayment):
        made.simulate(1, 5, rng=generator())


def test_a_sweep_tries_all_combinations_on_the_same_people() -> None:
    market = Market(prior=Uniform(1, 2), bounds=(0, 100), buyer_weight=10.0, user_weight=0.0)
    changes = {"setting": ["central", "local"], "buyer_weight": [10.0, 20.0]}
    frame = market.sweep(changes, 20, 5, rng=3, library="pandas")
    assert frame[["setting", "buyer_weight"]].to_numpy().tolist() == [
        ["central", 10.0],
        ["central", 20.0],
        ["local", 10.0],
        ["local", 20.0],
    ]
    seed = int(np.random.default_rng(3).integers(2**62))
    assert frame["total_payment"][0] == market.simulate(20, 5, rng=seed).total_payment.mean()
    assert list(market.sweep({"setting": []}, 20, 5, rng=3, library="pandas").columns) == ["setting"]


@pytest.mark.parametrize("terms", [{}, {"user_weight": 2.0}])
def test_the_truth_is_the_bid_of_largest_utility(terms: dict[str, float]) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.2, **{"buyer_weight": 50.0, "user_weight": 0.0, **terms})
    outcome = market.acquire(np.random.default_rng(0).uniform(1, 2, 12))
    for user in (0, 5, -1):
        cost = float(outcome.bids[user])
        gain = outcome.utility(user, cost)
        assert gain == pytest.approx(outcome.information_rent[user], abs=1e-12)
        for bid in (1.0, 1.3, 1.7, 2.0):
            assert outcome.utility(user, cost, bid=bid) <= gain + outcome.incentive_error
    assert outcome.standard_error == outcome.mse**0.5 <= outcome.worst_standard_error
