"""The record of a table that stays with its engine: what memory records, on every engine, and it is verified."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.allocation import Accuracy, Budget, HardBudget, Price
from hushbid.common.column_files import ColumnFile
from hushbid.common.money import Currency
from hushbid.disclosure import Release, privatize
from hushbid.disclosure.memory import weigh
from hushbid.engine import Priced, price, release
from hushbid.engine.payouts import Paid, checked, decisions
from hushbid.engine.recording import not_recorded, write_record
from hushbid.errors import InputError, MarketError
from hushbid.mechanism import Market, Outcome
from hushbid.mechanism.releasing import plan_of
from hushbid.priors import Grouped, Uniform
from hushbid.questions import Choice, Number, YesNo
from hushbid.record import Record, folder, read
from hushbid.verification.verifying import verify
from tests.engine.conftest import Kind
from tests.extent import by_turns

N = 300
EUROS = Currency("EUR", 2)
SUMMED: dict[str, Any] = {"gather": 20, "window": 10}
"""Few enough that these people are many."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a record be a folder above a few people, and have several groups of rows."""
    monkeypatch.setattr(folder, "LARGEST_FILE", N - 1)
    monkeypatch.setattr("hushbid.engine.recording.ROWS_AT_A_TIME", 128)


def people(**columns: Any) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    found: dict[str, Any] = {
        "id": [f"p{row:03}" for row in range(N)],
        "bid": rng.uniform(1.0, 2.0, N),
        "value": rng.uniform(size=N),
    }
    found["value"][::7] = np.nan
    return {**found, **columns}


def as_table(columns: dict[str, Any]) -> pa.Table:
    return pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})


def recorded(priced: Priced, place: Path, drawn: Release | None, data: Any, group: str | None = None) -> Record:
    """Return the record of a priced table, from its folder."""
    place.mkdir(parents=True)
    frame = decisions(priced, EUROS)
    priced.write(frame, place / "decisions.parquet")
    paid: Paid = checked(place / "decisions.parquet", priced)
    digest = write_record(
        priced,
        place / "record",
        currency=EUROS,
        total_minor=paid.total_minor,
        group=group,
        data=data,
        release=drawn,
        stamps=["a stamp"],
        notes=["a note"],
    )
    found = read(place / "record")
    assert found.hash == digest
    return found


def assert_as_in_memory(found: Record, outcome: Outcome, ids: list[str]) -> None:
    """Compare a record with what memory decides, person by person."""
    order = [list(found.ids or ()).index(one) for one in ids]
    assert found.outcome.columns().keys() == outcome.columns().keys()
    for name, column in outcome.columns().items():
        scale = float(np.abs(column[np.isfinite(column)]).max(initial=1e-9))
        np.testing.assert_allclose(
            found.outcome.columns()[name][order], column, rtol=1e-9, atol=2e-6 * scale, err_msg=name
        )
    for lower, rent, upper in zip(
        found.outcome.rent_bounds[0], found.outcome.information_rent, found.outcome.rent_bounds[1], strict=True
    ):
        assert lower <= rent <= upper
    assert found.outcome.mse == pytest.approx(outcome.mse)
    assert found.outcome.objective == pytest.approx(outcome.objective)
    assert found.outcome.market.to_dict().keys() == outcome.market.to_dict().keys()
    verified = verify(found)
    assert verified.ok, [one.sentence for one in verified.checks if one.status != "holds"]


MARKETS: dict[str, dict[str, Any]] = {
    "price": {"goal": Price(300.0)},
    "accuracy": {"goal": Accuracy(0.1)},
    "budget": {"goal": Budget(40.0, coin=0.01)},
    "hard budget": {"goal": HardBudget(60.0, coin=0.01)},
    "own data": {"goal": Price(10.0), "user_weight": 1.0},
    "estimate": {"goal": Price(10.0), "user_weight": 1.0, "outside_option": "estimate"},
    "cap": {"goal": Price(3000.0), "max_privacy_loss": 0.05},
    "related": {"goal": Price(300.0), "max_correlation": 0.05},
}


def market(**options: Any) -> Market:
    return Market(**{"prior": Uniform(1, 2), "variance": 0.25, "user_weight": 0.0, **options})


