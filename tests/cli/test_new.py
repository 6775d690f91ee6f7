"""``hushbid new`` writes campaign files that can be run, or nothing."""

import itertools
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from hushbid.campaign import read_campaign
from hushbid.campaign.drafting import draft_text
from hushbid.campaign.spec import CampaignSpec, fields_of
from hushbid.cli import main, new

SURVEY = """
[[questions]]
kind = "number"
name = "sleep \\"at night\\""
bounds = [0, 12]
variance = 2.5
unit = "hours"
importance = 2
standard_error = 1.5

[[questions]]
kind = "choice"
name = "shift"
answers = ["days", "no answer"]
column = "works"
standard_error = 0.5
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = (f"{place},{1 + place / 20},{'north' if place % 2 else 'south'}" for place in range(12))
    Path("bids.csv").write_text("\n".join(["id,bid,region", *rows]))
    Path("data.csv").write_text("\n".join(["id,value", *(f"{place},{place}" for place in range(12))]))
    Path("survey.toml").write_text(SURVEY)
    return tmp_path


def hushbid(*arguments: object, typed: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments], input=typed)


@pytest.mark.parametrize(
    "options",
    [
        ["--prior", "uniform:1,2", "--budget", 5, "--bounds", "0,12", "--currency", "EUR", "--data", "data.csv"],
        ["--prior", "lognormal:0,0.5", "--standard-error", 3, "--bounds", "0,12", "--setting", "local"],
        ["--prior", "uniform:1,2", "--hard-budget", 5, "--max-privacy-loss", 0.5],
        ["--prior", "uniform:1,2", "--questions", "survey.toml"],
        ["--prior", "uniform:1,2", "--budget", 5, "--strata-column", "region", "--shares", "north=0.4,south=0.6"],
        ["--prior", "north=uniform:1,2", "--prior", "south=uniform:1,3", "--budget", 5, "--group-column", "region"],
    ],
)
def test_what_is_written_can_be_run(options: list[object], home: Path) -> None:
    made = hushbid("new", *options, "--title", 'A "new"\\ one\n# x\x7f')
    assert (made.exit_code, made.stdout) == (0, "Written: campaign.toml. Next: hushbid run campaign.toml\n")
    assert read_campaign(Path("campaign.toml")).title == 'A "new"\\ one\n# x\x7f'
    done = hushbid("run", "campaign.toml", "--no-audit")
    assert done.exit_code == 0, done.output


def test_a_column_of_groups_may_be_called_group(home: Path) -> None:
    made = hushbid("new", "--prior", "a=uniform:1,2", "--budget", 5, "--group-column", "group", "--bids", "r.csv")
    assert made.exit_code == 0, made.output
    assert tomllib.loads(Path("campaign.toml").read_text())["bids"] == {"file": "r.csv", "group": "group"}


def test_the_file_states_what_the_options_state_and_no_more(home: Path) -> None:
    hushbid(
        "new", "--prior", "uniform:1,2", "--budget", 5, "--bounds", "0,12.5", "--unit", "hours", "--out", "sub/x.toml"
    )
    assert tomllib.loads(Path("sub/x.toml").read_text()) == {
        "title": "x",
        "question": "the mean",
        "unit": "hours",
        "market": {"setting": "central", "prior": "uniform:1,2", "bounds": [0, 12.5], "budget": 5},
        "money": {},
        "bids": {"file": "../bids.csv"},
        "output": {},
    }


def test_a_survey_is_written_as_it_was_read(home: Path) -> None:
    hushbid("new", "--prior", "uniform:1,2", "--questions", "survey.toml")
    written = tomllib.loads(Path("campaign.toml").read_text())["questions"]
    stated = tomllib.loads(SURVEY)["questions"]
    assert written == stated


OTHERS = ("questions.", "server.")
"""Fields that stand in a file only where they are stated."""


def test_every_field_that_is_commented_out_may_be_stated(home: Path) -> None:
    text = draft_text({"title": "x", "market": {"prior": "uniform:1,2"}, "strata": {"column": "s"}})
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    fields = [line for line in lines if (" = " in line and line.split(" = ")[0].isidentifier()) or line.startswith("[")]
    stated = tomllib.loads("\n".join(fields))
    assert stated["market"]["max_correlation"] == 0.1
    assert stated["data"]["file"] == "data.csv"
    shown = {f"{table}.{name}" for table, one in stated.items() if isinstance(one, dict) for name in one}
    of_tables = {name for name, _ in fields_of(CampaignSpec) if "." in name and not name.startswith(OTHERS)}
    assert of_tables - shown == set()
    assert stated["money"]["spending_limit"] == 1000


def test_files_may_come_later_but_those_that_are_there_must_fit(home: Path) -> None:
    later = hushbid("new", "--prior", "uniform:1,2", "--budget", 5, "--bids", "later.csv", "--data", "none.csv")
    assert later.exit_code == 0
    assert "collect people's bids in later.csv" in later.stdout
    wrong = hushbid("new", "--prior", "uniform:1,2", "--budget", 5, "--id-column", "who", "--out", "other.toml")
    assert wrong.exit_code == 2
    assert "has no column 'who'" in wrong.stderr
    assert not Path("other.toml").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "--prior is missing"),
        (["--prior", "uniform:1,2"], "exactly one of --budget"),
        (["--prior", "uniform:1,2", "--budget", 5, "--out", "x.txt"], "--out must end in .toml"),
        (
            ["--prior", "uniform:1,2", "--budget", 5, "--strata-column", "region"],
            "must state what is wanted of the strata",
        ),
        (
            ["--prior", "uniform:1,2", "--budget", 5, "--strata-column", "region", "--shares", "x"],
            "--shares must be a number for each stratum",
        ),
        (
            ["--prior", "uniform:1,2", "--budget", 5, "--strata-column", "region", "--shares", "a=2"],
            "--shares must be above 0 and at most 1",
        ),
        (["--prior", "uniform:1,2", "--questions", "survey.toml", "--unit", "h"], "--unit cannot be stated"),
        (["--prior", "uniform:2,1", "--budget", 5], "high must be"),
    ],
)
def test_what_cannot_be_a_campaign_is_refused_and_nothing_is_written(
    options: list[object], told: str, home: Path
) -> None:
    done = hushbid("new", *options)
    assert done.exit_code == 2
    assert told in done.stderr
    assert not Path("campaign.toml").exists()


def test_a_file_that_exists_is_replaced_with_force_only(home: Path) -> None:
    Path("campaign.toml").write_text("mine")
    refused = hushbid("new", "--prior", "uniform:1,2", "--budget", 5)
    assert (refused.exit_code, refused.stderr) == (5, "Error: campaign.toml exists already: --force replaces.\n")
    assert Path("campaign.toml").read_text() == "mine"
    assert hushbid("new", "--prior", "uniform:1,2", "--budget", 5, "--force").exit_code == 0
    assert read_campaign(Path("campaign.toml")).title == "campaign"


class _Terminal:
    """Standard input that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_what_is_not_stated_is_asked_for_until_it_is_allowed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new, "sys", type("System", (), {"stdin": _Terminal()}))
    answers = ["Sleep", "mean sleep", "12,0", "0,12", "hours", "central", "nonsense", "uniform:1,2"]
    answers += ["budget", "-1", "5", "eur", "EUR", "", ""]
    made = hushbid("new", typed="\n".join(answers) + "\n")
    assert made.exit_code == 0, made.output
    campaign = read_campaign(Path("campaign.toml"))
    assert (campaign.title, campaign.question, campaign.unit) == ("Sleep", "mean sleep", "hours")
    assert (campaign.market["bounds"], campaign.currency.code, campaign.data) == ((0, 12), "EUR", None)


