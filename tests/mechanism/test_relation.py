"""Protection against related prices and data: what it states, what it costs, and that nobody can change it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.allocation import Accuracy, Budget, HardBudget
from hushbid.common.money import Currency
from hushbid.disclosure import ReleasePlan
from hushbid.disclosure.delivery import planned_error
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.mechanism.releasing import plan_of
from hushbid.priors import Grouped, LogNormal, Uniform
from tests.disclosure.support import weigh
from tests.extent import by_turns, each

PEOPLE = 60
BIDS = Uniform(1, 2).sample(PEOPLE, rng=np.random.default_rng(4))


def market(**more: object) -> Market:
    terms: dict[str, object] = {"prior": Uniform(1, 2), "buyer_weight": 400.0, "bounds": (0, 12), "variance": 1.5}
    return Market(**{**terms, "max_correlation": 0.3, **more})  # type: ignore[arg-type]


# -- what it costs -----------------------------------------------------------------------------------------------------

COSTS = [  # people bought from, paid, largest loss, worst error if the relation really is 0, 0.05, 0.1, 0.3
    (0.0, 2012, 177, 0.63, (0.054, 0.163, 0.312, 0.923)),
    (0.02, 4673, 224, 0.18, (0.052, 0.097, 0.172, 0.493)),
    (0.05, 7875, 297, 0.066, (0.056, 0.070, 0.100, 0.255)),
    (0.1, 9338, 376, 0.037, (0.063, 0.066, 0.076, 0.146)),
    (0.3, 9919, 526, 0.025, (0.073, 0.073, 0.075, 0.086)),
]


@each(("protected", "bought", "paid", "largest", "errors"), COSTS)
def test_the_table_of_what_protection_costs_is_found_again(
    protected: float, bought: int, paid: float, largest: float, errors: tuple[float, ...]
) -> None:
    prior = LogNormal(math.log(0.8), 0.5)
    bids = prior.sample(10_000, rng=np.random.default_rng(1))
    buyer = Market(prior=prior, buyer_weight=50_000.0, bounds=(0, 12), variance=1.5, max_correlation=protected)
    population = buyer.for_people(10_000)
    costs = population.virtual_costs(bids)
    found = population.allocation(costs)
    squares, total = float(np.sum(found.weights**2)), float(found.privacy_loss.sum())
    assert np.count_nonzero(found.privacy_loss) == bought
    assert float(f"{found.privacy_loss.max():.2g}") == largest
    assert float(costs @ found.privacy_loss) == pytest.approx(paid, rel=0.02)  # on average; below, what is paid
    if protected <= 0.02:  # quickly found
        assert round(buyer.acquire(bids).total_payment) == paid
    for true, stated in zip((0.0, 0.05, 0.1, 0.3), errors, strict=True):
        worst = 1.5 * (1.0 + 10_000 * true**2) * squares - true**2 * 1.5 + 2.0 * (12.0 / total) ** 2
        assert round(math.sqrt(worst), 3) == stated


# -- what is stated ----------------------------------------------------------------------------------------------------


def measured(
    plan: ReleasePlan, shape: np.ndarray, closeness: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Mean squared error of releases on data related so closely, its uncertainty, and the intervals' coverage.

    ``shape`` is the relation over the whole roster, those first who are in the plan.
    """
    summed, repetitions = weigh(plan, plan.delivered > 0), 1500
    centred = shape - shape.mean()
    drift = centred * (closeness * math.sqrt(1.5) / math.sqrt(float(np.mean(centred**2))))
    mean = plan.bounds[0] + plan.width / 2.0
    data = mean + drift[: plan.people] + math.sqrt(1.5) * rng.choice([-1.0, 1.0], (repetitions, plan.people))
    assert data.min() >= plan.bounds[0]
    assert data.max() <= plan.bounds[1]
    misses = np.array(summed.estimates([summed.total(row) for row in data])) - mean
    squared = misses**2
    covered = float(np.mean(np.abs(misses) <= summed.error.half_width(0.95)))
    return float(squared.mean()), float(squared.std()) / math.sqrt(repetitions), covered


@pytest.mark.parametrize(("closeness", "roster"), by_turns([0.0, 0.05, 0.1, 0.3], [PEOPLE, 100]))
def test_no_planted_relation_exceeds_the_stated_error_and_the_worst_reaches_it(closeness: float, roster: int) -> None:
    outcome = market(max_correlation=closeness, population=roster).acquire(BIDS)
    plan, rng = plan_of(outcome, key="planted"), np.random.default_rng(11)
    absent = np.zeros(roster - PEOPLE)
    worst = np.concatenate([outcome.weights, absent])
    line = np.concatenate([BIDS, absent + 2.0])  # those who did not bid are as if they were dear
    level = 0.95 - 5 * math.sqrt(0.95 * 0.05 / 1500)
    found, doubt, covered = measured(plan, worst, closeness, rng)
    assert abs(found - outcome.worst_mse) < 5 * doubt, "tight"
    assert covered >= level
    found, doubt, covered = measured(plan, line, closeness, rng)
    assert found < outcome.worst_mse + 5 * doubt
    assert covered >= level
    if closeness == 0.0:
        assert outcome.mse == outcome.worst_mse


def test_what_ignores_the_relation_is_off_by_far_more_than_it_states() -> None:
    outcome = market(max_correlation=0.0).acquire(BIDS)
    found, doubt, _ = measured(plan_of(outcome, key="naive"), outcome.weights, 0.3, np.random.default_rng(2))
    assert found > outcome.mse + 10 * doubt


