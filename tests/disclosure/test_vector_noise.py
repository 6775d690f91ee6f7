"""Noise on several integers at once is exactly what it says. Every statistical test shows that it would notice another.

There is no seed, so right noise fails one of these tests with probability below 1e-6.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hushbid.disclosure import noise
from hushbid.errors import ReleaseError

ALARM = 1e-7
SAMPLES = 8_000
Draw = Callable[..., list[list[int]]]


def box_size(z: tuple[int, ...]) -> int:
    return max(map(abs, z))


def choice_size(z: tuple[int, ...]) -> int:
    return sum(max(one, 0) for one in z)


def points(cells: int, reach: int, choice: bool) -> list[tuple[int, ...]]:
    """All vectors up to a size."""
    cube = itertools.product(range(-reach, reach + 1), repeat=cells)
    return [z for z in cube if not choice or (sum(z) == 0 and choice_size(z) <= reach)]


def ways(cells: int, size: int, choice: bool) -> int:
    """How many vectors have a size, by counting."""
    if size == 0:
        return 1
    if not choice:
        return (2 * size + 1) ** cells - (2 * size - 1) ** cells
    return sum(
        math.comb(cells, j) * math.comb(size - 1, j - 1) * math.comb(size + cells - j - 1, cells - j - 1)
        for j in range(1, cells)
    )


def p_value(drawn: list[list[int]], cells: int, choice: bool, scale: float, reach: int) -> float:
    """Chi-square over all vectors up to ``reach``, and farther ones by their size."""
    size, q = (choice_size if choice else box_size), math.exp(-1.0 / scale)
    near, far = points(cells, reach, choice), range(reach + 1, math.ceil(reach + 3 * cells * scale))
    whole = math.fsum(ways(cells, m, choice) * q**m for m in range(1000))
    mass = [q ** size(z) / whole for z in near] + [ways(cells, m, choice) * q**m / whole for m in far]
    counts, sizes = Counter(map(tuple, drawn)), Counter(size(tuple(row)) for row in drawn)
    seen = [counts[z] for z in near] + [sizes[m] for m in far]
    observed, expected = [*seen, len(drawn) - sum(seen)], np.array([*mass, 1.0 - math.fsum(mass)])
    return float(stats.chisquare(observed, expected * len(drawn)).pvalue)


def test_cubes_and_simplices_are_counted_as_the_mixtures_say() -> None:
    for cells in range(1, 7):
        added = noise._box_starts(cells)
        weights = [high - low for low, high in itertools.pairwise([0, *added])]
        assert added[-1] == 2**cells * math.factorial(cells)
        for r in range(8):
            found = sum(w * math.comb(r - k + cells, cells) for k, w in enumerate(weights) if k <= r)
            assert found == (2 * r + 1) ** cells
    for cells in (2, 3, 4):
        counted = Counter(choice_size(z) for z in points(cells, 4, choice=True))
        weights = [high - low for low, high in itertools.pairwise([0, *noise._choice_starts(cells)])]
        for m in range(5):
            terms = [w * math.comb(m - k + cells - 2, cells - 2) for k, w in enumerate(weights) if k <= m]
            assert sum(terms) == counted[m] == ways(cells, m, choice=True)


@pytest.mark.parametrize(
    ("cells", "choice", "scale", "reach"),
    [(2, False, 2.0, 3), (3, False, 1.3, 1), (3, True, 1.5, 2), (4, True, 1.3, 2)],
)
def test_small_scales_match_the_distribution_and_no_other(cells: int, choice: bool, scale: float, reach: int) -> None:
    draw: Draw = noise.draw_choices if choice else noise.draw_boxes
    drawn = draw([[0] * cells] * SAMPLES, scale=scale)
    assert p_value(drawn, cells, choice, scale, reach) > ALARM
    for wrong in (0.8, 1.25):  # seen by a wide margin: p-values below 1e-100
        assert p_value(drawn, cells, choice, scale * wrong, reach) < ALARM


@pytest.mark.parametrize(("cells", "choice"), [(5, False), (200, False), (5, True), (100, True)])
def test_large_scales_need_no_room(cells: int, choice: bool) -> None:
    """The size of a vector decides its probability; in the limit it is a Gamma variable."""
    draw: Draw = noise.draw_choices if choice else noise.draw_boxes
    totals = [2**60 - 7 * k for k in range(cells)]
    count = 20_000 // cells
    drawn = draw([totals] * count, scale=2.0**54)
    moved = [tuple(one - total for one, total in zip(row, totals, strict=True)) for row in drawn]
    sizes = np.array([(choice_size if choice else box_size)(z) / 2**54 for z in moved])
    shape = cells - 1 if choice else cells
    assert stats.kstest(sizes, "gamma", args=(shape,)).pvalue > ALARM
    spread = math.sqrt(shape / count)
    assert abs(sizes.mean() - shape) < 6 * spread
    if shape * count > 10_000:
        assert abs(sizes.mean() / 0.9 - shape) > 6 * spread  # a scale a tenth too small would be seen
    if choice:
        assert all(sum(z) == 0 for z in moved)


def test_a_box_with_one_cell_is_the_noise_of_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def draw_many(totals: list[int], *, scale: float) -> list[int]:
        seen.append((totals, scale))
        return [total + 3 for total in totals]

    monkeypatch.setattr(noise, "draw_many", draw_many)
    assert noise.draw_boxes([[5], [6]], scale=0.5) == [[8], [9]]
    assert seen == [([5, 6], 0.5)]


def test_the_cells_of_a_vector_are_alike_and_vectors_independent() -> None:
    drawn = np.array(noise.draw_boxes([[0, 0, 0]] * 4000, scale=2.0**40), dtype=np.float64)
    assert stats.ks_2samp(drawn[:2000, 0], drawn[2000:, 2]).pvalue > ALARM
    signs = np.sign(drawn)
    assert abs(np.sum(signs[1:, 0] * signs[:-1, 0])) < 6 * math.sqrt(4000)
    assert abs(np.sum(signs[:, 0] * signs[:, 1])) < 6 * math.sqrt(4000)
    shares = np.array(noise.draw_choices([[0, 0, 0]] * 3000, scale=2.0**40), dtype=np.float64)
    assert stats.ks_2samp(shares[:1500, 0], shares[1500:, 2]).pvalue > ALARM
    assert stats.ks_2samp(shares[:1500, 1], -shares[1500:, 1]).pvalue > ALARM


@pytest.mark.parametrize("choice", [False, True])
def test_moving_the_sums_by_one_unit_changes_no_probability_by_more_than_one_scale(choice: bool) -> None:
    """In rational exponents: ``log P(z)/P(z − v) = (size(z − v) − size(z))/scale`` for every output near."""
    size, scale = (choice_size if choice else box_size), Fraction(7, 2)
    moves = [z for z in points(3, 2, choice) if size(z) == 1]
    losses = {
        v: max(
            abs(Fraction(size(tuple(a - b for a, b in zip(z, v, strict=True))) - size(z))) / scale
            for z in points(3, 4, choice)
        )
        for v in moves
    }
    assert set(losses.values()) == {1 / scale}  # and it is reached
    assert len(moves) == (6 if choice else 26)
    double = tuple(2 * one for one in moves[0])
    assert size(double) / scale > 1 / scale


@pytest.mark.parametrize("draw", [noise.draw_boxes, noise.draw_choices])
def test_vectors_that_cannot_have_noise_are_refused(draw: Draw) -> None:
    with pytest.raises(ReleaseError, match="one length"):
        draw([[1, 2], [3]], scale=8.0)
    with pytest.raises(ReleaseError, match="size at most"):
        draw([[1, 2**60 + 1]], scale=8.0)
    with pytest.raises(ReleaseError, match=r"at least 0\.5 for 2 cells"):
        draw([[1, 2]], scale=0.4)
    with pytest.raises(ReleaseError, match="at most 2"):
        draw([[1, 2]], scale=2.0**55)
    assert draw([], scale=1.0) == []


def test_a_choice_has_two_answers() -> None:
    with pytest.raises(ReleaseError, match="at least 2 cells"):
        noise.draw_choices([[1]], scale=8.0)
