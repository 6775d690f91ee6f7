"""Verification of goals and relations: honest records hold, forged ones fail by name, and a millionth is noticed.

What is altered gets a key, totals and a hash that fit, so that something else has to notice.
"""

import copy
import dataclasses
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, HardBudget, Price
from hushbid.common.documents import content_hash
from hushbid.mechanism import Market, Outcome, Population, release
from hushbid.priors import Empirical, Exponential, Grouped, LogNormal, Mixture, Uniform
from hushbid.questions import YesNo
from hushbid.record import Record
from hushbid.verification.findings import Check
from hushbid.verification.stated_numbers import Facts
from hushbid.verification.verifying import findings, verify

STEPS = Empirical([1, 2, 2, 4, 5])
PRIORS: dict[str, tuple[Any, list[float]]] = {
    "uniform": (Uniform(1, 2), [1.1, 1.2, 1.9, 1.15]),
    "lognormal": (LogNormal(0.0, 0.5), [0.3, 0.7, 1.2, 2.5]),
    "steps": (STEPS, [0.9, 1.5, 1.0, 4.0]),
    "groups": (Grouped({"a": Uniform(0.5, 1.5), "b": STEPS}, ["a", "b", "a", "b"]), [0.6, 0.9, 1.4, 1.5]),
    "ironed": (Mixture([Uniform(0, 1), Uniform(2, 3)], [0.3, 0.7]), [0.4, 0.9, 2.1, 2.9]),
}
UNEQUAL = [0.1, 0.2, 0.05, 0.25]


@cache
def outcome_of(prior: str, goal: Goal, relation: float = 0.0, people: int | None = None, **more: Any) -> Outcome:
    believed, bids = PRIORS[prior]
    terms: dict[str, Any] = {"bounds": (-1.0, 4.0), "variance": 0.1, **more}
    if terms["variance"] == "unequal":
        terms["variance"] = UNEQUAL
    market = Market(prior=believed, goal=goal, max_correlation=relation, population=people, **terms)
    return market.acquire(bids)


@cache
def record_of(prior: str, goal: Goal, relation: float = 0.0, people: int | None = None, **more: Any) -> Record:
    """With a release, in which somebody is missing if two people or more were asked."""
    outcome = outcome_of(prior, goal, relation, people, **more)
    asked = np.flatnonzero(outcome.privacy_loss)
    data: list[float | None] = [0.3, 1.7, 2.2, -0.4]
    if asked.size > 1:
        data[int(asked[-1])] = None
    question = f"{prior} {goal} {relation} {people} {more}"
    return Record.of(outcome, release(outcome, data, question=question), currency="EUR", decimals=4)


def lied(record: Record, **changes: Any) -> tuple[str, ...]:
    """Which checks fail for the record of another outcome, with totals, key and hash that fit."""
    return verify(Record.of(dataclasses.replace(record.outcome, **changes))).failed


# -- honest records ----------------------------------------------------------------------------------------------------

HONEST: list[tuple[str, Goal, float, int | None, Any]] = [
    ("uniform", Accuracy(0.75), 0.0, None, 0.1),
    ("lognormal", Accuracy(1.5), 0.3, None, "unequal"),
    ("groups", Accuracy(0.75), 0.3, None, 0.1),
    ("steps", Budget(5.0, coin=0.0001), 0.0, None, "unequal"),
    ("ironed", Budget(5.0, coin=0.0001), 0.5, 40, 0.1),
    ("groups", Budget(5.0, coin=0.0001), 0.3, None, "unequal"),
    ("lognormal", Price(3.0), 0.5, None, "unequal"),
    ("uniform", HardBudget(5.0, 0.0001), 0.0, None, 0.1),
    ("lognormal", HardBudget(5.0, 0.0001), 0.3, None, "unequal"),
    ("steps", HardBudget(90.0, 0.01), 0.0, None, 0.1),
    ("groups", HardBudget(5.0, 0.01), 0.5, None, "unequal"),
]


@pytest.mark.parametrize(("prior", "goal", "relation", "people", "variance"), HONEST)
def test_an_honest_record_of_every_goal_holds(
    prior: str, goal: Goal, relation: float, people: int | None, variance: Any
) -> None:
    found = verify(record_of(prior, goal, relation, people, variance=variance))
    assert found.ok, found.summary()


