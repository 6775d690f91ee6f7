"""What the paper states about privacy and estimation, statement by statement.

[F] = Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, arXiv 2201.03968: Lemmas 1, 2 and A1, Theorems 1 and 2,
Proposition 5. docs/reference/statements.md maps every statement to its code and its tests.
"""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from hushbid.disclosure import ReleasePlan
from hushbid.disclosure.noise import loss_bounds
from hushbid.estimation import best_weights, minimax_bounds, mse_of, near_optimal_weights
from tests.disclosure.support import weigh
from tests.extent import each

WORST = 0.25
"""The largest variance on a range of width 1."""

OUTPUTS = np.linspace(-12, 12, 4801)


def laplace(centre: float, scale: float) -> np.ndarray:
    return np.exp(-np.abs(OUTPUTS - centre) / scale) / (2 * scale)


def profiles(seed: int) -> list[np.ndarray]:
    """Losses of at most 1, of several shapes, ascending."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    shapes = [rng.uniform(0, 1, n), rng.uniform(0, 1, n) ** 6, np.full(n, rng.uniform(0.01, 1)), rng.uniform(0, 1, n)]
    shapes[3][: n // 2] *= 1e-3
    shapes.append(rng.uniform(0, 0.02, min(n, 5)))  # so little that two coins can hardly be told apart
    return [np.sort(shape) for shape in shapes]


def rate(losses: np.ndarray) -> float:
    """``max_k 1/(n − k + (Σ_{i≤k} ε_i)²)``, the rate of Theorem 1."""
    n = losses.size
    sums = np.concatenate([[0.0], np.cumsum(np.sort(losses))])
    with np.errstate(divide="ignore"):
        return float(np.max(1 / (np.arange(n, -1, -1) + sums**2)))


# Lemma 1


@each("loss", [0.1, 1.0, 3.0])
@each("sensitivity", [0.25, 1.0, 2.0])
def test_lemma_1_laplace_noise_costs_exactly_its_rate_times_the_sensitivity(loss: float, sensitivity: float) -> None:
    ratio = np.log(laplace(0, 1 / loss) / laplace(sensitivity, 1 / loss))
    assert np.abs(ratio).max() == pytest.approx(loss * sensitivity, rel=1e-12)


@pytest.mark.parametrize(("scale", "shift"), [(8.0, 3), (1024.0, 1024), (2.0**40, 5)])
def test_lemma_1_holds_on_the_integer_grid_that_a_release_uses(scale: float, shift: int) -> None:
    # Discrete Laplace, P(k) ∝ exp(−|k|/scale): a shift by an integer changes a probability by at most exp(shift/scale).
    outputs = np.arange(-50, 51) * max(shift // 10, 1)
    ratio = np.abs((np.abs(outputs - shift) - np.abs(outputs)) / scale)
    assert ratio.max() == pytest.approx(shift / scale, rel=1e-12)
    assert loss_bounds([shift], scale=scale)[0] == pytest.approx(shift / scale, rel=1e-12)


# Lemma 2


@each("seed", range(5))
def test_lemma_2_a_person_loses_her_weight_times_the_noise_rate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, strength = rng.dirichlet(np.ones(4)), rng.uniform(0.5, 5)
    data = rng.uniform(-0.5, 0.5, 4)
    for i in range(4):
        low, high = data.copy(), data.copy()
        low[i], high[i] = -0.5, 0.5  # the two ends of the range: the worst pair of neighbours
        ratio = np.log(laplace(weights @ low, 1 / strength) / laplace(weights @ high, 1 / strength))
        assert np.abs(ratio).max() == pytest.approx(weights[i] * strength, rel=1e-9)


@each("seed", range(5))
def test_lemma_2_the_losses_said_to_be_delivered_are_weight_times_rate(seed: int) -> None:
    losses = np.random.default_rng(seed).uniform(0.1, 4, 7)
    best = best_weights(losses, setting="central", variance=WORST)
    strength = best.delivered.sum()
    assert best.weights * strength == pytest.approx(best.delivered, rel=1e-12)
    assert best.mse == pytest.approx(2 / strength**2 + WORST * np.sum(best.weights**2), rel=1e-12)
    assert (best.delivered <= losses * (1 + 1e-12)).all()
    summed = weigh(ReleasePlan.of(losses, setting="central", bounds=(0, 1)), np.ones(7, dtype=bool))
    assert summed.weights / summed.noise_scale == pytest.approx(losses, rel=1e-9)


# Lemma A1


def total_variation(first: np.ndarray, second: np.ndarray) -> float:
    return 0.5 * float(np.trapezoid(np.abs(first - second), OUTPUTS))


def closeness(bias: float, losses: Sequence[float]) -> float:
    """The lemma's bound on how far outputs under two coins of bias ±δ can be apart, the best over all k."""
    n, divergence = len(losses), bias * math.log((1 + bias) / (1 - bias))
    return min(
        2 * bias * sum(math.exp(loss) - 1 for loss in losses[:k]) + math.sqrt((n - k) / 2 * divergence)
        for k in range(n + 1)
    )


