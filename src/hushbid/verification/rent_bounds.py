"""Information rents once more, cheaply and with a bound, for everybody; `hushbid.verification.quadrature` is for few.

Between two bids ``z0 < z1`` a person's privacy loss falls from ``e0`` to ``e1``, and its integral over *virtual
costs* ``x = ψ(z)`` is a difference of two optimal objectives, for the loss is their derivative. So on such a cell

    ∫ ε dz = Δv/Δx · Δz + ∫ (ε − ε̄)(g − ḡ) dx,      g = dz/dx,

and by Grüss' inequality the last term is at most ``¼·(e0 − e1)·(g_max − g_min)·Δx``; were both linear, a twelfth. Where
ψ jumps, ``½·(e0 + e1)·Δz ± ½·(e0 − e1)·Δz`` is better; where it is constant the loss is too. Neither kinks nor jumps of
the loss have to be found. Cells are halved where the bound is large. ``g`` is looked at in eight places of a cell.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.priors import Prior
from hushbid.verification.quadrature import Integrals, Rule

_CELLS = 8
_PLACES = 8
_ROUNDS = 24
_DOUBLINGS = 60
_MOST_CELLS = 1000
_BLUR = 4e-13
"""Objectives are right to this part."""

_BEYOND = 1.25
"""The slope at the ends of a cell may lie outside what its eight chords show, by this much of their range."""


@dataclass(slots=True, eq=False)
class _Cells:
    """Intervals of bids, one entry each."""

    who: IndexArray
    z0: FloatArray
    z1: FloatArray
    x0: FloatArray
    x1: FloatArray
    e0: FloatArray
    e1: FloatArray
    v0: FloatArray
    v1: FloatArray

    def take(self, which: BoolArray) -> "_Cells":
        return _Cells(*(getattr(self, name)[which] for name in self.__slots__))

    def joined(self, other: "_Cells") -> "_Cells":
        return _Cells(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.__slots__))


class Enclosing:
    """The rents of people who share a prior, from the rule alone; an error is infinite where nothing can be said."""

    def __init__(self, rule: Rule, prior: Prior, *, floor: float, accuracy: float) -> None:
        self._rule, self._prior, self._floor, self._accuracy = rule, prior, floor, accuracy
        flats = [part for part in prior.flat_parts if part[0] < part[1]]
        self._flats = np.array(flats, dtype=float).reshape(-1, 3)
        self.evaluations = 0

    def of(self, rows: IndexArray, bids: FloatArray) -> Integrals:
        """The rents of ``rows``, bought from at ``bids``, and how far each may be off."""
        size = rows.size
        cells, lost = self._start(rows, bids)
        rent, error, made = np.zeros(size), np.where(lost, math.inf, 0.0), np.zeros(size)
        for round_ in range(_ROUNDS):
            area, doubt, noise = self._measured(cells, rows)
            rough = rent + np.bincount(cells.who, area, size)
            made += np.bincount(cells.who, minlength=size)
            # everybody's allowance, shared among all cells she has had
            allowed = (self._accuracy * rough + self._floor) / np.maximum(made, 1)
            done = ~(doubt - noise > allowed[cells.who]) | (made > _MOST_CELLS)[cells.who] | (round_ == _ROUNDS - 1)
            rent += np.bincount(cells.who[done], area[done], size)
            error += np.bincount(cells.who[done], doubt[done], size)
            if done.all():
                break
            cells = self._halved(cells.take(~done), rows)
        return Integrals(rent, np.where(np.isnan(error), math.inf, error))

    def _at(self, rows: IndexArray, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        cost = np.asarray(self._prior.virtual_cost(z))
        found = self._rule.at(rows, cost)
        self.evaluations += rows.size
        return cost, found.loss, found.value

    def _start(self, rows: IndexArray, bids: FloatArray) -> tuple[_Cells, BoolArray]:
        """Eight cells each, up to a bid at which nothing is bought from her; whose such bid was not found."""
        top = self._prior.support[1]
        # further and further until nothing is bought
        end = np.full(rows.size, min(1.25 * float(bids.max()), top))
        end = np.minimum(np.maximum(end, bids + 1e-3 * (bids + float(self._prior.quantile(0.5)))), top)
        unsolved = np.arange(rows.size)
        for _ in range(_DOUBLINGS):
            sold = self._at(rows[unsolved], end[unsolved])[1] > 0.0
            unsolved = unsolved[sold & (end[unsolved] < top)]
            if unsolved.size == 0:
                break
            end[unsolved] = np.minimum(bids[unsolved] + 1.5 * (end[unsolved] - bids[unsolved]), top)
        lost = np.zeros(rows.size, dtype=bool)
        lost[unsolved] = True
        shares = np.linspace(0.0, 1.0, _CELLS + 1)
        # cells end where flat parts do
        ends = np.unique(self._flats[:, :2])
        who, places = [], []
        for j, (first, last) in enumerate(zip(bids.tolist(), end.tolist(), strict=True)):
            inner = ends[ends.searchsorted(first, side="right") : ends.searchsorted(last, side="left")]
            points = np.unique(np.concatenate([first + (last - first) * shares, inner]))
            who.append(np.full(points.size, j))
            places.append(points)
        whose, z = np.concatenate(who), np.concatenate(places)
        # virtual cost, loss and objective at every end, in one call
        x, e, v = self._at(rows[whose], z)
        inside = np.flatnonzero(whose[:-1] == whose[1:])
        columns = (column[inside + k] for column in (z, x, e, v) for k in (0, 1))
        return _Cells(whose[inside], *columns), lost

    def _halved(self, cells: _Cells, rows: IndexArray) -> _Cells:
        z = 0.5 * (cells.z0 + cells.z1)
        x, e, v = self._at(rows[cells.who], z)
        left = _Cells(cells.who, cells.z0, z, cells.x0, x, cells.e0, e, cells.v0, v)
        return left.joined(_Cells(cells.who, z, cells.z1, x, cells.x1, e, cells.e1, v, cells.v1))

    def _measured(self, cells: _Cells, rows: IndexArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Each cell's part of the integral, how far it may be off, and what of that no halving mends."""
        first, last = cells.e0, cells.e1
        dz, dx = cells.z1 - cells.z0, cells.x1 - cells.x0
        # the trapezoid, good at jumps of ψ; the objective's difference where that is better
        area, doubt = 0.5 * (first + last) * dz, np.maximum(0.5 * (first - last) * dz, 0.0)
        doubt[~np.isfinite(area)] = math.inf
        noise = np.zeros_like(area)
        smooth = np.flatnonzero(~np.isnan(cells.e0) & (dx > 0.0) & (doubt > 0.0))
        if smooth.size:
            some = cells.take(smooth)  # type: ignore[arg-type]
            better, bound, blur = self._by_value(some)
            use = bound < doubt[smooth]
            which = smooth[use]
            area[which], doubt[which], noise[which] = better[use], bound[use], blur[use]
        self._on_flats(cells, rows, area, doubt)
        return np.where(np.isfinite(area), area, 0.0), doubt, noise

    def _by_value(self, cells: _Cells) -> tuple[FloatArray, FloatArray, FloatArray]:
        dz, dx = cells.z1 - cells.z0, cells.x1 - cells.x0
        inner = cells.z0[:, None] + dz[:, None] * (np.arange(1, _PLACES) / _PLACES)[None, :]
        cost = np.asarray(self._prior.virtual_cost(inner.ravel())).reshape(inner.shape)
        steps = np.diff(np.concatenate([cells.x0[:, None], cost, cells.x1[:, None]], axis=1), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = np.where(steps > 0.0, (dz / _PLACES)[:, None] / steps, math.inf)
            # the slope g in eight places
            spread = _BEYOND * (slopes.max(axis=1) - slopes.min(axis=1))
            drop = np.maximum(cells.e0 - cells.e1, 0.0)
            # were both linear: a twelfth
            tilt = (slopes[:, 0] - slopes[:, -1]) * drop * dx / 12.0
            area = (cells.v1 - cells.v0) / dx * dz + tilt
            blur = _BLUR * np.abs(cells.v1) * dz / dx
            # Grüss' quarter, and the twelfth that was added
            bound = drop * spread * dx / 3.0 + blur
        return area, np.where(np.isnan(bound) | ~np.isfinite(area), math.inf, bound), blur

    def _on_flats(self, cells: _Cells, rows: IndexArray, area: FloatArray, doubt: FloatArray) -> None:
        """Where the virtual cost is constant the loss is: that at the level."""
        if self._flats.size == 0:
            return
        left, right, level = self._flats.T
        part = np.maximum(left.searchsorted(0.5 * (cells.z0 + cells.z1), side="right") - 1, 0)
        flat = np.flatnonzero((cells.z0 >= left[part]) & (cells.z1 <= right[part]) & (doubt > 0.0))
        if flat.size:
            found = self._rule.at(rows[cells.who[flat]], level[part[flat]]).loss
            self.evaluations += flat.size
            area[flat] = found * (cells.z1 - cells.z0)[flat]
            doubt[flat] = 0.0
