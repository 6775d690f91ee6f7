"""A run that is stopped, and one that is watched on a terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import FINAL_FILES, MARKET, PEOPLE, change, contents, estimate, hushbid, succeeds


def stopped(home: Path, at: int, number: int) -> subprocess.CompletedProcess[str]:
    """Run the campaign and let a signal arrive at the at-th step that makes something durable or gives it its name.

    1 to 4 make the release ledger and its key, 5 to 13 draw and store the estimate, 14 to 18 write the files, 19 to 23
    give them their names.
    """
    return hushbid("run", "sleep.toml", "--no-audit", cwd=home, stop=(at, int(number)))


@pytest.mark.parametrize(
    ("number", "at"),
    [
        (signal.SIGKILL, 2),
        (signal.SIGINT, 7),
        (signal.SIGKILL, 10),
        (signal.SIGINT, 15),
        (signal.SIGTERM, 18),
        (signal.SIGINT, 20),
        (signal.SIGKILL, 21),
    ],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else f"at {value}",
)
def test_a_stopped_run_leaves_nothing_half_written_and_draws_once(number: signal.Signals, at: int, home: Path) -> None:
    done = stopped(home, at, number)
    assert done.returncode != 0 or at > 18  # names are given all together
    if done.returncode != 0:
        expected = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}[number]
        assert done.returncode == expected, done.stderr
    folder = home / "sleep"
    there = [] if not folder.exists() else sorted(name for name in contents(folder) if not name.startswith("."))
    assert there in ([], FINAL_FILES) or (number is signal.SIGKILL and "record.json" not in there)
    if number is not signal.SIGKILL and folder.exists():
        assert not list(folder.glob(".*"))  # temporary files are gone
    store = Path(os.environ["HUSHBID_LEDGER"])
    drawn = [json.loads(path.read_text())["drawing"]["release"]["estimate"] for path in store.glob("*.json")]
    succeeds("run", "sleep.toml", "--no-audit", *(["--force"] if there == FINAL_FILES else []), cwd=home)
    assert len(list(store.glob("*.json"))) == 1
    assert drawn in ([], [estimate(home)])


def test_an_interrupt_while_reading_says_so_and_writes_nothing(home: Path) -> None:
    change(home / "sleep.toml", '"bids.csv"', '"pipe"')
    os.mkfifo(home / "pipe")
    command = [sys.executable, "-m", "hushbid", "run", "sleep.toml"]
    process = subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with open(home / "pipe", "w"):  # returns as soon as the command reads
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert err == "\nInterrupted: nothing is left half written.\n"
    assert not (home / "sleep").exists()


STOP_WHILE_LOADING = """
import os, signal, sys
where = sys.argv.pop(1)
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Stop())
from hushbid.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["click", "click.types", "numpy", "hushbid.mechanism"])
def test_an_interrupt_while_modules_are_loaded_is_told_in_a_line(module: str, home: Path) -> None:
    command = [sys.executable, "-c", STOP_WHILE_LOADING, module, "price", "bids.csv", *MARKET]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "\nInterrupted: nothing is left half written.\n"


STOP_WHILE_SHUTTING_DOWN = """
import os, signal, sys
number = int(sys.argv.pop(1))
class Late:
    def __del__(self, kill=os.kill, process=os.getpid(), number=number):
        kill(process, number)
late = Late()
from hushbid.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_a_complete_command_does_not_change_its_status(number: signal.Signals) -> None:
    command = [sys.executable, "-c", STOP_WHILE_SHUTTING_DOWN, str(int(number)), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout[:8], done.stderr) == (0, "hushbid ", "")


# -- a terminal --------------------------------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


def test_progress_is_shown_on_a_terminal_and_only_there(home: Path, terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    command: list[Any] = [sys.executable, "-m", "hushbid", "price", "bids.csv", *MARKET, "--json"]
    process = subprocess.Popen(command, cwd=home, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        shown += part
    out, _ = process.communicate(timeout=300)
    assert "deciding ..." in shown.decode()
    assert shown.decode().endswith("\r\033[2K")  # and is gone at the end
    assert json.loads(out)["people"] == PEOPLE
