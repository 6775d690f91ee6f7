"""Inputs that nobody writes by accident: each is refused in one sentence, with status 2, and leaves nothing behind."""

import contextlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hushbid.cli import demo, main
from hushbid.priors import parse_prior, prior_from_dict

MARKET = ("--prior", "uniform:1,3", "--buyer-weight", "500")
CAMPAIGN = """\
[market]
setting = "central"
prior = PRIOR
bounds = [0, 1]
buyer_weight = 500

[bids]
file = "bids.csv"

[output]
folder = "made/by/run"
"""
PRIOR_FILE = '{"format": "hushbid prior", "version": 1, "prior": PRIOR, "fit": {}, "pilot": PILOT}'
UNIFORM = '{"family": "uniform", "low": 1, "high": 3}'
PILOT = '{"people": 3, "key": "00112233445566778899aabbccddeeff", "ids": null}'
DIGITS = "9" * 5000


def nested(depth: int) -> str:
    """A mixture of a mixture of a mixture ..."""
    return "mixture:1*(" * depth + "uniform:1,3" + ")" * depth


def nested_dict(depth: int) -> str:
    return '{"family": "mixture", "weights": [1], "components": [' * depth + UNIFORM + "]}" * depth


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "bids.csv").write_text("id,bid\n" + "".join(f"p{row},{1 + row / 9}\n" for row in range(9)))
    return tmp_path


def refused(*arguments: str, cwd: Path) -> Result:
    before = {path: path.is_file() and path.read_bytes() for path in cwd.rglob("*")}
    with contextlib.chdir(cwd):
        done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code in range(2, 8), done.output  # which of them: test_exit_codes
    assert "Error: " in done.stderr
    assert "Traceback" not in done.output
    assert {path: path.is_file() and path.read_bytes() for path in cwd.rglob("*")} == before
    return done


@pytest.mark.parametrize(
    "content",
    [
        "x = " + "[" * 5000 + "]" * 5000 + "\n" + CAMPAIGN,
        "x = " + "{a = " * 3000 + "1" + "}" * 3000 + "\n" + CAMPAIGN,
        f"x = {DIGITS}\n" + CAMPAIGN,
        CAMPAIGN.replace("PRIOR", "{a = " * 3000 + "1" + "}" * 3000),
        CAMPAIGN.replace("PRIOR", f'"{nested(9)}"'),
        CAMPAIGN.replace("PRIOR", f'"{nested(2000)}"'),
        CAMPAIGN.replace("500", DIGITS[:400]),
        CAMPAIGN.replace("500", "{payment = 1e308, from_standard_error = 1e-200, to_standard_error = 1e-201}"),
        CAMPAIGN.replace("500", "1e308\nvariance = 1e-320"),
        CAMPAIGN.replace("[0, 1]", f"[0, {DIGITS[:400]}]"),
        CAMPAIGN.replace("bids.csv", "a\\u0000b"),
        CAMPAIGN.replace("made/by/run", "a\\u0000b"),
        'title = "a\\u0000b"\n' + CAMPAIGN,
        CAMPAIGN.replace("PRIOR", '{ file = "\\u0000.json" }'),
        CAMPAIGN.replace("made/by/run", "bids.csv/run"),
        CAMPAIGN.replace("500", "500\n[money]\nspending_limit = 1e-9"),
    ],
    ids=range(16),
)
def test_a_hostile_campaign_file_is_refused_and_leaves_nothing_behind(content: str, home: Path) -> None:
    (home / "campaign.toml").write_text(content.replace("PRIOR", '"uniform:1,3"'))
    refused("run", "campaign.toml", cwd=home)


def test_a_refusal_shows_a_name_on_one_line_and_without_control_characters(home: Path) -> None:
    (home / "campaign.toml").write_text(
        'title = "a\\u0000b\\u001b[31m\\n x"\n' + CAMPAIGN.replace("PRIOR", '"uniform:1,3"')
    )
    told = refused("run", "campaign.toml", cwd=home)
    assert r'got "a\x00b\x1b[31m\n x".' in told.output


FILES_OF_A_USER = ("bids.csv", "data.csv", "prior.json", "record.json", "report.html", "campaign.toml")


