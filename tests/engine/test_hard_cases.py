"""Populations that are hard to price by sums: jumps, ties, gaps, heavy tails, nothing and everything."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, Price
from hushbid.allocation.histogram import MOST_PEOPLE, OFFSET_BITS
from hushbid.allocation.windows import Listing, Refine, Window
from hushbid.engine import price
from hushbid.engine.passes import Census, CensusKernel
from hushbid.engine.people import People
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.mechanism.summed import locate
from hushbid.priors import Empirical, Exponential, Grouped, LogNormal, Mixture, Prior, Uniform
from tests.engine.test_price import SUMMED, assert_same, table
from tests.extent import each

RNG = np.random.default_rng(30)


def check(market: Market, bids: Any, *, method: str = "summed", **options: Any) -> Any:
    """Price by sums, and hold it against memory."""
    priced = price(table(bids), market, **{**SUMMED, **options})
    assert priced.summary.method == method
    assert_same(priced.frame.sort_by("id"), priced, market.acquire(bids))
    return priced


CORNERS: dict[str, Prior] = {
    "steps": Empirical([0.1, 1.1, 2.1, 2.1, 3.1, 4.1, 6.1, 8.1]),
    "a density that drops": Mixture([Uniform(1, 1.4), Uniform(1, 3)], [0.5, 0.5]),
    "a density that rises": Mixture([Uniform(1, 3), Uniform(1.4, 3)], [0.5, 0.5]),
}


@each("outside", ["own_data", "estimate"])
@each("name", CORNERS)
def test_bids_exactly_where_the_virtual_cost_jumps_are_priced_as_in_memory(name: str, outside: Any) -> None:
    prior = CORNERS[name]
    bids = np.round(prior.sample(3000, rng=RNG), 1)
    bids[:300] = [1.4, 1.1, 2.1] * 100
    check(
        Market(prior=prior, variance=0.25, outside_option=outside, tolerance=1e-8, buyer_weight=1.0, user_weight=1.0),
        bids,
    )


@pytest.mark.parametrize("cap", [1e-4, 3e-3, 0.02])
def test_a_cap_that_limits_few_many_or_all_is_priced_one_by_one_as_in_memory(cap: float) -> None:
    bids = Uniform(1, 2).sample(2000, rng=RNG)
    market = Market(prior=Uniform(1, 2), variance=0.25, max_privacy_loss=cap, buyer_weight=1.0, user_weight=1.0)
    priced = check(market, bids, method="gathered", gather=10)
    assert priced.summary.largest_privacy_loss <= cap


@pytest.mark.parametrize("goal", [Price(3000.0), Accuracy(0.02), Budget(50.0)], ids=lambda goal: goal.kind)
def test_a_cap_that_limits_nobody_takes_no_pass_and_changes_nothing(goal: Goal) -> None:
    people = table(Uniform(1, 2).sample(5000, rng=RNG))
    market = Market(prior=Uniform(1, 2), goal=goal)
    free = price(people, market, **SUMMED)
    high = price(people, replace(market, max_privacy_loss=1.5 * free.summary.largest_privacy_loss), **SUMMED)
    assert high.summary == free.summary
    assert high.frame["payment"].to_pylist() == free.frame["payment"].to_pylist()
    low = price(people, replace(market, max_privacy_loss=1.0001 * free.summary.largest_privacy_loss), **SUMMED)
    assert low.summary.method == "gathered"  # others might lose more than that if somebody stayed away


@pytest.mark.parametrize("goal", [Price(5.0), Accuracy(0.5), Budget(5.0)], ids=lambda goal: str(goal.kind))
def test_a_variance_in_a_column_that_is_next_to_nothing_is_priced_as_in_memory(goal: Goal) -> None:
    bids, spread = np.array([1.5, 1.2, 1.3]), np.array([1e-300, 0.25, 0.25])
    market = Market(prior=Uniform(1, 2), goal=goal)
    priced = price(table(bids, spread=spread), market, variance="spread")
    assert_same(priced.frame.sort_by("id"), priced, replace(market, variance=spread).acquire(bids))


def test_an_error_weight_and_a_variance_whose_product_is_ordinary_are_priced_as_in_memory() -> None:
    market = Market(prior=Uniform(3e-279, 6e-278), variance=1e-225, buyer_weight=1e60, user_weight=0.0)
    bids = np.linspace(4e-279, 5e-278, 30)
    outcome = market.acquire(bids)
    assert price(table(bids), market).summary.mse == pytest.approx(outcome.mse, rel=1e-12, abs=0.0)


CAP, ESTIMATE = {"max_privacy_loss": 0.02}, {"outside_option": "estimate"}
TOGETHER: dict[str, tuple[dict[str, Any], str, str]] = {
    "cap, estimate": ({**CAP, **ESTIMATE}, "", "gathered"),
    "cap, groups": (CAP, "groups", "gathered"),
    "estimate, groups": (ESTIMATE, "groups", "summed"),
    "cap, variances": (CAP, "variances", "gathered"),
    "estimate, variances": (ESTIMATE, "variances", "gathered"),
    "cap, estimate, groups, variances": ({**CAP, **ESTIMATE}, "groups variances", "gathered"),
    "local, cap": ({"setting": "local", "max_privacy_loss": 3.0}, "", "gathered"),
    "local, cap, estimate, groups": ({"setting": "local", "max_privacy_loss": 3.0, **ESTIMATE}, "groups", "gathered"),
}


@each("name", TOGETHER)
def test_what_a_market_can_ask_for_is_priced_together_as_in_memory(name: str) -> None:
    terms, besides, method = TOGETHER[name]
    rng, n = np.random.default_rng(32), 3000 if method == "summed" else 600
    labels, spread = rng.choice(["young", "old"], size=n), rng.uniform(0.1, 0.3, n)
    priors: dict[str, Prior] = {"young": Uniform(1, 2), "old": Uniform(0.5, 4)}
    bids, options = Uniform(1, 2).sample(n, rng=rng), {}
    here, there = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0, **terms), {}
    if "groups" in besides:
        here, there["prior"], options["group"] = (
            replace(here, prior=Grouped(priors, [])),
            Grouped(priors, labels),
            "who",
        )
    if "variances" in besides:
        there["variance"], options["variance"] = spread, "spread"
    people = table(bids, who=labels, spread=spread)
    priced = price(people, here, **options, **(SUMMED if method == "summed" else {}))
    assert priced.summary.method == method
    assert_same(priced.frame.sort_by("id"), priced, replace(here, **there).acquire(bids))


def test_more_people_than_the_integers_have_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_PEOPLE * (2**OFFSET_BITS - 1) ** 2 < 2**63
    monkeypatch.setattr("hushbid.engine.checks.MOST_PEOPLE", 10)
    with pytest.raises(InputError, match="fewer than 10 rows, got 10"):
        price(table([1.5] * 10), Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0))


def test_people_above_the_support_are_idle_whatever_they_bid() -> None:
    bids = Uniform(1, 2).sample(5000, rng=RNG)
    bids[::3], bids[::7] = 2.5, math.inf
    check(
        Market(prior=Uniform(1, 2), variance=0.25, outside_option="estimate", buyer_weight=1.0, user_weight=1.0),
        bids,
    )


def test_heavy_tails_need_no_tuning() -> None:
    prior = LogNormal(0, 3)
    priced = check(
        Market(prior=prior, variance=0.25, tolerance=1e-7, buyer_weight=1.0, user_weight=1.0),
        prior.sample(400, rng=RNG),
        gather=5,
    )
    assert priced.summary.passes <= 3


def test_people_who_name_no_price_are_priced_one_by_one_and_as_in_memory() -> None:
    bids = np.concatenate([np.zeros(40), Uniform(0, 1).sample(1000, rng=RNG)])
    for weight in (1e-3, 1.0, 1e3):
        for cap in (None, 0.5):
            market = Market(prior=Uniform(0, 1), user_weight=0, buyer_weight=weight, max_privacy_loss=cap)
            priced = price(table(bids), market, **SUMMED)
            outcome = market.acquire(bids)
            found = priced.frame.sort_by("id")
            assert priced.summary.objective == pytest.approx(outcome.objective, rel=1e-12)
            assert found["privacy_loss"].to_numpy() == pytest.approx(outcome.privacy_loss, rel=1e-9)
            assert found["payment"].to_numpy() == pytest.approx(outcome.payments, rel=1e-9, abs=1e-12)


def test_equal_bids_by_the_thousand_meet_in_one_entry_of_the_window() -> None:
    market = Market(prior=Empirical([1, 2, 3]), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    bids = np.repeat([1.0, 2.0, 3.0], 30_000)
    priced = check(market, bids, window=0)
    assert priced.summary.passes <= 3
    costs = np.asarray(market.prior.virtual_cost(bids))
    window = sum((Listing(0.0, 0.0, 100.0).of(costs) for _ in range(5)), Window.nobody()).settled()
    assert window.people.tolist() == [150_000] * 3


def test_two_far_apart_candidates_are_told_apart_by_finer_buckets_where_they_are_needed() -> None:
    prior = Mixture([Uniform(0.01, 0.02), Uniform(5, 6)], [0.0005, 0.9995])
    bids = prior.sample(10**6, rng=np.random.default_rng(3))
    market = Market(prior=prior, variance=0.25, buyer_weight=1.0, user_weight=1.0)
    costs = np.asarray(prior.virtual_cost(bids))
    who = People(bid="bid", id=None, group=None, variance=None, priors={"": prior}, tie_seed=b"")
    batch = pa.RecordBatch.from_pydict({"bid": bids})
    [coarse] = locate(market.for_people(costs.size), (Census() + CensusKernel(who)(batch, None)).parts)
    assert coarse.found.people > 50_000
    assert len(coarse.found.parts) > 1
    finer = Refine.over(coarse.intervals[0], buckets=1 << 12)
    found = finer.of(costs)
    assert sum(sums.count for sums in found.below) + found.histogram.people == (costs < finer.parts[-1][1]).sum()
    priced = price(pa.table({"id": np.arange(bids.size), "bid": bids}), market, gather=100, window=100)
    assert (priced.summary.method, priced.summary.passes) == ("summed", 3)
    assert priced.summary.objective == pytest.approx(market.allocation(costs).objective, rel=1e-12)


def test_missing_and_repeated_ids_are_refused_where_identity_decides() -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, setting="local", user_weight=0, buyer_weight=300.0)
    ids = pa.array([None, None, *range(400)])
    people = pa.table({"id": ids, "bid": np.full(402, 1.25)})
    with pytest.raises(InputError, match="an id is missing or repeated"):
        price(people, market)
    with pytest.raises(InputError, match="id must name a column"):
        price(people.select(["bid"]), market)


def test_a_relation_of_another_connection_is_priced_there() -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    bids = Uniform(1, 2).sample(300, rng=RNG)
    with duckdb.connect() as other:
        relation = other.from_arrow(table(bids))
        with pytest.raises(InputError, match="another connection"):
            price(relation, market)
        priced = price(relation, market, connection=other)
        assert_same(priced.frame.to_arrow_table().sort_by("id"), priced, market.acquire(bids))


@pytest.mark.parametrize("engine", ["auto", "memory", "polars", "duckdb"])
def test_a_folder_of_partitions_is_one_table_with_their_column(engine: str, tmp_path: Path) -> None:
    priors: dict[str, Prior] = {"young": Uniform(1, 2), "old": Exponential(1)}
    labels = np.array(["young", "old"] * 300)
    bids = np.where(labels == "young", Uniform(1, 2).sample(600, rng=RNG), RNG.exponential(size=600))
    for name in priors:
        part = tmp_path / "people" / f"who={name}"
        part.mkdir(parents=True)
        rows = np.flatnonzero(labels == name)
        pq.write_table(pa.table({"id": rows, "bid": bids[rows]}), part / "rows.parquet")
    (tmp_path / "people" / "_SUCCESS").touch()
    market = Market(prior=Grouped(priors, []), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    priced = price(tmp_path / "people", market, group="who", engine=engine)
    priced.write_parquet(tmp_path / "out.parquet")
    expected = Market(prior=Grouped(priors, labels), variance=0.25, buyer_weight=1.0, user_weight=1.0).acquire(bids)
    assert_same(pq.read_table(tmp_path / "out.parquet").sort_by("id"), priced, expected)


@pytest.mark.parametrize("engine", ["auto", "memory", "polars", "duckdb"])
def test_what_is_no_table_is_refused_alike(engine: str, tmp_path: Path) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    (tmp_path / "no.parquet").write_text("id,bid\n1,1.5\n")
    for name, words in (("none.parquet", "no file or folder"), ("no.parquet", "must be a Parquet file")):
        with pytest.raises(InputError, match=words):
            price(tmp_path / name, market, engine=engine)
    with pytest.raises(InputError, match="must be 'spark'"):
        price("s3a://bucket/people", market, engine=engine)
    texts = pa.table({"id": [1, 2], "bid": ["1.5", "much"]})
    pq.write_table(texts, tmp_path / "texts.parquet")
    with pytest.raises(InputError, match="Column 'bid' must hold numbers"):
        price(tmp_path / "texts.parquet", market, engine=engine)
