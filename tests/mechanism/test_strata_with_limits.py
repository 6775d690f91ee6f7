"""An accuracy for strata under caps and stated limits: the truth about bid and limit is everybody's best reply."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hushbid import Accuracy, LogNormal, Market, Price, Uniform
from hushbid.common.arrays import FloatArray
from hushbid.errors import DivergentPayment, Unreachable
from hushbid.record import Record
from hushbid.verification import verify
from tests.extent import TIMES

COSTS = (1.0, 1.15, 1.4, 1.7, 2.0)
LIMITS = (0.0, 0.3, 0.7, 1.1, 2.0, math.inf)


class Panel:
    """A random market of two strata, and what each person really accepts."""

    def __init__(self, seed: int, *, contrast: bool) -> None:
        rng = np.random.default_rng(seed)
        self.people = int(rng.integers(4, 8))
        strata = ["a", "b", *("ab"[code] for code in rng.integers(0, 2, self.people - 2))]
        wanted = {"contrast": {"a": 1.0, "b": -0.7}} if contrast else {"shares": {"a": 0.35, "b": 0.65}}
        self.costs = rng.uniform(1.0, 2.0, self.people)
        self.limits = np.where(rng.random(self.people) < 0.5, rng.uniform(0.4, 2.0, self.people), math.inf)
        terms = {"prior": Uniform(1, 2), "strata": strata, "max_privacy_loss": 1.8, **wanted}
        terms["variance"] = rng.uniform(0.1, 0.25, self.people)
        # a target that small limits of one person put out of reach in some of the markets
        least = math.sqrt(Market(goal=Price(1e9), **terms).acquire(self.costs, limits=self.limits).mse)
        self.market = Market(goal=Accuracy(least * float(rng.uniform(1.02, 1.4))), **terms)

    def surplus(self, row: int, bid: float, limit: float) -> float:
        """Return what one person has of it who states this; nothing if the campaign is cancelled."""
        bids, limits = self.costs.copy(), self.limits.copy()
        bids[row], limits[row] = bid, limit
        try:
            found = self.market.acquire(bids, limits=limits)
        except Unreachable:
            return 0.0
        loss, paid = float(found.privacy_loss[row]), float(found.payments[row])
        return -math.inf if loss > self.limits[row] * (1.0 + 1e-9) else paid - float(self.costs[row]) * loss


@pytest.mark.parametrize("contrast", [False, True])
def test_no_joint_misreport_of_bid_and_limit_gains_even_if_it_cancels_the_campaign(contrast: bool) -> None:
    cancelled, tried, most = 0, 0, -math.inf
    for seed in range(2 * TIMES):
        panel = Panel(seed, contrast=contrast)
        row = seed % panel.people
        honest = panel.surplus(row, panel.costs[row], panel.limits[row])
        assert honest >= -1e-9
        for bid in COSTS:
            for limit in LIMITS:
                gained = panel.surplus(row, bid, limit) - honest
                cancelled += gained == -honest
                tried += 1
                most = max(most, gained)
    assert most <= 1e-7, most
    assert cancelled > 0.02 * tried  # so that the campaign's end is among what was tried


def test_a_limit_below_the_loss_is_the_loss() -> None:
    for seed in range(3 * TIMES):
        panel = Panel(100 + seed, contrast=False)
        honest = panel.market.acquire(panel.costs, limits=panel.limits)
        row = int(np.argmax(honest.privacy_loss))
        limits = panel.limits.copy()
        limits[row] = 0.9 * honest.privacy_loss[row]
        try:
            found = panel.market.acquire(panel.costs, limits=limits)
        except Unreachable:
            continue
        assert found.privacy_loss[row] == pytest.approx(limits[row], rel=1e-9)


def test_a_limit_that_puts_the_accuracy_out_of_reach_cancels_the_campaign_and_says_so() -> None:
    market = Market(
        prior=Uniform(1, 2), goal=Accuracy(0.4), variance=0.2, strata=["a", "a", "b", "b"], shares={"a": 0.5, "b": 0.5}
    )
    bids = [1.1, 1.3, 1.6, 1.2]
    assert market.acquire(bids, limits=[None, None, None, 3.0]).mse == pytest.approx(0.16)
    with pytest.raises(Unreachable, match=r"in their strata within their limits, got 0\.4: the campaign is cancelled"):
        market.acquire(bids, limits=[0.1, 0.1, None, None])


def test_somebody_indispensable_under_caps_is_refused_where_the_prior_has_no_top() -> None:
    market = Market(
        prior=LogNormal(0.0, 1.0), goal=Accuracy(0.62), variance=0.2, strata=["a", "a", "b"], max_privacy_loss=2.0,
        shares={"a": 0.5, "b": 0.5},
    )  # fmt: skip
    with pytest.raises(DivergentPayment, match="nobody can take their place"):
        market.acquire([1.0, 1.1, 0.9])


def forged(record: Record, losses: FloatArray) -> Record:
    """Return the record with other losses, and everything that follows from them."""
    found = record.outcome
    weights, planned = found.population.best_estimate(losses)
    changed = replace(
        found,
        privacy_loss=losses,
        weights=weights,
        mse=planned,
        worst_mse=planned,
        objective=float(found.virtual_costs @ losses),
    )
    return Record.of(changed)


def test_a_record_is_confirmed_and_other_losses_are_found() -> None:
    market = Market(
        prior=Uniform(1, 2), goal=Accuracy(0.42), variance=0.2, strata=list("aabbab"), shares={"a": 0.4, "b": 0.6},
        max_privacy_loss=1.2,
    )  # fmt: skip
    record = Record.of(market.acquire([1.1, 1.3, 1.6, 1.2, 1.5, 1.25], limits=[0.5, None, None, 0.7, None, None]))
    checks = {one.name: one for one in verify(record).checks}
    assert checks["optimality"].status == "holds"
    assert not any(one.status == "fails" for one in checks.values())
    assert checks["rents"].status == "holds"
    # two people of one stratum change places: the error is the same, the expense is not the least
    losses = record.outcome.privacy_loss.copy()
    losses[[2, 5]] = losses[[5, 2]]
    assert {one.name: one.status for one in verify(forged(record, losses)).checks}["optimality"] == "fails"
