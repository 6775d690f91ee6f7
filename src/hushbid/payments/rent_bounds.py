"""Everybody's integral enclosed over intervals of bids, which are split until the enclosures are narrow enough.

A rule's loss falls in the bid, so over an interval of bids

    (z₁ − z₀)·ε(z₁)  ≤  ∫ε dz  ≤  (z₁ − z₀)·ε(z₀),

and both sides are equal where the loss is the same at both ends, as at a cap. A value function contains the error times
its weight. Where caps bind that is many orders above a rent, and the difference of two values is rounding. So every
enclosure by values is intersected with these sums.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.payments.rule import ROUNDING, RuleWithPotential
from hushbid.payments.virtual_cost_table import Ladder

_PEOPLE = 1024
"""How many people are worked on together: few calls of NumPy each, and intervals that stay in the processor's cache."""

_PIECES = 256
FINEST = 1e-8  # smaller tolerances are not aimed at: there the error of virtual costs decides
_PSI_ERROR = 2e-12  # virtual costs are taken to be right to this relative error
MOST_EVALUATIONS = 1 << 15
_MOST_ROUNDS = 100


@dataclass(slots=True, eq=False)
class Bounds:
    """A lower bound, an upper bound and an estimate of each integral."""

    lower: FloatArray
    upper: FloatArray
    estimate: FloatArray

    def intersected(self, other: "Bounds") -> "Bounds":
        """The part that is in both; of two that contradict each other by rounding, the other."""
        lower, upper = np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper)
        apart = ~(lower <= upper)
        lower, upper = np.where(apart, other.lower, lower), np.where(apart, other.upper, upper)
        # the estimate of the narrower one
        coarse = apart | ~(self.upper - self.lower <= other.upper - other.lower)
        estimate = np.where(coarse, other.estimate, self.estimate)
        return Bounds(lower, upper, np.minimum(np.maximum(estimate, lower), upper))


def monotone(dz: FloatArray, e0: FloatArray, e1: FloatArray) -> Bounds:
    """The bounds on the integral over intervals of bids of this width, from the losses at both ends.

    Losses that rise by rounding are not swapped silently: the interval between them is what is known.
    """
    some = dz > 0.0
    # an infinite loss times no width is nothing
    ends = np.where(some, e0, 0.0) * dz, np.where(some, e1, 0.0) * dz
    lower, upper = np.minimum(*ends), np.maximum(*ends)
    estimate = 0.5 * (lower + np.minimum(upper, 1e300))
    return Bounds(lower * (1.0 - ROUNDING), upper * (1.0 + ROUNDING), estimate)


def halved(
    loss: Callable[[IndexArray, FloatArray], FloatArray],
    who: IndexArray,
    ends: FloatArray,
    *,
    allowed: float = 0.0,
    share: float = 0.0,
    most: int = MOST_EVALUATIONS,
) -> tuple[Bounds, bool]:
    """Everybody's bounds by monotonicity alone, from intervals of bids that are halved where these are too far apart.

    To a width of ``allowed``, or this ``share`` of everything, where so many evaluations suffice; and whether the loss
    rises anywhere by more than rounding.
    """
    size, z = int(who.max()) + 1, ends
    e = loss(np.tile(who, 2), z.ravel()).reshape(2, -1)
    evaluations = e.size
    for _ in range(_MOST_ROUNDS):
        found = monotone(z[1] - z[0], *e)
        gap, many = found.upper - found.lower, np.bincount(who, minlength=size)
        limit = max(allowed, share * float((found.lower + found.upper).sum()))
        middle = 0.5 * (z[0] + z[1])
        # of those whose gap is too wide the intervals with more than their share of it
        split = (np.bincount(who, gap, size) > limit)[who] & (gap * many[who] > limit)
        split &= (middle > z[0]) & (middle < z[1])
        evaluations += int(np.count_nonzero(split))
        if not split.any() or evaluations > most:
            break
        between = np.stack([middle[split], loss(who[split], middle[split])])
        left, right = np.stack([z[0], e[0]])[:, split], np.stack([z[1], e[1]])[:, split]
        (z0, e0), (z1, e1) = np.hstack([left, between]), np.hstack([between, right])
        z, e = np.hstack([z[:, ~split], [z0, z1]]), np.hstack([e[:, ~split], [e0, e1]])
        who = np.concatenate([who[~split], who[split], who[split]])
    found = monotone(z[1] - z[0], *e)
    sums = (np.bincount(who, one, size).astype(np.float64) for one in (found.lower, found.upper, found.estimate))
    return Bounds(*sums), bool((e[1] > e[0] + 1e-9 * (1.0 + np.abs(e[0]))).any())


