"""`OwnPrior`: the class from which you make a family that Hushbid does not have, with F and f alone.

A family is a frozen dataclass of numbers that says its `support`, its `distribution` function F and its `density` f;
all else follows numerically. Nothing is taken for granted: the virtual cost is ironed where it falls, unless the family
says that it is `regular`. When a prior is made, its word is tested, and what does not hold is refused in a sentence:

1. F is a distribution function on the support: it rises from 0 to 1, without a jump at the low end.
2. F and f agree: between any two of many points F rises by the integral of f. The integral is Gauss's, on cells that
   are halved where the two differ, down to a millionth: a density may jump, and may be infinite at an end.
3. A family that says it is regular has a virtual cost that does not fall between any two of the points.

`hushbid.priors.register` gives a family its name in texts, files and records.
"""

from abc import abstractmethod
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.errors import HushbidError, PriorError
from hushbid.priors.continuous import ROUNDING_OF_RATIO, ParametricPrior
from hushbid.priors.inputs import interval_text, to_finite
from hushbid.priors.tables import grid_points, integrals

REGISTERED: dict[str, type["OwnPrior"]] = {}
"""Own families by their names; `hushbid.priors.register` adds to it."""

_LARGEST = float(np.finfo(np.float64).max)
_POWERS = 2.0 ** np.arange(-1000.0, 1000.0)
_EVEN = np.linspace(0.0, 1.0, 257)
_LEVELS = np.concatenate([np.logspace(-9, -2, 29), np.linspace(0.01, 0.99, 99)[1:-1], 1.0 - np.logspace(-2, -9, 29)])
_ROUNDS, _MOST_CELLS = 48, 4096
_CLOSE, _TOLERANCE, _BETWEEN_FLOATS = 1e-8, 1e-6, 1e-3
_FALL = 1e-9


