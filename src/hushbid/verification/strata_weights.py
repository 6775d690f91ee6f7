"""What strata change in the numbers of a record, for verification: weights, and bias.

Best weights for given losses are found by bisection: what is used of a loss is ``v_i = min(ε_i, κ_g/V_i)`` with
``Σ_{i in g} v_i = |ℓ_g|·η``, and ``η`` is where ``η·Σ|ℓ_g|κ_g`` comes to ``2 + Σ V v²``, or the most that all strata
can give.
"""

import math
from collections.abc import Sequence

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.estimation import Strata

_ROUNDS = 200
_EVEN = 1e-12


def best_contrast(losses: FloatArray, variance: FloatArray, strata: Strata) -> tuple[FloatArray, float]:
    """The best signed weights for given losses, all of them finite, and ``η``; all are 0 where a stratum is empty."""
    sizes, codes = np.abs(strata.weights), strata.codes
    sums = np.bincount(codes, weights=losses, minlength=sizes.size)
    if not (sums > 0.0).all():
        return np.zeros(losses.size), 0.0
    most = float((sums / sizes).min())

    def used(strength: float) -> tuple[FloatArray, float]:
        """What is used at this ``η``, and by how much the sum to be balanced is too large."""
        found, pulled = np.zeros(losses.size), 0.0
        for stratum, size in enumerate(sizes.tolist()):
            rows = np.flatnonzero(codes == stratum)
            loss, spread, wanted = losses[rows], variance[rows], size * strength
            low, high = 0.0, float((spread * loss).max())
            if float(loss.sum()) > wanted * (1.0 + _EVEN):
                for _ in range(_ROUNDS):
                    middle = 0.5 * (low + high)
                    if not low < middle < high:
                        break
                    enough = float(np.minimum(loss, middle / spread).sum()) >= wanted
                    low, high = (low, middle) if enough else (middle, high)
            found[rows] = np.minimum(loss, high / spread)
            pulled += size * high
        return found, strength * pulled - 2.0 - float((variance * found**2).sum())

    delivered, excess = used(most)
    low, high = 0.0, most
    if excess > 0.0:
        for _ in range(_ROUNDS):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (low, middle) if used(middle)[1] > 0.0 else (middle, high)
        delivered = used(high)[0]
    return np.sign(strata.weights)[codes] * delivered / high, high


def squared_distance(weights: FloatArray, strata: Strata, counts: tuple[int, ...]) -> float:
    """``Σ (ω_i − ℓ_g/N_g)²`` over everybody of all strata, whether they bid or not."""
    even = strata.weights / np.array(counts, dtype=float)
    there = np.bincount(strata.codes, minlength=even.size)
    absent = float(((np.array(counts) - there) * even**2).sum())
    return float(np.square(weights - even[strata.codes]).sum()) + absent


def in_proportion(
    amounts: Sequence[int] | FloatArray, codes: IndexArray, sizes: FloatArray
) -> tuple[FloatArray, float]:
    """Everybody's ``|ω|``, proportional to amounts within each stratum and adding up to its ``|ℓ|``, and ``1/K``.

    ``K`` is the least sum of a stratum over its ``|ℓ|``: what the one sum of all strata is divided by.
    """
    shares, totals = np.zeros(codes.size), []
    for stratum, size in enumerate(sizes.tolist()):
        rows = np.flatnonzero(codes == stratum)
        mine = [amounts[row] for row in rows.tolist()]
        total = sum(mine) if isinstance(amounts, list) else math.fsum(mine)
        shares[rows] = np.array(mine, dtype=float) * (size / max(total, 1 if isinstance(amounts, list) else 5e-324))
        totals.append(total / size)
    return shares, 1.0 / max(min(totals), 5e-324)


def unevenness(
    weights: FloatArray, codes: IndexArray, sizes: FloatArray, counts: tuple[int, ...]
) -> tuple[float, float]:
    """How far ``|ω|`` are from everybody's having the same in her stratum: ``N·(Σω² − Σℓ²/N_g)``, and what is above."""
    even = (sizes / np.array(counts, dtype=float))[codes]
    above = weights - even
    squares = math.fsum((weights**2).tolist()) - math.fsum((sizes**2 / np.array(counts, dtype=float)).tolist())
    return max(sum(counts) * squares, 0.0), math.fsum(above[above > 0.0].tolist())


def constant_of(strata: Strata, counts: tuple[int, ...]) -> float:
    """``N·Σ ℓ_g²/N_g``: by how many ``γ²·V̄`` the error with the planned variance is above the worst error."""
    return sum(counts) * math.fsum((strata.weights**2 / np.array(counts, dtype=float)).tolist())
