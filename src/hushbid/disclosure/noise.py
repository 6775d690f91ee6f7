"""Noise on integers, from OpenDP's exact sampler, and coins. The only place that draws noise for a release.

*One number*: discrete Laplace, ``P(k) ∝ exp(−|k|/scale)`` on all integers, sampled with integer arithmetic only, in
which the scale, a double, is the exact rational number that it is; random bits come from the operating system, as a
seed or one by one. There is no seed to pass. Adding this noise to an integer that one person can change by at most d
costs her exactly ``d/scale``.

*Several at once*, with ``q = exp(−1/scale)``: a box has ``P(z) ∝ q**max|z_j|`` on all vectors of d integers, and a
choice ``P(z) ∝ q**Σz⁺`` on those that add up to 0. Whoever can change no cell by more than d, or can move d from one
cell to another, loses ``d/scale`` for all cells together. Both are exact mixtures that need no other draws:

- a discrete Laplace draw k is geometric, ``P(g) ∝ q**g`` on 0, 1, …, if a negative k counts as ``−k − 1``, and such a
  draw is at least k with probability ``q**k``;
- ``exp(−max|z|/scale)`` mixes cubes of radius r, on each of which z is uniform, with weights ``(2r+1)**d·q**r``, and
  ``(2r+1)**d = Σ_k B(d,k)·C(r−k+d, d)`` with Eulerian numbers of type B. So k is drawn with weights ``B(d,k)``, kept
  with probability ``q**k``, and r is k plus d + 1 geometric draws;
- of the vectors that add up to 0 there are ``Σ_k C(d−1,k)²·C(m−k+d−2, d−2)`` with ``Σz⁺ = m``: likewise m is k plus
  d − 1 geometric draws, and z is uniform on these.

*A yes or no*: no noise is added, the answer is true with odds ``e^ε : 1``, ε the ratio of two integers of any size. A
fair coin: tails, it is the truth; heads, it is the opposite with probability ``e^−ε``, and else all begins again. And
that probability takes no exponential either: for ε up to 1 keep on drawing, the k-th time with a chance of ``ε/k``,
until it fails; it fails at an odd k with probability ``Σ_j (−ε)^j/j!``. A larger ε is so many times 1 and the rest, all
of which must come true. So everything is chances of two integers, from the operating system's bits.

OpenDP saturates at 64 bits and accepts a zero scale, so both are refused here: totals stay within ``2**60`` and scales
within ``2**54``, which leaves a draw room for 448 scales (it needs more with probability below ``exp(−448)``; for one
number saturating would still be private). Sums of draws are integers of any size. Time depends slightly on the value
drawn: publish no timings.
"""

import bisect
import functools
import itertools
import math
import random
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from hushbid.errors import MissingExtra, ReleaseError

LARGEST_TOTAL = 2**60
LARGEST_SCALE = 2.0**54
LEAST_STEPS = 0.25
"""The scale must be so many steps for each cell of a vector: with less, the first step would be repeated for ever."""

_system = random.SystemRandom()  # the operating system's bits, without a seed


def draw_many(totals: Sequence[int], *, scale: float) -> list[int]:
    """Every total plus noise of its own; one call for many is ten times faster than a call for each."""
    _refuse_totals(totals)
    if not totals:
        return []
    return [int(noisy) for noisy in _measurement(scale)(list(totals))]


def draw_cells(totals: Sequence[Sequence[int]], *, scale: float, choice: bool) -> list[list[int]]:
    """Return every vector of a group's cells plus the group's noise."""
    return draw_choices(totals, scale=scale) if choice else draw_boxes(totals, scale=scale)


