"""The integral of one person's loss under a budget, piece by piece: what payments need where no potential serves all.

With the others of her stratum of mass ``U_o``, mean ``m_o``, and everybody's sums without her, at cost ``y``

    T(y) = (h + c(y − m_o)²)/(M_m + k(y − m_o)),   c = U_o u/U,   k = λu/U,   U = U_o + u,
    U(τ − y) = U_o(m_o − y) + λT(y),      loss = (2/B)·u(τ − y),

``M_m`` being ``M`` if she cost ``m_o``. Its integral is elementary. She leaves where ``y = m_o + λh/(U_o M_m)``. Both
``T`` and ``τ`` are convex in ``y``: while they fall somebody of another stratum, or of hers, leaves at the smaller root
of a quadratic equation; when they rise somebody enters at the larger one. A person alone in her stratum never leaves:
on her last piece the integral is a logarithm without end, and the potential that logarithm.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.contrast.moved import Found, Moved
from hushbid.allocation.contrast.problem import Scaled
from hushbid.arrays import BoolArray, FloatArray, IndexArray

_SERIES = 0.02
"""Below this the logarithm is left to its series."""


def budget_potential(
    scaled: Scaled, pairs: Moved, at: FloatArray, level: FloatArray, found: Found, lost: BoolArray
) -> FloatArray:
    """Minus the integral of each pair's loss over all higher costs, or up to a constant where that has no end."""
    own = pairs.others.own
    value = np.zeros(at.size)
    # nobody else asks for anything: B/y at every cost
    alone = _mean_of_others(pairs) <= 0.0
    value[alone] = scaled.goal.number * np.log(own.base + pairs.to[alone])
    sole = (own.offset.size - pairs.there) == 0
    value[sole & ~alone & lost] = math.inf
    unsolved = np.flatnonzero(found.present & (pairs.to < level) & ~lost & ~alone)
    state = _State(
        pairs=pairs.take(unsolved),
        y=pairs.to[unsolved],
        piece=found.piece[unsolved].copy(),
        count=found.count[unsolved].copy(),
    )
    area = np.zeros(unsolved.size)
    for _ in range(8 * (pairs.others.pieces.key.size + own.offset.size) + 64):
        if unsolved.size == 0:
            break
        sums = _Sums.of(state, scaled.half)
        end, piece, count = _next(state, sums)
        area = sums.integral(state.y, end)
        # the last piece of somebody alone in her stratum
        endless = end == math.inf
        area[endless] = -sums.h[endless] * np.log(sums.mean(state.y)[endless]) / sums.mass[endless]
        value[unsolved] -= area * sums.mass * (2.0 / (scaled.unit * scaled.goal.number))
        going = np.flatnonzero(count >= 0)
        unsolved = unsolved[going]
        state = _State(state.pairs.take(going), end[going], piece[going], count[going])
    return value


