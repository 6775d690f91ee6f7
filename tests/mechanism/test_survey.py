"""A survey is the market for one number that its questions come to, and tells the error of each question."""

import math
from typing import Any

import numpy as np
import pytest

from hushbid import Accuracy, Budget, Choice, HardBudget, Market, Number, Outcome, Price, Record, Uniform, YesNo
from hushbid.allocation.goals import goal_from_dict
from hushbid.errors import InputError, MarketError, RecordError, Unreachable
from hushbid.questions import Question
from tests.extent import each

SURVEY = (
    Number(name="sleep", bounds=(0, 12), variance=2.0, unit="h"),
    YesNo(name="smoker", importance=2.0),
    Choice(name="party", answers=("left", "right", "no answer"), importance=3.0),
)
GOALS = {
    "price": {"buyer_weight": 300.0},
    "budget": {"goal": Budget(20)},
    "hard budget": {"goal": HardBudget(20)},
    "accuracy": {"goal": Accuracy([1.5, 0.2, 0.15])},
    "relation": {"goal": Accuracy([1.5, 0.2, 0.15]), "max_correlation": 0.1},
    "cap": {"buyer_weight": 300.0, "max_privacy_loss": 0.5},
}
BIDS = np.random.default_rng(7).uniform(1, 2, 60)


LOCAL = {
    name: {**terms, "setting": "local"}
    for name, terms in (GOALS | {"loose": {"goal": Accuracy([3.0, 0.4, 0.4]), "max_correlation": 0.1}}).items()
    if name in ("price", "accuracy", "cap", "loose")
}


def survey(questions: tuple[Question, ...] = SURVEY, **terms: Any) -> Market:
    return Market(prior=Uniform(1, 2), questions=questions, **terms)


def for_one_number(market: Market) -> Market:
    """The market for one number, from the theorem: only width, variance and the unit of the price differ."""
    layout, goal = market.layout, market.stated_goal
    assert layout is not None
    if isinstance(goal, Price):
        goal = Price(goal.buyer_weight * layout.importance)
    return Market(
        prior=market.prior,
        setting=market.setting,
        bounds=(0.0, layout.width),
        variance=layout.variance,
        goal=Accuracy(1.0) if isinstance(goal, Accuracy) else goal,
        max_privacy_loss=market.max_privacy_loss,
        max_correlation=market.max_correlation,
    )


@each("terms", [*GOALS.values(), *LOCAL.values()])
def test_a_survey_buys_and_pays_as_the_market_for_the_one_number_it_comes_to(terms: dict[str, Any]) -> None:
    market = survey(**terms)
    asked, one = market.acquire(BIDS), for_one_number(market).acquire(BIDS)
    for name in ("privacy_loss", "weights", "payments", "information_rent"):
        np.testing.assert_allclose(getattr(asked, name), getattr(one, name), rtol=1e-12, atol=1e-12)
    assert (asked.mse, asked.worst_mse, asked.objective) == pytest.approx((one.mse, one.worst_mse, one.objective))


@pytest.mark.parametrize(
    ("asked", "stated"), [(Price(200), Price(200 / 144)), (Accuracy(1.4), Accuracy(1.4)), (Budget(9), Budget(9))]
)
def test_one_number_asked_as_a_survey_is_the_market_with_its_bounds(asked: Any, stated: Any) -> None:
    questions = (Number(name="sleep", bounds=(0, 12), variance=2.0),)
    one = Market(prior=Uniform(1, 2), bounds=(0, 12), variance=2.0, goal=stated).acquire(BIDS)
    found = survey(questions, goal=asked).acquire(BIDS)
    np.testing.assert_allclose(found.privacy_loss, one.privacy_loss, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.payments, one.payments, rtol=1e-12, atol=1e-12)
    (error,) = found.question_errors()
    assert error.mse == pytest.approx(one.mse, rel=1e-12)


@pytest.mark.parametrize("name", ["price", "budget", "hard budget", "cap"])
def test_the_errors_of_the_questions_weighed_by_importance_are_the_error_of_the_one_number(name: str) -> None:
    yes_no = tuple(YesNo(name=f"q{i}", importance=p) for i, p in enumerate((1.0, 2.0, 60.0)))
    outcome = survey((SURVEY[0], *yes_no), **GOALS[name]).acquire(BIDS)
    errors = outcome.question_errors()
    total = math.fsum(one.question.importance for one in errors)
    weighed = math.fsum(one.question.importance * one.mse / one.question.width**2 for one in errors)
    assert weighed / total == pytest.approx(outcome.mse, rel=1e-9)


