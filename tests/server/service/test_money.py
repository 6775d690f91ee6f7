"""What a campaign may cost is known before it opens; what it costs is whole minor units, and never more."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushbid.allocation import HardBudget
from hushbid.common.documents import parsed
from hushbid.errors import Conflict, InputError
from hushbid.priors import Exponential, Uniform
from hushbid.record import Record
from hushbid.server.model.states import CampaignState
from hushbid.server.service import Service, forecast
from hushbid.server.service.forecast import menus, preview
from hushbid.server.service.use_case import Effort
from tests.server.support import QUICK, drafted, open_now, opened
from tests.server.support import settings as campaign_settings


def test_a_campaign_opens_exactly_up_to_its_spending_limit(service: Service) -> None:
    play = drafted(service, 3, participation_fee=1)
    worst = preview(campaign_settings(participation_fee=1), [None] * 3, QUICK).spending.at_worst
    assert worst is not None
    service.change(play.who, play.id, campaign_settings(participation_fee=1, spending_limit=(worst - 1) / 100))
    with pytest.raises(Conflict, match=f"some bids could make the campaign cost EUR {worst / 100:.2f}"):
        open_now(service, play.who, play.id)
    assert play.view.state is CampaignState.DRAFT
    service.change(play.who, play.id, campaign_settings(participation_fee=1, spending_limit=worst / 100))
    spending = open_now(service, play.who, play.id).spending
    assert spending is not None
    assert spending.at_worst == worst
    assert spending.fees == 300
    assert spending.expected <= spending.in_95_of_100 <= worst


def test_a_campaign_whose_budget_goes_into_rounding_opens_only_if_that_is_accepted(service: Service) -> None:
    goal = {"budget": 40, "currency": "JPY", "decimals": 0}
    play = drafted(service, 12, **goal)
    found = preview(campaign_settings(**goal), [None] * 12, QUICK)
    assert found.too_much_rounding
    assert found.spending.rounding > 1
    with pytest.raises(Conflict, match="accept_rounding"):
        open_now(service, play.who, play.id)
    service.change(play.who, play.id, campaign_settings(**goal, accept_rounding=True))
    spending = open_now(service, play.who, play.id).spending
    assert spending is not None
    assert spending.rounding == found.spending.rounding


@settings(max_examples=10, deadline=None)
@given(
    people=st.integers(1, 6),
    setting=st.sampled_from(["central", "local"]),
    weight=st.sampled_from([0.01, 1.0, 100.0]),
    levels=st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6),
    exponential=st.booleans(),
)
def test_no_bids_cost_more_than_the_worst_case(
    people: int, setting: str, weight: float, levels: list[float], exponential: bool
) -> None:
    prior = Exponential(1.0) if exponential else Uniform(1, 2)
    plan = campaign_settings(setting=setting, buyer_weight=weight, prior=prior, participation_fee=0.07)
    worst = preview(plan, [None] * people, Effort(least=1, most=1, seconds=0.0)).spending.at_worst
    assert worst is not None
    for present in {1, people}:
        bids = np.minimum(np.asarray(prior.quantile(np.array(levels[:present]))), 50.0)
        outcome = plan.market_for([None] * present).acquire(bids)
        record = Record.of(outcome, currency="EUR", decimals=2)
        assert record.money is not None
        assert record.money.total + 7 * present <= worst


def test_payments_are_those_of_the_record_in_whole_minor_units(service: Service) -> None:
    play = opened(service, 4, currency="JPY", decimals=0, participation_fee=3)
    play.bid()
    play.decide()
    play.deliver()
    record = Record.from_dict(parsed(service.record(play.who, play.id)))
    assert record.money is not None
    assert record.ids is not None
    rows = service.payments(play.who, play.id)
    assert {row.id: row.payment for row in rows} == dict(zip(record.ids, record.money.payments.tolist(), strict=True))
    assert all(type(row.due) is int and row.due == row.payment + 3 for row in rows)
    assert play.view.due == sum(row.due for row in rows) == record.money.total + 12
    assert play.view.total_payment == record.money.total


def test_nobody_is_paid_before_the_decision(service: Service) -> None:
    play = opened(service, 2, participation_fee=1)
    play.bid()
    with pytest.raises(Conflict, match="pay anybody yet"):
        service.mark_paid(play.who, play.id)
    assert play.view.due == 0


def test_whoever_withdraws_after_she_was_paid_owes_nothing(service: Service) -> None:
    play = opened(service, 3)
    play.bid()
    play.decide()
    play.deliver()
    paid = service.mark_paid(play.who, play.id, [play.links[0].label])[0].due
    service.withdraw(play.token(0))
    seen = service.participation(play.token(0))
    assert (seen.due, seen.paid) == (0, paid)
    assert next(row.due for row in service.payments(play.who, play.id)) == 0
    assert play.view.due == sum(row.due for row in service.payments(play.who, play.id))


@settings(max_examples=10, deadline=None)
@given(
    present=st.integers(2, 6),
    fee=st.sampled_from([0, 7, 100]),
    spare=st.integers(1, 2_000),
    levels=st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6),
)
def test_fees_and_payments_never_exceed_a_hard_budget(present: int, fee: int, spare: int, levels: list[float]) -> None:
    plan = campaign_settings(
        hard_budget=(6 * (fee + 1) + spare) / 100, participation_fee=fee / 100, max_correlation=0.1
    )
    prior = Uniform(1, 2)
    bids = np.asarray(prior.quantile(np.array(levels[:present])))
    # somebody withdrew and keeps her fee
    fees = fee * min(present + 1, 6)
    outcome = plan.market_for([None] * present, invited=6, fees=fees).acquire(bids)
    money = Record.of(outcome, currency="EUR", decimals=2).money
    assert money is not None
    assert plan.hard_budget_minor is not None
    assert money.total + fees <= plan.hard_budget_minor


def test_a_campaign_with_a_hard_budget_keeps_it_and_its_roster_is_everybody_who_was_invited(service: Service) -> None:
    play = opened(service, 6, hard_budget=12, participation_fee=1, fee_after_withdrawal=True, max_correlation=0.1)
    spending = play.view.spending
    assert spending is not None
    assert (spending.fees, spending.at_worst) == (6_00, 12_00)
    play.bid([0, 1, 2, 3])
    service.withdraw(play.token(3))
    assert play.decide().state == "done"
    play.deliver([0, 1, 2])
    play.release()
    record = Record.from_dict(parsed(service.record(play.who, play.id)))
    assert record.outcome.market.population == 6
    assert record.outcome.market.goal == HardBudget(8.0, coin=0.01)
    rows = service.payments(play.who, play.id)
    assert 4_00 < sum(row.payment + row.fee for row in rows) <= 12_00


def test_a_campaign_whose_fees_use_its_budget_up_does_not_open(service: Service) -> None:
    play = drafted(service, 6, hard_budget=6.06, participation_fee=1)
    with pytest.raises(Conflict, match=r"hard_budget must be above 6\.06, the participation fees and one coin"):
        open_now(service, play.who, play.id)
    assert play.view.state is CampaignState.DRAFT


def test_the_preview_says_how_good_the_estimate_would_be(service: Service) -> None:
    found = service.preview(campaign_settings(buyer_weight=0.5), 20)
    assert found.standard_error is not None
    assert 0 < found.share_bought < 1
    assert not found.above_spending_limit
    assert service.preview(campaign_settings(spending_limit=0.01), 20).above_spending_limit
    with pytest.raises(InputError, match="people"):
        service.preview(campaign_settings(), 0)


def test_the_same_settings_give_the_same_figures() -> None:
    effort = Effort(least=5, most=5, seconds=0.0)
    plan = campaign_settings(buyer_weight=0.5)
    one, menu = preview(plan, [None] * 9, effort), menus(plan, [None] * 3, effort)
    for kept in (forecast._previewed, forecast._menus):
        kept.cache_clear()
    assert (preview(plan, [None] * 9, effort), menus(plan, [None] * 3, effort)) == (one, menu)


def test_what_was_simulated_for_other_settings_people_or_efforts_is_not_shown() -> None:
    effort, plan = Effort(least=2, most=2, seconds=0.0), campaign_settings(buyer_weight=0.5)
    first = preview(plan, [None] * 4, effort)
    assert preview(campaign_settings(buyer_weight=0.5), [None] * 4, effort) is first
    assert preview(plan, [None] * 5, effort).spending.people == 5
    assert preview(plan, [None] * 4, Effort(least=3, most=3, seconds=0.0)).spending.repetitions == 3
    dearer = campaign_settings(buyer_weight=0.5, participation_fee=0.07)
    assert preview(dearer, [None] * 4, effort).spending.fees == 28 != first.spending.fees
    menus(plan, [None] * 4, effort).clear()  # what one caller does to hers
    assert menus(plan, [None] * 4, effort)


def test_a_menu_offers_less_loss_and_less_pay_for_a_higher_price() -> None:
    effort = Effort(least=4, most=4, seconds=0.0)
    groups = ["young"] * 3 + ["old"] * 3
    grouped = campaign_settings(prior={"young": Uniform(1, 2), "old": Uniform(2, 4)}, buyer_weight=0.5)
    found = menus(grouped, groups, effort)
    assert set(found) == {"young", "old"}
    for menu in (*found.values(), *menus(campaign_settings(buyer_weight=0.5), [None] * 6, effort).values()):
        assert list(menu.bids) == sorted(menu.bids)
        assert all(later <= earlier + 1e-9 for earlier, later in pairwise(menu.privacy_loss))
        assert all(later <= earlier + 1e-9 for earlier, later in pairwise(menu.payment))
        assert all(0.0 <= chance <= 1.0 for chance in menu.chance)
        assert math.isclose(menu.privacy_loss[0], max(menu.privacy_loss))