@pytest.mark.parametrize("name", FILES_OF_A_USER)
@pytest.mark.parametrize("force", [["--force"], []], ids=["forced", "unforced"])
def test_a_demo_never_replaces_what_is_not_a_demo(name: str, force: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_text('title = "Sleep of hospital staff"\n')
    done = CliRunner().invoke(main, ["demo", "--people", "20", "--out", str(tmp_path), *force])
    assert done.exit_code == 5
    assert f"{tmp_path / name} is not from a demo" in done.output
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == 'title = "Sleep of hospital staff"\n'


def test_a_record_of_real_people_beside_a_demos_campaign_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "campaign.toml").write_text(demo.campaign_text())
    (tmp_path / "record.json").write_text("{}")
    done = CliRunner().invoke(main, ["demo", "--people", "20", "--out", str(tmp_path), "--force"])
    assert (done.exit_code, (tmp_path / "record.json").read_text()) == (5, "{}")


@pytest.mark.parametrize(
    ("prior", "pilot"),
    [
        ("[" * 100_000, PILOT),
        (nested_dict(9), PILOT),
        (nested_dict(300), PILOT),
        (UNIFORM.replace("3", DIGITS[:400]), PILOT),
        (UNIFORM.replace("3", DIGITS), PILOT),
        ('{"family": "empirical", "values": [1, ' + DIGITS[:400] + '], "weights": null}', PILOT),
        (UNIFORM, '{"people": 3, "key": "zz", "ids": ["a"]}'),
        (UNIFORM, '{"people": 3, "key": "' + "ab" * 100 + '", "ids": ["a"]}'),
        (UNIFORM, '{"people": 1e400, "key": "00112233445566778899aabbccddeeff", "ids": null}'),
        (UNIFORM, '{"people": 3, "key": "00112233445566778899aabbccddeeff", "ids": [["a"]]}'),
    ],
    ids=range(10),
)
def test_a_hostile_prior_file_is_refused(prior: str, pilot: str, home: Path) -> None:
    (home / "prior.json").write_text(PRIOR_FILE.replace("PRIOR", prior).replace("PILOT", pilot))
    refused("price", "bids.csv", "--prior", "prior.json", "--budget", "5", cwd=home)


@pytest.mark.parametrize(
    "call",
    [
        ("price", "bids.csv", *MARKET, "--group-column", ""),
        ("plan", *MARKET, "--people", "5", "--repetitions", "20", "--max-privacy-loss", "1e-320"),
        ("price", "bids.csv", "--prior", nested(50), "--budget", "5", "--record", "new/folder/record.json"),
        ("price", "bids.csv", *MARKET, "--spending-limit", "1e-9", "--record", "new/folder/record.json"),
        ("price", "nobody.csv", *MARKET, "--record", "new/folder/record.json"),
        ("plan", "--prior", "uniform:1,3", "--people", "5", "--standard-error", "1e200"),
        ("plan", *MARKET, "--people", "9" * 30),
        (
            "privatize",
            "--campaign",
            "\udcff",
            "--privacy-loss",
            "1",
            "--at-most",
            "1",
            "--bounds",
            "0,1",
            "--store",
            "store",
        ),
        ("release", "/", "bids.csv"),
        ("release", "", "bids.csv"),
        ("restore", "nothing", "--home", "new"),
        ("backup", "file", "--home", "new"),
        ("users", "list", "--home", "new"),
        ("keys", "list", "--home", "new"),
    ],
    ids=lambda call: " ".join(call)[:40].encode("ascii", "replace").decode(),
)
def test_a_refused_command_leaves_no_folder_behind(call: tuple[str, ...], home: Path) -> None:
    refused(*call, cwd=home)


def test_a_name_of_a_column_as_long_as_a_book_is_refused(home: Path) -> None:
    (home / "bids.csv").write_text("id," + "s" * 2_000_000 + ",bid\n1,2,3\n")
    assert "line 1, is not CSV" in refused("price", "bids.csv", *MARKET, cwd=home).stderr


def test_mixtures_within_mixtures_are_read_up_to_four_deep() -> None:
    assert parse_prior(nested(4)).support == (1.0, 3.0)
    assert prior_from_dict(parse_prior(nested(4)).to_dict()) == parse_prior(nested(4))
