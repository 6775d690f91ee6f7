"""`Truncated`: any prior, cut to an interval.

With F and f of the prior before the cut, the markup between the cuts is

    (F(c) − F(low)) / f(c):

a cut above leaves virtual costs as they are, a cut below lowers them, and above the upper cut they are infinite. So
menus, losses and rents under a prior without an end become bounded. A log-concave density stays log-concave, and a
log-normal prior stays regular too: with x = (ln c − μ)/s the slope of (Φ(x) − Φ(x_low))/φ(x) is 1 + x(Φ − Φ_low)/φ,
which is positive because φ + xΦ is, and −xΦ_low is not negative for x < 0. Other priors are ironed where they fall.
"""

from collections.abc import Hashable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray
from hushbid.errors import PriorError
from hushbid.priors.base import Prior, number_text, plain_number
from hushbid.priors.continuous import ROUNDING_OF_RATIO, ContinuousPrior
from hushbid.priors.empirical import Empirical
from hushbid.priors.families import Exponential, LogNormal, Uniform
from hushbid.priors.inputs import to_support_high, to_support_low
from hushbid.priors.truncated_normal import TruncatedNormal

_REGULAR_WHEN_CUT = (LogNormal, Uniform, Exponential, TruncatedNormal)
_LEAST_MASS = 1e-9
"""A cut must leave so much of the prior: of less, quantiles have no digits."""


class Truncated(ContinuousPrior):
    """A prior given that the cost lies in [low, high]; high may be inf.

    A sample that is cut is a smaller sample: of an `Empirical` prior the values between the cuts are left.

    >>> from hushbid.priors import LogNormal
    >>> prior = Truncated(LogNormal(0, 1), 0.1, 10)
    >>> prior.virtual_cost([0.1, 12.0]), Truncated(Empirical([1, 2, 5]), 0, 3)
    (array([0.1, inf]), Empirical([1, 2]))
    """

    family: ClassVar[str] = "truncated"
    _noise_share: ClassVar[float] = ROUNDING_OF_RATIO

    def __new__(cls, prior: Prior, low: float, high: float) -> Prior:  # type: ignore[misc]
        """Return the prior cut to an interval; a sample comes back as the sample that is left."""
        if not isinstance(prior, Empirical):
            return super().__new__(cls)
        left = to_support_low(low)
        inside = (prior.values >= left) & (prior.values <= to_support_high(high, left, infinite=True))
        if not inside.any():
            raise PriorError(f"[low, high] must hold some of the sample, got [{low:.12g}, {high:.12g}]", field="low")
        return Empirical(prior.values[inside], prior.weights[inside])

    def __init__(self, prior: Prior, low: float, high: float) -> None:
        if not isinstance(prior, ContinuousPrior):
            raise PriorError(f"prior must be a prior such as LogNormal(0, 1), got {prior!r}", field="prior")
        self._prior = prior
        self._low = to_support_low(low)
        self._high = to_support_high(high, self._low, infinite=True)
        start, end = prior.support
        self._support = (max(self._low, start), min(self._high, end))
        if not self._support[0] < self._support[1] or not self._total >= _LEAST_MASS:
            raise PriorError(
                f"[low, high] must hold at least {_LEAST_MASS:g} of the prior, got [{self._low:.12g},"
                f" {self._high:.12g}] for {prior!r}",
                field="low",
            )

    def __getnewargs__(self) -> tuple[Prior, float, float]:
        """Return what `__new__` needs where a prior is unpickled."""
        return self._prior, self._low, self._high

    @property
    def prior(self) -> ContinuousPrior:
        """The prior before the cut."""
        return self._prior

    @property
    def support(self) -> tuple[float, float]:
        """What the cuts leave of the prior's support."""
        return self._support

    def to_dict(self) -> dict[str, Any]:
        ends = {"low": plain_number(self._low), "high": plain_number(self._high)}
        return {"family": self.family, "prior": self._prior.to_dict(), **ends}

    def to_text(self) -> str:
        """Return the prior as a text that `parse_prior` reads back: ``truncated:0.1,10,lognormal:0,1``."""
        return f"{self.family}:{number_text(self._low)},{number_text(self._high)},{self._prior.to_text()}"

    def _identity(self) -> Hashable:
        return self.__getnewargs__()

    def __repr__(self) -> str:
        return f"Truncated({self._prior!r}, {number_text(self._low)}, {number_text(self._high)})"

    # -- what is left between the cuts --------------------------------------------------------------------------------

    @cached_property
    def _cut(self) -> tuple[float, float]:
        """How much of the prior lies below the lower cut, and how much above the upper one."""
        low, high = np.array([self._support[0]]), np.array([self._support[1]])
        with np.errstate(all="ignore"):
            below, above = self._prior._cdf_everywhere(low), self._prior._survival_everywhere(high)
        return (0.0 if self._low <= self._prior.support[0] else float(below[0])), float(above[0])

    @cached_property
    def _total(self) -> float:
        """How much of the prior lies between the cuts, from whichever tail keeps its digits."""
        below, above = self._cut
        if below <= 0.5:
            return (1.0 - above) - below
        with np.errstate(all="ignore"):
            return float(self._prior._survival_everywhere(np.array([self._support[0]]))[0]) - above

    def _mass(self, c: FloatArray) -> FloatArray:
        """Return how much of the prior lies between the lower cut and ``c``."""
        below, above = self._cut
        if below <= 0.5:
            return np.maximum(self._prior._cdf(c) - below, 0.0)
        return np.maximum((self._total + above) - self._prior._survival(c), 0.0)

    def _cdf(self, c: FloatArray) -> FloatArray:
        return self._mass(c) / self._total

    def _survival(self, c: FloatArray) -> FloatArray:
        return np.maximum(self._prior._survival(c) - self._cut[1], 0.0) / self._total

    def _log_pdf(self, c: FloatArray) -> FloatArray:
        found: FloatArray = self._prior._log_pdf(c) - np.log(self._total)
        return found

    def _quantile(self, q: FloatArray) -> FloatArray:
        below, _ = self._cut
        if below > 0.5:
            return super()._quantile(q)
        low, high = self._support
        found: FloatArray = np.clip(self._prior._quantile(np.minimum(below + q * self._total, 1.0)), low, high)
        # the ends themselves, which rounding would miss
        found[q >= 1.0], found[q <= 0.0] = high, low
        return found

    # -- the virtual cost ---------------------------------------------------------------------------------------------

    @property
    def _always_regular(self) -> bool:
        uncut = self._cut[0] == 0.0 and self._prior._always_regular
        return uncut or isinstance(self._prior, _REGULAR_WHEN_CUT)

    def _markup(self, c: FloatArray) -> FloatArray:
        return self._prior._markup(c) if self._cut[0] == 0.0 else super()._markup(c)

    def _grid(self) -> FloatArray:
        low, high = self._support
        points = np.concatenate([super()._grid(), self._prior._grid()])
        return np.unique(points[(points >= low) & (points <= high)])

    @property
    def _most_branches(self) -> int:
        return self._prior._most_branches

    @property
    def _mass_ends(self) -> tuple[float, ...]:
        low, high = self._support
        return (*(end for end in self._prior._mass_ends if low < end < high), high)