def draw_boxes(totals: Sequence[Sequence[int]], *, scale: float) -> list[list[int]]:
    """Every vector of totals plus a box noise of its own; all have the same number of cells, 1 or more."""
    cells = _cells_of(totals, scale)
    if cells == 1:  # a box with one cell is the discrete Laplace noise itself
        return [[noisy] for noisy in draw_many([total for [total] in totals], scale=scale)]
    radii = _sizes(len(totals), _box_starts(cells), cells + 1, scale)
    return [
        [total + _system.randrange(2 * radius + 1) - radius for total in row]
        for row, radius in zip(totals, radii, strict=True)
    ]


def draw_choices(totals: Sequence[Sequence[int]], *, scale: float) -> list[list[int]]:
    """Every vector of totals plus a choice's noise of its own, which adds up to 0, 2 cells or more."""
    cells = _cells_of(totals, scale)
    if cells == 1 and totals:
        raise ReleaseError("A choice has at least 2 cells.")
    sizes = _sizes(len(totals), _choice_starts(cells), cells - 1, scale)
    return [
        [total + moved for total, moved in zip(row, _moves(cells, size), strict=True)]
        for row, size in zip(totals, sizes, strict=True)
    ]


def flip_many(truths: Sequence[int], numerator: int, denominator: int) -> list[int]:
    """Every truth, 0 or 1, or else the opposite; the truth with odds ``e^ε : 1``, ε the ratio, which is positive."""
    if not (numerator > 0 and denominator > 0 and all(truth in (0, 1) for truth in truths)):
        raise ReleaseError("A coin is flipped for answers that are 0 or 1, with a positive privacy loss.")
    return [_response(truth, numerator, denominator) for truth in truths]


def loss_bounds(sensitivities: Sequence[int], *, scale: float) -> list[float]:
    """OpenDP's own upper bound on the privacy loss of somebody who can change the total by so much, for each."""
    measurement = _measurement(scale)
    return [float(measurement.map(sensitivity)) for sensitivity in sensitivities]


def sampler_version() -> str:
    """The version of OpenDP that draws the noise."""
    return version("opendp")


def _measurement(scale: float) -> Any:
    if not (isinstance(scale, float) and 0.0 < scale <= LARGEST_SCALE):  # also refuses NaN
        raise ReleaseError(f"The noise scale must be positive and at most 2**54, got {scale}.")
    try:  # not opendp.prelude, which loads Polars and scikit-learn where they are installed
        from opendp import domains, measurements, metrics
        from opendp.mod import enable_features
    except ImportError:
        raise MissingExtra("Drawing noise needs OpenDP: pip install '.[release]' in a checkout.") from None
    enable_features("contrib")
    integers = domains.atom_domain(T="i64")
    return measurements.make_laplace(domains.vector_domain(integers), metrics.l1_distance(T="i64"), scale=scale)


def _refuse_totals(totals: Sequence[int]) -> None:
    if not all(isinstance(total, int) and abs(total) <= LARGEST_TOTAL for total in totals):
        raise ReleaseError(f"Noise is added to integers of size at most 2**60 = {LARGEST_TOTAL}.")


# -- vectors -----------------------------------------------------------------------------------------------------------


def _cells_of(totals: Sequence[Sequence[int]], scale: float) -> int:
    """How many cells every vector has; 1 if there is none."""
    cells = len(totals[0]) if totals else 1
    if cells == 0 or any(len(row) != cells for row in totals):
        raise ReleaseError("Noise is added to vectors of one length, at least 1.")
    for row in totals:
        _refuse_totals(row)
    if cells > 1 and not scale >= LEAST_STEPS * cells:
        raise ReleaseError(f"The noise scale must be at least {LEAST_STEPS * cells:g} for {cells} cells, got {scale}.")
    return cells


def _sizes(count: int, starts: Sequence[int], terms: int, scale: float) -> list[int]:
    """So many integers r, each with probability ``∝ q**r·Σ_k weight_k·C(r−k+terms−1, terms−1)``.

    ``starts`` are the weights of k = 0, 1, …, added up.
    """
    sizes: list[int] = []
    while len(sizes) < count:
        drawn = [_place(starts) for _ in range(count - len(sizes))]
        # kept with probability q**k
        kept = [k for k, limit in zip(drawn, _geometric(len(drawn), scale), strict=True) if limit >= k]
        added = iter(_geometric(len(kept) * terms, scale))
        sizes += [k + sum(itertools.islice(added, terms)) for k in kept]
    return sizes


