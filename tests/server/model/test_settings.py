"""What an analyst may decide: checked once, with the field and the allowed range in every refusal."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hushbid.allocation import Budget, HardBudget, tie_keys
from hushbid.campaign.reading import SpecError
from hushbid.disclosure import ReleasePlan, release_plan
from hushbid.errors import InputError
from hushbid.priors import Empirical, Gamma, Uniform
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.states import CampaignState
from hushbid.server.service import Service, decision
from hushbid.server.service.release import shown_release
from hushbid.server.store.database import Database
from tests.extent import each
from tests.server.support import PASSWORD, Installation, opened, settings, stated

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@each(
    "changes",
    [
        {},
        {"prior": {"young": Uniform(1, 2), "old": Gamma(2, 0.5)}},
        {"prior": Empirical([1, 2, 4]), "setting": "local", "variance": 4.0},
        {"bid_by": NOON, "deliver_by": NOON + timedelta(hours=1), "automatic": True},
        {"spending_limit": 10**12, "participation_fee": 250, "currency": "JPY"},
        {"currency": "PTS", "decimals": 1, "participation_fee": 2.5},
        {"budget": 200, "max_correlation": 0.1},
        {"hard_budget": 200, "participation_fee": 1},
        {"standard_error": 0.5, "max_correlation": 1.0},
        {"title": "Größe ✓ <b>", "description": "one\ntwo", "unit": "°C"},
        {"single_visit": True, "payout": "iban", "payout_days": 30},
        {"single_visit": True, "bid_by": NOON, "automatic": True},
        {"observer": "your employer", "statement": "Did you sleep less than 6 hours?"},
        {"consent": {"controller": "Institute", "texts": {"de": "Für die Forschung."}}},
    ],
)
def test_settings_survive_json(changes: dict[str, Any]) -> None:
    chosen = settings(**changes)
    assert CampaignSettings.read(json.loads(json.dumps(chosen.to_dict()))) == chosen


def test_equals_are_bought_from_in_the_order_of_a_hash_of_their_pseudonyms() -> None:
    chosen = settings(prior=Empirical([1, 2]), setting="local", variance=4.0, minimum_people=5)
    campaign: Any = SimpleNamespace(settings=chosen, id="c")
    bidders: list[Any] = [SimpleNamespace(id=f"p{k}", group_name=None, bid=1.5, loss_limit=None) for k in range(12)]
    record = decision._record(campaign, bidders, invited=15, fees=0)
    assert record.outcome.tie_order is not None
    assert record.outcome.tie_order.tolist() == tie_keys(record.ids or ()).argsort().argsort().tolist()


def test_a_prior_may_be_a_text_a_table_or_a_table_of_groups() -> None:
    assert settings(prior={"family": "uniform", "low": 1, "high": 2}) == settings(prior="uniform:1,2")
    groups = {"a": "uniform:1,2", "b": {"family": "uniform", "low": 0, "high": 1}}
    assert settings(prior=groups).groups == ("a", "b")


def test_times_are_the_same_in_every_zone() -> None:
    there = settings(bid_by=NOON.astimezone(timezone(timedelta(hours=9))))
    assert CampaignSettings.read(there.to_dict()).server.bid_by == NOON
    assert settings(bid_by="2026-03-01T13:00:00+01:00").server.bid_by == NOON


def test_a_server_leaves_unread_what_a_file_says_of_bids_data_and_results() -> None:
    file = {**stated(), "bids": {"file": 5}, "data": {}, "output": {"folder": "results"}}
    assert CampaignSettings.read(file) == settings()


@each(
    ("changes", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"title": 5}, "title"),
        ({"question": " "}, "question"),
        ({"prior": {}}, "prior"),
        ({"prior": {"a": 5}}, "prior"),
        ({"prior": {"x" * 101: Uniform(1, 2)}}, "market.prior group must have"),
        ({"prior": {"file": "/etc/passwd"}}, "market.prior must be stated itself, as a server reads no file"),
        ({"prior": {"a": {"file": "/etc/passwd"}}}, "as a server reads no file"),
        *(
            ({"prior": prior}, "market.prior")
            for prior in (5, {"family": "uniform"}, "uniform", {"a": {"b": "uniform:1,2"}})
        ),
        ({"budget": 1.005, "buyer_weight": None}, "market.budget must be whole coins of 0.01 EUR"),
        ({"user_weight": 1.0, "people_may_owe_money": True}, "user_weight cannot be stated for a campaign on a server"),
        ({"wave": 2}, "wave cannot be stated"),
        ({"strata": {"each": True}}, "strata.each cannot be stated"),
        ({"bounds": (1, 1)}, "bounds"),
        ({"bounds": (0, math.inf)}, "bounds"),
        ({"buyer_weight": -1.0}, "buyer_weight"),
        ({"buyer_weight": 0.0}, "buyer_weight"),
        ({"buyer_weight": "much"}, "buyer_weight"),
        ({"buyer_weight": True}, "buyer_weight"),
        ({"buyer_weight": None}, "exactly one of budget, hard_budget, standard_error and buyer_weight"),
        ({"buyer_weight": 1.0, "budget": 0.05}, "cannot be stated together with"),
        *(({name: amount}, name) for name in ("budget", "hard_budget") for amount in (0, -1, True, "5", 10**400)),
        *(({"standard_error": error}, "standard_error") for error in (0.0, -1.0, math.nan, math.inf, "small", 10**400)),
        *(({"max_correlation": relation}, "max_correlation") for relation in (-0.1, 1.1, math.nan, "none", True)),
        ({"max_privacy_loss": 0}, "max_privacy_loss"),
        ({"max_privacy_loss": math.inf}, "max_privacy_loss"),
        ({"max_privacy_loss": math.nan}, "max_privacy_loss"),
        ({"max_privacy_loss": 101}, "max_privacy_loss"),
        ({"setting": "trusted"}, "setting"),
        ({"variance": 26.0}, "variance"),
        ({"variance": [1.0]}, "variance"),
        ({"variance": -1.0}, "variance"),
        ({"variance": 0.0}, "variance"),
        ({"currency": "euro"}, "currency"),
        ({"currency": "PTS", "decimals": 7}, "decimals"),
        ({"participation_fee": -1}, "participation_fee"),
        ({"participation_fee": 1.005}, "participation_fee"),
        ({"spending_limit": 0}, "spending_limit"),
        ({"minimum_people": 0}, "minimum_people"),
        *(
            ({name: 10**400}, name)
            for name in ("spending_limit", "participation_fee", "minimum_people", "retention_days", "decimals")
        ),
        *(({name: 10**5000}, name) for name in ("buyer_weight", "max_privacy_loss", "variance", "minimum_people")),
        ({"bounds": (0, 10**400)}, "bounds"),
        ({"bounds": (-(10**5000), 0)}, "bounds"),
        ({"retention_days": -1}, "retention_days"),
        ({"automatic": True}, "bid_by"),
        ({"automatic": 1}, "automatic"),
        ({"bid_by": datetime(2026, 3, 1)}, "bid_by"),
        ({"bid_by": NOON, "deliver_by": NOON}, "deliver_by"),
        ({"public_estimate": "yes"}, "public_estimate"),
        ({"single_visit": True, "automatic": True}, "bid_by"),
        ({"single_visit": "yes"}, "single_visit"),
        ({"single_visit": True, "setting": "local"}, "single_visit"),
        ({"statement": "x" * 301}, "statement"),
        ({"observer": "a\x00b"}, "observer"),
        ({"payout": "cash"}, "payout"),
        ({"payout_days": 0}, "payout_days"),
        ({"consent": {"more": "x"}}, "server.consent.more is not a field"),
        ({"consent": {"controller": 5}}, "consent.controller"),
        ({"consent": {"texts": {"fr": "x"}}}, "consent.texts"),
        ({"consent": {"texts": "x"}}, "consent.texts"),
    ],
)
def test_every_field_is_checked_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=field):
        CampaignSettings.read(stated(**changes))


def test_everything_that_is_wrong_is_found_at_once() -> None:
    wrong = stated(title="", prior="nonsense", bounds=[1, 1], payout="cash", bid_by="soon", currency="euro", wave=0)
    with pytest.raises(SpecError) as refused:
        CampaignSettings.read({**wrong, "more": 1})
    found = {name for name, _ in refused.value.problems}
    assert found == {
        *("title", "market.prior", "market.bounds", "server.payout", "server.bid_by", "money.currency", "wave", "more")
    }


def test_what_is_missing_is_named() -> None:
    with pytest.raises(SpecError) as refused:
        CampaignSettings.read({"title": "Sleep", "market": {}})
    missing = [name for name, told in refused.value.problems if "is missing" in told]
    assert {"question", "market.setting", "market.prior", "market.bounds"} <= set(missing)


def test_fees_are_taken_off_a_budget_first_and_the_roster_is_whom_the_mean_is_about() -> None:
    chosen = settings(hard_budget=200, participation_fee=1.5, max_correlation=0.1)
    market = chosen.market_for([None] * 4, invited=9, fees=5 * 150)
    assert market.goal == HardBudget(192.5, coin=0.01)
    assert market.population == 9
    assert settings(budget=200, currency="JPY").market_for([None] * 4).goal == Budget(200, coin=1.0)


@pytest.mark.parametrize(("changes", "least"), [({"budget": 6}, "6.00"), ({"hard_budget": 6.04}, "6.04")])
def test_a_budget_that_fees_use_up_is_refused(changes: dict[str, Any], least: str) -> None:
    chosen = settings(participation_fee=1.5, **changes)
    with pytest.raises(InputError, match=f"must be above {least}, the participation fees") as refused:
        chosen.market_for([None] * 4)
    assert refused.value.field == next(iter(changes))


def test_a_server_buys_from_nobody_with_fewer_than_five_bids(tmp_path: Path) -> None:
    assert settings(minimum_people=None).server.minimum_people == 10
    with Service.at(tmp_path / "home") as service:
        who = service.create_user("ann", "analyst", PASSWORD)
        for few in (1, 2, 4):
            with pytest.raises(InputError, match=f"minimum_people must be a whole number from 5 to 100000, got {few}"):
                service.draft(who, settings(minimum_people=few))
        draft = service.draft(who, settings(minimum_people=5))
        with pytest.raises(InputError, match="minimum_people must be a whole number from 5"):
            service.change(who, draft.id, settings(minimum_people=4))


def test_a_campaign_opened_before_the_floor_of_five_ends_as_for_too_few(tmp_path: Path) -> None:
    installation = Installation(tmp_path, None)
    with installation.start() as service:
        play = opened(service, 4, minimum_people=1)
        play.bid()
    with Service(service.home, Database.sqlite(service.home.database), clock=installation.clock) as upgraded:
        now = play.on(upgraded)
        now.decide()
        assert now.view.state is CampaignState.NOTHING_BOUGHT
        assert now.view.reason == "Only 4 of the at least 5 people needed bid."


@pytest.mark.parametrize("people", [4, 6])
def test_everybody_else_is_shown_a_margin_only_where_five_people_are_behind_it(people: int) -> None:
    losses = [20.0] * people + [0.0]
    plan = ReleasePlan.of(losses, setting="central", bounds=(0, 10), variance=0.01, label=f"few {people}")
    shown = shown_release(release_plan(plan, [5.0] * people + [None]))
    assert shown["staff"]["delivered_half_width"]["value"] is not None
    assert (shown["half_width"]["value"] is None) == (people < 5)
    assert (shown["planned_standard_error"] is None) == (people < 5)
