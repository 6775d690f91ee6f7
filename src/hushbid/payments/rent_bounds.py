"""Everybody's integral enclosed over intervals of bids, which are split until the enclosures are narrow enough."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushbid.common.arrays import BoolArray, FloatArray, IndexArray
from hushbid.payments.rent_sums import Bounds, monotone
from hushbid.payments.rule import ROUNDING, RuleWithPotential
from hushbid.payments.virtual_cost_table import PSI_ERROR, Ladder

_PEOPLE = 1024
"""How many people are worked on together: few calls of NumPy each, and intervals that stay in the processor's cache."""

_PIECES = 256
FINEST = 1e-8
"""Smaller tolerances are not aimed at: there the error of virtual costs decides."""


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

    def joined(self, other: "_Parts") -> "_Parts":
        return _Parts(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.__slots__))


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
        self.evaluations, self.allowed = 0, 0.0
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
        self.evaluations += part.evaluations
        before, after = self.sums[1, who] - self.sums[0, who], part.sums[1] - part.sums[0]
        self.sums[:, who] = np.where(after < before, part.sums, self.sums[:, who])
        return bool(after.max() < 0.5 * before.max())

    def _settle_all(self, start: _Parts) -> None:
        size = self.rows.size
        # a person's two intervals side by side, then people in blocks
        order = np.argsort(start.who, kind="stable")
        ends = start.who[order].searchsorted(np.arange(0, size + _PEOPLE, _PEOPLE))
        for first, begin, end in zip(range(0, size, _PEOPLE), ends[:-1], ends[1:], strict=True):
            self._settle(start.take(order[begin:end]), self.allowed, self.sums[:, first : first + _PEOPLE], first)

    def _largest(self, start: _Parts, besides: FloatArray) -> float:
        """A lower bound, within a few percent, on what the person who seems to be paid most is paid."""
        guess = besides + np.bincount(start.who, self._enclose(start)[2], besides.size)
        who = int(guess.argmax())
        goal = float(guess[who])
        for _ in range(40):
            sums = np.zeros((3, 1))
            self._settle(start.take(start.who == who), 0.02 * goal, sums, who)
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
        self.evaluations += who.size
        found = self.rule.at(self.rows[who], costs)
        return found.loss, found.value

    def _start(self) -> _Parts:
        """From one's own bid to the next node, and from there to the last."""
        ladder = self.ladder
        who = np.arange(self.rows.size)
        node = np.minimum(ladder.z.searchsorted(self.bids, side="left"), ladder.z.size - 1)
        end = np.full(who.size, ladder.z.size - 1)
        # ψ does not fall from their bid to the node, whatever rounding says
        x = np.maximum(ladder.x[node], self.costs)
        # all in one call, which costs as much as one of few people
        loss, value = self._at(np.tile(who, 3), np.concatenate([self.costs, x, ladder.x[end]]))
        (e0, e1, e2), (v0, v1, v2) = loss.reshape(3, -1), value.reshape(3, -1)
        self.at_end = e2
        own, z = np.maximum(node - 1, 0), ladder.z[node]
        near = _Parts(who, own, node, self.bids, z, self.costs, x, e0, e1, v0, v1)
        return near.joined(_Parts(who, node, end, z, ladder.z[end], x, ladder.x[end], e1, e2, v1, v2))

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
        np.maximum(turn, part.x0, out=turn)
        np.minimum(turn, part.x1, out=turn)
        chord, beyond = self.ladder.inverse(turn)
        # its turn in bids, on the safe side of what the table knows of the inverse
        bend = np.where(convex, np.maximum(chord, beyond), np.minimum(chord, beyond))
        np.maximum(bend, part.z0, out=bend)
        np.minimum(bend, part.z1, out=bend)
        step = part.e0 * (bend - part.z0) + part.e1 * (part.z1 - bend)
        # room for rounded values, for ψ's error, and for ψ not quite convex or concave
        slack = (ROUNDING * np.abs(part.v1) + PSI_ERROR * area * part.x1 / dx) * slope
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
    slack = ROUNDING * np.abs(part.v1) + PSI_ERROR * area
    low, high = part.e1 * part.z1, area - part.e1 * (part.x1 - part.z1) + slack
    chebyshev = area * part.z1 / part.x1
    known = excess < 0.25
    low = np.where(known & convex, np.maximum(low, chebyshev * (1.0 - 2.0 * excess) - slack), low)
    high = np.where(known & ~convex, np.minimum(high, chebyshev * (1.0 + 4.0 * excess) + slack), high)
    high = np.maximum(high, low)
    return low, high, np.clip(chebyshev, low, high)
