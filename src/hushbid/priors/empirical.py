"""`Empirical`: a finite set of values with probabilities, for instance from a pilot survey.

Values v_1 < … < v_m with cumulative weights W_1 < … < W_m (W_0 = 0). A buyer who wants the costs up to v_j pays
v_j to each, so cumulative spending has the vertices (W_j, W_j·v_j) and the raw virtual cost of v_j is its slope,

    ψ_j = (W_j·v_j − W_{j−1}·v_{j−1}) / (W_j − W_{j−1}) = v_j + W_{j−1}·(v_j − v_{j−1}) / (W_j − W_{j−1}).

The ironed one is the slope of the greatest convex minorant, which pools neighbours into blocks; a block from after
v_i up to v_j has the same formula with i for j − 1. The right-hand form adds nonnegative terms: nothing cancels.

A bid in (v_{j−1}, v_j] takes ψ_j, one at or below v_1 takes ψ_1, one above v_m is never bought from: the rule is
truthful for all real-valued costs, not only for the m values.

The values must come from elsewhere than the bids they will price: a prior estimated from those very bids lets a
person's bid move their own price.
"""

import math
from collections.abc import Hashable
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray, Numbers
from hushbid.errors import PriorError
from hushbid.priors.base import Prior, number_text
from hushbid.priors.inputs import to_vector
from hushbid.priors.ironing import FlatPart

_SHOWN = 6
_EXACT_UP_TO = 4096
_TOO_CLOSE = 1e-12
_ROUNDING = 1e-15


