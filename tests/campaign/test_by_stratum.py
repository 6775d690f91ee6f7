"""An estimate for each stratum: ordinary purchases in folders of their own, refused and written together."""

import contextlib
import csv
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import hushbid
from hushbid import Accuracy, Market, Record, Uniform
from hushbid.campaign import PurchaseByStratum, Reading, read_campaign, run_by_stratum, run_campaign
from hushbid.campaign.by_stratum import folders_of
from hushbid.campaign.deciding import DecisionInMemory
from hushbid.campaign.recorded import release_recorded
from hushbid.cli import main
from hushbid.errors import (
    AlreadyReleased,
    DataError,
    HushbidError,
    InputError,
    MarketError,
    OutputExists,
    Unreachable,
    Unwritable,
)

SIZES = {"north": 30, "south": 25, "a/b": 3}
ERRORS = {"a/b": 3.5, "north": 1.5, "south": 2.0}
LABELS = [name for name, size in SIZES.items() for _ in range(size)]
N = len(LABELS)
CAMPAIGN = """\
title = "Sleep"
question = "mean sleep"

[market]
setting = "central"
prior = "uniform:1,3"
bounds = [0, 12]
variance = 2
standard_error = {{ north = 1.5, south = 2, "a/b" = 3.5 }}
{more}
[strata]
column = "region"
each = true

[money]
currency = "EUR"
"""
DATA = """
[data]
"""


