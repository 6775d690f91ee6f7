"""One body over all engines: every one decides what `Market.acquire` does."""

import errno
import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.allocation import Accuracy, Budget, tie_keys
from hushbid.allocation.problem import relative_gap
from hushbid.engine import Priced, price
from hushbid.errors import BidError, InputError, OutputExists, Unwritable
from hushbid.mechanism import Market
from hushbid.priors import Beta, Empirical, Exponential, Grouped, LogNormal, Mixture, Prior, Uniform
from tests.engine.conftest import KINDS, Kind, by_id
from tests.extent import ALL_CASES, by_turns

RNG = np.random.default_rng(6)
N = 12_000
GROUPS: dict[str, Prior] = {"young": Uniform(1, 2), "old": Uniform(0.5, 4)}


def ids(n: int) -> np.ndarray[Any, Any]:
    return np.arange(n) * 7 + 3


def table(bids: Any, **columns: Any) -> pa.Table:
    """People in a random order, with a column that pricing does not know."""
    n = len(bids)
    whole = pa.table({"id": ids(n), "bid": bids, "city": [f"c{i % 5}" for i in range(n)], **columns})
    return whole.take(pa.array(RNG.permutation(n)))


@dataclass(frozen=True)
class Case:
    """A market and a way to solve it."""

    market: Market
    options: dict[str, Any] = field(default_factory=dict)
    n: int = N


SUMMED = {"gather": 100, "window": 50}
CASES = {
    "few": Case(Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0), n=30),
    "one by one": Case(Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)),
    "uniform": Case(Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0), SUMMED),
    "from zero": Case(Market(prior=Uniform(0, 1), user_weight=0, buyer_weight=5e4, bounds=(-1, 3)), SUMMED),
    "curved": Case(
        Market(prior=Exponential(2), variance=0.2, tolerance=1e-8, buyer_weight=1.0, user_weight=1.0), SUMMED
    ),
    "steps": Case(
        Market(prior=Empirical([1, 1.5, 2, 3, 3, 4]), variance=0.25, buyer_weight=1.0, user_weight=1.0), SUMMED
    ),
    "estimate": Case(
        Market(prior=Uniform(1, 2), variance=0.25, outside_option="estimate", buyer_weight=1.0, user_weight=1.0), SUMMED
    ),
    "cap": Case(Market(prior=Uniform(1, 2), variance=0.25, max_privacy_loss=0.02, buyer_weight=1.0, user_weight=1.0)),
    "accuracy": Case(Market(prior=Uniform(1, 2), goal=Accuracy(0.03), max_correlation=0.02), SUMMED),
    "budget": Case(Market(prior=Uniform(1, 2), goal=Budget(100), bounds=(-1, 3)), SUMMED),
    "local": Case(Market(prior=Uniform(1, 2), variance=0.25, setting="local", buyer_weight=1.0, user_weight=1.0)),
    "local estimate": Case(
        Market(
            prior=Exponential(1),
            variance=0.2,
            setting="local",
            outside_option="estimate",
            buyer_weight=1.0,
            user_weight=1.0,
        )
    ),
}


@cache
def bids_of(name: str) -> np.ndarray[Any, Any]:
    return CASES[name].market.prior.sample(CASES[name].n, rng=np.random.default_rng(len(name)))


@cache
def decided(name: str) -> Any:
    """In memory, once for all engines."""
    return CASES[name].market.acquire(bids_of(name))


