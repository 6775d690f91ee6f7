"""Every figure on the choice page, computed again by `Market.acquire`; and what is said before a price is asked for."""

import html
import math
import re
from typing import Any

import numpy as np
import pytest

from hushbid.mechanism import Market
from hushbid.priors import Uniform
from hushbid.questions import Number, YesNo
from hushbid.server.model.settings import CampaignSettings
from hushbid.server.model.views import MenuView
from hushbid.server.pages import choice
from hushbid.server.pages.wording import Writing, languages
from hushbid.server.service.forecast import _Asked
from hushbid.server.service.use_case import Effort
from tests.server.http.support import Live
from tests.server.pages.support import Visitor
from tests.server.support import opened, settings

PEOPLE = 6
CAMPAIGNS: dict[str, dict[str, Any]] = {
    "central": {"buyer_weight": 8.0, "prior": Uniform(1, 4)},
    "local": {"buyer_weight": 40.0, "prior": Uniform(1, 4), "setting": "local"},
    "survey": {
        "questions": (Number(name="Hours", bounds=(0, 10)), YesNo(name="Tired?")),
        "bounds": None,
        "hard_budget": 25,
        "prior": Uniform(1, 4),
        "max_privacy_loss": 1.5,
        "participation_fee": 1.5,
    },
}
NUMBER = r"([\d.,]+)"


def averages(stated: CampaignSettings, menu: MenuView, bids: list[float]) -> list[tuple[float, float, float]]:
    """Chance, loss and payment at each bid, by `acquire`, over the very people that the menu was simulated with."""
    market = stated.market_for([None] * PEOPLE)
    drawn, population = _Asked.of(stated, [None] * PEOPLE, Effort(), ()).generator(), market.for_people(PEOPLE)
    others = [population.sample(drawn) for _ in range(menu.repetitions)]
    found = []
    for bid in bids:
        bought = []
        for sample in others:
            said = np.array(sample)
            said[0] = bid
            outcome = market.acquire(said)
            bought.append((float(outcome.privacy_loss[0]), float(outcome.payments[0])))
        losses, payments = np.array(bought).T
        found.append((float((losses > 0).mean()), float(losses.mean()), float(payments.mean())))
    return found


def shown(page: str, name: str) -> str:
    [text] = re.findall(rf'data-shows="{name}">([^<]*)<', page)
    return html.unescape(text)


@pytest.mark.parametrize("kind", CAMPAIGNS)
def test_every_figure_of_the_choice_is_what_the_market_would_do(shared: Live, kind: str) -> None:
    play = opened(shared.service, PEOPLE, **CAMPAIGNS[kind])
    stated, menu, write = play.view.settings, shared.service.menu(play.token(0)), Writing(languages()["en"])
    step = choice.step_of(shared.service.participation(play.token(0)))
    places = [*np.unique(np.linspace(0, len(menu.bids) - 1, 9).round().astype(int))]
    bids = [menu.bids[place] for place in places]
    expected = averages(stated, menu, bids)

    def money(amount: float) -> str:
        return write.amount(amount, "EUR", 2)

    with Visitor(shared.url) as her:
        her.come_in(play.fresh(0))
        assert her.agree().status_code == 303
        for bid, (chance, loss, payment) in list(zip(bids, expected, strict=True))[::4]:
            page = her.send("/p/choice", "/p/choice", price=write.typed(bid * step)).text
            assert shown(page, "price") == money(bid * step)
            assert shown(page, "chance") == write.percent(chance)
            if chance > 0:
                assert shown(page, "payment") == money(payment / chance)
                assert shown(page, "sure") == f"{write.out_of_100(loss / chance)} out of 100"
                assert shown(page, "cost") == money(bid * loss / chance)
                assert shown(page, "left") == money(max((payment - bid * loss) / chance, 0.0))
        consent = her.get("/p").text
    # the whole menu, and what she may earn at most
    rows = re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td>', page)
    assert [tuple(map(html.unescape, row)) for row in rows[: len(bids)]] == [
        (
            money(bid * step),
            write.percent(chance),
            write.out_of_100(loss / chance) if chance else "–",
            money(payment / chance) if chance else "–",
        )
        for bid, (chance, loss, payment) in zip(bids, expected, strict=True)
    ]
    assert f"to {money(expected[0][2])} on average, if you ask for very little" in html.unescape(consent)
    # what the buyer expects: half of the people ask for less than the middle price, hardly anybody for the others
    low, middle, high = (
        float(one) for one in re.findall(rf"<li>{NUMBER}\u00a0EUR: the buyer expects", html.unescape(page))
    )
    prior = stated.prior_of(None)
    assert [round(float(prior.cdf(price / step)), 2) for price in (low, middle, high)] == [0.03, 0.5, 0.97]


