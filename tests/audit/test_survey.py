"""The attacks on a survey find planted faults in one group of questions, and none in what is honest."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hushbid import Budget, Choice, Market, Number, Uniform, YesNo
from hushbid.audit.survey import check_survey_accuracy, check_survey_privacy, survey_samples
from hushbid.disclosure import ReleasePlan, noise
from hushbid.errors import InputError
from hushbid.mechanism.releasing import plan_of

QUESTIONS = (
    Number(name="sleep", bounds=(0, 12), variance=2.0),
    YesNo(name="smoker"),
    Choice(name="party", answers=("a", "b", "c")),
)
SAMPLES = 2_000


GOALS: dict[str, Any] = {"central": {"goal": Budget(3)}, "local": {"buyer_weight": 50.0, "max_privacy_loss": 1.5}}


@pytest.fixture(scope="module", params=["central", "local"])
def plan(request: pytest.FixtureRequest) -> ReleasePlan:
    bids = np.random.default_rng(1).uniform(1, 2, 12)
    terms = {"setting": request.param, **GOALS[request.param]}
    outcome = Market(prior=Uniform(1, 2), questions=QUESTIONS, **terms).acquire(bids)
    return plan_of(outcome, key="audit", rows=outcome.privacy_loss > 0)


def attacked(plan: ReleasePlan, confidence: float = 0.99) -> Any:
    return check_survey_privacy(plan, user=int(np.argmax(plan.delivered)), samples=SAMPLES, confidence=confidence)


def test_an_honest_survey_is_not_rejected_and_the_attack_proves_much_of_the_promise(plan: ReleasePlan) -> None:
    found = attacked(plan, 1 - 1e-6)
    assert not found.rejected, str(found)
    assert 0.2 * found.promised < found.lower_bound < found.promised
    assert found.power > 0.99


@pytest.mark.parametrize("name", ["draw_boxes", "draw_choices"])
def test_noise_a_tenth_too_small_in_one_group_is_found(
    plan: ReleasePlan, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = getattr(noise, name)
    monkeypatch.setattr(noise, name, lambda totals, *, scale: real(totals, scale=0.9 * scale))
    found = attacked(plan)
    assert found.fit_rejected, str(found)


def test_a_tenth_of_the_noise_is_proved_to_break_the_promise(
    plan: ReleasePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = noise.draw_choices
    monkeypatch.setattr(noise, "draw_choices", lambda totals, *, scale: real(totals, scale=0.1 * scale))
    assert attacked(plan).loss_rejected


def test_the_stated_error_and_interval_hold_for_every_question(plan: ReleasePlan) -> None:
    found = list(check_survey_accuracy(plan, rng=np.random.default_rng(2), repetitions=300))
    assert [one.question for one in found] == ["sleep", "smoker", "party"]
    assert not any(one.rejected for one in found), found


def test_a_quarter_of_the_noise_shows_as_an_error_in_its_own_questions_only(
    plan: ReleasePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = noise.draw_boxes
    monkeypatch.setattr(noise, "draw_boxes", lambda totals, *, scale: real(totals, scale=0.25 * scale))
    found = list(check_survey_accuracy(plan, rng=np.random.default_rng(2), repetitions=300))
    assert [one.rejected for one in found] == [True, True, False]


def test_who_lost_nothing_cannot_be_attacked_and_many_questions_are_drawn_less_often(plan: ReleasePlan) -> None:
    with pytest.raises(InputError, match="user must be a row with a positive, finite privacy loss"):
        check_survey_privacy(plan, user=plan.people)
    assert survey_samples(plan, 20_000) == 8_000