def assert_same(found: pa.Table, priced: Priced, outcome: Any) -> None:
    """1e-12 in the objective, 1e-9 in losses, and payments as closely as both state."""
    assert priced.summary.active == outcome.active
    assert priced.summary.objective == pytest.approx(outcome.objective, rel=1e-12)
    assert priced.summary.mse == pytest.approx(outcome.mse, rel=1e-12)
    assert priced.summary.worst_mse == pytest.approx(outcome.worst_mse, rel=1e-12)
    for name, expected in (
        ("privacy_loss", outcome.privacy_loss),
        ("weight", outcome.weights),
    ):
        np.testing.assert_allclose(
            found[name].to_numpy(), expected, rtol=0, atol=1e-9 * np.abs(expected).max(), err_msg=name
        )
    largest = np.abs(outcome.payments).max()
    stated = 0.5 * (priced.summary.incentive_error + outcome.incentive_error) + 1e-12 * largest
    stated *= 1.25  # the error of a curve is the largest that was seen where it was checked
    np.testing.assert_allclose(found["payment"].to_numpy(), outcome.payments, rtol=0, atol=min(stated, 1e-8 * largest))
    assert priced.total_payment() == pytest.approx(outcome.total_payment, rel=1e-9)


ON_SPARK = ("uniform", "accuracy", "local estimate")
"""A Spark job takes a second or more: one case per way to price is enough there."""

PAIRS = [
    (kind, name)
    for turn, kind in enumerate(KINDS)
    for place, name in enumerate(CASES)
    if ALL_CASES or (name in ON_SPARK if kind == "spark" else kind == "arrow" or place % 3 == turn % 3)
]
"""One engine decides every case; the others, which read rows in their own ways and decide alike, a third each."""


@pytest.mark.parametrize(("kind", "name"), PAIRS, indirect=["kind"])
def test_every_engine_decides_what_memory_does(kind: Kind, name: str) -> None:
    case = CASES[name]
    bids = bids_of(name)
    priced = price(kind.make(table(bids)), case.market, **case.options)
    found = kind.read(priced.frame)
    assert found.column_names == ["id", "bid", "city", "privacy_loss", "weight", "payment"]
    assert found["bid"].to_numpy().tolist() == bids.tolist()
    assert priced.summary.method == ("summed" if case.options else "gathered")
    assert_same(found, priced, decided(name))


EXACT = Market(prior=Exponential(1), variance=0.25, buyer_weight=1.0, user_weight=1.0)


@cache
def exact_reference() -> tuple[pa.Table, Priced, float]:
    people = table(EXACT.prior.sample(40_000, rng=np.random.default_rng(3)))
    priced = price(people, EXACT, **SUMMED)
    return people, priced, priced.total_payment()


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_sums_are_the_same_to_the_last_bit_on_every_engine_and_in_every_partitioning(kind: Kind) -> None:
    people, reference, total = exact_reference()
    for _ in range(1 if kind.name == "spark" else 2):
        priced = price(kind.make(people), EXACT, **SUMMED)
        assert priced.summary == reference.summary
    assert priced.total_payment() == total
    found, expected = kind.read(priced.frame), reference.frame.sort_by("id")
    for column in ("privacy_loss", "weight", "payment"):
        assert found[column].to_numpy().tolist() == expected[column].to_numpy().tolist()


def test_groups_are_priced_by_their_own_priors(kind: Kind) -> None:
    rng = np.random.default_rng(11)
    labels = rng.choice(list(GROUPS), size=N)
    bids = np.where(labels == "young", GROUPS["young"].sample(N, rng=rng), GROUPS["old"].sample(N, rng=rng))
    market = Market(prior=Grouped(GROUPS, []), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    whole = Market(prior=Grouped(GROUPS, labels), variance=0.25, buyer_weight=1.0, user_weight=1.0).acquire(bids)
    priced = price(kind.make(table(bids, who=labels)), market, group="who", **SUMMED)
    assert priced.summary.method == "summed"
    assert_same(kind.read(priced.frame), priced, whole)


def test_variances_may_differ_by_row_in_the_central_setting(kind: Kind) -> None:
    rng = np.random.default_rng(12)
    bids, spread = Uniform(1, 2).sample(2000, rng=rng), rng.uniform(0.1, 0.3, 2000)
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    whole = Market(prior=Uniform(1, 2), variance=spread, buyer_weight=1.0, user_weight=1.0).acquire(bids)
    priced = price(kind.make(table(bids, spread=spread)), market, variance="spread")
    assert_same(kind.read(priced.frame), priced, whole)


def test_equals_in_the_local_setting_are_told_apart_by_a_keyed_hash_of_their_ids(kind: Kind) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, setting="local", user_weight=0, buyer_weight=300.0)
    people = table(np.full(500, 1.25))
    one, other = (kind.read(price(kind.make(people), market, tie_seed=seed).frame) for seed in (b"1", b"2"))
    bought = [set(np.flatnonzero(found["privacy_loss"].to_numpy())) for found in (one, other)]
    assert 0 < len(bought[0]) == len(bought[1]) < 500
    assert bought[0] != bought[1]
    again = by_id(price(people, market, tie_seed=b"1").frame)
    assert again["payment"].to_numpy().tolist() == one["payment"].to_numpy().tolist()


