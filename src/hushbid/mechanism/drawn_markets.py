"""What many drawn markets of one roster cost at a price of the error (central), all of them at once.

For a strength η of the noise the best losses of a market fill each stratum up to a water level λ_g,

    ε_i = clip((λ_g − ψ_i)·η²/(2A·V_i), 0, e_i),    Σ_{i in g} ε_i = |ℓ_g|·η,

and what is left is one dimension: Φ(η) = (A/η²)(2 + ΣVε²) + Σψε has the slope Σ|ℓ_g|λ_g − (2A/η³)(2 + ΣVε²). Its best
valley on a grid is entered, and the root of the slope found there by halving. `hushbid.allocation.allocate` finds the
same optimum of one market, with a certificate, in about a hundred times as long; a test compares both.
"""

from dataclasses import dataclass

import numpy as np

from hushbid.common.arrays import FloatArray, IndexArray

_GRID, _HALVINGS, _FILLINGS = 48, 34, 60
_ROUGHLY, _PRECISELY = 1e-9, 1e-14
_AT_ONCE = 1 << 18
"""So many costs are worked on at a time: temporaries stay in cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnMarkets:
    """Markets of one roster, which differ by what people ask."""

    costs: FloatArray
    """Virtual costs above 0: one row per market, one column per person."""

    strata: tuple[IndexArray, ...]
    """The columns of each stratum."""

    sizes: FloatArray
    """``|ℓ_g|`` of each stratum."""

    variance: FloatArray
    """Everybody's."""

    caps: FloatArray
    """Everybody's, infinite where there is none."""

    def purchases(self, price: float) -> tuple[FloatArray, FloatArray]:
        """Return what each market costs at a price of the error, and from how many people it buys."""
        rows = max(_AT_ONCE // self.costs.shape[1], 1)
        parts = [self._some(self.costs[start : start + rows], price) for start in range(0, self.costs.shape[0], rows)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _some(self, costs: FloatArray, price: float) -> tuple[FloatArray, FloatArray]:
        low, high = self._range(costs, price)
        # the best point of a grid, and its neighbours
        values = np.empty((_GRID, costs.shape[0]))
        shares = np.linspace(0.0, 1.0, _GRID)
        for place, share in enumerate(shares.tolist()):
            values[place] = self._filled(costs, price, low * (high / low) ** share, _ROUGHLY)[0]
        best = np.argmin(values, axis=0)
        left = low * (high / low) ** shares[np.maximum(best - 1, 0)]
        right = low * (high / low) ** shares[np.minimum(best + 1, _GRID - 1)]
        for _ in range(_HALVINGS):
            middle = 0.5 * (left + right)
            falls = self._filled(costs, price, middle)[1] < 0.0
            left, right = np.where(falls, middle, left), np.where(falls, right, middle)
        _, _, expense, sellers = self._filled(costs, price, 0.5 * (left + right))
        return expense, sellers

    def _range(self, costs: FloatArray, price: float) -> tuple[FloatArray, FloatArray]:
        """Return between which strengths of the noise the optimum lies, from what some purchase attains."""
        most = min(
            float(self.caps[rows].sum()) / size for rows, size in zip(self.strata, self.sizes.tolist(), strict=True)
        )
        cheapest = sum(size * costs[:, rows].min(axis=1) for rows, size in zip(self.strata, self.sizes, strict=True))
        first = np.minimum(np.cbrt(4.0 * price / cheapest), most)
        attained = self._filled(costs, price, first)[0]
        return np.minimum(np.sqrt(2.0 * price / attained), most), np.minimum(attained / cheapest, most)

    def _filled(
        self, costs: FloatArray, price: float, strength: FloatArray, precision: float = _PRECISELY
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return objective, slope, expense and sellers of each market at a strength of its noise."""
        squares, expense, levels = np.zeros(strength.size), np.zeros(strength.size), np.zeros(strength.size)
        sellers = np.zeros(strength.size)
        weight = 2.0 * price / strength**2
        for rows, size in zip(self.strata, self.sizes.tolist(), strict=True):
            part, spread = costs[:, rows], weight[:, None] * self.variance[rows]
            level, loss = _water_level(part, spread, self.caps[rows], size * strength, precision)
            squares += (self.variance[rows] * loss**2).sum(axis=1)
            expense += (part * loss).sum(axis=1)
            levels += size * level
            sellers += np.count_nonzero(loss, axis=1)
        noise = 2.0 + squares
        slope = levels - weight * noise / strength
        return 0.5 * weight * noise + expense, slope, expense, sellers


def _water_level(
    costs: FloatArray, spread: FloatArray, caps: FloatArray, wanted: FloatArray, precision: float
) -> tuple[FloatArray, FloatArray]:
    """Return the level at which a stratum gives what is wanted, and the losses: Newton's method within a bracket."""
    low = costs.min(axis=1)
    # at the cap, or where the dearest person alone would give it all
    high = (costs + spread * np.minimum(caps, wanted[:, None])).max(axis=1)
    level, pace = low + (high - low) / costs.shape[1], 1.0 / spread
    going = np.arange(wanted.size)
    for _ in range(_FILLINGS):
        gap = (level[going, None] - costs[going]) * pace[going]
        loss = np.clip(gap, 0.0, caps)
        missing = wanted[going] - loss.sum(axis=1)
        rows = np.abs(missing) > precision * wanted[going]
        if not rows.any():
            break
        gap, loss, missing, going = gap[rows], loss[rows], missing[rows], going[rows]
        low[going] = np.where(missing > 0.0, level[going], low[going])
        high[going] = np.where(missing < 0.0, level[going], high[going])
        rate = np.where((gap == loss) & (gap > 0.0), pace[going], 0.0).sum(axis=1)
        moved = level[going] + np.divide(missing, rate, out=np.zeros_like(missing), where=rate > 0.0)
        inside = (moved > low[going]) & (moved < high[going])
        level[going] = np.where(inside, moved, 0.5 * (low[going] + high[going]))
    return level, np.clip((level[:, None] - costs) * pace, 0.0, caps)
