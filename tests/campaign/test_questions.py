"""Surveys from a campaign file: what it may hold, what is bought and released, and what is told of it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from hushbid import Accuracy, Choice, Number, YesNo, verify
from hushbid.campaign import Purchase, Reading, read_campaign, run_campaign
from hushbid.campaign.deciding import DecisionInMemory
from hushbid.campaign.recorded import release_recorded
from hushbid.campaign.stated import line_numbers
from hushbid.campaign.terms import survey_in
from hushbid.cli import main
from hushbid.disclosure import Message, privatize_answers
from hushbid.errors import DataError, InputError
from hushbid.questions import layout_of
from hushbid.record import read

N = 60
CAMPAIGN = """\
title = "Staff"
synthetic = true

[market]
setting = "central"
prior = "uniform:1,3"
max_correlation = 0.05

[[questions]]
kind = "number"
name = "sleep"
bounds = [0, 12]
variance = 2.5
unit = "hours"
standard_error = 1.2

[[questions]]
kind = "yes_no"
name = "smoker"
standard_error = 0.2

[[questions]]
kind = "choice"
name = "shift"
answers = ["days", "nights", "no answer"]
column = "works"
standard_error = 0.2

[data]
late = "unpaid"
"""


def columns(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    found = {
        "id": [f"p{k}" for k in range(N)],
        "bid": rng.uniform(1, 3, N),
        "sleep": rng.uniform(4, 9, N),
        "smoker": rng.choice(["yes", "No", "TRUE", "0"], N).tolist(),
        "works": rng.choice(["days", "nights", "no answer"], N).tolist(),
    }
    return {**found, **changes}


def written(tmp_path: Path, text: str = CAMPAIGN, **files: str) -> Path:
    for name, content in files.items():
        (tmp_path / f"{name}.csv").write_text(content)
    path = tmp_path / "staff.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def bought(tmp_path_factory: pytest.TempPathFactory) -> Purchase:
    return run_campaign(written(tmp_path_factory.mktemp("staff")), bids=columns(), audit=False)


def test_a_campaign_file_asks_its_questions_in_their_order(tmp_path: Path) -> None:
    campaign = read_campaign(written(tmp_path), bids=columns())
    market = campaign.market_for(None)
    assert market.questions == (
        Number(name="sleep", bounds=(0, 12), variance=2.5, unit="hours"),
        YesNo(name="smoker"),
        Choice(name="shift", answers=("days", "nights", "no answer")),
    )
    assert market.goal == Accuracy((1.2, 0.2, 0.2))
    assert campaign.data is not None
    assert campaign.data.names == ("sleep", "smoker", "works")


def test_answers_come_with_an_interval_and_an_error_for_each_question(bought: Purchase) -> None:
    facts = bought.facts()
    json.dumps(facts)
    assert [one["name"] for one in facts["questions"]] == ["sleep", "smoker", "shift"]
    assert all(
        one["worst_standard_error"] <= wanted * (1 + 1e-9)
        for one, wanted in zip(facts["questions"], (1.2, 0.2, 0.2), strict=True)
    )
    sleep, smoker, shift = facts["estimate"]["answers"]
    whole, normal = sleep["interval"], sleep["normal_interval"]
    assert whole["low"] <= normal["low"] <= normal["high"] <= whole["high"]
    assert smoker["kind"] == "yes_no"
    assert list(shift["shares"]) == ["days", "nights", "no answer"]
    assert sum(one["estimate"] for one in shift["shares"].values()) == pytest.approx(1.0, abs=0.01)
    told = bought.text()
    assert "Estimate of sleep: " in told
    assert "the share of yes to smoker" in told
    assert "not all of them together" in told


def test_the_record_of_a_survey_is_read_back_from_its_file_and_verified(bought: Purchase) -> None:
    record = read(next(path for path in bought.files if path.name == "record.json"))
    assert record.hash == bought.record.hash if bought.record else False
    assert verify(record).ok


def test_the_report_shows_every_question_and_both_errors(bought: Purchase) -> None:
    page = next(path for path in bought.files if path.name == "report.html").read_text()
    first, _, appendix = page.partition('class="appendix"')
    for name in ("Sleep", "Smoker (share of yes)", "Shift"):
        assert f">{name}</th>" in first
    assert "standard error is that of all questions together" in " ".join(appendix.split())
    assert "one of 3 answers" in page
    assert "a number from 0 to 12 hours" in page
    assert "result-3-3" in first
    assert "At worst" in appendix
    assert "inf" not in page.partition("</style>")[2].partition('id="cost"')[0].replace("information", "")


def test_whoever_leaves_a_question_open_has_dropped_out_of_the_whole(tmp_path: Path, bought: Purchase) -> None:
    assert isinstance(bought.decided, DecisionInMemory)
    who = int(np.argmax(bought.decided.outcome.privacy_loss))
    table = columns()
    table["works"][who] = ""
    again = run_campaign(written(tmp_path), bids=table, audit=False)
    assert again.release is not None
    assert again.release.dropped_out == (who,)
    payments = next(path for path in again.files if path.name == "payments.csv").read_text().splitlines()
    assert payments[who + 1] == f"p{who},0,0.0,XXX,no,yes"
    assert "1 person did not deliver; intervals allow for it." in again.text()


@pytest.mark.parametrize(
    ("column", "cell", "told"),
    [
        ("sleep", "much", "column 'sleep' must hold numbers such as 0.25 or nothing, but row 3 does not"),
        ("smoker", "maybe", "column 'smoker' must hold yes or no, or nothing, but row 3 does not"),
        ("works", "evenings", "column 'works' must hold one of its 3 answers, or nothing, but row 3 does not"),
    ],
)
def test_an_answer_that_is_none_is_told_by_its_row(tmp_path: Path, column: str, cell: str, told: str) -> None:
    table = columns()
    table[column] = [cell if row == 3 else value for row, value in enumerate(table[column])]
    with pytest.raises(DataError, match=told) as refused:
        run_campaign(written(tmp_path), bids=table, audit=False)
    assert cell not in str(refused.value)


def told_of(tmp_path: Path, text: str) -> str:
    with pytest.raises(InputError) as refused:
        read_campaign(written(tmp_path, text), bids=columns())
    return str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            'prior = "u',
            'bounds = [0, 1]\nprior = "u',
            "line 6, market.bounds: cannot be stated together with questions",
        ),
        ('prior = "u', 'variance = 1\nprior = "u', "line 6, market.variance: cannot be stated together with questions"),
        (
            'prior = "u',
            'budget = 1\nprior = "u',
            "line 6, market.budget: cannot be stated together with the questions'",
        ),
        ('prior = "u', 'standard_error = 1\nprior = "u', "line 6, market.standard_error: must stand in the table"),
        ('kind = "yes_no"', 'kind = "maybe"', 'line 18, questions.2.kind: must be "number" or "yes_no" or "choice"'),
        ("bounds = [0, 12]", "bounds = [12, 0]", "line 12, questions.1.bounds: must be two numbers, the smaller first"),
        ("variance = 2.5", "variance = 99", "line 13, questions.1.variance: must be positive and at most 36"),
        ('unit = "hours"\nstandard_error = 1.2', "", "line 9, questions.1: must state a standard_error as other"),
        ('name = "smoker"', 'name = "sleep"', "line 9, questions: must have different names, got 'sleep' twice."),
        ('"days", "nights", "no answer"', '"days"', "line 25, questions.3.answers: must be 2 to 100 texts"),
        ("answers = [", "answers = [1, ", "line 25, questions.3.answers: must be a list of texts"),
        ("column =", "colum =", "line 26, questions.3.colum: is not a field of this file (did you mean column?)"),
        ('late = "unpaid"', 'value = "x"', "line 30, data.value: cannot be stated together with questions"),
        ("synthetic = true", 'unit = "hours"', "line 2, unit: cannot be stated together with questions"),
        ("[[questions]]", "[questions.x]", "questions: must be tables, one for each question: [[questions]]"),
    ],
)
def test_what_is_wrong_with_questions_is_told_once_with_its_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    text = CAMPAIGN.replace(old, new) if old == "[[questions]]" else CAMPAIGN.replace(old, new, 1)
    if old == "[[questions]]":
        text = CAMPAIGN.split("[[questions]]")[0] + '[questions]\nname = "x"\n'
    found = told_of(tmp_path, text)
    assert told in found
    assert "problems" not in found, found


def test_lines_of_repeated_tables_are_counted() -> None:
    lines = line_numbers("[[a]]\nx = 1\n[[a]]\nx = 2\n[b]\n")
    assert lines == {"a": 1, "a.1": 1, "a.1.x": 2, "a.2": 3, "a.2.x": 4, "b": 5}


def test_a_column_that_a_file_lacks_is_told_at_the_question(tmp_path: Path) -> None:
    files = {"bids": "id,bid\na,1.5\n", "data": "id,sleep,smoker\na,7,yes\n"}
    text = CAMPAIGN.replace("[data]", '[bids]\nfile = "bids.csv"\n\n[data]\nfile = "data.csv"')
    with pytest.raises(InputError, match=r"line 22, questions\.3: .*data\.csv has no column 'works'"):
        read_campaign(written(tmp_path, text, **files))


def test_on_an_engine_a_survey_is_bought_recorded_and_told_as_in_memory(tmp_path: Path, bought: Purchase) -> None:
    again = run_campaign(
        written(tmp_path), bids=pl.DataFrame(columns()).lazy(), reading=Reading(engine="polars"), audit=False
    )
    assert {path.stem for path in again.files} >= {path.stem for path in bought.files}
    here, there = bought.facts(), again.facts()
    assert [one["name"] for one in there["estimate"]["answers"]] == ["sleep", "smoker", "shift"]
    for one, other in zip(there["questions"], here["questions"], strict=True):
        assert one == pytest.approx(other)
    record = read(next(path for path in again.files if path.name == "record.json"))
    assert bought.record is not None
    np.testing.assert_array_equal(record.outcome.privacy_loss, bought.record.outcome.privacy_loss)
    assert verify(record).ok
    page = next(path for path in again.files if path.name == "report.html").read_text()
    assert ">Shift</th>" in page


def test_where_an_engine_keeps_everybody_a_survey_is_told_by_its_sums(
    tmp_path: Path, bought: Purchase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushbid.campaign.deciding.LARGEST_HERE", 10)
    table = columns()
    who = int(np.argmax(bought.record.outcome.privacy_loss)) if bought.record else 0
    table["works"][who] = ""
    kept = run_campaign(written(tmp_path), bids=pl.DataFrame(table), reading=Reading(engine="polars"))
    assert kept.record is None
    facts, memory = kept.facts(), bought.facts()
    assert "standard_error" not in facts
    for one, other in zip(facts["questions"], memory["questions"], strict=True):
        assert one == pytest.approx(other)
    assert [one["name"] for one in facts["estimate"]["answers"]] == ["sleep", "smoker", "shift"]
    assert facts["estimate"]["dropped_out"] == 1
    paid = pl.read_parquet(next(path for path in kept.files if path.name == "payments.parquet"))
    assert paid.filter(pl.col("id") == f"p{who}").select("payment_minor", "delivered").row(0) == (0, "no")
    summary = json.loads(next(path for path in kept.files if path.name == "summary.json").read_text())
    assert len(summary["release"]["answers"]) == len(summary["decided"]["questions"]) == 3


def test_on_an_engine_an_answer_that_is_none_is_told_by_its_row(tmp_path: Path) -> None:
    table = columns()
    table["works"][3] = "evenings"
    with pytest.raises(DataError, match="Column 'works' must hold one of its 3 answers, or nothing, but row 3 does"):
        run_campaign(written(tmp_path), bids=pl.LazyFrame(table), audit=False)


def test_answers_are_released_from_the_record_of_decisions(tmp_path: Path) -> None:
    path = written(tmp_path, CAMPAIGN.partition("[data]")[0].replace('column = "works"\n', ""))
    decided = run_campaign(path, bids=columns(), audit=False)
    record = next(one for one in decided.files if one.name == "outcome.json")
    table = columns()
    answers = {name: table[name] for name in ("id", "sleep", "smoker")} | {"shift": table["works"]}
    released = release_recorded(record, answers, out=tmp_path / "released.json")
    assert [one.name for one in released.answer.release.answers] == ["sleep", "smoker", "shift"]
    [shares] = [line for line in released.text().splitlines() if line.startswith("Shares of shift")]
    assert shares.count("; by normal approximation ") == len(released.answer.release.answers[-1].values)
    with pytest.raises(InputError, match="value_column must be left out for a survey"):
        release_recorded(record, answers, value_column="sleep", out=tmp_path / "again.json")


def test_price_and_plan_take_the_questions_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, bids="id,bid\n" + "".join(f"p{k},{1 + k / N}\n" for k in range(N)))
    run = CliRunner()
    market = ["--prior", "uniform:1,3", "--questions", str(path)]
    priced = json.loads(run.invoke(main, ["price", str(tmp_path / "bids.csv"), *market, "--json"]).stdout)
    assert [one["name"] for one in priced["questions"]] == ["sleep", "smoker", "shift"]
    planned = run.invoke(main, ["plan", *market, "--people", "60", "--repetitions", "20"])
    assert planned.stdout.startswith("Standard errors of the questions: sleep: ")
    both = run.invoke(main, ["plan", *market, "--people", "60", "--budget", "5"])
    assert "--budget cannot be stated together with the questions' standard errors" in both.stderr
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(InputError, match="must hold tables"):
        survey_in(tmp_path / "empty.toml")


# -- everybody's own device --------------------------------------------------------------------------------------------

LOCAL = CAMPAIGN.replace('"central"', '"local"').replace("= 1.2", "= 2.4").replace("= 0.2\n", "= 0.4\n")


def test_messages_about_a_survey_are_delivered_in_one_column_and_verified(tmp_path: Path) -> None:
    path = written(tmp_path, LOCAL.replace("synthetic = true\n", "").partition("[data]")[0])
    decided = run_campaign(path, bids=columns(), audit=False)
    assert f"--questions {path.name}." in decided.text()
    assert isinstance(decided.decided, DecisionInMemory)
    outcome = decided.decided.outcome
    market = outcome.market
    rng = np.random.default_rng(5)

    def message(loss: float) -> str:
        answers = [7.0, bool(rng.random() < 0.5), "days"]
        return privatize_answers(answers, loss, market.survey or (), layout=market.layout).to_json()

    sent = [message(loss) if loss > 0 else "" for loss in outcome.privacy_loss.tolist()]
    sent[int(np.flatnonzero(outcome.privacy_loss)[0])] = ""
    messages = {"id": columns()["id"], "message": sent}
    record = next(one for one in decided.files if one.name == "outcome.json")
    released = release_recorded(record, messages, out=tmp_path / "released.json")
    assert len(released.answer.release.dropped_out) == 1
    assert verify(read(tmp_path / "released.json")).ok
    path.write_text(path.read_text() + "[data]\n")
    bought = run_campaign(path, bids=columns(), data=messages, audit=False)
    assert bought.release is not None
    assert [one.values for one in bought.release.answers] == [one.values for one in released.answer.release.answers]
    page = next(one for one in bought.files if one.name == "report.html").read_text()
    assert ">Shift</th>" in page
    # a message that was made with another loss, or to other questions
    who = int(np.flatnonzero(outcome.privacy_loss)[1])
    sent[who] = message(0.5)
    with pytest.raises(
        DataError, match=f"must be about the survey's questions and state .* exactly, but row {who} does"
    ):
        release_recorded(record, messages, out=tmp_path / "other.json")


def test_simulated_answers_get_their_noise_from_the_columns_of_the_questions(tmp_path: Path) -> None:
    path = written(tmp_path, LOCAL.replace('late = "unpaid"', 'kind = "simulated_values"'))
    bought = run_campaign(path, bids=columns(), audit=False)
    assert bought.record is not None
    assert bought.release is not None
    assert verify(bought.record).ok
    assert all(one["worst_standard_error"] <= 2.4 for one in bought.facts()["questions"])


def test_a_device_makes_the_message_of_a_survey_from_the_questions_of_the_campaign_file(tmp_path: Path) -> None:
    path, out = written(tmp_path, LOCAL), tmp_path / "message.json"
    base = ["privatize", "--campaign", "Staff", "--privacy-loss", "2", "--at-most", "3", "--store", str(tmp_path / "s")]
    run, asked = CliRunner(), ["--questions", str(path)]
    for text, told in (("7\nyes\n", "3 in all, got 2"), ("7\nyes\nnoon\n", "'shift' must be one of its 3 answers")):
        refused = run.invoke(main, [*base, *asked], input=text)
        assert (refused.exit_code, told in refused.stderr) == (4, True), refused.stderr
        assert "noon" not in refused.stderr
    assert "State either --bounds" in run.invoke(main, base).stderr
    assert run.invoke(main, [*base, *asked, "--out", str(out)], input="7\nyes\nno answer\n").exit_code == 0
    message = Message.from_json(out.read_text(), "answers")
    assert message.fits(layout_of(*survey_in(path)))
    assert message.privacy_loss == 2.0
    again = run.invoke(main, [*base, *asked], input="")
    assert Message.from_json(again.stdout, "answers") == message
    assert "Answers were privatized for this campaign before" in again.stderr


def test_an_engine_decides_about_several_questions_in_the_local_setting_as_memory(tmp_path: Path) -> None:
    people, path = pl.DataFrame(columns()), written(tmp_path, LOCAL.partition("[data]")[0])
    memory = run_campaign(path, bids=people, audit=False)
    engine = run_campaign(path, bids=people.lazy(), audit=False, reading=Reading(engine="polars"))
    assert engine.decided.total_minor == memory.decided.total_minor > 0


COIN = """\
title = "Smokers"