@pytest.mark.parametrize("cap", [0.3, 1.0, 2.0, 4.0])
def test_the_contrast_is_the_bound_on_odds_and_holds_against_the_best_observer(cap: float) -> None:
    """Posterior odds are at most e^ε times the odds before; from 50 out of 100, that is the number on the page."""
    most = Writing(languages()["en"]).out_of_100(cap)
    posterior = math.exp(cap) / (1.0 + math.exp(cap))
    assert 100 * posterior <= float(most) < 100 * posterior + 1
    # somebody sees a noisy value of a person at one end of the range or at the other, as likely as not
    grid = np.linspace(-20 / cap, 1 + 20 / cap, 4001)
    here, there = (0.5 * cap * np.exp(-cap * np.abs(grid - value)) for value in (1.0, 0.0))
    assert float(np.max(here / (here + there))) <= posterior + 1e-12
    right = float(np.trapezoid(0.5 * np.maximum(here, there), grid))
    assert 0.5 < right < posterior, "less may be learned"


def test_what_an_average_tells_about_people_it_tells_with_or_without_her() -> None:
    """She is like everybody else, who are all at one end or all at the other: the average of the others tells that."""
    loss, seen, others = 1.0, 0.9, 99
    for taking_part in (False, True):
        people = others + taking_part
        high, low = (math.exp(-loss * people * abs(seen - end)) for end in (1.0, 0.0))
        assert high / (high + low) > 0.999


MARKETS: dict[str, dict[str, Any]] = {
    "price, central": {"buyer_weight": 8.0},
    "price, local": {"buyer_weight": 40.0, "setting": "local"},
    "budget": {"budget": 6},
    "hard budget": {"hard_budget": 15},
    "accuracy": {"standard_error": 4.0},
    "accuracy, local": {"standard_error": 5.0, "setting": "local", "max_privacy_loss": None},
    "survey": {"bounds": None, "questions": CAMPAIGNS["survey"]["questions"], "buyer_weight": 30.0},
}


@pytest.mark.parametrize("kind", MARKETS)
def test_asking_for_more_never_gets_more(kind: str) -> None:
    stated = settings(**{"prior": Uniform(1, 4), **MARKETS[kind]})
    market: Market = stated.market_for([None] * PEOPLE)
    others = [1.4, 1.9, 2.2, 2.8, 3.3]
    asked = [1.0, 1.2, 1.5, 1.8, 2.2, 2.6, 3.0, 3.5, 4.0, 5.0]
    losses, payments = np.array(
        [[(o := market.acquire([price, *others])).privacy_loss[0], o.payments[0]] for price in asked]
    ).T
    assert losses[0] > 0.0, "or the test shows nothing"
    assert np.all(np.diff(losses) <= 1e-9), "a higher price never makes more be bought"
    assert np.all(np.diff(payments) <= 1e-9), "nor does it bring more money"
    same = np.abs(np.diff(losses)) <= 1e-12
    assert np.all(np.abs(np.diff(payments))[same] <= 1e-6), "for the same thing the same is paid, whatever is asked"
    assert np.all(payments >= np.array(asked) * losses - 1e-9), "and never less than her own price for it"
    for truth in asked:
        left = payments - truth * losses
        assert left[asked.index(truth)] >= left.max() - 1e-6, "so the truth is the best answer"
