"""What a forecast says in words, recomputed through `Market.acquire` with draws of its own."""

import math
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget
from hushbid.errors import InputError, MarketError
from hushbid.mechanism import Market
from hushbid.priors import Exponential, Truncated, Uniform
from hushbid.questions import Number, YesNo
from hushbid.server.service.forecast import preview
from hushbid.server.service.use_case import Effort
from hushbid.server.service.what_if import figures, people_like, two_digits, what_if, with_errors
from tests.server.support import settings

PEOPLE = 40
QUESTIONS = (Number(name="hours", bounds=(0, 12)), YesNo(name="smoker"))
EFFORT = Effort(least=20, most=20, seconds=0.0)


def market(people: int, goal: Any, **changes: Any) -> Market:
    """A market stated here anew, not the one that the forecast makes of its settings."""
    usual = {"prior": Uniform(1, 2), "bounds": (0, 10), "max_privacy_loss": 1.0, "max_correlation": 0.1}
    return Market(goal=goal, population=people, **{**usual, **changes})


def acquired(stated: Market, people: int, draws: int = 30) -> tuple[float, float]:
    """Mean payment and root of the mean worst error over campaigns drawn here."""
    rng = np.random.default_rng(5)
    found = [stated.acquire(rng.uniform(1, 2, people)) for _ in range(draws)]
    return float(np.mean([one.total_payment for one in found])), math.sqrt(
        float(np.mean([one.worst_mse for one in found]))
    )


def test_where_people_are_few_the_error_halves_with_more_of_them_for_the_same_money() -> None:
    few, free = 10, {"max_privacy_loss": 5.0, "max_correlation": 0.0}
    given = settings(budget=60, **free)
    found = what_if(given, few, preview(given, [None] * few, EFFORT), 60.0)
    assert found.errors is not None
    assert found.cost is not None
    paid, error = acquired(market(few, Budget(60.0), **free), few)
    assert found.errors[0] == pytest.approx(error, rel=0.05)
    assert found.cost / 100 == pytest.approx(paid + few / 100, rel=0.05), "a coin for each, for rounding"
    [target] = found.targets
    assert target == two_digits(found.errors[0] / 2)
    assert found.people_for_targets is not None
    more, fewer = found.people_for_targets, int(0.9 * found.people_for_targets)
    assert acquired(market(more, Budget(60.0), **free), more)[1] <= 1.02 * target
    assert acquired(market(fewer, Budget(60.0), **free), fewer)[1] > target
    assert found.cost_for_targets is None
    with pytest.raises(MarketError):
        market(few, Accuracy(target), **free).acquire(np.full(few, 1.5))


def test_where_money_is_short_the_error_halves_with_more_of_it_from_the_same_people() -> None:
    many = 150
    given = settings(budget=8, max_correlation=0.1)
    found = what_if(given, many, preview(given, [None] * many, EFFORT), 60.0)
    assert found.cost_for_targets is not None
    money, reached = acquired(market(many, Accuracy(found.targets[0])), many, draws=20)
    assert reached == pytest.approx(found.targets[0])
    assert found.cost_for_targets / 100 == pytest.approx(money + many / 100, rel=0.05)


def test_where_neither_is_enough_an_example_of_both_is_given() -> None:
    given = settings(budget=20, max_correlation=0.1)
    found = what_if(given, PEOPLE, preview(given, [None] * PEOPLE, EFFORT), 60.0)
    assert (found.people_for_targets, found.cost_for_targets) == (None, None)
    assert found.both_for_targets is not None
    many, cost = found.both_for_targets
    money, reached = acquired(market(many, Accuracy(found.targets[0])), many, draws=20)
    assert reached == pytest.approx(found.targets[0])
    assert cost / 100 == pytest.approx(money + many / 100, rel=0.05)


def test_a_stated_accuracy_is_told_with_its_cost_and_that_of_twice_the_people() -> None:
    given = settings(standard_error=0.9, max_correlation=0.1, participation_fee=0.5)
    found = what_if(given, PEOPLE, preview(given, [None] * PEOPLE, EFFORT), 60.0)
    assert found.errors is not None
    assert found.errors[0] == pytest.approx(0.9)
    assert found.cost_of_twice is not None
    twice, _ = acquired(market(2 * PEOPLE, Accuracy(0.9)), 2 * PEOPLE)
    assert found.cost_of_twice / 100 == pytest.approx(twice + 2 * PEOPLE * 0.51, rel=0.05), "fees are counted"
    once, _ = acquired(market(PEOPLE, Accuracy(0.9)), PEOPLE)
    assert found.cost is not None
    assert found.cost / 100 == pytest.approx(once + PEOPLE * 0.51, rel=0.05)


def test_too_few_people_for_an_accuracy_are_told_how_many_it_takes() -> None:
    given = settings(standard_error=0.4, max_correlation=0.1)
    found = what_if(given, PEOPLE, None, 60.0)
    assert found.least_people is not None
    enough, short = found.least_people, int(0.9 * found.least_people)
    market(enough, Accuracy(0.4)).acquire(np.full(enough, 1.5))
    with pytest.raises(MarketError):
        market(short, Accuracy(0.4)).acquire(np.full(short, 1.5))


def test_each_question_of_a_survey_has_the_error_that_the_market_gives_it() -> None:
    given = settings(bounds=None, questions=QUESTIONS, budget=20, max_correlation=0.1)
    found = figures(given, PEOPLE, draws=60)
    stated = market(PEOPLE, Budget(20.0), bounds=(0.0, 1.0), questions=QUESTIONS)
    outcomes = [stated.acquire(np.random.default_rng(k).uniform(1, 2, PEOPLE)) for k in range(40)]
    for place, error in enumerate(found.errors):
        squares = [one.question_errors()[place].worst_mse for one in outcomes]
        assert error == pytest.approx(math.sqrt(float(np.mean(squares))), rel=0.05)


def test_a_campaign_without_a_largest_loss_has_none_for_other_errors_either() -> None:
    local = settings(setting="local", standard_error=2.0, max_privacy_loss=None)
    exact = with_errors(local, [1.5])
    assert exact is not None
    assert (exact.market.standard_error, exact.market.max_privacy_loss) == (1.5, None)
    for setting in ("central", "local"):
        capped = with_errors(settings(budget=20, setting=setting), [1.5])
        assert capped is not None
        assert capped.market.max_privacy_loss == 1.0


def test_the_largest_loss_that_followed_from_a_price_is_stated_where_none_follows_from_an_error() -> None:
    of_a_price = {"setting": "local", "questions": (YesNo(name="smoker"),), "bounds": None, "max_privacy_loss": None}
    no_highest = settings(**of_a_price, prior=Truncated(Exponential(1.0), 1.0, math.inf))
    with pytest.raises(InputError, match="this prior has none"):
        settings(**of_a_price, prior=no_highest.prior, standard_error=(0.2,))
    found = with_errors(no_highest, [0.2])
    assert found is not None
    assert found.market.max_privacy_loss == no_highest.largest_loss


def test_people_are_spread_by_shares_and_nobody_is_left_out() -> None:
    given = settings(strata={"shares": {"a": 0.02, "b": 0.49, "c": 0.49}})
    groups, strata = people_like(given, 10)
    assert len(groups) == 10
    assert [strata.count(name) for name in "abc"] == [1, 5, 4]
    even = people_like(settings(strata={"contrast": {"a": 1.0, "b": -5.0}}), 10)[1]
    assert (even.count("a"), even.count("b")) == (5, 5)
    assert people_like(settings(prior={"x": Uniform(1, 2), "y": Uniform(1, 3)}), 3)[0] == ["x", "y", "x"]
