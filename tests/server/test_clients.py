"""The clients, the bots and `hushbid verify` against a real server, on both stores."""

import ast
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from hushbid.cli import main
from hushbid.client import AnalystClient, Invitation, MessageFolder, MessageMemory, ParticipantClient
from hushbid.errors import Conflict, InputError, NotAllowed, NotFound, RecordError
from hushbid.receipts.log import to_lines
from hushbid.server.bots.__main__ import main as play
from hushbid.server.bots.bot import STRATEGIES
from hushbid.server.bots.campaigns import SETTINGS, play_campaign
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.service import Service
from hushbid.verification.receipts import verify_log, verify_receipt
from hushbid.verification.verifying import verify
from tests.server.serving import served
from tests.server.support import PASSWORD, Installation, each_setting_on_a_store, stated, user, with_fields

SMALL: dict[str, Any] = stated(
    title="Sleep",
    question="How long did you sleep?",
    prior="uniform:1,2",
    bounds=[0, 10],
    buyer_weight=50.0,
    max_privacy_loss=1.0,
    participation_fee=1.5,
    minimum_people=2,
)
KEPT = MessageMemory()
"""What everybody's devices keep; by secrets, which no two campaigns share."""


@pytest.fixture
def url(service: Service) -> Iterator[str]:
    with served(service) as address:
        yield address


@pytest.fixture
def analyst(service: Service, url: str) -> Iterator[AnalystClient]:
    user(service, "ann")
    with AnalystClient(url, token=service.create_api_token("ann", "test")) as client:
        yield client


def bid_all(invitations: list[Invitation]) -> None:
    for row, one in enumerate(invitations):
        with ParticipantClient.from_link(one.link, keeper=KEPT) as client:
            client.bid(1.0 + row / (len(invitations) + 1))


def deliver_all(invitations: list[Invitation]) -> None:
    for row, one in enumerate(invitations):
        with ParticipantClient.from_link(one.link, keeper=KEPT) as client:
            offer = client.participation()
            if offer.wanted and offer.setting == "local":
                client.deliver_privately(2.0 + row, offer=offer)
            elif offer.wanted:
                client.deliver_value(2.0 + row, offer=offer)


def conducted(analyst: AnalystClient, n: int = 4, **changes: Any) -> tuple[str, list[Invitation]]:
    """A campaign that was played to its end."""
    campaign = analyst.draft(with_fields(SMALL, **changes)).id
    links = analyst.invite(campaign, count=n)
    analyst.open(campaign)
    bid_all(links)
    analyst.close_bidding(campaign)
    assert analyst.wait(campaign).state == "delivering"
    deliver_all(links)
    analyst.release(campaign)
    assert analyst.wait(campaign).state == "released"
    return campaign, links


def test_a_limit_is_told_kept_by_both_sides_and_taken_back_by_a_bid_without_one(analyst: AnalystClient) -> None:
    campaign = analyst.draft(SMALL).id
    links = analyst.invite(campaign, count=3)
    analyst.open(campaign)
    bid_all(links)
    with ParticipantClient.from_link(links[0].link, keeper=KEPT) as she:
        assert she.bid(1.2, limit=0).limit == 0.0, "she sells nothing"
        assert she.bid(1.2, limit=0.5).limit == 0.5
        assert she.bid(1.2).limit is None
        told = she.bid(1.2, limit=0.25)
        assert (told.takes_limits, told.limit) == (True, 0.25)
        assert "0.25" not in repr(told)
        for wrong in (-1.0, float("nan"), float("inf"), 1e-300, True, "0.5"):
            with pytest.raises(InputError, match="limit must be 0, to sell nothing, or a finite number from 1e-06 up"):
                she.bid(1.2, limit=wrong)  # type: ignore[arg-type]
        analyst.close_bidding(campaign)
        assert analyst.wait(campaign).state == "delivering"
        offer = she.participation()
        assert offer.promised is not None
        assert 0.0 < offer.promised <= 0.25
        with pytest.raises(NotAllowed, match=r"a privacy loss above 0\.25"):
            she.deliver_value(3.0, offer=replace(offer, promised=0.26))


