"""Nothing that belongs to one person stands in a log: no value, bid, token or name, and no analyst's secret."""

import logging
import re

import pytest

from hushbid.client import AnalystClient, MessageMemory, ParticipantClient
from hushbid.errors import Conflict, HushbidError, NotAllowed
from tests.server.http.support import Live
from tests.server.support import PASSWORD, stated

VALUES = {"xanthippe@example.org": 3.14159, "bartholomew@example.org": 7.77123, "quentin@example.org": 9.87531}
BIDS = {"xanthippe@example.org": 1.13719, "bartholomew@example.org": 1.25937, "quentin@example.org": 1.41593}
LIMITS = {"xanthippe@example.org": 0.031415, "bartholomew@example.org": None, "quentin@example.org": 0.271828}
LINE = re.compile(r"(GET|PUT|POST|DELETE) (/api/v1[a-z0-9/{}.-]*|-) [1-5]\d\d \d+\.\d ms")


def conduct(live: Live, setting: str) -> list[str]:
    """A whole campaign with mistakes in it; returns everything that must not be in a log."""
    secrets = [*VALUES, *(name.partition("@")[0] for name in VALUES), live.analyst, PASSWORD, "a wrong password"]
    with AnalystClient(live.url) as stranger, pytest.raises(NotAllowed):
        stranger.log_in("ann", "a wrong password")
    with AnalystClient(live.url) as by_password:
        by_password.log_in("ann", PASSWORD)
        secrets += [by_password._transport.headers["X-CSRF-Token"], *by_password._transport._client.cookies.values()]
    with AnalystClient(live.url, token=live.analyst) as analyst:
        campaign = analyst.draft(stated(setting=setting, participation_fee=1.5, payout="email")).id
        links = analyst.invite(campaign, people=list(VALUES))
        secrets += [link.token for link in links]
        people = {link.label: ParticipantClient(live.url, link.token, keeper=MessageMemory()) for link in links}
        analyst.open(campaign)
        for name, person in people.items():
            person.menu()
            person.bid(BIDS[name], limit=LIMITS[name] if setting == "central" else None)
            with pytest.raises(HushbidError):
                person.bid(0.123456)
            with pytest.raises(HushbidError):
                person.bid(BIDS[name], limit=0.0000000123)
        analyst.close_bidding(campaign)
        analyst.wait(campaign)
        for name, person in people.items():
            with pytest.raises(Conflict):
                person.bid(BIDS[name])
            if setting == "central":
                person.deliver_value(VALUES[name])
                with pytest.raises(Conflict):
                    person.deliver_value(5.4321)
            else:
                person.deliver_privately(VALUES[name])
        analyst.release(campaign)
        assert analyst.wait(campaign).state == "released"
        for name, person in people.items():
            assert person.state_payout(f"payee-{name}")["shown"].endswith(".org")
            with pytest.raises(HushbidError):
                person.state_payout(f"{name}.")
            assert name not in str(person.payout())
            assert "payee-" not in str(person.export())
            person.receipt()
            person.close()
        told = analyst.payments_csv(campaign)
        assert all(f"payee-{name}" in told for name in VALUES)
        assert "payee-" not in analyst.awaited_csv(campaign) + str(list(analyst.participants(campaign)))
        assert "payee-" not in str(analyst.events(campaign)) + str(analyst.account(campaign))
        analyst.mark_paid(campaign)
        analyst.mark_unpaid(campaign, [links[0].label])
        analyst.record(campaign)
    numbers = (*VALUES.values(), *BIDS.values(), *LIMITS.values())
    return [*secrets, *(str(one) for one in numbers if one is not None), "0.123456", "5.4321", "1.23e-08"]


@pytest.mark.parametrize(
    ("installation", "setting"), [("postgresql", "central"), ("sqlite", "local")], indirect=["installation"]
)
def test_no_log_line_holds_anything_personal(both: Live, caplog: pytest.LogCaptureFixture, setting: str) -> None:
    with caplog.at_level(logging.DEBUG):
        secrets = conduct(both, setting)
    lines = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]  # the test's own
    text = "\n".join(f"{record.name} {record.getMessage()} {record.args} {record.exc_text}" for record in lines)
    assert "hushbid.access" in text
    assert [secret for secret in secrets if secret in text] == []


def test_the_access_log_has_patterns_instead_of_paths(shared: Live, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hushbid.access"):
        secrets = conduct(shared, "central")
        with shared.client() as client:
            client.get("/campaigns/c0ffee/public?cursor=hb_p_secret")
            client.get("/hb_p_secret")
            client.request("HB_P_SECRET", "/health")
    lines = [record.getMessage() for record in caplog.records if record.name == "hushbid.access"]
    assert len(lines) > 30
    assert [line for line in lines if not (LINE.fullmatch(line) or line.startswith("OTHER "))] == []
    assert "hb_p_" not in "\n".join(lines).lower()
    assert "c0ffee" not in "\n".join(lines)
    assert secrets
    assert any("/api/v1/campaigns/{campaign}/open" in line for line in lines)