@pytest.mark.parametrize(("name", "ways"), by_turns(MARKETS, [{}, SUMMED]), ids=str)
def test_every_goal_is_recorded_as_in_memory_and_holds(name: str, ways: dict[str, Any], tmp_path: Path) -> None:
    stated, columns = market(**MARKETS[name]), people()
    priced = price(as_table(columns), stated, **ways)
    drawn = release(priced, "value", question=f"{name} {sorted(ways)}", ledger=tmp_path / "ledger")
    found = recorded(priced, tmp_path / "out", drawn, "value")
    assert_as_in_memory(found, stated.acquire(columns["bid"]), columns["id"])
    assert list(found.ids or ()) == columns["id"]
    asked = found.outcome.privacy_loss > 0.0
    gone = asked & np.isnan(columns["value"])
    assert found.release is not None
    assert found.release.dropped_out == tuple(np.flatnonzero(gone).tolist())
    assert found.release.delivered == drawn.delivered
    assert (found.release.estimate, found.release.grid) == (drawn.estimate, drawn.grid)
    assert (found.stamps[0], found.notes) == ("a stamp", ("a note",))


def test_every_engine_writes_one_table_of_the_same_people(kind: Kind, tmp_path: Path) -> None:
    stated, columns = market(goal=Price(300.0)), people()
    priced = price(kind.make(as_table(columns)), stated, **SUMMED)
    drawn = release(priced, "value", question="engines", ledger=tmp_path / "ledger")
    found = recorded(priced, tmp_path / "out", drawn, "value")
    assert_as_in_memory(found, stated.acquire(columns["bid"]), columns["id"])
    assert sorted(one.name for one in (tmp_path / "out" / "record").iterdir()) == ["people.parquet", "record.json"]
    assert (tmp_path / "out" / "record" / "people.parquet").is_file()
    if kind.name != "spark":  # whose rows have no order
        assert list(found.ids or ()) == columns["id"]


def test_memory_and_engine_say_the_same_of_people_in_groups(tmp_path: Path) -> None:
    labels = np.random.default_rng(6).choice(["a", "b"], N).tolist()
    priors, columns = {"a": Uniform(1, 2), "b": Uniform(1, 3)}, people(who=labels)
    stated = market(goal=Price(300.0), prior=Grouped(priors, []))
    priced = price(as_table(columns), stated, group="who", **SUMMED)
    found = recorded(priced, tmp_path / "out", None, None, group="who")
    memory = replace(stated, prior=Grouped(priors, labels)).acquire(columns["bid"])
    assert_as_in_memory(found, memory, columns["id"])
    assert found.outcome.market.to_dict() == memory.market.to_dict()
    assert (list(found.groups or ()), found.release) == (labels, None)


@pytest.mark.parametrize("ways", [{}, SUMMED], ids=["one by one", "by sums"])
def test_strata_are_a_column_and_lost_what_memory_says(ways: dict[str, Any], tmp_path: Path) -> None:
    where = np.random.default_rng(7).choice(["east", "west"], N).tolist()
    shares, columns = {"east": 0.7, "west": 0.3}, people(region=where)
    columns["value"] = np.nan_to_num(columns["value"])
    stated = market(goal=Price(300.0), strata=[], shares=shares)
    priced = price(as_table(columns), stated, stratum="region", **ways)
    drawn = release(priced, "value", question="strata", ledger=tmp_path / "ledger")
    found = recorded(priced, tmp_path / "out", drawn, "value")
    memory = replace(stated, strata=where).acquire(columns["bid"])
    assert_as_in_memory(found, memory, columns["id"])
    assert found.outcome.market.to_dict() == memory.market.to_dict()
    here = weigh(plan_of(memory), memory.privacy_loss > 0.0)
    assert found.release is not None
    np.testing.assert_allclose(
        found.release.privacy_loss, np.ldexp(here.weights.astype(float), -here.sum_plan.exponent), rtol=1e-9
    )


def test_strata_of_which_somebody_is_missing_are_not_recorded_and_the_reason_is_known(tmp_path: Path) -> None:
    where = np.random.default_rng(7).choice(["east", "west"], N).tolist()
    stated = market(goal=Price(300.0), strata=[], shares={"east": 0.7, "west": 0.3})
    priced = price(as_table(people(region=where)), stated, stratum="region", **SUMMED)
    drawn = release(priced, "value", question="strata", ledger=tmp_path / "ledger")
    assert drawn.absent > 0
    assert "did not deliver" in not_recorded(priced, drawn)
    assert not_recorded(priced, None) == ""


