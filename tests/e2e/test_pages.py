"""The pages with commands on them: every file is written, every command runs, every output is what the page shows."""

import difflib
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.conftest import in_shell

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(
    r"^```(?P<kind>\w+)(?: title=\"(?P<file>[^\"]+)\")?\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL
)
BY_CHANCE = ("Estimate of ", "Shares of ", "Holds: everything")
"""How the lines begin whose numbers depend on noise."""


def without_chance(line: str) -> str:
    """A line of output; one that noise decides keeps its words and loses its numbers."""
    if line.startswith(BY_CHANCE):
        line = line.replace("no usable result (the interval covers more than half of the range); ", "")
        return re.sub(r"\b[0-9a-f]{64}\b|[-−]?\d+(\.\d+)?", "#", line)
    line = re.sub(r"^(Created a release ledger): \S+", r"\1: #", line)  # in a folder of the account
    line = re.sub(r"[\d,.]+ at the very worst", "# at the very worst", line)  # a bound, which may become sharper
    return re.sub(r"(\d\.\d{6})\d+", r"\1", line)  # the last digits differ between processors


def as_shown(page: str, found: str) -> bool:
    """Whether the output is what the page shows; a line of three dots stands for any lines."""
    shown = [re.escape(without_chance(line)) + r"\n" for line in page.splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == r"\.\.\.\n" else line for line in shown)
    return re.fullmatch(pattern, "".join(f"{without_chance(line)}\n" for line in found.splitlines())) is not None


def calls(console: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with its output."""
    parts = re.split(r"^\$ (.*)\n", console, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def play(page: Path, folder: Path) -> list[str]:
    """Do what the page says; where the output is another one, how it differs."""
    wrong = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["file"]:
            (folder / block["file"]).write_text(block["content"], encoding="utf-8")
        elif block["kind"] == "console":
            for command, shown in calls(block["content"]):
                if command.startswith("pip "):
                    continue
                found = in_shell(command, cwd=folder)
                if not as_shown(shown, found):
                    wrong += [f"$ {command}", *difflib.ndiff(shown.splitlines(), found.splitlines())]
    return wrong


@pytest.mark.parametrize(
    "page",
    [
        "tutorials/first-campaign.md",
        "reference/campaign-file.md",
        "how-to/choose-a-setting.md",
        "how-to/extend.md",
        "how-to/state-a-goal.md",
        "how-to/survey-a-panel.md",
    ],
)
def test_the_page_shows_what_happens(page: str, tmp_path: Path) -> None:
    wrong = play(DOCS / page, tmp_path)
    assert not wrong, "\n".join(wrong)


def test_the_page_about_tables_shows_what_happens(tmp_path: Path) -> None:
    # The people that the page's own example draws.
    people = {"id": np.arange(200_000), "bid": np.random.default_rng(1).uniform(100, 200, 200_000)}
    pq.write_table(pa.table(people), tmp_path / "people.parquet")
    wrong = play(DOCS / "how-to" / "buy-from-a-table.md", tmp_path)
    assert not wrong, "\n".join(wrong)


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one two\none three\n$ echo Estimate of 3.5\nEstimate of 1.25\n```\n")
    assert [line for line in play(page, tmp_path) if line.startswith("$")] == ["$ echo one two"]
    assert as_shown("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not as_shown("a\n...\nd\n", "a\nb\nc\n")