@dataclass(slots=True, eq=False)
class _Parts:
    """Intervals of bids, one entry each: whose, between which nodes, and what the rule does at both ends."""

    who: IndexArray
    first: IndexArray
    last: IndexArray
    z0: FloatArray
    z1: FloatArray
    x0: FloatArray
    x1: FloatArray
    e0: FloatArray
    e1: FloatArray
    v0: FloatArray
    v1: FloatArray

    def take(self, which: Any) -> "_Parts":
        return _Parts(*(getattr(self, name)[which] for name in self.__slots__))


class Enclosures:
    """Split intervals, most where their enclosures are widest, until everybody's is narrow enough."""

    def __init__(
        self,
        rule: RuleWithPotential,
        ladder: Ladder,
        rows: IndexArray,
        bids: FloatArray,
        costs: FloatArray,
    ) -> None:
        self.rule, self.ladder, self.rows, self.bids, self.costs = rule, ladder, rows, bids, costs
        self.allowed = 0.0
        self.sums: FloatArray = np.zeros((3, rows.size))  # lower bounds, upper bounds, estimates
        self.at_end: FloatArray = np.zeros(rows.size)  # losses at the last node

    def run(self, besides: FloatArray, tolerance: float) -> None:
        """Enclose everybody's rent, to the tolerance relative to the largest payment where the table allows it."""
        start = self._start()
        # an estimate lies about two thirds of the way: at a width of 1.5 its error is the tolerance
        self.allowed = 1.5 * max(tolerance, FINEST) * self._largest(start, besides)
        self._settle_all(start)

    def too_wide(self) -> IndexArray:
        """Those whose enclosure is wider than allowed."""
        return np.flatnonzero(self.sums[1] - self.sums[0] > self.allowed)

    def narrowed(self, who: IndexArray, ladder: Ladder) -> bool:
        """Enclose these people's rents once more, with another table; whether that was worth its while."""
        part = Enclosures(self.rule, ladder, self.rows[who], self.bids[who], self.costs[who])
        part.allowed = self.allowed
        part._settle_all(part._start())
        before, after = self.sums[1, who] - self.sums[0, who], part.sums[1] - part.sums[0]
        self.sums[:, who] = np.where(after < before, part.sums, self.sums[:, who])
        return bool(after.max() < 0.5 * before.max())

    def _settle_all(self, start: _Parts) -> None:
        for first in range(0, self.rows.size, _PEOPLE):
            block = slice(first, first + _PEOPLE)
            self._settle(start.take(block), self.allowed, self.sums[:, block], first)

    def _largest(self, start: _Parts, besides: FloatArray) -> float:
        """A lower bound, within a few percent, on what the person who seems to be paid most is paid."""
        guess = besides + self._enclose(start)[2]
        who = int(guess.argmax())
        goal = float(guess[who])
        for _ in range(40):
            sums = np.zeros((3, 1))
            self._settle(start.take([who]), 0.02 * goal, sums, who)
            least, most = (float(besides[who] + bound) for bound in sums[:2, 0])
            if most <= 1.5 * least:
                break
            # the guess was far too high: aim lower
            goal = min(0.1 * goal, most)
        return least

    def _settle(self, parts: _Parts, allowed: float, sums: FloatArray, first: int) -> None:
        """Add up the enclosures of the people from ``first`` on, splitting until each one's gap is allowed."""
        size = sums.shape[1]
        for round_ in range(41):
            who = parts.who - first
            low, high, best, slack = self._enclose(parts)
            # whose gap is too wide, and which of their intervals are worth splitting
            totals = [np.bincount(who, low, size), np.bincount(who, high, size)]
            wide = totals[1] - totals[0] > allowed
            split = np.flatnonzero(wide[who]) if round_ < 40 and wide.any() else np.zeros(0, dtype=np.intp)
            if split.size:
                pieces = self._pieces(parts.take(split), (high - low)[split], slack[split], who[split], size, allowed)
                split, pieces = split[pieces > 1], pieces[pieces > 1]
            if split.size == 0:
                sums += [*totals, np.bincount(who, best, size)]
                return
            # intervals that stay whole are added up now, the others go round again
            done = np.ones(who.size, dtype=bool)
            done[split] = False
            for row, bound in zip(sums, (low, high, best), strict=True):
                row += np.bincount(who[done], bound[done], size)
            parts = self._split(parts.take(split), pieces)

    @staticmethod
    def _pieces(
        parts: _Parts, gap: FloatArray, slack: FloatArray, who: IndexArray, size: int, allowed: float
    ) -> IndexArray:
        """Into how many pieces to split each of these intervals of people whose gap is too wide."""
        # Splitting in m divides a gap by m²; for the fewest pieces in all, m goes with its cube root.
        share = np.cbrt(np.minimum(gap, 1e300))
        factor = np.sqrt(np.bincount(who, share, size) * (1.04 / max(allowed, 1e-300)))
        pieces = np.ceil(share * factor[who])
        # Every piece has the slack that the whole has: m² must not be bought with more than it saves.
        worth = np.divide(2.0 * gap, slack, out=np.full(gap.size, np.inf), where=slack > 0.0)
        pieces = np.minimum(pieces, np.floor(np.cbrt(worth)))
        whole: IndexArray = np.minimum(np.minimum(pieces, _PIECES), parts.last - parts.first).astype(np.intp)
        return whole

    def _at(self, who: IndexArray, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = self.rule.at(self.rows[who], costs)
        return found.loss, found.value

    def _start(self) -> _Parts:
        """One interval for each person, from their bid to the last node."""
        ladder, who = self.ladder, np.arange(self.rows.size)
        before = np.maximum(ladder.z.searchsorted(self.bids, side="left") - 1, 0)
        last = np.full(who.size, ladder.z.size - 1)
        # ψ does not fall from their bid to the node, whatever rounding says
        x1 = np.maximum(ladder.x[last], self.costs)
        # both ends in one call, which costs as much as one of few people
        loss, value = self._at(np.tile(who, 2), np.concatenate([self.costs, x1]))
        (e0, self.at_end), (v0, v1) = loss.reshape(2, -1), value.reshape(2, -1)
        z1 = np.maximum(ladder.z[last], self.bids)
        return _Parts(who, before, last, self.bids, z1, self.costs, x1, e0, self.at_end, v0, v1)

    def _split(self, parts: _Parts, pieces: IndexArray) -> _Parts:
        """Each interval cut at evenly spaced nodes into so many pieces."""
        # step 1: the inner nodes of every interval, one after the other
        inner = pieces - 1
        which = np.repeat(np.arange(pieces.size), inner)
        number = np.arange(which.size) - np.repeat(np.cumsum(inner) - inner, inner) + 1
        node = parts.first[which] + (parts.last - parts.first)[which] * number // pieces[which]
        # step 2: the rule there, the only evaluations
        x = self.ladder.x[node]
        loss, value = self._at(parts.who[which], x)
        # step 3: where each interval's first and last piece are among all pieces
        ends = np.cumsum(pieces) - 1
        starts = ends - inner
        inside = np.ones(int(pieces.sum()), dtype=bool)
        inside[starts] = False

        def strung(first: NDArray[Any], middle: NDArray[Any], last: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            """The left and the right end of every piece, from start, inner points and end of every interval."""
            left = np.empty(inside.size, dtype=middle.dtype)
            left[starts], left[inside] = first, middle
            right = np.empty_like(left)
            right[:-1] = left[1:]
            right[ends] = last
            return left, right

        # step 4: every column strung together
        nodes = strung(parts.first, node, parts.last)
        ends_of = [
            strung(first, middle, last)
            for first, middle, last in (
                (parts.z0, self.ladder.z[node], parts.z1),
                (parts.x0, x, parts.x1),
                (parts.e0, loss, parts.e1),
                (parts.v0, value, parts.v1),
            )
        ]
        return _Parts(np.repeat(parts.who, pieces), *nodes, *(end for pair in ends_of for end in pair))

    def _enclose(self, part: _Parts) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Lower bound, upper bound and estimate of ``∫ε dz`` over each interval, and what of it is due to rounding."""
        dz, dx = part.z1 - part.z0, part.x1 - part.x0
        if self.ladder.linear:
            return self._enclose_by_values(part, dz)
        endless = np.isinf(part.e0)
        convex, excess = self.ladder.shape(part.first, part.last)
        # where the shape of ψ is known, ε falls and its potential is a number: the second-order enclosure
        usable = (excess < 0.25) & (part.e0 > part.e1) & (dx > 0.0) & (part.v1 < np.inf)
        if usable.all() and not endless.any():
            return self._enclose_by_shape(part, dz, dx, convex, excess)
        # elsewhere lower and upper sums: all that monotonicity gives
        sums = monotone(dz, part.e0, part.e1)
        low, high, best, slack = sums.lower, sums.upper, sums.estimate, np.zeros(dz.size)
        convex, excess = np.broadcast_to(convex, dz.shape), np.broadcast_to(excess, dz.shape)
        k = np.flatnonzero(usable & ~endless)
        if k.size:
            found = self._enclose_by_shape(part.take(k), dz[k], dx[k], convex[k], excess[k])
            low[k], high[k], best[k], slack[k] = found
        # where ε starts at infinity: by parts
        k = np.flatnonzero(endless & (dx > 0.0))
        if k.size:
            low[k], high[k], best[k] = _from_zero(part.take(k), convex[k], excess[k])
        return low, high, best, slack

    def _enclose_by_values(self, part: _Parts, dz: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """What `_enclose` gives, where ψ is affine: a difference of two values, if they have digits enough."""
        slope = float(self.ladder.slope[0])
        with np.errstate(invalid="ignore"):
            area = np.maximum(part.v1 - part.v0, 0.0) * slope
            slack = ROUNDING * np.maximum(np.abs(part.v0), np.abs(part.v1)) * slope
        known = np.isfinite(area) & np.isfinite(slack)
        by_values = Bounds(np.where(known, area - slack, 0.0), np.where(known, area + slack, np.inf), area)
        found = by_values.intersected(monotone(dz, part.e0, part.e1))
        return found.lower, found.upper, found.estimate, slack

    def _enclose_by_shape(
        self,
        part: _Parts,
        dz: FloatArray,
        dx: FloatArray,
        convex: BoolArray,
        excess: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """What `_enclose` gives, where ε falls from a finite value and ψ is nearly convex or nearly concave."""
        area, drop = np.maximum(part.v1 - part.v0, 0.0), part.e0 - part.e1
        slope = dz / dx
        # one bound: Chebyshev's inequality
        chebyshev = area * slope
        # the other: the two-step function with the same ends and the same ∫ε dx, which turns here
        turn = part.x0 + (area - part.e1 * dx) / drop
        blur = ROUNDING * (np.abs(part.v0) + np.abs(part.v1) + part.e1 * dx) / drop  # both terms may be far larger
        turn += np.where(convex, blur, -blur)
        np.maximum(turn, part.x0, out=turn)
        np.minimum(turn, part.x1, out=turn)
        chord, beyond = self.ladder.inverse(turn)
        # its turn in bids, on the safe side of what the table knows of the inverse
        bend = np.where(convex, np.maximum(chord, beyond), np.minimum(chord, beyond))
        np.maximum(bend, part.z0, out=bend)
        np.minimum(bend, part.z1, out=bend)
        step = part.e0 * (bend - part.z0) + part.e1 * (part.z1 - bend)
        # room for rounded values, for ψ's error, and for ψ not quite convex or concave
        slack = (ROUNDING * np.abs(part.v1) + _PSI_ERROR * area * part.x1 / dx) * slope
        low = np.minimum(chebyshev, step) * (1.0 - 2.0 * excess) - slack
        high = np.maximum(chebyshev, step) * (1.0 + 4.0 * excess) + slack
        # For linear ε and dz/dx the truth lies two thirds of the way from Chebyshev's bound to the other.
        best = chebyshev + (2.0 / 3.0) * (step - chebyshev)
        found = Bounds(low, high, best).intersected(monotone(dz, part.e0, part.e1))
        return found.lower, found.upper, found.estimate, slack


def _from_zero(part: _Parts, convex: BoolArray, excess: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bounds and an estimate for intervals that start with an infinite loss, so with a bid and a cost of zero.

    A virtual cost is never below the bid: ``z ≤ x``. So by parts, twice, the integral ``ε₁z₁ + ∫z d(−ε)`` is at most
    ``ε₁z₁ + ∫x d(−ε) = area − ε₁(x₁ − z₁)``. Chebyshev's inequality holds as elsewhere.
    """
    area = np.maximum(part.v1 - part.v0, 0.0)
    slack = ROUNDING * np.abs(part.v1) + _PSI_ERROR * area
    low, high = part.e1 * part.z1, area - part.e1 * (part.x1 - part.z1) + slack
    chebyshev = area * part.z1 / part.x1
    known = excess < 0.25
    low = np.where(known & convex, np.maximum(low, chebyshev * (1.0 - 2.0 * excess) - slack), low)
    high = np.where(known & ~convex, np.minimum(high, chebyshev * (1.0 + 4.0 * excess) + slack), high)
    high = np.maximum(high, low)
    return low, high, np.clip(chebyshev, low, high)