def test_limits_are_a_column(tmp_path: Path) -> None:
    limits = np.random.default_rng(8).choice([0.02, 0.5, np.nan, 0.0], N)
    columns = people(limit=limits)
    stated = market(goal=Price(300.0))
    priced = price(as_table(columns), stated, limit="limit")
    found = recorded(priced, tmp_path / "out", None, None)
    memory = stated.acquire(columns["bid"], limits=np.where(np.isnan(limits), np.inf, limits))
    assert_as_in_memory(found, memory, columns["id"])


def test_a_survey_is_recorded_with_its_answers(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    questions = (
        Number(name="hours", bounds=(0, 10), variance=4.0),
        YesNo(name="smoker"),
        Choice(name="shift", answers=("day", "night")),
    )
    columns = people(
        hours=rng.uniform(0, 10, N),
        smoker=rng.choice(["yes", "no"], N).tolist(),
        shift=rng.choice(["day", "night"], N).tolist(),
    )
    columns["shift"][5] = None
    stated = Market(prior=Uniform(1, 2), questions=questions, goal=Price(300.0), user_weight=0.0)
    priced = price(as_table(columns), stated, **SUMMED)
    drawn = release(priced, question="survey", ledger=tmp_path / "ledger")
    found = recorded(priced, tmp_path / "out", drawn, None)
    assert_as_in_memory(found, stated.acquire(columns["bid"]), columns["id"])
    assert found.release is not None
    assert found.release.answers == drawn.answers


def test_in_the_local_setting_the_order_among_equals_is_recorded(tmp_path: Path) -> None:
    columns = people()
    columns["bid"] = np.round(columns["bid"], 1)
    stated = market(goal=Price(300.0), setting="local")
    priced = price(as_table(columns), stated)
    losses = dict(zip(priced.frame["id"].to_pylist(), priced.frame["privacy_loss"].to_pylist(), strict=True))
    sent = [
        privatize(0.5, loss, bounds=(0, 1)).to_json() if (loss := losses[one]) > 0.0 else None for one in columns["id"]
    ]
    first = next(row for row, message in enumerate(sent) if message is not None)
    sent[first] = None
    columns["value"] = sent
    priced = price(as_table(columns), stated)
    drawn = release(priced, "value", question="local", ledger=tmp_path / "ledger")
    found = recorded(priced, tmp_path / "out", drawn, "value")
    assert found.release is not None
    assert found.release.dropped_out == (first,)
    assert found.outcome.tie_order is not None
    assert sorted(found.outcome.tie_order.tolist()) == list(range(N))
    assert verify(found).ok


def test_rows_that_were_left_out_are_not_recorded(tmp_path: Path) -> None:
    columns = people()
    columns["bid"][[3, 200]] = np.nan
    priced = price(as_table(columns), market(goal=Price(300.0)), on_bad_rows="drop", **SUMMED)
    found = recorded(priced, tmp_path / "out", None, None)
    assert len(found.ids or ()) == N - 2
    assert "p003" not in list(found.ids or ())
    assert verify(found).ok


def test_people_of_whom_one_is_there_twice_are_refused(tmp_path: Path) -> None:
    columns = people()
    columns["id"][1] = f" {columns['id'][0]}"  # the same person, by the form in which ids are compared
    priced = price(as_table(columns), market(goal=Price(300.0)), **SUMMED)
    with pytest.raises(InputError, match="must name everybody once"):
        recorded(priced, tmp_path / "out", None, None)


def test_a_table_that_changes_before_it_is_recorded_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(as_table(people()), path)
    priced = price(duckdb.read_parquet(str(path)), market(goal=Price(300.0)), **SUMMED)
    pq.write_table(as_table(people()).slice(1), path)
    with pytest.raises(MarketError):
        recorded(priced, tmp_path / "out", None, None)


def test_both_ways_to_write_a_record_name_the_same_columns(tmp_path: Path) -> None:
    """Of a market without anything special: in memory, and with the people on an engine."""
    columns, stated = people(), market(goal=Price(300.0))
    found = recorded(price(as_table(columns), stated, **SUMMED), tmp_path / "out", None, None)
    memory = Record.of(stated.acquire(columns["bid"]), ids=columns["id"], currency="EUR")
    place = memory.write(tmp_path / "memory")
    assert isinstance(memory.table, ColumnFile)
    assert isinstance(found.table, ColumnFile)
    assert memory.table.places == found.table.places
    documents = [json.loads((one / "record.json").read_text()) for one in (place, tmp_path / "out" / "record")]
    assert documents[0].keys() == documents[1].keys()
    assert documents[0]["outcome"].keys() == documents[1]["outcome"].keys()
    assert os.path.getsize(place / "people.parquet") > 0
