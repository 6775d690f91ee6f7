"""A single yes/no question in the local setting: an exact coin, one bit, and an estimate with an honest error."""

import heapq
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hushbid.disclosure import (
    Message,
    Relation,
    ReleasePlan,
    message_kind,
    noise,
    privatize_answers,
    release_plan,
    release_synthetic,
    simulate_plan,
)
from hushbid.disclosure.delivery import planned_errors
from hushbid.disclosure.local import draw_messages
from hushbid.disclosure.promises import as_asked
from hushbid.errors import DataError, InfiniteLoss, InputError, ReleaseError
from hushbid.estimation import best_weights
from hushbid.questions import Number, YesNo, layout_of

YES = (YesNo(name="yes"),)
LOSSES = [0.25, 1.0, 2.5]


def plan_of(losses: Any, **more: Any) -> ReleasePlan:
    return ReleasePlan.of(losses, setting="local", questions=YES, **more)


# -- the coin, by enumeration ------------------------------------------------------------------------------------------


class _More(Exception):
    """A chance was met that no fate is known for."""


class _Fates:
    """Chances that come out as told, with how likely all of that is."""

    def __init__(self, told: tuple[bool, ...]) -> None:
        self._left = list(told)
        self.next = Fraction(0)

    def __call__(self, numerator: int, denominator: int) -> bool:
        if not self._left:
            self.next = min(Fraction(numerator, denominator), Fraction(1))
            raise _More
        return self._left.pop(0)


def probabilities(
    monkeypatch: pytest.MonkeyPatch, numerator: int, denominator: int, precise: Fraction
) -> tuple[list[Fraction], Fraction]:
    """How likely the answers 0 and 1 to the truth 1 are, exactly, and what is left: the likeliest ways come first."""
    found, open_, left = [Fraction(0), Fraction(0)], [(Fraction(-1), ())], Fraction(1)
    while left > precise:
        likely, told = heapq.heappop(open_)
        fates = _Fates(told)
        monkeypatch.setattr(noise, "_chance", fates)
        try:
            [answer] = noise.flip_many([1], numerator, denominator)
        except _More:
            for fate, part in ((True, fates.next), (False, 1 - fates.next)):
                if part > 0:
                    heapq.heappush(open_, (likely * part, (*told, fate)))
        else:
            found[answer] -= likely
            left += likely
    return found, left


@pytest.mark.parametrize(("numerator", "denominator", "near"), [(1, 4, 0.02), (1, 1, 0.02), (5, 2, 0.5)])
def test_the_coin_tells_the_truth_with_odds_of_exactly_e_to_the_loss(
    monkeypatch: pytest.MonkeyPatch, numerator: int, denominator: int, near: float
) -> None:
    (lies, truths), left = probabilities(monkeypatch, numerator, denominator, Fraction(near) / 20)
    assert lies + truths + left == 1
    for loss, right in ((1.0, True), (1.0 - near, False), (1.0 + near, False)):
        lie = 1.0 / (1.0 + math.exp(loss * numerator / denominator))
        # what is left may go either way; nothing but the promised odds lies between
        assert (float(lies) <= lie <= float(lies + left)) == right


def test_in_rational_numbers_the_odds_are_those_of_the_exponential_series() -> None:
    """P(no failure before k) = ε^k/k!, so a lie has the probability Σ(−ε)^j/j! of the heads: e^−ε, term by term."""
    loss = Fraction(3, 4)
    reached = [loss**k / math.factorial(k) for k in range(30)]  # the k-th chance is met
    odd = sum((reached[k - 1] - reached[k] for k in range(1, 30, 2)), Fraction(0))
    series = sum(((-loss) ** j / math.factorial(j) for j in range(30)), Fraction(0))
    assert odd == series
    assert float(series) == pytest.approx(math.exp(-0.75), rel=1e-15)


@pytest.mark.parametrize("loss", [2.0**-53, 0.1, 1.0, 2.75, 40.0, 1e300])
def test_devices_lie_as_often_as_promised(loss: float) -> None:
    samples = 3000
    truths = np.tile([[0.0], [1.0]], (samples // 2, 1))
    answers = [one.value for one in draw_messages(truths, loss, as_asked(YES))]
    lies = sum(answer != truth for answer, truth in zip(answers, itertools.cycle([0, 1])))
    chance = math.exp(-loss) / (1.0 + math.exp(-loss))
    assert stats.binomtest(lies, samples, chance).pvalue > 1e-7


# -- the message -------------------------------------------------------------------------------------------------------


def test_a_message_is_one_bit_and_its_loss_and_nothing_else() -> None:
    message = privatize_answers([True], 0.5, YES)
    assert message.kind == "response"
    assert message.to_dict() == {
        "format": "hushbid-local-response",
        "version": 1,
        "epsilon": ["1", "2"],
        "answer": message.value,
    }
    assert Message.from_json(message.to_json(), "response") == message
    assert message.fits(layout_of(YES))
    assert message_kind(YES) == "response"
    assert message_kind([*YES, YesNo(name="other")]) == "answers"
    assert privatize_answers([0.5], 0.5, [Number(name="yes", bounds=(0, 1))]).kind == "answers"


def test_unbiased_answers_average_to_the_truth() -> None:
    for loss in LOSSES:
        yes, no = (Message(kind="response", epsilon=loss.as_integer_ratio(), values=((b,),)) for b in (1, 0))
        truth = math.exp(loss) / (1.0 + math.exp(loss))
        assert truth * yes.decode() + (1 - truth) * no.decode() == pytest.approx(1.0)
        assert truth * no.decode() + (1 - truth) * yes.decode() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        {"answer": 2},
        {"answer": True},
        {"answer": "1"},
        {"epsilon": ["2", "4"]},
        {"epsilon": ["0", "1"]},
        {"version": 2},
        {"format": "hushbid-local"},
        {"grid_bits": 32},
    ],
)
def test_other_messages_are_refused(wrong: dict[str, Any]) -> None:
    message = privatize_answers([True], 0.5, YES).to_dict()
    with pytest.raises(InputError):
        Message.from_dict({**message, **wrong}, "response")
    text = json.dumps(message).replace('"answer"', '"answer": 0, "answer"')
    with pytest.raises(InputError, match="twice"):
        Message.from_json(text, "response")