def test_no_goal_is_verified_by_what_decided_it(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Record.of(outcome_of(*which)) for which in (ACCURATE, BUDGETED, PRICED, SHARED)]

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("verification must not call this")

    for name in ("rule", "allocation", "best_estimate", "used", "worst_error", "unrelated_error"):
        monkeypatch.setattr(Population, name, refuse)
    for place in (
        "hushbid.mechanism.shared_menu.SharedMenu.of",
        "hushbid.mechanism.shared_menu.planned_menu",
        "hushbid.mechanism.shared_menu.menu_rents",
        "hushbid.allocation.central.uncapped_purchase",
        "hushbid.allocation.pieces.best_point",
        "hushbid.allocation.rule.AllocationRule",
    ):
        monkeypatch.setattr(place, refuse)
    for record in records:
        found = verify(Record.from_dict(record.to_dict()))
        assert found.ok, found.summary()


def test_an_honest_local_record_under_a_relation_holds() -> None:
    found = verify(Record.of(outcome_of("lognormal", Price(90.0), 0.4, 50, setting="local")))
    assert found.ok, found.summary()


def test_people_who_ask_for_nothing_but_are_needed_are_paid_what_verification_finds() -> None:
    """Two of them are enough, one is not: each earns a rent, for without her somebody would have to be paid."""
    outcome = Market(prior=Uniform(0, 1), goal=Accuracy(0.45)).acquire([0.0, 0.0, 0.3])
    assert outcome.privacy_loss[2] == 0.0
    assert outcome.information_rent[:2] == pytest.approx([0.4697288, 0.4697288])
    assert verify(Record.of(outcome)).ok


