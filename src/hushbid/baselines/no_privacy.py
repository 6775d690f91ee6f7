"""No privacy: everybody's datum is taken as it is, without noise and without pay.

The estimate is the plain mean, with error V/n. It is what data sets that were not bought look like, and no bid
changes anything in it; but a person who minds at all loses without limit, so nobody would join who had the choice.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from hushbid.baselines.baseline import Baseline, BaselineOutcome, Decision, unit_error_weight
from hushbid.common.arrays import FloatArray
from hushbid.languages import noted
from hushbid.mechanism import Population


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPrivacy(Baseline):
    """Everybody's plain datum, for nothing."""

    name: ClassVar[str] = noted("no privacy (data taken)")
    truthful: ClassVar[bool] = True
    voluntary: ClassVar[bool] = False

    @classmethod
    def best(cls, population: Population, *, error_weight: float | None = None) -> Self:
        """There is nothing to choose."""
        unit_error_weight(population, error_weight)
        return cls(population=population)

    def decide(self, bids: FloatArray) -> Decision:
        return Decision(
            privacy_loss=np.full(bids.size, np.inf),
            rent=np.zeros(bids.size),
            mse=self.unit_variance / bids.size,
        )

    def acquire(self, bids: ArrayLike) -> BaselineOutcome:
        """Return what is taken: nobody is asked and nobody is paid, whatever they think the estimate is worth."""
        priced = Baseline.acquire(self, bids)
        return replace(priced, payments=np.zeros(priced.bids.size))