def test_what_is_sent_is_drawn_once(tmp_path: Path) -> None:
    first = privatize_answers([True], 2.0**-40, YES, store=tmp_path / "mine")
    for _ in range(20):  # a second draw would differ every other time
        assert privatize_answers([False], 2.0**-40, YES, store=tmp_path / "mine") == first
    with pytest.raises(ReleaseError, match="another privacy loss"):
        privatize_answers([True], 0.25, YES, store=tmp_path / "mine")


def test_what_cannot_be_sent_is_refused() -> None:
    with pytest.raises(InputError, match="at least"):
        privatize_answers([True], 1e-300, YES)
    with pytest.raises(InfiniteLoss):
        privatize_answers([True], math.inf, YES)
    with pytest.raises(DataError, match="True or False"):
        privatize_answers([0.5], 1.0, YES)
    assert privatize_answers([True], math.inf, YES, accept_infinite_loss=True).to_dict()["answer"] == 1
    with pytest.raises(InputError, match="randomised response"):
        plan_of([1.0], relation=Relation(spread=0.01, roster=5))


# -- the estimate ------------------------------------------------------------------------------------------------------


def test_the_estimate_weighs_unbiased_answers_and_reweighs_where_people_drop_out() -> None:
    plan = plan_of(LOSSES, label="weighed")
    messages = [privatize_answers([True], loss, YES) for loss in LOSSES]
    for present in ((True, True, True), (True, False, True)):
        release = release_synthetic(
            plan, [m if here else None for m, here in zip(messages, present, strict=True)]
        ).release
        losses = np.array([loss for loss, here in zip(LOSSES, present, strict=True) if here])
        weights = np.tanh(losses / 2) ** 2 / np.sum(np.tanh(losses / 2) ** 2)
        values = [m.decode() for m, here in zip(messages, present, strict=True) if here]  # type: ignore[union-attr, call-arg]
        [answer] = release.answers
        assert answer.estimate == pytest.approx(float(weights @ values), abs=1e-11)
        assert answer.error.mse == pytest.approx(1 / np.sum(4 * np.tanh(losses / 2) ** 2))
        assert release.privacy_loss.tolist() == [loss * here for loss, here in zip(LOSSES, present, strict=True)]
        best = best_weights(losses, setting="local", variance=0.25, response=True)
        assert (best.weights, best.mse) == (pytest.approx(weights), pytest.approx(answer.error.mse))


def test_messages_of_another_kind_or_loss_are_refused() -> None:
    plan = plan_of([1.0, 1.0], label="kinds")
    good = privatize_answers([True], 1.0, YES)
    laplace = privatize_answers([1.0], 1.0, [Number(name="yes", bounds=(0, 1))])
    with pytest.raises(DataError, match="row 1"):
        release_plan(plan, [good, laplace])
    with pytest.raises(DataError, match="planned privacy loss exactly"):
        release_plan(plan, [good, privatize_answers([True], 0.5, YES)])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_stated_error_and_interval_hold_for_every_share_of_yes(share: float) -> None:
    losses = np.random.default_rng(3).uniform(0.3, 3.0, 15)
    plan, rng = plan_of(losses), np.random.default_rng(4)
    [error] = planned_errors(plan)
    found = np.array([simulate_plan(plan, rng.random((15, 1)) < share, 1)[0, 0] for _ in range(300)]) - share
    squares = np.square(found)
    slack = 8 * squares.std() / math.sqrt(300)
    assert squares.mean() <= error.mse + slack
    if share == 0.5:  # the largest variance there is
        assert squares.mean() >= error.mse - slack
    for level in (0.8, 0.95):
        half = error.half_width(level)
        assert half == pytest.approx(math.sqrt(2 * math.log(2 / (1 - level)) * error.mse), rel=1e-3)
        assert np.mean(np.abs(found) <= half) >= level


@pytest.mark.parametrize(("loss", "ratio"), [(0.1, 0.500), (0.5, 0.505), (1.0, 0.520), (2.0, 0.575)])
def test_a_coin_halves_the_error_of_laplace_noise_at_the_same_loss(loss: float, ratio: float) -> None:
    one = np.array([loss])
    coin = best_weights(one, setting="local", variance=0.25, response=True).mse
    assert coin / best_weights(one, setting="local", variance=0.25).mse == pytest.approx(ratio, abs=6e-4)
    people, times = 4, 3000
    plans = [
        ReleasePlan.of([loss] * people, setting="local", questions=[one])
        for one in (*YES, Number(name="n", bounds=(0, 1)))
    ]
    truth = np.array([[1], [0], [1], [0]])  # a share of one half, and no sampling error
    measured = [float(np.mean(np.square(simulate_plan(plan, truth, times) - 0.5))) for plan in plans]
    expected = (coin - 0.25) / (2 / loss**2)  # without the data's own variance
    assert measured[0] / measured[1] == pytest.approx(expected, rel=0.3)
