"""Options of ``hushbid run``, ``price``, ``release`` and ``report`` take the place of what a file or a record says."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hushbid import Record
from hushbid.allocation import Budget
from hushbid.campaign.notices import is_synthetic
from hushbid.cli import main

CAMPAIGN = """\
question = "mean sleep"
synthetic = true

[market]
setting = "central"
prior = "uniform:1,2"
bounds = [0, 12]
standard_error = 3
accept_rounding = true

[bids]
file = "bids.csv"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("files").mkdir()
    Path("files/sleep.toml").write_text(CAMPAIGN)
    people = [f"p{place},{1 + place / 40},{place % 12}" for place in range(40)]
    Path("people.csv").write_text("\n".join(["id,bid,value", *people]))
    return tmp_path


def hushbid(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


def test_run_takes_options_in_place_of_what_the_file_says_with_paths_from_where_one_is(home: Path) -> None:
    options = ("--budget", 30, "--bids", "people.csv", "--folder", "results", "--title", "Thirty", "--level", 0.9)
    done = hushbid("run", "files/sleep.toml", *options, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["campaign"] == "Thirty"
    goal = Record.read(home / "results" / "outcome.json").outcome.market.stated_goal
    assert isinstance(goal, Budget)
    assert goal.amount == 30


def test_price_decides_about_a_campaign_file_as_run_does_with_options_in_place_of_what_it_says(home: Path) -> None:
    Path("files/bids.csv").write_text(Path("people.csv").read_text())
    priced = hushbid("price", "files/sleep.toml", "--budget", 30, "--out", "d.csv", "--record", "r.json", "--json")
    assert priced.exit_code == 0, priced.output
    run = json.loads(hushbid("run", "files/sleep.toml", "--budget", 30, "--json").stdout)
    found = json.loads(priced.stdout)
    assert {name: run[name] for name in found} == found
    assert Path("d.csv").read_text().splitlines()[1].startswith("p0,")
    record = Record.read(home / "r.json")
    assert (is_synthetic(record), "question: mean sleep" in record.notes) == (True, True)
    wrong = hushbid("price", "files/sleep.toml", "--budget", -1)
    assert (wrong.exit_code, "--budget must be a number above 0" in wrong.stderr) == (2, True)


def test_a_problem_of_run_names_the_line_or_the_option_that_it_came_from(home: Path) -> None:
    wrong = hushbid("run", "files/sleep.toml", "--bids", "people.csv", "--level", 2)
    assert (wrong.exit_code, "--level must be a number above 0" in wrong.stderr) == (2, True)
    assert "line 12, bids.file: " in hushbid("run", "files/sleep.toml").stderr
    dear = hushbid("run", "files/sleep.toml", "--bids", "people.csv", "--standard-error", "0.001")
    assert (dear.exit_code, "standard_error must be above" in dear.stderr) == (6, True), dear.output


def test_what_a_record_does_not_say_is_stated_by_options_of_the_schema(home: Path) -> None:
    priced = ("price", "people.csv", "--prior", "uniform:1,2", "--bounds", "0,12", "--standard-error", 3)
    assert hushbid(*priced, "--out", "out.csv", "--record", "r.json").exit_code == 0
    for command in (("release", "r.json", "people.csv"), ("report", "r.json")):
        wrong = hushbid(*command, "--level", 1)
        assert (wrong.exit_code, "--level must be a number above 0 and at most" in wrong.stderr) == (2, True)
    assert hushbid("release", "r.json", "people.csv", "--question", "mean sleep", "--wave", 2).exit_code == 0
    notes = Record.read(home / "r.released.json").notes
    assert any(note.startswith("waves before") for note in notes)