[market]
setting = "local"
prior = "uniform:1,3"

[[questions]]
kind = "yes_no"
name = "smoker"
standard_error = 0.12
"""


def test_a_single_question_by_coin_goes_from_devices_to_a_verified_report(tmp_path: Path) -> None:
    path = written(tmp_path, COIN)
    people = {"id": columns()["id"], "bid": columns()["bid"]}
    decided = run_campaign(path, bids=people, audit=False)
    assert isinstance(decided.decided, DecisionInMemory)
    losses = decided.decided.outcome.privacy_loss
    run, sent = CliRunner(), []
    for row, loss in enumerate(losses.tolist()):
        offer = ["--privacy-loss", repr(loss), "--at-most", "9", "--id", str(row), "--store", str(tmp_path / "s")]
        given = ["privatize", "--campaign", "Smokers", "--questions", str(path), *offer]
        made = run.invoke(main, given, input="yes\n") if loss > 0 else None
        sent.append(made.stdout.strip() if made is not None else "")
    assert all(Message.from_json(one, "response").value in (0, 1) for one in sent if one)
    path.write_text(path.read_text() + "[data]\n")
    bought = run_campaign(path, bids=people, data={"id": people["id"], "message": sent}, audit=False)
    assert bought.release is not None
    assert abs(bought.release.answers[0].estimate - 1.0) < 8 * 0.12
    assert bought.record is not None
    assert verify(bought.record).ok
    page = next(one for one in bought.files if one.name == "report.html").read_text()
    assert "False answers by coin, for privacy" in page
    assert "that the coins were drawn by chance" in page
    for told in ("Noise, added for privacy", "device adds noise", "Before any noise"):
        assert told not in page
    with pytest.raises(InputError, match="max_correlation: cannot be stated where a single yes/no question"):
        run_campaign(
            written(tmp_path, COIN.replace('uniform:1,3"', 'uniform:1,3"\nmax_correlation = 0.1')), bids=people
        )
