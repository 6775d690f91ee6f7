"""Caps and strata together, for a price: against a solver that knows nothing of levels, and what the rule promises."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid.allocation import Accuracy, Budget, Price, Strata, allocate, least_objective, pairs_by_frontier, replies
from hushbid.errors import InputError

Case = tuple[np.ndarray, dict[str, Any]]


def cases(count: int, seed: int, people: int = 8) -> list[Case]:
    """Small markets with one to three strata of mixed signs; caps, common or one each, that mostly bind."""
    rng = np.random.default_rng(seed)
    made: list[Case] = []
    for trial in range(count):
        strata = int(rng.integers(1, 4))
        n = int(rng.integers(strata + 1, people + 1))
        codes = np.concatenate([np.arange(strata), rng.integers(0, strata, n - strata)])
        costs = np.exp(rng.normal(size=n) * rng.choice([0.2, 1.0]))
        costs[: trial % 4 == 3] = 0.0
        how: dict[str, Any] = {
            "variance": 0.25 if trial % 2 else rng.uniform(0.02, 0.25, n),
            "goal": Price(10 ** rng.uniform(-1, 3)),
            "strata": Strata(codes=codes, weights=rng.choice([-1.0, 1.0], strata) * rng.uniform(0.2, 2.0, strata)),
        }
        largest = allocate(costs, **how).privacy_loss.max()
        largest = largest if largest < math.inf else 3.0
        how["max_loss"] = largest * (rng.uniform(0.05, 1.0) if trial % 3 else rng.uniform(0.05, 1.5, n))
        made.append((costs, how))
    return made


def least_found(costs: np.ndarray, how: dict[str, Any]) -> float:
    """The best that a general solver finds over losses and noise, from several places."""
    rng = np.random.default_rng(3)
    n, strata, weight = costs.size, how["strata"], how["goal"].buyer_weight
    sizes, caps = np.abs(strata.weights), np.broadcast_to(how["max_loss"], n)
    given = np.bincount(strata.codes, weights=caps)
    most, best = float((given / sizes).min()), math.inf

    def value(x: np.ndarray) -> float:
        return float(weight * (2.0 + np.sum(how["variance"] * x[:-1] ** 2)) / x[-1] ** 2 + costs @ x[:-1])

    shares = {"type": "eq", "fun": lambda x: np.bincount(strata.codes, weights=x[:-1]) - sizes * x[-1]}
    for noise in most * np.array([0.1, 0.4, 0.9]) * rng.uniform(0.5, 1.1, 3):
        start = np.append(caps * (noise * sizes / given)[strata.codes], noise)
        limits = [*((0.0, cap) for cap in caps), (1e-9, most)]
        found = minimize(value, start, method="SLSQP", bounds=limits, constraints=[shares], options={"ftol": 1e-15})
        if np.abs(shares["fun"](found.x)).max() < 1e-10 * found.x[-1]:  # type: ignore[operator]
            best = min(best, found.fun)
    return best


def test_no_general_solver_finds_anything_better() -> None:
    reached = 0
    for costs, how in cases(12, seed=0):
        ours = allocate(costs, **how)
        found = least_found(costs, how)
        assert found >= ours.objective * (1.0 - 1e-9)
        reached += found <= ours.objective * (1.0 + 1e-7)
    assert reached >= 10, "the other solver must come close often enough to be a judge"


def test_an_allocation_keeps_its_caps_and_is_what_it_says() -> None:
    bound = 0
    for costs, how in cases(12, seed=1, people=30):
        found, strata = allocate(costs, **how), how["strata"]
        strength = found.privacy_loss.sum() / np.abs(strata.weights).sum()
        assert (found.privacy_loss <= how["max_loss"]).all()
        assert found.privacy_loss == pytest.approx(strength * np.abs(found.weights), rel=1e-12)
        for g, weight in enumerate(strata.weights):
            assert found.weights[strata.codes == g].sum() == pytest.approx(weight, rel=1e-12)
        mse = 2.0 / strength**2 + np.sum(how["variance"] * found.weights**2)
        assert found.mse == pytest.approx(mse, rel=1e-12)
        expense = costs @ found.privacy_loss
        assert found.objective == pytest.approx(how["goal"].buyer_weight * mse + expense, rel=1e-12)
        assert 0.0 <= found.gap < 1e-9
        assert least_objective(costs, setting="central", **how) == found.lower_bound
        bound += bool((found.privacy_loss == how["max_loss"]).any())
    assert bound > 6


def test_a_stratum_whose_caps_are_used_up_says_how_much_the_others_give() -> None:
    costs, strata = np.array([1.0, 2.0, 1.0, 1.5, 2.0, 9.0]), Strata(codes=[0, 0, 1, 1, 1, 1], weights=[1.0, -1.0])
    caps = np.array([0.1, 0.2, 5.0, 5.0, 5.0, 5.0])
    found = allocate(costs, goal=Price(1e3), max_loss=caps, strata=strata)
    assert found.privacy_loss[:2] == pytest.approx(caps[:2], rel=1e-13)
    assert found.privacy_loss[2:].sum() == pytest.approx(0.3, rel=1e-13)
    # what the others of her stratum ask decides nothing while nobody there has more to give
    rule = replies(costs, setting="central", goal=Price(1e3), max_loss=caps, strata=strata)
    assert rule.at(np.array([0, 0]), np.array([2.0, 20.0])).loss == pytest.approx(caps[0], rel=1e-12)


def test_replies_are_what_solving_again_gives_and_fall_with_ones_cost() -> None:
    for costs, how in cases(4, seed=5, people=6):
        rule = replies(costs, setting="central", **how)
        for row in range(costs.size):
            tried = np.array(
                [0.0, 0.5 * costs[row], costs[row], 1.1 * costs[row] + 0.01, 9.0 * costs[row] + 1.0, np.inf]
            )
            found = rule.at(np.full(tried.size, row), tried)
            now, then = rule.at(np.array([row]), costs[[row]]).value[0], allocate(costs, **how).objective
            assert (np.diff(found.loss) <= 1e-9 * (found.loss[1:] + 1e-3)).all()
            for j, cost in enumerate(tried):
                moved = costs.copy()
                moved[row] = cost
                if (how["strata"].codes[moved < np.inf] == how["strata"].codes[row]).any():
                    again = allocate(moved, **how)
                    rise = again.objective - then
                    assert found.value[j] - now == pytest.approx(rise, rel=1e-9, abs=1e-11 * then)
                    assert found.mse[j] == pytest.approx(again.mse, rel=1e-5)
                    if again.privacy_loss[row] < math.inf:
                        size = again.privacy_loss[again.privacy_loss < math.inf].max()
                        assert found.loss[j] == pytest.approx(again.privacy_loss[row], abs=1e-5 * size)
                else:  # she was all of her stratum
                    assert (found.value[j], found.loss[j]) == (np.inf, 0.0)


@pytest.mark.parametrize("each", [False, True])
def test_replies_of_many_people_need_no_search(each: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    n = 400
    costs = rng.uniform(1.0, 3.0, n)
    caps: Any = rng.uniform(0.01, 0.2, n) if each else 0.05
    how: dict[str, Any] = {
        "goal": Price(float(n)),
        "max_loss": caps,
        "strata": Strata(codes=np.arange(n) % 4, weights=[0.4, 0.3, 0.2, 0.1]),
    }
    monkeypatch.setattr(pairs_by_frontier, "search", None)
    rule, found = replies(costs, setting="central", **how), allocate(costs, **how)
    bought = np.flatnonzero(found.privacy_loss)
    assert rule.at(bought, costs[bought]).loss == pytest.approx(found.privacy_loss[bought], rel=1e-9)
    some = bought[::40]
    away = rule.at(some, 1.5 * costs[some])
    for j, row in enumerate(some.tolist()):
        moved = costs.copy()
        moved[row] *= 1.5
        again = allocate(moved, **how)
        assert away.value[j] == pytest.approx(again.objective - found.objective, rel=1e-9, abs=1e-12)
        assert away.loss[j] == pytest.approx(again.privacy_loss[row], rel=1e-9, abs=1e-12)


def test_no_misreport_of_price_and_limit_pays() -> None:
    """Paid her price and the area under her loss up to 4, with more than her limit unacceptable to her."""
    highest, prices = 4.0, np.array([0.3, 0.8, 1.3, 2.0, 3.0])
    gained = -math.inf
    for costs, how in cases(5, seed=8, people=6):
        costs = np.clip(costs, 0.1, highest)
        caps = np.broadcast_to(how["max_loss"], costs.shape).copy()
        limits = caps[0] * np.array([0.3, 0.7, 1.0, 1.5, 4.0])
        if np.count_nonzero(how["strata"].codes == 0) == 1:
            continue
        losses, paid = {}, {}
        for limit in limits:
            rule = replies(costs, setting="central", **{**how, "max_loss": np.append(limit, caps[1:])})
            found = rule.at(np.zeros(prices.size + 1, dtype=int), np.append(prices, highest))
            losses[limit] = found.loss[:-1]
            paid[limit] = prices * found.loss[:-1] + (found.value[-1] - found.value[:-1])
        for limit in limits:
            for i, price in enumerate(prices):
                honest = paid[limit][i] - price * losses[limit][i]
                for other in limits:
                    gains = paid[other] - price * losses[other] - honest
                    acceptable = losses[other] <= limit * (1.0 + 1e-12)
                    gained = max(gained, float(gains[acceptable].max(initial=-math.inf)) / (honest + 1.0))
    assert -1e-12 < gained < 1e-9


def test_somebody_far_below_or_above_everybody_stops_nothing() -> None:
    costs, strata = np.array([1e6, 2e6, 1.0, 2.0, 3.0, 1e30]), Strata(codes=[0, 0, 1, 1, 1, 1], weights=[1.0, 2.0])
    how: dict[str, Any] = {"goal": Price(1e9), "max_loss": 0.5, "strata": strata}
    rule = replies(costs, setting="central", **how)
    found = rule.at(np.zeros(3, dtype=int), np.array([1e-15, 1e3, 1e40]))
    assert np.isfinite(found.value).all()
    assert (np.diff(found.loss) <= 0.0).all()
    again, now = allocate(np.append(1e-15, costs[1:]), **how), allocate(costs, **how)
    rise = again.objective - now.objective
    assert (found.value[0], found.loss[0]) == pytest.approx((rise, again.privacy_loss[0]), rel=1e-9)


def frontier_of(costs: np.ndarray, how: dict[str, Any]) -> tuple[float, float]:
    """Error and expense of the purchase for a price."""
    found = allocate(costs, **how)
    return found.mse, float(costs @ np.where(costs > 0.0, found.privacy_loss, 0.0))


def test_an_accuracy_and_a_budget_lead_back_to_the_purchase_for_a_price() -> None:
    """Every purchase for a price is the cheapest with its error, and the most accurate with its expense."""
    for costs, how in cases(12, seed=9, people=20):
        mse, expense = frontier_of(costs, how)
        if not (0.0 < expense < math.inf):
            continue
        accuracy = allocate(costs, **{**how, "goal": Accuracy(math.sqrt(mse) * (1.0 + 1e-9))})
        budget = allocate(costs, **{**how, "goal": Budget(expense * (1.0 - 1e-9))})
        assert accuracy.objective == pytest.approx(expense, rel=1e-5)
        assert budget.mse == pytest.approx(mse, rel=1e-5)
        assert 0.0 <= accuracy.gap < 1e-9
        assert 0.0 <= budget.gap < 1e-9


def test_a_budget_rule_with_strata_and_caps_is_refused_because_it_is_not_monotone() -> None:
    """The counterexample: raising the first person's cost by two per cent raises their loss by half."""
    costs = np.array([1.0, 1.03413, 0.000250, 0.017913])
    how: dict[str, Any] = {
        "variance": np.array([0.25, 0.38236, 0.11634, 182.76]),
        "goal": Budget(0.121884),
        "strata": Strata(codes=[0, 0, 1, 1], weights=[1.0, 5.4393]),
        "max_loss": np.array([math.inf, math.inf, 0.63476, math.inf]),
    }
    losses = [allocate(np.append(own, costs[1:]), **how).privacy_loss[0] for own in (1.0, 1.02)]
    assert losses == pytest.approx([0.0765, 0.1191], abs=5e-4)
    with pytest.raises(InputError, match="with strata and a Budget max_loss must be infinite"):
        replies(costs, setting="central", **how)
