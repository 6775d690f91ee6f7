"""Every exit status, reached by a real command; the one table in the reference lists exactly these."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hushbid import Accuracy, Market, Record, Uniform
from hushbid.cli import exit_codes, main
from hushbid.errors import AlreadyReleased, HushbidError, MissingExtra

MARKET = ("--prior", "uniform:1,2")
VECTORS = Path(__file__).parents[1] / "vectors"
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def hushbid(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


def priced(*more: object) -> Result:
    Path("bids.csv").write_text("id,bid\na,1.5\nb,1.2\nc,1.1\n")
    return hushbid("price", "bids.csv", *MARKET, "--out", "out.csv", *more)


def altered() -> Result:
    values = json.loads((VECTORS / "record-price.json").read_text())
    Path("record.json").write_text(json.dumps({**values, "hash": "0" * 64}))
    return hushbid("verify", "record.json")


def unchecked() -> Result:
    strata = {"strata": ["a", "b"] * 20, "shares": {"a": 0.3, "b": 0.7}}
    market = Market(prior=Uniform(1, 2), goal=Accuracy(0.2), setting="local", **strata)  # type: ignore[arg-type]
    Record.of(market.acquire([1 + row / 40 for row in range(40)])).write("record.json")
    return hushbid("verify", "record.json")


def bad_row() -> Result:
    Path("bids.csv").write_text("id,bid\na,1.5\nb,-1\n")
    return hushbid("price", "bids.csv", *MARKET, "--budget", 5)


def exists() -> Result:
    Path("out.csv").write_text("mine")
    return priced("--budget", 5)


def unwritable() -> Result:
    Path("file").write_text("")
    return priced("--budget", 5, "--record", "file/record.json")


COMMANDS: dict[str, tuple[int, Callable[[], Result]]] = {
    "done": (0, lambda: priced("--budget", 5)),
    "a record that holds": (0, lambda: hushbid("verify", VECTORS / "record-price.json")),
    "a hash that does not fit": (1, altered),
    "an option": (2, lambda: priced("--budget", -1)),
    "a campaign file": (2, lambda: hushbid("run", "none.toml")),
    "rents that are not checked": (3, unchecked),
    "a row": (4, bad_row),
    "an output": (5, exists),
    "a spending limit": (6, lambda: priced("--budget", 5, "--spending-limit", 0.01)),
    "an accuracy": (6, lambda: priced("--standard-error", 1e-9)),
    "a folder": (7, unwritable),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_every_way_to_end_has_its_status(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, run = COMMANDS[what]
    done = run()
    assert done.exit_code == status, done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("problem", "status"), [(AlreadyReleased("x"), 5), (MissingExtra("x"), 7)], ids=lambda x: str(x)
)
def test_what_takes_a_whole_campaign_or_another_environment_is_mapped_too(problem: HushbidError, status: int) -> None:
    assert exit_codes.exit_code(problem) == status


def test_a_verification_in_json_says_the_verdict_that_the_status_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    altered()
    assert json.loads(hushbid("verify", "record.json", "--json").stdout)["verdict"] == "fails"
    Path("record.json").unlink()
    unchecked()
    told = json.loads(hushbid("verify", "record.json", "--json").stdout)
    assert told["verdict"] == "incomplete"
    assert {check["status"] for check in told["checks"]} <= {"holds", "incomplete", "skipped"}


def test_the_reference_lists_every_status_once() -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = page.partition("**Exit status.**")[2].partition("**Streams.**")[0]
    listed = [int(one) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.M) for one in row.split(",")]
    assert sorted(listed) == [*range(8), 70, 130, 141, 143]
