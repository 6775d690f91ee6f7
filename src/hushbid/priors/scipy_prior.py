"""Any continuous distribution of ``scipy.stats`` whose support lies in [0, inf).

``scipy.stats`` takes almost a second to import, so it is imported when such a prior is made and not before.
"""

import math
import time
import warnings
from collections.abc import Hashable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.errors import PriorError
from hushbid.priors.base import number_text, plain_number
from hushbid.priors.beta import Beta
from hushbid.priors.continuous import ROUNDING_OF_RATIO, ContinuousPrior
from hushbid.priors.families import Exponential, Gamma, LogNormal, Uniform
from hushbid.priors.inputs import to_finite, to_parameter, to_positive
from hushbid.priors.tables import grid_points
from hushbid.priors.truncated_normal import TruncatedNormal

_ROUNDING = 1e-12
_SLOWEST = 0.003
"""Seconds of computing for one value, beyond which ironing would take minutes."""


def from_scipy(frozen: Any) -> ContinuousPrior:
    """Return the prior that a frozen SciPy distribution describes, such as ``scipy.stats.weibull_min(2, scale=3)``.

    A distribution that Hushbid knows in closed form comes back as that family, which is more accurate far in the
    tails: ``scipy.stats.expon(scale=2)`` as ``Exponential(2)``.

    >>> from scipy import stats
    >>> from_scipy(stats.expon(scale=2))
    Exponential(scale=2.0)
    >>> from_scipy(stats.weibull_min(2, scale=3))
    from_scipy(weibull_min, 2, loc=0, scale=3)
    """
    from scipy import stats

    if not isinstance(frozen, stats.distributions.rv_frozen):
        raise PriorError(
            f"from_scipy needs a frozen distribution such as scipy.stats.weibull_min(2, scale=3), got {frozen!r}"
        )
    if not isinstance(frozen.dist, stats.rv_continuous):
        raise PriorError(f"from_scipy needs a continuous distribution, got the discrete {frozen.dist.name}")
    shapes, loc, scale = _parameters(frozen)
    low, high = _support(frozen, scale)
    if not 0.0 <= low < high:
        raise PriorError(f"the support must lie in [0, inf), got [{low:.12g}, {high:.12g}] for {frozen.dist.name}")
    # a family of ours is more accurate in the tails
    known = _closed_form(frozen, shapes, loc, scale)
    if known is not None:
        return known
    _refuse_slow(frozen, low, high)
    return ScipyPrior(frozen, shapes, loc, scale)


def scipy_prior(name: str, shapes: list[float], loc: float, scale: float) -> ContinuousPrior:
    """Return the prior of the ``scipy.stats`` distribution of that name."""
    from scipy import stats

    distribution: Any = getattr(stats, name, None) if isinstance(name, str) else None
    if not isinstance(distribution, stats.rv_continuous):
        raise PriorError(f"a SciPy prior must name a continuous distribution of scipy.stats, got {name!r}")
    needed = (distribution.shapes or "").replace(",", " ").split()
    if len(shapes) != len(needed):
        names = ", ".join(needed) or "none"
        raise PriorError(f"the distribution {name} needs {len(needed)} shapes ({names}), got {len(shapes)}")
    numbers = [
        to_parameter(shape, name, "a number", lambda x: x == x) for name, shape in zip(needed, shapes, strict=True)
    ]
    return from_scipy(distribution(*numbers, loc=to_finite(loc, "loc"), scale=to_positive(scale, "scale")))


def _parameters(frozen: Any) -> tuple[tuple[float, ...], float, float]:
    """Return shapes, loc and scale as plain floats, however they were given."""
    try:
        shapes, loc, scale = frozen.dist._parse_args(*frozen.args, **frozen.kwds)
        numbers = [float(value) for value in (*shapes, loc, scale)]
    except (TypeError, ValueError):
        raise PriorError(f"the parameters of {frozen.dist.name} must be plain numbers, got {frozen.kwds!r}") from None
    allowed = math.isfinite(numbers[-2]) and 0.0 < numbers[-1] < math.inf and frozen.dist._argcheck(*numbers[:-2])
    if not allowed or any(map(math.isnan, numbers)):
        shown = ", ".join(f"{number:.12g}" for number in numbers)
        raise PriorError(f"{frozen.dist.name} does not allow the parameters (shapes, loc, scale) = ({shown})")
    return tuple(numbers[:-2]), numbers[-2], numbers[-1]


def _support(frozen: Any, scale: float) -> tuple[float, float]:
    """Return the ends of the support, zero for a low end that only rounding has moved away from it."""
    low, high = (float(end) for end in frozen.support())
    return (0.0 if abs(low) < _ROUNDING * scale else low), high


