"""Currencies with 0, 2 and 3 decimals, and rounding that never takes from a participant."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.campaign.buying import fields_of
from hushbid.campaign.deciding import DecisionInMemory, decide
from hushbid.campaign.people import Reading
from hushbid.campaign.spec import BidsTable, CampaignSpec, MarketTable
from hushbid.campaign.terms import Campaign
from hushbid.common.money import DECIMALS, NO_CURRENCY, Currency, Money, amounts_due, with_rounding
from hushbid.errors import InputError
from hushbid.mechanism import Market
from hushbid.priors import Uniform
from hushbid.priors.pilot import prior_source
from hushbid.report import build_report
from tests.extent import each


@pytest.mark.parametrize(("code", "decimals"), [("JPY", 0), ("EUR", 2), ("KWD", 3)])
@given(amounts=st.lists(st.floats(-1e9, 1e9, allow_subnormal=True), min_size=1, max_size=20))
def test_rounding_is_up_exactly_and_by_less_than_one_minor_unit(code: str, decimals: int, amounts: list[float]) -> None:
    currency = Currency.of(code)
    assert currency.decimals == decimals
    minor = currency.minor_units(np.array(amounts))
    for amount, units in zip(amounts, minor.tolist(), strict=True):
        excess = units - Fraction(amount) * 10**decimals
        assert 0 <= excess < 1


@pytest.mark.parametrize(("code", "coin"), [("JPY", 1.0), ("EUR", 0.01), ("KWD", 0.001)])
def test_a_misreport_gains_at_most_one_coin_more(code: str, coin: float) -> None:
    assert with_rounding(0.5, Currency.of(code).decimals) == pytest.approx(0.5 + coin)


def test_after_drop_outs_what_is_due_is_rounded_up_and_nothing_where_nothing_came() -> None:
    payments, extra, gone = np.array([1.0, 1.234, 2.0]), np.array([0.0, 0.001, 5.0]), np.array([False, False, True])
    assert amounts_due(payments, extra, gone, 2).tolist() == [100, 124, 0]
    assert amounts_due(payments, 0.0, ~gone, 2).tolist() == [0, 0, 200]


def test_a_report_shows_the_money_it_is_handed() -> None:
    outcome = Market(prior=Uniform(1, 2), variance=0.25, buyer_weight=1.0, user_weight=1.0).acquire(
        np.linspace(1, 2, 40)
    )
    money = Money.of(outcome.payments, outcome.incentive_error, currency="KWD", decimals=3)
    handed, named = (
        build_report(outcome, comparison="omit", **given) for given in ({"money": money}, {"currency": "KWD"})
    )
    assert handed == named
    assert handed.currency == Currency.of("KWD")


def test_amounts_are_written_as_people_write_them() -> None:
    assert Currency.of("EUR").text(-123456) == "EUR −1,234.56"
    assert Currency.of("JPY").text_of(1499.2) == "JPY 1,500"
    assert Currency.of("KWD").text(7) == "KWD 0.007"
    assert NO_CURRENCY.text(183) == "1.83"
    assert Currency.of("EUR").text_of(float("inf")) == "unlimited"


@each(
    ("code", "decimals", "told"),
    [
        ("euro", None, "three capital letters"),
        (3, None, "three capital letters"),
        ("ABC", None, "not an ISO 4217 code"),
        ("ABC", 9, "from 0 to 6"),
        ("ABC", True, "from 0 to 6"),
        ("EUR", 3, "must be 2 for EUR"),
    ],
)
def test_an_unknown_currency_is_refused(code: str, decimals: int | None, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Currency.of(code, decimals)


def test_a_currency_of_ones_own_may_be_declared() -> None:
    assert Currency.of("ABC", 4).per_unit == 10_000


def test_the_list_holds_each_code_once() -> None:
    assert len(DECIMALS) > 150
    assert set(DECIMALS.values()) == {0, 2, 3, 4}
    assert all(len(code) == 3 and code.isupper() for code in DECIMALS)


@each("cap", [0.43, 0.43 * (1 + 1e-12), 0.4349, 0.99 + 1e-13, 12.0])
def test_the_terminal_and_the_report_state_one_bound_on_privacy_losses_and_it_is_one(cap: float) -> None:
    bids = np.array([0.1, 0.2, 0.9])
    market = Market(prior=Uniform(0, 1), buyer_weight=1e6, user_weight=0, max_privacy_loss=cap)
    wanted = Campaign(
        spec=CampaignSpec.model_construct(
            market=MarketTable.model_construct(), bids=BidsTable.model_construct(file={"bid": bids})
        ),
        prior=prior_source("uniform:0,1"),
        market=fields_of(market),
        currency=Currency.of("EUR"),
    )
    decided = decide(wanted, Reading(), print, ids_needed=False)
    assert isinstance(decided, DecisionInMemory)
    outcome, told = decided.outcome, decided.facts()["largest_privacy_loss"]
    assert told >= outcome.privacy_loss.max() == cap
    assert told == build_report(outcome).privacy.largest
    shown = float(decided.text().partition("nobody loses more than ε = ")[2].partition(".\n")[0])
    assert shown >= cap
