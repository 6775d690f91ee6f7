"""The paper's algorithms, transcribed and corrected: they work, and ours is never worse."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    stationary_losses,
)
from experiments.paper_figures.mesh_payments import mesh_payments
from experiments.paper_figures.problem import PaperAllocation
from hushbid.allocation import allocate
from hushbid.errors import InputError, MarketError, NobodyToBuyFrom
from tests.extent import each

Baseline = Callable[..., PaperAllocation]
CENTRAL_BASELINES = [
    algorithm_1,
    algorithm_1_with_printed_sums,
    algorithm_1_with_printed_argmax,
    algorithm_1_as_printed,
]
LOCAL_BASELINES = [algorithm_2, algorithm_2_with_free_multiplier, algorithm_2_as_printed]
ROUNDING = 1e-9

costs = st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=7)
variances = st.floats(1e-3, 0.25)
error_weights = st.none() | st.floats(1e-2, 1e4)


def random_instance(rng: np.random.Generator, n: int) -> tuple[np.ndarray, float, float]:
    """Costs over two orders of magnitude, a variance and an error weight."""
    return 10 ** rng.uniform(-2, 0, n) * 10 ** rng.uniform(-3, 3), rng.uniform(0.01, 0.25), 10 ** rng.uniform(-1, 3)


# Algorithm 1


@pytest.mark.parametrize("baseline", CENTRAL_BASELINES, ids=lambda baseline: baseline.__name__)
@given(costs, variances, error_weights)
def test_no_version_of_algorithm_1_is_better_than_our_central_allocation(
    baseline, virtual_costs, variance, error_weight
):
    ours = allocate(virtual_costs, setting="central", variance=variance, error_weight=error_weight)
    theirs = baseline(virtual_costs, variance=variance, error_weight=error_weight)
    assert ours.objective <= theirs.objective * (1 + ROUNDING)


@each("n", [1, 2, 3, 10, 60])
def test_algorithm_1_as_corrected_is_optimal_and_gives_everybody_our_privacy_loss(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        virtual_costs, variance, error_weight = random_instance(rng, n)
        ours = allocate(virtual_costs, setting="central", variance=variance, error_weight=error_weight)
        theirs = algorithm_1(virtual_costs, variance=variance, error_weight=error_weight)
        assert theirs.objective == pytest.approx(ours.objective, rel=1e-12)
        np.testing.assert_allclose(theirs.privacy_loss, ours.privacy_loss, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(theirs.weights, ours.weights, rtol=1e-6, atol=1e-8)


def test_algorithm_1_says_so_when_its_uncentred_sums_lose_everything():
    with pytest.raises(MarketError, match="lost in rounding"):
        algorithm_1([1e30, 1e30], variance=0.25)
    assert allocate([1e30, 1e30], setting="central", variance=0.25).active == 2


# Algorithm 2


@pytest.mark.parametrize("baseline", LOCAL_BASELINES, ids=lambda baseline: baseline.__name__)
@settings(max_examples=60)
@given(costs, variances, error_weights)
def test_no_version_of_algorithm_2_is_better_than_our_local_allocation(baseline, virtual_costs, variance, error_weight):
    ours = allocate(virtual_costs, setting="local", variance=variance, error_weight=error_weight)
    try:
        theirs = baseline(virtual_costs, variance=variance, error_weight=error_weight, points=200)
    except MarketError:
        assert baseline is algorithm_2_as_printed  # only the printed grid can be empty
        return
    assert ours.objective <= theirs.objective * (1 + ROUNDING)


def test_algorithm_2_with_the_true_objective_approaches_our_local_optimum_as_its_grid_grows_finer():
    rng = np.random.default_rng(2)
    for _ in range(20):
        virtual_costs, variance, error_weight = random_instance(rng, int(rng.integers(1, 7)))
        ours = allocate(virtual_costs, setting="local", variance=variance, error_weight=error_weight)
        excess = [
            algorithm_2(virtual_costs, variance=variance, error_weight=error_weight, points=points).objective
            / ours.objective
            - 1
            for points in (500, 50_000)
        ]
        assert excess[1] < 1e-6
        assert excess[1] <= excess[0] + ROUNDING


@given(st.floats(1e-12, 1e6), variances)
def test_both_stationary_losses_solve_their_equation_and_lie_on_either_side_of_its_peak(level, variance):
    roots = stationary_losses(level, variance=variance)
    peak_at = np.sqrt(2 / (3 * variance))
    peak = 4 * peak_at / (variance * peak_at**2 + 2) ** 2
    if level > peak * (1 + 1e-9):
        assert np.isnan(roots.low)
        assert np.isnan(roots.high)
        return
    if level < peak * (1 - 1e-9):
        assert roots.low < peak_at < roots.high
        for root in (roots.low, roots.high):
            assert 4 * root / (variance * root**2 + 2) ** 2 == pytest.approx(level, rel=1e-9)


@given(costs, variances, error_weights)
def test_the_repaired_limits_contain_the_optimal_multiplier(virtual_costs, variance, error_weight):
    ours = allocate(virtual_costs, setting="local", variance=variance, error_weight=error_weight)
    limits = multiplier_limits(virtual_costs, variance=variance, error_weight=error_weight)
    multiplier = 1 / ours.mse
    assert limits.lower <= multiplier * (1 + ROUNDING)
    assert multiplier <= limits.upper[ours.active - 1] * (1 + ROUNDING)


# What all baselines share


@pytest.mark.parametrize("baseline", [algorithm_1, algorithm_2], ids=lambda baseline: baseline.__name__)
def test_a_baseline_answers_in_the_order_of_its_input_and_its_weights_sum_to_one(baseline):
    virtual_costs = np.array([0.03, 0.01, 0.02, np.inf])
    shuffled = np.array([3, 2, 0, 1])
    straight = baseline(virtual_costs, variance=0.25)
    permuted = baseline(virtual_costs[shuffled], variance=0.25)
    np.testing.assert_array_equal(permuted.privacy_loss, straight.privacy_loss[shuffled])
    assert straight.privacy_loss[3] == 0
    assert straight.weights.sum() == pytest.approx(1)


@each("baseline", [algorithm_1, algorithm_2])
@each(
    ("virtual_costs", "options", "message"),
    [
        ([], {}, r"non-empty vector, got an array of shape \(0,\)"),
        ([[1.0]], {}, r"non-empty vector, got an array of shape \(1, 1\)"),
        ([1.0, 0.0], {}, "row 1"),
        ([1.0, 2.0, float("nan")], {}, "row 2"),
        ([1.0], {"variance": 0.0}, r"variance=0\.0"),
        ([1.0], {"error_weight": -1.0}, r"error_weight=-1\.0"),
    ],
)
def test_a_baseline_refuses_what_the_paper_does_not_cover_in_one_sentence(baseline, virtual_costs, options, message):
    with pytest.raises(InputError, match=message):
        baseline(virtual_costs, **{"variance": 0.25, **options})


@pytest.mark.parametrize("baseline", [algorithm_1, algorithm_2], ids=lambda baseline: baseline.__name__)
def test_a_baseline_finds_nobody_to_buy_from_where_every_cost_is_infinite(baseline):
    with pytest.raises(NobodyToBuyFrom):
        baseline([np.inf, np.inf], variance=0.25)


def test_algorithm_2_needs_at_least_two_points():
    with pytest.raises(InputError, match="points=1"):
        algorithm_2([1.0], variance=0.25, points=1)


# The mesh method


@dataclass(frozen=True)
class UniformBids:
    """A prior of the test's own: uniform, so that the rent is half a difference of two optimal values."""

    low: float
    high: float

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def quantile(self, q: float) -> float:
        return self.low + q * (self.high - self.low)

    def virtual_cost(self, c: np.ndarray) -> np.ndarray:
        return 2 * c - self.low


