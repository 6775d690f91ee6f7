"""The benchmark table measures what it says, and every benchmark file can be run by it."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from benchmarks import run
from benchmarks.harness import Row, memory_ratio, time_ratio
from hushbid.disclosure.ledger.store import account
from tests.extent import each


@each("path", sorted(run.HERE.glob("bench_*.py")))
def test_every_benchmark_file_has_a_run_function(path: Path) -> None:
    assert callable(import_module(f"benchmarks.{path.stem}").run)


def test_time_ratio_calls_both_in_turn() -> None:
    calls: list[str] = []
    row = time_ratio("a", lambda: calls.append("ours"), against="b", theirs=lambda: calls.append("theirs"), repeats=2)
    assert calls == ["ours", "theirs"] * 3
    assert row.ratio > 0


def test_memory_ratio_counts_the_peak_of_arrays_not_what_is_left() -> None:
    array = np.zeros(10**6)
    row = memory_ratio("copies", lambda: (array + 1) + (array + 2), against="one array", bytes_of_theirs=array.nbytes)
    assert 2 <= row.ratio <= 3.1


@pytest.mark.parametrize(("ratio", "limit", "kept"), [(0.5, 1.0, True), (1.5, 1.0, False), (9.0, None, True)])
def test_a_promise_is_kept_up_to_its_limit(ratio: float, limit: float | None, kept: bool) -> None:
    assert Row(what="", against="", ratio=ratio, limit=limit).kept is kept


@pytest.mark.parametrize(("ratio", "status", "word"), [(0.5, 0, "kept"), (1.5, 1, "MISSED")])
def test_the_table_is_printed_and_saved_and_a_broken_promise_is_an_error(
    ratio: float,
    status: int,
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [Row(what="ours", against="theirs", ratio=ratio, limit=1.0)]
    monkeypatch.setattr("benchmarks.bench_start.run", lambda: rows)
    assert run.main(["start"]) == status
    assert word in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "bench.json").read_text())[0]["ratio"] == ratio


def test_what_a_benchmark_releases_is_not_kept_among_the_releases_of_this_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, seen = account(), list[Path]()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("benchmarks.bench_start.run", lambda: seen.append(account()) or [])
    assert run.main(["start"]) == 0
    assert account() == ours
    assert seen != [ours]
    assert not seen[0].exists()


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["nonsense"]) == 2
    assert "no benchmark called nonsense" in capsys.readouterr().err
