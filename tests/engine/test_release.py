"""Releases from a priced table."""

import json
import math
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hushbid
from hushbid.allocation import Price
from hushbid.common.money import Currency
from hushbid.disclosure import ReleasePlan, release_plan
from hushbid.disclosure import release_synthetic as drawn_in_memory
from hushbid.disclosure.ledger.files import _sealed
from hushbid.disclosure.ledger.question import answer_forms, person_digests, tallied
from hushbid.engine import price, release
from hushbid.engine.delivered import data_columns
from hushbid.engine.payouts import due
from hushbid.engine.releasing import asked_of, prepared_sums, release_synthetic
from hushbid.errors import AlreadyReleased, InputError, NothingDelivered, RecordError, ReleaseError
from hushbid.mechanism import Market
from hushbid.mechanism.releasing import plan_of
from hushbid.priors import LogNormal, Uniform
from tests.engine.conftest import Kind

MARKET = Market(prior=Uniform(1, 2), bounds=(10, 30), variance=20.0, buyer_weight=1.0, user_weight=1.0)
RNG = np.random.default_rng(8)
N = 6000
BIDS = Uniform(1, 2).sample(N, rng=RNG)
DATA = RNG.uniform(10, 30, N)


def people(data: object = DATA) -> pa.Table:
    return pa.table({"id": np.arange(N), "bid": BIDS, "datum": data})


def test_the_integers_below_the_noise_are_the_same_on_every_engine(kind: Kind) -> None:
    sums = []
    for table in (people(), kind.make(people())):
        priced = price(table, MARKET, gather=100, window=50)
        sums.append(prepared_sums(priced, data_columns(priced, "datum")).sums)
    assert sums[0] == sums[1]
    losses, [whole] = MARKET.acquire(BIDS).privacy_loss, sums[0].strata
    assert whole.delivered == int((losses > 0).sum())
    assert whole.cells[0][0] / 2**40 / whole.weight * 20 + 10 == pytest.approx(np.average(DATA, weights=losses))


def test_a_release_is_drawn_once_and_lies_near_the_mean(tmp_path: Path) -> None:
    priced = price(people(), MARKET)
    first = release(priced, "datum", question="mean", ledger=tmp_path / "claims")
    again = release(price(people(), MARKET), "datum", question="mean", ledger=tmp_path / "claims")
    assert first.to_dict() == again.to_dict()
    assert abs(first.estimate - 20.0) < 10 * first.standard_error
    assert first.standard_error == pytest.approx(np.sqrt(priced.summary.mse), rel=1e-4)


def test_drop_outs_and_values_outside_the_range_are_counted(tmp_path: Path) -> None:
    cheap = np.argsort(BIDS)
    data = DATA.copy()
    data[cheap[:3]], data[cheap[5]] = np.nan, 99.0
    found = release(price(people(data), MARKET), "datum", question="mean", ledger=tmp_path)
    assert (found.absent, found.clamped) == (3, 1)


def test_nothing_to_release_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NothingDelivered, match="None of the"):
        release(price(people(np.full(N, np.nan)), MARKET), "datum", question="mean", ledger=tmp_path)
    with pytest.raises(InputError, match="no column 'age'"):
        release(price(people(), MARKET), "age", question="mean", ledger=tmp_path)


def test_another_column_is_another_question_or_is_refused(tmp_path: Path) -> None:
    table = people().append_column("age", [DATA / 2])
    first = release(price(table, MARKET), "datum", question="mean", ledger=tmp_path)
    with pytest.raises(AlreadyReleased, match="drawn from other data"):
        release(price(table, MARKET), "age", question="mean", ledger=tmp_path)
    other = release(price(table, MARKET), "age", ledger=tmp_path, question="mean age")
    assert other.estimate != first.estimate
    assert release(price(table, MARKET), "age", ledger=tmp_path, question=" Mean  Age").estimate == other.estimate