# -- bots ------------------------------------------------------------------------------------------------------------


@each_setting_on_a_store
def test_bots_of_every_kind_play_a_campaign_and_nothing_is_lost_doubled_or_changed(
    setting: str, analyst: AnalystClient
) -> None:
    played = play_campaign(analyst, with_fields(SETTINGS, setting=setting), n=40, strategy="mixed", seed=3)
    facts = played.to_dict()
    assert facts["problems"] == []
    assert (played.state, facts["receipts"]) == ("released", 40)
    assert set(facts["strategies"]) == {
        *("truthful", "overstate", "understate", "drop-out", "decline", "withdraw", "late"),
    }
    assert facts["refused_as_expected"]["late"] > 0
    half = facts["estimate"]["delivered_half_width"]["value"]
    assert abs(facts["estimate"]["estimate"] - 6.0) < 10.0 * half
    rows = analyst.payments_csv(played.campaign).splitlines()[1:]
    owed = {bot.receipt.body.participant: bot.receipt.body for bot in played.bots if bot.receipt is not None}
    for row in rows:
        name, *_ = row.split(",")
        payment, fee = (round(100 * float(cell)) for cell in row.split(",")[2:4])
        assert (payment, fee) == (owed[name].payment, owed[name].fee)


def test_bots_play_groups_and_identities(analyst: AnalystClient) -> None:
    grouped = with_fields(SETTINGS, prior={"day": "uniform:1,2", "night": "uniform:2,4"})
    played = play_campaign(analyst, grouped, n=12, strategy="truthful")
    assert played.tally.problems == []
    assert analyst.campaign(played.campaign)["people"]
    again = play_campaign(analyst, SETTINGS, n=5, strategy="truthful", identities=True)
    assert again.ok
    assert {row["person"] for row in analyst.privacy_account()}


