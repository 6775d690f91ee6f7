"""The rents of very many people who differ by nothing but their bids, from those of some of them.

Such people's rents are a function of the bid. It is computed for people near Chebyshev nodes, and a polynomial through
them is checked against others; where it is not close enough the people are divided, down to so few that each is
computed. Any allocation rule will do, and nobody is imagined: every point is a person with a rent of their own.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.polynomial import chebyshev

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.payments.rent_bounds import FINEST
from hushbid.payments.rent_integrals import rents
from hushbid.payments.rule import Rents, RuleWithPotential
from hushbid.priors import Prior

_DEGREE = 12
_FEW = 96  # so few people are computed one by one
_DIVIDED = 4
_AT_POINTS, _BETWEEN = 0.9, 0.05
"""The parts of the tolerance for what is computed of some people, and for the curve through them."""

_PLACES = np.cos(np.pi * np.arange(2 * _DEGREE + 3) / (2 * _DEGREE + 2))[::-1]
"""Where to look in a piece: every other one is a node, and both ends are checked."""


@dataclass(slots=True, eq=False)
class _People:
    """People by ascending bid, and what is known of their rents."""

    rule: RuleWithPotential
    prior: Prior
    rows: IndexArray
    bids: FloatArray
    besides: FloatArray
    tolerance: float
    estimate: FloatArray
    error: float = 0.0
    largest: float = 0.0

    def compute(self, which: IndexArray) -> None:
        """Compute the rents of some people."""
        found = rents(
            self.rule,
            self.prior,
            self.rows[which],
            self.bids[which],
            paid_besides=self.besides[which],
            tolerance=_AT_POINTS * self.tolerance,
        )
        self.estimate[which] = found.estimate
        self.error = max(self.error, found.error)
        self.largest = max(self.largest, float((self.besides[which] + found.estimate).max(initial=0.0)))

    @property
    def allowed(self) -> float:
        """How far a curve may be from the people it passes by."""
        return _BETWEEN * max(self.tolerance, FINEST) * self.largest

    def places(self, first: int, last: int) -> IndexArray:
        """People at nodes and between them, of those from ``first`` up to ``last``."""
        low, high = self.bids[first], self.bids[last - 1]
        wanted = 0.5 * (low + high) + 0.5 * (high - low) * _PLACES
        places: IndexArray = self.bids[first:last].searchsorted(wanted) + first
        return np.clip(places, first, last - 1)

    def curve(self, first: int, last: int, some: IndexArray) -> tuple[FloatArray, float]:
        """The polynomial through every other one of some people, and how far the others are from it."""
        low, high = self.bids[first], self.bids[last - 1]
        if not high > low:
            return self.estimate[some[:1]], 0.0
        x = (2.0 * self.bids[some] - low - high) / (high - low)
        nodes = np.unique(x[1::2], return_index=True)[1] * 2 + 1
        terms = chebyshev.chebvander(x, nodes.size - 1)
        coefficients: FloatArray = np.linalg.lstsq(terms[nodes], self.estimate[some[nodes]], rcond=None)[0].astype(
            float
        )
        return coefficients, float(np.abs(terms @ coefficients - self.estimate[some]).max())

    def fill(self, first: int, last: int, coefficients: FloatArray) -> None:
        """Read everybody's rent off a polynomial."""
        low, high = self.bids[first], self.bids[last - 1]
        x = (2.0 * self.bids[first:last] - low - high) / (high - low) if high > low else np.zeros(last - first)
        self.estimate[first:last] = chebyshev.chebval(x, coefficients)


def rents_of_alike(
    rule: RuleWithPotential,
    prior: Prior,
    rows: IndexArray,
    bids: FloatArray,
    *,
    paid_besides: FloatArray,
    tolerance: float = 1e-6,
) -> Rents:
    """Return the rents of people who face the same rule at the same bid; see `hushbid.payments.rents`."""
    order = np.argsort(bids)
    people = _People(rule, prior, rows[order], bids[order], paid_besides[order], tolerance, np.zeros(rows.size))
    ends = np.array([end for part in prior.flat_parts for end in part[:2]])
    cuts = np.unique(np.concatenate([[0, rows.size], people.bids.searchsorted(ends, side="right")]))
    pieces, worst = list(pairwise(cuts.tolist())), 0.0
    while pieces:
        some = [
            np.arange(first, last) if last - first <= _FEW else people.places(first, last) for first, last in pieces
        ]
        people.compute(np.unique(np.concatenate(some)))
        left = []
        for (first, last), places in zip(pieces, some, strict=True):
            if last - first <= _FEW:
                continue
            coefficients, error = people.curve(first, last, places)
            if error > people.allowed and people.bids[first] < people.bids[last - 1]:
                left += _divided(people.bids, first, last)
            else:
                people.fill(first, last, coefficients)
                worst = max(worst, error)
        pieces = left
    error = people.error + worst
    estimate = np.empty(rows.size)
    estimate[order] = people.estimate
    return Rents(lower=estimate - error, upper=estimate + error, estimate=estimate)


def _divided(bids: FloatArray, first: int, last: int) -> list[tuple[int, int]]:
    """The people from ``first`` up to ``last`` in parts of equal width."""
    edges = np.linspace(bids[first], bids[last - 1], _DIVIDED + 1)[1:-1]
    cuts = np.unique(np.concatenate([[first], bids[first:last].searchsorted(edges) + first, [last]])).tolist()
    if len(cuts) == 2:  # all but equal bids: by number
        cuts = [first, (first + last) // 2, last]
    return list(pairwise(cuts))