def test_what_is_asked_of_whom_is_the_same_sum_on_every_engine_and_in_memory(kind: Kind) -> None:
    data = DATA.copy()
    data[::7] = np.nan
    priced = price(kind.make(people(data)), MARKET, gather=100, window=50)
    found = asked_of(priced, data_columns(priced, "datum"), question="mean", wave=1).tally
    losses = MARKET.acquire(BIDS).privacy_loss
    forms = answer_forms(data[:, np.newaxis], (losses > 0) & ~np.isnan(data))
    expected = tallied(person_digests([str(k) for k in range(N)]), losses, 20.0, forms)
    assert (found.people, found.whole.data, found.delivered) == (
        expected.people,
        expected.whole.data,
        expected.delivered,
    )
    assert found.losses == pytest.approx(expected.losses, rel=1e-9)
    assert found.marked == pytest.approx(expected.marked, rel=1e-9)
    assert found.whole.answers == expected.whole.answers
    assert found.variances == pytest.approx(expected.variances, rel=1e-9)
    assert found.marked_variances == pytest.approx(expected.marked_variances, rel=1e-9)


def test_memory_and_engines_find_each_others_claims_and_never_draw_again(tmp_path: Path) -> None:
    ids, outcome = np.arange(N), MARKET.acquire(BIDS)
    drawn = hushbid.release(outcome, DATA, ids=ids, question="sleep", ledger=tmp_path / "memory first")
    shown = release(price(people(), MARKET), "datum", question="sleep", ledger=tmp_path / "memory first")
    assert (shown.estimate, shown.delivered) == (drawn.estimate, outcome.active)
    assert shown.interval() == drawn.interval()
    data = np.where(ids % 100 == 0, np.nan, DATA + 1.0)
    drawn = release(price(people(data), MARKET), "datum", question="weight", ledger=tmp_path / "engine first")
    shown = hushbid.release(outcome, data, ids=ids, question="weight", ledger=tmp_path / "engine first")
    assert (shown.estimate, shown.absent, shown.delivered) == (drawn.estimate, drawn.absent, drawn.delivered)
    assert (shown.privacy_loss <= outcome.privacy_loss).all()
    assert (shown.privacy_loss[list(shown.dropped_out)] == 0.0).all()
    assert shown.check.people == N
    with pytest.raises(AlreadyReleased, match="which sums cannot tell apart"):
        hushbid.release(outcome, DATA + 1.0, ids=ids, question="weight", ledger=tmp_path / "engine first")


