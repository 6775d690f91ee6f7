"""The integral of one person's loss over their own cost under a budget, piece by piece: what payments need.

Under a budget no value function serves everybody, but each person has one. With the others of their stratum of mass
``U_o`` and mean ``m_o``, and everybody's sums without the person, at cost ``y``

    T(y) = (h + c(y − m_o)²)/(M_m + k(y − m_o)),   c = U_o u/U,   k = λu/U,   U = U_o + u,
    U(τ − y) = U_o(m_o − y) + λT(y),      loss = (2/B)·u(τ − y),

``M_m`` being ``M`` if the person cost ``m_o``, and ``h`` half the squared budget and all centred second moments. The
integral is elementary. The person leaves at ``y = m_o + λh/(U_o M_m)``. Both ``T`` and ``τ`` are convex in ``y``: while
they fall, the marginal seller of another stratum, or of this one, leaves at the smaller root of a quadratic equation;
when they rise one enters at the larger root. A person alone in their stratum never leaves: on the last piece the
integral is a logarithm without end, and the value function that logarithm.
"""

import math
from dataclasses import dataclass

import numpy as np

from hushbid.allocation.deviations import Deviations
from hushbid.allocation.targets import Sums
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError

_SERIES = 0.02  # below this the logarithm is left to its series
_MOST_PER_KEY, _MOST_BESIDES = 8, 64
"""An integral has at most so many pieces for each person's key, and so many besides."""


def budget_values(budget: float, people: Deviations, level: FloatArray, sums: Sums, lost: BoolArray) -> FloatArray:
    """Return minus the integral of each loss over all higher costs, up to a constant where that has no end.

    ``lost`` are deviations after which nobody can be paid; ``level`` is the water level at the new cost.
    """
    own = people.view.own
    half = 0.5 * budget * budget
    value = np.zeros(level.size)
    # nobody else asks for anything: B/y at every cost
    sole_seller = ~_others_ask(people)
    value[sole_seller] = budget * np.log(own.base + people.to[sole_seller])
    sole = (own.offset.size - people.there) == 0
    value[sole & ~sole_seller & lost] = math.inf
    unsolved = np.flatnonzero(sums.present & (people.to < level) & ~lost & ~sole_seller)
    state = _State(people.take(unsolved), people.to[unsolved], sums.piece[unsolved], sums.count[unsolved])
    for _ in range(_MOST_PER_KEY * (people.view.pieces.key.size + own.offset.size) + _MOST_BESIDES):
        if unsolved.size == 0:
            break
        piece = _Piece.of(state, half)
        end, after, count = _next(state, piece, half)
        area = piece.integral(state.y, end)
        # the last piece of a person alone in their stratum
        endless = end == math.inf
        area[endless] = -piece.h[endless] * np.log(piece.mean(state.y)[endless]) / piece.mass[endless]
        value[unsolved] -= area * piece.mass * (2.0 / budget)
        going = np.flatnonzero(count >= 0)
        unsolved = unsolved[going]
        state = _State(state.people.take(going), end[going], after[going], count[going])
    if unsolved.size:
        raise MarketError("A payment under this budget cannot be computed: the pieces of its integral did not end.")
    return value


