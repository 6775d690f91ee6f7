"""``hushbid price`` and ``hushbid run`` on engines.

As processes of their own where that matters (streams, signals, what another process sees), else inside this one.
"""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from hushbid.cli import main
from hushbid.common import staging
from hushbid.engine.pricing import CountedTable
from hushbid.mechanism import Market
from hushbid.priors import Uniform

N = 3000
MARKET = ("--prior", "uniform:1,3", "--bounds", "0,12", "--variance", "2", "--buyer-weight", "500")
ENGINES = ("auto", "polars", "duckdb")
CAMPAIGN = """\
title = "Sleep"

[market]
setting = "central"
prior = "uniform:1,3"
bounds = [0, 12]
variance = 2
buyer_weight = 500

[money]
currency = "EUR"

[bids]
file = "people"

[data]
file = "people"
"""


LIGHT = """
import sys

class WithoutPandas:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, WithoutPandas())
"""
"""pyarrow loads pandas where it is installed, which takes longer than all we do here."""

COMMAND = f"{LIGHT}\nimport runpy\nrunpy.run_module('hushbid', run_name='__main__', alter_sys=True)"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", COMMAND, *map(str, arguments)]


def succeeds(*arguments: object, cwd: Path) -> Any:
    """What the command tells programs; in this process."""
    with contextlib.chdir(cwd):
        done = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*arguments: object, cwd: Path) -> str:
    """What the command says when it refuses; in this process."""
    with contextlib.chdir(cwd):
        done = CliRunner().invoke(main, [*map(str, arguments)])
    assert (done.exit_code in range(2, 8), done.stdout) == (True, ""), done.output  # which: test_exit_codes
    return done.stderr


def people(**changes: Any) -> pa.Table:
    rng = np.random.default_rng(1)
    columns = {"id": [f"p{k}" for k in range(N)], "bid": rng.uniform(1, 3, N), "value": rng.uniform(0, 12, N)}
    return pa.table({**columns, **changes})


