"""The most a campaign can cost under caps: no bids found by a search cost more, and the bound is no idle one."""

import math

import numpy as np
import pytest

from hushbid import Accuracy, Budget, Empirical, Market, Mixture, Price, Uniform
from hushbid.errors import DivergentPayment, Unreachable
from hushbid.mechanism.worst_case import worst_payment

PRIORS = {
    "uniform": Uniform(1, 2),
    "from zero": Uniform(0, 1),
    "irregular": Mixture([Uniform(0.5, 1), Uniform(3, 9)], [0.5, 0.5]),
    "steps": Empirical([1, 2, 2, 5]),
}


def bids_of(prior, n, rng, *, missing):
    """Extreme, equal and ordinary bids, some of them above the support."""
    levels = rng.random(n) ** rng.choice([0.1, 1.0, 10.0])
    levels = np.round(levels) if rng.random() < 0.3 else np.full(n, levels[0]) if rng.random() < 0.4 else levels
    bids = np.asarray(prior.quantile(np.clip(levels, 1e-4, 0.9999)))
    if missing:
        bids[rng.random(n) < 0.3] = 2.0 * prior.support[1]
    return bids


def a_goal(kind, rng, variance, caps):
    if kind is Price:
        return Price(10 ** rng.uniform(-1, 4))
    if kind is Budget:
        return Budget(float(caps.sum()) * 10 ** rng.uniform(0.0, 0.7))
    least = (2.0 + variance * float(caps @ caps)) / float(caps.sum()) ** 2  # of the plain mean, or less
    return Accuracy(math.sqrt(least * (1.0 + 10 ** rng.uniform(-1.5, 1.0))))


CASES = [
    (Price, "uniform"),
    (Price, "from zero"),
    (Price, "irregular"),
    *((kind, "steps") for kind in (Price, Accuracy, Budget)),
]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_no_bids_cost_more_than_the_bound_where_people_state_limits(kind, name):
    prior, rng, binding = PRIORS[name], np.random.default_rng(len(name)), 0
    for k in range(4 if kind is Price else 2):
        n, variance = int(rng.integers(1, 5 if kind is Price else 4)), float(rng.uniform(0.01, 0.25))
        limits = 10 ** rng.uniform(-1.5, 0.7, n) if k % 2 else np.full(n, 10 ** rng.uniform(-1.0, 0.5))
        goal = a_goal(kind, rng, variance, limits)
        made = Market(prior=prior, goal=goal, variance=variance, user_weight=0.0)
        missing = k >= 2 and prior.support[1] < math.inf
        bound = worst_payment(made.for_people(n).with_limits(limits), above_support=missing)
        assert bound <= float(limits.sum()) * prior.support[1] * (1 + 1e-9)
        for _ in range(3 if kind is Price else 2):
            try:
                found = made.acquire(bids_of(prior, n, rng, missing=missing), limits=limits)
            except (Unreachable, DivergentPayment):  # nothing is bought, nobody is paid
                continue
            assert found.total_payment <= bound * (1 + 1e-9) + 1e-9
            binding += int((found.privacy_loss == limits).any())
    assert binding >= 1


@pytest.mark.parametrize("setting", ["central", "local"])
@pytest.mark.parametrize("name", ["uniform", "steps"])
def test_no_bids_cost_more_than_the_bound_under_one_cap_also_if_people_care_about_the_error(name, setting):
    prior, rng, binding = PRIORS[name], np.random.default_rng(len(name) + 7), 0
    for _ in range(4):
        n, weight, variance = int(rng.integers(1, 7)), 10 ** rng.uniform(-1, 4), float(rng.uniform(0.01, 0.25))
        cap = float(10 ** rng.uniform(-1.5, 0.5)) * min(1.0, weight ** (1 / 3))
        made = Market(
            prior=prior,
            setting=setting,
            goal=Price(weight),
            user_weight=float(rng.choice([0.0, 1.0])),
            variance=variance,
            max_privacy_loss=cap,
        )
        bound = worst_payment(made.for_people(n))
        for _ in range(3):
            found = made.acquire(bids_of(prior, n, rng, missing=False))
            assert found.total_payment <= bound * (1 + 1e-9) + 1e-9
            binding += int((found.privacy_loss == cap).any())
    assert binding >= 4