def distance_used(losses: Sequence[float]) -> float:
    """The distance per unit of bias from which the code's lower bound follows, read back from the bound."""
    lower = minimax_bounds(losses, "central").lower
    return 1 / math.sqrt(54 * lower) if lower <= 1 / 96 else 2 * (1 - 32 * lower)  # the best δ is inside, or ½


@each("bias", [0.1, 0.3, 0.5])
@each("losses", [(0.2, 0.2, 0.2), (0.05, 0.3, 1.0), (0.5, 0.7, 0.9)])
def test_lemma_a1_outputs_under_two_coins_are_as_close_as_it_says(bias: float, losses: tuple[float, ...]) -> None:
    n, total = len(losses), sum(losses)
    cubes = np.stack(np.meshgrid(*[[-0.5, 0.5]] * n), axis=-1).reshape(-1, n)
    densities = []
    for sign in (-1, 1):  # the coin lands at its biased side with chance (1 + bias)/2
        chances = np.prod(np.where(np.sign(cubes) == sign, (1 + bias) / 2, (1 - bias) / 2), axis=1)
        centres = cubes @ np.array(losses) / total
        densities.append(sum(p * laplace(c, 1 / total) for p, c in zip(chances, centres, strict=True)))
    distance = total_variation(*densities)
    assert distance <= closeness(bias, losses) <= bias * distance_used(losses)
    assert distance >= bias * total / 20  # and the outputs do differ: the test is not about nothing


def test_lemma_a1_neither_of_its_terms_could_be_much_smaller() -> None:
    bias, loss = 0.1, 0.05
    # One person without privacy: the coins themselves are seen, and they are δ apart.
    assert bias <= closeness(bias, [9.0]) <= 1.01 * bias
    # One person who answers with chance e^ε/(1 + e^ε) as it is: within the factor 4 of the proof.
    seen = bias * math.tanh(loss / 2)
    assert seen <= closeness(bias, [loss]) <= 4.2 * seen


@pytest.mark.parametrize("seed", range(4))
def test_lemma_a1_with_its_constants_the_code_bounds_the_error_from_below(seed: int) -> None:
    for losses in profiles(seed):
        n, sums = losses.size, np.concatenate([[0.0], np.cumsum(losses)])
        # e^ε − 1 ≤ 2ε and log((1 + δ)/(1 − δ)) ≤ 3δ, for ε ≤ 1 and δ ≤ ½
        stated = min(4 * sums[k] + math.sqrt(1.5 * (n - k)) for k in range(n + 1))
        assert distance_used(losses.tolist()) == pytest.approx(stated, rel=1e-12)
        biases = np.linspace(0.01, 0.5, 50)
        assert all(closeness(bias, losses.tolist()) <= bias * stated for bias in biases.tolist())


# Theorem 1


def le_cam(distance: float) -> float:
    """The largest ``δ²/8·(1 − δ·distance)`` over 0 ≤ δ ≤ 1/2, by trying."""
    delta = np.linspace(0, 0.5, 200_001)
    return float(np.max(delta**2 / 8 * (1 - delta * distance)))