@pytest.mark.parametrize(
    ("kind", "order"), by_turns(KINDS, ["as drawn", "by price", "by price, dearest first"]), indirect=["kind"]
)
def test_people_who_tie_are_bought_from_as_in_memory_whatever_the_order_of_rows(kind: Kind, order: str) -> None:
    prior = Empirical([0.31, 0.59, 0.60, 0.61, 0.63, 1.23, 1.39, 2.33])
    market = Market(prior=prior, variance=0.25, setting="local", user_weight=0, buyer_weight=30.0)
    bids = np.random.default_rng(14).choice(prior.values[1:], 400).round(2)
    names = np.array([f"p{k}" for k in range(400)])
    whole = market.acquire(bids, tie_key=tie_keys(names))
    assert 1 < whole.active < np.count_nonzero(whole.virtual_costs == whole.virtual_costs.min())
    rows = {"as drawn": np.arange(400), "by price": np.argsort(bids)}.get(order, np.argsort(-bids))
    people = pa.table({"id": names[rows], "bid": bids[rows]})
    found = kind.read(price(kind.make(people), market).frame)
    places = np.argsort(names)
    assert found["id"].to_pylist() == names[places].tolist()
    assert found["privacy_loss"].to_numpy() == pytest.approx(whole.privacy_loss[places], rel=1e-9)
    assert found["payment"].to_numpy() == pytest.approx(whole.payments[places], rel=1e-9)


def spoilt() -> pa.Table:
    bids: list[float | None] = Uniform(1, 2).sample(400, rng=np.random.default_rng(13)).tolist()
    bids[7], bids[9], bids[200], bids[301] = None, math.nan, -1.0, 0.5
    return pa.table({"id": ids(400), "bid": bids, "city": ["x"] * 400})


def test_bad_rows_are_counted_and_named_before_anything_is_priced(kind: Kind) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    with pytest.raises(BidError, match=r"4 of 400 rows .*2 missing.*1 negative.*1 below") as caught:
        price(kind.make(spoilt()), market)
    named = str(caught.value)
    assert ("id = 52 " if kind.name == "spark" else "row 7 ") in named
    assert "0.5" not in named


def test_bad_rows_can_be_left_out(kind: Kind) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    people = spoilt()
    priced = price(kind.make(people), market, on_bad_rows="drop")
    good = np.delete(people["bid"].to_numpy(), [7, 9, 200, 301])
    assert priced.summary.dropped == 4
    assert priced.summary.people == 396
    assert_same(kind.read(priced.frame), priced, market.acquire(good))


def test_repeated_and_missing_ids_are_found(kind: Kind) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    people = pa.table({"id": pa.array([1, 2, 2, None]), "bid": [1.1, 1.2, 1.3, 1.4]})
    with pytest.raises(InputError, match="4 rows have 2 different ids"):
        price(kind.make(people), market, check_ids="exact")
    assert price(kind.make(people), market).summary.people == 4


