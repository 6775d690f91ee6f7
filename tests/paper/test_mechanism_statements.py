"""What the paper states about the mechanism, statement by statement.

[F] = Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, arXiv 2201.03968: Propositions 1 to 4 and 6, Theorems 3 and 4,
Corollaries 1 to 3, Lemmas A2 to A4, Claims 1 and 2 and what its appendix adds without a number. Proposition 5 is in
test_estimation_statements.py. docs/reference/statements.md maps every statement to its code and its tests.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from experiments.paper_figures.algorithm_1 import algorithm_1
from experiments.paper_figures.algorithm_2 import algorithm_2, multiplier_limits, stationary_losses
from experiments.paper_figures.figures_theory import central_threshold, drop_threshold
from experiments.paper_figures.mesh_payments import mesh_payments
from hushbid.allocation import allocate
from hushbid.baselines import PostedPrice
from hushbid.common.arrays import BoolArray, FloatArray
from hushbid.errors import MarketError
from hushbid.mechanism import Market
from hushbid.payments import rent_of_rule
from hushbid.priors import Exponential, Prior, Uniform
from tests.extent import each

SETTINGS = ["central", "local"]
VARIANCE = 0.25
PRIOR = Uniform(1, 2)


def paper(setting: str, **changes: object) -> Market:
    return Market(
        prior=PRIOR, setting=setting, variance=VARIANCE, **({"buyer_weight": 1.0, "user_weight": 1.0} | changes)
    )  # type: ignore[arg-type]


def objective(losses: np.ndarray, costs: np.ndarray, setting: str, variance: float, weight: float) -> float:
    """The objective of Theorem 3 or Theorem 4, written down once more."""
    losses = np.maximum(losses, 1e-12)
    if setting == "central":
        error = (2 + variance * np.sum(losses**2)) / np.sum(losses) ** 2
    else:
        error = 1 / np.sum(1 / (variance + 2 / losses**2))
    return float(weight * error + costs @ losses)


def random_costs(seed: int, n: int) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).lognormal(0, 1.2, n))


# Proposition 1 and its variant


@each("setting", SETTINGS)
@each("row", [0, 2, 5])
def test_proposition_1_the_payment_is_error_difference_plus_cost_plus_integral(setting: str, row: int) -> None:
    bids = np.array([1.05, 1.2, 1.3, 1.35, 1.6, 1.95])
    outcome = paper(setting).acquire(bids)
    grid = np.linspace(bids[row], 2, 40_001)
    loss = outcome.schedule(user=row).privacy_loss(grid)
    integral = np.sum(0.5 * (loss[1:] + loss[:-1]) * np.diff(grid))
    expected = outcome.mse - VARIANCE + bids[row] * loss[0] + integral
    assert outcome.payments[row] == pytest.approx(expected, abs=1e-4 * (1 + abs(expected)))
    assert outcome.information_rent[row] == pytest.approx(integral, abs=1e-4)


@pytest.mark.parametrize("setting", SETTINGS)
def test_proposition_1_with_it_the_truth_is_best_and_everybody_joins(setting: str) -> None:
    others = np.array([1.1, 1.25, 1.5, 1.8])
    types = np.linspace(1, 2, 41)
    outcomes = [paper(setting).acquire(np.append(others, bid)) for bid in types]
    loss = np.array([one.privacy_loss[-1] for one in outcomes])
    paid = np.array([one.payments[-1] for one in outcomes])
    error = np.array([one.mse for one in outcomes])
    cost = error[None, :] + types[:, None] * loss[None, :] - paid[None, :]  # of each type (row) at each bid (column)
    honest = np.diagonal(cost)
    assert (np.diff(loss) <= 1e-12).all()
    assert (honest - cost.min(axis=1)).max() <= 1e-8
    assert (honest <= VARIANCE + 1e-9).all()
    # Without the integral overstating pays: the test would notice.
    naive = error - VARIANCE + types * loss
    spoilt = error[None, :] + types[:, None] * loss[None, :] - naive[None, :]
    assert (np.diagonal(spoilt) - spoilt.min(axis=1)).max() > 0.01


def test_proposition_1_a_rule_that_rises_with_ones_bid_has_no_truthful_payment() -> None:
    with pytest.raises(MarketError, match="not monotone"):
        rent_of_rule(lambda z: np.sin(z), 0.0, 1.0)


@pytest.mark.parametrize("setting", SETTINGS)
def test_proposition_1_prime_if_outsiders_have_the_estimate_its_error_without_them_replaces_the_variance(
    setting: str,
) -> None:
    bids = np.array([1.02, 1.05, 1.1, 1.3, 1.9])
    own, shared = (paper(setting, outside_option=option).acquire(bids) for option in ("own_data", "estimate"))
    for row in range(5):
        # Without her: n − 1 people, so the error weight is n instead of n + 1.
        without = allocate(PRIOR.virtual_cost(np.delete(bids, row)), setting=setting, variance=VARIANCE)
        assert without.error_weight == 5
        assert shared.payments[row] - own.payments[row] == pytest.approx(VARIANCE - without.mse, abs=1e-9)


# Proposition 2 and its variant


PRIORS: list[tuple[Prior, Callable[[float], float], Callable[[float], float]]] = [
    (Uniform(1, 2), lambda q: 1 + q, lambda c: 2 * c - 1),
    (Exponential(2.0), lambda q: float(-2 * np.log1p(-q)), lambda c: float(c + 2 * np.expm1(c / 2))),
]
"""With the quantile function, and the virtual cost c + F(c)/f(c), written down once more."""


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("prior", "quantile", "virtual_cost"), PRIORS, ids=["uniform", "exponential"])
def test_proposition_2_expected_payments_are_expected_virtual_payments(
    setting: str, prior: Prior, quantile: Callable[[float], float], virtual_cost: Callable[[float], float]
) -> None:
    """Whatever the others bid: what a person is paid on average, apart from the error, is her virtual cost."""
    others = [quantile(0.2), quantile(0.6)]
    costs = [virtual_cost(bid) for bid in others]
    market = Market(prior=prior, setting=setting, variance=VARIANCE, buyer_weight=1.0, user_weight=1.0)  # type: ignore[arg-type]

    def is_bought_from(chance: float) -> bool:
        mine = virtual_cost(quantile(chance))
        return bool(allocate([mine, *costs], setting=setting, variance=VARIANCE).privacy_loss[0] > 0)

    low, high = 0.0, 1.0 - 1e-9
    while high - low > 1e-9:  # her loss may fall to nothing in a jump, and nodes must not straddle it
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_bought_from(middle) else (low, middle)
    points, weights = np.polynomial.legendre.leggauss(8)
    paid = virtual = 0.0
    for left, right in pairwise(np.linspace(0, low, 9).tolist()):
        for point, weight in zip(points.tolist(), weights.tolist(), strict=True):
            bid = quantile(left + (right - left) * (point + 1) / 2)
            outcome = market.acquire([bid, *others])
            hers = virtual_cost(bid) * outcome.privacy_loss[0]
            assert outcome.objective == pytest.approx(
                4 * outcome.mse + hers + outcome.privacy_loss[1:] @ costs, rel=1e-12
            )
            paid += (outcome.payments[0] - (outcome.mse - VARIANCE)) * weight * (right - left) / 2
            virtual += hers * weight * (right - left) / 2
    assert virtual > 0.1
    assert paid == pytest.approx(virtual, rel=1e-4)


@pytest.mark.parametrize("setting", SETTINGS)
def test_proposition_2_prime_the_outside_option_does_not_change_the_allocation(setting: str) -> None:
    for seed in range(5):
        bids = np.random.default_rng(seed).uniform(1, 2, 6)
        own, shared = (paper(setting, outside_option=option).acquire(bids) for option in ("own_data", "estimate"))
        assert shared.privacy_loss.tolist() == own.privacy_loss.tolist()


# Theorems 3 and 4, Corollaries 1 to 3, Lemma A2


@each("setting", SETTINGS)
@each("seed", range(6))
def test_theorems_3_and_4_nothing_costs_less_and_the_weights_are_the_stated_ones(setting: str, seed: int) -> None:
    costs, variance = random_costs(seed, 4), [0.25, 1.0, 0.04][seed % 3]
    found = allocate(costs, setting=setting, variance=variance)
    losses = found.privacy_loss
    assert found.error_weight == 5
    assert found.objective == pytest.approx(objective(losses, costs, setting, variance, 5), rel=1e-9)
    raw = losses if setting == "central" else 1 / (variance + 2 / np.maximum(losses, 1e-12) ** 2)
    assert found.weights == pytest.approx(raw / raw.sum(), abs=1e-9)
    starts = np.random.default_rng(seed).uniform(0.01, 3, (6, 4)) * losses.max()
    best = min(
        minimize(objective, start, (costs, setting, variance, 5), bounds=[(0, None)] * 4, tol=1e-12).fun
        for start in starts
    )
    assert found.objective <= best * (1 + 1e-9)
    assert (
        found.objective >= best * (1 - 1e-3) or setting == "local"
    )  # descent may miss the local optimum, not reach below


@each("setting", SETTINGS)
@each("seed", range(10))
def test_corollaries_1_and_2_and_lemma_a2_who_costs_less_loses_no_less(setting: str, seed: int) -> None:
    costs = random_costs(seed, 40)
    losses = allocate(costs, setting=setting, variance=VARIANCE).privacy_loss
    assert all(cheap >= dear for cheap, dear in pairwise(losses))
    assert losses[0] > losses[-1]


@each("seed", range(20))
def test_corollary_3_the_local_optimum_never_costs_less_than_the_central_one(seed: int) -> None:
    costs = random_costs(seed, 1 + seed)
    central, local = (allocate(costs, setting=setting, variance=VARIANCE).objective for setting in SETTINGS)
    assert central <= local * (1 + 1e-12)


def test_corollary_3_with_one_person_the_two_settings_are_the_same() -> None:
    central, local = (allocate([1.7], setting=setting, variance=VARIANCE) for setting in SETTINGS)
    assert central.objective == pytest.approx(local.objective, rel=1e-12)


# Proposition 3


@each("seed", range(8))
def test_proposition_3_algorithm_1_as_corrected_finds_the_optimum_from_sorted_sums(seed: int) -> None:
    costs = random_costs(seed, 30)
    theirs, ours = algorithm_1(costs, variance=VARIANCE), allocate(costs, variance=VARIANCE)
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-10)
    assert theirs.privacy_loss == pytest.approx(ours.privacy_loss, abs=1e-6 * ours.privacy_loss.max())
    # Stationarity with the threshold structure: y_j = (λ − ψ_j) S² / (2 (n+1) V) for those bought from.
    active = ours.privacy_loss > 0
    slope = np.polyfit(costs[active], ours.privacy_loss[active], 1)
    assert -slope[0] == pytest.approx(ours.privacy_loss.sum() ** 2 / (2 * 31 * VARIANCE), rel=1e-6)
    assert slope[1] / -slope[0] <= costs[~active].min() + 1e-9


# Proposition 4, Claims 1 and 2, Lemma A3


@each("n", [2, 5, 9])
@each("seed", range(4))
def test_proposition_4_a_fine_enough_grid_is_within_any_factor_of_the_local_optimum(seed: int, n: int) -> None:
    costs = random_costs(seed, n) * 0.05
    exact = allocate(costs, setting="local", variance=VARIANCE)
    for points in (20, 200, 2000):
        found = algorithm_2(costs, variance=VARIANCE, points=points)
        stated = objective(found.privacy_loss, costs, "local", VARIANCE, n + 1)
        assert found.objective == pytest.approx(stated, rel=1e-9)
        # A grid ten times finer is a hundred times closer: its best point is half a step from a smooth minimum.
        assert -1e-12 <= found.objective / exact.objective - 1 <= 1 / points**2
    assert found.privacy_loss == pytest.approx(exact.privacy_loss, rel=2e-3)


@each("n", [12, 500])
@each("seed", range(8))
def test_claim_1_everybody_but_the_last_is_at_her_high_root(seed: int, n: int) -> None:
    costs = random_costs(seed, n) * 0.02
    found = allocate(costs, setting="local", variance=VARIANCE)
    active = found.privacy_loss > 0
    assert active.sum() >= 2
    level = costs[active] * (1 / found.mse) ** 2 / found.error_weight
    roots = stationary_losses(level, variance=VARIANCE)
    assert found.privacy_loss[active] == pytest.approx(roots.high, rel=1e-6)
    assert (roots.high > roots.low).all()


@each("seed", range(8))
def test_claim_2_the_repaired_limits_hold_the_optimal_multiplier(seed: int) -> None:
    costs = random_costs(seed, 10) * 0.05
    found = allocate(costs, setting="local", variance=VARIANCE)
    limits = multiplier_limits(costs, variance=VARIANCE)
    assert limits.lower <= 1 / found.mse <= limits.upper[found.active - 1]
    # Below: the error alone costs no more than the best equal losses do with everything. Above: her two roots merge.
    equal = minimize_scalar(
        lambda root: objective(np.full(10, np.exp(root)), costs, "local", VARIANCE, 11), bracket=(-3, 3), tol=1e-12
    ).fun
    assert limits.lower == pytest.approx(11 / equal, rel=1e-9)
    levels = np.array([[0.9999], [1.0001]]) * costs * limits.upper**2 / 11
    roots = stationary_losses(levels, variance=VARIANCE)
    assert roots.low[0] == pytest.approx(roots.high[0], rel=0.1)
    assert np.isnan(roots.high[1]).all()


@pytest.mark.parametrize("variance", [0.04, 0.25, 1.0])
def test_lemma_a3_there_are_two_solutions_or_none_and_they_move_apart_as_the_cost_falls(variance: float) -> None:
    peak = 3 * np.sqrt(3) / (8 * np.sqrt(2 * variance))
    levels = peak * np.linspace(0.02, 0.999, 50)
    roots = stationary_losses(levels, variance=variance)
    z = np.geomspace(1e-6, 1e4, 400_001)
    curve = 4 * z / (variance * z**2 + 2) ** 2
    for level, low, high in zip(levels, roots.low, roots.high, strict=True):
        crossings = z[np.flatnonzero(np.diff(np.sign(curve - level)))]
        assert crossings == pytest.approx([low, high], rel=1e-3)
    assert (np.diff(roots.low) > 0).all()
    assert (np.diff(roots.high) < 0).all()
    assert curve.max() == pytest.approx(peak, rel=1e-8)
    assert np.isnan(stationary_losses(peak * 1.001, variance=variance).high)


# Proposition 6


@pytest.mark.parametrize(
    ("n", "cost", "variance"), [(5, 1.0, 0.25), (10, 1.0, 0.25), (100, 0.1, 1.0), (10_000, 2.0, 0.04)]
)
def test_proposition_6_central_drops_the_expensive_user_exactly_at_the_corrected_threshold(
    n: int, cost: float, variance: float
) -> None:
    formula = central_threshold(n, cost, variance)
    assert formula <= 3 * n * cost
    assert drop_threshold(n, cost, setting="central", variance=variance) == pytest.approx(formula, rel=1e-6)


def test_proposition_6_beyond_its_range_the_threshold_is_only_a_lower_bound() -> None:
    n, cost = 10, 0.0001
    formula = central_threshold(n, cost, VARIANCE)
    assert formula > 3 * n * cost
    assert drop_threshold(n, cost, setting="central", variance=VARIANCE) > 1.05 * formula


@each("n", [10, 100, 1000, 100_000])
@each("cost", [1.0, 0.01, 0.0001])
def test_proposition_6_there_is_a_band_where_only_local_leaves_her_alone(n: int, cost: float) -> None:
    central = drop_threshold(n, cost, setting="central", variance=VARIANCE)
    local = drop_threshold(n, cost, setting="local", variance=VARIANCE)
    assert local < 0.7 * central
    if n <= 1000:
        costs = np.append(np.full(n - 1, cost), cost + 0.5 * (local + central))
        kept, dropped = (allocate(costs, setting=s, variance=VARIANCE).privacy_loss[-1] for s in SETTINGS)
        assert kept > 0
        assert dropped == 0


def test_proposition_6_the_band_is_as_wide_as_the_cube_root_of_n_says() -> None:
    widths = [drop_threshold(n, 1.0, setting="central", variance=VARIANCE) for n in (10**4, 10**6)]
    assert np.log(widths[0] / widths[1]) / np.log(100) == pytest.approx(1 / 3, abs=1e-3)
    # The local distance is below every multiple of n^(−2/3): with so many equals even some of them are idle.
    assert drop_threshold(10**4, 1.0, setting="local", variance=VARIANCE) == 0


def test_proposition_6_while_everybody_is_active_the_local_distance_falls_at_least_like_its_bound() -> None:
    sizes = np.array([10, 30, 100, 300])
    local = np.array([drop_threshold(int(n), 1e-4, setting="local", variance=VARIANCE) for n in sizes])
    assert (local > 0).all()
    assert (np.diff(np.log(local)) / np.diff(np.log(sizes)) < -2 / 3).all()


# Lemma A4 and the revelation principle


def lower_sum(bid: float, top: float, intervals: int, loss: Callable[[float], float]) -> float:
    """Every interval of a mesh at its right end, where a loss that never rises is least."""
    return (top - bid) / intervals * sum(loss(z) for z in np.linspace(bid, top, intervals + 1)[1:].tolist())


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("accuracy", [0.2, 0.02])
def test_lemma_a4_payments_by_a_mesh_are_right_to_the_accuracy_asked_for(setting: str, accuracy: float) -> None:
    bids = np.array([1.1, 1.15, 1.6])
    exact = paper(setting).acquire(bids)
    rule = partial(allocate, setting=setting, variance=VARIANCE)
    found = mesh_payments(bids, prior=PRIOR, rule=rule, variance=VARIANCE, accuracy=accuracy)
    asked = 1
    for row, bid in enumerate(bids.tolist()):

        def loss(z: float, row: int = row) -> float:
            costs = 2 * bids - 1
            costs[row] = 2 * z - 1
            return float(rule(costs).privacy_loss[row])

        intervals = max(1, math.ceil((2 - bid) * 2 * (loss(bid) - loss(2.0)) / accuracy))
        assert found.information_rent[row] == pytest.approx(lower_sum(bid, 2.0, intervals, loss), rel=1e-9)
        asked += intervals
    short = exact.payments - found.payments
    assert (short >= -1e-9).all()
    assert (short <= accuracy / 2).all()  # there is no tail to be cut, which would take the other half
    assert short.max() >= accuracy / 10  # and no more is done than was asked for
    assert found.allocations == asked


def test_lemma_a4_with_payments_by_a_mesh_nobody_gains_more_than_the_accuracy() -> None:
    others, accuracy = [1.15, 1.6], 0.02
    rule = partial(allocate, setting="central", variance=VARIANCE)
    types = np.linspace(1, 2, 11)
    loss, paid, error = np.empty((3, types.size))
    for place, bid in enumerate(types.tolist()):
        bids = np.array([bid, *others])
        found = mesh_payments(bids, prior=PRIOR, rule=rule, variance=VARIANCE, accuracy=accuracy, rows=[0])
        made = rule(2 * bids - 1)
        loss[place], paid[place], error[place] = made.privacy_loss[0], found.payments[0], made.mse
    cost = error[None, :] + types[:, None] * loss[None, :] - paid[None, :]  # of each type (row) at each bid (column)
    assert (np.diagonal(cost) - cost.min(axis=1)).max() <= accuracy


def test_lemma_a4_the_tail_of_an_endless_prior_may_be_cut() -> None:
    prior, accuracy = Exponential(1.0), 0.05
    bids = np.array([0.3, 0.8])
    rule = partial(allocate, variance=VARIANCE)
    found = mesh_payments(bids, prior=prior, rule=rule, variance=VARIANCE, accuracy=accuracy)
    short = (
        Market(prior=prior, variance=VARIANCE, buyer_weight=1.0, user_weight=1.0).acquire(bids).payments
        - found.payments
    )
    assert (short >= -1e-6).all()
    assert (short <= accuracy).all()
    for row, bid in enumerate(bids.tolist()):

        def loss(z: float, row: int = row) -> float:
            costs = bids + np.expm1(bids)
            costs[row] = z + math.expm1(z)
            return float(rule(costs).privacy_loss[row])

        without_her = rule([bids[1 - row] + math.expm1(bids[1 - row]), np.inf]).objective
        top = math.log1p(without_her / (accuracy / 2))  # where M·(1 − F)/F is half of the accuracy
        intervals = max(1, math.ceil((top - bid) * 2 * (loss(bid) - loss(top)) / accuracy))
        assert found.information_rent[row] == pytest.approx(lower_sum(bid, top, intervals, loss), rel=1e-6)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_revelation_principle_asking_for_the_answer_is_as_good_as_asking_for_the_type(setting: str) -> None:
    """A posted price asks yes or no; the direct mechanism asks for the sensitivity and answers for the person."""
    n, types = 6, np.array([1.05, 1.2, 1.34, 1.36, 1.7, 1.95])
    baseline = PostedPrice(population=paper(setting, buyer_weight=50.0).for_people(n), price=1.35, loss=0.8)

    def answered(yes: BoolArray) -> tuple[FloatArray, FloatArray, float]:
        """Losses, payments and the error of the indirect mechanism, by its own rules."""
        sellers = max(int(yes.sum()), 1)
        noise = 2 / (sellers * 0.8) ** 2 if setting == "central" else 2 / (sellers * 0.8**2)
        error = noise + VARIANCE / sellers
        return 0.8 * yes, 1.35 * 0.8 * yes + error - VARIANCE, error

    answers = types <= 1.35
    losses, paid, error = answered(answers)
    for row, own in enumerate(types.tolist()):  # these answers are an equilibrium
        other = answers.copy()
        other[row] = not answers[row]
        changed = answered(other)
        assert error + own * losses[row] - paid[row] <= changed[2] + own * changed[0][row] - changed[1][row]
    direct = baseline.acquire(types)
    assert direct.privacy_loss.tolist() == losses.tolist()
    assert direct.payments == pytest.approx(paid, rel=1e-12)
    assert direct.mse == pytest.approx(error, rel=1e-12)
    bids = np.linspace(1, 2, 41)
    for row in (0, 2, 3, 5):  # and so the truth is best where the type itself is asked for
        lies = [baseline.acquire(np.where(np.arange(n) == row, bid, types)) for bid in bids.tolist()]
        costs = [lie.mse + types[row] * lie.privacy_loss[row] - lie.payments[row] for lie in lies]
        assert direct.mse + types[row] * direct.privacy_loss[row] - direct.payments[row] <= min(costs) + 1e-12