@pytest.mark.parametrize("goal", [Accuracy(0.05), Budget(30.0)], ids=["accuracy", "budget"])
def test_one_rent_of_many_altered_by_a_thousandth_is_found(goal: Goal) -> None:
    prior = LogNormal(0.0, 0.5)
    outcome = Market(prior=prior, goal=goal, max_correlation=0.02).acquire(
        prior.sample(600, rng=np.random.default_rng(1))
    )
    assert outcome.active > 60
    honest = {check.name: check for check in findings(Record.of(outcome))}
    assert all(check.status != "fails" for check in honest.values())
    assert honest["rents"].figures["people"] == outcome.active
    row = int(np.flatnonzero(outcome.privacy_loss)[outcome.active // 2])
    change = np.zeros(600)
    change[row] = 0.001 * outcome.information_rent[row]
    low, high = outcome.rent_bounds
    lie = dataclasses.replace(
        outcome,
        information_rent=outcome.information_rent + change,
        payments=outcome.payments + change,
        rent_bounds=(low + change, high + change),
    )
    found = next(check for check in findings(Record.of(lie)) if check.name == "rents")
    assert found.status == "fails"
    assert found.sentence.endswith(f"in row {row}.")


# -- forged records ----------------------------------------------------------------------------------------------------

SHARED = ("uniform", HardBudget(5.0, 0.0001), 0.3, 12)
ACCURATE = ("uniform", Accuracy(0.75), 0.3, 12)
BUDGETED = ("uniform", Budget(5.0, coin=0.0001), 0.3, 12)
PRICED = ("uniform", Price(3.0), 0.3, 12)


@pytest.mark.parametrize("which", [ACCURATE, BUDGETED, PRICED, SHARED], ids=lambda which: which[1].kind)
@pytest.mark.parametrize(
    ("terms", "caught"),
    [
        ({"goal": Accuracy(0.76)}, "optimality"),
        ({"goal": Budget(5.01)}, "optimality"),
        ({"goal": Price(3.01)}, "optimality"),
        ({"goal": HardBudget(4.9)}, "optimality"),
        ({"max_correlation": 0.29}, "error and objective"),
        ({"population": 11}, "error and objective"),
    ],
    ids=str,
)
def test_another_goal_relation_or_population_is_noticed_by_name(
    which: tuple[Any, ...], terms: dict[str, Any], caught: str
) -> None:
    record = record_of(*which)
    assert caught in lied(record, market=dataclasses.replace(record.outcome.market, **terms))


@pytest.mark.parametrize("which", [ACCURATE, BUDGETED, PRICED, SHARED], ids=lambda which: which[1].kind)
def test_a_worst_error_that_is_lowered_is_noticed(which: tuple[Any, ...]) -> None:
    record = record_of(*which)
    worst, mse = record.outcome.worst_mse, record.outcome.mse
    assert worst > 1.001 * mse
    assert "error and objective" in lied(record, worst_mse=worst * (1.0 - 1e-6))
    objective = mse if isinstance(which[1], Budget | HardBudget) else record.outcome.objective
    assert "error and objective" in lied(record, worst_mse=mse, objective=objective)


def test_payments_above_a_hard_budget_fail_by_name_even_by_the_smallest_coin() -> None:
    record = record_of(*SHARED)
    assert not lied(record)
    outcome = record.outcome
    left = 5.0 - float(outcome.payments.sum())
    assert "budget" in lied(record, payments=outcome.payments + 1.01 * left / 4)
    market = dataclasses.replace(outcome.market, goal=HardBudget(float(outcome.payments.sum()), 0.0001))
    assert "budget" in lied(record, market=market)


def test_a_menu_that_offers_nobody_anything_holds_and_buying_nothing_from_somebody_does_not() -> None:
    nothing = Market(prior=Uniform(1, 2), goal=HardBudget(0.001)).acquire([1.99, 1.98])
    assert nothing.active == 0
    assert verify(Record.of(nothing)).ok
    market = dataclasses.replace(nothing.market, goal=HardBudget(50.0))
    assert "optimality" in verify(Record.of(dataclasses.replace(nothing, market=market))).failed


SHARED_ELSEWHERE: dict[str, dict[str, Any]] = {
    "strata": {"strata": ["a", "b"] * 4, "shares": {"a": 0.3, "b": 0.7}, "max_privacy_loss": 0.8},
    "local strata": {"setting": "local", "strata": ["a", "b"] * 4, "contrast": {"a": 1.0, "b": -1.0}},
    "response": {"setting": "local", "questions": [YesNo(name="smokes")], "max_privacy_loss": 2.0},
}


@pytest.mark.parametrize("terms", SHARED_ELSEWHERE.values(), ids=SHARED_ELSEWHERE)
def test_a_hard_budget_with_strata_and_locally_holds_and_a_larger_loss_is_noticed(terms: dict[str, Any]) -> None:
    market = Market(prior=LogNormal(0.0, 0.5), goal=HardBudget(30.0, 0.01), **terms)
    outcome = market.acquire(market.for_people(8).sample(np.random.default_rng(4)))
    assert verify(Record.of(outcome)).ok
    losses = outcome.privacy_loss.copy()
    losses[np.argmax(losses)] *= 0.99
    assert "optimality" in verify(Record.of(dataclasses.replace(outcome, privacy_loss=losses))).failed


def test_a_water_level_that_false_position_meets_exactly_is_found() -> None:
    """Under uniform prices the expected cost is linear in the level, so the first step ends next to the root."""
    strata = {"strata": ["a", "b"] * 6, "shares": {"a": 0.3, "b": 0.7}}
    market = Market(prior=Uniform(1, 2), goal=HardBudget(30.0, 0.01), **strata)
    outcome = market.acquire(market.for_people(12).sample(np.random.default_rng(3)))
    assert verify(Record.of(outcome)).ok


def test_under_a_shared_menu_another_cost_of_one_person_moves_her_loss_alone() -> None:
    facts = Facts.of(record_of(*SHARED))
    outcome, rule = facts.outcome, facts.rule()
    who = int(np.argmin(outcome.virtual_costs))
    losses, error, objective = rule.everybody(who, float(outcome.virtual_costs[who]) / 2)
    others = np.arange(outcome.bids.size) != who
    assert losses[others] == pytest.approx(outcome.privacy_loss[others], rel=1e-9)
    assert losses[who] > outcome.privacy_loss[who]
    assert math.isnan(error)
    assert math.isnan(objective)


LIMITS = [1.2, math.inf, 0.4, 1.0]


@cache
def limited(goal: Goal, cap: Any = None) -> Record:
    caps = list(cap) if isinstance(cap, tuple) else cap
    market = Market(prior=Uniform(1, 2), goal=goal, variance=0.1, max_privacy_loss=caps)
    return Record.of(market.acquire(PRIORS["uniform"][1], limits=LIMITS))


LIMITED = [
    (Price(9.0), None),
    (Price(9.0), (1.0, math.inf, 2.0, 1.1)),
    (Accuracy(0.6), 1.1),
    (Budget(4.0), None),
    (HardBudget(9.0), 1.3),
]


@pytest.mark.parametrize(("goal", "cap"), LIMITED, ids=str)
def test_an_honest_record_with_limits_holds_and_another_limit_is_noticed(goal: Goal, cap: Any) -> None:
    record = limited(goal, cap)
    found = verify(Record.from_dict(record.to_dict()))
    assert found.ok, found.summary()
    outcome = record.outcome
    row = int(np.argmax(outcome.privacy_loss == outcome.population.caps()))
    assert outcome.privacy_loss[row] == outcome.population.caps()[row]
    lower = np.array(LIMITS)
    lower[row] = 0.999 * outcome.privacy_loss[row]
    assert finding("weights", dataclasses.replace(outcome, limits=lower)) == "fails"
    higher = np.where(outcome.privacy_loss == LIMITS, 1.5 * np.array(LIMITS), LIMITS)
    if (higher != np.array(LIMITS)).any():
        assert finding("optimality", dataclasses.replace(outcome, limits=higher)) == "fails"
    removed = with_limits(record, None)
    assert next(check.status for check in findings(removed) if check.name == "key") == "fails"


def test_of_many_people_with_limits_of_their_own_one_rent_altered_by_a_thousandth_is_found() -> None:
    rng = np.random.default_rng(3)
    prior = LogNormal(0.0, 0.5)
    limits = rng.uniform(0.02, 1.0, 45)
    outcome = Market(prior=prior, goal=Budget(8.0)).acquire(prior.sample(45, rng=rng), limits=limits)
    assert outcome.active > 20
    honest = {check.name: check for check in findings(Record.of(outcome))}
    assert all(check.status != "fails" for check in honest.values())
    assert honest["rents"].figures["people"] == outcome.active
    row = int(np.flatnonzero(outcome.privacy_loss)[outcome.active // 2])
    low, high = outcome.rent_bounds
    for factor in (0.999, 1.001):
        change = np.zeros(45)
        change[row] = (factor - 1.0) * outcome.information_rent[row]
        lie = dataclasses.replace(
            outcome,
            information_rent=outcome.information_rent + change,
            payments=outcome.payments + change,
            rent_bounds=(low + change, high + change),
        )
        assert finding("rents", lie) == "fails"


@pytest.mark.parametrize("goal", [Budget(0.6), Accuracy(3.0), Price(0.5)], ids=str)
def test_the_least_and_the_largest_of_bids_under_a_cap_are_given_what_verification_finds(goal: Goal) -> None:
    market = Market(prior=Exponential(1.0), goal=goal, max_privacy_loss=0.5)
    outcome = market.acquire([1e-200, 0.3, 0.5, 0.6, 1e200])
    assert outcome.privacy_loss[0] > 0.0
    assert outcome.privacy_loss[-1] == 0.0
    found = {check.name: check for check in up_to_optimality(Record.of(outcome))}
    assert found["weights"].status == "holds"
    assert found["optimality"].status == "holds"


def up_to_optimality(record: Record) -> Iterator[Check]:
    """The findings before anybody's rent is integrated."""
    for check in findings(record):
        yield check
        if check.name == "optimality":
            return


def finding(name: str, outcome: Outcome) -> str:
    """What one check says of an outcome whose key, totals and hash fit."""
    return next(check.status for check in findings(Record.of(outcome)) if check.name == name)


def with_limits(record: Record, limits: list[Any] | None) -> Record:
    content = copy.deepcopy(dict(record.content))
    content["outcome"]["columns"]["limit"] = limits
    return Record.from_dict({**content, "hash": content_hash(content)})


def test_limits_that_nobody_can_state_are_noticed() -> None:
    tiny = dataclasses.replace(limited(Price(9.0)).outcome, limits=np.array([1.2, math.inf, 0.4, 1e-20]))
    assert finding("weights", tiny) == "fails"
    local = Record.of(outcome_of("lognormal", Price(90.0), 0.4, 50, setting="local"))
    found = findings(with_limits(local, ["inf"] * 4))
    assert next(check for check in found if check.name == "weights").sentence.startswith("People cannot state limits")
