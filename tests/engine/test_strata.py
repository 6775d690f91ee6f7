"""Strata on engines: what memory decides, for every goal, and the same refusals."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.disclosure import privatize
from hushbid.disclosure import release_synthetic as drawn_in_memory
from hushbid.disclosure.memory import weigh
from hushbid.engine import Priced, price, release
from hushbid.engine.delivered import data_columns
from hushbid.engine.everybody import everybody
from hushbid.engine.pricing import count
from hushbid.engine.releasing import prepared_sums, sum_plan
from hushbid.errors import (
    AlreadyReleased,
    BidError,
    InputError,
    MarketError,
    NobodyToBuyFrom,
    NothingDelivered,
    Unreachable,
)
from hushbid.mechanism import Market, Outcome
from hushbid.mechanism import release as release_in_memory
from hushbid.mechanism.releasing import plan_of
from hushbid.priors import Empirical, Exponential, Grouped, Prior, Uniform
from hushbid.questions import Number, YesNo
from tests.engine.conftest import Kind, make_kind
from tests.engine.test_price import SUMMED, assert_same, table

RNG = np.random.default_rng(80)
SHARES = {"east": 0.5, "south": 0.3, "west": 0.2}
CONTRAST = {"east": 1.0, "south": -0.7, "west": -0.3}
GOALS: dict[str, Goal] = {"price": Price(3000), "accuracy": Accuracy(0.06), "budget": Budget(20)}
N = 2500


def market(goal: Goal, *, weights: dict[str, float] = SHARES, prior: Any = None, **options: Any) -> Market:
    """Without anybody yet: a column says who is in which stratum."""
    stated: dict[str, Any] = {"shares": weights} if math.isclose(sum(weights.values()), 1.0) else {"contrast": weights}
    return Market(prior=Uniform(1, 2) if prior is None else prior, goal=goal, strata=[], **stated, **options)


def labels(n: int = N) -> Any:
    return RNG.choice(list(SHARES), size=n, p=[0.3, 0.3, 0.4])


def same(stated: Market, bids: Any, where: Any, *, kind: Kind | None = None, **options: Any) -> tuple[Priced, Outcome]:
    """Price on an engine, and hold it against memory."""
    columns = {name: options.pop(name) for name in ("who", "spread") if name in options}
    memory = replace(stated, strata=where)
    if "who" in columns:
        memory = replace(memory, prior=Grouped(stated.prior.priors, columns["who"]))
    if "spread" in columns:
        memory = replace(memory, variance=columns["spread"])
    people = table(bids, region=where, **columns)
    priced = price(people if kind is None else kind.make(people), stated, stratum="region", **options)
    outcome = memory.acquire(bids)
    found = priced.frame.sort_by("id") if kind is None else kind.read(priced.frame)
    assert_same(found, priced, outcome)
    assert priced.summary.total_privacy_loss == pytest.approx(float(outcome.privacy_loss.sum()), rel=1e-11)
    assert priced.summary.squared_weights == pytest.approx(float((outcome.weights**2).sum()), rel=1e-11)
    assert outcome.lower_bound * (1 - 1e-8) <= priced.summary.lower_bound <= priced.summary.objective
    return priced, outcome


@pytest.mark.parametrize("weights", [SHARES, CONTRAST], ids=["shares", "contrast"])
@pytest.mark.parametrize("relation", [0.0, 0.03])
@pytest.mark.parametrize("goal", GOALS)
def test_strata_are_bought_from_by_sums_as_in_memory(goal: str, relation: float, weights: dict[str, float]) -> None:
    stated = market(GOALS[goal], weights=weights, max_correlation=relation, bounds=(-0.5, 0.9), variance=0.2)
    priced, outcome = same(stated, Uniform(1, 2).sample(N, rng=RNG), labels(), **SUMMED)
    assert priced.summary.method == "summed"
    np.testing.assert_allclose(
        priced.frame.sort_by("id")["privacy_loss"].to_numpy(), outcome.privacy_loss, rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("kind_name", ["polars", "polars_lazy", "parquet", "duckdb", "spark"])
def test_every_engine_buys_from_strata_as_memory_does(
    kind_name: str, request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    kind = make_kind(kind_name, request, tmp_path)
    bids, where = Uniform(1, 2).sample(N, rng=RNG), labels()
    same(market(Price(3000), weights=CONTRAST), bids, where, kind=kind, **SUMMED)
    if kind_name != "spark":  # a Spark job takes a second or more
        same(market(Accuracy(0.05)), bids, where, kind=kind)
        same(market(Price(3000), setting="local"), bids, where, kind=kind)


@pytest.mark.parametrize("cap", [None, 1.5])
def test_a_local_accuracy_is_divided_among_strata_as_in_memory(cap: float | None) -> None:
    bids, where = Uniform(1, 2).sample(24, rng=RNG), labels(24)
    same(market(Accuracy(0.5), setting="local", max_privacy_loss=cap), bids, where)


@pytest.mark.parametrize("goal", GOALS)
def test_two_passes_are_enough_and_a_third_places_finer_buckets(goal: str) -> None:
    bids, where = Uniform(1, 2).sample(20_000, rng=RNG), labels(20_000)
    for window, passes in ((1 << 17, 2), (10, 3)):
        priced, _ = same(market(GOALS[goal]), bids, where, gather=100, window=window)
        assert priced.summary.passes == passes
        assert priced.summary.method == "summed"


@pytest.mark.parametrize("goal", GOALS)
def test_few_people_or_a_column_of_variances_are_priced_one_by_one_as_in_memory(goal: str) -> None:
    bids, where = Uniform(1, 2).sample(600, rng=RNG), labels(600)
    priced, _ = same(market(GOALS[goal], weights=CONTRAST, max_correlation=0.02), bids, where)
    assert priced.summary.method == "gathered"
    same(market(GOALS[goal]), bids, where, spread=RNG.uniform(0.05, 0.2, 600), variance="spread", gather=10)


def test_of_many_only_those_below_the_levels_of_their_strata_are_taken_to_the_driver() -> None:
    bids, where = Uniform(1, 2).sample(N, rng=RNG), labels()
    bids[where == "west"] += 1.0
    stated = market(Price(300), prior=Uniform(1, 3))
    priced, outcome = same(stated, bids, where, gather=N // 2)
    assert priced.summary.method == "gathered"
    assert outcome.active <= priced._kernel.keys.size < N // 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("goal", GOALS)
def test_equal_bids_and_levels_that_jump_are_priced_as_in_memory(goal: str) -> None:
    prior = Empirical([1, 1.5, 2, 3, 3, 4])
    same(market(GOALS[goal], prior=prior), prior.sample(N, rng=RNG), labels(), **SUMMED)
    same(market(GOALS[goal]), np.repeat(np.linspace(1, 2, 50), 50), labels(), **SUMMED)


@pytest.mark.parametrize("goal", ["price", "budget"])
def test_groups_have_a_curve_of_their_own_in_every_stratum(goal: str) -> None:
    priors: dict[str, Prior] = {"young": Uniform(1, 2), "old": Uniform(0.5, 4)}
    who = RNG.choice(list(priors), size=N)
    bids = np.where(who == "young", RNG.uniform(1, 2, N), RNG.uniform(0.5, 4, N))
    same(market(GOALS[goal], prior=Grouped(priors, [])), bids, labels(), who=who, group="who", **SUMMED)


@pytest.mark.parametrize("goal", [Price(1e6), Accuracy(0.0142), Budget(3000)], ids=lambda goal: goal.kind)
def test_a_goal_that_takes_everybody_is_reached_by_sums(goal: Goal) -> None:
    priced, _ = same(market(goal), Uniform(1, 2).sample(N, rng=RNG), labels(), **SUMMED)
    assert priced.summary.method == "summed"
    assert isinstance(goal, Price) or priced.summary.active == N


def test_curves_pay_what_memory_pays_up_to_what_both_say_payments_may_be_off() -> None:
    bids, where = Exponential(2).sample(6000, rng=RNG), labels(6000)
    stated = market(Budget(1.0), prior=Exponential(2))
    priced = price(table(bids, region=where), stated, stratum="region", gather=5, window=50)
    outcome = replace(stated, strata=where).acquire(bids)
    assert priced.summary.method == "summed"
    found, off = priced.frame.sort_by("id"), 0.5 * (priced.summary.incentive_error + outcome.incentive_error)
    assert off < 1e-4 * outcome.payments.max()
    np.testing.assert_allclose(found["privacy_loss"].to_numpy(), outcome.privacy_loss, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found["payment"].to_numpy(), outcome.payments, rtol=0, atol=off)


def test_a_small_stratum_in_which_nobody_can_be_left_out_is_priced_one_by_one() -> None:
    bids, where = Uniform(1, 2).sample(N, rng=RNG), np.where(np.arange(N) < 2, "south", "east")
    weights = {"east": 1.0, "south": -1.0}
    priced, _ = same(market(Price(20.0), weights=weights), bids, where, **SUMMED)
    assert priced.summary.method == "gathered"


@pytest.mark.parametrize("relation", [0.0, 0.02])
def test_a_population_by_stratum_is_kept_in_mind(relation: float) -> None:
    roster = {"east": 2000, "south": 3000, "west": 4000}
    stated = market(Accuracy(0.05), max_correlation=relation, population=roster if relation else None)
    same(stated, Uniform(1, 2).sample(N, rng=RNG), labels(), **SUMMED)
    small = market(Accuracy(0.05), max_correlation=0.02, population={"east": 10, "south": 90, "west": 90})
    with pytest.raises(InputError, match=r"'east' has .* people and a population of 10"):
        price(table([1.5] * 90, region=np.repeat(list(SHARES), 30)), small, stratum="region")


@pytest.mark.parametrize("goal", GOALS)
def test_a_survey_of_strata_is_priced_by_sums_as_in_memory(goal: str) -> None:
    asked = {"price": Price(3000), "accuracy": Accuracy((0.4, 0.05)), "budget": Budget(50)}[goal]
    stated = market(asked, questions=(Number(name="age", bounds=(0, 10)), YesNo(name="tea")))
    priced, outcome = same(stated, Uniform(1, 2).sample(N, rng=RNG), labels(), **SUMMED)
    for ours, theirs in zip(priced.question_errors(), outcome.question_errors(), strict=True):
        assert ours.worst_mse == pytest.approx(theirs.worst_mse, rel=1e-9)


def refused(
    people: pa.Table, stated: Market, match: str, problem: type[Exception] = InputError, **options: Any
) -> None:
    with pytest.raises(problem, match=match):
        price(people, stated, **{"stratum": "region", **options})


def test_what_strata_cannot_be_joined_with_is_refused() -> None:
    people = table([1.2, 1.4, 1.6, 1.8], region=["east", "south", "west", "east"], most=[1.0] * 4)
    stated = market(Price(30))
    refused(people, stated, "stratum must name the column", stratum=None)
    refused(people, Market(prior=Uniform(1, 2), goal=Price(30)), "stratum must name the column")
    refused(people, replace(stated, strata=["east", "south", "west", "east"]), "strata of the market must be empty")
    refused(people, stated, "There is no column 'where'", stratum="where")
    refused(people, market(Budget(30)), "cap must not name a column", cap="most")
    refused(people, market(Budget(30)), "population must be stated", limit="most")
    refused(people, market(Accuracy(0.01)), "in their strata", Unreachable)


def test_a_stratum_with_nobody_in_it_or_nobody_to_buy_from_is_refused_by_name() -> None:
    stated = market(Price(30))
    refused(table([1.2, 1.4], region=["east", "south"]), stated, "nobody is in 'west'")
    people = table([1.2, 1.4, 9.0], region=["east", "south", "west"])
    refused(people, stated, "stratum 'west' cannot be estimated", NobodyToBuyFrom)


def test_labels_that_are_missing_or_not_named_are_refused_by_row_or_left_out() -> None:
    where = ["east", None, "south", "north", "west", "east"]
    people = pa.table({"id": range(6), "bid": [1.1, 1.2, 1.3, 1.4, 1.5, 1.6], "region": where})
    refused(people, market(Price(30)), "2 in no known stratum.*row 1 is in no known stratum; row 3 is", BidError)
    priced = price(people, market(Price(30)), stratum="region", on_bad_rows="drop")
    kept = replace(market(Price(30)), strata=["east", "south", "west", "east"]).acquire([1.1, 1.3, 1.5, 1.6])
    np.testing.assert_allclose(priced.frame["payment"].to_numpy(), kept.payments, rtol=1e-12)


# -- the release -------------------------------------------------------------------------------------------------------

BIDS, WHERE = Uniform(1, 2).sample(900, rng=np.random.default_rng(81)), np.repeat(list(SHARES), 300)
DATA = np.random.default_rng(82).uniform(0, 1, 900) * np.repeat([1.0, 0.7, 0.4], 300)
LARGE = market(Price(3e6), weights=CONTRAST)


def people(data: Any = DATA, **columns: Any) -> pa.Table:
    return table(BIDS, region=WHERE, datum=data, **columns)


@pytest.mark.parametrize("kind_name", ["polars", "duckdb"])
@pytest.mark.parametrize("options", [{}, SUMMED], ids=["one by one", "summed"])
def test_an_engine_draws_from_the_integers_that_memory_draws_from(
    kind_name: str, options: Any, request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    kind = make_kind(kind_name, request, tmp_path)
    priced = price(kind.make(people()), LARGE, stratum="region", **options)
    found = prepared_sums(priced, data_columns(priced, "datum"))
    plan, sums = found.plan, found.sums
    outcome = replace(LARGE, strata=WHERE).acquire(BIDS)
    memory = weigh(plan_of(outcome), outcome.privacy_loss > 0.0)
    codes = np.repeat(np.arange(3), 300)
    for code, one in enumerate(sums.strata):
        weights = memory.weights[codes == code]
        assert one.weight == pytest.approx(int(weights.sum()), rel=1e-12)
        assert one.delivered == int(np.count_nonzero(weights))
        mean = np.average(DATA[codes == code], weights=weights)
        assert one.cells[0][0] / one.weight / 2**40 == pytest.approx(mean, rel=1e-9)
    assert plan.losses == pytest.approx(np.bincount(codes, outcome.privacy_loss).tolist(), rel=1e-12)


@pytest.mark.parametrize("relation", [0.0, 0.02])
def test_a_release_is_near_the_combination_and_says_how_near_as_memory_does(relation: float, tmp_path: Any) -> None:
    stated = replace(LARGE, max_correlation=relation)
    found = release(
        price(people(), stated, stratum="region", **SUMMED), "datum", question="mean", ledger=tmp_path / "engine"
    )
    outcome = replace(stated, strata=WHERE).acquire(BIDS)
    memory = drawn_in_memory(plan_of(outcome), DATA).release
    truth = sum(weight * DATA[name == WHERE].mean() for name, weight in CONTRAST.items())
    for one in (found, memory):
        assert abs(one.one_estimate - truth) < 6.0 * one.planned_error.worst_mse**0.5
    for name in ("mse", "worst_mse", "largest_bias"):
        for which in ("error", "planned_error"):
            ours, theirs = (getattr(getattr(one, which), name) for one in (found, memory))
            assert ours == pytest.approx(theirs, rel=1e-6)
    assert found.strata == memory.strata


def test_memory_and_engine_know_each_others_claims_and_other_strata_are_another_question(tmp_path: Any) -> None:
    outcome = replace(LARGE, strata=WHERE).acquire(BIDS)
    ids = np.arange(900) * 7 + 3
    first = release_in_memory(outcome, DATA, question="mean", ledger=tmp_path, ids=[str(one) for one in ids])
    again = release(price(people(), LARGE, stratum="region"), "datum", question="mean", ledger=tmp_path)
    assert again.one_estimate == first.one_estimate
    whole, moved = people(), np.random.default_rng(83).permutation(WHERE)
    other = whole.set_column(whole.column_names.index("region"), "region", pa.array(moved))
    with pytest.raises(AlreadyReleased):
        release(price(other, LARGE, stratum="region"), "datum", question="mean", ledger=tmp_path)


def test_a_stratum_of_which_nobody_delivers_is_named(tmp_path: Any) -> None:
    data = np.where(WHERE == "west", np.nan, DATA)
    with pytest.raises(NothingDelivered, match="stratum 'west'"):
        release(price(people(data), LARGE, stratum="region"), "datum", question="mean", ledger=tmp_path)


def test_everybody_is_taken_to_the_driver_with_her_stratum() -> None:
    found = everybody(count(people(), LARGE, {"bid": "bid", "id": "id", "stratum": "region"}))
    assert found.strata is not None
    named = dict(zip(found.ids.to_pylist(), found.strata, strict=True))
    assert [named[one] for one in (np.arange(900) * 7 + 3).tolist()] == WHERE.tolist()


@pytest.mark.parametrize("stated", ["max_privacy_loss", "cap", "limit"])
@pytest.mark.parametrize("goal", ["price", "accuracy"])
def test_caps_and_limits_in_strata_are_bought_as_in_memory(goal: str, stated: str) -> None:
    rng = np.random.default_rng(85)
    where = rng.choice(list(SHARES), size=300, p=[0.3, 0.3, 0.4])
    bids, most = Uniform(1, 2).sample(300, rng=rng), rng.uniform(0.02, 0.2, 300)
    stated_goal = {"price": Price(3000), "accuracy": Accuracy(0.2)}[goal]
    ours, column, told = market(stated_goal), {} if stated == "max_privacy_loss" else {stated: "most"}, {}
    caps = {} if stated == "limit" else {"max_privacy_loss": 0.05 if stated == "max_privacy_loss" else most}
    if stated == "limit":
        told = {"limits": most}
    outcome = replace(ours, strata=where, **caps).acquire(bids, **told)
    if stated == "max_privacy_loss":
        ours = replace(ours, max_privacy_loss=0.05)
    people = table(bids, region=where, most=most)
    priced = price(people, ours, stratum="region", **column)
    assert_same(priced.frame.sort_by("id"), priced, outcome)
    assert (outcome.privacy_loss == (0.05 if stated == "max_privacy_loss" else most)).sum() > 5, "nobody is at a cap"
    # what people gave is combined in proportion
    plan = sum_plan(priced)
    assert plan.losses == pytest.approx([outcome.privacy_loss[where == name].sum() for name in SHARES], rel=1e-12)


@pytest.mark.parametrize("goal", [HardBudget(8), HardBudget(400), HardBudget(30, 0.01)], ids=str)
def test_a_hard_budget_is_shared_out_among_strata_to_the_last_bit_as_in_memory(goal: HardBudget) -> None:
    stated = replace(LARGE, goal=goal)
    outcome = replace(stated, strata=WHERE).acquire(BIDS)
    priced = price(people(), stated, stratum="region", gather=10)
    assert_same(priced.frame.sort_by("id"), priced, outcome)
    assert outcome.total_payment <= goal.amount
    plan = plan_of(outcome)
    there = prepared_sums(priced, data_columns(priced, "datum"))
    here = weigh(plan, ~np.isnan(DATA)).prepare(DATA[:, np.newaxis])
    assert (there.totals, there.plan.exponent) == (here.totals, here.plan.exponent)
    assert there.planned_error.mse == pytest.approx(here.planned_error.mse, rel=1e-9)


def test_local_messages_are_combined_by_stratum_as_in_memory(tmp_path: Any) -> None:
    stated = replace(LARGE, setting="local", goal=Price(3000))
    outcome = replace(stated, strata=WHERE).acquire(BIDS)
    sent = [
        None if loss == 0.0 else privatize(float(datum), float(loss), (0, 1)).to_json()
        for datum, loss in zip(DATA, outcome.privacy_loss, strict=True)
    ]
    found = release(price(people(sent), stated, stratum="region"), "datum", question="mean", ledger=tmp_path / "engine")
    memory = drawn_in_memory(plan_of(outcome), sent).release
    assert found.one_estimate == pytest.approx(memory.one_estimate, rel=1e-9)
    assert found.error.mse == pytest.approx(memory.error.mse, rel=1e-9)
    assert found.strata == memory.strata


def test_a_survey_of_strata_is_released_from_sums(tmp_path: Any) -> None:
    asked = (Number(name="age", bounds=(0, 10)), YesNo(name="tea"))
    stated = market(Price(3e6), weights=CONTRAST, questions=asked, max_correlation=0.01)
    tea = np.random.default_rng(84).integers(0, 2, 900)
    whole = table(BIDS, region=WHERE, age=10 * DATA, tea=tea)
    found = release(price(whole, stated, stratum="region", **SUMMED), question="mean", ledger=tmp_path)
    outcome = replace(stated, strata=WHERE).acquire(BIDS)
    for answer, error, data in zip(found.answers, outcome.question_errors(), (10 * DATA, tea), strict=True):
        truth = sum(weight * data[name == WHERE].mean() for name, weight in CONTRAST.items())
        assert abs(answer.values[0] - truth) < 6.0 * error.worst_standard_error
        assert answer.planned_error.worst_mse == pytest.approx(error.worst_standard_error**2, rel=1e-3)


def test_more_people_than_the_driver_takes_are_refused_where_sums_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.engine.pricing.MOST", 100)
    where = np.where(np.arange(300) < 1, "south", "east")  # one person for a whole stratum
    stated, people = (
        market(Budget(100), weights={"east": 1.0, "south": -1.0}),
        table(RNG.uniform(1, 2, 300), region=where),
    )
    refused(people, stated, "300 people could matter, more than the 100 that can be priced one by one", MarketError)
    spread = table(RNG.uniform(1, 2, 300), region=labels(300), spread=np.full(300, 0.1))
    refused(spread, market(Price(9e9)), "state one variance for all", MarketError, variance="spread")
