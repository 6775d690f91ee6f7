"""The schema of a campaign: one place for each field, which a server extends and other places repeat nowhere."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hushbid.campaign.drafting import draft_text
from hushbid.campaign.reading import checked
from hushbid.campaign.spec import (
    GOALS,
    CampaignSpec,
    NotNegative,
    OutputTable,
    Positive,
    Table,
    about,
    allowed_of,
    fields_of,
    help_of,
)
from hushbid.cli import main
from hushbid.common.money import MOST_DECIMALS
from hushbid.common.tables import ENDINGS
from hushbid.disclosure.ledger.question import LAST_WAVE
from hushbid.errors import InputError

STATED: dict[str, Any] = {
    "title": "Sleep",
    "market": {"setting": "central", "prior": "uniform:1,2", "bounds": [0, 12], "budget": 500},
}


class ServerTable(Table):
    """What a server of this test adds."""

    participation_fee: NotNegative = 0.0
    """For everyone whose bid counts, in units of the currency."""

    deadline_days: Positive
    """How long people may bid."""


class ServerCampaign(CampaignSpec):
    """A campaign on such a server."""

    server: ServerTable  # type: ignore[assignment]
    """What only a server uses."""


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


def test_a_server_adds_a_table_and_takes_the_rest_as_it_is() -> None:
    whole = {**STATED, "server": {"participation_fee": 2, "deadline_days": 14}}
    found = checked(whole, ServerCampaign)
    assert (found.market.budget, found.server.participation_fee) == (500, 2)
    assert checked(whole, CampaignSpec).market == found.market  # plan and run take the file, and leave its table
    with pytest.raises(InputError) as refused:
        checked({**STATED, "wave": 0, "server": {"partcipation_fee": -1}}, ServerCampaign)
    told = str(refused.value)
    assert "wave: must be a whole number from 1 to" in told.replace("The wave must", "wave: must")
    assert "did you mean participation_fee?" in told
    assert "server.deadline_days" in told
    properties = ServerCampaign.model_json_schema()["$defs"]["ServerTable"]["properties"]
    assert properties["participation_fee"]["description"] == "For everyone whose bid counts, in units of the currency."


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