def test_leaving_the_questions_writes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new, "sys", type("System", (), {"stdin": _Terminal()}))

    def interrupted(*question: object, **how: object) -> object:
        raise click.Abort

    monkeypatch.setattr(click, "prompt", interrupted)
    left = hushbid("new")
    assert (left.exit_code, left.stderr) == (130, "\nInterrupted: nothing is left half written.\n")
    assert not Path("campaign.toml").exists()


# -- by a plan ---------------------------------------------------------------------------------------------------------

PLAN = ("plan", "--prior", "uniform:1,2", "--bounds", "0,12.5", "--repetitions", 20)


@pytest.mark.parametrize(
    ("options", "stated"),
    [
        (["--budget", 5, "--people", 12, "--currency", "EUR"], {"budget": 5}),
        (["--standard-error", 5, "--target-payment", 90, "--max-correlation", 0.05], {"standard_error": 5}),
        (["--buyer-weight", 3, "--people", 12, "--setting", "local"], {"buyer_weight": 3, "setting": "local"}),
    ],
)
def test_a_plan_writes_the_campaign_that_it_planned(
    options: list[object], stated: dict[str, object], home: Path
) -> None:
    made = hushbid(*PLAN, *options, "--write", "planned.toml")
    assert made.exit_code == 0, made.output
    assert made.stdout.endswith("Written: planned.toml. Next: hushbid run planned.toml\n")
    text = Path("planned.toml").read_text()
    market = tomllib.loads(text)["market"]
    assert {"prior": "uniform:1,2", "bounds": [0, 12.5], **stated}.items() <= market.items()
    assert "# Planned for " in text
    assert hushbid("run", "planned.toml", "--no-audit").exit_code == 0


def test_a_plan_replaces_no_file_unless_it_is_told_to_and_plans_nothing_in_vain(home: Path) -> None:
    Path("mine.toml").write_text("mine")
    refused = hushbid(*PLAN, "--budget", 5, "--people", 12, "--write", "mine.toml")
    assert (refused.exit_code, refused.stdout, Path("mine.toml").read_text()) == (5, "", "mine")
    assert "--force replaces" in refused.stderr
    assert hushbid(*PLAN, "--budget", 5, "--people", 12, "--write", "mine.toml", "--force").exit_code == 0
    survey = ("plan", "--prior", "uniform:1,2", "--repetitions", 20, "--questions", "survey.toml", "--people", 12)
    read = hushbid(*survey, "--write", "survey.toml", "--force")
    assert (read.exit_code, Path("survey.toml").read_text()) == (2, SURVEY)
    assert hushbid(*PLAN, "--budget", 5, "--people", 12, "--write", "x.txt").exit_code == 2


def test_no_comment_is_torn_apart_by_its_field(home: Path) -> None:
    hushbid("new", "--prior", "uniform:1,2", "--budget", 5)
    lines = Path("campaign.toml").read_text().splitlines()
    after = [later for line, later in itertools.pairwise(lines) if line and not line.startswith(("#", "["))]
    assert [line for line in after if line.startswith("# ") and not line[2].isupper()] == []
