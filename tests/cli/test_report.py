"""``hushbid report`` writes the page of a record again."""

import json
from datetime import date
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hushbid.audit import suite
from hushbid.campaign.notices import notices_of
from hushbid.cli import main
from hushbid.record import Record
from tests.brief import brief_reports

CAMPAIGN = """
title = "Sleep"
question = "mean sleep"
unit = "hours"
notices = ["prior: {ours}", "Approved on 3 May."]
{more}

[market]
setting = "{setting}"
prior = "uniform:1,2"
bounds = [0, 12]
standard_error = 3

[money]
currency = "EUR"
spending_limit = 9000

[bids]
file = "bids.csv"
group = "region"

[data]
file = "data.csv"
{kind}
"""


def hushbid(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


def bought(home: Path, *, setting: str = "central", more: str = "", kind: str = "", people: int = 30) -> Path:
    rows = [f"{place},{1 + place / 40},{'north' if place % 2 else 'south'}" for place in range(people)]
    (home / "bids.csv").write_text("\n".join(["id,bid,region", *rows]))
    (home / "data.csv").write_text("\n".join(["id,value", *(f"{place},{place % 12}" for place in range(people))]))
    text = CAMPAIGN.replace("{setting}", setting).replace("{more}", more).replace("{kind}", kind)
    (home / "sleep.toml").write_text(text)
    done = hushbid("run", home / "sleep.toml", "--no-audit")
    assert done.exit_code == 0, done.output
    return home / "sleep" / "record.json"


@pytest.mark.parametrize(
    "campaign",
    [{}, {"more": "synthetic = true"}, {"more": "wave = 2"}, {"setting": "local", "kind": 'kind = "simulated_values"'}],
)
def test_with_what_a_record_does_not_hold_the_page_is_that_of_the_purchase(
    campaign: dict[str, str], tmp_path: Path
) -> None:
    record = bought(tmp_path, **campaign)
    before = record.with_name("report.html").read_text()
    told = ["--unit", "hours", "--spending-limit", 9000, "--date", date.today().isoformat(), "--no-audit"]
    done = hushbid("report", record, *told, "--out", tmp_path / "again.html")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "again.html").read_text() == before


def test_audits_are_run_again_in_the_pages_language_and_the_result_names_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = bought(tmp_path, people=9)
    quick = partial(suite.audits_of, checks=("accuracy",), samples=1000)
    monkeypatch.setattr(suite, "audits_of", quick)
    told = ["--title", "Food & sleep", "--language", "de"]
    with brief_reports():
        done = hushbid("report", record, *told, "--out", tmp_path / "again.html", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "record_hash": Record.read(record).hash,
        "audits_failed": 0,
        "file": str(tmp_path / "again.html"),
    }
    page = (tmp_path / "again.html").read_text()
    assert "<title>Food &amp; sleep" in page
    assert 'class="audit ' in page
    assert "Genauigkeit: Sind Fehler und Intervall wie angegeben?" in page
    assert "Intervals meant to hold" not in page
    assert 'class="audit ' not in record.with_name("report.html").read_text()


def test_the_page_can_be_written_in_german(tmp_path: Path) -> None:
    record = bought(tmp_path, more="synthetic = true")
    done = hushbid("report", record, "--language", "de", "--no-audit", "--out", tmp_path / "bericht.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "bericht.html").read_text()
    assert '<html lang="de">' in page
    assert "Diese Kampagne ist erfunden" in page
    assert hushbid("report", record, "--language", "fr").exit_code == 2


def test_bad_input_is_refused_in_a_sentence_and_nothing_is_written(tmp_path: Path) -> None:
    record = bought(tmp_path)
    there = hushbid("report", record)
    assert (there.exit_code, there.stderr.endswith("report.html exists already: --force replaces.\n")) == (5, True)
    question = hushbid("report", record, "--question", "food", "--force")
    assert "--question must be that of the record, 'mean sleep'" in question.stderr
    assert "--out must end in .html" in hushbid("report", record, "--out", tmp_path / "a.json").stderr
    altered = json.loads(record.read_text())
    altered["notes"].append("all is well")
    (tmp_path / "altered.json").write_text(json.dumps(altered))
    refused = hushbid("report", tmp_path / "altered.json")
    assert (refused.exit_code, "hash does not fit its content" in refused.stderr) == (1, True)
    assert not (tmp_path / "report.html").exists()
    assert not (tmp_path / "a.json").exists()


def test_notices_that_look_like_our_notes_stay_notices(tmp_path: Path) -> None:
    assert notices_of(Record.read(bought(tmp_path)), synthetic=False) == ["prior: {ours}", "Approved on 3 May."]
