"""The scripts behind make: what they say when something is missing, and that they stay quiet when nothing is."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"
BASH = "/bin/bash"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder that will be the whole PATH, on which nobody is root."""
    stub(tmp_path / "id", "echo 1000")
    stub(tmp_path / "dirname", 'echo "${1%/*}"')
    return tmp_path


def stub(path: Path, script: str) -> None:
    path.write_text(f"#!{BASH}\n{script}\n")
    path.chmod(0o755)


def run(script: str, *arguments: str, path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BASH, TOOLS / script, *arguments], env={"PATH": str(path), **variables}, capture_output=True, text=True
    )


def test_setup_says_that_python_is_missing(machine: Path) -> None:
    done = run("setup.sh", str(machine / "venv"), "requirements.lock", path=machine, PYTHON="python9")
    assert done.returncode == 1
    assert done.stderr == (
        "setup: python9 is not installed: Hushbid needs Python 3.11 or newer (choose one with PYTHON=...)\n"
    )


def test_setup_says_that_python_is_too_old(machine: Path) -> None:
    stub(machine / "python3", 'if [ "$1" = --version ]; then echo Python 3.9.2; else exit 1; fi')
    done = run("setup.sh", str(machine / "venv"), "requirements.lock", path=machine)
    assert done.returncode == 1
    assert done.stderr == ("setup: python3 is Python 3.9.2: Hushbid needs 3.11 or newer (choose one with PYTHON=...)\n")


def test_setup_says_what_to_install_when_there_is_no_venv_module(machine: Path) -> None:
    stub(machine / "python3", '[ "$2" != venv ]')
    stub(machine / "rm", "exit 0")
    done = run("setup.sh", str(machine / "venv"), "requirements.lock", path=machine)
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr


def test_system_deps_are_silent_when_all_is_there(machine: Path) -> None:
    for program in ("initdb", "chromium", "java"):
        stub(machine / program, "exit 1")
    done = run("system-deps.sh", path=machine)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_system_deps_name_what_is_missing_and_go_on(machine: Path) -> None:
    stub(machine / "initdb", "exit 1")
    stub(machine / "java", "exit 1")
    done = run("system-deps.sh", path=machine)
    assert done.returncode == 0
    assert done.stderr.startswith(
        "test-deps: not installed here: chromium-headless-shell fonts-liberation; tests that need them"
    )


def test_every_module_that_make_or_a_page_runs_is_there() -> None:
    pages = [ROOT / "Makefile", *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"python -m ((?:tests|benchmarks)[\w.]*)", page.read_text())}
    assert {"tests.server.soak", "tests.golden.make", "benchmarks.run"} <= named
    assert [name for name in named if not (ROOT / f"{name.replace('.', '/')}.py").is_file()] == []
