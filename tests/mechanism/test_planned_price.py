"""A budget on average: the price is planned from public facts, met on average, and never from bids."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushbid import Budget, Exponential, Gamma, LogNormal, Market, Price, Truncated, Uniform, YesNo, engine
from hushbid.allocation import PlannedPrice, allocate, goal_from_dict, tie_keys
from hushbid.common.arrays import FloatArray
from hushbid.errors import InputError
from hushbid.estimation import Strata
from hushbid.mechanism.market import Outcome
from hushbid.mechanism.planned_price import Roster, plan_for, rounded_down
from hushbid.priors import Prior
from hushbid.record import Record
from hushbid.verification import verify
from hushbid.verification.verifying import findings
from tests.extent import ALL_CASES

STRATA: dict[str, Any] = {"strata": list("aabbab"), "shares": {"a": 0.4, "b": 0.6}, "max_privacy_loss": 1.2}
BIDS = np.array([1.1, 1.3, 1.6, 1.2, 1.5, 1.25])
PRIORS: list[Prior] = [
    Uniform(1, 2),
    Truncated(LogNormal(0, 0.7), 0.1, 10),
    Truncated(Exponential(1.0), 0.05, 5),
    Gamma(3, 0.5),
    Uniform(0.5, 4),
]


def panel(**changes: Any) -> Market:
    return Market(**{"prior": Uniform(1, 2), "goal": Budget(5), "population": {"a": 4, "b": 5}, **STRATA, **changes})


@pytest.mark.parametrize("cap", [0.05, 0.8, 4.0])
def test_many_drawn_markets_cost_what_each_of_them_costs_alone(cap: float) -> None:
    weights = np.array([0.4, -0.6])
    for prior in PRIORS[:2]:
        kinds = ((0, prior, 0.2, cap, 3), (0, prior, 0.1, 2 * cap, 2), (1, prior, 0.2, cap, 4))
        roster = Roster(kinds, tuple(weights), "central")
        costs = roster.markets(12)
        variance, caps = (np.repeat([kind[place] for kind in kinds], [3, 2, 4]) for place in (2, 3))
        for price in (3.0, 200.0):
            found = roster.purchases(price, costs)
            for row, expense, count in zip(costs, found.expense, found.sellers, strict=True):
                strata = Strata(codes=np.repeat([0, 1], [5, 4]), weights=weights)
                loss = allocate(row, variance=variance, max_loss=caps, strata=strata, goal=Price(price)).privacy_loss
                assert expense == pytest.approx(float(row @ loss), rel=1e-8)
                assert abs(count - np.count_nonzero(loss)) <= 1


AVERAGED = [(prior, "central") for prior in PRIORS]
AVERAGED += [(prior, how) for how in ("local", "response") for prior in PRIORS[: 5 if ALL_CASES else 1]]


@pytest.mark.parametrize(("prior", "how"), AVERAGED, ids=str)
def test_fresh_campaigns_cost_the_budget_on_average(prior: Prior, how: str) -> None:
    """Virtual expenses, whose mean is that of payments; |z| below 4.5 with both standard errors. Seeds are fixed."""
    kinds = ((0, prior, 0.25, 1.0, 5), (1, prior, 0.25, 1.0, 7))
    roster = Roster(kinds, (0.4, 0.6), "central")
    if how != "central":
        roster = Roster(((0, prior, 0.25, math.inf, 8),), (1.0,), "local", how == "response")
    plan = plan_for(roster, 6.0)[0]
    levels = np.random.default_rng(11).random((400, roster.people))
    costs = np.asarray(prior.virtual_cost(prior.quantile(levels)))
    fresh = roster.purchases(plan.price, costs).expense
    spread = math.hypot(plan.standard_error, float(fresh.std(ddof=1)) / 20.0)
    assert plan.standard_error <= 0.06
    assert abs(float(fresh.mean()) - 6.0) < 4.5 * spread
    assert abs(float(roster.purchases(3.0 * plan.price, costs).expense.mean()) - 6.0) > 6.0 * spread


def test_payments_add_up_to_the_budget_on_average_with_strata_and_a_cap() -> None:
    prior, rng = Uniform(1, 2), np.random.default_rng(3)
    market = panel(population={"a": 3, "b": 3})
    found = market.acquire(BIDS)
    plan = found.market.goal.planned  # type: ignore[union-attr]
    paid = np.array([found.market.acquire(prior.sample(6, rng=rng)).total_payment for _ in range(60)])
    spread = math.hypot(plan.standard_error, float(paid.std(ddof=1)) / math.sqrt(paid.size))  # type: ignore[union-attr]
    assert abs(float(paid.mean()) - 5.0) < 4.5 * spread


def test_no_bid_moves_the_price_and_no_joint_misreport_gains() -> None:
    market = panel()
    limits = np.array([0.4, math.inf, 0.9, math.inf, math.inf, 0.7])
    honest = market.acquire(BIDS, limits=limits)
    for row in (0, 3):
        best = gained(honest, row, BIDS, limits)
        for bid in (1.0, 1.2, 1.45, 1.9):
            for limit in (0.2, 0.6, math.inf):
                bids, stated = BIDS.copy(), limits.copy()
                bids[row], stated[row] = bid, limit
                lie = market.acquire(bids, limits=stated)
                assert lie.market.goal == honest.market.goal
                loss = lie.privacy_loss[row]
                surplus = lie.payments[row] - BIDS[row] * loss if loss <= limits[row] * (1 + 1e-9) else -math.inf
                assert surplus <= best + 1e-7


def gained(outcome: Outcome, row: int, bids: FloatArray, limits: FloatArray) -> float:
    assert outcome.privacy_loss[row] <= limits[row] * (1 + 1e-9)
    return float(outcome.payments[row] - bids[row] * outcome.privacy_loss[row])


def test_the_roster_decides_the_price_and_those_who_bid_do_not() -> None:
    full, fewer = panel().acquire(BIDS), panel(strata=list("aab")).acquire(BIDS[:3])
    assert full.market.goal == fewer.market.goal
    larger = panel(population={"a": 40, "b": 50}).for_people(6).buyer_weight
    assert larger > 1.2 * panel().for_people(6).buyer_weight
    with pytest.raises(InputError, match="roster closed before the first bid") as problem:
        panel(population=None).acquire(BIDS)
    assert problem.value.field == "population"
    assert panel(population=None).with_roster({"a": 3, "b": 3}).population is None
    assert panel(population=None).with_roster({"a": 3, "b": 3}, closed=True).population == {"a": 3, "b": 3}


@pytest.mark.parametrize("setting", ["central", "local"])
def test_a_price_for_those_who_will_bid_is_met_by_them_and_confirmed(setting: Any) -> None:
    stated = {"strata": None, "shares": None, "max_privacy_loss": None, "population": 9} if setting == "local" else {}
    market = panel(setting=setting, expected_share=0.7, **stated)
    with pytest.raises(InputError, match="expected_share must be above 0 and at most 1, got 0"):
        replace(market, expected_share=0.0)
    assert Market.from_dict(market.to_dict()) == market
    population = market.for_people(6)
    assert population.buyer_weight < replace(market, expected_share=1.0).for_people(6).buyer_weight
    roster, rng = Roster.of(population), np.random.default_rng(4)
    costs = np.asarray(Uniform(1, 2).virtual_cost(1.0 + rng.random((800, 9))))
    costs[rng.random(costs.shape) > 0.7] = math.inf
    fresh = roster.purchases(population.buyer_weight, costs).expense
    plan = population.planned.planned  # type: ignore[union-attr]
    spread = math.hypot(plan.standard_error, float(fresh.std(ddof=1)) / math.sqrt(800.0))  # type: ignore[union-attr]
    assert abs(float(fresh.mean()) - 5.0) < 4.0 * spread
    assert checked_price(market.acquire(BIDS)) == "holds"


def test_people_who_differ_must_all_be_listed_those_who_do_not_bid_at_an_infinite_price() -> None:
    caps = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]
    with pytest.raises(InputError, match="those who do not bid with an infinite bid"):
        panel(max_privacy_loss=caps).acquire(BIDS)
    market = panel(max_privacy_loss=caps, population={"a": 3, "b": 3})
    everybody = market.acquire(BIDS)
    absent = market.acquire(np.where(np.arange(6) == 4, math.inf, BIDS))
    assert absent.privacy_loss[4] == 0.0
    assert absent.market.goal == everybody.market.goal
    # in whatever order they are listed
    order = np.array([5, 1, 0, 3, 2, 4])
    again = panel(
        max_privacy_loss=[caps[row] for row in order],
        strata=[STRATA["strata"][row] for row in order],
        population={"a": 3, "b": 3},
    ).acquire(BIDS[order])
    assert again.market.goal == everybody.market.goal


def test_limits_decide_whether_strata_and_a_budget_are_exact() -> None:
    market = panel(max_privacy_loss=None)
    assert market.acquire(BIDS).market.goal.planned is None  # type: ignore[union-attr]
    limited = market.acquire(BIDS, limits=[0.5, None, None, None, None, None])
    assert limited.market.goal.planned is not None  # type: ignore[union-attr]
    assert Outcome.from_dict(limited.to_dict()).objective == limited.objective


def test_a_budget_that_caps_leave_no_way_to_spend_buys_all_there_is() -> None:
    found = panel(goal=Budget(500), max_privacy_loss=0.3).acquire(BIDS)
    plan = found.market.goal.planned  # type: ignore[union-attr]
    assert plan.mean < 50.0  # type: ignore[union-attr]
    assert found.privacy_loss == pytest.approx(0.3, rel=0.35)
    # draws are as many as the budget asks for, not its smaller mean
    few = panel(prior=Uniform(0, 1), goal=Budget(500), max_privacy_loss=0.3, population={"a": 3, "b": 3})
    assert checked_price(few.acquire(BIDS - 1.0)) == "holds"


def test_the_price_of_a_budget_that_nearly_can_be_spent_is_one_that_is_needed() -> None:
    """Just above what all caps together cost, the mean levels off so slowly that a search may run away."""
    goals = [panel(goal=Budget(amount), max_privacy_loss=0.3).acquire(BIDS).market.goal for amount in (500, 4.7, 5.0)]
    most, near, above = (goal.planned for goal in goals)  # type: ignore[union-attr]
    assert most is not None
    assert near is not None
    assert above is not None
    assert 4.7 < most.mean < 5.0
    assert near.mean == pytest.approx(4.7, rel=1e-3)
    assert above.mean == pytest.approx(most.mean, rel=1e-5)
    assert above.price < 1e15


def test_coins_are_kept_for_rounding_and_the_outcome_says_what_was_planned() -> None:
    found = panel(goal=Budget(5, coin=0.01)).acquire(BIDS)
    goal = found.market.goal
    assert isinstance(goal, Budget)
    assert 0.02 < (goal.reserve or 0.0) < 0.05
    assert goal.planned is not None
    assert goal.planned.mean == pytest.approx(goal.available, rel=1e-3)
    assert goal_from_dict(goal.to_dict()) == goal
    assert "on average over what people may bid, by a price of" in found.summary()
    assert "(standard error" in found.summary()


def checked_price(outcome: Outcome) -> str:
    """What is found of a planned price; the checks behind it are not made."""
    return next(one.status for one in findings(Record.of(outcome)) if one.name == "planned price")


def test_a_record_is_confirmed_and_a_forged_price_is_found() -> None:
    found = panel().acquire(BIDS)
    statuses = {one.name: one.status for one in verify(Record.of(found)).checks}
    assert statuses["planned price"] == "holds"
    assert "fails" not in statuses.values()
    goal = found.market.goal
    assert isinstance(goal, Budget)
    assert goal.planned is not None
    for change in ({"price": goal.planned.price * 1.01}, {"markets": 800}):
        other = replace(goal, planned=replace(goal.planned, **change))
        assert checked_price(replace(found, market=replace(found.market, goal=other))) == "fails", change
    exact = Market(prior=Uniform(1, 2), goal=replace(goal), variance=0.25).acquire(BIDS)
    assert checked_price(exact) == "fails"


def test_engine_and_memory_plan_one_price_and_pay_the_same() -> None:
    market = Market(prior=Uniform(1, 2), goal=Budget(12), setting="local", population=5)
    bids = [1.1, 1.3, 1.6, 1.2]
    frame = pl.DataFrame({"id": ["a", "b", "c", "d"], "bid": bids})
    found = engine.price(frame, market)
    memory = market.acquire(bids, tie_key=tie_keys(["a", "b", "c", "d"]))
    assert found.market.goal == memory.market.goal
    assert found.summary.total_payment == pytest.approx(memory.total_payment, rel=1e-9)


@pytest.mark.parametrize("column", ["cap", "variance"])
def test_an_engine_plans_no_price_for_people_who_differ_by_a_column(column: str) -> None:
    frame = pl.DataFrame({"bid": BIDS, "stratum": STRATA["strata"], "own": [0.1, 0.2, 0.15, 0.2, 0.25, 0.1]})
    with pytest.raises(InputError, match="with a budget that is met on average: state one") as problem:
        engine.price(frame, panel(strata=[]), id=None, stratum="stratum", **{column: "own"})
    assert problem.value.field == column


def test_a_local_budget_is_decided_recorded_and_confirmed() -> None:
    market = Market(
        prior=Uniform(1, 1.2), goal=Budget(12), setting="local", questions=[YesNo(name="smokes")], population=4
    )
    found = market.acquire([1.1, 1.03, 1.16, 1.12])
    statuses = {one.name: one.status for one in verify(Record.of(found)).checks}
    assert statuses["planned price"] == "holds"
    assert "fails" not in statuses.values()


def test_a_price_is_rounded_down_to_four_digits() -> None:
    assert [rounded_down(one) for one in (1.23456, 999.99, 1000.0, 0.00123499)] == [1.234, 999.9, 1000.0, 0.001234]
    with pytest.raises(InputError, match="must be positive and finite"):
        PlannedPrice(0.0, 1.0, 0.1, 400)
    with pytest.raises(InputError, match="a planned price has the fields"):
        goal_from_dict({"kind": "budget", "amount": 5.0, "coin": 0.0, "reserve": 0.0, "planned": {"price": 1.0}})
