"""Priors with simple closed forms: `Uniform`, `Exponential`, `LogNormal` and `Gamma`.

Each is regular, because the logarithm of its distribution function is concave, so that F/f is nondecreasing
(Bagnoli and Bergstrom, "Log-concave probability and its applications", Economic Theory 26, 2005).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.priors.continuous import ParametricPrior
from hushbid.priors.inputs import to_finite, to_positive, to_support_high, to_support_low
from hushbid.priors.special_functions import (
    coarse,
    coarse_standard,
    gamma_log_density,
    gamma_markup,
    mills,
    special,
    times_exp,
)

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class Uniform(ParametricPrior):
    """Every cost in [low, high] equally likely; ψ(c) = 2c − low.

    >>> Uniform(1, 2).virtual_cost([1.0, 1.5, 2.0, 2.5])
    array([ 1.,  2.,  3., inf])
    """

    low: float
    high: float

    family: ClassVar[str] = "uniform"
    _regular_family: ClassVar[bool] = True

    def __post_init__(self) -> None:
        low = to_support_low(self.low)
        self._set(low=low, high=to_support_high(self.high, low))

    @property
    def expectation(self) -> float:
        return self.low + 0.5 * (self.high - self.low)

    @property
    def slope(self) -> float:
        """The slope of the virtual cost."""
        return 2.0

    def _cdf(self, c: FloatArray) -> FloatArray:
        return (c - self.low) / (self.high - self.low)

    def _survival(self, c: FloatArray) -> FloatArray:
        return (self.high - c) / (self.high - self.low)

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        return np.full_like(c, -math.log(self.high - self.low))

    def _quantile(self, q: FloatArray) -> FloatArray:
        return self.low + q * (self.high - self.low)

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(self.low, self.high, n)

    def _markup(self, c: FloatArray) -> FloatArray:
        return c - self.low

    def _virtual_cost_inverse(self, x: FloatArray) -> FloatArray:
        return self.low + 0.5 * (x - self.low)


@dataclass(frozen=True)
class Exponential(ParametricPrior):
    """Costs in [0, inf) with mean ``scale``; ψ(c) = c + scale·(exp(c/scale) − 1).

    >>> Exponential(0.5).support
    (0.0, inf)
    """

    scale: float

    family: ClassVar[str] = "exponential"
    _regular_family: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set(scale=to_positive(self.scale, "scale"))

    @property
    def expectation(self) -> float:
        return self.scale

    def _cdf(self, c: FloatArray) -> FloatArray:
        return -np.expm1(-c / self.scale)

    def _survival(self, c: FloatArray) -> FloatArray:
        return np.exp(-c / self.scale)

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        return -c / self.scale - math.log(self.scale)

    def _quantile(self, q: FloatArray) -> FloatArray:
        return -self.scale * np.log1p(-q)

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.exponential(self.scale, n)

    def _markup(self, c: FloatArray) -> FloatArray:
        u = coarse(c / self.scale)
        return np.where(u < 700.0, self.scale * np.expm1(u), times_exp(self.scale, u))


@dataclass(frozen=True)
class LogNormal(ParametricPrior):
    """Costs whose logarithm is normal; ψ(c) = c·(1 + sd_log·Φ(z)/φ(z)), z = (log c − mean_log)/sd_log.

    >>> LogNormal(0, 1).quantile(0.5)
    1.0
    """

    mean_log: float
    sd_log: float

    family: ClassVar[str] = "lognormal"
    _regular_family: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set(mean_log=to_finite(self.mean_log, "mean_log"), sd_log=to_positive(self.sd_log, "sd_log"))

    @property
    def expectation(self) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(self.mean_log + 0.5 * self.sd_log * self.sd_log))

    def _standardise(self, c: FloatArray) -> FloatArray:
        if self.sd_log >= 1e-3:
            return (np.log(c) - self.mean_log) / self.sd_log
        # a narrow prior magnifies the rounding of the logarithm: take it with the machine's longest float
        extended = (np.log(c.astype(np.longdouble)) - self.mean_log) / self.sd_log
        return extended.astype(np.float64)

    def _from_standard(self, z: FloatArray) -> FloatArray:
        return np.exp(self.mean_log + self.sd_log * z)

    def _cdf(self, c: FloatArray) -> FloatArray:
        return special.ndtr(self._standardise(c))

    def _survival(self, c: FloatArray) -> FloatArray:
        return special.ndtr(-self._standardise(c))

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        z = self._standardise(c)
        inside = -0.5 * z * z - np.log(c) - math.log(self.sd_log) - _LOG_ROOT_TWO_PI
        return np.where(c > 0.0, inside, -np.inf)

    def _quantile(self, q: FloatArray) -> FloatArray:
        return self._from_standard(special.ndtri(q))

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self._from_standard(rng.standard_normal(n))

    def _markup(self, c: FloatArray) -> FloatArray:
        z = coarse_standard(self._standardise(c))
        scale = self.sd_log * c
        near = z < 35.0
        if near.all():
            return scale * mills(z)
        # beyond, Φ(z) is one to the last digit
        return np.where(near, scale * mills(z), times_exp(scale * _ROOT_TWO_PI, 0.5 * z * z))


@dataclass(frozen=True)
class Gamma(ParametricPrior):
    """Costs in [0, inf) with mean shape·scale and standard deviation √shape·scale.

    >>> Gamma(2, 0.5).expectation
    1.0
    """

    shape: float
    scale: float

    family: ClassVar[str] = "gamma"
    _regular_family: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set(shape=to_positive(self.shape, "shape"), scale=to_positive(self.scale, "scale"))

    @property
    def expectation(self) -> float:
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