class OwnPrior(ParametricPrior):
    """A family that Hushbid does not have: subclass it as a frozen dataclass of numbers.

    Needed are ``family``, `support`, `distribution` and `density`; `regular`, `survival` and `check` may be overridden.
    """

    regular: ClassVar[bool] = False
    """Whether the virtual cost is known to be nondecreasing for all parameters. If not said, it is looked at."""

    _noise_share: ClassVar[float] = ROUNDING_OF_RATIO

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest interval [low, high] that holds every cost; high may be inf."""

    @abstractmethod
    def distribution(self, c: FloatArray) -> FloatArray:
        """Return F: the probability of a cost of at most each ``c``, all of them within the support."""

    @abstractmethod
    def density(self, c: FloatArray) -> FloatArray:
        """Return f, the derivative of F, at each ``c`` within the support; may be infinite at an end."""

    def survival(self, c: FloatArray) -> FloatArray:
        """Return 1 − F; override it where 1 − F loses digits that the upper tail needs."""
        return 1.0 - np.asarray(self.distribution(c))

    def check(self) -> None:
        """Raise `hushbid.errors.PriorError` if the parameters do not fit each other."""

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "__post_init__" in cls.__dict__:
            raise PriorError(f"{cls.__name__} must check its parameters in check(), not in __post_init__")

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Refuse a class that is no frozen dataclass: only those are tested when made, and stay what was tested."""
        if not (is_dataclass(cls) and cls.__dataclass_params__.frozen):
            raise PriorError(f"{cls.__name__} must be a frozen dataclass: put @dataclass(frozen=True) above it")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Make the parameters floats, then test everything that is claimed."""
        self._set(**{name: to_finite(getattr(self, name), name) for name in self.parameter_names()})
        try:
            self.check()
            with np.errstate(all="ignore"):
                _test(self)
        except HushbidError:
            raise
        except Exception as problem:
            reason = f"{type(problem).__name__}: {problem}"
            raise PriorError(f"{self!r} must compute over its whole support, but it raises {reason}") from problem

    def to_dict(self) -> dict[str, Any]:
        """Return the prior as a plain dict that `prior_from_dict` reads back, once its family is registered."""
        self._refuse_unregistered()
        return super().to_dict()

    def to_text(self) -> str:
        """Return the prior as a short text that `parse_prior` reads back, once its family is registered."""
        self._refuse_unregistered()
        return super().to_text()

    def _refuse_unregistered(self) -> None:
        named = REGISTERED.get(getattr(self, "family", ""))
        if named is type(self):
            return
        reason = "its class must be registered, by @hushbid.priors.register above it"
        if named is not None and named.__qualname__ == type(self).__qualname__:
            reason = "its class has been defined again since it was made: make the prior again"
        raise PriorError(f"a {type(self).__name__} cannot be written down: {reason}")

    # -- what `Prior` needs -------------------------------------------------------------------------------------------

    @property
    def _always_regular(self) -> bool:
        return bool(self.regular)

    def _cdf(self, c: FloatArray) -> FloatArray:
        return np.clip(_numbers(self, "distribution", c), 0.0, 1.0)

    def _survival(self, c: FloatArray) -> FloatArray:
        return np.clip(_numbers(self, "survival", c), 0.0, 1.0)

    def _pdf(self, c: FloatArray) -> FloatArray:
        return _numbers(self, "density", c)

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        return np.log(_numbers(self, "density", c))

    def _grid(self) -> FloatArray:
        return grid_points(self, every=4)

    def _virtual_cost(self, c: FloatArray) -> FloatArray:
        # regular ones too: the table smooths rounding
        return self._tabulated(c)


def _numbers(prior: OwnPrior, name: str, c: FloatArray) -> FloatArray:
    """Return what a method says of some points, one number each. It gets a copy of them, which it may overwrite."""
    found = np.asarray(getattr(prior, name)(c.copy()))
    if found.shape != c.shape or found.dtype.kind not in "fiu":
        raise PriorError(
            f"{name} of {prior!r} must return one number for each c, got {found.dtype} of shape {found.shape} for"
            f" shape {c.shape}"
        )
    return found.astype(np.float64, copy=False)


@lru_cache(maxsize=256)
def _test(prior: OwnPrior) -> None:
    """Test what a prior claims, once for equal ones."""
    low, high = _support(prior)
    # step 1: F by itself, over the whole support
    points = np.unique(np.clip(low + np.append(0.0, _POWERS), low, min(high, _LARGEST)))
    if high < np.inf:
        points = np.unique(np.concatenate([points, low + (high - low) * _EVEN]))
    mass, density = _numbers(prior, "distribution", points), _numbers(prior, "density", points)
    falls = ~(np.diff(mass) >= -_FALL)
    if falls.any():
        first = int(np.argmax(falls))
        reason = f"falls from {mass[first]:.6g} at c={points[first]:.6g} to {mass[first + 1]:.6g} at"
        raise PriorError(f"distribution of {prior!r} must not fall, but {reason} c={points[first + 1]:.6g}")
    if not (abs(mass[0]) <= _TOLERANCE and abs(mass[-1] - 1.0) <= _TOLERANCE):
        raise PriorError(
            f"distribution of {prior!r} must rise from 0 to 1 over its support {interval_text(low, high)}, got"
            f" {mass[0]:.6g} and {mass[-1]:.6g}"
        )
    if not np.all(density >= 0.0):
        bad = float(points[int(np.argmax(~(density >= 0.0)))])
        raise PriorError(f"density of {prior!r} must be at least 0 on its support, but at c={bad:.6g} it is not")
    # step 2: F against the integral of f
    ends = [high] if high < np.inf else []
    _refuse_disagreement(prior, np.unique(np.concatenate([[low], prior._quantile(_LEVELS), ends])))
    # step 3: the virtual cost, if it is said to rise
    if prior.regular:
        _refuse_falls(prior, prior._grid())


def _support(prior: OwnPrior) -> tuple[float, float]:
    try:
        low, high = (np.nan if isinstance(end, str) else float(end) for end in prior.support)
    except (TypeError, ValueError):
        low = high = np.nan
    if not 0.0 <= low < high or low == np.inf:
        raise PriorError(f"support of {prior!r} must be (low, high) with 0 <= low < high, got {prior.support!r}")
    return low, high


def _refuse_disagreement(prior: OwnPrior, cells: FloatArray) -> None:
    """Halve the cells over which F does not rise by the integral of f, until they are few and tiny or too many."""
    left, right, reason = cells[:-1], cells[1:], ""
    for _ in range(_ROUNDS):
        rise = prior._cdf(right) - prior._cdf(left)
        summed = integrals(prior._pdf, left, right)
        off = ~(np.abs(summed - rise) <= _CLOSE * np.abs(rise) + 1e-3 * _CLOSE)
        missing = np.where(np.isfinite(summed), np.abs(summed - rise), rise)
        # between neighbouring floats a density that grows without bound cannot be added up
        middle = 0.5 * (left + right)
        open_ = (left < middle) & (middle < right)
        if np.sum(missing[off & open_]) <= _TOLERANCE and np.sum(missing[off & ~open_]) <= _BETWEEN_FLOATS:
            return
        worst = int(np.argmax(missing >= (1.0 - _FALL) * missing.max()))  # the first of equals
        reason = reason or (
            f"between c={left[worst]:.6g} and c={right[worst]:.6g} the one rises by {rise[worst]:.3g} and the other"
            f" adds up to {summed[worst]:.3g}"
        )
        if np.count_nonzero(off) > _MOST_CELLS or not np.any(off & open_):
            break
        left, right = (np.concatenate(ends) for ends in ((left[off], middle[off]), (middle[off], right[off])))
    raise PriorError(f"distribution and density of {prior!r} must agree, but {reason}")


def _refuse_falls(prior: OwnPrior, points: FloatArray) -> None:
    """Refuse a prior that claims to be regular and has a virtual cost that falls."""
    costs = prior._raw_virtual_cost(points)
    before = np.maximum.accumulate(costs)
    # where F has rounded to 1 a fall concerns nobody
    falls = (costs < before * (1.0 - _FALL)) & (prior._cdf(points) < 1.0 - _FALL)
    if falls.any():
        at = int(np.argmax(np.where(falls, before - costs, 0.0)))
        raise PriorError(
            f"{prior!r} says that it is regular, but its virtual cost falls from {before[at]:.6g} to {costs[at]:.6g}"
            f" up to c={points[at]:.6g}: without regular = True it is ironed there"
        )