def _others_ask(people: Deviations) -> BoolArray:
    """Return whether somebody else has a positive cost."""
    own, view = people.view.own, people.view
    positive = int(np.count_nonzero(own.base + own.offset > 0.0))
    outside = view.base > 0.0 or bool(view.elsewhere(np.array([math.inf]))[1][0] > 1e-12 * view.pieces.mean[-1])
    mine = people.there & (own.base + people.own > 0.0)
    asking: BoolArray = (positive - mine > 0) | outside
    return asking


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """How far each integral has come."""

    people: Deviations
    y: FloatArray  # the person's cost, counted from the base
    piece: IndexArray  # where T lies among all keys
    count: IndexArray  # how many of the stratum, as it is, are below the level


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """The constants of one piece of each integral."""

    size: float
    mass: FloatArray  # u
    total: FloatArray  # U_o
    centre: FloatArray  # m_o
    h: FloatArray
    middle: FloatArray  # M_m

    @classmethod
    def of(cls, state: _State, half: float) -> "_Piece":
        people, view = state.people, state.people.view
        # inside the piece, where the sums of the other strata are those
        ends = np.append(view.pieces.key, 2.0 * view.pieces.key[-1] + 1.0)
        _, mean, spread, _ = view.elsewhere(np.nextafter(ends[state.piece], math.inf))
        total, centre, inner = people.without_person(state.count, people.rank < state.count)
        return cls(
            size=people.size,
            mass=people.mass,
            total=total,
            centre=centre,
            h=half + spread + inner,
            middle=mean + people.size * (view.own.base + centre),
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
        """Return ``∫ (τ − y) dy``.

        With ``U(τ − y) = (λh − U_o M_m d)/(M_m + k·d)``, from which the quadratic terms have cancelled.
        """
        length, mean, k = end - y, self.mean(y), self.slope
        z = k * length / mean
        over = self.size * self.h - self.total * self.middle * (y - self.centre)
        area = over * np.log1p(z) / k - self.total * self.middle * (mean / k / k) * _less_log(z)
        return np.asarray(np.maximum(area, 0.0) / (self.total + self.mass))


def _next(state: _State, piece: _Piece, half: float) -> tuple[FloatArray, IndexArray, IndexArray]:
    """Return where each piece ends, and the piece and count after it; a count of −1 where the person is out."""
    view, y = state.people.view, state.y
    key, offset = view.pieces.key, view.own.offset
    end = piece.centre + piece.size * piece.h / (piece.total * piece.middle)
    after, count = state.piece.copy(), np.full(y.size, -1)
    # T falls, and with it the part of the level that the person does not add
    rate = (2.0 * piece.curve * (y - piece.centre) - piece.at(y) * piece.slope) / piece.mean(y)
    rises = piece.mass + piece.size * rate
    always = np.ones(y.size, dtype=bool)
    for possible, leaves in ((rate < 0.0, True), (always, False)) if view.other_keys.size else ():
        # T meets a key of another stratum
        met_key = np.append(key, math.inf)[state.piece + (not leaves)]
        met = piece.centre + _root(
            piece.curve, -met_key * piece.slope, piece.h - met_key * piece.middle, smaller=leaves
        )
        first = possible & (met_key > 0.0) & (met_key < math.inf) & (met < end)
        end = np.where(first, np.maximum(met, y), end)
        to = key.searchsorted(met_key, side="left" if leaves else "right") - 1
        after, count = np.where(first, to, after), np.where(first, state.count, count)
    for possible, leaves in ((rises < 0.0, True), (always, False)):
        # the level meets a neighbour of the stratum
        neighbour = _neighbour(state, leaves)
        to = offset.searchsorted(neighbour, side="left" if leaves else "right")
        # who leaves adds nothing there: without their term nothing cancels
        there = _Piece.of(_State(state.people, y, state.piece, to), half) if leaves else piece
        away = neighbour - there.centre
        met = there.centre + _root(
            there.size * there.mass,
            there.mass * (there.middle - there.size * away),
            there.size * there.h - (there.total + there.mass) * away * there.middle,
            smaller=leaves,
        )
        first = possible & (np.abs(neighbour) < math.inf) & (met < end)
        end = np.where(first, np.maximum(met, y), end)
        after, count = np.where(first, state.piece, after), np.where(first, to, count)
    return np.maximum(end, y), after, count


def _neighbour(state: _State, below: bool) -> FloatArray:
    """Return the cost of the last other person of the stratum below the level, or of the first at or above it."""
    place, offset = state.people.place, state.people.view.own.offset
    at = state.count - 1 if below else state.count
    at = at - (at == place) if below else at + (at == place)
    ends = np.concatenate([[-math.inf, -math.inf], offset, [math.inf, math.inf]])
    return np.asarray(ends[np.clip(at + 2, 0, ends.size - 1)])


def _root(a: FloatArray, b: FloatArray, c: FloatArray, *, smaller: bool) -> FloatArray:
    """Return a root of ``a·d² + b·d + c``, ``a ≥ 0``; infinite where there is none. For ``a = 0`` the smaller is it."""
    inner = b * b - 4.0 * a * c
    root = np.sqrt(np.where(inner >= 0.0, inner, math.nan))
    # the one of larger size first, so that nothing cancels
    large = -0.5 * (b + np.where(b >= 0.0, root, -root))
    one, other = large / a, c / large
    both = np.minimum(one, other) if smaller else np.maximum(one, other)
    both = np.where(a > 0.0, both, -c / b if smaller else math.inf)
    return np.where(np.isnan(both), math.inf, both)


def _less_log(z: FloatArray) -> FloatArray:
    """Return ``z − log(1 + z)``."""
    near = np.minimum(z, _SERIES)
    series = sum((-1.0) ** j * near**j / j for j in range(2, 12))
    return np.asarray(np.where(z < _SERIES, series, z - np.log1p(z)))
