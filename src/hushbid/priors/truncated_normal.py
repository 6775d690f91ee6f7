"""A normal distribution cut to an interval; its density is log-concave, so the prior is regular.

All masses are measured relative to the density at the point of the interval nearest the normal's centre, so that an
interval a thousand standard deviations away is as good as any other.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.errors import PriorError
from hushbid.priors.base import in_blocks
from hushbid.priors.continuous import ParametricPrior
from hushbid.priors.inputs import to_finite, to_positive, to_support_high, to_support_low
from hushbid.priors.special_functions import coarse, coarse_standard, normal_ratio, special

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_LARGEST = float(np.finfo(np.float64).max)
_POLISHING_STEPS = 3
_NEAR = 30.0
_FARTHEST = 1e100
_NARROW, _TAIL, _REACH = 3.0, 3.0, 40.0
_GAUSS_POINTS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(64)
_GAUSS_POINTS = 0.5 * (1.0 + _GAUSS_POINTS)


@dataclass(frozen=True)
class TruncatedNormal(ParametricPrior):
    """A normal variable with the given mean and standard deviation before the cut, given that it lies in [low, high].

    The interval may lie far from the mean, and high may be inf.

    >>> TruncatedNormal(1, 0.5, 0, 2).virtual_cost([0.0, 2.5])
    array([ 0., inf])
    """

    mean: float
    sd: float
    low: float
    high: float

    family: ClassVar[str] = "truncnormal"
    _regular_family: ClassVar[bool] = True

    def __post_init__(self) -> None:
        low = to_support_low(self.low)
        self._set(mean=to_finite(self.mean, "mean"), sd=to_positive(self.sd, "sd"), low=low)
        self._set(high=to_support_high(self.high, low, infinite=True))
        if not max(self._left, -self._right) < _FARTHEST:
            raise PriorError(
                f"[low, high] must start within {_FARTHEST:g} standard deviations of the mean, "
                f"got mean={self.mean:.12g}, sd={self.sd:.12g}, low={low:.12g}, high={self.high:.12g}"
            )

    @property
    def expectation(self) -> float:
        width, far = self.high - self.low, max(self._left, -self._right)
        if far > _TAIL or width * max(abs(self._left), abs(self._right), 1.0) < _NARROW * self.sd:
            # the textbook formula below would cancel here, and the density is close to an exponential or flat
            reach = min(width, _REACH * self.sd / max(far, 1.0))
            points = (
                self.low + reach * _GAUSS_POINTS if self._left > -self._right else self.high - reach * _GAUSS_POINTS
            )
            density = np.exp(self._log_density(points)) * _GAUSS_WEIGHTS
            return float(np.sum(points * density) / np.sum(density))
        with np.errstate(over="ignore", under="ignore"):
            at_low, at_high = np.exp(self._log_density(np.array([self.low, min(self.high, _LARGEST)])))
        return float(np.clip(self.mean + self.sd * (at_low - at_high) / self._total, self.low, self.high))

    # Standard units: the distance z to the mean, with the interval's ends at _left and _right.

    @property
    def _left(self) -> float:
        return (self.low - self.mean) / self.sd

    @property
    def _right(self) -> float:
        return (self.high - self.mean) / self.sd

    def _log_density(self, c: FloatArray) -> FloatArray:
        """Return log(φ(z)/φ(z₀)), where z₀ is the point of the interval nearest zero."""
        z = (c - self.mean) / self.sd
        # a difference of squares as a product, so that it does not cancel
        if self._left > 0.0:
            return -0.5 * ((c - self.low) / self.sd) * (z + self._left)
        if self._right < 0.0:
            return 0.5 * ((self.high - c) / self.sd) * (z + self._right)
        return -0.5 * z * z

    @cached_property
    def _total(self) -> float:
        """The mass of the interval over φ(z₀)."""
        if self._left > 0.0:
            return float(self._mass_from_near_end(np.array([(self.high - self.low) / self.sd]), self._left)[0])
        if self._right < 0.0:
            return float(self._mass_from_near_end(np.array([(self.high - self.low) / self.sd]), -self._right)[0])
        return 0.5 * _ROOT_TWO_PI * (math.erf(self._right * _ROOT_HALF) - math.erf(self._left * _ROOT_HALF))

    @staticmethod
    def _mass_from_near_end(width: FloatArray, start: float) -> FloatArray:
        """Return the mass of [start, start + width] over φ(start), for start >= 0: the mirror image of a markup."""
        return normal_ratio(-start - width, np.full_like(width, -start), width)

    def _cdf(self, c: FloatArray) -> FloatArray:
        width = (c - self.low) / self.sd
        if self._left > 0.0:
            return self._mass_from_near_end(width, self._left) / self._total
        return (
            self._mass_of_lower_part(self._left, (c - self.mean) / self.sd, width, np.exp(self._log_density(c)))
            / self._total
        )

    def _survival(self, c: FloatArray) -> FloatArray:
        width = (self.high - c) / self.sd
        if self._right < 0.0:
            return self._mass_from_near_end(width, -self._right) / self._total
        return (
            self._mass_of_lower_part(-self._right, (self.mean - c) / self.sd, width, np.exp(self._log_density(c)))
            / self._total
        )

    @staticmethod
    def _mass_of_lower_part(left: float, z: FloatArray, width: FloatArray, density: FloatArray) -> FloatArray:
        """Return the mass of [left, z] over φ(z₀), left <= 0, for z on either side of zero."""
        below = normal_ratio(np.full_like(z, left), np.minimum(z, 0.0), width) * density
        across = 0.5 * _ROOT_TWO_PI * (special.erf(z * _ROOT_HALF) - math.erf(left * _ROOT_HALF))
        return np.where(z <= 0.0, below, across)

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        return self._log_density(c) - math.log(self.sd) - math.log(self._total)

    def _quantile(self, q: FloatArray) -> FloatArray:
        """Take the quantile of the uncut normal at the right level, then Newton steps on the smaller tail."""
        c = self._rough_quantile(q)
        # with the density of the low end throughout; it bounds the quantile where the density is monotone
        straight = self.low + q * np.exp(-self._log_pdf(np.array([self.low])))
        if self._left >= 0.0:
            c = np.clip(straight, c, self.high)
        else:
            c = np.where(straight < self.mean, np.minimum(c, straight), c)
        for _ in range(_POLISHING_STEPS):
            # by the smaller tail, which has the digits
            excess = np.where(q < 0.5, self._cdf(c) - q, (1.0 - q) - self._survival(c))
            step = excess * np.exp(-self._log_pdf(c))
            c = np.clip(np.where(np.isfinite(step), c - step, c), self.low, self.high)
        return np.where(q <= 0.0, self.low, np.where(q >= 1.0, self.high, c))

    def _rough_quantile(self, q: FloatArray) -> FloatArray:
        return np.clip(self.mean + self.sd * self._standard_quantile(q), self.low, self.high)

    def _standard_quantile(self, q: FloatArray) -> FloatArray:
        left, right = self._left, self._right
        # the interval right of the centre, left of it, or around it: logarithms where tails underflow
        if left > 0.0:
            beyond = math.exp(special.log_ndtr(-right) - special.log_ndtr(-left))
            return -special.ndtri_exp(special.log_ndtr(-left) + _log_share(q, 1.0 - q, beyond))
        if right < 0.0:
            beyond = math.exp(special.log_ndtr(left) - special.log_ndtr(right))
            return special.ndtri_exp(special.log_ndtr(right) + _log_share(1.0 - q, q, beyond))
        below, above = special.ndtr(left), special.ndtr(-right)
        inside = special.ndtr(right) - special.ndtr(left)
        lower, upper = below + q * inside, above + (1.0 - q) * inside
        return np.where(lower < upper, special.ndtri(lower), -special.ndtri(upper))

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        is_near = self._left < _NEAR and self._right > -_NEAR
        return in_blocks(self._rough_quantile if is_near else self._quantile, rng.random(n))

    def _markup(self, c: FloatArray) -> FloatArray:
        # the ratio grows with the width and with z, so each may be coarse for itself
        width, z = coarse((c - self.low) / self.sd), coarse_standard((c - self.mean) / self.sd)
        return normal_ratio(np.full_like(c, self._left), z, width, scale=self.sd)


def _log_share(q: FloatArray, complement: FloatArray, beyond: float) -> FloatArray:
    """Return log(1 − q·(1 − beyond)), without cancellation at either end; ``complement`` is 1 − q."""
    return np.where(q < 0.5, np.log1p(-q * (1.0 - beyond)), np.log(beyond * q + complement))