def folder(table: pa.Table, path: Path) -> Path:
    """A folder of files, whose rows count on from one to the next."""
    path.mkdir()
    for part in range(3):
        pq.write_table(table.slice(part * N // 3, N // 3), path / f"part-{part}.parquet", row_group_size=300)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder(people(), tmp_path / "people")
    (tmp_path / "sleep.toml").write_text(CAMPAIGN)
    return tmp_path


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_every_engine_writes_what_memory_does(home: Path) -> None:
    whole = people()
    pq.write_table(whole, home / "people.parquet")
    expected = succeeds("price", "people.parquet", *MARKET, "--out", "memory.parquet", cwd=home)
    table = pq.read_table(home / "memory.parquet")
    for engine in ENGINES:
        facts = succeeds("price", "people", *MARKET, "--engine", engine, "--out", f"{engine}.parquet", cwd=home)
        for name in set(expected) - {
            "objective",
            "lower_bound",
            "incentive_error",
            "standard_error",
            "worst_standard_error",
        }:
            assert facts[name] == expected[name], name
        assert facts["objective"] == pytest.approx(expected["objective"], rel=1e-12)
        assert facts["passes"] <= 4
        found = pq.read_table(home / f"{engine}.parquet")
        assert found.column_names == table.column_names
        for name in ("id", "payment_minor", "currency"):
            assert found[name].to_pylist() == table[name].to_pylist(), name
        np.testing.assert_allclose(found["privacy_loss"].to_numpy(), table["privacy_loss"].to_numpy(), rtol=1e-9)
        assert (home / f"{engine}.parquet").stat().st_mode & 0o077 == 0


def test_among_equals_memory_and_engines_buy_from_the_same_people_however_the_file_is_sorted(tmp_path: Path) -> None:
    bids = np.random.default_rng(2).choice([0.59, 0.60, 0.61, 0.63, 1.39], 300)
    drawn = pa.table({"id": [f"p{k}" for k in range(300)], "bid": bids})
    market = ["--prior", "empirical:0.31,0.59,0.6,0.61,0.63,1.23,1.39,2.33", "--setting", "local"]
    market += ["--buyer-weight", "30", "--variance", "0.25"]
    bought = []
    for name, people in (("drawn", drawn), ("sorted", drawn.sort_by([("bid", "descending")]))):
        pq.write_table(people, tmp_path / f"{name}.parquet")
        for engine in ("memory", "polars", "duckdb"):
            out = f"{name}-{engine}.parquet"
            succeeds("price", f"{name}.parquet", *market, "--engine", engine, "--out", out, cwd=tmp_path)
            found = pq.read_table(tmp_path / out)
            columns = (found[column].to_pylist() for column in ("id", "privacy_loss", "payment_minor"))
            bought.append({id: paid for id, loss, paid in zip(*columns, strict=True) if loss > 0.0})
    assert 1 < len(bought[0]) < 200
    assert all(some == bought[0] for some in bought)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"bid": [1.5, 1.5]}, "must have a column of ids"),
        ({"id": ["ann", "ann"], "bid": [1.5, 1.5]}, "must name everybody once"),
    ],
)
def test_where_identity_decides_people_without_names_are_not_priced_in_memory(
    columns: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    command = ("price", "people.parquet", *MARKET, "--setting", "local", "--check-ids", "off")
    assert sentence in refused(*command, cwd=tmp_path)


@pytest.mark.parametrize("engine", ENGINES)
def test_bad_rows_are_counted_and_named_before_anything_is_written(engine: str, tmp_path: Path) -> None:
    bids: list[float | None] = people()["bid"].to_pylist()
    bids[7], bids[1500], bids[2001], bids[2002] = None, float("nan"), -0.777, 0.777
    table = people(bid=bids)
    folder(table, tmp_path / "people")
    call = ("price", "people", *MARKET, "--engine", engine, "--out", "out.parquet")
    told = refused(*call, cwd=tmp_path)
    assert "4 of 3000 rows cannot be priced" in told
    assert "2 missing or not a number, 1 negative, 1 below the prior's support" in told
    assert "row 7 is missing or not a number; row 1500 is missing" in told
    assert "row 2001 is negative; row 2002 is below" in told
    assert "--on-bad-rows drop" in told
    assert "777" not in told
    assert names(tmp_path) == ["people"]
    facts = succeeds(*call, "--on-bad-rows", "drop", cwd=tmp_path)
    assert (facts["people"], facts["dropped_rows"]) == (N - 4, 4)
    good = np.delete(people()["bid"].to_numpy(), [7, 1500, 2001, 2002])
    market = Market(prior=Uniform(1, 3), bounds=(0, 12), variance=2, buyer_weight=500, user_weight=0)
    found = pq.read_table(tmp_path / "out.parquet")
    np.testing.assert_allclose(found["privacy_loss"].to_numpy(), market.acquire(good).privacy_loss, rtol=1e-9)


def test_memory_leaves_bad_rows_out_and_names_the_others_as_they_stand_in_the_file(tmp_path: Path) -> None:
    rows = ["a,1.5", "b,", "c,oops", "d,-1", "e,0.5", "f,2", "g,inf"]
    (tmp_path / "people.csv").write_text("\n".join(["id,bid", *rows]) + "\n")
    call = ("price", "people.csv", *MARKET, "--out", "out.csv")
    assert "rows 1, 2 do not" in refused(*call, cwd=tmp_path)
    facts = succeeds(*call, "--on-bad-rows=drop", cwd=tmp_path)
    assert (facts["people"], facts["dropped_rows"]) == (3, 4)
    assert [row.split(",")[0] for row in (tmp_path / "out.csv").read_text().splitlines()[1:]] == ["a", "f", "g"]
    (tmp_path / "people.csv").write_text("\n".join(["id,bid", *rows, "f,2"]) + "\n")
    told = refused(*call, "--force", "--on-bad-rows=drop", cwd=tmp_path)
    assert "row 7 does not (the first repeats row 5" in told
    assert succeeds(*call, "--force", "--on-bad-rows=drop", "--check-ids=off", cwd=tmp_path)["people"] == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_repeated_ids_are_refused_unless_told_not_to_look(engine: str, tmp_path: Path) -> None:
    folder(people(id=[f"p{k % 2999}" for k in range(N)]), tmp_path / "people")
    call = ("price", "people", *MARKET, "--engine", engine, "--out", "out.parquet")
    assert "3000 rows have 2999 different ids" in refused(*call, cwd=tmp_path)
    assert names(tmp_path) == ["people"]
    assert succeeds(*call, "--check-ids", "off", cwd=tmp_path)["people"] == N


@pytest.mark.parametrize("engine", ENGINES)
def test_a_campaign_runs_on_an_engine_and_its_estimate_is_drawn_once(engine: str, home: Path) -> None:
    first = succeeds("run", "sleep.toml", "--engine", engine, "--no-audit", cwd=home)
    files = ["decisions.parquet", "estimate.json", "payments.parquet", "record.json", "report.html", "summary.json"]
    assert names(home / "sleep") == files
    whole, normal = first["estimate"]["interval"], first["estimate"]["normal_interval"]
    assert whole["low"] <= normal["low"] <= normal["high"] <= whole["high"]
    assert "exists already" in refused("run", "sleep.toml", "--engine", engine, cwd=home)
    again = succeeds("run", "sleep.toml", "--force", "--no-audit", cwd=home)
    assert (again["estimate"], again["drawn_before"]) == (first["estimate"], True)
    payments = pq.read_table(home / "sleep" / "payments.parquet").to_pydict()
    assert list(payments) == ["id", "payment_minor", "payment", "currency", "delivered"]
    assert payments["delivered"].count("yes") == first["bought_from"]
    assert sum(payments["payment_minor"]) == first["total_payment_minor"]


def test_people_who_are_recorded_are_decided_about_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the engine priced people who are decided about in memory")

    monkeypatch.setattr(CountedTable, "price", refuse)
    run = succeeds("run", "sleep.toml", "--engine", "polars", "--no-audit", cwd=home)
    call = ("--engine", "polars", "--out", "out.parquet", "--record", "record.json")
    priced = succeeds("price", "people", *MARKET, *call, cwd=home)
    assert run["people"] == priced["people"] == N
    assert run["passes"] == 3  # counting, looking for repeated ids, taking everybody here


def test_memory_and_an_engine_show_one_estimate_and_neither_draws_again(home: Path) -> None:
    pq.write_table(people(), home / "people.parquet")
    memory = CAMPAIGN.replace('"people"', '"people.parquet"')
    (home / "sleep.toml").write_text(memory)
    first = succeeds("run", "sleep.toml", "--engine", "memory", "--no-audit", cwd=home)
    (home / "again.toml").write_text(memory)
    for engine in ("polars", "duckdb"):
        again = succeeds("run", "again.toml", "--engine", engine, "--force", "--no-audit", cwd=home)
        assert (again["drawn_before"], again["estimate"]["estimate"]) == (True, first["estimate"]["estimate"])
    later = people(value=[x / 2 for x in people()["value"].to_pylist()])
    pq.write_table(later, home / "people.parquet")
    call = ("run", "again.toml", "--engine", "polars", "--force", "--no-audit")
    assert "was drawn from other data" in refused(*call, cwd=home)
    (home / "again.toml").write_text("wave = 2\n" + memory)
    second = succeeds(*call, cwd=home)
    assert (second["estimate"]["waves_before"], second["drawn_before"]) == (1, False)
    assert second["stamps"][0].startswith("wave 2: this question was answered from these people's data once before")
    assert json.loads((home / "again" / "summary.json").read_text())["stamps"] == second["stamps"]
    third = succeeds("run", "again.toml", "--engine", "memory", "--force", "--no-audit", cwd=home)
    assert (third["drawn_before"], third["estimate"]) == (True, second["estimate"])


def test_a_synthetic_campaign_on_an_engine_is_drawn_again_and_says_so(home: Path) -> None:
    (home / "sleep.toml").write_text("synthetic = true\n" + CAMPAIGN)
    found = [succeeds("run", "sleep.toml", "--engine", "duckdb", "--force", "--no-audit", cwd=home) for _ in range(2)]
    assert found[0]["estimate"]["estimate"] != found[1]["estimate"]["estimate"]
    assert not Path(os.environ["HUSHBID_LEDGER"]).exists()
    for name in ("decisions", "payments"):
        assert set(pq.read_table(home / "sleep" / f"{name}.parquet")["synthetic"].to_pylist()) == {"yes"}
    for name in ("estimate", "summary"):
        assert "synthetic" in (home / "sleep" / f"{name}.json").read_text()
    assert found[1]["stamps"][0].startswith("synthetic: nobody")


@pytest.mark.parametrize("engine", ENGINES)
def test_data_that_are_texts_where_numbers_belong_are_refused_by_column(engine: str, home: Path) -> None:
    (home / "sleep.toml").write_text(CAMPAIGN + 'value = "id"\n')
    assert "olumn 'id' must hold numbers" in refused("run", "sleep.toml", "--engine", engine, cwd=home)


def test_who_does_not_deliver_is_not_paid_and_the_others_stay(home: Path) -> None:
    whole = people()
    succeeds("run", "sleep.toml", "--no-audit", cwd=home)
    before = pq.read_table(home / "sleep" / "payments.parquet").to_pylist()
    gone = next(row for row, paid in enumerate(before) if paid["delivered"] == "yes")
    other = home / "other"
    other.mkdir()
    folder(
        people(value=[None if row == gone else x for row, x in enumerate(whole["value"].to_pylist())]), other / "people"
    )
    (other / "sleep.toml").write_text('question = "mean sleep in May"\n' + CAMPAIGN)
    assert succeeds("run", "sleep.toml", "--no-audit", cwd=other)["estimate"]["dropped_out"] == 1
    after = pq.read_table(other / "sleep" / "payments.parquet").to_pylist()
    assert after[gone] == {**before[gone], "payment_minor": 0, "payment": 0.0, "delivered": "no"}
    assert after[:gone] + after[gone + 1 :] == before[:gone] + before[gone + 1 :]


BAD_CALLS = {
    "decisions on standard output": ((), "--out FILE.parquet"),
    "a spending limit": (
        ("--out", "x.parquet", "--spending-limit", "1"),
        "above the spending limit of 1.00: nothing was bought",
    ),
    "a spending limit, with a forecast": (
        ("--out", "x.parquet", "--spending-limit", "1"),
        "hushbid plan forecasts what such a campaign costs",
    ),
    "no ids": (("--out", "x.parquet", "--id-column", "name"), "no column 'name'"),
    "a master for another engine": (("--engine", "polars", "--spark-master", "yarn"), "goes with --engine spark"),
    "spark without a session": (("--engine", "spark", "--out", "x.parquet"), "a running session"),
    "an address for another engine": (("--out", "s3a://bucket/x.parquet"), "it needs --engine spark"),
    "another ending": (("--out", "x.csv"), "--out FILE.parquet"),
}


@pytest.mark.parametrize("fault", BAD_CALLS)
def test_what_an_engine_cannot_do_is_refused_before_anything_is_written(
    fault: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, sentence = BAD_CALLS[fault]
    if fault == "spark without a session":  # other tests may have left theirs running in this process
        monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    assert sentence in refused("price", "people", *MARKET, *options, cwd=home)
    assert names(home) == ["people", "sleep.toml"]


def test_data_elsewhere_than_beside_the_bids_are_refused(home: Path) -> None:
    folder(people(), home / "data")
    (home / "sleep.toml").write_text(CAMPAIGN.replace('[data]\nfile = "people"', '[data]\nfile = "data"'))
    assert "must be the table of bids.file" in refused("run", "sleep.toml", cwd=home)
    assert names(home) == ["data", "people", "sleep.toml"]


def test_a_prior_fitted_to_these_very_people_is_refused_on_an_engine_too(home: Path) -> None:
    pilot = "".join(f"p{k},{1 + k / 20}\n" for k in range(30))
    (home / "pilot.csv").write_text("id,bid\n" + pilot)
    succeeds("fit-prior", "pilot.csv", "--out", "prior.json", cwd=home)
    call = (
        "price",
        "people",
        "--prior",
        "prior.json",
        "--budget",
        "900",
        "--out",
        "x.parquet",
        "--on-bad-rows",
        "drop",
    )
    assert "30 of the people took part who now bid" in refused(*call, cwd=home)
    assert succeeds(*call, "--accept-pilot-overlap", cwd=home)["people"] > 0


# -- interruptions -----------------------------------------------------------------------------------------------------

STOP_AT = """
{light}
import os, signal
import hushbid.{module} as module
from hushbid.__main__ import main

calls = 0
*owner, name = "{name}".split(".")
for part in owner:
    module = getattr(module, part)
inner = getattr(module, name)
def counted(*arguments, **options):
    global calls
    calls += 1
    if calls == {at}:
        os.kill(os.getpid(), {number})
    return inner(*arguments, **options)
setattr(module, name, counted)
main()
"""
STOPS = {
    "while solving": ("engine.people", "Progress", 2, signal.SIGINT),
    "while pricing": ("engine.adapter", "with_output", 3, signal.SIGINT),
    "while pricing, for good": ("engine.adapter", "with_output", 3, signal.SIGKILL),
    "while DuckDB prices": ("engine.payouts", "DecisionsKernel.__call__", 1, signal.SIGINT),
    "while DuckDB prices, politely": ("engine.payouts", "DecisionsKernel.__call__", 1, signal.SIGTERM),
    "while checking": ("engine.payouts", "Paid", 2, signal.SIGTERM),
    "before giving names": ("common.staging", "_same", 1, signal.SIGKILL),
}


@pytest.mark.parametrize("when", STOPS)
def test_a_stopped_job_leaves_nothing_half_done(when: str, home: Path) -> None:
    module, name, at, number = STOPS[when]
    code = STOP_AT.format(light=LIGHT, module=module, name=name, at=at, number=int(number))
    engine = "duckdb" if "DuckDB" in when else "auto"
    call = ("price", "people", *MARKET, "--engine", engine, "--out", "out.parquet")
    done = subprocess.run([sys.executable, "-c", code, *call], cwd=home, capture_output=True, text=True, timeout=300)
    assert done.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number], done.stderr
    shown = [one for one in names(home) if not one.startswith(".")]
    assert shown == ["people", "sleep.toml"]
    if number is not signal.SIGKILL:
        assert names(home) == shown  # temporary files are gone
        return
    assert succeeds(*call, cwd=home)["people"] == N
    assert names(home) == ["out.parquet", "people", "sleep.toml"]  # and so is what a killed job left


@pytest.mark.parametrize("what", ["counting and bounding", "pricing and writing"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_interrupt_from_outside_stops_other_engines_too(engine: str, what: str, home: Path) -> None:
    """Progress on a terminal tells what the job is at; then the signal comes from another process."""
    ours, theirs = pty.openpty()
    call = command("price", "people", *MARKET, "--engine", engine, "--out", "out.parquet")
    running = subprocess.Popen(call, cwd=home, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    read_until(ours, what.encode())
    running.send_signal(signal.SIGINT)
    shown = read_until(ours, None)
    running.communicate(timeout=300)
    os.close(ours)
    assert running.returncode in (0, 130), shown  # it may have been quicker than the signal
    if running.returncode == 0 or "out.parquet" in names(home):
        assert pq.read_metadata(home / "out.parquet").num_rows == N
    assert not [one for one in names(home) if one.startswith(".")]


STOP_BESIDE_A_THREAD_OF_DUCKDB = f"""
{LIGHT}
import signal, threading
import duckdb
from hushbid.__main__ import main
from hushbid.cli import demo
from hushbid.cli.common import command

inside = threading.Event()

def endless(rows):
    while True:
        inside.set()
        threading.Event().wait(0.0005)

def work():
    connection = duckdb.connect()
    connection.create_function("endless", endless, ["BIGINT"], "BIGINT", type="arrow")
    connection.sql("SELECT endless(range) FROM range(10)").fetchall()

@command("demo")
def stand_in(as_json):
    threading.Thread(target=work, daemon=True).start()
    inside.wait(100)
    print("so far")
    signal.raise_signal(int(sys.argv[2]))

demo.command = stand_in
main()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_while_a_thread_of_duckdb_runs_our_code_ends_in_its_status(number: signal.Signals, status: int) -> None:
    """Python ends such a thread when it shuts down, and the C++ around it then aborts the process."""
    code = STOP_BESIDE_A_THREAD_OF_DUCKDB.replace("int(sys.argv[2])", str(int(number)))
    done = subprocess.run([sys.executable, "-c", code, "demo"], capture_output=True, text=True, timeout=300)
    told = "\nInterrupted: nothing is left half written.\n" if number is signal.SIGINT else ""
    assert (done.returncode, done.stdout, done.stderr) == (status, "so far\n", told)


IN_THE_BACKGROUND = f"""
{LIGHT}
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as shells start background jobs; Polars listens all the same
from hushbid.engine.opening import open_engine

class Count:
    columns = ["bid"]

    def __call__(self, batch, start):
        if start == at:
            os.kill(os.getpid(), signal.SIGINT)
        return batch.num_rows

engine = open_engine(sys.argv[1], "polars")
for at in range(0, 1 << 20, 1 << 18):
    try:
        print(engine.reduce(Count(), 0))
    except KeyboardInterrupt:
        pass
"""


def test_an_interrupt_in_the_background_never_ends_a_polars_pass_early_without_a_word(tmp_path: Path) -> None:
    rows = 1 << 22
    pq.write_table(pa.table({"bid": np.ones(rows)}), tmp_path / "ones.parquet", row_group_size=1 << 17)
    call = [sys.executable, "-c", IN_THE_BACKGROUND, str(tmp_path / "ones.parquet")]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=True)
    assert set(done.stdout.split()) <= {str(rows)}


def read_until(descriptor: int, words: bytes | None) -> bytes:
    """What is shown on a terminal until some words, or until it is closed."""
    shown = b""
    while words is None or words not in shown:
        try:
            part = os.read(descriptor, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        shown += part
    return shown


def test_a_dead_jobs_room_is_cleared_and_a_living_ones_is_not(tmp_path: Path) -> None:
    living = staging._Room.beside(tmp_path / "out")
    dead = tmp_path / ".out.dead.tmp"
    dead.mkdir()
    (dead / ".lock").touch()
    strange = tmp_path / ".out.strange.tmp"
    strange.mkdir()
    third = staging._Room.beside(tmp_path / "out")
    assert set(names(tmp_path)) == {living.folder.name, third.folder.name, strange.name}
    living.clear()
    third.clear()


def test_what_spark_writes_to_an_address_is_checked_before_it_takes_its_name(home: Path, spark_session: Any) -> None:
    out = f"file://{home}/out.parquet"
    call = ("price", f"file://{home}/people", *MARKET, "--check-ids", "off", "--out", out)
    assert "above the spending limit of 1.00" in refused(*call, "--spending-limit", "1", cwd=home)
    assert names(home) == ["people", "sleep.toml"]
    facts = succeeds(*call, cwd=home)
    assert names(home) == ["out.parquet", "people", "sleep.toml"]
    written = pq.read_table(home / "out.parquet")
    assert (written.num_rows, sum(written["payment_minor"].to_pylist())) == (N, facts["total_payment_minor"])
    assert "exists already" in refused(*call, cwd=home)
    assert succeeds(*call, "--force", cwd=home) == facts
    assert names(home) == ["out.parquet", "people", "sleep.toml"]
    missing = ("price", f"file://{home}/nobody", *MARKET, "--out", f"file://{home}/other.parquet")
    assert "Spark cannot read" in refused(*missing, cwd=home)


# -- a terminal --------------------------------------------------------------------------------------------------------


def test_every_pass_is_told_on_a_terminal_and_only_there(home: Path) -> None:
    call = command("price", "people", *MARKET, "--out", "out.parquet", "--json")
    ours, theirs = pty.openpty()
    running = subprocess.Popen(call, cwd=home, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = read_until(ours, None).decode()
    os.close(ours)
    assert json.loads(running.communicate(timeout=300)[0])["people"] == N
    for words in ("counting and bounding", "looking for repeated ids", "gathering", "pricing and writing", "checking"):
        assert f"{words}" in shown
    assert shown.endswith("\r\033[2K")
    done = subprocess.run([*call, "--force"], cwd=home, capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr == ""
