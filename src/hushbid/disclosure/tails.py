"""How far one cell of a noise lies from 0: the same form for one number, for a box and for a choice.

At scale 1 and in the continuous limit, a cell Z of a noise (`hushbid.disclosure.noise`) is symmetric with

    P(|Z| ≥ t) = e^(−t) · Σ_i a_i·t^i/i!,        a_0 = 1, all a_i ≥ 0,

so ``E Z² = 2·Σ (i+1)·a_i`` and ``E e^(λZ) = 1 + λ/2·Σ a_i·((1−λ)^−(i+1) − (1+λ)^−(i+1))`` for ``λ < 1``.

- *A box* with d cells: Z is uniform on [−r, r] with r ~ Gamma(d+1), and ``a_i = 1 − i/d`` for i < d.
- *A choice* among d answers: the positive cells add up to m ~ Gamma(d−1); k of them are positive with a weight of
  ``ω_k ∝ C(d,k)·C(d−2,k−1)``, a positive one is then m times a Beta(1, k−1) variable, and
  ``a_i = 2·Σ_k ω_k·(k/d)·C(d−1−k,i)/C(d−2,i)``.

One number is a box with one cell, and has the Laplace distribution: ``a = (1,)``.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import FloatArray

_FARTHEST = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The distribution of one cell of a noise, at scale 1."""

    coefficients: tuple[float, ...]
    """``a_i``, from i = 0."""

    @property
    def variance(self) -> float:
        """``E Z²``."""
        return 2.0 * math.fsum((i + 1) * a for i, a in enumerate(self.coefficients))

    def outside(self, distance: FloatArray) -> FloatArray:
        """``P(|Z| ≥ t)`` at distances t ≥ 0; beyond 700 what it is there, which is more."""
        if len(self.coefficients) == 1:
            return np.asarray(np.exp(-distance))
        t = np.minimum(distance, _FARTHEST)  # so that nothing overflows
        total = np.full_like(t, self.coefficients[-1])
        for i in range(len(self.coefficients) - 1, 0, -1):
            total = self.coefficients[i - 1] + total * t / i
        return np.asarray(np.exp(-t) * total)

    def below(self, x: FloatArray) -> FloatArray:
        """``P(Z < x)``."""
        half = 0.5 * self.outside(np.abs(x))
        return np.where(x < 0, half, 1.0 - half)

    def quantile(self, tail: float) -> float:
        """The t ≥ 0 at which ``P(Z ≥ t)`` falls to ``tail``; 0 if it is not above it anywhere."""
        if len(self.coefficients) == 1:
            return max(0.0, math.log(0.5 / tail))
        low, high = 0.0, _FARTHEST
        # from the safe side
        for _ in range(60):
            middle = (low + high) / 2.0
            less = 0.5 * float(self.outside(np.array(middle))) <= tail
            low, high = (low, middle) if less else (middle, high)
        return high if low > 0.0 else 0.0

    def cumulants(self, rates: FloatArray) -> FloatArray:
        """``log E e^(λZ)`` at rates 0 ≤ λ < 1."""
        if len(self.coefficients) == 1:
            return np.asarray(-np.log1p(-np.square(rates)))
        powers = np.arange(1, len(self.coefficients) + 1)
        terms = np.power.outer(1.0 - rates, -powers) - np.power.outer(1.0 + rates, -powers)
        return np.asarray(np.log1p(rates / 2.0 * (terms @ np.array(self.coefficients))))


@functools.lru_cache(maxsize=1024)
def tail_of(cells: int, choice: bool) -> Tail:
    """Of one cell of a box or a choice with so many cells.

    >>> tail_of(1, False).coefficients, tail_of(2, True).coefficients, tail_of(2, False).variance
    ((1.0,), (1.0,), 4.0)
    """
    if not choice:
        return Tail(coefficients=tuple(1.0 - i / cells for i in range(cells)))
    d = cells
    weights = {k: math.comb(d, k) * math.comb(d - 2, k - 1) for k in range(1, d)}
    # in integers up to the one division
    above = [2 * sum(w * k * math.comb(d - 1 - k, i) for k, w in weights.items()) for i in range(d - 1)]
    whole = d * sum(weights.values())
    return Tail(coefficients=tuple(part / (whole * math.comb(d - 2, i)) for i, part in enumerate(above)))