def test_what_is_written_is_complete_and_what_fails_leaves_nothing(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    people = table(Uniform(1, 2).sample(300, rng=np.random.default_rng(14)))
    priced = price(kind.make(people), market)
    target = tmp_path / "out" / "priced.parquet"
    priced.write_parquet(target)
    expected = kind.read(priced.frame)
    assert pq.read_table(target).sort_by("id").select(expected.column_names).to_pydict() == expected.to_pydict()
    assert [path.name for path in target.parent.iterdir()] == ["priced.parquet"]
    with pytest.raises(OutputExists, match="exists already"):
        priced.write_parquet(target)
    priced.write_parquet(target, force=True)

    def fails_after_writing(frame: Any, path: str) -> None:
        Path(path).write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(priced._engine), "write", staticmethod(fails_after_writing))
    with pytest.raises(Unwritable, match=r"other\.parquet cannot be written: No space left"):
        priced.write_parquet(target.with_name("other.parquet"))
    assert [path.name for path in target.parent.iterdir()] == ["priced.parquet"]


def test_an_empty_table_and_a_missing_column_are_refused(kind: Kind) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    empty = pa.table({"id": pa.array([], pa.int64()), "bid": pa.array([], pa.float64())})
    with pytest.raises(InputError, match="no rows"):
        price(kind.make(empty), market)
    with pytest.raises(InputError, match="no column 'cost'"):
        price(kind.make(empty), market, bid="cost")


def test_nobody_within_the_support_is_bought_from_or_paid(kind: Kind) -> None:
    market = Market(prior=Uniform(1, 2), user_weight=0, buyer_weight=1.0)
    priced = price(kind.make(table([3.0, 4.0, 5.0])), market)
    assert priced.summary.active == 0
    assert kind.read(priced.frame)["payment"].to_pylist() == [0.0, 0.0, 0.0]


def test_the_passes_are_told_one_by_one(kind: Kind) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    told: list[Any] = []
    people = table(Uniform(1, 2).sample(5000, rng=np.random.default_rng(15)))
    priced = price(kind.make(people), market, progress=told.append, gather=100, window=0)
    assert [step.number for step in told] == list(range(1, priced.summary.passes + 1))
    assert priced.summary.passes == 3


@pytest.mark.parametrize(
    "prior",
    [
        LogNormal(0, 2),
        Beta(0.5, 3, low=0.5, high=2.0),
        Mixture([Uniform(1, 2), Uniform(1.2, 1.3)], [0.5, 0.5]),
        Mixture([Uniform(1, 1.4), Exponential(3)], [0.3, 0.7]),
    ],
    ids=lambda prior: prior.family,
)
def test_priors_with_corners_and_flat_parts_are_priced_by_curves_too(prior: Prior) -> None:
    market = Market(prior=prior, variance=0.25, tolerance=1e-8, buyer_weight=1.0, user_weight=1.0)
    bids = prior.sample(3000, rng=np.random.default_rng(16))
    priced = price(table(bids), market, **SUMMED)
    assert priced.summary.method == "summed"
    outcome = market.acquire(bids)
    found = priced.frame.sort_by("id")
    largest = np.abs(outcome.payments).max()
    assert np.abs(found["payment"].to_numpy() - outcome.payments).max() <= 1e-8 * largest
    assert priced.summary.schedule_error <= 1e-9 * largest


@pytest.mark.parametrize(("n", "setting"), by_turns([1, 2, 3, 7, 40], ["central", "local"]))
def test_small_populations_are_exact(n: int, setting: Any) -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, setting=setting, buyer_weight=1.0, user_weight=1.0)
    for seed in range(10):
        bids = Uniform(1, 2).sample(n, rng=np.random.default_rng(seed))
        priced = price(table(bids), market, gather=0)
        assert_same(priced.frame.sort_by("id"), priced, market.acquire(bids))


def test_the_certificate_encloses_the_objective() -> None:
    market = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0)
    summary = price(table(Uniform(1, 2).sample(20_000, rng=np.random.default_rng(17))), market, **SUMMED).summary
    assert summary.lower_bound <= summary.objective
    assert relative_gap(summary.objective, summary.lower_bound) <= 1e-9


@pytest.mark.parametrize("call", [{"engine": "abacus"}, {"on_bad_rows": "ignore"}, {"check_ids": "no"}])
def test_unknown_options_are_refused_by_name(call: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(call))):
        price(table([1.1]), Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0), **call)
