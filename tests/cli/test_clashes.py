"""No command writes over what it reads, or two things to one place, whatever the places are called and with --force."""

import contextlib
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hushbid.cli import main
from hushbid.common.staging import refuse_clashes
from hushbid.errors import InputError

MARKET = ("--prior", "uniform:1,3", "--buyer-weight", "500")
PRIVATIZE = ("privatize", "--campaign", "c", "--privacy-loss", "1", "--at-most", "1", "--bounds", "0,9")
CAMPAIGN = """\
[market]
setting = "central"
prior = { file = "prior.json" }
bounds = [0, 1]
buyer_weight = 500

[bids]
file = "bids.csv"

[data]
file = "data.csv"

[output]
folder = "."
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rows = range(20)
    (tmp_path / "bids.csv").write_text("id,bid\n" + "".join(f"p{row},{1 + row / 10}\n" for row in rows))
    (tmp_path / "pilot.csv").write_text("id,bid\n" + "".join(f"q{row},{1 + row / 10}\n" for row in rows))
    (tmp_path / "data.csv").write_text("id,value\n" + "".join(f"p{row},0.5\n" for row in rows))
    (tmp_path / "value.txt").write_text("5")
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    (tmp_path / "link.csv").symlink_to("bids.csv")
    os.link(tmp_path / "bids.csv", tmp_path / "hard.csv")
    assert hushbid("fit-prior", "pilot.csv", "--out", "prior.json", cwd=tmp_path).exit_code == 0
    assert hushbid("price", "bids.csv", *MARKET, "--record", "decided.json", cwd=tmp_path).exit_code == 0
    return tmp_path


def hushbid(*arguments: str, cwd: Path) -> Result:
    with contextlib.chdir(cwd):
        return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize(
    "call",
    [
        ("price", "bids.csv", *MARKET, "--out", "bids.csv"),
        ("price", "bids.csv", *MARKET, "--out", "./bids.csv"),
        ("price", "bids.csv", *MARKET, "--out", "link.csv"),
        ("price", "link.csv", *MARKET, "--out", "bids.csv"),
        ("price", "bids.csv", *MARKET, "--out", "hard.csv"),
        ("price", "bids.csv", *MARKET, "--record", "bids.csv"),
        ("price", "bids.csv", "--budget", "5", "--prior", "prior.json", "--record", "prior.json"),
        ("price", "bids.csv", *MARKET, "--out", "new.csv", "--record", "new.csv"),
        ("price", "bids.csv", *MARKET, "--out", "new.csv", "--record", "NEW.csv"),
        ("fit-prior", "pilot.csv", "--out", "link.json"),
        ("release", "decided.json", "data.csv", "--out", "decided.json"),
        ("release", "decided.json", "data.csv", "--out", "data.csv"),
        (*PRIVATIZE, "--value-file", "value.txt", "--out", "value.txt"),
        ("run", "campaign.toml"),
        ("run", "record.json"),
        ("backup", "server/hushbid.sqlite", "--home", "server"),
    ],
    ids=" ".join,
)
def test_what_a_command_reads_is_not_overwritten_even_with_force(call: tuple[str, ...], home: Path) -> None:
    (home / "server").mkdir()
    (home / "link.json").symlink_to("pilot.csv")
    if call == ("run", "campaign.toml"):
        (home / "campaign.toml").write_text(CAMPAIGN.replace("data.csv", "estimate.json"))
        (home / "data.csv").rename(home / "estimate.json")
    (home / "record.json").write_text(CAMPAIGN)
    before = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    done = hushbid(*call, "--force", cwd=home)
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr
    assert {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()} == before
    assert list((home / "server").iterdir()) == []


@pytest.mark.parametrize(
    ("output", "source"),
    [("folder/part.parquet", "folder"), ("folder", "folder/part.parquet"), ("s3://a/b", "s3://a/b")],
)
def test_a_folder_that_is_read_counts_with_all_that_is_in_it(output: str, source: str, home: Path) -> None:
    (home / "folder").mkdir()
    (home / "folder" / "part.parquet").touch()
    with contextlib.chdir(home), pytest.raises(InputError, match="cannot be written"):
        refuse_clashes([output], [source])