def _mean_of_others(pairs: Moved) -> FloatArray:
    """Something that is 0 exactly if nobody else has a positive cost."""
    own, pieces = pairs.others.own, pairs.others.pieces
    last = float(pieces.slope[-1]) + pieces.base
    if last <= 0.0:
        return np.zeros(pairs.to.size)
    positive = np.count_nonzero(own.base + own.offset > 0.0)
    hers = pairs.there & (own.base + pairs.own > 0.0)
    # of other strata: everybody's slope less the stratum's
    outside = pairs.others.elsewhere(np.array([math.inf]))[1][0]
    return np.asarray((positive - hers) + (1.0 if outside > 1e-12 * last else 0.0), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Where each pair has got to."""

    pairs: Moved
    y: FloatArray
    """The offset of her cost."""

    piece: IndexArray
    """Where ``T`` lies among all keys."""

    count: IndexArray
    """How many of her stratum, as it is, are below the level."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """The constants of one piece of each pair."""

    size: float
    mass: FloatArray
    """``u``."""

    total: FloatArray
    """``U_o``."""

    centre: FloatArray
    """``m_o``."""

    h: FloatArray
    """``B²/2`` and everybody's centred second moments without her."""

    middle: FloatArray
    """``M_m``."""

    @classmethod
    def of(cls, state: _State, half: float) -> "_Sums":
        pairs, others = state.pairs, state.pairs.others
        # inside the piece, where the sums of the other strata are those
        pieces = others.pieces
        ends = np.append(pieces.key, 2.0 * pieces.key[-1] + 1.0)
        inside = np.nextafter(ends[state.piece], math.inf)
        _, mean, spread, _ = others.elsewhere(inside)
        here = pairs.rank < state.count
        out = np.where(here, pairs.mass, 0.0)
        own = np.where(here, pairs.own, 0.0)
        nobody = state.count - here == 0
        total = np.where(nobody, 0.0, others.total[state.count] - out)
        first = np.where(nobody, 0.0, others.first[state.count] - out * own)
        second = np.where(nobody, 0.0, others.second[state.count] - out * own * own)
        centre = np.where(nobody, 0.0, first / np.where(nobody, 1.0, total))
        return cls(
            size=others.own.size,
            mass=pairs.mass,
            total=total,
            centre=centre,
            h=half + spread + np.maximum(second - first * centre, 0.0),
            middle=mean + others.own.size * (others.own.base + centre),
        )

    @property
    def slope(self) -> FloatArray:
        """``k``."""
        return np.asarray(self.size * self.mass / (self.total + self.mass))

    @property
    def curve(self) -> FloatArray:
        """``c``."""
        return np.asarray(self.total * self.mass / (self.total + self.mass))

    def mean(self, y: FloatArray) -> FloatArray:
        """``M``."""
        return np.asarray(self.middle + self.slope * (y - self.centre))

    def at(self, y: FloatArray) -> FloatArray:
        """``T``."""
        return np.asarray((self.h + self.curve * (y - self.centre) ** 2) / self.mean(y))

    def integral(self, y: FloatArray, end: FloatArray) -> FloatArray:
        """``∫ (τ − y) dy``."""
        length, mean, k, c = end - y, self.mean(y), self.slope, self.curve
        away = y - self.centre
        z = k * length / mean
        log, less = np.log1p(z), _less_log(z)
        step = mean / k
        tees = (self.h + c * away * away) * log + 2.0 * c * away * step * less + c * step * step * _beyond_log(z)
        area = -self.total * (away + 0.5 * length) * length + self.size * tees / k
        return np.asarray(np.maximum(area, 0.0) / (self.total + self.mass))


def _next(state: _State, sums: _Sums) -> tuple[FloatArray, IndexArray, IndexArray]:
    """Where each piece ends, and the piece and the count after it; a count of −1 where she is out, or nothing comes."""
    others, y = state.pairs.others, state.y
    key, offset = others.pieces.key, others.own.offset
    away = y - sums.centre
    end = sums.centre + sums.size * sums.h / (sums.total * sums.middle)
    piece, count = state.piece.copy(), np.full(y.size, -1)
    # T falls, and with it the level's part that she does not add herself
    rate = (2.0 * sums.curve * away - sums.at(y) * sums.slope) / sums.mean(y)
    rises = sums.mass + sums.size * rate
    for falling, leaves in ((rate < 0.0, True), (np.ones(y.size, dtype=bool), False)):
        # T meets a key
        goal = np.append(key, math.inf)[state.piece + (not leaves)]
        met = sums.centre + _root(sums.curve, -goal * sums.slope, sums.h - goal * sums.middle, smaller=leaves)
        first = falling & (goal > 0.0) & (goal < math.inf) & (met < end)
        end = np.where(first, np.maximum(met, y), end)
        to = key.searchsorted(goal, side="left" if leaves else "right") - 1
        piece, count = np.where(first, to, piece), np.where(first, state.count, count)
    for falling, leaves in ((rises < 0.0, True), (np.ones(y.size, dtype=bool), False)):
        # the level meets a neighbour of her stratum
        goal = _neighbour(state, leaves)
        sigma = goal - sums.centre
        met = sums.centre + _root(
            sums.size * sums.mass,
            sums.mass * (sums.middle - sums.size * sigma),
            sums.size * sums.h - (sums.total + sums.mass) * sigma * sums.middle,
            smaller=leaves,
        )
        first = falling & (np.abs(goal) < math.inf) & (met < end)
        end = np.where(first, np.maximum(met, y), end)
        to = offset.searchsorted(goal, side="left" if leaves else "right")
        piece, count = np.where(first, state.piece, piece), np.where(first, to, count)
    return np.maximum(end, y), piece, count


def _neighbour(state: _State, below: bool) -> FloatArray:
    """The offset of the last person of her stratum below the level, or of the first at or above it; not her own."""
    place, offset = state.pairs.place, state.pairs.others.own.offset
    at = state.count - 1 if below else state.count
    at = at - (at == place) if below else at + (at == place)
    ends = np.concatenate([[-math.inf, -math.inf], offset, [math.inf, math.inf]])
    return np.asarray(ends[np.clip(at + 2, 0, ends.size - 1)])


def _root(a: FloatArray, b: FloatArray, c: FloatArray, *, smaller: bool) -> FloatArray:
    """A root of ``a·d² + b·d + c``, ``a ≥ 0``; infinite where there is none. With ``a = 0`` only the smaller is one."""
    inner = b * b - 4.0 * a * c
    root = np.sqrt(np.where(inner >= 0.0, inner, math.nan))
    # the one of larger size first, so that nothing cancels
    large = -0.5 * (b + np.where(b >= 0.0, root, -root))
    one, other = large / a, c / large
    both = np.minimum(one, other) if smaller else np.maximum(one, other)
    both = np.where(a > 0.0, both, -c / b if smaller else math.inf)
    return np.where(np.isnan(both), math.inf, both)


def _less_log(z: FloatArray) -> FloatArray:
    """``z − log(1 + z)``."""
    near = np.minimum(z, _SERIES)
    series = sum((-1.0) ** j * near**j / j for j in range(2, 12))
    return np.asarray(np.where(z < _SERIES, series, z - np.log1p(z)))


def _beyond_log(z: FloatArray) -> FloatArray:
    """``z²/2 − z + log(1 + z)``."""
    near = np.minimum(z, _SERIES)
    series = -sum((-1.0) ** j * near**j / j for j in range(3, 13))
    return np.asarray(np.where(z < _SERIES, series, 0.5 * z * z - z + np.log1p(z)))
