"""The integral of one person's loss over their own cost under a budget, piece by piece: what payments need.

Under a budget no value function serves everybody, but each person has one. While nobody else changes sides, the
equations of (★) in :mod:`hushbid.allocation.frontier` are linear in ``q = λ/σ`` and ``ρ = 1/σ``. Let ``M₁, M₂ = Σuψ,
Σuψ²`` be sums over the other people inside, ``E, D, L`` those at the cap, ``P = 2 + D`` and ``b = B − L``. A person of
precision ``u`` with cost ``x`` loses

    ε = u·(b(b + Ex) + P(M₂ − M₁x)) / (uEx² + ubx + bM₁ + EM₂),         b·ρ + E·q = P,

and ``q`` falls in ``x`` up to some cost and rises beyond it. Other strata, where nobody has a cap, only add the mean of
their costs, ``μ = Σ_h λ_h m_h/λ``, to every cost of the stratum, and ``Σ_h Q_h`` to ``M₂``. There ``T`` falls up to
some cost, too, and then rises. So from a high cost one goes down from change to change. Costs are counted from an
*origin*, the mean of those inside where that is known, so that ``M₂ − M₁x`` loses no digits. Each part of an integral
has its poles left of zero, and Gauss's rule is exact to rounding.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from hushbid.allocation.deviations import Deviations
from hushbid.allocation.targets import Sums, Target
from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.errors import MarketError

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_FAR = 1e-6
_RATIO = 4.0  # a part ends where the distance to the nearest pole has changed by this factor
_MOST_PER_PERSON, _MOST_BESIDES = 8, 400
"""An integral has at most so many parts for each person, and so many besides."""


@dataclass(frozen=True, slots=True, eq=False)
class Others:
    """The sums over everybody else while nobody changes sides, one entry for each integral."""

    centre: FloatArray  # where the origin is among the costs that are integrated over
    origin: FloatArray  # what a cost there is, with the mean of other strata
    mass: FloatArray  # U
    first: FloatArray  # M₁
    second: FloatArray  # Σuψ(ψ − origin), and Q of the other strata
    used: FloatArray  # E
    room: FloatArray  # P
    left: FloatArray  # b


class Surrounded(ABC):
    """Everybody else in many populations, while one person's cost falls."""

    size: float  # λ of the stratum
    people: int  # how many may change sides

    @abstractmethod
    def others(self, going: IndexArray) -> Others:
        """Return the sums as they are now."""

    @abstractmethod
    def next(self, going: IndexArray, others: Others, falling: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return who of the stratum changes sides next while ``q`` falls or rises: their cost, and ``e/u`` or 0.

        The cost is infinite where nobody does.
        """

    @abstractmethod
    def change(self, going: IndexArray) -> None:
        """Let those change sides who are next."""

    def key(self, going: IndexArray, falling: BoolArray) -> FloatArray:
        """Return the next ``T`` at which somebody of another stratum changes sides; not a number where nobody does."""
        return np.full(going.size, math.nan)

    def pass_key(self, going: IndexArray, falling: BoolArray) -> None:  # noqa: B027 - there may be no other strata
        """Let those of other strata change sides."""

    def see(self, going: IndexArray, piece: "Piece", costs: FloatArray) -> None:  # noqa: B027 - for those who keep it
        """Note that integrals have come down to these costs."""


def integrals(
    around: Surrounded, mass: FloatArray, cap: FloatArray, top: FloatArray, stop: FloatArray
) -> tuple[FloatArray, IndexArray]:
    """Return the integral of each loss from cost ``stop`` up to ``top``, and which did not come to their end.

    At ``top`` a person of this mass is not at their cap.
    """
    area, x = np.zeros(top.size), top.copy()
    going = np.flatnonzero(x > stop)
    with np.errstate(all="ignore"):
        for _ in range(_MOST_PER_PERSON * around.people + _MOST_BESIDES):
            if going.size == 0:
                break
            piece = Piece(around.others(going), mass[going], cap[going], x[going])
            met = piece.meets(*around.next(going, piece.others, piece.falling))
            passed = piece.meets_key(around.size, around.key(going, piece.key_falling(around.size)))
            last = stop[going]
            after = np.minimum(np.maximum.reduce([met, passed, piece.full, piece.nearest, last]), x[going])
            area[going] += piece.integral(after)
            around.see(going, piece, after)
            at_cap = (after == piece.full) & (after > last)
            full = going[at_cap]
            area[full] += cap[full] * (after[at_cap] - stop[full])
            around.change(np.flatnonzero((after == met) & ((met > piece.turn) | ~piece.falling)))
            keyed, falling = np.flatnonzero(after == passed), piece.key_falling(around.size)
            keyed = keyed[~(falling[keyed] & (passed[keyed] == piece.key_turn(around.size)[keyed]))]
            around.pass_key(going[keyed], falling[keyed])
            x[going] = after
            going = going[~at_cap & (after > last)]
    return area, going


class Piece:
    """Costs down from ``x`` while nobody else changes sides; distances ``d`` count from the origin."""

    def __init__(self, others: Others, mass: FloatArray, cap: FloatArray, x: FloatArray) -> None:
        self.others, self.u, self.cap, self.x, u = others, mass, cap, x, mass
        at, first, used, room, left = others.origin, others.first, others.used, others.room, others.left
        self.top = left * (left + used * at) + room * others.second, left * used - room * first
        """The loss is ``u`` times this line over this square function of ``d``."""

        second = others.second + first * at
        self.bottom = u * at * (used * at + left) + left * first + used * second, u * (2.0 * used * at + left), u * used
        # q is least where u·P·x² − 2·slope·x = a
        a, slope = left**2 + room * second, self.top[1]
        root = np.sqrt(slope**2 + u * room * a)
        turn = np.where(slope > 0.0, (slope + root) / (u * room), a / (root - np.minimum(slope, 0.0)))
        self.turn = others.centre + (turn - at)
        self.falling = np.asarray(x > self.turn)
        self.full = self._where_full()
        near = left * first + used * second
        near = np.minimum(near / (left * u), np.where(used > 0.0, 0.5 * left / used, np.inf))
        away = x - others.centre + at + near
        self.nearest = np.maximum(x - away * (1.0 - 1.0 / _RATIO), others.centre - at)

    def _where_full(self) -> FloatArray:
        """Return the cost at which the person is at the cap; minus infinity if at none."""
        others, cap = self.others, np.where(self.cap < np.inf, self.cap, 1.0)
        zero, one = (cap * below - self.u * above for below, above in zip(self.bottom[:2], self.top, strict=True))
        two = cap * self.bottom[2]
        cost = others.centre + _root(two, one, zero, larger=np.ones(cap.size, dtype=bool))
        return np.where((self.cap < np.inf) & (cost > others.centre - others.origin), np.minimum(cost, self.x), -np.inf)

    def meets(self, cost: FloatArray, reach: FloatArray) -> FloatArray:
        """Return the next lower cost at which another person changes sides; while ``q`` falls not below where it turns.

        They enter where ``q = ψρ``, and are at their cap where ``q − ψρ = e/u``.
        """
        others, u, there = self.others, self.u, np.abs(cost) < np.inf
        d = np.where(there, cost, 0.0) - others.centre
        fixed = others.room * (u * others.origin + others.first) - others.left * others.used
        below = [reach * one for one in self.bottom]
        zero, one = self.top[0] - d * fixed - below[0], others.room * u * (others.origin - d) - below[1]
        found = others.centre + _root(others.room * u - below[2], one, zero, larger=self.falling)
        found = np.where(there, found, -np.inf)
        return np.where(self.falling, np.maximum(found, np.minimum(self.turn, self.x)), found)

    # -- other strata, where nobody has a cap: T = (h + c·d²)/(M + k·d) ------------------------------------------------

    def _terms(self, size: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        share = self.u / (self.others.mass + self.u)
        return 0.5 * self.top[0], self.others.mass * share, size * self.others.origin, size * share

    def key_turn(self, size: float) -> FloatArray:
        """Return the cost at which ``T`` is least."""
        h, c, m, k = self._terms(size)
        return np.asarray(self.others.centre + k * h / (c * m + np.sqrt(c * c * m * m + c * k * k * h)))

    def key_falling(self, size: float) -> BoolArray:
        """Return whether ``T`` falls with the cost."""
        return np.asarray(self.x > self.key_turn(size))

    def meets_key(self, size: float, key: FloatArray) -> FloatArray:
        """Return the next lower cost at which ``T`` is this; while it falls not below where it turns."""
        there = ~np.isnan(key)
        if not there.any():
            return np.full(key.size, -np.inf)
        falling, (h, c, m, k) = self.key_falling(size), self._terms(size)
        found = self.others.centre + _root(c, -key * k, h - key * m, larger=falling)
        found = np.where(there, found, -np.inf)
        return np.where(falling, np.maximum(found, self.key_turn(size)), found)

    # -- what there is at a cost ---------------------------------------------------------------------------------------

    def place(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return level and ``σ`` at a cost."""
        others, d = self.others, x - self.others.centre
        zero, one, two = self.bottom
        bottom, cost = zero + d * (one + d * two), others.origin + d
        step = (others.room * (self.u * cost + others.first) - others.left * others.used) / bottom
        return (self.top[0] + d * self.top[1]) / (bottom * step) + cost, 1.0 / step

    def integral(self, low: FloatArray) -> FloatArray:
        """Return the integral of the loss from ``low`` to where the piece starts."""
        half = 0.5 * (self.x - low)
        d = np.multiply.outer(_NODES, half) + (0.5 * (self.x + low) - self.others.centre)
        zero, one, two = self.bottom
        loss = self.u * (self.top[0] + d * self.top[1]) / (zero + d * (one + d * two))
        return np.asarray(half * (_WEIGHTS @ np.clip(loss, 0.0, self.cap)))


def _root(a: FloatArray, b: FloatArray, c: FloatArray, *, larger: BoolArray) -> FloatArray:
    """Return a root of ``a·d² + b·d + c``; minus infinity where there is none."""
    inner = b * b - 4.0 * a * c
    root = np.sqrt(np.where(inner >= 0.0, inner, math.nan))
    far = -0.5 * (b + np.where(b >= 0.0, root, -root))  # the one of larger size, so that nothing cancels
    one, other = far / a, c / far
    found = np.where(larger, np.fmax(one, other), np.fmin(one, other))
    found = np.where(a > 0.0, found, np.where(a == 0.0, -c / b, math.nan))
    return np.asarray(np.where(np.isnan(found), -math.inf, found))


# -- without caps, in any strata ---------------------------------------------------------------------------------------


class _SortedAround(Surrounded):
    """Strata without caps, sorted: only neighbours of the level, and of ``T``, can be next."""

    def __init__(self, people: Deviations, sums: Sums, budget: float, base: FloatArray) -> None:
        self._deviations, self._piece, self._count, self._budget = people, sums.piece.copy(), sums.count.copy(), budget
        self.size, view, self._base = people.size, people.view, base
        self.people = view.pieces.key.size + view.own.offset.size
        self._ends = np.append(view.pieces.key, 2.0 * view.pieces.key[-1] + 1.0)
        offset = view.own.offset
        self._costs = np.concatenate([[-math.inf, -math.inf], offset, [math.inf, math.inf]])

    def others(self, going: IndexArray) -> Others:
        people, view, count = self._deviations.take(going), self._deviations.view, self._count[going]
        # inside the piece, where the sums of the other strata are those
        _, mean, spread, _ = view.elsewhere(np.nextafter(self._ends[self._piece[going]], math.inf))
        mass, centre, inner = people.without_person(count, people.rank < count)
        # with nobody else inside costs count from 0
        origin = mean / self.size + np.where(mass > 0.0, view.own.base + centre, 0.0)
        centre, none = np.where(mass > 0.0, centre, -view.own.base) + self._base[going], np.zeros(going.size)
        room, left = np.full(going.size, 2.0), np.full(going.size, self._budget)
        return Others(centre, origin, mass, mass * origin, spread + inner, none, room, left)

    def next(self, going: IndexArray, others: Others, falling: BoolArray) -> tuple[FloatArray, FloatArray]:
        place, offset = self._deviations.place[going], self._deviations.view.own.offset
        at = self._count[going] - falling
        at = np.where(at == place, at - np.where(falling, 1, -1), at)
        cost = self._costs[np.clip(at + 2, 0, self._costs.size - 1)]
        to = np.where(falling, offset.searchsorted(cost, side="left"), offset.searchsorted(cost, side="right"))
        self._next = going, to
        return cost + self._base[going], np.zeros(cost.size)

    def change(self, going: IndexArray) -> None:
        self._count[self._next[0][going]] = self._next[1][going]

    def key(self, going: IndexArray, falling: BoolArray) -> FloatArray:
        if not self._deviations.view.other_keys.size:
            return super().key(going, falling)
        key = np.append(self._deviations.view.pieces.key, math.nan)[self._piece[going] + ~falling]
        return np.where(key > 0.0, key, math.nan)

    def pass_key(self, going: IndexArray, falling: BoolArray) -> None:
        keys = self._deviations.view.pieces.key
        passed = keys[self._piece[going] + ~falling] if going.size else keys[:0]
        to = np.where(falling, keys.searchsorted(passed, side="left"), keys.searchsorted(passed, side="right"))
        self._piece[going] = to - 1


def budget_values(target: Target, people: Deviations, level: FloatArray, sums: Sums, at: FloatArray) -> FloatArray:
    """Return the integral of each loss from the person's own cost up to another one.

    ``level`` and ``sums`` are those at the other cost, and ``at`` is ``T``: infinite where nobody is left to be paid.
    People who are not there count from a cost above all.
    """
    highest = 2.0 * float(people.view.own.offset[-1]) + 1.0
    own, lost = np.where(people.own < math.inf, people.own, highest), ~(at < math.inf)
    lowered = np.flatnonzero(people.to < own)
    level, sums = level.copy(), sums.take(np.arange(own.size))
    if lowered.size:
        back = replace(people.take(lowered), to=own[lowered], cost=people.view.own.base + own[lowered])
        end, level[lowered], found, _ = back.follow(target, float(np.min(at[lowered], initial=math.inf)))
        sums.put(lowered, found)
        lost[lowered] = ~(end < math.inf)
    # far below the base a distance from it has lost its digits: there costs count from 0
    base = np.where(people.cost < _FAR * people.view.own.base, people.view.own.base, 0.0)
    to = np.where(base > 0.0, people.cost, people.to)
    high, low = np.maximum(to, own + base), np.minimum(to, own + base)
    high = np.where(lost, low, np.minimum(high, level + base))
    around = _SortedAround(people, sums, target.number, base)
    area, unsolved = integrals(around, people.mass, np.full(own.size, math.inf), high, low)
    if unsolved.size:
        raise MarketError("A payment under this budget cannot be computed: the pieces of its integral did not end.")
    area = np.where(lost, math.inf, area)
    area[lowered] *= -1.0
    return area