def test_the_command_asks_for_a_password_and_plays_a_campaign(
    service: Service, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    user(service, "ann")
    monkeypatch.setattr("hushbid.server.bots.__main__.getpass", lambda *asked: PASSWORD)
    assert play([url, "--n", "5", "--user", "ann", "--setting", "local"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []


# -- receipts, log and record, checked offline ------------------------------------------------------------------------


@each_setting_on_a_store
def test_everything_a_campaign_leaves_behind_verifies_together(
    setting: str, analyst: AnalystClient, tmp_path: Path
) -> None:
    campaign, invitations = conducted(analyst, setting=setting)
    analyst.mark_paid(campaign)
    assert analyst.close(campaign).state == "closed"
    log, record, public = analyst.events(campaign), analyst.record(campaign), analyst.public(campaign)
    (tmp_path / "log.jsonl").write_bytes(to_lines(log))
    record.write(tmp_path / "record.json")
    (tmp_path / "keys.json").write_text(json.dumps(analyst.keys().to_dict()))
    fingerprint = analyst.keys().newest.fingerprint
    assert verify(record).ok
    found = verify_log(log, root=public["root"], head=public["last_event"], record=record)
    assert {check.status for check in found.checks} == {"holds"}, found.summary()
    for one in invitations:
        with ParticipantClient.from_link(one.link, keeper=KEPT) as client:
            receipt = client.receipt(fingerprint=fingerprint)
        found = verify_receipt(receipt, fingerprint=fingerprint, root=public["root"], log=log, record=record)
        assert {check.status for check in found.checks} == {"holds"}, found.summary()
        (tmp_path / "receipt.json").write_bytes(receipt.to_json())
    known = ["--log", "log.jsonl", "--record", "record.json", "--keys", "keys.json", "--fingerprint", fingerprint]
    for arguments in (
        ["receipt.json", *known, "--root", public["root"]],
        ["log.jsonl", "--record", "record.json", "--root", public["root"], "--head", public["last_event"]],
        ["record.json", "--log", "log.jsonl"],
    ):
        named = [str(tmp_path / one) if one.endswith((".json", ".jsonl")) else one for one in arguments]
        told = CliRunner().invoke(main, ["verify", *named])
        assert told.exit_code == 0, told.output


def test_a_key_rotated_while_the_server_runs_signs_the_next_receipts(service: Service, analyst: AnalystClient) -> None:
    _, invitations = conducted(analyst)
    old = analyst.keys().newest.fingerprint
    with ParticipantClient.from_link(invitations[0].link, keeper=KEPT) as client:
        before = client.receipt(fingerprint=old)
        service.home.signing.rotate()
        after = client.receipt(fingerprint=old)
        new = analyst.keys().newest.fingerprint
        assert (before.fingerprint, after.fingerprint) == (old, new)
        assert (before.body, before.root) == (after.body, after.root)
        assert verify_receipt(before, fingerprint=new, keys=analyst.keys()).ok
        service.home.signing.rotate(leaked=True)
        assert not verify_receipt(after, fingerprint=old, keys=analyst.keys()).ok
        with pytest.raises(RecordError, match="not to be relied on"):
            client.receipt(fingerprint=new)


# -- participants ------------------------------------------------------------------------------------------------------


def test_a_participant_goes_through_a_campaign(analyst: AnalystClient, tmp_path: Path) -> None:
    campaign = analyst.draft(with_fields(SMALL, setting="local")).id
    first, *others = analyst.invite(campaign, count=4)
    keeper = MessageFolder(tmp_path / "values")
    with ParticipantClient.from_link(first.link, keeper=keeper) as me:
        with pytest.raises(Conflict, match="not opened"):
            me.bid(1.2)
        analyst.open(campaign)
        assert me.participation().state == "invited"
        assert len(me.menu()["bids"]) > 2
        with pytest.raises(InputError, match="from 1 up"):
            me.bid(0.5)
        with pytest.raises(NotAllowed, match="not decided yet"):
            me.deliver_privately(5.0)
        assert me.bid(1.4).bid == 1.4
        assert me.bid(1.1).bid == 1.1
        bid_all(others)
        analyst.close_bidding(campaign)
        analyst.wait(campaign)
        with pytest.raises(Conflict, match="possible to answer"):
            me.bid(1.0)
        offer = me.participation()
        assert offer.wanted
        assert offer.payment is not None
        assert offer.payment >= offer.cost(1.1) - 1e-6
        with pytest.raises(NotAllowed, match="local, not central"):
            me.deliver_value(5.0)
        for value in (5.0, 5.0, 9.0):  # the first noisy value is sent again, and the server knows it
            assert me.deliver_privately(value).state == "delivered"
        with pytest.raises((Conflict, NotFound)):
            me.receipt()
        analyst.release(campaign)
        analyst.wait(campaign)
        receipt = me.receipt(fingerprint=analyst.keys().newest.fingerprint)
        assert (receipt.body.bid, receipt.body.promised) == (1.1, offer.promised)
        assert (receipt.body.payment, receipt.body.fee) == (offer.payment, 150)
        assert me.participation().due == receipt.body.payment + 150
        with pytest.raises(Conflict):
            me.withdraw()
        assert me.export()
        assert me.privacy_account()["rows"] == [] or me.privacy_account()["total"] >= 0


# -- analysts and auditors --------------------------------------------------------------------------------------------


def test_an_analyst_logs_in_with_a_password_and_scripts_a_campaign(service: Service, url: str) -> None:
    user(service, "ann")
    with AnalystClient(url) as client:
        with pytest.raises(NotAllowed, match="Log in"):
            list(client.campaigns())
        with pytest.raises(NotAllowed, match="wrong"):
            client.log_in("ann", "not the password")
        client.log_in("ann", PASSWORD)
        campaign, _ = conducted(client)
        assert [one.id for one in client.campaigns()] == [campaign]
        assert client.estimate(campaign)["estimate"]
        client.log_out()
        with pytest.raises(NotAllowed):
            client.campaign(campaign)


def test_a_draft_is_changed_previewed_and_thrown_away(analyst: AnalystClient) -> None:
    campaign = analyst.draft(SMALL).id
    assert analyst.change(campaign, with_fields(SMALL, title="Other"))["settings"]["title"] == "Other"
    assert analyst.preview(campaign, people=5)["spending"]["people"] == 5
    copied = analyst.copy(campaign, "Another")
    assert (copied.state, copied["settings"]["title"]) == ("draft", "Another")
    first, second = analyst.invite(campaign, count=2)
    assert analyst.remove(campaign, first.id)["people"] == {"invited": 1}
    assert [one["id"] for one in analyst.participants(campaign)] == [second.id]
    with pytest.raises(InputError, match="participant's identifier"):
        analyst.remove(campaign, "../x")
    analyst.discard(campaign)
    with pytest.raises(NotFound):
        analyst.campaign(campaign)
    with pytest.raises(InputError, match="title"):
        analyst.draft(with_fields(SMALL, title=""))
    cancelled = analyst.draft(SMALL).id
    analyst.invite(cancelled, count=2)
    analyst.open(cancelled)
    assert analyst.cancel(cancelled, reason="Nobody came.")["reason"] == "Nobody came."


class LosesAnswers(httpx.HTTPTransport):
    """A network that carries every request to the server, and loses the first answers."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times
        self.asked = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        self.asked += 1
        if self.left > 0:
            self.left -= 1
            response.read()
            response.close()
            raise httpx.ReadError("the answer got lost")
        return response


def test_answers_that_get_lost_double_nothing(service: Service, url: str) -> None:
    user(service, "ann")
    token = service.create_api_token("ann", "test")

    def losing(times: int) -> AnalystClient:
        return AnalystClient(url, token=token, network=LosesAnswers(times), sleep=lambda seconds: None)

    with losing(2) as client:
        campaign = client.draft(SMALL).id
        assert len(list(client.campaigns())) == 1
    with losing(3) as client:
        invitations = client.invite(campaign, count=4)
        assert len(list(client.participants(campaign))) == len(invitations) == 4
    for step in ("open", "close_bidding", "release"):
        with losing(1) as client:
            getattr(client, step)(campaign)
            client.wait(campaign)
        if step == "open":
            for row, one in enumerate(invitations):
                network = LosesAnswers(0)
                with ParticipantClient(url, one.token, keeper=KEPT, network=network, sleep=lambda seconds: None) as me:
                    shown = me.participation()
                    network.left = 1
                    me.bid(1.0 + row / 10, offer=shown)
        if step == "close_bidding":
            deliver_all(invitations)
    with losing(0) as client:
        kinds = [event.kind for event in client.events(campaign)]
    assert kinds.count("bid") == 4
    assert len([kind for kind in kinds if kind == "released"]) == 1


def test_a_client_outlives_a_restart_of_the_server(installation: Installation) -> None:
    with installation.start() as service:
        user(service, "ann")
        token = service.create_api_token("ann", "test")
        with served(service) as url, AnalystClient(url, token=token) as analyst:
            campaign = analyst.draft(SMALL).id
            invitations = analyst.invite(campaign, count=3)
            analyst.open(campaign)
    with ExitStack() as later:

        def start_again(seconds: float) -> None:
            service = later.enter_context(installation.start())
            later.enter_context(served(service, int(url.rpartition(":")[2])))

        with ParticipantClient(url, invitations[0].token, keeper=KEPT, sleep=start_again) as me:
            assert me.bid(1.25).state == "bid"


def test_the_page_about_scripting_uses_settings_and_methods_that_exist() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "conduct-a-campaign.md").read_text(encoding="utf-8")
    [told] = re.findall(r"analyst\.draft\(\s*(\{.*?\})\s*\)", page, flags=re.DOTALL)
    assert CampaignSettings.read(ast.literal_eval(told)).market.setting == "local"
    for client, kind in (("analyst", AnalystClient), ("me", ParticipantClient)):
        named = set(re.findall(rf"\b{client}\.(\w+)\(", page))
        assert len(named) > 3
        assert all(callable(getattr(kind, name, None)) for name in named), named
    strategies = page.partition("| strategy |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \|", strategies, flags=re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"[a-z-]+", row)} == set(STRATEGIES)
