"""The verifier's one central rule agrees with the solver for every goal, with any strata, caps and variances."""

import math
from typing import Any

import numpy as np
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, Price, allocate, replies
from hushbid.errors import HushbidError
from hushbid.estimation import Strata, best_contrast
from hushbid.verification import strata_weights
from hushbid.verification.central_rule import CentralRule

GOALS: list[tuple[Goal, dict[str, float]]] = [
    (Price(40.0), {"error_weight": 40.0}),
    (Accuracy(0.9), {"error": 0.81}),
    (Budget(3.0), {"expense": 3.0}),
]
CAPS = {"free": 0.0, "a few capped": 0.3, "all capped": 1.0}


def instance(seed: int, strata: int, capped: float, *, alike: bool, free: bool) -> dict[str, Any]:
    """People who all differ, or one kind in each stratum; perhaps some who ask for nothing."""
    rng = np.random.default_rng([seed, strata])
    people = 2 * strata + int(rng.integers(0, 60 if alike else 8))
    codes = np.concatenate([np.arange(strata), rng.integers(0, strata, people - strata)])
    costs, caps = np.exp(rng.normal(0.0, 1.0, people)), rng.uniform(0.1, 1.5, people)
    costs[rng.random(people) < 0.2 * free] = 0.0
    variance = np.full(people, 0.25) if alike else rng.uniform(0.05, 0.25, people)
    if alike:
        caps = np.full(strata, 0.8)[codes]
    caps[rng.random(people) >= capped] = math.inf
    return {
        "costs": costs,
        "variance": variance,
        "caps": caps,
        "codes": codes,
        "sizes": np.exp(rng.normal(size=strata) * (strata > 1)),
    }


@pytest.mark.parametrize(("goal", "wanted"), GOALS, ids=lambda one: getattr(one, "kind", ""))
@pytest.mark.parametrize("capped", CAPS.values(), ids=CAPS)
@pytest.mark.parametrize("strata", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_it_finds_what_the_solver_finds_and_so_it_does_when_one_person_moves(
    seed: int, strata: int, capped: float, goal: Goal, wanted: dict[str, float]
) -> None:
    market = instance(seed, strata, capped, alike=seed % 2 == 0, free=seed == 3)
    costs = market["costs"]
    rule = CentralRule(**market, **wanted)
    parts = Strata(codes=market["codes"], weights=market["sizes"]) if strata > 1 else None
    terms: dict[str, Any] = {"variance": market["variance"], "goal": goal, "strata": parts, "max_loss": market["caps"]}
    try:
        with np.errstate(invalid="ignore"):
            theirs = allocate(costs, **terms)
    except HushbidError:  # out of reach, or nobody to be paid
        return
    losses, mse, _ = rule.everybody(0, float(costs[0]))
    scale = theirs.privacy_loss[np.isfinite(theirs.privacy_loss)].max()
    np.testing.assert_allclose(losses, theirs.privacy_loss, rtol=1e-10, atol=1e-11 * scale)
    assert mse == pytest.approx(theirs.mse, rel=1e-10)
    rows = np.repeat(np.arange(costs.size), 3)[:40]
    moved = np.where(
        np.arange(rows.size) % 5 == 4, math.inf, 0.01 + costs[rows] * np.tile([1.0, 1.3, 4.0], rows.size)[: rows.size]
    )
    try:
        other = replies(costs, setting="central", **terms).at(rows, moved)
    except HushbidError:
        return
    there = np.isfinite(other.mse)
    np.testing.assert_allclose(rule.at(rows, moved).loss[there], other.loss[there], rtol=1e-9, atol=1e-10 * scale)


def test_the_best_weights_of_strata_are_those_of_the_estimator() -> None:
    rng = np.random.default_rng(2)
    strata = Strata(codes=np.arange(12) % 3, weights=[0.5, -1.0, 2.0])
    for spread in (0.3, 3.0):
        losses, variance = np.exp(rng.normal(0.0, spread, 12)), rng.uniform(0.1, 0.25, 12)
        expected = best_contrast(losses, strata=strata, variance=variance)
        weights, strength = strata_weights.best_contrast(losses, variance, strata)
        np.testing.assert_allclose(weights, expected.weights, rtol=1e-9)
        assert strength == pytest.approx(expected.strength, rel=1e-9)
