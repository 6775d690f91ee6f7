"""The worked example of [F] after its Theorem 1: most people at 1/√n, and √n people at 1 (central setting, V = 1/4).

Keeping every privacy constraint active puts too much weight on the √n: its error falls like 1/√n. The equal-weight
estimator, [F]'s capped construction and the exact optimum all fall like 1/n.
"""

import math
from pathlib import Path

import numpy as np
import pytest

from hushbid.estimation import best_weights, minimax_bounds, mse_of, near_optimal_weights
from tests.extent import each

VARIANCE = 0.25


def example(n: int) -> np.ndarray:
    low = math.floor(n - math.sqrt(n))
    return np.where(np.arange(n) < low, 1 / math.sqrt(n), 1.0)


def errors(n: int) -> dict[str, float]:
    losses = example(n)
    return {
        "all active": mse_of(losses / losses.sum(), losses, setting="central", variance=VARIANCE),
        "equal weights": mse_of(np.full(n, 1 / n), losses, setting="central", variance=VARIANCE),
        "capped": near_optimal_weights(losses, setting="central", variance=VARIANCE).mse,
        "best": best_weights(losses, setting="central", variance=VARIANCE).mse,
    }


@each("n", [4, 9, 100, 10_000, 1_000_000])
def test_the_closed_forms_hold_at_every_size(n: int) -> None:
    root = math.isqrt(n)
    small, square = (n - root) / root, (n - root) / n  # Σ ε and Σ ε² over the people at 1/√n
    found = errors(n)
    assert found["all active"] == pytest.approx((2 + VARIANCE * (square + root)) / (small + root) ** 2)
    assert found["equal weights"] == pytest.approx((2 + VARIANCE) / n)
    cap = 1 / math.sqrt(root) if root > 1 else 1.0
    assert found["capped"] == pytest.approx((2 + VARIANCE * (square + root * cap**2)) / (small + root * cap) ** 2)
    cap = min(1.0, (2 / VARIANCE + square) / small)
    assert found["best"] == pytest.approx((2 + VARIANCE * (square + root * cap**2)) / (small + root * cap) ** 2)


def test_at_small_n_the_optimum_keeps_every_constraint_active() -> None:
    for n in (4, 9, 81):
        losses = example(n)
        assert best_weights(losses, setting="central", variance=VARIANCE).delivered.tolist() == losses.tolist()


def test_from_a_hundred_people_on_the_optimum_gives_the_willing_more_privacy_than_they_asked_for() -> None:
    for n in (100, 10_000, 1_000_000):
        delivered = best_weights(example(n), setting="central", variance=VARIANCE).delivered
        root = math.isqrt(n)
        assert delivered[-1] == pytest.approx((8 + 1 - 1 / root) / (root - 1))
        assert delivered[-1] < 1
        assert (delivered[: n - root] == 1 / math.sqrt(n)).all()


def test_only_keeping_everything_active_loses_the_rate() -> None:
    small, large = errors(10_000), errors(1_000_000)
    rates = {name: math.log(small[name] / large[name], 100) for name in small}
    assert rates["all active"] == pytest.approx(0.5, abs=0.06)
    for name in ("equal weights", "capped", "best"):
        assert rates[name] == pytest.approx(1.0, abs=0.06)
    assert large["best"] < min(large["equal weights"], large["capped"])


@pytest.mark.parametrize("n", [4, 100, 10_000, 1_000_000])
def test_the_minimax_lower_bound_is_of_order_one_over_n(n: int) -> None:
    bounds = minimax_bounds(example(n), "central")
    assert bounds.lower <= errors(n)["best"]
    assert bounds.lower * n >= 1 / (54 * 16 * 4)


def test_the_table_in_the_documentation_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts" / "proofs.md").read_text(encoding="utf-8")
    table = [line for line in page.splitlines() if line.startswith("| ") and line[2].isdigit()]
    rows = [[float(cell) for cell in line.strip("| ").split("|")] for line in table]
    assert [row[0] for row in rows] == [4, 100, 10_000, 1_000_000]
    for size, *shown in rows:
        n = int(size)
        losses = example(n)
        used = best_weights(losses, setting="central", variance=VARIANCE).delivered[-1]
        computed = [*(error * n for error in errors(n).values()), used, minimax_bounds(losses, "central").lower * n]
        assert shown == pytest.approx(computed, abs=5e-4, rel=1e-3)
