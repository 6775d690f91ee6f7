"""A record of answers by coin is verified by a second derivation, and planted faults in it are found."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid import Accuracy, Market, Price, Record, Uniform, YesNo, verify
from hushbid.allocation import allocate, replies
from hushbid.common.documents import content_hash
from hushbid.disclosure import release_synthetic
from hushbid.mechanism.releasing import plan_of
from hushbid.verification.local_curve import COIN, LAPLACE, PrecisionCurve
from hushbid.verification.local_rule import LocalRule
from tests.extent import each

BIDS = np.random.default_rng(8).uniform(1, 2, 14)


@each("seed", range(8))
def test_the_second_derivation_finds_the_solvers_optimum(seed: int) -> None:
    """With equals, with people who ask for nothing, and with accuracies that leave the last a small remainder."""
    rng = np.random.default_rng(seed)
    count = int(rng.choice([1, 2, 3, 5, 12]))
    costs = rng.choice([1.0, 1.3, 2.0], count) if seed % 3 == 0 else rng.lognormal(0.0, rng.choice([0.1, 1.0]), count)
    costs[: int(rng.integers(0, count)) if seed % 4 == 1 else 0] = 0.0
    order, weight = rng.permutation(count), float(10 ** rng.uniform(-1, 2))
    error = 0.25 / (int(rng.integers(0, count)) + 10 ** rng.uniform(-2.0, -0.1))
    rows = np.repeat(np.arange(count), 3)
    moved = costs[rows] * np.tile([1.0, 1.2, 3.0], count) + np.tile([0.0, 0.1, 0.0], count)
    for goal, rule in (
        (Price(weight), LocalRule(costs, 0.25, weight, order, curve=COIN)),
        (Accuracy(math.sqrt(error)), LocalRule(costs, 0.25, order=order, error=error, curve=COIN)),
    ):
        how: dict[str, Any] = {"setting": "local", "goal": goal, "tie_key": order, "response": True}
        found = allocate(costs, **how)
        losses, mse, value = rule.everybody(0, float(costs[0]))
        assert losses == pytest.approx(found.privacy_loss, rel=1e-8, abs=0.0)
        assert (mse, value) == pytest.approx((found.mse, found.objective), rel=1e-11, abs=0.0)
        theirs, ours = replies(costs, **how).at(rows, moved), rule.at(rows, moved)
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-8, abs=0.0)
        assert ours.value == pytest.approx(theirs.value, rel=1e-11, abs=0.0)


@pytest.mark.parametrize("curve", [COIN, LAPLACE])
def test_a_curve_solves_its_own_equations(curve: PrecisionCurve) -> None:
    ratio = np.append(np.geomspace(1e-12, curve.steepest * (1 - 1e-6), 40), curve.steepest)
    with np.errstate(all="ignore"):
        short = curve.short_at(ratio)
    assert short**curve.power * (1 - short) == pytest.approx(curve.share * ratio**2, rel=1e-9)
    assert (short <= 1 - curve.turn + 1e-7).all()
    y = curve.loss(short)
    assert 1.0 / curve.error(y) == pytest.approx(1 - short, rel=1e-9)
    assert curve.price_of_last(1 - short[20:-2]) == pytest.approx(1 / ratio[20:-2], rel=1e-6)
    step = 1e-6
    slope = (curve.short_at(ratio[5:-3]) - curve.short_at(ratio[5:-3] * (1 - step))) / step
    assert curve.slope(short[5:-3]) == pytest.approx(slope, rel=1e-3)
    for cost in (1e-6, 0.3, 5.0, 1e6):
        [alone] = curve.loss_alone(np.array([cost]))
        nearby = alone * np.linspace(0.9, 1.1, 201)
        value = curve.error(nearby) + cost * nearby
        assert value.argmin() == pytest.approx(100, abs=1)


def answered(**terms: Any) -> Record:
    """A campaign with its answer, of which one person did not deliver."""
    outcome = Market(prior=Uniform(1, 2), setting="local", questions=[YesNo(name="q")], **terms).acquire(BIDS)
    rows: list[Any] = [[bool(row % 3)] for row in range(BIDS.size)]
    rows[int(np.argmax(outcome.privacy_loss))] = None
    return Record.of(outcome, release_synthetic(plan_of(outcome), rows, simulated=True).release)


@pytest.fixture(scope="module")
def record() -> Record:
    return answered(buyer_weight=300.0)


@pytest.mark.parametrize("terms", [{"buyer_weight": 300.0}, {"goal": Accuracy(0.17)}], ids=["price", "accuracy"])
def test_an_honest_record_passes(terms: dict[str, Any]) -> None:
    found = verify(answered(**terms))
    assert found.ok, found
    assert "error of 'q'" in {check.name for check in found.checks if check.status == "holds"}


def test_free_people_are_found_again() -> None:
    market = Market(prior=Uniform(0, 1), setting="local", questions=[YesNo(name="q")], buyer_weight=10.0)
    found = verify(Record.of(market.acquire([0.0, 0.0, 0.4, 0.9])))
    assert found.ok, found


def failing(record: Record, change: Callable[[dict[str, Any]], object]) -> tuple[str, ...]:
    """What verification says of a record whose release was changed, under a hash that fits."""
    content = copy.deepcopy(dict(record.to_dict()))
    del content["hash"]
    change(content["release"])
    return verify(Record.from_dict({**content, "hash": content_hash(content)})).failed


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (
            lambda answer: answer["error"].update(sampling_variance=0.999 * answer["error"]["sampling_variance"]),
            "error of 'q'",
        ),
        (lambda answer: answer["error"].update(largest_noise=1e-3), "error of 'q'"),
        (lambda answer: answer["planned_error"].update(largest_step=0.1), "planned error of 'q'"),
        (lambda answer: answer["error"].update(rounding=0.0), "error of 'q'"),
        (lambda answer: answer.update(values=[8.0]), "answers"),
        (lambda answer: answer.update(values=[0.5 + 2.0**-45]), "answers"),
    ],
)
def test_a_changed_error_or_an_estimate_that_no_answers_lead_to_is_found(
    record: Record, change: Callable[[Any], object], check: str
) -> None:
    assert check in failing(record, lambda release: change(release["answers"][0]))


def test_a_grid_where_there_is_none_is_found(record: Record) -> None:
    assert "grid" in failing(record, lambda release: release["grid"].update(data_bits=32))


def test_losses_bought_as_for_laplace_noise_are_not_the_optimum(record: Record) -> None:
    outcome = record.outcome
    wrong = allocate(outcome.virtual_costs, setting="local", error_weight=300.0)
    forged = replace(outcome, privacy_loss=wrong.privacy_loss, weights=wrong.weights)
    assert {"optimality", "weights", "error and objective"} <= set(verify(Record.of(forged)).failed)
