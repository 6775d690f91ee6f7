"""What many drawn markets of one roster cost at a price of the error (central), all of them at once.

For a strength η of the noise the best losses of a market fill each stratum up to a water level λ_g,

    ε_i = clip((λ_g − ψ_i)·η²/(2A·V_i), 0, e_i),    Σ_{i in g} ε_i = |ℓ_g|·η,

and what is left is one dimension: Φ(η) = (A/η²)(2 + ΣVε²) + Σψε has the slope Σ|ℓ_g|λ_g − (2A/η³)(2 + ΣVε²). Its best
valley on a grid is entered, and the root of the slope found there. At a price near another one the root is looked for
near the other's, in the same valley. `hushbid.allocation.allocate` finds the same optimum of one market, with a
certificate, in a few hundred times as long; a test compares both.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.priors.tables import increasing_root

_GRID = 12
_WEAKEST = 1e6
"""Noise this many times as weak as any good purchase may have makes no difference."""

_ENOUGH = 1.0 - 1e-14
"""What is given is a sum: rounding must not leave out its end."""

_AT_ONCE = 1 << 16
"""So many costs are worked on at a time: temporaries stay in cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Purchases:
    """What is bought in each of some markets."""

    expense: FloatArray
    """Σψε."""

    sellers: FloatArray
    """From how many people."""

    strength: FloatArray
    """η; 0 in the local setting."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnMarkets:
    """Markets of one roster, which differ by what people ask; in each of them somebody of every stratum can sell."""

    costs: FloatArray
    """Virtual costs, infinite for those who do not bid: one row per market, one column per person, by stratum."""

    starts: IndexArray
    """The first column of each stratum."""

    sizes: FloatArray
    """``|ℓ_g|`` of each stratum."""

    variance: FloatArray
    """Everybody's."""

    caps: FloatArray
    """Everybody's, infinite where there is none."""

    def purchases(self, price: float, near: tuple[FloatArray, FloatArray] | None = None) -> Purchases:
        """Return the best purchase of each market at a price of the error; ``near`` is where it is looked for first."""
        rows = max(_AT_ONCE // self.costs.shape[1], 1)
        parts = [slice(start, start + rows) for start in range(0, len(self.costs), rows)]
        ends = [None if near is None else (near[0][part], near[1][part]) for part in parts]
        found = [_Priced(self, self.costs[part], price).best(some) for part, some in zip(parts, ends, strict=True)]
        joined = {name: np.concatenate([getattr(one, name) for one in found]) for name in Purchases.__slots__}
        return Purchases(**joined)


class _Priced:
    """Some markets at a price."""

    def __init__(self, drawn: DrawnMarkets, costs: FloatArray, price: float) -> None:
        self.drawn, self.costs, self.price = drawn, costs, price
        self.columns = [slice(*ends) for ends in zip(drawn.starts, [*drawn.starts[1:], costs.shape[1]], strict=True)]
        self.low, self.high = self._range()

    def best(self, near: tuple[FloatArray, FloatArray] | None) -> Purchases:
        """Return the best purchase of each market."""
        every = np.arange(self.costs.shape[0])
        strength, left = np.empty(every.size), every
        if near is not None:
            strength, settled = self._root(every, *near)
            left = every[~settled]
        if left.size:
            strength[left] = self._everywhere(left)
        loss, _ = self._filled(every, strength)
        return Purchases(
            expense=_paid(self.costs, loss),
            sellers=np.count_nonzero(loss, axis=1).astype(np.float64),
            strength=strength,
        )

    def _everywhere(self, rows: IndexArray) -> FloatArray:
        """Return the best strengths of some markets: of all valleys of a grid, the deepest."""
        low, ratio = self.low[rows], (self.high / self.low)[rows] ** (1.0 / (_GRID - 1))
        values = np.full((_GRID + 2, rows.size), math.inf)
        values[1:-1] = [self._at(rows, low * ratio**place)[0] for place in range(_GRID)]
        valley = (values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])
        place, market = np.nonzero(valley)
        step = ratio[market]
        found, _ = self._root(rows[market], low[market] * step ** (place - 1), low[market] * step ** (place + 1))
        depth = np.full(valley.shape, math.inf)
        depth[place, market] = self._at(rows[market], found)[0]
        strength = np.empty(valley.shape)
        strength[place, market] = found
        best: FloatArray = strength[np.argmin(depth, axis=0), np.arange(rows.size)]
        return best

    def _range(self) -> tuple[FloatArray, FloatArray]:
        """Return between which strengths of the noise the optimum lies, from what some purchase attains."""
        drawn, every = self.drawn, np.arange(self.costs.shape[0])
        caps = np.where(self.costs < math.inf, drawn.caps, 0.0)
        most = np.min(np.add.reduceat(caps, drawn.starts, axis=1) / drawn.sizes, axis=1)
        cheapest = np.maximum(np.minimum.reduceat(self.costs, drawn.starts, axis=1) @ drawn.sizes, 1e-300)
        attained = self._at(every, np.minimum(np.cbrt(4.0 * self.price / cheapest), most))[0]
        low = np.minimum(np.sqrt(2.0 * self.price / attained), most)
        return low, np.minimum(np.minimum(attained / cheapest, most), _WEAKEST * low)

    def _root(self, rows: IndexArray, left: FloatArray, right: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return where the slope of some markets is 0, and whether it was found.

        Where the slope has one sign only it is the end at which the objective is smaller.
        """
        left, right = np.maximum(left, self.low[rows]), np.minimum(right, self.high[rows])
        below, above = self._at(rows, left)[1], self._at(rows, right)[1]
        found = np.where(below >= 0.0, left, right)
        settled = np.where(below >= 0.0, left == self.low[rows], (above > 0.0) | (right == self.high[rows]))
        inner = np.flatnonzero((below < 0.0) & (above > 0.0))
        found[inner] = increasing_root(
            lambda at, row: self._at(row.astype(np.intp), at)[1], left[inner], right[inner], rows[inner].astype(float)
        )
        return found, settled

    def _at(self, rows: IndexArray, strength: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return objective and slope of some markets at a strength of their noise."""
        loss, levels = self._filled(rows, strength)
        weight = 2.0 * self.price / strength**2
        noise = 2.0 + np.square(loss) @ self.drawn.variance
        paid = _paid(self.costs[rows], loss)
        return 0.5 * weight * noise + paid, levels @ self.drawn.sizes - weight * noise / strength

    def _filled(self, rows: IndexArray, strength: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return losses and water levels at a strength of the noise."""
        drawn, weight = self.drawn, (2.0 * self.price / strength**2)[:, None]
        loss, levels = np.empty((rows.size, self.costs.shape[1])), np.empty((rows.size, drawn.sizes.size))
        for stratum, (part, size) in enumerate(zip(self.columns, drawn.sizes.tolist(), strict=True)):
            costs, spread, caps = self.costs[rows, part], weight * drawn.variance[part], drawn.caps[part]
            level = _water_level(costs, spread, caps, size * strength)
            loss[:, part], levels[:, stratum] = np.clip((level[:, None] - costs) / spread, 0.0, caps), level
        return loss, levels


def _water_level(costs: FloatArray, spread: FloatArray, caps: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the level at which ``Σ clip((level − cost)/spread, 0, cap)`` is what is wanted, in each row."""
    # what is given is a broken line: everybody raises its slope from their cost on, up to their cap or all of it
    there, pace = costs < math.inf, 1.0 / spread
    enters = np.where(there, costs, 0.0)
    ends = np.concatenate([enters, enters + spread * np.minimum(caps, wanted[:, None])], axis=1)
    bends = np.where(there, pace, 0.0)
    order = np.argsort(ends, axis=1, kind="stable")
    ends = np.take_along_axis(ends, order, axis=1)
    slope = np.cumsum(np.take_along_axis(np.concatenate([bends, -bends], axis=1), order, axis=1), axis=1)
    given = np.zeros(ends.shape)
    np.cumsum(slope[:, :-1] * np.diff(ends, axis=1), axis=1, out=given[:, 1:])
    row = np.arange(wanted.size)
    piece = np.maximum(np.count_nonzero(given < _ENOUGH * wanted[:, None], axis=1) - 1, 0)
    rise, run = wanted - given[row, piece], slope[row, piece]
    more: FloatArray = np.divide(rise, run, out=np.zeros(rise.size), where=run > 0.0)
    top = ends[row, np.minimum(piece + 1, ends.shape[1] - 1)]
    return np.asarray(np.minimum(ends[row, piece] + more, np.maximum(top, ends[row, piece])))


def _paid(costs: FloatArray, loss: FloatArray) -> FloatArray:
    return np.asarray(np.multiply(costs, loss, out=np.zeros(loss.shape), where=loss > 0.0).sum(axis=1))