def columns(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    people = {"id": [f"p{k}" for k in range(N)], "bid": rng.uniform(1, 3, N), "value": rng.uniform(4, 9, N)}
    return {**people, "region": LABELS, **changes}


def campaign(tmp_path: Path, *, more: str = "", data: str = DATA, **replaced: str) -> Path:
    path, text = tmp_path / "sleep.toml", CAMPAIGN.format(more=more) + data
    for old, new in replaced.items():
        line = next(line for line in text.splitlines() if line.startswith(old))
        text = text.replace(line, new, 1)
    path.write_text(text)
    return path


def bought(file: Path, people: dict[str, Any] | None = None, **how: Any) -> PurchaseByStratum:
    return run_by_stratum(file, bids=columns() if people is None else people, audit=False, **how)


def losses_of(found: PurchaseByStratum) -> np.ndarray:
    """Everybody's privacy loss, in the order of the bids."""
    losses = np.zeros(N)
    for name, part in found.parts.items():
        assert isinstance(part.decided, DecisionInMemory)
        losses[np.array(LABELS) == name] = part.decided.outcome.privacy_loss
    return losses


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_stratum_is_an_ordinary_purchase_with_files_that_are_verified(tmp_path: Path) -> None:
    whole = bought(campaign(tmp_path))
    assert list(whole.parts) == ["a/b", "north", "south"]
    table = {row["stratum"]: row for row in rows(tmp_path / "sleep" / "strata.csv")}
    paid = 0
    for name, folder in {"a/b": "a%2Fb", "north": "north", "south": "south"}.items():
        part, place = whole.parts[name], tmp_path / "sleep" / folder
        names = {"decisions.csv", "payments.csv", "estimate.json", "report.html", "record.json"}
        assert {path.name for path in place.iterdir()} == names
        record = Record.read(place / "record.json")
        assert hushbid.verify(record).ok
        assert record.ids == tuple(f"p{k}" for k in range(N) if LABELS[k] == name)
        assert record.outcome.market.strata is None
        assert f"question: mean sleep, {name}" in record.notes
        assert record.release is not None
        assert part.release is not None
        assert float(table[name]["standard_error"]) == pytest.approx(ERRORS[name], abs=0.02)
        assert float(table[name]["estimate"]) == pytest.approx(part.release.one_estimate, abs=0.1)
        nearest = min(max(float(table[name]["estimate"]), 0.0), 12.0)  # the interval is cut to the range, and only that
        assert float(table[name]["low"]) <= nearest <= float(table[name]["high"])
        assert (int(table[name]["people"]), table[name]["folder"]) == (SIZES[name], folder)
        owed = sum(int(row["payment_minor"]) for row in rows(place / "payments.csv"))
        assert int(table[name]["payment_minor"]) == owed
        paid += owed
    assert whole.decided_facts()["total_payment_minor"] == paid > 0
    assert "Estimate of mean sleep, north: " in whole.text()
    facts = whole.facts()
    assert [one["stratum"] for one in facts["strata"]] == list(whole.parts)
    assert "standard_error" not in facts
    assert all(Path(one).exists() for one in facts["files"])


def test_estimates_are_drawn_once_for_each_stratum_from_a_file_or_from_its_record(tmp_path: Path) -> None:
    file = campaign(tmp_path, data="")
    before = bought(file, {name: column for name, column in columns().items() if name != "value"})
    assert before.text().endswith("Next: collect the data, add [data] to the campaign file and run it again.")
    stated = {row["stratum"]: float(row["standard_error"]) for row in rows(tmp_path / "sleep" / "decided.csv")}
    assert stated == pytest.approx(ERRORS)
    place = tmp_path / "sleep" / "north" / "outcome.json"
    released = release_recorded(place, columns(), out=tmp_path / "released.json")
    assert hushbid.verify(released.record).ok
    after = bought(campaign(tmp_path))  # nothing of the first run is in the way
    north = after.parts["north"].answer
    assert north is not None
    assert (north.before, north.release.estimate) == (True, released.answer.release.estimate)
    assert [part.answer is not None and part.answer.before for part in after.parts.values()] == [False, True, False]
    with pytest.raises(OutputExists, match=r"strata\.csv exists already"):
        bought(file := campaign(tmp_path))
    again = run_by_stratum(file, bids=pl.DataFrame(columns()), audit=False, force=True)
    assert [one.release.estimate for one in again.parts.values() if one.release] == [
        one.release.estimate for one in after.parts.values() if one.release
    ]
    with pytest.raises(AlreadyReleased, match="Stratum 'a/b': "):
        bought(file, columns(value=columns()["value"] / 2), force=True)


REFUSED: list[tuple[dict[str, Any], dict[str, Any], type[HushbidError], str]] = [
    ({"standard_error": "standard_error = 0.7"}, {}, Unreachable, "Stratum 'a/b': standard_error must be above"),
    ({"standard_error": "budget = 5"}, {}, InputError, "split it between strata"),
    ({"standard_error": "standard_error = { north = 2 }"}, {}, InputError, "must name each stratum"),
    ({"standard_error": "standard_error = { north = 2, south = 0 }"}, {}, InputError, "a number above 0, or one for"),
    ({"currency": 'currency = "EUR"\nspending_limit = 1'}, {}, MarketError, r"spending limit of EUR 1\.00.*95 of 100"),
    ({"column": 'column = "id"', "standard_error": "standard_error = 9"}, {}, InputError, "at most 40 different"),
    ({}, {"bid": [*columns()["bid"][:-1], 0.5]}, HushbidError, "but row 57 does"),
    ({}, {"id": ["p1", *columns()["id"][1:]]}, InputError, "must name everybody once"),
    ({}, {"region": ["", *LABELS[1:]]}, InputError, "must hold a stratum, but row 0 does not"),
    (
        {"standard_error": "standard_error = 3.6"},
        {"region": [*LABELS[:-3], "x\ny", *["a/b"] * 2]},
        InputError,
        "control",
    ),
    ({"standard_error": "standard_error = 3.6"}, {"region": ["NORTH"] * 9 + LABELS[9:]}, InputError, "capitals"),
]


@pytest.mark.parametrize(("replaced", "changes", "error", "told"), REFUSED)
def test_what_is_wrong_in_one_stratum_is_refused_before_anything_is_drawn_or_written(
    tmp_path: Path,
    replaced: dict[str, Any],
    changes: dict[str, Any],
    error: type[HushbidError],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hushbid.campaign.by_stratum._MOST", 40)
    monkeypatch.setattr("hushbid.campaign.by_stratum.release", None)
    with pytest.raises(error, match=told):
        bought(campaign(tmp_path, **replaced), columns(**changes))
    assert [path.name for path in tmp_path.iterdir()] == ["sleep.toml"]


def test_nobody_is_in_two_strata_though_ids_are_not_checked_elsewhere(tmp_path: Path) -> None:
    twice = columns(id=[*columns()["id"][:-1], "p0"])
    with pytest.raises(InputError, match="must name everybody once"):
        bought(campaign(tmp_path), twice, reading=Reading(check_ids="off"))


def test_a_stratum_of_which_no_row_can_be_priced_does_not_go_without_a_word(tmp_path: Path) -> None:
    bids = np.where(np.array(LABELS) == "a/b", 0.1, columns()["bid"])
    file = campaign(tmp_path, standard_error="standard_error = 2")
    with pytest.raises(InputError, match="stratum 'a/b' cannot be estimated: no row of it can be priced"):
        bought(file, columns(bid=bids), reading=Reading(on_bad_rows="drop"))
    some = columns()["bid"].copy()
    some[0] = 0.1
    found = bought(file, columns(bid=some), reading=Reading(on_bad_rows="drop"))
    assert [part.decided.dropped for part in found.parts.values()] == [0, 1, 0]


def test_nothing_is_left_when_one_strata_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "sleep").mkdir()
    (tmp_path / "sleep" / "south").write_text("in the way")
    with pytest.raises(Unwritable, match=r"south.* cannot be written"):
        bought(campaign(tmp_path))
    assert [path.name for path in (tmp_path / "sleep").iterdir()] == ["south"]


def test_a_stratum_in_which_nobody_delivers_leaves_the_others_theirs(tmp_path: Path) -> None:
    gone = np.where(np.array(LABELS) == "a/b", np.nan, columns()["value"])
    found = bought(campaign(tmp_path), columns(value=gone))
    assert [part.answer is not None for part in found.parts.values()] == [False, True, True]
    assert "a/b:\n  No estimate: None of the " in found.text()
    empty = rows(tmp_path / "sleep" / "strata.csv")[0]
    assert (empty["stratum"], empty["estimate"], empty["payment_minor"]) == ("a/b", "", "0")


def test_late_data_are_named_by_their_rows_among_everybody(tmp_path: Path) -> None:
    file, first = campaign(tmp_path), columns()["value"].copy()
    losses = losses_of(bought(campaign(tmp_path, data=""), columns()))
    row = int(np.flatnonzero((losses > 0) & (np.array(LABELS) == "south"))[0])
    first[row] = np.nan
    bought(campaign(tmp_path), columns(value=first))
    with pytest.raises(InputError, match=rf"row {row} of the bids") as problem:
        bought(file, force=True)
    assert problem.value.row == row
    late = bought(campaign(tmp_path, data='[data]\nlate = "paid"\n'), force=True)
    assert [part.late for part in late.parts.values()] == [0, 0, 1]


def test_questions_relations_and_the_local_setting_go_with_each(tmp_path: Path) -> None:
    questions = '[[questions]]\nkind = "number"\nname = "value"\nbounds = [0, 12]\nstandard_error = 5\n'
    questions += '[[questions]]\nkind = "choice"\nname = "shift"\nanswers = ["days", "nights"]\nstandard_error = 0.6\n'
    plain = {"bounds": "", "variance": "", "standard_error": ""}
    file = campaign(tmp_path, data=f"{questions}{DATA}", **plain)
    survey = bought(file, columns(shift=["days", "nights"] * (N // 2)))
    table = rows(tmp_path / "sleep" / "strata.csv")
    assert [(row["stratum"], row["question"], row["answer"]) for row in table[:3]] == [
        *(("a/b", "value", ""), ("a/b", "shift", "days"), ("a/b", "shift", "nights")),
    ]
    assert len(table) == 9
    assert all(part.record is not None and hushbid.verify(part.record).ok for part in survey.parts.values())

    related = campaign(tmp_path, more="max_correlation = 0.2", question='question = "related"')
    text = related.read_text().replace("each = true", 'each = true\npopulation = { north = 99, south = 25, "a/b" = 3 }')
    related.write_text(text)
    kept = bought(related, columns(value=columns()["value"] + 0.01), force=True)
    assert [part.decided.market.population for part in kept.parts.values()] == [3, 99, 25]
    assert all(part.record is not None and hushbid.verify(part.record).ok for part in kept.parts.values())

    local = campaign(
        tmp_path, data='[data]\nkind = "simulated_values"\n', setting='setting = "local"', question='question = "local"'
    )
    sent = bought(local, columns(value=columns()["value"] + 0.02), force=True)
    assert all(part.record is not None and hushbid.verify(part.record).ok for part in sent.parts.values())
    messages = campaign(tmp_path, setting='setting = "local"', question='question = "sent"')
    first = int(np.flatnonzero(losses_of(sent))[0])
    assert LABELS[first] != "a/b"
    with pytest.raises(DataError) as problem:  # of the file, not of the stratum that comes first
        bought(messages, columns(message=["no message"] * N), force=True)
    assert problem.value.row == first


def test_an_estimate_for_each_is_another_promise_than_one_for_all_unless_it_is_drawn_from_the_very_same_data(
    tmp_path: Path,
) -> None:
    shares = {"standard_error": "standard_error = 2", "each": 'shares = { north = 0.5, south = 0.4, "a/b" = 0.1 }'}
    run_campaign(campaign(tmp_path, **shares), bids=columns(), audit=False)
    apart = bought(campaign(tmp_path))  # about other sets of people
    assert [part.answer is not None and part.answer.before for part in apart.parts.values()] == [False] * 3
    with pytest.raises(AlreadyReleased, match="already produced"):
        bought(
            campaign(tmp_path, standard_error="standard_error = 2", title='title = "One"'),
            columns(region=["all"] * N),
            force=True,
        )


HARMFUL = {
    "..": "%2E%2E",
    "../x": "%2E%2E%2Fx",
    "a\\b": "a%5Cb",
    "strata.csv": "strata%2Ecsv",
    "CON": "%43ON",
    "com¹": "%63om¹",
    "Größe 50+": "Größe 50%2B",
    "%2E": "%252E",
}


def test_no_name_of_a_stratum_leads_out_of_its_folder_or_into_another(tmp_path: Path) -> None:
    assert folders_of(list(HARMFUL)) == HARMFUL
    assert all((tmp_path / folder).resolve().parent == tmp_path.resolve() for folder in HARMFUL.values())
    for names in (["North", "north"], ["Straße", "STRASSE"], ["ﬁ", "fi"], ["\u202ex"], ["x" * 201], ["a\0"], ["\t"]):
        with pytest.raises(InputError, match="strata"):
            folders_of(names)


def test_labels_are_compared_without_spaces_around_and_in_one_composition(tmp_path: Path) -> None:
    file = campaign(tmp_path, standard_error='standard_error = { " Zoe\\u0308 " = 3.5, north = 3 }')
    names = ["Zoe\u0308 " if k % 2 else "Zo\xeb" if k % 4 else " north" for k in range(N)]
    assert list(bought(file, columns(region=names)).parts) == ["Zo\xeb", "north"]
    twice = campaign(tmp_path, standard_error='standard_error = { "north " = 3.5, north = 3 }')
    with pytest.raises(InputError, match=r"market\.standard_error: must name every stratum once"):
        read_campaign(twice, bids=columns())


def test_engines_and_one_record_or_release_for_all_are_refused_with_the_way_that_there_is(tmp_path: Path) -> None:
    file = campaign(tmp_path)
    with pytest.raises(InputError, match=r"run_by_stratum\(\) buys them"):
        run_campaign(file, bids=columns())
    for people, reading in ((pl.LazyFrame(columns()), Reading()), (columns(), Reading(engine="polars"))):
        with pytest.raises(InputError, match="engine must be 'memory' with each = true"):
            run_by_stratum(file, bids=people, reading=reading)


def test_the_decision_of_a_stratum_is_that_of_a_market_of_its_people(tmp_path: Path) -> None:
    found = bought(campaign(tmp_path, data=""))
    for name, part in found.parts.items():
        mine = np.array(LABELS) == name
        market = Market(prior=Uniform(1, 3), goal=Accuracy(ERRORS[name]), bounds=(0, 12), variance=2)
        alone = market.acquire(columns()["bid"][mine])
        assert isinstance(part.decided, DecisionInMemory)
        assert part.decided.outcome.to_dict() == alone.to_dict()
    facts = found.decided_facts()
    parts = [part.decided.facts() for part in found.parts.values()]
    for name in ("people", "bought_from", "total_payment_minor", "objective", "lower_bound"):
        assert facts[name] == pytest.approx(sum(one[name] for one in parts), rel=1e-12)
    for name in ("largest_privacy_loss", "incentive_error"):
        assert facts[name] == max(one[name] for one in parts)


def test_run_tells_of_each_stratum_and_other_commands_refuse(tmp_path: Path) -> None:
    pl.DataFrame(columns()).write_csv(tmp_path / "people.csv")
    file = campaign(tmp_path, data='[bids]\nfile = "people.csv"\n[data]\nfile = "people.csv"\n')
    market = ("--prior", "uniform:1,3", "--bounds", "0,12", "--standard-error", "5", "--strata", file.name)

    def run(*words: str) -> Any:
        with contextlib.chdir(tmp_path):
            return CliRunner().invoke(main, list(words))

    done = run("run", file.name, "--no-audit")
    assert (done.exit_code, "north, 30 of 30" in done.output or "north, " in done.output) == (0, True), done.output
    assert "Written to sleep: strata.csv, and a folder for each stratum." in done.output
    verified = run("verify", "sleep/a%2Fb/record.json")
    assert verified.exit_code == 0, verified.output
    for words, told in (
        (("price", "people.csv", *market), "price strata one by one"),
        (("compare", "people.csv", *market), "compare strata one by one"),
        (("plan", *market), "plan strata one by one"),
    ):
        refused = run(*words)
        assert (refused.exit_code, told in refused.stderr) == (2, True), refused.output
