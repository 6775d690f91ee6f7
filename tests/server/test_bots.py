"""Bots play whole campaigns, and notice when a server loses, doubles or changes anything."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from hushbid.client import AnalystClient
from hushbid.errors import InputError, ServerFailed
from hushbid.priors import Uniform
from hushbid.server.bots.__main__ import main
from hushbid.server.bots.bot import MIXTURE, STRATEGIES, people
from hushbid.server.bots.campaigns import PATIENCE, SETTINGS, Played, play_campaign, play_links
from tests.client.stand_in import URL, StandIn
from tests.extent import by_turns
from tests.server.support import with_fields


def play(server: StandIn, n: int = 40, strategy: str = "mixed", **settings: Any) -> Played:
    network = httpx.MockTransport(server)
    with AnalystClient(URL, token="t", network=network, sleep=lambda seconds: None) as analyst:
        return play_campaign(analyst, with_fields(SETTINGS, **settings), n=n, strategy=strategy, network=network)


@pytest.mark.parametrize(("strategy", "setting"), by_turns(STRATEGIES, ("central", "local")))
def test_every_strategy_plays_a_campaign_to_its_end(strategy: str, setting: str) -> None:
    server = StandIn()
    played = play(server, strategy=strategy, setting=setting)
    facts = played.to_dict()
    assert (played.ok, facts["problems"], facts["receipts"]) == (True, [], 40)
    assert server.paid
    assert sum(one["bots"] for one in facts["strategies"].values()) == 40
    if strategy == "decline":
        assert played.state == "nothing_bought"
    if strategy == "late":
        assert 20 <= facts["refused_as_expected"]["late"] <= 40
    if strategy == "truthful":
        assert facts["strategies"]["truthful"]["mean_gain"] > 0
        assert facts["submissions"]["bid"]["count"] == 40
        assert 0 < facts["submissions"]["deliver"]["count"] <= 40
    if strategy == "drop-out":
        assert "deliver" not in facts["submissions"]


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("change a bid", "bid is not on its receipt"),
        ("forget limits", "limit is not on its receipt"),
        ("forget limits", "promises a larger privacy loss than it accepted"),
        ("lose a delivery", "acknowledged delivery is not on its receipt"),
        ("pay drop-outs", "pays for a delivery that it did not make"),
        ("accept late bids", "was not refused"),
        ("two roots", "root is not the one that was published"),
        ("another key", "signed by a key that the server does not list"),
        ("lose an event", "log fails its check"),
    ],
)
def test_bots_notice_a_server_that_is_wrong(fault: str, sentence: str) -> None:
    played = play(StandIn(fault))
    assert not played.ok
    assert any(sentence in problem for problem in played.tally.problems), played.tally.problems


def test_bots_can_play_somebody_elses_campaign() -> None:
    server = StandIn()
    tokens = server.open_for(20)
    steps = iter([lambda: server.decide(), lambda: server.finish()])

    def analyst_acts(seconds: float) -> None:
        next(steps)()

    played = play_links(URL, tokens, sleep=analyst_acts, network=httpx.MockTransport(server))
    assert (played.state, played.ok, len(played.bots)) == ("released", True, 20)


def test_bots_do_not_wait_forever() -> None:
    server = StandIn()

    def nothing(seconds: float) -> None:
        return None

    with pytest.raises(ServerFailed, match="still bidding; the bots have waited long enough"):
        play_links(URL, server.open_for(3), patience=2, sleep=nothing, network=httpx.MockTransport(server))


def test_an_interrupt_does_not_wait_for_bots_that_are_patient_with_a_dead_server() -> None:
    server, attempts = StandIn(), []

    def dies(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/participation/secret"):
            return server(request)
        attempts.append(1)
        if len(attempts) == 8:  # everybody has tried
            raise KeyboardInterrupt
        raise httpx.ConnectError("x")

    network = httpx.MockTransport(dies)
    with AnalystClient(URL, token="t", network=network) as analyst, pytest.raises(KeyboardInterrupt):
        play_campaign(analyst, SETTINGS, n=8, strategy="truthful", connections=8, network=network)
    assert len(attempts) < 8 * PATIENCE


def test_the_same_seed_makes_the_same_people() -> None:
    first, again = (people("mixed", [Uniform(1, 3)] * 50, (0.0, 12.0), rng=np.random.default_rng(7)) for _ in range(2))
    assert first == again
    assert {person.strategy for person in first} <= set(MIXTURE)
    assert all(0 <= person.value <= 12 and 1 <= person.bid <= 3 for person in first)
    assert "1." not in repr(first[0])


def test_liars_lie_in_their_direction() -> None:
    for strategy, sign in (("overstate", 1), ("understate", -1), ("truthful", 0)):
        cast = people(strategy, [Uniform(1, 100)] * 20, (0.0, 1.0), rng=np.random.default_rng(1))
        assert {int(np.sign(person.bid - person.cost)) for person in cast} <= {sign, 0}
        assert any(np.sign(person.bid - person.cost) == sign for person in cast)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(InputError, match="strategy must be one of truthful"):
        people("clever", [Uniform(1, 2)], (0.0, 1.0), rng=np.random.default_rng(1))


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """``python -m hushbid.server.bots`` against a stand-in."""
    server = StandIn()
    real = httpx.MockTransport(server)
    made = httpx.Client
    monkeypatch.setattr(httpx, "Client", lambda **given: made(**{**given, "transport": real}))
    monkeypatch.setenv("HUSHBID_TOKEN", "t")
    return server


@pytest.mark.parametrize("setting", ["central", "local"])
def test_the_command_plays_and_says_what_came_of_it(
    setting: str, command: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([URL, "--n", "30", "--setting", setting]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["bots"], facts["state"], facts["receipts"], facts["ok"]) == (30, "released", 30, True)
    assert facts["estimate"] == {"estimate": 7.0}


def test_the_command_ends_with_status_1_where_something_is_wrong(
    command: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    command.fault = "change a bid"
    assert main([URL, "--n", "10"]) == 1
    assert "PROBLEM  A truthful bot's acknowledged bid is not on its receipt." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Give an analyst's token"),
        (["--n", "0"], "must be from 1"),
        (["--links", "links.txt"], "leads to another server"),
        (["--links", "links.txt", "--prior", "normal:0,1"], "must be a family"),
        (["--token-file", "token.txt", "--campaign", "links.txt"], "must be a campaign file, and cannot be read"),
        (["--token-file", "token.txt", "--campaign", "empty.toml"], "market is missing"),
    ],
)
def test_a_bad_call_is_refused_in_a_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HUSHBID_TOKEN", raising=False)
    (tmp_path / "links.txt").write_text("https://elsewhere.example/p#secret\n")
    (tmp_path / "token.txt").write_text("t\n")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(["http://127.0.0.1:9", *arguments]))
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, "")
    assert sentence in told.err
    assert "secret" not in told.err


def test_a_server_that_is_not_there_is_told_by_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HUSHBID_TOKEN", "t")
    assert main(["http://127.0.0.1:9", "--n", "2"]) == 7
    assert "cannot be reached" in capsys.readouterr().err
