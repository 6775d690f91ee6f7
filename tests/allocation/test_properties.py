"""Laws of the two optima that hold for every population: what makes payments, engines and proofs possible."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hushbid.allocation import Allocation, allocate

SETTINGS = st.sampled_from(["central", "local"])
ROUNDING = 1e-11

logarithms = st.floats(-3, 3, allow_subnormal=False).map(lambda x: float(f"{x:.6g}"))
a_cost = logarithms.map(lambda x: 10**x)
levels = st.sampled_from([0.01, 0.5, 1.0, 1.0001, 2.0, 30.0])  # so that ties are common
costs_of_some = st.lists(st.one_of(a_cost, levels), min_size=1, max_size=12).map(np.array)
distinct_costs = st.lists(a_cost, min_size=1, max_size=12, unique=True).map(np.array)


class Case(NamedTuple):
    """A setting, a variance and an error weight."""

    setting: str
    variance: float
    error_weight: float

    def solve(self, costs: np.ndarray) -> Allocation:
        return allocate(costs, setting=self.setting, variance=self.variance, error_weight=self.error_weight)


cases = st.builds(Case, SETTINGS, st.floats(1e-3, 1.0), st.floats(-2, 4).map(lambda x: 10**x))


def moved(costs: np.ndarray, person: int, cost: float) -> np.ndarray:
    changed = costs.copy()
    changed[person] = cost
    return changed


@given(case=cases, costs=costs_of_some, cost=a_cost, data=st.data())
def test_raising_ones_cost_never_raises_ones_privacy_loss(
    case: Case, costs: np.ndarray, cost: float, data: st.DataObject
) -> None:
    person = data.draw(st.integers(0, costs.size - 1))
    low, high = sorted([float(costs[person]), cost])
    assume(high > low * (1 + 1e-9))
    before = case.solve(moved(costs, person, low)).privacy_loss[person]
    after = case.solve(moved(costs, person, high)).privacy_loss[person]
    assert after <= before * (1 + 1e-7)


@given(case=cases, costs=costs_of_some)
def test_who_costs_less_loses_no_less_privacy(case: Case, costs: np.ndarray) -> None:
    loss = case.solve(costs).privacy_loss[np.argsort(costs, kind="stable")]
    assert (np.diff(loss) <= 1e-9 * loss[0]).all()


@given(case=cases, costs=costs_of_some, data=st.data())
def test_the_privacy_losses_are_a_supergradient_of_the_optimal_value(
    case: Case, costs: np.ndarray, data: st.DataObject
) -> None:
    """An allocation stays feasible when costs change, so its cost there bounds the optimum there, for every move."""
    others = np.array(data.draw(st.lists(a_cost, min_size=costs.size, max_size=costs.size)))
    here, there = case.solve(costs), case.solve(others)
    assert there.objective <= here.objective + (others - costs) @ here.privacy_loss + ROUNDING * here.objective
    assert here.objective <= there.objective + (costs - others) @ there.privacy_loss + ROUNDING * there.objective


@given(case=cases, costs=costs_of_some, factor=st.sampled_from([1e-9, 0.03, 7.0, 1e9]))
def test_the_unit_of_money_does_not_matter(case: Case, costs: np.ndarray, factor: float) -> None:
    here, there = case.solve(costs), case._replace(error_weight=case.error_weight * factor).solve(costs * factor)
    assert there.objective == pytest.approx(factor * here.objective, rel=1e-12)
    assert there.mse == pytest.approx(here.mse, rel=1e-6)
    np.testing.assert_allclose(there.privacy_loss, here.privacy_loss, rtol=1e-6, atol=1e-6 * here.privacy_loss.max())


@given(case=cases, costs=costs_of_some, factor=st.sampled_from([1e-6, 0.04, 25.0, 1e6]))
def test_the_unit_of_data_does_not_matter(case: Case, costs: np.ndarray, factor: float) -> None:
    here, there = case.solve(costs), case._replace(variance=case.variance * factor).solve(costs * factor**1.5)
    assert there.objective == pytest.approx(factor * here.objective, rel=1e-12)
    assert there.mse == pytest.approx(factor * here.mse, rel=1e-6)
    np.testing.assert_allclose(
        there.privacy_loss * factor**0.5, here.privacy_loss, rtol=1e-6, atol=1e-6 * here.privacy_loss.max()
    )


@given(case=cases, costs=distinct_costs, seed=st.integers(0, 2**32 - 1))
def test_off_ties_the_order_of_the_rows_does_not_matter(case: Case, costs: np.ndarray, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(costs.size)
    here, there = case.solve(costs), case.solve(costs[order])
    assert there.objective == here.objective
    np.testing.assert_array_equal(there.privacy_loss, here.privacy_loss[order])
    np.testing.assert_array_equal(there.weights, here.weights[order])


@given(case=cases, costs=costs_of_some)
def test_a_trusted_platform_is_never_dearer(case: Case, costs: np.ndarray) -> None:
    central, local = (case._replace(setting=setting).solve(costs) for setting in ("central", "local"))
    assert central.objective <= local.objective * (1 + ROUNDING)


@given(case=cases, costs=costs_of_some)
def test_weights_sum_to_one_and_follow_from_the_losses(case: Case, costs: np.ndarray) -> None:
    found = case.solve(costs)
    loss = found.privacy_loss
    assert found.weights.sum() == pytest.approx(1, abs=1e-13)
    if case.setting == "central":
        expected, mse = loss / loss.sum(), 2 / loss.sum() ** 2 + case.variance * (found.weights @ found.weights)
    else:
        precision = loss**2 / (case.variance * loss**2 + 2)
        expected, mse = precision / precision.sum(), 1 / precision.sum()
    np.testing.assert_allclose(found.weights, expected, rtol=1e-10, atol=1e-14)
    assert found.mse == pytest.approx(mse, rel=1e-11)
    assert found.objective == pytest.approx(case.error_weight * mse + costs @ loss, rel=1e-12)


@given(costs=costs_of_some, error_weight=st.floats(-2, 4).map(lambda x: 10**x), data=st.data())
def test_the_central_optimum_is_stationary_for_those_who_are_bought_from_and_repels_the_others(
    costs: np.ndarray, error_weight: float, data: st.DataObject
) -> None:
    one = st.floats(1e-3, 1.0)
    variance = np.array(data.draw(st.lists(one, min_size=costs.size, max_size=costs.size)))
    loss = allocate(costs, variance=variance, error_weight=error_weight).privacy_loss
    total, spread = loss.sum(), 2 + variance @ loss**2
    push = 2 * error_weight * spread / total**3
    slope = costs + 2 * error_weight * variance * loss / total**2 - push
    assert (np.abs(slope[loss > 0]) <= 1e-8 * push).all()
    assert (slope >= -1e-8 * push).all()


@given(costs=costs_of_some, variance=st.floats(1e-3, 1.0), error_weight=st.floats(-2, 4).map(lambda x: 10**x))
def test_the_local_optimum_is_stationary_and_on_the_high_branch(
    costs: np.ndarray, variance: float, error_weight: float
) -> None:
    found = allocate(costs, setting="local", variance=variance, error_weight=error_weight)
    bought = found.privacy_loss > 0
    y = found.privacy_loss[bought]
    worth = error_weight * found.mse**2 * 4 * y / (variance * y**2 + 2) ** 2
    np.testing.assert_allclose(worth, costs[bought], rtol=1e-9)
    if found.active >= 2:
        assert (variance * y**2 > 2 / 3).all()


@given(case=cases, costs=costs_of_some, cost=a_cost)
def test_one_more_person_never_makes_it_dearer(case: Case, costs: np.ndarray, cost: float) -> None:
    assert case.solve(np.append(costs, cost)).objective <= case.solve(costs).objective * (1 + ROUNDING)


@given(case=cases, costs=costs_of_some, factor=st.floats(1, 100))
def test_a_dearer_error_means_less_error(case: Case, costs: np.ndarray, factor: float) -> None:
    here, there = case.solve(costs), case._replace(error_weight=case.error_weight * factor).solve(costs)
    assert there.mse <= here.mse * (1 + 1e-9)
    assert there.objective >= here.objective * (1 - ROUNDING)
    assert there.objective <= factor * here.objective * (1 + ROUNDING)


@settings(max_examples=30)
@given(case=cases, seed=st.integers(0, 2**32 - 1), n=st.integers(1, 3000))
@example(case=Case("central", 0.25, 100.0), seed=0, n=3000)
def test_the_laws_hold_in_crowds_too(case: Case, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    costs, others = (np.exp(rng.normal(0, rng.choice([0.01, 1.0, 4.0]), n)) for _ in range(2))
    here, there = case.solve(costs), case.solve(others)
    assert there.objective <= here.objective + (others - costs) @ here.privacy_loss + ROUNDING * here.objective
    assert here.objective <= there.objective + (costs - others) @ there.privacy_loss + ROUNDING * there.objective
    assert here.gap >= 0
    assert here.gap <= 1e-9 or case.setting == "local"
