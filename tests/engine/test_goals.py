"""Goals and relations on engines: what memory decides, whatever the goal, and the same refusals."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.engine import price
from hushbid.engine.releasing import sum_plan
from hushbid.errors import DivergentPayment, InputError, MarketError, Unreachable
from hushbid.mechanism import Market
from hushbid.priors import Empirical, Exponential, Grouped, LogNormal, Prior, Uniform
from tests.engine.conftest import Kind, make_kind
from tests.engine.test_price import SUMMED, assert_same, table
from tests.extent import each

RNG = np.random.default_rng(60)
GOALS: dict[str, Goal] = {"accuracy": Accuracy(0.03), "budget": Budget(20), "price": Price(3000)}
MARKET = Market(prior=Uniform(1, 2), goal=Accuracy(0.03))


def same(market: Market, bids: Any, *, memory: Market | None = None, method: str = "summed", **options: Any) -> Any:
    """Price on an engine, and hold it against memory."""
    columns = {name: options.pop(name) for name in ("who", "spread") if name in options}
    priced = price(table(bids, **columns), market, **options)
    outcome = (memory or market).acquire(bids)
    assert priced.summary.method == method
    assert_same(priced.frame.sort_by("id"), priced, outcome)
    assert priced.summary.total_privacy_loss == pytest.approx(float(outcome.privacy_loss.sum()), rel=1e-11)
    assert priced.summary.squared_weights == pytest.approx(float((outcome.weights**2).sum()), rel=1e-11)
    assert outcome.lower_bound * (1 - 1e-8) <= priced.summary.lower_bound <= priced.summary.objective
    return priced


@pytest.mark.parametrize("prior", [Uniform(1, 2), Empirical([1, 1.5, 2, 3, 3, 4])], ids=lambda prior: prior.family)
@pytest.mark.parametrize("goal", ["accuracy", "budget"])
def test_a_goal_is_kept_by_sums_as_in_memory(goal: str, prior: Prior) -> None:
    market = Market(prior=prior, goal=GOALS[goal], variance=0.2, bounds=(-0.5, 0.9))
    same(market, prior.sample(3000, rng=RNG), **SUMMED)


@pytest.mark.parametrize("goal", [Accuracy(0.06), Budget(10)], ids=lambda goal: goal.kind)
def test_curves_pay_what_memory_pays_up_to_what_both_say_payments_may_be_off(goal: Goal) -> None:
    market, bids = Market(prior=Exponential(2), goal=goal), Exponential(2).sample(400, rng=RNG)
    priced, outcome = price(table(bids), market, gather=5, window=50), market.acquire(bids)
    assert priced.summary.method == "summed"
    found, off = priced.frame.sort_by("id"), 0.5 * (priced.summary.incentive_error + outcome.incentive_error)
    assert off < 1e-5 * outcome.payments.max()
    np.testing.assert_allclose(found["privacy_loss"].to_numpy(), outcome.privacy_loss, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found["payment"].to_numpy(), outcome.payments, rtol=0, atol=off)


@pytest.mark.parametrize("goal", [Accuracy(0.06), Budget(10)], ids=lambda goal: goal.kind)
def test_two_extreme_bids_are_no_reason_to_look_at_everybody(goal: Goal) -> None:
    market, bids = Market(prior=Exponential(2), goal=goal), Exponential(2).sample(400, rng=RNG)
    bids[:2] = 1e-170, 300.0
    priced, outcome = price(table(bids), market, gather=5, window=50), market.acquire(bids)
    assert priced.summary.method == "summed"
    losses = priced.frame.sort_by("id")["privacy_loss"].to_numpy()
    np.testing.assert_allclose(losses, outcome.privacy_loss, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("goal", [Accuracy(0.0082), Budget(3000)], ids=lambda goal: goal.kind)
def test_a_goal_that_takes_everybody_is_kept_by_sums_as_in_memory(goal: Goal) -> None:
    bids = Uniform(1, 2).sample(4000, rng=RNG)
    priced = same(replace(MARKET, goal=goal), bids, **SUMMED)
    assert priced.summary.active == 4000


@pytest.mark.parametrize("goal", ["accuracy", "budget"])
def test_a_goal_takes_two_passes_and_a_third_for_finer_buckets(goal: str) -> None:
    bids = Uniform(1, 2).sample(20_000, rng=RNG)
    for window, passes in ((1 << 17, 2), (10, 3)):
        priced = same(replace(MARKET, goal=GOALS[goal]), bids, gather=100, window=window)
        assert priced.summary.passes == passes


@pytest.mark.parametrize("goal", ["accuracy", "budget"])
def test_equal_bids_meet_in_one_entry_and_are_priced_as_in_memory(goal: str) -> None:
    bids = np.repeat(np.linspace(1, 2, 40), 100)
    same(replace(MARKET, goal=GOALS[goal]), bids, **SUMMED)


@pytest.mark.parametrize("goal", ["accuracy", "budget"])
def test_groups_have_curves_of_their_own_under_every_goal(goal: str) -> None:
    priors: dict[str, Prior] = {"young": Uniform(1, 2), "old": Uniform(0.5, 4)}
    labels = RNG.choice(list(priors), size=3000)
    bids = np.where(labels == "young", RNG.uniform(1, 2, 3000), RNG.uniform(0.5, 4, 3000))
    market = replace(MARKET, prior=Grouped(priors, []), goal=GOALS[goal])
    memory = replace(market, prior=Grouped(priors, labels))
    same(market, bids, memory=memory, who=labels, group="who", **SUMMED)


@each("goal", GOALS)
@each("population", [None, 6000])
def test_a_relation_is_priced_by_sums_as_in_memory(goal: str, population: int | None) -> None:
    bids = Uniform(1, 2).sample(4000, rng=RNG)
    market = replace(MARKET, goal=GOALS[goal], max_correlation=0.02, population=population, bounds=(0, 1.3))
    same(market, bids, **SUMMED)


@pytest.mark.parametrize("goal", [*GOALS, "hard budget"])
def test_with_variances_by_row_the_relation_is_measured_by_their_mean_over_those_who_are_priced(goal: str) -> None:
    bids, spread = Uniform(1, 2).sample(900, rng=RNG), RNG.uniform(0.05, 0.3, 900)
    market = replace(MARKET, goal=GOALS.get(goal, HardBudget(20)), max_correlation=0.05)
    memory = replace(market, variance=spread[1:])
    spoilt = np.append(np.nan, bids[1:])
    priced = price(table(spoilt, spread=spread), market, variance="spread", on_bad_rows="drop")
    assert_same(priced.frame.sort_by("id"), priced, memory.acquire(bids[1:]))


@pytest.mark.parametrize("relation", [0.0, 0.03])
def test_a_local_accuracy_is_priced_one_by_one_as_in_memory(relation: float) -> None:
    bids = Uniform(1, 2).sample(3000, rng=RNG)
    same(replace(MARKET, goal=Accuracy(0.2), setting="local", max_correlation=relation), bids, method="gathered")


@pytest.mark.parametrize("goal", [Accuracy(0.06), Price(300)], ids=lambda goal: goal.kind)
def test_one_cap_is_kept_locally_as_in_memory(goal: Goal) -> None:
    bids = Uniform(1, 2).sample(3000, rng=RNG)
    capped = Market(prior=Uniform(1, 2), goal=goal, setting="local", max_privacy_loss=0.5)
    same(capped, bids, method="gathered")


@each("goal", [HardBudget(30), HardBudget(30, 0.001)])
@each("relation", [0.0, 0.03])
@each("prior", [Uniform(1, 2), Exponential(2), Empirical([0.5, 1, 1, 3])])
def test_a_hard_budget_is_shared_out_by_sums_as_in_memory(goal: HardBudget, relation: float, prior: Prior) -> None:
    bids = np.append(prior.sample(800, rng=RNG), 9.0)
    market = replace(MARKET, prior=prior, goal=goal, max_correlation=relation, bounds=(-1, 2))
    priced = same(market, bids, gather=10, window=50)
    assert priced.total_payment() <= goal.amount


def test_a_hard_budget_is_shared_out_by_sums_among_groups_and_below_limits_that_bind_nobody() -> None:
    priors: dict[str, Prior] = {"young": Uniform(1, 2), "old": Uniform(0.5, 4), "nobody": Uniform(1, 3)}
    labels = RNG.choice(["young", "old"], size=900)
    bids = np.where(labels == "young", RNG.uniform(1, 2, 900), RNG.uniform(0.5, 4, 900))
    market = replace(MARKET, prior=Grouped(priors, []), goal=HardBudget(20))
    memory = replace(market, prior=Grouped(priors, labels))
    priced = same(market, bids, memory=memory, who=labels, group="who", gather=10)
    limited = price(table(bids, who=labels, most=np.full(900, 3.0)), market, group="who", limit="most", gather=10)
    assert limited.summary == priced.summary


def test_a_hard_budget_of_which_nobody_can_be_bought_anything_buys_nothing() -> None:
    market = Market(prior=Uniform(1, 2), goal=HardBudget(2.0), variance=0.25)
    priced = price(table(np.full(3, 2.0)), market)
    assert (priced.summary.active, priced.summary.total_payment) == (0, 0.0)
    assert math.isinf(priced.summary.mse)


@pytest.mark.parametrize("dear", [0, 540])
def test_of_losses_beyond_what_the_best_estimate_uses_only_that_is_used(dear: int) -> None:
    bids = np.append(np.linspace(0.001, 0.4, 60), np.full(dear, 0.9))  # few share what was meant for many
    market = replace(MARKET, prior=Uniform(0, 1), goal=HardBudget(40))
    outcome = market.acquire(bids)
    used = outcome.population.used(outcome.privacy_loss)
    for gather in (10, 1000):
        priced = same(market, bids, gather=gather, method="summed" if gather == 10 else "gathered")
        plan = sum_plan(priced)
        assert plan.losses == pytest.approx([used.sum()], rel=1e-12)
        assert plan.largest_loss == pytest.approx(used.max(), rel=1e-12)
        assert plan.planned.spread == pytest.approx(0.25 * (outcome.weights**2).sum(), rel=1e-9)
    assert (used.max() < outcome.privacy_loss.max()) == (dear > 0)


@pytest.mark.parametrize("goal", ["accuracy", "budget", "hard budget"])
@pytest.mark.parametrize("name", ["arrow", "folder", "polars", "duckdb"])
def test_a_level_is_the_same_to_the_last_bit_on_every_engine(
    goal: str, name: str, request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    kind: Kind = make_kind(name, request, tmp_path)
    market = replace(MARKET, goal=GOALS.get(goal, HardBudget(20)), max_correlation=0.01)
    people = table(Uniform(1, 2).sample(8000, rng=np.random.default_rng(61)))
    here, there = price(people, market, **SUMMED), price(kind.make(people), market, **SUMMED)
    assert here.summary.method == "summed"
    assert here.summary == there.summary
    expected, found = here.frame.sort_by("id"), kind.read(there.frame)
    for column in ("privacy_loss", "weight", "payment"):
        assert found[column].to_numpy().tolist() == expected[column].to_numpy().tolist()


# -- refused, because --------------------------------------------------------------------------------------------------


def test_an_accuracy_out_of_reach_is_refused_with_what_these_people_can_reach() -> None:
    bids = Uniform(1, 2).sample(400, rng=RNG)
    settings: tuple[Any, ...] = ("central", "local")
    for setting in settings:
        market = replace(MARKET, goal=Accuracy(0.02), setting=setting)
        with pytest.raises(Unreachable, match=r"must be above 0\.025, the least that 400 people can reach"):
            price(table(bids), market, **SUMMED)
        with pytest.raises(Unreachable, match=r"nobody bid within the prior.s support"):
            price(table([3.0, 4.0]), market)


def test_somebody_who_cannot_be_done_without_is_refused_under_an_unbounded_prior() -> None:
    bids = np.linspace(1, 2, 400)
    market = replace(MARKET, prior=LogNormal(0, 1), goal=Accuracy(0.02501))
    with pytest.raises(DivergentPayment, match="nobody can take their place"):
        price(table(bids), market, **SUMMED)


def test_nobody_is_bought_from_for_a_budget_if_everybody_is_above_the_support() -> None:
    priced = price(table([3.0, 4.0]), replace(MARKET, goal=Budget(5)))
    assert priced.summary.method == "nobody"
    assert priced.total_payment() == 0.0


def test_a_row_without_variance_is_refused() -> None:
    people = table([1.1, 1.2, 1.3], spread=[0.2, 0.0, 0.1])
    with pytest.raises(InputError, match="without a variance above 0"):
        price(people, MARKET, variance="spread")


def test_fewer_people_on_the_roster_than_in_the_table_are_refused() -> None:
    with pytest.raises(InputError, match="population must be at least the number of people, 3, got 2"):
        price(table([1.1, 1.2, 1.3]), replace(MARKET, max_correlation=0.1, population=2))


def test_variances_of_a_part_of_the_roster_are_refused_where_a_relation_is_allowed_for() -> None:
    people = table([1.1, 1.2, 1.3], spread=[0.2, 0.2, 0.1])
    with pytest.raises(InputError, match=r"each of the population of 5, with max_correlation=0\.1, got 3"):
        price(people, replace(MARKET, max_correlation=0.1, population=5), variance="spread")


@pytest.mark.parametrize(
    ("market", "words"),
    [
        (replace(MARKET, goal=HardBudget(5), max_privacy_loss=0.001), "a cap on privacy losses makes everybody count"),
        (replace(MARKET, goal=Budget(5), max_privacy_loss=0.1), "a cap on privacy losses makes everybody count"),
    ],
    ids=["hard budget", "cap"],
)
def test_more_people_than_the_driver_takes_are_refused_where_everybody_counts(
    market: Market, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushbid.engine.pricing.MOST", 100)
    with pytest.raises(MarketError, match=f"300 people could matter, more than the 100 .*{words}"):
        price(pa.table({"bid": np.linspace(1, 2, 300)}), market)
