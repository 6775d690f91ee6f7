"""`hushbid serve` as people run it: a process of its own, accounts beside it, bots against it, an orderly end."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from hushbid.campaign.drafting import draft_text
from hushbid.cli import main
from hushbid.server.store.database import Database
from tests.server.support import PASSWORD, Installation, stated

PATIENCE = 120
QUICK = stated(minimum_people=5)
"""A campaign that is forecast and decided about at once."""


def hushbid(*arguments: str | Path, given: str = "", **environment: str) -> Result:
    """Run a command to its end."""
    return CliRunner().invoke(main, list(map(str, arguments)), input=given, env=environment)


@contextmanager
def served(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that answers, and its address; killed if it does not end by itself."""
    command = [sys.executable, "-m", "hushbid", "serve", "--port", "0", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = process.stdout.readline() + process.stdout.readline()
            address = re.search(r"http://[^ ]+", told)
            assert address, process.stderr.read() if process.stderr else told
            yield process, address[0]
        finally:
            if process.poll() is None:
                process.kill()


def stopped(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def where(installation: Installation) -> list[str]:
    """The options that name an installation."""
    named = ["--home", str(installation.folder)]
    return named if installation.url is None else [*named, "--database", installation.url]


def token_of_ann(*options: str | Path) -> str:
    """Ann's account, made beside a running server."""
    made = hushbid("users", "add", "ann", *options, given=f"{PASSWORD}\n")
    assert made.exit_code == 0, made.stderr
    return hushbid("users", "token", "ann", *options).stdout.strip()


def test_a_server_starts_answers_bots_play_and_it_ends_in_order(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with served("--home", home) as (process, url):
        health = httpx.get(f"{url}/api/v1/health")
        assert health.json()["status"] == "ok"
        port = url.rpartition(":")[2]
        second = hushbid("serve", "--home", tmp_path / "two", "--port", port)
        assert second.exit_code == 2
        assert f"127.0.0.1 port {port} cannot be used" in second.stderr
        token = token_of_ann("--home", home)
        campaign = tmp_path / "campaign.toml"
        campaign.write_text(draft_text(QUICK))
        bots = [sys.executable, "-m", "hushbid.server.bots", url, "--n", "12", "--campaign", str(campaign)]
        environment = {**os.environ, "HUSHBID_TOKEN": token}
        played = subprocess.run(bots, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        assert played.returncode == 0, played.stdout + played.stderr
        result = json.loads(played.stdout)
        assert (result["ok"], result["bots"]) == (True, 12)
        code, out, err = stopped(process, signal.SIGTERM)
    assert code == 0, err
    assert token not in out + err
    assert out == "Stopped.\n"
    assert "hushbid users add" in err, "nobody is at a terminal, so no password is shown"
    assert "password" not in out
    assert "hushbid.access GET /api/v1/health 200" in err
    assert home.stat().st_mode & 0o777 == 0o700
    assert "Traceback" not in err


@pytest.mark.parametrize("url", ["http://example.org", "https://example.org/path", "example.org", "https://"])
def test_an_address_without_tls_or_with_a_path_is_refused(tmp_path: Path, url: str) -> None:
    told = hushbid("serve", "--home", tmp_path / "home", "--url", url)
    assert told.exit_code == 2
    assert "--url must look like https://" in told.stderr
    assert not (tmp_path / "home").exists()


def refused_beside_a_running_server(*options: str) -> None:
    """A second server, and a restore; each in one sentence."""
    second = hushbid("serve", "--port", "0", *options)
    assert (second.exit_code, second.stdout) == (2, "")
    assert second.stderr.strip().splitlines()[-1].startswith("Error: Another server is running on this database")
    restoring = hushbid("restore", __file__, *options)
    assert restoring.exit_code == 2
    assert "Another server is running" in restoring.stderr


def test_beside_a_running_server_accounts_are_made_and_no_second_server_starts(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = where(installation)
    # this server is not dying, so commands of this process need not wait for its end
    defaults = Database.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "patience", installation.patience)
    with served("--quiet", *options) as (process, url):
        refused_beside_a_running_server(*options)
        token = token_of_ann(*options)
        login = httpx.post(f"{url}/api/v1/session", json={"name": "ann", "password": PASSWORD})
        assert login.status_code == 200
        backup = installation.folder.parent / "backup.gz"
        assert "0 campaigns" in hushbid("backup", backup, *options).stdout
        code, out, err = stopped(process, signal.SIGINT)  # as Ctrl-C does
    assert code == 0, err
    assert token not in out + err
    assert "hushbid.access" not in err


def test_users_are_listed_changed_and_removed(tmp_path: Path) -> None:
    home = ("--home", tmp_path / "home")
    assert "holds no server" in hushbid("users", "list", *home).stderr
    made = json.loads(hushbid("users", "add", "otto", "--role", "auditor", "--generate", "--json", *home).stdout)
    assert len(made["password"]) >= 20
    assert json.loads(hushbid("users", "list", "--json", *home).stdout) == {
        "users": [{"name": "otto", "role": "auditor"}]
    }
    again = hushbid("users", "add", "otto", "--generate", *home)
    assert (again.exit_code, "already" in again.stderr) == (5, True)
    short = hushbid("users", "add", "eve", *home, given="short\n")
    assert (short.exit_code, "at least" in short.stderr or "12" in short.stderr) == (2, True)
    assert hushbid("users", "password", "otto", *home, given="another good password\n").exit_code == 0
    assert hushbid("users", "token", "otto", *home).stdout.startswith("hb_a_")
    assert hushbid("users", "revoke", "otto", *home).exit_code == 0
    assert hushbid("users", "remove", "otto", *home).exit_code == 0
    missing = hushbid("users", "remove", "otto", *home)
    assert (missing.exit_code, "no user" in missing.stderr) == (2, True)
