"""The attack on an answer by coin finds coins that lie too seldom, and none in what is honest."""

import math
from typing import Any

import numpy as np
import pytest

from hushbid import Market, Uniform, YesNo
from hushbid.audit.coin import check_coin
from hushbid.audit.survey import check_survey_accuracy, check_survey_privacy
from hushbid.disclosure import ReleasePlan, noise
from hushbid.mechanism.releasing import plan_of


@pytest.fixture(scope="module")
def plan() -> ReleasePlan:
    market = Market(prior=Uniform(1, 2), setting="local", questions=[YesNo(name="q")], buyer_weight=300.0)
    outcome = market.acquire(np.random.default_rng(1).uniform(1, 2, 12))
    return plan_of(outcome, key="audit", rows=outcome.privacy_loss > 0)


def attacked(plan: ReleasePlan, confidence: float = 0.99) -> Any:
    return check_survey_privacy(plan, user=int(np.argmax(plan.delivered)), samples=1500, confidence=confidence)


def test_an_honest_coin_is_not_rejected_and_the_attack_proves_much_of_the_promise(plan: ReleasePlan) -> None:
    found = attacked(plan, 1 - 1e-6)
    assert not found.rejected, str(found)
    assert found.by_coin
    assert 0.5 * found.promised < found.lower_bound < found.promised
    assert found.power > 0.99
    assert "coin" in str(found)


def test_a_device_that_lies_too_seldom_is_found(plan: ReleasePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    real = noise.flip_many
    monkeypatch.setattr(noise, "flip_many", lambda truths, above, below: real(truths, 5 * above, 4 * below))
    found = attacked(plan)
    assert found.fit_rejected
    assert found.lower_bound > 0.0


@pytest.mark.parametrize(
    ("lying", "rejected"), [(1.0, False), (0.5, True), (0.0, True), (1.5, True)], ids=["right", "half", "never", "more"]
)
def test_the_attack_takes_any_device(lying: float, rejected: bool) -> None:
    rng = np.random.default_rng(7)
    chance = lying / (1.0 + math.exp(1.0))

    def respond(truth: int, number: int) -> list[int]:
        return [truth ^ int(lie) for lie in rng.random(number) < chance]

    found = check_coin(respond, 1.0, samples=4000, confidence=1 - 1e-6)
    assert found.rejected == rejected
    if lying < 0.6:
        assert found.lower_bound > 1.0  # not only the number of lies: the loss itself


def test_its_error_and_interval_are_as_stated(plan: ReleasePlan) -> None:
    [found] = check_survey_accuracy(plan, rng=np.random.default_rng(2), repetitions=400)
    assert not found.rejected, str(found)
    assert found.formula_mse == pytest.approx(1.0 / float(np.sum(4.0 * np.tanh(plan.delivered / 2.0) ** 2)))
    assert found.noise_share is not None
    assert 0.05 < found.noise_share < 0.9


def test_a_simulation_in_which_nobody_lies_does_not_fit_the_stated_error(
    plan: ReleasePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hushbid.audit import survey

    def honest(plan: ReleasePlan, table: Any, times: int) -> Any:
        weights = np.tanh(plan.delivered / 2.0) ** 2
        return np.full((times, 1), float(weights @ table[:, 0] / weights.sum()))

    monkeypatch.setattr(survey, "simulate_plan", honest)
    [found] = check_survey_accuracy(plan, rng=np.random.default_rng(2), repetitions=3000)
    assert found.rejected
