"""Local purchases with a cap, with strata, or with randomised response: honest records never fail, and forgeries do.

For an accuracy with strata the optimum is not derived a second time: two checks are incomplete then.
"""

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Price
from hushbid.common.documents import canonical, hash_of
from hushbid.disclosure.delivery import prepare_release, simulate_plan
from hushbid.mechanism import Market, Outcome
from hushbid.mechanism.releasing import plan_of
from hushbid.priors import Prior, Uniform
from hushbid.questions import YesNo
from hushbid.record import Record
from hushbid.verification import Verification, verify
from tests.extent import each

PEOPLE = 40
COIN = {"questions": [YesNo(name="smokes")]}
STRATA = {"strata": ["a", "b"] * (PEOPLE // 2), "shares": {"a": 0.3, "b": 0.7}}

DERIVED: dict[str, dict[str, Any]] = {
    "accuracy, cap": {"goal": Accuracy(0.3), "max_privacy_loss": 1.2},
    "coin, accuracy, cap": {"goal": Accuracy(0.2), "max_privacy_loss": 0.9, **COIN},
    "coin, price, cap": {"goal": Price(100), "max_privacy_loss": 0.7, **COIN},
    "coin, price, strata": {"goal": Price(100), **COIN, **STRATA},
    "coin, price, strata, cap": {"goal": Price(100), "max_privacy_loss": 0.9, **COIN, **STRATA},
}
NOT_DERIVED: dict[str, dict[str, Any]] = {
    "accuracy, strata": {"goal": Accuracy(0.2), **STRATA},
    "accuracy, strata, cap": {"goal": Accuracy(0.25), "max_privacy_loss": 1.5, **STRATA},
    "coin, accuracy, strata, cap": {"goal": Accuracy(0.22), "max_privacy_loss": 0.9, **COIN, **STRATA},
}
EVERY = DERIVED | NOT_DERIVED
LEFT_OUT = ("optimality", "rents")


@cache
def outcome_of(name: str) -> Outcome:
    prior: Prior = Uniform(1, 2)
    return Market(prior=prior, setting="local", **EVERY[name]).acquire(
        np.random.default_rng(1).uniform(1.0, 2.0, PEOPLE)
    )


def verified(outcome: Outcome, **changed: Any) -> Verification:
    """The verification of this outcome, some columns of which are replaced: key, totals and hash fit."""
    return verify(Record.of(dataclasses.replace(outcome, **changed)))


@pytest.mark.parametrize("name", DERIVED)
def test_an_honest_record_of_what_is_derived_holds(name: str) -> None:
    assert verified(outcome_of(name)).verdict == "holds"


@pytest.mark.parametrize("name", NOT_DERIVED)
def test_an_honest_record_of_what_is_not_derived_is_incomplete_and_says_so(name: str) -> None:
    found = verified(outcome_of(name))
    assert (found.failed, found.incomplete) == ((), LEFT_OUT)
    left_out = [check.sentence for check in found.checks if check.name in LEFT_OUT]
    assert all(sentence.startswith("Not checked: an accuracy ") for sentence in left_out)


@each("name", EVERY)
def test_a_forged_loss_is_found(name: str) -> None:
    outcome = outcome_of(name)
    losses = outcome.privacy_loss.copy()
    losses[1 + 2 * np.argmax(losses[1::2])] *= 0.99  # of the stratum with several sellers
    assert {"weights", "error and objective", "payments add up"} <= set(verified(outcome, privacy_loss=losses).failed)


@each("name", EVERY)
def test_a_forged_payment_is_found(name: str) -> None:
    outcome = outcome_of(name)
    payments = outcome.payments.copy()
    payments[np.argmax(payments)] *= 1.0 + 1e-6
    assert verified(outcome, payments=payments).failed == ("payments add up",)


@each("name", EVERY)
def test_a_forged_total_is_found(name: str) -> None:
    record = Record.of(outcome_of(name))
    text = canonical({**record.content, "totals": record.totals | {"privacy_loss": record.totals["privacy_loss"] * 2}})
    forged = dataclasses.replace(record, text=text, hash=hash_of(text))
    assert verify(forged).failed == ("totals",)


@each("name", NOT_DERIVED)
def test_a_purchase_from_somebody_dearer_fails_although_the_optimum_is_not_derived(name: str) -> None:
    outcome = outcome_of(name)
    rows = np.flatnonzero(outcome.market.stratified.codes == 0) if outcome.market.stratified else np.arange(PEOPLE)
    order = rows[np.argsort(outcome.bids[rows])]
    losses, weights = outcome.privacy_loss.copy(), outcome.weights.copy()
    losses[order], weights[order] = losses[order][::-1], weights[order][::-1]  # the dearest lose most
    found = verified(outcome, privacy_loss=losses, weights=weights)
    assert "weights" not in found.failed
    assert "optimality" in found.failed
    told = next(check.sentence for check in found.checks if check.name == "optimality")
    assert "More is bought than from somebody cheaper" in told


@each("name", NOT_DERIVED)
def test_an_error_that_is_not_the_one_wanted_fails_although_the_optimum_is_not_derived(name: str) -> None:
    outcome = outcome_of(name)
    goal = outcome.market.goal
    assert isinstance(goal, Accuracy)
    other = dataclasses.replace(outcome.market, goal=Accuracy(goal.number * 1.001))
    assert "optimality" in verified(outcome, market=other).failed


@each("name", [name for name, terms in EVERY.items() if "questions" in terms])
@each("missing", [0, 1])
def test_what_was_bought_by_coin_can_be_released_and_its_error_is_checked(name: str, missing: int) -> None:
    outcome = outcome_of(name)
    answers = np.random.default_rng(2).integers(0, 2, (PEOPLE, 1)).astype(float)
    answers[np.flatnonzero(outcome.privacy_loss)[-1:][:missing]] = np.nan
    release = prepare_release(plan_of(outcome), answers, simulated=True).drawn()
    assert release.absent == missing
    found = verify(Record.of(outcome, release))
    assert (found.failed, found.incomplete) == ((), () if name in DERIVED else LEFT_OUT)


def test_a_contrast_of_shares_of_yes_by_coin_is_unbiased() -> None:
    terms: dict[str, Any] = {**COIN, "strata": STRATA["strata"], "contrast": {"a": -1.0, "b": 1.5}}
    market = Market(prior=Uniform(1, 2), setting="local", goal=Price(100), **terms)
    outcome = market.acquire(np.random.default_rng(1).uniform(1.0, 2.0, PEOPLE))
    everybody_of_b = np.tile([[0.0], [1.0]], (PEOPLE // 2, 1))  # the truth is 1.5
    drawn = simulate_plan(plan_of(outcome), everybody_of_b, 10_000)[:, 0]
    assert abs(drawn.mean() - 1.5) < 8.0 * drawn.std() / 100.0 < 0.2
