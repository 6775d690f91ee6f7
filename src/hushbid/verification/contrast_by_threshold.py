"""The central optimum for a contrast of strata once more, for verification: by halving intervals of one number.

With strata ``g`` of weights ``ℓ_g`` every efficient purchase belongs to a number ``T > 0``: the level ``τ_g`` of each
stratum solves ``Σ_{i in g} u_i (τ_g − ψ_i)⁺ = |ℓ_g|·T`` (``u = 1/V``), and with ``W = Σ u ψ (τ − ψ)⁺`` over everybody
and ``τ̄ = Σ |ℓ_g| τ_g``

    ε_i = u_i (τ_g − ψ_i)⁺·√(2/W),    error = τ̄/T,    expense = √(2W).

The error falls with ``T`` and the expense rises, so an error or an expense that is given is found by halving. For a
price ``A`` of the error, what changes sign at every minimum is ``T⁴ − 2A²W``, the difference of two increasing numbers:
intervals in which it cannot change, or in which nothing is as good as what was found, are thrown away until the others
are points. The solver, in contrast, solves a quartic on each piece between the people's entries.

One person's cost is replaced by taking her out of her stratum's sums and putting her back elsewhere. Costs are counted
from the smallest of each stratum, and sums are kept in extended precision.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import FloatArray, IndexArray
from hushbid.estimation import Strata
from hushbid.verification.central_by_exclusion import Answers

Long = NDArray[np.longdouble]

_ROUNDS = 600
_POINT = 2.0**-50
_FAR = 1.5
"""Intervals whose ends are further apart than this factor are cut in the geometric middle."""

_ROUNDED = np.longdouble(2.0**-54)
"""Numbers on both sides of a sign are right to this part, at least."""

_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class _Stratum:
    """Those of a stratum who can be bought from, the cheapest first; costs as offsets from the smallest."""

    size: float
    base: float
    offset: Long
    sums: tuple[Long, Long, Long]
    """Of ``u``, ``u·o`` and ``u·o²`` over the first 0, 1, 2, … people."""

    gains: Long
    """``Σ u (o_k − o)⁺`` at everybody's own offset."""

    @classmethod
    def of(cls, size: float, costs: FloatArray, mass: Long) -> "_Stratum":
        base = float(costs[0]) if costs.size else 0.0
        offset = costs.astype(np.longdouble) - base
        zero = np.zeros(1, dtype=np.longdouble)
        columns = (mass, mass * offset, mass * offset * offset)
        total, first, second = (np.concatenate([zero, np.cumsum(one)]) for one in columns)
        gains = np.maximum.accumulate(total[:-1] * offset - first[:-1]) if costs.size else zero[:0]
        return cls(size, base, offset, (total, first, second), gains)


@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """Who is taken out of the sums of her stratum, and where she is put back."""

    stratum: IndexArray
    place: IndexArray
    """Her place among those of her stratum; −1 if she is not there."""

    out: Long
    out_mass: Long
    into: Long
    into_mass: Long

    def take(self, which: IndexArray) -> "_Moves":
        return _Moves(*(getattr(self, name)[which] for name in _Moves.__slots__))


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """Purchases, one for each of many ``T``."""

    levels: Long
    """``τ_g``, a row for each stratum."""

    middle: Long
    """``τ̄``."""

    work: Long
    """``W``."""