@dataclass(frozen=True)
class ExponentialBids:
    """A prior of the test's own: F(c) = 1 - exp(-c), without an upper end."""

    support: tuple[float, float] = (0.0, np.inf)

    def quantile(self, q: float) -> float:
        return float(-np.log1p(-q))

    def virtual_cost(self, c: np.ndarray) -> np.ndarray:
        return c + np.expm1(c)


@pytest.mark.parametrize("setting", ["central", "local"])
@pytest.mark.parametrize("accuracy", [1e-1, 1e-2])
def test_mesh_payments_fall_short_of_the_exact_ones_by_no_more_than_the_accuracy_asked_for(setting, accuracy):
    rng = np.random.default_rng(3)
    prior = UniformBids(low=0.2, high=1.1)
    bids = rng.uniform(*prior.support, 5)

    def rule(virtual_costs):
        return allocate(virtual_costs, setting=setting, variance=0.2)

    mesh = mesh_payments(bids, prior=prior, rule=rule, variance=0.2, accuracy=accuracy)
    truthful = rule(prior.virtual_cost(bids))
    for row, bid in enumerate(bids):
        highest = bids.copy()
        highest[row] = prior.high
        rent = (rule(prior.virtual_cost(highest)).objective - truthful.objective) / 2  # the envelope theorem, slope 2
        exact = truthful.mse - 0.2 + bid * truthful.privacy_loss[row] + rent
        assert -1e-9 <= exact - mesh.payments[row] <= accuracy


