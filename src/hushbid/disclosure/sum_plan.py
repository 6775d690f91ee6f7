"""What is added up over people and how noise is added to it, fixed before any datum is read.

Person i's loss ``ε_i`` has the integer weight ``W_i = floor(ε_i·2**t)`` of `hushbid.disclosure.grid`. Of it each group
g of questions has its part, in units of ``2**−30``:

    W_ig = floor(W_i·parts_g / 2**30),        Σ_g parts_g = 2**30,        so  Σ_g W_ig ≤ W_i ≤ ε_i·2**t.

In a box the sum of question j is ``floor(Σ W_ig·X_ij / 2**40)``; of a choice, the sum of each answer is ``Σ W_ig`` over
those who gave it. Other answers of one person move the sums of a box by at most ``W_ig`` each, and from one answer of a
choice to another by ``W_ig``. The group's noise has the scale ``2**t``, so they lose ``W_ig/2**t`` in it, and at most
``ε_i`` in all groups together. Dividing by ``Σ_i W_ig`` comes after the noise.

One number is a survey of one question with one group, a mean is a combination of one stratum, and a table in memory is
one chunk: there is one way to add up (`hushbid.disclosure.sums`) and one to draw (`hushbid.disclosure.prepare`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hushbid.disclosure.combination import Combined
from hushbid.disclosure.relation import Unevenness
from hushbid.disclosure.weighing import Asked, Weighing
from hushbid.questions import PARTS

LEAST_EXPONENT = 16
"""With a smaller t the noise would be finer than the integers that several questions need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumPlan(Asked):
    """A promise to everybody, in figures about all: what engines and memory add up by."""

    exponent: int
    """``t``: a person loses ``floor(ε·2**t)/2**t``."""

    weights: tuple[float, ...]
    """Each stratum's ``ℓ``; a mean has one stratum, of weight 1."""

    losses: tuple[float, ...]
    """What is used of the losses of each stratum, in sum: as the ``|ℓ|`` to each other."""

    active: int
    """How many people were promised a positive privacy loss."""

    largest_loss: float
    """Nobody was promised a larger one; finite."""

    largest_variance: float
    """Nobody's declared variance is larger, in squared data units."""

    planned: Weighing
    """How weights are spread if everybody delivers."""

    combined: Combined | None = None
    """Which combination of stratum means is published; None where it is one mean."""

    noiseless: bool = False
    """Whether nobody's data need noise. Then losses are shares of a stratum, and no question takes from another."""

    @property
    def parts(self) -> tuple[int, ...]:
        """Each group's part of a weight, in units of one over `PARTS`."""
        return tuple(PARTS if self.noiseless else group.parts for group in self.layout.groups)

    @property
    def noise_scale(self) -> float:
        """The scale, in steps of the sum, that the sampler receives; 0 for no noise."""
        return 0.0 if self.noiseless else math.ldexp(1.0, self.exponent)

    @property
    def weight_bits(self) -> int:
        """No weight has more."""
        return max(math.frexp(self.largest_loss)[1] + self.exponent, 0)

    @property
    def planned_totals(self) -> tuple[Fraction, ...]:
        """What the weights of each stratum add up to if nobody is missing and nothing is rounded."""
        return tuple(Fraction(loss) * Fraction(2) ** self.exponent for loss in self.losses)

    def label(self, stratum: int) -> str:
        """What a stratum is called in a message."""
        return str(stratum) if self.combined is None else self.combined.label(stratum)

    def unevenness(
        self, squares: Fraction, heavy: Sequence[tuple[int, int]], totals: Sequence[int | Fraction]
    ) -> Unevenness:
        """How far weights with these squares are from equal ones in each stratum.

        ``heavy`` says of each what those above an equal share weigh together, of ``totals``, and how many they are.
        """
        assert self.relation is not None
        terms = list(zip(map(Fraction, self.weights), self.relation.counts, heavy, totals, strict=True))
        equal = sum(weight**2 / count for weight, count, _, _ in terms)
        excess = sum(
            abs(weight) * max(above / Fraction(total) - Fraction(people, count), Fraction(0))
            for weight, count, (above, people), total in terms
        )
        return Unevenness(squares=float(self.relation.roster * max(squares - equal, Fraction(0))), excess=float(excess))
