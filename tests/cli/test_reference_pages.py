"""The reference pages of the command line and of the campaign file leave nothing out and invent nothing."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hushbid.allocation.goals import STATED
from hushbid.campaign import read_campaign
from hushbid.campaign.spec import CampaignSpec, fields_of
from hushbid.cli import COMMANDS, main
from tests.extent import each
from tests.golden.surface import help_texts
from tools.campaign_fields import PAGE, filled

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
SHARED = ("What all commands share", "Market options", "Column options")


def sections(page: Path) -> dict[str, str]:
    """The parts of a page by their headings of the second and third level."""
    parts = re.split(r"^##+ (.*)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def commands() -> dict[str, str]:
    """What the page says about each command, shared tables to which it refers included."""
    page = sections(REFERENCE / "command-line.md")
    found = {}
    for name in COMMANDS:
        own = page[f"hushbid {name}"]
        linked = [text for title, text in page.items() if f"(#{title.lower().replace(' ', '-')})" in own]
        found[name] = "\n".join([own, page[SHARED[0]], *linked])
    return found


def parameters(name: str) -> Iterator[click.Parameter]:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return iter(command.params)


@each("name", COMMANDS)
def test_every_option_and_argument_of_a_command_is_on_the_page(name: str, commands: dict[str, str]) -> None:
    for parameter in parameters(name):
        if isinstance(parameter, click.Option):
            for spelling in (*parameter.opts, *parameter.secondary_opts):
                assert re.search(rf"`{spelling}(?![\w-])", commands[name]), spelling
            assert parameter.help, f"{spelling} has no help"
            if isinstance(parameter.type, click.Choice):
                assert all(f"`{choice}`" in commands[name] for choice in parameter.type.choices), spelling
        else:
            shown = (parameter.metavar or parameter.human_readable_name.upper()).strip("[].")
            assert shown in commands[name], shown


@each("name", COMMANDS)
def test_the_page_promises_no_option_that_a_command_lacks(name: str, commands: dict[str, str]) -> None:
    own = sections(REFERENCE / "command-line.md")[f"hushbid {name}"]
    known = {spelling for one in parameters(name) for spelling in (*one.opts, *one.secondary_opts)}
    tabled = {
        option for row in re.findall(r"^\| (`--[^|]*)\|", own, re.MULTILINE) for option in re.findall("--[a-z-]+", row)
    }
    assert tabled <= known


@each("name", COMMANDS)
def test_defaults_on_the_page_are_those_of_the_command(name: str) -> None:
    page = sections(REFERENCE / "command-line.md")
    rows: dict[str, str] = {}
    own = page[f"hushbid {name}"]
    for title in (
        *(shared for shared in SHARED[1:] if f"[{shared}]" in own.replace("column", "Column")),
        f"hushbid {name}",
    ):
        rows |= dict(re.findall(r"^\| `(--[a-z-]+)[^|]*\| `([^|]*)` \|", page[title], re.MULTILINE))
    for option in parameters(name):
        shown = rows.get(option.opts[0])
        if shown is None or isinstance(option.default, bool):
            continue
        said = re.search(r"\[default: (.*)\]$", getattr(option, "help", ""))
        default = str(option.default).removesuffix(".0") if said is None else said[1]
        assert shown.split("`")[0] == default, option.opts[0]


def test_the_page_lists_the_commands_in_their_order() -> None:
    text = (REFERENCE / "command-line.md").read_text(encoding="utf-8")
    assert re.findall(r"^## hushbid (.*)$", text, re.MULTILINE) == list(COMMANDS)
    assert re.findall(r"^\| \[`([\w-]+)`\]", text, re.MULTILINE) == list(COMMANDS)


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


def test_the_tables_are_printed_from_the_schema() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert filled(text) == text, "run python -m tools.campaign_fields"


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
