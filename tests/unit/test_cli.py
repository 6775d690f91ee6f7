"""The frame of the command line; each command has tests of its own."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hushbid.cli import COMMANDS, main
from hushbid.errors import InputError


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


def test_what_hushbid_refuses_is_one_sentence_and_status_2(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def refuse() -> None:
        raise InputError("people must be at least 1, got 0.")

    monkeypatch.setattr("hushbid.cli.demo.command", refuse)
    told = CliRunner().invoke(main, ["demo"])
    assert told.exit_code == 2
    assert told.output == "Error: people must be at least 1, got 0.\n"


def test_the_demo_prints_and_saves_the_same_result_for_the_same_seed(tmp_path: Path) -> None:
    saved = []
    for place in (tmp_path / "one", tmp_path / "two"):
        told = CliRunner().invoke(main, ["demo", "--people", "500", "--out", str(place)])
        assert told.exit_code == 0, told.output
        assert str(place / "decisions.csv") in told.output
        saved.append((place / "decisions.csv").read_bytes() + (place / "summary.json").read_bytes())
    assert saved[0] == saved[1]


def test_in_the_demo_trust_is_cheaper_than_no_trust(tmp_path: Path) -> None:
    CliRunner().invoke(main, ["demo", "--people", "500", "--out", str(tmp_path)])
    settings = json.loads((tmp_path / "summary.json").read_text())["settings"]
    assert settings["central"]["objective"] < settings["local"]["objective"]
    for figures in settings.values():
        assert figures["lower_bound"] <= figures["objective"]
