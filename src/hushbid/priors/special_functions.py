"""Markups F/f of the gamma, beta and normal families, accurate far into both tails.

F and f underflow long before their ratio is out of range, and near an end of the support both vanish. So each ratio is
written with factors that neither underflow nor cancel, and exponentials are split in two so that the product overflows
only if its true value does.

For the gamma and beta families Loader's saddle-point form of the density is used (Loader, "Fast and accurate
computation of binomial probabilities", 2000): its exponent is a deviance, small where the mass is, instead of a
difference of large logarithms of gamma functions.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hushbid.common.arrays import FloatArray

if TYPE_CHECKING:
    from scipy import special as special


class _Special:
    """``scipy.special``, imported when one of its functions is needed: many priors need none, and it takes long."""

    def __getattr__(self, name: str) -> Any:
        from scipy import special

        found = getattr(special, name)
        setattr(self, name, found)
        return found


if not TYPE_CHECKING:
    special = _Special()

_LOG_TWO_PI = math.log(2.0 * math.pi)
_ROOT_HALF_PI = math.sqrt(0.5 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_UNDERFLOW = 1e-280
_FRACTION_STEPS = 5000
_SMALL_WIDTH, _SMALL_EXPONENT = 2.0, 6.0
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(20)


def times_exp(factor: FloatArray | float, exponent: FloatArray, mass: FloatArray | float = 1.0) -> FloatArray:
    """Return factor·mass·exp(exponent), in an order that neither overflows nor underflows before the product does."""
    half = np.exp(0.5 * exponent)
    return np.where(factor == 0.0, 0.0, factor * (mass * half) * half)


def mills(z: FloatArray) -> FloatArray:
    """Return Φ(z)/φ(z) for a standard normal, through the scaled complementary error function."""
    return _ROOT_HALF_PI * special.erfcx(-z * _ROOT_HALF)


def stirling_error(a: float) -> float:
    """Return log Γ(a) less Stirling's formula (a − 1/2)·log a − a + log(2π)/2."""
    if a < 16.0:
        return math.lgamma(a) - (a - 0.5) * math.log(a) + a - 0.5 * _LOG_TWO_PI
    b = 1.0 / (a * a)
    return (1 / 12 - b * (1 / 360 - b * (1 / 1260 - b * (1 / 1680 - b / 1188)))) / a


def deviance(t: FloatArray) -> FloatArray:
    """Return t − 1 − log t, with no cancellation that matters near t = 1."""
    u = t - 1.0
    return np.where(np.abs(u) < 0.5, u - np.log1p(u), np.where(t < np.inf, u - np.log(t), np.inf))


def gamma_log_density(x: FloatArray, shape: float) -> FloatArray:
    """Return the logarithm of x·f(x) for the gamma density of scale 1."""
    return 0.5 * (math.log(shape) - _LOG_TWO_PI) - stirling_error(shape) - shape * deviance(x / shape)


def gamma_markup(x: FloatArray, shape: float, *, scale: float) -> FloatArray:
    """Return F/f of the gamma family at scale·x."""
    mass = np.zeros_like(x)
    # F only where it may not underflow, then only where it did not
    upper = x >= 0.5 * shape
    mass[upper] = special.gammainc(shape, x[upper])
    upper = mass >= _UNDERFLOW
    lower = ~upper
    markup = np.empty_like(x)
    markup[upper] = times_exp(scale * x[upper], -gamma_log_density(x[upper], shape), mass[upper])
    # in the lower tail the confluent hypergeometric series has positive terms only and starts at one
    markup[lower] = scale * x[lower] / shape * special.hyp1f1(1.0, shape + 1.0, x[lower])
    return markup


def beta_log_density(z: FloatArray, y: FloatArray, a: float, b: float) -> FloatArray:
    """Return the logarithm of z·y·f(z) for the beta density on [0, 1], y = 1 − z given separately."""
    p, q = a / (a + b), b / (a + b)
    constant = 0.5 * (math.log(a) + math.log(b) - math.log(a + b) - _LOG_TWO_PI)
    constant += stirling_error(a + b) - stirling_error(a) - stirling_error(b)
    return constant - a * deviance(z / p) - b * deviance(y / q)


def beta_mass(z: FloatArray, y: FloatArray, a: float, b: float) -> FloatArray:
    """Return F of the beta family on [0, 1]; each half of the interval is measured from its own end."""
    lower = z < 0.5
    mass = np.empty_like(z)
    mass[lower] = special.betainc(a, b, z[lower])
    mass[~lower] = special.betaincc(b, a, np.minimum(y[~lower], 0.5))
    return mass


