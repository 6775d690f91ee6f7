"""The frame of the command line; each command has tests of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hushbid.cli import COMMANDS, compare, main
from hushbid.cli.common import command as make_command
from hushbid.cli.privatize import _file_name
from hushbid.errors import InputError
from tests.extent import each


def test_every_listed_command_exists_and_explains_itself() -> None:
    for name, summary in COMMANDS.items():
        told = CliRunner().invoke(main, [name, "--help"])
        assert told.exit_code == 0
        assert summary in told.output


def test_help_lists_the_commands_without_loading_one() -> None:
    program = "import sys; from hushbid.cli import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert all(name in told for name in COMMANDS)
    assert not {"numpy", *(f"hushbid.cli.{name}" for name in COMMANDS)} & set(told.split())


def test_a_comparison_rounds_the_largest_loss_up_unless_it_is_a_mean() -> None:
    assert compare._cell({"largest_privacy_loss": 1.23401}, "largest_privacy_loss") == "1.3"
    mean = {"largest_privacy_loss": 1.23401, "largest_privacy_loss_error": 0.01}
    assert compare._cell(mean, "largest_privacy_loss") == "1.234 (0.01)"


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let ``hushbid demo`` raise something."""

    def arrange(problem: BaseException) -> None:
        @make_command("demo")
        def stand_in(as_json: bool) -> None:
            raise problem

        monkeypatch.setattr("hushbid.cli.demo.command", stand_in)

    return arrange


