"""No honest record fails, at extreme scales and tiny caps included: at worst the verdict is *incomplete*."""

import math
import os
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget, HardBudget
from hushbid.errors import HushbidError
from hushbid.mechanism import Market
from hushbid.priors import Empirical, Exponential, LogNormal, Mixture, Prior, Uniform
from hushbid.questions import Choice, Number, Question, YesNo
from hushbid.record import Record
from hushbid.verification import verify

SURVEYS: list[tuple[Question, ...]] = [
    (YesNo(name="a"),),
    (Number(name="sleep", bounds=(0, 12), variance=2.0), Choice(name="party", answers=("a", "b", "c"))),
]


def prior_of(rng: np.random.Generator, scale: float) -> Prior:
    made: list[Any] = [
        lambda: Uniform(scale, 2 * scale),
        lambda: Uniform(0, scale),
        lambda: LogNormal(math.log(scale), float(rng.uniform(0.2, 1.0))),
        lambda: Exponential(1 / scale),
        lambda: Empirical((scale * np.sort(rng.uniform(0.5, 3, 6))).tolist()),
        lambda: Mixture([Uniform(0, scale), Uniform(2 * scale, 3 * scale)], [0.3, 0.7]),
    ]
    found = made[int(rng.integers(len(made)))]()
    assert isinstance(found, Prior)
    return found


def drawn(rng: np.random.Generator) -> Record:
    """A random market and what it buys; some combinations are refused."""
    n, scale = int(rng.integers(1, 5)), 10.0 ** rng.uniform(-6, 6)
    prior, worth = prior_of(rng, scale), scale * 10.0 ** rng.uniform(-4, 7)
    goals: list[dict[str, Any]] = [
        {"buyer_weight": worth},
        {"goal": Accuracy(10.0 ** rng.uniform(-1, 4))},
        {"goal": Budget(scale * 10.0 ** rng.uniform(-4, 4))},
        {"goal": HardBudget(scale * 10.0 ** rng.uniform(-3, 3))},
    ]
    terms = {**goals[int(rng.integers(4))], "setting": str(rng.choice(["central", "central", "local"]))}
    if rng.random() < 0.2:
        terms["questions"] = SURVEYS[int(rng.integers(2))]
    if rng.random() < 0.5:
        terms["max_privacy_loss"] = 10.0 ** rng.uniform(-7, 1)
    if rng.random() < 0.2 and n > 3:
        terms |= {"strata": [("x", "y")[row % 2] for row in range(n)], "shares": {"x": 0.4, "y": 0.6}}
    if rng.random() < 0.2:
        terms["max_correlation"] = float(rng.uniform(0, 0.5))
    limits = 10.0 ** rng.uniform(-6, 1, n) if rng.random() < 0.3 else None
    return Record.of(Market(prior=prior, **terms).acquire(prior.sample(n, rng=rng), limits=limits))


@pytest.mark.parametrize("seed", range(int(os.environ.get("HUSHBID_HONEST_MARKETS", "14"))))
def test_no_honest_record_fails(seed: int) -> None:
    rng, record = np.random.default_rng([26, seed]), None
    while record is None:
        try:
            record = drawn(rng)
        except HushbidError:
            continue
    found = verify(record)
    assert found.verdict != "fails", found.summary()


@pytest.mark.parametrize("reach", [10.0, 5e8, 1e11])
def test_a_hard_budget_that_buys_from_the_far_tail_of_its_prior_holds(reach: float) -> None:
    prior = Exponential(4e-6)
    outcome = Market(prior=prior, goal=HardBudget(4e-6 * reach)).acquire([1e-6, 4e-6, 6e-6])
    assert verify(Record.of(outcome)).verdict == "holds"


def test_with_limits_nothing_bought_holds() -> None:
    market = Market(prior=Uniform(1, 2), goal=HardBudget(0.001))
    outcome = market.acquire([1.95, 1.9], limits=[0.5, 0.4])
    assert outcome.active == 0
    assert verify(Record.of(outcome)).verdict == "holds"