def _geometric(count: int, scale: float) -> list[int]:
    """So many integers g = 0, 1, …, each with probability ``∝ q**g``."""
    return [drawn if drawn >= 0 else -drawn - 1 for drawn in draw_many([0] * count, scale=scale)]


def _place(added: Sequence[int]) -> int:
    """A place, with probability proportional to its weight; the weights are added up."""
    return bisect.bisect_right(added, _system.randrange(added[-1]))


@functools.lru_cache(maxsize=256)
def _box_starts(cells: int) -> tuple[int, ...]:
    """The Eulerian numbers of type B, added up: 1, 1; 1, 6, 1; 1, 23, 23, 1; …"""
    row = [1]
    for n in range(1, cells + 1):
        padded = [0, *row, 0]
        row = [(2 * k + 1) * padded[k + 1] + (2 * (n - k) + 1) * padded[k] for k in range(n + 1)]
    return tuple(itertools.accumulate(row))


@functools.lru_cache(maxsize=256)
def _choice_starts(cells: int) -> tuple[int, ...]:
    """The weights ``C(d−1,k)²``, added up."""
    return tuple(itertools.accumulate(math.comb(cells - 1, k) ** 2 for k in range(cells)))


def _moves(cells: int, size: int) -> list[int]:
    """A vector that adds up to 0 and whose positive cells add up to ``size``, each equally likely."""
    moved = [0] * cells
    if size == 0:
        return moved
    # how many cells are positive: as many vectors have j as C(d,j)·C(m−1,j−1)·C(m+d−j−1,d−j−1)
    rising, falling = [1], [1]
    for j in range(1, cells - 1):
        rising.append(rising[-1] * (size - j) // j)
        falling.append(falling[-1] * (size + j) // j)
    ways = [math.comb(cells, j) * rising[j - 1] * falling[cells - j - 1] for j in range(1, cells)]
    positive = 1 + _place(tuple(itertools.accumulate(ways)))
    places = _system.sample(range(cells), cells)
    # m as j positive parts; and as d − j parts that may be 0: each as if it were one larger
    for place, part in zip(places[:positive], _parts(size, positive), strict=True):
        moved[place] = part
    for place, part in zip(places[positive:], _parts(size + cells - positive, cells - positive), strict=True):
        moved[place] = 1 - part
    return moved


def _parts(whole: int, count: int) -> list[int]:
    """A whole as so many positive parts in order, each way equally likely."""
    cuts: set[int] = set()
    while len(cuts) < count - 1:  # anew where a cut is there already: every set of cuts is equally likely
        cuts.add(1 + _system.randrange(whole - 1))
    ends = [0, *sorted(cuts), whole]
    return [end - start for start, end in itertools.pairwise(ends)]


# -- coins -------------------------------------------------------------------------------------------------------------


def _response(truth: int, numerator: int, denominator: int) -> int:
    while _chance(1, 2):
        if _decays(numerator, denominator):
            return 1 - truth
    return truth


def _decays(numerator: int, denominator: int) -> bool:
    """Whether something of probability ``exp(−numerator/denominator)`` happens."""
    while numerator > denominator:
        if not _decays_a_little(1, 1):
            return False
        numerator -= denominator
    return _decays_a_little(numerator, denominator)


def _decays_a_little(numerator: int, denominator: int) -> bool:
    """The same for a ratio of at most 1."""
    k = 1
    while _chance(numerator, denominator * k):
        k += 1
    return k % 2 == 1


def _chance(numerator: int, denominator: int) -> bool:
    """Whether something of probability ``numerator/denominator`` happens."""
    return _system.randrange(denominator) < numerator