def test_the_shares_of_a_choice_have_on_average_the_error_that_the_market_counts() -> None:
    """What is stated of a choice is the share that varies most; the market counts the mean over shares."""
    (question,) = questions = (Choice(name="party", answers=("a", "b", "c", "d")),)
    outcome = survey(questions, goal=Budget(20)).acquire(BIDS)
    (error,) = outcome.question_errors()
    squares = math.fsum(outcome.weights**2)
    difference = (question.largest_variance - question.relative_variance) * squares
    assert error.mse - difference == pytest.approx(outcome.mse, rel=1e-9)


@pytest.mark.parametrize("relation", [0.0, 0.1])
def test_every_question_keeps_its_own_standard_error_also_at_worst(relation: float) -> None:
    targets = (1.5, 0.2, 0.15)
    outcome = survey(goal=Accuracy(targets), max_correlation=relation).acquire(BIDS)
    reached = [
        one.worst_standard_error / target for one, target in zip(outcome.question_errors(), targets, strict=True)
    ]
    assert max(reached) <= 1.0 + 1e-9
    assert max(reached) > 0.9, "far more is bought than is asked for"


@pytest.mark.parametrize("name", LOCAL)
def test_in_the_local_setting_every_question_has_everybodys_own_noise_in_it(name: str) -> None:
    """From the messages: a box of d questions has noise of mean square (d+1)(d+2)/3 over the squared part of a loss."""
    questions = (SURVEY[0], SURVEY[1], YesNo(name="driver", importance=2.0))
    terms = dict(LOCAL[name])
    if "goal" in terms:
        terms["goal"] = Accuracy([3.0, 0.4, 0.4])
    outcome = survey(questions, **terms).acquire(BIDS)
    layout = outcome.market.layout
    assert layout is not None
    bought = outcome.privacy_loss > 0
    weights, losses = outcome.weights[bought], outcome.privacy_loss[bought]
    total, weighed = 0.0, 0.0
    for row, error in enumerate(outcome.question_errors()):
        group = next(one for one in layout.groups if row in one.rows)
        noise = (len(group.rows) + 1) * (len(group.rows) + 2) / 3 / (losses * group.parts / 2**30) ** 2
        variance = (2.0 / 144, 0.25, 0.25)[row]
        expected = error.question.width**2 * float(np.sum(weights**2 * (variance + noise)))
        assert error.mse == pytest.approx(expected, rel=1e-12)
        weighed += error.question.importance * error.mse / error.question.width**2
        total += error.question.importance
    if name in ("price", "cap"):  # the error that the market weighs is their mean, weighed by importance
        assert weighed / total == pytest.approx(outcome.mse, rel=1e-9)
    else:
        reached = [one.worst_standard_error for one in outcome.question_errors()]
        assert max(np.divide(reached, outcome.market.stated_goal.targets)) <= 1.0 + 1e-9  # type: ignore[union-attr]


def test_locally_a_plan_tells_about_the_errors_that_a_purchase_has() -> None:
    market = survey(setting="local", buyer_weight=300.0)
    planned = market.plan(60, rng=np.random.default_rng(1), repetitions=20).question_errors
    bought = market.acquire(BIDS).question_errors()
    for one, other in zip(planned, bought, strict=True):
        assert one.standard_error == pytest.approx(other.standard_error, rel=0.15)


def test_a_loss_with_less_noise_than_a_message_can_hold_is_refused() -> None:
    with pytest.raises(MarketError, match=r"too large for a message with a survey's answers: .* set max_privacy_loss"):
        survey(setting="local", buyer_weight=1e25).acquire(BIDS)


def test_ten_questions_cost_as_much_as_one_on_a_range_of_4_7() -> None:
    market = survey(tuple(YesNo(name=f"q{i}") for i in range(10)), buyer_weight=100.0)
    assert market.width == pytest.approx(math.sqrt(22), rel=1e-12)
    assert market.stated_variance == pytest.approx(0.25)


