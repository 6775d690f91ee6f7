"""What every prior offers.

A prior F is the platform's belief about a person's privacy cost c, the cost per unit of privacy loss. With
density f on a support [low, high] within [0, inf), the mechanism needs the *virtual cost*

    ψ(c) = c + F(c)/f(c)        on the support,        ψ(c) = inf        above it.

The second term, the *markup* F/f, is what the platform pays because it cannot see c ([F], section 3). If ψ is not
nondecreasing, the *ironed* virtual cost takes its place (see `hushbid.priors.ironing`).

[F] = Fallah, Makhdoumi, Malekian, Ozdaglar, EC 2022, arXiv 2201.03968.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import Any, ClassVar, overload

import numpy as np

from hushbid.common.arrays import FloatArray, Numbers, Rng, as_generator
from hushbid.priors.inputs import no_nan, to_bids, to_draws, to_probabilities
from hushbid.priors.ironing import FlatPart

_BLOCK = 1 << 15


class Prior(ABC):
    """A distribution of privacy costs: what the platform believes before anybody bids.

    Every method takes a number, a list or an array, and returns a float or an array of the same shape.
    """

    family: ClassVar[str]
    """The name of the family in dict and text forms."""

    # -- what a family defines: plain arrays in, plain arrays out, no checks ------------------------------------------

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest interval [low, high] that holds every cost; high may be inf."""

    @property
    @abstractmethod
    def expectation(self) -> float:
        """The expected cost."""

    @property
    @abstractmethod
    def is_regular(self) -> bool:
        """Whether the raw virtual cost is nondecreasing, so that ironing changes nothing."""

    @property
    @abstractmethod
    def flat_parts(self) -> tuple[FlatPart, ...]:
        """The maximal intervals on which the virtual cost is constant, as (left, right, virtual cost), ascending."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the prior as a plain dict that `prior_from_dict` reads back."""

    @abstractmethod
    def to_text(self) -> str:
        """Return the prior as a short text that `parse_prior` reads back."""

    @abstractmethod
    def _cdf(self, c: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _pdf(self, c: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _quantile(self, q: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray: ...

    @abstractmethod
    def _raw_virtual_cost(self, c: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _virtual_cost(self, c: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _virtual_cost_inverse(self, x: FloatArray) -> FloatArray: ...

    def _identity(self) -> Hashable:
        """Return what makes two priors of one class equal."""
        return id(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    @property
    def smallest_bid(self) -> float:
        """The smallest bid that has a virtual cost."""
        return self.support[0]

    @property
    def is_linear(self) -> bool:
        """Whether the virtual cost is an affine function of the bid on the whole support."""
        return self.slope is not None

    @property
    def slope(self) -> float | None:
        """The slope of the virtual cost if it is affine, else None."""
        return None

    @property
    def is_stepped(self) -> bool:
        """Whether the virtual cost is a step function on the whole support."""
        parts, (low, high) = self.flat_parts, self.support
        if not parts or parts[0][0] > low or parts[-1][1] < high:
            return False
        return all(one[1] >= after[0] for one, after in pairwise(parts))

    # -- what everybody calls -----------------------------------------------------------------------------------------

    @overload
    def cdf(self, c: float) -> float: ...
    @overload
    def cdf(self, c: Numbers) -> FloatArray: ...
    def cdf(self, c: float | Numbers) -> float | FloatArray:
        """Return the probability of a cost of at most ``c``."""
        return like_input(in_blocks(self._cdf_everywhere, no_nan(c, "costs")))

    @overload
    def pdf(self, c: float) -> float: ...
    @overload
    def pdf(self, c: Numbers) -> FloatArray: ...
    def pdf(self, c: float | Numbers) -> float | FloatArray:
        """Return the density at ``c`` (for `Empirical`, the probability of exactly ``c``); zero outside the support."""
        return like_input(in_blocks(self._pdf_everywhere, no_nan(c, "costs")))

    @overload
    def quantile(self, q: float) -> float: ...
    @overload
    def quantile(self, q: Numbers) -> FloatArray: ...
    def quantile(self, q: float | Numbers) -> float | FloatArray:
        """Return the smallest c with ``cdf(c) >= q``, within the support."""
        low, high = self.support
        return like_input(in_blocks(lambda block: np.clip(self._quantile(block), low, high), to_probabilities(q)))

    def sample(self, n: int, *, rng: Rng) -> FloatArray:
        """Return ``n`` independent costs; ``rng`` is a generator or a seed."""
        generator, n = as_generator(rng), to_draws(n)
        with np.errstate(all="ignore"):
            return np.clip(self._sample(n, generator), *self.support)

    @overload
    def raw_virtual_cost(self, c: float) -> float: ...
    @overload
    def raw_virtual_cost(self, c: Numbers) -> FloatArray: ...
    def raw_virtual_cost(self, c: float | Numbers) -> float | FloatArray:
        """Return c + F(c)/f(c), before ironing; inf above the support and where the density vanishes."""
        return like_input(in_blocks(self._raw_virtual_cost, self._bids(c)))

    @overload
    def virtual_cost(self, c: float) -> float: ...
    @overload
    def virtual_cost(self, c: Numbers) -> FloatArray: ...
    def virtual_cost(self, c: float | Numbers) -> float | FloatArray:
        """Return the virtual cost of each bid, ironed where the raw one is not nondecreasing; inf above the support."""
        return like_input(in_blocks(self._virtual_cost, self._bids(c)))

    @overload
    def virtual_cost_inverse(self, x: float) -> float: ...
    @overload
    def virtual_cost_inverse(self, x: Numbers) -> FloatArray: ...
    def virtual_cost_inverse(self, x: float | Numbers) -> float | FloatArray:
        """Return the largest c of the support with a virtual cost of at most ``x``, or the support's low end.

        It is the price that a buyer who values a unit at ``x`` posts to one person: the largest maximiser of
        (x − c)·F(c).
        """
        low, high = self.support
        return like_input(
            in_blocks(lambda block: np.clip(self._virtual_cost_inverse(block), low, high), no_nan(x, "virtual costs"))
        )

    def _bids(self, c: object) -> FloatArray:
        return to_bids(c, self.smallest_bid, lambda _: self.support)

    def _cdf_everywhere(self, c: FloatArray) -> FloatArray:
        low, high = self.support
        inside = self._cdf(np.clip(c, low, finite(high)))
        return np.where(c < low, 0.0, np.where(c >= high, 1.0, np.clip(inside, 0.0, 1.0)))

    def _pdf_everywhere(self, c: FloatArray) -> FloatArray:
        low, high = self.support
        outside = (c < low) | (c > high) | (c == np.inf)
        return np.where(outside, 0.0, self._pdf(np.clip(c, low, finite(high))))


def finite(high: float) -> float:
    """Return the largest float where a support has no end."""
    return min(high, float(np.finfo(np.float64).max))


def like_input(array: FloatArray) -> float | FloatArray:
    """Return a plain float for a scalar input, else the array itself."""
    return float(array) if array.ndim == 0 else array


def in_blocks(function: Callable[[FloatArray], FloatArray], array: FloatArray) -> FloatArray:
    """Apply an elementwise function block by block: temporaries stay in cache and memory stays flat."""
    flat = np.ravel(array)
    result = np.empty_like(flat)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            result[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return result.reshape(array.shape)


def number_text(value: float) -> str:
    """Return the shortest text that reads back as ``value``, without a plus sign (that joins components)."""
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value)) if value or math.copysign(1.0, value) > 0 else "0"
    return repr(value).replace("+", "")


def plain_number(value: float) -> float | str:
    """Return ``value`` for a dict that strict JSON can hold: infinity becomes the text "inf"."""
    return value if math.isfinite(value) else "inf"
