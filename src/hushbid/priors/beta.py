"""The beta family, stretched to an interval.

With b >= 1 the logarithm of a beta variable has a log-concave density, so F/f is nondecreasing and the prior is
regular whatever a. With b < 1 the density grows without bound at the upper end, F/f falls to zero there with a slope
of minus infinity, and the virtual cost must be ironed.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.priors.continuous import ParametricPrior
from hushbid.priors.inputs import to_positive, to_support_high, to_support_low
from hushbid.priors.special_functions import beta_log_density, beta_markup, beta_mass, coarse, special

_CLEARLY_ABOVE_ONE = 1.25


@dataclass(frozen=True)
class Beta(ParametricPrior):
    """Costs in [low, high] with density proportional to (c − low)^(a−1)·(high − c)^(b−1).

    >>> Beta(2, 3).expectation
    0.4
    """

    a: float
    b: float
    low: float = 0.0
    high: float = 1.0

    family: ClassVar[str] = "beta"

    def __post_init__(self) -> None:
        low = to_support_low(self.low)
        self._set(a=to_positive(self.a, "a"), b=to_positive(self.b, "b"), low=low)
        self._set(high=to_support_high(self.high, low))

    @property
    def expectation(self) -> float:
        return self.low + self._width * (self.a / (self.a + self.b))

    @property
    def _always_regular(self) -> bool:
        return self.b >= 1.0

    @property
    def _uses_table(self) -> bool:
        # with b little above one F/f grows so slowly at the upper end that rounding would show
        return self.b < _CLEARLY_ABOVE_ONE and self.b != 1.0

    @property
    def _width(self) -> float:
        return self.high - self.low

    def _from_low(self, c: FloatArray) -> FloatArray:
        return (c - self.low) / self._width

    def _from_high(self, c: FloatArray) -> FloatArray:
        return (self.high - c) / self._width

    def _cdf(self, c: FloatArray) -> FloatArray:
        return beta_mass(self._from_low(c), self._from_high(c), self.a, self.b)

    def _survival(self, c: FloatArray) -> FloatArray:
        return beta_mass(self._from_high(c), self._from_low(c), self.b, self.a)

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        z, y = self._from_low(c), self._from_high(c)
        inside = beta_log_density(z, y, self.a, self.b) - np.log(z) - np.log(y)
        at_low = self._log_density_at_end(self.a, self.b)
        at_high = self._log_density_at_end(self.b, self.a)
        return np.where(z <= 0.0, at_low, np.where(y <= 0.0, at_high, inside)) - math.log(self._width)

    @staticmethod
    def _log_density_at_end(near: float, far: float) -> float:
        return math.inf if near < 1.0 else math.log(far) if near == 1.0 else -math.inf

    def _quantile(self, q: FloatArray) -> FloatArray:
        found = self.low + self._width * np.asarray(special.betaincinv(self.a, self.b, q), dtype=np.float64)
        # far in the lower tail SciPy gives up
        lost = np.isnan(found)
        if np.any(lost):
            found[lost] = super()._quantile(q[lost])
        return found

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.low + self._width * rng.beta(self.a, self.b, n)

    def _markup(self, c: FloatArray) -> FloatArray:
        z, y = coarse(self._from_low(c), bits=6), coarse(self._from_high(c), bits=6)
        # the smaller distance is the one with all its digits
        lower = z < 0.5
        z, y = np.where(lower, z, 1.0 - y), np.where(lower, 1.0 - z, y)
        return beta_markup(z, y, self.a, self.b, scale=self._width)