def test_the_stated_errors_are_those_of_the_release() -> None:
    spreads = np.random.default_rng(3).uniform(0.5, 2.0, PEOPLE)
    labels = ["a", "b"] * (PEOPLE // 2)
    grouped = Grouped({"a": Uniform(1, 2), "b": Uniform(1, 3)}, labels)
    for one in (
        market(),
        market(population=500),
        market(variance=spreads),
        market(prior=grouped),
        market(max_privacy_loss=0.3, population=100),
        market(buyer_weight=None, goal=Budget(20)),
        market(setting="local"),
        market(setting="local", population=500),
    ):
        outcome = one.acquire(BIDS)
        plan = plan_of(outcome, key="stated")
        error = planned_error(plan)
        assert error.mse == pytest.approx(outcome.mse, rel=1e-9)
        assert error.worst_mse == pytest.approx(outcome.worst_mse, rel=1e-9)
        assert outcome.worst_mse > outcome.mse


def test_an_accuracy_is_kept_at_worst_and_a_hard_budget_is_planned_for_the_worst() -> None:
    outcome = market(buyer_weight=None, goal=Accuracy(1.5)).acquire(BIDS)
    assert math.sqrt(outcome.worst_mse) == 1.5
    assert outcome.mse < outcome.worst_mse
    shared = market(buyer_weight=None, goal=HardBudget(20)).acquire(BIDS)
    free = market(buyer_weight=None, goal=HardBudget(20), max_correlation=0.0).acquire(BIDS)
    assert shared.total_payment <= 20
    assert np.sum(shared.weights**2) < np.sum(free.weights**2)


def test_one_seller_of_ten_with_everything_related_states_two_and_a_half_besides_noise() -> None:
    alone = Market(
        prior=Uniform(1, 2), buyer_weight=1e6, bounds=(0, 1), variance=0.25, max_correlation=1.0, population=10
    ).acquire([1.5])
    noise = 2.0 / float(alone.privacy_loss[0]) ** 2
    assert alone.worst_mse == pytest.approx(2.5 + noise)
    assert alone.mse == pytest.approx(0.25 + noise)


def test_the_closer_a_relation_may_be_the_more_equal_the_weights() -> None:
    uneven = []
    for closeness in (0.0, 0.1, 0.3, 1.0):
        weights = market(buyer_weight=100.0, max_correlation=closeness).acquire(BIDS).weights
        uneven.append(PEOPLE * float(np.sum(weights**2)) - 1.0)
    assert uneven == sorted(uneven, reverse=True)
    assert uneven[-1] < 0.01 < 0.5 < uneven[0]


def test_without_a_relation_nothing_changes_whatever_the_population() -> None:
    plain = market(max_correlation=0.0).acquire(BIDS)
    stated = market(max_correlation=0.0, population=10_000).acquire(BIDS)
    for name, column in plain.columns().items():
        assert np.array_equal(column, stated.columns()[name]), name
    assert (plain.mse, plain.worst_mse, plain.objective) == (stated.mse, stated.worst_mse, stated.objective)
    assert plan_of(plain, key="plain").relation is None


# -- who can change it -------------------------------------------------------------------------------------------------


@given(idle=st.integers(1, 40), closeness=st.sampled_from([0.05, 0.3, 1.0]))
def test_idle_bids_do_not_change_the_protection_of_a_stated_population(idle: int, closeness: float) -> None:
    few, more = np.array([1.1, 1.2, 1.5]), np.concatenate([[1.1, 1.2, 1.5], np.full(idle, 50.0)])
    stated = market(max_correlation=closeness, population=50)
    assert stated.for_people(3).variance == stated.for_people(3 + idle).variance
    first, second = stated.acquire(few), stated.acquire(more)
    assert np.array_equal(first.privacy_loss, second.privacy_loss[:3])
    assert np.array_equal(first.payments, second.payments[:3])
    assert first.worst_mse == second.worst_mse
    # without one they do: the more bid, the more even it wants the weights
    open_to_all = market(max_correlation=closeness)
    assert open_to_all.for_people(3).variance < open_to_all.for_people(3 + idle).variance


def test_variances_by_person_must_be_everybodys() -> None:
    with pytest.raises(
        InputError, match=r"population of 61, with max_correlation=0.3, got 60: the protection rests on"
    ):
        market(variance=np.full(PEOPLE, 1.5), population=PEOPLE + 1)
    assert market(variance=np.full(PEOPLE, 1.5), population=PEOPLE).for_people(PEOPLE).roster == PEOPLE


# -- what is said ------------------------------------------------------------------------------------------------------


def test_a_summary_says_both_errors_and_the_goal() -> None:
    related = market().acquire(BIDS)
    unrelated, worst = math.sqrt(related.mse), math.sqrt(related.worst_mse)
    told = f"{unrelated:.3g} if price and datum are unrelated, {worst:.3g} at worst (root mean square)"
    assert told in related.summary()
    assert "unrelated" not in market(max_correlation=0.0).acquire(BIDS).summary()
    goals = {Budget(20): "payments of 20 on average", Accuracy(1.5): "a standard error of 1.5 for as little money"}
    for goal, words in goals.items():
        summary = market(buyer_weight=None, goal=goal).acquire(BIDS).summary()
        assert f"The goal is {'the least error for ' * isinstance(goal, Budget)}{words}" in summary
    assert "The goal" not in related.summary()


def test_figures_name_the_worst_error_for_programs() -> None:
    figures = market().acquire(BIDS).figures()
    facts = figures.facts(dropped=0, currency=Currency.of("EUR"), total_minor=1, paying=0, incentive_error=0.0)
    assert facts["worst_standard_error"] == math.sqrt(figures.worst_mse) > facts["standard_error"]
    same = replace(figures, worst_mse=figures.mse)
    assert same.worst_standard_error == same.standard_error
