"""Information rents by quadrature: ``∫ ε(ψ(z)) dz`` over bids above one's own, from an allocation rule alone.

One method serves every mechanism, goal, cap and stratum. A privacy loss never rises in the bid. So the integral over
an interval lies between its length times the loss at its end and its length times the loss at its beginning, whatever
kinks and jumps it holds; Boole's rule is far closer where the loss is smooth. An interval is halved until one of the
two is close enough. The variable is the cube root of the distance from the beginning of a stretch, because a loss that
starts at infinity falls like the inverse cube root of the cost. Stretches grow geometrically, so that a purchase far in
the tail of a prior is no more work; they end where a virtual cost turns flat or jumps, and on a flat part the loss is
constant.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.priors import Prior
from hushbid.verification.work import Rule

_NODES = np.linspace(0.0, 1.0, 5)
_SIMPSON = np.array([1.0, 0.0, 4.0, 0.0, 1.0]) / 6.0
_TWICE = np.array([1.0, 4.0, 2.0, 4.0, 1.0]) / 12.0
_FIRST_REACH, _GROWTH, _MOST_STRETCHES = 0.02, 4.0, 1100
_ROUNDS = 60
_FALL = 64.0
_STEEP = 0.75
"""If so much of a fall lies between two of five places, there may be a jump."""

PRECISION, FLOOR = 1e-6, 1e-8
"""How closely rents are computed: relative to what the person is paid, and to ``scale``."""


@dataclass(frozen=True, slots=True, eq=False)
class Integrals:
    """Rents, and how far each may be off."""

    rent: FloatArray
    error: FloatArray


@dataclass(slots=True, eq=False)
class _Cells:
    """Intervals of one person each, with the loss in five places."""

    who: IndexArray
    start: FloatArray
    length: FloatArray
    """Of the stretch that the interval is part of: a bid is ``start + length·s³``."""

    left: FloatArray
    right: FloatArray
    """Between which ``s`` it lies."""

    level: FloatArray
    """The virtual cost, where it is constant; else not a number."""

    loss: FloatArray
    before: FloatArray
    """How far the estimate for twice the interval was off, about; infinite for a whole stretch."""

    def take(self, which: BoolArray) -> "_Cells":
        return _Cells(*(getattr(self, name)[which] for name in self.__slots__))

    def places(self) -> FloatArray:
        """Return the ``s`` of the five places."""
        return np.asarray(self.left[:, None] + (self.right - self.left)[:, None] * _NODES)


class _Rents:
    """The rents of some people who share a prior."""

    def __init__(self, rule: Rule, prior: Prior, rows: IndexArray, bids: FloatArray) -> None:
        self._rule, self._prior, self._rows, self._bids = rule, prior, rows, bids
        parts = [part for part in prior.flat_parts if part[0] < part[1]]
        self._flats = np.array(parts, dtype=float).reshape(-1, 3)
        self._breaks = np.unique(self._flats[:, :2])

    def _cost(self, z: FloatArray) -> FloatArray:
        return np.asarray(self._prior.virtual_cost(z))

    def _loss(self, who: IndexArray, costs: FloatArray) -> FloatArray:
        return self._rule.at(self._rows[who], costs).loss

    def _ends(self) -> list[list[float]]:
        """Return, for each person, bids that are ever further up, until nothing is bought or the support ends."""
        bids, top = self._bids, self._prior.support[1]
        reach = _FIRST_REACH * (bids + float(self._prior.quantile(0.5)))
        ends, going = [[bid] for bid in bids.tolist()], np.flatnonzero(bids < top)
        for _ in range(_MOST_STRETCHES):
            place = np.minimum(bids[going] + reach[going], top)
            for who, z in zip(going.tolist(), place.tolist(), strict=True):
                ends[who].append(z)
            going = going[(self._loss(going, self._cost(place)) > 0.0) & (place < top)]
            if going.size == 0:
                break
            reach[going] *= _GROWTH
        return ends

    def _first(self) -> _Cells:
        """Return one interval for each stretch; on a flat part of the virtual cost, of the loss in its middle."""
        who, edges = [], []
        for person, ends in enumerate(self._ends()):
            first, last = np.searchsorted(self._breaks, [ends[0], ends[-1]])
            points = np.unique(np.append(ends, self._breaks[first:last]))
            edges += list(pairwise(points.tolist()))
            who += [person] * (points.size - 1)
        left, right = np.array(edges).reshape(-1, 2).T
        level = np.full(left.size, math.nan)
        if self._flats.size:
            part = np.maximum(self._flats[:, 0].searchsorted(left, side="right") - 1, 0)
            flat = (left >= self._flats[part, 0]) & (right <= self._flats[part, 1])
            level[flat] = self._flats[part[flat], 2]
        zero, one = np.zeros(left.size), np.ones(left.size)
        cells = _Cells(
            np.array(who, dtype=np.intp),
            left,
            right - left,
            zero,
            one,
            level,
            np.zeros((left.size, 5)),
            np.full(left.size, math.inf),
        )
        flat = ~np.isnan(level)
        cells.loss[flat] = self._loss(cells.who[flat], level[flat])[:, None]
        rest = cells.take(~flat)
        cells.loss[~flat] = self._looked_at(rest, rest.places())
        return cells

    def _looked_at(self, cells: _Cells, places: FloatArray) -> FloatArray:
        """Return the losses of intervals in some of their places; at a jump, just above it."""
        z = np.maximum(cells.start[:, None] + cells.length[:, None] * places**3, cells.start[:, None])
        first = (z == cells.start[:, None]) & (cells.start > self._bids[cells.who])[:, None]
        z = np.where(first, np.nextafter(z, math.inf), z)
        found = self._loss(np.repeat(cells.who, z.shape[1]), self._cost(z.ravel()))
        return found.reshape(z.shape)

    def _two_rules(self, cells: _Cells) -> tuple[FloatArray, FloatArray]:
        """Return each interval's part by Simpson's rule, and by the same rule on its halves."""
        s = cells.places()
        slope = (cells.right - cells.left)[:, None] * 3.0 * s * s * cells.length[:, None]
        value = np.where(s > 0.0, cells.loss, 0.0) * slope  # a loss may be infinite at the bid: nothing is added up
        return value @ _SIMPSON, value @ _TWICE

    def _measured(self, cells: _Cells) -> tuple[FloatArray, FloatArray]:
        """Return each interval's part of the integral, and how far it may be off."""
        s, loss = cells.places(), cells.loss
        steps = cells.length[:, None] * np.diff(s**3, axis=1)
        ends = (steps * loss[:, 1:]).sum(axis=1), (steps * loss[:, :-1]).sum(axis=1)
        least, most = np.minimum(*ends), np.maximum(*ends)
        once, twice = self._two_rules(cells)
        # one difference may be small by chance: it counts for no less than a smooth loss would leave of the one before
        area, doubt = np.clip(twice + (twice - once) / 15.0, least, most), np.abs(twice - once)
        doubt = np.maximum(doubt, cells.before / _FALL)
        fall = loss[:, :-1] - loss[:, 1:]
        rough = (fall.max(axis=1) > _STEEP * fall.sum(axis=1)) | ((loss[:, -1] == 0.0) & (loss[:, 0] > 0.0))
        doubt = np.where(rough & (most < math.inf), most - least, np.minimum(doubt, most - least))
        return area, np.where(np.isnan(doubt), math.inf, doubt)

    def _halved(self, cells: _Cells, doubt: FloatArray) -> _Cells:
        middle, places = 0.5 * (cells.left + cells.right), cells.places()
        once, twice = self._two_rules(cells)
        doubt = np.where(doubt < math.inf, doubt, np.abs(twice - once))  # a whole stretch had none before it
        inner = self._looked_at(cells, 0.5 * (places[:, :-1] + places[:, 1:]))
        loss = np.empty((cells.who.size, 9))
        loss[:, ::2], loss[:, 1::2] = cells.loss, inner
        ends = ((cells.left, middle, loss[:, :5]), (middle, cells.right, loss[:, 4:]))
        halves = [_Cells(cells.who, cells.start, cells.length, *end[:2], cells.level, end[2], doubt) for end in ends]
        return _Cells(*(np.concatenate([getattr(one, name) for one in halves]) for name in _Cells.__slots__))

    def found(self, paid: FloatArray, scale: float) -> Integrals:
        """Return the rents of people who are paid ``paid`` besides."""
        size, cells = self._rows.size, self._first()
        rent, error = np.zeros(size), np.zeros(size)
        for round_ in range(_ROUNDS):
            area, doubt = self._measured(cells)
            rough = rent + np.bincount(cells.who, area, size)
            wanted = np.maximum(PRECISION * (paid + rough), FLOOR * scale)
            close = error + np.bincount(cells.who, doubt, size) <= wanted
            allowed = wanted / np.maximum(2.0 * np.bincount(cells.who, minlength=size), 8.0)
            done = close[cells.who] | ~(doubt > allowed[cells.who]) | (round_ == _ROUNDS - 1)
            rent += np.bincount(cells.who[done], area[done], size)
            error += np.bincount(cells.who[done], doubt[done], size)
            if done.all():
                break
            cells = self._halved(cells.take(~done), doubt[~done])
        return Integrals(rent, error)


def integrate(
    rule: Rule, prior: Prior, rows: IndexArray, bids: FloatArray, *, paid: FloatArray, scale: float
) -> Integrals:
    """Return the rents of people ``rows``, bought from at ``bids``, who share a prior and are paid ``paid`` besides."""
    if rows.size == 0:
        return Integrals(np.zeros(0), np.zeros(0))
    return _Rents(rule, prior, rows, bids).found(paid, scale)


def is_step_function(prior: Prior) -> bool:
    """Return whether the virtual cost is constant in steps over the whole support."""
    steps, (low, top) = prior.flat_parts, prior.support
    contiguous = all(right == left for (_, right, _), (left, _, _) in pairwise(steps))
    return bool(steps) and steps[0][0] <= low and steps[-1][1] >= top and contiguous
