"""Curves through exactly computed points, with a verified error: polynomials on adaptive pieces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.priors.tables import IncreasingTable

_DEGREE = 12
_FIRST_SPLIT, _SPLIT = 2, 4
"""Into how many parts a piece is split: few at first, as most curves are smooth, and more around a corner or a jump."""

_ROUNDS = 32
_MOST_PIECES = 512
_NUMBERS = 8
_FEW_PIECES = 64
_HELPS = 0.1
"""Splitting a smooth piece divides its error by far more than this says."""

_TRIMMED = 0.1
"""High powers are left out if together they change a value by less than this part of what is allowed."""

_RELATIVE = 1e-13, 3e-13
"""So close to a table of virtual costs should, and must, a curve be that replaces it."""

_NODES = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))[::-1]
_CHECKS = np.concatenate([[-0.999], 0.5 * (_NODES[1:] + _NODES[:-1]), [0.999]])
_FIT = np.linalg.inv(chebyshev.chebvander(_NODES, _DEGREE))
_AT_CHECKS = chebyshev.chebvander(_CHECKS, _DEGREE)
_POWERS = np.array([np.pad(chebyshev.cheb2poly(row), (0, _DEGREE - k)) for k, row in enumerate(np.eye(_DEGREE + 1))])
"""Each Chebyshev polynomial in powers."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A function of the bid, piece by piece; a break belongs to the piece on its left."""

    breaks: FloatArray
    """Ends of the pieces, ascending, one more than there are pieces."""

    coefficients: FloatArray
    """One row for each power, from 0 on, of the place in a piece, which goes from −1 to 1; one column per piece."""

    error: float
    """The largest difference seen between the curve and the function at points it was not made from."""

    def __call__(self, bids: FloatArray) -> FloatArray:
        """Return the curve's value at each bid; beyond its ends, as at the ends."""
        low, high = self.breaks[:-1], self.breaks[1:]
        middle, stretch = 0.5 * (low + high), 2.0 / (high - low)
        if low.size == 1:
            x = _within((bids - middle) * stretch)
            value = np.full(bids.size, float(self.coefficients[-1, 0]))
            for row in self.coefficients[-2::-1, 0].tolist():
                value *= x
                value += row
            return value
        piece = self._piece(bids)
        x = _within((bids - middle.take(piece)) * stretch.take(piece))
        found: FloatArray = np.asarray(self.coefficients[-1].take(piece))
        term = np.empty(bids.size)
        for coefficient in self.coefficients[-2::-1]:
            found *= x
            coefficient.take(piece, out=term, mode="clip")
            found += term
        return found

    def _piece(self, bids: FloatArray) -> IndexArray:
        inner = self.breaks[1:-1]
        if inner.size > _FEW_PIECES:
            return np.asarray(inner.searchsorted(bids, side="left"))
        piece = np.zeros(bids.size, dtype=np.uint8)
        for end in inner.tolist():
            piece += (bids > end).view(np.uint8)
        return piece.astype(np.intp)


def _within(places: FloatArray) -> FloatArray:
    """Return places in a piece, those beyond its ends at the ends."""
    np.maximum(places, -1.0, out=places)
    return np.minimum(places, 1.0, out=places)