def _refuse_slow(frozen: Any, low: float, high: float) -> None:
    """Refuse a distribution that integrates for every value: a prior is evaluated thousands of times."""
    point = np.array([low + (0.5 * (high - low) if high < np.inf else 1.0)])
    least = math.inf
    # the quickest of three: the first call may compile or import
    for _ in range(3):
        start = time.thread_time()
        _quietly(frozen.cdf, point)
        least = min(least, time.thread_time() - start)
    if least > _SLOWEST:
        raise PriorError(
            f"{frozen.dist.name} takes {1e3 * least:.0f} ms for one value of its distribution function, and at most"
            f" {1e3 * _SLOWEST:.0f} ms are allowed; use Empirical with a large sample of it instead"
        )


def _closed_form(frozen: Any, shapes: tuple[float, ...], loc: float, scale: float) -> ContinuousPrior | None:
    """Return the distribution as one of our own families, which have closed forms; None if it is none of them."""
    from scipy import stats

    kind = type(frozen.dist)
    if kind is type(stats.uniform):
        return Uniform(*_support(frozen, scale))
    if kind is type(stats.beta):
        return Beta(shapes[0], shapes[1], *_support(frozen, scale))
    if kind is type(stats.truncnorm) and math.isfinite(shapes[0]):
        return TruncatedNormal(loc, scale, *_support(frozen, scale))
    if loc != 0.0:
        return None
    if kind is type(stats.expon):
        return Exponential(scale)
    if kind is type(stats.gamma):
        return Gamma(shapes[0], scale)
    if kind is type(stats.lognorm):
        return LogNormal(math.log(scale), shapes[0])
    return None


class ScipyPrior(ContinuousPrior):
    """A frozen SciPy distribution as a prior; make one with `from_scipy`."""

    family: ClassVar[str] = "scipy"
    _noise_share: ClassVar[float] = ROUNDING_OF_RATIO

    def __init__(self, frozen: Any, shapes: tuple[float, ...], loc: float, scale: float) -> None:
        from scipy import stats

        self._frozen = frozen
        self._key = (frozen.dist.name, shapes, loc, scale)
        self._is_named = type(getattr(stats, frozen.dist.name, None)) is type(frozen.dist)
        self._support = _support(frozen, scale)

    @property
    def support(self) -> tuple[float, float]:
        """The interval [low, high] of the distribution."""
        return self._support

    @property
    def expectation(self) -> float:
        return float(self._frozen.mean())

    def to_dict(self) -> dict[str, Any]:
        self._check_named()
        name, shapes, loc, scale = self._key
        return {
            "family": self.family,
            "name": name,
            "shapes": list(map(plain_number, shapes)),
            "loc": loc,
            "scale": scale,
        }

    def to_text(self) -> str:
        """Return the prior as a text that `parse_prior` reads back: ``scipy:weibull_min,2,loc=0,scale=3``."""
        self._check_named()
        return f"{self.family}:{self._described(',')}"

    def _identity(self) -> Hashable:
        return self._key, None if self._is_named else self._frozen.dist

    def __repr__(self) -> str:
        return f"from_scipy({self._described(', ')})"

    def _described(self, comma: str) -> str:
        name, shapes, loc, scale = self._key
        numbers = [number_text(shape) for shape in shapes]
        return comma.join([name, *numbers, f"loc={number_text(loc)}", f"scale={number_text(scale)}"])

    def _check_named(self) -> None:
        if not self._is_named:
            raise PriorError(f"only distributions that scipy.stats names can be written down, got {self._key[0]!r}")

    # -- densities ----------------------------------------------------------------------------------------------------

    def _cdf(self, c: FloatArray) -> FloatArray:
        return _quietly(self._frozen.cdf, c)

    def _survival(self, c: FloatArray) -> FloatArray:
        return _quietly(self._frozen.sf, c)

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        return _quietly(self._frozen.logpdf, c)

    def _quantile(self, q: FloatArray) -> FloatArray:
        if not self._has_quantiles:
            return super()._quantile(q)
        lower = q < 0.5
        result = np.empty_like(q)
        result[lower] = _quietly(self._frozen.ppf, q[lower])
        result[~lower] = _quietly(self._frozen.isf, 1.0 - q[~lower])
        return result

    @cached_property
    def _has_quantiles(self) -> bool:
        """Whether the distribution knows its quantiles; else SciPy would search for them one by one."""
        from scipy import stats

        return type(self._frozen.dist)._ppf is not stats.rv_continuous._ppf

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(self._frozen.rvs(size=n, random_state=rng), dtype=np.float64)

    def _grid(self) -> FloatArray:
        return grid_points(self, every=1 if self._has_quantiles else 4)


def _quietly(function: Any, x: FloatArray) -> FloatArray:
    """Return SciPy's value without its warnings: deep in a tail they are expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(function(x), dtype=np.float64)
