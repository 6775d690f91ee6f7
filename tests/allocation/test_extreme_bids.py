"""One person's bid, however extreme, stops no purchase: the goals, settings and caps one by one."""

import math
from typing import Any

import numpy as np
import pytest

from hushbid import Accuracy, Budget, Exponential, Market, Price, allocate
from hushbid.allocation import Goal, Strata, least_objective, replies
from hushbid.errors import DivergentPayment, InputError, Unreachable
from tests.extent import each

KINDS: list[tuple[str, Goal, float | None]] = [
    (setting, goal, cap)
    for setting in ("central", "local")
    for goal in (Price(3.0), Accuracy(0.9), Budget(2.0))
    for cap in (None, 0.6)
    if setting == "central" or isinstance(goal, Price) or (cap is None and isinstance(goal, Accuracy))
]
EXTREMES = [1e-300, 1e-120, 1e-3, 1.0, 1e120, 1e200]
every_kind = pytest.mark.parametrize(
    ("setting", "goal", "cap"), KINDS, ids=[f"{setting}-{goal.kind}-{cap}" for setting, goal, cap in KINDS]
)


@every_kind
def test_one_extreme_bid_leaves_the_campaign_decidable(setting: str, goal: Goal, cap: float | None) -> None:
    market = Market(
        prior=Exponential(1.0), setting=setting, goal=goal, variance=0.25, user_weight=0.0, max_privacy_loss=cap
    )  # type: ignore[arg-type]
    bids = np.array([0.7, 0.3, 1.1, 0.5, 0.9])
    before = math.inf
    for extreme in (1e-200, 0.5, 1e200):
        bids[1] = extreme
        outcome = market.acquire(bids)
        assert np.isfinite(outcome.payments).all()
        assert (outcome.payments >= outcome.privacy_loss * np.minimum(bids, 1e100) * (1.0 - 1e-9)).all()
        assert outcome.privacy_loss[1] <= before * (1.0 + 1e-12)
        before = float(outcome.privacy_loss[1])
    assert before == 0.0


@every_kind
def test_losses_at_extreme_costs_are_those_of_the_replies_and_never_rise(
    setting: str, goal: Goal, cap: float | None
) -> None:
    costs, limit = np.array([0.7, 0.3, 1.1, 0.5, 0.9]), math.inf if cap is None else cap
    rule = replies(costs, setting=setting, goal=goal, max_loss=limit)
    found = rule.at(np.ones(len(EXTREMES), dtype=np.intp), np.array(EXTREMES))
    assert (np.diff(found.loss) <= 1e-12 * found.loss[:-1]).all()
    for extreme, loss in zip(EXTREMES, found.loss.tolist(), strict=True):
        costs[1] = extreme
        bought = allocate(costs, setting=setting, goal=goal, max_loss=limit)
        assert bought.privacy_loss[1] == pytest.approx(loss, rel=1e-9, abs=1e-12)
        again = replies(costs, setting=setting, goal=goal, max_loss=limit)
        there = again.at(np.array([0, 1]), costs[:2])
        assert there.loss == pytest.approx(bought.privacy_loss[:2], rel=1e-9, abs=1e-12)
        bound = least_objective(costs, setting=setting, goal=goal, max_loss=limit)
        assert bound <= bought.objective * (1.0 + 1e-12)
        assert bought.lower_bound <= bought.objective * (1.0 + 1e-12)
        if setting == "central":
            assert bought.objective <= bound * (1.0 + 1e-9) + 1e-100


@every_kind
def test_extreme_costs_beside_people_who_ask_for_nothing_are_decided(
    setting: str, goal: Goal, cap: float | None
) -> None:
    found = allocate([1e-290, 0.0, 2.0, 1e250], setting=setting, goal=goal, max_loss=math.inf if cap is None else cap)
    assert found.privacy_loss[3] == 0.0
    assert 0.0 < found.mse < math.inf


@each("kind", [one for one in KINDS if one[0] == "central"])
def test_costs_that_are_all_beyond_what_can_be_computed_are_refused_in_one_sentence(
    kind: tuple[str, Goal, float | None],
) -> None:
    setting, goal, cap = kind
    with pytest.raises(InputError, match=r"virtual_costs must not all be above .*, got 1e\+200 as the smallest"):
        allocate([1e200, 1e210], setting=setting, goal=goal, max_loss=math.inf if cap is None else cap)


@pytest.mark.parametrize("extreme", [30.0, 1e200])
def test_somebody_who_cannot_be_spared_is_refused_alike_at_any_high_price(extreme: float) -> None:
    market = Market(prior=Exponential(1.0), goal=Accuracy(0.27), variance=0.25, user_weight=0.0)
    with pytest.raises((DivergentPayment, Unreachable)):
        market.acquire(np.array([0.5, 0.7, 0.9, extreme]))


@pytest.mark.parametrize("goal", [Price(1e3), Accuracy(0.7), Budget(0.4)], ids=lambda goal: goal.kind)
def test_one_extreme_bid_under_caps_blurs_no_other_stratum(goal: Goal) -> None:
    rng = np.random.default_rng(7)
    for people in (12, 30):
        costs, codes = rng.uniform(1.0, 3.0, people), np.arange(people) % 3
        terms: dict[str, Any] = {
            "goal": goal,
            "variance": rng.uniform(0.02, 0.25, people),
            "max_loss": rng.uniform(0.2, 1.5, people),
            "strata": Strata(codes=codes, weights=[0.5, -0.3, 0.2]),
        }
        bought = [allocate(np.append(extreme, costs[1:]), **terms) for extreme in (np.inf, 1e300)]
        assert bought[1].objective == pytest.approx(bought[0].objective, rel=1e-11)
        assert bought[1].privacy_loss == pytest.approx(bought[0].privacy_loss, rel=1e-8, abs=1e-11)
        assert 0.0 <= bought[1].gap < 1e-9