@pytest.mark.parametrize("setting", ["central", "local"])
def test_payments_for_data_stay_below_twice_or_once_the_largest_objective_under_a_cap(setting):
    """The proof in docs/concepts/proofs.md, with nobody's loss raised where somebody is done without."""
    rng, most = np.random.default_rng(3), 0.0
    for prior, factor in (
        (Uniform(1, 3), {"central": 1.0, "local": 5 / 6}),
        (Empirical([1, 2, 4]), {"central": 2.0, "local": 1.0}),
    ):
        for _ in range(8):
            n, weight = int(rng.integers(1, 7)), 10 ** rng.uniform(-1, 5)
            cap = weight ** (1 / 3) * 10 ** rng.uniform(-1, 0)
            made = Market(prior=prior, setting=setting, goal=Price(weight), max_privacy_loss=cap, user_weight=0.0)
            highest = made.allocation(np.full(n, float(prior.virtual_cost(prior.support[1])))).objective
            found = made.acquire(np.asarray(prior.quantile(rng.random(n) ** 3)))
            assert found.total_payment <= factor[setting] * highest * (1 + 1e-9)
            most = max(most, found.total_payment / highest)
    assert most > 0.25


def test_tight_limits_cost_at_most_the_top_of_the_support_for_each_and_can_come_close_to_it():
    prior, limits = Empirical([1, 2]), np.array([0.01, 0.02, 0.03])
    for goal in (Price(1e4), Budget(1.0)):
        made = Market(prior=prior, goal=goal, user_weight=0.0)
        bound = worst_payment(made.for_people(3).with_limits(limits))
        paid = made.acquire([1.0, 1.0, 1.0], limits=limits).total_payment
        assert bound <= 2.0 * float(limits.sum()) * (1 + 1e-12)
        assert paid <= bound * (1 + 1e-9)
        assert paid == pytest.approx(bound, rel=1e-6)  # everybody is bought from, whatever she asks


def test_limits_give_a_bound_where_there_is_none_without():
    free = Market(prior=Uniform(0, 1), goal=Budget(10.0))
    assert worst_payment(free.for_people(4)) == math.inf
    limits = np.array([0.5, 1.0, 1.0, 2.0])
    bound = worst_payment(free.for_people(4).with_limits(limits))
    assert bound == pytest.approx(4.5)
    assert free.acquire([1e-9] * 4, limits=limits).total_payment <= bound * (1 + 1e-9)
    mixed = Market(prior=Uniform(1, 2), goal=Accuracy(0.9), variance=[0.25, 0.2, 0.1, 0.2])
    assert worst_payment(mixed.for_people(4), above_support=True) == math.inf
    assert worst_payment(mixed.for_people(4).with_limits(limits), above_support=True) <= 9.0


def test_under_one_cap_an_accuracy_costs_most_when_as_few_are_left_as_can_reach_it():
    made = Market(prior=Uniform(1, 2), goal=Accuracy(0.5), variance=0.25, max_privacy_loss=1.1)
    assert made.acquire([2.0] * 4).privacy_loss.max() < 1.1
    bound = worst_payment(made.for_people(20), above_support=True)
    with pytest.raises(Unreachable):
        made.acquire([2.0, 2.0, 2.0, 9.0, 9.0, 9.0])
    paid = made.acquire([2.0, 2.0, 2.0, 2.0, 9.0, 9.0]).total_payment
    assert paid <= bound == pytest.approx(2.0 * 3.0 * math.sqrt(2 / (0.25 - 0.25 / 4)), rel=1e-12)


@pytest.mark.parametrize("kind", [Price, Accuracy, Budget])
def test_no_limits_whatsoever_make_a_campaign_cost_more_than_the_bound_that_allows_for_them(kind):
    prior, rng, tight = Uniform(1, 2), np.random.default_rng(5), 0
    for _ in range(2 if kind is Budget else 6):
        n, variance, cap = (
            int(rng.integers(2, 4 if kind is Budget else 6)),
            float(rng.uniform(0.01, 0.25)),
            10 ** rng.uniform(-0.5, 0.5),
        )
        made = Market(
            prior=prior,
            goal=a_goal(kind, rng, variance, np.full(n, cap)),
            variance=variance,
            user_weight=0.0,
            max_privacy_loss=cap,
        )
        bound = worst_payment(made.for_people(n), above_support=True, limits=True)
        assert bound <= n * cap * 2.0 * (1 + 1e-9)
        for _ in range(3 if kind is Budget else 8):
            limits = cap * rng.random(n) ** rng.choice([0.05, 0.3, 3.0])
            try:
                found = made.acquire(bids_of(prior, n, rng, missing=True), limits=limits)
            except Unreachable:
                continue
            assert found.total_payment <= bound * (1 + 1e-9)
            tight += found.total_payment > 0.2 * bound
    assert tight > 0
