"""Very many people in memory: bought from as one by one, and as on engines."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hushbid.allocation import Accuracy, Budget, Goal, Price
from hushbid.engine import price
from hushbid.mechanism import Market, Outcome
from hushbid.mechanism.in_memory import ManyPeople
from hushbid.priors import Empirical, Grouped, LogNormal, Mixture, Prior, Uniform
from hushbid.record import Record
from hushbid.verification import verify
from tests.extent import ALL_CASES

N = 6000
RNG = np.random.default_rng(90)
LABELS = np.where(RNG.random(N) < 0.3, "old", "young")
GROUPS: dict[str, Prior] = {"young": LogNormal(0, 0.5), "old": Uniform(0.5, 2)}
STRATA = np.array(["east", "south", "west"])[RNG.integers(0, 3, N)]
SHARES = {"east": 0.5, "south": 0.3, "west": 0.2}
PRIORS: dict[str, Prior] = {
    "uniform from 1": Uniform(1, 2),
    "uniform from 0": Uniform(0, 1),
    "log-normal": LogNormal(0, 0.5),
    "steps": Empirical(np.round(LogNormal(0, 0.5).sample(60, rng=RNG), 1)),
    "a density that drops": Mixture([Uniform(1, 1.4), Uniform(1, 3)], [0.5, 0.5]),
}
GOALS: tuple[Goal, ...] = (Price(3e7), Accuracy(0.0074), Budget(400.0))
MARKETS: dict[str, tuple[Market, str]] = {
    **{
        f"{name}, {goal.kind}": (Market(prior=one, goal=goal), "many") for name, one in PRIORS.items() for goal in GOALS
    },
    **{
        f"strata, {goal.kind}": (Market(prior=LogNormal(0, 0.5), goal=goal, strata=STRATA, shares=SHARES), "many")
        for goal in (Price(3e7), Accuracy(0.0085), Budget(400.0))
    },
    "groups": (Market(prior=Grouped(GROUPS, LABELS), goal=Budget(400.0)), "many"),
    "groups in strata": (
        Market(prior=Grouped(GROUPS, LABELS), goal=Price(3e7), strata=STRATA, shares=SHARES),
        "many",
    ),
    "a relation": (Market(prior=Uniform(1, 2), goal=Price(3e7), max_correlation=0.05, population=9000), "many"),
    "user weights": (Market(prior=Uniform(1, 2), variance=0.2, buyer_weight=1e7, user_weight=500.0), "many"),
    "a user weight each": (
        Market(prior=Uniform(1, 2), variance=0.2, buyer_weight=1e7, user_weight=RNG.uniform(0, 900, N)),
        "many",
    ),
    "the estimate outside": (
        Market(prior=LogNormal(0, 0.5), variance=0.2, buyer_weight=1e7, user_weight=500.0, outside_option="estimate"),
        "many",
    ),
    "a cap that binds nobody": (Market(prior=Uniform(1, 2), goal=Budget(400.0), max_privacy_loss=9.0), "many"),
    "a cap that binds": (Market(prior=Uniform(1, 2), goal=Budget(400.0), max_privacy_loss=0.04), "one by one"),
    "a cap that binds, price": (Market(prior=Uniform(1, 2), goal=Price(3e7), max_privacy_loss=0.05), "one by one"),
    "log-normal, a cap that binds, price": (
        Market(prior=LogNormal(0, 0.5), goal=Price(3e7), max_privacy_loss=0.05),
        "one by one",
    ),
    "a cap in strata": (
        Market(prior=Uniform(1, 2), goal=Price(3e7), strata=STRATA, shares=SHARES, max_privacy_loss=0.06),
        "one by one",
    ),
    "few": (Market(prior=Uniform(1, 2), goal=Price(30.0)), "few"),
    "few in strata": (Market(prior=LogNormal(0, 0.5), goal=Budget(3.0), strata=STRATA, shares=SHARES), "few"),
    "few with a user weight each": (
        Market(prior=Uniform(1, 2), variance=0.2, buyer_weight=9.0, user_weight=RNG.uniform(0, 0.01, N)),
        "few",
    ),
    "few with a variance each": (
        Market(prior=Grouped(GROUPS, LABELS), goal=Price(30.0), variance=RNG.uniform(0.1, 0.2, N)),
        "few",
    ),
}
COSTLY = ("steps", "a density", "log-normal", "strata")
SOME = [name for name in MARKETS if not name.startswith(COSTLY) or name.endswith("budget")]
"""Every goal for two priors; priors whose rents take longer, and strata, for the goal whose rents take longest."""


def bids_of(market: Market) -> np.ndarray[Any, np.dtype[np.float64]]:
    rng = np.random.default_rng(91)
    if isinstance(market.prior, Grouped):
        return np.where(LABELS == "old", GROUPS["old"].sample(N, rng=rng), GROUPS["young"].sample(N, rng=rng))
    return market.prior.sample(N, rng=rng)


def assert_within_both_bounds(found: Outcome, exact: Outcome) -> None:
    largest = float(np.abs(exact.payments).max())
    assert found.objective == pytest.approx(exact.objective, rel=1e-12)
    assert found.mse == pytest.approx(exact.mse, rel=1e-11)
    for name in ("privacy_loss", "weights"):
        theirs = getattr(exact, name)
        np.testing.assert_allclose(getattr(found, name), theirs, rtol=0, atol=1e-11 * float(np.abs(theirs).max()))
    together = 0.5 * (found.incentive_error + exact.incentive_error) + 1e-13 * largest
    assert found.incentive_error <= 2.1e-6 * largest
    np.testing.assert_allclose(found.payments, exact.payments, rtol=0, atol=together)
    np.testing.assert_allclose(found.outside_error, exact.outside_error, rtol=1e-11)
    low, high = found.rent_bounds
    assert ((low <= found.information_rent) & (found.information_rent <= high)).all()


@pytest.mark.parametrize("name", MARKETS if ALL_CASES else SOME)
def test_very_many_people_are_decided_about_as_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    market, way = MARKETS[name]
    bids = bids_of(market)
    many = ManyPeople.of(market.for_people(N), bids, np.asarray(market.prior.virtual_cost(bids)))
    assert many is not None
    assert (many.buy() is not None) == (way == "many")
    assert way == "many" or (many.few() is not None) == (way == "few")
    found = market.acquire(bids)
    for module in ("in_memory", "deciding"):
        monkeypatch.setattr(f"hushbid.mechanism.{module}.MANY", 10**9)
    assert_within_both_bounds(found, market.acquire(bids))


ZEROS: dict[str, Market] = {
    **{f"log-normal, {goal.kind}": Market(prior=LogNormal(0, 0.5), goal=goal) for goal in GOALS},
    "strata, accuracy": Market(prior=LogNormal(0, 0.5), goal=Accuracy(0.0085), strata=STRATA, shares=SHARES),
    "uniform from 0, price": Market(prior=Uniform(0, 1), goal=Price(3e7)),
}


@pytest.mark.parametrize(
    ("name", "zeros"),
    [
        (name, zeros)
        for place, name in enumerate(ZEROS)
        for turn, zeros in enumerate((1, 30))
        if ALL_CASES or place % 2 == turn
    ],
)
def test_zero_cost_people_among_very_many_are_bought_from_by_sums(
    name: str, zeros: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    market = ZEROS[name]
    bids = bids_of(market)
    bids[np.random.default_rng(92).permutation(N)[:zeros]] = 0.0
    many = ManyPeople.of(market.for_people(N), bids, np.asarray(market.prior.virtual_cost(bids)))
    assert many is not None
    assert many.buy() is not None
    found = market.acquire(bids)
    for module in ("in_memory", "deciding"):
        monkeypatch.setattr(f"hushbid.mechanism.{module}.MANY", 10**9)
    assert_within_both_bounds(found, market.acquire(bids))


def test_where_zero_cost_people_are_enough_nobody_else_is_bought_from() -> None:
    market = Market(prior=Uniform(0, 1), variance=0.2, goal=Accuracy(0.02))
    bids = np.concatenate([np.zeros(600), Uniform(0, 1).sample(N - 600, rng=np.random.default_rng(93))])
    found = market.acquire(bids)
    assert set(np.flatnonzero(found.privacy_loss)) == set(range(600))
    assert found.total_payment == 0.0


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.kind)
def test_memory_and_engines_decide_to_the_last_bit_alike(goal: Goal) -> None:
    market = Market(prior=LogNormal(0, 0.5), goal=goal)
    bids = bids_of(market)
    outcome, priced = market.acquire(bids), price(pa.table({"id": np.arange(N), "bid": bids}), market)
    assert priced.summary.method == "summed"
    for name, theirs in (
        ("privacy_loss", outcome.privacy_loss),
        ("weight", outcome.weights),
        ("payment", outcome.payments),
    ):
        assert priced.frame[name].to_pylist() == theirs.tolist()


@pytest.mark.parametrize("name", ["log-normal, budget", "groups"])
def test_the_record_of_very_many_people_verifies(name: str) -> None:
    market, _ = MARKETS[name]
    found = verify(Record.of(market.acquire(bids_of(market))))
    assert found.failed == ()
