"""Campaigns that no exact budget rule serves, hard budgets with strata and locally: opened, played and released."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from hushbid import Budget, HardBudget
from hushbid.client import AnalystClient, MessageMemory, ParticipantClient
from hushbid.errors import InputError
from hushbid.server.bots.campaigns import play_campaign
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.views import PlannedPriceView
from hushbid.server.pages.forecast_words import planned_words
from hushbid.server.pages.form_prices import typical_prior
from hushbid.server.pages.wording import Writing, languages
from hushbid.server.service import decision
from hushbid.verification.verifying import verify
from tests.extent import ALL_CASES
from tests.server.serving import served
from tests.server.support import Installation, stated, user, with_fields

PANEL: dict[str, Any] = stated(
    title="Sleep by age",
    question="How many hours did you sleep?",
    prior="uniform:1,2",
    bounds=[0, 10],
    strata={"shares": {"old": 0.6, "young": 0.4}},
    budget=12,
    max_privacy_loss=2.0,
    minimum_people=5,
)
TYPICAL = typical_prior(0.5, 2.0).to_text()
WITHOUT = with_fields(PANEL, budget=None, prior=TYPICAL)
LOCAL = with_fields(PANEL, strata=None, setting="local")
PLAYED = {
    "strata, budget": PANEL,
    "strata, accuracy": with_fields(WITHOUT, standard_error=5.0),
    "strata, a hard budget": with_fields(WITHOUT, hard_budget=60),
    "local budget": with_fields(LOCAL, budget=20),
    "a hard budget, local": with_fields(LOCAL, budget=None, hard_budget=20),
}
if ALL_CASES:  # the price takes minutes
    PLAYED["strata, budget, two typical prices"] = with_fields(PANEL, prior=TYPICAL, budget=45)


@pytest.fixture(scope="module")
def analyst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnalystClient]:
    folder = tmp_path_factory.mktemp("average") / "home"
    with Installation(folder, None).start() as service, served(service) as url:
        user(service, "ann")
        with AnalystClient(url, token=service.create_api_token("ann", "test")) as client:
            yield client


@pytest.mark.parametrize("what", PLAYED)
def test_bots_play_it_to_its_release_and_the_record_is_confirmed(analyst: AnalystClient, what: str) -> None:
    people = 6
    played = play_campaign(analyst, PLAYED[what], n=people, strategy="truthful", seed=4)
    assert (played.state, played.tally.problems) == ("released", [])
    record = analyst.record(played.campaign)
    goal, money = record.outcome.market.goal, record.money
    if isinstance(goal, Budget):
        assert goal.planned is not None
        assert record.outcome.market.roster == people  # everybody who was invited, not those who bid
        assert goal.planned.mean == pytest.approx(goal.available, rel=2e-3)
    if isinstance(goal, HardBudget):
        assert money is not None
        assert 0 < money.total <= (60_00 if "strata" in what else 20_00)
        assert analyst.account(played.campaign)["promised"] == money.total
    assert isinstance(goal, HardBudget) == ("hard" in what)
    if record.outcome.market.setting == "local":  # checked in memory: drawn local markets take long
        return
    statuses = {one.name: one.status for one in verify(record).checks}
    assert "fails" not in statuses.values()
    assert statuses.get("planned price", "holds") == "holds"


def test_a_forecast_says_the_planned_price_and_how_exactly_it_meets_the_budget(analyst: AnalystClient) -> None:
    people = [{"id": f"forecast {k}", "stratum": "old" if k % 2 else "young"} for k in range(6)]
    forecasts = []
    for stated_ in (with_fields(PANEL, expected_share=0.8), with_fields(WITHOUT, standard_error=5.0)):
        campaign = analyst.draft(stated_).id
        analyst.invite(campaign, people=people)
        forecasts.append(analyst.preview(campaign)["planned"])
    found, exact = forecasts
    assert exact is None
    settings = CampaignSettings.read(with_fields(PANEL, expected_share=0.8))
    goal = settings.market_for([None] * 6, strata=[one["stratum"] for one in people]).for_people(6).stated
    assert isinstance(goal, Budget)
    assert goal.planned is not None
    assert found == asdict(goal.planned)
    assert found["mean"] == pytest.approx(goal.available, rel=2e-3)
    assert 0.0 < found["standard_error"] <= 0.01 * goal.available
    for texts in languages().values():
        write = Writing(texts)
        words = planned_words(texts, write, settings, PlannedPriceView(**found))
        assert all(write.number(found[name], 4 if name != "standard_error" else 2) in words for name in list(found)[:3])


def test_the_price_is_that_of_the_roster_however_many_bid(analyst: AnalystClient) -> None:
    prices = []
    for bidding in (6, 8):
        campaign = analyst.draft(PANEL).id
        people = [{"id": f"{bidding}-{k}", "stratum": "old" if k % 2 else "young"} for k in range(8)]
        links = analyst.invite(campaign, people=people)
        analyst.open(campaign)
        for k in range(bidding):
            with ParticipantClient.from_link(links[k].link, keeper=MessageMemory()) as she:
                she.bid(1.0 + k / 10)
        analyst.close_bidding(campaign)
        assert analyst.wait(campaign).state == "delivering"
        prices.append(analyst.record(campaign).outcome.market.goal)
    assert prices[0] == prices[1]


def test_limits_that_put_the_accuracy_out_of_reach_cancel_the_campaign_and_say_so(analyst: AnalystClient) -> None:
    campaign = analyst.draft(with_fields(WITHOUT, standard_error=2.5, max_privacy_loss=3.0)).id
    people = [{"id": f"limit {k}", "stratum": "old" if k % 2 else "young"} for k in range(6)]
    links = analyst.invite(campaign, people=people)
    analyst.open(campaign)
    for one in links:
        with ParticipantClient.from_link(one.link, keeper=MessageMemory()) as she:
            she.bid(1.0, limit=0.05)
    analyst.close_bidding(campaign)
    assert analyst.wait(campaign).state == "nothing_bought"
    assert analyst.campaign(campaign)["reason"] == decision.OUT_OF_REACH


def test_groups_cannot_be_joined_with_a_price_that_is_planned_for_a_roster(analyst: AnalystClient) -> None:
    with pytest.raises(InputError, match="must be known before anyone bids") as problem:
        analyst.draft(with_fields(PANEL, prior={"a": "uniform:1,2", "b": "uniform:1,3"}))
    assert problem.value.field == "market.prior"
