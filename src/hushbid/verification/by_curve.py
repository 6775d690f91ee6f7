"""A number that everybody has, compared for everybody, and computed for few: by a curve through some of them.

People who differ by nothing but their bids have numbers (rents, errors without them) that lie on a curve over the
bid. It is laid through some of them, and wherever it misses the person in the middle between two of them by too
much, she is put on it too, until it does not, or everybody is on it. Whoever is further from the curve than it missed
there, and than is allowed anyway, is computed herself: nobody is found guilty by a curve.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.verification.quadrature import Integrals

Computed = Callable[[IndexArray], Integrals]
"""Numbers of some rows, and how far each may be off."""

_FIRST = 17
_BLOCK = 256
"""The worst suspects are computed so many at a time: once some are found wrong, the rest need not be."""


@dataclass(frozen=True, slots=True, eq=False)
class Screened:
    """What a comparison found."""

    people: int
    """How many people it was about."""

    wrong: IndexArray
    """Rows whose stated number is not the computed one."""

    computed: int
    """How many people were computed themselves."""

    compared: int
    """How many people were compared closely enough, with a number computed for them or the curve."""

    widest: float
    """How far somebody's number could be off unnoticed, relative to the scale."""


def screen(
    rows: IndexArray,
    place: FloatArray,
    stated: FloatArray,
    allowed: FloatArray,
    computed: Computed,
    *,
    noticed: float,
    scale: float,
    most: int,
) -> Screened:
    """Compare ``stated`` numbers with computed ones; all vectors run over ``rows``.

    ``place`` is what the numbers depend on. At most ``most`` people are computed. An interval that is not settled by
    then counts as settled to the difference of its ends. People count as compared if a difference of ``noticed`` would
    be found; nobody else is found wrong.
    """
    if rows.size == 0:
        return Screened(0, rows, 0, 0, 0.0)
    order = np.argsort(place, kind="stable")
    rows, place, stated, allowed = rows[order], place[order], stated[order], allowed[order]
    # few: all are computed; many: a curve through some
    if rows.size <= min(2 * _FIRST, most):
        known = np.arange(rows.size)
        curve = _Curve(place, known, computed(rows), most)
    else:
        known = np.unique(np.linspace(0, rows.size - 1, min(_FIRST, most)).astype(np.intp))
        curve = _Curve(place, known, computed(rows[known]), most)
        curve.refine(lambda which: computed(rows[which]), 0.25 * np.maximum(noticed - allowed, 0.0))
    value, error = curve.everywhere()
    off = np.abs(stated - value)
    bad = ~(off <= allowed + error)  # what is no number is not near
    close = allowed + error <= noticed
    wrong = np.flatnonzero(bad & close & curve.known)
    # people off the curve, or where it is not known closely, are computed themselves, the worst first
    suspects = np.flatnonzero((bad | ~close) & ~curve.known)
    suspects = suspects[np.argsort(-(off / (allowed + error + 1e-300))[suspects], kind="stable")]
    found, seen, left = [wrong], curve.count, max(most - curve.count, _BLOCK)
    for start in range(0, min(suspects.size, left), _BLOCK):
        some = suspects[start : start + _BLOCK]
        truth = computed(rows[some])
        seen += some.size
        close[some] = allowed[some] + truth.error <= noticed
        guilty = some[close[some] & ~(np.abs(stated[some] - truth.rent) <= allowed[some] + truth.error)]
        found.append(guilty)
        if guilty.size:
            break
    wrong = np.concatenate(found)
    close[suspects[left:]] = False
    widest = float((allowed + error).max()) / scale if scale > 0.0 else 0.0
    return Screened(rows.size, np.sort(rows[wrong]), seen, int(np.count_nonzero(close)), widest)


class _Curve:
    """Numbers at some places, and cubic pieces between them."""

    def __init__(self, place: FloatArray, known: IndexArray, found: Integrals, most: int) -> None:
        self._place, self._most = place, most
        self.known = np.zeros(place.size, dtype=bool)
        self._value, self._error = np.zeros(place.size), np.zeros(place.size)
        self._missed, self._settled = np.full(place.size, math.inf), np.zeros(place.size, dtype=bool)
        """By how much the curve missed the middle of the interval that begins at a known place, and if that is fine."""
        self._add(known, found)

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.known))

    def _add(self, which: IndexArray, found: Integrals) -> None:
        self.known[which] = True
        self._value[which], self._error[which] = found.rent, found.error

    def refine(self, computed: Computed, fine: FloatArray) -> None:
        """Compute middles until the curve misses none of them by more than what is ``fine`` there."""
        while self.count < self._most:
            nodes = np.flatnonzero(self.known)
            left, right = nodes[:-1], nodes[1:]
            unsolved = (right - left > 1) & ~self._settled[left]
            middle = ((left + right) // 2)[unsolved][: self._most - self.count]
            if middle.size == 0:
                return
            # what the curve says of the middle, before she is put on it
            guess = self._cubic(nodes, middle)
            found = computed(middle)
            before = left[unsolved][: middle.size]
            self._add(middle, found)
            missed = np.abs(guess - found.rent)
            self._missed[before] = self._missed[middle] = np.where(np.isnan(missed), math.inf, missed)
            self._settled[before] = self._settled[middle] = missed <= fine[middle] + found.error

    def everywhere(self) -> tuple[FloatArray, FloatArray]:
        """Everybody's number on the curve, and how far that may be off."""
        nodes, unknown = np.flatnonzero(self.known), np.flatnonzero(~self.known)
        value, error = self._value.copy(), self._error.copy()
        if unknown.size:
            before = nodes.searchsorted(unknown, side="right") - 1
            left, right = nodes[before], nodes[before + 1]
            # between two known ones, off by what was missed in the middle, or by their difference
            ends = np.abs(self._value[left] - self._value[right])
            value[unknown] = self._cubic(nodes, unknown)
            error[unknown] = np.minimum(self._missed[left], ends) + self._error[left] + self._error[right]
        return value, error

    def _cubic(self, nodes: IndexArray, at: IndexArray) -> FloatArray:
        """Through the two known places to either side; of equal places only one counts."""
        spots, first = np.unique(self._place[nodes], return_index=True)
        values, x = self._value[nodes][first], self._place[at]
        size = min(4, spots.size)
        start = np.clip(spots.searchsorted(x, side="right") - 2, 0, spots.size - size)
        part = start[:, None] + np.arange(size)[None, :]
        s, v = spots[part], values[part]
        result = np.zeros(at.size)
        for k in range(size):
            others = [j for j in range(size) if j != k]
            result += v[:, k] * np.prod([(x - s[:, j]) / (s[:, k] - s[:, j]) for j in others], axis=0)
        return result
