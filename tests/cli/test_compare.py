"""``hushbid compare A B``: two campaigns side by side, with nothing drawn and nothing written."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hushbid.cli import main
from tests.extent import each

CAMPAIGN = """\
[market]
setting = "central"
prior = "uniform:1,2"
bounds = [0, 10]
budget = 20

[money]
currency = "EUR"

[bids]
file = "bids.csv"

[data]
file = "data-that-nobody-has-delivered.csv"
"""


def rows(*ids: int, more: float = 0.0) -> str:
    lines = (f"p{place},{1 + place / 20 + more},{'north' if place % 2 else 'south'}" for place in ids)
    return "\n".join(["id,bid,region", *lines])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("bids.csv").write_text(rows(*range(12)))
    Path("a.toml").write_text(CAMPAIGN)
    return tmp_path


def hushbid(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


def told(*files: object) -> dict[str, Any]:
    done = hushbid("compare", *files, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_goal_that_differs_is_named_and_both_are_as_a_run_decides(home: Path) -> None:
    Path("b.toml").write_text(CAMPAIGN.replace("budget = 20", "standard_error = 3"))
    before = sorted(home.rglob("*"))
    found = told("a.toml", "b.toml")
    shown = hushbid("compare", "a.toml", "b.toml").stdout
    assert sorted(home.rglob("*")) == before  # nothing is written
    assert not Path(os.environ["HUSHBID_LEDGER"]).exists()  # nor drawn
    assert found["differences"] == {
        "title": ["a", "b"],
        "market.budget": [20.0, None],
        "market.population": [12, None],  # for whom rounding is reserved
        "market.standard_error": [None, 3.0],
    }
    assert (found["same_people"], found["one_currency"], found["one_question"]) == (True, True, True)
    assert "On the same 12 people." in shown
    for name, side in (("a.toml", found["a"]), ("b.toml", found["b"])):
        text = Path(name).read_text()
        Path(name).write_text(text[: text.index("[data]")])
        run = json.loads(hushbid("run", name, "--json").stdout)
        assert {key: side[key] for key in run if key in side} == {key: run[key] for key in run if key in side}
        assert side["total_payment_minor"] == run["total_payment_minor"]


def test_options_take_the_place_of_what_files_say(home: Path) -> None:
    alone = told("a.toml", "--setting", "local", "--population", "12")  # against itself
    assert alone["differences"] == {"market.setting": ["central", "local"]}
    assert (alone["a"]["called"], alone["b"]["called"]) == ("a.toml", "a.toml, with the options")
    assert alone["a"] == {**told("a.toml", "--budget", "30")["a"], "called": alone["a"]["called"]}
    Path("b.toml").write_text(CAMPAIGN.replace("budget = 20", "standard_error = 3"))
    both = told("a.toml", "b.toml", "--budget", "30")
    assert both["differences"] == {"title": ["a", "b"]}
    assert both["a"]["total_payment_minor"] > alone["a"]["total_payment_minor"]


def test_a_record_its_folder_and_its_campaign_file_compare_as_one_purchase(home: Path) -> None:
    Path("a.toml").write_text(CAMPAIGN[: CAMPAIGN.index("[data]")])
    assert hushbid("run", "a.toml").exit_code == 0
    [record] = Path("a").glob("*.json")
    for pair in (("a.toml", record), (record, "a.toml")):
        found = told(*pair)
        assert found["differences"] == {}
        assert found["same_people"]
        assert {**found["a"], "called": ""} == {**found["b"], "called": ""}
    record.rename("a/record.json")
    assert told("a", "a.toml")["differences"] == {}
    assert "They state the same." in hushbid("compare", "a", "a.toml").stdout


def test_what_is_of_two_kinds_is_not_compared(home: Path) -> None:
    Path("b.toml").write_text(CAMPAIGN.replace("EUR", "USD").replace("[0, 10]", "[0, 20]"))
    shown = hushbid("compare", "a.toml", "b.toml").stdout
    assert "Their currencies differ, so payments are not compared." in shown
    assert "They do not estimate the same, so errors are not compared." in shown
    assert {"market.bounds", "money.currency"} <= set(told("a.toml", "b.toml")["differences"])
    Path("c.toml").write_text(f'question = "mean sleep"\n{CAMPAIGN}')
    assert told("a.toml", "c.toml")["one_question"] is False


def test_a_spending_limit_that_would_stop_a_run_is_told(home: Path) -> None:
    Path("b.toml").write_text(CAMPAIGN.replace("[money]", "[money]\nspending_limit = 1"))
    assert "B pays more than its spending limit of EUR 1.00" in hushbid("compare", "a.toml", "b.toml").stdout
    assert told("a.toml", "b.toml")["b"]["above_spending_limit"] == 1.0


def test_other_people_and_other_prices_are_told_as_what_may_be_the_cause(home: Path) -> None:
    Path("b.toml").write_text(CAMPAIGN.replace("bids.csv", "others.csv"))
    Path("others.csv").write_text(rows(*range(6, 15)))
    assert "A has 12 people, B 9; 6 are in both." in hushbid("compare", "a.toml", "b.toml").stdout
    Path("others.csv").write_text(rows(*range(12), more=0.01))
    found = told("a.toml", "b.toml")
    assert (found["same_people"], found["people_in_both"], found["people_with_other_bids"]) == (False, 12, 12)
    Path("others.csv").write_text(rows(*reversed(range(12))))  # another order is no other people
    assert told("a.toml", "b.toml")["same_people"]


def test_people_without_ids_are_the_same_only_if_every_row_is(home: Path) -> None:
    market = ("--prior", "uniform:1,2", "--budget", 20, "--bounds", "0,10", "--out", "out.csv")
    Path("nameless.csv").write_text(rows(*range(12)).replace("id,bid", "row,bid"))
    assert hushbid("price", "nameless.csv", *market, "--record", "a.json").exit_code == 0
    found = told("a.json", "a.toml")
    assert (found["same_people"], found["bought_from_in_both"]["both"]) == (True, found["a"]["bought_from"])
    Path("bids.csv").write_text(rows(*reversed(range(12))))
    assert "cannot be told" in hushbid("compare", "a.json", "a.toml").stdout


def test_from_whom_both_buy_is_counted_also_by_stratum(home: Path) -> None:
    strata = '\n[strata]\ncolumn = "region"\nshares = { north = 0.4, south = 0.6 }\n'
    Path("b.toml").write_text(CAMPAIGN.replace("budget = 20", "hard_budget = 4"))
    found = told("a.toml", "b.toml")
    both = found["bought_from_in_both"]
    assert both["both"] + both["only_a"] == found["a"]["bought_from"]
    assert both["both"] + both["only_b"] == found["b"]["bought_from"]
    assert sum(both.values()) == 12
    Path("b.toml").write_text(CAMPAIGN + strata)
    assert " of 6" in next(
        line for line in hushbid("compare", "a.toml", "b.toml").stdout.splitlines() if "north" in line
    )


def test_a_prior_from_a_pilot_is_named_without_its_values(home: Path) -> None:
    Path("b.toml").write_text(CAMPAIGN.replace("uniform:1,2", "empirical:1,1.37219,2"))
    Path("c.toml").write_text(CAMPAIGN.replace("uniform:1,2", "empirical:1,1.48,2"))
    shown = [
        hushbid("compare", one, "b.toml", *json).stdout for one in ("a.toml", "c.toml") for json in ((), ("--json",))
    ]
    assert all("empirical" in one and "1.37" not in one for one in shown)
    assert "empirical, of other values" in shown[2]


@each(
    ("arguments", "sentence"),
    [
        (("a.toml", "./a.toml"), "must be two campaigns"),
        (("a.toml",), "a.toml is one campaign: name another, or options that change it"),
        (("a.toml", "b.toml", "c.toml"), "got 3 files"),
        (("a.toml", "bids.csv"), "bids.csv must be a campaign file"),
        (("a.toml", "."), "holds no record.json"),
        (("a.toml", "nothing.toml"), "nothing.toml does not exist"),
        (("a.toml", "-"), "not - for a stream"),
        (("a.toml", ".", "--budget", "5"), "holds no record.json"),
        (("a.toml", "record.json", "--budget", "5"), "record.json is a record, which options cannot change"),
        (("a.toml", "a.json", "--budget", "-5"), "--budget must be a number above 0"),
        (("bids.csv", "--setting", "local"), "--setting is for campaign files"),
        (("a.toml", "b.toml", "--no-baselines"), "--baselines must not be given with campaigns"),
        (("a.toml", "dear.toml"), "dear.toml: standard_error must be above"),
        (("a.toml", "stream.toml"), "not standard input"),
        ((), "--prior is missing"),
    ],
)
def test_what_people_type_wrong_is_answered_in_a_sentence(
    arguments: tuple[str, ...], sentence: str, home: Path
) -> None:
    Path("dear.toml").write_text(CAMPAIGN.replace("budget = 20", "standard_error = 0.001"))
    Path("stream.toml").write_text(CAMPAIGN.replace('"bids.csv"', '"-"'))
    done = hushbid("compare", *arguments)
    assert done.exit_code in (2, 6), done.output
    assert sentence in done.stderr
