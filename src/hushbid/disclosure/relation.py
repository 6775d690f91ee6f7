"""How far an estimate may be off because price and datum are related: a bias that no noise explains.

Of the ``N`` people whose mean is wanted, person i's datum has the expected value ``mean + b_i`` given all that decides
their weight ``w_i``: price, group, variance and limit. The b's add up to nothing over everybody, and their mean
square is at most ``γ²·V̄``. People who did not bid, were not bought from or dropped out have weight 0, and count. So the
bias is ``Σ (w_i − 1/N)·b_i``, at most

    γ·√V̄·√(N·Σw² − 1)        by Cauchy and Schwarz, attained by b ∝ w − 1/N, and
    R·½·Σ |w_i − 1/N|          as no two expected values are further apart than the range is wide.

The first, squared, is part of the worst mean squared error, which is thus that of weights for the variance
``V_i + N·γ²·V̄``; an interval grows by the smaller one on either side.

**Strata.** For a combination ``Σ ℓ_g·mean_g`` the b's add up to nothing in each stratum of ``N_g`` people, and their
mean square over all N is at most ``γ²·V̄``. With ``Σ_{i in g} ω_i = ℓ_g`` the bias is ``Σ (ω_i − ℓ_g/N_g)·b_i``, so at
most ``γ·√V̄·√(N·(Σω² − Σℓ_g²/N_g))``, and ``Σ_g R·½·Σ_{i in g} |ω_i − ℓ_g/N_g|``: only relations inside strata count.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.errors import InputError
from hushbid.estimation import Strata


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """How closely price and datum may be related, among how many people: public terms, fixed before the bids."""

    spread: float
    """``γ²·V̄``: the mean square of what prices may tell of data, in squared data units; positive."""

    roster: int
    """``N``: how many people the mean is about, whether they bid or not."""

    strata: tuple[int, ...] = ()
    """``N_g``: how many of them are in each stratum, where stratum means are combined."""

    def __post_init__(self) -> None:
        if self.strata and (min(self.strata) < 1 or sum(self.strata) != self.roster):
            raise InputError(
                f"a relation's strata must have at least one person each and add up to its roster of {self.roster},"
                f" got {list(self.strata)}.",
                field="relation",
            )
        if not 0.0 < self.spread < math.inf or self.roster < 1:
            raise InputError(
                f"a relation must have a positive spread and a roster of at least one person, got {self.spread:g} and"
                f" {self.roster}.",
                field="relation",
            )

    @property
    def counts(self) -> tuple[int, ...]:
        """How many people are in each stratum; a mean has one."""
        return self.strata or (self.roster,)

    @property
    def variance(self) -> float:
        """``N·γ²·V̄``: by how much weights are chosen as if everybody's variance were larger."""
        return self.roster * self.spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Unevenness:
    """How far weights are from everybody's having the same, of all or of their stratum."""

    squares: float
    """``N·Σw² − 1``; with strata ``N·(Σω² − Σℓ_g²/N_g)``."""

    excess: float
    """``½·Σ |w_i − 1/N|``, which is what weights above ``1/N`` exceed it by together; with strata ``|ℓ_g|/N_g``."""

    @classmethod
    def under(cls, relation: Relation, weights: FloatArray, strata: Strata) -> "Unevenness":
        """Of some people's weights ``|ω|``, which add up to each stratum's ``|ℓ|``; others of the roster have none."""
        squares = excess = 0.0
        for stratum, (count, size) in enumerate(zip(relation.counts, np.abs(strata.weights), strict=True)):
            equal = float(size) / count
            above = weights[strata.codes == stratum] - equal
            squares += float(np.sum(np.square(above))) + (count - above.size) * equal * equal
            excess += float(np.sum(above, where=above > 0.0))
        return cls(squares=relation.roster * squares, excess=excess)


def bias_of(relation: Relation | None, uneven: Unevenness | None, width: float) -> tuple[float, float]:
    """The square of the bias at most, and the bias at most by that or by the range, on a range of this width."""
    if relation is None or uneven is None:
        return 0.0, 0.0
    squared = relation.spread * uneven.squares
    return squared, min(math.sqrt(squared), width * uneven.excess)
