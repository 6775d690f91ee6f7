"""`hushbid serve --demo`: within a minute something to look at, and nothing left behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hushbid.cli import main
from tests.server.pages.support import Visitor, words
from tests.server.pages.test_single_visit import hidden

PATIENCE = 120


def test_a_newcomer_sees_campaigns_in_four_states_and_can_take_part(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hushbid", "serve", "--demo", "--port", "0"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as server:
        try:
            told = until_ready(server)
            url = re.findall(r"http://[\d.:]+", told)[0]
            [password] = re.findall(r"password (\S+)", told)
            naming, giving = re.findall(r"/p#(\S+)", told)
            assert any(tmp_path.iterdir()), "in a temporary folder"
            with Visitor(url) as visitor:
                visitor.log_in("demo", password)
                campaigns = words(visitor.get("/campaigns"))
                for state in ("Draft", "Naming prices", "Giving values", "Released"):
                    assert state in campaigns
                visitor.come_in(naming)
                assert "Agree and continue" in words(visitor.get("/p"))
                assert visitor.agree().status_code == 303
                assert "Did your way to work take more than an hour?" in words(visitor.get("/p/choice"))
                asked = visitor.send("/p/bid", "/p/choice", price="2", limit="")
                given = {**hidden(asked), "value": "35"}
                assert visitor.client.post("/p/answers", data=given).status_code == 303
                assert "Say where to pay you" in words(visitor.get("/p"))
                visitor.come_in(giving)
                assert "for your answers" in words(visitor.get("/p"))
                assert "How long is your way to work?" in words(visitor.get("/p/given-up"))
            with Visitor(url) as reader:
                reader.log_in("auditor", password)
                assert reader.get("/campaigns/new").status_code == 403
        finally:
            server.send_signal(signal.SIGINT)
            rest = server.communicate(timeout=PATIENCE)[0]
    assert (server.returncode, rest.strip()) == (0, "Stopped, and removed.")
    assert list(tmp_path.iterdir()) == []


def until_ready(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    told = ""
    for line in server.stdout:
        told += line
        if "gives a value" in line:
            return told
    raise AssertionError(told)


@pytest.mark.parametrize(
    "more",
    [["--home", "x"], ["--database", "postgresql://x"], ["--url", "https://x.org"], ["--privacy-cap", "3"]],
    ids=lambda more: more[0],
)
def test_a_demo_is_nobodys_real_server(more: list[str]) -> None:
    refused = CliRunner().invoke(main, ["serve", "--demo", *more])
    assert refused.exit_code == 2
    assert "--demo cannot be combined" in refused.stderr


def test_a_demo_serves_this_machine_only() -> None:
    refused = CliRunner().invoke(main, ["serve", "--demo", "--host", "0.0.0.0"])
    assert refused.exit_code == 2
    assert "this machine only" in refused.stderr