class ContrastRule:
    """The purchase for a price of the error, a given ``error`` or a given ``expense``, by one person's cost."""

    def __init__(
        self,
        costs: FloatArray,
        variance: FloatArray,
        strata: Strata,
        *,
        error_weight: float | None = None,
        error: float | None = None,
        expense: float | None = None,
    ) -> None:
        self._costs, self._codes, self._signs = costs, strata.codes, np.sign(strata.weights)
        self._weight, self._error = error_weight, error
        self._half = np.longdouble(expense or 0.0) ** 2 / 2
        self._mass = 1 / np.asarray(variance).astype(np.longdouble)
        self._sizes = np.abs(strata.weights)
        self._place = np.full(costs.size, -1, dtype=np.intp)
        self._strata: list[_Stratum] = []
        for stratum, size in enumerate(self._sizes.tolist()):
            rows = np.flatnonzero((strata.codes == stratum) & (costs < math.inf))
            rows = rows[np.argsort(costs[rows], kind="stable")]
            self._place[rows] = np.arange(rows.size)
            self._strata.append(_Stratum.of(size, costs[rows], self._mass[rows]))

    @property
    def effort(self) -> float:
        """How much longer than usual one evaluation takes."""
        return 3.0 * (1.0 + len(self._strata))

    @property
    def price(self) -> float:
        """What one evaluation takes, in millionths of a second on an ordinary computer, about."""
        return 25.0 * (1.0 + len(self._strata))

    def at(self, rows: IndexArray, costs: FloatArray) -> Answers:
        """The purchase if person ``rows[j]`` had cost ``costs[j]`` (``inf``: were not there), for every j.

        The value is the objective of a price, or the expense of an error; of an expense there is none.
        """
        parts = [slice(start, start + _AT_ONCE) for start in range(0, rows.size, _AT_ONCE)]
        with np.errstate(all="ignore"):
            found = [self._answers(rows[part], costs[part]) for part in parts]
        loss, mse, value = (
            np.concatenate([getattr(some, name) for some in found] or [np.empty(0)]) for name in Answers.__slots__
        )
        return Answers(loss, mse, value)

    def everybody(self, row: int, cost: float) -> tuple[FloatArray, float, float]:
        """Everybody's privacy loss, the error and the objective or expense if person ``row`` had that cost."""
        changed = self._costs.copy()
        changed[row] = cost
        with np.errstate(all="ignore"):
            moves = self._moves(np.array([row]), np.array([cost]))
            at, points = self._solved(moves)
            scale, mse, value = (one[0] for one in self._figures(at, points, moves))
            base = np.array([one.base for one in self._strata], dtype=np.longdouble)[self._codes]
            gap = np.maximum(points.levels[self._codes, 0] - base - (changed - base), 0)
            if points.work[0] == 0:
                gap = np.where(changed == 0.0, gap, 0)
            losses = np.where(gap > 0, self._mass * gap * scale, 0)
        return losses.astype(float), float(mse), float(value)

    def _answers(self, rows: IndexArray, moved: FloatArray) -> Answers:
        moves = self._moves(rows, moved)
        at, points = self._solved(moves)
        scale, mse, value = self._figures(at, points, moves)
        own = points.levels[moves.stratum, np.arange(rows.size)]
        base = np.array([one.base for one in self._strata], dtype=np.longdouble)[moves.stratum]
        gap = np.maximum(own - base - moves.into, 0)
        loss = np.where((gap > 0) & (moves.into_mass > 0), self._mass[rows] * gap * scale, 0)
        return Answers(loss.astype(float), mse.astype(float), value.astype(float))

    def _moves(self, rows: IndexArray, moved: FloatArray) -> _Moves:
        codes, mass = self._codes[rows], self._mass[rows]
        base = np.array([one.base for one in self._strata], dtype=np.longdouble)[codes]
        there, zero = self._costs[rows] < math.inf, np.zeros(rows.size, dtype=np.longdouble)
        return _Moves(
            stratum=codes,
            place=self._place[rows],
            out=np.where(there, self._costs[rows].astype(np.longdouble) - base, zero),
            out_mass=np.where(there, mass, zero),
            into=np.where(moved < math.inf, moved.astype(np.longdouble) - base, zero),
            into_mass=np.where(moved < math.inf, mass, zero),
        )

    def _figures(self, at: Long, points: _Points, moves: _Moves) -> tuple[Long, Long, Long]:
        """What ``u·(τ − ψ)`` is multiplied by, the error, and the objective or expense."""
        mse, paid = points.middle / at, np.sqrt(2 * points.work)
        scale = np.sqrt(2 / points.work)
        if self._error is not None:
            # those who ask for nothing are enough: the noise is what the error leaves
            free = points.work == 0
            noise = np.sqrt(2 / np.maximum(self._error - mse, 0)) / at
            return np.where(free, noise, scale), np.where(free, self._error, mse), paid
        if self._weight is None:
            return scale, mse, np.full_like(mse, math.nan)
        return scale, mse, self._weight * mse + paid

    # -- the number T --------------------------------------------------------------------------------------------------

    def _solved(self, moves: _Moves) -> tuple[Long, _Points]:
        at = self._by_exclusion(moves) if self._weight is not None else self._by_halving(moves)
        return at, self._points(moves, at)

    def _by_halving(self, moves: _Moves) -> Long:
        """The least ``T`` with an error, or with an expense, that is as stated."""
        low, high, below, above = self._ends(moves)
        for turn in range(_ROUNDS):
            cut = _cut(low, high, below, above, turn)
            if not ((low < cut) & (cut < high) & (high - low > _POINT * high)).any():
                break
            found = self._excess(moves, cut)
            passed = found >= 0
            low, high = np.where(passed, low, cut), np.where(passed, cut, high)
            below, above = np.where(passed, below, found), np.where(passed, found, above)
        return high

    def _excess(self, moves: _Moves, at: Long) -> Long:
        """Negative while ``T`` is too small."""
        points = self._points(moves, at)
        return points.work - self._half if self._error is None else self._error * at - points.middle

    def _ends(self, moves: _Moves) -> tuple[Long, Long, Long, Long]:
        """``T`` that are too small and large enough, and by how much."""
        low = np.full(moves.into.size, 1e-300, dtype=np.longdouble)
        high = np.ones(moves.into.size, dtype=np.longdouble)
        below, above = self._excess(moves, low), self._excess(moves, high)
        for _ in range(2100):
            passed = above >= 0
            if passed.all():
                break
            low, below = np.where(passed, low, high), np.where(passed, below, above)
            high = np.where(passed, high, 4 * high)
            above = self._excess(moves, high)
        return low, high, below, above

    def _by_exclusion(self, moves: _Moves) -> Long:
        """The best ``T`` of each pair for a price of the error."""
        weight = np.longdouble(self._weight or 0.0)
        count = moves.into.size
        pair, low, high = np.arange(count), *self._price_ends(moves)
        best, chosen = np.full(count, math.inf, dtype=np.longdouble), low.copy()
        ends = [self._points(moves, low), self._points(moves, high)]
        state = [low, ends[0].work, ends[0].middle / low, high, ends[1].work, ends[1].middle / high]
        turn = 2 * weight**2
        least = np.full(count, math.inf, dtype=np.longdouble)
        for _ in range(_ROUNDS):
            # points know T better than the least value, flat as it is, does
            done = state[3] - state[0] <= _POINT * state[3]
            value = weight * state[5][done] + np.sqrt(2 * state[4][done])
            _keep_best(pair[done], value, state[3][done], least, chosen)
            pair, state = pair[~done], [one[~done] for one in state]
            if not pair.size:
                break
            low, high = state[0], state[3]
            middle = _half(low, high)
            points = self._points(moves.take(pair), middle)
            error = points.middle / middle
            value = weight * error + np.sqrt(2 * points.work)
            np.minimum.at(best, pair, value)
            inner = [middle, points.work, error]
            pair = np.concatenate([pair, pair])
            state = [np.concatenate(both) for both in zip([*state[:3], *inner], [*inner, *state[3:]], strict=True)]
            low, fewest, _, high, most, mse = state
            bound = weight * mse + np.sqrt(2 * fewest)
            # a minimum is where the sign changes from below to above; nothing better is elsewhere
            kept = (low**4 <= turn * most * (1 + _ROUNDED)) & (high**4 >= turn * fewest * (1 - _ROUNDED))
            kept &= bound <= best[pair] * (1 + 1e-14)
            pair, state = pair[kept], [one[kept] for one in state]
        return chosen

    def _price_ends(self, moves: _Moves) -> tuple[Long, Long]:
        """No optimum is outside: ``W/T`` is between the least and the largest cost, times the strata's weights."""
        weight = np.longdouble(self._weight or 0.0)
        least = np.zeros(moves.into.size, dtype=np.longdouble)
        most = np.zeros(moves.into.size, dtype=np.longdouble)
        for stratum, one in enumerate(self._strata):
            there = (moves.stratum == stratum) & (moves.into_mass > 0)
            low = np.where(there, np.minimum(one.base + moves.into, one.base), one.base)
            last = one.offset[-1] if one.offset.size else np.longdouble(0)
            high = one.base + np.where(there, np.maximum(moves.into, last), last)
            least, most = least + one.size * low, most + one.size * high
        low, high = np.cbrt(2 * weight**2 * least), np.cbrt(2 * weight**2 * most)
        return np.maximum(low * (1 - 1e-12), 1e-300), np.maximum(high * (1 + 1e-12), 1e-299)

    # -- levels --------------------------------------------------------------------------------------------------------

    def _points(self, moves: _Moves, at: Long) -> _Points:
        levels = np.empty((len(self._strata), at.size), dtype=np.longdouble)
        middle, work = np.zeros(at.size, dtype=np.longdouble), np.zeros(at.size, dtype=np.longdouble)
        for stratum, one in enumerate(self._strata):
            target = one.size * at
            x, part = _unmoved(one, target)
            mine = np.flatnonzero(moves.stratum == stratum)
            if mine.size:
                x[mine], part[mine] = _moved(one, target[mine], moves.take(mine))
            levels[stratum] = one.base + x
            middle += one.size * levels[stratum]
            work += one.base * target + part
        return _Points(levels, middle, work)


