"""The schema of a campaign: one place for each field, which a server extends and other places repeat nowhere."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hushbid.campaign.drafting import draft_text
from hushbid.campaign.spec import (
    GOALS,
    CampaignSpec,
    OutputTable,
    about,
    allowed_of,
    fields_of,
    help_of,
)
from hushbid.campaign.stated import Stated
from hushbid.cli import main
from hushbid.common.money import MOST_DECIMALS
from hushbid.common.tables import ENDINGS
from hushbid.disclosure.ledger.question import LAST_WAVE

MARKET = """\

[market]
setting = "central"
prior = "uniform:1,2"
bounds = [0, 12]
buyer_weight = 7
"""
STATED: dict[str, Any] = {
    "title": "Sleep",
    "market": {"setting": "central", "prior": "uniform:1,2", "bounds": [0, 12], "budget": 500},
}


def test_every_field_has_one_sentence_of_help_and_says_what_is_allowed() -> None:
    for name, field in fields_of(CampaignSpec):
        assert help_of(field).endswith("."), name
        assert allowed_of(field), name
        assert field.is_required() or field.default is not None or about(field).absent, name


def test_limits_of_other_packages_are_those_of_the_schema() -> None:
    fields = dict(fields_of(CampaignSpec))
    assert f"to {LAST_WAVE}" in allowed_of(fields["wave"])
    assert f"to {MOST_DECIMALS}" in allowed_of(fields["money.decimals"])
    assert set(OutputTable.model_fields["decisions"].annotation.__args__) == set(ENDINGS)  # type: ignore[union-attr]
    assert {f"market.{goal}" for goal in GOALS} <= fields.keys()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('payout = "cheque"', 'line 8, server.payout: must be "none" or "email" or "iban" or "panel", got "cheque".'),
        (
            "partcipation_fee = 2",
            "server.partcipation_fee: is not a field of this file (did you mean participation_fee?)",
        ),
        ("automatic = true", "server.bid_by: must be set if the campaign is to move on by itself"),
    ],
)
def test_plan_and_run_check_what_only_a_server_uses(tmp_path: Path, table: str, told: str) -> None:
    path = tmp_path / "sleep.toml"
    path.write_text(f"{MARKET}[server]\n{table}\n")
    for command in (["plan", str(path), "--people", "30"], ["run", str(path)]):
        wrong = CliRunner().invoke(main, command)
        assert (wrong.exit_code, told in wrong.stderr) == (2, True), wrong.output


def test_answers_that_come_with_the_price_are_for_the_central_setting(tmp_path: Path) -> None:
    path = tmp_path / "sleep.toml"
    path.write_text(f"{MARKET}[server]\nsingle_visit = true\n")
    local = CliRunner().invoke(main, ["plan", str(path), "--people", "30", "--setting", "local"])
    assert (local.exit_code, "server.single_visit: must be false in the local setting" in local.stderr) == (2, True)


def test_a_file_takes_values_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sleep.toml"
    text = MARKET.replace("buyer_weight = 7", 'budget = "${BUDGET}"')
    path.write_text(f'title = "Sleep of ${{WHOM}}, $$5"\nunit = "${{BUDGET}}"\n{text}')
    plan = ["plan", str(path), "--people", "30", "--repetitions", "20", "--json"]
    monkeypatch.setenv("WHOM", "nurses")
    wrong = CliRunner().invoke(main, plan)
    assert (wrong.exit_code, "line 8, market.budget: names the environment variable BUDGET, which" in wrong.stderr) == (
        2,
        True,
    ), wrong.output
    monkeypatch.setenv("BUDGET", "300")
    assert '"amount": 300.0' in CliRunner().invoke(main, plan).stdout
    values = Stated.of_file(path).values
    assert (values["title"], values["unit"]) == ("Sleep of nurses, $5", "300")  # a text stays one


def test_a_file_of_a_server_can_be_planned_and_written_again(tmp_path: Path) -> None:
    text = draft_text({**STATED, "server": {"participation_fee": 2}})
    assert tomllib.loads(text)["server"] == {"participation_fee": 2}
    (tmp_path / "sleep.toml").write_text(text)
    call = ["plan", str(tmp_path / "sleep.toml"), "--people", "30", "--repetitions", "20", "--json"]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0, done.output


def test_options_take_the_place_of_what_a_file_says_and_errors_name_line_or_option(tmp_path: Path) -> None:
    path = tmp_path / "sleep.toml"
    path.write_text('[market]\nsetting = "central"\nprior = "uniform:1,2"\nbounds = [0, 12]\nbuyer_weight = 7\n')
    plan = ["plan", str(path), "--people", "30", "--repetitions", "20"]
    done = CliRunner().invoke(main, [*plan, "--budget", "300", "--json"])
    assert '"amount": 300.0' in done.stdout, done.output  # in the place of the other goal
    path.write_text(path.read_text().replace('"central"', '"centre"'))
    wrong = CliRunner().invoke(main, [*plan, "--budget", "0"])
    assert wrong.exit_code == 2
    assert 'line 2, market.setting: must be "central" or "local", got "centre".' in wrong.stderr
    assert "--budget must be a number above 0, got 0." in wrong.stderr


def test_importing_the_package_does_not_load_the_schema() -> None:
    code = "import sys, hushbid, hushbid.cli; print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