def fit(
    function: Callable[[FloatArray], FloatArray], breaks: Sequence[float], *, allowed: Callable[[], tuple[float, float]]
) -> Curve:
    """Return a curve within what is ``allowed`` of ``function`` wherever it was checked, pieces split until it is.

    ``allowed`` is asked once the function was evaluated for the first time, the lowest break included: for the error
    that is wanted, and for the largest one that is accepted where splitting a piece no longer helps, because what is
    known of the function is no better. The function may
    jump, at breaks or elsewhere, if it is continuous from the left: around a jump, pieces become so short that the few
    numbers in them get a piece each. The lowest break is such a number too.
    """
    ends = np.unique(np.asarray(breaks, dtype=float))
    low, high = ends[:-1], ends[1:]
    done: list[tuple[FloatArray, FloatArray]] = []
    numbers, worst, before = ends[:1], 0.0, np.full(low.size, np.inf)
    points = np.concatenate([_NODES, _CHECKS])
    for round_ in range(_ROUNDS + 1):
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        # fit at the nodes, check between them; numbers with a piece each come first
        at = np.concatenate([numbers, (middle[:, None] + half[:, None] * points).ravel()])
        found = function(at)
        done.append(_constants(numbers, found[: numbers.size]))
        values = found[numbers.size :].reshape(low.size, points.size)
        if round_ == 0:
            wanted, accepted = allowed()
        coefficients = values[:, : _NODES.size] @ _FIT.T
        error = np.abs(coefficients @ _AT_CHECKS.T - values[:, _NODES.size :]).max(axis=1, initial=0.0)
        good = (error <= wanted) | ((error <= accepted) & (error > _HELPS * before))
        # a jump: a piece with so few numbers in it that each gets one of its own
        short = ~good & (high.view(np.int64) - low.view(np.int64) <= _NUMBERS)
        numbers = _numbers_in(low[short], high[short])
        # no further: keep what there is, and say how good it is
        if round_ == _ROUNDS or low.size > _MOST_PIECES:
            good = ~short
        done.append((high[good], coefficients[good]))
        worst = max(worst, float(error[good].max(initial=0.0)))
        left = ~(good | short)
        low, high, before = _split(low[left], high[left], error[left], _SPLIT if round_ else _FIRST_SPLIT)
        if not low.size and not numbers.size:
            break
    else:
        done.append(_constants(numbers, function(numbers)))
    tops = np.concatenate([part[0] for part in done])
    order = np.argsort(tops)
    tops, coefficients = tops[order], np.concatenate([part[1] for part in done])[order]
    # no piece for the lowest number alone where the next one continues to it
    off = abs(float(_at_left_end(coefficients[min(1, tops.size - 1)]) - coefficients[0, 0]))
    if tops.size > 1 and off <= wanted:
        tops, coefficients, worst = tops[1:], coefficients[1:], max(worst, off)
    powers, cut = _trimmed(coefficients, _TRIMMED * wanted)
    # the lowest break may be a piece of its own, at 0 too wide enough to divide by
    start = np.nextafter(ends[0], -np.inf) - np.finfo(np.float64).tiny
    return Curve(np.concatenate([[start], tops]), powers, worst + cut)


@dataclass(frozen=True, slots=True, eq=False)
class _ReadOff:
    """A function whose logarithm is read off a curve between the curve's ends."""

    logarithm: Curve
    ends: tuple[float, float]
    function: Callable[[FloatArray], FloatArray]

    def __call__(self, c: FloatArray) -> FloatArray:
        inside = (c > self.ends[0]) & (c < self.ends[1])
        result = np.empty_like(c)
        result[inside] = np.exp(self.logarithm(c[inside]))
        result[~inside] = self.function(c[~inside])
        return result


def by_curve(table: IncreasingTable, breaks: Sequence[float]) -> IncreasingTable:
    """Return the same table, read off a curve between the breaks; the table itself if none is close enough.

    The ends of the curve's pieces become points of the table, so that costs never fall from one piece to the next.
    """
    logarithm = fit(lambda c: np.log(table.unrounded(c)), breaks, allowed=lambda: _RELATIVE)
    if logarithm.error > _RELATIVE[1]:
        return table
    ends = min(breaks), max(breaks)
    points = np.unique(np.concatenate([table.points, ends, logarithm.breaks[1:]]))
    return IncreasingTable(_ReadOff(logarithm, ends, table.function), points, table.unrounded(points))


def _at_left_end(coefficients: FloatArray) -> float:
    """Return the value of a Chebyshev series at −1."""
    return float(coefficients[::2].sum() - coefficients[1::2].sum())


def _split(
    low: FloatArray, high: FloatArray, error: FloatArray, parts: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Intervals cut into equal parts, each with the error of the whole."""
    edges = low[:, None] + (high - low)[:, None] * (np.arange(parts + 1) / parts)
    edges[:, -1] = high
    starts, stops = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    some = starts < stops  # fewer numbers than parts
    return starts[some], stops[some], np.repeat(error, parts)[some]


def _trimmed(coefficients: FloatArray, allowed: float) -> tuple[FloatArray, float]:
    """The same polynomials in powers, without high ones that make no difference, and the difference they make."""
    # no Chebyshev polynomial is above 1
    tails = np.abs(coefficients)[:, ::-1].cumsum(axis=1).max(axis=0)
    dropped = int(np.searchsorted(tails[:-1], allowed, side="right"))
    cut = float(tails[dropped - 1]) if dropped else 0.0
    kept = coefficients.shape[1] - dropped
    return np.ascontiguousarray((coefficients[:, :kept] @ _POWERS[:kept, :kept]).T), cut


def _constants(numbers: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A piece for each number."""
    coefficients = np.zeros((numbers.size, _DEGREE + 1))
    coefficients[:, 0] = values
    return numbers, coefficients


def _numbers_in(low: FloatArray, high: FloatArray) -> FloatArray:
    """All doubles above ``low`` up to ``high``, of several short pieces."""
    parts = [
        np.arange(first + 1, last + 1) for first, last in zip(low.view(np.int64), high.view(np.int64), strict=True)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts]).view(np.float64)
