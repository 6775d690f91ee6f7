"""The reference pages of the command line and of the campaign file leave nothing out and invent nothing."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from hushbid.allocation.goals import STATED
from hushbid.campaign import read_campaign
from hushbid.campaign.spec import CampaignSpec, fields_of
from hushbid.cli import COMMANDS
from tests.extent import each
from tests.golden.surface import help_texts
from tools import reference_tables

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@each("page", reference_tables.PAGES)
def test_the_tables_of_the_reference_are_printed_from_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert reference_tables.PAGES[page](text) == text, f"{page.name} is old: run python -m tools.reference_tables"


def test_every_command_has_a_section_with_its_options_or_a_link_to_those_it_shares() -> None:
    text = reference_tables.COMMAND_LINE.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## hushbid (\S+)\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(COMMANDS)
    for name, section in sections.items():
        assert re.search(rf"<!-- options of {name}( \w+)? -->", section), name
        if not isinstance(reference_tables.command_of(name), click.Group):
            linked = [one for one in reference_tables.GROUPS if f"[{one.removesuffix('s')} options]" in section.lower()]
            assert linked == reference_tables.shared_groups(name), name
            assert all(one.help for one in reference_tables.options_of(name)), name


# -- the campaign file -------------------------------------------------------------------------------------------------


def example(name: str) -> str:
    found = re.search(rf'^```toml title="{name}"\n(.*?)^```', (REFERENCE / "campaign-file.md").read_text(), re.M | re.S)
    assert found is not None
    return found[1]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "bids.csv").write_text("id,bid,shift,limit\na,1.5,days,2\nb,2.5,nights,\n")
    (tmp_path / "data.csv").write_text("id,value\na,7\nb,6\n")
    (tmp_path / "panel.csv").write_text("id,bid,region\na,1.5,north\nb,2.5,south\n")
    for name in ("short.toml", "long.toml", "survey.toml", "panel.toml"):
        (tmp_path / name).write_text(example(name))
    return tmp_path


def stated(name: str) -> set[str]:
    """The full names of the fields that an example states."""
    found = tomllib.loads(example(name))
    tables = {table: one if isinstance(one, list) else [one] for table, one in found.items()}
    inner = {f"{table}.{key}" for table, ones in tables.items() for one in ones if isinstance(one, dict) for key in one}
    return inner | {table for table, one in found.items() if table == "notices" or not isinstance(one, dict | list)}


def test_the_examples_state_every_field_of_the_schema(home: Path) -> None:
    for name in ("long.toml", "survey.toml", "panel.toml"):
        read_campaign(home / name)
    unused = {f"market.{name}" for name in STATED if name != "buyer_weight"}  # exactly one is stated
    unused |= {"strata.contrast", "strata.each", "strata.population"}
    fields = {name for name, _ in fields_of(CampaignSpec) if not name.startswith("server.")}
    assert stated("long.toml") | stated("survey.toml") | stated("panel.toml") >= fields - unused


def test_the_short_example_is_enough_and_takes_the_defaults_on_the_page(home: Path) -> None:
    campaign = read_campaign(home / "short.toml")
    assert (campaign.title, campaign.question, campaign.unit) == ("short", "the mean", "")
    assert (campaign.data, campaign.spec.output.level, campaign.spec.output.decisions) == (None, 0.95, "csv")
    assert campaign.folder == home / "short"
    market = campaign.market_for(None)
    assert (market.user_weight, market.outside_option, market.max_privacy_loss) == (0, "own_data", None)
    assert market.tolerance == 1e-6
    assert market.stated_variance == 36


def test_no_help_names_a_limit_that_is_not_there() -> None:
    assert "None" not in help_texts()
