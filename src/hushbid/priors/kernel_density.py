"""`KernelDensity`: a sample smoothed by a normal kernel of one bandwidth, reflected at zero.

Around every value x_i of a sample, with weight w_i (they sum to one), lies a normal density of standard deviation h,
the *bandwidth*. What of it would lie below zero is reflected: a cost is |x_i + h·Z|. So no mass is lost, nothing
is renormalised, and for c ≥ 0, with z_i = (c − x_i)/h and z'_i = (−c − x_i)/h,

    f(c) = Σ w_i·(φ(z_i) + φ(z'_i))/h,        F(c) = Σ w_i·(Φ(z_i) − Φ(z'_i)).

The support is [0, inf). F/f is a ratio of sums of positive terms, each relative to the largest kernel at c, so nothing
cancels and nothing underflows before the ratio does. It is usually irregular, hence ironed: `hushbid.priors.ironing`.
The ironed virtual cost of nearly everybody is read off a curve through such ratios, right to 3e-13 of itself.

The values must come from elsewhere than the bids they will price, as with `hushbid.priors.empirical`.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray, Numbers
from hushbid.errors import PriorError
from hushbid.priors.base import number_text
from hushbid.priors.continuous import ContinuousPrior
from hushbid.priors.curves import by_curve
from hushbid.priors.empirical import Empirical
from hushbid.priors.inputs import to_positive, to_vector
from hushbid.priors.ironing import Ironed
from hushbid.priors.special_functions import normal_ratio, special, times_exp
from hushbid.priors.tables import grid_points

MOST_VALUES = 1000
"""Every virtual cost is a sum over all values, so there must not be too many."""

_CELLS = 1 << 17
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_ROOT_HALF_PI = math.sqrt(0.5 * math.pi)
_FAR = 42.0
_LEAST_BANDWIDTH = 1e-6
_IQR_OF_NORMAL = 1.34
_FEW, _RATIO = 1e-9, 1.5
"""The share of people at either end whose virtual costs are computed one by one, and the ratio of the ends of pieces
close to zero."""

_MOST_WIDTHS, _MOST_PIECES = 1e5, 512
"""How many bandwidths the others may be spread over for a curve, and in how many pieces the virtual cost may rise."""


class KernelDensity(ContinuousPrior):
    """The distribution of a sample, optionally weighted, smoothed by a normal kernel and reflected at zero.

    Without a ``bandwidth``, Silverman's rule chooses one (`silverman`).

    >>> prior = KernelDensity([1, 2, 2, 4], bandwidth=0.5)
    >>> prior.support
    (0.0, inf)
    >>> round(prior.cdf(2.0), 6)
    0.49432
    """

    family: ClassVar[str] = "kde"

    def __init__(self, samples: Numbers, bandwidth: float | None = None, weights: Numbers | None = None) -> None:
        self._sample_itself = Empirical(samples, weights)
        if self.values.size > MOST_VALUES:
            raise PriorError(
                f"samples of a kernel density must hold at most {MOST_VALUES} different values, got {self.values.size}:"
                " use Empirical, or Histogram",
                field="samples",
            )
        if bandwidth is None:
            everybody = to_vector(samples, "samples")
            masses = np.ones_like(everybody) if weights is None else to_vector(weights, "weights")
            self._bandwidth = silverman(self._sample_itself, masses)
        else:
            self._bandwidth = to_positive(bandwidth, "bandwidth")
        largest = self.support_of_values[1]
        if self._bandwidth < _LEAST_BANDWIDTH * largest:
            raise PriorError(
                f"bandwidth must be at least {_LEAST_BANDWIDTH:g} of the largest value, {largest:.12g}, got"
                f" bandwidth={self._bandwidth:.12g}: use Empirical where nothing is to be smoothed",
                field="bandwidth",
            )
        self._shares = self.weights / np.sum(self.weights)

    @property
    def values(self) -> FloatArray:
        """The distinct values, ascending."""
        return self._sample_itself.values

    @property
    def weights(self) -> FloatArray:
        """The total weight of each of `values`, as given (they need not sum to one)."""
        return self._sample_itself.weights

    @property
    def bandwidth(self) -> float:
        """The standard deviation of the kernel."""
        return self._bandwidth

    @property
    def support_of_values(self) -> tuple[float, float]:
        """The smallest and the largest value of the sample."""
        return self._sample_itself.support

    @property
    def support(self) -> tuple[float, float]:
        """The interval [0, inf)."""
        return (0.0, math.inf)

    @property
    def expectation(self) -> float:
        """The expected cost: of |x + h·Z|, averaged."""
        standard = self.values / self._bandwidth
        folded = self.values * special.erf(standard * _ROOT_HALF)
        folded += self._bandwidth * (2.0 / _ROOT_TWO_PI) * np.exp(-0.5 * standard * standard)
        return math.fsum(self._shares * folded)

    def to_dict(self) -> dict[str, Any]:
        values, weights = self.values.tolist(), self.weights.tolist()
        return {"family": self.family, "bandwidth": self._bandwidth, "values": values, "weights": weights}

    def to_text(self) -> str:
        """Return the prior as a text that `parse_prior` reads back: bandwidth, then values as of `Empirical`."""
        _, _, values = self._sample_itself.to_text().partition(":")
        return f"{self.family}:{number_text(self._bandwidth)},{values}"

    def _identity(self) -> Hashable:
        return self._bandwidth, self._sample_itself

    def __repr__(self) -> str:
        low, high = self.support_of_values
        values = f"{self.values.size} values from {low:.6g} to {high:.6g}"
        return f"KernelDensity({values}, bandwidth={self._bandwidth:.6g})"

    # -- the distribution: sums over all kernels, for so many points at a time -----------------------------------------

    def _cdf(self, c: FloatArray) -> FloatArray:
        return self._in_order(c, lambda part: self._sums(part).mass)

    def _survival(self, c: FloatArray) -> FloatArray:
        def above(part: FloatArray) -> FloatArray:
            outside = special.ndtr((self.values - part[:, None]) / self._bandwidth)
            outside += special.ndtr((-self.values - part[:, None]) / self._bandwidth)
            return np.asarray(np.sum(outside * self._shares, axis=1))

        return self._in_order(c, above)

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        def log_density(part: FloatArray) -> FloatArray:
            sums = self._sums(part)
            return sums.top + np.log(sums.density) - math.log(self._bandwidth * _ROOT_TWO_PI)

        return self._in_order(c, log_density)

    def _markup(self, c: FloatArray) -> FloatArray:
        def ratio(part: FloatArray) -> FloatArray:
            sums = self._sums(part)
            far = times_exp(self._bandwidth * _ROOT_TWO_PI / sums.density, -sums.top, sums.whole)
            found = self._bandwidth * sums.near / sums.density + np.where(sums.whole > 0.0, far, 0.0)
            return np.where(np.isnan(found), np.inf, np.maximum(found, 0.0))

        return self._in_order(c, ratio)

    def _sums(self, c: FloatArray) -> "_Sums":
        """Return what F and f are made of at ascending points; of each point by itself, to the last digit.

        With φ relative to the largest w·φ(z), a kernel centred at or above c adds its Mills ratio Φ(z)/φ(z) to
        ``near``; one centred below c adds w to ``whole`` and takes its Mills ratio at −z away again, at most half
        of it. Only where −2cx/h², the logarithm of φ(z')/φ(z), is not far below zero does the reflection count.
        """
        values, shares, h = self.values, self._shares, self._bandwidth
        z = (c[:, None] - values) / h
        logs = np.log(shares) - 0.5 * z * z
        # so far out that every logarithm overflows, kernels are 0 and not NaN
        top = np.maximum(np.max(logs, axis=1), -np.finfo(np.float64).max)
        relative = np.exp(logs - top[:, None])
        # one scaled error function for each kernel
        mills = _ROOT_HALF_PI * special.erfcx(np.abs(z) * _ROOT_HALF)
        near = np.where(z > 0.0, -mills, mills) * relative
        whole = np.where(z > 0.0, shares, 0.0)
        # kernels so near to zero that their reflection counts: the first columns, in some rows
        columns = int(np.searchsorted(values, _FAR * h * h / (2.0 * c[0]), side="right")) if c[0] > 0.0 else values.size
        rows, cells = np.nonzero(2.0 * c[:, None] * values[:columns] <= _FAR * h * h)
        point, value, some, kernel = c[rows] / h, values[cells] / h, z[rows, cells], relative[rows, cells]
        ratio = normal_ratio(-(point + value), np.minimum(some, 0.0), 2.0 * point)
        mass = 0.5 * (special.erf(some * _ROOT_HALF) + special.erf((point + value) * _ROOT_HALF))
        near[rows, cells] = np.where(some > 0.0, 0.0, kernel * ratio)
        whole[rows, cells] = np.where(some > 0.0, shares[cells] * mass, 0.0)
        relative[rows, cells] = kernel * (1.0 + np.exp(-2.0 * point * value))
        return _Sums(top, np.sum(relative, axis=1), np.sum(near, axis=1), np.sum(whole, axis=1))

    def _in_order(self, c: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return a function of all points, evaluated at ascending ones, so many at a time."""
        rows, result, order = max(1, _CELLS // self.values.size), np.empty_like(c), np.argsort(c)
        for start in range(0, c.size, rows):
            part = order[start : start + rows]
            result[part] = function(c[part])
        return result

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        centres = rng.choice(self.values, size=n, p=self._shares)
        return np.abs(centres + self._bandwidth * rng.standard_normal(n))

    @property
    def _most_branches(self) -> int:
        return super()._most_branches + int(self.values.size)

    def _quickened(self, ironed: Ironed) -> Ironed:
        """Read the virtual costs of nearly everybody off a curve: each by itself is a sum over all kernels."""
        low, high = self._quantile(np.array([_FEW, 1.0 - _FEW])).tolist()
        if high - low > _MOST_WIDTHS * self._bandwidth:
            return ironed
        breaks = np.linspace(low, high, math.ceil((high - low) / self._bandwidth) + 1)
        if low < self._bandwidth:
            close = np.arange(math.ceil(math.log(self._bandwidth / low, _RATIO)))
            breaks = np.unique(np.append(breaks, low * _RATIO**close))
        # none inside flat parts, which the table knows
        flat = np.array(ironed.flat_parts).reshape(-1, 3)
        cell = np.searchsorted(flat[:, 0], breaks) - 1
        breaks = breaks[(cell < 0) | (breaks >= np.append(flat[:, 1], np.inf)[cell])]
        ends = flat[:, :2].ravel()
        breaks = np.concatenate([[low, high], breaks, ends[(low < ends) & (ends < high)]])
        if breaks.size > _MOST_PIECES:
            return ironed
        return replace(ironed, table=by_curve(ironed.table, breaks.tolist()))

    def _grid(self) -> FloatArray:
        # every bump, on a lattice of a quarter of the bandwidth
        lattice = 0.25 * self._bandwidth
        near = np.unique(np.round((self.values[:, None] / lattice) + np.arange(-12.0, 13.0, 2.0))) * lattice
        return np.unique(np.concatenate([grid_points(self, every=4), near[near > 0.0]]))


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums over the kernels at some points: F = near·e^top/√(2π) + whole, and f = density·e^top/(h·√(2π))."""

    top: FloatArray
    density: FloatArray
    near: FloatArray
    whole: FloatArray

    @property
    def mass(self) -> FloatArray:
        """F."""
        return np.maximum(self.near * np.exp(self.top) / _ROOT_TWO_PI + self.whole, 0.0)


def silverman(sample: Empirical, weights: FloatArray) -> float:
    """Return Silverman's bandwidth, 0.9·min(sd, IQR/1.34)·n^(−1/5), of the sample and its quartiles.

    n is (Σw)²/Σw² of everybody's ``weights``, not of the distinct values': without weights, how many there are.
    (Silverman, Density Estimation for Statistics and Data Analysis, 1986, section 3.4.2.)
    """
    shares = sample.weights / np.sum(sample.weights)
    spread = math.sqrt(math.fsum(shares * np.square(sample.values - sample.expectation)))
    quartiles = (sample.quantile(0.75) - sample.quantile(0.25)) / _IQR_OF_NORMAL
    if spread == 0.0:
        raise PriorError("bandwidth must be given where all samples are the same", field="bandwidth")
    count = 1.0 / math.fsum(np.square(weights / np.sum(weights)))
    return 0.9 * (min(spread, quartiles) if quartiles > 0.0 else spread) * math.pow(count, -0.2)
