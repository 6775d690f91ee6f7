"""Combine stratum means in one noisy sum: exact proportions, after which no weight's rounding is left.

Wanted is ``Σ_g ℓ_g·(mean of stratum g)``, ℓ of any signs. Each stratum's people have integer weights that add up to
``W_g``; the mean of one number is one stratum with ``ℓ = 1``. Rounded down, the ``W_g`` are no longer as the ``|ℓ_g|``
to each other, which would bias the estimate. So every stratum's exact sum ``T_g = Σ W_i X_i`` is scaled, as a fraction,
before all are added up and the noise is drawn:

    K = min_g W_g/|ℓ_g|,    f_g = K·|ℓ_g|/W_g ≤ 1,    N = floor(Σ_g sign(ℓ_g)·f_g·T_g / M) + noise,    estimate = N/K.

Without noise and floor that is ``Σ ℓ_g·T_g/(W_g·M)``, the combination of the strata's weighted means and nothing else.
Another datum of one person moves the sum by at most ``f_g·W_i ≤ W_i``, and the floor by at most ``W_i``, an integer:
the promise is what it was. (``f_g`` is 1 but for rounding where losses are planned in proportion.)

*The answers of a choice* have one sum each, and another answer of one person must move as much into one as out of
another. All but the last are rounded down, and the last is what is left of the sum over all answers, ``floor(K·Σℓ)``,
which nobody's answer changes. If their weight leaves a for b, these change by ``f·W_i`` rounded down or up, and the
last one by the difference, so that what rises adds up to at most ``W_i``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray, IntArray
from hushbid.common.numbers import combination, shares_text
from hushbid.disclosure.grid import LARGEST_EXPONENT
from hushbid.errors import InputError, NothingDelivered, ReleaseError
from hushbid.estimation import Setting, Strata, best_contrast, best_weights, is_central

PROPORTION = 1e-9
"""Losses whose sums over strata are in proportion up to this are used as they are."""

_SAME = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """How the sums of strata become one."""

    factors: tuple[Fraction, ...]
    """``sign(ℓ_g)·f_g`` of each stratum."""

    total: Fraction
    """``K``: what the sum of everything is divided by, positive."""

    level: float
    """``Σ ℓ``: what the combination is if all data are 1."""

    size: float
    """``Σ |ℓ|``: how far it can be from one end to the other if data are between 0 and 1."""

    @classmethod
    def of(cls, totals: Sequence[int], weights: Sequence[float]) -> "Blend":
        """Of the strata's total weights ``W_g``, all positive, and their ``ℓ_g``."""
        wanted = [Fraction(weight) for weight in weights]
        total = min(Fraction(whole) / abs(part) for whole, part in zip(totals, wanted, strict=True))
        return cls(
            factors=tuple(total * part / whole for whole, part in zip(totals, wanted, strict=True)),
            total=total,
            level=math.fsum(weights),
            size=math.fsum(map(abs, weights)),
        )

    @property
    def step(self) -> float:
        """What one step of the sum is in the estimate, on a range of width 1."""
        return 1.0 / float(self.total)

    def floor(self, sums: Sequence[int], bits: int = 0) -> int:
        """The strata's sums as one, in units of ``2**bits``, rounded down."""
        shared = math.lcm(*(factor.denominator for factor in self.factors))
        parts = (factor.numerator * (shared // factor.denominator) for factor in self.factors)
        return sum(part * one for part, one in zip(parts, sums, strict=True)) // (shared << bits)

    def floors(self, cells: Sequence[Sequence[int]]) -> list[int]:
        """The same of the answers of a choice, the sums of each stratum's answers being given: they keep their sum."""
        *others, _ = zip(*cells, strict=True)
        found = [self.floor(one) for one in others]
        return [*found, self.floor([sum(one) for one in cells]) - sum(found)]

    def charged(self, weights: IntArray, strata: Strata) -> IntArray:
        """By how much each person can move the sum at most: ``f·W``, rounded up to an integer that is a double."""
        charged = weights.copy()
        for rows, factor in zip(rows_of(strata), self.factors, strict=True):
            above, below = abs(factor).as_integer_ratio()
            if above < below:
                moved = np.array([-(-weight * above // below) for weight in weights[rows].tolist()], dtype=np.float64)
                charged[rows] = np.minimum(np.where(moved < 2.0**53, moved, np.nextafter(moved, np.inf)), weights[rows])
        return charged


def one_stratum(people: int) -> Strata:
    """Everybody in one stratum of weight 1: a mean as a combination."""
    return Strata(codes=np.zeros(people, dtype=np.intp), weights=np.ones(1))


def rows_of(strata: Strata) -> Sequence[IndexArray | slice]:
    """Who is in each stratum."""
    return rows_by_code(strata.codes, strata.count)


def rows_by_code(codes: IndexArray, count: int) -> Sequence[IndexArray | slice]:
    """The rows of each of so many strata, in their order."""
    if count == 1:
        return [slice(None)]
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1])


def level_of(strata: Strata) -> float:
    """``Σ ℓ``."""
    return math.fsum(strata.weights.tolist())


def sizes_of(strata: Strata) -> FloatArray:
    """The ``|ℓ|`` of everybody's stratum."""
    return np.asarray(np.abs(strata.weights)[strata.codes])


def local_shares(losses: FloatArray, variance: FloatArray, strata: Strata, *, response: bool = False) -> FloatArray:
    """Everybody's ``|ω|`` in the local setting: within each stratum by the precision of their message."""
    refuse_empty(strata, losses > 0.0)
    shares = np.zeros(losses.size)
    for rows, weight in zip(rows_of(strata), strata.weights.tolist(), strict=True):
        found = best_weights(losses[rows], setting="local", variance=variance[rows], response=response)
        shares[rows] = abs(weight) * found.weights
    return shares


def planned_losses(losses: FloatArray, variance: FloatArray, strata: Strata, setting: Setting) -> FloatArray:
    """What is used of losses if all deliver. Centrally strata have to be in proportion, and the best contrast is."""
    refuse_empty(strata, losses > 0.0)
    if not is_central(setting):
        return losses
    strength = [float(losses[rows].sum()) / abs(w) for rows, w in zip(rows_of(strata), strata.weights, strict=True)]
    if max(strength) * (1.0 - PROPORTION) <= min(strength) < math.inf:
        return losses
    # in an order of its own, so that the last bits do not depend on how people are listed
    losses = _large_enough(losses, strata)
    order = np.lexsort((variance, losses, strata.codes))
    found = np.empty(losses.size)
    found[order] = best_contrast(losses[order], strata=strata.of(order), variance=variance[order]).delivered
    return found


def losses_left(
    promised: FloatArray, planned: FloatArray, present: BoolArray, variance: FloatArray, strata: Strata
) -> FloatArray:
    """What is used of whose losses if only some deliver: the best contrast of what was promised to those.

    People who are listened to as planned have their planned loss to the last bit.
    """
    refuse_empty(strata, present)
    if present[planned > 0.0].all():
        return planned
    left_of, some = strata.of(present), variance[present]
    found = best_contrast(_large_enough(promised[present], left_of), strata=left_of, variance=some).delivered
    as_planned = np.isclose(found, planned[present], rtol=_SAME, atol=0.0)
    left = np.zeros(planned.size)
    left[present] = np.where(as_planned, planned[present], found)
    return left


def _large_enough(losses: FloatArray, strata: Strata) -> FloatArray:
    """Losses without those that no integer weight can hold."""
    found = np.where(losses >= 2.0**-LARGEST_EXPONENT, losses, 0.0)
    for stratum, rows in enumerate(rows_of(strata)):
        if not found[rows].any():
            raise too_small(f" of stratum {strata.label(stratum)}")
    return found


def too_small(whose: str) -> ReleaseError:
    """Return the refusal of losses that round down to nothing: noise without end."""
    least = "" if whose else f": one must be at least 2**-{LARGEST_EXPONENT}"
    return ReleaseError(f"The privacy losses of those{whose} who delivered are too small to release anything{least}.")


def nobody_left(stratum: str) -> NothingDelivered:
    """Return the refusal of a mean of nobody."""
    return NothingDelivered(f"Nobody of stratum {stratum} is left: its mean cannot be estimated.")


def refuse_empty(strata: Strata, there: BoolArray) -> None:
    """Refuse a combination of which a stratum has nobody."""
    counts = np.bincount(strata.codes[there], minlength=strata.count)
    if not counts.all():
        raise nobody_left(strata.label(int(np.argmin(counts))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """Which combination of stratum means an estimate is of: public but for how many people were bought from."""

    weights: tuple[float, ...]
    """Each stratum's ``ℓ``."""

    bought_from: tuple[int, ...]
    """How many people of each should have delivered. For the operator only."""

    names: tuple[str, ...] = ()
    """What the strata are called; empty if they have no names."""

    def __post_init__(self) -> None:
        if not self.weights or {len(self.weights)} != {len(self.bought_from), len(self.names or self.weights)}:
            raise InputError("strata must have one weight and one count each, and a name each or none.", field="strata")

    @classmethod
    def of(cls, strata: Strata, bought: BoolArray) -> "Combined":
        """Of the strata of those who were bought from."""
        counts = np.bincount(strata.codes[bought], minlength=strata.count)
        return cls(weights=tuple(strata.weights.tolist()), bought_from=tuple(counts.tolist()), names=strata.names)

    def label(self, stratum: int) -> str:
        """What a stratum is called in a message."""
        return repr(self.names[stratum]) if self.names else str(stratum)

    @property
    def are_shares(self) -> bool:
        """Whether the weights are all positive and add up to 1, up to rounding: then it is a mean."""
        return min(self.weights) > 0.0 and math.isclose(math.fsum(self.weights), 1.0, rel_tol=1e-9)

    @property
    def words(self) -> str:
        """The combination as it stands in a sentence; "the mean" where it is one."""
        return "the mean" if self.are_shares else combination(self.names, self.weights)

    @property
    def about(self) -> str:
        """The sentence that says which population a mean is for; empty where it is no mean."""
        if not self.are_shares:
            return ""
        return f"For a population with these shares: {shares_text(self.names, self.weights)}."

    def range_of(self, bounds: tuple[float, float]) -> tuple[float, float]:
        """Between which values the combination lies if data lie between these."""
        ends = [sorted(weight * end for end in bounds) for weight in self.weights]
        return math.fsum(low for low, _ in ends), math.fsum(high for _, high in ends)

    def public(self) -> dict[str, object]:
        """What may be shown to anybody."""
        return {"weights": list(self.weights), **({"names": list(self.names)} if self.names else {})}
