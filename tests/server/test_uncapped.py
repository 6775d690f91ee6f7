"""Campaigns for which no largest loss can be stated: it follows from goal and prior, and is shown, kept and checked."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hushbid.client import AnalystClient, Invitation, MessageMemory, ParticipantClient
from hushbid.errors import Conflict, InputError, NotAllowed
from hushbid.server.service import decision
from hushbid.verification.receipts import verify_receipt
from hushbid.verification.verifying import verify
from tests.extent import each
from tests.server.serving import served
from tests.server.support import Installation, stated, user, with_fields

YES_NO: dict[str, Any] = stated(
    title="Smoking",
    question="Do you smoke?",
    prior="uniform:1,2",
    questions=[{"kind": "yes_no", "name": "smokes"}],
    setting="local",
    buyer_weight=200.0,
    max_privacy_loss=None,
    minimum_people=5,
    participation_fee=1,
    public_estimate=True,
)
ACCURATE = with_fields(
    YES_NO, buyer_weight=None, questions=[{"kind": "yes_no", "name": "smokes", "standard_error": 0.3}]
)
LOCAL: dict[str, Any] = stated(
    title="Sleep",
    question="How many hours did you sleep?",
    minimum_people=5,
    setting="local",
    standard_error=2.6,
    max_privacy_loss=None,
)


@pytest.fixture(scope="module")
def analyst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnalystClient]:
    folder = tmp_path_factory.mktemp("uncapped") / "home"
    with Installation(folder, None).start() as service, served(service) as url:
        user(service, "ann")
        with AnalystClient(url, token=service.create_api_token("ann", "test")) as client:
            yield client


class Campaign:
    """A campaign whose people have been invited."""

    def __init__(self, analyst: AnalystClient, settings: dict[str, Any], n: int = 6) -> None:
        self.analyst, self.keeper, self.n = analyst, MessageMemory(), n
        self.id = analyst.draft(settings).id
        self.links: list[Invitation] = analyst.invite(self.id, count=n)
        analyst.open(self.id)

    def she(self, row: int, **more: Any) -> ParticipantClient:
        return ParticipantClient.from_link(self.links[row].link, **{"keeper": self.keeper, **more})

    def decide(self, *bids: float) -> str:
        for row in range(self.n):
            with self.she(row) as she:
                she.bid(bids[row] if bids else 1.0 + row / 10)
        self.analyst.close_bidding(self.id)
        return self.analyst.wait(self.id).state


@pytest.mark.parametrize(
    ("settings", "answer", "most"),
    [(YES_NO, [True], 5.318), (ACCURATE, [True], 5.912), (LOCAL, 7.0, 18.279)],
    ids=["yes or no", "yes or no, standard error", "local, standard error"],
)
def test_a_campaign_without_a_cap_shows_a_largest_loss_keeps_it_and_is_verified(
    analyst: AnalystClient, settings: dict[str, Any], answer: Any, most: float
) -> None:
    campaign = Campaign(analyst, settings)
    with campaign.she(0) as she:
        shown = she.participation().max_privacy_loss
        assert shown == pytest.approx(most, rel=1e-3)
    assert "max_privacy_loss" not in analyst.campaign(campaign.id)["settings"]
    assert campaign.decide() == "delivering"
    for row in range(6):
        with campaign.she(row) as she:
            offer = she.participation()
            if row == 0:  # a server that changes its mind after the bid
                assert offer.max_privacy_loss == shown
                lie = replace(offer, promised=shown * 1.01, max_privacy_loss=99.0, payment=10**9)
                with pytest.raises(NotAllowed, match="above"):
                    send(she, answer, lie)
            if offer.promised:
                send(she, answer, offer)
    analyst.release(campaign.id)
    assert analyst.wait(campaign.id).state == "released"
    record = analyst.record(campaign.id)
    assert 0.0 < record.outcome.privacy_loss.max() <= shown
    assert record.outcome.market.max_privacy_loss is None
    assert verify(record).ok
    with campaign.she(0) as she:
        assert verify_receipt(she.receipt(), record=record, log=analyst.events(campaign.id)).ok


def send(she: ParticipantClient, answer: Any, offer: Any) -> None:
    (she.deliver_privately if offer.setting == "local" else she.deliver_value)(answer, offer=offer)


def test_whoever_is_alone_loses_as_much_as_was_shown_and_no_more(analyst: AnalystClient) -> None:
    """Everybody else is above the prior's support."""
    campaign = Campaign(analyst, YES_NO, n=5)
    assert campaign.decide(1.0, 3.0, 3.0, 3.0, 3.0) == "delivering"
    with campaign.she(0) as she:
        offer = she.participation()
        assert offer.promised == pytest.approx(offer.max_privacy_loss, rel=1e-8)
        assert offer.promised <= (offer.max_privacy_loss or 0.0)


def test_where_too_many_are_too_dear_nothing_is_bought_and_the_reason_is_told(analyst: AnalystClient) -> None:
    campaign = Campaign(analyst, ACCURATE, n=5)
    assert campaign.decide(1.0, 1.0, 3.0, 3.0, 3.0) == "nothing_bought"
    assert analyst.campaign(campaign.id)["reason"] == decision.OUT_OF_REACH


@each(
    ("settings", "field", "told"),
    [
        (with_fields(YES_NO, questions=None, bounds=[0, 1]), "market.max_privacy_loss", "must be stated"),
        (with_fields(YES_NO, setting="central"), "market.max_privacy_loss", "must be stated"),
        (with_fields(YES_NO, prior="uniform:0,1"), "market.prior", "may cost nothing"),
        (
            with_fields(YES_NO, prior="uniform:1e-9,1", buyer_weight=1e40),
            "market.buyer_weight",
            "from 1e-06 to 100, got",
        ),
        (with_fields(ACCURATE, prior="beta:2,2,1,3"), "market.prior", "has none"),
        (with_fields(LOCAL, max_correlation=0.1), "market.max_correlation", "under a relation"),
        (with_fields(LOCAL, standard_error=None, budget=20), "market.max_privacy_loss", "must be stated"),
    ],
)
def test_a_cap_is_left_out_only_where_none_can_be_kept_and_something_else_bounds_losses(
    analyst: AnalystClient, settings: dict[str, Any], field: str, told: str
) -> None:
    with pytest.raises(InputError, match=told) as problem:
        analyst.draft(settings)
    assert problem.value.field == field


def test_the_servers_privacy_cap_holds_for_the_loss_that_follows(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("capped") / "home"
    with Installation(folder, None).start(privacy_cap=3.0) as service, served(service) as url:
        user(service, "ann")
        with AnalystClient(url, token=service.create_api_token("ann", "test")) as client:
            campaign = client.draft(YES_NO).id
            client.invite(campaign, people=[f"p{k}" for k in range(6)])
            with pytest.raises(Conflict, match="follows from buyer_weight and prior must not exceed"):
                client.open(campaign)
            smaller = client.draft(with_fields(YES_NO, buyer_weight=5.0)).id
            client.invite(smaller, people=[f"p{k}" for k in range(6)])
            client.open(smaller)
            assert client.preview(smaller)["largest_loss"] < 3.0