def test_on_an_engine_other_promises_and_other_data_are_refused(tmp_path: Path) -> None:
    release(price(people(), MARKET), "datum", question="mean", ledger=tmp_path)
    dearer = BIDS.copy()
    cheap = np.argsort(BIDS)
    dearer[cheap[[0, 9]]] = dearer[cheap[[9, 0]]]  # two people change places: every plain sum stays
    swapped = people().set_column(1, "bid", [dearer])
    for table, market, sentence in (
        (swapped, MARKET, "other promises"),
        (people(), replace(MARKET, goal=Price(1.001)), "other promises"),
        (people(), replace(MARKET, bounds=(10, 31)), "other promises"),
        (people(np.where(np.arange(N) == cheap[0], DATA + 1e-9, DATA)), MARKET, "other data"),
        (people(np.where(np.arange(N) == cheap[0], np.nan, DATA)), MARKET, "other data"),
    ):
        with pytest.raises(AlreadyReleased, match=sentence):
            release(price(table, market), "datum", question="mean", ledger=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_on_an_engine_another_variance_is_another_promise_though_every_loss_is_at_the_cap(tmp_path: Path) -> None:
    market, n = replace(MARKET, max_privacy_loss=1e-4, variance=36.0), 200
    rows = people().slice(0, n)
    priced = price(rows, market)
    assert priced.summary.active == n
    release(priced, "datum", question="mean", ledger=tmp_path)
    other = price(rows, replace(market, variance=35.0))
    assert other.summary.total_privacy_loss == priced.summary.total_privacy_loss
    with pytest.raises(AlreadyReleased, match="other promises"):
        release(other, "datum", question="mean", ledger=tmp_path)
    release(price(rows, market), "datum", question="mean", ledger=tmp_path)


def test_on_an_engine_variances_that_change_places_are_other_promises(tmp_path: Path) -> None:
    market, n = replace(MARKET, max_privacy_loss=1e-4), 200
    spread = np.linspace(4.0, 36.0, n)
    tables = [people().slice(0, n).append_column("spread", [one]) for one in (spread, spread[::-1])]
    release(price(tables[0], market, variance="spread"), "datum", question="mean", ledger=tmp_path)
    with pytest.raises(AlreadyReleased, match="other promises"):
        release(price(tables[1], market, variance="spread"), "datum", question="mean", ledger=tmp_path)


def test_on_an_engine_leaving_out_the_ids_does_not_draw_again(tmp_path: Path) -> None:
    rows = people().slice(0, 200)
    release(price(rows, MARKET), "datum", question="sleep", ledger=tmp_path)
    with pytest.raises(AlreadyReleased, match="promised the same"):
        release(price(rows.drop_columns(["id"]), MARKET), "datum", question="sleep", ledger=tmp_path)


@pytest.mark.parametrize("empty", [None, "", " "])
def test_on_an_engine_a_missing_id_is_no_id_and_nothing_is_drawn(empty: str | None, kind: Kind, tmp_path: Path) -> None:
    rows = people().slice(0, 200)
    named = rows.set_column(0, "id", pa.array([empty, *(f"p{k}" for k in range(199))], pa.string()))
    with pytest.raises(InputError, match="Column 'id' must name everybody"):
        release(price(kind.make(named), MARKET), "datum", question="mean", ledger=tmp_path / "claims")
    assert not (tmp_path / "claims").exists()


def test_a_claim_that_holds_no_release_of_an_engine_is_refused_with_a_sentence(tmp_path: Path) -> None:
    rows = people().slice(0, 200)
    release(price(rows, MARKET), "datum", question="mean", ledger=tmp_path)
    [path] = tmp_path.glob("*.json")
    claim = json.loads(path.read_text())["drawing"]
    for forged in ({}, {**claim["release"], "error": {}}, {**claim["release"], "estimate": "x"}):
        path.write_bytes(_sealed({**claim, "release": forged}))
        with pytest.raises((ReleaseError, RecordError), match=r"release|no entry of"):
            release(price(rows, MARKET), "datum", question="mean", ledger=tmp_path)


def test_the_error_is_that_of_memory_with_variances_by_row_and_drop_outs(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    spread, data = rng.uniform(1, 40, N), DATA.copy()
    outcome = Market(prior=Uniform(1, 2), bounds=(10, 30), variance=spread, buyer_weight=1.0, user_weight=1.0).acquire(
        BIDS
    )
    data[np.argsort(-outcome.privacy_loss)[:5]] = np.nan
    table = people(data).append_column("spread", [spread])
    found = release_synthetic(price(table, MARKET, variance="spread"), "datum").release
    expected = hushbid.release(outcome, data, question="mean", ledger=tmp_path / "memory")
    assert found.absent == 5
    for name in ("error", "planned_error"):
        ours, theirs = asdict(getattr(found, name)), asdict(getattr(expected, name))
        for field in set(ours) - {"rounding"}:
            assert ours[field] == pytest.approx(theirs[field], rel=1e-9), (name, field)
    assert found.error.half_width(0.9) == pytest.approx(expected.error.half_width(0.9))
    assert found.public()["planned_standard_error"] == pytest.approx(expected.public()["planned_standard_error"])


def test_under_a_relation_the_errors_are_those_of_memory_and_so_is_the_claim(tmp_path: Path) -> None:
    market = Market(
        prior=Uniform(1, 2), bounds=(10, 30), variance=20.0, buyer_weight=500.0, max_correlation=0.1, population=9000
    )
    outcome, data = market.acquire(BIDS), DATA.copy()
    data[np.argsort(-outcome.privacy_loss)[:40]] = np.nan
    found = release(price(people(data), market), "datum", question="related", ledger=tmp_path / "engine first")
    alone = drawn_in_memory(plan_of(outcome), data).release
    for name in ("error", "planned_error"):
        ours, theirs = asdict(getattr(found, name)), asdict(getattr(alone, name))
        for field in set(ours) - {"rounding"}:
            assert ours[field] == pytest.approx(theirs[field], rel=1e-7), (name, field)
    assert found.worst_standard_error > found.standard_error
    # one claim for both; another relation is another promise
    again = hushbid.release(outcome, data, ids=np.arange(N), question="related", ledger=tmp_path / "engine first")
    assert again.estimate == found.estimate
    other = price(people(data), replace(market, population=9001))
    with pytest.raises(AlreadyReleased, match="relation or privacy losses"):
        release(other, "datum", question="related", ledger=tmp_path / "engine first")


def test_in_the_local_setting_the_messages_of_the_few_who_matter_are_combined(kind: Kind, tmp_path: Path) -> None:
    market = Market(prior=Uniform(1, 2), bounds=(10, 30), variance=20.0, setting="local", user_weight=0, buyer_weight=9)
    table = pa.table({"id": np.arange(500), "bid": BIDS[:500]})
    losses = price(table, market).frame["privacy_loss"].to_numpy()
    asked = np.flatnonzero(losses)
    messages: list[str | None] = [None] * 500
    for row in asked[1:].tolist():
        messages[row] = json.dumps(hushbid.privatize(DATA[row], float(losses[row]), (10, 30)).to_dict())
    sent = table.append_column("message", pa.array(messages, pa.string()))
    priced = price(kind.make(sent), market)
    found = release(priced, "message", question="mean", ledger=tmp_path / "claims")
    kept = np.where(np.arange(500) == asked[0], 0.0, losses)
    plan = ReleasePlan.of(kept, setting="local", bounds=(10, 30), variance=20.0, label=kind.name)
    assert (found.delivered, found.absent) == (asked.size - 1, 1)
    paid = kind.read(due(priced, "message", Currency.of("EUR"), mse=found.error.mse))
    states = np.where(losses > 0.0, "yes", "not asked")
    states[asked[0]] = "no"
    assert paid["delivered"].to_pylist() == states.tolist()
    assert np.array_equal(paid["payment_minor"].to_numpy() > 0, states == "yes")
    assert found.estimate == pytest.approx(release_plan(plan, messages, folder=tmp_path / "memory").estimate, abs=1e-9)
    nothing = price(table.append_column("message", pa.array([None] * 500, pa.string())), market)
    with pytest.raises(NothingDelivered, match="None of the"):
        release(nothing, "message", question="mean", ledger=tmp_path / "nothing")


def test_no_weight_and_no_sum_overflows_however_unequal_the_losses() -> None:
    rng = np.random.default_rng(10)
    bids = np.concatenate([[1e-12], rng.lognormal(0, 3, 4000)])
    market = Market(prior=LogNormal(0, 3), variance=0.25, user_weight=0, buyer_weight=1e9)
    table = pa.table({"id": np.arange(4001), "bid": bids, "datum": rng.random(4001)})
    priced = price(table, market)
    found = prepared_sums(priced, data_columns(priced, "datum"))
    exponent, [sums] = found.plan.exponent, found.sums.strata
    losses = priced.frame["privacy_loss"].to_pylist()
    weights = [math.floor(Fraction(loss) * 2**exponent) for loss in losses]
    assert sums.weight == sum(weights) <= 2**60
    grid = [math.floor(Fraction(x) * 2**40) for x in table["datum"].to_pylist()]
    assert sums.cells[0][0] == sum(w * x for w, x in zip(weights, grid, strict=True))