@each("seed", range(6))
def test_theorem_1_the_lower_bound_is_the_best_two_coins_can_give(seed: int) -> None:
    for losses in profiles(seed):
        n = losses.size
        distances = [4 * losses[:k].sum() + math.sqrt(1.5 * (n - k)) for k in range(n + 1)]
        assert minimax_bounds(losses, "central").lower == pytest.approx(le_cam(min(distances)), rel=1e-6)


@each("seed", range(6))
def test_theorem_1_the_lower_bound_has_the_stated_rate(seed: int) -> None:
    for losses in profiles(seed):
        # The proof's own constants: (1/16)·((8Σε + √(6(n−k)))^−2 ∧ 1/4), hence c_l = 1/2048.
        assert minimax_bounds(losses, "central").lower >= min(rate(losses), 1) / 2048


@each("seed", range(6))
def test_theorem_1_the_capped_estimator_reaches_the_rate_up_to_a_logarithm_and_is_private(seed: int) -> None:
    for losses in profiles(seed):
        if losses[-1] < 1e-6:
            continue
        found = near_optimal_weights(losses, setting="central", variance=WORST)
        assert (found.delivered <= losses).all()
        strength = found.delivered.sum()
        assert found.weights * strength == pytest.approx(found.delivered, rel=1e-9)
        assert found.mse == pytest.approx(2 / strength**2 + WORST * np.sum(found.weights**2), rel=1e-9)
        # The proof's numerator, with variance 1/4: at most 2 + (1 + Σ 1/i)/4.
        harmonic = np.sum(1 / np.arange(1, losses.size + 1))
        assert found.mse <= (2 + (1 + harmonic) / 4) * rate(losses) * (1 + 1e-9)


def test_theorem_1_the_cap_is_one_over_the_root_of_how_many_exceed_it() -> None:
    # Five people: k* = 1, as ε_4 = 0.8 > 1/√2 but ε_3 = 0.5 < 1/√3.
    found = near_optimal_weights([0.1, 0.2, 0.5, 0.8, 1.0], setting="central", variance=WORST)
    assert found.delivered == pytest.approx([0.1, 0.2, 0.5, 1 / math.sqrt(2), 1 / math.sqrt(2)], rel=1e-12)


# Theorem 2


@each("seed", range(6))
def test_theorem_2_the_lower_bound_is_the_best_two_coins_can_give(seed: int) -> None:
    for losses in profiles(seed):
        root = math.sqrt(np.sum(losses**2))
        bound = minimax_bounds(losses, "local").lower
        assert bound == pytest.approx(le_cam(2 * root), rel=1e-6)
        assert bound >= min(1 / np.sum(losses**2), 1) / 256  # the proof's choice of δ gives 1/256 (∧ 1/64)


@each("seed", range(6))
def test_theorem_2_squared_losses_as_weights_reach_the_rate(seed: int) -> None:
    for losses in profiles(seed):
        if losses[-1] < 1e-6:
            continue
        found = near_optimal_weights(losses, setting="local", variance=WORST)
        squares = losses**2 / np.sum(losses**2)
        assert found.weights == pytest.approx(squares, rel=1e-9, abs=1e-15)
        assert found.mse <= (2 + WORST) / np.sum(losses**2) * (1 + 1e-9)


def test_theorem_2_the_constant_is_attained_when_everybody_allows_one() -> None:
    for n in (1, 7, 100):
        assert near_optimal_weights(np.ones(n), setting="local", variance=WORST).mse == pytest.approx(
            2.25 / n, rel=1e-12
        )


# Proposition 5


@each("seed", range(20))
def test_proposition_5_the_same_weights_and_losses_err_less_centrally(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    weights, losses = rng.dirichlet(np.ones(n)), rng.uniform(0.05, 3, n)
    central, local = (mse_of(weights, losses, setting=s, variance=0.2) for s in ("central", "local"))
    rate_of_noise = np.min(losses / weights)
    assert central == pytest.approx(2 / rate_of_noise**2 + 0.2 * np.sum(weights**2), rel=1e-12)
    assert local == pytest.approx(np.sum(weights**2 * (0.2 + 2 / losses**2)), rel=1e-12)
    assert central <= local
    best = best_weights(losses, setting="central", variance=0.2).mse
    assert best <= best_weights(losses, setting="local", variance=0.2).mse