@pytest.mark.parametrize(
    ("problem", "status", "sentence"),
    [
        (InputError("people must be at least 1, got 0."), 2, "Error: people must be at least 1, got 0.\n"),
        (PermissionError(13, "Permission denied", "/secret"), 7, "Error: /secret: Permission denied.\n"),
        (MemoryError(), 7, "Error: There is not enough memory for so many people.\n"),
        (KeyError("4.2"), 70, "Error: a fault in hushbid (KeyError); --debug shows where.\n"),
        (KeyboardInterrupt(), 130, "\nInterrupted: nothing is left half written.\n"),
        (click.Abort(), 130, "\nInterrupted: nothing is left half written.\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_whatever_goes_wrong_ends_in_one_sentence_and_a_status(
    problem: BaseException, status: int, sentence: str, raising: Callable[[BaseException], None]
) -> None:
    raising(problem)
    told = CliRunner().invoke(main, ["demo"])
    assert (told.exit_code, told.output) == (status, sentence)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("problem", [ValueError("engine"), InputError("engine."), click.UsageError("engine")], ids=type)
def test_a_stop_signal_is_what_ends_a_command_whatever_an_engine_makes_of_it(
    problem: Exception, number: signal.Signals, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @make_command("demo")
    def stand_in(as_json: bool) -> None:
        try:
            signal.raise_signal(number)
        except BaseException:  # noqa: BLE001 (as DuckDB does when our code inside it is interrupted)
            raise problem from None

    monkeypatch.setattr("hushbid.cli.demo.command", stand_in)
    told = CliRunner().invoke(main, ["demo"])
    assert told.exit_code == status
    assert told.output == ("\nInterrupted: nothing is left half written.\n" if number is signal.SIGINT else "")


def test_an_interrupt_so_late_that_click_catches_it_has_the_same_status(monkeypatch: pytest.MonkeyPatch) -> None:
    @make_command("demo")
    def stand_in(as_json: bool) -> None:
        click.get_current_context().find_root().call_on_close(lambda: signal.raise_signal(signal.SIGINT))

    monkeypatch.setattr("hushbid.cli.demo.command", stand_in)
    assert CliRunner().invoke(main, ["demo"]).exit_code == 130


HOSTILE = "a\x00b\x1b[31m\x9b\u202e\u2028 é 1\u202f000"


@pytest.mark.parametrize("arguments", [["demo", "--people", HOSTILE], [HOSTILE], ["--" + HOSTILE], ["demo"]])
def test_no_message_prints_control_characters(arguments: list[str], raising: Callable[[BaseException], None]) -> None:
    if arguments == ["demo"]:
        raising(InputError(f"{HOSTILE}\nsecond line."))
    told = CliRunner().invoke(main, arguments)
    assert told.exit_code == 2
    assert not set("\x00\x1b\x9b\u202e\u2028") & set(told.output)
    assert "\\x1b[31m\\x9b\\u202e\\u2028 é 1" in told.output
    assert arguments != ["demo"] or told.output.endswith(" é 1\u202f000\nsecond line.\n")


@pytest.mark.parametrize("arguments", [["--debug", "demo"], ["demo", "--debug"]])
def test_debug_shows_the_traceback_before_or_after_the_command(
    arguments: list[str], raising: Callable[[BaseException], None]
) -> None:
    raising(InputError("no."))
    told = CliRunner().invoke(main, arguments)
    assert told.exit_code == 2
    assert "Traceback" in told.output
    assert told.output.endswith("Error: no.\n")


def test_a_fault_does_not_echo_what_the_exception_says(raising: Callable[[BaseException], None]) -> None:
    raising(ValueError("could not convert string to float: '7.25'"))
    assert "7.25" not in CliRunner().invoke(main, ["demo"]).output


GOALS = {"--budget": "50", "--hard-budget": "50", "--standard-error": "0.1", "--buyer-weight": "100"}


@each("command", ["price", "plan", "compare"])
@each("given", [(), ("--budget", "--buyer-weight"), ("--hard-budget", "--standard-error")])
def test_a_buyer_states_exactly_one_goal(command: str, given: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "bids.csv").write_text("id,bid\na,1.5\nb,1.2\n")
    goals = [part for name in given for part in (name, GOALS[name])]
    needed = {"price": [str(tmp_path / "bids.csv")], "plan": ["--people", "5"], "compare": []}[command]
    told = CliRunner().invoke(main, [command, *needed, "--prior", "uniform:1,2", *goals])
    assert told.exit_code == 2
    assert "exactly one of --budget, --hard-budget, --standard-error and --buyer-weight" in told.output
    assert all(name in told.output for name in given)


@each(
    ("arguments", "sentence"),
    [
        (["--budget", "nan"], "--budget must be a number above 0, got nan"),
        (["--budget", "1,5"], '--budget must be a number above 0, got "1,5"'),
        (["--budget", "5", "--population", "2.5"], "--population must be a whole number from 1 to"),
        (["--budget", "5", "--spending-limit", "nan"], "--spending-limit must be a number above 0, got nan"),
        (["--budget", "0"], "--budget must be a number above 0, got 0"),
        (["--budget", "5", "--setting", "local"], "--population must be stated with a budget that is met on average"),
        (
            ["--budget", "5", "--user-weight", "1", "--people-may-owe-money", "--variance", "0.1"],
            "--user-weight must be 0 beside a budget",
        ),
        (
            ["--budget", "5", "--max-correlation", "1.5"],
            "--max-correlation must be a number of at least 0",
        ),
        (
            ["--budget", "5", "--max-correlation", "0.1", "--population", "1"],
            "population must be at least the number of",
        ),
        (["--standard-error", "1e-6"], "--standard-error must be above"),
        (["--hard-budget", "0.02"], "hard budget must be more than one coin of 0.01 for each of 2 people"),
    ],
)
def test_a_goal_that_cannot_be_had_is_refused_in_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "bids.csv").write_text("id,bid\na,1.5\nb,1.2\n")
    told = CliRunner().invoke(main, ["price", str(tmp_path / "bids.csv"), "--prior", "uniform:1,2", *arguments])
    unreachable = "--standard-error must be above" in sentence
    assert (told.exit_code, told.stdout) == (6 if unreachable else 2, "")
    assert sentence in told.stderr
    assert "Traceback" not in told.output


@pytest.mark.parametrize("command", ["price", "compare"])
def test_a_column_of_ids_that_is_named_must_be_there(command: str, tmp_path: Path) -> None:
    (tmp_path / "bids.csv").write_text("ID,bid\na,1.5\nb,1.2\n")
    call = [command, str(tmp_path / "bids.csv"), "--prior", "uniform:1,2", "--budget", "5"]
    assert CliRunner().invoke(main, call).exit_code == 0  # rows are numbered
    told = CliRunner().invoke(main, [*call, "--id-column", "id"])
    assert (told.exit_code, told.stdout) == (2, "")
    assert "must have the column 'id'; it has 'ID', 'bid'." in told.stderr


def test_a_hard_budget_too_small_for_anybodys_price_buys_nothing_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "bids.csv").write_text("id,bid\na,1.99\nb,1.98\n")
    call = ["price", str(tmp_path / "bids.csv"), "--prior", "uniform:1,2", "--hard-budget", "0.03"]
    told = CliRunner().invoke(main, call)
    assert told.exit_code == 0
    assert told.stderr == "Nothing was bought: none of 2 people bid low enough. Nobody is paid.\n"


def test_a_hard_budget_is_compared_in_both_settings() -> None:
    arguments = ["compare", "--prior", "uniform:1,2", "--people", "9", "--hard-budget", "5", "--no-baselines"]
    told = CliRunner().invoke(main, arguments)
    assert told.exit_code == 0, told.output
    assert told.output.splitlines()[0].split() == ["9", "people", "central", "local"]


def test_bids_are_compared_by_a_budget_on_peoples_own_devices_too_if_it_is_said_how_many_were_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "bids.csv").write_text("id,bid\na,1.5\nb,1.2\n")
    call = ["compare", str(tmp_path / "bids.csv"), "--prior", "uniform:1,2", "--budget", "5", "--no-baselines"]
    not_said, said = CliRunner().invoke(main, call), CliRunner().invoke(main, [*call, "--population", "2"])
    assert (not_said.exit_code, said.exit_code) == (0, 0), not_said.output + said.output
    assert not_said.output.splitlines()[0].split() == ["2", "people", "central"]
    assert "Not in the local setting: --population must be stated with a budget that is met on average" in (
        not_said.output
    )
    assert said.output.splitlines()[0].split() == ["2", "people", "central", "local"]
    assert "Not in the" not in said.output


