"""Every mistake in the paper that a number can show, shown by that number.

One test per erratum, numbered as in docs/reference/errata.md; a test passes because the printed statement fails.
[F] = Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, arXiv 2201.03968. Its example, used throughout: two users, bids
uniform on [1, 2] (virtual cost 2c - 1), variance 1/4, error weight n + 1 = 3.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from experiments.paper_figures.algorithm_1 import (
    algorithm_1,
    algorithm_1_as_printed,
    algorithm_1_with_printed_argmax,
    algorithm_1_with_printed_sums,
)
from experiments.paper_figures.algorithm_2 import (
    algorithm_2,
    algorithm_2_as_printed,
    algorithm_2_with_free_multiplier,
    multiplier_limits,
    printed_multiplier_limits,
    stationary_losses,
)
from experiments.paper_figures.mesh_payments import mesh_payments, mesh_sum, printed_mesh_sum
from experiments.paper_figures.problem import score
from hushbid.allocation import allocate
from hushbid.errors import MarketError, NobodyToBuyFrom

VARIANCE = 0.25
EXAMPLE = np.linspace(1.0, 2.0, 11)


def virtual(*bids: float) -> np.ndarray:
    """Virtual costs of bids that are uniform on [1, 2]."""
    return 2 * np.array(bids) - 1


def central(virtual_costs, variance=VARIANCE, error_weight=None):
    return allocate(virtual_costs, setting="central", variance=variance, error_weight=error_weight)


def local(virtual_costs, variance=VARIANCE, error_weight=None):
    return allocate(virtual_costs, setting="local", variance=variance, error_weight=error_weight)


class UniformBids:
    """Bids uniform on [1, 2]."""

    support = (1.0, 2.0)

    def quantile(self, q: float) -> float:
        return 1 + q

    def virtual_cost(self, c: np.ndarray) -> np.ndarray:
        return 2 * c - 1


def test_every_erratum_is_on_its_page_with_the_tests_that_show_it():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "errata.md").read_text(encoding="utf-8")
    assert sorted(int(number) for number in re.findall(r"^\*\*(\d+)\. ", page, flags=re.MULTILINE)) == [*range(1, 24)]
    here = {name for name in globals() if name.startswith("test_erratum_")}
    assert set(re.findall(r"`(test_erratum_\w+)`", page)) == here
    assert {int(name.split("_")[2]) for name in here} == {*range(1, 24)}


# Algorithms


def test_erratum_01_without_its_variance_factor_algorithm_1_buys_from_nobody():
    for c1, c2 in [(1, 1), (1, 1.25), (1, 2)]:
        printed = algorithm_1_with_printed_sums(virtual(c1, c2), variance=VARIANCE)
        assert printed.objective == np.inf
        assert printed.privacy_loss.tolist() == [0, 0]
        corrected = algorithm_1(virtual(c1, c2), variance=VARIANCE)
        assert corrected.objective == pytest.approx(central(virtual(c1, c2)).objective, rel=1e-12)


def test_erratum_02_argmax_chooses_the_worst_number_of_people():
    costs = virtual(1, 2)
    best = central(costs).objective
    assert algorithm_1_with_printed_argmax(costs, variance=VARIANCE).objective / best == pytest.approx(2.908, abs=1e-3)
    assert algorithm_1_as_printed(costs, variance=VARIANCE).objective / best == pytest.approx(99.79, abs=1e-2)


def test_erratum_03_a_multiplier_that_is_free_runs_to_the_end_of_the_grid():
    own_example = algorithm_2_with_free_multiplier(virtual(1, 1), variance=VARIANCE)
    assert own_example.objective / local(virtual(1, 1)).objective == pytest.approx(1.14, abs=0.005)
    six = np.full(6, 0.001)
    free = algorithm_2_with_free_multiplier(six, variance=VARIANCE)
    assert free.objective / local(six).objective == pytest.approx(3.1, abs=0.05)
    merge = np.sqrt(2 / (3 * VARIANCE))  # where the two roots of everybody meet: the largest multiplier there is
    np.testing.assert_allclose(free.privacy_loss, merge, rtol=0.02)
    fair = algorithm_2(six, variance=VARIANCE)
    assert fair.objective / local(six).objective == pytest.approx(1, abs=1e-7)


def test_erratum_04_the_printed_low_branch_charges_nothing_for_the_person_it_adds():
    # With i = 1 the printed branch is (n+1)/lambda alone, so it always wins and the loss is always the low root.
    printed = algorithm_2_as_printed([0.5], variance=VARIANCE)
    merge = np.sqrt(2 / (3 * VARIANCE))
    assert printed.privacy_loss[0] == pytest.approx(0.769, abs=1e-3)
    assert local([0.5]).privacy_loss[0] == pytest.approx(2.520, abs=1e-3)
    assert printed.privacy_loss[0] < merge < local([0.5]).privacy_loss[0]
    assert printed.objective / local([0.5]).objective == pytest.approx(3.20, abs=0.01)


def test_erratum_04_with_two_or_more_people_nobody_is_ever_at_her_low_root():
    rng = np.random.default_rng(4)
    several = 0
    for _ in range(300):
        n, variance = int(rng.integers(2, 9)), rng.uniform(0.01, 0.25)
        costs, error_weight = 10 ** rng.uniform(-2, 0, n) * 0.02, 10 ** rng.uniform(-1, 3)
        ours = local(costs, variance, error_weight)
        if ours.active < 2:
            continue
        several += 1
        assert ours.privacy_loss[ours.privacy_loss > 0].min() >= np.sqrt(2 / (3 * variance)) * (1 - 1e-9)
    assert several > 100


def test_erratum_05_the_printed_upper_limit_is_a_loss_and_leaves_the_grid_empty():
    six = np.full(6, 0.001)
    printed = printed_multiplier_limits(six, variance=VARIANCE)
    np.testing.assert_allclose(printed.upper, np.sqrt(8 / 3))
    assert printed.upper.max() == pytest.approx(1.633, abs=1e-3)
    assert printed.lower == pytest.approx(20.87, abs=1e-2)
    assert 1 / local(six).mse == pytest.approx(21.93, abs=1e-2)
    with pytest.raises(MarketError, match="empty"):
        algorithm_2_as_printed(six, variance=VARIANCE)


def test_erratum_06_the_optimal_multiplier_can_lie_below_the_limit_of_claim_2():
    costs = [0.00227, 0.02723]
    multiplier = 1 / local(costs, variance=0.1).mse
    assert multiplier == pytest.approx(9.3817, abs=1e-4)
    assert printed_multiplier_limits(costs, variance=0.1).lower == pytest.approx(10.4277, abs=1e-4)
    assert multiplier_limits(costs, variance=0.1).lower == pytest.approx(7.3130, abs=1e-4)


def test_erratum_06_equal_losses_are_cheapest_at_the_cube_root_with_a_4():
    n, total_cost = 2, 0.0295

    def cost(loss):
        return (n + 1) / n * (0.1 + 2 / loss**2) + total_cost * loss

    with_4, with_2 = (np.cbrt(factor * (n + 1) / (n * total_cost)) for factor in (4, 2))
    nearby = np.linspace(0.5 * with_4, 2 * with_4, 100_001)
    assert cost(with_4) <= cost(nearby).min()
    assert cost(with_2) / cost(with_4) == pytest.approx(1.0370, abs=1e-4)


def test_erratum_07_raising_ones_bid_can_raise_ones_loss_under_a_grid_search():
    own = np.linspace(0.75, 3.0, 400)
    others = [1.5]
    grid_loss = [algorithm_2([z, *others], variance=VARIANCE, points=50).privacy_loss[0] for z in own]
    exact_loss = [local([z, *others]).privacy_loss[0] for z in own]
    assert np.diff(grid_loss).max() == pytest.approx(0.0065, abs=1e-4)
    assert np.mean(np.diff(grid_loss) > 0) > 0.3
    assert np.diff(exact_loss).max() <= 0


def test_erratum_08_with_equal_costs_the_optimum_may_idle_one_of_the_equals():
    ours = local(virtual(1, 1))
    assert sorted(ours.privacy_loss > 0) == [False, True]
    assert ours.objective == pytest.approx(4.1841, abs=1e-4)
    # [F] lets tied people take one of their two roots each, never zero.
    grid = np.linspace(0.3, 1.66, 20_001)
    roots = stationary_losses(grid**2 / 3, variance=VARIANCE)
    best = min(
        score(np.array(pair), name="tied", setting="local", virtual_costs=[1, 1], variance=VARIANCE).objective
        for pairs in (
            zip(roots.low, roots.low, strict=True),
            zip(roots.low, roots.high, strict=True),
            zip(roots.high, roots.high, strict=True),
        )
        for pair in pairs
    )
    assert best == pytest.approx(4.7018, abs=1e-4)
    assert best / ours.objective == pytest.approx(1.124, abs=1e-3)


# Claims


def test_erratum_09_the_optimal_loss_jumps_in_the_central_setting():
    below, above = (central([cost, 0.01]).privacy_loss[0] for cost in (0.1612635, 0.1612637))
    assert below == pytest.approx(0.9128, abs=1e-4)
    assert above == 0
    objectives = [central([cost, 0.01]).objective for cost in (0.1612635, 0.1612637)]
    assert objectives[0] == pytest.approx(objectives[1], abs=1e-6)  # the cost is continuous; the decision is not


def test_erratum_09_the_optimal_loss_jumps_in_the_local_setting():
    assert local(virtual(1.2 - 1e-9, 1.2)).privacy_loss[0] == pytest.approx(2.0465, abs=1e-4)
    assert local(virtual(1.2 + 1e-9, 1.2)).privacy_loss[0] == 0


def test_erratum_10_the_central_error_is_the_smaller_one_on_the_papers_example():
    differences = [local(virtual(a, b)).mse - central(virtual(a, b)).mse for a in EXAMPLE for b in EXAMPLE]
    assert min(differences) >= -1e-12
    assert max(differences) == pytest.approx(0.125, abs=1e-9)


def test_erratum_11_for_equal_bids_the_two_errors_are_far_apart():
    assert central(virtual(1, 1)).mse == pytest.approx(0.5066, abs=5e-5)
    assert local(virtual(1, 1)).mse == pytest.approx(0.6316, abs=5e-5)
    for c in EXAMPLE:  # along the whole diagonal they differ by half the variance, the most there is
        assert local(virtual(c, c)).mse - central(virtual(c, c)).mse == pytest.approx(VARIANCE / 2, abs=1e-9)


def test_erratum_12_central_drops_the_expensive_user_far_below_the_printed_threshold():
    n, cost = 10, 1.0
    scale = np.cbrt(2 * cost * (n + 1) ** 2) / (n - 1)
    exact, printed = VARIANCE * scale, scale / VARIANCE
    assert (exact, printed) == (pytest.approx(0.1731, abs=1e-4), pytest.approx(2.7696, abs=1e-4))
    assert central([cost] * (n - 1) + [cost + 0.999 * exact]).privacy_loss[-1] > 0
    assert central([cost] * (n - 1) + [cost + 1.001 * exact]).privacy_loss[-1] == 0


def test_erratum_12_local_drops_her_earlier_for_a_smaller_variance_not_later():
    n, cost = 10, 0.01

    def threshold(variance):
        low, high = 0.0, 10 * cost
        for _ in range(50):
            middle = (low + high) / 2
            kept = local([cost] * (n - 1) + [cost + middle], variance).privacy_loss[-1] > 0
            low, high = (middle, high) if kept else (low, middle)
        return low

    def printed_shape(variance):
        first = cost ** (1 / 3) / (n ** (2 / 3) * variance)
        return first + cost / n + cost ** (-1 / 3) / (n ** (4 / 3) * variance**2)

    assert threshold(0.25) / threshold(1.0) == pytest.approx(0.0802, abs=1e-4)
    assert printed_shape(0.25) / printed_shape(1.0) == pytest.approx(13.82, abs=1e-2)


@pytest.mark.parametrize(("allocation", "printed_ratio"), [(central, 0.6295), (local, 0.5469)])
def test_erratum_12_unit_variance_needs_costs_times_the_variance_to_minus_three_halves(allocation, printed_ratio):
    costs = np.array([0.01, 0.012, 0.02])
    objective = allocation(costs, VARIANCE).objective
    assert VARIANCE * allocation(costs * VARIANCE**-1.5, 1.0, 4).objective == pytest.approx(objective, rel=1e-12)
    printed = VARIANCE * allocation(costs * VARIANCE**1.5, 1.0, 4).objective
    assert printed / objective == pytest.approx(printed_ratio, abs=1e-4)


@pytest.mark.parametrize(("n", "change"), [(2, -1.0), (10, -0.3519), (30, 3.6757)])
def test_erratum_13_payments_and_the_platforms_cost_move_together_under_the_other_benchmark(n, change):
    """Everybody's payment changes by V less the error without her; the platform's cost by their sum, nothing else.

    [F] says the payments rise and the cost falls. For 2 and 10 people both fall, for 30 both rise.
    """
    costs = virtual(*np.linspace(1, 2, n)) if n > 2 else virtual(1, 1)
    without = [central(np.delete(costs, row), error_weight=n).mse for row in range(n)]
    payment_changes = VARIANCE - np.array(without)
    assert payment_changes.sum() == pytest.approx(change, abs=1e-4)
    assert np.all(np.sign(payment_changes) == np.sign(change))


def test_erratum_14_a_user_whose_data_are_not_used_pays_for_the_estimate():
    bids = np.linspace(1, 2, 30)
    mesh = mesh_payments(bids, prior=UniformBids(), rule=central, variance=VARIANCE, accuracy=0.1, rows=[29])
    assert mesh.payments[0] == pytest.approx(-0.1256, abs=1e-4)


# Proofs


def test_erratum_15_the_local_upper_bound_fails_with_the_variance_a_laplace_variable_has():
    """Weights in proportion to the squared losses, all losses 1: [F] bounds the error by 2 / n, but it is 2.25 / n."""
    for n in (1, 10, 1000):
        losses = np.ones(n)
        weights = losses**2 / np.sum(losses**2)
        error = np.sum(weights**2 * (VARIANCE + 2 / losses**2))
        assert error * n == pytest.approx(2.25)
        assert error > 2 / np.sum(losses**2)
        assert error <= 3 / np.sum(losses**2)  # the constant the proof gives once the variance is right


def test_erratum_15_a_laplace_variable_of_scale_one_has_variance_two():
    noise = np.linspace(-60, 60, 2_400_001)
    density = np.exp(-np.abs(noise)) / 2
    assert np.trapezoid(noise**2 * density, noise) == pytest.approx(2, abs=1e-6)


def test_erratum_16_expected_payments_need_the_density_under_the_distribution_function():
    """A loss of 1 whatever the bid, uniform on [1, 2]: the expected payment for it is E[c + (2 - c)] = 2."""
    c = np.linspace(1, 2, 1_000_001)
    paid = np.trapezoid(c + (2 - c), c)
    assert paid == pytest.approx(2)
    assert np.trapezoid(c + (c - 1) / 1, c) == pytest.approx(paid)  # F / f, f = 1
    assert np.trapezoid(c + (c - 1) / c, c) == pytest.approx(1.8069, abs=1e-4)  # F / z, as printed


def test_erratum_16_the_error_divides_by_the_squared_sum_not_by_the_squared_sum_of_squares():
    ours = central(virtual(1, 1))
    losses = ours.privacy_loss
    numerator = 2 + VARIANCE * np.sum(losses**2)
    assert numerator / losses.sum() ** 2 == pytest.approx(ours.mse)
    assert numerator / np.sum(losses**2) ** 2 == pytest.approx(0.3866, abs=1e-4)


def test_erratum_17_the_printed_incentive_condition_for_understating_is_false():
    """Truth is best iff loss(c') (c - c') >= integral of loss from c' to c, for c' above and below c alike.

    [F] prints that for c' >= c, and the reverse with reversed limits for c' <= c, where a positive number would have to
    be at most a negative one. The loss here is 1 / (1 + z).
    """

    def integral(start, end):
        return np.log1p(end) - np.log1p(start)

    for truth, bid in [(1.0, 2.0), (2.0, 1.0)]:
        assert (truth - bid) / (1 + bid) >= integral(bid, truth)
    printed_left, printed_right = (2.0 - 1.0) / (1 + 1.0), integral(2.0, 1.0)
    assert printed_left == pytest.approx(0.5)
    assert printed_right == pytest.approx(-0.4055, abs=1e-4)
    assert not printed_left <= printed_right


def test_erratum_18_the_multiplier_falls_as_the_total_loss_rises():
    """sum (lam - psi)+ = 2 (n+1) V / S, so lam comes down from infinity to the smallest cost as S rises from 0."""
    costs = virtual(1, 1.25)
    candidates = np.linspace(1, 100, 990_001)
    supply = np.maximum(candidates[:, None] - costs, 0).sum(axis=1)
    multipliers = [np.interp(2 * 3 * VARIANCE / total, supply, candidates) for total in (0.01, 0.1, 1, 2, 10)]
    np.testing.assert_allclose(multipliers, [76.25, 8.75, 2.0, 1.625, 1.15], atol=1e-3)


def test_erratum_18_the_printed_range_of_pieces_leaves_out_the_first():
    """[F] minimises over i* in 2..n+1 with i* people active; at c = (1, 2) the optimum has one."""
    costs = virtual(1, 2)
    assert central(costs).active == 1
    multipliers = np.linspace(costs[1], 50, 100_001)  # two active: the multiplier is at least the second cost
    inverse_total = (multipliers[:, None] - costs).sum(axis=1) / (2 * 3 * VARIANCE)
    losses = (multipliers[:, None] - costs) / (2 * 3 * VARIANCE * inverse_total[:, None] ** 2)
    error = (2 + VARIANCE * np.sum(losses**2, axis=1)) * inverse_total**2
    best = np.min(3 * error + losses @ costs)
    assert best / central(costs).objective == pytest.approx(2.908, abs=1e-3)


def test_erratum_19_the_printed_mesh_sum_leaves_its_own_enclosure():
    nodes = np.linspace(1, 2, 11)
    losses = np.array([central(virtual(z, 1.9)).privacy_loss[0] for z in nodes])
    lower, upper = mesh_sum(nodes, losses), float(np.sum(np.diff(nodes) * losses[:-1]))
    exact = (central(virtual(2, 1.9)).objective - central(virtual(1, 1.9)).objective) / 2
    assert (lower, exact, upper) == pytest.approx((1.4965, 1.5787, 1.6623), abs=1e-4)
    assert printed_mesh_sum(nodes, losses) == pytest.approx(1.4333, abs=1e-4)  # below the lower sum
    constant = np.ones(11)  # a loss that never moves: any mesh is exact, the printed sum is a tenth short
    assert mesh_sum(nodes, constant) == pytest.approx(1.0)
    assert printed_mesh_sum(nodes, constant) == pytest.approx(0.9)


def test_erratum_20_no_linear_estimator_with_weights_that_sum_to_one_does_as_well_as_zero():
    """The constant 0 errs by 1/4 at most, its weights sum to 0; at a loss of 0.1 weights that sum to 1 err by 200."""
    one = score(np.array([0.1]), name="linear", setting="central", virtual_costs=[1.0], variance=VARIANCE)
    assert one.weights.sum() == 1
    assert one.mse == pytest.approx(200.25)


def test_erratum_21_the_cost_of_a_sole_user_has_no_upper_bound():
    objectives = [central([cost]).objective for cost in (1e3, 1e6, 1e9)]
    np.testing.assert_allclose(np.diff(np.log10(np.array(objectives) - 2 * VARIANCE)), 2)  # it grows like cost ** (2/3)
    bounded = [central([cost, 1.0]).objective for cost in (1e3, 1e6, 1e9)]
    np.testing.assert_allclose(bounded, central([np.inf, 1.0]).objective)
    with pytest.raises(NobodyToBuyFrom):
        central([np.inf])


def test_erratum_22_a_swap_must_weigh_each_person_by_her_own_virtual_cost():
    """One prior uniform on [1, 2], the other on [0, 4]: 2c - 1 and 2c. The printed difference has the wrong sign."""
    first, second = 2 * 1.5 - 1, 2 * 1.2
    assert first < second
    ours = central([first, second])
    gap = ours.privacy_loss[1] - ours.privacy_loss[0]
    assert gap < 0
    assert (first - second) * gap >= 0
    printed_second = 2 * 1.2 - 1
    assert (first - printed_second) * gap < 0


def test_erratum_22_the_bound_labelled_lower_is_the_upper_one():
    n, cost = 10, 0.01
    loss = local([cost] * (n - 1) + [0.0101], variance=1.0).privacy_loss[0]
    labelled_lower, labelled_upper = (np.cbrt(4 * (n + 1) / (cost * m**2)) for m in (n - 1, n))
    assert (labelled_lower, labelled_upper) == (pytest.approx(3.7872, abs=1e-4), pytest.approx(3.5303, abs=1e-4))
    assert labelled_upper <= loss <= labelled_lower


def test_erratum_23_the_step_of_algorithm_2_divides_by_an_infinite_lipschitz_constant():
    """Towards the multiplier where the roots merge, their slope grows like the inverse root of the distance."""
    largest = multiplier_limits(virtual(1, 1), variance=VARIANCE).upper[0]
    slopes = []
    for distance in (1e-4, 1e-6, 1e-8):
        near, nearer = (
            stationary_losses((largest * (1 - d)) ** 2 / 3, variance=VARIANCE).high for d in (distance, distance / 2)
        )
        slopes.append((near - nearer) / (largest * distance / 2))
    np.testing.assert_allclose(np.array(slopes[1:]) / slopes[:-1], 10, rtol=0.01)