def _unmoved(one: _Stratum, target: Long) -> tuple[Long, Long]:
    """The level that gives what is wanted of a stratum, as an offset, and ``Σ u o (x − o)⁺``."""
    total, first, second = (column[one.gains.searchsorted(target, side="left")] for column in one.sums)
    x = (target + first) / total
    return x, x * first - second


def _moved(one: _Stratum, target: Long, moves: _Moves) -> tuple[Long, Long]:
    """The same where somebody of the stratum is moved."""
    low, high = np.zeros(target.size, dtype=np.intp), np.full(target.size, one.offset.size, dtype=np.intp)
    while (low < high).any():  # how many of the others' offsets are below the level
        middle = np.minimum((low + high) // 2, max(one.offset.size - 1, 0))
        here = one.offset[middle]
        gain = one.gains[middle] - moves.out_mass * np.maximum(here - moves.out, 0)
        gain = gain + moves.into_mass * np.maximum(here - moves.into, 0)
        below = (gain < target) & (low < high)
        low, high = np.where(below, middle + 1, low), np.where(below | (low >= high), high, middle)
    gone = (moves.place >= 0) & (moves.place < low)
    mass, place = np.where(gone, moves.out_mass, 0), moves.out
    total, first, second = (column[low] for column in one.sums)
    total, first, second = total - mass, first - mass * place, second - mass * place * place
    x = np.where(total > 0, (target + first) / total, math.inf)
    mass, place = np.where(x > moves.into, moves.into_mass, 0), moves.into
    above = (target + first - total * place) / (total + mass)  # her own x − o, with less to cancel
    x = np.where(mass > 0, place + above, x)
    others = np.where(total > 0, x * first - second, 0)
    return x, others + np.where(mass > 0, mass * place * above, 0)


def _half(low: Long, high: Long) -> Long:
    return np.where(high > _FAR * low, np.sqrt(low) * np.sqrt(high), low + (high - low) / 2)


def _cut(low: Long, high: Long, below: Long, above: Long, turn: int) -> Long:
    """Where to cut intervals, by turns: in half, and just above and just below where the sign seems to change.

    Good cuts save time; what is kept and what is thrown away does not depend on them.
    """
    half = _half(low, high)
    if turn % 3 == 0:
        return half
    guess = low + (high - low) * (below / (below - above))
    guess = guess * (1 + 0.25 * _POINT) if turn % 3 == 1 else guess * (1 - 0.25 * _POINT)
    return np.where((low < guess) & (guess < high), guess, half)


def _keep_best(pair: IndexArray, value: Long, at: Long, best: Long, chosen: Long) -> None:
    """Keep the least value of each pair, and where it is."""
    order = np.argsort(-value, kind="stable")  # the least is written last
    better = order[value[order] < best[pair[order]]]
    best[pair[better]], chosen[pair[better]] = value[better], at[better]