def test_the_error_of_a_survey_is_called_relative_when_settings_are_compared(tmp_path: Path) -> None:
    (tmp_path / "q.toml").write_text('[[questions]]\nkind = "yes_no"\nname = "smokes"\n')
    arguments = ["compare", "--prior", "uniform:1,2", "--people", "9", "--buyer-weight", "50", "--no-baselines"]
    told = CliRunner().invoke(main, [*arguments, "--questions", str(tmp_path / "q.toml")])
    assert told.exit_code == 0, told.output
    assert "relative error of all questions together" in told.output
    assert "standard error" not in told.output


def test_a_misspelt_command_is_answered_with_the_nearest_one() -> None:
    told = CliRunner().invoke(main, ["prize"])
    assert told.exit_code == 2
    assert "Did you mean price?" in told.output


def test_completing_a_command_loads_nothing_heavy() -> None:
    program = "import sys; from hushbid.cli import main; main(prog_name='hushbid', standalone_mode=False)"
    variables = {**os.environ, "_HUSHBID_COMPLETE": "bash_complete", "COMP_WORDS": "hushbid p", "COMP_CWORD": "1"}
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules)); {program}"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables).stdout
    assert {"plain,price", "plain,privatize", "plain,plan"} <= set(told.split())
    assert not {"numpy", "scipy", "pyarrow"} & set(told.split())


@each(
    "name",
    [
        "Caf\u00e9 study",
        "Cafe\u0301 study",
        " CAF\u00c9  Study\n",
        "caf\u00e9\u00a0study",
        "Caf\u00e9\u200b \uff53tudy",
        *(f"Caf\u00e9{unseen} study{unseen}" for unseen in "\ufe0f\u034f\u00ad\u180b\U000e0100\x01\ue000"),
        *(f"Caf\u00e9{blank}study{blank}" for blank in "\u3164\u2800\u115f\uffa0"),
    ],
)
def test_one_campaign_name_typed_differently_is_one_campaign(name: str) -> None:
    assert _file_name(name, "ann") == _file_name("caf\u00e9 study", " ann ")
    assert _file_name(name, "ann") != _file_name(name, "Ann")
    assert _file_name(name, "ann") != _file_name("cafe study", "ann")


def test_a_plan_tells_a_campaign_its_protection_and_the_frontier_and_asks_for_one_question() -> None:
    def told(*given: str) -> str:
        market = ["plan", "--prior", "uniform:1,2", "--budget", "20", "--repetitions", "20"]
        return CliRunner().invoke(main, [*market, *given]).output

    found = json.loads(told("--people", "30", "--json"))
    assert found["goal"] == {"kind": "budget", "amount": 20.0, "coin": 0.01, "reserve": None}
    spent = found["total_payment"]
    assert spent["expected"] == pytest.approx(20, rel=0.05)
    assert spent["expected"] <= spent["in_95_of_100"] <= spent["at_worst"]
    assert found["people_needed"] is None
    assert [row["max_correlation"] for row in found["protection"]] == found["relations"]
    assert len(found["frontier"]) == 5
    needed = json.loads(told("--target-standard-error", "0.15", "--json"))
    assert needed["people_needed"]["value"] == needed["people"] > 30
    assert told("--people", "30").splitlines()[-1].endswith("  --budget 80")
    assert "Give one of --people" in told()
    assert "Give one of --people" in told("--people", "3", "--target-payment", "5")