def test_a_survey_is_told_in_words_question_by_question() -> None:
    text = survey(goal=Accuracy([1.5, 0.2, 0.15]), max_correlation=0.1).acquire(BIDS).summary()
    assert "3 questions: bought from" in text
    assert "sleep: 1." in text
    assert "party: 0.1" in text
    assert "of every share" in text
    assert "at worst" in text
    assert "standard errors of at most 1.5, 0.2, 0.15, in this order" in text
    assert survey(goal=Budget(1)).acquire([3.0]).question_errors()[0].mse == math.inf


def test_outcomes_and_records_of_surveys_are_read_back_strictly() -> None:
    outcome = survey(goal=Accuracy([1.5, 0.2, 0.15])).acquire(BIDS)
    record = Record.of(outcome)
    market = record.to_dict()["outcome"]["market"]
    assert "bounds" not in market
    assert "variance" not in market
    again = Record.from_dict(record.to_dict())
    assert again.outcome.market == outcome.market
    assert again.hash == record.hash
    assert hash(again.outcome.market) == hash(outcome.market)
    assert again.outcome.question_errors() == outcome.question_errors()
    market["questions"][0]["colour"] = "blue"
    with pytest.raises(RecordError, match="cannot be read"):
        Outcome.from_dict({**outcome.to_dict(), "market": market})
    assert "questions" not in Market(prior=Uniform(1, 2), buyer_weight=1).to_dict()


@each(
    ("terms", "field", "sentence"),
    [
        ({"bounds": (0, 5)}, "bounds", "bounds must not be stated beside questions, each of which has its own."),
        ({"variance": 0.1}, "variance", "variance must not be stated beside questions, each of which has its own."),
        ({"user_weight": 1.0}, "user_weight", "user_weight must be 0 with questions"),
        (
            {"setting": "local", "max_privacy_loss": [1.0, 2.0]},
            "max_privacy_loss",
            "max_privacy_loss must be one number",
        ),
        ({"questions": ()}, "questions", "questions must be 1 to 200, got 0."),
        ({"questions": ["age"]}, "questions", "questions must be Number, YesNo or Choice objects."),
        ({"buyer_weight": None, "goal": Accuracy(0.1)}, "standard_error", "each question (3), got 1."),
        ({"buyer_weight": None, "goal": Accuracy([0.1, 1])}, "standard_error", "each question (3), got 2."),
        (
            {"questions": None, "buyer_weight": None, "goal": Accuracy([0.1, 1])},
            "standard_error",
            "standard_error must be one number, got 2.",
        ),
    ],
)
def test_what_cannot_be_joined_with_questions_is_refused(terms: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(InputError) as problem:
        survey(**{"questions": SURVEY, "buyer_weight": 1.0} | terms)
    assert sentence in str(problem.value)
    assert problem.value.field == field


def test_standard_errors_that_nobody_can_reach_are_refused_with_how_far_they_are_off() -> None:
    with pytest.raises(Unreachable, match=r"must be above 10 times what is stated for the hardest question, the least"):
        survey(goal=Accuracy([1.5, math.sqrt(0.25 / 6000), 0.15])).acquire(BIDS)


@each("wrong", [[], [0.1, -1], [0.1, math.inf], [0.1, "1"], [0.1, [1, 2]]])
def test_standard_errors_must_be_positive_numbers(wrong: Any) -> None:
    with pytest.raises(InputError, match="standard_error must be"):
        Accuracy(wrong)


def test_a_goal_with_a_standard_error_for_each_question_is_read_back() -> None:
    assert goal_from_dict(Accuracy([0.1, 2]).to_dict()) == Accuracy((0.1, 2.0))
    assert Accuracy([0.1]) == Accuracy(0.1)


@pytest.mark.parametrize("terms", [GOALS["price"], GOALS["accuracy"]], ids=["price", "accuracy"])
def test_the_frontier_of_a_plan_says_what_to_state_in_the_buyers_own_units(terms: dict[str, Any]) -> None:
    market = survey(**terms)
    plan = market.plan(60, rng=np.random.default_rng(1), repetitions=20)
    assert market.stated_goal in [point.goal for point in plan.frontier]
    assert len(plan.frontier) > 1
