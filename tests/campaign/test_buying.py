"""One way to buy: arrays, files and frames give the same decisions, estimate and record."""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import hushbid
from hushbid.campaign import Purchase, Reading, deciding, run_campaign
from hushbid.campaign.recorded import release_recorded
from hushbid.cli import main
from hushbid.common import money
from hushbid.disclosure.ledger import once
from hushbid.errors import AlreadyReleased, BidError, DataError, InputError, OutputExists
from hushbid.mechanism import Market, Population
from hushbid.priors import Uniform
from hushbid.priors.pilot import Pilot, prior_file_text
from hushbid.record import folder, read
from hushbid.verification.verifying import verify

N = 200
MARKET = ("--prior", "uniform:1,3", "--buyer-weight", "1")
CAMPAIGN = """\
title = "Sleep"
question = "mean sleep"

[market]
setting = "central"
prior = "uniform:1,3"
bounds = [0, 12]
variance = 2
buyer_weight = 500

[data]
late = "unpaid"
"""


def columns(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    found = {"id": [f"p{k}" for k in range(N)], "bid": rng.uniform(1, 3, N), "value": rng.uniform(0, 12, N)}
    return {**found, **changes}


def on_engine(file: Path, table: pa.Table, **options: Any) -> Purchase:
    """What speaks Arrow is read into memory unless an engine is named."""
    return run_campaign(file, bids=table, reading=Reading(engine="auto"), **options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sleep.toml"
    path.write_text(CAMPAIGN)
    return path


def test_arrays_frames_and_files_are_bought_from_alike_and_drawn_from_once(file: Path, tmp_path: Path) -> None:
    first = run_campaign(file, bids=columns(), audit=False)
    assert first.release is not None
    assert first.record is not None
    assert not first.on_engine
    pq.write_table(pa.table(columns()), tmp_path / "people.parquet")
    for people, engine in (
        (pa.table(columns()), "auto"),
        (pl.LazyFrame(columns()), "auto"),
        (str(tmp_path / "people.parquet"), "duckdb"),
        (str(tmp_path / "people.parquet"), "memory"),
    ):
        again = run_campaign(file, bids=people, reading=Reading(engine=engine), audit=False, force=True)
        assert again.answer is not None
        assert again.record is not None
        assert (again.answer.before, again.answer.release.estimate) == (True, first.release.estimate)
        assert again.record.content["outcome"] == first.record.content["outcome"]
        assert again.record.content["release"] == first.record.content["release"]
        assert hushbid.verify(again.record).ok


def test_a_run_rounds_its_money_once_and_computes_its_certificate_once(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    round_all, certify = money.rounded_up, Population.lower_bound
    monkeypatch.setattr(money, "rounded_up", lambda *given: done.append("money") or round_all(*given))
    monkeypatch.setattr(Population, "lower_bound", lambda *given: done.append("certificate") or certify(*given))
    bought = run_campaign(file, bids=columns(), audit=False)
    assert "report.html" in {path.name for path in bought.files}
    assert sorted(done) == ["certificate", "money"]


def test_what_an_engine_draws_is_recorded_verified_and_shown_in_memory(file: Path) -> None:
    gone = columns(value=np.where(np.arange(N) % 9 == 0, np.nan, columns()["value"]))
    drawn = on_engine(file, pa.table(gone), audit=False)
    assert drawn.record is not None
    assert drawn.record.release is not None
    assert drawn.record.release.absent > 0
    assert hushbid.verify(drawn.record).ok
    names = {path.name for path in drawn.files}
    assert names == {
        *("decisions.parquet", "payments.parquet", "estimate.json"),
        "report.html",
        "record.json",
        "summary.json",
    }
    shown = run_campaign(file, bids=gone, audit=False, force=True)
    assert shown.record is not None
    assert shown.record.content["release"] == drawn.record.content["release"]


def test_late_data_are_told_from_changed_ones_on_an_engine_too(file: Path) -> None:
    on_time = np.where(np.arange(N) % 9 == 0, np.nan, columns()["value"])
    first = on_engine(file, pa.table(columns(value=on_time)), audit=False)
    late = on_engine(file, pa.table(columns()), audit=False, force=True)
    assert first.release is not None
    assert late.release is not None
    assert (late.release.estimate, late.late) == (first.release.estimate, first.release.absent)
    words = pq.read_table(late.files[1])["delivered"].to_pylist()
    assert words.count("late") == late.late > 0
    with pytest.raises(AlreadyReleased, match="drawn from other data"):
        on_engine(file, pa.table(columns(value=columns()["value"] / 2)), audit=False, force=True)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let these people be so many that they stay with an engine, and that their record is a folder."""
    monkeypatch.setattr(deciding, "LARGEST_HERE", N - 1)
    monkeypatch.setattr(folder, "LARGEST_FILE", N - 1)


@pytest.mark.usefixtures("kept")
def test_above_the_stated_size_an_engine_records_without_a_report_and_says_so(file: Path, tmp_path: Path) -> None:
    found = on_engine(file, pa.table(columns()))
    assert found.record is None
    assert [path.name for path in found.files] == [
        *("decisions.parquet", "payments.parquet", "estimate.json"),
        *("record", "summary.json"),
    ]
    assert f"No report and no audits: an engine has them for at most {N - 1} people." in found.text()
    said = json.loads((tmp_path / "sleep" / "summary.json").read_text())["report"]
    assert said == {"written": False, "most_people": N - 1}
    record = read(tmp_path / "sleep" / "record")
    assert (record.hash, verify(record).ok) == (found.record_hash, True)
    assert found.facts()["record_hash"] == record.hash
    # the decisions, payments and data are those of the tables
    decided = pq.read_table(tmp_path / "sleep" / "decisions.parquet")
    assert record.money is not None
    assert record.money.payments.tolist() == decided["payment_minor"].to_pylist()
    assert record.outcome.privacy_loss.tolist() == decided["privacy_loss"].to_pylist()
    assert record.release is not None
    assert found.release is not None
    assert (record.release.estimate, len(record.release.dropped_out)) == (found.release.estimate, found.release.absent)


@pytest.mark.usefixtures("kept")
def test_an_engine_prices_nobody_again_for_a_record(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decided_here(*arguments: object, **options: object) -> None:
        raise AssertionError("everybody was priced in memory")

    monkeypatch.setattr(Market, "acquire", decided_here)
    assert on_engine(file, pa.table(columns())).record_hash


@pytest.mark.usefixtures("kept")
def test_a_record_of_many_is_taken_by_every_command(tmp_path: Path) -> None:
    pq.write_table(pa.table(columns()), tmp_path / "people.parquet")
    priced = ["price", "people.parquet", *MARKET, "--engine", "polars", "--out", "x.parquet", "--record", "r.json"]
    calls = {
        "price": priced,
        "verify": ["verify", "r"],
        "verify its document": ["verify", "r/record.json"],
        "audit": ["audit", "r", "--check", "incentives", "--people", "1", "--among", "20"],
        "release": ["release", "r", "people.parquet", "--ledger", "ledger", "--json"],
        "verify the release": ["verify", "r.released"],
        "report": ["report", "r.released", "--no-audit"],
        "compare": ["compare", "r", "r.released"],
    }
    with contextlib.chdir(tmp_path):
        for name, call in calls.items():
            done = CliRunner().invoke(main, call)
            assert done.exit_code == 0, (name, done.output)
        text = (tmp_path / "r" / "record.json").read_bytes()
        piped = CliRunner().invoke(main, ["verify", "-"], input=text)
    assert (tmp_path / "report.html").exists()
    assert (piped.exit_code, "give the folder that holds both files" in piped.stderr) == (2, True)


def test_memory_writes_a_folder_and_reads_it_when_it_runs_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "LARGEST_FILE", N - 1)
    first = run_campaign(file, bids=columns(), audit=False)
    assert first.files[-1] == tmp_path / "sleep" / "record"
    assert first.record is not None
    assert read(first.files[-1]).hash == first.record.hash
    assert ">record<" in (tmp_path / "sleep" / "report.html").read_text()
    with pytest.raises(OutputExists):
        run_campaign(file, bids=columns(), audit=False)
    once._drawn.clear()
    monkeypatch.setenv("HUSHBID_LEDGER", str(tmp_path / "new"))
    with pytest.raises(AlreadyReleased, match="record holds an estimate of these people"):
        run_campaign(file, bids=columns(), audit=False, force=True)


def test_what_an_engine_drew_from_sums_is_not_drawn_again_in_memory(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as small:
        small.setattr(deciding, "LARGEST_HERE", N - 1)
        drawn = on_engine(file, pa.table(columns()))
        again = on_engine(file, pa.table(columns()), force=True)
    assert drawn.release is not None
    assert again.release is not None
    assert drawn.release.summed is not None
    assert again.release.to_dict() == drawn.release.to_dict()
    in_memory = run_campaign(file, bids=columns(), audit=False, force=True)
    assert in_memory.release is not None
    assert in_memory.release.estimate == drawn.release.estimate  # the same losses to the last bit, hence the same draw


def test_a_new_ledger_does_not_draw_again_what_a_summary_holds(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "LARGEST_HERE", N - 1)
    drawn = on_engine(file, pa.table(columns()))
    summary = (tmp_path / "sleep" / "summary.json").read_bytes()
    once._drawn.clear()
    monkeypatch.setenv("HUSHBID_LEDGER", str(tmp_path / "new"))
    with pytest.raises(AlreadyReleased, match=r"summary\.json holds an estimate of these people"):
        on_engine(file, pa.table(columns()), force=True)
    assert drawn.release is not None
    assert (tmp_path / "sleep" / "summary.json").read_bytes() == summary


def test_a_record_of_decisions_is_written_on_an_engine(tmp_path: Path) -> None:
    pq.write_table(pa.table(columns()), tmp_path / "people.parquet")
    hashes = []
    for engine in ("memory", "polars"):
        call = ["price", "people.parquet", *MARKET, "--engine", engine, "--out", f"{engine}.parquet"]
        with contextlib.chdir(tmp_path):
            done = CliRunner().invoke(main, [*call, "--record", f"{engine}.json"])
        assert done.exit_code == 0, done.output
        hashes.append(hushbid.record.read(tmp_path / f"{engine}.json").hash)
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("engine", ["memory", "auto"])
def test_a_bid_that_cannot_be_priced_is_named_by_column_and_row_whoever_reads_it(engine: str, file: Path) -> None:
    bids = columns()["bid"].tolist()
    bids[1] = None
    people = columns(bid=np.array(bids, dtype=float))
    with pytest.raises(BidError) as refused:
        run_campaign(file, bids=pa.table(people), reading=Reading(engine=engine), audit=False)
    assert (refused.value.field, refused.value.row) == ("bid", 1)
    assert "--" not in str(refused.value)


def test_a_file_that_exists_is_replaced_by_force_in_python_and_by_an_option_on_the_command_line(file: Path) -> None:
    run_campaign(file, bids=columns(), audit=False)
    with pytest.raises(OutputExists, match=r"record\.json exists already: force=True replaces\.") as refused:
        run_campaign(file, bids=columns(), audit=False)
    assert refused.value.field == "force"
    pq.write_table(pa.table(columns()), file.with_name("people.parquet"))
    tables = '[bids]\nfile = "people.parquet"\n[data]\nfile = "people.parquet"'
    file.write_text(CAMPAIGN.replace("[data]", tables))
    told = CliRunner().invoke(main, ["run", str(file)])
    assert "record.json exists already: --force replaces." in told.stderr


@pytest.mark.parametrize("engine", ["memory", "auto"])
def test_a_prior_fitted_on_people_who_bid_is_stamped_and_told_whoever_decides(engine: str, file: Path) -> None:
    text = prior_file_text(Uniform(1, 3), Pilot.of(["p3", "p4", "elsewhere"], 3), {})
    file.with_name("prior.json").write_text(text)
    fitted = '{ file = "prior.json" }\naccept_pilot_overlap = true'
    file.write_text(CAMPAIGN.replace('"uniform:1,3"', fitted))
    bought = run_campaign(file, bids=pa.table(columns()), reading=Reading(engine=engine), audit=False)
    stamp = "prior fitted on participants: 2 of those who bid were in the pilot"
    assert bought.record is not None
    assert list(bought.record.stamps) == bought.facts()["stamps"] == [stamp]
    assert f"{stamp}." in bought.text()
    if engine == "auto":
        assert json.loads(bought.files[-1].read_text())["stamps"] == [stamp]


@pytest.mark.parametrize("way", ["memory", "engine", "record"])
def test_losing_all_privacy_is_stamped_wherever_it_was_accepted(way: str, file: Path) -> None:
    text = CAMPAIGN.replace("uniform:1,3", "uniform:0,3").replace("= 500", "= 5\naccept_infinite_loss = true")
    people = columns(bid=np.where(np.arange(N) < 40, 0.0, 2.9))
    file.write_text(text if way != "record" else text.partition("[data]")[0])
    reading = Reading(engine="auto" if way == "engine" else "memory")
    bought = run_campaign(file, bids=pa.table(people), reading=reading, audit=False)
    assert bought.record is not None
    record, facts, text = bought.record, bought.facts(), bought.text()
    if way == "record":
        path, out = bought.files[-1], file.with_name("released.json")
        released = release_recorded(path, people, out=out, accept_infinite_loss=True)
        record, facts, text = released.record, released.facts(), released.text()
    assert list(record.stamps) == facts["stamps"] == ["infinite privacy loss accepted"]
    assert "infinite privacy loss accepted." in text


def test_a_message_that_cannot_be_read_is_told_by_its_senders_row_in_the_bids(tmp_path: Path) -> None:
    (tmp_path / "bids.csv").write_text("id,bid\na,1.5\n\nb,1.2\n")
    (tmp_path / "data.csv").write_text("id,message\nb,secret\n")
    file = tmp_path / "sleep.toml"
    local = CAMPAIGN.replace('"central"', '"local"').replace("[data]", '[bids]\nfile = "bids.csv"\n[data]')
    file.write_text(f'{local}file = "data.csv"\n')
    with pytest.raises(DataError, match="row 1 is row 4 of the spreadsheet") as refused:
        run_campaign(file, audit=False)
    assert "bids.csv, data of these people: The message in row 1 cannot be read" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_late_data_that_nobody_spoke_of_are_refused_by_their_field(file: Path) -> None:
    file.write_text(CAMPAIGN.replace('late = "unpaid"\n', ""))
    on_time = np.where(np.arange(N) % 9 == 0, np.nan, columns()["value"])
    run_campaign(file, bids=columns(value=on_time), audit=False)
    with pytest.raises(InputError, match=r"data\.late must say what is paid") as refused:
        run_campaign(file, bids=columns(), audit=False, force=True)
    assert refused.value.field == "data.late"


@pytest.mark.parametrize(
    ("people", "sentence"),
    [
        ({"bid": [1.5]}, "must have the column 'id'"),
        ({"id": ["a", "b"], "bid": [1.5]}, "one entry per person"),
    ],
)
def test_columns_that_are_missing_or_differ_in_length_are_refused(
    people: dict[str, Any], sentence: str, file: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        run_campaign(file, bids=people)
