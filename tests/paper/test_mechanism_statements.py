"""What the paper states about the mechanism, statement by statement.

[F] = Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, arXiv 2201.03968: Propositions 1 to 4 and 6, Theorems 3 and 4,
Corollaries 1 to 3, Lemmas A2 to A4, Claims 1 and 2 and what its appendix adds without a number. Proposition 5 is in
test_estimation_statements.py. docs/reference/statements.md maps every statement to its code and its tests.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid.allocation import allocate
from hushbid.baselines import PostedPrice, algorithm_1, algorithm_2, mesh_payments
from hushbid.baselines.paper_local import multiplier_limits, stationary_losses
from hushbid.errors import MarketError
from hushbid.mechanism import Market
from hushbid.payments import rent_of_rule
from hushbid.priors import Exponential, Uniform
from hushbid.report.figures_theory import central_threshold, drop_threshold

SETTINGS = ["central", "local"]
VARIANCE = 0.25
PRIOR = Uniform(1, 2)


def paper(setting: str, **changes: object) -> Market:
    return Market(prior=PRIOR, setting=setting, variance=VARIANCE, **changes)  # type: ignore[arg-type]


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


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("row", [0, 2, 5])
def test_proposition_1_the_payment_is_error_difference_plus_cost_plus_integral(setting: str, row: int) -> None:
    reports = np.array([1.05, 1.2, 1.3, 1.35, 1.6, 1.95])
    outcome = paper(setting).acquire(reports)
    grid = np.linspace(reports[row], 2, 40_001)
    loss = outcome.schedule(user=row).privacy_loss(grid)
    integral = np.sum(0.5 * (loss[1:] + loss[:-1]) * np.diff(grid))
    expected = outcome.mse - VARIANCE + reports[row] * loss[0] + integral
    assert outcome.payments[row] == pytest.approx(expected, abs=1e-4 * (1 + abs(expected)))
    assert outcome.information_rent[row] == pytest.approx(integral, abs=1e-4)


@pytest.mark.parametrize("setting", SETTINGS)
def test_proposition_1_with_it_the_truth_is_best_and_everybody_joins(setting: str) -> None:
    others = np.array([1.1, 1.25, 1.5, 1.8])
    types = np.linspace(1, 2, 41)
    outcomes = [paper(setting).acquire(np.append(others, report)) for report in types]
    loss = np.array([one.privacy_loss[-1] for one in outcomes])
    paid = np.array([one.payments[-1] for one in outcomes])
    error = np.array([one.mse for one in outcomes])
    cost = error[None, :] + types[:, None] * loss[None, :] - paid[None, :]  # of each type (row) at each report (column)
    honest = np.diagonal(cost)
    assert (np.diff(loss) <= 1e-12).all()
    assert (honest - cost.min(axis=1)).max() <= 1e-8
    assert (honest <= VARIANCE + 1e-9).all()
    # Without the integral overstating pays: the test would notice.
    naive = error - VARIANCE + types * loss
    spoilt = error[None, :] + types[:, None] * loss[None, :] - naive[None, :]
    assert (np.diagonal(spoilt) - spoilt.min(axis=1)).max() > 0.01


def test_proposition_1_a_rule_that_rises_with_ones_report_has_no_truthful_payment() -> None:
    with pytest.raises(MarketError, match="not monotone"):
        rent_of_rule(lambda z: np.sin(z), 0.0, 1.0)


@pytest.mark.parametrize("setting", SETTINGS)
def test_proposition_1_prime_if_outsiders_have_the_estimate_its_error_without_them_replaces_the_variance(
    setting: str,
) -> None:
    reports = np.array([1.02, 1.05, 1.1, 1.3, 1.9])
    own, shared = (paper(setting, outside_option=option).acquire(reports) for option in ("own_data", "estimate"))
    for row in range(5):
        # Without her: n − 1 people, so the error weight is n instead of n + 1.
        without = allocate(PRIOR.virtual_cost(np.delete(reports, row)), setting=setting, variance=VARIANCE)
        assert without.error_weight == 5
        assert shared.payments[row] - own.payments[row] == pytest.approx(VARIANCE - without.mse, abs=1e-9)


# Proposition 2 and its variant


@pytest.mark.parametrize("setting", SETTINGS)
def test_proposition_2_expected_payments_are_expected_virtual_payments(setting: str) -> None:
    nodes = 1 + (np.arange(20) + 0.5) / 20
    market = paper(setting)
    paid, virtual, losses = 0.0, 0.0, np.zeros(20)
    for j, first in enumerate(nodes):
        for second in nodes:
            outcome = market.acquire([first, second])
            paid += outcome.mse + outcome.total_payment
            virtual += outcome.objective - 2 * VARIANCE
            losses[j] += outcome.privacy_loss[0]
    assert paid == pytest.approx(virtual, rel=3e-3)
    assert (np.diff(losses) <= 1e-9).all()  # the interim loss never rises with one's report


@pytest.mark.parametrize("setting", SETTINGS)
def test_proposition_2_prime_the_outside_option_does_not_change_the_allocation(setting: str) -> None:
    for seed in range(5):
        reports = np.random.default_rng(seed).uniform(1, 2, 6)
        own, shared = (paper(setting, outside_option=option).acquire(reports) for option in ("own_data", "estimate"))
        assert shared.privacy_loss.tolist() == own.privacy_loss.tolist()


# Theorems 3 and 4, Corollaries 1 to 3, Lemma A2


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", range(6))
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


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", range(10))
def test_corollaries_1_and_2_and_lemma_a2_who_costs_less_loses_no_less(setting: str, seed: int) -> None:
    costs = random_costs(seed, 40)
    losses = allocate(costs, setting=setting, variance=VARIANCE).privacy_loss
    assert all(cheap >= dear for cheap, dear in pairwise(losses))
    assert losses[0] > losses[-1]


@pytest.mark.parametrize("seed", range(20))
def test_corollary_3_the_local_optimum_never_costs_less_than_the_central_one(seed: int) -> None:
    costs = random_costs(seed, 1 + seed)
    central, local = (allocate(costs, setting=setting, variance=VARIANCE).objective for setting in SETTINGS)
    assert central <= local * (1 + 1e-12)


def test_corollary_3_with_one_person_the_two_settings_are_the_same() -> None:
    central, local = (allocate([1.7], setting=setting, variance=VARIANCE) for setting in SETTINGS)
    assert central.objective == pytest.approx(local.objective, rel=1e-12)


# Proposition 3


@pytest.mark.parametrize("seed", range(8))
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


def test_proposition_4_a_fine_enough_grid_is_within_any_factor_of_the_local_optimum() -> None:
    for seed in range(4):
        costs = random_costs(seed, 5) * 0.05
        exact = allocate(costs, setting="local", variance=VARIANCE).objective
        excess = [algorithm_2(costs, variance=VARIANCE, points=p).objective / exact - 1 for p in (20, 200, 2000)]
        assert min(excess) >= -1e-12
        assert excess[2] <= 1e-4
        assert excess[2] <= excess[0]


@pytest.mark.parametrize("n", [12, 500])
@pytest.mark.parametrize("seed", range(8))
def test_claim_1_everybody_but_the_last_is_at_her_high_root(seed: int, n: int) -> None:
    costs = random_costs(seed, n) * 0.02
    found = allocate(costs, setting="local", variance=VARIANCE)
    active = found.privacy_loss > 0
    assert active.sum() >= 2
    level = costs[active] * (1 / found.mse) ** 2 / found.error_weight
    roots = stationary_losses(level, variance=VARIANCE)
    assert found.privacy_loss[active] == pytest.approx(roots.high, rel=1e-6)
    assert (roots.high > roots.low).all()


@pytest.mark.parametrize("seed", range(8))
def test_claim_2_the_repaired_limits_hold_the_optimal_multiplier(seed: int) -> None:
    costs = random_costs(seed, 10) * 0.05
    found = allocate(costs, setting="local", variance=VARIANCE)
    limits = multiplier_limits(costs, variance=VARIANCE)
    assert limits.lower <= 1 / found.mse <= limits.upper[found.active - 1]


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


@pytest.mark.parametrize("n", [10, 100, 1000, 100_000])
@pytest.mark.parametrize("cost", [1.0, 0.01, 0.0001])
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


@pytest.mark.parametrize("setting", SETTINGS)
def test_lemma_a4_payments_by_a_mesh_are_right_to_the_accuracy_asked_for(setting: str) -> None:
    reports = np.array([1.1, 1.15, 1.6])
    exact = paper(setting).acquire(reports)
    for accuracy in (0.2, 0.02):
        found = mesh_payments(
            reports,
            prior=PRIOR,
            rule=lambda costs: allocate(costs, setting=setting, variance=VARIANCE),
            variance=VARIANCE,
            accuracy=accuracy,
        )
        short = exact.payments - found.payments
        assert (short >= -1e-9).all()
        assert (short <= accuracy).all()


def test_lemma_a4_the_tail_of_an_endless_prior_may_be_cut() -> None:
    prior = Exponential(1.0)
    reports = np.array([0.3, 0.8])
    market = Market(prior=prior, variance=VARIANCE)
    found = mesh_payments(
        reports, prior=prior, rule=lambda costs: allocate(costs, variance=VARIANCE), variance=VARIANCE, accuracy=0.05
    )
    short = market.acquire(reports).payments - found.payments
    assert (short >= -1e-6).all()
    assert (short <= 0.05).all()


def test_the_revelation_principle_asking_for_the_answer_is_as_good_as_asking_for_the_type() -> None:
    # A posted price asks yes or no. Asking for the sensitivity and answering for the person gives the same outcome.
    market = paper("central", buyer_weight=50.0)
    rival = PostedPrice.best(market, 6)
    types = np.random.default_rng(1).uniform(1, 2, 6)
    answers = types <= rival.price
    direct = rival.acquire(types)
    assert ((direct.privacy_loss > 0) == answers).all()
    other_reports_same_answers = np.where(answers, 1.0, 2.0)
    indirect = rival.acquire(other_reports_same_answers)
    assert indirect.payments == pytest.approx(direct.payments, rel=1e-12)
    assert indirect.mse == direct.mse
