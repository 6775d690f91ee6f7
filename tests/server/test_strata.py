"""Campaigns with public strata: invited with them, frozen at opening, combined in one estimate, on every receipt."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hushbid.client import AnalystClient, Invitation, MessageMemory, ParticipantClient
from hushbid.errors import Conflict, InputError
from hushbid.record import Record
from hushbid.verification.receipts import verify_receipt
from hushbid.verification.verifying import verify
from tests.extent import each
from tests.server.serving import served
from tests.server.support import Installation, stated, user, with_fields

WANTED: dict[str, Any] = stated(
    title="Sleep by age",
    question="How many hours did you sleep?",
    prior="uniform:1,2",
    bounds=[0, 10],
    setting="local",
    strata={"shares": {"young": 0.4, "old": 0.6}},
    buyer_weight=50.0,
    max_privacy_loss=2.0,
    max_correlation=0.1,
    minimum_people=5,
    participation_fee=1,
    public_estimate=True,
)
PEOPLE = [{"id": f"person {k}", "stratum": "old" if k < 5 else "young"} for k in range(8)]


@pytest.fixture(scope="module")
def analyst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnalystClient]:
    folder = tmp_path_factory.mktemp("strata") / "home"
    with Installation(folder, None).start() as service, served(service) as url:
        user(service, "ann")
        with AnalystClient(url, token=service.create_api_token("ann", "test")) as client:
            yield client


class Campaign:
    """A campaign with strata whose people have been invited."""

    def __init__(self, analyst: AnalystClient, **changes: Any) -> None:
        self.analyst, self.keeper = analyst, MessageMemory()
        self.id = analyst.draft(with_fields(WANTED, **changes)).id
        self.links: list[Invitation] = analyst.invite(self.id, people=PEOPLE)
        analyst.open(self.id)

    answer = (6.5, True)

    def she(self, row: int) -> ParticipantClient:
        return ParticipantClient.from_link(self.links[row].link, keeper=self.keeper)

    def bid(self, rows: Any) -> str:
        for row in rows:
            with self.she(row) as she:
                she.bid(1.0 + row / 10)
        self.analyst.close_bidding(self.id)
        return self.analyst.wait(self.id).state

    def deliver(self, rows: Any) -> str:
        for row in rows:
            with self.she(row) as she:
                offer = she.participation()
                send = she.deliver_privately if offer.setting == "local" else she.deliver_value
                send(self.answer if offer.questions else 4.0 + row / 2, offer=offer)
        self.analyst.release(self.id)
        return self.analyst.wait(self.id).state


def _verify(record: Record) -> None:
    assert verify(record).ok


SURVEY = {
    "bounds": None,
    "questions": [{"kind": "number", "name": "sleep", "bounds": [0, 10]}, {"kind": "yes_no", "name": "smokes"}],
    "buyer_weight": 1000.0,
}


@pytest.mark.parametrize(
    "changes",
    [{}, {"setting": "central", "strata": {"contrast": {"young": -1.0, "old": 1.0}}, **SURVEY}],
    ids=["local shares", "central survey, contrast"],
)
def test_a_combination_of_strata_is_bought_released_verified_and_on_every_receipt(
    analyst: AnalystClient, changes: dict[str, Any]
) -> None:
    campaign = Campaign(analyst, **changes)
    wanted = changes.get("strata", WANTED["strata"])
    assert [one.stratum for one in campaign.links] == [one["stratum"] for one in PEOPLE]
    with campaign.she(6) as she:
        assert (she.participation().content["stratum"], she.participation().content["strata"]) == (
            "young",
            wanted,
        )
        assert she.menu()["bids"]
    assert campaign.bid(range(7)) == "delivering"
    assert campaign.deliver(range(6)) == "released"
    record = analyst.record(campaign.id)
    assert record.ids is not None
    market = record.outcome.market
    by_id = {link.id: link.stratum for link in campaign.links}
    assert list(market.strata or ()) == [by_id[name] for name in record.ids]
    assert market.population == {"old": 5, "young": 3}
    found = analyst.estimate(campaign.id)
    assert found["strata"]["names"] == ["old", "young"]
    assert all(one["delivered_half_width"]["value"] > 0 for one in found.get("answers", [found]))
    _verify(record)
    assert analyst.public(campaign.id)["strata"] == wanted
    page = httpx.get(f"{analyst.url}/c/{campaign.id}", headers={"Accept": "text/html"}, timeout=300.0)
    assert (page.status_code, "a combination of the averages of groups" in page.text) == (200, True)
    for row in (0, 6, 7):
        with campaign.she(row) as she:
            receipt = she.receipt()
        assert receipt.body.stratum == PEOPLE[row]["stratum"]
        assert verify_receipt(receipt, record=record, log=analyst.events(campaign.id)).ok


def test_where_nobody_in_a_stratum_bid_nothing_is_bought_and_the_analyst_is_told_why(
    analyst: AnalystClient,
) -> None:
    campaign = Campaign(analyst)
    assert campaign.bid(range(5)) == "nothing_bought"
    told = analyst.campaign(campaign.id)["reason"]
    assert told == "Nobody in stratum 'young' bid, so its mean cannot be estimated."
    with campaign.she(0) as she:
        assert (she.participation().state, she.participation().due) == ("not_bought", 100)


def test_where_everybody_in_a_stratum_dropped_out_whoever_delivered_is_paid(analyst: AnalystClient) -> None:
    campaign = Campaign(analyst)
    assert campaign.bid(range(8)) == "delivering"
    assert campaign.deliver(range(5)) == "undelivered"
    assert "in one of the strata dropped out" in analyst.campaign(campaign.id)["reason"]
    with campaign.she(0) as she:
        view = she.participation()
        assert view.state == "delivered"
        assert view.payment is not None
        assert view.due == view.payment + 100
    with campaign.she(7) as she:
        assert (she.participation().state, she.participation().due) == ("dropped", 100)


@each(
    "strata",
    [
        {},
        [],
        "old",
        {"shares": {}},
        {"shares": {"old": 0.6}},
        {"shares": {"old": 0.6, "young": 0.5}},
        {"shares": {"old": "x", "young": 0.5}},
        {"shares": {"old": True}},
        {"shares": {"": 1.0}},
        {"shares": {"a\u0000b": 1.0}},
        {"contrast": {"old": 0, "young": 1}},
        {"contrast": {"old": 10**400, "young": 1}},
        {"shares": {"old": 1.0}, "contrast": {"old": 1.0}},
        {"each": True},
        {"shares": {str(k): 1 / 64 for k in range(64)}},
    ],
)
def test_strata_that_cannot_be_are_refused_by_their_field(analyst: AnalystClient, strata: Any) -> None:
    with pytest.raises(InputError) as told:
        analyst.draft(with_fields(WANTED, strata=strata))
    assert str(told.value.field).startswith("strata")


def test_everybody_is_invited_in_a_stratum_and_none_is_empty_at_opening(analyst: AnalystClient) -> None:
    campaign = analyst.draft(WANTED).id
    with pytest.raises(InputError, match="with their strata"):
        analyst.invite(campaign, count=5)
    for wrong in ("ann", {"id": "ann"}, {"id": "ann", "stratum": "middle"}):
        with pytest.raises(InputError, match="row 0"):
            analyst.invite(campaign, people=[wrong])
    analyst.invite(campaign, people=PEOPLE[:5])
    with pytest.raises(Conflict, match="Somebody must be invited in stratum 'young' first"):
        analyst.open(campaign)
    with pytest.raises(InputError, match="invite first"):
        analyst.preview(campaign)
    plain = analyst.draft(with_fields(WANTED, strata=None)).id
    with pytest.raises(InputError, match="exactly if the campaign has strata"):
        analyst.invite(plain, people=PEOPLE[:1])
