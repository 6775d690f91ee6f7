"""The gamma family.

Its virtual cost is nondecreasing for every shape: the logarithm of a gamma variable has a log-concave density, so
F/(c·f), and with it F/f, is nondecreasing.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from hushbid.arrays import FloatArray
from hushbid.priors.arrays import coarse, to_positive
from hushbid.priors.parametric import ParametricPrior
from hushbid.priors.special_functions import gamma_log_density, gamma_markup


@dataclass(frozen=True)
class Gamma(ParametricPrior):
    """Sensitivities in [0, inf) with mean shape·scale and standard deviation √shape·scale.

    >>> Gamma(2, 0.5).expectation
    1.0
    """

    shape: float
    scale: float

    family: ClassVar[str] = "gamma"

    def __post_init__(self) -> None:
        self._set(shape=to_positive(self.shape, "shape"), scale=to_positive(self.scale, "scale"))

    @property
    def support(self) -> tuple[float, float]:
        """The interval [0, inf)."""
        return (0.0, math.inf)

    @property
    def _always_regular(self) -> bool:
        return True

    @property
    def expectation(self) -> float:
        """The expected sensitivity."""
        return self.shape * self.scale

    def _cdf(self, c: FloatArray) -> FloatArray:
        return np.asarray(special.gammainc(self.shape, c / self.scale), dtype=np.float64)

    def _survival(self, c: FloatArray) -> FloatArray:
        return np.asarray(special.gammaincc(self.shape, c / self.scale), dtype=np.float64)

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        at_zero = math.inf if self.shape < 1.0 else -math.log(self.scale) if self.shape == 1.0 else -math.inf
        x = c / self.scale
        inside = gamma_log_density(x, self.shape) - np.log(x) - math.log(self.scale)
        return np.where(x > 0.0, np.where(x < np.inf, inside, -np.inf), at_zero)

    def _quantile(self, q: FloatArray) -> FloatArray:
        return self.scale * np.where(
            q < 0.5, special.gammaincinv(self.shape, q), special.gammainccinv(self.shape, 1.0 - q)
        )

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.gamma(self.shape, self.scale, n)

    def _markup(self, c: FloatArray) -> FloatArray:
        return gamma_markup(coarse(c / self.scale, bits=6), self.shape, scale=self.scale)