def beta_markup(z: FloatArray, y: FloatArray, a: float, b: float, *, scale: float) -> FloatArray:
    """Return F/f of the beta family on an interval of width ``scale``, z and y = 1 − z from its ends."""
    if b == 1.0:
        return scale * z / a
    mass = np.zeros_like(z)
    # F only where it may not underflow, then only where it did not
    upper = z >= 0.5 * a / (a + b)
    mass[upper] = beta_mass(z[upper], y[upper], a, b)
    upper = mass >= _UNDERFLOW
    lower = ~upper
    markup = np.empty_like(z)
    exponent = -beta_log_density(z[upper], y[upper], a, b)
    markup[upper] = times_exp(scale * z[upper] * y[upper], exponent, mass[upper])
    markup[lower] = scale * z[lower] * y[lower] / a * _beta_fraction(z[lower], a, b)
    # at the upper end f vanishes or is infinite
    return np.where(y > 0.0, markup, np.inf if b > 1.0 else 0.0)


def _beta_fraction(z: FloatArray, a: float, b: float) -> FloatArray:
    """Return a·F/(z·y·f) in the lower tail: the continued fraction of the incomplete beta function (DLMF 8.17.22)."""
    numerator = np.ones_like(z)
    denominator = 1.0 / (1.0 - (a + b) * z / (a + 1.0))
    value = denominator.copy()
    active = np.ones(z.shape, dtype=np.bool_)
    for m in range(1, _FRACTION_STEPS):
        even = m * (b - m) * z / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * z / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            # Lentz's method: two ratios, whose product is what a step changes
            denominator = 1.0 / (1.0 + coefficient * denominator)
            numerator = 1.0 + coefficient / numerator
            change = denominator * numerator
            value = np.where(active, value * change, value)
        active &= np.abs(change - 1.0) >= 3e-15
        if not np.any(active):
            break
    return value


def normal_ratio(left: FloatArray, z: FloatArray, width: FloatArray, *, scale: float = 1.0) -> FloatArray:
    """scale·(Φ(z) − Φ(left))/φ(z), ``width`` = z − left given separately: ∫ scale·exp(z·s − s²/2) ds over [0, width].

    Close to the left end the integral is taken by Gauss's rule, everywhere else no two terms nearly cancel.
    """
    small = (width <= _SMALL_WIDTH) & (np.abs(z) * width <= _SMALL_EXPONENT)
    result = np.empty_like(z)
    # case 1: close to the left end
    result[small] = scale * _normal_integral(z[small], width[small])
    # case 2: left of the centre, two Mills' ratios
    negative = ~small & (z <= 0.0)
    result[negative] = scale * _normal_left(left[negative], z[negative], width[negative])
    # case 3: the centre inside, error functions of opposite signs
    straddling = ~small & (z > 0.0) & (left < 0.0)
    mass = 0.5 * (special.erf(z[straddling] * _ROOT_HALF) + special.erf(-left[straddling] * _ROOT_HALF))
    result[straddling] = times_exp(scale * _ROOT_TWO_PI, 0.5 * z[straddling] ** 2, mass)
    # case 4: right of the centre, growing
    positive = ~small & (left >= 0.0)
    growth = 0.5 * width[positive] * (z[positive] + left[positive])
    result[positive] = times_exp(scale * mills(-left[positive]), growth) - scale * mills(-z[positive])
    return result


def _normal_integral(z: FloatArray, width: FloatArray) -> FloatArray:
    total = np.zeros_like(z)
    for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
        s = width * (0.5 * (1.0 + node))
        total += weight * np.exp(s * (z - 0.5 * s))
    return 0.5 * width * total


def _normal_left(left: FloatArray, z: FloatArray, width: FloatArray) -> FloatArray:
    decay = np.where(width < np.inf, np.exp(0.5 * width * (z + left)), 0.0)
    return mills(z) - mills(left) * decay


def coarse(x: FloatArray, bits: int = 5) -> FloatArray:
    """Return ``x`` rounded to a mantissa shorter by ``bits``.

    A special function is accurate to an ulp or three, so between neighbouring floats its value may step *down*. Fed
    with a coarser argument, the true increment always exceeds that noise, and what is increasing in exact arithmetic
    stays nondecreasing in floats. With the default of 5 bits the argument moves by less than 2e-15 of itself.
    """
    half = np.int64(1) << (bits - 1)  # to the nearest, in the bits of the float
    return ((np.ascontiguousarray(x).view(np.int64) + half) & ~((half << 1) - 1)).view(np.float64)


def coarse_standard(z: FloatArray) -> FloatArray:
    """`coarse` for a standard normal variable, on whose scale steps near zero must not be finer than near one."""
    return np.where(np.abs(z) < 1.0, (z + 24.0) - 24.0, coarse(z))
