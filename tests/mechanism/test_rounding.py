"""What rounding payments up takes of a budget is known before anybody bids, kept, and refused if it is too much."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hushbid import Budget, HardBudget, Market
from hushbid.cli import main
from hushbid.common.money import rounded_up
from hushbid.engine import price
from hushbid.errors import InputError, LimitExceeded
from hushbid.mechanism.rounding import Kind, reserve_for
from hushbid.priors import Exponential, Grouped, Histogram, LogNormal, Prior, Uniform
from hushbid.record import Record
from hushbid.verification import verify
from tests.extent import each

CENT = 0.01


def paid(market: Market, prior: Prior, people: int, campaigns: int) -> tuple[float, float]:
    """The mean of all payments, rounded up and not, over some campaigns."""
    rng = np.random.default_rng(7)
    found = [market.acquire(prior.sample(people, rng=rng), accept_rounding=True).payments for _ in range(campaigns)]
    return (
        float(np.mean([rounded_up(one, 2).sum() * CENT for one in found])),
        float(np.mean([one.sum() for one in found])),
    )


@each("prior", [LogNormal(0.0, 0.5), Uniform(1, 2), Exponential(1.0)])
@each(("people", "budget"), [(200, 20.0), (2000, 20.0)])
def test_the_reserve_is_what_rounding_adds_and_the_budget_is_kept_on_average(
    prior: Prior, people: int, budget: float
) -> None:
    market = Market(prior=prior, goal=Budget(budget, coin=CENT))
    rounded, exact = paid(market, prior, people, 6)
    reserve = market.for_people(people).goal.reserve  # type: ignore[attr-defined]
    assert rounded - exact == pytest.approx(reserve, rel=0.1)
    assert rounded == pytest.approx(budget, rel=0.06)


def test_payments_much_smaller_than_a_coin_are_refused_unless_accepted() -> None:
    market, bids = Market(prior=LogNormal(0.0, 0.5), goal=Budget(5.0, coin=CENT)), np.full(1000, 1.0)
    with pytest.raises(LimitExceeded, match="accept_rounding"):
        market.acquire(bids)
    accepted = market.acquire(bids, accept_rounding=True)
    assert isinstance(accepted.market.goal, Budget)
    assert accepted.market.goal.reserve is not None
    assert accepted.market.goal.reserve > 0.05 * 5.0
    assert f"{accepted.market.goal.reserve:.6g} are kept for rounding" in accepted.summary()


def test_the_reserve_depends_on_the_roster_and_not_on_the_bids() -> None:
    market = Market(prior=Uniform(1, 2), goal=Budget(100, coin=CENT))
    one, other = (market.acquire(bids).market.goal for bids in (np.full(50, 1.0), np.linspace(1.2, 9.0, 50)))
    assert one == other
    asked = Market(prior=Uniform(1, 2), goal=Budget(100, coin=CENT), population=500)
    assert asked.acquire(np.full(50, 1.0)).market.goal == market.for_people(500).goal


@each("people", [1, 10**3, 10**6, 10**9, 10**12])
@each("cap", [math.inf, 1e-3])
def test_the_reserve_is_less_than_the_budget_whatever_the_number_of_people(people: int, cap: float) -> None:
    found = reserve_for(Budget(100, coin=CENT), [Kind(LogNormal(0, 2), people)], variance=0.25, cap=cap)
    assert 0.0 < found < 100.0


HALVES = Grouped({"a": Uniform(1, 2), "b": LogNormal(0.0, 0.5)}, ["a", "b"] * 40)


@pytest.mark.parametrize(
    "market",
    [
        Market(prior=LogNormal(0.0, 0.5), goal=Budget(20, coin=CENT)),
        Market(prior=Uniform(1, 2), goal=Budget(20, coin=CENT), max_privacy_loss=0.2, population=200),
        Market(prior=Histogram([1.0, 1.5, 2.0, 4.0], [0.3, 0.5, 0.2]), goal=Budget(20, coin=CENT)),
        Market(prior=HALVES, goal=Budget(20, coin=CENT), max_correlation=0.3),
        Market(
            prior=HALVES,
            goal=Budget(20, coin=CENT),
            strata=["n", "s", "s", "s"] * 20,
            shares={"n": 0.5, "s": 0.5},
        ),
    ],
)
def test_verification_computes_the_reserve_again_and_finds_another_one(market: Market) -> None:
    bids = np.random.default_rng(1).uniform(1.0, 2.0, 80)
    record = Record.of(market.acquire(bids), currency="EUR")
    checks = {check.name: check.status for check in verify(record).checks}
    assert checks["rounding"] == "holds", checks
    assert "fails" not in checks.values()
    goal = record.outcome.market.goal
    forged = Market.from_dict(
        record.outcome.market.to_dict() | {"goal": Budget(20, coin=CENT, reserve=goal.reserve * 1.5).to_dict()}
    )
    other = verify(Record.of(forged.acquire(bids), currency="EUR"))
    assert {check.name for check in other.checks if check.status == "fails"} == {"rounding"}


@pytest.mark.parametrize("goal", [HardBudget(20), Budget(20), HardBudget(20, coin=0.001)])
def test_a_budget_without_the_currencys_coin_has_no_record_in_it(goal: Budget | HardBudget) -> None:
    outcome = Market(prior=Uniform(1, 2), goal=goal).acquire(np.linspace(1, 2, 200))
    with pytest.raises(InputError, match="coin"):
        Record.of(outcome, currency="EUR")
    assert Record.of(outcome).money is None


def test_an_engine_keeps_the_same_reserve_as_memory_and_refuses_the_same() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    priors, labels = {"a": Uniform(1, 2), "b": LogNormal(0.0, 0.5)}, ["a", "b", "b"] * 20
    bids = np.random.default_rng(2).uniform(1.0, 2.0, 60)
    people = pyarrow.table({"id": [str(row) for row in range(60)], "bid": bids, "group": labels})
    here = Market(prior=Grouped(priors, labels), goal=Budget(20, coin=CENT)).acquire(bids)
    market = Market(prior=Grouped(priors, []), goal=Budget(20, coin=CENT))
    priced = price(people, market, group="group")
    assert priced.market.goal == here.market.goal
    np.testing.assert_allclose(priced.frame["payment"].to_numpy(), here.payments, rtol=1e-6)
    poor = Market(prior=Grouped(priors, []), goal=Budget(60, coin=1.0))
    with pytest.raises(LimitExceeded, match="accept_rounding"):
        price(people, poor, group="group")
    assert price(people, poor, group="group", accept_rounding=True).market.goal.reserve > 3.0


def test_the_command_refuses_what_rounding_would_take_and_says_what_is_kept(tmp_path: Path) -> None:
    bids = tmp_path / "bids.csv"
    bids.write_text("id,bid\n" + "".join(f"p{row},{1 + row / 500}\n" for row in range(400)))
    options = ["price", str(bids), "--prior", "uniform:1,2", "--currency", "JPY", "--json"]
    refused = CliRunner().invoke(main, [*options, "--budget", "200", "--out", str(tmp_path / "a.csv")])
    assert refused.exit_code == 6
    assert not (tmp_path / "a.csv").exists()
    taken = CliRunner().invoke(
        main, [*options, "--budget", "200", "--accept-rounding", "--out", str(tmp_path / "a.csv")]
    )
    facts = json.loads(taken.stdout)
    assert facts["total_payment_minor"] == pytest.approx(200, rel=0.15)
    assert facts["rounding_reserve"] > 10.0
