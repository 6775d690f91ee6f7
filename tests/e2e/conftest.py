"""Commands as processes, and a folder with a small campaign."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

PEOPLE = 60
CAMPAIGN = """\
title = "Sleep"
question = "mean sleep"
unit = "hours"

[market]
setting = "central"
prior = "uniform:1,3"
bounds = [0, 12]
variance = 2
buyer_weight = 500

[money]
currency = "EUR"
spending_limit = 1000

[bids]
file = "bids.csv"
group = "shift"

[data]
file = "data.csv"
"""
MARKET = ("--prior", "uniform:1,3", "--bounds", "0,12", "--variance", "2", "--buyer-weight", "500")
"""The campaign's market as options."""

FINAL_FILES = ["decisions.csv", "estimate.json", "payments.csv", "record.json", "report.html"]


@cache
def parent() -> subprocess.Popen[str]:
    """The process whose children the commands are; one per test run."""
    variables = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # no threads before a fork
    command, root = [sys.executable, "-m", "tests.e2e.parent"], Path(__file__).parents[2]
    return subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables)


@pytest.fixture(scope="session", autouse=True)
def parent_ends() -> Iterator[None]:
    yield
    if parent.cache_info().currsize:
        parent().communicate(timeout=300)


ASK = """
import json, os, sys
streams = [f"/proc/{os.getpid()}/fd/{place}" for place in range(3)]
request = {"arguments": sys.argv[3:], "cwd": os.getcwd(), "streams": streams, "variables": dict(os.environ)}
os.write(int(sys.argv[1]), json.dumps(request).encode() + b"\\n")
sys.exit(int(open(int(sys.argv[2])).readline()))
"""
"""The command, in a shell: asks the parent for a child with the shell's streams, folder and variables."""


def in_shell(script: str, *, cwd: Path) -> str:
    """What a script for bash prints, its errors included; in it, ``hushbid`` and ``python`` are ours."""
    process, python = parent(), shlex.quote(sys.executable)
    assert process.stdin is not None
    assert process.stdout is not None
    pipes = (process.stdin.fileno(), process.stdout.fileno())
    ask = f"{python} -I -S -c {shlex.quote(ASK)} {pipes[0]} {pipes[1]}"
    done = subprocess.run(
        ["bash", "-c", f'hushbid() {{ {ask} "$@"; }}; python() {{ {python} "$@"; }}; {script}'],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        pass_fds=pipes,
        env={**os.environ, "HUSHBID_STORE": str(cwd / "store")},
        check=False,
    )
    return done.stdout


def hushbid(
    *arguments: object,
    cwd: Path,
    text: str | None = None,
    stop: tuple[int, int] | None = None,
    noise: float = 1.0,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, or until a signal ``stop[1]`` arrives at its ``stop[0]``-th durable step.

    ``noise`` is planted: by this factor all noise differs from what it should be.
    """
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        for stream in streams:
            stream.touch()
        streams[0].write_text(text or "")
        request = {
            "arguments": [str(one) for one in arguments],
            "cwd": str(cwd),
            "streams": [str(stream) for stream in streams],
            "variables": {"HUSHBID_STORE": str(cwd / "store"), "HUSHBID_LEDGER": os.environ["HUSHBID_LEDGER"]},
            "stop": stop,
            "noise": noise,
        }
        process = parent()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        status = int(process.stdout.readline())
        return subprocess.CompletedProcess(list(arguments), status, streams[1].read_text(), streams[2].read_text())


def succeeds(*arguments: object, cwd: Path, text: str | None = None) -> str:
    done = hushbid(*arguments, cwd=cwd, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


REFUSALS = range(2, 8)
"""Which of them says what is the claim of tests/cli/test_exit_codes.py."""


def refused(*arguments: object, cwd: Path, text: str | None = None) -> str:
    """What a refusal says: status 2, nothing on standard output, no traceback."""
    done = hushbid(*arguments, cwd=cwd, text=text)
    assert done.returncode in REFUSALS, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a campaign of 60 people, whose data stand in another order than their bids."""
    rng = np.random.default_rng(1)
    prices, sleep = rng.uniform(1, 3, PEOPLE), np.clip(rng.normal(7, 1, PEOPLE), 0, 12)
    rows = [f"p{k},{price!r},{'day' if k % 2 else 'night'}\n" for k, price in enumerate(prices.tolist())]
    (tmp_path / "bids.csv").write_text("id,bid,shift\n" + "".join(rows))
    values = [f"p{k},{value!r}\n" for k, value in enumerate(sleep.tolist())]
    (tmp_path / "data.csv").write_text("id,value\n" + "".join(reversed(values)))
    (tmp_path / "sleep.toml").write_text(CAMPAIGN)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def estimate(home: Path) -> float:
    """To the last digit, which the record keeps."""
    return float(json.loads((home / "sleep" / "record.json").read_text())["release"]["estimate"])
