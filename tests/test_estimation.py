"""Estimators for given privacy losses: optimal by brute force, bounded by the minimax theorems, safe at the edges."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from hushbid.errors import InputError, NothingDelivered
from hushbid.estimation import Strata, best_contrast, best_weights, minimax_bounds, mse_of, near_optimal_weights
from tests.extent import each

SETTINGS = ["central", "local"]


def random_losses(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.exp(rng.uniform(-4, 4, size=n))


def brute_force_central(losses: np.ndarray, variance: np.ndarray) -> float:
    """The least ``(2 + Σ V v²)/(Σ v)²`` over the box, by descent from several starts (quasi-convex, so any will do)."""

    def objective(v: np.ndarray) -> float:
        return float((2 + np.sum(variance * v**2)) / np.sum(v) ** 2)

    starts = [losses, losses / 2, np.minimum(losses, np.median(losses))]
    bounds = [(1e-12, loss) for loss in losses]
    return min(minimize(objective, start, bounds=bounds, tol=1e-15).fun for start in starts)


@each("seed", range(20))
def test_no_descent_finds_a_better_central_estimator(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    losses = random_losses(rng, n)
    variance = np.full(n, 0.25) if seed % 2 else rng.uniform(0.01, 0.25, size=n)
    best = best_weights(losses, setting="central", variance=variance)
    assert best.mse == pytest.approx(brute_force_central(losses, variance), rel=1e-6)


@each("seed", range(20))
def test_the_cap_solves_its_equation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses, variance = random_losses(rng, 50), 0.2
    delivered = best_weights(losses, setting="central", variance=variance).delivered
    capped = delivered < losses
    assert capped.any()
    cap = delivered[capped]
    assert np.ptp(cap) == 0
    assert cap[0] * variance * delivered.sum() == pytest.approx(2 + variance * np.sum(delivered**2), rel=1e-12)


@each("setting", SETTINGS)
@each("seed", range(10))
def test_the_best_is_no_worse_than_near_optimal_or_random_weights(setting: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses = random_losses(rng, 30)
    best = best_weights(losses, setting=setting, variance=0.25)
    near = near_optimal_weights(losses, setting=setting, variance=0.25)
    assert best.mse <= near.mse * (1 + 1e-12)
    for _ in range(20):
        weights = rng.dirichlet(np.ones(30))
        assert best.mse <= mse_of(weights, losses, setting=setting, variance=0.25)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("rule", [best_weights, near_optimal_weights])
def test_weights_sum_to_one_deliver_no_more_than_allowed_and_price_themselves(setting: str, rule: object) -> None:
    losses = random_losses(np.random.default_rng(5), 40)
    result = rule(losses, setting=setting, variance=0.25)  # type: ignore[operator]
    assert result.weights.sum() == pytest.approx(1, abs=1e-12)
    assert (result.delivered <= losses).all()
    assert mse_of(result.weights, result.delivered, setting=setting, variance=0.25) == pytest.approx(result.mse)
    assert mse_of(result.weights, losses, setting=setting, variance=0.25) <= result.mse * (1 + 1e-12)


def test_a_known_cap() -> None:
    # Two people at 1 and one who would allow 50: κ = (2/V + 2)/2 = 5.
    best = best_weights([1.0, 50.0, 1.0], setting="central", variance=0.25)
    assert best.delivered.tolist() == [1.0, 5.0, 1.0]
    assert best.mse == pytest.approx((2 + 0.25 * 27) / 49)


def test_the_local_weights_are_inverse_variances() -> None:
    best = best_weights([1.0, 2.0, 0.0], setting="local", variance=0.25)
    precisions = np.array([1 / 2.25, 1 / 0.75, 0.0])
    assert best.weights == pytest.approx(precisions / precisions.sum())
    assert best.mse == pytest.approx(1 / precisions.sum())


def test_people_with_zero_loss_get_no_weight() -> None:
    for setting in SETTINGS:
        for rule in (best_weights, near_optimal_weights):
            assert rule([0.0, 1.0, -0.0], setting=setting, variance=0.25).weights.tolist() == [0.0, 1.0, 0.0]  # type: ignore[arg-type]


def test_an_infinite_loss_is_capped_like_any_other_when_somebody_has_a_finite_one() -> None:
    best = best_weights([1.0, math.inf], setting="central", variance=0.25)
    assert best.delivered.tolist() == [1.0, 9.0]
    assert best.mse == pytest.approx((2 + 0.25 * 82) / 100)
    assert best.mse < 0.25  # better than the second person's datum alone, without noise


@pytest.mark.parametrize("setting", SETTINGS)
def test_infinite_losses_alone_mean_no_noise(setting: str) -> None:
    best = best_weights([math.inf, 0.0, math.inf], setting=setting, variance=0.25)
    assert best.weights.tolist() == [0.5, 0.0, 0.5]
    assert best.mse == pytest.approx(0.125)


@each("setting", SETTINGS)
@each("rule", [best_weights, near_optimal_weights])
@each("losses", [[5e-324], [5e-324, 1e300], [1e300, 1.7e308], [1e-300, 1e-310], [1e-160, 1.0, 1e160]])
def test_extreme_losses_neither_overflow_nor_warn(setting: str, rule: object, losses: list[float]) -> None:
    result = rule(losses, setting=setting, variance=0.25)  # type: ignore[operator]
    assert result.weights.sum() == pytest.approx(1)
    assert (result.delivered <= losses).all()
    assert result.mse > 0


@pytest.mark.parametrize("setting", SETTINGS)
def test_doubling_every_loss_never_hurts(setting: str) -> None:
    losses = random_losses(np.random.default_rng(2), 25)
    errors = [best_weights(losses * 2**k, setting=setting, variance=0.25).mse for k in range(-5, 6)]
    assert errors == sorted(errors, reverse=True)


@each("setting", SETTINGS)
@each("seed", range(25))
def test_the_lower_bound_lies_below_the_upper(setting: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 300))
    losses = np.exp(rng.uniform(-8, 2, size=n))
    bounds = minimax_bounds(losses, setting)
    assert 0 < bounds.lower < bounds.upper <= 0.25


def test_the_lower_bounds_have_their_stated_constants() -> None:
    losses = np.array([0.1, 0.2, 0.3])
    distance = min(4 * losses[:k].sum() + math.sqrt(1.5 * (3 - k)) for k in range(4))
    assert minimax_bounds(losses, "central").lower == pytest.approx(1 / (54 * distance**2))
    assert minimax_bounds([0.05], "central").lower == pytest.approx((1 - 0.2 / 2) / 32)
    many = np.full(100, 0.5)
    assert minimax_bounds(many, "local").lower == pytest.approx(1 / (216 * 25))
    assert minimax_bounds([0.3], "local").lower == pytest.approx((1 - 0.3) / 32)
    assert minimax_bounds([0.0, 0.0], "local").lower == minimax_bounds([0.0], "central").lower == 1 / 32


@pytest.mark.parametrize("n", [10, 1000, 100_000])
def test_the_bounds_are_within_their_promised_factors(n: int) -> None:
    rng = np.random.default_rng(n)
    for low in (-12, -6, -1):
        losses = np.exp(rng.uniform(low, 0, size=n))
        central, local = minimax_bounds(losses, "central"), minimax_bounds(losses, "local")
        assert central.upper / central.lower <= 300 * math.log(n + 1)
        assert local.upper / local.lower <= 600


@each(
    ("losses", "message"),
    [
        ([], "nonempty"),
        ([[1.0]], "one-dimensional"),
        ([1.0, -0.5], "row 1"),
        ([math.nan, 1.0], "row 0"),
        ([0.0, 0.0], "at least one"),
        (["a"], "numbers"),
    ],
)
def test_losses_that_make_no_sense_are_refused(losses: list[object], message: str) -> None:
    for rule in (best_weights, near_optimal_weights):
        with pytest.raises(InputError, match=message):
            rule(losses, setting="central", variance=0.25)


def test_other_arguments_are_checked_too() -> None:
    with pytest.raises(InputError, match="setting must be 'central' or 'local', got 'global'"):
        best_weights([1.0], setting="global", variance=0.25)  # type: ignore[arg-type]
    for variance in (-1.0, math.nan, math.inf, [0.1, 0.2]):
        with pytest.raises(InputError, match="variance"):
            best_weights([1.0], setting="central", variance=variance)
    with pytest.raises(InputError, match="sum to 1"):
        mse_of([0.5, 0.2], [1.0, 1.0], setting="central", variance=0.25)
    with pytest.raises(InputError, match="one entry per person"):
        mse_of([1.0], [1.0, 1.0], setting="central", variance=0.25)


def test_weight_on_somebody_with_zero_loss_costs_infinite_noise() -> None:
    for setting in SETTINGS:
        assert mse_of([0.5, 0.5], [1.0, 0.0], setting=setting, variance=0.25) == math.inf  # type: ignore[arg-type]


# -- contrasts ---------------------------------------------------------------------------------------------------------


def least_contrast_error(allowed: np.ndarray, variance: np.ndarray, strata: Strata, rng: np.random.Generator) -> float:
    """The least error that a general solver finds over uses ``v ≤ ε`` that are in the wanted proportions."""
    sizes, best = np.abs(strata.weights), math.inf
    members = [strata.codes == g for g in range(strata.count)]
    for _ in range(4):
        used = allowed * rng.uniform(0.01, 1.0, allowed.size)
        strength = min(used[mine].sum() / size for mine, size in zip(members, sizes, strict=True))
        for mine, size in zip(members, sizes, strict=True):
            used[mine] *= size * strength / used[mine].sum()
        found = minimize(
            lambda x: (2.0 + np.sum(variance * x[:-1] ** 2)) / x[-1] ** 2,
            np.append(used, strength),
            method="SLSQP",
            bounds=[(0.0, most) for most in allowed] + [(1e-6, None)],
            constraints=[
                {"type": "eq", "fun": lambda x, mine=mine, size=size: x[:-1][mine].sum() - size * x[-1]}
                for mine, size in zip(members, sizes, strict=True)
            ],
            options={"ftol": 1e-15, "maxiter": 500},
        )
        best = min(best, found.fun if found.success else math.inf)
    return best


def test_no_general_solver_finds_a_better_contrast_of_who_is_left() -> None:
    rng, reached = np.random.default_rng(21), 0
    for _ in range(12):
        strata = int(rng.integers(1, 4))
        n = int(rng.integers(strata, 9))
        codes = np.concatenate([np.arange(strata), rng.integers(0, strata, n - strata)])
        contrast = Strata(codes=codes, weights=rng.normal(size=strata))
        allowed, variance = np.exp(rng.normal(size=n) * 1.5), rng.uniform(0.02, 0.25, n)
        found = best_contrast(allowed, strata=contrast, variance=variance)
        assert (found.delivered <= allowed).all()
        assert found.delivered == pytest.approx(found.strength * np.abs(found.weights), rel=1e-12)
        assert [found.weights[codes == g].sum() for g in range(strata)] == pytest.approx(contrast.weights, rel=1e-12)
        best = least_contrast_error(allowed, variance, contrast, rng)
        assert best >= found.mse * (1.0 - 1e-9)
        reached += best <= found.mse * (1.0 + 1e-7)
    assert reached >= 9, "the other solver must come close often enough to be a judge"


def test_a_contrast_of_one_stratum_is_the_best_mean() -> None:
    rng = np.random.default_rng(22)
    allowed, variance = np.append(np.exp(rng.normal(size=9) * 2.0), math.inf), rng.uniform(0.02, 0.25, 10)
    mean = best_weights(allowed, setting="central", variance=variance)
    found = best_contrast(allowed, strata=Strata(codes=np.zeros(10, dtype=int), weights=[1.0]), variance=variance)
    assert found.weights == pytest.approx(mean.weights, rel=1e-12)
    assert (found.mse, *found.delivered) == pytest.approx((mean.mse, *mean.delivered), rel=1e-12)


def test_who_promises_nothing_in_every_stratum_needs_no_noise() -> None:
    strata = Strata(codes=[0, 0, 1], weights=[1.0, -1.0])
    found = best_contrast([math.inf] * 3, strata=strata, variance=0.25)
    assert found.strength == math.inf
    assert found.weights.tolist() == [0.5, 0.5, -1.0]
    assert found.mse == 0.375


def test_a_stratum_with_nobody_left_is_refused_by_name() -> None:
    strata = Strata(codes=[0, 0, 1], weights=[1.0, -1.0], names=("men", "women"))
    with pytest.raises(NothingDelivered, match="Nobody of stratum 'women' is left"):
        best_contrast([1.0, 1.0, 0.0], strata=strata, variance=0.25)
    with pytest.raises(NothingDelivered, match="Nobody of stratum 'men' is left"):
        best_contrast([2.0], strata=strata.of(np.array([2])), variance=0.25)


@each(
    ("codes", "weights", "told"),
    [
        ([0, 2], [1.0, 1.0], "codes must be from 0 to 1, one per stratum, but row 1 is 2"),
        ([0, 1], [1.0, 0.0], "weights must be finite, not 0"),
        ([0, 1], [1.0, math.nan], "weights must be finite, not 0"),
        ([0.5, 1.0], [1.0, 1.0], "codes must be one whole number per person"),
        ([0], [], "weights must be one number per stratum"),
    ],
)
def test_strata_that_make_no_sense_are_refused(codes: list[float], weights: list[float], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Strata(codes=codes, weights=weights)  # type: ignore[arg-type]