def test_the_mesh_method_needs_about_ten_times_the_allocations_for_one_more_digit():
    prior = UniformBids(low=1.0, high=2.0)
    bids = np.linspace(1.1, 1.9, 6)
    calls = [
        mesh_payments(
            bids,
            prior=prior,
            rule=lambda costs: allocate(costs, setting="central", variance=0.25),
            variance=0.25,
            accuracy=accuracy,
        ).allocations
        for accuracy in (1e-2, 1e-3)
    ]
    assert 8 < calls[1] / calls[0] < 12


def test_the_mesh_method_cuts_an_endless_tail_where_its_lemma_says():
    prior, accuracy = ExponentialBids(), 1e-2
    bids = np.array([0.05, 0.2, 1.0])

    asked = []

    def rule(virtual_costs):
        asked.append(virtual_costs[0])
        return allocate(virtual_costs, setting="central", variance=0.25)

    mesh = mesh_payments(bids, prior=prior, rule=rule, variance=0.25, accuracy=accuracy, rows=[0])
    # The last bid asked about is the one above which M·(1 − F)/F is half of the accuracy, M the cost without her.
    without_her = allocate([np.inf, *prior.virtual_cost(bids[1:])], setting="central", variance=0.25).objective
    last = prior.quantile(without_her / (without_her + accuracy / 2))
    assert max(cost for cost in asked if cost < np.inf) == pytest.approx(prior.virtual_cost(np.array([last]))[0])
    nodes = np.linspace(bids[0], 8.0, 1601)  # at 8 the virtual cost is 2988: she is not bought from
    losses = [rule(prior.virtual_cost(np.array([z, *bids[1:]]))).privacy_loss[0] for z in nodes]
    assert losses[-1] == 0
    lower, upper = np.sum(np.diff(nodes) * losses[1:]), np.sum(np.diff(nodes) * losses[:-1])
    assert lower - accuracy <= mesh.information_rent[0] <= upper
    assert mesh.rows.tolist() == [0]


@pytest.mark.parametrize("rows", [[1], [-1], [0, 7]])
def test_the_mesh_method_names_rows_that_do_not_exist(rows):
    with pytest.raises(InputError, match="rows must be between 0 and 0"):
        mesh_payments([1.0], prior=UniformBids(1.0, 2.0), rule=allocate, variance=0.25, accuracy=1.0, rows=rows)


@pytest.mark.parametrize("accuracy", [0.0, -1.0, float("inf"), float("nan")])
def test_the_mesh_method_wants_a_positive_accuracy(accuracy):
    with pytest.raises(InputError, match="accuracy="):
        mesh_payments([1.0], prior=UniformBids(1.0, 2.0), rule=allocate, variance=0.25, accuracy=accuracy)
