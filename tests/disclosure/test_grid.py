"""The integer grid: exact at the edges, and checks that really refuse."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hushbid.disclosure import grid, noise
from hushbid.disclosure.grid import check_promises, exact_sum, exponent_of, integer_weights, to_grid
from hushbid.errors import ReleaseError


def test_data_are_clamped_and_rounded_down_onto_the_grid() -> None:
    values = np.array([-math.inf, -0.1, -0.0, 0.0, 0.5, 1.0, math.nextafter(1.0, 2.0), 1e300, math.inf])
    assert to_grid(values, (0.0, 1.0), bits=4).tolist() == [0, 0, 0, 0, 8, 16, 16, 16, 16]
    assert to_grid(np.array([0.999, 0.0624]), (0.0, 1.0), bits=4).tolist() == [15, 0]


def test_weights_are_exact_floors() -> None:
    losses = np.array([0.1, 1.0, 2.5, 0.0, 5e-324])
    exponent = exponent_of(losses)
    weights = integer_weights(losses, exponent)
    assert weights.tolist() == [math.floor(Fraction(float(loss)) * Fraction(2) ** exponent) for loss in losses]
    assert exponent == grid.LARGEST_EXPONENT


@pytest.mark.parametrize("losses", [np.full(1000, 1e300), np.array([1.7e308] * 3), np.array([1e-10, 1e200])])
def test_enormous_losses_still_fit_in_sixty_bits(losses: np.ndarray) -> None:
    exponent = exponent_of(losses)
    weights = integer_weights(losses, exponent)
    assert 0 < int(weights.astype(object).sum()) <= 2**60
    assert exponent < 0
    assert all(
        Fraction(int(w)) <= Fraction(float(e)) * Fraction(2) ** exponent for w, e in zip(weights, losses, strict=True)
    )


def test_the_total_weight_uses_its_sixty_bits() -> None:
    losses = np.full(10**6, 1.0)
    weights = integer_weights(losses, exponent_of(losses))
    assert 2**58 <= int(weights.sum()) <= 2**60


def test_sums_are_exact_beyond_sixty_four_bits() -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 2**58, size=1000)
    values = rng.integers(0, 2**40, size=1000, endpoint=True)
    assert exact_sum(weights, values) == sum(int(w) * int(x) for w, x in zip(weights, values, strict=True))
    assert exact_sum(np.array([2**60]), np.array([2**40])) == 2**100


def test_sums_are_exact_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "_BLOCK", 7)
    weights, values = np.arange(100) * 2**50, np.arange(100)[::-1] * 2**33
    assert exact_sum(weights, values) == sum(int(w) * int(x) for w, x in zip(weights, values, strict=True))


def test_a_float_floor_would_break_promises_that_ours_keeps() -> None:
    # The textbook G·ε/S in floating point overshoots; the dyadic grid cannot.
    rng = np.random.default_rng(3)
    overshoots = 0
    for losses in rng.exponential(size=(500, 2)):
        total, resolution = losses.sum(), 2.0**52
        careless = np.floor(resolution * (losses / total))
        overshoots += any(
            Fraction(w) * sum(map(Fraction, losses)) > Fraction(resolution) * Fraction(e)
            for w, e in zip(careless.tolist(), losses.tolist(), strict=True)
        )
        exponent = exponent_of(losses)
        weights = integer_weights(losses, exponent)
        assert check_promises(weights, exponent, losses).people_in_fractions == 2
    assert overshoots > 50


def test_one_unit_too_much_for_one_person_is_refused() -> None:
    losses = np.array([0.1, 0.7, 1.3])
    exponent = exponent_of(losses)
    weights = integer_weights(losses, exponent)
    check_promises(weights, exponent, losses)
    for row in range(3):
        spoiled = weights.copy()
        spoiled[row] = math.floor(Fraction(float(losses[row])) * 2**exponent) + 1
        with pytest.raises(ReleaseError, match=f"promise made to row {row}; nothing was drawn"):
            check_promises(spoiled, exponent, losses)


def test_the_fraction_check_refuses_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "_kept_in_integers", lambda weights, *_: np.ones(weights.shape, dtype=np.bool_))
    with pytest.raises(ReleaseError, match="disagree"):
        check_promises(np.array([2]), 0, np.array([1.5]))


def test_opendp_is_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def a_little_more(sensitivities: list[int], *, scale: float) -> list[float]:
        return [math.nextafter(sensitivity / scale, math.inf) for sensitivity in sensitivities]

    monkeypatch.setattr(noise, "loss_bounds", a_little_more)
    with pytest.raises(ReleaseError, match="OpenDP's bound"):
        check_promises(np.array([1]), 0, np.array([1.0]))


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ReleaseError, match="row 1"):
        check_promises(np.array([1, -1]), 0, np.array([1.0, 1.0]))


def test_above_ten_thousand_people_a_random_sample_is_checked_with_fractions() -> None:
    losses = np.full(10_001, 0.3)
    exponent = exponent_of(losses)
    weights = integer_weights(losses, exponent)
    check = check_promises(weights, exponent, losses)
    assert (check.people, check.people_in_fractions) == (10_001, 10_000)
    assert 0 < check.people_mapped <= 16
    assert check.largest_share <= 1.0


def test_an_unlimited_promise_allows_any_weight_and_a_zero_one_none() -> None:
    assert check_promises(np.array([5, 0]), 0, np.array([math.inf, 0.0])).people == 2
    with pytest.raises(ReleaseError, match="row 1"):
        check_promises(np.array([5, 1]), 0, np.array([math.inf, 0.0]))