class Empirical(Prior):
    """The distribution of a sample, optionally weighted; equal values are merged.

    >>> prior = Empirical([1, 2, 2, 4])
    >>> prior.virtual_cost([0.5, 1.0, 2.0, 4.0, 5.0])
    array([ 1. ,  1. ,  2.5, 10. ,  inf])
    """

    family: ClassVar[str] = "empirical"

    def __init__(self, samples: Numbers, weights: Numbers | None = None) -> None:
        values = to_vector(samples, "samples")
        masses = np.ones_like(values) if weights is None else to_vector(weights, "weights")
        if masses.size != values.size:
            raise PriorError(
                f"weights must be as many as samples, got {masses.size} weights for {values.size} samples",
                field="weights",
            )
        values, masses = values[masses > 0.0], masses[masses > 0.0]
        if values.size == 0:
            raise PriorError("samples must hold at least one value with a positive weight, got none", field="samples")
        # equal values are one step
        self._values, place = np.unique(values, return_inverse=True)
        self._weights = np.bincount(place, weights=masses).astype(np.float64)
        with np.errstate(over="ignore"):
            whole = np.sum(self._weights)
        if whole == np.inf:
            raise PriorError("weights must have a finite sum, got inf", field="weights")
        for array in (self._values, self._weights):
            array.setflags(write=False)

    @property
    def values(self) -> FloatArray:
        """The distinct values, ascending."""
        return self._values

    @property
    def weights(self) -> FloatArray:
        """The total weight of each of `values`, as given (they need not sum to one)."""
        return self._weights

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return (float(self._values[0]), float(self._values[-1]))

    @property
    def smallest_bid(self) -> float:
        """Zero: bids below the smallest value take its virtual cost."""
        return 0.0

    @property
    def expectation(self) -> float:
        return float(np.sum(self._values * (self._weights / np.sum(self._weights))))

    @property
    def is_regular(self) -> bool:
        """Whether the raw virtual costs are nondecreasing."""
        if self._block_ends.size == self._values.size:
            return True
        # exactly equal neighbours are pooled, and may differ by an ulp or two here
        return bool(np.all(self._raw_steps[1:] >= self._raw_steps[:-1] * (1.0 - _ROUNDING)))

    @cached_property
    def flat_parts(self) -> tuple[FlatPart, ...]:
        """Every step of the virtual cost as (left, right, virtual cost): it holds for bids in (left, right].

        The first step starts at 0, because a bid below the smallest value takes that value's virtual cost.
        """
        lefts = np.concatenate([[0.0], self._block_rights[:-1]])
        return tuple(zip(lefts.tolist(), self._block_rights.tolist(), self._block_costs.tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        return {"family": self.family, "values": self._values.tolist(), "weights": self._weights.tolist()}

    def to_text(self) -> str:
        """Return the prior as text that `parse_prior` reads back: values, each after its weight unless all weigh 1."""
        if np.all(self._weights == 1.0):
            return f"{self.family}:" + ",".join(number_text(v) for v in self._values.tolist())
        pairs = zip(self._weights.tolist(), self._values.tolist(), strict=True)
        return f"{self.family}:" + ",".join(f"{number_text(w)}*{number_text(v)}" for w, v in pairs)

    def _identity(self) -> Hashable:
        return self._values.tobytes(), self._weights.tobytes()

    def __repr__(self) -> str:
        if self._values.size > _SHOWN:
            low, high = self.support
            return f"Empirical({self._values.size} values from {low:.6g} to {high:.6g})"
        values = ", ".join(number_text(v) for v in self._values.tolist())
        if np.all(self._weights == 1.0):
            return f"Empirical([{values}])"
        return f"Empirical([{values}], weights=[{', '.join(number_text(w) for w in self._weights.tolist())}])"

    # -- the step function --------------------------------------------------------------------------------------------

    @cached_property
    def _levels(self) -> FloatArray:
        """The cumulative probabilities, each the float nearest to its exact value."""
        total = np.cumsum(self._weights)
        # counts add up exactly; other weights are added as integers of any size
        if total[-1] < 2.0**53 and np.all(self._weights == np.floor(self._weights)):
            return np.asarray(total / total[-1])
        exact = list(accumulate(exact_integers(self._weights)))
        return np.array([part / exact[-1] for part in exact])

    @cached_property
    def _cumulative(self) -> FloatArray:
        return self._levels * math.fsum(self._weights)

    @cached_property
    def _raw_steps(self) -> FloatArray:
        return self._slopes(np.arange(self._values.size))

    @cached_property
    def _block_ends(self) -> IndexArray:
        """Indices of the values that end a block of equal ironed virtual cost.

        Blocks whose costs agree but for rounding are one: values in cents, say, are not exactly what was meant, and who
        is bought from must not hang on their last digit.
        """
        ends = _minorant_vertices(self._values, self._weights, self._cumulative)
        costs = self._slopes(ends)
        if np.all(costs[1:] * (1.0 - _TOO_CLOSE) > costs[:-1]):
            return ends
        # a block ends where the next one's cost is clearly above its own
        kept, first = [], float(costs[0])
        for end, after in zip(ends[:-1].tolist(), costs[1:].tolist(), strict=True):
            if after * (1.0 - _TOO_CLOSE) > first:
                kept.append(end)
                first = after
        return np.array([*kept, ends[-1]], dtype=np.intp)

    @cached_property
    def _block_costs(self) -> FloatArray:
        return np.maximum.accumulate(self._slopes(self._block_ends))

    def _slopes(self, ends: IndexArray) -> FloatArray:
        return _slopes(self._values, self._weights, self._cumulative, ends)

    @cached_property
    def _block_rights(self) -> FloatArray:
        return self._values[self._block_ends]

    def _cdf(self, c: FloatArray) -> FloatArray:
        place = np.searchsorted(self._values, c, side="right")
        return np.where(place > 0, self._levels[place - 1], 0.0)

    def _pdf(self, c: FloatArray) -> FloatArray:
        place = np.minimum(np.searchsorted(self._values, c), self._values.size - 1)
        return np.where(self._values[place] == c, self._weights[place] / self._cumulative[-1], 0.0)

    def _quantile(self, q: FloatArray) -> FloatArray:
        place = np.searchsorted(self._levels, q, side="left")
        return self._values[np.minimum(place, self._values.size - 1)]

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self._quantile(1.0 - rng.random(n))

    def _raw_virtual_cost(self, c: FloatArray) -> FloatArray:
        return _step(self._raw_steps, np.searchsorted(self._values, c, side="left"))

    def _virtual_cost(self, c: FloatArray) -> FloatArray:
        return _step(self._block_costs, np.searchsorted(self._block_rights, c, side="left"))

    def _virtual_cost_inverse(self, x: FloatArray) -> FloatArray:
        place = np.searchsorted(self._block_costs, x, side="right")
        return np.where(place > 0, self._block_rights[place - 1], self._values[0])


def _step(costs: FloatArray, place: IndexArray) -> FloatArray:
    """Return the cost of each step; infinite beyond the last."""
    return np.where(place < costs.size, costs[np.minimum(place, costs.size - 1)], np.inf)


def _slopes(values: FloatArray, weights: FloatArray, cumulative: FloatArray, ends: IndexArray) -> FloatArray:
    """Return the slopes of the polygon through the origin and the points (W, W·v) at ``ends``."""
    # (W₂v₂ − W₁v₁)/(W₂ − W₁), written so that nothing cancels
    masses = np.add.reduceat(weights, np.concatenate([[0], ends[:-1] + 1]))
    before = np.concatenate([[0.0], cumulative[ends[:-1]]])
    rises = np.diff(values[ends], prepend=0.0)
    return values[ends] + rises * (before / masses)


def _minorant_vertices(values: FloatArray, weights: FloatArray, cumulative: FloatArray) -> IndexArray:
    """Return the vertices' indices of the greatest convex minorant of the points (W_j, W_j·v_j), the origin left out.

    Up to a few thousand values every comparison is exact. Beyond, floats pool first, and exact arithmetic settles the
    pairs that are too close to call.
    """
    ends = np.arange(values.size)
    if values.size > _EXACT_UP_TO:
        slopes = _slopes(values, weights, cumulative, ends)
        if np.any(np.diff(slopes) <= 0.0):
            from scipy.optimize import isotonic_regression  # late: slow to import, and few priors need it

            # the minorant's slopes are the isotonic regression of the raw slopes (pool adjacent violators)
            ends = isotonic_regression(slopes, weights=weights).blocks[1:].astype(np.intp) - 1
            slopes = _slopes(values, weights, cumulative, ends)
        if np.all(np.diff(slopes) > _TOO_CLOSE * slopes[1:]):
            return ends
    return _exact_vertices(exact_integers(values), list(accumulate(exact_integers(weights))), ends)


def _exact_vertices(values: list[int], cumulative: list[int], candidates: IndexArray) -> IndexArray:
    """Scan for a lower convex hull by a monotone chain in exact arithmetic; points on an edge are no vertices."""
    indices: list[int] = []
    hull: list[tuple[int, int]] = [(0, 0)]
    for j in candidates.tolist():
        x, y = cumulative[j], cumulative[j] * values[j]
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            # the last vertex stays if the polygon turns upwards there
            if (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            hull.pop()
            indices.pop()
        hull.append((x, y))
        indices.append(j)
    return np.array(indices, dtype=np.intp)


def exact_integers(array: FloatArray) -> list[int]:
    """Return the floats times one power of two that makes integers of them all."""
    mantissas, exponents = np.frexp(array)
    integers = np.ldexp(mantissas, 53).astype(np.int64)
    # relative to the smallest exponent of a number that is not zero
    shifts = np.where(integers == 0, 0, exponents - np.min(exponents[integers != 0], initial=2000))
    return [value << shift for value, shift in zip(integers.tolist(), shifts.tolist(), strict=True)]
